"""One read of X on an NVIDIA GPU, at any number of columns: a kernel that torch compiles.

A warp holds some rows in registers: a few lanes per row, a few columns per lane. Each lane adds
up its part of the scores of several rows; lanes then swap halves of what they have, so that every
lane ends with the score of another row and takes one exponential; the weights go back to the
lanes of their rows, which add their entries, so weighted, to sums of their own. Entries are read
once, nothing waits for shared memory, and a row of ten columns costs little more than ten, where
Triton's tiles take every exponential several times.

A table by columns is read the same way with the roles of the lanes swapped. Where a row is too
long for one warp, several share it.

The source is compiled for one number of columns and one type of entries by NVRTC, which comes
with torch; where it is missing, or too old, `toprank.blocks.kernels_triton` serves.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

#: Columns up to which a lane may take a whole row, and up to which a table by columns of 16-bit
#: numbers is read as one by rows is. All numbers here were chosen on an H200.
_NARROW = 12
_WIDEST = 32
#: Warps of a block.
_WARPS = 4
#: Threads that a multiprocessor should hold, and how many times as many are started.
_RESIDENT = 512
_WAVES = 2
#: Names of the entries' types in the source, their bytes, and how they become a double.
_TYPES = {
    "torch.float64": ("double", 8, "v"),
    "torch.float32": ("float", 4, "(double)v"),
    "torch.float16": ("unsigned short", 2, "(double)from_half(v)"),
    "torch.bfloat16": ("unsigned short", 2, "(double)__uint_as_float((unsigned)v << 16)"),
}

_SOURCE = r"""
typedef ENTRY Entry;
#define GROUPS (32 / LANES)          // rows that a warp reads with one load
#define STEP (BY_COLUMN ? GROUPS : 1)  // lanes from one column to the next
#define KEPT (BATCH > LANES ? BATCH / LANES : 1)  // rows whose weight a lane makes
#define ROWS (BATCH * GROUPS)
#define ALL 0xffffffffu

__device__ __forceinline__ float from_half(unsigned short v) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(v));
  return out;
}

__device__ __forceinline__ double number(Entry v) { return TO_DOUBLE; }

#define COLUMN(s) (column + (s) * LANES)
#define ROW(b) (group + (b) * GROUPS)
#define OFFSET(b, s) (((b) * GROUPS) * row_step + ((s) * LANES) * column_step)

// The entries of a batch of rows, and the labels of those whose weight the lane makes.
#define READ(to, labels, at)                                                                      \
  {                                                                                               \
    const Entry* from = X + ((at) + group) * row_step + column * column_step;                     \
    if ((at) + ROWS <= n) {                                                                       \
      _Pragma("unroll") for (int b = 0; b < BATCH; b++)                                           \
        _Pragma("unroll") for (int s = 0; s < SLOTS; s++)                                         \
          to[b][s] = (COLUMNS == LANES * SLOTS * WARPS || COLUMN(s) < COLUMNS)                    \
              ? __ldg(from + OFFSET(b, s)) : (Entry)0;                                            \
    } else {                                                                                      \
      _Pragma("unroll") for (int b = 0; b < BATCH; b++)                                           \
        _Pragma("unroll") for (int s = 0; s < SLOTS; s++)                                         \
          to[b][s] = (at) + ROW(b) < n && COLUMN(s) < COLUMNS                                     \
              ? __ldg(from + OFFSET(b, s)) : (Entry)0;                                            \
    }                                                                                             \
    _Pragma("unroll") for (int i = 0; i < KEPT; i++) {                                            \
      const long long row = (at) + ROW(first_kept + i);                                           \
      labels[i] = row < n ? kind[row] : 0;                                                        \
    }                                                                                             \
  }

extern "C" __global__ void __launch_bounds__(TEAMS * WARPS * 32, FEWEST_BLOCKS) tilted(
    const Entry* __restrict__ X, const unsigned char* __restrict__ kind,
    const double* __restrict__ log_weight, const double* __restrict__ beta,
    const double* __restrict__ centre, const double* __restrict__ about,
    double* __restrict__ out, int n, double stride_of_table) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int part = warp % WARPS, team = warp / WARPS;
  const int group = BY_COLUMN ? lane % GROUPS : lane / LANES;
  const int place = (lane / STEP) % LANES;  // among the lanes of a row
  const int column = place + part * LANES * SLOTS;
  const long long stride = (long long)stride_of_table;
  const double of_pos = about[0], of_neg = about[1], pos_top = about[2], neg_top = about[3];
  const long long row_step = BY_COLUMN ? 1 : stride, column_step = BY_COLUMN ? stride : 1;
#if WARPS > 1
  __shared__ double partial[2][KEPT][WARPS][32];
  int turn = 0;
#endif

  double slope[SLOTS], pos_moment[SLOTS], neg_moment[SLOTS];
#if CENTRED
  double middle[SLOTS];
#endif
#pragma unroll
  for (int s = 0; s < SLOTS; s++) {
    const int c = COLUMN(s);
    slope[s] = c < COLUMNS ? beta[c] : 0.0;
#if CENTRED
    middle[s] = c < COLUMNS ? centre[c] : 0.0;
#endif
    pos_moment[s] = neg_moment[s] = 0.0;
  }
  double pos_mass = 0.0, neg_mass = 0.0;

  // after the swaps a lane keeps the rows first_kept, ..., first_kept + KEPT - 1 of its batch
  int first_kept = 0, copies = 0;
  {
    int held = BATCH;
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) {
      if (held > 1) {
        held /= 2;
        if (place & apart) first_kept += held;
      } else {
        copies |= place & apart;  // another lane keeps the same row
      }
    }
  }

  const long long all_teams = (long long)gridDim.x * TEAMS;
#if AHEAD
  Entry x[BATCH][SLOTS];
  unsigned char label[KEPT];
  if (((long long)blockIdx.x * TEAMS + team) * ROWS < n)
    READ(x, label, ((long long)blockIdx.x * TEAMS + team) * ROWS)
#endif
  for (long long first = ((long long)blockIdx.x * TEAMS + team) * ROWS; first < n;
       first += all_teams * ROWS) {
#if AHEAD
    Entry next[BATCH][SLOTS];
    unsigned char next_kind[KEPT];
    if (first + all_teams * ROWS < n) READ(next, next_kind, first + all_teams * ROWS)
#else
    Entry x[BATCH][SLOTS];
    unsigned char label[KEPT];
    READ(x, label, first)
#endif
    bool there[KEPT], is_pos[KEPT];
    double base[KEPT];
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
      const long long row = first + ROW(first_kept + i);
      there[i] = row < n;
      is_pos[i] = there[i] && label[i] != 0;
      base[i] = is_pos[i] ? -pos_top : -neg_top;
#if WEIGHTED
      if (there[i]) base[i] += log_weight[row];
#endif
    }

    double score[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      score[b] = 0.0;
#pragma unroll
      for (int s = 0; s < SLOTS; s++) {
#if CENTRED
        score[b] += (number(x[b][s]) - middle[s]) * slope[s];
#else
        score[b] += number(x[b][s]) * slope[s];
#endif
      }
    }
    {
      int held = BATCH;
#pragma unroll
      for (int apart = LANES / 2; apart > 0; apart /= 2) {
        if (held > 1) {
          held /= 2;
          const bool upper = place & apart;
#pragma unroll
          for (int i = 0; i < BATCH / 2; i++) {
            if (i < held) {
              const double sent = upper ? score[i] : score[i + held];
              const double kept = upper ? score[i + held] : score[i];
              score[i] = kept + __shfl_xor_sync(ALL, sent, apart * STEP);
            }
          }
        } else {
          score[0] += __shfl_xor_sync(ALL, score[0], apart * STEP);
        }
      }
    }
#if WARPS > 1
    turn ^= 1;
#pragma unroll
    for (int i = 0; i < KEPT; i++) partial[turn][i][part][lane] = score[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
      score[i] = 0.0;
#pragma unroll
      for (int w = 0; w < WARPS; w++) score[i] += partial[turn][i][w][lane];
    }
#endif

    // weights of positives above zero, of negatives below
    double weight[KEPT];
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
      const double e = there[i] ? exp(score[i] * (is_pos[i] ? of_pos : of_neg) + base[i]) : 0.0;
      weight[i] = is_pos[i] ? e : -e;
      if (!copies) {
        if (is_pos[i]) pos_mass += e; else neg_mass += e;
      }
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      double w = weight[b % KEPT];
#if LANES > 1
      int source = 0, rest = b, held = BATCH;
#pragma unroll
      for (int apart = LANES / 2; apart > 0; apart /= 2) {
        if (held > 1) {
          held /= 2;
          if (rest >= held) { rest -= held; source += apart; }
        }
      }
      w = __shfl_sync(ALL, w, BY_COLUMN ? source * STEP + group : source + group * LANES);
#endif
      const double up = w > 0.0 ? w : 0.0, down = w > 0.0 ? 0.0 : -w;
#pragma unroll
      for (int s = 0; s < SLOTS; s++) {
#if CENTRED
        const double entry = number(x[b][s]) - middle[s];
#else
        const double entry = number(x[b][s]);
#endif
#if GROUPS == 1
        if (w > 0.0) pos_moment[s] += w * entry; else neg_moment[s] -= w * entry;
#else
        pos_moment[s] += up * entry;
        neg_moment[s] += down * entry;
#endif
      }
    }
#if AHEAD
#pragma unroll
    for (int b = 0; b < BATCH; b++)
#pragma unroll
      for (int s = 0; s < SLOTS; s++) x[b][s] = next[b][s];
#pragma unroll
    for (int i = 0; i < KEPT; i++) label[i] = next_kind[i];
#endif
  }

  // lanes of the same columns, and of the same masses, add up what they have
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) {
    pos_mass += __shfl_xor_sync(ALL, pos_mass, apart);
    neg_mass += __shfl_xor_sync(ALL, neg_mass, apart);
  }
#pragma unroll
  for (int apart = GROUPS / 2; apart > 0; apart /= 2) {
    const int lanes_apart = BY_COLUMN ? apart : apart * LANES;
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
      pos_moment[s] += __shfl_xor_sync(ALL, pos_moment[s], lanes_apart);
      neg_moment[s] += __shfl_xor_sync(ALL, neg_moment[s], lanes_apart);
    }
  }
  double* at = out + ((long long)blockIdx.x * TEAMS + team) * 2 * (COLUMNS + 1);
  if (part == 0 && lane == 0) {
    at[0] = pos_mass;
    at[COLUMNS + 1] = neg_mass;
  }
  if (group == 0) {
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
      const int c = COLUMN(s);
      if (c < COLUMNS) {
        at[1 + c] = pos_moment[s];
        at[COLUMNS + 1 + 1 + c] = neg_moment[s];
      }
    }
  }
}
"""


@dataclass(frozen=True)
class Plan:
    """How warps share out a table of this many columns.

    Attributes
    ----------
    lanes, slots : int
        Lanes of a warp that share a row, columns that each of them takes.
    warps, teams : int
        Warps that share a row, and how many such teams a block has.
    batch : int
        Rows that a lane works on at once.
    resident : int
        Threads that a multiprocessor should hold.
    ahead : bool
        Whether the next rows are asked for before these are worked on.
    """

    lanes: int
    slots: int
    warps: int
    teams: int
    batch: int
    resident: int = _RESIDENT
    ahead: bool = False


def plan_for(columns: int, size: int, by_column: bool) -> Plan:
    """Return a plan for entries of ``size`` bytes, in a table that lies by rows or by columns.

    The numbers are the best of about a hundred for each of eleven widths.
    """
    if by_column and columns > (20 if size == 4 else _WIDEST):
        return _plan_by_column(columns, size)
    if columns <= _NARROW and size < 8 and (by_column or size == 2):
        batch = max(1, min(4, 20 // columns))
        ahead = size == 4 or not by_column
        resident = 384 if ahead and columns > 4 else _RESIDENT
        return Plan(1, columns, 1, _WARPS, batch, resident, ahead)
    if by_column and columns <= 16:
        return Plan(1, columns, 1, _WARPS, max(1, min(8, 20 // columns)))
    return _plan_by_row(columns, size, by_column)


def _plan_by_column(columns: int, size: int) -> Plan:
    """Neighbouring lanes read neighbouring rows; fewer rows where there are many columns."""
    if size == 8 or (size == 2 and columns > 250):
        lanes = 2 if columns <= 512 else 4
        warps = -(-columns // ((10 if columns <= 128 else 16) * lanes))
        slots = -(-columns // (lanes * warps))
        return Plan(lanes, slots, warps, 1, 1 if size * slots > 64 else 2)
    lanes, share, batch = 1, 11, 2
    if columns > 44:
        lanes, share, batch = (4, 12, 8) if columns <= 80 else (4, 22, 4)
    if columns > 250:
        lanes, share, batch = (2, 30, 1) if columns <= 400 else (4, 64, 1)
    warps = -(-columns // share)
    return Plan(lanes, -(-columns // (lanes * warps)), warps, 1, batch, 384, True)


def _plan_by_row(columns: int, size: int, by_column: bool) -> Plan:
    """A few lanes per row, or a warp, or several; narrow tables by columns are read so too."""
    most = 8 if size == 2 and not by_column else 7
    if size == 4 and 224 < columns <= 320:  # one warp takes less time than two that share a row
        return Plan(32, -(-columns // 32), 1, _WARPS, 1, _RESIDENT, True)
    together = 1
    while -(-columns // together) > most:
        together *= 2
    lanes, warps = min(32, together), max(1, together // 32)
    slots = -(-columns // together)
    batch = 8 if slots <= 4 and together >= 8 and size <= 4 else 4
    ahead = size == 4 and slots * batch <= 20 and not by_column
    resident = 384 if ahead and columns > _NARROW else _RESIDENT
    return Plan(lanes, slots, warps, _WARPS if warps == 1 else 1, batch, resident, ahead)


@cache
def _compiled(
    device: int, columns: int, dtype: str, by_column: bool, weighted: bool, centred: bool
) -> tuple[Callable[..., None], Plan] | None:
    """Return (kernel, plan), or None where torch cannot compile it."""
    torch = importlib.import_module("torch")
    build = getattr(torch.cuda, "_compile_kernel", None)
    if build is None or torch.version.cuda is None or dtype not in _TYPES:
        return None
    entry, size, to_double = _TYPES[dtype]
    plan = plan_for(columns, size, by_column)
    threads = plan.warps * plan.teams * 32
    defined = {
        "ENTRY": entry,
        "TO_DOUBLE": to_double,
        "COLUMNS": columns,
        "LANES": plan.lanes,
        "SLOTS": plan.slots,
        "WARPS": plan.warps,
        "TEAMS": plan.teams,
        "BATCH": plan.batch,
        "AHEAD": int(plan.ahead),
        "FEWEST_BLOCKS": max(1, plan.resident // threads),
        "BY_COLUMN": int(by_column),
        "WEIGHTED": int(weighted),
        "CENTRED": int(centred),
    }
    source = "\n".join(f"#define {name} {value}" for name, value in defined.items())
    try:
        with torch.cuda.device(device):
            return build(source + _SOURCE, "tilted"), plan
    except (RuntimeError, OSError, AttributeError):
        return None


def tilted_partials(
    X: Tensor,
    kind: Tensor,
    log_weight: Tensor | None,
    beta: Tensor,
    centre: Tensor | None,
    about: Tensor,
) -> Tensor | None:
    """Return the sums of each team of warps, of shape (teams, 2, d + 1); None if not compiled.

    Parameters
    ----------
    X : tensor of shape (n, d), n below 2**31, by rows or by columns
    kind : uint8 tensor of shape (n,), not zero for positives
    log_weight, centre : float64 tensors or None
    beta : float64 tensor of shape (d,)
    about : float64 tensor of the tilts and tops of both classes
    """
    torch = importlib.import_module("torch")
    n, columns = X.shape
    by_column = X.stride(1) != 1 and columns > 1
    stride = X.stride(1) if by_column else X.stride(0)
    asked = str(X.dtype), by_column, log_weight is not None, centre is not None
    built = _compiled(X.device.index or 0, columns, *asked)
    if built is None:
        return None
    kernel, plan = built
    processors = torch.cuda.get_device_properties(X.device).multi_processor_count
    threads = plan.warps * plan.teams * 32
    rows = plan.batch * (32 // plan.lanes) * plan.teams
    blocks = min(_WAVES * max(1, plan.resident // threads) * processors, -(-n // rows))
    teams = blocks * plan.teams
    out = torch.empty((teams, 2, columns + 1), dtype=torch.float64, device=X.device)
    given = [beta if part is None else part for part in (log_weight, centre)]
    arguments = [X, kind, given[0], beta, given[1], about, out, n, float(stride)]
    with torch.cuda.device(X.device):
        kernel(grid=(blocks, 1, 1), block=(threads, 1, 1), args=arguments)
    return out

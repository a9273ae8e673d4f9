"""A kernel that holds some rows in registers while it scores and sums them, in CUDA C++.

A warp holds some rows: a few lanes per row, a few columns per lane. Each lane adds up its part of
the scores of several rows; lanes then swap halves of what they have, so that every lane ends with
the score of another row and takes one exponential; the weights go back to the lanes of their rows,
which add their entries, so weighted, to sums of their own. A row of ten columns costs little more
than ten, where Triton's tiles take every exponential several times.

A table by columns is read the same way with the roles of the lanes swapped. Where a row is too long
for one warp, several share it. Rows are asked for ahead: into registers (AHEAD), or into STAGES
places of shared memory.

The centre is subtracted from each entry (SUBTRACT). Entries of 16 bits are summed as they are, and
the centre is subtracted from the sums: such entries have at most eleven bits, so that this costs at
most eleven of the 53 bits of float64.
"""

from __future__ import annotations

SOURCE = r"""
#define GROUPS (32 / LANES)          // rows that a warp reads with one load
#define STEP (BY_COLUMN ? GROUPS : 1)  // lanes from one column to the next
#define KEPT (BATCH > LANES ? BATCH / LANES : 1)  // rows whose weight a lane makes
#define ROWS (BATCH * GROUPS)
#define ALL 0xffffffffu
#define SIXTEENS ((ROWS * COLUMNS * SIZE + 15) / 16 + 1)  // pieces of 16 bytes of a team's rows
#define STAGE (SIXTEENS * 16)

#define COLUMN(s) (column + (s) * LANES)
#define ROW(b) (group + (b) * GROUPS)
#define SURELY(s) ((WARPS - 1) * LANES * SLOTS + ((s) + 1) * LANES <= COLUMNS)  // is a column
#define OFFSET(b, s) (((b) * GROUPS) * row_step + ((s) * LANES) * column_step)

#if STAGES
#define LOAD(p) (*(p))
#else
#define LOAD(p) __ldg(p)
#endif

// The entries of a batch of rows.
#define READ(to, from, all)                                                                       \
  _Pragma("unroll") for (int b = 0; b < BATCH; b++)                                               \
    _Pragma("unroll") for (int s = 0; s < SLOTS; s++)                                             \
      to[b][s] = (all || ROW(b) < left) && (SURELY(s) || COLUMN(s) < COLUMNS)                     \
          ? LOAD(from + OFFSET(b, s)) : (Entry)0;

// The labels of the rows whose weight the lane makes.
#define LABELS(labels, at)                                                                        \
  _Pragma("unroll") for (int i = 0; i < KEPT; i++) {                                              \
    const long long row = (at) + ROW(first_kept + i);                                             \
    labels[i] = row < n ? kind[row] : 0;                                                          \
  }

#if STAGES
// Ask for the rows of a team, zero beyond the last one.
__device__ __forceinline__ void ask(
    unsigned to, const Entry* X, long long first, int n, int thread) {
  const char* begin = (const char*)(X + first * COLUMNS);
  const char* from = (const char*)((unsigned long long)begin & ~15ull);
  const long long left = (const char*)(X + (long long)n * COLUMNS) - from;
  if (left >= STAGE) {
#pragma unroll 4
    for (int i = thread; i < SIXTEENS; i += WARPS * 32)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + i * 16),
                   "l"(from + i * 16));
  } else {
    for (int i = thread; i < SIXTEENS; i += WARPS * 32) {
      const long long more = left - i * 16;
      const int bytes = more >= 16 ? 16 : more > 0 ? (int)more : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + i * 16),
                   "l"(bytes ? from + i * 16 : from), "r"(bytes));
    }
  }
}
#if WARPS > 1
#define MEET __syncthreads()
#else
#define MEET __syncwarp()
#endif
#endif

extern "C" __global__ void __launch_bounds__(TEAMS * WARPS * 32, FEWEST_BLOCKS) tilted(
    const Entry* __restrict__ X, const unsigned char* __restrict__ kind,
    const double* __restrict__ log_weight, const double* __restrict__ given,
    const double* __restrict__ centre, double* __restrict__ out, long long n_rows,
    long long stride, double* __restrict__ scores) {
  const int n = (int)n_rows;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int part = warp % WARPS, team = warp / WARPS;
  const int group = BY_COLUMN ? lane % GROUPS : lane / LANES;
  const int place = (lane / STEP) % LANES;  // among the lanes of a row
  const int column = place + part * LANES * SLOTS;
  const double of_pos = given[0], of_neg = given[1], pos_top = given[2], neg_top = given[3];
#if STAGES
  const int row_step = COLUMNS, column_step = 1;
#else
  const long long row_step = BY_COLUMN ? 1 : stride, column_step = BY_COLUMN ? stride : 1;
#endif
#if WARPS > 1
  __shared__ double partial[2][KEPT][WARPS][32];
  int turn = 0;
#endif

  double slope[SLOTS], pos_moment[SLOTS], neg_moment[SLOTS];
  double of_zeros = 0.0;  // this lane's part of the score of a row of zeros
#if SUBTRACT
  double middle[SLOTS];
#endif
#pragma unroll
  for (int s = 0; s < SLOTS; s++) {
    const int c = COLUMN(s);
    slope[s] = c < COLUMNS ? given[4 + c] : 0.0;
#if SUBTRACT
    middle[s] = c < COLUMNS ? centre[c] : 0.0;
#elif CENTRED
    if (c < COLUMNS) of_zeros -= centre[c] * slope[s];
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

  const long long step = (long long)gridDim.x * TEAMS * ROWS;
  long long first = ((long long)blockIdx.x * TEAMS + team) * ROWS;
#if STAGES
  extern __shared__ __align__(16) char room[];
  char* own = room + team * (STAGES * STAGE);
  const unsigned ring = (unsigned)__cvta_generic_to_shared(own);
  const int thread = part * 32 + lane;
#pragma unroll
  for (int s = 0; s < STAGES; s++) {
    if (first + s * step < n) ask(ring + s * STAGE, X, first + s * step, n, thread);
    asm volatile("cp.async.commit_group;");
  }
  int stage = 0;
  unsigned char label[KEPT];
  LABELS(label, first)
#elif AHEAD
  Entry x[BATCH][SLOTS];
  unsigned char label[KEPT];
  if (first < n) {
    const Entry* from = X + (first + group) * row_step + column * column_step;
    const long long left = n - first;
    if (left >= ROWS) { READ(x, from, true) } else { READ(x, from, false) }
    LABELS(label, first)
  }
#endif
  for (; first < n; first += step) {
#if STAGES
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1));
    MEET;
    Entry x[BATCH][SLOTS];
    unsigned char next_kind[KEPT];
    LABELS(next_kind, first + step)
    {
      const unsigned shift = (unsigned)(unsigned long long)(X + first * COLUMNS) & 15u;
      const Entry* from = (const Entry*)(own + stage * STAGE + shift) + group * COLUMNS + column;
      const int left = ROWS;
      READ(x, from, true)
    }
#elif AHEAD
    Entry next[BATCH][SLOTS];
    unsigned char next_kind[KEPT];
    if (first + step < n) {
      const Entry* from = X + (first + step + group) * row_step + column * column_step;
      const long long left = n - first - step;
      if (left >= ROWS) { READ(next, from, true) } else { READ(next, from, false) }
      LABELS(next_kind, first + step)
    }
#else
    Entry x[BATCH][SLOTS];
    unsigned char label[KEPT];
    {
      const Entry* from = X + (first + group) * row_step + column * column_step;
      const long long left = n - first;
      if (left >= ROWS) { READ(x, from, true) } else { READ(x, from, false) }
      LABELS(label, first)
    }
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
    double value[BATCH][SLOTS];
#pragma unroll
    for (int b = 0; b < BATCH; b++)
#pragma unroll
      for (int s = 0; s < SLOTS; s++) {
        value[b][s] = number(x[b][s]);
#if SUBTRACT
        value[b][s] -= middle[s];
#endif
      }

    double score[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      score[b] = of_zeros;
#pragma unroll
      for (int s = 0; s < SLOTS; s++) score[b] += value[b][s] * slope[s];
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
#if STAGES  // everybody has read: the place is free
#if WARPS == 1
    __syncwarp();
#endif
    {
      const long long ahead = first + STAGES * step;
      if (ahead < n) ask(ring + stage * STAGE, X, ahead, n, thread);
      asm volatile("cp.async.commit_group;");
      stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
#endif

#if SCORED
    if (part == 0 && !copies) {
#pragma unroll
      for (int i = 0; i < KEPT; i++)
        if (there[i]) scores[first + ROW(first_kept + i)] = score[i];
    }
#endif

    // weights of positives above zero, of negatives below
    double weight[KEPT];
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
      const double e =
          there[i] ? EXPONENTIAL(score[i] * (is_pos[i] ? of_pos : of_neg) + base[i]) : 0.0;
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
        const double entry = value[b][s];
#if GROUPS == 1
        if (w > 0.0) pos_moment[s] += w * entry; else neg_moment[s] -= w * entry;
#else
        pos_moment[s] += up * entry;
        neg_moment[s] += down * entry;
#endif
      }
    }
#if AHEAD && !STAGES
#pragma unroll
    for (int b = 0; b < BATCH; b++)
#pragma unroll
      for (int s = 0; s < SLOTS; s++) x[b][s] = next[b][s];
#endif
#if AHEAD || STAGES
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
        const double m = CENTRED && !SUBTRACT ? centre[c] : 0.0;
        at[1 + c] = pos_moment[s] - m * pos_mass;
        at[COLUMNS + 1 + 1 + c] = neg_moment[s] - m * neg_mass;
      }
    }
  }
}
"""

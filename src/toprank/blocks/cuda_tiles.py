"""A kernel for wide tables that lie by columns, in CUDA C++: lanes are rows first, then columns.

A block of threads holds a tile of a few rows in shared memory, of which each warp copies columns of
its own. It scores them, lanes side by side being rows, or in GROUPS, each with columns of its own;
what the warps have is added up to the scores of the rows, and their weights. Then it sums them,
lanes side by side being columns, SHARED lanes to a column: each adds the entries of its rows, 16
bytes at a time, to the few sums that it keeps to the end. What a warp has summed it asks for anew,
in one part or two (PARTS), and waits for nobody until it has scored that. Labels are copied along:
a thread that loads one waits for it behind all that has been asked for.

No column need begin at a multiple of 16 bytes: a warp begins some rows earlier, as many for all of
its columns, and rows that a tile does not have for every warp have no weight there. Entries of 16
bits are made numbers by shifts (SHIFTED) half of the time: those of odd rows to be scored, those of
even rows to be summed. What hides an infinite entry from the scores shows it in the sums, and the
other way round.
"""

from __future__ import annotations

SOURCE = r"""
#define THREADS (WARPS * 32)
#define PER_WORD (4 / BYTES)                      // entries of a word of 32 bits
#define UNIT (16 / BYTES)                         // entries that are copied, and summed, at once
#define UNITS (ROWS / UNIT)                       // of a column in a tile
#define COLUMN (ROWS * BYTES)                     // its bytes
// to score, lanes are rows, in groups that have columns of their own
#define LANES (32 / GROUPS)
#define WORDS (ROWS / PER_WORD / LANES)           // of a column, of a lane, side by side
#define OWN (WORDS * PER_WORD)                    // rows of a lane
#define EACH ((COLUMNS + WARPS * GROUPS - 1) / (WARPS * GROUPS))  // columns of a lane
#define HELD (EACH * GROUPS)                      // columns of a warp
// to sum, lanes are columns, of which each has SHARED lanes
#define ABREAST (32 / SHARED)
#define TURNS ((HELD + ABREAST - 1) / ABREAST)    // columns of a lane
#define SIDE (8 / ABREAST > 0 ? 8 / ABREAST : 1)  // shares that are read at once
#define PART(q) (TURNS * (q) / PARTS)             // where a part of them begins
#define PART_HELD(q) ((q) == PARTS ? HELD : PART(q) * ABREAST)
#define STAGE (WARPS * HELD * COLUMN)             // bytes of a tile
#define BESIDE (ALIGNED ? 0 : UNIT)               // rows that may lie before a tile's first one
#define STEP (ROWS - BESIDE)                      // rows that a tile adds
#define PLACE(row) ((row) + (row) / OWN)          // of a number per row: no two banks collide
#define SHEET ((ROWS + BESIDE) / OWN * (OWN + 1) + OWN + 1)  // such numbers
#define PADS (SHARED > 4)                         // whether lanes read those of several units
#define KEEP(row) ((row) + (PADS ? (row) / UNIT : 0))  // of a weight per row
#define KEPT ((ROWS + UNIT) / UNIT * (UNIT + PADS))    // such weights
#define HALVES (BYTES == 2)
// what weights are multiplied by, and those of shifted entries: neither comes to an end too soon
#define DOWN (HALVES ? 0x1p-408 : 1.0)
#define UP (HALVES ? SCALE * 0x1p-408 * SCALE : 1.0)

#if SUBTRACT
typedef double2 Slope;  // of a column, with its centre
#else
typedef double Slope;   // times SCALE
#endif

// Wait until all has come but what was asked for in so many steps.
template <int STEPS> __device__ __forceinline__ void wait_for() {
  asm volatile("cp.async.wait_group %0;" ::"n"(STEPS));
  __syncwarp();
}

// Ask for so many bytes, or for the first few of them and zeros; for zeros if none is left.
template <int N> __device__ __forceinline__ void copy_some(void* to, const void* from, int left) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
               ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "n"(N),
                 "r"(left > 0 ? left : 0));
}

// Ask for a tile's piece of some of a warp's columns; rows below 0 and from n on are zero. The
// places of a column's units are turned about by its number: no two banks collide, rows being read
// side by side or columns.
template <int FROM, int TO>
__device__ __forceinline__ void ask(
    char* to, const Entry* X, long long first, long long stride, int n, int warp, int lane) {
  constexpr int AT_ONCE = 32 / UNITS, ALL = (TO - FROM) * UNITS;
  if (first >= 0 && first + ROWS <= n) {
    const int ahead = lane / UNITS, u = lane % UNITS;
    const unsigned base = (unsigned)__cvta_generic_to_shared(to) + ahead * COLUMN;
    const unsigned place = (u ^ ahead) * 16;
    const Entry* from = X + (long long)((FROM + ahead) * WARPS + warp) * stride + first + u * UNIT;
#pragma unroll
    for (int i = 0; i < ALL; i += 32, from += AT_ONCE * WARPS * stride) {
      const int j = FROM + i / UNITS;  // and those ahead
      const bool all = (j + AT_ONCE) * WARPS <= COLUMNS && i + 32 <= ALL;
      if (all || ((j + ahead) * WARPS + warp < COLUMNS && i + lane < ALL))
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     ::"r"(base + j * COLUMN + (place ^ j % 8 * 16)), "l"(from));
    }
  } else {
#pragma unroll 1
    for (int i = lane; i < (TO - FROM) * ROWS; i += 32) {
      const int j = FROM + i / ROWS, u = i % ROWS / UNIT, c = j * WARPS + warp;
      const long long r = first + i % ROWS;
      Entry* unit = (Entry*)(to + j * COLUMN + (u ^ (j & 7)) * 16);
      if (c < COLUMNS) unit[i % UNIT] = r >= 0 && r < n ? X[c * stride + r] : (Entry)0;
    }
  }
}

// What some columns add to the scores of a lane's rows.
template <int FROM, int TO>
__device__ __forceinline__ void score_some(
    double* score, const char* tile, int mine, const Slope* slope) {
#pragma unroll 8
  for (int j = FROM / GROUPS; j < TO / GROUPS; j++) {
    const Slope b = slope[j * GROUPS];
    const Raw<WORDS * 4> raw =
        get<WORDS * 4>(tile + j * GROUPS * COLUMN + (mine ^ j * GROUPS % 8 * 16));
#pragma unroll
    for (int k = 0; k < OWN; k++) {
      const unsigned w[1] = {raw.w[k / PER_WORD]};
      const double x = HALVES && k % 2 ? SHIFTED(w, 1) : UNPACK(w, 0);
#if SUBTRACT
      score[k] += (x - b.y) * b.x;
#else
      score[k] += x * b;
#endif
    }
  }
}

// What units of some columns add to a lane's sums: no more than a few columns are read at once.
template <int FROM, int TO>
__device__ __forceinline__ void sum_some(
    double* pos, double* neg, const double2* weight, const char* tile, int mine,
    int column, const Slope* slope) {
  if constexpr (TO - FROM > 4) {
    constexpr int MIDDLE = FROM + (TO - FROM + 1) / 2;
    sum_some<FROM, MIDDLE>(pos, neg, weight, tile, mine, column, slope);
    sum_some<MIDDLE, TO>(pos, neg, weight, tile, mine, column, slope);
  } else {
    Raw<16> raw[TO - FROM];
#if SUBTRACT
    double middle[TO - FROM];
#endif
#pragma unroll
    for (int m = FROM; m < TO; m++) {
      // beyond the last column, the first one is read once more
      const bool there = (m + 1) * ABREAST <= HELD || m * ABREAST + column < HELD;
      const int at = there ? m * ABREAST * COLUMN : 0, turned = there ? m * ABREAST % 8 * 16 : 0;
      raw[m - FROM] = get<16>(tile + at + (mine ^ turned));
#if SUBTRACT
      middle[m - FROM] = there ? slope[m * ABREAST].y : 0.0;
#endif
    }
#pragma unroll
    for (int k = 0; k < UNIT; k++) {
      double x[TO - FROM];
#pragma unroll
      for (int m = 0; m < TO - FROM; m++) {
        const unsigned w[1] = {raw[m].w[k / PER_WORD]};
        x[m] = !HALVES ? UNPACK(w, 0) : k % 2 ? UNPACK(w, 1) : SHIFTED_LOW(w);
#if SUBTRACT
        x[m] -= middle[m];
#endif
      }
#pragma unroll
      for (int m = 0; m < TO - FROM; m++) {
        pos[FROM + m] += weight[k].x * x[m];
        neg[FROM + m] += weight[k].y * x[m];
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, FEWEST_BLOCKS) tilted(
    const Entry* __restrict__ X, const unsigned char* __restrict__ kind,
    const double* __restrict__ log_weight, const double* __restrict__ given,
    const double* __restrict__ centre, double* __restrict__ out, long long n_rows,
    long long stride, double* __restrict__ scores) {
  extern __shared__ __align__(16) char room[];
  Slope* slopes = (Slope*)(room + STAGES * STAGE);
  double* partial = (double*)(slopes + (WARPS * HELD + 1) / 2 * 2);
  // weights of a positive and of a negative, and the same for shifted entries
  double2* weights = (double2*)(partial + (WARPS * SHEET + 1) / 2 * 2);
  double2* shifted_weights = weights + (HALVES ? KEPT : 0);
  double* logs = (double*)(shifted_weights + KEPT);  // of the weights of rows
  unsigned char* labels = (unsigned char*)(logs + (WEIGHTED ? STAGES * ROWS : 0));
  const int n = (int)n_rows;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = lane / LANES, within = lane % LANES;
  const int mine = within * WORDS * 4 ^ group * 16;  // of a column: what a lane scores
  // the column of a lane, and which of its units
  const int column = lane % ABREAST, share = lane / ABREAST;
  const int unit = ABREAST >= 8 ? share :
      share % SIDE * ABREAST + share / SIDE % ABREAST + share / 8 * 8;
  const double tilt_pos = given[0], tilt_neg = given[1], pos_top = given[2], neg_top = given[3];
  const unsigned low = (unsigned)(unsigned long long)X / BYTES, low_stride = (unsigned)stride;
  // rows by which a warp begins earlier
#define EARLIER(w) (ALIGNED ? 0 : (int)((low + (w) * low_stride) & (UNIT - 1u)))
  const int earlier = EARLIER(warp);

  for (int i = threadIdx.x; i < WARPS * HELD; i += THREADS) {
    const int c = i % HELD * WARPS + i / HELD;
    const double b = c < COLUMNS ? given[4 + c] : 0.0;
#if SUBTRACT
    slopes[i] = make_double2(b, c < COLUMNS ? centre[c] : 0.0);
#else
    slopes[i] = b * SCALE;
#endif
  }
  for (int i = threadIdx.x; i < STAGES * STAGE / 16; i += THREADS)
    ((uint4*)room)[i] = make_uint4(0u, 0u, 0u, 0u);
  for (int i = threadIdx.x; i < (HALVES ? 2 : 1) * KEPT; i += THREADS)
    weights[i] = make_double2(0.0, 0.0);
  __syncthreads();

  double of_zeros = 0.0;  // the score of a row of zeros
#if CENTRED && !SUBTRACT
  for (int c = 0; c < COLUMNS; c++) of_zeros -= centre[c] * given[4 + c];
#endif

  double pos[TURNS], neg[TURNS], pos_mass = 0.0, neg_mass = 0.0;
#pragma unroll
  for (int j = 0; j < TURNS; j++) pos[j] = neg[j] = 0.0;

  char* const own = room + warp * HELD * COLUMN;
  const Slope* const slope = slopes + warp * HELD + group;
  const long long step = (long long)gridDim.x * STEP;
  long long first = (long long)blockIdx.x * STEP;
  // labels come with the first part of a tile: those of rows beyond the last one are zero
#define ASK_LABELS(early)                                                                         \
  if (threadIdx.x < ROWS / 4) {                                                                   \
    const long long row = (early) + threadIdx.x * 4, left = n - row;                              \
    copy_some<4>(labels + at * ROWS + threadIdx.x * 4, kind + row, left < 4 ? (int)left : 4);     \
  }                                                                                               \
  if (WEIGHTED && threadIdx.x < ROWS)                                                             \
    copy_some<8>(logs + at * ROWS + threadIdx.x, log_weight + (early) + threadIdx.x,              \
                 (early) + threadIdx.x < n ? 8 : 0);
#define ASK(q, early)                                                                             \
  {                                                                                               \
    if ((early) < n) {                                                                            \
      if (q == 0) { ASK_LABELS(early) }                                                           \
      ask<PART_HELD(q), PART_HELD((q) + 1)>(                                                      \
          own + at * STAGE, X, (early) - earlier, stride, n, warp, lane);                         \
    }                                                                                             \
    asm volatile("cp.async.commit_group;");                                                       \
  }
#pragma unroll 1
  for (int s = 0; s < STAGES; s++) {
    const int at = s;
    const long long early = first + s * step;
    ASK(0, early)
#if PARTS == 2
    ASK(1, early)
#endif
  }
  // where the weight of a unit's k-th row lies
#if ALIGNED || !PADS
#define WEIGHT(k) ((k) - earlier)
#else
  int kept[UNIT];
#pragma unroll
  for (int k = 0; k < UNIT; k++) {
    kept[k] = k - earlier - (k < earlier);
    asm volatile("" : "+r"(kept[k]));  // found once, not time and again
  }
#define WEIGHT(k) kept[k]
#endif
  int stage = 0;
#pragma unroll 1
  for (; first < n; first += step) {
    const long long row = first + threadIdx.x;
    const bool there = threadIdx.x < STEP && row < n;
    const long long ahead = first + STAGES * step;
    const int at = stage;
    char* const asked = own + stage * STAGE;
    const char* const tile = asked + group * COLUMN;

    double score[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) score[i] = 0.0;
    wait_for<STAGES * PARTS - 1>();
    score_some<PART_HELD(0), PART_HELD(1)>(score, tile, mine, slope);
#if PARTS == 2
    wait_for<STAGES * PARTS - 2>();
    score_some<PART_HELD(1), PART_HELD(2)>(score, tile, mine, slope);
#endif
#if HALVES
#pragma unroll
    for (int i = 0; i < OWN; i++) score[i] *= i % 2 ? SCALE : 1.0 / SCALE;
#endif
    // lanes of a row share its sum: each keeps half of the rows it had
    int shifted = 0;
#pragma unroll
    for (int apart = 16, held = OWN; apart >= LANES; apart /= 2, held /= 2) {
      const bool upper = lane & apart;
#pragma unroll
      for (int i = 0; i < held / 2; i++) {
        const double sent = upper ? score[i] : score[i + held / 2];
        const double got = __shfl_xor_sync(0xffffffffu, sent, apart);
        score[i] = (upper ? score[i + held / 2] : score[i]) + got;
      }
      if (upper) shifted += held / 2;
    }
#pragma unroll
    for (int i = 0; i < OWN / GROUPS; i++)
      partial[warp * SHEET + PLACE(within * OWN + shifted + i)] = score[i];
    __syncthreads();
    if (threadIdx.x < ROWS) {
      const bool is_pos = there && labels[stage * ROWS + threadIdx.x] != 0;
      double base = is_pos ? -pos_top : -neg_top;
#if WEIGHTED
      base += logs[stage * ROWS + threadIdx.x];
#endif
      double total = of_zeros;
#pragma unroll
      for (int w = 0; w < WARPS; w++) total += partial[w * SHEET + PLACE(threadIdx.x + EARLIER(w))];
#if SCORED
      if (there) scores[row] = total;
#endif
      double e = there ? exponential(total * (is_pos ? tilt_pos : tilt_neg) + base) : 0.0;
      // an infinite entry must not leave its row without weight
      if (HALVES && there && (__double2hiint(total) & 0x7ff00000) == 0x7ff00000)
        e = __hiloint2double(0x7ff80000, 0);
      if (is_pos) pos_mass += e; else neg_mass += e;
      const double2 w = make_double2(is_pos ? e : 0.0, is_pos ? 0.0 : e);
      weights[KEEP(threadIdx.x + UNIT)] = make_double2(w.x * DOWN, w.y * DOWN);
      if (HALVES) shifted_weights[KEEP(threadIdx.x + UNIT)] = make_double2(w.x * UP, w.y * UP);
    }
    __syncthreads();
#define SUM(q)                                                                                    \
  {                                                                                               \
    _Pragma("unroll 1") for (int u = unit; u < UNITS; u += SHARED) {                              \
      double2 weight[UNIT];                                                                       \
      _Pragma("unroll") for (int k = 0; k < UNIT; k++) {                                          \
        const bool shifts = HALVES && k % 2 == 0;                                                 \
        weight[k] = (shifts ? shifted_weights : weights)[(u + 1) * (UNIT + PADS) + WEIGHT(k)];    \
      }                                                                                           \
      sum_some<PART(q), PART(q + 1)>(                                                             \
          pos, neg, weight, asked + column * COLUMN, (u ^ (column & 7)) * 16, column,        \
          slopes + warp * HELD + column);                                                         \
    }                                                                                             \
    __syncwarp();                                                                                 \
    ASK(q, ahead)                                                                                 \
  }
    SUM(0)
#if PARTS == 2
    SUM(1)
#endif
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }

  // the masses, and what the lanes of a column have, are added up in a fixed order
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  double* const masses = partial;
  if (threadIdx.x < ROWS) {
    masses[threadIdx.x] = pos_mass;
    masses[ROWS + threadIdx.x] = neg_mass;
  }
  __syncthreads();
  double mass[2] = {0.0, 0.0};
  for (int r = 0; r < ROWS; r++) {
    mass[0] += masses[r];
    mass[1] += masses[ROWS + r];
  }
  double* at = out + (long long)blockIdx.x * 2 * (COLUMNS + 1);
#pragma unroll
  for (int j = 0; j < TURNS; j++) {
    const int c = (j * ABREAST + column) * WARPS + warp;
    const bool last = share == 0 && j * ABREAST + column < HELD && c < COLUMNS;
    double sums[2] = {pos[j], neg[j]};
#pragma unroll
    for (int k = 0; k < 2; k++) {
#pragma unroll
      for (int apart = 16; apart >= ABREAST; apart /= 2)
        sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], apart);
      double total = sums[k] / DOWN;
#if CENTRED && !SUBTRACT
      total -= last ? centre[c] * mass[k] : 0.0;
#endif
      if (last) at[k * (COLUMNS + 1) + 1 + c] = total;
    }
  }
  if (threadIdx.x < 2) at[threadIdx.x * (COLUMNS + 1)] = threadIdx.x ? mass[1] : mass[0];
}
"""

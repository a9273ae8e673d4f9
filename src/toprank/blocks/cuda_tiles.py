"""A kernel for wide tables that lie by columns, in CUDA C++: a warp has columns of its own.

A block of threads holds a tile of a few rows in shared memory. A warp scores its columns of it,
lanes side by side being rows, or in GROUPS, each with columns of its own; what the warps have is
added up to the scores of the rows, and their weights. Then each lane adds the same entries, by the
weights of its rows, to sums of its own: those of a column are added up once, at the end. No warp
reads what another has copied, so that each asks for more as soon as it has summed some columns.

No column need begin at a multiple of the bytes that are copied at once (COPIED): a warp begins some
rows earlier, as many for all of its columns, and rows that a tile does not have for every warp have
no weight there. Entries of 16 bits are made numbers by shifts (SHIFTED) half of the time: those of
odd rows to be scored, those of even rows to be summed. What hides an infinite entry from the scores
shows it in the sums, and the other way round.
"""

from __future__ import annotations

SOURCE = r"""
#define THREADS (WARPS * 32)
#define LANES (32 / GROUPS)                       // lanes that share the rows of a column
#define PER_WORD (4 / BYTES)                      // entries of a word of 32 bits
#define PIECE (ROWS / PER_WORD)                   // words of a column in a tile
#define WORDS (PIECE / LANES)                     // of them, of a lane, side by side
#define OWN (WORDS * PER_WORD)                    // rows of a lane
#define ABREAST (WARPS * GROUPS)                  // columns that all warps take at once
#define EACH ((COLUMNS + ABREAST - 1) / ABREAST)  // columns of a lane
#define HELD (EACH * GROUPS)                      // columns of a warp
#define STAGE (WARPS * HELD * PIECE * 4)          // bytes of a tile
#define BESIDE (COPIED / BYTES)                   // rows that may lie before a tile's first one
#define STEP (ALIGNED ? ROWS : ROWS - BESIDE)     // rows that a tile adds
#define PLACE(row) ((row) + (row) / OWN)          // of a number per row: no two banks collide
#define SHEET ((ROWS + BESIDE) / OWN * (OWN + 1) + OWN + 1)  // such numbers
#define HALVES (BYTES == 2)
// what weights are multiplied by, and those of shifted entries: neither comes to an end too soon
#define DOWN (HALVES ? 0x1p-408 : 1.0)
#define UP (HALVES ? SCALE * 0x1p-408 * SCALE : 1.0)
#define QUARTER(q) (EACH * (q) / 4)               // where a quarter of a lane's columns begins

// Wait until all has come but what was asked for in so many steps.
template <int STEPS> __device__ __forceinline__ void wait_for() {
  asm volatile("cp.async.wait_group %0;" ::"n"(STEPS));
  __syncwarp();
}

// Ask for a tile's piece of some of a warp's columns; rows below 0 and from n on are zero.
template <int FROM, int TO>
__device__ __forceinline__ void ask(
    char* to, const Entry* X, long long first, long long stride, int n, int warp, int lane) {
  constexpr int UNITS = PIECE * 4 / COPIED, ALL = (TO - FROM) * UNITS;
  if (first >= 0 && first + ROWS <= n) {
    const unsigned base = (unsigned)__cvta_generic_to_shared(to) + FROM * PIECE * 4 + lane * COPIED;
#pragma unroll
    for (int i = 0; i < ALL; i += 32) {
      const int unit = i + lane, c = (FROM + unit / UNITS) * WARPS + warp;
      if (c >= COLUMNS || (ALL % 32 && unit >= ALL)) continue;
      const Entry* from = X + c * stride + first + unit % UNITS * BESIDE;
      if (COPIED == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     ::"r"(base + i * COPIED), "l"(from));
      else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                     ::"r"(base + i * COPIED), "l"(from), "n"(COPIED));
    }
  } else {
    Entry* at = (Entry*)(to + FROM * PIECE * 4);
#pragma unroll 1
    for (int i = lane; i < (TO - FROM) * ROWS; i += 32) {
      const int c = (FROM + i / ROWS) * WARPS + warp;
      const long long r = first + i % ROWS;
      if (c < COLUMNS) at[i] = r >= 0 && r < n ? X[c * stride + r] : (Entry)0;
    }
  }
}

// What some columns add to the scores of a lane's rows.
template <int FROM, int TO>
__device__ __forceinline__ void score_some(
    double* score, const char* tile, const double2* slope) {
#pragma unroll
  for (int j = FROM; j < TO; j++) {
    const double2 b = slope[j * GROUPS];
    const Raw<WORDS * 4> raw = get<WORDS * 4>(tile + j * GROUPS * PIECE * 4);
#pragma unroll
    for (int k = 0; k < OWN; k++) {
      const unsigned w[1] = {raw.w[k / PER_WORD]};
      if (HALVES && k % 2) {
        score[k] += SHIFTED(w, 1) * b.y;
      } else {
        const double x = UNPACK(w, 0);
        score[k] += (SUBTRACT ? x - b.y : x) * b.x;
      }
    }
  }
}

// What a lane's rows add to the sums of some columns.
template <int FROM, int TO>
__device__ __forceinline__ void sum_some(
    double* pos, double* neg, const double* of_pos, const double* of_neg, const char* tile,
    const double2* slope) {
#pragma unroll
  for (int j = FROM; j < TO; j++) {
    const Raw<WORDS * 4> raw = get<WORDS * 4>(tile + j * GROUPS * PIECE * 4);
    const double middle = SUBTRACT ? slope[j * GROUPS].y : 0.0;
#pragma unroll
    for (int k = 0; k < OWN; k++) {
      const unsigned w[1] = {raw.w[k / PER_WORD]};
      double x = !HALVES ? UNPACK(w, 0) : k % 2 ? UNPACK(w, 1) : SHIFTED_LOW(w);
      if (SUBTRACT) x -= middle;
      pos[j] += of_pos[k] * x;
      neg[j] += of_neg[k] * x;
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, FEWEST_BLOCKS) tilted(
    const Entry* __restrict__ X, const unsigned char* __restrict__ kind,
    const double* __restrict__ log_weight, const double* __restrict__ given,
    const double* __restrict__ centre, double* __restrict__ out, long long n_rows,
    long long stride, double* __restrict__ scores) {
  extern __shared__ __align__(16) char room[];
  // slopes, with the centre or the slopes of shifted entries
  double2* slopes = (double2*)(room + STAGES * STAGE);
  double* partial = (double*)(slopes + ABREAST * EACH);
  double* weights = partial + WARPS * SHEET;  // of rows; less than zero of negatives
  const int n = (int)n_rows;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = lane / LANES, within = lane % LANES;
  const double tilt_pos = given[0], tilt_neg = given[1], pos_top = given[2], neg_top = given[3];
  const unsigned low = (unsigned)(unsigned long long)X / BYTES, low_stride = (unsigned)stride;
  // rows by which a warp begins earlier
#define EARLIER(w) (ALIGNED ? 0 : (int)((low + (w) * low_stride) & (BESIDE - 1u)))
  const int earlier = EARLIER(warp);

  for (int i = threadIdx.x; i < ABREAST * EACH; i += THREADS) {
    const int c = i % HELD * WARPS + i / HELD;
    const double b = c < COLUMNS ? given[4 + c] : 0.0;
    slopes[i] = make_double2(b, !SUBTRACT ? b * SCALE : c < COLUMNS ? centre[c] : 0.0);
  }
  for (int i = threadIdx.x; i < STAGES * STAGE / 16; i += THREADS)
    ((uint4*)room)[i] = make_uint4(0u, 0u, 0u, 0u);
  for (int i = threadIdx.x; i < SHEET; i += THREADS) weights[i] = 0.0;
  __syncthreads();

  double of_zeros = 0.0;  // the score of a row of zeros
#if CENTRED && !SUBTRACT
  for (int c = 0; c < COLUMNS; c++) of_zeros -= centre[c] * given[4 + c];
#endif

  double pos[EACH], neg[EACH], pos_mass = 0.0, neg_mass = 0.0;
#pragma unroll
  for (int j = 0; j < EACH; j++) pos[j] = neg[j] = 0.0;

  char* const mine = room + warp * HELD * PIECE * 4;
  const double2* const slope = slopes + warp * HELD + group;
  const long long step = (long long)gridDim.x * STEP;
  long long first = (long long)blockIdx.x * STEP;
#define ASK(q, early)                                                                             \
  {                                                                                               \
    if ((early) < n)                                                                              \
      ask<QUARTER(q) * GROUPS, QUARTER(q + 1) * GROUPS>(                                          \
          asked, X, (early) - earlier, stride, n, warp, lane);                                    \
    asm volatile("cp.async.commit_group;");                                                       \
  }
#pragma unroll 1
  for (int s = 0; s < STAGES; s++) {
    char* const asked = mine + s * STAGE;
    const long long early = first + s * step;
    ASK(0, early)
    ASK(1, early)
    ASK(2, early)
    ASK(3, early)
  }
  int stage = 0;
#pragma unroll 1
  for (; first < n; first += step) {
    bool is_pos = false;
    const long long row = first + threadIdx.x;
    const bool there = threadIdx.x < STEP && row < n;
    if (there) is_pos = kind[row] != 0;
#if WEIGHTED
    double base = there ? log_weight[row] : 0.0;
#else
    double base = 0.0;
#endif
    const long long ahead = first + STAGES * step;
    char* const asked = mine + stage * STAGE;
    const char* const tile = asked + lane * WORDS * 4;

    double score[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) score[i] = 0.0;
    wait_for<STAGES * 4 - 1>();
    score_some<QUARTER(0), QUARTER(1)>(score, tile, slope);
    wait_for<STAGES * 4 - 2>();
    score_some<QUARTER(1), QUARTER(2)>(score, tile, slope);
    wait_for<STAGES * 4 - 3>();
    score_some<QUARTER(2), QUARTER(3)>(score, tile, slope);
    wait_for<STAGES * 4 - 4>();
    score_some<QUARTER(3), QUARTER(4)>(score, tile, slope);
#if HALVES
#pragma unroll
    for (int i = 1; i < OWN; i += 2) score[i] *= SCALE;
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
      double total = of_zeros;
#pragma unroll
      for (int w = 0; w < WARPS; w++) total += partial[w * SHEET + PLACE(threadIdx.x + EARLIER(w))];
#if SCORED
      if (there) scores[row] = total;
#endif
      base -= is_pos ? pos_top : neg_top;
      double e = there ? exponential(total * (is_pos ? tilt_pos : tilt_neg) + base) : 0.0;
      // an infinite entry must not leave its row without weight
      if (HALVES && there && (__double2hiint(total) & 0x7ff00000) == 0x7ff00000)
        e = __hiloint2double(0x7ff80000, 0);
      if (is_pos) pos_mass += e; else neg_mass += e;
      e = is_pos ? e : -e;
      weights[PLACE(threadIdx.x + BESIDE)] = e;
    }
    __syncthreads();
    double of_pos[OWN], of_neg[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) {
      double e = weights[PLACE(within * OWN + i - earlier + BESIDE)];
      if (HALVES) e *= i % 2 ? DOWN : UP;
      of_pos[i] = e > 0.0 ? e : 0.0;
      of_neg[i] = e < 0.0 ? -e : 0.0;
    }
    sum_some<QUARTER(0), QUARTER(1)>(pos, neg, of_pos, of_neg, tile, slope);
    __syncwarp();
    ASK(0, ahead)
    sum_some<QUARTER(1), QUARTER(2)>(pos, neg, of_pos, of_neg, tile, slope);
    __syncwarp();
    ASK(1, ahead)
    sum_some<QUARTER(2), QUARTER(3)>(pos, neg, of_pos, of_neg, tile, slope);
    __syncwarp();
    ASK(2, ahead)
    sum_some<QUARTER(3), QUARTER(4)>(pos, neg, of_pos, of_neg, tile, slope);
    __syncwarp();
    ASK(3, ahead)
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
  for (int j = 0; j < EACH; j++) {
    const int c = (j * GROUPS + group) * WARPS + warp;
    double sums[2] = {pos[j], neg[j]};
#pragma unroll
    for (int k = 0; k < 2; k++) {
#pragma unroll
      for (int apart = LANES / 2; apart; apart /= 2)
        sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], apart);
      double total = sums[k] / DOWN;
#if CENTRED && !SUBTRACT
      total -= c < COLUMNS ? centre[c] * mass[k] : 0.0;
#endif
      if (within == 0 && c < COLUMNS) at[k * (COLUMNS + 1) + 1 + c] = total;
    }
  }
  if (threadIdx.x < 2) at[threadIdx.x * (COLUMNS + 1)] = threadIdx.x ? mass[1] : mass[0];
}
"""

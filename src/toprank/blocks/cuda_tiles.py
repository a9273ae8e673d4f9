"""A kernel for wide tables that lie by columns, in CUDA C++.

A block of threads holds a tile of a few rows in shared memory, a piece of every column, and asks
for the next one meanwhile. It goes over the tile twice: a warp scores the rows with its share of
the columns, lanes side by side being rows; then, the weights known, a thread sums columns of its
own, several at once (JOINED), since to read the weights of a row takes longer than to add an entry.
No column need begin at a multiple of 16 bytes: pieces of 16 bytes are copied that begin at one, and
rows that lie beside the tile have no weight. Columns of a thread are multiples of eight apart: they
begin equally far from such a multiple.
"""

from __future__ import annotations

SOURCE = r"""
#define THREADS (WARPS * 32)
#define ROWS_AT_ONCE (ROWS < 32 ? ROWS : 32)       // rows that a warp scores with one load
#define ABREAST (32 / ROWS_AT_ONCE)                // columns that it takes at once
#define PER_LANE (ROWS / ROWS_AT_ONCE)             // rows that a lane scores
#define PAIRED (BYTES == 2 && ROWS % 64 == 0)      // two of them side by side, read at once
#define ROW_OF(k) (PAIRED ? 2 * row + (k) / 2 * 64 + (k) % 2 : row + (k) * ROWS_AT_ONCE)
#define SIXTEENS (ROWS * SIZE / 16 + !ALIGNED)     // pieces of 16 bytes of a column
#define PITCH ((SIXTEENS + !(SIXTEENS & 1)) * 16)  // an odd number of them: no two banks collide
#define STAGE (COLUMNS * PITCH)
#define PER_PIECE (16 / SIZE)
#define EACH ((COLUMNS + JOINED - 1) / JOINED)     // columns from one of a thread on
#define TAKERS (ALIGNED ? EACH : (EACH + 7) / 8 * 8)
#define SHARES (THREADS / TAKERS > 0 ? THREADS / TAKERS : 1)    // threads that share their columns
#define TURNS ((TAKERS + THREADS - 1) / THREADS)                // of JOINED columns, of a thread
#define APART (JOINED > 1 ? 1 : 2)                              // sums of a column of a thread
#define CHAINS (PER_LANE >= 4 ? 2 : 8 / PER_LANE)    // sums that do not wait for each other
#define AT_ONCE (THREADS / SIXTEENS)               // columns of which the threads copy a piece
#define BESIDE 8                                   // rows of no weight before and after a tile
#define IS_COLUMN(c, j) (((j) + 1) * TAKERS <= COLUMNS || (c) + (j) * TAKERS < COLUMNS)
#define COLUMNS_AT_ONCE (CHAINS * WARPS * ABREAST)  // that all warps score

__device__ __forceinline__ void copy_16(unsigned to, const char* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}

__device__ __forceinline__ void copy_16(unsigned to, const char* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

// Bytes by which a column's first entry lies beyond a multiple of 16.
#define BEYOND(c) (ALIGNED ? 0u : (low + (unsigned)(c) * low_stride) & 15u)

// Ask for the rows of a tile; what lies beyond the last row is zero. A thread always copies the
// same piece of a column.
__device__ __forceinline__ void ask(
    unsigned to, const Entry* X, long long first, long long stride, int n, unsigned low,
    unsigned low_stride) {
  const int beginning = threadIdx.x / SIXTEENS, piece = threadIdx.x - beginning * SIXTEENS;
  if (beginning >= AT_ONCE) return;
  const char* at = (const char*)(X + beginning * stride + first) + piece * 16;
  const long long apart = AT_ONCE * stride * SIZE;
  to += beginning * PITCH + piece * 16;
  if (first + ROWS + BESIDE <= n) {
#pragma unroll 4
    for (int c = beginning; c < COLUMNS; c += AT_ONCE, at += apart, to += AT_ONCE * PITCH)
      copy_16(to, at - BEYOND(c));
  } else {
    for (int c = beginning; c < COLUMNS; c += AT_ONCE, at += apart, to += AT_ONCE * PITCH) {
      const char* from = at - BEYOND(c);
      const long long left = (const char*)(X + c * stride + n) - from;
      const int bytes = left >= 16 ? 16 : left > 0 ? (int)left : 0;
      copy_16(to, bytes ? from : (const char*)((unsigned long long)X & ~15ull), bytes);
    }
  }
}

// What column c adds to the scores of the rows of a lane.
#if PAIRED
#define SCORE(score, c, beyond)                                                                   \
  {                                                                                               \
    const double2 b = slope[c];                                                                   \
    const unsigned* at = (const unsigned*)(tile + (c) * PITCH + (beyond & ~3u)) + lane;           \
    _Pragma("unroll") for (int k = 0; k < PER_LANE; k += 2) {                                     \
      /* words that begin with an odd entry are put in place */                                   \
      const unsigned w[1] = {                                                                     \
          EVEN ? at[k * 16] : __funnelshift_r(at[k * 16], at[k * 16 + 1], beyond * 8)};           \
      score[k] += UNPACK(w, 0) * b.x;                                                             \
      score[k + 1] += SHIFTED(w, 1) * b.y;                                                        \
    }                                                                                             \
  }
#else
#define SCORE(score, c, beyond)                                                                   \
  {                                                                                               \
    const double2 b = slope[c];                                                                   \
    const Entry* at = (const Entry*)(tile + (c) * PITCH + beyond) + row;                          \
    _Pragma("unroll") for (int k = 0; k < PER_LANE; k++) {                                        \
      const double x = number(at[k * ROWS_AT_ONCE]);                                              \
      score[k] += (SUBTRACT ? x - b.y : x) * b.x;                                                 \
    }                                                                                             \
  }
#endif

// The mass of positives (0) or of negatives (1), of what each row's thread has.
__device__ __forceinline__ double mass_of(const double* masses, int kind) {
  double total = 0.0;
  for (int r = 0; r < ROWS; r++) total += masses[kind * ROWS + r];
  return total;
}

extern "C" __global__ void __launch_bounds__(THREADS, FEWEST_BLOCKS) tilted(
    const Entry* __restrict__ X, const unsigned char* __restrict__ kind,
    const double* __restrict__ log_weight, const double* __restrict__ given,
    const double* __restrict__ centre, double* __restrict__ out, long long n_rows,
    long long stride, double* __restrict__ scores) {
  extern __shared__ __align__(16) char room[];
  // slopes, with the centre or the slopes of shifted entries
  double2* slope = (double2*)(room + STAGES * STAGE);
  double* partial = (double*)(slope + COLUMNS);
  double2* weights = (double2*)(partial + WARPS * ROWS);  // of a positive, of a negative
  const int n = (int)n_rows;
  const unsigned low = (unsigned)(unsigned long long)X, low_stride = (unsigned)stride * SIZE;
  const unsigned ring = (unsigned)__cvta_generic_to_shared(room);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = lane % ROWS_AT_ONCE, beside = lane / ROWS_AT_ONCE;
  const double of_pos = given[0], of_neg = given[1], pos_top = given[2], neg_top = given[3];

  for (int c = threadIdx.x; c < COLUMNS; c += THREADS) {
    const double b = given[4 + c];
    slope[c] = make_double2(b, SUBTRACT ? centre[c] : b * SCALE);
  }
  if (threadIdx.x < 2 * BESIDE) {
    const int r = threadIdx.x < BESIDE ? threadIdx.x : ROWS + threadIdx.x;
    weights[r] = make_double2(0.0, 0.0);
  }

  // scores: a warp takes some columns, and those of a chain begin equally far from a multiple of 16
  const int scored = warp * ABREAST + beside;
  unsigned beyond[CHAINS];
#pragma unroll
  for (int i = 0; i < CHAINS; i++) beyond[i] = BEYOND(scored + i * WARPS * ABREAST);

  double of_zeros = 0.0;  // the score of a row of zeros
#if CENTRED && !SUBTRACT
  for (int c = 0; c < COLUMNS; c++) of_zeros -= centre[c] * given[4 + c];
#endif

  // moments: a thread takes some columns, or a share of their rows
  const int share = TAKERS < THREADS ? threadIdx.x / TAKERS : 0;
  const int own = TAKERS < THREADS ? threadIdx.x - share * TAKERS : threadIdx.x;
  double pos_moment[TURNS][JOINED][APART], neg_moment[TURNS][JOINED][APART];
  double pos_mass = 0.0, neg_mass = 0.0;
#pragma unroll
  for (int i = 0; i < TURNS * JOINED * APART; i++)
    (&pos_moment[0][0][0])[i] = (&neg_moment[0][0][0])[i] = 0.0;

  const long long step = (long long)gridDim.x * ROWS;
  long long first = (long long)blockIdx.x * ROWS;
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) {
    const long long early = first + s * step;
    if (early < n) ask(ring + s * STAGE, X, early, stride, n, low, low_stride);
    asm volatile("cp.async.commit_group;");
  }
  int stage = 0;
  for (; first < n; first += step) {
    bool is_pos = false;
    const long long mine = first + threadIdx.x;
    const bool there = threadIdx.x < ROWS && mine < n;
    if (there) is_pos = kind[mine] != 0;
#if WEIGHTED
    double base = there ? log_weight[mine] : 0.0;
#else
    double base = 0.0;
#endif
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2 < 0 ? 0 : STAGES - 2));
    __syncthreads();
    {
      const long long ahead = first + (STAGES - 1) * step;
      const int into = stage == 0 ? STAGES - 1 : stage - 1;
      if (ahead < n) ask(ring + into * STAGE, X, ahead, stride, n, low, low_stride);
      asm volatile("cp.async.commit_group;");
    }
    const char* tile = room + stage * STAGE;

    double score[CHAINS][PER_LANE];
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
#pragma unroll
      for (int k = 0; k < PER_LANE; k++) score[i][k] = 0.0;
    int start = scored;
    for (; start + COLUMNS_AT_ONCE - WARPS * ABREAST < COLUMNS; start += COLUMNS_AT_ONCE) {
#pragma unroll
      for (int i = 0; i < CHAINS; i++) SCORE(score[i], start + i * WARPS * ABREAST, beyond[i])
    }
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
      if (start + i * WARPS * ABREAST < COLUMNS)
        SCORE(score[i], start + i * WARPS * ABREAST, beyond[i])
#pragma unroll
    for (int k = 0; k < PER_LANE; k++) {
#pragma unroll
      for (int i = 1; i < CHAINS; i++) score[0][k] += score[i][k];
      if (PAIRED && k % 2) score[0][k] *= SCALE;
#pragma unroll
      for (int apart = 16; apart >= ROWS_AT_ONCE; apart /= 2)
        score[0][k] += __shfl_xor_sync(0xffffffffu, score[0][k], apart);
      if (beside == 0) partial[warp * ROWS + ROW_OF(k)] = score[0][k];
    }
    __syncthreads();
    if (threadIdx.x < ROWS) {
      double total = of_zeros;
#pragma unroll
      for (int w = 0; w < WARPS; w++) total += partial[w * ROWS + threadIdx.x];
#if SCORED
      if (there) scores[mine] = total;
#endif
      base -= is_pos ? pos_top : neg_top;
      const double e = there ? exp(total * (is_pos ? of_pos : of_neg) + base) : 0.0;
      if (is_pos) pos_mass += e; else neg_mass += e;
      weights[BESIDE + threadIdx.x] = is_pos ? make_double2(e, 0.0) : make_double2(0.0, e);
    }
    __syncthreads();
    if (share < SHARES) {
#pragma unroll
      for (int t = 0; t < TURNS; t++) {
        const int c = own + t * THREADS;
        if (TURNS == 1 || c < TAKERS) {
          const double2* w_at = weights + BESIDE - (int)(BEYOND(c) / SIZE);
          double m[JOINED];
#pragma unroll
          for (int j = 0; j < JOINED; j++)
            m[j] = SUBTRACT && IS_COLUMN(c, j) ? slope[c + j * TAKERS].y : 0.0;
#pragma unroll 2
          for (int piece = share; piece < SIXTEENS; piece += SHARES) {
            unsigned word[JOINED][4];
#pragma unroll
            for (int j = 0; j < JOINED; j++) {
              uint4 raw = make_uint4(0u, 0u, 0u, 0u);
              if (IS_COLUMN(c, j))
                raw = *(const uint4*)(tile + (c + j * TAKERS) * PITCH + piece * 16);
              word[j][0] = raw.x, word[j][1] = raw.y, word[j][2] = raw.z, word[j][3] = raw.w;
            }
#pragma unroll
            for (int e = 0; e < PER_PIECE; e++) {
              const double2 w = w_at[piece * PER_PIECE + e];
#pragma unroll
              for (int j = 0; j < JOINED; j++) {
                double x = UNPACK(word[j], e);
                if (SUBTRACT) x -= m[j];
                pos_moment[t][j][e % APART] += w.x * x;
                neg_moment[t][j][e % APART] += w.y * x;
              }
            }
          }
        }
      }
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }

  // shares of a column, and the masses, are added up in a fixed order
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  double* sums = (double*)room;  // SHARES x 2 x COLUMNS
  double* masses = partial;      // 2 x ROWS
  double* at = out + (long long)blockIdx.x * 2 * (COLUMNS + 1);
  if (share < SHARES) {
#pragma unroll
    for (int i = 0; i < TURNS * JOINED; i++) {
      const int t = i / JOINED, j = i % JOINED, c = own + t * THREADS + j * TAKERS;
      if ((TURNS == 1 || own + t * THREADS < TAKERS) && c < COLUMNS) {
        const double *pos = pos_moment[t][j], *neg = neg_moment[t][j];
        sums[share * 2 * COLUMNS + c] = pos[0] + (APART > 1 ? pos[APART - 1] : 0.0);
        sums[(share * 2 + 1) * COLUMNS + c] = neg[0] + (APART > 1 ? neg[APART - 1] : 0.0);
      }
    }
  }
  if (threadIdx.x < ROWS) {
    masses[threadIdx.x] = pos_mass;
    masses[ROWS + threadIdx.x] = neg_mass;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * COLUMNS; i += THREADS) {
    double total = 0.0;
    for (int s = 0; s < SHARES; s++) total += sums[s * 2 * COLUMNS + i];
#if CENTRED && !SUBTRACT
    total -= centre[i % COLUMNS] * mass_of(masses, i / COLUMNS);
#endif
    at[i < COLUMNS ? 1 + i : 2 + i] = total;
  }
  if (threadIdx.x < 2) at[threadIdx.x * (COLUMNS + 1)] = mass_of(masses, threadIdx.x);
}
"""

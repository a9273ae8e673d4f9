"""A kernel whose warps go over a few rows twice, in CUDA C++: lanes are rows first, then columns.

A warp copies some rows of a table, as they lie, into shared memory of its own. It scores them, a
lane or a few of them per row, so that hardly a number goes from lane to lane. Then it sums them, a
lane per column or a few of them. No warp waits for another, and a thread holds few numbers: there
are many threads, and some work while others wait for their rows. Where rows are short, each lane
keeps the entries of its rows and sums these (ALONE). So it sums the last few columns where most
lanes would have none (LEFT). So are short rows of a table by columns read (BY_COLUMN), without
shared memory, since lanes side by side read rows side by side; where columns begin at even places,
a lane copies what it will need of two or four rows side by side (ADJACENT).

Entries are converted twice, and a multiprocessor converts sixteen a clock. Of entries of 16 bits
every other one is therefore scored as a number that shifts alone make of it (SHIFTED), a power of
two times the entry. That hides infinities from the score, but not from the sums. Where a lane
takes several columns side by side it sums every other one so too, by weights times the root of that
power (SCALED): the largest bits of such entries then show infinities.

The centre of entries of 16 bits is subtracted from the sums, see `toprank.blocks.cuda_rows`.
"""

from __future__ import annotations

SOURCE = r"""
#define ALL 0xffffffffu
#define LANES (32 * PER_LANE / ROWS)             // lanes that score a row
#define APART (32 / LANES)                       // rows from one that a lane scores to the next
#define ROW_BYTES (COLUMNS * BYTES)
// rows of an odd number of 16-bit entries, which are read two at a time and put in place by shifts
#define FUNNEL (BYTES == 2 && COLUMNS % 2 == 1 && LANES == 1 && !ALONE && !BY_COLUMN)
#define ENTRIES (FUNNEL ? 2 : READ_AT_ONCE / BYTES)  // entries that a lane reads at once to score
#define UNITS (ROW_BYTES / READ_AT_ONCE)
#define TAKEN (TAKEN_AT_ONCE / BYTES)            // entries that it reads at once to sum
#define TAKES (ROW_BYTES / TAKEN_AT_ONCE)
#define TURNS (LEFT ? TAKES / 32 : (TAKES + 31) / 32)  // of such entries that a lane sums
#define SUMMED (TURNS * 32 * TAKEN)              // columns that it does, unless LEFT is zero
#define ABREAST (TAKES <= 16 ? 32 / TAKES : 1)   // rows that a warp sums at once
#define SIXTEENS (ROW_BYTES / 16)
#define PITCH (PADDED ? (SIXTEENS | 1) * 16 : ROW_BYTES)  // no two banks collide
#define PIECES (PADDED ? ROWS * SIXTEENS : (ROWS * ROW_BYTES + 15) / 16 + 1)
#define STAGE (ADJACENT ? ROWS * ROW_BYTES : PADDED ? ROWS * PITCH : PIECES * 16)
#define SLOPES ((COLUMNS + 1) / 2 * 16)
#define KINDS 32                                 // bytes of what is known of either class
#define OWN (STAGES * STAGE + ROWS * 16)         // bytes of a warp
#define CHAINS (ENTRIES >= 4 ? 4 : ENTRIES)      // sums that do not wait for each other
#define SHIFTS(e) (SCALE != 1.0 && !ALONE && (e) % 2)  // whether this entry, or chain, is shifted
#define SUMS (ALONE ? COLUMNS : TURNS * TAKEN)
#define SCALED (TAKEN > 1 && !ALONE ? SCALE : 1.0)  // what weights are multiplied by
#define TO_SCALE(i) (SHIFTS(i) ? SCALED : 1.0 / SCALED)  // what a lane's i-th sum then is

__device__ __forceinline__ void copy_16(unsigned to, const char* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}

__device__ __forceinline__ void copy_16(unsigned to, const char* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

// Where the i-th piece of 16 bytes lies in shared memory.
#define PLACE(i) ((i) * 16 + (PADDED && PITCH > ROW_BYTES ? (i) / (SIXTEENS + !SIXTEENS) * 16 : 0))

// Ask for the rows of a warp, zero beyond the last one.
__device__ __forceinline__ void ask(
    unsigned to, const Entry* X, int first, int n, int lane) {
  const char* begin = (const char*)(X + (long long)first * COLUMNS);
  const char* from = PADDED ? begin : (const char*)((unsigned long long)begin & ~15ull);
  const char* end = (const char*)(X + (long long)n * COLUMNS);
  if (end - from >= PIECES * 16) {
    const char* at = from + lane * 16;
#pragma unroll 8
    for (int i = 0; i < PIECES / 32; i++) copy_16(to + PLACE(lane + i * 32), at + i * 512);
    if (PIECES % 32 && lane < PIECES % 32)
      copy_16(to + PLACE(lane + PIECES / 32 * 32), at + PIECES / 32 * 512);
  } else {
    for (int i = lane; i < PIECES; i += 32) {
      const long long more = end - from - i * 16;
      const int bytes = more >= 16 ? 16 : more > 0 ? (int)more : 0;
      copy_16(to + PLACE(i), bytes ? from + i * 16 : from, bytes);
    }
  }
}

#define ROW_AT(j) (first + (ADJACENT ? lane * PER_LANE + (j) : r + (j) * APART))  // of a lane
#if ADJACENT
// A lane's rows of a table by columns lie side by side, and nobody else reads what it copies of
// them. Where rows are longer than it has room for, it takes one after the other, or reads twice.
#define PIECE (PER_LANE * BYTES)  // bytes of a column that a lane copies at once
#define IN_TURN (COLUMNS > 11)
#define TWICE (COLUMNS > 23)
#define SHIFTED_ROW(j) (TWICE && (j) % 2)  // whether this row is scored by shifts
#define HELD(c) get<PIECE>(mine + (c) * 32 * PIECE).w
#define HELD_NUMBER(j, c) UNPACK(HELD(c), j)
#define NUMBER_TO_SCORE(j, c) (SHIFTED_ROW(j) ? SHIFTED(HELD(c), j) : HELD_NUMBER(j, c))

#define READ_AGAIN(j, c) read_again(mine, j, c)
// The j-th row's entry of a column, which the compiler must read again.
__device__ __forceinline__ double read_again(const char* mine, int j, int c) {
  const unsigned w[1] = {*(const volatile unsigned*)(mine + c * 32 * PIECE + j / 2 * 4)};
  return j % 2 ? UNPACK(w, 1) : UNPACK(w, 0);
}

// Ask for them, zero beyond the last one.
__device__ __forceinline__ void ask_adjacent(
    unsigned to, const Entry* X, int row, int n, long long stride) {
  const int left = n - row, bytes = left >= PER_LANE ? PIECE : left > 0 ? left * BYTES : 0;
  const Entry* from = left > 0 ? X + row : X;
#pragma unroll
  for (int c = 0; c < COLUMNS; c++, from += stride)
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to + c * 32 * PIECE),
                 "l"(from), "n"(PIECE), "r"(bytes));
}
#else
#define IN_TURN 0
#define TWICE 0
#define HELD_NUMBER(j, c) 0.0
#define READ_AGAIN(j, c) 0.0
#define SHIFTED_ROW(j) 0
#if BY_COLUMN
// The entries of a row, which a lane asks for ahead; beyond the last row, those of the last one.
#define ASK(held, row)                                                                            \
  {                                                                                               \
    const Entry* at = X + ((row) < n ? (row) : n - 1);                                            \
    _Pragma("unroll") for (int c = 0; c < COLUMNS; c++, at += stride) held[c] = __ldg(at);        \
  }
#endif
#endif

extern "C" __global__ void __launch_bounds__(TEAMS * 32, FEWEST_BLOCKS) tilted(
    const Entry* __restrict__ X, const unsigned char* __restrict__ kind,
    const double* __restrict__ log_weight, const double* __restrict__ given,
    const double* __restrict__ centre, double* __restrict__ out, long long n_rows,
    long long stride, double* __restrict__ scores) {
  extern __shared__ __align__(16) char room[];
  double2* kinds = (double2*)room;  // tilt and height of the top, of negatives and of positives
  double* slope = (double*)(room + KINDS);
  const int n = (int)n_rows;
  const int lane = threadIdx.x % 32, team = threadIdx.x / 32;
  char* own = room + KINDS + SLOPES + team * OWN;
  double2* weights = (double2*)(own + STAGES * STAGE);  // of a positive, of a negative
  const unsigned ring = (unsigned)__cvta_generic_to_shared(own);
  const int r = lane / LANES, place = lane % LANES;

  const int step = gridDim.x * TEAMS * ROWS;
  int first = (blockIdx.x * TEAMS + team) * ROWS;
#if ADJACENT
#pragma unroll
  for (int s = 0; s < STAGES; s++) {
    ask_adjacent(ring + s * STAGE + lane * PIECE, X, ROW_AT(0) + s * step, n, stride);
    asm volatile("cp.async.commit_group;");
  }
#elif !BY_COLUMN
#pragma unroll
  for (int s = 0; s < STAGES; s++) {
    if (first + s * step < n) ask(ring + s * STAGE, X, first + s * step, n, lane);
    asm volatile("cp.async.commit_group;");
  }
#else
  Entry held[PER_LANE][COLUMNS];
#pragma unroll
  for (int j = 0; j < PER_LANE; j++) ASK(held[j], first + r + j * APART)
#endif
  unsigned char label[PER_LANE];
#pragma unroll
  for (int j = 0; j < PER_LANE; j++) {
    const int row = ROW_AT(j);
    label[j] = row < n ? kind[row] : 0;
  }

  double of_zeros = 0.0;  // the score of a row of zeros
  for (int c = threadIdx.x; c < COLUMNS; c += TEAMS * 32)
    slope[c] = given[4 + c] * (SHIFTS(c % ENTRIES) ? SCALE : 1.0);
  if (threadIdx.x < 2)
    kinds[threadIdx.x] = make_double2(given[1 - threadIdx.x], -given[3 - threadIdx.x]);
#if CENTRED
  for (int c = 0; c < COLUMNS; c++) of_zeros -= centre[c] * given[4 + c];
#endif
  double pos_moment[SUMS], neg_moment[SUMS], pos_mass = 0.0, neg_mass = 0.0;
  unsigned most = 0;  // bits of the largest entry that was summed by shifts
#if LEFT
  double pos_left[LEFT], neg_left[LEFT];  // of the last columns, each lane's of its own rows
#pragma unroll
  for (int i = 0; i < LEFT; i++) pos_left[i] = neg_left[i] = 0.0;
#endif
#pragma unroll
  for (int i = 0; i < SUMS; i++) pos_moment[i] = neg_moment[i] = 0.0;
  __syncthreads();

  int stage = 0;
  for (; first < n; first += step) {
    bool is_pos[PER_LANE];
    double base[PER_LANE];
#pragma unroll
    for (int j = 0; j < PER_LANE; j++) {
      const int row = ROW_AT(j);
      is_pos[j] = label[j] != 0;
#if WEIGHTED
      base[j] = row < n ? log_weight[row] : 0.0;
#else
      base[j] = 0.0;
#endif
      label[j] = row + step < n ? kind[row + step] : 0;
    }
#if ADJACENT
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
    const char* mine = own + stage * STAGE + lane * PIECE;
#elif !BY_COLUMN
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1));
    __syncwarp();
    const unsigned shift =
        PADDED ? 0u : (unsigned)(unsigned long long)X + (unsigned)first * ROW_BYTES & 15u;
    const char* tile = own + stage * STAGE + shift;
    const char* row_at = tile + r * PITCH;
#endif

    double sums[PER_LANE][CHAINS];
#pragma unroll
    for (int i = 0; i < PER_LANE * CHAINS; i++) sums[i / CHAINS][i % CHAINS] = 0.0;
#if ALONE
    double value[IN_TURN ? 1 : PER_LANE][TWICE ? 1 : COLUMNS];
#if IN_TURN
#elif ADJACENT
#pragma unroll
    for (int j = 0; j < PER_LANE; j++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) value[j][c] = HELD_NUMBER(j, c);
#elif BY_COLUMN
#pragma unroll
    for (int j = 0; j < PER_LANE; j++) {
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) value[j][c] = number(held[j][c]);
      ASK(held[j], ROW_AT(j) + step)
    }
#else
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
      for (int j = 0; j < PER_LANE; j++) {
        const Raw<READ_AT_ONCE> x =
            get<READ_AT_ONCE>(row_at + j * APART * PITCH + u * READ_AT_ONCE);
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) value[j][u * ENTRIES + e] = UNPACK(x.w, e);
      }
#endif
#if !IN_TURN
#pragma unroll
    for (int c = 0; c < COLUMNS; c += 2) {
      const double2 two = *(const double2*)(slope + c);
#pragma unroll
      for (int j = 0; j < PER_LANE; j++) {
        sums[j][0] += value[j][c] * two.x;
        if (c + 1 < COLUMNS) sums[j][CHAINS - 1] += value[j][c + 1] * two.y;
      }
    }
#endif
#elif FUNNEL
    const unsigned* words[PER_LANE];
    unsigned before[PER_LANE], turn[PER_LANE];
#pragma unroll
    for (int j = 0; j < PER_LANE; j++) {
      const char* at = row_at + j * APART * PITCH;
      const unsigned odd = (unsigned)(unsigned long long)at & 2u;
      words[j] = (const unsigned*)(at - odd);
      turn[j] = odd * 8;
      before[j] = words[j][0];
    }
#pragma unroll 8
    for (int u = 0; u < COLUMNS / 2; u++) {
      const double2 two = *(const double2*)(slope + 2 * u);
#pragma unroll
      for (int j = 0; j < PER_LANE; j++) {
        const unsigned after = words[j][u + 1];
        const unsigned w[1] = {__funnelshift_r(before[j], after, turn[j])};
        before[j] = after;
        sums[j][0] += UNPACK(w, 0) * two.x;
        sums[j][CHAINS - 1] += SHIFTED(w, 1) * two.y;
      }
    }
#pragma unroll
    for (int j = 0; j < PER_LANE; j++) {
      const unsigned w[1] = {before[j] >> turn[j]};
      sums[j][0] += UNPACK(w, 0) * slope[COLUMNS - 1];
    }
#else
#pragma unroll 8
    for (int i = 0; i < (UNITS + LANES - 1) / LANES; i++) {
      const int u = place + i * LANES;
      if (UNITS % LANES == 0 || u < UNITS) {
        Raw<READ_AT_ONCE> x[PER_LANE];
#pragma unroll
        for (int j = 0; j < PER_LANE; j++)
          x[j] = get<READ_AT_ONCE>(row_at + j * APART * PITCH + u * READ_AT_ONCE);
#if ENTRIES == 1
#pragma unroll
        for (int j = 0; j < PER_LANE; j++) sums[j][0] += UNPACK(x[j].w, 0) * slope[u];
#else
        const double2* b = (const double2*)(slope + u * ENTRIES);
#pragma unroll
        for (int e = 0; e < ENTRIES; e += 2) {
          const double2 two = b[e / 2];
#pragma unroll
          for (int j = 0; j < PER_LANE; j++) {
            sums[j][e % CHAINS] += UNPACK(x[j].w, e) * two.x;
            sums[j][(e + 1) % CHAINS] += SHIFTED(x[j].w, e + 1) * two.y;
          }
        }
#endif
      }
    }
#endif
#pragma unroll
    for (int j = 0; j < PER_LANE; j++) {
#if IN_TURN
#pragma unroll
      for (int c = 0; c < COLUMNS; c += 2) {
        const double2 two = *(const double2*)(slope + c);
        const double one = NUMBER_TO_SCORE(j, c);
        const double other = c + 1 < COLUMNS ? NUMBER_TO_SCORE(j, c + 1) : 0.0;
        if (!TWICE) {
          value[0][c] = one;
          if (c + 1 < COLUMNS) value[0][c + 1] = other;
        }
        sums[j][0] += one * two.x;
        if (c + 1 < COLUMNS) sums[j][CHAINS - 1] += other * two.y;
      }
#endif
      double score = SHIFTS(CHAINS - 1) ? sums[j][CHAINS - 1] * SCALE : sums[j][CHAINS - 1];
#pragma unroll
      for (int i = 0; i < CHAINS - 1; i++) score += SHIFTS(i) ? sums[j][i] * SCALE : sums[j][i];
#pragma unroll
      for (int apart = LANES / 2; apart > 0; apart /= 2)
        score += __shfl_xor_sync(ALL, score, apart);
      if (SHIFTED_ROW(j)) score *= SCALE * SCALE;
      if (CENTRED) score += of_zeros;
      const int row = ROW_AT(j);
      const double2 known = kinds[is_pos[j]];
      const double lift = WEIGHTED ? base[j] + known.y : known.y;
      const double e = exponential(score * known.x + lift) * SCALED;
      const double up = is_pos[j] ? e : 0.0, down = row < n && !is_pos[j] ? e : 0.0;
      if (place == 0) {
#if SCORED
        if (row < n) scores[row] = score;
#endif
        pos_mass += up;
        neg_mass += down;
#if !ALONE
        weights[r + j * APART] = make_double2(up, down);
#endif
#if LEFT
#pragma unroll
        for (int i = 0; i < LEFT; i++) {
          const Raw<BYTES> x = get<BYTES>(row_at + j * APART * PITCH + (SUMMED + i) * BYTES);
          const double v = UNPACK(x.w, 0);
          pos_left[i] += up * v;
          neg_left[i] += down * v;
        }
#endif
      }
#if ALONE
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) {
        const double v = TWICE ? READ_AGAIN(j, c) : value[IN_TURN ? 0 : j][c];
        pos_moment[c] += up * v;
        neg_moment[c] += down * v;
      }
#endif
    }
#if !ALONE
    __syncwarp();
    {
      const int group = ABREAST > 1 ? lane / TAKES : 0;
      const char* at = tile + group * PITCH + (lane - group * TAKES) * TAKEN_AT_ONCE;
#pragma unroll TOGETHER
      for (int k = 0; k < (ROWS + ABREAST - 1) / ABREAST; k++) {
        const int row_of = ABREAST > 1 ? k * ABREAST + group : k;
        const bool some = ABREAST == 1 ||
            (group < ABREAST && (ROWS % ABREAST == 0 || k < ROWS / ABREAST || row_of < ROWS));
        const double2 w = weights[ABREAST == 1 || some ? row_of : 0];
#pragma unroll
        for (int t = 0; t < TURNS; t++) {
          if (some && ((t + 1) * 32 <= TAKES || ABREAST > 1 || t * 32 + lane < TAKES)) {
            const Raw<TAKEN_AT_ONCE> x =
                get<TAKEN_AT_ONCE>(at + k * ABREAST * PITCH + t * 32 * TAKEN_AT_ONCE);
#pragma unroll
            for (int i = 0; i < TAKEN; i++) {
              const bool shifts = SCALED != 1.0 && i % 2;
              const double v = shifts ? SHIFTED(x.w, i) : UNPACK(x.w, i);
              if (shifts) most = max(most, x.w[i / 2] & 0x7fffffffu);
              pos_moment[t * TAKEN + i] += w.x * v;
              neg_moment[t * TAKEN + i] += w.y * v;
            }
          }
        }
      }
    }
#endif
#if ADJACENT
    asm volatile("" ::: "memory");
    ask_adjacent(ring + stage * STAGE + lane * PIECE, X, ROW_AT(0) + STAGES * step, n, stride);
    asm volatile("cp.async.commit_group;");
    stage = stage + 1 == STAGES ? 0 : stage + 1;
#elif !BY_COLUMN
    __syncwarp();  // everybody has read: the place is free
    if (first + STAGES * step < n)
      ask(ring + stage * STAGE, X, first + STAGES * step, n, lane);
    asm volatile("cp.async.commit_group;");
    stage = stage + 1 == STAGES ? 0 : stage + 1;
#endif
  }

  pos_mass /= SCALED;
  neg_mass /= SCALED;
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) {
    pos_mass += __shfl_xor_sync(ALL, pos_mass, apart);
    neg_mass += __shfl_xor_sync(ALL, neg_mass, apart);
  }
  if (SCALED != 1.0 && most >= INFINITE) pos_moment[0] = __hiloint2double(0x7ff80000, 0);
#pragma unroll
  for (int i = 0; i < SUMS; i++) {
    pos_moment[i] *= TO_SCALE(i);
    neg_moment[i] *= TO_SCALE(i);
  }
#if ALONE
#pragma unroll
  for (int c = 0; c < COLUMNS; c++)
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
      pos_moment[c] += __shfl_xor_sync(ALL, pos_moment[c], apart);
      neg_moment[c] += __shfl_xor_sync(ALL, neg_moment[c], apart);
    }
#elif ABREAST > 1  // rows that lay abreast
#pragma unroll
  for (int i = 0; i < TAKEN; i++) {
    const double pos = pos_moment[i], neg = neg_moment[i];
#pragma unroll
    for (int g = 1; g < ABREAST; g++) {
      pos_moment[i] += __shfl_sync(ALL, pos, lane + g * TAKES);
      neg_moment[i] += __shfl_sync(ALL, neg, lane + g * TAKES);
    }
  }
#endif
  double* at = out + ((long long)blockIdx.x * TEAMS + team) * 2 * (COLUMNS + 1);
  if (lane == 0) {
    at[0] = pos_mass;
    at[COLUMNS + 1] = neg_mass;
  }
#if LEFT
#pragma unroll
  for (int i = 0; i < LEFT; i++) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
      pos_left[i] += __shfl_xor_sync(ALL, pos_left[i], apart);
      neg_left[i] += __shfl_xor_sync(ALL, neg_left[i], apart);
    }
    if (lane == 0) {
      const double m = CENTRED ? centre[SUMMED + i] : 0.0;
      at[1 + SUMMED + i] = pos_left[i] / SCALED - m * pos_mass;
      at[COLUMNS + 1 + 1 + SUMMED + i] = neg_left[i] / SCALED - m * neg_mass;
    }
  }
#endif
#pragma unroll
  for (int i = 0; i < SUMS; i++) {
    const int c = ALONE ? i : (i / TAKEN * 32 + lane) * TAKEN + i % TAKEN;
    if (ALONE ? lane == 0 : i / TAKEN * 32 + lane < TAKES) {
      const double m = CENTRED ? centre[c] : 0.0;
      at[1 + c] = pos_moment[i] - m * pos_mass;
      at[COLUMNS + 1 + 1 + c] = neg_moment[i] - m * neg_mass;
    }
  }
}
"""

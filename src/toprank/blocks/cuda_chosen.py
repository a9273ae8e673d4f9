"""Some of the rows, in order, in CUDA C++: those of a class at equal distances, or drawn by weight.

A block looks at its rows and says how many it chooses; where each of them goes follows from the
sums of that over the blocks before, so that the same rows stand in the same places every time.
"""

from __future__ import annotations

SOURCE = r"""
typedef long long Whole;

// How many threads of the block before this one have the flag, and how many have it in all.
__device__ int rank_in_block(bool flag, int* of_warps, int& total) {
  const unsigned votes = __ballot_sync(0xffffffffu, flag);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  __syncthreads();  // the last numbers have been read
  if (lane == 0) of_warps[warp] = __popc(votes);
  __syncthreads();
  int before = 0;
  total = 0;
  for (int w = 0; w < THREADS / 32; w++) {
    if (w == warp) before = total;
    total += of_warps[w];
  }
  return before + __popc(votes & ((1u << lane) - 1));
}

__device__ void add_up(int own, Whole* of_blocks) {
  __shared__ int all;
  if (threadIdx.x == 0) all = 0;
  __syncthreads();
  atomicAdd(&all, own);
  __syncthreads();
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = all;
}

// How many rows of each block are of the class that is not zero.
extern "C" __global__ void __launch_bounds__(THREADS) tally(
    const unsigned char* __restrict__ kind, Whole* __restrict__ of_blocks, Whole n) {
  const Whole start = (Whole)blockIdx.x * ROWS;
  int own = 0;
  for (int k = threadIdx.x; k < ROWS; k += THREADS) own += start + k < n && kind[start + k];
  add_up(own, of_blocks);
}

// Every so many rows of class 0, then of the other; `ends` are running sums of `tally`.
extern "C" __global__ void __launch_bounds__(THREADS) spaced(
    const unsigned char* __restrict__ kind, const Whole* __restrict__ ends,
    Whole* __restrict__ rows, Whole n, Whole step_0, Whole step_1, Whole first_0, Whole first_1,
    Whole room_0, Whole room) {
  __shared__ int of_warps[THREADS / 32];
  const Whole start = (Whole)blockIdx.x * ROWS;
  Whole before = blockIdx.x ? ends[blockIdx.x - 1] : 0;
  for (int k = 0; k < ROWS; k += THREADS) {
    const Whole row = start + k + threadIdx.x;
    const bool other = row < n && kind[row];
    int total;
    const Whole of_other = before + rank_in_block(other, of_warps, total);
    before += total;
    const Whole step = other ? step_1 : step_0;
    const Whole place = other ? of_other - first_1 : row - of_other - first_0;
    if (row >= n || place < 0 || place % step) continue;
    const Whole at = place / step + (other ? room_0 : 0);
    if (at < (other ? room : room_0)) rows[at] = row;
  }
}

// What each row counts, if it is drawn, zero else; less than zero for class 0. `about` holds tilts,
// logarithms of masses, and rows to stand for a class, each of the other class first, then a share
// of a circle: rows are drawn where equal steps of that leave less than their chance.
extern "C" __global__ void __launch_bounds__(THREADS) draw(
    const double* __restrict__ scores, const unsigned char* __restrict__ kind,
    const double* __restrict__ logs, const double* __restrict__ about,
    float* __restrict__ count, Whole* __restrict__ of_blocks, Whole n) {
  const Whole start = (Whole)blockIdx.x * ROWS;
  int own = 0;
  for (int k = threadIdx.x; k < ROWS; k += THREADS) {
    const Whole row = start + k;
    if (row >= n) break;
    const int c = kind[row] ? 0 : 1;
    const double tilt = about[c], each = about[4 + c];
    double exponent = scores[row] * tilt - about[2 + c];
    if (WEIGHTED) exponent += logs[row];
    const float share = expf((float)exponent);
    const double turn = __dmul_rn((double)(row + 1), about[6]);  // else a share may be below zero
    const bool drawn = turn - floor(turn) < each * (double)share;
    const float held = fmaxf(share, (float)(1.0 / each)) * fabsf((float)tilt);
    count[row] = drawn ? (c ? -held : held) : 0.0f;
    own += drawn;
  }
  add_up(own, of_blocks);
}

// How many rows of one class each of it stands for, if it is drawn by its size, zero else. `about`
// holds how many are drawn by their size, the chance beside that, and a share of a circle; `sum`
// is that of all sizes, twice those of the class.
extern "C" __global__ void __launch_bounds__(THREADS) draw_by_size(
    const double* __restrict__ sizes, const unsigned char* __restrict__ kind,
    const double* __restrict__ weight, const double* __restrict__ about,
    const double* __restrict__ sum, float* __restrict__ count, Whole* __restrict__ of_blocks,
    Whole n, Whole which) {
  const Whole start = (Whole)blockIdx.x * ROWS;
  const double each = *sum > 0.0 ? 2.0 * about[0] / *sum : 0.0;
  int own = 0;
  for (int k = threadIdx.x; k < ROWS; k += THREADS) {
    const Whole row = start + k;
    if (row >= n) break;
    const double chance = fmin(each * fabs(sizes[row]) + about[1], 1.0);
    const double turn = __dmul_rn((double)(row + 1), about[2]);
    const bool drawn = (kind[row] != 0) == which && turn - floor(turn) < chance;
    double held = drawn ? 1.0 / chance : 0.0;
    if (WEIGHTED && drawn) held *= weight[row];
    count[row] = (float)held;
    own += (float)held != 0.0f;
  }
  add_up(own, of_blocks);
}

// The rows that count, what, and how many they are; `ends` are running sums of that.
extern "C" __global__ void __launch_bounds__(THREADS) compact(
    const float* __restrict__ count, const Whole* __restrict__ ends, Whole* __restrict__ rows,
    float* __restrict__ counts, Whole* __restrict__ all, Whole n, Whole room) {
  __shared__ int of_warps[THREADS / 32];
  const Whole start = (Whole)blockIdx.x * ROWS;
  Whole before = blockIdx.x ? ends[blockIdx.x - 1] : 0;
  for (int k = 0; k < ROWS; k += THREADS) {
    const Whole row = start + k + threadIdx.x;
    const float held = row < n ? count[row] : 0.0f;
    int total;
    const Whole at = before + rank_in_block(held != 0.0f, of_warps, total);
    before += total;
    if (held != 0.0f && at < room) {
      rows[at] = row;
      counts[at] = held;
    }
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) *all = before < room ? before : room;
}
"""

"""Kernels for the root of a power price of a loss that is summed over boxes, in CUDA C++.

With inner scores a and outer scores b, shares w that sum to one on either side, and r = a - b,

    S_o = sum_i w_i l(a_i - b_o),    F = (sum_o w_o S_o^p)^{1/p}.

All scores lie on one axis of boxes, so few that each of them is near every other. The inner rows
leave their moments in the boxes (spread), which become series of S and dS/dr at the boxes
(forward). The outer rows take their heights from these, and what they are worth (price), and leave
moments of that (spread), which become series of the inner rows' slopes (backward, slopes). The host
waits for none of it. Heights rise along the axis: the largest is that of the highest outer row.

A warp adds to a table of its own, two rows at a time, with a lane for each moment; moments are
whole quanta, so that no order of adding up can change a bit. Where the boxes are too many, or a
score is no number, the facts say so, and the rest means nothing.
"""

from __future__ import annotations

SOURCE = r"""
__device__ __forceinline__ int locate(double score, double low, double* x) {
  const double at = (score - low) / BOX, box = floor(at);
  *x = 2.0 * (at - box) - 1.0;
  return (int)box;
}

// Add share x^m of the rows of one side to the moments of their boxes.
__device__ void spread(
    int which, const double* scores, const unsigned char* side, const double* share,
    long long apart, double quanta, const Axis& axis, Whole* sums, long long n) {
  __shared__ Whole tables[WARPS][MOST * TERMS], stages[WARPS][32 * TERMS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = lane / 16, m = lane % 16;
  Whole *table = tables[warp], *stage = stages[warp];
  for (int i = lane; i < MOST * TERMS; i += 32) table[i] = 0;
  __syncwarp();
  const long long step = (long long)gridDim.x * WARPS * 32;
  long long row = ((long long)blockIdx.x * WARPS + warp) * 32 + lane;
  unsigned char own = row < n ? side[row] : 0;
  double score = row < n ? scores[row] : 0.0;
  while (row - lane < n) {
    const bool member = own == which;
    const double held = member ? share[row * apart] * quanta : 0.0, s = SIGN * score;
    row += step;
    own = row < n ? side[row] : 0;  // asked for ahead
    score = row < n ? scores[row] : 0.0;
    double x = 0.0, part = held;
    const int box = member ? locate(s, axis.low, &x) : -1;
    if (member) {
#pragma unroll
      for (int k = 0; k < TERMS; k++, part *= x) stage[lane * TERMS + k] = __double2ll_rn(part);
    }
    unsigned left = __ballot_sync(ALL, member);
    __syncwarp();
    while (left) {
      const int one = __ffs(left) - 1;
      left &= left - 1;
      const int other = left ? __ffs(left) - 1 : -1;
      left &= left - (left != 0);
      const int mine = half ? other : one;
      const int own_box = __shfl_sync(ALL, box, mine < 0 ? 0 : mine);
      Whole v = mine >= 0 && m < TERMS ? stage[mine * TERMS + m] : 0;
      const Whole beside = __shfl_xor_sync(ALL, v, 16);
      const bool same = __shfl_xor_sync(ALL, own_box, 16) == own_box;
      if (same) v += beside;  // then one of the two adds both
      if (mine >= 0 && m < TERMS && !(same && half && other >= 0)) table[own_box * TERMS + m] += v;
      __syncwarp();
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < (int)axis.boxes * TERMS; i += WARPS * 32) {
    Whole total = 0;
    for (int w = 0; w < WARPS; w++) total += tables[w][i];
    if (total) atomicAdd((unsigned long long*)(sums + i), (unsigned long long)total);
  }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32) spread_inner(
    const double* __restrict__ scores, const unsigned char* __restrict__ side,
    const double* __restrict__ share, const Axis* __restrict__ known, Whole* __restrict__ sums,
    long long apart, long long n) {
  const Axis axis = *known;
  if (axis.sound != 0.0) spread(INNER, scores, side, share, apart, QUANTA, axis, sums, n);
}

extern "C" __global__ void __launch_bounds__(WARPS * 32) spread_outer(
    const double* __restrict__ scores, const unsigned char* __restrict__ side,
    const double* __restrict__ heights, const Axis* __restrict__ known, Whole* __restrict__ sums,
    const double* __restrict__ whole, long long n) {
  const Axis axis = *known;
  if (axis.sound != 0.0 && whole[1] > 0.0)
    spread(OUTER, scores, side, heights, 1, QUANTA / whole[1], axis, sums, n);
}

// The series of a box, in powers, of each of ORDERS sums over all boxes of moments.
template <int ORDERS, bool TURNED>
__device__ void series_of(
    const Whole* sums, double unit, const double* near, const double* powers, int boxes,
    double* out) {
  __shared__ double moments[MOST * TERMS], parts[ORDERS][TERMS][TERMS], series[ORDERS][TERMS];
  const int t = blockIdx.x, i = threadIdx.x % TERMS, part = threadIdx.x / TERMS;
  for (int at = threadIdx.x; at < boxes * TERMS; at += TERMS * TERMS) {
    double total = 0.0;  // moments of Chebyshev's polynomials
    for (int j = 0; j < TERMS; j++)
      total += powers[at % TERMS * TERMS + j] * (unit * (double)sums[at / TERMS * TERMS + j]);
    moments[at] = total;
  }
  __syncthreads();
  double total[ORDERS] = {};
  for (int s = part; s < boxes; s += TERMS) {
    const double* kernel = near + ((TURNED ? t - s : s - t) + MOST) * TERMS * TERMS;
    for (int j = 0; j < TERMS; j++)
#pragma unroll
      for (int k = 0; k < ORDERS; k++)
        total[k] += kernel[k * (2 * MOST + 1) * TERMS * TERMS +
                           (TURNED ? j * TERMS + i : i * TERMS + j)] * moments[s * TERMS + j];
  }
#pragma unroll
  for (int k = 0; k < ORDERS; k++) parts[k][part][i] = total[k];
  __syncthreads();
  if (part < ORDERS) {
    double sum = 0.0;
    for (int q = 0; q < TERMS; q++) sum += parts[part][q][i];
    series[part][i] = sum;
  }
  __syncthreads();
  if (part < ORDERS) {
    double sum = 0.0;
    for (int q = 0; q < TERMS; q++) sum += series[part][q] * powers[q * TERMS + i];
    out[(part * MOST + t) * TERMS + i] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(TERMS * TERMS) forward(
    const Whole* __restrict__ sums, const double* __restrict__ near,
    const double* __restrict__ powers, const Axis* __restrict__ axis, double* __restrict__ out) {
  if (blockIdx.x < axis->boxes)
    series_of<2, false>(sums, 1.0 / QUANTA, near, powers, (int)axis->boxes, out);
}

__device__ __forceinline__ double evaluate(const double* series, double x) {
  double total = series[TERMS - 1];
#pragma unroll
  for (int m = TERMS - 2; m >= 0; m--) total = total * x + series[m];
  return total;
}

__device__ __forceinline__ double height_at(const double* series, double x) {
  return fmax(evaluate(series, x), 0.0);  // cancellation can leave a zero at -1e-17
}

__device__ double largest_height(const double* series, const Axis& axis) {
  double x;
  const int box = locate(axis.top, axis.low, &x);
  return height_at(series + box * TERMS, x);
}

// Prices over heights of the outer rows, their slopes, and sums over each block.
extern "C" __global__ void __launch_bounds__(WIDE) price(
    const double* __restrict__ scores, const unsigned char* __restrict__ side,
    const double* __restrict__ share, const double* __restrict__ power_at,
    const double* __restrict__ given, const Axis* __restrict__ known,
    double* __restrict__ heights, double* __restrict__ slopes, double* __restrict__ found,
    long long apart, long long n) {
  __shared__ double series[2 * MOST * TERMS];
  const Axis axis = *known;
  if (axis.sound == 0.0) return;
  for (int i = threadIdx.x; i < 2 * MOST * TERMS; i += WIDE)
    series[i] = i % (MOST * TERMS) < (int)axis.boxes * TERMS ? given[i] : 0.0;
  __syncthreads();
  const double p = *power_at, top = largest_height(series, axis);
  double powers = 0.0, all = 0.0;
  for (long long i = (long long)blockIdx.x * WIDE + threadIdx.x; i < n;
       i += (long long)gridDim.x * WIDE) {
    if (side[i] != OUTER) continue;
    double x;
    const int box = locate(SIGN * scores[i], axis.low, &x);
    const double height = height_at(series + box * TERMS, x);
    const double tilt = evaluate(series + (MOST + box) * TERMS, x);
    double per_height = 0.0;
    if (height > 0.0 && top > 0.0) {
      const double power = power_of(height / top, p) * share[i * apart];
      per_height = power / height;
      powers += power;
      all += per_height;
    }
    heights[i] = per_height;
    slopes[i] = -(SIGN) * per_height * tilt;
  }
  powers = over_block(powers);
  all = over_block(all);
  if (threadIdx.x == 0) found[2 * blockIdx.x] = powers, found[2 * blockIdx.x + 1] = all;
}

// Value, what slopes lack, and whether all of it is sound; and sums of the prices.
extern "C" __global__ void __launch_bounds__(WIDE) total(
    const double* __restrict__ found, const double* __restrict__ power_at,
    const double* __restrict__ given, const Axis* __restrict__ known,
    double* __restrict__ facts, double* __restrict__ whole, long long blocks) {
  const Axis axis = *known;
  double powers = 0.0, all = 0.0;
  if (axis.sound != 0.0)
    for (long long i = threadIdx.x; i < blocks; i += WIDE)
      powers += found[2 * i], all += found[2 * i + 1];
  powers = over_block(powers);
  all = over_block(all);
  if (threadIdx.x == 0) {
    const double top = axis.sound != 0.0 ? largest_height(given, axis) : 0.0;
    const double value = top > 0.0 ? top * exp(log(powers) / *power_at) : 0.0;
    whole[0] = powers, whole[1] = all;
    facts[0] = value, facts[1] = top > 0.0 ? value / powers : 0.0, facts[2] = axis.sound;
  }
}

extern "C" __global__ void __launch_bounds__(TERMS * TERMS) backward(
    const Whole* __restrict__ sums, const double* __restrict__ near,
    const double* __restrict__ powers, const Axis* __restrict__ axis,
    const double* __restrict__ whole, double* __restrict__ out) {
  if (blockIdx.x < axis->boxes)
    series_of<1, true>(
        sums, whole[1] / QUANTA, near + (2 * MOST + 1) * TERMS * TERMS, powers,
        (int)axis->boxes, out);
}

// The slopes of the inner rows, beside those of the outer ones; none of rows that are absent.
extern "C" __global__ void __launch_bounds__(WIDE) slopes_of(
    const double* __restrict__ scores, const unsigned char* __restrict__ side,
    const double* __restrict__ share, const double* __restrict__ given,
    const Axis* __restrict__ known, double* __restrict__ slopes, long long apart, long long n) {
  __shared__ double series[MOST * TERMS];
  const Axis axis = *known;
  if (axis.sound == 0.0) return;
  for (int i = threadIdx.x; i < (int)axis.boxes * TERMS; i += WIDE) series[i] = given[i];
  __syncthreads();
  for (long long i = (long long)blockIdx.x * WIDE + threadIdx.x; i < n;
       i += (long long)gridDim.x * WIDE) {
    const unsigned char own = side[i];
    if (own == OUTER) continue;
    double x, slope = 0.0;
    if (own == INNER) {
      const int box = locate(SIGN * scores[i], axis.low, &x);
      slope = SIGN * share[i * apart] * evaluate(series + box * TERMS, x);
    }
    slopes[i] = slope;
  }
}
"""

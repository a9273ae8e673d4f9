"""Kernels for the root of a power price of the loss square (knot - r)_+^2, in CUDA C++.

With inner scores a in order, and running sums of their shares times 1, a and a^2, an outer row
looks up how many inner rows lie below its threshold, b + knot, and has its height from the sums up
to there (price). What it is worth it adds in one place (pull), and from running sums over the
places the inner rows have their slopes. Heights rise with the scores: the largest is that of the
highest outer row. All sums along the order are in whole quanta, of places about the median, so
that no order of adding up can change a bit.

A block has some places side by side; it adds up what those before it have found by itself.
"""

from __future__ import annotations

SOURCE = r"""
#define PIVOTS 1024

struct __align__(32) Place { Whole zero, one, two; double at; };  // sums up to a place, and itself
struct Wholes { double zero, one, two; };                         // what so many quanta stand for
struct __align__(16) Pull { Whole zero, one; };

// Sum over the threads of a block of 256; all of them get it.
__device__ Whole whole_over_block(Whole v) {
  __shared__ Whole of_warp[WIDE / 32];
  for (int apart = 16; apart > 0; apart /= 2) v += __shfl_xor_sync(ALL, v, apart);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (int w = 0; w < WIDE / 32; w++) v += of_warp[w];
  return v;
}

// Sum up to a thread of a block of 256, its own included; whole is what all have.
__device__ Whole up_to(Whole v, Whole* whole) {
  __shared__ Whole of_warp[WIDE / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int apart = 1; apart < 32; apart *= 2) {
    const Whole before = __shfl_up_sync(ALL, v, apart);
    if (lane >= apart) v += before;
  }
  __syncthreads();
  if (lane == 31) of_warp[warp] = v;
  __syncthreads();
  Whole total = 0;
  for (int w = 0; w < WIDE / 32; w++) {
    if (w == warp) v += total;
    total += of_warp[w];
  }
  *whole = total;
  return v;
}

__device__ __forceinline__ long long chunk(long long m) { return (m + gridDim.x - 1) / gridDim.x; }

__device__ __forceinline__ double per(double whole) { return whole > 0.0 ? QUANTA / whole : 0.0; }

extern "C" __global__ void __launch_bounds__(WIDE) gather(
    const double* __restrict__ scores, const long long* __restrict__ inner,
    double* __restrict__ out, long long m) {
  for (long long i = (long long)blockIdx.x * WIDE + threadIdx.x; i < m;
       i += (long long)gridDim.x * WIDE)
    out[i] = SIGN * scores[inner[i]];
}

// Sums of the sizes of shares, shares times places, and times their squares.
extern "C" __global__ void __launch_bounds__(WIDE) sizes(
    const double* __restrict__ sorted, const long long* __restrict__ order,
    const long long* __restrict__ inner, const double* __restrict__ share,
    double* __restrict__ found, long long apart, long long m) {
  const long long each = chunk(m), first = blockIdx.x * each;
  const long long last = first + each < m ? first + each : m;
  const double middle = sorted[m / 2];
  double zero = 0.0, one = 0.0, two = 0.0;
  for (long long i = first + threadIdx.x; i < last; i += WIDE) {
    const double w = apart ? share[inner[order[i]]] : share[0], x = sorted[i] - middle;
    zero += w, one += w * fabs(x), two += w * x * x;
  }
  zero = over_block(zero);
  one = over_block(one);
  two = over_block(two);
  if (threadIdx.x == 0) {
    double* at = found + 3 * blockIdx.x;
    at[0] = zero, at[1] = one, at[2] = two;
  }
}

__device__ Wholes add_up(const double* found, long long blocks) {
  double zero = 0.0, one = 0.0, two = 0.0;
  for (long long i = threadIdx.x; i < blocks; i += WIDE)
    zero += found[3 * i], one += found[3 * i + 1], two += found[3 * i + 2];
  zero = over_block(zero);
  one = over_block(one);
  two = over_block(two);
  return {zero, one, two};
}

// The quanta of each place, and their sum over a block; what they stand for.
extern "C" __global__ void __launch_bounds__(WIDE) count(
    const double* __restrict__ sorted, const long long* __restrict__ order,
    const long long* __restrict__ inner, const double* __restrict__ share,
    const double* __restrict__ found, Wholes* __restrict__ wholes, Place* __restrict__ places,
    Whole* __restrict__ sums, long long apart, long long m) {
  const long long each = chunk(m), first = blockIdx.x * each;
  const long long last = first + each < m ? first + each : m;
  const double middle = sorted[m / 2];
  const Wholes whole = add_up(found, gridDim.x);
  if (blockIdx.x == 0 && threadIdx.x == 0) *wholes = whole;
  const double of_zero = per(whole.zero), of_one = per(whole.one), of_two = per(whole.two);
  Whole zero = 0, one = 0, two = 0;
  for (long long i = first + threadIdx.x; i < last; i += WIDE) {
    const double w = apart ? share[inner[order[i]]] : share[0], x = sorted[i] - middle;
    const Place own = {__double2ll_rn(w * of_zero), __double2ll_rn(w * x * of_one),
                       __double2ll_rn(w * x * x * of_two), sorted[i]};
    places[i] = own;
    zero += own.zero, one += own.one, two += own.two;
  }
  zero = whole_over_block(zero);
  one = whole_over_block(one);
  two = whole_over_block(two);
  if (threadIdx.x == 0) {
    Whole* at = sums + 3 * blockIdx.x;
    at[0] = zero, at[1] = one, at[2] = two;
  }
}

extern "C" __global__ void __launch_bounds__(WIDE) run(
    Place* __restrict__ places, const Whole* __restrict__ sums, long long m) {
  const long long each = chunk(m), first = blockIdx.x * each;
  const long long last = first + each < m ? first + each : m;
  Whole zero = 0, one = 0, two = 0;
  for (long long i = threadIdx.x; i < blockIdx.x; i += WIDE)
    zero += sums[3 * i], one += sums[3 * i + 1], two += sums[3 * i + 2];
  zero = whole_over_block(zero);
  one = whole_over_block(one);
  two = whole_over_block(two);
  for (long long start = first; start < last; start += WIDE) {
    const long long i = start + threadIdx.x;
    Place own = {0, 0, 0, 0.0};
    if (i < last) own = places[i];
    Whole more_zero, more_one, more_two;
    own.zero = zero + up_to(own.zero, &more_zero);
    own.one = one + up_to(own.one, &more_one);
    own.two = two + up_to(own.two, &more_two);
    if (i < last) places[i] = own;
    zero += more_zero, one += more_one, two += more_two;
  }
}

struct Height { double height, tilt; };

// Height and dS/dr for a threshold, about the middle, that lies above so many inner rows.
__device__ __forceinline__ Height height_at(
    const Place* places, const Wholes& unit, long long below, double threshold) {
  if (below == 0) return {0.0, 0.0};
  const Place sums = places[below - 1];
  const double zero = (double)sums.zero * unit.zero, one = (double)sums.one * unit.one;
  const double two = (double)sums.two * unit.two;
  const double height = SQUARE * (two - threshold * (2.0 * one - threshold * zero));
  return {fmax(height, 0.0), -2.0 * SQUARE * (threshold * zero - one)};
}

// How many numbers in order lie below a threshold, between two places.
__device__ __forceinline__ long long search(
    const double* sorted, long long low, long long high, double threshold) {
  while (low < high) {
    const long long half = (low + high) / 2;
    if (sorted[half] < threshold) low = half + 1;
    else high = half;
  }
  return low;
}

// Prices over heights of the outer rows, their slopes, how many inner rows lie below each, and sums
// over each block.
extern "C" __global__ void __launch_bounds__(WIDE) price(
    const double* __restrict__ scores, const unsigned char* __restrict__ side,
    const double* __restrict__ share, const double* __restrict__ power_at,
    const double* __restrict__ sorted, const Place* __restrict__ places,
    const Wholes* __restrict__ wholes, const Axis* __restrict__ known,
    int* __restrict__ below_at, double* __restrict__ heights, double* __restrict__ slopes,
    double* __restrict__ found, double* __restrict__ top_at, long long apart, long long m,
    long long n) {
  __shared__ double pivots[PIVOTS];
  const Axis axis = *known;
  if (axis.sound == 0.0) return;
  const long long many = m < PIVOTS ? m : PIVOTS;
  for (long long i = threadIdx.x; i < many; i += WIDE) pivots[i] = sorted[i * m / many];
  __syncthreads();
  const Wholes whole = *wholes;
  const Wholes unit = {whole.zero / QUANTA, whole.one / QUANTA, whole.two / QUANTA};
  const double middle = sorted[m / 2], threshold = axis.top + KNOT, p = *power_at;
  Whole fewer = 0;  // the largest height, looked for by all threads
  {
    const long long j = search(pivots, 0, many, threshold), first = j ? (j - 1) * m / many : 0;
    const long long last = j < many ? j * m / many : m;
    for (long long i = first + threadIdx.x; i < last; i += WIDE) fewer += sorted[i] < threshold;
    fewer = first + whole_over_block(fewer);
  }
  const double top = height_at(places, unit, fewer, threshold - middle).height;
  if (blockIdx.x == 0 && threadIdx.x == 0) *top_at = top;
  double powers = 0.0, all = 0.0, far = 0.0;
  for (long long i = (long long)blockIdx.x * WIDE + threadIdx.x; i < n;
       i += (long long)gridDim.x * WIDE) {
    const unsigned char own = side[i];
    if (own != OUTER) {
      if (own == 0) slopes[i] = 0.0;
      continue;
    }
    const double score = SIGN * scores[i], threshold = score + KNOT;
    const long long j = search(pivots, 0, many, threshold);
    const long long low = j ? (j - 1) * m / many + 1 : 0, high = j < many ? j * m / many : m;
    const long long below = search(sorted, low, j ? high : 0, threshold);
    const Height at = height_at(places, unit, below, threshold - middle);
    double per_height = 0.0;
    if (at.height > 0.0 && top > 0.0) {
      const double power = exp(p * log(at.height / top)) * share[i * apart];
      per_height = power / at.height;
      powers += power;
      all += per_height;
      far += per_height * fabs(score - middle);
    }
    below_at[i] = (int)below;
    heights[i] = per_height;
    slopes[i] = -(SIGN) * per_height * at.tilt;
  }
  powers = over_block(powers);
  all = over_block(all);
  far = over_block(far);
  if (threadIdx.x == 0) {
    double* at = found + 3 * blockIdx.x;
    at[0] = powers, at[1] = all, at[2] = far;
  }
}

// Value, what slopes lack, and whether all of it is sound; and sums of the prices over heights.
extern "C" __global__ void __launch_bounds__(WIDE) total(
    const double* __restrict__ found, const double* __restrict__ power_at,
    const double* __restrict__ top_at, const Axis* __restrict__ known,
    const Wholes* __restrict__ wholes, double* __restrict__ facts, double* __restrict__ whole,
    long long blocks) {
  // squares of scores may be no numbers where these are
  const bool sound = known->sound != 0.0 && wholes->zero + wholes->one + wholes->two < infinity();
  const Wholes sums = add_up(found, sound ? blocks : 0);
  if (threadIdx.x == 0) {
    const double top = sound ? *top_at : 0.0, powers = sums.zero;
    const double value = top > 0.0 ? top * exp(log(powers) / *power_at) : 0.0;
    whole[0] = sums.one, whole[1] = sums.two;
    facts[0] = value, facts[1] = top > 0.0 ? value / powers : 0.0, facts[2] = sound;
  }
}

// What each outer row adds for the inner rows below its threshold.
extern "C" __global__ void __launch_bounds__(WIDE) pull(
    const double* __restrict__ scores, const unsigned char* __restrict__ side,
    const double* __restrict__ sorted, const double* __restrict__ heights,
    const int* __restrict__ below_at, const double* __restrict__ whole,
    const Axis* __restrict__ known, Pull* __restrict__ added, long long m, long long n) {
  if (known->sound == 0.0) return;
  const double middle = sorted[m / 2], of_zero = per(whole[0]), of_one = per(whole[1]);
  const int lane = threadIdx.x % 32;
  const long long step = (long long)gridDim.x * WIDE;
  for (long long i = (long long)blockIdx.x * WIDE + threadIdx.x; i - lane < n; i += step) {
    const bool outer = i < n && side[i] == OUTER;
    const double held = outer ? heights[i] : 0.0;
    Whole zero = 0, one = 0;
    int below = -1;
    if (held > 0.0) {
      zero = __double2ll_rn(held * of_zero);
      one = __double2ll_rn(held * (SIGN * scores[i] - middle) * of_one);
      if (zero | one) below = below_at[i];  // else nothing is added
    }
    const unsigned peers = __match_any_sync(ALL, below);
    if (below < 0) continue;
    if (peers & (peers - 1)) {  // rows at one place, one of which adds for all
      Whole all_zero = 0, all_one = 0;
      for (unsigned left = peers; left; left &= left - 1) {
        const int other = __ffs(left) - 1;
        all_zero += __shfl_sync(peers, zero, other);
        all_one += __shfl_sync(peers, one, other);
      }
      zero = all_zero, one = all_one;
    }
    if (lane == __ffs(peers) - 1) {
      atomicAdd((unsigned long long*)&added[below].zero, (unsigned long long)zero);
      atomicAdd((unsigned long long*)&added[below].one, (unsigned long long)one);
    }
  }
}

extern "C" __global__ void __launch_bounds__(WIDE) pulled(
    const Pull* __restrict__ added, Whole* __restrict__ sums, long long m) {
  const long long each = chunk(m), first = blockIdx.x * each;
  const long long last = first + each < m ? first + each : m;
  Whole zero = 0, one = 0;
  for (long long i = first + threadIdx.x; i < last; i += WIDE)
    zero += added[i].zero, one += added[i].one;
  zero = whole_over_block(zero);
  one = whole_over_block(one);
  if (threadIdx.x == 0) sums[2 * blockIdx.x] = zero, sums[2 * blockIdx.x + 1] = one;
}

// The slopes of the inner rows: what lies in the places above each of them.
extern "C" __global__ void __launch_bounds__(WIDE) slopes_of(
    const double* __restrict__ sorted, const long long* __restrict__ order,
    const long long* __restrict__ inner, const double* __restrict__ share,
    const Pull* __restrict__ added, const Whole* __restrict__ sums,
    const double* __restrict__ whole, double* __restrict__ slopes, long long apart, long long m) {
  const long long each = chunk(m), first = blockIdx.x * each;
  const long long last = first + each < m ? first + each : m;
  const double middle = sorted[m / 2];
  Whole zero = 0, one = 0;  // above this block
  for (long long i = blockIdx.x + threadIdx.x; i < gridDim.x; i += WIDE)
    zero += sums[2 * i], one += sums[2 * i + 1];
  zero = whole_over_block(zero) + added[m].zero;
  one = whole_over_block(one) + added[m].one;
  for (long long start = first; start < last; start += WIDE) {
    const long long i = start + threadIdx.x;
    Whole more_zero, more_one;
    const Whole above = zero - up_to(i < last ? added[i].zero : 0, &more_zero);
    const Whole turned = one - up_to(i < last ? added[i].one : 0, &more_one);
    if (i < last) {
      const double x = sorted[i] - middle, of = (double)above * (whole[0] / QUANTA);
      const double sum = (KNOT - x) * of + (double)turned * (whole[1] / QUANTA);
      const long long row = inner[order[i]];
      slopes[row] = SIGN * share[row * apart] * (-2.0 * SQUARE) * sum;
    }
    zero -= more_zero, one -= more_one;
  }
}
"""

"""Kernels for the root of a power price of the loss square (knot - r)_+^2, in CUDA C++.

With inner scores a in order, and running sums of their shares times 1, a and a^2, an outer row
looks up how many inner rows lie below its threshold, b + knot, and has its height from the sums up
to there (price). What it is worth it adds in one place (pull), and from running sums over the
places the inner rows have their slopes. Heights rise with the scores: the largest is that of the
highest outer row. All sums along the order are in whole quanta, of places about the median, so
that no order of adding up can change a bit.

A GPU adds some ten numbers in a nanosecond to places all over its memory. So outer rows are put
into buckets of neighbouring places first (tally, part), whose sums shared memory holds.

A block has some places side by side; it adds up what those before it have found by itself.
"""

from __future__ import annotations

SOURCE = r"""
#define PIVOTS 1024

struct __align__(32) Place { Whole zero, one, two; double at; };  // sums up to a place, and itself
struct Wholes { double zero, one, two; };                         // what so many quanta stand for
struct __align__(16) Pull { Whole zero, one; };
struct __align__(16) Held { double worth, score; };  // of an outer row: its price over its height
struct __align__(16) Bucket { int first, filled, share, none; };  // of its rows, and of shares

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
  zero = over_block(zero);
  one = over_block(one);
  two = over_block(two);
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
  zero = over_block(zero);
  one = over_block(one);
  two = over_block(two);
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
__device__ __forceinline__ int search(
    const double* sorted, int low, int high, double threshold) {
  while (low < high) {
    const int half = (int)(((unsigned)low + (unsigned)high) / 2);
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
  __shared__ int pivot_at[PIVOTS + 1];
  const Axis axis = *known;
  if (axis.sound == 0.0) return;
  const int many = m < PIVOTS ? (int)m : PIVOTS;
  for (int i = threadIdx.x; i <= many; i += WIDE) {
    pivot_at[i] = (int)(i * m / many);
    if (i < many) pivots[i] = sorted[pivot_at[i]];
  }
  __syncthreads();
  const Wholes whole = *wholes;
  const Wholes unit = {whole.zero / QUANTA, whole.one / QUANTA, whole.two / QUANTA};
  const double middle = sorted[m / 2], threshold = axis.top + KNOT, p = *power_at;
  Whole fewer = 0;  // the largest height, looked for by all threads
  {
    const int j = search(pivots, 0, many, threshold), first = j ? pivot_at[j - 1] : 0;
    for (int i = first + threadIdx.x; i < pivot_at[j]; i += WIDE) fewer += sorted[i] < threshold;
    fewer = first + over_block(fewer);
  }
  const double top = height_at(places, unit, fewer, threshold - middle).height;
  if (blockIdx.x == 0 && threadIdx.x == 0) *top_at = top;
  double powers = 0.0, all = 0.0, far = 0.0;
  for (long long i = (long long)blockIdx.x * WIDE + threadIdx.x; i < n;
       i += (long long)gridDim.x * WIDE) {
    const unsigned char own = side[i];
    if (own != OUTER) {
      if (own == 0) slopes[i] = 0.0;
      below_at[i] = -1;
      continue;
    }
    const double score = SIGN * scores[i], threshold = score + KNOT;
    const int j = search(pivots, 0, many, threshold);
    const int below = j ? search(sorted, pivot_at[j - 1] + 1, pivot_at[j], threshold) : 0;
    const Height at = height_at(places, unit, below, threshold - middle);
    double per_height = 0.0;
    if (at.height > 0.0 && top > 0.0) {
      const double power = power_of(at.height / top, p) * share[i * apart];
      per_height = power / at.height;
      powers += power;
      all += per_height;
      far += per_height * fabs(score - middle);
    }
    below_at[i] = per_height > 0.0 ? below : -1;  // else nothing is added
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

// How many outer rows each bucket has.
extern "C" __global__ void __launch_bounds__(PUTTING) tally(
    const int* __restrict__ below_at, const Axis* __restrict__ known, Whole* __restrict__ counts,
    long long buckets, long long n) {
  __shared__ int own[MOST_BUCKETS];
  if (known->sound == 0.0) return;
  for (int b = threadIdx.x; b < buckets; b += PUTTING) own[b] = 0;
  __syncthreads();
  for (long long i = (long long)blockIdx.x * PUTTING + threadIdx.x; i < n;
       i += (long long)gridDim.x * PUTTING) {
    const int below = below_at[i];
    if (below >= 0) atomicAdd(own + below / PLACES, 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < buckets; b += PUTTING)
    if (own[b]) atomicAdd((unsigned long long*)(counts + b), (unsigned long long)own[b]);
}

// Value, what slopes lack, and whether all of it is sound; sums of the prices over heights; where
// each bucket begins, and the first of the shares of it that blocks take.
extern "C" __global__ void __launch_bounds__(WIDE) total(
    const double* __restrict__ found, const double* __restrict__ power_at,
    const double* __restrict__ top_at, const Axis* __restrict__ known,
    const Wholes* __restrict__ wholes, const Whole* __restrict__ counts,
    double* __restrict__ facts, double* __restrict__ whole, Bucket* __restrict__ of,
    long long blocks, long long buckets) {
  // squares of scores may be no numbers where these are
  const bool sound = known->sound != 0.0 && wholes->zero + wholes->one + wholes->two < infinity();
  const Wholes sums = add_up(found, sound ? blocks : 0);
  if (threadIdx.x == 0) {
    const double top = sound ? *top_at : 0.0, powers = sums.zero;
    const double value = top > 0.0 ? top * exp(log(powers) / *power_at) : 0.0;
    whole[0] = sums.one, whole[1] = sums.two;
    facts[0] = value, facts[1] = top > 0.0 ? value / powers : 0.0, facts[2] = sound;
  }
  Whole rows = 0, shares = 0, more_rows, more_shares;
  for (int start = 0; start <= buckets; start += WIDE) {
    const int b = start + threadIdx.x;
    const Whole own = b < buckets ? counts[b] : 0, taken = (own + SHARE - 1) / SHARE;
    const Whole first = rows + up_to(own, &more_rows) - own;
    const Whole share = shares + up_to(taken, &more_shares) - taken;
    if (b <= buckets) of[b] = {(int)first, (int)first, (int)share, 0};
    rows += more_rows, shares += more_shares;
  }
}

// Put the outer rows into the buckets of their places.
extern "C" __global__ void __launch_bounds__(PUTTING) part(
    const double* __restrict__ scores, const double* __restrict__ heights,
    const int* __restrict__ below_at, const Axis* __restrict__ known, Bucket* __restrict__ of,
    Held* __restrict__ held, int* __restrict__ place_of, long long buckets, long long n) {
  __shared__ int next[MOST_BUCKETS];
  if (known->sound == 0.0) return;
  const long long each = chunk(n), first = blockIdx.x * each;
  const long long last = first + each < n ? first + each : n;
  for (int b = threadIdx.x; b < buckets; b += PUTTING) next[b] = 0;
  __syncthreads();
  for (long long i = first + threadIdx.x; i < last; i += PUTTING) {
    const int below = below_at[i];
    if (below >= 0) atomicAdd(next + below / PLACES, 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < buckets; b += PUTTING)
    if (next[b]) next[b] = atomicAdd(&of[b].filled, next[b]);
  __syncthreads();
  for (long long i = first + threadIdx.x; i < last; i += PUTTING) {
    const int below = below_at[i];
    if (below < 0) continue;
    const int to = atomicAdd(next + below / PLACES, 1);
    held[to] = {heights[i], SIGN * scores[i]};
    place_of[to] = below % PLACES;
  }
}

// Sums of 64 bits in shared memory, in two halves apart: neighbours have banks of their own.
struct Halves {
  unsigned low[PLACES], high[PLACES];
  __device__ __forceinline__ void add(int at, Whole v) {
    const unsigned lower = (unsigned)v, before = atomicAdd(low + at, lower);
    const unsigned upper = (unsigned)(v >> 32) + (before + lower < lower);  // and the carry
    if (upper) atomicAdd(high + at, upper);
  }
  __device__ __forceinline__ Whole sum(int at) const {
    return (Whole)((unsigned long long)high[at] << 32 | low[at]);
  }
};

// What the outer rows of each bucket add for the inner rows below their thresholds.
extern "C" __global__ void __launch_bounds__(PULLING) pull(
    const Held* __restrict__ held, const int* __restrict__ place_of,
    const Bucket* __restrict__ of, const double* __restrict__ sorted,
    const double* __restrict__ whole, const Axis* __restrict__ known, Pull* __restrict__ added,
    long long buckets, long long m) {
  __shared__ Halves zeros, ones;
  if (known->sound == 0.0) return;
  const int number = blockIdx.x;
  if (number >= of[buckets].share) return;
  int bucket = 0;
  for (int high = (int)buckets; high - bucket > 1;) {  // the last whose shares begin here or before
    const int half = (bucket + high) / 2;
    if (of[half].share <= number) bucket = half;
    else high = half;
  }
  const Bucket own = of[bucket], next = of[bucket + 1];
  const int shares = next.share - own.share, each = (next.first - own.first + shares - 1) / shares;
  const int first = own.first + (number - own.share) * each;
  const int last = first + each < next.first ? first + each : next.first;
  for (int j = threadIdx.x; j < PLACES; j += PULLING)
    zeros.low[j] = zeros.high[j] = ones.low[j] = ones.high[j] = 0;
  __syncthreads();
  const double middle = sorted[m / 2], of_zero = per(whole[0]), of_one = per(whole[1]);
  for (int i = first + threadIdx.x; i < last; i += PULLING) {
    const Held row = held[i];
    const int at = place_of[i];
    zeros.add(at, __double2ll_rn(row.worth * of_zero));
    ones.add(at, __double2ll_rn(row.worth * (row.score - middle) * of_one));
  }
  __syncthreads();
  Pull* to = added + (long long)bucket * PLACES;
  for (int j = threadIdx.x; j < PLACES; j += PULLING) {
    const Whole zero = zeros.sum(j), one = ones.sum(j);
    if (!(zero | one)) continue;
    if (shares == 1) {
      to[j] = {zero, one};
      continue;
    }
    atomicAdd((unsigned long long*)&to[j].zero, (unsigned long long)zero);
    atomicAdd((unsigned long long*)&to[j].one, (unsigned long long)one);
  }
}

extern "C" __global__ void __launch_bounds__(WIDE) pulled(
    const Pull* __restrict__ added, Whole* __restrict__ sums, long long m) {
  const long long each = chunk(m), first = blockIdx.x * each;
  const long long last = first + each < m ? first + each : m;
  Whole zero = 0, one = 0;
  for (long long i = first + threadIdx.x; i < last; i += WIDE)
    zero += added[i].zero, one += added[i].one;
  zero = over_block(zero);
  one = over_block(one);
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
  zero = over_block(zero) + added[m].zero;
  one = over_block(one) + added[m].one;
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

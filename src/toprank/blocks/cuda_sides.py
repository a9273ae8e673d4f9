"""What the kernels for the two sides of an objective in scores share, in CUDA C++.

Scores lie on an axis between the lowest and the highest of them. Sums over blocks of threads are
taken in a fixed order.
"""

from __future__ import annotations

SOURCE = r"""
#define INNER 1
#define OUTER 2
#define ALL 0xffffffffu
#define WIDE 256  // threads of the kernels that need no table per warp
typedef long long Whole;

// What is known of the axis and of the rows as a whole.
struct Axis { double low, top, boxes, sound; };  // top: of the outer rows

__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }

// x to the power p, for x above zero; by products where p is a whole number.
__device__ __forceinline__ double power_of(double x, double p) {
  if (p != floor(p) || p > 64.0) return exp(p * log(x));
  double found = 1.0;
  for (int left = (int)p; left; left /= 2, x *= x)
    if (left % 2) found *= x;
  return found;
}

// Sum of a number over the threads of a block of 256, in a fixed order; all threads get it.
template <typename Number> __device__ Number over_block(Number v) {
  __shared__ Number of_warp[WIDE / 32];
  for (int apart = 16; apart > 0; apart /= 2) v += __shfl_xor_sync(ALL, v, apart);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (int w = 0; w < WIDE / 32; w++) v += of_warp[w];
  return v;
}

// The largest of a number over a block of 256.
__device__ double largest(double v) {
  __shared__ double of_warp[WIDE / 32];
  for (int apart = 16; apart > 0; apart /= 2) v = fmax(v, __shfl_xor_sync(ALL, v, apart));
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  for (int w = 0; w < WIDE / 32; w++) v = fmax(v, of_warp[w]);
  return v;
}

// Lowest and highest score, that of the outer rows, and whether one is no number, for each block;
// and sums to be filled, which are empty.
extern "C" __global__ void __launch_bounds__(WIDE) ends(
    const double* __restrict__ scores, const unsigned char* __restrict__ side,
    double* __restrict__ found, Whole* __restrict__ sums, long long n, long long clear) {
  double low = -infinity(), high = low, top = low, odd = 0.0;  // low is turned round
  const long long step = (long long)gridDim.x * WIDE, first = blockIdx.x * WIDE + threadIdx.x;
  for (long long i = first; i < clear; i += step) sums[i] = 0;
  for (long long i = first; i < n; i += step) {
    const unsigned char own = side[i];
    const double score = SIGN * scores[i];
    if (!own) continue;
    if (!(fabs(score) < infinity())) odd = 1.0;
    low = fmax(low, -score);
    high = fmax(high, score);
    if (own == OUTER) top = fmax(top, score);
  }
  low = largest(low);
  high = largest(high);
  top = largest(top);
  odd = largest(odd);
  if (threadIdx.x == 0) {
    double* at = found + 4 * blockIdx.x;
    at[0] = low, at[1] = high, at[2] = top, at[3] = odd;
  }
}

// The axis, from what the blocks have found.
extern "C" __global__ void __launch_bounds__(WIDE) lay(
    const double* __restrict__ found, Axis* __restrict__ axis, long long blocks) {
  double low = -infinity(), high = low, top = low, odd = 0.0;
  for (long long i = threadIdx.x; i < blocks; i += WIDE) {
    low = fmax(low, found[4 * i]);
    high = fmax(high, found[4 * i + 1]);
    top = fmax(top, found[4 * i + 2]);
    odd = fmax(odd, found[4 * i + 3]);
  }
  low = -largest(low);
  high = largest(high);
  top = largest(top);
  odd = largest(odd);
  if (threadIdx.x == 0) {
    const double last = floor((high - low) / BOX);
    const bool sound = odd == 0.0 && last < MOST_BOXES;
    *axis = {low, top, sound ? last + 1.0 : 0.0, sound ? 1.0 : 0.0};
  }
}
"""

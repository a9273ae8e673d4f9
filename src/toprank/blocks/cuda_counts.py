"""A histogram of scores in shared memory, in CUDA C++.

Weights are counted in whole quanta, so that no order of adding up can change a bit. Each block
leaves a histogram of its own.
"""

from __future__ import annotations

SOURCE = r"""
typedef unsigned long long Whole;

extern "C" __global__ void __launch_bounds__(THREADS) count(
    const double* __restrict__ scores, const unsigned char* __restrict__ kind,
    const double* __restrict__ weight, const double* __restrict__ about,
    Whole* __restrict__ counts, long long n) {
  extern __shared__ Whole own[];  // weights of both classes, then distances from the bins' centres
  for (int i = threadIdx.x; i <= 4 * BINS; i += THREADS) own[i] = 0;
  __syncthreads();
  const double shift = about[0], spread = about[1], per_spread = about[2], quanta = about[3];
  const long long step = (long long)gridDim.x * THREADS;
  Whole beyond = 0;
#pragma unroll 4
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) {
    const double place = (scores[i] + shift) / spread * per_spread + BINS / 2;
    if (place > 0.0 && place < BINS) {
      const double held = WEIGHTED ? quanta * weight[i] : quanta;
      const int bin = (int)place;
      const Whole offset = (Whole)(long long)(held * (place - bin - 0.5));
      Whole* at = own + bin + (kind[i] ? BINS : 0);
      atomicAdd(at, (Whole)(long long)held);
      atomicAdd(at + 2 * BINS, offset);
    } else {
      beyond++;
    }
  }
  if (beyond) atomicAdd(own + 4 * BINS, beyond);
  __syncthreads();
  for (int i = threadIdx.x; i <= 4 * BINS; i += THREADS)
    counts[(long long)blockIdx.x * (4 * BINS + 1) + i] = own[i];
}
"""

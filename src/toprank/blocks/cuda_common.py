"""What kernels that read a table once have in common, in CUDA C++: entries, powers of e, ends."""

from __future__ import annotations

#: Names of the entries' types in the source, their bytes, how one becomes a double, and how the
#: e-th of those in words w of 32 bits does.
TYPES = {
    "torch.float64": ("double", 8, "v", "__hiloint2double(w[2 * (e) + 1], w[2 * (e)])"),
    "torch.float32": ("float", 4, "(double)v", "((double)__uint_as_float(w[e]))"),
    "torch.float16": (
        "unsigned short",
        2,
        "from_half(v)",
        "from_half((unsigned short)(w[(e) / 2] >> 16 * ((e) % 2)))",
    ),
    "torch.bfloat16": (
        "unsigned short",
        2,
        "(double)__uint_as_float((unsigned)v << 16)",
        "((double)__uint_as_float((e) % 2 ? w[(e) / 2] & 0xffff0000u : w[(e) / 2] << 16))",
    ),
}

#: How the e-th entry of 16 bits, e odd, becomes a double by shifts alone, times 1 / SCALE^2, and
#: SCALE: its exponent is that of its type, counted from the smallest of a double. Infinities become
#: finite; the third is an infinite entry in the upper half of a word. Last comes the same of the
#: first entry of all.
SHIFTED = {
    "torch.bfloat16": (
        "__hiloint2double((int)w[(e) / 2] >> 3 & 0x8fffe000, 0)",
        "0x1p448",
        "0x7f800000u",
        "__hiloint2double((int)(w[0] << 16) >> 3 & 0x8fffe000, 0)",
    ),
    "torch.float16": (
        "__hiloint2double((int)w[(e) / 2] >> 6 & 0x81fffc00, 0)",
        "0x1p504",
        "0x7c000000u",
        "__hiloint2double((int)(w[0] << 16) >> 6 & 0x81fffc00, 0)",
    ),
}
NOT_SHIFTED = "UNPACK(w, e)", "1.0", "~0u", "UNPACK(w, 0)"

COMMON = r"""
typedef ENTRY Entry;
#define SIZE ((int)sizeof(Entry))

__device__ __forceinline__ double from_half(unsigned short v) {
  double out;
  asm("cvt.f64.f16 %0, %1;" : "=d"(out) : "h"(v));
  return out;
}

__device__ __forceinline__ double number(Entry v) { return TO_DOUBLE; }

// So many bytes of entries, as they lie.
template <int N> struct Raw { unsigned w[N >= 4 ? N / 4 : 1]; };

template <int N> __device__ __forceinline__ Raw<N> get(const char* at) {
  Raw<N> raw;
  raw.w[0] = N == 2 ? *(const unsigned short*)at : *(const unsigned*)at;
  return raw;
}

template <> __device__ __forceinline__ Raw<8> get<8>(const char* at) {
  const uint2 v = *(const uint2*)at;
  return {{v.x, v.y}};
}

template <> __device__ __forceinline__ Raw<16> get<16>(const char* at) {
  const uint4 v = *(const uint4*)at;
  return {{v.x, v.y, v.z, v.w}};
}

// e^t within an ulp or two, without branches, so that those of several rows are found side by side:
// 1 / ln 2, -ln 2 in two parts, and a polynomial of e^r up to half of ln 2, the last power first.
__constant__ double OF_EXPONENTIAL[14] = {
    0x1.71547652b82fep0, -0x1.62e42fefa39efp-1, -0x1.abc9e3b39803fp-56, 0x1.af635e4f6b5eep-26,
    0x1.28b43a93fe57ap-22, 0x1.71ddf5514be0cp-19, 0x1.a01991731e6fap-16, 0x1.a01a01b150ad2p-13,
    0x1.6c16c1881156bp-10, 0x1.111111110f205p-7, 0x1.555555554f067p-5, 0x1.555555555555ap-3,
    0x1.0000000000011p-1, 1.0};

__device__ __forceinline__ double exponential(double t) {
  const double round = 0x1.8p52, *c = OF_EXPONENTIAL;
  const double shifted = fma(t, c[0], round), k = shifted - round;
  const double r = fma(k, c[2], fma(k, c[1], t));
  double p = c[3];
#pragma unroll
  for (int i = 4; i < 14; i++) p = fma(p, r, c[i]);
  p = fma(p, r, 1.0);
  const unsigned top = __double2hiint(t);
  const int high = __double2hiint(p) + (__double2loint(shifted) << 20);
  if ((top & 0x7fffffffu) < 0x40862000u) return __hiloint2double(high, __double2loint(p));
  // below -708 it is nothing; above 708, or not a number, no number: sums say so
  const bool low = top >= 0xc0862000u && top <= 0xfff00000u;
  return __hiloint2double(low ? 0 : 0x7ff80000, 0);
}
"""

FINISH = r"""
// Add up what the teams have, in a fixed order, and write it where the host reads it.
extern "C" __global__ void __launch_bounds__(1024) finish(
    const double* __restrict__ partials, double* __restrict__ total, long long teams) {
  __shared__ double sums[32][33];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int at = blockIdx.x * 32 + lane;
  double sum = 0.0, other = 0.0;
  if (at < 2 * (COLUMNS + 1)) {
    long long t = warp;
    for (; t + 32 < teams; t += 64) {
      sum += partials[t * 2 * (COLUMNS + 1) + at];
      other += partials[(t + 32) * 2 * (COLUMNS + 1) + at];
    }
    if (t < teams) sum += partials[t * 2 * (COLUMNS + 1) + at];
  }
  sums[warp][lane] = sum + other;
  __syncthreads();
  if (warp == 0 && at < 2 * (COLUMNS + 1)) {
    sum = 0.0;
    for (int w = 0; w < 32; w++) sum += sums[w][lane];
    total[at] = sum;
  }
}
"""

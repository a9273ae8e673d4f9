"""Numbers in the sources of kernels, checked without a GPU."""

import re

import numpy as np

from toprank.blocks.cuda_common import COMMON, SHIFTED


def test_the_polynomial_of_kernels_is_the_exponential():
    (listed,) = re.findall(r"OF_EXPONENTIAL\[14\] = \{(.*?)\};", COMMON, re.DOTALL)
    per_unit, high, low, *powers = (float.fromhex(one) for one in listed.split(","))
    assert len(powers) == 11
    t = np.linspace(-700.0, 700.0, 100_001)
    k = np.round(t * per_unit)
    # kernels multiply and add without rounding between; so does a longer type
    r = (t + k.astype(np.longdouble) * high + k * low).astype(np.float64)
    assert np.max(np.abs(r)) <= 0.3466
    found = np.polyval([*powers, 1.0], r)
    np.testing.assert_allclose(np.ldexp(found, k.astype(int)), np.exp(t), rtol=3e-14)
    np.testing.assert_allclose(found, np.exp(r), rtol=1e-15)


def test_entries_of_16_bits_are_shifted_to_numbers_that_stand_for_them():
    bits = np.arange(1 << 16, dtype=np.uint32) << 16
    for kind, (upper, scale, infinite, lower) in SHIFTED.items():
        ((right, mask),) = set(re.findall(r">> (\d) & (0x\w+)", upper + lower))
        assert "w[(e) / 2] >>" in upper and "(w[0] << 16) >>" in lower
        high = (bits.view(np.int32) >> int(right)).view(np.uint32) & np.uint32(int(mask, 16))
        made = (high.astype(np.uint64) << 32).view(np.float64) * float.fromhex(scale)
        with np.errstate(invalid="ignore"):  # of those that are no numbers
            if kind == "torch.bfloat16":
                entries = bits.view(np.float32).astype(np.float64)
            else:
                entries = (bits >> 16).astype(np.uint16).view(np.float16).astype(np.float64)
        finite = (bits & 0x7FFFFFFF) < int(infinite.rstrip("u"), 16)
        assert np.array_equal(finite, np.isfinite(entries))
        np.testing.assert_array_equal(made[finite] * float.fromhex(scale), entries[finite])

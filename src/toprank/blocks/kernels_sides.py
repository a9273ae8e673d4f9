"""What the kernels for the two sides of an objective in scores share, on a GPU.

Each kernel reads the scores of all rows where they lie and works on the rows of one side: 1 for the
inner rows, 2 for the outer ones, 0 for those that are absent.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from triton import JITFunction

#: Rows of a program, and its warps.
_ROWS = 1024
_WARPS = 4
#: The numbers of the sides.
INNER, OUTER = 1, 2


@cache
def _ends() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def ends(  # type: ignore[no-untyped-def]
        scores_at, side_at, out_at, n, sign: tl.constexpr, rows: tl.constexpr
    ):
        number = tl.program_id(0)
        place = number.to(tl.int64) * rows + tl.arange(0, rows)
        there = place < n
        side = tl.load(side_at + place, mask=there, other=0)
        score = sign * tl.load(scores_at + place, mask=there, other=0.0)
        at = out_at + number * 5
        for which in tl.static_range(2):
            member = side == which + 1
            tl.store(at + 2 * which, tl.min(tl.where(member, score, float("inf")), 0))
            tl.store(at + 2 * which + 1, tl.min(tl.where(member, -score, float("inf")), 0))
        no_number = (side > 0) & (score != score)
        tl.store(at + 4, -tl.max(no_number.to(tl.float64), 0))

    return ends


@cache
def _price() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def price(  # type: ignore[no-untyped-def]
        scores_at, side_at, share_at, apart, numbers_at, middle_at, largest_at, height_at, sums_at,
        n, sign: tl.constexpr, rows: tl.constexpr,
    ):  # fmt: skip
        number = tl.program_id(0)
        place = number.to(tl.int64) * rows + tl.arange(0, rows)
        there = place < n
        member = tl.load(side_at + place, mask=there, other=0) == 2
        height = tl.load(height_at + place, mask=member, other=0.0)
        score = sign * tl.load(scores_at + place, mask=member, other=0.0) - tl.load(middle_at)
        some = member & (height > 0.0)
        relative = tl.where(some, height, 1.0) / tl.load(largest_at)
        power = tl.exp(tl.load(numbers_at) * tl.log(relative))
        power *= tl.load(share_at + place * apart, mask=member, other=0.0)
        power = tl.where(some, power, 0.0)
        per_height = power / tl.where(some, height, 1.0)
        tl.store(height_at + place, per_height, mask=member)
        tl.store(sums_at + 3 * number, tl.sum(power, 0))
        tl.store(sums_at + 3 * number + 1, tl.sum(per_height, 0))
        tl.store(sums_at + 3 * number + 2, tl.sum(per_height * tl.abs(score), 0))

    return price


class SideKernels:
    """The kernels for the scores of some rows.

    Parameters
    ----------
    side : uint8 tensor of shape (n,)
        The side of each row.
    inner_share, outer_share : float64 tensors of shape (n,) or (1,)
        The share of each row in its side, or of all of them.
    sign : int
        1, or -1 where scores are turned round.
    """

    def __init__(self, side: Tensor, inner_share: Tensor, outer_share: Tensor, sign: int):
        self.torch = importlib.import_module("torch")
        self.side, self.sign, self.n = side, sign, len(side)
        self.inner_share, self.outer_share = inner_share, outer_share
        #: Heights of the outer rows, then their prices over the heights.
        self.heights = self._empty(self.n)
        self._largest = self._empty(self._programs(self.n))

    def _empty(self, *shape: int) -> Tensor:
        empty: Tensor = self.torch.empty(shape, dtype=self.torch.float64, device=self.side.device)
        return empty

    @staticmethod
    def _programs(n: int) -> int:
        return -(-n // _ROWS)

    def _start(self, kernel: JITFunction, *given: object, n: int, **constants: object) -> None:
        """Start a kernel with a program for so many of the n rows, which come last."""
        with self.torch.cuda.device(self.side.device):
            kernel[(self._programs(n),)](*given, n, **constants, rows=_ROWS, num_warps=_WARPS)

    @staticmethod
    def _apart(share: Tensor) -> int:
        return int(len(share) > 1)

    def ends(self, scores: Tensor) -> Tensor:
        """Lowest score and lowest of those turned round, inner and outer; 0 if none is NaN."""
        out = self._empty(self._programs(self.n), 5)
        self._start(_ends(), scores, self.side, out, n=self.n, sign=self.sign)
        return out.amin(0)

    def price(self, scores: Tensor, power: Tensor, middle: Tensor) -> Tensor:
        """Return the largest height, and sums relative to it over the outer rows.

        They are those of the prices, of prices over heights, and of prices over heights times the
        distances of the scores from a middle. The prices over the heights replace the heights.
        """
        sums, share = self._empty(len(self._largest), 3), self.outer_share
        top = self._largest.amax(0, keepdim=True)
        self._start(
            _price(), scores, self.side, share, self._apart(share), power, middle, top,
            self.heights, sums, n=self.n, sign=self.sign,
        )  # fmt: skip
        found: Tensor = self.torch.cat([top, sums.sum(0)])
        return found

"""The root of a power price of the logistic loss or the squared hinge, on an NVIDIA GPU, in one go.

The kernels of `toprank.blocks.cuda_boxes` and `toprank.blocks.cuda_squares`, compiled by NVRTC as
those of `toprank.blocks.kernels_cuda` are, and started one after the other through CUDA's driver:
that takes the host some fifty microseconds, and it waits for nothing.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toprank.blocks import cuda_boxes, cuda_sides, cuda_squares
from toprank.blocks.cuda_binaries import Loaded, load_kernels
from toprank.blocks.kernels_cuda import Pointer, arguments, start_kernel

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Threads of a block, and how many of these blocks a multiprocessor holds.
WIDE, _HELD = 256, 8
#: Warps of a block that has a table for each of them, and how many of these it holds.
_WARPS, _SPREADING = 4, 5
#: Places of a bucket, the most buckets, and rows of one that a block adds up.
_PLACES, _MOST_BUCKETS, _SHARE = 2048, 8192, 1 << 15
#: Threads of blocks that put rows into buckets, and how many of these a multiprocessor holds; and
#: threads of blocks that add up a bucket.
_PUTTING, _PUTTERS, _PULLING = 1024, 2, 512
#: The same in the source of the squared hinge, whose axis may be any.
_IN_BUCKETS: dict[str, object] = {
    "BOX": "1.0",
    "MOST_BOXES": "infinity()",
    "PLACES": _PLACES,
    "MOST_BUCKETS": _MOST_BUCKETS,
    "SHARE": _SHARE,
    "PUTTING": _PUTTING,
    "PULLING": _PULLING,
}


@dataclass(frozen=True)
class Launch:
    """A kernel to start: its blocks and threads, its arguments, and which of them are scores."""

    function: object
    shape: tuple[int, int]
    places: object
    held: object  # what the arguments point to
    of_scores: Sequence[Pointer]


_COMPILED: dict[tuple[object, ...], Loaded | None] = {}


def kernels_of(
    device: torch.device, source: str, names: Sequence[str], defined: Mapping[str, object]
) -> Loaded | None:
    """The kernels of a source, compiled once; None where torch cannot compile them."""
    torch = importlib.import_module("torch")
    key = device.index, source, *defined.items()
    if torch.version.cuda is None:
        return None
    if key not in _COMPILED:
        try:
            lines = [f"#define {name} {value}" for name, value in defined.items()]
            with torch.cuda.device(device):
                _COMPILED[key] = load_kernels("\n".join([*lines, source]), names)
        except (ImportError, RuntimeError, OSError, AttributeError, TypeError, KeyError):
            _COMPILED[key] = None
    return _COMPILED[key]


class Chain(ABC):
    """F and its slopes in the scores of rows, by kernels that are started one after the other.

    Parameters
    ----------
    side : uint8 tensor of shape (n,)
        1 for inner rows, 2 for outer ones, 0 for those that are absent.
    shares : two float64 tensors of shape (n,) or (1,)
        The share of each inner row and of each outer row in its side, or of all of them.
    heights : float64 tensor of shape (n,)
        Room for what the outer rows are worth.
    p : float
        The power of the price.
    defined : dict
        Names in the source and what they stand for: SIGN of the scores, QUANTA of sums, and more.
    """

    source: str
    names: tuple[str, ...]

    def __init__(
        self,
        side: Tensor,
        shares: tuple[Tensor, Tensor],
        heights: Tensor,
        p: float,
        defined: Mapping[str, object],
    ):
        torch = importlib.import_module("torch")
        self.torch, self.device, self.n = torch, side.device, len(side)
        self.side, self.shares, self.heights = side, shares, heights
        self.apart = int(len(shares[0]) > 1), int(len(shares[1]) > 1)
        source = cuda_sides.SOURCE + self.source
        self.kernels = kernels_of(side.device, source, self.names, defined)
        if self.kernels is not None:
            self.power, self.slopes = self._real(1).fill_(p), self._real(self.n)
            #: The value, what all slopes are to be multiplied by, and whether they are sound.
            self.facts = self._real(3)
            self.many = self._blocks(self.n)

    def _real(self, size: int) -> Tensor:
        real: Tensor = self.torch.empty(size, dtype=self.torch.float64, device=self.device)
        return real

    def _whole(self, size: int) -> Tensor:
        whole: Tensor = self.torch.empty(size, dtype=self.torch.int64, device=self.device)
        return whole

    def _blocks(self, rows: int, each: int = WIDE, held: int = _HELD) -> int:
        """Blocks for so many rows: no more than a GPU holds."""
        facts = self.torch.cuda.get_device_properties(self.device)
        return int(min(held * facts.multi_processor_count, -(-rows // each)))

    def _launch(
        self, name: str, shape: tuple[int, int], tensors: Sequence[Tensor | None], *numbers: int
    ) -> Launch:
        """What starts a kernel with so many blocks and threads; None stands for the scores."""
        assert self.kernels is not None
        pointers = [0 if tensor is None else tensor.data_ptr() for tensor in tensors]
        places, values = arguments(pointers, numbers)
        of_scores = [value for value, of in zip(values, tensors, strict=False) if of is None]
        held = [values, tensors]
        return Launch(self.kernels.functions[name], shape, places, held, of_scores)

    def _start(self, launches: Sequence[Launch], scores: Tensor) -> None:
        assert self.kernels is not None
        for launch in launches:
            for value in launch.of_scores:
                value.value = scores.data_ptr()
            shape, index = (*launch.shape, 0), self.device.index
            start_kernel(self.kernels.driver, launch.function, shape, index, launch.places)

    def __call__(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return facts of F and its slopes in the scores, both overwritten by the next call.

        The facts are the value, what all slopes are to be multiplied by, and 1 where these scores
        are for this chain, else 0: then nothing else is sound.
        """
        with self.torch.cuda.device(self.device):
            self._run(scores)
        return self.facts, self.slopes

    @abstractmethod
    def _run(self, scores: Tensor) -> None:
        """Start the kernels."""


class BoxChain(Chain):
    """The same for a loss that is summed over boxes, where all of them are near each other.

    Parameters
    ----------
    near : float64 tensor of shape (2, 2 m + 1, terms, terms)
        What a moment of a box adds to the series of sums of the loss, and of its slope, in a box
        -m to m boxes before it, in Chebyshev's polynomials.
    powers : float64 tensor of shape (terms, terms)
        The powers of x in each of these polynomials.
    defined : dict
        How wide a BOX is, too.
    """

    source = cuda_boxes.SOURCE
    names = (
        "ends", "lay", "spread_inner", "forward", "price", "total", "spread_outer", "backward",
        "slopes_of",
    )  # fmt: skip

    def __init__(
        self,
        side: Tensor,
        shares: tuple[Tensor, Tensor],
        heights: Tensor,
        p: float,
        defined: Mapping[str, object],
        near: Tensor,
        powers: Tensor,
    ):
        most, terms = near.shape[1] // 2, near.shape[2]
        own = {"MOST": most, "MOST_BOXES": most, "TERMS": terms, "WARPS": _WARPS}
        super().__init__(side, shares, heights, p, {**defined, **own})
        if self.kernels is None:
            return
        n, (inner, outer), (of_inner, of_outer), many = self.n, shares, self.apart, self.many
        table, spreading = most * terms, self._blocks(n, 32 * _WARPS, _SPREADING)
        axis, whole, rising, falling = map(self._real, (4, 2, 2 * table, table))
        ends, found, sums = self._real(4 * many), self._real(2 * many), self._whole(2 * table)
        rows, of_outer_rows, slopes, facts = (None, side), sums[table:], self.slopes, self.facts
        wide, narrow, one, small = (
            (many, WIDE),
            (spreading, 32 * _WARPS),
            (1, WIDE),
            (most, terms**2),
        )
        priced = outer, self.power, rising, axis, heights, slopes, found
        self._launches = [
            self._launch("ends", wide, (*rows, ends, sums), n, 2 * table),
            self._launch("lay", one, (ends, axis), many),
            self._launch("spread_inner", narrow, (*rows, inner, axis, sums), of_inner, n),
            self._launch("forward", small, (sums, near, powers, axis, rising)),
            self._launch("price", wide, (*rows, *priced), of_outer, n),
            self._launch("total", one, (found, self.power, rising, axis, facts, whole), many),
            self._launch("spread_outer", narrow, (*rows, heights, axis, of_outer_rows, whole), n),
            self._launch("backward", small, (of_outer_rows, near, powers, axis, whole, falling)),
            self._launch("slopes_of", wide, (*rows, inner, falling, axis, slopes), of_inner, n),
        ]

    def _run(self, scores: Tensor) -> None:
        self._start(self._launches, scores)


class SquareChain(Chain):
    """The same for the loss square (knot - r)_+^2.

    Parameters
    ----------
    inner : int64 tensor of shape (m,)
        The inner rows.
    below : int64 tensor of shape (n,)
        Room for places.
    defined : dict
        KNOT and SQUARE, too.
    """

    source = cuda_squares.SOURCE
    names = (
        "gather", "ends", "lay", "sizes", "count", "run", "price", "tally", "total", "part", "pull",
        "pulled", "slopes_of",
    )  # fmt: skip

    def __init__(
        self,
        side: Tensor,
        shares: tuple[Tensor, Tensor],
        heights: Tensor,
        p: float,
        defined: Mapping[str, object],
        inner: Tensor,
        below: Tensor,
    ):
        super().__init__(side, shares, heights, p, {**defined, **_IN_BUCKETS})
        n, m, (share, outer), (of_inner, of_outer) = self.n, len(inner), shares, self.apart
        buckets = m // _PLACES + 1
        if buckets > _MOST_BUCKETS or n >= 1 << 31:
            self.kernels = None
        if self.kernels is None:
            return
        many, few, power, (below, place_of) = self.many, self._blocks(m), self.power, _halves(below)
        axis, wholes, whole, top = map(self._real, (4, 3, 2, 1))
        ends, found, sizes, held = map(self._real, (4 * many, 3 * many, 3 * few, 2 * (n - m)))
        places, sums, pulled = map(self._whole, (4 * m, 3 * few, 2 * few))
        cleared, filled = map(self._whole, (2 * (m + 1) + buckets, 2 * (buckets + 1)))
        added, counts = cleared[: 2 * (m + 1)], cleared[2 * (m + 1) :]
        self.scored, self.sorted, self.order = self._real(m), self._real(m), self._whole(m)
        in_order = self.sorted, self.order, inner, share
        wide, narrow, one = (many, WIDE), (few, WIDE), (1, WIDE)
        putting = self._blocks(n, _PUTTING, _PUTTERS), _PUTTING
        pulling = buckets + (n - m) // _SHARE, _PULLING
        rows, slopes, facts = (None, side), self.slopes, self.facts
        known = power, self.sorted, places, wholes, axis
        written = below, heights, slopes, found, top
        summed = found, power, top, axis, wholes, counts, facts, whole, filled
        put = None, heights, below, axis, filled, held, place_of
        pulls = held, place_of, filled, self.sorted, whole, axis, added
        sloped = added, pulled, whole, slopes
        self._gather = [self._launch("gather", narrow, (None, inner, self.scored), m)]
        self._launches = [
            self._launch("ends", wide, (*rows, ends, cleared), n, len(cleared)),
            self._launch("lay", one, (ends, axis), many),
            self._launch("sizes", narrow, (*in_order, sizes), of_inner, m),
            self._launch("count", narrow, (*in_order, sizes, wholes, places, sums), of_inner, m),
            self._launch("run", narrow, (places, sums), m),
            self._launch("price", wide, (*rows, outer, *known, *written), of_outer, m, n),
            self._launch("tally", putting, (below, axis, counts), buckets, n),
            self._launch("total", one, summed, many, buckets),
            self._launch("part", putting, put, buckets, n),
            self._launch("pull", pulling, pulls, buckets, m),
            self._launch("pulled", narrow, (added, pulled), m),
            self._launch("slopes_of", narrow, (*in_order, *sloped), of_inner, m),
        ]

    def _run(self, scores: Tensor) -> None:
        self._start(self._gather, scores)
        self.torch.sort(self.scored, out=(self.sorted, self.order))
        self._start(self._launches, scores)


def _halves(room: Tensor) -> tuple[Tensor, Tensor]:
    """Room for two numbers of 32 bits in the place of each of 64 bits."""
    torch = importlib.import_module("torch")
    halves = room.view(torch.int32)
    return halves[: len(room)], halves[len(room) :]

"""One read of X on a GPU: Triton kernels that score a row and use it while they hold it.

A program walks over tiles of rows with as many running sums as a tile has rows: each place in
the tile keeps the sums of both classes for the rows it has seen, so that no thread waits for
another before the end. The arithmetic is float64: GPUs that have it in full hide it behind the
reading of X, and nothing of float32 rows is lost.

Weights e^t are taken relative to a top that need be known only roughly: float64 has room for
e^600 on either side of it, so that, unlike an online softmax, no sum is ever rescaled.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from toprank._numerics import FloatArray
from toprank.blocks.kernels_cuda import FusedReader, kernels_for

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from torch import Tensor
    from triton import JITFunction

    from toprank._arrays import FloatArray

#: Entries of a tile and warps that share it, where rows are scored and used, and where they are
#: only scored, or only summed, by the size of an entry; programs for each multiprocessor, and tiles
#: that a program asks for at once. Chosen on an H200, where their effect is a factor of two.
_BOTH = (1024, 4)
_SCORED = {2: (2048, 2), 4: (2048, 2), 8: (1024, 4)}
_SUMMED = {2: (2048, 2), 4: (2048, 4), 8: (1024, 4)}
_PROGRAMS = 16
_UNROLL = 2
#: The same of tables by columns: rows and columns of a tile that is scored, where each thread takes
#: the 16 bytes that it reads at once and shares no row with others, and of one that is summed.
_SCORED_BY_COLUMN = {2: (1024, 4), 4: (512, 8), 8: (256, 8)}
_SUMMED_BY_COLUMN = (512, 8)
_WARPS_BY_COLUMN = 4
#: Rows that one launch may number with 32 bits.
_LAUNCH_ROWS = 1 << 30
#: Copies of a histogram that programs share out among them, so that they do not queue for its bins.
_COPIES = 64


@cache
def _read() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")

    @triton.jit  # type: ignore[untyped-decorator]
    def read(  # type: ignore[no-untyped-def]
        X_at, stride: tl.constexpr, across, units_at, rows, there, column, inside,
        centred: tl.constexpr,
    ):  # fmt: skip
        """A tile of rows in float64, in its units; zero beyond the edges."""
        mask = there[:, None] & inside[None, :]
        step = column[None, :].to(tl.int64) * across
        x = tl.load(X_at + rows[:, None] * stride + step, mask=mask, other=0.0)
        x = x.to(tl.float64)
        if centred:
            x -= tl.load(units_at + column)[None, :]
        return x

    return read


@cache
def _tilted() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    read = _read()

    @triton.jit  # type: ignore[untyped-decorator]
    def tilted(  # type: ignore[no-untyped-def]
        X_at, stride: tl.constexpr, across, kind_at, log_weight_at, beta_at, units_at, about_at,
        out_at, n, d: tl.constexpr,
        weighted: tl.constexpr, unroll: tl.constexpr, centred: tl.constexpr,
        height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        number = tl.program_id(0)
        slot = tl.arange(0, height)
        column = tl.arange(0, width)
        inside = column < d
        beta = tl.load(beta_at + column, mask=inside, other=0.0)
        of_pos, of_neg = tl.load(about_at), tl.load(about_at + 1)
        pos_top, neg_top = tl.load(about_at + 2), tl.load(about_at + 3)
        pos_mass = tl.zeros((height,), tl.float64)
        neg_mass = tl.zeros((height,), tl.float64)
        pos_moment = tl.zeros((height, width), tl.float64)
        neg_moment = tl.zeros((height, width), tl.float64)
        step = tl.num_programs(0) * height * unroll
        for start in range(number * height * unroll, n, step):
            for part in tl.static_range(unroll):
                rows = (start + part * height + slot).to(tl.int64)
                there = rows < n
                x = read(X_at, stride, across, units_at, rows, there, column, inside, centred)
                is_pos = tl.load(kind_at + rows, mask=there, other=0) != 0
                t = tl.sum(x * beta[None, :], 1) * tl.where(is_pos, of_pos, of_neg)
                if weighted:
                    t += tl.load(log_weight_at + rows, mask=there, other=0.0)
                t = tl.where(there, t, float("-inf"))
                weight = tl.exp(t - tl.where(is_pos, pos_top, neg_top))
                pos_weight = tl.where(is_pos, weight, 0.0)
                neg_weight = tl.where(is_pos, 0.0, weight)
                pos_mass += pos_weight
                neg_mass += neg_weight
                pos_moment += pos_weight[:, None] * x
                neg_moment += neg_weight[:, None] * x
        at = out_at + number * 2 * (width + 1)
        tl.store(at, tl.sum(pos_mass, 0))
        tl.store(at + 1 + column, tl.sum(pos_moment, 0))
        at += width + 1
        tl.store(at, tl.sum(neg_mass, 0))
        tl.store(at + 1 + column, tl.sum(neg_moment, 0))

    return tilted


@cache
def _score() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    read = _read()

    @triton.jit  # type: ignore[untyped-decorator]
    def score(  # type: ignore[no-untyped-def]
        X_at, stride: tl.constexpr, across, beta_at, units_at, out_at, n, d: tl.constexpr,
        centred: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        column = tl.arange(0, width)
        inside = column < d
        rows = (tl.program_id(0) * height + tl.arange(0, height)).to(tl.int64)
        there = rows < n
        x = read(X_at, stride, across, units_at, rows, there, column, inside, centred)
        beta = tl.load(beta_at + column, mask=inside, other=0.0)
        tl.store(out_at + rows, tl.sum(x * beta[None, :], 1), mask=there)

    return score


@cache
def _score_by_column() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    read = _read()

    @triton.jit  # type: ignore[untyped-decorator]
    def score_by_column(  # type: ignore[no-untyped-def]
        X_at, across, beta_at, units_at, out_at, n, d: tl.constexpr,
        centred: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        rows = (tl.program_id(0) * height + tl.arange(0, height)).to(tl.int64)
        there = rows < n
        total = tl.zeros((height,), tl.float64)
        for first in range(0, d, width):
            column = first + tl.arange(0, width)
            inside = column < d
            x = read(X_at, 1, across, units_at, rows, there, column, inside, centred)
            beta = tl.load(beta_at + column, mask=inside, other=0.0)
            total += tl.sum(x * beta[None, :], 1)
        tl.store(out_at + rows, total, mask=there)

    return score_by_column


@cache
def _weigh_by_column() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    read = _read()

    @triton.jit  # type: ignore[untyped-decorator]
    def weigh_by_column(  # type: ignore[no-untyped-def]
        X_at, across, weight_at, units_at, out_at, n, d: tl.constexpr, padded: tl.constexpr,
        centred: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        # programs side by side read the same weights, which are in the cache then
        column = tl.program_id(0) * width + tl.arange(0, width)
        inside = column < d
        number = tl.program_id(1)
        total = tl.zeros((height, width), tl.float64)
        for start in range(number * height, n, tl.num_programs(1) * height):
            rows = (start + tl.arange(0, height)).to(tl.int64)
            there = rows < n
            x = read(X_at, 1, across, units_at, rows, there, column, inside, centred)
            total += tl.load(weight_at + rows, mask=there, other=0.0)[:, None] * x
        tl.store(out_at + number * padded + column, tl.sum(total, 0), mask=inside)

    return weigh_by_column


@cache
def _count() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    read = _read()

    @triton.jit  # type: ignore[untyped-decorator]
    def count(  # type: ignore[no-untyped-def]
        X_at, stride: tl.constexpr, across, kind_at, weight_at, beta_at, units_at, about_at,
        counts_at, n, d: tl.constexpr,
        bins: tl.constexpr, copies: tl.constexpr, weighted: tl.constexpr, centred: tl.constexpr,
        height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        number = tl.program_id(0)
        slot = tl.arange(0, height)
        column = tl.arange(0, width)
        inside = column < d
        beta = tl.load(beta_at + column, mask=inside, other=0.0)
        shift, spread = tl.load(about_at), tl.load(about_at + 1)
        per_spread, quanta = tl.load(about_at + 2), tl.load(about_at + 3)
        own_at = counts_at + (number % copies) * (4 * bins + 1)
        for start in range(number * height, n, tl.num_programs(0) * height):
            rows = (start + slot).to(tl.int64)
            there = rows < n
            x = read(X_at, stride, across, units_at, rows, there, column, inside, centred)
            is_pos = tl.load(kind_at + rows, mask=there, other=0) != 0
            u = (tl.sum(x * beta[None, :], 1) + shift) / spread
            place = u * per_spread + bins // 2
            within = there & (place > 0.0) & (place < bins)
            weight = tl.zeros((height,), tl.float64) + quanta
            if weighted:
                weight *= tl.load(weight_at + rows, mask=there, other=0.0)
            bin = tl.where(within, place, 0.0).to(tl.int64)
            offset = weight * (place - bin.to(tl.float64) - 0.5)
            bin += tl.where(is_pos, bins, 0)
            tl.atomic_add(own_at + bin, weight.to(tl.int64), mask=within, sem="relaxed")
            offset = tl.where(within, offset, 0.0).to(tl.int64)
            tl.atomic_add(own_at + 2 * bins + bin, offset, mask=within, sem="relaxed")
            beyond = tl.sum((there & (within == 0)).to(tl.int64), 0)
            if beyond > 0:
                tl.atomic_add(own_at + 4 * bins, beyond, sem="relaxed")

    return count


@cache
def _weigh() -> JITFunction:
    triton = importlib.import_module("triton")
    tl: Tensor = importlib.import_module("triton.language")
    read = _read()

    @triton.jit  # type: ignore[untyped-decorator]
    def weigh(  # type: ignore[no-untyped-def]
        X_at, stride: tl.constexpr, across, weight_at, units_at, out_at, n, d: tl.constexpr,
        unroll: tl.constexpr, centred: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    ):  # fmt: skip
        number = tl.program_id(0)
        slot = tl.arange(0, height)
        column = tl.arange(0, width)
        inside = column < d
        total = tl.zeros((height, width), tl.float64)
        step = tl.num_programs(0) * height * unroll
        for start in range(number * height * unroll, n, step):
            for part in tl.static_range(unroll):
                rows = (start + part * height + slot).to(tl.int64)
                there = rows < n
                x = read(X_at, stride, across, units_at, rows, there, column, inside, centred)
                weight = tl.load(weight_at + rows, mask=there, other=0.0)
                total += weight[:, None] * x
        tl.store(out_at + number * width + column, tl.sum(total, 0))

    return weigh


class Launch:
    """What every kernel is told of a matrix: its parts, its units, and the shape of a tile."""

    def __init__(self, X: Tensor, centre: Tensor | None):
        self.torch = importlib.import_module("torch")
        self.X = X
        n, self.d = X.shape
        self.width = max(2, 1 << (self.d - 1).bit_length())
        #: Whether the entries of a column lie side by side, and those of a row do not.
        self.by_column = X.stride(0) == 1 and X.stride(1) != 1 and self.d > 1
        self.centred = centre is not None
        self.centre = self._pad(centre)
        facts = self.torch.cuda.get_device_properties(X.device)
        self.most = _PROGRAMS * facts.multi_processor_count
        cuts = range(0, n, _LAUNCH_ROWS)
        self.parts = [slice(first, min(first + _LAUNCH_ROWS, n)) for first in cuts]

    def _pad(self, centre: Tensor | None) -> Tensor:
        """The centre, zero beyond the columns."""
        padded = self.torch.zeros(self.width, dtype=self.torch.float64, device=self.X.device)
        if centre is not None:
            padded[: self.d] = centre
        return padded

    def numbers(self, *values: float) -> Tensor:
        """Numbers for a kernel, as float64: as plain arguments they would be float32."""
        here = self.torch.tensor(values, dtype=self.torch.float64)
        return here.to(self.X.device, non_blocking=True)

    def height(self, tile: tuple[int, int]) -> int:
        """Rows of a tile."""
        return max(2, tile[0] // self.width)

    def built_for(self, tile: tuple[int, int]) -> dict[str, int]:
        """What a kernel is compiled for."""
        shape = {"height": self.height(tile), "width": self.width, "num_warps": tile[1]}
        return {"centred": self.centred, **shape}

    def shape_by_column(self, tile: tuple[int, int]) -> dict[str, int]:
        """The same of a kernel for tables by columns."""
        shape = {"height": tile[0], "width": tile[1], "num_warps": _WARPS_BY_COLUMN}
        return {"centred": self.centred, **shape}

    def room(self, programs: int) -> Tensor:
        """Room for a sum per column of so many programs."""
        shape = programs, self.width
        found: Tensor = self.torch.empty(shape, dtype=self.torch.float64, device=self.X.device)
        return found

    def programs(self, n: int, tile: tuple[int, int]) -> int:
        return int(min(self.most, -(-n // self.height(tile))))

    def on_its_device(self) -> AbstractContextManager[object]:
        return self.torch.cuda.device(self.X.device)


def tilted_reader(
    X: Tensor, positive: Tensor, log_weight: Tensor | None, centre: Tensor | None
) -> Callable[[FloatArray, tuple[float, ...], Tensor | None], FloatArray]:
    """Return a function of coefficients, and of the tilts and tops of (positives, negatives).

    It returns (mass, moment) of positives and negatives, relative to e^tops. Tops are about where
    the largest exponents of the two classes lie. A float64 vector, where it is given one, receives
    the scores of the rows.
    """
    torch = importlib.import_module("torch")
    kind = positive.view(torch.uint8)
    kernels = kernels_for(X, log_weight is not None, centre is not None)
    if kernels is not None:
        return FusedReader(X, kind, log_weight, centre, kernels)
    parts = [slice(first, first + _LAUNCH_ROWS) for first in range(0, len(X), _LAUNCH_ROWS)]

    def read(coef: FloatArray, about: tuple[float, ...], scores: Tensor | None) -> FloatArray:
        given = torch.from_numpy(np.concatenate([about, coef])).to(X.device)
        total = torch.zeros((2, len(coef) + 1), dtype=torch.float64, device=X.device)
        for rows in parts:
            logs = None if log_weight is None else log_weight[rows]
            total += _tilted_tiles(X[rows], kind[rows], logs, given[4:], centre, given[:4]).sum(0)
        if scores is not None:
            score_rows(Launch(X, centre), given[4:], scores)
        found: FloatArray = total.cpu().numpy()
        return found

    return read


def _tilted_tiles(
    X: Tensor,
    kind: Tensor,
    log_weight: Tensor | None,
    beta: Tensor,
    centre: Tensor | None,
    about: Tensor,
) -> Tensor:
    """Return the sums of each program of the Triton kernel, of shape (programs, 2, d + 1)."""
    launch, tilted = Launch(X, centre), _tilted()
    programs = launch.programs(len(X), _BOTH)
    shape = (programs, 2, launch.width + 1)
    out = launch.torch.empty(shape, dtype=launch.torch.float64, device=X.device)
    logs = beta if log_weight is None else log_weight
    with launch.on_its_device():
        tilted[(programs,)](
            X, *X.stride(), kind, logs, beta, launch.centre, about, out, len(X), launch.d,
            weighted=log_weight is not None, unroll=_UNROLL, **launch.built_for(_BOTH),
        )  # fmt: skip
    return out[:, :, : launch.d + 1]


def score_rows(launch: Launch, beta: Tensor, out: Tensor) -> None:
    """Write X @ beta into a float64 vector."""
    X, size = launch.X, launch.X.element_size()
    for rows in launch.parts:
        part = X[rows]
        told = beta, launch.centre, out[rows], len(part), launch.d
        with launch.on_its_device():
            if launch.by_column:
                shape = launch.shape_by_column(_SCORED_BY_COLUMN[size])
                programs = -(-len(part) // shape["height"])
                _score_by_column()[(programs,)](part, X.stride(1), *told, **shape)
            else:
                tile = _SCORED[size]
                programs = -(-len(part) // launch.height(tile))
                _score()[(programs,)](part, *X.stride(), *told, **launch.built_for(tile))


def weigh_rows(launch: Launch, weight: Tensor) -> Tensor:
    """Return X' times a float64 vector of one number per row, summed in a fixed order."""
    X, torch = launch.X, launch.torch
    sums = []
    for rows in launch.parts:
        part = X[rows]
        n = len(part)
        with launch.on_its_device():
            if launch.by_column:
                shape = launch.shape_by_column(_SUMMED_BY_COLUMN)
                beside = -(-launch.d // shape["width"])
                programs = max(1, min(launch.most // beside, -(-n // shape["height"])))
                out = launch.room(programs)
                told = weight[rows], launch.centre, out, n, launch.d
                _weigh_by_column()[(beside, programs)](
                    part, X.stride(1), *told, launch.width, **shape
                )
            else:
                tile = _SUMMED[X.element_size()]
                programs = launch.programs(n, tile)
                out = launch.room(programs)
                told = weight[rows], launch.centre, out, n, launch.d
                built_for = launch.built_for(tile)
                _weigh()[(programs,)](part, *X.stride(), *told, unroll=_UNROLL, **built_for)
        sums.append(out.sum(0))
    found: Tensor = torch.stack(sums).sum(0) if len(sums) > 1 else sums[0]
    return found[: launch.d]


def counted_scores(
    X: Tensor,
    positive: Tensor,
    weight: Tensor,
    beta: Tensor,
    centre: Tensor,
    standard: tuple[float, float],
    bins: int,
    per_spread: float,
    quanta: float,
) -> Tensor:
    """Count the scores in bins, in whole quanta of weight.

    ``standard`` is (shift, spread): u = (score + shift) / spread, and bin number
    u per_spread + bins / 2. The answer holds the weights of both classes, negatives first,
    their weighted distances from the bins' centres, and the number of rows beyond the bins.
    """
    launch, count = Launch(X, centre), _count()
    torch = launch.torch
    about = launch.numbers(*standard, per_spread, quanta)
    counts = torch.zeros((_COPIES, 4 * bins + 1), dtype=torch.int64, device=X.device)
    for rows in launch.parts:
        part = X[rows]
        kind = positive[rows].view(torch.uint8)
        weights = beta if weight is None else weight[rows]
        with launch.on_its_device():
            count[(launch.programs(len(part), _BOTH),)](
                part, *X.stride(), kind, weights, beta, launch.centre, about, counts, len(part),
                launch.d, bins=bins, copies=_COPIES, weighted=weight is not None,
                **launch.built_for(_BOTH),
            )  # fmt: skip
    return counts.sum(0)

"""The rows of one block with their labels and weights, ready for the sums of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toprank._lazy import cached_property
from toprank._numerics import FloatArray, log_of
from toprank.blocks.design import Design, Tile, design_of
from toprank.blocks.source import Block
from toprank.blocks.statistics import Units
from toprank.blocks.tensors import OnDevice, pinned_copy, unwrap
from toprank.objective.sums import (
    Classes,
    EndPartial,
    Mass,
    ScoreHistogram,
    Standard,
    Tilted,
    Tilts,
    empty_ends,
    tilted_weights,
)

if TYPE_CHECKING:
    from torch import Tensor

#: Weights, beside the largest, that single precision does not see.
_NOTHING_ROUGH = 1e-7
#: A score per row is kept where a row of a device takes so many times its bytes.
_SCORES_BESIDE = 8
#: Entries of X from which compiled kernels repay their loading time (benchmarks/speed.py kernels).
COMPILED_FROM = 20_000_000


@dataclass(frozen=True)
class View:
    """How the rows of every block are read; it travels with each sweep.

    ``classes`` are the two labels, the positive one last, or none where rows have no classes;
    ``class_weight`` multiplies the weights of (negatives, positives); ``entries`` is the size of
    the whole matrix, which decides whether compiled code is worth loading.
    """

    classes: np.ndarray
    class_weight: tuple[float, float] | None = None
    units: Units = field(default_factory=Units)
    entries: int = 0

    def same(self, other: View) -> bool:
        """Whether blocks opened for the other view can be used for this one."""
        return self is other or (
            np.array_equal(self.classes, other.classes)
            and self.class_weight == other.class_weight
            and self.units.same(other.units)
            and self.entries == other.entries
        )


def draw_by_weight(weight: FloatArray, n_rows: int) -> tuple[NDArray[np.intp], FloatArray]:
    """Return at most so many rows that stand for all by their weight, and how much each counts.

    A row that weighs as much as one drawn row stands for is taken as it is: its share is exact.
    The others are drawn at equal distances of their cumulated weight, and count alike.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.objective.labelled import draw_by_weight
    >>> rows, counts = draw_by_weight(np.array([1.0, 0.0, 3.5, 0.25, 0.25, 0.0]), 5)
    >>> rows.tolist(), counts.tolist()
    ([0, 2, 3], [1.0, 3.5, 0.5])
    """
    counts = weight * (n_rows / np.sum(weight))
    light = counts < (1.0 if len(weight) > n_rows else 0.0)
    mass = np.cumsum(np.where(light, counts, 0.0))
    n_light = int(np.ceil(mass[-1] - 1e-9))
    marks = mass[-1] * (np.arange(n_light) + 0.5) / max(n_light, 1)
    drawn = np.searchsorted(mass, marks)
    counts[light] = 0.0
    counts[drawn] = mass[-1] / max(n_light, 1)
    rows = np.flatnonzero(counts)
    return rows, counts[rows]


class OpenBlock:
    """The design of a block, its labels and its weights; weights include those of the classes.

    Coefficients and sums are float64 arrays of the host; scores, labels and weights lie beside
    the rows. The scores of the last pass are kept.
    """

    def __init__(self, block: Block, view: View):
        # without the cache that this object goes into: a circle would keep the rows in memory
        self.block = replace(block, cache={})
        self.view = view
        self.n_rows = block.n_rows
        self.design: Design = design_of(block.X, view.units)
        self._scores: Any = None
        self._scored_at: bytes | None = None
        self._every: dict[tuple[bool, int, int], Any] = {}
        self._tilted: Any = None
        self._curved: Any = None

    @cached_property
    def positive(self) -> Any:
        """Which rows are positive."""
        labels = self.design.vector(self.block.y)
        if self.design.place == "device" and _are_truths(self.block.y, self.view.classes):
            return labels
        return labels == self.view.classes[1]

    @cached_property
    def weight(self) -> Any:
        """The weights; None where all are one."""
        weight, of_class = self.block.weight, self.view.class_weight
        if weight is not None:
            weight = self.design.floats(weight)
        if of_class is None:
            return weight
        by_class = np.where(self.positive, of_class[1], of_class[0])
        return by_class if weight is None else by_class * weight

    @cached_property
    def log_weight(self) -> Any:
        return None if self.weight is None else log_of(self.weight)

    @cached_property
    def present(self) -> Any:
        """Which rows have a weight above zero."""
        positive = self.positive
        return positive | ~positive if self.weight is None else self.weight > 0

    @cached_property
    def classes(self) -> list[Classes]:
        """The rows of each tile by class."""
        rarer = 0 if 2 * int(np.sum(self.positive)) <= self.n_rows else 1
        logs = self.log_weight
        return [
            Classes(self.positive[rows], None if logs is None else logs[rows], rarer)
            for rows, _ in self.design.tiles()
        ]

    def scores(self, coef: FloatArray) -> Any:
        """Return X @ coef, without reading X again if the last pass was for this coef."""
        return self._scores if self._knows(coef) else self.design.scores(coef)

    def scored_tiles(self, coef: FloatArray) -> Iterator[tuple[slice, Tile, Any]]:
        """Yield (rows, tile, its scores) over all rows, and keep the scores."""
        if self._knows(coef):
            for rows, tile in self.design.tiles():
                yield rows, tile, self._scores[rows]
            return
        kept = self._scores_to_fill()
        for rows, tile in self.design.tiles():
            yield rows, tile, tile.score_into(coef, kept, rows)
        self._scored_at = coef.tobytes()

    def _knows(self, coef: FloatArray) -> bool:
        return self._scored_at == coef.tobytes()

    def sum_tilted(
        self, coef: FloatArray, tilts: Tilts, order: int = 1, *, keep: bool = False
    ) -> list[EndPartial]:
        """Return for each end the tilted sums of positives and negatives.

        ``order`` is 1 for masses and means, 2 for second moments too. Coefficients of shape
        (m, d) give the sums of as many settings, whose tilts are columns of shape (m, 1).
        ``keep`` asks for the scores to be kept where that costs little beside reading X.
        """
        if self.n_rows and coef.ndim == 1:
            if self.view.entries >= COMPILED_FROM and self.design.kernel == "numba":
                from toprank.objective.kernels_numba import MOST_SQUARED  # loads Numba

                if order == 1 or self.design.n_features <= MOST_SQUARED:
                    return self._sum_with_numba(coef, tilts, order)
            if order == 1 and self.design.kernel in ("triton", "stored"):
                if not (keep and self._scores_are_small) or self._knows(coef):
                    return self._fused.tilted_ends(coef, tilts)
                scores = self._scores_to_fill()
                ends = self._fused.tilted_ends(coef, tilts, scores.tensor)
                self._scored_at = coef.tobytes()
                return ends
        d = self.design.n_features
        if coef.ndim == 2:
            ends = empty_ends(d, tilts, order, len(coef))
            for (_, tile), classes in zip(self.design.tiles(), self.classes, strict=True):
                classes.add(ends, tile, tile.scores(coef), tilts)
            return ends
        ends = empty_ends(d, tilts, order)
        for (_, tile, scores), classes in zip(self.scored_tiles(coef), self.classes, strict=True):
            classes.add(ends, tile, scores, tilts)
        return ends

    @property
    def _scores_are_small(self) -> bool:
        """Whether the scores of a device's rows take little room and time beside the rows."""
        X = self.block.X
        dense = self.design.kernel == "triton"
        return dense and 8 * _SCORES_BESIDE <= self.design.n_features * X.dtype.itemsize

    def masses(self, coef: FloatArray, tilts: tuple[float, float]) -> tuple[Mass, Mass]:
        """Return the tilted masses of positives and negatives, and keep the weights of the rows."""
        scores = self.kept_scores(coef)
        weight, found = np.empty(self.n_rows), []
        for rows, tilt in zip(self._rows_by_class, tilts, strict=True):
            exponents = tilt * scores[rows]
            if self.log_weight is not None:
                exponents += self.log_weight[rows]
            mass = Mass(float(np.max(exponents, initial=-np.inf)))
            there = mass.top > -np.inf  # a row of this class that is present
            weight[rows] = tilted_weights(exponents, mass.top) if there else 0.0
            mass.mass = float(np.sum(exponents)) if there else 0.0
            found.append(mass)
        self._tilted = weight, (found[0].top, found[1].top)
        return found[0], found[1]

    def pull(self, totals: tuple[Mass, Mass]) -> FloatArray:
        """Return what the rows add to the negatives' tilted mean less the positives'.

        The weights are those of the last `masses`; ``totals`` are the masses of all blocks.
        """
        weight, tops = self._tilted
        for rows, top, total, sign in zip(
            self._rows_by_class, tops, totals, (-1.0, 1.0), strict=True
        ):
            weight[rows] *= sign * np.exp(top - total.top) / total.mass
        return self.design.adjoint(weight)

    def rough_moments(self, coef: FloatArray, tilts: tuple[float, float]) -> EndPartial:
        """Return tilted sums with second moments of single precision, for coordinates."""
        masses = self.masses(coef, tilts)
        design: Any = self.design  # of the host: rows that lie elsewhere have no sparse form
        weight, sums = self._tilted[0], []
        for rows, mass in zip(self._rows_by_class, masses, strict=True):
            part = Tilted.empty(self.design.n_features, order=2)
            part.top, part.mass = mass.top, mass.mass
            heavy = rows[weight[rows] > _NOTHING_ROUGH]
            if len(heavy):
                part.moment, part.second = design.rough_moments(heavy, weight[heavy])
            sums.append(part)
        return sums[0], sums[1]

    def start_tilted(
        self, coef: FloatArray, tilts: tuple[float, float], tops: tuple[float, float] | None
    ) -> bool:
        """Start on what `sum_tilted` will be asked for next, while the host goes on.

        Returns whether the scores of the rows will be there too.
        """
        if self.design.kernel != "triton":
            return False
        scores = self._scores_to_fill() if self._scores_are_small else None
        started: bool = self._fused.start_tilted(coef, tilts, tops, unwrap(scores))
        if started and scores is not None:
            self._scored_at = coef.tobytes()
        return started and scores is not None

    def start_curvature(
        self,
        coef: FloatArray,
        tilts: tuple[float, float],
        end: EndPartial,
        n_rows: int,
        penalty: FloatArray | float | None = None,
    ) -> None:
        """Start on what `curvature` will be asked for."""
        scores = unwrap(self.scores(coef) if coef.any() else self.design.empty())
        if not coef.any():
            scores.zero_()
        found = self._fused.curvature(scores, tilts, end, n_rows)
        if penalty is not None:
            found = self._fused.factored(found, penalty)
        self._curved = _asked(coef, tilts, n_rows, penalty), found

    def curvature(
        self,
        coef: FloatArray,
        tilts: tuple[float, float],
        end: EndPartial,
        n_rows: int,
        penalty: FloatArray | float | None = None,
    ) -> FloatArray:
        """Return sum_c |tilt_c| covariance of class c for rows of a device.

        From about so many rows of each class; ``end`` holds the masses and means of all. With a
        penalty, what `toprank.objective.device_sums.factored` makes of it.
        """
        if self._curved is None or self._curved[0] != _asked(coef, tilts, n_rows, penalty):
            self.start_curvature(coef, tilts, end, n_rows, penalty)
        (_, found), self._curved = self._curved, None
        return pinned_copy(found)

    def drawn_moments(
        self, coef: FloatArray, tilts: tuple[float, float], shares: tuple[float, float]
    ) -> EndPartial | None:
        """Return estimates of the tilted sums with second moments, from rows drawn by their weight.

        Of each class so many as ``shares`` says for each of its rows, at equal distances of the
        cumulated weight: no chance is in it, and rows that matter little are seldom read. None
        for rows of a device, which sum theirs in another way.
        """
        if self.design.place == "device":
            return None
        masses = self.masses(coef, tilts)
        design: Any = self.design
        weight, sums = self._tilted[0], []
        for rows, mass, share in zip(self._rows_by_class, masses, shares, strict=True):
            part = Tilted.empty(self.design.n_features, order=2)
            if mass.mass > 0:
                part.top, part.mass = mass.top, mass.mass
                drawn, counts = draw_by_weight(weight[rows], max(1, round(share * len(rows))))
                each = counts * (mass.mass / np.sum(counts))
                part.moment, part.second = design.scaled_moments(rows[drawn], each)
            sums.append(part)
        return sums[0], sums[1]

    @cached_property
    def _rows_by_class(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.flatnonzero(self.positive), np.flatnonzero(~self.positive)

    def kept_scores(self, coef: FloatArray) -> Any:
        """Return X @ coef, and keep it."""
        if not self._knows(coef):
            self.design.scores(coef, self._scores_to_fill())
            self._scored_at = coef.tobytes()
        return self._scores

    def _scores_to_fill(self) -> Any:
        self._scored_at = None
        if self._scores is None:
            self._scores = self.design.empty()
        return self._scores

    def _sum_with_numba(self, coef: FloatArray, tilts: Tilts, order: int) -> list[EndPartial]:
        from toprank.objective.kernels_numba import tilted_ends

        scores = self._scores_to_fill()
        ends = tilted_ends(self.block.X, self.positive, self.log_weight, coef, tilts, scores, order)
        self._scored_at = coef.tobytes()
        return ends

    @cached_property
    def _fused(self) -> Any:
        from toprank.objective.device_sums import FusedSums, StoredSums

        design: Any = self.design
        kind = StoredSums if design.kernel == "stored" else FusedSums
        return kind(design, unwrap(self.positive), unwrap(self.log_weight))

    def extremes(self, coef: FloatArray) -> tuple[float, float]:
        """Return the lowest score of a positive and the highest of a negative that is present."""
        scores = self.scores(coef)
        lowest = np.min(scores, where=self.positive & self.present, initial=np.inf)
        highest = np.max(scores, where=~self.positive & self.present, initial=-np.inf)
        return float(lowest), float(highest)

    def histogram(self, coef: FloatArray, shift: float, standard: Standard) -> ScoreHistogram:
        """Return the histogram of the scores X @ coef + shift."""
        if self.design.place == "device":
            from toprank.objective.device_sums import device_histogram

            vectors = (unwrap(self.positive), unwrap(self.weight))
            design: Any = self.design
            known = unwrap(self._scores) if self._knows(coef) else None
            return device_histogram(design, *vectors, coef, shift, standard, known)
        rows = self.scores(coef) + shift, self.positive, self.weight, standard
        if self.view.entries < COMPILED_FROM:
            return ScoreHistogram.of(*rows)
        from toprank.objective.kernels_numba import histogram_of

        return histogram_of(*rows)

    def labels(self) -> tuple[Any, Any]:
        """Return which rows are positive, and the weights if there are any."""
        return self.positive, self.weight

    def columns(self, first: int, last: int) -> FloatArray:
        """Return the dense columns first:last."""
        return self.design.columns(first, last)

    def take(self, rows: NDArray[np.intp]) -> Any:
        """Return some rows as a NumPy array or CSR matrix, raw."""
        return self.design.take(rows)

    def on_host(self, what: str, *arguments: object) -> Any:
        """Return what a method returns, as arrays of the host."""
        found, to_host = getattr(self, what)(*arguments), self.design.to_host
        return tuple(map(to_host, found)) if isinstance(found, tuple) else to_host(found)

    def _spaced(self, step: int, before: int) -> object:
        """Evenly spaced rows of weight above zero."""
        if self.weight is None:
            return self.design.vector(np.arange(-before % step, self.n_rows, step))
        return self.every(self.present, step, before)

    def every(self, members: Any, step: int, before: int) -> Any:
        """Rows of a kind at equal distances, counted on from the blocks before."""
        return np.flatnonzero(members)[-before % step :: step]

    def every_present(self, positives: bool, step: int, before: int) -> Any:
        """The same of one class, those of weight above zero; found once."""
        key = (positives, step, before)
        if key not in self._every:
            members = self.positive if positives else ~self.positive
            self._every[key] = self.every(members & self.present, step, before)
        return self._every[key]

    def thin(
        self,
        steps: tuple[int, int],
        before: tuple[int, int],
        stands_for: list[float],
        counts: tuple[int, int] | None = None,
    ) -> Block:
        """Return every so many rows of (negatives, positives), weighted to stand for all.

        ``counts`` are the numbers of rows of each class, where they are known.
        """
        rows = self._thinned(steps, before, counts)
        weight = np.where(self.positive[rows], stands_for[1], stands_for[0])
        if self.block.weight is not None:
            weight = weight * self.design.floats(self.block.weight)[rows]
        labels = self.design.vector(self.block.y)[rows]
        return Block(self.block.index, self.design.thin(rows), unwrap(labels), unwrap(weight))

    def _thinned(
        self, steps: tuple[int, int], before: tuple[int, int], counts: tuple[int, int] | None
    ) -> OnDevice | NDArray[np.intp]:
        """Every so many rows of (negatives, positives), in any order on a device."""
        if self.design.kernel == "triton" and counts is not None:
            from toprank.blocks.kernels_chosen import spaced_rows

            firsts = [-number % step for number, step in zip(before, steps, strict=True)]
            rows = spaced_rows(unwrap(self.positive), steps, firsts, counts)
            if rows is not None:
                return OnDevice(rows)
        members = (~self.positive, self.positive)
        kept = np.concatenate([self.every(members[c], steps[c], before[c]) for c in (0, 1)])
        # on a device any order is read as fast, and sorting takes time
        return kept if self.design.place == "device" else np.sort(kept)

    def spaced_rows(self, step: int, before: int) -> Any:
        """Return evenly spaced rows of weight above zero, raw, where they lie."""
        return self.design.thin(self._spaced(step, before))

    def spaced_scores(self, coef: FloatArray, step: int, before: int) -> FloatArray:
        """Return their scores, on the host; they are known if the last pass was for this coef."""
        known: FloatArray
        if self._knows(coef) and self.weight is None:
            known = self.design.to_host(self._scores[-before % step :: step])
            return known
        rows = self._spaced(step, before)
        if self._knows(coef):
            known = self.design.to_host(self._scores[rows])
            return known
        some = design_of(self.design.thin(rows), self.view.units)
        scores: FloatArray = some.to_host(some.scores(coef))
        return scores


def _are_truths(labels: Tensor, classes: np.ndarray) -> bool:
    """Whether labels of a device say themselves whether a row is positive."""
    truths = str(labels.dtype) == "torch.bool" and labels.is_contiguous()
    return truths and classes.dtype == bool and bool(classes[1])


def _asked(
    coef: FloatArray,
    tilts: tuple[float, float],
    n_rows: int,
    penalty: FloatArray | float | None,
) -> object:
    """What tells one question after the curvature from another."""
    added = None if penalty is None else np.asarray(penalty).tobytes()
    return coef.tobytes(), tilts, n_rows, added


def open_block(block: Block, view: View) -> OpenBlock:
    """Return the rows of a block as a sweep reads them, opened once if the block stays."""
    kept: OpenBlock | None = block.cache.get("open")
    if kept is None or not kept.view.same(view):
        kept = block.cache["open"] = OpenBlock(block, view)
    return kept

"""The ranked list of all rows of a block source, its metrics, and how exact they are.

Up to `EXACT_UP_TO` rows every score comes to the driver. Beyond, the first pass keeps the highest
rows one by one, down to a cut, and draws some scores; the second counts the rows below the cut in
bins whose edges are quantiles of the drawn scores. Rows of equal score and class are one row of
their summed weight. Which rows are kept, which bin a row falls in, and what a bin holds do not
depend on the order of the merges.

A bin is one tie. A metric rises, or falls, whenever a positive moves up past a negative; so its
value for the true scores lies between that with the positives of each bin above the negatives and
that with the negatives above. Where the two agree, as they do for a metric of the first rows, the
bins have no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from toprank._arrays import AnyArray
from toprank._numerics import FloatArray
from toprank.blocks import BlockSource
from toprank.metrics.metric import Metric, call_label
from toprank.metrics.order import RankedList
from toprank.metrics.registry import get_metric
from toprank.metrics.score_sketch import (
    Below,
    Highest,
    ScoreBins,
    Scored,
    bin_edges,
    draw_rate,
    highest,
)

#: Rows up to which every score is kept.
EXACT_UP_TO = 2_000_000
#: A bound below this share of a metric is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class BlockMetric:
    """A metric of the rows of a block source.

    Attributes
    ----------
    metric : str
        The call, such as ``precision_at(k=10)``.
    value : float
        The metric, rows of one bin counting as tied.
    low, high : float
        Between these lies the metric of the scores themselves.
    """

    metric: str
    value: float
    low: float
    high: float

    @property
    def bound(self) -> float:
        """How far the value may be from the metric of the scores themselves."""
        return max(0.0, self.high - self.value, self.value - self.low)

    @property
    def exact(self) -> bool:
        """Whether the value is that of the scores themselves, to rounding."""
        return self.bound <= _ROUNDING * max(abs(self.low), abs(self.high))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        how = "exact" if self.exact else f"within {self.bound:.2g}, by bins"
        return f"{self.metric} = {self.value:.4g} ({how})"


@dataclass(frozen=True)
class BlockList:
    """The ranked list of a block source, as weighted rows.

    ``y``, ``scores`` and ``weight`` go into every function of `toprank.metrics`:
    ``auc(found.y, found.scores, sample_weight=found.weight)``. `metric` does that and says how
    exact the answer is. Rows of equal score and class are one row of
    their summed weight, so that weights count independent rows.

    Attributes
    ----------
    classes : array of two labels
        The positive one last.
    top : ndarray of shape (3, m)
        Distinct scores from the highest down, with the weights of their positives and negatives.
    bins : ScoreBins
        The rows below those of ``top``; none if all scores were kept.
    n_rows : int
        Rows of weight above zero that the list stands for.
    """

    classes: np.ndarray
    top: FloatArray
    bins: ScoreBins
    n_rows: int

    @classmethod
    def of(
        cls,
        source: BlockSource,
        score: Callable[..., FloatArray],
        classes: AnyArray,
        n_rows: int,
        keep_top: int,
        bins: int,
    ) -> Self:
        """Rank the `n_rows` present rows of a source, whose labels are `classes`, where they lie.

        Up to `EXACT_UP_TO` rows all of them are kept, and beyond that the highest `keep_top`.
        """
        keep = n_rows if n_rows <= EXACT_UP_TO else int(keep_top)
        scored = Scored(score, classes)
        rate = 0.0 if keep == n_rows else draw_rate(n_rows, bins)
        head = source.map_reduce(Highest(scored, keep, rate), None)
        if head.bad is not None:
            raise ValueError(
                f"A score in {source.name_of(head.bad)} is not a finite number: the features there "
                "contain NaN, infinity or numbers near the largest float. Impute or drop such rows."
            )
        top = highest(head.parts, keep)
        below = ScoreBins.of((np.empty(0), np.empty(0, dtype=bool), np.empty(0)), np.empty(0))
        if np.sum(top[3]) < n_rows:
            cut = float(top[0, -1])
            edges = bin_edges(np.concatenate(head.drawn), cut, bins)
            below = source.map_reduce(Below(scored), (cut, edges))
        return cls(classes, top[:3], below.held(), n_rows)

    @property
    def exact(self) -> bool:
        """Whether every score was kept, so that every metric is exact."""
        return len(self.bins.low) == 0

    @property
    def note(self) -> str:
        """How the list was made."""
        if self.exact:
            return f"All {self.n_rows} scores were kept: metrics are exact."
        return (
            f"Of {self.n_rows} rows the highest were kept ({self.top.shape[1]} distinct scores), "
            f"the others counted in {len(self.bins.low)} bins: metrics of the top are exact, the "
            "others have a bound."
        )

    @property
    def bound(self) -> float:
        """How far the AUC may be off: half the sum over bins of (positives)(negatives), shared."""
        pos, neg = self.bins.positive, self.bins.negative
        of_pos = float(np.sum(pos) + np.sum(self.top[1]))
        of_neg = float(np.sum(neg) + np.sum(self.top[2]))
        return 0.5 * float((pos / of_pos) @ (neg / of_neg))

    @property
    def y(self) -> np.ndarray:
        """The label of each row of the list."""
        return self.classes[self._tied[0].astype(np.intp)]

    @property
    def scores(self) -> FloatArray:
        """The score of each row; in the middle of its bin where there are bins."""
        return self._tied[1]

    @property
    def weight(self) -> FloatArray:
        """How many rows of the source each row stands for."""
        return self._tied[2]

    @cached_property
    def _tied(self) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
        return self._rows(0.5)

    def _rows(self, share: float) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
        """Labels, scores, weights; ``share`` is where in its bin a positive stands.

        Negatives stand at one minus the share: 0.5 ties them, 1 is the best and 0 the worst that
        the scores can be.
        """
        bins = self.bins
        of_class = [
            np.concatenate([self.top[0], (1.0 - at) * bins.low + at * bins.high])
            for at in (share, 1.0 - share)
        ]
        scores = np.concatenate(of_class)
        positive = np.arange(len(scores)) < len(of_class[0])
        weight = np.concatenate([self.top[1], bins.positive, self.top[2], bins.negative])
        held = weight > 0
        return positive[held], scores[held], weight[held]

    def metric(self, name: str, **settings: object) -> BlockMetric:
        """Evaluate a metric of `toprank.metrics`.

        Parameters
        ----------
        name : str
            Such as "auc", "precision_at" or "pnorm_risk".
        **settings
            Its parameters, such as ``k=100``.

        Returns
        -------
        BlockMetric
            ``.value``, and ``.low`` and ``.high`` between which the metric of the scores
            themselves lies; ``.exact`` says whether they agree, ``.bound`` how far it may be off.
        """
        metric = get_metric(name)
        metric.check_settings(settings)
        if not metric.takes_weights:
            raise TypeError(
                f"{name} takes no sample_weight, and the rows of this list have weights."
            )
        value = self._evaluate(metric, 0.5, settings)
        ends = [value]
        if not self.exact:
            ends += [self._evaluate(metric, share, settings) for share in (0.0, 1.0)]
        if not self.exact and metric.by_place is not None:
            # tied positives count for less, or for more, than in places of their own
            ends += [self._before(metric.by_place, share) for share in (0.0, 1.0)]
        return BlockMetric(call_label(name, settings), value, min(ends), max(ends))

    def _evaluate(self, metric: Metric, share: float, settings: Mapping[str, object]) -> float:
        positive, scores, weight = self._rows(share)
        return float(metric.function(positive, scores, sample_weight=weight, **settings))

    def _before(
        self, by_place: Callable[[FloatArray, FloatArray], FloatArray], share: float
    ) -> float:
        """A metric by places, where the rows of a bin stand at the place before the bin."""
        ranked = RankedList.rank(*self._rows(share))
        each = by_place(ranked.found[1:], ranked.places[1:])
        lowest = self.top[0, -1]
        each = np.where(ranked.scores < lowest, np.append(each[:1], each[:-1]), each)
        return float(ranked.positive @ each)

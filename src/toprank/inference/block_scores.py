"""Intervals of the metrics of a block source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from toprank.inference.intervals import interval
from toprank.inference.result import Interval
from toprank.metrics.block_list import BlockList
from toprank.metrics.registry import METRICS


@dataclass(frozen=True)
class BlockScores(BlockList):
    """The ranked list of a block source, for metrics and intervals.

    ``y``, ``scores`` and ``weight`` go into every function of `toprank.metrics`, and into
    `toprank.inference.interval`: ``auc(found.y, found.scores, sample_weight=found.weight)``. The
    methods do that and say how exact the answer is. Rows of equal score and class are one row of
    their summed weight, so that weights count independent rows.

    The attributes are those of `toprank.metrics.block_list.BlockList`.
    """

    def interval(
        self, metric: str | Callable[..., float], *, level: float = 0.95, **how: Any
    ) -> Interval:
        """Return a confidence interval for a metric; see `toprank.inference.interval`.

        Parameters
        ----------
        metric : str or callable
            As in `toprank.inference.interval`.
        level : float, default=0.95
            Confidence level.
        **how
            ``method``, ``n_resamples``, ``random_state``, ``n_jobs``, and parameters of the metric
            such as ``k=100``. What belongs to single rows (``groups``, ``lists``,
            ``weights="sampling"``) is not known here.

        Returns
        -------
        Interval
            Its ``note`` says how far the bins may move the estimate, where they may.
        """
        known = ("groups", "lists", "weights", "sample_weight", "label_propensity", "pos_label")
        refused = [name for name in known if name in how]
        if refused:
            raise TypeError(
                f"{refused[0]} belongs to single rows, which the list of a block source no longer "
                "has. Use toprank.inference.interval on gathered scores."
            )
        found = interval(metric, self.y, self.scores, sample_weight=self.weight, level=level, **how)
        notes = [note for note in (found.note, self._note_on_bins(metric, how)) if note]
        return replace(found, note=" ".join(notes))

    def _note_on_bins(self, metric: Any, how: dict[str, Any]) -> str:
        if self.exact:
            return ""
        if metric not in METRICS:
            return "Rows below the top are tied in bins; for this metric there is no bound on it."
        options = ("method", "n_resamples", "random_state", "n_jobs")
        found = self.metric(metric, **{key: how[key] for key in how if key not in options})
        if found.exact:
            return "The bins below the top have no part in the estimate."
        return f"Rows below the top are tied in bins: the estimate is within {found.bound:.2g}."

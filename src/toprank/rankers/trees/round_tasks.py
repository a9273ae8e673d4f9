"""Rounds of trees as tasks that scikit-learn's callbacks are told of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toprank._extras import require
from toprank.rankers.callbacks import tell_step
from toprank.rankers.trees.plan import TreeRows

if TYPE_CHECKING:
    from toprank.rankers.trees.plan import Trees


class RoundTask:
    """A callback of the library that grows the trees: it tells scikit-learn's.

    Parameters
    ----------
    trees : PushTrees
        The estimator that is being fitted.
    rows : TreeRows
        The rows it learns from.
    at_round : callable
        Returns the trees of a booster after so many rounds.
    """

    def __init__(self, trees: Any, rows: TreeRows, at_round: Callable[[object, int], Trees]):
        self.trees, self.rows, self.at_round = trees, rows, at_round

    def __call__(self, env: Any) -> bool:
        stop = tell_step(self.trees, "round", lambda: self._attributes(env))
        if stop and self.trees.backend == "lightgbm":
            ended = require("lightgbm", "lightgbm").callback.EarlyStopException
            raise ended(env.iteration, env.evaluation_result_list or [])
        return stop

    def _attributes(self, env: Any) -> dict[str, object]:
        """What makes a copy of the estimator one that was fitted up to this round."""
        grown = self.at_round(env.model, env.iteration + 1)
        scores = grown.scores(self.rows.X)
        if self.rows.start is not None:
            scores = scores + self.rows.start
        link = self.trees._fit_link(scores, self.rows)
        return {
            "_trees": grown,
            "booster_": env.model,
            "n_iter_": grown.n_rounds,
            "_offset": link.offset,
            "_slope": link.slope,
        }

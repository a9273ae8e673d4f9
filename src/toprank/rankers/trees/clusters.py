"""Growing trees where the rows lie: on a Dask cluster or in a barrier stage of Spark."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from toprank._arrays import TableLike
from toprank.blocks import from_dask, from_spark
from toprank.folds import PChoice
from toprank.rankers.common import fits
from toprank.rankers.trees.auto import choose_on_sample
from toprank.rankers.trees.distributed import prepare


def _kinds_of_dask(X: object) -> list[str]:
    """One letter for each column, as NumPy calls its kind."""
    return [getattr(kind, "kind", "O") for kind in getattr(X, "dtypes", [])]


def _kinds_of_spark(data: Any, features: Sequence[str]) -> list[str]:
    return ["O" if kind == "string" else "f" for _, kind in data.select(*features).dtypes]


def _can_be_drawn(kinds: Sequence[str], init_score: object) -> bool:
    """Whether rows can be brought here to choose p on; a warning says what follows if not."""
    why = None
    if init_score is not None:
        why = "scores to start from are not drawn with the rows; give a model as init_model"
    elif not set(kinds) <= set("biuf"):
        why = "columns of text or categories are not drawn; encode them as numbers"
    if why is not None:
        message = f"p is not chosen by a comparison: {why}, or p as a number."
        warnings.warn(message, UserWarning, stacklevel=5)
    return why is None


class OnClusters:
    """Fits across workers: the trees of one process, by the push of the rows of all workers.

    The exponential loss with the price "power" or "identity" exchanges five numbers per round;
    every other price and loss, and groups, gather the scores, eight bytes per row and round on
    every worker. The metric to stop by is exact: the scores of the held-out rows are gathered.
    The trees are the same where columns have at most ``max_bins`` values; otherwise the workers
    agree on bins by XGBoost's sketch. ``subsample`` below one draws rows worker by worker.

    With p = "auto", p is chosen in this process on folds of at most 100,000 rows, drawn by a hash
    of the row or of its group, and the trees of the chosen p are grown on the workers. Columns of
    text or categories and scores to start from are not drawn: then p is 4, and a warning says so.
    """

    @fits
    def fit_dask(
        self,
        client: object,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        eval_set: tuple[object, ...] | None = None,
        init_score: object = None,
        init_model: object = None,
    ) -> Self:
        """Grow the trees on the workers of a Dask cluster, as one process would.

        See `toprank.rankers.trees.distributed_dask` for what is exchanged.

        Parameters
        ----------
        client : distributed.Client
        X : dask array or data frame of shape (n, d)
        y, sample_weight, groups, init_score : dask arrays or series of shape (n,)
            As in ``fit``; also arrays in memory, where the chunk sizes of X are known.
        eval_set : tuple (X, y) or (X, y, groups), optional
            Rows to stop by, as dask collections.
        init_model : estimator, booster or str, optional
            As in ``fit``; it goes to every worker.

        Returns
        -------
        self
        """
        from toprank.rankers.trees.distributed_dask import fit_dask

        def choose() -> PChoice | None:
            if not _can_be_drawn(_kinds_of_dask(X), init_score):
                return None
            source = from_dask(X, y, sample_weight, groups=groups, client=client, persist=False)
            return choose_on_sample(self, source, init_model)

        prepare(self, init_model, init_score is not None, eval_set is not None, choose)
        rows = {"sample_weight": sample_weight, "groups": groups, "init_score": init_score}
        return fit_dask(self, client, X, y, rows, eval_set)

    @fits
    def fit_spark(
        self,
        data: object,
        *,
        features: Sequence[str],
        target: str,
        weight: str | None = None,
        groups: str | None = None,
        init_score: str | None = None,
        eval_data: object = None,
        init_model: object = None,
        num_workers: int | None = None,
    ) -> Self:
        """Grow the trees in a barrier stage of Spark, as one process would.

        Parameters
        ----------
        data : pyspark.sql.DataFrame
        features : sequence of str
            Columns of numbers, or of text and categories.
        target, weight, groups, init_score : str
            The columns of labels, repetition counts, groups and scores to start from.
        eval_data : pyspark.sql.DataFrame, optional
            Rows to stop by, with the same columns.
        init_model : estimator, booster or str, optional
            As in ``fit``; it goes to every worker.
        num_workers : int, optional
            Tasks that train together; all must run at the same time. By default as many as the
            cluster runs at once.

        Returns
        -------
        self
        """
        from toprank.blocks.spark import check_frame
        from toprank.rankers.trees.distributed_spark import fit_spark

        def choose() -> PChoice | None:
            check_frame(data, list(features))
            if not _can_be_drawn(_kinds_of_spark(data, features), init_score):
                return None
            with from_spark(
                data, features=features, target=target, weight=weight, group=groups
            ) as source:
                return choose_on_sample(self, source, init_model)

        prepare(self, init_model, init_score is not None, eval_data is not None, choose)
        roles = {"y": target, "weight": weight, "groups": groups, "start": init_score}
        return fit_spark(self, data, list(features), roles, eval_data, num_workers)

"""Growing trees where the rows lie: on a Dask cluster or in a barrier stage of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from toprank._arrays import TableLike
from toprank.rankers.common import fits


class OnClusters:
    """Fits across workers: the trees of one process, by the push of the rows of all workers.

    The exponential loss with the price "power" or "identity" exchanges five numbers per round;
    every other price and loss, and groups, gather the scores, eight bytes per row and round on
    every worker. The metric to stop by is exact: the scores of the held-out rows are gathered.
    The trees are the same where columns have at most ``max_bins`` values; otherwise the workers
    agree on bins by XGBoost's sketch. ``subsample`` below one draws rows worker by worker.
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
        eval_set: tuple[Any, ...] | None = None,
        init_score: object = None,
        init_model: object = None,
    ) -> Any:
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

        rows = {"sample_weight": sample_weight, "groups": groups, "init_score": init_score}
        return fit_dask(self, client, X, y, rows, eval_set, init_model)

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
    ) -> Any:
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
        from toprank.rankers.trees.distributed_spark import fit_spark

        roles = {"y": target, "weight": weight, "groups": groups, "start": init_score}
        return fit_spark(self, data, list(features), roles, eval_data, init_model, num_workers)

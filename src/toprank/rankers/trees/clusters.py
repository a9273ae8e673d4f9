"""Growing trees where the rows lie: on a Dask cluster or in a barrier stage of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from toprank._arrays import TableLike
from toprank.blocks import BlockSource, from_dask, from_spark
from toprank.blocks.drawn import draw_rows
from toprank.folds import PChoice
from toprank.objective import count_labels
from toprank.rankers.common import fits
from toprank.rankers.trees.auto import choose_power

#: Rows that p is chosen on, at most.
_CHOSEN_ON = 200_000


def choose_on_sample(
    trees: object, source: BlockSource, init_score: object, init_model: object
) -> PChoice:
    """Choose p on folds of rows that are drawn from a source and brought here."""
    if init_score is not None:
        raise ValueError(
            "p='auto' and init_score: the scores to start from are not drawn with the rows that "
            "p is chosen on. Give a model as init_model, or p as a number."
        )
    counts = count_labels(source)
    rows = draw_rows(source, _CHOSEN_ON, counts.n_present, seed=0, by_group=source.grouped)
    given = {} if rows.groups is None else {"groups": rows.groups}
    return choose_power(trees, rows.X, rows.y, rows.weight, given, init_model)


class OnClusters:
    """Fits across workers: the trees of one process, by the push of the rows of all workers.

    The exponential loss with the price "power" or "identity" exchanges five numbers per round;
    every other price and loss, and groups, gather the scores, eight bytes per row and round on
    every worker. The metric to stop by is exact: the scores of the held-out rows are gathered.
    The trees are the same where columns have at most ``max_bins`` values; otherwise the workers
    agree on bins by XGBoost's sketch. ``subsample`` below one draws rows worker by worker.

    With p = "auto", p is chosen in this process on folds of at most 200,000 rows, drawn by a hash
    of the row or of its group, and the trees of the chosen p are grown on the workers.
    """

    p: Any

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

        if isinstance(self.p, str):
            source = from_dask(X, y, sample_weight, groups=groups, client=client, persist=False)
            self.choice_ = choose_on_sample(self, source, init_score, init_model)
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
        from toprank.rankers.trees.distributed_spark import fit_spark

        if isinstance(self.p, str):
            with from_spark(
                data, features=features, target=target, weight=weight, group=groups
            ) as source:
                self.choice_ = choose_on_sample(self, source, init_score, init_model)
        roles = {"y": target, "weight": weight, "groups": groups, "start": init_score}
        return fit_spark(self, data, list(features), roles, eval_data, init_model, num_workers)

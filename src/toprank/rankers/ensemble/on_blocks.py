"""`PushEnsemble` over a block source: members fitted to all rows, weighed on some of them.

Members that fit blocks are fitted to the folds and to all rows where they lie. Their weights come
from the scores of rows that were drawn by a hash and that each member has not seen: those rows
alone come to this process, as many as a quality draws of a table in memory. A member that needs
its rows in memory is fitted to the drawn ones, and a warning says so.
"""

from __future__ import annotations

import hashlib
import time as clock
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank._arrays import Matrix, TableLike
from toprank._extras import require
from toprank._files import path_on_disk
from toprank._numerics import FloatArray
from toprank.blocks import BlockSource, go_on
from toprank.blocks.checkpoint import keep_passes
from toprank.blocks.drawn import draw_rows
from toprank.blocks.parts import Folds, HashFolds
from toprank.blocks.statistics import LabelCounts
from toprank.folds import fit_on_folds, folds_on_blocks
from toprank.objective import count_labels
from toprank.pairs import split_classes
from toprank.rankers.blockwise import (
    BlockScorer,
    check_repeatable,
    check_row_weights,
    check_source,
)
from toprank.rankers.common import fits, warn_caller
from toprank.rankers.ensemble.combination import ScoreColumns
from toprank.rankers.ensemble.fit_steps import EnsembleSteps, LastFits, check_members
from toprank.rankers.ensemble.out_of_fold import (
    TRIED,
    Progress,
    Run,
    check_scores,
    fault_of,
    fit_member,
    for_all_rows,
)
from toprank.rankers.ensemble.out_of_fold import member_scores as scores_of
from toprank.rankers.ensemble.plan import EFFORTS, Member, auto_folds, is_installed
from toprank.rankers.linear import PNormPush
from toprank.rankers.proper import ProperRanker
from toprank.rankers.trees import PushTrees

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from toprank.pairs import Rows


#: What is added to the seed of the folds: which rows are drawn does not depend on their fold.
_OTHER_SEED = 7919


@dataclass(frozen=True)
class Drawn:
    """Rows in memory that stand for all, and which of them each fold trains and tests."""

    X: Matrix
    y: np.ndarray
    weight: FloatArray | None
    groups: np.ndarray | None
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]

    @classmethod
    def of(cls, source: BlockSource, folds: Folds, most: int, n_rows: int, seed: int) -> Drawn:
        """Draw about so many rows by a hash, of themselves or of their groups."""
        by_group = source.grouped and isinstance(folds, HashFolds)
        rows = draw_rows(source, most, n_rows, seed + _OTHER_SEED, by_group=by_group)
        train, test = (
            [np.flatnonzero(folds.holds(rows, part, fold)) for fold in range(folds.n_folds)]
            for part in ("train", "test")
        )
        weight = None if rows.weight is None else rows.weight.astype(np.float64)
        return cls(rows.X, rows.y, weight, rows.groups, list(zip(train, test, strict=True)))


@dataclass(frozen=True)
class EnsembleBlockScore:
    """The score of every row of a block: picklable, so that it can travel to the blocks."""

    members: tuple[tuple[int, Callable[[Matrix], FloatArray]], ...]
    scale: ScoreColumns
    combiner: BaseEstimator
    columns_used: tuple[int, ...]
    n_members: int

    def __call__(self, X: Matrix, out: FloatArray | None = None) -> FloatArray:
        """Return the scores of the rows of one block, or write them into ``out``."""
        columns = np.zeros((X.shape[0], self.n_members))
        for j, score in self.members:
            columns[:, j] = (score(X) - self.scale.centre[j]) / self.scale.spread[j]
        scores = np.asarray(self.combiner.decision_function(columns[:, self.columns_used]))
        if out is None:
            return scores
        out[:] = scores
        return out


@dataclass(frozen=True)
class _MemberScore:
    """The score of a member that knows tables only."""

    model: BaseEstimator
    names: NDArray[np.object_] | None

    def __call__(self, X: Matrix) -> FloatArray:
        dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X[:])
        return scores_of(self.model, _as_table(dense, self.names))


class EnsembleOnBlocks(BlockScorer, EnsembleSteps):
    """Fits of an ensemble to rows that lie anywhere."""

    @fits
    def fit_blocks(
        self,
        source: BlockSource,
        *,
        progress: Progress | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Fit members to folds of a block source, weigh them, and fit those with a weight.

        Linear rankers are fitted to all rows of every fold wherever they lie, trees
        (``PushTrees(backend="xgboost")``) where this machine reads them. Folds are made by a hash
        of the row, or of its group where the source has groups, or by time
        (``cv=TimeOrderedSplit()``, the groups are the times). The weights are found by the scores
        of rows that were drawn by another hash, as many as ``quality`` says, or 256 MB of them;
        ``oof_scores_`` are those. A member that cannot be fitted to the source is fitted to the
        drawn rows instead, and a warning says to how many.

        With ``estimators="auto"`` the members are logistic regression, the linear push, and where
        XGBoost is installed boosted trees under the push and with the binary objective. Columns
        are numbers; `fit_table_blocks` prepares others.

        Parameters
        ----------
        source : BlockSource
            Rows of two classes.
        progress : callable, optional
            Called as ``progress(step, done, total)`` after each member.
        checkpoint : str or path, optional
            A folder that keeps the outcome of every pass (`toprank.blocks.with_checkpoint`); it
            needs a number as ``random_state``. Trees are kept below it while they grow, and what
            a member's fit to all rows raises ends the fit, which can go on later.
        resume : bool, default=False
            Go on with the passes in that folder, to the same bits.

        Returns
        -------
        self

        Examples
        --------
        >>> from toprank import PNormPush, ProperRanker, PushEnsemble, blocks
        >>> from toprank.datasets import load_wdbc
        >>> X, y = load_wdbc(return_X_y=True)
        >>> members = [("push", PNormPush(p=4)), ("logistic", ProperRanker())]
        >>> source = blocks.from_arrays(X, y, block_rows=200)
        >>> ensemble = PushEnsemble(members, cv=3).fit_blocks(source)
        >>> ensemble.oof_scores_.shape
        (569, 2)
        >>> ensemble.evaluate_blocks(source).metric("auc").value > 0.9
        True
        """
        check_source(source)
        _refuse_settings(self)
        if checkpoint is not None:
            check_repeatable(self.random_state)
        trees = None if checkpoint is None else path_on_disk(checkpoint, "checkpoint") / "trees"
        with keep_passes(source, checkpoint, resume) as kept:
            self._fit_source(kept, source, trees, progress)
        return self

    def _fit_source(
        self, source: BlockSource, plain: BlockSource, kept: Path | None, progress: Progress | None
    ) -> None:
        """Fit to a source that may keep its passes, trees to the plain one and below ``kept``."""
        source.expect_passes()
        counts = count_labels(source)
        split_classes(counts.labels)
        check_row_weights(counts)
        _check_class_sizes(counts)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        cv = self.cv
        if isinstance(cv, str):
            cv = auto_folds(self.quality, counts.n_present)
        folds = folds_on_blocks(source, cv)
        most = EFFORTS[self.quality].weighed
        drawn = Drawn.of(source, folds, most, counts.n_present, seed)
        table = _as_table(drawn.X, source.feature_names)
        rows = self._check_fit(table, drawn.y, drawn.weight, drawn.groups, None)
        self._folds, self._ordered = drawn.folds, not isinstance(cv, Integral)
        self._check_metric(rows)
        if isinstance(self.estimators, str):
            members = block_members(self.quality, seed)
        else:
            members = check_members(self.estimators)
        work = _BlockMembers(source, plain, folds, drawn, rows, self.on_error, kept)
        tell = self._teller(progress)
        runs = []
        for done, (name, member) in enumerate(members, 1):
            runs.append(work.run(name, member))
            tell(name, done, len(members))
        self._weigh_and_fit(rows, runs, members, work.fit_last)
        sampled = [n for n, one in self._weighed(members) if not reads_blocks(one, plain)]
        if sampled and len(rows) < counts.n_present:
            warn_caller(
                f"{', '.join(map(repr, sampled))} cannot be fitted to a source of this kind: "
                f"fitted to the {len(rows):,} rows that were drawn, not to all "
                f"{counts.n_present:,}.",
                UserWarning,
            )

    def block_score(self) -> EnsembleBlockScore:
        """Return the ranking score as a picklable function of the ``X`` of a block."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        of_members = tuple(
            (self.oof_members_.index(name), _block_score(model, names))
            for name, model in self.members_
        )
        return EnsembleBlockScore(
            of_members,
            self._scale,
            self._combiner,
            self._columns_used,
            len(self.oof_members_),
        )


class _BlockMembers:
    """Fits members to the folds of a source, or to those of the rows drawn from it."""

    def __init__(
        self,
        source: BlockSource,
        plain: BlockSource,
        folds: Folds,
        drawn: Drawn,
        rows: Rows,
        on_error: str,
        kept: Path | None,
    ):
        self.source, self.plain, self.folds = source, plain, folds
        self.drawn, self.rows = drawn, rows
        self.on_error, self.kept = on_error, kept

    def run(self, name: str, member: BaseEstimator) -> Run:
        """Score the drawn rows by a member that has not seen them."""
        go_on()
        run = Run(name, np.zeros(len(self.rows)), np.zeros(len(self.rows)))
        started = clock.perf_counter()
        try:
            found = self._scores(name, member)
            for scores, (_, test) in zip(found, self.drawn.folds, strict=True):
                run.scores[test] += scores
                run.hits[test] += 1.0
            run.seconds.append(clock.perf_counter() - started)
        except Exception as error:  # whatever a member raises is its own
            run.dropped, run.error = fault_of(name, "", error, self.on_error), error
        return run

    def _scores(self, name: str, member: BaseEstimator) -> list[FloatArray]:
        """The scores of the rows that each fold tests."""
        names = self.source.feature_names
        if reads_blocks(member, self.plain):
            source = self._source_for(member)
            kept = self._folder_of(name)
            fitted = [one for (one,) in fit_on_folds([member], source, self.folds, kept)]
            scores = [_block_score(model, names) for model in fitted]
        else:
            scores = [
                _MemberScore(fit_member(member, self.rows.take(train)), names)
                for train, _ in self.drawn.folds
            ]
        return [
            np.asarray(score(self.drawn.X[test]))
            for score, (_, test) in zip(scores, self.drawn.folds, strict=True)
        ]

    def fit_last(self, wanted: list[Member]) -> LastFits:
        """Fit members to all rows, and score some, or say what they raise."""
        found: LastFits = {}
        for name, member in wanted:
            try:
                found[name] = model = self._fit_last(name, member)
                score = _block_score(model, self.source.feature_names)
                check_scores(np.asarray(score(self.drawn.X[:TRIED])))
            except Exception as error:  # whatever a member raises is its own
                if self.kept is not None:  # with a checkpoint the fit can go on later
                    raise
                found[name] = error
        return found

    def _fit_last(self, name: str, member: BaseEstimator) -> BaseEstimator:
        """Fit a member to all rows, or to those that were drawn."""
        if not reads_blocks(member, self.plain):
            return fit_member(for_all_rows(member), self.rows)
        kept, given = self._folder_of(name), {}
        if kept is not None and isinstance(member, PushTrees):
            given = {"checkpoint": kept / "final", "resume": True}
        return clone(member).fit_blocks(self._source_for(member), **given)

    def _folder_of(self, name: str) -> Path | None:
        """Where the trees of a member are kept; names may hold signs that no folder may."""
        if self.kept is None:
            return None
        return self.kept / hashlib.blake2b(name.encode(), digest_size=8).hexdigest()

    def _source_for(self, member: BaseEstimator) -> BlockSource:
        """The source whose passes are kept, or for trees, which make none, the plain one."""
        return self.plain if isinstance(member, PushTrees) else self.source


def reads_blocks(member: BaseEstimator, source: BlockSource) -> bool:
    """Whether a member can be fitted to all rows of a source."""
    if isinstance(member, PushTrees):
        return member.backend == "xgboost" and hasattr(source, "read")
    return hasattr(member, "fit_blocks")


def block_members(quality: str, random_state: int) -> list[Member]:
    """Return the members of ``estimators="auto"`` that can be fitted to blocks."""
    effort = EFFORTS[quality]
    members: list[Member] = [("logistic", ProperRanker()), ("push", PNormPush(4.0))]
    if is_installed("xgboost"):
        settings: dict[str, Any] = {
            "backend": "xgboost",
            "n_estimators": effort.rounds,
            "learning_rate": effort.rate,
            "early_stopping": False,
            "calibration": "training",  # the ensemble has a link of its own
            "random_state": random_state,
        }
        members += [(f"trees, p = {p:g}", PushTrees(p, **settings)) for p in effort.powers]
        members.append(("trees, binary", PushTrees(None, **settings)))
    return members


def _block_score(
    model: BaseEstimator, names: NDArray[np.object_] | None
) -> Callable[[Matrix], FloatArray]:
    """The score of a fitted member, of the X of a block."""
    if hasattr(model, "block_score"):
        with suppress(ValueError):  # trees that split by categories score tables only
            score: Callable[[Matrix], FloatArray] = model.block_score()
            return score
    return _MemberScore(model, names)


def _as_table(X: TableLike, names: NDArray[np.object_] | None) -> TableLike:
    """A matrix, as a data frame where its columns have names."""
    if names is None:
        return X
    return require("pandas", "frames").DataFrame(X, columns=list(names), copy=False)


def _check_class_sizes(counts: LabelCounts) -> None:
    """Refuse a class of one row: the fold that tests it has none to train on."""
    for label in counts.labels:
        if sum(block.of(label)[1] for block in counts.blocks.values()) < 2:
            raise ValueError(
                f"The label {label} has a single row: cross-validation needs at least two of each "
                "class."
            )


def _refuse_settings(ensemble: EnsembleSteps) -> None:
    """Refuse what only rows in memory can be asked for."""
    if ensemble.test_size is not None:
        raise ValueError(
            f"test_size={ensemble.test_size!r}: a block source is not split further. The interval "
            "of the out-of-fold scores is in score_interval_; or evaluate on a source of rows "
            "kept aside with evaluate_blocks."
        )
    given = ensemble.categorical_features
    if given is not None and not isinstance(given, str):
        raise ValueError(
            "categorical_features were given, and the rows of blocks are numbers without "
            "categories. Encode them as columns of 0 and 1, or use fit_table_blocks."
        )

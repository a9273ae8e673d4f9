"""The steps of a fit to a table: prepare, choose the settings, measure, fit, score unseen rows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from toprank._numerics import FloatArray
from toprank.models.card import HeldOutMetrics
from toprank.models.ensembles import fit_ensemble, rows_to_measure_by
from toprank.models.errors import catch_warnings
from toprank.models.model import TableModel
from toprank.models.preparation import Preparation
from toprank.models.ranker_kinds import RankerKind, RankerRequest
from toprank.models.rows import OpenLabels, ScoredRows, TrainingRows
from toprank.models.schema import Schema
from toprank.models.unseen import FirstScores, ScoreRows, UnseenScores, unseen_scores
from toprank.rankers import PushEnsemble, PushTrees
from toprank.tuning import PChoice

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass
class TableFit:
    """The steps that the first fit, to some of the rows, and the last one share.

    ``hidden`` is the share of positives among the rows without a label; None to estimate it.
    """

    kind: RankerKind
    request: RankerRequest
    schema: Schema
    before: TableModel | None
    hidden: float | tuple[float, float] | None = None
    _last: tuple[TrainingRows, Preparation, FloatArray] | None = None

    def prepare(self, rows: TrainingRows) -> tuple[Preparation, FloatArray]:
        """Prepare rows, once where the same are asked for twice in a row."""
        if self._last is None or self._last[0] is not rows:
            self._last = None  # frees the numbers of the rows before
            if self.before is not None:
                preparation = self.before.preparation
                Z = preparation.transform(rows.X)
            else:
                preparation = Preparation(self.kind.style, self.request.random_state)
                Z = preparation.fit_transform(self.schema, rows.X, rows.fit_weight)
            self._last = (rows, preparation, Z)
        return self._last[1:]

    def settle(self, rows: TrainingRows) -> tuple[BaseEstimator, PChoice | None]:
        """Choose the settings: an unfitted ranker, and what the choice was made on."""
        preparation, Z = self.prepare(rows)
        if self.kind.choose is not None and self._chooses:
            return self.kind.choose(self.request, replace(rows, X=Z), preparation.categorical)
        if self.before is not None and self.request.p is None:
            ranker = clone(self.before.ranker)
            given = {} if self.request.alpha is None else {"alpha": self.request.alpha}
            return ranker.set_params(**given), None
        power = 4.0 if self.request.p in (None, "auto") else float(self.request.p)
        return self.kind.make(self.request, power, preparation.categorical), None

    @property
    def _chooses(self) -> bool:
        """Whether p is to be chosen, by rankers that have one."""
        return self.request.p == "auto" or (self.request.p is None and self.before is None)

    def choice_notes(self, template: BaseEstimator, choice: PChoice | None) -> list[str]:
        """Return what a card says where p was to be chosen, and the rows were too few for it."""
        if choice is not None or self.kind.choose is None or not self._chooses:
            return []
        return [
            f"p = {template.p:g} was taken without a comparison: that takes ten rows of each "
            "class, besides those held out, and both classes on both sides of every fold"
        ]

    def final(
        self, rows: TrainingRows, template: BaseEstimator, first: BaseEstimator | None = None
    ) -> tuple[Preparation, BaseEstimator, FloatArray]:
        """Fit a ranker of the chosen settings.

        An ensemble that a first fit to most of the rows has weighed keeps its weights: only the
        members that have one are fitted again.
        """
        preparation, Z = self.prepare(rows)
        weight = rows.fit_weight
        given = {} if weight is None else {"sample_weight": weight}
        if isinstance(first, PushEnsemble):
            return preparation, copy.copy(first).refit_members(Z, rows.y, **given), Z
        ranker = clone(template)
        if self.before is not None:
            given |= _start_from(ranker, self.before.ranker)
        return preparation, self.fit_ranker(ranker, Z, rows, given), Z

    def fit_ranker(
        self,
        ranker: BaseEstimator,
        Z: FloatArray,
        rows: TrainingRows,
        given: dict[str, Any],
    ) -> BaseEstimator:
        """Fit a ranker to prepared rows; an ensemble with folds that keep groups whole."""
        if isinstance(ranker, PushEnsemble):
            return fit_ensemble(ranker, Z, rows, given)
        return ranker.fit(Z, rows.y, **given)

    def open_labels(self, rows: TrainingRows) -> OpenLabels:
        """What intervals are told of rows without labels; nothing where all have one."""
        if rows.unlabelled is None:
            return {}
        return {"unlabelled": rows.unlabelled, "hidden": self.hidden}

    def unseen(self, rows: TrainingRows, template: BaseEstimator, own: FloatArray) -> UnseenScores:
        """Scores of the training rows from fits that have not seen them."""
        seed = self.request.random_state

        def fit_part(part: TrainingRows) -> tuple[ScoreRows, FloatArray]:
            preparation, ranker, Z = self.final(part, _for_scores(template))

            def score(others: TrainingRows) -> FloatArray:
                return np.asarray(ranker.decision_function(preparation.transform(others.X)))

            return score, ranker.decision_function(Z)

        with catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows has said it
            try:
                return unseen_scores(rows, own, fit_part, rows.held_out(seed), seed)
            except ValueError:  # a part that the ranker cannot be fitted to
                return UnseenScores(own, "training")


@dataclass(frozen=True)
class Settled:
    """What a first fit, to some of the rows, has settled for the last.

    Attributes
    ----------
    template : estimator
        The ranker to fit.
    choice : PChoice or None
        What its p was chosen on.
    held_out : HeldOutMetrics
        How good the first fit is on the other rows.
    first : estimator or None
        The first fit, where the last one keeps what it has learned of its members.
    scores : FirstScores or None
        Scores of the first fit of an ensemble, which new rows will be compared with.
    """

    template: BaseEstimator
    choice: PChoice | None
    held_out: HeldOutMetrics
    first: BaseEstimator | None = None
    scores: FirstScores | None = None


def choose_and_measure(fit: TableFit, rows: TrainingRows, tell: Callable[[int], None]) -> Settled:
    """Settle on some of the rows, and measure on the others."""
    seed = fit.request.random_state
    parts = rows.held_out(seed)
    with catch_warnings():
        warnings.simplefilter("ignore")  # the last fit says the same of all rows
        if parts is None:
            template, choice = fit.settle(rows)
            tell(2)
            return Settled(template, choice, HeldOutMetrics.empty())
        inner, outer = rows.take(parts[0]), rows.take(parts[1])
        some = rows_to_measure_by(fit.kind.weighs_members, inner, seed)
        template, choice = fit.settle(some)
        tell(2)
        preparation, ranker, _ = fit.final(some, _for_scores(template))

        def score(others: TrainingRows) -> FloatArray:
            return np.asarray(ranker.decision_function(preparation.transform(others.X)))

        scores = score(outer)
        scored = ScoredRows(None, outer.y, outer.weight, outer.groups, scores=scores)
        measured = HeldOutMetrics.measure(
            scored, fit.request.scoring, outer.propensity, **fit.open_labels(outer)
        )
        if len(some) < len(inner):
            measured = replace(measured, first_fit=len(some))
        # within a time limit, members whose fits to all rows would take too long are still left out
        keeps = fit.request.max_seconds is None or len(some) == len(inner)
        apart = None
        if isinstance(ranker, PushEnsemble):
            apart = FirstScores.of(score, scores, parts[1], some)
        return Settled(template, choice, measured, ranker if keeps else None, apart)


def _for_scores(template: BaseEstimator) -> BaseEstimator:
    """The same ranker without the folds that only its probabilities come from."""
    if isinstance(template, PushTrees):
        return clone(template).set_params(calibration="training")
    return template


def _start_from(ranker: BaseEstimator, old: BaseEstimator) -> dict[str, BaseEstimator]:
    """Let a ranker start where an old one ended; what ``fit`` is to be given for it."""
    if hasattr(ranker, "backend"):
        return {"init_model": old}
    if "warm_start" in ranker.get_params() and type(ranker) is type(old):
        ranker.set_params(warm_start=True)
        for name, value in vars(old).items():
            if name not in ranker.get_params():
                setattr(ranker, name, value)
    return {}

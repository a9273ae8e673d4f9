"""From rows that were read to a model: measured on rows held out, then fitted to all."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from toprank._arrays import JsonObject
from toprank._numerics import FloatArray, LongTail
from toprank._text import plain
from toprank.metrics.registry import METRICS
from toprank.models.card import make_card
from toprank.models.concern import LEAK, NOTE, Concern
from toprank.models.doubts import long_tails
from toprank.models.ensembles import (
    unseen_by_members,
)
from toprank.models.errors import ModelError, ModelWarning, catch_warnings
from toprank.models.model import ExplainedRows, TableModel
from toprank.models.preparation import Preparation
from toprank.models.ranker_kinds import RANKER_KINDS, RankerKind, RankerRequest, check_ranker
from toprank.models.rows import (
    TrainingRows,
    metric_settings,
)
from toprank.models.schema import Schema, Target
from toprank.models.steps import TableFit, choose_and_measure
from toprank.rankers import (
    PushEnsemble,
)
from toprank.tuning import Scoring

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


#: Called as progress(step, done, total).
Progress = Callable[[str, int, int], None]
_STEPS = ("reading", "choosing p", "measuring", "fitting")


@dataclass(frozen=True)
class FoundRows:
    """A training table that was read: its rows, or a sample of them, and what was found in it.

    Attributes
    ----------
    rows : TrainingRows
    target : Target
    concerns : list of Concern
    tails : dict
        Columns with long tails, and where these begin.
    name : str
        The name of the ranker's kind.
    training : dict
        What the card says of the training rows where these are a sample.
    final : callable, optional
        From an unfitted ranker to a preparation, the fitted ranker and the prepared `rows`, where
        the last fit takes other rows than these.
    """

    rows: TrainingRows
    target: Target
    concerns: list[Concern]
    tails: dict[str, LongTail]
    name: str
    training: JsonObject = field(default_factory=dict)
    final: Callable[[BaseEstimator], tuple[Preparation, BaseEstimator, FloatArray]] | None = None


def fit_found(
    fit: TableFit, found: FoundRows, tell: Callable[[int], None], started: float
) -> TableModel:
    """Choose, measure and fit on rows that are read, and write the card."""
    rows = found.rows
    tell(1)
    with _faults_of_rows():
        settled = choose_and_measure(fit, rows, tell)
        tell(3)
        with catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if found.final is None:
                last = fit.final(rows, settled.template, settled.first)
            else:
                last = found.final(settled.template)
    preparation, ranker, Z = last
    explained = ExplainedRows.of(ranker, Z)
    mean = explained.mean(rows.fit_weight)
    made = TableModel(fit.schema, found.target, preparation, ranker, {}, mean)
    unseen = unseen_by_members(ranker)
    if settled.scores is not None:
        unseen = settled.scores.on_scale_of(
            lambda some: ranker.decision_function(preparation.transform(some.X)), len(rows)
        )
    elif unseen is None:
        unseen = fit.unseen(rows, settled.template, ranker.decision_function(Z))
    notes = [str(concern) for concern in found.concerns if concern.danger < NOTE]
    notes += fit.choice_notes(settled.template, settled.choice)
    notes += [str(warning.message) for warning in caught]
    if rows.unlabelled is not None:
        notes.append(
            f"{np.count_nonzero(rows.unlabelled)} rows have no label: they are ranked below the "
            "labelled positives, and some of them are positive"
        )
    if rows.propensity is not None:
        notes.append(f"labels were seen with known probabilities: {rows.label_weights}")
    about = (settled.held_out, settled.choice, notes, fit.before, unseen)
    card = make_card(made, rows, explained, found.name, fit.request.scoring, *about)
    card["training"] |= found.training
    if isinstance(ranker, PushEnsemble):
        card["members"] = plain(ranker.member_table_.as_dicts())
    card["look"] = [concern.as_dict() for concern in found.concerns]
    card["tails"] = {name: [tail.low, tail.high] for name, tail in found.tails.items()}
    made = made.with_card({**card, "seconds": round(clock.perf_counter() - started, 3)})
    tell(4)
    for warning in caught:
        warnings.warn(warning.message, stacklevel=3)
    for concern in found.concerns:
        if concern.danger == LEAK:
            text = f"{concern.message}: {concern.python}."
            warnings.warn(text, ModelWarning, stacklevel=3)
    return made


def clip_tails(
    kind: RankerKind, schema: Schema, rows: TrainingRows
) -> tuple[Schema, TrainingRows, dict[str, LongTail]]:
    """What a kind of ranker reads of columns with long tails, and those that are clipped.

    A linear ranker reads them clipped; the linear members of an ensemble clip for themselves, so
    that its trees see the tails.
    """
    tails = {} if kind.style == "stumps" else long_tails(schema.columns, rows.X)
    if kind.style == "trees":
        return schema, rows, tails if kind is RANKER_KINDS["auto"] else {}
    ends = {name: (tail.low, tail.high) for name, tail in tails.items()}
    columns = tuple(replace(c, clip=ends.get(c.name, c.clip)) for c in schema.columns)
    X = {n: np.clip(x, *ends[n]) if n in ends else x for n, x in rows.X.items()}
    return replace(schema, columns=columns), replace(rows, X=X), tails


class Teller:
    """Says how far a fit is: the number of its step, and what is known within it."""

    def __init__(self, progress: Progress | None):
        self._progress = progress
        self._done = 0

    def __call__(self, done: int) -> None:
        self._done = done
        self._show("")

    def add(self, text: str) -> None:
        """Tell more of the step at hand."""
        self._show(f": {text}")

    def _show(self, more: str) -> None:
        if self._progress is not None:
            name = _STEPS[min(self._done, len(_STEPS) - 1)]
            self._progress(name + more, self._done, len(_STEPS))


def read_request(
    model: str | None,
    p: object,
    alpha: float | None,
    metric: str,
    k: int | float | None,
    random_state: int,
    from_model: TableModel | None,
) -> tuple[RankerRequest, RankerKind, str]:
    """Return what is asked of a ranker, its kind and its name; ModelError if it cannot be."""
    name = model or "pnorm"
    if from_model is not None:
        was = from_model.card.get("model", "pnorm")
        if model is not None and model != was:
            raise ModelError(f"model={model!r}: the model to start from is {was!r}.")
        name = was
    kind = check_ranker(name, "auto" if p is None else p, alpha)
    if metric not in METRICS:
        raise ModelError(f"metric={metric!r}: expected one of {', '.join(sorted(METRICS))}.")
    settings = None
    if k is not None:
        if not METRICS[metric].takes_k:
            raise ModelError(f"metric={metric!r} has no k; leave k out.")
        settings = metric_settings(metric, k)
    return RankerRequest(p, alpha, Scoring(metric, settings), random_state), kind, name


@contextmanager
def _faults_of_rows() -> Iterator[None]:
    """Make a ModelError of what a ranker or a metric says of rows or settings."""
    try:
        yield
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(str(error)) from error

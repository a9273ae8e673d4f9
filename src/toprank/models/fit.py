"""From a table to a model: read, prepare, choose, measure on rows held out, fit to all."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from toprank._numerics import FloatArray, LongTail
from toprank._text import plain
from toprank.folds import Fold
from toprank.metrics.registry import METRICS
from toprank.models import frames
from toprank.models.card import HeldOutMetrics, make_card
from toprank.models.columns import is_missing
from toprank.models.concern import LEAK, NOTE, Concern
from toprank.models.doubts import long_tails
from toprank.models.ensembles import (
    check_effort,
    fit_ensemble,
    rows_to_measure_by,
    unseen_by_members,
)
from toprank.models.errors import ModelError, ModelWarning, catch_warnings
from toprank.models.look import find_concerns
from toprank.models.model import ExplainedRows, TableModel
from toprank.models.preparation import Preparation
from toprank.models.rows import (
    ScoredRows,
    TrainingRows,
    drop_zero_weight,
    learn_table,
    metric_settings,
    reuse_table,
)
from toprank.models.schema import Schema, Target
from toprank.models.unseen import UnseenScores, unseen_scores
from toprank.pairs import Rows
from toprank.pairs.labels import missing_labels
from toprank.rankers import (
    IRPush,
    PNormPush,
    ProperRanker,
    PushEnsemble,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
)
from toprank.tuning import PChoice, PNormPushCV, Scoring, choose_p

#: The powers that p = "auto" tries for boosted stumps and trees, where each is a fit per fold.
_FEW_PS = (1.0, 2.0, 4.0, 16.0)
#: Training rows whose scores stand for those of all on a card that was not measured.
_SCORED = 50_000


@dataclass(frozen=True)
class RankerRequest:
    """What the user asks of a ranker."""

    p: Any
    alpha: float | None
    scoring: Scoring
    random_state: int
    quality: str = "good"
    max_seconds: float | None = None
    keep_tails: bool = False


@dataclass(frozen=True)
class RankerKind:
    """One kind of ranker.

    Attributes
    ----------
    style : str
        What it needs of its numbers; see `Preparation`.
    make : callable
        (request, p, categorical) -> unfitted ranker; `categorical` are the columns of codes.
    choose : callable, optional
        (request, rows, categorical, folds) -> (unfitted ranker, PChoice); None if it has no p.
    has_alpha : bool
        Whether it takes a penalty.
    """

    style: str
    make: Callable[[RankerRequest, float, list[int]], Any]
    choose: Callable[[RankerRequest, Rows, list[int], list[Fold]], tuple[Any, PChoice]] | None = (
        None
    )
    has_alpha: bool = False


def _penalty(request: RankerRequest) -> dict[str, Any]:
    return {} if request.alpha is None else {"alpha": request.alpha}


def _choose_linear(
    request: RankerRequest, rows: Rows, categorical: list[int], folds: list[Fold]
) -> tuple[Any, PChoice]:
    grid: dict[str, Any] = {} if request.alpha is None else {"alphas": (request.alpha,)}
    search = PNormPushCV(
        scoring=request.scoring.name,
        scoring_kwargs=request.scoring.kwargs or None,
        cv=folds,
        test_size=None,
        **grid,
    ).fit(rows.X, rows.y, rows.weight)
    return clone(search.best_estimator_), search.choice_


def _search(
    request: RankerRequest, rows: Rows, folds: list[Fold], ranker: Any, **baseline: Any
) -> PChoice:
    return choose_p(
        ranker,
        rows.X,
        rows.y,
        ps=_FEW_PS,
        scoring=request.scoring.name,
        scoring_kwargs=request.scoring.kwargs or None,
        cv=folds,
        sample_weight=rows.weight,
        **baseline,
    )


def _choose_stumps(
    request: RankerRequest, rows: Rows, categorical: list[int], folds: list[Fold]
) -> tuple[Any, PChoice]:
    choice = _search(request, rows, folds, RankBoost(), baseline=None)
    assert choice.p is not None  # every candidate pushes
    return RankBoost(p=choice.p), choice


def _make_trees(request: RankerRequest, p: Any, categorical: list[int]) -> PushTrees:
    return PushTrees(
        p,
        categorical_features=categorical or None,
        metric=request.scoring.name,
        metric_kwargs=request.scoring.kwargs or None,
        random_state=request.random_state,
    )


def _choose_trees(
    request: RankerRequest, rows: Rows, categorical: list[int], folds: list[Fold]
) -> tuple[Any, PChoice]:
    # the folds compare rankings, which no link changes
    choice = _search(
        request,
        rows,
        folds,
        _make_trees(request, 4.0, categorical).set_params(calibration="training"),
        baseline=_make_trees(request, None, categorical),
        baseline_name="the library's binary objective",
    )
    return _make_trees(request, choice.p, categorical), choice


def _make_ensemble(request: RankerRequest, p: Any, categorical: list[int]) -> PushEnsemble:
    # it is fitted twice: without the rows held out, and to all rows
    seconds = None if request.max_seconds is None else request.max_seconds / 2.2
    return PushEnsemble(
        quality=request.quality,
        metric=request.scoring.name,
        metric_kwargs=request.scoring.kwargs or None,
        max_seconds=seconds,
        categorical_features=categorical or None,
        clip_tails=not request.keep_tails,
        random_state=request.random_state,
    )


RANKER_KINDS: dict[str, RankerKind] = {
    "auto": RankerKind("trees", _make_ensemble),
    "pnorm": RankerKind(
        "linear", lambda r, p, _: PNormPush(p, **_penalty(r)), _choose_linear, has_alpha=True
    ),
    "ir": RankerKind("linear", lambda r, p, _: IRPush(**_penalty(r)), has_alpha=True),
    "proper": RankerKind("linear", lambda r, p, _: ProperRanker(**_penalty(r)), has_alpha=True),
    "rankboost": RankerKind("stumps", lambda r, p, _: RankBoost(p=p), _choose_stumps),
    "smooth-margin": RankerKind("stumps", lambda r, p, _: SmoothMarginRanker()),
    "trees": RankerKind("trees", _make_trees, _choose_trees),
}


def check_ranker(model: str, p: Any, alpha: float | None) -> RankerKind:
    """Return a kind of ranker by name; ModelError if it does not take what is asked of it."""
    if model not in RANKER_KINDS:
        raise ModelError(f"model={model!r}: expected one of {', '.join(RANKER_KINDS)}.")
    kind = RANKER_KINDS[model]
    if p != "auto":
        if not isinstance(p, (int, float, np.number)) or isinstance(p, bool) or not p >= 1:
            raise ModelError(f"p={p!r}: expected 'auto' or a number from 1 on.")
        if kind.choose is None:
            raise ModelError(f"model={model!r} has no p; leave p out.")
    if alpha is not None:
        if not kind.has_alpha:
            raise ModelError(f"model={model!r} has no alpha; leave alpha out.")
        if not (np.isfinite(alpha) and alpha > 0):
            raise ModelError(f"alpha={alpha!r}: expected a positive number.")
    return kind


#: Called as progress(step, done, total).
Progress = Callable[[str, int, int], None]
_STEPS = ("reading", "choosing p", "measuring", "fitting")


def fit_table(
    frame: Any,
    target: str,
    *,
    positive: Any = None,
    id: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    groups: str | None = None,
    propensity: str | None = None,
    model: str | None = None,
    p: Any = None,
    alpha: float | None = None,
    metric: str = "precision_at",
    k: int | float | None = None,
    quality: str = "good",
    max_seconds: float | None = None,
    random_state: int = 0,
    as_text: Sequence[str] = (),
    as_number: Sequence[str] = (),
    clip: Sequence[str] = (),
    tidy: Sequence[str] = (),
    skip_unlabelled: bool = False,
    keep_tails: bool = False,
    from_model: TableModel | None = None,
    progress: Progress | None = None,
) -> TableModel:
    """Fit a ranker to a table of mixed columns.

    A fifth of the rows is held out: the choice of p and a first fit never see it, and the metric
    intervals on the model's card are those of that fit on these rows. The model itself is then
    fitted to all rows, with the same settings. Up to 10,000 rows, five more fits to four fifths
    of the rows score the others, so that `toprank monitor` knows what scores of new rows look like.

    Parameters
    ----------
    frame : data frame of pandas or polars, or pyarrow Table
        The training table: numbers, booleans, dates, categories, text, with missing values.
        Infinite numbers count as missing.
    target : str
        Column of the labels, of any two values.
    positive : value, optional
        The label that belongs at the top. Needed where it is not plain (1/0, 1/-1, yes/no,
        true/false and the like are); where the target has more than two values, the others are
        negative.
    id : str, optional
        Column that names the rows; not a feature.
    time : str, optional
        Column of dates or numbers; not a feature. Folds then train on the past, and the last rows
        are the ones held out.
    drop : sequence of str
        Columns to leave out.
    weight : str, optional
        Column of repetition counts; not a feature.
    groups : str, optional
        Column of clusters, such as customers; not a feature. Rows of one group stay in one fold,
        and intervals allow for their dependence.
    propensity : str, optional
        Column of probabilities, above 0, that the row's label was seen, such as `rank --explore`
        writes; not a feature. Rows count by one over it: in the fit clipped, as
        `toprank.select.label_weights` does it, and in the intervals of the card in full.
    model : {"auto", "pnorm", "ir", "rankboost", "smooth-margin", "trees", "proper"}
        Which ranker: an ensemble of several kinds (auto, `PushEnsemble`); linear with the P-Norm
        Push (the default), the IR Push or a proper loss; boosted stumps (RankBoost, smooth
        margin); trees (LightGBM) under the push.
    p : "auto" or float, default="auto"
        How hard to push. "auto" chooses by cross-validation on ``metric``, and may answer not to.
    alpha : float, optional
        L2 penalty of the linear rankers; chosen along with p by default.
    metric : str, default="precision_at"
        The metric of `toprank.metrics` that p is chosen by.
    k : int or float, optional
        Its depth, a count or a share of the list; by default a tenth.
    quality : {"fast", "good", "best"}, default="good"
        How much work the model "auto" is; see `PushEnsemble`.
    max_seconds : float, optional
        How long the model "auto" may take; members that would take longer are left out.
    random_state : int, default=0
    as_text : sequence of str
        Columns of names that are written in figures, such as zip codes: read as words.
    as_number : sequence of str
        Columns of numbers that are written with signs, such as ``$1,234.50``, ``12,5 %``: read as
        numbers. The decimal sign is found out.
    clip : sequence of str
        Columns of numbers with long tails: what is beyond the first or the last half percent of
        the training rows counts as no more than that.
    tidy : sequence of str
        Columns of words that are written in several ways (``Yes``, `` yes``): read in small
        letters and without needless spaces.
    skip_unlabelled : bool, default=False
        Whether to leave out the rows without a label; such rows are an error otherwise.
    keep_tails : bool, default=False
        Whether long tails count in full. By default linear models, and the linear members of
        "auto", count a column of which a number lies 50 standard deviations or more from the mean
        beyond its outer half percents as no more than these; the card names such columns.
    from_model : TableModel, optional
        Refit that model to new rows: the same columns, preparation, roles and settings unless
        given anew. Linear rankers start from its coefficients; trees are added to its scores;
        stumps start afresh.
    progress : callable, optional
        Called as ``progress(step, done, total)``.

    Returns
    -------
    TableModel

    Raises
    ------
    ModelError
        If the table cannot be used; the message says what to do.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from toprank.models import fit_table
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({
    ...     "customer": np.arange(400),
    ...     "age": rng.normal(40, 10, 400),
    ...     "city": rng.choice(["Rome", "Oslo"], 400),
    ... })
    >>> frame["bought"] = np.where(frame.age + rng.normal(0, 8, 400) > 52, "yes", "no")
    >>> model = fit_table(frame, "bought", id="customer", p=4)
    >>> model.score(frame.head(3)).shape
    (3,)
    """
    started = clock.perf_counter()
    tell = make_teller(progress)
    tell(0)
    request, kind, name = read_request(model, p, alpha, metric, k, random_state, from_model)
    request = replace(request, keep_tails=keep_tails, **check_effort(quality, max_seconds))
    roles = {"id": id, "time": time, "weight": weight, "groups": groups, "propensity": propensity}
    reading = {"as_text": as_text, "as_number": as_number, "clip": clip, "tidy": tidy}
    frame = labelled_rows(frame, target, skip_unlabelled)
    if from_model is None:
        schema, known = learn_table(frame, target, positive, drop, roles, **reading)
    else:
        if any(reading.values()):
            named = ", ".join(name for name, columns in reading.items() if columns)
            raise ModelError(f"{named}: columns are read as the model to start from reads them.")
        schema, known = reuse_table(
            frame, target, positive, roles, from_model.schema, from_model.target
        )
    rows = TrainingRows.read(frame, schema, known)
    if rows.n_positive in (0, len(rows)):
        raise ModelError("Only one class has rows of positive weight; a ranking needs two.")
    if from_model is not None:  # it keeps the categories that it knows
        unknown = schema.match(drop_zero_weight(frame, schema.weight)).notes
        if unknown:
            warnings.warn("; ".join(unknown) + ".", ModelWarning, stacklevel=2)
    concerns = find_concerns(frame, schema, known, rows, keep_tails)
    tails: dict[str, LongTail] = {}
    if from_model is None and not keep_tails:
        schema, rows, tails = clip_tails(kind, schema, rows)
    fit = TableFit(kind, request, schema, from_model)
    found = FoundRows(rows, known, concerns, tails, name)
    return fit_found(fit, found, tell, started)


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
    training: dict[str, Any] = field(default_factory=dict)
    final: Callable[[Any], tuple[Preparation, Any, FloatArray]] | None = None


def fit_found(
    fit: TableFit, found: FoundRows, tell: Callable[[int], None], started: float
) -> TableModel:
    """Choose, measure and fit on rows that are read, and write the card."""
    rows, seed = found.rows, fit.request.random_state
    tell(1)
    try:
        held_out, template, choice = choose_and_measure(fit, rows, seed, tell)
        tell(3)
        with catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            last = fit.final(rows, template) if found.final is None else found.final(template)
            preparation, ranker, Z = last
    except ModelError:
        raise
    except ValueError as error:  # what the ranker or the metric says of rows or settings
        raise ModelError(str(error)) from error
    explained = ExplainedRows.of(ranker, Z)
    mean = explained.mean(rows.fit_weight)
    made = TableModel(fit.schema, found.target, preparation, ranker, {}, mean)
    unseen = unseen_by_members(ranker)
    if unseen is None:
        unseen = fit.unseen(rows, template, ranker.decision_function(Z), seed)
    notes = [str(concern) for concern in found.concerns if concern.danger < NOTE]
    notes += [str(warning.message) for warning in caught]
    if rows.propensity is not None:
        notes.append(f"labels were seen with known probabilities: {rows.label_weights}")
    about = (held_out, choice, notes, fit.before, unseen)
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


def fit_rows(
    schema: Schema,
    target: Target,
    rows: TrainingRows,
    *,
    model: str | None = None,
    p: Any = None,
    alpha: float | None = None,
    metric: str = "precision_at",
    k: int | float | None = None,
    quality: str = "good",
    max_seconds: float | None = None,
    keep_tails: bool = True,
    random_state: int = 0,
) -> TableModel:
    """Fit a ranker to rows that are read already, without holding any out.

    As `fit_table`, for callers that measure by themselves; the card says that nothing was measured.
    """
    request, kind, name = read_request(model, p, alpha, metric, k, random_state, None)
    request = replace(request, keep_tails=keep_tails, **check_effort(quality, max_seconds))
    if not keep_tails:
        schema, rows, _ = clip_tails(kind, schema, rows)
    fit = TableFit(kind, request, schema, None)
    template, choice = fit.settle(rows)
    preparation, ranker, Z = fit.final(rows, template)
    explained = ExplainedRows.of(ranker, Z)
    made = TableModel(schema, target, preparation, ranker, {}, explained.mean(rows.fit_weight))
    some = Z[:: 1 + len(Z) // _SCORED]
    unseen = UnseenScores(ranker.decision_function(some), "training")
    held_out = HeldOutMetrics(notes=["nothing was held out: measure by cross-validation"])
    about: tuple[Any, ...] = (held_out, choice, [], None, unseen)
    return made.with_card(make_card(made, rows, explained, name, request.scoring, *about))


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


def labelled_rows(frame: Any, target: str, skip: bool) -> Any:
    """The rows of a table that have a label; ModelError if some have none, unless asked to skip."""
    frames.require_columns(frame, {"target": target})
    gaps = is_missing(frames.column(frame, target))
    if not np.any(gaps):
        return frame
    if not skip:
        raise ModelError(missing_labels(target, int(np.count_nonzero(gaps)), len(gaps)))
    return frames.take(frame, np.flatnonzero(~gaps))


def make_teller(progress: Progress | None) -> Callable[[int], None]:
    """Return what says how far a fit is, by the number of its step."""

    def tell(done: int) -> None:
        if progress is not None:
            progress(_STEPS[min(done, len(_STEPS) - 1)], done, len(_STEPS))

    return tell


def read_request(
    model: str | None,
    p: Any,
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


@dataclass(frozen=True)
class TableFit:
    """The steps that the first fit, on some of the rows, and the last one share."""

    kind: RankerKind
    request: RankerRequest
    schema: Schema
    before: TableModel | None

    def prepare(self, rows: TrainingRows) -> tuple[Preparation, FloatArray]:
        if self.before is not None:
            return self.before.preparation, self.before.preparation.transform(rows.X)
        preparation = Preparation(self.kind.style, self.request.random_state)
        return preparation, preparation.fit_transform(self.schema, rows.X, rows.fit_weight)

    def settle(self, rows: TrainingRows) -> tuple[Any, PChoice | None]:
        """Choose the settings: an unfitted ranker, and what the choice was made on."""
        chooses = self.request.p == "auto" or (self.request.p is None and self.before is None)
        preparation, Z = self.prepare(rows)
        if chooses and self.kind.choose is not None:
            try:
                folds = rows.folds()
            except ValueError as error:
                raise ModelError(
                    f"p='auto' needs folds to compare on. {error} Or give p."
                ) from error
            numbers = Rows(Z, rows.y, rows.fit_weight)
            return self.kind.choose(self.request, numbers, preparation.categorical, folds)
        if self.before is not None and self.request.p is None:
            ranker = clone(self.before.ranker)
            given = {} if self.request.alpha is None else {"alpha": self.request.alpha}
            return ranker.set_params(**given), None
        power = 4.0 if self.request.p in (None, "auto") else float(self.request.p)
        return self.kind.make(self.request, power, preparation.categorical), None

    def final(self, rows: TrainingRows, template: Any) -> tuple[Preparation, Any, FloatArray]:
        """Fit a ranker of the chosen settings."""
        preparation, Z = self.prepare(rows)
        weight = rows.fit_weight
        given = {} if weight is None else {"sample_weight": weight}
        ranker = clone(template)
        if self.before is not None:
            given |= _start_from(ranker, self.before.ranker)
        return preparation, self.fit_ranker(ranker, Z, rows, given), Z

    def fit_ranker(
        self, ranker: Any, Z: FloatArray, rows: TrainingRows, given: dict[str, Any]
    ) -> Any:
        """Fit a ranker to prepared rows; an ensemble with folds that keep groups whole."""
        if isinstance(ranker, PushEnsemble):
            return fit_ensemble(ranker, Z, rows, given)
        return ranker.fit(Z, rows.y, **given)

    def unseen(
        self, rows: TrainingRows, template: Any, own: FloatArray, random_state: int
    ) -> UnseenScores:
        """Scores of the training rows from fits that have not seen them."""

        def fit_part(part: TrainingRows) -> Callable[[TrainingRows], FloatArray]:
            preparation, ranker, _ = self.final(part, _for_scores(template))
            return lambda others: ranker.decision_function(preparation.transform(others.X))

        with catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows has said it
            try:
                return unseen_scores(rows, own, fit_part, rows.held_out(random_state), random_state)
            except ValueError:  # a part that the ranker cannot be fitted to
                return UnseenScores(own, "training")


def _for_scores(template: Any) -> Any:
    """The same ranker without the folds that only its probabilities come from."""
    if isinstance(template, PushTrees):
        return clone(template).set_params(calibration="training")
    return template


def _start_from(ranker: Any, old: Any) -> dict[str, Any]:
    """Let a ranker start where an old one ended; what ``fit`` is to be given for it."""
    if hasattr(ranker, "backend"):
        return {"init_model": old}
    if "warm_start" in ranker.get_params() and type(ranker) is type(old):
        ranker.set_params(warm_start=True)
        for name, value in vars(old).items():
            if name not in ranker.get_params():
                setattr(ranker, name, value)
    return {}


def choose_and_measure(
    fit: TableFit, rows: TrainingRows, random_state: int, tell: Callable[[int], None]
) -> tuple[HeldOutMetrics, Any, PChoice | None]:
    """Settle on some of the rows, and measure on the others."""
    parts = rows.held_out(random_state)
    with catch_warnings():
        warnings.simplefilter("ignore")  # the last fit says the same of all rows
        if parts is None:
            template, choice = fit.settle(rows)
            tell(2)
            return HeldOutMetrics.empty(), template, choice
        inner, outer = rows.take(parts[0]), rows.take(parts[1])
        template, choice = fit.settle(inner)
        tell(2)
        first = rows_to_measure_by(template, inner, random_state)
        preparation, ranker, _ = fit.final(first, _for_scores(template))
        scores = ranker.decision_function(preparation.transform(outer.X))
        scored = ScoredRows(None, outer.y, outer.weight, outer.groups, scores=scores)
        measured = HeldOutMetrics.measure(scored, fit.request.scoring, outer.propensity)
        if len(first) < len(inner):
            measured = replace(measured, first_fit=len(first))
        return measured, template, choice

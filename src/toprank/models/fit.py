"""From a table to a model: read, prepare, choose, measure on rows held out, fit to all."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toprank._arrays import Frame
from toprank._numerics import LongTail
from toprank.models import frames
from toprank.models.card import HeldOutMetrics, make_card
from toprank.models.columns import is_missing
from toprank.models.ensembles import (
    check_effort,
)
from toprank.models.errors import ModelError, ModelWarning
from toprank.models.found_rows import (
    FoundRows,
    Progress,
    Teller,
    clip_tails,
    fit_found,
    read_request,
)
from toprank.models.look import find_concerns
from toprank.models.model import ExplainedRows, TableModel
from toprank.models.rows import (
    TrainingRows,
    drop_zero_weight,
    learn_table,
    reuse_table,
)
from toprank.models.schema import Schema, Target
from toprank.models.steps import TableFit
from toprank.models.unlabelled import mark_unlabelled
from toprank.models.unseen import UnseenScores
from toprank.pairs.labels import missing_labels

#: Training rows whose scores stand for those of all on a card that was not measured.
_SCORED = 50_000


def fit_table(
    frame: object,
    target: str,
    *,
    positive: object = None,
    id: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    groups: str | None = None,
    propensity: str | None = None,
    unlabelled: object = None,
    hidden: float | tuple[float, float] | None = None,
    model: str | None = None,
    p: object = None,
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
    pool: Sequence[str] = (),
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
    unlabelled : value, optional
        Where only some positives have a label: the value of the target that stands for a label
        that is not known, "missing" for missing ones. Such rows are ranked below the labelled
        positives, which is the best order if these are a random part of all positives; the
        intervals of the card are corrected for the positives among them.
    hidden : float or (float, float), optional
        The share of positives among these rows, or the least and the largest it may be; by default
        `toprank.inference.hidden_share` estimates it on the rows held out.
    model : {"auto", "pnorm", "ir", "rankboost", "smooth-margin", "trees", "proper"}
        Which ranker: an ensemble of several kinds (auto, `PushEnsemble`); linear with the P-Norm
        Push (the default), the IR Push or a proper loss; boosted stumps (RankBoost, smooth
        margin); trees (LightGBM) under the push.
    p : "auto" or float, default="auto"
        How hard to push. "auto" chooses by cross-validation on ``metric``. A linear ranker may
        answer not to; trees choose as `PushTrees` does, quickly and from its powers.
    alpha : float, optional
        L2 penalty of the linear rankers; chosen along with p by default.
    metric : str, default="precision_at"
        The metric of `toprank.metrics` that p is chosen by; trees compare the average precision
        where it is one at k.
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
    pool : sequence of str
        Columns of words, or of names in figures, with many different ones: read as categories, the
        39 commonest each by itself and all others, also those never seen, as one. Otherwise a
        column of more than 40 different words is text.
    skip_unlabelled : bool, default=False
        Whether to leave out the rows without a label; such rows are an error otherwise.
    keep_tails : bool, default=False
        Whether long tails count in full. By default linear models, and the linear members of
        "auto", count a column of which a number lies 50 standard deviations or more from the mean
        beyond its outer half percents as no more than these; the card names such columns.
    from_model : TableModel, optional
        Refit that model to new rows: the same columns, preparation, roles and settings unless
        given anew. Linear rankers start from its coefficients; trees are added to its scores;
        stumps start from nothing.
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
    tell = Teller(progress)
    tell(0)
    request, kind, name = read_request(model, p, alpha, metric, k, random_state, from_model)
    effort = check_effort(quality, max_seconds)
    request = replace(request, keep_tails=keep_tails, tell=tell.add, **effort)
    if unlabelled is not None:
        frame, positive = mark_unlabelled(frame, target, unlabelled, positive)
    elif hidden is not None:
        raise ModelError(
            "hidden= is the share of positives among rows without a label: give unlabelled=."
        )
    frame = labelled_rows(frame, target, skip_unlabelled)
    roles = {"id": id, "time": time, "weight": weight, "groups": groups, "propensity": propensity}
    reading = {"as_text": as_text, "as_number": as_number, "clip": clip, "tidy": tidy}
    reading["pool"] = pool
    schema, known, rows = _read_rows(frame, target, positive, drop, roles, reading, from_model)
    refit = from_model is not None
    concerns = find_concerns(frame, schema, known, rows, keep_tails, refit=refit)
    tails: dict[str, LongTail] = {}
    if from_model is None and not keep_tails:
        schema, rows, tails = clip_tails(kind, schema, rows)
    fit = TableFit(kind, request, schema, from_model, hidden)
    found = FoundRows(rows, known, concerns, tails, name)
    return fit_found(fit, found, tell, started)


def _read_rows(
    frame: object,
    target: str,
    positive: object,
    drop: Sequence[str],
    roles: dict[str, str | None],
    reading: dict[str, Sequence[str]],
    from_model: TableModel | None,
) -> tuple[Schema, Target, TrainingRows]:
    """The columns of a table, its target and its rows; as an older model reads them, if any."""
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
            warnings.warn("; ".join(unknown) + ".", ModelWarning, stacklevel=3)
    return schema, known, rows


def fit_rows(
    schema: Schema,
    target: Target,
    rows: TrainingRows,
    *,
    model: str | None = None,
    p: object = None,
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
    tails: dict[str, LongTail] = {}
    if not keep_tails:
        schema, rows, tails = clip_tails(kind, schema, rows)
    fit = TableFit(kind, request, schema, None)
    template, choice = fit.settle(rows)
    preparation, ranker, Z = fit.final(rows, template)
    explained = ExplainedRows.of(ranker, Z)
    made = TableModel(schema, target, preparation, ranker, {}, explained.mean(rows.fit_weight))
    some = Z[:: 1 + len(Z) // _SCORED]
    unseen = UnseenScores(ranker.decision_function(some), "training")
    held_out = HeldOutMetrics(notes=["nothing was held out: measure by cross-validation"])
    notes = fit.choice_notes(template, choice)
    about = (held_out, choice, notes, None, unseen)
    card = make_card(made, rows, explained, name, request.scoring, *about)
    card["tails"] = {name: [tail.low, tail.high] for name, tail in tails.items()}
    return made.with_card(card)


def labelled_rows(frame: object, target: str, skip: bool) -> Frame:
    """The rows of a table that have a label; ModelError if some have none, unless asked to skip."""
    frames.require_columns(frame, {"target": target})
    gaps = is_missing(frames.column(frame, target))
    if not np.any(gaps):
        return frame
    if not skip:
        raise ModelError(missing_labels(target, int(np.count_nonzero(gaps)), len(gaps)))
    return frames.take(frame, np.flatnonzero(~gaps))

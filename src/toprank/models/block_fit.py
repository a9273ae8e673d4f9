"""From a table in blocks to a model: the same as `fit_table` makes of the table in memory."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from toprank._arrays import Frame, JsonObject
from toprank._extras import require
from toprank._numerics import FloatArray, LongTail
from toprank.blocks.checkpoint import check_resume
from toprank.models import frames
from toprank.models.block_rows import (
    BlocksLook,
    Described,
    DescribeRows,
    LearnClipped,
    Learned,
    LearnRows,
    PrepareRows,
    ReadColumns,
    Sampling,
    UsableRows,
)
from toprank.models.block_tails import find_tails_in_blocks
from toprank.models.ensembles import check_effort
from toprank.models.errors import ModelError
from toprank.models.found_rows import (
    FoundRows,
    Progress,
    Teller,
    clip_tails,
    fit_found,
    read_request,
)
from toprank.models.look import find_concerns
from toprank.models.model import TableModel
from toprank.models.preparation import ColumnFacts, Preparation
from toprank.models.ranker_kinds import RankerKind
from toprank.models.rows import TrainingRows, require_features, roles_by_column
from toprank.models.schema import Schema, Target
from toprank.models.steps import TableFit
from toprank.models.wishes import Wishes
from toprank.pairs.labels import missing_labels

if TYPE_CHECKING:
    from os import PathLike

    from sklearn.base import BaseEstimator

    from toprank.blocks.tables import TableSource

#: The kinds of rankers that are fitted to all rows in blocks; the others take a sample.
OF_ALL_ROWS = ("pnorm", "ir", "proper")


def fit_table_blocks(
    source: TableSource,
    target: str,
    *,
    positive: object = None,
    id: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    groups: str | None = None,
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
    sample_rows: int = 200_000,
    checkpoint: str | PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> TableModel:
    """Learn to rank from a table that is too large for memory, or lies on a cluster.

    What `fit_table` learns of a table in memory is learned here in passes over its blocks: what the
    columns hold, categories, formats of dates, means and deviations, where tails are clipped, the
    n-grams of text. All of that is the same to the last bit, however the rows are cut. The linear
    rankers ("pnorm", "ir", "proper") are then fitted to all rows: in this process the coefficients
    are those of `fit_table` to the last bit, on a cluster to the tolerance of the solver. The
    others ("auto", "trees", "rankboost", "smooth-margin") are fitted to a sample of the rows.

    The choice of p, the metrics on rows held out, what is said of the columns and what a card
    remembers of them come from a sample of the rows too; with at most `sample_rows` rows that is
    all of them, and the card is that of `fit_table`.

    Parameters
    ----------
    source : TableSource
        From `toprank.blocks.from_tables`.
    target, id, time, drop, weight, groups, model, p, alpha, metric, k, quality
        As in `fit_table`.
    positive : value or callable, optional
        As in `fit_table`; or what chooses it from the list of the labels, as words.
    max_seconds, random_state, as_text, as_number, clip, tidy, pool, skip_unlabelled, keep_tails
        As in `fit_table`.
    sample_rows : int, default=200_000
        Rows of the sample, about.
    checkpoint : str or path, optional
        A folder that keeps the passes of the fit to all rows (`toprank.blocks.with_checkpoint`).
        What comes before, the description of the columns and the fits to the sample, is done again.
    resume : bool, default=False
        Go on with the passes in that folder, to the same bits.
    progress : callable, optional
        Called as ``progress(step, done, total)``.

    Returns
    -------
    TableModel

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from toprank import blocks
    >>> from toprank.models import fit_table, fit_table_blocks
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({
    ...     "age": rng.normal(40, 10, 400),
    ...     "city": rng.choice(["Rome", "Oslo", None], 400),
    ... })
    >>> frame["bought"] = np.where(frame.age + rng.normal(0, 8, 400) > 52, "yes", "no")
    >>> parts = blocks.from_tables(lambda: (frame[i : i + 90] for i in range(0, 400, 90)))
    >>> in_blocks = fit_table_blocks(parts, "bought", p=4)
    >>> in_memory = fit_table(frame, "bought", p=4)
    >>> bool(np.array_equal(in_blocks.ranker.coef_, in_memory.ranker.coef_))
    True
    """
    started = clock.perf_counter()
    tell = Teller(progress)
    tell(0)
    if sample_rows < 1:
        raise ModelError(f"sample_rows={sample_rows!r}: expected a number of rows, 1 or more.")
    request, kind, name = read_request(model, p, alpha, metric, k, random_state, None)
    effort = check_effort(quality, max_seconds)
    request = replace(request, keep_tails=keep_tails, tell=tell.add, **effort)
    _check_kept(checkpoint, resume, name)
    roles = {"id": id, "time": time, "weight": weight, "groups": groups}
    lists = {"as_text": as_text, "as_number": as_number, "clip": clip, "tidy": tidy}
    lists["pool"] = pool
    reading = {n: (one,) if isinstance(one, str) else tuple(one) for n, one in lists.items()}
    _check_names(source, target, roles, drop, reading)
    usable = UsableRows(target, weight, skip_unlabelled)
    wishes = Wishes(**{**reading, "tidy": tuple(n for n in reading["tidy"] if n != target)})
    taken = {target, *drop, *(n for n in roles.values() if n is not None)}
    names = tuple(n for n in source.names if n not in taken)
    tidied = target in reading["tidy"]
    found: Described = source.map_reduce(DescribeRows(usable, names, wishes, tidied), None)
    _check_rows(found, target, skip_unlabelled)
    top = positive(found.labels.distinct) if callable(positive) else positive
    known = Target.of_words(target, set(found.labels.counts), top, tidied)
    given = {role: n for role, n in roles.items() if n is not None}
    look = BlocksLook(source, usable)
    schema = Schema.from_summary(found.summary, wishes, look, drop, target=target, **given)
    require_features(schema)
    sampling = Sampling(sample_rows / found.n_rows, random_state, groups)
    learner = LearnRows(usable, schema, known, kind.style, sampling)
    learned: Learned = source.map_reduce(learner, found.starts())
    frame = _join_tables(learned.sample)
    rows = TrainingRows.read(frame, schema, known)
    concerns = find_concerns(frame, schema, known, rows, keep_tails)
    tails: dict[str, LongTail] = {}
    if not keep_tails:
        clipper = _TailClipper(source, usable, known, kind)
        schema, rows, tails, learned = clipper.clip(schema, rows, learned)
    fit = TableFit(kind, request, schema, None)
    last = (learned.facts, name, found.n_rows, checkpoint, resume)
    final = _FinalFit(source, usable, known, fit, rows, *last)
    training = _describe_training(found, learned, rows, name)
    about = FoundRows(rows, known, concerns, tails, name, training, final)
    return fit_found(fit, about, tell, started)


@dataclass(frozen=True)
class _FinalFit:
    """The last fit: of linear rankers to all rows of a source, of others to the sample."""

    source: TableSource
    usable: UsableRows
    target: Target
    fit: TableFit
    rows: TrainingRows
    facts: ColumnFacts
    name: str
    n_rows: int
    checkpoint: str | PathLike[str] | None
    resume: bool

    def __call__(self, template: BaseEstimator) -> tuple[Preparation, BaseEstimator, FloatArray]:
        """Return the preparation, the fitted ranker and the numbers of the sample."""
        fit, rows = self.fit, self.rows
        preparation = Preparation(fit.kind.style, fit.request.random_state)
        preparation = preparation.finish(fit.schema, self.facts)
        Z = preparation.transform(rows.X)
        if self.name not in OF_ALL_ROWS:
            counts = {} if rows.weight is None else {"sample_weight": rows.weight}
            return preparation, fit.fit_ranker(clone(template), Z, rows, counts), Z
        prepare = PrepareRows(self.usable, fit.schema, self.target, preparation)
        with self.source.numbers(prepare, self.n_rows, len(preparation.names)) as numbers:
            ranker = clone(template).fit_blocks(
                numbers, checkpoint=self.checkpoint, resume=self.resume
            )
        for extra in ("passes_", "feature_names_in_"):
            if hasattr(ranker, extra):
                delattr(ranker, extra)
        return preparation, ranker, Z


def _check_kept(checkpoint: str | PathLike[str] | None, resume: bool, name: str) -> None:
    """Refuse to keep the passes of a fit that makes none, or to go on with nobody knows which."""
    check_resume(checkpoint, resume)
    if checkpoint is not None and name not in OF_ALL_ROWS:
        raise ModelError(
            f"checkpoint={str(checkpoint)!r} keeps the passes of a fit to all rows, and "
            f"model={name!r} is fitted to a sample of them in memory. Leave it out, or choose one "
            f"of {', '.join(map(repr, OF_ALL_ROWS))}."
        )


def _check_names(
    source: TableSource,
    target: str,
    roles: dict[str, str | None],
    drop: Sequence[str],
    reading: dict[str, tuple[str, ...]],
) -> None:
    """Refuse columns that are not there, or have two roles."""
    if not hasattr(source, "numbers") or not hasattr(source, "names"):
        raise ModelError(
            f"The source is a {type(source).__name__}; expected one from blocks.from_tables. A "
            "table in memory needs none: use fit_table."
        )
    role_of = roles_by_column(target, roles)
    wanted = [(role, name) for name, role in role_of.items()]
    wanted += [("drop", name) for name in drop]
    wanted += [(option, name) for option, names in reading.items() for name in names]
    for role, name in wanted:
        if name not in source.names:
            shown = ", ".join(map(repr, source.names[:20]))
            raise ModelError(f"{role}={name!r}: the table has no such column; it has {shown}.")
        if role in reading and name in role_of and not (role == "tidy" and name == target):
            raise ModelError(f"{role}={name!r}: that column is not a feature.")


def _check_rows(found: Described, target: str, skip: bool) -> None:
    if found.unlabelled and (not skip or found.unlabelled == found.total):
        raise ModelError(missing_labels(target, found.unlabelled, found.total))
    if not found.n_rows:
        raise ModelError("The table has no rows of positive weight.")


def _join_tables(parts: Sequence[Frame]) -> Frame:
    """The sampled rows as one table, in their order."""
    arrow = require("pyarrow", "frames")
    filled = [part for part in parts if frames.n_rows(part)] or list(parts[:1])
    return arrow.concat_tables(filled, promote_options="permissive").combine_chunks()


class _TailClipper:
    """Clips the long tails of linear rankers by all rows, and of others by the sample."""

    def __init__(self, source: TableSource, usable: UsableRows, target: Target, kind: RankerKind):
        self.source, self.usable, self.target, self.kind = source, usable, target, kind

    def clip(
        self, schema: Schema, rows: TrainingRows, learned: Learned
    ) -> tuple[Schema, TrainingRows, dict[str, LongTail], Learned]:
        """The schema, the sample, the tails and what was learned, once tails are clipped."""
        if self.kind.style != "linear":
            schema, rows, tails = clip_tails(self.kind, schema, rows)
            return schema, rows, tails, learned
        columns = [c for c in schema.columns if c.name in learned.moments]
        read = ReadColumns(self.usable)
        tails = find_tails_in_blocks(self.source, read, columns, learned.moments)
        if not tails:
            return schema, rows, {}, learned
        ends = {name: (tail.low, tail.high) for name, tail in tails.items()}
        clipped = tuple(replace(c, clip=ends.get(c.name, c.clip)) for c in schema.columns)
        schema = replace(schema, columns=clipped)
        X = {n: np.clip(x, *ends[n]) if n in ends else x for n, x in rows.X.items()}
        sweep = LearnClipped(self.usable, schema, self.target, self.kind.style)
        facts, counts = self.source.map_reduce(sweep, None)
        return schema, replace(rows, X=X), tails, replace(learned, facts=facts, counts=counts)


def _describe_training(
    found: Described, learned: Learned, rows: TrainingRows, name: str
) -> JsonObject:
    """What the card says of the training rows: of all of them, and of the sample."""
    told: JsonObject = {"sketch": learned.counts.sketch().as_dict()}
    if len(rows) == found.n_rows:
        return told
    told |= {"rows": found.n_rows, "positives": learned.positives, "sample": len(rows)}
    if rows.weight is not None:
        told["weight"] = learned.weight
    told["fitted_to"] = found.n_rows if name in OF_ALL_ROWS else len(rows)
    return told

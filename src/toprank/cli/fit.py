"""`toprank fit`: from a table to a model in a file."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli.clusters import Cluster, open_cluster
from toprank.cli.io.source import Reading, Source
from toprank.cli.io.tables import open_table
from toprank.cli.memory import (
    Memory,
    beyond_in_words,
    fits_in_memory,
    parse_memory,
    place_in_blocks,
    rows_of_block,
    rows_of_sample,
    size_in_memory,
)
from toprank.cli.options import (
    AsNumber,
    AsText,
    Clip,
    Drop,
    Groups,
    Hidden,
    Jobs,
    Json,
    KeepTails,
    MaxColumns,
    Pool,
    Positive,
    Propensity,
    Quiet,
    RowId,
    Seed,
    SkipUnlabelled,
    Tidy,
    TimeColumn,
    Train,
    Unlabelled,
    Weight,
    check_output,
    metric_names,
    parse_hidden,
    parse_k,
    reads,
)
from toprank.cli.show import show_card
from toprank.cli.terminal import Failure, note, print_json, progress, usual_jobs, worker_threads
from toprank.cli.training_tables import (
    check_training,
    find_positive,
    find_positive_by,
    keep_labelled,
    read_training,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank._arrays import JsonObject
    from toprank.models.model import TableModel


class Quality(StrEnum):
    """How much work an ensemble is."""

    fast = "fast"
    good = "good"
    best = "best"


class Kind(StrEnum):
    """The rankers that can be fitted to a table."""

    auto = "auto"
    pnorm = "pnorm"
    ir = "ir"
    rankboost = "rankboost"
    smooth_margin = "smooth-margin"
    trees = "trees"
    proper = "proper"


@reads
def fit(
    train: Train,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File of the model; replaced if it is there.")
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", "-y", help="Column of the labels; with --from, the model's."),
    ] = None,
    positive: Positive = None,
    model: Annotated[
        Kind | None,
        typer.Option(
            help="The best of several kinds, weighed (auto); linear with the P-Norm Push (pnorm), "
            "the IR Push (ir) or a proper loss (proper); boosted stumps (rankboost, "
            "smooth-margin); trees under the push.",
            show_default="auto, or pnorm where --p or --alpha is given",
        ),
    ] = None,
    quality: Annotated[
        Quality, typer.Option(help="How much work --model auto is: fast, good or best.")
    ] = Quality.good,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="How long --model auto may take: members that would not end in time are left out."
        ),
    ] = None,
    p: Annotated[
        str, typer.Option(help="How hard to push: a number from 1 on, or auto to let folds choose.")
    ] = "auto",
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Penalty of the linear rankers.",
            show_default="chosen with p where p is auto, else 0.001",
        ),
    ] = None,
    id: RowId = None,
    time: TimeColumn = None,
    weight: Weight = None,
    groups: Groups = None,
    propensity: Propensity = None,
    unlabelled: Unlabelled = None,
    hidden: Hidden = None,
    drop: Drop = None,
    as_text: AsText = None,
    as_number: AsNumber = None,
    clip: Clip = None,
    tidy: Tidy = None,
    pool: Pool = None,
    keep_tails: KeepTails = False,
    skip_unlabelled: SkipUnlabelled = False,
    metric: Annotated[
        str,
        typer.Option(help="Metric that p is chosen by.", autocompletion=metric_names),
    ] = "precision_at",
    k: Annotated[
        str | None, typer.Option(help="Its length of the top: a count (100) or a share (0.01).")
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option("--from", help="Model to start from: the same columns and settings."),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    max_columns: MaxColumns = 5_000,
    memory: Memory = None,
    cluster: Cluster = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps what passes over rows in blocks find (pnorm, ir, proper): "
            "after a crash the same command goes on from there, to the same model.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Learn to rank from a table, and write the model to a file.

    Numbers, dates, categories, texts and missing values are prepared, and the preparation travels
    in the model. A fifth of the rows is held out to say how good the top of the list is; the
    model itself is then fitted to all rows.

    Parquet files that are too large for memory are read in blocks. Linear models (pnorm, ir,
    proper) are then fitted to all rows all the same; the others to a sample of them, and what is
    measured is measured on a sample: the output says of how many rows.
    """
    check_output(output, read=[train])
    roles = {"id": id, "time": time, "weight": weight, "groups": groups, "propensity": propensity}
    columns = {"drop": drop, "as_text": as_text, "as_number": as_number, "clip": clip, "tidy": tidy}
    columns["pool"] = pool
    name = _model_name(model, p, alpha, start)
    options = {
        **roles,
        **{name: tuple(names or ()) for name, names in columns.items()},
        "model": name,
        "p": _parse_power(p, start is not None),
        "alpha": alpha,
        "metric": metric,
        "k": None if k is None else parse_k(k),
        "quality": quality.value,
        "max_seconds": _parse_minutes(minutes),
        "random_state": seed,
        "keep_tails": keep_tails,
    }
    open_labels = {"unlabelled": unlabelled, "hidden": parse_hidden(hidden, unlabelled)}
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_model

    before = None if start is None else load_model(start)
    task = _FitTask(
        _find_target(target, before),
        positive,
        {**options, **open_labels},
        before,
        skip_unlabelled,
        jobs,
        quiet,
    )
    named = (task.target, roles, columns, max_columns)
    with open_table(train, reading, quiet) as source:
        if before is not None:
            source.remember(Reading.remembered(before.card))
        in_blocks = cluster is not None or not fits_in_memory(source, memory, quiet)
        if in_blocks:
            check_training(source, *named)
            plan = _BlockPlan(source, memory, cluster, checkpoint, name, quiet)
            fitted = task.fit_blocks(plan)
        else:
            if checkpoint is not None:
                note("--checkpoint: the rows are read into memory, and nothing is kept.", quiet)
            rows = read_training(source, *named)
        known = source.describe_reading()
    if not in_blocks:
        fitted = task.fit_rows(rows)
    _hand_over(fitted, known, output, as_json, quiet)


def _find_target(target: str | None, before: TableModel | None) -> str:
    """The column of the labels: the one named, or that of the model to start from."""
    if target is None and before is None:
        raise Failure("--target is missing: name the column of the labels.")
    return str(target if before is None or target is not None else before.schema.target)


def _hand_over(
    fitted: TableModel, known: JsonObject, output: Path, as_json: bool, quiet: bool
) -> None:
    """Write the model, with what is known of the text it was read from, and show its card."""
    from toprank.cli.scoring import import_skops
    from toprank.models.read_card import readable_card

    if known:
        fitted = fitted.with_card({**fitted.card, "reading": known})
    import_skops()
    fitted.save(output)
    _say_concerns(fitted.card["look"], quiet)
    if as_json:
        print_json({"file": str(output), **readable_card(fitted.card)})
    elif not quiet:
        show_card(fitted, output)


@dataclass(frozen=True)
class _FitTask:
    """What is to be learned, whether the rows are in memory or in blocks."""

    target: str
    positive: str | None
    options: dict[str, Any]
    before: TableModel | None
    skip_unlabelled: bool
    jobs: int | None
    quiet: bool

    def fit_rows(self, rows: pa.Table) -> TableModel:
        """Fit to rows in memory."""
        from toprank.models import fit_table

        positive = self.positive
        if self.options["unlabelled"] is None:
            rows = keep_labelled(rows, self.target, self.skip_unlabelled)
            if self.before is None:
                tidy = self.target in self.options["tidy"]
                positive = find_positive(rows, self.target, positive, tidy)
        with (
            progress("Reading", self.quiet) as step,
            warnings.catch_warnings(),
            worker_threads(usual_jobs(self.jobs, rows.num_rows)),
        ):
            _leave_to_concerns()
            given = {**self.options, "from_model": self.before, "progress": step}
            return fit_table(rows, self.target, positive=positive, **given)

    def fit_blocks(self, plan: _BlockPlan) -> TableModel:
        """Fit to rows in blocks; refuse what needs all of them at once."""
        _refuse_in_blocks("--from", self.before)
        options = {**self.options, "skip_unlabelled": self.skip_unlabelled}
        for name in ("propensity", "unlabelled"):
            _refuse_in_blocks(f"--{name}", options.pop(name))
        del options["hidden"]
        return plan.fit(self.target, self.positive, self.jobs, options)


def _leave_to_concerns() -> None:
    """Let warnings of columns that give the answer away be: they are said with the concerns."""
    from toprank.models import ModelWarning

    warnings.filterwarnings("ignore", ".* leave it out: drop=", ModelWarning)


def _refuse_in_blocks(option: str, given: object) -> None:
    if given is not None:
        raise Failure(
            f"{option} needs the table in memory, and it is read in blocks: give more --memory, or "
            f"leave {option} out."
        )


@dataclass(frozen=True)
class _BlockPlan:
    """A fit in blocks: of a table that is too large for memory, or on a cluster."""

    source: Source
    memory: str | None
    cluster: str | None
    checkpoint: Path | None
    model: str | None
    quiet: bool

    def fit(
        self, target: str, positive: str | None, jobs: int | None, options: dict[str, Any]
    ) -> TableModel:
        """Fit the model, and say which rows it was fitted to."""
        from toprank import blocks
        from toprank.models import fit_table_blocks
        from toprank.models.block_fit import OF_ALL_ROWS

        place = place_in_blocks(self.source)
        linear = self.model in OF_ALL_ROWS
        if self.checkpoint is not None and not linear:
            raise Failure(
                f"--checkpoint keeps the passes of a fit to all rows, and --model {self.model} is "
                f"fitted to a sample: leave it out, or choose --model {', '.join(OF_ALL_ROWS)}."
            )
        sample = rows_of_sample(self.source, self.memory, linear)
        self._say(linear, sample)
        with ExitStack() as stack:
            where = None
            if self.cluster is not None:
                where = stack.enter_context(open_cluster(self.cluster))
            rows = blocks.from_tables(
                place,
                columns=list(self.source.columns),
                block_rows=rows_of_block(self.source, self.memory),
                cluster=where,
            )
            step = stack.enter_context(progress("Reading", self.quiet))
            stack.enter_context(warnings.catch_warnings())
            stack.enter_context(worker_threads(jobs))
            _leave_to_concerns()
            return find_positive_by(
                lambda chosen: fit_table_blocks(
                    rows,
                    target,
                    positive=chosen,
                    sample_rows=sample,
                    checkpoint=self.checkpoint,
                    resume=self.checkpoint is not None,
                    progress=step,
                    **options,
                ),
                target,
                positive,
            )

    def _say(self, linear: bool, sample: int) -> None:
        """Say which way is taken, and which rows the model is fitted to."""
        n = self.source.count_rows()
        why = f"on the cluster {self.cluster}"
        if self.cluster is None:
            size, allowed = size_in_memory(self.source), parse_memory(self.memory)
            why = f"in blocks: they would take {beyond_in_words(size, allowed)}"
        text = f"{self.source.name}: {n} rows are read {why}."
        if n <= sample:
            text += " The model is that of a fit in memory."
        elif linear:
            text += (
                f" The model is fitted to all rows; p is chosen, and the model measured, on a "
                f"sample of about {sample}."
            )
        else:
            text += (
                f" --model {self.model} is fitted to, and measured on, a sample of about {sample} "
                "rows; --model pnorm is fitted to all rows."
            )
        note(text, self.quiet)


def _model_name(model: Kind | None, p: str, alpha: float | None, start: Path | None) -> str | None:
    """The kind of ranker; None leaves it to the model that the fit starts from."""
    if model is not None or start is not None:
        return None if model is None else model.value
    return Kind.auto.value if p == "auto" and alpha is None else Kind.pnorm.value


def _say_concerns(found: list[JsonObject], quiet: bool) -> None:
    """Say on stderr what may be wrong with the table, the most dangerous first."""
    for concern in found:
        if concern["danger"] < 4:
            warning = "CAREFUL: " if concern["danger"] == 1 else ""
            option = f"\n{concern['option']}" if concern["option"] else ""
            note(f"{warning}{concern['message']}.{option}", quiet)


def _parse_minutes(minutes: float | None) -> float | None:
    """The time allowed, in seconds."""
    if minutes is not None and not minutes > 0:
        raise Failure(f"--minutes {minutes:g}: expected a number of minutes above 0, such as 10.")
    return None if minutes is None else 60.0 * minutes


def _parse_power(text: str, warm: bool) -> float | str | None:
    """The power as the library takes it; None leaves it to the model that the fit starts from."""
    if text == "auto":
        return None if warm else "auto"
    try:
        return float(text)
    except ValueError:
        raise Failure(f"--p {text!r}: expected auto, or a number from 1 on.") from None

"""The pages of `toprank report`: of models on a table with labels, or of a table to learn from."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toprank._extras import require
from toprank.cli.io.folder import place_of_files
from toprank.cli.io.source import Reading
from toprank.cli.io.tables import check_exists, open_table
from toprank.cli.memory import jobs_within, read_within
from toprank.cli.terminal import Failure, progress, worker_threads
from toprank.cli.training_tables import check_training, find_positive, keep_labelled, read_training

if TYPE_CHECKING:
    import pyarrow as pa

    from toprank.report import Report


class TableLimits(NamedTuple):
    """What a table may take: columns, memory; and the cluster whose workers read it."""

    columns: int
    memory: str | None
    cluster: str | None


@dataclass(frozen=True)
class WantedPage:
    """What every page is asked for.

    Attributes
    ----------
    top : int
        How many rows the top of the list has.
    columns : dict
        Columns by their roles: ``id``, ``weight``, ``groups``.
    shown : dict
        What else the page shows: money, the order of today, groups and periods.
    skip_unlabelled : bool
        Whether rows without a label are left out.
    within : TableLimits
    reading : Reading
    quiet : bool
    """

    top: int
    columns: dict[str, str | None]
    shown: dict[str, Any]
    skip_unlabelled: bool
    within: TableLimits
    reading: Reading
    quiet: bool


@dataclass(frozen=True)
class WantedFit:
    """How a table is learned from.

    Attributes
    ----------
    target : str
    positive : str or None
    time : str or None
        Column that orders the folds.
    lists : dict
        Columns by the option that names them, such as ``drop`` and ``as_text``.
    kind : dict
        ``model`` and ``quality``, where they are given.
    keep_tails : bool
    seed : int
    jobs : int or None
    """

    target: str
    positive: str | None
    time: str | None
    lists: dict[str, list[str] | None]
    kind: dict[str, str]
    keep_tails: bool
    seed: int
    jobs: int | None


def _string_type() -> pa.DataType:
    return require("pyarrow", "frames").string()


def is_model(path: Path) -> bool:
    """Whether a file is a model: a zip with a card, which no workbook has."""
    if str(path) == "-" or place_of_files(path) is not None:
        return False
    check_exists(path)
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return "card.json" in archive.namelist()


def sort_files(files: Sequence[Path], test: Path | None) -> tuple[list[Path], Path, Path | None]:
    """The models among the files, the table to learn from, and the table to measure on."""
    kinds = [is_model(path) for path in files]
    models = [path for path, known in zip(files, kinds, strict=True) if known]
    tables = [path for path, known in zip(files, kinds, strict=True) if not known]
    if not models:
        if len(files) > 1:
            raise Failure("name one table to learn from; a table to measure on is named by --test.")
        return [], files[0], test
    if len(tables) > 1 or (tables and test is not None):
        raise Failure("name one table to measure the models on.")
    if tables and kinds[-1]:
        raise Failure("name the models first, and then the table to measure them on.")
    return models, files[0], tables[0] if tables else test


def _read_learned_table(
    path: Path,
    named: tuple[str, Mapping[str, str | None], Mapping[str, Sequence[str] | None], int],
    wanted: WantedPage,
) -> tuple[pa.Table, str]:
    """The rows of a table to learn from, or some of many, and what to say of that."""
    within = wanted.within
    with open_table(path, wanted.reading, wanted.quiet) as source:
        check_training(source, *named)
        if source.place is not None or within.cluster is not None:
            return read_within(source, None, within.memory, "made from", within.cluster)
        return read_training(source, *named), ""


def _read_table(
    path: Path,
    named: Mapping[str, str | Sequence[str] | None],
    wanted: WantedPage,
    known: Reading | None = None,
    types: Mapping[str, pa.DataType] | None = None,
) -> tuple[pa.Table, str]:
    """A table, whose columns are named by options, and what is said where it is a sample.

    `known` is what a model remembers of its own, `types` are those of columns of text.
    """
    within = wanted.within
    with open_table(path, wanted.reading, wanted.quiet) as source:
        if known is not None:
            source.remember(known)
        source.check_width(within.columns)
        columns: dict[str, str] = {}
        of_model = {"target": "the target of the model"} if known is not None else {}
        for option, name in named.items():
            for one in [name] if isinstance(name, str) else name or ():
                columns[one] = of_model.get(option, f"--{option}")
        source.check_columns(columns)
        here = {name: kind for name, kind in (types or {}).items() if name in source.columns}
        return read_within(source, None, within.memory, "measured on", within.cluster, here)


def describe_models(
    paths: list[Path], test: Path | None, sure: Path | None, wanted: WantedPage
) -> Report:
    """The page of models, measured on a table where one is named.

    `sure` is the training table of the first, for refits.
    """
    # the library is loaded here, because --help need not wait for it
    from toprank.cli.scoring import load_by_name, text_types
    from toprank.report import describe

    models = load_by_name(paths)
    files = dict(zip(models, map(str, paths), strict=True))
    if test is None:
        _refuse_without_labels({**wanted.columns, **wanted.shown, "sure": sure})
        return describe(models, k=wanted.top, files=files)
    named = {name: wanted.shown[name] for name in ("today", "by")}
    named |= {name.replace("_", "-"): wanted.shown[name] for name in ("by_group", "per_entity")}
    first = next(iter(models.values()))
    target = {"target": first.target.column}
    how = (wanted, Reading.remembered(first.card), text_types(models.values()))
    rows, sampled = _read_table(test, {**wanted.columns, **named, **target}, *how)
    rows = keep_labelled(rows, first.target.column, wanted.skip_unlabelled)
    train = None if sure is None else _read_table(sure, target, *how)[0]
    options: dict[str, Any] = {**wanted.columns, **wanted.shown, "train": train}
    options["notes"] = (sampled,) if sampled else ()
    options |= {"k": wanted.top, "files": files, "data": str(test)}
    with progress("Scoring", wanted.quiet) as step:
        return describe(models, rows, progress=step, **options)


def _refuse_without_labels(given: Mapping[str, object]) -> None:
    """Refuse what only a table with labels can answer."""
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise Failure(f"{option} needs a table with labels to measure the model on.")


def describe_fit(table: Path, test: Path | None, fit: WantedFit, wanted: WantedPage) -> Report:
    """The page of the model that `fit` writes of a table: on `test`, or on rows held out."""
    target, roles = fit.target, wanted.columns | {"time": fit.time}
    shown = {name: wanted.shown[name] for name in ("today", "by_group", "by", "per_entity")}
    used = roles | {name.replace("_", "-"): column for name, column in shown.items()}
    named = (target, used, fit.lists, wanted.within.columns)
    rows, sampled = _read_learned_table(table, named, wanted)
    rows = keep_labelled(rows, target, wanted.skip_unlabelled)
    chosen = find_positive(rows, target, fit.positive, target in (fit.lists["tidy"] or ()))
    kind = {"model": "auto", **fit.kind}  # as 'toprank fit' does
    given: dict[str, Any] = {"random_state": fit.seed, "keep_tails": fit.keep_tails, **roles}
    given |= {name: tuple(names or ()) for name, names in fit.lists.items()}
    given["positive"] = chosen
    notes = (sampled,) if sampled else ()
    jobs = jobs_within(fit.jobs, rows.num_rows, rows.num_columns, wanted.within.memory)
    with worker_threads(jobs):
        if test is None:
            return _build(rows, target, {**given, "fit": kind, "notes": notes}, wanted)
        texts = dict.fromkeys((*given["as_text"], *given["as_number"]), _string_type())
        tested, also = _read_table(test, {"target": target}, wanted, None, texts)
        tested = keep_labelled(tested, target, wanted.skip_unlabelled)
        notes = (*notes, also) if also else notes
        return _fit_and_describe(rows, target, given | kind, (tested, test, notes), wanted)


def _build(rows: pa.Table, target: str, options: dict[str, Any], wanted: WantedPage) -> Report:
    from toprank.report import build

    with progress("Reading", wanted.quiet) as step:
        return build(rows, target, k=wanted.top, progress=step, **options, **wanted.shown)


def _fit_and_describe(
    rows: pa.Table,
    target: str,
    options: dict[str, Any],
    measured: tuple[pa.Table, Path, tuple[str, ...]],
    wanted: WantedPage,
) -> Report:
    """The model that `fit` writes of a table, measured on another one."""
    from toprank.models import fit_table
    from toprank.report import describe

    tested, test, notes = measured
    today = wanted.shown["today"]
    options = options | {"drop": (*options["drop"], *([] if today is None else [today]))}
    with progress("Fitting", wanted.quiet) as step:
        model = fit_table(rows, target, progress=step, **options)
    own = "This is the model that 'toprank fit' writes of the table to learn from."
    how = {**wanted.columns, **wanted.shown, "notes": (own, *notes)}
    with progress("Scoring", wanted.quiet) as step:
        return describe(model, tested, k=wanted.top, data=str(test), progress=step, **how)

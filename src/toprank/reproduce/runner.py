"""Load the data, run experiments, keep their results, and write the page."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np

from toprank._extras import require
from toprank._files import check_folder, replace_file
from toprank._version import __version__
from toprank.datasets import fetch, load_ionosphere, load_magic, load_spambase, load_wdbc
from toprank.reproduce import (
    boosting,
    margin_theorems,
    push_examples,
    push_tables,
    regret_theorems,
    roc_curves,
    simulated,
)
from toprank.reproduce.experiment import Experiment, Progress, Result, Setup, Table, silent
from toprank.reproduce.page import (
    Bullets,
    Grid,
    Paragraph,
    Part,
    Picture,
    Section,
    to_html,
    to_markdown,
)

if TYPE_CHECKING:
    from sklearn.utils import Bunch


_FAMILIES = (
    *(push_examples, push_tables, roc_curves, simulated, boosting),
    *(margin_theorems, regret_theorems),
)
_KNOWN: dict[str, Experiment] = {
    one.name: one for family in _FAMILIES for one in family.EXPERIMENTS
}
#: Every experiment, in the order of the papers.
NAMES: tuple[str, ...] = (
    *("table1", "table2", "figure1", "figure3", "figure4"),
    *("table3", "figure5", "table4", "figure6", "table5", "figure7", "figure8"),
    *("colt-pima", "colt-wdbc", "colt-wdbc-benign", "colt-housing", "colt-limits"),
    *("one-dimension", "margin-bound", "margin-8x8", "lemma-20", "smooth-margin"),
    *("equivalence", "labels", "regret", "low-noise", "pairwise", "rates"),
)
TITLE = "The papers' results, again"
PAPERS = (
    "Tables, Figures: C. Rudin (2009), The P-Norm Push, Journal of Machine Learning Research 10.",
    "COLT: C. Rudin (2006), Ranking with a P-Norm Push, Conference on Learning Theory.",
    "C. Rudin and R. Schapire (2009), Margin-based Ranking and an Equivalence between AdaBoost and "
    "RankBoost, Journal of Machine Learning Research 10.",
    "S. Agarwal (2012), Surrogate Regret Bounds for Bipartite Ranking via Strongly Proper Losses.",
    "S. Clémençon, G. Lugosi and N. Vayatis (2006), Ranking and Empirical Minimization of "
    "U-statistics.",
)
#: Verdicts of cells that do not agree.
_AWAY = ("outside", "different")


@dataclass(frozen=True)
class Reproduction:
    """What `run` wrote.

    Attributes
    ----------
    markdown, html : Path
        The page in both formats.
    results : dict from str to dict
        What each experiment found, as in the JSON files.
    """

    markdown: Path
    html: Path
    results: dict[str, Result]


def run(
    names: str | Iterable[str] = "all",
    output_folder: str | Path = "reproduce",
    *,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    data_folder: str | Path | None = None,
    again: bool = False,
) -> Reproduction:
    """Compute tables and figures of the papers and write a page with ours beside theirs.

    The folder gets ``reproduce.md``, ``reproduce.html`` (one file, pictures inside), the pictures
    in ``images`` and every number in ``results/NAME.json``. An experiment whose result is there
    already, with the same version, settings, seed and data, is not computed again. The same seed
    gives the same numbers to the last digit, whatever n_jobs.

    Parameters
    ----------
    names : str or iterable of str, default="all"
        Experiments of `NAMES`, or "all".
    output_folder : str or path, default="reproduce"
        Made if it is not there.
    quick : bool, default=False
        Few repeats, about two minutes for everything; ranges are then rough.
    seed : int, default=0
        Seed of everything random.
    n_jobs : int, optional
        Processes; by default one for each core.
    progress : callable, optional
        Called with (name of the experiment, items done, items to do).
    data_folder : str or path, optional
        Folder with NAME.csv.gz of data sets that toprank does not ship (housing, pima); by default
        that of the environment variable TOPRANK_DATA. Otherwise they are fetched from OpenML; the
        section of an experiment whose data cannot be fetched says so.
    again : bool, default=False
        Compute also what is there already.

    Returns
    -------
    Reproduction
        Where the page is, and what was found.

    Examples
    --------
    >>> import tempfile
    >>> from toprank.reproduce import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = run(["table1", "table2"], folder, quick=True, n_jobs=1)
    >>> [cell["verdict"] for cell in report.results["table1"]["cells"]][:3]
    ['equal', 'equal', 'equal']
    """
    wanted = _check_names(names)
    if any(_KNOWN[name].draw for name in wanted):
        require("matplotlib", "plots")  # before the computation, not after it
    folder = Path(output_folder)
    for place in (folder, folder / "images", folder / "results"):
        place.mkdir(parents=True, exist_ok=True)
        check_folder(place)  # before the computation, not after it
    jobs = joblib.cpu_count() if n_jobs is None else n_jobs
    where = None if data_folder is None else Path(data_folder)
    results, sections = {}, []
    for name in wanted:
        experiment = _KNOWN[name]
        settings = dict(experiment.quick if quick else experiment.full)
        try:
            data = {one: load_data(one, where) for one in experiment.data}
        except DataMissing as missing:
            results[name] = {"name": name, "not_run": str(missing)}
            sections.append(Section(name, experiment.title, [Paragraph(str(missing))]))
            continue
        setup = Setup(name, settings, seed, data, jobs, progress or silent)
        results[name] = _result(experiment, setup, folder, again)
        sections.append(_section(experiment, results[name], folder))
    return _write_page(folder, sections, results, quick=quick, seed=seed)


def _check_names(names: str | Iterable[str]) -> Sequence[str]:
    asked = [names] if isinstance(names, str) else list(names)
    if "all" in asked:
        return NAMES
    unknown = [name for name in asked if name not in NAMES]
    if unknown or not asked:
        what = f"unknown experiment {unknown[0]!r}" if unknown else "no experiment was named"
        raise ValueError(f"{what}; known: {', '.join(NAMES)}, or 'all'.")
    return [name for name in NAMES if name in asked]


def _result(experiment: Experiment, setup: Setup, folder: Path, again: bool) -> Result:
    """The result of an experiment, from its file if that is of the same making."""
    path = folder / "results" / f"{experiment.name}.json"
    making = {
        "name": experiment.name,
        "version": __version__,
        "seed": setup.seed,
        "settings": setup.settings,
        "data": {name: fingerprint(table) for name, table in setup.data.items()},
    }
    making = json.loads(json.dumps(making))
    if not again and path.is_file():
        kept = _read_result(path)
        if all(kept.get(key) == value for key, value in making.items()):
            return kept
    found = json.loads(json.dumps(making | experiment.compute(setup), allow_nan=False))
    with replace_file(path) as file:
        file.write((json.dumps(found, indent=1) + "\n").encode())
    return found


def _read_result(path: Path) -> dict[str, object]:
    """A result file, or nothing where it cannot be read."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _section(experiment: Experiment, result: Result, folder: Path) -> Section:
    parts = list(experiment.describe(result))
    if experiment.draw is not None:
        file = f"images/reproduce_{experiment.name.replace('-', '_')}.png"
        with replace_file(folder / file) as target:
            experiment.draw(result).savefig(target, format="png", dpi=80)
        parts.append(Picture(file, experiment.alt))
    return Section(experiment.name, experiment.title, parts)


def _write_page(
    folder: Path, sections: Sequence[Section], results: dict[str, Result], *, quick: bool, seed: int
) -> Reproduction:
    opening = _opening_parts(results, quick, seed)
    report = Reproduction(folder / "reproduce.md", folder / "reproduce.html", results)
    with replace_file(report.markdown) as file:
        file.write(to_markdown(TITLE, opening, sections).encode())
    with replace_file(report.html) as file:
        file.write(to_html(TITLE, opening, sections, folder).encode())
    return report


def _opening_parts(results: dict[str, Result], quick: bool, seed: int) -> list[Part]:
    command = " ".join(
        [
            "toprank reproduce",
            "all" if len(results) == len(NAMES) else " ".join(results),
            "-o FOLDER",
            *(["--quick"] if quick else []),
            *([f"--seed {seed}"] if seed else []),
        ]
    )
    return [
        Paragraph(
            f"Made by `{command}` with toprank {__version__}. Nothing on this page is written by "
            "hand: run the command and every number comes out again, to the last digit on the same "
            "machine."
        ),
        Paragraph(
            "Our numbers are what they are. Where a paper prints one run, ours is a distribution "
            "over many, and a number of the paper that lies outside its central 99% is marked. A "
            "claim is a sentence of the paper; whether it holds is decided by our numbers."
        ),
        Bullets(PAPERS),
        Grid(["", "cells of the paper", "claims that hold"], _summary(results)),
        *_differences(results),
    ]


def _differences(results: dict[str, Result]) -> list[Part]:
    """What was found out about the papers, and every cell and claim that does not agree."""
    items = []
    for name, result in results.items():
        if "not_run" in result:
            continue
        if _KNOWN[name].finding:
            items.append(f"`{name}`: {_KNOWN[name].finding}")
        away = [cell for cell in result.get("cells", []) if cell["verdict"] in _AWAY]
        items += [f"`{name}`: {cell['row']} at {cell['column']} is out of range." for cell in away]
        failed = [one for one in result["claims"] if not one["holds"]]
        items += [f"`{name}`: not borne out: {one['claim']} {one['detail']}" for one in failed]
    return [Paragraph("Where the papers and our numbers differ:"), Bullets(items)] if items else []


def _summary(results: dict[str, Result]) -> list[list[str]]:
    rows = []
    for name, result in results.items():
        if "not_run" in result:
            rows.append([f"`{name}`", "not run", "not run"])
            continue
        cells, claims = result.get("cells", []), result["claims"]
        good = sum(cell["verdict"] not in _AWAY for cell in cells)
        rows.append(
            [
                f"`{name}`",
                f"{good} of {len(cells)} agree" if cells else "",
                f"{sum(one['holds'] for one in claims)} of {len(claims)}",
            ]
        )
    return rows


#: Names a folder with files NAME.csv.gz: a header, numbers, the label 0 or 1 last.
FOLDER_VARIABLE = "TOPRANK_DATA"

SHIPPED: dict[str, Callable[..., Bunch | tuple[Any, Any]]] = {
    "ionosphere": load_ionosphere,
    "magic": load_magic,
    "spambase": load_spambase,
    "wdbc": load_wdbc,
}


class DataMissing(Exception):
    """A data set that is neither here nor can be fetched; the message says what to do."""


def load_data(name: str, folder: Path | None = None) -> Table:
    """Return features and labels 0 and 1 of a data set.

    Parameters
    ----------
    name : str
        Its name.
    folder : Path, optional
        Where to look for NAME.csv.gz first; by default the folder that the environment variable
        TOPRANK_DATA names, if it does.

    Returns
    -------
    tuple of X, y
        Read from the folder, else from the package, else from OpenML (and its cache).

    Raises
    ------
    DataMissing
        If it is in none of these places.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    for place in (folder, Path(named) if named else None):
        if place is not None and (place / f"{name}.csv.gz").is_file():
            return _read_labelled_table(place / f"{name}.csv.gz")
    if name in SHIPPED:
        return SHIPPED[name](return_X_y=True)
    try:
        return fetch(name, return_X_y=True)
    except (ImportError, OSError) as error:
        raise DataMissing(
            f"not run: the data set {name} is not here. Fetch it with "
            f'`toprank.datasets.fetch("{name}")`, which keeps it, where there is a network and '
            f"pandas; or put {name}.csv.gz (a header, numbers, the label 0 or 1 last) into a "
            f"folder and name the folder in the environment variable {FOLDER_VARIABLE}."
        ) from error


def fingerprint(table: Table) -> str:
    """Return a few letters that tell one data set from another."""
    digest = hashlib.sha256()
    for array in table:
        digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()[:16]


def _read_labelled_table(path: Path) -> Table:
    with gzip.open(path, "rt", encoding="ascii") as file:
        numbers = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
    labels = numbers[:, -1]
    if not np.all(np.isin(labels, (0, 1))):
        raise ValueError(f"'{path}': the last column should hold the labels 0 and 1.")
    return np.ascontiguousarray(numbers[:, :-1]), labels.astype(np.int64)

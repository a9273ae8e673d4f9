"""What an experiment is: settings, a computation, and its numbers beside the paper's.

A number of a paper becomes a cell with a verdict, a sentence of a paper a claim that holds or
does not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from toprank._arrays import JsonObject
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.reproduce.page import Bullets, Grid, Paragraph, Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What an experiment found, ready for JSON.
Result = JsonObject
#: Called with the experiment's name, what is done and what there is to do.
Progress = Callable[[str, int, int], None]
#: Features scaled to [0, 1], and labels 0 and 1.
Table = tuple[np.ndarray, np.ndarray]


def new_figure(width: float, height: float) -> Figure:
    """Return an empty matplotlib figure of this size, in inches."""
    return require("matplotlib.figure", "plots").Figure(
        figsize=(width, height), layout="constrained"
    )


def silent(name: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Setup:
    """What a computation is given: its settings, the seed, the data, and workers.

    Parameters
    ----------
    name : str
        The experiment.
    settings : mapping
        Sizes and numbers of repeats.
    seed : int
        Everything random follows from it.
    data : mapping from str to (X, y)
        The data sets that the experiment names.
    n_jobs : int
        Processes.
    progress : callable
        Called after every item.
    """

    name: str
    settings: JsonObject
    seed: int
    data: Mapping[str, Table] = field(default_factory=dict)
    n_jobs: int = 1
    progress: Progress = silent

    def map(
        self,
        function: Callable[..., object],
        calls: Iterable[Sequence[object]],
    ) -> list[Any]:
        """Call a function with each tuple of arguments, in processes; their number changes nothing.

        Returns the answers in the order of the calls.
        """
        items = list(calls)
        jobs = (joblib.delayed(_call_in_one_thread)(function, item) for item in items)
        found = []
        for one in joblib.Parallel(self.n_jobs, return_as="generator")(jobs):
            found.append(one)
            self.progress(self.name, len(found), len(items))
        return found


def _call_in_one_thread(function: Callable[..., object], arguments: Sequence[object]) -> object:
    """One thread keeps the order of sums; stopping after a fixed number of rounds is no failure."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return function(*arguments)


@dataclass(frozen=True)
class Experiment:
    """A table, a figure or a theorem of a paper, run again.

    Parameters
    ----------
    name : str
        Its name on the command line.
    title : str
        Heading of its section.
    compute : callable (Setup) -> Result
        The numbers; the same for the same settings, seed and data.
    describe : callable (Result) -> list of Part
        The section of the page, made from the result alone.
    draw : callable (Result) -> matplotlib Figure, optional
        Its picture, made from the result alone.
    alt : str
        What the picture shows, in a sentence.
    full, quick : mapping
        Settings of a full and of a quick run.
    data : tuple of str
        Names of the data sets.
    finding : str
        What was found out about the paper's numbers, for the head of the page.
    """

    name: str
    title: str
    compute: Callable[[Setup], Result]
    describe: Callable[[Result], list[Part]]
    draw: Callable[[Result], Figure] | None = None
    alt: str = ""
    full: Mapping[str, object] = field(default_factory=dict)
    quick: Mapping[str, object] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    finding: str = ""


#: The central range that a paper's single number is looked for in.
LEVEL = 0.99


def distribution_cell(row: str, column: str, values: FloatArray, paper: float) -> JsonObject:
    """Compare repeats of ours with the one number of a paper.

    Parameters
    ----------
    row, column : str
        Where the number stands.
    values : array
        Ours, one per repeat, in the paper's units.
    paper : float
        The paper's.

    Returns
    -------
    dict
        Mean and standard deviation of ours, the central range `low` to `high`, the paper's number,
        the percentage of ours below it (ties half) and the verdict "inside" or "outside".
    """
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    below = 100 * float(np.mean((values < paper) + 0.5 * (values == paper)))
    return {
        "row": row,
        "column": column,
        "mean": float(np.mean(values)),
        "spread": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        "low": float(low),
        "high": float(high),
        "paper": float(paper),
        "percentile": below,
        "verdict": "inside" if low <= paper <= high else "outside",
    }


def exact_cell(row: str, column: str, ours: float, printed: str) -> JsonObject:
    """Compare one number of ours with one of a paper, at the digits that the paper prints.

    The verdict is "equal" where ours rounds to the printed number (a half either way), and "cut"
    where its digits were cut off instead.
    """
    mantissa, _, exponent = printed.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    paper = float(printed)
    if abs(ours - paper) <= 0.5 * unit * (1 + 1e-9):
        verdict = "equal"
    else:
        verdict = "cut" if 0 <= ours - paper < unit else "different"
    return {"row": row, "column": column, "ours": ours, "paper": paper, "verdict": verdict}


def power_of_ten(ours: Sequence[float], paper: Sequence[float]) -> float:
    """The one power of ten by which a whole row of ours differs from the paper's."""
    ratio = float(np.median(np.asarray(ours) / np.asarray(paper)))
    return 10.0 ** round(math.log10(ratio))


def claim(text: str, holds: object, detail: str = "") -> JsonObject:
    """Return a sentence of a paper, and whether our numbers bear it out."""
    return {"claim": text, "holds": bool(holds), "detail": detail}


def claims_part(claims: Sequence[JsonObject]) -> Bullets:
    """Return the claims as a list, the verdict first."""
    return Bullets(
        [
            f"**{'Holds' if one['holds'] else 'Does not hold'}:** {one['claim']}"
            + (f" {one['detail']}" if one["detail"] else "")
            for one in claims
        ]
    )


def distribution_grid(cells: Sequence[JsonObject], digits: int = 4) -> Grid:
    """Return three lines per row of the paper: its numbers, ours, and where its fall in ours."""
    rows = list(dict.fromkeys(cell["row"] for cell in cells))
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
    at = {(cell["row"], cell["column"]): cell for cell in cells}
    lines = []
    for row in rows:
        here = [at[row, column] for column in columns]
        lines.append(
            [
                f"{row}, paper",
                *(_mark(cell, _format_number(cell["paper"], digits)) for cell in here),
            ]
        )
        lines.append([f"{row}, ours", *(_mean_and_spread(cell, digits) for cell in here)])
        lines.append(["percentile", *(_mark(cell, f"{cell['percentile']:.1f}") for cell in here)])
    return Grid(["", *columns], lines)


def outside(cells: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the cells whose paper's number is out of our central range."""
    return [cell for cell in cells if cell["verdict"] == "outside"]


def verdict_part(cells: Sequence[JsonObject], n_repeats: int, what: str) -> list[Part]:
    """Say how many of the paper's numbers lie in our central range, and name those that do not."""
    out = outside(cells)
    text = (
        f"**{len(cells) - len(out)} of the {len(cells)} numbers of the paper lie in the central "
        f"{LEVEL:.0%} of our {n_repeats} {what}.**"
    )
    if n_repeats < 200:
        chance = 2 / (n_repeats + 1)
        text += (
            f" With {n_repeats} {what} that range is little more than smallest to largest, and "
            f"{chance:.0%} of the numbers would lie outside by chance, "
            f"{chance * len(cells):.0f} of {len(cells)}, even if the paper's were one more of ours."
        )
    if not out:
        return [Paragraph(text)]
    named = [
        f"{cell['row']} at {cell['column']}: the paper has {_format_number(cell['paper'], 4)}, "
        f"ours are {_format_number(cell['low'], 4)} to {_format_number(cell['high'], 4)}."
        for cell in out
    ]
    return [Paragraph(text + " Outside, in bold above:"), Bullets(named)]


def _mark(cell: Mapping[str, object], text: str) -> str:
    return f"**{text}**" if cell["verdict"] == "outside" else text


def _mean_and_spread(cell: JsonObject, digits: int) -> str:
    return f"{_format_number(cell['mean'], digits)} ± {_format_number(cell['spread'], digits - 1)}"


def _format_number(value: float, digits: int) -> str:
    """A number as the tables print it: whole from 1,000 on, else with `digits` decimals."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}f}"

"""What an experiment is: settings, a computation, and a section of the page."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from toprank.reproduce.page import Part

#: What an experiment found, ready for JSON.
Result = dict[str, Any]
#: Called with the experiment's name, what is done and what there is to do.
Progress = Callable[[str, int, int], None]
#: Features scaled to [0, 1], and labels 0 and 1.
Table = tuple[np.ndarray, np.ndarray]


def silent(name: str, done: int, total: int) -> None:
    """Tell no one."""


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
        Told of every item done.
    """

    name: str
    settings: Mapping[str, Any]
    seed: int
    data: Mapping[str, Table] = field(default_factory=dict)
    n_jobs: int = 1
    progress: Progress = silent

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Apply a function to items, in processes; the answer does not depend on their number."""
        items = list(zip(*arguments, strict=True))
        calls = (joblib.delayed(_alone)(function, item) for item in items)
        found = []
        for one in joblib.Parallel(self.n_jobs, return_as="generator")(calls):
            found.append(one)
            self.progress(self.name, len(found), len(items))
        return found


def _alone(function: Callable[..., Any], item: Sequence[Any]) -> Any:
    """One item: one thread, so that sums are the same; a fixed number of rounds is no failure."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return function(*item)


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
    draw: Callable[[Result], Any] | None = None
    alt: str = ""
    full: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    finding: str = ""

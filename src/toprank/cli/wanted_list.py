"""Which list `toprank rank` is asked for, and which wishes exclude each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toprank.cli.limits import ListLimits
from toprank.cli.terminal import Failure


@dataclass(frozen=True)
class WantedList:
    """The list that the options of `toprank rank` ask for.

    Attributes
    ----------
    k : int or float
        How many rows: a count or a share.
    whole : bool
        Whether all rows are wanted.
    carried : list of str
        Columns that the list carries along.
    n_reasons : int
    per_group, per_entity : str or None
        Columns: a list for each group, one row for each entity.
    limits : ListLimits
    sure : path or None
        The training table, for refits.
    stay : path or None
        The list before, whose rows stay.
    noise : float or None
    memory, cluster : str or None
    """

    k: int | float
    whole: bool
    carried: list[str]
    n_reasons: int
    per_group: str | None
    per_entity: str | None
    limits: ListLimits
    sure: Path | None
    stay: Path | None
    noise: float | None
    memory: str | None
    cluster: str | None

    def check(self) -> None:
        """Refuse wishes that exclude each other."""
        if self.per_group is not None:
            self._check_groups()
        one_list = not (self.limits.any or self.whole or self.per_group or self.per_entity)
        if self.sure is not None and not (one_list and self.stay is None):
            raise Failure("--sure is for the first rows of one list: leave out --all and limits.")
        if self.noise is not None and self.stay is None:
            raise Failure("--noise needs --stay, the list before.")
        if self.stay is not None and (self.per_group is not None or self.whole):
            raise Failure(
                "--stay is for the first rows of one list: leave out --all and --per-group."
            )
        alone = one_list and self.sure is None and self.stay is None
        if self.cluster is not None and not alone:
            raise Failure(
                "--cluster is for the first rows of one list: leave out --all and limits."
            )

    def _check_groups(self) -> None:
        if isinstance(self.k, float) and not self.whole:
            raise Failure(
                f"--top {self.k:g}: with --per-group it is a count, of the rows of each group."
            )
        if self.limits.any:
            raise Failure(
                "--per-group makes a list for each group; for limits of one list give --limit-by "
                "with --at-most or --at-least."
            )

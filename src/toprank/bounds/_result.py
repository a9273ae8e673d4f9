"""What every bound answers: a number, whether it says anything, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """The value of a bound, with the statement it makes and the assumptions it needs.

    Parameters
    ----------
    value : float
        The bound.
    vacuous : bool
        True when the bound says nothing that was not known before: a probability or an error
        that is "at most 1.7", for instance.
    statement : str
        The inequality in words and symbols, with the paper's number.
    assumes : tuple of str
        What must hold for the statement to be true, one assumption an entry.

    Examples
    --------
    >>> from toprank.bounds._result import Bound
    >>> print(Bound(0.12, False, "ranking regret <= 0.12", ("independent rows",)))
    0.12: ranking regret <= 0.12
      assumes: independent rows
    """

    value: float
    vacuous: bool
    statement: str
    assumes: tuple[str, ...] = ()

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        verdict = " (vacuous: it says nothing that was not known before)" if self.vacuous else ""
        lines = [f"{self.value:.6g}{verdict}: {self.statement}"]
        lines += [f"  assumes: {assumption}" for assumption in self.assumes]
        return "\n".join(lines)

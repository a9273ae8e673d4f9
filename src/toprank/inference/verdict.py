"""From the spread of a paired difference to its interval and p-value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from toprank.inference.result import Comparison
from toprank.inference.sample import Spread
from toprank.inference.shares import uncontradicted


@dataclass(frozen=True)
class Verdict:
    """What is compared; its methods turn a spread into a result."""

    names: tuple[str, str]
    label: str
    level: float

    def result(
        self,
        values: Sequence[float],
        ends: tuple[float, float],
        error: float,
        chance: float,
        method: str,
        note: str = "",
    ) -> Comparison:
        """The comparison with these numbers."""
        a, b = float(values[0]), float(values[1])
        numbers = (a - b, *ends, error, chance, chance)
        return Comparison(self.label, self.names, (a, b), *numbers, self.level, method, note)

    def decided(self, values: Sequence[float], spread: Spread, method: str) -> Comparison:
        """Student's t with the degrees of freedom of a normal sample.

        A difference of alike rankers is symmetric, so its long tails need no allowance.
        """
        if not np.isfinite(spread.variance):
            raise ValueError(
                f"{self.label}: one independent row, or group, does not show how far such rows "
                "spread; a comparison needs at least two."
            )
        difference = values[0] - values[1]
        error = float(np.sqrt(spread.variance))
        reach = float(student.ppf((1 + self.level) / 2, spread.plain_freedom)) * error
        chance = float(2 * student.sf(abs(difference) / error, spread.plain_freedom))
        ends = (difference - reach, difference + reach)
        return self.result(values, ends, error, chance, method)

    def without_spread(
        self,
        values: Sequence[float],
        trials: float,
        method: str,
        largest: float | None = None,
    ) -> Comparison:
        """Every row, or list, says the same of the difference.

        Parameters
        ----------
        values : sequence of two floats
        trials : float
            How many independent rows, or lists, agree. If the rankers were equally good, each
            would favour either with the same chance.
        method : str
        largest : float, optional
            The largest difference there could be; without it the interval has no width.
        """
        difference = float(values[0] - values[1])
        same = abs(difference) <= 1e-12 * max(1.0, abs(values[0]), abs(values[1]))
        chance = 1.0 if same else float(min(1.0, 2.0 ** (1.0 - trials)))
        who = "No row tells the rankers apart" if same else "Every row says the same"
        note = f"{who}, so the sample shows no spread"
        ends = (difference, difference)
        if largest is not None:
            _, others = uncontradicted(0.0, trials, self.level)
            most, reach = max(largest, abs(difference)), largest * others
            ends = (max(-most, difference - reach), min(most, difference + reach))
            note += f"; the interval is what {trials:g} independent ones that agree leave possible"
        return self.result(values, ends, 0.0, chance, method, f"{note}.")

"""The rounds of boosting: choose a weak ranker, choose a step, move.

RankBoost, coordinate descent RankBoost, smooth margin ranking, the push and AdaBoost differ in
how they choose, not in the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Gains, of weights of total one, that differ by less than this differ by rounding only.
EQUAL = 1e-11
EXHAUSTED = "no weak ranker improves the ranking"
VANISHED = "the pairs are so well separated that the loss is zero to the last digit"


@dataclass
class Ensemble:
    """What the rounds have chosen.

    Attributes
    ----------
    choices, steps : list
        The weak ranker and the step of each round.
    history : list of dict
        What happened in each round.
    coef : dict
        Coefficient of each weak ranker, by its key, in order of first use.
    norm : float
        Sum of the absolute coefficients.
    message : str
        Why the rounds ended early; empty if they did not.
    """

    choices: list[Any] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    coef: dict[Any, float] = field(default_factory=dict)
    norm: float = 0.0
    message: str = ""

    def add(self, choice: Any, step: float, record: dict[str, Any]) -> None:
        """Add a round."""
        self.choices.append(choice)
        self.steps.append(step)
        self.history.append(record)
        before = self.coef.get(choice.key, 0.0)
        self.coef[choice.key] = before + step
        self.norm += abs(before + step) - abs(before)

    def first(self, rounds: int) -> Ensemble:
        """Return the ensemble as it was after so many rounds."""
        kept = Ensemble(message=self.message)
        for round_ in zip(self.choices[:rounds], self.steps, self.history, strict=False):
            kept.add(*round_)
        return kept


class Descent:
    """Coordinate descent on the loss, by largest decrease (RankBoost) or by steepest slope."""

    def __init__(self, selection: str):
        self.selection = selection

    def step(self, engine: Any, masses: Any, ensemble: Ensemble) -> float:
        """Return the step to the minimum along the chosen weak ranker."""
        return masses.descent(engine.pairs.log_n_pairs)

    def before(self, engine: Any, masses: Any, ensemble: Ensemble) -> dict[str, Any]:
        """What else the history says about a round, known before the step."""
        return {}

    def after(self, engine: Any, ensemble: Ensemble) -> dict[str, Any]:
        """What else the history says about a round, known after the step."""
        return {}


class SmoothAscent(Descent):
    """Coordinate descent until the smooth margin is positive, then ascent on it.

    G = -ln F / |lambda|_1 with F not normalised, so that G < margin <= rho (equation 6). That needs
    pairs of weight one at least: where one is lighter, its weight is the unit.
    """

    def __init__(self) -> None:
        super().__init__("slope")

    @staticmethod
    def smooth_margin(engine: Any, ensemble: Ensemble) -> float:
        """Return G; minus infinity before the first round."""
        log_loss = engine.log_loss - engine.pairs.log_lightest
        return -log_loss / ensemble.norm if ensemble.norm > 0 else -np.inf

    def step(self, engine: Any, masses: Any, ensemble: Ensemble) -> float:
        """Return the step of equation (12), or (10) for real-valued weak rankers."""
        g = self.smooth_margin(engine, ensemble)
        if not g > 0:
            return super().step(engine, masses, ensemble)
        return masses.ascent(g, engine.pairs.log_n_pairs, ensemble.norm)

    def after(self, engine: Any, ensemble: Ensemble) -> dict[str, Any]:
        """Smooth margin after the step."""
        return {"smooth_margin": float(self.smooth_margin(engine, ensemble))}

    def before(self, engine: Any, masses: Any, ensemble: Ensemble) -> dict[str, Any]:
        """The bound on rho that the edge is, and whether Theorem 7's condition holds."""
        g = self.smooth_margin(engine, ensemble)
        r = abs(masses.edge)
        holds = 0 <= g < r < 1 and masses.theorem_7_holds()
        return {"rho": r, "ascent": bool(g > 0), "theorem_7": bool(holds)}


def boost(
    engine: Any,
    rule: Descent,
    n_rounds: int,
    watch: Callable[[Ensemble], bool] | None = None,
) -> Ensemble:
    """Run the rounds; `watch` is asked after each whether to stop.

    Parameters
    ----------
    engine : object
        Weak rankers judged on pairs: ``best``, ``masses``, ``move``, ``log_loss``, ``pairs``.
    rule : Descent
        How to choose and how far to go.
    n_rounds : int
    watch : callable, optional
    """
    ensemble = Ensemble()
    for _ in range(n_rounds):
        choice = engine.best(rule.selection)
        if choice is None or choice.gain <= EQUAL:
            ensemble.message = EXHAUSTED if np.isfinite(engine.log_loss) else VANISHED
            break
        masses = engine.masses(choice)
        step = rule.step(engine, masses, ensemble)
        if step == 0.0 or not np.isfinite(step):
            ensemble.message = EXHAUSTED
            break
        criterion = abs(masses.edge) if rule.selection == "slope" else masses.factor
        record = {
            **choice.facts(),
            "step": step,
            "criterion": float(criterion),
            "edge": float(masses.edge),
            **masses.facts(),
            **rule.before(engine, masses, ensemble),
        }
        engine.move(choice, step)
        ensemble.add(choice, step, record)
        record["objective"] = float(engine.log_loss - engine.pairs.log_pairs)
        record.update(rule.after(engine, ensemble))
        if watch is not None and watch(ensemble):
            break
    return ensemble

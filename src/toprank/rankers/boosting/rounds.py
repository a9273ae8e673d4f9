"""The rounds of boosting: choose a weak ranker, choose a step, move, stop.

RankBoost, coordinate descent RankBoost, smooth margin ranking, the push and AdaBoost differ in
how they choose, not in the loop. Rows held out say when to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._numerics import FloatArray
from toprank.pair_sums import concordance
from toprank.pairs import RelatedRows
from toprank.rankers.held_out import TopMetric

if TYPE_CHECKING:
    from toprank._arrays import JsonObject


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
    history: list[JsonObject] = field(default_factory=list)
    coef: dict[Hashable, float] = field(default_factory=dict)
    norm: float = 0.0
    message: str = ""

    def add(self, choice: Any, step: float, record: JsonObject) -> None:
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

    def before(self, engine: object, masses: object, ensemble: Ensemble) -> JsonObject:
        """What else the history says about a round, known before the step."""
        return {}

    def after(self, engine: object, ensemble: Ensemble) -> JsonObject:
        """What else the history says about a round, known after the step."""
        return {}


class SmoothAscent(Descent):
    """Coordinate descent until the smooth margin is positive, then ascent on it.

    G = -ln F / |lambda|_1 with F not normalised, so that G < margin <= rho (equation 6). That needs
    pairs of weight one at least: where one is lighter, its weight is the unit.
    """

    def __init__(self, *, exact: bool = False) -> None:
        super().__init__("slope")
        self.exact = exact

    @staticmethod
    def smooth_margin(engine: Any, ensemble: Ensemble) -> float:
        """Return G; minus infinity before the first round."""
        log_loss = engine.log_loss - engine.pairs.log_lightest
        return -log_loss / ensemble.norm if ensemble.norm > 0 else -np.inf

    def step(self, engine: Any, masses: Any, ensemble: Ensemble) -> float:
        """Return the step of equation (12), or (10) where asked, or for real-valued rankers."""
        g = self.smooth_margin(engine, ensemble)
        if not g > 0:
            return super().step(engine, masses, ensemble)
        ascent = masses.exact_ascent if self.exact else masses.ascent
        return float(ascent(g, engine.pairs.log_n_pairs, ensemble.norm))

    def after(self, engine: object, ensemble: Ensemble) -> JsonObject:
        """Smooth margin after the step."""
        return {"smooth_margin": float(self.smooth_margin(engine, ensemble))}

    def before(self, engine: object, masses: Any, ensemble: Ensemble) -> JsonObject:
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


class EarlyStopping:
    """Follows the scores of rows set apart and says when they have stopped improving.

    Parameters
    ----------
    rows : RelatedRows
        The rows set apart.
    scoring : str, callable or None
        Name of a metric of `toprank.metrics`, or a function of (labels, scores) that is larger
        when better; None is the share of the crucial pairs in order.
    patience : int
        Rounds without improvement after which to stop.
    outputs : callable
        What a round's choice adds to the scores of those rows, for a step of one.
    """

    def __init__(
        self,
        rows: RelatedRows,
        scoring: str | Callable[..., float] | None,
        patience: int,
        outputs: Callable[[Any], FloatArray],
    ):
        self.rows, self.patience, self.outputs = rows, patience, outputs
        self.scores = np.zeros(len(rows))
        self.values: list[float] = []
        self.best_round = 0
        self._best = -np.inf
        self.scoring = scoring
        self._measure = _pairs_in_order(rows) if scoring is None else _metric_of(rows, scoring)

    def should_stop(self, ensemble: Ensemble) -> bool:
        """Measure the last round; return whether to stop."""
        self.scores += ensemble.steps[-1] * self.outputs(ensemble.choices[-1])
        value = float(self._measure(self.scores))
        if np.isnan(value):
            raise ValueError(
                f"scoring={self.scoring!r} is NaN on the {len(self.scores)} rows set apart after "
                f"round {len(self.values) + 1}; expected a number, larger when better."
            )
        self.values.append(value)
        if value > self._best:
            self._best, self.best_round = value, len(self.values)
        return len(self.values) - self.best_round >= self.patience

    def best_rounds(self, ensemble: Ensemble) -> Ensemble:
        """Return the rounds up to the best."""
        best = ensemble.first(self.best_round)
        if self.best_round < len(ensemble.steps):
            best.message = f"the rows set apart were ranked best after round {self.best_round}"
        return best


def _pairs_in_order(rows: RelatedRows) -> Callable[[FloatArray], float]:
    """The share of the crucial pairs in order; for two classes that is the AUC."""
    if rows.is_bipartite:
        return _metric_of(rows, "auc")
    try:
        relation = rows.relation()
    except ValueError:
        raise ValueError(
            "The rows set apart for validation hold no crucial pair. Raise validation_fraction, or "
            "use n_iter_no_change=None."
        ) from None
    return lambda scores: concordance(relation, scores, rows.weight)


def _metric_of(rows: RelatedRows, scoring: str | Callable[..., float]) -> TopMetric:
    """A metric by its name, or a user's function of (labels, scores); larger is better."""
    if hasattr(scoring, "_score_func"):
        raise ValueError(
            "scoring is a scikit-learn scorer, which needs an estimator; expected a function "
            "of (labels, scores), for example functools.partial(precision_at, k=50)."
        )
    if rows.y is None:
        raise ValueError(
            "scoring measures labels, and there is no y. Give y beside pairs, or scoring=None: "
            "the share of the pairs in order."
        )
    return TopMetric(scoring, None, rows)

"""What is done before and after each round of trees: draws, progress, the end, what is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from toprank._extras import require
from toprank.blocks.threads import Stopped, is_stopped
from toprank.interop.team import xgboost_team
from toprank.rankers.trees.plan import TreePlan, Watch

if TYPE_CHECKING:
    import xgboost
    from xgboost.callback import TrainingCallback


def print_round(plan: TreePlan, watch: Watch | None, done: int, values: list[float]) -> None:
    """Print how far the growing is: every ten rounds, or every round if much is to be said."""
    if plan.verbose < 2 and done % 10 and done != plan.n_estimators:
        return
    said = f"[{done} of {plan.n_estimators}]"
    if watch is not None and values:
        said += f" {watch.name} of the rows held out: {values[-1]:.6g}"
    print(said, flush=True)


def is_over(watch: Watch | None, values: Sequence[float]) -> bool:
    """Whether the metric of the rows held out has not improved for as long as one waits."""
    if watch is None or not values:
        return False
    return len(values) - 1 - int(np.argmax(values)) >= watch.patience


def seed_of_round(seed: int, done: int) -> int:
    """Return the seed that a round draws by, after so many others.

    One for each round that is kept, so that rounds which go on from a file draw what they would
    have drawn.
    """
    if done == 0:
        return seed
    return int(np.random.SeedSequence([abs(seed), done]).generate_state(1)[0] >> 1)


@dataclass(frozen=True)
class RoundFacts:
    """What a callable is told after a round, under the names that LightGBM has for it."""

    model: object
    iteration: int
    evaluation_result_list: list[tuple[str, str, float, bool]]


def xgboost_callbacks(
    params: Mapping[str, object],
    plan: TreePlan,
    watch: Watch | None,
    values: list[float],
    first: int,
) -> list[TrainingCallback]:
    """Return XGBoost's callbacks for the rounds after the first so many.

    ``values`` are the metric of the rows held out after each round, those to come too.
    """
    steps = [_round_by_round()]
    if plan.kept is not None:
        steps.append(_draws_of_its_own(params, first))
    steps += [_as_xgboost_callback(one, first) for one in plan.callbacks]

    def show(_: xgboost.Booster, done: int) -> bool:
        print_round(plan, watch, done, values)
        return False

    def stop(model: xgboost.Booster, done: int) -> bool:
        if int(np.argmax(values)) == len(values) - 1:
            model.set_attr(best_score=str(values[-1]), best_iteration=str(done - 1))
        return is_over(watch, values)

    def keep(model: xgboost.Booster, _: int) -> bool:
        assert plan.kept is not None
        plan.kept.offer(model, values)
        return False

    own = require("xgboost.callback", "xgboost").EarlyStopping
    if plan.verbose:
        steps.append(_after_round(show, first))
    if watch is not None and not any(isinstance(one, own) for one in plan.callbacks):
        steps.append(_after_round(stop, first))
    if plan.kept is not None:
        steps.append(_after_round(keep, first))  # the last: a round that ends all is kept as such
    return steps


def _after_round(act: Callable[[xgboost.Booster, int], bool], first: int) -> TrainingCallback:
    """What XGBoost does after each round, told how many there are; it ends where that is true."""

    class AfterRound(require("xgboost.callback", "xgboost").TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: xgboost.Booster, epoch: int, *more: object) -> bool:
            return act(model, first + epoch + 1)

    return AfterRound()


def _as_xgboost_callback(given: Callable[..., object], first: int) -> object:
    """A callback of XGBoost's, also where LightGBM's kind was given: a function of the round."""
    base = require("xgboost.callback", "xgboost").TrainingCallback
    if isinstance(given, base) or not callable(given):
        return given

    class Caller(base):  # type: ignore[misc, valid-type]
        def after_iteration(
            self, model: object, epoch: int, evals_log: Mapping[str, Mapping[str, list[float]]]
        ) -> bool:
            seen = [
                (rows, metric, float(values[-1]), True)
                for rows, metrics in evals_log.items()
                for metric, values in metrics.items()
            ]
            return given(RoundFacts(model, first + epoch, seen)) is True

    return Caller()


def _draws_of_its_own(params: Mapping[str, object], first: int) -> TrainingCallback:
    """What lets every round draw its rows and columns by a seed of its own.

    XGBoost draws columns by numbers that go on from round to round inside the object that grows its
    trees. It makes a new one where the method of growing changes, and only there: so the method is
    changed, and changed back, before a round begins.
    """
    seed, method = int(str(params["seed"])), str(params["tree_method"])
    other = "hist" if method == "approx" else "approx"

    class Draws(require("xgboost.callback", "xgboost").TrainingCallback):  # type: ignore[misc]
        def before_iteration(self, model: xgboost.Booster, epoch: int, *more: object) -> bool:
            if epoch:
                model.set_param({"tree_method": other})
                model.num_boosted_rounds()  # which takes the parameter over
                model.set_param({"tree_method": method, "seed": seed_of_round(seed, first + epoch)})
            return False

    return Draws()


@cache
def _round_by_round() -> TrainingCallback:
    """What lets a round begin only where somebody still waits for the trees.

    Workers that train together stop together: one that left alone would wait for the others to
    part, and they for its sums.
    """

    class RoundByRound(require("xgboost.callback", "xgboost").TrainingCallback):  # type: ignore[misc]
        def before_iteration(self, *_: object) -> bool:
            if xgboost_team().any(is_stopped()):
                raise Stopped
            return False

    return RoundByRound()

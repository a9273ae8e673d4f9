"""The protocol of TopPush (Li, Jin and Zhou 2014, Table 2), rerun.

Thirty random splits, two thirds to train on; features scaled to [0, 1] over the whole set;
the penalty by five-fold cross-validation inside the training rows, on the same metric: the share
of positives above every negative; in the last columns p as well, by that metric and as
`PNormPushCV` chooses it. Equal means go to the stronger penalty and the weaker push. Positives of
pima are its 500 healthy rows. w8a is its training part only, with fewer settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from toprank import PNormPush, PNormPushCV
from toprank.metrics import positives_at_top
from toprank.tuning import corrected_difference

from .data import Data, load, splits
from .store import Store
from .tables import markdown

N_SPLITS = 30
FOLDS = 5
#: Mean and spread of TopPush in print, and the mean of logistic regression.
PRINTED = {
    "spambase": ((0.129, 0.077), 0.071),
    "pima": ((0.123, 0.056), 0.064),
    "w8a": ((0.226, None), 0.107),
}
LOGISTIC, TOPPUSH = "logistic regression", "TopPush (p = inf, squared hinge)"
BY_METRIC, CHOSEN = "p by the metric itself", "PNormPushCV"
#: Drawings of the folds that `PNormPushCV` chooses on.
REPEATS = 2


@dataclass(frozen=True)
class Grid:
    """The settings that cross-validation chooses from, the strongest penalty first."""

    powers: tuple[float, ...] = (1, 4, 16, 64)
    penalties: tuple[float, ...] = tuple(10.0**k for k in range(2, -7, -1))

    def models(self) -> dict[str, Any]:
        """Rankers by the name of their column; each starts from where it last ended."""
        return {
            LOGISTIC: LogisticRegression(solver="newton-cholesky", max_iter=300, warm_start=True),
            TOPPUSH: PNormPush(np.inf, loss="squared_hinge", warm_start=True),
            **{f"p = {p:g}": PNormPush(p, warm_start=True) for p in self.powers},
        }


GRIDS = {"w8a": Grid((4, 64), (1e-1, 1e-2, 1e-3, 1e-4))}


def prepared(name: str, folder: Path) -> Data:
    data = load(name, folder)
    low, high = data.X.min(axis=0), data.X.max(axis=0)
    X = (data.X - low) / np.where(high > low, high - low, 1.0)
    return Data(name, X, 1 - data.y if name == "pima" else data.y)


def run(
    store: Store, folder: Path, names: list[str], n_splits: int, say: Any, grid: Grid | None = None
) -> None:
    """Measure what is not in the store yet."""
    for name in names:
        data = prepared(name, folder)
        for number, (train, test) in enumerate(splits(data, n_splits, train_rows=len(data.y))):
            for kind, measure in (("toppush", one_split), ("toppush chosen", chosen_by_cv)):
                key = (kind, name, number)
                if key in store:
                    continue
                start = perf_counter()
                used = grid or GRIDS.get(name, Grid())
                values, costs = measure(data, train, test, used, number)
                store.add(key, values, costs)
                figures = ", ".join(f"{method} {of['test']:.3f}" for method, of in values.items())
                took = perf_counter() - start
                say(f"{name} split {number + 1}/{n_splits}: {figures} ({took:.0f} s)")


def one_split(data: Data, train: Any, test: Any, grid: Grid, number: int) -> tuple[dict, dict]:
    """What each method chose, what the choice scored in the folds and scores on the test rows."""
    X, y = data.X[train], data.y[train]
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=number).split(X, y))
    values, costs = {}, {}
    for method, model in grid.models().items():
        start = process_time()
        in_folds = np.mean(
            [path(model, grid, X[rows], y[rows], X[out], y[out]) for rows, out in folds], axis=0
        )
        costs[method] = {"choosing_s": round(process_time() - start, 3)}
        best = int(np.argmax(in_folds))  # the first of equals
        start = process_time()
        found = path(clone(model), grid, X, y, data.X[test], data.y[test])
        costs[method]["fitting_s"] = round(process_time() - start, 3)
        values[method] = {
            "alpha": grid.penalties[best],
            "folds": float(in_folds[best]),
            "test": found[best],
            "by_penalty": dict(zip(map(str, grid.penalties), found, strict=True)),
        }
    better = max(values, key=lambda method: (method.startswith("p ="), values[method]["folds"]))
    values[BY_METRIC] = {**values[better], "p": better}
    return values, costs


def chosen_by_cv(data: Data, train: Any, test: Any, grid: Grid, number: int) -> tuple[dict, dict]:
    """What `PNormPushCV` makes of the same grid, asked for the same metric."""
    ranker = PNormPushCV(
        grid.powers,
        scoring="positives_at_top",
        alphas=grid.penalties,
        cv=FOLDS,
        n_repeats=REPEATS,
        test_size=None,
        random_state=number,
    )
    start = process_time()
    with catch_warnings():
        simplefilter("ignore")  # as in `path`
        ranker.fit(data.X[train], data.y[train])
    seconds = round(process_time() - start, 3)
    found = float(positives_at_top(data.y[test], ranker.decision_function(data.X[test])))
    chosen = f"p = {ranker.p_:g}" if ranker.pushes_ else LOGISTIC
    values = {CHOSEN: {"alpha": ranker.alpha_, "p": chosen, "test": found}}
    return values, {CHOSEN: {"choosing_s": seconds}}


def path(model: Any, grid: Grid, X: Any, y: Any, X_out: Any, y_out: Any) -> list[float]:
    """The metric on the rows held out at every penalty."""
    found = []
    for alpha in grid.penalties:
        logistic = isinstance(model, LogisticRegression)
        model.set_params(**({"C": 1 / (alpha * len(y))} if logistic else {"alpha": alpha}))
        with catch_warnings():
            simplefilter("ignore")  # a setting that does not converge is judged by its ranking
            model.fit(X, y)
        found.append(float(positives_at_top(y_out, model.decision_function(X_out))))
    return found


def table(store: Store) -> str:
    """The printed figures beside ours, and the requirement they are held to."""
    tables, notes, unchosen = [], [], []
    for name, ((printed, spread), logistic) in PRINTED.items():
        cells = _cells(store, name)
        if len(cells) < 2:
            continue
        found = {m: np.array([values[m]["test"] for values in cells]) for m in cells[0]}
        theirs = f"{printed:.3f}" + ("" if spread is None else f" ± {spread:.3f}")
        head = [f"{name}, {len(cells)} splits", *found, "TopPush in print", "logistic in print"]
        shown = [f"{v.mean():.3f} ± {v.std(ddof=1):.3f}" for v in found.values()]
        tables.append(markdown(head, [["mean ± spread", *shown, theirs, f"{logistic:.3f}"]]))
        notes += _verdicts(name, found, printed, spread)
        unchosen += _without_choice(name, cells)
    return "\n\n".join([*tables, "\n".join(notes), *unchosen])


def _cells(store: Store, name: str) -> list[dict]:
    """What every method found on each split; `PNormPushCV` where it ran on all of them."""
    found: dict[str, dict[int, dict]] = {"toppush": {}, "toppush chosen": {}}
    for cell in store:
        kind, of_set, number = cell["key"]
        if of_set == name:
            found[kind][number] = cell["values"]
    by_metric, by_cv = found.values()
    if by_cv.keys() < by_metric.keys():
        return list(by_metric.values())
    return [values | by_cv[number] for number, values in by_metric.items()]


def _without_choice(name: str, cells: list[dict]) -> list[str]:
    """What every penalty would have scored, had it been fixed; no split had a say in it."""
    methods = [m for m in cells[0] if m not in (BY_METRIC, CHOSEN)]
    if any("by_penalty" not in values[m] for values in cells for m in methods):
        return []
    rows = [
        [alpha, *(f"{np.mean([v[m]['by_penalty'][alpha] for v in cells]):.3f}" for m in methods)]
        for alpha in cells[0][methods[0]]["by_penalty"]
    ]
    chosen = [f"{np.mean([values[m]['test'] for values in cells]):.3f}" for m in methods]
    head = [f"{name}, the penalty fixed beforehand at", *methods]
    return [markdown(head, [*rows, ["chosen by cross-validation", *chosen]])]


def _verdicts(name: str, found: dict, printed: float, spread: float | None) -> list[str]:
    best = max((m for m in found if m.startswith("p =")), key=lambda m: found[m].mean())
    bar = printed if spread is None else printed - spread / np.sqrt(N_SPLITS)
    what = "the printed mean" if spread is None else "the printed mean less one standard error"
    lines = []
    for method in [best, *(m for m in (BY_METRIC, CHOSEN) if m in found)]:
        ours = found[method]
        verdict = "reached" if ours.mean() >= bar else "not reached"
        against = corrected_difference(ours - found[LOGISTIC], 0.5)
        plain = stats.ttest_rel(ours, found[LOGISTIC]).pvalue
        lines.append(
            f"- **{name}**, {'the best push, ' if method == best else ''}{method}: "
            f"{ours.mean():.3f}; {what}, {bar:.3f}, is {verdict}. Less logistic regression rerun "
            f"here: {against}; p = {plain:.2g} by the paired t-test that takes the splits for "
            f"independent."
        )
    return lines

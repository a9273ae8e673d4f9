"""Rudin & Schapire (2009): the margin of RankBoost (Theorem 6) and its equality with AdaBoost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.metrics import auc, max_margin
from toprank.rankers import AdaBoostRanker, RankBoost, SmoothMarginRanker
from toprank.reproduce import facts
from toprank.reproduce.experiment import Experiment, Result, Setup, claim, claims_part, new_figure
from toprank.reproduce.page import Grid, Paragraph, Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

THRESHOLDS = 9


def game() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The 8 x 8 matrix as eight crucial pairs of sixteen rows: M = h(winner) - h(loser)."""
    M = np.array(facts.MARGIN_8X8)
    X = np.vstack([(1 + M) // 2, (1 - M) // 2])
    return M, X, np.repeat([1, 0], 8), np.column_stack([np.arange(8), np.arange(8) + 8])


def margins_by_round(ranker: RankBoost | SmoothMarginRanker, rounds: list[int]) -> list[float]:
    """The margin after each of these numbers of rounds."""
    M, X, y, pairs = game()
    ranker.fit(X, y, pairs=pairs)
    steps = np.zeros((len(ranker.history_), M.shape[1]))
    for t, record in enumerate(ranker.history_):
        steps[t, record["feature"]] = record["step"]
    coef = np.cumsum(steps, axis=0)[np.array(rounds) - 1]
    return (np.min(coef @ M.T, axis=1) / np.sum(np.abs(coef), axis=1)).tolist()


def _margin_game(setup: Setup) -> Result:
    last = setup.settings["rounds"]
    rounds = np.unique(np.rint(np.geomspace(10, last, 40)).astype(int)).tolist()
    best = max_margin(game()[0])
    options: dict[str, Any] = {"n_estimators": last, "weak_rankers": "binary"}
    rankers = (RankBoost(selection="slope", **options), SmoothMarginRanker(**options))
    boosted, smooth = setup.map(margins_by_round, [(ranker, rounds) for ranker in rankers])
    third, largest = facts.RANKBOOST_MARGIN_8X8, facts.LARGEST_MARGIN_8X8
    claims = [
        claim("The largest margin is 3/8.", abs(best - largest) < 1e-9, f"Ours: {best:.10f}."),
        claim(
            "RankBoost converges to a margin of 1/3.",
            abs(boosted[-1] - third) < 10 / last,
            f"Ours after {last:,} rounds: {boosted[-1]:.6f}.",
        ),
        claim(
            "Smooth margin ranking converges to the largest margin.",
            largest - 20 / last < smooth[-1] <= largest + 1e-9,
            f"Ours after {last:,} rounds: {smooth[-1]:.6f}.",
        ),
    ]
    return {"rounds": rounds, "rankboost": boosted, "smooth": smooth, "claims": claims}


def _describe_margin(result: Result) -> list[Part]:
    shown = [i for i, t in enumerate(result["rounds"]) if i % 8 == 0] + [-1]
    rows = [
        [
            f"{result['rounds'][i]:,} rounds",
            f"{result['rankboost'][i]:.6f}",
            f"{result['smooth'][i]:.6f}",
        ]
        for i in shown
    ]
    return [
        Paragraph(
            "Theorem 6 leans on an 8 × 8 matrix (Rudin, Daubechies & Schapire 2004) whose largest "
            "margin is 3/8 = 0.375, where AdaBoost, and so RankBoost, goes to 1/3."
        ),
        Grid(["margin after", "RankBoost", "smooth margin ranking"], rows),
        claims_part(result["claims"]),
    ]


def _draw_margin(result: Result) -> Figure:
    figure = new_figure(6.4, 4.2)
    ax = figure.subplots()
    ax.plot(result["rounds"], result["rankboost"], color="#D55E00", label="RankBoost")
    ax.plot(
        result["rounds"], result["smooth"], "--", color="#0072B2", label="smooth margin ranking"
    )
    for level, text in ((3 / 8, "3/8"), (1 / 3, "1/3")):
        ax.axhline(level, color="0.5", linewidth=0.8, linestyle=":")
        ax.annotate(text, (result["rounds"][0], level), va="bottom", fontsize=9)
    ax.set(xscale="log", xlabel="rounds", ylabel="margin", ylim=(0.24, 0.39))
    ax.legend(frameon=False, loc="lower right")
    ax.grid(alpha=0.25)
    return figure


def measure_fit(ranker: BaseEstimator, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Objectives, F-skew, AUC and error of a fit on its training rows.

    The scores have AdaBoost's constant, or for RankBoost the intercept of Corollary 13.
    """
    scores = ranker.fit(X, y).decision_function(X)
    plus, minus = float(np.exp(-scores[y == 1]).sum()), float(np.exp(scores[y == 0]).sum())
    return {
        "rank_objective": float(np.log(plus * minus)),
        "ada_objective": float(np.log(plus + minus)),
        "skew": (plus - minus) / (plus + minus),
        "auc": float(auc(y, scores)),
        "error": float(np.mean((scores > 0) != (y == 1))),
    }


def _equivalence(setup: Setup) -> Result:
    X, y = setup.data["wdbc"]
    X = X[:, :4]  # all thirty features separate the classes
    rounds = setup.settings["rounds"]
    n = len(rounds)
    options: dict[str, Any] = {"n_thresholds": THRESHOLDS, "n_jobs": 1}
    rankers = [kind(t, **options) for kind in (RankBoost, AdaBoostRanker) for t in rounds]
    found = setup.map(measure_fit, [(ranker, X, y) for ranker in rankers])
    ranked, classified = found[:n], found[n:]
    first, last, skew = {}, {}, [abs(one["skew"]) for one in classified]
    for key in ("rank_objective", "ada_objective", "auc", "error"):
        first[key] = abs(ranked[0][key] - classified[0][key])
        last[key] = abs(ranked[-1][key] - classified[-1][key])
    texts = {
        "rank_objective": "Theorem 10: AdaBoost minimises RankBoost's objective ln F+F- too.",
        "ada_objective": "Corollary 13: RankBoost, its intercept corrected, minimises AdaBoost's.",
        "auc": "Theorem 12: both reach the same AUC.",
        "error": "Theorem 14: both reach the same misclassification error.",
    }
    claims = [
        claim(
            "Corollary 11: with the constant weak classifier AdaBoost's F-skew vanishes.",
            skew[-1] <= 0.1 * max(skew),
            f"(F+ - F-)/(F+ + F-) after {rounds[-1]:,} rounds: {skew[-1]:.1e}.",
        ),
        *(
            claim(
                text,
                last[key] <= 0.1 * first[key],
                f"Apart by {first[key]:.1e} after {rounds[0]:,} rounds, {last[key]:.1e} after "
                f"{rounds[-1]:,}.",
            )
            for key, text in texts.items()
        ),
    ]
    return {"rounds": rounds, "rankboost": ranked, "adaboost": classified, "claims": claims}


def _describe_equivalence(result: Result) -> list[Part]:
    rows = []
    for t, ranked, classified in zip(
        result["rounds"], result["rankboost"], result["adaboost"], strict=True
    ):
        rows.append(
            [
                f"{t:,}",
                f"{ranked['rank_objective']:.5f}",
                f"{classified['rank_objective']:.5f}",
                f"{ranked['auc']:.6f}",
                f"{classified['auc']:.6f}",
                f"{100 * ranked['error']:.2f}",
                f"{100 * classified['error']:.2f}",
                f"{classified['skew']:+.1e}",
            ]
        )
    header = ["rounds", "ln F+F- of RankBoost", "of AdaBoost", "AUC of RankBoost", "of AdaBoost"]
    header += ["error of RankBoost, %", "of AdaBoost, %", "F-skew of AdaBoost"]
    return [
        Paragraph(
            "Section 5: on training rows that cannot be separated, AdaBoost with the constant weak "
            "classifier and RankBoost with a corrected intercept solve each other's problem. The "
            f"paper proves it and shows no numbers; here is the Wisconsin breast cancer set, its "
            f"first four features, {THRESHOLDS} thresholds each. A claim about a limit is taken to "
            "hold if a tenth of the distance, at most, is left. The F-skew is (F+ - F-)/(F+ + F-)."
        ),
        Grid(header, rows),
        claims_part(result["claims"]),
    ]


def _draw_equivalence(result: Result) -> Figure:
    figure = new_figure(10, 3.9)
    left, right = figure.subplots(1, 2)
    looks = {"rankboost": ("#D55E00", "-", "RankBoost"), "adaboost": ("#0072B2", "--", "AdaBoost")}
    for key, (colour, dashes, name) in looks.items():
        values = result[key]
        look = {"color": colour, "linestyle": dashes, "marker": "o", "markersize": 3}
        left.plot(result["rounds"], [1 - one["auc"] for one in values], label=name, **look)
        right.plot(result["rounds"], [one["error"] for one in values], label=name, **look)
    left.set(ylabel="1 - AUC, training rows", title="Theorem 12: the same AUC")
    right.set(ylabel="misclassification error, training rows", title="Theorem 14: the same error")
    for ax in (left, right):
        ax.set(xscale="log", yscale="log", xlabel="rounds")
        ax.grid(alpha=0.25)
        ax.legend(frameon=False)
    return figure


EXPERIMENTS = (
    Experiment(
        "margin-8x8",
        "Theorem 6 of Rudin & Schapire: RankBoost misses the largest margin",
        _margin_game,
        _describe_margin,
        _draw_margin,
        "RankBoost's margin goes to one third, that of smooth margin ranking to three eighths",
        full={"rounds": 10_000},
        quick={"rounds": 3000},
    ),
    Experiment(
        "equivalence",
        "Section 5 of Rudin & Schapire: AdaBoost and RankBoost",
        _equivalence,
        _describe_equivalence,
        _draw_equivalence,
        "AUC and error of AdaBoost and RankBoost meet as the rounds go on",
        full={"rounds": [10, 30, 100, 300, 1000, 3000]},
        quick={"rounds": [10, 30, 100, 300, 1000]},
        data=("wdbc",),
    ),
)

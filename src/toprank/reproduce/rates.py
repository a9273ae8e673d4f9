"""Clémençon, Lugosi & Vayatis (2006), Section 5: how fast the excess ranking risk falls.

Three models whose best ranking is known, and the excess risk of PairRanker over that best ranking
against the number of rows, beside the rates that the paper proves for empirical risk minimisers
over a class of finite VC dimension: (log n / n)^1/2 always, and, up to n^epsilon, log n / n under
the noise conditions that all three models meet. PairRanker minimises a convex risk instead, over
linear scores, among which the best ranking is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank import simulate
from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.bounds import exact_ranking_regret
from toprank.rankers import PairRanker
from toprank.reproduce.compare import claim, claims_part
from toprank.reproduce.experiment import Experiment, Result, Setup
from toprank.reproduce.page import Grid, Paragraph, Part

SIZES = (50, 100, 200, 400, 800, 1600, 3200)
FRESH_ROWS = 1000


@dataclass(frozen=True)
class Case:
    """A model of Section 5 and the ranker that is fitted to it."""

    title: str
    model: Callable[[], Any]
    loss: str
    alpha: float

    def excess(self, n: int, seed: int, repeat: int) -> float:
        """Excess ranking risk of a fit to n rows, on fresh rows that all fits share."""
        model = self.model()
        fresh, _ = model.sample(FRESH_ROWS, random_state=[seed, 10**6])
        X, y = model.sample(n, random_state=[seed, repeat])
        scores = PairRanker(loss=self.loss, alpha=self.alpha).fit(X, y).predict(fresh)
        if isinstance(model, simulate.BipartiteModel):
            return exact_ranking_regret(model.eta(fresh), scores)
        return float(model.excess_risk(fresh, scores))


def _noiseless() -> simulate.RegressionModel:
    return simulate.regression(5)


def _varying_model() -> simulate.RegressionModel:
    return simulate.heteroscedastic(5)


CASES = (
    Case("5.1  two classes", simulate.linear_bipartite, "logistic", 1e-4),
    Case("5.2  real labels, no noise", _noiseless, "squared_hinge", 1e-6),
    Case("5.3  real labels, noise that varies", _varying_model, "squared_hinge", 1e-4),
)


def excess_risks(case: Case, n: int, seed: int, repeats: int) -> list[float]:
    """Excess risk of fits to n rows, one per repeat."""
    return [case.excess(n, seed, repeat) for repeat in range(repeats)]


def exponent(sizes: ArrayLike, risks: FloatArray) -> float:
    """Return the b of risk = c n^b, by least squares in logarithms; `risks` is (sizes, repeats)."""
    return float(np.polyfit(np.log(sizes), np.log(np.mean(risks, axis=1)), 1)[0])


def _compute(setup: Setup) -> Result:
    sizes, repeats = setup.settings["sizes"], setup.settings["repeats"]
    cases = [case for case in CASES for _ in sizes]
    n = len(cases)
    found = setup.map(
        excess_risks, cases, list(sizes) * len(CASES), [setup.seed] * n, [repeats] * n
    )
    risks = np.array(found).reshape(len(CASES), len(sizes), repeats)
    rows = [
        {"title": case.title, "risks": risks[c].tolist(), "exponent": exponent(sizes, risks[c])}
        for c, case in enumerate(CASES)
    ]
    claims = [
        claim(
            f"{row['title']}: faster than the (log n / n)^1/2 that holds always.",
            row["exponent"] < -0.75,
            f"Falls as n^{row['exponent']:.2f}; the fast rate is n^-1 up to logarithms.",
        )
        for row in rows
    ]
    return {"rows": rows, "claims": claims}


def _describe(result: Result) -> list[Part]:
    sizes = result["settings"]["sizes"]
    grid = [
        [
            row["title"],
            *(f"{1000 * np.mean(values):.3f}" for values in row["risks"]),
            f"{row['exponent']:.2f}",
        ]
        for row in result["rows"]
    ]
    return [
        Paragraph(
            "Mean excess ranking risk × 1000 over the best ranking, over "
            f"{result['settings']['repeats']} samples, and the exponent b of c n^b. The paper "
            "proves rates for empirical risk minimisers and shows no numbers; `PairRanker` "
            "minimises a convex risk in their place."
        ),
        Grid(["", *(f"n = {n:,}" for n in sizes), "exponent"], grid),
        claims_part(result["claims"]),
    ]


def figure(result: Result) -> Any:
    """Draw the excess risks of a result beside the two rates."""
    sizes = np.array(result["settings"]["sizes"])
    drawn = require("matplotlib.figure", "plots").Figure(figsize=(10.5, 3.8), layout="constrained")
    axes = drawn.subplots(1, len(result["rows"]))
    for ax, row in zip(axes, result["rows"], strict=True):
        _draw_case(ax, row, sizes)
    axes[0].set_ylabel("excess ranking risk")
    axes[0].legend(frameon=False, fontsize=8)
    return drawn


def _draw_case(ax: Any, row: dict[str, Any], sizes: np.ndarray) -> None:
    risks = np.array(row["risks"])
    mean = np.mean(risks, axis=1)
    low, high = np.quantile(risks, [0.1, 0.9], axis=1)
    ax.fill_between(sizes, low, high, color="#2a6f97", alpha=0.18, linewidth=0)
    ax.plot(sizes, mean, "o-", color="#2a6f97", markersize=4, label="PairRanker, mean")
    slow, fast = np.sqrt(np.log(sizes) / sizes), np.log(sizes) / sizes
    ax.plot(sizes, mean[0] * slow / slow[0], "--", color="0.45", label=r"$(\log n / n)^{1/2}$")
    ax.plot(sizes, mean[0] * fast / fast[0], ":", color="0.2", label=r"$\log n / n$")
    ax.set(title=f"{row['title']}\nfalls as n^{row['exponent']:.2f}", xscale="log", yscale="log")
    ax.set(xlabel="rows n", xticks=sizes[::2], xticklabels=[f"{n:,}" for n in sizes[::2]])
    ax.minorticks_off()
    ax.grid(alpha=0.25)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


EXPERIMENTS = (
    Experiment(
        "rates",
        "Clémençon, Lugosi & Vayatis 2006, Section 5: rates",
        _compute,
        _describe,
        figure,
        "Excess ranking risk against the number of rows in three models: it falls about as 1/n",
        full={"sizes": list(SIZES), "repeats": 20},
        quick={"sizes": [50, 200, 800], "repeats": 4},
    ),
)

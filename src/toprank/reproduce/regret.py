"""Agarwal (2012): the bound on the ranking regret, beside the regret of simulated models."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from toprank._extras import require
from toprank._numerics import FloatArray
from toprank.bounds import exact_ranking_regret, ranking_regret, surrogate_regret
from toprank.losses.proper import PROPER_LOSSES
from toprank.rankers import ProperRanker
from toprank.reproduce.compare import claim, claims_part
from toprank.reproduce.experiment import Experiment, Result, Setup
from toprank.reproduce.page import Grid, Paragraph, Part
from toprank.simulate import BipartiteModel, linear_bipartite

#: Rows that stand for the distribution.
FRESH_ROWS = 20_000


def _bent(X: FloatArray) -> FloatArray:
    return expit(2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] - 1.0)


def _normal(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.standard_normal((n, 5))


def model_named(name: str) -> BipartiteModel:
    """Return the model whose best ranking is by a linear score, or the one where it is not."""
    return (
        linear_bipartite(5, prevalence=0.3) if name == "linear" else BipartiteModel(_normal, _bent)
    )


def regrets(model: str, loss: str, n: int, seed: int, repeats: int) -> dict[str, Any]:
    """Ranking regret of fits to n rows, and the bound of Theorem 13 from their surrogate regret."""
    truth = model_named(model)
    X, _ = truth.sample(FRESH_ROWS, random_state=[seed, 10**6])
    eta = truth.eta(X)
    realised, bounds = [], []
    for repeat in range(repeats):
        ranker = ProperRanker(loss).fit(*truth.sample(n, random_state=[seed, repeat, n]))
        scores = ranker.decision_function(X)
        realised.append(exact_ranking_regret(eta, scores))
        surrogate = surrogate_regret(ranker.loss_, eta, scores)
        bounds.append(ranking_regret(ranker.loss_, surrogate, float(np.mean(eta))).value)
    return {
        "model": model,
        "loss": loss,
        "n": n,
        "regret": float(np.mean(realised)),
        "bound": float(np.mean(bounds)),
        "largest_share": float(np.max(np.array(realised) / np.array(bounds))),
    }


def _compute(setup: Setup) -> Result:
    s = setup.settings
    cases = [
        (model, loss, n)
        for model in ("linear", "bent")
        for loss in PROPER_LOSSES
        for n in s["sizes"]
    ]
    models, losses, sizes = zip(*cases, strict=True)
    n = len(cases)
    rows = setup.map(regrets, models, losses, sizes, [setup.seed] * n, [s["repeats"]] * n)
    share = max(row["largest_share"] for row in rows)
    right = [row for row in rows if row["model"] == "linear"]
    first, last = s["sizes"][0], s["sizes"][-1]
    means = [float(np.mean([r["regret"] for r in right if r["n"] == m])) for m in (first, last)]
    claims = [
        claim(
            "Theorem 13: no ranking regret exceeds its bound.",
            share <= 1.0,
            f"{n * s['repeats']:,} fits; the closest comes to {share:.1%} of its bound.",
        ),
        claim(
            "Where the linear model is right the regret vanishes as rows are added.",
            means[1] < 0.25 * means[0],
            f"{means[0]:.5f} at {first} rows, {means[1]:.5f} at {last:,}, over all losses.",
        ),
    ]
    return {"rows": rows, "claims": claims}


def _describe(result: Result) -> list[Part]:
    sizes = result["settings"]["sizes"]
    lines = []
    for model, title in (("linear", "right model"), ("bent", "wrong model")):
        for loss in dict.fromkeys(row["loss"] for row in result["rows"]):
            here = {r["n"]: r for r in result["rows"] if (r["model"], r["loss"]) == (model, loss)}
            cells = [
                f"{1000 * here[n]['regret']:.2f} / {1000 * here[n]['bound']:.0f}" for n in sizes
            ]
            lines.append([f"{title}, {loss}", *cells])
    return [
        Paragraph(
            "Ranking regret × 1000 / the bound of Theorem 13 × 1000, which is √2/(p(1-p)√λ) times "
            "the root of the surrogate regret: means of "
            f"{result['settings']['repeats']} fits of `ProperRanker`. In the first model a linear "
            "score ranks best; in the second, P(y = 1) goes up and down with a feature, and no "
            "linear score can. The paper has no experiment; it proves the bound."
        ),
        Grid(["", *(f"{n:,} rows" for n in sizes)], lines),
        claims_part(result["claims"]),
        Paragraph(
            "The bound is safe and far: it turns an average error of probabilities into a regret "
            "as if every error were spent on a pair that is hard to tell apart."
        ),
    ]


def _draw(result: Result) -> Any:
    figure = require("matplotlib.figure", "plots").Figure(figsize=(10, 4), layout="constrained")
    for ax, model, title in zip(
        figure.subplots(1, 2, sharey=True),
        ("linear", "bent"),
        ("a linear score is best", "no linear score is best"),
        strict=True,
    ):
        for loss, colour, dashes in (
            ("logistic", "#0072B2", "-"),
            ("exponential", "#D55E00", "--"),
        ):
            here = [r for r in result["rows"] if (r["model"], r["loss"]) == (model, loss)]
            look = {"color": colour, "linestyle": dashes, "marker": "o", "markersize": 4}
            sizes = [r["n"] for r in here]
            ax.plot(sizes, [r["regret"] for r in here], label=f"{loss}: regret", **look)
            look |= {"marker": "^", "alpha": 0.55}
            ax.plot(sizes, [r["bound"] for r in here], label=f"{loss}: bound", **look)
        ax.set(xscale="log", yscale="log", xlabel="rows", title=title)
        ax.set(xticks=sizes, xticklabels=[f"{n:,}" for n in sizes])
        ax.minorticks_off()
        ax.grid(alpha=0.25)
    figure.axes[0].set_ylabel("ranking regret")
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


EXPERIMENTS = (
    Experiment(
        "regret",
        "Agarwal 2012, Theorem 13: ranking regret and its bound",
        _compute,
        _describe,
        _draw,
        "Ranking regret and its bound against the number of rows, right and wrong model",
        full={"sizes": [50, 500, 5000], "repeats": 10},
        quick={"sizes": [50, 500], "repeats": 3},
    ),
)

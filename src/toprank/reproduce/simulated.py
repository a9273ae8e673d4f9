"""Experiments on simulated models whose truth is known.

- Rudin (2009), Section 10.1: a rare end of the distribution decides what the best top is.
- Agarwal (2012): the bound on the ranking regret, beside the regret itself.
- Clémençon, Lugosi & Vayatis (2006), Section 5: how fast the excess ranking risk falls. Beside it
  stand the rates that the paper proves for empirical risk minimisers over a class of finite VC
  dimension: (log n / n)^1/2 always, and, up to n^epsilon, log n / n under the noise conditions that
  all three models meet. PairRanker minimises a convex risk instead, over linear scores, among which
  the best ranking is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from toprank import simulate
from toprank._arrays import JsonObject
from toprank._numerics import FloatArray
from toprank.bounds import exact_ranking_regret, ranking_regret, surrogate_regret
from toprank.losses.proper import PROPER_LOSSES
from toprank.metrics import auc, max_height
from toprank.rankers import PairRanker, ProperRanker
from toprank.reproduce.experiment import Experiment, Result, Setup, claim, claims_part, new_figure
from toprank.reproduce.page import Grid, Paragraph, Part
from toprank.simulate import BipartiteModel, linear_bipartite, rare_reversal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


EPSILONS = (0.01, 0.05)


def one_sample(epsilon: float, m: int, seed: int, repeat: int) -> tuple[bool, float] | None:
    """Whether R_max on m rows prefers the increasing score, and that score's AUC on them.

    None where the sample lacks a class.
    """
    X, y = rare_reversal(epsilon).sample(m, random_state=[seed, repeat, m])
    if y.min() == y.max():
        return None
    x = X[:, 0]
    return bool(max_height(y, x) < max_height(y, -x)), float(auc(y, x))


def many_samples(epsilon: float, m: int, seed: int, repeats: int) -> dict[str, float]:
    """How often R_max is fooled, and the mean AUC of the same score.

    (1 - epsilon)^m is the chance that no row lies beyond, (1 - epsilon/2)^m that no negative does.
    """
    found = [one_sample(epsilon, m, seed, repeat) for repeat in range(repeats)]
    kept = [one for one in found if one is not None]
    return {
        "epsilon": epsilon,
        "m": m,
        "samples": len(kept),
        "fooled": float(np.mean([wrong for wrong, _ in kept])),
        "none_beyond": (1 - epsilon) ** m,
        "no_negative_beyond": (1 - epsilon / 2) ** m,
        "auc": float(np.mean([area for _, area in kept])),
    }


def _measure_one_dimension(setup: Setup) -> Result:
    s = setup.settings
    cases = [(epsilon, m, setup.seed, s["repeats"]) for epsilon in EPSILONS for m in s["sizes"]]
    rows = setup.map(many_samples, cases)
    X, y = rare_reversal(0.05).sample(s["test_rows"], random_state=[setup.seed, 10**6])
    x, positives = X[:, 0], int(y.sum())
    increasing, decreasing = max_height(y, x) / positives, max_height(y, -x) / positives
    chances = [r["no_negative_beyond"] for r in rows]
    errors = [3.5 * np.sqrt(q * (1 - q) / r["samples"]) for q, r in zip(chances, rows, strict=True)]
    claims = [
        claim(
            "The wrong function is chosen with probability (1 - ε)^m at least.",
            all(r["fooled"] >= r["none_beyond"] - e for r, e in zip(rows, errors, strict=True)),
        ),
        claim(
            "Ours, not the paper's: exactly with probability (1 - ε/2)^m.",
            all(
                abs(r["fooled"] - q) <= max(e, 2 / r["samples"])
                for r, q, e in zip(rows, chances, errors, strict=True)
            ),
            "Positives beyond alone do not save the sample; a negative beyond does.",
        ),
        claim(
            "On the whole distribution the increasing function has the worst R_max, I.",
            increasing == 1.0 and decreasing < 1.0,
            f"R_max/I on {s['test_rows']:,} rows: {increasing:.3f} increasing, "
            f"{decreasing:.3f} decreasing.",
        ),
        claim(
            "The AUC is hardly affected: that of the increasing function is close to 1.",
            all(r["auc"] > (1 - r["epsilon"]) ** 2 - 0.02 for r in rows),
            f"(1 - ε)² is its true value; on {s['test_rows']:,} rows: {auc(y, x):.4f} at ε = 0.05.",
        ),
    ]
    return {"rows": rows, "claims": claims}


def _describe_one_dimension(result: Result) -> list[Part]:
    rows = [
        [
            f"ε = {r['epsilon']:g}, m = {r['m']}",
            f"{100 * r['fooled']:.1f}",
            f"{100 * r['none_beyond']:.1f}",
            f"{100 * r['no_negative_beyond']:.1f}",
            f"{r['auc']:.4f}",
        ]
        for r in result["rows"]
    ]
    return [
        Paragraph(
            "Positives lie on [0, 1] and negatives on [-1, 0], but for a proportion ε of the rows "
            "beyond them, which are the other way round. Two functions are to choose from, x and "
            "-x. How often does R_max on m rows choose x, which is the worst at the top? The paper "
            "says (1 - ε)^m, the chance that no row lies beyond. It is more: x is chosen too where "
            "rows lie beyond at the lower end only, so that the chance is (1 - ε/2)^m."
        ),
        Grid(["", "ours, %", "(1 - ε)^m, %", "(1 - ε/2)^m, %", "mean AUC of x"], rows),
        claims_part(result["claims"]),
    ]


def _draw_one_dimension(result: Result) -> Figure:
    figure = new_figure(6.4, 4.2)
    ax = figure.subplots()
    for epsilon, colour, dashes in zip(EPSILONS, ("#0072B2", "#D55E00"), ("-", "--"), strict=True):
        rows = [r for r in result["rows"] if r["epsilon"] == epsilon]
        sizes = [r["m"] for r in rows]
        look: dict[str, Any] = {"color": colour, "linestyle": dashes}
        exact = [r["no_negative_beyond"] for r in rows]
        ax.plot(sizes, exact, label=f"(1 - ε/2)^m, ε = {epsilon:g}", **look)
        ax.plot(sizes, [r["none_beyond"] for r in rows], color=colour, linestyle=":", linewidth=1)
        ax.plot(
            sizes, [r["fooled"] for r in rows], "o", color=colour, label=f"ours, ε = {epsilon:g}"
        )
    ax.set(xscale="log", xlabel="rows m", ylabel="share of samples that choose the wrong function")
    ax.set(ylim=(0, 1.02), title="R_max needs the rare rows (dotted: (1 - ε)^m)")
    ax.legend(frameon=False)
    ax.grid(alpha=0.25)
    return figure


#: Rows that stand for the distribution.
REGRET_ROWS = 20_000


def _bent(X: FloatArray) -> FloatArray:
    return expit(2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] - 1.0)


def _draw_rows(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.standard_normal((n, 5))


def get_model(name: str) -> BipartiteModel:
    """Return the model whose best ranking is by a linear score, or the one where it is not."""
    return (
        linear_bipartite(5, prevalence=0.3)
        if name == "linear"
        else BipartiteModel(_draw_rows, _bent)
    )


def regrets(model: str, loss: str, n: int, seed: int, repeats: int) -> JsonObject:
    """Ranking regret of fits to n rows, and the bound of Theorem 13 from their surrogate regret."""
    truth = get_model(model)
    X, _ = truth.sample(REGRET_ROWS, random_state=[seed, 10**6])
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


def _measure_regret(setup: Setup) -> Result:
    s = setup.settings
    cases = [
        (model, loss, n, setup.seed, s["repeats"])
        for model in ("linear", "bent")
        for loss in PROPER_LOSSES
        for n in s["sizes"]
    ]
    rows = setup.map(regrets, cases)
    share = max(row["largest_share"] for row in rows)
    right = [row for row in rows if row["model"] == "linear"]
    first, last = s["sizes"][0], s["sizes"][-1]
    means = [float(np.mean([r["regret"] for r in right if r["n"] == m])) for m in (first, last)]
    claims = [
        claim(
            "Theorem 13: no ranking regret exceeds its bound.",
            share <= 1.0,
            f"{len(cases) * s['repeats']:,} fits; the closest comes to {share:.1%} of its bound.",
        ),
        claim(
            "Where the linear model is right the regret vanishes as rows are added.",
            means[1] < 0.25 * means[0],
            f"{means[0]:.5f} at {first} rows, {means[1]:.5f} at {last:,}, over all losses.",
        ),
    ]
    return {"rows": rows, "claims": claims}


def _describe_regret(result: Result) -> list[Part]:
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


def _draw_regret(result: Result) -> Figure:
    figure = new_figure(10, 4)
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


SIZES = (50, 100, 200, 400, 800, 1600, 3200)
RATE_ROWS = 1000


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
        fresh, _ = model.sample(RATE_ROWS, random_state=[seed, 10**6])
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


def _measure_rates(setup: Setup) -> Result:
    sizes, repeats = setup.settings["sizes"], setup.settings["repeats"]
    found = setup.map(
        excess_risks, [(case, n, setup.seed, repeats) for case in CASES for n in sizes]
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


def _describe_rates(result: Result) -> list[Part]:
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


def draw_rates(result: Result) -> Figure:
    """Draw the excess risks of a result beside the two rates."""
    sizes = np.array(result["settings"]["sizes"])
    drawn = new_figure(10.5, 3.8)
    axes = drawn.subplots(1, len(result["rows"]))
    for ax, row in zip(axes, result["rows"], strict=True):
        _draw_case(ax, row, sizes)
    axes[0].set_ylabel("excess ranking risk")
    axes[0].legend(frameon=False, fontsize=8)
    return drawn


def _draw_case(ax: Axes, row: JsonObject, sizes: np.ndarray) -> None:
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
        "one-dimension",
        "Section 10.1: an illustration in one dimension",
        _measure_one_dimension,
        _describe_one_dimension,
        _draw_one_dimension,
        "How often the wrong function is chosen against the number of rows",
        full={"sizes": [10, 20, 50, 100, 200, 500], "repeats": 500, "test_rows": 20_000},
        quick={"sizes": [10, 50, 200], "repeats": 300, "test_rows": 20_000},
        finding="the wrong function is chosen with probability (1 - ε/2)^m, not (1 - ε)^m.",
    ),
    Experiment(
        "regret",
        "Agarwal 2012, Theorem 13: ranking regret and its bound",
        _measure_regret,
        _describe_regret,
        _draw_regret,
        "Ranking regret and its bound against the number of rows, right and wrong model",
        full={"sizes": [50, 500, 5000], "repeats": 10},
        quick={"sizes": [50, 500], "repeats": 3},
    ),
    Experiment(
        "rates",
        "Clémençon, Lugosi & Vayatis 2006, Section 5: rates",
        _measure_rates,
        _describe_rates,
        draw_rates,
        "Excess ranking risk against the number of rows in three models: it falls about as 1/n",
        full={"sizes": list(SIZES), "repeats": 20},
        quick={"sizes": [50, 200, 800], "repeats": 4},
    ),
)

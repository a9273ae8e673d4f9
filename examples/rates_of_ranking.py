"""
How fast the excess ranking risk falls
======================================

Three models whose best ranking is known (Clémençon, Lugosi & Vayatis 2006, Section 5), and the
excess risk of PairRanker over that best ranking against the number of rows, beside the rates that
the paper proves for empirical risk minimisers over a class of finite VC dimension: (log n / n)^1/2
always, and, up to n^epsilon, log n / n under the noise conditions that all three models meet.
PairRanker minimises a convex risk instead, over linear scores, among which the best ranking is.

    python examples/rates_of_ranking.py                # prints the exponents
    python examples/rates_of_ranking.py excess_risk.png
"""

import sys

import numpy as np

from toprank import PairRanker, simulate
from toprank.bounds import exact_ranking_regret

SIZES = np.array([50, 100, 200, 400, 800, 1600, 3200])
REPEATS = 20
FRESH_ROWS = 2000


def excess_of_regression(model):
    return model.excess_risk


def excess_of_two_classes(model):
    return lambda X, scores: exact_ranking_regret(model.eta(X), scores)


TWO_CLASSES = simulate.linear_bipartite()
NOISELESS = simulate.regression(5)
VARYING_NOISE = simulate.heteroscedastic(5)
#: title, model, how its excess risk is measured, ranker
CASES = [
    (
        "5.1  two classes",
        TWO_CLASSES,
        excess_of_two_classes(TWO_CLASSES),
        PairRanker(loss="logistic", alpha=1e-4),
    ),
    (
        "5.2  real labels, no noise",
        NOISELESS,
        excess_of_regression(NOISELESS),
        PairRanker(alpha=1e-6),
    ),
    (
        "5.3  real labels, noise that varies",
        VARYING_NOISE,
        excess_of_regression(VARYING_NOISE),
        PairRanker(alpha=1e-4),
    ),
]


def excess_risks(model, excess, ranker):
    """Excess risk of each size and repeat, on the same fresh rows."""
    fresh, _ = model.sample(FRESH_ROWS, random_state=10**6)
    risks = np.empty((len(SIZES), REPEATS))
    for i, n in enumerate(SIZES):
        for repeat in range(REPEATS):
            X, y = model.sample(n, random_state=repeat)
            risks[i, repeat] = excess(fresh, ranker.fit(X, y).predict(fresh))
    return risks


def exponent(risks):
    """The b of risk = c n^b, by least squares in logarithms."""
    return float(np.polyfit(np.log(SIZES), np.log(np.mean(risks, axis=1)), 1)[0])


def draw(ax, title, risks):
    mean = np.mean(risks, axis=1)
    low, high = np.quantile(risks, [0.1, 0.9], axis=1)
    ax.fill_between(SIZES, low, high, color="#2a6f97", alpha=0.18, linewidth=0)
    ax.plot(SIZES, mean, "o-", color="#2a6f97", markersize=4, label="PairRanker, mean")
    slow, fast = np.sqrt(np.log(SIZES) / SIZES), np.log(SIZES) / SIZES
    ax.plot(SIZES, mean[0] * slow / slow[0], "--", color="0.45", label=r"$(\log n / n)^{1/2}$")
    ax.plot(SIZES, mean[0] * fast / fast[0], ":", color="0.2", label=r"$\log n / n$")
    ax.set(title=f"{title}\nfalls as n^{exponent(risks):.2f}", xscale="log", yscale="log")
    ax.set(xlabel="rows n", xticks=SIZES[::2], xticklabels=[f"{n:,}" for n in SIZES[::2]])
    ax.minorticks_off()
    ax.grid(alpha=0.25)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def main(path=None):
    results = []
    for title, model, excess, ranker in CASES:
        results.append((title, excess_risks(model, excess, ranker)))
        print(f"{title}: excess risk falls as n^{exponent(results[-1][1]):.2f}")
    if path is None:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.8), layout="constrained")
    axes = figure.subplots(1, len(results))
    for ax, (title, risks) in zip(axes, results, strict=True):
        draw(ax, title, risks)
    axes[0].set_ylabel("excess ranking risk")
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main(*sys.argv[1:2])

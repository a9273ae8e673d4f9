"""The pictures of docs/explanation: the push, heights, why not AUC, and resampling.

    python benchmarks/explanations.py      writes docs/images/explain_*.png, prints the figures

Every number in a picture is computed here; the pages compute theirs in their own snippets.
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from toprank.metrics import auc, heights, precision_at
from toprank.simulate import linear_bipartite

OUT = Path(__file__).resolve().parents[1] / "docs" / "images"
BLUE, RED, GREY = "#2f6f9f", "#b2182b", "#777777"
#: The list of the pages about the push, from its top: 1 for a positive.
LIST = np.array([1, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0])


def draw_heights(path):
    """The list with the height of each negative, and its part of the whole for three powers."""
    scores = np.arange(len(LIST), 0, -1)
    height = heights(LIST, scores)  # of the negatives, from the top of the list
    places = np.flatnonzero(LIST == 0)
    figure, axes = plt.subplots(
        1, 4, figsize=(8.4, 4.4), sharey=True, gridspec_kw={"width_ratios": [1.5, 1, 1, 1]}
    )
    colours = np.where(LIST == 1, BLUE, RED)
    axes[0].barh(np.arange(len(LIST)), np.ones(len(LIST)), color=colours, height=0.85)
    for place, label in enumerate(LIST):
        said = "positive" if label else f"negative, height {int(height[places == place][0])}"
        axes[0].text(0.5, place, said, ha="center", va="center", color="white", fontsize=9)
    axes[0].set(title="the list", xticks=[], xlim=(0, 1), yticks=range(12), ylabel="place")
    axes[0].set_yticklabels(range(1, 13))
    axes[0].invert_yaxis()
    for ax, p in zip(axes[1:], (1, 4, 16), strict=True):
        part = height.astype(float) ** p
        ax.barh(places, part / part.sum(), color=RED, height=0.85)
        ax.set(title=f"p = {p}", xlim=(0, 1), xlabel="share of the cost")
        print(f"p = {p:2d}: the highest negative makes {part.max() / part.sum():.0%} of the cost")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def two_rankers(n=4000, seed=0):
    """Scores of two rankers: one right at the top, one right in the middle, of the larger area."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.1
    top = rng.normal(size=n) + np.where(y & (rng.random(n) < 0.45), 4.0, 0.0) + 0.45 * y
    middle = rng.normal(size=n) * np.where(y, 0.6, 1.0) + 1.1 * y
    return y, top, middle


def draw_auc(path):
    y, top, middle = two_rankers()
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.8))
    for name, s, colour in (("ranker A", top, BLUE), ("ranker B", middle, RED)):
        order = np.argsort(-s)
        found = np.r_[0, np.cumsum(y[order])] / y.sum()
        wrong = np.r_[0, np.cumsum(~y[order])] / (~y).sum()
        axes[0].plot(wrong, found, color=colour, label=f"{name}: AUC {auc(y, s):.2f}")
        axes[1].plot(np.arange(1, 201), np.cumsum(y[order])[:200], color=colour, label=name)
        print(f"{name}: AUC {auc(y, s):.3f}, of the first 100 {100 * precision_at(y, s, 100):.0f}")
    axes[0].set(xlabel="negatives let through", ylabel="positives found", title="the whole list")
    axes[1].set(xlabel="rows looked at", ylabel="positives among them", title="the first 200 rows")
    axes[0].legend()
    axes[1].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def resample(X, y, way, seed=0):
    """The rows that a fit sees: all, negatives thinned out, or positives repeated."""
    rng = np.random.default_rng(seed)
    positives, negatives = np.flatnonzero(y), np.flatnonzero(~y)
    if way == "negatives thinned out":
        negatives = rng.choice(negatives, len(positives), replace=False)
    if way == "positives repeated":
        positives = rng.choice(positives, len(negatives))
    rows = np.concatenate([positives, negatives])
    return X[rows], y[rows]


def draw_resampling(path):
    model = linear_bipartite(prevalence=0.03)
    X, y = model.sample(8000, random_state=0)
    X_new, y_new = model.sample(40_000, random_state=1)
    y, y_new = y.astype(bool), y_new.astype(bool)
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.9))
    ways = ("as it is", "negatives thinned out", "positives repeated")
    for place, (way, colour) in enumerate(zip(ways, (BLUE, RED, "#e08214"), strict=True)):
        chance = LogisticRegression().fit(*resample(X, y, way)).predict_proba(X_new)[:, 1]
        hits = precision_at(y_new, chance, 400)
        print(f"{way:22s} AUC {auc(y_new, chance):.3f}, first 400 {hits:.3f}, "
              f"mean probability {chance.mean():.3f} of {y_new.mean():.3f}")  # fmt: skip
        error = 1.96 * np.sqrt(hits * (1 - hits) / 400)
        axes[0].barh(place, hits, xerr=error, color=colour, height=0.6, ecolor="#333333")
        edges = np.quantile(chance, np.linspace(0, 1, 13))
        band = np.clip(np.searchsorted(edges, chance, side="right") - 1, 0, 11)
        said = [chance[band == b].mean() for b in range(12)]
        came = [y_new[band == b].mean() for b in range(12)]
        axes[1].plot(said, came, "o-", color=colour, label=way, markersize=4)
    axes[0].set(xlabel="positives among the first 400", title="the list: no better", xlim=(0, None))
    axes[0].set_yticks(range(3), ways)
    axes[0].invert_yaxis()
    axes[1].plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    axes[1].set(xlabel="probability predicted", ylabel="share that came true")
    axes[1].set_title("the probabilities: broken")
    axes[1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    out = parser.parse_args().out
    draw_heights(out / "explain_heights.png")
    draw_auc(out / "explain_auc.png")
    draw_resampling(out / "explain_resampling.png")


if __name__ == "__main__":
    main()

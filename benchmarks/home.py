"""The picture of the documentation's first page: positives found against rows looked at.

    python benchmarks/home.py               writes docs/images/home.png, prints the figures

Telescope events (`load_magic`), of which one in ten is kept a positive: half of them to learn
from, half to search. Everything is at its defaults.
"""

from __future__ import annotations

import argparse
import json

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PushEnsemble
from toprank.datasets import load_magic
from toprank.inference import lift_band

POSITIVES = 743
SHOWN = 300
COLOURS = {"PushEnsemble": "#0a4a8a", "LightGBM": "#3a7a3a", "logistic regression": "#a8441a"}


def rare_events() -> tuple[np.ndarray, np.ndarray]:
    """The events with a random part of the gamma rays, so that one in ten is one."""
    X, y = load_magic(return_X_y=True)
    rng = np.random.default_rng(0)
    kept = np.concatenate(
        (np.flatnonzero(y == 0), rng.choice(np.flatnonzero(y == 1), POSITIVES, replace=False))
    )
    return X[kept], y[kept]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="docs/images/home.png")
    options = parser.parse_args()
    X, y = rare_events()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y,
                                                        random_state=0)  # fmt: skip
    models = {
        "PushEnsemble": PushEnsemble(random_state=0),
        "LightGBM": lightgbm.LGBMClassifier(random_state=0, verbose=-1),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    looked_at = np.arange(1, SHOWN + 1)
    of_random = looked_at * y_test.mean()
    figure, axes = plt.subplots(figsize=(7.2, 4.0), dpi=150, layout="constrained")
    found = {}
    for name, model in models.items():
        model.fit(X_train, y_train)
        scores = (
            model.predict_proba(X_test)[:, 1]
            if name == "LightGBM"
            else model.decision_function(X_test)
        )
        band = lift_band(y_test, scores, top=looked_at / len(y_test))
        axes.plot(looked_at, band.estimate * of_random, color=COLOURS[name], label=name,
                  lw=2.2 if name == "PushEnsemble" else 1.4)  # fmt: skip
        if name == "PushEnsemble":
            axes.fill_between(looked_at, band.low * of_random, band.high * of_random,
                              color=COLOURS[name], alpha=0.13, lw=0)  # fmt: skip
        at = [49, 99, 199]
        found[name] = dict(zip(looked_at[at].tolist(),
                               np.round(band.estimate[at] * of_random[at], 1).tolist(),
                               strict=True))  # fmt: skip
    axes.plot(looked_at, of_random, color="0.5", lw=1, ls=":", label="a random order")
    axes.set(xlabel="rows looked at, from the top of the list", ylabel="positives found",
             xlim=(0, SHOWN), ylim=(0, None))  # fmt: skip
    axes.set_title(f"{int(y_test.sum())} positives among {len(y_test):,} rows", fontsize=10)
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.out)
    print(json.dumps({"rows": len(y_test), "positives": int(y_test.sum()), "found": found}))


if __name__ == "__main__":
    main()

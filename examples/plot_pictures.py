"""
The pictures of a ranking
=========================

Every picture of `toprank.plots` on the MAGIC telescope data, and Figures 1, 3 and 4 of Rudin
(2009). Each display has `from_estimator` and `from_predictions`, draws on the axes it is given,
and hands them on, so that several rankers share a picture. Colours are told apart by the
colour-blind, dashes in black and white. Bands are 95% intervals from `toprank.inference`.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PNormPush, PNormPushCV, RankBoost
from toprank.datasets import load_magic
from toprank.plots import (
    DiscountDisplay,
    LiftDisplay,
    MarginDisplay,
    PairContributionDisplay,
    PushPathDisplay,
    TopRocDisplay,
)

X, y = load_magic(return_X_y=True)
rng = np.random.default_rng(0)
# gamma rays made rare, as they are in the sky
keep = (y == 0) | (rng.random(len(y)) < 0.06)
X, y = X[keep], y[keep]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
rankers = {
    f"p = {p}": make_pipeline(StandardScaler(), PNormPush(p)).fit(X_train, y_train) for p in (1, 64)
}

# %%
# The ROC curve, whole and where the top of the list is.
axes = None
for name, ranker in rankers.items():
    axes = TopRocDisplay.from_estimator(ranker, X_test, y_test, name=name, ax=axes).ax_

# %%
# Lift: how many times more positives than a random order. No order can pass the thin line.
ax = None
for name, ranker in rankers.items():
    ax = LiftDisplay.from_estimator(ranker, X_test, y_test, name=name, ax=ax).ax_

# %%
# What pushing harder buys on held-out rows, against logistic regression.
scaled = StandardScaler().fit_transform(X)
search = PNormPushCV(scoring_kwargs={"k": 0.01}, alphas=(1e-3,)).fit(scaled, y)
PushPathDisplay.from_estimator(search)

# %%
# Margins of all pairs, in units of the coefficients: RankBoost with few and with many stumps.
ax = None
for rounds in (10, 200):
    booster = RankBoost(rounds).fit(X_train, y_train)
    name = f"RankBoost, {rounds} stumps"
    ax = MarginDisplay.from_estimator(booster, X_test, y_test, name=name, ax=ax).ax_

# %%
# Figures 1 and 4: what each pair of a positive and a negative adds to the risk, for the list of
# Section 3.3 of the paper. The larger p is, the more the highest negatives count.
labels = np.array([1, 1, 0] * 6 + [0, 0])
scores = np.arange(20, 0, -1) / 20
figure, axes = pyplot.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
for ax, p in zip(axes, (1, 4), strict=False):
    PairContributionDisplay.from_predictions(labels, scores, p=p, ax=ax, colorbar=False)
PairContributionDisplay.from_predictions(labels, scores, price="log1p", ax=axes[2])

# %%
# Figure 3: the discounting factors of DCG, AveR and the IR Push.
DiscountDisplay.of_the_paper()
pyplot.show()

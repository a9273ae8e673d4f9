"""
Alerts per day: which cards to look into
========================================

A bank can look into some cards each morning. After this page you can make that list, say how good
it will be on a coming day, and decide how many cards it should have.

The payments are made by `toprank.simulate.card_payments`: 1,000 cards, three kinds of fraud, and
labels that come a week late, as they do in life.

The setting is simulated. It shows how such a decision is made, and proves nothing about which
method is better: for that there is the :doc:`evidence </evidence/index>`.
"""

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PushTrees
from toprank.inference import period_interval
from toprank.select import cut
from toprank.simulate import card_payments
from toprank.tuning import capacity_threshold

payments = card_payments(1000, 300, days=80, payments_per_day=0.6, frauds_per_day=15)
X, y, day, card = payments.features, payments.fraud, payments.day, payments.customer
print(f"{len(y)} payments, {100 * y.mean():.1f}% fraud")
print("known of each:", ", ".join(payments.feature_names))

# %%
# Learn from what was known then
# ------------------------------
# It is the morning of day 55. A payment of yesterday has no label yet, so the models learn from
# the payments whose label is *known* by now. They are judged on the days that follow. A random
# split would mix the days and flatter every model.
today = 55
known, later = payments.known < today, day >= today
models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "LightGBM": lightgbm.LGBMClassifier(n_estimators=150, learning_rate=0.05, verbose=-1, n_jobs=1),
    "PushTrees, p = 2": PushTrees(p=2, n_estimators=150, learning_rate=0.05, n_jobs=1),
}
scores = {}
for name, model in models.items():
    model.fit(X[known], y[known])
    scores[name] = model.predict_proba(X[later])[:, 1]

# %%
# How good is the list of a day?
# ------------------------------
# Someone who looks into a card looks into all its payments of the day, so a card counts once, by
# its highest score. Each day is a list of its own. The interval is one for the mean of the days,
# and it allows for neighbouring days being alike.
y_later, day_later, card_later = y[later], day[later], card[later]
daily = {
    name: period_interval("precision_at", y_later, s, day_later, entities=card_later, k=15)
    for name, s in scores.items()
}
for name, one in daily.items():
    print(
        f"{name:20s} {one.estimate:.3f} of 15 cards, 95% interval {one.low:.3f} to {one.high:.3f}"
    )

# %%
# The models are close, and the intervals say that these days cannot tell the two kinds of trees
# apart. Take the one that leads, and do not sell it as better than it is.
best = max(daily, key=lambda name: daily[name].estimate)
score = scores[best]
print("the list is made by", best)

# %%
# How long should the list be?
# ----------------------------
# The first card of a day is worth a look; is the thirtieth? Count, over all days, what each place
# of the list found. This is the picture to decide by: a look costs half an hour, a stopped fraud
# saves two, so that a place pays where more than one look in four finds something.
longest = 40
days = np.unique(day_later)
hit = np.zeros((len(days), longest))
for row, one_day in enumerate(days):
    at = np.flatnonzero(day_later == one_day)
    listed = cut(score[at], longest, entities=card_later[at]).rows
    bad = {c for c in card_later[at][y_later[at]]}
    hit[row] = [c in bad for c in card_later[at][listed]]

per_place = hit.reshape(len(days), -1, 5).mean(axis=(0, 2))
error = 1.96 * hit.reshape(len(days), -1, 5).mean(axis=2).std(axis=0) / np.sqrt(len(days))
places = np.arange(longest // 5) * 5 + 3
figure, axes = plt.subplots(figsize=(7.2, 3.8))
axes.bar(places, per_place, width=4.2, color="#2f6f9f", yerr=error, ecolor="#444444")
axes.axhline(0.25, color="#b2182b", linestyle="--", label="a look pays above this line")
axes.set(xlabel="place in the list of a day", ylabel="share of cards with fraud", ylim=(0, None))
axes.legend()
figure.tight_layout()

# %%
# The decision
# ------------
# The places pay up to the first five that fall under the line.
below = np.flatnonzero(per_place < 0.25)
length = 5 * int(below[0]) if len(below) else longest
good = period_interval("precision_at", y_later, score, day_later, entities=card_later, k=length)
print(f"Look into {length} cards each morning.")
print(
    f"Expect {length * good.estimate:.1f} with fraud, {length * good.low:.1f} to "
    f"{length * good.high:.1f} on the mean of some weeks."
)

# %%
# Where payments must be stopped at once there is no morning list. A fixed score stands for it:
# the lowest at which the alerts of a day are, on average, as many as there is time for. Days
# differ, and the interval says by how much. It counts payments, not cards: a stolen card has
# several.
print(capacity_threshold(score, length, day_later, y=y_later))

# %%
# Next: what else a list must keep to (regions, budgets, cards that are already blocked) is in
# :doc:`/how_to/lists_within_limits`; how to keep it from changing for no reason from day to day
# in :doc:`/how_to/lists_through_time`.

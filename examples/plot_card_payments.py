"""
From card payments to the list of the day
=========================================

Each day someone can look into 100 cards. Payments are simulated with three kinds of fraud, and
whether a payment was fraud is known a week later (`toprank.simulate.card_payments`). Three models
learn from 60 days; then come the days in which the list is used: how good is it, what do limits
cost, what is learned from rows drawn at random, and how does the list change from day to day?

The numbers below are of one simulated town. They show how the pieces work together, not which model
is best.
"""

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PushEnsemble
from toprank.inference import interval, period_interval
from toprank.metrics import precision_at
from toprank.select import compare_lists, cut
from toprank.simulate import card_payments

payments = card_payments(1500, 400, days=92, payments_per_day=0.6, frauds_per_day=30)
X, y, day, card = payments.features, payments.fraud, payments.day, payments.customer
print(f"{len(y)} payments by {card.max() + 1} cards, {100 * y.mean():.2f}% fraud")

# %%
# Train on the past only
# ----------------------
# On day 67 the labels of the last week are not known yet: train on days 0 to 59, and look at the
# lists of days 67 to 91.
train, test = day < 60, day >= 67
models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "LightGBM": lightgbm.LGBMClassifier(n_estimators=200, learning_rate=0.05, verbose=-1, n_jobs=1),
    "PushEnsemble": PushEnsemble(quality="fast", max_seconds=30, n_jobs=1),
}
chance = {}
for name, model in models.items():
    model.fit(X[train], y[train])
    chance[name] = model.predict_proba(X[test])[:, 1]

# %%
# How good is the list of a day?
# ------------------------------
# A card counts once per day, by its highest score, and as fraud if one of its payments was. The
# interval is one over days, and knows that neighbouring days are alike.
found = {
    name: period_interval("precision_at", y[test], values, day[test], entities=card[test], k=100)
    for name, values in chance.items()
}
figure, axes = plt.subplots(figsize=(8, 3.5))
for name, one in found.items():
    print(f"{name:20s} {one.estimate:.4f}, 95% interval {one.low:.4f} to {one.high:.4f}")
    axes.plot(one.periods, one.values, marker=".", label=name)
axes.set(xlabel="day", ylabel="share of fraud in the first 100 cards", ylim=(0, None))
axes.legend(frameon=False)
figure.tight_layout()

# %%
# A list within limits
# --------------------
# The list of day 80 holds each card once, at least 30 payments of night hours (a team works then),
# and gives up a tenth of its places for payments drawn at random.
name = "LightGBM"
today = day[test] == 80
scores, cards = chance[name][today], card[test][today]
night = np.where(X[test][today][:, payments.feature_names.index("night")] > 0, "night", "day")
alerts = cut(
    scores,
    100,
    probability=scores,
    entities=cards,
    groups=night,
    at_least={"night": 30},
    explore=0.1,
)
print(alerts)

figure, axes = plt.subplots(figsize=(8, 2.2))
axes.barh([one.limit for one in alerts.prices], [one.positives for one in alerts.prices])
axes.set(xlabel="expected fraud lost to the limit")
figure.tight_layout()

# %%
# What the drawn rows tell
# ------------------------
# Lists of three weeks, three tenths of them drawn at random. How much fraud is in the twentieth of
# all payments with the highest scores? The rows of the lists by themselves say far too much, since
# they are the top; weighted by their propensities they tell the truth, with an interval.
seen, propensity = [], []
for number in range(67, 88):
    rows = np.flatnonzero(day[test] == number)
    listed = cut(chance[name][rows], 100, explore=0.3, random_state=number)
    seen.append(rows[listed.rows])
    propensity.append(listed.propensity)
rows, weights = np.concatenate(seen), np.concatenate(propensity)
known, marks = y[test][rows], chance[name][rows]
in_weeks = day[test] < 88
print("truth:    ", round(precision_at(y[test][in_weeks], chance[name][in_weeks], 0.05), 4))
print("the lists:", round(precision_at(known, marks, 0.05), 4))
print("weighted: ", interval("precision_at", known, marks, k=0.05, label_propensity=weights))

# %%
# How does the list change?
# -------------------------
# The first 100 cards of two days in a row. Most cards do not pay every day: turnover is high by
# nature.


def first_cards(number):
    """The cards of a day, the highest score first."""
    rows = np.flatnonzero(day[test] == number)
    order = rows[np.argsort(-chance[name][rows])]
    return list(dict.fromkeys(card[test][order].tolist()))


print(compare_lists(first_cards(80), first_cards(81), 100))
plt.show()

"""
Leads to call: where the money is
=================================

A sales team calls customers. A call costs 9, and an order brings more from some customers than
from others. After this page you can order the calls by money instead of by probability, decide
how many calls to make, and say what they will bring.

The customers are made by `toprank.simulate.leads`.

The setting is simulated. It shows how such a decision is made, and proves nothing about which
method is better: for that there is the :doc:`evidence </evidence/index>`.
"""

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank.inference import compare, interval
from toprank.metrics import best_k, precision_at, value_at
from toprank.select import cut
from toprank.simulate import leads

COST = 9.0
customers = leads(12_000)
X, bought, order = customers.features, customers.label, customers.value
print(f"{len(bought)} customers, {100 * bought.mean():.1f}% would buy")
print(f"half of the orders bring less than {np.median(order):.0f}, the best {order.max():.0f}")

# %%
# Three parts of the table: one to learn from, one to choose by, one to report on. What was chosen
# looks better on the rows it was chosen by; only the third part can be shown to the boss.
learn, choose, report = np.split(np.arange(12_000), [5000, 8500])

# %%
# A probability for every customer
# --------------------------------
# Money needs probabilities, not only an order: an order worth 400 with a chance of 2% is a call
# that loses. Two models; we take the one that is better at the first 300 calls of the second
# part, and ask whether the difference is more than luck.
models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "LightGBM": lightgbm.LGBMClassifier(
        n_estimators=80, learning_rate=0.04, num_leaves=7, verbose=-1, n_jobs=1
    ),
}
chance = {name: m.fit(X[learn], bought[learn]).predict_proba(X)[:, 1] for name, m in models.items()}
for name, p in chance.items():
    print(f"{name:20s} {precision_at(bought[choose], p[choose], 300):.3f} of the first 300 buy")
print(compare("precision_at", bought[choose], *(p[choose] for p in chance.values()), k=300))

# %%
# Order by money
# --------------
# The best order for money is by probability times what the order would bring. The likeliest
# buyers are small firms with small orders, so that the two lists differ.
p = chance["LightGBM"]
orders = {
    "by probability": p,
    "by size of the order": order,
    "by probability times order": p * order,
}
figure, axes = plt.subplots(figsize=(7.2, 3.8))
for name, s in orders.items():
    calls = np.arange(0, 3501, 50)
    earned = [
        value_at(bought[choose], s[choose], int(k), benefit=order[choose], cost=COST) if k else 0.0
        for k in calls
    ]
    (line,) = axes.plot(calls, earned, label=name)
    k = best_k(bought[choose], s[choose], benefit=order[choose], cost=COST)
    axes.plot(
        k,
        value_at(bought[choose], s[choose], k, benefit=order[choose], cost=COST) if k else 0,
        "o",
        color=line.get_color(),
    )
axes.axhline(0, color="#444444", linewidth=0.8)
axes.set(xlabel="calls", ylabel="earned less the cost of calls")
axes.legend()
figure.tight_layout()

# %%
# How many calls?
# ---------------
# The dot is the best number of calls on these rows. Take it, and look what it earns on rows that
# had no part in the choice: that is the figure to promise, with its interval.
worth = p * order
k = best_k(bought[choose], worth[choose], benefit=order[choose], cost=COST)
share = k / len(choose)
promise = interval(
    "value_at", bought[report], worth[report], k=share, benefit=order[report], cost=COST
)
print(f"best on the second part: {k} calls of {len(choose)}, {100 * share:.0f}%")
print(f"on the third part it earns {promise.estimate:.0f},")
print(f"95% interval {promise.low:.0f} to {promise.high:.0f}")

# %%
# The decision
# ------------
# This month there is money for 400 calls and no more, and the boss wants at least 40 in the
# north. `cut` makes that list, and says what each limit costs.
budget = 400 * COST
calls = cut(
    worth[report],
    probability=p[report],
    value=order[report],
    cost=COST,
    budget=budget,
    groups=customers.group[report],
    at_least={"north": 40},
)
earned = np.sum(order[report][calls.rows] * bought[report][calls.rows]) - COST * len(calls.rows)
print(calls)
print(f"\nCall these {len(calls.rows)}. They earned {earned:.0f} after the cost of the calls.")

# %%
# Next: the report that goes with such a list, with the money in it, is in :doc:`/how_to/report`;
# a list with a guarantee instead of a budget in :doc:`/how_to/select`.

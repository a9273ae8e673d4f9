"""
What to inspect next: labels only where someone looked
======================================================

A maintenance team inspects some machines each week, those that its rule of thumb puts first: the
oldest. It has labels for those, and none for the rest. After this page you can learn from such
labels without being fooled by them, and make a next list that keeps the door open.

The machines are made by `toprank.simulate.machines`. In this plant old machines have faults, as
everyone knows; so have newer ones that run hot under a changing load, where nobody has looked.

The setting is simulated. It shows how such a decision is made, and proves nothing about which
method is better: for that there is the :doc:`evidence </evidence/index>`.
"""

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold

from toprank.inference import interval
from toprank.metrics import precision_at
from toprank.select import cut, label_weights
from toprank.simulate import machines

plant = machines(14_000, share=0.06, random_state=4)
X, fault = plant.features, plant.label
past, next_week = slice(0, 10_000), slice(10_000, None)
rule = X[:, plant.feature_names.index("years")]

# %%
# What the team did
# -----------------
# Of 10,000 machines 1,500 were inspected: seven in ten by the rule, three in ten drawn at random
# from the others. The draw looked like waste at the time. `cut` does it, and writes down the
# probability with which each machine was looked at.
looked = cut(rule[past], 1500, explore=0.3, random_state=1)
rows, seen = looked.rows, looked.propensity
print(f"{len(rows)} inspected, {fault[past][rows].sum()} faults found")
print(f"by the rule with certainty, at random with probability {seen.min():.3f}")

# %%
# What the labels say, and what is true
# -------------------------------------
# How good are the first tenth of the list by the rule? Ask only the inspected machines, and the
# rule marks its own homework. Weigh each machine by one over its probability, and the sum stands
# for the plant. We know the truth, for once, because the plant is simulated.
share = 0.1
y, propensity = fault[past][rows], {"label_propensity": seen}
naive = precision_at(y, rule[past][rows], share)
weighed = interval("precision_at", y, rule[past][rows], k=share, **propensity)
print(f"of the inspected alone   {naive:.3f}")
print(f"weighed                  {weighed.estimate:.3f}, {weighed.low:.3f} to {weighed.high:.3f}")
print(f"the truth                {precision_at(fault[past], rule[past], share):.3f}")

# %%
# Learn, and measure what was learned
# -----------------------------------
# Three ways to learn: from the rule's rows alone, as if there had been no draw; from all rows;
# from all rows with their weights. Each is judged on inspected machines that it has not seen
# (cross-validation), and *weighed*, so that the figure is about the plant.


def fit(at, weight=None):
    model = lightgbm.LGBMClassifier(
        n_estimators=60,
        learning_rate=0.05,
        num_leaves=6,
        min_child_samples=10,
        verbose=-1,
        n_jobs=1,
    )
    return model.fit(X[past][rows[at]], y[at], sample_weight=weight)


weight = label_weights(seen).weight
drawn = seen < 1
ways = {
    "the rule": None,
    "learned from the rule's rows": lambda at: fit(at[~drawn[at]]),
    "learned from all rows": fit,
    "learned from all rows, weighed": lambda at: fit(at, weight[at]),
}
unseen = {"the rule": rule[past][rows]}
for name, way in ways.items():
    if way is not None:
        unseen[name] = np.empty(len(y))
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(
            rows, 2 * y + drawn
        ):
            unseen[name][test] = way(train).predict_proba(X[past][rows[test]])[:, 1]
    print(name, interval("precision_at", y, unseen[name], k=share, **propensity), sep=": ")

# %%
# Choose by these figures; they need no truth. The list of next week is then made with it: 300 of
# 4,000 other machines. And here is the truth for all four, faults found against machines
# inspected.
best = max(unseen, key=lambda name: precision_at(y, unseen[name], share, **propensity))
everything = np.arange(len(rows))
score = {
    name: rule[next_week] if way is None else way(everything).predict_proba(X[next_week])[:, 1]
    for name, way in ways.items()
}
figure, axes = plt.subplots(figsize=(7.2, 3.8))
for name, values in score.items():
    order = np.argsort(-values, kind="stable")[:800]
    axes.plot(np.arange(1, 801), np.cumsum(fault[next_week][order]), label=name)
axes.axvline(300, color="#444444", linestyle=":")
axes.set(xlabel="machines inspected", ylabel="faults found", ylim=(0, None))
axes.legend()
figure.tight_layout()
print("chosen:", best)
for name, values in score.items():
    print(f"{name:32s} {300 * precision_at(fault[next_week], values, 300):5.0f} faults in 300")

# %%
# The rows that were drawn are worth more than any weighting of the others: without them the model
# cannot know that new machines run hot. Weights matter most for *measuring*; for learning, they
# help a model that cannot bend (a straight line) more than trees, which can.
#
# The decision
# ------------
# Inspect the list of the chosen model, and go on drawing a tenth at random. Keep the propensities
# beside the labels: they are what the week after next will be learned from. What the draw costs
# is printed.
chosen = score[best]
kept, without = (cut(chosen, 300, explore=part, random_state=2) for part in (0.1, 0.0))
faults = [int(fault[next_week][one.rows].sum()) for one in (kept, without)]
by_chance = int(np.sum(kept.propensity < 1))
print(
    f"Inspect these {len(kept.rows)}: {len(kept.rows) - by_chance} from the top, {by_chance} drawn."
)
print(f"They have {faults[0]} faults; {faults[1]} without the draw, and a blind spot for ever.")

# %%
# Next: the arguments behind the weights, and positives among unlabelled rows, in
# :doc:`/how_to/partial_labels`.

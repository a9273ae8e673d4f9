"""
Triage: who is seen first, and is it fair?
==========================================

An emergency room has beds for some of those who come. After this page you can rank patients,
check whether the probabilities at the top of the list can be believed, see what the list does to
each age group, and decide where to draw the line.

The patients are made by `toprank.simulate.patients`. In the old the signs are weaker: the same
pulse and the same pain mean a higher risk.

The setting is simulated. It shows how such a decision is made, and proves nothing about which
method is better: for that there is the :doc:`evidence </evidence/index>`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from toprank import ProperRanker, select
from toprank.inference import compare, interval, top_groups
from toprank.simulate import patients

room = patients(14_000)
X, ill, age = room.features, room.label, room.group
learn, check, new = np.split(np.arange(14_000), [6000, 10_000])
print(f"{len(ill)} patients, {100 * ill.mean():.1f}% need a bed at once")
print("known of each:", ", ".join(room.feature_names))

# %%
# Two models: one that does not look at the age, because someone thought that fair, and one that
# does, with products of the columns so that a sign can mean more in the old.
signs = [room.feature_names.index(name) for name in room.feature_names if name != "age"]
blind = make_pipeline(StandardScaler(), ProperRanker(alpha=1e-3)).fit(
    X[learn][:, signs], ill[learn]
)
full = make_pipeline(
    StandardScaler(),
    PolynomialFeatures(2, include_bias=False),
    StandardScaler(),
    ProperRanker(alpha=3e-3),
).fit(X[learn], ill[learn])
scores = {
    "without the age": blind.predict_proba(X[:, signs])[:, 1],
    "with the age": full.predict_proba(X)[:, 1],
}
beds = 0.1  # of those who come
for name, s in scores.items():
    print(f"{name:16s}", interval("recall_at", ill[check], s[check], k=beds))
print(compare("recall_at", ill[check], *(s[check] for s in scores.values()), k=beds))

# %%
# Can the probabilities be believed?
# ----------------------------------
# "A chance of 60%" must mean six of ten, at the top of the list above all, and in each group.
# Compare what was predicted with what came, on rows that had no part in the fit. A band is marked
# where its interval leaves the prediction out.
prepared = full[:-1].transform(X[check])
print(full[-1].calibration_report(prepared, ill[check], cuts=(0.02, 0.1, 0.3, 1.0)))

# %%
# And by age? A line under the diagonal was predicted too high, a line above it too low. The model
# that does not see the age is too low for the old, all along the list.
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.6), sharex=True, sharey=True)
groups = ["under 40", "40 to 69", "70 and over"]
for panel, (name, s) in zip(axes, scores.items(), strict=True):
    for group, colour in zip(groups, ("#4393c3", "#444444", "#b2182b"), strict=True):
        at = check[age[check] == group]
        edges = np.quantile(s[at], [0, 0.5, 0.75, 0.9, 1.0])
        band = np.clip(np.searchsorted(edges, s[at], side="right") - 1, 0, 3)
        said = [s[at][band == b].mean() for b in range(4)]
        came = [ill[at][band == b].mean() for b in range(4)]
        panel.plot(said, came, "o-", color=colour, label=group)
    panel.plot([0, 0.6], [0, 0.6], color="#999999", linewidth=0.8)
    panel.set(title=name, xlabel="predicted")
axes[0].set_ylabel("came true")
axes[1].legend()
figure.tight_layout()

# %%
# Who is in the first tenth?
# --------------------------
# For each age: the share that gets a bed, how many of those needed it, and how many of those who
# need one get it.
for name, s in scores.items():
    print(name)
    print(top_groups(ill[check], s[check], age[check], beds), "\n")

# %%
# Leaving the age out was not fair. Read *precision* in the first table: the old who made it into
# the list were ill far more often than the others, so the line was drawn too high for them. With
# the age the precision is alike in all groups, more of the old who need a bed get one (*recall*),
# and the others lose nothing. Which of these should be equal is a question for people; the table
# shows what each answer does.

# %%
# The decision
# ------------
# The hospital asks for one thing: four in five of those who need a bed at once are in the first
# list, with 95% certainty. `select` takes the rows kept aside and finds the line. It needs no
# calibrated probability, only patients who come as those did.
score = scores["with the age"]
line = select(score[new], calibration=(ill[check], score[check]), recall_at_least=0.8)
print(line)
taken = line.mask
print(
    f"\nSee {taken.sum()} of {len(new)} patients first. Of those who needed it, "
    f"{100 * ill[new][taken].sum() / ill[new].sum():.0f}% were among them:"
)
for group in groups:
    at = age[new] == group
    print(f"  {group:12s} {100 * np.mean(taken[at & ill[new]]):.0f}%")

# %%
# Next: the guarantees and what they assume are in :doc:`/how_to/select`; groups in the first rows
# in :doc:`/how_to/groups_at_top`.

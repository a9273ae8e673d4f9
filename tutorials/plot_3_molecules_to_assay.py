"""
Molecules to assay: one plate, many families
============================================

A laboratory has screened half of a library and has one plate of 96 wells for the other half.
After this page you can rank molecules by their fingerprints, measure the ranking as chemists do
(BEDROC, enrichment), and fill the plate with active molecules that are not all cousins.

The library is made by `toprank.simulate.molecules`: fingerprints of 256 bits, 4% active, in
families that share a skeleton.

The setting is simulated. It shows how such a decision is made, and proves nothing about which
method is better: for that there is the :doc:`evidence </evidence/index>`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from toprank import PNormPushCV
from toprank.inference import compare, interval
from toprank.metrics import enrichment_factor
from toprank.select import cut
from toprank.simulate import molecules

library = molecules(6000, share=0.04)
X, active = library.features, library.label
screened, new = slice(0, 3000), slice(3000, None)
print(f"{len(active)} molecules, {active.sum()} active, {active[screened].sum()} known so far")

# %%
# Rank the second half
# --------------------
# Extra trees are what many laboratories use, logistic regression is the simplest thing that
# works, and the push brings the highest inactive molecules down; `PNormPushCV` chooses how hard,
# by the metric. With so few active molecules nobody knows beforehand which of them leads:
# measure.
models = {
    "logistic regression": LogisticRegression(C=0.1, max_iter=500),
    "PNormPushCV": PNormPushCV(
        (1, 2, 4), scoring="bedroc", alphas=(0.01, 0.1, 1), cv=3, test_size=0.2
    ),
    "extra trees": ExtraTreesClassifier(150, min_samples_leaf=2, random_state=0),
}
scores = {}
for name, model in models.items():
    model.fit(X[screened], active[screened])
    s = model.predict_proba(X[new])[:, 1]
    scores[name] = s
    factor = enrichment_factor(active[new], s, 0.02)
    found = interval("bedroc", active[new], s, alpha=20, n_resamples=200)
    print(
        f"{name:20s} {factor:4.1f} times the actives of a random 2%; BEDROC {found.estimate:.3f}, "
        f"{found.low:.3f} to {found.high:.3f}"
    )

# %%
# BEDROC with alpha = 20 looks at about the first 8% of the list, the top of it most. Are the
# leader and the second apart by more than luck?
first, second = sorted(scores, key=lambda n: enrichment_factor(active[new], scores[n], 0.02))[:0:-1]
print(f"{first} against {second}:")
print(compare("bedroc", active[new], scores[first], scores[second], alpha=20, n_resamples=200))

# %%
# A list of cousins
# -----------------
# The highest scores are alike: what makes one molecule score high makes its family score high. To
# see it, put molecules together whose fingerprints share at least half of their bits (Tanimoto
# similarity; the molecule with the most neighbours first, as Butina does). No knowledge of the
# true families is used.


def cluster(prints, similar=0.5):
    """The cluster of each molecule, largest neighbourhood first."""
    shared = prints @ prints.T
    bits = prints.sum(axis=1)
    near = shared / np.maximum(bits[:, None] + bits - shared, 1) >= similar
    label = np.full(len(prints), -1)
    while (free := label < 0).any():
        centre = np.argmax(np.where(free, (near & free).sum(axis=1), -1))
        label[near[centre] & free] = label[centre] = label.max() + 1
    return label


def front(score, prints, length=500):
    """The first rows of a list, more than a plate holds, and their clusters."""
    rows = np.argsort(-score, kind="stable")[:length]
    return rows, cluster(prints[rows])


rows, family = front(scores[first], X[new])
print(
    f"the 96 highest scores come from {len(np.unique(family[:96]))} clusters, "
    f"{np.bincount(family[:96]).max()} of them from one"
)

# %%
# What does variety cost?
# -----------------------
# Allow at most so many molecules of each cluster. What that costs can be seen on the half that is
# screened: its molecules are scored by a model that has not seen them (three folds), and its
# labels are known.
out_of_fold = cross_val_predict(
    models[first], X[screened], active[screened], cv=3, method="predict_proba"
)
past, past_family = front(out_of_fold[:, 1], X[screened])
caps = (2, 3, 5, 8, 12, 20, 96)
hits, kinds = [], []
for cap in caps:
    plate = cut(out_of_fold[past, 1], 96, groups=past_family, at_most=cap).rows
    hit = active[screened][past[plate]]
    hits.append(int(hit.sum()))
    kinds.append(len(np.unique(past_family[plate][hit])))
figure, axes = plt.subplots(figsize=(7.2, 3.8))
axes.plot(range(len(caps)), hits, "o-", color="#2f6f9f", label="active molecules on the plate")
axes.plot(range(len(caps)), kinds, "s--", color="#b2182b", label="clusters with an active molecule")
axes.set_xticks(range(len(caps)), [*map(str, caps[:-1]), "no limit"])
axes.set(xlabel="molecules of one cluster at most", ylabel="of 96 wells", ylim=(0, None))
axes.legend()
figure.tight_layout()

# %%
# The decision
# ------------
# A chemist wants several starting points, not forty of the same. Take the strictest limit that
# kept three quarters of the active molecules in the screened half, and fill the plate.
limit = next(cap for cap, hit in zip(caps, hits, strict=True) if hit >= 0.75 * hits[-1])
plate = cut(scores[first][rows], 96, groups=family, at_most=limit).rows
print(
    f"Assay these 96, at most {limit} of a cluster, from {len(np.unique(family[plate]))} clusters."
)

# %%
# And what came of it, which only a simulation knows before the assay:
for name, taken in {"with the limit": plate, "without": np.arange(96)}.items():
    hit = active[new][rows[taken]]
    print(f"{name:15s} {hit.sum():3d} active, of {len(np.unique(family[taken][hit]))} clusters")
print(f"{'at random':15s} {96 * active[new].mean():3.0f} active")

# %%
# Next: other limits on a list are in :doc:`/how_to/lists_within_limits`; a network under the push
# in :doc:`/explanation/trees`.

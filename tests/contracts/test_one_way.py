"""`fit(X, y)` is `fit_blocks` over a source in memory: the same coefficients, bit for bit."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from toprank import IRPush, PNormPush, ProperRanker, PushRanker, blocks
from toprank.losses import TRAINABLE_LOSSES
from toprank.losses.proper import PROPER_LOSSES
from toprank.pairs import ENDS
from toprank.prices import PRICES

RANKERS = [
    PNormPush(),
    PNormPush(p=np.inf),
    PNormPush(alpha=0.0),
    PNormPush(solver="lbfgs"),
    PNormPush(solver="coordinate", max_iter=5),
    PNormPush(class_weight="balanced"),
    PNormPush(link="p_classification"),
    IRPush(),
    *(
        PushRanker(price=price, loss=loss, end=end)
        for price in PRICES
        for loss in TRAINABLE_LOSSES
        for end in sorted(ENDS)
        if price != "log1p" or loss == "exponential"
    ),
    *(ProperRanker(loss) for loss in PROPER_LOSSES),
]
#: Sizes at which samples of the rows, several blocks and compiled sums come into play.
LARGE = [PNormPush(), IRPush(), ProperRanker(), PushRanker(end="both"), PNormPush(loss="logistic")]
FORMS = {
    "dense": np.asarray,
    "by columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": lambda X: sparse.csr_array(np.where(np.abs(X) > 0.7, X, 0.0)),
}


def rows(n, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + np.linspace(0, 1e4, d) * (np.arange(d) == 1)
    y = X[:, 0] + rng.logistic(size=n) > 1.0
    return X, np.where(y, "yes", "no"), rng.integers(0, 4, size=n).astype(float)


def same_fit(ranker, X, y, weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = clone(ranker).fit(X, y, weight)
        blockwise = clone(ranker).fit_blocks(blocks.from_arrays(X, y, weight))
    for name in ("coef_", "intercept_", "objective_", "n_iter_"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(blockwise, name), name)
    assert whole.classes_.tolist() == blockwise.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(whole.decision_function(X), blockwise.decision_function(X))


@pytest.mark.sampled(15)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_every_ranker_fits_an_array_as_it_fits_blocks_of_it(ranker, weighted):
    X, y, weight = rows(150)
    same_fit(ranker, X, y, weight if weighted else None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ranker", RANKERS[:8] + RANKERS[-2:], ids=repr)
def test_whatever_the_form_of_the_rows(ranker, form):
    X, y, weight = rows(200)
    same_fit(ranker, FORMS[form](X), y, weight)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("n", [9_000, 25_000, 210_000])
@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("ranker", LARGE, ids=repr)
def test_at_every_size(ranker, form, n):
    X, y, weight = rows(n)
    same_fit(ranker, FORMS[form](X), y, weight if form == "dense" else None)

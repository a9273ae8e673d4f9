"""The data on which every solver must agree."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from toprank.datasets import load_magic, load_spambase, load_wdbc


def ill_conditioned(n=600, d=12):
    """Columns that mix directions whose spreads differ by a factor of 10,000."""
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    X = rng.normal(size=(n, d)) @ (turn * np.logspace(0, -4, d)) @ turn.T
    return X, X @ rng.normal(size=d) * 2 + rng.normal(size=n) > 0.5


@pytest.fixture(scope="session")
def tasks():
    """(X, positive) by name: three standardised data sets and an ill-conditioned one."""
    found = {"ill_conditioned": ill_conditioned()}
    for name, load in (("wdbc", load_wdbc), ("spambase", load_spambase), ("magic", load_magic)):
        X, y = load(return_X_y=True)
        found[name] = StandardScaler().fit_transform(X), y == np.unique(y)[1]
    return found


@pytest.fixture(scope="session")
def small():
    """A few overlapping rows, for oracles that look at every pair."""
    rng = np.random.default_rng(3)
    positive = np.arange(40) < 16
    X = rng.normal(size=(40, 5)) + 0.5 * positive[:, None] * np.array([1, -1, 0.5, 0, 0.2])
    return X, positive

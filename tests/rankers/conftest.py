"""Small overlapping data that every ranker fits in milliseconds."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def overlapping():
    """(X, y): 150 rows, 4 features, classes that overlap."""
    rng = np.random.default_rng(11)
    y = (rng.random(150) < 0.4).astype(int)
    X = rng.normal(size=(150, 4)) * [1.0, 2.0, 0.5, 1.0]
    X += y[:, None] * [0.8, -0.5, 0.1, 0.0]
    return X, y


@pytest.fixture(scope="session")
def separable():
    """(X, y) with every positive far above every negative in the first feature."""
    rng = np.random.default_rng(5)
    y = np.arange(60) % 3 == 0
    X = rng.normal(size=(60, 3))
    X[:, 0] += np.where(y, 10.0, -10.0)
    return X, y.astype(int)

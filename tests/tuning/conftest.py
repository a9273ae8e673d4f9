"""Small overlapping data for the choice of p."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def rows():
    """(X, y): 300 rows, 4 features, classes that overlap, a fifth of them positive."""
    rng = np.random.default_rng(7)
    y = (rng.random(300) < 0.2).astype(int)
    X = rng.normal(size=(300, 4)) + y[:, None] * [1.2, -0.6, 0.3, 0.0]
    return X, y

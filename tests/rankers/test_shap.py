"""SHAP reads the trees of `PushTrees`, and agrees with what they say of themselves."""

import numpy as np
import pytest

from toprank import PushTrees

shap = pytest.importorskip("shap", reason="SHAP is not installed")


@pytest.mark.more
@pytest.mark.filterwarnings("ignore:LightGBM binary classifier with TreeExplainer")
@pytest.mark.parametrize("p", [4.0, None])
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_shap_explains_the_booster_as_explain_does(backend, p):
    pytest.importorskip(backend)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=300) > 1
    trees = PushTrees(p, backend=backend, n_estimators=10, early_stopping=False, random_state=0)
    trees.fit(X, y)
    found = np.asarray(shap.TreeExplainer(trees.booster_).shap_values(X))
    np.testing.assert_allclose(found, trees.explain(X)[:, :-1], atol=1e-6)

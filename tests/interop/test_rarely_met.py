"""What other libraries and languages meet rarely, each in a small case."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PNormPush
from toprank.interop import lightgbm
from toprank.interop.additive import additive_form
from toprank.interop.sql_dialects import get_dialect
from toprank.interop.sql_steps import SqlSteps
from toprank.interop.tree_forms import _lightgbm_node


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, size=(60, 3))
    return X, (X[:, 0] + rng.normal(size=60) > 3.5).astype(int)


@pytest.mark.parametrize("with_mean", [False, True])
@pytest.mark.parametrize("with_std", [False, True])
def test_a_scaler_is_written_as_it_scales(rows, with_mean, with_std):
    X, y = rows
    scaler = StandardScaler(with_mean=with_mean, with_std=with_std)
    ranker = make_pipeline(scaler, PNormPush(2.0)).fit(X, y)
    form = additive_form(ranker)
    scores = form.intercept + sum(term.slope * X[:, j] for j, term in form.terms.items())
    np.testing.assert_allclose(scores, ranker.decision_function(X), rtol=1e-10, atol=1e-12)


def test_a_ranker_that_adds_up_no_columns_is_refused(rows):
    with pytest.raises(ValueError, match="KNeighborsClassifier is neither linear nor a sum"):
        additive_form(KNeighborsClassifier().fit(*rows))


def test_codes_of_words_are_literals_and_those_of_no_words_nothing():
    steps = SqlSteps(["city"], get_dialect("ansi"))
    steps.code("city", np.array(["O'Hare", "Rome"], dtype=object))
    steps.code("size", np.array([], dtype=object))
    query = steps.finish("1e0")
    assert "CASE city WHEN 'O''Hare' THEN 0 WHEN 'Rome' THEN 1 END" in query
    assert "NULL" in query and "CASE size" not in query


def test_trees_that_take_zero_for_missing_are_not_translated():
    leaf = {"leaf_value": 1.0}
    node = {"split_feature": 0, "left_child": leaf, "right_child": leaf, "decision_type": "<=",
            "threshold": 0.5, "missing_type": "Zero", "default_left": True}  # fmt: skip
    with pytest.raises(ValueError, match="zero_as_missing"):
        _lightgbm_node(node)
    assert _lightgbm_node({**node, "missing_type": "NaN"}).column == 0


def test_lightgbm_on_several_machines_is_refused_and_one_machine_is_not(rows):
    _, y = rows
    scores = np.linspace(-1, 1, len(y))

    def dataset(**params):
        return SimpleNamespace(params=params, get_label=lambda: y, get_weight=lambda: None,
                               get_group=lambda: None)  # fmt: skip

    metric = lightgbm.push_metric("auc")
    assert repr(metric) == "push_metric('auc')"
    assert metric(scores, dataset(num_machines=1))[0] == "auc"
    with pytest.raises(ValueError, match="machine"):
        metric(scores, dataset(num_machines=2))

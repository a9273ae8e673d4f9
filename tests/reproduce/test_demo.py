"""The push against logistic regression on random splits: what `toprank demo` measures."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score

from toprank.reproduce import demo as demo_experiment
from toprank.reproduce.demo import MEASURES, run_demo


@pytest.fixture(scope="module")
def result():
    X, y = make_classification(n_samples=600, flip_y=0.2, random_state=0)
    return run_demo(X, y, powers=(1, 4), n_splits=3)


def with_values(result, before, after):
    """The result with the measures of its first and last model replaced."""
    first, *middle, last = result.models
    models = (replace(first, values=before), *middle, replace(last, values=after))
    return replace(result, models=models)


def test_every_model_is_measured_on_the_same_splits(result):
    assert [model.p for model in result.models] == [None, 1, 4]
    assert all(model.values.shape == (len(MEASURES), 3) for model in result.models)
    assert result.n_train == 400 and result.n_test == 200
    assert all(np.all((0 <= model.values) & (model.values <= 1)) for model in result.models)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    X, y = make_classification(n_samples=200, flip_y=0.2, random_state=1)
    one, same, other = (run_demo(X, y, powers=(2,), n_splits=1, seed=seed) for seed in (3, 3, 4))
    for a, b, c in zip(one.models, same.models, other.models, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
        assert not np.array_equal(a.values, c.values)


def test_the_mean_curve_starts_with_the_positives_above_every_negative(result):
    at_top = [measure.name for measure in MEASURES].index("positives above every negative")
    for model in result.models:
        assert model.tpr[0] == pytest.approx(model.means[at_top])
        assert model.tpr[-1] == 1.0
        assert np.all(np.diff(model.tpr) >= 0)


def test_the_rate_at_a_rate_is_that_of_the_whole_curve():
    rng = np.random.default_rng(0)
    y, scores = np.arange(400) % 2, rng.normal(size=400) + np.arange(400) % 2
    rates = np.linspace(0, 1, 2001)
    area = np.mean(demo_experiment._tpr_at(rates, y, scores))
    assert area == pytest.approx(roc_auc_score(y, scores), abs=2e-3)


def test_the_bottom_of_the_list_is_what_lies_below_nearly_all_positives():
    y = [1] * 19 + [0] * 3 + [1] + [0] * 2
    bottom = next(measure for measure in MEASURES if not measure.in_table)
    assert bottom.of(y, -np.arange(25)) == 1.0  # 19 of 20 positives lead the list
    assert bottom.of(y, np.append(-np.arange(18), np.arange(7) - 100)) == pytest.approx(3 / 5)


def test_progress_counts_every_fit():
    X, y = make_classification(n_samples=100, flip_y=0.2, random_state=1)
    seen = []
    run_demo(X, y, powers=(1, 2), n_splits=2, on_fit=lambda *step: seen.append(step))
    assert [done for _, done, _ in seen] == list(range(6))
    assert {total for *_, total in seen} == {6}


def test_a_change_is_clear_only_if_nine_splits_of_ten_agree(result):
    before = np.full((len(MEASURES), 10), 0.5)
    shifts = np.array(
        [[0.1] * 9 + [-0.4], [-0.1] * 9 + [0], [0.1] * 8 + [0] * 2, [0] * 10, [0] * 10]
    )
    changes = with_values(result, before, before + shifts).changes()
    assert [change.direction for change in changes] == [1, -1, 0, 0, 0]

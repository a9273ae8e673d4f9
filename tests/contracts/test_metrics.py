"""What every registered metric promises to the rest of the library, and one from outside."""

import ast
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import toprank.inference
from toprank import PNormPush, blocks
from toprank.inference import compare, interval
from toprank.metrics import METRICS, register, scorer, summary
from toprank.metrics.metric import SHARE
from toprank.metrics.order import RankedList

#: Decided by one extreme row in a way that leaves no interval, or no comparison.
NO_INTERVAL = {"ranking_margin"}
NO_COMPARISON = {"ranking_margin", "max_height", "positives_at_top"}
RNG = np.random.default_rng(0)


def top_share(y_true, y_score, depth, sample_weight=None):
    """Weight of the positives scored within `depth` of the highest, over that of all such rows."""
    y_true, y_score = np.asarray(y_true).astype(bool), np.asarray(y_score)
    weight = np.ones(len(y_true)) if sample_weight is None else np.asarray(sample_weight)
    near = y_score >= np.max(y_score[weight > 0]) - depth
    return float(np.sum(weight[near & y_true]) / np.sum(weight[near]))


@pytest.fixture(autouse=True)
def outside():
    """A metric that is added as a user would add it."""
    yield register(top_share, higher_is_better=True, values=(0, 1), settings={"depth": 0.5})
    del METRICS["top_share"]


NAMES = [*METRICS, "top_share"]


def rows(n=160, positives=50, seed=1):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < positives).astype(int)
    s = np.round(rng.normal(size=n) + y, 1)
    return y, s, np.round(s + rng.normal(size=n), 1)


CASES = {
    "plain": lambda n: {},
    "weighted": lambda n: {"sample_weight": np.random.default_rng(2).integers(0, 3, n)},
    "sampling": lambda n: {"sample_weight": 1 + RNG.random(n), "weights": "sampling"},
    "propensity": lambda n: {"label_propensity": 0.3 + 0.7 * RNG.random(n)},
    "groups": lambda n: {"groups": np.arange(n) % 23},
}


def call(name, y, s, label_propensity=None, **how):
    """The metric of the rows; a propensity is a weight to those that know of none."""
    if label_propensity is not None and name == "top_share":
        how["sample_weight"] = 1 / label_propensity
    elif label_propensity is not None:
        how["label_propensity"] = label_propensity
    return METRICS[name].function(y, s, **METRICS[name].settings, **how)


def within(name, *numbers):
    lowest, highest = METRICS[name].bounds(METRICS[name].settings)
    return all(lowest <= number <= highest for number in numbers)


class TestInterval:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize("name", sorted(set(NAMES) - NO_INTERVAL))
    def test_is_of_the_metric_and_within_its_values(self, name, case):
        y, s, _ = rows()
        how = CASES[case](len(y))
        found = interval(name, y, s, n_resamples=60, **how, **METRICS[name].settings)
        known = {key: how[key] for key in ("sample_weight", "label_propensity") if key in how}
        assert found.estimate == pytest.approx(call(name, y, s, **known), rel=1e-9)
        assert within(name, found.low, found.estimate, found.high)
        assert found.low <= found.high and found.method and found.estimand

    @pytest.mark.parametrize("name", sorted(set(NAMES) - NO_INTERVAL))
    def test_of_a_perfect_ranking_is_within_its_values(self, name):
        y = np.repeat([0, 1], [30, 12])
        found = interval(name, y, 1.0 * y, n_resamples=60, **METRICS[name].settings)
        assert within(name, found.low, found.high)

    @pytest.mark.parametrize("name", sorted(NO_INTERVAL))
    def test_is_refused_with_advice_where_there_is_none(self, name):
        y, s, _ = rows()
        with pytest.raises(ValueError, match=r"has no valid interval.* Use "):
            interval(name, y, s)

    @pytest.mark.parametrize("name", NAMES)
    def test_wants_the_settings_that_the_metric_needs_and_no_others(self, name):
        y, s, _ = rows()
        with pytest.raises(TypeError, match=f"{name} has no parameter 'colour'"):
            interval(name, y, s, colour="red", **METRICS[name].settings)
        for needed in METRICS[name].settings:
            with pytest.raises(TypeError, match=f"{name} needs {needed}"):
                interval(name, y, s)


class TestComparison:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize("name", sorted(set(NAMES) - NO_COMPARISON))
    def test_is_the_difference_of_the_two_values(self, name, case):
        y, a, b = rows()
        how = CASES[case](len(y))
        found = compare(name, y, a, b, n_resamples=60, **how, **METRICS[name].settings)
        known = {key: how[key] for key in ("sample_weight", "label_propensity") if key in how}
        truth = call(name, y, a, **known) - call(name, y, b, **known)
        assert found.difference == pytest.approx(truth, rel=1e-9, abs=1e-12)
        assert found.low <= found.difference <= found.high
        assert 0 < found.p_value <= 1

    @pytest.mark.parametrize("name", sorted(NO_COMPARISON))
    def test_is_refused_where_one_row_decides(self, name):
        y, a, b = rows()
        with pytest.raises(ValueError, match="depends on one extreme row"):
            compare(name, y, a, b)


@pytest.mark.parametrize("name", NAMES)
def test_scorers_are_larger_for_better_rankings(name):
    X, y = make_classification(150, weights=[0.7], flip_y=0.1, random_state=0)
    score = scorer(name, **METRICS[name].settings)
    model = LogisticRegression().fit(X, y)
    sign = 1 if METRICS[name].higher_is_better else -1
    assert score(model, X, y) == sign * call(name, y, model.decision_function(X))
    assert np.all(np.isfinite(cross_val_score(model, X, y, scoring=score, cv=3)))


@pytest.mark.parametrize("name", NAMES)
def test_a_list_ranked_already_has_the_value_of_its_rows(name):
    y, s, _ = rows()
    weight = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    metric = METRICS[name]
    if metric.of_list is None and metric.each_list is None:
        with pytest.raises(TypeError, match="more than the order of the rows"):
            metric.of(RankedList.of(y, s, weight))
        return
    value = metric.of(RankedList.of(y, s, weight))
    assert value == pytest.approx(call(name, y, s, sample_weight=weight), rel=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"push_risk", "value_at"}))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_summary_holds_the_value_of_the_rows(name, weighted):
    y, s, _ = rows()
    weight = np.random.default_rng(2).integers(0, 3, len(y)) if weighted else None
    result = summary(y, s, 0.1, p=4.0, max_fpr=0.1, sample_weight=weight)
    for entry in (one for one in result if one.name == name):
        wanted = METRICS[name].function(y, s, sample_weight=weight, **entry.settings)
        assert entry.value == pytest.approx(wanted, rel=1e-9)
    assert name in {entry.name for entry in result}


@pytest.mark.parametrize("name", sorted(set(METRICS) - {"push_risk", "value_at", "ranking_risk"}))
def test_scores_on_a_device_have_the_value_of_those_on_the_host(name, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from toprank.blocks.tensors import tensor_of

    monkeypatch.setattr("toprank.metrics._inputs.tensor_on_device", tensor_of)
    y, s, _ = rows()
    found = call(name, torch.as_tensor(y), torch.as_tensor(s))
    assert found == pytest.approx(call(name, y, s), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_rows_in_blocks_have_the_value_of_rows_in_memory(name):
    X, y = make_classification(300, weights=[0.7], flip_y=0.1, random_state=0)
    model = PNormPush(p=2).fit(X, y)
    found = model.evaluate_blocks(blocks.from_arrays(X, y, block_rows=70))
    settings = METRICS[name].settings
    value = found.metric(name, **settings)
    assert value.exact
    assert value.value == pytest.approx(call(name, y, model.decision_function(X)), rel=1e-9)
    if name not in NO_INTERVAL:
        assert found.interval(name, n_resamples=40, **settings).estimate == value.value


def test_the_same_function_unregistered_leaves_its_values():
    """What registering is for: nothing is known of a plain function."""
    y, s = np.repeat([0, 1], [9, 3]), np.r_[np.zeros(9), 0.0, 1.0, 1.0]
    plain = interval(lambda y, s: float(np.mean(s[y == 1])), y, s, n_resamples=200)
    assert plain.high > 1
    known = register(lambda y, s: float(np.mean(s[y])), name="mean", higher_is_better=True,
                     values=(0, 1))  # fmt: skip
    try:
        found = interval("mean", y, s, n_resamples=200)
        assert 0 < found.low < found.estimate == plain.estimate < found.high < 1
        assert found == interval(known, y, s, n_resamples=200)
    finally:
        del METRICS["mean"]


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 1), (2, 5)])
def test_any_two_finite_values_bound_the_interval(low, high):
    def scaled(y, s):
        return low + (high - low) * float(np.mean(s[y] > 0.5))

    y, s = np.repeat([0, 1], [9, 4]), np.r_[np.zeros(10), 1.0, 1.0, 1.0]
    register(scaled, higher_is_better=True, values=(low, high))
    try:
        for scores in (s, np.ones(13), np.zeros(13)):
            found = interval("scaled", y, scores, n_resamples=100)
            assert low <= found.low <= found.estimate <= found.high <= high
    finally:
        del METRICS["scaled"]


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ({"name": "auc"}, "There is a metric 'auc' already"),
        ({"name": "f_skew"}, "There is a metric 'f_skew' already"),
        ({"name": "no name"}, "expected a name such as"),
        ({"values": (1, 0), "name": "b"}, "smallest value, then the largest"),
        ({"settings": {}, "name": "c"}, "c needs depth.* Give it to register in settings="),
        ({"settings": {"depth": 1, "k": 2}, "name": "d"}, "d has no parameter 'k'"),
    ],
)
def test_what_cannot_be_registered_is_refused(how, complaint):
    given = {"values": (0, 1), "settings": {"depth": 1.0}, "higher_is_better": True, **how}
    with pytest.raises(ValueError, match=complaint):
        register(top_share, **given)
    with pytest.raises(ValueError, match="expected a function of the labels and the scores"):
        register(lambda scores: 1.0, name="e", higher_is_better=True)


def test_inference_knows_no_metric_by_name():
    """A string that is a metric's name, docstrings apart, would be a strategy chosen by name."""
    names = set(METRICS) | {"f_skew"}
    for path in sorted(Path(toprank.inference.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text())
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        found = [
            (path.name, node.lineno, node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and id(node) not in docs and node.value in names
        ]
        assert not found, found


def test_shares_are_from_0_to_1():
    y, s, _ = rows()
    shares = [name for name in NAMES if METRICS[name].bounds(METRICS[name].settings) == SHARE]
    assert {"auc", "precision_at", "bedroc", "top_share"} <= set(shares)
    for name in shares:
        assert all(0 <= call(name, y, one) <= 1 for one in (s, -s, 1.0 * y, -1.0 * y))

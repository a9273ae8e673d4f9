"""Metrics of tensors: the same numbers as NumPy's, computed where the scores lie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed")

import toprank.metrics as metrics  # noqa: E402
from toprank.blocks.tensors import tensor_of  # noqa: E402
from toprank.metrics import METRICS, _inputs, summary  # noqa: E402
from toprank.metrics.lists import Lists  # noqa: E402
from toprank.metrics.order import RankedList  # noqa: E402

#: What needs more than the order of the rows of two classes.
REFUSED = {"push_risk", "value_at", "ranking_risk"}
NAMES = sorted(METRICS.keys() - REFUSED)


def ranked(y, s, w=None):
    """The list as ranked by torch, whatever the device of the scores."""
    checked = _inputs.check_on_device(torch.as_tensor(s), y, w, None, None)
    return RankedList.rank(*checked)


def rows(seed, n=400, ties=True, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    y[:2] = [True, False]
    s = rng.normal(size=n) + y
    return y.astype(int), (np.round(s, 1) if ties else s).astype(dtype), rng


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weights", ["none", "whole", "any"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_metric_of_the_order_equals_numpys(name, weights, dtype):
    y, s, rng = rows(0, dtype=dtype)
    w = {
        "none": None,
        "whole": rng.integers(0, 4, len(y)).astype(float),
        "any": rng.random(len(y)) * (rng.random(len(y)) > 0.1),
    }[weights]
    metric = METRICS[name]
    here = ranked(y, s, w)
    got = metric.of(here, Lists.of_one(here))
    want = metric.function(y, s, **metric.settings, sample_weight=w)
    assert isinstance(got, float)
    assert got == pytest.approx(want, rel=1e-12, abs=1e-12)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=40),
    st.integers(1, 5),
)
def test_ties_and_cuts_are_shared_out_as_by_numpy(pairs, k):
    y, s = (np.array(column) for column in zip(*pairs, strict=True))
    if len(set(y.tolist())) < 2:
        return
    k = min(k, len(y))
    here = ranked(y, s.astype(float))
    lists = Lists.of_one(here)
    for name in ("precision_at", "recall_at", "lift_at", "ndcg_at", "enrichment_factor"):
        want = METRICS[name].function(y, s, k)
        assert METRICS[name].of(here, lists, k=k) == pytest.approx(want, rel=1e-12)
    for p in (1.0, 3.0, np.inf):
        want = metrics.pnorm_risk(y, s, p, normalize=True)
        assert METRICS["pnorm_risk"].of(here, lists, p=p, normalize=True) == pytest.approx(want)


@pytest.fixture
def everywhere(monkeypatch):
    """Treat tensors of the host as if they lay on a device."""
    monkeypatch.setattr(_inputs, "tensor_on_device", tensor_of)


def test_the_public_functions_take_tensors(everywhere):
    y, s, _ = rows(1)
    y_tensor, s_tensor = torch.as_tensor(y), torch.as_tensor(s)
    for name in NAMES:
        metric = METRICS[name]
        got = metric.function(y_tensor, s_tensor, **metric.settings)
        want = metric.function(y, s, **metric.settings)
        assert got == pytest.approx(want, rel=1e-12), name
    want = summary(y, s, top=(5, 0.1)).as_dict()
    assert summary(y_tensor, s_tensor, top=(5, 0.1)).as_dict() == pytest.approx(want, rel=1e-12)
    assert metrics.f_skew(y_tensor, s_tensor) == pytest.approx(metrics.f_skew(y, s), rel=1e-12)
    column = metrics.auc(y_tensor[:, None], s_tensor[:, None])
    assert column == pytest.approx(metrics.auc(y, s), rel=1e-12)
    _, shares = metrics.margin_distribution(y, s)
    np.testing.assert_allclose(metrics.margin_distribution(y_tensor, s_tensor)[1], shares)


def test_labels_weights_and_propensities_may_lie_on_the_host(everywhere):
    y, s, rng = rows(2)
    w, seen = rng.random(len(y)), 0.5 + 0.5 * rng.random(len(y))
    got = metrics.auc(y, torch.as_tensor(s), sample_weight=w, label_propensity=seen)
    assert got == pytest.approx(metrics.auc(y, s, sample_weight=w, label_propensity=seen))
    assert metrics.auc(y, torch.as_tensor(s), pos_label=0) == pytest.approx(
        metrics.auc(y, s, pos_label=0)
    )


@pytest.mark.parametrize("name", ["push_risk", "heights", "reverse_heights"])
def test_what_needs_the_host_says_so(everywhere, name):
    y, s, _ = rows(3)
    with pytest.raises(TypeError, match="Copy them to the host first"):
        getattr(metrics, name)(y, torch.as_tensor(s))


def test_ranks_come_back_as_a_tensor(everywhere):
    y, s, _ = rows(6)
    got = metrics.ranks(y, torch.as_tensor(s))
    assert isinstance(got, torch.Tensor)
    np.testing.assert_array_equal(got.numpy(), metrics.ranks(y, s))


def test_groups_on_a_device_are_refused(everywhere):
    y, s, _ = rows(4)
    with pytest.raises(TypeError, match="host"):
        metrics.precision_at(y, torch.as_tensor(s), 3, groups=np.arange(len(y)) % 3)


@pytest.mark.parametrize(
    ("y", "s", "message"),
    [
        ([0, 1, 2], [1.0, 2.0, 3.0], "y_true has 3 classes .* expected two"),
        ([1, 1, 1], [1.0, 2.0, 3.0], "y_true has one class only .* expected two"),
        ([0, 1, 0], [1.0, float("nan"), 3.0], "y_score contains NaN"),
        ([0.0, float("nan"), 1.0], [1.0, 2.0, 3.0], "y_true contains NaN"),
        ([0, 1], [1.0, 2.0, 3.0], "y_true has 2 entries"),
        ([0, 1, 1], [[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]], "y_score has shape"),
    ],
)
def test_unusable_tensors_are_refused(everywhere, y, s, message):
    with pytest.raises(ValueError, match=message):
        metrics.auc(torch.tensor(y), torch.tensor(s))


@pytest.mark.parametrize("weight", [[1.0, -1.0, 1.0], [1.0, float("nan"), 1.0], [1.0, 1.0]])
def test_unusable_weights_are_refused(everywhere, weight):
    with pytest.raises(ValueError, match="sample_weight"):
        metrics.auc([0, 1, 0], torch.tensor([1.0, 2.0, 3.0]), sample_weight=weight)
    with pytest.raises(ValueError, match="total weight of zero"):
        metrics.auc([0, 1, 0], torch.tensor([1.0, 2.0, 3.0]), sample_weight=[1.0, 0.0, 1.0])


@pytest.mark.parametrize("seen", [0.0, 1.5])
def test_a_propensity_that_is_no_probability_is_refused(everywhere, seen):
    with pytest.raises(ValueError, match=r"label_propensity must lie in \(0, 1\]"):
        metrics.auc([0, 1, 0], torch.tensor([1.0, 2.0, 3.0]), label_propensity=[1.0, seen, 1.0])


def test_tensors_of_the_host_go_numpys_way():
    y, s, _ = rows(5)
    y_tensor, s_tensor = torch.as_tensor(y), torch.as_tensor(s)
    assert metrics.push_risk(y_tensor, s_tensor) == metrics.push_risk(y, s)
    assert metrics.auc(y_tensor, s_tensor) == metrics.auc(y, s)

"""The recipes of CONTRIBUTING.md, run as they stand, add what they say from outside the package."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from toprank import PNormPush, PushRanker, blocks, metrics
from toprank.inference import compare, interval
from toprank.losses import LOSSES, check_convex
from toprank.metrics import METRICS, push_risk, scorer
from toprank.objective import build_objective
from toprank.prices import PRICES

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
RECIPES = dict(
    re.findall(r"^### Add ([a-z, ]+)\n.*?^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
)


@pytest.fixture
def run(monkeypatch):
    """Runs a recipe as a module of its own; the registries are put back afterwards."""
    kept = [(registry, dict(registry)) for registry in (LOSSES, PRICES, METRICS)]

    def run(recipe):
        module = ModuleType("outside")
        monkeypatch.setitem(sys.modules, "outside", module)  # so that its classes pickle
        exec(compile(RECIPES[recipe], f"CONTRIBUTING.md, {recipe}", "exec"), module.__dict__)
        return module

    yield run
    for registry, entries in kept:
        registry.clear()
        registry.update(entries)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X @ [0.8, -0.4, 0.5, 0.0] + rng.logistic(size=300) > 1.0).astype(int)
    return X, y


def test_every_recipe_of_the_page_is_run_here():
    assert sorted(RECIPES) == sorted(
        ["a loss", "a price", "a metric, with its interval", "a ranker", "a block source"]
    )


def double_loop(y, s, price, loss):
    """sum_k g(sum_i l(f_i - f_k))."""
    return sum(price(sum(loss(a - b) for a in s[y == 1])) for b in s[y == 0])


def test_a_loss_from_outside_is_known_by_its_name(run, data):
    X, y = data
    loss = run("a loss").Hyperbola
    check_convex(loss())
    named, given = (PNormPush(p=2, loss=which).fit(X, y) for which in ("hyperbola", loss()))
    np.testing.assert_array_equal(named.coef_, given.coef_)
    assert named.optimality_gap_ < 1e-6
    scores = named.decision_function(X)
    wanted = double_loop(y, scores, lambda h: h**2, lambda r: np.sqrt(1 + r * r) - r)
    assert push_risk(y, scores, p=2, loss="hyperbola") == pytest.approx(wanted, rel=1e-12)


def test_a_price_from_outside_is_known_by_its_name(run, data):
    X, y = data
    run("a price")
    ranker = PushRanker("square", alpha=0.0, max_iter=3000).fit(X, y)
    twin = PNormPush(p=2, alpha=0.0, tol=1e-9).fit(X, y)  # without a penalty the same minimiser
    np.testing.assert_allclose(ranker.coef_, twin.coef_, rtol=1e-3, atol=1e-5)
    scores = ranker.decision_function(X)
    wanted = double_loop(y, scores, lambda h: h**2, lambda r: np.exp(-r))
    assert push_risk(y, scores, price="square") == pytest.approx(wanted, rel=1e-12)
    objective = build_objective(y == 1, price="square", loss="exponential")
    slope = objective.value_grad(scores)[1]
    step = 1e-6 * np.random.default_rng(1).normal(size=len(scores))
    ahead, behind = (objective.value(scores + sign * step) for sign in (1, -1))
    assert (ahead - behind) / 2 == pytest.approx(slope @ step, rel=1e-5)


def test_a_price_from_outside_is_the_same_in_torch(run, data):
    torch = pytest.importorskip("torch")
    from toprank.interop.torch import PushLoss

    X, y = data
    run("a price")
    scores = torch.tensor(X[:, 0] / 3, requires_grad=True)
    value = PushLoss(price="square")(scores, torch.tensor(y))
    value.backward()
    objective = build_objective(y == 1, price="square", loss="exponential")
    expected, slope = objective.value_grad(X[:, 0] / 3)
    assert float(value.detach()) == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(scores.grad.numpy(), slope, rtol=1e-9)


def test_a_metric_from_outside_has_an_interval_within_its_range(run, data):
    X, y = data
    run("a metric, with its interval")
    good, poor = X @ [0.8, -0.4, 0.5, 0.0], X[:, 3]
    found = interval("found_in_first_half", y, good)
    assert 0 <= found.low < found.estimate < found.high <= 1
    perfect = interval("found_in_first_half", y, y + 0.001 * good)
    assert 0 <= perfect.low <= perfect.estimate == 1.0 and perfect.high <= 1
    assert compare("found_in_first_half", y, good, poor).low > 0
    ranker = PNormPush().fit(X, y)
    assert scorer("found_in_first_half")(ranker, X, y) == metrics.METRICS[
        "found_in_first_half"
    ].function(y, ranker.decision_function(X))


def test_a_ranker_from_outside_keeps_the_contract_of_its_base(run, data):
    X, y = data
    ranker = run("a ranker").BottomPush()
    check_estimator(ranker, on_skip=None)
    fitted = clone(ranker).fit(X, y)
    over_blocks = clone(ranker).fit_blocks(blocks.from_arrays(X, y))
    np.testing.assert_array_equal(fitted.coef_, over_blocks.coef_)
    twin = PushRanker(p=4.0, end="bottom").fit(X, y)
    np.testing.assert_array_equal(fitted.coef_, twin.coef_)


def test_a_block_source_from_outside_fits_and_scores(run, data, tmp_path):
    X, y = data
    for index in range(3):
        np.savez(tmp_path / f"{index}.npz", X=X[index::3], y=y[index::3])
    source = run("a block source").Shards(sorted(tmp_path.glob("*.npz")))
    order = np.concatenate([np.arange(index, len(y), 3) for index in range(3)])
    fitted = PNormPush(tol=1e-10).fit_blocks(source)
    np.testing.assert_allclose(fitted.coef_, PNormPush(tol=1e-10).fit(X, y).coef_, rtol=1e-7)
    np.testing.assert_allclose(fitted.score_blocks(source), fitted.decision_function(X[order]))

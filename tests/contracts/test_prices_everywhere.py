"""A price or a loss is one class: the same value and gradient wherever it is used.

Every registered price, loss and end, and a price and a loss that are added from outside the package
by one class and one line, against the double loop: in NumPy, torch, the metric and the objectives
of trees, and through the rankers' own fits.
"""

from itertools import product

import numpy as np
import pytest

from toprank import PairRanker, PushRanker, blocks
from toprank.inference import interval
from toprank.interop.boosting import PushGradients
from toprank.losses import LOSSES, TRAINABLE_LOSSES, Loss, get_loss
from toprank.metrics import push_risk
from toprank.objective import build_objective, price_and_loss
from toprank.pair_sums import Reference
from toprank.pairs import ENDS, orient
from toprank.prices import PRICES, Log1p, Max, Price, get_price


class SumOfPowers(Price):
    """g(S) = S^2 + S^3, as a user would write it."""

    name = "outside price"

    def value_slope(self, log_s, log_w):
        heights, weights = np.exp(log_s), np.exp(log_w)
        value = np.sum(weights * (heights**2 + heights**3))
        return float(value), weights * (2 * heights**2 + 3 * heights**3)

    def slope_change(self, log_s, log_w):
        heights, weights = np.exp(log_s), np.exp(log_w)
        return lambda z: weights * (4 * heights**2 + 9 * heights**3) * z


class Hyperbola(Loss):
    """l(r) = (sqrt(4 + r^2) - r) / 2, as a user would write it."""

    name = "outside loss"

    def value(self, r):
        return 0.5 * (np.sqrt(4.0 + r**2) - r)

    def slope(self, r):
        return 0.5 * (r / np.sqrt(4.0 + r**2) - 1.0)

    def curvature(self, r):
        return 2.0 / (4.0 + r**2) ** 1.5


PRICE_NAMES = [*PRICES, SumOfPowers.name]
LOSS_NAMES = [*TRAINABLE_LOSSES, Hyperbola.name]
P = 3.0
CASES = [
    case
    for case in product(PRICE_NAMES, LOSS_NAMES, ENDS)
    if case[0] != "log1p" or case[1] == "exponential"
]
each_case = pytest.mark.parametrize(("price", "loss", "end"), CASES)
each_pair = pytest.mark.parametrize(
    ("price", "loss"), sorted({(price, loss) for price, loss, _ in CASES})
)


@pytest.fixture(autouse=True)
def from_outside(monkeypatch):
    monkeypatch.setitem(PRICES, SumOfPowers.name, SumOfPowers)
    monkeypatch.setitem(LOSSES, Hyperbola.name, Hyperbola)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    positive = rng.random(60) < 0.3
    # weights of about one hundredth: the exponential price sees total heights, not means
    weight = rng.integers(0, 4, 60) / 100.0
    return positive, weight, rng.normal(size=60)


def double_loop(positive, weight, scores, price, loss, end, balance=0.5, *, normalised=True):
    """F and its gradient in the scores, from sums over pairs that are written out."""
    sides = orient(positive, weight, end=end, outer=price.outer)
    if price.homogeneous and normalised:
        sides = tuple(side.normalise() for side in sides)
    parts = []
    for number, side in enumerate(sides):
        sums = Reference(loss, side.sign * scores[side.inner], side.sign * scores[side.outer])
        height, tilt = sums.to_outer((0, 1), side.inner_weight)
        log_w = side.log_outer_weight + (np.log(balance) if number else 0.0)
        parts.append((side, sums, height, tilt, log_w))
    with np.errstate(divide="ignore"):
        log_s = np.log(np.concatenate([height for _, _, height, _, _ in parts]))
    log_w = np.concatenate([part[-1] for part in parts])
    value, slope = price.value_slope(log_s, log_w)
    gradient, start = np.zeros(len(scores)), 0
    for side, sums, height, tilt, _ in parts:
        c = slope[start : start + len(height)]
        c = np.divide(c, height, out=np.zeros_like(c), where=height > 0)
        start += len(height)
        gradient[side.outer] += side.sign * -c * tilt
        gradient[side.inner] += side.sign * side.inner_weight * sums.to_inner((1,), c)[0]
    return value, gradient, price.log_risk(log_s, log_w)


def check(found, wanted):
    assert found[0] == pytest.approx(wanted[0], rel=1e-9)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-8, atol=1e-10 * np.abs(wanted[1]).max())


def wanted(rows, price, loss, end):
    return double_loop(*rows, *price_and_loss(price, P, loss), end)


@pytest.mark.sampled(5)
@each_case
def test_the_objective_in_numpy(rows, price, loss, end):
    settings = {"price": price, "p": P, "loss": loss, "end": end, "balance": 0.5}
    check(
        build_objective(*rows[:2], **settings).value_grad(rows[2]), wanted(rows, price, loss, end)
    )


@pytest.mark.sampled(5)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@each_case
def test_the_loss_in_torch(rows, price, loss, end, device):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    from toprank.interop.torch import PushLoss

    positive, weight, scores = (torch.tensor(column, device=device) for column in rows)
    push = PushLoss(P, price=price, loss=loss, end=end, balance=0.5)
    scores.requires_grad_(True)
    value = push(scores, positive, weight)
    value.backward()
    check((value.item(), scores.grad.cpu().numpy()), wanted(rows, price, loss, end))


@pytest.mark.sampled(3)
@each_pair
def test_the_loss_in_torch_from_objects(rows, price, loss):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from toprank.interop.torch import PushLoss

    positive, weight, scores = (torch.tensor(column) for column in rows)
    by_name = PushLoss(P, price=price, loss=loss)
    by_object = PushLoss(price=get_price(price, P), loss=get_loss(loss))
    assert by_name(scores, positive, weight) == by_object(scores, positive, weight)


@pytest.mark.sampled(5)
@each_case
def test_the_metric(rows, price, loss, end):
    positive, weight, scores = rows
    g, of_margin = get_price(price, P), get_loss(loss)
    *_, log_risk = double_loop(positive, weight, scores, g, of_margin, end, normalised=False)
    settings = {"price": price, "p": P, "loss": loss, "end": end, "balance": 0.5}
    settings |= {"sample_weight": weight, "log": True}
    found = push_risk(positive, scores, balance_of="sums", **settings)
    assert found == pytest.approx(log_risk, rel=1e-9, abs=1e-9)
    if g.homogeneous and end == "both":  # means, on the scale of the top
        *_, log_risk = double_loop(positive, weight, scores, g, of_margin, end, normalised=True)
        n_pos, n_neg = weight[positive].sum(), weight[~positive].sum()
        size = n_pos if price == "max" else n_neg * n_pos**g.p
        found = push_risk(positive, scores, **settings)
        assert found == pytest.approx(log_risk + np.log(size), rel=1e-9, abs=1e-9)


@pytest.mark.sampled(3)
@each_case
def test_the_objectives_of_trees(rows, price, loss, end):
    positive, weight, scores = rows
    present = weight > 0
    # one row with a slope gives no tree to grow: a large power stands for the maximum
    name, p = ("power", 64.0) if price == "max" else (price, P)
    _, gradient, _ = double_loop(*rows, *price_and_loss(name, p, loss), end)
    settings = {"price": price, "loss": loss, "end": end, "balance": 0.5}
    found, curvature = PushGradients(P, **settings).at(positive, scores, weight)
    assert np.all(curvature[present] > 0)
    # in units of the library's choice, and in float32
    unit = found[np.argmax(np.abs(found))] / gradient[np.argmax(np.abs(found))]
    np.testing.assert_allclose(
        found / unit, gradient, rtol=1e-4, atol=1e-6 * np.abs(gradient).max()
    )


@pytest.mark.parametrize(
    ("price", "loss"),
    [
        (SumOfPowers.name, "exponential"),
        (SumOfPowers.name, "squared_hinge"),
        (SumOfPowers.name, Hyperbola.name),
        ("power", Hyperbola.name),
        ("exponential", Hyperbola.name),
        ("max", Hyperbola.name),
    ],
)
class TestFromOutside:
    def data(self):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(80, 3))
        return X, X @ [1.0, -1.0, 0.5] + rng.normal(size=80) > 0.7, np.full(80, 0.02)

    def test_a_ranker_minimises_it(self, price, loss):
        X, y, weight = self.data()
        ranker = PushRanker(price, P, loss, alpha=0.1).fit(X, y, weight)
        g, of_margin = price_and_loss(price, P, loss)
        value, *_ = double_loop(y, weight, X @ ranker.coef_[0], g, of_margin, "top")
        penalty = 0.05 * float(ranker.coef_[0] @ ranker.coef_[0])
        assert ranker.objective_ == pytest.approx(value + penalty, rel=1e-9)
        assert ranker.optimality_gap_ < 1e-3 * max(1.0, ranker.objective_)

    def test_blocks_give_the_same(self, price, loss):
        X, y, weight = self.data()
        ranker = PushRanker(price, P, loss, alpha=0.1)
        whole = ranker.fit(X, y, weight).objective_
        parts = ranker.fit_blocks(blocks.from_arrays(X, y, sample_weight=weight)).objective_
        assert parts == pytest.approx(whole, rel=1e-5)

    def test_a_ranker_of_pairs_minimises_it(self, price, loss):
        X, y, weight = self.data()
        ranker = PairRanker(price, p=P, loss=loss, alpha=0.1).fit(X, y, sample_weight=weight)
        g, of_margin = price_and_loss(price, P, loss)
        value, *_ = double_loop(y, weight, X @ ranker.coef_, g, of_margin, "top")
        penalty = 0.05 * float(ranker.coef_ @ ranker.coef_)
        assert ranker.objective_ == pytest.approx(value + penalty, rel=1e-9)

    def test_lightgbm_and_xgboost_train_with_it(self, price, loss):
        _, y, weight = self.data()
        found = []
        for library in ("lightgbm", "xgboost"):
            pytest.importorskip(library, reason=f"{library} is not installed")
            from importlib import import_module

            objective = import_module(f"toprank.interop.{library}").push_objective(
                P, price=price, loss=loss
            )
            found.append(objective(y.astype(float), np.zeros(80), weight)[0])
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("price", ["max", Max()], ids=["name", "object"])
def test_the_maximum_has_no_interval_however_it_is_given(rows, price):
    positive, _, scores = rows
    with pytest.raises(ValueError, match="extreme of the sample"):
        interval("push_risk", positive, scores, price=price)


@pytest.mark.parametrize("price", ["log1p", Log1p()], ids=["name", "object"])
def test_a_kernel_on_pairs_refuses_prices_of_winners_however_they_are_given(price):
    ranker = PairRanker(price, loss="exponential", kernel="rbf", kernel_on="pairs")
    with pytest.raises(ValueError, match="log1p price with end='top' is one of the winners'"):
        ranker.fit(np.eye(4), [0, 1, 0, 1])


def test_names_that_are_not_registered_are_refused():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    for ranker in (PushRanker("inside price"), PushRanker(loss="inside loss")):
        with pytest.raises(ValueError, match=r"'(price|loss)' parameter"):
            ranker.fit(X, y)
    for settings in ({"price": "inside price"}, {"loss": "inside loss"}):
        with pytest.raises(ValueError, match=r"Unknown (price|loss)"):
            push_risk(y, X[0], **settings)
        with pytest.raises(ValueError, match=r"Unknown (price|loss)"):
            PushGradients(**settings)


def test_a_price_that_only_has_a_slope_is_fitted_and_newton_names_what_is_missing(monkeypatch):
    class Steep(Price):
        name = "steep"

        def value_slope(self, log_s, log_w):
            terms = np.exp(log_w + 2 * log_s)
            return float(np.sum(terms)), 2 * terms

    monkeypatch.setitem(PRICES, Steep.name, Steep)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 2))
    y = X[:, 0] + rng.normal(size=50) > 0
    assert np.isfinite(PushRanker("steep", alpha=0.1).fit(X, y).coef_).all()
    assert np.isfinite(push_risk(y, X[:, 0], price="steep"))
    gradient, curvature = PushGradients(price="steep").at(y, X[:, 0])
    assert gradient.any() and np.all(curvature > 0)
    with pytest.raises(ValueError, match=r"curvature.*solver='lbfgs'"):
        PushRanker("steep", solver="newton").fit(X, y)


def test_a_price_without_its_formula_is_refused_by_what_is_missing():
    class Empty(Price):
        pass

    with pytest.raises(TypeError, match="Empty must define value_slope"):
        PushRanker(Empty()).fit(np.eye(4), [0, 1, 0, 1])

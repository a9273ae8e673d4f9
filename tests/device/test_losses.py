"""The logistic loss and the squared hinge, summed where the rows of a device lie."""

from itertools import pairwise

import numpy as np
import pytest

from toprank import PNormPush, blocks
from toprank.objective import build_objective

torch = pytest.importorskip("torch")
from toprank.blocks import kernels_chain  # noqa: E402
from toprank.blocks.kernels_moments import sums_in_bins  # noqa: E402
from toprank.losses import get_loss  # noqa: E402
from toprank.objective.data import LabelledData  # noqa: E402
from toprank.objective.device_problem import AtRoot, DeviceRootProblem, RootRows  # noqa: E402
from toprank.objective.device_root import DeviceRoot, running_sums  # noqa: E402
from toprank.objective.problem import ScoredProblem  # noqa: E402

LOSSES = ["logistic", "squared_hinge"]


def labelled(n, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(scale=2.0, size=n)
    return scores, rng.random(n) < 0.3, rng.integers(0, 3, n).astype(float)


def root_of(positive, weight, p, loss, end, device):
    parts = (None if part is None else torch.as_tensor(part, device=device)
             for part in (positive, weight))  # fmt: skip
    return DeviceRoot(*parts, p, get_loss(loss), end == "bottom")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [1.0, 4.0, 30.5])
@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_and_gradient_are_those_of_the_host(loss, p, end, weighted, device):
    scores, positive, weight = labelled(3000)
    weight = weight if weighted else None
    want, slopes = build_objective(positive, weight, p=p, loss=loss, end=end).value_grad(scores)
    root = root_of(positive, weight, p, loss, end, device)
    value, gradient = root.value_grad(torch.as_tensor(scores, device=device))
    assert value == pytest.approx(want, rel=1e-12)
    size = np.max(np.abs(slopes))
    np.testing.assert_allclose(gradient.cpu().numpy(), slopes, rtol=1e-9, atol=1e-13 * size)


@pytest.mark.parametrize("far", [-1e5, 1e5])
@pytest.mark.parametrize("positives", [False, True])
def test_squares_beside_a_row_far_off_keep_their_digits(far, positives, device):
    scores, positive, _ = labelled(20_000)
    scores[np.flatnonzero(positive == positives)[7]] = far
    objective = build_objective(positive, None, p=4.0, loss="squared_hinge", end="top")
    want, slopes = objective.value_grad(scores)
    root = root_of(positive, None, 4.0, "squared_hinge", "top", device)
    value, gradient = root.value_grad(torch.as_tensor(scores, device=device))
    assert value == pytest.approx(want, rel=1e-11)
    size = np.max(np.abs(slopes))
    np.testing.assert_allclose(gradient.cpu().numpy(), slopes, rtol=1e-6, atol=1e-11 * size)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_scores_give_the_same_bits_again(loss, device):
    scores, positive, _ = labelled(50_000)
    root = root_of(positive, None, 4.0, loss, "top", device)
    once, again = (root.value_grad(torch.as_tensor(scores, device=device)) for _ in range(2))
    assert once[0] == again[0]
    assert torch.equal(once[1], again[1])


def test_scores_too_far_apart_or_not_finite_are_left_to_the_host(device):
    scores, positive, _ = labelled(100)
    root = root_of(positive, None, 4.0, "logistic", "top", device)
    unknown = np.where(np.arange(100) == 50, np.nan, scores)
    for far in (scores + 100.0 * positive, scores * 1e9, scores * np.inf, unknown):
        with np.errstate(invalid="ignore"):
            assert root.value_grad(torch.as_tensor(far, device=device)) is None


def test_a_squared_hinge_that_no_pair_meets_is_zero(device):
    positive = np.array([True, False])
    root = root_of(positive, None, 4.0, "squared_hinge", "top", device)
    value, gradient = root.value_grad(torch.tensor([9.0, 0.0], dtype=torch.float64, device=device))
    assert value == 0.0
    assert not gradient.any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_is_that_of_the_host(loss, weighted, device):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 5))
    X[:, 4] += 50.0
    y = X[:, 0] + 0.5 * X[:, 1] + rng.logistic(size=3000) > 1.5
    weight = rng.integers(0, 3, 3000).astype(float) if weighted else None
    here = PNormPush(4, loss=loss, tol=1e-9).fit(X, y, weight)
    given = (None if part is None else torch.as_tensor(part, device=device)
             for part in (X, y, weight))  # fmt: skip
    there = PNormPush(4, loss=loss, tol=1e-9).fit_blocks(blocks.from_torch(*given))
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-6)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-10)
    assert "atroot" in there.passes_
    assert there.passes_["gather"] <= 2  # scores and labels, for the link of so few rows


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [3, 100, 70_001])
def test_what_the_host_waits_for_once_is_what_it_waits_for_thrice(loss, end, weighted, n, gpu):
    scores, positive, weight = labelled(n, seed=1)
    positive[:2] = True, False
    weight[:2] = 1.0
    root = root_of(positive, weight if weighted else None, 4.0, loss, end, gpu)
    for spread, place in ((0.0, 0.0), (1e-3, 0.0), (1.0, -1e4), (1.8, 0.0)):
        there = torch.as_tensor(scores * spread + place, device=gpu)
        facts, slopes = root.compiled.at_once(there)
        value, factor = root.compiled.read(facts.cpu().numpy())
        want, gradient = root.compiled.value_grad(there, *root.compiled.ends(there))
        assert value == pytest.approx(want, rel=1e-11)
        size = float(gradient.abs().max())
        torch.testing.assert_close(factor * slopes, gradient, rtol=1e-8, atol=1e-11 * size)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, 7.0, 64.0, 65.0])
def test_powers_by_products_are_those_by_logarithms(p, loss, gpu):
    scores, positive, _ = labelled(5_000, seed=2)
    root = root_of(positive, None, p, loss, "top", gpu)
    there = torch.as_tensor(scores, device=gpu)
    facts, slopes = root.compiled.at_once(there)
    value, factor = root.compiled.read(facts.cpu().numpy())
    want, gradient = root.compiled.value_grad(there, *root.compiled.ends(there))
    assert value == pytest.approx(want, rel=1e-10)
    size = float(gradient.abs().max())
    torch.testing.assert_close(factor * slopes, gradient, rtol=1e-7, atol=1e-10 * size)


@pytest.mark.parametrize("loss", LOSSES)
def test_boxes_far_from_each_other_and_no_numbers_are_not_summed_at_once(loss, gpu):
    scores, positive, _ = labelled(1000)
    root = root_of(positive, None, 4.0, loss, "top", gpu)
    most = 39.0 if loss == "logistic" else 1e5
    for odd in (38.9, 39.1, 1e300, np.inf, -np.inf, np.nan):
        for row in (0, int(np.flatnonzero(positive)[3])):
            some = np.where(np.arange(1000) == row, odd - 2.0, np.clip(scores, -2.0, 2.0))
            some = torch.as_tensor(some, device=gpu)
            read = root.compiled.read(root.compiled.at_once(some)[0].cpu().numpy())
            assert (read is not None) == (odd < most and odd > 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_where_cuda_is_not_compiled_the_host_waits_more_often(loss, gpu, monkeypatch):
    monkeypatch.setattr(kernels_chain, "_COMPILED", {})
    monkeypatch.setattr(kernels_chain.cuda_sides, "SOURCE", "no such source")
    scores, positive, _ = labelled(500)
    want, slopes = build_objective(positive, None, p=4.0, loss=loss).value_grad(scores)
    root = root_of(positive, None, 4.0, loss, "top", gpu)
    assert root.compiled.at_once(torch.as_tensor(scores, device=gpu)) is None
    value, gradient = root.value_grad(torch.as_tensor(scores, device=gpu))
    assert value == pytest.approx(want, rel=1e-12)
    np.testing.assert_allclose(gradient.cpu().numpy(), slopes, rtol=1e-9, atol=1e-13)


def test_many_rows_at_one_place_are_added_up_as_rows_apart_are(gpu):
    rng = np.random.default_rng(3)
    scores, positive = rng.integers(-2, 3, 50_000) / 2.0, rng.random(50_000) < 0.4
    objective = build_objective(positive, None, p=4.0, loss="squared_hinge")
    want, slopes = objective.value_grad(scores)
    root = root_of(positive, None, 4.0, "squared_hinge", "top", gpu)
    value, gradient = root.value_grad(torch.as_tensor(scores, device=gpu))
    assert value == pytest.approx(want, rel=1e-12)
    size = np.max(np.abs(slopes))
    np.testing.assert_allclose(gradient.cpu().numpy(), slopes, rtol=1e-9, atol=1e-13 * size)


@pytest.mark.more
@pytest.mark.parametrize("places", ["apart", "rounded", "one"])
def test_rows_of_many_buckets_are_added_up_like_those_of_one(places, gpu):
    rng = np.random.default_rng(7)
    n = 700_000
    positive = rng.random(n) < 0.2
    scores = rng.normal(size=n) + 0.8 * positive
    scores = {"apart": scores, "rounded": np.round(scores, 2), "one": np.zeros(n)}[places]
    weight = rng.integers(0, 3, n).astype(float)
    objective = build_objective(positive, weight, p=4.0, loss="squared_hinge")
    want, slopes = objective.value_grad(scores)
    root = root_of(positive, weight, 4.0, "squared_hinge", "top", gpu)
    found = [root.value_grad(torch.as_tensor(scores, device=gpu)) for _ in range(2)]
    (value, gradient), again = found
    assert value == pytest.approx(want, rel=1e-12)
    size = np.max(np.abs(slopes))
    np.testing.assert_allclose(gradient.cpu().numpy(), slopes, rtol=1e-9, atol=1e-12 * size)
    assert again[0] == value
    assert torch.equal(again[1], gradient)  # in whatever order the rows were added


def test_more_places_than_buckets_hold_are_for_the_other_way(gpu, monkeypatch):
    monkeypatch.setattr(kernels_chain, "_MOST_BUCKETS", 2)
    scores, positive, _ = labelled(20_000)
    scores = torch.as_tensor(scores, device=gpu)
    root = root_of(positive, None, 4.0, "squared_hinge", "top", gpu)
    assert root.compiled.at_once(scores) is None
    value, gradient = root.value_grad(scores)
    monkeypatch.undo()
    want, slopes = root_of(positive, None, 4.0, "squared_hinge", "top", gpu).value_grad(scores)
    assert value == pytest.approx(want, rel=1e-12)
    torch.testing.assert_close(gradient, slopes, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_problem_of_the_device_answers_as_one_of_the_host(loss, device):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 3))
    X[:, 2] += 1e6  # read about its mean
    y = X[:, 0] + rng.logistic(size=500) > 1.0
    ranker = PNormPush(4, loss=loss)
    tensors = [torch.as_tensor(part, device=device) for part in (X, y)]
    there = ranker.problem_on(blocks.from_torch(*tensors), ranker._task())
    here = ScoredProblem(LabelledData.of_arrays(X, y), ranker._task())
    assert isinstance(there, DeviceRootProblem)
    coef = np.array([0.5, -0.3, 0.2])
    for point in (coef, 1e6 * coef):  # so far apart that the host sums up
        value, gradient = here.value_grad(point)
        assert there.value(point) == pytest.approx(value, rel=1e-9)
        size = np.max(np.abs(gradient))
        np.testing.assert_allclose(there.value_grad(point)[1], gradient, rtol=0, atol=1e-8 * size)
    exact, rough = (there.hessian(coef, exact=exact) for exact in (True, False))
    size = np.max(np.abs(exact))
    np.testing.assert_allclose(exact, here.hessian(coef), rtol=0, atol=1e-7 * size)
    np.testing.assert_allclose(rough, exact, rtol=0, atol=0.1 * size)
    assert isinstance(there.gentler(2.0), DeviceRootProblem)
    with pytest.raises(TypeError, match="several blocks have no scores in common"):
        AtRoot(there.data.view, there, "value_grad").merge(None, None)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("d", [1, 5, 64, 100, 130, 300])
def test_a_hessian_by_kernels_is_that_of_products_of_matrices(d, kind, weighted, gpu, monkeypatch):
    rng = np.random.default_rng(d)
    X = torch.as_tensor(rng.normal(size=(9_000, d)) + 3.0, device=gpu).to(getattr(torch, kind))
    y = torch.as_tensor(rng.random(9_000) < 0.2, device=gpu)
    weight = torch.as_tensor(rng.integers(0, 4, 9_000), device=gpu) if weighted else None
    coef = rng.normal(size=d) / d
    for loss, table in (("logistic", X), ("squared_hinge", X.T.contiguous().T)):
        ranker, found = PNormPush(4, loss=loss), []
        for compiled in (True, False):
            monkeypatch.setattr(RootRows, "_compiled", compiled)
            problem = ranker.problem_on(blocks.from_torch(table, y, weight), ranker._task())
            found.append(problem.hessian(coef, exact=False))
        by_kernels, by_products = found
        size = np.max(by_products.diagonal())
        np.testing.assert_allclose(by_kernels, by_products, rtol=0, atol=2e-3 * size)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_outer_rows_drawn_by_their_slopes_tell_the_hessian_better(loss, weighted, gpu, monkeypatch):
    rng = np.random.default_rng(3)
    X = torch.as_tensor(rng.normal(size=(600_000, 4)) + 1.0, device=gpu).float()
    y = torch.as_tensor(rng.random(600_000) < 0.15, device=gpu)
    weight = torch.as_tensor(rng.integers(0, 3, 600_000), device=gpu) if weighted else None
    ranker, coef, found = PNormPush(4, loss=loss), np.array([0.5, -0.3, 0.2, 0.1]), {}
    for drawn in ("all", "evenly", "by slope"):
        most = (1 << 20) if drawn == "all" else 20_000
        monkeypatch.setattr(RootRows, "_most_drawn", most)
        problem = ranker.problem_on(blocks.from_torch(X, y, weight), ranker._task())
        if drawn == "by slope":
            problem.value_grad(coef)
        found[drawn] = problem.hessian(coef, exact=False)
    size = np.sqrt(found["all"].diagonal())
    far = {name: np.abs((one - found["all"]) / np.outer(size, size)) for name, one in found.items()}
    assert np.max(far["by slope"]) <= 0.1
    assert np.mean(far["by slope"]) <= 0.8 * np.mean(far["evenly"])


def test_rows_of_a_gpu_are_added_up_bin_by_bin(gpu):
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(4_000, 33)) + 1e3, device=gpu)
    centre, share = X[0], torch.as_tensor(rng.random(3_000), device=gpu)
    rows = torch.as_tensor(rng.integers(0, 4_000, 3_000), device=gpu)
    scores = torch.as_tensor(rng.normal(size=3_000), device=gpu)
    starts = torch.tensor([0, 0, 1, 2_500, 2_500, 3_000], device=gpu)
    for table in (X, X.float(), X.T.contiguous().T):
        got = sums_in_bins(table, rows, share, scores, starts, centre)
        x = table[rows].double() - centre
        terms = torch.cat([x, torch.ones_like(x[:, :1]), scores[:, None]], 1) * share[:, None]
        want = [terms[a:b].sum(0) for a, b in pairwise(starts.tolist())]
        torch.testing.assert_close(got, torch.stack(want), rtol=1e-10, atol=1e-9)
        assert torch.equal(got, sums_in_bins(table, rows, share, scores, starts, centre))


@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 1_100_000])
def test_running_sums_are_those_of_numpy(n, device):
    values = np.random.default_rng(n).normal(size=n)
    lines = torch.as_tensor(np.stack([values, 2.0 * values]), device=device)
    found = running_sums(lines).cpu().numpy()
    want = np.concatenate([[0.0], np.cumsum(values)])
    np.testing.assert_allclose(found, [want, 2.0 * want], atol=1e-9)

"""What only some GPUs, drivers and tables meet, tried on the one that is here."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from toprank import PNormPush, blocks  # noqa: E402
from toprank.blocks import Block, kernels_cuda  # noqa: E402
from toprank.blocks.cuda_plans import tile_plan_for  # noqa: E402
from toprank.blocks.kernels_stored import sum_segments  # noqa: E402
from toprank.blocks.statistics import Units  # noqa: E402
from toprank.interop.torch import PushLoss  # noqa: E402
from toprank.losses import get_loss  # noqa: E402
from toprank.objective.device_root import DeviceRoot  # noqa: E402
from toprank.objective.labelled import OpenBlock, View  # noqa: E402
from toprank.objective.sums import ScoreHistogram, Standard  # noqa: E402

TILTS = (-1.0, 4.0)


def opened(n, d, device, weighted=True, centred=True):
    """The same rows on a device, as float32, and on the host."""
    rng = np.random.default_rng(n + d)
    X = rng.normal(1.0, 1.0, (n, d)).astype(np.float32)
    y, weight = rng.random(n) < 0.3, rng.integers(0, 3, n).astype(float) if weighted else None
    view = View(np.array([False, True]), None, Units(X[0].astype(float)) if centred else Units())
    there = [None if part is None else torch.as_tensor(part, device=device)
             for part in (X, y, weight)]  # fmt: skip
    return OpenBlock(Block(0, *there), view), OpenBlock(Block(0, X, y, weight), view)


def assert_sums_alike(there, here, coef, **how):
    (got,), (want,) = there.sum_tilted(coef, (TILTS,), **how), here.sum_tilted(coef, (TILTS,))
    for one, other in zip(got, want, strict=True):
        assert one.log_mass == pytest.approx(other.log_mass, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_triton_serves_where_torch_compiles_no_kernel(weighted, gpu, monkeypatch):
    def refuse(*_):
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(kernels_cuda, "_COMPILED", {})
    monkeypatch.setattr(kernels_cuda, "Kernels", refuse)
    there, here = opened(3_000, 21, gpu, weighted)
    coef = np.linspace(-0.4, 0.4, 21)
    assert not there.start_tilted(coef, TILTS, None)
    assert_sums_alike(there, here, coef)
    assert_sums_alike(there, here, coef, keep=True)
    scores = there.scores(coef).tensor.cpu().numpy()
    np.testing.assert_allclose(scores, here.scores(coef), rtol=0, atol=1e-11)


def test_a_fit_by_triton_alone_is_that_of_the_host(gpu, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 20)).astype(np.float32)
    y = X[:, 0] + rng.logistic(size=60_000) > 1.0
    source = blocks.from_torch(*(torch.as_tensor(part, device=gpu) for part in (X, y)))
    source.sample_entries = 1 << 18, 1 << 17
    there, here = PNormPush(tol=1e-9).fit_blocks(source), PNormPush(tol=1e-9).fit(X, y)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-8)


@pytest.mark.parametrize("d", [7, 90])
def test_rows_are_read_without_shared_memory_where_a_gpu_has_too_little(d, gpu, monkeypatch):
    monkeypatch.setattr(kernels_cuda, "_COMPILED", {})
    monkeypatch.setattr(kernels_cuda, "_COPIES_FROM", 99)
    there, here = opened(3_000, d, gpu)
    assert_sums_alike(there, here, np.linspace(-0.4, 0.4, d))


def test_what_the_driver_reports_is_raised():
    kernels_cuda.check(0)
    with pytest.raises(RuntimeError, match="driver reports error 700"):
        kernels_cuda.check(700)


def test_more_columns_than_a_tile_holds_have_no_plan():
    with pytest.raises(ValueError, match="2000 columns; expected at most 1,024"):
        tile_plan_for(2000, 4, True)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_beyond_the_bins_are_kept_one_by_one(weighted, device):
    there, here = opened(2_000, 3, device, weighted, centred=False)
    coef = np.array([1.0, 0.5, -0.2])
    standard = Standard(1.3, 0.15)
    got = there.histogram(coef, 0.0, standard)
    want = ScoreHistogram.of(here.scores(coef), here.positive, here.weight, standard)
    np.testing.assert_allclose(got.mass, want.mass, rtol=0, atol=1e-9)
    for one, other in zip(got.outside[0], want.outside[0], strict=True):
        np.testing.assert_allclose(np.sort(one), np.sort(other), rtol=0, atol=1e-9)


def test_far_rows_that_no_sample_holds_do_not_mislead(gpu):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40_000, 70)).astype(np.float32)
    y = X[:, :3].sum(1) + rng.logistic(size=40_000) > 2
    X = rng.standard_t(2, size=X.shape).astype(np.float32)
    source = blocks.from_torch(*(torch.as_tensor(part, device=gpu) for part in (X, y)))
    source.sample_entries = 1 << 14, 1 << 19
    there = PNormPush(p=1).fit_blocks(source)
    assert there.n_iter_ <= 60
    assert there.objective_ == pytest.approx(PNormPush(p=1).fit(X, y).objective_, abs=1e-9)


@pytest.mark.parametrize("n_blocks", [1024, 2048])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_of_many_scores_has_its_gradient(weighted, n_blocks, gpu):
    n = 8192 * n_blocks + 5
    scores = torch.randn(n, device=gpu)
    positive = torch.rand(n, device=gpu) < 0.1
    weight = torch.rand(n, device=gpu) if weighted else None
    logs = torch.zeros(n, device=gpu).double() if weight is None else weight.double().log()
    found, wanted = scores.clone().requires_grad_(), scores.double().requires_grad_()
    value = PushLoss(4.0)(found, positive.float(), weight)
    value.backward()
    above = torch.logsumexp((logs - wanted)[positive], 0) - torch.logsumexp(logs[positive], 0)
    below = torch.logsumexp((logs + 4.0 * wanted)[~positive], 0)
    want = above + (below - torch.logsumexp(logs[~positive], 0)) / 4.0
    want.backward()
    assert value.item() == pytest.approx(want.item(), abs=1e-4)
    apart = (found.grad.double() - wanted.grad).abs().max()
    assert float(apart) <= 1e-3 * float(wanted.grad.abs().max())


def test_no_rows_have_no_sums(gpu):
    starts = torch.zeros(1, dtype=torch.int64, device=gpu)
    none = torch.empty(0, dtype=torch.int64, device=gpu)
    found = sum_segments(starts, none, none.float(), none.double())
    assert found.shape == (0,)


def test_heights_that_cancel_to_nothing_are_a_value_of_zero(gpu, monkeypatch):
    positive = torch.tensor([True, False, False], device=gpu)
    root = DeviceRoot(positive, None, 4.0, get_loss("logistic"), False)
    scores = torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64, device=gpu)
    nothing = torch.zeros(4, dtype=torch.float64, device=gpu)
    monkeypatch.setattr(root.compiled, "at_once", lambda _: None)
    monkeypatch.setattr(root.compiled.kernels, "price", lambda *_: nothing)
    value, gradient = root.value_grad(scores)
    assert value == 0.0
    assert not gradient.any()

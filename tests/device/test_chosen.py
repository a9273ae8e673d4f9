"""Rows that a GPU chooses by itself, and Hessians that a device takes apart, against the host's."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from toprank import PNormPush, blocks  # noqa: E402
from toprank.blocks import Block  # noqa: E402
from toprank.blocks.kernels_chosen import draw_by_size, draw_rows, spaced_rows  # noqa: E402
from toprank.blocks.kernels_moments import GOLDEN, drawn_moments  # noqa: E402
from toprank.objective import forms  # noqa: E402
from toprank.objective.device_sums import factored  # noqa: E402
from toprank.objective.labelled import OpenBlock, View  # noqa: E402
from toprank.solvers.newton_step import Factor, KeptHessian  # noqa: E402

#: Kernels that compare in single precision may tell so many of the closest rows the other way.
FEW = 5


def assert_drawn(rows, counts, want, count):
    """Assert that the rows are those wanted, but for a few, and count what they should."""
    assert len(set(rows.tolist()) ^ set(want.tolist())) <= FEW
    assert (rows.diff() > 0).all()  # in order
    every = np.zeros(int(max([-1, *rows.tolist(), *want.tolist()])) + 1)
    every[want] = count
    known = every[rows.cpu().numpy()]
    there = known != 0
    np.testing.assert_allclose(counts.cpu().numpy()[there], known[there], rtol=1e-5)


@pytest.mark.parametrize("n", [1, 255, 4096, 4097, 1_000_003])
@pytest.mark.parametrize("steps, before", [((1, 1), (0, 0)), ((3, 2), (4, 1)), ((50, 7), (0, 6))])
def test_spaced_rows_are_every_so_many_of_each_class(n, steps, before, gpu):
    positive = np.random.default_rng(n).random(n) < 0.3
    firsts = [-number % step for number, step in zip(before, steps, strict=True)]
    of_class = [np.flatnonzero(~positive), np.flatnonzero(positive)]
    want = [rows[first::step] for rows, first, step in zip(of_class, firsts, steps, strict=True)]
    counts = tuple(map(len, of_class))
    got = spaced_rows(torch.as_tensor(positive, device=gpu), steps, firsts, counts)
    assert got.tolist() == np.concatenate(want).tolist()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 4095, 300_001])
def test_rows_drawn_are_those_whose_chance_the_circle_meets(n, weighted, gpu):
    rng = np.random.default_rng(n)
    scores, positive = rng.normal(size=n), rng.random(n) < 0.3
    logs = np.where(rng.random(n) < 0.2, -np.inf, 0.3) if weighted else np.zeros(n)
    about = np.array([-1.0, 4.0, 0.2, np.log(n) + 8.0, 0.05 * n, 0.1 * n, GOLDEN])
    tilt, top, each = (np.where(positive, about[k], about[k + 1]) for k in (0, 2, 4))
    share = np.exp(tilt * scores - top + logs)
    turn = np.arange(1, n + 1) * GOLDEN % 1.0
    want = np.flatnonzero(turn < each * share)
    count = np.maximum(share, 1 / each)[want] * np.abs(tilt[want])
    sent = [torch.as_tensor(part, device=gpu) for part in (scores, positive, logs, about)]
    signed = np.where(positive[want], count, -count)
    for room in (n, max(1, len(want) // 2)):
        logs_there = sent[2] if weighted else None
        rows, counts, total = draw_rows(*sent[:2], logs_there, sent[3], room)
        k = int(total)
        assert abs(k - min(room, len(want))) <= FEW
        assert_drawn(rows[:k], counts[:k], want[:room], signed[:room])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [False, True])
@pytest.mark.parametrize("n", [1, 4097, 300_001])
def test_rows_are_drawn_by_their_size_and_the_others_left(n, kind, weighted, gpu):
    rng = np.random.default_rng(n)
    positive = rng.random(n) < 0.3
    sizes = rng.normal(size=n)
    weight = rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)
    about = np.array([0.1 * n, 0.02, GOLDEN])
    chance = np.minimum(2.0 * about[0] * np.abs(sizes) / np.abs(sizes).sum() + about[1], 1.0)
    turn = np.arange(1, n + 1) * GOLDEN % 1.0
    want = np.flatnonzero((positive == kind) & (turn < chance) & (weight > 0))
    sent = [torch.as_tensor(part, device=gpu) for part in (sizes, positive, weight, about)]
    rows = torch.arange(n, device=gpu)
    given = sent[2] if weighted else None
    counts = draw_by_size(sent[0], sent[1], kind, given, sent[3], rows)
    k = int((counts != 0).sum())
    assert rows[k:].tolist() == list(range(k, n))
    assert not counts[k:].any()
    assert_drawn(rows[:k], counts[:k], want, weight[want] / chance[want])
    for size in (np.nan, np.inf, 0.0):  # scores of no use: nothing is written out of place
        sent[0].fill_(size)
        few = torch.zeros(max(1, n // 9), dtype=torch.int64, device=gpu)
        draw_by_size(sent[0], sent[1], kind, given, sent[3], few)
        assert 0 <= int(few.min()) <= int(few.max()) < n


def test_moments_leave_out_what_lies_after_the_rows(gpu):
    X = torch.randn((70_000, 900), device=gpu)
    rows = torch.arange(70_000, device=gpu)
    count, middles = torch.rand(70_000, device=gpu), torch.zeros((2, 900), device=gpu)
    for n in (0, 5, 65_537, 70_000):
        total = torch.tensor([n], device=gpu)
        got = drawn_moments(X, rows, count, middles, total)
        want = drawn_moments(X, rows[:n], count[:n], middles)
        # the same sums, which other programs have added up
        assert float((got - want).abs().max()) <= 1e-5 * max(1.0, float(want.max()))


@pytest.mark.parametrize("penalty", [1e-3, "each its own"])
def test_a_device_takes_a_hessian_apart_as_the_host_does(penalty, device):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(90, 40)) * np.logspace(0, 2, 40)
    penalty = np.linspace(0.1, 2.0, 40) if isinstance(penalty, str) else penalty
    hessian = A.T @ A + np.diag(np.broadcast_to(penalty, 40))
    there = torch.as_tensor(A.T @ A, device=device)
    given = torch.as_tensor(penalty, device=device) if np.ndim(penalty) else penalty
    found = factored(there, given).cpu().numpy()
    assert not found[-1].any()
    factor = Factor(found[:-2], found[-2])
    np.testing.assert_allclose(factor.matrix, hessian, rtol=1e-12)
    np.testing.assert_allclose(factor.diagonal(), hessian.diagonal(), rtol=1e-12)
    target = rng.normal(size=40)
    want = KeptHessian(hessian.copy()).solve(target)
    kept = KeptHessian(factor)
    np.testing.assert_allclose(kept.solve(target), want, rtol=1e-9)
    kept.learn(target, 2.0 * hessian @ target)
    np.testing.assert_allclose(kept.matrix @ target, 2.0 * hessian @ target, rtol=1e-9)


def test_a_hessian_that_has_no_factor_is_solved_by_its_eigenvalues(device):
    hessian = np.ones((3, 3)) - 1e-12 * np.eye(3)
    found = factored(torch.as_tensor(hessian.copy(), device=device), 0.0).cpu().numpy()
    both = found[:-2]
    if found[-1].any():
        np.fill_diagonal(both, np.nan)
    got = KeptHessian(Factor(both, found[-2])).solve(np.ones(3))
    np.testing.assert_allclose(got, KeptHessian(hessian).solve(np.ones(3)), rtol=1e-3)


def spy_on_factors(monkeypatch):
    """Return a list that receives what devices take apart from now on."""
    asked, factored_hessian = [], forms.SweptProblem.factored_hessian

    def spy(self, coef):
        asked.append(factored_hessian(self, coef))
        return asked[-1]

    monkeypatch.setattr(forms.SweptProblem, "factored_hessian", spy)
    return asked


@pytest.mark.parametrize("name", ["push", "equal columns"])
def test_fits_are_those_of_hessians_that_the_host_takes_apart(name, device, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 12))
    if name == "equal columns":
        X[:, 6:] = X[:, :6]
    y = X[:, 0] + rng.logistic(size=3000) > 1
    source = blocks.from_torch(*(torch.as_tensor(part, device=device) for part in (X, y)))
    want = PNormPush(tol=1e-9, alpha=1e-4).fit_blocks(source)
    monkeypatch.setattr(forms, "_FACTORED_FROM", 1)
    asked = spy_on_factors(monkeypatch)
    got = PNormPush(tol=1e-9, alpha=1e-4).fit_blocks(source)
    assert asked and asked[0] is not None
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["by row", "by column", "of 16 bits", "weighted", "no kernels"])
def test_a_wide_table_that_starts_on_a_sample_is_fitted_as_on_the_host(kind, gpu, monkeypatch):
    rng = np.random.default_rng(2)
    X = torch.as_tensor(rng.normal(size=(44_000, 130)), dtype=torch.float32)
    X = X.to(torch.float16).float() if kind == "of 16 bits" else X
    y = X[:, 0].numpy() + 0.5 * X[:, 1].numpy() + rng.logistic(size=len(X)) > 2.0
    weight = rng.integers(0, 3, len(X)).astype(float) if kind == "weighted" else None
    want = PNormPush(tol=1e-10).fit(X.double().numpy(), y, weight)
    table = X.to(gpu)
    if kind == "by column":
        table = table.T.contiguous().T
    if kind == "of 16 bits":
        table = table.half()
    if kind == "no kernels":
        monkeypatch.setattr("toprank.blocks.kernels_chosen._kernels", lambda *given: None)
    source = blocks.from_torch(table, torch.as_tensor(y, device=gpu), weight)
    source.sample_entries = 1 << 18, 1 << 20
    asked = spy_on_factors(monkeypatch)
    got = PNormPush(tol=1e-10).fit_blocks(source)
    assert asked and None not in asked
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=0, atol=1e-8)


def test_a_hessian_that_was_begun_for_another_penalty_is_not_taken(device):
    rng = np.random.default_rng(0)
    X, y = torch.as_tensor(rng.normal(size=(500, 6))), torch.as_tensor(rng.random(500) < 0.4)
    opened = OpenBlock(Block(0, X.to(device), y.to(device)), View(np.array([False, True])))
    coef, tilts = np.linspace(-0.5, 0.5, 6), (-1.0, 4.0)
    (end,) = opened.sum_tilted(coef, (tilts,))
    asked = coef, tilts, end, 200
    plain = opened.curvature(*asked)
    for penalty in (0.5, np.linspace(1.0, 2.0, 6)):
        opened.start_curvature(*asked, 0.25)
        found = opened.curvature(*asked, penalty)
        hessian = Factor(found[:-2], found[-2]).matrix
        np.testing.assert_allclose(hessian, plain + penalty * np.eye(6), rtol=1e-12, atol=1e-12)
        opened.start_curvature(*asked, 0.25)
        np.testing.assert_array_equal(opened.curvature(*asked), plain)

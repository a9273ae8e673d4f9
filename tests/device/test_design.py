"""Passes over the rows of a tensor, against those over an array; kernels against plain torch."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed")

from toprank import IRPush, PNormPush, ProperRanker, blocks  # noqa: E402
from toprank.blocks import Block, Units  # noqa: E402
from toprank.blocks.cuda_plans import (  # noqa: E402
    plan_for,
    read_at_once,
    tile_plan_for,
    turned_plan_for,
)
from toprank.blocks.design import mirrored  # noqa: E402
from toprank.blocks.device import DeviceDesign  # noqa: E402
from toprank.objective.device_sums import count_scores  # noqa: E402
from toprank.objective.labelled import OpenBlock, View  # noqa: E402
from toprank.objective.sums import BIN, BINS, ScoreHistogram, Standard  # noqa: E402

TILTS = ((-1.0, 3.3), (-2.0, 1.0))


def table(n, d, seed=0, dtype=np.float64, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    positive = rng.random(n) < 0.2
    positive[:2] = [True, False]
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    if weight is not None:
        weight[:2] = 1.0
    return X, positive, weight


def both(X, positive, weight, units, device):
    """The rows as NumPy passes over them, and as torch does."""
    view = View(np.array([False, True]), None, units)
    tensors = [None if part is None else torch.as_tensor(part, device=device)
               for part in (X, positive, weight)]  # fmt: skip
    return (
        OpenBlock(Block(0, X, positive, weight), view),
        OpenBlock(Block(0, *tensors), view),
    )


def assert_same(got, want, digits=1e-11):
    for end, expected in zip(got, want, strict=True):
        for part, whole in zip(end, expected, strict=True):
            assert part.log_mass == pytest.approx(whole.log_mass, rel=digits, abs=digits)
            size = max(1.0, np.max(np.abs(whole.mean)))
            np.testing.assert_allclose(part.mean, whole.mean, atol=digits * size)
            if whole.second is not None:
                np.testing.assert_allclose(
                    mirrored(part.second) / part.mass,
                    mirrored(whole.second) / whole.mass,
                    atol=digits * size**2,
                )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (1000, 3), (5003, 32), (700, 33), (300, 200)])
def test_the_sums_are_those_of_an_array(n, d, dtype, weighted, order, device):
    X, positive, weight = table(n, d, dtype=dtype, weighted=weighted)
    host, rows = both(X, positive, weight, Units(), device)
    coef = np.random.default_rng(1).normal(size=d) / np.sqrt(d)
    assert_same(rows.sum_tilted(coef, TILTS, order), host.sum_tilted(coef, TILTS, order))


WIDTHS = (
    1,
    2,
    4,
    5,
    7,
    8,
    10,
    15,
    16,
    17,
    20,
    29,
    31,
    32,
    33,
    57,
    65,
    100,
    113,
    225,
    256,
    300,
    513,
)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("d", [*WIDTHS, 900, 1024])
def test_tables_of_any_width_type_and_order_are_summed_alike(d, kind, by_column, device):
    X, positive, weight = table(777, d, seed=d, weighted=bool(d % 2))
    X = torch.as_tensor(X).to(getattr(torch, kind))
    units = Units(np.linspace(-1, 1, d)) if d % 3 == 0 else Units()
    host, rows = both(X.double().numpy(), positive, weight, units, device)
    stored = X.T.contiguous().T if by_column else X
    rows = OpenBlock(Block(0, stored.to(device), rows.block.y, rows.block.weight), rows.view)
    coef = np.random.default_rng(1).normal(size=d) / np.sqrt(d)
    assert_same(rows.sum_tilted(coef, TILTS), host.sum_tilted(coef, TILTS))
    scores = rows.design.to_host(rows.design.scores(coef))
    np.testing.assert_allclose(scores, host.scores(coef), rtol=1e-12, atol=1e-12)
    slopes = np.random.default_rng(2).normal(size=777)
    weighed, want = (part.design.adjoint(slopes) for part in (rows, host))
    np.testing.assert_allclose(weighed, want, rtol=0, atol=1e-11)


def test_rows_apart_in_memory_are_read_where_they_lie(device):
    X, positive, _ = table(500, 12)
    host, rows = both(X[:, :7], positive, None, Units(), device)
    wide = torch.as_tensor(X, device=device)[:, :7]
    rows = OpenBlock(Block(0, wide, rows.block.y), rows.view)
    coef = np.arange(7.0) / 7
    assert_same(rows.sum_tilted(coef, TILTS), host.sum_tilted(coef, TILTS))


@pytest.mark.parametrize("weighted", [False, True])
def test_labels_may_begin_anywhere_in_memory(weighted, device):
    X, positive, weight = table(700, 70, dtype=np.float32, weighted=weighted)
    host, rows = both(X, positive, weight, Units(), device)
    by_column = torch.as_tensor(X, device=device).T.contiguous().T
    apart = torch.as_tensor(np.append(False, positive), device=device)[1:]
    rows = OpenBlock(Block(0, by_column, apart, rows.block.weight), rows.view)
    coef = np.linspace(-1.0, 1.0, 70) / 7
    assert_same(rows.sum_tilted(coef, TILTS), host.sum_tilted(coef, TILTS))


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_warps_cover_every_column_once(size, by_column):
    for columns in range(1, 1025):
        plan = plan_for(columns, size, by_column)
        reached = plan.lanes * plan.slots * plan.warps
        assert columns <= reached < columns + plan.lanes * plan.warps
        assert plan.lanes <= 32 and plan.warps * plan.teams <= 32
        assert plan.warps == 1 or plan.teams == 1  # a team of several warps waits for the block
        assert plan.shared(columns, size) <= 227 * 1024
        for beside in (1, 4):
            tiles = tile_plan_for(columns, size, by_column, beside)
            if tiles is None:
                continue
            assert tiles.rows <= tiles.threads <= 1024
            own = tiles.rows * tiles.groups // 32  # rows of a lane, whose lanes halve them
            assert own % tiles.groups == 0 and own * size in (4, 8, 16)
            # the columns of a warp begin equally far from a multiple of 16 bytes
            assert tiles.warps * size % 16 == 0
            units = tiles.rows * size // 16  # eight of a column are turned about
            assert units >= max(8, tiles.sharing) and units <= 32
            # a part begins where a lane's copies, and its groups, do
            abreast = 32 // tiles.sharing
            assert tiles.parts(columns) == 1 or abreast % max(32 // units, tiles.groups) == 0
            assert tiles.shared(columns, size) <= 227 * 1024


@pytest.mark.parametrize(("by_column", "beside"), [(False, 1), (True, 1), (True, 2), (True, 4)])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_lanes_that_are_rows_first_cover_every_column_once(size, by_column, beside):
    for columns in range(1, 1025):
        plan = turned_plan_for(columns, size, by_column, beside)
        if plan is None:
            continue
        assert plan.shared(columns, size) <= 227 * 1024
        assert plan.blocks(columns, size) * plan.threads >= 256 or plan.resident < 2
        assert 32 * plan.per_lane % plan.tile == 0
        if plan.taken == 0:  # each lane has rows of its own
            assert plan.tile == 32 * plan.per_lane and columns <= 36
            assert not plan.adjacent or plan.per_lane <= beside
        else:
            assert plan.taken <= read_at_once(columns, size) and plan.taken % size == 0
        if plan.left:  # the others are one for each lane, or several
            assert plan.taken == size and (columns - plan.left) % 32 == 0
    assert turned_plan_for(100, 8, by_column) is None


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "d", [4, 10, 13, 24, 30, 33, 40, 45, 64, 66, 97, 100, 131, 180, 257, 300, 512, 600, 900, 1024]
)
def test_rows_that_begin_anywhere_are_summed_alike(d, kind, gpu):
    X, positive, weight = table(1_234, d, seed=d, weighted=d % 4 == 0)
    X = torch.as_tensor(X).to(getattr(torch, kind))
    units = Units(np.linspace(-1, 1, d)) if d % 3 == 0 else Units()
    host, rows = both(X.double().numpy(), positive, weight, units, gpu)
    coef = np.random.default_rng(1).normal(size=d) / np.sqrt(d)
    want = host.sum_tilted(coef, TILTS[:1])
    for before in (0, 1, 3, 8):
        longer = torch.full((X.numel() + before + 9,), float("nan"), dtype=X.dtype, device=gpu)
        stored = longer[before : before + X.numel()].view(X.shape).copy_(X)
        beside = OpenBlock(Block(0, stored, rows.block.y, rows.block.weight), rows.view)
        assert_same(beside.sum_tilted(coef, TILTS[:1]), want)
        assert_same(beside.sum_tilted(coef, TILTS[:1], keep=True), want)
        kept = beside.design.to_host(beside.scores(coef))
        np.testing.assert_allclose(kept, host.scores(coef), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("d", [5, 33, 64, 100, 128, 130, 256, 300])
def test_second_moments_of_rows_drawn_are_those_of_the_plain_products(d, gpu):
    from toprank.blocks.kernels_moments import drawn_moments

    generator = torch.Generator(device=gpu).manual_seed(d)
    X = torch.randn((5_000, d), generator=generator, device=gpu) + 2.0
    rows = torch.randperm(5_000, generator=generator, device=gpu)[:3_001]
    count = torch.randn(3_001, generator=generator, device=gpu)
    middles = torch.randn((2, d), generator=generator, device=gpu)
    x = X[rows].double() - middles[(count < 0).long()].double()
    want = (x * count.abs().double()[:, None]).T @ x
    got = drawn_moments(X, rows, count, middles)
    assert torch.equal(got, got.T)
    # bfloat16 has eight significant bits: rounding evens out over the rows
    assert float((got - want).abs().max()) <= 5e-4 * float(want.diagonal().max())
    assert torch.equal(got, drawn_moments(X.T.contiguous().T, rows, count, middles))
    assert float(torch.linalg.eigvalsh(got).min()) >= 0.0
    assert not drawn_moments(X, rows[:0], count[:0], middles).any()


@pytest.mark.parametrize("kind", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("d", [1, 3, 100, 1000])
def test_rows_are_copied_as_they_are(d, kind, device):
    wide = torch.randn((400, d + 3), device=device).to(getattr(torch, kind))
    for X in (wide[:, :d], wide[:, :d].contiguous(), wide[:, :d].T.contiguous().T):
        design = DeviceDesign(X, Units())
        for rows in (np.arange(3, 400, 7), np.array([5, 5, 0]), np.arange(0)):
            got = design.thin(rows)
            assert got.dtype == X.dtype and torch.equal(got, X[torch.as_tensor(rows)])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("d", [10, 30, 40, 100, 300, 512, 1024])
def test_no_infinity_of_16_bits_is_hidden(d, kind, bad, gpu):
    X, positive, _ = table(500, d)
    for column, by_column in ((d - 1, False), (d - 2, False), (d - 1, True)):
        for slope in (1.0, 0.0, -1.0):
            stored = torch.as_tensor(X).to(getattr(torch, kind))
            stored = stored.T.contiguous().T if by_column else stored
            stored[77, column] = bad
            rows = OpenBlock(
                Block(0, stored.to(gpu), torch.as_tensor(positive, device=gpu)),
                View(np.array([False, True])),
            )
            coef = np.full(d, 0.1)
            coef[column] = slope
            ((pos, neg),) = rows.sum_tilted(coef, TILTS[:1])
            sums = np.concatenate([[pos.mass, neg.mass], pos.moment, neg.moment])
            assert not np.all(np.isfinite(sums))


@given(st.floats(-1e4, 1e4), st.integers(0, 1000), st.booleans())
def test_scores_of_any_size_are_summed_without_overflow(size, seed, centred):
    X, positive, _ = table(300, 3, seed)
    units = Units(np.array([0.5, -1.0, 2.0])) if centred else Units()
    where = "cuda" if torch.cuda.is_available() else "cpu"
    host, rows = both(X, positive, None, units, where)
    for coef in (np.array([size, 1.0, -size]), np.zeros(3), np.array([-size, size, 0.0])):
        assert_same(rows.sum_tilted(coef, TILTS), host.sum_tilted(coef, TILTS), 1e-9)


def test_a_class_may_be_absent(device):
    X, positive, _ = table(100, 3)
    _, rows = both(X, np.zeros_like(positive), None, Units(), device)
    for _ in range(2):  # the second time from the tops of the first
        ((pos, neg),) = rows.sum_tilted(np.ones(3), ((-1.0, 4.0),))
        assert pos.mass == 0 and pos.top == -np.inf
        assert neg.mass > 0


def test_nan_is_not_hidden(device):
    X, positive, _ = table(100, 3)
    X[5, 1] = np.nan
    _, rows = both(X, positive, None, Units(), device)
    ((pos, neg),) = rows.sum_tilted(np.ones(3), ((-1.0, 4.0),))
    assert np.isnan(pos.mass) or np.isnan(neg.mass)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_counted_as_by_numpy(weighted, known, device):
    X, positive, weight = table(3000, 4, weighted=weighted)
    host, rows = both(X, positive, weight, Units(), device)
    coef = np.arange(4.0)
    scores = host.scores(coef)
    standard = Standard(float(np.median(scores)), 0.3 * float(np.std(scores)))
    want = ScoreHistogram.of(scores, positive, weight, standard)
    tensor = None if weight is None else torch.as_tensor(weight, device=device)
    there = rows.design.scores(coef).tensor if known else None
    counts, beyond = count_scores(
        rows.design, rows.positive.tensor, tensor, coef, standard, 2.0**40, there
    )
    np.testing.assert_allclose(counts[0] / 2.0**40, want.mass, atol=1e-9)
    centres = np.tile((np.arange(BINS) + 0.5 - BINS / 2) * BIN, 2)
    moment = (counts[0] * centres + counts[1] * BIN) / 2.0**40
    np.testing.assert_allclose(moment, want.moment, atol=1e-8)
    assert beyond == sum(len(points[0]) for points in want.outside)


@pytest.mark.parametrize("ranker", [PNormPush(), IRPush(), ProperRanker()])
def test_nothing_as_long_as_the_table_leaves_the_device(ranker, device, monkeypatch):
    X, positive, weight = table(70_000, 4, weighted=True)
    source = blocks.from_torch(
        *(torch.as_tensor(part, device=device) for part in (X, positive, weight))
    )
    largest = []
    copied = torch.Tensor.cpu
    monkeypatch.setattr(
        torch.Tensor, "cpu", lambda self: largest.append(self.numel()) or copied(self)
    )
    monkeypatch.setattr(torch.Tensor, "tolist", lambda self: pytest.fail("copied to the host"))
    ranker.fit_blocks(source)
    assert 0 < max(largest) <= 4 * BINS + 1


def test_the_kernel_is_used_on_a_gpu(gpu):
    pytest.importorskip("triton", reason="Triton is not installed")
    X, positive, _ = table(1000, 32, dtype=np.float32)
    _, rows = both(X, positive, None, Units(), gpu)
    assert rows.design.kernel == "triton"
    wide = DeviceDesign(rows.design.X[:, ::2], Units())
    assert wide.kernel is None  # columns that are not side by side are read by torch


def test_cupy_arrays_stay_cupy(gpu):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    X, positive, _ = table(2000, 5)
    there = PNormPush(tol=1e-11).fit(cupy.asarray(X), cupy.asarray(positive.astype(int)))
    here = PNormPush(tol=1e-11).fit(X, positive.astype(int))
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9)
    for name in ("decision_function", "predict", "predict_proba"):
        got = getattr(there, name)(cupy.asarray(X))
        assert isinstance(got, cupy.ndarray), name
        np.testing.assert_allclose(cupy.asnumpy(got), getattr(here, name)(X), atol=1e-9)


def test_metrics_of_cuda_tensors_are_those_of_numpy(gpu):
    from toprank.metrics import summary

    rng = np.random.default_rng(0)
    y = rng.random(5000) < 0.2
    s = np.round(rng.normal(size=5000) + y, 2)
    for w in (None, rng.random(5000)):
        want = summary(y, s, top=(10, 0.1), sample_weight=w).as_dict()
        tensors = torch.as_tensor(y, device=gpu), torch.as_tensor(s, device=gpu)
        got = summary(*tensors, top=(10, 0.1), sample_weight=w).as_dict()
        assert got == pytest.approx(want, rel=1e-10)


@pytest.mark.more
def test_without_torch_arrays_are_fitted_and_tensors_asked_for():
    code = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ImportError("there is no torch here")
sys.meta_path.insert(0, NoTorch())
import numpy as np
from toprank import PNormPush, blocks
X = np.random.default_rng(0).normal(size=(100, 2))
PNormPush().fit(X, X[:, 0] > 0).predict_proba(X)
try:
    blocks.from_torch(X, X[:, 0] > 0)
except ImportError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "[torch]'" in result.stdout


def curved(n, d, dtype, weighted, device, by_column=False):
    """Rows of two classes, and their curvature at some coefficients from sums over all of them."""
    rng = np.random.default_rng(3)
    X = torch.as_tensor(rng.normal(2.0, 1.0, (n, d)), device=device).to(getattr(torch, dtype))
    X = X.T.contiguous().T if by_column else X
    y = torch.as_tensor(rng.random(n) < 0.3, device=device)
    weight = torch.as_tensor(rng.integers(0, 3, n).astype(float), device=device)
    rows = OpenBlock(Block(0, X, y, weight if weighted else None), View(np.array([False, True])))
    coef = np.linspace(-0.5, 0.5, d) / np.sqrt(d)
    (end,) = rows.sum_tilted(coef, (AT_THE_TOP,), order=2)
    return rows, coef, end, curvature_of(end)


AT_THE_TOP = (-1.0, 4.0)


def curvature_of(end):
    return sum(abs(tilt) * part.covariance for tilt, part in zip(AT_THE_TOP, end, strict=True))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d"), [(400, 5), (700, 70)])
def test_the_curvature_of_all_rows_is_that_of_the_sums(n, d, dtype, weighted, by_column, device):
    rows, coef, end, want = curved(n, d, dtype, weighted, device, by_column)
    got = rows.curvature(coef, AT_THE_TOP, end, 10**12)  # so many that every row is drawn
    # products of bfloat16 numbers, where a few rows have most of the weight
    close = 1e-12 if dtype == "float64" else 2.0**-8 if device.type == "cuda" else 1e-4
    np.testing.assert_allclose(got, want, rtol=0, atol=close * np.max(want))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("at_zero", [False, True])
def test_the_curvature_of_rows_drawn_is_about_that_of_all(dtype, weighted, at_zero, device):
    rows, coef, end, want = curved(60_000, 8, dtype, weighted, device)
    if at_zero:
        coef = np.zeros(8)
        (end,) = rows.sum_tilted(coef, (AT_THE_TOP,), order=2)
        want = curvature_of(end)
    scale = np.sqrt(np.diag(want))
    for n_rows in (1_000, 10_000):
        got = rows.curvature(coef, AT_THE_TOP, end, n_rows)
        apart = np.linalg.norm((got - want) / np.outer(scale, scale), 2)
        assert apart <= 6.0 * np.sqrt(8 / n_rows)
    np.testing.assert_array_equal(got, rows.curvature(coef, AT_THE_TOP, end, n_rows))


def test_what_was_started_is_asked_for_once(device):
    rows, coef, end, want = curved(400, 5, "float32", False, device)
    rows.start_curvature(coef, AT_THE_TOP, end, 10**12)
    close = 2.0**-8 * np.max(want)
    np.testing.assert_allclose(rows.curvature(coef, AT_THE_TOP, end, 10**12), want, atol=close)
    np.testing.assert_allclose(rows.curvature(coef, AT_THE_TOP, end, 10**12), want, atol=close)
    assert rows._curved is None


@pytest.mark.parametrize("d", [12, 20])
def test_an_evaluation_that_was_started_leaves_the_scores_where_they_take_little_room(d, gpu):
    rows, coef, end, _ = curved(5_000, d, "float32", True, gpu)
    opened = OpenBlock(rows.block, rows.view)
    assert opened.start_tilted(coef, AT_THE_TOP, None) == (d == 20)
    (found,) = opened.sum_tilted(coef, (AT_THE_TOP,), keep=True)
    for one, other in zip(found, end, strict=True):
        np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-12)
    want = opened.block.X.double().cpu().numpy() @ coef
    np.testing.assert_allclose(opened.scores(coef).tensor.cpu().numpy(), want, rtol=0, atol=1e-12)


def test_rows_alone_in_their_class_have_no_curvature(device):
    X = torch.as_tensor(np.random.default_rng(0).normal(size=(50, 3)), device=device).float()
    y = torch.zeros(50, dtype=torch.bool, device=device)
    rows = OpenBlock(Block(0, X, y), View(np.array([False, True])))
    coef = np.array([0.5, -0.5, 1.0])
    (end,) = rows.sum_tilted(coef, (AT_THE_TOP,), order=2)
    got = rows.curvature(coef, AT_THE_TOP, end, 10**6)
    want = 4.0 * end[1].covariance
    np.testing.assert_allclose(got, want, rtol=0, atol=2.0**-8 * np.max(want))

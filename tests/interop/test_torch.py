"""The push as a torch loss: exact on a batch, and the full objective from small ones."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from toprank.interop.torch import PositiveBatchSampler, PushLoss
from toprank.objective import build_objective

torch = pytest.importorskip("torch")

LOSSES = ["exponential", "logistic", "hinge", "squared_hinge"]
SETTINGS = [
    (price, loss, p)
    for price in ("power", "identity", "exponential", "log1p", "max")
    for loss in LOSSES
    for p in (1.0, 4.0, 64.0)
    if (price != "log1p" or loss == "exponential") and (price == "power" or p == 4.0)
]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = rng.random(90) < 0.3
    return y, 2 * rng.normal(size=90), rng.integers(0, 4, 90).astype(float)


def of(loss, scores, y, weight=None):
    """The value and the gradient in the scores."""
    f = torch.tensor(scores, requires_grad=True)
    weight = None if weight is None else torch.tensor(weight)
    value = loss(f, torch.tensor(y), weight)
    value.backward()
    return value.item(), f.grad.numpy()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("price", "loss", "p"), SETTINGS)
def test_a_batch_is_the_engines_objective(rows, price, loss, p, weighted):
    y, scores, weight = rows
    weight = weight if weighted else None
    value, gradient = build_objective(y, weight, price=price, p=p, loss=loss).value_grad(scores)
    ours = of(PushLoss(p, price=price, loss=loss), scores, y, weight)
    assert ours[0] == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(ours[1], gradient, rtol=1e-8, atol=1e-10 * np.abs(gradient).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_float32_agrees_with_float64(rows, loss):
    y, scores, _ = rows
    wide = of(PushLoss(loss=loss), scores, y)
    narrow = of(PushLoss(loss=loss), scores.astype(np.float32), y)
    assert narrow[1].dtype == np.float32
    assert narrow[0] == pytest.approx(wide[0], rel=1e-5)
    np.testing.assert_allclose(narrow[1], wide[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode", ["batch", "minibatch"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("loss", LOSSES)
def test_half_precision_never_gives_nan(rows, loss, dtype, mode):
    y, scores, _ = rows
    net = torch.nn.Linear(1, 1)
    x = torch.tensor(scores, dtype=torch.float32)[:, None]
    for p, scale in ((64.0, 1000.0), (1.0, 1e-4)):
        net.zero_grad()
        with torch.autocast("cpu", dtype=dtype):
            value = PushLoss(p, loss=loss, mode=mode)(net(scale * x), torch.tensor(y))
            value.backward()
        assert torch.isfinite(value)
        # a float16 product may be infinite, which a GradScaler sees; it must not be NaN
        assert not any(torch.any(torch.isnan(w.grad)) for w in net.parameters())


@pytest.mark.parametrize("mode", ["batch", "minibatch"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_batch_without_a_class_has_no_gradient_that_is_not_a_number(rows, loss, mode):
    _, scores, weight = rows
    for y in (np.zeros(90, dtype=bool), np.ones(90, dtype=bool)):
        value, gradient = of(PushLoss(loss=loss, mode=mode), scores, y)
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))
        if mode == "batch" or loss != "exponential":
            assert value == 0
            assert not gradient.any()
    absent = np.zeros(90)
    value, gradient = of(PushLoss(loss=loss, mode=mode), scores, weight > 1, absent)
    assert value == 0
    assert not gradient.any()


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_heights_beyond_every_float_give_no_nan(rows, loss):
    y, scores, _ = rows
    value, gradient = of(PushLoss(price="exponential", loss=loss), (1e3 * scores).astype("f4"), y)
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))


def test_columns_of_scores_and_any_kind_of_target_are_taken(rows):
    y, scores, _ = rows
    loss = PushLoss()
    values = [
        loss(torch.tensor(scores).reshape(shape), target).item()
        for shape in ((90,), (90, 1))
        for target in (torch.tensor(y), torch.tensor(y).long(), torch.tensor(y).double()[:, None])
    ]
    assert len(set(values)) == 1


# the tracer itself reads .grad of what is no leaf, and makes instances of autograd functions
@pytest.mark.more
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize(("loss", "full"), [("exponential", True), ("logistic", False)])
def test_compiled_code_gives_the_same(rows, loss, full):
    y, scores, _ = rows
    plain = of(PushLoss(loss=loss), scores, y)
    # the eager backend traces without a compiler, which not every machine has
    compiled = torch.compile(PushLoss(loss=loss), backend="aot_eager", fullgraph=full)
    np.testing.assert_allclose(of(compiled, scores, y)[1], plain[1], rtol=1e-10)


def test_the_memory_of_the_exponential_loss_and_of_the_hinges_is_linear():
    n = 200_000
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=n).astype(np.float32), rng.random(n) < 0.3
    for loss in ("exponential", "hinge", "squared_hinge"):
        value, gradient = of(PushLoss(loss=loss), scores, y)  # 8 billion pairs would not fit
        assert np.isfinite(value)
        assert gradient[y].max() <= 0 <= gradient[~y].min()


def linear_data():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=3000) > 2
    return torch.tensor(X, dtype=torch.float32), torch.tensor(y)


def optimum(X, y, p, loss):
    net, objective = line(), PushLoss(p, loss=loss)
    solver = torch.optim.LBFGS(net.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        value = objective(net(X), y)
        value.backward()
        return value

    solver.step(closure)
    return objective(net(X), y).item()


def line():
    net = torch.nn.Linear(4, 1, bias=False)
    torch.nn.init.zeros_(net.weight)
    return net


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("loss", "p"),
    [
        ("exponential", 1.0),
        ("exponential", 4.0),
        ("exponential", 32.0),
        ("logistic", 1.0),
        ("logistic", 4.0),
        ("hinge", 2.0),
        ("squared_hinge", 2.0),
    ],
)
def test_minibatches_reach_the_optimum_of_the_full_objective(loss, p):
    X, y = linear_data()
    best = optimum(X, y, p, loss)
    net, full = line(), PushLoss(p, loss=loss)
    start = full(net(X), y).item()
    n_rows = None if loss == "exponential" else len(y)
    push = PushLoss(p, loss=loss, mode="minibatch", n_rows=n_rows)
    steps = torch.optim.Adam([*net.parameters(), *push.parameters()], lr=0.1 / (1 + p) ** 0.5)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(steps, 10)
    batches = PositiveBatchSampler(y, 100)
    for _ in range(10):
        for batch in batches:
            index = torch.tensor(batch)
            steps.zero_grad()
            push(net(X[index]), y[index], index=index).backward()
            steps.step()
        slower.step()
    reached = full(net(X), y).item()
    # 1% of the objective; of what there was to gain, where the objective is a logarithm
    scale = abs(best) if loss != "exponential" else start - best
    assert best - 1e-4 * scale <= reached <= best + 0.01 * scale


def test_an_intercept_that_no_optimiser_moves_is_reported(rows):
    y, scores, _ = rows
    loss = PushLoss(mode="minibatch")
    f, target = torch.tensor(scores), torch.tensor(y)
    with pytest.warns(UserWarning, match=r"\*loss.parameters\(\)"):
        for _ in range(100):
            loss(f, target)


def test_what_is_tracked_is_saved_and_is_left_alone_when_not_training(rows):
    y, scores, _ = rows
    f, target = torch.tensor(scores), torch.tensor(y)
    loss = PushLoss(mode="minibatch")
    loss(f, target)
    again = PushLoss(mode="minibatch")
    again.load_state_dict(loss.state_dict())
    again.eval()
    before = again.log_level.clone()
    again(3 * f, target)
    assert torch.equal(again.log_level, before)
    assert torch.isfinite(before)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_that_is_pushed_at_both_ends_is_the_engines_objective(rows, loss, weighted):
    y, scores, counts = rows
    weight = counts if weighted else None
    settings = {"p": 4.0, "loss": loss, "end": "both", "balance": 0.3}
    engine = build_objective(y, weight, **settings).value_grad(scores)
    value, slopes = of(PushLoss(**settings), scores, y, weight)
    assert value == pytest.approx(engine[0], rel=1e-9)
    np.testing.assert_allclose(slopes, engine[1], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_kernels_answer_is_the_value_and_the_gradient(rows, end, weighted, monkeypatch):
    from toprank.interop.torch import exponential
    from toprank.interop.torch import loss as module

    def as_kernels(f, positive, weight, p):
        w = torch.ones_like(f) if weight is None else weight
        a, b = (positive > 0) & (w > 0), (positive <= 0) & (w > 0)
        high, low = torch.log(w[a]) - f[a], torch.log(w[b]) + p * f[b]
        slopes = torch.zeros_like(f)
        slopes[a], slopes[b] = -torch.softmax(high, 0), torch.softmax(low, 0)
        value = torch.logsumexp(high, 0) - torch.log(w[a].sum())
        return value + (torch.logsumexp(low, 0) - torch.log(w[b].sum())) / p, slopes

    y, scores, counts = rows
    weight = counts if weighted else None
    plain = of(PushLoss(p=4.0, end=end), scores, y, weight)
    for where in (exponential, module):  # as on a GPU
        monkeypatch.setattr(where, "has_fused_kernels", lambda f: True)
    monkeypatch.setattr(exponential, "value_and_gradient", as_kernels)
    found = of(lambda *rows: 2.0 * PushLoss(p=4.0, end=end)(*rows), scores, y, weight)
    assert found[0] == pytest.approx(2 * plain[0], rel=1e-12)
    np.testing.assert_allclose(found[1], 2 * plain[1], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_pair_sums_on_a_device_are_those_of_the_host(rows, loss, monkeypatch):
    from toprank.interop.torch import heights
    from toprank.losses import get_loss
    from toprank.pair_sums import pair_sum

    monkeypatch.setattr(heights, "PAIRS_ON_DEVICE", 100)  # several blocks
    y, scores, counts = rows
    a, b, v, u = scores[y], scores[~y], counts[y], counts[~y]
    host = pair_sum(get_loss(loss), a, b)
    there = heights._OnDevice(get_loss(loss), torch.tensor(a), torch.tensor(b))
    v_there, u_there = torch.tensor(v), torch.tensor(u)
    wanted = [*host.to_outer((0, 1), v), *host.to_inner((1,), u)]
    found = [*there.to_outer((0, 1), v_there), *there.to_inner((1,), u_there)]
    found += heights._slopes(there, v_there, u_there)
    for mine, theirs in zip(found, [*wanted, wanted[1], wanted[2]], strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-9, atol=1e-12)


def test_heights_are_not_tracked_when_not_training(rows):
    y, scores, _ = rows
    f, target, index = torch.tensor(scores), torch.tensor(y), torch.arange(len(y))
    loss = PushLoss(mode="minibatch", loss="logistic", n_rows=len(y)).eval()
    assert loss(f, target, index=index) == PushLoss(mode="minibatch", loss="logistic").eval()(
        f, target
    )
    assert torch.all(torch.isnan(loss.log_heights))
    assert "p=4, price='power', loss='logistic', mode='minibatch'" in repr(loss)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"p": 0.5}, "not a push"),
        ({"loss": "zero_one"}, "no slope to follow"),
        ({"loss": "cubic"}, "Unknown loss"),
        ({"price": "cubic"}, "Unknown price"),
        ({"price": "log1p", "loss": "hinge"}, "exponential loss only"),
        ({"end": "middle"}, "Unknown end"),
        ({"balance": 0.0}, "above zero"),
        ({"mode": "minibatch", "end": "both"}, "at one end"),
        ({"mode": "stream"}, "Unknown mode"),
        ({"mode": "minibatch", "price": "max"}, "needs price='power'"),
        ({"mode": "minibatch", "p": np.inf}, "needs price='power'"),
        ({"rate": 1.5}, "between 0 and 1"),
    ],
)
def test_unusable_settings_are_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        PushLoss(**kwargs)


def test_unusable_calls_are_refused(rows):
    y, scores, _ = rows
    with pytest.raises(ValueError, match="expected one per row"):
        PushLoss()(torch.tensor(scores), torch.tensor(y[:5]))
    tracked = PushLoss(loss="hinge", mode="minibatch", n_rows=90)
    with pytest.raises(ValueError, match="needs index"):
        tracked(torch.tensor(scores), torch.tensor(y))


def test_every_batch_holds_positives_and_every_row_comes():
    targets = np.arange(1000) % 50 == 0
    sampler = PositiveBatchSampler(targets, 64, 4)
    batches = list(sampler)
    assert len(batches) == len(sampler) == 980 // 60
    assert all(targets[batch].sum() == 4 and len(batch) == 64 for batch in batches)
    seen = np.concatenate(batches)
    assert len(np.unique(seen[~targets[seen]])) == len(batches) * 60
    assert len(np.unique(seen[targets[seen]])) == 20
    assert list(sampler) != batches
    sampler.set_epoch(0)
    assert list(sampler) == batches


def test_processes_are_dealt_different_batches():
    targets = np.arange(1000) % 10 == 0
    parts = [list(PositiveBatchSampler(targets, 50, num_replicas=2, rank=r)) for r in (0, 1)]
    assert len(parts[0]) == len(parts[1])
    negatives = [{i for batch in part for i in batch if not targets[i]} for part in parts]
    assert not negatives[0] & negatives[1]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"targets": [0, 0], "batch_size": 2}, "at least one of each"),
        ({"targets": [0, 1], "batch_size": 2, "n_positives": 2}, "no room"),
        ({"targets": [0, 1], "batch_size": 2, "rank": 1}, "is not one of 1"),
    ],
)
def test_a_sampler_refuses_what_it_cannot_do(kwargs, message):
    with pytest.raises(ValueError, match=message):
        PositiveBatchSampler(**kwargs)


def test_a_data_loader_takes_the_sampler():
    X, y = linear_data()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(X, y), batch_sampler=PositiveBatchSampler(y, 300, 5)
    )
    assert all(target.sum() == 5 for _, target in loader)


def test_the_example_of_the_docstring_runs():
    text = PushLoss.__doc__.split("Example::")[1]
    names = {}
    exec(textwrap.dedent(text), names)
    assert torch.isfinite(names["value"])


PROCESS = """
import sys, warnings
import torch
from torch.nn.parallel import DistributedDataParallel
from toprank.interop.torch import PushLoss
warnings.simplefilter("error")
rank, store = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
torch.manual_seed(0)
X, y, w = torch.randn(41, 3), torch.arange(41) % 5 == 0, torch.rand(41) + 0.5
net = DistributedDataParallel(torch.nn.Linear(3, 1))
alone = torch.nn.Linear(3, 1)
alone.load_state_dict(net.module.state_dict())
mine = slice(0, 26) if rank == 0 else slice(26, 41)
for setting in (
    dict(),
    dict(mode="minibatch"),
    dict(price="max"),
    dict(price="log1p"),
    dict(price="exponential"),
    dict(loss="logistic"),
    dict(loss="hinge", mode="minibatch"),
):
    net.zero_grad()
    alone.zero_grad()
    push, whole = PushLoss(3.0, **setting), PushLoss(3.0, reduce=False, **setting)
    value = push(net(X[mine]), y[mine], w[mine])
    value.backward()
    expected = whole(alone(X), y, w)
    expected.backward()
    for ours, theirs in zip(push.parameters(), whole.parameters()):
        assert torch.allclose(ours.grad, theirs.grad, atol=1e-6), (ours.grad, theirs.grad)
    assert torch.allclose(value, expected, rtol=1e-5), (setting, value, expected)
    got, want = net.module.weight.grad, alone.weight.grad
    assert torch.allclose(got, want, rtol=1e-4, atol=1e-6), (setting, got, want)
torch.distributed.destroy_process_group()
"""


@pytest.mark.more
def test_two_processes_have_the_gradient_of_one(tmp_path):
    store = str(tmp_path / "store")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(rank), store], stderr=subprocess.PIPE, text=True
        )
        for rank in (0, 1)
    ]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(errors)


@pytest.mark.more
def test_without_torch_the_room_can_be_entered_and_says_what_to_install():
    code = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ImportError("there is no torch here")
sys.meta_path.insert(0, NoTorch())
import toprank.interop.torch as room
assert len(list(room.PositiveBatchSampler([0, 1, 0], 2))) == 2
try:
    room.PushLoss()
except ImportError as error:
    print(error)
from toprank.interop.torch._torch import torch
assert not hasattr(torch, "__path__")
try:
    torch.cat
except ImportError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.count("pip install 'toprank[torch]'") == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [2, 100, 8192, 100_003])
def test_the_fused_kernels_agree_with_plain_torch(p, weighted, n):
    generator = torch.Generator().manual_seed(n)
    scores = 5 * torch.randn(n, generator=generator)
    targets = torch.arange(n) % 7 == 0
    weight = torch.randint(0, 3, (n,), generator=generator).float() if weighted else None
    if weight is not None:
        weight[:2] = 1.0
    found = []
    for device in ("cpu", "cuda"):
        x = scores.clone().to(device).requires_grad_(True)
        w = None if weight is None else weight.to(device)
        value = PushLoss(p)(x, targets.to(device), w)
        value.backward()
        found.append((value.item(), x.grad.cpu()))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5, abs=1e-5)
    torch.testing.assert_close(found[0][1], found[1][1], rtol=2e-3, atol=1e-7)

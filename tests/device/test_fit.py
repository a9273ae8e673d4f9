"""Fits to tensors: the coefficients of NumPy's fit, and nothing of the rows leaves the device."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from toprank import IRPush, PNormPush, ProperRanker, PushRanker, blocks  # noqa: E402
from toprank.blocks import Block  # noqa: E402
from toprank.objective.labelled import OpenBlock, View  # noqa: E402
from toprank.rankers import base, common  # noqa: E402

#: Every path of the passes: factorised at either end, priced in two, pointwise, gathered.
RANKERS = {
    "push": PNormPush(p=3.3, tol=1e-11),
    "no push": PNormPush(p=1, tol=1e-11),
    "hard push": PNormPush(p=64, tol=1e-10),
    "bottom": PushRanker(end="bottom", p=2, tol=1e-11),
    "both ends": PushRanker(end="both", p=2, balance=0.5, tol=1e-11),
    "unpenalised": PNormPush(alpha=0, tol=1e-11),
    "balanced": PNormPush(class_weight="balanced", tol=1e-11),
    "p_classification": PNormPush(link="p_classification", tol=1e-11),
    "lbfgs": PNormPush(solver="lbfgs", tol=1e-11),
    "information retrieval": IRPush(tol=1e-11),
    "exponential price": PushRanker(price="exponential", alpha=1.0, tol=1e-10),
    "logistic pairs": PNormPush(loss="logistic", tol=1e-11),
    "coordinate": PNormPush(solver="coordinate", alpha=0, max_iter=30),
    "proper logistic": ProperRanker(tol=1e-11),
    "proper exponential": ProperRanker("exponential", tol=1e-11),
    "proper squared": ProperRanker("squared", tol=1e-11),
    "proper spherical": ProperRanker("spherical", tol=1e-11),
}


def rows(n=1500, d=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    y = (X @ np.arange(d) / d + rng.logistic(size=n) > 2).astype(int)
    return X, y, rng.integers(0, 3, n).astype(float)


def apart(left, right):
    return np.max(np.abs(left.coef_ - right.coef_)) / np.max(np.abs(right.coef_))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", RANKERS)
def test_a_tensor_gives_the_coefficients_of_an_array(name, weighted, device):
    X, y, w = rows(dtype=np.float32 if weighted else np.float64)
    w = w if weighted else None
    ranker = RANKERS[name]
    here = ranker.fit(X, y, w)
    want = here.coef_, here.intercept_
    source = blocks.from_torch(*(torch.as_tensor(part, device=device) for part in (X, y)), w)
    there = ranker.fit_blocks(source)
    scale = np.max(np.abs(want[0]))
    # L-BFGS stops where no decrease is left, which rounding of the value decides: half its digits
    limit = 1e-7 if name == "lbfgs" else 1e-10
    assert np.max(np.abs(there.coef_ - want[0])) <= limit * scale
    np.testing.assert_allclose(there.intercept_, want[1], rtol=1e-8, atol=1e-9)


def test_large_samples_are_thinned_where_they_lie(device):
    X, y, w = rows(70_000, 4)
    tensors = [torch.as_tensor(part, device=device) for part in (X, y, w)]
    there = PNormPush(tol=1e-11).fit_blocks(blocks.from_torch(*tensors))
    here = PNormPush(tol=1e-11).fit(X, y, w)
    assert apart(there, here) <= 1e-10
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=1e-6)
    assert there.passes_["evaluate"] <= (8 if device.type == "cpu" else 12)  # a GPU reads them all


def test_a_large_table_of_a_gpu_starts_on_a_sample_that_gives_its_hessians_too(device):
    X, y, w = rows(80_000, 4)
    tensors = [torch.as_tensor(part, device=device) for part in (X, y, w)]
    source = blocks.from_torch(*tensors)
    source.sample_entries = 1 << 18, 1 << 17
    there = PNormPush(tol=1e-11).fit_blocks(source)
    here = PNormPush(tol=1e-11).fit(X, y, w)
    assert apart(there, here) <= 1e-10
    assert there.passes_["evaluate"] <= 8
    assert "roughmoments" not in there.passes_  # those of the sample are enough


@pytest.mark.parametrize("by_column", [False, True])
def test_scores_that_an_evaluation_keeps_are_those_of_the_rows(by_column, gpu):
    X, y, _ = rows(5_000, 90)
    tensor = torch.as_tensor(X, device=gpu, dtype=torch.float32)
    if by_column:
        tensor = tensor.T.contiguous().T
    labels = torch.as_tensor(y, device=gpu)
    opened = OpenBlock(Block(0, tensor, labels), View(np.array([False, True])))
    coef = np.linspace(-0.5, 0.5, 90)
    kept = opened.sum_tilted(coef, ((-1.0, 4.0),), keep=True)
    want = opened.sum_tilted(coef, ((-1.0, 4.0),))
    for one, other in zip(kept[0], want[0], strict=True):
        np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-12)
    scores = opened.scores(coef).tensor.cpu().numpy()
    np.testing.assert_allclose(scores, tensor.double().cpu().numpy() @ coef, rtol=0, atol=1e-12)


@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_columns_far_from_zero_are_centred(offset, device):
    X, y, _ = rows()
    X[:, 0] += offset
    there = PNormPush(tol=1e-8).fit_blocks(
        blocks.from_torch(torch.as_tensor(X, device=device), torch.as_tensor(y))
    )
    here = PNormPush(tol=1e-8).fit(X, y)
    assert apart(there, here) < 1e-6


def test_huge_entries_are_refused(device):
    X, y, _ = rows()
    X[7, 1] = 1e200
    source = blocks.from_torch(torch.as_tensor(X, device=device), y)
    with pytest.raises(ValueError, match=r"up to 1e\+200 in size in column 1.*at most 1e\+100"):
        PNormPush().fit_blocks(source)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8, torch.bool])
def test_other_types_of_numbers_are_read_as_they_are(dtype, device):
    X, y, _ = rows()
    X = torch.as_tensor(np.round(2 * X)).to(dtype).to(device)
    here = PNormPush(tol=1e-11).fit(X.double().cpu().numpy(), y)
    there = PNormPush(tol=1e-11).fit_blocks(blocks.from_torch(X, y))
    assert apart(there, here) <= 1e-9


def test_columns_of_a_wider_table_are_not_copied_first(device):
    X, y, _ = rows(d=8)
    wide = torch.as_tensor(X, device=device)
    for part, columns in ((wide[:, 1:6], slice(1, 6)), (wide[:, ::2], slice(None, None, 2))):
        there = PNormPush(tol=1e-11).fit_blocks(blocks.from_torch(part, y))
        assert apart(there, PNormPush(tol=1e-11).fit(X[:, columns], y)) <= 1e-10


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge"])
def test_weights_and_labels_may_be_columns_of_a_wider_table(loss, device):
    rng = np.random.default_rng(4)
    X = torch.as_tensor(rng.normal(size=(3000, 4)), device=device)
    y, weight = rng.random(3000) < 0.3, rng.integers(0, 3, 3000).astype(float)
    ranker = PNormPush(loss=loss)
    given = [torch.as_tensor(part, device=device) for part in (y, weight)]
    want = ranker.fit_blocks(blocks.from_torch(X, *given)).coef_
    beside = [torch.stack([part, part.flip(0)], 1)[:, 0] for part in given]
    assert not beside[0].is_contiguous()
    np.testing.assert_array_equal(ranker.fit_blocks(blocks.from_torch(X, *beside)).coef_, want)


@pytest.fixture(params=["host", "as if on a device", "gpu"])
def door(request, monkeypatch):
    """Where the tensors lie that the estimators are given."""
    if request.param == "gpu" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    if request.param == "as if on a device":
        monkeypatch.setattr(base, "tensor_on_device", common.tensor_of)
    return torch.device("cuda" if request.param == "gpu" else "cpu")


@pytest.mark.parametrize("ranker", [PNormPush(), IRPush(), ProperRanker(), ProperRanker("squared")])
def test_tensors_in_tensors_out(ranker, door):
    X, y, w = rows()
    ranker.fit(X, y, w)
    asked = ["decision_function", "predict", "predict_proba", "predict_log_proba"]
    want = {name: getattr(ranker, name)(X) for name in asked}
    tensor = torch.as_tensor(X, device=door)
    ranker.fit(tensor, torch.as_tensor(y, device=door), torch.as_tensor(w, device=door))
    assert isinstance(ranker.coef_, np.ndarray)
    assert ranker.n_features_in_ == 5
    for name, values in want.items():
        got = getattr(ranker, name)(tensor)
        assert isinstance(got, torch.Tensor), name
        assert got.device.type == door.type, name
        assert got.shape == values.shape
        np.testing.assert_allclose(got.cpu().numpy(), values, rtol=1e-5, atol=1e-7)


def test_labels_that_are_words_come_back_as_words(door):
    X, y, _ = rows()
    ranker = PNormPush().fit(X, np.where(y == 1, "yes", "no"))
    labels = ranker.predict(torch.as_tensor(X, device=door))
    assert set(np.asarray(labels)) == {"no", "yes"}


def test_scores_of_a_source_come_back_as_a_tensor(device):
    X, y, _ = rows()
    ranker = PNormPush().fit(X, y)
    scores = ranker.score_blocks(blocks.from_torch(torch.as_tensor(X, device=device)))
    assert scores.device.type == device.type
    np.testing.assert_allclose(scores.cpu().numpy(), ranker.decision_function(X), rtol=1e-12)
    with pytest.raises(ValueError, match=r"torch\.save"):
        ranker.score_blocks(blocks.from_torch(torch.as_tensor(X)), to="scores.npy")


def test_the_fit_does_not_depend_on_the_rows_order_beyond_rounding(device):
    X, y, w = rows()
    order = np.random.default_rng(1).permutation(len(X))
    fits = [
        PNormPush(tol=1e-11).fit_blocks(
            blocks.from_torch(torch.as_tensor(X[at], device=device), y[at], w[at])
        )
        for at in (np.arange(len(X)), order)
    ]
    assert apart(*fits) <= 1e-10


def test_the_same_rows_give_the_same_bits_again(device):
    X, y, w = rows(70_000, 4)
    tensors = [torch.as_tensor(part, device=device) for part in (X, y, w)]
    first, second = (PNormPush().fit_blocks(blocks.from_torch(*tensors)) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.intercept_, second.intercept_)


def refused():
    X, y, w = rows(60)
    nan, infinite = X.copy(), X.copy()
    nan[3, 2], infinite[4, 1] = np.nan, np.inf
    one_class, three = np.ones(60, int), np.arange(60) % 3
    return {
        "NaN": ((nan, y, w), "contains NaN: column 2"),
        "infinity": ((infinite, y, w), "contains infinity: column 1"),
        "one class": ((X, one_class, w), "one class only"),
        "three classes": ((X, three, w), "3 classes"),
        "short labels": ((X, y[:-1], w), r"y has shape \(59,\)"),
        "short weights": ((X, y, w[:-1]), "sample_weight has shape"),
        "negative weights": ((X, y, -w), "negative"),
        "NaN weights": ((X, y, w * np.nan), "NaN"),
        "a class of weight zero": ((X, y, w * (y == 0)), "sample_weight 0"),
        "a vector": ((X[:, 0], y, w), r"expected \(n, d\)"),
        "no labels": ((X, None, w), "no labels"),
        "complex numbers": ((X + 1j, y, w), "expected real numbers"),
    }


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", refused())
def test_unusable_tensors_are_refused(name, device):
    (X, y, w), message = refused()[name]
    with pytest.raises(ValueError, match=message):
        PNormPush().fit_blocks(blocks.from_torch(torch.as_tensor(X, device=device), y, w))


def test_what_is_no_tensor_is_refused():
    X, y, _ = rows(60)
    with pytest.raises(TypeError, match="sparse tensor"):
        blocks.from_torch(torch.as_tensor(X).to_sparse(), y)
    with pytest.raises(TypeError, match="Encode them first"):
        blocks.from_torch(torch.as_tensor(X), np.array(["a", "b"] * 30))
    with pytest.raises(TypeError, match=r"blocks\.from_arrays"):
        blocks.from_torch([[1.0]], [1])
    with pytest.raises(ValueError, match="not initialised"):
        blocks.from_torch(torch.as_tensor(X), y, process_group="world")


def test_scores_of_other_columns_are_refused(door):
    X, y, _ = rows(60)
    ranker = PNormPush().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        ranker.decision_function(torch.as_tensor(X[:, :3], device=door))
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ranker.decision_function(torch.as_tensor(X, device=door))


def test_an_empty_tensor_is_refused(device):
    with pytest.raises(ValueError, match="no rows"):
        PNormPush().fit_blocks(
            blocks.from_torch(torch.empty((0, 3), device=device), torch.empty(0, dtype=torch.int8))
        )

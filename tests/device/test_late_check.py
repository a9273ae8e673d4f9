"""Entries that no fit can use are found by the first sum over them, and named as if before."""

import numpy as np
import pytest

from toprank import PNormPush, blocks

torch = pytest.importorskip("torch")
from toprank.blocks.tensors import count_true  # noqa: E402


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("sampled", [False, True])
def test_an_entry_that_is_no_number_is_refused_by_its_column(loss, bad, dtype, sampled, gpu):
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(60_001, 6)), device=gpu).to(getattr(torch, dtype))
    y = torch.as_tensor(rng.random(60_001) < 0.3, device=gpu)
    weight = torch.ones(60_001, dtype=torch.float64, device=gpu)
    weight[17] = 0.0
    X[17, 4] = bad  # of a row that is absent, and that no sample holds
    source = blocks.from_torch(X, y, weight)
    if sampled:
        source.sample_entries = 1 << 10, 1 << 17
    with pytest.raises(ValueError, match="column 4"):
        PNormPush(4, loss=loss).fit_blocks(source)


def test_a_sound_table_is_not_looked_at_twice(gpu, monkeypatch):
    looked = []
    monkeypatch.setattr("toprank.blocks.tensor_source.first_bad", lambda block: looked.append(1))
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(2_000, 3)), device=gpu, dtype=torch.float32)
    y = torch.as_tensor(rng.random(2_000) < 0.3, device=gpu)
    for loss in ("exponential", "logistic"):
        PNormPush(4, loss=loss).fit(X, y)
    assert not looked


@pytest.mark.parametrize("n", [0, 1, 127, 128, 70_001])
def test_members_of_a_mask_are_counted(n, device):
    mask = torch.as_tensor(np.random.default_rng(n).random(n) < 0.6, device=device)
    assert count_true(mask) == int(np.sum(mask.cpu().numpy()))

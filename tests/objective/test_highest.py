"""p = inf over rows that lie elsewhere: the minimum of memory, in a few passes."""

import numpy as np
import pytest
from scipy import sparse

from toprank import PNormPush, blocks
from toprank.objective import data, highest

RNG = np.random.default_rng(7)
X = RNG.standard_normal((6000, 4))
Y = (X @ [2.0, -1.0, 0.5, 0.0] + 0.1 * RNG.logistic(size=6000) > 3).astype(int)


def away(matrix=X, weight=None):
    """A source whose rows count as lying elsewhere."""
    source = blocks.from_arrays(matrix, Y, weight, block_rows=900)
    source.in_memory = source.keeps_samples = False
    return source


@pytest.mark.parametrize("given", ["plain", "weights", "sparse"])
def test_the_minimum_is_that_of_memory_in_a_few_passes(given):
    weight = RNG.integers(0, 3, len(Y)).astype(float) if given == "weights" else None
    matrix = sparse.csr_array(X) if given == "sparse" else X
    settings = {"p": np.inf, "class_weight": "balanced" if given == "weights" else None}
    ours = PNormPush(**settings).fit_blocks(away(matrix, weight))
    theirs = PNormPush(**settings).fit(matrix, Y, weight)
    assert sum(ours.passes_.values()) <= 12
    assert ours.passes_["highestrows"] >= 2
    # both are certified to lie no farther above the minimum than their gaps
    assert ours.objective_ - theirs.objective_ <= ours.optimality_gap_ + 1e-12
    assert theirs.objective_ - ours.objective_ <= theirs.optimality_gap_ + 1e-12
    assert ours.optimality_gap_ < 2e-4
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)


def test_more_positives_than_may_come_here_leave_the_path_of_smooth_problems(monkeypatch):
    few = PNormPush(p=np.inf).fit_blocks(away())
    monkeypatch.setattr(highest, "_MOST_BYTES", 0)
    path = PNormPush(p=np.inf).fit_blocks(away())
    assert "highestrows" not in path.passes_
    assert sum(few.passes_.values()) < 0.3 * sum(path.passes_.values())
    assert few.objective_ == pytest.approx(path.objective_, abs=2e-4)


def test_a_sample_tells_which_negatives_to_bring_first(monkeypatch):
    monkeypatch.setattr(highest, "_HIGHEST", 30)
    monkeypatch.setattr(highest, "_HIGHEST_PER_FEATURE", 1)
    blind = PNormPush(p=np.inf).fit_blocks(away())
    monkeypatch.setattr(data, "_COARSE_ROWS", (1000, 1400))
    monkeypatch.setattr(data, "_COARSE_ROWS_PER_FEATURE", 10)
    told = PNormPush(p=np.inf).fit_blocks(away())
    assert told.passes_["highestrows"] < blind.passes_["highestrows"]
    assert told.objective_ == pytest.approx(blind.objective_, abs=2e-4)


def test_negatives_that_stand_higher_later_are_brought_too(monkeypatch):
    monkeypatch.setattr(highest, "_HIGHEST", 3)
    monkeypatch.setattr(highest, "_HIGHEST_PER_FEATURE", 1)
    ours = PNormPush(p=np.inf).fit_blocks(away())
    assert ours.passes_["highestrows"] > 2
    theirs = PNormPush(p=np.inf).fit(X, Y)
    assert ours.objective_ == pytest.approx(theirs.objective_, abs=2e-4)


def test_where_passes_do_not_suffice_smooth_problems_lead_to_the_minimum(monkeypatch):
    monkeypatch.setattr(highest, "_PASSES", 1)
    ours = PNormPush(p=np.inf).fit_blocks(away())
    assert ours.passes_["highestrows"] == 1
    assert ours.objective_ == pytest.approx(PNormPush(p=np.inf).fit(X, Y).objective_, abs=2e-4)

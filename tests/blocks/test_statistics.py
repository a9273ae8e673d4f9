"""What a look at the data tells is the same however the rows are cut, in any order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from toprank.blocks import safe_units
from toprank.blocks.statistics import ColumnStatistics, LabelCounts

rows = st.integers(1, 40)
values = st.floats(-1e6, 1e6, width=32)


def in_pieces(of, data, cuts, order):
    """Describe the pieces one by one and merge them in a given order."""
    parts = [of(index, piece) for index, piece in enumerate(np.split(data, cuts))]
    total = parts[order[0]]
    for place in order[1:]:
        total = total.merge(parts[place])
    return total


@st.composite
def pieces(draw, elements):
    n = draw(rows)
    data = draw(arrays(np.float64, (n, 3), elements=elements))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=5)))
    order = draw(st.permutations(range(len(cuts) + 1)))
    return data, cuts, order


@given(pieces(values))
def test_columns_of_pieces_merge_to_those_of_the_whole(case):
    data, cuts, order = case
    total = in_pieces(ColumnStatistics.of, data, cuts, order)
    size = 1 + np.abs(data).max()
    assert total.n_rows == len(data)
    np.testing.assert_array_equal(total.low, data.min(axis=0))
    np.testing.assert_array_equal(total.high, data.max(axis=0))
    np.testing.assert_allclose(total.mean, data.mean(axis=0), rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(total.spread, data.std(axis=0), rtol=1e-6, atol=1e-9 * size)
    np.testing.assert_array_equal(total.first[1], data[0])


@given(pieces(st.sampled_from([0.0, 0.0, 0.0, -1.5, 2.0])))
def test_sparse_columns_are_described_as_dense_ones(case):
    data, cuts, order = case
    dense = in_pieces(ColumnStatistics.of, data, cuts, order)

    def of_sparse(index, part):
        return ColumnStatistics.of(index, sparse.csr_array(part))

    thin = in_pieces(of_sparse, data, cuts, order)
    for name in ("low", "high", "mean", "spread"):
        np.testing.assert_allclose(getattr(thin, name), getattr(dense, name), atol=1e-12)


@given(pieces(values), st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_an_entry_that_is_no_number_is_found_in_its_block_and_column(case, wrong, choose):
    data, cuts, order = case
    row = choose.draw(st.integers(0, len(data) - 1))
    data[row, 1] = wrong
    block = int(np.searchsorted(cuts, row, side="right"))
    what = "NaN" if np.isnan(wrong) else "infinity"
    assert in_pieces(ColumnStatistics.of, data, cuts, order).bad == (block, 1, what)


@pytest.mark.parametrize("scale", [1.0, 1e200])
@pytest.mark.parametrize("shift", [0.0, 1e3, 1e9])
def test_units_are_those_of_the_array(scale, shift):
    data = np.random.default_rng(0).normal(size=(500, 3))
    data[:, 1] = (data[:, 1] + shift) * scale
    cuts, order = [10, 10, 300], [2, 0, 3, 1]
    units = in_pieces(ColumnStatistics.of, data, cuts, order).units()
    expected = safe_units(data, every_row=True)
    for name in ("centre", "scale"):
        ours, theirs = getattr(units, name), getattr(expected, name)
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            np.testing.assert_array_equal(ours, theirs)


@given(st.lists(st.sampled_from(["no", "yes", "perhaps"]), min_size=1), st.data())
def test_labels_of_pieces_add_up(labels, choose):
    y = np.array(labels, dtype=object)
    weight = np.array(choose.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    cuts = sorted(choose.draw(st.lists(st.integers(0, len(y)), max_size=4)))
    order = choose.draw(st.permutations(range(len(cuts) + 1)))
    place = np.split(np.arange(len(y)), cuts)

    def counted(index, rows):
        return LabelCounts.of(index, y[rows], weight[rows])

    total = in_pieces(counted, np.arange(len(y)), cuts, order)
    assert total.labels.tolist() == np.unique(y).tolist()
    assert total.weight.tolist() == [weight[y == label].sum() for label in np.unique(y)]
    assert total.n_rows == len(y)
    assert total.smallest == weight.min()
    for label in np.unique(y):
        counts = [total.blocks[i].of(label) for i in range(len(place))]
        assert counts == [
            (np.sum(y[p] == label), np.sum((y[p] == label) & (weight[p] > 0))) for p in place
        ]

"""What a look at the data tells is the same however the rows are cut, in any order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

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
    np.testing.assert_allclose(total.mean, data.mean(axis=0), rtol=0, atol=1e-12 * size)
    spread = np.sqrt(total.deviation / len(data))
    np.testing.assert_allclose(spread, data.std(axis=0), rtol=1e-6, atol=1e-9 * size)
    np.testing.assert_array_equal(total.first[1], data[0])


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e9])
def test_units_are_those_of_the_whole(shift):
    data = np.random.default_rng(0).normal(size=(500, 3))
    data[:, 1] += shift
    units = in_pieces(ColumnStatistics.of, data, [10, 10, 300], [2, 0, 3, 1]).units()
    assert units.same(ColumnStatistics.of(0, data).units())
    assert units.plain == (shift == 0.0)


def test_labels_without_an_order_are_named_by_their_types():
    with pytest.raises(ValueError, match=r"several types \(NoneType, str\).*Fill in missing ones"):
        LabelCounts.of(0, np.array(["no", None, "yes"], dtype=object), np.ones(3))


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

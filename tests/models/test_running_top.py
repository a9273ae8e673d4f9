"""The first rows of a list that is read in pieces are those of the whole list."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.models import top_of_list
from toprank.models.top_of_list import RunningTop


@given(
    st.lists(st.lists(st.integers(0, 6), max_size=12), min_size=1, max_size=8),
    st.one_of(st.none(), st.integers(1, 20)),
    st.integers(1, 30),
)
def test_it_keeps_what_sorting_the_whole_list_would_put_first(pieces, k, waiting):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_of_list, "_FEWEST_SORTED", waiting)
        top, start = RunningTop(k), 0
        for piece in pieces:
            places = np.arange(start, start + len(piece))
            top.add(np.array(piece, dtype=float), pa.table({"place": places}))
            start += len(piece)
        top.settle()
    scores = np.array([score for piece in pieces for score in piece], dtype=float)
    order = np.argsort(-scores, kind="stable")
    chosen = order[: len(order) if k is None else k]
    assert top.n == len(scores)
    np.testing.assert_array_equal(top.places, chosen)
    np.testing.assert_array_equal(top.scores, scores[chosen])
    if len(chosen):
        assert top.rows.column("place").to_pylist() == chosen.tolist()
        assert top.tied_out == np.count_nonzero(scores == scores[chosen[-1]]) - np.count_nonzero(
            scores[chosen] == scores[chosen[-1]]
        )


def test_equal_scores_without_end_are_not_held():
    top = RunningTop(10)
    for _ in range(40):
        top.add(np.zeros(5_000), pa.table({"row": np.zeros(5_000)}))
    top.settle()
    assert top.rows.num_rows == 10 and top.tied_out == 40 * 5_000 - 10
    assert top.places.tolist() == list(range(10))

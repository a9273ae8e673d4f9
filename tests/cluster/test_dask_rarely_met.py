"""What Dask collections meet rarely; without a cluster, in this thread."""

import operator
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from toprank import PNormPush, blocks
from toprank.blocks.dask import DaskBlocks
from toprank.blocks.dask_tasks import make_block
from toprank.rankers.trees.distributed_dask import _by_worker

dask = pytest.importorskip("dask", reason="needs pip install 'toprank[dask]'")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    return table.assign(y=(table.a > 0.4).astype(int), who=np.arange(60) // 4)


class Groups:
    """The groups and the width of each block."""

    def local(self, block, state):
        return [(block.index, np.asarray(block.groups).tolist(), block.X.shape[1])]

    def merge(self, left, right):
        return left + right


@pytest.mark.parametrize("columns", [None, ["a", "b"]])
def test_a_column_of_groups_is_no_feature(frame, columns):
    parts = dd.from_pandas(frame, npartitions=3)
    with blocks.from_dask(parts, target="y", groups="who", columns=columns) as source:
        found = sorted(source.map_reduce(Groups(), None))
        assert source.grouped and source.n_features == 2
    assert {width for _, _, width in found} == {2}
    assert [one for _, groups, _ in found for one in groups] == frame.who.tolist()
    with pytest.raises(ValueError, match="groups='home' is no column of X"):
        blocks.from_dask(parts, target="y", groups="home")
    with pytest.raises(ValueError, match="groups='who' is no column of X"):
        blocks.from_dask(da.ones((6, 2)), da.ones(6), groups="who")


def test_scores_come_back_as_an_array_of_dask_also_of_empty_chunks(frame):
    X = frame[["a", "b"]].to_numpy()
    ranker = PNormPush().fit(X, frame.y)
    chunks = ((20, 0, 40), (2,))
    with blocks.from_dask(da.from_array(X, chunks=chunks), verbose=2) as source:
        scores = ranker.score_blocks(source)
        np.testing.assert_allclose(scores.compute(), ranker.decision_function(X))
        with pytest.raises(ValueError, match="its own methods, such as to_npy_stack"):
            source.write_scores(ranker.block_score(), to="scores")
        assert source.name_of(2) == "chunk 2"


def test_labels_may_be_a_column_and_must_be_as_many_as_the_rows(frame):
    X = da.from_array(frame[["a", "b"]].to_numpy(), chunks=(20, 2))
    y = frame.y.to_numpy()
    with blocks.from_dask(X, da.from_array(y[:, None], chunks=(30, 1)), verbose=2) as source:
        found = PNormPush(tol=1e-10).fit_blocks(source)
    in_memory = PNormPush(tol=1e-10).fit(frame[["a", "b"]].to_numpy(), y)
    np.testing.assert_allclose(found.coef_, in_memory.coef_, rtol=1e-6)
    with pytest.raises(ValueError, match="y has 50 rows, X has 60"):
        blocks.from_dask(X, da.from_array(y[:50], chunks=25))
    with pytest.raises(ValueError, match=r"X has 1 dimension"):
        blocks.from_dask(da.ones(6), da.ones(6))


def test_a_chunk_that_is_not_like_the_others_is_refused():
    with pytest.raises(ValueError, match="A chunk of X has dtype object, expected numbers"):
        make_block(0, 2, pd.DataFrame({"a": ["x"], "b": [1.0]}), None, None)
    with pytest.raises(ValueError, match="A chunk of X has 3 columns, expected 2"):
        make_block(0, 2, np.ones((4, 3)), None, None)
    with pytest.raises(ValueError, match="A chunk of y has 3 rows, that of X 4"):
        make_block(0, 2, np.ones((4, 2)), np.ones(3), None)


def test_partitions_without_rows_have_no_scores(frame):
    ranker = PNormPush().fit(frame[["a", "b"]], frame.y)
    parts = dd.from_pandas(frame, npartitions=3)
    kept = parts[parts.who > 4][["a", "b"]]  # none of the first partition
    with blocks.from_dask(kept) as source:
        scores = ranker.score_blocks(source).compute()
    np.testing.assert_allclose(scores, ranker.decision_function(frame[["a", "b"]])[20:])


def test_answers_that_are_too_large_to_keep_are_computed_again(frame, monkeypatch):
    monkeypatch.setattr("toprank.blocks.dask._KEPT_BYTES", -1)
    parts = dd.from_pandas(frame, npartitions=3)
    with blocks.from_dask(parts, target="y", columns=["a", "b"]) as source:
        found = PNormPush(tol=1e-10).fit_blocks(source)
        assert source._answers == {}
    in_memory = PNormPush(tol=1e-10).fit(frame[["a", "b"]], frame.y)
    np.testing.assert_allclose(found.coef_, in_memory.coef_, rtol=1e-6)


class Fails(Groups):
    def local(self, block, state):
        raise ValueError("no such rows")


@pytest.mark.more  # workers start, in threads
@pytest.mark.parametrize("persist", [True, False])
def test_a_client_shows_how_far_a_pass_is_and_says_what_failed(frame, persist, capsys):
    distributed = pytest.importorskip("distributed", reason="needs pip install 'toprank[dask]'")
    parts = dd.from_pandas(frame, npartitions=3)
    here = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.Client(**here) as client,
        blocks.from_dask(
            parts, target="y", groups="who", client=client, persist=persist, verbose=2
        ) as source,
    ):
        found = source.map_reduce(Groups(), None)
        assert sum(len(groups) for _, groups, _ in found) == 60
        assert "100% Completed" in capsys.readouterr().out
        with pytest.raises(ValueError, match="no such rows"):
            source.map_reduce(Fails(), None)
        with pytest.raises(ZeroDivisionError):  # a part of the rows of trees that is not to be had
            _by_worker(client, [client.submit(operator.truediv, 1, 0)])


@pytest.mark.parametrize(("columns", "rows", "exact"), [(20, 10**9, True), (60, 10**9, False)])
def test_few_columns_bring_their_exact_hessian_whatever_the_rows(columns, rows, exact):
    source = object.__new__(DaskBlocks)
    source.n_features = columns
    assert source.cheap_curvature(rows) is exact
    assert source.cheap_curvature(1000)


class Rows:
    """How many rows each table has, and their columns."""

    def local(self, block, state):
        return [(block.X.num_rows, block.X.column_names)]

    def merge(self, left, right):
        return left + right


def test_files_are_read_where_the_work_is_done(frame, tmp_path):
    for number, part in enumerate((frame[:25], frame[25:])):
        part.to_parquet(tmp_path / f"part {number}.parquet", index=False)
    here = SimpleNamespace(persist=None, compute=lambda work: Answer(work.compute()))
    found = blocks.from_tables(tmp_path, cluster=here).map_reduce(Rows(), None)
    assert found == [(25, list(frame.columns)), (35, list(frame.columns))]


class Answer:
    """What a client hands back for work that it has done."""

    def __init__(self, value):
        self.result = lambda: value
        self.cancel = lambda: None

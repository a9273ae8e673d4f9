"""Dask collections as block sources: the coefficients of the fit in memory, whatever happens."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest

from toprank import IRPush, PNormPush, ProperRanker, PushRanker, blocks

dask = pytest.importorskip("dask", reason="needs pip install 'toprank[dask]'")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

NAMES = list("abcde")
TWO = dd.from_dict({"a": [1.0, 2.0]}, npartitions=2)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 5))
    y = (X @ [1.0, -0.5, 0.3, 0.0, 0.2] + rng.logistic(size=2000) > 1).astype(int)
    return X, y, rng.integers(0, 3, size=2000).astype(float)


#: Skewed placement: one chunk of most rows, one of a single row, an empty one.
SKEWED = ((1500, 1, 0, 400, 99), (3, 2))


def close(left, right, tolerance=1e-10):
    scale = np.abs(right.coef_).max()
    np.testing.assert_allclose(left.coef_, right.coef_, rtol=0, atol=tolerance * scale)
    np.testing.assert_allclose(left.intercept_, right.intercept_, rtol=1e-6)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "ranker",
    [
        PNormPush(p=4, tol=1e-12),
        PNormPush(p=2, loss="logistic", tol=1e-12),
        IRPush(tol=1e-12),
        PushRanker(price="identity", end="both", tol=1e-12),
        ProperRanker(tol=1e-12),
    ],
)
def test_a_cluster_gives_the_coefficients_of_the_fit_in_memory(client, rows, ranker):
    X, y, weight = rows
    in_memory = type(ranker)(**ranker.get_params()).fit(X, y, weight)
    source = blocks.from_dask(da.from_array(X, chunks=SKEWED), y, da.from_array(weight, chunks=700))
    with source:
        close(ranker.fit_blocks(source), in_memory)


def column_sums():
    """A sweep that sums the columns, in place; defined here, so that it travels by value."""

    class ColumnSums:
        def local(self, block, state):
            return block.X.sum(axis=0)

        def merge(self, left, right):
            left += right
            return left

    return ColumnSums()


def pool_of(scheduler):
    if scheduler == "processes":
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    return ThreadPoolExecutor(2)


@pytest.mark.more
@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_every_scheduler_gives_the_same_bits(scheduler, rows):
    cut = da.from_array(rows[0], chunks=(50, -1))  # 40 chunks: two levels of merges
    with dask.config.set(scheduler="synchronous"):
        first = blocks.from_dask(cut).map_reduce(column_sums(), None)
    with pool_of(scheduler) as pool, dask.config.set(scheduler=scheduler, pool=pool):
        source = blocks.from_dask(cut)
        for _ in range(2):  # a merge overwrites nothing that is kept
            np.testing.assert_array_equal(source.map_reduce(column_sums(), None), first)


@pytest.mark.more
def test_workers_give_the_same_bits_and_say_what_they_do(client, rows, capsys):
    cut = da.from_array(rows[0], chunks=(50, -1))
    with dask.config.set(scheduler="synchronous"):
        here = blocks.from_dask(cut).map_reduce(column_sums(), None)
    source = blocks.from_dask(cut, client=client, verbose=1)
    np.testing.assert_array_equal(source.map_reduce(column_sums(), None), here)
    assert "pass 1 (ColumnSums) over 40 blocks" in capsys.readouterr().err
    source.close()
    with pytest.raises(ValueError, match="closed"):
        source.map_reduce(column_sums(), None)


@pytest.mark.more
def test_blocks_of_one_class_and_unknown_sizes_are_fine(client, rows):
    X, y, _ = rows
    order = np.argsort(y, kind="stable")
    frame = pd.DataFrame(X[order], columns=NAMES).assign(label=y[order])
    cut = dd.from_pandas(frame, npartitions=4)
    cut = cut[cut["a"] > -1]
    kept = frame[frame["a"] > -1]
    ranker = PNormPush(p=4, tol=1e-12)
    with blocks.from_dask(cut[NAMES], cut["label"]) as source:
        fitted = ranker.fit_blocks(source)
        np.testing.assert_array_equal(fitted.feature_names_in_, NAMES)
        close(fitted, PNormPush(p=4, tol=1e-12).fit(kept[NAMES], kept["label"]))
        scores = fitted.score_blocks(source)
        np.testing.assert_allclose(scores.compute(), fitted.decision_function(kept[NAMES]))


@pytest.mark.more
def test_scores_come_back_lazy_and_cut_like_the_rows(client, rows):
    X, y, _ = rows
    cut = da.from_array(X, chunks=(700, -1))
    with blocks.from_dask(cut, y) as source:
        ranker = PNormPush(p=4).fit_blocks(source)
        scores = ranker.score_blocks(source)
        assert isinstance(scores, da.Array)
        assert scores.chunks == (cut.chunks[0],)
        np.testing.assert_allclose(scores.compute(), ranker.decision_function(X), rtol=1e-12)


def kills_a_worker(folder):
    """A sweep that sums the columns; the third block of the marked pass ends its worker."""

    class KillsAWorker:
        def local(self, block, state):
            mark = folder / "killed"
            if state == "kill" and block.index == 2 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return block.X.sum(axis=0)

        def merge(self, left, right):
            left += right
            return left

    return KillsAWorker()


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        (da.ones((6, 2), chunks=(3, 2)), np.ones(5), "y has 5 rows, X has 6"),
        (da.ones((6, 2), chunks=(3, 2)), da.ones((6, 2)), "y has 2 dimensions"),
        (da.ones(6), None, "X has 1 dimension"),
        (
            dd.from_dict({"a": [1.0], "b": ["x"]}, npartitions=1),
            None,
            "these columns hold none: 'b'",
        ),
        (
            dd.from_dict({"a": [1.0, 2.0]}, npartitions=2),
            da.ones(2, chunks=2),
            "sizes are not known",
        ),
        (dd.from_dict({"a": [1.0, 2.0]}, npartitions=2), np.ones(2), "is in memory"),
    ],
)
def test_what_cannot_be_cut_into_blocks_is_refused(X, y, says):
    with pytest.raises(ValueError, match=says):
        blocks.from_dask(X, y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Parquet files whose labels alone take so little that Dask reads several files together."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(size=(400, 12)), columns=[f"x{j}" for j in range(12)])
    table["member"] = rng.random(400) < 0.4
    table["y"] = np.where(table.x0 + table.member + rng.logistic(size=400) > 1, "yes", "no")
    table["count"] = rng.integers(0, 3, size=400)
    place = tmp_path_factory.mktemp("folder")
    for number in range(8):
        table[50 * number : 50 * number + 50].to_parquet(place / f"{number}.parquet")
    return place, table


@pytest.mark.more
@pytest.mark.parametrize("features", [["x0", "x1"], ["x0", "member"], [f"x{j}" for j in range(12)]])
def test_features_and_labels_of_one_folder_belong_together(folder, features):
    place, table = folder
    frame = dd.read_parquet(place)
    wanted = PNormPush(tol=1e-12).fit(table[features], table["y"], table["count"])
    sources = (
        blocks.from_dask(frame[features], frame["y"], frame["count"]),
        blocks.from_dask(frame, target="y", weight="count", columns=features),
    )
    for source in sources:
        with source:
            ranker = PNormPush(tol=1e-12).fit_blocks(source)
            scores = ranker.score_blocks(source)
        close(ranker, wanted)
        assert ranker.feature_names_in_.tolist() == features
        assert len(scores.chunks[0]) == frame.npartitions  # ready for frame.assign(score=scores)
        np.testing.assert_allclose(scores, wanted.decision_function(table[features]), atol=1e-9)


def test_truth_values_and_nullable_numbers_of_a_frame_are_numbers(rows):
    X, y, _ = rows
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0, "c": X[:, 2]}).astype({"c": "Float64"})
    wanted = PNormPush(tol=1e-12).fit(frame.astype(float), y)
    whole = dd.from_pandas(frame.assign(y=y), npartitions=3)
    with blocks.from_dask(whole, target="y") as source:
        close(PNormPush(tol=1e-12).fit_blocks(source), wanted)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"target": "z"}, "has no column 'z'; it has 'a', 'y'"),
        ({"target": "y", "columns": ["a", "y"]}, "cannot be a feature and the target"),
        ({"target": "y", "columns": "a"}, "expected a list of names"),
        ({"y": np.ones(2), "target": "y"}, "Give y or target='y', not both"),
        ({"sample_weight": np.ones(2), "weight": "y"}, "Give sample_weight or weight='y'"),
    ],
)
def test_columns_that_cannot_be_told_apart_are_refused(given, says):
    with pytest.raises(ValueError, match=says):
        blocks.from_dask(dd.from_dict({"a": [1.0, 2.0], "y": [0, 1]}, npartitions=1), **given)


def test_the_name_of_a_column_as_y_was_taken_for_labels_in_memory():
    frame = dd.from_dict({"age": [30, 40, 50, 60], "label": [0, 1, 0, 1]}, npartitions=2)
    with pytest.raises(ValueError, match="give it as target='label'"):
        blocks.from_dask(frame, "label")


def test_only_a_frame_has_a_target():
    with pytest.raises(TypeError, match="name columns of a dask data frame"):
        blocks.from_dask(da.ones((6, 2)), target="y")


def test_arrays_in_memory_are_sent_to_from_arrays():
    with pytest.raises(TypeError, match=r"blocks\.from_arrays"):
        blocks.from_dask(np.ones((3, 2)))


@pytest.mark.more
def test_a_worker_killed_within_an_evaluation_does_not_change_the_answer(client, rows, tmp_path):
    X, y, _ = rows
    with blocks.from_dask(da.from_array(X, chunks=(300, -1)), y) as source:
        sweep = kills_a_worker(tmp_path)
        before = source.map_reduce(sweep, "spare")
        during = source.map_reduce(sweep, "kill")
        assert (tmp_path / "killed").exists()
        np.testing.assert_array_equal(before, during)
        np.testing.assert_array_equal(before, source.map_reduce(sweep, "spare"))


@pytest.mark.more
def test_scattered_rows_that_are_lost_with_their_worker_are_named(client, rows):
    X, y, _ = rows
    (sent,) = client.scatter([X])
    scattered = da.from_delayed(dask.delayed(sent), shape=X.shape, dtype=X.dtype)
    with blocks.from_dask(scattered, y) as source:
        PNormPush().fit_blocks(source)
        (holder,) = client.who_has([sent])[sent.key]
        os.kill(client.run(os.getpid)[holder], signal.SIGKILL)
        with pytest.raises(RuntimeError, match=r"some rows are gone.*Scatter with broadcast=True"):
            PNormPush().fit_blocks(source)


@pytest.mark.more
def test_a_worker_killed_between_evaluations_does_not_change_the_fit(client, rows):
    X, y, _ = rows
    with blocks.from_dask(da.from_array(X, chunks=(300, -1)), y) as source:
        first = PNormPush(p=4).fit_blocks(source)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        second = PNormPush(p=4).fit_blocks(source)
    np.testing.assert_array_equal(first.coef_, second.coef_)


@pytest.mark.more
def test_a_second_fit_does_without_the_passes_that_every_fit_begins_with(client, rows, capsys):
    X, y = rows[0], rows[1]
    source = blocks.from_dask(da.from_array(X, chunks=(400, -1)), y, client=client, verbose=1)
    with source:
        first = PNormPush(p=4).fit_blocks(source)
        made = capsys.readouterr().err.count("toprank: pass")
        again = PNormPush(p=4).fit_blocks(source)
        assert capsys.readouterr().err.count("toprank: pass") == made - 2
        other = PNormPush(p=4, class_weight="balanced").fit_blocks(source)
    assert np.array_equal(first.coef_, again.coef_)
    alone = PNormPush(p=4, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(other.coef_, alone.coef_, atol=1e-5)


@pytest.fixture
def asked(client, monkeypatch):
    """What a client is asked for, in order: tasks to submit, calls of its workers."""
    seen = []

    def note(name):
        method = getattr(client, name)

        def noted(*given, **named):
            seen.append(name)
            return method(*given, **named)

        monkeypatch.setattr(client, name, noted)

    note("submit"), note("run")
    return seen


@pytest.mark.more
def test_short_passes_after_the_first_are_calls_of_the_workers(client, rows, asked, monkeypatch):
    monkeypatch.setattr("toprank.blocks.dask_tasks._SHORT", 60.0)  # however busy the machine is
    with blocks.from_dask(da.from_array(rows[0], chunks=(300, -1)), client=client) as source:
        for _ in range(2):  # the first makes the blocks, the second finds where they are
            by_tasks = source.map_reduce(column_sums(), None)
        assert set(asked) == {"submit"}
        asked.clear()
        by_calls = source.map_reduce(column_sums(), None)
        assert asked == ["run"]
        np.testing.assert_array_equal(by_calls, by_tasks)
        source._places._since -= 31  # a scheduler that sees no tasks may end its cluster
        asked.clear()
        np.testing.assert_array_equal(source.map_reduce(column_sums(), None), by_tasks)
        assert set(asked) == {"submit"}
    monkeypatch.setattr("toprank.blocks.dask_tasks._SHORT", 0.0)
    with blocks.from_dask(da.from_array(rows[0], chunks=(300, -1)), client=client) as source:
        asked.clear()
        for _ in range(3):
            np.testing.assert_array_equal(source.map_reduce(column_sums(), None), by_tasks)
    assert set(asked) == {"submit"}, "what tasks cost does not matter in a long pass"


def fails_where(text):
    class Fails:
        def local(self, block, state):
            if state == text:
                raise ValueError(f"no sums {text}")
            return block.n_rows

        def merge(self, left, right):
            return left + right

    return Fails()


@pytest.mark.more
def test_a_call_that_finds_no_blocks_or_fails_leaves_the_pass_to_tasks(
    client, rows, asked, monkeypatch
):
    monkeypatch.setattr("toprank.blocks.dask_tasks._SHORT", 60.0)
    sweep = fails_where("today")
    with blocks.from_dask(da.from_array(rows[0], chunks=(300, -1)), client=client) as source:
        for _ in range(2):
            assert source.map_reduce(sweep, "ever") == 2000
        places = source._places
        workers, groups = zip(*places._groups.items(), strict=True)
        places._groups = dict(zip(workers, groups[::-1], strict=True))  # the blocks were moved
        asked.clear()
        assert source.map_reduce(sweep, "ever") == 2000
        assert asked == ["run", "submit", "submit"]
        places._groups = {"tcp://127.0.0.1:9": groups[0]}  # the worker is gone
        assert source.map_reduce(sweep, "ever") == 2000
        with pytest.raises(ValueError, match="no sums today"):
            source.map_reduce(sweep, "today")
        asked.clear()
        assert source.map_reduce(sweep, "ever") == 2000
        assert source.map_reduce(sweep, "ever") == 2000
        assert asked == ["submit", "submit", "run"]

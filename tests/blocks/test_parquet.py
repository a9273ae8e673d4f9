"""Parquet files are read as the array they hold; whatever is wrong with one is named."""

import os
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from toprank import IRPush, PNormPush
from toprank.blocks import from_parquet, parquet

N, NAMES = 900, ["a", "b", "c"]
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] - X[:, 1] + RNG.logistic(size=N) > 0.5).astype(np.int64)
WEIGHT = RNG.integers(0, 3, size=N)


def table(rows=slice(None), **columns):
    parts = dict(zip(NAMES, X[rows].T, strict=True), y=Y[rows], w=WEIGHT[rows])
    return pa.table({**parts, **columns})


@pytest.fixture
def folder(tmp_path):
    """Three files of several row groups, the last of them without rows."""
    for place, rows in enumerate((slice(0, 400), slice(400, N), slice(N, N))):
        pq.write_table(table(rows), tmp_path / f"part-{place}.parquet", row_group_size=150)
    return tmp_path


def read_all(source):
    read = list(source.read())
    assert [block.index for block in read] == list(range(len(read)))
    return np.concatenate([block.X for block in read]), np.concatenate([b.y for b in read])


class TestReading:
    @pytest.mark.parametrize("block_rows", [None, 1, 64, 150])
    def test_gives_the_rows_in_order(self, folder, block_rows):
        source = from_parquet(folder, target="y", weight="w", block_rows=block_rows)
        features, labels = read_all(source)
        np.testing.assert_array_equal(features, X)
        np.testing.assert_array_equal(labels, Y)
        assert source.n_rows == N
        assert source.feature_names.tolist() == NAMES

    def test_takes_files_folders_patterns_and_lists(self, folder):
        for path in (
            str(folder),
            folder / "*.parquet",
            [folder / "part-0.parquet", folder / "part-1.parquet"],
            str(folder / "**" / "part-[01].parquet"),
        ):
            features, _ = read_all(from_parquet(path, target="y", weight="w"))
            np.testing.assert_array_equal(features, X)
        one, _ = read_all(from_parquet(folder / "part-1.parquet", target="y", weight="w"))
        np.testing.assert_array_equal(one, X[400:])

    def test_leaves_hidden_and_private_files_out(self, folder):
        for name in (".part-9.parquet", "_metadata.parquet"):
            (folder / name).write_bytes(b"no Parquet")
        assert from_parquet(folder, target="y").n_rows == N

    def test_takes_the_columns_asked_for_in_their_order(self, folder):
        source = from_parquet(folder, target="y", columns=["c", "a"])
        features, _ = read_all(source)
        np.testing.assert_array_equal(features, X[:, [2, 0]])
        assert source.feature_names.tolist() == ["c", "a"]

    @pytest.mark.parametrize(
        ("stored", "expected"),
        [("float32", "float32"), ("float16", "float32"), ("int16", "int16"), ("bool", "bool")],
    )
    def test_keeps_the_type_of_the_numbers(self, tmp_path, stored, expected):
        values = (10 * X).astype(stored)
        columns = dict(zip(NAMES, values.T, strict=True))
        pq.write_table(pa.table({**columns, "y": Y}), tmp_path / "x.parquet")
        features, _ = read_all(from_parquet(tmp_path, target="y"))
        assert features.dtype == expected
        np.testing.assert_array_equal(features, values.astype(expected))

    def test_of_labels_reads_no_features(self, folder):
        source = from_parquet(folder, target="y", weight="w")
        assert all(block.X.shape[1] == 0 for block in source.read(features=False))

    @pytest.mark.parametrize("kind", ["text", "categories", "truth"])
    def test_labels_may_be_anything(self, tmp_path, kind):
        words = np.array(["no", "yes"])[Y]
        labels = {
            "text": pa.array(words),
            "categories": pa.array(words).dictionary_encode(),
            "truth": pa.array(Y == 1),
        }[kind]
        pq.write_table(table(y=labels), tmp_path / "x.parquet", row_group_size=200)
        model = PNormPush().fit_blocks(from_parquet(tmp_path, target="y", columns=NAMES))
        expected = PNormPush().fit(X, Y == 1 if kind == "truth" else words)
        assert model.classes_.tolist() == expected.classes_.tolist()
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-11)

    def test_holds_a_few_blocks_at_a_time(self, folder):
        source = from_parquet(folder, target="y", weight="w", block_rows=50, n_jobs=2)
        alive, most = [], 0
        read = source.read

        def counted(**how):
            nonlocal most
            for block in read(**how):
                alive.append(weakref.ref(block))
                most = max(most, sum(ref() is not None for ref in alive))
                yield block

        source.read = counted
        PNormPush().fit_blocks(source)
        assert len(alive) > 100
        assert most <= 2 + 3  # two at work, one in waiting, one handed over, one being read


class TestFits:
    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("model", [PNormPush(), IRPush()], ids=["push", "IR"])
    @pytest.mark.parametrize("n_jobs", [1, 3])
    def test_are_those_of_the_array(self, folder, model, n_jobs):
        source = from_parquet(folder, target="y", weight="w", block_rows=77, n_jobs=n_jobs)
        expected = type(model)().fit(X, Y, WEIGHT)
        fitted = type(model)().fit_blocks(source)
        np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=1e-11)
        np.testing.assert_allclose(fitted.intercept_, expected.intercept_, rtol=1e-10)
        assert fitted.feature_names_in_.tolist() == NAMES

    def test_of_single_precision_are_those_of_the_single_array(self, tmp_path):
        single = X.astype(np.float32)
        columns = dict(zip(NAMES, single.T, strict=True))
        pq.write_table(pa.table({**columns, "y": Y}), tmp_path / "x.parquet", row_group_size=99)
        fitted = PNormPush().fit_blocks(from_parquet(tmp_path, target="y"))
        np.testing.assert_allclose(fitted.coef_, PNormPush().fit(single, Y).coef_, rtol=1e-11)

    def test_of_no_columns_are_refused(self, folder):
        with pytest.raises(ValueError, match="no feature columns; a ranking needs at least one"):
            PNormPush().fit_blocks(from_parquet(folder, target="y", columns=[]))

    def test_of_files_without_rows_are_refused(self, folder):
        source = from_parquet(folder / "part-2.parquet", target="y")
        with pytest.raises(ValueError, match="no rows"):
            PNormPush().fit_blocks(source)


class TestRefusals:
    @pytest.mark.parametrize(
        ("column", "message"),
        [
            (pa.array(["x"] * N), r"'d' of .* is text \(string\).*encode it as numbers"),
            (pa.array(["x"] * N).dictionary_encode(), r"'d' .* is categorical .*each category"),
            (pa.array([0] * N, pa.timestamp("s")), r"'d' .* is a date or time .*days since"),
            (pa.array([1] * N).cast(pa.decimal128(22, 2)), r"'d' .* is decimal .*cast"),
            (pa.array([[1.0]] * N), r"'d' .* is not a number .*columns="),
        ],
        ids=["text", "categorical", "date", "decimal", "list"],
    )
    def test_a_column_that_is_no_number_is_named_with_advice(self, tmp_path, column, message):
        pq.write_table(table(d=column), tmp_path / "x.parquet")
        with pytest.raises(ValueError, match=message):
            from_parquet(tmp_path, target="y")
        assert from_parquet(tmp_path, target="y", columns=NAMES).n_features == 3

    def test_missing_values_are_named_by_column_and_file(self, tmp_path):
        holes = pa.array([None if i == 700 else 1.0 for i in range(N)])
        pq.write_table(table(d=holes), tmp_path / "x.parquet", row_group_size=500)
        source = from_parquet(tmp_path, target="y")
        with pytest.raises(ValueError, match=r"'d' has 1 missing .*x.parquet, row group 1"):
            PNormPush().fit_blocks(source)

    def test_nan_is_named_by_column_and_file(self, tmp_path):
        values = X[:, 0].copy()
        values[600] = np.nan
        pq.write_table(table(a=values), tmp_path / "x.parquet", row_group_size=500)
        source = from_parquet(tmp_path, target="y")
        with pytest.raises(ValueError, match=r"NaN: column 'a', in .*x.parquet, row group 1"):
            PNormPush().fit_blocks(source)

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (lambda: table().drop_columns(["b"]), r"part-1.* has no column 'b', which .*part-0"),
            (
                lambda: table(c=X[:, 2].astype(np.float32)),
                r"'c' is float in .*part-1.* but double in .*part-0",
            ),
            (lambda: table(d=X[:, 2]), r"part-1.* has the column 'd', which .*part-0.* has not"),
        ],
        ids=["missing", "type", "extra"],
    )
    def test_files_that_disagree_are_named_with_the_column(self, tmp_path, other, message):
        pq.write_table(table(), tmp_path / "part-0.parquet")
        pq.write_table(other(), tmp_path / "part-1.parquet")
        with pytest.raises(ValueError, match=message):
            from_parquet(tmp_path, target="y", weight="w")

    def test_columns_in_another_order_are_no_disagreement(self, tmp_path):
        pq.write_table(table(slice(0, 400)), tmp_path / "part-0.parquet")
        turned = table(slice(400, N)).select(["y", "c", "w", "b", "a"])
        pq.write_table(turned, tmp_path / "part-1.parquet")
        features, _ = read_all(from_parquet(tmp_path, target="y", weight="w"))
        np.testing.assert_array_equal(features, X)

    def test_a_damaged_footer_is_named(self, folder):
        path = folder / "part-1.parquet"
        path.write_bytes(path.read_bytes()[:-6])
        with pytest.raises(ValueError, match=r"part-1.parquet cannot be read as Parquet"):
            from_parquet(folder, target="y")

    def test_a_name_of_a_column_that_is_no_text_is_damage(self, tmp_path):
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"abcde": [1.0, 2.0], "y": [0, 1]}), path, store_schema=False)
        path.write_bytes(path.read_bytes().replace(b"abcde", b"ab\x80de"))
        with pytest.raises(ValueError, match=r"t.parquet cannot be read as Parquet: 'utf-8' codec"):
            from_parquet(path, target="y")

    def test_damaged_rows_are_named(self, folder):
        path = folder / "part-1.parquet"
        content = bytearray(path.read_bytes())
        content[4:1500] = bytes(1496)
        path.write_bytes(bytes(content))
        source = from_parquet(folder, target="y")
        with pytest.raises(ValueError, match=r"part-1.parquet cannot be read as Parquet"):
            PNormPush().fit_blocks(source)

    def test_a_file_that_vanishes_between_passes_is_named(self, folder):
        source = self.interrupted(folder, lambda: (folder / "part-1.parquet").unlink())
        with pytest.raises(FileNotFoundError, match=r"part-1.parquet .* is gone now"):
            PNormPush().fit_blocks(source)

    def test_a_file_that_changes_between_passes_is_named(self, folder):
        def rewrite():
            pq.write_table(table(slice(0, 400)), folder / "part-1.parquet")

        source = self.interrupted(folder, rewrite)
        with pytest.raises(RuntimeError, match=r"part-1.parquet has changed"):
            PNormPush().fit_blocks(source)

    @staticmethod
    def interrupted(folder, deed):
        """A source to which something happens before the third pass."""
        source = from_parquet(folder, target="y", weight="w")
        passes = 0
        read = source.read

        def counted(**how):
            nonlocal passes
            passes += 1
            if passes == 3:
                deed()
            return read(**how)

        source.read = counted
        return source

    def test_columns_that_are_not_there_are_named(self, folder):
        for wrong, message in (
            ({"target": "label"}, r"no column 'label' for target=.*'a', 'b'"),
            ({"target": "y", "weight": "v"}, "no column 'v' for weight="),
            ({"target": "y", "columns": ["a", "z"]}, "no column 'z'"),
            ({"target": "y", "columns": ["a", "y"]}, "'y' cannot be a feature"),
            ({"target": "y", "columns": "a"}, "expected a list of names"),
            ({"target": "y", "block_rows": 0}, "block_rows=0"),
        ):
            with pytest.raises(ValueError, match=message):
                from_parquet(folder, **wrong)

    def test_a_path_without_files_is_named(self, tmp_path):
        for path in (tmp_path, tmp_path / "none.parquet", f"{tmp_path}/*.parquet"):
            with pytest.raises(FileNotFoundError, match="No Parquet file"):
                from_parquet(path, target="y")

    def test_rows_without_labels_can_be_scored_but_not_fitted(self, folder):
        with pytest.raises(ValueError, match="labels"):
            PNormPush().fit_blocks(from_parquet(folder, columns=NAMES))


class TestScores:
    @pytest.fixture
    def model(self):
        return PNormPush().fit(X, Y)

    def test_go_to_one_file_with_the_columns_kept(self, folder, model, tmp_path):
        source = from_parquet(folder, columns=NAMES, block_rows=64, n_jobs=2)
        to = tmp_path / "out" / "scores.parquet"
        to.parent.mkdir()
        assert model.score_blocks(source, to, keep=["y", "a"]) == to
        written = pq.read_table(to)
        assert written.column_names == ["y", "a", "score"]
        np.testing.assert_allclose(written["score"], model.decision_function(X), rtol=1e-12)
        np.testing.assert_array_equal(written["y"], Y)
        assert os.listdir(to.parent) == ["scores.parquet"]

    def test_go_to_a_folder_file_by_file(self, folder, model, tmp_path):
        source = from_parquet(folder, columns=NAMES)
        paths = model.score_blocks(source, tmp_path / "scores")
        assert [path.name for path in paths] == [f"part-{i}.parquet" for i in range(3)]
        scores = np.concatenate([pq.read_table(path)["score"].to_numpy() for path in paths])
        np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-12)

    def test_need_a_place_that_is_not_one_of_the_files(self, folder, model):
        source = from_parquet(folder, columns=NAMES)
        with pytest.raises(ValueError, match="pass to="):
            model.score_blocks(source)
        with pytest.raises(ValueError, match="one of the files that are scored"):
            model.score_blocks(source, folder / "part-0.parquet")
        with pytest.raises(ValueError, match="keep='z'"):
            model.score_blocks(source, folder / "scores.parquet", keep=["z"])

    def test_of_a_file_without_rows_are_a_file_without_rows(self, folder, model, tmp_path):
        pq.write_table(table(slice(0, 0)), folder / "part-3.parquet")
        source = from_parquet(folder, columns=NAMES)
        paths = model.score_blocks(source, tmp_path / "scores", keep=["y"])
        assert [pq.read_metadata(path).num_rows for path in paths][-1] == 0
        assert pq.read_schema(paths[-1]).names == ["y", "score"]

    def test_of_files_of_one_name_need_one_file(self, folder, model, tmp_path):
        (folder / "more").mkdir()
        pq.write_table(table(slice(0, 9)), folder / "more" / "part-0.parquet")
        places = [folder / "part-0.parquet", folder / "more" / "part-0.parquet"]
        source = from_parquet(places, columns=NAMES)
        with pytest.raises(ValueError, match=r"Files of the same name .* Write one file with to="):
            model.score_blocks(source, tmp_path / "scores")
        model.score_blocks(source, tmp_path / "scores.parquet")
        assert pq.read_metadata(tmp_path / "scores.parquet").num_rows == 409

    def test_leave_nothing_behind_when_the_disk_is_full(self, folder, model, tmp_path):
        resource = pytest.importorskip("resource", reason="files are limited on POSIX only")
        source = from_parquet(folder, columns=NAMES)
        place = tmp_path / "out"
        place.mkdir()
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            with pytest.raises(OSError, match=r"could not be written .*Free some space.*scores"):
                model.score_blocks(source, place / "scores.parquet")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert os.listdir(place) == []

    def test_leave_an_older_file_alone_when_the_rows_cannot_be_read(self, folder, model, tmp_path):
        source = from_parquet(folder, columns=NAMES)
        to = tmp_path / "scores.parquet"
        model.score_blocks(source, to)
        before = to.read_bytes()
        (folder / "part-1.parquet").unlink()
        with pytest.raises(FileNotFoundError, match="part-1"):
            model.score_blocks(source, to)
        assert to.read_bytes() == before

    def test_say_so_when_the_folder_does_not_exist(self, folder, model, tmp_path):
        with pytest.raises(OSError, match="could not be written"):
            model.score_blocks(
                from_parquet(folder, columns=NAMES), tmp_path / "none" / "scores.parquet"
            )


def test_a_missing_library_is_asked_for_by_name(folder, monkeypatch):
    def missing(module, extra):
        raise ImportError(f"install it with: pip install 'toprank[{extra}]'")

    monkeypatch.setattr(parquet, "require", missing)
    with pytest.raises(ImportError, match=r"toprank\[frames\]"):
        from_parquet(folder, target="y")

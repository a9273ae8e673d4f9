"""The loaders: what ships, what is fetched, and what bad requests get."""

import subprocess
import sys
import time
from gzip import BadGzipFile

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer

from toprank.datasets import (
    _bundled,
    _openml,
    fetch,
    load_ionosphere,
    load_magic,
    load_spambase,
    load_wdbc,
)
from toprank.datasets._openml import SOURCES

# loader, rows, features, positives, name of class 1
LOADERS = [
    (load_magic, 19020, 10, 12332, "gamma"),
    (load_ionosphere, 351, 34, 225, "good"),
    (load_spambase, 4601, 57, 1813, "spam"),
    (load_wdbc, 569, 30, 212, "malignant"),
]
each_loader = pytest.mark.parametrize(
    "loader", [row[0] for row in LOADERS], ids=lambda loader: loader.__name__
)


@pytest.mark.parametrize(
    ("loader", "n_rows", "n_features", "n_positive", "positive"),
    LOADERS,
    ids=lambda value: getattr(value, "__name__", None),
)
def test_loader_gives_the_published_counts(loader, n_rows, n_features, n_positive, positive):
    bunch = loader()
    assert bunch.data.shape == (n_rows, n_features)
    assert bunch.target.shape == (n_rows,)
    assert np.bincount(bunch.target).tolist() == [n_rows - n_positive, n_positive]
    assert bunch.target_names[1] == positive
    assert len(set(bunch.feature_names)) == n_features


@each_loader
def test_loader_gives_finite_contiguous_float64(loader):
    X, y = loader(return_X_y=True)
    assert X.dtype == np.float64 and X.flags.c_contiguous
    assert np.isfinite(X).all()
    assert y.dtype == np.int64


@each_loader
def test_bunch_has_the_fields_of_scikit_learn(loader):
    bunch = loader()
    fields = {"data", "target", "feature_names", "target_names", "DESCR", "frame", "filename"}
    assert fields <= set(bunch)
    assert bunch.frame is None
    assert bunch.filename.split(".")[1] == "csv"


@each_loader
def test_as_frame_holds_the_same_numbers_under_their_names(loader):
    arrays, frames = loader(), loader(as_frame=True)
    assert list(frames.data.columns) == arrays.feature_names
    assert list(frames.frame.columns) == [*arrays.feature_names, "target"]
    np.testing.assert_array_equal(frames.data.to_numpy(), arrays.data)
    np.testing.assert_array_equal(frames.target.to_numpy(), arrays.target)
    X, y = loader(return_X_y=True, as_frame=True)
    assert X.equals(frames.data) and y.equals(frames.target)


@each_loader
def test_description_and_docstring_name_source_and_licence(loader):
    doi = loader().DESCR.split("https://doi.org/")[1].split()[0]
    for text in (loader().DESCR, loader.__doc__):
        assert doi in text
        assert "CC BY 4.0" in " ".join(text.split())
        assert "UCI Machine Learning Repository" in " ".join(text.split())


def test_wdbc_is_scikit_learns_with_labels_turned_round():
    ours, theirs = load_wdbc(), load_breast_cancer()
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(ours.target, theirs.target == 0)


def test_magic_starts_with_the_first_row_of_the_source():
    X, y = load_magic(return_X_y=True)
    first = [28.7967, 16.0021, 2.6449, 0.3918, 0.1982, 27.7004, 22.011, -8.2027, 40.092, 81.8828]
    assert X[0].tolist() == first
    assert y[0] == 1


def test_reading_asks_for_no_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert load_magic().data.shape == (19020, 10)


@pytest.mark.more
def test_reading_needs_no_pandas():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from toprank.datasets import load_magic; load_magic()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_as_frame_without_pandas_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"toprank\[frames\]"):
        load_ionosphere(as_frame=True)


def pima(openml, n_negative=500, n_positive=268):
    rows = [(i, i / 7, "tested_negative") for i in range(n_negative)]
    rows += [(i, i / 7, "tested_positive") for i in range(n_positive)]
    columns = {"preg": "numeric", "mass": "numeric"}
    columns["class"] = ["tested_negative", "tested_positive"]
    openml.add(37, columns, rows, target="class")


def small(openml, labels=("a", "b", "c")):
    columns = {"x": "numeric", "grade": ["10", "2"], "class": sorted(set(labels) - {"?"})}
    rows = [(i + 0.5, "2" if i % 2 else "10", label) for i, label in enumerate(labels)]
    openml.add(1, columns, rows, target="class")


def test_fetch_by_name_gives_numbers_and_labels(openml, tmp_path):
    pima(openml)
    bunch = fetch("pima", data_home=tmp_path)
    assert bunch.data.shape == (768, 2) and bunch.data.dtype == np.float64
    assert bunch.target.tolist() == [0] * 500 + [1] * 268
    assert bunch.feature_names == ["preg", "mass"]
    assert bunch.target_names.tolist() == ["no diabetes", "diabetes"]
    assert "stand-in" in bunch.DESCR and bunch.url.endswith("37")


def test_fetch_reads_the_cache_when_the_network_is_gone(openml, tmp_path):
    pima(openml)
    online = fetch("pima", data_home=tmp_path)
    openml.online, openml.requests = False, 0
    cached = fetch("pima", data_home=tmp_path)
    assert openml.requests == 0
    np.testing.assert_array_equal(cached.data, online.data)


def test_fetch_offline_says_what_failed_and_what_to_do(openml, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    openml.online = False
    with (
        pytest.warns(UserWarning, match="Retrying"),
        pytest.raises(ConnectionError, match=r"data set 310.*line is cut.*data_home.*load_magic"),
    ):
        fetch("mammography", data_home=tmp_path)


def test_housing_has_the_river_as_label_and_the_price_as_feature(openml, tmp_path):
    columns = {"CRIM": "numeric", "CHAS": ["0", "1"], "RAD": ["1", "2", "24"], "MEDV": "numeric"}
    rows = [(i, int(i < 35), ("24", "1", "2")[i % 3], 20.0 + i) for i in range(506)]
    openml.add(531, columns, rows, target="MEDV")
    bunch = fetch("housing", data_home=tmp_path)
    assert bunch.feature_names == ["CRIM", "RAD", "MEDV"]
    assert bunch.target.sum() == 35
    # Categories count by what they say, not by their place in the list.
    assert bunch.data[:3, 1].tolist() == [24.0, 1.0, 2.0]


def test_fetch_refuses_a_named_set_that_is_not_the_one_expected(openml, tmp_path):
    pima(openml, n_positive=267)
    with pytest.raises(ValueError, match=r"500 negatives and 268 positives wanted, 500 and 267"):
        fetch("pima", data_home=tmp_path)


def test_fetch_by_number_takes_every_other_value_as_negative(openml, tmp_path):
    small(openml)
    bunch = fetch(data_id=1, positive="b", data_home=tmp_path)
    assert bunch.target.tolist() == [0, 1, 0]
    assert bunch.data.tolist() == [[0.5, 10.0], [1.5, 2.0], [2.5, 10.0]]
    assert bunch.target_names.tolist() == ["not b", "b"]


def test_fetch_by_number_keeps_only_the_two_values_asked_for(openml, tmp_path):
    small(openml)
    X, y = fetch(data_id=1, positive="c", negative="b", data_home=tmp_path, return_X_y=True)
    assert y.tolist() == [0, 1]
    assert X[:, 0].tolist() == [1.5, 2.5]


def test_fetch_refuses_missing_labels(openml, tmp_path):
    small(openml, labels=("a", "?", "b"))
    with pytest.raises(ValueError, match="missing values"):
        fetch(data_id=1, positive="b", data_home=tmp_path)


def test_fetch_marks_missing_features_as_nan(openml, tmp_path):
    columns = {"x": "numeric", "grade": ["1", "2"], "class": ["a", "b"]}
    openml.add(1, columns, [("?", "2", "a"), (1.0, "?", "b")], target="class")
    X, _ = fetch(data_id=1, positive="b", data_home=tmp_path, return_X_y=True)
    np.testing.assert_array_equal(X, [[np.nan, 2.0], [1.0, np.nan]])


def test_fetch_reads_quoted_numbers_as_numbers(openml, tmp_path):
    columns = {"x": ["'1'", "'12'"], "class": ["'0'", "'1'"]}
    openml.add(1, columns, [("'12'", "'0'"), ("'1'", "'1'")], target="class")
    X, y = fetch(data_id=1, positive="1", data_home=tmp_path, return_X_y=True)
    assert X.tolist() == [[12.0], [1.0]]
    assert y.tolist() == [0, 1]


def test_fetch_takes_a_numeric_column_as_target(openml, tmp_path):
    small(openml)
    bunch = fetch(data_id=1, target="x", positive=1.5, data_home=tmp_path, as_frame=True)
    assert bunch.target.tolist() == [0, 1, 0]
    assert bunch.feature_names == ["grade", "class"]


def test_fetch_refuses_words_as_numbers_and_offers_frames(openml, tmp_path):
    openml.add(
        1,
        {"x": "numeric", "colour": ["red", "blue"], "class": ["a", "b"]},
        [(1, "'red'", "a"), (2, "blue", "b")],
        target="class",
    )
    with pytest.raises(ValueError, match=r"columns colour hold words.*as_frame=True"):
        fetch(data_id=1, positive="b", data_home=tmp_path)
    frame = fetch(data_id=1, positive="b", data_home=tmp_path, as_frame=True).frame
    assert frame["colour"].tolist() == ["red", "blue"]
    assert frame["target"].tolist() == [0, 1]


def test_fetch_keeps_sparse_data_sparse(openml, tmp_path):
    columns = {"u": "numeric", "v": "numeric", "class": ["a", "b"]}
    rows = ["{0 3.0,2 b}", "{1 4.0}", "{0 5.0,1 6.0,2 b}"]
    openml.add(1, columns, rows, target="class", sparse=True)
    X, y = fetch(data_id=1, positive="b", data_home=tmp_path, return_X_y=True)
    assert sparse.issparse(X)
    assert X.toarray().tolist() == [[3.0, 0.0], [0.0, 4.0], [5.0, 6.0]]
    assert y.tolist() == [1, 0, 1]


def test_fetch_shows_the_values_when_one_does_not_occur(openml, tmp_path):
    small(openml)
    with pytest.raises(ValueError, match=r"'z'.*\['a', 'b', 'c'\]"):
        fetch(data_id=1, positive="z", data_home=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "titanic"}, "known: covertype, creditcard, housing, mammography, pima"),
        ({}, "a name or data_id"),
        ({"name": "pima", "data_id": 37}, "a name or data_id"),
        ({"data_id": 37}, "needs positive="),
        ({"name": "pima", "positive": "1"}, "pass data_id=37"),
    ],
)
def test_fetch_refuses_unclear_requests(arguments, message):
    with pytest.raises(ValueError, match=message):
        fetch(**arguments)


@pytest.mark.parametrize("name", ["housing", "pima", "mammography", "covertype"])
def test_named_sources_agree_with_local_copies(name, shared):
    folder = shared / "data"
    file = folder / {"covertype": "cover.csv.gz"}.get(name, f"{name}.csv.gz")
    y = np.loadtxt(file, delimiter=",", skiprows=1)[:, -1].astype(int)
    assert tuple(np.bincount(y).tolist()) == SOURCES[name].counts


@pytest.mark.parametrize("damage", [BadGzipFile("Not a gzipped file"), ValueError("md5 checksum")])
def test_fetch_names_files_that_are_damaged_and_the_folder_to_remove(
    openml, tmp_path, monkeypatch, damage
):
    def fail(**given):
        raise damage

    monkeypatch.setattr(_openml, "fetch_openml", fail)
    with pytest.raises(
        ValueError, match=r"files of OpenML data set 310 are damaged \(.*\)\. Remove"
    ):
        fetch("mammography", data_home=tmp_path)


def test_fetch_by_number_compares_numbers_with_numbers_only(openml, tmp_path):
    small(openml)
    with pytest.raises(ValueError, match=r"'many'.*0\.5"):
        fetch(data_id=1, target="x", positive="many", data_home=tmp_path, as_frame=True)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("data_set_description"), "are not what OpenML sends .KeyError.*Remove"),
        (KeyError("Could not find target_column='x'"), "has no column .*pass target="),
        (PermissionError(13, "Permission denied", "/cache/x"), "the cache of OpenML data set 310"),
    ],
)
def test_fetch_tells_strange_files_from_strange_requests(tmp_path, monkeypatch, error, said):
    def fail(**given):
        raise error

    monkeypatch.setattr(_openml, "fetch_openml", fail)
    with pytest.raises((ValueError, OSError), match=said):
        fetch("mammography", data_home=tmp_path)


def test_a_set_without_a_single_target_is_refused():
    with pytest.raises(ValueError, match="has no single target; pass target="):
        _openml._binary_labels(np.zeros((3, 2)), SOURCES["mammography"])


def test_a_damaged_file_of_the_package_is_named(monkeypatch):
    monkeypatch.setattr(_bundled.gzip, "decompress", lambda data: b"no lines at all")
    with pytest.raises(OSError, match=r"magic.*is damaged .*install toprank again"):
        load_magic()

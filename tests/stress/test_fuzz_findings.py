"""A file cannot make its reader crash, hang, write or run anything: it is read, or refused in a
sentence. Each test is named after what a fuzzer (see `fuzz`) found."""

import copy
import io
import json
import os
import time
from random import Random

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra cli")
pytest.importorskip("pyarrow", reason="tables are read with the extra frames")
pytest.importorskip("skops", reason="models are saved with the extra models")

import pyarrow
import pyarrow.parquet
from fuzz import guard, model_loader, readers
from fuzz.mutation import members_of, sealed, zipped

from toprank.cli.choose_p import read_rows
from toprank.cli.io.source import Reading
from toprank.cli.io.tables import open_table
from toprank.cli.terminal import Failure
from toprank.models import ModelError, ModelWarning, Schema, columns
from toprank.models.expected import LabelShares
from toprank.models.loader import from_bytes
from toprank.models.storage import to_bytes
from toprank.models.tree_files import check_lightgbm
from toprank.models.xgboost_files import check_xgboost


def with_member(kind, name, change):
    """The file of a model with one member changed, and a checksum that is right."""
    members = members_of(model_loader.seed(kind))
    return sealed({**members, name: change(members[name])})


def with_json(kind, name, change):
    """The same for a member of JSON: `change` acts on the tree."""

    def act(content):
        tree = json.loads(content)
        change(tree)
        return json.dumps(tree).encode()

    return with_member(kind, name, act)


def with_array(kind, old, new):
    """The same for an array of the payload: each that equals `old` becomes `new`."""

    def act(payload):
        inner = members_of(payload)
        for name, content in inner.items():
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(content))
                if array.shape == np.shape(old) and np.array_equal(array, old):
                    buffer = io.BytesIO()
                    np.save(buffer, np.asarray(new))
                    inner[name] = buffer.getvalue()
        return zipped(inner)

    return with_member(kind, "payload.skops", act)


# Trees ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text():
    """Trees of LightGBM, with splits by categories."""
    pytest.importorskip("lightgbm", reason="trees need LightGBM")
    return members_of(model_loader.seed("trees"))["trees-0"].decode()


def test_the_trees_of_these_tests_are_read_as_they_are(text):
    check_lightgbm(text)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tree_sizes=", "tree_sizes=9"),
        ("Tree=1\n", "Tree=2\n"),
        ("left_child=", "left_child=99999 "),
        ("left_child=4", "left_child=0"),
        ("left_child=4", "left_child=400"),
        ("right_child=1", "right_child=-400"),
        ("split_feature=0", "split_feature=7"),
        ("split_feature=0", "split_feature=-1"),
        ("num_leaves=7", "num_leaves=2147483647"),
        ("num_leaves=7", "num_leaves=-1"),
        ("num_cat=1", "num_cat=9"),
        ("cat_boundaries=0 1", "cat_boundaries=0 9"),
        ("threshold=44.0", "threshold=nan44.0"),
        ("leaf_value=-0.0", "leaf_value=inf -0.0"),
        ("decision_type=8", "decision_type=255"),
        ("is_linear=0", "is_linear=1"),
        ("max_feature_idx=2", "max_feature_idx=200000"),
        ("num_class=1", "num_class=1000000000"),
        ("end of trees", "end"),
        ("tree\n", "tree\naverage_output\n"),
        ("split_gain=", "split_gain;"),
        ("num_leaves=7", "num_leaves=0_7"),
        ("tree_sizes=", "tree_sizes=\u0668"),
        ("threshold=44.0", "threshold=\u00a044.0"),
        ("num_class=1\n", "num_class=1\nstrange=1\n"),
    ],
)
def test_a_number_out_of_place_in_the_trees_ended_the_process(text, old, new):
    assert old in text
    damaged = text.replace(old, new, 1)
    with pytest.raises(ModelError, match="trees in the file are damaged"):
        check_lightgbm(damaged)
    with pytest.raises(ModelError, match="trees in the file are damaged"):
        from_bytes(with_member("trees", "trees-0", lambda _: damaged.encode()))


def test_a_file_with_trees_that_its_ranker_does_not_know_is_refused():
    pytest.importorskip("lightgbm", reason="trees need LightGBM")
    members = members_of(model_loader.seed("trees"))
    with pytest.raises(ModelError, match="trees that its ranker does not know"):
        from_bytes(sealed({**members, "trees-1": members["trees-0"]}))


def test_trees_that_split_missing_values_from_all_others_could_not_be_saved():
    pytest.importorskip("lightgbm", reason="trees need LightGBM")
    from toprank import PushTrees

    x = np.where(np.arange(200) % 2 == 0, np.nan, np.arange(-100.0, 100.0))
    y = np.isnan(x) ^ (np.arange(200) % 11 == 0)
    trees = PushTrees(n_estimators=1, subsample=1.0, colsample=1.0).fit(x[:, None], y)
    written = trees.booster_.model_to_string()
    assert "threshold=inf" in written
    check_lightgbm(written)


@pytest.fixture(scope="module")
def booster():
    pytest.importorskip("xgboost", reason="these trees need XGBoost")
    from toprank import PushTrees

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), rng.integers(0, 20, 60)])
    y = X[:, 0] + (X[:, 1] % 3 == 0) > 0.5
    settings = {"n_estimators": 2, "subsample": 1.0, "colsample": 1.0}
    trees = PushTrees(backend="xgboost", categorical_features=[1], **settings).fit(X, y)
    return bytes(trees.booster_.save_raw("ubj"))


def field(data, name, place, value):
    """The bytes with one number of an array of the first tree changed."""
    start = data.index(name.encode() + b"[$") + len(name) + 2
    kind = {b"l": ">i4", b"L": ">i8", b"d": ">f4", b"U": "u1"}[data[start : start + 1]]
    start += 11 + place * np.dtype(kind).itemsize
    changed = np.array([value]).astype(kind).tobytes()
    return data[:start] + changed + data[start + len(changed) :]


def test_the_booster_of_these_tests_is_read_as_it_is(booster):
    check_xgboost(booster)
    assert field(booster, "left_children", 0, 1) == booster


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("left_children", 0),
        ("left_children", 10**6),
        ("right_children", -1),
        ("right_children", 1),
        ("parents", 5),
        ("split_indices", 2),
        ("split_indices", -1),
        ("split_conditions", np.nan),
        ("base_weights", np.inf),
        ("categories", -1),
        ("categories", 2**30),
        ("categories_sizes", 10**6),
        ("categories_nodes", 0),
    ],
)
def test_a_child_that_does_not_exist_was_read_from_memory(booster, name, value):
    with pytest.raises(ModelError, match="trees in the file are damaged"):
        check_xgboost(field(booster, name, 0, value))


def test_bytes_that_are_cut_or_changed_are_no_trees_or_trees_of_other_numbers(
    booster, record_property
):
    rng, refused = Random(0), 0
    for _ in range(300):
        place = rng.randrange(len(booster))
        cut = booster[:place]
        changed = booster[:place] + bytes([rng.randrange(256)]) + booster[place + 1 :]
        for data in (cut, changed):
            try:
                check_xgboost(data)
            except ModelError:
                refused += 1
    record_property("cases", 600)
    assert refused >= 300  # all that were cut


# What else a file of a model holds ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "x" * 10_000, "../../x", "\0"])
def test_a_library_of_no_name_was_looked_for_after_the_model_was_read(name):
    data = with_json("pnorm", "toprank.json", lambda tree: tree["versions"].update({name: "1"}))
    with pytest.warns(ModelWarning, match="here none"):
        from_bytes(data)


def test_thousands_of_libraries_were_looked_for_one_by_one():
    many = {f"library-{j}": "1" for j in range(20_000)}
    data = with_json("pnorm", "toprank.json", lambda tree: tree["versions"].update(many))
    started = time.perf_counter()
    with pytest.warns(ModelWarning, match=r"\.\.\."):
        from_bytes(data)
    assert time.perf_counter() - started < 10


def test_an_index_beyond_the_columns_failed_only_when_the_model_was_used():
    imputed = model_loader.model("pnorm").preparation.imputer.indicator_.features_
    with pytest.raises(ModelError):
        from_bytes(with_array("pnorm", imputed, np.full_like(imputed, 10**6)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_model_whose_scores_are_no_numbers_was_loaded(value):
    coef = model_loader.model("pnorm").ranker.coef_
    with pytest.raises(ModelError, match="not numbers"):
        from_bytes(with_array("pnorm", coef, np.full_like(coef, value)))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("reference", "scores", "missing"), -3),
        (("reference", "scores", "missing"), 7),
        (("reference", "scores", "quantiles"), list(range(16, 0, -1))),
        (("reference", "scores", "at_most"), [0.5] * 15 + [1e300]),
        (("reference", "rows"), 10**400),
        (("reference", "shares"), [1.0, 0.0] * 8),
        (("importances", "age"), 10**400),
        (("metrics", "rows"), 2**70),
    ],
)
def test_a_drift_that_is_no_number_came_of_shares_that_are_none(place, value):
    def change(card):
        for name in place[:-1]:
            card = card[name]
        card[place[-1]] = value

    with pytest.raises(ModelError, match="card in the file cannot be used"):
        from_bytes(with_json("pnorm", "card.json", change))


def test_counts_of_labels_that_are_no_floats_ended_a_watch():
    scores = {"quantiles": [0.0, 1.0], "labels": {"rows": [10**400], "positives": [1]}}
    assert LabelShares.from_card(scores) is None


@pytest.mark.parametrize("kind", ["pnorm", "trees"])
def test_a_file_could_ask_for_a_million_threads(kind):
    if kind == "trees":
        pytest.importorskip("lightgbm", reason="trees need LightGBM")
    greedy = copy.deepcopy(model_loader.model(kind))
    greedy.ranker.n_jobs = 10**6
    loaded = from_bytes(to_bytes(greedy))
    assert 1 <= loaded.ranker.n_jobs <= os.cpu_count()
    rows = model_loader.table().head()
    np.testing.assert_array_equal(loaded.score(rows), model_loader.model(kind).score(rows))


def test_texts_could_be_searched_by_a_pattern_that_never_ends():
    hostile = copy.deepcopy(model_loader.model("full"))
    for encoder in hostile.preparation.text_encoders:
        encoder.analyzer, encoder.token_pattern = "word", "(a+)+$"
    with pytest.raises(ModelError, match="patterns of its own"):
        from_bytes(to_bytes(hostile))


# Tables -----------------------------------------------------------------------------------------


def test_a_time_of_day_in_nanoseconds_was_refused_without_the_name_of_its_column(tmp_path):
    table = pyarrow.table({"y": [0, 1], "at": pyarrow.array([1, 2], pyarrow.time64("ns"))})
    assert "time" in Schema.learn(table).left_out["at"]
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ModelError, match=r"no column to rank by. 'at'"):
        read_rows(tmp_path / "t.parquet", "y")


@pytest.mark.parametrize("words", [["7", "8"], ["2024-03-01", "the first of May"], ["May", "June"]])
def test_words_in_a_column_of_dates_were_guessed_at(words):
    with pytest.raises(columns.Unreadable, match="expected dates"):
        columns.as_dates(np.array(words, dtype=object))


def test_dates_as_iso_8601_has_them_are_read_in_any_mixture():
    words = np.array(["2024-03-01", None, "2024-03-01T12:00:00+02:00"], dtype=object)
    wanted = np.array(["2024-03-01", "NaT", "2024-03-01T10:00"], dtype="datetime64[us]")
    np.testing.assert_array_equal(columns.as_dates(words), wanted)


def test_a_target_of_lists_was_called_ambiguous(tmp_path):
    table = pyarrow.table({"y": [[1], [2, 3]], "x": [1.0, 2.0]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ModelError, match="'y' cannot be the target"):
        read_rows(tmp_path / "t.parquet", "y")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-7", "idna", "punycode"])
def test_a_text_without_the_mark_of_its_encoding_ended_in_an_error_of_the_decoder(
    tmp_path, encoding
):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,y\n+/w==,1\n\xff\xfe..,0\n")
    with (
        pytest.raises(Failure, match=r"is not|could not be read|binary"),
        open_table(path, Reading(encoding=encoding), quiet=True) as source,
    ):
        source.read()


@pytest.mark.parametrize("ending", ["feather", "arrow"])
def test_lengths_in_a_damaged_arrow_file_were_believed(tmp_path, ending):
    words = pyarrow.table({"word": ["quick", "slow"], "y": [0, 1]})
    data = (readers._feather if ending == "feather" else readers._stream)(words)
    offsets = np.array([0, 5, 9], dtype=np.int32).tobytes()
    assert data.count(offsets) == 1
    damaged = data.replace(offsets, np.array([0, 5, 2**30], dtype=np.int32).tobytes())
    path = tmp_path / f"t.{ending}"
    path.write_bytes(damaged)
    for act in (lambda source: source.read(), lambda source: list(source.chunks(["word"], {}))):
        with (
            pytest.raises(Failure, match="could not be read"),
            open_table(path, quiet=True) as source,
        ):
            act(source)


def test_words_of_a_parquet_file_that_are_no_utf_8_came_out_as_an_error_of_arrow(tmp_path):
    data = readers._parquet(pyarrow.table({"word": ["quick", "slow"], "y": [0, 1]}))
    path = tmp_path / "t.parquet"
    path.write_bytes(data.replace(b"quick", b"\xff\xfe\xfd\xfc\xfb"))
    with (
        pytest.raises(Failure, match="could not be read"),
        open_table(path, quiet=True) as source,
    ):
        source.read()


@pytest.mark.parametrize("values", [[-1e300, 2.0], [-np.inf, 1e200], ["3", "-1e300"]])
def test_a_number_that_match_refuses_was_learned(values):
    table = pyarrow.table({"x": values, "y": [0, 1]})
    with pytest.raises(ModelError, match=r"column 'x': expected numbers of at most 1e\+100"):
        Schema.learn(table)


# The attacks themselves, in small -----------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda folder: (folder / "x").write_text("x"),
        lambda folder: exec("1 + 1"),
        lambda folder: __import__("subprocess").run(["true"]),
        lambda folder: __import__("pickle").loads(b"cbuiltins\nlist\n."),
    ],
    ids=["write", "exec", "run", "unpickle"],
)
def test_the_guard_of_the_fuzzers_notices_harm(act, tmp_path):
    with pytest.raises(guard.Harm), guard.harmless():
        act(tmp_path)


def test_a_table_changed_a_little_is_read_or_refused(record_property, capsys):
    rng, seeds = Random(1), list(readers.seeds().values())
    for case in range(64):
        readers.attack(readers.mutate(seeds[case % len(seeds)], 100_000, rng.randrange(2**32)))
    record_property("cases", 64)


@pytest.mark.parametrize("kind", ["pnorm", "trees"])
def test_a_model_changed_a_little_is_read_or_refused(kind, record_property):
    if kind == "trees":
        pytest.importorskip("lightgbm", reason="trees need LightGBM")
    rng = Random(2)
    for _ in range(25):
        model_loader.attack(
            model_loader.mutate(model_loader.seed(kind), 10**6, rng.randrange(2**32))
        )
    record_property("cases", 25)


@pytest.mark.slow
@pytest.mark.parametrize("target", [readers, model_loader], ids=["tables", "models"])
def test_thousands_of_files_changed_a_little_are_read_or_refused(target, record_property, capsys):
    rng, seeds = Random(3), list(target.seeds().values())
    for case in range(2000):
        data = seeds[case % len(seeds)]
        for _ in range(rng.choice((1, 2, 4))):
            data = target.mutate(data, 10**6, rng.randrange(2**32))
        target.attack(data)
    record_property("cases", 2000)

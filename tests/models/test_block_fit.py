"""A table in blocks gives the model of the table in memory: the same bits, however it is cut."""

import numpy as np
import pandas as pd
import pytest

from toprank import blocks
from toprank.models import ModelError, TableRanker, fit_table, fit_table_blocks, load, words
from toprank.models.block_rows import Sampling
from toprank.models.block_scores import score_blocks
from toprank.models.words import Words


@pytest.fixture(scope="module")
def mixed():
    """Numbers with a long tail, nulls everywhere, dates, categories, text, labels in words."""
    rng = np.random.default_rng(7)
    n = 600
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "amount": np.where(np.arange(n) == 17, 1e9, np.exp(rng.normal(size=n))),
            "visits": rng.integers(0, 9, n),
            "member": rng.choice(np.array([True, False, None], dtype=object), n),
            "since": pd.Timestamp("2021-03-01")
            + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "day": [f"{d:02d}.03.2024" for d in rng.integers(1, 29, n)],
            "city": rng.choice(np.array(["Rome", "Oslo", "Bern", None], dtype=object), n),
            "told": [f"call {a} about {b}" for a, b in rng.integers(0, 30, (n, 2))],
            "empty": [None] * n,
            "times": rng.integers(0, 3, n).astype(float),
        }
    )
    frame.loc[3, "since"] = pd.NaT
    frame.loc[17, "times"] = 2.0
    good = x + (frame.city == "Oslo") + rng.normal(size=n) > 0.8
    frame["bought"] = np.where(good, "yes", "no")
    return frame


def in_pieces(frame, rows):
    return blocks.from_tables(lambda: (frame[i : i + rows] for i in range(0, len(frame), rows)))


def same_model(one, other):
    """Schema, preparation, coefficients, link and centre, bit by bit."""
    assert one.schema == other.schema
    assert one.target == other.target
    assert one.preparation.names.tolist() == other.preparation.names.tolist()
    for part in ("mean_", "scale_", "var_"):
        theirs = getattr(other.preparation.scaler, part)
        assert np.array_equal(getattr(one.preparation.scaler, part), theirs)
    assert np.array_equal(one.ranker.coef_, other.ranker.coef_)
    assert np.array_equal(one.ranker.intercept_, other.ranker.intercept_)


@pytest.mark.parametrize("rows", [97, pytest.param(600, marks=pytest.mark.more)])
def test_blocks_of_any_size_give_the_bits_of_memory(mixed, rows):
    given = {"p": 4, "model": "pnorm", "weight": "times"}
    here = fit_table(mixed, "bought", **given)
    there = fit_table_blocks(in_pieces(mixed, rows), "bought", **given)
    same_model(here, there)
    assert {c.kind for c in there.schema.columns} == {
        *("number", "boolean", "date", "category", "text")
    }
    assert there.schema.columns[1].clip is not None  # the amount of 1e9
    assert there.schema.left_out == {"empty": "every value is missing"}
    assert np.array_equal(here.centre, there.centre)
    assert np.array_equal(here.score(mixed), there.score(mixed))
    own = {"made", "seconds"}
    cards = [{k: v for k, v in one.card.items() if k not in own} for one in (here, there)]
    assert cards[0] == cards[1]


@pytest.mark.more
def test_parquet_folders_give_the_bits_of_memory(mixed, tmp_path):
    for part in range(3):
        file = tmp_path / f"part={part}" / "rows.parquet"
        file.parent.mkdir()
        mixed[200 * part : 200 * part + 200].to_parquet(file, row_group_size=70)
    source = blocks.from_tables(tmp_path)
    there = fit_table_blocks(source, "bought", p=2, model="pnorm", drop=("told",))
    assert source.names[-1] == "part"
    here = fit_table(
        mixed.assign(part=np.repeat([0, 1, 2], 200)), "bought", p=2, model="pnorm", drop=("told",)
    )
    assert np.array_equal(here.ranker.coef_, there.ranker.coef_)
    there.save(tmp_path / "m.toprank")
    later = mixed.assign(part=1)
    assert np.array_equal(load(tmp_path / "m.toprank").score(later), there.score(later))


def _place_of_words(kind, mixed, folder):
    """The table somewhere else: what `blocks.from_tables` takes."""
    if kind == "store":
        store = pytest.importorskip("fsspec").filesystem("memory")
        with store.open("/words/rows.parquet", "wb") as file:
            mixed.to_parquet(file, row_group_size=70)
        return "memory://words"
    if kind == "dataset":
        mixed.to_parquet(folder / "rows.parquet", row_group_size=70)
        return pytest.importorskip("pyarrow.dataset").dataset(folder)
    if kind == "polars":
        frame = pytest.importorskip("polars").from_pandas(mixed)
        return lambda: (frame[i : i + 130] for i in range(0, len(frame), 130))
    arrow = pytest.importorskip("pyarrow")
    if kind == "ipc":
        table = arrow.Table.from_pandas(mixed, preserve_index=False)
        with arrow.ipc.new_file(folder / "rows.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=130)

        def batches():
            with arrow.ipc.open_file(folder / "rows.arrow") as file:
                for number in range(file.num_record_batches):
                    yield file.get_batch(number)

        return batches
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(folder / "rows.duckdb") as database:
        database.register("given", mixed)
        database.execute("create table leads as from given")

    def fetch():
        with duckdb.connect(folder / "rows.duckdb", read_only=True) as database:
            found = database.sql("from leads")
            read = "to_arrow_reader" if hasattr(found, "to_arrow_reader") else "fetch_arrow_reader"
            yield from getattr(found, read)(130)

    return fetch


@pytest.mark.more
@pytest.mark.parametrize("kind", ["store", "dataset", "polars", "ipc", "duckdb"])
def test_words_in_other_places_give_the_bits_of_memory(mixed, tmp_path, kind):
    given = {"p": 2, "model": "pnorm", "drop": ("told",)}
    source = blocks.from_tables(_place_of_words(kind, mixed, tmp_path))
    there = fit_table_blocks(source, "bought", **given)
    here = fit_table(mixed, "bought", **given)
    assert [c.kind for c in there.schema.columns] == [c.kind for c in here.schema.columns]
    assert np.array_equal(here.ranker.coef_, there.ranker.coef_)


@pytest.mark.more
def test_wishes_are_learned_from_blocks_too(mixed):
    frame = mixed.assign(
        price=[f"${v:,.2f}" for v in mixed.amount.clip(upper=5000)],
        zip=1000 + mixed.visits,
        city=mixed.city.str.upper().where(np.arange(len(mixed)) % 2 == 0, mixed.city),
    )
    wishes = {"as_number": ("price",), "as_text": ("zip",), "clip": ("x",), "tidy": ("city",)}
    given = {"p": 2, "model": "pnorm", "drop": ("told",), **wishes}
    here = fit_table(frame, "bought", **given)
    there = fit_table_blocks(in_pieces(frame, 83), "bought", **given)
    same_model(here, there)
    kinds = {c.name: c.kind for c in there.schema.columns}
    assert kinds["zip"] == "category" and kinds["price"] == "number"


@pytest.mark.more
def test_a_sample_is_stated_and_the_linear_push_still_takes_all_rows(mixed):
    here = fit_table(mixed, "bought", p=2, model="pnorm")
    there = fit_table_blocks(in_pieces(mixed, 97), "bought", p=2, model="pnorm", sample_rows=250)
    same_model(here, there)
    told = there.card["training"]
    assert told["rows"] == 600 and told["fitted_to"] == 600
    assert 200 < told["sample"] < 300
    assert told["positives"] == int((mixed.bought == "yes").sum())
    # the sketch is of all rows, so that any of them is recognised
    assert there.share_learned_from(mixed) == 1.0


@pytest.mark.more
def test_rankers_that_need_rows_in_memory_are_fitted_to_the_sample(mixed):
    model = fit_table_blocks(in_pieces(mixed, 97), "bought", model="smooth-margin", sample_rows=300)
    told = model.card["training"]
    assert told["fitted_to"] == told["sample"] < told["rows"] == 600
    assert {c.name for c in model.schema.columns} >= {"city", "told"}


@pytest.mark.more
def test_unlabelled_rows_are_refused_or_skipped_as_in_memory(mixed):
    frame = mixed.assign(bought=mixed.bought.where(np.arange(len(mixed)) % 50 != 0, None))
    with pytest.raises(ModelError, match="missing in 12 of 600 rows"):
        fit_table_blocks(in_pieces(frame, 97), "bought", p=2)
    given = {"p": 2, "model": "pnorm", "skip_unlabelled": True}
    here = fit_table(frame, "bought", **given)
    same_model(here, fit_table_blocks(in_pieces(frame, 97), "bought", **given))


@pytest.mark.parametrize(
    "given, message",
    [
        ({"target": "sold"}, "target='sold': the table has no such column"),
        ({"target": "bought", "id": "bought"}, "that column is the target already"),
        ({"target": "bought", "clip": ("city",)}, "the column holds no numbers"),
        ({"target": "bought", "sample_rows": 0}, "1 or more"),
        ({"target": "bought", "tidy": ("times",), "weight": "times"}, "is not a feature"),
    ],
)
def test_what_cannot_be_fitted_is_named(mixed, given, message):
    with pytest.raises(ModelError, match=message):
        fit_table_blocks(in_pieces(mixed, 200), **given)
    with pytest.raises(ModelError, match="use fit_table"):
        fit_table_blocks(mixed, "bought")


@pytest.mark.more
def test_the_estimator_learns_the_same_from_blocks(mixed):
    frame = mixed.drop(columns=["times", "told"]).assign(bought=(mixed.bought == "yes").astype(int))
    here = TableRanker(p=2).fit(frame.drop(columns="bought"), frame.bought)
    there = TableRanker(p=2).fit_blocks(in_pieces(frame, 97), "bought")
    same_model(here.model_, there.model_)
    assert here.classes_.tolist() == there.classes_.tolist() == [0, 1]
    assert here.feature_names_in_.tolist() == there.feature_names_in_.tolist()
    later = frame.drop(columns="bought")
    assert np.array_equal(here.predict(later), there.predict(later))


@pytest.mark.more
def test_all_scores_of_blocks_come_back_in_order_with_labels_weights_and_groups(mixed):
    model = fit_table(mixed[::2], "bought", p=2, model="pnorm", drop=("told", "times"))
    source = in_pieces(mixed, 97)
    scored, seen = score_blocks(model, source, "bought", "times", "visits")
    assert np.array_equal(scored.scores, model.score(mixed))
    assert np.array_equal(scored.y, mixed.bought == "yes")
    assert np.array_equal(scored.weight, mixed.times)
    same_group = mixed.visits.to_numpy()[:, None] == mixed.visits.to_numpy()
    assert np.array_equal(scored.groups[:, None] == scored.groups, same_group)
    assert seen.found == 300 and seen.looked_up == 600
    bare, _ = score_blocks(model, source, "bought", None, None)
    assert bare.weight is None and bare.groups is None


@pytest.mark.more
def test_pieces_whose_readers_gave_other_types_are_one_column(mixed):
    """Whole numbers where nothing is missing, floats elsewhere; days here, nanoseconds there."""
    frame = mixed[["x", "visits", "since", "bought"]].copy()
    frame.loc[300:, "visits"] = np.where(np.arange(300) % 7 == 0, np.nan, frame.visits[300:])

    def pieces():
        yield frame[:300].astype({"visits": np.int64, "since": "datetime64[s]"})
        yield frame[300:].astype({"since": "datetime64[ns]"})

    here = fit_table(frame, "bought", p=2, model="pnorm")
    there = fit_table_blocks(blocks.from_tables(pieces), "bought", p=2, model="pnorm")
    assert np.array_equal(here.ranker.coef_, there.ranker.coef_)
    assert {c.name: c.kind for c in there.schema.columns} == {
        **{"x": "number", "visits": "number", "since": "date"}
    }
    assert np.array_equal(here.score(frame), there.score(frame))


@pytest.mark.more
def test_days_among_more_words_than_are_kept_are_looked_at_again(mixed, monkeypatch):
    """One word that is no date, and was not kept, makes the column one of text."""
    monkeypatch.setattr(words, "MOST_WORDS", 40)
    days = pd.date_range("2020-01-01", periods=600).strftime("%Y-%m-%d").to_numpy(dtype=object)
    frame = mixed[["x", "bought"]].assign(day=days, late=days)
    kept = Words.of(days).counts
    frame.loc[next(i for i in range(600) if days[i] not in kept), "late"] = "not yet"
    for model in (
        fit_table(frame, "bought", p=2, model="pnorm"),
        fit_table_blocks(in_pieces(frame, 97), "bought", p=2, model="pnorm"),
    ):
        assert {c.name: c.kind for c in model.schema.columns}["day"] == "date"
        assert "late" in model.schema.left_out or model.schema.columns[-1].kind == "text"


@pytest.mark.more
def test_tails_of_numbers_that_are_mostly_the_same_begin_among_the_others(mixed):
    amount = np.where(np.arange(600) % 300 == 1, np.arange(600) * 1e6, 0.0)
    amount[5] = 3.0
    frame = mixed[["x", "bought"]].assign(amount=amount)
    for wish in ({"clip": ("amount",)}, {}):  # asked for, and found
        given = {"p": 2, "model": "pnorm", **wish}
        here = fit_table(frame, "bought", **given)
        there = fit_table_blocks(in_pieces(frame, 97), "bought", **given)
        same_model(here, there)
        low, high = there.schema.columns[1].clip
        assert low < high < 301e6 and low >= 0.0


@pytest.mark.more
def test_groups_are_sampled_whole_and_the_weight_of_all_rows_is_stated(mixed):
    frame = mixed.assign(house=np.arange(600) // 4)
    given = {"groups": "house", "weight": "times", "p": 2, "drop": ("told",)}
    source = in_pieces(frame, 97)  # houses lie across the cuts
    model = fit_table_blocks(source, "bought", model="pnorm", sample_rows=200, **given)
    told = model.card["training"]
    assert told["weight"] == frame.times.sum()
    kept = frame[frame.times > 0]
    assert told["rows"] == len(kept) and 100 < told["sample"] < 320
    drawn = Sampling(0.5, 0, "house").rows(frame, 0)
    sizes = frame.iloc[drawn].groupby("house").size()
    assert set(sizes) == {4} and 40 < len(sizes) < 110


@pytest.mark.more
def test_a_block_without_a_row_that_counts_changes_nothing(mixed):
    frame = mixed.drop(columns=["told"]).assign(times=1.0)
    frame.loc[200:399, "times"] = 0.0
    given = {"p": 2, "model": "pnorm", "weight": "times"}
    same_model(
        fit_table(frame, "bought", **given),
        fit_table_blocks(in_pieces(frame, 100), "bought", **given),
    )


@pytest.mark.parametrize(
    "change, given, message",
    [
        ({"times": 0.0}, {"weight": "times"}, "no rows of positive weight"),
        ({"x": 1.0}, {}, "no column to rank by.*'x': every value is the same"),
        ({"times": None}, {"weight": "times"}, r"'bought' has one value only \('yes'\)"),
        ({"bought": [[1]] * 600}, {}, "'bought' cannot be the target: expected words"),
    ],
)
def test_rows_that_teach_nothing_are_refused_as_in_memory(mixed, change, given, message):
    frame = mixed[["x", "times", "bought"]].assign(**change)
    if frame.times.isna().all():  # only the positives have a weight
        frame["times"] = (frame.bought == "yes").astype(float)
    given = {**given, "drop": () if "weight" in given else ("times",)}
    for fit, table in ((fit_table, frame), (fit_table_blocks, in_pieces(frame, 200))):
        with pytest.raises(ModelError, match=message):
            fit(table, "bought", **given)


@pytest.mark.more
def test_a_model_of_files_that_were_written_again_was_that_of_the_old_rows(mixed, tmp_path):
    def fit(frame, **kept):
        frame.to_parquet(tmp_path / "rows.parquet")
        source = blocks.from_tables(tmp_path / "rows.parquet")
        return fit_table_blocks(source, "bought", p=4, checkpoint=tmp_path / "fit", **kept)

    same_model(fit(mixed), fit(mixed, resume=True))
    number = mixed.select_dtypes("number").columns[0]
    with pytest.raises(ValueError, match="or their files were written again"):
        fit(mixed.assign(**{number: -mixed[number]}), resume=True)


@pytest.mark.more
def test_a_fit_that_was_lost_goes_on_from_its_folder(mixed, tmp_path, monkeypatch):
    from toprank.blocks.checkpoint import KeptPasses

    given = {"p": 4, "model": "pnorm"}
    whole = fit_table_blocks(in_pieces(mixed, 97), "bought", **given)
    own, made = KeptPasses.map_reduce, []

    def lost_in_the_middle(source, sweep, state):
        if len(made) == 3:
            raise KeyError("the driver is gone")
        made.append(sweep)
        return own(source, sweep, state)

    with monkeypatch.context() as patch, pytest.raises(KeyError, match="gone"):
        patch.setattr(KeptPasses, "map_reduce", lost_in_the_middle)
        fit_table_blocks(in_pieces(mixed, 97), "bought", **given, checkpoint=tmp_path)
    kept = len(list(tmp_path.glob("*.pass")))
    assert kept == 2  # a pass is kept once the next one is asked for
    again = fit_table_blocks(
        in_pieces(mixed, 97), "bought", **given, checkpoint=tmp_path, resume=True
    )
    same_model(whole, again)
    assert len(list(tmp_path.glob("*.pass"))) > kept
    with pytest.raises(ValueError, match="is that of another fit"):
        fit_table_blocks(in_pieces(mixed, 97), "bought", p=8, checkpoint=tmp_path, resume=True)
    with pytest.raises(ModelError, match="is fitted to a sample of them in memory"):
        fit_table_blocks(in_pieces(mixed, 97), "bought", model="trees", checkpoint=tmp_path)

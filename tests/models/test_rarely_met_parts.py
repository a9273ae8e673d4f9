"""What models meet rarely where rows come in parts: blocks, folds, first fits, older files."""

import copy
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from toprank import PNormPush, PushEnsemble, blocks, models
from toprank.models import (
    ModelError,
    ensembles,
    errors,
    fit_table,
    monitor,
    save_ranker,
)
from toprank.models.block_rows import BlocksLook, PrepareRows, ReadColumns, UsableRows
from toprank.models.block_tails import find_ends_in_blocks, find_tails_in_blocks
from toprank.models.columns import Column
from toprank.models.doubts import find_ids, find_words
from toprank.models.encoders import from_older_encoder
from toprank.models.kinds import ColumnSummary
from toprank.models.loader import from_bytes
from toprank.models.moments import Moments
from toprank.models.payload import build_payload
from toprank.models.preparation import Preparation
from toprank.models.ranker_kinds import RANKER_KINDS, RankerRequest
from toprank.models.rows import TrainingRows
from toprank.models.schema import Schema, Target
from toprank.models.steps import TableFit
from toprank.models.storage import _attach_members, to_bytes
from toprank.models.summary import FrameLook
from toprank.models.wishes import find_ends
from toprank.tuning import Scoring


def in_pieces(frame, rows):
    starts = range(0, len(frame), rows)
    return blocks.from_tables(lambda: (frame[i : i + rows] for i in starts), block_rows=rows)


def rare_numbers(n=10_000):
    """A column that is nearly always zero."""
    numbers = np.zeros(n)
    numbers[[5, n // 2, n - 1]] = [4.0, 1.0, 2.0]
    return numbers


def test_the_ends_of_a_flat_column_are_those_of_memory_however_it_is_cut():
    frame = pd.DataFrame({"rare": rare_numbers(), "y": np.arange(10_000) % 2})
    columns = [Column("rare", "number")]
    found = find_ends_in_blocks(in_pieces(frame, 3_000), ReadColumns(UsableRows("y")), columns)
    assert found == {"rare": find_ends(rare_numbers())}


def test_a_column_of_one_number_has_no_tail():
    frame = pd.DataFrame({"same": np.full(200, 7.0), "y": np.arange(200) % 2})
    moments = {"same": Moments.of(frame["same"].to_numpy())}
    read, columns = ReadColumns(UsableRows("y")), [Column("same", "number")]
    assert find_tails_in_blocks(in_pieces(frame, 90), read, columns, moments) == {}


def test_columns_that_a_block_cannot_read_are_named_whichever_block_it_is():
    frame = pd.DataFrame({"a": ["1", "2", "3", "4"], "b": ["1", "x", "3", "4"],
                          "c": ["1", "2", "3", "y"], "y": [0, 1, 0, 1]})  # fmt: skip
    columns = [Column(name, "number") for name in "abc"]
    look = BlocksLook(in_pieces(frame, 2), UsableRows("y"))
    assert look.find_misread(columns) == ["b", "c"]
    assert look.find_misread(columns) == FrameLook(frame).find_misread(columns)
    with pytest.raises(ModelError, match="column 'b': "):
        ReadColumns(UsableRows("y"))(frame, columns)
    with pytest.raises(ModelError, match="clip='b': "):
        FrameLook(frame).find_ends(columns)


@pytest.mark.parametrize("weight", [None, "times"])
def test_a_block_whose_rows_do_not_count_gives_no_numbers(weight):
    frame = pd.DataFrame({"x": [0.5, 1.0, 2.0], "times": [1.0, 2.0, 1.0], "y": [0, 1, 0]})
    schema = Schema.learn(frame, target="y", weight=weight)
    target = Target.learn("y", frame["y"].to_numpy())
    preparation = Preparation("linear")
    preparation.fit_transform(schema, schema.read(frame)[0])
    prepare = PrepareRows(UsableRows("y", weight), schema, target, preparation)
    Z, y, weights = prepare(frame.assign(y=[None, None, None]))
    assert Z.shape == (0, prepare(frame)[0].shape[1]) and y.dtype == bool and len(y) == 0
    assert (weights is None) == (weight is None)
    assert prepare.weighted == (weight is not None)


def some_rows(n, **more):
    rng = np.random.default_rng(0)
    return TrainingRows({"x": rng.normal(size=n)}, np.arange(n) % 4 == 0, **more)


def test_the_first_fit_of_an_ensemble_takes_some_of_many_rows_class_by_class(monkeypatch):
    monkeypatch.setattr(ensembles, "_MOST_MEASURED_BY", 40)
    rows = some_rows(200)
    some = ensembles.rows_to_measure_by(True, rows, 0)
    assert len(some) == 40 and some.n_positive == 10
    places = np.searchsorted(np.sort(rows.X["x"]), some.X["x"])
    assert len(np.unique(places)) == 40
    assert np.array_equal(some.X["x"], ensembles.rows_to_measure_by(True, rows, 0).X["x"])
    assert ensembles.rows_to_measure_by(False, rows, 0) is rows
    assert ensembles.rows_to_measure_by(True, some, 0) is some


class Recorder:
    """An ensemble that keeps the folds that it is fitted with."""

    def __init__(self):
        self.cv, self.quality, self.folds = 3, "fast", None

    def set_params(self, cv):
        self.cv = cv
        return self

    def fit(self, Z, y, **given):
        self.folds, self.given = self.cv, given
        return self


def test_an_ensemble_of_groups_in_time_is_fitted_by_folds_that_keep_both():
    n = 600
    groups, time = np.random.default_rng(0).integers(0, 90, n), np.arange(n)
    rows = some_rows(n, groups=groups, time=time)
    found = ensembles.fit_ensemble(Recorder(), np.zeros((n, 1)), rows, {"sample_weight": None})
    assert found.cv == 3 and found.given == {"sample_weight": None}
    assert len(found.folds) > 1
    for train, test in found.folds:
        assert not set(groups[train]) & set(groups[test])
        assert time[train].max() < time[test].min()


def test_scores_of_a_few_rows_do_not_stand_for_those_of_all():
    ensemble = PushEnsemble()
    ensemble.oof_decision_ = np.array([0.5, np.nan, np.nan])
    assert ensembles.unseen_by_members(ensemble) is None


def test_three_times_of_which_most_rows_have_the_first_leave_nothing_to_hold_out():
    time = np.repeat([1, 2, 3], [70, 20, 10])
    assert some_rows(100, time=time).held_out(0) is None
    assert some_rows(100, time=np.repeat([1, 2, 3], [30, 40, 30])).held_out(0) is not None


@pytest.mark.parametrize("numbers", [np.arange(10.0) * 3, np.arange(100) * 1.5, np.zeros(0)])
def test_few_numbers_fractions_and_none_are_no_ids(numbers):
    columns = (Column("customer_id", "number"),)
    assert list(find_ids(columns, {"customer_id": numbers})) == []
    (found,) = find_ids(columns, {"customer_id": np.arange(100.0) * 3})
    assert "another whole number in every row" in found.message


def test_words_are_compared_unless_there_are_none_or_very_many():
    columns = (Column("city", "category"),)

    def said(words):
        return list(find_words(columns, {"city": np.array(words, dtype=object)}, {}, None))

    assert said(["", ""]) == []
    assert len(said(["Rome", "rome ", "Oslo"])) == 1
    many = [f"town of {chr(97 + i % 26)}{chr(97 + i // 26)}{i // 676}" for i in range(2_100)]
    assert said([*many, "Rome", "rome "]) == []


def test_a_format_that_only_words_beyond_the_guessed_ones_refuse_is_not_taken():
    days = pd.date_range("2024-01-01", "2024-12-12")
    first = [f"{d.day:02d}/{d.month:02d}/{d.year}" for d in days if d.day <= 12]
    words = np.array([*first[:101], "25/12/2024"], dtype=object)  # of 102 the last, in order
    found = ColumnSummary.of(words).find()
    assert (found.kind, found.date_format) == ("date", "%d/%m/%Y")


def test_lengths_of_time_are_never_too_large_for_models():
    assert not ColumnSummary.of(np.array([1, 10**15], "m8[us]")).may_be_huge
    assert ColumnSummary.of(np.array([1.0, 1e300])).may_be_huge


def test_an_older_encoder_of_few_words_has_an_axis_for_each():
    words = SimpleNamespace(vocabulary_={"red": 1, "blue": 0}, idf_=[1.5, 2.0])
    state = {"vectorizer_": words, "n_components_": 3, "scaling_factor_": 2.0}
    found = from_older_encoder(state, "colour")
    assert found.runs.tolist() == ["blue", "red"] and found.rarity.tolist() == [1.5, 2.0]
    assert found.axes.tolist() == [[1, 0, 0], [0, 1, 0]] and found.scale == 2.0


def test_a_model_whose_scores_are_no_numbers_is_refused(fitted):
    broken = copy.deepcopy(fitted("pnorm"))
    broken.ranker.coef_ = np.full_like(broken.ranker.coef_, np.nan)
    with pytest.raises(ModelError, match="gives scores that are not numbers"):
        from_bytes(to_bytes(broken))


@pytest.mark.parametrize(("high", "reasons"), [(0.25, 1), (0.35, 0)])
def test_a_precision_below_the_limit_asks_for_a_new_fit(high, reasons):
    found = SimpleNamespace(off_by=None, expected=None, columns=[], scores=None,
                            precision=monitor.Share(0.2, 0.1, high, 50))  # fmt: skip
    said = list(monitor._retrain_reasons(monitor.Limits(0.25, 0.5, 0.3), found, False))
    assert len(said) == reasons
    assert all("below the 0.3 that is asked for" in one for one in said)


def test_a_target_with_gaps_names_how_many(table):
    gaps = table.assign(bought=table.bought.where(table.index != 3, None))
    target = Target.learn("bought", table.bought.to_numpy())
    with pytest.raises(ModelError, match=r"'bought'.* 1 of 240"):
        target.of(gaps.bought.to_numpy())


def test_every_public_name_is_listed():
    assert set(models.__all__) <= set(dir(models))


def test_trees_that_split_by_a_date_are_not_written_as_sql():
    pytest.importorskip("lightgbm", reason="trees need LightGBM")
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-03-01", "us") + rng.integers(0, 900, 240).astype("m8[D]")
    frame = pd.DataFrame({"age": rng.normal(size=240), "since": days})
    late = days.astype(np.int64) > np.median(days.astype(np.int64))
    frame["bought"] = late ^ (rng.random(240) < 0.1)
    model = fit_table(frame, "bought", model="trees", p=1)
    with pytest.raises(ModelError, match=r"'since' \(date\)"):
        model.to_sql()


@pytest.mark.more
def test_a_card_says_of_how_many_rows_the_first_fit_was(table, monkeypatch):
    from toprank.rankers.ensemble import plan

    monkeypatch.setattr(ensembles, "_MOST_MEASURED_BY", 100)
    tiny = plan.Effort(2, 5, 0.3, (4.0,), plan.Forests(20), 5, False, plan._FEW)
    monkeypatch.setitem(plan.EFFORTS, "fast", tiny)
    monkeypatch.setattr(plan, "_FOLDS_OF_FEW", 2)
    model = fit_table(table, "bought", id="customer", model="auto", quality="fast")
    assert " to 100 rows" in model.card["metrics"]["how"]


def linear_ranker():
    X = np.random.default_rng(0).normal(size=(30, 2))
    return PNormPush().fit(X, X[:, 0] > 0)


def test_a_ranker_with_something_that_no_file_holds_is_refused(tmp_path, monkeypatch):
    ranker = linear_ranker()
    ranker.open_ = threading.Lock()
    with pytest.raises(ModelError, match="The ranker cannot be saved"):
        save_ranker(ranker, tmp_path / "kept")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install .*toprank\[models\]"):
        save_ranker(linear_ranker(), tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_type_that_is_not_allowed_is_not_built():
    skops = pytest.importorskip("skops.io")
    payload = skops.dumps(linear_ranker())
    with pytest.raises(ModelError, match=r"holds .*PNormPush, and was not opened"):
        build_payload(payload, set())


def test_trees_that_no_member_of_an_ensemble_knows_are_refused():
    with pytest.raises(ModelError, match="trees that its ranker does not know"):
        _attach_members(SimpleNamespace(members_=[("push", linear_ranker())]), [b"trees"])


def test_a_child_does_not_wait_for_a_thread_that_was_not_forked(monkeypatch):
    monkeypatch.setattr(errors, "_LOCK", threading.RLock())
    held, over = threading.Event(), threading.Event()

    def hold():
        with errors.catch_warnings():
            held.set()
            over.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10) and not errors._LOCK.acquire(blocking=False)
    errors._in_child()
    with errors.catch_warnings():
        assert not over.is_set()
    over.set()
    thread.join()


class NeedsEveryRow(PNormPush):
    """A ranker that cannot be fitted to a part of the rows."""

    def fit(self, X, y, sample_weight=None):
        if len(y) < 100:
            raise ValueError("too few rows")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("ranker", [PNormPush, NeedsEveryRow])
def test_where_no_part_can_be_fitted_the_training_scores_are_the_reference(ranker):
    rows, own = some_rows(100), np.arange(100.0)
    request, schema = RankerRequest(4.0, None, Scoring("auc"), 0), Schema((Column("x", "number"),))
    found = TableFit(RANKER_KINDS["pnorm"], request, schema, None).unseen(rows, ranker(), own)
    if ranker is PNormPush:
        assert found.source == "out of fold"  # on the scale of the model
        assert np.std(found.scores) == pytest.approx(np.std(own), rel=0.2)
    else:
        assert found.source == "training" and found.scores is own

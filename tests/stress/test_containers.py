"""Data come in any container with the same answer, by position, or with a refusal that helps."""

import array
import os
import tempfile
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from toprank import PairRanker, PNormPush, PushTrees, RankBoost
from toprank.inference import compare, interval, roc_band
from toprank.metrics import METRICS, auc, precision_at
from toprank.tuning import TimeOrderedSplit, choose_p

pd = pytest.importorskip("pandas", reason="columns of pandas need pandas")
pl = pytest.importorskip("polars", reason="columns of polars need polars")
pa = pytest.importorskip("pyarrow", reason="columns of Arrow need pyarrow")

N = 40
RNG = np.random.default_rng(0)
Y = np.arange(N) % 5 == 0
Y[:8] = [0, 1, 1, 0, 1, 0, 0, 1]
S = RNG.integers(-6, 12, N) / 4.0
W = np.where(np.arange(N) < 8, 1.0, RNG.integers(0, 4, N))
G = np.arange(N) % 5
X = RNG.normal(size=(N, 3)) + Y[:, None]
MIXED = RNG.permutation(N)


def memmap(values):
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(values.tobytes())
    mapped = np.memmap(file.name, dtype=values.dtype, mode="r", shape=values.shape)
    os.unlink(file.name)
    return mapped


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


def first_missing(values, missing):
    return [missing, *values.tolist()[1:]]


#: The same numbers in other hands.
NUMBERS = {
    "list": lambda v: v.tolist(),
    "tuple": lambda v: tuple(v.tolist()),
    "memoryview": lambda v: memoryview(v.astype(np.float64)),
    "array.array": lambda v: array.array("d", v.astype(np.float64)),
    "no mask": np.ma.MaskedArray,
    "objects": lambda v: v.astype(object),
    "fractions": lambda v: [Fraction(x) for x in v.tolist()],
    "decimals": lambda v: [Decimal(x) for x in v.tolist()],
    "swapped bytes": lambda v: v.astype(v.dtype.newbyteorder()),
    "read-only": read_only,
    "memory-mapped": memmap,
    "backwards": lambda v: v[::-1].copy()[::-1],
    "strided": lambda v: np.repeat(v, 3)[::3],
    "float16": lambda v: v.astype(np.float16),
    "float32": lambda v: v.astype(np.float32),
    "long double": lambda v: v.astype(np.longdouble),
    "pandas": pd.Series,
    "pandas, mixed index": lambda v: pd.Series(v, index=MIXED),
    "pandas, one index": lambda v: pd.Series(v, index=[0] * N),
    "pandas, two-level index": lambda v: pd.Series(v, index=[MIXED, MIXED[::-1]]),
    "pandas Float64": lambda v: pd.Series(v).astype("Float64"),
    "pandas Arrow": lambda v: pd.Series(v).astype("float64[pyarrow]"),
    "pandas category": lambda v: pd.Series(v).astype("category"),
    "pandas sparse": lambda v: pd.Series(pd.arrays.SparseArray(v)),
    "pandas index": pd.Index,
    "polars": pl.Series,
    "polars decimal": lambda v: pl.Series(v).cast(pl.Decimal(18, 4)),
    "arrow": pa.array,
    "arrow, chunked": lambda v: pa.chunked_array([v[:5], v[5:]]),
}
COLUMNS = {
    "column": lambda v: v[:, None],
    "frame": lambda v: pd.DataFrame({"a": v}),
    "polars frame": lambda v: pl.DataFrame({"a": v}),
}
#: What is not known, or is no number.
UNKNOWN = {
    "masked": lambda v: np.ma.MaskedArray(v, mask=np.arange(N) == 3),
    "NaN": lambda v: np.r_[np.nan, v[1:]],
    "None": lambda v: first_missing(v, None),
    "NA among objects": lambda v: pd.Series(first_missing(v, pd.NA), dtype=object),
    "NA in Float64": lambda v: pd.Series(v).astype("Float64").where(np.arange(N) > 0),
    "NA in Arrow": lambda v: pd.Series(v).astype("float64[pyarrow]").where(np.arange(N) > 0),
    "null of polars": lambda v: pl.Series(first_missing(v, None)),
    # pyarrow 15 refuses in words of its own, before anything of ours sees the null
    "null of Arrow": lambda v: pa.chunked_array([first_missing(v, None)]),
    "complex": lambda v: v.astype(complex),
    "a table": lambda v: np.column_stack([v, v]),
    "a row": lambda v: v[None, :],
    "a number": lambda v: np.float64(1.0),
    "a dictionary": lambda v: dict(enumerate(v.tolist())),
    "ragged": lambda v: [[1.0, 2.0], *v.tolist()[1:]],
}
NO_NUMBERS = {
    "dates": lambda v: np.arange(N).astype("datetime64[D]"),
    "durations": lambda v: pd.Series(pd.to_timedelta(np.arange(N), unit="D")),
    "polars dates": lambda v: pl.Series(range(N)).cast(pl.Date),
    "words": lambda v: ["one", *v.tolist()[1:]],
    "too large": lambda v: [10**400, *v.tolist()[1:]],
}
LABELS = {
    "True and False": lambda y: y,
    "-1 and +1": lambda y: 2 * y.astype(int) - 1,
    "words": lambda y: np.where(y, "yes", "no"),
    "bytes": lambda y: np.where(y, b"yes", b"no"),
    "words as objects": lambda y: np.where(y, "yes", "no").astype(object),
    "halves": lambda y: y + 0.5,
    "dates": lambda y: np.where(y, np.datetime64("2024-05-01"), np.datetime64("2023-05-01")),
    "unsigned": lambda y: y.astype(np.uint64),
    "pandas boolean": lambda y: pd.Series(y).astype("boolean"),
    "pandas string": lambda y: pd.Series(np.where(y, "yes", "no")).astype("string"),
    "pandas Int64": lambda y: pd.Series(y.astype(int)).astype("Int64"),
    "pandas Arrow": lambda y: pd.Series(y).astype("bool[pyarrow]"),
    "mixed index": lambda y: pd.Series(y, index=MIXED),
    "polars": lambda y: pl.Series(np.where(y, "yes", "no")),
    "polars boolean": pl.Series,
}
NO_LABELS = {
    "words and NaN": lambda y: ["yes" if one else float("nan") for one in y],
    "words and None": lambda y: ["yes" if one else None for one in y],
    "NA in boolean": lambda y: pd.Series(y).astype("boolean").where(np.arange(N) > 0),
    "NA in string": lambda y: pd.Series(np.where(y, "a", "b")).astype("string").where(Y),
    "no date": lambda y: np.where(y, np.datetime64("2024-05-01"), np.datetime64("NaT")),
    "null of polars": lambda y: pl.Series(["yes" if one else None for one in y]),
    "masked": lambda y: np.ma.MaskedArray(y, mask=np.arange(N) == 3),
    "infinite": lambda y: np.where(y, np.inf, 0.0),
    "one class": lambda y: np.ones(N),
    "three classes": lambda y: np.arange(N) % 3,
}
HELPS = r"expected|unknown|leave|should be|Complex|not an array|contains|must be"


def measured(y=Y, s=S, w=W, g=G):
    return (
        auc(y, s, sample_weight=w),
        precision_at(y, s, 2, groups=g, sample_weight=w),
        METRICS["ranking_risk"].function(np.asarray(Y, float), s, sample_weight=w),
    )


@pytest.mark.sampled(5)
@pytest.mark.parametrize("container", {**NUMBERS, **COLUMNS})
def test_scores_and_groups_are_the_same_in_any_container(container):
    hold = {**NUMBERS, **COLUMNS}[container]
    assert measured(s=hold(S)) == measured()
    assert measured(g=hold(G)) == measured()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("container", NUMBERS)
def test_weights_are_the_same_in_any_container(container):
    assert measured(w=NUMBERS[container](W)) == measured()


@pytest.mark.parametrize("container", LABELS)
def test_labels_are_the_same_in_any_container(container):
    assert measured(y=LABELS[container](Y))[:2] == measured()[:2]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("what", ["s", "w", "g"])
@pytest.mark.parametrize("container", UNKNOWN)
def test_unknown_entries_are_refused(what, container):
    values = {"s": S, "w": W, "g": G.astype(float)}[what]
    with pytest.raises(ValueError, match=HELPS):
        measured(**{what: UNKNOWN[container](values)})


@pytest.mark.parametrize("what", ["s", "w"])
@pytest.mark.parametrize("container", NO_NUMBERS)
def test_what_is_no_number_is_refused(what, container):
    with pytest.raises(ValueError, match="expected"):
        measured(**{what: NO_NUMBERS[container](S if what == "s" else W)})


@pytest.mark.parametrize("container", NO_LABELS)
def test_missing_labels_are_no_class(container):
    with pytest.raises(ValueError, match=HELPS):
        auc(NO_LABELS[container](Y), S)
    with pytest.raises(ValueError, match=HELPS):
        interval("auc", NO_LABELS[container](Y), S)


@pytest.mark.parametrize(
    "scores",
    [
        np.array([2**53, 2**53 + 1, 7, 8]),
        np.array([2**63, 2**63 + 1, 7, 8], dtype=np.uint64),
        [10**30, 10**30 + 1, 7, 8],
        [Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**20), 7, 8],
        np.array([1, 1 + np.longdouble(2) ** -60, 7, 8]),
    ],
)
def test_different_scores_that_float64_holds_as_one_are_refused(scores):
    if isinstance(scores, np.ndarray) and scores[0] == scores[1]:
        pytest.skip("long double is float64 on this machine")
    with pytest.raises(ValueError, match="float64 can tell only 3 apart"):
        auc([0, 1, 0, 1], scores)


def test_large_integers_that_stay_apart_are_scores():
    scores = np.array([2**60, 2**60 + 512, 0, -(2**62)])
    assert auc([0, 1, 0, 1], scores) == 0.5


def test_groups_named_1_and_one_point_zero_are_one_and_the_text_1_is_another():
    y, s = [1, 0, 0, 1], [4, 3, 2, 1]
    mixed = np.array([1, 1.0, "1", "1"], dtype=object)
    assert precision_at(y, s, 1, groups=mixed) == precision_at(y, s, 1, groups=[0, 0, 1, 1]) == 0.5
    assert precision_at(y, s, 1, groups=[1, 1.0, "1", "1"]) == 0.5


# ---- the index of pandas is not read, as in scikit-learn ---------------------------------------


@pytest.mark.parametrize("hold", ["pandas, mixed index", "pandas, one index", "polars"])
def test_rows_are_matched_by_position_everywhere(hold):
    column = NUMBERS[hold]
    labels = column(Y.astype(int))

    def ends(found):
        return found.estimate, found.low, found.high

    counts = column(W)
    assert ends(interval("auc", labels, column(S), sample_weight=counts)) == ends(
        interval("auc", Y, S, sample_weight=W)
    )
    amounts = {"k": 5, "n_resamples": 20, "sample_weight": W}
    assert ends(interval("value_at", labels, S, benefit=column(S), **amounts)) == ends(
        interval("value_at", Y, S, benefit=S, **amounts)
    )
    assert (
        compare("auc", labels, column(S), column(-S), groups=column(G)).p_value
        == compare("auc", Y, S, -S, groups=G).p_value
    )
    np.testing.assert_array_equal(roc_band(labels, column(S)).low, roc_band(Y, S).low)


def frame(values, hold):
    if hold == "polars":
        return pl.DataFrame(values, schema=["a", "b", "c"])
    index = [0] * N if hold == "one index" else MIXED[::-1]
    return pd.DataFrame(values, columns=["a", "b", "c"], index=index)


RANKERS = {
    "PNormPush": PNormPush(),
    "RankBoost": RankBoost(5),
    "PairRanker": PairRanker(),
    "PushTrees": PushTrees(n_estimators=3),
}


def score_table(ranker, rows, y, w):
    fitted = ranker.fit(rows, y, sample_weight=w)
    score = getattr(fitted, "decision_function", fitted.predict)
    return np.asarray(score(rows))


@pytest.mark.parametrize("hold", ["mixed index", "one index", "polars"])
@pytest.mark.parametrize("name", RANKERS)
def test_rankers_match_rows_by_position(name, hold):
    column = pl.Series if hold == "polars" else lambda v: pd.Series(v, index=MIXED)
    got = score_table(RANKERS[name], frame(X, hold), column(Y.astype(int)), column(W))
    np.testing.assert_allclose(got, score_table(RANKERS[name], X, Y.astype(int), W), rtol=1e-9)


@pytest.mark.parametrize("hold", ["mixed index", "one index"])
def test_folds_in_time_follow_the_rows_not_the_index(hold):
    column = (lambda v: pd.Series(v, index=MIXED)) if hold == "mixed index" else pd.Series
    settings = {"ps": (1.0, 4.0), "cv": TimeOrderedSplit(2)}
    chosen = choose_p(
        PNormPush(), frame(X, hold), column(Y), groups=column(np.arange(N)), **settings
    )
    plain = choose_p(PNormPush(), X, Y, groups=np.arange(N), **settings)
    assert str(chosen) == str(plain)


def dated(column):
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(c=column)


NO_TABLES = {
    "masked": np.ma.MaskedArray(X, mask=np.eye(N, 3, dtype=bool)),
    "dates": np.arange(3 * N).reshape(N, 3).astype("datetime64[D]"),
    "no dates": np.full((N, 3), np.datetime64("NaT")),
    "a column of dates": dated(pd.date_range("2020", periods=N)),
    "a column of dates with zone": dated(pd.date_range("2020", periods=N, tz="UTC")),
    "a column of durations": dated(pd.to_timedelta(np.arange(N), unit="D")),
    "only dates": pd.DataFrame({name: pd.date_range("2020", periods=N) for name in "abc"}),
    "dates of polars": pl.DataFrame(X, schema=list("abc")).with_columns(
        pl.Series("c", range(N)).cast(pl.Date)
    ),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("table", NO_TABLES)
@pytest.mark.parametrize("name", RANKERS)
def test_masked_entries_and_dates_are_not_taken_for_numbers(name, table):
    with pytest.raises(ValueError, match=r"holds dates or times|masked entries|not numbers"):
        RANKERS[name].fit(NO_TABLES[table], Y.astype(int))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("container", [name for name in NO_LABELS if name != "three classes"])
@pytest.mark.parametrize("name", RANKERS)
def test_rankers_do_not_make_a_class_of_missing_labels(name, container):
    with pytest.raises(
        ValueError, match=r"missing value|masked|contains|one class|dtype|every label"
    ):
        RANKERS[name].fit(X, NO_LABELS[container](Y))

"""Every entry that takes data lets in the same containers and refuses the same mistakes, in words.

The entries are found, not listed: rankers in `toprank`, metrics in their registry, displays in
`toprank.plots`. Only functions of their own kind are named here.
"""

import inspect
import warnings
from dataclasses import dataclass
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier

import toprank
from toprank import PNormPush, inference, plots
from toprank.blocks import from_arrays
from toprank.metrics import METRICS, summary
from toprank.tuning import capacity_threshold, choose_p, folds_of, supported_p

mpl.use("Agg")

N = 60
RNG = np.random.default_rng(0)
Y = np.arange(N) % 3 == 0
#: Whole numbers that every type of numbers can hold, and no column in two values.
X = (RNG.integers(0, 9, size=(N, 3)) + 2 * Y[:, None]).astype(float)
W = RNG.integers(1, 4, N).astype(float)
S = (RNG.integers(0, 40, N) + 10 * Y).astype(float)
GRADES = np.arange(N) % 3

#: Settings that make a ranker quick.
QUICK = {
    "PNormPushCV": {"ps": (1, 4), "alphas": (0.1,), "cv": 2, "test_size": None},
    "PushTrees": {"n_estimators": 3, "n_jobs": 1, "early_stopping": False},
    "RankBoost": {"n_estimators": 5},
    "AdaBoostRanker": {"n_estimators": 5},
    "SmoothMarginRanker": {"n_estimators": 5},
    "LabelRanker": {"n_estimators": 5},
    "PushEnsemble": {
        "estimators": [("push", toprank.PNormPush()), ("logistic", toprank.ProperRanker())],
        "cv": 2,
        "quality": "fast",
    },
}
#: They compare the entries of a column, and nothing else: infinity is an entry like any other.
STUMPS = {"RankBoost", "AdaBoostRanker", "SmoothMarginRanker", "LabelRanker"}


@dataclass(frozen=True)
class Entry:
    """A function of data: what it takes, and what it allows."""

    call: object
    takes: tuple[str, ...]
    target: str = "binary"  # or "graded", "classes", "any"
    missing: bool = False
    infinite: bool = False
    sparse: bool = False
    own_reader: bool = False  # of X: only what is behind a mask is refused
    fitted: bool = False  # to these very labels

    def __call__(self, **changed):
        given = {"X": X, "y": GRADES if self.target == "graded" else Y, "w": W, "s": S}
        given = {name: given[name] for name in self.takes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is no matter here: columns, convergence
            return self.call(**{**given, **changed})


def scored(ranker, table):
    score = getattr(ranker, "decision_function", None) or ranker.predict
    return np.asarray(score(table), dtype=float)


def rankers():
    found = (getattr(toprank, name) for name in toprank.__all__)
    for kind in found:
        if not (inspect.isclass(kind) and issubclass(kind, BaseEstimator)):
            continue
        ranker = kind(**QUICK.get(kind.__name__, {}))
        yield kind.__name__, ranker
        if "target" in ranker.get_params():
            yield f"{kind.__name__}, graded", clone(ranker).set_params(target="graded")


def fit_of(ranker):
    def call(X, y, w):
        return scored(clone(ranker).fit(X, y, sample_weight=w), np.array(X_PLAIN))

    return call


X_PLAIN = X.copy()


def scores_of(ranker, target):
    @cache  # fitted when first asked: not while the tests are collected
    def fitted():
        return clone(ranker).fit(X_PLAIN, GRADES if target == "graded" else Y)

    return lambda X: scored(fitted(), X)


def ranker_entries():
    for name, ranker in rankers():
        tags = ranker.__sklearn_tags__()
        target = "graded"
        if is_classifier(ranker):
            target = "classes" if tags.classifier_tags.multi_class else "binary"
        allowed = {
            "missing": tags.input_tags.allow_nan,
            "infinite": name.partition(",")[0] in STUMPS,
            "sparse": tags.input_tags.sparse,
        }
        yield f"{name}.fit", Entry(fit_of(ranker), ("X", "y", "w"), target, **allowed)
        yield f"{name}, scores", Entry(scores_of(ranker, target), ("X",), target, **allowed)


def metric_entries():
    for name, metric in METRICS.items():
        real = "y_real" in inspect.signature(metric.function).parameters

        def call(y, s, w, metric=metric):
            return metric.function(y, s, sample_weight=w, **metric.settings)

        yield f"metrics.{name}", Entry(call, ("y", "s", "w"), "graded" if real else "binary")


def of_interval(found):
    return np.array([found.estimate, found.low, found.high])


def inference_entries():
    two = ("y", "s", "w")
    yield (
        "inference.interval",
        Entry(lambda y, s, w: of_interval(inference.interval("auc", y, s, sample_weight=w)), two),
    )
    yield (
        "inference.compare",
        Entry(lambda y, s, w: inference.compare("auc", y, s, -S, sample_weight=w).difference, two),
    )
    for name in ("roc_band", "lift_band", "precision_recall_band"):

        def call(y, s, w, name=name):
            return np.asarray(getattr(inference, name)(y, s, sample_weight=w).low)

        yield f"inference.{name}", Entry(call, two)


def display_entries():
    for name in plots.__all__:
        display = getattr(plots, name)
        if hasattr(display, "from_predictions"):

            def drawn(y, s, w, display=display):
                parameters = inspect.signature(display.from_predictions).parameters
                scores = {1.0: s, 4.0: s} if "scores" in parameters else s
                display.from_predictions(y, scores, sample_weight=w)
                return 0.0

            yield f"{name}.from_predictions", Entry(drawn, ("y", "s", "w"))
        from_estimator = getattr(display, "from_estimator", None)
        if from_estimator and "X" in inspect.signature(from_estimator).parameters:

            def estimated(X, y, display=display):
                display.from_estimator(PNormPush().fit(X_PLAIN, Y), X, y)
                return 0.0

            yield f"{name}.from_estimator", Entry(estimated, ("X", "y"), sparse=True, fitted=True)


def of_blocks(X, y, w):
    ranker = PNormPush().fit_blocks(from_arrays(X, y, w))
    return scored(ranker, X_PLAIN)


def of_choice(X, y, w):
    settings = {"ps": (1, 4), "cv": 2, "baseline": None, "sample_weight": w}
    return choose_p(PNormPush(), X, y, **settings).fold_scores


def of_support(X, y, w):
    found = supported_p(X, y, ps=(1, 4), cv=2, sample_weight=w)
    return np.array([line.test_risk for line in found.lines])


def function_entries():
    three = ("X", "y", "w")
    yield "tuning.supported_p", Entry(of_support, three, sparse=True)
    yield "tuning.choose_p", Entry(of_choice, three, sparse=True, own_reader=True)
    yield "blocks.from_arrays", Entry(of_blocks, three, sparse=True)
    yield (
        "tuning.capacity_threshold",
        Entry(
            lambda y, s, w: capacity_threshold(s, 5, y=y, sample_weight=w).threshold,
            ("y", "s", "w"),
        ),
    )
    yield (
        "tuning.folds_of",
        Entry(
            lambda y, w: np.concatenate([test for _, test in folds_of(2, y, weight=w)]),
            ("y", "w"),
            "any",
        ),
    )
    yield (
        "metrics.summary",
        Entry(lambda y, s, w: summary(y, s, sample_weight=w)["auc"], ("y", "s", "w")),
    )


ENTRIES = dict(
    [
        *ranker_entries(),
        *metric_entries(),
        *inference_entries(),
        *display_entries(),
        *function_entries(),
    ]
)


def test_the_entries_are_found():
    assert len(ENTRIES) > 60
    assert {"PNormPush.fit", "metrics.auc", "TopRocDisplay.from_estimator"} <= set(ENTRIES)


def with_entry(values, value):
    changed = np.array(values, dtype=np.result_type(values.dtype, type(value)))
    changed.flat[7] = value
    return changed


def masked(values):
    return np.ma.MaskedArray(values, mask=np.arange(values.size).reshape(values.shape) == 7)


@dataclass(frozen=True)
class Mistake:
    """What is wrong, the words that every entry refuses it in, and where it is one."""

    what: str
    make: object
    words: str
    where: object = lambda entry: True


def finite_only(entry):
    return not entry.missing


def sized(entry):
    return not entry.infinite


MISTAKES = {
    "X behind a mask": Mistake("X", masked, "masked entries, whose values are unknown"),
    "X of NaN": Mistake("X", lambda v: with_entry(v, np.nan), "contains NaN", finite_only),
    "X of infinity": Mistake("X", lambda v: with_entry(v, np.inf), "infinity", sized),
    "X beyond every sum": Mistake(
        "X", lambda v: with_entry(v, -1e200), r"in size, expected at most 1e\+100", sized
    ),
    "X of complex numbers": Mistake("X", lambda v: v + 1j, "Complex data not supported"),
    "X of words": Mistake(
        "X", lambda v: np.where(v > 3, "red", "blue").astype(object), "X holds words, such as"
    ),
    "X of text": Mistake(
        "X",
        lambda v: np.where(v > 3, "red", "blue"),
        "X holds words, such as '(red|blue)'.*TableRanker",
    ),
    "X of dates": Mistake("X", lambda v: v.astype("datetime64[D]"), "holds dates or times"),
    "X of one dimension": Mistake("X", lambda v: v[:, 0], "Expected 2D array"),
    "X of three dimensions": Mistake("X", lambda v: v[:, None], "with dim 3"),
    "X without columns": Mistake("X", lambda v: v[:, :0], r"0 feature\(s\)"),
    "X without rows": Mistake("X", lambda v: v[:0], r"0 sample\(s\)|inconsistent numbers"),
    "X of another length": Mistake(
        "X", lambda v: v[:-1], "inconsistent numbers of samples", lambda e: "y" in e.takes
    ),
    "sparse X": Mistake(
        "X", sparse.csr_array, "[Ss]parse", lambda e: not (e.sparse or e.own_reader)
    ),
    "y behind a mask": Mistake("y", masked, "masked entries, whose values are unknown"),
    "y of NaN": Mistake("y", lambda v: with_entry(v * 1.0, np.nan), "contains NaN or infinity, or"),
    "y with None": Mistake(
        "y", lambda v: [None, *v.tolist()[1:]], "contains NaN or infinity, or a missing value"
    ),
    "y of complex numbers": Mistake("y", lambda v: v + 1j, "Complex data not supported: y"),
    "y of two columns": Mistake(
        "y",
        lambda v: np.column_stack([v, v]),
        "should be a 1d array",
        lambda e: e.target != "classes",
    ),
    "y of another length": Mistake(
        "y", lambda v: v[:-1], "inconsistent numbers of samples", lambda e: e.takes != ("y", "w")
    ),
    "one class": Mistake(
        "y", lambda v: np.ones(N), "one class only", lambda e: e.target in ("binary", "classes")
    ),
    "one grade": Mistake(
        "y", lambda v: np.ones(N), "no pair to rank", lambda e: e.target == "graded"
    ),
    "three classes": Mistake(
        "y",
        lambda v: np.arange(N) % 3,
        "Only binary classification is supported: y.* has 3 classes.*expected two",
        lambda e: e.target == "binary",
    ),
    "a quantity": Mistake(
        "y",
        lambda v: S + 0.5,
        "Unknown label type: continuous",
        lambda e: e.target in ("binary", "classes"),
    ),
    "words without an order": Mistake(
        "y",
        lambda v: np.where(v > 0, "good", "bad"),
        "it is not known which label belongs above which",
        lambda e: e.target == "graded",
    ),
    "weights behind a mask": Mistake("w", masked, "masked entries, whose values are unknown"),
    "weights of another length": Mistake(
        "w", lambda v: v[:-1], r"shape \(59,\), expected \(60,\): one weight per row"
    ),
    "weights of two dimensions": Mistake("w", lambda v: v[:, None], "one weight per row"),
    "negative weights": Mistake(
        "w", lambda v: with_entry(v, -1.0), r"negative values \(smallest -1\); a weight is a rep"
    ),
    "weights of NaN": Mistake("w", lambda v: with_entry(v, np.nan), "weights must be finite"),
    "infinite weights": Mistake("w", lambda v: with_entry(v, np.inf), "weights must be finite"),
    "weights that are all zero": Mistake("w", np.zeros_like, "every row is absent"),
    "weights beyond every sum": Mistake(
        "w", lambda v: np.full(N, 1.7e308), "adds up to more than any float"
    ),
    "weights too far apart": Mistake(
        "w",
        lambda v: np.where(Y, 1e-300, 1e300),
        r"runs from 1e-300 to 1e\+300|too far from a repetition count",
    ),
    "weights of words": Mistake("w", lambda v: ["heavy"] * N, "sample_weight holds 'heavy'"),
    "complex weights": Mistake("w", lambda v: v + 1j, "Complex data not supported: sample_weight"),
    "positives without weight": Mistake(
        "w",
        lambda v: np.where(Y, 0.0, 1.0),
        "Every positive row has sample_weight 0",
        lambda e: e.target == "binary",
    ),
    "scores behind a mask": Mistake("s", masked, "masked entries, whose values are unknown"),
    "scores of NaN": Mistake("s", lambda v: with_entry(v, np.nan), "contains NaN"),
    "infinite scores": Mistake("s", lambda v: with_entry(v, np.inf), "contains infinity"),
    "scores of words": Mistake("s", lambda v: ["high"] * N, "holds 'high'.*expected numbers"),
    "complex scores": Mistake("s", lambda v: v + 1j, "Complex data not supported"),
    "scores of two columns": Mistake(
        "s", lambda v: np.column_stack([v, v]), "should be a 1d array"
    ),
    "scores of another length": Mistake("s", lambda v: v[:-1], "inconsistent numbers of samples"),
}


BAD = [
    pytest.param(entry, mistake, id=f"{name}-{case}")
    for name, entry in ENTRIES.items()
    for case, mistake in MISTAKES.items()
    if mistake.what in entry.takes and mistake.where(entry)
]


@pytest.mark.sampled(17)
@pytest.mark.parametrize(("entry", "mistake"), BAD)
def test_the_same_mistake_is_refused_in_the_same_words(entry, mistake):
    given = {"X": X, "y": GRADES if entry.target == "graded" else Y, "w": W, "s": S}
    with pytest.raises((ValueError, TypeError), match=f"(?s){mistake.words}"):
        entry(**{mistake.what: mistake.make(given[mistake.what])})


# ---- good kinds --------------------------------------------------------------------------------


def frame(library):
    library = pytest.importorskip(library, reason=f"{library} is not installed")
    return lambda v: library.DataFrame({name: v[:, j] for j, name in enumerate("abc")})


def column(library):
    library = pytest.importorskip(library, reason=f"{library} is not installed")
    return library.Series


def mixed(values):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.Series(values, index=RNG.permutation(N))


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


TABLES = {
    "list": lambda v: v.tolist(),
    "pandas": lambda v: frame("pandas")(v),
    "polars": lambda v: frame("polars")(v),
    "float32": lambda v: v.astype(np.float32),
    "int8": lambda v: v.astype(np.int8),
    "objects": lambda v: v.astype(object),
    "read-only": read_only,
    "strided": lambda v: np.repeat(np.repeat(v, 2, axis=0), 2, axis=1)[::2, ::2],
    "by columns": np.asfortranarray,
    "no mask": np.ma.MaskedArray,
    "sparse": sparse.csr_array,
    "sparse by columns": sparse.csc_array,
}
COLUMNS = {
    "list": lambda v: v.tolist(),
    "pandas": lambda v: column("pandas")(v),
    "pandas, mixed index": mixed,
    "polars": lambda v: column("polars")(v),
    "int8": lambda v: v.astype(np.int8),
    "float32": lambda v: v.astype(np.float32),
    "objects": lambda v: v.astype(object),
    "read-only": read_only,
    "strided": lambda v: np.repeat(v, 2)[::2],
    "no mask": np.ma.MaskedArray,
}
LABELS = COLUMNS | {
    "words": lambda v: np.where(v, "yes", "no"),
    "halves": lambda v: v + 0.5,
}


def close(entry, **changed):
    np.testing.assert_allclose(entry(**changed), entry(), rtol=1e-5, atol=1e-7)


GOOD_TABLES = [
    pytest.param(entry, kind, id=f"{name}-{kind}")
    for name, entry in ENTRIES.items()
    for kind in TABLES
    if "X" in entry.takes and (entry.sparse or not kind.startswith("sparse"))
]


@pytest.mark.sampled(23)
@pytest.mark.parametrize(("entry", "kind"), GOOD_TABLES)
def test_a_table_is_the_same_in_any_container(entry, kind):
    close(entry, X=TABLES[kind](X))


@pytest.mark.sampled(23)
@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        pytest.param(entry, kind, id=f"{name}-{kind}")
        for name, entry in ENTRIES.items()
        for kind in LABELS
        if "y" in entry.takes
        and not (entry.target == "graded" and kind == "words")
        and not (entry.target == "classes" and kind == "halves")
        and not (entry.fitted and kind in ("words", "halves"))
    ],
)
def test_labels_are_the_same_in_any_container(entry, kind):
    close(entry, y=LABELS[kind](GRADES if entry.target == "graded" else Y))


@pytest.mark.sampled(23)
@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        pytest.param(entry, kind, id=f"{name}-{kind}")
        for name, entry in ENTRIES.items()
        for kind in COLUMNS
        if "w" in entry.takes
    ],
)
def test_weights_are_the_same_in_any_container(entry, kind):
    close(entry, w=COLUMNS[kind](W))


@pytest.mark.sampled(23)
@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        pytest.param(entry, kind, id=f"{name}-{kind}")
        for name, entry in ENTRIES.items()
        for kind in COLUMNS
        if "s" in entry.takes
    ],
)
def test_scores_are_the_same_in_any_container(entry, kind):
    close(entry, s=COLUMNS[kind](S))


def test_bool_is_a_number_like_any_other():
    table = X > 4
    for name, entry in ENTRIES.items():
        if "X" in entry.takes and not name.endswith("scores"):
            np.testing.assert_allclose(
                entry(X=table), entry(X=table.astype(float)), rtol=1e-5, err_msg=name
            )

"""No public call changes the state of the process: seeds, filters, limits, settings, handlers.

Everything that a call could leave changed is noted before it and compared after it. Only
``random_state=None`` draws from NumPy's global generator, as everywhere in scikit-learn.
"""

import decimal
import gc
import io
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

import toprank
from toprank import bounds, inference, metrics, simulate
from toprank.datasets import load_wdbc
from toprank.metrics.registry import METRICS
from toprank.tuning import choose_p, supported_p

SIGNALS = [signal.SIGINT, signal.SIGTERM]


def plot_settings():
    matplotlib = sys.modules.get("matplotlib")
    if matplotlib is None:
        return None
    return dict(matplotlib.rcParams), matplotlib.get_backend()


def frame_settings():
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return None
    return pandas.get_option("display.max_rows"), pandas.get_option("display.width")


def state():
    """What belongs to the process, not to the library."""
    of_numpy = np.random.get_state()  # noqa: NPY002
    root = logging.getLogger()
    return {
        "numpy's random numbers": (of_numpy[0], of_numpy[1].tolist(), *of_numpy[2:]),
        "Python's random numbers": random.getstate(),
        "warning filters": list(warnings.filters),
        "how warnings are shown": warnings.showwarning,
        "what NumPy does at an overflow": np.geterr(),
        "how NumPy prints": np.get_printoptions(),
        "scikit-learn's settings": sklearn.get_config(),
        "environment": dict(os.environ),
        "locale": locale.setlocale(locale.LC_ALL),
        "decimal context": str(decimal.getcontext()),
        "thread limits": {line["filepath"]: line["num_threads"] for line in threadpool_info()},
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "log handlers": (list(root.handlers), root.level, logging.root.manager.disable),
        "signal handlers": [signal.getsignal(number) for number in SIGNALS],
        "excepthook": (sys.excepthook, threading.excepthook),
        "streams": (sys.stdout, sys.stderr),
        "folder": os.getcwd(),
        "garbage collector": (gc.isenabled(), gc.get_threshold()),
        "recursion limit": sys.getrecursionlimit(),
        "tracing": (sys.gettrace(), sys.getprofile()),
        "plots": plot_settings(),
        "frames": frame_settings(),
    }


def check_unchanged(action):
    """Run an action twice, the first time to load what it needs, and compare what it left."""
    quiet(action)
    before = state()
    quiet(action)
    after = state()
    changed = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    assert not changed


def quiet(action):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        action()


def problem(n=80):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(int)


X, Y = problem()
SCORES = X[:, 0] + 0.1 * X[:, 1]

FITS = {
    "PNormPush": lambda: toprank.PNormPush(n_jobs=2).fit(X, Y).predict_proba(X),
    "coordinate": lambda: toprank.PNormPush(solver="coordinate", max_iter=5).fit(X, Y),
    "p = inf": lambda: toprank.PNormPush(p=np.inf, max_iter=5).fit(X, Y),
    "IRPush": lambda: toprank.IRPush().fit(X, Y),
    "PushRanker": lambda: toprank.PushRanker(end="both", loss="logistic", max_iter=5).fit(X, Y),
    "ProperRanker": lambda: toprank.ProperRanker().fit(X, Y).calibration_report(X, Y),
    "PNormPushCV": lambda: toprank.PNormPushCV(
        ps=(4,), alphas=(0.1,), cv=2, test_size=0.2, n_jobs=2
    ).fit(X, Y),
    "RankBoost": lambda: toprank.RankBoost(5, n_iter_no_change=2, random_state=0, n_jobs=2).fit(
        X, Y
    ),
    "AdaBoostRanker": lambda: toprank.AdaBoostRanker(5).fit(X, Y),
    "SmoothMarginRanker": lambda: toprank.SmoothMarginRanker(5).fit(X, Y),
    "LabelRanker": lambda: toprank.LabelRanker(5).fit(X, Y),
    "PairRanker": lambda: toprank.PairRanker(
        kernel="rbf", n_components=9, max_iter=5, random_state=0
    ).fit(X, Y),
    "LightGBM": lambda: toprank.PushTrees(
        n_estimators=3, early_stopping=True, subsample=0.5, random_state=0, n_jobs=2
    ).fit(X, Y),
    "XGBoost": lambda: toprank.PushTrees(
        n_estimators=3, early_stopping=True, backend="xgboost", random_state=0, n_jobs=2
    ).fit(X, Y),
}
NEEDS = {"LightGBM": "lightgbm", "XGBoost": "xgboost"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_leaves_the_process_as_it_was(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{name} needs {NEEDS[name]}")
    check_unchanged(FITS[name])


def test_a_fit_that_fails_leaves_the_process_as_it_was():
    def fail():
        for ranker in (toprank.PNormPush(n_jobs=2), toprank.RankBoost(5), toprank.PairRanker()):
            with pytest.raises(ValueError):
                ranker.fit(X, np.ones(len(X)))

    check_unchanged(fail)


def test_metrics_leave_the_process_as_it_was(record_property):
    def measure():
        metrics.summary(Y, SCORES)
        for metric in METRICS.values():
            metric.function(Y, SCORES, **metric.settings)

    record_property("cases", len(METRICS))
    check_unchanged(measure)


def test_intervals_and_bounds_leave_the_process_as_it_was():
    def infer():
        inference.interval("bedroc", Y, SCORES, n_resamples=20, random_state=0, n_jobs=2)
        inference.interval("auc", Y, SCORES)
        inference.compare("auc", Y, SCORES, X[:, 1])
        inference.roc_band(Y, SCORES)
        supported_p(X, Y, ps=(1,), n_jobs=2)
        choose_p(toprank.RankBoost(2), X, Y, ps=(1,), cv=2, n_jobs=2)
        bounds.ranking_regret("logistic", 0.1, 0.5)
        simulate.linear_bipartite().sample(20, random_state=0)
        load_wdbc()

    check_unchanged(infer)


def test_plots_leave_the_process_as_it_was():
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    import matplotlib.pyplot as plt

    from toprank import plots

    def draw():
        for name in plots.__all__:
            display = getattr(plots, name)
            if name in ("TopRocDisplay", "LiftDisplay", "PairContributionDisplay"):
                display.from_predictions(Y, SCORES)
        plt.close("all")

    check_unchanged(draw)


@pytest.fixture
def frame():
    pandas = pytest.importorskip("pandas", reason="tables are pandas frames")
    pytest.importorskip("skops", reason="models are saved with skops")
    rows, labels = problem(300)
    return pandas.DataFrame(rows, columns=list("abc")).assign(y=labels)


def test_a_model_of_a_table_leaves_the_process_as_it_was(frame, tmp_path):
    from toprank.models import fit_table, load

    def model():
        fit_table(frame, "y", p=4).save(tmp_path / "model")
        load(tmp_path / "model").score(frame)

    check_unchanged(model)


@pytest.mark.more
def test_a_command_leaves_the_process_as_it_was(frame, tmp_path):
    pytest.importorskip("typer", reason="the command line needs typer")
    from typer.testing import CliRunner

    from toprank.cli.app import app

    frame.to_csv(tmp_path / "rows.csv", index=False)
    rows, model = str(tmp_path / "rows.csv"), str(tmp_path / "model")

    def command():
        for arguments in (
            ["fit", rows, "-y", "y", "--p", "4", "-o", model],
            ["rank", model, rows, "--top", "5"],
            ["bounds", "--positives", "100", "--negatives", "900", "--features", "3"],
            ["rank", model, str(tmp_path / "none.csv")],
        ):
            CliRunner().invoke(app, arguments)

    check_unchanged(command)


@pytest.mark.slow
def test_a_report_leaves_the_process_as_it_was(frame):
    from toprank.report import build

    check_unchanged(lambda: build(frame, "y", ps=(1, 4), cv=2).html)


def test_a_verbose_fit_prints_and_changes_no_stream(capsys):
    out = sys.stdout
    toprank.PNormPush(verbose=1).fit(X, Y)
    assert "PNormPush" in capsys.readouterr().out and sys.stdout is out
    assert isinstance(sys.stdout, io.TextIOBase)


def test_without_a_seed_numbers_come_from_the_generator_that_scikit_learn_shares():
    def fit(random_state):
        ranker = toprank.RankBoost(5, n_iter_no_change=2, random_state=random_state).fit(X, Y)
        return ranker.validation_scores_

    kept = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(5)  # noqa: NPY002
        unseeded = fit(None)
    finally:
        np.random.set_state(kept)  # noqa: NPY002
    np.testing.assert_array_equal(unseeded, fit(5))

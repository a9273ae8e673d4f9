"""A fit interrupted (Ctrl-C) at any line leaves an unfitted ranker, a failed one what was there.

An exception is raised at lines of the library drawn at random, wherever they are: in a solver, in a
pool of threads, while results are kept. Real signals, and how fast they are heard, are tried in
processes of their own.
"""

import gc
import json
import linecache
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_info

import toprank
from toprank import (
    AdaBoostRanker,
    IRPush,
    LabelRanker,
    PairRanker,
    PNormPush,
    PNormPushCV,
    ProperRanker,
    PushRanker,
    PushTrees,
    RankBoost,
    SmoothMarginRanker,
)
from toprank._extras import require
from toprank.blocks import from_arrays, from_memmap, from_parquet
from toprank.rankers.common import _fitted_attributes, fits, forget

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
ROOT = Path(__file__).resolve().parents[2]
LIBRARY = f"{Path(toprank.__file__).parent}{os.sep}"
# An interrupt in the decorator that makes fits whole comes before the fit, or after it; and at the
# end of a `with` block, where a lock is given back, Python hears no signal.
OUTSIDE = [str(Path(LIBRARY) / name) for name in ("blocks/threads.py", "models/errors.py")]
DECORATOR = [fits.__code__, forget.__code__, _fitted_attributes.__code__, PNormPush.fit.__code__]

RANKERS = {
    "newton": PNormPush(solver="newton"),
    "lbfgs": PNormPush(solver="lbfgs", n_jobs=2),
    "coordinate": PNormPush(solver="coordinate", max_iter=10),
    "logistic": PNormPush(loss="logistic", max_iter=10),
    "hinge": PNormPush(loss="hinge", max_iter=10),
    "p = inf": PNormPush(p=np.inf, max_iter=10),
    "warm": PNormPush(warm_start=True),
    "TopPush": PushRanker("max", loss="squared_hinge", max_iter=10),
    "IRPush": IRPush(),
    "ProperRanker": ProperRanker(),
    "PNormPushCV": PNormPushCV(ps=(1, 4), alphas=(0.1,), cv=2, test_size=None),
    "PNormPushCV in threads": PNormPushCV(ps=(4,), alphas=(0.1,), cv=2, test_size=None, n_jobs=2),
    "RankBoost": RankBoost(5, n_jobs=2),
    "RankBoost graded": RankBoost(5, target="graded"),
    "RankBoost stopping": RankBoost(5, n_iter_no_change=2, random_state=0),
    "AdaBoostRanker": AdaBoostRanker(5),
    "SmoothMarginRanker": SmoothMarginRanker(5),
    "LabelRanker": LabelRanker(5),
    "PairRanker": PairRanker(max_iter=10),
    "PairRanker kernel": PairRanker(kernel="rbf", max_iter=10),
    "PairRanker on pairs": PairRanker(
        kernel="rbf", kernel_on="pairs", n_components=20, max_iter=10, random_state=0
    ),
    "LightGBM": PushTrees(n_estimators=3, max_leaves=4),
    "LightGBM stopping": PushTrees(n_estimators=3, early_stopping=True, random_state=0),
    "XGBoost": PushTrees(n_estimators=3, max_leaves=4, backend="xgboost"),
    "p = auto": PushTrees("auto", ps=(4,), cv=2, n_estimators=2, max_leaves=4),
}
NEEDS = {"LightGBM": "lightgbm", "LightGBM stopping": "lightgbm", "p = auto": "lightgbm"}
NEEDS["XGBoost"] = "xgboost"


def problem(seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(int)


def ranker_of(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{name} needs {NEEDS[name]}")
    return clone(RANKERS[name])


def quietly(action):
    """Run what may say that few rounds were not enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return action()


def answer_of(ranker):
    """The coefficients, or scores of rows."""
    if hasattr(ranker, "coef_"):
        return ranker.coef_
    return getattr(ranker, "decision_function", ranker.predict)(problem()[0])


class AtLine:
    """Counts the lines of the library that the main thread runs; raises at one of them."""

    def __init__(self, which=None, error=KeyboardInterrupt):
        self.count, self.which, self.error, self.where = 0, which, error, None

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.called)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def called(self, frame, event, _):
        code = frame.f_code
        name = code.co_filename
        inside = name.startswith(LIBRARY) and name not in OUTSIDE and code not in DECORATOR
        return self.line if inside else None

    def line(self, frame, event, _):
        if event == "line":
            self.count += 1
            if self.count == self.which:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                sys.settrace(None)
                raise self.error(self.where)
        return self.line


def check_unfitted(ranker, parameters, where):
    left = set(vars(ranker)) - set(ranker._get_param_names())
    assert not left, (
        f"{left} left after an exception at {where}: {linecache.getline(*place(where))}"
    )
    with pytest.raises(NotFittedError):
        check_is_fitted(ranker)
    now = ranker.get_params(deep=False)
    assert all(now[name] is value for name, value in parameters.items()), where


def check_as_before(ranker, expected, parameters, where):
    np.testing.assert_array_equal(answer_of(ranker), expected, err_msg=where)
    now = ranker.get_params(deep=False)
    assert all(now[name] is value for name, value in parameters.items()), where


def place(where):
    name, line = where.rsplit(":", 1)
    return name, int(line)


def attack(ranker, fit, moments, seed):
    """Interrupt fits at random lines; the next fit must be as the first."""
    ranker = clone(ranker)
    limits = threadpool_info()
    fitted = quietly(lambda: fit(clone(ranker)))
    expected = answer_of(fitted)
    with AtLine() as lines:  # what is loaded and compiled once is not counted
        quietly(lambda: fit(fitted))
    rng = np.random.default_rng(seed)
    for i in range(moments):
        error = (KeyboardInterrupt, MemoryError)[i % 2]
        parameters = ranker.get_params(deep=False)
        quietly(lambda: fit(ranker))
        raised = AtLine(int(rng.integers(1, lines.count + 1)), error)
        with pytest.raises(error), raised:
            quietly(lambda: fit(ranker))
        if error is KeyboardInterrupt:
            check_unfitted(ranker, parameters, raised.where)
        else:
            check_as_before(ranker, expected, parameters, raised.where)
    gc.collect()  # where the end of a hold on BLAS was itself cut off, it ends with its frame
    np.testing.assert_array_equal(answer_of(quietly(lambda: fit(ranker))), expected)
    assert threadpool_info() == limits


@pytest.mark.sampled(27)
@pytest.mark.parametrize("name", RANKERS)
def test_an_exception_at_any_line_leaves_a_whole_fit_or_none(name, record_property):
    X, y = problem()
    record_property("cases", 2)
    attack(ranker_of(name), lambda ranker: ranker.fit(X, y), moments=2, seed=len(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", RANKERS)
def test_an_exception_at_many_lines_leaves_a_whole_fit_or_none(name, record_property):
    X, y = problem()
    record_property("cases", 100)
    attack(ranker_of(name), lambda ranker: ranker.fit(X, y), moments=100, seed=1)


def sources(folder, X, y):
    yield from_arrays(X, y, block_rows=20, n_jobs=2)
    for name, values in (("X", X), ("y", y)):
        np.save(folder / f"{name}.npy", values)
    yield from_memmap(folder / "X.npy", folder / "y.npy")
    pandas = pytest.importorskip("pandas", reason="a Parquet file is made by pandas")
    pytest.importorskip("pyarrow", reason="Parquet files are read by pyarrow")
    frame = pandas.DataFrame(X, columns=list("abc")).assign(y=y)
    frame.to_parquet(folder / "rows.parquet", row_group_size=20)
    yield from_parquet(folder / "rows.parquet", target="y")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("which", range(3), ids=["arrays", "memmap", "parquet"])
def test_an_exception_at_any_line_of_a_fit_to_blocks_leaves_a_whole_fit_or_none(
    which, tmp_path, record_property
):
    X, y = problem()
    source = list(sources(tmp_path, X, y))[which]
    record_property("cases", 4)
    attack(PNormPush(n_jobs=2), lambda ranker: ranker.fit_blocks(source), moments=4, seed=which)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_exception_before_a_fit_begins_leaves_the_last_fit_or_none(error, monkeypatch):
    ranker = PNormPush().fit(*problem())
    parameters, expected = ranker.get_params(deep=False), ranker.coef_
    calls = []

    def raise_at_first(estimator):
        calls.append(estimator)
        if len(calls) == 1:
            raise error
        return _fitted_attributes(estimator)

    monkeypatch.setattr("toprank.rankers.common._fitted_attributes", raise_at_first)
    with pytest.raises(error):
        ranker.fit(*problem())
    if error is KeyboardInterrupt:
        check_unfitted(ranker, parameters, "the start of a fit:0")
    else:
        check_as_before(ranker, expected, parameters, "the start of a fit:0")


def test_labels_that_are_found_bad_late_leave_the_last_fit():
    X, y = problem()
    for name in ("newton", "ProperRanker", "RankBoost", "LabelRanker", "PairRanker"):
        ranker = quietly(lambda name=name: clone(RANKERS[name]).fit(X, y))
        parameters, expected = ranker.get_params(deep=False), answer_of(ranker)
        with pytest.raises(ValueError):
            ranker.fit(X[:, :2], np.ones(len(X)))
        check_as_before(ranker, expected, parameters, f"{name}: one class")


def test_a_loss_that_raises_in_the_middle_leaves_a_ranker_unfitted():
    calls = []

    def value(r):
        calls.append(len(r))
        if len(calls) > 5:
            raise RuntimeError("the user's loss has had enough")
        return np.exp(-r)

    X, y = problem()
    ranker = PNormPush(loss=(value, lambda r: -np.exp(-r)))
    parameters = ranker.get_params(deep=False)
    with pytest.raises(RuntimeError, match="had enough"):
        ranker.fit(X, y)
    check_unfitted(ranker, parameters, "the loss:0")


def test_an_interrupt_that_numba_hid_in_an_error_was_no_interrupt():
    def value(r):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    ranker = PNormPush().fit(*problem()).set_params(loss=(value, lambda r: -np.exp(-r)))
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(*problem())
    with pytest.raises(NotFittedError):
        check_is_fitted(ranker)


@POSIX
def test_an_interrupt_while_python_leaves_a_command_ended_it_by_the_signal():
    code = "import atexit, os, signal, sys; sys.argv = ['toprank', '--version']\n"
    code += "class Last:\n    def __del__(self, kill=os.kill, pid=os.getpid()):\n"
    code += "        kill(pid, 2)\n"
    code += "sys.last = Last()\nfrom toprank.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_requests_of_metadata_outlive_a_failed_fit():
    import sklearn

    X, y = problem()
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = PNormPush().set_fit_request(sample_weight=True).fit(X, y)
        with pytest.raises(ValueError):
            ranker.fit(X, np.ones(len(X)))
        request = ranker.get_metadata_routing().fit.requests
    assert request == {"sample_weight": True, "label_propensity": None} and "coef_" in vars(ranker)


def test_a_warning_of_a_fit_points_at_the_line_that_asked_for_it():
    X, y = problem()
    fits = {
        "PNormPush": lambda: PNormPush(alpha=0).fit(X, X[:, 0] > 0),
        "PairRanker": lambda: PairRanker(alpha=0, loss="logistic").fit(X, X[:, 0]),
        "SmoothMarginRanker": lambda: SmoothMarginRanker(3).fit(X, y),
        "RankBoost": lambda: RankBoost(3).fit(np.ones((80, 1)), y),
        "inside a search": lambda: PNormPushCV(ps=(4,), alphas=(0.1,), cv=2, max_iter=1).fit(X, y),
    }
    for name, fit in fits.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        assert caught, name
        assert {warning.filename for warning in caught} == {__file__}, name


def run_benchmark(*arguments, timeout=600):
    program = ROOT / "benchmarks" / "interrupt.py"
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {name: line for name, line in found.items() if isinstance(line, dict)}


#: Seconds: the promise is one, measured by benchmarks/interrupt.py; machines of tests are busy.
LATEST = 10.0


def crowd():
    """How many programs wait for each core, this one among them: at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@POSIX
@pytest.mark.slow
def test_ctrl_c_stops_fits_and_their_threads(record_property):
    cases = ("pnorm-compiled-2-threads", "cv-2-threads", "rank-boost-2-threads", "blocks-memmap")
    found = run_benchmark("--quick", "--rounds", "3", *cases, "bootstrap-2-threads")
    record_property("cases", sum(line["interrupts"] for line in found.values()))
    assert sum(line["interrupts"] for line in found.values()) >= len(found)
    assert all(line.get("worst", 0) < LATEST * crowd() for line in found.values()), found


@POSIX
@pytest.mark.slow
def test_ctrl_c_stops_every_fit_metric_and_bootstrap(record_property):
    found = run_benchmark("--size", "0.1", "--rounds", "5", timeout=3600)
    record_property("cases", sum(line["interrupts"] for line in found.values()))
    assert all(line.get("worst", 0) < LATEST * crowd() for line in found.values()), found


def table(folder, n=2000):
    X, y = problem(n=n)
    lines = [f"{a:.6g},{b:.6g},{c:.6g},{label}" for (a, b, c), label in zip(X, y, strict=True)]
    path = folder / "rows.csv"
    path.write_text("\n".join(["a,b,c,y", *lines]) + "\n")
    return path


def interrupt_command(arguments, folder, after):
    """Run a command, interrupt it after so many seconds; what it left, and how it ended."""
    code = "import sys; sys.argv[0] = 'toprank'\nfrom toprank.cli import main\nprint(end='\\n', "
    code += "file=sys.stderr, flush=True)\nmain()"
    running = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stderr.readline() == b"\n"  # before that, Python itself would be interrupted
    time.sleep(after)
    running.send_signal(signal.SIGINT)
    sent = time.perf_counter()
    _, said = running.communicate(timeout=120)
    return running.returncode, said.decode(), time.perf_counter() - sent


def check_command(arguments, folder, after):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    status, said, seconds = interrupt_command(arguments, folder, after)
    if status == 0:  # it was done before
        return False
    assert (status, said) == (130, "toprank: interrupted; no file is half-written.\n"), after
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, after
    assert seconds < LATEST * crowd(), after
    return True


@pytest.mark.sampled(3)
@POSIX
@pytest.mark.parametrize("after", [0.02, 1.0])
def test_ctrl_c_ends_a_command_with_130_and_one_line(tmp_path, after):
    pytest.importorskip("typer", reason="the command line needs typer")
    pytest.importorskip("skops", reason="models are saved with skops")
    rows = table(tmp_path)
    check_command(["fit", rows, "-y", "y", "-o", "model"], tmp_path, after)


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("command", ["fit", "rank", "report"])
def test_ctrl_c_at_any_moment_ends_a_command_with_130_and_one_line(
    command, tmp_path, record_property
):
    pytest.importorskip("skops", reason="models are saved with skops")
    rows = table(tmp_path, 20_000)
    toprank_ = [sys.executable, "-m", "toprank.cli"]
    model = ["fit", rows, "-y", "y", "--p", "4", "-o", "model"]
    subprocess.run([*toprank_, *map(str, model)], cwd=tmp_path, check=True, capture_output=True)
    arguments = {
        "fit": ["fit", rows, "-y", "y", "-o", "other"],
        "rank": ["rank", "model", rows, "--all", "-o", "ranked.csv"],
        "report": ["report", rows, "-y", "y", "-o", "report.html"],
    }[command]
    start = time.perf_counter()
    done = [*toprank_, *map(str, arguments)]
    subprocess.run(done, cwd=tmp_path, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    rng = np.random.default_rng(0)
    (tmp_path / arguments[-1]).unlink()
    moments = rng.uniform(0.0, 0.8 * seconds, 15)
    tried = sum(check_command(arguments, tmp_path, after) for after in moments)
    record_property("cases", tried)
    assert tried >= 5


def test_an_interrupt_while_numba_compiles_leaves_a_ranker_that_can_be_fitted(monkeypatch):
    from numba.core.typed_passes import NativeLowering

    from toprank._extras import jit
    from toprank.rankers.boosting import kernels

    X, y = problem()
    expected = RankBoost(3).fit(X, y).decision_function(X)
    fresh = jit(nogil=True)(kernels.digitise.py_func)  # not compiled yet
    monkeypatch.setattr(kernels, "digitise", fresh)
    ranker = RankBoost(3)
    parameters = ranker.get_params(deep=False)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(NativeLowering, "run_pass", interrupted)
        ranker.fit(X, y)
    assert not fresh.signatures
    check_unfitted(ranker, parameters, f"{kernels.__file__}:1")
    np.testing.assert_array_equal(ranker.fit(X, y).decision_function(X), expected)
    assert fresh.signatures


def test_a_library_that_was_interrupted_while_it_was_loaded_stayed_half_loaded(
    tmp_path, monkeypatch
):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are heard by the main thread")
    (tmp_path / "slow_library").mkdir()
    (tmp_path / "slow_library" / "part.py").write_text("VALUE = 7\n")
    (tmp_path / "slow_library" / "__init__.py").write_text(
        "import signal\nimport slow_library.part\nsignal.raise_signal(signal.SIGINT)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            require("slow_library", "none")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert require("slow_library", "none").part.VALUE == 7
    finally:
        signal.signal(signal.SIGINT, handler)
        for name in ("slow_library", "slow_library.part"):
            sys.modules.pop(name, None)

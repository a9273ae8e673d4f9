"""Fits, scores and intervals in eight threads, forked and spawned processes are those of one.

Bit for bit: nothing is shared but what is read, and the pools of threads belong to their process.
"""

import os
import pickle
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

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
    inference,
    metrics,
)
from toprank.blocks import Workers, go_on

RANKERS = {
    "newton": PNormPush(solver="newton", n_jobs=2),
    "lbfgs": PNormPush(solver="lbfgs"),
    "coordinate": PNormPush(solver="coordinate", max_iter=10),
    "logistic": PNormPush(loss="logistic", max_iter=10),
    "hinge": PNormPush(loss="hinge", max_iter=5),
    "p = inf": PNormPush(p=np.inf, max_iter=10),
    "TopPush": PushRanker("max", loss="squared_hinge", max_iter=10),
    "IRPush": IRPush(),
    "ProperRanker": ProperRanker(n_jobs=2),
    "PNormPushCV": PNormPushCV(ps=(1, 4), alphas=(0.1,), cv=2, test_size=0.2, n_jobs=2),
    "RankBoost": RankBoost(5, n_jobs=2),
    "RankBoost graded": RankBoost(5, target="graded"),
    "RankBoost stopping": RankBoost(5, n_iter_no_change=2, random_state=0),
    "AdaBoostRanker": AdaBoostRanker(5),
    "SmoothMarginRanker": SmoothMarginRanker(5),
    "LabelRanker": LabelRanker(5, n_jobs=2),
    "PairRanker": PairRanker(max_iter=10, n_jobs=2),
    "PairRanker kernel": PairRanker(
        kernel="rbf", n_components=20, max_iter=10, random_state=np.random.RandomState(3)
    ),
    "LightGBM": PushTrees(n_estimators=3, max_leaves=4, subsample=0.7, random_state=0),
    "XGBoost": PushTrees(n_estimators=3, subsample=0.7, random_state=0, backend="xgboost"),
}
NEEDS = {"LightGBM": "lightgbm", "XGBoost": "xgboost"}
#: Those that draw random numbers.
DRAWING = ["RankBoost stopping", "PairRanker kernel", "PNormPushCV", "LightGBM", "XGBoost"]
THREADS = 8


def problem(seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(int)


def ranker_of(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{name} needs {NEEDS[name]}")
    return RANKERS[name]


def scores_of(ranker, X):
    return getattr(ranker, "decision_function", ranker.predict)(X)


def fitted_scores(ranker, seed):
    X, y = problem(seed)
    return scores_of(clone(ranker).fit(X, y), X)


def at_once(function, items):
    """Run the function in as many threads as there are items, all let go at the same moment."""
    gate = threading.Barrier(len(items))

    def run(item):
        gate.wait()
        return function(item)

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(run, items))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_in_eight_threads_give_the_bits_of_one_after_the_other(name):
    ranker, limits = ranker_of(name), threadpool_info()
    alone = [fitted_scores(ranker, seed) for seed in range(THREADS)]
    together = at_once(lambda seed: fitted_scores(ranker, seed), range(THREADS))
    np.testing.assert_array_equal(together, alone)
    assert threadpool_info() == limits


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_ranker_scores_from_eight_threads(name):
    X, y = problem()
    fitted = clone(ranker_of(name)).fit(X, y)
    parts = [problem(seed, n=200)[0] for seed in range(THREADS)]
    alone = [scores_of(fitted, part) for part in parts]
    np.testing.assert_array_equal(at_once(lambda part: scores_of(fitted, part), parts), alone)


def measured(seed):
    X, y = problem(seed, n=200)
    scores = X @ [1.0, 0.5, 0.0]
    values = list(metrics.summary(y, scores).as_dict().values())
    interval = inference.interval("bedroc", y, scores, n_resamples=50, random_state=0, n_jobs=2)
    both = inference.compare("precision_at", y, scores, X[:, 0], k=20)
    return [*values, interval.low, interval.high, both.difference, both.low, both.p_value]


@pytest.mark.more
def test_metrics_and_seeded_intervals_in_eight_threads_are_those_of_one():
    alone = [measured(seed) for seed in range(THREADS)]
    np.testing.assert_array_equal(at_once(measured, range(THREADS)), alone)


def test_blas_is_as_it_was_after_overlapping_fits_end_in_any_order():
    with threadpool_limits(2, user_api="blas"):
        before = threadpool_info()
        first, second = Workers(1).start_threads(), Workers(1).start_threads()
        first.__enter__(), second.__enter__()
        inside = [line["num_threads"] for line in threadpool_info() if line["user_api"] == "blas"]
        first.__exit__(None, None, None), second.__exit__(None, None, None)
        assert set(inside) <= {1} and threadpool_info() == before


def test_a_hold_on_blas_whose_end_was_cut_off_ends_with_the_next_one():
    with threadpool_limits(2, user_api="blas"):
        before = threadpool_info()
        from toprank.blocks import threads

        lost = threads._BLAS_LIMIT.enter()
        del lost  # an interrupt fell between the work and its end
        with Workers(1).start_threads():
            pass
        assert threadpool_info() == before


def test_an_error_in_one_thread_stops_the_others():
    started, rounds = threading.Barrier(2), []

    def work(item):
        started.wait()
        if item == 0:
            raise ValueError("enough")
        for _ in range(100_000):
            rounds.append(item)
            go_on()
            started_waiting.wait(0.001)
        return item

    started_waiting = threading.Event()
    with pytest.raises(ValueError, match="enough"):
        workers = Workers(2)
        with workers.start_threads():
            list(workers.map(work, [0, 1]))
    assert len(rounds) < 100_000
    assert not [t for t in threading.enumerate() if t.name.startswith("toprank")]


def test_a_pool_inside_a_pool_stops_with_it():
    inner_rounds, going = [], threading.Event()

    def inner(item):
        for _ in range(100_000):
            inner_rounds.append(item)
            going.set()
            go_on()
            threading.Event().wait(0.001)

    def outer(item):
        if item == 0:
            going.wait(10)
            raise ValueError("enough")
        nested = Workers(2)
        with nested.start_threads():
            list(nested.map(inner, [0, 1]))

    workers = Workers(2)
    with pytest.raises(ValueError, match="enough"), workers.start_threads():
        list(workers.map(outer, [0, 1]))
    assert len(inner_rounds) < 100_000


def run_script(body, timeout=300):
    """Run a script in a process of its own, where forking meets no threads of pytest's."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(body)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


FORKED = """
    import os, signal, sys, threading, time
    import numpy as np
    from toprank import PNormPush, PNormPushCV, RankBoost, ProperRanker, PushTrees
    from toprank.objective import labelled
    from threadpoolctl import threadpool_info

    labelled.COMPILED_FROM = 0  # compiled code, as for large matrices
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    y = (X[:, 0] + rng.standard_normal(400) > 0).astype(int)
    rankers = [
        PNormPush(solver="lbfgs", n_jobs=2), RankBoost(10, n_jobs=2), ProperRanker(n_jobs=2),
        PNormPushCV(ps=(4,), alphas=(0.1,), cv=2, n_jobs=2),
    ]
    for backend in ("lightgbm", "xgboost"):
        try:
            __import__(backend)
        except ImportError:
            continue
        rankers.append(PushTrees(n_estimators=3, backend=backend))

    def answers():
        return [ranker.fit(X, y).decision_function(X) for ranker in rankers]

    expected, limits = answers(), threadpool_info()
    busy = threading.Event()
    over = threading.Event()

    def others():  # so that some fork finds a lock held
        while not over.is_set():
            PNormPush(n_jobs=2).fit(X, y).decision_function(X[:1])
            busy.set()

    thread = threading.Thread(target=others)
    thread.start()
    busy.wait()
    try:
        for _ in range(FORKS):
            child = os.fork()
            if child == 0:
                signal.alarm(120)  # a deadlock ends here
                same = all(map(np.array_equal, answers(), expected))
                os._exit(0 if same and threadpool_info() == limits else 1)
            status = os.waitpid(child, 0)[1]
            assert status == 0, f"the child ended with {status}"
    finally:
        over.set()
        thread.join()
    print("as alone")
"""


@pytest.mark.more
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_fits_as_its_parent_even_while_that_fits():
    assert run_script(FORKED.replace("FORKS", "3")) == "as alone\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forty_forked_processes_fit_as_their_parent():
    assert run_script(FORKED.replace("FORKS", "40"), timeout=1800) == "as alone\n"


FIRST_USE = """
    import threading
    from concurrent.futures import ThreadPoolExecutor
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = (X[:, 0] + rng.standard_normal(200) > 0).astype(int)
    gate = threading.Barrier(8)

    def fit(_):
        gate.wait()
        from toprank import PairRanker, RankBoost
        return RankBoost(5).fit(X, y).decision_function(X) + PairRanker().fit(X, y).predict(X)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fit, range(8)))
    assert all(np.array_equal(found[0], one) for one in found)
    print("alike")
"""


@pytest.mark.more
def test_eight_threads_may_load_and_compile_at_the_same_moment():
    assert run_script(FIRST_USE) == "alike\n"


@pytest.mark.slow
def test_a_spawned_process_fits_as_its_parent(tmp_path):
    program = tmp_path / "spawned.py"
    program.write_text(
        textwrap.dedent("""
        import multiprocessing
        import numpy as np
        from toprank import PNormPush, RankBoost

        def fit(seed):
            rng = np.random.default_rng(seed)
            X = rng.standard_normal((200, 3))
            y = (X[:, 0] + rng.standard_normal(200) > 0).astype(int)
            rankers = PNormPush(n_jobs=2), RankBoost(10, n_jobs=2)
            return [ranker.fit(X, y).decision_function(X) for ranker in rankers]

        if __name__ == "__main__":
            here = [fit(seed) for seed in range(4)]
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                there = pool.map(fit, range(4))
            np.testing.assert_array_equal(there, here)
        """)
    )
    subprocess.run([sys.executable, str(program)], check=True, timeout=300)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["newton", "RankBoost", "PNormPushCV", "LightGBM"])
def test_a_search_over_processes_finds_what_one_process_finds(name):
    X, y = problem(n=200)
    grid = {"n_jobs": [1, 2]}
    searches = [
        GridSearchCV(clone(ranker_of(name)), grid, cv=3, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    np.testing.assert_array_equal(scores[0], scores[1])


@pytest.mark.parametrize("name", DRAWING)
def test_the_same_seed_gives_the_same_fit_whatever_ran_between(name):
    ranker = ranker_of(name)
    if isinstance(ranker.get_params().get("random_state"), np.random.RandomState):
        ranker = clone(ranker).set_params(random_state=3)
    X, y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = pickle.dumps(scores_of(clone(ranker).fit(X, y), X))
        np.random.default_rng().standard_normal(3)
        RankBoost(3, n_iter_no_change=1).fit(*problem(5))
        inference.interval("bedroc", y, X[:, 0], n_resamples=20)
        again = pickle.dumps(scores_of(clone(ranker).fit(X, y), X))
    assert first == again


def test_warnings_are_caught_by_one_thread_at_a_time():
    """Two threads loading models at once left the process with the filters of one of them."""
    from toprank.models.errors import catch_warnings

    filters, inside = list(warnings.filters), threading.Event()

    def first():
        with catch_warnings(record=True):
            warnings.simplefilter("always")
            inside.set()
            second_tries.wait(0.2)

    def second():
        inside.wait()
        with catch_warnings():
            warnings.simplefilter("ignore")
            found.append(list(warnings.filters[1:]))

    second_tries, found = threading.Event(), []
    pair = [threading.Thread(target=work) for work in (first, second)]
    for thread in pair:
        thread.start()
    for thread in pair:
        thread.join()
    assert found == [filters] and warnings.filters == filters

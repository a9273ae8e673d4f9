"""Trees on a Dask cluster: the same trees as one process grows, by the push of all rows."""

import os
import signal
import time
import warnings
from threading import Thread

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from toprank import PushTrees
from toprank.interop.boosting import PushGradients
from toprank.interop.xgboost import push_metric, push_objective
from toprank.metrics import precision_at
from toprank.rankers.trees import distributed_dask
from toprank.rankers.trees.distributed_dask import _start, _wait

distributed = pytest.importorskip("distributed", reason="needs pip install 'toprank[dask]'")
dask = pytest.importorskip("dask")
xgboost = pytest.importorskip("xgboost", reason="needs pip install 'toprank[xgboost]'")
pytest.importorskip("xgboost.dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


def trees(**settings):
    # a cluster takes its probabilities from the training rows
    usual = {"backend": "xgboost", "n_estimators": 12, "random_state": 0, "calibration": "training"}
    usual |= {"subsample": 1.0, "p": 4}  # each worker draws its own rows
    return PushTrees(**{**usual, **settings})


def dump(fitted):
    return fitted.booster_.get_dump(with_stats=True)


#: Chunks of very unequal sizes; X is cut along its columns too.
SKEWED = ((900, 1, 250, 49), (2, 2))


def on_cluster(client, X, y, weight=None, chunks=SKEWED, **settings):
    rows = None if weight is None else da.from_array(weight, chunks=300)
    return trees(**settings).fit_dask(
        client, da.from_array(X, chunks=chunks), da.from_array(y, chunks=500), rows
    )


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"p": 1.0, "colsample": 0.5},
        {"p": np.inf},
        {"p": None},
        {"loss": "logistic"},
        {"loss": "squared_hinge", "p": 2.0},
        {"price": "exponential"},
        {"price": "log1p", "link": "logistic"},
        {"link": "p_classification"},
    ],
)
def test_every_price_and_loss_gives_the_trees_of_one_process(client, binned, settings):
    X, y, weight = binned
    together, alone = (
        on_cluster(client, X, y, weight, **settings),
        trees(**settings).fit(X, y, weight),
    )
    assert dump(together) == dump(alone)
    np.testing.assert_allclose(together.intercept_, alone.intercept_, rtol=1e-9)
    np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), rtol=1e-9)


@pytest.mark.more
def test_a_push_against_local_rows_only_gives_other_trees(client, binned):
    X, y, _ = binned
    data = xgboost.dask.DaskDMatrix(
        client, da.from_array(X, chunks=(600, -1)), da.from_array(y, chunks=600)
    )

    class Naive:
        def __call__(self, scores, rows):
            return PushGradients(4.0).at(rows.get_label(), scores)

    params = {"base_score": 0.0, "max_bin": 64, "tree_method": "hist"}
    alone = xgboost.train(params, xgboost.DMatrix(X, y), 12, obj=push_objective(4.0))
    scores = alone.predict(xgboost.DMatrix(X))
    exact, naive = (
        xgboost.dask.train(client, params, data, 12, obj=objective)["booster"].predict(
            xgboost.DMatrix(X)
        )
        for objective in (push_objective(4.0), Naive())
    )
    np.testing.assert_array_equal(exact, scores)
    assert np.abs(naive - scores).max() > 0.01


def test_objective_and_metric_are_global_in_xgboosts_own_interface(client, binned):
    X, y, _ = binned
    dX, dy = da.from_array(X, chunks=(700, -1)), da.from_array(y, chunks=700)
    data = xgboost.dask.DaskDMatrix(client, dX, dy)
    metric = push_metric("precision_at", k=40)
    params = {"base_score": 0.0, "disable_default_eval_metric": 1}
    grown = xgboost.dask.train(
        client,
        params,
        data,
        5,
        obj=push_objective(2.0),
        custom_metric=metric,
        evals=[(data, "all")],
    )
    scores = grown["booster"].predict(xgboost.DMatrix(X))
    assert grown["history"]["all"][metric.label][-1] == pytest.approx(precision_at(y, scores, k=40))


@pytest.mark.more
def test_workers_without_positives_or_without_rows_are_fine(client, binned):
    X, y, _ = binned
    order = np.argsort(-y, kind="stable")
    X, y = X[order], y[order]
    together = on_cluster(client, X, y, chunks=((int(y.sum()), int((1 - y).sum())), (4,)))
    assert dump(together) == dump(trees().fit(X, y))
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(label=y), npartitions=4)
    some = frame[frame["a"] < 5]  # unknown sizes
    none = dd.concat([some, some[some["a"] > 100]])  # and partitions without rows
    fitted = trees().fit_dask(client, none[list("abcd")], none["label"])
    rows = X[:, 0] < 5
    assert dump(fitted) == dump(trees().fit(pd.DataFrame(X[rows], columns=list("abcd")), y[rows]))


@pytest.mark.more
def test_early_stopping_looks_at_the_rows_of_all_workers(client, binned):
    X, y, _ = binned
    train, test = slice(0, 800), slice(800, None)
    settings = {"n_estimators": 60, "n_iter_no_change": 5, "metric_kwargs": {"k": 30}}
    together = trees(**settings).fit_dask(
        client,
        da.from_array(X[train], chunks=(300, -1)),
        y[train],
        eval_set=(da.from_array(X[test], chunks=(250, -1)), da.from_array(y[test], chunks=250)),
    )
    alone = trees(**settings).fit(X[train], y[train], eval_set=(X[test], y[test]))
    np.testing.assert_array_equal(together.validation_scores_, alone.validation_scores_)
    assert together.n_iter_ == alone.n_iter_ < 60
    assert dump(together) == dump(alone)
    assert together.validation_standard_error_ == pytest.approx(alone.validation_standard_error_)


@pytest.mark.more
def test_rows_held_out_are_a_share_of_each_class_wherever_they_lie(client, binned):
    X, y, _ = binned
    # asked for by name, a metric stops at its best round, however early
    settings = {"early_stopping": True, "validation_fraction": 0.25, "stop_by": "average_precision"}
    fitted, again = (on_cluster(client, X, y, **settings) for _ in range(2))
    assert dump(fitted) == dump(again)
    assert fitted.n_iter_ == np.argmax(fitted.validation_scores_) + 1


@pytest.mark.parametrize("grouped", [False, True])
def test_the_rows_held_out_are_those_that_one_process_holds_out(client, binned, grouped):
    X, y, weight = binned
    groups = np.random.default_rng(1).integers(0, 40, len(y)) if grouped else None
    settings = {"early_stopping": True, "n_estimators": 60, "n_iter_no_change": 5}
    alone = trees(**settings).fit(X, y, weight, groups=groups)
    together = trees(**settings).fit_dask(
        client,
        da.from_array(X, chunks=SKEWED),
        y,
        da.from_array(weight, chunks=300),
        groups=None if groups is None else da.from_array(groups, chunks=400),
    )
    np.testing.assert_allclose(together.validation_scores_, alone.validation_scores_, rtol=1e-12)
    assert together.n_iter_ == alone.n_iter_
    np.testing.assert_allclose(together.decision_function(X), alone.decision_function(X), rtol=1e-5)


@pytest.mark.more
def test_groups_are_compared_within_themselves_across_workers(client, binned):
    X, y, _ = binned
    groups = np.random.default_rng(1).integers(0, 30, len(y)).astype(str)
    together = trees().fit_dask(
        client, da.from_array(X, chunks=(500, -1)), y, groups=da.from_array(groups, chunks=500)
    )
    assert dump(together) == dump(trees().fit(X, y, groups=groups))


@pytest.mark.more
def test_frames_keep_their_names_and_categories(client, binned):
    X, y, _ = binned
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["d"] = np.array(["low", "mid", "high", "top"])[(X[:, 3] // 5).astype(int)]
    labels = np.where(y == 1, "yes", "no")
    cut = dd.from_pandas(frame.assign(label=labels), npartitions=3)
    together = trees().fit_dask(client, cut[list("abcd")], cut["label"])
    alone = trees().fit(frame, labels)
    assert dump(together) == dump(alone)
    np.testing.assert_array_equal(together.feature_names_in_, list("abcd"))
    np.testing.assert_array_equal(together.classes_, ["no", "yes"])
    np.testing.assert_array_equal(together.feature_importances_, alone.feature_importances_)
    np.testing.assert_allclose(together.explain(frame), alone.explain(frame), atol=1e-12)


@pytest.mark.more
def test_trees_start_from_a_model_or_from_scores(client, binned):
    X, y, _ = binned
    first = trees(n_estimators=3).fit(X, y)
    dX = da.from_array(X, chunks=(500, -1))
    together = trees().fit_dask(client, dX, y, init_model=first)
    alone = trees().fit(X, y, init_model=first)
    assert dump(together) == dump(alone)
    np.testing.assert_allclose(together.decision_function(X), alone.decision_function(X))
    start = first.decision_function(X)
    together, alone = (
        trees().fit_dask(client, dX, y, init_score=start),
        trees().fit(X, y, init_score=start),
    )
    assert dump(together) == dump(alone)


@pytest.mark.more
def test_p_is_chosen_on_a_sample_and_the_trees_are_grown_on_the_workers(client, binned):
    X, y, weight = binned
    settings = {"ps": (1.0, 4.0), "cv": 3, "n_estimators": 6}
    dX = da.from_array(X, chunks=(500, -1))
    together = trees(p="auto", **settings).fit_dask(client, dX, y, weight)
    present = weight > 0  # rows without a weight are not drawn
    alone = trees(p="auto", **settings).fit(X[present], y[present], weight[present])
    np.testing.assert_allclose(together.choice_.fold_scores, alone.choice_.fold_scores)
    assert together.p_ == alone.p_
    given = trees(p=together.p_, n_estimators=6).fit(X, y, weight)
    assert dump(together) == dump(given)


@pytest.mark.more
def test_where_p_cannot_be_chosen_it_is_4_and_a_warning_says_so(client, binned):
    X, y, _ = binned
    dX, auto = da.from_array(X, chunks=(500, -1)), trees(p="auto")
    start = np.linspace(-1, 1, len(y))
    with pytest.warns(UserWarning, match="p is not chosen by a comparison: scores to start"):
        auto.fit_dask(client, dX, y, init_score=start)
    assert auto.p_ == 4 and auto.choice_ is None
    frame = pd.DataFrame(X, columns=list("abcd")).assign(d=np.where(X[:, 3] > 9, "low", "high"))
    with pytest.warns(UserWarning, match="columns of text or categories are not drawn"):
        cut = dd.from_pandas(frame.assign(label=y), npartitions=2)
        auto.fit_dask(client, cut[list("abcd")], cut["label"])
    assert auto.p_ == 4 and auto.predict_proba(frame).shape == (len(y), 2)


@pytest.mark.parametrize(
    ("settings", "change", "says"),
    [
        ({"p": "auto"}, {"sample_weight": np.full(1200, -1.0)}, "negative values"),
        ({"p": "auto"}, {"y": np.zeros(1200)}, "one class only"),
        ({"backend": "lightgbm"}, {}, "backend='xgboost'"),
        ({}, {"y": np.zeros(1200)}, "one class only"),
        ({}, {"sample_weight": np.full(1200, -1.0)}, "negative values"),
        ({}, {"sample_weight": np.r_[np.nan, np.ones(1199)]}, "NaN or infinity"),
        ({}, {"y": np.zeros(7)}, "y has 7 rows"),
        ({}, {"X": np.r_[[[np.inf] * 4], np.ones((1199, 4))]}, "infinity"),
    ],
)
def test_what_cannot_be_fitted_is_refused_on_all_workers_at_once(
    client, binned, settings, change, says
):
    given = {"X": binned[0], "y": binned[1], **change}
    given["X"] = da.from_array(given["X"], chunks=(300, -1))
    with pytest.raises(ValueError, match=says):
        trees(**settings).fit_dask(client, **given)


def said_by(fit):
    """What a fit warns of, or why it fails."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        try:
            fit()
        except ValueError as error:
            return [str(error)]
    return [str(warning.message) for warning in caught]


def out_of_reach(X, weight, what):
    X, weight = X.copy(), 1.0 + weight
    if what == "tiny":
        X[:, 3] *= 1e-40
    elif what == "tiny but for absent rows":
        X[:, 3] *= 1e-40
        X[7, 3], weight[7] = 1.0, 0.0
    elif what == "huge":
        X[-1, 2] = 1e60  # on one worker only
    elif what == "huge but absent":
        X[-1, 2], weight[-1] = 1e60, 0.0
    elif what == "weights too small":
        weight[-1] = 1e-35
    elif what == "weights too large":
        weight *= 1e29
    elif what == "weights of shares":
        weight /= 1e6
    return X, weight


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("tiny", "takes them for zero"),
        ("tiny but for absent rows", "takes them for zero"),
        ("huge", "Column 2 of X has entries of up to 1e"),
        ("huge but absent", None),
        ("weights too small", "hold weights as float32"),
        ("weights too large", "hold weights as float32"),
        ("weights of shares", "No tree found a split"),
        ("nothing", None),
    ],
)
def test_what_a_library_cannot_hold_was_not_told_on_clusters(client, binned, what, says):
    X, y, weight = binned
    X, weight = out_of_reach(X, weight, what)
    alone = said_by(lambda: trees(n_estimators=2).fit(X, y, weight))
    together = said_by(lambda: on_cluster(client, X, y, weight, n_estimators=2))
    assert together == alone
    assert len(alone) == (says is not None) and (says is None or says in alone[0])


def test_rows_to_stop_by_that_are_out_of_reach_are_refused_on_all_workers(client, binned):
    X, y, _ = binned
    held = out_of_reach(X, np.ones(len(y)), "huge")[0]
    cut = da.from_array(X, chunks=(600, -1))
    with pytest.raises(ValueError, match="Column 2 of X has entries"):
        trees().fit_dask(client, cut, y, eval_set=(da.from_array(held, chunks=(600, -1)), y))


@pytest.mark.more
def test_a_worker_that_is_gone_before_the_trees_grow_is_named(client):
    quick = {"distributed.comm.timeouts.connect": "500ms", "distributed.comm.retry.count": 0}
    with (
        dask.config.set(quick),
        pytest.raises(RuntimeError, match=r"worker tcp://127\.0\.0\.1:1 went away"),
    ):
        _start(client, trees(), {"tcp://127.0.0.1:1": ([], None)}, "run")


@pytest.mark.more
def test_the_error_of_one_worker_is_raised_though_another_does_not_end(client, monkeypatch):
    monkeypatch.setattr(distributed_dask, "_LOOK", 0.05)
    monkeypatch.setattr(distributed_dask, "_GRACE", 0.3)

    def refuse():
        raise ValueError("the rows are odd")

    def wait_for_the_end():
        from distributed import Event

        return Event("the end").wait(60)

    workers = list(client.nthreads())
    tasks = [
        client.submit(work, workers=[worker], pure=False)
        for work, worker in zip((refuse, wait_for_the_end), workers, strict=True)
    ]
    with pytest.raises(ValueError, match="the rows are odd"):
        _wait(client, tasks, workers)
    assert tasks[1].status == "pending"
    distributed.Event("the end", client=client).set()
    assert tasks[1].result()


@pytest.mark.more
def test_a_worker_that_goes_away_is_named_and_nothing_hangs(client, binned):
    X, y, _ = binned
    X, y = np.tile(X, (20, 1)), np.tile(y, 20)
    victim = next(iter(client.run(os.getpid).values()))

    def kill_once_trees_grow():
        while not any("toprank-trees" in str(keys) for keys in client.processing().values()):
            time.sleep(0.1)
        time.sleep(1.0)
        os.kill(victim, signal.SIGKILL)

    Thread(target=kill_once_trees_grow).start()
    with pytest.raises((RuntimeError, xgboost.core.XGBoostError)):
        trees(n_estimators=100_000, max_leaves=4).fit_dask(
            client, da.from_array(X, chunks=(6000, -1)), y
        )

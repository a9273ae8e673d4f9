"""The push as an objective of LightGBM and of XGBoost, in both of their interfaces."""

import pickle
import sys

import lightgbm
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from toprank.interop import boosting
from toprank.interop import lightgbm as in_lightgbm
from toprank.interop import xgboost as in_xgboost
from toprank.metrics import precision_at, recall_at
from toprank.objective import build_objective, grad_curvature

ROOMS = [pytest.param(room, id=room.__name__.split(".")[-1]) for room in (in_lightgbm, in_xgboost)]
QUIET = {"verbose": -1, "num_threads": 1}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.logistic(size=600) > 3).astype(float)
    weight = rng.integers(1, 4, 600).astype(float)
    return X, y, weight


def lightgbm_scores(data, rounds=10, weight=None, group=None, **kwargs):
    X, y, _ = data
    params = {**QUIET, "objective": in_lightgbm.push_objective(**kwargs)}
    table = lightgbm.Dataset(X, y, weight=weight, group=group)
    return lightgbm.train(params, table, rounds).predict(X)


def xgboost_scores(data, rounds=10, weight=None, qid=None, **kwargs):
    import xgboost

    X, y, _ = data
    table = xgboost.DMatrix(X, y, weight=weight, qid=qid)
    params = {"base_score": 0.0, "nthread": 1}
    booster = xgboost.train(params, table, rounds, obj=in_xgboost.push_objective(**kwargs))
    return booster.predict(table)


SCORES = {"lightgbm": lightgbm_scores, "xgboost": xgboost_scores}


@pytest.mark.parametrize("p", [1.0, 4.0, 64.0])
@pytest.mark.parametrize("room", ROOMS)
def test_the_gradient_is_the_engines_in_proportion_to_the_total_weight(room, p, data):
    _, y, weight = data
    scores = np.random.default_rng(1).normal(size=len(y))
    gradient, curvature = room.push_objective(p)(y, scores, weight)
    ours, h = grad_curvature(build_objective(y > 0, weight, p=p), scores)
    share = np.average(y, weights=weight)
    factor = weight.sum() * share * (1 - share) / (1 + p)
    np.testing.assert_allclose(gradient, factor * ours, rtol=2e-6, atol=1e-12)
    near = h > 1e-4 * h.max()
    np.testing.assert_allclose(curvature[near], factor * h[near], rtol=2e-6)
    assert np.all(curvature > 0)
    assert gradient.dtype == curvature.dtype == np.float32


@pytest.mark.parametrize("loss", ["exponential", "logistic", "hinge", "squared_hinge"])
@pytest.mark.parametrize("room", ROOMS)
def test_the_curvature_of_equal_scores_sums_to_that_of_the_binary_objective(room, loss, data):
    _, y, weight = data
    _, curvature = room.push_objective(loss=loss)(y, np.zeros(len(y)), weight)
    share = np.average(y, weights=weight)
    assert curvature.sum() == pytest.approx(weight.sum() * share * (1 - share), rel=1e-5)


def test_one_round_by_hand_is_lightgbms(data):
    X, y, _ = data
    column = np.round(X[:, :1], 1)  # few enough values for a bin each
    params = {**QUIET, "num_leaves": 2, "learning_rate": 1.0, "lambda_l2": 0.7}
    params |= {"min_data_in_leaf": 0, "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.0}
    objective = in_lightgbm.push_objective(4.0)
    booster = lightgbm.train({**params, "objective": objective}, lightgbm.Dataset(column, y), 1)
    np.testing.assert_allclose(
        booster.predict(column), stump_by_hand(column[:, 0], y, objective), rtol=1e-5
    )


def test_one_round_by_hand_is_xgboosts(data):
    import xgboost

    X, y, _ = data
    column = X[:, :1]
    params = {"max_depth": 1, "learning_rate": 1.0, "lambda": 0.7, "min_child_weight": 0.0}
    params |= {"base_score": 0.0, "nthread": 1, "tree_method": "exact"}
    objective = in_xgboost.push_objective(4.0)
    table = xgboost.DMatrix(column, y)
    scores = xgboost.train(params, table, 1, obj=objective).predict(table)
    np.testing.assert_allclose(scores, stump_by_hand(column[:, 0], y, objective), rtol=1e-5)


def stump_by_hand(x, y, objective):
    """The leaves of the best of all splits."""
    gradient, curvature = (v.astype(float) for v in objective(y, np.zeros(len(y))))
    cuts = np.unique(x)[:-1]
    left = x[None, :] <= cuts[:, None]

    def value(g, h):
        return g**2 / (h + 0.7)

    g, h = left @ gradient, left @ curvature
    gain = value(g, h) + value(gradient.sum() - g, curvature.sum() - h)
    best = left[np.argmax(gain)]
    out = np.empty(len(y))
    for side in (best, ~best):
        out[side] = -gradient[side].sum() / (curvature[side].sum() + 0.7)
    return out


@pytest.mark.parametrize("library", SCORES)
def test_a_weight_is_a_repetition(library, data):
    X, y, weight = data
    times = weight.astype(int)
    repeated = tuple(np.repeat(part, times, axis=0) for part in (X, y, weight))
    if library == "lightgbm":
        # leaves are large: LightGBM rounds the number of their rows from their curvature, and where
        # they are few its limits see the difference between a weight of 3 and three rows
        params = {**QUIET, "min_data_in_leaf": 1, "min_data_in_bin": 1, "max_bin": 1000}
        params["num_leaves"] = 6
        ours, theirs = (
            lightgbm.train(
                {**params, "objective": in_lightgbm.push_objective(4.0)},
                lightgbm.Dataset(A, b, weight=w),
                20,
            ).predict(X)
            for A, b, w in ((X, y, weight), (repeated[0], repeated[1], None))
        )
    else:
        import xgboost

        ours = xgboost_scores(data, weight=weight)
        table = xgboost.DMatrix(repeated[0], repeated[1])
        params = {"base_score": 0.0, "nthread": 1}
        booster = xgboost.train(params, table, 10, obj=in_xgboost.push_objective())
        theirs = booster.predict(xgboost.DMatrix(X))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("library", SCORES)
def test_hundreds_of_rounds_at_p_64_stay_finite_and_lower_the_objective(library, data):
    _, y, _ = data
    objective = build_objective(y > 0, p=64.0)
    values = [
        objective.value(SCORES[library](data, rounds, p=64.0).astype(np.float32).astype(float))
        for rounds in (1, 20, 400)
    ]
    assert np.all(np.isfinite(values))
    assert values[0] > values[1] > values[2]


@pytest.mark.parametrize("price", ["identity", "exponential", "log1p", "max"])
@pytest.mark.parametrize("library", SCORES)
def test_every_price_trains(library, price, data):
    assert roc_auc_score(data[1], SCORES[library](data, price=price)) > 0.8


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
@pytest.mark.parametrize("library", SCORES)
def test_every_loss_trains(library, loss, data):
    assert roc_auc_score(data[1], SCORES[library](data, loss=loss)) > 0.8


@pytest.mark.parametrize("library", SCORES)
def test_groups_come_from_the_data_set_or_from_the_caller(library, data):
    groups = np.repeat(np.arange(60), 10)
    by_caller = SCORES[library](data, groups=groups)
    if library == "lightgbm":
        by_data = SCORES[library](data, group=np.full(60, 10))
    else:
        by_data = SCORES[library](data, qid=groups)
    np.testing.assert_array_equal(by_caller, by_data)
    assert not np.array_equal(by_caller, SCORES[library](data))


@pytest.mark.parametrize("room", ROOMS)
def test_in_groups_only_pairs_of_one_group_count(room):
    y, groups = np.array([1.0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1])
    gradient, _ = room.push_objective(groups=groups)(y, np.zeros(5))
    np.testing.assert_array_equal(gradient[3:], 0.0)
    assert gradient[0] < 0 < gradient[1]


def test_lightgbms_estimator_hands_over_the_weights(data):
    X, y, weight = data
    model = lightgbm.LGBMClassifier(
        objective=in_lightgbm.push_objective(4.0), n_estimators=10, verbose=-1, n_jobs=1
    )
    scores = model.fit(X, y, sample_weight=weight).booster_.predict(X)
    np.testing.assert_allclose(scores, lightgbm_scores(data, weight=weight), rtol=1e-12)


def test_xgboosts_estimator_hands_over_the_weights(data):
    import xgboost

    X, y, weight = data
    model = xgboost.XGBClassifier(
        objective=in_xgboost.push_objective(4.0), n_estimators=10, base_score=0.5, n_jobs=1
    )
    model.fit(X, y.astype(int), sample_weight=weight)
    scores = model.predict(X, output_margin=True)
    order = xgboost_scores(data, weight=weight)
    assert np.corrcoef(scores, order)[0, 1] > 0.999


def test_lightgbm_stops_by_the_metric_named(data):
    X, y, _ = data
    train = lightgbm.Dataset(X[:400], y[:400])
    held_out = lightgbm.Dataset(X[400:], y[400:], reference=train)
    record = {}
    booster = lightgbm.train(
        {**QUIET, "objective": in_lightgbm.push_objective(), "metric": "None"},
        train,
        60,
        valid_sets=[held_out],
        feval=in_lightgbm.push_metric("recall_at", k=20),
        callbacks=[lightgbm.early_stopping(5, verbose=False), lightgbm.record_evaluation(record)],
    )
    values = record["valid_0"]["recall_at(k=20)"]
    assert list(record["valid_0"]) == ["recall_at(k=20)"]
    assert booster.best_iteration == int(np.argmax(values)) + 1
    scores = booster.predict(X[400:], num_iteration=booster.best_iteration)
    assert recall_at(y[400:], scores, 20) == pytest.approx(max(values))


@pytest.mark.parametrize("name", ["recall_at", "pnorm_risk"])
def test_xgboost_stops_by_the_metric_named_whichever_way_is_up(name, data):
    import xgboost

    X, y, _ = data
    kwargs = {"k": 20} if name == "recall_at" else {"p": 2.0}
    metric, record = in_xgboost.push_metric(name, **kwargs), {}
    booster = xgboost.train(
        {"base_score": 0.0, "nthread": 1, "disable_default_eval_metric": 1},
        xgboost.DMatrix(X[:400], y[:400]),
        60,
        obj=in_xgboost.push_objective(),
        custom_metric=metric,
        evals=[(xgboost.DMatrix(X[400:], y[400:]), "held_out")],
        evals_result=record,
        callbacks=[in_xgboost.early_stopping(metric, rounds=5)],
        verbose_eval=False,
    )
    values = np.array(record["held_out"][metric.label])
    best = np.argmax(values) if metric.higher_is_better else np.argmin(values)
    assert booster.best_iteration == best


def test_metrics_see_weights_and_groups(data):
    _, y, weight = data
    scores = np.random.default_rng(0).normal(size=600)
    metric = in_lightgbm.push_metric("precision_at", k=3)
    sizes = np.full(60, 10)
    _, value, up = metric(y, scores, weight, sizes)
    groups = np.repeat(np.arange(60), 10)
    assert up
    assert value == precision_at(y, scores, 3, groups=groups, sample_weight=weight)
    assert in_xgboost.push_metric("precision_at", k=3)(y, scores, sample_weight=weight) == (
        precision_at(y, scores, 3, sample_weight=weight)
    )


@pytest.mark.parametrize("room", ROOMS)
def test_the_label_split_is_kept_until_the_labels_change(room, data):
    _, y, weight = data
    objective = room.push_objective()
    objective(y, np.zeros(600))
    built = objective._built
    objective(y.copy(), np.ones(600))
    assert objective._built is built
    fresh = room.push_objective()(1 - y, np.zeros(600), weight)
    np.testing.assert_array_equal(objective(1 - y, np.zeros(600), weight)[0], fresh[0])
    assert objective._built is not built


@pytest.mark.parametrize("room", ROOMS)
def test_an_objective_can_be_pickled(room, data):
    _, y, _ = data
    objective = room.push_objective(8.0, loss="logistic")
    before = objective(y, np.zeros(600))
    again = pickle.loads(pickle.dumps(objective))
    assert repr(again) == "push_objective(p=8.0, price='power', loss='logistic')"
    np.testing.assert_array_equal(again(y, np.zeros(600))[0], before[0])


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"p": 0.5}, "not a push"),
        ({"loss": "absolute"}, "Unknown loss"),
        ({"loss": "zero_one"}, "no slope"),
        ({"price": "log1p", "loss": "hinge"}, "convex with the exponential loss"),
        ({"end": "middle"}, "Unknown end"),
    ],
)
def test_unusable_settings_are_refused_at_once(room, kwargs, message):
    with pytest.raises(ValueError, match=message):
        room.push_objective(**kwargs)


@pytest.mark.parametrize("room", ROOMS)
def test_unusable_data_are_refused_in_words(room):
    with pytest.raises(ValueError, match="two classes"):
        room.push_objective()(np.arange(3.0), np.zeros(3))
    with pytest.raises(ValueError, match="no pair to rank"):
        room.push_objective(groups=[0, 1])(np.array([0.0, 1.0]), np.zeros(2))
    with pytest.raises(ValueError, match="one group per row"):
        room.push_objective(groups=[0])(np.array([0.0, 1.0]), np.zeros(2))
    with pytest.raises(ValueError, match="not available with groups"):
        room.push_objective(end="both", groups=[0, 0])(np.array([0.0, 1.0]), np.zeros(2))
    with pytest.raises(ValueError, match="does not know"):
        room.push_metric("auc", k=3)
    with pytest.raises(ValueError, match="Unknown metric"):
        room.push_metric("accuracy")


@pytest.mark.parametrize("room", ROOMS)
def test_rows_that_play_no_part_keep_a_little_curvature(room):
    y = np.repeat([1.0, 0.0], [10, 990])
    scores = np.concatenate([np.full(10, 5.0), np.linspace(-1e3, 5.0, 990)])
    gradient, curvature = room.push_objective(64.0)(y, scores)
    assert np.all(np.isfinite(gradient))
    assert curvature.min() > 0
    assert curvature.sum() == pytest.approx(curvature[gradient != 0].sum(), rel=1e-3)


@pytest.fixture
def both_ways(monkeypatch):
    """Gradient and curvature of one list by NumPy, and by the compiled loops or None."""

    def compute(p, end, y, scores, weight):
        found = []
        monkeypatch.setattr(boosting, "_KERNELS", "not loaded")
        for enough in (2**62, 0):
            monkeypatch.setattr(boosting, "_COMPILED_FROM", enough)
            monkeypatch.setattr(boosting, "_LOADED_FROM", enough)
            objective = in_xgboost.push_objective(p, end=end)
            found.append(objective(y, scores, weight))
        return *found, objective._built.compiled()

    return compute


@pytest.mark.more
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("end", ["top", "bottom"])
@pytest.mark.parametrize("p", [1.0, 4.1, 64.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_loops_find_the_same_bits(p, end, weighted, dtype, both_ways):
    rng = np.random.default_rng(3)
    y = (rng.random(999) < 0.2).astype(float)
    weight = rng.integers(0, 4, 999).astype(float) if weighted else None
    for spread, middle in ((1.0, 0.0), (30.0, 0.0), (0.5, -300.0)):
        scores = (spread * rng.normal(size=999) + middle).astype(dtype)
        plain, compiled, loops = both_ways(p, end, y, scores, weight)
        np.testing.assert_array_equal(compiled, plain)
        if spread < 2.0:
            np.testing.assert_array_equal(loops(scores), plain)


@pytest.mark.more
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_compiled_loops_leave_what_is_out_of_their_range_to_numpy(bad, both_ways):
    y = np.repeat([1.0, 0.0], [3, 7])
    for place in (0, 9):
        scores = np.zeros(10)
        scores[place] = bad
        with np.errstate(invalid="ignore"):
            plain, compiled, loops = both_ways(4.0, "top", y, scores, None)
        if place == 9 or np.isnan(bad):  # a positive far up has no share, which is in range
            assert loops(scores) is None
        assert loops(scores[:5]) is None
        np.testing.assert_array_equal(compiled, plain)
    assert both_ways(4.0, "both", y, np.zeros(10), None)[2] is None


def test_compiled_loops_are_loaded_for_many_rows_or_many_rounds(monkeypatch):
    monkeypatch.setattr(boosting._RowsSoFar, "count", 0)
    monkeypatch.setattr(boosting, "_KERNELS", "not loaded")
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert boosting._repays_compiler(1_000_000)
    assert not boosting._repays_compiler(1_000)
    monkeypatch.setattr(boosting._RowsSoFar, "count", 100_000_000)
    assert boosting._repays_compiler(1_000)


def test_compiled_loops_that_are_loaded_serve_any_number_of_rows(monkeypatch):
    monkeypatch.setattr(boosting._RowsSoFar, "count", 0)
    monkeypatch.setitem(sys.modules, boosting._KERNELS, sys)
    assert boosting._repays_compiler(10)

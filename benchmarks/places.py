"""The tools around scikit-learn, each tried with the rankers: docs/how_to/other_tools.md.

    python benchmarks/places.py          try whatever is installed, and print a row for each

What is not installed is printed as such. Nothing here is timed: it works or it does not.
"""

from __future__ import annotations

import importlib
import tempfile
import warnings
from importlib.metadata import PackageNotFoundError, version

import joblib
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PNormPush, PNormPushCV, PushEnsemble, PushTrees
from toprank.datasets import load_wdbc
from toprank.metrics import scorer

X, Y = load_wdbc(return_X_y=True)
LINEAR = make_pipeline(StandardScaler(), PNormPush())
TREES = PushTrees(n_estimators=20, calibration="training")
SCORE = scorer("partial_auc", max_fpr=0.05)


def expect(truth: bool, what: str) -> None:
    if not truth:
        raise AssertionError(what)


def try_shap() -> str:
    import shap

    trees = TREES.fit(X, Y)
    values = shap.TreeExplainer(trees.booster_).shap_values(X)
    expect(np.allclose(values, trees.explain(X)[:, :-1], atol=1e-9), "other values than explain")
    Z = StandardScaler().fit_transform(X)
    linear = PNormPush().fit(Z, Y)
    explainer = shap.LinearExplainer(linear, Z)
    whole = explainer.shap_values(Z).sum(axis=1) + explainer.expected_value
    expect(np.allclose(whole, linear.decision_function(Z)), "shares that sum to other scores")
    found = shap.Explainer(LINEAR.fit(X, Y).decision_function, X[:50])(X[:5])
    expect(found.values.shape == (5, X.shape[1]), "no shares of a pipeline")
    return "`TreeExplainer(trees.booster_)`, `LinearExplainer(ranker, X)`, `Explainer` of any"


def try_skore() -> str:
    import skore

    report = skore.EstimatorReport(LINEAR, X_train=X[::2], y_train=Y[::2], X_test=X[1::2],
                                   y_test=Y[1::2], pos_label=1)  # fmt: skip
    frame = report.metrics.summarize().frame()
    expect(len(frame) > 2, "no summary")
    folds = skore.CrossValidationReport(TREES, X, Y, splitter=2, pos_label=1)
    expect(folds.metrics.summarize().frame().shape[0] > 2, "no summary of folds")
    return "`EstimatorReport` and `CrossValidationReport`, of pipelines and trees"


def expect_same_folds(backend: str, **options: object) -> None:
    alone = cross_val_score(LINEAR, X, Y, scoring=SCORE, cv=3)
    with joblib.parallel_config(backend, n_jobs=2, **options):
        for ranker in (LINEAR, TREES, PNormPushCV((1, 4), alphas=(0.1,), cv=2, test_size=None)):
            found = cross_val_score(ranker, X, Y, scoring=SCORE, cv=3, n_jobs=2)
            expect(np.all(np.isfinite(found)), f"no scores of {ranker}")
            if ranker is LINEAR:
                expect(np.allclose(found, alone), "other scores than in one process")


def try_joblib() -> str:
    for backend in ("loky", "threading", "multiprocessing"):
        expect_same_folds(backend)
    with tempfile.TemporaryDirectory() as folder:
        memory = joblib.Memory(folder, verbose=0)
        cached = make_pipeline(StandardScaler(), PNormPush(), memory=memory).fit(X, Y)
        joblib.dump(cached, f"{folder}/ranker")
        again = joblib.load(f"{folder}/ranker")
        expect(np.array_equal(again.predict(X), cached.predict(X)), "another model from a file")
    ensemble = PushEnsemble([("a", LINEAR), ("b", TREES)], cv=2, n_jobs=2).fit(X, Y)
    expect(len(ensemble.members_) > 0, "no members")
    return "`loky`, `threading`, `multiprocessing`; `Memory`; `dump` and `load` (a pickle)"


def try_dask() -> str:
    from dask.distributed import Client

    with Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None):
        expect_same_folds("dask")
    return '`parallel_config("dask")`: folds on the workers; rows on the workers by `fit_blocks`'


def try_ray() -> str:
    import ray
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    register_ray()
    try:
        expect_same_folds("ray")
    finally:
        ray.shutdown()
    return '`register_ray()`, then `parallel_config("ray")`: folds on the workers'


TOOLS = {
    "shap": ("SHAP", try_shap),
    "skore": ("skore", try_skore),
    "joblib": ("joblib", try_joblib),
    "distributed": ("joblib on Dask", try_dask),
    "ray": ("joblib on Ray", try_ray),
}


def main() -> None:
    warnings.simplefilter("ignore")
    for module, (name, attempt) in TOOLS.items():
        try:
            number = version(module)
            importlib.import_module(module)
        except (ImportError, PackageNotFoundError):
            print(f"| {name} | not installed here | |", flush=True)
            continue
        try:
            says = attempt()
        except Exception as error:
            says = f"FAILED: {type(error).__name__}: {error}"
        print(f"| {name} | {number} | {says} |", flush=True)


if __name__ == "__main__":
    main()

"""p chosen, and ensembles fitted, where the rows lie: the choice of one process."""

import numpy as np
import pytest

from toprank import PNormPush, PNormPushCV, ProperRanker, PushEnsemble, blocks
from toprank.tuning import choose_p

GRID = {"ps": (1, 8), "alphas": (1e-2,), "cv": 3, "test_size": None}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((900, 3))
    y = (X @ [1.0, -0.5, 0.25] + rng.logistic(size=900) > 1).astype(int)
    return X, y, np.repeat(np.arange(90), 10)


def in_blocks(rows, grouped):
    X, y, groups = rows
    return blocks.from_arrays(X, y, groups=groups if grouped else None, block_rows=400)


def check_choice(source, here):
    """The same choice and coefficients as from arrays in blocks."""
    ours, theirs = (PNormPushCV(**GRID).fit_blocks(one) for one in (source, here))
    np.testing.assert_allclose(ours.choice_.fold_scores, theirs.choice_.fold_scores, atol=1e-9)
    assert (ours.p_, ours.alpha_) == (theirs.p_, theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def check_any_rankers(source, here):
    """The same comparison of any rankers, and the same ensemble."""
    chosen = [choose_p(PNormPush(), one, ps=(1, 8), cv=3) for one in (source, here)]
    np.testing.assert_allclose(chosen[0].fold_scores, chosen[1].fold_scores, atol=1e-9)
    members = [("push", PNormPush(p=4)), ("logistic", ProperRanker())]
    ensembles = [PushEnsemble(members, cv=3, p=4.0).fit_blocks(one) for one in (source, here)]
    assert ensembles[0].weights_ == pytest.approx(ensembles[1].weights_, rel=1e-4)


@pytest.mark.more
@pytest.mark.parametrize("grouped", [False, True])
def test_the_choice_on_dask_is_that_of_one_process(client, rows, grouped):
    da = pytest.importorskip("dask.array")
    X, y, groups = rows
    given = {"groups": da.from_array(groups, chunks=300)} if grouped else {}
    source = blocks.from_dask(da.from_array(X, chunks=(300, -1)), y, client=client, **given)
    with source:
        check_choice(source, in_blocks(rows, grouped))
        check_any_rankers(source, in_blocks(rows, grouped))


@pytest.mark.more
def test_the_choice_on_spark_is_that_of_one_process(spark, rows):
    import pandas as pd

    X, y, groups = rows
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, g=groups)
    data = spark.createDataFrame(frame).coalesce(2)
    with blocks.from_spark(data, features=list("abc"), target="y", group="g") as source:
        check_choice(source, in_blocks(rows, grouped=True))

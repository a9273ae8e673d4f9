"""The logistic loss by sums at nodes: what gathered scores give, whatever lies in which block."""

import numpy as np
import pytest
from block_sources import Pieces
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from toprank import PNormPush, PushRanker, blocks
from toprank.losses import Logistic
from toprank.objective import NodesProblem, ScoredProblem, node_sums, problem_of
from toprank.objective.node_sums import NodeSums
from toprank.pair_sums import Interpolated, Reference
from toprank.rankers.blockwise import look

RANKERS = {
    "identity": PNormPush(p=1.0, loss="logistic"),
    "power": PNormPush(p=2.5, loss="logistic"),
    "hard": PNormPush(p=64.0, loss="logistic"),
    "bottom": PushRanker(p=3.0, loss="logistic", end="bottom"),
    "both": PushRanker(p=3.0, loss="logistic", end="both", balance=0.3),
    "balanced": PNormPush(p=2.0, loss="logistic", class_weight="balanced"),
}
each_ranker = pytest.mark.parametrize("name", RANKERS, ids=lambda name: name.replace(" ", "-"))


def in_pieces(X, y, weight, block_rows):
    cuts = range(block_rows, len(X), block_rows)
    parts = [np.split(part, cuts) for part in (X, y, weight) if part is not None]
    return Pieces(list(zip(*parts, strict=True)), seed=0)


def data(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X @ [0.8, -0.4, 0.5] + rng.logistic(size=n) > 1.0).astype(int)
    return X, y, rng.integers(0, 4, size=n).astype(float)


def problems(ranker, source):
    """The same objective by nodes, and with the scores gathered."""
    task = ranker._task()
    rows = look(source, ranker.class_weight, 0)
    return NodesProblem(rows, task), ScoredProblem(rows, task)


def agree(ranker, source, coef, rtol=1e-12):
    ours, theirs = (part.value_grad(np.asarray(coef)) for part in problems(ranker, source))
    assert ours[0] == pytest.approx(theirs[0], rel=rtol)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=0, atol=rtol * np.abs(theirs[1]).max())


class TestNodes:
    @pytest.mark.parametrize("spread", [0.1, 1.0, 20.0, 1e3])
    def test_give_the_sums_of_the_rows(self, spread):
        rng = np.random.default_rng(1)
        inner, outer, weight = rng.normal(size=300) * spread, rng.normal(size=200), rng.random(300)
        at, v = NodeSums.of(inner, weight).points()
        rows, nodes = Reference(Logistic(), inner, outer), Interpolated(Logistic(), at, outer)
        for k in (0, 1, 2):
            (theirs,), (ours,) = rows.to_outer((k,), weight), nodes.to_outer((k,), v)
            np.testing.assert_allclose(
                ours * np.exp(nodes.log_scale), theirs * np.exp(rows.log_scale), rtol=1e-11
            )

    @given(st.lists(st.floats(-1e4, 1e4), max_size=40), st.integers(0, 40), st.integers(0, 40))
    def test_merge_in_any_order(self, scores, first, second):
        scores, cuts = np.array(scores), sorted((first, second))
        a, b, c = (NodeSums.of(part, np.ones(len(part))) for part in np.split(scores, cuts))
        whole = NodeSums.of(scores, np.ones(len(scores)))
        for merged in (a.merge(b).merge(c), c.merge(a.merge(b)), b.merge(c.merge(a))):
            np.testing.assert_array_equal(merged.number, whole.number)
            np.testing.assert_allclose(merged.moments, whole.moments, rtol=0, atol=1e-12)

    def test_do_not_grow_with_the_rows(self):
        rng = np.random.default_rng(2)
        sizes = [
            NodeSums.of(np.clip(rng.normal(size=n), -3, 3), np.ones(n)).moments.size
            for n in (10_000, 100_000)
        ]
        assert sizes[0] <= sizes[1] <= 11 * 14


class TestTheSameObjective:
    @pytest.mark.sampled(5)
    @each_ranker
    @pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4], ids=lambda scale: f"scale-{scale:g}")
    def test_as_with_gathered_scores(self, name, scale):
        X, y, weight = data()
        source = blocks.from_arrays(X, y, weight, block_rows=70)
        agree(RANKERS[name], source, scale * np.array([1.0, -0.5, 0.3]))
        agree(RANKERS[name], source, scale * np.array([-1.0, 0.5, 0.3]))

    @given(st.data())
    def test_however_rows_are_placed_and_merged(self, choose):
        X, y, weight = data(100)
        order = np.array(choose.draw(st.permutations(range(100))))
        if choose.draw(st.booleans()):
            order = order[np.argsort(y[order], kind="stable")]  # blocks of one class
        cuts = sorted(choose.draw(st.lists(st.integers(0, 100), max_size=8)))
        pieces = [(X[rows], y[rows], weight[rows]) for rows in np.split(order, cuts)]
        source = Pieces(pieces, seed=choose.draw(st.integers(0, 99)))
        name = choose.draw(st.sampled_from(sorted(RANKERS)))
        agree(RANKERS[name], source, [2.0, -0.5, 0.3])

    def test_where_the_classes_are_so_far_apart_that_heights_vanish(self):
        X, y, _ = data()
        X[:, 0] = 2.0 * y - 1.0
        source = blocks.from_arrays(X, y, block_rows=70)
        agree(RANKERS["power"], source, [50.0, 0.0, 0.0])
        ours, theirs = problems(RANKERS["power"], source)
        far = np.array([1e5, 0.0, 0.0])
        assert ours.value_grad(far)[0] == theirs.value_grad(far)[0]
        np.testing.assert_array_equal(ours.value_grad(far)[1], theirs.value_grad(far)[1])

    def test_and_infinite_scores_are_told_as_an_infinite_value(self):
        X, y, _ = data()
        ours, _ = problems(RANKERS["power"], blocks.from_arrays(X, y))
        value, gradient = ours.value_grad(np.array([np.inf, 1.0, 1.0]))
        assert value == np.inf and gradient.shape == (3,)


class TestFits:
    @pytest.mark.sampled(4)
    @each_ranker
    def test_are_those_of_the_array(self, name, monkeypatch):
        monkeypatch.setattr(node_sums, "NODES_FROM", 0)
        X, y, weight = data()
        ranker = clone(RANKERS[name]).set_params(tol=1e-12)
        whole = clone(ranker).fit(X, y, weight)
        ranker.fit_blocks(in_pieces(X, y, weight, block_rows=70))
        np.testing.assert_allclose(ranker.coef_, whole.coef_, rtol=1e-10)
        assert ranker.objective_ == pytest.approx(whole.objective_, rel=1e-12)

    def test_of_many_rows_gather_no_scores(self, monkeypatch):
        monkeypatch.setattr(node_sums, "NODES_FROM", 25_000)
        X, y, weight = data(30_000)
        ranker = PNormPush(p=2.0, loss="logistic", tol=1e-12)
        whole = clone(ranker).fit(X, y, weight)
        ranker.fit_blocks(in_pieces(X, y, weight, block_rows=4099))
        np.testing.assert_allclose(ranker.coef_, whole.coef_, rtol=1e-10)
        passes = ranker.passes_
        assert "gather" not in passes
        assert passes["spread"] == passes["heights"] == passes["pull"] <= 20

    def test_gather_where_rows_are_few_or_the_loss_has_corners(self):
        X, y, _ = data()
        rows = look(in_pieces(X, y, None, block_rows=100), None, 0)
        problem = problem_of(rows, RANKERS["power"]._task())
        assert isinstance(problem, ScoredProblem)
        rows.n_rows = node_sums.NODES_FROM
        problem = problem_of(rows, RANKERS["power"]._task())
        assert isinstance(problem, NodesProblem)
        hinge = PNormPush(p=2.0, loss="hinge")._task()
        assert not NodesProblem.suits(rows, hinge)

    def test_gather_where_the_rows_lie_in_this_process(self):
        X, y, _ = data()
        rows = look(blocks.from_arrays(X, y), None, 0)
        rows.n_rows = node_sums.NODES_FROM
        assert isinstance(problem_of(rows, RANKERS["power"]._task()), ScoredProblem)

    def test_of_rows_in_tensors(self, monkeypatch):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        monkeypatch.setattr(node_sums, "NODES_FROM", 0)
        X, y, weight = data()
        ranker = PNormPush(p=2.0, loss="logistic", tol=1e-12)
        source = blocks.from_torch(*(torch.asarray(part) for part in (X, y, weight)))
        np.testing.assert_allclose(
            clone(ranker).fit_blocks(source).coef_, ranker.fit(X, y, weight).coef_, rtol=1e-10
        )


@pytest.mark.parametrize("size", [1.0, 10.0], ids=["margins", "scores"])
def test_what_no_float_holds_is_worth_infinity_wherever_it_lies(size):
    X, y, _ = data(40)
    ranker = clone(RANKERS["power"]).set_params(alpha=0.0)
    nodes, _ = problems(ranker, in_pieces(size * X / np.abs(X).max(), y, None, 7))
    with np.errstate(over="ignore", invalid="ignore"):  # as solvers do
        value, gradient = nodes.value_grad(1e308 * np.array([-1.5, 0.5, -0.5]))
    assert value == np.inf
    assert not gradient.any()

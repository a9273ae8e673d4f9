"""Linear rankers with a push: any price and loss, the P-Norm Push, the IR Push."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from toprank._columns import to_numpy
from toprank.losses import TRAINABLE_LOSSES, Loss
from toprank.objective import LabelledData, PairDual, Task, dual_at
from toprank.pairs import BALANCES, ENDS, check_table, check_weights, weigh_classes
from toprank.pairs.labels import check_labels, split_classes
from toprank.prices import PRICES, Price
from toprank.rankers.base import LinearRanker
from toprank.solvers.result import penalty_gap

_P = [Interval(Real, 1, None, closed="left"), Options(Real, {np.inf})]
_LOSS = [StrOptions(TRAINABLE_LOSSES), Loss, tuple]


class PricedRanker(LinearRanker):
    """Base of the linear rankers with a price of heights: they have pair weights."""

    def dual(self, X: object, y: object, *, sample_weight: ArrayLike | None = None) -> PairDual:
        """Return the dual point of the fit: how much each pair of the training rows counts.

        With F the objective without its penalty, the pair (i, k) weighs -dF/d(f_i - f_k). For the
        exponential loss and the power price these are the weights d of Rudin 2009 (Figure 2), the
        product of weights on positives and on negatives, and at the minimum they are unique even
        where the coefficients are not (Theorem 4). See `toprank.objective.PairEntropy` for phi,
        B_phi and the projection.

        A fitted ranker does not keep its rows, so they are given again.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit, or others to see how they would count.

        Returns
        -------
        PairDual
            ``factors`` (weights on positives and negatives whose products are the pairs'),
            ``row_weight``, ``pair_weights()`` and ``gap``, the certificate at this point.

        Examples
        --------
        >>> from toprank import PNormPush
        >>> from toprank.datasets import load_wdbc
        >>> X, y = load_wdbc(return_X_y=True)
        >>> dual = PNormPush(p=4).fit(X, y).dual(X, y)
        >>> of_positives, of_negatives = dual.factors[0]
        >>> of_positives.shape, of_negatives.shape, bool(abs(of_negatives.sum() - 1) < 1e-9)
        ((212,), (357,), True)
        """
        check_is_fitted(self)
        table = check_table(X, estimator=self, reset=False, sparse=True)
        positive = self._positives(y, table.shape[0])
        weight = check_weights(positive, sample_weight)
        weight = weigh_classes(self.class_weight, self.classes_, positive, weight)
        task = self._task()
        data = LabelledData.of_arrays(table, positive, weight)
        objective = self._task_on(data, task).objective(positive, weight)
        scores = self._score_table(table)
        point = dual_at(objective, positive, scores, np.inf)
        coef = self.coef_.reshape(-1)
        gradient = self.alpha * coef - np.asarray(table.T @ point.row_weight).reshape(-1)
        room = coef if self.positive else np.inf
        return replace(point, gap=penalty_gap(gradient, self.alpha, room))

    def _positives(self, y: object, n: int) -> NDArray[np.bool_]:
        """Which of n rows are of the positive class; the classes must be those of the fit."""
        classes, positive = split_classes(check_labels(to_numpy(y)))
        if not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"y has the classes {classes.tolist()}, expected those of the fit: "
                f"{self.classes_.tolist()}."
            )
        if len(positive) != n:
            raise ValueError(f"y has {len(positive)} labels, expected one per row of X: {n}.")
        return positive


class PNormPush(PricedRanker):
    r"""Linear ranking with a p-norm push (Rudin 2009).

    Minimises, over linear scores f = Xβ,

    .. math::
        R_{p,\ell}(f) = \sum_k \Big( \sum_i \ell(f_i - f_k) \Big)^p

    the sum over negatives k of the p-th power of their (surrogate) height. p = 1 ranks the
    whole list (RankBoost's objective); larger p concentrates on the top; p = inf minimises
    the highest height alone. It is minimised in a normalised form that has the same
    minimiser: its p-th root, for the exponential loss the logarithm of that, plus
    ``alpha/2 * |coef|^2``.

    Parameters
    ----------
    p : float, default=4.0
        How hard to push, from 1 to infinity. Larger p needs more data; choose it on held-out
        rows. With p = inf, and positives whose mean is a mixture of negatives, the minimum is to
        score all rows alike (Menon 2019, doi 10.1007/s10994-018-5759-4). Take a finite p, such as
        64, then: its minimum is another unless the classes have the same mean.
    loss : {"exponential", "logistic", "hinge", "squared_hinge"}, Loss or callables
        The loss of a pair; or (value, slope[, curvature]) callables of the margin.
    alpha : float, default=1e-3
        L2 penalty on the normalised objective. With 0, separable data have no finite solution.
    solver : {"auto", "lbfgs", "newton", "coordinate"}, default="auto"
        "auto" is Newton up to a few hundred features and L-BFGS beyond. "coordinate" is the
        paper's boosting-style algorithm (Figure 2): one feature per round, the one of largest
        absolute slope, moved to its minimum; alpha=0 is the paper's setting.
    max_iter : int, optional
        Iterations, or rounds of "coordinate"; by default 1,000 (newton), 10,000 (lbfgs),
        100 (coordinate).
    tol : float, default=1e-6
        Stop when the largest entry of the normalised objective's gradient is this small.
    positive : bool, default=False
        Whether no coefficient may be negative, so that the score rises with every column.
    link : {"logistic", "p_classification"}, default="logistic"
        How scores become probabilities: an increasing logistic curve fitted to the training
        scores, or sigmoid((1 + p)(f + b)) with the b at which the F-skew vanishes.
    class_weight : "balanced", dict or None
        Multiplies the sample weights. The ranking does not change (each class is normalised
        by itself), the intercept and the probabilities do.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    n_jobs : int, optional
        Threads. The answer does not depend on it.
    verbose : int, default=0
        Print a line per iteration.

    Attributes
    ----------
    coef_ : array of shape (1, d)
    intercept_ : array of shape (1,)
    classes_ : array of shape (2,)
    n_iter_ : int
    objective_ : float
        The minimised objective, penalty included.
    optimality_gap_ : float
        Certified bound on ``objective_`` minus the minimum. With alpha=0 it comes from the dual
        (Theorem 4) and is infinite on separable data, far from the minimum, and for other losses
        than the exponential one.
    history_ : list of dict
        Per iteration: objective; for "coordinate" also feature and step.

    Examples
    --------
    >>> from toprank import PNormPush
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> ranker = PNormPush(p=4).fit(X, y)
    >>> ranker.decision_function(X).shape
    (569,)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **LinearRanker._parameter_constraints,
        "p": _P,
        "loss": _LOSS,
    }

    def __init__(
        self,
        p: float = 4.0,
        *,
        loss: str | Loss | tuple[object, ...] = "exponential",
        alpha: float = 1e-3,
        solver: str = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        positive: bool = False,
        link: str = "logistic",
        class_weight: object = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.p = p
        self.loss = loss
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.positive = positive
        self.link = link
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _task(self) -> Task:
        return Task.build(p=self.p, loss=self.loss, alpha=self.alpha)


class IRPush(PricedRanker):
    r"""Linear ranking with the information-retrieval push (Rudin 2009, equation 2).

    Minimises the convex relative of DCG

    .. math::
        \sum_i \ln\Big(1 + \sum_k e^{-(f_i - f_k)}\Big) + \tfrac{\alpha}{2} |\beta|^2

    over positives i and negatives k: a positive pays for the negatives above it, and the more
    so the fewer they already are. There is no p to choose. The sum is the paper's, not
    normalised, so ``alpha`` weighs against as many terms as there are positives.

    Parameters
    ----------
    alpha, solver, max_iter, tol, positive, class_weight, warm_start, n_jobs, verbose
        As in :class:`PNormPush`; ``tol`` is relative to the number of positives.
    link : {"logistic"}
        How scores become probabilities.

    Examples
    --------
    >>> from toprank import IRPush
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> IRPush().fit(X, y).coef_.shape
    (1, 30)
    """

    def __init__(
        self,
        *,
        alpha: float = 1e-3,
        solver: str = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        positive: bool = False,
        link: str = "logistic",
        class_weight: object = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.positive = positive
        self.link = link
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _task(self) -> Task:
        return Task.build(price="log1p", alpha=self.alpha)


class PushRanker(PricedRanker):
    r"""Linear ranking with any price and any loss, at either end of the list.

    .. math::
        R_{g,\ell}(f) = \sum_k g\Big( \sum_i \ell(f_i - f_k) \Big)

    with a price g of the height of each negative k (Rudin 2009, Section 2), in a form that
    is convex for the loss, plus ``alpha/2 * |coef|^2``.

    Parameters
    ----------
    price : {"power", "identity", "exponential", "log1p", "max"}, Price or callables
        The price g; "log1p" is the IR Push (exponential loss only), "max" is p = inf. Or
        (value, slope[, curvature]) callables of the height. A price that is not convex on the
        heights of the fit has local minima: the lowest of several starts is kept,
        ``optimality_gap_`` is infinite, and a warning says where the price bends.
    p : float, default=4.0
        The power of the price "power".
    loss : {"exponential", "logistic", "hinge", "squared_hinge"}, Loss or callables
        The loss of a pair; ``price="max", loss="squared_hinge"`` is TopPush.
    end : {"top", "bottom", "both"}, default="top"
        "top" pushes negatives down from the top, "bottom" pulls positives up from the
        bottom, "both" does both.
    balance : float, default=1.0
        Weight of the bottom for ``end="both"``. With ``price="max"`` it has no say: the p-th root
        of it counts, and goes to one.
    balance_of : {"means", "sums"}, default="means"
        What ``balance`` weighs for the prices "power" and "identity". "means" divides each end by
        its largest possible count, R_top/(K I^p) + balance R_bottom/(I K^p) for I positives and K
        negatives, so that balance=1 treats both ends alike however rare the positives are; "sums"
        is R_top + balance R_bottom (Rudin 2009, Section 7).
    alpha, solver, max_iter, tol, positive, link, class_weight, warm_start, n_jobs, verbose
        As in :class:`PNormPush`.

    Examples
    --------
    >>> from toprank import PushRanker
    >>> from toprank.datasets import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> toppush = PushRanker(price="max", loss="squared_hinge").fit(X, y)
    >>> toppush.optimality_gap_ < 1e-3
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **LinearRanker._parameter_constraints,
        "price": [StrOptions(PRICES.keys()), Price, tuple],
        "p": _P,
        "loss": _LOSS,
        "end": [StrOptions(set(ENDS))],
        "balance": [Interval(Real, 0, None, closed="neither")],
        "balance_of": [StrOptions(set(BALANCES))],
    }

    def __init__(
        self,
        price: str | Price | tuple[object, ...] = "power",
        p: float = 4.0,
        loss: str | Loss | tuple[object, ...] = "exponential",
        end: str = "top",
        balance: float = 1.0,
        *,
        balance_of: str = "means",
        alpha: float = 1e-3,
        solver: str = "auto",
        max_iter: int | None = None,
        tol: float = 1e-6,
        positive: bool = False,
        link: str = "logistic",
        class_weight: object = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.price = price
        self.p = p
        self.loss = loss
        self.end = end
        self.balance = balance
        self.balance_of = balance_of
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.positive = positive
        self.link = link
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _task(self) -> Task:
        return Task.build(
            price=self.price,
            p=self.p,
            loss=self.loss,
            end=self.end,
            balance=self.balance,
            alpha=self.alpha,
        )

    def _task_on(self, data: LabelledData, task: Task) -> Task:
        """Turn a weight of the bottom's sum into one of its mean: multiply by (K/I)^(p-1)."""
        if self.balance_of == "means" or task.end != "both" or not task.price.homogeneous:
            return task
        if not task.price.smooth:
            raise ValueError(
                "balance_of='sums' has no meaning with price='max', where neither sum is taken. "
                "Use balance_of='means', or a finite p."
            )
        of_pos, of_neg = data.log_totals
        return replace(task, balance=task.balance * float(np.exp((task.p - 1) * (of_neg - of_pos))))

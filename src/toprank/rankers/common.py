"""What every ranker shares: a fit that is whole or not, and probabilities from scores.

A fit that fails leaves what was there, an interrupted one nothing.

Probabilities come from scores by slope and offset of an increasing logistic curve. Whatever the
link, a decision value of zero is a probability of one half.

Scores may be NumPy's or lie on a device. A tensor of the host is a NumPy array under another name,
and goes NumPy's way. A tensor on a device, and a CuPy array, stay there: the fit passes over them
by `toprank.blocks.from_torch`, and scores, classes and probabilities come back where the rows lie.
Coefficients are always NumPy's.
"""

from __future__ import annotations

import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import _fit_context

from toprank._arrays import AnyArray, ArrayOrTensor, BoolArray, TableLike
from toprank._extras import hides_interrupt
from toprank._numerics import FloatArray, log_of, log_sum_exp
from toprank.blocks import Units
from toprank.blocks.design import design_of
from toprank.blocks.stored import StoredRows
from toprank.blocks.tensors import OnDevice, all_finite, tensor_of
from toprank.blocks.torch import check_tensor
from toprank.objective.sums import Points, Standard, standard_points
from toprank.rankers.callbacks import as_root_task
from toprank.solvers import newton

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from torch import Tensor

    from toprank.inference import Interval

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

#: How the names begin that scikit-learn keeps with an estimator and that are no part of its fit.
_KEPT = ("__", "_metadata_request", "_skl", "_parent_callback", "_callback")
_LIBRARIES = tuple(
    f"{Path(module.__file__ or '').parent}{os.sep}" for module in (sys.modules["toprank"], sklearn)
)


def fits(method: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Make a method a fit: the parameters are checked first, and all is kept or nothing.

    A fit that fails by an error is as one that was never asked for: what was fitted before still
    scores. A fit that is interrupted leaves the estimator unfitted, also where it was fitted
    before: whoever stops a fit and goes on would take the old model for the new one. Parameters
    stay as they are, and the estimator can be fitted again.
    """
    checked = _fit_context(prefer_skip_nested_validation=True)(as_root_task(method))

    @wraps(method)
    def whole(*given: Given.args, **named: Given.kwargs) -> Answer:
        estimator: BaseEstimator = given[0]
        before = None
        try:
            before = _fitted_attributes(estimator)
            answer: Answer = checked(*given, **named)
        except BaseException as error:
            hidden = hides_interrupt(error)
            interrupted = hidden or not isinstance(error, Exception)
            if interrupted or before is not None:
                forget(estimator)
            if before is not None and not interrupted:
                vars(estimator).update(before)
            if hidden:
                raise KeyboardInterrupt from error
            raise
        return answer

    return whole


class ShownInterval:
    """Shows ``score_interval_`` below the diagram that scikit-learn draws of an estimator."""

    score_interval_: Interval | None

    def _html_repr(self) -> str:
        diagram: str = super()._html_repr()  # type: ignore[misc]
        interval = getattr(self, "score_interval_", None)
        return diagram if interval is None else f"<div>{diagram}{interval._repr_html_()}</div>"


def forget(estimator: object) -> None:
    """Drop what fits have left."""
    for name in _fitted_attributes(estimator):
        del vars(estimator)[name]


def _fitted_attributes(estimator: object) -> dict[str, object]:
    """What fits have left: attributes that end or begin with an underscore."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if (name.endswith("_") or name.startswith("_")) and not name.startswith(_KEPT)
    }


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn of a fit at the line that asked for it, the first outside the libraries.

    Python shows a warning once per line: at a line of the library the second fit of a program
    would have nothing to say.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def device_scores(X: TableLike, coef: FloatArray, units: Units, owner: str) -> ArrayOrTensor:
    """Return the scores of a tensor on a device, as a tensor beside it."""
    tensor = check_tensor(X)
    if tensor.shape[1] != len(coef):
        raise ValueError(
            f"X has {tensor.shape[1]} features, but {owner} is expecting {len(coef)} features as "
            "input."
        )
    if not all_finite(tensor.values if isinstance(tensor, StoredRows) else tensor):
        raise ValueError("Input X contains NaN or infinity; impute, or drop such rows.")
    return design_of(tensor, units).scores(coef).tensor


def numpy_like(scores: ArrayLike) -> ArrayOrTensor:
    """Return scores in a form that NumPy's functions accept, wherever they lie."""
    tensor = tensor_of(scores)
    return scores if tensor is None else OnDevice(tensor)


def to_library_of(values: object, X: TableLike) -> ArrayOrTensor:
    """Return an answer in the library of X, on its device.

    Tensors of the host come back as such; whatever else NumPy has computed stays NumPy's.
    """
    if isinstance(values, OnDevice):
        values = values.tensor
    tensor = tensor_of(X)
    if tensor is None:
        return values
    if isinstance(values, np.ndarray):
        return values if values.dtype.kind in "OUS" else import_module("torch").from_numpy(values)
    library = type(X).__module__.partition(".")[0]
    return values if library == "torch" else import_module(library).from_dlpack(values)


def predicted_classes(classes: AnyArray, positive: OnDevice | BoolArray) -> ArrayOrTensor:
    """Return the class of each row; labels that are not numbers are NumPy's."""
    if not isinstance(positive, OnDevice):
        return classes[positive.astype(np.intp)]
    torch = import_module("torch")
    if classes.dtype.kind not in "biuf":
        return classes[positive.tensor.long().cpu().numpy()]
    return OnDevice(torch.from_numpy(classes).to(positive.tensor.device)[positive.tensor.long()])


#: The largest entry of a gradient at a minimum of the curve's, and what is left of the product of
#: a Hessian's diagonal where it is no longer solved for as it is.
_FLAT, _SINGULAR = 1e-10, 1e-6
#: The flattest curve, per standard deviation of the scores.
_FLATTEST = 1e-3
#: The steepest that its search starts with: steeper ones belong to scores that are all but apart.
_STEEPEST_START = 20.0


@dataclass(frozen=True)
class Link:
    """P(positive | score f) = sigmoid(slope (f + offset)), slope > 0."""

    slope: float
    offset: float


class Probabilities(ABC):
    """Classes and probabilities from scores that are zero at one half.

    For estimators with ``decision_function``, ``classes_`` and the slope of their link.
    """

    classes_: np.ndarray
    _slope: float

    @abstractmethod
    def decision_function(self, X: TableLike) -> ArrayOrTensor:
        """Return the ranking score of each row; zero is a probability of one half."""

    def predict(self, X: TableLike) -> ArrayOrTensor:
        """Return the more probable class of each row."""
        scores = self.decision_function(X)
        return to_library_of(predicted_classes(self.classes_, numpy_like(scores) > 0), scores)

    def predict_proba(self, X: TableLike) -> FloatArray | Tensor:
        """Return the probabilities of the two classes, by the link."""
        scores = self.decision_function(X)
        z = self._slope * numpy_like(scores)
        # 1 - expit(z) would round to 0
        return to_library_of(np.column_stack([expit(-z), expit(z)]), scores)

    def predict_log_proba(self, X: TableLike) -> ArrayOrTensor:
        """Return the logarithms of the probabilities of the two classes."""
        scores = self.decision_function(X)
        z = self._slope * numpy_like(scores)
        logs = np.column_stack([-np.logaddexp(0.0, z), -np.logaddexp(0.0, -z)])
        return to_library_of(logs, scores)


def p_classification(
    scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None, p: float
) -> Link:
    """The link of P-Classification: the offset at which the F-skew vanishes, slope 1 + p.

    b = [LSE(-f_pos) - LSE(p f_neg)] / (1 + p), Corollary 13 of Rudin & Schapire 2009 for the
    power price.
    """
    logs = np.zeros(len(scores)) if weight is None else log_of(weight)
    above = log_sum_exp((logs - scores)[positive])
    below = log_sum_exp((logs + p * scores)[~positive])
    return vanishing_skew(above, below, p)


def vanishing_skew(above: float, below: float, p: float) -> Link:
    """The link of P-Classification from LSE(-f_pos) and LSE(p f_neg)."""
    return Link(1.0 + p, (above - below) / (1.0 + p))


def logistic(scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None) -> Link:
    """Fit sigmoid(A f + B), A > 0, to the labels by maximum likelihood.

    With Platt's targets, (N+ + 1)/(N+ + 2) and 1/(N- + 2), so that the curve stays finite
    where the scores separate the classes. N+ and N- are the classes' weights. Weights that add up
    to less than the number of rows cannot be repetition counts: they are shares of the rows.
    """
    return logistic_curve(*standard_points(scores, positive, weight))


def logistic_curve(standard: Standard, points: Points) -> Link:
    """Fit the curve of `logistic` to standardised scores."""
    curve = _Curve(*points)
    start = curve.of_normal_scores(points[1])
    near = curve.minimum_near(start)
    if near is None:  # a Hessian of two rows takes no longer than a gradient: none is kept
        near = newton(curve, start, tol=_FLAT, max_iter=100, contraction=0.0).coef
    a, b = near
    if not a >= _FLATTEST:  # the scores rank backwards: the best increasing curve is flat
        a, b = _FLATTEST, curve.log_odds
    slope = float(a) / standard.spread
    return Link(slope, float(b) / slope - standard.centre)


class _Curve:
    """The mean negative log-likelihood of the two-parameter curve, as a solver's problem."""

    size = 2
    alpha = penalty = 1e-300  # never zero: Platt's targets make the minimum finite
    scale = 1.0

    def __init__(self, u: FloatArray, positive: NDArray[np.bool_], weight: FloatArray):
        self.u = u
        total = float(np.sum(weight))
        self.weight = weight / total
        count = max(total, float(np.count_nonzero(weight)))
        plus = count * float(np.sum(self.weight, where=positive))
        minus = count * float(np.sum(self.weight, where=~positive))
        self.log_odds = float(np.log((plus + 1.0) / (minus + 1.0)))
        self.target = np.where(positive, (plus + 1) / (plus + 2), 1 / (minus + 2))
        self._known: tuple[bytes, FloatArray] | None = None

    def of_normal_scores(self, positive: NDArray[np.bool_]) -> FloatArray:
        """Return about where the minimum lies: where it does if the scores of a class are normal.

        With means m and m' of the classes and a variance v within them, A = (m - m') / v and
        B = log odds - A (m + m') / 2.
        """
        moments = self.weight * self.u
        share, of_pos = float(self.weight @ positive), float(moments @ positive)
        with np.errstate(all="ignore"):
            up, down = np.divide([of_pos, np.sum(moments) - of_pos], [share, 1.0 - share])
            within = float(moments @ self.u) - share * up**2 - (1.0 - share) * down**2
            slope = float(np.divide(up - down, within))
        if not _FLATTEST < slope < _STEEPEST_START:
            return np.array([1.0, self.log_odds])
        return np.array([slope, self.log_odds - 0.5 * slope * (up + down)])

    def minimum_near(self, coef: FloatArray) -> FloatArray | None:
        """Take Newton's steps for as long as each halves the gradient.

        Returns where it is `_FLAT`; None where a step does not, which `newton` shortens. The
        steps are the same; what takes its time, with two coefficients, is looking after them.
        """
        size = np.inf
        while size > _FLAT:
            grad = self._gradient(coef)
            before, size = size, float(np.abs(grad).max())
            (of_a, cross), (_, of_b) = self.hessian(coef).tolist()
            room = of_a * of_b - cross * cross
            if not (size <= 0.5 * before and room > _SINGULAR * of_a * of_b):
                return None
            if size > _FLAT:
                a, b = grad.tolist()
                coef = coef - np.array([of_b * a - cross * b, of_a * b - cross * a]) / room
        return coef

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        z = coef[0] * self.u + coef[1]
        value = float(self.weight @ (np.logaddexp(0.0, z) - self.target * z))
        return value, self._gradient(coef)

    def _gradient(self, coef: FloatArray) -> FloatArray:
        miss = self.weight * (self._at(coef) - self.target)
        return np.array([float(miss @ self.u), float(np.sum(miss))])

    def _at(self, coef: FloatArray) -> FloatArray:
        """Return the curve's value at every point, once: a Hessian follows its gradient."""
        at = coef.tobytes()
        if self._known is None or self._known[0] != at:
            half = 0.5 * coef
            self._known = at, 0.5 + 0.5 * np.tanh(half[0] * self.u + half[1])
        return self._known[1]

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        there = self._at(coef)
        bend = self.weight * there * (1.0 - there)
        lever = bend * self.u
        cross = float(np.sum(lever))
        return np.array([[float(lever @ self.u), cross], [cross, float(np.sum(bend))]])

    has_sample = close_estimates = False

    def release_sample(self) -> None:
        """There is none."""

    def coarse(self) -> None:
        return None

    def runs_away(self, coef: FloatArray) -> bool:
        return False

    def gradient_sizes(self, coef: FloatArray) -> None:
        return None

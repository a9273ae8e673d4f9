"""Problems of the exponential loss with a power price, and which problem a task has.

Value, gradient and Hessian come from one pass over the rows, and nothing of the rows is kept on
the driver. The same passes give the limit of large p, the largest height, and many settings of p
and alpha at once. `problem_of` chooses the form that passes over the rows the fewest times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks.design import DENSE_SHARE
from toprank.objective.curved_rows import CurvedRows, curved_rows
from toprank.objective.data import LabelledData
from toprank.objective.device_problem import DeviceRootProblem
from toprank.objective.duality import Dual, DualState, Terms
from toprank.objective.max_price import MaxProblem
from toprank.objective.node_sums import NodesProblem
from toprank.objective.pointwise import PointwiseProblem
from toprank.objective.priced import PricedProblem
from toprank.objective.problem import NARROW, ScoredProblem, TwoClassProblem
from toprank.objective.risk import PointwiseTask, Task
from toprank.objective.root_problem import RootProblem
from toprank.objective.sampled import leading_moments, sampled_moments
from toprank.objective.sums import EXACT_SCORES_UP_TO, EndPartial, Mass, Points, Standard
from toprank.objective.sweeps import (
    Curvature,
    Evaluate,
    Evaluation,
    Masses,
    Pull,
    RoughMoments,
    StartCurvature,
    StartTilted,
)
from toprank.prices import Max, Power

#: Rows of each class that a sampled Hessian is taken from, at the least.
_HESSIAN_ROWS = 10_000
_HESSIAN_ROWS_PER_FEATURE = 300
#: The same of rows that are read anew at every pass, drawn block by block.
_DRAWN_ROWS_PER_FEATURE = 150
#: The same where a Hessian only gives L-BFGS its coordinates: they may be rough.
_COORDINATE_ROWS_PER_FEATURE = 20
#: Powers from which wide rows that are mostly zero need a Hessian, the gradients before it, and the
#: rows of each class, drawn by their weight, that it is taken from.
_STEEP = 16.0
_STEEP_GRADIENTS = 8
_STEEP_ROWS_PER_FEATURE = 12
#: The Hessian of a steeper price is told by the heaviest outer rows: what they may leave out of the
#: weight, times the tilt, and how many they are at the most; more are drawn from.
_AHEAD_LEFT_OUT = 0.1
_AHEAD_ROWS_PER_FEATURE = 4
#: Rows per feature up to which such a Hessian is looked for.
_AHEAD_UP_TO = 100
#: Rows whose curvature stands for a Hessian of more columns, at the most, and their entries where
#: they are dense.
_CURVED_ROWS = 2000
_CURVED_ENTRIES = 1 << 24
#: Rows of a dense table up to which systems of their size are cheaper than more iterations.
_FEW_ROWS = 400
#: A Hessian takes as long as so many gradients, at the least; of a sparse matrix, that many for
#: each stored entry of a row, if no row is left out.
_HESSIAN_IN_GRADIENTS = 20
_HESSIAN_PER_ENTRY = 1.5
#: The same of the stored entries of a device, whose gradients are a few small kernels.
_DEVICE_STORED_HESSIAN = 60
#: Entries of each class that a Hessian is taken from on a device, of rows drawn by their weight,
#: and the rows per feature that suffice: its relative error is about sqrt(features / rows).
_DEVICE_DRAWN = 1 << 26, 1 << 14
#: The same where a sample of the rows is solved, which reads them in no time.
_SAMPLE_DRAWN = 1 << 24, 1 << 12
#: Features from which a device takes such a Hessian apart: the host does smaller ones as fast.
_FACTORED_FROM = 128
#: How far the logarithms of the masses of all rows and of a sample may lie apart where both tell
#: the same curvature. Far from the minimum a few rows that no sample holds may outweigh all others.
_ALIKE = 0.1
#: Powers above which a sample on a device is itself solved on a sample first.
_STEEP_SAMPLE = 8.0


class SweptProblem(TwoClassProblem):
    """Exponential loss with a power price of finite p, at one end of the list or both."""

    @property
    def hessian_repaid_by(self) -> int:  # type: ignore[override]
        """Gradients that cost as much as a Hessian from some of the rows."""
        if not self._reads_stored_entries:
            stored = self.data.sparse and self.data.source.on_device
            return _DEVICE_STORED_HESSIAN if stored else _HESSIAN_IN_GRADIENTS
        per_row = self.data.source.stored / self.n_rows  # type: ignore[attr-defined]
        share = min(1.0, 2 * self._rows_for_coordinates / self.n_rows)
        return max(_HESSIAN_IN_GRADIENTS, int(_HESSIAN_PER_ENTRY * share * per_row))

    @property
    def gradients_first(self) -> int:  # type: ignore[override]
        """Some for wide rows in memory, or of a device, that are sparse or mostly zero.

        Such columns, of categories or fingerprints, are nearly uncorrelated, so that gradients
        lead far; many dense rows have a sample to start on.
        """
        at_hand = self.data.source.in_memory or (self.data.sparse and self.data.source.on_device)
        if not (at_hand and len(self.tilts) == 1 and self.size > NARROW):
            return 0
        if self.data.sparse:
            return self.hessian_repaid_by
        if self._coarse is not None or not self.data.mostly_zero:
            return 0
        return _STEEP_GRADIENTS if self._is_steep else self.size // 6

    @property
    def _is_steep(self) -> bool:
        """Whether gradients lead not far, and a Hessian of few rows, drawn by weight, is cheap."""
        return self.task.p > _STEEP and self.n_rows > 3 * _STEEP_ROWS_PER_FEATURE * self.size

    @property
    def newton_up_to(self) -> int:  # type: ignore[override]
        return 100 if self.data.sparse or (self._is_steep and self.gradients_first) else 500

    @property
    def has_dual(self) -> bool:  # type: ignore[override]
        return len(self.tilts) == 1

    @cached_property
    def tilts(self) -> tuple[tuple[float, float], ...]:
        """(tilt of the positives, tilt of the negatives) at each end."""
        p = self.task.p
        tilts = {"top": ((-1.0, p),), "bottom": ((-p, 1.0),), "both": ((-1.0, p), (-p, 1.0))}
        return tilts[self.task.end]

    @property
    def bend_at_zero(self) -> float:  # type: ignore[override]
        """The covariance of each class counts as often as its tilt says."""
        return sum(map(abs, self.tilts[0]))

    def _pass(self, coef: FloatArray, order: int) -> Evaluation:
        data = self.data
        # any evaluation but the first may be the last one, whose scores the link is fitted to
        first = self._last.order == 0
        bins = data.source.reads_anew and data.n_rows > EXACT_SCORES_UP_TO and not first

        def make_pass() -> Evaluation:
            standard = self.standard(coef) if bins else None
            draw = self._rows_to_draw if first and order == 1 else None
            keep = not first and data.source.on_device
            if first and order == 1 and self._hessian_of_sample and self.size <= self.newton_up_to:
                self._start_ahead(coef)
            sweep = Evaluate(data.view, self.tilts, order, self.alpha == 0, standard, draw, keep)
            found: Evaluation = data.run(sweep, coef)
            return found

        evaluation: Evaluation = self._last.at(coef, order, make_pass)
        return evaluation

    @property
    def _rows_to_draw(self) -> tuple[float, float] | None:
        """Rows for a Hessian that the first evaluation brings along, per row of each class.

        Where the rows are elsewhere and too wide for an exact one. The sample to start on was drawn
        evenly: of its negatives a push weighs few, and a Hessian of them costs passes.
        """
        source = self.data.source
        if source.in_memory or source.on_device or len(self.tilts) > 1 or self.data.sparse:
            return None
        if self.cheap_curvature or self.size > self.newton_up_to or self._coarse is None:
            return None
        enough = max(_HESSIAN_ROWS, _DRAWN_ROWS_PER_FEATURE * self.size)
        negatives, positives = self.data.thinning.members
        return min(1.0, enough / positives), min(1.0, enough / negatives)

    def evaluate(self, coef: FloatArray, order: int) -> list[EndPartial]:
        """Return the tilted sums at the coefficients."""
        return self._pass(coef, order).ends

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        if self._reads_stored_entries and not self._last.knows(coef):
            if self._pulled[0] != coef.tobytes():
                self._pulled = coef.tobytes(), self._value_pull(coef)
            value, grad = self._pulled[1]
            return value, grad.copy()
        first = self._last.order == 0 and self.cheap_curvature
        ends = self.evaluate(coef, 2 if first else 1)
        value, shares = self._combine(ends)
        grad = np.zeros(self.size)
        for share, (pos, neg) in zip(shares, ends, strict=True):
            grad += share * (neg.mean - pos.mean)
        return self.add_penalty(value, grad, coef)

    #: Where the last gradient of a sparse matrix was taken, and value and gradient there.
    _pulled: tuple[bytes, tuple[float, FloatArray]] = b"", (0.0, np.empty(0))

    def value(self, coef: FloatArray) -> float:
        if self._reads_stored_entries and not self._last.knows(coef):
            if self._pulled[0] == coef.tobytes():
                return self._pulled[1][0]
            return self._log_risk(self._masses(coef)) + self.cost(coef)
        return self.value_grad(coef)[0]

    @property
    def _reads_stored_entries(self) -> bool:
        """Whether the gradient is best taken from one product of a sparse matrix at hand."""
        return self.data.sparse and self.data.source.in_memory and len(self.tilts) == 1

    def _value_pull(self, coef: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient, with the scores kept: two products of a sparse matrix."""
        masses = self._masses(coef)
        pull = self.data.run(Pull(self.data.view), masses)
        return self.add_penalty(self._log_risk(masses), pull, coef)

    def _masses(self, coef: FloatArray) -> tuple[Mass, Mass]:
        """Return the tilted masses of one end, from one product of a sparse matrix."""
        (tilts,) = self.tilts
        found: tuple[Mass, Mass] = self.data.run(Masses(self.data.view, tilts), coef)
        return found

    def _log_risk(self, masses: tuple[Mass, Mass]) -> float:
        (tilts,) = self.tilts
        return sum(
            (mass.log_mass - log_total) / abs(tilt)
            for mass, log_total, tilt in zip(masses, self.data.log_totals, tilts, strict=True)
        )

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        if self._is_device_sample or (self._sums_on_device and not exact):
            return self._drawn_hessian(coef, exact)
        ends = self._curved_ends(coef, exact or self.cheap_curvature)
        if ends is None:
            hessian: FloatArray = self._coarse.hessian(coef, exact=len(self.tilts) > 1)
            return hessian
        _, shares = self._combine(ends)
        hessian = np.zeros((self.size, self.size))
        grads = []
        for share, (pos, neg), (of_pos, of_neg) in zip(shares, ends, self.tilts, strict=True):
            for tilt, tilted in ((of_pos, pos), (of_neg, neg)):
                bent = tilted.covariance
                bent *= share * abs(tilt)
                hessian += bent
            grads.append(neg.mean - pos.mean)
        if len(ends) == 2:  # (1/p) log(e^{pA} + balance e^{pB}) adds p times a variance
            apart = grads[0] - grads[1]
            hessian += self.task.p * shares[0] * shares[1] * np.outer(apart, apart)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def _curved_ends(self, coef: FloatArray, exact: bool) -> list[EndPartial] | None:
        """Tilted sums with second moments, or estimates from some rows; None: ask the sample."""
        if exact:
            return self.evaluate(coef, 2)
        if self._last.knows(coef) and (drawn := self._pass(coef, 1).drawn) is not None:
            return [drawn]
        enough = self._rows_for_coordinates
        if self.size <= self.newton_up_to:
            enough = max(_HESSIAN_ROWS, _HESSIAN_ROWS_PER_FEATURE * self.size)
        if self.data.source.in_memory and len(self.tilts) == 1:
            if self._is_steep and self.gradients_first and not self.data.sparse:
                enough = min(enough, _STEEP_ROWS_PER_FEATURE * self.size)
            if 3 * enough < self.n_rows:
                return [sampled_moments(self.data, coef, self.tilts[0], enough)]
            if self._worth_rounding:
                return [self.data.run(RoughMoments(self.data.view, self.tilts[0]), coef)]
            return self.evaluate(coef, 2)
        return self.evaluate(coef, 2) if self._coarse is None else None

    @property
    def _hessian_of_sample(self) -> bool:
        """Whether estimates of the Hessian come from a sample of the rows on a device."""
        dense = self._sums_on_device and not (self.data.sparse or self.data.is_sample)
        return dense and self._coarse is not None

    def _start_ahead(self, coef: FloatArray) -> None:
        """Let the device start on the gradient of all rows, then on the Hessian asked for next."""
        data, coarse = self.data, self._coarse
        (about,) = coarse.evaluate(coef, 1)  # which stand for those of all rows
        of_pos, of_neg = (float(part.log_mass) for part in about)
        tops = (of_pos, of_neg) if np.isfinite(of_pos + of_neg) else None
        self._draws_from_all = data.source.map_reduce(
            StartTilted(data.view, self.tilts[0], tops), coef
        )
        rows = self if self._draws_from_all else coarse
        asked = self.tilts[0], about, self._rows_drawn(), self._penalty_there
        rows.data.source.map_reduce(StartCurvature(rows.data.view, *asked), coef)

    #: Whether the scores of all rows lie beside them, for rows to be drawn by.
    _draws_from_all = False

    def _rows_drawn(self, of: tuple[int, int] = _DEVICE_DRAWN) -> int:
        """Rows of each class that a Hessian is taken from on a device."""
        entries, per_feature = of
        return max(_HESSIAN_ROWS, min(entries // self.size, per_feature * self.size))

    def _drawn_hessian(self, coef: FloatArray, exact: bool) -> FloatArray:
        """An estimate from rows of a device that are drawn by their weight."""
        hessian = self._drawn_curvature(coef, exact, None)
        hessian[np.diag_indices(self.size)] += self.penalty
        return hessian

    def factored_hessian(self, coef: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return an estimate that the device takes apart; None where the host does.

        As `toprank.solvers.newton_step.Factor` has it: the factor, with the Hessian above it, NaN
        where there is none; and the units of both.
        """
        penalty = self._penalty_there
        if penalty is None:
            return None
        found = self._drawn_curvature(coef, False, penalty)
        both, scale, failed = found[:-2], found[-2], found[-1].any()
        if failed:
            np.fill_diagonal(both, np.nan)
        return both, scale

    @property
    def _penalty_there(self) -> FloatArray | float | None:
        """What a device adds to a Hessian before it takes it apart; None where the host does."""
        alone = self._sums_on_device and not self.data.sparse and len(self.data.starts) == 1
        return self.penalty if alone and self.size >= _FACTORED_FROM else None

    def _drawn_curvature(
        self, coef: FloatArray, exact: bool, penalty: FloatArray | float | None
    ) -> FloatArray:
        rows, of = self, _DEVICE_DRAWN
        if self._is_device_sample:  # which stands for other rows: nothing of it need be exact
            of = _DEVICE_DRAWN if exact else _SAMPLE_DRAWN
        elif self._hessian_of_sample and not (self._draws_from_all and self._is_like_sample(coef)):
            rows = self._coarse
        (end,) = rows.evaluate(coef, 1)
        asked = self.tilts[0], end, self._rows_drawn(of), penalty
        curvature: FloatArray = rows.data.run(Curvature(rows.data.view, *asked), coef)
        return curvature

    def _is_like_sample(self, coef: FloatArray) -> bool:
        """Whether the sample stands for all rows at the coefficients."""
        pairs = zip(self.log_masses(coef), self._coarse.log_masses(coef), strict=True)
        return all(abs(of_all - of_sample) <= _ALIKE for of_all, of_sample in pairs)

    @property
    def _is_device_sample(self) -> bool:
        """Whether these are dense rows of a device that stand for others."""
        return self.data.is_sample and self._sums_on_device and not self.data.sparse

    def coarse(self) -> TwoClassProblem | None:
        # a GPU reads its sample in no time: a sample of that helps steep prices of wide rows alone
        gentle = self.task.p <= _STEEP_SAMPLE or self.size <= NARROW
        return None if gentle and self._is_device_sample else self._coarse

    @property
    def cheap_curvature(self) -> bool:
        # one kernel reads the rows of a device; their moments are a product of matrices apart
        return super().cheap_curvature and not self._sums_on_device

    @property
    def _sums_on_device(self) -> bool:
        """Whether second moments of single precision are summed where the rows lie."""
        return self.data.source.on_device and len(self.tilts) == 1

    @property
    def _worth_rounding(self) -> bool:
        """Whether dense products of single precision are faster than those of a sparse matrix."""
        if not (self._reads_stored_entries and self.size > self.newton_up_to):
            return False
        stored: int = self.data.source.stored  # type: ignore[attr-defined]
        return stored > DENSE_SHARE * self.n_rows * self.size

    @property
    def _rows_for_coordinates(self) -> int:
        """Rows of each class that a Hessian is taken from where it gives L-BFGS its coordinates."""
        return max(_HESSIAN_ROWS, _COORDINATE_ROWS_PER_FEATURE * self.size)

    def _combine(self, ends: list[EndPartial]) -> tuple[float, list[float]]:
        """F and the share of each end in it."""
        values = [
            sum(
                (float(tilted.log_mass) - log_total) / abs(tilt)
                for tilted, log_total, tilt in zip(end, self.data.log_totals, tilts, strict=True)
            )
            for end, tilts in zip(ends, self.tilts, strict=True)
        ]
        return self._of_ends(values)

    def _of_ends(self, values: list[float]) -> tuple[float, list[float]]:
        """F and the share of each end in it, from the values of the ends."""
        if len(values) == 1:
            return values[0], [1.0]
        p = self.task.p
        top = p * values[0] + float(np.log(self.task.top))
        bottom = p * values[1] + float(np.log(self.task.balance))
        total = float(np.logaddexp(top, bottom))
        return total / p, [float(np.exp(top - total)), float(np.exp(bottom - total))]

    def standard_scores(self, coef: FloatArray) -> tuple[Standard, Points]:
        histogram = self._pass(coef, 1).histogram if self._last.knows(coef) else None
        if histogram is None:
            return super().standard_scores(coef)
        return self.standard(coef), histogram.points()

    def extremes(self, coef: FloatArray) -> tuple[float, float]:
        if self.alpha == 0 and self._last.knows(coef):
            return self._pass(coef, 1).extremes
        return super().extremes(coef)

    def lighter(self) -> TwoClassProblem:
        return self.without_zeros()

    @property
    def tells_ahead(self) -> bool:  # type: ignore[override]
        return self._reads_stored_entries

    @property
    def looks_ahead(self) -> bool:  # type: ignore[override]
        """Whether a steep price of a sparse matrix at hand rests on too few rows for its features.

        At its minimum it would need about as many as there are features.
        """
        return self.tells_ahead and self.n_rows <= _AHEAD_UP_TO * self.size

    def hessian_ahead(self, gentler: object, coef: FloatArray) -> FloatArray:
        """Return about what the Hessian is at the minimum, from the minimum of a gentler price.

        Along p the weights of the rows at the minima change slowly, while those of a steep price
        at the minimum of a gentle one rest on a handful of rows. So the weights are those of the
        gentler price, and the factor of their covariance alone is this one's. The covariance of
        the inner rows counts once, that of the outer rows p times: the spread of each column
        stands for it.
        """
        assert isinstance(gentler, SweptProblem)
        tilts = gentler.tilts[0]
        p = max(map(abs, self.tilts[0]))
        outer = int(np.argmax(np.abs(tilts)))
        most, left_out = _AHEAD_ROWS_PER_FEATURE * self.size, _AHEAD_LEFT_OUT / p
        hessian = leading_moments(self.data, coef, tilts, outer, left_out, most).take_covariance(p)
        hessian[np.diag_indices(self.size)] += self.penalty + self.data.column_spread() ** 2
        return hessian

    @property
    def apart_below(self) -> float:  # type: ignore[override]
        """The least value where a negative scores no lower than a positive, of equal weights.

        That pair alone adds as much. Unequal weights may bring the value lower; then a fit only
        takes the longer way.
        """
        if self.alpha == 0:
            return -np.inf
        negatives, positives = np.log(self.data.thinning.members)
        at_ends = [-positives / abs(pos) - negatives / abs(neg) for pos, neg in self.tilts]
        return self._of_ends(at_ends)[0]

    @property
    def tells_by_rows(self) -> bool:  # type: ignore[override]
        return self.data.source.in_memory and len(self.tilts) == 1

    @property
    def all_rows_tell(self) -> bool:  # type: ignore[override]
        return self.tells_by_rows and not self.data.sparse and self.n_rows <= self._most_curved

    @property
    def fewer_rows(self) -> bool:  # type: ignore[override]
        few = self.n_rows <= min(self.size, self._most_curved, _FEW_ROWS)
        there = self.tells_by_rows and not self.data.sparse and few
        return bool(there and np.all(self.penalty > 0))

    @property
    def _most_curved(self) -> int:
        """Rows whose curvature is told, at the most."""
        fit = _CURVED_ROWS if self.data.sparse else _CURVED_ENTRIES // self.size
        return max(1, min(_CURVED_ROWS, fit))

    @property
    def _curved_at_the_price_of_a_gradient(self) -> int:
        """Rows, at the most, whose pairs are no more than the entries that a gradient reads."""
        if not self.data.sparse:
            return self._most_curved
        stored: int = self.data.source.stored  # type: ignore[attr-defined]
        return max(1, min(self._most_curved, math.isqrt(stored)))

    def curved_rows(
        self, coef: FloatArray, of: SweptProblem | None = None, *, exact: bool = False
    ) -> CurvedRows | None:
        """Return the curvature of the heaviest rows, without the penalty.

        The weights of the rows are those of another problem ``of`` the same rows where it is given:
        then rows that bend it less than its own penalty hardly hold its minimum.
        """
        weighing = of or self
        alpha = 0.0 if exact else max(self.alpha, weighing.alpha)
        slopes = weighing.row_slopes(coef)
        rows = self._most_curved, self._curved_at_the_price_of_a_gradient
        return curved_rows(self.data, slopes, self.tilts[0], *rows, alpha, exact=exact)

    def bound_of_largest(self, coef: FloatArray) -> float:
        """Return a lower bound on the minimum of the largest height, of one end, from weights.

        Any weights u of the outer rows that sum to one bound the largest score from below by
        sum_k u_k b_k, and the minimum of what is then a smooth function by its value less
        |gradient|^2 / (2 alpha). The weights of this price, u = softmax(p b), give the
        gradient of this problem.
        """
        ((pos, neg),), log_totals = self.evaluate(coef, 1), self.data.log_totals
        if self.task.end == "top":  # the positives are the inner rows
            inner, outer = float(pos.log_mass) - log_totals[0], float(neg.mean @ coef)
        else:
            inner, outer = float(neg.log_mass) - log_totals[1], -float(pos.mean @ coef)
        value, grad = self.add_penalty(inner + outer, neg.mean - pos.mean, coef)
        return value - float(np.sum(grad**2 / (2.0 * self.penalty)))

    def dual_terms(self, coef: FloatArray, step: FloatArray) -> Terms:
        """Return the terms of the dual value, see `toprank.objective.duality`."""
        data = self.data
        (end,) = self.evaluate(coef, 1)
        positives, negatives = (
            (tilt, float(tilted.log_mass), log_total, float(tilted.mean @ step))
            for tilt, tilted, log_total in zip(self.tilts[0], end, data.log_totals, strict=True)
        )
        state = DualState(coef, step, (positives, negatives))
        terms: Terms = data.run(Dual(data.view), state)
        return terms

    def log_masses(self, coef: FloatArray) -> tuple[float, float]:
        ((pos, neg),) = self.evaluate(coef, 1)
        return float(pos.log_mass), float(neg.log_mass)


class LargestHeight(TwoClassProblem):
    """Exponential loss and the largest height, p = inf: approached by `SweptProblem`."""

    newton_up_to = SweptProblem.newton_up_to
    first_level = 1 / 64

    def value_grad(self, coef: FloatArray) -> tuple[float, FloatArray]:
        raise TypeError("the largest height is not smooth; ask a smoothed problem")

    def hessian(self, coef: FloatArray, *, exact: bool = True) -> FloatArray:
        raise TypeError("the largest height is not smooth; ask a smoothed problem")

    def with_task(self, task: Task) -> TwoClassProblem:
        return SweptProblem(self.data, task)

    def lighter(self) -> TwoClassProblem:
        return self.without_zeros()

    def bound_by(self, smooth: SweptProblem, coef: FloatArray) -> float:
        one_end = self.task.end != "both" and self.alpha > 0
        return smooth.bound_of_largest(coef) if one_end else -np.inf

    def value(self, coef: FloatArray) -> float:
        """Return the largest log S of an outer row: log mean e^-f_pos + max f_neg at the top."""
        if not np.any(coef):  # every score is zero: no pass is needed
            return 0.0
        data, tilts = self.data, (-1.0, 1.0)
        if data.sparse and data.source.in_memory:  # one product, whose scores are kept
            masses = [mass.log_mass for mass in data.run(Masses(data.view, tilts), coef)]
            lowest, highest = data.extremes(coef)
        else:
            found = data.run(Evaluate(data.view, (tilts,), extremes=True), coef)
            masses = [tilted.log_mass for tilted in found.ends[0]]
            lowest, highest = found.extremes
        of_pos, of_neg = data.log_totals
        ends = {
            "top": masses[0] - of_pos + highest,
            "bottom": masses[1] - of_neg - lowest,
        }
        asked = ends.values() if self.task.end == "both" else [ends[self.task.end]]
        return float(max(asked)) + self.cost(coef)


class ManySwept:
    """Problems that differ in p and alpha only, evaluated together in one pass.

    Parameters
    ----------
    problems : sequence of SweptProblem
        Of the same rows, at the top of the list.
    """

    def __init__(self, problems: Sequence[SweptProblem]):
        self.problems = problems
        self.data = problems[0].data
        self.tilts = np.array([problem.tilts[0] for problem in problems])

    @staticmethod
    def supports(problem: object) -> bool:
        """Whether a problem can be evaluated together with others."""
        return isinstance(problem, SweptProblem) and problem.task.end == "top"

    def value_grad(self, coefs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the penalised objective and its gradient, one line per problem."""
        columns = (self.tilts[:, :1], self.tilts[:, 1:])
        ((pos, neg),) = self.data.run(Evaluate(self.data.view, (columns,)), coefs).ends
        masses = np.array([pos.log_mass, neg.log_mass]).T
        log_totals = np.array(self.data.log_totals)
        values = np.sum((masses - log_totals) / np.abs(self.tilts), axis=1)
        grads = neg.mean - pos.mean
        for i, problem in enumerate(self.problems):
            values[i], grads[i] = problem.add_penalty(float(values[i]), grads[i], coefs[i])
        return values, grads


def problem_of(
    data: LabelledData, task: Task | PointwiseTask, *, gather: bool = False
) -> TwoClassProblem:
    """Return the problem of a task on some rows.

    ``gather`` asks for scores on the driver, which coordinate descent needs.
    """
    if isinstance(task, PointwiseTask):
        return PointwiseProblem(data, task)
    if gather:
        return ScoredProblem(data, task)
    if task.loss.factorises:
        if isinstance(task.price, Power):
            return SweptProblem(data, task)
        if isinstance(task.price, Max):
            return LargestHeight(data, task)
        return PricedProblem(data, task)
    if MaxProblem.suits(task):
        return MaxProblem(data, task)
    if DeviceRootProblem.suits(data, task):
        return DeviceRootProblem(data, task)
    if RootProblem.suits(data, task):
        return RootProblem(data, task)
    if NodesProblem.suits(data, task):
        return NodesProblem(data, task)
    return ScoredProblem(data, task)

"""`PushLoss`: the push as a torch loss, of a batch, or of all rows from one batch to the next.

Exponential loss, power price (P-Classification, Ertekin & Rudin 2011):

    min_b  A e^-b + (1/p) B e^{pb} = (1 + 1/p) (A B^{1/p})^{p/(1+p)},
    A = mean_i e^{-f_i},  B = mean_k e^{p f_k}

so batches need no pair: the class means of a batch are unbiased for A and B, and a constant factor
on either, as from batches that lack a class, is taken up by b. Only the scale of the steps is
tracked (by a moving average of the value), not their direction.

Any other loss with the power price:

    grad F = sum_k w_k (S_k / F)^{p-1} grad S_k,   F = (sum_k w_k S_k^p)^{1/p}

with F tracked in logarithms, and S_k too, row by row, where rows are told apart by ``index``.
Without an index S_k is that of the batch, and p > 1 is biased; p = 1 never is.
"""

from __future__ import annotations

import math
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING

from toprank._extras import require
from toprank.interop.torch._torch import Module, torch
from toprank.interop.torch.distributed import (
    class_log_count,
    class_log_sum,
    rows_of_all,
    scaled_for_mean,
    shared_among_processes,
    world_size,
)
from toprank.interop.torch.exponential import exponential_power, has_fused_kernels
from toprank.interop.torch.heights import Members, class_members, log_heights, objective_of_heights
from toprank.losses import get_trainable_loss
from toprank.objective import price_and_loss
from toprank.pairs import ENDS
from toprank.prices import Max, Power, Price

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from torch import Tensor

    from toprank.losses import Loss

_CALLS_BEFORE_WARNING = 100
#: A batch counts as at most this many times the tracked value, e^9.2 = 10,000; beyond, its
#: gradient grows no more.
LARGEST_EXCESS = 9.2


class PushLoss(Module):
    r"""The push as a loss of scores and targets.

    .. math::
        R_{g,\ell}(f) = \sum_k g\Big(\sum_i \ell(f_i - f_k)\Big)

    over the positives i and negatives k of a batch, in the form of :class:`toprank.PushRanker`:
    (1/p) log of the mean price for the exponential loss, its p-th root for the others.

    Parameters
    ----------
    p : float, default=4.0
        Power of the price, >= 1; infinity is the maximum.
    price : str, Price or callables, default="power"
        "power", "identity", "exponential", "log1p" (exponential loss only) or "max", or one of
        your own, as in :class:`toprank.PushRanker`.
    loss : str, Loss or callables, default="exponential"
        "exponential", "logistic", "hinge", "squared_hinge", or one of your own. Memory is O(n).
        Time is O(n) for the exponential loss, O(n log n) for the hinges, O(n) for the logistic
        loss on the host; on a GPU that one, and any loss of your own, takes O(I K), in blocks.
    end : {"top", "bottom", "both"}, default="top"
        Which end of the list is priced, as in :class:`toprank.PushRanker`.
    balance : float, default=1.0
        Weight of the bottom for ``end="both"``, of the means of both ends as in
        :class:`toprank.PushRanker`.
    mode : {"batch", "minibatch"}, default="batch"
        "batch": exactly the objective of the rows handed over. "minibatch": its gradient is one of
        the objective of all rows that batches are drawn from; for the power and identity prices.
        With the exponential loss it learns an ``intercept``, a parameter of this module: give
        ``[*model.parameters(), *loss.parameters()]`` to the optimiser. Its value is then in
        units of a moving average, around 1 + 1/p.
    rate : float, default=0.05
        How fast tracked averages follow, in minibatch mode.
    n_rows : int, optional
        Rows of the data, for losses other than the exponential in minibatch mode: heights are
        then tracked row by row, and ``forward`` needs ``index``.
    reduce : bool, default=True
        Where several processes train together (torch.distributed), take sums over all of them
        while training, so that the loss is that of all their rows; for DistributedDataParallel.

    Notes
    -----
    Half precision is computed in float32, also under autocast. A batch that lacks a class has a
    loss of zero and no gradient (in minibatch mode: that of the class it has). On a GPU a price
    or a loss of your own runs there, if it is written with NumPy's elementwise functions, sums
    and ``where``; what cannot be done there is refused by name.

    Example::

        import torch
        from toprank.interop.torch import PushLoss

        model = torch.nn.Linear(3, 1)
        loss = PushLoss(p=4.0)
        value = loss(model(torch.randn(64, 3)), torch.arange(64) % 4 == 0)
        value.backward()
    """

    def __init__(
        self,
        p: float = 4.0,
        *,
        price: str | Price | tuple[object, ...] = "power",
        loss: str | Loss | tuple[object, ...] = "exponential",
        end: str = "top",
        balance: float = 1.0,
        mode: str = "batch",
        rate: float = 0.05,
        n_rows: int | None = None,
        reduce: bool = True,
    ):
        require("torch", "torch")
        super().__init__()
        self._price, self._loss = price_and_loss(price, p, get_trainable_loss(loss))
        self.p = math.inf if isinstance(self._price, Max) else getattr(self._price, "p", float(p))
        self.price, self.loss, self.mode = price, loss, mode
        self.end, self.balance = end, balance
        self.rate, self.n_rows, self.reduce = rate, n_rows, reduce
        _check_push(self._price, self.p, end, balance, mode, rate)
        # with the classes' roles and the sign of the scores swapped, every end is the top
        self._turned = (end == "bottom") != (self._price.outer == "winners")
        # processes need only add sums then; where not, they gather the rows
        self._by_sums = (
            self._loss.factorises and isinstance(self._price, Power) and self.end != "both"
        )
        if mode == "minibatch":
            self._prepare()

    def _prepare(self) -> None:
        self.register_buffer("log_level", torch.tensor(math.nan))
        if self._by_sums:
            self.intercept = torch.nn.Parameter(torch.zeros(()))
            self._calls = 0
        elif self.n_rows is not None:
            self.register_buffer("log_heights", torch.full((self.n_rows,), math.nan))

    def extra_repr(self) -> str:
        return f"p={self.p:g}, price={self.price!r}, loss={self.loss!r}, mode={self.mode!r}"

    def forward(
        self,
        scores: Tensor,
        targets: Tensor,
        weight: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return the loss.

        Parameters
        ----------
        scores : tensor of shape (n,) or (n, 1)
        targets : tensor of the same size
            Positive where larger than zero.
        weight : tensor of n numbers, optional
            Repetition counts; zero is an absent row.
        index : tensor of n row numbers, optional
            Which rows of the data these are; see ``n_rows``.
        """
        scores, targets = _flat(scores), _flat(targets)
        if scores.shape != targets.shape:
            raise ValueError(
                f"scores hold {scores.numel()} numbers, targets {targets.numel()}; expected one "
                "per row."
            )
        if weight is None and self._in_one_go(scores):  # each call of torch's is felt in a step
            return exponential_power(scores, targets, None, self.p)
        positive = targets > 0
        with _without_autocast(scores.device.type):
            if scores.dtype in (torch.float16, torch.bfloat16):
                scores = scores.float()
            weight = None if weight is None else weight.reshape(-1).to(scores)
            together = self.reduce and self.training and world_size() > 1
            if self._turned:
                scores, positive = -scores, ~positive
            if self.mode == "batch" and self._by_sums and not together:
                return exponential_power(scores, positive, weight, self.p)
            if self._by_sums:
                value = self._by_class_sums(scores, positive, weight, together)
            else:
                rows = (scores, positive, weight, None if index is None else index.reshape(-1))
                value = self._by_heights(*(map(rows_of_all, rows) if together else rows))
            return scaled_for_mean(value) if together else value

    # the objective of a batch

    def _in_one_go(self, scores: Tensor) -> bool:
        """Whether kernels take the scores and the targets as they are."""
        if not (self.mode == "batch" and self._by_sums and has_fused_kernels(scores)):
            return False
        return not (self._turned or (self.reduce and self.training and world_size() > 1))

    def _by_class_sums(
        self, f: Tensor, positive: Tensor, weight: Tensor | None, across: bool
    ) -> Tensor:
        weight = torch.ones_like(f) if weight is None else weight
        positive, negative = positive & (weight > 0), ~positive & (weight > 0)
        if self.mode == "minibatch":
            return self._pointwise(f, positive, negative, weight, across)
        log_w = torch.log(weight)
        log_totals = class_log_sum(log_w, positive, across), class_log_sum(log_w, negative, across)
        inner = class_log_sum(log_w - f, positive, across) - log_totals[0]
        outer = class_log_sum(log_w + self.p * f, negative, across) - log_totals[1]
        both = torch.isfinite(log_totals[0]) & torch.isfinite(log_totals[1])
        value = inner + outer / self.p
        return torch.where(both, value, 0.0 * torch.where(both, value, f.sum()))

    def _by_heights(
        self, f: Tensor, positive: Tensor, weight: Tensor | None, index: Tensor | None
    ) -> Tensor:
        if torch.compiler.is_compiling():  # prices and losses are NumPy's code, left as it is
            return torch.compiler.disable(self._by_heights)(f, positive, weight, index)
        inner, outer = class_members(positive, f, weight), class_members(~positive, f, weight)
        if not len(inner) or not len(outer):
            return 0.0 * f.sum()
        log_s, log_w = self._log_heights(inner, outer)
        if self.mode == "minibatch":
            return self._tracked(log_s, log_w, None if index is None else index[outer.rows]).to(f)
        if self.end == "both":
            bottom = self._log_heights(outer.turn(), inner.turn())
            log_s = torch.cat([log_s, bottom[0]])
            log_w = torch.cat([log_w, bottom[1] + math.log(self.balance)])
        value = objective_of_heights(self._price, log_s, log_w)
        # where the objective exceeds every float it has no slope
        return value.clamp(max=torch.finfo(f.dtype).max).to(f.dtype)

    def _log_heights(self, inner: Members, outer: Members) -> tuple[Tensor, Tensor]:
        """Return logarithms of the outer rows' heights and weights, as the price sees them."""
        if self._price.homogeneous:
            inner, outer = inner.normalise(), outer.normalise()
        return log_heights(self._loss, inner, outer), outer.log_weight

    # the objective of all rows, from a batch

    def _pointwise(
        self, f: Tensor, positive: Tensor, negative: Tensor, weight: Tensor | None, across: bool
    ) -> Tensor:
        log_w = torch.log(weight)
        log_a = class_log_sum(log_w - f, positive, across) - class_log_count(positive, f, across)
        log_b = class_log_sum(log_w + self.p * f, negative, across) - class_log_count(
            negative, f, across
        )
        if self.training:
            self._start(log_a.detach(), log_b.detach())
        level = torch.nan_to_num(self.log_level).to(f)
        intercept = self.intercept.to(f)
        if across:  # every process has its whole gradient already
            intercept = shared_among_processes(intercept)
        value = pointwise(log_a, log_b, self.p, intercept, level)
        if self.training:
            self._follow(value.detach(), level)
        return value

    def _start(self, log_a: Tensor, log_b: Tensor) -> None:
        """Begin with the best intercept of the first batch of both classes, and its level."""
        with torch.no_grad():
            ready = torch.isfinite(log_a) & torch.isfinite(log_b) & torch.isnan(self.log_level)
            best = (log_a - log_b) / (1.0 + self.p)
            self.intercept.copy_(torch.where(ready, best.to(self.intercept), self.intercept))
            self.log_level.copy_(
                torch.where(ready, (log_a - best).to(self.log_level), self.log_level)
            )

    def _follow(self, value: Tensor, level: Tensor | float) -> None:
        with torch.no_grad():
            now = level + torch.log(value / (1.0 + 1.0 / self.p))
            started = ~torch.isnan(self.log_level)
            new = moving_average(self.log_level, now.to(self.log_level), self.rate)
            self.log_level.copy_(torch.where(started, new, self.log_level))
        if not torch.compiler.is_compiling():
            self._warn_if_not_learned()

    def _warn_if_not_learned(self) -> None:
        """An optimiser that was not told of the intercept leaves it where it began."""
        self._calls += 1
        if self._calls == 2:
            self._first = float(self.intercept.detach())
        if self._calls == _CALLS_BEFORE_WARNING and float(self.intercept.detach()) == self._first:
            warnings.warn(
                "The intercept of PushLoss has not moved, so the loss is not that of the push: "
                "give [*model.parameters(), *loss.parameters()] to the optimiser.",
                stacklevel=2,
            )

    def _tracked(self, log_s: Tensor, log_w: Tensor, rows: Tensor) -> Tensor:
        held = self._row_heights(log_s.detach(), rows)
        now = torch.log(objective_of_heights(self._price, held, log_w))
        if self.training:
            self.log_level.copy_(moving_average(self.log_level, now.to(self.log_level), self.rate))
        level = torch.where(torch.isnan(self.log_level), now.to(self.log_level), self.log_level)
        push = torch.exp(log_w + (self.p - 1.0) * (held - level.to(held)).clamp(max=10.0))
        surrogate = (push * torch.exp(log_s)).sum()
        return torch.exp(level.to(held)) + surrogate - surrogate.detach()

    def _row_heights(self, log_s: Tensor, rows: Tensor) -> Tensor:
        if self.n_rows is None:
            return log_s
        if rows is None:
            raise ValueError("PushLoss was given n_rows, so it needs index: the rows' numbers.")
        if not self.training:
            return log_s
        held = moving_average_of_heights(self.log_heights[rows].to(log_s), log_s, self.rate)
        self.log_heights[rows] = held.to(self.log_heights)
        return held


def _check_push(price: Price, p: float, end: str, balance: float, mode: str, rate: float) -> None:
    if end not in ENDS:
        raise ValueError(f"Unknown end {end!r}: expected one of {list(ENDS)}.")
    if not 0 < balance < math.inf:
        raise ValueError(f"balance={balance!r} must be a number above zero.")
    if mode not in ("batch", "minibatch"):
        raise ValueError(f"Unknown mode {mode!r}: expected 'batch' or 'minibatch'.")
    if mode == "minibatch" and not (isinstance(price, Power) and end != "both"):
        raise ValueError(
            f"mode='minibatch' needs price='power' with a finite p, or 'identity', at one end; got "
            f"{price!r} with p={p:g} and end={end!r}. Anything else sees all rows at once: use "
            "mode='batch'."
        )
    if not 0 < rate < 1:
        raise ValueError(f"rate={rate!r} must lie between 0 and 1.")


def _flat(values: Tensor) -> Tensor:
    return values if values.ndim == 1 else values.reshape(-1)


def _without_autocast(device: str) -> AbstractContextManager[object]:
    """Sums in full precision; where nothing is cast, to say so would cost a tenth of a step."""
    if torch.is_autocast_enabled(device):
        return torch.autocast(device_type=device, enabled=False)
    return nullcontext()


def bounded_exp(x: Tensor) -> Tensor:
    """e^x, continued by its tangent beyond the largest excess; convex."""
    inside = x.clamp(max=LARGEST_EXCESS)
    return torch.exp(inside) * (1.0 + (x - inside))


def pointwise(
    log_a: Tensor, log_b: Tensor, p: float, intercept: Tensor | float, log_level: Tensor | float
) -> Tensor:
    """Return (A e^-b + B e^{pb} / p) / level, with an absent class (log of zero) left out."""
    terms = []
    for log_mass, factor in ((log_a - intercept, 1.0), (log_b + p * intercept, 1.0 / p)):
        there = torch.isfinite(log_mass)
        safe = torch.where(there, log_mass - log_level, torch.zeros_like(log_mass))
        terms.append(torch.where(there, factor * bounded_exp(safe), torch.zeros_like(safe)))
    return terms[0] + terms[1]


def moving_average(tracked: Tensor | float, now: Tensor | float, rate: float) -> Tensor:
    """Return the tracked logarithm moved towards the one of now; all the way the first time."""
    fresh = torch.where(torch.isnan(tracked), now, tracked + rate * (now - tracked))
    return torch.where(torch.isfinite(now), fresh, tracked)


def moving_average_of_heights(tracked: Tensor | float, log_s: Tensor, rate: float) -> Tensor:
    """Return logarithms of tracked heights moved towards those of now, by arithmetic means."""
    keep = torch.nan_to_num(tracked) + math.log1p(-rate)
    mixed = torch.logaddexp(keep, log_s + math.log(rate))
    return torch.where(torch.isnan(tracked), log_s, mixed)

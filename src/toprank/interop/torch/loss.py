"""`PushLoss`: the push as a torch loss."""

from __future__ import annotations

import math
import warnings
from typing import Any

from toprank._extras import require
from toprank.interop.torch import distributed
from toprank.interop.torch._torch import Module, torch
from toprank.interop.torch.exponential import exponential_power
from toprank.interop.torch.heights import HEIGHTS
from toprank.interop.torch.minibatch import moved, moved_heights, pointwise
from toprank.interop.torch.sums import finite_exp, log_count, log_sum
from toprank.prices import PRICES, get_price

LOSSES = ("exponential", *HEIGHTS)
_CALLS_BEFORE_WARNING = 100


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
    price : str, default="power"
        "power", "identity", "exponential", "log1p" (exponential loss only) or "max".
    loss : str, default="exponential"
        "exponential", "logistic", "hinge" or "squared_hinge". Time and memory are O(n) for the
        first, O(n log n) and O(n) for the hinges; the logistic loss takes O(I K) time, in blocks.
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
    loss of zero and no gradient (in minibatch mode: that of the class it has).

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
        price: str = "power",
        loss: str = "exponential",
        mode: str = "batch",
        rate: float = 0.05,
        n_rows: int | None = None,
        reduce: bool = True,
    ):
        require("torch", "torch")
        super().__init__()
        _check(p, price, loss, mode, rate)
        self.p = 1.0 if price == "identity" else math.inf if price == "max" else float(p)
        self.price, self.loss, self.mode = price, loss, mode
        self.rate, self.n_rows, self.reduce = rate, n_rows, reduce
        if mode == "minibatch":
            self._prepare()

    def _prepare(self) -> None:
        self.register_buffer("log_level", torch.tensor(math.nan))
        if self.loss == "exponential":
            self.intercept = torch.nn.Parameter(torch.zeros(()))
            self._calls = 0
        elif self.n_rows is not None:
            self.register_buffer("log_heights", torch.full((self.n_rows,), math.nan))

    def extra_repr(self) -> str:
        return f"p={self.p:g}, price={self.price!r}, loss={self.loss!r}, mode={self.mode!r}"

    def forward(self, scores: Any, targets: Any, weight: Any = None, index: Any = None) -> Any:
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
        scores, positive = scores.reshape(-1), targets.reshape(-1) > 0
        if scores.shape != positive.shape:
            raise ValueError(
                f"scores hold {scores.numel()} numbers, targets {positive.numel()}; expected one a "
                "row."
            )
        with torch.autocast(device_type=scores.device.type, enabled=False):
            if scores.dtype in (torch.float16, torch.bfloat16):
                scores = scores.float()
            weight = None if weight is None else weight.reshape(-1).to(scores)
            together = self.reduce and self.training and distributed.world_size() > 1
            if self.mode == "batch" and self._by_sums and not together:
                return exponential_power(scores, positive, weight, self.p)
            weight = torch.ones_like(scores) if weight is None else weight
            positive, negative = positive & (weight > 0), ~positive & (weight > 0)
            if together and not self._by_sums:
                rows = (distributed.gathered(v) for v in (scores, positive.to(scores), weight))
                scores, positive, weight = rows
                positive = positive > 0
                negative = ~positive & (weight > 0)
                index = None if index is None else distributed.gathered(index.reshape(-1))
            across = together and self._by_sums
            if self.mode == "batch":
                value = self._of_batch(scores, positive, negative, weight, across)
            elif self.loss == "exponential":
                value = self._pointwise(scores, positive, negative, weight, across)
            else:
                value = self._tracked(scores, positive, negative, weight, index)
            return distributed.for_the_mean(value) if together else value

    @property
    def _by_sums(self) -> bool:
        """Whether processes need only add sums; where not, they gather the rows."""
        return (
            self.loss == "exponential" and self.price in ("power", "identity") and self.p < math.inf
        )

    # the objective of the batch

    def _of_batch(self, f: Any, positive: Any, negative: Any, weight: Any, across: bool) -> Any:
        if self.loss != "exponential":
            return self._by_heights(f, positive, negative, weight)
        if self.price == "log1p":
            f, positive, negative = -f, negative, positive  # the winners' heights are priced
        log_w = torch.log(weight)
        log_inner = log_sum(log_w - f, positive, across)
        log_totals = log_sum(log_w, positive, across), log_sum(log_w, negative, across)
        if self._by_sums:
            mean = log_sum(log_w + self.p * f, negative, across) - log_totals[1]
            value = log_inner - log_totals[0] + mean / self.p
        elif math.isinf(self.p):
            value = log_inner - log_totals[0] + torch.where(negative, f, -torch.inf).max()
        else:
            log_s = torch.where(negative, f + log_inner, torch.zeros_like(f))
            value = self._unscaled(log_s, negative, weight)
        both = torch.isfinite(log_totals[0]) & torch.isfinite(log_totals[1])
        return torch.where(both, value, 0.0 * torch.where(both, value, f.sum()))

    def _unscaled(self, log_s: Any, outer: Any, weight: Any) -> Any:
        """The prices that see weights as they are."""
        if self.price == "exponential":
            return log_sum(torch.log(weight) + finite_exp(log_s), outer)
        terms = weight * torch.nn.functional.softplus(log_s)
        return torch.where(outer, terms, torch.zeros_like(terms)).sum()

    def _by_heights(self, f: Any, positive: Any, negative: Any, weight: Any) -> Any:
        if not positive.any() or not negative.any():
            return 0.0 * f.sum()
        log_s, log_w = self._log_heights(f, positive, negative, weight)
        if self.price == "exponential":
            log_total = torch.log(weight[positive].sum())
            return torch.logsumexp(log_w + finite_exp(log_s + log_total), 0)
        return torch.exp(self._log_norm(log_s, log_w - torch.logsumexp(log_w, 0)))

    def _log_heights(self, f: Any, positive: Any, negative: Any, weight: Any) -> Any:
        """Return logarithms of the negatives' mean heights, and of their weights."""
        inner = weight[positive]
        inner = inner / inner.sum()
        heights = HEIGHTS[self.loss](f[positive], f[negative], inner)
        # a height of zero has no pair that could still move it
        tiny = torch.finfo(heights.dtype).tiny
        return torch.log(heights.clamp(min=tiny)), torch.log(weight[negative])

    def _log_norm(self, log_s: Any, log_w: Any) -> Any:
        if math.isinf(self.p):
            return log_s.max()
        return torch.logsumexp(log_w + self.p * log_s, 0) / self.p

    # the objective of all rows, from a batch

    def _pointwise(self, f: Any, positive: Any, negative: Any, weight: Any, across: bool) -> Any:
        log_w = torch.log(weight)
        log_a = log_sum(log_w - f, positive, across) - log_count(positive, f, across)
        log_b = log_sum(log_w + self.p * f, negative, across) - log_count(negative, f, across)
        if self.training:
            self._start(log_a.detach(), log_b.detach())
        level = torch.nan_to_num(self.log_level).to(f)
        intercept = self.intercept.to(f)
        if across:  # every process has its whole gradient already
            intercept = distributed.of_every_process(intercept)
        value = pointwise(log_a, log_b, self.p, intercept, level)
        if self.training:
            self._follow(value.detach(), level)
        return value

    def _start(self, log_a: Any, log_b: Any) -> None:
        """Begin with the best intercept of the first batch of both classes, and its level."""
        with torch.no_grad():
            ready = torch.isfinite(log_a) & torch.isfinite(log_b) & torch.isnan(self.log_level)
            best = (log_a - log_b) / (1.0 + self.p)
            self.intercept.copy_(torch.where(ready, best.to(self.intercept), self.intercept))
            self.log_level.copy_(
                torch.where(ready, (log_a - best).to(self.log_level), self.log_level)
            )

    def _follow(self, value: Any, level: Any) -> None:
        with torch.no_grad():
            now = level + torch.log(value / (1.0 + 1.0 / self.p))
            started = ~torch.isnan(self.log_level)
            new = moved(self.log_level, now.to(self.log_level), self.rate)
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

    def _tracked(self, f: Any, positive: Any, negative: Any, weight: Any, index: Any) -> Any:
        if not positive.any() or not negative.any():
            return 0.0 * f.sum()
        log_s, log_w = self._log_heights(f, positive, negative, weight)
        log_w = log_w - torch.logsumexp(log_w, 0)
        held = self._row_heights(log_s.detach(), negative, index)
        now = self._log_norm(held, log_w).detach()
        if self.training:
            self.log_level.copy_(moved(self.log_level, now.to(self.log_level), self.rate))
        level = torch.where(torch.isnan(self.log_level), now.to(self.log_level), self.log_level)
        push = torch.exp(log_w + (self.p - 1.0) * (held - level.to(held)).clamp(max=10.0))
        surrogate = (push * torch.exp(log_s)).sum()
        return torch.exp(level.to(f)) + surrogate - surrogate.detach()

    def _row_heights(self, log_s: Any, negative: Any, index: Any) -> Any:
        if self.n_rows is None:
            return log_s
        if index is None:
            raise ValueError("PushLoss was given n_rows, so it needs index: the rows' numbers.")
        rows = index.reshape(-1)[negative]
        if not self.training:
            return log_s
        held = moved_heights(self.log_heights[rows].to(log_s), log_s, self.rate)
        self.log_heights[rows] = held.to(self.log_heights)
        return held


def _check(p: float, price: str, loss: str, mode: str, rate: float) -> None:
    if loss not in LOSSES:
        raise ValueError(f"Unknown loss {loss!r}: expected one of {list(LOSSES)}.")
    if not isinstance(price, str):
        raise ValueError(f"price={price!r}: expected one of {sorted(PRICES)}.")
    get_price(price, p)  # refuses unknown names and p < 1
    if price == "log1p" and loss != "exponential":
        raise ValueError("The log1p price (IR Push) is convex with the exponential loss only.")
    if mode not in ("batch", "minibatch"):
        raise ValueError(f"Unknown mode {mode!r}: expected 'batch' or 'minibatch'.")
    if mode == "minibatch" and (price not in ("power", "identity") or math.isinf(p)):
        raise ValueError(
            f"mode='minibatch' needs price='power' with a finite p, or 'identity'; got {price!r} "
            f"with p={p:g}. The other prices see all rows at once: use mode='batch'."
        )
    if not 0 < rate < 1:
        raise ValueError(f"rate={rate!r} must lie between 0 and 1.")

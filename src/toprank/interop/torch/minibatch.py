"""The full objective from batches: what is learned or tracked from one batch to the next.

Exponential loss, power price (DESIGN fact: P-Classification, Ertekin & Rudin 2011):

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
from typing import Any

from toprank.interop.torch._torch import torch

#: A batch counts as at most this many times the tracked value, e^9.2 = 10,000; beyond, its
#: gradient grows no more.
LARGEST_EXCESS = 9.2


def bounded_exp(x: Any) -> Any:
    """e^x, continued by its tangent beyond the largest excess; convex."""
    inside = x.clamp(max=LARGEST_EXCESS)
    return torch.exp(inside) * (1.0 + (x - inside))


def pointwise(log_a: Any, log_b: Any, p: float, intercept: Any, log_level: Any) -> Any:
    """Return (A e^-b + B e^{pb} / p) / level, with an absent class (log of zero) left out."""
    terms = []
    for log_mass, factor in ((log_a - intercept, 1.0), (log_b + p * intercept, 1.0 / p)):
        there = torch.isfinite(log_mass)
        safe = torch.where(there, log_mass - log_level, torch.zeros_like(log_mass))
        terms.append(torch.where(there, factor * bounded_exp(safe), torch.zeros_like(safe)))
    return terms[0] + terms[1]


def moved(tracked: Any, now: Any, rate: float) -> Any:
    """Return the tracked logarithm moved towards the one of now; all the way the first time."""
    fresh = torch.where(torch.isnan(tracked), now, tracked + rate * (now - tracked))
    return torch.where(torch.isfinite(now), fresh, tracked)


def moved_heights(tracked: Any, log_s: Any, rate: float) -> Any:
    """Return logarithms of tracked heights moved towards those of now, by arithmetic means."""
    keep = torch.nan_to_num(tracked) + math.log1p(-rate)
    mixed = torch.logaddexp(keep, log_s + math.log(rate))
    return torch.where(torch.isnan(tracked), log_s, mixed)

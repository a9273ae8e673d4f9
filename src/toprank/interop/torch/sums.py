"""Sums over the members of a class, in this process or across all of them."""

from __future__ import annotations

from typing import Any

from toprank.interop.torch._torch import torch
from toprank.interop.torch.distributed import log_sum_exp_of, sum_of


def class_log_sum(terms: Any, members: Any, across: bool = False) -> Any:
    """Return log of the sum of e^terms over the members; minus infinity where there are none.

    By a mask, not an index: compiled code wants shapes that do not depend on the labels.
    """
    inside = torch.where(members, terms, torch.full_like(terms, -torch.inf))
    local = torch.logsumexp(inside, 0)
    return log_sum_exp_of(local) if across else local


def class_log_count(members: Any, like: Any, across: bool = False) -> Any:
    """Return log of the number of members, of one where there are none."""
    count = members.sum().to(like)
    return torch.log((sum_of(count) if across else count).clamp(min=1.0))

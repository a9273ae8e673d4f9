"""Sums over all processes, and gradients that survive the mean DistributedDataParallel takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toprank.interop.torch._torch import torch

if TYPE_CHECKING:
    from torch import Tensor


def world_size() -> int:
    """Return the number of processes that train together."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return 1
    return int(torch.distributed.get_world_size())


def sum_over_processes(value: Tensor) -> Tensor:
    """Return the sum over the processes, without a gradient."""
    total = value.detach().clone()
    torch.distributed.all_reduce(total)
    return total


def log_sum_exp_over_processes(local: Tensor) -> Tensor:
    """Return the log-sum-exp over the processes; its gradient is this process's share of it."""
    top = local.detach().clone()
    torch.distributed.all_reduce(top, op=torch.distributed.ReduceOp.MAX)
    shift = torch.where(torch.isfinite(top), top, torch.zeros_like(top))
    total = shift + torch.log(sum_over_processes(torch.exp(local - shift)))
    share = torch.exp(local.detach() - total)
    share = torch.where(torch.isfinite(total), share, torch.zeros_like(share))
    live = torch.where(torch.isfinite(local), local, torch.zeros_like(local))
    return total + share * (live - live.detach())


def rows_of_all(value: Tensor) -> Tensor:
    """Return the rows of all processes, this one's with their gradient; None for None."""
    if value is None:  # in every process alike
        return None
    n = torch.tensor([len(value)], device=value.device)
    sizes = [torch.zeros_like(n) for _ in range(world_size())]
    torch.distributed.all_gather(sizes, n)
    counts = [int(size) for size in sizes]
    padded = value.detach().new_zeros(max(counts))
    padded[: len(value)] = value.detach()
    parts = [torch.empty_like(padded) for _ in counts]
    torch.distributed.all_gather(parts, padded)
    rows = [part[:count] for part, count in zip(parts, counts, strict=True)]
    rows[torch.distributed.get_rank()] = value
    return torch.cat(rows)


def scaled_for_mean(value: Tensor) -> Tensor:
    """Return the value with its gradient times the number of processes.

    Each process holds its own part of the gradient of one common value; the mean over the
    processes, which DistributedDataParallel takes, then is the whole gradient.
    """
    return value + (world_size() - 1) * (value - value.detach())


def shared_among_processes(value: Tensor) -> Tensor:
    """Return the value with its gradient divided by the number of processes.

    For what each process differentiates in full, before `scaled_for_mean`.
    """
    return value.detach() + (value - value.detach()) / world_size()


def class_log_sum(terms: Tensor, members: Tensor, across: bool = False) -> Tensor:
    """Return log of the sum of e^terms over the members; minus infinity where there are none.

    By a mask, not an index: compiled code wants shapes that do not depend on the labels.
    """
    inside = torch.where(members, terms, torch.full_like(terms, -torch.inf))
    local = torch.logsumexp(inside, 0)
    return log_sum_exp_over_processes(local) if across else local


def class_log_count(members: Tensor, like: Tensor, across: bool = False) -> Tensor:
    """Return log of the number of members, of one where there are none."""
    count = members.sum().to(like)
    return torch.log((sum_over_processes(count) if across else count).clamp(min=1.0))

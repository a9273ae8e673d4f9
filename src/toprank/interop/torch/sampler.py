"""Batches that always hold positives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike


class PositiveBatchSampler:
    """Batches of rows with a fixed number of positives in each.

    An epoch goes through the negatives once, in random order; the positives come round as often as
    that takes, each as often as any other, but for one. Class means of such a batch are unbiased
    for those of the data.

    Parameters
    ----------
    targets : array-like of shape (n,)
        Positive where larger than zero.
    batch_size : int
    n_positives : int, optional
        Positives in each batch; by default their share of the batch, at least one and at most
        half of it.
    seed : int, default=0
        The batches of an epoch depend on it and on the epoch, see ``set_epoch``.
    num_replicas, rank : int
        Processes that train together, and which one this is: batches are dealt out among them.

    Examples
    --------
    >>> from toprank.interop.torch import PositiveBatchSampler
    >>> batches = list(PositiveBatchSampler([0] * 95 + [1] * 5, batch_size=20))
    >>> len(batches), [sum(i >= 95 for i in batch) for batch in batches]
    (5, [1, 1, 1, 1, 1])
    """

    def __init__(
        self,
        targets: ArrayLike,
        batch_size: int,
        n_positives: int | None = None,
        *,
        seed: int = 0,
        num_replicas: int = 1,
        rank: int = 0,
    ):
        positive = np.asarray(targets).reshape(-1) > 0
        self.positives = np.flatnonzero(positive)
        self.negatives = np.flatnonzero(~positive)
        if not len(self.positives) or not len(self.negatives):
            raise ValueError(
                f"targets hold {len(self.positives)} positives and {len(self.negatives)} "
                "negatives; batches of both need at least one of each."
            )
        if n_positives is None:
            share = round(batch_size * len(self.positives) / len(positive))
            n_positives = max(1, min(share, batch_size // 2))
        if not 0 < n_positives < batch_size:
            raise ValueError(
                f"n_positives={n_positives} leaves no room for both classes in a batch of "
                f"{batch_size}."
            )
        if not 0 <= rank < num_replicas:
            raise ValueError(f"rank={rank} is not one of {num_replicas} processes.")
        self.n_positives = n_positives
        self.n_negatives = batch_size - n_positives
        self.seed = seed
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next; every process must say the same."""
        self.epoch = epoch

    def __len__(self) -> int:
        # every process sees as many batches, or the others would wait for it
        batches = max(1, len(self.negatives) // self.n_negatives)
        return max(1, batches // self.num_replicas)

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng([self.seed, self.epoch])
        self.epoch += 1
        count = len(self) * self.num_replicas
        positives = _rounds(rng, self.positives, count * self.n_positives)
        negatives = _rounds(rng, self.negatives, count * self.n_negatives)
        for k in range(self.rank, count, self.num_replicas):
            chosen = np.concatenate(
                [
                    positives[k * self.n_positives : (k + 1) * self.n_positives],
                    negatives[k * self.n_negatives : (k + 1) * self.n_negatives],
                ]
            )
            yield [int(row) for row in rng.permutation(chosen)]


def _rounds(rng: np.random.Generator, rows: np.ndarray, n: int) -> np.ndarray:
    """Return n rows: all of them in random order, again and again."""
    times = -(-n // len(rows))
    return np.concatenate([rng.permutation(rows) for _ in range(times)])[:n]

"""What every source of row blocks offers: one map-reduce, wherever the rows lie.

A source knows where its blocks are: in this process, in files, on the workers of a cluster, on
a device. A sweep knows what one block contributes and how two contributions merge. Nothing
else depends on scale: threads, Parquet row groups, Dask, Spark and GPUs differ only in how they
bring a sweep to the blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray

State = TypeVar("State", contravariant=True)
Partial = TypeVar("Partial")


@dataclass
class Block:
    """Some rows of the data, as they lie: features, labels, weights.

    ``X`` is a NumPy array, a CSR matrix, or a tensor on its device; ``y`` holds the labels as
    the user gave them (None where rows are only scored). A block without rows is allowed, and
    so is one with rows of a single class.
    """

    index: int  #: its place in the order in which partial results are merged
    X: Any
    y: Any = None
    weight: Any = None
    #: Things worth keeping while the block stays where it is. A source may hand out a fresh,
    #: empty one at every pass, so nothing may depend on it but time.
    cache: dict[str, Any] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])


class Sweep(Protocol[State, Partial]):
    """What a pass over the data gathers. It travels to the blocks: picklable, and small."""

    def local(self, block: Block, state: State) -> Partial:
        """Return what the rows of one block contribute; ``state`` is no larger than a few d x d."""
        ...

    def merge(self, left: Partial, right: Partial) -> Partial:
        """Join two contributions, associatively; either may be overwritten."""
        ...


class BlockSource(ABC):
    """Rows in blocks, and a map-reduce over them.

    Attributes
    ----------
    n_features : int
    feature_names : array of str or None
        Names of the columns, where the data have them.
    """

    n_features: int
    feature_names: NDArray[np.object_] | None = None

    @abstractmethod
    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        """Merge ``sweep.local(block, state)`` over all blocks.

        The cuts and the order of the merge depend on the data alone, so that the answer has
        the same bits for any number of workers.
        """

    @abstractmethod
    def write_scores(self, score: Callable[[Any], FloatArray], to: Any = None) -> Any:
        """Score every row where it lies, and hand the scores back the engine's own way.

        ``score`` takes the ``X`` of a block; it is picklable. ``to`` says where scores go when
        they are written to files.
        """

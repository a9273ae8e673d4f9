"""The rows of a tensor on its device as a source: one block per process.

With several processes a pass ends with the partial results of all of them gathered, a few numbers
each, and merged in the order of the ranks: every process ends with the same bits, and so takes the
same next step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Any

from toprank._extras import require
from toprank.blocks.device import DeviceDesign, first_bad
from toprank.blocks.source import Bad, Block, BlockSource, Partial, State, Sweep
from toprank.blocks.statistics import Units
from toprank.blocks.stored import StoredRows
from toprank.blocks.tensors import unwrap

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Features from which the algebra of the solver is held to one thread.
_LONG = 256
#: Rows up to which second moments are taken from all of them, and not from a sample.
_CURVED_ROWS = 1 << 22


class TensorSource(BlockSource):
    """The rows of a tensor, and those of the other processes of a group.

    Use `from_torch`, which checks what it is given.
    """

    keeps_samples = True
    on_device = True

    def __init__(self, block: Block, group: ProcessGroup | None = None):
        self.block = block
        self.n_features = int(block.X.shape[1])
        self.group = group

    def map_reduce(self, sweep: Sweep[State, Partial], state: State) -> Partial:
        if self.group is None:
            return sweep.local(self.block, state)
        partials = self.group.gather(lambda: sweep.local(self.block, state))
        total = partials[0]
        for partial in partials[1:]:
            total = sweep.merge(total, partial)
        return total

    def thin(self, pick: Callable[[Block], Block]) -> TensorSource:
        return TensorSource(pick(self.block), self.group)

    def late_check(self) -> Callable[[], Bad | None] | None:
        X = self.block.X
        alone = self.group is None and not isinstance(X, StoredRows)
        # entries of eight bytes may be finite and still too large
        if not alone or X.element_size() > 4 or DeviceDesign(X, Units()).kernel != "triton":
            return None
        return cache(lambda: first_bad(self.block))

    def start_threads(self, n_jobs: int | None = None) -> AbstractContextManager[object]:
        # no rows come to this process, and its threads have nothing to do; BLAS on many threads
        # takes eight times as long as on one for vectors of 100,000 coefficients
        return super().start_threads(1) if self.n_features > _LONG else nullcontext()

    def cheap_curvature(self, n_rows: int) -> bool:
        # one kernel reads X for the gradient; second moments take several passes of torch's
        return n_rows <= _CURVED_ROWS

    def name_of(self, index: int) -> str:
        return "the tensor" if self.group is None else f"the tensor of rank {index}"

    def write_scores(
        self, score: Callable[..., object], to: str | PathLike[str] | None = None
    ) -> Tensor:
        """Return the scores of this process's rows as a tensor on their device."""
        if to is not None:
            raise ValueError(
                "Scores of a tensor come back as a tensor on its device; leave to= out and save "
                "them with torch.save."
            )
        return unwrap(score(self.block.X))


class ProcessGroup:
    """Processes that hold rows of the same data, in the order of their ranks."""

    def __init__(self, group: torch.distributed.ProcessGroup | None, device: torch.device):
        self.distributed = require("torch", "torch").distributed
        self.group = group
        self.rank = int(self.distributed.get_rank(group))
        self.size = int(self.distributed.get_world_size(group))
        self.device = device

    def gather(self, local: Callable[[], Partial]) -> list[Partial]:
        """Return what each process found; a process that fails makes all of them fail."""
        try:
            found: tuple[Partial | None, str | None] = (local(), None)
        except Exception as error:
            found = (None, f"{type(error).__name__}: {error}")
            self._exchange(found)
            raise
        answers = self._exchange(found)
        failures = [f"rank {rank}: {why}" for rank, (_, why) in enumerate(answers) if why]
        if failures:
            raise RuntimeError("A pass over the rows failed on " + "; ".join(failures))
        return [answer for answer, _ in answers]

    def _exchange(self, mine: object) -> list[Any]:
        answers: list[Any] = [None] * self.size
        on_its_device = (
            require("torch", "torch").cuda.device(self.device)
            if self.device.type == "cuda"
            else nullcontext()
        )
        with on_its_device:
            self.distributed.all_gather_object(answers, mine, group=self.group)
        return answers

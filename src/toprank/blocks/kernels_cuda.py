"""One read of X on an NVIDIA GPU, at any number of columns: a kernel that torch compiles.

The source is compiled for one number of columns and one type of entries by NVRTC, which comes
with torch, once for all processes (`toprank.blocks.cuda_binaries`); where it is missing, or too
old, `toprank.blocks.kernels_triton` serves. Kernels are started through CUDA's driver, whose calls
take a few microseconds: the coefficients go over in one copy, a second kernel adds up what the
teams of warps have and writes it into memory of the host.
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toprank._lazy import cached_property
from toprank._numerics import FloatArray
from toprank.blocks import cuda_rows, cuda_tiles, cuda_turned
from toprank.blocks.cuda_binaries import Driver, load_kernels
from toprank.blocks.cuda_common import COMMON, FINISH, NOT_SHIFTED, SHIFTED, TYPES
from toprank.blocks.cuda_plans import (
    Plan,
    TilePlan,
    TurnedPlan,
    plan_for,
    read_at_once,
    tile_plan_for,
    turned_plan_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import torch
    from torch import Tensor

#: A place in memory as CUDA's driver is told of one.
Pointer: TypeAlias = ctypes.c_void_p
#: How many times as many blocks are started as a multiprocessor holds.
_WAVES = 2
#: Rows that one launch may number with 32 bits.
_LAUNCH_ROWS = 1 << 30
#: Columns of sums that a block of the last kernel adds up, and its threads.
_FINISH_COLUMNS, _FINISH_THREADS = 32, 1024
#: Labels that a kernel may copy at once.
_LABELS_AT_ONCE = 4
#: CUDA's number of the attribute that lets a kernel have more than 48 KB of shared memory.
_MOST_SHARED = 8
#: Columns up to which a row's exponential takes long enough for one without branches, which needs
#: more registers.
_FEW_COLUMNS = 12
#: Generation of GPUs from which on rows are copied to shared memory while others are summed.
_COPIES_FROM = 8


class Kernels:
    """The two kernels of a table: one leaves sums per team, the other adds them up.

    Parameters
    ----------
    X : tensor of shape (n, d), by rows or by columns
    weighted, centred : bool
    scored : bool
        Whether the scores of the rows are written out too.
    """

    def __init__(self, X: Tensor, weighted: bool, centred: bool, scored: bool = False):
        columns, size = int(X.shape[1]), X.element_size()
        self.plan = _plan(X, centred)
        body, own = _source_of(self.plan, X)
        stages = int(own["STAGES"])
        self.blocks = self.plan.blocks(columns, size)
        self.shared = self.plan.shared(columns, size) if stages else 0
        #: A kernel that asks for rows ahead stays; others are started anew as places get free.
        self.waves = 1 if stages else _WAVES
        entry, _, to_double, unpack = TYPES[str(X.dtype)]
        defined = {
            "ENTRY": entry,
            "TO_DOUBLE": to_double,
            "UNPACK(w, e)": unpack,
            "COLUMNS": columns,
            "WARPS": self.plan.warps,
            "FEWEST_BLOCKS": self.blocks,
            "WEIGHTED": int(weighted),
            "CENTRED": int(centred),
            "SUBTRACT": int(centred and size > 2),
            "SCORED": int(scored),
            **own,
        }
        lines = [f"#define {name} {value}" for name, value in defined.items()]
        source = "\n".join([*lines, COMMON, body, FINISH])
        self.loaded = load_kernels(source, ("tilted", "finish"))
        self.driver = self.loaded.driver
        self.tilted, self.finish = (self.loaded.functions[name] for name in ("tilted", "finish"))
        if self.shared:
            allow_shared(self.driver, self.tilted, self.shared)


def _plan(X: Tensor, centred: bool) -> Plan | TilePlan | TurnedPlan:
    """How the threads share out a table."""
    columns, size, (by_column, stride) = int(X.shape[1]), X.element_size(), layout(X)
    room = shared_memory(X.device)
    beside = next(rows for rows in (4, 2, 1) if _begins_at(X, rows * size))
    plan: TilePlan | TurnedPlan | None = tile_plan_for(columns, size, by_column, beside)
    # rows are read several entries at a time, and no centre is subtracted from each
    begins = stride == columns and _begins_at(X, read_at_once(columns, size))
    if plan is None and (by_column or begins) and not (centred and size > 2):
        plan = turned_plan_for(columns, size, by_column, beside)
    if plan is None or plan.shared(columns, size) > room:
        return plan_for(columns, size, by_column)
    return plan


def _source_of(plan: Plan | TilePlan | TurnedPlan, X: Tensor) -> tuple[str, dict[str, str | int]]:
    """The source of a plan's kernel, and what is defined in it alone."""
    columns, size, (by_column, stride) = int(X.shape[1]), X.element_size(), layout(X)
    names = "SHIFTED(w, e)", "SCALE", "INFINITE", "SHIFTED_LOW(w)"
    shifts = dict(zip(names, SHIFTED.get(str(X.dtype), NOT_SHIFTED), strict=True))
    if isinstance(plan, TilePlan):
        return cuda_tiles.SOURCE, {
            **shifts,
            "STAGES": plan.stages,
            "PARTS": plan.parts(columns),
            "ROWS": plan.rows,
            "GROUPS": plan.groups,
            "SHARED": plan.sharing,
            "BYTES": size,
            "ALIGNED": int(_begins_at(X, 16)),
        }
    if isinstance(plan, TurnedPlan):
        return cuda_turned.SOURCE, {
            **shifts,
            "STAGES": plan.stages,
            "ROWS": plan.tile,
            "TEAMS": plan.teams,
            "PER_LANE": plan.per_lane,
            "TOGETHER": plan.together,
            "ALONE": int(plan.taken == 0),
            "LEFT": plan.left,
            "ADJACENT": int(plan.adjacent),
            "BYTES": size,
            "BY_COLUMN": int(by_column),
            "READ_AT_ONCE": 2 * size if by_column else read_at_once(columns, size),
            "TAKEN_AT_ONCE": plan.taken or size,
            "PADDED": int(columns * size % 16 == 0),
        }
    fits = stride == columns and plan.shared(columns, size) <= shared_memory(X.device)
    stages = plan.stages if fits else 0
    return cuda_rows.SOURCE, {
        "STAGES": stages,
        "LANES": plan.lanes,
        "SLOTS": plan.slots,
        "TEAMS": plan.teams,
        "BATCH": plan.batch,
        "AHEAD": int(plan.ahead and not stages),
        "EXPONENTIAL": "exponential" if columns <= _FEW_COLUMNS else "exp",
        "BY_COLUMN": int(by_column),
    }


def _begins_at(X: Tensor, multiple: int) -> bool:
    """Whether every row, or every column, begins at a multiple of so many bytes."""
    return X.data_ptr() % multiple == 0 and layout(X)[1] * X.element_size() % multiple == 0


def shared_memory(device: torch.device) -> int:
    """Bytes of shared memory that a block may ask for to copy rows into; 0 where it cannot."""
    torch = importlib.import_module("torch")
    facts = torch.cuda.get_device_properties(device)
    if facts.major < _COPIES_FROM:
        return 0
    return int(getattr(facts, "shared_memory_per_block_optin", 48 * 1024))


def layout(X: Tensor) -> tuple[bool, int]:
    """Whether a table lies by columns, and how far apart they, or its rows, are."""
    by_column = X.stride(1) != 1 and X.shape[1] > 1
    return by_column, int(X.stride(1) if by_column else X.stride(0))


def allow_shared(driver: Driver, function: object, size: int) -> None:
    """Let a kernel have so many bytes of shared memory."""
    check(driver.cuFuncSetAttribute(function, _MOST_SHARED, size))


def start_kernel(
    driver: Driver, function: object, shape: tuple[int, int, int], device: int, places: object
) -> None:
    """Start a kernel on the stream of a device, and wait for nothing.

    ``shape`` says how many blocks, threads of each and bytes of shared memory; ``places`` are those
    of the arguments, see `arguments`.
    """
    blocks, threads, shared = shape
    stream = ctypes.c_void_p(stream_of()(device))
    grid = blocks, 1, 1, threads, 1, 1, shared
    check(driver.cuLaunchKernel(function, *grid, stream, places, None))


def check(status: int) -> None:
    """Raise what the driver reports."""
    if status:
        raise RuntimeError(f"The GPU's driver reports error {status} in a sum over rows.")


_COMPILED: dict[tuple[object, ...], Kernels | None] = {}


def kernels_for(X: Tensor, weighted: bool, centred: bool, scored: bool = False) -> Kernels | None:
    """Return the kernels of a table, compiled once; None where torch cannot compile them."""
    torch = importlib.import_module("torch")
    if torch.version.cuda is None or str(X.dtype) not in TYPES:
        return None
    by_column, stride = layout(X)
    size, dense = X.element_size(), stride == X.shape[1]
    begins = tuple(_begins_at(X, at) for at in (4, 8, 16, read_at_once(X.shape[1], size)))
    asked = weighted, centred, scored
    key = X.device.index, X.shape[1], X.dtype, by_column, *asked, *begins, dense
    if key not in _COMPILED:
        try:
            with torch.cuda.device(X.device):
                _COMPILED[key] = Kernels(X, *asked)
        except (ImportError, RuntimeError, OSError, AttributeError, TypeError, KeyError):
            _COMPILED[key] = None
    return _COMPILED[key]


@cache
def stream_of() -> Callable[[int], int]:
    """A function that returns the number of a device's current stream."""
    torch = importlib.import_module("torch")
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return quick or (lambda device: torch.cuda.current_stream(device).cuda_stream)


class FusedReader:
    """Reads a table once per evaluation; what it needs for that is made ready before.

    Parameters
    ----------
    X : tensor of shape (n, d), by rows or by columns
    kind : uint8 tensor of shape (n,), not zero for positives
    log_weight, centre : float64 tensors or None
    kernels : Kernels
    """

    def __init__(
        self,
        X: Tensor,
        kind: Tensor,
        log_weight: Tensor | None,
        centre: Tensor | None,
        kernels: Kernels,
    ):
        torch = importlib.import_module("torch")
        self.kernels, self.device = kernels, X.device.index
        self.on_its_device: AbstractContextManager[object] = torch.cuda.device(X.device)
        n, columns = X.shape
        real = {"dtype": torch.float64, "device": X.device}
        pinned = {"dtype": torch.float64, "pin_memory": True}
        self.given = torch.empty(4 + columns, **real)
        self.given_here = torch.empty(4 + columns, **pinned)
        self.total_here = torch.empty((2, columns + 1), **pinned)
        self.given_as_array: NDArray[np.float64] = self.given_here.numpy()
        self.total_as_array: NDArray[np.float64] = self.total_here.numpy()
        processors = torch.cuda.get_device_properties(X.device).multi_processor_count
        plan, stride = kernels.plan, layout(X)[1]
        most = kernels.waves * kernels.blocks * processors
        parts = [slice(first, min(first + _LAUNCH_ROWS, n)) for first in range(0, n, _LAUNCH_ROWS)]
        grids = [min(most, -(-(part.stop - part.start) // plan.rows)) for part in parts]
        self.sums = torch.empty((sum(grids) * plan.teams, 2, columns + 1), **real)
        if kind.data_ptr() % _LABELS_AT_ONCE:
            kind = kind.clone()
        self.held = X, kind, log_weight, centre
        self.launches, team = [], 0
        for part, grid in zip(parts, grids, strict=True):
            logs = self.given if log_weight is None else log_weight[part]
            tensors = X[part], kind[part], logs, self.given, centre, self.sums[team:]
            pointers = [0 if tensor is None else tensor.data_ptr() for tensor in tensors]
            numbers = part.stop - part.start, stride, 0  # and no place for the scores
            self.launches.append((grid, part.start, arguments(pointers, numbers)))
            team += grid * plan.teams
        self.adding = arguments(
            [self.sums.data_ptr(), self.total_here.data_ptr()], (len(self.sums),)
        )
        self.finish_grid = -(-2 * (columns + 1) // _FINISH_COLUMNS)

    @cached_property
    def _scored(self) -> Kernels:
        """The same kernels, which write out the scores."""
        X, _, log_weight, centre = self.held
        found = kernels_for(X, log_weight is not None, centre is not None, True)
        assert found is not None  # as the others were compiled
        return found

    def __call__(
        self, coef: FloatArray, about: tuple[float, ...], scores: Tensor | None = None
    ) -> FloatArray:
        """Return (mass, moments) of positives and negatives; ``about`` are their tilts and tops.

        The scores of the rows are written into a float64 vector where one is given.
        """
        self.start(coef, about, scores)
        return self.finish()

    def start(
        self, coef: FloatArray, about: tuple[float, ...], scores: Tensor | None = None
    ) -> None:
        """Start on that, and wait for nothing: `finish` must be called before the next start."""
        kernels, plan = self.kernels if scores is None else self._scored, self.kernels.plan
        driver = kernels.driver
        self.given_as_array[:4] = about
        self.given_as_array[4:] = coef
        with self.on_its_device:
            stream = ctypes.c_void_p(stream_of()(self.device))
            check(
                driver.cuMemcpyHtoDAsync_v2(
                    ctypes.c_uint64(self.given.data_ptr()),
                    ctypes.c_void_p(self.given_here.data_ptr()),
                    ctypes.c_size_t(8 * self.given_here.numel()),
                    stream,
                )
            )
            for grid, start, (arguments, values) in self.launches:
                values[-1].value = 0 if scores is None else scores.data_ptr() + 8 * start
                shape = grid, 1, 1, plan.threads, 1, 1, kernels.shared
                check(driver.cuLaunchKernel(kernels.tilted, *shape, stream, arguments, None))
            shape = self.finish_grid, 1, 1, _FINISH_THREADS, 1, 1, 0
            check(driver.cuLaunchKernel(kernels.finish, *shape, stream, self.adding[0], None))

    def finish(self) -> FloatArray:
        """Wait for what was started, and return it."""
        with self.on_its_device:
            stream = ctypes.c_void_p(stream_of()(self.device))
            check(self.kernels.driver.cuStreamSynchronize(stream))
        return self.total_as_array.copy()


def arguments(pointers: list[int], numbers: tuple[int, ...]) -> tuple[Any, list[Any]]:
    """Return the arguments of a kernel as the driver wants them, and what they point to."""
    held = [ctypes.c_void_p(pointer) for pointer in pointers]
    values: list[Any] = [*held, *(ctypes.c_longlong(number) for number in numbers)]
    places = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    return places, values

"""The root of a power price of a loss that is summed over boxes, on an NVIDIA GPU, in one go.

The kernels of `toprank.blocks.cuda_boxes`, compiled by NVRTC as those of
`toprank.blocks.kernels_cuda` are, and started one after the other through CUDA's driver: that takes
the host some fifty microseconds, and it waits for nothing.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toprank.blocks import cuda_boxes
from toprank.blocks.kernels_cuda import arguments, check, stream_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Warps of a block that has a table for each of them, and how many of these blocks and of the
#: others a multiprocessor holds; threads of the others.
_WARPS, _SPREADING, _WIDE, _BLOCKS = 4, 5, 256, 8
_NAMES = (
    "ends", "lay", "spread_inner", "forward", "price", "total", "spread_outer", "backward",
    "slopes_of",
)  # fmt: skip


@dataclass(frozen=True)
class _Kernels:
    """Kernels by their names, as CUDA's driver knows them, and the driver."""

    functions: dict[str, object]
    driver: ctypes.CDLL
    kept: object  # what is unloaded when nobody holds it


@dataclass(frozen=True)
class _Launch:
    """A kernel to start: its blocks and threads, its arguments, and which of them are scores."""

    function: object
    shape: tuple[int, int]
    places: object
    values: Sequence[object]  # what the arguments point to
    of_scores: Sequence[ctypes.c_void_p]


_COMPILED: dict[tuple[object, ...], _Kernels | None] = {}


def _kernels(device: torch.device, **defined: object) -> _Kernels | None:
    """The kernels, compiled once; None where torch cannot compile them."""
    torch = importlib.import_module("torch")
    key = device.index, *defined.items()
    if torch.version.cuda is None:
        return None
    if key not in _COMPILED:
        try:
            utils = importlib.import_module("torch.cuda._utils")
            lines = [f"#define {name} {value}" for name, value in defined.items()]
            source = "\n".join([*lines, cuda_boxes.SOURCE])
            with torch.cuda.device(device):
                binary, _ = utils._nvrtc_compile(source, _NAMES[0])
                loaded = utils._cuda_load_module(binary, list(_NAMES))
            functions = {name: loaded[name].func for name in _NAMES}
            _COMPILED[key] = _Kernels(functions, utils._get_gpu_runtime_library(), loaded)
        except (ImportError, RuntimeError, OSError, AttributeError, TypeError, KeyError):
            _COMPILED[key] = None
    return _COMPILED[key]


class BoxChain:
    """F and its slopes in the scores of rows whose boxes are all near each other.

    Parameters
    ----------
    side : uint8 tensor of shape (n,)
        1 for inner rows, 2 for outer ones, 0 for those that are absent.
    shares : two float64 tensors of shape (n,) or (1,)
        The share of each inner row and of each outer row in its side, or of all of them.
    sign : int
        1, or -1 where scores are turned round.
    heights : float64 tensor of shape (n,)
        Room for what the outer rows are worth.
    near : float64 tensor of shape (2, 2 m + 1, terms, terms)
        What a moment of a box adds to the series of sums of the loss, and of its slope, in a box
        -m to m boxes before it, in Chebyshev's polynomials.
    powers : float64 tensor of shape (terms, terms)
        The powers of x in each of these polynomials.
    width, quanta, p : float
        Of a box; what the moments' sizes sum to; the power of the price.
    """

    def __init__(
        self,
        side: Tensor,
        shares: tuple[Tensor, Tensor],
        sign: int,
        heights: Tensor,
        near: Tensor,
        powers: Tensor,
        *,
        width: float,
        quanta: float,
        p: float,
    ):
        torch = importlib.import_module("torch")
        self.torch, self.device, n = torch, side.device, len(side)
        most, terms = near.shape[1] // 2, near.shape[2]
        self.kernels = _kernels(
            side.device, MOST=most, TERMS=terms, WARPS=_WARPS, BOX=float(width).hex(),
            QUANTA=float(quanta).hex(), SIGN=f"({sign}.0)",
        )  # fmt: skip
        if self.kernels is None:
            return
        processors = torch.cuda.get_device_properties(side.device).multi_processor_count
        spreading = min(_SPREADING * processors, -(-n // (32 * _WARPS)))
        many = min(_BLOCKS * processors, -(-n // _WIDE))
        table = most * terms
        real = {"dtype": torch.float64, "device": side.device}
        parts = [4, 3, 2, 2 * table + 1, table, 4 * many, 2 * many]
        axis, facts, whole, rising, falling, ends, found = torch.empty(sum(parts), **real).split(
            parts
        )
        rising[-1:] = p
        tables = torch.empty(2 * table, dtype=torch.int64, device=side.device)
        self.facts, self.slopes = facts, torch.empty(n, **real)
        self.held = side, shares, heights, near, powers, rising, falling, ends, found, tables
        ((inner, of_inner), (outer, of_outer)) = ((s, int(len(s) > 1)) for s in shares)
        rows, of_outer_rows = (None, side), tables[table:]  # None: the scores, when it is started
        slopes, small = self.slopes, (most, terms**2)
        wide, narrow, one = (many, _WIDE), (spreading, 32 * _WARPS), (1, _WIDE)
        self._launches = [
            self._launch("ends", wide, (*rows, ends, tables), n),
            self._launch("lay", one, (ends, axis), many),
            self._launch("spread_inner", narrow, (*rows, inner, axis, tables), of_inner, n),
            self._launch("forward", small, (tables, near, powers, axis, rising)),
            self._launch(
                "price", wide, (*rows, outer, rising, axis, heights, slopes, found), of_outer, n
            ),
            self._launch("total", one, (found, rising, axis, facts, whole), many),
            self._launch("spread_outer", narrow, (*rows, heights, axis, of_outer_rows, whole), n),
            self._launch("backward", small, (of_outer_rows, near, powers, axis, whole, falling)),
            self._launch("slopes_of", wide, (*rows, inner, falling, axis, slopes), of_inner, n),
        ]

    def _launch(
        self, name: str, shape: tuple[int, int], tensors: Sequence[Tensor | None], *numbers: int
    ) -> _Launch:
        assert self.kernels is not None
        pointers = [0 if tensor is None else tensor.data_ptr() for tensor in tensors]
        places, values = arguments(pointers, numbers)
        of_scores = [value for value, of in zip(values, tensors, strict=False) if of is None]
        return _Launch(self.kernels.functions[name], shape, places, values, of_scores)

    def __call__(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return facts of F and its slopes in the scores, both overwritten by the next call.

        The facts are the value, what all slopes are to be multiplied by, and 1 where the scores
        are numbers and their boxes near each other, else 0: then nothing else is sound.
        """
        assert self.kernels is not None
        driver = self.kernels.driver
        with self.torch.cuda.device(self.device):
            stream = ctypes.c_void_p(stream_of()(self.device.index))
            for launch in self._launches:
                for value in launch.of_scores:
                    value.value = scores.data_ptr()
                shape = launch.shape[0], 1, 1, launch.shape[1], 1, 1, 0
                check(driver.cuLaunchKernel(launch.function, *shape, stream, launch.places, None))
        return self.facts, self.slopes

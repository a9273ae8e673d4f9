"""Arrays that lie on a device, as torch tensors, and NumPy's words for them.

torch is the one library that touches them; CuPy and others hand their memory over by DLPack.
Nothing is copied to the host behind the user's back.

Formulas are written once, in NumPy. `OnDevice` lets a torch tensor answer to them, by NumPy's own
protocols for the arrays of other libraries, so that losses, prices and metrics run where their
scores are. What a tensor has no answer for is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from toprank._arrays import AnyArray, TableLike
from toprank._extras import require
from toprank._numerics import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

#: Members of a mask that are counted in one byte.
_TOGETHER = 128
#: DLPack's number for ordinary memory.
_HOST = 1


def tensor_of(array: object) -> Tensor | None:
    """Return the array as a torch tensor that shares its memory; None for an array of the host.

    torch tensors are taken wherever they lie, other arrays (CuPy) only from a device: those of
    the host go NumPy's way.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.blocks.tensors import tensor_of
    >>> tensor_of(np.ones(3)) is None
    True
    """
    if type(array).__module__.partition(".")[0] == "torch" and hasattr(array, "detach"):
        return array.detach()
    if isinstance(array, (np.ndarray, np.generic)) or not hasattr(array, "__dlpack_device__"):
        return None
    if int(array.__dlpack_device__()[0]) == _HOST:
        return None
    return require("torch", "torch").from_dlpack(array)


def tensor_on_device(array: TableLike) -> Tensor | None:
    """Return the array as a tensor if it lies on a device; None if NumPy can read it."""
    tensor = tensor_of(array)
    return None if tensor is None or tensor.device.type == "cpu" else tensor


def on_device(array: AnyArray | Tensor, like: Tensor) -> Tensor:
    """Return a vector of the host or of a device as a tensor on the device of ``like``."""
    tensor = tensor_of(array)
    if tensor is None:
        values = np.ascontiguousarray(array)
        tensor = require("torch", "torch").from_numpy(values if values.flags.writeable else +values)
    return tensor.to(like.device)


def all_finite(tensor: Tensor) -> bool:
    """Whether no entry is NaN or infinite, without a temporary as large as the tensor.

    A sum that is finite has finite terms; one that is not may have overflowed.
    """
    if not tensor.dtype.is_floating_point:
        return True
    if np.isfinite(float(tensor.sum(dtype=tensor.dtype))):
        return True
    rows = max(1, (1 << 24) // max(1, tensor[:1].numel()))
    return all(bool(part.isfinite().all()) for part in tensor.split(rows))


def count_true(mask: Tensor) -> int:
    """Count the members of a mask; torch would make eight bytes of each of them first.

    Examples
    --------
    >>> import torch
    >>> from toprank.blocks.tensors import count_true
    >>> count_true(torch.arange(1000) % 4 == 0)
    250
    """
    torch = require("torch", "torch")
    whole = len(mask) - len(mask) % _TOGETHER
    bytes_ = mask[:whole].view(torch.uint8).view(-1, _TOGETHER)
    total = bytes_.sum(1, dtype=torch.uint8).sum()
    return int(total if whole == len(mask) else total + mask[whole:].sum())


def distinct(labels: Tensor) -> AnyArray:
    """Return the distinct labels in ascending order; two of them are found without sorting."""
    torch = require("torch", "torch")
    if labels.numel() == 0:
        return np.empty(0)
    if labels.dtype == torch.bool:
        return np.unique([bool(labels.all()), bool(labels.any())])
    ends = torch.stack([labels.min(), labels.max()])
    if not bool(((labels == ends[0]) | (labels == ends[1])).all()):
        ends = labels.unique()
    if ends.dtype == torch.bfloat16:  # NumPy has no such numbers
        ends = ends.float()
    return np.unique(ends.cpu().numpy())


#: NumPy's and SciPy's names of functions of entries, where torch has others.
_RENAMED = {
    "absolute": "abs",
    "equal": "eq",
    "expit": "sigmoid",
    "invert": "logical_not",
    "power": "pow",
}
_ENTRYWISE = frozenset(
    "absolute add bitwise_and bitwise_or divide equal exp expit expm1 greater greater_equal hypot "
    "invert isfinite isinf isnan less less_equal log log1p logaddexp maximum minimum multiply "
    "negative not_equal power sqrt square subtract".split()
)


class OnDevice(NDArrayOperatorsMixin):
    """A vector on a device that NumPy's functions accept.

    Sums and products of two vectors come back as Python numbers, vectors stay where they are.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from toprank.blocks.tensors import OnDevice
    >>> half = OnDevice(torch.tensor([2.0, 4.0])) / 2
    >>> type(half).__name__, np.dot(half, half)
    ('OnDevice', 5.0)
    """

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def __len__(self) -> int:
        return len(self.tensor)

    @property
    def size(self) -> int:
        return int(self.tensor.numel())

    @property
    def ndim(self) -> int:
        return int(self.tensor.ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, OnDevice):
            return OnDevice(self.tensor[key.tensor])
        if isinstance(key, slice):
            if key == slice(None, None, -1):
                return OnDevice(self.tensor.flip(0))
            return OnDevice(self.tensor[key])
        if np.ndim(key) == 0:
            return self.tensor[int(key)].item()
        # who asks for a few places from the host wants the values there
        return self.tensor[on_device(np.asarray(key), self.tensor)].cpu().numpy()

    def __setitem__(self, key: OnDevice | slice, values: OnDevice | float) -> None:
        place = key if isinstance(key, slice) else key.tensor
        self.tensor[place] = _operand(values, self.tensor.device)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise _refusal("copying to the host")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        if method == "__call__" and name == "matmul":
            return _dot(*inputs)
        if method != "__call__" or name not in _ENTRYWISE or kwargs.keys() - {"out", "where"}:
            raise _refusal(name if method == "__call__" else f"{name}.{method}")
        torch = require("torch", "torch")
        operands = [_operand(value, self.tensor.device) for value in inputs]
        value = getattr(torch, _RENAMED.get(name, name))(*operands)
        (out,) = kwargs.get("out", (None,))
        if "where" in kwargs:
            value = torch.where(kwargs["where"].tensor, value, out.tensor)
        if out is None:
            return OnDevice(value)
        out.tensor = value
        return out

    def __array_function__(
        self,
        function: Callable[..., object],
        _: object,
        args: tuple[OnDevice | float, ...],
        kwargs: Mapping[str, object],
    ) -> OnDevice | float:
        answer = _FUNCTIONS.get(function)
        if answer is None:
            raise _refusal(function.__name__)
        return answer(*args, **kwargs)


def unwrap(values: object) -> Any:
    """Return a vector as the user knows it: a tensor on its device, or a NumPy array."""
    return values.tensor if isinstance(values, OnDevice) else values


@overload
def on_host(values: OnDevice | AnyArray) -> AnyArray: ...


@overload
def on_host(values: None) -> None: ...


def on_host(values: OnDevice | AnyArray | None) -> AnyArray | None:
    """A vector as NumPy's array, copied from its device where it lies on one."""
    return values.tensor.cpu().numpy() if isinstance(values, OnDevice) else values


def pinned_copy(tensor: Tensor) -> FloatArray:
    """Copy a small float64 tensor to the host, into memory that a GPU writes to by itself."""
    here = tensor.cpu() if not tensor.is_cuda else _pinned_copy(tensor)
    copied: FloatArray = here.numpy()
    return copied


def _pinned_copy(tensor: Tensor) -> Tensor:
    torch = require("torch", "torch")
    here: Tensor = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    here.copy_(tensor, non_blocking=True)
    torch.cuda.current_stream(tensor.device).synchronize()
    return here


def _refusal(what: str) -> TypeError:
    return TypeError(
        f"This needs {what}, which is not done on the device where the data lie. Copy them to "
        "the host first: tensor.cpu().numpy()."
    )


def _operand(value: OnDevice | float, device: object) -> Tensor:
    """A tensor; a number becomes one on the device."""
    if isinstance(value, OnDevice):
        return value.tensor
    number = np.asarray(value)
    if number.size != 1:
        raise _refusal("mixing arrays of the host and of a device")
    torch = require("torch", "torch")
    precision = torch.bool if number.dtype == bool else torch.float64
    return torch.full((), number.item(), dtype=precision, device=device)


def _dot(left: OnDevice, right: OnDevice) -> float:
    return _number((left.tensor * right.tensor).sum())


def _number(value: Tensor) -> float:
    return value.item()


def _searchsorted(
    sorted_: OnDevice, values: OnDevice | float, side: str = "left"
) -> OnDevice | int:
    torch = require("torch", "torch")
    found = torch.searchsorted(sorted_.tensor, _vector(values, sorted_), side=side)
    return OnDevice(found) if isinstance(values, OnDevice) else int(found[0])


def _vector(values: OnDevice | float, like: OnDevice) -> Tensor:
    """A vector, or a number as a vector of one, on the device of another."""
    if isinstance(values, OnDevice):
        return values.tensor
    return on_device(np.atleast_1d(np.asarray(values, dtype=np.float64)), like.tensor)


def _concatenate(parts: Sequence[OnDevice | float]) -> OnDevice:
    like = next(part for part in parts if isinstance(part, OnDevice))
    return OnDevice(require("torch", "torch").cat([_vector(part, like) for part in parts]))


def _stack(parts: list[OnDevice], axis: int) -> OnDevice:
    return OnDevice(require("torch", "torch").stack([part.tensor for part in parts], axis))


def _where(condition: OnDevice, this: OnDevice | float, that: OnDevice | float) -> OnDevice:
    torch = require("torch", "torch")
    choices = (_operand(value, condition.tensor.device) for value in (this, that))
    return OnDevice(torch.where(condition.tensor, *choices))


def _extreme(name: str) -> Callable[..., float]:
    def extreme(
        vector: OnDevice,
        axis: int = -1,
        initial: float | None = None,
        where: OnDevice | None = None,
    ) -> float:
        tensor = vector.tensor if where is None else vector.tensor[where.tensor]
        if len(tensor) == 0 and initial is not None:
            return initial
        value = _number(getattr(tensor, name)())
        return value if initial is None else getattr(np, name)([value, initial]).item()

    return extreme


def _fill_with(value: float) -> Callable[..., OnDevice]:
    def fill(vector: OnDevice, dtype: DTypeLike | None = None) -> OnDevice:
        return _full_like(vector, value)

    return fill


def _full_like(vector: OnDevice, value: float) -> OnDevice:
    torch = require("torch", "torch")
    return OnDevice(torch.full_like(vector.tensor, value, dtype=torch.float64))


_FUNCTIONS: dict[object, Callable[..., OnDevice | float]] = {
    np.all: lambda v: bool(v.tensor.all()),
    np.any: lambda v: bool(v.tensor.any()),
    np.append: lambda v, value: _concatenate((v, value)),
    np.argmax: lambda v: _number(v.tensor.byte().argmax()),  # of a mask: its first member
    np.clip: lambda v, low, high: OnDevice(v.tensor.clamp(low, high)),
    np.concatenate: _concatenate,
    np.column_stack: lambda parts: _stack(parts, axis=-1),
    np.cumsum: lambda v: OnDevice(v.tensor.cumsum(0)),
    np.diff: lambda v: OnDevice(v.tensor.diff()),
    np.dot: _dot,
    np.flatnonzero: lambda v: OnDevice(v.tensor.nonzero()[:, 0]),
    np.full_like: _full_like,
    np.max: _extreme("max"),
    np.min: _extreme("min"),
    np.ones_like: _fill_with(1.0),
    np.searchsorted: _searchsorted,
    np.sort: lambda v: OnDevice(v.tensor.sort().values),
    np.stack: lambda parts, axis=0: _stack(parts, axis),
    np.sum: lambda v, axis=-1: _number(v.tensor.sum()),
    np.where: _where,
    np.zeros_like: _fill_with(0.0),
}

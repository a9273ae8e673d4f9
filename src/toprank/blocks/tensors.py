"""Arrays that lie on a device, as torch tensors: never copied to the host, never copied at all.

torch is the one library that touches them; CuPy and others hand their memory over by DLPack.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._extras import require

#: DLPack's number for ordinary memory.
_HOST = 1


def tensor_of(array: Any) -> Any | None:
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


def tensor_on_device(array: Any) -> Any | None:
    """Return the array as a tensor if it lies on a device; None if NumPy can read it."""
    tensor = tensor_of(array)
    return None if tensor is None or tensor.device.type == "cpu" else tensor


def on_device(array: Any, like: Any) -> Any:
    """Return a vector of the host or of a device as a tensor on the device of ``like``."""
    tensor = tensor_of(array)
    if tensor is None:
        values = np.ascontiguousarray(array)
        tensor = require("torch", "torch").from_numpy(values if values.flags.writeable else +values)
    return tensor.to(like.device)


def all_finite(tensor: Any) -> bool:
    """Whether no entry is NaN or infinite, without a temporary as large as the tensor.

    A sum that is finite has finite terms; one that is not may have overflowed.
    """
    if not tensor.dtype.is_floating_point:
        return True
    if np.isfinite(float(tensor.sum(dtype=tensor.dtype))):
        return True
    rows = max(1, (1 << 24) // max(1, tensor[:1].numel()))
    return all(bool(part.isfinite().all()) for part in tensor.split(rows))


def distinct(labels: Any) -> NDArray[Any]:
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

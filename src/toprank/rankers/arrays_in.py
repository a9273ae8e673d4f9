"""Tensors in, tensors out: the door of the estimators for arrays of other libraries.

A tensor of the host is a NumPy array under another name, and goes NumPy's way. A tensor on a
device, and a CuPy array, stay there: the fit passes over them by `toprank.blocks.from_torch`, and
scores, classes and probabilities come back where the rows lie. Coefficients are always NumPy's.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank._numerics import FloatArray
from toprank.blocks import Units
from toprank.blocks.design import design_of
from toprank.blocks.on_device import OnDevice
from toprank.blocks.tensors import all_finite, tensor_of
from toprank.blocks.torch import check_tensor


def scores_of(X: Any, coef: FloatArray, units: Units, owner: str) -> Any:
    """Return the scores of a tensor on a device, as a tensor beside it."""
    tensor = check_tensor(X)
    if tensor.shape[1] != len(coef):
        raise ValueError(
            f"X has {tensor.shape[1]} features, but {owner} is expecting {len(coef)} features as "
            "input."
        )
    if not all_finite(tensor):
        raise ValueError("Input X contains NaN or infinity; impute, or drop such rows.")
    return design_of(tensor, units).scores(coef).tensor


def answering(scores: Any) -> Any:
    """Return scores in a form that NumPy's functions accept, wherever they lie."""
    tensor = tensor_of(scores)
    return scores if tensor is None else OnDevice(tensor)


def given_back(values: Any, X: Any) -> Any:
    """Return an answer in the library of X, on its device.

    Tensors of the host come back as such; whatever else NumPy has computed stays NumPy's.
    """
    if isinstance(values, OnDevice):
        values = values.tensor
    tensor = tensor_of(X)
    if tensor is None:
        return values
    if isinstance(values, np.ndarray):
        return values if values.dtype.kind in "OUS" else import_module("torch").from_numpy(values)
    library = type(X).__module__.partition(".")[0]
    return values if library == "torch" else import_module(library).from_dlpack(values)


def classes_of(classes: NDArray[Any], positive: Any) -> Any:
    """Return the class of each row; labels that are not numbers are NumPy's."""
    if not isinstance(positive, OnDevice):
        return classes[positive.astype(np.intp)]
    torch = import_module("torch")
    if classes.dtype.kind not in "biuf":
        return classes[positive.tensor.long().cpu().numpy()]
    return OnDevice(torch.from_numpy(classes).to(positive.tensor.device)[positive.tensor.long()])

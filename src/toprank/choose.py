"""The old name of `toprank.tuning`; it goes away in version 0.3."""

from __future__ import annotations

import warnings
from importlib import import_module

#: What was public here.
_MOVED = (
    "CapacityThreshold",
    "PChoice",
    "PNormPushCV",
    "Support",
    "SupportOfP",
    "TimeOrderedSplit",
    "capacity_threshold",
    "choose_p",
    "supported_p",
)


def __getattr__(name: str) -> object:
    if name not in _MOVED:
        raise AttributeError(f"module 'toprank.choose' has no attribute {name!r}")
    warnings.warn(
        f"toprank.choose.{name} is now toprank.tuning.{name}; the old name goes away in version "
        "0.3.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(import_module("toprank.tuning"), name)

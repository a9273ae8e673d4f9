"""A property that is computed once, without a lock.

Until Python 3.12 ``functools.cached_property`` holds a lock of its class while it computes: two
fits in two threads wait for each other where the property of one makes a pass over the rows, and a
process that is forked meanwhile finds the lock held for ever. Here the worst is that two threads
compute the same thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:
        """Computed when it is first asked for, then kept in the object's ``__dict__``."""

        def __init__(self, function: Callable[[Any], Any]):
            self.function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            kept = instance.__dict__
            if self.name not in kept:
                kept[self.name] = self.function(instance)
            return kept[self.name]


__all__ = ["cached_property"]

"""Optional libraries: imported when used, asked for by name when missing."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any


@contextmanager
def held_back() -> Iterator[None]:
    """Hear an interrupt (Ctrl-C) at the end: a library that was half loaded does not load again.

    Python forgets a package whose import was cut off, but not its parts; the next import finds
    them and leaves the package without.

    Examples
    --------
    >>> with held_back():
    ...     import fractions
    >>> fractions.Fraction(1, 2)
    Fraction(1, 2)
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # interrupts are heard elsewhere, or not by Python
        return
    heard: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *interrupt: heard.append(interrupt))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard:
            before(*heard[0])


def compiled(**options: Any) -> Callable[[Any], Any]:
    """``numba.njit``, of a Numba that was loaded whole."""
    with held_back():
        import numba

    decorator: Callable[[Any], Any] = numba.njit(**options)
    return decorator


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it.

    Parameters
    ----------
    module : str
        Dotted name of the module.
    extra : str
        Name of the extra of toprank that installs it.

    Returns
    -------
    ModuleType
        The imported module.

    Raises
    ------
    ImportError
        If the module cannot be imported. The message names the cause and the remedy.

    Examples
    --------
    >>> require("math", "frames").sqrt(4.0)
    2.0
    >>> require("no_such_module", "frames")
    Traceback (most recent call last):
    ...
    ImportError: no_such_module could not be imported (No module named 'no_such_module'); \
install it with: pip install 'toprank[frames]'
    """
    try:
        with nullcontext() if module in sys.modules else held_back():
            return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} could not be imported ({error}); "
            f"install it with: pip install 'toprank[{extra}]'",
            name=module,
        ) from error

"""Optional libraries: imported when used; where one is missing, the error says how to get it."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from types import FrameType

#: A function that Numba compiles: it is called as before.
Kernel = TypeVar("Kernel", bound=Callable[..., object])


@contextmanager
def postpone_interrupts() -> Iterator[None]:
    """Postpone an interrupt (Ctrl-C) to the end of the block.

    For imports: Python forgets a package whose import was interrupted, but not its submodules, so
    that the next import leaves the package incomplete.

    Examples
    --------
    >>> with postpone_interrupts():
    ...     import fractions
    >>> fractions.Fraction(1, 2)
    Fraction(1, 2)
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # interrupts arrive in another thread, or Python does not handle them
        return
    received: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *interrupt: received.append(interrupt))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if received:
            before(*received[0])


def hides_interrupt(error: BaseException) -> bool:
    """Whether an error is an interrupt (Ctrl-C) that came while Numba handed over a result.

    Python then says that the call "returned a result with an exception set", which is no interrupt
    to whoever waits for one.

    Examples
    --------
    >>> error = SystemError("returned a result with an exception set")
    >>> error.__cause__ = KeyboardInterrupt()
    >>> hides_interrupt(error), hides_interrupt(SystemError())
    (True, False)
    """
    return isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt)


@cache
def has_triton() -> bool:
    """Whether Triton, which compiles kernels for GPUs and comes with torch, is installed."""
    return find_spec("triton") is not None


def jit(**options: Any) -> Callable[[Kernel], Kernel]:
    """``numba.njit``, with Numba's import kept whole."""
    with postpone_interrupts():
        import numba

    decorator: Callable[[Kernel], Kernel] = numba.njit(**options)
    return decorator


def install_command(extra: str) -> str:
    """Return the command that installs an extra, as it works where toprank runs from.

    pip adds an extra to the toprank that is installed, wherever that came from: an index, a
    checkout, a wheel. Where none is installed, because a checkout is on the path, its folder is
    named.

    Examples
    --------
    >>> install_command("onnx")
    "pip install 'toprank[onnx]'"
    """
    try:
        distribution("toprank")
    except PackageNotFoundError:
        checkout = Path(__file__).resolve().parents[2]
        if (checkout / "pyproject.toml").is_file():
            return f"pip install {shlex.quote(f'{checkout}[{extra}]')}"
    return f"pip install 'toprank[{extra}]'"


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
        with nullcontext() if module in sys.modules else postpone_interrupts():
            return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} could not be imported ({error}); install it with: {install_command(extra)}",
            name=module,
        ) from error

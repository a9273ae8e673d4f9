"""Optional libraries: imported when used, asked for by name when missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


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
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} could not be imported ({error}); "
            f"install it with: pip install 'toprank[{extra}]'",
            name=module,
        ) from error

"""Names of a package that are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module


def import_name(package: str, name: str, modules: Mapping[str, str]) -> object:
    """Return a public name of a package from the module that holds it, or a module of the package.

    Parameters
    ----------
    package : str
        The package, ``__name__`` there.
    name : str
        What is asked for.
    modules : mapping of str to str
        The module within the package that holds each public name.

    Examples
    --------
    >>> from toprank._imports import import_name
    >>> import_name("toprank.rankers", "PNormPush", {"PNormPush": "linear"}).__name__
    'PNormPush'
    """
    if name in modules:
        return getattr(import_module(f"{package}.{modules[name]}"), name)
    if not name.startswith("_"):
        try:
            return import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{name}":
                raise
    raise AttributeError(f"module {package!r} has no attribute {name!r}")

"""Rankings that are right at the top of the list."""

from toprank._version import __version__

__all__ = ["__version__"]

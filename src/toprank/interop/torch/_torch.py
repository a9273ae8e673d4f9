"""torch, or a stand-in that says what to install when it is used."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from toprank._extras import require


class _Missing:
    """Asks for torch by name as soon as anything of it is wanted."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # tools that look at modules are not users
            raise AttributeError(name)
        return getattr(require("torch", "torch"), name)


def _is_installed() -> bool:
    try:
        return find_spec("torch") is not None
    except (ImportError, ValueError):
        return False


PRESENT: bool = _is_installed()
# compiled code cannot import, so torch is looked up once, here
torch: Any = require("torch", "torch") if PRESENT else _Missing()
Module: Any = torch.nn.Module if PRESENT else object
Function: Any = torch.autograd.Function if PRESENT else object

"""CUDA C++ that NVRTC, which comes with torch, has compiled, kept in files from process to process.

They lie in the user's folder for such files, ``$XDG_CACHE_HOME/toprank/cuda`` or
``~/.cache/toprank/cuda``, or where ``TOPRANK_CACHE_DIR`` says; where that is empty, nothing is
kept. A file is named by all that the machine code depends on, and begins with a digest of the rest:
one that is damaged is made again. Nothing is read from a folder that others may write to, and where
no file can be written the source is compiled in every process.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from toprank._files import replace_file

if TYPE_CHECKING:
    from types import ModuleType

#: CUDA's driver.
Driver: TypeAlias = ctypes.CDLL
#: Counts up when the layout of a file changes.
_FORM = "1"
_DIGEST = 32
#: Files that are kept at the most; those written first go first.
_MOST_FILES = 1024


@dataclass(frozen=True)
class Loaded:
    """Kernels by their names, as CUDA's driver knows them, and the driver."""

    functions: dict[str, object]
    driver: Driver
    kept: object  # what is unloaded when nobody holds it


def load_kernels(source: str, names: Sequence[str]) -> Loaded:
    """Load the kernels of a source onto the current device, compiled once for all processes.

    Raises
    ------
    RuntimeError, OSError, ImportError or AttributeError
        Where torch cannot compile or load them.
    """
    utils = importlib.import_module("torch.cuda._utils")
    driver = utils._get_gpu_runtime_library()
    about = "\0".join([*_compiled_by(utils), source])
    binary = kept_binary(about)
    if binary is not None:
        with suppress(RuntimeError):  # which says that this driver does not know it
            return _load(utils, binary, names, driver)
    binary, _ = utils._nvrtc_compile(source, names[0])
    keep_binary(about, binary)
    return _load(utils, binary, names, driver)


def _load(utils: ModuleType, binary: bytes, names: Sequence[str], driver: Driver) -> Loaded:
    loaded = utils._cuda_load_module(binary, list(names))
    return Loaded({name: loaded[name].func for name in names}, driver, loaded)


def _compiled_by(utils: ModuleType) -> list[str]:
    """What machine code depends on beside its source."""
    torch = importlib.import_module("torch")
    version = ctypes.c_int(), ctypes.c_int()
    compiler = utils._get_gpu_rtc_library()
    compiler.nvrtcVersion(*map(ctypes.byref, version))
    facts = torch.cuda.get_device_properties(torch.cuda.current_device())
    parts = _FORM, torch.__version__, *(number.value for number in version)
    return [str(part) for part in (*parts, facts.major, facts.minor)]


def kept_binary(about: str) -> bytes | None:
    """Return the machine code in the file for a text; None if there is none, or it is damaged."""
    path = _place_of(about)
    if path is None or not _is_own(path.parent):
        return None
    try:
        found = path.read_bytes()
    except OSError:
        return None
    digest, binary = found[:_DIGEST], found[_DIGEST:]
    return binary if hashlib.sha256(binary).digest() == digest else None


def keep_binary(about: str, binary: bytes) -> None:
    """Write machine code to the file for a text, if the folder allows it."""
    path = _place_of(about)
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_own(path.parent):
            return
        kept = sorted(path.parent.glob("*.cubin"), key=lambda file: file.stat().st_mtime)
        for old in kept[: max(0, len(kept) + 1 - _MOST_FILES)]:
            old.unlink(missing_ok=True)
        with replace_file(path) as file:
            file.write(hashlib.sha256(binary).digest() + binary)


def _place_of(about: str) -> Path | None:
    """The file for a text; None where the user wants none, or has no folder."""
    chosen = os.environ.get("TOPRANK_CACHE_DIR")
    if chosen is not None:
        folder = Path(chosen) if chosen else None
    else:
        try:
            shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        except RuntimeError:
            return None
        folder = Path(shared) / "toprank"
    return folder and folder / "cuda" / f"{hashlib.sha256(about.encode()).hexdigest()}.cubin"


def _is_own(folder: Path) -> bool:
    """Whether a folder is this user's, and nobody else may write to it."""
    try:
        facts = folder.stat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):  # Windows: a user's folders are
        return True
    others = stat.S_IWGRP | stat.S_IWOTH
    return facts.st_uid == os.getuid() and not facts.st_mode & others

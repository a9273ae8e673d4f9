"""Results, one line of JSON each, appended as they are finished: a run that stops goes on.

A record has a ``key`` (what was asked), ``values`` (what came out, the same in every run) and
``costs`` (seconds and megabytes, which are the machine's); where they are known, a ``mark`` of the
code that it was measured with (`marks`) and the ``settings`` that a search chose. Of several lines
with one key the last counts. A last line that was cut short by a crash is dropped when the file is
read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Key = tuple[Any, ...]


class Store:
    """The finished cells in one file."""

    def __init__(self, path: Path):
        self.path = path
        self.cells: dict[Key, dict[str, Any]] = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    cell = json.loads(line)
                except json.JSONDecodeError:
                    continue
                self._put(cell)

    def _put(self, cell: dict[str, Any]) -> None:
        key = tuple(cell["key"])
        self.cells.pop(key, None)  # the order is that in which cells were measured last
        self.cells[key] = cell

    def __contains__(self, key: Key) -> bool:
        return key in self.cells

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.cells.values())

    def add(
        self,
        key: Key,
        values: dict[str, Any],
        costs: dict[str, Any],
        mark: str | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        """Append a cell in one write, so that a reader sees all of it or none."""
        cell = {"key": list(key), "values": values, "costs": costs}
        known = {"mark": mark, "settings": settings}
        cell |= {name: one for name, one in known.items() if one is not None}
        line = (json.dumps(cell, allow_nan=False) + "\n").encode()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        end = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        file = os.open(self.path, end, 0o644)
        try:
            if self._cut_short():
                line = b"\n" + line
            os.write(file, line)
        finally:
            os.close(file)
        self._put(cell)

    def _cut_short(self) -> bool:
        with self.path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

"""A report: its results, and the page that shows them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from toprank._files import replace_file
from toprank.report.page import page

if TYPE_CHECKING:
    from toprank._arrays import JsonObject

#: Numbers nearer to zero than this are shown as zero: they are rounding errors.
SMALLEST = 1e-12


@dataclass(frozen=True)
class Report:
    """A report: its results, and the page that shows them.

    Attributes
    ----------
    html : str
        The page, complete in itself.
    """

    _data: JsonObject

    def to_dict(self) -> JsonObject:
        """Return the results as plain values, ready for JSON."""
        return self._data

    @cached_property
    def html(self) -> str:
        return page(self._data)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; a file that is there is replaced when all is written, or not at all."""
        where = Path(path)
        with replace_file(where) as file:
            file.write(self.html.encode("utf-8"))
        return where

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._data['verdict']['headline'])}</p>"

    def __repr__(self) -> str:
        return f"Report: {self._data['verdict']['headline']}"

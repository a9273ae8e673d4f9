"""What whoever writes a ranker as ONNX asks of the graph that it is written into."""

from __future__ import annotations

from types import ModuleType
from typing import Protocol


class Nodes(Protocol):
    """A graph under construction, as `toprank.interop.onnx.Graph` is one."""

    onnx: ModuleType
    #: ONNX's numbers of the types float64 and float32.
    double: int
    float: int

    def constant(self, values: object) -> str:
        """Keep an array and return its name."""
        ...

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        """Append a node of one output and return that output's name."""
        ...

"""The report: one self-contained page about the top of a list.

>>> from toprank.report import build
>>> build.__name__
'build'
"""

from toprank.report.builder import Report, build

__all__ = ["Report", "build"]

"""The report: one self-contained page about the top of a list.

>>> from toprank.report import build
>>> build.__name__
'build'
"""

from toprank.report.build import build
from toprank.report.describe import describe
from toprank.report.report import Report

__all__ = ["Report", "build", "describe"]

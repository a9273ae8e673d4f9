"""The report: one self-contained page about the top of a list.

>>> from toprank.report import build
>>> build.__name__
'build'
"""

from toprank.report.builder import build
from toprank.report.model_page import describe
from toprank.report.report import Report

__all__ = ["Report", "build", "describe"]

"""The papers at a glance: every theorem, algorithm, table and figure, and what became of it here.

``python -m toprank.reproduce.glance`` prints docs/evidence/papers.md; a test holds the page to
it, and every name on it to an object or a test that exists.
"""

from toprank.reproduce.glance.entry import Entry, Paper
from toprank.reproduce.glance.page import PAPERS, papers_page

__all__ = ["PAPERS", "Entry", "Paper", "papers_page"]

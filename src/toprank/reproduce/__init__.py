"""The tables and figures of the papers, computed again and set beside what they print.

>>> from toprank.reproduce import NAMES, run
>>> len(NAMES)
21
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     report = run("table1", folder, n_jobs=1)
...     print(report.markdown.name, [c["holds"] for c in report.results["table1"]["claims"]])
reproduce.md [True]
"""

from toprank.reproduce.runner import NAMES, Report, run

__all__ = ["NAMES", "Report", "run"]

"""The tables and figures of the papers, computed again and set beside what they print.

>>> from toprank.reproduce import NAMES, run
>>> len(NAMES)
28
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     report = run("table1", folder, n_jobs=1)
...     print(report.markdown.name, [c["holds"] for c in report.results["table1"]["claims"]])
reproduce.md [True]
"""

import warnings

from toprank.reproduce.runner import NAMES, Reproduction, run

__all__ = ["NAMES", "Reproduction", "run"]


def __getattr__(name: str) -> type[Reproduction]:
    if name != "Report":
        raise AttributeError(f"module 'toprank.reproduce' has no attribute {name!r}")
    warnings.warn(
        "toprank.reproduce.Report is now toprank.reproduce.Reproduction; the old name goes away "
        "in version 0.3.",
        DeprecationWarning,
        stacklevel=2,
    )
    return Reproduction

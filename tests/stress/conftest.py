"""The folder `fuzz` lies in the checkout and is not installed; the attacks import it."""

import sys
from pathlib import Path

from few_trees import few_trees  # noqa: F401

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.append(ROOT)

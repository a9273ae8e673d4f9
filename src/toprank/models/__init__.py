"""Models that travel: a ranker, its preparation, its schema and its card, in one file.

>>> from toprank.models import fit_table, load
"""

from toprank.models.drift import Drift, DriftWatch
from toprank.models.errors import ModelError, ModelWarning
from toprank.models.fitting import fit_table
from toprank.models.labels import Target
from toprank.models.model import TableModel
from toprank.models.reasons import Reason
from toprank.models.schema import Column, Match, Schema
from toprank.models.storage import load, save
from toprank.models.top_of_list import top

__all__ = [
    "Column",
    "Drift",
    "DriftWatch",
    "Match",
    "ModelError",
    "ModelWarning",
    "Reason",
    "Schema",
    "TableModel",
    "Target",
    "fit_table",
    "load",
    "save",
    "top",
]

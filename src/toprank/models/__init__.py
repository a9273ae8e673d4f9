"""Models that travel: a ranker, its preparation, its schema and its card, in one file.

>>> from toprank.models import fit_table, load
"""

from toprank.models.columns import Column
from toprank.models.concern import Concern
from toprank.models.errors import ModelError, ModelWarning
from toprank.models.fit import fit_table
from toprank.models.loader import load
from toprank.models.look import look_at
from toprank.models.model import Reason, TableModel
from toprank.models.monitor import Drift, DriftWatch
from toprank.models.schema import Match, Schema, Target
from toprank.models.storage import save
from toprank.models.table_ranker import TableRanker
from toprank.models.top_of_list import top

__all__ = [
    "Column",
    "Concern",
    "Drift",
    "DriftWatch",
    "Match",
    "ModelError",
    "ModelWarning",
    "Reason",
    "Schema",
    "TableModel",
    "TableRanker",
    "Target",
    "fit_table",
    "load",
    "look_at",
    "save",
    "top",
]

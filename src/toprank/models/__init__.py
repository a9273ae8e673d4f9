"""Models that travel: a ranker, its preparation, its schema and its card, in one file.

>>> from toprank.models import fit_table, load
"""

from typing import TYPE_CHECKING

from toprank._imports import import_name

if TYPE_CHECKING:
    from toprank.models.bins import Drift
    from toprank.models.block_fit import fit_table_blocks
    from toprank.models.columns import Column
    from toprank.models.concern import Concern
    from toprank.models.errors import ModelError, ModelWarning
    from toprank.models.fit import fit_table
    from toprank.models.loader import load
    from toprank.models.look import look_at
    from toprank.models.model import Reason, TableModel
    from toprank.models.monitor import DriftWatch
    from toprank.models.ranker_files import load_ranker, save_ranker
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
    "fit_table_blocks",
    "load",
    "load_ranker",
    "look_at",
    "save",
    "save_ranker",
    "top",
]

#: The file of each public name.
_FILES = {
    "Column": "columns",
    "Concern": "concern",
    "Drift": "bins",
    "DriftWatch": "monitor",
    "Match": "schema",
    "ModelError": "errors",
    "ModelWarning": "errors",
    "Reason": "model",
    "Schema": "schema",
    "TableModel": "model",
    "TableRanker": "table_ranker",
    "Target": "schema",
    "fit_table": "fit",
    "fit_table_blocks": "block_fit",
    "load": "loader",
    "load_ranker": "ranker_files",
    "look_at": "look",
    "save": "storage",
    "save_ranker": "ranker_files",
    "top": "top_of_list",
}


def __getattr__(name: str) -> object:
    """Import a public name, or a file, when it is first asked for.

    To show a card, nothing of a fit is needed.
    """
    found = import_name(__name__, name, _FILES)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

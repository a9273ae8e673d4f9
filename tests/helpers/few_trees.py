"""Level 1 grows forty trees where the model of a table has four hundred; level 2 grows them all."""

from dataclasses import replace
from importlib import import_module

import pytest


@pytest.fixture(scope="session", autouse=True)
def few_trees(request):
    """Make `fit_table(model="trees")` quick, in the folders whose conftest imports this."""
    if "not more" not in request.config.getoption("markexpr", ""):
        yield
        return
    room = import_module("toprank.models.fit")
    all_trees = room._make_trees

    def make(*given):
        return all_trees(*given).set_params(n_estimators=40)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_make_trees", make)
        patch.setitem(room.RANKER_KINDS, "trees", replace(room.RANKER_KINDS["trees"], make=make))
        yield

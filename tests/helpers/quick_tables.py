"""Level 1 fits small models to tables: few trees, few folds. Level 2 fits them as users do.

A folder whose conftest imports these two functions has its tests run so.
"""

from dataclasses import replace
from importlib import import_module

import pytest

_patch = pytest.MonkeyPatch()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Make the defaults small before any fixture is made."""
    if "not more" not in item.config.getoption("markexpr", ""):
        return
    room, plan = (
        import_module(f"toprank.{name}")
        for name in ("models.ranker_kinds", "rankers.ensemble.plan")
    )
    all_trees = room._make_trees

    def make(*given):
        return all_trees(*given).set_params(n_estimators=40)

    _patch.setattr(room, "_make_trees", make)
    _patch.setitem(room.RANKER_KINDS, "trees", replace(room.RANKER_KINDS["trees"], make=make))
    _patch.setattr(import_module("toprank.models.unseen"), "_N_FOLDS", 2)
    _patch.setattr(plan, "_FOLDS_OF_FEW", 2)
    for name, effort in plan.EFFORTS.items():
        small = {"folds": 2, "rounds": 10, "rate": 0.3, "cat_rounds": 5, "few_cat_rounds": None}
        small["forests"] = plan.Forests(10, min(10, effort.forests.wide))
        small["few_forests"] = None
        few = effort.combinations[:2]
        _patch.setitem(plan.EFFORTS, name, replace(effort, **small, combinations=few))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    """Undo it: other folders test the defaults themselves."""
    _patch.undo()

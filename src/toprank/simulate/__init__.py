"""Distributions whose truth is known: the best ranking, or what an interval should hold.

* Models of rows, so that regret and rates can be seen: `BipartiteModel` and `RegressionModel`, made
  by `linear_bipartite`, `power_eta`, `rare_reversal`, `regression` and `heteroscedastic`.
* `card_payments`: payments with three kinds of fraud and labels that come late.
* `leads`, `molecules`, `machines`, `patients`: the tables of four jobs with a list.
* `coverage`: how often the interval of a metric holds the true value, in a setting like yours.
"""

from toprank.simulate.error_bars import Coverage, ScoreSetting, coverage
from toprank.simulate.jobs import SimulatedRows, leads, machines, molecules, patients
from toprank.simulate.models import (
    BipartiteModel,
    RegressionModel,
    heteroscedastic,
    linear_bipartite,
    power_eta,
    rare_reversal,
    regression,
)
from toprank.simulate.payments import CardPayments, card_payments

__all__ = [
    "BipartiteModel",
    "CardPayments",
    "Coverage",
    "RegressionModel",
    "ScoreSetting",
    "SimulatedRows",
    "card_payments",
    "coverage",
    "heteroscedastic",
    "leads",
    "linear_bipartite",
    "machines",
    "molecules",
    "patients",
    "power_eta",
    "rare_reversal",
    "regression",
]

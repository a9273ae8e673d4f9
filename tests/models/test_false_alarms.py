"""`toprank monitor` keeps the rate of false alarms that it claims, and finds what moved."""

import importlib
import sys
from pathlib import Path

import pytest

from toprank.models.monitor import RISK

pytest.importorskip("pandas", reason="tables need the extra models")
pytest.importorskip("skops", reason="models are saved with skops")
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks lie in the checkout"
)


@pytest.fixture(scope="module")
def simulated():
    """benchmarks/monitor_alarms.py, which lies in the checkout and is not installed."""
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("benchmarks.monitor_alarms")
    finally:
        sys.path.remove(str(ROOT))


@pytest.mark.more
@pytest.mark.parametrize("number", [0, 4, 5, 11])
def test_no_alarm_where_nothing_has_changed_in_a_few_tables(simulated, number):
    rates = simulated.alarm_rates(simulated.SETTINGS[number], fits=1, tables=10, seed=1)
    assert rates["usual"] == 0.0 and rates["moved"] == 1.0


@pytest.mark.more
def test_retrain_is_said_where_labels_fall_short_and_not_otherwise(simulated):
    rates = simulated.retrain_rates(1000, 1000, 1.5, fits=2, tables=8)
    assert rates["false"] <= 0.1 and rates["covers"] >= 0.8 and rates["fewer"] >= 0.4


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("size", range(4))
def test_retrain_is_said_falsely_as_seldom_as_claimed(simulated, size):
    rates = simulated.retrain_rates(*simulated.SIZES[size], fits=25, tables=20)
    assert rates["false"] <= 3 * RISK  # tables of one model are not independent
    assert rates["covers"] >= 0.92


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", range(13))
def test_false_alarms_are_at_most_as_many_as_claimed(simulated, number):
    setting = simulated.SETTINGS[number]
    # 500 tables; trees take longer to fit than fifty tables to look at
    fits, tables = (10, 50) if setting.model == "trees" else (25, 20)
    rates = simulated.alarm_rates(setting, fits, tables, moved_every=5)
    assert rates["usual"] <= RISK
    assert rates["none"] <= 4 * RISK  # tables of one model are not independent
    assert rates["moved"] >= 0.95

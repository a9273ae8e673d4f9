"""The sentences of the verdict, from results that call for each of them."""

import pytest

from toprank.report.measures import figures
from toprank.report.results import against, certainty, headline

LIFT = figures(50, 0.05)[1]


def results(low=0.5, high=0.9, positives=500, lines=()):
    return {
        "k": 50,
        "table": {"prevalence": 0.1, "scored_positives": positives},
        "chosen": {
            "name": "push",
            "figures": {
                "precision": {"value": 0.72, "low": low, "high": high},
                "lift": {"value": 7.2, "low": None, "high": None},
            },
        },
        "comparison": list(lines),
    }


def line(other, difference, p_value, agree=5):
    return {
        "figure": "precision",
        "names": ["push", other],
        "difference": difference,
        "low": difference - 0.1,
        "high": difference + 0.1,
        "adjusted_p_value": p_value,
        "folds": 5,
        "folds_agree": agree,
    }


def test_the_headline_counts_the_positives_and_gives_the_interval():
    assert headline(results(), LIFT) == (
        "Of the first 50 rows of the list, 36 are positive: 72% (95% interval 50% to 90%), "
        "7.2 times the 10% of a random order."
    )
    assert "interval" not in headline(results(low=None), LIFT)
    assert "5\u202f000 rows of the list, 3\u202f600 are" in headline(results() | {"k": 5000}, LIFT)
    assert "5 rows of the list, 3.6 are" in headline(results() | {"k": 5}, LIFT)


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({}, "above a random order"),
        ({"low": 0.05}, "may be luck"),
        ({"positives": 12}, "only 12 positives"),
        ({"low": None}, "too few"),
    ],
)
def test_the_certainty_follows_the_interval_and_the_positives(kwargs, said):
    assert said in certainty(results(**kwargs))


def test_differences_are_called_clear_only_where_rows_and_folds_say_so():
    logistic, trees = "logistic regression", "boosted trees"
    both = [line(logistic, 0.2, 0.001), line(trees, 0.3, 0.01)]
    assert "both differences are clear" in against(results(lines=both))
    one = [line(logistic, 0.2, 0.001), line(trees, 0.05, 0.4)]
    assert "only the difference from logistic regression is clear" in against(results(lines=one))
    for neither in ([line(logistic, 0.2, 0.2)], [line(logistic, 0.2, 0.001, agree=3)]):
        assert "cannot tell" in against(results(lines=neither))
    assert "level with logistic" in against(results(lines=[line(logistic, 0.0, 1.0)]))
    assert against(results()) == ""


def test_rounding_errors_are_no_differences():
    noise = line("logistic regression", -5.204e-18, 1.0) | {"low": -1.2e-17, "high": 0.1}
    said = against(results(lines=[noise]))
    assert "level with logistic regression (interval 0 to +10)" in said and "e-" not in said


def test_trees_that_are_clearly_ahead_are_recommended():
    trees = "boosted trees"
    assert "PushTrees" in against(results(lines=[line(trees, -0.24, 0.003)]))
    assert "PushTrees" not in against(results(lines=[line(trees, -0.24, 0.3)]))
    assert "PushTrees" not in against(results(lines=[line(trees, 0.24, 0.003)]))

"""`toprank rank` within limits: the options, what they cost, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def table(frame, folder):
    rng = np.random.default_rng(7)
    more = frame.drop(columns="bought").assign(
        home=rng.integers(0, 60, len(frame)),
        minutes=rng.integers(1, 6, len(frame)),
        vip=np.where(np.arange(len(frame)) == 17, "yes", "no"),
        gone=np.where(np.arange(len(frame)) % 7 == 0, "1", ""),
    )
    path = folder / "today.csv"
    more.to_csv(path, index=False)
    return path, more


def listed(answer):
    assert answer.exit_code == 0, answer.output
    return pd.DataFrame(json.loads(answer.stdout))


def test_caps_floors_and_entities_hold(invoke, model, table, words):
    path, _ = table
    done = invoke(
        *("rank", model, path, "--top", 30, "--per-entity", "home", "--most-per-entity", 2),
        *("--limit-by", "city", "--at-most", "0.5", "--reasons", 0, "--json"),
    )
    found = listed(done)
    cities = found.city.value_counts()
    assert len(found) == 30 and cities.max() <= 15 and found.home.value_counts().max() <= 2
    assert "positives lost" in done.stderr and "at most 2 rows per entity" in words(done.stderr)
    assert "by the model's probabilities" in words(done.stderr)
    done = invoke(
        *("rank", model, path, "--top", 20, "--limit-by", "city"),
        *("--at-least", "Rome=8", "--at-least", "Bern=9", "--json", "-q"),
    )
    cities = listed(done).city.value_counts()
    assert cities["Rome"] >= 8 and cities["Bern"] >= 9 and not done.stderr


def test_a_budget_rows_that_must_be_in_or_out_and_a_draw(invoke, model, table, tmp_path):
    path, rows = table
    done = invoke(
        *("rank", model, path, "--top", 40, "--budget", 50, "--cost", "minutes", "--json", "-q"),
        *("--include", "vip", "--exclude", "gone", "--id", "vip", "--explore", 0.1),
    )
    found = listed(done)
    kept = rows.set_index("customer").loc[found.customer]
    assert kept.minutes.sum() <= 50 and "yes" in set(kept.vip) and not (kept.gone == "1").any()
    assert found.drawn.any() and (found.propensity[~found.drawn] == 1).all()
    assert (found.propensity[found.drawn] < 0.5).all()
    output = tmp_path / "list.csv"
    done = invoke("rank", model, path, "--top", 20, "--explore", 0.2, "--seed", 3, "-o", output)
    assert done.exit_code == 0, done.output
    first = pd.read_csv(output)
    assert first.drawn.sum() == 4 and len(first) == 20
    invoke("rank", model, path, "--top", 20, "--explore", 0.2, "--seed", 3, "-o", output)
    assert pd.read_csv(output).equals(first)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--most-per-entity", 2), "--most-per-entity needs --per-entity"),
        (("--at-most", 3), "--at-most needs --limit-by"),
        (("--limit-by", "city"), "--limit-by needs --at-most or --at-least"),
        (("--budget", 3), "--budget and --cost are given together"),
        (("--budget", 3, "--cost", "mintes"), "did you mean 'minutes'"),
        (("--budget", 3, "--cost", "city"), "--cost city: expected numbers"),
        (("--value", "income"), "row(s) have no number there"),
        (("--include", "city"), "is neither yes nor no"),
        (("--limit-by", "city", "--at-most", "many"), "expected a count (20), a share"),
        (("--limit-by", "city", "--at-most", "3", "--at-most", "4"), "is for each group"),
        (("--limit-by", "city", "--at-least", "Paris=3"), "names the group 'Paris', which no row"),
        (
            ("--limit-by", "city", "--at-least", "5", "--top", 12),
            "at least 5 rows of 'Oslo' and at most 12 rows cannot all hold",
        ),
        (("--per-group", "city", "--explore", 0.1), "--per-group makes a list for each group"),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(invoke, model, table, words, options, said):
    refused = invoke("rank", model, table[0], *options)
    assert refused.exit_code == 2, refused.output
    assert said in words(refused.stderr)

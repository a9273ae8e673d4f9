"""Tables that are too large for memory: read in blocks, or in samples that are stated."""

import numpy as np
import pandas as pd
import pytest

from toprank.cli.memory import free_memory, parse_memory
from toprank.cli.terminal import Failure
from toprank.models import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(3)
    n = 600
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "name": [f"c{i}" for i in range(n)],
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "city": rng.choice(np.array(["Rome", "Oslo", None], dtype=object), n),
            "visits": rng.integers(0, 9, n),
        }
    )
    frame["y"] = (x + (frame.city == "Oslo") + rng.normal(size=n) > 1).astype(int)
    place = tmp_path_factory.mktemp("sizes") / "parts"
    place.mkdir()
    for part in range(3):
        file = place / f"{part}.parquet"
        frame[200 * part : 200 * part + 200].to_parquet(file, row_group_size=80)
    return place


def test_amounts_of_memory_are_read_as_people_write_them():
    assert parse_memory("4GB") == 4_000_000_000
    assert parse_memory("1.5 g") == 1_500_000_000
    assert parse_memory("500MiB") == 500_000_000
    assert 0 < parse_memory(None) <= free_memory()
    for wrong in ("much", "-3GB", "0", "4 GB RAM"):
        with pytest.raises(Failure, match="such as 4GB"):
            parse_memory(wrong)


@pytest.mark.more
def test_a_folder_too_large_for_memory_is_fitted_in_blocks_and_says_so(folder, tmp_path, invoke):
    given = ("-y", "y", "--id", "name", "--p", "2")
    here, there = tmp_path / "here", tmp_path / "there"
    answer = invoke("fit", folder, *given, "-o", here)
    assert answer.exit_code == 0, answer.output
    assert "600 rows are read into memory" in answer.stderr
    answer = invoke("fit", folder, *given, "-o", there, "--memory", "100kB")
    assert answer.exit_code == 0, answer.output
    assert "600 rows are read in blocks" in answer.stderr
    assert "The model is that of a fit in memory" in answer.stderr
    one, other = load(here), load(there)
    assert one.schema == other.schema
    assert np.array_equal(one.ranker.coef_, other.ranker.coef_)
    assert np.array_equal(one.ranker.intercept_, other.ranker.intercept_)

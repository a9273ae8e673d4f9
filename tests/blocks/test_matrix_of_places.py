"""The page that says where a table may lie: what it calls tried has a test, and only that."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence" / "scaling.md"

PARQUET, PLACES = "blocks/test_parquet.py", "blocks/test_places.py"
BATCHES, FIT = "blocks/test_batches.py", "models/test_block_fit.py"
FOLDERS, TABLES = "cli/test_folders.py", "cluster/test_table_blocks.py"
#: The test behind every "yes", by place: of numbers, of words, of the command line.
TESTS = {
    "Parquet file, folder, pattern": (
        (PARQUET, "test_takes_files_folders_patterns_and_lists"),
        (FIT, "test_parquet_folders_give_the_bits_of_memory"),
        (FOLDERS, "test_models_and_lists_are_those_of_one_file"),
    ),
    "Hive folders (`day=3`)": (
        (PLACES, "test_give_the_model_of_the_table_in_memory"),
        (FIT, "test_parquet_folders_give_the_bits_of_memory"),
        (FOLDERS, "test_names_of_folders_are_columns"),
    ),
    "`pyarrow.dataset` of Parquet files": (
        (PLACES, "test_are_read_file_by_file"),
        (FIT, "test_words_in_other_places_give_the_bits_of_memory"),
        None,
    ),
    "fsspec store (`memory://`), `file://`": (
        (PLACES, "test_are_read_by_their_address"),
        (FIT, "test_words_in_other_places_give_the_bits_of_memory"),
        (FOLDERS, "test_an_address_in_a_store"),
    ),
    "HTTP server, with errors and slow reads": (
        ("blocks/test_retries.py", "test_a_web_server_that_refuses_now_and_then_is_read"),
        None,
        None,
    ),
    "Frames of pandas in pieces": (
        (BATCHES, "test_frames_of_pandas_in_pieces"),
        (FIT, "test_blocks_of_any_size_give_the_bits_of_memory"),
        None,
    ),
    "Frames of polars in pieces": (
        (BATCHES, "test_frames_of_polars"),
        (FIT, "test_words_in_other_places_give_the_bits_of_memory"),
        None,
    ),
    "Arrow IPC files": (
        (BATCHES, "test_files_of_arrow"),
        (FIT, "test_words_in_other_places_give_the_bits_of_memory"),
        None,
    ),
    "CSV, plain or compressed, any delimiter and decimal sign": (
        (BATCHES, "test_a_csv_file_in_another_dialect_and_compressed"),
        None,
        ("cli/test_reading.py", "test_the_model_remembers_how_its_table_was_read"),
    ),
    "DuckDB": (
        (BATCHES, "test_a_query_to_duckdb"),
        (FIT, "test_words_in_other_places_give_the_bits_of_memory"),
        None,
    ),
    "SQLite": ((BATCHES, "test_a_query_to_sqlite"), None, None),
    "Dask arrays and frames": (
        ("cluster/test_dask_blocks.py", "test_features_and_labels_of_one_folder_belong_together"),
        (TABLES, "test_a_dask_frame_of_mixed_columns_is_fitted_as_in_memory"),
        (TABLES, "test_the_command_line_on_three_dask_workers_one_of_which_is_killed"),
    ),
    "Spark frames": (
        (
            "cluster/test_spark_blocks.py",
            "test_spark_gives_the_coefficients_of_the_fit_in_memory_and_scores_in_place",
        ),
        (TABLES, "test_a_spark_frame_of_mixed_columns_is_fitted_as_in_memory"),
        (TABLES, "test_the_command_line_on_a_spark_cluster_one_executor_of_which_is_killed"),
    ),
}


def rows_of_page():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = lines.index("| place | how | numbers | words | command line |") + 2
    for line in lines[first:]:
        if not line.startswith("|"):
            return
        place, _, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        yield place, [cell.strip(" |") for cell in cells]


@pytest.mark.parametrize(("place", "cells"), list(rows_of_page()))
def test_what_is_called_tried_has_a_test(place, cells):
    known = TESTS.get(place, (None, None, None))
    assert len(cells) == len(known)
    for cell, test in zip(cells, known, strict=True):
        assert (cell == "yes") == (test is not None), (place, cell)
        assert cell in ("yes", "no", "-")
        if test is not None:
            code = ast.parse((ROOT / "tests" / test[0]).read_text(encoding="utf-8"))
            names = {one.name for one in ast.walk(code) if isinstance(one, ast.FunctionDef)}
            assert test[1] in names, test


def test_the_page_has_every_place_that_is_tested():
    assert set(TESTS) <= {place for place, _ in rows_of_page()}

"""The page of the limits is that of its records, and the record of GPUs keeps what it says."""

import json

import pytest


@pytest.fixture
def record(benchmarks):
    return benchmarks("gpu_record")


def report(ratio, code="a", device="NVIDIA H200", figure="10 columns", part="fit at other widths"):
    """What gpu.py reports of one figure with a limit, and of what has none."""
    found = {"ratio": ratio, "limit": 0.25, "within": ratio <= 0.25, "ours": ratio, "theirs": 1.0}
    stamp = {"toprank": "0.2.0", "torch": "2.11.0", "date": "2026-11-18"}
    without = {"metrics": {"auc": 0.02}, "sparse tensors": {"failed": "OutOfMemoryError"}}
    return {"rows": 10, "device": device, "code": code, **stamp, **without, part: {figure: found}}


def test_the_page_agrees_with_both_records(benchmarks):
    limits = benchmarks("limits")
    page = limits.PAGE.read_text(encoding="utf-8")
    assert limits.page_of(page) == page, "run: python benchmarks/limits.py --page"
    assert all(line["figure"] in page for line in json.loads(limits.KEPT.read_text()))


def test_a_page_is_written_between_its_marks_alone(benchmarks):
    limits = benchmarks("limits")
    (first, last), (second, end) = limits.MARKS.values()
    page = f"before {first} old {last} between {second} old {end} after"
    written = limits.page_of(page)
    assert "old" not in written and limits.page_of(written) == written
    assert written.startswith(f"before {first}") and written.endswith(f"{end} after")
    assert f"{last} between {second}" in written


def test_the_last_five_runs_of_one_code_are_kept_in_their_order(record, tmp_path):
    path = tmp_path / "gpu.json"
    for ratio in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.6):  # the last report is added twice
        record.keep(report(ratio), path)
    record.keep(report(0.9, figure="30 columns"), path)
    kept = {name: [line["ratio"] for line in record.read(path) if line["figure"] == name]
            for name in ("10 columns", "30 columns")}  # fmt: skip
    assert kept == {"10 columns": [0.2, 0.3, 0.4, 0.5, 0.6], "30 columns": [0.9]}
    record.keep(report(0.7, code="b"), path)
    assert [line["ratio"] for line in record.read(path)] == [0.7, 0.9]


def test_figures_of_the_host_are_not_kept(record, tmp_path):
    with pytest.raises(ValueError, match="not kept"):
        record.keep(report(0.1, device="host"), tmp_path / "gpu.json")
    assert not (tmp_path / "gpu.json").exists()


def test_a_row_tells_the_median_the_range_and_how_many_runs_are_within(record, tmp_path):
    path = tmp_path / "gpu.json"

    def row():
        return record.table_of(record.read(path)).splitlines()[-1]

    for ratio, said in (
        (0.2, "| 0.2 | yes | 1, "),
        (0.3, "| 0.2 and 0.3 | in 1 of 2 | 2, "),
        (0.21, "| 0.21 (0.2 to 0.3) | in 2 of 3 | 3, "),
    ):
        record.keep(report(ratio), path)
        assert said in row()
    record.keep(report(0.5, code="b"), path)
    assert "| 0.5 | **no** | 1, 2026-11-18 |" in row()


def test_the_widths_over_the_limit_are_named_by_layout_and_size_of_entries(record, tmp_path):
    path = tmp_path / "gpu.json"
    for figure, ratio in (
        ("4 x float16, by rows", 0.2),
        ("4 x bfloat16, by rows", 0.4),
        ("1024 x bfloat16, by rows", 0.1),
        ("4 x float32, by rows", 0.15),
        ("4 x float32, by columns", 0.26),
    ):
        record.keep(report(ratio, figure=figure, part=record.WIDTHS), path)
    *_, whole, halves, by_columns = record.table_of(record.read(path)).splitlines()
    assert "32 bits by rows, 4 to 4 columns | 0.25 | 0.15 to 0.15 | 1 of 1 widths |" in whole
    assert "16 bits by rows, 4 to 1,024 columns | 0.25 | 0.10 to 0.30 | 1 of 2 widths" in halves
    assert "; **not** 4 (0.30) |" in halves
    assert "32 bits by columns" in by_columns and "**not** 4 (0.26)" in by_columns


def test_every_figure_of_the_record_has_a_row(record):
    kept = record.read()
    table = record.table_of(kept)
    assert {line["part"] for line in kept} <= {record.WIDTHS, *record.PARTS}
    assert all(line["figure"] in table for line in kept if line["part"] != record.WIDTHS)

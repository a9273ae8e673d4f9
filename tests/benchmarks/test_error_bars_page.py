"""The tables of the page of coverage are those of their records."""

import json


def test_the_page_has_every_cell_of_the_record(benchmarks):
    bars, pages = benchmarks("error_bars"), benchmarks("error_bars_page")
    page = pages.PAGE.read_text(encoding="utf-8")
    cases = bars.cases(list(bars.PARTS), list(bars.METRICS), quick=False)
    written = pages.page_of(page, bars.Record(bars.KEPT), cases, bars.is_in_design)
    assert written == page, "run: python benchmarks/error_bars.py page"


def test_the_page_has_what_other_code_measured(benchmarks):
    attack, pages = benchmarks("error_bars_attack"), benchmarks("error_bars_page")
    page = pages.PAGE.read_text(encoding="utf-8")
    kept = json.loads(attack.KEPT.read_text(encoding="utf-8"))
    written = pages.with_part(page, "other code", attack.table(kept))
    assert written == page, "run: python benchmarks/error_bars_attack.py --page"
    assert kept["auc"][0][1] in page


def test_a_part_is_written_between_its_marks_alone(benchmarks):
    pages = benchmarks("error_bars_page")
    marks = [
        f"<!-- {name}: {how} -->old<!-- end of {name} -->" for name, how in pages.WRITTEN.items()
    ]
    page = " kept ".join(["first", *marks, "last"])
    for name in pages.WRITTEN:
        page = pages.with_part(page, name, ["", "new", ""])
    assert "old" not in page and page.count("\n\nnew\n\n") == len(marks)
    assert page.startswith("first kept ") and page.endswith(" kept last")
    assert page.count(" kept ") == len(marks) + 1

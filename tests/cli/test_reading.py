"""A messy table from a German office: looked at, learned from, and read the same way ever after."""

import codecs
import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from toprank.models import load

n = 400


def office_table():
    rng = np.random.default_rng(5)
    sales = rng.lognormal(6, 1.2, n)
    age = rng.normal(45, 12, n).round()
    chance = age / 12 + np.log(sales) / 2 + rng.normal(0, 1.0, n)
    bought = chance > np.quantile(chance, 0.8)
    comma = str.maketrans(".,", ",.")
    frame = pd.DataFrame(
        {
            "Kunde": [str(10**17 + number) for number in range(n)],
            "PLZ": [f"{value:05d}" for value in rng.choice(rng.integers(999, 99999, 30), n)],
            "Segment": rng.choice(["Retail", " retail", "Müller AG"], n),
            "Umsatz": [f"{value:.2f}".translate(comma) for value in sales],
            "Beitrag": [f"{value:,.2f} €".translate(comma) for value in rng.lognormal(7, 0.5, n)],
            "Alter": np.where(rng.random(n) < 0.05, "unbekannt", age.astype(int).astype(str)),
            "seit": pd.Series(pd.date_range("2023-01-01", periods=n)).dt.strftime("%d.%m.%Y"),
            "Prämie": np.where(bought, [f"{value},50" for value in rng.integers(200, 400, n)], ""),
            "gekauft": np.where(bought, "ja", "nein"),
        }
    )
    frame.loc[3, "gekauft"] = ""
    return frame


def write(frame, path, encoding="cp1252"):
    """With two columns of one name, as exports have them."""
    names = [*frame.columns, "Umsatz"]
    text = io.StringIO()
    rows = csv.writer(text, delimiter=";")
    rows.writerows([names, *([*row, row[3]] for row in frame.itertuples(index=False))])
    path.write_bytes(text.getvalue().encode(encoding))
    return path


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    folder = tmp_path_factory.mktemp("office")
    write(office_table(), folder / "train.csv")
    write(office_table().head(60).drop(columns="gekauft"), folder / "new.csv")
    return folder


ASK = ["-y", "gekauft", "--positive", "ja", "--encoding", "cp1252", "--rename-duplicates"]
MEND = [
    *("--skip-unlabelled", "--id", "Kunde", "--drop", "Prämie", "--drop", "Umsatz.2"),
    *("--as-text", "PLZ", "--as-number", "Beitrag", "--tidy", "Segment", "--clip", "Umsatz"),
    *("--missing", "unbekannt", "--p", "2"),
]


@pytest.fixture(scope="module")
def fitted(office, invoke):
    pytest.importorskip("skops", reason="models are written with the extra models")
    done = invoke("fit", office / "train.csv", *ASK, *MEND, "-o", office / "model")
    assert done.exit_code == 0, done.output
    assert "CAREFUL" not in done.stderr
    return office / "model"


def test_check_names_what_is_wrong_in_the_order_of_danger(office, invoke, words):
    done = invoke("check", office / "train.csv", *ASK)
    assert done.exit_code == 1, done.output
    text = words(done.stdout)
    wanted = [
        "--drop 'Prämie'",
        "--skip-unlabelled",
        "--id Kunde",
        "--as-text PLZ",
        "--missing unbekannt",
        "--tidy Segment",
        "--as-number Beitrag",
        "--drop Umsatz.2",
    ]
    places = [text.index(option) for option in wanted]
    assert places == sorted(places)


def test_check_is_quiet_about_a_clean_table(train, invoke, words):
    done = invoke("check", train, "-y", "bought", "--id", "customer")
    assert done.exit_code == 0 and done.stderr == ""
    assert "Nothing to say against it." in words(done.stdout)


def test_check_answers_in_json(office, invoke):
    done = invoke("check", office / "train.csv", *ASK, "--json", "-q")
    first = json.loads(done.stdout)["concerns"][0]
    assert first["danger"] == 1 and first["columns"] == ["Prämie"] and done.stderr == ""


def test_fit_is_loud_about_a_leak(office, invoke, words, tmp_path):
    options = [*ASK, "--skip-unlabelled", "--p", "2", "--id", "Kunde", "-o", tmp_path / "m"]
    done = invoke("fit", office / "train.csv", *options)
    assert done.exit_code == 0, done.output
    assert "CAREFUL: column 'Prämie' is filled only in positive rows" in words(done.stderr)
    assert "--drop 'Prämie'" in done.stderr
    assert any("Prämie" in text for text in load(tmp_path / "m").card["warnings"])


def test_fit_names_the_options_that_a_table_needs(office, invoke, words, tmp_path):
    asked = ["-y", "gekauft", "--positive", "ja", "-o", tmp_path / "m"]
    for more, remedy in (
        ([], "--encoding latin-1 (or cp1252)"),
        (["--encoding", "cp1252"], "--rename-duplicates"),
        (["--encoding", "cp1252", "--rename-duplicates"], "--skip-unlabelled"),
    ):
        refused = invoke("fit", office / "train.csv", *asked, *more)
        assert refused.exit_code == 2 and remedy in words(refused.stderr)


@pytest.mark.more
def test_the_model_remembers_how_its_table_was_read(office, fitted, invoke):
    model = load(fitted)
    assert model.card["reading"] == {
        "encoding": "cp1252",
        "delimiter": ";",
        "decimal": ",",
        "missing": ["unbekannt"],
        "rename_duplicates": True,
    }
    kinds = {column.name: column.kind for column in model.schema.columns}
    assert kinds == {
        "PLZ": "category",
        "Segment": "category",
        "Umsatz": "number",
        "Beitrag": "number",
        "Alter": "number",
        "seit": "date",
    }
    evaluated = office / "labelled.csv"
    write(office_table().drop(index=3), evaluated)
    assert invoke("evaluate", fitted, evaluated, "--json", "-q").exit_code == 0
    assert invoke("monitor", fitted, evaluated, "-q").exit_code == 0


def test_a_list_comes_out_as_its_table_is_written(office, fitted, invoke, tmp_path):
    out = tmp_path / "list.csv"
    carried = ["--id", "PLZ", "--id", "Segment", "--id", "Beitrag"]
    done = invoke("rank", fitted, office / "new.csv", "--all", *carried, "-o", out)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(io.StringIO(out.read_bytes().decode("cp1252")), delimiter=";"))
    assert [row["rank"] for row in rows[:2]] == ["1", "2"] and "," in rows[0]["score"]
    own = office_table().head(60).set_index("Kunde")
    for row in rows:
        assert row["Beitrag"] == own.Beitrag[row["Kunde"]] and row["PLZ"] == own.PLZ[row["Kunde"]]
        assert row["Segment"] == own.Segment[row["Kunde"]]


def test_a_table_that_is_written_otherwise_is_read_as_it_is(office, fitted, invoke, tmp_path):
    first = invoke("rank", fitted, office / "new.csv", "--all", "--json", "-q")
    frame = office_table().head(60).drop(columns="gekauft")
    frame["Umsatz"] = frame.Umsatz.str.replace(",", ".")
    frame.assign(copy=0).to_csv(tmp_path / "plain.csv", index=False)
    (tmp_path / "marked.csv").write_bytes(codecs.BOM_UTF8 + (tmp_path / "plain.csv").read_bytes())
    for name in ("plain.csv", "marked.csv"):
        again = invoke("rank", fitted, tmp_path / name, "--all", "--json", "-q")
        assert again.exit_code == 0, again.output
        assert json.loads(again.stdout) == json.loads(first.stdout)
    out = tmp_path / "list.csv"
    invoke("rank", fitted, tmp_path / "marked.csv", "--id", "Segment", "-o", out)
    assert out.read_bytes().startswith(codecs.BOM_UTF8 + b"Kunde,Segment,score")
    invoke("rank", fitted, tmp_path / "plain.csv", "--id", "Segment", "-o", out)
    assert out.read_bytes().startswith(b"Kunde,Segment,score")
    invoke("rank", fitted, tmp_path / "plain.csv", "--id", "Segment", "-o", out, "--excel-safe")
    assert out.read_bytes().startswith(codecs.BOM_UTF8 + b"Kunde,Segment,score")


def test_a_number_that_is_written_otherwise_is_met_with_the_option_that_fits(
    office, fitted, invoke, words, tmp_path
):
    frame = office_table().head(60).drop(columns="gekauft")
    table = tmp_path / "points.csv"
    frame.assign(Umsatz=frame.Umsatz.str.replace(",", ".")).to_csv(table, index=False, sep=";")
    refused = invoke("rank", fitted, table, "--decimal", ",")
    assert refused.exit_code == 2 and "--decimal ." in words(refused.stderr)
    assert "--missing" not in refused.stderr
    assert invoke("rank", fitted, table, "--decimal", ".", "-q").exit_code == 0


def test_a_card_that_a_stranger_wrote_is_not_believed():
    from toprank.cli.io.source import Reading

    strange = {"encoding": "base64", "delimiter": "\n", "decimal": 3, "missing": [1, "x"]}
    assert Reading.remembered({"reading": strange}) == Reading(missing=("x",))
    assert Reading.remembered({"reading": 7}) == Reading.remembered({}) == Reading()


def test_a_workbook_is_read_and_written(frame, model, train, invoke, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    ranked = [
        json.loads(invoke("rank", model, table, "--top", "20", "--json", "-q").stdout)
        for table in (train, tmp_path / "t.xlsx")
    ]
    assert ranked[0] == ranked[1]
    done = invoke("rank", model, tmp_path / "t.xlsx", "--top", "20", "-o", tmp_path / "list.xlsx")
    assert done.exit_code == 0, done.output
    sheet = openpyxl.load_workbook(tmp_path / "list.xlsx").active
    rows = list(sheet.iter_rows(values_only=True))
    assert rows[0] == ("customer", "score", "rank", "reasons", "tied_at_the_cut")
    assert [row[0] for row in rows[1:]] == [row["customer"] for row in ranked[0]]


def test_no_cell_of_a_workbook_is_a_formula(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    import pyarrow as pa

    from toprank.cli.listing import write_listing

    texts = ["=1+1", "+2", "@x", "a\x00b", "plain"]
    write_listing(pa.table({"text": texts, "id": [10**17 + 1] * 5}), tmp_path / "l.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "l.xlsx").active
    cells = [row for row in sheet.iter_rows(min_row=2)]
    assert [row[0].value for row in cells] == ["=1+1", "+2", "@x", "a\\x00b", "plain"]
    assert {row[0].data_type for row in cells} == {"s"}
    assert cells[0][1].value == "100000000000000001"


def test_a_workbook_that_is_damaged_is_refused(tmp_path, invoke, words):
    import zipfile

    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<not a workbook")
    refused = invoke("fit", tmp_path / "t.xlsx", "-y", "a", "-o", tmp_path / "m")
    assert refused.exit_code == 2 and "could not be read as a workbook" in words(refused.stderr)


def test_check_of_a_column_without_labels_asks_for_another(frame, invoke, words, tmp_path):
    frame.assign(bought=None).to_csv(tmp_path / "t.csv", index=False)
    refused = invoke("check", tmp_path / "t.csv", "-y", "bought")
    assert refused.exit_code == 2
    assert "'bought' is missing in every row; name the column" in words(refused.stderr)

"""SQL of every kind of model, run by a PostgreSQL server of its own, where one is installed."""

import csv
import io
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PNormPush, PushEnsemble, PushTrees, RankBoost
from toprank.interop.sql import to_sql
from toprank.models import fit_table

pytestmark = pytest.mark.more
NAMES = ['a"b', "select", "x0", "XS1"]


def programs():
    """The folder of PostgreSQL's programs; None where there are none."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: one.parent.name)
    return Path(found).parent if found else next(iter(reversed(folders)), None)


@pytest.fixture(scope="module")
def query(tmp_path_factory):
    """Runs SQL on a server that listens to a socket in a folder, and nowhere else."""
    home = programs()
    if home is None:
        pytest.skip("PostgreSQL is not installed")
    as_user = []
    folder = tmp_path_factory.mktemp("postgres", numbered=True)
    if os.geteuid() == 0:  # the server refuses to be run by root
        known = subprocess.run(["id", "postgres"], check=False, capture_output=True)
        if not shutil.which("runuser") or known.returncode:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        as_user = ["runuser", "-u", "postgres", "--"]
        folder = Path(subprocess.run([*as_user, "mktemp", "-d"], check=True, capture_output=True,
                                     text=True).stdout.strip())  # fmt: skip

    def run(program, *arguments, text=None):
        path = home / program
        at = str(path) if path.exists() else shutil.which(program)  # its client may lie elsewhere
        done = subprocess.run([*as_user, at, *arguments], input=text, timeout=100,
                              capture_output=True, text=True, check=False, cwd=folder)  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    data = str(folder / "data")
    run("initdb", "-D", data, "--auth=trust", "--no-sync", "-U", "me", "--encoding=UTF8")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    run("pg_ctl", "-D", data, "-w", "-o", options, "-l", str(folder / "log"), "start")

    def ask(sql):
        given = ("-h", str(folder), "-U", "me", "-d", "postgres", "-q", "--csv",
                 "-v", "ON_ERROR_STOP=1", "-f", "-")  # fmt: skip
        return run("psql", *given, text=sql)

    yield ask
    run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    if as_user:
        subprocess.run([*as_user, "rm", "-rf", str(folder)], check=True)


def scores(query, sql, frame):
    """The column score of a query over a frame, put into a table of that name."""
    kinds = {"f": "double precision", "i": "bigint", "b": "boolean"}
    columns = ", ".join('"{}" {}'.format(name.replace('"', '""'), kinds.get(frame[name].dtype.kind,
                                                                             "text"))
                        for name in frame.columns)  # fmt: skip
    rows = frame.to_csv(index=False, header=False, na_rep="NULL", quoting=csv.QUOTE_MINIMAL)
    said = query(
        f'DROP TABLE IF EXISTS "my rows";\nCREATE TABLE "my rows" ({columns});\n'
        f"COPY \"my rows\" FROM STDIN WITH (FORMAT csv, NULL 'NULL');\n{rows}\\.\n{sql};\n"
    )
    found = list(csv.DictReader(io.StringIO(said)))
    return np.array([float(row["score"] or "nan") for row in found])


def table(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    X[:, 2] = rng.integers(0, 20, n)
    odd = np.isin(X[:, 2], [1, 4, 7, 13, 19])
    y = X[:, 0] + 2.0 * odd + rng.normal(size=n) > 1.0
    gaps = X.copy()
    gaps[rng.random(n) < 0.1, 0] = np.nan
    gaps[::7, 2] = 99  # never seen
    return X, y, gaps


TREES = PushTrees(4, n_estimators=8, categorical_features=[2], calibration="training")
MODELS = {
    "linear": PNormPush(),
    "pipeline": make_pipeline(StandardScaler(), PNormPush()),
    "stumps": RankBoost(20),
    "trees": TREES,
    "ensemble": PushEnsemble([("linear", PNormPush()), ("trees", TREES)], cv=2),
}


@pytest.mark.parametrize("name", MODELS)
def test_postgresql_scores_rows_as_the_model_does(name, query):
    X, y, gaps = table()
    model = MODELS[name].fit(X, y)
    sql = to_sql(model, NAMES, table="my rows", dialect="postgres")
    rows = gaps if name in ("stumps", "trees") else X
    found = scores(query, sql, pd.DataFrame(rows, columns=NAMES))
    np.testing.assert_allclose(found, model.decision_function(rows), rtol=1e-12, atol=1e-12)


def test_postgresql_scores_a_table_with_its_preparation_and_odd_words(query):
    rng = np.random.default_rng(1)
    n = 300
    frame = pd.DataFrame(
        {
            "Größe": rng.normal(40, 10, n),
            "plan's": rng.choice(["it's", 'a "b"', "c;--", "d\\e"], n),
            "member": rng.random(n) < 0.4,
        }
    )
    frame["bought"] = (frame["Größe"] / 10 + 2 * frame["member"] + rng.normal(size=n) > 5).map(
        {True: "yes", False: "no"}
    )
    given = frame.drop(columns="bought")
    for kind in ("pnorm", "rankboost"):
        model = fit_table(frame, "bought", model=kind)
        found = scores(query, model.to_sql("my rows", dialect="postgres"), given)
        np.testing.assert_allclose(found, model.score(given), rtol=1e-12, atol=1e-12)

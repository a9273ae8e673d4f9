"""The example that scores over HTTP: the model's scores, and a clear no to bad requests."""

import http.client
import importlib.util
import json
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from toprank.models import fit_table

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "serve_http.py"


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"age": rng.normal(40, 10, 200), "city": rng.choice(["a", "b"], 200)})
    made["y"] = (made.age + rng.normal(0, 5, 200) > 50).astype(int)
    return made


@pytest.fixture(scope="module")
def served(frame):
    spec = importlib.util.spec_from_file_location("serve_http", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    model = fit_table(frame, "y", p=2)
    server = example.make_server(model, 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield model, server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


def post(port, body, path="/score"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", path, body)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_the_scores_over_http_are_the_models(served, frame):
    model, port = served
    rows = frame.drop(columns="y").head(5)
    status, answer = post(port, rows.to_json(orient="records", double_precision=15))
    assert status == 200
    np.testing.assert_allclose(answer["score"], model.score(rows), rtol=1e-9)


@pytest.mark.parametrize(
    ("body", "path", "status", "why"),
    [
        ("{", "/score", 400, "not JSON"),
        ("[1]", "/score", 400, "list of objects"),
        ("[]", "/score", 400, "list of objects"),
        ('[{"city": "a"}]', "/score", 400, "'age' (number) is missing"),
        ('[{"age": "old", "city": "a"}]', "/score", 400, "age"),
        ("[]", "/elsewhere", 404, "/score"),
    ],
)
def test_a_bad_request_is_told_why(served, body, path, status, why):
    got, answer = post(served[1], body, path)
    assert got == status
    assert why in answer["error"]

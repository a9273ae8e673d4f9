"""
Score rows over HTTP
====================

With a model file, and by the standard library alone::

    python examples/serve_http.py model.toprank --port 8000
    curl -d '[{"age": 41, "city": "Oslo"}]' http://127.0.0.1:8000/score

The file is opened without running anything in it. What cannot be scored is answered by 400 and a
sentence that says why; what is too large by 413. For a few requests per second behind a proxy.
"""

# sphinx_gallery_thumbnail_path = "images/report_wide.png"

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd

from toprank.models import ModelError, load

MOST_BYTES = 10_000_000


class Refused(Exception):
    """A request that cannot be answered: its status, and why."""

    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


def read_rows(body):
    """The rows of a request: a list of objects, one per row."""
    try:
        rows = json.loads(body)
    except ValueError as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise Refused(400, 'expected a list of objects, such as [{"age": 41}]')
    return pd.DataFrame(rows)


def make_handler(model):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                status, answer = 200, self.score()
            except Refused as refused:
                status, answer = refused.status, {"error": str(refused)}
            except ModelError as error:
                status, answer = 400, {"error": str(error)}
            self.send(status, answer)

        def score(self):
            if self.path != "/score":
                raise Refused(404, "POST rows to /score")
            length = self.headers.get("Content-Length", "")
            if not length.isdigit():
                raise Refused(411, "the request does not say how long its body is")
            if int(length) > MOST_BYTES:
                raise Refused(413, f"more than {MOST_BYTES} bytes; send fewer rows at a time")
            frame = read_rows(self.rfile.read(int(length)))
            scores, chances = model.score(frame), model.predict_proba(frame)[:, 1]
            return {"score": scores.tolist(), "probability": chances.tolist()}

        def send(self, status, answer):
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Rows are nobody else's business."""

    return Handler


def make_server(model, port):
    return ThreadingHTTPServer(("127.0.0.1", port), make_handler(model))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    make_server(load(given.model), given.port).serve_forever()

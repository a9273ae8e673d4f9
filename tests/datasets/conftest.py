"""A local stand-in for OpenML: every request of urllib is answered from memory."""

import hashlib
import io
import json
import urllib.error
import urllib.request
import urllib.response
from email.message import Message

import pytest


class OpenML(urllib.request.HTTPSHandler):
    """Serves the data sets it was given; `online = False` cuts the line."""

    def __init__(self):
        super().__init__()
        self.online = True
        self.requests = 0
        self._answers = {}

    def add(self, data_id, columns, rows, *, target, sparse=False):
        """Publish a data set. `columns` maps a name to "numeric" or to a list of categories."""
        arff = _arff(columns, rows)
        file = f"/data/v1/download/{data_id}"
        self._answers |= {
            f"/json/data/{data_id}": _json(_description(data_id, file, arff, sparse)),
            f"/json/data/features/{data_id}": _json(_features(columns, rows, target)),
            f"/json/data/qualities/{data_id}": _json(_qualities(len(rows))),
            file: arff,
            f"{file}/data.arff": arff,
        }

    def https_open(self, request):
        self.requests += 1
        if not self.online:
            raise urllib.error.URLError("the line is cut")
        body = next(body for path, body in self._answers.items() if request.selector.endswith(path))
        response = urllib.response.addinfourl(io.BytesIO(body), Message(), request.full_url, 200)
        response.msg = "OK"
        return response


@pytest.fixture
def openml():
    handler = OpenML()
    urllib.request.install_opener(urllib.request.build_opener(handler))
    yield handler
    urllib.request.install_opener(None)


def _json(content):
    return json.dumps(content).encode()


def _arff(columns, rows):
    kinds = {
        name: kind if isinstance(kind, str) else "{" + ",".join(kind) + "}"
        for name, kind in columns.items()
    }
    lines = ["@RELATION stand_in"]
    lines += [f"@ATTRIBUTE {name} {kind}" for name, kind in kinds.items()]
    lines += ["@DATA"]
    lines += [row if isinstance(row, str) else ",".join(map(str, row)) for row in rows]
    return ("\n".join(lines) + "\n").encode()


def _description(data_id, file, arff, sparse):
    return {
        "data_set_description": {
            "id": str(data_id),
            "name": "stand_in",
            "version": "1",
            "description": "A stand-in.",
            "format": "Sparse_ARFF" if sparse else "ARFF",
            "url": f"https://www.openml.org{file}/data.arff",
            "file_id": str(data_id),
            "status": "active",
            "md5_checksum": hashlib.md5(arff).hexdigest(),
        }
    }


def _features(columns, rows, target):
    return {
        "data_features": {
            "feature": [
                {
                    "index": str(index),
                    "name": name,
                    "data_type": "numeric" if kind == "numeric" else "nominal",
                    "is_target": str(name == target).lower(),
                    "is_ignore": "false",
                    "number_of_missing_values": str(sum(row[index] == "?" for row in rows)),
                    "is_row_identifier": "false",
                }
                for index, (name, kind) in enumerate(columns.items())
            ]
        }
    }


def _qualities(n_rows):
    return {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": f"{n_rows}.0"}]}}

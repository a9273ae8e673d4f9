"""The commands of docs/how_to/command_line.md run as they stand, one after another."""

import json
import os
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how_to" / "command_line.md"
NOT_HERE = ("pip ", "toprank --install-completion")  # these change the machine


@pytest.mark.more
def test_the_commands_of_the_page_run(invoke, tmp_path, monkeypatch):
    pytest.importorskip("skops", reason="models are written with the extra models")
    pytest.importorskip("onnxruntime", reason="exports are checked by ONNX Runtime")
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"^```python\n(.*?)^```$", text, re.M | re.S)[1], {})
    lines = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)).splitlines()
    commands = [line for line in lines if not line.startswith(NOT_HERE)]
    assert len(commands) >= 10
    for line in commands:
        program, *arguments = shlex.split(line)
        answer = invoke(*arguments)
        assert program == "toprank" and answer.exit_code == 0, (line, answer.output)
    made = {"model", "logistic", "ranked.csv", "report.html", "score.sql", "model.onnx"}
    assert made < set(os.listdir(tmp_path))
    assert json.loads(invoke("show", "model", "--json").stdout)["model"] == "pnorm"

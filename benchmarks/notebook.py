"""A tutorial as a notebook with its outputs: docs/tutorials/leads_to_call.ipynb.

    python benchmarks/notebook.py            run the tutorial and write the notebook

The cells are run here, one after another, by plain Python; what they print and draw is kept with
them. tests/test_notebook.py sees whether the notebook is still that of the script.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "tutorials" / "plot_2_leads_to_call.py"
NOTEBOOK = ROOT / "docs" / "tutorials" / "leads_to_call.ipynb"
FIRST = "# once: pip install 'toprank[plots,lightgbm]'\n%matplotlib inline"
Cell = tuple[str, str]


def markdown(text: str) -> str:
    """The text of a script, which is reStructuredText, for a notebook."""
    text = re.sub(r"^(.+)\n=+$", r"# \1", text.strip(), flags=re.MULTILINE)
    text = re.sub(r"^(.+)\n-+$", r"## \1\n", text, flags=re.MULTILINE)
    text = re.sub(r":doc:`([^`<]+?) *</[^`>]+>`", r"\1 of the documentation", text)
    text = re.sub(r":doc:`/(\w+)/(\w+)`", r"the documentation's page `\1/\2`", text)
    return text.replace("``", "`")


def cells_of(script: str) -> list[Cell]:
    """The cells of a script, each ("markdown" or "code", text)."""
    head, *blocks = re.split(r"^# %%.*\n", script, flags=re.MULTILINE)
    words = ast.get_docstring(ast.parse(head), clean=True) or ""
    code = head.split('"""', 2)[2].strip()
    cells = [("markdown", markdown(words)), ("code", FIRST), ("code", code)]
    for block in blocks:
        said = re.match(r"(?:#.*\n?)*", block)
        text = said.group() if said else ""
        lines = [line.removeprefix("#").removeprefix(" ") for line in text.splitlines()]
        cells += [("markdown", markdown("\n".join(lines))), ("code", block[len(text) :].strip())]
    return [(kind, text) for kind, text in cells if text]


def run(cells: list[Cell]) -> list[list[dict]]:
    """Run the cells of code in one namespace; return what each printed and drew."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    outputs: list[list[dict]] = []
    namespace: dict = {"__name__": "__main__"}
    for kind, text in cells:
        outputs.append([])
        if kind != "code" or text == FIRST:
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(text, str(SCRIPT), "exec"), namespace)
        if printed.getvalue():
            lines = printed.getvalue().splitlines(keepends=True)
            outputs[-1].append({"name": "stdout", "output_type": "stream", "text": lines})
        outputs[-1] += [drawn(pyplot.figure(number)) for number in pyplot.get_fignums()]
        pyplot.close("all")
    return outputs


def drawn(figure: object) -> dict:
    """A picture as an output of a cell."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=80, metadata={"Software": None})
    encoded = base64.b64encode(picture.getvalue()).decode()
    data = {"image/png": encoded, "text/plain": ["<Figure>"]}
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def notebook(script: str) -> dict:
    """Return the notebook of a script, in version 4.5 of the format."""
    cells = cells_of(script)
    made, count = [], 0
    for number, ((kind, text), outputs) in enumerate(zip(cells, run(cells), strict=True)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        cell["source"] = text.splitlines(keepends=True)
        if kind == "code":
            count += 1
            cell |= {"execution_count": count, "outputs": outputs}
        made.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    facts = {
        "kernelspec": kernel,
        "language_info": {"name": "python"},
        "toprank": {"script": SCRIPT.name, "sha256": fingerprint(script)},
    }
    return {"cells": made, "metadata": facts, "nbformat": 4, "nbformat_minor": 5}


def fingerprint(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()


if __name__ == "__main__":
    made = notebook(SCRIPT.read_text(encoding="utf-8"))
    text = json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    NOTEBOOK.write_text(text, encoding="utf-8")
    print(f"{NOTEBOOK.relative_to(ROOT)}: {len(made['cells'])} cells, {len(text) / 1024:.0f} KB")

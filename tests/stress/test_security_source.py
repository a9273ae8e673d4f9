"""No code of toprank evaluates text, starts programs, opens pickles or reaches for the network."""

import ast
from functools import cache
from pathlib import Path

import toprank

SOURCE = Path(toprank.__file__).resolve().parent
FILES = sorted(SOURCE.rglob("*.py"))

#: Modules that run code, start programs or reach for the network, whatever is called of them.
MODULES = {
    *("pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "code", "codeop", "runpy"),
    *("subprocess", "pty", "pexpect", "ctypes", "cffi", "multiprocessing", "asyncio", "ssl"),
    *("socket", "socketserver", "http", "urllib", "urllib3", "requests", "httpx", "aiohttp"),
    *("ftplib", "smtplib", "telnetlib", "xmlrpc", "webbrowser", "paramiko", "yaml"),
}
#: Calls by their last name, whoever owns them.
CALLS = {
    *("eval", "exec", "compile", "__import__", "system", "popen", "startfile", "fork", "forkpty"),
    *("execv", "execve", "execvp", "execl", "execlp", "spawnv", "spawnl", "spawnlp", "posix_spawn"),
    *("fetch_openml", "read_pickle", "to_pickle", "unsafe_load", "mktemp", "literal_eval"),
}
#: What may be there nevertheless, and why: (file, what) to the reason.
ARGUED = {
    ("rankers/trees/distributed_spark.py", "import pickle"): (
        "the grown trees travel from Spark's executors to its driver, which pickle everything "
        "they send each other anyway; nothing of it comes from a file or from another user"
    ),
    ("blocks/checkpoint.py", "import pickle"): (
        "outcomes of passes are read back by an unpickler that knows arrays and classes of this "
        "library and calls nothing; a test hands it a file that would"
    ),
    ("blocks/spark_tables.py", "import pickle"): (
        "partial results travel from Spark's executors to its driver, which pickle everything "
        "they send each other anyway; nothing of it comes from a file or from another user"
    ),
    ("blocks/kernels_cuda.py", "import ctypes"): (
        "calls the GPU's driver through the library that torch has loaded: numbers, and addresses "
        "of tensors that the caller's object holds; no library is opened, no code comes from data"
    ),
    ("blocks/cuda_binaries.py", "import ctypes"): (
        "asks NVRTC, which torch has loaded, for its version; machine code that it has compiled is "
        "read back from a folder of the user's that nobody else may write to"
    ),
    ("blocks/dask_tasks.py", "import asyncio"): (
        "waits for threads of a Dask worker within its own loop; starts nothing, opens nothing"
    ),
    ("_files.py", "import urllib.parse"): "unquotes the path after file://; nothing is fetched",
    ("blocks/places.py", "import urllib.parse"): "unquotes names of folders; nothing is fetched",
    ("blocks/spill.py", "import socket"): "gethostname alone: on which machine a block lies",
    ("datasets/_openml.py", "fetch_openml"): "the one explicit download, datasets.fetch",
}
#: `re.compile` and the like share a name with the builtin.
HARMLESS = {("re", "compile"), ("platform", "system")}


@cache
def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def findings(tree):
    """Every (line, what) of a syntax tree that is on the lists."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name.partition(".")[0] in MODULES:
                    yield node.lineno, f"import {one.name}"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if (node.module or "").partition(".")[0] in MODULES:
                yield node.lineno, f"import {node.module}"
        elif isinstance(node, ast.Call):
            yield from _called(node)


def _called(node):
    function = node.func
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if function.attr in CALLS and (owner, function.attr) not in HARMLESS:
            yield node.lineno, function.attr
    elif isinstance(function, ast.Name) and function.id in CALLS:
        yield node.lineno, function.id
    for keyword in node.keywords:
        risky = {"shell", "allow_pickle", "weights_only", "trust_remote_code"}
        if keyword.arg in risky:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if value is not (keyword.arg == "weights_only"):
                yield node.lineno, f"{keyword.arg}="


def test_the_walk_finds_what_it_looks_for():
    hostile = {
        "import pickle": "import pickle",
        "from urllib.request import urlopen": "import urllib.request",
        "eval(x)": "eval",
        "os.system(x)": "system",
        "run(x, shell=True)": "shell=",
        "np.load(x, allow_pickle=flag)": "allow_pickle=",
        "torch.load(x, weights_only=False)": "weights_only=",
        "builtins.exec(x)": "exec",
    }
    for code, what in hostile.items():
        assert [found for _, found in findings(ast.parse(code))] == [what], code
    for code in ("re.compile(x)", "np.load(x, allow_pickle=False)", "f(x, weights_only=True)"):
        assert list(findings(ast.parse(code))) == []


def test_nothing_dangerous_is_called_but_what_is_argued(record_property):
    found = {}
    for path in FILES:
        name = path.relative_to(SOURCE).as_posix()
        for line, what in findings(_tree(path)):
            found.setdefault((name, what), []).append(line)
    record_property("cases", len(FILES))
    assert len(FILES) > 200
    assert {k: v for k, v in found.items() if k not in ARGUED} == {}
    assert set(ARGUED) <= set(found), "an exception that is no longer needed is to be removed"


#: Names by which files are written, or folders made.
WRITERS = {
    *("write_text", "write_bytes", "to_csv", "to_parquet", "to_json", "to_excel", "to_feather"),
    *("save", "savez", "savez_compressed", "savetxt", "savefig", "tofile", "dump", "memmap"),
    *("mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryFile", "TemporaryDirectory", "open"),
    *("write_table", "write_feather", "ParquetWriter", "touch", "symlink_to", "copyfile"),
    *("copy2", "rename", "OSFile", "sink_parquet", "write_parquet", "write_csv"),
}
#: Every place where something is written or opened, and why no half file can come of it.
WRITTEN = {
    ("_files.py", "open"): "the one place that writes: a part, put in place when it is complete",
    ("_files.py", "TemporaryFile"): "no name and no content: it tells whether a folder can be used",
    ("blocks/batches.py", "ParquetWriter"): "writes to a part",
    ("blocks/decoded.py", "TemporaryFile"): "decoded numbers, while a source lasts, without a name",
    ("blocks/memory.py", "memmap"): "mapped to be read",
    ("blocks/parquet.py", "ParquetWriter"): "writes to a part",
    ("blocks/spill.py", "mkdtemp"): "a folder of one task, named to the others when complete",
    ("blocks/spill.py", "open"): "in that folder",
    ("blocks/spill.py", "write_bytes"): "in that folder",
    ("blocks/spill.py", "memmap"): "mapped to be read",
    ("blocks/tables.py", "TemporaryDirectory"): "the numbers of a table, while a model is fitted",
    ("blocks/tables.py", "open"): "in that folder",
    ("cli/io/source.py", "OSFile"): "tables to be read",
    ("cli/choose_p.py", "savefig"): "draws to a part",
    ("cli/demo.py", "savefig"): "draws to a part",
    ("cli/terminal.py", "open"): "the null device, when the reader of a pipe has left",
    ("cli/fit.py", "save"): "of a model, which writes a part",
    ("cli/listing.py", "write_table"): "writes to a part",
    ("cli/listing.py", "write_feather"): "writes to a part",
    ("cli/report.py", "save"): "of a report, which writes a part",
    ("cli/io/tables.py", "TemporaryFile"): "standard input, kept while it is read, without a name",
    ("cli/io/tables.py", "TemporaryDirectory"): "the same where files without a name are unknown",
    ("cli/io/tables.py", "open"): "in that folder, and tables to be read",
    ("cli/io/excel.py", "save"): "of a workbook, to a part",
    ("cli/io/text.py", "open"): "tables to be read",
    ("cli/io/text.py", "OSFile"): "tables to be read",
    ("interop/mlflow.py", "TemporaryDirectory"): "the model's file, until MLflow has copied it",
    ("interop/mlflow.py", "save"): "of a model, which writes a part",
    ("interop/onnx.py", "save"): "of an export, which writes a part",
    ("models/model.py", "save"): "of a model, which writes a part",
    ("models/export.py", "save"): "of an export, which writes a part",
    ("models/table_ranker.py", "save"): "of a model, which writes a part",
    ("rankers/ensemble/converted.py", "TemporaryDirectory"): "CatBoost tells its trees in a file",
    ("rankers/trees/on_blocks.py", "TemporaryDirectory"): "XGBoost's pages, while trees grow",
    ("reproduce/runner.py", "savefig"): "draws to a part",
    ("reproduce/runner.py", "open"): "data to be read",
}


def _written(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            name = getattr(function, "attr", None) or getattr(function, "id", None)
            if name in WRITERS:
                yield name


def test_every_place_that_writes_a_file_is_known_and_argued():
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in FILES
        for name in _written(_tree(path))
    }
    assert {one for one in found if one not in WRITTEN} == set()
    assert set(WRITTEN) <= found, "a place that no longer writes is to be removed"


#: Where a module is imported by a name that is not written there, and where the name is from.
IMPORTED = {
    ("__init__.py", "import_name"): "the public names and rooms of toprank, by a closed table",
    ("_extras.py", "import_module"): "require itself",
    ("_imports.py", "import_module"): "import_name itself",
    ("cli/__init__.py", "require"): "a tuple in the line above",
    ("cli/app.py", "import_module"): "the commands, by a table in the file",
    ("models/__init__.py", "import_name"): "the public names and files of toprank.models",
    ("models/payload.py", "import_module"): "the types of a closed list, checked in the line above",
    ("models/frames.py", "require"): "pandas or polars, by the type of the caller's frame",
    ("blocks/design.py", "import_module"): "a table of kernels in the file",
    ("rankers/__init__.py", "import_name"): "the public names and files of toprank.rankers",
    ("rankers/common.py", "import_module"): "the library of the caller's own array",
}


def test_libraries_are_imported_by_names_that_stand_in_the_code():
    """A name from data would let data choose what runs."""
    found = set()
    for path in FILES:
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
                constant = node.args and isinstance(node.args[0], ast.Constant)
                if name in ("import_module", "import_name", "require") and not constant:
                    found.add((path.relative_to(SOURCE).as_posix(), name))
    assert found == set(IMPORTED)

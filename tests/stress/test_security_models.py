"""A file that claims to be a model runs nothing, opens nothing, writes nothing, and is refused."""

import hashlib
import io
import json
import os
import pickle
import stat
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

pytest.importorskip("skops", reason="models are saved with skops")
pd = pytest.importorskip("pandas", reason="the table is a pandas data frame")

from toprank.models import fit_table  # noqa: E402
from toprank.models.storage import to_bytes  # noqa: E402

#: Loads every file, and tells what Python did meanwhile: the interpreter itself reports it.
CHILD = """
import json, os, resource, sys, time, warnings
warnings.simplefilter("ignore")
from toprank.models import ModelError, load
good, *files = sys.argv[1:]
load(good)  # imports what is needed
events, now = [], [None]
def hook(event, args):
    if now[0] is None or event.startswith(("object.", "sys.", "code.", "gc.", "builtins.id")):
        return
    if event == "open":
        path, mode, flags = args
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        if path == now[0] and not writes:
            return
    if event == "import" and args[0] in sys.modules:
        return
    if event == "compile" and args[1] == "<unknown>":
        return  # ast.literal_eval reads the headers of arrays; running would be another event
    events.append(f"{event} {str(args)[:100]}")
sys.addaudithook(hook)
now[0] = good
load(good)  # looks up the versions of the libraries
usual = set(events)
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, resource.RLIM_INFINITY))
answers = {}
for path in files:
    events.clear()
    start = time.process_time()
    now[0] = path
    try:
        load(path, most_bytes=12 << 20)
        said = ["loaded", ""]
    except ModelError as error:
        said = ["refused", str(error)]
    except BaseException as error:
        said = [type(error).__name__, str(error)]
    now[0] = None
    did, took = sorted(set(events) - usual), time.process_time() - start
    answers[os.path.basename(path)] = [*said, did, took]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if os.path.exists("/proc/self/status"):  # else the memory of the process that started this one
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps([answers, peak]))
"""


def archive(members, mode=zipfile.ZIP_DEFLATED):
    """A zip of (name or ZipInfo, content); a name may come twice."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", mode) as made:
        for name, content in members:
            if any(getattr(name, "filename", name) == one.filename for one in made.infolist()):
                # as an attacker would, without the module's warning
                made.NameToInfo.pop(getattr(name, "filename", name))
            made.writestr(name, content)
    return buffer.getvalue()


def sealed(members, extra=()):
    """An archive of the given members with a checksum that is right."""
    data = archive([*members.items(), *extra])
    comment = b"toprank model sha256:" + b"0" * 64
    data = data[:-2] + struct.pack("<H", len(comment)) + comment
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


class Harm:
    """A pickle that leaves a file behind where it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch '{self.path}'",)


def npy(header, content=b""):
    """An array file with any header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text + content


def lying(data, name, size):
    """A zip whose directory declares another size for a member."""
    place = data.index(b"PK\x01\x02")
    while data[place + 46 : place + 46 + len(name)] != name.encode():
        place = data.index(b"PK\x01\x02", place + 1)
    return data[: place + 24] + struct.pack("<I", size) + data[place + 28 :]


def overlapping(n, size):
    """A zip whose n entries are one and the same compressed block."""
    one = archive([("a000.npy", b"\0" * size)])
    start = one.index(b"PK\x01\x02")
    end = one.rindex(b"PK\x05\x06")
    entry = one[start:end]
    entries = b"".join(entry.replace(b"a000", b"a%03d" % j) for j in range(n))
    tail = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, n, n, len(entries), start, 0)
    return one[:start] + entries + tail


def hidden_places(tree):
    """Functions that put a node into a payload's tree, each in another place."""

    def inside_an_array(node):
        tree["content"]["centre"] = {**tree["content"]["centre"], "content": node}

    def as_a_key_type(node):
        tree["key_types"] = {**tree.get("key_types", {}), "content": [node]}

    def in_an_extra_entry(node):
        tree["hidden"] = {"more": [[{"x": node}]]}

    def as_an_attribute(node):
        tree["content"]["ranker"]["content"]["content"]["solver"] = node

    def as_the_whole(node):
        tree.clear()
        tree.update(node)

    return [inside_an_array, as_a_key_type, in_an_extra_entry, as_an_attribute, as_the_whole]


def nodes():
    """Nodes that would run something if they were built."""
    base = {"__id__": 1, "content": {"type": "json", "content": '"id"'}}
    yield {**base, "__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}
    yield {**base, "__class__": "Popen", "__module__": "subprocess", "__loader__": "ObjectNode"}
    yield {**base, "__class__": "partial", "__module__": "functools", "__loader__": "PartialNode"}
    yield {
        "__class__": "dict",
        "__module__": "builtins",
        "__loader__": "ReduceNode",
        "__id__": 1,
        "__reduce__": {"args": {**base, "__class__": "x", "__module__": "y", "__loader__": "z"}},
        "content": {},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def good():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60)})
    frame["y"] = (frame.x + rng.normal(size=60) > 0).astype(int)
    return to_bytes(fit_table(frame, "y", p=2))


@pytest.fixture(scope="module")
def hostile(good, folder):
    """Every hostile file by its name."""
    members = members_of(good)
    inner = members_of(members["payload.skops"])
    arrays = [name for name in inner if name.endswith(".npy")]
    harm = pickle.dumps(Harm(folder / "harmed"))

    def payload(changed, extra=()):
        return sealed({**members, "payload.skops": archive([*changed.items(), *extra])})

    def array(content):
        return payload({**inner, arrays[0]: content})

    def part(name, content):
        return sealed({**members, name: content})

    made = {
        "pickle": harm,
        "pickle as payload": part("payload.skops", harm),
        "pickle as array": array(harm),
        "pickle as schema of the payload": payload({**inner, "schema.json": harm}),
        "array of objects": array(
            npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", harm)
        ),
        "array header that calls": array(npy("__import__('os').system('touch harmed')")),
        "array of a size without end": array(
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999, 99999), }")
        ),
        "array of a negative size": array(
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }", b"0" * 80)
        ),
        "array header without end": array(npy(" " * 5_000_000)),
        "array header as deep as can be": array(npy("(" * 9_000)),
        "bomb": sealed({**members, "card.json": b" " * (16 << 20)}),
        "bomb in the payload": payload(inner, [("bomb.npy", b"\0" * (16 << 20))]),
        "bomb of overlapping entries": part("payload.skops", overlapping(200, 1 << 17)),
        "bomb in a bomb": payload(
            inner, [("more.zip", archive([("x", archive([("y", b"\0" * (16 << 20))]))]))]
        ),
        "member longer than it says": part(
            "payload.skops", lying(members["payload.skops"], "schema.json", 10)
        ),
        "member shorter than it says": part(
            "payload.skops", lying(members["payload.skops"], "schema.json", 11 << 20)
        ),
        "two trees, the harmless first": payload(inner, [("schema.json", b'{"__loader__": "x"}')]),
        "two trees, the harmless last": payload(
            {"schema.json": b'{"__loader__": "x"}', **inner},
            [("schema.json", inner["schema.json"])],
        ),
        "numbers without end": part("card.json", b'{"a": ' + b"9" * 100_000 + b"}"),
        "json as deep as can be": part("schema.json", b'{"columns":' * 100_000),
        "tree as deep as can be": payload({**inner, "schema.json": b"[" * 100_000}),
        "json with a lone surrogate": part("toprank.json", b'{"format": 1, "versions": "\\ud800"}'),
        "half a zip": members["payload.skops"],
    }
    for name in ("../../harmed", "/tmp/toprank-harmed", "C:\\harmed", "a/../../../harmed", ".\0"):
        made[f"payload with {name.replace('/', '|')!r}"] = payload(inner, [(name, b"x")])
        made[f"archive with {name.replace('/', '|')!r}"] = sealed(members, [(name, b"x")])
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    made["payload with a link"] = payload(inner, [(link, b"/etc/passwd")])
    made["archive with a link"] = sealed(members, [(link, b"/etc/passwd")])
    for j, node in enumerate(nodes()):
        for place in range(5):
            tree = json.loads(inner["schema.json"])
            hidden_places(tree)[place](node)
            text = json.dumps(tree).encode()
            made[f"node {j} in place {place}"] = payload({**inner, "schema.json": text})
    return made


#: Files that hold more than a model, none of which is ever looked at.
HARMLESS = {"bomb in a bomb", "two trees, the harmless last", "member shorter than it says"}


@pytest.fixture(scope="module")
def answers(good, hostile, folder):
    (folder / "good").write_bytes(good)
    paths = []
    for j, data in enumerate(hostile.values()):
        paths.append(folder / f"{j:03d}.model")
        paths[-1].write_bytes(data)
    before = sorted(os.listdir(folder))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder / "good"), *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1, "something was printed"
    told, memory = json.loads(done.stdout)
    assert sorted(os.listdir(folder)) == before, "a file was made"
    return dict(zip(hostile, told.values(), strict=True)), memory


def test_no_hostile_file_is_loaded(answers, record_property):
    record_property("cases", len(answers[0]))
    how = {name: answer[:2] for name, answer in answers[0].items() if answer[0] != "refused"}
    assert {name for name, (kind, _) in how.items() if kind != "loaded"} == set(), how
    tolerated = {name for name in how if name in HARMLESS or name.startswith("payload with")}
    assert set(how) == tolerated, how


def test_no_hostile_file_makes_python_do_anything_but_read_it(answers):
    acted = {name: answer[2] for name, answer in answers[0].items() if answer[2]}
    assert acted == {}


def test_no_hostile_file_takes_long_or_much_memory(answers):
    slow = {name: answer[3] for name, answer in answers[0].items() if answer[3] > 20}
    assert slow == {}
    assert answers[1] < 1_000_000  # kilobytes, most of them for the libraries


def test_a_refusal_is_one_sentence_that_names_the_file(answers, folder):
    for name, (kind, said, *_) in answers[0].items():
        if kind == "refused":
            assert str(folder) in said and len(said) < 1_500, name
            assert said.isprintable(), name

"""The fuzzer of this repository finds what only coverage leads to, twice the same, and keeps it."""

import subprocess
import sys
import textwrap
from pathlib import Path
from random import Random

import pytest
from fuzz import engine as engine_module
from fuzz.driver import keep, keep_current, main
from fuzz.engine import Engine, Steps, name_of
from fuzz.mutation import _tree_changed, bytes_changed, bytes_spliced

ROOT = Path(__file__).resolve().parents[2]


class Maze:
    """A reader that fails behind bytes that are tested one after the other."""

    secret = b"\x00\xff\x7f"

    def seeds(self):
        return {"plain": b"abc"}

    def attack(self, data):
        if data[:1] != self.secret[:1]:
            return
        if data[1:2] != self.secret[1:2]:
            return
        if data[2:3] == self.secret[2:3]:
            raise ValueError("found")

    def mutate(self, data, most, seed):
        return bytes_changed(data, Random(seed))[:most]

    def splice(self, data, other, seed):
        return bytes_spliced(data, other, Random(seed))


class Blind(Steps):
    """Sees no line."""

    def __enter__(self):
        return self

    def __exit__(self, *given):
        pass


def fuzzed(folder, seed="7", steps=Steps, most=800):
    """What the engine finds in so many files of the maze at most, how many it read, its corpus."""
    (folder / "corpus").mkdir(parents=True)
    (folder / "findings").mkdir()
    found = []

    class Counted(Maze):
        count = 0

        def attack(self, data):
            self.count += 1
            if found or self.count > most:
                raise KeyboardInterrupt
            super().attack(data)

    def keep_it(data, error):
        found.append(data)
        keep(folder / "findings", data, error)

    target = Counted()
    engine = Engine(target, folder, seed, steps(lambda file: file == __file__), keep_it, hang=10)
    with pytest.raises(KeyboardInterrupt):
        engine.run(60, set())
    return found, target.count, engine.corpus


def test_coverage_leads_to_what_chance_does_not_reach(tmp_path):
    found, _, corpus = fuzzed(tmp_path / "guided")
    assert found and found[0].startswith(Maze.secret)
    assert len(corpus) >= 3  # the byte that was right was kept each time
    blind, _, corpus = fuzzed(tmp_path / "blind", steps=Blind)
    assert not blind and corpus == [b"abc"]


@pytest.mark.more
def test_a_seed_draws_the_same_files_again(tmp_path):
    one = fuzzed(tmp_path / "one", seed="11")
    assert fuzzed(tmp_path / "two", seed="11") == one
    assert fuzzed(tmp_path / "three", seed="12") != one


def test_a_finding_is_a_file_and_its_traceback(tmp_path):
    found, _, _ = fuzzed(tmp_path)
    kept = {file.suffix: file for file in (tmp_path / "findings").iterdir()}
    assert kept[".bin"].read_bytes() == found[0]
    assert kept[".txt"].read_text().endswith("ValueError: found\n")


def test_the_tracer_that_was_there_comes_back():
    def tracer(*given):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with Steps(lambda file: True):
            pass
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


@pytest.mark.more
@pytest.mark.parametrize("end", ["os._exit(3)", "time.sleep(60)"], ids=["crash", "hang"])
def test_an_input_that_ends_the_process_is_kept_and_left_out_from_then_on(end, tmp_path):
    code = textwrap.dedent(f"""
        import os, sys, time
        from pathlib import Path
        from fuzz.engine import Engine, Steps

        class Target:
            def seeds(self):
                return {{"good": b"good", "bad": b"bad"}}
            def attack(self, data):
                if data == b"bad":
                    {end}
            def mutate(self, data, most, seed):
                return b"good"
            splice = mutate

        engine = Engine(Target(), Path(sys.argv[1]), "1", Steps(lambda f: False), None, hang=1)
        engine.run(0.1, set(sys.argv[2:]))
        """)
    for name in ("corpus", "findings"):
        (tmp_path / name).mkdir()
    log = tmp_path / "run-1.log"

    def run(*known):
        command = [sys.executable, "-c", code, str(tmp_path), *known]
        with log.open("w") as file:
            return subprocess.run(command, cwd=ROOT, stdout=file, stderr=file).returncode

    assert run() != 0
    assert keep_current(tmp_path, log)
    name = name_of(b"bad")
    assert (tmp_path / "findings" / f"ended-{name}.bin").read_bytes() == b"bad"
    assert run(name) == 0
    assert not keep_current(tmp_path, log)


def test_one_input_is_read_again_by_itself(tmp_path, monkeypatch, capsys):
    readers = pytest.importorskip("fuzz.readers", reason="tables are read with the extra frames")
    file = tmp_path / "input.bin"
    file.write_bytes(b"\x00\x00a,b\n1,2\n")
    monkeypatch.setattr(readers, "attack", lambda data: None)
    assert main(["readers", "--replay", str(file)]) == 0
    assert "read, or refused" in capsys.readouterr().out
    monkeypatch.setattr(readers, "attack", lambda data: 1 / 0)
    assert main(["readers", "--replay", str(file)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_files_that_grow_with_every_change_stay_within_the_limit(tmp_path, monkeypatch):
    class Growing(Maze):
        def mutate(self, data, most, seed):
            return data * 3

        splice = mutate

        def attack(self, data):
            assert len(data) <= engine_module.MOST

    monkeypatch.setattr(engine_module, "MOST", 50)
    (tmp_path / "corpus").mkdir()
    found = []
    engine = Engine(
        Growing(), tmp_path, "7", Steps(lambda _: True), lambda *it: found.append(it), 10
    )
    engine.run(0.05, set())
    assert engine.count > 1 and not found


def test_a_tree_of_copies_of_copies_is_not_copied_again():
    inner = [0] * 100
    for _ in range(3):
        inner = [inner] * 100  # a hundred million places, in little memory
    assert _tree_changed(inner, Random(1)) is inner

"""Machine code for a GPU is made once; what is damaged, or not the user's own, is not loaded."""

import os
import sys
from types import SimpleNamespace

import pytest

from toprank.blocks import cuda_binaries
from toprank.blocks.cuda_binaries import keep_binary, kept_binary, load_kernels

CODE = b"\x7fELF" + bytes(range(256)) * 8


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TOPRANK_CACHE_DIR", str(tmp_path))
    return tmp_path / "cuda"


def test_what_is_kept_is_read_back_and_what_is_damaged_is_not(folder):
    assert kept_binary("a source") is None
    keep_binary("a source", CODE)
    assert kept_binary("a source") == CODE
    assert kept_binary("another source") is None
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:31], whole[:-1], whole + b"\0", whole[:40] + b"?" + whole[41:]):
        file.write_bytes(damaged)
        assert kept_binary("a source") is None
    keep_binary("a source", CODE)
    assert kept_binary("a source") == CODE


def test_nothing_is_read_from_a_folder_that_others_may_write_to(folder):
    keep_binary("a source", CODE)
    folder.chmod(0o777)
    assert kept_binary("a source") is None
    keep_binary("another source", CODE)
    assert len(list(folder.iterdir())) == 1
    folder.chmod(0o700)
    assert kept_binary("a source") == CODE


@pytest.mark.parametrize("where", ["", "file", "file/inside"])
def test_where_nothing_can_be_kept_nothing_is(where, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOPRANK_CACHE_DIR", where and str(tmp_path / where))
    monkeypatch.chdir(tmp_path)
    keep_binary("a source", CODE)
    assert kept_binary("a source") is None
    assert os.listdir(tmp_path) == ["file"]


def test_the_folder_is_the_users_own(tmp_path, monkeypatch):
    monkeypatch.delenv("TOPRANK_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    keep_binary("a source", CODE)
    assert len(list((tmp_path / "shared" / "toprank" / "cuda").iterdir())) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(cuda_binaries.Path, "home", lambda: tmp_path)
    keep_binary("a source", CODE)
    made = tmp_path / ".cache" / "toprank" / "cuda"
    assert len(list(made.iterdir())) == 1
    assert made.stat().st_mode & 0o077 == 0

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cuda_binaries.Path, "home", homeless)
    keep_binary("another source", CODE)
    assert kept_binary("a source") is None


def test_no_more_files_are_kept_than_that_many(folder, monkeypatch):
    monkeypatch.setattr(cuda_binaries, "_MOST_FILES", 3)
    for number in range(6):
        keep_binary(str(number), CODE)
        for file in folder.iterdir():  # as if each were written a second after the others
            os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 1))
    assert [kept_binary(str(number)) is not None for number in range(6)] == 3 * [False] + 3 * [True]


class Compiler(SimpleNamespace):
    """What is asked of torch, with a count of what was compiled."""

    def __init__(self, version=13, knows=True):
        super().__init__(version=version, knows=knows, compiled=0)

    def _get_gpu_runtime_library(self):
        return self

    def _get_gpu_rtc_library(self):
        return self

    def nvrtcVersion(self, major, minor):
        major._obj.value, minor._obj.value = self.version, 0

    def _nvrtc_compile(self, source, name):
        self.compiled += 1
        return source.encode(), name

    def _cuda_load_module(self, binary, names):
        if not self.knows and not self.compiled:
            raise RuntimeError("device kernel image is invalid")
        return {name: SimpleNamespace(func=(binary, name)) for name in names}


def test_a_source_is_compiled_once_for_each_compiler_and_where_a_driver_refuses_it(
    folder, monkeypatch
):
    properties = SimpleNamespace(major=9, minor=0)
    cuda = SimpleNamespace(
        current_device=lambda: 0, get_device_properties=lambda device: properties
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.11", cuda=cuda))

    def load(source, **how):
        compiler = Compiler(**how)
        monkeypatch.setitem(sys.modules, "torch.cuda._utils", compiler)
        loaded = load_kernels(source, ("sum", "finish"))
        assert loaded.functions["finish"] == (source.encode(), "finish")
        return compiler.compiled

    assert [load("one"), load("one"), load("two"), load("two")] == [1, 0, 1, 0]
    assert [load("one", version=14), load("one", version=14)] == [1, 0]
    assert load("one", knows=False) == 1
    properties.minor = 1
    assert [load("one"), load("one")] == [1, 0]

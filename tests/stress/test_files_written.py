"""Whatever stands in the way of a writer, no file is lost, laid open or left half written."""

import errno
import os
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from toprank import _files
from toprank._files import check_folder, replace_file

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links are those of POSIX")
pytestmark = posix


def write(path, data):
    with replace_file(Path(path)) as file:
        file.write(data)


def names(folder):
    return sorted(os.listdir(folder))


@contextmanager
def limited(size):
    """Limit the size of files, as a full disk does; pytest itself may have to write afterwards."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def mounted(tmp_path):
    """A file system of its own; skips where the system does not let the test have one."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options):
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no file system can be mounted here ({error})")
        return place

    yield mount
    subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)


# ---- who may read, and what a link leads to --------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o400 | 0o200, 0o755])
def test_a_file_that_was_private_stays_so_when_it_is_replaced(tmp_path, mode):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    path.chmod(mode)
    seen = []
    with replace_file(path) as file:
        file.write(b"new")
        (part,) = tmp_path.glob(".toprank-*.part")
        seen.append(stat.S_IMODE(part.stat().st_mode))
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode and seen == [mode]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_that_the_user_gives_to_new_files(tmp_path, mask):
    before = os.umask(mask)
    try:
        write(tmp_path / "m", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o666 & ~mask


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "m"
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert names(tmp_path / "real") == ["m"] and names(tmp_path) == ["link", "real"]


def test_a_link_to_nothing_makes_the_file_that_it_names(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "m")
    write(link, b"new")
    assert link.is_symlink() and (tmp_path / "m").read_bytes() == b"new"


def test_a_link_to_itself_is_refused(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(OSError, match="not a file that can be replaced"):
        write(link, b"new")
    assert link.is_symlink() and names(tmp_path) == ["link"]


@pytest.mark.parametrize("length", [1, 200, 250, 255])
def test_a_name_of_any_length_that_the_disk_takes_can_be_written(tmp_path, length):
    path = tmp_path / ("x" * length)
    write(path, b"old")
    write(path, b"new")
    assert path.read_bytes() == b"new" and names(tmp_path) == [path.name]


def test_a_name_that_the_disk_does_not_take_is_refused(tmp_path):
    with pytest.raises(OSError, match="could not be written") as caught:
        write(tmp_path / ("x" * 256), b"new")
    assert caught.value.errno == errno.ENAMETOOLONG and names(tmp_path) == []


def test_a_file_that_is_protected_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    # as the system answers those who are not root
    monkeypatch.setattr(_files.os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="protected against writing"):
        write(path, b"new")
    assert path.read_bytes() == b"old" and names(tmp_path) == ["m"]


# ---- other writers ---------------------------------------------------------------------------


@pytest.mark.more
def test_threads_that_write_one_file_at_once_leave_one_of_theirs(tmp_path):
    path, contents = tmp_path / "m", [bytes([j]) * 300_000 for j in range(8)]
    errors = []

    def work(content):
        try:
            for _ in range(6):
                write(path, content)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in contents]
    for thread in threads:
        thread.start()
    seen = set()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            seen.add(path.read_bytes())
    for thread in threads:
        thread.join()
    assert errors == [] and path.read_bytes() in contents
    assert seen <= set(contents) and names(tmp_path) == ["m"]


# ---- what goes wrong -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 1_000, 262_144, 262_145, 999_999])
def test_a_disk_that_fills_up_at_any_byte_leaves_the_old_file(tmp_path, size):
    path, says = tmp_path / "m", r"could not be written .*unchanged. Free some space"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match=says) as told, limited(size):
        write(path, b"x" * 1_000_000)
    assert told.value.filename == str(path)
    assert path.read_bytes() == b"old" and names(tmp_path) == ["m"]


def test_an_error_of_the_caller_is_not_hidden_by_a_full_disk(tmp_path):
    with pytest.raises(ZeroDivisionError), limited(10), replace_file(tmp_path / "m") as file:
        file.write(b"x" * 1_000)  # still in the buffer, which closing would write
        raise ZeroDivisionError
    assert names(tmp_path) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, ValueError])
def test_whatever_ends_a_writer_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    with pytest.raises(error), replace_file(path) as file:
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old" and names(tmp_path) == ["m"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_an_error_at_the_last_step_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, call
):
    path = tmp_path / "m"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(_files.os, call, fail)
    with pytest.raises(OSError, match=r"could not be written .Input/output error") as caught:
        write(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old" and names(tmp_path) == ["m"]


def test_the_folder_is_forced_to_the_disk_after_the_file(tmp_path, monkeypatch):
    synced = []
    real = os.fsync

    def fsync(descriptor):
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(_files.os, "fsync", fsync)
    write(tmp_path / "m", b"new")
    assert synced == [False, True]


def test_a_folder_that_is_not_there_is_named_with_the_remedy(tmp_path):
    with pytest.raises(FileNotFoundError, match="Make the folder first") as caught:
        write(tmp_path / "no" / "m", b"new")
    assert caught.value.filename == str(tmp_path / "no" / "m")


def test_a_place_where_no_file_can_be_made_is_said(tmp_path):
    with pytest.raises(OSError, match="could not be written"):
        write("/proc/toprank-test", b"new")
    with pytest.raises(OSError, match="could not be written"):
        check_folder(Path("/proc"))
    check_folder(tmp_path)
    assert names(tmp_path) == []


def test_a_real_disk_of_64_kilobytes_fills_up_and_keeps_the_old_file(mounted):
    disk = mounted("size=64k")
    write(disk / "m", b"old")
    with pytest.raises(OSError, match=r"No space left on device.*Free some space"):
        write(disk / "m", b"x" * 200_000)
    assert (disk / "m").read_bytes() == b"old" and names(disk) == ["m"]
    write(disk / "m", b"new")
    assert (disk / "m").read_bytes() == b"new"


def test_a_real_disk_that_may_only_be_read_is_said(mounted):
    disk = mounted("size=64k,ro")
    with pytest.raises(OSError, match=r"Read-only file system.*Allow writing") as caught:
        write(disk / "m", b"new")
    assert caught.value.filename == str(disk / "m")


def test_a_link_to_another_disk_is_written_there(mounted, tmp_path):
    disk = mounted("size=64k")
    (tmp_path / "link").symlink_to(disk / "m")
    write(tmp_path / "link", b"new")
    assert (disk / "m").read_bytes() == b"new" and (tmp_path / "link").is_symlink()


def test_writers_in_two_processes_do_not_mix_their_files(tmp_path):
    code = (
        "import sys; from pathlib import Path; from toprank._files import replace_file\n"
        "for _ in range(40):\n"
        "    with replace_file(Path(sys.argv[1])) as file:\n"
        "        file.write(sys.argv[2].encode() * 99_999)\n"
    )
    path = tmp_path / "m"
    runs = [subprocess.Popen([sys.executable, "-c", code, str(path), one]) for one in "ab"]
    seen = set()
    while any(run.poll() is None for run in runs):
        if path.exists():
            seen.add(path.read_bytes())
    assert [run.returncode for run in runs] == [0, 0]
    assert seen <= {b"a" * 99_999, b"b" * 99_999} and names(tmp_path) == ["m"]

import errno
import fcntl
import hashlib
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from onnxjson.model import system as operating_system
from onnxjson.model.errors import (
    AccessDeniedError,
    ChangedUnderneathError,
    DecodeError,
    EncodeError,
    FileError,
    Finding,
    MissingInputError,
    OnnxJsonError,
    OutputError,
)
from onnxjson.storage import saving
from onnxjson.storage.identity import Identity, identity
from onnxjson.storage.saving import Sink, save_file

OLD = b"old" * 1000
NEW = b"new" * 1_000_000

IS_ROOT = os.geteuid() == 0


def writing(data: bytes) -> Callable[[Sink], object]:
    return lambda sink: sink.write(data)


def attempt(path: Path, content: bytes) -> OnnxJsonError | None:
    """Why the content was not saved."""
    try:
        save_file(path, writing(content))
    except OnnxJsonError as error:
        return error
    return None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "model.onnx"
    place.write_bytes(OLD)
    return place


class System:
    """Stands in for ``os``: notes the calls and lets one of them fail, or do only a part."""

    CALLS = ("open", "write", "fsync", "replace", "fchmod", "close", "stat", "fstat", "unlink")

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fail_at: tuple[str, int, int] | None = None
        self.short = False
        self.descriptors: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in self.CALLS:
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            label = name
            if name == "fsync":
                label = "fsync folder" if stat.S_ISDIR(os.fstat(arguments[0]).st_mode) else "fsync file"
            self.calls.append(label)
            if self.fail_at and self.fail_at[0] == name and self.calls_of(name) == self.fail_at[1]:
                raise OSError(self.fail_at[2], os.strerror(self.fail_at[2]))
            if name == "write" and self.short:
                return real(arguments[0], arguments[1][: max(1, len(arguments[1]) // 2)])
            return real(*arguments, **options)

        return call

    def calls_of(self, name: str) -> int:
        return sum(call.split()[0] == name for call in self.calls)


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    shim = System()
    monkeypatch.setattr(saving, "os", shim)
    monkeypatch.setattr(operating_system, "os", shim)
    return shim


def only(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_new_file_has_what_was_written_and_the_permissions_of_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "new.onnx"
    before = os.umask(0o027)
    try:
        save_file(path, writing(NEW))
    finally:
        os.umask(before)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert only(tmp_path) == ["new.onnx"]


def test_a_new_file_takes_the_permissions_that_are_asked_for(tmp_path: Path) -> None:
    save_file(tmp_path / "new", writing(b"x"), mode=0o604)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664, 0o755, 0o777])
def test_permissions_of_an_existing_file_are_kept(path: Path, mode: int) -> None:
    path.chmod(mode)
    save_file(path, writing(NEW))
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == NEW


@pytest.mark.skipif(not IS_ROOT, reason="only root may give files away")
def test_owner_and_group_of_an_existing_file_are_kept_where_allowed(path: Path) -> None:
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    save_file(path, writing(NEW))
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 2345, 0o640)


@pytest.mark.skipif(not IS_ROOT, reason="only root may give files away")
def test_a_group_that_cannot_be_kept_gives_the_new_group_no_more_than_everybody_has(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(path, -1, 2345)
    path.chmod(0o664)

    def refuse(*_: Any) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "fchown", refuse)
    save_file(path, writing(NEW))
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_extended_attributes_are_kept(path: Path) -> None:
    try:
        os.setxattr(path, "user.origin", b"here")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    save_file(path, writing(NEW))
    assert os.getxattr(path, "user.origin") == b"here"


def test_a_private_file_is_never_readable_by_others_while_it_is_saved(path: Path) -> None:
    path.chmod(0o600)
    modes = []

    def look(temporary: Path) -> None:
        modes.append(stat.S_IMODE(temporary.stat().st_mode))

    def write(sink: Sink) -> None:
        look(next(path.parent.glob(".onnxjson-*")))
        sink.write(NEW)

    save_file(path, write, verify=look)
    assert modes == [0o600, 0o600]


@pytest.mark.parametrize("target", ["model.onnx", "./model.onnx", "ABSOLUTE", "second"])
def test_links_are_followed_and_kept(path: Path, target: str) -> None:
    (path.parent / "second").symlink_to("model.onnx")
    link = path.parent / "link"
    link.symlink_to(str(path) if target == "ABSOLUTE" else target)
    save_file(link, writing(NEW))
    assert link.is_symlink()
    assert (path.parent / "second").is_symlink()
    assert not path.is_symlink()
    assert path.read_bytes() == NEW


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    save_file(tmp_path / "link", writing(NEW))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == NEW


def test_hard_links_are_refused(path: Path) -> None:
    other = path.parent / "other"
    other.hardlink_to(path)
    with pytest.raises(OutputError, match="2 names"):
        save_file(path, writing(NEW))
    assert path.read_bytes() == other.read_bytes() == OLD


def make_folder(path: Path) -> None:
    path.mkdir()


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/null")


@pytest.mark.parametrize("make", [make_folder, make_loop, make_device, os.mkfifo], ids=lambda make: make.__name__)
def test_what_is_no_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(OutputError) as caught:
        save_file(tmp_path / "x", writing(NEW))
    assert caught.value.exit_code == 73
    assert only(tmp_path) == ["x"]


@pytest.mark.parametrize("name", ["missing/x", "file/x", "a\0b", "n" * 256, "link"])
def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to("nowhere/x")
    with pytest.raises(OutputError):
        save_file(tmp_path / name, writing(NEW))


def test_a_name_as_long_as_names_can_be_is_saved(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    save_file(path, writing(NEW))
    save_file(path, writing(OLD))
    assert path.read_bytes() == OLD


def test_a_read_only_file_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o444)
    if IS_ROOT:  # Root may write everywhere; ask as somebody else would be answered.
        monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(AccessDeniedError, match="read-only"):
        save_file(path, writing(NEW))
    assert path.read_bytes() == OLD


def test_a_file_system_that_is_read_only_is_said_to_be(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_folder = os.statvfs(path)
    read_only = os.statvfs_result([*of_folder[:8], of_folder.f_flag | os.ST_RDONLY, *of_folder[9:]])
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "statvfs", lambda _: read_only)
    with pytest.raises(AccessDeniedError, match="on a read-only file system") as caught:
        save_file(path, writing(NEW))
    assert "chmod" not in str(caught.value)


def test_an_existing_file_is_kept_where_replacing_is_not_allowed(path: Path) -> None:
    with pytest.raises(OutputError, match="already exists"):
        save_file(path, writing(NEW), replace=False)
    late = path.with_name("late")
    with pytest.raises(OutputError, match="already exists"):
        save_file(late, writing(NEW), verify=lambda _: late.write_bytes(OLD), replace=False)
    assert late.read_bytes() == OLD


def test_the_sink_takes_everything_bytes_like_in_pieces_of_any_size(tmp_path: Path) -> None:
    large = memoryview(b"c" * 3_000_001)
    pieces: list[Any] = [b"", b"a", bytearray(b"b" * 700_000), large, b"d" * 500_000, b"e" * (1 << 20), b"f"]

    def write(sink: Sink) -> None:
        for piece in pieces:
            sink.write(piece)

    save_file(tmp_path / "x", write)
    assert (tmp_path / "x").read_bytes() == b"".join(pieces)


def test_short_writes_are_completed(path: Path, system: System) -> None:
    system.short = True
    save_file(path, writing(NEW))
    assert path.read_bytes() == NEW


def test_the_disk_is_asked_to_keep_the_file_before_the_rename_and_the_folder_after(path: Path, system: System) -> None:
    save_file(path, writing(NEW))
    order = [call for call in system.calls if call in {"write", "fsync file", "replace", "fsync folder"}]
    assert order[-3:] == ["fsync file", "replace", "fsync folder"]
    assert set(order[:-3]) == {"write"}


def test_without_fsync_nothing_is_awaited(path: Path, system: System) -> None:
    save_file(path, writing(NEW), fsync=False)
    assert system.calls_of("fsync") == 0


ERRORS = {
    errno.ENOSPC: FileError, errno.EIO: FileError, errno.EDQUOT: FileError, errno.EFBIG: FileError,
    errno.EPERM: AccessDeniedError, errno.EROFS: AccessDeniedError, errno.EACCES: AccessDeniedError,
}  # fmt: skip


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.__getitem__)
@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace", "fchmod"])
def test_whichever_call_fails_the_file_is_old_or_new_and_nothing_is_left(
    path: Path, system: System, call: str, number: int
) -> None:
    for count in range(1, 20):
        path.write_bytes(OLD)
        system.calls.clear()
        system.fail_at = (call, count, number)
        error = attempt(path, NEW)
        if error is None:
            assert system.calls_of(call) < count
            assert path.read_bytes() == NEW
            break
        assert type(error) is ERRORS[number]
        assert path.read_bytes() == (NEW if "has the new content" in str(error) else OLD)
        assert only(path.parent) == ["model.onnx"]
    else:
        pytest.fail(f"{call} was called 20 times and more")
    assert count > 1


def test_an_error_of_the_caller_leaves_the_file_as_it_was(path: Path) -> None:
    def write(sink: Sink) -> None:
        sink.write(NEW)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_file(path, write)
    assert path.read_bytes() == OLD
    assert only(path.parent) == ["model.onnx"]


@pytest.mark.parametrize("sha256", [None, hashlib.sha256(NEW).hexdigest()])
def test_other_bytes_on_the_disk_than_were_written_stop_the_save(
    path: Path, monkeypatch: pytest.MonkeyPatch, sha256: str | None
) -> None:
    def lose(descriptor: int) -> None:
        os.pwrite(descriptor, b"X", 12345)

    monkeypatch.setattr(os, "fsync", lose)
    with pytest.raises(FileError, match="other bytes"):
        save_file(path, writing(NEW), sha256=sha256)
    monkeypatch.undo()
    assert path.read_bytes() == OLD
    assert only(path.parent) == ["model.onnx"]


def test_verification_sees_the_complete_content_before_it_replaces(path: Path) -> None:
    seen = []

    def verify(temporary: Path) -> None:
        seen.append((temporary.read_bytes(), path.read_bytes(), temporary.parent))

    save_file(path, writing(NEW), verify=verify)
    assert seen == [(NEW, OLD, path.parent)]


def test_what_does_not_parse_does_not_replace(path: Path) -> None:
    finding = Finding(severity="error", code="x", message="y")

    def verify(temporary: Path) -> None:
        raise DecodeError("nested too deep", [finding])

    with pytest.raises(EncodeError, match="cannot be read again: nested too deep") as caught:
        save_file(path, writing(NEW), verify=verify)
    assert caught.value.findings == (finding,)
    assert path.read_bytes() == OLD
    assert only(path.parent) == ["model.onnx"]


def rewrite(path: Path) -> None:
    path.write_bytes(b"other" * 600)


def replaced(path: Path) -> None:
    path.with_name("x").write_bytes(OLD)
    path.with_name("x").replace(path)


def remove(path: Path) -> None:
    path.unlink()


def other_content_of_the_same_size(path: Path) -> None:
    path.write_bytes(OLD[::-1])
    os.utime(path, ns=(0, 10**18))


def other_content_at_the_same_time(path: Path) -> None:
    before = path.stat()
    path.write_bytes(OLD[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change", [rewrite, replaced, remove, other_content_of_the_same_size, other_content_at_the_same_time]
)
@pytest.mark.parametrize("hashed", [False, True])
def test_a_file_changed_underneath_is_not_replaced(path: Path, change: Callable[[Path], None], hashed: bool) -> None:
    opened = identity(path)
    if hashed:
        assert opened.sha256 == hashlib.sha256(OLD).hexdigest()
    change(path)
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(ChangedUnderneathError) as caught:
        save_file(path, writing(NEW), expect=opened)
    assert caught.value.exit_code == 75
    assert (path.read_bytes() if path.exists() else None) == before
    assert not list(path.parent.glob(".onnxjson-*"))


def test_a_change_while_the_save_runs_is_seen(path: Path) -> None:
    opened = identity(path)
    with pytest.raises(ChangedUnderneathError):
        save_file(path, writing(NEW), verify=lambda _: rewrite(path), expect=opened)
    assert path.read_bytes() == b"other" * 600


def test_a_file_of_which_only_the_time_changed_is_replaced_if_its_hash_is_known(path: Path) -> None:
    opened = identity(path)
    os.utime(path, ns=(0, 10**18))
    with pytest.raises(ChangedUnderneathError):
        save_file(path, writing(NEW), expect=opened)
    opened = identity(path)
    assert opened.sha256
    os.utime(path, ns=(0, 2 * 10**18))
    path.chmod(0o640)
    save_file(path, writing(NEW), expect=opened)
    assert path.read_bytes() == NEW


def test_the_hash_of_a_file_that_has_changed_cannot_be_had(path: Path) -> None:
    opened = identity(path)
    rewrite(path)
    with pytest.raises(ChangedUnderneathError):
        assert opened.sha256


def test_an_untouched_file_is_replaced(path: Path) -> None:
    save_file(path, writing(NEW), expect=identity(path))
    assert path.read_bytes() == NEW


def test_what_is_not_there_has_no_identity(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        identity(tmp_path / "x")


def test_the_backup_is_made_from_the_old_content_after_verification(path: Path) -> None:
    events: list[str | bytes] = []
    save_file(
        path,
        writing(NEW),
        verify=lambda _: events.append("verified"),
        backup=lambda old: events.append(old.read_bytes()),
    )
    assert events == ["verified", OLD]


def test_a_backup_that_fails_stops_the_save(path: Path) -> None:
    def backup(_: Path) -> None:
        raise OutputError("no room")

    with pytest.raises(OutputError, match="no room"):
        save_file(path, writing(NEW), backup=backup)
    assert path.read_bytes() == OLD
    assert only(path.parent) == ["model.onnx"]


KILLED = """
import os, pathlib, signal, sys
from onnxjson.storage.saving import save_file
def write(sink):
    sink.write(b"x" * 5_000_000)
    {action}
save_file(pathlib.Path(sys.argv[1]), write)
"""


def start(path: Path, action: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", KILLED.format(action=action), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(saving.__file__).parents[2],
    )


def test_leftovers_of_a_killed_save_go_with_the_next_one(path: Path) -> None:
    for _ in range(2):
        with start(path, "os.kill(os.getpid(), signal.SIGKILL)"):
            pass
    other = path.with_name(".onnxjson-0123456789abcdef-1-0123456789abcdef.tmp")
    other.write_bytes(b"")
    assert len(only(path.parent)) >= 3
    assert path.read_bytes() == OLD
    save_file(path, writing(NEW))
    assert only(path.parent) == sorted(["model.onnx", other.name])


def test_the_temporary_file_of_a_running_save_is_not_touched(path: Path) -> None:
    with start(path, "print('here', flush=True); input()") as process:
        assert process.stdout
        assert process.stdout.readline() == "here\n"
        save_file(path, writing(NEW))
        assert len(only(path.parent)) == 2
        process.communicate("\n")
        assert process.returncode == 0
    assert path.read_bytes() == b"x" * 5_000_000


def test_a_locked_temporary_file_is_not_touched_even_if_its_process_cannot_be_seen(path: Path) -> None:
    with start(path, "os._exit(0)"):
        pass
    leftover = next(path.parent.glob(".onnxjson-*"))
    with leftover.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        save_file(path, writing(NEW))
        assert leftover.exists()
    save_file(path, writing(NEW))
    assert not leftover.exists()


def test_a_leftover_goes_even_if_another_process_has_the_number_of_its_own_by_now(path: Path) -> None:
    leftover = path.with_name(f"{saving._prefix(path)}{os.getpid()}-0123456789abcdef.tmp")
    leftover.write_bytes(b"")
    save_file(path, writing(NEW))
    assert leftover.exists()  # this process may be just creating it
    os.utime(leftover, (0, 0))
    save_file(path, writing(NEW))
    assert not leftover.exists()


def test_two_saves_that_opened_the_same_file_do_not_both_replace_it(path: Path) -> None:
    barrier = threading.Barrier(2)

    def save(content: bytes, opened: Identity) -> str:
        try:
            save_file(path, writing(content), verify=lambda _: barrier.wait(), expect=opened)
        except ChangedUnderneathError:
            return "refused"
        return "saved"

    with ThreadPoolExecutor(2) as pool:
        for _ in range(50):
            opened = identity(path)
            outcomes = pool.map(save, (b"a" * 10, b"b" * 10), (opened, opened))
            assert sorted(outcomes) == ["refused", "saved"]


def test_a_folder_that_stays_locked_ends_in_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "LOCK_SECONDS", 0.05)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(ChangedUnderneathError, match="lock"):
            save_file(path, writing(NEW))
    finally:
        os.close(descriptor)
    assert path.read_bytes() == OLD


def test_a_limit_of_the_file_size_leaves_the_old_content(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
    try:
        with pytest.raises(FileError):
            save_file(path, writing(NEW))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == OLD
    assert only(path.parent) == ["model.onnx"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    result = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=False, capture_output=True, text=True
    )
    if result.returncode:
        pytest.skip(f"mounting a small file system needs rights: {result.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_leaves_the_old_content(small_disk: Path) -> None:
    path = small_disk / "model.onnx"
    path.write_bytes(OLD)
    refused = 0
    for size in range(1_800_000, 2_300_000, 10_000):
        before = path.read_bytes()
        error = attempt(path, b"x" * size)
        if error is None:
            assert path.read_bytes() == b"x" * size
            path.write_bytes(OLD)
        else:
            refused += 1
            assert error.exit_code == 74
            assert "free some space" in str(error)
            assert path.read_bytes() == before
        assert only(small_disk) == ["model.onnx"]
    assert refused > 10

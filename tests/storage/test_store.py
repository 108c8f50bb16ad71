"""``onnxjson.storage.store`` and ``onnxjson.storage.locks``: what all stores have in common."""

import errno
import fcntl
import hashlib
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from onnxjson.model.errors import AccessDeniedError
from onnxjson.storage import locks
from onnxjson.storage.locks import take, take_leftover
from onnxjson.storage.store import Content, Store, discard, take_entry, user_folder

ENDED = "00000000000000000001-4194305-0000000000000000"
"""An entry of a process that is not running."""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def keep(store: Store, key: str, data: bytes) -> Content:
    store.keep(key, lambda output: output.write(data), len(data), hashlib.sha256(data).hexdigest())
    return store.contents(key)[0]


def failing(number: int) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_a_variable_that_is_no_absolute_path_is_ignored(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_folder("state") == tmp_path / ".local/state/onnxjson"
    assert user_folder("cache") == tmp_path / ".cache/onnxjson"


def test_without_a_home_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda text: text)
    with pytest.raises(AccessDeniedError, match="set XDG_STATE_HOME to a folder"):
        user_folder("state")


def test_contents_have_their_hash_and_a_damaged_one_goes() -> None:
    store = Store("cache", "some", 10**6, 3)
    content = keep(store, "k", b"one")
    assert (content.size, content.mode, content.read()) == (3, 0o600, b"one")
    content.file.write_bytes(b"two")
    assert content.read() is None
    assert content.read() is None
    assert not store.folder("k").exists()


def test_only_state_is_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    keep(Store("cache", "some", 10**6, 3), "k", b"one")
    assert not synced
    keep(Store("state", "some", 10**6, 3), "k", b"one")
    assert synced


def test_everything_is_for_the_user_alone(tmp_path: Path) -> None:
    (tmp_path / "state/onnxjson").mkdir(parents=True, mode=0o755)
    store = Store("state", "some", 10**6, 3)
    keep(store, "k", b"one")
    for is_folder in (False, True):
        os.close(store.create("k", is_folder=is_folder)[1])
    for place in (tmp_path / "state/onnxjson", *(tmp_path / "state/onnxjson").rglob("*")):
        assert stat.S_IMODE(place.stat().st_mode) == (0o700 if place.is_dir() else 0o600)


def test_the_oldest_of_a_key_go_but_those_that_a_process_holds() -> None:
    store = Store("state", "some", 10**6, 2)
    held, descriptor = store.create("k")
    left = [store.create("k", is_folder=number % 2 > 0) for number in range(4)]
    for _, each in left:
        os.close(each)
    store.evict()
    assert store.entries("k") == [left[3][0], left[2][0], held]
    os.close(descriptor)
    store.evict()
    assert store.entries("k") == [left[3][0], left[2][0]]


def test_the_least_recently_used_of_all_go() -> None:
    store = Store("cache", "some", 500, 3)
    kept = [keep(store, str(number), b"x" * 200) for number in range(2)]
    os.utime(kept[1].file, (1, 1))
    assert kept[0].read()
    keep(store, "2", b"x" * 200)
    assert [len(store.entries(str(number))) for number in range(3)] == [1, 0, 1]
    assert not store.folder("1").exists()


def test_holes_do_not_count() -> None:
    store = Store("cache", "some", 10**6, 3)
    place, descriptor = store.create("k", is_folder=True)
    with (place / "big").open("wb") as file:
        file.truncate(10**9)
    os.close(descriptor)
    store.evict()
    assert store.entries("k") == [place]


def test_an_entry_is_locked_before_it_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("state", "some", 10**6, 3)
    found = []
    real = Path.rename

    def rename(path: Path, target: Path) -> Path:
        found.append((store.entries("k"), take(path, without_locks=True)))
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    place, descriptor = store.create("k")
    assert found == [([], None)]
    assert take_entry(place) is None
    os.close(descriptor)


def test_what_a_killed_process_left_unnamed_goes(tmp_path: Path) -> None:
    code = (
        "import os, pathlib\nfrom onnxjson.storage.store import Store\npathlib.Path.rename = lambda *_: os._exit(1)\n"
        "Store('state', 'some', 10**6, 3).create('k')"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
    assert list(tmp_path.rglob(".onnxjson-*"))
    store = Store("state", "some", 10**6, 3)
    os.close(store.create("k")[1])
    assert not list(tmp_path.rglob(".onnxjson-*"))


def test_entries_of_others_and_what_is_no_file_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ENDED
    assert take_entry(path) is None
    os.mkfifo(path)
    assert take_entry(path) is None
    path.unlink()
    path.write_bytes(b"")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    discard(path)
    assert path.exists()


def test_where_there_are_no_locks_the_process_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", failing(errno.ENOLCK))
    running = tmp_path / f"00000000000000000001-{os.getpid()}-0000000000000000"
    ended, content = tmp_path / ENDED, tmp_path / f"00000000000000000001-1-3-{'0' * 64}"
    for path in (running, ended, content):
        path.write_bytes(b"")
        discard(path)
    assert (running.exists(), ended.exists(), content.exists()) == (True, False, False)
    leftover = tmp_path / "leftover"
    leftover.write_bytes(b"")
    os.utime(leftover, (1, 1))
    assert take_leftover(leftover) is None


def test_an_entry_that_its_holder_removes_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ENDED
    path.write_bytes(b"")

    def lock(*_: Any, **__: Any) -> bool:
        path.unlink()
        return True

    monkeypatch.setattr(locks, "lock", lock)
    assert take_entry(path) is None


def test_what_may_just_be_created_is_no_leftover(tmp_path: Path) -> None:
    path = tmp_path / "leftover"
    assert take_leftover(path) is None
    path.write_bytes(b"")
    assert take_leftover(path) is None
    assert take_leftover(path, os.getpid()) is None
    for process, age in ((4194305, 0), (os.getpid(), 1000)):
        os.utime(path, (time.time() - age,) * 2)
        descriptor = take_leftover(path, process)
        assert descriptor is not None
        os.close(descriptor)


def test_what_another_user_planted_is_not_read_and_nothing_is_written_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store("cache", "texts", 1000, 1)
    keep(store, "a", b"text")
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert store.contents("a") == []
    with pytest.raises(PermissionError, match="another user can change it"):
        store.make_root()
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert len(store.contents("a")) == 1
    (tmp_path / "cache").chmod(0o777)  # anybody may exchange the folder
    assert store.contents("a") == []
    (tmp_path / "cache").chmod(0o1777)  # as /tmp
    assert len(store.contents("a")) == 1


def test_a_link_of_another_user_to_a_folder_of_this_one_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store("cache", "texts", 1000, 1)
    keep(store, "a", b"text")
    (tmp_path / "cache/onnxjson").rename(tmp_path / "elsewhere")
    (tmp_path / "cache/onnxjson").symlink_to(tmp_path / "elsewhere")
    assert len(store.contents("a")) == 1

    class Other:
        """The facts of a link that somebody else made."""

        st_uid = os.geteuid() + 1

    monkeypatch.setattr(Path, "lstat", lambda self: Other if os.path.islink(self) else os.lstat(self))
    assert store.contents("a") == []
    with pytest.raises(PermissionError):
        store.make_root()

import errno
import fcntl
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxjson.model.errors import FileError, MissingInputError, OnnxJsonError, OutputError
from onnxjson.storage import backups as module
from onnxjson.storage import saving
from onnxjson.storage.backups import backups, history, keep_backup, restore
from onnxjson.storage.saving import save_file
from onnxjson.storage.store import Content


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "model.onnx"
    place.write_bytes(b"first")
    return place


def save(path: Path, content: bytes) -> None:
    save_file(path, lambda sink: sink.write(content), backup=keep_backup)


def undo_save(path: Path) -> None:
    found = history(path)
    restore(found, found.neighbour(-1))


def forward(path: Path) -> None:
    found = history(path)
    restore(found, found.neighbour(1))


def contents(path: Path) -> list[bytes]:
    return [backup.file.read_bytes() for backup in backups(path)]


def test_what_a_save_replaces_can_be_had_back(path: Path) -> None:
    path.chmod(0o640)
    save(path, b"second")
    (backup,) = backups(path)
    assert (backup.file.read_bytes(), backup.size, backup.mode) == (b"first", 5, 0o640)
    undo_save(path)
    assert path.read_bytes() == b"first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_undoing_walks_back_and_redoing_forward_through_all_versions(path: Path) -> None:
    for content in (b"second", b"third", b"fourth"):
        save(path, content)
    for content in (b"third", b"second", b"first"):
        undo_save(path)
        assert path.read_bytes() == content
    with pytest.raises(MissingInputError, match="no older version"):
        undo_save(path)
    for content in (b"second", b"third", b"fourth"):
        forward(path)
        assert path.read_bytes() == content
    with pytest.raises(MissingInputError, match="no newer version"):
        forward(path)
    assert contents(path) == [b"fourth", b"third", b"second", b"first"]


def test_a_save_after_an_undo_keeps_what_was_undone(path: Path) -> None:
    for content in (b"second", b"third"):
        save(path, content)
    undo_save(path)
    undo_save(path)
    save(path, b"other")
    assert contents(path) == [b"first", b"third", b"second", b"first"]
    for content in (b"first", b"third", b"second", b"first"):
        undo_save(path)
        assert path.read_bytes() == content


def test_a_content_that_came_back_by_hand_is_not_mixed_up_with_an_old_version(path: Path) -> None:
    save(path, b"second")
    save(path, b"first")
    undo_save(path)
    assert path.read_bytes() == b"second"
    path.write_bytes(b"by hand")
    undo_save(path)
    assert path.read_bytes() == b"first"
    assert b"by hand" in contents(path)


def test_a_removed_file_comes_back_as_the_version_that_was_restored(path: Path) -> None:
    for content in (b"second", b"third"):
        save(path, content)
    undo_save(path)
    path.unlink()
    undo_save(path)
    assert path.read_bytes() == b"second"


def test_a_file_that_is_gone_comes_back_with_its_permissions(path: Path) -> None:
    path.chmod(0o604)
    keep_backup(path)
    path.unlink()
    undo_save(path)
    assert path.read_bytes() == b"first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_file_that_is_gone_comes_back_again_and_again(path: Path) -> None:
    keep_backup(path)
    for _ in range(3):
        path.unlink()
        undo_save(path)
        assert path.read_bytes() == b"first"
    with pytest.raises(MissingInputError, match="no older version"):
        undo_save(path)


def test_every_content_of_100_saves_comes_back(path: Path) -> None:
    for count in range(100):
        before = path.read_bytes()
        save(path, b"%d" % count * (count + 1))
        undo_save(path)
        assert path.read_bytes() == before
        forward(path)


def test_twenty_backups_of_a_path_are_kept_and_the_oldest_go_first(path: Path) -> None:
    for count in range(23):
        save(path, b"%d" % count)
    assert contents(path) == [b"%d" % count for count in range(21, 1, -1)]


def test_backups_of_all_paths_stay_below_the_limit_and_the_oldest_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.STORE, "bytes_in_all", 250)
    paths = [tmp_path / str(count) for count in range(4)]
    for path in paths:
        path.write_bytes(b"x" * 100)
        keep_backup(path)
    assert [len(backups(path)) for path in paths] == [0, 0, 1, 1]


def test_a_file_bigger_than_the_limit_is_refused_with_the_way_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.STORE, "bytes_in_all", 4)
    with pytest.raises(OutputError, match="save under another name"):
        save(path, b"second")
    assert path.read_bytes() == b"first"


def test_the_same_content_is_kept_once(path: Path) -> None:
    keep_backup(path)
    keep_backup(path)
    assert len(backups(path)) == 1


def test_the_newest_backup_is_that_made_last_even_if_the_clock_goes_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(path, b"second")
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    save(path, b"third")
    assert contents(path) == [b"second", b"first"]


def test_links_to_one_file_share_its_backups(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path.name)
    save(link, b"second")
    assert backups(link) == backups(path) != []
    undo_save(link)
    assert link.is_symlink()
    assert path.read_bytes() == b"first"


def test_the_state_folder_is_for_the_user_alone(path: Path, home: Path) -> None:
    (home / "onnxjson").mkdir(parents=True, mode=0o755)
    save(path, b"second")
    for place in (home / "onnxjson").rglob("*"):
        assert stat.S_IMODE(place.stat().st_mode) == (0o700 if place.is_dir() else 0o600)
    assert stat.S_IMODE((home / "onnxjson").stat().st_mode) == 0o700


def test_the_original_path_is_kept_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"a\xff\nb")
    path.write_bytes(b"x")
    keep_backup(path)
    (backup,) = backups(path)
    assert (backup.file.parent / "path").read_bytes() == os.fsencode(path)


def test_a_state_folder_that_cannot_be_written_stops_the_save_and_names_the_way_out(path: Path, home: Path) -> None:
    home.write_bytes(b"a file stands where the folder should be")
    with pytest.raises(OnnxJsonError, match=r"no backup of .* can be kept.*set XDG_STATE_HOME") as caught:
        save(path, b"second")
    assert caught.value.exit_code == 73
    assert path.read_bytes() == b"first"


def test_a_disk_that_is_full_stops_the_save_and_names_the_way_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(saving.Output, "clone", lambda *_: False)
    place = path.read_bytes()

    def write(sink: saving.Sink) -> None:
        sink.write(b"second")
        sink.flush()  # type: ignore[attr-defined]
        monkeypatch.setattr(os, "write", refuse)

    with pytest.raises(FileError, match="set XDG_STATE_HOME"):
        save_file(path, write, backup=keep_backup)
    monkeypatch.undo()
    assert path.read_bytes() == place


def test_a_damaged_backup_is_not_restored(path: Path) -> None:
    save(path, b"second")
    backups(path)[0].file.write_bytes(b"fIrst")
    with pytest.raises(FileError, match="damaged"):
        undo_save(path)
    assert path.read_bytes() == b"second"


def test_without_a_backup_there_is_nothing_to_undo(path: Path) -> None:
    with pytest.raises(MissingInputError, match="no backup"):
        undo_save(path)
    keep_backup(path)
    with pytest.raises(MissingInputError, match="no older version"):
        undo_save(path)


@pytest.mark.parametrize("kind", ["folder", "pipe", "nothing"])
def test_only_files_have_backups(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(MissingInputError if kind == "nothing" else OutputError):
        keep_backup(path)


def test_a_killed_backup_is_none_and_its_leftover_goes(path: Path, home: Path) -> None:
    code = (
        "import os, pathlib, sys\nfrom onnxjson.storage import backups, saving\n"
        "saving.Output.sha256 = lambda self: os._exit(1)\nsaving.Output.clone = lambda *_: False\n"
        "(backups.STORE.make_folder(sys.argv[1]) / 'path').touch()\n"
        "backups.keep_backup(pathlib.Path(sys.argv[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=False, cwd=Path(module.__file__).parents[2], env={**os.environ}
    )
    assert done.returncode == 1
    assert backups(path) == []
    assert list(home.rglob(".onnxjson-*"))
    keep_backup(path)
    assert len(backups(path)) == 1
    assert not list(home.rglob(".onnxjson-*"))


def test_blocks_are_shared_where_the_file_system_can_do_that(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def share(descriptor: int, request: int, source: int) -> int:
        asked.append(request)
        os.write(descriptor, os.pread(source, 100, 0))  # What the system does, seen from outside.
        return 0

    monkeypatch.setattr(fcntl, "ioctl", share)
    keep_backup(path)
    assert asked == [0x40049409]
    assert contents(path) == [b"first"]


def test_backup_of_a_file_that_another_program_replaces_meanwhile_is_what_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "m.onnx", tmp_path / "other"
    path.write_bytes(b"first")
    other.write_bytes(b"second")
    contents = module.STORE.contents

    def meanwhile(key: str) -> list[Content]:
        if other.exists():
            other.replace(path)
        return contents(key)

    monkeypatch.setattr(module.STORE, "contents", meanwhile)
    keep_backup(path)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert [each.file.read_bytes() for each in backups(path)] == [b"first"]

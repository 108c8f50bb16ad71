"""What a system does rarely: errors of single calls while files are saved, resolved, identified and kept."""

import errno
import fcntl
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onnxjson.model.document import StringStringEntry
from onnxjson.model.errors import (
    FileError,
    MissingInputError,
    OutputError,
    UntrustedError,
)
from onnxjson.storage import backups, external, identity
from onnxjson.storage.external import Resolver
from onnxjson.storage.saving import save_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "m.onnx"
    place.write_bytes(b"old")
    return place


def failing(number: int) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_new_file_whose_mode_cannot_be_set_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fchmod", failing(errno.EIO))
    with pytest.raises(FileError):
        save_file(tmp_path / "new", lambda sink: sink.write(b"x"), mode=0o600)
    assert not list(tmp_path.iterdir())


def test_a_system_without_extended_attributes_or_locks_saves(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "listxattr", raising=False)
    monkeypatch.setattr(fcntl, "flock", failing(errno.ENOLCK))
    save_file(path, lambda sink: sink.write(b"new"))
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(("number", "is_said"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_folder_that_cannot_be_synced_is_said_unless_its_system_never_can(
    path: Path, number: int, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def sync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(number, "no")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    if is_said:
        with pytest.raises(FileError, match="has the new content"):
            save_file(path, lambda sink: sink.write(b"new"))
    else:
        save_file(path, lambda sink: sink.write(b"new"))
    assert path.read_bytes() == b"new"


def test_a_file_whose_status_cannot_be_had_is_not_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = identity.identity(path)
    monkeypatch.setattr(os, "stat", failing(errno.EIO))
    with pytest.raises(FileError, match="cannot be read"):
        opened.check(path)


def test_links_are_followed_without_a_model_file_too(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"data")
    (tmp_path / "link").symlink_to("w.bin")
    pairs = (StringStringEntry(key="location", value="link"),)
    assert Resolver(tmp_path, trust_links=True).resolve(pairs, None).read() == b"data"


def resolved(folder: Path, location: str) -> None:
    Resolver(folder).resolve((StringStringEntry(key="location", value=location),), None)


def test_a_device_and_a_file_elsewhere_are_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.bin").write_bytes(b"data")
    (tmp_path / "sub").mkdir()
    with pytest.raises(UntrustedError, match="not a regular file"):
        resolved(tmp_path, "sub")
    regular = os.stat(tmp_path / "w.bin")
    with monkeypatch.context() as context:  # exchanged after it was looked at
        context.setattr(external, "os", SimpleNamespace(**{**vars(os), "stat": lambda *_, **__: regular}))
        with pytest.raises(UntrustedError, match="not a regular file"):
            resolved(tmp_path, "sub")
    real = os.fstat

    def elsewhere(descriptor: int) -> Any:
        status = real(descriptor)
        return status if os.path.isdir(f"/proc/self/fd/{descriptor}") else moved(status)

    def moved(status: os.stat_result) -> os.stat_result:
        fields = list(status)
        fields[2] += 1
        return os.stat_result(fields, {"st_blocks": 8})

    monkeypatch.setattr(external, "os", SimpleNamespace(**{**vars(os), "fstat": elsewhere}))
    with pytest.raises(UntrustedError, match="on another file system"):
        resolved(tmp_path, "w.bin")


def test_a_backup_or_a_file_that_cannot_be_read_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(path.parent / "state"))
    save_file(path, lambda sink: sink.write(b"new"), backup=backups.keep_backup)
    found = backups.history(path)
    found.kept[0].file.unlink()
    with pytest.raises(MissingInputError):
        backups.restore(found, 0)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", failing(errno.EIO))
        with pytest.raises((FileError, OutputError), match="cannot be read"):
            backups.keep_backup(path)
    assert sys.platform
    assert path.read_bytes() == b"new"

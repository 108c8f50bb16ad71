"""What a system does rarely: errors of single calls while files are saved, resolved, identified and kept."""

import errno
import fcntl
import hashlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import onnxjson
from onnxjson.cli import failures, output
from onnxjson.model import system
from onnxjson.model.document import Graph, StringStringEntry, Tensor
from onnxjson.model.errors import (
    AccessDeniedError,
    FileError,
    MissingInputError,
    OnnxJsonError,
    OutputError,
    UntrustedError,
)
from onnxjson.storage import backups, external, identity, locks, saving
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


def test_many_small_pieces_are_gathered_and_written(path: Path) -> None:
    def write(sink: saving.Sink) -> None:
        for _ in range(3):
            sink.write(b"x" * (saving.PIECE // 2))

    save_file(path, write)
    assert path.read_bytes() == b"x" * (3 * (saving.PIECE // 2))


def test_blocks_are_shared_on_linux_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "sys", SimpleNamespace(platform="darwin"))
    save_file(path, lambda output: output.write(str(output.clone(0)).encode()))
    assert path.read_bytes() == b"False"


def test_a_new_file_whose_mode_cannot_be_set_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fchmod", failing(errno.EIO))
    with pytest.raises(FileError):
        save_file(tmp_path / "new", lambda sink: sink.write(b"x"), mode=0o600)
    assert not list(tmp_path.iterdir())


def test_a_process_that_may_not_be_askedis_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "kill", failing(errno.EPERM))
    assert locks.is_running(1)


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


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ValueError(), MissingInputError, "not a valid file name"),
        (FileNotFoundError(), MissingInputError, "does not exist"),
        (IsADirectoryError(), MissingInputError, "is a folder"),
        (PermissionError(errno.EACCES, "denied"), AccessDeniedError, "may not be read: denied"),
        (OSError(errno.EIO, "broken"), FileError, "cannot be read: broken"),
    ],
)
def test_errors_of_reading_have_kinds(error: OSError | ValueError, kind: type[OnnxJsonError], text: str) -> None:
    found = identity.reading_error(Path("m.onnx"), error)
    assert type(found) is kind
    assert text in str(found)


def test_what_cannot_be_hashed_or_opened_is_an_error_of_the_package(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        identity.sha256_of(tmp_path)
    with pytest.raises(MissingInputError):
        identity.open_source(tmp_path / "missing")


def test_tensors_inside_know_no_file(tmp_path: Path) -> None:
    inside = Tensor(dims=(1,), data_type=1, raw_data=bytes(4), name="inside")
    entries = (StringStringEntry(key="location", value="w.bin"),)
    outside = Tensor(dims=(1,), data_type=1, external_data=entries, data_location=1, name="outside")
    model = external.with_file(onnxjson.Model(graph=Graph(initializer=(inside, outside))), tmp_path / "m.onnx")
    assert model.graph is not None
    assert [external.file_of(each) for each in model.graph.initializer] == [None, tmp_path / "m.onnx"]


def test_a_model_without_external_data_stays_as_it_is(tmp_path: Path) -> None:
    model = onnxjson.Model(graph=Graph())
    assert external.with_file(model, tmp_path / "m.onnx") is model


def test_links_are_followed_without_a_model_file_too(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"data")
    (tmp_path / "link").symlink_to("w.bin")
    pairs = (StringStringEntry(key="location", value="link"),)
    assert Resolver(tmp_path, trust_links=True).resolve(pairs, None).read() == b"data"


def test_a_thread_hashes_what_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "THREAD_FROM", 10)
    stream = identity.StreamHash()
    for number in range(40):
        stream.update(bytes([number]) * 8)
    whole = b"".join(bytes([number]) * 8 for number in range(40))
    assert stream.hexdigest() == hashlib.sha256(whole).hexdigest()


def test_folders_are_made_once_and_a_place_is_tried_before_a_question(tmp_path: Path) -> None:
    for _ in range(2):
        saving.make_folder(tmp_path / "sub")
    saving.require_savable(tmp_path / "sub" / "new")
    with pytest.raises(OutputError):
        saving.require_savable(tmp_path / "sub")


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


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOENT, 66), (errno.ELOOP, 78), (errno.EMFILE, 71), (errno.EACCES, 77), (errno.EIO, 74)],
)
def test_errors_of_resolving_have_kinds(number: int, code: int) -> None:
    assert external._system_error("w", OSError(number, "why")).exit_code == code


def test_a_backup_or_a_file_that_cannot_be_read_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(path.parent / "state"))
    save_file(path, lambda sink: sink.write(b"new"), backup=backups.keep_backup)
    history = backups.history(path)
    history.kept[0].file.unlink()
    with pytest.raises(MissingInputError):
        backups.restore(history, 0)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", failing(errno.EIO))
        with pytest.raises((FileError, OutputError), match="cannot be read"):
            backups.keep_backup(path)
    assert sys.platform
    assert path.read_bytes() == b"new"


def test_a_descriptor_that_cannot_be_closed_breaks_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(path.parent / "state"))
    real = os.close

    def close(descriptor: int) -> None:
        real(descriptor)
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "close", close)
    save_file(path, lambda sink: sink.write(b"new"))
    with pytest.raises(FileError, match="no backup of"):
        backups.keep_backup(path)
    monkeypatch.undo()
    assert path.read_bytes() == b"new"


def test_a_failure_that_cannot_be_printed_has_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "failure", failing(errno.EIO))
    assert failures.report_failure(FileError("x")) == 74

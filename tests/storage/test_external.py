import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from onnxjson.model.document import StringStringEntry
from onnxjson.model.errors import (
    AccessDeniedError,
    ChangedUnderneathError,
    LimitError,
    MissingInputError,
    OnnxJsonError,
    UntrustedError,
)
from onnxjson.storage import external
from onnxjson.storage.external import ExternalSlice, Resolver

CONTENT = bytes(range(100))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    (place / "sub").mkdir(parents=True)
    (place / "w.bin").write_bytes(CONTENT)
    (place / "sub" / "w.bin").write_bytes(CONTENT[::-1])
    (place / "model.onnx").write_bytes(b"the model itself")
    (tmp_path / "secret").write_bytes(CONTENT)
    return place


def entries(**pairs: str | None) -> tuple[StringStringEntry, ...]:
    return tuple(StringStringEntry(key=key, value=value) for key, value in pairs.items())


def get(folder: Path, location: str, needed: int | None = 100, **options: bool) -> ExternalSlice:
    resolver = Resolver(folder, model_file=folder / "model.onnx", **options)
    return resolver.resolve(entries(location=location), needed, tensor="w")


@pytest.mark.parametrize(
    ("location", "content"),
    [("w.bin", CONTENT), ("sub/w.bin", CONTENT[::-1]), ("./sub/./w.bin", CONTENT[::-1])],
    ids=["beside", "below", "dots"],
)
@pytest.mark.parametrize("trust_links", [False, True])
def test_a_file_in_the_models_folder_is_found(folder: Path, location: str, content: bytes, trust_links: bool) -> None:
    found = get(folder, location, trust_links=trust_links)
    assert (len(found), found.location, found.offset) == (100, location, 0)
    assert found.read() == content


def test_offset_and_length_name_a_range(folder: Path) -> None:
    pairs = entries(location="w.bin", offset="010", length="20", checksum="0" * 40, basepath="/etc")
    assert Resolver(folder).resolve(pairs, 20).read() == CONTENT[10:30]
    assert Resolver(folder).resolve(entries(location="w.bin", offset="90"), None).read() == CONTENT[90:]
    assert Resolver(folder).resolve(entries(location="w.bin", offset="100"), 0).read() == b""


def test_names_that_are_no_utf_8_are_found(folder: Path) -> None:
    name = os.fsdecode(b"\xff\n.bin")
    (folder / name).write_bytes(CONTENT)
    assert get(folder, name).read() == CONTENT


@pytest.mark.parametrize(
    "location",
    [
        "", "/", "/etc/passwd", "//etc/passwd", "..", "../secret", "sub/../../secret", "sub/../w.bin", "sub//w.bin",
        "w.bin/", ".", "./", "sub/.", "sub", "w.bin\0x", "C:\\w.bin", "c:w.bin", "sub\\w.bin", "..\\secret",
        "file:///etc/passwd", "\\\\host\\share", "model.onnx", "./model.onnx", "\ud800",
    ],
)  # fmt: skip
@pytest.mark.parametrize("trust_links", [False, True])
def test_a_location_that_is_no_file_below_the_model_is_refused(folder: Path, location: str, trust_links: bool) -> None:
    with pytest.raises(UntrustedError) as caught:
        get(folder, location, None, trust_links=trust_links)
    assert caught.value.exit_code == 78
    assert "tensor 'w'" in str(caught.value)


@pytest.mark.parametrize(
    "location", ["missing", "sub/missing", "missing/w.bin", "w.bin/x", "n" * 300, "~/w.bin", "$HOME"]
)
def test_a_file_that_is_not_there_is_named_with_its_tensor(folder: Path, location: str) -> None:
    with pytest.raises(MissingInputError, match="tensor 'w'") as caught:
        get(folder, location)
    assert location[:79] in str(caught.value)


def test_a_location_is_made_visible_in_messages(folder: Path) -> None:
    with pytest.raises(MissingInputError) as caught:
        get(folder, "\x1b]52;c;aGk=\x07")
    assert "\x1b" not in str(caught.value)
    assert "\\u{1b}" in str(caught.value)


def link_to_secret(folder: Path) -> str:
    (folder / "link").symlink_to("../secret")
    return "link"


def link_to_root(folder: Path) -> str:
    (folder / "link").symlink_to("/")
    return f"link{folder.parent}/secret"


def link_to_parent(folder: Path) -> str:
    (folder / "link").symlink_to("..")
    return "link/secret"


def link_to_model(folder: Path) -> str:
    (folder / "link").symlink_to("model.onnx")
    return "link"


def hard_link_to_model(folder: Path) -> str:
    (folder / "hard").hardlink_to(folder / "model.onnx")
    return "hard"


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe")
    return "pipe"


def unix_socket(folder: Path) -> str:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(folder)  # A socket's path has at most 108 bytes.
        made.bind("socket")
        os.chdir(here)
    return "socket"


def link_to_device(folder: Path) -> str:
    (folder / "device").symlink_to("/dev/zero")
    return "device"


def link_to_itself(folder: Path) -> str:
    (folder / "loop").symlink_to("loop")
    return "loop"


@pytest.mark.parametrize(
    "make",
    [
        link_to_secret, link_to_root, link_to_parent, link_to_model, hard_link_to_model, pipe, unix_socket,
        link_to_device, link_to_itself,
    ],
    ids=lambda make: make.__name__,
)  # fmt: skip
@pytest.mark.parametrize("trust_links", [False, True])
def test_what_leads_elsewhere_or_is_no_file_is_refused(
    folder: Path, make: Callable[[Path], str], trust_links: bool
) -> None:
    with pytest.raises(UntrustedError):
        get(folder, make(folder), None, trust_links=trust_links)


def test_links_and_hard_links_within_the_folder_are_followed_only_when_trusted(folder: Path) -> None:
    (folder / "link").symlink_to("sub")
    (folder / "hard").hardlink_to(folder / "w.bin")
    for location in ("link/w.bin", "hard"):
        with pytest.raises(UntrustedError, match="or trust links"):
            get(folder, location)
        assert len(get(folder, location, trust_links=True)) == 100


def test_the_layout_of_the_hugging_face_cache_opens_when_trusted(tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "snapshots" / "1", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "a").write_bytes(b"model")
    (blobs / "b").write_bytes(CONTENT)
    (snapshot / "model.onnx").symlink_to("../../blobs/a")
    (snapshot / "model.onnx_data").symlink_to("../../blobs/b")
    with pytest.raises(UntrustedError):
        get(snapshot, "model.onnx_data")
    assert get(snapshot, "model.onnx_data", trust_links=True).read() == CONTENT


@pytest.mark.parametrize(
    "number", ["", "-1", "+1", " 1", "1 ", "1_0", "1.0", "0x1", "1e1", "\u0661", "\uff11", "1\n", "1" * 20]
)
@pytest.mark.parametrize("key", ["offset", "length"])
def test_a_number_is_ascii_digits_only(folder: Path, key: str, number: str) -> None:
    with pytest.raises(UntrustedError, match=key):
        Resolver(folder).resolve(entries(location="w.bin", **{key: number}), None)


@pytest.mark.parametrize(
    ("offset", "length", "needed"),
    [
        ("0", "101", None), ("1", "100", None), ("101", "0", None), ("9999999999999999999", "0", None),
        ("0", "9999999999999999999", None), ("0", "50", 51), ("0", "50", 49), ("0", None, 50), ("0", None, 101),
        ("60", None, 41),
    ],
)  # fmt: skip
def test_a_range_must_lie_in_the_file_and_be_what_the_shape_needs(
    folder: Path, offset: str, length: str | None, needed: int | None
) -> None:
    pairs = entries(location="w.bin", offset=offset) + (entries(length=length) if length else ())
    with pytest.raises(UntrustedError, match="bytes"):
        Resolver(folder).resolve(pairs, needed)


def test_keys_are_known_and_stand_once(folder: Path) -> None:
    for pairs in (
        entries(location="w.bin", __class__="x"),
        entries(location="w.bin", Offset="1"),
        entries(location="w.bin") + entries(location="w.bin"),
        entries(location="w.bin", offset=None),
        (*entries(location="w.bin"), StringStringEntry(value="x")),
        entries(offset="1"),
        (),
    ):
        with pytest.raises(UntrustedError):
            Resolver(folder).resolve(pairs, None)


def test_a_file_that_is_mostly_holes_is_refused_unless_allowed(folder: Path) -> None:
    with (folder / "sparse").open("wb") as file:
        file.truncate(40 << 30)
    with pytest.raises(UntrustedError, match="--allow-sparse reads it"):
        get(folder, "sparse", None)
    assert len(get(folder, "sparse", None, allow_sparse=True)) == 40 << 30


def test_a_file_without_permission_is_an_error_of_access(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "w.bin":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(AccessDeniedError):
        get(folder, "w.bin")


def test_a_file_of_many_tensors_is_open_once_and_closed_when_nobody_needs_it(folder: Path) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = count()
    resolver = Resolver(folder)
    slices = [resolver.resolve(entries(location="w.bin", offset=str(i)), 100 - i) for i in range(50)]
    assert count() == before + 1
    assert [found.read() for found in slices] == [CONTENT[i:] for i in range(50)]


def test_refusals_leave_no_file_open(folder: Path) -> None:
    (folder / "hard").hardlink_to(folder / "w.bin")
    before = len(os.listdir("/proc/self/fd"))
    for location in ("hard", "missing/x", "sub/missing", "sub"):
        with pytest.raises(OnnxJsonError):
            get(folder, location)
    assert len(os.listdir("/proc/self/fd")) == before


def test_too_many_open_files_is_a_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(LimitError, match="ulimit"):
        get(folder, "w.bin")


def test_a_file_changed_after_it_was_resolved_is_not_read(folder: Path) -> None:
    found = get(folder, "w.bin")
    (folder / "w.bin").write_bytes(b"x" * 50)
    with pytest.raises(ChangedUnderneathError):
        found.read()


def test_nothing_outside_is_read_while_a_file_is_exchanged_for_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"S" * 100)
    place = folder / "race"
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            (folder / "a").write_bytes(CONTENT)
            (folder / "a").replace(place)
            # Without a rest the file may never stand long enough to be read on a busy machine.
            stop.wait(random.random() * 0.002)
            (folder / "b").symlink_to("../secret")
            (folder / "b").replace(place)

    (folder / "race").write_bytes(CONTENT)
    thread = threading.Thread(target=exchange)
    thread.start()
    count = refused = 0
    end = time.monotonic() + 60
    try:
        while (count + refused < 3000 or not count) and time.monotonic() < end:
            try:
                assert get(folder, "race").read() == CONTENT
                count += 1
            except OnnxJsonError:
                refused += 1
    finally:
        stop.set()
        thread.join()
    assert count


def test_nothing_outside_the_folder_is_opened(folder: Path) -> None:
    code = """
import sys
from pathlib import Path
opened = []
from onnxjson.model.document import StringStringEntry as Pair
from onnxjson.model.errors import OnnxJsonError
from onnxjson.storage.external import Resolver
folder = Path(sys.argv[1])
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
for location in ["../secret", "/etc/passwd", "link", "link/secret", "w.bin", "sub/w.bin", "hard"]:
    try:
        Resolver(folder).resolve([Pair(key="location", value=location)], None)
    except OnnxJsonError:
        pass
print(sorted(set(opened)))
"""
    (folder / "link").symlink_to("..")
    (folder / "hard").hardlink_to(folder.parent / "secret")
    package = Path(external.__file__).parents[2]
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=package)
    assert set(eval(done.stdout)) <= {str(folder), "w.bin", "sub", "hard"} | {str(n) for n in range(20)}

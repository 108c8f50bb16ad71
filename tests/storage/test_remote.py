"""Models behind URLs: only what is used is fetched, and nothing is ever taken for what it is not."""

import http.server
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import fsspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxjson
from onnxjson.model.errors import FileError, MissingInputError, UntrustedError
from onnxjson.storage import files, remote, web
from onnxjson.storage.external import Resolver
from onnxjson.storage.store import take_entry
from tests.cli.running import run, run_process

WEIGHT_BYTES = 4 * 490_000


def saved(folder: Path, *, external: bool = False) -> Path:
    """Three big weights between small nodes."""
    weights = [
        numpy_helper.from_array(np.arange(490_000, dtype=np.float32).reshape(700, 700) + n, f"w{n}") for n in range(3)
    ]
    nodes = [helper.make_node("MatMul", [f"x{n}", f"w{n}"], [f"x{n + 1}"], name=f"n{n}") for n in range(3)]
    value = partial(helper.make_tensor_value_info, elem_type=TensorProto.FLOAT)
    graph = helper.make_graph(nodes, "g", [value("x0", shape=["n", 700])], [value("x3", shape=["n", 700])], [*weights])
    folder.mkdir(exist_ok=True)
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph), path, save_as_external_data=external, location="m.data", size_threshold=1024)
    return path


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system of memory:// URLs, empty."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()
    remote.forget()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A URL of Python's own server, which knows no ranges, and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()
    remote.forget()


def fetched() -> int:
    return sum(count for _, count, _ in remote.read_so_far())


def test_the_graph_is_read_without_its_weights(memory: Any, tmp_path: Path) -> None:
    path = saved(tmp_path)
    memory.pipe("/zoo/m.onnx", path.read_bytes())
    model = onnxjson.load("memory://zoo/m.onnx")
    graph_bytes = path.stat().st_size - 3 * WEIGHT_BYTES
    assert fetched() < 4096 + 3 * 512 + graph_bytes
    assert model == files.load(path).model


def test_the_weights_of_another_file_are_read_when_they_are_used(memory: Any, tmp_path: Path) -> None:
    path = saved(tmp_path, external=True)
    for each in (path, tmp_path / "m.data"):
        memory.pipe(f"/zoo/{each.name}", each.read_bytes())
    assert run("show", "memory://zoo/m.onnx").exit_code == 0
    remote.forget()
    model = onnxjson.load("memory://zoo/m.onnx")
    assert model.graph is not None
    assert fetched() <= 1.1 * path.stat().st_size
    assert model.graph.initializer[1].numpy()[0, 0] == 1
    assert WEIGHT_BYTES <= fetched() < 2 * WEIGHT_BYTES


def test_every_command_that_reads_a_model_reads_a_url(memory: Any, tmp_path: Path) -> None:
    path = saved(tmp_path, external=True)
    for each in (path, tmp_path / "m.data"):
        memory.pipe(f"/zoo/{each.name}", each.read_bytes())
    url = "memory://zoo/m.onnx"
    assert "MatMul" in run("show", url).stdout
    assert "n1" in run("find", url, "MatMul($x, ?w)").stdout
    assert run("check", "--deep", url).exit_code == 0
    assert run("diff", url, path).exit_code == 0
    assert run("run", url, "--dim", "n=2").exit_code == 0
    assert run("verify", url, path, "--samples", "1").exit_code == 0
    (tmp_path / "new").mkdir()
    words = ("rewrite", "set-doc", url, "hello", "-o", tmp_path / "new" / "m.onnx.json")
    assert run(*words).exit_code == 73
    assert run(*words, "--with-external").exit_code == 0
    assert (tmp_path / "new" / "m.data").read_bytes() == (tmp_path / "m.data").read_bytes()
    assert run("convert", url, "-o", tmp_path / "copy.onnx", "--internalize").exit_code == 0
    copy, whole = onnx.load(tmp_path / "copy.onnx"), onnx.load(path)
    assert [each.raw_data for each in copy.graph.initializer] == [each.raw_data for each in whole.graph.initializer]


def test_a_server_without_ranges(served: tuple[str, Path]) -> None:
    url, folder = served
    path = saved(folder)
    assert files.load(remote.open_url(f"{url}/m.onnx")).model == files.load(path).model
    text = run("convert", path, "-o", folder / "m.onnx.json")
    assert text.exit_code == 0
    assert files.load(remote.open_url(f"{url}/m.onnx.json")).model == files.load(path).model
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.write(path, "d/m.onnx")
    assert files.load(remote.open_url(f"zip://d/m.onnx::{url}/a.zip")).model == files.load(path).model


def test_how_much_was_read_is_said_with_v(memory: Any, tmp_path: Path) -> None:
    memory.pipe("/m.onnx", saved(tmp_path).read_bytes())
    url = "memory://m.onnx"
    for words in (["show"], ["check"], ["find", url, "MatMul"], ["diff", tmp_path / "m.onnx"], ["run", "--dim", "n=1"]):
        assert f"bytes of {url}" in run(*words, "-v", *([url] * (url not in words))).stderr, words
        remote.forget()
    assert "bytes of" not in run("show", "memory://m.onnx").stderr


def test_a_url_is_only_read(memory: Any, tmp_path: Path) -> None:
    memory.pipe("/m.onnx", saved(tmp_path).read_bytes())
    for words in (
        ["rewrite", "set-doc", "memory://m.onnx", "hello", "-i"],
        ["convert", tmp_path / "m.onnx", "-o", "memory://new.onnx"],
        ["convert", "memory://m.onnx", "-o", "memory://m.onnx"],
    ):
        result = run(*words)
        assert (result.exit_code, "which is only read" in result.stderr) == (73, True), result.stderr
        assert f"{words[-1] if '-o' in words else words[2]} is a URL" in result.stderr
    assert memory.ls("/", detail=False) == ["/m.onnx"]


def test_the_text_of_a_url_is_edited_and_not_saved(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.pipe("/zoo/m.onnx", saved(tmp_path).read_bytes())
    monkeypatch.setenv("VISUAL", "sed -i s/x1/other/")
    found = run("edit", "memory://zoo/m.onnx", "--yes")
    assert found.exit_code == 73
    assert "is a URL, which is only read" in found.stderr
    monkeypatch.setenv("VISUAL", "true")
    assert run("edit", "memory://zoo/m.onnx").exit_code == 0


def test_an_object_that_changes_while_it_is_read(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved(tmp_path).read_bytes()
    memory.pipe("/m.onnx", data)
    real = type(memory).cat_file

    def read(*arguments: Any, **words: Any) -> bytes:
        found: bytes = real(*arguments, **words)
        memory.pipe("/m.onnx", data[:-1])
        return found

    monkeypatch.setattr(type(memory), "cat_file", read)
    with pytest.raises(onnxjson.ChangedUnderneathError, match="try again"):
        remote.open_url("memory://m.onnx")


def test_a_model_cannot_name_what_is_kept_beside_its_file(memory: Any, tmp_path: Path) -> None:
    path = saved(tmp_path, external=True)
    for each in (path, tmp_path / "m.data"):
        memory.pipe(f"/zoo/{each.name}", each.read_bytes())
    model = remote.open_url("memory://zoo/m.onnx")
    folder = Path(os.fspath(model)).parent
    assert folder.name == "files"
    assert [each.name for each in folder.iterdir()] == ["m.onnx"]
    remote.open_next_to(folder.parent, ["m.data"])
    assert sorted(each.name for each in folder.parent.iterdir()) == ["files", "ranges"]


def test_a_file_in_use_by_another_process_stays(served: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = served
    saved(folder)
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    run_process("show", f"{url}/m.onnx", more=cache)
    (entry,) = tmp_path.glob("cache/onnxjson/objects/*/*")
    held = take_entry(entry)
    assert held is not None
    assert "read 0 of" not in run_process("show", "-v", f"{url}/m.onnx", more=cache).stderr
    os.utime(folder / "m.onnx", (1, 1))  # another version
    run_process("show", f"{url}/m.onnx", more=cache | {"ONNXJSON_CACHE_BYTES": "1"})
    assert entry.exists()
    os.close(held)
    run_process("show", f"{url}/m.onnx", more=cache | {"ONNXJSON_CACHE_BYTES": "1"})
    assert not entry.exists()


def test_a_message_names_the_url_and_not_its_local_file(memory: Any) -> None:
    memory.pipe("/bad.onnx", b"\x08\xff\xff")
    result = run("show", "memory://bad.onnx")
    assert (result.exit_code, "memory://bad.onnx is not an ONNX model" in result.stderr) == (65, True), result.stderr


def test_what_is_missing_denied_or_not_installed(memory: Any, served: tuple[str, Path]) -> None:
    url, _ = served
    assert run("show", f"{url}/none.onnx").exit_code == 66
    assert run("show", "memory://none.onnx").exit_code == 66
    result = run("show", "nonsense://host/m.onnx")
    assert (result.exit_code, "nonsense" in result.stderr) == (74, True)
    result = run("show", "http://127.0.0.1:9/m.onnx")
    assert (result.exit_code, "127.0.0.1:9" in result.stderr) == (74, True)


def test_secrets_in_a_url_are_not_shown() -> None:
    result = run("show", "http://anna:secret@127.0.0.1:9/m.onnx?signature=secret")
    assert result.exit_code == 74
    assert "http://127.0.0.1:9/m.onnx" in result.stderr
    assert "anna" not in result.stderr
    assert "signature" not in result.stderr


def test_copies_are_kept_and_their_bytes_are_limited(served: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = served
    saved(folder)
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = run_process("show", "-v", f"{url}/m.onnx", more=cache)
    assert "read 0 of" not in first.stderr
    assert "read 0 of" in run_process("show", "-v", f"{url}/m.onnx", more=cache).stderr
    os.utime(folder / "m.onnx", (1, 1))  # another version
    assert "read 0 of" not in run_process("show", "-v", f"{url}/m.onnx", more=cache).stderr
    assert len(list((tmp_path / "cache/onnxjson/objects").iterdir())) == 2
    run_process("show", f"{url}/m.onnx", more=cache | {"ONNXJSON_CACHE_BYTES": "1"})
    assert len(list((tmp_path / "cache/onnxjson/objects").iterdir())) == 1


def test_a_limit_of_the_cache_that_is_no_number(served: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = served
    saved(folder)
    result = run_process(
        "show", f"{url}/m.onnx", more={"XDG_CACHE_HOME": str(tmp_path / "cache"), "ONNXJSON_CACHE_BYTES": "10G"}
    )
    assert (result.exit_code, "set a number of bytes" in result.stderr) == (65, True), result.stderr


def test_without_a_url_nothing_can_use_the_network(tmp_path: Path) -> None:
    path = saved(tmp_path)
    script = (
        "import sys, socket\n"
        "def refuse(*_): raise AssertionError('a connection')\n"
        "socket.socket.connect = refuse\n"
        "from onnxjson.cli.group import onnxjson\n"
        f"try: onnxjson.main(['check', {str(path)!r}])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert 'fsspec' not in sys.modules and 'aiohttp' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@contextmanager
def answering(answer: Callable[[str, str], tuple[int, dict[str, str], Iterable[bytes]]]) -> Iterator[str]:
    """The URL of a server that answers a method and a path with a status, headers and parts of a body."""

    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, parts = answer(self.command, self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                for part in parts if self.command == "GET" else ():
                    self.wfile.write(part)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
    remote.forget()


@pytest.mark.parametrize(
    ("status", "length", "sent"),
    [(206, 5000, {}), (200, 5000, {}), (200, 5000, {"Content-Length": str(1 << 40)}), (200, None, {})],
    ids=["range", "undeclared", "declared", "size unknown"],
)
def test_a_body_without_end_is_cut_off(
    status: int, length: int | None, sent: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "UNDECLARED_BYTES", 1 << 20)
    monkeypatch.setattr(web, "MESSAGE_BYTES", 1 << 20)
    written = 0

    def endless() -> Iterator[bytes]:
        nonlocal written
        for _ in range(4096):
            written += 1 << 16
            yield bytes(1 << 16)

    def answer(method: str, _: str) -> tuple[int, dict[str, str], Iterable[bytes]]:
        if method == "HEAD":
            return 200, {} if length is None else {"Content-Length": str(length)}, ()
        return status, sent, endless()

    with answering(answer) as url, pytest.raises(FileError, match="more than the"):
        onnxjson.load(f"{url}/m.onnx")
    assert written < 100 << 20  # what the system keeps in between; the server would have sent 256 MiB


def test_a_body_that_drips_or_stops_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    going_on = threading.Event()

    def dripping() -> Iterator[bytes]:
        yield b"\x08"
        going_on.wait(60)

    def answer(method: str, _: str) -> tuple[int, dict[str, str], Iterable[bytes]]:
        return 200 if method == "HEAD" else 206, {"Content-Length": "5000"}, dripping()

    fsspec.filesystem("http").clear_instance_cache()
    monkeypatch.setattr(web, "IDLE_SECONDS", 0.2)
    with answering(answer) as url:
        with pytest.raises(FileError, match="cannot be read"):
            onnxjson.load(f"{url}/m.onnx")
        going_on.set()


def test_an_object_that_comes_too_slowly_is_given_up(memory: Any, tmp_path: Path, monkeypatch: Any) -> None:
    memory.pipe("/zoo/m.onnx", saved(tmp_path).read_bytes())
    monkeypatch.setattr(remote, "_PATIENCE", -1)
    monkeypatch.setattr(remote, "_SLOWEST", 10**12)
    with pytest.raises(FileError, match="bytes per second; download it first"):
        onnxjson.load("memory://zoo/m.onnx")


def test_a_location_is_a_name_and_no_other_part_of_a_url(tmp_path: Path) -> None:
    asked: list[str] = []
    path = saved(tmp_path, external=True)
    model = onnx.load(path, load_external_data=False)
    names = ["a?x=1", "a#b", "a%2fb", "a b&c;d@e", "ü.bin", "sub/+$.bin"]
    for name in names:
        for tensor in model.graph.initializer:
            tensor.external_data[0].value = name
        content = model.SerializeToString()

        def answer(method: str, path: str, content: bytes = content) -> tuple[int, dict[str, str], Iterable[bytes]]:
            if path.startswith("/zoo/m.onnx"):
                return 200, {"Content-Length": str(len(content))}, [content]
            asked.append(path)
            return 404, {}, ()

        with answering(answer) as url:
            remote_model = onnxjson.load(f"{url}/zoo/m.onnx?key=a/b")
            with pytest.raises(MissingInputError):
                Resolver(remote.open_url(f"{url}/zoo/m.onnx?key=a/b").parent).opened(name, "here")
            assert remote_model.graph is not None
    sent = set(asked)
    assert {unquote(each) for each in sent} == {f"/zoo/{name}" for name in names}
    assert not any("?" in each or "#" in each for each in sent)


def test_a_location_next_to_an_object_that_is_not_on_the_web(memory: Any, tmp_path: Path) -> None:
    memory.pipe("/zoo/m.onnx", saved(tmp_path).read_bytes())
    folder = remote.open_url("memory://zoo/m.onnx").parent
    for name in ("a?versionId=x", "a#generation"):
        with pytest.raises(UntrustedError, match=r"a \? or #"):
            remote.open_next_to(folder, [name])

"""What git shows of a model: all that changes, in as few lines, and a line whatever goes wrong."""

import hashlib
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from onnxjson.git import textconv
from onnxjson.model import document
from onnxjson.model.errors import OnnxJsonError
from onnxjson.storage import api, files
from tests.git.small_models import binary, text

MODULE = [sys.executable, "-I", "-m", "onnxjson.git.textconv"]


def converted(path: Path) -> str:
    return b"".join(bytes(piece) for piece in textconv.convert(path)).decode()


def run(*words: str, folder: Path | None = None) -> str:
    result = subprocess.run([*MODULE, *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


@pytest.fixture
def weighty(tmp_path: Path) -> Path:
    """A model with a tensor of 40,000 bytes and metadata on its nodes."""
    model = api.loads(text().decode())
    assert model.graph is not None
    entries = (document.StringStringEntry(key="namespace", value="a/b"),)
    nodes = tuple([msgspec.structs.replace(node, metadata_props=entries) for node in model.graph.node])
    tensor = document.Tensor(name="w", data_type=1, dims=(10_000,), raw_data=bytes(40_000))
    graph = msgspec.structs.replace(model.graph, node=nodes, initializer=(tensor,))
    path = tmp_path / "w.onnx"
    files.save(msgspec.structs.replace(model, graph=graph), path)
    return path


def test_small_model_is_its_text_in_both_forms(tmp_path: Path) -> None:
    for name, content in (("m.onnx", binary()), ("m.onnx.json", text())):
        (tmp_path / name).write_bytes(content)
        assert run(name, folder=tmp_path) == text().decode()


def test_weights_and_metadata_are_a_line_each(weighty: Path) -> None:
    shown = converted(weighty)
    digest = hashlib.sha256(bytes(40_000)).hexdigest()
    assert f'{{"name": "w", "type": "float32[10000]", "sha256": "{digest}"}}' in shown
    assert '"element_metadata": {"lines": 2, "sha256": "' in shown
    assert "a/b" not in shown
    assert len(shown) < 1200


def test_a_long_attribute_has_its_beginning_and_a_digest(weighty: Path) -> None:
    model = files.load(weighty).model
    assert model.graph is not None
    lines = []
    for last in (0, 1):
        trees = document.Attribute(name="trees", ints=(*range(5000), last), type=7)
        words = document.Attribute(name="words", strings=(b"a b",) * 900, type=8)
        node = msgspec.structs.replace(model.graph.node[0], attribute=(trees, words))
        graph = msgspec.structs.replace(model.graph, node=(node,))
        files.save(msgspec.structs.replace(model, graph=graph), weighty)
        lines.append([line for line in converted(weighty).splitlines() if '"trees"' in line or '"words"' in line])
    assert [len(line) < 250 for line in lines[0]] == [True, True]
    assert lines[0][0].strip().startswith('"trees": [0, 1, 2, 3, 4, ')
    assert lines[0][0] != lines[1][0]
    assert lines[0][1] == lines[1][1]


def test_nodes_in_a_subgraph_are_shown_whole(weighty: Path) -> None:
    model = files.load(weighty).model
    assert model.graph is not None
    names = tuple([f"value{place}" for place in range(400)])
    trees = document.Attribute(name="trees", ints=tuple(range(5000)), type=7)
    join = document.Node(op_type="Concat", name="join", input=names, output=("joined",), attribute=(trees,))
    body = document.Attribute(name="body", g=document.Graph(name="b", node=(join,)), type=5)
    node = msgspec.structs.replace(model.graph.node[0], op_type="Loop", attribute=(body,))
    files.save(msgspec.structs.replace(model, graph=msgspec.structs.replace(model.graph, node=(node,))), weighty)
    shown = converted(weighty)
    assert ", ".join(f'"{name}"' for name in names) in shown
    assert ", 4999" not in shown


def test_every_change_changes_a_line(weighty: Path, tmp_path: Path) -> None:
    files.save(files.load(weighty).model, tmp_path / "w.onnx.json")
    content = (tmp_path / "w.onnx.json").read_bytes()
    variants = [
        content,
        content.replace(b"a/b", b"a/c", 1),
        content.replace(b"AAAA", b"AAAB", 1),
        content.replace(b'"first"', b'"1st"'),
        content.replace(b'"y"', b'"why"'),
        content.replace(b": 10,", b":  10,"),  # not canonical
        content.replace(b": 10,", b": 11,"),
        content[:-2],
        content + b"\n",
    ]
    shown = set()
    for number, variant in enumerate(variants):
        path = tmp_path / f"{number}.onnx.json"
        path.write_bytes(variant)
        shown.add(run(path.name, folder=tmp_path))
    assert len(shown) == len(variants)


def test_weights_that_move_into_blobs_are_a_change(weighty: Path, tmp_path: Path) -> None:
    shown = {converted(weighty)}
    for number, mode in enumerate(("inline", "blobs", "digest")):
        path = tmp_path / f"{number}.onnx.json"
        files.save(files.load(weighty).model, path, weights=mode)  # type: ignore[arg-type]
        shown.add(converted(path))
    assert len(shown) == 3  # in the binary they are as they are inline


def test_binary_in_another_order_of_fields_says_so(tmp_path: Path) -> None:
    content = binary()
    assert content[:2] == b"\x08\x0a"
    path = tmp_path / "m.onnx"
    path.write_bytes(content[2:] + content[:2])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert converted(path) == text().decode() + f"the file is not as onnxjson writes this model; sha256 {digest}\n"


@pytest.mark.parametrize("cut", [1, 10, 50, 100])
def test_binary_that_is_cut_off_is_one_line_with_its_hash(cut: int, tmp_path: Path) -> None:
    content = binary()[:cut]
    (tmp_path / "m.onnx").write_bytes(content)
    shown = run("m.onnx", folder=tmp_path)
    assert shown.startswith("not shown: ")
    assert shown.endswith(f"sha256 {hashlib.sha256(content).hexdigest()}\n")
    assert shown.count("\n") == 1


def test_text_that_is_no_model_is_its_lines_behind_the_reason(tmp_path: Path) -> None:
    content = text().replace(b"0.1", b"zero").replace(b'"g"', b'"' + b"g" * 5000 + b'"')
    (tmp_path / "m.onnx.json").write_bytes(content)
    first, *lines = run("m.onnx.json", folder=tmp_path).splitlines()
    assert first == 'shown as it is: the file:18:17: zero has no quotes; write "zero"'
    assert lines[:3] == text().decode().splitlines()[:3]
    assert [len(line) < 200 for line in lines if "sha256" in line] == [True]


def test_lfs_pointer_that_was_not_fetched_is_one_line(tmp_path: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 123456\n"
    (tmp_path / "m.onnx").write_text(pointer)
    shown = run("m.onnx", folder=tmp_path)
    assert shown == f"Git LFS pointer: 123,456 bytes, sha256 {'a' * 64}; weights not fetched: git lfs pull\n"


def test_what_is_no_file_is_one_line_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    for name in ("pipe.onnx", "/dev/zero", ".", "", "nothing.onnx", "a\nb.onnx", "-h"):
        assert run(name, folder=tmp_path).count("\n") == 1
    (tmp_path / "-m.onnx").write_bytes(binary())
    assert run("-m.onnx", folder=tmp_path) == text().decode()


def run_with_load(work: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The conversion of a file, with other work in place of loading it, and one second of patience."""
    (folder / "m.onnx").write_bytes(binary())
    program = (
        "import sys, time\nfrom onnxjson.git import shown_text, textconv\ntextconv.SECONDS = 1\n"
        f"shown_text.files.load = lambda *_, **__: {work}\nsys.argv = ['', 'm.onnx']\ntextconv.main()"
    )
    words = [sys.executable, "-I", "-c", program]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_conversion_that_hangs_is_ended_with_a_line(tmp_path: Path) -> None:
    result = run_with_load("time.sleep(60)", tmp_path)
    assert result.stdout.startswith("not shown: it takes longer than 1 s; ")
    assert result.returncode == 0


def test_conversion_that_hears_no_alarm_is_ended_by_the_system(tmp_path: Path) -> None:
    # The line in git's settings then prints what there is to say.
    assert run_with_load("any(iter(int, 1))", tmp_path).returncode == -signal.SIGPROF


def test_mistake_of_the_program_is_a_line(tmp_path: Path) -> None:
    result = run_with_load("1 / 0", tmp_path)
    assert result.stdout.startswith("not shown: an error in onnxjson itself (ZeroDivisionError); ")
    assert result.returncode == 0


def test_texts_that_took_a_while_are_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(textconv, "_WORTH_KEEPING", 0)
    monkeypatch.setattr(textconv, "_CACHED_FROM", 0)
    path = tmp_path / "m.onnx"
    path.write_bytes(binary())
    shown = converted(path)
    (kept,) = (tmp_path / "cache").glob("onnxjson/texts/*/*")
    assert textconv.read_cached(hashlib.sha256(binary()).hexdigest()) == shown.encode()
    monkeypatch.setattr(files, "load", None)
    assert converted(path) == shown
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept.write_bytes(kept.read_bytes().replace(b"Elu", b"elu"))  # damaged: made anew
    assert converted(path) == shown


def test_a_file_that_is_exchanged_while_it_is_read_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(textconv, "_WORTH_KEEPING", 0)
    monkeypatch.setattr(textconv, "_CACHED_FROM", 0)
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    path.write_bytes(binary())
    other.write_bytes(binary().replace(b"Elu", b"Abs"))
    read = textconv._sha256

    def exchanged(file: Path) -> str:
        digest = read(file)
        other.replace(file)
        return digest

    monkeypatch.setattr(textconv, "_sha256", exchanged)
    assert '"Abs"' in converted(path)
    assert textconv.read_cached(hashlib.sha256(binary()).hexdigest()) is None


def test_a_text_that_another_user_planted_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(textconv, "_CACHED_FROM", 0)
    path = tmp_path / "m.onnx"
    path.write_bytes(binary())
    textconv.cache_text(hashlib.sha256(binary()).hexdigest(), [b"planted"])
    assert converted(path) == "planted"
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert converted(path) == text().decode()


def test_only_successes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(textconv, "_WORTH_KEEPING", 0)
    monkeypatch.setattr(textconv, "_CACHED_FROM", 0)
    for name, content in (("m.onnx", binary()[:50]), ("m.onnx.json", text()[:50])):
        (tmp_path / name).write_bytes(content)
        with suppress(OnnxJsonError):
            converted(tmp_path / name)
    assert not (tmp_path / "cache").exists()


def test_full_disk_and_no_place_for_a_cache_are_no_failure(weighty: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    model = files.load(weighty).model
    assert model.graph is not None
    grown = msgspec.structs.replace(model.graph, node=model.graph.node * 3000)
    files.save(msgspec.structs.replace(model, graph=grown), tmp_path / "big.onnx")
    for cache in (tmp_path / "file" / "cache", tmp_path / "cache"):
        result = subprocess.run(
            [*MODULE, str(tmp_path / "big.onnx")],
            env=os.environ | {"XDG_CACHE_HOME": str(cache)},
            capture_output=True,
            timeout=60,
            check=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        )
        assert result.stdout.count(b'"op_type"') == 6000
        assert not [path for path in cache.rglob("*") if path.is_file()]


def test_path_of_a_small_text_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "m.onnx.json").write_bytes(text())
    program = (
        "import sys\nfrom onnxjson.git import textconv\nsys.argv = ['', 'm.onnx.json']\ntextconv.main()\n"
        "heavy = {'numpy', 'onnx', 'google', 'click', 'rich', 'subprocess', 'asyncio', 'orjson'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, timeout=60, check=True)


def test_a_text_in_the_cache_is_shown_without_the_codecs(tmp_path: Path) -> None:
    (tmp_path / "m.onnx.json").write_bytes(text())
    program = (
        "import sys\nfrom onnxjson.git import textconv\ntextconv._WORTH_KEEPING = textconv._CACHED_FROM = 0\n"
        "sys.argv = ['', 'm.onnx.json']\ntextconv.main()\n"
        "print(not sys.modules.keys().isdisjoint({'onnxjson.codecs', 'msgspec'}))"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for loads in (b"True", b"False"):
        words = [sys.executable, "-I", "-c", program]
        shown = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=60, check=True, env=environment).stdout
        assert shown == text() + loads + b"\n"

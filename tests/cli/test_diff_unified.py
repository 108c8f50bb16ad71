"""``onnxjson diff --format unified``."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from onnxjson.diffing.unified import Place, compare_external
from onnxjson.model.document import Graph, Model, StringStringEntry, Tensor
from onnxjson.storage.external import ExternalSlice
from tests.cli.running import run, run_process
from tests.cli.terminal import Terminal

UNIFIED = ("--format", "unified")


@pytest.fixture
def leaky(text: Path) -> Path:
    """The text with another alpha."""
    path = text.with_name("leaky.onnx.json")
    path.write_text(text.read_text(encoding="utf-8").replace('"alpha": 0.01', '"alpha": 0.2'), encoding="utf-8")
    return path


def test_different_models_exit_1(binary: Path, leaky: Path) -> None:
    result = run("diff", *UNIFIED, binary, leaky, "-U", "0")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[2:] == [
        '@@ -26 +26 @@ {"op_type": "LeakyRelu", "output": ["active"]',
        '-       "alpha": 0.01',
        '+       "alpha": 0.2',
    ]
    assert result.stderr == ""


def test_weights_are_compared_by_their_sha256_wherever_they_stand(binary: Path, tmp_path: Path) -> None:
    for mode in ("blobs", "digest"):
        apart = tmp_path / mode / "m.onnx.json"
        apart.parent.mkdir()
        assert run("convert", binary, "-o", apart, "--weights", mode).exit_code == 0
        assert run("diff", *UNIFIED, binary, apart).exit_code == 0
        for blob in tmp_path.glob("blobs/m.blobs/*"):
            blob.unlink()
        assert run("diff", *UNIFIED, apart, binary).exit_code == 0


def test_colours_only_when_asked_for_and_never_in_a_pipe(binary: Path, leaky: Path) -> None:
    assert "\x1b" not in run_process("diff", *UNIFIED, binary, leaky).stdout
    assert (
        '\x1b[31m-       "alpha": 0.01\x1b[0m'
        in run_process("diff", *UNIFIED, "--color", "always", binary, leaky).stdout
    )


def test_pager_that_ends_early_is_no_failure(binary: Path, leaky: Path) -> None:
    with Terminal("diff", *UNIFIED, binary, leaky, more={"PAGER": "true"}) as terminal:
        shown, code = terminal.until_end()
    assert (shown, code) == ("", 1)


@pytest.fixture
def outside(binary: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The example with weights in other files, twice, each in a folder of its own."""
    models = tmp_path / "a" / "m.onnx", tmp_path / "b" / "m.onnx"
    for model in models:
        model.parent.mkdir()
        result = run("convert", binary, "--externalize", "--threshold", "100", "--data-file", "m.data", "-o", model)
        assert result.exit_code == 0
    return models


def test_bytes_in_other_files_are_compared(outside: tuple[Path, Path]) -> None:
    old, new = outside
    assert run("diff", *UNIFIED, old, new) == (0, "", "")
    data = bytearray(new.with_name("m.data").read_bytes())
    data[4099] ^= 1
    new.with_name("m.data").write_bytes(data)
    result = run("diff", *UNIFIED, old, new)
    assert (result.exit_code, result.stderr) == (1, "")
    lines = result.stdout.splitlines()
    assert lines[:2] == [f"--- {old} (external data)", f"+++ {new} (external data)"]
    changed = [line for line in lines[3:] if not line.startswith(" ")]
    digests = [hashlib.sha256(each[4096:]).hexdigest() for each in (old.with_name("m.data").read_bytes(), data)]
    assert changed == [f"-fc.weight: sha256 {digests[0]}", f"+fc.weight: sha256 {digests[1]}"]
    assert run("diff", *UNIFIED, old, new, "--exit-zero").exit_code == 0


def test_bytes_inside_one_model_are_compared_with_those_outside_the_other(
    binary: Path, outside: tuple[Path, Path]
) -> None:
    external, _ = outside
    result = run("diff", *UNIFIED, binary, external)
    assert result.exit_code == 1
    assert "(external data)" not in result.stdout
    data = external.with_name("m.data")
    data.write_bytes(data.read_bytes()[:-1] + b"\x7f")
    for pair in ((binary, external), (external, binary)):
        result = run("diff", *UNIFIED, *pair)
        assert [line[0] for line in result.stdout.splitlines() if "fc.weight: sha256" in line] == ["-", "+"]


def test_weights_that_cannot_be_compared_are_said_and_are_no_sameness(outside: tuple[Path, Path]) -> None:
    old, new = outside
    new.with_name("m.data").unlink()
    for more in ((), ("--exit-zero",)):
        result = run("diff", *UNIFIED, old, new, *more)
        assert (result.exit_code, result.stdout) == (66, "")
        assert result.stderr.count("warning") == 1
        assert "'m.data'" in result.stderr
        assert "the file is missing" in result.stderr
        assert "weights not compared: " in result.stderr
        assert "(the same for 1 more tensor in that file)" in result.stderr
    new.with_name("m.data").symlink_to(old.with_name("m.data"))
    result = run("diff", *UNIFIED, old, new)
    assert result.exit_code == 66
    assert "is a link" in result.stderr


def test_one_range_that_both_models_name_is_not_read(
    outside: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, _ = outside
    again = old.with_name("again.onnx")
    again.write_bytes(old.read_bytes())

    def read(self: ExternalSlice) -> Iterator[bytes]:
        raise AssertionError("the data file is read")

    monkeypatch.setattr(ExternalSlice, "chunks", read)
    assert run("diff", *UNIFIED, old, again) == (0, "", "")


def test_links_to_weights_are_followed_when_they_are_trusted(outside: tuple[Path, Path]) -> None:
    old, new = outside
    data = new.with_name("m.data")
    data.rename(new.with_name("real"))
    data.symlink_to("real")
    assert run("diff", *UNIFIED, old, new).exit_code == 66
    assert run("diff", *UNIFIED, old, new, "--trust-links") == (0, "", "")


def test_external_tensors_of_one_name_are_told_apart_by_address(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(range(16)))

    def external(name: str, offset: int) -> Tensor:
        entries = {"location": "data", "offset": str(offset), "length": "8"}
        pairs = tuple(StringStringEntry(key=key, value=value) for key, value in entries.items())
        return Tensor((8,), data_type=2, name=name, external_data=pairs, data_location=1)

    def place(*offsets: int) -> Place:
        tensors = tuple(external("twin", offset) for offset in offsets)
        return Place(Model(graph=Graph(initializer=tensors)), tmp_path / "m.onnx")

    comparison = compare_external(place(0, 0, 0, 8), place(8, 0, 0, 0))
    first, second = (hashlib.sha256(bytes(each)).hexdigest() for each in (range(8), range(8, 16)))
    assert comparison.old.decode() == (
        f"@/graph/initializer/0: sha256 {first}\n@/graph/initializer/3: sha256 {second}\n"
    )
    assert comparison.new.decode() == (
        f"@/graph/initializer/0: sha256 {second}\n@/graph/initializer/3: sha256 {first}\n"
    )

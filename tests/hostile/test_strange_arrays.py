"""Broken numpy files, shapes that numpy cannot represent: a clear error, never an internal one."""

import io
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.cli.running import run
from tests.hostile.bounds.cases import model

HUGE = "9223372036854775807"


def archive(**arrays: object) -> bytes:
    """A .npz of arrays."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def zipped(name: str, data: bytes) -> bytes:
    """A zip file with one member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr(name, data)
    return file.getvalue()


def npy(shape: str, version: int = 1) -> bytes:
    """A .npy with a shape as it is written in Python."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header


def archives() -> Iterator[tuple[str, bytes]]:
    """Archives that numpy does not read."""
    good = archive(x=np.ones(2, "f4"))
    packed = io.BytesIO()
    np.savez_compressed(packed, x=np.arange(200, dtype="f4"))
    yield from ((f"cut at {end}", good[:end]) for end in range(1, len(good), 17))
    random = Random(0)
    for number in range(60):
        data = bytearray((good, packed.getvalue())[number % 2])
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        yield f"flipped {number}", bytes(data)
    directory = good.rfind(b"PK\1\2")
    for method in (1, 9, 12, 14, 97):
        data = bytearray(good)
        data[8] = data[directory + 10] = method
        yield f"method {method}", bytes(data)
    data = bytearray(good)
    data[6] |= 1
    data[directory + 8] |= 1
    yield "encrypted", bytes(data)
    yield from (("nothing", zipped("x.npy", b"")), ("text", zipped("x.npy", b"text")), ("folder", zipped("x/", b"")))


def arrays() -> Iterator[tuple[str, bytes]]:
    """Arrays that numpy does not read."""
    yield "rank of 65", npy("(" + "1," * 65 + ")")
    yield "rank of 100,000", npy("(" + "1," * 100_000 + ")", version=2)
    for shape in ("(99999999999999999999,)", "(0, 99999999999999999999)", f"(0, {HUGE}, {HUGE})", "(-1,)", "(True,)"):
        yield shape, npy(shape)


def test_numpy_files_that_cannot_be_read_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = model([helper.make_node("Add", ["x", "w"], ["y"])])
    made.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0]))
    Path("a.onnx").write_bytes(made.SerializeToString())
    wrong = []
    for ending, files in ((".npz", archives()), (".npy", arrays())):
        path = f"x{ending}"
        given = path if ending == ".npz" else f"x={path}"
        for name, data in files:
            Path(path).write_bytes(data)
            for command in (
                ("rewrite", "set-tensor", "a.onnx", "w", "--file", path, "--dry-run"),
                ("tensor", "encode", "--from", path),
                *([("run", "a.onnx", "--input", given)] if name[-1] in "0123)d" else []),
            ):
                result = run(*command)
                if result.exit_code not in (0, 65, 66) or (result.exit_code == 0 and "flipped" not in name):
                    wrong.append((name, command[0], result.exit_code, result.stderr[-200:]))
    assert wrong == []


@pytest.mark.parametrize("dims", [HUGE, f"{HUGE},{HUGE}", f"0,{HUGE},{HUGE}", ",".join("2" * 70), ",".join("1" * 65)])
def test_constants_of_shapes_that_do_not_fit_into_memory(
    dims: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for payload in ({"sha256": "0" * 64}, {"base64": ""}):
        graph = {"name": "g", "node": [], "initializer": [{"name": "w", "type": f"float32[{dims}]", **payload}]}
        document = {"format": "onnxjson/1", "weights": "digest", "ir_version": 10, "opset_import": {"": 18}}
        Path("a.onnx.json").write_text(json.dumps(document | {"graph": graph}))
        for command in (
            ("show", "a.onnx.json"),
            ("show", "a.onnx.json", "w"),
            ("check", "a.onnx.json"),
            ("diff", "a.onnx.json", "a.onnx.json"),
            ("rewrite", "cast-tensor", "a.onnx.json", "w", "int64", "--dry-run"),
            ("rewrite", "initializers-to-constants", "a.onnx.json", "--dry-run"),
            ("tensor", "get", "a.onnx.json", "w", "-o", "w.npy"),
        ):
            result = run(*command)
            if result.exit_code not in (0, 1, 65, 66):
                wrong.append((command, payload, result.exit_code, result.stderr[-200:]))
    assert wrong == []


@pytest.mark.parametrize(
    "command", [("run", "a.onnx"), ("verify", "a.onnx", "a.onnx"), ("run", "a.onnx", "--fill", "1")]
)
def test_inputs_of_more_dimensions_than_numpy_has_are_refused(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = model([helper.make_node("Relu", ["x"], ["y"])])
    shape = made.graph.input[0].type.tensor_type.shape
    shape.dim[0].dim_value = 1
    shape.dim.extend([shape.dim[0]] * 64)
    Path("a.onnx").write_bytes(made.SerializeToString())
    result = run(*command)
    assert result.exit_code == 65
    assert "maximum supported dimension" in result.stderr

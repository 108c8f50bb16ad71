"""Models that the campaign found to end in an internal error, as small as they can be."""

from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper

from tests.cli.running import run
from tests.hostile.bounds.cases import model


def with_a_sparse_constant() -> ModelProto:
    made = model([helper.make_node("Add", ["x", "w"], ["y"])])
    values = TensorProto(name="w", data_type=TensorProto.INT4, dims=[0], int32_data=[300, 300])
    made.graph.sparse_initializer.add(values=values, dims=[2**40])
    return made


def named(name: str) -> ModelProto:
    made = model([helper.make_node("Relu", ["x"], ["y"])])
    made.producer_name = made.graph.name = made.domain = name
    return made


@pytest.mark.parametrize(
    ("write", "command", "exit_codes"),
    [
        (with_a_sparse_constant, "rewrite infer-shapes a.onnx -o out.onnx", (0, 65, 76)),
        (lambda: named(" "), "show a.onnx", (0,)),
        (lambda: named("\n"), "show a.onnx", (0,)),
    ],
    ids=["sparse", "space", "line"],
)
def test_it_ends_as_documented(
    write: Callable[[], ModelProto],
    command: str,
    exit_codes: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.onnx").write_bytes(write().SerializeToString())
    result = run(*command.split())
    assert result.exit_code in exit_codes, result.stderr

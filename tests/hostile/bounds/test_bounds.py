"""The work of commands grows with their input, not with its square; what grows faster is refused.

Work is counted in executed lines, so that a test does not depend on the machine. ``python -m tests.hostile.bounds``
measures the same cases in full size.
"""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from onnx import ModelProto

from onnxjson.codecs.reading.tokens import MOST_MISTAKES
from onnxjson.model.errors import DecodeError
from onnxjson.running import engines, expansion
from onnxjson.storage import files
from tests.cli.running import Result, run
from tests.hostile.bounds.cases import CASES, Case, calls, inputs

COUNTED = [case for case in CASES if case.small]


def lines(case: Case, n: int, folder: Path) -> tuple[int, Result]:
    """The number of lines of the package that a command executes, and its result."""
    count = 0

    def in_function(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return in_function

    def called(frame: FrameType, event: str, _: Any) -> Any:
        return in_function if "onnxjson" in frame.f_code.co_filename else None

    case.write(folder, n)
    before = sys.gettrace()
    sys.settrace(called)
    try:
        result = run(*case.command)
    finally:
        sys.settrace(before)
    return count, result


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case.name)
def test_twice_the_input_is_twice_the_work(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for times in (1, 1, 2, 4):  # the first run also imports
        count, result = lines(case, times * case.small, tmp_path)
        assert result.exit_code in case.exit_codes, result.stderr
        found.append(count)
    # Differences leave out what every run needs.
    assert (found[3] - found[2]) <= 2.3 * (found[2] - found[1]) + 100, found


@pytest.mark.parametrize("command", [case for case in CASES if case.write is calls], ids=lambda case: case.name)
def test_calls_of_functions_that_expand_beyond_the_limit_are_refused_at_once(
    command: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command.write(tmp_path, 40)
    result = run(*command.command)
    assert result.exit_code in command.exit_codes
    assert "2,199,023,255,551 nodes, more than the limit of" in result.stdout + result.stderr


def test_expansion_counts_nodes_of_subgraphs_and_functions_that_call_themselves_once(tmp_path: Path) -> None:
    calls(tmp_path, 3)
    data = (tmp_path / "a.onnx").read_bytes()
    with pytest.raises(expansion.ExpansionError, match="expand to 15 nodes, more than the limit of 14"):
        expansion.refuse_expansion(data, 14)
    expansion.refuse_expansion(data, 15)
    expansion.refuse_expansion(data.replace(b"Relu", b"f0f0"), 15)


def test_expansion_counts_nodes_of_subgraphs_in_a_file(tmp_path: Path) -> None:
    calls(tmp_path, 3)
    model = ModelProto.FromString((tmp_path / "a.onnx").read_bytes())
    call = model.graph.node.pop()
    model.graph.node.add(op_type="If").attribute.add(name="then_branch").g.node.append(call)
    model.graph.node.add(op_type="Many").attribute.add(name="graphs").graphs.add().node.append(call)
    (tmp_path / "b.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(expansion.ExpansionError, match="expand to 32 nodes, more than the limit of 31"):
        expansion.refuse_expansion(str(tmp_path / "b.onnx"), 31)


def test_a_fifo_instead_of_an_array_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    case = next(case for case in CASES if case.name == "set-tensor: a fifo")
    case.write(tmp_path, 1)
    for command in (case.command, ("run", "a.onnx", "--input", "x=w.npy"), ("tensor", "encode", "--from", "w.npy")):
        result = run(*command)
        assert result.exit_code in (65, 66), result.stderr
        assert "is not a regular file" in result.stderr


def test_a_run_beyond_its_limit_of_memory_names_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    next(case for case in CASES if case.name == "run: twice as long n times").write(tmp_path, 26)
    result = run("run", "a.onnx")
    assert result.exit_code == 76
    assert "it needs more memory than the limit (--memory)" in result.stderr
    assert run("run", "a.onnx", "--memory", "3G").exit_code == 0


@pytest.mark.parametrize("command", [("run", "a.onnx"), ("verify", "a.onnx", "a.onnx"), ("bench", "a.onnx")])
def test_the_limit_of_time_includes_the_making_of_values(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inputs(tmp_path, 20_000)
    result = run(*command, "--timeout", "0.1")
    assert result.exit_code == 71
    assert "random values for 20,000 inputs exceed the time limit (--timeout)" in result.stderr


def test_many_inputs_run_in_a_time_that_grows_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inputs(tmp_path, 600)
    assert run("verify", "a.onnx", "b.onnx", "--samples", "1").exit_code == 0
    assert engines._MANY < 600


@pytest.mark.parametrize("line", ['"', '"a" "b"', "'", "=", "nan x"])
def test_the_rest_of_a_text_with_thousands_of_mistakes_is_not_read(line: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx.json"
    path.write_text('{\n"format": "onnxjson/1",\n' + f"{line}\n" * 3 * MOST_MISTAKES)
    with pytest.raises(DecodeError) as caught:
        files.load(path)
    assert MOST_MISTAKES <= len(caught.value.findings) < MOST_MISTAKES + 10

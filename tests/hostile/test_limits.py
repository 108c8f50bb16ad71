"""The limits in the table of docs/security.md: beyond it, a refusal with the limit and its option or remedy."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import onnx
import pytest
from onnx import TensorProto, helper

from onnxjson.model.limits import ANALYSIS_BYTES, ANALYSIS_PROCESSOR_SECONDS, ANALYSIS_SECONDS, EXPANDED_RUN_NODES
from onnxjson.running.expansion import ExpansionError, refuse_expansion
from onnxjson.running.worker_protocol import ALLOWED, Limits, allowed_limits
from tests.cli.running import run
from tests.hostile import binaries
from tests.hostile.bounds.cases import calls, expansion, inputs, model
from tests.running.test_worker import HUNGRY

HERE = Path()

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


def big() -> None:
    with open("a.onnx", "wb") as file:
        file.write(binaries.base())
        file.truncate(2**31)


def good() -> None:
    Path("a.onnx").write_bytes(binaries.base())


def deep() -> None:
    Path("a.onnx").write_bytes(binaries.graphs(34))


def deep_text() -> None:
    Path("a.onnx.json").write_text('{"format": "onnxjson/1", "graph": {"input": ' + "[" * 255 + "]" * 255 + "}}")


def endless() -> None:
    calls(HERE, 17)


def hungry() -> None:
    Path("a.onnx").write_bytes(HUNGRY)


def expanding() -> None:
    calls(HERE, 20)


def huge() -> None:
    made = model([helper.make_node("Relu", ["x"], ["y"])])
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2**40
    Path("a.onnx").write_bytes(made.SerializeToString())


def bomb() -> None:
    good()
    with ZipFile("x.npz", "w", ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        for _ in range(17):
            member.write(bytes(1 << 24))


def outside(name: str) -> Callable[[], None]:
    def write() -> None:
        made = model([helper.make_node("Add", ["x", "w"], ["y"])])
        tensor = made.graph.initializer.add(name="w", data_type=1, dims=[2**20], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=name)
        Path("a.onnx").write_bytes(made.SerializeToString())
        with open("w.bin", "wb") as file:
            file.truncate(2**22)
        os.symlink("w.bin", "link.bin")

    return write


LIMITS: dict[str, tuple[Callable[[], None], str, int, str]] = {
    "bytes of a binary model": (big, "show a.onnx", 71, "2,147,483,647"),
    "levels of messages": (deep, "show a.onnx", 71, "100 levels"),
    "levels of a text": (deep_text, "fmt a.onnx.json", 65, "256 levels"),
    "characters of a pattern of names": (good, f"show a.onnx re:{'a' * 501}", 2, "500 are allowed"),
    "levels of a pattern": (good, f"find a.onnx {'Relu(' * 70}_{')' * 70}", 71, "60 levels"),
    "nodes after calls, in a run": (expanding, "run a.onnx", 76, "20,000 (--max-nodes); `onnxjson rewrite inline"),
    "nodes after calls, in an analysis": (expanding, "rewrite infer-shapes a.onnx -o out.onnx", 76, "(--max-nodes)"),
    "memory that a run allocates": (lambda: expansion(HERE, 30), "run a.onnx", 76, "--memory"),
    "seconds of a run": (lambda: inputs(HERE, 20_000), "run a.onnx --timeout 0.1", 71, "--timeout"),
    "bytes of a random input": (huge, "run a.onnx", 65, "--dim"),
    "bytes of an array in a .npz file, packed to less than a hundredth": (
        bomb, "run a.onnx --input x=x.npz", 71, "numpy.savez"
    ),
    "holes of a data file": (outside("w.bin"), "convert a.onnx -o out.onnx --internalize", 78, "--allow-sparse"),
    "links to a data file": (outside("link.bin"), "convert a.onnx -o out.onnx --internalize", 78, "--trust-links"),
}  # fmt: skip
"""What is limited: how a file is made, the command, its exit code, and a part of its message."""


def table() -> dict[str, list[str]]:
    """The rows of the page."""
    part = PAGE.read_text(encoding="utf-8").split("### Limits")[1].split("\n#")[0]
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in part.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows[1:]}


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_beyond_a_limit_is_refused_with_its_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write, command, exit_code, part = LIMITS[name]
    write()
    result = run(*command.split())
    assert result.exit_code == exit_code, result.stderr
    assert part in result.stderr
    assert not Path("out.onnx").exists()
    row = table()[name]
    assert row[1] == str(exit_code)
    options = re.findall("`(--[a-z-]+|onnxjson [a-z -]+)`", row[2])
    assert all(option in result.stderr for option in options), result.stderr
    assert options or row[2] == "none"
    limit = re.match("[0-9,]+", row[0])
    assert {"--memory", "--timeout", "--allow-sparse", "--trust-links"} & {*options} or (
        limit is not None and limit[0] in result.stderr
    ), result.stderr


@pytest.mark.parametrize(
    "command",
    [
        "run a.onnx", "verify a.onnx a.onnx", "bench a.onnx -n 1 --json", "check --deep a.onnx",
        "rewrite inline-functions a.onnx -o out.onnx", "optimize a.onnx -p onnxruntime -o out.onnx",
        "apply script.json a.onnx -o out.onnx",
    ],
)  # fmt: skip
def test_max_nodes_is_the_limit_of_every_command_that_replaces_calls(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls(HERE, 3)
    Path("script.json").write_text('{"format": "onnxjson-rewrite/1", "edits": [{"edit": "infer-shapes"}]}')
    result = run(*command.split(), "--max-nodes", "14")
    assert result.exit_code in (1, 76)
    assert "expand to 15 nodes, more than the limit of 14 (--max-nodes)" in result.stdout + result.stderr
    assert not Path("out.onnx").exists()
    assert run(*command.split(), "--max-nodes", "15").exit_code == 0


def test_max_nodes_raises_the_limit_of_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    calls(HERE, 11)
    model = onnx.load("a.onnx")
    model.graph.node[0].output[0] = "v0"
    for number in range(5):
        model.graph.node.add(
            op_type="f0", domain="f", input=[f"v{number}"], output=[f"v{number + 1}" if number < 4 else "y"]
        )
    onnx.save(model, "a.onnx")
    refused = run("run", "a.onnx")
    assert refused.exit_code == 76
    assert "more than the limit of 20,000 (--max-nodes)" in refused.stderr
    assert run("run", "a.onnx", "--max-nodes", "30000").exit_code == 0


def test_max_nodes_raises_both_limits(tmp_path: Path) -> None:
    calls(tmp_path, 15)
    data = (tmp_path / "a.onnx").read_bytes()
    with pytest.raises(ExpansionError):
        refuse_expansion(data, EXPANDED_RUN_NODES)
    token = ALLOWED.set({"--max-nodes": 70_000})
    refuse_expansion(data, EXPANDED_RUN_NODES)
    ALLOWED.reset(token)
    calls(tmp_path, 19)
    data = (tmp_path / "a.onnx").read_bytes()
    with pytest.raises(ExpansionError, match="limit of 500,000"):
        refuse_expansion(data)
    token = ALLOWED.set({"--max-nodes": 2_000_000})
    refuse_expansion(data)
    ALLOWED.reset(token)


ANALYSIS = {
    "seconds of an analysis": (
        endless, "--timeout 0.2", "does not finish on this model: no answer within 0.2 s (--timeout)"
    ),
    "memory of an analysis": (
        hungry, "--memory 512m", "needs more than 0.5 GiB of memory (--memory) on this model"
    ),
}  # fmt: skip
"""Limits of native analysis: how a file is made, options that lower the limit, and the message."""


@pytest.mark.parametrize("name", ANALYSIS)
@pytest.mark.parametrize(
    "command",
    [
        "check --deep a.onnx",
        "rewrite infer-shapes a.onnx -o out.onnx",
        "apply script.json a.onnx -o out.onnx",
        "optimize a.onnx -p infer-shapes -o out.onnx",
    ],
)
def test_analysis_beyond_a_limit_is_refused_with_it_and_its_option(
    command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write, options, message = ANALYSIS[name]
    write()
    Path("script.json").write_text('{"format": "onnxjson-rewrite/1", "edits": [{"edit": "infer-shapes"}]}')
    result = run(*command.split(), *options.split())
    assert message in result.stdout + result.stderr
    assert result.exit_code == 76
    assert not Path("out.onnx").exists()


@pytest.mark.parametrize("command", ["check --deep", "run", "optimize -p prune", "fleet show"])
@pytest.mark.parametrize("seconds", ["inf", "nan", "1000001", "1e300"])
def test_a_time_limit_that_the_system_cannot_wait_for_is_refused(command: str, seconds: str, tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(binaries.base())
    result = run(*command.split(), str(tmp_path / "a.onnx"), "--timeout", seconds)
    assert result.exit_code == 2
    assert "is not a time limit of at most 1,000,000 seconds" in result.stderr


def test_options_raise_the_limits_of_an_analysis() -> None:
    assert allowed_limits() == Limits(memory=ANALYSIS_BYTES, wall_seconds=ANALYSIS_SECONDS)
    token = ALLOWED.set({"--timeout": 90.5, "--memory": 3 << 30})
    assert allowed_limits() == Limits(memory=3 << 30, wall_seconds=90.5, processor_seconds=91)
    ALLOWED.reset(token)


def test_the_page_has_the_limits_of_an_analysis() -> None:
    rows = table()
    seconds, memory = rows["seconds of an analysis"], rows["memory of an analysis"]
    assert seconds == [f"{ANALYSIS_SECONDS:g}, or {ANALYSIS_PROCESSOR_SECONDS} of CPU time", "76", "`--timeout`"]
    assert memory == [f"{ANALYSIS_BYTES >> 30} GiB, or 4 times the model", "76", "`--memory`"]


def test_the_page_has_every_limit_that_is_tested_and_no_other() -> None:
    assert set(table()) == LIMITS.keys() | ANALYSIS.keys()

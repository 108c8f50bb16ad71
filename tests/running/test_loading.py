"""Models that onnxruntime loads, refuses, or cannot judge; changes whose results are refused."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import onnxjson
from onnxjson import Model, edits
from onnxjson.model.errors import PassError, UnloadableError
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.running import loading
from onnxjson.running.checking import check
from onnxjson.running.loading import Loading, require_loadable, try_loading
from onnxjson.running.worker import Worker
from onnxjson.serving.permissions import Permissions
from onnxjson.serving.tools import Tools
from tests.cli.running import run
from tests.running import small_models
from tests.running.small_models import Shape

FLOAT = TensorProto.FLOAT


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as made:
        yield made


def model(
    nodes: list[NodeProto],
    dims: Shape,
    constants: Mapping[str, Any] | None = None,
    *,
    dtype: int = FLOAT,
    **versions: Any,
) -> Model:
    """A model of one input x and one output y of the same dtype."""
    made = small_models.model(nodes, {"x": (dtype, dims)}, ["y"], constants, **versions)
    proto = onnxjson.to_proto(made)
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", dtype, [None] * len(dims or ())))
    return onnxjson.from_proto(proto)


def folded(width: int = 2) -> Model:
    """A product with a constant of 2 columns, whose shape is computed from a constant too big for an inference."""
    sizes = np.zeros((2000, 2), np.float32)
    sizes[7] = 3, 2
    nodes = [
        helper.make_node("ReduceMax", ["sizes", "axes"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["shape"], to=TensorProto.INT64),
        helper.make_node("Expand", ["one", "shape"], ["scale"]),
        helper.make_node("Mul", ["x", "scale"], ["y"], "multiply"),
    ]
    return model(nodes, [3, width], {"sizes": sizes, "axes": np.array([0]), "one": np.ones((1, 1), np.float32)})


def gathered(length: int) -> Model:
    """A choice from 4 rows, as many as x has elements."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Squeeze", ["shape", "axes"], ["end"]),
        helper.make_node("Range", ["start", "end", "step"], ["places"]),
        helper.make_node("Gather", ["table", "places"], ["y"], "choose"),
    ]
    constants = {"axes": np.array([0]), "start": np.array(0), "step": np.array(1), "table": np.ones(4, np.float32)}
    return model(nodes, [length], constants)


def test_a_model_that_fits_loads_and_runs(worker: Worker) -> None:
    assert try_loading(folded(), None, worker) == Loading(state="loads", ran="runs")


def test_what_only_onnxruntime_computes_is_found_and_placed(worker: Worker) -> None:
    wrong = folded(5)
    assert not [each for each in check(wrong, deep=True) if each.code in ("check-model", "check-shapes")]
    loading = try_loading(wrong, None, worker)
    assert (loading.state, loading.address, loading.is_certain) == ("fails", "/graph/node/3", True)
    assert "multiply" in loading.reason
    assert "Incompatible dimensions" in loading.reason
    assert "ONNXRuntimeError" not in loading.reason


def test_check_deep_has_one_finding_for_each_cause() -> None:
    (finding,) = check(folded(5), deep=True)
    assert (finding.code, finding.severity, finding.address) == ("check-load", "error", "/graph/node/3")
    nodes = [helper.make_node("Relu", ["x", "x"], ["y"])]
    codes = [each.code for each in check(model(nodes, [2]), deep=True)]
    assert codes
    assert "check-load" not in codes


def test_what_cannot_be_judged_is_said_and_no_error(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    absolute = [helper.make_node("Abs", ["x"], ["y"])]
    own = model([helper.make_node("Mine", ["x"], ["y"], domain="own")], [2])
    newer = model(absolute, [2], opset=999)
    later = model(absolute, [2], ir_version=99)
    for wrong, state, word in (
        (own, "not-tried", "own::Mine"), (newer, "too-new", "Opset 999"), (later, "too-new", "IR version: 99")
    ):  # fmt: skip
        found = try_loading(wrong, None, worker)
        assert found.state == state
        assert word in found.reason
    lacking = model(absolute, [2], dtype=TensorProto.BFLOAT16)
    findings = check(lacking, deep=True)
    assert [(each.code, each.severity) for each in findings] == [("check-load", "warning")]
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    found = try_loading(folded(), None, worker)
    assert (found.state, found.reason) == ("not-tried", "onnxruntime is not installed")
    (finding,) = check(folded(), deep=True)
    assert (finding.code, finding.severity) == ("check-load", "warning")


def test_a_big_model_is_loaded_without_its_weights(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]

    def made(rows: int) -> Model:
        return model(nodes, [1, rows], {"w": np.zeros((64, 64), np.float32)})

    monkeypatch.setattr(loading, "_WHOLE", 0)
    found = try_loading(made(64), None, worker)
    problem = "its weights, 16,384 bytes, are not loaded"
    assert (found.state, found.ran, found.run_problem) == ("loads", "not-run", problem)
    assert try_loading(made(63), None, worker).state == "fails"
    (finding,) = check(made(64), deep=True)
    assert (finding.code, finding.severity) == ("check-load", "warning")
    assert "it was not run: its weights, 16,384 bytes" in finding.message


def test_sizes_that_were_only_chosen_condemn_no_model() -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    (finding,) = check(model(nodes, ["N", 1], {"shape": np.array([-1, 3])}), deep=True)
    assert (finding.code, finding.severity) == ("check-load", "warning")
    assert "not run: with the sizes chosen for its dynamic dimensions it fails" in finding.message


def test_a_long_run_ends(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_RUN_SECONDS", 1e-3)
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y"])]
    found = try_loading(model(nodes, [1500, 1500]), None, worker)
    assert found.state == "loads"
    assert found.ran == "slow"


def test_only_what_loaded_before_is_refused(worker: Worker) -> None:
    assert require_loadable(folded(3), folded(5), None, worker) == ()
    assert require_loadable(folded(5), folded(), None, worker) == ()
    reason = r"^onnxruntime loads the model .*/graph/node/3: .*--unloadable"
    with pytest.raises(UnloadableError, match=reason) as caught:
        require_loadable(folded(), folded(5), None, worker)
    assert caught.value.address == "/graph/node/3"


def test_known_sizes_with_which_it_no_longer_runs_are_refused(worker: Worker) -> None:
    assert try_loading(gathered(3), None, worker).ran == "runs"
    with pytest.raises(UnloadableError, match=r"^onnxruntime runs the model .*/graph/node/3: .*out of data bounds"):
        require_loadable(gathered(3), gathered(9), None, worker)


SHAPE = '{"edit": "set-shape", "tensor": "x", "shape": [3, 5]}'


def test_an_edit_writes_nothing_that_no_longer_loads(tmp_path: Path) -> None:
    given, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnxjson.save(folded(), given)
    script = tmp_path / "s.json"
    script.write_text(f'{{"format": "onnxjson-rewrite/1", "edits": [{SHAPE}]}}')
    for words in (("rewrite", "set-shape", given, "x", "3,5"), ("apply", script, given)):
        result = run(*words, "-o", out)
        assert result.exit_code == 65
        assert "multiply" in result.stderr
        assert "--unloadable" in result.stderr
        assert not out.exists()
    assert run("rewrite", "set-shape", given, "x", "3,5", "-o", out, "--unloadable").exit_code == 0
    assert out.exists()


@pytest.mark.parametrize("edit", [
    "set-ir-version{version=99}", "stamp-opset{version=99}", "set-tensor{tensor=sizes,at=7:8,value=7}"
])  # fmt: skip
def test_every_edit_is_tried(edit: str, tmp_path: Path) -> None:
    given, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnxjson.save(folded(), given)
    values = [f"--{each}" for each in edit.partition("{")[2].strip("}").split(",")]
    commands: list[list[str | Path]] = [
        ["rewrite", edit.partition("{")[0], given, *values],
        ["optimize", given, "-p", edit],
    ]
    for command in commands:
        refused = run(*command, "-o", out)
        assert "onnxruntime loads the model before the change, but not the result" in refused.stderr, refused.stderr
        assert "--unloadable writes it anyway" in refused.stderr
        assert not out.exists()
        assert run(*command, "-o", out, "--unloadable").exit_code == 0
        out.unlink()


def test_texts_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = [edits.SetDoc(text="new"), edits.SetMetadata(key="a", value="b"), edits.SetDoc(text="new", node="op:Mul")]
    monkeypatch.setattr(loading, "try_loading", lambda *_, **__: pytest.fail("it is loaded"))
    assert require_loadable(folded(), onnxjson.apply(folded(), changed), None) == ()


def test_the_pass_that_made_an_unloadable_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text(f'{{"format": "onnxjson-rewrite/1", "edits": [{SHAPE}]}}')
    steps = [parse_step(each) for each in ("name-nodes", str(tmp_path / "wrong.json"), "onnxoptimizer:nop", "prune")]
    with Pipeline() as pipeline:
        made = []
        with pytest.raises(PassError, match=r"wrong\.json: onnxruntime loads") as caught:
            made += list(pipeline.run(folded(), steps))
    assert caught.value.name.endswith("wrong.json")
    with Pipeline(keep_going=True) as pipeline:
        results = list(pipeline.run(folded(), steps))
        assert [each.failure is not None for each in results] == [False, True, False, False]
        assert try_loading(results[-1].after.model, None).state == "loads"
    with Pipeline(unloadable=True) as pipeline:
        assert try_loading(list(pipeline.run(folded(), steps))[-1].after.model, None).state == "fails"


def test_tools_of_agents_save_nothing_that_no_longer_loads(tmp_path: Path) -> None:
    onnxjson.save(folded(), tmp_path / "m.onnx")
    edits = [{"edit": "set-shape", "tensor": "x", "shape": [3, 5]}]
    with pytest.raises(UnloadableError):
        Tools(Permissions(writable=tmp_path)).apply(str(tmp_path / "m.onnx"), edits, str(tmp_path / "out.onnx"))
    assert not (tmp_path / "out.onnx").exists()

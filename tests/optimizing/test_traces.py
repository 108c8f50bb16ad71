"""What a trace says of passes and their parts, and that its patches lead from the first model to the last."""

import hashlib
import json
import random
from pathlib import Path

import pytest

from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, MissingInputError, OutputError
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.optimizing.passes.big_constants import stage_of
from onnxjson.optimizing.passes.declaration import is_installed
from onnxjson.optimizing.provenance import provenance
from onnxjson.optimizing.trace_records import Recorder, Trace
from onnxjson.optimizing.trace_storing import load_trace, write_trace
from onnxjson.storage import files
from tests.optimizing.networks import branch, convolution

MODELS = Path(__file__).parent.parent / "models"

needs_onnxoptimizer = pytest.mark.skipif(not is_installed("onnxoptimizer"), reason="onnxoptimizer is not installed")
needs_onnxscript = pytest.mark.skipif(not is_installed("onnxscript"), reason="onnxscript is not installed")


def traced(model: Model, *passes: str, parts: bool = True) -> tuple[Trace, Model]:
    """The trace of passes, and the model that they give."""
    with Pipeline(keep_going=True) as pipeline:
        recorder = Recorder("m.onnx", stage_of(model), pipeline if parts else None)
        last = model
        for made in pipeline.run(model, [parse_step(each) for each in passes]):
            recorder.add(made)
            last = made.after.model
        return recorder.trace(), last


def names(trace: Trace) -> list[str]:
    return [part.name for part in trace.parts()]


def kinds(trace: Trace, name: str) -> set[tuple[str, str]]:
    return {(event.kind, event.pattern) for part in trace.parts() if part.name == name for event in part.events}


@needs_onnxoptimizer
def test_fusing_batch_normalization_alone_is_shown_as_nine_more_nodes() -> None:
    trace, _ = traced(convolution(), "onnxoptimizer:fuse_bn_into_conv")
    (part,) = trace.parts()
    assert part.name == "fuse_bn_into_conv"
    assert part.after.nodes - trace.before.nodes == 9
    (left,) = [event for event in part.events if event.kind == "decomposed"]
    assert "Sqrt" in left.pattern
    assert ("eliminated", "BatchNormalization") in kinds(trace, "fuse_bn_into_conv")


@pytest.mark.parametrize("with_reshape", [True, False])
def test_onnxruntime_is_told_apart_by_rule_and_by_graph_transformer(with_reshape: bool) -> None:
    trace, last = traced(convolution(with_reshape=with_reshape), "onnxruntime{level=extended}")
    assert [name for name in names(trace) if name != "reading and writing"] == ["ConvBNFusion", "ConvActivationFusion"]
    assert ("fused", "Conv+BatchNormalization -> Conv") in kinds(trace, "ConvBNFusion")
    assert ("fused", "Conv+Relu -> com.microsoft::FusedConv") in kinds(trace, "ConvActivationFusion")
    assert message_bytes(trace.last) == message_bytes(last)


def test_a_disabled_rule_does_not_fire() -> None:
    trace, _ = traced(convolution(), "onnxruntime{level=extended,disable=[ConvBNFusion]}")
    assert "ConvBNFusion" not in names(trace)
    assert trace.after.operators["BatchNormalization"] == 1


def test_levels_with_layouts_say_which_machine_they_are_for() -> None:
    (level,) = traced(convolution(), "onnxruntime{level=layout}")[0].steps
    (plain,) = traced(convolution(), "onnxruntime{level=extended}")[0].steps
    if any(name.startswith("com.microsoft.nchwc::") for name in level.parts[-1].after.operators):
        assert any(note.startswith("optimized for this machine (") for note in level.notes)
    assert not any("machine" in note for note in plain.notes)


@needs_onnxscript
def test_onnxscript_is_told_apart_by_rule() -> None:
    trace, _ = traced(convolution(), "onnxscript:default_rules")
    assert names(trace)[-1] == "FuseBatchNormIntoConv"


@needs_onnxoptimizer
def test_onnxoptimizer_is_told_apart_by_pass() -> None:
    trace, _ = traced(files.load(MODELS / "encoder_ts.onnx").model, "onnxoptimizer")
    assert "extract_constant_to_initializer" in names(trace)
    assert len(names(trace)) > 2


def test_what_cannot_be_told_apart_is_said_and_the_pass_is_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxjson.model.errors import PassError

    def fail(*_: object) -> None:
        raise PassError("it crashed", "onnxruntime")

    monkeypatch.setattr(Pipeline, "parts", fail)
    trace, _ = traced(convolution(), "onnxruntime")
    assert names(trace) == [""]
    assert trace.steps[0].notes[-1] == "recorded as one step, because its parts do not run one by one: it crashed"


def test_a_pass_that_fails_or_changes_nothing_has_no_parts(tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("def optimize(model):\n    return model")
    (tmp_path / "bad.py").write_text("def optimize(model):\n    raise ValueError('no')")
    trace, last = traced(convolution(), str(tmp_path / "none.py"), str(tmp_path / "bad.py"))
    assert [step.parts for step in trace.steps] == [(), ()]
    assert trace.steps[0].failure is None
    assert "no" in (trace.steps[1].failure or "")
    assert trace.last is trace.first
    assert trace.last_sha256 == trace.first_sha256 == hashlib.sha256(message_bytes(last)).hexdigest()


POOL = [
    "onnxruntime{level=basic}", "onnxruntime{level=extended}", "onnxruntime{level=all}", "onnxoptimizer",
    "onnxoptimizer:eliminate_identity", "onnxoptimizer:fuse_bn_into_conv",
    "onnxoptimizer:extract_constant_to_initializer", "onnxscript", "onnxscript:default_rules", "onnxsim", "float16",
    "prune", "name-nodes", "constants-to-initializers", "deduplicate-initializers",
]  # fmt: skip
MADE = {"convolution": convolution, "branch": branch}
EXPORTED = ["branches_ts.onnx", "encoder_ts.onnx", "mobile_dynamo.onnx"]


@pytest.mark.parametrize("seed", range(12))
def test_patches_in_turn_give_the_last_model_byte_for_byte(seed: int, tmp_path: Path) -> None:
    numbers = random.Random(seed)
    name = numbers.choice([*MADE, *EXPORTED])
    model = MADE[name]() if name in MADE else files.load(MODELS / name).model
    trace, last = traced(model, *numbers.sample(POOL, numbers.randint(1, 4)))
    write_trace(trace, tmp_path / "t")
    loaded = load_trace(tmp_path / "t")
    assert loaded == trace
    made = loaded.first
    for part in loaded.parts():
        made = part.patch.apply(made)
    assert message_bytes(made) == message_bytes(last)
    assert hashlib.sha256(message_bytes(made)).hexdigest() == loaded.last_sha256
    found = provenance(loaded)
    assert all(story.nodes or story.touches for story in found.origins.values())
    assert all(story.nodes or story.touches for story in found.fates.values())


def test_no_payload_stands_twice(tmp_path: Path) -> None:
    text = (
        "def optimize(model):\n"
        "    import numpy, onnx\n"
        "    new = onnx.numpy_helper.from_array(numpy.arange(5000, dtype=numpy.float32), 'extra')\n"
        "    names = [each.name for each in model.graph.initializer]\n"
        "    if 'extra' in names:\n"
        "        del model.graph.initializer[names.index('extra')]\n"
        "    else:\n"
        "        model.graph.initializer.append(new)\n"
        "    return model\n"
    )
    (tmp_path / "toggle.py").write_text(text)
    trace, last = traced(convolution(), *[str(tmp_path / "toggle.py")] * 4)
    write_trace(trace, tmp_path / "t")
    texts = [path.read_text() for path in sorted((tmp_path / "t" / "patches").iterdir())]
    assert [len(each) > 20_000 for each in texts] == [True, False, False, False]
    assert message_bytes(load_trace(tmp_path / "t").last) == message_bytes(last)


def test_a_trace_takes_the_place_of_a_trace_and_of_nothing_else(tmp_path: Path) -> None:
    trace, _ = traced(convolution(), "prune", "name-nodes", "onnxruntime")
    shorter, _ = traced(convolution(), "prune")
    write_trace(trace, tmp_path / "t")
    write_trace(shorter, tmp_path / "t")
    assert load_trace(tmp_path / "t") == shorter
    for name in ("t/mine.txt", "t/patches/mine.json"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(OutputError, match="name a new folder"):
            write_trace(trace, tmp_path / "t")
        (tmp_path / name).unlink()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="is not a folder"):
        write_trace(trace, tmp_path / "file")


def test_what_is_no_trace_is_refused_by_name(tmp_path: Path) -> None:
    trace, _ = traced(convolution(), "onnxruntime")
    with pytest.raises(MissingInputError, match="contains no trace"):
        load_trace(tmp_path)
    write_trace(trace, tmp_path / "t")
    index = tmp_path / "t" / "trace.json"
    good = json.loads(index.read_text())
    changes: list[dict[str, object]] = [
        {"format": "onnxjson-trace/2"},
        {"steps": [{}]},
        {"more": 1},
        {"source": 3},
        {"steps": [good["steps"][0] | {"parts": [good["steps"][0]["parts"][0] | {"patch": "../../x"}]}]},
    ]
    for change in changes:
        index.write_text(json.dumps(good | change))
        with pytest.raises(DecodeError):
            load_trace(tmp_path / "t")
    for text in ("", "[", "[1]", "[" * 100_000, '"x"'):
        index.write_text(text)
        with pytest.raises(DecodeError):
            load_trace(tmp_path / "t")


def test_names_that_are_no_utf8_come_back(tmp_path: Path) -> None:
    from msgspec.structs import replace

    model = convolution()
    assert model.graph is not None
    nodes = [replace(node, name=f"{node.name}\udcff") for node in model.graph.node]
    trace, _ = traced(
        replace(model, graph=replace(model.graph, node=tuple(nodes))), "name-nodes", "prune", "prefix{prefix=m_}"
    )
    write_trace(trace, tmp_path / "t")
    assert load_trace(tmp_path / "t") == trace

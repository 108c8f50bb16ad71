"""Pipelines: stages, repetition, edits and functions as passes, what is lost, what stands in files."""

from importlib import metadata
from pathlib import Path

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson import example
from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Model
from onnxjson.model.errors import PassError
from onnxjson.optimizing.passes import PassResult, Pipeline, declaration, parse_step, user
from onnxjson.optimizing.passes.big_constants import InternalizedModel
from onnxjson.optimizing.passes.catalogue import entries
from onnxjson.optimizing.passes.losses import losses
from onnxjson.optimizing.passes.simplifiers import Onnxsim
from onnxjson.rendering.pass_list import lines
from onnxjson.storage import api
from onnxjson.storage.external_files import externalize


@pytest.fixture
def model() -> Model:
    return api.from_proto(example.make_example())


def made_by(model: Model, *passes: str) -> list[PassResult]:
    with Pipeline() as pipeline:
        return list(pipeline.run(model, [parse_step(each) for each in passes]))


def in_file(folder: Path, text: str, name: str = "mine.py") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_each_stage_is_what_the_one_before_gave(model: Model) -> None:
    found = made_by(model, "onnxoptimizer", "prune", "name-nodes", "onnxoptimizer:nop")
    assert [each.before for each in found[1:]] == [each.after for each in found[:-1]]
    for each in found:
        assert serde.parse(each.after.data).model == each.after.model
        assert each.is_changed == (each.after.data != each.before.data)


def test_a_pass_that_changes_no_byte_gives_the_very_stage_it_got(model: Model) -> None:
    (once, twice) = made_by(model, "onnxoptimizer:nop", "onnxoptimizer:nop")
    assert twice.after is twice.before is once.after


def test_a_star_repeats_until_the_bytes_stand_still(model: Model, tmp_path: Path) -> None:
    text = "def optimize(model):\n    model.model_version = min(model.model_version + 1, 4)\n    return model"
    start = replace(model, model_version=0)
    (made,) = made_by(start, in_file(tmp_path, text) + "*")
    assert (made.after.model.model_version, made.rounds, made.notes) == (4, 5, ())
    assert ", 5 rounds" in lines(made)[0]


def test_a_star_ends_after_ten_rounds_and_says_so(model: Model, tmp_path: Path) -> None:
    text = "def optimize(model):\n    model.model_version += 1\n    return model"
    (made,) = made_by(replace(model, model_version=0), in_file(tmp_path, text) + "*")
    assert (made.after.model.model_version, made.rounds) == (10, 10)
    assert made.notes == ("it still changes the model after 10 rounds",)


def test_growth_of_more_than_a_tenth_is_marked(model: Model, tmp_path: Path) -> None:
    grow = "def optimize(model, by):\n    model.doc_string = 'x' * by\n    return model"
    size = len(message_bytes(model))
    file = in_file(tmp_path, grow)
    (some,) = made_by(model, f"{file}{{by={size // 11}}}")
    (more,) = made_by(model, f"{file}{{by={size // 2}}}")
    assert not any("grew" in line for line in lines(some))
    assert lines(more)[1].startswith("  the model grew by ")


def test_edits_and_scripts_are_passes(model: Model, tmp_path: Path) -> None:
    script = in_file(tmp_path, '{"format": "onnxjson-rewrite/1", "edits": [{"edit": "prune"}]}', "script.json")
    edit = "set-attribute{node=op:LeakyRelu,attribute=alpha,value=0.5}"
    changed, pruned = made_by(model, edit, script)
    assert changed.is_changed
    assert not pruned.is_changed
    assert changed.after.model == onnxjson.apply(
        model, onnxjson.edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.5)
    )


def test_an_edit_that_cannot_be_made_is_a_pass_that_failed(model: Model) -> None:
    with pytest.raises(PassError, match=r"set-attribute\{.*\}: .*Nothing"):
        made_by(model, "set-attribute{node=op:Nothing,attribute=a,value=1}")


def test_a_rewrite_script_in_python_runs_in_the_sandboxed_process(model: Model, tmp_path: Path) -> None:
    text = (
        "import os\nfrom onnxjson import edits\n"
        f"def rewrite(model):\n    assert os.getpid() != {__import__('os').getpid()}\n"
        "    return edits.SetMetadata(key='k', value='v')"
    )
    (made,) = made_by(model, in_file(tmp_path, text))
    assert [(each.key, each.value) for each in made.after.model.metadata_props][-1] == ("k", "v")


def test_a_function_of_another_package_is_a_pass(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = metadata.EntryPoint("stamp", "onnxjson.example:make_example", user.GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda group: metadata.EntryPoints([entry]) if group else ())
    step = parse_step("stamp{strength=2}")
    assert (str(step), step.subject.name) == ("stamp{strength=2}", "stamp")


def test_a_function_of_another_package_does_not_take_the_name_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [metadata.EntryPoint(name, "onnxjson.example:make_example", user.GROUP) for name in ("prune", "stamp")]
    monkeypatch.setattr(metadata, "entry_points", lambda group: metadata.EntryPoints(points) if group else ())
    found = {entry.name: entry.problem for entry in entries() if entry.kind == "plugin"}
    assert found == {"prune": "another pass has this name", "stamp": None}
    assert not isinstance(parse_step("prune").subject, user.PluginPass)


def test_what_is_not_installed_is_told_before_anything_runs(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declaration, "is_installed", lambda package: package != "onnxsim")
    file = in_file(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')\ndef optimize(model): return model")
    with pytest.raises(
        PassError, match=r"onnxsim cannot be used: it needs onnxsim, which is not installed; "
    ) as caught:
        made_by(model, file, "onnxsim")
    assert str(caught.value).endswith("-m pip install onnxsim")
    assert not (tmp_path / "ran").exists()


def test_stamps_of_onnxsim_are_removed_unless_they_are_kept(model: Model) -> None:
    (made,) = made_by(model, "onnxsim")
    keys = [each.key or "" for each in made.after.model.metadata_props]
    assert not [key for key in keys if key.startswith("onnxsim.")]
    assert Onnxsim().keep_stamps is False


def test_losses_are_named() -> None:
    proto = example.make_example()
    proto.doc_string = "said"
    proto.graph.doc_string = "said"
    proto.metadata_props.add(key="k", value="v")
    proto.graph.node[0].doc_string = "said"
    proto.graph.node[1].metadata_props.add(key="k", value="v")
    before = serde.from_proto(proto)
    after = type(proto)()
    after.CopyFrom(proto)
    after.ClearField("doc_string")
    after.ClearField("metadata_props")
    after.graph.ClearField("doc_string")
    after.graph.node[0].ClearField("doc_string")
    after.graph.node[0].ClearField("name")
    after.graph.node[1].ClearField("metadata_props")
    after.graph.input[0].type.tensor_type.elem_type = 10
    after.graph.output[0].name = "other"
    after.ir_version += 1
    after.opset_import[0].version += 1
    after.opset_import.add(domain="com.microsoft", version=1)
    found = losses(before, serde.from_proto(after))
    opset = proto.opset_import[0].version
    assert found == (
        f"ir_version changed from {proto.ir_version} to {proto.ir_version + 1}",
        f"operator sets changed: ai.onnx {opset} -> {opset + 1}",
        "operator sets added: com.microsoft 1",
        "metadata of the model is lost: k",
        "doc_string of the model is lost",
        f"1 remaining node lost its metadata: {proto.graph.node[1].name}",
        f"1 remaining node lost its doc_string: {proto.graph.node[0].name}",
        f"1 remaining node lost its name: {proto.graph.node[0].name}",
        "doc_string of the graph is lost",
        f"inputs have other types: {proto.graph.input[0].name}",
        f"outputs are removed: {proto.graph.output[0].name}",
        "outputs are added: other",
    )
    assert losses(before, before) == ()


def test_tensors_that_no_pass_touched_stay_in_their_files(tmp_path: Path) -> None:
    source = Path(__file__).parent.parent / "models" / "mobile_ts.onnx"
    outside = tmp_path / "m.onnx"
    onnxjson.save(externalize(onnxjson.load(source), tmp_path / "m.data", threshold=1024).model, outside)
    model = onnxjson.load(outside)
    inside = InternalizedModel(model, tmp_path)
    assert inside.model == onnxjson.load(source)
    assert inside.restored(inside.model) == model
    assert model.graph is not None
    (made,) = made_by(inside.model, "onnxoptimizer:eliminate_identity")
    after = inside.restored(made.after.model)
    assert after.graph is not None
    assert sum(each.data_location == 1 for each in after.graph.initializer) == sum(
        each.data_location == 1 for each in model.graph.initializer
    )

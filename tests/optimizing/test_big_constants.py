"""Passes on models whose constants do not fit into a message: the same results, and no constant read without need."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.cli import changing
from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.editing.applying import new_findings
from onnxjson.model.document import Graph, Model, Tensor
from onnxjson.model.errors import LimitError, PassError
from onnxjson.model.payloads import whole
from onnxjson.model.tensors import from_numpy, is_external
from onnxjson.model.walking import replace_records, tensors_of
from onnxjson.optimizing.passes import PassResult, Pipeline, big_constants, parse_step
from onnxjson.optimizing.passes.big_constants import InternalizedModel, Substituted, stage_of
from onnxjson.optimizing.passes.declaration import WRITTEN
from onnxjson.optimizing.passes.float16 import Float16
from onnxjson.optimizing.passes.simplifiers import Onnxoptimizer
from onnxjson.running.sandbox import pack_model
from onnxjson.storage import api, external_files, files
from onnxjson.storage.external_files import externalize, internalize
from tests.benchmarks.llama import Llama, small, write
from tests.cli.running import run as cli
from tests.editing.graphs import model_of

MODELS = Path(__file__).parent.parent / "models"


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Limits that small models exceed."""
    monkeypatch.setattr(big_constants, "LIMIT", 4000)
    monkeypatch.setattr(big_constants, "VISIBLE", 1024)
    return monkeypatch


def made_by(spec: str, model: Model, folder: Path | None = None) -> PassResult:
    with Pipeline() as pipeline:
        (made,) = pipeline.run(model, [parse_step(spec)], folder)
    return made


def whole_result(spec: str, model: Model, limits: pytest.MonkeyPatch) -> Model:
    with limits.context() as context:
        context.setattr(big_constants, "LIMIT", 1 << 31)
        return made_by(spec, model).after.model


def light(spec: str, model: Model, folder: Path) -> PassResult:
    outside = externalize(model, folder / "weights.data", threshold=1).model
    return made_by(spec, InternalizedModel(outside, folder).model, folder)


def sorted_constants(model: Model, folder: Path) -> bytes:
    """The model with all constants in it, in the order of their names, which passes are free to choose."""
    model = internalize(model, folder)
    assert model.graph is not None
    constants = [replace(each, external_data=()) for each in model.graph.initializer]
    graph = replace(
        model.graph,
        initializer=tuple(sorted(constants, key=lambda each: each.name or "")),
        value_info=tuple(sorted(model.graph.value_info, key=lambda each: each.name or "")),
    )
    return message_bytes(replace(model, graph=graph))


def llama(**sizes: int) -> Model:
    return api.from_proto(small(Llama(transposed=False, **sizes)))


SLOW = ("onnxscript:default_rules", "quantize-weights", "transformers{model_type=gpt2,num_heads=4,hidden_size=32}")


@pytest.mark.parametrize(
    "spec",
    ["onnxoptimizer", "onnxslim", "onnxruntime{level=extended}", "float16",
     *[pytest.param(each, marks=pytest.mark.exhaustive) for each in SLOW]],
)  # fmt: skip
def test_the_result_is_that_of_the_pass_on_the_whole_model(
    spec: str, tmp_path: Path, limits: pytest.MonkeyPatch
) -> None:
    model = llama()
    made = light(spec, model, tmp_path)
    assert made.is_changed
    assert sorted_constants(made.after.model, tmp_path) == sorted_constants(whole_result(spec, model, limits), tmp_path)


@pytest.mark.parametrize("preprocess", ["true", "false"])
@pytest.mark.parametrize("limit", [100_000, 4000])
def test_weights_are_quantized_from_files_to_a_file(
    limit: int, preprocess: str, tmp_path: Path, limits: pytest.MonkeyPatch
) -> None:
    """The model does not fit into a message; with the smaller limit neither does the result."""
    limits.setattr(big_constants, "LIMIT", limit)
    model, spec = llama(inner=160), f"quantize-dynamic{{preprocess={preprocess}}}"
    light_model = light(spec, model, tmp_path)
    assert light_model.before.is_big
    assert "MatMulInteger" in {node.op_type for node in (light_model.after.model.graph or Graph()).node}
    assert not [each for each in tensors_of(light_model.after.model) if WRITTEN in str(each.external_data)]
    assert sorted_constants(light_model.after.model, tmp_path) == sorted_constants(
        whole_result(spec, model, limits), tmp_path
    )


@pytest.mark.parametrize("name", ["encoder_ts", "mobile_ts", "mobile_dynamo"])
@pytest.mark.parametrize("spec", ["onnxoptimizer", "onnxruntime"])
def test_the_result_is_the_same_for_exported_models(
    name: str, spec: str, tmp_path: Path, limits: pytest.MonkeyPatch
) -> None:
    model = files.load(MODELS / f"{name}.onnx").model
    found = sorted_constants(light(spec, model, tmp_path).after.model, tmp_path)
    assert found == sorted_constants(whole_result(spec, model, limits), tmp_path)


@pytest.mark.parametrize("spec", ["onnxsim", "onnxruntime"])
def test_no_constant_is_made_from_a_big_one_and_the_remark_tells_so(spec: str, tmp_path: Path) -> None:
    model = api.from_proto(small(Llama(layers=1)))
    light_model = light(spec, model, tmp_path)
    assert light_model.after.model.graph is not None
    assert "not available for folding" in light_model.notes[-1]
    assert sum(node.op_type == "Transpose" for node in light_model.after.model.graph.node) >= 8
    assert {each.name for each in light_model.after.model.graph.input} == {each.name for each in model.graph.input}  # type: ignore[union-attr]
    for each in tensors_of(light_model.after.model):
        assert is_external(each) or len(each.raw_data or b"") <= 1024


@pytest.mark.parametrize("spec", ["mixed-precision", "quantize-static", "qnn-preprocess"])
def test_a_pass_that_needs_all_constants_is_refused_with_the_reason(spec: str, tmp_path: Path) -> None:
    with pytest.raises(PassError, match=f"^{spec} needs all weights in memory, and those in other files have .*: it "):
        light(spec, llama(), tmp_path)


def test_passes_that_compare_constants_get_no_files_and_tokens_are_told_apart(tmp_path: Path) -> None:
    outside = externalize(llama(layers=1), tmp_path / "weights.data", threshold=1).model
    model = InternalizedModel(outside, tmp_path).model
    (tmp_path / "weights.data").unlink()
    given = Substituted(stage_of(model), Onnxoptimizer(), tmp_path)
    tokens = serde.parse(given.data).model
    assert given.files == ()
    assert len(given.data) < 14_000
    found = [each.float_data for each in tensors_of(tokens) if each.float_data]
    assert len(found) == len(set(found)) > 8
    assert given.read(tokens) == model


def test_a_result_that_was_computed_from_a_token_is_not_accepted(tmp_path: Path) -> None:
    outside = externalize(llama(layers=1), tmp_path / "weights.data", threshold=1).model
    model = InternalizedModel(outside, tmp_path).model
    given = Substituted(stage_of(model), Onnxoptimizer(), tmp_path)

    def negated(tensor: Tensor) -> Tensor:
        if not tensor.float_data:
            return tensor
        return replace(tensor, float_data=(-np.frombuffer(whole(tensor.float_data), "<f4")).tobytes())

    made = given.read(replace_records(serde.parse(given.data).model, Tensor, negated))
    assert any([finding.severity == "error" for finding in new_findings(model, made)])


def test_a_reference_to_another_file_is_not_accepted(tmp_path: Path) -> None:
    code = """
def optimize(model):
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = entry.value.replace("weights.data", "other.data")
    return model
"""
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(PassError, match=r"returned the constant .* in another file than the model has"):
        light(str(tmp_path / "mine.py"), llama(layers=1), tmp_path)


def test_code_of_the_user_reads_constants_from_their_files(tmp_path: Path) -> None:
    code = """
from onnx import numpy_helper
def optimize(model):
    for tensor in model.graph.initializer:
        if tensor.name == "lm_head.weight":
            tensor.CopyFrom(numpy_helper.from_array(-numpy_helper.to_array(tensor), tensor.name))
    return model
"""
    (tmp_path / "mine.py").write_text(code)
    model = llama(layers=1)
    made = light(str(tmp_path / "mine.py"), model, tmp_path).after.model
    assert made.graph is not None
    assert model.graph is not None
    (found,) = [each.numpy() for each in made.graph.initializer if each.name == "lm_head.weight"]
    (before,) = [each.numpy() for each in model.graph.initializer if each.name == "lm_head.weight"]
    np.testing.assert_array_equal(found, -before)


def test_float16_converts_as_the_converter_does() -> None:
    from onnxruntime.transformers.float16 import convert_np_to_float16

    bits = np.random.default_rng(0).integers(0, 1 << 32, 100_000, np.uint32)
    ends = np.array([0, -0.0, 1e-9, -1e-9, 5.96e-8, 65504, 65519.9, 65520, -1e30, np.inf, -np.inf, np.nan], np.float32)
    values = np.concatenate([bits.view(np.float32), ends])
    for subject in (Float16(), Float16(min_positive=1e-4, max_finite=1000.0)):
        expected = convert_np_to_float16(values, subject.min_positive, subject.max_finite)
        assert subject.converted(values.tobytes()) == expected.tobytes()


def test_without_other_files_the_limit_is_told() -> None:
    with pytest.raises(LimitError, match="convert --externalize"):
        stage_of(llama())


def test_weights_that_a_pass_converted_are_in_a_new_file(tmp_path: Path, limits: pytest.MonkeyPatch) -> None:
    limits.setattr(changing, "_LARGEST", 4000)
    model = llama()
    path = tmp_path / "m.onnx"
    files.save(externalize(model, tmp_path / "m.data", threshold=1).model, path)
    assert cli("optimize", path, "-p", "onnxoptimizer", "-o", tmp_path / "v.onnx", "--verify").exit_code == 0
    assert cli("optimize", path, "-p", "onnxoptimizer", "-p", "float16", "-o", tmp_path / "o.onnx").exit_code == 0
    assert (tmp_path / "o.data").stat().st_size < (tmp_path / "m.data").stat().st_size
    found = sorted_constants(files.load(tmp_path / "o.onnx").model, tmp_path)
    optimized = whole_result("onnxoptimizer", model, limits)
    assert found == sorted_constants(whole_result("float16", optimized, limits), tmp_path)


def test_a_model_of_60_gigabytes_is_optimized_without_its_weights(tmp_path: Path, limits: pytest.MonkeyPatch) -> None:
    limits.undo()
    path = tmp_path / "m.onnx"
    write(path, Llama(3, 16384, 65536, 100_000, 128, transposed=False), sparse=True, shards=3)
    assert cli("optimize", path, "-p", "onnxoptimizer", "-o", tmp_path / "o.onnx").exit_code == 78
    found = cli("optimize", path, "-p", "onnxruntime", "-p", "onnxoptimizer", "-o", tmp_path / "o.onnx",
                "--allow-sparse")  # fmt: skip
    assert found.exit_code == 0, found.stderr
    assert (tmp_path / "o.onnx").stat().st_size < 1 << 20


def test_weights_that_a_pass_converted_are_not_in_memory_even_if_they_would_fit(
    tmp_path: Path, limits: pytest.MonkeyPatch
) -> None:
    model = llama()
    limits.setattr(big_constants, "LIMIT", len(message_bytes(model)) - 1)
    light_model = light("float16", model, tmp_path)
    converted = sum([len(each.raw_data) for each in tensors_of(light_model.after.model) if each.raw_data is not None])
    assert converted > 50_000
    assert len(light_model.after.data) < converted
    assert light_model.after.size < light_model.before.size - converted + 5000
    with pytest.raises(PassError, match="run that pass last"), Pipeline() as pipeline:
        list(pipeline.run(light_model.before.model, [parse_step("float16"), parse_step("onnxscript")], tmp_path))


def saved(folder: Path, limits: pytest.MonkeyPatch) -> Model:
    """A model with two matrices and a long vector in its file, which count as big."""
    limits.setattr(big_constants, "LIMIT", 1 << 31)
    limits.setattr(big_constants, "APART", 4096)
    limits.setattr(external_files, "APART", 4096)
    random = np.random.default_rng(0)
    constants = {"a": (64, 64), "b": (64, 64), "v": (4096,)}
    tensors = [from_numpy(random.random(dims, np.float32), name) for name, dims in constants.items()]
    text = """g (float[1,64] x, int64[1] at) => (float[1,64] y, float[1] z) {
        same = Identity(x)
        h = MatMul(same, a)
        k = MatMul(h, b)
        r = Relu(k)
        y = Relu(r)
        z = Gather(v, at)
    }"""
    model = model_of(text)
    assert model.graph is not None
    model = replace(model, graph=replace(model.graph, initializer=tuple(tensors)))
    api.save(model, folder / "m.onnx")
    return api.load(folder / "m.onnx")


@pytest.mark.parametrize("spec", ["onnxoptimizer", "onnxslim", "onnxsim", "onnxruntime"])
def test_exact_passes_do_not_get_the_big_constants_in_the_file_of_the_model(
    spec: str, tmp_path: Path, limits: pytest.MonkeyPatch
) -> None:
    model = saved(tmp_path, limits)
    given = Substituted(stage_of(model), parse_step(spec).subject, tmp_path)
    assert len(given.data) < 2000
    results = made_by(spec, model, tmp_path)
    assert results.is_changed
    assert results.after.model.graph is not None
    # The constants are those of the file, which are not read before the result is written.
    before = {each.name: each.raw_data for each in tensors_of(model)}
    assert {each.name for each in results.after.model.graph.initializer} == {"a", "b", "v"}
    assert all(each.raw_data is before[each.name] for each in results.after.model.graph.initializer)
    whole_made = whole_result(spec, serde.parse(message_bytes(model)).model, limits)
    assert sorted_constants(results.after.model, tmp_path) == sorted_constants(whole_made, tmp_path)


def test_other_passes_get_all_constants(tmp_path: Path, limits: pytest.MonkeyPatch) -> None:
    model = saved(tmp_path, limits)
    for spec in ("float16", "quantize-dynamic"):
        given = Substituted(stage_of(model), parse_step(spec).subject, tmp_path)
        assert given.data == message_bytes(model)
        assert not given.is_needed


def test_file_that_another_one_replaced_is_not_referred_to(tmp_path: Path, limits: pytest.MonkeyPatch) -> None:
    model = saved(tmp_path, limits)
    (tmp_path / "m.onnx").rename(tmp_path / "old.onnx")
    (tmp_path / "m.onnx").write_bytes(bytes(60_000))
    given = Substituted(stage_of(model), parse_step("onnxslim").subject, tmp_path)
    assert given.data == message_bytes(model)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(external_files, "APART", 4096)
        assert pack_model(model, tmp_path).subject.data_folder is None


def test_runs_map_the_big_constants_from_the_file_of_the_model(tmp_path: Path, limits: pytest.MonkeyPatch) -> None:
    model = saved(tmp_path, limits)
    sent = pack_model(model, tmp_path).subject
    assert len(sent.model) < 2000
    assert sent.data_files == (str(tmp_path / "m.onnx"),)
    outcome = onnxjson.run(tmp_path / "m.onnx")
    limits.setattr(external_files, "APART", 1 << 40)
    assert outcome.cases[0].outputs == onnxjson.run(tmp_path / "m.onnx").cases[0].outputs

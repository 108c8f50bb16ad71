"""Models run in a sandboxed process: values of every dtype, sizes, files, times, profiles; and what goes wrong."""

import functools
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxjson
from onnxjson import DecodeError, EncodeError, EvaluationError, FeedError, MissingInputError
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import DATA_TYPE_NAMES, DATA_TYPES
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.model.types import parse_type
from onnxjson.running import engines, executing, sandbox, timing
from onnxjson.running.input_files import (
    DataSet,
    data_sets,
    message_of_value,
    read_archive,
    read_data_set,
    read_value,
    value_of_message,
)
from onnxjson.running.inputs import InputOptions, free_inputs, outputs_of
from onnxjson.running.model_run import RunResult, percentile, run_cases
from onnxjson.running.tasks import Settings, Subject, Timed
from onnxjson.running.values import Dictionary, Value, as_array, packed_values, unpacked_values
from onnxjson.running.worker import Worker
from tests.running.small_models import identity, model, scaled

ONE_SET = [DataSet("seed 0", {}, {})]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


def run(tested: onnxjson.Model, worker: Worker, **options: object) -> RunResult:
    return run_cases(tested, None, options.pop("sets", ONE_SET), worker=worker, **options)  # type: ignore[arg-type]


def test_every_dtype_goes_in_and_comes_out_bit_by_bit(worker: Worker) -> None:
    types = [number for number, name in DATA_TYPE_NAMES.items() if number and not name.startswith("float6")]
    for number in types:
        case = run(identity(number), worker).cases[0]
        given, made = case.inputs["x"], case.outputs["y"]
        assert isinstance(given, Tensor)
        assert isinstance(made, Tensor)
        assert not case.problem
        assert (made.data_type, made.dims) == (number, (1, 3))
        assert np.array_equal(to_numpy(given), to_numpy(made))


def test_the_same_seed_gives_the_same_values_and_another_others(worker: Worker) -> None:
    first, second, third = [run(scaled(2), worker, seed=seed).cases[0].inputs["x"] for seed in (4, 4, 5)]
    assert isinstance(first, Tensor)
    assert first == second
    assert first != third


def test_sizes_are_bound_by_name_by_place_and_by_shape(worker: Worker) -> None:
    two = model(
        [helper.make_node("Identity", ["a"], ["y"]), helper.make_node("Identity", ["b"], ["z"])],
        {"a": (TensorProto.FLOAT, ["N", None]), "b": (TensorProto.FLOAT, ["N", "N + 2"])},
        ["y", "z"],
    )
    result = run(two, worker, input_options=InputOptions(dims={"N": 3, "a:1": 5}))
    assert result.arrays["y"].shape == (3, 5)
    assert result.arrays["z"].shape == (3, 5)
    by_place = run(two, worker, input_options=InputOptions(dims={"b:0": 4}))
    assert (by_place.arrays["z"].shape, by_place.sizes["N"]) == ((4, 6), 4)
    assert run(two, worker, input_options=InputOptions(shapes={"a": (2, 7)})).arrays["z"].shape == (2, 4)
    assert run(two, worker).arrays["y"].shape == (1, 1)


@pytest.mark.parametrize(
    ("input_options", "said"),
    [
        (InputOptions(dims={"M": 2}), 'no dynamic dimension "M"; there is N'),
        (InputOptions(dims={"x:1": 2}), "axis 1"),
        (InputOptions(shapes={"x": (2, 5)}), r"cannot have the shape \[2,5\]"),
        (InputOptions(fills={"z": 1.0}), 'no input "z"'),
    ],
)
def test_input_options_that_do_not_fit_are_refused_by_name(
    worker: Worker, input_options: InputOptions, said: str
) -> None:
    with pytest.raises(FeedError, match=said):
        run(scaled(2), worker, input_options=input_options)


def test_fills_and_ranges_are_kept(worker: Worker) -> None:
    filled = run(scaled(2), worker, input_options=InputOptions(fills={"": 3.0})).arrays["y"]
    assert filled.tolist() == [[7.0] * 4]
    ranged = run(scaled(1), worker, input_options=InputOptions(dims={"N": 50}, ranges={"x": (10, 11)})).arrays["y"]
    assert ((ranged >= 11) & (ranged <= 12)).all()
    assert np.ptp(ranged) > 0.5


def test_indices_stay_within_what_they_index_and_masks_are_masks(worker: Worker) -> None:
    embedding = model(
        [
            helper.make_node("Gather", ["table", "ids"], ["g"]),
            helper.make_node("Cast", ["attention_mask"], ["m"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["g", "m"], ["y"]),
        ],
        {"ids": (TensorProto.INT64, ["N"]), "attention_mask": (TensorProto.INT64, ["N"])},
        ["y"],
        {"table": np.zeros(7, np.float32)},
    )
    result = run(embedding, worker, input_options=InputOptions(dims={"N": 200}))
    assert not result.cases[0].problem
    inputs = {name: as_array(value) for name, value in result.cases[0].inputs.items()}
    assert set(inputs["ids"].tolist()) == set(range(7))
    assert set(inputs["attention_mask"].tolist()) == {0, 1}


def test_a_decoder_with_a_cache_gets_a_whole_mask_and_the_next_positions(worker: Worker) -> None:
    decoder = onnxjson.load(Path(__file__).parents[1] / "models" / "decoders" / "decoder_ts.onnx")
    options = InputOptions(dims={"past": 60, "sequence": 6, "batch": 2})
    result = run(decoder, worker, input_options=options)
    values = {name: as_array(value) for name, value in result.cases[0].inputs.items()}
    assert values["attention_mask"].tolist() == [[1] * 66] * 2
    assert values["position_ids"].tolist() == [[60, 61, 62, 63, 0, 1]] * 2  # the model has 64 positions
    # What the user says about the length of the mask stays.
    given = run(decoder, worker, input_options=InputOptions(dims={"past": 3, "total": 9}))
    assert as_array(given.cases[0].inputs["attention_mask"]).shape == (1, 9)


def test_initializers_among_the_inputs_need_no_value_and_take_one(worker: Worker) -> None:
    old, new = (
        model(
            [helper.make_node("Mul", ["x", "w"], ["y"])],
            {"x": (TensorProto.FLOAT, [2])},
            ["y"],
            {"w": np.array([2, 3], np.float32)},
            listed=["w"],
            ir_version=version,
            opset=8,
        )
        for version in (3, 8)
    )
    assert list(free_inputs(old)) == ["x"]
    x = from_numpy(np.array([1, 1], np.float32))
    w = from_numpy(np.array([5, 6], np.float32))
    assert run(old, worker, sets=[DataSet("", {"x": x}, {})]).arrays["y"].tolist() == [2, 3]
    assert run(new, worker, sets=[DataSet("", {"x": x, "w": w}, {})]).arrays["y"].tolist() == [5, 6]
    with pytest.raises(FeedError, match=r"the shape \[1,2\]"):
        run(new, worker, sets=[DataSet("", {"w": from_numpy(np.ones((1, 2), np.float32))}, {})])
    with pytest.raises(FeedError, match='"w" has a value in the model'):
        run(new, worker, input_options=InputOptions(fills={"w": 1.0}))
    # Up to IR version 3 they are constants, listed or not.
    assert "w" in run(old, worker, sets=[DataSet("", {"x": x, "w": w}, {})]).cases[0].problem


def test_values_of_another_type_or_shape_are_refused(worker: Worker) -> None:
    with pytest.raises(FeedError, match="float64, but must be float32"):
        run(scaled(2), worker, sets=[DataSet("", {"x": from_numpy(np.zeros((1, 4)))}, {})])
    with pytest.raises(FeedError, match=r"the shape \[4,1\]"):
        run(scaled(2), worker, sets=[DataSet("", {"x": from_numpy(np.zeros((4, 1), np.float32))}, {})])
    with pytest.raises(FeedError, match='no input "q"'):
        run(scaled(2), worker, sets=[DataSet("", {"q": from_numpy(np.zeros(1))}, {})])


def test_strings_sequences_and_absent_values_go_in_and_out(worker: Worker) -> None:
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        [helper.make_node("SequenceAt", ["s", "i"], ["y"]), helper.make_node("Identity", ["s"], ["t"])],
        "g",
        [sequence],
        [onnx.ValueInfoProto(name="y"), onnx.ValueInfoProto(name="t")],
        [numpy_helper.from_array(np.array(1), "i")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    value: Value = tuple([from_numpy(np.full(2, number, np.float32)) for number in (3, 4)])
    result = run(onnxjson.from_proto(made), worker, sets=[DataSet("", {"s": value}, {})])
    assert result.arrays["y"].tolist() == [4, 4]
    assert [each.tolist() for each in result.arrays["t"]] == [[3, 3], [4, 4]]


def test_maps_come_out_as_dictionaries(worker: Worker) -> None:
    zipped = model(
        [helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a", "b"])],
        {"x": (TensorProto.FLOAT, [1, 2])},
        ["y"],
    )
    result = run(zipped, worker, input_options=InputOptions(fills={"": 0.5}))
    assert result.arrays["y"] == [{"a": 0.5, "b": 0.5}]


def test_values_pass_between_processes_as_they_are() -> None:
    array = np.array([0x7F800001, 0x80000000], np.uint32).view(np.float32)
    values: dict[str, Value] = {
        "a": from_numpy(array),
        "n\udcff": None,
        "s": (from_numpy(np.arange(3)), (from_numpy(np.array(["x"], object)),)),
        "m": Dictionary(from_numpy(np.array([1, 2])), from_numpy(np.array([0.5, 1.5]))),
    }
    assert unpacked_values(packed_values(values)) == values


def test_runs_are_timed_and_nodes_profiled(worker: Worker) -> None:
    result = run(scaled(2), worker, repeat=30, warm_up=2, profile=4)
    assert len(result.times) == 30
    assert result.median is not None
    assert min(result.times) <= result.median <= (result.percentile(95) or 0) <= max(result.times)
    assert result.profile
    assert {each.calls for each in result.profile} == {4}
    assert sum(each.seconds for each in result.profile) > 0


def test_timed_runs_call_the_session_as_programs_do() -> None:
    values: dict[str, Value] = {"x": from_numpy(np.ones((1, 4), np.float32))}
    opened = engines.open_model(Subject(model=sandbox.pack_model(scaled(2), None).subject.model), Settings(), str)
    assert isinstance(opened, engines.Onnxruntime)
    once = opened.repeated(values)
    assert isinstance(once, functools.partial)
    # run_with_ort_values costs 28 microseconds more.
    assert once.func == opened._session.run
    narrow = engines.open_model(
        Subject(model=sandbox.pack_model(identity(DATA_TYPES["BFLOAT16"]), None).subject.model), Settings(), str
    )
    narrow.repeated({"x": from_numpy(np.ones((1, 3), ml_dtypes.bfloat16))})()


def test_times_are_reported_together() -> None:
    found: list[object] = []
    with executing.collected(found.append) as emit:
        for number in range(3):
            emit(Timed(seconds=number))
        assert not found
    assert [each.seconds for each in found if isinstance(each, Timed)] == [0, 1, 2]


def test_a_profile_is_told_in_parts_that_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_SECONDS", 0.0)
    monkeypatch.chdir(tmp_path)
    subject = Subject(model=sandbox.pack_model(scaled(2), None).subject.model)
    values: dict[str, Value] = {"x": from_numpy(np.ones((1, 4), np.float32))}
    told = list(timing.profiles(subject, Settings(), values, 4))
    assert [each.runs for each in told] == [1, 2, 3, 4]
    assert [{each.calls for each in profile.nodes} for profile in told] == [{1}, {2}, {3}, {4}]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", ["bfloat16", "string", "float8_e5m2"])
def test_dtypes_that_numpy_lacks_are_profiled_too(worker: Worker, dtype: str) -> None:
    assert run(identity(DATA_TYPES[dtype]), worker, profile=2).profile


def test_percentiles_lie_between_values_in_proportion() -> None:
    assert percentile([3, 1, 2], 50) == 2
    assert percentile([1, 2, 3, 4, 5], 95) == pytest.approx(4.8)
    assert percentile([7], 95) == 7
    assert percentile([], 50) is None


def test_a_model_that_nothing_runs_is_an_error_that_says_why(worker: Worker) -> None:
    unknown = model([helper.make_node("Frobnicate", ["x"], ["y"])], {"x": (TensorProto.FLOAT, [1])}, ["y"])
    with pytest.raises(EvaluationError, match=r"no engine runs this model: onnxruntime: .*Frobnicate"):
        run(unknown, worker)


def test_a_model_that_never_ends_is_stopped_and_said() -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["still"]), helper.make_node("Add", ["state", "state"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("number", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, None),
        ],
        [onnx.ValueInfoProto(name="still"), onnx.ValueInfoProto(name="next")],
    )
    endless = model(
        [
            helper.make_node("Constant", [], ["count"], value_int=2**62),
            helper.make_node("Loop", ["count", "", "x"], ["y"], body=body),
        ],
        {"x": (TensorProto.FLOAT, [1])},
        ["y"],
    )
    with pytest.raises(EvaluationError, match="does not finish"):
        onnxjson.run(endless, settings=Settings(engines=("onnxruntime",)), timeout=2)


def test_what_was_measured_before_the_end_is_kept() -> None:
    result = run_cases(scaled(2), None, ONE_SET, repeat=10**9, timeout=2)
    assert "does not finish" in result.problem
    assert len(result.times) > 100
    assert result.cases[0].outputs


def test_external_data_is_read_beside_the_model_or_mapped_by_the_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = onnxjson.to_proto(scaled(3))
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full((1, 4), 3, np.float32), "factor"))
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    x = {"x": np.ones((1, 4), np.float32)}
    assert onnxjson.run(tmp_path / "m.onnx", x).arrays["y"].tolist() == [[4.0] * 4]
    monkeypatch.setattr(sandbox, "MAX_INLINE_BYTES", 0)
    assert onnxjson.run(tmp_path / "m.onnx", x).arrays["y"].tolist() == [[4.0] * 4]


def test_arrays_of_numpy_go_in_through_python() -> None:
    result = onnxjson.run(identity(DATA_TYPES["bfloat16"]), {"x": np.ones((2, 3), ml_dtypes.bfloat16)})
    assert result.arrays["y"].dtype == ml_dtypes.bfloat16
    with pytest.raises(EvaluationError, match="fails on these values"):
        onnxjson.run(
            model(
                [helper.make_node("MatMul", ["x", "w"], ["y"])],
                {"x": (TensorProto.FLOAT, ["N", "M"])},
                ["y"],
                {"w": np.ones((4, 4), np.float32)},
            )
        )


def test_archives_give_values_by_name_and_by_place(tmp_path: Path) -> None:
    types = {"a": parse_type("float32[2]"), "b": parse_type("bfloat16[2]")}
    np.savez(tmp_path / "named.npz", b=np.ones(2, ml_dtypes.bfloat16), a=np.array([1.5, 2]))
    found = read_archive(tmp_path / "named.npz", types)
    assert {name: as_array(value).dtype.name for name, value in found.items()} == {"a": "float32", "b": "bfloat16"}
    np.savez(tmp_path / "placed.npz", np.zeros(2, np.float32), np.ones(2, np.float32))
    assert list(read_archive(tmp_path / "placed.npz", types)) == ["a", "b"]
    np.save(tmp_path / "one.npy", np.array([1, 2]))
    assert as_array(read_value(tmp_path / "one.npy", types["a"])).tolist() == [1.0, 2.0]
    with pytest.raises(MissingInputError):
        read_archive(tmp_path / "none.npz", types)
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "text.npy").write_text("no array")
    for read in (lambda: read_archive(tmp_path / "text.npz", types), lambda: read_value(tmp_path / "text.npy", None)):
        with pytest.raises(DecodeError, match="it is not a numpy file, or has Python objects"):
            read()
    np.savez(tmp_path / "other.npz", q=np.ones(2))
    with pytest.raises(FeedError, match=r'other.npz: there is no input "q"; there are a, b'):
        read_archive(tmp_path / "other.npz", types)
    np.savez(tmp_path / "empty.npz")
    with pytest.raises(FeedError, match="contains no arrays"):
        read_archive(tmp_path / "empty.npz", types)
    np.save(tmp_path / "inexact.npy", np.full(2, 0.1))
    with pytest.raises(EncodeError, match=r"inexact.npy: element \[0\].*convert it with astype") as refused:
        read_value(tmp_path / "inexact.npy", types["a"])
    assert "--lossy" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (from_numpy(np.arange(6, dtype=np.int8).reshape(2, 3)), "int8[2,3]"),
        (from_numpy(np.array(["é", ""], object)), "string[2]"),
        ((from_numpy(np.ones(2)), from_numpy(np.zeros((0, 3)))), "seq(float64)"),
        ((), "seq(float64)"),
        (None, "optional(float32[2])"),
    ],
)
def test_messages_of_test_data_hold_values_both_ways(value: Value, said: str) -> None:
    found = value_of_message(message_of_value(value), parse_type(said))
    assert found == value


def test_folders_of_test_data_are_found_and_compared(worker: Worker, tmp_path: Path) -> None:
    tested = scaled(2)
    for number, right in enumerate((True, False)):
        folder = tmp_path / f"test_data_set_{number}"
        folder.mkdir()
        x = np.full((1, 4), 1, np.float32)
        (folder / "input_0.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
        y = numpy_helper.from_array(np.full((1, 4), 3 if right else 4, np.float32))
        (folder / "output_0.pb").write_bytes(y.SerializeToString())
    inputs, outputs = list(free_inputs(tested).items()), list(outputs_of(tested).items())
    sets = [read_data_set(folder, inputs, outputs) for folder in data_sets(tmp_path)]
    result = run(tested, worker, sets=sets)
    assert [case.is_fine for case in result.cases] == [True, False]
    assert result.cases[1].expected[0].comparison.outside == 4


def test_what_was_recorded_for_other_values_is_not_held_against_made_up_ones(worker: Worker) -> None:
    recorded: dict[str, Value] = {"y": from_numpy(np.zeros((1, 4), np.float32))}
    with pytest.raises(FeedError, match='data has recorded outputs, but no value of "x"'):
        run(scaled(2), worker, sets=[DataSet("data", {}, recorded)])

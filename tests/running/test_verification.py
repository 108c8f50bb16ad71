"""Two models compared: counts of runs that failed, NaN, pairs by structure, sizes, dtypes."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxjson
from onnxjson import EvaluationError, Model, Tolerance, Verification, verify
from onnxjson.model.document import Tensor
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.running.input_files import DataSet
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.tasks import Settings
from onnxjson.running.verification import Plan, Verifier
from onnxjson.running.worker import Worker
from tests.running.decoders import genai_decoder
from tests.running.small_models import model, scaled


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


def compared(base: Model, target: Model, worker: Worker, **options: object) -> Verification:
    plan = Plan(**options)  # type: ignore[arg-type] # a struct that says what does not fit
    with Verifier(TwoModels(base, target), plan, worker=worker) as verifier:
        return verifier.result()


def log(*, times: float = 1.0) -> Model:
    """NaN and -infinity for what is not positive."""
    return model(
        [helper.make_node("Log", ["x"], ["l"]), helper.make_node("Mul", ["l", "f"], ["y"])],
        {"x": (TensorProto.FLOAT, [64])},
        ["y"],
        {"f": np.float32(times)},
    )


def test_ten_of_ten_failed_when_ten_fail(worker: Worker) -> None:
    found = compared(scaled(2), scaled(2.1), worker, seeds=10)
    assert (found.failed, len(found.runs), found.equal) == (10, 10, False)
    assert [each.failed for each in found.outputs] == [10]


def test_a_model_equals_itself_bit_by_bit(worker: Worker) -> None:
    comparison = compared(scaled(2), scaled(2), worker)
    assert comparison.equal
    assert {run.verdict for run in comparison.runs} == {"equal"}
    assert comparison.outputs[0].worst is not None
    assert comparison.outputs[0].worst.largest_absolute == 0


def test_maps_of_float32_are_compared_as_float32(worker: Worker) -> None:
    def zipped(times: float) -> Model:
        nodes = [
            helper.make_node("Mul", ["x", "f"], ["m"]),
            helper.make_node("ZipMap", ["m"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]),
        ]
        return model(nodes, {"x": (TensorProto.FLOAT, ["N", 2])}, ["y"], {"f": np.float32(times)})

    assert compared(zipped(1), zipped(1 + 2e-7), worker).equal


def test_figures_of_the_worst_run_are_told(worker: Worker) -> None:
    comparison = compared(scaled(2), scaled(2 * (1 + 1e-6)), worker)
    assert comparison.equal
    assert {run.verdict for run in comparison.runs} <= {"equal", "within-tolerance"}
    worst = comparison.outputs[0].worst
    assert worst is not None
    assert worst.unequal
    assert 0 < (worst.largest_absolute or 0) < 1e-4
    assert 0 < (worst.largest_ulp or 0) < 200
    assert worst.cosine == pytest.approx(1)


def test_figures_are_the_greatest_of_any_run_and_not_those_of_one(worker: Worker) -> None:
    target = model(
        [helper.make_node("Add", ["x", "c"], ["y"])], {"x": (TensorProto.FLOAT, [2])}, ["y"], {"c": np.float32(2**-20)}
    )
    base = model(
        [helper.make_node("Add", ["x", "c"], ["y"])], {"x": (TensorProto.FLOAT, [2])}, ["y"], {"c": np.float32(0)}
    )
    values = np.array([[1e-3, 1e-3], [64, 64]], np.float32)
    sets = [DataSet(str(number), {"x": from_numpy(row)}, {}) for number, row in enumerate(values)]
    worst = compared(base, target, worker, sets=sets).outputs[0].worst
    assert worst is not None
    differences = np.abs(values + np.float32(2**-20) - values)
    assert worst.largest_absolute == differences.max()
    assert worst.largest_relative == pytest.approx((differences / values).max())


def test_nans_at_the_same_places_are_equal_and_others_are_not(worker: Worker) -> None:
    found = compared(log(), log(), worker)
    assert found.equal
    assert {run.verdict for run in found.runs} == {"equal"}
    zero = model([helper.make_node("Sub", ["x", "x"], ["y"])], {"x": (TensorProto.FLOAT, [64])}, ["y"])
    assert not compared(log(times=0.0), zero, worker).equal


def test_outputs_and_inputs_with_other_names_are_paired_by_structure(worker: Worker) -> None:
    def two(names: Sequence[str]) -> Model:
        x, z, product, difference = names
        return model(
            [helper.make_node("Mul", [x, z], [product]), helper.make_node("Sub", [x, z], [difference])],
            {x: (TensorProto.FLOAT, [3]), z: (TensorProto.FLOAT, [3])},
            [product, difference],
        )

    base = two(("x", "z", "product", "difference"))
    other = two(("u", "v", "a", "b"))
    assert other.graph is not None
    swapped = onnxjson.to_proto(other)
    outputs = list(swapped.graph.output)
    del swapped.graph.output[:]
    swapped.graph.output.extend(reversed(outputs))
    comparison = compared(base, onnxjson.from_proto(swapped), worker)
    assert {each.name: each.target_name for each in comparison.outputs} == {"product": "a", "difference": "b"}
    assert comparison.equal
    assert any("by structure" in note for note in comparison.notes)


def test_an_output_that_is_gone_is_a_difference(worker: Worker) -> None:
    both = model(
        [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["z"])],
        {"x": (TensorProto.FLOAT, [2])},
        ["y", "z"],
    )
    one = model([helper.make_node("Neg", ["x"], ["y"])], {"x": (TensorProto.FLOAT, [2])}, ["y"])
    comparison = compared(both, one, worker)
    assert not comparison.equal
    assert comparison.failed == len(comparison.runs)
    assert [each.target_name for each in comparison.outputs] == ["y", None]
    assert compared(one, both, worker).equal


def test_a_batch_that_was_baked_in_fails_at_other_sizes_only(worker: Worker) -> None:
    def flat(shape: Sequence[int]) -> Model:
        return model(
            [helper.make_node("Reshape", ["x", "shape"], ["y"])],
            {"x": (TensorProto.FLOAT, ["N", 2, 2])},
            ["y"],
            {"shape": np.array(shape, np.int64)},
        )

    comparison = compared(flat([-1, 4]), flat([2, 4]), worker, dims={"N": (2, 3)}, seeds=2)
    assert [(run.sizes["N"], run.verdict) for run in comparison.runs] == [
        (2, "equal"),
        (2, "equal"),
        (3, "failed"),
        (3, "failed"),
    ]
    assert comparison.failed == 2
    assert comparison.runs[2].problem.startswith("the target: ")


def test_sizes_that_the_base_does_not_take_are_not_insisted_on(worker: Worker) -> None:
    both = model(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        {"a": (TensorProto.FLOAT, ["N"]), "b": (TensorProto.FLOAT, ["M"])},
        ["y"],
    )
    found = compared(both, both, worker)
    assert found.equal
    assert found.runs[0].sizes == {"N": 2, "M": 2}


def test_values_that_the_base_does_not_take_say_nothing(worker: Worker) -> None:
    def gather(factor: float) -> Model:
        return model(
            [helper.make_node("Gather", ["table", "ids"], ["y"])],
            {"ids": (TensorProto.INT64, [1])},
            ["y"],
            {"table": np.arange(5, dtype=np.float32) * np.float32(factor)},
        )

    sets = [DataSet(str(place), {"ids": from_numpy(np.array([place]))}, {}) for place in (1, 100, 2)]
    comparison = compared(gather(1), gather(1), worker, sets=sets)
    assert comparison.equal
    assert [run.name for run in comparison.runs] == ["1", "2"]
    assert any("fails on 1 more" in note for note in comparison.notes)
    different = compared(gather(1), gather(3), worker, sets=sets)
    assert (different.failed, len(different.runs)) == (2, 2)
    assert different.outputs[0].worst_run == 1


def test_every_seed_has_sizes_of_its_own(worker: Worker) -> None:
    def flat(size: int) -> Model:
        return model(
            [helper.make_node("Reshape", ["x", "shape"], ["y"])],
            {"x": (TensorProto.FLOAT, ["N", 2, 2])},
            ["y"],
            {"shape": np.array([size, 4], np.int64)},
        )

    found = compared(flat(-1), flat(2), worker)
    assert [(run.sizes["N"], run.verdict) for run in found.runs] == [(2, "equal"), (3, "failed"), (5, "failed")]


@pytest.mark.parametrize("kernel", [(32, 32), (256,)], ids=["image", "sound"])
def test_images_and_sound_get_the_sizes_that_they_need(worker: Worker, kernel: tuple[int, ...]) -> None:
    shape: list[int | str | None] = ["batch", 1, "height", "width"]
    subject = model(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        {"x": (TensorProto.FLOAT, shape[: len(kernel) + 2])},
        ["y"],
        {"w": np.ones((1, 1, *kernel), np.float32)},
    )
    assert compared(subject, subject, worker).equal


def test_sizes_that_are_too_big_together_do_not_hide_why_the_base_fails(worker: Worker) -> None:
    wrong = model(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        {"x": (TensorProto.FLOAT, [*"NTCHW"])},
        ["y"],
        {"shape": np.array([7, 11], np.int64)},
    )
    with pytest.raises(EvaluationError, match="the base fails on all values"):
        compared(wrong, wrong, worker)


def test_a_base_that_does_not_run_is_an_error_and_not_a_difference(worker: Worker) -> None:
    wrong = model([helper.make_node("MatMul", ["x", "x"], ["y"])], {"x": (TensorProto.FLOAT, ["N", 3])}, ["y"])
    unknown = model([helper.make_node("Frobnicate", ["x"], ["y"])], {"x": (TensorProto.FLOAT, ["N", 4])}, ["y"])
    with pytest.raises(EvaluationError, match="the base fails on all values"):
        compared(wrong, wrong, worker)
    with pytest.raises(EvaluationError, match="no engine runs the target") as caught:
        compared(scaled(2), unknown, worker)
    assert caught.value.side == 1


def test_both_get_the_same_values_in_the_dtype_that_each_wants(worker: Worker) -> None:
    def half(data_type: int) -> Model:
        return model([helper.make_node("Neg", ["x"], ["y"])], {"x": (data_type, [100])}, ["y"])

    comparison = compared(half(TensorProto.FLOAT), half(TensorProto.FLOAT16), worker)
    assert comparison.equal
    assert {run.verdict for run in comparison.runs} == {"equal"}
    assert comparison.outputs[0].dtype == "float32 / float16"


def test_tolerances_may_be_others(worker: Worker) -> None:
    base, target = scaled(2), scaled(2.001)
    assert not compared(base, target, worker).equal
    assert compared(base, target, worker, tolerances={"float32": Tolerance(relative=0.1, absolute=0.1)}).equal


def test_a_model_that_gives_something_else_each_time_is_said_to(worker: Worker) -> None:
    random, other = (
        model([helper.make_node(operator, ["x"], ["y"])], {"x": (TensorProto.FLOAT, [50])}, ["y"], opset=15)
        for operator in ("RandomUniformLike", "RandomNormalLike")
    )
    found = compared(random, other, worker)
    assert found.failed == 3
    assert any("in each run" in note for note in found.notes)
    assert compared(random, random, worker).equal
    same = compared(scaled(2), scaled(3), worker)
    assert not any("in each run" in note for note in same.notes)


def test_python_takes_files_and_several_sizes() -> None:
    found = verify(scaled(2), scaled(2), seeds=2, dims={"N": (1, 5)})
    assert found.equal
    assert [run.sizes["N"] for run in found.runs] == [1, 1, 5, 5]


def test_a_process_that_dies_is_told_by_the_model_that_it_was_at(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnxjson.running import verification
    from onnxjson.running.sandbox import Outcome
    from onnxjson.running.tasks import Opened

    opened = Opened(side=0, engine="onnxruntime", seconds=0.1)
    for reports, side in (((), 0), ((opened,), 1)):
        monkeypatch.setattr(
            verification, "execute", lambda *_, found=reports, **__: Outcome(found, "crashed: signal SIGSEGV", False)
        )
        with pytest.raises(EvaluationError, match="crashed: signal SIGSEGV") as caught:
            compared(scaled(2), scaled(2), worker)
        assert caught.value.side == side


def test_a_process_that_dies_while_nothing_differs_is_no_difference(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnxjson.running import sandbox, verification

    def cut(*arguments: Any, **options: Any) -> Any:
        found = sandbox.execute(*arguments, **options)
        return found._replace(reports=found.reports[:-1], problem="does not finish")

    monkeypatch.setattr(verification, "execute", cut)
    with pytest.raises(EvaluationError, match="the run does not finish; nothing different was found before"):
        compared(scaled(2), scaled(2), worker)
    assert compared(scaled(2), scaled(3), worker).failed == 3


def test_a_target_that_needs_all_memory_is_an_error(worker: Worker) -> None:
    huge = model(
        [
            helper.make_node("Mul", ["n", "size"], ["many"]),
            helper.make_node("ConstantOfShape", ["many"], ["filled"]),
            helper.make_node("ReduceSum", ["filled"], ["y"], keepdims=0),
        ],
        {"n": (TensorProto.INT64, [1])},
        ["y"],
        {"size": np.array([2**46], np.int64)},
    )
    small = model(
        [helper.make_node("Cast", ["n"], ["c"], to=TensorProto.FLOAT), helper.make_node("ReduceSum", ["c"], ["y"])],
        {"n": (TensorProto.INT64, [1])},
        ["y"],
    )
    with pytest.raises(EvaluationError, match="more memory than the limit"):
        compared(small, huge, worker, seeds=2)


def test_a_target_without_outputs_fails_and_a_base_without_any_is_an_error(worker: Worker) -> None:
    none = model([helper.make_node("Neg", ["x"], ["n"])], {"x": (TensorProto.FLOAT, ["N", 4])}, [])
    found = compared(scaled(2), none, worker)
    assert (found.failed, len(found.runs)) == (3, 3)
    with pytest.raises(EvaluationError, match="no outputs, so there is nothing to compare"):
        compared(none, none, worker)


def test_outputs_without_elements_are_not_called_equal(worker: Worker) -> None:
    comparison = compared(scaled(2), scaled(3), worker, dims={"N": (0,)})
    assert (comparison.equal, comparison.failed, comparison.uncompared) == (False, 0, ("y",))
    assert {run.verdict for run in comparison.runs} == {"not-compared"}
    assert comparison.doubt == 'nothing of "y" could be compared'
    assert any("nothing was compared" in note for note in comparison.notes)
    assert not any("nothing of it" in note for note in compared(scaled(2), scaled(2), worker, dims={"N": (0, 1)}).notes)


def test_outputs_without_a_finite_element_are_not_called_equal(worker: Worker) -> None:
    nodes = [helper.make_node(*each) for each in (("Exp", ["x"], ["e"]), ("Neg", ["e"], ["n"]), ("Log", ["n"], ["y"]))]
    nodes.append(helper.make_node("Identity", ["e"], ["z"]))
    undefined = model(nodes, {"x": (TensorProto.FLOAT, ["N", 4])}, ["y", "z"])
    comparison = compared(undefined, undefined, worker)
    assert (comparison.equal, comparison.failed, comparison.uncompared) == (False, 0, ("y",))
    assert [each.compared > 0 for each in comparison.outputs] == [False, True]
    (note,) = comparison.notes
    assert note.startswith('"y" is NaN or infinite everywhere on these values, so nothing was compared')
    assert not compared(scaled(2), scaled(2), worker).notes


def entropy(factor: float) -> Model:
    """NaN everywhere unless all elements are between 0 and 1."""
    nodes = [
        helper.make_node("Log", ["x"], ["a"]),
        helper.make_node("Sub", ["one", "x"], ["b"]),
        helper.make_node("Log", ["b"], ["c"]),
        helper.make_node("Add", ["a", "c"], ["d"]),
        helper.make_node("ReduceSum", ["d"], ["e"], keepdims=0),
        helper.make_node("Mul", ["e", "f"], ["y"]),
    ]
    constants = {"one": np.float32(1), "f": np.float32(factor)}
    return model(nodes, {"x": (TensorProto.FLOAT, [64])}, ["y"], constants)


def between(factor: float) -> Model:
    """NaN unless the second limit is far above the first, in hundreds."""
    nodes = [
        helper.make_node("Mul", ["low", "ten"], ["wide"]),
        helper.make_node("Max", ["wide", "hundred"], ["least"]),
        helper.make_node("Less", ["least", "high"], ["fits"]),
        helper.make_node("Mul", ["x", "f"], ["m"]),
        helper.make_node("Where", ["fits", "m", "nan"], ["y"]),
    ]
    constants = {name: np.float32(value) for name, value in (("ten", 10), ("hundred", 100), ("nan", np.nan))}
    inputs = {"x": (TensorProto.FLOAT, ["samples"]), "low": (TensorProto.FLOAT, []), "high": (TensorProto.FLOAT, [])}
    return model(nodes, inputs, ["y"], {**constants, "f": np.float32(factor)})


@pytest.mark.parametrize("made", [entropy, between])
def test_other_inputs_are_tried_where_an_output_is_nowhere_finite(
    made: Callable[[float], Model], worker: Worker
) -> None:
    same = compared(made(2), made(2), worker)
    assert same.equal
    assert not same.notes
    assert compared(made(2), made(3), worker).failed


def test_smooth_values_of_one_open_axis_are_a_signal(worker: Worker) -> None:
    found = compared(between(2), between(2), worker)
    assert {run.name.rpartition(", ")[2]: run.sizes["samples"] for run in found.runs}["smooth"] == 4096


def table(rows: np.ndarray) -> Model:
    """The rows that indices name."""
    nodes = [
        helper.make_node("Cast", ["ids"], ["i"], to=TensorProto.INT32),
        helper.make_node("Gather", ["t", "i"], ["y"]),
    ]
    return model(nodes, {"ids": (TensorProto.INT64, [2, 4])}, ["y"], {"t": rows})


def test_rows_of_a_table_that_differ_are_looked_up(worker: Worker) -> None:
    rows = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    for row in (0, 517, 999):
        other = rows.copy()
        other[row] += 1
        found = compared(table(rows), table(other), worker)
        assert found.failed == 1, row
        assert not found.notes


def indirect(route: str) -> dict[str, Any]:
    """Nodes and inputs by which rows of `t` are looked up or cut out."""
    node = helper.make_node
    ids, values = {"ids": (TensorProto.INT64, [2, 4])}, {"x": (TensorProto.FLOAT, [2, "n", 3])}
    position = [
        node("Shape", ["x"], ["n"], start=1, end=2),
        node("Slice", ["t", "zero", "n", "zero"], ["p"]),
        node("Add", ["x", "p"], ["y"]),
    ]
    return {
        "Add": {"nodes": [node("Add", ["ids", "one"], ["i"]), node("Gather", ["t", "i"], ["y"])], "inputs": ids},
        "Clip": {"nodes": [node("Clip", ["ids", "one"], ["i"]), node("Gather", ["t", "i"], ["y"])], "inputs": ids},
        "Slice": {"nodes": position, "inputs": values},
    }[route]


@pytest.mark.parametrize("route", ["Add", "Clip", "Slice"])
def test_a_row_that_differs_and_that_no_run_shows_is_named(route: str, worker: Worker) -> None:
    def made(rows: np.ndarray) -> Model:
        given = indirect(route)
        constants = {"t": rows, "one": np.int64(1), "zero": np.array([0])}
        return model(given["nodes"], given["inputs"], ["y"], constants)

    rows = np.ones((500, 3), np.float32)
    other = rows.copy()
    other[250] += 1
    found = compared(made(rows), made(other), worker)
    assert found.equal
    assert found.notes == ('"t" differs in 1 of 500 rows, but has no effect in these runs: 250',)
    assert not compared(made(rows), made(rows), worker).notes


def test_rounding_of_some_rows_is_named_but_not_that_of_most(worker: Worker) -> None:
    rows = np.ones((1000, 3), np.float32)
    other = rows.copy()
    other[:400] += np.float32(1e-6)
    found = compared(table(rows), table(other), worker)
    assert found.equal
    (note,) = found.notes
    start = r'"t" differs in 400 of 1,000 rows, but has no effect in these runs: '
    assert re.fullmatch(start + r"(\d+, ){5}\d+ and 394 more", note)
    assert not compared(table(rows), table(rows * np.float32(1 + 1e-6)), worker).notes


def test_constants_that_differ_without_any_effect_are_named(worker: Worker) -> None:
    def made(factor: float) -> Model:
        nodes = [helper.make_node("Relu", ["x"], ["y"])]
        for number in range(7):
            nodes.append(helper.make_node("Mul", ["x", f"w{number}"], [f"unused{number}"]))
        constants = {f"w{number}": np.full(2, factor, np.float32) for number in range(7)}
        return model(nodes, {"x": (TensorProto.FLOAT, [2])}, ["y"], constants)

    comparison = compared(made(1), made(-1), worker)
    assert comparison.equal
    named = [f'"w{number}" differs in 2 rows, but has no effect in these runs' for number in range(5)]
    assert list(comparison.notes) == [*named, "2 more constants differ, but have no effect in these runs"]


def test_values_that_the_base_rejects_are_replaced(worker: Worker) -> None:
    nodes = [
        helper.make_node("Less", ["x", "limit"], ["c"]),
        helper.make_node("Cast", ["c"], ["i"], to=TensorProto.INT64),
        helper.make_node("Gather", ["row", "i"], ["g"]),
        helper.make_node("Add", ["x", "g"], ["y"]),
    ]
    constants = {"limit": np.float32(-0.4), "row": np.ones(1, np.float32)}
    base = model(nodes, {"x": (TensorProto.FLOAT, [1])}, ["y"], constants)
    comparison = compared(base, base, worker, seeds=6)
    assert len(comparison.runs) == 6
    assert comparison.notes[0].startswith("the base fails on ")
    seeds = [int(run.name.removeprefix("seed ")) for run in comparison.runs]
    assert seeds == sorted(set(seeds))
    assert seeds[-1] > 5


def test_no_row_is_looked_up_twice_before_all_are() -> None:
    with Worker() as started:
        ids = table(np.ones((24, 1), np.float32))
        verifier = Verifier(TwoModels(ids, ids), Plan(), worker=started)
        verifier.result()
    used = [to_numpy(value) for trial in verifier.trials if isinstance(value := trial.feeds[0]["ids"], Tensor)]
    assert sorted(np.concatenate(used).reshape(-1)) == [*range(24)]


def branches(factors: tuple[float, float], operator: str = "Equal") -> Model:
    """x times one of two factors, as a rate decides."""

    def body(name: str, factor: float) -> onnx.GraphProto:
        constant = numpy_helper.from_array(np.array(factor, np.float32), f"f_{name}")
        out = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node("Mul", ["x", f"f_{name}"], [name])], name, [], [out], [constant])

    then, other = body("t", factors[0]), body("e", factors[1])
    nodes = [
        helper.make_node("Reshape", ["rate", "one"], ["r"]),
        helper.make_node("Gather", ["r", "zero"], ["n"]),
        helper.make_node(operator, ["n", "limit"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    constants = {"one": np.array([1]), "zero": np.int64(0), "limit": np.int64(16000)}
    return model(nodes, {"x": (TensorProto.FLOAT, [3]), "rate": (TensorProto.INT64, [])}, ["y"], constants)


@pytest.mark.parametrize("operator", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_both_branches_run_that_an_input_chooses(operator: str, worker: Worker) -> None:
    base = branches((2, 3), operator)
    assert compared(base, base, worker).equal
    for other in ((2, 4), (1, 3)):
        assert compared(base, branches(other, operator), worker).failed


def amplifying(*, fused: bool, factor: float = 1.0) -> Model:
    """A Conv and its normalization, or a Conv that does both, with a sine of so large a number that digits are lost."""
    random = np.random.default_rng(3)
    weight, scale, bias, mean = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 2, 3), 4, 4, 4))
    variance = np.array([0.5, 1, 1.5, 2], np.float32)
    share = scale / np.sqrt(variance + np.float32(1e-5))
    constants = {"w": weight, "s": scale, "b": bias, "m": mean, "v": variance, "big": np.float32(200)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"]),
    ]
    if fused:
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["n"])]
        constants |= {"w": factor * weight * share[:, None, None], "b": bias - mean * share}
        constants = {name: np.asarray(constants[name], np.float32) for name in ("w", "b", "big")}
    nodes += [helper.make_node("Mul", ["n", "big"], ["a"]), helper.make_node("Sin", ["a"], ["y"])]
    return model(nodes, {"x": (TensorProto.FLOAT, [1, 2, 64])}, ["y"], constants)


def test_rounding_that_the_base_shows_itself_is_no_difference(worker: Worker) -> None:
    base = amplifying(fused=False)
    found = compared(base, amplifying(fused=True), worker)
    assert found.equal
    (note,) = found.notes
    assert note.startswith('"y" differs by rounding: the base itself changes as much')
    assert not compared(base, base, worker).notes
    for factor in (1.01, -1.0):
        assert compared(base, amplifying(fused=True, factor=factor), worker).failed
    assert compared(base, amplifying(fused=True), worker, tolerances={"float32": Tolerance(relative=1e-4)}).failed


def beside_an_amplifying_part(rows: int, factor: float) -> Model:
    """A sine of so large a number that digits are lost, joined with a product that loses none."""
    random = np.random.default_rng(5)
    weights = [random.standard_normal((32, columns)).astype(np.float32) for columns in (3, 21)]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Mul", ["a", "big"], ["b"]),
        helper.make_node("Sin", ["b"], ["s"]),
        helper.make_node("MatMul", ["x", "v"], ["l"]),
        helper.make_node("Tanh", ["l"], ["t"]),
        helper.make_node("Concat", ["s", "t"], ["y"], axis=1),
    ]
    constants = {"w": weights[0], "v": weights[1] * np.float32(factor), "big": np.array(300, np.float32)}
    return model(nodes, {"x": (TensorProto.FLOAT, [rows, 32])}, ["y"], constants)


@pytest.mark.parametrize("rows", [1, 16])
def test_rounding_of_some_elements_does_not_hide_a_difference_of_others(rows: int, worker: Worker) -> None:
    for factor in (1.001, 1.004):
        assert compared(beside_an_amplifying_part(rows, 1.0), beside_an_amplifying_part(rows, factor), worker).failed


def test_the_last_bit_of_a_narrow_input_is_no_rounding(worker: Worker) -> None:
    def product(factor: float) -> Model:
        weights = np.random.default_rng(5).standard_normal((32, 8)).astype(np.float32) * np.float32(factor)
        nodes = [helper.make_node("Cast", ["x"], ["c"], to=1), helper.make_node("MatMul", ["c", "w"], ["y"])]
        return model(nodes, {"x": (TensorProto.FLOAT16, [4, 32])}, ["y"], {"w": weights})

    for factor in (1.001, 1.005):
        assert compared(product(1.0), product(factor), worker).failed


def test_a_run_that_needs_too_much_memory_gives_way_to_smaller_sizes(worker: Worker) -> None:
    nodes = [
        helper.make_node("Expand", ["x", "shape"], ["e"]),
        helper.make_node("Mul", ["e", "e"], ["m"]),
        helper.make_node("ReduceSum", ["m"], ["y"]),
    ]
    wide = model(nodes, {"x": (TensorProto.FLOAT, ["N", 1])}, ["y"], {"shape": np.array([1, 40_000_000])})
    found = compared(wide, wide, worker, seeds=2)
    assert found.equal
    assert {run.sizes["N"] for run in found.runs} <= {1, 2}


def test_a_target_that_wants_words_fails_and_not_the_base(worker: Worker) -> None:
    words = model([helper.make_node("Identity", ["x"], ["y"])], {"x": (TensorProto.STRING, ["N", 4])}, ["y"])
    found = compared(scaled(2), words, worker)
    assert found.failed == 3
    assert found.runs[0].problem.startswith("the target:")


def test_sequences_have_the_tolerance_of_their_elements(worker: Worker) -> None:
    def split(factor: float) -> Model:
        return model(
            [helper.make_node("Mul", ["x", "f"], ["m"]), helper.make_node("SplitToSequence", ["m"], ["y"], axis=1)],
            {"x": (TensorProto.FLOAT, ["N", 4])},
            ["y"],
            {"f": np.float32(factor)},
        )

    (output,) = compared(split(2), split(2.00001), worker).outputs
    assert (output.dtype, output.failed) == ("seq(float32)", 0)
    assert output.tolerance.relative == 1e-4


@pytest.mark.parametrize("name", ["decoder_ts", "decoder_dynamo", "genai"])
def test_a_cache_its_mask_and_positions_fit_each_other(name: str, tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "models" / "decoders" / f"{name}.onnx"
    if name == "genai":
        path = tmp_path / "genai.onnx"
        onnx.save(genai_decoder(), path)
    verification = verify(path, path, dims={"past": 16})
    assert verification.equal
    assert not verification.notes
    for run in verification.runs:
        total = run.sizes.get("total", run.sizes.get("total_sequence_length", 0))
        new = run.sizes.get("sequence", run.sizes.get("sequence_length", 0))
        assert total == 16 + new
    if name == "genai":
        other = tmp_path / "other.onnx"
        onnx.save(genai_decoder(scale=1.3), other)
        assert not verify(path, other, dims={"past": 16}).equal


def test_lengths_of_attention_that_are_inputs_fit_the_cache(tmp_path: Path) -> None:
    decoder = genai_decoder(1)
    computed = {"tokens", "last", "seqlens_k", "mask_shape", "mask_length", "total"}
    nodes = [node for node in decoder.graph.node if node.output[0] not in computed]
    inputs = [each for each in decoder.graph.input if each.name != "attention_mask"]
    inputs.append(helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, ["batch_size"]))
    inputs.append(helper.make_tensor_value_info("total", TensorProto.INT32, []))
    graph = helper.make_graph(nodes, "g", inputs, decoder.graph.output, decoder.graph.initializer)
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=decoder.opset_import, ir_version=10), path)
    found = onnxjson.run(path, dims={"past": 16, "sequence_length": 3})
    given = found.cases[0].inputs
    lengths = {name: to_numpy(value).tolist() for name, value in given.items() if isinstance(value, Tensor)}
    assert (lengths["seqlens_k"], lengths["total"]) == ([18], 19)


def test_a_run_that_the_limit_of_memory_ends_is_no_verdict() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,3,512,512] x) => (float[1,N] y)
        <float[128,3,3,3] w> { a = Conv<pads=[1,1,1,1]>(x, w) b = Exp(a) c = Sub(a, b) y = Flatten(c) }"""
    whole = onnx.parser.parse_model(text.replace(" <float[128,3,3,3] w>", "").replace("g (", "g (float[128,3,3,3] w, "))
    model = onnxjson.from_proto(whole)
    with pytest.raises(EvaluationError, match="--memory"):
        verify(model, model, settings=Settings(memory=32 << 20))


def test_sizes_of_sound_are_tried() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[B,N] x) => (float[4,64] y)
    <int64[2] s = {4, 64}> {y = Reshape(x, s)}"""
    sound = onnxjson.from_proto(onnx.parser.parse_model(text))
    assert [each.sizes for each in verify(sound, sound).runs] == [{"B": 1, "N": 256}] * 3

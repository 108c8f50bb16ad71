"""Verdicts on rewrites, from diffs of small models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxjson
from onnxjson import Model
from onnxjson.diffing.difference import Diff, diff, diff_models
from onnxjson.diffing.events import Event
from onnxjson.running.comparisons import Tolerance
from onnxjson.running.proof import prove
from onnxjson.storage.external_files import externalize

RANDOM = np.random.default_rng(0)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Node = onnx.NodeProto


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> Node:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


def value(name: str, shape: Sequence[int | str | None] | None, data_type: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, data_type, shape)


def made(
    nodes: Sequence[Node],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: str = "y",
    opset: int = 20,
    constants: dict[str, Any] | None = None,
    **options: Any,
) -> Model:
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs.split()]
    graph = helper.make_graph(list(nodes), "g", list(inputs), results, tensors)
    options.setdefault("opset_imports", [helper.make_opsetid("", opset)])
    return onnxjson.from_proto(helper.make_model(graph, ir_version=10, **options))


def rewritten(proved: Diff) -> Event:
    """The one event that has a verdict."""
    (event,) = [each for each in proved.events if each.verdict is not None]
    return event


def verdict(base: Model, target: Model, **options: Any) -> tuple[str | None, str]:
    event = rewritten(prove(diff_models(base, target), **options))
    return event.verdict, event.evidence


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


WEIGHT, BIAS = floats(8, 3, 3, 3), floats(8)
NORM = {"s": floats(8), "b": floats(8), "m": floats(8), "v": np.abs(floats(8)) + 0.5}
IMAGE = [value("x", ["N", 3, 8, 8])]


def with_norm() -> Model:
    nodes = [
        node("Relu", "x", "r"),
        node("Conv", "r w c", "n"),
        node("BatchNormalization", "n s b m v", "o"),
        node("Sigmoid", "o", "y"),
    ]
    return made(nodes, IMAGE, constants={"w": WEIGHT, "c": BIAS, **NORM})


def without_norm(error: float = 0.0) -> Model:
    factor = NORM["s"] / np.sqrt(NORM["v"] + 1e-5)
    bias = (BIAS - NORM["m"]) * factor + NORM["b"] + np.float32(error)
    constants = {"w": WEIGHT * factor[:, None, None, None], "c": bias}
    return made(
        [node("Relu", "x", "r"), node("Conv", "r w c", "o"), node("Sigmoid", "o", "y")], IMAGE, constants=constants
    )


def test_right_fusion_is_within_tolerance_and_a_wrong_one_different() -> None:
    found, evidence = verdict(with_norm(), without_norm())
    assert found == "within-tolerance"
    assert "on 9 random inputs (onnxruntime)" in evidence
    found, evidence = verdict(with_norm(), without_norm(0.01))
    assert found == "different"
    assert 'elements of "o" differ by up to 0.01' in evidence


def test_tolerance_can_be_given() -> None:
    loose = {"float32": Tolerance(absolute=0.1)}
    assert verdict(with_norm(), without_norm(0.01), tolerances=loose)[0] == "within-tolerance"
    assert verdict(with_norm(), without_norm(), tolerances={"float32": Tolerance()})[0] == "different"


def test_same_seed_gives_the_same_figures() -> None:
    first = verdict(with_norm(), without_norm())
    assert verdict(with_norm(), without_norm()) == first
    assert verdict(with_norm(), without_norm(), seed=1)[1] != first[1]


def test_diff_itself_stays_as_it_is() -> None:
    before = diff_models(with_norm(), without_norm())
    assert rewritten(before).verdict == "not-run"
    after = prove(before)
    assert rewritten(before).verdict == "not-run"
    assert [each.kind for each in after.events] == [each.kind for each in before.events]
    assert after.events[0].members == before.events[0].members


def test_fold_is_evaluated_once_without_inputs() -> None:
    x = [value("x", ["N", 4])]
    base = made(
        [node("Mul", "a a", "b"), node("Add", "x b", "y")], x, constants={"a": np.array([1, 2, 3, 4], np.float32)}
    )
    for wrong, expected in ((0, "equal"), (1, "different")):
        folded = np.array([1, 4, 9, 16 + wrong], np.float32)
        target = made([node("Add", "x b", "y")], x, constants={"b": folded})
        found, evidence = verdict(base, target)
        assert found == expected
        assert "evaluated once, without inputs" in evidence


def test_three_dimensions_with_names() -> None:
    x = [value("x", ["batch", "sequence", 16])]
    constants = {"r": np.float32(np.sqrt(2)), "one": np.float32(1), "half": np.float32(0.5)}
    nodes = [
        node("Div", "h r", "d"),
        node("Erf", "d", "e"),
        node("Add", "e one", "p"),
        node("Mul", "h p", "q"),
        node("Mul", "q half", "g"),
    ]
    around = [node("Softplus", "x", "h")], [node("Tanh", "g", "y")]
    base = made([*around[0], *nodes, *around[1]], x, constants=constants)
    for approximate, expected in (("none", "within-tolerance"), ("tanh", "different")):
        gelu = node("Gelu", "h", "g", approximate=approximate)
        found, evidence = verdict(base, made([*around[0], gelu, *around[1]], x))
        assert found == expected, evidence


def test_dimensions_without_names_that_must_agree_are_found_by_trying() -> None:
    inputs = [value("x", [None, 4]), value("z", [None, 4])]
    ends = [node("Exp", "x", "a"), node("Exp", "z", "b")], node("Neg", "t", "y")
    base = made([*ends[0], node("Add", "a b", "s"), node("Relu", "s", "t"), ends[1]], inputs)
    other = [node("Max", "a c", "d"), node("Sum", "d b", "t")]
    target = made([*ends[0], *other, ends[1]], inputs, constants={"c": np.float32(-1000)})
    proved = prove(diff_models(base, target))
    assert not {each.verdict for each in proved.events if each.verdict} & {"not-run"}, proved.events


@pytest.mark.parametrize("bound", [6.0, 50.0, 1000.0])
def test_bound_that_numbers_around_zero_never_reach_is_met(bound: float) -> None:
    inputs = [value("x", [2, 4])]
    base = made([node("Relu", "x", "r"), node("Relu", "r", "y")], inputs)
    constants = {"low": np.float32(0), "high": np.float32(bound)}
    assert verdict(base, made([node("Clip", "x low high", "y")], inputs, constants=constants))[0] == "different"
    assert verdict(base, made([node("Clip", "x low", "y")], inputs, constants=constants))[0] == "equal"


def test_comparison_is_tried_with_the_very_number() -> None:
    inputs = [value("x", [2, 4])]
    nodes = [node("Greater", "x c", "g"), node("Not", "g", "n"), node("Not", "n", "y")]
    for number in (0.0, 3.7, -40.0):
        constants = {"c": np.float32(number)}
        base = made(nodes, inputs, constants=constants)
        assert verdict(base, made([node("GreaterOrEqual", "x c", "y")], inputs, constants=constants))[0] == "different"
        assert verdict(base, made([node("Less", "c x", "y")], inputs, constants=constants))[0] == "equal"


@pytest.mark.parametrize("size", [1, 2, 3])
def test_size_that_became_fixed_is_never_verified(size: int) -> None:
    inputs = [value("x", ["N", 4])]
    base = made([node("Relu", "x", "y")], inputs)
    nodes = [node("Reshape", "x s", "r"), node("Relu", "r", "y")]
    found, evidence = verdict(base, made(nodes, inputs, constants={"s": np.array([size, 4])}))
    assert found == "not-run"
    assert "only the base accepts" in evidence
    assert verdict(base, made(nodes, inputs, constants={"s": np.array([-1, 4])}))[0] == "equal"
    # The other way round the model takes more than before, and does the same with what it took.
    narrow = made(nodes, inputs, constants={"s": np.array([size, 4])})
    assert verdict(narrow, base)[0] == ("not-run" if size == 3 else "equal")


@pytest.mark.parametrize("size", [1, 2, 5])
def test_shape_that_was_folded_for_one_size_is_never_verified(size: int) -> None:
    inputs = [value("x", ["N", 2, 2])]
    nodes = [
        node("Shape", "x", "a"),
        node("Gather", "a first", "n", axis=0),
        node("Concat", "n rest", "s", axis=0),
        node("Reshape", "x s", "r"),
        node("Relu", "r", "y"),
    ]
    base = made(nodes, inputs, constants={"first": np.array([0]), "rest": np.array([-1])})
    folded = made(nodes[3:], inputs, constants={"s": np.array([size, 4])})
    assert verdict(base, folded)[0] in ("not-run", "different")


def test_indices_stay_within_what_they_count() -> None:
    inputs = [value("ids", ["batch", "sequence"], INT64)]
    table = floats(3, 8)
    before, after = node("Abs", "ids", "i"), node("Neg", "g", "y")
    base = made(
        [before, node("Gather", "t i", "e"), node("Mul", "e k", "g"), after],
        inputs,
        constants={"t": table, "k": np.float32(2)},
    )
    target = made([before, node("Gather", "t i", "g"), after], inputs, constants={"t": table * 2})
    assert verdict(base, target)[0] == "equal"


def test_shapes_that_are_inputs_fit_their_data() -> None:
    inputs = [value("x", [2, 3, 4]), value("shape", [2], INT64)]
    base = made(
        [node("Reshape", "x shape", "r"), node("Neg", "r", "s"), node("Neg", "s", "t"), node("Exp", "t", "y")], inputs
    )
    target = made([node("Reshape", "x shape", "t"), node("Exp", "t", "y")], inputs)
    assert verdict(base, target)[0] == "equal"


def test_inserted_and_eliminated_nodes_show_whether_they_compute_anything() -> None:
    x = [value("x", [4])]
    plain = made([node("Exp", "x", "a"), node("Neg", "a", "y")], x)
    square = made([node("Exp", "x", "a"), node("Mul", "a a", "b"), node("Neg", "b", "y")], x)
    assert verdict(plain, square)[0] == "different"
    assert verdict(square, plain)[0] == "different"


def test_rewrite_may_be_right_only_for_what_stands_around_it() -> None:
    x = [value("x", [4])]

    def model(before: str, *between: Node) -> Model:
        return made([node(before, "x", "a"), *between, node("Neg", "b" if between else "a", "y")], x)

    found, evidence = verdict(model("Exp", node("Relu", "a", "b")), model("Exp"))
    assert found == "equal"
    assert "within the" in evidence
    assert "; alone " in evidence
    assert verdict(model("Sin", node("Relu", "a", "b")), model("Sin"))[0] == "different"


def test_values_that_a_subgraph_takes_from_around_it_are_inputs() -> None:
    inputs = [value("x", [2, 3]), value("c", [], BOOL)]

    def model(*branch: Node, constants: dict[str, Any]) -> Model:
        then = helper.make_graph(list(branch), "then", [], [value("t", None)])
        other = helper.make_graph([node("Sin", "h", "u")], "else", [], [value("u", None)])
        choice = node("If", "c", "r", then_branch=then, else_branch=other)
        return made([node("Exp", "x", "h"), choice, node("Neg", "r", "y")], inputs, constants=constants)

    base = model(
        node("Tanh", "h", "a"), node("Mul", "a k", "b"), node("Mul", "b k", "d"), node("Cos", "d", "t"),
        constants={"k": np.float32(2)},
    )  # fmt: skip
    for factor, expected in ((4, "equal"), (5, "different")):
        target = model(
            node("Tanh", "h", "a"), node("Mul", "a k", "d"), node("Cos", "d", "t"), constants={"k": np.float32(factor)}
        )
        found, evidence = verdict(base, target)
        assert found == expected, evidence


def test_subgraph_within_a_rewrite_takes_what_it_needs() -> None:
    inputs = [value("x", [2, 3]), value("c", [], BOOL)]
    branches = [
        helper.make_graph([node(kind, "h", "o")], kind, [], [value("o", None)]) for kind in ("Identity", "Identity")
    ]
    choice = node("If", "c", "r", then_branch=branches[0], else_branch=branches[1])
    base = made([node("Exp", "x", "h"), choice, node("Neg", "r", "y")], inputs)
    target = made([node("Exp", "x", "h"), node("Neg", "h", "y")], inputs)
    proved = prove(diff_models(base, target))
    assert [each.verdict for each in proved.events if each.verdict] == ["equal"], proved.events


def test_functions_are_taken_along() -> None:
    x = [value("x", [2, 3])]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("my", 1)]
    function = helper.make_function(
        "my", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], [helper.make_opsetid("", 20)]
    )
    base = made(
        [node("Exp", "x", "h"), node("Twice", "h", "t", domain="my"), node("Neg", "t", "y")],
        x,
        opset_imports=opsets,
        functions=[function],
    )
    target = made([node("Exp", "x", "h"), node("Add", "h h", "t"), node("Neg", "t", "y")], x, opset_imports=opsets)
    proved = prove(diff_models(base, target))
    assert {each.verdict for each in proved.events if each.kind in {"replaced", "function-inlined"}} == {"equal"}


def test_attribute_of_the_function_around_is_not_known() -> None:
    x = [value("x", [2, 3])]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("my", 1)]

    def model(*nodes: Node) -> Model:
        first = helper.make_node("LeakyRelu", ["a"], ["c"])
        first.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
        function = helper.make_function(
            "my", "F", ["a"], ["b"], [node("Exp", "a", "z"), first, *nodes], [helper.make_opsetid("", 20)], ["slope"]
        )
        call = node("F", "x", "y", domain="my", slope=0.5)
        return made([call], x, opset_imports=opsets, functions=[function])

    proved = prove(diff_models(model(node("Add", "z c", "b")), model(node("Sub", "z c", "d"), node("Neg", "d", "b"))))
    assert {each.verdict for each in proved.events if each.verdict} == {"not-run"}


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("RandomNormalLike", "h", "t")], "RandomNormalLike returns random results"),
        ([node("Bernoulli", "h", "t")], "Bernoulli returns random results"),
        ([node("Dropout", "h rate yes", "t")], "Dropout returns random results"),
        ([node("Log", "bad", "u"), node("Mul", "u h", "t")], "no finite elements"),
        ([node("NoSuchOperator", "h", "t")], "part of the target"),
    ],
    ids=["random", "bernoulli", "dropout", "nan", "unknown"],
)
def test_what_cannot_be_compared_is_not_run(nodes: list[Node], reason: str) -> None:
    x = [value("x", [4])]
    constants = {"rate": np.float32(0.5), "yes": np.bool_(True), "bad": np.float32(-1)}
    base = made([node("Exp", "x", "h"), node("Tanh", "h", "t"), node("Neg", "t", "y")], x)
    if reason == "no finite elements":
        base = made([node("Exp", "x", "h"), node("Add", "h bad2", "t"), node("Neg", "t", "y")], x,
                    constants={"bad2": np.float32("nan")})  # fmt: skip
    target = made([node("Exp", "x", "h"), *nodes, node("Neg", "t", "y")], x, constants=constants)
    proved = prove(diff_models(base, target))
    events = [each for each in proved.events if each.verdict]
    assert {each.verdict for each in events} == {"not-run"}, events
    assert any(reason in each.evidence for each in events), events


def test_dropout_that_drops_nothing_is_none() -> None:
    x = [value("x", [4])]
    base = made(
        [node("Exp", "x", "h"), node("Dropout", "h rate no", "t"), node("Neg", "t", "y")],
        x,
        constants={"rate": np.float32(0.5), "no": np.bool_(False)},
    )
    assert verdict(base, made([node("Exp", "x", "h"), node("Neg", "h", "y")], x))[0] == "equal"


def test_operator_set_that_nothing_knows_is_a_reason() -> None:
    x = [value("x", [4])]
    base = made([node("Exp", "x", "h"), node("Abs", "h", "t"), node("Neg", "t", "y")], x, opset=999)
    target = made([node("Exp", "x", "h"), node("Relu", "h", "t"), node("Neg", "t", "y")], x, opset=999)
    found, evidence = verdict(base, target)
    assert found == "not-run"
    assert "operator set 999 is not known" in evidence


def test_what_only_the_reference_computes_is_evaluated_by_that() -> None:
    x = [value("x", [4], TensorProto.BFLOAT16)]
    base = made([node("Neg", "x", "h"), node("Abs", "h", "a"), node("Abs", "a", "t"), node("Neg", "t", "y")], x)
    target = made([node("Neg", "x", "h"), node("Abs", "h", "t"), node("Neg", "t", "y")], x)
    found, evidence = verdict(base, target)
    assert found == "equal", evidence
    assert "(reference)" in evidence


def test_type_that_nobody_knows_is_a_reason() -> None:
    x = [onnx.ValueInfoProto(name="x")]
    base = made([node("Foo", "x", "h", domain="my"), node("Abs", "h", "t"), node("Foo", "t", "y", domain="my")], x)
    target = made([node("Foo", "x", "h", domain="my"), node("Relu", "h", "t"), node("Foo", "t", "y", domain="my")], x)
    found, evidence = verdict(base, target)
    assert found == "not-run"
    assert "the type of its input" in evidence


def test_half_precision_is_compared_as_such() -> None:
    def model(data_type: int, dtype: Any) -> Model:
        nodes = [node("Relu", "x", "h"), node("MatMul", "h w", "m"), node("Add", "m b", "t"), node("Neg", "t", "y")]
        return made(
            nodes, [value("x", [2, 4], data_type)], constants={"w": weight.astype(dtype), "b": bias.astype(dtype)}
        )

    weight, bias = floats(4, 4), floats(4)
    base = model(TensorProto.FLOAT16, np.float16)
    gemm = [node("Relu", "x", "h"), node("Gemm", "h w b", "t"), node("Neg", "t", "y")]
    target = made(
        gemm, [value("x", [2, 4], TensorProto.FLOAT16)],
        constants={"w": weight.astype(np.float16), "b": bias.astype(np.float16)},
    )  # fmt: skip
    assert verdict(base, target)[0] in {"equal", "within-tolerance"}


def many(count: int, wrong: int | None = None, *, fused: bool) -> Model:
    nodes: list[Node] = []
    constants: dict[str, Any] = {}
    last = "x"
    for number in range(count):
        weight = np.random.default_rng(number).standard_normal((4, 4)).astype(np.float32)
        bias = weight[0] + np.float32(number == wrong)
        constants |= {f"w{number}": weight, f"b{number}": bias}
        if fused:
            nodes.append(node("Gemm", f"{last} w{number} b{number}", f"t{number}"))
        else:
            nodes.append(node("MatMul", f"{last} w{number}", f"m{number}"))
            nodes.append(node("Add", f"m{number} b{number}", f"t{number}"))
        nodes.append(node("Tanh", f"t{number}", f"h{number}"))
        last = f"h{number}"
    return made(nodes, [value("x", ["N", 4])], last, constants=constants)


def test_many_places_are_one_verdict_of_some_of_them() -> None:
    found, evidence = verdict(many(12, fused=False), many(12, fused=True))
    assert found in {"equal", "within-tolerance"}
    assert "at 8 of 12 places" in evidence
    assert "at 1 of 12 places" in verdict(many(12, fused=False), many(12, fused=True), places=1)[1]
    assert verdict(many(12, fused=False), many(12, 11, fused=True))[0] == "different"
    assert verdict(many(12, fused=False), many(12, 5, fused=True), places=12)[0] == "different"


def test_weights_that_are_not_here_are_a_reason() -> None:
    texts = [onnxjson.dumps(each, weights="digest") for each in (with_norm(), without_norm())]
    found, evidence = verdict(onnxjson.loads(texts[0]), onnxjson.loads(texts[1]))
    assert found == "not-run"
    assert 'only the sha256 of "w" is stored' in evidence


def test_weights_in_other_files_are_taken_from_there(tmp_path: Path) -> None:
    paths = tmp_path / "base.onnx", tmp_path / "target.onnx"
    for path, model in zip(paths, (with_norm(), without_norm()), strict=True):
        onnxjson.save(externalize(model, path.with_suffix(".bin"), threshold=100).model, path)
    proved = prove(diff(*paths))
    assert rewritten(proved).verdict == "within-tolerance"
    paths[1].with_suffix(".bin").unlink()
    event = rewritten(prove(diff(*paths)))
    assert (event.verdict, "cannot be read" in event.evidence) == ("not-run", True)


def test_evaluation_that_hangs_is_not_run_and_the_others_are() -> None:
    body = helper.make_graph(
        [node("Identity", "go", "still"), node("Add", "state state", "next")],
        "body",
        [value("number", [], INT64), value("go", [], BOOL), value("state", None)],
        [value("still", [], BOOL), value("next", None)],
    )
    x = [value("x", [4])]
    ends = [node("Neg", "t", "n"), node("Abs", "n", "a"), node("Abs", "a", "r"), node("Exp", "r", "y")]
    base = made([node("Exp", "x", "h"), node("Tanh", "h", "t"), *ends], x)
    loop = [
        node("Constant", "", "count", value_int=2**62),
        helper.make_node("Loop", ["count", "", "h"], ["t"], body=body),
    ]
    shorter = [node("Neg", "t", "n"), node("Abs", "n", "r"), node("Exp", "r", "y")]
    proved = prove(diff_models(base, made([node("Exp", "x", "h"), *loop, *shorter], x)), timeout=2)
    found = {each.verdict: each.evidence for each in proved.events if each.verdict}
    assert set(found) == {"equal", "not-run"}, found
    assert "does not finish" in found["not-run"]


def test_crash_of_an_evaluator_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxjson.running import server_process

    crashing = server_process.START.replace(
        "main()\n",
        "import os\nfrom onnxjson.running import executing\nexecuting.execute_task = lambda *_: os.abort()\nmain()\n",
    )
    monkeypatch.setattr(server_process, "START", crashing)
    found, evidence = verdict(with_norm(), without_norm())
    assert found == "not-run"
    assert "crashed" in evidence
    assert "SIGABRT" in evidence


def test_names_in_evidence_are_made_visible() -> None:
    x = [value("x", [4])]

    def model(op_type: str) -> Model:
        nodes = [
            helper.make_node("Exp", ["x"], ["h"]),
            helper.make_node(op_type, ["h"], ["\x1b[31m"]),
            helper.make_node("Neg", ["\x1b[31m"], ["y"]),
        ]
        return made(nodes, x)

    found, evidence = verdict(model("Tanh"), model("Sin"))
    assert found == "different"
    assert evidence.isprintable()
    assert "\\u{1b}[31m" in evidence


def test_models_without_rewrites_start_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.Popen", None)
    model = with_norm()
    assert prove(diff_models(model, model)).events == ()


def test_reshape_that_moved_is_compared_with_all_that_it_moved_past() -> None:
    x = [value("x", [2, 3, 4])]
    shapes = {"flat": np.array([6, 4]), "deep": np.array([2, 3, 4])}
    between = [("Tanh", "Sin", "Neg", "Cos", "Abs")]

    def model(shape: str, *, moved: bool, scale: float = 1.0) -> Model:
        last, nodes = "h", [node("Exp", "x", "h")]
        if moved:
            nodes.append(node("Reshape", f"h {shape}", "r"))
            last = "r"
        for number, kind in enumerate(between[0]):
            nodes.append(node(kind, last, f"t{number}"))
            last = f"t{number}"
        nodes += [node("Reshape", f"{last} flat", "f"), node("Mul", "f k", "m"), node("Softmax", "m", "y")]
        return made(nodes, x, constants=shapes | {"k": np.float32(scale)})

    found, evidence = verdict(model("flat", moved=True), model("flat", moved=False))
    assert found == "equal", evidence
    assert "around it" in evidence


@pytest.mark.parametrize("scale", [1.0, 1.01])
def test_inputs_that_are_made_of_each_other_do_not_contradict(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxjson.running.proof.WIDENINGS", 1)
    x = [value("x", ["N", "M", 4])]
    constants = {
        "w": (np.eye(4) * scale).astype(np.float32),
        "v": np.eye(4, dtype=np.float32),
        "b": floats(4),
        "flat": np.array([-1, 4]),
        "four": np.array([4]),
        "turn": np.array([1, 0]),
        "first": np.array([0]),
        "last": np.array([-1]),
    }
    ends = [node("Exp", "l", "e"), node("Tanh", "e", "y")]
    head = [
        node("Cos", "x", "h"),
        node("Transpose", "h", "t", perm=[1, 0, 2]),
        node("Shape", "x", "sizes"),
        node("Gather", "sizes turn", "turned", axis=0),
        node("Concat", "turned four", "kept", axis=0),
        node("Reshape", "t kept", "k"),
    ]
    base = [*head, node("MatMul", "k v", "m"), node("Add", "m b", "l"), *ends]
    target = [
        *head,
        node("Reshape", "t flat", "r"),
        node("Gemm", "r w b", "g"),
        node("Shape", "k", "s"),
        node("Slice", "s first last", "begin"),
        node("Concat", "begin four", "whole", axis=0),
        node("Reshape", "g whole", "l"),
        *ends,
    ]
    found, evidence = verdict(made(base, x, constants=constants), made(target, x, constants=constants))
    assert found == ("equal" if scale == 1.0 else "different"), evidence


def test_values_that_are_computed_from_constants_alone_are_not_made_up() -> None:
    x = [value("x", [1, 2, 4, 4])]
    constants = {"four": np.array([4]), "none": np.zeros(4, np.float32), "tail": np.array([0, 0, 1, 1], np.float32)}

    first = [
        node("ConstantOfShape", "four", "zero"),
        node("Mul", "zero none", "product"),
        node("Abs", "product", "absolute"),
        node("Neg", "absolute", "negative"),
        node("Sign", "negative", "sign"),
        node("Concat", "sign tail", "all", axis=0),
        node("Cast", "all", "p", to=INT64),
        node("Pad", "x p", "a"),
        node("Exp", "a", "e"),
    ]
    second = [node("Concat", "none tail", "both", axis=0), node("Cast", "both", "q", to=INT64)]
    base, merged = [*first, *second, node("Pad", "e q", "y")], [*first, node("Pad", "e p", "y")]
    proved = prove(diff_models(made(base, x, constants=constants), made(merged, x, constants=constants)))
    assert {each.verdict for each in proved.events if each.verdict} == {"equal"}, proved.events


def test_copy_of_a_constant_gets_no_random_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxjson.running.regions.MAX_NODES", 9)
    x = [value("x", [2, 2, 4])]
    constants = {"b": floats(4), "w": floats(4, 4), "flat": np.array([4, 4]), "deep": np.array([2, 2, 4])}
    base = [
        node("Identity", "b", "b1"), node("Identity", "b", "b2"), node("Mul", "x b1", "o"), node("Neg", "o", "p"),
        node("Sin", "p", "q"), node("MatMul", "q w", "m"), node("Add", "m b2", "a"), node("Exp", "a", "e"),
        node("Tanh", "e", "t"), node("Cos", "t", "y"),
    ]  # fmt: skip
    target = [
        node("Mul", "x b", "o"), node("Neg", "o", "p"), node("Sin", "p", "q"), node("Reshape", "q flat", "f"),
        node("Gemm", "f w b", "a"), node("Exp", "a", "e"), node("Tanh", "e", "t"), node("Reshape", "t deep", "d"),
        node("Cos", "d", "y"),
    ]  # fmt: skip
    proved = prove(diff_models(made(base, x, constants=constants), made(target, x, constants=constants)))
    verdicts = {each.verdict for each in proved.events if each.verdict}
    assert verdicts
    assert verdicts <= {"equal", "within-tolerance"}, proved.events


def test_subtle_mistake_among_many_nodes_is_found() -> None:
    found, evidence = verdict(many(6, fused=False), many(6, 3, fused=True))
    assert found == "different"
    assert 'elements of "t3" differ' in evidence

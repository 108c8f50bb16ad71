"""What onnx finds is at its element, and what follows from an error is counted there."""

from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest

from onnxjson.codecs.serde import from_proto
from onnxjson.model.errors import Finding, WorkerError
from onnxjson.model.index import Index
from onnxjson.model.operator_checks import check_model
from onnxjson.running import independent_errors
from onnxjson.running.checking import onnx_findings
from onnxjson.running.independent_errors import Folded
from onnxjson.running.worker import Worker

MODEL = """<ir_version: 8, opset_import: ["":18, "own":1]>
g (bool flag, float[3,4] x) => (float[3,4] y, float[3,4] other)
<float[4] w = {1.0, 2.0, 3.0, 4.0}, float[3,4] s, float[3,4] r> {
  [twice] s = Softmax<axis=1>(x)
  [twice] r = Relu(s)
  [bias] b = Add(r, w)
  [branch] i = If (flag) <
    then_branch = then () => (float[3,4] a) { [in_then] a = Softmax<axis=1>(b) },
    else_branch = other () => (float[3,4] c) { [in_else] c = Relu(b) }
  >
  [last] y = Transpose<perm=[0,1]>(i)
  [call] other = own.F(x)
}
<domain: "own", opset_import: ["":18]>
F (p) => (q) { [inside] q = Softmax<axis=1>(p) }
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as shared:
        yield shared


def spoiled(spoil: Callable[[onnx.ModelProto], object], worker: Worker) -> list[Finding]:
    proto = onnx.parser.parse_model(MODEL)
    spoil(proto)
    model = from_proto(proto)
    return list(onnx_findings(worker, model, check_model(model)))


def set_axis(node: onnx.NodeProto, axis: int = 7) -> None:
    node.attribute[0].i = axis


def without_name(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].ClearField("name")
    set_axis(proto.graph.node[0])


def branch(proto: onnx.ModelProto, number: int) -> onnx.NodeProto:
    return proto.graph.node[3].attribute[number].g.node[0]


def test_a_valid_model_has_none(worker: Worker) -> None:
    assert spoiled(lambda proto: None, worker) == []


CASES: dict[str, tuple[Callable[[onnx.ModelProto], object], str, str, str]] = {
    "a node of two with one name": (
        lambda proto: set_axis(proto.graph.node[0]),
        "check-shapes",
        "/graph/node/0",
        "node name: twice): [ShapeInferenceError] 'axis' must be in [-2 , 1]. Its actual value is: 7",
    ),
    "a node without a name": (
        without_name,
        "check-shapes",
        "/graph/node/0",
        "node name: )",
    ),
    "a node in a subgraph, and not the node around it": (
        lambda proto: set_axis(branch(proto, 0)),
        "check-shapes",
        "/graph/node/3/attribute/then_branch/g/node/0",
        "node name: in_then",
    ),
    "a node in a function": (
        lambda proto: set_axis(proto.functions[0].node[0]),
        "check-shapes",
        "/functions/0/node/0",
        "node name: inside",
    ),
    "an unknown operator, which is known already": (
        lambda proto: setattr(proto.graph.node[0], "op_type", "SoftMax"),
        "unknown-operator",
        "/graph/node/0/op_type",
        "there is no operator SoftMax (and 1 more that follows from it)",
    ),
    "an unknown operator in a function, which onnx does not place": (
        lambda proto: setattr(proto.functions[0].node[0], "op_type", "Nope"),
        "unknown-operator",
        "/functions/0/node/0/op_type",
        "that follows from it",
    ),
    "an initializer": (
        lambda proto: proto.graph.initializer[0].dims.append(2),
        "wrong-length",
        "/graph/initializer/0",
        "that follow",
    ),
    "a type that is stated wrongly": (
        lambda proto: proto.graph.value_info.append(
            onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [9])
        ),
        "check-shapes",
        "/graph/value_info/2",
        "Inferred shape and existing shape differ in dimension 0: (4) vs (9)",
    ),
    "the graph": (
        lambda proto: proto.graph.ClearField("name"),
        "check-model",
        "/graph",
        "Field 'name' of 'graph' is required",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_message_is_at_its_element(case: str, worker: Worker) -> None:
    spoil, code, address, message = CASES[case]
    (finding,) = spoiled(spoil, worker)
    assert (finding.code, finding.address) == (code, address)
    assert message in finding.message
    assert "node-" not in finding.message


def test_what_depends_on_an_error_is_counted_and_the_rest_is_listed(worker: Worker) -> None:
    def spoil(proto: onnx.ModelProto) -> None:
        set_axis(proto.graph.node[0])
        set_axis(branch(proto, 0))
        proto.graph.node[4].attribute[0].ints[:] = [0, 7]
        set_axis(proto.functions[0].node[0])

    errors = spoiled(spoil, worker)
    assert [each.address for each in errors] == [
        "/graph/node/4/attribute/perm",
        "/graph/node/0",
        "/functions/0/node/0",
        "/graph/node/3/attribute/then_branch/g/node/0",
    ]
    assert "more" not in "".join(each.message for each in errors[1:])


SERIES = """<ir_version: 8, opset_import: ["":18]>
g (float[2,3,4] x) => (float[2,3,4] y) <float[4,4] w = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> {
  s0 = Softmax<axis=7>(x)
  m0 = MatMul(s0, w)
  s1 = Softmax<axis=7>(m0)
  m1 = MatMul(s1, w)
  s2 = Softmax<axis=7>(m1)
  m2 = MatMul(s2, w)
  s3 = Softmax<axis=7>(m2)
  y = Relu(s3)
}
"""


def test_errors_behind_an_error_are_found_without_types_between_them(worker: Worker) -> None:
    model = from_proto(onnx.parser.parse_model(SERIES))
    found = onnx_findings(worker, model, check_model(model))
    assert [each.address for each in found] == [f"/graph/node/{position}" for position in (0, 2, 4, 6)]
    assert all("'axis' must be in [-3 , 2]. Its actual value is: 7" in each.message for each in found)


BRANCHES = """<ir_version: 8, opset_import: ["":18]>
g (bool c, float[2,3] x) => (float[2,3] y, float[2,3] z) {
  y = If (c) <
    then_branch = t () => (float[2,3] a) { a = Softmax<axis=7>(x) },
    else_branch = e () => (float[2,3] b) {
      n = Softmax<axis=9>(x)
      b = If (c) <then_branch = u () => (float[2,3] d) { d = Softmax<axis=6>(x) },
                  else_branch = f () => (float[2,3] h) { h = Softmax<axis=8>(x) }>
    }
  >
  z = Softmax<axis=5>(x)
}
"""


def test_errors_in_all_branches_are_found(worker: Worker) -> None:
    model = from_proto(onnx.parser.parse_model(BRANCHES))
    findings = onnx_findings(worker, model, check_model(model))
    other = "/graph/node/0/attribute/else_branch/g/node"
    assert sorted(each.address for each in findings) == [
        f"{other}/0",
        f"{other}/1/attribute/else_branch/g/node/0",
        f"{other}/1/attribute/then_branch/g/node/0",
        "/graph/node/0/attribute/then_branch/g/node/0",
        "/graph/node/1",
    ]
    assert len({each.message for each in findings}) == len(findings)


def test_the_number_of_questions_is_limited(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(independent_errors, "ROUNDS", 2)
    model = from_proto(onnx.parser.parse_model(SERIES))
    *found, last = onnx_findings(worker, model, check_model(model))
    assert [each.address for each in found] == ["/graph/node/0", "/graph/node/2", "/graph/node/4"]
    assert last.code == "check-unfinished"
    assert "ran 2 times" in last.message


def test_branches_of_one_node_do_not_follow_from_each_other() -> None:
    index = Index(from_proto(onnx.parser.parse_model(MODEL)))
    names = ["then_branch/g/node/0", "else_branch/g/node/0", "else_branch/g/node/0"]
    addresses = ["/graph", *[f"/graph/node/3/attribute/{each}" for each in names], "/graph/node/3", "/graph/node/4"]
    found = [Finding(severity="error", code="check-shapes", address=each, message="wrong") for each in addresses]
    kept = Folded(index, found).findings()
    assert [each.address for each in kept] == addresses[:3]
    assert [each.message for each in kept] == [
        "wrong",
        "wrong (and 2 more that follow from it)",
        "wrong (and 1 more that follows from it)",
    ]


def test_without_an_answer_about_nodes_the_message_remains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(MODEL)
    set_axis(proto.graph.node[0])
    onnx.save(proto, tmp_path / "m.onnx")
    check = Worker.check

    def once(self: Worker, model: bytes | Path, full: bool = False, **more: object) -> tuple[Finding, ...]:
        if isinstance(model, bytes):
            raise WorkerError("the checker of onnx does not finish on this model")
        return check(self, model, full, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Worker, "check", once)
    with Worker() as worker:
        (finding,) = onnx_findings(worker, from_proto(proto), path=tmp_path / "m.onnx")
    assert (finding.code, finding.address) == ("check-shapes", "/graph")
    assert "node name: twice" in finding.message


def test_a_permutation_is_compared_with_the_inferred_number_of_dimensions(worker: Worker) -> None:
    text = """<ir_version: 8, opset_import: ["":17]>
    g (float[2,3,4] x) => (float[a,b] y) { r = Relu(x) t = Transpose<perm=[1,0]>(r) y = Relu(t) }"""
    model = from_proto(onnx.parser.parse_model(text))
    assert check_model(model) == ()
    (finding,) = onnx_findings(worker, model)
    assert finding.address == "/graph/node/1/attribute/perm"
    assert finding.message == "perm has 2 axes, but the input has 3 dimensions"


def test_nodes_of_domains_that_onnx_does_not_know_are_counted(worker: Worker) -> None:
    text = """<ir_version: 8, opset_import: ["":17, "other":99]>
    g (float[2] x) => (float[2] y) { r = other.F(x) y = other.F(r) }"""
    (finding,) = onnx_findings(worker, from_proto(onnx.parser.parse_model(text)))
    assert (finding.severity, finding.code, finding.address) == ("warning", "unknown-domain", "/graph/node/0")
    assert finding.hint.startswith("2 nodes of this domain were not checked")

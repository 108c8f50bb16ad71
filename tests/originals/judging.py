"""What must come out of the jobs of original tools, judged by onnx's checker, onnxruntime, and what each is about."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import onnx
from google.protobuf import json_format
from onnx import numpy_helper


class Outcome(NamedTuple):
    """What a program left behind."""

    code: int
    output: str
    folder: Path

    def model(self, name: str = "out.onnx") -> onnx.ModelProto:
        """The model that it wrote, whatever is in it."""
        path = self.folder / name
        if not path.exists():
            raise WrongError("no file is written")
        return onnx.load(path)


Judge = Callable[[Outcome], None]


class WrongError(Exception):
    """What came out is not what was asked for."""


def require(fact: object, what: str) -> None:
    """Raises:
    WrongError: it is none.
    """
    if not fact:
        raise WrongError(what)


def valid(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model, which onnx's checker and onnxruntime take."""
    import onnxruntime

    onnx.checker.check_model(proto, full_check=True)
    domains = [each.domain for each in proto.opset_import]
    require(len(set(domains)) == len(domains), "two versions of one operator set are imported")
    onnxruntime.InferenceSession(proto.SerializeToString())
    return proto


def run(proto: onnx.ModelProto, **inputs: Any) -> list[Any]:
    """What onnxruntime computes."""
    import onnxruntime

    found: list[Any] = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    return found


def operators(proto: onnx.ModelProto) -> list[str]:
    """The operators of the nodes in their order."""
    return [node.op_type for node in proto.graph.node]


def refused(outcome: Outcome) -> None:
    """What cannot be done is refused: an exit code, and no file."""
    require(outcome.code, "exit code 0")
    require(not (outcome.folder / "out.onnx").exists(), "a file is written")


def values(*numbers: float) -> Any:
    """A row of float32."""
    return numpy.array([numbers], numpy.float32)


def judge(measure: Callable[[onnx.ModelProto], object], expected: object, what: str) -> Judge:
    """A judge of a valid model of which something must be as expected; `what` names it in messages."""

    def check(outcome: Outcome) -> None:
        found = measure(valid(outcome.model()))
        require(found == expected, f"{what}: {found}, not {expected}")

    return check


def all_of(*judges: Judge) -> Judge:
    """A judge that asks others."""

    def check(outcome: Outcome) -> None:
        for each in judges:
            each(outcome)

    return check


def inputs(*expected: str) -> Judge:
    """A judge of the names of the inputs."""
    return judge(lambda proto: [each.name for each in proto.graph.input], list(expected), "the inputs")


def outputs(*expected: str) -> Judge:
    """A judge of the names of the outputs."""
    return judge(lambda proto: [each.name for each in proto.graph.output], list(expected), "the outputs")


def nodes(*expected: str) -> Judge:
    """A judge of the operators, in any order."""
    return judge(lambda proto: sorted(operators(proto)), sorted(expected), "the operators")


def shapes(*expected: object) -> Judge:
    """A judge of the dims of the first input."""

    def dims(proto: onnx.ModelProto) -> list[object]:
        return [each.dim_param or each.dim_value for each in proto.graph.input[0].type.tensor_type.shape.dim]

    return judge(dims, list(expected), "the shape of the input")


def attributes(**expected: object) -> Judge:
    """A judge of all attributes of the first node."""

    def found(proto: onnx.ModelProto) -> dict[str, object]:
        return {each.name: onnx.helper.get_attribute_value(each) for each in proto.graph.node[0].attribute}

    return judge(found, expected, "the attributes")


def weights(**expected: Sequence[float]) -> Judge:
    """A judge of the elements of all constants."""

    def found(proto: onnx.ModelProto) -> dict[str, list[float]]:
        return {each.name: numpy_helper.to_array(each).ravel().tolist() for each in proto.graph.initializer}

    return judge(found, {name: list(each) for name, each in expected.items()}, "the constants")


def names_are(*expected: str) -> Judge:
    """A judge of names: of the inputs, then of all values of nodes."""

    def names(proto: onnx.ModelProto) -> list[str]:
        return [
            *[each.name for each in proto.graph.input],
            *[name for node in proto.graph.node for name in node.output],
        ]

    return judge(names, list(expected), "the values")


def returns(expected: Sequence[Any], **given: Any) -> Judge:
    """A judge of the outputs for some inputs."""

    def check(outcome: Outcome) -> None:
        for found, wanted in zip(run(valid(outcome.model()), **given), expected, strict=True):
            require(numpy.array_equal(found, wanted), f"{found} comes out, not {wanted}")

    return check


def computes(expected: Sequence[str], **given: Any) -> Judge:
    """A judge of ordinary jobs: a valid model with these operators, in any order, that runs."""

    def runs(outcome: Outcome) -> None:
        run(outcome.model(), **(given or {"x": values(-1, 2)}))

    return all_of(nodes(*expected), runs)


def runs_with(*sizes: int) -> Judge:
    """A judge of shapes: the model runs with an input of this shape."""

    def batch(proto: onnx.ModelProto) -> object:
        return run(proto, **{proto.graph.input[0].name: numpy.ones(sizes, numpy.float32)})[0].shape[0]

    return judge(batch, sizes[0], "the batch that comes out")


def prints(*texts: str) -> Judge:
    """A judge of reports: every text is printed."""

    def check(outcome: Outcome) -> None:
        missing = [each for each in texts if each not in outcome.output]
        require(not outcome.code and not missing, f"{missing} is not printed")

    return check


def has(count: int, op_type: str) -> Judge:
    """A judge of edits of exports: a valid model of so many nodes, one of this operator, that is not m.onnx."""

    def check(outcome: Outcome) -> None:
        found = valid(outcome.model())
        require(len(found.graph.node) == count and op_type in operators(found), f"{len(found.graph.node)} nodes")
        require(found.graph != onnx.load(outcome.folder / "m.onnx").graph, "nothing is changed")

    return check


def writes_array(*expected: float) -> Judge:
    """A judge of exports: one .npy file other than those before has these elements."""

    def check(outcome: Outcome) -> None:
        files = [each for each in outcome.folder.glob("**/*.npy") if each.name != "given.npy"]
        found = [numpy.load(each).ravel().tolist() for each in files]
        require(list(expected) in found, f"the arrays are {found}")

    return check


def is_named(proto: onnx.ModelProto) -> bool:
    """Whether every node has a name of its own."""
    names = [node.name for node in proto.graph.node]
    return all(names) and len(set(names)) == len(names)


def infinite(outcome: Outcome) -> None:
    """Judges a constant with an infinity, in whichever attribute."""
    (attribute,) = outcome.model().graph.node[0].attribute
    found = numpy_helper.to_array(attribute.t).tolist() if attribute.HasField("t") else list(attribute.floats)
    require(found == [1.0, -numpy.inf], f"the constant is {found}")


def without_comments(outcome: Outcome) -> None:
    """Judges that no doc string is left, in a new file or in place."""
    found = outcome.model("m.onnx" if not (outcome.folder / "out.onnx").exists() else "out.onnx")
    left = [each for each in (found.doc_string, found.graph.doc_string, found.graph.node[0].doc_string) if each]
    require(not left, f"{left} is left")


def same_bytes(outcome: Outcome) -> None:
    """Judges a round trip: every field of the model is what it was."""
    require(onnx.load(outcome.folder / "m.onnx") == outcome.model(), "the model is another")


def json_of(outcome: Outcome) -> None:
    """Judges a conversion: protobuf's JSON of the model."""
    path = outcome.folder / "m.json"
    require(path.exists(), "no file is written")
    found = json_format.Parse(path.read_text(encoding="utf-8"), onnx.ModelProto())
    require(found == onnx.load(outcome.folder / "m.onnx"), "the JSON is of another model")


def profiled(outcome: Outcome) -> None:
    """Judges a profile of onnxruntime."""
    events = [event for each in outcome.folder.glob("*.json") for event in json.loads(each.read_text())]
    require(any(each.get("name") == "model_run" for each in events), "there is no profile")


def intermediate(outcome: Outcome) -> None:
    """Judges three models in a row, and the model of the first two in a file of its own."""
    given = ("a.onnx", "b.onnx", "c.onnx", "out.onnx")
    others = [onnx.load(each) for each in outcome.folder.glob("*.onnx") if each.name not in given]
    found = [sorted(operators(valid(each))) for each in others]
    require(["Abs", "Neg", "Relu"] in found, f"the intermediate models are {found}")


is_input: Judge = all_of(weights(), judge(lambda proto: len(proto.graph.input), 2, "inputs"), writes_array(3, 4))
"""Judges that a constant is an input now, and that its values are in a file."""

named_apart: Judge = judge(is_named, expected=True, what="every node has a name of its own")
"""Judges names of nodes."""

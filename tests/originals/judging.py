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


def combined(outcome: Outcome) -> None:
    """Judges a job: combined."""
    found = valid(outcome.model())
    require([each.version for each in found.opset_import] == [13], "not for version 13")


def extracted(outcome: Outcome) -> None:
    """Judges a job: extracted."""
    found = valid(outcome.model())
    require([each.name for each in found.graph.input] == ["s"], f"inputs are {[v.name for v in found.graph.input]}")
    require(operators(found) == ["Neg"], f"the nodes are {operators(found)}")


def deleted(outcome: Outcome) -> None:
    """Judges a job: deleted."""
    found = valid(outcome.model())
    require(operators(found) == ["Abs", "Neg", "Add"], f"the nodes are {operators(found)}")
    require(run(found, x=values(-1, 2))[0].tolist() == [[0, 0]], "other values come out")


def inserted(outcome: Outcome) -> None:
    """Judges a job: inserted."""
    found = valid(outcome.model())
    require(sorted(operators(found)) == ["Abs", "Neg", "Relu"], f"the nodes are {operators(found)}")
    require(run(found, x=values(-1, 2))[0].tolist() == [[0, -2]], "other values come out")


def infinite(outcome: Outcome) -> None:
    """Judges a job: infinite."""
    (attribute,) = outcome.model().graph.node[0].attribute
    found = numpy_helper.to_array(attribute.t).tolist() if attribute.HasField("t") else list(attribute.floats)
    require(found == [1.0, -numpy.inf], f"the constant is {found}")


def attribute_set(outcome: Outcome) -> None:
    """Judges a job: attribute set."""
    found = valid(outcome.model())
    require(found.functions, "the functions are gone")
    require(found.graph.node[0].attribute[0].f == 0.5, "the attribute is another")
    require(found.graph.node[0].metadata_props, "the metadata is gone")


def rewired(outcome: Outcome) -> None:
    """Judges a job: rewired."""
    found = valid(outcome.model())
    takers = [node.name for node in found.graph.node if "a" in node.input]
    require({"n_c", "n_d"} <= set(takers), f"only {takers} use it")


def computes(expected: Sequence[str], **inputs: Any) -> Callable[[Outcome], None]:
    """A judge of ordinary jobs: a valid model with these operators, in any order, that runs."""

    def judge(outcome: Outcome) -> None:
        found = valid(outcome.model())
        require(sorted(operators(found)) == sorted(expected), f"the nodes are {operators(found)}")
        run(found, **(inputs or {"x": values(-1, 2)}))

    return judge


def outputs(*expected: str) -> Callable[[Outcome], None]:
    """A judge of ordinary jobs: a valid model with these outputs."""

    def judge(outcome: Outcome) -> None:
        found = [each.name for each in valid(outcome.model()).graph.output]
        require(found == list(expected), f"the outputs are {found}")

    return judge


def names_are(*expected: str) -> Callable[[Outcome], None]:
    """A judge of names: of the inputs, then of all values of nodes, wherever they are used."""

    def judge(outcome: Outcome) -> None:
        graph = valid(outcome.model()).graph
        names = [*[each.name for each in graph.input], *[name for node in graph.node for name in node.output]]
        require(names == list(expected), f"the values are called {names}")

    return judge


def renamed(outcome: Outcome) -> None:
    """Judges a job: renamed."""
    found = valid(outcome.model())
    names = [name for node in found.graph.node for name in node.output]
    require(names == ["ab", "yb"], f"the values are called {names}")


def named(outcome: Outcome) -> None:
    """Judges a job: named."""
    found = valid(outcome.model())
    names = [node.name for node in found.graph.node]
    require(all(names) and len(set(names)) == len(names), f"the nodes are called {names}")
    require(found.producer_name == "maker", "the producer is gone")


def batched(outcome: Outcome) -> None:
    """Judges a job: batched."""
    found = valid(outcome.model())
    require(run(found, x=numpy.ones((3, 2, 4), numpy.float32))[0].shape[0] == 3, "a batch of three does not come out")


def reshaped(outcome: Outcome) -> None:
    """Judges a job: reshaped."""
    found = valid(outcome.model())
    sizes = [dim.dim_value for dim in found.graph.input[0].type.tensor_type.shape.dim]
    require(sizes == [1, 3, 16, 16], f"the input has the shape {sizes}")


def inferred(outcome: Outcome) -> None:
    """Judges a job: inferred."""
    found = valid(outcome.model())
    require("a" in {each.name for each in found.graph.value_info}, "the shape is not there")
    require(operators(found) == ["Abs", "Neg", "Exp"], "nodes are gone")
    require(found.graph.node[0].doc_string, "comments of nodes are gone")


def opset(outcome: Outcome) -> None:
    """Judges a job: opset."""
    found = valid(outcome.model())
    require(found.ir_version == 8, f"the IR version is {found.ir_version}")
    require(run(found, x=numpy.ones((1, 3), numpy.float32))[0].shape == (3,), "another shape comes out")


def transposed(outcome: Outcome) -> None:
    """Judges a job: transposed."""
    found = valid(outcome.model())
    image = numpy.arange(12, dtype=numpy.float32).reshape(1, 2, 2, 3)
    expected = numpy.transpose(image, (0, 3, 1, 2))[:, ::-1]
    one, other = run(found, x=image)
    require(numpy.array_equal(one, expected) and numpy.array_equal(other, -expected), "other values come out")


def shared(outcome: Outcome) -> None:
    """Judges a job: shared."""
    found = valid(outcome.model())
    one, other = run(found, x=numpy.ones(2, numpy.float32))
    require(one[0] == numpy.inf and other[0] == -numpy.inf, "-0.0 became 0.0")


def without_comments(outcome: Outcome) -> None:
    """Judges a job: without comments."""
    found = outcome.model("m.onnx" if not (outcome.folder / "out.onnx").exists() else "out.onnx")
    graph = found.graph
    left = [each for each in (found.doc_string, graph.doc_string, graph.node[0].doc_string) if each]
    require(not left, f"{left} is left")


def shown(outcome: Outcome) -> None:
    """Judges a job: shown."""
    require(outcome.code == 0 and "bool" in outcome.output and "Not" in outcome.output, "the model is not shown")


def encoded(outcome: Outcome) -> None:
    """Judges a job: encoded."""
    require("+1mMQsrA8z8=" in outcome.output, "another text comes out")


def same_bytes(outcome: Outcome) -> None:
    """Judges a round trip: every field of the model is what it was."""
    before, after = onnx.load(outcome.folder / "m.onnx"), outcome.model()
    require(before == after, "the model is another")


def json_of(outcome: Outcome) -> None:
    """Judges a conversion: protobuf's JSON of the model."""
    path = outcome.folder / "m.json"
    if not path.exists():
        raise WrongError("no file is written")
    found = json_format.Parse(path.read_text(encoding="utf-8"), onnx.ModelProto())
    require(found == onnx.load(outcome.folder / "m.onnx"), "the JSON is of another model")


def prints(*texts: str) -> Callable[[Outcome], None]:
    """A judge of reports: every text is printed."""

    def judge(outcome: Outcome) -> None:
        missing = [each for each in texts if each not in outcome.output]
        require(not outcome.code and not missing, f"{missing} is not printed")

    return judge


def writes_array(*expected: float) -> Callable[[Outcome], None]:
    """A judge of exports: one .npy file other than those before has these elements."""

    def judge(outcome: Outcome) -> None:
        files = [each for each in outcome.folder.glob("**/*.npy") if each.name != "given.npy"]
        found = [numpy.load(each).ravel().tolist() for each in files]
        require(list(expected) in found, f"the arrays are {found}")

    return judge


def is_input(outcome: Outcome) -> None:
    """Judges that a constant is an input now, and that its values are in a file."""
    found = valid(outcome.model())
    require(not found.graph.initializer, "the constant is still there")
    require(len(found.graph.input) == 2, f"there are {len(found.graph.input)} inputs")
    writes_array(3, 4)(outcome)


def profiled(outcome: Outcome) -> None:
    """Judges a profile of onnxruntime."""
    events = [event for each in outcome.folder.glob("*.json") for event in json.loads(each.read_text())]
    require(any(each.get("name") == "model_run" for each in events), "there is no profile")


def weights(**expected: Sequence[float]) -> Callable[[Outcome], None]:
    """A judge of constants: these, with these elements."""

    def judge(outcome: Outcome) -> None:
        graph = valid(outcome.model()).graph
        found = {each.name: numpy_helper.to_array(each).ravel().tolist() for each in graph.initializer}
        require(all(found.get(name) == list(each) for name, each in expected.items()), f"the constants are {found}")

    return judge


def attributes(**expected: object) -> Callable[[Outcome], None]:
    """A judge of attributes: the first node has these, and no other."""

    def judge(outcome: Outcome) -> None:
        node = valid(outcome.model()).graph.node[0]
        found = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        require(found == expected, f"the attributes are {found}")

    return judge


def version(outcome: Outcome) -> None:
    """Judges the version of the format."""
    found = valid(outcome.model())
    require((found.ir_version, operators(found)) == (8, ["Relu"]), f"the version is {found.ir_version}")


def shapes(*expected: object) -> Callable[[Outcome], None]:
    """A judge of shapes: the dims of the first input."""

    def judge(outcome: Outcome) -> None:
        dims = valid(outcome.model()).graph.input[0].type.tensor_type.shape.dim
        found = [each.dim_param or each.dim_value for each in dims]
        require(found == list(expected), f"the input has the shape {found}")

    return judge


def runs_with(*sizes: int) -> Callable[[Outcome], None]:
    """A judge of shapes: the model runs with an input of this shape."""

    def judge(outcome: Outcome) -> None:
        found = valid(outcome.model())
        (result,) = run(found, **{found.graph.input[0].name: numpy.ones(sizes, numpy.float32)})
        require(result.shape[0] == sizes[0], f"the result has the shape {result.shape}")

    return judge


def intermediate(outcome: Outcome) -> None:
    """Judges three models in a row, and the model of the first two in a file of its own."""
    computes(["Abs", "Neg", "Relu", "Exp"])(outcome)
    given = ("a.onnx", "b.onnx", "c.onnx", "out.onnx")
    others = [onnx.load(each) for each in outcome.folder.glob("*.onnx") if each.name not in given]
    found = [sorted(operators(valid(each))) for each in others]
    require(["Abs", "Neg", "Relu"] in found, f"the intermediate models are {found}")


def has(nodes: int, op_type: str) -> Callable[[Outcome], None]:
    """A judge of edits of exports: a valid model of so many nodes, one of this operator, that is not m.onnx."""

    def judge(outcome: Outcome) -> None:
        found = valid(outcome.model())
        require(len(found.graph.node) == nodes and op_type in operators(found), f"{len(found.graph.node)} nodes")
        require(found.graph != onnx.load(outcome.folder / "m.onnx").graph, "nothing is changed")

    return judge


def starts_with(name: str) -> Callable[[Outcome], None]:
    """A judge of extractions: the model has this input alone, and the end of m.onnx."""

    def judge(outcome: Outcome) -> None:
        graph = valid(outcome.model()).graph
        require([each.name for each in graph.input] == [name], f"inputs are {[each.name for each in graph.input]}")
        require(graph.node[-1].output[0] == "639", "the end is another")

    return judge


def named_apart(outcome: Outcome) -> None:
    """Judges names: every node has one of its own."""
    names = [node.name for node in valid(outcome.model()).graph.node]
    require(all(names) and len(set(names)) == len(names), f"the nodes are called {names}")

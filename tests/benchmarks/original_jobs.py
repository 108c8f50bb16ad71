"""Jobs for the simple-onnx-processing-tools and for onnxjson: what each is given, and what must come out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model


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


class Job(NamedTuple):
    """One job."""

    tool: str
    what: str
    make: Callable[[Path], None]
    """Writes what the job is done on into a folder."""
    original: Sequence[str]
    """The words after the name of the tool; both run in that folder."""
    ours: Sequence[str]
    """The words after ``onnxjson``."""
    judge: Callable[[Outcome], None]
    """Raises `WrongError`, or anything, where it is not done."""


def model(text: str, name: str = "m.onnx") -> Callable[[Path], None]:
    """Writes a model in the text syntax of onnx, its nodes called like their first outputs."""

    def write(folder: Path) -> None:
        proto = parse_model('<ir_version: 8, opset_import: ["" : 17]> ' + text if "<ir_version" not in text else text)
        for node in proto.graph.node:
            node.name = node.name or f"n_{node.output[0]}"
        onnx.save(proto, folder / name)

    return write


def both(*writers: Callable[[Path], None]) -> Callable[[Path], None]:
    """Writes several models."""

    def write(folder: Path) -> None:
        for each in writers:
            each(folder)

    return write


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


def _combined(outcome: Outcome) -> None:
    found = valid(outcome.model())
    require([each.version for each in found.opset_import] == [13], "not for version 13")


def _extracted(outcome: Outcome) -> None:
    found = valid(outcome.model())
    require([each.name for each in found.graph.input] == ["s"], f"inputs are {[v.name for v in found.graph.input]}")
    require(operators(found) == ["Neg"], f"the nodes are {operators(found)}")


def _deleted(outcome: Outcome) -> None:
    found = valid(outcome.model())
    require(operators(found) == ["Abs", "Neg", "Add"], f"the nodes are {operators(found)}")
    require(run(found, x=values(-1, 2))[0].tolist() == [[0, 0]], "other values come out")


def _inserted(outcome: Outcome) -> None:
    found = valid(outcome.model())
    require(sorted(operators(found)) == ["Abs", "Neg", "Relu"], f"the nodes are {operators(found)}")
    require(run(found, x=values(-1, 2))[0].tolist() == [[0, -2]], "other values come out")


def _infinite(outcome: Outcome) -> None:
    (attribute,) = outcome.model().graph.node[0].attribute
    found = numpy_helper.to_array(attribute.t).tolist() if attribute.HasField("t") else list(attribute.floats)
    require(found == [1.0, -numpy.inf], f"the constant is {found}")


def _attribute_set(outcome: Outcome) -> None:
    found = valid(outcome.model())
    require(found.functions, "the functions are gone")
    require(found.graph.node[0].attribute[0].f == 0.5, "the attribute is another")
    require(found.graph.node[0].metadata_props, "the metadata is gone")


def _rewired(outcome: Outcome) -> None:
    found = valid(outcome.model())
    takers = [node.name for node in found.graph.node if "a" in node.input]
    require({"n_c", "n_d"} <= set(takers), f"only {takers} take it")


def _renamed(outcome: Outcome) -> None:
    found = valid(outcome.model())
    names = [name for node in found.graph.node for name in node.output]
    require(names == ["ab", "yb"], f"the values are called {names}")


def _named(outcome: Outcome) -> None:
    found = valid(outcome.model())
    names = [node.name for node in found.graph.node]
    require(all(names) and len(set(names)) == len(names), f"the nodes are called {names}")
    require(found.producer_name == "maker", "the producer is gone")


def _batched(outcome: Outcome) -> None:
    found = valid(outcome.model())
    require(run(found, x=numpy.ones((3, 2, 4), numpy.float32))[0].shape[0] == 3, "a batch of three does not come out")


def _reshaped(outcome: Outcome) -> None:
    found = valid(outcome.model())
    sizes = [dim.dim_value for dim in found.graph.input[0].type.tensor_type.shape.dim]
    require(sizes == [1, 3, 16, 16], f"the input has the shape {sizes}")


def _inferred(outcome: Outcome) -> None:
    found = valid(outcome.model())
    require("a" in {each.name for each in found.graph.value_info}, "the shape is not there")
    require(operators(found) == ["Abs", "Neg", "Exp"], "nodes are gone")
    require(found.graph.node[0].doc_string, "comments of nodes are gone")


def _opset(outcome: Outcome) -> None:
    found = valid(outcome.model())
    require(found.ir_version == 8, f"the IR version is {found.ir_version}")
    require(run(found, x=numpy.ones((1, 3), numpy.float32))[0].shape == (3,), "another shape comes out")


def _transposed(outcome: Outcome) -> None:
    found = valid(outcome.model())
    image = numpy.arange(12, dtype=numpy.float32).reshape(1, 2, 2, 3)
    expected = numpy.transpose(image, (0, 3, 1, 2))[:, ::-1]
    one, other = run(found, x=image)
    require(numpy.array_equal(one, expected) and numpy.array_equal(other, -expected), "other values come out")


def _shared(outcome: Outcome) -> None:
    found = valid(outcome.model())
    one, other = run(found, x=numpy.ones(2, numpy.float32))
    require(one[0] == numpy.inf and other[0] == -numpy.inf, "-0.0 became 0.0")


def _without_comments(outcome: Outcome) -> None:
    found = outcome.model("m.onnx" if not (outcome.folder / "out.onnx").exists() else "out.onnx")
    graph = found.graph
    left = [each for each in (found.doc_string, graph.doc_string, graph.node[0].doc_string) if each]
    require(not left, f"{left} is left")


def _shown(outcome: Outcome) -> None:
    require(outcome.code == 0 and "bool" in outcome.output and "Not" in outcome.output, "the model is not shown")


def _encoded(outcome: Outcome) -> None:
    require("+1mMQsrA8z8=" in outcome.output, "another text comes out")


def _nodes_with_comments(folder: Path) -> None:
    model("g (float[2] x) => (float[2] y) { a = Abs (x) dead = Neg (a) y = Exp (a) }")(folder)
    proto = onnx.load(folder / "m.onnx")
    proto.graph.node[0].doc_string = "why"
    proto.graph.doc_string = "what"
    proto.doc_string = "all"
    del proto.graph.value_info[:]
    onnx.save(proto, folder / "m.onnx")


def _functions(folder: Path) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    body = helper.make_function("f", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], opsets[:1])
    nodes = [helper.make_node("LeakyRelu", ["x"], ["t"], "leaky", alpha=0.1), helper.make_node("F", ["t"], ["y"], "f")]
    nodes[0].metadata_props.add(key="k", value="v")
    nodes[1].domain = "f"
    x, y = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", [x], [y])
    onnx.save(helper.make_model(graph, functions=[body], opset_imports=opsets, ir_version=9), folder / "m.onnx")


def _half_named(folder: Path) -> None:
    model("g (float[2] x) => (float[2] y) { t = Relu (x) y = Relu (t) }")(folder)
    proto = onnx.load(folder / "m.onnx")
    proto.graph.node[0].name = ""
    proto.graph.node[1].name = "sng_Relu_0"
    proto.producer_name = "maker"
    onnx.save(proto, folder / "m.onnx")


def _signed_zeros(folder: Path) -> None:
    model("g (float[2] x) => (float[2] p, float[2] n) { p = Div (x, a) n = Div (x, b) }")(folder)
    proto = onnx.load(folder / "m.onnx")
    for name, zero in (("a", 0.0), ("b", -0.0)):
        proto.graph.initializer.append(numpy_helper.from_array(numpy.full(2, zero, numpy.float32), name))
    onnx.save(proto, folder / "m.onnx")


def _reshaping(folder: Path) -> None:
    model("g (float[2,3] x) => (float[3,2] y) <int64[2] s = {3, 2}> { y = Reshape (x, s) }")(folder)


CHAIN = "g (float[1,2] x) => (float[1,2] y) { a = Relu (x) s = Abs (a) y = Neg (s) }"
SQUEEZE = '<ir_version: 8, opset_import: ["" : 11]> g (float[1,3] x) => (float[3] y) { y = Squeeze <axes = [0]> (x) }'
IN_OUT = ("-if", "m.onnx", "-of", "out.onnx")
OUT = ("-o", "out.onnx")

JOBS: Sequence[Job] = (
    Job(
        "snc4onnx",
        "models of versions 11 and 13 become one model",
        both(
            model(SQUEEZE, "a.onnx"),
            model('<ir_version: 8, opset_import: ["" : 13]> b (float[3] u) => (float[3] v) { v = Relu (u) }', "b.onnx"),
        ),
        ("-if", "a.onnx", "b.onnx", "-sd", "y", "u", "-of", "out.onnx", "-dos"),
        ("rewrite", "combine", "a.onnx", "b.onnx", "--join", "y=u", *OUT),
        _combined,
    ),
    Job(
        "snc4onnx",
        "a name that is not there is refused",
        both(model(CHAIN, "a.onnx"), model("b (float[1,2] u) => (float[1,2] v) { v = Relu (u) }", "b.onnx")),
        ("-if", "a.onnx", "b.onnx", "-sd", "yy", "u", "-of", "out.onnx", "-dos"),
        ("rewrite", "combine", "a.onnx", "b.onnx", "--join", "yy=u", *OUT),
        refused,
    ),
    Job(
        "sne4onnx",
        "the part behind an inner value",
        model(CHAIN),
        (*IN_OUT, "-ion", "s", "-oon", "y"),
        ("rewrite", "extract", "m.onnx", "--inputs", "s", "--outputs", "y", *OUT),
        _extracted,
    ),
    Job(
        "sne4onnx",
        "a name that is not there is refused",
        model(CHAIN),
        (*IN_OUT, "-ion", "q", "-oon", "y"),
        ("rewrite", "extract", "m.onnx", "--inputs", "q", "--outputs", "y", *OUT),
        refused,
    ),
    Job(
        "snd4onnx",
        "a node before a branch is deleted",
        model("g (float[1,2] x) => (float[1,2] y) { t = Abs (x) r = Identity (t) q = Neg (r) y = Add (r, q) }"),
        (*IN_OUT, "-rn", "n_r"),
        ("rewrite", "delete-node", "m.onnx", "n_r", *OUT),
        _deleted,
    ),
    Job(
        "sna4onnx",
        "a node between an input and who takes it",
        model("g (float[1,2] x) => (float[1,2] y) { t = Abs (x) y = Neg (t) }"),
        (
            *IN_OUT,
            "-aot",
            "Relu",
            "-aon",
            "new",
            "-aoiv",
            "p",
            "float32",
            "[1,2]",
            "-aoov",
            "q",
            "float32",
            "[1,2]",
            "-csoon",
            "x",
            "x",
            "new",
            "p",
            "-cdoin",
            "new",
            "q",
            "n_t",
            "x",
        ),
        ("rewrite", "add-node", "m.onnx", "Relu", "--input", "x", "--output", "q", "--insert", *OUT),
        _inserted,
    ),
    Job(
        "sog4onnx",
        "a constant with an infinity",
        lambda _: None,
        (
            "-ot",
            "Constant",
            "-os",
            "17",
            "-on",
            "c",
            "-ov",
            "y",
            "float32",
            "[2]",
            "-a",
            "value",
            "float32",
            "[1.0,-inf]",
            "-of",
            "out.onnx",
        ),
        ("new", "Constant", "--attr", 'value={"type": "float32[2]", "values": [1.0, "-Infinity"]}', *OUT),
        _infinite,
    ),
    Job(
        "sog4onnx",
        "an operator that does not exist is refused",
        lambda _: None,
        (
            "-ot",
            "Gemmm",
            "-os",
            "17",
            "-on",
            "c",
            "-iv",
            "x",
            "float32",
            "[2]",
            "-ov",
            "y",
            "float32",
            "[2]",
            "-of",
            "out.onnx",
        ),
        ("new", "Gemmm", *OUT),
        refused,
    ),
    Job(
        "sam4onnx",
        "an attribute of a model with functions",
        _functions,
        (*IN_OUT, "-on", "leaky", "-a", "alpha", "float32", "0.5"),
        ("rewrite", "set-attribute", "m.onnx", "leaky", "alpha", "0.5", *OUT),
        _attribute_set,
    ),
    Job(
        "svs4onnx",
        "all that take one value take another",
        model(
            "g (float[1,2] x) => (float[1,2] c, float[1,2] d, float[1,2] e) "
            "{ a = Abs (x) b = Relu (x) c = Neg (b) d = Exp (b) e = Log (a) }"
        ),
        (*IN_OUT, "-fovn", "a", "-tivn", "b"),
        ("rewrite", "rewire", "m.onnx", "input:b", "b", "a", *OUT),
        _rewired,
    ),
    Job(
        "soa4onnx",
        "an output of a value that is not there is refused",
        model(CHAIN),
        (*IN_OUT, "-on", "q"),
        ("rewrite", "add-output", "m.onnx", "q", *OUT),
        refused,
    ),
    Job(
        "sod4onnx",
        "deleting the only output is refused",
        model(CHAIN),
        (*IN_OUT, "-on", "y"),
        ("rewrite", "remove-output", "m.onnx", "y", *OUT),
        refused,
    ),
    Job(
        "sor4onnx",
        "names get an ending",
        model("g (float[1,2] x) => (float[1,2] y) { a = Abs (x) y = Neg (a) }"),
        (*IN_OUT, "-on", "a", "ab", "-on", "y", "yb", "-sm", "partial_match"),
        ("rewrite", "rename", "m.onnx", "tensor", "re:([ay])", "\\1b", *OUT),
        _renamed,
    ),
    Job(
        "sor4onnx",
        "two values with one name are refused",
        model("g (float[1,2] x) => (float[1,2] y) { a = Abs (x) b = Neg (a) y = Exp (b) }"),
        (*IN_OUT, "-on", "b", "a"),
        ("rewrite", "rename", "m.onnx", "tensor", "b", "a", *OUT),
        refused,
    ),
    Job(
        "sng4onnx", "names that no node has yet", _half_named, IN_OUT, ("rewrite", "name-nodes", "m.onnx", *OUT), _named
    ),
    Job(
        "sbi4onnx",
        "a free batch size around a Reshape with -1",
        model("g (float[1,2,4] x) => (float[1,2,2,2] y) <int64[4] s = {1, 2, -1, 2}> { y = Reshape (x, s) }"),
        (*IN_OUT, "-ics", "N"),
        ("rewrite", "set-batch-size", "m.onnx", "N", *OUT),
        _batched,
    ),
    Job(
        "sio4onnx",
        "another height and width",
        model("g (float[1,3,8,8] x) => (float[1,3,8,8] y) { a = Abs (x) y = Neg (a) }"),
        (*IN_OUT, "-i", "x", "-is", "1", "3", "16", "16", "-o", "y", "-os", "1", "3", "16", "16"),
        ("rewrite", "set-shape", "m.onnx", "x", "1,3,16,16", *OUT),
        _reshaped,
    ),
    Job(
        "ssi4onnx",
        "shapes, and nothing else",
        _nodes_with_comments,
        IN_OUT,
        ("rewrite", "infer-shapes", "m.onnx", *OUT),
        _inferred,
    ),
    Job(
        "soc4onnx",
        "version 11 becomes 13",
        model(SQUEEZE),
        (*IN_OUT, "-os", "13"),
        ("rewrite", "convert-opset", "m.onnx", "13", *OUT),
        _opset,
    ),
    Job(
        "scc4onnx",
        "images with their channels last, and BGR, of an input with two consumers",
        model("g (float[1,3,2,2] x) => (float[1,3,2,2] y, float[1,3,2,2] z) { y = Identity (x) z = Neg (x) }"),
        (*IN_OUT, "-ioo", "x", "[0,2,3,1]", "-cci", "x", "1"),
        ("rewrite", "transpose-input", "m.onnx", "x", "--perm", "0,3,1,2", "--reverse", "1", *OUT),
        _transposed,
    ),
    Job(
        "scs4onnx",
        "0.0 and -0.0 stay two constants",
        _signed_zeros,
        ("m.onnx", "out.onnx"),
        ("rewrite", "deduplicate-initializers", "m.onnx", *OUT),
        _shared,
    ),
    Job(
        "scs4onnx",
        "a model with a Reshape stays valid",
        _reshaping,
        ("m.onnx", "out.onnx"),
        ("rewrite", "deduplicate-initializers", "m.onnx", *OUT),
        lambda outcome: require(valid(outcome.model()), ""),
    ),
    Job(
        "sde4onnx",
        "all comments go",
        _nodes_with_comments,
        IN_OUT,
        ("rewrite", "strip", "m.onnx", *OUT),
        _without_comments,
    ),
    Job(
        "ssc4onnx",
        "a model with bool inputs is shown",
        model("g (bool[2] x) => (bool[2] y) { y = Not (x) }"),
        ("-if", "m.onnx"),
        ("show", "m.onnx"),
        _shown,
    ),
    Job(
        "sit4onnx",
        "a model with bool inputs is run",
        model("g (bool[2] x) => (bool[2] y) { y = Not (x) }"),
        ("-if", "m.onnx", "-oep", "cpu", "-tlc", "1"),
        (),
        lambda outcome: require(outcome.code == 0, "it is not run"),
    ),
    Job(
        "sed4onnx",
        "1.2345678901234567 as base64",
        lambda _: None,
        ("-cs", "[1.2345678901234567]", "-d", "float64", "-m", "encode"),
        ("tensor", "encode", "[1.2345678901234567]", "--dtype", "float64"),
        _encoded,
    ),
)
"""Every job; a tool may have several."""

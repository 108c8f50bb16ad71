"""Jobs for the simple-onnx-processing-tools and for onnxjson: what each is given, and what must come out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model

from tests.originals.comparing import Demand
from tests.originals.judging import (
    Judge,
    Outcome,
    all_of,
    computes,
    infinite,
    inputs,
    judge,
    named_apart,
    names_are,
    nodes,
    operators,
    outputs,
    prints,
    refused,
    returns,
    runs_with,
    shapes,
    values,
    without_comments,
)


class Job(NamedTuple):
    """One job."""

    tool: str
    what: str
    make: Callable[[Path], None]
    """Writes what the job is done on into a folder."""
    original: str
    """The line after the name of the tool, quoted as in a shell; both run in that folder."""
    ours: str
    """The line after ``onnxjson``; "&&" begins another command."""
    judge: Callable[[Outcome], None]
    """Raises `WrongError`, or anything, where it is not done."""
    demand: Demand = "outputs"
    """What the results must have in common, where both programs do it."""


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


def _leaky(proto: onnx.ModelProto) -> tuple[int, float, str]:
    node = proto.graph.node[0]
    return len(proto.functions), node.attribute[0].f, "".join([each.value for each in node.metadata_props])


def _typed(proto: onnx.ModelProto) -> tuple[list[str], str, bool]:
    return operators(proto), proto.graph.node[0].doc_string, "a" in [each.name for each in proto.graph.value_info]


def _consumers(proto: onnx.ModelProto) -> list[str]:
    return [node.name for node in proto.graph.node if "a" in node.input]


def version(number: int) -> Judge:
    """A judge of the version of the operator set."""
    return judge(lambda proto: [each.version for each in proto.opset_import], [number], "the version")


CHAIN = "g (float[1,2] x) => (float[1,2] y) { a = Relu (x) s = Abs (a) y = Neg (s) }"
SQUEEZE = '<ir_version: 8, opset_import: ["" : 11]> g (float[1,3] x) => (float[3] y) { y = Squeeze <axes = [0]> (x) }'
RELU_13 = '<ir_version: 8, opset_import: ["" : 13]> b (float[3] u) => (float[3] v) { v = Relu (u) }'
TWO = "g (float[1,2] x) => (float[1,2] y) { t = Abs (x) y = Neg (t) }"

_IMAGE = numpy.arange(12, dtype=numpy.float32).reshape(1, 2, 2, 3)
_CHANNELS_FIRST = numpy.transpose(_IMAGE, (0, 3, 1, 2))[:, ::-1]
_ONES = numpy.ones((1, 3), numpy.float32)

# fmt: off
JOBS: Sequence[Job] = (
    Job("snc4onnx", "two models in a row",
        both(model(TWO, "a.onnx"), model("b (float[1,2] u) => (float[1,2] v) { v = Relu (u) }", "b.onnx")),
        "-if a.onnx b.onnx -sd y u -of out.onnx -dos",
        "rewrite combine a.onnx b.onnx --join y=u -o out.onnx", computes(["Abs", "Neg", "Relu"])),
    Job("snc4onnx", "models of versions 11 and 13 become one model",
        both(model(SQUEEZE, "a.onnx"), model(RELU_13, "b.onnx")),
        "-if a.onnx b.onnx -sd y u -of out.onnx -dos",
        "rewrite combine a.onnx b.onnx --join y=u -o out.onnx", version(13)),
    Job("snc4onnx", "an unknown name is refused",
        both(model(CHAIN, "a.onnx"), model("b (float[1,2] u) => (float[1,2] v) { v = Relu (u) }", "b.onnx")),
        "-if a.onnx b.onnx -sd yy u -of out.onnx -dos",
        "rewrite combine a.onnx b.onnx --join yy=u -o out.onnx", refused),
    Job("sne4onnx", "the part before an inner value", model(CHAIN),
        "-if m.onnx -of out.onnx -ion x -oon s",
        "rewrite extract m.onnx --inputs x --outputs s -o out.onnx", outputs("s")),
    Job("sne4onnx", "the part after an inner value", model(CHAIN),
        "-if m.onnx -of out.onnx -ion s -oon y",
        "rewrite extract m.onnx --inputs s --outputs y -o out.onnx", all_of(inputs("s"), nodes("Neg"))),
    Job("sne4onnx", "an unknown name is refused", model(CHAIN),
        "-if m.onnx -of out.onnx -ion q -oon y",
        "rewrite extract m.onnx --inputs q --outputs y -o out.onnx", refused),
    Job("snd4onnx", "a node in a chain is deleted", model(CHAIN),
        "-if m.onnx -of out.onnx -rn n_s",
        "rewrite delete-node m.onnx n_s -o out.onnx", computes(["Relu", "Neg"])),
    Job("snd4onnx", "a node before a branch is deleted",
        model("g (float[1,2] x) => (float[1,2] y) { t = Abs (x) r = Identity (t) q = Neg (r) y = Add (r, q) }"),
        "-if m.onnx -of out.onnx -rn n_r",
        "rewrite delete-node m.onnx n_r -o out.onnx",
        all_of(nodes("Abs", "Neg", "Add"), returns([[[0, 0]]], x=values(-1, 2)))),
    Job("sna4onnx", "a node between two nodes", model(TWO),
        "-if m.onnx -of out.onnx -aot Relu -aon new -aoiv p float32 [1,2] -aoov q float32 [1,2]"
        " -csoon n_t t new p -cdoin new q n_y t",
        "rewrite add-node m.onnx Relu --input t --output q --insert -o out.onnx", computes(["Abs", "Relu", "Neg"])),
    Job("sna4onnx", "a node between an input and its consumer",
        model("g (float[1,2] x) => (float[1,2] y) { t = Abs (x) y = Neg (t) }"),
        "-if m.onnx -of out.onnx -aot Relu -aon new -aoiv p float32 [1,2] -aoov q float32 [1,2]"
        " -csoon x x new p -cdoin new q n_t x",
        "rewrite add-node m.onnx Relu --input x --output q --insert -o out.onnx",
        all_of(nodes("Abs", "Neg", "Relu"), returns([[[0, -2]]], x=values(-1, 2)))),
    Job("sog4onnx", "a Gemm", lambda _: None,
        "-ot Gemm -os 17 -on g -iv a float32 [2,3] -iv b float32 [4,3] -ov y float32 [2,4] -a transB int64 1"
        " -of out.onnx",
        "new Gemm --opset 17 --input a:float32[2,3] --input b:float32[4,3] --attr transB=1 -o out.onnx",
        computes(["Gemm"], a=numpy.ones((2, 3), numpy.float32), b=numpy.ones((4, 3), numpy.float32))),
    Job("sog4onnx", "a constant with an infinity", lambda _: None,
        "-ot Constant -os 17 -on c -ov y float32 [2] -a value float32 [1.0,-inf] -of out.onnx",
        "new Constant --attr 'value={\"type\": \"float32[2]\", \"values\": [1.0, \"-Infinity\"]}' -o out.onnx",
        infinite),
    Job("sog4onnx", "an operator that does not exist is refused", lambda _: None,
        "-ot Gemmm -os 17 -on c -iv x float32 [2] -ov y float32 [2] -of out.onnx",
        "new Gemmm -o out.onnx", refused),
    Job("sam4onnx", "an attribute of a model with functions", _functions,
        "-if m.onnx -of out.onnx -on leaky -a alpha float32 0.5",
        "rewrite set-attribute m.onnx leaky alpha 0.5 -o out.onnx",
        judge(_leaky, (1, 0.5, "v"), "functions, attribute and metadata")),
    Job("svs4onnx", "all consumers of a value use another one",
        model("g (float[1,2] x) => (float[1,2] c, float[1,2] d, float[1,2] e) "
              "{ a = Abs (x) b = Relu (x) c = Neg (b) d = Exp (b) e = Log (a) }"),
        "-if m.onnx -of out.onnx -fovn a -tivn b",
        "rewrite rewire m.onnx input:b b a -o out.onnx",
        judge(_consumers, ["n_c", "n_d", "n_e"], "the consumers of a")),
    Job("soa4onnx", "an inner value becomes an output", model(CHAIN),
        "-if m.onnx -of out.onnx -on a",
        "rewrite add-output m.onnx a -o out.onnx", outputs("y", "a")),
    Job("soa4onnx", "an output of an unknown value is refused", model(CHAIN),
        "-if m.onnx -of out.onnx -on q",
        "rewrite add-output m.onnx q -o out.onnx", refused),
    Job("sod4onnx", "one of two outputs is removed",
        model("g (float[1,2] x) => (float[1,2] y, float[1,2] t) { t = Abs (x) y = Neg (t) }"),
        "-if m.onnx -of out.onnx -on t",
        "rewrite remove-output m.onnx t -o out.onnx", outputs("y")),
    Job("sod4onnx", "deleting the only output is refused", model(CHAIN),
        "-if m.onnx -of out.onnx -on y",
        "rewrite remove-output m.onnx y -o out.onnx", refused),
    Job("sor4onnx", "an output is renamed", model(CHAIN),
        "-if m.onnx -of out.onnx -on y result",
        "rewrite rename m.onnx output y result -o out.onnx", outputs("result")),
    Job("sor4onnx", "names get a suffix", model("g (float[1,2] x) => (float[1,2] y) { a = Abs (x) y = Neg (a) }"),
        "-if m.onnx -of out.onnx -on a ab -on y yb -sm partial_match",
        "rewrite rename m.onnx tensor 're:([ay])' '\\1b' -o out.onnx", names_are("x", "ab", "yb")),
    Job("sor4onnx", "two values with one name are refused",
        model("g (float[1,2] x) => (float[1,2] y) { a = Abs (x) b = Neg (a) y = Exp (b) }"),
        "-if m.onnx -of out.onnx -on b a",
        "rewrite rename m.onnx tensor b a -o out.onnx", refused),
    Job("sng4onnx", "names for unnamed nodes that are not in use", _half_named,
        "-if m.onnx -of out.onnx",
        "rewrite name-nodes m.onnx -o out.onnx",
        all_of(named_apart, judge(lambda proto: proto.producer_name, "maker", "the producer"))),
    Job("sbi4onnx", "a free batch size around a Reshape with -1",
        model("g (float[1,2,4] x) => (float[1,2,2,2] y) <int64[4] s = {1, 2, -1, 2}> { y = Reshape (x, s) }"),
        "-if m.onnx -of out.onnx -ics N",
        "rewrite set-batch-size m.onnx N -o out.onnx", runs_with(3, 2, 4)),
    Job("sio4onnx", "another height and width",
        model("g (float[1,3,8,8] x) => (float[1,3,8,8] y) { a = Abs (x) y = Neg (a) }"),
        "-if m.onnx -of out.onnx -i x -is 1 3 16 16 -o y -os 1 3 16 16",
        "rewrite set-shape m.onnx x 1,3,16,16 -o out.onnx", shapes(1, 3, 16, 16)),
    Job("ssi4onnx", "shapes, and nothing else", _nodes_with_comments,
        "-if m.onnx -of out.onnx",
        "rewrite infer-shapes m.onnx -o out.onnx",
        judge(_typed, (["Abs", "Neg", "Exp"], "why", True), "nodes, comment and shape")),
    Job("soc4onnx", "version 11 becomes 13", model(SQUEEZE),
        "-if m.onnx -of out.onnx -os 13",
        "rewrite convert-opset m.onnx 13 -o out.onnx",
        all_of(judge(lambda proto: proto.ir_version, 8, "the IR version"), returns([_ONES[0]], x=_ONES))),
    Job("scc4onnx", "images with channels last", model("g (float[1,3,2,2] x) => (float[1,3,2,2] y) { y = Neg (x) }"),
        "-if m.onnx -of out.onnx -ioo x [0,2,3,1]",
        "rewrite transpose-input m.onnx x --perm 0,3,1,2 -o out.onnx",
        computes(["Transpose", "Neg"], x=numpy.ones((1, 2, 2, 3), numpy.float32))),
    Job("scc4onnx", "images with channels last, and BGR, of an input with two consumers",
        model("g (float[1,3,2,2] x) => (float[1,3,2,2] y, float[1,3,2,2] z) { y = Identity (x) z = Neg (x) }"),
        "-if m.onnx -of out.onnx -ioo x [0,2,3,1] -cci x 1",
        "rewrite transpose-input m.onnx x --perm 0,3,1,2 --reverse 1 -o out.onnx",
        returns([_CHANNELS_FIRST, -_CHANNELS_FIRST], x=_IMAGE)),
    Job("scs4onnx", "0.0 and -0.0 stay two constants", _signed_zeros,
        "m.onnx out.onnx",
        "rewrite deduplicate-initializers m.onnx -o out.onnx",
        returns([[numpy.inf] * 2, [-numpy.inf] * 2], x=numpy.ones(2, numpy.float32))),
    Job("scs4onnx", "a model with a Reshape stays valid", _reshaping,
        "m.onnx out.onnx",
        "rewrite deduplicate-initializers m.onnx -o out.onnx", outputs("y")),
    Job("sde4onnx", "all doc strings are removed", _nodes_with_comments,
        "-if m.onnx -of out.onnx",
        "rewrite strip m.onnx -o out.onnx", without_comments),
    Job("ssc4onnx", "a model with bool inputs is shown", model("g (bool[2] x) => (bool[2] y) { y = Not (x) }"),
        "-if m.onnx",
        "show m.onnx", prints("bool", "Not")),
    Job("sit4onnx", "a model with bool inputs is run", model("g (bool[2] x) => (bool[2] y) { y = Not (x) }"),
        "-if m.onnx -oep cpu -tlc 1",
        "run m.onnx", prints("bool")),
    Job("sed4onnx", "1.2345678901234567 as base64", lambda _: None,
        "-cs [1.2345678901234567] -d float64 -m encode",
        "tensor encode [1.2345678901234567] --type float64", prints("+1mMQsrA8z8=")),
)
# fmt: on
"""Every job; a tool may have several."""

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
    Outcome,
    attribute_set,
    batched,
    combined,
    computes,
    deleted,
    encoded,
    extracted,
    inferred,
    infinite,
    inserted,
    named,
    opset,
    outputs,
    refused,
    renamed,
    require,
    reshaped,
    rewired,
    shared,
    shown,
    transposed,
    valid,
    without_comments,
)


class Job(NamedTuple):
    """One job."""

    tool: str
    what: str
    make: Callable[[Path], None]
    """Writes what the job is done on into a folder."""
    original: Sequence[str]
    """The words after the name of the tool; both run in that folder."""
    ours: Sequence[str]
    """The words after ``onnxjson``; "&&" begins another command."""
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


CHAIN = "g (float[1,2] x) => (float[1,2] y) { a = Relu (x) s = Abs (a) y = Neg (s) }"
SQUEEZE = '<ir_version: 8, opset_import: ["" : 11]> g (float[1,3] x) => (float[3] y) { y = Squeeze <axes = [0]> (x) }'
IN_OUT = ("-if", "m.onnx", "-of", "out.onnx")
OUT = ("-o", "out.onnx")

TWO = "g (float[1,2] x) => (float[1,2] y) { t = Abs (x) y = Neg (t) }"

JOBS: Sequence[Job] = (
    Job(
        "snc4onnx",
        "two models in a row",
        both(model(TWO, "a.onnx"), model("b (float[1,2] u) => (float[1,2] v) { v = Relu (u) }", "b.onnx")),
        ("-if", "a.onnx", "b.onnx", "-sd", "y", "u", "-of", "out.onnx", "-dos"),
        ("rewrite", "combine", "a.onnx", "b.onnx", "--join", "y=u", *OUT),
        computes(["Abs", "Neg", "Relu"]),
    ),
    Job(
        "snc4onnx",
        "models of versions 11 and 13 become one model",
        both(
            model(SQUEEZE, "a.onnx"),
            model('<ir_version: 8, opset_import: ["" : 13]> b (float[3] u) => (float[3] v) { v = Relu (u) }', "b.onnx"),
        ),
        ("-if", "a.onnx", "b.onnx", "-sd", "y", "u", "-of", "out.onnx", "-dos"),
        ("rewrite", "combine", "a.onnx", "b.onnx", "--join", "y=u", *OUT),
        combined,
    ),
    Job(
        "snc4onnx",
        "an unknown name is refused",
        both(model(CHAIN, "a.onnx"), model("b (float[1,2] u) => (float[1,2] v) { v = Relu (u) }", "b.onnx")),
        ("-if", "a.onnx", "b.onnx", "-sd", "yy", "u", "-of", "out.onnx", "-dos"),
        ("rewrite", "combine", "a.onnx", "b.onnx", "--join", "yy=u", *OUT),
        refused,
    ),
    Job(
        "sne4onnx",
        "the part before an inner value",
        model(CHAIN),
        (*IN_OUT, "-ion", "x", "-oon", "s"),
        ("rewrite", "extract", "m.onnx", "--inputs", "x", "--outputs", "s", *OUT),
        outputs("s"),
    ),
    Job(
        "sne4onnx",
        "the part after an inner value",
        model(CHAIN),
        (*IN_OUT, "-ion", "s", "-oon", "y"),
        ("rewrite", "extract", "m.onnx", "--inputs", "s", "--outputs", "y", *OUT),
        extracted,
    ),
    Job(
        "sne4onnx",
        "an unknown name is refused",
        model(CHAIN),
        (*IN_OUT, "-ion", "q", "-oon", "y"),
        ("rewrite", "extract", "m.onnx", "--inputs", "q", "--outputs", "y", *OUT),
        refused,
    ),
    Job(
        "snd4onnx",
        "a node in a chain is deleted",
        model(CHAIN),
        (*IN_OUT, "-rn", "n_s"),
        ("rewrite", "delete-node", "m.onnx", "n_s", *OUT),
        computes(["Relu", "Neg"]),
    ),
    Job(
        "snd4onnx",
        "a node before a branch is deleted",
        model("g (float[1,2] x) => (float[1,2] y) { t = Abs (x) r = Identity (t) q = Neg (r) y = Add (r, q) }"),
        (*IN_OUT, "-rn", "n_r"),
        ("rewrite", "delete-node", "m.onnx", "n_r", *OUT),
        deleted,
    ),
    Job(
        "sna4onnx",
        "a node between two nodes",
        model(TWO),
        (
            *(*IN_OUT, "-aot", "Relu", "-aon", "new", "-aoiv", "p", "float32", "[1,2]"),
            *("-aoov", "q", "float32", "[1,2]", "-csoon", "n_t", "t", "new", "p", "-cdoin", "new", "q", "n_y", "t"),
        ),
        ("rewrite", "add-node", "m.onnx", "Relu", "--input", "t", "--output", "q", "--insert", *OUT),
        computes(["Abs", "Relu", "Neg"]),
    ),
    Job(
        "sna4onnx",
        "a node between an input and its consumer",
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
        inserted,
    ),
    Job(
        "sog4onnx",
        "a Gemm",
        lambda _: None,
        (
            *("-ot", "Gemm", "-os", "17", "-on", "g", "-iv", "a", "float32", "[2,3]", "-iv", "b", "float32", "[4,3]"),
            *("-ov", "y", "float32", "[2,4]", "-a", "transB", "int64", "1", "-of", "out.onnx"),
        ),
        (
            *("new", "Gemm", "--opset", "17", "--input", "a:float32[2,3]", "--input", "b:float32[4,3]"),
            *("--attr", "transB=1", *OUT),
        ),
        computes(["Gemm"], a=numpy.ones((2, 3), numpy.float32), b=numpy.ones((4, 3), numpy.float32)),
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
        infinite,
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
        attribute_set,
    ),
    Job(
        "svs4onnx",
        "all consumers of a value use another one",
        model(
            "g (float[1,2] x) => (float[1,2] c, float[1,2] d, float[1,2] e) "
            "{ a = Abs (x) b = Relu (x) c = Neg (b) d = Exp (b) e = Log (a) }"
        ),
        (*IN_OUT, "-fovn", "a", "-tivn", "b"),
        ("rewrite", "rewire", "m.onnx", "input:b", "b", "a", *OUT),
        rewired,
    ),
    Job(
        "soa4onnx",
        "an inner value becomes an output",
        model(CHAIN),
        (*IN_OUT, "-on", "a"),
        ("rewrite", "add-output", "m.onnx", "a", *OUT),
        outputs("y", "a"),
    ),
    Job(
        "soa4onnx",
        "an output of an unknown value is refused",
        model(CHAIN),
        (*IN_OUT, "-on", "q"),
        ("rewrite", "add-output", "m.onnx", "q", *OUT),
        refused,
    ),
    Job(
        "sod4onnx",
        "one of two outputs is removed",
        model("g (float[1,2] x) => (float[1,2] y, float[1,2] t) { t = Abs (x) y = Neg (t) }"),
        (*IN_OUT, "-on", "t"),
        ("rewrite", "remove-output", "m.onnx", "t", *OUT),
        outputs("y"),
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
        "an output is renamed",
        model(CHAIN),
        (*IN_OUT, "-on", "y", "result"),
        ("rewrite", "rename", "m.onnx", "output", "y", "result", *OUT),
        outputs("result"),
    ),
    Job(
        "sor4onnx",
        "names get a suffix",
        model("g (float[1,2] x) => (float[1,2] y) { a = Abs (x) y = Neg (a) }"),
        (*IN_OUT, "-on", "a", "ab", "-on", "y", "yb", "-sm", "partial_match"),
        ("rewrite", "rename", "m.onnx", "tensor", "re:([ay])", "\\1b", *OUT),
        renamed,
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
        "sng4onnx",
        "names for unnamed nodes that are not in use",
        _half_named,
        IN_OUT,
        ("rewrite", "name-nodes", "m.onnx", *OUT),
        named,
    ),
    Job(
        "sbi4onnx",
        "a free batch size around a Reshape with -1",
        model("g (float[1,2,4] x) => (float[1,2,2,2] y) <int64[4] s = {1, 2, -1, 2}> { y = Reshape (x, s) }"),
        (*IN_OUT, "-ics", "N"),
        ("rewrite", "set-batch-size", "m.onnx", "N", *OUT),
        batched,
    ),
    Job(
        "sio4onnx",
        "another height and width",
        model("g (float[1,3,8,8] x) => (float[1,3,8,8] y) { a = Abs (x) y = Neg (a) }"),
        (*IN_OUT, "-i", "x", "-is", "1", "3", "16", "16", "-o", "y", "-os", "1", "3", "16", "16"),
        ("rewrite", "set-shape", "m.onnx", "x", "1,3,16,16", *OUT),
        reshaped,
    ),
    Job(
        "ssi4onnx",
        "shapes, and nothing else",
        _nodes_with_comments,
        IN_OUT,
        ("rewrite", "infer-shapes", "m.onnx", *OUT),
        inferred,
    ),
    Job(
        "soc4onnx",
        "version 11 becomes 13",
        model(SQUEEZE),
        (*IN_OUT, "-os", "13"),
        ("rewrite", "convert-opset", "m.onnx", "13", *OUT),
        opset,
    ),
    Job(
        "scc4onnx",
        "images with channels last",
        model("g (float[1,3,2,2] x) => (float[1,3,2,2] y) { y = Neg (x) }"),
        (*IN_OUT, "-ioo", "x", "[0,2,3,1]"),
        ("rewrite", "transpose-input", "m.onnx", "x", "--perm", "0,3,1,2", *OUT),
        computes(["Transpose", "Neg"], x=numpy.ones((1, 2, 2, 3), numpy.float32)),
    ),
    Job(
        "scc4onnx",
        "images with channels last, and BGR, of an input with two consumers",
        model("g (float[1,3,2,2] x) => (float[1,3,2,2] y, float[1,3,2,2] z) { y = Identity (x) z = Neg (x) }"),
        (*IN_OUT, "-ioo", "x", "[0,2,3,1]", "-cci", "x", "1"),
        ("rewrite", "transpose-input", "m.onnx", "x", "--perm", "0,3,1,2", "--reverse", "1", *OUT),
        transposed,
    ),
    Job(
        "scs4onnx",
        "0.0 and -0.0 stay two constants",
        _signed_zeros,
        ("m.onnx", "out.onnx"),
        ("rewrite", "deduplicate-initializers", "m.onnx", *OUT),
        shared,
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
        "all doc strings are removed",
        _nodes_with_comments,
        IN_OUT,
        ("rewrite", "strip", "m.onnx", *OUT),
        without_comments,
    ),
    Job(
        "ssc4onnx",
        "a model with bool inputs is shown",
        model("g (bool[2] x) => (bool[2] y) { y = Not (x) }"),
        ("-if", "m.onnx"),
        ("show", "m.onnx"),
        shown,
    ),
    Job(
        "sit4onnx",
        "a model with bool inputs is run",
        model("g (bool[2] x) => (bool[2] y) { y = Not (x) }"),
        ("-if", "m.onnx", "-oep", "cpu", "-tlc", "1"),
        ("run", "m.onnx"),
        lambda outcome: require(outcome.code == 0 and "bool" in outcome.output, "it is not run"),
    ),
    Job(
        "sed4onnx",
        "1.2345678901234567 as base64",
        lambda _: None,
        ("-cs", "[1.2345678901234567]", "-d", "float64", "-m", "encode"),
        ("tensor", "encode", "[1.2345678901234567]", "--type", "float64"),
        encoded,
    ),
)
"""Every job; a tool may have several."""

"""Jobs of the options of the simple-onnx-processing-tools, and of the converters."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy
import onnx
from google.protobuf import json_format

from tests.originals.jobs import CHAIN, TWO, Job, both, model
from tests.originals.judging import (
    all_of,
    attributes,
    computes,
    intermediate,
    is_input,
    json_of,
    judge,
    named_apart,
    names_are,
    nodes,
    outputs,
    prints,
    profiled,
    runs_with,
    same_bytes,
    shapes,
    values,
    weights,
    writes_array,
)

CONV = (
    "g (float[1,3,4,4] x) => (float[1,2,4,4] y) <float[2,3,1,1] w = {1,2,3,4,5,6}> "
    "{ c = Conv <kernel_shape = [1, 1]> (x, w) y = Relu (c) }"
)
WEIGHTED = "g (float[2] x) => (float[2] y) <float[2] w = {3, 4}> { y = Mul (x, w) }"
SHARED = "g (float[2] x) => (float[2] y) <float[2] a = {3, 4}, float[2] b = {3, 4}> { t = Mul (x, a) y = Add (t, b) }"
LEAKY = "g (float[2] x) => (float[2] y) { y = LeakyRelu <alpha = 0.5> (x) }"
NAMES = "g (float[2] x_x) => (float[2] y) { x_a = Abs (x_x) y = Neg (x_a) }"
PREFIXED = "g (float[2] in_x) => (float[2] y) { in_a = Abs (in_x) y = Neg (in_a) }"
SUFFIXED = "g (float[2] x) => (float[2] y_0) { a_0 = Abs (x) y_0 = Neg (a_0) }"
THREE = "g (float[2] x) => (float[2] y, float[2] t, float[2] u) { t = Abs (x) u = Exp (t) y = Neg (t) }"
TWO_OUT = "g (float[1,2] x) => (float[1,2] c, float[1,2] d) { a = Abs (x) b = Relu (x) c = Neg (b) d = Exp (a) }"
IMAGE = "g (float[1,3,8,8] x) => (float[1,3,8,8] y) { a = Abs (x) y = Neg (a) }"
BFLOAT = "g (bfloat16[2] x) => (bfloat16[2] y) <float[2] w = {-0.0, 1}> { c = Cast <to = 16> (w) y = Mul (x, c) }"
UNNAMED = "g (float[1,2] x) => (float[1,2] y) { t = Relu (x) y = Neg (t) }"
B = model("b (float[1,2] u) => (float[1,2] v) { v = Relu (u) }", "b.onnx")
C = model("c (float[1,2] p) => (float[1,2] q) { q = Exp (p) }", "c.onnx")


def _as_json(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        model(text)(folder)
        proto = onnx.load(folder / "m.onnx")
        (folder / "in.json").write_text(json_format.MessageToJson(proto), encoding="utf-8")

    return write


def _without_names(folder: Path) -> None:
    model(UNNAMED)(folder)
    proto = onnx.load(folder / "m.onnx")
    for node in proto.graph.node:
        node.name = ""
    onnx.save(proto, folder / "m.onnx")


def _given(folder: Path) -> None:
    model(TWO)(folder)
    numpy.save(folder / "given.npy", values(1, -2))


def _sed(what: str, mode: str, dtype: str, given: str, ours: str, *printed: str) -> Job:
    original = f"-cs '{given}' -d {dtype} -m {mode}"
    return Job("sed4onnx", what, lambda _: None, original, f"tensor {mode} {ours} --type {dtype}", prints(*printed))


# fmt: off
OPTION_JOBS: Sequence[Job] = (
    _sed("numbers as base64", "encode", "int64", "[1, 2]", "'[1, 2]'", "AQAAAAAAAAACAAAAAAAAAA=="),
    _sed("half-precision numbers", "encode", "float16", "[0.5]", "[0.5]", "ADg="),
    _sed("a string as base64", "encode", "string", "abc", '\'"abc"\'', "YWJj"),
    _sed("base64 as numbers", "decode", "uint8", "AQID", "AQID", "1", "2", "3"),
    _sed("base64 as a string", "decode", "string", "YWJj", "YWJj", "abc"),
    Job("scs4onnx", "equal constants become one", model(SHARED),
        "m.onnx out.onnx",
        "rewrite deduplicate-initializers m.onnx -o out.onnx", computes(["Mul", "Add"], x=numpy.ones(2, "f4"))),
    Job("scs4onnx", "a constant in a .npy, to be passed by the caller", model(WEIGHTED),
        "m.onnx out.onnx -fc w",
        "rewrite initializers-to-inputs m.onnx w --save w.npy -o out.onnx", is_input),
    Job("scs4onnx", "shared constants in .npy files", model(SHARED),
        "m.onnx out.onnx -m npy",
        "rewrite deduplicate-initializers m.onnx -o one.onnx"
        " && rewrite initializers-to-inputs one.onnx a --save a.npy -o out.onnx",
        is_input),
    Job("sog4onnx", "an old version of the format", lambda _: None,
        "-ot Relu -os 13 -ir 8 -on r -iv X float32 [2,3] -ov Y float32 [2,3] -of out.onnx",
        "new Relu --opset 13 --ir-version 8 --input X:float32[2,3] -o out.onnx",
        all_of(nodes("Relu"), judge(lambda proto: proto.ir_version, 8, "the version of the format"))),
    Job("sam4onnx", "an attribute is changed", model(LEAKY),
        "-if m.onnx -of out.onnx -on n_y -a alpha float32 0.25",
        "rewrite set-attribute m.onnx n_y alpha 0.25 -o out.onnx", attributes(alpha=0.25), "graph"),
    Job("sam4onnx", "an attribute is deleted", model(LEAKY),
        "-if m.onnx -of out.onnx -on n_y -da alpha",
        "rewrite remove-attribute m.onnx n_y alpha -o out.onnx", attributes(), "graph"),
    Job("sam4onnx", "a constant is changed", model(WEIGHTED),
        "-if m.onnx -of out.onnx -ic w float32 [5.0,6.0]",
        "rewrite set-tensor m.onnx w '[5.0, 6.0]' -o out.onnx", weights(w=(5, 6)), "graph"),
    Job("soc4onnx", "version 13 becomes 17",
        model(CONV.replace("g (", '<ir_version: 8, opset_import: ["" : 13]> g (')),
        "-if m.onnx -of out.onnx -os 17",
        "rewrite convert-opset m.onnx 17 -o out.onnx", computes(["Conv", "Relu"], x=numpy.ones((1, 3, 4, 4), "f4"))),
    Job("scc4onnx", "channels last of an image for a Conv", model(CONV),
        "-if m.onnx -of out.onnx -ioo x [0,2,3,1]",
        "rewrite transpose-input m.onnx x --perm 0,3,1,2 -o out.onnx",
        computes(["Transpose", "Conv", "Relu"], x=numpy.ones((1, 4, 4, 3), "f4"))),
    Job("sna4onnx", "a node with an attribute between two nodes", model(TWO),
        "-if m.onnx -of out.onnx -aot LeakyRelu -aon new -aoiv p float32 [1,2] -aoov q float32 [1,2]"
        " -aoa alpha float32 0.5 -csoon n_t t new p -cdoin new q n_y t",
        "rewrite add-node m.onnx LeakyRelu --input t --output q --attribute alpha=0.5 --insert -o out.onnx",
        computes(["Abs", "LeakyRelu", "Neg"])),
    Job("sbi4onnx", "a free batch size of a Conv", model(CONV),
        "-if m.onnx -of out.onnx -ics N",
        "rewrite set-batch-size m.onnx N -o out.onnx", runs_with(3, 3, 4, 4)),
    Job("sor4onnx", "every occurrence in names of tensors and nodes", model(NAMES),
        "-if m.onnx -of out.onnx -on x z -sm partial_match",
        "rewrite rename m.onnx any x z --parts -o out.onnx", names_are("z_z", "z_a", "y"), "graph"),
    Job("sor4onnx", "a prefix of inputs", model(PREFIXED),
        "-if m.onnx -of out.onnx -on in_ '' -sm prefix_match -m inputs",
        "rewrite rename m.onnx input 're:in_(.*)' '\\1' -o out.onnx", names_are("x", "in_a", "y"), "graph"),
    Job("sor4onnx", "a suffix of outputs", model(SUFFIXED),
        "-if m.onnx -of out.onnx -on _0 '' -sm suffix_match -m outputs",
        "rewrite rename m.onnx output 're:(.*)_0' '\\1' -o out.onnx", names_are("x", "a_0", "y"), "graph"),
    Job("soa4onnx", "two inner values become outputs", model(CHAIN),
        "-if m.onnx -of out.onnx -on a s",
        "rewrite add-output m.onnx 're:a|s' -o out.onnx", outputs("y", "a", "s"), "graph"),
    Job("sod4onnx", "two of three outputs are removed", model(THREE),
        "-if m.onnx -of out.onnx -on t u",
        "rewrite remove-output m.onnx 're:t|u' --prune -o out.onnx", outputs("y")),
    Job("sit4onnx", "several timed runs with a batch", model("g (float[N,2] x) => (float[N,2] y) { y = Neg (x) }"),
        "-if m.onnx -oep cpu -tlc 5 -b 3",
        "run m.onnx -n 5 --dim N=3", prints("3", "5")),
    Job("sit4onnx", "given values, and the result in a .npy", _given,
        "-if m.onnx -oep cpu -tlc 1 -ifp given.npy -ofp",
        "run m.onnx --input given.npy -o y.npy", writes_array(-1, -2)),
    Job("sit4onnx", "the profile of onnxruntime in a file", model(TWO),
        "-if m.onnx -oep cpu -tlc 2 -pro",
        "run m.onnx --profile 2 --profile-events profile.json", profiled),
    Job("sio4onnx", "names of dimensions", model(IMAGE),
        "-if m.onnx -of out.onnx -i x -is N 3 H W -o y -os N 3 H W",
        "rewrite set-shape m.onnx x N,3,H,W -o out.onnx", shapes("N", 3, "H", "W")),
    Job("svs4onnx", "the only consumer of a value uses another one", model(TWO_OUT),
        "-if m.onnx -of out.onnx -fovn a -tivn b",
        "rewrite rewire m.onnx input:b b a -o t.onnx && rewrite prune t.onnx -o out.onnx",
        computes(["Abs", "Exp", "Neg"])),
    Job("sng4onnx", "names for all nodes", _without_names,
        "-if m.onnx -of out.onnx",
        "rewrite name-nodes m.onnx -o out.onnx", named_apart, "graph"),
    Job("snc4onnx", "three models, and the first two in a file", both(model(TWO, "a.onnx"), B, C),
        "-if a.onnx b.onnx c.onnx -sd y u -sd v p -of out.onnx -dos -f",
        "rewrite combine a.onnx b.onnx --join y=u -o ab.onnx && rewrite combine ab.onnx c.onnx --join v=p -o out.onnx",
        all_of(computes(["Abs", "Neg", "Relu", "Exp"]), intermediate)),
    Job("snd4onnx", "two nodes are deleted", model(CHAIN),
        "-if m.onnx -of out.onnx -rn n_s n_a",
        "rewrite delete-node m.onnx 're:n_s|n_a' -o out.onnx", computes(["Neg"])),
    Job("onnx2json", "a model with bfloat16, -0.0 and a name that is no word as JSON", model(BFLOAT),
        "-if m.onnx -oj m.json",
        "convert m.onnx -o m.json --to protojson", json_of),
    Job("json2onnx", "JSON of protobuf as a model", _as_json(CONV),
        "-ij in.json -of out.onnx",
        "convert in.json -o out.onnx", same_bytes, "graph"),
)
# fmt: on

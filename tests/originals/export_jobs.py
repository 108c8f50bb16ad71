"""Jobs on models of the exporters of PyTorch: edits, conversions, optimizers."""

from collections.abc import Callable, Sequence
from pathlib import Path

import onnx

import onnxjson
from tests.originals.comparing import computes_the_same, shrunk
from tests.originals.jobs import Job, both, model
from tests.originals.judging import (
    all_of,
    has,
    inputs,
    json_of,
    judge,
    named_apart,
    outputs,
    prints,
    runs_with,
    same_bytes,
    shapes,
)

MODELS = Path(__file__).parents[1] / "models"


def export(name: str) -> Callable[[Path], None]:
    """Writes a model of the exporters of PyTorch."""
    return lambda folder: onnx.save(onnx.load(MODELS / f"{name}.onnx"), folder / "m.onnx")


def _as_our_json(folder: Path) -> None:
    export("mobile_ts")(folder)
    onnxjson.save(onnxjson.load(folder / "m.onnx"), folder / "in.json", "protojson")


def _unnamed_export(folder: Path) -> None:
    proto = onnx.load(MODELS / "mobile_ts.onnx")
    for node in proto.graph.node:
        node.name = ""
    onnx.save(proto, folder / "m.onnx")


# fmt: off
EXPORT_JOBS: Sequence[Job] = (
    Job("ssc4onnx", "numbers and bytes of operators of an export", export("mobile_ts"),
        "-if m.onnx",
        "show m.onnx --cost && show m.onnx", prints("Conv", "19", "float32")),
    Job("ssi4onnx", "shapes of an export", export("mobile_dynamo"),
        "-if m.onnx -of out.onnx",
        "rewrite infer-shapes m.onnx -o out.onnx",
        judge(lambda proto: len(proto.graph.value_info) > 40, expected=True, what="the shapes are there")),
    Job("sne4onnx", "an export up to an inner value", export("mobile_ts"),
        "-if m.onnx -of out.onnx -ion image -oon /stem/activation/Clip_output_0",
        "rewrite extract m.onnx --inputs image --outputs /stem/activation/Clip_output_0 -o out.onnx",
        outputs("/stem/activation/Clip_output_0")),
    Job("snc4onnx", "an export and a Softmax in a row",
        both(export("mobile_ts"), model("s (float[N,10] u) => (float[N,10] v) { v = Softmax (u) }", "s.onnx")),
        "-if m.onnx s.onnx -sd 639 u -of out.onnx -dos",
        "rewrite combine m.onnx s.onnx --join 639=u -o out.onnx", has(400, "Softmax")),
    Job("sne4onnx", "an export from an inner value on", export("mobile_ts"),
        "-if m.onnx -of out.onnx -ion /stem/activation/Clip_output_0 -oon 639",
        "rewrite extract m.onnx --inputs /stem/activation/Clip_output_0 --outputs 639 -o out.onnx",
        all_of(inputs("/stem/activation/Clip_output_0"), outputs("639"))),
    Job("snd4onnx", "nodes of an export whose input is a constant", export("mobile_ts"),
        "-if m.onnx -of out.onnx -rn Identity_190 Identity_191 Identity_192",
        "rewrite delete-node m.onnx re:Identity_19[0-2] -o out.onnx", shrunk(397)),
    Job("scs4onnx", "the constants of an export", export("encoder_ts"),
        "m.onnx out.onnx -d",
        "rewrite constants-to-initializers m.onnx -o c.onnx && rewrite deduplicate-initializers c.onnx -o out.onnx",
        computes_the_same),
    Job("sam4onnx", "the strides of a Conv of an export", export("mobile_dynamo"),
        "-if m.onnx -of out.onnx -on node_Conv_349 -a strides int64 [1,1]",
        "rewrite set-attribute m.onnx node_Conv_349 strides '[1, 1]' -o out.onnx", has(44, "Conv")),
    Job("soc4onnx", "an export of version 17 becomes 21", export("mobile_ts"),
        "-if m.onnx -of out.onnx -os 21",
        "rewrite convert-opset m.onnx 21 -o out.onnx", computes_the_same),
    Job("soc4onnx", "an export of version 17 becomes 13", export("mobile_ts"),
        "-if m.onnx -of out.onnx -os 13",
        "rewrite convert-opset m.onnx 13 -o out.onnx", computes_the_same),
    Job("scc4onnx", "an export with channels last", export("mobile_ts"),
        "-if m.onnx -of out.onnx -ioo image [0,2,3,1]",
        "rewrite transpose-input m.onnx image --perm 0,3,1,2 -o out.onnx", shapes(1, 32, 32, 3)),
    Job("sna4onnx", "a Relu within an export", export("mobile_dynamo"),
        "-if m.onnx -of out.onnx -aot Relu -aon new -aoiv p float32 [1,8,16,16] -aoov q float32 [1,8,16,16]"
        " -csoon node_Conv_349 getitem new p -cdoin new q n4 getitem",
        "rewrite add-node m.onnx Relu --input getitem --output q --insert -o out.onnx", has(45, "Relu")),
    Job("sbi4onnx", "a free batch size of an export", export("mobile_ts"),
        "-if m.onnx -of out.onnx -ics N -dos",
        "rewrite set-batch-size m.onnx N -o out.onnx", runs_with(3, 3, 32, 32)),
    Job("sor4onnx", "every occurrence in an export", export("mobile_ts"),
        "-if m.onnx -of out.onnx -on blocks parts -sm partial_match",
        "rewrite rename m.onnx any blocks parts --parts -o out.onnx", computes_the_same, "graph"),
    Job("soa4onnx", "an inner value of an export", export("mobile_ts"),
        "-if m.onnx -of out.onnx -on /stem/activation/Clip_output_0",
        "rewrite add-output m.onnx /stem/activation/Clip_output_0 -o out.onnx",
        outputs("639", "/stem/activation/Clip_output_0")),
    Job("sio4onnx", "an export for other images", export("mobile_ts"),
        "-if m.onnx -of out.onnx -i image -is 1 3 48 64 -o 639 -os 1 10",
        "rewrite set-shape m.onnx image 1,3,48,64 -o out.onnx", runs_with(1, 3, 48, 64)),
    Job("svs4onnx", "another value within an export", export("mobile_dynamo"),
        "-if m.onnx -of out.onnx -fovn add_2 -tivn hardtanh_18",
        "rewrite rewire m.onnx input:hardtanh_18 hardtanh_18 add_2 -o t.onnx && rewrite prune t.onnx -o out.onnx",
        has(38, "Clip")),
    Job("sng4onnx", "names for the nodes of an export", _unnamed_export,
        "-if m.onnx -of out.onnx",
        "rewrite name-nodes m.onnx -o out.onnx", named_apart),
    Job("sit4onnx", "an export is run", export("mobile_ts"),
        "-if m.onnx -oep cpu -tlc 3",
        "run m.onnx -n 3", prints("639", "10")),
    Job("onnx2json", "an export as JSON", export("mobile_ts"),
        "-if m.onnx -oj m.json",
        "convert m.onnx -o m.json --to protojson", json_of),
    Job("onnxoptimizer", "the default passes on an export", export("mobile_ts"),
        "m.onnx out.onnx",
        "optimize m.onnx -p onnxoptimizer -o out.onnx", shrunk(250), "graph"),
    Job("onnxoptimizer", "one pass", export("encoder_ts"),
        "m.onnx out.onnx -p eliminate_identity",
        "optimize m.onnx -p onnxoptimizer:eliminate_identity -o out.onnx", shrunk(604), "graph"),
    Job("onnxsim", "an export is simplified", export("mobile_ts"),
        "m.onnx out.onnx",
        "optimize m.onnx -p onnxsim -o out.onnx", shrunk(100), "graph"),
    Job("onnxsim", "with checks, without the initializers, for another operator set", export("mobile_ts"),
        "m.onnx out.onnx 2 --initializers-as-non-constants --target-opset 18 --check-rtol 0.01",
        "optimize m.onnx -p onnxsim{check=2,constant_weights=false,opset=18,check_rtol=0.01} -o out.onnx", shrunk(250),
        "graph"),
    Job("onnxslim", "an export is slimmed", export("mobile_ts"),
        "m.onnx out.onnx",
        "optimize m.onnx -p onnxslim -o out.onnx", shrunk(100), "graph"),
    Job("onnxslim", "without fusions", export("encoder_ts"),
        "m.onnx out.onnx --skip-optimizations graph_fusion",
        "optimize m.onnx -p onnxslim{skip=[graph_fusion]} -o out.onnx", shrunk(604), "graph"),
    Job("json2onnx", "JSON of onnxjson as a model", _as_our_json,
        "-ij in.json -of out.onnx",
        "convert in.json -o out.onnx", same_bytes, "graph"),
)
# fmt: on

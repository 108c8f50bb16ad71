"""What `same_outputs` runs beside `output_cases`: all passes on a model, and sessions that take no model."""

from typing import Final

PASSES: Final = """
onnxoptimizer: onnxjson optimize m.onnx -p onnxoptimizer -o 1.onnx --trace 1.steps
onnxoptimizer-json: onnxjson trace 1.steps --format json
onnxsim: onnxjson optimize m.onnx -p onnxsim -o 2.onnx --trace 2.steps
onnxsim-json: onnxjson trace 2.steps --format json
onnxslim: onnxjson optimize m.onnx -p onnxslim -o 3.onnx --trace 3.steps
onnxslim-json: onnxjson trace 3.steps --format json
onnxscript: onnxjson optimize m.onnx -p onnxscript -o 4.onnx --trace 4.steps
onnxscript-json: onnxjson trace 4.steps --format json
onnxruntime: onnxjson optimize m.onnx -p 'onnxruntime{level=extended}' -o 5.onnx --trace 5.steps
onnxruntime-json: onnxjson trace 5.steps --format json
transformers: onnxjson optimize m.onnx -p transformers -o 6.onnx --trace 6.steps
transformers-json: onnxjson trace 6.steps --format json
float16: onnxjson optimize m.onnx -p float16 -o 7.onnx --trace 7.steps
float16-json: onnxjson trace 7.steps --format json
quantize-dynamic: onnxjson optimize m.onnx -p quantize-dynamic -o 8.onnx --trace 8.steps
quantize-dynamic-json: onnxjson trace 8.steps --format json
quantize-static: onnxjson optimize m.onnx -p quantize-static -o 9.onnx --trace 9.steps
quantize-static-json: onnxjson trace 9.steps --format json
symbolic-shapes: onnxjson optimize m.onnx -p symbolic-shapes -o 10.onnx --trace 10.steps
symbolic-shapes-json: onnxjson trace 10.steps --format json
extract-adapters: onnxjson optimize m.onnx -p 'extract-adapters{pattern=.*bias.*}' -o 12.onnx --trace 12.steps
extract-adapters-json: onnxjson trace 12.steps --format json
qnn-preprocess: onnxjson optimize m.onnx -p qnn-preprocess -o 14.onnx --trace 14.steps
qnn-preprocess-json: onnxjson trace 14.steps --format json
mixed-precision: onnxjson optimize m.onnx -p 'mixed-precision{evaluations=20}' -o 15.onnx
trace-text: onnxjson trace 5.steps
trace-details: onnxjson trace 5.steps --details
trace-markdown: onnxjson trace 5.steps --format markdown
trace-html: onnxjson trace 5.steps -o trace.html
trace-node: onnxjson trace 5.steps --node "op:$OP"
trace-no-such: onnxjson trace 5.steps --node "op:${OP}x"
several: onnxjson optimize m.onnx -p onnxsim -p prune -p onnxslim -o 16.onnx --trace 16.steps --verify
several-json: onnxjson trace 16.steps --format json
bisect: onnxjson optimize m.onnx -p onnxsim -p quantize-dynamic --verify --bisect -o x.onnx
part: onnxjson optimize m.onnx -p onnxoptimizer:eliminate_identity -o 17.onnx
rule: onnxjson optimize m.onnx -p 'onnxscript*' -o 18.onnx
optimized-diff: onnxjson diff m.onnx 2.onnx --format json --matches
optimized-text: onnxjson diff m.onnx 3.onnx
optimized-prove: onnxjson diff m.onnx 2.onnx --prove
quantize-weights: onnxjson optimize m.onnx -p quantize-weights -o 19.onnx --trace 19.steps
"""
"""The session `passes`; it takes the longest, so that big models are left out unless they are asked for."""

GENERAL_SESSIONS: Final[dict[str, str]] = {
    "lists": """
passes: onnxjson passes
passes-json: onnxjson passes --json
pass: for p in onnxoptimizer onnxsim onnxruntime quantize-static set-shape; do onnxjson passes $p; done
no-pass: onnxjson passes onnxsmi
edits: onnxjson rewrite --list
operators: onnxjson new --list
schemas: for s in document diff diffs patch recipe rewrite trace; do onnxjson schema $s; done
completion: for s in bash zsh fish; do onnxjson completion $s; done
version: onnxjson --version
no-command: onnxjson shwo
words: _ONNXJSON_COMPLETE=bash_complete COMP_WORDS='onnxjson d' COMP_CWORD=1 onnxjson
demo: onnxjson demo
""",
    "new": """
operator: onnxjson new Conv -o conv.onnx
operator-text: onnxjson new Softmax --input 'x:float16[2,3]' --attr axis=0 -o -
operator-opset: onnxjson new Resize --opset 13 --name r --format json -o -
operator-constant: onnxjson new Reshape --input 'x:float32[2,3]' --input 'shape:int64[1]=[-1]' --output-name y
    -o reshape.onnx
operator-subgraph: onnxjson new If -o if.onnx.json
operator-wrong: onnxjson new Softmaks -o x.onnx
attribute-wrong: onnxjson new Softmax --attr axes=1 -o x.onnx
components: for c in Z001 Z002 Z003 Z004 Z005 Z006 Z007 Z008 Z009 Z010; do onnxjson new --component $c
    -o $c.onnx; done
components-text: onnxjson new --component nms-yolact -o -
all: onnxjson new --all parts
""",
    "tensor": """
encode: onnxjson tensor encode '[[1, 2], [3, 4]]' --type float32
encode-json: onnxjson tensor encode '[0.1, "NaN"]' --type 'float16[2]' --json --name w --lossy
encode-proto: onnxjson tensor encode '[1, 2, 3]' --type int64 --proto-json --name w
encode-wrong: onnxjson tensor encode '[1, 300]' --type int8
encode-each: for t in bool int4 uint4 int8 uint16 int32 uint64 bfloat16 float8e4m3fn float4e2m1; do
    onnxjson tensor encode '[0, 1, 1]' --type $t; done
encode-inexact: onnxjson tensor encode '[0.1]' --type bfloat16
decode: onnxjson tensor decode AACAPwAAAEA= --type 'float32[2]'
decode-npy: onnxjson tensor decode AACAPwAAAEA= --type 'float32[2]' -o a.npy
decode-json: onnxjson tensor decode AACAPwAAAEA= --dtype float16 --shape 2,2 --json --name w
decode-wrong: onnxjson tensor decode AACAPwAAAEA= --type 'float32[3]'
strings: onnxjson tensor encode '["a", "b"]' --type string --json
""",
}
"""Sessions that take no model."""

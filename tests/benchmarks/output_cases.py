r"""What `same_outputs` runs: command lines, one a line, in sessions.

A session is a folder of its own with ``m.onnx``, the model, and ``o.onnx``, another one of the same folder of models.
Its lines run one after the other, so that later ones can take what earlier ones wrote. A line is ``NAME: SHELL LINE``;
the name is what two records are compared by, so it stays when the spelling of a command changes. An indented line
continues the one above. ``$NODE`` and the other names in capitals are those of the model, see `output_names`.
"""

from typing import Final

SPELLINGS: Final[dict[str, str]] = {
    "apply --format": "apply --to",
    "convert --format": "convert --to",
    "convert --file": "convert --data-file",
    "diff --details": "diff --verbose",
    "diff --weights": "diff --compare-weights",
    "diff --prove": "diff --test-rewrites",
    "new --format": "new --to",
    "tensor --proto-json": "tensor --format protojson",
    "tensor --dtype float16 --shape 2,2": "tensor --type 'float16[2,2]'",
    "tensor --input": "tensor --from",
    "trace --details": "trace --verbose",
    "verify --seeds": "verify --samples",
}
"""Old spelling -> new one, as texts of the lines below: ``{"verify --level": "verify --optimization"}``.

For a release that renames something, so that one table runs on both sides of it: `record --spellings new` uses them.
"""

CHANGED: Final = """
make-a: onnxjson rewrite set-doc m.onnx 'first' --node "$NODE" -o a.onnx
make-a2: onnxjson rewrite set-metadata a.onnx author --value Ada -i
make-a3: onnxjson rewrite rename a.onnx tensor --from "$VALUE" --to 'renamed value' -i
make-b: onnxjson rewrite delete-node m.onnx "$LAST_NODE" -o b.onnx || cp m.onnx b.onnx
make-b2: onnxjson rewrite add-node b.onnx Relu --input "$INPUT" --output positive --insert -i || true
make-b3: onnxjson rewrite set-attribute b.onnx "$ATTRIBUTE_NODE" "$ATTRIBUTE" "$ATTRIBUTE_VALUE" -i || true
"""
"""Two changed models, which several sessions begin with: ``a.onnx`` computes the same, ``b.onnx`` does not."""

MODEL_SESSIONS: Final[dict[str, str]] = {
    "convert": """
to-text: onnxjson convert m.onnx
back: onnxjson convert m.onnx.json -o back.onnx && cmp m.onnx back.onnx
there-already: onnxjson convert m.onnx
to-stdout: onnxjson convert m.onnx -o -
proto-json: onnxjson convert m.onnx --format protojson -o m.json
proto-json-lossy: onnxjson convert m.onnx --format protojson --lossy -o lossy.json
from-proto-json: onnxjson convert m.json -o from-json.onnx
proto-json-to-text: onnxjson convert m.json --format json -o from-json.onnx.json
text-to-proto-json: onnxjson convert m.onnx.json --format protojson -o -
blobs: onnxjson convert m.onnx --weights blobs -o apart.onnx.json
blobs-elsewhere: onnxjson convert m.onnx --weights blobs --blobs store -o apart2.onnx.json
blobs-back: onnxjson convert apart.onnx.json -o apart.onnx && cmp m.onnx apart.onnx
digest: onnxjson convert m.onnx --weights digest -o digest.onnx.json
digest-refused: onnxjson convert digest.onnx.json -o digest.onnx
digest-back: onnxjson convert digest.onnx.json --weights-from m.onnx -o digest.onnx && cmp m.onnx digest.onnx
externalize: mkdir out && onnxjson convert m.onnx --externalize --threshold 256 -o out/m.onnx
externalized-text: onnxjson convert out/m.onnx -o out/m.onnx.json
externalized-show: onnxjson show out/m.onnx
with-external: mkdir out2 && onnxjson convert out/m.onnx --with-external -o out2/copy.onnx
externalized-lost: mkdir out3 && cp out/m.onnx out3 && onnxjson check out3/m.onnx
internalize: onnxjson convert out/m.onnx --internalize -o inside.onnx
externalize-names: onnxjson convert m.onnx --externalize --threshold 1k --file w.bin -o named.onnx
wrong-option: onnxjson convert m.onnx --formt json
missing-file: onnxjson convert none.onnx
no-model: echo nothing > nothing.onnx && onnxjson convert nothing.onnx
cut-off: head -c 700 m.onnx > cut.onnx; onnxjson convert cut.onnx
""",
    "fmt": """
digest: onnxjson convert m.onnx --weights digest -o m.onnx.json
canonical: onnxjson fmt m.onnx.json
compact: python -c 'import json; t = json.load(open("m.onnx.json")); json.dump(t, open("c.onnx.json", "w"))'
compact-check: onnxjson fmt --check m.onnx.json c.onnx.json
compact-fmt: onnxjson fmt c.onnx.json && cmp m.onnx.json c.onnx.json
undo: onnxjson undo-save c.onnx.json
undo-nothing: onnxjson undo-save m.onnx.json
not-json: sed '5d' m.onnx.json > bad.onnx.json; onnxjson fmt bad.onnx.json
blobs: onnxjson convert m.onnx --weights blobs -o apart.onnx.json
prune-blobs: mkdir -p apart.blobs && echo x > apart.blobs/$(printf '%064d' 7); onnxjson fmt
    --prune-blobs apart.onnx.json
""",
    "show": """
model: onnxjson show m.onnx
model-json: onnxjson show m.onnx --json
two: onnxjson show m.onnx o.onnx
two-json: onnxjson show m.onnx o.onnx --json
node: onnxjson show m.onnx "$NODE"
node-doc: onnxjson show m.onnx "$NODE" --doc
node-json: onnxjson show m.onnx "$NODE" --json
operator: onnxjson show m.onnx "op:$OP"
operator-json: onnxjson show m.onnx "op:$OP" --json
terms: onnxjson show m.onnx "op:$OP !input:$VALUE in:main"
address: onnxjson show m.onnx @/graph/node/1
pattern: onnxjson show m.onnx '/*'
weight: onnxjson show m.onnx "$WEIGHT" --values 5
weight-json: onnxjson show m.onnx "$WEIGHT" --values 100 --json
value: onnxjson show m.onnx "$VALUE"
input: onnxjson show m.onnx "$INPUT"
no-such: onnxjson show m.onnx "${NODE}x"
no-such-operator: onnxjson show m.onnx "op:${OP}x"
digest: onnxjson convert m.onnx --weights digest -o d.onnx.json && onnxjson show d.onnx.json "$WEIGHT"
weights-from: onnxjson show d.onnx.json "$WEIGHT" --weights-from m.onnx
tensor: onnxjson tensor get m.onnx "$WEIGHT"
tensor-json: onnxjson tensor get m.onnx "$WEIGHT" --json
tensor-npy: onnxjson tensor get m.onnx "$WEIGHT" -o w.npy
tensor-npz: onnxjson tensor get m.onnx "$WEIGHT" "$CONSTANT" -o w.npz
tensor-encode: onnxjson tensor encode --input w.npy --type float16 --lossy -o w.json
tensor-no-such: onnxjson tensor get m.onnx "${WEIGHT}x"
""",
    "check": """
plain: onnxjson check m.onnx
plain-json: onnxjson check m.onnx o.onnx --json
deep: onnxjson check --deep m.onnx
strict: onnxjson check --deep --strict --json m.onnx
text: onnxjson convert m.onnx && onnxjson check m.onnx.json
unknown-value: sed '0,/"input": \\["/s//"input": ["lost /' m.onnx.json > t1.onnx.json; onnxjson check
    --json t1.onnx.json
unknown-value-text: onnxjson check t1.onnx.json
unknown-value-deep: onnxjson check --deep t1.onnx.json
unknown-operator: sed '0,/"op_type": "/s//"op_type": "X/' m.onnx.json > t2.onnx.json; onnxjson check --deep
    --json t2.onnx.json
unknown-key: sed '0,/"op_type"/s//"op_typ"/' m.onnx.json > t3.onnx.json; onnxjson check t3.onnx.json
unknown-key-json: onnxjson check --json t3.onnx.json
bad-type: sed '0,/float32\\|int64/s//float33/' m.onnx.json > t4.onnx.json; onnxjson check --json t4.onnx.json
no-comma: sed '0,/",$/s//"/' m.onnx.json > t5.onnx.json; onnxjson check t5.onnx.json
cut-off: head -c 700 m.onnx > cut.onnx; onnxjson check cut.onnx m.onnx
several: onnxjson check m.onnx t1.onnx.json t3.onnx.json none.onnx
rewrite-refused: onnxjson convert t3.onnx.json -o t3.onnx
diff-refused: onnxjson diff m.onnx t3.onnx.json
""",
    "diff": f"""
{CHANGED}
same: onnxjson diff m.onnx m.onnx
a-text: onnxjson diff m.onnx a.onnx
b-text: onnxjson diff m.onnx b.onnx
b-details: onnxjson diff m.onnx b.onnx --details --matches
b-unified: onnxjson diff m.onnx b.onnx --format unified -U 1
b-json: onnxjson diff m.onnx b.onnx --format json --matches
b-markdown: onnxjson diff m.onnx b.onnx --format markdown
b-html: onnxjson diff m.onnx b.onnx -o b.html
b-patch: onnxjson diff m.onnx b.onnx --format patch -o b.patch.json
a-json: onnxjson diff m.onnx a.onnx --format json
a-b-json: onnxjson diff a.onnx b.onnx --format json
ignore: onnxjson diff m.onnx a.onnx --ignore names,docs,metadata,order
nodes-only: onnxjson diff a.onnx b.onnx --nodes-only
skip-weights: onnxjson diff a.onnx b.onnx --weights skip
tolerance: onnxjson diff a.onnx b.onnx --weights tolerance --exit-zero
prove: onnxjson diff m.onnx b.onnx --prove
other-text: onnxjson diff m.onnx o.onnx
other-details: onnxjson diff m.onnx o.onnx --details
other-json: onnxjson diff m.onnx o.onnx --format json --matches
other-unified: onnxjson diff m.onnx o.onnx --format unified
other-markdown: onnxjson diff m.onnx o.onnx --format markdown
other-html: onnxjson diff m.onnx o.onnx -o o.html
other-patch: onnxjson diff m.onnx o.onnx --format patch -o o.patch.json
other-apply: onnxjson apply o.patch.json m.onnx -o again.onnx && cmp o.onnx again.onnx
text-and-binary: onnxjson convert m.onnx -o t.onnx.json && onnxjson diff t.onnx.json m.onnx
digest: onnxjson convert b.onnx --weights digest -o d.onnx.json && onnxjson diff m.onnx d.onnx.json --format json
wrong-ignore: onnxjson diff m.onnx a.onnx --ignore nams
apply: onnxjson apply b.patch.json m.onnx -o b2.onnx && cmp b.onnx b2.onnx
apply-reverse: onnxjson apply b.patch.json b.onnx --reverse -o m2.onnx && cmp m.onnx m2.onnx
apply-same-base: onnxjson apply b.patch.json a.onnx --same-base -o x.onnx
apply-fuzzy: onnxjson apply b.patch.json a.onnx -o x.onnx
apply-wrong: onnxjson apply b.patch.json o.onnx -o x.onnx
apply-dry: onnxjson apply b.patch.json m.onnx --dry-run
apply-script: onnxjson apply a.script.json m.onnx -o a2.onnx && cmp a.onnx a2.onnx
apply-in-place: cp m.onnx c.onnx && onnxjson apply b.patch.json c.onnx -i
undo: onnxjson undo-save c.onnx && cmp m.onnx c.onnx
apply-to-text: onnxjson apply b.patch.json m.onnx --format json -o -
""",
    "edits": """
add-node: onnxjson rewrite add-node m.onnx Relu --input "$VALUE" --output positive --insert -o 1.onnx
add-node-dry: onnxjson rewrite add-node m.onnx Neg --input "$INPUT" --output negative --dry-run
add-node-attribute: onnxjson rewrite add-node m.onnx LeakyRelu --input "$VALUE" --output y --attribute alpha=0.1
    -o 2.onnx
add-node-wrong: onnxjson rewrite add-node m.onnx Relux --input "$VALUE" --output y -o x.onnx
delete-node: onnxjson rewrite delete-node m.onnx "$NODE" -o 3.onnx
delete-node-dry: onnxjson rewrite delete-node m.onnx "op:$OP" --dry-run
delete-node-expect: onnxjson rewrite delete-node m.onnx "op:$OP" --expect 3 -o 4.onnx
replace-node: onnxjson rewrite replace-node m.onnx "op:$OP" Mul -o 5.onnx
replace-node-one: onnxjson rewrite replace-node m.onnx "$NODE" Relu -o 6.onnx
replace-pattern: onnxjson rewrite replace-pattern m.onnx "$OP(...)" "Relu(_)" -o 59.onnx
rewire: onnxjson rewrite rewire m.onnx "$NODE" 0 "$INPUT" -o 7.onnx
rewire-cycle: onnxjson rewrite rewire m.onnx "$FIRST_NODE" 0 "$OUTPUT" -o x.onnx
swap-inputs: onnxjson rewrite swap-inputs m.onnx "$NODE" -o 8.onnx
set-attribute: onnxjson rewrite set-attribute m.onnx "$ATTRIBUTE_NODE" "$ATTRIBUTE" "$ATTRIBUTE_VALUE" -o 9.onnx
set-attribute-dry: onnxjson rewrite set-attribute m.onnx "$ATTRIBUTE_NODE" "$ATTRIBUTE" "$ATTRIBUTE_VALUE" --dry-run
set-attribute-wrong: onnxjson rewrite set-attribute m.onnx "$ATTRIBUTE_NODE" "${ATTRIBUTE}x" 1 -o x.onnx
set-attribute-type: onnxjson rewrite set-attribute m.onnx "$ATTRIBUTE_NODE" "$ATTRIBUTE" '"a text"' -o x.onnx
remove-attribute: onnxjson rewrite remove-attribute m.onnx "$ATTRIBUTE_NODE" "$ATTRIBUTE" -o 10.onnx
set-tensor: onnxjson rewrite set-tensor m.onnx "$WEIGHT" '[1, 2]' --type 'float32[2]' -o 11.onnx
set-tensor-file: onnxjson tensor get m.onnx "$WEIGHT" -o w.npy && onnxjson rewrite set-tensor m.onnx "$WEIGHT"
    --file w.npy -o 12.onnx
set-tensor-at: onnxjson rewrite set-tensor m.onnx "$WEIGHT" 1 --at 0 -o 12a.onnx
set-tensor-wrong: onnxjson rewrite set-tensor m.onnx "$WEIGHT" '["a"]' -o x.onnx
cast-tensor: onnxjson rewrite cast-tensor m.onnx "$WEIGHT" float16 --lossy -o 13.onnx
infer-shapes: onnxjson rewrite infer-shapes m.onnx -o 14.onnx
infer-shapes-overwrite: onnxjson rewrite infer-shapes m.onnx --overwrite -o 15.onnx
inline-functions: onnxjson rewrite inline-functions m.onnx -o 16.onnx
convert-opset: onnxjson rewrite convert-opset m.onnx 21 -o 17.onnx
convert-opset-down: onnxjson rewrite convert-opset m.onnx 13 -o 18.onnx
stamp-opset: onnxjson rewrite stamp-opset m.onnx 22 -o 19.onnx
set-ir-version: onnxjson rewrite set-ir-version m.onnx 11 -o 19b.onnx
set-metadata: onnxjson rewrite set-metadata m.onnx author --value Ada -o 20.onnx
set-metadata-nodes: onnxjson rewrite set-metadata m.onnx stage --value 2 --node "op:$OP" -o 21.onnx
set-doc: onnxjson rewrite set-doc m.onnx 'A text.' --tensor "$INPUT" -o 22.onnx
extract: onnxjson rewrite extract m.onnx --outputs "$VALUE" -o 23.onnx
extract-between: onnxjson rewrite extract m.onnx --inputs "$VALUE" --outputs "$OUTPUT" -o 24.onnx
extract-wrong: onnxjson rewrite extract m.onnx --outputs "${VALUE}x" -o x.onnx
combine: onnxjson rewrite combine 23.onnx 24.onnx --join "$VALUE=$VALUE" -o 25.onnx
combine-other: onnxjson rewrite combine m.onnx --with o.onnx --join "$OUTPUT=$OTHER_INPUT" --prefix o/ -o 26.onnx
combine-unjoined: onnxjson rewrite combine m.onnx --with o.onnx -o 27.onnx
rename-input: onnxjson rewrite rename m.onnx input --from "$INPUT" --to image -o 28.onnx
rename-pattern: onnxjson rewrite rename m.onnx node --from 're:(.*)/(.*)' --to '\\1/x\\2' -o 29.onnx
rename-taken: onnxjson rewrite rename m.onnx tensor --from "$VALUE" --to "$INPUT" -o x.onnx
rename-dim: onnxjson rewrite rename m.onnx dim --from "$DIM" --to B -o 30.onnx
set-name: onnxjson rewrite set-name m.onnx "$NODE" 'the node' -o 31.onnx
name-nodes: onnxjson rewrite name-nodes m.onnx --prefix n -o 32.onnx
prefix: onnxjson rewrite prefix m.onnx net/ -o 33.onnx
prefix-kinds: onnxjson rewrite prefix m.onnx net/ --kinds tensor --kinds input -o 34.onnx
deduplicate: onnxjson rewrite deduplicate-initializers m.onnx -o 35.onnx
prune: onnxjson rewrite prune m.onnx -o 36.onnx
strip: onnxjson rewrite strip m.onnx -o 37.onnx
strip-more: onnxjson rewrite strip m.onnx --what metadata --what value_info --what names -o 38.onnx
constants-to-initializers: onnxjson rewrite constants-to-initializers m.onnx -o 39.onnx
initializers-to-constants: onnxjson rewrite initializers-to-constants m.onnx -o 40.onnx
initializers-to-inputs: onnxjson rewrite initializers-to-inputs m.onnx "$WEIGHT" --save w2.npy -o 41.onnx
add-input: onnxjson rewrite add-input m.onnx extra 'float32[N,3]' -o 42.onnx
add-output: onnxjson rewrite add-output m.onnx "$VALUE" -o 43.onnx
remove-output: onnxjson rewrite remove-output 43.onnx "$VALUE" --prune -o 44.onnx
remove-last-output: onnxjson rewrite remove-output m.onnx "$OUTPUT" -o x.onnx
remove-input: onnxjson rewrite remove-input 42.onnx extra -o 45.onnx
remove-input-used: onnxjson rewrite remove-input m.onnx "$INPUT" -o x.onnx
transpose-input: onnxjson rewrite transpose-input m.onnx "$INPUT" --reverse 0 -o 46.onnx
transpose-input-perm: onnxjson rewrite transpose-input m.onnx "$INPUT" --perm 0,2,3,1 -o 47.onnx
set-shape: onnxjson rewrite set-shape m.onnx "$INPUT" "$SHAPE" -o 48.onnx
set-shape-wrong: onnxjson rewrite set-shape m.onnx "$INPUT" 7,7,7 -o x.onnx
set-dim: onnxjson rewrite set-dim m.onnx --dim "$DIM" --size 4 -o 49.onnx
set-dim-axis: onnxjson rewrite set-dim m.onnx --tensor "$INPUT" --axis 0 --size batch -o 50.onnx
set-batch-size: onnxjson rewrite set-batch-size m.onnx 3 -o 51.onnx
set-batch-size-name: onnxjson rewrite set-batch-size m.onnx N --partial -o 52.onnx
in-place-several: cp m.onnx c.onnx && onnxjson rewrite strip m.onnx o.onnx -i
into-folder: mkdir many && onnxjson rewrite prefix c.onnx o.onnx x/ -o many
no-edit: onnxjson rewrite set-atribute m.onnx op:Conv a 1 -i
no-output: onnxjson rewrite prune c.onnx
to-text: onnxjson rewrite strip c.onnx -o 53.onnx.json
all-51-diff: onnxjson diff c.onnx 51.onnx --format patch
""",
    "scripts": """
script: printf '%s' '{"format": "onnxjson-rewrite/1", "edits": [{"edit": "strip"}, {"edit": "name-nodes"}, {"edit":
    "prune"}]}' > s.json
apply: onnxjson apply s.json m.onnx -o s.onnx
apply-dry: onnxjson apply s.json m.onnx o.onnx --dry-run
python: printf 'from onnxjson import edits\\ndef rewrite(model):\\n    return [edits.Strip(), edits.NameNodes()]\\n'
    > s.py
apply-python: onnxjson apply s.py m.onnx -o p.onnx
wrong-edit: printf '%s' '{"format": "onnxjson-rewrite/1", "edits": [{"edit": "strpi"}]}' > w.json;
    onnxjson apply w.json m.onnx -o x.onnx
wrong-key: printf '%s' '{"format": "onnxjson-rewrite/1", "edits": [{"edit": "strip", "whta": 1}]}' > w2.json;
    onnxjson apply w2.json m.onnx -o x.onnx
half: printf '%s' '{"format": "onnxjson-rewrite/1", "edits":
    [{"edit": "strip"}, {"edit": "set-doc", "text": "a", "node": "none"}]}' > h.json;
    onnxjson apply h.json m.onnx -o x.onnx
wrong-python: echo 'rewrite = 1' > w.py; onnxjson apply w.py m.onnx -o x.onnx
editor: cp m.onnx e.onnx; VISUAL= EDITOR='sed -i s/"producer_name":/"producer_name":/' onnxjson edit e.onnx -y
editor-change: EDITOR="sed -i '0,/\\"op_type\\": \\"$OP\\"/s//\\"doc_string\\": \\"new\\", \\"op_type\\": \\"$OP\\"/'"
    onnxjson edit e.onnx -y
editor-node: EDITOR='sed -i s/"name":\\ "/"name":\\ "new\\ /' onnxjson edit e.onnx "$NODE" -y
editor-wrong: EDITOR='sed -i s/"op_type"/"op_typ"/' onnxjson edit e.onnx -y
editor-fails: EDITOR=false onnxjson edit e.onnx -y
""",
    "combine": """
script: printf '%s' '{"format": "onnxjson-rewrite/1", "edits":
    [{"edit": "combine", "with": "o.onnx", "join": [], "prefix": "o/"}]}' > c.json
apply: onnxjson apply c.json m.onnx -o c.onnx
check: onnxjson check --json c.onnx
diff: onnxjson diff m.onnx c.onnx --format json
extract: onnxjson rewrite extract c.onnx --outputs "$OUTPUT" -o m2.onnx
extract-diff: onnxjson diff m.onnx m2.onnx
""",
    "numbers": f"""
{CHANGED}
run: onnxjson run m.onnx
run-json: onnxjson run m.onnx --json --seed 3
run-output: onnxjson run m.onnx -o out.npz
run-folder: onnxjson run m.onnx -o data
run-data: onnxjson run m.onnx --input data
run-data-other: onnxjson run o.onnx --input data
run-fill: onnxjson run m.onnx --fill 0 --level off
run-reference: onnxjson run m.onnx --engine reference --json
run-dim: onnxjson run m.onnx --dim "$DIM=3"
run-shape: onnxjson run m.onnx --shape "$INPUT=7,7,7"
run-no-such: onnxjson run m.onnx --fill "${{INPUT}}x=1"
verify-same: onnxjson verify m.onnx a.onnx
verify-differs: onnxjson verify m.onnx b.onnx
verify-json: onnxjson verify m.onnx b.onnx --json --seeds 2
verify-locate: onnxjson verify m.onnx b.onnx --locate
verify-other: onnxjson verify m.onnx o.onnx
bench: onnxjson bench m.onnx -n 0 --variant plain=strip
bench-json: onnxjson bench m.onnx -n 0 --variant plain=strip --format json
bench-csv: onnxjson bench m.onnx -n 0 --variant plain=strip --format csv
bench-markdown: onnxjson bench m.onnx -n 0 --variant plain=strip --format markdown --keep kept
bench-wrong: onnxjson bench m.onnx -n 0 --variant plain=stirp
""",
    "passes-own": """
edits: onnxjson optimize m.onnx -p strip -p name-nodes -p prune -o 1.onnx --trace 1.steps
edits-json: onnxjson trace 1.steps --format json
find: onnxjson find m.onnx "$OP(...)" --json
find-why: onnxjson find m.onnx "Tanh($OP(...))" --why
dry: onnxjson optimize m.onnx -p 'constants-to-initializers' --dry-run
recipe: printf '%s' '{"format": "onnxjson-recipe/1", "passes": [{"edit": "prune"}, {"edit": "name-nodes"}]}' > r.json
run-recipe: onnxjson optimize m.onnx --recipe r.json -p strip --skip name-nodes -o 2.onnx
until: onnxjson optimize m.onnx -p strip -p prune -p name-nodes --until strip -o 3.onnx
fails: printf 'def optimize(model):\\n    raise ValueError("no")\\n' > f.py; onnxjson optimize m.onnx -p strip -p f.py
    -o x.onnx
keep-going: onnxjson optimize m.onnx -p f.py -p strip --keep-going -o 4.onnx
verify: onnxjson optimize m.onnx -p
    'set-attribute{node="'"$ATTRIBUTE_NODE"'",attribute="'"$ATTRIBUTE"'",value='"$ATTRIBUTE_VALUE"'}' --verify -o x.onnx
wrong-pass: onnxjson optimize m.onnx -p onnxsmi -o x.onnx
wrong-option: onnxjson optimize m.onnx -p 'onnxsim{flod=1}' -o x.onnx
""",
    "git": f"""
{CHANGED}
init: git init -q -b main r && cd r && onnxjson git install 2>&1 | sed 's|wrote /.*/|wrote |' && cat .gitattributes
commit: cd r && cp ../m.onnx x.onnx && onnxjson convert x.onnx -o y.onnx.json && git add . && git commit -q -m base
inline: cd r && onnxjson git check-inline y.onnx.json --limit 100
sync: cd r && cp y.onnx.json x.onnx.json && onnxjson git check-sync x.onnx && cp ../b.onnx x.onnx &&
    onnxjson git check-sync x.onnx; rm x.onnx.json
diff: cd r && onnxjson convert ../b.onnx -o y.onnx.json && git diff
diff-text: cd r && git diff -U0 --word-diff y.onnx.json
onnxdiff: cd r && git onnxdiff
onnxdiff-json: cd r && git onnxdiff --format json HEAD -- x.onnx
revision: cd r && onnxjson diff HEAD:x.onnx x.onnx --format markdown
ours: cd r && git checkout -q -b ours && git commit -q -a -m ours && git checkout -q main
theirs: cd r && cp ../a.onnx x.onnx && onnxjson convert x.onnx -o y.onnx.json && git commit -q -a -m theirs
gate: cd r && onnxjson gate --base HEAD~1 -o ../gate && cat ../gate/gate.md
range: cd r && onnxjson diff main...ours -- x.onnx
log: cd r && git log -p --format=%s ours -- x.onnx
merge: cd r && git merge ours -m merged
merged: cd r && onnxjson show x.onnx; onnxjson conflicts
conflict: cd r && git reset -q --hard && git checkout -q -b third main~2 && onnxjson rewrite set-doc x.onnx other
    --node "$NODE" -i && git commit -q -a -m third && git merge main -m conflict
conflicts: cd r && onnxjson conflicts
conflicts-json: cd r && onnxjson conflicts --json
mergetool: cd r && git mergetool -y -t onnxjson x.onnx </dev/null
resolve: cd r && onnxjson resolve x.onnx --theirs
doctor: cd r && onnxjson git doctor
uninstall: cd r && onnxjson git uninstall
""",
    "merge": f"""
{CHANGED}
clean: onnxjson merge m.onnx a.onnx b.onnx -o clean.onnx
clean-text: onnxjson merge m.onnx a.onnx b.onnx -o clean.onnx.json
nothing: onnxjson merge m.onnx a.onnx m.onnx -o same.onnx && cmp a.onnx same.onnx
make-c: onnxjson rewrite set-doc m.onnx third --node "$NODE" -o c.onnx && onnxjson rewrite set-metadata c.onnx author
    --value Eve -i
conflict: onnxjson merge m.onnx a.onnx c.onnx -o x.onnx
conflicts: onnxjson conflicts x.onnx
conflicts-json: onnxjson conflicts x.onnx --json
refused: onnxjson show x.onnx
mergetool: onnxjson mergetool x.onnx
resolve-one: cp x.onnx y.onnx; onnxjson resolve y.onnx --ours --id 1
resolve-ours: cp x.onnx y.onnx; onnxjson resolve y.onnx --ours && cmp y.onnx a.onnx
resolve-theirs: cp x.onnx y.onnx; onnxjson resolve y.onnx --theirs && cmp y.onnx c.onnx
resolve-base: cp x.onnx y.onnx; onnxjson resolve y.onnx --base
undo: onnxjson undo-save y.onnx
other: onnxjson merge m.onnx b.onnx o.onnx -o o.merged.onnx
other-conflicts: onnxjson conflicts o.merged.onnx --json
other-resolve: onnxjson resolve o.merged.onnx --theirs
""",
}
"""Sessions of one model."""

"""Mistakes, and what their messages say to do: each remedy is carried out as it is written, and then the command works.

A row has the mistake, a regular expression for the remedy in the message, and what a user does who follows it: ``\\1``
is what the message says at this place.
"""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import numpy
import pytest

import onnxjson
from onnxjson.example import write_example
from tests.cli.running import Result, run

POOL = '    {"op_type": "MaxPool"'
FLATTEN = '    {"op_type": "Flatten"'
GEMM = '    {"op_type": "Gemm"'
SOFTMAX = '    {"op_type": "Softmax"'

SCRIPT = '{"format": "onnxjson-rewrite/1", "edits": [%s]}'
EDIT = '{"edit": "set-attribute", "node": "op:LeakyRelu", "attribute": "alpha", "value": 0.2}'
RELU = "from onnxjson import edits\n\nRELU = {'node': 'op:LeakyRelu', 'op_type': 'Relu'}\n\n"
POLICY = 'format = "onnxjson-policy/1"\n'


class Text(NamedTuple):
    """A mistake in digits.onnx.json: what is written instead of what, and the same for the correction."""

    right: str
    wrong: str
    remedy: str
    mistaken: str
    corrected: str
    check: str = "check"


TEXTS = {
    "a bracket too many": Text(
        '"alpha": 0.01\n     }}', '"alpha": 0.01\n     }}}', "the text has more `}` than `{`.*; delete one", "}}}", "}}"
    ),
    "a bracket too few": Text(
        '"alpha": 0.01\n     }},',
        '"alpha": 0.01\n     },',
        r"not closed before the next `{` .*; add `(})` before the comma there",
        '"alpha": 0.01\n     },',
        '"alpha": 0.01\n     }\\1,',
    ),
    "a comma too few": Text(
        '["features"],\n     "name"', '["features"]\n     "name"', "add `(,)`", '["features"]\n', '["features"]\\1\n'
    ),
    "other quotes": Text('"name": "/conv"', "'name': \"/conv\"", 'write "straight" quotes', "'name'", '"name"'),
    "no quotes": Text('"alpha": 0.01', '"alpha": NAN', "write (.*) in quotes", "NAN", "\\1"),
    "a word": Text('"/flatten"', "/flatten", "write (.*)", '"name": /flatten', '"name": \\1'),
    "a remark": Text('"alpha": 0.01', '"alpha": 0.01 # was 0.02', "comments are (//) to the end of a line", "#", "\\1"),
    "another key": Text('"op_type": "Gemm"', '"optype": "Gemm"', "did you mean (.*)\\?", '"optype"', "\\1"),
    "another operator": Text('"LeakyRelu"', '"LeakyReLU"', 'did you mean ("LeakyRelu")', '"LeakyReLU"', "\\1"),
    "an attribute misspelled": Text('"alpha"', '"alpa"', 'did you mean ("alpha")', '"alpa"', "\\1"),
    "a text for a list": Text(
        '["features"],\n     "name"',
        '"features",\n     "name"',
        r"write (\[.*\])",
        '"input": "features"',
        '"input": \\1',
    ),
    "a number for a list": Text(
        '"strides": [2, 2]', '"strides": 2', r"write (\[2\])", '"strides": 2', '"strides": [2, 2]'
    ),
    "a list in parentheses": Text(
        '"strides": [2, 2]', '"strides": (2, 2)', r"write a list in `(\[)` and `(\])`", "(2, 2)", "\\g<1>2, 2\\2"
    ),
    "too few paddings": Text("[1, 1, 1, 1]", "[1, 1]", "write 4 numbers: the padding before", "[1, 1]", "[1, 1, 1, 1]"),
    "an unknown dtype": Text("float32[N,1,8,8]", "fp32[N,1,8,8]", r"did you mean (\w+)\?", "fp32", "\\1"),
    "an output twice (N21)": Text(
        '["active"],\n     "input": ["features"]',
        '["features"],\n     "input": ["features"]',
        'rename it to ("active"), which is used and nothing produces',
        '["features"],\n     "input": ["features"]',
        '[\\1],\n     "input": ["features"]',
        "check --deep",
    ),
    "an output renamed (N21)": Text(
        '"output": ["probabilities"]',
        '"output": ["460"]',
        'write ("460"), which no node uses',
        '"name": "probabilities"',
        '"name": \\1',
        "check --deep",
    ),
    "a node in the wrong place (N21)": Text("", "", "sort all nodes with (fmt --sort)", "", ""),
    "the version of another year (N22)": Text(
        '{"": 17}', '{"": 9}', "`stamp-opset ([0-9]+)` corrects a wrong import", '{"": 9}', '{"": \\1}'
    ),
}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write_example(Path("digits.onnx"))
    write_example(Path("exported.onnx"), unfused=True)
    numpy.save("image.npy", numpy.zeros((1, 1, 8, 8), numpy.float32))
    numpy.save("bias.npy", numpy.zeros(10, numpy.float32))
    model = onnxjson.load("digits.onnx")
    onnxjson.save(model.node("op:MaxPool").set_attribute("ceil_mode", 0), "digits.onnx.json")


def _run(line: str) -> Result:
    return run(*shlex.split(line)[1:]) if line.startswith("onnxjson ") else run(*shlex.split(line))


def _remedy(result: Result, pattern: str) -> re.Match[str]:
    """The place of the message, a single one, that states the remedy."""
    message = result.stdout + result.stderr
    found = re.search(pattern, message)
    assert found is not None, message
    return found


@pytest.mark.parametrize("mistake", TEXTS.values(), ids=TEXTS)
def test_remedy_of_a_mistake_in_a_text(mistake: Text) -> None:
    path = Path("digits.onnx.json")
    text = path.read_text()
    assert text.count(mistake.right) == 1 or not mistake.right
    wrong = text.replace(mistake.right, mistake.wrong) if mistake.right else _exchanged(text)
    path.write_text(wrong)
    result = run(*mistake.check.split(), path)
    assert result.exit_code == 1
    assert "1 error" in result.stderr, result.stdout
    remedy = _remedy(result, mistake.remedy)
    if mistake.mistaken:
        assert wrong.count(mistake.mistaken) == 1
        path.write_text(wrong.replace(mistake.mistaken, remedy.expand(mistake.corrected.replace("\n", "\\n"))))
    else:
        assert run(*remedy[1].split(), path).exit_code == 0
    result = run(*mistake.check.split(), path)
    assert (result.exit_code, result.stdout) == (0, ""), result.stdout


def _exchanged(text: str) -> str:
    """The text with the node MaxPool after the node that uses it."""
    first, second, third = (text.index(node) for node in (POOL, FLATTEN, GEMM))
    return text[:first] + text[second:third] + text[first:second] + text[third:]


class Mistake(NamedTuple):
    """A mistaken command, the remedy in its message, and the command of a user who follows it."""

    mistaken: str
    remedy: str
    corrected: str = "\\1"


SET = "onnxjson rewrite set-attribute digits.onnx op:LeakyRelu alpha"

EDITS = {
    "no output": Mistake(f"{SET} 0.2", "where the result goes: (-o) OUT", f"{SET} 0.2 \\1 new.onnx"),
    "an edit misspelled": Mistake(
        "onnxjson rewrite set-atribute digits.onnx op:LeakyRelu alpha 0.2 -o new.onnx",
        'did you mean "([a-z-]+)"',
        "onnxjson rewrite \\1 digits.onnx op:LeakyRelu alpha 0.2 -o new.onnx",
    ),
    "the model not first": Mistake(
        "onnxjson rewrite set-attribute op:LeakyRelu alpha 0.2 digits.onnx -o new.onnx",
        "the model comes first: (onnxjson .*); see",
        "\\1 -o new.onnx",
    ),
    "an operator for a name": Mistake(
        "onnxjson rewrite set-attribute digits.onnx LeakyRelu alpha 0.2 -o new.onnx",
        "`(op:LeakyRelu)` finds the 1 node",
        "onnxjson rewrite set-attribute digits.onnx \\1 alpha 0.2 -o new.onnx",
    ),
    "a list without brackets": Mistake(
        "onnxjson rewrite set-attribute digits.onnx op:Conv pads 1,1,1,1 -o new.onnx",
        r"write (\[.*\])",
        "onnxjson rewrite set-attribute digits.onnx op:Conv pads '\\1' -o new.onnx",
    ),
    "a list as words": Mistake(
        "onnxjson rewrite set-attribute digits.onnx op:Conv pads 1 1 1 1 -o new.onnx",
        "a list is one word: '(.*)'",
        "onnxjson rewrite set-attribute digits.onnx op:Conv pads '\\1' -o new.onnx",
    ),
    "= between name and size": Mistake(
        "onnxjson rewrite set-dim digits.onnx N=4 -o new.onnx",
        "`set-dim (N 4)`",
        "onnxjson rewrite set-dim digits.onnx \\1 -o new.onnx",
    ),
    "= in a size": Mistake(
        "onnxjson rewrite set-batch-size digits.onnx batch=4 -o new.onnx",
        "write ([0-9]+)",
        "onnxjson rewrite set-batch-size digits.onnx \\1 -o new.onnx",
    ),
    "a dtype of PyTorch": Mistake(
        "onnxjson rewrite add-input digits.onnx scale 'half[1]' -o new.onnx",
        r"did you mean (\w+)\?",
        "onnxjson rewrite add-input digits.onnx scale '\\1[1]' -o new.onnx",
    ),
    "one number for ten": Mistake(
        "onnxjson rewrite set-tensor digits.onnx fc.bias 0 -o new.onnx",
        "give 10 values",
        "onnxjson rewrite set-tensor digits.onnx fc.bias [0,0,0,0,0,0,0,0,0,0] -o new.onnx",
    ),
    "a name that is taken": Mistake(
        "onnxjson rewrite rename digits.onnx features active -o new.onnx",
        "choose names that are not used",
        "onnxjson rewrite rename digits.onnx features features2 -o new.onnx",
    ),
    "no new name": Mistake(
        "onnxjson rewrite rename digits.onnx features -o new.onnx",
        "`rename OLD NEW`",
        "onnxjson rewrite rename digits.onnx features feats -o new.onnx",
    ),
    "several models to one file": Mistake(
        "onnxjson rewrite set-batch-size digits.onnx exported.onnx 4 -o new.onnx",
        "(-i) changes each in place",
        "onnxjson rewrite set-batch-size digits.onnx exported.onnx 4 \\1",
    ),
    "an output that exists": Mistake(
        "onnxjson convert digits.onnx", "to replace it: (-o .*)", "onnxjson convert digits.onnx \\1"
    ),
    "an output as a second word": Mistake(
        "onnxjson convert digits.onnx new.onnx.json",
        "name the file to write with (-o)",
        "onnxjson convert digits.onnx \\1 new.onnx.json",
    ),
    "a shape without a name (N11)": Mistake(
        "onnxjson rewrite set-shape digits.onnx image=4,1,8,8 -o new.onnx",
        "`set-shape image 1,3,8,8`",
        "onnxjson rewrite set-shape digits.onnx image 4,1,8,8 -o new.onnx",
    ),
    "a file that is not there (N12)": Mistake(
        "onnxjson run digits.onnx --input image=x.npy",
        "x.npy does not exist",
        "onnxjson run digits.onnx --input image=1",
    ),
    "an option in the plural": Mistake(
        "onnxjson run digits.onnx --dims N=2", "write (--dim)", "onnxjson run digits.onnx \\1 N=2"
    ),
    "a number of another program": Mistake("onnxjson show digits.onnx --params", "`(onnxjson show .* --cost)`", "\\1"),
    "two models to merge": Mistake(
        "onnxjson merge digits.onnx exported.onnx",
        "write (onnxjson merge) BASE OURS THEIRS (-o) OUT",
        "\\1 digits.onnx digits.onnx digits.onnx \\2 new.onnx",
    ),
    "an array without --input": Mistake(
        "onnxjson run digits.onnx image.npy", "write (--input image.npy)", "onnxjson run digits.onnx \\1"
    ),
    "another tolerance": Mistake(
        "onnxjson verify digits.onnx digits.onnx --atol 1e-3",
        "write (--tolerance .*); see",
        "onnxjson verify digits.onnx digits.onnx \\1",
    ),
    "another name of a command, with its files": Mistake(
        "onnxjson simplify digits.onnx small.onnx", "write `(onnxjson optimize .*)`; see"
    ),
    "an option of other converters": Mistake(
        "onnxjson convert digits.onnx --fp16 -o new.onnx",
        "`(onnxjson optimize .*)`; see",
    ),
    "two tolerances for a comparison": Mistake(
        "onnxjson compare digits.onnx exported.onnx --rtol 1e-3 --atol 1e-3", "`(onnxjson verify .*)`; see"
    ),
    "a command and an option of Polygraphy": Mistake(
        "onnxjson inspect model digits.onnx --show layers", "`(onnxjson show digits.onnx --outline)`"
    ),
    "an extraction of Polygraphy": Mistake(
        "onnxjson surgeon extract digits.onnx --inputs image:auto:auto -o new.onnx",
        "`(onnxjson rewrite extract .*)`; see",
        "\\1 --outputs scores",
    ),
    "a shape after a name": Mistake(
        "onnxjson rewrite extract digits.onnx --inputs image:auto:auto --outputs scores -o new.onnx",
        'did you mean "(image)"',
        "onnxjson rewrite extract digits.onnx --inputs \\1 --outputs scores -o new.onnx",
    ),
    "a beginning of a part": Mistake(
        "onnxjson rewrite extract digits.onnx --from image --outputs scores -o new.onnx",
        "write (--inputs image)",
        "onnxjson rewrite extract digits.onnx \\1 --outputs scores -o new.onnx",
    ),
    "an end of a part": Mistake(
        "onnxjson rewrite extract digits.onnx --inputs image --to scores -o new.onnx",
        "write (--outputs scores)",
        "onnxjson rewrite extract digits.onnx --inputs image \\1 -o new.onnx",
    ),
    "a dtype for a format": Mistake(
        "onnxjson convert digits.onnx --to fp16 -o new.onnx", "`(onnxjson optimize .*)`; see"
    ),
    "a pass for an edit": Mistake(
        "onnxjson rewrite cast digits.onnx float16 -o new.onnx", "`(onnxjson optimize .*)`; see"
    ),
    "an option of a pass": Mistake(
        "onnxjson optimize digits.onnx -p float16 --keep-io-types -o new.onnx",
        "write (-p '.*')",
        "onnxjson optimize digits.onnx \\1 -o new.onnx",
    ),
    "an edit as a pass": Mistake(
        "onnxjson optimize digits.onnx -p set-attribute -o new.onnx",
        r"write '(set-attribute\{)node=\.\.\.,attribute=\.\.\.,value=\.\.\.(\})'",
        "onnxjson optimize digits.onnx -p '\\1node=op:LeakyRelu,attribute=alpha,value=0.2\\2' -o new.onnx",
    ),
    "a node after an edit as a pass": Mistake(
        "onnxjson optimize digits.onnx -p set-attribute:op:LeakyRelu -o new.onnx",
        r"write '(set-attribute\{node=op:LeakyRelu,)attribute=\.\.\.,value=\.\.\.(\})'",
        "onnxjson optimize digits.onnx -p '\\1attribute=alpha,value=0.2\\2' -o new.onnx",
    ),
    "shapes of other programs": Mistake(
        "onnxjson run digits.onnx --input-shapes image:[2,1,8,8]",
        r"write (--shape .*); see",
        "onnxjson run digits.onnx \\1",
    ),
    "a shape for an optimizer": Mistake(
        "onnxjson optimize digits.onnx -p prune --overwrite-input-shape image:2,1,8,8 -o new.onnx",
        "`(onnxjson rewrite set-shape .*)`; see",
    ),
    "the search for a difference": Mistake(
        "onnxjson verify exported.onnx digits.onnx --bisect",
        "write (--locate)",
        "onnxjson verify exported.onnx digits.onnx \\1",
    ),
    "a colon before a file": Mistake(
        "onnxjson run digits.onnx --input image:image.npy",
        "write (--input image=image.npy)",
        "onnxjson run digits.onnx \\1",
    ),
    "a size without a name": Mistake(
        "onnxjson run digits.onnx --dim 4", "write (N=4)", "onnxjson run digits.onnx --dim \\1"
    ),
    "a shape without the name of an input": Mistake(
        "onnxjson run digits.onnx --shape 2,1,8,8", "write (image=2,1,8,8)", "onnxjson run digits.onnx --shape \\1"
    ),
    "a tolerance without a dtype": Mistake(
        "onnxjson verify digits.onnx exported.onnx --tolerance 1e-3",
        "write (all=1e-3)",
        "onnxjson verify digits.onnx exported.onnx --tolerance \\1",
    ),
    "a tolerance twice": Mistake(
        "onnxjson verify digits.onnx exported.onnx --tolerance all=1e-3 --tolerance all=0,1e-3",
        "write (all=)REL,ABS",
        "onnxjson verify digits.onnx exported.onnx --tolerance \\g<1>1e-3,1e-3",
    ),
    "a batch size of other programs": Mistake(
        "onnxjson bench digits.onnx exported.onnx --batch-size 2",
        "write (--dim N=2)",
        "onnxjson bench digits.onnx exported.onnx \\1",
    ),
    "an option of another edit": Mistake(
        "onnxjson rewrite set-batch-size digits.onnx --dim 4 -o new.onnx",
        "write (--size 4)",
        "onnxjson rewrite set-batch-size digits.onnx \\1 -o new.onnx",
    ),
    "an edit as a command": Mistake(
        "onnxjson rm-node digits.onnx /activation -o new.onnx", "`(onnxjson rewrite delete-node .*)`; see"
    ),
    "an edit as a command, misspelled": Mistake(
        "onnxjson set-batchsize digits.onnx 4 -o new.onnx", "`(onnxjson rewrite set-batch-size .*)`; see"
    ),
    "a node as an option": Mistake("onnxjson show digits.onnx --node /conv", "`(onnxjson show digits.onnx /conv)`"),
    "a text as a format": Mistake(
        "onnxjson convert digits.onnx --to text -o new.onnx.json",
        "write (--to json)",
        "onnxjson convert digits.onnx \\1 -o new.onnx.json",
    ),
    "the other model as an option": Mistake(
        "onnxjson verify digits.onnx --against exported.onnx", "`(onnxjson verify .*)`; see"
    ),
    "weights in another file": Mistake(
        "onnxjson convert digits.onnx --external-data -o new.onnx",
        "write (--externalize)",
        "onnxjson convert digits.onnx \\1 -o new.onnx",
    ),
    "a text without weights": Mistake(
        "onnxjson convert digits.onnx --no-weights -o new.onnx.json",
        "write (--weights digest)",
        "onnxjson convert digits.onnx \\1 -o new.onnx.json",
    ),
    "a search for NaN": Mistake(
        "onnxjson check digits.onnx --nan", "write (--select ONJ[0-9]+)", "onnxjson check digits.onnx \\1"
    ),
    "an output of a part as a file": Mistake(
        "onnxjson extract digits.onnx --output scores -o new.onnx", "`(onnxjson rewrite extract .*)`; see"
    ),
    "the same in an edit": Mistake(
        "onnxjson rewrite extract digits.onnx --output scores -o new.onnx",
        "write (--outputs) for the values",
        "onnxjson rewrite extract digits.onnx \\1 scores -o new.onnx",
    ),
    "a dynamic shape, as an inference": Mistake(
        "onnxjson infer digits.onnx -o new.onnx", "or `(onnxjson rewrite infer-shapes .*)`; see"
    ),
    "an input of a new node as a word": Mistake(
        "onnxjson rewrite add-node digits.onnx Relu features -o new.onnx",
        "for example: onnxjson rewrite add-node m.onnx Concat (--input) a --input b (--output) ab",
        "onnxjson rewrite add-node digits.onnx Relu \\1 features \\2 positive -o new.onnx",
    ),
    "a parameter of an edit in a message": Mistake(
        "onnxjson rewrite set-dim digits.onnx --axis 0 4 -o new.onnx",
        "give `(--tensor)`, `(--axis)` and `(--size)`",
        "onnxjson rewrite set-dim digits.onnx \\1 image \\2 0 \\3 4 --anyway -o new.onnx",
    ),
    "a pattern of names": Mistake(
        "onnxjson rewrite rename digits.onnx 'fc.*' 'head.*' -o new.onnx",
        "`rename (tensor '.*' '.*')`",
        "onnxjson rewrite rename digits.onnx \\1 -o new.onnx",
    ),
    "a rule of onnxoptimizer with hyphens": Mistake(
        "onnxjson optimize digits.onnx -p fuse-bn-into-conv -o new.onnx",
        'did you mean "(onnxoptimizer:fuse_bn_into_conv)"',
        "onnxjson optimize digits.onnx -p \\1 -o new.onnx",
    ),
    "an unknown command (N13)": Mistake("onnxjson info digits.onnx", "`(onnxjson show digits.onnx)`"),
}

FIND = "onnxjson find exported.onnx"
REPLACE = "onnxjson rewrite replace-pattern exported.onnx 'Add(MatMul($x, $w), $b)'"

PATTERNS = {
    "no closing bracket": Mistake(
        f"{FIND} 'Add(MatMul($x, $w), $b'",
        r'expected "," or "(\))", found the end',
        f"{FIND} 'Add(MatMul($x, $w), $b\\1'",
    ),
    "small letters": Mistake(f"{FIND} 'softmax($x)'", 'did you mean "(Softmax)"', f"{FIND} '\\1($x)'"),
    "no $": Mistake(f"{FIND} 'Softmax(x)'", r"write (\$x) for any value", f"{FIND} 'Softmax(\\1)'"),
    "double quotes": Mistake(
        f"{FIND} 'Add(MatMul(, ), )'", "in a shell, single quotes keep \\$names", f"{FIND} 'Add(MatMul($x, $w), $b)'"
    ),
    "an attribute among the inputs": Mistake(
        f"{FIND} 'LeakyRelu($x, alpha=0.01)'",
        "attributes are written before the inputs: Softmax<axis=1>\\(\\$x\\)",
        f"{FIND} 'LeakyRelu<alpha=0.01>($x)'",
    ),
    "an attribute in brackets": Mistake(
        f"{FIND} 'LeakyRelu[alpha=0.01]($x)'",
        "attributes are written before the inputs: Softmax<axis=1>\\(\\$x\\)",
        f"{FIND} 'LeakyRelu<alpha=0.01>($x)'",
    ),
    "an attribute alone": Mistake(f"{FIND} 'LeakyRelu(alpha=0.01)'", "attributes are written (.*)", f"{FIND} '\\1'"),
    "a sign for an operator": Mistake(
        f"{FIND} 'MatMul($x, $w) + $b'", r"write (Add)\(\$a, \$b\)", f"{FIND} '\\1(MatMul($x, $w), $b)'"
    ),
    "alternatives without brackets": Mistake(
        f"{FIND} 'Conv|Gemm'", r"alternatives are in parentheses: (\(Conv\|Gemm\))", f"{FIND} '\\1'"
    ),
    "too few inputs": Mistake(f"{FIND} 'Conv($x)'", r'"(\.\.\.)" matches further inputs', f"{FIND} 'Conv($x, \\1)'"),
    "a selector for a pattern": Mistake(f"{FIND} op:Softmax", "write the pattern (Softmax)", f"{FIND} \\1"),
    "a replacement without $": Mistake(
        f"{REPLACE} 'Gemm(x, $w, $b)' -o new.onnx", r"write (\$x)", f"{REPLACE} 'Gemm(\\1, $w, $b)' -o new.onnx"
    ),
    "a replacement without inputs": Mistake(
        "onnxjson rewrite replace-pattern exported.onnx 'Softmax($x)' Identity -o new.onnx",
        r"write its inputs, such as (Identity\(\$x\))",
        "onnxjson rewrite replace-pattern exported.onnx 'Softmax($x)' '\\1' -o new.onnx",
    ),
    "= for :": Mistake(
        "onnxjson show exported.onnx op=Softmax", "write (op:Softmax)", "onnxjson show exported.onnx \\1"
    ),
    "one of several operators": Mistake(
        "onnxjson show exported.onnx op:Conv,MatMul", "write (match:'.*')", 'onnxjson show exported.onnx "\\1"'
    ),
    "a position": Mistake(
        "onnxjson show exported.onnx node:3",
        "a node by its position is (@/graph/node/3)",
        "onnxjson show exported.onnx \\1",
    ),
    "operators with commas": Mistake(
        f"{FIND} Conv,Softmax", r"alternatives are in parentheses: \(Conv\|Gemm\)", f"{FIND} '(Conv|Softmax)'"
    ),
    "no match": Mistake(
        "onnxjson rewrite replace-pattern exported.onnx 'Relu($x)' '$x' -o new.onnx",
        "`(onnxjson find .*)` shows what nearly does",
        f"{FIND} 'LeakyRelu($x)' --why",
    ),
}


class File(NamedTuple):
    """A file with a mistake, the command that reads it, and the corrected command or content."""

    name: str
    wrong: str
    command: str
    remedy: str
    corrected: str = ""
    """The content after the correction; empty if the command is corrected."""
    other: str = ""
    """The corrected command."""


CHECK = "onnxjson check digits.onnx --policy policy.toml"
APPLY = "onnxjson apply script.json digits.onnx -o new.onnx"
PYTHON = "onnxjson apply script.py digits.onnx -o new.onnx"

FILES = {
    "a policy without its format": File(
        "policy.toml", "[rules]\n", CHECK, "it begins with (format = .*)", "\\1\n[rules]\nselect = []\n"
    ),
    "a table misspelled": File(
        "policy.toml",
        POLICY + "[rule]\nselect = []\n",
        CHECK,
        'did you mean "(rules)"',
        POLICY + "[\\1]\nselect = []\n",
    ),
    "a rule misspelled": File(
        "policy.toml",
        POLICY + '[rules]\nselect = ["secirity"]\n',
        CHECK,
        'did you mean "(security)"',
        POLICY + '[rules]\nselect = ["\\1"]\n',
    ),
    "a text for a list of rules": File(
        "policy.toml",
        POLICY + '[rules]\nselect = "security"\n',
        CHECK,
        "write (select = .*)",
        POLICY + "[rules]\n\\1\n",
    ),
    "a budget without a relation": File(
        "policy.toml",
        POLICY + '[rules]\nselect = []\n[budgets]\nnodes = "=< 9"\n',
        CHECK,
        "write a limit such as (<=) 400",
        POLICY + '[rules]\nselect = []\n[budgets]\nnodes = "\\1 9"\n',
    ),
    "a budget misspelled": File(
        "policy.toml",
        POLICY + '[rules]\nselect = []\n[budgets]\nnode = "<= 9"\n',
        CHECK,
        'did you mean "(nodes)"',
        POLICY + '[rules]\nselect = []\n[budgets]\n\\1 = "<= 9"\n',
    ),
    "a budget without a base": File(
        "policy.toml",
        POLICY + '[rules]\nselect = []\n[budgets]\nnodes = "<= base"\n',
        f"{CHECK} --strict",
        "there is no base; name one with (--base)",
        other=f"{CHECK} --strict \\1 digits.onnx",
    ),
    "a size that is not known": File(
        "policy.toml",
        POLICY + '[rules]\nselect = []\n[budgets]\nmacs = "<= 1M"\n',
        f"{CHECK} --strict",
        r"(\[dims\]) of the policy sets sizes, such as (N = 1)",
        POLICY + '[rules]\nselect = []\n[budgets]\nmacs = "<= 1M"\n\\1\n\\2\n',
    ),
    "a size in quotes": File(
        "policy.toml",
        POLICY + '[rules]\nselect = []\n[dims]\nN = "1"\n',
        CHECK,
        r"write numbers without quotes, such as (N = 1), in \[dims\]",
        POLICY + "[rules]\nselect = []\n[dims]\n\\1\n",
    ),
    "no reason": File(
        "policy.toml",
        POLICY + '[rules]\nselect = []\n[[ignored]]\ncode = "ONJ101"\n',
        CHECK,
        "add (reason = )",
        POLICY + '[rules]\nselect = []\n[[ignored]]\ncode = "ONJ101"\n\\1"made so"\n',
    ),
    "edits without a script": File(
        "script.json",
        f"[{EDIT}]",
        APPLY,
        r'write (\{"format": "onnxjson-rewrite/1", "edits": \[)\.\.\.(\]\}) around them',
        f"\\1{EDIT}\\2",
    ),
    "a script without its format": File(
        "script.json", f'{{"edits": [{EDIT}]}}', APPLY, "add the line (.*,)", f'{{\\1 "edits": [{EDIT}]}}'
    ),
    "an edit in the words of Python": File(
        "script.json",
        SCRIPT % EDIT.replace("set-attribute", "set_attribute"),
        APPLY,
        'did you mean "(set-attribute)"',
        SCRIPT % EDIT.replace("set-attribute", "\\1"),
    ),
    "a parameter cut short": File(
        "script.json",
        SCRIPT % EDIT.replace('"attribute"', '"attr"'),
        APPLY,
        'did you mean ("attribute")',
        SCRIPT % EDIT.replace('"attribute"', "\\1"),
    ),
    "a parameter in the plural": File(
        "script.json",
        SCRIPT % EDIT.replace('"node"', '"nodes"'),
        APPLY,
        'did you mean ("node")',
        SCRIPT % EDIT.replace('"node"', "\\1"),
    ),
    "a number in quotes": File(
        "script.json",
        SCRIPT % EDIT.replace("0.2", '"0.2"'),
        APPLY,
        r"write (0\.2)",
        SCRIPT % EDIT.replace("0.2", "\\1"),
    ),
    "a shape as a text": File(
        "script.json",
        SCRIPT % '{"edit": "set-shape", "tensor": "image", "shape": "4,1,8,8"}',
        APPLY,
        r"write (\[.*\])",
        SCRIPT % '{"edit": "set-shape", "tensor": "image", "shape": \\1}',
    ),
    "a script for an edit": File(
        "script.json",
        SCRIPT % EDIT,
        "onnxjson rewrite script.json digits.onnx -o new.onnx",
        "`onnxjson apply` applies scripts: (.*); see",
        other="\\1",
    ),
    "a script for a model": File(
        "script.json",
        SCRIPT % EDIT,
        "onnxjson show script.json",
        "`(onnxjson apply) FILE MODEL (-o) OUT` applies it",
        other="\\1 script.json digits.onnx \\2 new.onnx",
    ),
    "the model before the script": File(
        "script.json",
        SCRIPT % EDIT,
        "onnxjson apply digits.onnx script.json -o new.onnx",
        "the order is (onnxjson apply) CHANGE MODEL",
        other="\\1 script.json digits.onnx -o new.onnx",
    ),
    "a function of another name": File(
        "script.py",
        "def main(model):\n    return model\n",
        PYTHON,
        r"defines neither `(def rewrite\(model\))`",
        "\\1:\n    return model\n",
    ),
    "a class misspelled": File(
        "script.py",
        RELU + "def rewrite(model):\n    return edits.ReplaceNod(**RELU)\n",
        PYTHON,
        'did you mean "(ReplaceNode)"',
        RELU + "def rewrite(model):\n    return edits.\\1(**RELU)\n",
    ),
    "a model that is changed": File(
        "script.py",
        "def rewrite(model):\n    model.graph.node[1].op_type = 'Relu'\n    return model\n",
        PYTHON,
        r"return edits, such as (edits\.ReplaceNode)\(node=\.\.\., op_type=\.\.\.\)",
        "from onnxjson import edits\n\ndef rewrite(model):\n    return \\1(node='op:LeakyRelu', op_type='Relu')\n",
    ),
    "a pass misspelled": File(
        "script.json",
        SCRIPT % EDIT,
        "onnxjson optimize digits.onnx -p prun -o new.onnx",
        'did you mean "(prune)"',
        other="onnxjson optimize digits.onnx -p \\1 -o new.onnx",
    ),
}


@pytest.mark.parametrize("mistake", [*EDITS.values(), *PATTERNS.values()], ids=[*EDITS, *PATTERNS])
def test_remedy_of_a_mistaken_command(mistake: Mistake) -> None:
    result = _run(mistake.mistaken)
    assert result.exit_code != 0
    remedy = _remedy(result, mistake.remedy)
    result = _run(remedy.expand(mistake.corrected))
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("mistake", FILES.values(), ids=FILES)
def test_remedy_of_a_mistake_in_a_policy_or_script(mistake: File) -> None:
    Path(mistake.name).write_text(mistake.wrong)
    result = _run(mistake.command)
    assert result.exit_code != 0
    remedy = _remedy(result, mistake.remedy)
    if mistake.corrected:
        Path(mistake.name).write_text(remedy.expand(mistake.corrected.replace("\\n", "\n")))
    result = _run(remedy.expand(mistake.other) if mistake.other else mistake.command)
    assert result.exit_code == 0, result.stdout + result.stderr


def test_there_are_forty_mistakes() -> None:
    numbers = len(TEXTS), len(EDITS), len(PATTERNS), len(FILES)
    assert min(numbers) >= 10
    assert sum(numbers) >= 45

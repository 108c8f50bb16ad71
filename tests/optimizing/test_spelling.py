"""Passes as words: what is right is read and written alike, what is wrong says what is right."""

from pathlib import Path

import pytest

from onnxjson.editing.catalogue import NAMES as EDITS
from onnxjson.editing.parameters import parameters
from onnxjson.model.errors import ParameterError
from onnxjson.optimizing.passes import PASSES, Pass, parse_step, spell
from onnxjson.optimizing.passes.catalogue import KINDS, NAMES, all_names, is_called
from onnxjson.optimizing.passes.executing import declared, subject_of
from onnxjson.optimizing.passes.simplifiers import Onnxoptimizer, Onnxsim
from onnxjson.optimizing.passes.user import EditPass

READ = {
    "onnxoptimizer": Onnxoptimizer(),
    "onnxoptimizer:nop": Onnxoptimizer(passes=("nop",)),
    "onnxoptimizer:nop{fixed_point}": Onnxoptimizer(passes=("nop",), fixed_point=True),
    " onnxoptimizer { fixed_point = true } ": Onnxoptimizer(fixed_point=True),
    "onnxoptimizer{fixed-point=yes}": Onnxoptimizer(fixed_point=True),
    "onnxoptimizer{passes=[nop,eliminate_identity]}": Onnxoptimizer(passes=("nop", "eliminate_identity")),
    'onnxoptimizer{passes=["nop"]}': Onnxoptimizer(passes=("nop",)),
    "onnxoptimizer{passes=nop,passes=eliminate_identity}": Onnxoptimizer(passes=("nop", "eliminate_identity")),
    "onnxsim{}": Onnxsim(),
    "onnxsim{fold=false,large_tensor=10KB}": Onnxsim(fold=False, large_tensor="10KB"),
    'onnxsim{large_tensor="10KB"}': Onnxsim(large_tensor="10KB"),
    "onnxsim{check=3}": Onnxsim(check=3),
    "onnxsim{input_shapes={x:[1,3],y=[2]}}": Onnxsim(input_shapes={"x": (1, 3), "y": (2,)}),
    'onnxsim{input_shapes={"x:0": [1, 3]}}': Onnxsim(input_shapes={"x:0": (1, 3)}),
    "onnxsim{unused_outputs=[a b,c]}": Onnxsim(unused_outputs=("a b", "c")),
    "prune": EditPass(step={"edit": "prune"}),
    "set-batch-size{size=2,partial=false}": EditPass(step={"edit": "set-batch-size", "size": 2}),
    "prune{what=nodes}": EditPass(step={"edit": "prune", "what": ["nodes"]}),
    "set-attribute{node=op:Conv,attribute=pads,value=[0,0]}": EditPass(
        step={"edit": "set-attribute", "node": "op:Conv", "attribute": "pads", "value": [0, 0]}
    ),
    'set-attribute{node="a,b",attribute=mode,value=linear}': EditPass(
        step={"edit": "set-attribute", "node": "a,b", "attribute": "mode", "value": "linear"}
    ),
}

REFUSED = {
    "": "the name of a pass is missing",
    "rename:old": "rename:old is not a pass; write 'rename{from=old}'",
    "onnxoptimzer": 'no pass "onnxoptimzer"; did you mean "onnxoptimizer"',
    "fuse_bn_into_conv": 'did you mean "onnxoptimizer:fuse_bn_into_conv"',
    "onnxoptimizer:fuse_bn": 'onnxoptimizer has no "fuse_bn"; did you mean "fuse_bn_into_conv"?',
    "onnxoptimizer{passes=[fuse_bn]}": 'onnxoptimizer has no "fuse_bn"',
    "onnxoptimizer:": 'onnxoptimizer has no ""',
    "onnxoptimizer:nop{passes=nop}": "already sets passes",
    "onnxsim:fold": "onnxsim has no parts",
    "onnxsim{fodl=true}": 'no option "fodl"; did you mean "fold"?',
    "onnxsim{fold=maybe}": "expected true or false",
    "onnxsim{fold=true,fold=true}": "fold is given twice",
    "onnxsim{check=-1}": "expected an integer from 0",
    "onnxsim{large_tensor}": "large_tensor needs a value",
    "onnxsim{fold=true": "the brace is not closed",
    "onnxsim{skip=[a}": "a closing ] is missing",
    'onnxsim{skip=["a]}': 'a closing " is missing',
    "onnxslim{skip=[fusion]}": 'did you mean "graph_fusion"',
    "onnxsimfold=true": "quote the braces, so that the shell does not expand them: -p 'onnxsim{fold=true}'",
    "a=1": "quote the braces, so that the shell does not expand them: -p 'NAME{a=1}'",
    "set-attribute{node=op:Conv}": "set-attribute needs attribute",
    "set-attribute{nod=op:Conv}": 'no option "nod"; did you mean "node"',
    "missing.py": "missing.py does not exist",
    "script.json{a=1}": "has no options",
}


@pytest.mark.parametrize("text", READ)
def test_text_is_read_as_the_pass(text: str) -> None:
    assert parse_step(text).subject == READ[text]
    assert not parse_step(text).repeats
    assert parse_step(f"{text.strip()}*").repeats


@pytest.mark.parametrize("text", READ)
def test_what_a_pass_is_spelled_as_is_read_as_that_pass(text: str) -> None:
    subject = parse_step(text).subject
    assert parse_step(spell(subject)).subject == subject
    assert spell(parse_step(spell(subject)).subject) == spell(subject)


@pytest.mark.parametrize("text", READ)
def test_a_pass_travels_to_the_sandboxed_process_as_it_is(text: str) -> None:
    subject = parse_step(text).subject
    if subject.is_sandboxed:
        assert subject_of(declared(subject)) == (subject, False)


@pytest.mark.parametrize("text", REFUSED)
def test_a_mistake_says_what_fits(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_step(text)
    assert REFUSED[text] in str(caught.value)


def test_every_name_is_one_of_one_kind() -> None:
    assert len(all_names()) == len(set(all_names()))
    assert not set(NAMES) & set(EDITS)
    assert len({kind.__struct_config__.tag for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", PASSES, ids=lambda kind: str(kind.__struct_config__.tag))
def test_declaration_has_a_summary_and_describes_every_option(kind: type[Pass]) -> None:
    assert (kind.__doc__ or "").partition("\n")[0].endswith(".")
    for option in parameters(kind):
        assert option.description.endswith("."), option.name
    if kind.packages:
        assert kind.extra == "passes" or set(kind.packages) <= {"onnxruntime"}


def test_a_python_file_takes_any_options(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def optimize(model): return model")
    subject = parse_step(f"{file}{{a=1,b=[x,y],c,d=text}}").subject
    assert getattr(subject, "options") == {"a": 1, "b": ["x", "y"], "c": True, "d": "text"}  # noqa: B009
    assert parse_step(spell(subject)).subject == subject


def test_words_call_a_pass_by_name_by_part_and_as_spelled() -> None:
    step = parse_step("onnxoptimizer:nop{fixed_point}*")
    for word in ("onnxoptimizer", "onnxoptimizer:nop", "onnxoptimizer:nop{fixed_point=true}", str(step)):
        assert is_called(step, word)
    assert not is_called(step, "nop")

"""Every edit is declared once, and is the same thing in Python, in scripts, on a command line and in a form."""

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import Meta

import onnxjson
from onnxjson import edits
from onnxjson.editing import declaration, spelling
from onnxjson.editing.catalogue import EDITS, NAMES, edit_named
from onnxjson.editing.declaration import Edit, in_form_order, name_of
from onnxjson.editing.parameters import Parameter, Role, Shape, parameters
from onnxjson.editing.script import parse_edit, write_edit, write_script
from onnxjson.model.errors import ParameterError
from tests.schemas.declared import rewrite_schema

EXAMPLES = [(name_of(edit), example) for edit in EDITS for example in edit.examples]


class Everything(Edit, frozen=True, kw_only=True, eq=False, tag="everything"):
    """Take a parameter of every kind.

    It is for tests only.
    """

    words = ("text", "value")

    text: str
    value: Any = None
    integer: Annotated[int, Meta(ge=1, description="A number.")] = 3
    number: float = 0.5
    flag: bool = False
    other: bool = True
    choice: Literal["one", "two"] = "one"
    size: int | str = 1
    texts: tuple[str, ...] = ()
    integers: tuple[int, ...] = ()
    sizes: tuple[int | str, ...] = (1, "N")
    values: dict[str, Any] = {}  # noqa: RUF012
    names: dict[str, str] = {}  # noqa: RUF012
    maybe: Annotated[str | None, Role("nodes")] = None


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NAMES, "everything", Everything)


@pytest.mark.parametrize("edit", EDITS, ids=name_of)
def test_edit_says_what_it_does_and_what_every_parameter_is(edit: type[Edit]) -> None:
    summary = declaration.summary(edit)
    assert summary.endswith(".")
    assert len(summary) <= 110
    assert edit.examples
    for parameter in parameters(edit):
        assert parameter.description.strip().endswith("."), parameter.name


@pytest.mark.parametrize("edit", EDITS, ids=name_of)
def test_edit_is_public(edit: type[Edit]) -> None:
    assert getattr(onnxjson.edits, edit.__name__) is edit
    assert edit.group in declaration.GROUPS


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_example_is_one_edit_in_every_spelling(name: str, example: str) -> None:
    edit = parse_edit(example)
    assert name_of(edit) == name
    assert write_edit(edit) == example
    assert spelling.parse_line(spelling.spell_line(edit)) == edit
    document = {"format": "onnxjson-rewrite/1", "edits": [json.loads(example)]}
    Draft202012Validator(rewrite_schema()).validate(document)


def test_schema_refuses_what_the_reader_refuses() -> None:
    validator = Draft202012Validator(rewrite_schema())
    for step in (
        {"edit": "no-such-edit"},
        {"edit": "set-attribute", "node": "a", "attribute": "b"},
        {"edit": "set-attribute", "node": 3, "attribute": "b", "value": 1},
        {"edit": "set-attribute", "node": "a", "attribute": "b", "value": 1, "expect": -1},
        {"edit": "set-attribute", "node": "a", "attribute": "b", "value": 1, "more": 1},
    ):
        assert not validator.is_valid({"format": "onnxjson-rewrite/1", "edits": [step]}), step
        with pytest.raises(onnxjson.DecodeError):
            parse_edit(json.dumps(step))


_CHARACTERS = st.text(st.characters(codec="utf-8"))
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _CHARACTERS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=6,
)
_TEXT = st.text(st.characters(codec="utf-8")) | st.sampled_from(
    ["", "-", "--", "-1", "[", "{}", "a=b", "1", "null", "a,b"]
)
_SIZE = st.integers(-3, 9) | _TEXT


@st.composite
def everything(draw: st.DrawFn) -> Everything:
    """An edit with some parameters."""
    return Everything(
        text=draw(_TEXT),
        value=draw(_JSON),
        integer=draw(st.integers(1, 2**40)),
        number=draw(st.floats(allow_nan=False, allow_infinity=False)),
        flag=draw(st.booleans()),
        other=draw(st.booleans()),
        choice=draw(st.sampled_from(["one", "two"])),
        size=draw(_SIZE),
        texts=tuple(draw(st.lists(_TEXT, max_size=3))),
        integers=tuple(draw(st.lists(st.integers(-9, 2**40), max_size=3))),
        sizes=tuple(draw(st.lists(_SIZE, max_size=3))),
        values=draw(st.dictionaries(_TEXT, _JSON, max_size=3)),
        names=draw(st.dictionaries(_TEXT, _TEXT, max_size=3)),
        maybe=draw(st.none() | _TEXT),
        expect=draw(st.none() | st.integers(0, 9)),
    )


@given(everything())
def test_words_give_the_edit_back(edit: Everything) -> None:
    words = spelling.spell(edit)
    assert words[0] == "everything"
    assert spelling.parse_words(Everything, words[1:]) == edit
    assert spelling.parse_line(spelling.spell_line(edit)) == edit


@given(st.lists(everything(), max_size=3))
def test_script_gives_the_edits_back_and_the_edits_the_same_bytes(found: list[Everything]) -> None:
    text = write_script(found)
    script = edits.Script.loads(text)
    assert list(script.edits) == found
    assert script.dumps() == text


def test_names_that_are_no_utf8_stand_in_scripts_and_words() -> None:
    edit = Everything(text="a\udcffb")
    assert '"text": {"base64": "Yf9i"}' in write_edit(edit)
    assert parse_edit(write_edit(edit)) == edit
    assert spelling.parse_words(Everything, spelling.spell(edit)[1:]) == edit


def test_python_lists_and_numbers_are_taken() -> None:
    import numpy as np

    edit = Everything(text="a", value=np.float32(0.5), sizes=[2, "N"], texts=["a"])  # type: ignore[arg-type]
    assert (edit.sizes, edit.texts, edit.value) == ((2, "N"), ("a",), 0.5)
    assert Everything(text="a", value=np.arange(3)) == Everything(text="a", value=[0, 1, 2])
    assert Everything(text="a", value=float("nan")).value == "NaN"
    assert Everything(text="a", value=onnxjson.Tensor((1,), 7, raw_data=b"\1" + bytes(7))).value == {
        "type": "int64[1]",
        "values": [1],
    }


def test_edits_with_other_bits_are_other_edits() -> None:
    found = [Everything(text="a", value=value) for value in (0, 0.0, -0.0, False, "0", [0], None)]
    for place, edit in enumerate(found):
        assert [other == edit for other in found] == [place == other for other in range(len(found))]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"text": 1}, "everything: text: found the number 1, expected a string"),
        ({"text": "a", "integer": 0}, "everything: integer: found the number 0, expected an integer from 1"),
        ({"text": "a", "integer": True}, "everything: integer: found true, expected an integer from 1"),
        ({"text": "a", "choice": "tow"}, 'found the string "tow", expected one of one, two; did you mean "two"?'),
        ({"text": "a", "integers": [1, "x"]}, 'everything: integers[1]: found the string "x", expected an integer'),
        ({"text": "a", "names": {"k": 1}}, "everything: names.k: found the number 1, expected a string"),
        ({"text": "a", "value": {"k": [object()]}}, "everything: value.k[0]: found a object, expected"),
        ({"text": "a", "texts": "abc"}, 'everything: texts: found the string "abc", expected a list'),
    ],
)
def test_value_that_does_not_fit_is_refused_with_its_place(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Everything(**given)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "everything needs --text; it is written everything TEXT [VALUE]"),
        (["a", "1", "2"], "everything: 2 is one argument too many; a list is one word: '[1,2]'"),
        (["a", "--intger", "1"], "everything: No such option '--intger'. (Did you mean one of: '--integer'"),
        (["a", "--integer"], "everything: Option '--integer' requires an argument."),
        (["a", "--integer", "x"], 'everything: integer: found the string "x", expected an integer from 1'),
        (["a", "--flag=1"], "everything: Option '--flag' does not take a value."),
        (["a", "[1,"], "everything: value: found the text [1,, which begins like JSON but is not, expected JSON"),
        (["a", "--size", "1", "--size", "2"], "everything: size: found 2 values, expected one value"),
        (["a", "--names", "x"], "NAME=VALUE"),
    ],
)
def test_words_that_do_not_fit_are_refused(words: list[str], says: str) -> None:
    with pytest.raises(ParameterError) as caught:
        spelling.parse_words(Everything, words)
    assert says in str(caught.value)


def test_flags_are_read_from_words() -> None:
    flags = {"": True, "true": True, "yes": True, "1": True, "no": False, "false": False, "0": False}
    for text, value in flags.items():
        assert spelling.build(Everything, {"text": ["a"], "flag": [text]}, ()).flag is value
    with pytest.raises(ParameterError, match='everything: flag: found the string "maybe", expected true or false'):
        spelling.build(Everything, {"text": ["a"], "flag": ["maybe"]}, ())


def test_words_may_stand_anywhere_and_double_dash_ends_options() -> None:
    expected = Everything(text="--a", value=-1, flag=True)
    assert spelling.parse_words(Everything, ["--flag", "--", "--a", "-1"]) == expected
    assert spelling.parse_words(Everything, ["--text=--a", "-1", "--flag"]) == expected


def test_unknown_edit_is_answered_with_the_nearest() -> None:
    with pytest.raises(ParameterError, match='there is no edit "set-atribute"; did you mean "set-attribute"'):
        edit_named("set-atribute")
    with pytest.raises(ParameterError, match="an edit begins with its name"):
        spelling.parse_line("  ")
    with pytest.raises(ParameterError, match="no closing quotation"):
        spelling.parse_line("set-attribute 'a")


def test_words_go_to_what_has_to_be_said_first() -> None:
    assert spelling.parse_line("set-dim 4 --tensor x --axis 0") == edits.SetDim(size=4, tensor="x", axis=0)
    assert spelling.parse_line("set-dim N 4") == edits.SetDim(size=4, dim="N")


def test_prompt_completes_names_options_and_choices() -> None:
    assert [each.word for each in spelling.candidates([], "set-at")] == ["set-attribute"]
    assert "--choice" in [each.word for each in spelling.candidates(["everything"], "--ch")]
    assert [each.word for each in spelling.candidates(["everything", "--choice"], "t")] == ["two"]
    found = spelling.expected(["set-attribute", "op:Conv"], "pa")
    assert found is not None
    assert (found.name, found.role) == ("attribute", "attribute")
    assert spelling.expected(["set-attribute", "a", "b", "c"], "") is None


def test_form_lists_every_parameter_and_those_without_names_first() -> None:
    ordered = in_form_order(Everything)
    assert [each.name for each in ordered][:2] == ["text", "value"]
    assert sorted([each.name for each in ordered]) == sorted([each.name for each in parameters(Everything)])
    assert [each.name for each in ordered if each.is_common] == ["expect", "if_any"]
    assert declaration.paragraphs(Everything) == "Take a parameter of every kind.\n\nIt is for tests only."


def test_shape_of_an_annotation_that_no_parameter_can_have_is_refused() -> None:
    class Odd(Edit, frozen=True, kw_only=True, eq=False, tag="odd"):
        """Odd."""

        value: int | bytes

    with pytest.raises(TypeError, match="not a type of a parameter"):
        parameters(Odd)
    assert isinstance(parameters(Everything)[0], Parameter)
    assert Shape("text").fits == "a string"

"""The grammar of types says exactly what its records hold, both ways."""

import random

import pytest

from onnxjson.model.document import (
    Dimension,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorShape,
    TensorType,
    Type,
)
from onnxjson.model.dtypes import DATA_TYPE_NAMES, DATA_TYPES
from onnxjson.model.limits import TYPE_DEPTH
from onnxjson.model.types import (
    TypeSyntaxError,
    format_data_type,
    format_tensor_type,
    format_type,
    parse_data_type,
    parse_tensor_type,
    parse_type,
    shown_type,
)


def tensor(number: int, *dims: Dimension) -> Type:
    return Type(tensor_type=TensorType(elem_type=number, shape=TensorShape(dim=dims)))


FLOAT = Type(tensor_type=TensorType(elem_type=1))

EXACT = {
    "float32": FLOAT,
    "float32[]": tensor(1),
    "float32[N,3,?]": tensor(1, Dimension(dim_param="N"), Dimension(dim_value=3), Dimension()),
    "int64['2*s0','']": tensor(7, Dimension(dim_param="2*s0"), Dimension(dim_param="")),
    "dtype(99)[0]": tensor(99, Dimension(dim_value=0)),
    "dtype(-1)": Type(tensor_type=TensorType(elem_type=-1)),
    "undefined": Type(tensor_type=TensorType(elem_type=0)),
    "float32[9223372036854775807]": tensor(1, Dimension(dim_value=2**63 - 1)),
    "float32['é,]']": tensor(1, Dimension(dim_param="é,]")),
    "float32[seq]": tensor(1, Dimension(dim_param="seq")),
    "seq(float32)": Type(sequence_type=SequenceType(elem_type=FLOAT)),
    "optional(seq(float32))": Type(
        optional_type=OptionalType(elem_type=Type(sequence_type=SequenceType(elem_type=FLOAT)))
    ),
    "map(string,float32)": Type(map_type=MapType(key_type=8, value_type=FLOAT)),
    "map(dtype(70),float32)": Type(map_type=MapType(key_type=70, value_type=FLOAT)),
    "sparse(float32[?])": Type(sparse_tensor_type=SparseTensorType(elem_type=1, shape=TensorShape(dim=(Dimension(),)))),
    "sparse(float32)": Type(sparse_tensor_type=SparseTensorType(elem_type=1)),
    "opaque(,)": Type(opaque_type=OpaqueType()),
    "opaque('','a')": Type(opaque_type=OpaqueType(domain="", name="a")),
    "opaque('com.example',)": Type(opaque_type=OpaqueType(domain="com.example")),
}


@pytest.mark.parametrize("text", EXACT)
def test_the_text_and_the_record_stand_for_each_other(text: str) -> None:
    assert format_type(EXACT[text]) == text
    assert parse_type(text) == EXACT[text]


UNSAYABLE = {
    "no type at all": Type(),
    "denotation": Type(tensor_type=TensorType(elem_type=1), denotation="IMAGE"),
    "an empty denotation": Type(tensor_type=TensorType(elem_type=1), denotation=""),
    "no elem_type": Type(tensor_type=TensorType()),
    "negative dim": tensor(1, Dimension(dim_value=-1)),
    "quote in a name": tensor(1, Dimension(dim_param="it's")),
    "backslash in a name": tensor(1, Dimension(dim_param="a\\b")),
    "bytes outside UTF-8": tensor(1, Dimension(dim_param="\udcff")),
    "a dim with both": tensor(1, Dimension(dim_param="N", dim_value=1)),
    "denotation of a dim": tensor(1, Dimension(dim_param="N", denotation="DATA_BATCH")),
    "unknown fields of the type": Type(tensor_type=TensorType(elem_type=1), unknown_fields=b"\xf8\x01\x01"),
    "unknown fields of the tensor": Type(tensor_type=TensorType(elem_type=1, unknown_fields=b"\xf8\x01\x01")),
    "unknown fields of the shape": Type(
        tensor_type=TensorType(elem_type=1, shape=TensorShape(unknown_fields=b"\xf8\x01\x01"))
    ),
    "unknown fields of a dim": tensor(1, Dimension(unknown_fields=b"\xf8\x01\x01")),
    "unknown fields of the sequence": Type(sequence_type=SequenceType(elem_type=FLOAT, unknown_fields=b"\xf8\x01\x01")),
    "a sequence of nothing": Type(sequence_type=SequenceType()),
    "a sequence of no type": Type(sequence_type=SequenceType(elem_type=Type())),
    "a map without key": Type(map_type=MapType(value_type=FLOAT)),
    "a map without value": Type(map_type=MapType(key_type=1)),
    "an optional of nothing": Type(optional_type=OptionalType()),
    "two kinds": Type(tensor_type=TensorType(elem_type=1), sequence_type=SequenceType(elem_type=FLOAT)),
    "a quote in an opaque name": Type(opaque_type=OpaqueType(name="'")),
    "unknown fields of the opaque": Type(opaque_type=OpaqueType(unknown_fields=b"\xf8\x01\x01")),
}


@pytest.mark.parametrize("reason", UNSAYABLE)
def test_what_the_grammar_cannot_say_has_no_text(reason: str) -> None:
    assert format_type(UNSAYABLE[reason]) is None
    assert shown_type(UNSAYABLE[reason])


def test_types_that_the_grammar_cannot_say_are_shown() -> None:
    shown = [shown_type(UNSAYABLE[reason]) for reason in ("negative dim", "denotation of a dim", "denotation")]
    assert shown == ["float32[-1]", "float32[N(DATA_BATCH)]", "float32"]
    assert all(shown_type(value) == text for text, value in EXACT.items())


def test_types_nest_fifty_deep_and_no_deeper() -> None:
    deep = FLOAT
    for _ in range(TYPE_DEPTH):
        deep = Type(sequence_type=SequenceType(elem_type=deep))
    text = format_type(deep)
    assert text is not None
    assert parse_type(text) == deep
    assert format_type(Type(sequence_type=SequenceType(elem_type=deep))) is None
    with pytest.raises(TypeSyntaxError):
        parse_type(f"seq({text})")
    with pytest.raises(TypeSyntaxError):
        parse_type("seq(" * 100_000)


def test_spaces_stand_around_tokens_only() -> None:
    assert parse_type(" seq ( map( int64 , float32 [ N , 3 ] ) ) ") == parse_type("seq(map(int64,float32[N,3]))")
    assert parse_type("float32[' N']") == tensor(1, Dimension(dim_param=" N"))
    with pytest.raises(TypeSyntaxError):
        parse_type("float 32")


@pytest.mark.parametrize("name", DATA_TYPES)
def test_every_spelling_of_a_dtype_is_read(name: str) -> None:
    assert parse_data_type(name) == DATA_TYPES[name]
    assert parse_type(f"{name}[]") == tensor(DATA_TYPES[name])


@pytest.mark.parametrize("number", [*DATA_TYPE_NAMES, 29, 99, -1, 2**31 - 1, -(2**31)])
def test_every_number_of_a_dtype_has_a_name(number: int) -> None:
    assert parse_data_type(format_data_type(number)) == number


@pytest.mark.parametrize(
    ("text", "position", "found", "fits"),
    [
        ("float32[-1,3]", 8, "`-1`", "`?`, a name or a number from 0"),
        ("flaot32[1]", 0, "the dtype `flaot32`", "did you mean float32 or float6_e3m2fn?"),
        ("int46[1]", 0, "the dtype `int46`", "did you mean int64 or int4?"),
        ("float32[1.5]", 9, "`.`", "`,` or `]`"),
        ("float32[1", 9, "the end of the type", "`,` or `]`"),
        ("float32[1,]", 10, "`]`", "`?`, a name or a number from 0"),
        ("float32['N]", 8, "`'`", "a closing quote for the name of the dimension"),
        ("float32[007]", 8, "`007`", "the number without leading zeros or a sign"),
        ("float32[9223372036854775808]", 8, "`9223372036854775808`", "a number up to 9223372036854775807"),
        ("float32[1] x", 11, "`x`", "the end of the type"),
        ("", 0, "the end of the type", "a dtype, such as float32"),
        ("seq(float32", 11, "the end of the type", "`)`"),
        ("map(float32)", 11, "`)`", "`,`"),
        ("opaque(a,b)", 7, "`a`", "a name in single quotes or `,`"),
        ("dtype(x)", 6, "`x`", "the number of a data type"),
    ],
)
def test_a_wrong_type_names_the_place_and_what_fits(text: str, position: int, found: str, fits: str) -> None:
    with pytest.raises(TypeSyntaxError) as caught:
        parse_type(text)
    assert (caught.value.position, caught.value.found, caught.value.fits) == (position, found, fits)


def test_types_of_constants_have_dims_that_are_numbers() -> None:
    assert format_tensor_type(1, (2, 3)) == "float32[2,3]"
    assert format_tensor_type(7, ()) == "int64[]"
    assert format_tensor_type(1, (-1,)) is None
    assert format_tensor_type(99, (1,)) is None
    assert parse_tensor_type(" double[ 2, 0 ]") == (11, (2, 0))
    for text in (
        "float32",
        "float32[N]",
        "float32[?]",
        "float32[-1]",
        "dtype(99)[1]",
        "float32[1]]",
        "seq(float32[1])",
    ):
        with pytest.raises(TypeSyntaxError):
            parse_tensor_type(text)


def test_digits_of_any_length_are_refused_at_once() -> None:
    with pytest.raises(TypeSyntaxError):
        parse_type(f"float32[{'9' * 1_000_000}]")


def random_type(rng: random.Random, depth: int) -> Type:
    """Any record at all, sayable or not."""
    rare = rng.random() < 0.03
    unknown = b"\xf8\x03\x01" if rng.random() < 0.02 else b""
    dims = tuple(
        rng.choice(
            [
                Dimension(dim_value=rng.choice([0, 3, 2**63 - 1, -1])),
                Dimension(dim_param=rng.choice(["N", "", "a b", "2", "'", "?", "é", "\\", "\udc80", "]"])),
                Dimension(denotation="D") if rare else Dimension(),
            ]
        )
        for _ in range(rng.randrange(4))
    )
    shape = rng.choice([None, TensorShape(dim=dims, unknown_fields=unknown)])
    number = rng.choice([None, 0, 1, 8, 28, 29, -7]) if rare else rng.choice([1, 8, 28, 99])
    inner = None if rare or depth == 0 else random_type(rng, depth - 1)
    name = rng.choice([None, "", "a", "'", "com.example"])
    kinds = (
        Type(tensor_type=TensorType(elem_type=number, shape=shape), denotation="X" if rare else None),
        Type(sparse_tensor_type=SparseTensorType(elem_type=number, shape=shape)),
        Type(sequence_type=SequenceType(elem_type=inner, unknown_fields=unknown)),
        Type(optional_type=OptionalType(elem_type=inner)),
        Type(map_type=MapType(key_type=number, value_type=inner)),
        Type(opaque_type=OpaqueType(domain=name, name=rng.choice([None, "n"]))),
        Type(unknown_fields=unknown),
    )
    return rng.choice(kinds[:2] if depth == 0 else kinds)


def test_a_text_always_stands_for_exactly_its_record() -> None:
    rng = random.Random(5)
    said = 0
    for _ in range(5000):
        value = random_type(rng, 3)
        text = format_type(value)
        if text is not None:
            said += 1
            assert parse_type(text) == value
            assert format_type(parse_type(text)) == text
    assert 1500 < said < 4500


def test_a_mutated_text_is_a_type_or_a_syntax_error_inside_the_text() -> None:
    rng = random.Random(6)
    texts = list(EXACT)
    for _ in range(5000):
        text = rng.choice(texts)
        start = rng.randrange(len(text) + 1)
        text = text[:start] + rng.choice("[](),?'-0 9aN\\\udc80") + text[start + rng.randrange(2) :]
        try:
            parsed = parse_type(text)
        except TypeSyntaxError as error:
            position = error.position
        else:
            position = 0
            assert format_type(parsed) is not None
        assert 0 <= position <= len(text)

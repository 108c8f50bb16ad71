"""What leads from one model to another: every field, aligned lists, nothing more than what differs."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model import document as d
from onnxjson.model.messages import FIELDS, Field, Kind
from onnxjson.model.payloads import Digest
from onnxjson.patching.changes import ListChange, Set
from onnxjson.patching.patch import Patch
from tests.corpus.collection import file_models
from tests.patching.wrapping import first_pairs, model_with

MODELS = sorted((Path(__file__).parents[1] / "models").glob("*.onnx"))

VALUES: dict[Kind, tuple[object, ...]] = {
    Kind.INT64: (0, 1, -(2**63), 2**63 - 1), Kind.INT32: (0, -(2**31), 2**31 - 1), Kind.DATA_TYPE: (0, 1, 99, -1),
    Kind.ATTRIBUTE_TYPE: (0, 2), Kind.DATA_LOCATION: (0, 1), Kind.STRING: ("", "a", "\udcff", "\u202e\n"),
    Kind.BYTES: (b"", b"a", b"\xff"), Kind.FLOAT: (b"\0\0\0\0", b"\0\0\0\x80", b"\1\0\x80\x7f", b"\0\0\xc0\x7f"),
    Kind.DOUBLE: (b"\0" * 8, b"\1\0\0\0\0\0\xf0\xff"), Kind.UINT64: (b"\0", b"\xff" * 9 + b"\1"),
}  # fmt: skip
"""Values that a field can have; of packed numbers as they stand in a record."""


def values_of(field: Field) -> Iterator[object]:
    """Values of a field: absent, present and empty, and others."""
    if field.message is not None:
        yield from (
            ((), (field.message(),), (field.message(), field.message())) if field.repeated else (None, field.message())
        )
    elif field.packed or (field.repeated and field.kind is Kind.FLOAT):
        packed = VALUES[Kind.UINT64 if field.kind in (Kind.INT32, Kind.INT64, Kind.UINT64) else field.kind]
        parts = [b"\0" if field.kind is Kind.INT32 and each != b"\0" else each for each in packed]
        yield from (b"", *parts, b"".join(part for part in parts if isinstance(part, bytes)) * 80)
    elif field.repeated:
        yield from ((), *((value,) for value in VALUES[field.kind]), VALUES[field.kind])
    else:
        yield from (None, *VALUES[field.kind])
    if field.name == "raw_data":
        yield from (bytes(range(256)) * 2, Digest("ab" * 32, 512))


FIELDS_OF_ALL = [(message, field) for message, fields in FIELDS.items() for field in fields]


def check(base: d.Model, target: d.Model, patch: Patch) -> None:
    """Every law for one patch."""
    assert patch.apply(base) == target
    assert patch.invert().apply(target) == base
    assert patch.invert().invert() == patch
    text = patch.dumps()
    read = Patch.loads(text)
    assert read == patch
    assert read.dumps() == text
    assert read.apply(base) == target


@pytest.mark.parametrize(
    ("message", "field"), FIELDS_OF_ALL, ids=lambda each: getattr(each, "__name__", None) or each.name
)
def test_every_field_goes_from_every_value_to_every_other(message: type[d.Record], field: Field) -> None:
    pairs = first_pairs(message)
    models = [model_with(replace(message(), **{field.name: value})) for value in values_of(field)]
    for base in models:
        for target in models:
            patch = Patch.between(base, target, pairs)
            assert bool(patch) == (base != target)
            check(base, target, patch)


@pytest.mark.parametrize("message", FIELDS, ids=lambda message: message.__name__)
def test_unknown_fields_of_every_message_are_a_field(message: type[d.Record]) -> None:
    base, target = model_with(message()), model_with(replace(message(), unknown_fields=b"\xca>\x02hi"))
    patch = Patch.between(base, target, first_pairs(message))
    assert [type(each) for each in patch.operations] == [Set]
    check(base, target, patch)


def test_absent_and_empty_are_two_things() -> None:
    absent, empty = d.Model(domain=None), d.Model(domain="")
    assert Patch.between(absent, empty).operations == (Set("/domain", None, ""),)
    assert Patch.between(empty, absent).operations == (Set("/domain", "", None),)


def test_a_nan_equals_itself_and_no_other() -> None:
    def model(bits: bytes) -> d.Model:
        return attributes_of(d.Attribute(name="a", f=bits, type=1))

    quiet, other = b"\0\0\xc0\x7f", b"\1\0\xc0\x7f"
    assert not Patch.between(model(quiet), model(bytes(quiet)))
    assert Patch.between(model(quiet), model(other)).operations == (Set("/graph/node/0/attribute/a/f", quiet, other),)


def test_raw_and_typed_storage_are_two_fields() -> None:
    def model(tensor: d.Tensor) -> d.Model:
        return d.Model(graph=d.Graph(initializer=(replace(tensor, dims=(1,), data_type=1, name="w"),)))

    patch = Patch.between(model(d.Tensor(raw_data=b"\0\0\x80?")), model(d.Tensor(float_data=b"\0\0\x80?")))
    assert [each.address for each in patch.operations] == [
        "/graph/initializer/0/float_data",
        "/graph/initializer/0/raw_data",
    ]


def graph_of(*names: str) -> d.Model:
    """A model with nodes of these names."""
    return d.Model(graph=d.Graph(node=tuple([d.Node(op_type="Relu", output=(name,), name=name) for name in names])))


def test_one_node_removed_is_one_operation() -> None:
    base = graph_of("a", "b", "c", "d")
    patch = Patch.between(base, graph_of("a", "b", "d"))
    assert base.graph is not None
    removed = {2: base.graph.node[2]}
    assert patch.operations == (ListChange("/graph/node", (range(2), range(3, 4)), removed),)


def test_moved_members_are_runs() -> None:
    patch = Patch.between(graph_of("a", "b", "c", "d"), graph_of("c", "d", "a", "b"))
    assert patch.operations == (ListChange("/graph/node", (range(2, 4), range(2)), {}),)
    assert [unit.kind for unit in patch.units()] == ["order"]


def test_pairs_make_a_renamed_node_one_that_stays() -> None:
    base, target = graph_of("a", "b"), graph_of("x", "b")
    assert [unit.kind for unit in Patch.between(base, target).units()] == ["remove", "add"]
    paired = Patch.between(base, target, {"/graph/node": [(0, 0), (1, 1)]})
    assert [unit.base for unit in paired.units()] == ["/graph/node/0/output", "/graph/node/0/name"]


@pytest.mark.parametrize("pairs", [[(0, 0), (0, 1)], [(0, 0), (1, 0)], [(2, 0)], [(0, 2)], [(-1, 0)]])
def test_pairs_that_cannot_be_are_refused(pairs: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match=r"of /graph/node is out of range, or names a position twice"):
        Patch.between(graph_of("a", "b"), graph_of("b", "c"), {"/graph/node": pairs})


def test_pairs_reach_into_subgraphs() -> None:
    def model(*names: str) -> d.Model:
        body = d.Attribute(name="body", g=graph_of(*names).graph, type=5)
        return d.Model(graph=d.Graph(node=(d.Node(op_type="Loop", attribute=(body,)),)))

    address = "/graph/node/0/attribute/body/g/node"
    patch = Patch.between(model("a", "b"), model("y", "x"), {address: [(0, 1), (1, 0)]})
    assert [unit.kind for unit in patch.units()] == ["order", "set", "set", "set", "set"]


def test_equal_members_that_repeat_are_aligned_from_both_ends() -> None:
    patch = Patch.between(graph_of("a", "a", "b", "a"), graph_of("a", "a", "a", "b", "a"))
    assert [unit.kind for unit in patch.units()] == ["add"]


def attributes_of(*attributes: d.Attribute) -> d.Model:
    """A model with one node that has these attributes."""
    return d.Model(graph=d.Graph(node=(d.Node(attribute=attributes),)))


def number(name: str | None, value: int) -> d.Attribute:
    """An attribute with an integer."""
    return d.Attribute(name=name, i=value, type=2)


def test_attributes_are_followed_by_name() -> None:
    base = attributes_of(number("a", 1), number("b", 2))
    target = attributes_of(number("b", 3), number("c", 1), number("a", 1))
    patch = Patch.between(base, target)
    assert [each.address for each in patch.operations] == ["/graph/node/0/attribute", "/graph/node/0/attribute/b/i"]
    assert [unit.target for unit in patch.units() if unit.kind == "add"] == ["/graph/node/0/attribute/c"]
    check(base, target, patch)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("a",), ("a", "a")), (("a", "a"), ("a",)), (("a", "a", "b"), ("b", "a", "a")), (("#0", "a"), ("a", "#0")),
        ((None, "a"), ("a", None, None)), (("", "x/~y"), ("x/~y", "")),
    ],
)  # fmt: skip
def test_attributes_whose_names_repeat_or_are_missing(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    base = attributes_of(*[number(name, index) for index, name in enumerate(before)])
    target = attributes_of(*[number(name, index) for index, name in enumerate(after)])
    check(base, target, Patch.between(base, target))


def test_one_attribute_that_becomes_two_of_its_name_does_not_stay() -> None:
    patch = Patch.between(attributes_of(number("a", 1)), attributes_of(number("a", 1), number("a", 1)))
    assert [unit.kind for unit in patch.units()] == ["remove", "add", "add"]
    assert patch.where("/graph/node/0/attribute/a") is None


def test_real_models_turn_into_each_other() -> None:
    models = [onnxjson.load(path) for path in MODELS]
    for base, target in zip(models, models[1:] + models[:1], strict=True):
        patch = Patch.between(base, target)
        assert message_bytes(patch.apply(base)) == message_bytes(target)
        assert message_bytes(patch.invert().apply(target)) == message_bytes(base)
        assert Patch.loads(patch.dumps()).apply(base) == target


def test_models_of_the_corpus_turn_into_each_other() -> None:
    models = [serde.parse(model.data).model for model in file_models()][:80]
    for base, target in itertools.pairwise(models):
        patch = Patch.between(base, target)
        assert message_bytes(patch.apply(base)) == message_bytes(target)
        assert message_bytes(patch.invert().apply(target)) == message_bytes(base)

"""Applying: what is shared, what is refused and how, and what is never read."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from onnxjson.model import document as d
from onnxjson.model.errors import PatchError
from onnxjson.model.payloads import Payload
from onnxjson.patching.changes import Fields, Members, Replace
from onnxjson.patching.patch import Patch
from tests.patching.test_deriving import attributes_of, graph_of, number


class Watched(Payload):
    """Bytes that must not be read."""

    __slots__ = ()

    def chunks(self) -> Iterator[bytes]:
        """See `Payload.chunks`."""
        raise AssertionError("the payload was read")
        yield b""


def big_model() -> d.Model:
    """A model whose weights nobody may read."""
    weights = tuple([d.Tensor(dims=(1 << 28,), data_type=2, name=f"w{i}", raw_data=Watched(1 << 28)) for i in range(3)])
    base = attributes_of(number("a", 1), number("b", 2))
    assert base.graph is not None
    return replace(base, graph=replace(base.graph, initializer=weights))


def changed(model: d.Model, **fields: object) -> d.Model:
    """`model` with other fields of its graph."""
    assert model.graph is not None
    return replace(model, graph=replace(model.graph, **fields))


def test_a_small_change_of_a_big_model_reads_no_weights_and_shares_them() -> None:
    base = big_model()
    target = changed(base, node=(d.Node(attribute=(number("a", 5), number("b", 2))),))
    patch = Patch.between(base, target)
    result = patch.apply(base)
    assert base.graph is not None
    assert result.graph is not None
    assert all(one is other for one, other in zip(base.graph.initializer, result.graph.initializer, strict=True))
    assert patch.invert().apply(result) == base
    assert "payloads" not in patch.dumps()
    assert not patch.then(patch.invert())


def test_weights_that_move_with_their_list_are_not_read() -> None:
    base = big_model()
    assert base.graph is not None
    first, *rest = base.graph.initializer
    target = changed(base, initializer=(*rest, first, d.Tensor(name="new")))
    patch = Patch.between(base, target)
    assert patch.apply(base) == target
    assert patch.invert().apply(target) == base


def test_weights_of_another_length_are_not_read_to_know_that_they_differ() -> None:
    base = big_model()
    assert base.graph is not None
    shorter = replace(base.graph.initializer[0], raw_data=Watched(5))
    target = changed(base, initializer=(shorter, *base.graph.initializer[1:]))
    assert len(Patch.between(base, target).operations) == 1


def refusal(patch: Patch, model: d.Model) -> PatchError:
    """The error with which a patch refuses a model."""
    with pytest.raises(PatchError) as caught:
        patch.apply(model)
    return caught.value


def test_a_field_with_another_value_is_refused_with_address_expected_and_found() -> None:
    patch = Patch.between(d.Model(domain="a"), d.Model(domain="b"))
    error = refusal(patch, d.Model(domain="x\x1b"))
    assert (error.address, error.expected, error.found) == ("/domain", "a", "x\x1b")
    assert str(error) == 'the patch does not fit: /domain: expected "a", found "x\\u{1b}"'
    assert error.exit_code == 65


@pytest.mark.parametrize(
    ("base", "target", "other", "says"),
    [
        (d.Model(ir_version=7), d.Model(ir_version=8), d.Model(), "/ir_version: expected 7, found nothing"),
        (d.Model(), d.Model(ir_version=8), d.Model(ir_version=9), "/ir_version: expected nothing, found 9"),
        (
            attributes_of(d.Attribute(name="a", f=b"\xcd\xcc\xcc=", type=1)),
            attributes_of(d.Attribute(name="a", f=b"\0\0\x80?", type=1)),
            attributes_of(d.Attribute(name="a", f=b"\1\0\xc0\x7f", type=1)),
            '/graph/node/0/attribute/a/f: expected 0.1, found "NaN(0x7fc00001)"',
        ),
        (
            attributes_of(number("a", 1)),
            attributes_of(number("a", 2)),
            attributes_of(number("b", 1)),
            "/graph/node/0/attribute/a: there is no attribute with that name, or more than one",
        ),
        (
            attributes_of(number(None, 1)),
            attributes_of(number(None, 2)),
            attributes_of(number("b", 1)),
            "/graph/node/0/attribute/#0: this attribute has a unique name, so a patch must address it by name",
        ),
        (
            attributes_of(number(None, 1)),
            attributes_of(number(None, 2)),
            attributes_of(),
            "/graph/node/0/attribute/#0: the list has 0 members",
        ),
        (graph_of("a", "b"), graph_of("a"), graph_of("a", "b", "c"), "/graph/node: expected 2 members, found 3"),
        (graph_of("a", "b"), graph_of("a"), graph_of("a", "x"), '/graph/node/1/output: expected ["b"], found ["x"]'),
        (
            attributes_of(number("a", 1)),
            attributes_of(),
            attributes_of(number("a", 3)),
            "/graph/node/0/attribute/a/i: expected 1, found 3",
        ),
        (
            d.Model(graph=d.Graph(name="g")),
            d.Model(),
            d.Model(graph=d.Graph(name="g", initializer=(d.Tensor(),))),
            "/graph/initializer: expected nothing, found [Tensor]",
        ),
        (
            d.Model(graph=d.Graph(name="g")),
            d.Model(graph=d.Graph(name="h")),
            d.Model(),
            "/graph: there is nothing to change",
        ),
        (
            d.Model(graph=d.Graph(initializer=(d.Tensor(name="w", raw_data=b"0" * 40),))),
            d.Model(graph=d.Graph(initializer=(d.Tensor(name="w", raw_data=b"1" * 40),))),
            d.Model(graph=d.Graph(initializer=(d.Tensor(name="w", raw_data=b"2"),))),
            "/graph/initializer/0/raw_data: expected 40 bytes with the sha256 9692e67b8378, found the byte 32",
        ),
    ],
)
def test_a_model_that_does_not_fit_is_refused(base: d.Model, target: d.Model, other: d.Model, says: str) -> None:
    patch = Patch.between(base, target)
    assert patch.apply(base) == target
    assert str(refusal(patch, other)) == f"the patch does not fit: {says}"


def test_only_what_changes_must_be_as_the_patch_says() -> None:
    patch = Patch.between(graph_of("a", "b", "c"), graph_of("a", "c"))
    other = graph_of("x", "b", "y")
    assert patch.apply(other) == graph_of("x", "y")


def test_two_members_of_a_oneof_are_refused() -> None:
    patch = Patch(
        Fields(
            {
                "graph": Fields(
                    {
                        "input": Members(
                            None, {}, {0: Fields({"type": Fields({"map_type": Replace(None, d.MapType())})})}
                        )
                    }
                )
            }
        )
    )
    model = d.Model(graph=d.Graph(input=(d.ValueInfo(type=d.Type(tensor_type=d.TensorType())),)))
    says = "the patch does not fit: /graph/input/0/type: only one of tensor_type and map_type can be set"
    assert str(refusal(patch, model)) == says


def test_an_attribute_keeps_the_name_that_addresses_it() -> None:
    node = Fields({"attribute": Members(None, {}, {"a": Fields({"name": Replace("a", "b")})})})
    patch = Patch(Fields({"graph": Fields({"node": Members(None, {}, {0: node})})}))
    assert "/graph/node/0/attribute/a/name" in str(refusal(patch, attributes_of(number("a", 1))))


def test_an_attribute_does_not_come_beside_one_of_its_name() -> None:
    node = Fields({"attribute": Members((range(1), number("a", 2)), {}, {})})
    patch = Patch(Fields({"graph": Fields({"node": Members(None, {}, {0: node})})}))
    says = "/graph/node/0/attribute/a: one attribute with this name stays, and another is added or removed"
    assert str(refusal(patch, attributes_of(number("a", 1)))) == f"the patch does not fit: {says}"


def test_same_base_refuses_a_model_that_would_fit() -> None:
    base, target = d.Model(domain="a"), d.Model(domain="b")
    patch = Patch.between(base, target).with_hashes(base)
    assert patch == Patch.between(base, target).with_hashes(base, target)
    other = d.Model(domain="a", ir_version=3)
    assert patch.apply(other) == d.Model(domain="b", ir_version=3)
    assert patch.apply(base, same_base=True) == target
    with pytest.raises(PatchError, match=r"the patch is for another model: it was made for [0-9a-f]{64}, this is"):
        patch.apply(other, same_base=True)
    with pytest.raises(PatchError, match="it does not state for which one"):
        Patch.between(base, target).apply(base, same_base=True)


def test_the_empty_patch_gives_the_very_model() -> None:
    model = graph_of("a")
    assert Patch().apply(model) is model
    assert not Patch()
    assert repr(Patch()) == "<Patch: 0 differences>"
    assert repr(Patch.between(model, graph_of("b"))) == "<Patch: 2 differences>"

"""One patch after another: one patch, or a refusal."""

import pytest

from onnxjson.model import document as d
from onnxjson.model.errors import PatchError
from onnxjson.patching.changes import ExternalFile, Set
from onnxjson.patching.patch import Patch
from tests.patching.test_deriving import attributes_of, graph_of, number


def test_the_second_must_find_what_the_first_leaves() -> None:
    first = Patch.between(d.Model(domain="a"), d.Model(domain="b"))
    second = Patch.between(d.Model(domain="c"), d.Model(domain="d"))
    with pytest.raises(PatchError) as caught:
        first.then(second)
    says = 'the second patch does not follow the first: /domain: expected "c", found "b"'
    assert str(caught.value) == says
    assert (caught.value.address, caught.value.expected, caught.value.found) == ("/domain", "c", "b")


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (
            Patch.between(graph_of("a"), graph_of("a", "b")),
            Patch.between(graph_of("a"), graph_of()),
            "/graph/node: expected 1 member, found 2",
        ),
        (
            Patch.between(graph_of("a"), graph_of("a", "b")),
            Patch.between(graph_of("a", "c"), graph_of("a")),
            '/graph/node/1/output: expected ["c"], found ["b"]',
        ),
        (
            Patch.between(graph_of("a"), d.Model()),
            Patch.between(graph_of("a"), graph_of("b")),
            "/graph: there is nothing to change",
        ),
        (
            Patch.between(graph_of("a"), graph_of("b")),
            Patch.between(d.Model(), graph_of("b")),
            "/graph: it was expected to be absent",
        ),
        (
            Patch.between(attributes_of(number("a", 1)), attributes_of(number("a", 2))),
            Patch.between(attributes_of(number("a", 3)), attributes_of()),
            "/graph/node/0/attribute/a/i: expected 3, found 2",
        ),
    ],
)
def test_patches_that_do_not_follow_are_refused(first: Patch, second: Patch, says: str) -> None:
    with pytest.raises(PatchError) as caught:
        first.then(second)
    assert str(caught.value) == f"the second patch does not follow the first: {says}"


def test_what_goes_and_comes_again_stays() -> None:
    first = Patch.between(graph_of("a", "b"), graph_of("a"))
    assert not first.then(first.invert())
    assert not first.invert().then(first)
    whole = Patch.between(graph_of("a", "b"), d.Model())
    again = Patch.between(d.Model(), graph_of("a", "c"))
    assert whole.then(again).operations == Patch.between(graph_of("a", "b"), graph_of("a", "c")).operations


def test_a_change_of_what_was_added_is_part_of_the_addition() -> None:
    first = Patch.between(attributes_of(), attributes_of(number("a", 1)))
    second = Patch.between(attributes_of(number("a", 1)), attributes_of(number("a", 2)))
    assert first.then(second) == Patch.between(attributes_of(), attributes_of(number("a", 2)))


def test_a_member_removed_after_a_change_goes_as_it_was() -> None:
    first = Patch.between(attributes_of(number("a", 1)), attributes_of(number("a", 2)))
    second = Patch.between(attributes_of(number("a", 2)), attributes_of())
    assert first.then(second) == Patch.between(attributes_of(number("a", 1)), attributes_of())


def test_hashes_of_a_chain_are_those_of_its_ends_and_none_where_the_middle_differs() -> None:
    a, b, c = d.Model(domain="a"), d.Model(domain="b"), d.Model(domain="c")
    one, two = Patch.between(a, b).with_hashes(a, b), Patch.between(b, c).with_hashes(b, c)
    assert one.then(two) == Patch.between(a, c).with_hashes(a, c)
    other = Patch.between(d.Model(domain="b", ir_version=1), d.Model(domain="c", ir_version=1))
    assert one.then(other.with_hashes(d.Model(domain="b", ir_version=1))).target is None
    assert one.then(other).base == one.base


def test_nothing_before_or_after_changes_nothing() -> None:
    patch = Patch.between(d.Model(domain="a"), d.Model(domain="b"))
    assert patch.then(Patch()) is patch
    assert Patch().then(patch) is patch


def test_external_files_are_those_of_the_ends() -> None:
    before, after = ExternalFile("a.data", "0" * 64, "base"), ExternalFile("b.data", None, "target")
    one, two = (
        Patch(external=(before, ExternalFile("m.data"))),
        Patch(external=(ExternalFile("m.data", None, "base"), after)),
    )
    assert one.then(two).external == (before, after)
    assert one.invert().external == (ExternalFile("a.data", "0" * 64), ExternalFile("m.data", None, "base"))
    assert one.invert().invert() == one


def test_operations_stand_in_the_order_of_the_base() -> None:
    patch = Patch.between(
        d.Model(ir_version=1, domain="a", graph=graph_of("a").graph),
        d.Model(ir_version=2, domain="b", graph=graph_of("a", "b").graph),
    )
    assert [each.address for each in patch.operations] == ["/ir_version", "/domain", "/graph/node"]
    assert patch.operations[0] == Set("/ir_version", 1, 2)


def test_what_cannot_be_taken_back_says_why() -> None:
    first = Patch.between(attributes_of(number("a", 1)), attributes_of(number("a", 2)))
    second = Patch.between(attributes_of(number("b", 2)), d.Model())
    with pytest.raises(PatchError) as caught:
        first.then(second)
    says = "the second patch does not follow the first: /graph/node/0/attribute/a: "
    assert str(caught.value) == says + "there is no attribute with that name, or more than one"

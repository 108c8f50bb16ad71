"""Names that both sides changed: a choice gives them everywhere, also in what the other conflicts hold."""

from itertools import permutations, product

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.codecs.text_file import read_bytes
from onnxjson.merging.merge import merge
from onnxjson.merging.resolving import resolve
from onnxjson.model.addresses import Choice
from onnxjson.model.conflicts import ConflictError
from onnxjson.model.document import Model, Node
from onnxjson.model.structure import check_structure
from onnxjson.model.walking import walk
from tests.benchmarks.graphs import layers
from tests.editing.graphs import model_of
from tests.merging.laws import require_laws
from tests.merging.models import BASE, Change, both, conflicted_bytes, edit, graph, metadata, node, renamed, without
from tests.merging.triples import triple

SIDES: tuple[Choice, ...] = ("base", "ours", "theirs")

PAIRS: dict[str, tuple[Change, Change]] = {
    "a taker is gone": (both(node(2, doc_string="d"), renamed("b", "b1")), both(without(2), renamed("b", "b2"))),
    "a maker is gone": (both(node(1, doc_string="d"), renamed("a", "a1")), both(without(1), renamed("a", "a2"))),
    "an input is another": (
        both(renamed("b", "b1"), lambda model: node(5, input=("b1",))(model)),
        both(renamed("b", "b2"), lambda model: node(5, input=("a",))(model)),
    ),
    "a taker in a graph inside": (
        both(renamed("d", "d1"), node(3, doc_string="1")),
        both(renamed("d", "d2"), node(3, doc_string="2")),
    ),
    "names of nodes": (both(node(2, name="n1"), renamed("b", "b1")), both(node(2, name="n2"), renamed("b", "b2"))),
}


def functions(name: str, doc: str) -> Change:
    """The function under another name, with another text."""

    def change(model: Model) -> Model:
        named = onnxjson.loads(onnxjson.dumps(model).replace("twice", name))
        return replace(named, functions=(replace(named.functions[0], doc_string=doc),))

    return change


@pytest.mark.parametrize("name", PAIRS)
def test_name_is_followed_by_what_the_other_conflicts_hold(name: str) -> None:
    ours, theirs = [change(BASE) for change in PAIRS[name]]
    merged = merge(BASE, ours, theirs)
    ids = list(dict.fromkeys(each.id for each in merged.conflicts))
    assert len(ids) > 1
    for choices in product(SIDES, repeat=len(ids)):
        models = []
        for order in permutations(list(zip(ids, choices, strict=True))):
            model, left = merged.model, merged.conflicts
            for each, choice in order:
                model, left = resolve(model, left, choice, [each])
                again = read_bytes(conflicted_bytes(model, left), conflicted=True)
                assert (again.model, again.conflicts) == (model, left)
            models.append(model)
        assert all(model == models[0] for model in models)
        assert not [each for each in check_structure(models[0]) if each.severity == "error"]


def test_names_that_are_swapped_are_given_together() -> None:
    base = model_of('<ir_version: 10, opset_import: ["" : 20]> g (float[N] x) => (float[N] y) { a = Relu(x) b = Abs(a) y = Exp(b) }')  # fmt: skip  # noqa: E501

    def called(first: str, second: str) -> Model:
        return renamed("b!", second)(renamed("a", first)(renamed("b", "b!")(base)))

    ours, theirs = called("p", "q"), called("q", "p")
    merged = merge(base, ours, theirs)
    assert [each.id for each in merged.conflicts] == ["1", "1"]
    assert resolve(merged.model, merged.conflicts, "theirs", ["1"]) == (theirs, ())
    assert resolve(merged.model, merged.conflicts, "base") == (base, ())
    apart = [replace(each, id=str(number)) for number, each in enumerate(merged.conflicts)]
    assert resolve(merged.model, apart, "theirs") == (theirs, ())
    with pytest.raises(ConflictError, match="names are taken"):
        resolve(merged.model, apart, "theirs", ["1"])


@pytest.mark.parametrize("text", ["b", "b1", "b2"])
def test_text_that_is_the_name_of_a_value_stays_what_it_is(text: str) -> None:
    """A documentation string, a name of a node: nothing that names a value."""
    ours = both(renamed("b", "b1"), node(0, doc_string=text, name=text), metadata("k", text))(BASE)
    theirs = both(renamed("b", "b2"), node(0, doc_string="t", name="t"), metadata("k", "t"))(BASE)
    merged = merge(BASE, ours, theirs)
    assert {each.ours for each in merged.conflicts if isinstance(each.ours, str)} == {"b1", text}
    assert resolve(merged.model, merged.conflicts, "ours")[0] == ours
    assert resolve(merged.model, merged.conflicts, "theirs")[0] == theirs


def test_function_under_two_names_is_called_by_the_chosen_one() -> None:
    ours, theirs = functions("double", "1")(BASE), functions("again", "2")(BASE)
    merged = merge(BASE, ours, theirs)
    assert resolve(merged.model, merged.conflicts, "ours")[0] == ours
    assert resolve(merged.model, merged.conflicts, "theirs")[0] == theirs
    assert resolve(merged.model, merged.conflicts, "base")[0] == BASE


@pytest.mark.parametrize("seed", [433, 1494, 1879, 3329, 7174])
def test_seeds_that_could_not_be_settled_once(seed: int) -> None:
    require_laws(triple(seed, texts=False))


def test_thousands_of_names_are_given_in_one_go() -> None:
    base = onnxjson.from_proto(layers(1000))
    ours, theirs = [edit(onnxjson.edits.Prefix(prefix=each))(base) for each in ("o_", "t_")]
    merged = merge(base, ours, theirs)
    assert len(merged.conflicts) > 1000
    assert resolve(merged.model, merged.conflicts, "theirs")[0] == theirs


def test_node_that_is_gone_on_one_side_keeps_the_names_within_that_the_other_gave() -> None:
    """Of nodes, and of the values of a graph inside, one of them called as something of the base elsewhere."""
    theirs = edit(onnxjson.edits.NameNodes())(renamed("e1", "inner")(BASE))
    assert theirs.graph is not None
    branches = theirs.graph.node[3].attribute
    then = branches[0].g
    assert then is not None
    relu = then.node[0]
    more = replace(then, node=(replace(relu, output=("d2",)), replace(relu, op_type="Abs", input=("d2",), name="new")))
    theirs = node(3, attribute=(replace(branches[0], g=more), branches[1]), doc_string="d")(theirs)
    assert theirs.graph is not None
    nodes = BASE.graph.node if BASE.graph is not None else ()
    gone = graph(node=(*nodes[:3], replace(nodes[4], input=("d",)), nodes[5]))
    for ours, inner in ((gone(BASE), "d2"), (both(gone, renamed("d", "d2"))(BASE), "d2_1")):
        merged = merge(BASE, ours, theirs)
        (conflict,) = [each for each in merged.conflicts if each.ours is None and each.at.startswith("/graph/node/")]
        assert conflict.theirs.name == theirs.graph.node[3].name
        model, _ = resolve(merged.model, merged.conflicts, "theirs")
        assert model.graph is not None
        found = next(each for each in model.graph.node if each.op_type == "If")
        assert _shape(found) == [
            (name, operator, (inner,) if outputs == ("d2",) else outputs)
            for name, operator, outputs in _shape(theirs.graph.node[3])
        ]
        assert not [each for each in check_structure(model) if each.severity == "error"]


def _shape(node: Node) -> list[tuple[str | None, str | None, tuple[str, ...]]]:
    return [(each.name, each.op_type, each.output) for each in walk(node, Node)]

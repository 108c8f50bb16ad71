"""Which nodes are marked as changed or new since the model was saved."""

import random
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from onnxjson import edits
from onnxjson.editing.applying import run as made
from onnxjson.model.document import Graph, Model, Node
from onnxjson.model.index import Index
from onnxjson.patching.patch import Patch
from onnxjson_tui.session.following import SavedNodes
from tests.editing.graphs import exported, model_of
from tests.tui.benches import Bench, run, run_small
from tests.tui.sessions import edit_somehow, opened, saved, small

INNER = """g (bool c, float[4] x) => (float[4] y) {
    a = Relu(x)
    y = If (c) <
        then_branch = yes () => (float[4] t) { s = Neg(a) t = LeakyRelu<alpha = 0.1>(s) },
        else_branch = no () => (float[4] e) { e = Exp(a) }
    >
}"""


def nodes(*texts: str) -> tuple[Node, ...]:
    """Nodes such as ``Relu a b``: operator, what is made, what is taken; ``Relu@name a b`` with a name."""
    found = []
    for text in texts:
        operator, output, *inputs = text.split()
        operator, _, name = operator.partition("@")
        found.append(Node(op_type=operator, output=(output,), input=tuple(inputs), name=name or None))
    return tuple(found)


def between(now: tuple[Node, ...], then: tuple[Node, ...]) -> SavedNodes:
    """What is known of nodes when others were saved."""
    model, saved_model = Model(graph=Graph(node=now)), Model(graph=Graph(node=then))
    return SavedNodes.of(Patch.between(model, saved_model), Index(model).scopes[0])


SAVED = nodes("Relu a x", "Neg@neg b a", "Abs c b", "Exp@exp d c")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (SAVED, "    "),
        (tuple(replace(node) for node in SAVED), "    "),
        (SAVED[1:], "   "),
        (SAVED[::-1], "    "),
        ((*SAVED[:2], *nodes("Sin n b"), *SAVED[2:]), "  +  "),
        (nodes("Sigmoid a x") + SAVED[1:], "~   "),
        # Another name, another value, or both where as many nodes stand as did.
        ((SAVED[0], *nodes("Neg@other b a"), *SAVED[2:]), " ~  "),
        ((SAVED[0], *nodes("Neg@neg z a", "Abs c z"), SAVED[3]), " ~~ "),
        ((*SAVED[:2], *nodes("Abs z b", "Exp@exp d z")), "  ~~"),
        ((SAVED[0], *nodes("Neg@new z a", "Abs zz z", "Exp@neu zzz zz")), " ~~~"),
        ((SAVED[0], *nodes("Cos z a"), *SAVED[2:]), " +  "),
        ((), ""),
    ],
)
def test_a_node_differs_from_the_one_that_makes_the_same_value_or_has_its_name_or_its_place(
    now: tuple[Node, ...], expected: str
) -> None:
    known = between(now, SAVED)
    assert "".join([known.mark(at) or " " for at in range(len(now))]) == expected


def test_nodes_that_claim_to_be_the_same_are_not_taken_for_changed() -> None:
    twins = nodes("Relu@n a x", "Neg@n a x", "Abs@n c a", "Abs@n d a")
    known = between(tuple(replace(node) for node in twins), twins)
    assert [known.mark(at) for at in range(4)] == [""] * 4
    nameless = (Node(op_type="Print", input=("a",)),) * 40
    known = between(nameless[1:], nameless)
    assert {known.mark(at) for at in range(39)} == {""}


def marks(model: Model, now: Model) -> dict[str, str]:
    """The marks of all nodes of all graphs, by address."""
    patch = Patch.between(now, model)
    found: dict[str, str] = {}
    for scope in Index(now).scopes:
        known = SavedNodes.of(patch, scope)
        found |= {f"{scope.address}/node/{position}": known.mark(position) for position in known.marked()}
    return found


def test_a_node_in_a_subgraph_and_the_one_around_it_are_marked_wherever_they_stand_now() -> None:
    model = model_of(INNER)
    assert not marks(model, model)
    inner = made(model, edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.5)).model
    assert marks(model, inner) == {"/graph/node/1": "~", "/graph/node/1/attribute/then_branch/g/node/1": "~"}
    assert inner.graph is not None
    moved = replace(inner, graph=replace(inner.graph, node=(*nodes("Sin n x"), *inner.graph.node)))
    assert marks(model, moved) == {
        "/graph/node/0": "+",
        "/graph/node/2": "~",
        "/graph/node/2/attribute/then_branch/g/node/1": "~",
    }


@pytest.mark.parametrize("name", ["branches_ts.onnx", "encoder_dynamo.onnx"])
def test_no_node_is_marked_after_undo_and_none_that_was_not_touched_before(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    rng = random.Random(7)
    model = exported(name)
    with opened(saved(tmp_path / "m.onnx", model)) as session:
        base = session.model
        done = 0
        while done < 12:
            if edit_somehow(session, rng):
                done += 1
                same = {id(node) for scope in Index(base).scopes for node in scope.graph.node}
                assert session.to_saved.apply(session.model) == base
                marked = marks(base, session.model)
                for scope in session.index.scopes:
                    for position, node in enumerate(scope.graph.node):
                        if id(node) in same:
                            assert f"{scope.address}/node/{position}" not in marked
        while session.undo():
            assert session.to_saved.apply(session.model) == base
        while session.redo():
            assert session.to_saved.apply(session.model) == base
        while session.undo():
            pass
        assert not marks(base, session.model)
        session.discard()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return saved(tmp_path / "m.onnx", small())


def shown(found: Bench) -> str:
    """What stands behind the numbers of the rows that are seen."""
    rows = [re.match(r"[ *]\d+([ ~+])", line) for line in found.lines[1:-1]]
    return "".join([row[1] for row in rows if row])


@pytest.mark.parametrize("most", [3_000, 2])
def test_marks_come_with_an_edit_and_go_with_undo_and_save(
    path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onnxjson_tui.shell.graph_screen.BIG", most)

    async def flow(bench: Bench) -> None:
        assert shown(bench) == "    "
        await bench.press(":")
        await bench.type("set-attribute op:LeakyRelu alpha 0.5")
        assert shown(bench) == "  ~ "
        await bench.press("v")
        await bench.press("u")
        assert shown(bench) == "    "
        await bench.press("ctrl+r")
        assert shown(bench) == "  ~ "
        await bench.press(":")
        await bench.type("delete-node op:Relu --bypass 0")
        assert shown(bench) == "~~~"
        await bench.press("u")
        assert shown(bench) == "  ~ "
        await bench.press("ctrl+s")
        assert "read back and compared" in " ".join(bench.text.split())
        assert shown(bench) == "    "
        await bench.press("u")
        assert shown(bench) == "  ~ "
        await bench.press("ctrl+r")
        assert shown(bench) == "    "

    run_small(path, flow)


def test_marks_are_seen_in_a_filter_and_in_a_graph_of_a_node(path: Path) -> None:
    saved(path, model_of(INNER))

    async def flow(bench: Bench) -> None:
        assert bench.bench.go("/graph/node/1/attribute/then_branch/g/node/1")
        await bench.settle()
        await bench.press(":")
        await bench.type("set-attribute . alpha 0.5")
        assert shown(bench) == " ~"
        await bench.press("-")
        assert shown(bench) == " ~"
        await bench.press("f")
        await bench.type("op:If")
        assert shown(bench) == "~"

    run_small(path, flow)


def test_the_inspector_says_what_was_saved(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        for command in (
            "@/graph/node/2", "set-attribute . alpha 0.25", "set-attribute . alpha 0.5", "rewire . 0 x",
            "set-name . mine",
        ):  # fmt: skip
            await bench.press(":")
            await bench.type(command)
        await bench.settle()
        assert "alpha 0.5  (was missing)" in bench.text
        assert "(was b)" in bench.text
        assert "mine  (was none)" in bench.text
        await bench.press("u", "u", "u", "u")
        await bench.settle()
        assert "(was " not in bench.text

    run(saved(tmp_path / "m.onnx"), flow)


def test_the_inspector_says_which_attributes_are_gone(tmp_path: Path) -> None:
    text = "g (float[4] x) => (float[4] y) { y = LeakyRelu<alpha = 0.25>(x) }"

    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("remove-attribute . alpha")
        await bench.settle()
        assert "removed: alpha 0.25" in bench.text
        await bench.press("u")
        await bench.settle()
        assert "removed" not in bench.text

    run(saved(tmp_path / "m.onnx", model_of(text)), flow)


def test_braces_stop_at_every_mark(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        for command in ("@/graph/node/1", "set-doc far --node .", "@/graph/node/3", "set-doc farther --node ."):
            await bench.press(":")
            await bench.type(command)
        places = []
        for _ in range(3):
            await bench.press("}")
            await bench.settle()
            assert bench.bench.here is not None
            places.append(bench.bench.here.position)
        assert places == [1, 3, 1]
        await bench.press("{")
        await bench.settle()
        back = bench.bench.here
        assert back is not None
        assert back.position == 3

    run(saved(tmp_path / "m.onnx"), flow)


def test_nodes_that_all_have_other_names_are_changed_and_not_new(tmp_path: Path) -> None:
    chain = nodes(*[f"Relu@n{at} v{at} v{at - 1}" for at in range(1, 60)])
    other = nodes(*[f"Relu@p_n{at} p_v{at} p_v{at - 1}" for at in range(1, 60)])
    assert {between(other, chain).mark(at) for at in range(len(other))} == {"~"}
    known = between((*other, *nodes("Cos@more more p_v1")), chain)
    assert [known.mark(58), known.mark(59)] == ["~", "+"]


def test_the_inspector_says_what_else_is_another(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        for command in ("@/graph/node/1", "replace-node . Mul", "set-doc why --node ."):
            await bench.press(":")
            await bench.type(command)
        await bench.settle()
        assert "Mul  (was Add)" in bench.text
        assert "why  (was none)" in bench.text
        await bench.press("u", "u", ":")
        await bench.type("rename tensor . total")
        await bench.settle()
        assert "(was b)" in bench.text

    run(saved(tmp_path / "m.onnx"), flow)

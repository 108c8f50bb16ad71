"""`E`: one node or several as text in the person's editor, and what comes back in their place as one step."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from onnxjson.document import Model
from onnxjson_tui import external_editor
from tests.edits.graphs import model_of
from tests.tui.benches import Bench, run
from tests.tui.sessions import bytes_of, saved

CHAIN = """g (float[4] x) => (float[4] y) {
    a = Relu(x)
    b = Neg(a)
    c = Abs(b)
    d = Exp(c)
    y = Tanh(d)
}"""

INNER = """g (bool c, float[4] x) => (float[4] y) {
    a = Relu(x)
    y = If (c) <
        then_branch = yes () => (float[4] t) { s = Neg(a) t = Abs(s) },
        else_branch = no () => (float[4] e) { e = Exp(a) }
    >
}"""

Tree = dict[str, Any]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return saved(tmp_path / "m.onnx", model_of(CHAIN))


@pytest.fixture
def edited(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Tree]]:
    """Puts an editor that does one thing each time it is called in the place of the real one."""

    def use(*turns: Callable[[Tree], object] | Callable[[str], str]) -> list[Tree]:
        seen: list[Tree] = []

        def edit(app: object, draft: Path, place: object = None) -> None:
            head, _, body = draft.read_text().partition("\n")
            assert head.startswith("// ")
            turn = turns[len(seen)]
            tree = json.loads(body) if body.lstrip().startswith("{") and "broken" not in body else {}
            seen.append(json.loads(json.dumps(tree)))
            changed = turn(tree) if tree else turn(body)  # type: ignore[arg-type]
            draft.write_text(f"{head}\n{changed if isinstance(changed, str) else json.dumps(tree)}\n")

        monkeypatch.setattr(external_editor, "edit", edit)
        return seen

    return use


def operators(model: Model) -> list[str]:
    """Those of the nodes of the outer graph."""
    assert model.graph is not None
    return [node.op_type or "" for node in model.graph.node]


def keys(tree: Tree) -> list[str]:
    return [key for key in tree if key != "format"]


def ranged(change: Callable[[list[Tree]], Sequence[Tree]], key: str = "/graph/node/1-3") -> Callable[[Tree], None]:
    """Changes the list of a range."""

    def turn(tree: Tree) -> None:
        tree[key] = change(tree[key])

    return turn


def node(operator: str, made: str, *taken: str) -> Tree:
    return {"op_type": operator, "output": [made], "input": list(taken)}


async def chosen(found: Bench, *, pressed: Sequence[str] = ("j", "v", "j", "j", "V")) -> None:
    """Selects nodes 1, 2 and 3, and opens the editor."""
    await found.press(*pressed)
    await found.press("E")


CHANGES: list[tuple[str, Callable[[list[Tree]], Sequence[Tree]], list[str], int]] = [
    ("more come back than went", lambda nodes: [*nodes[:2], node("Floor", "m", "c"), dict(nodes[2], input=["m"])],
     ["Relu", "Neg", "Abs", "Floor", "Exp", "Tanh"], 0),
    ("fewer", lambda nodes: [node("Sin", "d", "a")], ["Relu", "Sin", "Tanh"], 0),
    ("in another order", lambda nodes: [dict(nodes[1], input=["a"], output=["b"]),
                                       dict(nodes[0], input=["b"], output=["c"]), nodes[2]],
     ["Relu", "Abs", "Neg", "Exp", "Tanh"], 0),
    ("none", lambda nodes: [], ["Relu", "Tanh"], 1),
]  # fmt: skip


@pytest.mark.parametrize(("what", "change", "expected", "errors"), CHANGES, ids=[each[0] for each in CHANGES])
def test_nodes_that_follow_each_other_are_replaced_as_one_range(
    path: Path,
    edited: Callable[..., list[Tree]],
    what: str,
    change: Callable[[list[Tree]], Sequence[Tree]],
    expected: list[str],
    errors: int,
) -> None:
    seen = edited(ranged(change))

    async def flow(found: Bench) -> None:
        before = bytes_of(found.session.model)
        await chosen(found)
        assert keys(seen[0]) == ["/graph/node/1-3"]
        assert [each["op_type"] for each in seen[0]["/graph/node/1-3"]] == ["Neg", "Abs", "Exp"]
        assert "Make this change?" in found.text
        assert ("It brings 1 new error" in found.text) == bool(errors)
        await found.press("y")
        assert operators(found.session.model) == expected
        assert len(found.session.history) == 1
        await found.press("u")
        assert bytes_of(found.session.model) == before

    run(path, flow)


def test_nodes_with_a_gap_between_them_are_a_block_for_each_run(path: Path, edited: Callable[..., list[Tree]]) -> None:
    seen = edited(lambda tree: tree["/graph/node/0-1"].reverse())

    async def flow(found: Bench) -> None:
        # In the order in which they stand, not in that in which they were selected.
        await chosen(found, pressed=("G", "v", "g", "g", "j", "v", "k", "v"))
        assert keys(seen[0]) == ["/graph/node/0-1", "/graph/node/4"]
        assert seen[0]["/graph/node/4"]["op_type"] == "Tanh"
        await found.press("y")
        assert operators(found.session.model) == ["Neg", "Relu", "Abs", "Exp", "Tanh"]

    run(path, flow)


def test_nodes_of_two_graphs_are_a_block_for_each(path: Path, edited: Callable[..., list[Tree]]) -> None:
    saved(path, model_of(INNER))
    inner = "/graph/node/1/attribute/then_branch/g/node/0-1"

    def turn(tree: Tree) -> None:
        tree[inner] = [node("Sin", "t", "a")]
        tree["/graph/node/0"]["op_type"] = "Floor"

    seen = edited(turn)

    async def flow(found: Bench) -> None:
        await found.press("v")
        assert found.bench.go(inner.replace("0-1", "0"))
        await found.press("v", "j", "v", "E")
        assert keys(seen[0]) == ["/graph/node/0", inner]
        await found.press("y")
        assert operators(found.session.model) == ["Floor", "If"]
        scope = next(each for each in found.session.index.scopes if "then_branch" in each.address)
        assert [each.op_type for each in scope.graph.node] == ["Sin"]

    run(path, flow)


def test_a_range_in_a_subgraph_is_one_block(path: Path, edited: Callable[..., list[Tree]]) -> None:
    saved(path, model_of(INNER))
    inner = "/graph/node/1/attribute/then_branch/g/node/0-1"
    seen = edited(ranged(lambda nodes: [nodes[0], node("Cos", "r", "s"), dict(nodes[1], input=["r"])], inner))

    async def flow(found: Bench) -> None:
        assert found.bench.go(inner.replace("0-1", "0"))
        await found.settle()
        await found.press("2", "v", "E")
        assert keys(seen[0]) == [inner]
        await found.press("y")
        scope = next(each for each in found.session.index.scopes if "then_branch" in each.address)
        assert [each.op_type for each in scope.graph.node] == ["Neg", "Cos", "Abs"]

    run(path, flow)


def test_a_mistake_in_a_range_opens_the_editor_again_with_what_was_typed(
    path: Path, edited: Callable[..., list[Tree]]
) -> None:
    typed: list[str] = []

    def mend(text: str) -> str:
        typed.append(text)
        return text.replace("broken", '"Sin"')

    seen = edited(lambda tree: json.dumps(tree).replace('"Abs"', "broken"), mend)

    async def flow(found: Bench) -> None:
        await chosen(found)
        assert "The text has 1 mistake" in found.text
        assert operators(found.session.model)[2] == "Abs"
        await found.press("enter")
        assert len(seen) == 2
        assert "broken" in typed[0]
        await found.press("y")
        assert operators(found.session.model) == ["Relu", "Neg", "Sin", "Exp", "Tanh"]

    run(path, flow)


def test_a_range_that_was_kept_is_taken_up_with_its_place(path: Path, edited: Callable[..., list[Tree]]) -> None:
    seen = edited(ranged(lambda nodes: [node("Sin", "d", "a")]), ranged(lambda nodes: nodes))

    async def flow(found: Bench) -> None:
        await chosen(found)
        await found.press("k")
        assert operators(found.session.model) == ["Relu", "Neg", "Abs", "Exp", "Tanh"]
        await found.press(":")
        await found.type("take-up")
        assert "/graph/node/1-3" in found.text
        await found.press("enter")
        assert len(seen) == 2
        await found.press("y")
        assert operators(found.session.model) == ["Relu", "Sin", "Tanh"]

    run(path, flow)

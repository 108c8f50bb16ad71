"""`E`: one node or several as text in the person's editor, and what comes back in their place as one step."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import onnxjson
from onnxjson.model.document import Model
from onnxjson.model.types import format_type
from onnxjson_tui.shell import terminal
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run
from tests.tui.sessions import bytes_of, saved
from tests.tui.test_form_screen import until

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

        monkeypatch.setattr(terminal, "edit_file", edit)
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


async def chosen(bench: Bench, *, pressed: Sequence[str] = ("j", "v", "j", "j", "V")) -> None:
    """Selects nodes 1, 2 and 3, and opens the editor."""
    await bench.press(*pressed)
    await bench.press("E")


TYPED = """g (float[2,3,4] x) => (float[4,3,2] y) <float[4,2,3] t, float[4,2,3] r> {
    t = Transpose<perm = [2, 0, 1]>(x)
    r = Relu(t)
    y = Transpose<perm = [0, 2, 1]>(r)
}"""


def test_types_follow_a_node_that_is_edited_as_text(path: Path, edited: Callable[..., list[Tree]]) -> None:
    saved(path, model_of(TYPED))

    def turn(tree: Tree) -> None:
        tree["/graph/node/0"]["attribute"]["perm"] = [0, 1, 2]

    edited(turn)

    async def flow(bench: Bench) -> None:
        await bench.press("E")
        assert "Make this change?" in bench.text
        await bench.press("y")
        graph = bench.session.model.graph
        assert graph is not None
        types = {each.name: format_type(each.type) for each in (*graph.value_info, *graph.output) if each.type}
        assert types == {"t": "float32[2,3,4]", "r": "float32[2,3,4]", "y": "float32[2,4,3]"}
        await bench.press("u")
        assert bench.session.model == onnxjson.load(path)

    run(path, flow)


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

    async def flow(bench: Bench) -> None:
        before = bytes_of(bench.session.model)
        await chosen(bench)
        assert keys(seen[0]) == ["/graph/node/1-3"]
        assert [each["op_type"] for each in seen[0]["/graph/node/1-3"]] == ["Neg", "Abs", "Exp"]
        assert "Make this change?" in bench.text
        assert ("It adds 1 new error" in bench.text) == bool(errors)
        await bench.press("y")
        assert operators(bench.session.model) == expected
        assert len(bench.session.history) == 1
        await bench.press("u")
        assert bytes_of(bench.session.model) == before

    run(path, flow)


def test_nodes_with_a_gap_between_them_are_a_block_for_each_run(path: Path, edited: Callable[..., list[Tree]]) -> None:
    seen = edited(lambda tree: tree["/graph/node/0-1"].reverse())

    async def flow(bench: Bench) -> None:
        # In the order in which they stand, not in that in which they were selected.
        await chosen(bench, pressed=("G", "v", "g", "g", "j", "v", "k", "v"))
        assert keys(seen[0]) == ["/graph/node/0-1", "/graph/node/4"]
        assert seen[0]["/graph/node/4"]["op_type"] == "Tanh"
        await bench.press("y")
        assert operators(bench.session.model) == ["Neg", "Relu", "Abs", "Exp", "Tanh"]

    run(path, flow)


def test_nodes_of_two_graphs_are_a_block_for_each(path: Path, edited: Callable[..., list[Tree]]) -> None:
    saved(path, model_of(INNER))
    inner = "/graph/node/1/attribute/then_branch/g/node/0-1"

    def turn(tree: Tree) -> None:
        tree[inner] = [node("Sin", "t", "a")]
        tree["/graph/node/0"]["op_type"] = "Floor"

    seen = edited(turn)

    async def flow(bench: Bench) -> None:
        await bench.press("v")
        assert bench.bench.go(inner.replace("0-1", "0"))
        await bench.press("v", "j", "v", "E")
        assert keys(seen[0]) == ["/graph/node/0", inner]
        await bench.press("y")
        assert operators(bench.session.model) == ["Floor", "If"]
        scope = next(each for each in bench.session.index.scopes if "then_branch" in each.address)
        assert [each.op_type for each in scope.graph.node] == ["Sin"]

    run(path, flow)


def test_a_range_in_a_subgraph_is_one_block(path: Path, edited: Callable[..., list[Tree]]) -> None:
    saved(path, model_of(INNER))
    inner = "/graph/node/1/attribute/then_branch/g/node/0-1"
    seen = edited(ranged(lambda nodes: [nodes[0], node("Cos", "r", "s"), dict(nodes[1], input=["r"])], inner))

    async def flow(bench: Bench) -> None:
        assert bench.bench.go(inner.replace("0-1", "0"))
        await bench.settle()
        await bench.press("2", "v", "E")
        assert keys(seen[0]) == [inner]
        await bench.press("y")
        scope = next(each for each in bench.session.index.scopes if "then_branch" in each.address)
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

    async def flow(bench: Bench) -> None:
        await chosen(bench)
        assert "The text has 1 mistake" in bench.text
        assert operators(bench.session.model)[2] == "Abs"
        await bench.press("enter")
        assert len(seen) == 2
        assert "broken" in typed[0]
        await bench.press("y")
        assert operators(bench.session.model) == ["Relu", "Neg", "Sin", "Exp", "Tanh"]

    run(path, flow)


def test_a_range_that_was_kept_is_taken_up_with_its_place(path: Path, edited: Callable[..., list[Tree]]) -> None:
    seen = edited(ranged(lambda nodes: [node("Sin", "d", "a")]), ranged(lambda nodes: nodes))

    async def flow(bench: Bench) -> None:
        await chosen(bench)
        await bench.press("k")
        assert operators(bench.session.model) == ["Relu", "Neg", "Abs", "Exp", "Tanh"]
        await bench.press("E")
        assert "/graph/node/1-3" in bench.text
        await bench.press("enter")
        assert len(seen) == 2
        await bench.press("y")
        assert operators(bench.session.model) == ["Relu", "Sin", "Tanh"]

    run(path, flow)


def renamed(tree: Tree) -> None:
    """Another operator, which takes and makes the same."""
    tree["/graph/node/2"]["op_type"] = "Sin"


async def kept_text(bench: Bench) -> None:
    """Edits node 2, and keeps the text."""
    await bench.press("2", "G", "E")
    # Keys typed before the editor opens are dropped.
    await until(bench, lambda: bench.app.screen is not bench.bench)
    await bench.press("k")
    assert operators(bench.session.model) == ["Relu", "Neg", "Abs", "Exp", "Tanh"]


async def taken_up(found: Bench) -> None:
    await found.press("E")


def test_a_kept_text_follows_its_node_to_where_it_stands_now(path: Path, edited: Callable[..., list[Tree]]) -> None:
    seen = edited(renamed, lambda tree: None)

    async def flow(bench: Bench) -> None:
        await kept_text(bench)
        await bench.press("g", "g", "j", "d", "enter")
        assert operators(bench.session.model) == ["Relu", "Abs", "Exp", "Tanh"]
        await taken_up(bench)
        assert "Abs c" in bench.text
        assert re.search(r"seconds? ago  /graph/node/2", bench.text)
        await bench.press("enter")
        assert "/graph/node/2 in the text is now /graph/node/1" in bench.text
        await bench.press("y")
        assert operators(bench.session.model) == ["Relu", "Sin", "Exp", "Tanh"]
        assert len(seen) == 2

    run(path, flow)


def test_a_kept_text_is_put_over_no_other_node_where_its_own_is_gone(
    path: Path, edited: Callable[..., list[Tree]]
) -> None:
    seen = edited(renamed)

    async def flow(bench: Bench) -> None:
        await kept_text(bench)
        await bench.press("d", "enter")
        assert operators(bench.session.model) == ["Relu", "Neg", "Exp", "Tanh"]
        await taken_up(bench)
        await bench.press("enter")
        assert "the node of this text moved or changed" in bench.footer
        assert len(seen) == 1
        assert operators(bench.session.model) == ["Relu", "Neg", "Exp", "Tanh"]
        await bench.press("u")
        await taken_up(bench)
        assert "Abs c" in bench.text

    run(path, flow)


def test_a_kept_range_between_whose_nodes_another_stands_now_is_refused(
    path: Path, edited: Callable[..., list[Tree]]
) -> None:
    seen = edited(ranged(lambda nodes: [node("Sin", "d", "a")]))

    async def flow(bench: Bench) -> None:
        await chosen(bench)
        await bench.press("k", "escape", ":")
        await bench.type("add-node Floor --input b --output extra --insert")
        assert operators(bench.session.model) == ["Relu", "Neg", "Floor", "Abs", "Exp", "Tanh"]
        await taken_up(bench)
        await bench.press("enter")
        assert "they are no longer adjacent" in bench.footer
        assert len(seen) == 1

    run(path, flow)


def test_a_text_of_a_subgraph_follows_the_node_that_owns_it(path: Path, edited: Callable[..., list[Tree]]) -> None:
    saved(path, model_of(INNER.replace("a = Relu(x)", "z = Exp(x)\n a = Relu(x)")))
    inner = "/graph/node/2/attribute/then_branch/g/node/0"

    def turn(tree: Tree) -> None:
        tree[inner]["op_type"] = "Floor"

    edited(turn, lambda tree: None)

    async def flow(bench: Bench) -> None:
        assert bench.bench.go(inner)
        await bench.settle()
        await bench.press("E")
        await bench.press("k", "-", "g", "g", "d")
        await bench.settle()
        await taken_up(bench)
        await bench.press("enter", "y")
        assert operators(bench.session.model) == ["Relu", "If"]
        scope = next(each for each in bench.session.index.scopes if "then_branch" in each.address)
        assert [each.op_type for each in scope.graph.node] == ["Floor", "Abs"]

    run(path, flow)


def test_only_what_changed_is_shown_however_the_editor_breaks_the_lines(
    path: Path, edited: Callable[..., list[Tree]]
) -> None:
    edited(lambda tree: json.dumps(tree, indent=4).replace('"Neg"', '"Sin"'))

    async def flow(bench: Bench) -> None:
        await chosen(bench)
        shown = [line.strip(" │▌|") for line in bench.lines]
        assert [line for line in shown if line.startswith(("-", "+")) and '"' in line] == [
            '-  {"op_type": "Neg", "output": ["b"],',
            '+  {"op_type": "Sin", "output": ["b"],',
        ]
        assert "//" not in bench.text

    run(path, flow)


@pytest.mark.parametrize("is_removed", [True, False])
def test_an_editor_that_leaves_nothing_does_not_take_the_rounds_before_with_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_removed: bool
) -> None:
    turns: list[str] = []

    def edit(app: object, draft: Path, place: object = None) -> None:
        turns.append(draft.read_text())
        if len(turns) == 1:
            draft.write_text(turns[0].replace('"Relu"', '"Sin"'))
        elif len(turns) == 2 and is_removed:
            shutil.rmtree(draft.parent)
        elif len(turns) == 2:
            draft.write_text("\n")

    monkeypatch.setattr(terminal, "edit_file", edit)

    async def flow(bench: Bench) -> None:
        await bench.press("E")
        await bench.press("e")
        gone = "the editor removed the text" if is_removed else "the text is empty"
        assert f"{gone}; the model is unchanged, and E opens your previous text again" in bench.footer
        await taken_up(bench)
        await bench.press("enter", "y")
        assert '"Sin"' in turns[2]
        assert operators(bench.session.model)[0] == "Sin"

    run(path, flow)


def test_a_text_that_the_editor_removes_at_once_is_no_text_to_keep(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "edit_file", lambda app, draft, place=None: draft.unlink())

    async def flow(bench: Bench) -> None:
        await bench.press("E")
        assert "the editor removed the text, so the model is unchanged" in bench.footer
        await taken_up(bench)
        assert "no draft:" not in bench.text

    run(path, flow)

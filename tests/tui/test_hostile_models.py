"""Models that somebody made to hurt: every key, every page; nothing crashes, acts or reaches the terminal raw."""

import asyncio
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onnxjson.model.document import Attribute, Function, Graph, Model, Node, OperatorSetId, Tensor, ValueInfo
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action
from onnxjson_tui.workbench.app import ACTIONS, WorkbenchApp
from tests.tui.benches import Bench, bench
from tests.tui.screens import send
from tests.tui.sessions import saved

NAMES = (
    "x[/]",
    "[@click=app.bell]z[/]",
    "[red]not red[/red]",
    "\x1b]0;title\x07\x1b[31mred\x1b[2J",
    "\x9b31m c1",
    "right‮to left⁦",
    "two\nlines\r\n\tand a tab",
    "wide 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
    "o̡̢̧̨̱̲̳̹̺̻̼ombining",
    "long" * 2500,
    "$(reboot) `reboot` ; rm -rf /",
    "\udc80 half",
)


DEEPEST = 31
"""Graphs within each other, as many as protobuf can read."""


def _model(graph: Graph | None, **more: object) -> Model:
    return Model(ir_version=10, opset_import=(OperatorSetId("", 20),), graph=graph, **more)  # type: ignore[arg-type]


def _node(inputs: tuple[str, ...], outputs: tuple[str, ...], name: str = "", operator: str = "Relu") -> Node:
    return Node(inputs, outputs, name or None, operator)


def _named() -> Model:
    values = [f"{name} value" for name in NAMES]
    nodes = [
        Node(
            (before,), (after,), name, name, (Attribute(name=name, type=3, s=name.encode(errors="replace")),), name,
            None if place % 2 else name,
        )
        for place, (before, after, name) in enumerate(zip(["x[/]", *values], values, NAMES, strict=False))
    ]  # fmt: skip
    tensors = tuple(
        [Tensor((1,), data_type=1, raw_data=b"\0" * 4, name=f"{name} tensor", doc_string=name) for name in NAMES]
    )
    functions = tuple([
        Function(name, (name,), (name,), node=(_node((name,), (name,), name, name),), doc_string=name) for name in NAMES
    ])  # fmt: skip
    graph = Graph(tuple(nodes), NAMES[0], tensors, NAMES[1], (ValueInfo("x[/]"),), (ValueInfo(values[-1]),))
    return _model(graph, functions=functions, producer_name=NAMES[3], doc_string=NAMES[3])


def _cyclic() -> Model:
    nodes = (_node(("c",), ("a",)), _node(("a",), ("b",)), _node(("b", "b"), ("c",)), _node(("d",), ("d",)))
    return _model(Graph(nodes, "g", output=(ValueInfo("c"),)))


def _undefined() -> Model:
    nodes = (_node(("nothing", "", "nobody"), ("",)), Node((), (), None, None), _node(("gone",), ("y", "y")))
    return _model(Graph(nodes, None, input=(ValueInfo(None),), output=(ValueInfo("never made"), ValueInfo(None))))


def _deep_names() -> Model:
    name = "/".join(f"scope{level}" for level in range(1200))
    return _model(Graph(tuple([_node(("x",), (f"y{place}",), f"{name}/{place}") for place in range(3)]), "g"))


def _deep_graphs() -> Model:
    graph = Graph((_node(("x",), ("y",)),), "innermost", output=(ValueInfo("y"),))
    for level in range(DEEPEST):
        branch = Attribute(name="then_branch", type=5, g=graph)
        node = Node(("condition",), (f"y{level}",), f"if{level}", "If", (branch,))
        graph = Graph((node,), f"g{level}", output=(ValueInfo(f"y{level}"),))
    return _model(graph)


def _twice() -> Model:
    nodes = tuple([_node(("x",), ("same",), "same") for _ in range(4)])
    tensors = (Tensor((2,), data_type=1, raw_data=b"\0" * 3, name="same"), Tensor((-1,), data_type=99, name="same"))
    return _model(
        Graph(nodes, "same", tensors, input=(ValueInfo("x"), ValueInfo("x")), output=(ValueInfo("same"),) * 2)
    )


MODELS: dict[str, Callable[[], Model]] = {
    "names": _named,
    "cycle": _cyclic,
    "undefined": _undefined,
    "no graph": lambda: _model(None),
    "empty": Model,
    "no nodes": lambda: _model(Graph((), "g")),
    "1,200 scopes": _deep_names,
    "graphs in graphs": _deep_graphs,
    "the same name": _twice,
}

FILES = {"no graph": "m.onnx.json", "empty": "m.onnx.json"}
"""A binary without a graph is taken for another kind of file."""

SPARED = frozenset({"suspend", "quit", "edit-text"})
"""Actions that end the program, or hand the terminal to another one."""


async def _press(bench: Bench, *keys: str) -> None:
    """Presses keys, and waits until nothing is left to do that is soon done."""
    for key in keys:
        send(bench.app, key)
    for _ in range(200):
        await bench.pilot.pause(0)
        if bench.app.keys.is_idle:
            break
    await bench.pilot.pause(0)
    if bench.bench.jobs.running:
        await bench.pilot.pause(0.02)


def _keys(action: Action[Any]) -> list[str]:
    return action.keys[0].split(" ")


class _Seen:
    """Looks at everything that is drawn."""

    def __init__(self, found: Bench) -> None:
        self._found = found

    def look(self, what: str) -> None:
        """No character of a strip is one that a terminal acts on, and no row is longer than the terminal."""
        width = self._found.app.size.width
        strips = self._found.app.screen._compositor.render_strips()
        for strip in strips:
            text = "".join([segment.text for segment in strip])
            raw = [each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
            assert not raw, (what, raw, text)
            assert strip.cell_length == width, (what, strip.cell_length, text)
        assert not self._found.app.failures, (what, self._found.app.failures)

    async def leave_screens(self) -> None:
        """Back to the workbench."""
        app: WorkbenchApp = self._found.app
        for _ in range(8):
            if isinstance(app.screen, Workbench) and not self._found.bench.prompt.is_asking:
                return
            await _press(self._found, "escape")
            self.look("after escape")
        raise AssertionError(f"escape does not lead out of {app.screen}")


@pytest.fixture(autouse=True)
def _no_bell(monkeypatch: pytest.MonkeyPatch) -> None:
    def ring(app: WorkbenchApp) -> None:
        raise AssertionError("a name of the model acted")

    monkeypatch.setattr(WorkbenchApp, "bell", ring)


_ALWAYS = ("names", "undefined", "empty")


@pytest.mark.parametrize(
    "name", [name if name in _ALWAYS else pytest.param(name, marks=pytest.mark.exhaustive) for name in MODELS]
)
def test_every_page_at_two_sizes_and_every_key(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path / FILES.get(name, "m.onnx"), MODELS[name]())

    async def go() -> None:
        async with bench(path, (120, 40)) as found:
            seen = _Seen(found)
            seen.look("at the start")
            for size in ((120, 40), (80, 24)):
                await found.pilot.resize_terminal(*size)
                await found.settle()
                seen.look(f"at {size}")
                for page in found.bench.drawer.pages:
                    found.bench.drawer.open(page)
                    await found.settle()
                    seen.look(f"page {page} at {size}")
            for action in ACTIONS:
                if action.id in SPARED or not action.keys:
                    continue
                found.bench.focus_pane("nodes" if action.scope == "everywhere" else action.scope)
                await _press(found, *_keys(action))
                seen.look(action.id)
                await seen.leave_screens()
            await found.settle()
            seen.look("at the end")

    asyncio.run(go())


@pytest.mark.parametrize("name", [name for name in MODELS if name not in _ALWAYS])
def test_every_page_is_drawn(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path / FILES.get(name, "m.onnx"), MODELS[name]())

    async def go() -> None:
        async with bench(path, (80, 24)) as found:
            seen = _Seen(found)
            for page in found.bench.drawer.pages:
                found.bench.drawer.open(page)
                await found.settle()
                seen.look(f"page {page}")

    asyncio.run(go())

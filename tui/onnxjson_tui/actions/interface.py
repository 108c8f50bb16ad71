"""Inputs and outputs of the model: a list of them, and the edits made from it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from onnxjson.editing.interface import RemoveInput, RemoveOutput
from onnxjson.model.display import counted, visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index, Scope
from onnxjson_tui.actions.editing import ask, make
from onnxjson_tui.actions.forms import fill_in
from onnxjson_tui.keys.action import Action, Given
from onnxjson_tui.names.editable_names import parse_typed, rename_value, typed, value_mistake, value_selector
from onnxjson_tui.rows.interface import InterfaceRows, Port, ports_of
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.dialogs import Dialog, key_spans
from onnxjson_tui.widgets.lines import LineList

_ACTIONS_BY_KEY: Final = {
    "s": ("shape", "shape"),
    "x": ("dimension", "size"),
    "r": ("rename", "rename"),
    "d": ("remove", "remove"),
    "a": ("add-input", "add in"),
    "A": ("add-output", "add out"),
}
"""For each key the action, and a word for it."""

_NEED_PORT: Final = frozenset({"shape", "dimension", "rename", "remove"})


class PortAction(NamedTuple):
    """What to do, and with which input or output."""

    action: str
    port: Port | None
    number: int
    """Row of the list."""


class InterfaceScreen(Dialog[PortAction | None]):
    """Lists inputs and outputs; returns what to do with one, or None."""

    def __init__(self, ports: list[Port], *, cursor: int = 0, readonly: bool = False) -> None:
        super().__init__()
        self._ports = ports
        self._cursor = cursor
        self._readonly = readonly

    def on_mount(self) -> None:
        """Focus the list."""
        inputs = sum(port.kind == "input" for port in self._ports)
        self.show_title(f"{counted(inputs, 'input')}, {counted(len(self._ports) - inputs, 'output')}")
        keys = [] if self._readonly else [(key, word) for key, (_, word) in _ACTIONS_BY_KEY.items()]
        self.show_hint(*key_spans([*keys, ("esc", "close")]))
        lines = self.query_one(LineList)
        lines.show(InterfaceRows(self._ports), self._cursor)
        lines.focus()

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Edit the shape."""
        self._choose("shape")

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """Choose an action, close."""
        return {
            **{key: partial(self._choose, action) for key, (action, _) in _ACTIONS_BY_KEY.items()},
            "enter": partial(self._choose, "shape"),
            **dict.fromkeys(("escape", "q", "i", "ctrl+c"), partial(self.dismiss, None)),
        }

    def _choose(self, action: str) -> None:
        number = self.query_one(LineList).cursor
        port = self._ports[number] if number < len(self._ports) else None
        if not self._readonly and (port is not None or action not in _NEED_PORT):
            self.dismiss(PortAction(action, port, number))


async def interface(bench: Bench, given: Given) -> None:
    """Show the inputs and outputs, again after each edit, until the user closes the list."""
    cursor = 0
    while True:
        screen = InterfaceScreen(ports_of(bench.session.index), cursor=cursor, readonly=bench.session.readonly)
        chosen = await bench.app.push_screen_wait(screen)
        if chosen is None:
            return
        cursor = chosen.number
        try:
            await _do(bench, chosen)
        except OnnxJsonError as error:
            bench.failed(error)
            return


async def _do(bench: Bench, chosen: PortAction) -> None:
    port = chosen.port
    if chosen.action in ("add-input", "add-output"):
        await fill_in(bench, chosen.action)
        return
    scope = bench.session.index.main
    if port is None or scope is None:
        return
    words = _words(bench.session.index, scope, port.name)
    match chosen.action:
        case "shape":
            await fill_in(bench, "set-shape", {"tensor": words, "shape": _shape(scope, port.name)}, focus="shape")
        case "dimension":
            name = next((each for each in _shape(scope, port.name).split(",") if each and not each.isdigit()), "")
            if name and name != "?":
                await fill_in(bench, "set-dim", {"dim": name}, focus="size")
            else:
                await fill_in(bench, "set-dim", {"tensor": words, "axis": "0"}, focus="size")
        case "rename":
            await _rename(bench, scope, port)
        case "remove":
            is_input = port.kind == "input"
            await make(bench, RemoveInput(tensor=port.name) if is_input else RemoveOutput(tensor=port.name))


async def _rename(bench: Bench, scope: Scope, port: Port) -> None:
    index = bench.session.index
    answer = await ask(
        bench,
        f"name of the {port.kind}: ",
        text=typed(port.name) if port.name else "",
        hint="its consumers are updated",
        mistake=lambda text: value_mistake(index, parse_typed(text), port.name),
    )
    if answer is not None and parse_typed(answer) != port.name:
        await make(bench, rename_value(index, scope, port.name, parse_typed(answer)))


def _words(index: Index, scope: Scope, name: str) -> str:
    return value_selector(scope, name, is_unique=sum([each.defines(name) for each in index.scopes]) == 1)


def _shape(scope: Scope, name: str) -> str:
    """Return the shape of a value as the form expects it; "" if it is unknown."""
    found = scope.types.get(name)
    shape = found.tensor_type.shape if found is not None and found.tensor_type is not None else None
    if shape is None:
        return ""
    sizes = [str(dim.dim_value) if dim.dim_value is not None else dim.dim_param or "?" for dim in shape.dim]
    return ",".join(sizes) if all(visible(size, None) == size and "," not in size for size in sizes) else ""


ACTIONS: Final = (
    Action("interface", "inputs, outputs and their shapes", ("i",), interface, "Edit", footer="in/out"),
)  # fmt: skip

"""What goes in and out of the model: shown in a list, edited from there."""

from typing import TYPE_CHECKING, Final

from onnxjson.display import visible
from onnxjson.edits.interface import RemoveInput, RemoveOutput
from onnxjson.errors import OnnxJsonError
from onnxjson.index import Index, Scope
from onnxjson_tui.action import Action, Given
from onnxjson_tui.actions.asking import ask
from onnxjson_tui.actions.editing import made
from onnxjson_tui.actions.forms import fill_in
from onnxjson_tui.forms.changes import rename_value, value_mistake
from onnxjson_tui.forms.words import meant, typed, value_words
from onnxjson_tui.rows.interface import Port, ports_of
from onnxjson_tui.screens.interface import InterfaceScreen, Wish

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


async def interface(bench: "Workbench", given: Given) -> None:
    """Shows the list again after each edit, until the person is done."""
    cursor = 0
    while True:
        screen = InterfaceScreen(ports_of(bench.session.index), cursor=cursor, readonly=bench.session.readonly)
        wish = await bench.app.push_screen_wait(screen)
        if wish is None:
            return
        cursor = wish.number
        try:
            await _do(bench, wish)
        except OnnxJsonError as error:
            bench.failed(error)
            return


async def _do(bench: "Workbench", wish: Wish) -> None:
    port = wish.port
    if wish.way in ("add-input", "add-output"):
        await fill_in(bench, wish.way)
        return
    scope = next((each for each in bench.session.index.scopes if each.kind == "main"), None)
    if port is None or scope is None:
        return
    words = _words(bench.session.index, scope, port.name)
    match wish.way:
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
            await made(bench, RemoveInput(tensor=port.name) if is_input else RemoveOutput(tensor=port.name))


async def _rename(bench: "Workbench", scope: Scope, port: Port) -> None:
    index = bench.session.index
    answer = await ask(
        bench,
        f"name of the {port.kind}: ",
        text=typed(port.name) if port.name else "",
        hint="whoever takes it follows",
        mistake=lambda text: value_mistake(index, meant(text), port.name),
    )
    if answer is not None and meant(answer) != port.name:
        await made(bench, rename_value(index, scope, port.name, meant(answer)))


def _words(index: Index, scope: Scope, name: str) -> str:
    return value_words(scope, name, is_unique=sum([each.defines(name) for each in index.scopes]) == 1)


def _shape(scope: Scope, name: str) -> str:
    """The shape of a value as a person types it; "" where it is not known."""
    found = scope.types.get(name)
    shape = found.tensor_type.shape if found is not None and found.tensor_type is not None else None
    if shape is None:
        return ""
    sizes = [str(dim.dim_value) if dim.dim_value is not None else dim.dim_param or "?" for dim in shape.dim]
    return ",".join(sizes) if all(visible(size, None) == size and "," not in size for size in sizes) else ""


ACTIONS: Final = (Action("interface", "inputs, outputs and their shapes", ("i",), interface, "Edit", footer="in/out"),)

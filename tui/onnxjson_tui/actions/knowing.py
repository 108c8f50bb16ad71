"""Problems, tensors, documentation, the surroundings of a node."""

from typing import TYPE_CHECKING, Final

from onnxjson.addresses import attribute_segments, escape
from onnxjson.display import visible
from onnxjson.document import SparseTensor, Tensor
from onnxjson.errors import OnnxJsonError
from onnxjson.index import Index, NodeRef
from onnxjson.rendering.constants import tensor_type_text
from onnxjson.rendering.tables import cells, padded
from onnxjson.rendering.values import value_type
from onnxjson.selectors import TensorRef, select_tensor
from onnxjson_tui.action import Action, Given
from onnxjson_tui.pages.problems import ProblemsPage
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.screens.choosing import PickerScreen
from onnxjson_tui.screens.documentation import DocumentationScreen, operator_lines
from onnxjson_tui.screens.neighbourhood import NeighbourhoodScreen

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


async def tensor(bench: "Workbench", given: Given) -> None:
    """Shows a tensor of the node under the cursor; asks which one where there are several constants."""
    here = bench.here
    if here is None:
        bench.say("there is no node here")
        return
    found = tensors_of(bench, here)
    if not found:
        bench.say("the node takes and makes nothing")
        return
    constants = [each for each in found if each[1].tensor is not None]
    chosen: str | None = "0"
    if len(constants) != 1 or given.number is not None:
        most = max([cells(label) for label, _, _ in found])
        choices = [
            Choice(str(place), f"{padded(label, most)}  {visible(ref.name, 300)}", detail)
            for place, (label, ref, detail) in enumerate(found)
        ]
        chosen = await bench.app.push_screen_wait(PickerScreen("Which tensor?", choices))
    else:
        found = constants
    if chosen is not None:
        page = _tensor_page(bench, opened=True)
        page.show_tensor(found[int(chosen)][1])
        bench.focus_pane("drawer")


def tensors_of(bench: "Workbench", here: NodeRef) -> list[tuple[str, TensorRef, str]]:
    """What a node takes, has in attributes and makes, constants first; each with its place and its type, visible."""
    index = bench.session.index
    found: list[tuple[str, TensorRef, str]] = []
    for segment, attribute in zip(attribute_segments(here.node.attribute), here.node.attribute, strict=True):
        address = f"{here.address}/attribute/{escape(segment)}"
        held: list[tuple[str, Tensor | SparseTensor]] = [
            (f"{address}/{field}", value)
            for field, value in (("t", attribute.t), ("sparse_tensor", attribute.sparse_tensor))
            if value is not None
        ]
        held += [(f"{address}/tensors/{place}", each) for place, each in enumerate(attribute.tensors)]
        for where, each in held:
            named = each.values if isinstance(each, SparseTensor) else each
            kind = (tensor_type_text(named) if named is not None else None) or ""
            ref = TensorRef((named.name if named is not None else None) or "", where, each, None)
            found.append((f"attribute {visible(attribute.name or '?', 60)}", ref, visible(kind, 100)))
    for what, names in (("in", here.node.input), ("out", here.node.output)):
        for slot, name in enumerate(names):
            ref_found = _value(bench, index, here, what, slot, name) if name else None
            if ref_found is not None:
                kind = value_type(here.scope, name) or ""
                found.append((f"{what}[{slot}]", ref_found, visible(kind, 100)))
    return sorted(found, key=lambda each: each[1].tensor is None)


def _value(bench: "Workbench", index: Index, here: NodeRef, what: str, slot: int, name: str) -> TensorRef | None:
    home = index.home(here.scope, name)
    if home is not None and (position := home.initializers.get(name)) is not None:
        return TensorRef(name, f"{home.address}/initializer/{position}", home.initializer(name), home)
    field = "input" if what == "in" else "output"
    try:
        return select_tensor(bench.session.model, index, f"@{here.address}/{field}/{slot}")
    except OnnxJsonError:
        return None  # A name that nothing defines is no tensor.


def _tensor_page(bench: "Workbench", *, opened: bool = False) -> TensorPage:
    page = bench.drawer.open("tensor") if opened else bench.drawer.pages["tensor"]
    assert isinstance(page, TensorPage)
    return page


def statistics(bench: "Workbench", given: Given) -> None:
    """Counts what the elements of the tensor are like."""
    page = bench.drawer.page
    if isinstance(page, TensorPage):
        page.count()
    else:
        bench.say("statistics are those of a tensor; t on a node shows one")


def take_slice(bench: "Workbench", given: Given) -> None:
    """Asks for a slice of the tensor, as numpy writes it."""
    page = bench.drawer.page
    if not isinstance(page, TensorPage) or not page.slice:
        bench.say("a slice is one of a tensor; t on a node shows one")
        return
    bench.prompt.ask("slice", lambda text: _sliced(bench, page, text), text=page.slice)


def _sliced(bench: "Workbench", page: TensorPage, text: str | None) -> None:
    bench.focus_pane("drawer")
    if text is not None:
        page.pick(text)


def right(bench: "Workbench", given: Given) -> None:
    """Columns further to the right."""
    if bench.drawer.page is not None:
        bench.drawer.page.sideways(given.number or 1)


def left(bench: "Workbench", given: Given) -> None:
    """Columns further to the left."""
    if bench.drawer.page is not None:
        bench.drawer.page.sideways(-(given.number or 1))


def edit_tensor(bench: "Workbench", given: Given) -> None:
    """Offers the command that sets the values, with the values that are there."""
    from onnxjson_tui.actions.commanding import run_line

    page = bench.drawer.page
    text = page.command() if isinstance(page, TensorPage) else ""
    if not text:
        bench.say("there is no constant to edit here; t on a node shows one")
        return

    def answered(line: str | None) -> None:
        bench.focus_pane("drawer")
        if line and line.strip():
            run_line(bench, line.strip())

    bench.prompt.ask(":", answered, text=text)


def check(bench: "Workbench", given: Given) -> None:
    """Asks onnx: its checker and its shape inference."""
    page = bench.drawer.open("problems")
    assert isinstance(page, ProblemsPage)
    page.ask_onnx()


def only_errors(bench: "Workbench", given: Given) -> None:
    """Hides warnings, or shows them again."""
    page = bench.drawer.page
    if isinstance(page, ProblemsPage):
        page.turn_warnings()
    else:
        bench.say("warnings are those of the problems; f5 shows them")


def read_row(bench: "Workbench", given: Given) -> None:
    """Shows all of what the row says."""
    page = bench.drawer.page
    if isinstance(page, ProblemsPage):
        page.read(bench.drawer.lines.cursor)


def documentation(bench: "Workbench", given: Given) -> None:
    """Shows what is known of the operator under the cursor."""
    here = bench.here
    if here is None:
        bench.say("there is no node here")
        return
    model = bench.session.model
    # In a thread, since onnx is imported for the first answer.
    bench.jobs.start(
        "documentation",
        "looking it up",
        lambda: operator_lines(model, here, 80),
        lambda _: bench.app.push_screen(DocumentationScreen(model, here)),
        holds_keys=True,
    )


async def neighbourhood(bench: "Workbench", given: Given) -> None:
    """Draws the nodes around the one under the cursor."""
    here = bench.here
    if here is None:
        bench.say("there is no node here")
        return
    chosen = await bench.app.push_screen_wait(
        NeighbourhoodScreen(here, bench.jobs, bench.terminal.glyphs, hops=given.number)
    )
    if chosen is not None:
        bench.go(chosen)


def enlarge_drawer(bench: "Workbench", given: Given) -> None:
    """The drawer takes all of the height, or no longer."""
    bench.toggle_class("whole-drawer")


ACTIONS: Final = (
    Action("tensor", "a tensor of the node: values, statistics", ("t",), tensor, "See", footer="tensor"),
    Action("check", "ask onnx: its checker and its shape inference", ("C",), check, "See"),
    Action("documentation", "what the operator does", ("g D",), documentation, "Graph"),
    Action(
        "neighbourhood",
        "draw what is around the node; with a count that many steps away",
        ("g v",),
        neighbourhood,
        "Graph",
    ),
    Action("statistics", "statistics and histogram of the tensor", ("S",), statistics, "See", "drawer"),
    Action("slice", "a slice of the tensor, such as [0, :, 3]", ("s",), take_slice, "See", "drawer"),
    Action("right", "columns to the right", ("l", "right"), right, "Move", "drawer"),
    Action("left", "columns to the left", ("h", "left"), left, "Move", "drawer"),
    Action("edit-tensor", "edit the values of the tensor", ("e",), edit_tensor, "Edit", "drawer", changes=True),
    Action("only-errors", "hide warnings, or show them again", ("w",), only_errors, "See", "drawer"),
    Action("read-row", "all of what the row says", ("space",), read_row, "See", "drawer"),
    Action("enlarge-drawer", "the drawer takes the whole height", ("+", "_"), enlarge_drawer, "Panes", "drawer"),
)

"""Moving the cursor and going from pane to pane."""

from typing import TYPE_CHECKING, Final

from onnxjson.operators import operator_name
from onnxjson.selector_syntax import spelled
from onnxjson_tui.action import Action, Given, Pane
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.rows.listing import OutlineLines
from onnxjson_tui.rows.outline_sections import Row

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_PANES: Final[tuple[Pane, ...]] = ("outline", "nodes", "inspector", "drawer")


def down(bench: "Workbench", given: Given) -> None:
    """To the next row, or as many as the count says."""
    bench.lines.move_by(given.number or 1)


def up(bench: "Workbench", given: Given) -> None:
    """To the row before."""
    bench.lines.move_by(-(given.number or 1))


def page_down(bench: "Workbench", given: Given) -> None:
    """A page on."""
    bench.lines.move_by(bench.lines.page * (given.number or 1))


def page_up(bench: "Workbench", given: Given) -> None:
    """A page back."""
    bench.lines.move_by(-bench.lines.page * (given.number or 1))


def half_down(bench: "Workbench", given: Given) -> None:
    """Half a page on."""
    bench.lines.move_by(max(bench.lines.page // 2, 1) * (given.number or 1))


def half_up(bench: "Workbench", given: Given) -> None:
    """Half a page back."""
    bench.lines.move_by(-max(bench.lines.page // 2, 1) * (given.number or 1))


def first(bench: "Workbench", given: Given) -> None:
    """To the first row, or to the one of the count."""
    _leap(bench, given.number or 0)


def last(bench: "Workbench", given: Given) -> None:
    """To the last row; with a count to the node of that position."""
    _leap(bench, len(bench.lines.rows) - 1 if given.number is None else given.number)


def _leap(bench: "Workbench", number: int) -> None:
    if bench.lines is bench.nodes and bench.here is not None:
        bench.session.places.jumps.leave(bench.here.address)
    bench.lines.move_to(number)


def centre(bench: "Workbench", given: Given) -> None:
    """The row of the cursor to the middle."""
    bench.lines.centre(0.5)


def to_top(bench: "Workbench", given: Given) -> None:
    """The row of the cursor to the top."""
    bench.lines.centre(0.0)


def to_bottom(bench: "Workbench", given: Given) -> None:
    """The row of the cursor to the bottom."""
    bench.lines.centre(1.0)


def next_pane(bench: "Workbench", given: Given) -> None:
    """The focus goes to the next pane."""
    _turn(bench, 1)


def previous_pane(bench: "Workbench", given: Given) -> None:
    """The focus goes to the pane before."""
    _turn(bench, -1)


def _turn(bench: "Workbench", step: int) -> None:
    panes = [each for each in _PANES if each != "drawer" or bench.drawer.is_open]
    bench.focus_pane(panes[(panes.index(bench.pane) + step) % len(panes)])


def maximize(bench: "Workbench", given: Given) -> None:
    """The list of nodes takes the whole width, or no longer."""
    bench.toggle_class("full")
    bench.nodes.focus()


def unfold(bench: "Workbench", given: Given) -> None:
    """Opens the section or scope under the cursor; where it is open, goes into it."""
    lines = outline_rows(bench)
    row = lines.row(bench.outline.cursor)
    if row is not None and row.is_open is False:
        turn_fold(bench, row)
    else:
        bench.outline.move_by(1)


def fold(bench: "Workbench", given: Given) -> None:
    """Closes the section or scope under the cursor; where it is closed, goes to the one around it."""
    lines = outline_rows(bench)
    row = lines.row(bench.outline.cursor)
    if row is None:
        return
    if row.is_open:
        turn_fold(bench, row)
    else:
        bench.outline.move_to(lines.sections.around(bench.outline.cursor))


def turn_fold(bench: "Workbench", row: Row) -> None:
    """Opens what is closed, closes what is open."""
    bench.opened ^= {row.key}
    bench.draw_outline()


def to_scope(bench: "Workbench", given: Given) -> None:
    """Goes to what the row under the cursor is about: a node, a graph, the nodes of an operator, a constant."""
    row = outline_rows(bench).row(bench.outline.cursor)
    if row is None:
        return
    match row.kind:
        case "section":
            turn_fold(bench, row)
        case "operator":
            _show_operator(bench, row)
        case "initializer":
            page = bench.drawer.open("tensor")
            assert isinstance(page, TensorPage)
            page.show_constant(row.address)
            bench.focus_pane("drawer")
        case _:
            if bench.go(row.address):
                bench.focus_pane("nodes")


def _show_operator(bench: "Workbench", row: Row) -> None:
    scope = bench.scope
    if scope is None:
        return
    domain, name = row.operator
    nodes = scope.graph.node
    found = [place for place, node in enumerate(nodes) if (node.domain or "", node.op_type or "") == (domain, name)]
    bench.show_only(spelled("op", operator_name(domain, name)), found)
    bench.focus_pane("nodes")


def outline_rows(bench: "Workbench") -> OutlineLines:
    """The rows of the outline."""
    lines = bench.outline.rows
    assert isinstance(lines, OutlineLines)
    return lines


def choose_in_drawer(bench: "Workbench", given: Given) -> None:
    """What enter means on this page."""
    if bench.drawer.page is not None:
        bench.drawer.page.choose(bench.drawer.lines.cursor)


ACTIONS: Final = (
    Action("down", "next row", ("j", "down"), down, "Move"),
    Action("up", "row before", ("k", "up"), up, "Move"),
    Action("page-down", "page on", ("pagedown", "ctrl+f"), page_down, "Move"),
    Action("page-up", "page back", ("pageup", "ctrl+b"), page_up, "Move"),
    Action("half-page-down", "half a page on", ("ctrl+d",), half_down, "Move"),
    Action("half-page-up", "half a page back", ("ctrl+u",), half_up, "Move"),
    Action("first", "first row", ("g g", "home"), first, "Move"),
    Action("last", "last row; 120G goes to node 120", ("G", "end"), last, "Move"),
    Action("centre", "the row to the middle", ("z z",), centre, "Move"),
    Action("to-top", "the row to the top", ("z t",), to_top, "Move"),
    Action("to-bottom", "the row to the bottom", ("z b",), to_bottom, "Move"),
    Action("next-pane", "to the next pane", ("tab",), next_pane, "Panes"),
    Action("previous-pane", "to the pane before", ("shift+tab",), previous_pane, "Panes"),
    Action("maximize", "the nodes take the whole width", ("+", "_"), maximize, "Panes"),
    Action("unfold", "open the section or scope", ("l", "right"), unfold, "Move", "outline"),
    Action("fold", "close it, or go to the one around", ("h", "left"), fold, "Move", "outline"),
    Action("to-scope", "go to what the row is about", ("enter",), to_scope, "Move", "outline", footer="go there"),
    Action("choose", "what enter means on this page of the drawer", ("enter",), choose_in_drawer, "See", "drawer"),
)

"""Move the cursor, go from pane to pane, open and close the pages of the drawer."""

from typing import Final

from onnxjson.model.operators import operator_name
from onnxjson.patterns.selector_terms import spelled
from onnxjson_tui.keys.action import Action, Arguments, Run
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.rows.outline_sections import OutlineLines, Row
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.graph_screen import PANES
from onnxjson_tui.shell.keyed import MOTIONS, Motion


def _mover(motion: Motion) -> Run[Bench]:
    """Return the action of a motion in the list that has the focus."""

    def run(bench: Bench, arguments: Arguments) -> None:
        motion.run(bench.lines, arguments.number or 1)

    return run


def _last(bench: Bench) -> int:
    return len(bench.lines.rows) - 1


def _leap(bench: Bench, number: int) -> None:
    if bench.lines is bench.nodes and bench.here is not None:
        bench.session.places.jumps.leave(bench.here.address)
    bench.lines.move_to(number)


def _turn(bench: Bench, step: int) -> None:
    panes = [each for each in PANES if each != "drawer" or bench.drawer.is_open]
    bench.focus_pane(panes[(panes.index(bench.pane) + step) % len(panes)])


def _unfold(bench: Bench, arguments: Arguments) -> None:
    lines = outline_rows(bench)
    row = lines.row(bench.outline.cursor)
    if row is not None and row.is_open is False:
        turn_fold(bench, row)
    else:
        bench.outline.move_by(1)


def _fold(bench: Bench, arguments: Arguments) -> None:
    lines = outline_rows(bench)
    row = lines.row(bench.outline.cursor)
    if row is None:
        return
    if row.is_open:
        turn_fold(bench, row)
    else:
        bench.outline.move_to(lines.around(bench.outline.cursor))


def turn_fold(bench: Bench, row: Row) -> None:
    """Open a closed row, close an open one."""
    bench.opened ^= {row.key}
    bench.draw_outline()


def _to_scope(bench: Bench, arguments: Arguments) -> None:
    row = outline_rows(bench).row(bench.outline.cursor)
    if row is None:
        return
    match row.kind:
        case "section":
            turn_fold(bench, row)
        case "operator":
            _show_operator(bench, row)
        case "initializer":
            bench.drawer.find(TensorPage).show_constant(row.address)
        case _:
            if bench.go(row.address):
                bench.focus_pane("nodes")


def _show_operator(bench: Bench, row: Row) -> None:
    scope = bench.scope
    if scope is None:
        return
    domain, name = row.operator
    nodes = scope.graph.node
    found = [place for place, node in enumerate(nodes) if (node.domain or "", node.op_type or "") == (domain, name)]
    bench.show_only(spelled("op", operator_name(domain, name)), found)
    bench.focus_pane("nodes")


def outline_rows(bench: Bench) -> OutlineLines:
    """Return the rows of the outline."""
    lines = bench.outline.rows
    assert isinstance(lines, OutlineLines)
    return lines


def _choose_in_drawer(bench: Bench, arguments: Arguments) -> None:
    if bench.drawer.page is not None:
        bench.drawer.page.choose(bench.drawer.lines.cursor)


def _maximize(bench: Bench, arguments: Arguments) -> None:
    bench.toggle_class("full")
    bench.nodes.focus()


def page_opener(name: str) -> Run[Bench]:
    """Return the action that opens a page of the drawer, or closes the drawer if the page is open."""

    def run(bench: Bench, arguments: Arguments) -> None:
        if bench.drawer.page is bench.drawer.pages[name]:
            close(bench, arguments)
        else:
            bench.drawer.open(name)
            bench.call_after_refresh(bench.focus_pane, "drawer")

    return run


def close(bench: Bench, arguments: Arguments) -> None:
    """Close the drawer."""
    bench.drawer.close()
    bench.focus_pane("nodes")


def _enlarge_drawer(bench: Bench, arguments: Arguments) -> None:
    bench.toggle_class("whole-drawer")


ACTIONS: Final[tuple[Action[Bench], ...]] = (
    *[Action(each.id, each.title, each.keys, _mover(each), "Move") for each in MOTIONS],
    Action("first", "first row", ("g g", "home"), lambda bench, arguments: _leap(bench, arguments.number or 0), "Move"),
    Action(
        "last", "last row; 120G goes to node 120", ("G", "end"),
        lambda bench, arguments: _leap(bench, _last(bench) if arguments.number is None else arguments.number), "Move",
    ),
    Action("to-top", "scroll the row to the top", ("z t",), lambda bench, _: bench.lines.centre(0.0), "Move"),
    Action("to-bottom", "scroll the row to the bottom", ("z b",), lambda bench, _: bench.lines.centre(1.0), "Move"),
    Action("next-pane", "next pane", ("tab",), lambda bench, _: _turn(bench, 1), "Panes"),
    Action("previous-pane", "previous pane", ("shift+tab",), lambda bench, _: _turn(bench, -1), "Panes"),
    Action("maximize", "give the nodes the whole width", ("+", "_"), _maximize, "Panes"),
    Action("unfold", "open the section or scope", ("l", "right"), _unfold, "Move", "outline"),
    Action("fold", "close it, or go to its parent", ("h", "left"), _fold, "Move", "outline"),
    Action("to-scope", "go to the subject of the row", ("enter",), _to_scope, "Move", "outline", footer="go there"),
    Action("choose", "choose the row", ("enter",), _choose_in_drawer, "See", "drawer"),
    Action("problems", "problems of the model", ("f5",), page_opener("problems"), "See"),
    Action("changes", "changes since the last save", ("f6",), page_opener("diff"), "See"),
    Action("tensor-page", "the tensor page of the drawer", ("f7",), page_opener("tensor"), "See"),
    Action("history", "the steps of the session", ("f8",), page_opener("history"), "See"),
    Action("close-drawer", "close the drawer", ("f9",), close, "See"),
    Action(
        "enlarge-drawer", "give the drawer the whole height", ("+", "_"), _enlarge_drawer, "Panes", "drawer",
    ),
)  # fmt: skip

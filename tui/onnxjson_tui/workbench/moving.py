"""Move the cursor, go from pane to pane, open pages of the drawer; select nodes, repeat the last edit, copy."""

from typing import Final

import msgspec

from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.editing.declaration import Edit
from onnxjson.editing.nodes import AddNode
from onnxjson.editing.parameters import parameters
from onnxjson.editing.spelling import spell_line
from onnxjson.editing.values import attribute_values
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Node
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operators import operator_name
from onnxjson.patterns.selector_terms import spelled
from onnxjson.rendering.tables import size
from onnxjson_tui.names.editable_names import node_selector
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.rows.outline_sections import OutlineLines, Row
from onnxjson_tui.session.history import Preview
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.graph_screen import PANES
from onnxjson_tui.shell.keyed import MOTIONS
from onnxjson_tui.widgets.actions import Action, Arguments, Run
from onnxjson_tui.workbench.editing import make, previewed, ready, require_here


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
    *MOTIONS,
    Action("first", "first row", ("g g", "home"), lambda bench, arguments: _leap(bench, arguments.number or 0), "Move"),
    Action(
        "last", "last row; 120G goes to node 120", ("G", "end"),
        lambda bench, given: _leap(bench, len(bench.lines.rows) - 1 if given.number is None else given.number), "Move",
    ),
    Action("to-top", "scroll the row to the top", ("z t",), lambda bench, _: bench.lines.centre(0.0), "Move"),
    Action("to-bottom", "scroll the row to the bottom", ("z b",), lambda bench, _: bench.lines.centre(1.0), "Move"),
    Action("next-pane", "next pane", ("tab",), lambda bench, _: _turn(bench, 1), "Panes"),
    Action("previous-pane", "previous pane", ("shift+tab",), lambda bench, _: _turn(bench, -1), "Panes"),
    Action("maximize", "show the nodes at full width", ("+", "_"), _maximize, "Panes"),
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
        "enlarge-drawer", "show the drawer at full height", ("+", "_"), _enlarge_drawer, "Panes", "drawer",
    ),
)  # fmt: skip


_LIMIT: Final = 74_000  # maximum bytes of base64 that terminals accept for the clipboard (OSC 52)


def _toggle(bench: Bench, arguments: Arguments) -> None:
    require_here(bench)
    lines = bench.nodes
    for address in _addresses(bench, range(lines.cursor, min(lines.cursor + (arguments.number or 1), len(lines.rows)))):
        bench.session.places.toggle(address)
    _show(bench)


def _select_range(bench: Bench, arguments: Arguments) -> None:
    require_here(bench)
    places, cursor = bench.session.places, bench.nodes.cursor
    other = next(
        (number for address in reversed(places.selected) if (number := _number(bench, address)) is not None), cursor
    )
    for address in _addresses(bench, range(min(other, cursor), max(other, cursor) + 1)):
        places.selected.setdefault(address, None)
    _show(bench)


def _select_all(bench: Bench, arguments: Arguments) -> None:
    if arguments.text:
        bench.session.select(arguments.text)
        _show(bench)
    else:
        _select(bench, range(len(bench.nodes.rows)))


def _select(bench: Bench, numbers: range) -> None:
    bench.session.places.select(_addresses(bench, numbers))
    _show(bench)


async def _repeat(bench: Bench, arguments: Arguments) -> None:
    session = bench.session
    step = next((each for each in reversed(session.history.made) if each.edits), None)
    if step is None:
        bench.say("there is no edit to repeat")
        return
    edit = step.edits[-1]
    field = next((each.field for each in parameters(type(edit)) if each.role == "nodes" and each.required), None)
    if not _is_one(step.edits, field):
        bench.say("the last step has several edits of different nodes; y in the history copies them", "changed")
        return
    if field is None:
        await make(bench, *step.edits)
        return
    await ready(bench)
    here = None if session.places.selected else node_selector(session.index, require_here(bench))

    def find() -> Preview:
        if here is None:
            return session.preview(*session.on_selection(edit, field))
        return session.preview(msgspec.structs.replace(edit, **{field: here}))

    await previewed(bench, find)


def _is_one(edits: tuple[Edit, ...], field: str | None) -> bool:
    """Whether edits are the same one on different nodes, or do not depend on the node under the cursor."""
    if field is None:
        return all(each.role != "nodes" or not each.required for edit in edits for each in parameters(type(edit)))
    kinds = {type(each) for each in edits}
    return len(kinds) == 1 and len({spell_line(msgspec.structs.replace(each, **{field: "x"})) for each in edits}) == 1


def _addresses(bench: Bench, numbers: range) -> list[str]:
    scope = bench.scope
    if scope is None:
        return []
    start = f"{scope.address}/node/"
    return [f"{start}{position}" for number in numbers if (position := bench.position_of(number)) is not None]


def _number(bench: Bench, address: str) -> int | None:
    scope = bench.scope
    owner, _, position = address.rpartition("/node/")
    return bench.number_of(int(position)) if scope is not None and owner == scope.address else None


def _show(bench: Bench) -> None:
    bench.nodes.refresh()
    bench.draw_bars()
    count = len(bench.session.places.selected)
    bench.say(f"{counted(count, 'node')} selected; edits apply to all of them" if count else "nothing is selected")


def copies_of(index: Index, ref: NodeRef) -> dict[str, tuple[str, str]]:
    """Return the texts that can be copied for a node, not escaped: key -> label and text."""
    node = ref.node
    found = {"name": ("name", node.name)} if node.name else {}
    found |= {f"output {slot}": (f"output {slot}", name) for slot, name in enumerate(node.output) if name}
    return found | {
        "selector": ("selector", node_selector(index, ref)),
        "address": ("address", f"@{ref.address}"),
        "json": ("JSON of the node", json_of(node)),
        "command": ("command that adds such a node", spell_line(command_of(ref))),
    }


def json_of(node: Node) -> str:
    """Return a node as JSON, including big constants."""
    parts: list[bytes] = []
    writer = TextWriter(parts.append)
    writer.node(node, 0)
    writer.flush()
    return b"".join(parts).decode()


def command_of(ref: NodeRef) -> Edit:
    """Return the edit that adds a copy of a node; its outputs need other names while the original exists."""
    node = ref.node
    return AddNode(
        op_type=node.op_type or "?",
        input=node.input,
        output=node.output,
        attribute=attribute_values(node) or {},
        name=node.name or None,
        domain=node.domain or None,
        graph=ref.scope.address,
    )


def copy_text(bench: Bench, text: str, what: str) -> None:
    """Copy any text to the clipboard of the terminal unless it is too big; `what` is its name in messages."""
    data = text.encode("utf-8", "surrogateescape")
    if fits_clipboard(data):
        # Lone surrogates represent bytes that a clipboard does not accept.
        bench.app.copy_to_clipboard(data.decode("utf-8", "replace"))
        bench.say(f"copied {what} to the terminal's clipboard (OSC 52, unconfirmed)", "good")
        return
    bench.say(f"not copied: {what} is too big for a clipboard ({size(len(data))})", "changed")


def fits_clipboard(data: bytes) -> bool:
    """Whether a text is short enough for the clipboard of a terminal."""
    return len(data) * 4 // 3 + 4 <= _LIMIT


async def _copy(bench: Bench, arguments: Arguments) -> None:
    ref = require_here(bench)
    found = copies_of(bench.session.index, ref)
    chosen: str | None = arguments.text
    if chosen not in found:
        choices = [Choice(key, label, visible(text, 300)) for key, (label, text) in found.items()]
        chosen = await bench.choose("Copy", choices, is_wide=True)
    if chosen is not None:
        label, text = found[chosen]
        copy_text(bench, text, label)


def _copy_row(bench: Bench, arguments: Arguments) -> None:
    page = bench.drawer.page
    text = "" if page is None else page.copied(bench.drawer.lines.cursor)
    if text:
        copy_text(bench, text, "the row")
    else:
        bench.say("this row has nothing to copy")


SELECTING: Final[tuple[Action[Bench], ...]] = (
    Action("select", "toggle the selection of the node", ("v",), _toggle, "Edit", footer="select"),
    Action("select-range", "select from the last selected node to this one", ("V",), _select_range, "Edit"),
    Action("select-all", "select all listed nodes, or what a selector finds", (), _select_all, "Edit",
           argument="[SELECTOR]"),
    Action("select-none", "select nothing", (), lambda bench, arguments: _select(bench, range(0)), "Edit"),
    Action("repeat", "repeat the last edit on this node or the selection", (".",), _repeat, "Edit", changes=True),
    Action(
        "copy", "copy a name, the JSON, the command ...", ("y",), _copy, "Edit", footer="copy",
        argument="[name|selector|address|json|command]",
    ),
    Action("copy-row", "copy the row", ("y",), _copy_row, "Keep", "drawer"),
)  # fmt: skip

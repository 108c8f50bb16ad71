"""Follow values, enter and leave graphs, go back, go from change to change."""

from bisect import bisect_left, bisect_right
from typing import Final

from onnxjson.model.display import counted, visible
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import function_key, operator_key, operator_name
from onnxjson.model.types import format_type
from onnxjson_tui.names.editable_names import value_address
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.rows.inspector import Entry, InspectorRows
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.workbench.editing import require_here

_LONGEST: Final = 300

_MOST_CHOICES: Final = 20_000  # places that are listed in a dialog


async def _ask_slot(bench: Workbench, here: NodeRef, slot: int | None, title: str, choices: list[Choice]) -> int | None:
    """Return a slot, which the user chooses if it is None; report one that the node does not have."""
    if slot is None:
        chosen = await bench.choose(title, choices)
        return None if chosen is None else int(chosen)
    if any(each.key == str(slot) for each in choices):
        return slot
    bench.say(f"there is no in[{slot}]: the node has {counted(len(here.node.input), 'input')}", "bad")
    return None


async def consumers(bench: Workbench, arguments: Arguments) -> None:
    """Go to a consumer of an output; ask which one if there are several."""
    here = require_here(bench)
    wanted = _wanted_slot(bench, Arguments(), "output")
    choices: list[Choice] = []
    for slot, name in enumerate(here.node.output):
        if not name or wanted not in (None, slot):
            continue
        for use in bench.session.index.consumers(here.scope, name)[:_MOST_CHOICES]:
            if use.position is None:
                refused = f"{visible(name, _LONGEST)} is an output of the graph"
                choices.append(Choice(use.address, f"out[{slot}] -> output", "", refused))
                continue
            consumer = NodeRef(use.scope, use.position)
            detail = f"{visible(consumer.node.name or '', _LONGEST)}  in[{use.slot}] <- out[{slot}]"
            choices.append(Choice(consumer.address, _called(consumer), detail))
    nodes = list(dict.fromkeys([each.key for each in choices if not each.refused]))
    if not nodes:
        bench.say("it is an output of the graph" if choices else "the outputs of this node have no consumers")
    elif arguments.number is not None:
        if arguments.number > len(nodes):
            bench.say(f"there are only {counted(len(nodes), 'consumer')}", "bad")
        else:
            bench.go(nodes[max(arguments.number, 1) - 1])
    elif len(nodes) == 1:
        bench.go(nodes[0])
    else:
        chosen = await bench.choose(counted(len(nodes), "consumer"), choices)
        if chosen is not None:
            bench.go(chosen)


async def definition(bench: Workbench, arguments: Arguments) -> None:
    """Go to what defines an input: the input of the count, the only one from a node, or the one that is chosen."""
    here, index = require_here(bench), bench.session.index
    producers = _producers(index, here)
    if not producers:
        bench.say("this node has no inputs")
        return
    slot = _wanted_slot(bench, arguments, "input")
    if slot is None:
        reached = {ref: each for each, ref in producers.items() if ref is not None or len(producers) == 1}
        slot = next(iter(reached.values())) if len(reached) == 1 else None
    choices = [_input(here, each, ref, _origin(index, here, each)) for each, ref in producers.items()]
    slot = await _ask_slot(bench, here, slot, "Go to what defines", choices)
    found = None if slot is None else producers[slot]
    if found is not None:
        bench.go(found.address)
    elif slot is not None:
        show_value(bench, here.scope, here.node.input[slot])


def show_value(bench: Workbench, scope: Scope, name: str) -> None:
    """Show a value that no node produces: a constant on the tensor page, an input as a message."""
    defining_scope = Index.defining_scope(scope, name)
    if defining_scope is None:
        bench.say(f"nothing defines {visible(name, _LONGEST)}", "bad")
        return
    if defining_scope.initializer(name) is not None:
        bench.drawer.find(TensorPage).show_constant(value_address(defining_scope, name))
        return
    uses = len(bench.session.index.consumers(defining_scope, name))
    bench.say(f"{visible(name, _LONGEST)} is {_kind(defining_scope, name)} with {counted(uses, 'consumer')}")


async def enter(bench: Workbench, arguments: Arguments) -> None:
    """Unfold a line; enter a graph of the node, or the function that it calls; without one, go to the inspector."""
    if bench.fold_here is not None:
        bench.turn_fold()
        return
    here = require_here(bench)
    if not _inner_graphs(bench, here):
        bench.show_details()
        bench.focus_pane("inspector")
        return
    inner = await inner_graph(bench, here, arguments.number)
    if inner is not None:
        bench.go(inner.address)


def _inner_graphs(bench: Workbench, here: NodeRef) -> list[Scope]:
    inner = [child for child in here.scope.children if child.owner == here]
    key = operator_key(here.node)
    for position, function in enumerate(bench.session.model.functions):
        if function_key(function) == key:
            inner += [each for each in bench.session.index.scopes if each.address == f"/functions/{position}"]
    return inner


async def inner_graph(bench: Workbench, here: NodeRef, number: int | None = None) -> Scope | None:
    """Return a graph of a node, or the function that it calls, by number or by a choice; None if there is none."""
    inner = _inner_graphs(bench, here)
    if not inner:
        return None
    if number is not None and 0 < number <= len(inner):
        return inner[number - 1]
    chosen = inner[0].address if len(inner) == 1 else await bench.choose("Enter", [_graph(each) for each in inner])
    return next((each for each in inner if each.address == chosen), None)


async def _leave(bench: Workbench, arguments: Arguments) -> None:
    scope = bench.scope
    if scope is None:
        return
    if scope.owner is not None:
        bench.go(scope.owner.address)
        return
    if scope.kind == "main":
        bench.say("this is the outermost graph")
        return
    calls = _calls(bench, scope)
    if not calls:
        main = bench.session.index.main
        if main is None or not bench.go(main.address):
            bench.say("nothing calls this function, and there is no main graph")
        return
    # The call that the user came from, else the only one.
    addresses = {ref.address for ref in calls}
    visited = [each for each in bench.session.places.jumps if each in addresses]
    chosen: str | None = (visited or [calls[0].address])[-1]
    if len(calls) > 1 and not visited:
        choices = [Choice(ref.address, _called(ref), visible(ref.node.name or "", _LONGEST)) for ref in calls]
        chosen = await bench.choose(f"{counted(len(calls), 'node')} call it", choices)
    if chosen is not None:
        bench.go(chosen)


def _calls(bench: Workbench, scope: Scope) -> list[NodeRef]:
    functions = bench.session.model.functions
    position = scope.address.rpartition("/")[2]
    if scope.kind != "function" or not position.isdigit():
        return []
    key = function_key(functions[int(position)])
    found = bench.session.index.nodes_with("op_type", functions[int(position)].name or "")
    return [ref for ref in found if operator_key(ref.node) == key][:_MOST_CHOICES]


def _back(bench: Workbench, arguments: Arguments) -> None:
    place = None
    for _ in range(arguments.number or 1):
        earlier = bench.session.places.jumps.back()
        if earlier is None:
            break
        place = earlier
        bench.go(place, remember=False)
    if place is None:
        bench.say("there is no earlier place")
    elif bench.pane != "nodes":
        bench.focus_pane("nodes")


def _next_change(bench: Workbench, count: int) -> None:
    """Move the cursor by a number of changed nodes, backwards for a negative count."""
    here, scope = bench.here, bench.scope
    saved = bench.saved_nodes(scope)
    places = [] if saved is None else saved.marked()
    if not places or scope is None or here is None:
        more = "; c shows all changes" if bench.session.is_changed else ""
        bench.say(f"no node of this graph changed since the last save{more}")
        return
    at = (bisect_right(places, here.position) - 1 if count > 0 else bisect_left(places, here.position)) + count
    number = at % len(places)
    bench.go(f"{scope.address}/node/{places[number]}")
    around = "" if 0 <= at < len(places) else ", wrapped around"
    bench.say(f"change {number + 1:,} of {len(places):,}{around}")


# Words for places


def _wanted_slot(bench: Workbench, arguments: Arguments, kind: str) -> int | None:
    """Return the slot of the count, or that under the cursor of the inspector."""
    if arguments.number is not None:
        return arguments.number
    rows = bench.inspector.rows
    if bench.pane == "inspector" and isinstance(rows, InspectorRows) and bench.inspector.cursor < len(rows.entries):
        entry: Entry = rows.entries[bench.inspector.cursor]
        if entry.kind == kind:
            return entry.slot
    return None


def _producers(index: Index, here: NodeRef) -> dict[int, NodeRef | None]:
    return {slot: index.producer(here.scope, name) for slot, name in enumerate(here.node.input) if name}


def _origin(index: Index, here: NodeRef, slot: int) -> str:
    name = here.node.input[slot]
    defining_scope = index.defining_scope(here.scope, name)
    return "undefined" if defining_scope is None else _kind(defining_scope, name)


def _kind(defining_scope: Scope, name: str) -> str:
    """Describe a value that no node produces, with its type if it is known."""
    if defining_scope.initializer(name) is not None:
        return "a constant (an input can replace it)" if name in defining_scope.inputs else "a constant"
    found = Index.type_of(defining_scope, name)
    words = "an input of the function" if defining_scope.kind == "function" else "an input of the graph"
    return f"{words}, {visible(format_type(found) or '?', _LONGEST)}" if found is not None else words


def _input(here: NodeRef, slot: int, found: NodeRef | None, origin: str) -> Choice:
    """Return an input as a choice, with its producer or another origin."""
    label = f"in[{slot}] {visible(here.node.input[slot], _LONGEST)}"
    return Choice(str(slot), label, origin if found is None else _called(found))


def _called(ref: NodeRef) -> str:
    return f"{ref.position} {visible(operator_name(ref.node.domain, ref.node.op_type), 60)}"


def _graph(scope: Scope) -> Choice:
    if scope.kind == "function":
        label = f"function {visible(scope.graph.name or '?', 60)}"
    else:
        label = visible(scope.address.rpartition("/attribute/")[2], 80)
    return Choice(scope.address, label, counted(len(scope.graph.node), "node"))


ACTIONS: Final[tuple[Action[Workbench], ...]] = (
    Action(
        "definition", "to what defines an input", ("g d", "g p"), definition, "Graph",
        help="A node, a constant or an input of the graph; 2gd goes to that of in[2].",
    ),
    Action("consumers", "to a consumer", ("g c",), consumers, "Graph", help="2gc goes to the second one."),
    Action("leave-graph", "out of the graph", ("-",), _leave, "Graph", help="To the node that contains or calls it."),
    Action("back", "back to the last place", ("ctrl+o",), _back, "Graph"),
    Action(
        "next-change", "next change", ("}",), lambda bench, given: _next_change(bench, given.number or 1), "See",
        help="The next node that changed since the last save.",
    ),
    Action(
        "previous-change", "previous change", ("{",),
        lambda bench, given: _next_change(bench, -(given.number or 1)), "See",
    ),
)  # fmt: skip

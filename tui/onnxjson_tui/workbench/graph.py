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


async def _ask_slot(
    workbench: Workbench, ref: NodeRef, slot: int | None, title: str, choices: list[Choice]
) -> int | None:
    """Return a slot, which the user chooses if it is None; report one that the node does not have."""
    if slot is None:
        chosen = await workbench.choose(title, choices)
        return None if chosen is None else int(chosen)
    if any(each.key == str(slot) for each in choices):
        return slot
    workbench.say(f"there is no in[{slot}]: the node has {counted(len(ref.node.input), 'input')}", "bad")
    return None


async def consumers(workbench: Workbench, arguments: Arguments) -> None:
    """Go to a consumer of an output; ask which one if there are several."""
    ref = require_here(workbench)
    wanted = _wanted_slot(workbench, Arguments(), "output")
    choices: list[Choice] = []
    for slot, name in enumerate(ref.node.output):
        if not name or wanted not in (None, slot):
            continue
        for use in workbench.session.index.consumers(ref.scope, name)[:_MOST_CHOICES]:
            if use.position is None:
                refused = f"{visible(name, _LONGEST)} is an output of the graph"
                choices.append(Choice(use.address, f"out[{slot}] -> output", "", refused))
                continue
            consumer = NodeRef(use.scope, use.position)
            detail = f"{visible(consumer.node.name or '', _LONGEST)}  in[{use.slot}] <- out[{slot}]"
            choices.append(Choice(consumer.address, _called(consumer), detail))
    nodes = list(dict.fromkeys([each.key for each in choices if not each.refused]))
    if not nodes:
        workbench.say("it is an output of the graph" if choices else "the outputs of this node have no consumers")
    elif arguments.number is not None:
        if arguments.number > len(nodes):
            workbench.say(f"there are only {counted(len(nodes), 'consumer')}", "bad")
        else:
            workbench.go(nodes[max(arguments.number, 1) - 1])
    elif len(nodes) == 1:
        workbench.go(nodes[0])
    else:
        chosen = await workbench.choose(counted(len(nodes), "consumer"), choices)
        if chosen is not None:
            workbench.go(chosen)


async def definition(workbench: Workbench, arguments: Arguments) -> None:
    """Go to what defines an input: the input of the count, the only one that is computed, or the one that is chosen."""
    consumer, index = require_here(workbench), workbench.session.index
    producers = _producers(index, consumer)
    if not producers:
        workbench.say("this node has no inputs")
        return
    slot = _wanted_slot(workbench, arguments, "input")
    if slot is None:
        reached = {ref: each for each, ref in producers.items() if ref is not None or len(producers) == 1}
        computed = [each for ref, each in reached.items() if ref is not None and ref.node.op_type != "Constant"]
        found = computed or list(reached.values())
        slot = found[0] if len(found) == 1 else None
    choices = [_input(consumer, each, ref, _origin(index, consumer, each)) for each, ref in producers.items()]
    slot = await _ask_slot(workbench, consumer, slot, "Go to what produces", choices)
    producer = None if slot is None else producers[slot]
    if producer is not None:
        workbench.go(producer.address)
    elif slot is not None:
        show_value(workbench, consumer.scope, consumer.node.input[slot])


def show_value(workbench: Workbench, scope: Scope, name: str) -> None:
    """Show a value that no node produces: a constant on the tensor page, an input as a message."""
    defining_scope = Index.defining_scope(scope, name)
    if defining_scope is None:
        workbench.say(f"nothing defines {visible(name, _LONGEST)}", "bad")
        return
    if defining_scope.initializer(name) is not None:
        workbench.drawer.find(TensorPage).show_constant(value_address(defining_scope, name))
        return
    uses = len(workbench.session.index.consumers(defining_scope, name))
    workbench.say(f"{visible(name, _LONGEST)} is {_kind(defining_scope, name)} with {counted(uses, 'consumer')}")


async def enter(workbench: Workbench, arguments: Arguments) -> None:
    """Unfold a line; enter a graph of the node, or the function that it calls; without one, go to the inspector."""
    if workbench.fold_here is not None:
        workbench.turn_fold()
        return
    ref = require_here(workbench)
    if not _inner_graphs(workbench, ref):
        workbench.show_details()
        workbench.focus_pane("inspector")
        return
    inner = await inner_graph(workbench, ref, arguments.number)
    if inner is not None:
        workbench.go(inner.address)


def _inner_graphs(workbench: Workbench, here: NodeRef) -> list[Scope]:
    inner = [child for child in here.scope.children if child.owner == here]
    key = operator_key(here.node)
    for position, function in enumerate(workbench.session.model.functions):
        if function_key(function) == key:
            inner += [each for each in workbench.session.index.scopes if each.address == f"/functions/{position}"]
    return inner


async def inner_graph(workbench: Workbench, here: NodeRef, number: int | None = None) -> Scope | None:
    """Return a graph of a node, or the function that it calls, by number or by a choice; None if there is none."""
    inner = _inner_graphs(workbench, here)
    if not inner:
        return None
    if number is not None and 0 < number <= len(inner):
        return inner[number - 1]
    chosen = inner[0].address if len(inner) == 1 else await workbench.choose("Enter", [_graph(each) for each in inner])
    return next((each for each in inner if each.address == chosen), None)


async def _leave(workbench: Workbench, arguments: Arguments) -> None:
    scope = workbench.scope
    if scope is None:
        return
    if scope.owner is not None:
        workbench.go(scope.owner.address)
        return
    if scope.kind == "main":
        workbench.say("this is the outermost graph")
        return
    calls = _calls(workbench, scope)
    if not calls:
        main = workbench.session.index.main
        if main is None or not workbench.go(main.address):
            workbench.say("nothing calls this function, and there is no main graph")
        return
    # The call that the user came from, else the only one.
    addresses = {ref.address for ref in calls}
    visited = [each for each in workbench.session.places.jumps if each in addresses]
    chosen: str | None = (visited or [calls[0].address])[-1]
    if len(calls) > 1 and not visited:
        choices = [Choice(ref.address, _called(ref), visible(ref.node.name or "", _LONGEST)) for ref in calls]
        chosen = await workbench.choose(f"{counted(len(calls), 'node')} call it", choices)
    if chosen is not None:
        workbench.go(chosen)


def _calls(workbench: Workbench, scope: Scope) -> list[NodeRef]:
    functions = workbench.session.model.functions
    position = scope.address.rpartition("/")[2]
    if scope.kind != "function" or not position.isdigit():
        return []
    key = function_key(functions[int(position)])
    found = workbench.session.index.nodes_with("op_type", functions[int(position)].name or "")
    return [ref for ref in found if operator_key(ref.node) == key][:_MOST_CHOICES]


def _back(workbench: Workbench, arguments: Arguments) -> None:
    place = None
    for _ in range(arguments.number or 1):
        earlier = workbench.session.places.jumps.back()
        if earlier is None:
            break
        place = earlier
        workbench.go(place, remember=False)
    if place is None:
        workbench.say("there is no earlier place")
    elif workbench.pane != "nodes":
        workbench.focus_pane("nodes")


def _next_change(workbench: Workbench, count: int) -> None:
    """Move the cursor by a number of changed nodes, backwards for a negative count."""
    ref, scope = workbench.here, workbench.scope
    saved = workbench.session.saved_nodes(scope)
    places = [] if saved is None else saved.marked()
    if not places or scope is None or ref is None:
        more = "; c shows all changes" if workbench.session.is_changed else ""
        workbench.say(f"no node of this graph changed since the last save{more}")
        return
    at = (bisect_right(places, ref.position) - 1 if count > 0 else bisect_left(places, ref.position)) + count
    number = at % len(places)
    workbench.go(f"{scope.address}/node/{places[number]}")
    around = "" if 0 <= at < len(places) else ", wrapped around"
    workbench.say(f"change {number + 1:,} of {len(places):,}{around}")


# Words for places


def _wanted_slot(workbench: Workbench, arguments: Arguments, kind: str) -> int | None:
    """Return the slot of the count, or that under the cursor of the inspector."""
    if arguments.number is not None:
        return arguments.number
    rows = workbench.inspector.rows
    if (
        workbench.pane == "inspector"
        and isinstance(rows, InspectorRows)
        and workbench.inspector.cursor < len(rows.entries)
    ):
        entry: Entry = rows.entries[workbench.inspector.cursor]
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


def _input(consumer: NodeRef, slot: int, producer: NodeRef | None, origin: str) -> Choice:
    """Return an input as a choice, with its producer or another origin."""
    label = f"in[{slot}] {visible(consumer.node.input[slot], _LONGEST)}"
    return Choice(str(slot), label, origin if producer is None else _called(producer))


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
        "next-change", "next change", ("}",),
        lambda workbench, given: _next_change(workbench, given.number or 1), "See",
        help="The next node that changed since the last save.",
    ),
    Action(
        "previous-change", "previous change", ("{",),
        lambda workbench, given: _next_change(workbench, -(given.number or 1)), "See",
    ),
)  # fmt: skip

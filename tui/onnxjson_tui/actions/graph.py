"""Following values, going into graphs and out of them, back and forward, marks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from onnxjson.display import counted, visible
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.operators import function_key, operator_key, operator_name
from onnxjson.types import format_type
from onnxjson_tui.action import Action, Given
from onnxjson_tui.cones import cone
from onnxjson_tui.forms.words import value_address
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.rows.inspector import Entry, InspectorRows
from onnxjson_tui.screens.choosing import PickerScreen

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_LONGEST: Final = 300

_MOST_CHOICES: Final = 20_000
"""Places that are listed to choose from."""


async def producer(bench: "Workbench", given: Given) -> None:
    """To the node that makes an input: the one of the count, or the only one, or the one that is chosen."""
    here = bench.here
    if here is None:
        bench.say("there is no node here")
        return
    slots = [slot for slot, name in enumerate(here.node.input) if name]
    makers = {slot: _maker(bench.session.index, here, slot) for slot in slots}
    slot = _wanted_slot(bench, given, "input")
    if slot is None:
        reached = [each for each in slots if makers[each] is not None]
        if not reached:
            bench.say("no node makes an input of this one; gd shows what they are")
            return
        if len({makers[each] for each in reached}) == 1:
            slot = reached[0]
        else:
            chosen = await _choose(bench, "Go to the node that makes", [_input(here, each, makers) for each in slots])
            if chosen is None:
                return
            slot = int(chosen)
    if slot not in makers:
        bench.say(f"there is no in[{slot}]: the node has {counted(len(here.node.input), 'input')}", "bad")
        return
    maker = makers[slot]
    if maker is None:
        bench.say(f"in[{slot}] is {_origin(bench.session.index, here, slot)}; gd shows it")
    else:
        bench.go(maker.address)


async def consumers(bench: "Workbench", given: Given) -> None:
    """To the node that takes what this one makes; to choose from where there are several."""
    here = bench.here
    if here is None:
        bench.say("there is no node here")
        return
    wanted = _wanted_slot(bench, Given(), "output")
    choices: list[Choice] = []
    for slot, name in enumerate(here.node.output):
        if not name or wanted not in (None, slot):
            continue
        for use in bench.session.index.consumers(here.scope, name)[:_MOST_CHOICES]:
            if use.position is None:
                refused = f"{visible(name, _LONGEST)} is an output of the graph"
                choices.append(Choice(use.address, f"out[{slot}] -> output", "", refused))
                continue
            taker = NodeRef(use.scope, use.position)
            label = f"{_called(taker)}"
            detail = f"{visible(taker.node.name or '', _LONGEST)}  in[{use.slot}] <- out[{slot}]"
            choices.append(Choice(taker.address, label, detail))
    nodes = list(dict.fromkeys([each.key for each in choices if not each.refused]))
    if not nodes:
        bench.say("it goes to an output of the graph" if choices else "nobody takes what this node makes")
    elif given.number is not None:
        if given.number > len(nodes):
            bench.say(f"{counted(len(nodes), 'node')} take it", "bad")
        else:
            bench.go(nodes[max(given.number, 1) - 1])
    elif len(nodes) == 1:
        bench.go(nodes[0])
    else:
        chosen = await _choose(bench, f"{counted(len(nodes), 'node')} take it", choices)
        if chosen is not None:
            bench.go(chosen)


async def definition(bench: "Workbench", given: Given) -> None:
    """To what defines an input of the node: a node, a constant, an input of the graph."""
    here = bench.here
    if here is None:
        bench.say("there is no node here")
        return
    slots = [slot for slot, name in enumerate(here.node.input) if name]
    if not slots:
        bench.say("this node takes nothing")
        return
    slot = _wanted_slot(bench, given, "input")
    if slot is None and len(slots) == 1:
        slot = slots[0]
    if slot is None:
        makers = {each: _maker(bench.session.index, here, each) for each in slots}
        choices = [msgspec.structs.replace(_input(here, each, makers), refused="") for each in slots]
        described = [
            choice
            if makers[each] is not None
            else msgspec.structs.replace(choice, detail=_origin(bench.session.index, here, each))
            for choice, each in zip(choices, slots, strict=True)
        ]
        chosen = await _choose(bench, "Show what defines", described)
        if chosen is None:
            return
        slot = int(chosen)
    if slot not in slots:
        bench.say(f"there is no in[{slot}]: the node has {counted(len(here.node.input), 'input')}", "bad")
        return
    maker = _maker(bench.session.index, here, slot)
    if maker is not None:
        bench.go(maker.address)
    else:
        show_value(bench, here.scope, here.node.input[slot])


def show_value(bench: "Workbench", scope: Scope, name: str) -> None:
    """Shows a value that no node makes: a constant on the page of tensors, an input in words."""
    home = Index.home(scope, name)
    if home is None:
        bench.say(f"nothing defines {visible(name, _LONGEST)}", "bad")
        return
    if home.initializer(name) is not None:
        page = bench.drawer.open("tensor")
        assert isinstance(page, TensorPage)
        page.show_constant(value_address(home, name))
        bench.focus_pane("drawer")
        return
    takers = len(bench.session.index.consumers(home, name))
    bench.say(f"{visible(name, _LONGEST)} is {_kind(home, name)}; taken at {counted(takers, 'place')}")


async def enter(bench: "Workbench", given: Given) -> None:
    """Into a graph of the node, or into the function that it calls."""
    here = bench.here
    if here is None:
        bench.say("there is no node here")
        return
    inner = [child for child in here.scope.children if child.owner == here]
    key = operator_key(here.node)
    for position, function in enumerate(bench.session.model.functions):
        if function_key(function) == key:
            inner += [each for each in bench.session.index.scopes if each.address == f"/functions/{position}"]
    if not inner:
        bench.say("this node has no graphs and calls no function")
        return
    chosen: str | None = inner[0].address
    if given.number is not None and 0 < given.number <= len(inner):
        chosen = inner[given.number - 1].address
    elif len(inner) > 1:
        chosen = await _choose(bench, "Go into", [_graph(each) for each in inner])
    if chosen is not None:
        bench.go(chosen)


async def leave(bench: "Workbench", given: Given) -> None:
    """Out of a graph, to the node that has it; out of a function, to one that calls it."""
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
        main = next((each for each in bench.session.index.scopes if each.kind == "main"), None)
        if main is None or not bench.go(main.address):
            bench.say("nothing calls this function, and there is no main graph")
        return
    chosen: str | None = calls[0].address
    if len(calls) > 1:
        choices = [Choice(ref.address, _called(ref), visible(ref.node.name or "", _LONGEST)) for ref in calls]
        chosen = await _choose(bench, f"{counted(len(calls), 'node')} call it", choices)
    if chosen is not None:
        bench.go(chosen)


def _calls(bench: "Workbench", scope: Scope) -> list[NodeRef]:
    functions = bench.session.model.functions
    position = scope.address.rpartition("/")[2]
    if scope.kind != "function" or not position.isdigit():
        return []
    key = function_key(functions[int(position)])
    found = bench.session.index.nodes_with("op_type", functions[int(position)].name or "")
    return [ref for ref in found if operator_key(ref.node) == key][:_MOST_CHOICES]


def back(bench: "Workbench", given: Given) -> None:
    """To where the person was before."""
    _jump(bench, given.number or 1, is_back=True)


def forward(bench: "Workbench", given: Given) -> None:
    """To where the person was before going back."""
    _jump(bench, given.number or 1, is_back=False)


def _jump(bench: "Workbench", count: int, *, is_back: bool) -> None:
    jumps = bench.session.places.jumps
    place = None
    for _ in range(count):
        following = jumps.back(_place(bench)) if is_back else jumps.forward()
        if following is None:
            break
        place = following
        bench.go(place, remember=False)
    if place is None:
        bench.say("this is the first place" if is_back else "this is the last place")
    elif bench.pane != "nodes":
        bench.focus_pane("nodes")


def _place(bench: "Workbench") -> str:
    here = bench.here
    return here.address if here is not None else bench.scope.address if bench.scope is not None else ""


def mark(bench: "Workbench", given: Given) -> None:
    """Gives the node a letter."""
    if bench.here is None or not given.letter.isalpha():
        bench.say("a mark is a letter, and stands on a node", "bad")
        return
    bench.session.places.marks[given.letter] = bench.here.address
    bench.draw_outline()
    bench.say(f"mark {given.letter} is here; '{given.letter} comes back")


def to_mark(bench: "Workbench", given: Given) -> None:
    """To the node of a letter; to the last place for the quote itself."""
    places = bench.session.places
    if given.letter == "'":
        last = places.jumps.last
        if last is None:
            bench.say("this is the first place")
        else:
            bench.go(last)
        return
    address = places.marks.get(given.letter)
    if address is None:
        known = " ".join(sorted(places.marks))
        bench.say(f"there is no mark {visible(given.letter)}" + (f"; there are {known}" if known else ""), "bad")
    else:
        bench.go(address)


def show_cone(bench: "Workbench", given: Given) -> None:
    """Lists only what the node depends on, or what depends on it."""
    here, way = bench.here, given.text.strip()
    if here is None:
        bench.say("there is no node here")
        return
    if way not in ("in", "out"):
        bench.say(":cone in lists what this node depends on, :cone out what depends on it", "bad" if way else "plain")
        return
    index = bench.session.index
    name = visible(here.node.name or next((each for each in here.node.output if each), "") or here.address, 40)
    words = f"cone {way} of {name}"

    def show(positions: list[int]) -> None:
        if here.scope is bench.scope:
            bench.finder.selector = ""
            bench.show_only(words, positions)
            bench.say(f"{counted(len(positions), 'node')}; esc shows all again")

    if bench.is_small:
        show(cone(index, here.scope, here.position, "in" if way == "in" else "out"))
    else:
        bench.jobs.start(
            "filter",
            "following values",
            lambda: cone(index, here.scope, here.position, "in" if way == "in" else "out"),
            show,
        )


# Words for places


def _wanted_slot(bench: "Workbench", given: Given, kind: str) -> int | None:
    """The slot that a count says, or on which the cursor of the inspector stands."""
    if given.number is not None:
        return given.number
    rows = bench.inspector.rows
    if bench.pane == "inspector" and isinstance(rows, InspectorRows) and bench.inspector.cursor < len(rows.entries):
        entry: Entry = rows.entries[bench.inspector.cursor]
        if entry.kind == kind:
            return entry.slot
    return None


def _maker(index: Index, here: NodeRef, slot: int) -> NodeRef | None:
    return index.producer(here.scope, here.node.input[slot])


def _origin(index: Index, here: NodeRef, slot: int) -> str:
    name = here.node.input[slot]
    home = index.home(here.scope, name)
    return "defined nowhere" if home is None else _kind(home, name)


def _kind(home: Scope, name: str) -> str:
    """What a value is that no node makes, and its type as far as that is known."""
    if home.initializer(name) is not None:
        return "a constant (an input can replace it)" if name in home.inputs else "a constant"
    found = Index.type_of(home, name)
    words = "an input of the function" if home.kind == "function" else "an input of the graph"
    return f"{words}, {visible(format_type(found) or '?', _LONGEST)}" if found is not None else words


def _input(here: NodeRef, slot: int, makers: "dict[int, NodeRef | None]") -> Choice:
    name = visible(here.node.input[slot], _LONGEST)
    maker = makers[slot]
    if maker is None:
        return Choice(str(slot), f"in[{slot}] {name}", "", "no node makes it")
    return Choice(str(slot), f"in[{slot}] {name}", f"{_called(maker)}")


def _called(ref: NodeRef) -> str:
    """A node by its position and operator."""
    return f"{ref.position} {visible(operator_name(ref.node.domain, ref.node.op_type), 60)}"


def _graph(scope: Scope) -> Choice:
    if scope.kind == "function":
        label = f"function {visible(scope.graph.name or '?', 60)}"
    else:
        label = visible(scope.address.rpartition("/attribute/")[2], 80)
    return Choice(scope.address, label, counted(len(scope.graph.node), "node"))


async def _choose(bench: "Workbench", title: str, choices: Sequence[Choice]) -> str | None:
    return await bench.app.push_screen_wait(PickerScreen(title, choices))


ACTIONS: Final = (
    Action(
        "producer", "go to the node that makes an input", ("g p",), producer, "Graph",
        help="2gp goes to that of in[2].",
    ),
    Action(
        "consumers", "go to a node that takes what this one makes", ("g c",), consumers, "Graph",
        help="2gc goes to the second of them.",
    ),
    Action(
        "definition", "show what defines an input: node, constant, input of the graph", ("g d",), definition, "Graph",
        help="2gd shows that of in[2].",
    ),
    Action("enter-graph", "into a graph of the node, or the function that it calls", ("g s",), enter, "Graph"),
    Action("leave-graph", "out of the graph, to the node that has it", ("-",), leave, "Graph"),
    Action("back", "back to where you were", ("ctrl+o", "["), back, "Graph"),
    Action("forward", "forward again", ("]",), forward, "Graph"),
    Action("mark", "mark the node with a letter", ("m",), mark, "Graph", takes_letter=True),
    Action(
        "to-mark", "to the mark of a letter; '' to the last place", ("'",), to_mark, "Graph", takes_letter=True
    ),
    Action(
        "cone", "list only what the node depends on (in), or what depends on it (out)", (), show_cone, "Graph",
        argument="in|out",
    ),
)  # fmt: skip

"""Numbers about nodes: costs, and what a run measures, in the list; the map that they colour."""

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from onnxjson.model.display import counted, visible
from onnxjson.model.errors import ParameterError
from onnxjson.model.index import Index, NodeRef
from onnxjson.running.worker import Worker
from onnxjson_tui.rows.beside_nodes import DIFFERENCE, MACS, NAN, Columns, Figures, figures_of
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.rows.difference import Side, opened_side
from onnxjson_tui.screens.graph_map import MapScreen, TypeOf
from onnxjson_tui.session.opening import complete_path
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.workbench.editing import require_here
from onnxjson_tui.workbench.graph import inner_graph

if TYPE_CHECKING:
    from onnxjson.checking.cost import Cost
    from onnxjson.running.node_numbers import Difference, Numbers

_RANDOM: Final = "random"
_SAVED: Final = "saved"
_COSTS: Final = "costs"
_AGAINST: Final = "against="
_STALE: Final = "the model changed while it was measured; gn measures it again"
_SIZE: Final = re.compile("=[0-9]+$")


async def _map(workbench: Workbench, arguments: Arguments) -> None:
    # Of a line, the node that produces its value.
    scope = workbench.scope
    ref = workbench.here or (NodeRef(scope, 0) if scope is not None and scope.graph.node else require_here(workbench))
    chosen: tuple[NodeRef, str] | None = ref, "around"
    hops = arguments.number
    while chosen is not None:
        ref, wanted = chosen
        inner = await inner_graph(workbench, ref) if wanted == "inside" else None
        if wanted == "go" or (wanted == "inside" and (inner is None or not inner.graph.node)):
            workbench.say("")
            workbench.go(ref.address)
            return
        chosen = await workbench.app.push_screen_wait(
            _map_of(workbench, ref if inner is None else NodeRef(inner, 0), hops)
        )
        hops = None


def _map_of(workbench: Workbench, ref: NodeRef, hops: int | None) -> MapScreen:
    session = workbench.session
    scope, saved, columns = ref.scope, session.saved_nodes(ref.scope), session.figures

    def known() -> dict[str, Figures]:
        return figures_of(scope, columns, None if saved is None else saved.marked())

    typed = workbench.derived.typed(scope)

    def more() -> tuple[dict[str, Figures], TypeOf]:
        macs = figures_of(scope, {MACS: _macs(_cost(session, {}))})
        return {} if MACS in columns else macs, partial(Index.type_of, typed or scope)

    return MapScreen(
        ref, workbench.terminal, known, None if workbench.is_big else more, hops, workbench.derived.folds_of(scope)
    )


def _show(workbench: Workbench, columns: Columns) -> None:
    """Show columns before those that are already there."""
    others = {title: each for title, each in workbench.session.figures.items() if title not in columns}
    workbench.show_figures({**columns, **others})


def _sizes(words: Sequence[str]) -> dict[str, int]:
    return {name: int(size) for name, _, size in [word.rpartition("=") for word in words]}


def _cost(session: Session, dims: Mapping[str, int]) -> "Cost":
    from onnxjson.checking.cost import assumed_dims, check_dims, cost_of

    check_dims(dims, session.model)
    return cost_of(session.model, session.opened.folder, assumed_dims(dims, session.model))


def _macs(cost: "Cost") -> dict[str, float | str]:
    return {each.address: each.macs for each in cost.nodes if each.macs}


async def _costs(workbench: Workbench, words: Sequence[str]) -> None:
    """Show the MACs of each node in the list, or hide them; `words` are sizes of dimensions, such as N=8."""
    from onnxjson.rendering.cost_text import amount, problems

    session = workbench.session
    if MACS in session.figures and not words:
        workbench.show_figures({title: each for title, each in session.figures.items() if title != MACS})
        return
    if not all([word.rpartition("=")[2].isdecimal() for word in words]):
        workbench.say("sizes are written as N=8", "bad")
        return
    work, revision = partial(_cost, session, _sizes(words)), session.revision
    cost = await workbench.jobs.run("cost", "computing costs", work, holds_keys=False)
    if session.revision != revision:
        workbench.say(_STALE, "changed")
        return
    _show(workbench, {MACS: _macs(cost)})
    sizes = "".join([f", {visible(name, 40)}={size}" for name, size in cost.dims.items()])
    workbench.say("; ".join([f"{amount(cost.macs)} MACs{sizes}", *problems(cost)]))


async def _numbers(workbench: Workbench, arguments: Arguments) -> None:
    """Run the model, show numbers of its nodes, or hide them."""
    text: str | None = arguments.text.strip()
    if not text:
        is_changed = workbench.session.is_changed
        choices = [
            Choice(_RANDOM, "random inputs", "the same each time"),
            Choice("given", "inputs from files ...", "NAME=x.npy, x.npz, a folder of test data, N=8"),
            Choice(_SAVED, "difference to the saved model", "", "" if is_changed else "no changes since the last save"),
            Choice("other", "difference to another model ...", "a file, or REV:path"),
            Choice(_COSTS, "multiplications, without running", "MACs; :numbers costs N=8 sets a dimension"),
        ]  # fmt: skip
        if workbench.session.figures:
            choices.append(Choice("hide", "hide the numbers"))
        chosen = await workbench.choose("Numbers of all nodes on", choices, is_wide=True)
        if chosen == "hide":
            workbench.show_figures({})
            return
        if chosen == "given":
            text = await workbench.ask("inputs ", complete=complete_path)
        elif chosen == "other":
            text = await workbench.ask("compare with ", complete=complete_path)
            text = text and shlex.quote(_AGAINST + text.strip())
        else:
            text = chosen
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise ParameterError(f"{visible(str(text), 200)}: {error}") from error
    if words[:1] == [_COSTS]:
        await _costs(workbench, words[1:])
    elif words:
        await _measure(workbench, words)


async def _measure(workbench: Workbench, words: Sequence[str]) -> None:
    session = workbench.session
    model, path = session.model, session.opened.path
    others = [word.removeprefix(_AGAINST) for word in words if word == _SAVED or word.startswith(_AGAINST)]
    rest = [word for word in words if word not in (_SAVED, _RANDOM) and not word.startswith(_AGAINST)]
    sized = [word for word in rest if _SIZE.search(word)]
    worker, revision, cursor = Worker(), session.revision, workbench.nodes.cursor

    def show_partly(numbers: "Numbers") -> None:
        if session.revision == revision:
            _show(workbench, {title: each for title, each in numbers.items() if title != NAN})

    def work() -> "tuple[Numbers, str, Difference | None]":
        from onnxjson.running.input_files import given_sets
        from onnxjson.running.interfaces import TwoModels
        from onnxjson.running.node_numbers import differences, node_numbers

        with worker, ExitStack() as resources:
            dims, difference = _sizes(sized), None
            sets = given_sets(model, [word for word in rest if word not in sized])
            if others:
                side = Side("", session.unsaved().base, path) if _SAVED in others else opened_side(others[0], resources)
                difference = differences(TwoModels(side.model, model, (side.path, path)), worker, sets, dims)
                sets = [difference.inputs]
            tell = partial(workbench.app.call_from_thread, show_partly)
            return (*node_numbers(model, session.opened.folder, worker, sets, dims, tell), difference)

    try:
        numbers, problem, difference = await workbench.jobs.run("numbers", "running the model", work, holds_keys=False)
    except asyncio.CancelledError:
        worker.interrupt()
        raise
    if session.revision != revision:
        workbench.say(_STALE, "changed")
        return
    nan = numbers.pop(NAN, {})
    wrong = sum(map(bool, nan.values()))
    _show(
        workbench,
        ({NAN: nan} if wrong else {}) | ({DIFFERENCE: difference.numbers} if difference is not None else {}) | numbers,
    )
    parts = [f"{wrong:,} with NaN"] if wrong else []
    if difference is not None:
        # The user may have gone on meanwhile.
        is_here = workbench.nodes.cursor == cursor and not workbench.prompt.is_asking
        place = "this" if is_here else f"node {(difference.first or '').rpartition('/')[2]}"
        parts.append(f"{place} is the first node that differs" if difference.first else "no node differs")
        if difference.first and is_here:
            workbench.go(difference.first)
    workbench.say("; ".join([f"numbers of {counted(len(nan), 'node')}", *parts, problem or "gn hides them"]))


ACTIONS: Final[tuple[Action[Workbench], ...]] = (
    Action(
        "numbers", "run and measure", ("g n",), _numbers, "See", footer="run",
        argument="[costs|saved|against=PATH|NAME=FILE|NAME=SIZE]",
        help="Runs the model on random inputs or files, and shows time, min, max, mean and NaN of each node. saved, or "
        "against=PATH, adds the difference to another model and goes to the first node that differs; costs counts "
        "multiplications instead.",
    ),
    Action(
        "map", "map of the graph", ("M",), _map, "Graph", footer="map",
        help="Folded by scope; 2M draws what is within two steps of the node. enter opens a box or the graph of a "
        "node, backspace leaves it; a draws what is around a node; c colours by changes, costs, numbers.",
    ),
)  # fmt: skip

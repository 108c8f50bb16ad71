"""Numbers about nodes: costs in the list, and the map that they colour."""

from array import array
from typing import Final

from onnxjson.model.display import visible
from onnxjson.rendering.tables import shortened
from onnxjson_tui.actions.editing import require_here
from onnxjson_tui.rows.graph_map import Figures
from onnxjson_tui.screens.graph_map import CHANGES, MapScreen
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.widgets.actions import Action, Arguments


async def _map(bench: Bench, arguments: Arguments) -> None:
    here = require_here(bench)
    figures: dict[str, Figures] = {}
    saved = bench.saved_nodes(here.scope)
    if saved is not None:
        values = array("d", [0.0]) * len(here.scope.graph.node)
        for position in saved.marked():
            values[position] = 1.0
        figures[CHANGES] = Figures(CHANGES, values)
    chosen = await bench.app.push_screen_wait(MapScreen(here, bench.terminal, figures))
    if chosen is not None:
        bench.go(chosen)


async def _costs(bench: Bench, arguments: Arguments) -> None:
    """Show the MACs of each node in the list, or hide them."""
    from onnxjson.checking.cost import Cost, assumed_dims, check_dims, cost_of
    from onnxjson.rendering.cost_text import amount, problems

    session = bench.session
    if session.costs and not arguments.text:
        session.costs = {}
        bench.nodes.refresh()
        return
    words = [word.partition("=") for word in arguments.text.split()]
    if not all([size.isdecimal() for _, _, size in words]):
        bench.say("sizes are written as N=8", "bad")
        return
    dims = {name: int(size) for name, _, size in words}

    def compute() -> Cost:
        check_dims(dims, session.model)
        return cost_of(session.model, session.opened.folder, assumed_dims(dims, session.model))

    cost = await bench.jobs.run("cost", "computing costs", compute)
    session.costs = {each.address: shortened(amount(each.macs), 8) for each in cost.nodes if each.macs}
    bench.nodes.refresh()
    sizes = "".join([f", {visible(name, 40)}={size}" for name, size in cost.dims.items()])
    bench.say("; ".join([f"{amount(cost.macs)} MACs{sizes}", *problems(cost)]))


ACTIONS: Final[tuple[Action[Bench], ...]] = (
    Action(
        "costs", "show MACs in the list of nodes, or hide them", ("g m",), _costs, "See", argument="[NAME=SIZE ...]",
        help="For dimensions without a size, such as :costs N=8; others count as 2. A change of the model hides them.",
    ),
    Action(
        "map", "draw the whole graph, folded by scope", ("M",), _map, "Graph",
        help="enter opens a box, backspace leaves it; c colours by changes, costs or measured numbers.",
    ),
)  # fmt: skip

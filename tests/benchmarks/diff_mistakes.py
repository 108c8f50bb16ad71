"""The mistakes of a differ, with what stands around them, for whoever improves it."""

from collections.abc import Iterator, Sequence
from itertools import islice

from onnxjson.model.document import Model
from onnxjson.model.index import Index, Scope
from tests.diffing.judging import GraphPairs, Judge, Mistake


def described(base: Model, target: Model, judge: Judge, pairs: Sequence[GraphPairs], most: int) -> Iterator[str]:
    """Lines about at most so many mistakes: the node of each side, its inputs and who takes its outputs."""
    sides = [Index(model).by_address for model in (base, target)]
    said: list[dict[str, str]] = [{}, {}]
    for graph in pairs:
        for node, other in enumerate(graph.target_of):
            if other >= 0:
                said[0][f"{graph.base}/node/{node}"] = f"{graph.target}/node/{other}"
                said[1][f"{graph.target}/node/{other}"] = f"{graph.base}/node/{node}"
    for mistake in islice(judge.mistakes(pairs), most):
        yield from _lines(mistake, sides, said)


def _lines(mistake: Mistake, sides: Sequence[dict[str, Scope]], said: Sequence[dict[str, str]]) -> Iterator[str]:
    yield "said, but not true:" if mistake.said else "true, but not said:"
    true = mistake.true_target, mistake.true_base
    for place, address in enumerate((mistake.base, mistake.target)):
        partner = f"paired with {_short(said[place].get(address))}"
        if mistake.said:
            partner = f"in truth {_short(true[place] or None)}"
        yield f"  {('base  ', 'target')[place]} {_around(address, sides[place])}  [{partner}]"


def _short(address: str | None) -> str:
    return "nothing" if address is None else address.removeprefix("/graph/node/")


def _around(address: str, scopes: dict[str, Scope]) -> str:
    graph, _, place = address.rpartition("/node/")
    scope = scopes[graph]
    node = scope.graph.node[int(place)]
    inputs = [_source(scope, name) for name in node.input]
    takers = [_taker(scope, taker) for name in node.output for taker, _ in scope.consumers.get(name, ())]
    return (
        f"{_short(address)} {node.op_type}({', '.join(inputs)}) -> {', '.join(takers) or 'nobody'}  {node.name or ''}"
    )


def _source(scope: Scope, name: str) -> str:
    if name in scope.producers:
        place = scope.producers[name][0]
        return f"{scope.graph.node[place].op_type}#{place}"
    if name in scope.initializers:
        return "weight"
    return "input" if name in scope.inputs else name or "-"


def _taker(scope: Scope, taker: int | None) -> str:
    return "output" if taker is None else f"{scope.graph.node[taker].op_type}#{taker}"

"""Which node is which where a side kept all names: without the matcher, and without the libraries that it needs.

Most merges are of small edits of one exporter's model. There a name that is kept means what it meant, unless something
came or went that could have taken it over; then, and wherever anything else is odd, the matcher has to say.
"""

from collections import Counter
from collections.abc import Sequence

from onnxjson.document import Model, Node
from onnxjson.edits.renaming import defined
from onnxjson.index import Index, Scope
from onnxjson.matching.alignment import UNMATCHED, Alignment, GraphPair
from onnxjson.operators import function_key, plain_domain


def align_by_names(base: Model, side: Model) -> Alignment | None:
    """The pairs of graphs, nodes and values of one name; None where names alone may not say it."""
    indexes = Index(base), Index(side)
    functions = _functions(base, side)
    if functions is None:
        return None
    scopes = [{scope.address: scope for scope in index.scopes} for index in indexes]
    tops = [("/graph", "/graph"), *[(f"/functions/{here}", f"/functions/{there}") for here, there in functions]]
    tops += [(address, address) for address, scope in scopes[0].items() if scope.kind == "training"]
    pairs: list[GraphPair] = []
    waiting = [(scopes[0][here], scopes[1][there]) for here, there in tops if here in scopes[0] and there in scopes[1]]
    while waiting:
        mine, its = waiting.pop()
        pair = pair_by_names(mine, its)
        if pair is None:
            return None
        pairs.append(pair)
        for child in mine.children:
            if child.owner is None:
                continue
            there = pair.target_of[child.owner.position]
            other = scopes[1].get(f"{its.address}/node/{there}{child.address[len(child.owner.address) :]}")
            if other is not None:
                waiting.append((child, other))
    pairs.sort(key=lambda pair: (not pair.base.address.startswith("/graph"), pair.base.address.count("/")))
    by_base = {pair.base.address: pair for pair in pairs}
    return Alignment(*indexes, tuple(pairs), by_base, tuple(functions), None)


def _functions(base: Model, side: Model) -> list[tuple[int, int]] | None:
    keys = [[function_key(each) for each in model.functions] for model in (base, side)]
    if any(len(set(each)) < len(each) for each in keys):
        return None
    if set(keys[0]) - set(keys[1]) and set(keys[1]) - set(keys[0]):
        return None
    places = {key: place for place, key in enumerate(keys[1])}
    return [(place, places[key]) for place, key in enumerate(keys[0]) if key in places]


def pair_by_names(base: Scope, target: Scope) -> GraphPair | None:
    """Which node and value of two graphs is which by their names; None where names alone may not say it."""
    nodes, its = base.graph.node, target.graph.node
    places, others = _by_output(nodes), _by_output(its)
    if places is None or others is None:
        return None
    target_of = [UNMATCHED] * len(nodes)
    base_of = [UNMATCHED] * len(its)
    for name, position in places.items():
        there = others.get(name)
        if there is not None:
            if nodes[position].output != its[there].output:
                return None
            target_of[position], base_of[there] = there, position
    gone = Counter(_operator(nodes[place]) for place, there in enumerate(target_of) if there < 0)
    new = Counter(_operator(its[place]) for place, here in enumerate(base_of) if here < 0)
    if gone.keys() & new.keys():
        return None
    moved = gone.keys() | new.keys()
    changed: list[int] = []
    for position, there in enumerate(target_of):
        if there < 0:
            continue
        node, other = nodes[position], its[there]
        if node.input == other.input and _operator(node) == _operator(other) and node.attribute == other.attribute:
            continue
        if _operator(node) != _operator(other) or _operator(node) in moved:
            return None
        changed.append(position)
    if changed and _have_other_names(base, target, target_of, changed):
        return None
    if moved and _has_other_constants(base, target):
        # A layer that came in the middle may have shifted the names of all weights behind it.
        return None
    values = _values(base, target)
    return None if values is None else GraphPair(base, target, target_of, base_of, values, {}, {})


def _have_other_names(base: Scope, target: Scope, target_of: list[int], changed: list[int]) -> bool:
    """Whether a node that is not as it was is now what another one was, which is gone or not as it was either.

    Exporters that number values give two layers the names of each other when they come upon them in another order.
    """
    before = [base.graph.node[place] for place in (*changed, *[at for at, there in enumerate(target_of) if there < 0])]
    known: dict[tuple[tuple[str, str], tuple[str, ...]], list[Node]] = {}
    for node in before:
        known.setdefault((_operator(node), node.input), []).append(node)
    after = [target.graph.node[target_of[position]] for position in changed]
    return any(
        node.attribute == other.attribute for node in after for other in known.get((_operator(node), node.input), ())
    )


def _has_other_constants(base: Scope, target: Scope) -> bool:
    names = base.initializers.keys() & target.initializers.keys()
    return any(base.initializer(name) != target.initializer(name) for name in names)


def _by_output(nodes: Sequence[Node]) -> dict[str, int] | None:
    """Nodes by their first output; None where that is not theirs alone."""
    found = {node.output[0]: place for place, node in enumerate(nodes) if node.output and node.output[0]}
    return found if len(found) == len(nodes) else None


def _operator(node: Node) -> tuple[str, str]:
    return plain_domain(node.domain), node.op_type or ""


def _values(base: Scope, target: Scope) -> dict[str, str] | None:
    for mine, its in (
        (base.inputs, target.inputs),
        (base.initializers, target.initializers),
        (base.sparse_initializers, target.sparse_initializers),
    ):
        if mine.keys() - its.keys() and its.keys() - mine.keys():
            return None
    theirs = defined(target)
    return {name: name for name in defined(base) if name in theirs}

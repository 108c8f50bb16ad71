"""``python -m tests.patterns.laws 600 [MODEL...]``: patterns cut from models, and the models with one planted break.

Law 1: a pattern finds the place that it was cut from. Law 2: after one break of that place (another operator, a node in
between, a node less, another attribute, another constant, a second consumer) the pattern does not match there any more,
and the first reason of the nearest miss names this break. Patterns from which another place of the model differs in one
thing, as near as the break, are left out; for them, too, law 3: asked about the place itself (``--why SELECTOR``), the
first reason names the break. Prints the numbers by kind; exits with 1 if law 1 fails once, or one of the other laws
for more than 5 % of the breaks.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import onnx
from msgspec.structs import replace

import onnxjson
from onnxjson.model.constants import is_constant_node
from onnxjson.model.document import Attribute, Graph, Model, Node, ValueInfo
from onnxjson.model.index import Index, NodeRef, index_of
from onnxjson.model.messages import value_of
from onnxjson.patterns.expression import Call, Condition, Elements, Number, Pattern, ValuePattern
from onnxjson.patterns.generalising import Cut
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.misses import nearest_misses
from onnxjson.patterns.searching import find

MODELS: Final = Path(__file__).parents[1] / "models"

_MOST_CALLS: Final = 8

_FEWEST_CALLS: Final = 3


class Cutter:
    """Cuts patterns from the main graph of one model."""

    def __init__(self, model: Model, seed: random.Random) -> None:
        self.model = model
        self.index: Index = index_of(model)
        main = self.index.scopes[0]
        self.nodes = [
            ref
            for ref in self.index.node_refs
            if ref.scope is main and not is_constant_node(ref.node) and not _has_graph(ref)
        ]
        self._allowed = set(self.nodes)
        self._seed = seed
        self._calls = 0

    def cut(self) -> tuple[NodeRef, Pattern]:
        """Return a random node, and a pattern of what it is computed from."""
        ref = self._seed.choice(self.nodes)
        self._calls = 1
        output = next(slot for slot, name in enumerate(ref.node.output) if name)
        return ref, Pattern(Cut(self.index, self._is_inside).call(ref, output))

    def _is_inside(self, ref: NodeRef) -> bool:
        is_inside = ref in self._allowed and self._calls < _MOST_CALLS and self._seed.random() < 0.8
        self._calls += is_inside
        return is_inside


def _has_graph(ref: NodeRef) -> bool:
    return any(each.g is not None or each.graphs for each in ref.node.attribute)


def _other(value: float) -> float:
    return value + 1 if isinstance(value, int) else value * 1.5 + 1


class Planted(NamedTuple):
    """A model with one break, the pattern that does not match there any more, and texts of which a reason has one."""

    model: Model
    pattern: Pattern
    named: tuple[str, ...]


class _Place(NamedTuple):
    """A match: each call with its node; the root comes first."""

    graph: Graph
    pattern: Pattern
    refs: tuple[NodeRef, ...]
    seed: random.Random

    def edges(self) -> list[tuple[int, int, int]]:
        """Calls whose output is an input of another call: the user, its input, and the call."""
        calls = self.pattern.calls
        found = []
        for user, call in enumerate(calls):
            for each in call.inputs or ():
                inner = next((at for at, other in enumerate(calls) if other is each), None)
                if inner is not None:
                    name = self.refs[inner].node.output[calls[inner].output]
                    slots = [slot for slot, given in enumerate(self.refs[user].node.input) if given == name]
                    found.append((user, slots[0], inner))
        return found


def _called(node: Node) -> str:
    return f'{node.op_type} "{node.name or node.output[0]}"'


def _with_node(graph: Graph, position: int, node: Node) -> Graph:
    return replace(graph, node=(*graph.node[:position], node, *graph.node[position + 1 :]))


def _with_input(node: Node, slot: int, name: str) -> Node:
    return replace(node, input=(*node.input[:slot], name, *node.input[slot + 1 :]))


def exchanged(place: _Place) -> tuple[Graph, Pattern, tuple[str, ...]] | None:
    """Exchange the operator of a node."""
    at = place.seed.randrange(len(place.refs))
    ref = place.refs[at]
    other = {1: "Tanh", 2: "Pow"}.get(len(ref.node.input), "Sum")
    if ref.node.op_type == other:
        return None
    node = replace(ref.node, op_type=other, domain=None, attribute=())
    return _with_node(place.graph, ref.position, node), place.pattern, (_called(node),)


def inserted(place: _Place) -> tuple[Graph, Pattern, tuple[str, ...]] | None:
    """Insert a node between two."""
    edges = place.edges()
    if not edges:
        return None
    user, slot, _ = place.seed.choice(edges)
    ref = place.refs[user]
    node = Node(op_type="Neg", name="planted", input=(ref.node.input[slot],), output=("planted",))
    graph = _with_node(place.graph, ref.position, _with_input(ref.node, slot, "planted"))
    nodes = (*graph.node[: ref.position], node, *graph.node[ref.position :])
    return replace(graph, node=nodes), place.pattern, (_called(node),)


def removed(place: _Place) -> tuple[Graph, Pattern, tuple[str, ...]] | None:
    """Remove a node that is not the last one; what used it uses the first input that is computed in the pattern."""
    edges = place.edges()
    inner = [(user, call) for user, _, call in edges if any(call == other for other, *_ in edges)]
    if not inner:
        return None
    user, gone = place.seed.choice(inner)
    slot = next(slot for other, slot, _ in edges if other == gone)
    old, new = place.refs[gone].node.output[0], place.refs[gone].node.input[slot]
    if any(each.name == old for each in place.graph.output):
        return None
    nodes = [
        replace(each, input=tuple([new if name == old else name for name in each.input]))
        for at, each in enumerate(place.graph.node)
        if at != place.refs[gone].position
    ]
    operator = place.refs[gone].node.op_type
    below = next(call for other, _, call in edges if other == gone)
    ends = [_called(place.refs[at].node) for at in (user, below)]
    # Of two equal nodes in a row, either may be the one that is gone.
    named = (
        f"{ends[0]}; the pattern needs {operator}",
        f"and {ends[1]}; the pattern needs {operator}",
        f'"{new}" comes from {ends[1]}; the pattern needs {operator}',
    )
    return replace(place.graph, node=tuple(nodes)), place.pattern, named


def attribute(place: _Place) -> tuple[Graph, Pattern, tuple[str, ...]] | None:
    """Change an attribute of a node."""
    calls = place.pattern.calls
    written = [
        (at, name, value)
        for at, call in enumerate(calls)
        for name, value in call.attributes
        if isinstance(value, Number) or (isinstance(value, Elements) and isinstance((*value.items, "")[0], int | float))
    ]
    if not written:
        return None
    at, name, _ = place.seed.choice(written)
    ref = place.refs[at]

    def other(attribute: Attribute) -> Attribute:
        if attribute.name != name:
            return attribute
        value: Any = value_of(attribute)
        changed = [_other(value[0]), *value[1:]] if isinstance(value, tuple) else _other(value)
        node = onnx.helper.make_node("Neg", [], [])
        node.attribute.append(onnx.helper.make_attribute(name, changed))
        made = onnxjson.from_proto(onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], []))).graph
        assert made is not None
        return made.node[0].attribute[0]

    node = replace(ref.node, attribute=tuple([other(each) for each in ref.node.attribute]))
    return _with_node(place.graph, ref.position, node), place.pattern, (f"{name} of {_called(node)} is",)


def constant(place: _Place) -> tuple[Graph, Pattern, tuple[str, ...]] | None:
    """Give a node another constant."""
    written = [
        (at, each)
        for at, call in enumerate(place.pattern.calls)
        for each in call.inputs or ()
        if isinstance(each, Number | Elements)
    ]
    if not written:
        return None
    at, want = place.seed.choice(written)
    ref = place.refs[at]
    slot = next(slot for slot, each in enumerate(place.pattern.calls[at].inputs or ()) if each is want)
    items = [want.value] if isinstance(want, Number) else list(want.items)
    floats = [float(_other(each)) for each in items if isinstance(each, int | float)]
    tensor = onnxjson.from_proto(_model_with(floats)).graph.initializer[0]  # type: ignore[union-attr]
    graph = _with_node(place.graph, ref.position, _with_input(ref.node, slot, "planted"))
    node = graph.node[ref.position]
    return (
        replace(graph, initializer=(*graph.initializer, tensor)),
        place.pattern,
        (f"input {slot} of {_called(node)} is",),
    )


def _model_with(numbers: Sequence[float]) -> "onnx.ModelProto":
    tensor = onnx.helper.make_tensor("planted", onnx.TensorProto.FLOAT, [len(numbers)], numbers)
    return onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], [tensor]))


def consumer(place: _Place) -> tuple[Graph, Pattern, tuple[str, ...]] | None:
    """Use a value a second time, of which the pattern allows one use."""
    index = place.refs[0].scope
    inner = [at for at in range(1, len(place.refs)) if len(index.uses(place.refs[at].node.output[0])) == 1]
    inner = [at for at in inner if place.pattern.calls[at].output == 0]
    if not inner:
        return None
    at = place.seed.choice(inner)
    call, name = place.pattern.calls[at], place.refs[at].node.output[0]
    root = _replaced(place.pattern.root, call, call._replace(name="once"))
    assert isinstance(root, Call)
    pattern = Pattern(root, (Condition("users", "once", "=", Number(1)),))
    node = Node(op_type="Neg", name="planted", input=(name,), output=("planted",))
    graph = replace(
        place.graph, node=(*place.graph.node, node), output=(*place.graph.output, ValueInfo(name="planted"))
    )
    return graph, pattern, (f'users of "{name}" is 2 users',)


def _replaced(value: ValuePattern, old: Call, new: Call) -> ValuePattern:
    if value is old:
        return new
    if not isinstance(value, Call) or value.inputs is None:
        return value
    return value._replace(inputs=tuple([_replaced(each, old, new) for each in value.inputs]))


Break = Callable[[_Place], tuple[Graph, Pattern, tuple[str, ...]] | None]
BREAKS: Final[tuple[Break, ...]] = (exchanged, inserted, removed, attribute, constant, consumer)


class Counts(NamedTuple):
    """How the laws held."""

    cut: int
    lost: list[str]
    planted: Counter[str]
    unnamed: list[tuple[str, str]]
    """The kind of each break that the first reason does not name, and what was said."""
    asked: Counter[str]
    """Breaks about whose place was asked."""
    unnamed_there: list[tuple[str, str]]


def check(paths: Sequence[Path], breaks: int, start: int = 1) -> Counts:
    """Plant so many breaks, from each model and of each kind in turn."""
    seed = random.Random(start)
    loaded = [(path, Cutter(onnxjson.load(path), seed)) for path in paths]
    cutters = [each for each in loaded if len(each[1].nodes) > _MOST_CALLS]
    counts = Counts(0, [], Counter(), [], Counter(), [])
    cut = 0
    while counts.planted.total() < breaks and cut < 40 * breaks:
        path, cutter = cutters[cut % len(cutters)]
        cut += 1
        ref, pattern = cutter.cut()
        if len(pattern.calls) < _FEWEST_CALLS:
            continue
        assert parse(str(pattern)) == pattern, pattern
        found = find(cutter.model, pattern, overlapping=True, index=cutter.index)
        match = next((each for each in found if each.root == ref), None)
        if match is None:
            counts.lost.append(f"{path.name} {ref.address}: {pattern}")
            continue
        graph = cutter.model.graph
        assert graph is not None
        kind = BREAKS[counts.planted.total() % len(BREAKS)]
        made = kind(_Place(graph, match.pattern, match.calls, seed))
        if made is None:
            continue
        broken = Planted(replace(cutter.model, graph=made[0]), made[1], made[2])
        output = ref.node.output[0]
        if output in {each.root.node.output[0] for each in find(broken.model, broken.pattern, overlapping=True)}:
            continue  # it means the same, as with another output of the same node
        place = f"{path.name} {ref.address}: {broken.pattern}: {broken.named}"
        root = next(each for each in index_of(broken.model).node_refs if output in each.node.output)
        if counts.asked.total() < breaks:
            counts.asked[kind.__name__] += 1
            said = first_reason(broken, [root])
            if not any(each in said for each in broken.named):
                counts.unnamed_there.append((kind.__name__, f"{place}: {said}"))
        alike = [each for each in cutter.index.node_refs if each.node.op_type == ref.node.op_type]
        others = nearest_misses(cutter.model, broken.pattern, at=alike)
        if any(len(each.reasons) == 1 for each in others):
            continue
        counts.planted[kind.__name__] += 1
        said = first_reason(broken)
        if not any(each in said for each in broken.named):
            counts.unnamed.append((kind.__name__, f"{place}: {said}"))
    return counts._replace(cut=cut)


def first_reason(broken: Planted, at: list[NodeRef] | None = None) -> str:
    """Return what is said first about the nearest place, or about the places of some nodes."""
    misses = nearest_misses(broken.model, broken.pattern, at=at)
    return misses[0].reasons[0] if misses else "nothing"


def main(arguments: Sequence[str]) -> int:
    """Print the counts; see the module."""
    breaks = int(arguments[0]) if arguments else 600
    paths = [Path(each) for each in arguments[1:]] or sorted(MODELS.glob("*.onnx"))
    counts = check(paths, breaks)
    print(*counts.lost, f"cut: {counts.cut}, not found: {len(counts.lost)}", sep="\n")
    shares = [
        _printed("the nearest place", counts.planted, counts.unnamed),
        _printed("the place itself", counts.asked, counts.unnamed_there),
    ]
    return int(bool(counts.lost) or min(shares) < 0.95)


def _printed(what: str, planted: Counter[str], unnamed: Sequence[tuple[str, str]]) -> float:
    """Print how many breaks were named, by kind; return their share."""
    print(*[f"{kind}: {said}" for kind, said in unnamed], sep="\n")
    missed = Counter([kind for kind, _ in unnamed])
    for kind, number in planted.items():
        print(f"{kind:10}{number:5} planted, {number - missed[kind]:5} named")
    share = 1 - len(unnamed) / max(planted.total(), 1)
    print(f"asked for {what}: {planted.total()} planted, named by the first reason: {share:.1%}")
    return share


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

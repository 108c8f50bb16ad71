"""Single edits of a graph, each at a random place where it fits."""

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from onnxjson.diffing.events import Kind
from onnxjson.model.document import Attribute, Node, Tensor
from onnxjson.model.tensors import raw_bytes, to_numpy
from tests.diffing.workbench import Workbench

TRIES: Final = 300
"""Places that are looked at for an edit before it counts as impossible."""

UNARY: Final = ("Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Abs", "Neg", "Softplus", "Sin", "Floor")
BINARY: Final = ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min")
COMMUTATIVE: Final = frozenset({"Add", "Mul", "Max", "Min", "And", "Or", "Equal"})

_CONSTANT: Final = frozenset({"Constant", "Identity"})
"""What a diff looks through."""

_FLOATING: Final = frozenset({1, 11})
"""float32 and double."""


class Done(NamedTuple):
    """What an edit did, in numbers of the workbench."""

    base: tuple[int, ...] = ()
    """Nodes of the base that the event is about."""
    target: tuple[int, ...] = ()
    """Nodes of the target that the event is about."""
    instead: tuple[tuple[int, int], ...] = ()
    """Nodes of the base, and those of the target that stand in their place."""
    tensor: tuple[int, int] | None = None
    """The number of an initializer before and after that the event is about."""
    around: tuple[int, ...] = ()
    """Nodes of the target that the event may name, too."""
    twins: tuple[int, ...] = ()
    """Nodes of the target that could as well be the new ones."""
    back: tuple[Kind, ...] = ()
    """The kinds of the way back, where they are not those of the edit."""


class Edit(NamedTuple):
    """How an edit is made and which kinds of events tell of it."""

    make: Callable[[Workbench, random.Random], Done | None]
    """None where no place was found."""
    kinds: tuple[Kind, ...]
    back: tuple[Kind, ...]
    """The kinds from the changed model to the first."""


def _places(bench: Workbench, numbers: random.Random) -> Iterator[int]:
    """Random nodes that no edit was about and that do something."""
    for _ in range(TRIES):
        number = numbers.randrange(len(bench.nodes))
        node = bench.nodes[number]
        free = number not in bench.touched and number not in bench.owners
        if free and node is not None and node.op_type not in _CONSTANT and node.input:
            yield number


def _neighbours(bench: Workbench, number: int) -> set[int]:
    node = bench.node(number)
    found = {bench.makers[name] for name in node.input if name in bench.makers}
    return found | {taker for name in node.output for taker in bench.takers.get(name, ())}


def _is_free(bench: Workbench, around: set[int]) -> bool:
    return not around & bench.touched


def _is_pinned(bench: Workbench, name: str) -> bool:
    """Whether more than nodes of this graph take a value."""
    return name in bench.outputs or name in bench.captured


def _operators(bench: Workbench, numbers: set[int]) -> set[str | None]:
    return {bench.node(number).op_type for number in numbers}


def _fresh(bench: Workbench, numbers: random.Random, stem: str) -> str:
    while True:
        name = f"{stem}_{numbers.getrandbits(40):x}"
        if name not in bench.makers and name not in bench.tensors:
            return name


def _activations(bench: Workbench, node: Node) -> list[str]:
    return [name for name in node.input if name and not bench.is_constant(name)]


def delete(bench: Workbench, numbers: random.Random) -> Done | None:
    """A node goes; who took its output takes its only input that is no constant."""
    for number in _places(bench, numbers):
        node, around = bench.node(number), _neighbours(bench, number)
        outputs = [name for name in node.output if name]
        if len(outputs) != 1 or _is_pinned(bench, outputs[0]) or not bench.takers.get(outputs[0]):
            continue
        taken = _activations(bench, node)
        if len(taken) != 1 or not _is_free(bench, around) or node.op_type in _operators(bench, around):
            continue
        takers = list(bench.takers[outputs[0]])
        if any([taken[0] in bench.node(taker).input for taker in takers]):
            continue
        bench.touched |= around
        bench.reconnect(takers, outputs[0], taken[0])
        bench.remove(number)
        return Done(base=(number,), back=("cast-inserted",) if node.op_type == "Cast" else ())
    return None


def _edge(bench: Workbench, numbers: random.Random) -> tuple[int, str, list[int]] | None:
    """A value between nodes, its maker, and all or one of its takers; none of them near another edit."""
    for number in _places(bench, numbers):
        name = numbers.choice(bench.node(number).output)
        takers = bench.takers.get(name, [])
        if not takers or name in bench.captured or not _is_free(bench, {number, *takers}):
            continue
        if len(takers) > 1 and numbers.random() < 0.5 and name not in bench.outputs:
            takers = [numbers.choice(takers)]
        return number, name, list(takers)
    return None


def _between(bench: Workbench, maker: int, takers: Sequence[int]) -> tuple[float, float]:
    return bench.key(maker), min(bench.key(taker) for taker in takers)


def _detach(bench: Workbench, numbers: random.Random, maker: int, name: str, takers: list[int], last: str) -> str:
    """Let takers take `last` instead of a value -> the value's name, another one if `last` has to be the output."""
    if name not in bench.outputs:
        bench.reconnect(takers, name, last)
        return name
    fresh = _fresh(bench, numbers, "moved")
    node = bench.node(maker)
    bench.change(maker, replace(node, output=tuple([fresh if each == name else each for each in node.output])))
    return fresh


def _is_near(bench: Workbench, number: int, operator: str) -> bool:
    """Whether a node within five steps has an operator."""
    seen = found = {number}
    for _ in range(5):
        found = {other for each in found for other in _neighbours(bench, each)} - seen
        seen = seen | found
        if len(seen) > 200:
            break
    return any([bench.node(each).op_type == operator for each in seen])


def insert(bench: Workbench, numbers: random.Random) -> Done | None:
    """A node of one input comes between a value and all or one of those that take it."""
    return _insert(bench, numbers, lambda around: numbers.choice([each for each in UNARY if each not in around]), ())


def insert_cast(bench: Workbench, numbers: random.Random) -> Done | None:
    """The same with a Cast to float16."""
    return _insert(bench, numbers, lambda around: "Cast", (Attribute(name="to", i=10, type=2),))


def _insert(
    bench: Workbench,
    numbers: random.Random,
    operator: Callable[[set[str | None]], str],
    attributes: tuple[Attribute, ...],
) -> Done | None:
    if (edge := _edge(bench, numbers)) is None:
        return None
    maker, name, takers = edge
    chosen = operator(_operators(bench, {maker, *bench.takers[name]}))
    after, before = _between(bench, maker, takers)
    last = name if name in bench.outputs else _fresh(bench, numbers, chosen)
    value = _detach(bench, numbers, maker, name, takers, last)
    number = bench.add(Node((value,), (last,), _fresh(bench, numbers, "new"), chosen, attributes), after, before)
    bench.touched |= {maker, *takers}
    return Done(target=(number,))


def insert_gelu(bench: Workbench, numbers: random.Random) -> Done | None:
    """GELU as exporters write it, five nodes and three Constants, comes behind a value."""
    edges = (_edge(bench, numbers) for _ in range(20))
    edge = next((each for each in edges if each is not None and not _is_near(bench, each[0], "Erf")), None)
    if edge is None:
        return None
    maker, name, takers = edge
    after, before = _between(bench, maker, takers)
    last = name if name in bench.outputs else _fresh(bench, numbers, "gelu")
    value = _detach(bench, numbers, maker, name, takers, last)
    made: list[int] = []

    def call(operator: str, *inputs: str, output: str = "", attribute: tuple[Attribute, ...] = ()) -> str:
        output = output or _fresh(bench, numbers, "gelu")
        node = Node(inputs, (output,), _fresh(bench, numbers, "new"), operator, attribute)
        made.append(bench.add(node, after, before, (len(made) + 1) / 9))
        return output

    constants = []
    for each in (2**0.5, 1.0, 0.5):
        tensor = Tensor(data_type=1, raw_data=struct.pack("<f", each))
        constants.append(call("Constant", attribute=(Attribute(name="value", t=tensor, type=4),)))
    shifted = call("Add", call("Erf", call("Div", value, constants[0])), constants[1])
    call("Mul", call("Mul", value, shifted), constants[2], output=last)
    bench.touched |= {maker, *takers}
    return Done(target=tuple(made[3:]), around=tuple(made[:3]))


def change_operator(bench: Workbench, numbers: random.Random) -> Done | None:
    """Another operator with as many inputs stands in the place of one."""
    for number in _places(bench, numbers):
        node, around = bench.node(number), _neighbours(bench, number)
        group = UNARY if node.op_type in UNARY else BINARY
        if node.op_type not in group or not _is_free(bench, around):
            continue
        operators = [each for each in group if each != node.op_type and each not in _operators(bench, around)]
        if not operators:
            continue
        bench.touched.add(number)
        bench.change(number, replace(node, op_type=numbers.choice(operators)))
        return Done(base=(number,), target=(number,), instead=((number, number),))
    return None


def change_attribute(bench: Workbench, numbers: random.Random) -> Done | None:
    """One number of an attribute becomes another."""
    for number in _places(bench, numbers):
        node = bench.node(number)
        places = [
            place
            for place, each in enumerate(node.attribute)
            if (each.type == 2 and each.i is not None) or (each.type == 1 and each.f) or (each.type == 7 and each.ints)
        ]
        if not places:
            continue
        place = numbers.choice(places)
        attributes = list(node.attribute)
        attributes[place] = _other_value(attributes[place])
        bench.touched.add(number)
        bench.change(number, replace(node, attribute=tuple(attributes)))
        return Done(base=(number,), target=(number,))
    return None


def _other_value(attribute: Attribute) -> Attribute:
    if attribute.type == 2:
        return replace(attribute, i=(attribute.i or 0) + 1)
    if attribute.type == 7:
        return replace(attribute, ints=(attribute.ints[0] + 1, *attribute.ints[1:]))
    (value,) = struct.unpack("<f", attribute.f or bytes(4))
    return replace(attribute, f=struct.pack("<f", value * 2 + 1))


def rewire(bench: Workbench, numbers: random.Random) -> Done | None:
    """One input of a node becomes another value that was made before; the old one has other takers."""
    for number in _places(bench, numbers):
        node = bench.node(number)
        slots = [
            slot
            for slot, name in enumerate(node.input)
            if name
            and not bench.is_constant(name)
            and (name in bench.inputs or _is_pinned(bench, name) or len(bench.takers[name]) > 1)
        ]
        if not slots:
            continue
        slot = numbers.choice(slots)
        sources = _values_before(bench, numbers, number, set(node.input))
        if not sources:
            continue
        inputs = list(node.input)
        inputs[slot] = sources[0]
        bench.touched |= {number, bench.makers[sources[0]]}
        bench.change(number, replace(node, input=tuple(inputs)))
        return Done(base=(number,), target=(number,))
    return None


def _values_before(bench: Workbench, numbers: random.Random, number: int, taken: set[str]) -> list[str]:
    """A random value that was made before a node and is not taken by it, if there is one."""
    for _ in range(20):
        source = numbers.randrange(max(0, number - 60), number) if 0 < number < bench.count else 0
        node = bench.nodes[source]
        if node is None or source in bench.touched or node.op_type in _CONSTANT or not node.input:
            continue
        if bench.key(source) < bench.key(number) and node.output[0] and node.output[0] not in taken:
            return [node.output[0]]
    return []


def swap_inputs(bench: Workbench, numbers: random.Random) -> Done | None:
    """The two inputs of a commutative operator change places."""
    for number in _places(bench, numbers):
        node = bench.node(number)
        if node.op_type in COMMUTATIVE and len(node.input) == 2 and node.input[0] != node.input[1]:
            bench.touched.add(number)
            bench.change(number, replace(node, input=node.input[::-1]))
            return Done(base=(number,), target=(number,))
    return None


def duplicate(bench: Workbench, numbers: random.Random) -> Done | None:
    """A node is computed twice, and some of those that took its output take the second."""
    for number in _places(bench, numbers):
        node, around = bench.node(number), _neighbours(bench, number)
        if len(node.output) != 1 or not _is_free(bench, around):
            continue
        takers = bench.takers.get(node.output[0], [])
        if len(takers) < 2:
            continue
        moved = numbers.sample(takers, numbers.randrange(1, len(takers)))
        name = _fresh(bench, numbers, "again")
        after, before = _between(bench, number, takers)
        copy = bench.add(replace(node, output=(name,), name=_fresh(bench, numbers, "new")), after, before)
        bench.reconnect(moved, node.output[0], name)
        bench.touched |= {number, *around}
        return Done(target=(copy,), around=(number,), twins=(number,))
    return None


def add_dead(bench: Workbench, numbers: random.Random) -> Done | None:
    """A node takes a value, and nobody takes what it makes."""
    for number in _places(bench, numbers):
        name = bench.node(number).output[0]
        takers = {number, *bench.takers.get(name, ())}
        if not name or not _is_free(bench, takers):
            continue
        operator = numbers.choice([each for each in UNARY if each not in _operators(bench, takers)])
        node = Node((name,), (_fresh(bench, numbers, "dead"),), _fresh(bench, numbers, "new"), operator)
        bench.touched.add(number)
        return Done(target=(bench.add(node, bench.key(number), bench.key(number) + 1),))
    return None


def fuse(bench: Workbench, numbers: random.Random) -> Done | None:
    """MatMul with a constant and the Add of another one become Gemm."""
    for number in _places(bench, numbers):
        product = bench.node(number)
        if (
            product.op_type != "MatMul"
            or not bench.is_constant(product.input[1])
            or bench.is_constant(product.input[0])
        ):
            continue
        takers = bench.takers.get(product.output[0], [])
        if len(takers) != 1 or _is_pinned(bench, product.output[0]):
            continue
        added = bench.node(takers[0])
        biases = [name for name in added.input if name != product.output[0]]
        around = {number, takers[0], *bench.takers.get(added.output[0], ())}
        if added.op_type != "Add" or len(biases) != 1 or not bench.is_constant(biases[0]):
            continue
        if not _is_free(bench, around):
            continue
        gemm = Node((*product.input, biases[0]), added.output, _fresh(bench, numbers, "new"), "Gemm")
        key = bench.key(takers[0])
        pair = (number, takers[0])
        fused = bench.add(gemm, key, key)
        for each in reversed(pair):
            bench.remove(each)
        bench.makers[gemm.output[0]] = fused
        bench.touched |= around
        return Done(base=pair, target=(fused,), instead=((pair[0], fused), (pair[1], fused)))
    return None


def unfold(bench: Workbench, numbers: random.Random) -> Done | None:
    """A matrix of weights is stored transposed, and a Transpose node turns it back."""
    for name, place in _tensors(bench, numbers):
        tensor = bench.initializers[place]
        takers = list(bench.takers.get(name, ()))
        if tensor is None or len(tensor.dims) != 2 or not takers or not _is_free(bench, set(takers)):
            continue
        array = to_numpy(tensor).T
        turned = replace(tensor, name=_fresh(bench, numbers, "turned"), dims=array.shape, raw_data=array.tobytes())
        bench.add_tensor(turned)
        key = min(bench.key(taker) for taker in takers)
        output = _fresh(bench, numbers, "Transpose")
        node = Node((turned.name or "",), (output,), _fresh(bench, numbers, "new"), "Transpose")
        number = bench.add(node, key - 1, key)
        bench.reconnect(takers, name, output)
        bench.drop_unused(name)
        bench.touched |= set(takers)
        return Done(target=(number,))
    return None


def _tensors(bench: Workbench, numbers: random.Random) -> Iterator[tuple[str, int]]:
    """Random weights whose bytes are here and that only nodes of this graph take."""
    names = list(bench.tensors)
    for _ in range(min(TRIES, len(names) * 3)):
        name = numbers.choice(names)
        tensor = bench.initializers[bench.tensors[name]]
        if tensor is None or tensor.data_type not in _FLOATING or tensor.raw_data is None or not tensor.dims:
            continue
        if raw_bytes(tensor) is not None and not _is_pinned(bench, name) and name not in bench.inputs:
            yield name, bench.tensors[name]


def _change_tensor(bench: Workbench, numbers: random.Random, changed: Callable[[Tensor], Tensor | None]) -> Done | None:
    for name, place in _tensors(bench, numbers):
        takers = bench.takers.get(name, [])
        tensor = bench.initializers[place]
        if tensor is None or not takers or not _is_free(bench, set(takers)):
            continue
        if (result := changed(tensor)) is None:
            continue
        bench.initializers[place] = result
        bench.touched |= set(takers)
        return Done(tuple(takers), tuple(takers), tensor=(place, place))
    return None


def perturb(bench: Workbench, numbers: random.Random) -> Done | None:
    """Some elements of a weight change a little."""

    def changed(tensor: Tensor) -> Tensor:
        array = to_numpy(tensor).copy().reshape(-1)
        for _ in range(max(1, array.size // 3)):
            place = numbers.randrange(array.size)
            array[place] = array[place] * 1.01 + 0.001
        return replace(tensor, raw_data=array.tobytes())

    return _change_tensor(bench, numbers, changed)


def re_lay(bench: Workbench, numbers: random.Random) -> Done | None:
    """A weight is stored transposed, without a word about it."""

    def changed(tensor: Tensor) -> Tensor | None:
        array = to_numpy(tensor)
        turned = array.T.tobytes()
        if array.ndim < 2 or turned == array.tobytes():
            return None
        return replace(tensor, dims=array.T.shape, raw_data=turned)

    return _change_tensor(bench, numbers, changed)


def retype(bench: Workbench, numbers: random.Random) -> Done | None:
    """A weight of float32 becomes float16."""

    def changed(tensor: Tensor) -> Tensor | None:
        if tensor.data_type != 1:
            return None
        import numpy

        with numpy.errstate(over="ignore"):
            return replace(tensor, data_type=10, raw_data=to_numpy(tensor).astype("<f2").tobytes())

    return _change_tensor(bench, numbers, changed)


EDITS: Final[dict[str, Edit]] = {
    "delete": Edit(delete, ("eliminated",), ("inserted",)),
    "insert": Edit(insert, ("inserted",), ("eliminated",)),
    "insert-cast": Edit(insert_cast, ("cast-inserted",), ("eliminated",)),
    "insert-gelu": Edit(insert_gelu, ("inserted",), ("eliminated",)),
    "operator": Edit(change_operator, ("replaced",), ("replaced",)),
    "attribute": Edit(change_attribute, ("attribute-changed",), ("attribute-changed",)),
    "rewire": Edit(rewire, ("rewired",), ("rewired",)),
    "swap-inputs": Edit(swap_inputs, ("reordered",), ("reordered",)),
    "duplicate": Edit(duplicate, ("inserted", "decomposed"), ("merged",)),
    "dead": Edit(add_dead, ("inserted",), ("dead-code-removed",)),
    "fuse": Edit(fuse, ("fused",), ("decomposed",)),
    "unfold": Edit(unfold, ("inserted", "decomposed"), ("folded",)),
    "perturb": Edit(perturb, ("weights-changed",), ("weights-changed",)),
    "re-lay": Edit(re_lay, ("weights-re-laid",), ("weights-re-laid",)),
    "retype": Edit(retype, ("retyped",), ("retyped",)),
}
"""All edits by name."""

STRUCTURAL: Final = (
    "delete", "insert", "insert-cast", "insert-gelu", "operator", "attribute", "rewire", "duplicate", "dead", "fuse",
)  # fmt: skip
"""Those that need no weights."""


def random_edits(count: int, seed: int, names: Sequence[str] = tuple(EDITS)) -> list[str]:
    """`count` names of edits."""
    return random.Random(seed).choices(names, k=count)

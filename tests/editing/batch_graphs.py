"""Random graphs whose samples do not see each other, or do: for what an edit of the batch makes of them."""

import random
from dataclasses import dataclass, field

import numpy

from onnxjson.model.document import Attribute, Graph, Model, Node, OperatorSetId, Tensor, ValueInfo
from onnxjson.model.tensors import from_numpy
from onnxjson.model.types import parse_type


@dataclass
class Builder:
    """A graph that grows by one random node after another; shapes are those at the batch that it is made for."""

    numbers: random.Random
    batch: int
    nodes: list[Node] = field(default_factory=list)
    constants: list[Tensor] = field(default_factory=list)
    values: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    def constant(self, array: "numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.generic]]") -> str:
        """An initializer, or a Constant."""
        name = f"c{len(self.constants) + len(self.nodes)}"
        tensor = from_numpy(array, name)
        if self.numbers.random() < 0.3:
            attribute = Attribute(name="value", type=4, t=from_numpy(array))
            self.nodes.append(Node(op_type="Constant", output=(name,), attribute=(attribute,)))
        else:
            self.constants.append(tensor)
        return name

    def node(self, op_type: str, inputs: tuple[str, ...], shape: tuple[int, ...], *attributes: Attribute) -> None:
        """A node with one output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(Node(op_type=op_type, input=inputs, output=(name,), attribute=attributes))
        self.values.append((name, shape))

    def grow(self) -> None:
        """Another node."""
        name, shape = self.numbers.choice(self.values[-3:])
        random_step = self.numbers.choice(
            [
                *[self._reshape, self._reshape, self._transpose, self._transpose, self._add, self._matmul, self._unary],
                *[self._squeeze, self._unsqueeze, self._concat, self._reduce, self._slice, self._dynamic],
                self._softmax,
            ]
        )
        random_step(name, shape)

    def _unary(self, name: str, shape: tuple[int, ...]) -> None:
        self.node(self.numbers.choice(["Relu", "Neg", "Identity"]), (name,), shape)

    def _reshape(self, name: str, shape: tuple[int, ...]) -> None:
        size = int(numpy.prod(shape))
        factors = list(shape)
        for _ in range(self.numbers.randrange(3)):
            if len(factors) > 1 and self.numbers.random() < 0.5:
                at = self.numbers.randrange(len(factors) - 1)
                factors[at : at + 2] = [factors[at] * factors[at + 1]]
            elif factors:
                at = self.numbers.randrange(len(factors))
                divisors = [d for d in range(1, factors[at] + 1) if factors[at] % d == 0]
                first = self.numbers.choice(divisors)
                factors[at : at + 1] = [first, factors[at] // first]
        if self.numbers.random() < 0.2:
            factors.insert(self.numbers.randrange(len(factors) + 1), 1)
        if len(factors) > 5 or not factors:
            factors = [size]
        said = list(factors)
        if self.numbers.random() < 0.4:
            said[self.numbers.randrange(len(said))] = -1
        elif self.numbers.random() < 0.3:
            for place in range(min(len(said), len(shape))):
                if said[place] == shape[place] and self.numbers.random() < 0.5:
                    said[place] = 0
        self.node("Reshape", (name, self.constant(numpy.array(said, numpy.int64))), tuple(factors))

    def _dynamic(self, name: str, shape: tuple[int, ...]) -> None:
        """A Reshape to what Shape says, with one axis out of a constant."""
        if not shape:
            return
        self.nodes.append(Node(op_type="Shape", input=(name,), output=(f"s{len(self.nodes)}",)))
        whole = self.nodes[-1].output[0]
        parts = []
        for place, size in enumerate(shape):
            if self.numbers.random() < 0.5:
                parts.append(self.constant(numpy.array([size], numpy.int64)))
            else:
                index = self.constant(numpy.array([place], numpy.int64))
                self.nodes.append(Node(op_type="Gather", input=(whole, index), output=(f"g{len(self.nodes)}",)))
                parts.append(self.nodes[-1].output[0])
        axis = Attribute(name="axis", type=2, i=0)
        self.nodes.append(
            Node(op_type="Concat", input=tuple(parts), output=(f"k{len(self.nodes)}",), attribute=(axis,))
        )
        self.node("Reshape", (name, self.nodes[-1].output[0]), shape)

    def _transpose(self, name: str, shape: tuple[int, ...]) -> None:
        perm = list(range(len(shape)))
        self.numbers.shuffle(perm)
        attribute = Attribute(name="perm", type=7, ints=tuple(perm))
        self.node("Transpose", (name,), tuple([shape[axis] for axis in perm]), attribute)

    def _add(self, name: str, shape: tuple[int, ...]) -> None:
        others = [each for each, other in self.values if other == shape]
        if self.numbers.random() < 0.4:
            self.node("Add", (name, self.numbers.choice(others)), shape)
            return
        start = self.numbers.randrange(len(shape) + 1)
        dims = [1 if self.numbers.random() < 0.4 else size for size in shape[start:]]
        values = numpy.arange(int(numpy.prod(dims, dtype=int)), dtype=numpy.float32).reshape(dims)
        if self.numbers.random() < 0.5:
            values = numpy.zeros_like(values)
        self.node("Add", (name, self.constant(values)), shape)

    def _matmul(self, name: str, shape: tuple[int, ...]) -> None:
        if len(shape) < 2:
            return
        columns = self.numbers.choice([1, 2, 3])
        weights = numpy.ones((shape[-1], columns), numpy.float32)
        self.node("MatMul", (name, self.constant(weights)), (*shape[:-1], columns))

    def _squeeze(self, name: str, shape: tuple[int, ...]) -> None:
        ones = [axis for axis, size in enumerate(shape) if size == 1]
        if ones:
            axis = self.numbers.choice(ones)
            axes = self.constant(numpy.array([axis], numpy.int64))
            self.node("Squeeze", (name, axes), shape[:axis] + shape[axis + 1 :])

    def _unsqueeze(self, name: str, shape: tuple[int, ...]) -> None:
        if len(shape) < 5:
            axis = self.numbers.randrange(len(shape) + 1)
            axes = self.constant(numpy.array([axis], numpy.int64))
            self.node("Unsqueeze", (name, axes), (*shape[:axis], 1, *shape[axis:]))

    def _concat(self, name: str, shape: tuple[int, ...]) -> None:
        if not shape or numpy.prod(shape) > 500:
            return
        axis = self.numbers.randrange(len(shape))
        other = name if self.numbers.random() < 0.5 else self.constant(numpy.zeros(shape, numpy.float32))
        dims = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
        self.node("Concat", (name, other), dims, Attribute(name="axis", type=2, i=axis))

    def _reduce(self, name: str, shape: tuple[int, ...]) -> None:
        if not shape:
            return
        axis = self.numbers.randrange(len(shape))
        axes = self.constant(numpy.array([axis], numpy.int64))
        keep = self.numbers.randrange(2)
        dims = (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])
        self.node("ReduceMax", (name, axes), dims, Attribute(name="keepdims", type=2, i=keep))

    def _softmax(self, name: str, shape: tuple[int, ...]) -> None:
        if shape:
            axis = Attribute(name="axis", type=2, i=self.numbers.randrange(len(shape)))
            self.node("Softmax", (name,), shape, axis)

    def _slice(self, name: str, shape: tuple[int, ...]) -> None:
        if not shape:
            return
        axis = self.numbers.randrange(len(shape))
        end = self.numbers.choice([shape[axis], 2**31 - 1, 1])
        values = [self.constant(numpy.array([value], numpy.int64)) for value in (0, end, axis)]
        self.node("Slice", (name, *values), (*shape[:axis], min(end, shape[axis]), *shape[axis + 1 :]))

    def model(self) -> Model:
        """The model; its output is the last value."""
        name, shape = self.values[-1]
        graph = Graph(
            node=tuple(self.nodes),
            name="g",
            initializer=tuple(self.constants),
            input=(ValueInfo("x", parse_type(f"float32[{self.batch},4,6]")),),
            output=(ValueInfo(name, parse_type(f"float32[{','.join(map(str, shape))}]")),),
        )
        return Model(ir_version=10, graph=graph, opset_import=(OperatorSetId("", 20),))


def random_model(seed: int, batch: int, length: int) -> Model:
    """A model that takes ``x`` of float32[batch,4,6]."""
    builder = Builder(random.Random(seed), batch)
    builder.values.append(("x", (batch, 4, 6)))
    while len(builder.values) < length:
        builder.grow()
    return builder.model()

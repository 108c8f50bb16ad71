"""One graph as columns of interned integers, for matching: the label of each node and the sources of its inputs.

The view ignores different notations: a Constant is a constant like an initializer, and the output of an Identity is
its input. It has no names: a value is the node and slot that produce it, or a leaf (a constant by its content, a graph
input, a value of an outer graph).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from onnxjson.diffing.matching.contents import AttributeKey, ContentOf, attributes_key, constant_content, sparse_content
from onnxjson.model.constants import constant_output
from onnxjson.model.document import Function, Graph, Node
from onnxjson.model.index import Scope
from onnxjson.model.messages import value_of
from onnxjson.model.operators import OperatorKey, is_commutative, plain_domain

SHIFT: Final = 20
"""The code of an output of a node is ``position << SHIFT | output slot``."""
SLOT: Final = (1 << SHIFT) - 1
EMPTY: Final = -1
"""The code of an omitted optional input; the codes of other leaves are lower."""
CAPTURED: Final = SLOT
"""The input slot of values that subgraphs of a node capture: their order has no meaning."""

REAL: Final = 0
CONSTANT: Final = 1
ALIAS: Final = 2

_OPERATOR: Final = attrgetter("domain", "op_type", "overload")
_ATTRIBUTE: Final = attrgetter("attribute")
_INPUT: Final = attrgetter("input")
_OUTPUT: Final = attrgetter("output")

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

MISSING: Final = -2
"""The code of an undefined name."""

Subgraphs = Callable[[Node, int], tuple[Callable[[Graph], Hashable], tuple[str, ...]]]
"""For a node with subgraphs and its position: a function for the key of each subgraph, and the captured names."""


class Interner:
    """Numbers for keys, shared by both models."""

    def __init__(self) -> None:
        self.operators: dict[OperatorKey, int] = {}
        """(domain, op_type, overload) -> number."""
        self.labels: dict[tuple[int, AttributeKey], int] = {}
        """(operator, attributes) -> number."""
        self.leaves: dict[Hashable, int] = {"missing": 0}
        """Constants, inputs and outer values -> number."""
        self.constants: set[int] = set()
        """The codes of leaves that are constants."""
        self.forward: dict[tuple[int, ...], int] = {}
        """Computations -> number (`onnxjson.diffing.matching.labels`)."""

    def constant(self, content: Hashable) -> int:
        """Return the code of a constant."""
        code = self.leaf(("constant", content))
        self.constants.add(code)
        return code

    def leaf(self, key: Hashable) -> int:
        """Return the code of a leaf."""
        return -2 - self.leaves.setdefault(key, len(self.leaves))


class _SourceCodes(dict[str, int]):
    """Names -> codes; `outer` returns the code of a name that the graph does not define."""

    def __init__(self, outer: Callable[[str], int]) -> None:
        super().__init__({"": EMPTY})
        self._outer = outer

    def __missing__(self, name: str) -> int:
        self[name] = code = self._outer(name)
        return code


class Columns:
    """The columns of one graph of one model.

    Attributes:
        operator: int64 [nodes], the number of the operator.
        label: int64 [nodes], the number of the operator with its attributes.
        kind: int8 [nodes], REAL, CONSTANT or ALIAS.
        codes: int64 [input slots], the source of each input.
        names: list [input slots], the name of each input.
        starts: int64 [nodes + 1], start of the slots of each node in `codes`.
        explicit: the number of inputs of the node itself, for nodes whose subgraphs capture values.
        output_codes: the sources of the graph outputs.
        sources: names -> codes.
        constant_codes: the codes of all constants of both models.
        aliases: names of outputs of ALIAS nodes -> their inputs.
    """

    def __init__(
        self,
        scope: Scope,
        interner: Interner,
        content_of: ContentOf,
        *,
        input_leaves: Mapping[str, int],
        outer: Callable[[str], int],
        subgraphs: Subgraphs,
        operator_key: Callable[[Node], OperatorKey],
        other: Scope | None = None,
    ) -> None:
        self.scope = scope
        self._other = other
        self.nodes = nodes = scope.graph.node
        self.aliases: dict[str, str] = {}
        self.explicit: dict[int, int] = {}
        self._interner = interner
        self.constant_codes = interner.constants
        self._content_of = content_of
        self._operators(operator_key)
        constants = self._find_constants()
        captures = self._labels(subgraphs)
        self.sources = self._sources(constants, input_leaves, outer)
        self._find_aliases()
        sources = self.sources
        if captures:
            self.explicit = {position: len(nodes[position].input) for position in captures}
            inputs = [node.input + captures.get(position, ()) for position, node in enumerate(nodes)]
        else:
            inputs = list(map(_INPUT, nodes))
        counts = np.fromiter(map(len, inputs), np.int64, len(inputs))
        self.names = list(chain.from_iterable(inputs))
        self.codes: Integers = np.fromiter(map(sources.__getitem__, self.names), np.int64, len(self.names))
        self.starts: Integers = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        self.output_codes: list[int] = [sources[name or ""] for name in scope.output_names]

    def __len__(self) -> int:
        return len(self.nodes)

    def _operators(self, operator_key: Callable[[Node], OperatorKey]) -> None:
        nodes = self.nodes
        keys = list(map(_OPERATOR, nodes))
        operators = self._interner.operators
        known = {}
        for key, node in dict(zip(keys, nodes, strict=True)).items():
            known[key] = operators.setdefault(operator_key(node), len(operators))
        self.operator: Integers = np.fromiter(map(known.__getitem__, keys), np.int64, len(keys))
        self.kind = np.zeros(len(nodes), np.int8)
        self.commutative = self._is_one_of([known[key] for key in known if is_commutative(key[0], key[1])])
        self._constant_nodes = self._positions([known[key] for key in known if key[1] == "Constant"])
        self._copies = self._positions([known[key] for key in known if key[1] in ("Identity", "Cast")])

    def _is_one_of(self, operators: list[int]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = np.isin(self.operator, np.array(operators, np.int64))
        return found

    def _positions(self, operators: list[int]) -> list[int]:
        found: list[int] = np.nonzero(self._is_one_of(operators))[0].tolist()
        return found

    def _find_constants(self) -> dict[str, int]:
        codes = {}
        for position in self._constant_nodes:
            node = self.nodes[position]
            content = constant_content(node, self._content_of) if constant_output(node) is not None else None
            if content is not None:
                self.kind[position] = CONSTANT
                codes[node.output[0]] = self._interner.constant(content)
        return codes

    def _labels(self, subgraphs: Subgraphs) -> dict[int, tuple[str, ...]]:
        """Number the nodes by operator and attributes; return the names that the subgraphs of each node capture."""
        labels = self._interner.labels
        content_of = self._content_of
        operators: list[int] = self.operator.tolist()
        # The readers share equal attributes as one object, so few of them are inspected.
        places = list(zip(operators, map(id, map(_ATTRIBUTE, self.nodes)), strict=True))
        owners = {scope.owner.position for scope in self.scope.children if scope.owner is not None}
        known = dict.fromkeys(places, -1)
        constants = set(np.nonzero(self.kind == CONSTANT)[0].tolist())
        for place, position in dict(zip(places, range(len(places)), strict=True)).items():
            if position not in owners and position not in constants:
                key = (place[0], attributes_key(self.nodes[position].attribute, content_of, hash))
                known[place] = labels.setdefault(key, len(labels))
        captures: dict[int, tuple[str, ...]] = {}
        node_labels = list(map(known.__getitem__, places))
        for position in sorted(owners):
            node = self.nodes[position]
            graph_key, captures[position] = subgraphs(node, position)
            key = (operators[position], attributes_key(node.attribute, content_of, graph_key))
            node_labels[position] = labels.setdefault(key, len(labels))
        self.label: Integers = np.array(node_labels, np.int64)
        return captures

    def _sources(
        self, constants: Mapping[str, int], input_leaves: Mapping[str, int], outer: Callable[[str], int]
    ) -> dict[str, int]:
        sources = _SourceCodes(outer)
        outputs = list(map(_OUTPUT, self.nodes))
        names = list(chain.from_iterable(outputs))
        codes: Sequence[int] = range(0, len(outputs) << SHIFT, 1 << SHIFT)
        if len(names) > len(outputs) or not all(outputs):
            codes = [code | slot for each, code in zip(outputs, codes, strict=True) for slot in range(len(each))]
        # If several nodes produce the same name, which is invalid, the first one counts.
        sources.update(zip(reversed(names), reversed(codes), strict=True))
        sources[""] = EMPTY
        sources.update(constants)
        sources.update(input_leaves)
        sources.update(self._initializers())
        return sources

    def _initializers(self) -> dict[str, int]:
        graph = self.scope.graph
        if isinstance(graph, Function):
            return {}
        content_of, constant = self._content_of, self._interner.constant
        codes = {tensor.name: constant(content_of(tensor)) for tensor in reversed(graph.initializer) if tensor.name}
        for sparse in graph.sparse_initializer:
            if sparse.values is not None and sparse.values.name:
                codes.setdefault(sparse.values.name, constant(sparse_content(sparse, content_of)))
        return codes

    def _find_aliases(self) -> None:
        for position in self._copies:
            node = self.nodes[position]
            if len(node.input) != 1 or len(node.output) != 1 or plain_domain(node.domain) or not node.input[0]:
                continue
            if node.op_type == "Cast" and not self._changes_nothing(node):
                continue
            self.kind[position] = ALIAS
            self.aliases[node.output[0]] = node.input[0]
        sources = self.sources
        roots: dict[str, str] = {}
        for name in self.aliases:
            source, passed = name, []
            while source in self.aliases and source not in roots:
                roots[source] = ""  # if the chain returns to it: a cycle of aliases has no source
                passed.append(source)
                source = self.aliases[source]
            if root := roots.get(source, source):
                roots.update(dict.fromkeys(passed, root))
                sources.update(dict.fromkeys(passed, sources[root]))

    def _changes_nothing(self, cast: Node) -> bool:
        to = next((value_of(each) for each in cast.attribute if each.name == "to"), None)
        declared = self.scope.types.get(cast.input[0])
        if declared is None and self._other is not None:
            # The same Cast has the same effect; perhaps only the other model states types.
            position = self._other.producer_position(cast.output[0])
            if position is not None and self._other.graph.node[position] == cast:
                declared = self._other.types.get(cast.input[0])
        tensor = None if declared is None else declared.tensor_type
        return to is not None and tensor is not None and tensor.elem_type == to

    @cached_property
    def consumer(self) -> Integers:
        """int64 [input slots]: the node of the slot."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.starts))

    @cached_property
    def slot(self) -> Integers:
        """int64 [input slots]: position among the inputs of the node; CAPTURED for captured values."""
        slots = np.arange(len(self.codes), dtype=np.int64) - self.starts[self.consumer]
        for position, count in self.explicit.items():
            slots[self.starts[position] + count : self.starts[position + 1]] = CAPTURED
        return slots

    @cached_property
    def edges(self) -> Integers:
        """Positions in `codes` of inputs of REAL nodes that a node produces, in the order of the consumers."""
        return np.nonzero((self.codes >= 0) & (self.kind[self.consumer] == REAL))[0]

    @cached_property
    def edges_by_producer(self) -> tuple[Integers, Integers]:
        """`edges` ordered by producer, and the start of the edges of each producer, int64 [nodes + 1]."""
        producers = self.codes[self.edges] >> SHIFT
        order = np.argsort(producers, kind="stable")
        starts = np.searchsorted(producers[order], np.arange(len(self) + 1))
        return self.edges[order], starts

    @cached_property
    def is_constant_slot(self) -> NDArray[np.bool_]:
        """bool [input slots]: whether the input is a constant."""
        constants = np.fromiter(self.constant_codes, np.int64, len(self.constant_codes))
        return (self.codes < EMPTY) & np.isin(self.codes, constants)

    @cached_property
    def code_list(self) -> list[int]:
        """`codes` as a list, for loops."""
        codes: list[int] = self.codes.tolist()
        return codes

    @cached_property
    def start_list(self) -> Sequence[int]:
        """`starts` as a sequence of Python integers, which loops read faster."""
        return memoryview(self.starts)  # type: ignore[arg-type]

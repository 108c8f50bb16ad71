"""Infer the types of nodes; of nodes that are alike, onnx infers only the first ones.

Nodes are alike if they have the same operator, attributes and types of inputs, and equal constants where these may
decide a shape. Nodes are never alike if inference may compute with an input, such as the result of Shape.
"""

from collections import ChainMap
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from onnxjson.editing.partial_inference import InferredPart, Names, Part, Sizes, Values, complaint
from onnxjson.editing.type_relations import is_complete, is_enough
from onnxjson.model.constants import own_constant
from onnxjson.model.document import Node, Type
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import plain_domain
from onnxjson.running.light_model import is_small

_FIRST_NODES: Final = 512
"""Number of nodes that onnx infers first; each further call infers twice as many."""

_BY_TYPES: Final = frozenset({
    "Add", "BatchNormalization", "Conv", "ConvTranspose", "DequantizeLinear", "Div", "GRU", "Gemm",
    "InstanceNormalization", "LSTM", "LayerNormalization", "MatMul", "Mul", "PRelu", "Pow", "QuantizeLinear", "Sub",
})  # fmt: skip
"""Operators for which only the types of constants matter, not their elements."""

_Kind = tuple[object, ...]
"""What nodes that are alike have in common."""


class Inference:
    """The types that onnx infers for nodes in the main graph of a model."""

    def __init__(self, index: Index, folder: Path | None) -> None:
        self.index = index
        self.folder = folder
        self.alike: dict[_Kind, list[Type]] = {}
        """Types of the outputs of nodes that were inferred."""

    def infer(
        self,
        positions: Collection[int],
        known: Mapping[str, Type | None],
        cleared: Names,
        opened: Values = MappingProxyType({}),
        sizes: Sizes | None = None,
    ) -> InferredPart:
        """Infer the types of the outputs of some nodes; for the arguments and errors see `Part`."""
        if self.index.main is None:
            return InferredPart({}, {})
        if len(self.index.scopes) > 1:
            return Part(self.index, positions, known).infer(cleared, opened, self.folder, sizes)
        return _Run(self, self.index.main, frozenset(positions), known, cleared, sizes).result()


@dataclass
class _Run:
    """Nodes of a model without subgraphs, followed in their order."""

    whole: Inference
    main: Scope
    positions: Collection[int]
    known: Mapping[str, Type | None]
    cleared: Names
    sizes: Sizes | None
    types: dict[str, Type] = field(default_factory=dict)
    open: dict[str, Type] = field(default_factory=dict)
    """Values of which nothing is known; the types that the model states for them may be wrong."""
    complaints: dict[str, str] = field(default_factory=dict)
    alike: set[int] = field(default_factory=set)
    sized: dict[Type, Type] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes, self.producers = self.main.graph.node, self.main.producers
        self.names = self.cleared.get(self.main.address, ())

    def result(self) -> InferredPart:
        nodes, waiting, size = self.nodes, list[int](), _FIRST_NODES
        for position in sorted(self.positions):
            kind = self._kind(position)
            types = None if kind is None else self.whole.alike.get(kind)
            if types is not None:
                self.types.update(zip(nodes[position].output, types, strict=True))
                self.alike.add(position)
                continue
            waiting.append(position)
            if len(waiting) == size:
                self._infer(waiting)
                waiting, size = [], 2 * size
        if waiting:
            self._infer(waiting)
        return InferredPart({self.main.address: self.types}, self.complaints, self.alike)

    def _infer(self, positions: list[int]) -> None:
        model_types = self.whole
        part = Part(model_types.index, positions, ChainMap(self.types, self.open, self.known))  # type: ignore[arg-type]
        inferred = part.infer(self.cleared, {}, model_types.folder, self.sizes)
        self.types.update(inferred.types.get(self.main.address, {}))
        self.complaints.update(inferred.complaints)
        for position in positions:
            names = self.nodes[position].output
            types = [self.types[name] for name in names if name in self.types]
            if len(types) < len(names):
                self.open.update({name: Type() for name in names if name not in self.types})
            elif not inferred.complaints and all(map(is_complete, types)):
                kind = self._kind(position)
                if kind is not None and complaint(inferred, NodeRef(self.main, position)) is None:
                    model_types.alike[kind] = types

    def _kind(self, position: int) -> _Kind | None:
        """Return what a node has in common with nodes that are like it; None if that is not known (yet)."""
        node = self.nodes[position]
        for name in node.output:
            if name not in self.names or self.producers[name][0] != position:
                return None
        inputs: list[object] = []
        for name in node.input:
            known: object = self.types.get(name)
            if known is None or not is_enough(self.types[name]):
                known = self._given(name, node) if name else ""
            if known is None:
                return None
            inputs.append(known)
        is_sized = self.sizes is not None  # types in attributes have dimensions, too
        return (is_sized, node.op_type, node.domain, node.overload, id(node.attribute), len(node.output), *inputs)

    def _given(self, name: str, node: Node) -> object:
        """Return the type or content of an input that none of the nodes produces; None if that is not sufficient."""
        main, producer = self.main, self.main.producers.get(name)
        if (constant := own_constant(main, name)) is not None:
            tensor = constant.tensor
            if tensor is None or constant.is_default or (constant.held is tensor and producer is not None):
                return None
            if node.op_type in _BY_TYPES and not plain_domain(node.domain):
                return (tensor.data_type, tensor.dims)
            return replace(tensor, name=None) if is_small(tensor) else id(constant.held)
        stated = self.known[name] if name in self.known else main.types.get(name)
        if stated is None or (producer is not None and producer[0] in self.positions) or not is_enough(stated):
            return None
        if self.sizes is not None:
            if stated not in self.sized:
                self.sized[stated] = self.sizes.put_in(stated)
            stated = self.sized[stated]
        self.types[name] = stated
        return stated

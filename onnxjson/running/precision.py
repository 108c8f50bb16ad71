"""How precisely the values of a model can be compared: from the operators on the way to them, not only their dtypes.

A float64 that is computed from float32 is as precise as float32, and a value behind a quantized activation as that.
A saturated sigmoid is close to 0 or 1 to about a unit of the range of the function, whatever the size of the element.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from onnxjson.model.constants import constant_values, type_of_constant
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.document import Model, Node
from onnxjson.model.dtypes import DTYPES
from onnxjson.model.index import Index, Scope
from onnxjson.model.operator_checks import dtype_of_type, produced_dtype
from onnxjson.model.operators import plain_domain, table_signature
from onnxjson.running.comparisons import EXACT, Tolerance, looser

QUANTIZED: Final = Tolerance(relative=0.02, of_scale=0.01)
"""Tolerance of values behind activations of 8 bits: a rounding that differs moves an element by 1 of 255 steps."""

_QUANTIZING: Final = frozenset(("QuantizeLinear", "DynamicQuantizeLinear"))

_COPYING: Final = frozenset((
    "Cast", "CastLike", "Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements",
    "GatherND", "Identity", "Pad", "Reshape", "ReverseSequence", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile",
    "TopK", "Transpose", "Unsqueeze", "Where",
))  # fmt: skip
"""Operators whose elements are those of their inputs: they compute nothing, in whatever dtype."""

_BOUNDED: Final = frozenset(("Cos", "Erf", "HardSigmoid", "Sigmoid", "Sin", "Softmax", "Softsign", "Tanh"))
"""Operators whose results are between -1 and 1."""

_FLOOR: Final = 0.1
"""Error at the ends of a range of 1, as a share of `Tolerance.of_scale`: about ten units of float32."""


def least_tolerances(index: Index, names: Sequence[str], tolerances: Mapping[str, Tolerance]) -> list[Tolerance]:
    """Return how far values of the main graph may differ at least, if they are numbers of floating point.

    Args:
        names: outputs or inner values of the main graph.
        tolerances: those of each dtype, by name.
    """
    if index.main is None:
        return [EXACT] * len(names)
    found = _Precision(index.model, index.main, tolerances)
    return [found.of(name) for name in names]


class _Precision:
    """What the nodes of a graph compute in, followed from node to node."""

    def __init__(self, model: Model, scope: Scope, tolerances: Mapping[str, Tolerance]) -> None:
        self._tolerances = tolerances
        self._opsets = {plain_domain(each.domain): each.version or 0 for each in model.opset_import}
        self._dtypes: dict[str, int | None] = {}
        self._computed: dict[str, Tolerance] = {}
        """Values computed by nodes -> the loosest tolerance of a dtype on the way."""
        self._ranges: dict[str, float] = {}
        self._enter(scope)

    def of(self, name: str) -> Tolerance:
        """Return the tolerance of a value, with the floor of its range."""
        found = self._computed.get(name, EXACT)
        return looser([found, Tolerance(absolute=_FLOOR * found.of_scale * self._ranges.get(name, 0.0))])

    def _enter(self, scope: Scope) -> None:
        """Follow the nodes of a graph, and those of its subgraphs."""
        self._dtypes |= {name: dtype_of_type(kind) for name, kind in scope.types.items()}
        for name in scope.initializers:
            constant = scope.initializer(name)
            self._dtypes[name] = None if constant is None else dtype_of_type(type_of_constant(constant))
        constants = constant_values(scope)
        for position, node in enumerate(scope.graph.node):
            self._follow(node, constants)
            bodies = scope.bodies.get(position, ())
            for body in bodies:
                self._enter(body)
            self._leave(node, bodies)

    def _leave(self, node: Node, inner: Sequence[Scope]) -> None:
        """Note what the subgraphs of a node return, as the body of a Loop does after its condition."""
        for slot, name in enumerate(node.output if inner else ()):
            returned = [str(names[slot - len(node.output)]) for each in inner
                        if len(names := each.output_names) >= len(node.output)]  # fmt: skip
            self._computed[name] = looser([self._computed.get(each, EXACT) for each in (name, *returned)])
            if returned and all(each in self._ranges for each in returned):
                self._ranges[name] = max([self._ranges[each] for each in returned])

    def _follow(self, node: Node, constants: Collection[str]) -> None:
        before = looser([self._computed.get(name, EXACT) for name in consumed_names(node)])
        operator = node.op_type if not plain_domain(node.domain) else ""
        # Scores that are joined with other values keep the floor of their range, which is little for those.
        copied = node.input if operator == "Concat" else node.input[:1]
        for slot, name in enumerate(node.output):
            dtype = self._dtypes.get(name) or self._dtype(node, slot)
            self._dtypes[name] = dtype
            if name in constants:
                continue
            if operator in _BOUNDED:
                self._ranges[name] = 1.0
            elif operator in _COPYING and (ranges := [self._ranges[each] for each in copied if each in self._ranges]):
                self._ranges[name] = max(ranges)
            computed_here = EXACT
            if operator in _QUANTIZING or (node.op_type or "").startswith("QLinear"):
                computed_here = QUANTIZED
            elif operator not in _COPYING:
                computed_here = self._tolerances.get(DTYPES[dtype].name, EXACT) if dtype in DTYPES else EXACT
            self._computed[name] = looser([before, computed_here])

    def _dtype(self, node: Node, slot: int) -> int | None:
        domain = plain_domain(node.domain)
        found = produced_dtype(node, table_signature(domain, node.op_type, self._opsets.get(domain, 0)), slot)
        return self._dtypes.get(found) if isinstance(found, str) else found

"""The cost of a model: operations, parameters, bytes of weights and of activations, and their peak.

Nodes are counted once for each time that they run: of an If the costlier branch, the body of a Loop or Scan for each
iteration. An activation is a value that a node of the main graph produces, or an input of the model; it is alive until
its last consumer ran, an output of the model to the end. The peak is over the nodes in the order of the file, without
memory that a runtime reuses in place or needs inside of an operator.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from onnxjson.checking.amounts import Amount, Size, UnknownAmountError, is_at_least, largest, plain, product, sum_sizes
from onnxjson.checking.formulas import Call, Shape, Work, sum_work, texts, work_of
from onnxjson.checking.shapes import Typed, produced, sizes_of, typed, with_input_names
from onnxjson.checking.weight_use import WeightUse
from onnxjson.model.constants import find_constant
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.dimensions import names_within, with_dimension_names
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Model, Node
from onnxjson.model.dtypes import BITS
from onnxjson.model.elements import element_count
from onnxjson.model.errors import OnnxJsonError, ParameterError
from onnxjson.model.index import Index, NodeRef, Scope, index_of
from onnxjson.model.operators import operator_key, operator_name, plain_domain
from onnxjson.model.tensors import to_numpy
from onnxjson.model.weights import held_constants, weight_totals
from onnxjson.patterns.selector_terms import scopes_of

_MOST_PEAKS: Final = 8
"""Formulas of which one may be the peak, before it counts as unknown."""

Number = int | str
"""A number, or the text of a formula of dimensions without a size."""


class NodeCost(msgspec.Struct, frozen=True):
    """The cost of one node, with its subgraphs."""

    address: str
    name: str
    operator: str
    macs: Number
    flops: Number
    output_bytes: Number | None


class GroupCost(msgspec.Struct, frozen=True):
    """The cost of all nodes of an operator or of a scope; the bytes of all operators are those of the model."""

    name: str
    """"" for weights that no node uses and, of scopes, nodes outside of all scopes."""
    nodes: int
    macs: Number
    flops: Number
    weight_bytes: int
    """Bytes of the weights that these nodes are the first to use."""


class Unknown(msgspec.Struct, frozen=True):
    """Nodes that are not counted, or not all of the time."""

    operator: str
    nodes: int
    reason: str


class Cost(msgspec.Struct, frozen=True):
    """The cost of a model; formulas where dimensions have no size."""

    macs: Number
    flops: Number
    parameters: int
    """Elements of weights."""
    weight_bytes: int
    constant_bytes: int
    """Bytes of the constants that are not weights: shapes, indices, masks."""
    activation_bytes: Number
    peak_activation_bytes: Number | None
    """``max(...)`` if one of several formulas is the peak; None if too many are."""
    peak_at: str | None
    """Address of the node during which the peak is reached."""
    dims: dict[str, int]
    """Sizes of dimensions that were given."""
    unknown: tuple[Unknown, ...]
    """Operators that are not in `macs` and `flops`."""
    unsized: int
    """Number of activations whose size is not known; they are not in the bytes."""
    notes: tuple[str, ...]
    operators: tuple[GroupCost, ...]
    scopes: tuple[GroupCost, ...]
    nodes: tuple[NodeCost, ...]
    """The nodes that need operations or were not counted in the main graph, in the order of the file."""

    @property
    def partial(self) -> tuple[str, ...]:
        """The numbers in which something is not counted, so that they are lower bounds."""
        operations, memory = ("macs", "flops"), ("activation_bytes", "peak_activation_bytes")
        return (*(operations if self.unknown else ()), *(memory if self.unsized else ()))


def cost_of(
    model: Model, folder: Path | None = None, dims: Mapping[str, int] | None = None, *, details: bool = True
) -> Cost:
    """Compute the cost of a model.

    Types that the model does not state are inferred in a sandboxed process, after its functions are inlined.

    Args:
        model: is not modified.
        folder: the folder of small external data.
        dims: sizes of dimensions by name; of those of inputs without a name by place, such as ``x:0``.
        details: also list operators, scopes and nodes.

    Raises:
        ParameterError: the model has no dimension of such a name.
    """
    dims = dict(dims or {})
    check_dims(dims, model)
    named = with_input_names(model)
    sized = with_dimension_names(named, dims) if dims else named
    types = typed(sized, folder)
    is_original = not model.functions or types.model is sized
    return _Costs(types, is_original=is_original).total(model, dims, details=details)


def check_dims(dims: Mapping[str, int], *models: Model) -> None:
    """Raise `ParameterError` unless each name is that of a dimension of some model."""
    known = {name for model in models for name in names_within(with_input_names(model))} if dims else ()
    for name in dims:
        if name not in known:
            names = listed([f'"{visible(each)}"' for each in sorted(known)], 5)
            hint = suggest(name, known) or (f"it has {names}" if known else "all of its dimensions have sizes")
            raise ParameterError(f'the model has no dimension "{visible(name)}"; {hint}')


def known_dims(dims: Mapping[str, int], model: Model) -> dict[str, int]:
    """Return the sizes of the dimensions that a model has."""
    names = names_within(with_input_names(model)) if dims else ()
    return {name: size for name, size in dims.items() if name in names}


def assumed_dims(dims: Mapping[str, int], model: Model) -> dict[str, int]:
    """Return sizes for the dimensions of the inputs of a model: 2 for those that have none."""
    graph = with_input_names(model).graph
    inputs = () if graph is None else graph.input
    names = [name for each in inputs for name in each.shape or () if isinstance(name, str)]
    return known_dims(dict.fromkeys(names, 2) | dict(dims), model)


def costs_of(models: Sequence[Model], folders: Sequence[Path], dims: Mapping[str, int]) -> list[Cost]:
    """Compute the costs of several models; a dimension need not be in all of them.

    Raises:
        ParameterError: no model has a dimension of such a name.
    """
    check_dims(dims, *models)
    sizes = [known_dims(dims, model) for model in models]
    return [cost_of(*each) for each in zip(models, folders, sizes, strict=True)]


class _Costs:
    """One walk over the main graph of a model and its subgraphs."""

    def __init__(self, types: Typed, *, is_original: bool) -> None:
        self._types = types
        self._index = index_of(types.model)
        self._is_original = is_original
        """Whether addresses are those of the model that the user knows."""
        self._unknown: Counter[tuple[str, str]] = Counter()
        self._unsized = 0
        self._shapes: dict[tuple[int, str], Shape | None] = {}

    def total(self, model: Model, dims: Mapping[str, int], *, details: bool) -> Cost:
        main = self._index.main
        refs = [] if main is None else _nodes(main)
        works = [self._work(ref) for ref in refs]
        sizes = {} if main is None else self._sizes(main)
        produced, peaks = (0, [(0, None)]) if main is None else self._activations(main, sizes)
        whole = sum_work(works)
        macs, flops = texts(whole)
        if not details:
            refs, works = [], []
        # Where functions are inlined, the names of their constants are not those of the model, so their nodes use them.
        functions = [scope for scope in index_of(model).scopes if scope.kind == "function"] if details else []
        inside = [ref for scope in functions for ref in _nodes(scope)]
        constants = list(held_constants(index_of(model)))
        use = WeightUse(model, constants if details else ())
        weights = [use.take(ref) for ref in (*refs, *inside)]
        scopes = [scopes_of(ref.node) for ref in (*refs, *inside)]
        kinds = [[_name_of(ref)] for ref in (*refs, *inside)]
        all_works = (*works, *[None] * len(inside))
        totals = weight_totals(constants)
        return Cost(
            macs=macs,
            flops=flops,
            **totals._asdict(),
            activation_bytes=plain(produced),
            peak_activation_bytes=_peak([size for size, _ in peaks]),
            peak_at=peaks[0][1] if len(peaks) == 1 and self._is_original else None,
            dims=dict(dims),
            unknown=tuple([Unknown(name, count, why) for (name, why), count in sorted(self._unknown.items())]),
            unsized=self._unsized,
            notes=self._types.notes,
            operators=_groups(kinds, all_works, weights, use.rest),
            scopes=_groups(scopes, all_works, weights, use.rest) if any(scopes) else (),
            nodes=tuple([self._node(ref, work, sizes) for ref, work in zip(refs, works, strict=True) if any(work)]),
        )

    def _node(self, ref: NodeRef, work: Work, sizes: Mapping[str, Size | None]) -> NodeCost:
        stored = [sizes.get(name) for name in ref.node.output if name]
        stored_bytes = None if None in stored else plain(sum_sizes([each for each in stored if each is not None]))
        macs, flops = texts(work)
        address = ref.address if self._is_original else ""
        return NodeCost(address, ref.node.name or "", _name_of(ref), macs, flops, stored_bytes)

    def _work(self, ref: NodeRef) -> Work:
        node = ref.node
        domain, op_type, _ = operator_key(node)
        try:
            if not domain and op_type in ("If", "Loop", "Scan"):
                return self._controlled(ref)
            shapes = [self._known(ref.scope, name) for name in (*node.input, *node.output)]
            given = frozenset([slot for slot, name in enumerate(node.input) if name])
            inputs, outputs = shapes[: len(node.input)], shapes[len(node.input) :]
            return work_of((domain, op_type), Call(inputs, outputs, given, _values(node)))
        except UnknownAmountError as error:
            self._unknown[_name_of(ref), str(error)] += 1
            return Work()

    def _controlled(self, ref: NodeRef) -> Work:
        works = [sum_work(map(self._work, _nodes(each))) for each in ref.scope.bodies.get(ref.position, ())]
        if ref.node.op_type == "If":
            return max(works, key=_weight, default=Work())
        times = self._iterations(ref)
        if times is None:
            self._unknown[_name_of(ref), "the number of iterations is not known; counted as one"] += 1
            times = 1
        return Work(*[each * times for each in sum_work(works)])

    def _iterations(self, ref: NodeRef) -> Size | None:
        node = ref.node
        if node.op_type == "Loop":
            constant = find_constant(ref.scope, node.input[0]) if node.input and node.input[0] else None
            if constant is None or constant.tensor is None or element_count(constant.tensor.dims) != 1:
                return None
            try:
                return int(to_numpy(constant.tensor).reshape(-1)[0])
            except OnnxJsonError:
                return None
        shape = self._known(ref.scope, node.input[-1]) if node.input else None
        axes = node.attributes.get("scan_input_axes") or (0,)
        return shape[axes[-1]] if shape and -len(shape) <= axes[-1] < len(shape) else None

    def _known(self, scope: Scope, name: str) -> Shape | None:
        """Return the shape of a value; None if a part of it is not known."""
        key = id(scope), name
        if key not in self._shapes:
            self._shapes[key] = self._shape(scope, name)
        return self._shapes[key]

    def _shape(self, scope: Scope, name: str) -> Shape | None:
        dims = sizes_of(Index.type_of(scope, name), self._types.names) if name else None
        if dims is None and name and (found := find_constant(scope, name)) is not None and found.value is not None:
            dims = found.value.dims
        formulas = self._types.formulas
        owner = next((each for each in scope.chain() if (each.address, name) in formulas), None) if formulas else None
        if owner is not None:
            fitted = formulas[owner.address, name]
            stated = dims if dims is not None and len(dims) == len(fitted) else fitted
            dims = tuple([size if own is None else own for own, size in zip(fitted, stated, strict=True)])
        return None if dims is None or None in dims else cast("Shape", dims)

    def _sizes(self, scope: Scope) -> dict[str, Size | None]:
        """Return the bytes of the inputs of a graph and of the values that its nodes produce; None if not known."""
        names = [name for name in scope.inputs if scope.initializer(name) is None]
        return {name: self._bytes(scope, name) for name in (*names, *produced(scope))}

    def _bytes(self, scope: Scope, name: str) -> Size | None:
        stated, shape = Index.type_of(scope, name), self._known(scope, name)
        tensor = None if stated is None else stated.tensor_type
        bits = BITS.get(tensor.elem_type or 0) if tensor is not None else None
        if shape is None or bits is None:
            return None
        total = product((bits, *shape))
        try:
            return (total + 7) // 8 if isinstance(total, int) else total // 8
        except UnknownAmountError:
            return None

    def _activations(
        self, scope: Scope, sizes: Mapping[str, Size | None], *, is_inner: bool = False
    ) -> tuple[Size, list[tuple[Size, str | None]]]:
        """Return the bytes of all values of a graph, and the possible peaks with the address of their nodes."""
        nodes = scope.graph.node
        last = dict.fromkeys(sizes, -1)
        uses = [consumed_names(node) for node in nodes]
        for position, names in enumerate(uses):
            last.update(dict.fromkeys([name for name in (*names, *nodes[position].output) if name in last], position))
        last.update(dict.fromkeys([name for name in scope.output_names if name in last], len(nodes)))
        ends: dict[int, list[str]] = {}
        for name, position in last.items():
            ends.setdefault(position, []).append(name)
        self._unsized += sum([size is None for size in sizes.values()])
        known = {name: size for name, size in sizes.items() if size is not None}
        alive: Size = sum_sizes([known.get(name, 0) for name in scope.inputs])
        if is_inner:
            known = {name: size for name, size in known.items() if name not in scope.inputs}
            alive = 0
        produced: list[Size] = [alive]
        peaks: list[tuple[Size, str | None]] = [(alive, None)]
        for position, node in enumerate(nodes):
            made = [known.get(name, 0) for name in dict.fromkeys(node.output)]
            produced += made
            alive = sum_sizes([alive, *made])
            inside = self._inside(NodeRef(scope, position))
            peaks = _with_peak(peaks, alive + inside, f"{scope.address}/node/{position}")
            for name in ends.get(position, ()):
                alive = alive - known.get(name, 0)
        return sum_sizes(produced), peaks

    def _inside(self, ref: NodeRef) -> Size:
        """Return the peak in the subgraphs of a node, the largest of them."""
        if not any([each.g is not None or each.graphs for each in ref.node.attribute]):
            return 0
        bodies = ref.scope.bodies.get(ref.position, ())
        peaks = [self._activations(body, self._sizes(body), is_inner=True)[1][0][0] for body in bodies]
        return (largest(peaks) or [0])[0]


def _peak(sizes: Sequence[Size]) -> Number | None:
    if len(sizes) == 1:
        return plain(sizes[0])
    return f"max({', '.join(map(str, map(plain, sizes)))})" if len(sizes) <= _MOST_PEAKS else None


def _with_peak(peaks: list[tuple[Size, str | None]], size: Size, at: str) -> list[tuple[Size, str | None]]:
    if len(peaks) > _MOST_PEAKS or any([is_at_least(each, size) for each, _ in peaks]):
        return peaks
    kept = largest([*[each for each, _ in peaks], size])
    return [each for each in peaks if each[0] in kept] + [(size, at)]


def _nodes(scope: Scope) -> list[NodeRef]:
    return [NodeRef(scope, place) for place in range(len(scope.graph.node))]


def _weight(work: Work) -> int:
    """Order the branches of an If; formulas by the sum of their coefficients."""
    flops = 2 * work.macs + work.other
    return sum(flops.terms.values()) if isinstance(flops, Amount) else flops


def _values(node: Node) -> Mapping[str, Any]:
    return {each.name or "": each.value for each in node.attribute if each.t is None and each.g is None}


def _name_of(ref: NodeRef) -> str:
    return operator_name(plain_domain(ref.node.domain), ref.node.op_type)


def _groups(
    groups: Sequence[Sequence[str]], works: Sequence[Work | None], weights: Sequence[int], rest: int
) -> tuple[GroupCost, ...]:
    """Return the sum of each group, given the groups of each node; those with most operations first.

    The work of nodes that are not counted, since others are in their place, is None.
    """
    members_of: dict[str, list[tuple[Work | None, int]]] = {}
    for names, work, size in zip(groups, works, weights, strict=True):
        if work is not None or size:
            for name in names or ("",):
                members_of.setdefault(name, []).append((work, size))
    sums = {
        name: ([work for work, _ in each if work is not None], sum([size for _, size in each]))
        for name, each in members_of.items()
    }
    others, left = sums.pop("", ([], 0))
    totals = [(name, len(each), sum_work(each), size) for name, (each, size) in sums.items()]
    totals.sort(key=lambda each: (-_weight(each[2]), -each[3], each[0]))
    if others or left or rest:
        totals.append(("", len(others), sum_work(others), left + rest))
    return tuple([GroupCost(name, nodes, *texts(work), size) for name, nodes, work, size in totals])

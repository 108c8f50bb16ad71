"""Types compared: what a model states with what onnx infers; values of a model with those before an edit.

Records that an edit does not change stay the same objects, so comparing models is fast.
"""

import heapq
import math
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Final

from msgspec.structs import replace

from onnxjson.model.constants import is_constant_node, own_constant, type_of_constant
from onnxjson.model.correspondence import Correspondence
from onnxjson.model.dimensions import IDENTIFIER, INVENTED, size_of, with_dimension
from onnxjson.model.document import (
    Attribute,
    Dimension,
    Function,
    Graph,
    Node,
    SparseTensorType,
    Tensor,
    TensorShape,
    TensorType,
    Type,
    ValueInfo,
)
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import function_key, operator_key, plain_domain
from onnxjson.model.walking import replace_records

REMEMBERED: Final = 1024
"""Number of types whose results are cached: most values of a model have one of a few types."""

_SHAPE_ELEMENTS: Final = 1024
"""Maximum number of elements of a value that may be a shape."""

_COMPUTED: Final = (DATA_TYPES["int64"], DATA_TYPES["int32"], DATA_TYPES["bool"])
_MANY: Final = 64
"""Number of elements up to which values of these dtypes, of any rank, are computed on the way to a shape or to pads."""

Dims = tuple[int | str | None, ...]
"""Sizes, names, or None for unknown."""

_FLOAT: Final = 1
"""The type of an attribute that is one number: an epsilon or alpha changes no type."""

_OPERATORS_OF_NUMBERS: Final = ("Constant", "Upsample")
"""Operators whose numbers may decide a shape."""


def dims_of(value: Type | None) -> Dims | None:
    """Return the dims of a type; names that the inference invented count as unknown."""
    tensor = None if value is None else value.tensor_type or value.sparse_tensor_type
    if tensor is None or tensor.shape is None:
        return None
    sizes = map(size_of, tensor.shape.dim)
    return tuple([None if isinstance(each, str) and each.startswith(INVENTED) else each for each in sizes])


@lru_cache(REMEMBERED)
def refine_type(stated: Type, inferred: Type) -> Type | None:
    """Fill gaps of a stated type with the inferred one; None if they contradict each other."""
    one, other = tensor_of(stated), tensor_of(without_invented_names(inferred))
    if one is None or other is None:
        kinds = [_kind(each) for each in (stated, inferred)]
        return stated if kinds[0] == kinds[1] or not all(kinds) else None
    if type(one) is not type(other) or (one.elem_type and other.elem_type and one.elem_type != other.elem_type):
        return None
    shape = one.shape
    if other.shape is not None:
        if shape is None:
            shape = other.shape
        elif len(shape.dim) != len(other.shape.dim):
            return None
        else:
            dims = [_dimension(a, b) for a, b in zip(shape.dim, other.shape.dim, strict=True)]
            known = [each for each in dims if each is not None]
            if len(known) != len(dims):
                return None
            shape = replace(shape, dim=tuple(known))
    tensor = replace(one, elem_type=one.elem_type or other.elem_type, shape=shape)
    if isinstance(tensor, SparseTensorType):
        return replace(stated, sparse_tensor_type=tensor)
    return replace(stated, tensor_type=tensor)


def _dimension(stated: Dimension, inferred: Dimension) -> Dimension | None:
    if stated.dim_value is not None:
        return stated if inferred.dim_value in (None, stated.dim_value) else None
    if stated.dim_param:
        # A name stays a name: its author allows more than the size that is inferred here.
        return stated
    if inferred.dim_value is not None:
        return replace(stated, dim_value=inferred.dim_value, dim_param=None)
    if inferred.dim_param:
        return replace(stated, dim_param=inferred.dim_param)
    return stated


@lru_cache(REMEMBERED)
def without_invented_names(inferred: Type) -> Type:
    """Return a type without the dimension names that the shape inference invents."""

    def known(dimension: Dimension) -> Dimension:
        invented = (dimension.dim_param or "").startswith(INVENTED)
        return replace(dimension, dim_param=None) if invented else dimension

    return replace_records(inferred, Dimension, known)


def tensor_of(value: Type) -> TensorType | SparseTensorType | None:
    """Return the dtype and shape of a dense or sparse tensor; None for other types."""
    return value.tensor_type or value.sparse_tensor_type


def _kind(value: Type) -> str:
    fields = ("tensor_type", "sequence_type", "map_type", "opaque_type", "sparse_tensor_type", "optional_type")
    return next((field for field in fields if getattr(value, field) is not None), "")


@lru_cache(REMEMBERED)
def is_complete(known: Type) -> bool:
    """Whether a type leaves nothing open."""
    tensor = known.tensor_type or known.sparse_tensor_type
    if tensor is not None:
        dims = None if tensor.shape is None else tensor.shape.dim
        return bool(tensor.elem_type) and dims is not None and all([size_of(each) is not None for each in dims])
    held = known.sequence_type or known.optional_type
    inner = held.elem_type if held is not None else known.map_type.value_type if known.map_type is not None else None
    return inner is not None and is_complete(inner)


@lru_cache(REMEMBERED)
def is_enough(stated: Type) -> bool:
    """Whether a type is all that inference needs of a value: it is known, and the value cannot be a shape."""
    return is_complete(stated) and not may_be_shape(stated)


@lru_cache(REMEMBERED)
def has_sizes(known: Type) -> bool:
    """Whether a type is a tensor type with a size for each dimension."""
    dims = dims_of(known)
    return is_complete(known) and dims is not None and all([isinstance(each, int) for each in dims])


@lru_cache(REMEMBERED)
def may_be_shape(known: Type) -> bool:
    """Whether a value of a type may be a shape, or something else with which the inference computes."""
    tensor = known.tensor_type
    if tensor is None or tensor.shape is None:
        return tensor is not None
    dims = tensor.shape.dim
    if tensor.elem_type in _COMPUTED and dims and math.prod([each.dim_value or _MANY for each in dims]) < _MANY:
        return True
    if tensor.elem_type in (DATA_TYPES["bool"], DATA_TYPES["string"]):
        return False
    return not dims or (len(dims) == 1 and (dims[0].dim_value or 0) <= _SHAPE_ELEMENTS)


def with_shape(value: Type, shape: TensorShape | None) -> Type:
    """Return a type with another shape of its innermost tensors or sparse tensors."""
    if value.tensor_type is not None:
        return replace(value, tensor_type=replace(value.tensor_type, shape=shape))
    if value.sparse_tensor_type is not None:
        sparse = replace(value.sparse_tensor_type, shape=shape)
        return replace(value, sparse_tensor_type=sparse)
    for field in ("sequence_type", "optional_type"):
        held = getattr(value, field)
        if held is not None and held.elem_type is not None:
            inner = replace(held, elem_type=with_shape(held.elem_type, shape))
            return replace(value, **{field: inner})
    return value


def without_shape(value: ValueInfo) -> ValueInfo:
    """Return a value without the shape of its type."""
    tensor = value.type.tensor_type if value.type is not None else None
    if value.type is None or tensor is None or tensor.shape is None:
        return value
    return replace(value, type=with_shape(value.type, None))


@lru_cache(REMEMBERED)
def is_same_type(one: Type, other: Type) -> bool:
    """Whether two types are equal, without their denotations."""
    if one.tensor_type is None or other.tensor_type is None:
        plain = [replace_records(each, Dimension, lambda dim: replace(dim, denotation=None)) for each in (one, other)]
        return plain[0] == replace(plain[1], denotation=plain[0].denotation)
    return one.tensor_type.elem_type == other.tensor_type.elem_type and dims_of(one) == dims_of(other)


def with_names(stated: Type | None, inferred: Type, claimed: set[str]) -> Type:
    """Return an inferred type with the stated names of dimensions that it leaves open.

    Names in `claimed`, which other values have, must not be stated without knowing that the sizes are equal.
    """
    tensor, dims = inferred.tensor_type, None if stated is None else _named_dims(stated)
    if tensor is None or tensor.shape is None or dims is None or len(dims) != len(tensor.shape.dim):
        return inferred
    free = [name if claimed.isdisjoint((name, *IDENTIFIER.findall(name))) else None for name in dims]
    pairs = [(each, size_of(each), name) for each, name in zip(tensor.shape.dim, free, strict=True)]
    named = tuple([with_dimension(each, name or None) if size is None else each for each, size, name in pairs])
    return inferred if named == tensor.shape.dim else with_shape(inferred, replace(tensor.shape, dim=named))


def with_sizes(stated: Type, inferred: Type | None) -> Type | None:
    """Return an inferred type with the stated sizes that it leaves open."""
    sizes, tensor = dims_of(stated), None if inferred is None else inferred.tensor_type
    if sizes is None or stated.tensor_type is None or (inferred is not None and tensor is None):
        return inferred
    dims = (Dimension(),) * len(sizes) if tensor is None or tensor.shape is None else tensor.shape.dim
    if len(dims) != len(sizes) or not any([isinstance(size, int) for size in sizes]):
        return inferred
    pairs = zip(dims, sizes, strict=True)
    filled = [with_dimension(a, b) if size_of(a) is None and isinstance(b, int) else a for a, b in pairs]
    return with_shape(stated if inferred is None else inferred, TensorShape(dim=tuple(filled)))


def _named_dims(stated: Type) -> list[str] | None:
    """Return the names of the dimensions of a tensor type, "" for others; None if the rank is not known."""
    tensor = tensor_of(stated)
    return None if tensor is None or tensor.shape is None else [each.dim_param or "" for each in tensor.shape.dim]


def names_of_dims(stated: Type) -> set[str]:
    """Return the names of the dimensions of a type, and those in expressions."""
    return {name for text in _named_dims(stated) or () if text for name in (text, *IDENTIFIER.findall(text))}


def with_type(value: ValueInfo, new: Type | None) -> ValueInfo:
    """Return a value with another type (None: of unknown shape); denotations of dimensions stay if the rank does."""
    old = value.type
    if old is None or new is None:
        return without_shape(value)
    new = _with_denotations(old, new)
    return value if new == old else replace(value, type=new)


@lru_cache(REMEMBERED)
def _with_denotations(old: Type, new: Type) -> Type:
    before, after = old.tensor_type, new.tensor_type
    if before is None or after is None:
        return new
    if before.shape is not None and after.shape is not None:
        dims = after.shape.dim
        if len(dims) == len(before.shape.dim):
            pairs = zip(before.shape.dim, dims, strict=True)
            dims = tuple([with_dimension(each, size_of(other)) for each, other in pairs])
        after = replace(before, elem_type=after.elem_type, shape=replace(before.shape, dim=dims))
    return replace(old, tensor_type=after)


class Difference(Correspondence):
    """The difference of two models."""

    def __init__(self, old: Index, new: Index) -> None:
        old.take_over(new)
        super().__init__(old, new)
        self.changed: dict[Scope, set[int]] = {scope: set() for scope in new.scopes}
        """Nodes whose results may have other types, whatever their inputs are."""
        self.around: dict[Scope, set[int]] = {scope: set() for scope in new.scopes}
        """These nodes, and the nodes around them."""
        self.stated: dict[Scope, set[str]] = {scope: set() for scope in new.scopes}
        """Values whose shape was stated by the edit."""
        for scope in new.scopes:
            self._compare(scope)
        self._compare_functions()

    @cached_property
    def only_narrows(self) -> bool:
        """Whether the edit only states open sizes of inputs, so that the sizes stated of other values still hold."""
        main, former = self.new.main, self.old.main
        if main is None or former is None or self.old.model.functions is not self.new.model.functions:
            return False
        before, after = former.graph, main.graph
        assert isinstance(before, Graph)
        assert isinstance(after, Graph)
        if before.node is not after.node or before.initializer is not after.initializer:
            return False
        pairs = [(dims_of(former.types.get(name)), dims_of(main.types.get(name))) for name in main.inputs]
        return list(former.inputs) == list(main.inputs) and all([
            old == new
            or (old is not None and new is not None and len(old) == len(new)
                and all([not isinstance(a, int) or a == b for a, b in zip(old, new, strict=True)]))
            for old, new in pairs
        ])  # fmt: skip

    def _compare(self, scope: Scope) -> None:
        twin = self.twins.get(scope)
        if twin is not None and twin.graph is scope.graph:
            return
        known = {id(node) for node in twin.graph.node} if twin is not None else set()
        is_same = twin is not None and twin.graph.node is scope.graph.node
        for position, node in enumerate(() if is_same else scope.graph.node):
            if id(node) in known or self._is_same_node(scope, position):
                continue
            if not is_constant_node(node) or not _is_same_constant(twin, scope, node.output[0] if node.output else ""):
                self._add(scope, position)
        if isinstance(scope.graph, Function):
            return
        fields = ("input", "output", "value_info")
        if twin is None or any([getattr(twin.graph, each) is not getattr(scope.graph, each) for each in fields]):
            types = twin.types.values() if twin is not None else ()
            known = {id(shape) for each in types if (shape := _shape(each)) is not None}
            for name, each in scope.types.items():
                if (shape := _shape(each)) is not None and id(shape) not in known:
                    self.stated[scope].add(name)
        for name in _changed_values(scope, twin):
            producer = scope.producer_position(name)
            if producer is not None:
                self._add(scope, producer)
                continue
            for use in self.new.consumers(scope, name):
                if use.position is not None:
                    self._add(use.scope, use.position)

    def _add(self, scope: Scope, position: int) -> None:
        self.changed[scope].add(position)
        self.around[scope].add(position)
        owner = scope.owner
        while owner is not None:
            self.around[owner.scope].add(owner.position)
            owner = owner.scope.owner

    def _is_same_node(self, scope: Scope, position: int) -> bool:
        node, twin = scope.graph.node[position], self.counterpart(scope, position)
        if twin is None or operator_key(twin.node) != operator_key(node):
            return False
        return (twin.node.input, twin.node.output) == (node.input, node.output) and _plain(twin.node) == _plain(node)

    def _compare_functions(self) -> None:
        """Record the calls of changed functions as changed nodes."""
        before = {function_key(each): each for each in self.old.model.functions}
        changed = {key for each in self.new.model.functions if before.get(key := function_key(each)) is not each}
        count = 0
        while len(changed) > count:
            count = len(changed)
            for scope in self.new.scopes:
                for position, node in enumerate(scope.graph.node):
                    if operator_key(node) in changed:
                        self._add(scope, position)
                        if isinstance(graph := scope.root.graph, Function):
                            changed.add(function_key(graph))


def first_followers(
    index: Index, pending: Iterable[int], size: int, done: Collection[int] = ()
) -> tuple[set[int], list[int]]:
    """Return the first `size` of some nodes of the main graph and their descendants, and the nodes to continue with.

    `done` are other nodes, of which it does not matter whether they are among the descendants.
    """
    main = index.main
    assert main is not None
    heap = sorted(pending)
    if len(heap) + len(done) == len(main.graph.node):
        return set(heap[:size]), heap[size:]
    seen, followers = set(heap), set[int]()
    while heap and len(followers) < size:
        position = heapq.heappop(heap)
        followers.add(position)
        for name in main.graph.node[position].output:
            for follower in index.consuming_nodes(main, name) if name else ():
                if follower is not None and follower not in seen:
                    seen.add(follower)
                    heapq.heappush(heap, follower)
    return followers, heap


def results(index: Index, positions: Collection[int]) -> dict[Scope, set[str]]:
    """Return the values that some nodes of the main graph produce, also in their subgraphs, by graph."""
    main = index.main
    assert main is not None
    values_of = {main: {name for each in positions for name in main.graph.node[each].output if name}}
    for scope in index.scopes:
        owner = scope.owner
        if owner is not None and (owner.position in positions if owner.scope is main else owner.scope in values_of):
            values_of[scope] = {*scope.producers}
    return values_of


def _changed_values(scope: Scope, former: Scope | None) -> Iterator[str]:
    """Yield the constants, inputs and stated types that differ."""
    graph, before = scope.graph, former.graph if former is not None else None
    assert isinstance(graph, Graph)
    if former is None or not isinstance(before, Graph):
        former, before, constants = None, Graph(), {}
    else:
        constants = {**former.initializers, **former.sparse_initializers}
    if graph.initializer is not before.initializer or graph.sparse_initializer is not before.sparse_initializer:
        for name in {**scope.initializers, **scope.sparse_initializers, **constants}:
            if not _is_same_constant(former, scope, name):
                yield name
    for values, others in (
        (graph.input, before.input),
        (graph.output, before.output),
        (graph.value_info, before.value_info),
    ):
        if values is not others:
            known, types = {id(each) for each in others}, {} if former is None else former.types
            yield from [
                each.name
                for each in values
                if each.name and id(each) not in known and types.get(each.name) != each.type
            ]
    if graph.input is not before.input and former is not None:
        yield from former.inputs.keys() - scope.inputs.keys()


def _shape(stated: Type) -> TensorShape | None:
    tensor = stated.tensor_type or stated.sparse_tensor_type
    return None if tensor is None else tensor.shape


def _is_same_constant(there: Scope | None, scope: Scope, name: str) -> bool:
    """Whether a name stands for a constant that decides the same shapes, be it an initializer or a node Constant."""
    before, after = (own_constant(each, name) if each is not None else None for each in (there, scope))
    old, new = (each.value if each is not None else None for each in (before, after))
    if old is None or new is None or (kind := type_of_constant(new)) != type_of_constant(old):
        return False
    if old is new or not may_be_shape(kind):
        return True
    if isinstance(old, Tensor) and isinstance(new, Tensor):  # in a node Constant it has another name, or none
        return replace(old, name=None) == replace(new, name=None)
    return old == new


def _plain(node: Node) -> tuple[Attribute, ...]:
    """Return the attributes without what does not matter for types."""
    is_standard = not plain_domain(node.domain) and node.op_type not in _OPERATORS_OF_NUMBERS
    kept = [each for each in node.attribute if not (is_standard and each.type == _FLOAT)]
    return tuple([replace(each, doc_string=None, g=None, graphs=()) for each in kept])

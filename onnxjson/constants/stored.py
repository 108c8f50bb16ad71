"""The tensors of a model by name: initializers of any graph, attributes of nodes, constants by their output."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from onnxjson import addresses, elements, tensors
from onnxjson.display import visible
from onnxjson.document import Attribute, Function, Graph, Model, Node, Record, SparseTensor, Tensor
from onnxjson.errors import DecodeError, MissingInputError
from onnxjson.external import Resolver
from onnxjson.names import STRING
from onnxjson.suggestions import suggest
from onnxjson.tensor_checks import tensor_mistakes
from onnxjson.walking import walk
from onnxjson.weights import require_whole

_INT: Final = 7
_FLOAT: Final = 1
_TYPES: Final = frozenset({1, 2, 3, 4, 6, 7, 8})
"""Types of attributes whose values are tensors, or numbers or texts that make one."""

_VALUE: Final = "value"
"""What the names of the attributes of Constant begin with."""


class _Candidate(NamedTuple):
    """A tensor that a model holds, and what it may be called."""

    name: str
    address: str
    held: Tensor | Attribute


def find_tensor(model: Model, name: str) -> Tensor:
    """The tensor that a person names.

    Args:
        model: where it is looked for: in every graph and function.
        name: an initializer; a node and its attribute, ``NODE/ATTRIBUTE``; the output of a Constant; values and indices
            of a sparse initializer, ``NAME/values`` and ``NAME/indices``; or ``@`` and an address.

    Returns:
        The tensor as it is stored; numbers, texts and lists of attributes as tensors of float32, int64 and string. A
        tensor without a name gets the one that was asked for.

    Raises:
        MissingInputError: no tensor has this name, or several have.
        AddressError: nothing stands at the address.
    """
    if name.startswith("@"):
        return _at_address(model, name[1:])
    found = [each for each in _candidates(_without_addresses(model)) if each.name == name]
    if not found:
        raise _not_found(model, name)
    if len(found) > 1:
        places = [each.address for each in _candidates(addresses.walk(model)) if each.name == name]
        shown = ", ".join(f"@{visible(place, 200)}" for place in places[:5]) + (", ..." if len(places) > 5 else "")
        raise MissingInputError(f"{len(places)} tensors are called {visible(name)!r}; name one by its address: {shown}")
    tensor = attribute_tensor(found[0].held)
    if tensor is None:
        raise MissingInputError(f"the attribute {visible(name)!r} has no value")
    return _named(tensor, name)


def _named(tensor: Tensor, name: str) -> Tensor:
    return tensor if tensor.name else msgspec.structs.replace(tensor, name=name)


def _without_addresses(model: Model) -> Iterator[tuple[str, Record]]:
    for graph in walk(model, Graph):
        yield "", graph
    for function in walk(model, Function):
        yield "", function


def _candidates(records: Iterator[tuple[str, Record]]) -> Iterator[_Candidate]:
    for address, owner in records:
        if isinstance(owner, Graph):
            for position, tensor in enumerate(owner.initializer):
                yield _Candidate(tensor.name or "", f"{address}/initializer/{position}", tensor)
            for position, sparse in enumerate(owner.sparse_initializer):
                yield from _of_sparse(sparse, f"{address}/sparse_initializer/{position}")
        if isinstance(owner, Graph | Function):
            for position, node in enumerate(owner.node):
                if node.attribute:
                    yield from _of_node(node, f"{address}/node/{position}")


def _of_sparse(sparse: SparseTensor, address: str) -> Iterator[_Candidate]:
    name = sparse.values.name if sparse.values is not None else None
    for part in ("values", "indices"):
        tensor: Tensor | None = getattr(sparse, part)
        if name and tensor is not None:
            yield _Candidate(f"{name}/{part}", f"{address}/{part}", tensor)


def _of_node(node: Node, address: str) -> Iterator[_Candidate]:
    segments = addresses.attribute_segments(node.attribute)
    for attribute, segment in zip(node.attribute, segments, strict=True):
        if attribute.t is None and attribute.type not in _TYPES:
            continue
        place = f"{address}/attribute/{addresses.escape(segment)}"
        if node.name:
            yield _Candidate(f"{node.name}/{attribute.name}", place, attribute)
        if node.op_type == "Constant" and (attribute.name or "").startswith(_VALUE):
            for output in node.output[:1]:
                yield _Candidate(output, place, attribute)


def attribute_tensor(held: Tensor | Attribute) -> Tensor | None:
    """The tensor that an attribute holds or that its value is; None where it is of another type."""
    if isinstance(held, Tensor):
        return held
    if held.t is not None:
        return held.t
    match held.type:
        case 1 if held.f is not None:
            return Tensor(data_type=_FLOAT, raw_data=held.f)
        case 2 if held.i is not None:
            return _integers((held.i,), ())
        case 3 if held.s is not None:
            return Tensor(data_type=STRING, string_data=(held.s,))
        case 6:
            return Tensor((len(held.floats) // 4,), data_type=_FLOAT, raw_data=held.floats)
        case 7:
            return _integers(held.ints, (len(held.ints),))
        case 8:
            return Tensor((len(held.strings),), data_type=STRING, string_data=held.strings)
    return None


def _integers(values: tuple[int, ...], dims: tuple[int, ...]) -> Tensor:
    return Tensor(dims, data_type=_INT, raw_data=elements.pack(_INT, list(values)))


def _at_address(model: Model, address: str) -> Tensor:
    found = addresses.resolve(model, address)
    tensor = attribute_tensor(found) if isinstance(found, Tensor | Attribute) else None
    if tensor is not None:
        return _named(tensor, address)
    raise MissingInputError(f"{visible(address, 200)} is no tensor")


def _not_found(model: Model, name: str) -> MissingInputError:
    names = {each.name for each in _candidates(_without_addresses(model)) if each.name}
    if f"{name}/values" in names and f"{name}/indices" in names:
        return MissingInputError(f"{visible(name)!r} is sparse; ask for '{name}/values' and '{name}/indices'")
    hint = suggest(name, names)
    if not hint:
        some = ", ".join(visible(each) for each in sorted(names)[:5])
        hint = f"there are {len(names):,}, such as {some}" if names else "it has none"
    return MissingInputError(f"the model has no tensor {visible(name)!r}; {hint}")


def with_elements(tensor: Tensor, resolver: Resolver) -> Tensor:
    """The tensor with its elements in ``raw_data`` (strings: in ``string_data``), wherever they are stored.

    Args:
        tensor: as a model has it.
        resolver: opens external data; bytes stay in their file until they are asked for.

    Raises:
        DecodeError: what is stored does not fit dtype and dims.
        WeightsMissingError: only the sha256 of the elements is there.
        MissingInputError, UntrustedError, AccessDeniedError, FileError: external data cannot be used.
    """
    require_whole(Model(graph=Graph(initializer=(tensor,))))
    plain = Tensor(dims=tensor.dims, data_type=tensor.data_type, name=tensor.name)
    named = f"tensor {visible(tensor.name or '')!r}"
    if tensors.is_external(tensor):
        if tensor.data_type not in elements.BITS or any(dim < 0 for dim in tensor.dims):
            raise DecodeError(f"{named} has no dtype and dims that say how many bytes it has in its other file")
        needed = elements.byte_length(tensor.data_type, elements.element_count(tensor.dims))
        data = resolver.resolve(tensor.external_data, needed, tensor=tensor.name or "")
        return msgspec.structs.replace(plain, raw_data=data)
    if tensor.data_type == STRING:
        mistake = next(tensor_mistakes(tensor), None)
        if mistake is None:
            return msgspec.structs.replace(plain, string_data=tensor.string_data)
    else:
        stored = tensors.raw_bytes(msgspec.structs.replace(tensor, data_location=None))
        if stored is not None:
            return msgspec.structs.replace(plain, raw_data=stored[0])
        mistake = next(tensor_mistakes(tensor), None)
    raise DecodeError(f"{named} cannot be read: {mistake[1] if mistake else 'its elements do not fit dtype and dims'}")

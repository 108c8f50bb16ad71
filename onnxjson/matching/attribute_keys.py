"""What the attributes of a node say, as a key: equal keys are equal attributes, in whatever order they stand."""

from collections.abc import Callable, Hashable, Mapping

import msgspec

from onnxjson.document import Attribute, Graph, SparseTensor
from onnxjson.matching.contents import ContentOf, sparse_content

AttributeKey = tuple[tuple[Hashable, ...], ...]
"""The keys of the attributes of one node, by name."""

GraphKey = Callable[[Graph], Hashable]
"""Gives the key of a subgraph."""


def attributes_key(attributes: tuple[Attribute, ...], content_of: ContentOf, graph_key: GraphKey) -> AttributeKey:
    """The key of the attributes of one node; documentation does not count."""
    if not attributes:
        return ()
    return tuple(sorted([_key(each, content_of, graph_key) for each in attributes], key=_by_name))


def with_defaults(key: AttributeKey, defaults: Mapping[str, Attribute], content_of: ContentOf) -> AttributeKey:
    """A key of `attributes_key` with the attributes that were left out as the operator's schema has them."""
    there = {part[0] for part in key}
    added = [_key(each, content_of, hash) for name, each in defaults.items() if name not in there]
    return tuple(sorted([*key, *added], key=_by_name)) if added else key


def _by_name(key: tuple[Hashable, ...]) -> str:
    return str(key[0])


def _key(attribute: Attribute, content_of: ContentOf, graph_key: GraphKey) -> tuple[Hashable, ...]:
    name = attribute.name or ""
    if _holds_records(attribute):
        return (
            name,
            attribute.type,
            attribute.ref_attr_name,
            None if attribute.t is None else content_of(attribute.t),
            None if attribute.g is None else graph_key(attribute.g),
            tuple([content_of(each) for each in attribute.tensors]),
            tuple([graph_key(each) for each in attribute.graphs]),
            tuple([sparse_content(each, content_of) for each in _sparse(attribute)]),
            msgspec.structs.replace(
                attribute, t=None, g=None, tensors=(), graphs=(), sparse_tensor=None, sparse_tensors=(), doc_string=None
            ),
        )
    return (
        name,
        attribute.type,
        attribute.ref_attr_name,
        attribute.i,
        attribute.f,
        attribute.s,
        attribute.ints,
        attribute.floats,
        attribute.strings,
        attribute.tp,
        attribute.type_protos,
        attribute.unknown_fields,
    )


def _sparse(attribute: Attribute) -> tuple[SparseTensor, ...]:
    one = attribute.sparse_tensor
    return attribute.sparse_tensors if one is None else (one, *attribute.sparse_tensors)


def _holds_records(attribute: Attribute) -> bool:
    return (
        attribute.t is not None
        or attribute.g is not None
        or bool(attribute.tensors)
        or bool(attribute.graphs)
        or attribute.sparse_tensor is not None
        or bool(attribute.sparse_tensors)
    )

"""Real operators and their attributes, from onnx.defs: what makes the bare short forms of attributes come up."""

from functools import cache
from typing import NamedTuple

from onnx import AttributeProto, defs


def attribute_type(of_schema: object) -> int:
    """The number of the AttributeProto type for a type of onnx.defs, which names it the same."""
    return int(AttributeProto.AttributeType.Value(str(of_schema).rpartition(".")[2]))


class Operator(NamedTuple):
    """An operator and its attributes with the numbers of their AttributeProto types."""

    domain: bytes
    name: bytes
    attributes: tuple[tuple[bytes, int], ...]


@cache
def operators() -> tuple[Operator, ...]:
    """Every operator that onnx knows, in the order of domain and name, those without attributes once in four."""
    names = sorted(
        Operator(
            schema.domain.encode(),
            schema.name.encode(),
            tuple((name.encode(), attribute_type(schema.attributes[name].type)) for name in sorted(schema.attributes)),
        )
        for schema in defs.get_all_schemas()
    )
    return tuple(one for index, one in enumerate(names) if one.attributes or index % 4 == 0)

"""What the package knows about operators: the one door to that knowledge.

The attribute table is frozen with the format and needs no onnx. Everything else is asked of `onnx.defs`, imported on
first use.
"""

from collections.abc import Mapping
from typing import Final

from onnxjson.attribute_table import ATTRIBUTE_TYPES_BY_OPERATOR

__all__ = ["ATTRIBUTE_TYPES_BY_OPERATOR", "attribute_types"]

_NONE: Final[Mapping[str, int]] = {}


def attribute_types(domain: str | None, op_type: str | None) -> Mapping[str, int]:
    """The attributes of an operator in the frozen table: name -> number of AttributeProto.AttributeType.

    The default domain is ``""`` or absent; ``ai.onnx`` is another name, as it is in protobuf.
    """
    return ATTRIBUTE_TYPES_BY_OPERATOR.get((domain or "", op_type or ""), _NONE)

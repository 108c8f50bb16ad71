"""Nodes that must stay float32 when a model becomes float16: their operators, and constants that only they consume."""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from onnxjson.model.operators import plain_domain
from onnxjson.optimizing.passes.declaration import graphs

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_FLOAT, _FLOAT16 = "tensor(float)", "tensor(float16)"

_CAST_BY_THE_CONVERTER: Final = frozenset({"Resize"})
"""Operators with a float32 input, the scales, before which the converter of onnxruntime itself adds a Cast."""

_OPSET: Final = 11
"""The operator set of a model that names none, as the converter assumes it."""


def operators_without_float16(model: "ModelProto") -> set[str]:
    """Return the operators in a model with an input or output that is float32 and, at its opset, cannot be float16.

    DequantizeLinear is one below opset 19, DynamicQuantizeLinear at every opset.
    """
    opsets = {plain_domain(each.domain): each.version for each in model.opset_import}
    schemas = _Schemas(opsets)
    nodes = [node for graph in graphs(model.graph) for node in graph.node]
    return {node.op_type for node in nodes if node.op_type not in _CAST_BY_THE_CONVERTER and schemas.is_narrow(node)}


class _Schemas:
    """The operators of onnx and of onnxruntime at some versions of their operator sets."""

    def __init__(self, opsets: dict[str, int]) -> None:
        self._opsets = opsets
        self._found: dict[tuple[str, str], tuple[list[bool], list[bool]]] = {}
        self._of_engine: dict[tuple[str, str], Any] | None = None

    def is_narrow(self, node: "NodeProto") -> bool:
        """Whether a used input or output of a node may be float32 and not float16."""
        domain = plain_domain(node.domain)
        key = domain, node.op_type
        if key not in self._found:
            self._found[key] = self._narrow(*key)
        for names, narrow in zip((node.input, node.output), self._found[key], strict=True):
            # The last one of an operator with any number of inputs stands for all that follow.
            if narrow and any([name and narrow[min(place, len(narrow) - 1)] for place, name in enumerate(names)]):
                return True
        return False

    def _narrow(self, domain: str, operator: str) -> tuple[list[bool], list[bool]]:
        schema = self._schema(domain, operator)
        if schema is None:
            return [], []
        types = {each.type_param_str: set(each.allowed_type_strs) for each in schema.type_constraints}

        def narrow(side: Any) -> list[bool]:
            stated = [each.typeStr if domain else each.type_str for each in side]  # onnxruntime, onnx
            return [_is_narrow(types.get(text, {text})) for text in stated]

        return narrow(schema.inputs), narrow(schema.outputs)

    def _schema(self, domain: str, operator: str) -> Any:
        from onnx import defs

        if not domain:
            version = self._opsets.get(domain, _OPSET)
            try:
                return defs.get_schema(operator, version)
            except defs.SchemaError:  # a function of the model, or an operator that is newer than its operator set
                return None
        if self._of_engine is None:
            self._of_engine = _schemas_of_onnxruntime()
        return self._of_engine.get((domain, operator))


def _is_narrow(types: Collection[str]) -> bool:
    return _FLOAT in types and _FLOAT16 not in types


def _schemas_of_onnxruntime() -> dict[tuple[str, str], Any]:
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    return {(each.domain, each.name): each for each in sorted(get_all_operator_schema(), key=lambda s: s.since_version)}


def constants_for(model: "ModelProto", stays: "Callable[[NodeProto], bool]") -> Iterator[str]:
    """Yield the names of the Constant nodes of the main graph that only nodes consume of which each `stays` float32."""
    consumers: dict[str, bool] = {}
    for graph in graphs(model.graph):
        consumers.update(dict.fromkeys([value.name for value in graph.output], False))
    for node in [node for graph in graphs(model.graph) for node in graph.node]:
        is_kept = stays(node)
        for name in node.input:
            consumers[name] = consumers.get(name, True) and is_kept
    for node in model.graph.node:
        if node.op_type == "Constant" and consumers.get(node.output[0]):
            yield node.name

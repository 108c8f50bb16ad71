"""Inputs and outputs of a new model: specifications by the user, and types of outputs.

The user writes inputs as ``name:type``, ``name:type=values`` or ``-``. Types of outputs are inferred by onnx, as
specified, or from the type variables of the schema.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.editing.rewiring import check_node
from onnxjson.editing.sandbox import worker
from onnxjson.editing.type_relations import refine_type, with_shape
from onnxjson.editing.workspace import Workspace
from onnxjson.model import document as d
from onnxjson.model.constants import type_of_constant
from onnxjson.model.display import visible
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.errors import EditError, EncodeError, Finding, ParameterError, WorkerError
from onnxjson.model.index import Index
from onnxjson.model.operators import Signature, all_operators
from onnxjson.model.types import TypeSyntaxError, format_type, innermost, parse_type
from onnxjson.running.inferred_types import inferred_scopes
from onnxjson.storage.constant_reading import Kind, from_json, parse_json

LEFT_OUT: Final = "-"
"""Spelling of an optional input that is left out."""

_SHAPE_ONLY: Final = re.compile(r"\[.*\]\Z", re.DOTALL)

_PREFERRED: Final = ("float32", "int64", "bool", "string", "float16", "float64", "int32", "uint8")


class InputSpec(NamedTuple):
    """Specification of one input."""

    name: str
    """"" for an input that is left out."""
    type: d.Type | None = None
    """The whole type, if it is given."""
    shape: d.TensorShape | None = None
    """The shape, if only that is given; the operator determines the dtype."""
    values: Any = None
    """Values of a constant, as JSON."""
    has_values: bool = False


def read_input(text: str) -> InputSpec:
    """Parse the specification of an input.

    Raises:
        ParameterError: its type is not valid, or its values are not JSON.
    """
    if text == LEFT_OUT:
        return InputSpec("")
    head, equals, values = text.partition("=")
    name, colon, kind = head.rpartition(":")
    if not colon:
        name, kind = kind, ""
    if not name:
        raise ParameterError(
            f'"{visible(text)}" is not an input; write name:type, such as x:float32[1,3], or name:type=values for a '
            f"constant, or {LEFT_OUT} for an input that is left out"
        )
    spec = InputSpec(name, has_values=bool(equals))
    try:
        if _SHAPE_ONLY.match(kind.strip()):
            spec = spec._replace(shape=shape_of(parse_type(f"float32{kind.strip()}")))
        elif kind:
            spec = spec._replace(type=parse_type(kind))
        if equals:
            spec = spec._replace(values=parse_json(values, f"the values of {visible(name)}"))
    except TypeSyntaxError as error:
        raise ParameterError(f'"{visible(text)}": "{visible(kind)}" is not a type: {error}') from error
    except EncodeError as error:
        raise ParameterError(f'"{visible(text)}": {error}') from error
    return spec


def shape_of(value: d.Type) -> d.TensorShape | None:
    """Return the shape of a tensor type, or of the tensors in a sequence or optional type."""
    inner = innermost_tensor(value)
    return None if inner is None else inner.shape


def innermost_tensor(value: d.Type) -> d.TensorType | None:
    """Return the tensor type in a type."""
    inner = innermost(value)
    return None if inner is None else inner.tensor_type


def constant(name: str, value: d.Type, values: Any) -> d.Tensor:
    """Build a constant of a type.

    Raises:
        ParameterError: the type is not that of a constant, or the values do not fit it.
    """
    tensor = value.tensor_type
    if tensor is None or tensor.elem_type is None:
        raise ParameterError(f"{visible(name)} has values, which only tensors can have")
    dims: tuple[int, ...] | None = None
    if tensor.shape is not None:
        sizes = [dim.dim_value for dim in tensor.shape.dim]
        if None in sizes:
            raise ParameterError(f"{visible(name)} has values, so its shape must be of numbers")
        dims = tuple([size for size in sizes if size is not None])
    try:
        return from_json(values, Kind(tensor.elem_type, dims), name=name).tensor
    except EncodeError as error:
        raise ParameterError(f"the values of {visible(name)}: {error}") from error


def static_shape(dims: tuple[int, ...]) -> d.TensorShape:
    """Return a shape of known sizes."""
    return d.TensorShape(dim=tuple([d.Dimension(dim_value=size) for size in dims]))


def check_outputs(model: d.Model, signature: Signature, expected: Sequence[InputSpec]) -> d.Model:
    """Add the types of its outputs to a model, and check it.

    Raises:
        ParameterError, EditError: it is not valid.
    """
    assert model.graph is not None
    workspace = Workspace(model)
    check_node(workspace, workspace.main, model.graph.node[0], f"new {signature.op_type}")
    typed = _typed(model, signature, expected)
    errors = [each for each in worker().check(message_bytes(typed), full=True) if each.severity == "error"]
    if errors and not _is_mistake_of_onnx(errors, signature):
        # An output without a shape is a consequence of mistakes in the inputs, if there are any.
        reasons = [each for each in errors if each.code == "check-shapes"] or errors
        if "Field 'shape'" in reasons[0].message:
            names = [name for name in model.graph.node[0].output if name]
            raise EditError(f"onnx cannot infer the shape of an output; give it with --output-name {names[0]}:TYPE")
        raise EditError(f"the model would not be valid: {reasons[0].message}")
    return typed


def _is_mistake_of_onnx(errors: Sequence[Finding], signature: Signature) -> bool:
    """Whether strict inference fails at a constant in the function body that onnx defines for an operator.

    This happens in onnx 1.23 for MeanVarianceNormalization, whose body has a Constant of a default attribute.
    """
    inside = [each for each in errors if "(op_type:Constant)" in each.message]
    return bool(inside) and signature.op_type != "Constant" and all(each.code == "check-shapes" for each in errors)


def _typed(model: d.Model, signature: Signature, expected: Sequence[InputSpec]) -> d.Model:
    """Add the types of outputs: inferred, else as expected, else those of the type variables."""
    assert model.graph is not None
    node = model.graph.node[0]
    try:
        after, _ = inferred_scopes(model, None, worker())
    except WorkerError as error:
        raise EditError(f"the model would not be valid: {error}") from error
    types = dict(after["/graph"].types)
    if not all(_has_rank(types.get(name)) for name in node.output if name):
        types |= _types_of_later_versions(model, signature)
    bound = _Bound(signature, model)
    infos = []
    for number, name in enumerate(node.output):
        if not name:
            continue
        stated = _known(types.get(name))
        spec = expected[number] if number < len(expected) else InputSpec(name)
        wanted = spec.type or (None if spec.shape is None else with_shape(bound.output(number), spec.shape))
        if wanted is None and signature.op_type == "Loop":
            wanted = _result_of_loop(node, number)
        if stated is None:
            stated = wanted or bound.output(number)
        elif wanted is not None:
            joined = refine_type(stated, wanted)
            if joined is None:
                raise ParameterError(
                    f"the output {visible(name)} is {format_type(stated)}, not {format_type(wanted)} as specified"
                )
            stated = joined
        infos.append(d.ValueInfo(name=name, type=stated))
    graph = replace(model.graph, output=tuple(infos))
    return replace(model, graph=graph)


def _types_of_later_versions(model: d.Model, signature: Signature) -> dict[str, d.Type]:
    """Infer the outputs for a later version of the operator: the oldest versions have no inference."""
    assert model.graph is not None
    outputs = [name for name in model.graph.node[0].output if name]
    for domain, op_type, version in all_operators():
        if (domain, op_type) != (signature.domain, signature.op_type) or version <= signature.since_version:
            continue
        later = replace(model, opset_import=(d.OperatorSetId(domain=domain, version=version),))
        try:
            after, _ = inferred_scopes(later, None, worker())
        except WorkerError:
            continue
        types = after["/graph"].types
        if all(_has_rank(types.get(name)) for name in outputs):
            return {name: types[name] for name in outputs}
    return {}


def _has_rank(value: d.Type | None) -> bool:
    known = _known(value)
    if known is None:
        return False
    inner = innermost_tensor(known)
    return inner is None or inner.shape is not None


def _known(inferred: d.Type | None) -> d.Type | None:
    if inferred is None or inferred == d.Type():
        return None
    inner = innermost_tensor(inferred)
    return None if inner is not None and not inner.elem_type else inferred


class _Bound:
    """Types of type variables, from the inputs of a model."""

    def __init__(self, signature: Signature, model: d.Model) -> None:
        assert model.graph is not None
        self._signature = signature
        scope = Index(model).scopes[0]
        self._types: dict[str, d.Type] = {}
        for number, name in enumerate(model.graph.node[0].input):
            formal = signature.inputs[min(number, len(signature.inputs) - 1)]
            constant_ = scope.initializer(name)
            value = scope.types.get(name) if constant_ is None else type_of_constant(constant_)
            if value is not None:
                self._types.setdefault(formal.variable, with_shape(value, None))

    def output(self, number: int) -> d.Type:
        """Return the type of an output from its type variable, if inference does not determine it."""
        formals = self._signature.outputs
        formal = formals[min(number, len(formals) - 1)]
        return self._types.get(formal.variable) or preferred_type(formal.types)


def preferred_type(types: Sequence[d.Type]) -> d.Type:
    """Return the most common of the types that a schema allows."""
    for name in _PREFERRED:
        for declared in types:
            inner = innermost_tensor(declared)
            if inner is not None and inner.elem_type == DATA_TYPES[name]:
                return declared
    return types[0]


def _result_of_loop(node: d.Node, number: int) -> d.Type | None:
    """Return the type of an output of a Loop from its body; onnx infers no shapes, since they may change."""
    body = next((each.g for each in node.attribute if each.name == "body" and each.g is not None), None)
    if body is None or number + 1 >= len(body.output):
        return None
    value = body.output[number + 1].type
    tensor = None if value is None else value.tensor_type
    if value is None or tensor is None or tensor.shape is None or number < len(node.input) - 2:
        return value
    return with_shape(value, d.TensorShape(dim=(d.Dimension(), *tensor.shape.dim)))

"""Check nodes against their operators: existence, number of inputs and outputs, attributes and dtypes.

Operators of domains that the installed onnx does not know are not checked, except for the model's own functions.
"""

from collections.abc import Mapping
from typing import Final

from onnxjson.editing.workspace import Workspace
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Node, SparseTensor, Type
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import (
    function_key,
    known_attributes,
    known_operators,
    operator_key,
    operator_signature,
    plain_domain,
)
from onnxjson.model.types import format_data_type

_MOST: Final = 2**31 - 1
"""Value in schemas of onnx for an unlimited number."""

Dtypes = Mapping[str, int]
"""Future data types of values, by name."""

Known = dict[tuple[Scope, str], int | None]
"""Data types that are already determined, None if unknown: the graph that defines a value, and its name."""


def check_node(workspace: Workspace, scope: Scope, node: Node, place: str) -> None:
    """Raise unless a node is valid for its operator.

    Args:
        workspace: has the model.
        scope: the graph of the node.
        node: the node with all its fields.
        place: its name in messages.

    Raises:
        EditError: it is not; the message states what is allowed.
    """
    domain, op_type = plain_domain(node.domain), node.op_type or ""
    shown = visible(op_type)
    key = operator_key(node)
    function = next((each for each in workspace.model.functions if function_key(each) == key), None)
    if function is not None:
        _check_count(place, shown, "inputs", len(node.input), 0, len(function.input))
        _check_count(place, shown, "outputs", len(node.output), 0, len(function.output))
        return
    opset = workspace.opset(scope, domain)
    known = known_operators(domain)
    if opset is None:
        which = f'the domain "{visible(domain)}"' if domain else "the default domain"
        signatures = [operator_signature(domain, name, None) for name in known]
        newest = max([each.since_version for each in signatures if each is not None], default=None)
        hint = "stamp-opset adds one" + ("" if newest is None else f", such as version {newest}")
        raise EditError(f"{place}: the model has no opset_import for {which}; {hint}")
    if not known:
        return
    found = operator_signature(domain, op_type, opset)
    if found is None:
        hint = suggest(op_type, known) or "a model's own operators need a separate domain"
        if op_type in known:
            hint = f"it does not exist in version {opset}; change the version with convert-opset"
        raise EditError(f"{place}: there is no operator {shown}; {hint}")
    if found.deprecated:
        raise EditError(f"{place}: {shown} was removed before version {opset} of its operators")
    inputs = len(node.input)
    while inputs and not node.input[inputs - 1]:
        inputs -= 1
    _check_count(place, shown, "inputs", inputs, found.least_inputs, found.most_inputs)
    _check_count(place, shown, "outputs", len(node.output), found.least_outputs, found.most_outputs)
    for slot, name in enumerate([each.name for each in found.inputs if each.option == "single"]):
        if slot >= len(node.input) or not node.input[slot]:
            raise EditError(f'{place}: {shown} needs its input {slot} ("{name}")')
    attributes = known_attributes(domain, op_type, opset) or {}
    names = {each.name or "" for each in node.attribute}
    for name in names:
        if name not in attributes:
            hint = suggest(name, attributes) or f"it has {', '.join(sorted(attributes)) or 'none'}"
            raise EditError(f'{place}: {shown} has no attribute "{visible(name)}"; {hint}')
    missing = [name for name, required in attributes.items() if required and name not in names]
    if missing:
        raise EditError(f'{place}: {shown} needs the attribute "{missing[0]}"; add it')
    if op_type == "Constant" and not domain and len(node.attribute) != 1:
        raise EditError(f"{place}: a Constant needs one of {', '.join(sorted(attributes))}")


def _check_count(place: str, operator: str, what: str, found: int, fewest: int, most: int) -> None:
    if fewest <= found <= most:
        return
    fits = f"{fewest}" if fewest == most else f"at least {fewest}" if most >= _MOST else f"{fewest} to {most}"
    what = what[:-1] if fits == "1" else what
    raise EditError(f"{place}: {operator} accepts {fits} {what}, and {found} {'is' if found == 1 else 'are'} given")


def dtype_of(workspace: Workspace, scope: Scope, name: str, known: Known | None = None) -> int | None:
    """Return the data type of a value, as the model states it or operators propagate it; None if unknown.

    Args:
        workspace: has the model.
        scope: the graph in which the name is used.
        name: the name of the value.
        known: results for the same model, to which new ones are added.
    """
    known = {} if known is None else known
    path: list[tuple[Scope, str]] = []
    found: int | None = None
    for _ in range(_FARTHEST):
        defining_scope = Index.defining_scope(scope, name)
        if defining_scope is None:
            break
        if (defining_scope, name) in known:
            found = known[defining_scope, name]
            break
        path.append((defining_scope, name))
        found = _stated_dtype(defining_scope, name)
        producer = workspace.index.producer(defining_scope, name)
        if found is not None or producer is None:
            break
        scope, node = producer.scope, producer.node
        propagated = output_dtype(workspace, scope, node, node.output.index(name))
        if not isinstance(propagated, str):
            found = propagated
            break
        name = propagated
    else:
        # Values closer to the producer may still be determined.
        del path[1:]
    known.update(dict.fromkeys(path, found))
    return found


def output_dtype(workspace: Workspace, scope: Scope, node: Node, slot: int) -> int | str | None:
    """Return the dtype of a node's output, or the name of an input with the same dtype; None if neither is known."""
    attribute = dtype_attribute(node)
    return _propagated_dtype(workspace, scope, node, slot) if attribute is None else _dtype_in(node, attribute)


def dtype_attribute(node: Node) -> str | None:
    """Return the attribute that determines the dtype of a node's output."""
    return None if plain_domain(node.domain) else _DTYPE_ATTRIBUTES.get(node.op_type or "")


_FARTHEST: Final = 256
"""Maximum number of nodes through which a dtype is followed."""

_DTYPE_ATTRIBUTES: Final = {"Cast": "to", "Constant": "value", "ConstantOfShape": "value"}


def _dtype_in(node: Node, attribute: str) -> int | None:
    """Return the dtype in an attribute, or that of the tensor in it."""
    for each in node.attribute:
        if each.name == attribute:
            return each.t.data_type if each.t is not None else each.i
    return None


def _stated_dtype(defining_scope: Scope, name: str) -> int | None:
    constant = defining_scope.initializer(name)
    if isinstance(constant, SparseTensor):
        constant = constant.values
    found = Index.type_of(defining_scope, name)
    return constant.data_type if constant is not None else None if found is None else _dtype_of_type(found)


def _propagated_dtype(workspace: Workspace, scope: Scope, node: Node, slot: int) -> int | str | None:
    """Return the dtype of a node's output, or the name of an input with the same dtype; None if neither is known."""
    found = operator_signature(plain_domain(node.domain), node.op_type, workspace.opset(scope, node.domain))
    if found is None or not found.outputs:
        return None
    output = found.outputs[min(slot, len(found.outputs) - 1)]
    if len(output.types) == 1:
        return _dtype_of_type(output.types[0])
    for place, name in enumerate(node.input):
        formal = found.input_at(place)  # an invalid node can have inputs that its operator does not have
        if name and formal is not None and formal.is_homogeneous and formal.variable == output.variable:
            return name
    return None


def dtype_conflict(
    workspace: Workspace, scope: Scope, node: Node, dtypes: Dtypes | None = None, known: Known | None = None
) -> str | None:
    """Describe a conflict between the dtypes of a node's inputs; None if none is known.

    Args:
        workspace: has the model.
        scope: the graph of the node.
        node: the node with its inputs.
        dtypes: future dtypes of some values.
        known: see `dtype_of`.
    """
    found = operator_signature(plain_domain(node.domain), node.op_type, workspace.opset(scope, node.domain))
    if found is None:
        return None
    bound: dict[str, tuple[int, str]] = {}
    for slot, name in enumerate(node.input):
        formal = found.input_at(slot)
        if not name or formal is None:
            continue
        if not formal.is_homogeneous:
            break
        dtype = (dtypes or {}).get(name) or dtype_of(workspace, scope, name, known)
        if dtype is None:
            continue
        allowed = [each for kind in formal.types if (each := _dtype_of_type(kind)) is not None]
        if dtype not in allowed:
            wanted = sorted({format_data_type(each) for each in allowed})
            which = listed(wanted, _SHOWN, word="or") or "no tensor"
            operator = visible(node.op_type or "")
            return f'input {slot} of {operator} must be {which}, and "{visible(name)}" is {format_data_type(dtype)}'
        if formal.variable.startswith("tensor("):
            continue
        other = bound.setdefault(formal.variable, (dtype, name))
        if other[0] != dtype and not formal.variable.startswith(("seq(", "optional(", "map(")):
            return (
                f'{visible(node.op_type or "")} needs one dtype for "{visible(other[1])}" and "{visible(name)}", '
                f"and they are {format_data_type(other[0])} and {format_data_type(dtype)}"
            )
    return None


def _dtype_of_type(kind: Type) -> int | None:
    return None if kind.tensor_type is None else kind.tensor_type.elem_type


_SHOWN: Final = 5

"""Edits of attributes; and nodes with attributes, tensors and values made from Python values."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final

import pybase64
from msgspec.structs import replace

from onnxjson.codecs.reading.context import ROOT, Context
from onnxjson.codecs.reading.named_values import read_attributes
from onnxjson.editing.declaration import Edit, Outcome, name_of
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.rewiring import replace_nodes
from onnxjson.editing.values import plain_value
from onnxjson.editing.workspace import NodeChange, Workspace
from onnxjson.model import document as d
from onnxjson.model.addresses import attribute_segments
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Attribute, Graph, Node, SparseTensor, Tensor, Type, ValueInfo
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.errors import EditError, ParameterError
from onnxjson.model.index import NodeRef, Scope
from onnxjson.model.messages import ATTRIBUTE_PAYLOADS, ATTRIBUTE_TYPE_NAMES, ATTRIBUTE_TYPES
from onnxjson.model.operator_checks import dtype_attribute
from onnxjson.model.operators import attribute_types, known_attributes
from onnxjson.model.tensors import from_numpy
from onnxjson.model.types import parse_data_type, parse_type
from onnxjson.storage.constant_reading import Kind
from onnxjson.storage.numpy_constants import from_array

__all__ = ["RemoveAttribute", "SetAttribute"]

DTYPE_ATTRIBUTES: Final = frozenset({"to", "dtype", "output_dtype", "output_datatype", "stash_type"})
"""Integer attributes of operators of ONNX that are numbers of dtypes."""
_INT: Final = 2

_KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    "FLOAT": float, "INT": int, "STRING": (str, bytes),
    "TENSOR": Tensor, "GRAPH": Graph, "TYPE_PROTO": Type, "SPARSE_TENSOR": SparseTensor,
}  # fmt: skip
"""Python types of attributes; the first type that an item of a list has is that of the list."""


class SetAttribute(Edit, frozen=True, kw_only=True, eq=False, tag="set-attribute"):
    """Set an attribute of nodes.

    Write the value as in a document: a number, a string, a list, a tensor such as {"type": "int64[2]",
    "values": [1, 2]}, or, for an unknown type, {"FLOATS": [0.5]}. It must have the type that the operator defines. The
    attribute keeps its position and doc string; a new attribute is added at the end.
    """

    group: ClassVar = "attributes"
    reads_shapes = False
    words = ("node", "attribute", "value")
    examples = (
        '{"edit": "set-attribute", "node": "op:Conv", "attribute": "pads", "value": [0, 0, 0, 0]}',
        '{"edit": "set-attribute", "node": "op:LeakyRelu attr:alpha=0.01", "attribute": "alpha", "value": 0.2}',
    )

    node: Annotated[str, Role("nodes"), about("The nodes: a name or a selector.")]
    attribute: Annotated[str, Role("attribute"), about("The name of the attribute.", min_length=1)]
    value: Annotated[Any, Role("attribute-value"), about("Its new value, as in a document.")]

    def change(self, workspace: Workspace) -> Outcome:
        refs = workspace.select(self.node)
        known: dict[tuple[object, ...], Attribute] = {}
        changes: dict[Scope, dict[int, NodeChange]] = {}
        same = 0
        for ref in refs:
            position = _position(ref, self.attribute)
            old = None if position is None else ref.node.attribute[position]
            key = (
                ref.node.domain,
                ref.node.op_type,
                None if old is None else id(old),
                workspace.opset(ref.scope, ref.node.domain),
            )
            if key not in known:
                known[key] = _with_value(workspace, ref, old, self)
            new = known[key]
            if new == old:
                same += 1
            else:
                changes.setdefault(ref.scope, {})[ref.position] = _with_attribute(ref.node, position, new)
        if any([dtype_attribute(ref.node) == self.attribute for ref in refs]):
            replace_nodes(workspace, changes, name_of(self))
        else:
            workspace.replace_nodes_in(changes)
        return Outcome(len(refs), _already(same, len(refs), "has", f"that value of {visible(self.attribute)}"))


class RemoveAttribute(Edit, frozen=True, kw_only=True, eq=False, tag="remove-attribute"):
    """Remove an attribute from nodes, so that the operator's default applies.

    Nodes without the attribute stay as they are. At least one node must have it, and no operator may require it.
    """

    group: ClassVar = "attributes"
    reads_shapes = False
    words = ("node", "attribute")
    examples = ('{"edit": "remove-attribute", "node": "op:Conv", "attribute": "auto_pad"}',)

    node: Annotated[str, Role("nodes"), about("The nodes: a name or a selector.")]
    attribute: Annotated[str, Role("attribute"), about("The name of the attribute.", min_length=1)]

    def change(self, workspace: Workspace) -> Outcome:
        refs = workspace.select(self.node)
        having = [(ref, place) for ref in refs if (place := _position(ref, self.attribute)) is not None]
        if not having:
            names = {each.name or "" for ref in refs for each in ref.node.attribute}
            hint = suggest(self.attribute, names) or _some_names(names)
            which = f"{refs[0].address} has no" if len(refs) == 1 else f"none of the {len(refs):,} nodes has an"
            raise EditError(
                f'{which} attribute "{visible(self.attribute)}"; {hint}', refs[0].address, place=name_of(self)
            )
        changes: dict[Scope, dict[int, NodeChange]] = {}
        for ref, position in having:
            name = ref.node.attribute[position].name or ""
            known = known_attributes(ref.node.domain, ref.node.op_type, workspace.opset(ref.scope, ref.node.domain))
            is_last = sum(each.name == name for each in ref.node.attribute) == 1
            if known is not None and known.get(name) and is_last:
                what = f'{visible(ref.node.op_type or "")} requires the attribute "{visible(name)}"'
                raise EditError(f"{ref.address}: {what}; set-attribute sets it", ref.address, place=name_of(self))
            changes.setdefault(ref.scope, {})[ref.position] = _with_attribute(ref.node, position, None)
        workspace.replace_nodes_in(changes)
        without = len(refs) - len(having)
        return Outcome(len(having), _already(without, len(refs), "does not have", "it") if without else ())


def _position(ref: NodeRef, name: str) -> int | None:
    """Position of the attribute with a name, or of ``#POSITION`` if names repeat; None if there is none."""
    attributes = ref.node.attribute
    positions = [position for position, each in enumerate(attributes) if each.name == name]
    if len(positions) == 1:
        return positions[0]
    if positions:
        raise EditError(
            f'{ref.address} has {len(positions)} attributes called "{visible(name)}"; edit the model by hand first',
            ref.address,
        )
    if name.startswith("#"):
        segments = attribute_segments(attributes)
        return segments.index(name) if name in segments else None
    return None


def _with_value(workspace: Workspace, ref: NodeRef, old: Attribute | None, edit: SetAttribute) -> Attribute:
    node = ref.node
    name = edit.attribute if old is None else old.name or ""
    known = known_attributes(node.domain, node.op_type, workspace.opset(ref.scope, ref.node.domain))
    if known is not None and old is None and name not in known:
        operator = visible(node.op_type or "")
        hint = suggest(name, known) or (_some_names(known) if known else f"{operator} has none")
        raise EditError(
            f'{ref.address}: {operator} has no attribute "{visible(name)}"; {hint}', ref.address, place=name_of(edit)
        )
    table = dict(attribute_types(node.domain, node.op_type))
    if old is not None and old.type in ATTRIBUTE_PAYLOADS and name not in table:
        table[name] = old.type
    new = attribute_of(name, edit.value, table, node.op_type or "", name_of(edit))
    wanted = attribute_types(node.domain, node.op_type).get(name)
    if wanted is not None and new.type != wanted:
        # A tag may name any type; an operator allows only one.
        actual = f"the value is {_type_name(new.type)}"
        operator = visible(node.op_type or "")
        raise EditError(
            f'{ref.address}: "{visible(name)}" of {operator} is {_type_name(wanted)}, but {actual}',
            ref.address,
            place=name_of(edit),
        )
    if old is None:
        return new
    return replace(new, doc_string=old.doc_string, unknown_fields=old.unknown_fields)


def attribute_of(
    name: str, value: object, table: Mapping[str, int], op_type: str, edit: str, *, where: str = "value"
) -> Attribute:
    """Convert the JSON value of an attribute, as in a document; `edit` and `where` are names for messages, or "".

    For integers that are dtypes, such as `to` of Cast, the name of the dtype is accepted too.

    Raises:
        ParameterError: the value has another type, or an unknown one.
    """
    context = Context()
    # Operator set 5 of ONNX has texts in capitals here.
    if name in DTYPE_ATTRIBUTES and table and isinstance(value, str) and value.islower():
        value = DATA_TYPES.get(value, value) if table.get(name, _INT) == _INT else value
    read = read_attributes({name: value}, table, ROOT, context, op_type=op_type)
    if context.remarks or not read:
        remark = context.remarks[0]
        path = "".join(
            [f"[{part}]" if isinstance(part, int) else f".{visible(part)}" for part in remark.place.path[1:]]
        )
        hint = f"; {remark.hint}" if remark.hint else ""
        raise ParameterError(": ".join(filter(None, (edit, visible(where) + path, remark.message + hint))))
    return read[0]


def _type_name(kind: int | None) -> str:
    return ATTRIBUTE_TYPE_NAMES.get(kind or 0, str(kind))


def _with_attribute(node: Node, position: int | None, new: Attribute | None) -> Node:
    """Return a node with another attribute at a position (None: at the end), or without it."""
    attributes = list(node.attribute)
    at = len(attributes) if position is None else position
    attributes[at : at + 1] = [] if new is None else [new]
    return replace(node, attribute=tuple(attributes))


def _already(count: int, of: int, verb: str, what: str) -> tuple[str, ...]:
    if not count:
        return ()
    if of == 1:
        return (f"the node {verb} {what} already",) if verb == "has" else ()
    several = {"has": "have", "does not have": "do not have"}
    verb = verb if count == 1 else several[verb]
    return (f"{count:,} of {of:,} nodes {verb} {what}" + (" already" if verb.startswith("ha") else ""),)


def _some_names(names: Mapping[str, object] | set[str]) -> str:
    shown = listed([visible(name) for name in sorted(names)], 8)
    return f"there are {shown}" if names else "there are none"


def node(
    op_type: str,
    inputs: str | Sequence[str] = (),
    outputs: str | Sequence[str] = (),
    *,
    name: str | None = None,
    domain: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    **more: Any,
) -> Node:
    """Return a node; `inputs` and `outputs` are a name or a list of names, "" for an omitted input.

    Attributes are keyword arguments or in `attributes`; their values are numbers, str, bytes, lists of them, arrays,
    or records.

    Raises:
        ParameterError: a value does not have the type of the operator's attribute.
    """
    table = attribute_types(domain, op_type)
    built = []
    for key, value in {**(attributes or {}), **more}.items():
        built.append(attribute_of(key, attribute_value(value, table.get(key)), table, op_type, "node", where=key))
    taken, given = [(names,) if isinstance(names, str) else tuple(names) for names in (inputs, outputs)]
    return Node(taken, given, name, op_type, tuple(built), domain=domain)


def tensor(name: str | None, values: Any, dtype: str | None = None) -> Tensor:
    """Return a tensor with the elements and the shape of an array, a number, a text, or nested lists of these.

    Its data type is `dtype`, such as "float16", to which the elements are rounded. By default, it is that of the
    array, float32 for Python's float, or int64 for int.

    Raises:
        TypeError: ONNX has no such data type.
        EncodeError: the elements cannot be converted to the data type.
    """
    import numpy

    array = numpy.asarray(values)
    if dtype is None:
        is_array = hasattr(values, "dtype")
        return from_numpy(array if is_array or array.dtype != numpy.float64 else array.astype(numpy.float32), name)
    found = from_array(array, Kind(parse_data_type(dtype), tuple(map(int, array.shape))), lossy=True)
    return replace(found.tensor, name=name)


def value(name: str, dtype: str, shape: Sequence[int | str | None] | None = None) -> ValueInfo:
    """Return the declaration of an input, an output or another value of a graph.

    Its type is a tensor of a data type, such as "float32", and a shape of sizes, names, and None for unknown sizes.
    Without a shape, `dtype` is the text of any type, such as "seq(float32[N])".

    Raises:
        TypeSyntaxError: there is no such type.
    """
    if shape is None:
        return ValueInfo(name, parse_type(dtype))
    dims = [d.Dimension(dim_param=each) if isinstance(each, str) else d.Dimension(dim_value=each) for each in shape]
    return ValueInfo(name, Type(tensor_type=d.TensorType(parse_data_type(dtype), d.TensorShape(tuple(dims)))))


def attribute_value(value: Any, kind: int | None) -> Any:
    """Return a Python value of an attribute as in a document; `kind` is the number of its type, None if unknown."""
    if isinstance(value, dict):
        return value
    if kind == ATTRIBUTE_TYPES["TENSOR"] or (kind is None and getattr(value, "ndim", 0) > 0):
        value = value if isinstance(value, Tensor) else tensor(None, value)
    elif hasattr(value, "tolist"):
        value = value.tolist()
    is_list = isinstance(value, list | tuple)
    items = [each.tolist() if hasattr(each, "tolist") else each for each in (value if is_list else (value,))]
    plain = [_plain(each) for each in items]
    plain_value = plain if is_list else plain[0]
    kinds = dict.fromkeys([name for name, types in _KINDS.items() if any([isinstance(each, types) for each in items])])
    if kind is not None or not kinds:
        return plain_value
    return {f"{next(iter(kinds))}{'S' * is_list}": plain_value}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": pybase64.b64encode(value).decode()}
    return int(value) if isinstance(value, bool) else plain_value(value)

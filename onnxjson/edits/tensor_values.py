"""Edits of constants: initializers, and tensors in attributes."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from onnxjson.constants import arrays, encoded, values
from onnxjson.constants.stored import with_elements
from onnxjson.constants.values import Encoded, Kind
from onnxjson.display import visible
from onnxjson.document import Graph, SparseTensor, Tensor, Type, ValueInfo
from onnxjson.edits.constant_types import type_of_constant
from onnxjson.edits.declaration import Edit, name_of
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.result_types import ResultTypes
from onnxjson.edits.values import without_spelling
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import DecodeError, EditError, EncodeError, ParameterError
from onnxjson.external import Resolver
from onnxjson.names import DATA_TYPE_NAMES
from onnxjson.selectors import TensorRef
from onnxjson.tensors import to_numpy
from onnxjson.types import TypeSyntaxError

_FORMS = ("value", "base64", "file")


class SetTensor(Edit, frozen=True, kw_only=True, eq=False, tag="set-tensor"):
    """Give a constant other elements: values, base64, or an array in a .npy file.

    Dtype and dims stay what they are unless type says others. A value that the dtype does not hold is refused, or with
    lossy becomes the nearest one. The name, the comment and the metadata of the constant stay.
    """

    words = ("tensor", "value")
    examples = (
        '{"edit": "set-tensor", "tensor": "shape", "value": [1, -1, 64]}',
        '{"edit": "set-tensor", "tensor": "scale", "value": [0.5], "type": "float16[1]"}',
        '{"edit": "set-tensor", "tensor": "fc.weight", "file": "weights.npy"}',
    )

    tensor: Annotated[
        str, Role("constant"), Meta(description="The constant: its name, the output of a Constant, or an address.")
    ]
    value: Annotated[
        Any, Role("values"), Meta(description="The elements: one value, a flat list, or lists nested by shape.")
    ] = None
    base64: Annotated[str | None, Role("base64"), Meta(description="The elements as base64 of raw_data.")] = None
    file: Annotated[str | None, Role("file"), Meta(description="A .npy file, or FILE.npz:NAME.")] = None
    type: Annotated[
        str | None, Role("type"), Meta(description="Another dtype, or dtype and dims, such as float16[1,3].")
    ] = None
    lossy: Annotated[bool, Meta(description="Take the nearest value for one that the dtype does not hold.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        given = [name for name in _FORMS if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise ParameterError(f"{name_of(self)} needs one of {', '.join(_FORMS)}, and {found} is given")
        ref = workspace.tensor(self.tensor)
        old = _constant(ref, self.tensor, name_of(self))
        try:
            new = self._encoded(workspace, _kind(self.type, old, name_of(self)))
        except (EncodeError, DecodeError) as error:
            hint = "" if self.type is not None else "; type says another dtype or shape"
            raise EditError(f"{name_of(self)}: {visible(ref.name)}: {error}{hint}", ref.address) from None
        return _put(workspace, ref, old, new, name_of(self))

    def _encoded(self, workspace: Workspace, kind: Kind) -> Encoded:
        if self.base64 is not None:
            return Encoded(encoded.from_base64(self.base64, kind))
        if self.file is not None:
            return arrays.from_array(arrays.read_array(workspace.file(self.file)), kind, lossy=self.lossy)
        return values.from_json(without_spelling(self.value), kind, lossy=self.lossy)


class CastTensor(Edit, frozen=True, kw_only=True, eq=False, tag="cast-tensor"):
    """Give a constant another dtype.

    A value that the dtype does not hold exactly is refused, or with lossy becomes the nearest one. A node that is known
    to need the old dtype is named, and nothing is changed.
    """

    words = ("tensor", "dtype")
    examples = ('{"edit": "cast-tensor", "tensor": "axes", "dtype": "int64"}',)

    tensor: Annotated[
        str, Role("constant"), Meta(description="The constant: its name, the output of a Constant, or an address.")
    ]
    dtype: Annotated[str, Role("dtype"), Meta(description="The dtype that it is to have, such as float16.")]
    lossy: Annotated[bool, Meta(description="Take the nearest value for one that the dtype does not hold.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        ref = workspace.tensor(self.tensor)
        old = _constant(ref, self.tensor, name_of(self))
        kind = _parsed(self.dtype, name_of(self), "dtype")
        if kind.dims is not None:
            raise ParameterError(f"{name_of(self)}: dtype: {visible(self.dtype)} has dims; write the dtype alone")
        if kind.data_type == old.data_type:
            return Outcome(1, (f'"{visible(ref.name)}" is {DATA_TYPE_NAMES[kind.data_type]} already',))
        array = to_numpy(with_elements(old, Resolver(workspace.model_folder or Path())))
        try:
            new = arrays.from_array(array, Kind(kind.data_type, old.dims), lossy=self.lossy)
        except EncodeError as error:
            raise EditError(f"{name_of(self)}: {visible(ref.name)}: {error}", ref.address) from None
        return _put(workspace, ref, old, new, name_of(self))


def _constant(ref: TensorRef, selector: str, edit: str) -> Tensor:
    if isinstance(ref.tensor, Tensor):
        return ref.tensor
    what = "a sparse constant" if isinstance(ref.tensor, SparseTensor) else "no constant"
    hint = "set-attribute changes values of a Constant that are no tensor" if ref.tensor is None else "edit it by hand"
    raise EditError(f'{edit}: "{visible(selector)}" is {what} (@{visible(ref.address, 200)}); {hint}', ref.address)


def _kind(text: str | None, old: Tensor, edit: str) -> Kind:
    """The dtype and dims that are wanted: those of the constant where nothing else is said."""
    if text is not None:
        kind = _parsed(text, edit, "type")
        return kind if kind.dims is not None else Kind(kind.data_type, old.dims)
    if old.data_type not in DATA_TYPE_NAMES or not old.data_type:
        raise EditError(f"{edit}: the dtype of the constant is not known; give it as type")
    return Kind(old.data_type, old.dims)


def _parsed(text: str, edit: str, parameter: str) -> Kind:
    try:
        return values.parse_kind(text)
    except (TypeSyntaxError, EncodeError) as error:
        raise ParameterError(f"{edit}: {parameter}: {error}") from None


def _put(workspace: Workspace, ref: TensorRef, old: Tensor, new: Encoded, edit: str) -> Outcome:
    """Puts the elements into the constant, and what is said of its type right."""
    tensor = msgspec.structs.replace(
        new.tensor,
        name=old.name,
        doc_string=old.doc_string,
        metadata_props=old.metadata_props,
        unknown_fields=old.unknown_fields,
    )
    notes = []
    if new.changed:
        values_are = "1 value is" if new.changed == 1 else f"{new.changed:,} values are"
        notes.append(f"{values_are} not exactly what was given: {new.first}")
    scope = ref.scope
    is_other_dtype = tensor.data_type != old.data_type
    if scope is not None and is_other_dtype:
        retyped = ResultTypes(workspace, edit, {}, {(scope, ref.name): tensor.data_type})
        retyped.make(without=(scope, ref.name))
        notes += retyped.notes
    workspace.replace_tensor(ref, tensor)
    if scope is not None and (is_other_dtype or tensor.dims != old.dims):
        _correct_types(workspace, scope.address, ref.name, type_of_constant(tensor))
    return Outcome(1, tuple(notes))


def _correct_types(workspace: Workspace, address: str, name: str, new: Type) -> None:
    """What a graph says of the type of a constant, as an input or in value_info, becomes its type."""
    scope = workspace.scope(address)
    graph = scope.graph
    fields: dict[str, Any] = {}
    for field in ("input", "value_info"):
        if field == "input" and not isinstance(graph, Graph):
            continue
        said: tuple[ValueInfo, ...] = getattr(graph, field)
        if any(each.name == name and each.type not in (None, new) for each in said):
            fields[field] = tuple([_typed(each, new) if each.name == name else each for each in said])
    if fields:
        workspace.replace_graph(scope, msgspec.structs.replace(graph, **fields))


def _typed(value: ValueInfo, new: Type) -> ValueInfo:
    return value if value.type is None else msgspec.structs.replace(value, type=new)

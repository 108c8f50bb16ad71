"""Elements of constants: set-tensor and cast-tensor, and small integer constants such as shapes, axes and sizes."""

import math
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Final

from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome, name_of
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.rewiring import ResultTypes
from onnxjson.editing.values import without_spelling
from onnxjson.editing.workspace import Workspace
from onnxjson.model import elements
from onnxjson.model.constants import find_constant, type_of_constant
from onnxjson.model.dimensions import Pick, SliceError, parse_slice
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Attribute, Graph, Node, SparseTensor, Tensor, Type, ValueInfo
from onnxjson.model.dtypes import BITS, DATA_TYPE_NAMES, FLOATS, INTEGERS, STRING
from onnxjson.model.errors import DecodeError, EditError, EncodeError, ParameterError
from onnxjson.model.index import Scope
from onnxjson.model.messages import ATTRIBUTE_TYPES
from onnxjson.model.payloads import whole
from onnxjson.model.tensors import from_numpy, raw_bytes, to_numpy, with_storage
from onnxjson.model.types import TypeSyntaxError
from onnxjson.patterns.names import TensorRef
from onnxjson.storage import constant_reading, numpy_constants
from onnxjson.storage.constant_reading import Encoded, Kind

__all__ = ["CastTensor", "SetTensor"]

_FORMS = ("value", "base64", "file")

_CODES: Final = {6: "i", 7: "q"}
_MOST_NOTES: Final = 8
_MOST_INTEGERS: Final = 4096
"""Maximum number of elements of an integer constant that is read."""


class SetTensor(Edit, frozen=True, kw_only=True, eq=False, tag="set-tensor"):
    """Set the elements of a constant from values, base64, or an array in a .npy file.

    With `at`, sets only the elements of a slice; a single value sets all of them. Dtype and dims stay unless `type` is
    given. A value that the dtype cannot represent is refused; with `lossy`, it is rounded. Name, doc string and
    metadata of the constant stay. With a wildcard, such as "*.lora_*", and a .npz file, each matching constant gets
    the array of the same name, for example from another adapter; if the file lacks arrays, the edit fails and names
    them.
    """

    group: ClassVar = "constants"
    reads_shapes = False
    words = ("tensor", "value")
    examples = (
        '{"edit": "set-tensor", "tensor": "shape", "value": [1, -1, 64]}',
        '{"edit": "set-tensor", "tensor": "scale", "value": [0.5], "type": "float16[1]"}',
        '{"edit": "set-tensor", "tensor": "fc.weight", "file": "weights.npy"}',
        '{"edit": "set-tensor", "tensor": "fc.weight", "value": 0.5, "at": "3,17"}',
        '{"edit": "set-tensor", "tensor": "*.lora_*", "file": "adapter.npz"}',
    )

    tensor: Annotated[
        str,
        Role("constant"),
        about("The constant: its name, the output of a Constant, or an address; with a .npz, a wildcard."),
    ]
    value: Annotated[Any, Role("values"), about("The elements: one value, a flat list, or lists nested by shape.")] = (
        None
    )
    base64: Annotated[str | None, Role("base64"), about("The elements as base64 of raw_data.")] = None
    file: Annotated[str | None, Role("file"), about("A .npy file, or FILE.npz:NAME.")] = None
    type: Annotated[str | None, Role("type"), about("Another dtype, or dtype and dims, such as float16[1,3].")] = None
    at: Annotated[
        str | None, Role("slice"), about("The only elements to set: 3,17 or 0:2,: (as numpy).", min_length=1)
    ] = None
    lossy: Annotated[bool, about("Round values that the dtype cannot represent exactly.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        given = [name for name in _FORMS if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise ParameterError(f"{name_of(self)} needs one of {', '.join(_FORMS)}, but has {found}")
        if self.at is not None and self.type is not None:
            raise ParameterError("`at` keeps dtype and shape; leave out `type`", place=name_of(self))
        if len(refs := workspace.tensors(self.tensor)) > 1:
            return self._each(workspace, refs)
        is_other = self.type is None and self.at is None
        ref, old = _constant(workspace.tensor(self.tensor), self.tensor, name_of(self))
        needed = counted(math.prod(old.dims), "value")
        hint = f"; give {needed}, or another dtype or shape with type" if is_other else ""
        kind = _kind(self.type, old, name_of(self))

        def encoded() -> Encoded:
            return self._encoded(workspace, kind) if self.at is None else self._at(workspace, old, self.at, kind)

        return _put(workspace, ref, old, encoded, name_of(self), hint)

    def _each(self, workspace: Workspace, refs: Sequence[TensorRef]) -> Outcome:
        """Set each constant to the array with its name in a .npz file."""
        constants = [ref for ref in refs if isinstance(ref.tensor, Tensor)]
        if self.file is None or not self.file.endswith(".npz") or not constants:
            what = f"{len(refs):,} tensors match {visible(self.tensor)}, {len(constants):,} of them constants"
            raise EditError(f"{what}; name one, or give a .npz file with an array for each", place=name_of(self))
        array_names = numpy_constants.array_names(workspace.file(self.file))
        if missing := [visible(ref.name) for ref in constants if ref.name not in array_names]:
            raise EditError(
                f"{visible(self.file)} has no {listed(missing, 8)}; nothing is changed", place=name_of(self)
            )
        notes: list[str] = []
        for ref in constants:
            one = replace(self, tensor=f"@{ref.address}", file=f"{self.file}:{ref.name}")
            notes += one.change(workspace).notes
        unused = len(array_names) - len({ref.name for ref in constants})
        more = [f"{counted(unused, 'array')} of {visible(self.file)} not used"] if unused else []
        return Outcome(len(constants), (*notes, *more))

    def _encoded(self, workspace: Workspace, kind: Kind) -> Encoded:
        if self.base64 is not None:
            return Encoded(constant_reading.from_base64(self.base64, kind))
        if self.file is not None:
            return numpy_constants.from_array(
                numpy_constants.read_array(workspace.file(self.file)), kind, lossy=self.lossy
            )
        value = without_spelling(self.value)
        if isinstance(value, str) and value.endswith((".npy", ".npz")) and kind.data_type != STRING:
            name = visible(value.removeprefix("@"), None)
            raise ParameterError(f"{name} is the name of a file; give it as `file`: --file {name}")
        return constant_reading.from_json(value, kind, lossy=self.lossy)

    def _at(self, workspace: Workspace, old: Tensor, at: str, kind: Kind) -> Encoded:
        """Return the constant with other elements in a slice; one value is used for all of them."""
        import numpy

        try:
            picks = parse_slice(at, old.dims)
        except SliceError as error:
            raise EncodeError(f"at {visible(at, 100)}: {error}") from None
        shape = tuple([len(pick) for pick in picks if not isinstance(pick, int)])
        is_one = self.value is not None and not isinstance(self.value, tuple | list)
        given = self._encoded(workspace, Kind(kind.data_type, () if is_one else shape))
        held = workspace.with_elements(old)
        count = elements.element_count(old.dims)
        places = numpy.arange(count).reshape(old.dims)[_numpy_index(picks)].reshape(-1).tolist()
        if kind.data_type == STRING:
            texts = list(held.string_data)
            for number, place in enumerate(places):
                texts[place] = given.tensor.string_data[0 if is_one else number]
            return given._replace(tensor=replace(held, string_data=tuple(texts)))
        array = to_numpy(held).copy()
        array.reshape(-1)[places] = to_numpy(given.tensor).reshape(-1)
        return given._replace(tensor=from_numpy(array))


def _numpy_index(picks: Sequence[Pick]) -> tuple[int | slice, ...]:
    return tuple([
        pick if isinstance(pick, int) else slice(pick.start, pick.stop if pick.stop >= 0 else None, pick.step)
        for pick in picks
    ])  # fmt: skip


class CastTensor(Edit, frozen=True, kw_only=True, eq=False, tag="cast-tensor"):
    """Change the dtype of a constant, or of all constants whose names match a wildcard.

    A value that the dtype cannot represent exactly is refused; with `lossy`, it is rounded. If a node is known to need
    the old dtype, the edit fails and names the node. A wildcard, such as "*", casts the constants with a wider dtype
    of the same kind (integers or floats), except those that would be refused or would change the dtype of a node
    output.
    """

    group: ClassVar = "constants"
    reads_shapes = False
    words = ("tensor", "dtype")
    examples = (
        '{"edit": "cast-tensor", "tensor": "axes", "dtype": "int64"}',
        '{"edit": "cast-tensor", "tensor": "*", "dtype": "int32"}',
    )

    tensor: Annotated[
        str,
        Role("constant"),
        about("The constant: its name, the output of a Constant, or an address; a wildcard for several."),
    ]
    dtype: Annotated[str, Role("dtype"), about("The new dtype, such as float16.")]
    lossy: Annotated[bool, about("Round values that the dtype cannot represent exactly.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        kind = _parsed(self.dtype, name_of(self), "dtype")
        if kind.dims is not None:
            raise ParameterError(f"dtype: {visible(self.dtype)} has dims; write the dtype alone", place=name_of(self))
        refs = workspace.tensors(self.tensor)
        if len(refs) == 1:
            return self._one(workspace, kind, *_constant(refs[0], self.tensor, name_of(self)))
        return self._each(workspace, refs, kind.data_type)

    def _each(self, workspace: Workspace, refs: Sequence[TensorRef], dtype: int) -> Outcome:
        """Cast every constant of a wider dtype of the same kind that can be cast."""
        alike = next((each for each in (INTEGERS, FLOATS) if dtype in each), ())
        wider = [each for each in alike if BITS[each] > BITS[dtype]]
        notes: list[str] = []
        reasons: dict[str, str] = {}
        fitting = [
            (ref, ref.tensor) for ref in refs if isinstance(ref.tensor, Tensor) and ref.tensor.data_type in wider
        ]
        for ref, tensor in fitting:
            try:
                notes += self._one(workspace, Kind(dtype, None), ref, tensor, alone=True).notes
            except EditError as error:
                reasons[ref.address] = error.sentence
        done = len(fitting) - len(reasons)
        if not done:
            why = next(iter(reasons.values()), f"none of {len(refs):,} matching constants has a wider dtype")
            raise EditError(f"no constant can become {DATA_TYPE_NAMES[dtype]}: {why}", place=name_of(self))
        stay = [f"{len(reasons):,} not cast, such as {next(iter(reasons.values()))}"] if reasons else []
        return Outcome(
            done,
            (
                f"{counted(done, 'constant')} of {len(fitting):,} cast to {DATA_TYPE_NAMES[dtype]}",
                *notes[:_MOST_NOTES],
                *stay,
            ),
        )

    def _one(self, workspace: Workspace, kind: Kind, ref: TensorRef, old: Tensor, *, alone: bool = False) -> Outcome:
        if kind.data_type == old.data_type:
            return Outcome(1, (f'"{visible(ref.name)}" is {DATA_TYPE_NAMES[kind.data_type]} already',))
        array = to_numpy(workspace.with_elements(old))
        cast = partial(numpy_constants.from_array, array, Kind(kind.data_type, old.dims), lossy=self.lossy)
        return _put(workspace, ref, old, cast, name_of(self), alone=alone)


def set_elements(workspace: Workspace, selector: str, values: object, dtype: str | None, *, lossy: bool) -> Outcome:
    """Set the elements of a constant from an array or nested lists; dtype and dims stay, unless others are given.

    Raises:
        EditError: it is not a constant, it has another number of elements, or the dtype cannot represent a value.
    """
    import numpy

    edit = "set-tensor"
    ref, old = _constant(workspace.tensor(selector), selector, edit)
    array = numpy.asarray(values)
    kind = _kind(dtype, old, edit)
    dims = kind.dims or ()
    if array.shape not in (dims, (math.prod(dims),)) and not array.size == math.prod(dims) == 1:
        shapes = [",".join(map(str, shape)) for shape in (array.shape, dims)]
        way = f'to change its shape write dtype="{DATA_TYPE_NAMES[kind.data_type]}[{shapes[0]}]"'
        what = f"{visible(ref.name)}: the array has the shape [{shapes[0]}], the constant [{shapes[1]}]"
        raise EditError(what, ref.address, place=edit, hint=way)
    array = array.reshape(dims)
    encode = partial(numpy_constants.from_array, array, kind, lossy=lossy or not hasattr(values, "dtype"))
    return _put(workspace, ref, old, encode, edit)


def _constant(ref: TensorRef, selector: str, edit: str) -> tuple[TensorRef, Tensor]:
    if isinstance(ref.tensor, Tensor):
        return ref, ref.tensor
    what = "a sparse constant" if isinstance(ref.tensor, SparseTensor) else "not a constant"
    hint = "change other values of a Constant with set-attribute" if ref.tensor is None else "edit it by hand"
    raise EditError(f'"{visible(selector)}" is {what} (@{visible(ref.address, 200)}); {hint}', ref.address, place=edit)


def _kind(text: str | None, old: Tensor, edit: str) -> Kind:
    """Return the new dtype and dims; by default those of the constant."""
    if text is not None:
        kind = _parsed(text, edit, "type")
        return kind if kind.dims is not None else Kind(kind.data_type, old.dims)
    if old.data_type not in DATA_TYPE_NAMES or not old.data_type:
        raise EditError("the dtype of the constant is not known; give it as type", place=edit)
    return Kind(old.data_type, old.dims)


def _parsed(text: str, edit: str, parameter: str) -> Kind:
    try:
        return constant_reading.parse_kind(text)
    except (TypeSyntaxError, EncodeError) as error:
        raise ParameterError(f"{parameter}: {error}", place=edit) from None


def _put(
    workspace: Workspace,
    ref: TensorRef,
    old: Tensor,
    encode: Callable[[], Encoded],
    edit: str,
    hint: str = "",
    *,
    alone: bool = False,
) -> Outcome:
    """Replace the elements of the constant, and correct its stated types; `hint` is for elements that do not fit.

    If it is to change `alone`, it is refused where the dtype of an output of a node follows.
    """
    try:
        new = encode()
    except (EncodeError, DecodeError) as error:
        hint = hint if isinstance(error, EncodeError) else ""
        raise EditError(f"{visible(ref.name)}: {error}{hint}", ref.address, place=edit) from None
    tensor = replace(
        new.tensor,
        name=old.name,
        doc_string=old.doc_string,
        metadata_props=old.metadata_props,
        unknown_fields=old.unknown_fields,
    )
    notes = []
    if new.changed:
        values_are = "1 value is" if new.changed == 1 else f"{new.changed:,} values are"
        notes.append(f'{values_are} not represented exactly in "{visible(ref.name)}": {new.first}')
    scope = ref.scope
    is_other_dtype = tensor.data_type != old.data_type
    if scope is not None and is_other_dtype:
        types = ResultTypes(workspace, edit, {}, {(scope, ref.name): tensor.data_type})
        if alone and (following := types.following()):
            what = f'"{visible(following[0])}" would be {DATA_TYPE_NAMES[tensor.data_type or 0]} as well'
            raise EditError(f"{visible(ref.name)}: {what}", ref.address, place=edit)
        types.make(without=(scope, ref.name))
    workspace.replace_record(ref.address, tensor)
    if scope is not None and (is_other_dtype or tensor.dims != old.dims):
        _correct_types(workspace, scope.address, ref.name, type_of_constant(tensor))
    return Outcome(1, tuple(notes))


def _correct_types(workspace: Workspace, address: str, name: str, new: Type) -> None:
    """Correct the stated type of a constant in the inputs and value_info of its graph."""
    scope = workspace.scope(address)
    graph = scope.graph
    fields: dict[str, Any] = {}
    for field in ("input", "value_info"):
        if field == "input" and not isinstance(graph, Graph):
            continue
        stated: tuple[ValueInfo, ...] = getattr(graph, field)
        if any(each.name == name and each.type not in (None, new) for each in stated):
            fields[field] = tuple(
                [replace(each, type=new) if each.name == name and each.type else each for each in stated]
            )
    if fields:
        workspace.replace_graph(scope, replace(graph, **fields))


def constant_tensor(scope: Scope, name: str) -> tuple[Scope, Tensor] | None:
    """Return the constant of a name that is used in a graph: an initializer, or the value of a Constant.

    An input with a default is not a constant: a caller can replace it.
    """
    constant = find_constant(scope, name)
    if constant is None or constant.is_default or constant.tensor is None:
        return None
    return constant.scope, constant.tensor


def integer_constant(scope: Scope, name: str) -> tuple[int, ...] | None:
    """Return the values of a constant of int32 or int64; None for any other, a long or an external one."""
    constant = constant_tensor(scope, name) if name else None
    if constant is None:
        return None
    tensor = constant[1]
    count = elements.element_count(tensor.dims)
    code = _CODES.get(tensor.data_type or 0)
    if code is None or len(tensor.dims) > 1 or count > _MOST_INTEGERS:
        return None
    stored = raw_bytes(replace(tensor, data_location=tensor.data_location or None))
    return None if stored is None else struct.unpack(f"<{count}{code}", whole(stored[0]))


def constant_node(name: str, tensor: Tensor, node_name: str | None = None) -> Node:
    """Return a node Constant whose output has a name and the elements of a tensor."""
    value = Attribute(name="value", type=ATTRIBUTE_TYPES["TENSOR"], t=tensor)
    return Node(op_type="Constant", output=(name,), attribute=(value,), name=node_name)


def with_values(tensor: Tensor, values: Sequence[int]) -> Tensor:
    """Return a constant with other values of the same number, dtype and storage."""
    assert tensor.data_type is not None
    stored = raw_bytes(replace(tensor, data_location=None))
    assert stored is not None
    data = elements.pack(tensor.data_type, list(values))
    return replace(tensor, **with_storage(data, tensor.data_type, stored[1], len(values)))

"""Passes on models of more than 2 GiB, which is all that protobuf reads: their big constants stay in their files.

The smallest constants, `VISIBLE` bytes together, are in the model that a pass gets, since passes compute with shapes,
axes and scales. `Pass.constants` declares what it gets instead of the others:

* "files": references to their files, which it reads where it needs values. A constant from which constant folding would
  make another one is an input of the graph instead.
* "inputs": inputs of the graph, with which a pass cannot compute.
* "tokens": a few elements, too few for the shape, that differ from one constant to another. This is for passes whose
  source was read: they compare constants and convert them one by one, but do not compute with them.
* "none": the pass needs all of them, and is refused.

Of a smaller model, exact passes get its constants of 64 MiB and more in the same way: they stay in the file of the
model, so that it costs little memory. Other passes get them.

The result has the constants again: unchanged, renamed, shared, or converted while they are written. New ones may be in
the file `WRITTEN` in the folder of the pass, so that a result can be bigger than a message, too.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes, message_size
from onnxjson.model.constants import constant_values
from onnxjson.model.display import counted, visible
from onnxjson.model.document import (
    Dimension,
    Graph,
    Model,
    Node,
    StringStringEntry,
    Tensor,
    TensorShape,
    TensorType,
    Type,
    ValueInfo,
)  # fmt: skip
from onnxjson.model.dtypes import DATA_TYPES, DTYPES
from onnxjson.model.errors import LimitError, PassError
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.model.payloads import Data, FileSlice, Payload, even_pieces, whole
from onnxjson.model.scopes import find_scopes
from onnxjson.model.tensors import is_external, with_storage
from onnxjson.model.walking import replace_records, stored_bytes, tensors_of, walk
from onnxjson.optimizing.passes.declaration import WRITTEN, Pass
from onnxjson.running.light_model import input_for, with_inputs
from onnxjson.storage.external_files import APART, in_own_file, internalize
from onnxjson.storage.named_files import external_paths
from onnxjson.storage.weights import require_whole

VISIBLE = 32 << 20
"""Bytes of the smallest constants that every pass gets."""

_ALWAYS_VISIBLE: Final = 256
"""Bytes of a constant that may be an axis or a shape, without which some optimizers refuse a model."""

LIMIT = MESSAGE_BYTES
"""Bytes of a model up to which passes get all of it."""

_NOT_FOLDED: Final = frozenset({"Constant", "ConstantOfShape", "DequantizeLinear", "QuantizeLinear"})
"""Operators that optimizers leave, even if all inputs are constants."""

_FLOAT, _FLOAT16, _BOOL = (DATA_TYPES[name] for name in ("float32", "float16", "bool"))
_TOKEN_BITS: Final = 24


class InternalizedModel:
    """A model with its external tensors loaded, except the big ones of a model that is too big for protobuf."""

    def __init__(self, model: Model, folder: Path, *, allow_sparse: bool = False) -> None:
        inside = internalize(model, folder, allow_sparse=allow_sparse)
        self.is_big = message_size(inside) > LIMIT
        """Whether the model has more bytes than protobuf reads."""
        self._outside: dict[str | None, tuple[Tensor, Tensor]] = {}
        if inside is not model:
            pairs = list(zip(tensors_of(model), tensors_of(inside), strict=True))
            if self.is_big:
                pairs = _smallest(pairs)
                known = {id(old): new for old, new in pairs}
                inside = replace_records(model, Tensor, lambda tensor: known.get(id(tensor), tensor))
            self._outside = {old.name: (old, new) for old, new in pairs if is_external(old)}
        self.model = inside
        """The model with the tensors in it; the same object if it has no external data."""

    def restored(self, model: Model) -> Model:
        """Return the result of passes with unchanged tensors external again."""
        return replace_records(model, Tensor, self._original) if self._outside else model

    def _original(self, tensor: Tensor) -> Tensor:
        outside, inside = self._outside.get(tensor.name, (tensor, tensor))
        if tensor.raw_data is None or inside.raw_data is None:
            return tensor
        is_alike = (tensor.data_type, tensor.dims) == (inside.data_type, inside.dims)
        if not is_alike or len(tensor.raw_data) != len(inside.raw_data):
            return tensor
        return outside if whole(tensor.raw_data) == whole(inside.raw_data) else tensor


def _smallest(pairs: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """Return the smallest external tensors, about `VISIBLE` bytes together; with the same and their elements."""
    smallest, total = [], 0
    for old, new in sorted(pairs, key=lambda pair: len(pair[1].raw_data or b"")):
        if is_external(old):
            total += len(new.raw_data or b"")
            if total > VISIBLE and len(new.raw_data or b"") > _ALWAYS_VISIBLE:
                break
            smallest.append((old, new))
    return smallest


class Stage(NamedTuple):
    """A model between two passes; if a pass changes nothing, both sides of it are the same object."""

    data: bytes
    """The serialized model; of one with big constants, what identifies it."""
    model: Model

    @property
    def size(self) -> int:
        """Bytes of the model, with those in other files."""
        outside = [stored_bytes(each) for each in tensors_of(self.model) if is_external(each)]
        return (len(self.data) if self.is_whole else message_size(self.model)) + sum(outside)

    @property
    def is_whole(self) -> bool:
        """Whether `data` has all bytes of the model, except those in external data."""
        return not any([_is_later(each) or _is_apart(each) for each in tensors_of(self.model)])

    @property
    def is_big(self) -> bool:
        """Whether the model has constants outside of `data`."""
        return any([_is_big(each) for each in tensors_of(self.model)])


def stage_of(model: Model) -> Stage:
    """Serialize a model."""
    require_whole(model)
    size = message_size(model)
    stage = Stage(b"", model)
    if size <= LIMIT and stage.is_whole:
        return stage._replace(data=message_bytes(model))
    if size > LIMIT and not stage.is_big:
        raise LimitError(
            f"the model has {size:,} bytes; passes accept at most {LIMIT:,}, unless the weights are in other files: "
            "`onnxjson convert --externalize`"
        )

    def shortened(tensor: Tensor) -> Tensor:
        data = tensor.raw_data
        if not _is_later(tensor) and not _is_apart(tensor):
            return tensor
        return replace(tensor, raw_data=None, external_data=(StringStringEntry(key="elsewhere", value=repr(data)),))

    return stage._replace(data=message_bytes(replace_records(model, Tensor, shortened)))


class Substituted:
    """The model that a pass gets instead of one with big constants, and the way back.

    Raises:
        PassError: the pass cannot have this model; the message is the end of a sentence.
    """

    def __init__(self, before: Stage, subject: Pass, folder: Path | None) -> None:
        self._before = before.model
        self._subject = subject
        self.folder = (folder or Path()).absolute()
        self._tokens: dict[tuple[object, ...], Tensor] = {}
        self._inputs: dict[str, Tensor] = {}
        self._written: dict[frozenset[tuple[str | None, str | None]], Data | None] = {}
        model, self._is_referenced = before.model, False
        if not before.is_big and subject.constants != "none" and subject.is_exact and not subject.is_own_code:
            model = self._with_references(before.model)
        originals = zip(tensors_of(model), tensors_of(before.model), strict=True)
        self._files = {_range(stored): tensor for stored, tensor in originals if is_external(stored)}
        self.data = before.data
        self.files: tuple[str, ...] = ()
        """The files that the pass may read: those with the weights."""
        self.data_folder: str | None = None
        """Their folder, or "" if the pass does not get them; None if the model has no big constants."""
        self.mapped = 0
        """Bytes of the weights in these files."""
        self.remarks: tuple[str, ...] = ()
        big = [tensor for tensor in tensors_of(model) if _is_big(tensor)]
        self.is_needed = bool(big)
        """Whether the pass does not get all constants."""
        if not big:
            self.data = before.data if before.is_whole else message_bytes(before.model)
            return
        if subject.constants == "none":
            size = sum(map(stored_bytes, big))
            raise PassError(f"needs all weights in memory, and those in other files have {size:,} bytes: "
                            f"{subject.needs_constants}")  # fmt: skip
        light = self._light(model)
        size = message_size(light)
        if size > MESSAGE_BYTES:
            raise PassError(f"gets at most {MESSAGE_BYTES:,} bytes, and the model has {size:,} without its big weights")
        self.data = message_bytes(light)
        self.data_folder = str(self.folder) if subject.constants == "files" else ""
        if subject.constants == "files":
            self.mapped = sum(map(stored_bytes, big))
            self.files = tuple(map(str, external_paths(light, self.folder)))

    def _with_references(self, model: Model) -> Model:
        """Return a model with references to ranges of its own file in place of its big initializers."""
        graph = model.graph or Graph()
        initializers = [in_own_file(each, self.folder) for each in graph.initializer]
        self._is_referenced = any([is_external(each) for each in initializers])
        return replace(model, graph=replace(graph, initializer=tuple(initializers))) if self._is_referenced else model

    def open_written(self, output: bytes, folder: Path) -> None:
        """Open the constants that the pass wrote to its folder, which may be removed afterwards.

        Raises:
            OnnxJsonError: the file does not contain what the result refers to.
        """
        if self.data_folder and (folder / WRITTEN).exists():
            names = [each for each in tensors_of(serde.parse(output).model) if ("location", WRITTEN) in _range(each)]
            inside = internalize(Model(graph=Graph(initializer=tuple(names))), folder).graph or Graph()
            pairs = zip(names, inside.initializer, strict=True)
            self._written = {_range(outside): each.raw_data for outside, each in pairs}

    def data_of(self, model: Model) -> bytes:
        """Serialize what `read` returned, as in `Stage`, but with the constants in the file of the model."""
        return message_bytes(model) if self._is_referenced else stage_of(model).data

    def _light(self, model: Model) -> Model:
        if self._subject.constants == "tokens":
            return replace_records(model, Tensor, self._token)
        graph = model.graph or Graph()
        hidden = {each.name for each in graph.initializer if _is_big(each)}
        if self._subject.constants == "files":
            hidden &= _foldable(model) | (_comparable(graph) if self._is_referenced else set())
        self._inputs = {each.name or "": each for each in graph.initializer if each.name in hidden}
        graph = with_inputs(graph, lambda tensor: tensor.name in hidden, _input)
        left = [tensor for tensor in tensors_of(graph) if _is_big(tensor)]
        wrong = [tensor for tensor in left if self._subject.constants == "inputs" or not is_external(tensor)]
        if wrong:
            name = visible(wrong[0].name or "")
            where = ("it is big and not an initializer of the main graph" if is_external(wrong[0])
                     else "an earlier pass creates it only when the result is written; run that pass last")  # fmt: skip
            raise PassError(f'cannot read the constant "{name}": {where}')
        if self._inputs:
            size = sum(map(stored_bytes, self._inputs.values()))
            self.remarks = (f"{counted(len(self._inputs), 'big constant')} ({size:,} bytes) not available for folding",)
        return replace(model, graph=graph)

    def _token(self, tensor: Tensor) -> Tensor:
        if not _is_big(tensor):
            return tensor
        number = len(self._tokens)
        token = _token_of(number, tensor, tensor.data_type or 0)
        self._tokens[_token_key(token)] = tensor
        if tensor.data_type == _FLOAT:
            self._tokens[_token_key(_token_of(number, tensor, _FLOAT16))] = tensor
        return token

    def read(self, output: Model) -> Model:
        """Return the result of the pass with the big constants.

        Raises:
            PassError: the pass computed with one of them.
        """
        if self._tokens:
            output = replace_records(output, Tensor, self._untokened)
        if self._subject.constants == "files" or self._is_referenced:
            output = replace_records(output, Tensor, self._located)
        if not self._inputs or output.graph is None:
            return output
        graph, before = output.graph, self._before.graph or Graph()
        stated = {value.name for value in before.input}
        used, was_used = (_used(each) for each in (graph, before))
        kept = {name for name in self._inputs if name in used or name not in was_used}
        places = {each.name: place for place, each in enumerate(before.initializer)}
        constants = [*graph.initializer, *[self._located(each) for name, each in self._inputs.items() if name in kept]]
        return replace(output, graph=replace(
            graph,
            input=tuple([each for each in graph.input if each.name not in self._inputs or each.name in stated]),
            initializer=tuple(sorted(constants, key=lambda each: places.get(each.name, len(places)))),
        ))  # fmt: skip

    def _located(self, tensor: Tensor) -> Tensor:
        if not is_external(tensor):
            return tensor
        original = self._files.get(_range(tensor))
        if original is None and (data := self._written.get(_range(tensor))) is not None:
            raw = data if isinstance(data, bytes) else _Written(data)
            return replace(tensor, raw_data=raw, external_data=(), data_location=None)
        if original is None:
            raise PassError(f'returned the constant "{visible(tensor.name or "")}" in another file than the model has')
        return _like(original, tensor)

    def _untokened(self, tensor: Tensor) -> Tensor:
        original = self._tokens.get(_token_key(tensor))
        if original is None:
            return tensor
        same = _like(original, tensor)
        if tensor.data_type == original.data_type:
            return same
        data = original.raw_data
        if data is None:
            holder = Model(graph=Graph(initializer=(original,)))
            inside = internalize(holder, self.folder, allow_sparse=True).graph  # holes were accepted before
            data = inside.initializer[0].raw_data if inside is not None else None
        converted = _Converted(data or b"", self._subject)
        return replace(same, raw_data=converted, external_data=(), data_location=None)


class _Converted(Payload):
    """The elements of a constant as another dtype of half the size, converted while they are read."""

    __slots__ = ("_data", "_subject")

    def __init__(self, data: Data, subject: Pass) -> None:
        super().__init__(len(data) // 2)
        self._data = data
        self._subject = subject

    def chunks(self) -> Iterator[bytes]:
        """See `Payload.chunks`."""
        for piece in even_pieces(self._data):
            yield self._subject.converted(piece)

    def __repr__(self) -> str:
        return f"{self._data!r} {self._subject!r}"


class _Written(Payload):
    """The elements of a constant in a file that a pass wrote, which is open and has no name any more."""

    __slots__ = ("_data",)

    def __init__(self, data: Payload) -> None:
        super().__init__(len(data))
        self._data = data

    def chunks(self) -> Iterator[bytes]:
        """See `Payload.chunks`."""
        return self._data.chunks()

    def __repr__(self) -> str:
        return repr(self._data)


def _input(tensor: Tensor) -> ValueInfo:
    """Return an input with the type of a constant; a vector has an open size, since onnx looks for a shape in it."""
    value = input_for(tensor)
    if len(tensor.dims) != 1:
        return value
    shape = TensorShape(dim=(Dimension(),))
    return replace(value, type=Type(tensor_type=TensorType(elem_type=tensor.data_type, shape=shape)))


def _is_apart(tensor: Tensor) -> bool:
    """Whether a constant is big and in the file of its model."""
    return isinstance(tensor.raw_data, FileSlice) and len(tensor.raw_data) >= APART


def _is_big(tensor: Tensor) -> bool:
    return is_external(tensor) or _is_later(tensor)


def _is_later(tensor: Tensor) -> bool:
    """Whether an earlier pass has made a constant whose elements are read when the result is written."""
    return isinstance(tensor.raw_data, (_Converted, _Written))


def _token_of(number: int, tensor: Tensor, data_type: int) -> Tensor:
    """Return a tensor of 24 elements, which are the digits of a number: 2.0 and 3.0, or other values if not floats."""
    dtype = DTYPES.get(data_type)
    if dtype is None or dtype.field == "string_data" or dtype.bits % 8:
        raise PassError(f'cannot have the constant "{visible(tensor.name or "")}" without its elements')
    width = dtype.bits // 8
    zero = 0 if data_type == _BOOL else 0x40 << (dtype.bits - 8)
    one = {_FLOAT: 0x40400000, _FLOAT16: 0x4200}.get(data_type, zero + 1)
    digits = [one if number >> bit & 1 else zero for bit in range(_TOKEN_BITS - 2)] + [zero, one]
    raw = b"".join([each.to_bytes(width, "little") for each in digits])
    stored = with_storage(raw, data_type, dtype.field, _TOKEN_BITS)
    return Tensor(name=tensor.name, dims=tensor.dims, data_type=data_type, **stored)


def _token_key(tensor: Tensor) -> tuple[object, ...]:
    return (tensor.data_type, tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data,
            tensor.uint64_data)  # fmt: skip


def _range(tensor: Tensor) -> frozenset[tuple[str | None, str | None]]:
    return frozenset([(entry.key, entry.value) for entry in tensor.external_data])


def _like(original: Tensor, made: Tensor) -> Tensor:
    """Return a constant with the name, dtype and dims that a pass gave it."""
    fields = {"name": made.name, "data_type": made.data_type, "dims": made.dims}
    same = all(getattr(original, field) == value for field, value in fields.items())
    return original if same else replace(original, **fields)


def _foldable(model: Model) -> set[str]:
    """Return the names that nodes consume from which constant folding makes a constant."""
    scope = next(find_scopes(model))
    constants = constant_values(scope)
    nodes = [node for node in scope.graph.node if node.op_type not in _NOT_FOLDED]
    return {name for node in nodes if any([name and name in constants for name in node.output]) for name in node.input}


def _comparable(graph: Graph) -> set[str]:
    """Return the names of big constants of equal type, which optimizers read to find those with equal elements."""
    big = [each for each in graph.initializer if _is_big(each)]
    count = Counter([(each.data_type, each.dims) for each in big])
    return {each.name or "" for each in big if count[each.data_type, each.dims] > 1}


def _used(graph: Graph) -> set[str]:
    names = {value.name or "" for each in walk(graph, Graph) for value in each.output}
    return names.union(*[node.input for node in walk(graph, Node)])

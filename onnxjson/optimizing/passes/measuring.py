"""Passes that trade accuracy for size or speed: their input values, and their error, output by output.

onnxruntime has few kernels for float16 on processors. It computes the other operators in float32, and removes the
rounding between two of them, so that values that overflow on an accelerator do not overflow there. So results are
measured on a model that computes in float32 and rounds every value that would be float16 (`emulate`): each operator is
exact inside, its outputs are rounded, and the Casts of the model stay. All of this runs in the sandboxed process.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Self

import msgspec
from msgspec import Meta

from onnxjson.codecs import serde
from onnxjson.editing.parameters import Role, about
from onnxjson.model.display import visible
from onnxjson.model.document import Model, Tensor
from onnxjson.model.errors import FeedError, Finding, OnnxJsonError, WorkerError
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.optimizing.passes.declaration import Pass, graphs, proto_of, refill, remark, subgraphs
from onnxjson.running.comparisons import TOLERANCES, Comparison, Tolerance, compare_values, furthest
from onnxjson.running.engines import OpenModel, open_model
from onnxjson.running.input_files import data_sets, read_archive, read_data_set
from onnxjson.running.inputs import InputOptions, free_inputs, outputs_of
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.random_values import LADDER, NEAR, Spread
from onnxjson.running.tasks import Settings, Subject
from onnxjson.running.value_types import ALL_SIZES
from onnxjson.running.values import Value, dtype_of, leaves
from onnxjson.running.worker import Worker

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

SAMPLES: Final = 8

_SHOWN: Final = 8

_LONGEST: Final = 300

OFF: Final = Settings(level="off")
"""Session settings for measuring: no optimization, one operator at a time, one thread."""

Feed = Mapping[str, Value]

_WIDE: Final = "@wide"
"""Suffix of the name of a value that is rounded and float32."""
_HALF: Final = "@half"
_EXACT: Final = "@exact"
_DTYPE_ATTRIBUTES: Final = ("dtype", "to", "output_dtype")


class MeasuredPass(Pass, frozen=True, kw_only=True, eq=False):
    """Base of passes that change the results of a model; the error is measured and reported."""

    is_exact: ClassVar = False
    data: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Role("file"),
        about(
            "Values of inputs: .npz files, by name, or folders of test data; random if omitted. "
            "If all arrays of a .npz have one more dimension than the inputs, the first dimension counts samples."
        ),
    ] = ()
    samples: Annotated[int, about("Number of sets of random inputs.", ge=1)] = SAMPLES
    seed: Annotated[int, about("Seed of random inputs.", ge=0)] = 0
    dims: Annotated[
        dict[str, Annotated[int, Meta(ge=0)]],
        about("Sizes of dynamic dimensions, by name; others get sizes that the model accepts."),
    ] = msgspec.field(default_factory=dict)

    def reads(self) -> tuple[str, ...]:
        """See `Pass.reads`; a folder of test data may hold links."""
        paths = [Path(each).absolute() for each in self.data]
        return tuple([str(each) for path in paths for each in (path, *path.glob("**/*.pb"))])

    def with_dimensions(self, names: Mapping[str, str]) -> Self:
        return msgspec.structs.replace(self, dims={names.get(name, name): size for name, size in self.dims.items()})

    def measure(self, before: bytes, after: bytes) -> None:
        """See `Pass.measure`: the change in size and the error of each output. Errors while measuring are remarks."""
        saved, share = len(before) - len(after), abs(len(before) - len(after)) / max(len(before), 1)
        remark(f"{abs(saved):,} bytes {'saved' if saved >= 0 else 'more'} ({share:.0%})")
        try:
            measured = Comparing(self, before, after).run(rounded(after))
        except MemoryError:
            raise
        except Exception as error:
            remark(f"its error could not be measured: {one_line(error)}")
            return
        for line in cost_lines(measured):
            remark(line)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One output of two models, over all samples."""

    name: str
    dtypes: tuple[str, str]
    worst: Comparison
    lost: int = 0
    """Number of elements that are finite in the base and not in the target, over all samples."""


class Comparing:
    """A model before and after a pass, run on the same samples."""

    def __init__(self, subject: MeasuredPass, before: bytes, after: bytes) -> None:
        self._models = TwoModels(serde.parse(before).model, serde.parse(after).model)
        self._after = after
        self.feeds, self._base = samples(subject, self._models, before)

    def run(
        self, target: bytes | None = None, tolerances: Mapping[str, Tolerance] | None = None
    ) -> tuple[Measured, ...]:
        """Return the differences of the outputs.

        Args:
            target: model that runs instead of the model after the pass, with the same inputs and outputs.
        """
        runnable = _opened(target or self._after)
        given = [runnable.run(feed) for _, feed in self.feeds]
        measured = []
        for one, other in self._models.interface.outputs:
            pairs = [(base[one], values[other]) for base, values in zip(self._base, given, strict=True)]
            compared = [compare_values(*pair, tolerances or TOLERANCES) for pair in pairs]
            dtypes = dtype_of(pairs[0][0]), dtype_of(pairs[0][1])
            lost = sum([_lost(*pair) for pair in pairs])
            measured.append(Measured(name=one, dtypes=dtypes, worst=furthest(compared), lost=lost))
        return tuple(measured)


def samples(
    subject: MeasuredPass, models: TwoModels, before: bytes
) -> tuple[Sequence[tuple[Feed, Feed]], Sequence[Feed]]:
    """Return inputs for both models, with sizes that the first model accepts, and the outputs of that model."""
    given = [each for path in subject.data for each in _given(Path(path), models.base)]
    sets = given or [{} for _ in range(subject.samples)]
    model = _opened(before)
    problem: Exception | None = None
    for cycle in ALL_SIZES:
        feeds: list[tuple[Feed, Feed]] = []
        is_open = False
        try:
            outputs: list[Feed] = []
            with _InThisProcess() as worker:
                spreads: Sequence[Spread]
                for spreads in (NEAR, *[(spread,) for spread in LADDER]):
                    for number, values in enumerate(sets, len(feeds)):
                        inputs = models.inputs(InputOptions(dims=subject.dims), worker)
                        is_open = is_open or bool(inputs.shapes.open_dimensions())
                        spread = spreads[number % len(spreads)]
                        sizes = inputs.cycle_for(spread, cycle)
                        first, second = inputs.feeds(values, (subject.seed, number), spread=spread, cycle=sizes)
                        feeds.append((first, second))
                    outputs += [model.run(feed) for feed, _ in feeds[len(outputs) :]]
                    if given or not _untold(outputs):
                        break
            return feeds, outputs
        except MemoryError:
            raise
        except Exception as error:
            problem = problem or error
        if not is_open:
            break
    assert problem is not None
    raise problem


def _untold(outputs: Sequence[Feed]) -> list[str]:
    """Return the names of the outputs that are empty, or NaN or infinite everywhere, in all runs."""
    return [
        name
        for name in outputs[0]
        if not any(compare_values(each[name], each[name]).conclusive for each in outputs)
    ]  # fmt: skip


def _given(path: Path, model: Model) -> list[dict[str, Value]]:
    import numpy

    types = free_inputs(model)
    if path.is_dir():
        names = list(types.items()), list(outputs_of(model).items())
        return [read_data_set(folder, *names).inputs for folder in data_sets(path)]
    if path.suffix != ".npz":
        raise FeedError(f"{visible(str(path))} is not a .npz file and not a folder of test data")
    values = read_archive(path, types)
    tensors = [(name, value) for name, value in values.items() if isinstance(value, Tensor)]
    ranks = {name: len(type_.tensor_type.shape.dim) for name, type_ in types.items()
             if type_ and type_.tensor_type and type_.tensor_type.shape}  # fmt: skip
    if not tensors or any([ranks.get(name) != len(value.dims) - 1 for name, value in tensors]):
        return [values]
    arrays = {name: to_numpy(value) for name, value in tensors}
    if len({len(array) for array in arrays.values()}) != 1:
        raise FeedError(f"{visible(str(path))} has arrays of different numbers of samples")
    count = len(next(iter(arrays.values())))
    return [{name: from_numpy(numpy.asarray(array[place])) for name, array in arrays.items()} for place in range(count)]


def _opened(model: bytes) -> OpenModel:
    return open_model(Subject(model=model), OFF, one_line)


def _lost(base: Value, target: Value) -> int:
    import numpy

    count = 0
    for (_, one), (_, other) in zip(leaves(base), leaves(target), strict=False):
        arrays = to_numpy(one), to_numpy(other)
        if arrays[0].shape == arrays[1].shape and all([array.dtype != object for array in arrays]):
            finite = [numpy.isfinite(array.astype(numpy.complex128)) for array in arrays]
            count += int((finite[0] & ~finite[1]).sum())
    return count


def cost_lines(measured: Sequence[Measured]) -> list[str]:
    """Return a line with the error of each output."""
    lines = []
    for output in measured[:_SHOWN]:
        worst = output.worst
        dtype = output.dtypes[0] if output.dtypes[0] == output.dtypes[1] else " -> ".join(output.dtypes)
        if worst.problem is not None:
            lines.append(f"{visible(output.name)}: {worst.problem}")
            continue
        if not worst.conclusive:
            why = "NaN or infinite everywhere" if worst.elements else "it has no elements"
            lines.append(f"{visible(output.name)} ({dtype}): not compared: {why} on these values; `data` gives others")
            continue
        text = "the same" if worst.equal else f"largest error {worst.largest_absolute or 0:.3g}"
        if worst.largest_absolute and worst.scale:
            text += f", {worst.largest_absolute / worst.scale:.2g} of the largest value"
        if worst.cosine is not None and not worst.equal:
            text += f", cosine {worst.cosine:.6f}"
        if output.lost:
            text += f"; {output.lost:,} elements are no longer finite"
        lines.append(f"{visible(output.name)} ({dtype}): {text}")
    if len(measured) > _SHOWN:
        lines.append(f"and {len(measured) - _SHOWN:,} more outputs")
    return lines


def one_line(error: object) -> str:
    """Return an error, or a text of native code, on one line; of a long one start and end, where the cause is."""
    text = str(error) if isinstance(error, str | OnnxJsonError) else f"{type(error).__name__}: {error}"
    text = " ".join(text.split())
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 3]} ... {text[-_LONGEST:]}"
    return visible(text, 2 * _LONGEST)


def rounded(model: bytes) -> bytes:
    """Return a model that rounds all float16 as an accelerator does, if possible; see `emulate`."""
    try:
        return emulate(model)
    except CannotEmulateError as error:
        remark(f"float16 values are rounded as onnxruntime does on this processor: {error}")
        return model


class _InThisProcess(Worker):
    """Infers shapes in this process, which is sandboxed already."""

    def infer_types(self, model: bytes) -> tuple[bytes, tuple[Finding, ...]]:
        """See `Worker.infer_types`."""
        from onnx import shape_inference

        try:
            return bytes(shape_inference.infer_shapes(proto_of(model)).SerializeToString()), ()
        except Exception as error:
            raise WorkerError(one_line(error)) from error


class CannotEmulateError(Exception):
    """The model has a float16 value that is not a tensor, or has functions."""


def emulate(model: bytes) -> bytes:
    """Return the model that computes in float32; the same bytes if no value is float16.

    Inputs and outputs keep their types.
    """
    from onnx import shape_inference

    proto = proto_of(model)
    if proto.functions:
        raise CannotEmulateError("the model has functions")
    inferred = shape_inference.infer_shapes(proto)
    half = set(_half_values(inferred.graph))
    if not half:
        return model
    return bytes(_Emulation(proto, half).model.SerializeToString())


def _half_values(graph: "GraphProto") -> Iterator[str]:
    from onnx import TensorProto

    unknown: dict[str, NodeProto] = {}
    half: set[str] = set()
    for body in graphs(graph):
        half.update([tensor.name for tensor in body.initializer if tensor.data_type == TensorProto.FLOAT16])
        typed = {value.name for value in (*body.input, *body.output, *body.value_info) if value.HasField("type")}
        for value in (*body.input, *body.output, *body.value_info):
            if _is_half(value.type):
                half.add(value.name)
        for node in body.node:
            unknown.update({name: node for name in node.output if name and name not in typed})
    # Operators unknown to inference, such as those of onnxruntime, produce the type that they consume.
    for name, node in unknown.items():
        if any([given in half for given in node.input]):
            half.add(name)
    yield from half


def _is_half(declared: "TypeProto") -> bool:
    from onnx import TensorProto

    for form in ("sequence_type", "optional_type"):
        if declared.HasField(form) and _is_half(getattr(declared, form).elem_type):
            raise CannotEmulateError("the model has sequences of float16")
    return bool(declared.HasField("tensor_type") and declared.tensor_type.elem_type == TensorProto.FLOAT16)


class _Emulation:
    def __init__(self, model: "ModelProto", half: set[str]) -> None:
        from onnx import TensorProto

        self.model = model
        self._half = half
        self._half_type, self._float_type = TensorProto.FLOAT16, TensorProto.FLOAT
        graph = model.graph
        # An input that also has an initializer gets the value of the initializer.
        constants = {tensor.name for tensor in graph.initializer}
        kept = [value for value in graph.input if value.name not in constants]
        inputs = [value.name for value in kept if value.name in half]
        outputs = [value.name for value in graph.output if value.name in half]
        refill(graph.input, kept)
        self._widen_nodes(graph)
        nodes = [_cast(name, name + _WIDE, self._float_type) for name in inputs]
        nodes += [*graph.node, *[_cast(name + _WIDE, name, self._half_type) for name in outputs]]
        refill(graph.node, nodes)

    def _name(self, name: str) -> str:
        return name + _WIDE if name in self._half else name

    def _widen_nodes(self, graph: "GraphProto") -> None:
        del graph.value_info[:]
        for tensor in graph.initializer:
            tensor.name = self._name(tensor.name)
            _widen_tensor(tensor)
        refill(graph.node, [made for node in graph.node for made in self._widened(node)])

    def _widen_interface(self, values: "Sequence[ValueInfoProto]") -> None:
        for value in values:
            if value.name in self._half:
                value.name = self._name(value.name)
                value.type.tensor_type.elem_type = self._float_type

    def _widened(self, node: "NodeProto") -> "list[NodeProto]":
        for subgraph in subgraphs(node):
            self._widen_nodes(subgraph)
            self._widen_interface(subgraph.input)
            self._widen_interface(subgraph.output)
        node.input[:] = [self._name(name) for name in node.input]
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _widen_tensor(attribute.t)
            if attribute.name in _DTYPE_ATTRIBUTES and attribute.i == self._half_type:
                attribute.i = self._float_type
        widened = [node]
        for place, name in enumerate(node.output):
            if name in self._half:
                node.output[place] = name + _EXACT
                widened.append(_cast(name + _EXACT, name + _HALF, self._half_type))
                widened.append(_cast(name + _HALF, name + _WIDE, self._float_type))
        return widened


def _cast(source: str, output: str, to: int) -> "NodeProto":
    from onnx import helper

    return helper.make_node("Cast", [source], [output], name=f"{output}@cast", to=to)


def _widen_tensor(tensor: "TensorProto") -> None:
    import numpy
    from onnx import TensorProto, numpy_helper

    if tensor.data_type == TensorProto.FLOAT16:
        array = numpy_helper.to_array(tensor).astype(numpy.float32)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))

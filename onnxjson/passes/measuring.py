"""Passes that trade numbers for size or speed: the values that they need, and what they cost, output by output.

All of this runs in the guarded process, where a pass runs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Self

import msgspec
from msgspec import Meta

from onnxjson import serde
from onnxjson.display import visible
from onnxjson.document import Model, Tensor
from onnxjson.edits.parameters import Role
from onnxjson.errors import FeedError, OnnxJsonError, WorkerError
from onnxjson.passes.declaration import Pass
from onnxjson.passes.half_emulation import CannotEmulateError, emulated
from onnxjson.passes.stages import remark
from onnxjson.running.dimensions import SIZES
from onnxjson.running.engines import opened
from onnxjson.running.feeds import NEAR
from onnxjson.running.input_files import data_sets, read_archive, read_data_set
from onnxjson.running.inputs import Inputs, Wishes, free_inputs
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.model_run import outputs_of
from onnxjson.running.tasks import Settings, Subject
from onnxjson.running.tolerances import TOLERANCES, Comparison, Tolerance
from onnxjson.running.value_comparison import compare_values, dtype_of, furthest
from onnxjson.running.values import Value, leaves
from onnxjson.tensors import from_numpy, to_numpy
from onnxjson.worker import Worker

SAMPLES: Final = 8
"""Sets of made-up values if nobody says otherwise."""

_SHOWN: Final = 8
"""Outputs of which the error is told."""

_LONGEST: Final = 300

OFF: Final = Settings(level="off")
"""How models run that are measured: as they stand, one operator after the other, in one thread."""

Feed = Mapping[str, Value]


class MeasuredPass(Pass, frozen=True, kw_only=True, eq=False):
    """The base of passes after which a model gives other numbers; what that costs is measured and told."""

    is_exact: ClassVar = False

    data: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Role("file"),
        Meta(
            description="Values of inputs: .npz files, by names, or folders of test data; all made up if left out. "
            "Where all arrays of a .npz have one dimension more than the inputs, its first one counts samples."
        ),
    ] = ()
    samples: Annotated[int, Meta(ge=1, description="How many sets of values are made up.")] = SAMPLES
    seed: Annotated[int, Meta(ge=0, description="Where made-up values come from.")] = 0
    dims: Annotated[
        dict[str, Annotated[int, Meta(ge=0)]],
        Meta(description="Sizes of open dimensions, by name; others get some that the model takes."),
    ] = msgspec.field(default_factory=dict)

    def within(self, folder: Path) -> Self:
        """See `Pass.within`."""
        return msgspec.structs.replace(self, data=tuple([str(folder / each) for each in self.data]))

    def cost(self, before: bytes, after: bytes) -> None:
        """Say what each output lost, and what was won; nothing is raised where that cannot be known."""
        remark(won(before, after))
        try:
            found = Comparing(self, before, after).run(rounded(after))
        except MemoryError:
            raise
        except Exception as error:
            remark(f"what it costs is not known: {said(error)}")
            return
        for line in cost_lines(found):
            remark(line)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One output of two models, over all samples."""

    name: str
    dtypes: tuple[str, str]
    worst: Comparison
    """Of the sample in which it is furthest apart."""
    lost: int = 0
    """Elements that are finite in the base and not in the target, in all samples."""


class Comparing:
    """A model and what a pass made of it, run on the same samples.

    Args:
        subject: says where samples come from.
        before: serialised.
        after: serialised.

    Raises:
        FeedError: no values can be made up for an input.
        OnnxJsonError: a file of values cannot be read.
    """

    def __init__(self, subject: MeasuredPass, before: bytes, after: bytes) -> None:
        self._models = TwoModels(serde.parse(before).model, serde.parse(after).model)
        self._after = after
        self.feeds, self._base = samples(subject, self._models, before)

    def run(
        self, target: bytes | None = None, tolerances: Mapping[str, Tolerance] | None = None
    ) -> tuple[Measured, ...]:
        """How far the outputs are apart.

        Args:
            target: what runs in place of the model after, with the same inputs and outputs.
            tolerances: by name of a dtype.

        Raises:
            Exception: one of the models does not run.
        """
        given = _outputs(target or self._after, [feed for _, feed in self.feeds])
        found = []
        for one, other in self._models.interface.outputs:
            pairs = [(base[one], values[other]) for base, values in zip(self._base, given, strict=True)]
            compared = [compare_values(*pair, tolerances or TOLERANCES) for pair in pairs]
            dtypes = dtype_of(pairs[0][0]), dtype_of(pairs[0][1])
            lost = sum([_lost(*pair) for pair in pairs])
            found.append(Measured(name=one, dtypes=dtypes, worst=furthest(compared), lost=lost))
        return tuple(found)


class Samples(NamedTuple):
    """Values of the inputs of two models, and what the first one gives for them."""

    feeds: Sequence[tuple[Feed, Feed]]
    outputs: Sequence[Feed]


def samples(subject: MeasuredPass, models: TwoModels, before: bytes) -> Samples:
    """The values of the inputs of both models, with sizes of open dimensions that the first model takes.

    Raises:
        FeedError: no values can be made up for an input.
        OnnxJsonError: a file of values cannot be read.
        Exception: the first model does not run on any.
    """
    given = [each for path in subject.data for each in _given(Path(path), models.base)]
    sets = given or [{} for _ in range(subject.samples)]
    model = opened(Subject(model=before), OFF, said)
    problem: Exception | None = None
    for cycle in SIZES:
        found = []
        is_open = False
        with _InThisProcess() as worker:
            for number, values in enumerate(sets):
                inputs = Inputs(models.indices, models.interface.inputs, Wishes(dims=subject.dims), worker)
                checked = inputs.checked(values)
                is_open = is_open or bool(inputs.open_dimensions())
                spread = NEAR[number % len(NEAR)]
                first, second = inputs.feeds(checked, (subject.seed, number), spread=spread, cycle=cycle)
                found.append((first, second))
        try:
            return Samples(found, [model.run(feed) for feed, _ in found])
        except MemoryError:
            raise
        except Exception as error:
            problem = problem or error
        if not is_open:
            break
    assert problem is not None
    raise problem


def _given(path: Path, model: Model) -> list[dict[str, Value]]:
    import numpy

    types = free_inputs(model)
    if path.is_dir():
        names = list(types.items()), list(outputs_of(model).items())
        return [read_data_set(folder, *names).inputs for folder in data_sets(path)]
    if path.suffix != ".npz":
        raise FeedError(f"{visible(str(path))} is no .npz and no folder of test data")
    values = read_archive(path, types)
    tensors = [(name, value) for name, value in values.items() if isinstance(value, Tensor)]
    if not tensors or not all([_has_samples(value, types.get(name)) for name, value in tensors]):
        return [values]
    arrays = {name: to_numpy(value) for name, value in tensors}
    if len({len(array) for array in arrays.values()}) != 1:
        raise FeedError(f"{visible(str(path))} has arrays of different numbers of samples")
    count = len(next(iter(arrays.values())))
    return [{name: from_numpy(numpy.asarray(array[place])) for name, array in arrays.items()} for place in range(count)]


def _has_samples(tensor: Tensor, type_: Any) -> bool:
    shape = None if type_ is None or type_.tensor_type is None else type_.tensor_type.shape
    return shape is not None and len(tensor.dims) == len(shape.dim) + 1


def _outputs(model: bytes, feeds: Sequence[Feed]) -> list[dict[str, Value]]:
    open_model = opened(Subject(model=model), OFF, said)
    return [open_model.run(feed) for feed in feeds]


def _lost(base: Value, target: Value) -> int:
    import numpy

    count = 0
    for (_, one), (_, other) in zip(leaves(base), leaves(target), strict=False):
        arrays = to_numpy(one), to_numpy(other)
        if arrays[0].shape == arrays[1].shape and all([array.dtype != object for array in arrays]):
            finite = [numpy.isfinite(array.astype(numpy.complex128)) for array in arrays]
            count += int((finite[0] & ~finite[1]).sum())
    return count


def won(before: bytes, after: bytes) -> str:
    """How much smaller a model became."""
    count = len(before) - len(after)
    share = abs(count) / max(len(before), 1)
    return f"{count:,} bytes won ({share:.0%})" if count >= 0 else f"{-count:,} bytes more ({share:.0%})"


def cost_lines(found: Sequence[Measured]) -> list[str]:
    """What each output lost, a line for each."""
    lines = []
    for each in found[:_SHOWN]:
        worst = each.worst
        dtype = each.dtypes[0] if each.dtypes[0] == each.dtypes[1] else " -> ".join(each.dtypes)
        if worst.problem is not None:
            lines.append(f"{visible(each.name)}: {worst.problem}")
            continue
        text = "the same" if worst.equal else f"off by {worst.largest_absolute or 0:.3g} at most"
        if worst.largest_absolute and worst.scale:
            text += f", {worst.largest_absolute / worst.scale:.2g} of the largest"
        if worst.cosine is not None and not worst.equal:
            text += f", cosine {worst.cosine:.6f}"
        if each.lost:
            text += f"; {each.lost:,} elements are not finite any more"
        lines.append(f"{visible(each.name)} ({dtype}): {text}")
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN:,} outputs more")
    return lines


def said(error: object) -> str:
    """An error, or a text of native code, on one line."""
    text = str(error) if isinstance(error, str | OnnxJsonError) else f"{type(error).__name__}: {error}"
    return visible(" ".join(text.split()), _LONGEST)


def rounded(model: bytes) -> bytes:
    """A model that rounds all float16 as an accelerator does, as far as one can be made; see `half_emulation`."""
    try:
        return emulated(model)
    except CannotEmulateError as error:
        remark(f"float16 is computed as onnxruntime does it on this processor: {error}")
        return model


class _InThisProcess(Worker):
    """Infers shapes in this process, which is guarded already."""

    def infer_shapes(self, model: bytes) -> bytes:
        """See `Worker.infer_shapes`."""
        from onnx import ModelProto, shape_inference

        try:
            return bytes(shape_inference.infer_shapes(ModelProto.FromString(model)).SerializeToString())
        except Exception as error:
            raise WorkerError(said(error)) from error


__all__ = [
    "OFF",
    "SAMPLES",
    "Comparing",
    "Feed",
    "Measured",
    "MeasuredPass",
    "cost_lines",
    "rounded",
    "said",
    "samples",
    "won",
]

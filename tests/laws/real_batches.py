"""Law of set-batch-size on real models: a sample in a batch gives what it gives alone, or the node is named."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy
from numpy.typing import NDArray

import onnxjson
from onnxjson.editing.applying import apply
from onnxjson.editing.batch import SetBatchSize
from onnxjson.editing.type_relations import Dims, dims_of
from onnxjson.model.document import Model, Tensor
from onnxjson.model.errors import EditError, OnnxJsonError
from onnxjson.model.tensors import to_numpy
from onnxjson.running.inputs import free_inputs

SAMPLES: Final = 3
SIZES: Final = (64, 512, 48, 32, 8, 1, 256, 320, 1000, 16000)
"""Sizes of open dimensions that are tried until the model runs."""
_NAME: Final = "samples_of_the_law"
_REASON: Final = re.compile(r"/graph/node/\d+\S* \([^)]+\): \S")

Arrays = dict[str, NDArray[Any]]


class BatchResult(NamedTuple):
    """What set-batch-size does with a model."""

    verdict: Literal["accepted", "refused", "broken"]
    why: str
    """The refusal; or how a row differs, or which sizes were compared."""


def batch_law(path: Path, inputs: Mapping[str, int] | None = None) -> BatchResult:
    """Set the batch of a model to a name and to a number, and compare three samples in a batch with each alone.

    Args:
        path: the model.
        inputs: inputs with the batch, and the axis; by default those that set-batch-size assumes.
    """
    before = onnxjson.load(path)
    where = dict(inputs) if inputs is not None else None
    try:
        named = apply(before, SetBatchSize(size=_NAME, inputs=where))
    except EditError as error:
        return BatchResult("refused" if _REASON.search(str(error)) else "broken", str(error))
    try:
        sized = apply(before, SetBatchSize(size=SAMPLES, inputs=where))
        return _compared(before, named, sized)
    except OnnxJsonError as error:
        return BatchResult("broken", str(error))


def _compared(before: Model, named: Model, sized: Model) -> BatchResult:
    shapes = [{name: dims_of(each) or () for name, each in free_inputs(model).items()} for model in (before, named)]
    axes = {name: dims.index(_NAME) for name, dims in shapes[1].items() if _NAME in dims}
    first, axis = next(iter(axes.items()))
    size = shapes[0][first][axis]
    old = size if isinstance(size, int) else 1
    problem = ""
    for dims in _choices(shapes[0], axes):
        try:
            alone = [_run(before, {}, dims, 0)]
        except OnnxJsonError as error:
            problem = problem or str(error)
            continue
        shared = {name: value for name, value in alone[0][0].items() if name not in axes}
        alone += [_run(before, shared, dims, seed) for seed in range(1, SAMPLES)]
        rows = {name: [each[0][name].take([0], at) for each in alone] for name, at in axes.items()}
        together = shared | {name: numpy.concatenate(each, axes[name]) for name, each in rows.items()}
        for model in (named, sized):
            found = _run(model, together, {}, 0)[1]
            for name, value in found.items():
                if reason := _difference(value, [each[1][name] for each in alone], old):
                    return BatchResult("broken", f'"{name}" {reason}; open sizes {dims}')
        return BatchResult("accepted", f"{len(axes)} inputs, {len(found)} outputs, open sizes {dims}")
    return BatchResult("broken", f"the original runs with none of the sizes: {problem}")


def _choices(shapes: Mapping[str, Dims], axes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield sizes for the open dimensions: 1 for the batch, and others in turn."""
    places = [(name, at, each) for name, dims in shapes.items() for at, each in enumerate(dims)]
    names = {
        f"{name}:{at}" if each in (None, "?") else each: axes.get(name) == at
        for name, at, each in places
        if not isinstance(each, int)
    }
    for size in SIZES if not all(names.values()) else SIZES[:1]:
        yield {name: 1 if is_batch else size for name, is_batch in names.items()}


def _run(model: Model, inputs: Arrays, dims: Mapping[str, int], seed: int) -> tuple[Arrays, Arrays]:
    """Return the inputs and outputs of a run."""
    case = onnxjson.run(model, inputs, dims=dims, seed=seed).cases[0]
    given, made = (
        {name: to_numpy(each) for name, each in values.items() if isinstance(each, Tensor)}
        for values in (case.inputs, case.outputs)
    )
    return given, made


def _difference(together: NDArray[Any], alone: list[NDArray[Any]], old: int) -> str:
    """Return how an output of a batch differs from those of its samples; "" if each has what it has alone."""
    if together.ndim == alone[0].ndim + 1 and len(together) == SAMPLES:  # a Squeeze removes a batch of one
        alone = [each[None] for each in alone]
    if together.ndim != alone[0].ndim:
        return f"has the shape {together.shape} in a batch, and {alone[0].shape} alone"
    grown = [axis for axis in range(together.ndim) if together.shape[axis] != alone[0].shape[axis]]
    if not grown:
        is_same = all([_is_close(together, each) for each in alone])
        return "" if is_same else f"has the shape {together.shape} in a batch and alone"
    axis, rows = grown[0], alone[0].shape[grown[0]] // old
    if len(grown) > 1 or together.shape[axis] != SAMPLES * rows:
        return f"has the shape {together.shape} in a batch, and {alone[0].shape} alone"
    for outer in [each for each in range(1, rows + 1) if rows % each == 0]:
        pairs = zip(_parts(together, axis, outer, SAMPLES), alone, strict=True)
        if all([_is_close(row, _parts(each, axis, outer, old)[0]) for row, each in pairs]):
            return ""
    worst = [
        numpy.abs(a.astype(float) - b[0].astype(float)).max()
        for a, b in zip(_parts(together, axis, 1, SAMPLES), [_parts(each, axis, 1, old) for each in alone], strict=True)
    ]
    return f"differs in a batch by up to {max(worst):g}"


def _parts(array: NDArray[Any], axis: int, outer: int, samples: int) -> NDArray[Any]:
    """Return an array with the samples first; `outer` is the number of other elements before them on their axis."""
    dims = array.shape
    parted = array.reshape(*dims[:axis], outer, samples, dims[axis] // outer // samples, *dims[axis + 1 :])
    return numpy.moveaxis(parted, axis + 1, 0)


def _is_close(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if not numpy.issubdtype(one.dtype, numpy.floating):
        return bool(numpy.array_equal(one, other))
    scale = float(numpy.nan_to_num(numpy.abs(other), posinf=0).max(initial=0))
    return bool(numpy.allclose(one, other, rtol=1e-3, atol=1e-4 * scale, equal_nan=True))

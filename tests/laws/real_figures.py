"""The law of figures on real models: they are the own ones, add up, and formulas give what sizes give."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Final, NamedTuple

import onnx

import onnxjson
from onnxjson.checking.cost import Cost, GroupCost, cost_of
from onnxjson.checking.judging import Judged
from onnxjson.checking.shapes import with_input_names
from onnxjson.diffing.difference import diff_models
from onnxjson.editing.applying import apply
from onnxjson.editing.batch import SetBatchSize
from onnxjson.model.dimensions import names_of, substitute
from onnxjson.model.document import Model
from onnxjson.model.errors import EditError
from onnxjson.model.index import index_of
from onnxjson.optimizing.trace_records import size_of
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.summary import Place, summarise

BATCH: Final = 8
SIZES: Final = ((64,), (320,), (48, 320), (512,), (1,), (16000,))
"""Sizes of other open dimensions, in turn, that are tried until all shapes of the model are known."""

_NUMBERS: Final = ("macs", "flops", "activation_bytes", "peak_activation_bytes")
_FLOATS: Final = frozenset([1, 10, 11, 14, 15, 16, 17, 18, 19, 20, 23, 24])
_SMALL: Final = frozenset([2, 3, 6, 21, 22])
"""Integers of at most 8 bits, and of 32, as quantized operators use them."""


class FigureResult(NamedTuple):
    """What the figures of a model are."""

    cell: str
    broken: tuple[str, ...]


def figures_law(path: Path) -> FigureResult:
    """Compute the cost of a model as it is, for sizes, and for a batch with a name and with a size."""
    model = onnxjson.load(path)
    cost = cost_of(model, path.parent)
    broken = [*totals(path, cost), *sums(cost), *surfaces(model, path, cost)]
    cell, wrong = formulas(model, path.parent, cost)
    return FigureResult(cell, (*broken, *wrong))


def totals(path: Path, cost: Cost) -> Iterator[str]:
    """Count the constants with onnx alone, and yield what differs."""
    stored = [*_constants(onnx.load(path))]
    least, most = [
        [sum([each[place] for each in stored if each[0] in kinds]) for place in (1, 2)]
        for kinds in (_FLOATS, _FLOATS | _SMALL)
    ]
    for place, what, figure in ((0, "parameters", cost.parameters), (1, "bytes of weights", cost.weight_bytes)):
        if not least[place] <= figure <= most[place]:
            yield f"{figure} {what}, but {least[place]} to {most[place]} that may be those of weights"


def _constants(model: onnx.ModelProto) -> Iterator[tuple[int, int, int]]:
    """Yield the dtype, the number of elements and of bytes of each constant of a model without sparse ones."""
    pending: list[Any] = [model.graph, *model.functions]
    while pending:
        graph = pending.pop()
        tensors = [*getattr(graph, "initializer", ())]
        for node in graph.node:
            pending += [found for each in node.attribute for found in (*each.graphs, *([each.g] * (each.type == 5)))]
            for each in node.attribute if node.op_type == "Constant" else ():
                if each.name == "value":
                    tensors.append(each.t)
                elif each.name.startswith("value_float"):
                    yield 1, len(each.floats) or 1, 4 * (len(each.floats) or 1)
        for each in tensors:
            packed = onnx.TensorProto(int32_data=each.int32_data).ByteSize() if each.int32_data else 0
            stored = len(each.raw_data) + 4 * len(each.float_data) + 8 * len(each.double_data)
            yield each.data_type, math.prod(each.dims), stored + packed


def sums(cost: Cost) -> Iterator[str]:
    """Yield the groups and nodes that do not add up to the total."""
    names = {each.name for each in cost.scopes}
    outermost = [each for each in cost.scopes if not _parents(each.name) & names]
    groups: tuple[tuple[str, Sequence[GroupCost]], ...] = (("operators", cost.operators), ("scopes", outermost))
    for what, found in groups:
        total = sum([each.weight_bytes for each in found])
        if found and total != cost.weight_bytes:
            yield f"weights by {what}: {total} of {cost.weight_bytes} bytes"
    for field in ("macs", "flops"):
        by_field = {"operators": cost.operators, "outermost scopes": outermost, "nodes": cost.nodes}
        for what, parts in by_field.items():
            values = [getattr(each, field) for each in parts]
            if parts and all([isinstance(each, int) for each in values]) and sum(values) != getattr(cost, field):
                yield f"{field} of {what}: {sum(values)} of {getattr(cost, field)}"


def _parents(scope: str) -> set[str]:
    parts = scope.split("/")
    return {"/".join(parts[:end]) for end in range(1, len(parts))}


def surfaces(model: Model, path: Path, cost: Cost) -> Iterator[str]:
    """Yield where the weights are others: budgets of a gate, summaries, differences, traces."""
    shown = report(diff_models(model, model), "a", "b")
    gate = Judged(path.name, model, path.parent, 0, None).values
    summary = summarise(model, index_of(model), Place(path.name, "onnx", 0))
    found = {
        "gate": (gate["parameters"], gate["weight_bytes"]),
        "summary": (summary.weights.elements, summary.weights.bytes),
        "diff": (shown.parameters.after, shown.bytes.after),
        "trace": (size_of(model, 0).parameters, cost.weight_bytes),
    }
    for name, figures in found.items():
        if figures != (cost.parameters, cost.weight_bytes):
            yield f"{name}: {figures}, cost: {cost.parameters, cost.weight_bytes}"


def formulas(model: Model, folder: Path, cost: Cost) -> tuple[str, list[str]]:
    """Return what is known of the formulas of a model, and those that do not hold for sizes."""
    texts = [*dict.fromkeys(size for each in _shapes(model) for size in each if isinstance(size, str))]
    names = [*dict.fromkeys(name for text in texts for name in names_of(text))]
    if not names:
        return _of_batch(model, folder)
    batch = next((each[0] for each in _shapes(model) if each and isinstance(each[0], str)), "")
    others = [name for name in names if name != batch]
    sized = None
    for sizes in SIZES if others else SIZES[:1]:
        given = dict(zip(others, cycle(sizes), strict=False))
        point = given | ({batch: BATCH} if batch else {})
        sized = cost_of(model, folder, point, details=False)
        if not sized.partial:
            break
    assert sized is not None
    broken = list(_differences(cost, sized, point, "as it is"))
    is_batch_known = not cost.partial
    if batch in names and others:
        of_batch = cost_of(model, folder, given, details=False)
        broken += _differences(of_batch, sized, point, "with a batch")
        is_batch_known = not of_batch.partial
        if of_batch.partial and not sized.partial:
            broken.append(f"for {given} and {batch}: {of_batch.partial} are not all counted")
    if sized.partial:
        return f"unknown: {', '.join([each.operator for each in sized.unknown][:2])}", broken
    return "all known" if not cost.partial else "batch known" if is_batch_known else "sizes known", broken


def _of_batch(model: Model, folder: Path) -> tuple[str, list[str]]:
    try:
        changed = apply(model, SetBatchSize(size="N"))
        other = cost_of(apply(model, SetBatchSize(size=BATCH)), folder, details=False)
    except EditError:
        return "no names", []
    named, sized = [cost_of(changed, folder, dims, details=False) for dims in ({}, {"N": BATCH})]
    broken = list(_differences(named, sized, {"N": BATCH}, "with a batch"))
    if named.macs != 0 and (value_of(named.macs, {"N": BATCH}) != other.macs and not {*named.partial, *other.partial}):
        broken.append(f"MACs with a batch: {named.macs}, but {other.macs} of a batch of {BATCH}")
    if named.partial and not sized.partial:
        broken.append(f"for a batch: {named.partial} are not all counted")
    return "batch known" if not named.partial else "batch: in part", broken


def _shapes(model: Model) -> list[tuple[int | str | None, ...]]:
    graph = with_input_names(model).graph
    assert graph is not None
    constants = {each.name for each in graph.initializer}
    return [tuple(each.shape or ()) for each in graph.input if each.name not in constants]


def _differences(cost: Cost, sized: Cost, sizes: Mapping[str, int], what: str) -> Iterator[str]:
    """Yield the numbers of a cost that are others where the sizes are given."""
    for field in _NUMBERS:
        stated, expected = getattr(cost, field), getattr(sized, field)
        if field in (*cost.partial, *sized.partial) or stated is None or not isinstance(expected, int):
            continue
        if value_of(stated, sizes) != expected:
            yield f"{field} {what}: {stated} for {dict(sizes)}, but {expected}"


def value_of(formula: int | str, sizes: Mapping[str, int]) -> int | str:
    """Return the value of the text of a formula."""
    if isinstance(formula, int):
        return formula
    known = {f"size_{place}": size for place, size in enumerate(sizes.values())}
    for name, other in zip(sizes, known, strict=True):
        formula = formula.replace(f"({name})", other)
    return substitute(formula.replace("max(", "Max("), {**sizes, **known})

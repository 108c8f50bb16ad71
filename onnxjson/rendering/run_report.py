"""One model run, as data and as lines: inputs, outputs, time, profile."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import BOOL, COMPLEX_PARTS, STRING
from onnxjson.model.tensor_statistics import statistics, string_statistics
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.model.types import format_tensor_type
from onnxjson.rendering.tables import Line, Span, number, paragraph, shortened, table
from onnxjson.rendering.values import picked
from onnxjson.running.model_run import Case, Placement, RunResult
from onnxjson.running.values import Value, dtype_of, leaves

NODES: Final = 12
_WORDS: Final = 3
_WORD_LENGTH: Final = 16

_LEAVES: Final = 8


class TensorFigures(msgspec.Struct, frozen=True):
    """Statistics of a tensor; None for values without numbers, or without finite ones."""

    type: str
    elements: int
    minimum: float | int | None = None
    maximum: float | int | None = None
    mean: float | None = None
    nan: int = 0
    infinite: int = 0


def figures(tensor: Tensor) -> TensorFigures:
    """Return statistics of the elements of a tensor."""
    problem_text = format_tensor_type(tensor.data_type or 0, tensor.dims) or "?"
    if tensor.data_type == STRING:
        return TensorFigures(problem_text, string_statistics(tensor).elements)
    plain = tensor if tensor.raw_data is not None else from_numpy(to_numpy(tensor))
    found = statistics(plain)
    infinite = found.positive_infinity + found.negative_infinity
    return TensorFigures(problem_text, found.elements, found.minimum, found.maximum, found.mean, found.nan, infinite)


def run_data(result: RunResult, name: str) -> dict[str, Any]:
    """Return a run as data, onnxjson-run/1; times in seconds."""
    times = result.times
    return {
        "format": "onnxjson-run/1",
        "model": name,
        **picked(result, "engine providers"),
        "settings": picked(result.settings, "level threads parallel"),
        "sizes": result.sizes,
        "ok": not result.problem and not result.is_interrupted and all(case.is_fine for case in result.cases),
        **picked(result, "interrupted=is_interrupted problem opening_seconds"),
        "runs": [_case_data(case) for case in result.cases],
        "timed": {
            "runs": len(times),
            "p50": result.percentile(50),
            "p95": result.percentile(95),
            "least": min(times),
            "greatest": max(times),
            "mean": sum(times) / len(times),
        }
        if times
        else None,
        **picked(result, "profiled_runs profile placement"),
    }


def _case_data(case: Case) -> dict[str, Any]:
    figures = "max_abs=largest_absolute max_rel=largest_relative problem"
    return {
        **picked(case, "name problem seconds"),
        "inputs": _values_data(case.inputs),
        "outputs": _values_data(case.outputs),
        "expected": [
            {"name": each.name, "close": each.comparison.close, **picked(each.comparison, figures)}
            for each in case.expected
        ],
    }


def _values_data(values: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [
        {"name": name, "place": path, **msgspec.structs.asdict(found)}
        for name, value in values.items()
        for path, found in [(path, figures(tensor)) for path, tensor in leaves(value)]
        or [("", TensorFigures(dtype_of(value), 0))]
    ]


def run_lines(result: RunResult, name: str, width: int, *, every_node: bool = False) -> Iterator[Line]:
    """Yield a run as lines; `every_node`: all nodes of the profile instead of the slowest."""
    yield (Span(f"{visible(name, None)}: {_how(result)}", "title"),)
    sizes = ", ".join(f"{visible(each)}={size}" for each, size in result.sizes.items())
    yield (Span(f"opened in {seconds_text(result.opening_seconds)}" + (f"; {sizes}" if sizes else "")),)
    for case in result.cases:
        yield ()
        # The error at the end of the command gives the reason of a single failure.
        yield from _case_lines(case, width, is_alone=len(result.cases) == 1)
    if times := result.times:
        p50, p95 = result.percentile(50) or 0.0, result.percentile(95) or 0.0
        figures = (("p50", p50), ("p95", p95), ("least", min(times)), ("greatest", max(times)))
        yield ()
        text = ", ".join([f"{name} {seconds_text(seconds)}" for name, seconds in figures])
        yield Span(f"{counted(len(times), 'run')}", "title"), Span(f": {text}")
    if result.profile:
        yield ()
        yield from _profile_lines(result, width, every_node=every_node)
    if result.placement is not None:
        yield ()
        yield from _placement_lines(result.placement, width, every_node=every_node)
    if result.problem:
        yield from paragraph(result.problem, width, "bad")


def _how(result: RunResult) -> str:
    settings = result.settings
    if result.engine != "onnxruntime":
        return f"the {result.engine} evaluator of onnx"
    providers = ", ".join(each.removesuffix("ExecutionProvider") for each in result.providers)
    threads = "default threads" if not settings.threads else counted(settings.threads, "thread")
    parallel = f", {settings.parallel} operators at a time" if settings.parallel else ""
    return f"onnxruntime ({providers}), level {settings.level}, {threads}{parallel}"


def _case_lines(case: Case, width: int, *, is_alone: bool) -> Iterator[Line]:
    yield (Span(case.name, "title"),)
    for what, values in (("inputs", case.inputs), ("outputs", case.outputs)):
        if values:
            yield (Span(f"{what}", "quiet"),)
            for line in table(list(_rows(values)), width):
                yield (Span(line),)
    if case.problem:
        yield from paragraph("failed" if is_alone else f"failed: {case.problem}", width, "bad")
    for recorded in case.expected:
        comparison = recorded.comparison
        if comparison.close:
            within = "" if comparison.equal else f", within {number(comparison.largest_absolute or 0)}"
            yield (Span(f"{visible(recorded.name)}: as recorded{within}", "good"),)
        else:
            problem_text = comparison.problem or (
                f"{comparison.outside:,} of {comparison.elements:,} elements are not as recorded"
                + ("" if comparison.largest_absolute is None else f", by up to {comparison.largest_absolute:.3g}")
            )
            yield from paragraph(f"{visible(recorded.name)}: {problem_text}", width, "bad")


def _rows(values: Mapping[str, Value]) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        tensors = list(leaves(value))
        if not tensors:
            yield name, "nothing" if value is None else f"{dtype_of(value)}, empty", ""
        for path, tensor in tensors[:_LEAVES]:
            its = figures(tensor)
            yield name + path, its.type, _spread_text(tensor, its)
        if len(tensors) > _LEAVES:
            yield name, f"... {counted(len(tensors) - _LEAVES, 'tensor')} more", ""


def _spread_text(tensor: Tensor, numbers: TensorFigures) -> str:
    if tensor.data_type == STRING:
        words = [each.decode("utf-8", "surrogateescape") for each in tensor.string_data[:_WORDS]]
        more = ["..."] if len(tensor.string_data) > _WORDS else []
        return ", ".join([f'"{shortened(visible(word), _WORD_LENGTH)}"' for word in words] + more)
    if tensor.data_type == BOOL and numbers.mean is not None:
        return f"{round(numbers.mean * numbers.elements):,} of {numbers.elements:,} true"
    parts = []
    if numbers.minimum is not None and numbers.maximum is not None:
        ends = f"{_short(numbers.minimum)} .. {_short(numbers.maximum)}"
        span = number(numbers.minimum) if numbers.minimum == numbers.maximum else ends
        parts.append(("magnitude " if tensor.data_type in COMPLEX_PARTS else "") + span)
    if numbers.mean is not None and numbers.minimum != numbers.maximum:
        parts.append(f"mean {_short(numbers.mean)}")
    parts += [f"{count:,} {what}" for count, what in ((numbers.nan, "NaN"), (numbers.infinite, "infinite")) if count]
    return ", ".join(parts)


def _short(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) and abs(value) < 10**12 else f"{value:.4g}"


def seconds_text(seconds: float) -> str:
    """Format seconds: ``3.42 ms``."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1000:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def _placement_lines(placement: Placement, width: int, *, every_node: bool) -> Iterator[Line]:
    yield (Span("placement", "title"),)
    for provider, count in placement.providers.items():
        yield (Span(f"  {counted(count, 'node')} on {provider}"),)
    added = sum(not each.origins for each in placement.nodes)
    yield (Span(f"  {counted(placement.cuts, 'value')} from one provider to another"),)
    joined = sum(len(each.origins) > 1 for each in placement.nodes)
    text = f"removed {placement.removed:,} nodes, joined several to each of {joined:,}, and added {added:,}"
    yield (Span(f"  the basic optimizations {text}", "quiet"),)
    if placement.kept_off:
        off = ", ".join([f"{visible(name)} {count}" for name, count in placement.kept_off.items()])
        yield from paragraph(f"not on the first provider: {off}", width, "quiet")
    for each in placement.nodes if every_node else ():
        of = f"  of {listed(each.origins)}" if len(each.origins) > 1 else ""
        yield (Span(f"  {each.provider}  {visible(each.operator)} {visible(each.name)}{of}"),)


def _profile_lines(result: RunResult, width: int, *, every_node: bool) -> Iterator[Line]:
    total = sum(each.seconds for each in result.profile) or 1.0
    shown = result.profile if every_node else result.profile[:NODES]
    runs = max(result.profiled_runs, 1)
    rows: list[Sequence[str]] = [("node", "operator", "share", "a run", "calls")]
    for name, operator, seconds, calls in [(each.name, each.operator, each.seconds, each.calls) for each in shown]:
        rows.append((name, operator, f"{seconds / total:.1%}", seconds_text(seconds / runs), f"{calls:,}"))
    title = f"profile of {counted(result.profiled_runs, 'run')}: {counted(len(result.profile), 'node')}"
    yield (Span(f"{title}, {seconds_text(total / runs)} a run", "title"),)
    lines = table(rows, width, right=(2, 3, 4))
    yield (Span(lines[0], "quiet"),)
    for line in lines[1:]:
        yield (Span(line),)
    if len(shown) < len(result.profile):
        rest = sum(each.seconds for each in result.profile[len(shown) :]) / total
        left = len(result.profile) - len(shown)
        yield (Span(f"  {left:,} more, {rest:.1%}; --verbose shows them", "quiet"),)

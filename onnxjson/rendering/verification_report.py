"""Verification of two models as data and as lines, with the nodes where they diverge."""

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from onnxjson.model.display import counted, listed, visible
from onnxjson.rendering.tables import Line, Span, paragraph, table
from onnxjson.rendering.values import picked
from onnxjson.running.comparisons import EXACT, Comparison, Tolerance
from onnxjson.running.locating import Divergence, Location
from onnxjson.running.verdicts import OutputResult, Verification

_PROBLEMS: Final = 3
_DIGITS: Final = re.compile(r"[0-9]+")

_NODES: Final = 6


def verification_data(
    verification: Verification, base: str, target: str, location: Location | None = None
) -> dict[str, Any]:
    """Return the result as data, onnxjson-verification/1."""
    data: dict[str, Any] = {
        "format": "onnxjson-verification/1",
        "base": base,
        "target": target,
        "equal": verification.equal,
        "runs": len(verification.runs),
        **picked(verification, "failed not_compared=uncompared interrupted=is_interrupted engines"),
        "outputs": [_output_data(each) for each in verification.outputs],
        "each_run": [picked(run, "name sizes verdict problem") for run in verification.runs],
        "notes": verification.notes,
    }
    if location is not None:
        names = "base target nodes target_nodes lines value constants lost_constants=lost error_before=before"
        places = [picked(each, names) | _figures_data(each.comparison) for each in location.places]
        data["location"] = picked(location, "run compared pairs problem") | {"places": places}
    return data


def _output_data(output: OutputResult) -> dict[str, Any]:
    return {
        **picked(output, "name target_name dtype runs=compared failed"),
        **_figures_data(output.worst),
        "worst_run": output.worst_run,
        "tolerance": picked(output.tolerance, "relative absolute of_scale"),
    }


def _figures_data(comparison: Comparison | None) -> dict[str, Any]:
    figures = picked(
        comparison or Comparison(elements=0),
        "elements unequal outside stray nonfinite max_abs=largest_absolute max_rel=largest_relative "
        "max_ulp=largest_ulp cosine worst problem",
    )
    return figures if comparison is not None else dict.fromkeys(figures)


def verification_lines(
    verification: Verification, base: str, target: str, width: int, location: Location | None = None
) -> Iterator[Line]:
    """Yield the result as lines of `width` columns."""
    yield (Span(f"{visible(base, None)} and {visible(target, None)}", "title"),)
    yield (_headline(verification),)
    if sizes := [f"{visible(name)}={','.join(map(str, tried))}" for name, tried in verification.sizes.items()]:
        yield (Span(", ".join(sizes), "quiet"),)
    yield ()
    yield from _output_lines(verification, width)
    yield from _problem_lines(verification, width)
    for note in verification.notes:
        yield from paragraph(f"note: {note}", width, "quiet")
    if location is not None:
        yield ()
        yield from location_lines(location, width)


def _headline(verification: Verification) -> Span:
    runs = len(verification.runs)
    if not runs:
        return Span("interrupted before the first run", "bad")
    if verification.failed:
        share = f"{verification.failed:,} of {counted(runs, 'run')}"
        is_compared = not any(run.problem for run in verification.runs)
        return Span(f"outputs differ in {share}" if is_compared else f"{share} failed", "bad")
    missing = [each.name for each in verification.outputs if each.target_name is None]
    if missing:
        return Span(f"the target has no output {visible(missing[0])!r}", "bad")
    if verification.doubt:
        return Span(f"{verification.doubt} in {counted(runs, 'run')}", "bad")
    if all(run.verdict == "equal" for run in verification.runs):
        return Span(f"the same values in {runs:,} of {counted(runs, 'run')}", "good")
    limits = listed(list(dict.fromkeys([tolerance_text(each.tolerance) for each in verification.outputs])), 1)
    return Span(f"equal within the tolerance ({limits}) in {runs:,} of {counted(runs, 'run')}", "good")


def _problem_lines(verification: Verification, width: int) -> Iterator[Line]:
    """Yield why runs failed; reasons that differ in numbers only are merged."""
    groups: dict[str, list[int]] = {}
    for number, run in enumerate(verification.runs):
        if run.problem:
            groups.setdefault(_DIGITS.sub("#", run.problem), []).append(number)
    for numbers in list(groups.values())[:_PROBLEMS]:
        run = verification.runs[numbers[0]]
        sizes = ", ".join(f"{visible(name)}={size}" for name, size in run.sizes.items())
        name = f"{run.name} ({sizes})" if sizes else run.name
        more = f", and {counted(len(numbers) - 1, 'more run')} like it" if len(numbers) > 1 else ""
        yield from paragraph(f"run {numbers[0]}, {name}{more}: {run.problem}", width, "bad")
    if len(groups) > _PROBLEMS:
        yield (Span(f"... and {counted(len(groups) - _PROBLEMS, 'other reason')}", "bad"),)


def _output_lines(verification: Verification, width: int) -> Iterator[Line]:
    rows: list[tuple[str, ...]] = [("output", "dtype", "failed", "max abs", "max rel", "ULP", "cosine")]
    rows += [_row(each) for each in verification.outputs]
    lines = table(rows, width, right=(2, 3, 4, 5, 6))
    if not verification.outputs:
        return
    yield (Span(lines[0], "quiet"),)
    for output, line in zip(verification.outputs, lines[1:], strict=True):
        bad = output.failed or not output.compared
        yield (Span(line, "bad" if bad else "plain"),)
        worst = output.worst
        if worst is not None and output.failed:
            yield from paragraph(_worst_text(output, worst), width, "plain", indent=4)


def _row(output: OutputResult) -> tuple[str, ...]:
    worst = output.worst
    if output.target_name is None:
        return output.name, "missing", "", "", "", "", ""
    name = output.name if output.target_name == output.name else f"{output.name} = {output.target_name}"
    if worst is None or not output.compared:
        return name, "not compared", "", "", "", "", ""
    ulp, cosine = worst.largest_ulp, worst.cosine
    # Rounded down, so that values below 1 are not shown as 1.
    floor = None if cosine is None else math.floor(cosine * 1e6) / 1e6 if cosine < 1 - 1e-12 else 1.0
    return (
        name,
        output.dtype,
        f"{output.failed:,} of {output.compared:,}",
        _short(worst.largest_absolute),
        "-" if worst.largest_absolute and not worst.largest_relative else _short(worst.largest_relative),
        "-" if ulp is None else f"{ulp:,}" if ulp < 10**6 else f"{ulp:.1e}",
        "-" if floor is None else f"{floor:.6f}",
    )


def _short(value: float | None) -> str:
    return "-" if value is None else "0" if value == 0 else f"{value:.2g}"


def _worst_text(output: OutputResult, worst: Comparison) -> str:
    run = "" if output.worst_run is None else f" of run {output.worst_run}"
    if worst.problem is not None:
        return f"{worst.problem}, in run {output.worst_run}"
    place = "" if worst.worst is None else f"{list(worst.worst)}{run}"
    share = f"{worst.outside:,} of {worst.elements:,} elements"
    if worst.nonfinite and worst.nonfinite == worst.outside:
        return f"{share} are NaN or infinite in only one model, first at {place}"
    others = f", {worst.nonfinite:,} of them NaN or infinite in only one model" if worst.nonfinite else ""
    where = f", {'first' if worst.nonfinite else 'most'} at {place}" if place else ""
    if output.tolerance == EXACT:
        return f"{share} differ, but must be equal{others}{where}"
    return f"{share} differ by more than {tolerance_text(output.tolerance)}{others}{where}"


def tolerance_text(tolerance: Tolerance) -> str:
    """Return a tolerance as text."""
    limits = (tolerance.relative, "their value"), (tolerance.of_scale, "the largest value")
    texts = [f"{value * 100:g} % of {of}" for value, of in limits if value]
    return " plus ".join([*texts, *([f"{tolerance.absolute:g}"] if tolerance.absolute else [])]) or "nothing"


def location_lines(location: Location, width: int) -> Iterator[Line]:
    """Yield where the values diverge, as lines."""
    how = f"{location.compared:,} of {counted(location.pairs, 'pair')} of values inside compared, on {location.run}"
    if not location.places:
        yield from paragraph(location.reshaped or "no node found where the values diverge", width, "bad")
        yield (Span(how, "quiet"),)
    else:
        yield (Span("the values diverge at", "title"),)
        for place in location.places:
            yield from _place_lines(place, width)
        yield (Span(how, "quiet"),)
    if location.problem:
        yield from paragraph(location.problem, width, "bad")


def _place_lines(place: Divergence, width: int) -> Iterator[Line]:
    several = len(place.nodes) > 1
    if several:
        yield (Span(f"  one of these {len(place.nodes):,} nodes, the likeliest first", "quiet"),)
    for number, (node, address) in enumerate(zip(place.nodes[:_NODES], place.base, strict=False)):
        text = f"  {node}  @{address}"
        yield (Span(text, "plain" if number else "bad"),)
    if len(place.nodes) > _NODES:
        yield (Span(f"  ... {counted(len(place.nodes) - _NODES, 'node')} more", "quiet"),)
    for line in place.lines[:_NODES]:
        yield from paragraph(f"in the line: {line}", width, "plain", indent=4)
    if place.target:
        named = zip(place.target_nodes, place.target, strict=True)
        there = ", ".join([f"{node}  @{each}" for node, each in itertools.islice(named, _NODES)])
        yield from paragraph(f"in the target: {there}", width, "plain", indent=4)
    names = [visible(one) if one == other else f"{visible(one)} -> {visible(other)}" for one, other in place.constants]
    texts = [f"constant {name} has different elements" for name in names[:_NODES]]
    texts += [f"constant {visible(name)} is missing in the target" for name in place.lost[:_NODES]]
    comparison = place.comparison
    apart = f"{comparison.outside:,} of {comparison.elements:,} elements of {visible(place.value[0])} differ"
    if comparison.largest_absolute is not None:
        apart += f", by up to {comparison.largest_absolute:.3g}; the largest value is {comparison.scale or 0:.3g}"
    for text in [*texts, apart]:
        yield from paragraph(text, width, "plain", indent=4)
    before = "its inputs are the same" if not place.before else (
        f"its inputs differ by at most {place.before:.1g} of the largest element"
    )  # fmt: skip
    if several:
        before += "; nothing between these nodes has a counterpart to compare"
    yield from paragraph(before, width, "quiet", indent=4)

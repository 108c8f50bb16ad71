"""The figures as Markdown tables."""

import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from tests.benchmarks.cases import COPYING, HASHING, Comparison
from tests.benchmarks.measuring import Figures
from tests.benchmarks.rows import Goal
from tests.benchmarks.tools import OURS, TOOLS, YARDSTICK

PACKAGES: Final = ("onnxjson", "onnx", "protobuf", "numpy", "msgspec", "orjson", "pybase64", "onnx2json", "json2onnx")


@dataclass
class Results:
    """Everything that was measured; what was not asked for is empty."""

    comparisons: list[Comparison] = field(default_factory=list)
    objects: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    start: dict[str, Figures] = field(default_factory=dict)
    replaced: dict[str, dict[str, Figures]] = field(default_factory=dict)
    apart: dict[str, Figures] = field(default_factory=dict)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    rows: list[Goal] = field(default_factory=list)


def report(results: Results, *, goals: bool) -> str:
    """All tables; `goals` adds what onnxjson is to reach, which makes sense for models of full size."""
    parts = [_versions()]
    if results.comparisons:
        parts.append(_comparisons(results.comparisons))
    if results.objects:
        parts.append(_objects(results.objects))
    if results.start:
        rows = [[name, *_time(figures), _megabytes(figures)] for name, figures in results.start.items()]
        parts.append(table("Start of a process", ["process", "s", "cpu s", "peak MB"], rows))
    if results.replaced:
        parts.append(_replaced(results.replaced))
    if results.apart:
        rows = [[name, *_time(figures), _megabytes(figures)] for name, figures in results.apart.items()]
        parts.append(table("Weights apart, and show", ["process", "s", "cpu s", "peak MB"], rows))
    if results.sizes:
        parts.append(_sizes(results.sizes))
    if goals:
        found = [(*row, "")[:5] for row in _goals(results)] + [tuple(row.cells) for row in results.rows]
        parts.append(table("Goals", ["what", "wanted", "measured", "reached", "beside"], found))
    return "\n\n".join(parts) + "\n"


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up in plain text too."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    ruler = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([f"## {title}", "", line(head), ruler, *map(line, rows)])


def _comparisons(comparisons: list[Comparison]) -> str:
    head = ["model", "tool", "to text: s", "cpu s", "x ours", "peak MB", "ours /"]
    head += ["to .onnx: s", "cpu s", "x ours", "peak MB", "ours /", "text MB", "runs", "same bytes back"]
    rows = []
    for comparison in comparisons:
        title = f"{comparison.title} ({comparison.bytes / 1e6:.1f} MB)"
        for tool in TOOLS:
            to_text, to_onnx = comparison.to_text[tool.name], comparison.to_onnx[tool.name]
            ways = [
                cell
                for figures, ours in (
                    (to_text, comparison.to_text[OURS.name]),
                    (to_onnx, comparison.to_onnx[OURS.name]),
                )
                for cell in (*_time(figures), *_beside(figures, ours))
            ]
            written = comparison.text_bytes.get(tool.name)
            back = {True: "yes", False: "no", None: ""}[comparison.comes_back.get(tool.name)]
            runs = str(len(to_onnx.runs or to_text.runs))
            rows.append([title, tool.name, *ways, f"{written / 1e6:.1f}" if written else "", runs, back])
            title = ""
    reasons = [
        f"{comparison.title}, {name}: {figures.skipped}"
        for comparison in comparisons
        for way in (comparison.to_text, comparison.to_onnx)
        for name, figures in way.items()
        if figures.skipped
    ]
    return "\n".join([table("File to file, whole processes", head, rows), *(f"\nskipped: {line}" for line in reasons)])


def _time(figures: Figures) -> tuple[str, str]:
    """Seconds by the clock and of the processor."""
    return (f"{figures.seconds:.3f}", f"{figures.cpu_seconds:.3f}") if figures.runs else ("skipped", "")


def _megabytes(figures: Figures) -> str:
    return f"{figures.peak_bytes / 1e6:.0f}" if figures.runs else ""


def _beside(figures: Figures, ours: Figures) -> tuple[str, str, str]:
    """How many times our time it is, its peak, and the part of that peak that is ours."""
    if figures is ours or not (figures.runs and ours.runs):
        return "", _megabytes(figures), ""
    times, part = figures.seconds / ours.seconds, ours.peak_bytes / figures.peak_bytes
    return f"{times:.1f}", _megabytes(figures), f"{part:.2f}"


def _median(runs: list[dict[str, float]], way: str) -> float:
    return statistics.median(run[way] for run in runs)


def _objects(objects: dict[str, list[dict[str, float]]]) -> str:
    ours = objects[OURS.name]
    rows = []
    for name, runs in objects.items():
        cells = [name]
        for way in ("to_text", "to_onnx"):
            seconds = _median(runs, way)
            cells += [f"{seconds:.3f}", f"{seconds / _median(ours, way):.1f}" if runs is not ours else ""]
        rows.append([*cells, "yes" if all(run["same"] for run in runs) else "no"])
    head = ["tool", "ModelProto to text: s", "x ours", "text to ModelProto: s", "x ours", "same message back"]
    return table("The same nodes in one process", head, rows)


def _replaced(replaced: dict[str, dict[str, Figures]]) -> str:
    rows = []
    for title, ways in replaced.items():
        new, existing = ways["new"], ways["existing"]
        share = f"{1 - new.seconds / existing.seconds:.0%}" if new.runs and existing.runs else ""
        rows.append([title, *_time(new), *_time(existing), share, _megabytes(new), _megabytes(existing)])
    head = [
        "onnxjson convert",
        "new file: s",
        "cpu s",
        "existing file: s",
        "cpu s",
        "verification",
        "new: peak MB",
        "existing: peak MB",
    ]
    return table("A file that is there is replaced", head, rows)


def _sizes(sizes: dict[str, dict[str, int]]) -> str:
    rows = [
        [
            name,
            str(size["lines"]),
            str(size["proto_lines"]),
            f"{size['lines'] / size['proto_lines']:.2f}",
            f"{size['bytes'] / size['proto_bytes']:.2f}",
            f"{size['one_line']} of {size['changed']}",
        ]
        for name, size in sizes.items()
    ]
    head = ["model", "lines", "proto-JSON lines", "ours /", "bytes, ours /", "one attribute changed is one line"]
    return table("Text size", head, rows)


TIMES_GOALS: Final = {
    "nodes-100k": (12.0, 11.0),
    "weights": (5.0, 5.0),
    "torchscript": (6.0, 6.0),
    "dynamo": (6.0, 6.0),
    "distinct": (3.5, 3.5),
}
"""How many times as long json_format is to take, to text and back, by case."""

PEAK_GOALS: Final = {"nodes-100k": 0.25, "weights": 0.2}
"""The part of json_format's peak memory to stay within, both ways, by case."""

OBJECTS_GOAL: Final = 10.0
DIGESTS_GOAL: Final = 1.3
BLOBS_GOAL: Final = 1.5
REPLACING_GOAL: Final = 1.3
SHOW_SECONDS: Final = 2.0
LINES_GOAL: Final = 1 / 3


def _goals(results: Results) -> Iterable[list[str]]:
    for comparison in results.comparisons:
        yield from _goals_of(comparison)
    for way, title in (("to_text", "ModelProto to text"), ("to_onnx", "text to ModelProto")):
        if results.objects:
            times = _median(results.objects[YARDSTICK.name], way) / _median(results.objects[OURS.name], way)
            yield _at_least(f"{title}, json_format / ours", OBJECTS_GOAL, times)
    for title, ways in results.replaced.items():
        if ways["new"].runs and ways["existing"].runs:
            part = ways["existing"].seconds / ways["new"].seconds
            yield _at_most(f"{title}: seconds, existing file / new", REPLACING_GOAL, part)
    if results.apart:
        yield from _goals_apart(results.apart)
    for name, size in results.sizes.items():
        yield _at_most(f"{name}: lines, ours / proto-JSON", LINES_GOAL, size["lines"] / size["proto_lines"])


def _goals_apart(apart: dict[str, Figures]) -> Iterable[list[str]]:
    digests = apart["to digests"].seconds / apart[HASHING].seconds
    yield _at_most("weights to digests: seconds, ours / one SHA-256 of the file", DIGESTS_GOAL, digests)
    plain = 2 * apart[COPYING].seconds + apart[HASHING].seconds
    yield _at_most(
        "weights to blobs: seconds, ours / (two copies and a hash)", BLOBS_GOAL, apart["to blobs"].seconds / plain
    )
    yield _at_most("show 100,000 nodes: s", SHOW_SECONDS, apart["show 100,000 nodes"].seconds)


def _goals_of(comparison: Comparison) -> Iterable[list[str]]:
    name = comparison.case.name
    for number, (title, way) in enumerate((("to text", comparison.to_text), ("to .onnx", comparison.to_onnx))):
        ours, yardstick, text_format = way[OURS.name], way[YARDSTICK.name], way[TOOLS[-1].name]
        if not ours.runs:
            yield [f"{name} {title}", "to work", ours.skipped, "no"]
            continue
        if name in TIMES_GOALS and yardstick.runs:
            goal, times = TIMES_GOALS[name][number], yardstick.seconds / ours.seconds
            row = _at_least(f"{name} {title}: seconds, json_format / ours", goal, times)
            yield [*row, _beside_cpu(ours, yardstick)]
        if name in PEAK_GOALS and yardstick.runs:
            goal, part = PEAK_GOALS[name], ours.peak_bytes / yardstick.peak_bytes
            yield _at_most(f"{name} {title}: peak memory, ours / json_format", goal, part)
        if name == "nodes-100k" and text_format.runs:
            times = text_format.seconds / ours.seconds
            yield _at_least(f"{name} {title}: seconds, onnx.printer and parser / ours", 1.0, times)


def _beside_cpu(ours: Figures, other: Figures) -> str:
    return f"cpu {other.cpu_seconds:.2f} / {ours.cpu_seconds:.2f} s = {other.cpu_seconds / ours.cpu_seconds:.1f}"


def _at_least(what: str, goal: float, measured: float) -> list[str]:
    return [what, f"at least {goal:g}", f"{measured:.1f}", "yes" if measured >= goal else "no"]


def _at_most(what: str, goal: float, measured: float) -> list[str]:
    return [what, f"at most {goal:.2g}", f"{measured:.3f}", "yes" if measured <= goal else "no"]

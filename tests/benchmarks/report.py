"""The figures as Markdown tables."""

import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from tests.benchmarks.cases import Comparison, elapsed
from tests.benchmarks.measuring import Figures
from tests.benchmarks.rows import Goal
from tests.benchmarks.tools import OURS, TOOLS, YARDSTICK

PACKAGES: Final = ("onnxjson", "onnx", "protobuf", "numpy", "msgspec", "orjson", "pybase64", "onnx2json", "json2onnx")


@dataclass
class Results:
    """Everything that was measured; what was not asked for is empty."""

    comparisons: list[Comparison] = field(default_factory=list)
    replaced: dict[str, dict[str, Figures]] = field(default_factory=dict)
    rows: list[Goal] = field(default_factory=list)


def report(results: Results, *, goals: bool, figures: bool = True) -> str:
    """The tables: of all `figures`, and of the `goals`, which make sense for models of full size."""
    parts = [_versions(), *(_tables(results) if figures else ())]
    if goals:
        found = [goal.cells for goal in (*_goals(results), *results.rows)]
        parts.append(table("Goals", ["what", "wanted", "by the clock", "by cpu", "reached", "beside"], found))
    clock, cpu = elapsed()
    return "\n\n".join([*parts, f"{clock:.0f} s by the clock, {cpu:.0f} s of the processor"]) + "\n"


def _tables(results: Results) -> list[str]:
    parts = []
    if results.comparisons:
        parts.append(_comparisons(results.comparisons))
    if results.replaced:
        parts.append(_replaced(results.replaced))
    return parts


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
        for tool in [each for each in TOOLS if each.name in comparison.to_text]:
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


def _replaced(replaced: dict[str, dict[str, Figures]]) -> str:
    rows = []
    for title, ways in replaced.items():
        new, existing = ways["new"], ways["existing"]
        share = f"{1 - new.seconds / existing.seconds:.0%}" if new.runs and existing.runs else ""
        rows.append([title, *_time(new), *_time(existing), share, _megabytes(new), _megabytes(existing)])
    head = [
        "onnxjson convert", "new file: s", "cpu s", "existing file: s", "cpu s", "verification", "new: peak MB",
        "existing: peak MB",
    ]  # fmt: skip
    return table("A file that is there is replaced", head, rows)


TIMES_GOALS: Final = {"nodes-100k": (12.0, 11.0), "nodes-1k": (1.5, 1.5), "weights": (5.0, 5.0)}
"""How many times as long json_format is to take, to text and back, by case."""

REPLACING_GOAL: Final = 1.3


def _goals(results: Results) -> Iterator[Goal]:
    for comparison in results.comparisons:
        yield from _goals_of(comparison)
    for title, ways in results.replaced.items():
        yield from _parts(f"{title}: seconds, existing file / new", REPLACING_GOAL, ways["existing"], ways["new"])


_WAYS: Final = {"to_text": "to text", "to_onnx": "to .onnx"}


def _goals_of(comparison: Comparison) -> Iterator[Goal]:
    name = comparison.case.name
    for number, title in enumerate(_WAYS.values()):
        found = comparison.to_onnx if number else comparison.to_text
        what = f"{name} {title}: seconds"
        if name in TIMES_GOALS:
            slowest = name == "weights"  # is to be fast in every run
            what = f"{what} of the slowest run" if slowest else what
            goal, ours = TIMES_GOALS[name][number], found[OURS.name]
            yield from _times(f"{what}, json_format / ours", goal, found[YARDSTICK.name], ours, slowest=slowest)
        if name == "nodes-100k" and TOOLS[-1].name in found:
            yield from _times(f"{what}, onnx.printer or parser / ours", 1.0, found[TOOLS[-1].name], found[OURS.name])


def _times(what: str, goal: float, other: Figures, ours: Figures, *, slowest: bool = False) -> Iterator[Goal]:
    """How many times as long another tool takes."""
    if not ours.runs:
        yield Goal(what, goal, 0.0, None, ours.skipped, at_least=True)
    elif other.runs:
        clock = max(run.seconds for run in ours.runs) if slowest else ours.seconds
        cpu = max(run.cpu_seconds for run in ours.runs) if slowest else ours.cpu_seconds
        beside = f"{other.seconds:.2f} / {clock:.2f} s; {other.peak_bytes / 1e6:.0f} / {ours.peak_bytes / 1e6:.0f} MB"
        yield Goal(what, goal, other.seconds / clock, other.cpu_seconds / cpu, beside, at_least=True)


def _parts(what: str, goal: float, ours: Figures, other: Figures) -> Iterator[Goal]:
    """What part of the time of another run something takes."""
    if ours.runs and other.runs:
        beside = f"{ours.seconds:.2f} / {other.seconds:.2f} s"
        yield Goal(what, goal, ours.seconds / other.seconds, ours.cpu_seconds / other.cpu_seconds, beside)

"""``python -m tests.benchmarks.diff_speed``: what the structural diff takes, each time in a process of its own."""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.measuring import run_process
from tests.benchmarks.report import table
from tests.benchmarks.tools import HERE, python

STYLES: Final = ("transformer", "convolutional", "mixed")
WEIGHTS: Final = ("distinct", "equal", "stripped")
ADVERSARIAL: Final = {
    "identical parallel chains": 10_000,
    "parallel chains, weights stripped": 10_000,
    "one identical chain": 50_000,
    "complete bipartite layers": 200,
    "one value, many consumers": 50_000,
    "a wide Concat": 100_000,
    "a random graph of one operator": 50_000,
    "a grid of one operator": 50_000,
}
"""As in `tests.diffing.adversarial`, which this process does not import: its memory counts towards what it starts."""

BIG: Final = 100_000
EDITS: Final = 80
DOUBLING: Final = (12_500, 25_000, 50_000, 100_000, 200_000)
SAME: Final = -1
PARTS: Final = ("edits", "identical", "doubling", "adversarial")


@dataclass(frozen=True)
class Case:
    """Two models to compare."""

    part: str
    kind: str
    count: int
    weights: str = "distinct"
    edits: int = EDITS

    @property
    def title(self) -> str:
        """What is compared, for the table."""
        if self.part == "adversarial":
            return f"{self.kind} ({self.count:,}), {self.edits} edits"
        what = {SAME: "the same", 0: "names and order"}.get(self.edits, f"{self.edits} edits")
        return f"{self.kind}, weights {self.weights}, {self.count:,} nodes, {what}"


def cases(*, quick: bool) -> Iterator[Case]:
    """Everything that is measured."""
    by = 100 if quick else 1
    for style in STYLES:
        for weights in WEIGHTS:
            yield Case("edits", style, BIG // by, weights)
    yield Case("identical", "mixed", BIG // by, edits=SAME)
    yield Case("identical", "mixed", BIG // by, edits=0)
    for weights in ("distinct", "stripped"):
        for count in DOUBLING:
            yield Case("doubling", "transformer", count // by, weights)
    for name, count in ADVERSARIAL.items():
        yield Case("adversarial", name, max(10, count // by), "", 5)


Figures = dict[str, Any]

_MEASURED: Final = ("diff", "cpu", "patch", "loaded", "peak")


def measured(case: Case, folder: Path, repeat: int) -> Figures:
    """The medians of what `diff_timing.measure` gives; "error" where it failed."""
    environment = {"PYTHONPATH": str(HERE.parent.parent)}
    module = ("-m", "tests.benchmarks.diff_timing")
    place = folder / "models"
    place.mkdir(exist_ok=True)
    arguments = (case.kind, str(case.count), case.weights, str(case.edits), place)
    run = run_process(python(*module, "make", *arguments), environment)
    if run.exit_code:
        return {"error": run.error}
    found: list[Figures] = []
    for _ in range(repeat):
        run = run_process(python(*module, "measure", place), environment)
        if run.exit_code:
            return {"error": run.error or f"exit code {run.exit_code}"}
        found.append(json.loads(run.printed))
    return found[0] | {name: statistics.median(each[name] for each in found) for name in _MEASURED}


def _line(case: Case, found: Figures) -> list[str]:
    if "error" in found:
        return [case.title, "", found["error"][:80], *[""] * 8]
    return [
        case.title,
        f"{found['nodes']:,}",
        f"{found['diff']:.2f}",
        f"{found['cpu']:.2f}",
        f"{found['patch']:.2f}",
        f"{found['loaded'] / 1e6:.0f}",
        f"{found['peak'] / 1e6:.0f}",
        f"{found['precision']:.5f}",
        f"{found['recall']:.5f}",
        str(found["members"]),
        found["degraded"][:60],
    ]


def _doubled(results: Sequence[tuple[Case, Figures]]) -> Iterator[list[str]]:
    """Time of the processor, which does not depend on what else the machine does."""
    steps = [(case, found) for case, found in results if case.part == "doubling" and "error" not in found]
    for (before, less), (case, more) in pairwise(steps):
        if before.weights == case.weights:
            name = f"{case.kind}, weights {case.weights}, {before.count:,} to {case.count:,} nodes"
            yield [name, f"{less['cpu']:.3f}", f"{more['cpu']:.3f}", f"{more['cpu'] / less['cpu']:.2f}"]


DIFF_SECONDS: Final = 1.0
PATCH_SECONDS: Final = 1.0
IDENTICAL_SECONDS: Final = 0.5
TIMES_A_DOUBLING: Final = 2.3
PEAK_BYTES: Final = 1e9


def _goals(results: Sequence[tuple[Case, Figures]]) -> Iterator[list[str]]:
    known = [(case, found) for case, found in results if "error" not in found]
    big = [found for case, found in known if case.part == "edits"]
    if big:
        yield _at_most("100,000 nodes, 80 edits: worst diff, s", DIFF_SECONDS, max(each["diff"] for each in big))
        yield _at_most("100,000 nodes, 80 edits: worst patch, s", PATCH_SECONDS, max(each["patch"] for each in big))
        yield _at_most(
            "100,000 nodes, 80 edits: highest peak, MB", PEAK_BYTES / 1e6, max(each["peak"] for each in big) / 1e6
        )
    same = [found["diff"] for case, found in known if case.edits == SAME]
    if same:
        yield _at_most("100,000 nodes, identical: diff, s", IDENTICAL_SECONDS, max(same))
    ratios = [float(line[-1]) for line in _doubled(results)]
    if ratios:
        yield _at_most("twice the nodes: times the time, worst", TIMES_A_DOUBLING, max(ratios))


def _at_most(what: str, goal: float, found: float) -> list[str]:
    return [what, f"at most {goal:g}", f"{found:.2f}", "yes" if found <= goal else "no"]


def report(results: Sequence[tuple[Case, Figures]], *, goals: bool) -> str:
    """The figures as Markdown."""
    head = [
        "what",
        "nodes",
        "diff s",
        "cpu s",
        "patch s",
        "loaded MB",
        "peak MB",
        "precision",
        "recall",
        "members",
        "degraded",
    ]
    parts = [table("Time and memory of the structural diff", head, [_line(*each) for each in results])]
    if steps := list(_doubled(results)):
        parts.append(table("Twice the nodes", ["what", "cpu s before", "cpu s after", "times"], steps))
    if goals:
        parts.append(table("Goals", ["what", "wanted", "measured", "reached"], list(_goals(results))))
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.diff_speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny models, to see that everything works")
    parser.add_argument("--only", action="append", metavar="PART", choices=PARTS, help=", ".join(PARTS))
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="processes a case; the median counts (3)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the tables to FILE too")
    options = parser.parse_args(arguments)
    results: list[tuple[Case, Figures]] = []
    with tempfile.TemporaryDirectory(prefix="onnxjson-diff-") as folder:
        for case in cases(quick=options.quick):
            if case.part in (options.only or PARTS):
                print(case.title, file=sys.stderr, flush=True)
                results.append((case, measured(case, Path(folder), 1 if options.quick else options.repeat)))
    text = report(results, goals=not options.quick)
    print(text, end="")
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

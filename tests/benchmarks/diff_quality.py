"""``python -m tests.benchmarks.diff_quality``: how often the structural diff is right, by hidden names and order."""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

import onnxjson
from onnxjson.diffing.matching.models import align
from tests.benchmarks import diff_cases
from tests.benchmarks.diff_cases import Case
from tests.benchmarks.diff_environment import PACKAGES, Environment
from tests.benchmarks.report import table
from tests.benchmarks.tools import HERE
from tests.diffing.edits import EDITS
from tests.diffing.judging import Score, judge_events, pairs_of
from tests.diffing.stacks import STYLES, WEIGHTS

PARTS: Final = ("synthetic", "exports", "planted", "optimizers")

RE_LAID: Final = "ort-all"
"""Re-lays the weights of convolutions (NCHWc), so it stands apart."""


@dataclass
class Row:
    """The figures of cases of one kind."""

    title: str
    part: str
    ours: dict[str, Score] = field(default_factory=dict)
    """By the label of the cases."""
    plain: Score = field(default_factory=Score)
    """With the names and the order that an optimizer left."""
    events: int = 0
    events_right: int = 0
    events_alone: int = 0
    """Events that are right and the only one, but for renames and order."""

    @property
    def total(self) -> Score:
        """All labels together."""
        return _sum(self.ours.values())

    @property
    def worst(self) -> tuple[str, Score]:
        """The label with the least precision or recall."""
        return min(self.ours.items(), key=lambda each: (min(each[1].precision, each[1].recall), each[0]))


def _sum(scores: Iterable[Score]) -> Score:
    total = Score()
    for score in scores:
        total = total.plus(score)
    return total


def measured(part: str, title: str, cases: Iterable[Case]) -> Row:
    """The figures of some cases."""
    row = Row(title, part)
    for case in cases:
        base, target, judge = case.hidden
        if case.planted:
            difference = onnxjson.diff(base, target)
            alignment = difference.alignment
            for planted in case.planted:
                event = judge_events(planted, difference.events)
                row.events += 1
                row.events_right += event.right
                if len(case.planted) == 1:
                    row.events_alone += event.right and not event.others
        else:
            alignment = align(base, target)
        row.ours[case.label] = row.ours.get(case.label, Score()).plus(judge.score(pairs_of(alignment)))
        if case.plain is not None:
            row.plain = row.plain.plus(case.plain.judge.score(pairs_of(align(case.plain.base, case.plain.target))))
    print(".", end="", file=sys.stderr, flush=True)
    return row


def _rows(options: argparse.Namespace, environment: Environment, refused: list[str]) -> Iterator[Row]:
    parts = set(options.only or PARTS)
    paths = sorted(options.models.glob("*.onnx"))
    counts = (100, 1000) if options.quick else (100, 1000, 10_000)
    seeds = 1 if options.quick else 3
    if "synthetic" in parts:
        for style in STYLES:
            for weights in WEIGHTS:
                title = f"edits, {style} stacks, weights {weights}"
                yield measured("synthetic", title, diff_cases.synthetic(style, weights, counts, seeds))
                if not options.quick:
                    title = f"edits, {style}, weights {weights}, 100,000 nodes"
                    yield measured("synthetic", title, diff_cases.synthetic(style, weights, (100_000,), 1))
    if "exports" in parts:
        for weights in WEIGHTS:
            title = f"edits, exports, weights {weights}"
            yield measured("exports", title, diff_cases.exports(paths, weights, seeds))
    if "planted" in parts:
        models = diff_cases.planted_models(paths, 200 if options.quick else 1000)
        for name in EDITS:
            yield measured("planted", f"one edit: {name}", diff_cases.planted(name, models, seeds))
    if "optimizers" in parts:
        for optimizer in PACKAGES:
            title = f"{optimizer} {environment.versions.get(PACKAGES[optimizer], 'not installed')}"
            part = "re-laid" if optimizer == RE_LAID else "optimizers"
            yield measured(part, title, diff_cases.optimized(optimizer, paths, environment, refused))


def _together(rows: Sequence[Row]) -> Iterator[Row]:
    titles = {
        "synthetic": "all edits, synthetic",
        "exports": "all edits, exports",
        "planted": "all single edits",
        "optimizers": f"all optimizers but {RE_LAID}",
    }
    for part, title in titles.items():
        some = [row for row in rows if row.part == part and row.ours]
        if not some:
            continue
        labels = dict.fromkeys(chain.from_iterable(row.ours for row in some))
        total = Row(
            title, part, {label: _sum(row.ours[label] for row in some if label in row.ours) for label in labels}
        )
        for row in some:
            total.events += row.events
            total.events_right += row.events_right
            total.events_alone += row.events_alone
            total.plain = total.plain.plus(row.plain)
        yield total


def _line(row: Row) -> list[str]:
    if not row.ours:
        return [row.title, *[""] * 6]
    name, worst = row.worst
    events = f"{row.events_right} of {row.events}" if row.events else ""
    alone = str(row.events_alone) if row.part == "planted" else ""
    plain = _figures(row.plain) if row.plain.wanted else ""
    return [row.title, str(row.total.wanted), _figures(row.total), plain, f"{name}: {_figures(worst)}", events, alone]


def _figures(score: Score) -> str:
    return f"{score.precision:.4f} / {score.recall:.4f}"


GOALS: Final = {"synthetic": (0.999, 0.995), "exports": (0.99, 0.98), "optimizers": (0.97, 0.93)}
"""Precision and recall to reach, over all pairs."""

PLAIN_GOAL: Final = 0.998
"""Recall to reach with the names that an optimizer left."""

EVENTS_GOAL: Final = 0.95
"""The part of single edits whose event is to be right."""


def _goals(totals: Sequence[Row]) -> Iterator[list[str]]:
    for row in totals:
        goals = list[tuple[str, float, float]]()
        if row.part in GOALS:
            goals += zip(("precision", "recall"), GOALS[row.part], (row.total.precision, row.total.recall), strict=True)
        if row.part == "optimizers":
            goals.append(("recall with names as they are", PLAIN_GOAL, row.plain.recall))
        if row.part == "planted":
            goals.append(("event right", EVENTS_GOAL, row.events_right / row.events))
        for what, goal, value in goals:
            reached = "yes" if value >= goal else "no"
            yield [f"{row.title}: {what}", f"at least {goal}", f"{value:.4f}", reached]


def report(rows: Sequence[Row], refused: Sequence[str]) -> str:
    """The figures as Markdown."""
    totals = list(_together(rows))
    head = ["what changed", "pairs", "precision / recall", "names as they are", "worst", "events right", "and alone"]
    lines = [_line(row) for row in (*rows, *totals)]
    parts = [
        table("Which node is which: precision / recall, names scrambled and order shuffled", head, lines),
        table("Goals", ["what", "wanted", "measured", "reached"], list(_goals(totals))),
    ]
    return "\n\n".join(parts) + "\n" + "".join(f"\nrefused: {line}\n" for line in refused)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.diff_quality", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small models and few of them")
    parser.add_argument("--only", action="append", metavar="PART", choices=PARTS, help=", ".join(PARTS))
    parser.add_argument("--models", type=Path, default=HERE.parent / "models", help="folder of exported models")
    parser.add_argument("--python", type=Path, help="interpreter of an environment that has the optimizers")
    parser.add_argument("--cache", type=Path, help="folder that keeps what the optimizers wrote")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the tables to FILE too")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="onnxjson-quality-") as folder:
        environment = Environment(options.python, options.cache or Path(folder))
        refused: list[str] = []
        text = report(list(_rows(options, environment, refused)), refused)
    print(text, end="")
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

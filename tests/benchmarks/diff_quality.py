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
from onnxjson.diffing.events import Event
from onnxjson.diffing.matching.models import align
from tests.benchmarks import diff_cases
from tests.benchmarks.diff_cases import Case
from tests.benchmarks.diff_environment import PACKAGES, Environment
from tests.benchmarks.diff_mistakes import described
from tests.benchmarks.report import table
from tests.benchmarks.tools import HERE
from tests.diffing.edits import EDITS
from tests.diffing.judging import Score, judge_events, pairs_of
from tests.diffing.mutations import Planted
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


class Measuring:
    """Runs cases."""

    def __init__(self, mistakes: Path | None) -> None:
        self._mistakes = mistakes

    def row(self, part: str, title: str, cases: Iterable[Case]) -> Row:
        """The figures of some cases."""
        row = Row(title, part)
        for case in cases:
            self._ours(row, case)
        print(".", end="", file=sys.stderr, flush=True)
        return row

    def _ours(self, row: Row, case: Case) -> None:
        base, target, judge = case.hidden
        if case.planted:
            found = onnxjson.diff(base, target)
            alignment = found.alignment
            for planted in case.planted:
                self._event(row, case, planted, found.events)
        else:
            alignment = align(base, target)
        pairs = pairs_of(alignment)
        score = judge.score(pairs)
        row.ours[case.label] = row.ours.get(case.label, Score()).plus(score)
        if score.right < score.said or score.found < score.wanted:
            self._note(
                f"{row.title}, {case.label}: {score.said - score.right} wrong, {score.wanted - score.found} missed"
            )
            self._note(*described(base, target, judge, pairs, 12))

    def _event(self, row: Row, case: Case, planted: Planted, events: Sequence[Event]) -> None:
        found = judge_events(planted, events)
        row.events += 1
        row.events_right += found.right
        if len(case.planted) == 1:
            row.events_alone += found.right and not found.others
        if not found.right or (len(case.planted) == 1 and found.others):
            self._note(f"{row.title}, {case.label}: {_told(planted, events)}")

    def _note(self, *lines: str) -> None:
        if self._mistakes is not None:
            with self._mistakes.open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)


def _told(planted: Planted, events: Sequence[Event]) -> str:
    wanted = " or ".join(planted.kinds)
    places = ", ".join(sorted(f"{side} {address}" for side, address in planted.members[0]))
    told = [f"{planted.edit}: wanted {wanted} at {places}; found"]
    touching = {place for member in planted.members for place in member}
    for event in events:
        for member in event.members:
            said = {*[("base", each) for each in member.base], *[("target", each) for each in member.target]}
            if said & touching:
                told.append(f"    {event.kind} {event.pattern}: {sorted(said)}"[:400])
    return "\n".join(told)


def _rows(
    options: argparse.Namespace, measuring: Measuring, environment: Environment, refused: list[str]
) -> Iterator[Row]:
    parts = set(options.only or PARTS)
    paths = sorted(options.models.glob("*.onnx"))
    counts = (100, 1000) if options.quick else (100, 1000, 10_000)
    seeds = 1 if options.quick else 3
    if "synthetic" in parts:
        for style in STYLES:
            for weights in WEIGHTS:
                title = f"edits, {style} stacks, weights {weights}"
                yield measuring.row("synthetic", title, diff_cases.synthetic(style, weights, counts, seeds))
                if not options.quick:
                    title = f"edits, {style}, weights {weights}, 100,000 nodes"
                    yield measuring.row("synthetic", title, diff_cases.synthetic(style, weights, (100_000,), 1))
    if "exports" in parts:
        for weights in WEIGHTS:
            title = f"edits, exports, weights {weights}"
            yield measuring.row("exports", title, diff_cases.exports(paths, weights, seeds))
    if "planted" in parts:
        models = diff_cases.planted_models(paths, 200 if options.quick else 1000)
        for name in EDITS:
            yield measuring.row("planted", f"one edit: {name}", diff_cases.planted(name, models, seeds))
    if "optimizers" in parts:
        for optimizer in PACKAGES:
            title = f"{optimizer} {environment.versions.get(PACKAGES[optimizer], 'not installed')}"
            part = "re-laid" if optimizer == RE_LAID else "optimizers"
            yield measuring.row(part, title, diff_cases.optimized(optimizer, paths, environment, refused))


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
        yield total


def _line(row: Row) -> list[str]:
    if not row.ours:
        return [row.title, *[""] * 5]
    name, worst = row.worst
    events = f"{row.events_right} of {row.events}" if row.events else ""
    alone = str(row.events_alone) if row.part == "planted" else ""
    return [row.title, str(row.total.wanted), _figures(row.total), f"{name}: {_figures(worst)}", events, alone]


def _figures(score: Score) -> str:
    return f"{score.precision:.4f} / {score.recall:.4f}"


GOALS: Final = {"synthetic": (0.999, 0.995), "exports": (0.99, 0.98), "optimizers": (0.97, 0.93)}
"""Precision and recall to reach, over all pairs."""

EVENTS_GOAL: Final = 0.95
"""The part of single edits whose event is to be right."""


def _goals(totals: Sequence[Row]) -> Iterator[list[str]]:
    for row in totals:
        if row.part in GOALS:
            for what, goal, measured in zip(
                ("precision", "recall"), GOALS[row.part], (row.total.precision, row.total.recall), strict=True
            ):
                yield [
                    f"{row.title}: {what}",
                    f"at least {goal}",
                    f"{measured:.4f}",
                    "yes" if measured >= goal else "no",
                ]
        if row.part == "planted":
            part = row.events_right / row.events
            yield [
                f"{row.title}: event right",
                f"at least {EVENTS_GOAL}",
                f"{part:.4f}",
                "yes" if part >= EVENTS_GOAL else "no",
            ]


def report(rows: Sequence[Row], refused: Sequence[str]) -> str:
    """The figures as Markdown."""
    totals = list(_together(rows))
    head = ["what changed", "pairs", "precision / recall", "worst", "events right", "and alone"]
    lines = [_line(row) for row in (*rows, *totals)]
    parts = [
        table(
            "Which node is which: precision / recall, names scrambled and order shuffled",
            head,
            lines,
        ),
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
    parser.add_argument("--mistakes", type=Path, metavar="FILE", help="write what was wrong, with its surroundings")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the tables to FILE too")
    options = parser.parse_args(arguments)
    if options.mistakes:
        options.mistakes.write_text("")
    with tempfile.TemporaryDirectory(prefix="onnxjson-quality-") as folder:
        environment = Environment(options.python, options.cache or Path(folder))
        refused: list[str] = []
        measuring = Measuring(options.mistakes)
        text = report(list(_rows(options, measuring, environment, refused)), refused)
    print(text, end="")
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Rows of the table of goals that are not conversions: mistakes in big texts, diffs, edits, outlines, merges, start."""

import json
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tests.benchmarks.cases import CASES, Setting, say
from tests.benchmarks.measuring import Figures, run_process
from tests.benchmarks.tools import Command, onnxjson, python

MISTAKES: Final = {
    "a key": (b'"op_type": "Relu"', b'"op_tipe": "Relu"'),
    "a value": (b'"alpha": 0.1', b'"alpha": [0.1, "x"]'),
    "a missing colon": (b'"op_type": "Relu"', b'"op_type" "Relu"'),
    "only another layout": (b'"op_type": "Relu"', b'"op_type":  "Relu"'),
}
"""What is replaced in the middle of a text, and by what."""

EDIT: Final = "set-attribute op:LeakyRelu alpha 0.2"

NODES: Final = 100_000
"""Of the models that are compared."""

_DIFF: Final = ("-m", "tests.benchmarks.diff_timing")


class Goal(NamedTuple):
    """One row of the table of goals."""

    what: str
    wanted: float
    measured: float | None
    """By the clock; None for what is measured by the time of the processor alone."""
    cpu: float | None = None
    """The same by the time of the processor."""
    beside: str = ""
    """What others take, or other figures of the same run."""
    at_least: bool = False

    @property
    def cells(self) -> list[str]:
        """The row as text."""
        found = self.measured, self.cpu
        fits = [each is not None and (each >= self.wanted if self.at_least else each <= self.wanted) for each in found]
        reached = "yes" if fits[self.measured is None] else "by cpu" if fits[1] else "no"
        figures = ["" if each is None else f"{each:.1f}" if each >= 10 else f"{each:.3g}" for each in found]
        wanted = f"at {'least' if self.at_least else 'most'} {self.wanted:g}"
        return [self.what, wanted, *figures, reached, self.beside]


def measured(setting: Setting) -> list[Goal]:
    """Measure all rows."""
    return [*_mistakes(setting), _diff(setting), _merge(setting), _edit(setting), *_outlines(setting), _start(setting)]


def _figures(command: Command, setting: Setting, codes: Sequence[int] = (0,), runs: int = 1) -> Figures:
    figures = Figures()
    for _ in range(setting.repeat * runs):
        run = run_process(command, setting.environment)
        if run.exit_code not in codes:
            raise RuntimeError(f"{' '.join(map(str, command))}: {run.error}")
        figures.runs.append(run)
    return figures


def _seconds(what: str, wanted: float, figures: Figures, beside: str = "") -> Goal:
    return Goal(f"{what}: s", wanted, figures.seconds, figures.cpu_seconds, beside)


def _mistakes(setting: Setting) -> Iterator[Goal]:
    say("mistakes")
    source = setting.model(CASES[0])
    text = source.with_suffix(".onnx.json")
    setting.printed(onnxjson("convert", source, "-o", text))
    content = text.read_bytes()
    for name, (word, other) in MISTAKES.items():
        at = content.index(word, len(content) // 2)
        text.write_bytes(content[:at] + other + content[at + len(word) :])
        figures = _figures(onnxjson("check", text), setting, (0, 1))
        beside = f"{figures.peak_bytes / 1e6:.0f} MB"
        yield _seconds(f"a text of {len(content) / 1e6:.0f} MB with {name}, check", 3.0, figures, beside)
    text.unlink()


def _diff(setting: Setting) -> Goal:
    say("diff")
    nodes = NODES // 100 if setting.quick else NODES
    place = setting.folder / "diff"
    place.mkdir()
    setting.printed(python(*_DIFF, "make", str(nodes), "80", place))
    diff = onnxjson("diff", place / "base.onnx", place / "target.onnx", "--exit-zero")
    figures = _figures(diff, setting, runs=3)
    compared = json.loads(setting.printed(python(*_DIFF, "measure", place)))
    beside = f"recall {compared['recall']:.4f}; of it compared {compared['cpu']:.2f} s cpu"
    return _seconds(f"diff of {nodes:,} nodes, 80 edits, scrambled, median of three", 1.0, figures, beside)


def _merge(setting: Setting) -> Goal:
    say("merge")
    base = setting.model(CASES[0])
    ours, theirs, merged = (setting.folder / f"{name}.onnx" for name in ("ours", "theirs", "merged"))
    setting.printed(onnxjson("rewrite", "set-attribute", base, "@/graph/node/2", "alpha", "0.25", "-o", ours))
    setting.printed(onnxjson("rewrite", "delete-node", base, "@/graph/node/6", "-o", theirs))
    figures = _figures(onnxjson("merge", base, ours, theirs, "-o", merged), setting)
    return _seconds("merge of an attribute and a deleted node, 100,000 nodes", 3.0, figures)


def _edit(setting: Setting) -> Goal:
    say("edit")
    measured = json.loads(setting.printed(python("-m", "tests.benchmarks.edits_speed", setting.model(CASES[0]), EDIT)))
    beside = f"{measured['differences']:,} changes"
    return Goal(f"{EDIT}, 100,000 nodes: s", 1.0, measured["plan"], measured["processor"], beside)


def _outlines(setting: Setting) -> Iterator[Goal]:
    say("outlines")
    for kind in ("layers", "transformer"):
        count = str(NODES // 100 if setting.quick else NODES)
        measured = json.loads(setting.printed(python("-m", "tests.benchmarks.outline_speed", kind, count)))
        what = f"outline of {measured['nodes']:,} nodes, {kind}: s"
        yield Goal(what, 2.0, measured["outline"], measured["processor"], f"{measured['lines']} lines")


def _start(setting: Setting) -> Goal:
    say("start")
    command = onnxjson("--help")
    _figures(command, setting)  # fills the cache
    return _seconds("onnxjson --help", 0.06, _figures(command, setting, runs=9))

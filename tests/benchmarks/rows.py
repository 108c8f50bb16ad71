"""Rows of the table of goals that are not conversions: mistakes in big texts, diffs, edits, merges, start."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
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

EDITS: Final = {
    "set-attribute op:LeakyRelu alpha 0.2": 1.0,
    "set-batch-size 4": 3.0,
    "set-shape x 2,4,8,8": 3.0,
}
"""Edits of 100,000 nodes, and the seconds of the processor that they are to take at most."""

STEPS: Final = (12_500, 25_000, 50_000, 100_000, 200_000, 400_000, 1_000_000)
"""Nodes of the models that are compared; all but the last double."""
BIG: Final = 100_000
TIMES_A_DOUBLING: Final = 2.1

_DIFF: Final = ("-m", "tests.benchmarks.diff_timing")
_SELECTING: Final = """
import sys, time, onnxjson
model = onnxjson.load(sys.argv[1])
model.select("op:Conv")
start = time.process_time()
for selector in ("op:LeakyRelu", "re:/layer1./Conv.*", "op:Conv"):
    model.select(selector)
print((time.process_time() - start) / 3)
"""


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
    return [*_mistakes(setting), *_diffs(setting), *_merges(setting), *_edits(setting), *_starts(setting)]


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
        title = f"a text of {len(content) / 1e6:.0f} MB with {name}"
        yield _seconds(f"{title}, check", 3.0, figures)
        yield Goal(f"{title}, check: MB", 400.0, figures.peak_bytes / 1e6)
    text.unlink()


def _diffs(setting: Setting) -> Iterator[Goal]:
    before = 0.0
    folder = setting.folder
    for count in STEPS:
        say(f"diff of {count:,} nodes")
        nodes = count // 100 if setting.quick else count
        place = setting.folder / f"diff-{nodes}"
        place.mkdir(exist_ok=True)
        setting.printed(python(*_DIFF, "make", "transformer", str(nodes), "distinct", "80", place))
        diff = onnxjson("diff", place / "base.onnx", place / "target.onnx", "--exit-zero")
        whole = _figures(diff, setting, runs=3 if count <= BIG else 1)
        title = f"diff of {nodes:,} nodes, 80 edits, scrambled"
        if before and count <= STEPS[-2]:
            yield Goal(f"{title}: times that of half", TIMES_A_DOUBLING, None, whole.cpu_seconds / before)
        before = whole.cpu_seconds
        if count == BIG:
            folder = place
            found = json.loads(setting.printed(python(*_DIFF, "measure", place)))
            beside = f"recall {found['recall']:.4f}; of it compared {found['cpu']:.2f} s cpu"
            yield _seconds(f"{title}, median of three", 1.0, whole, beside)
        elif count == STEPS[-1]:
            yield _seconds(title, 15.0, whole)
            yield Goal(f"{title}: MB", 3000.0, whole.peak_bytes / 1e6)
    base, other = folder / "base.onnx", folder / "metadata.onnx"
    setting.printed(onnxjson("rewrite", "set-metadata", base, "key", "value", "-o", other))
    for title, target in (("equal files", base), ("files equal but for metadata", other)):
        figures = _figures(onnxjson("diff", base, target, "--exit-zero"), setting, runs=3)
        yield _seconds(f"diff of {title}, 100,000 nodes", 0.5, figures)
    yield _merge("merge of metadata, 100,000 nodes", base, other, base, setting)


def _merges(setting: Setting) -> Iterator[Goal]:
    say("merge")
    base = setting.model(CASES[0])
    ours, theirs = setting.folder / "ours.onnx", setting.folder / "theirs.onnx"
    setting.printed(onnxjson("rewrite", "set-attribute", base, "@/graph/node/2", "alpha", "0.25", "-o", ours))
    setting.printed(onnxjson("rewrite", "delete-node", base, "@/graph/node/6", "-o", theirs))
    yield _merge("merge of an attribute and a deleted node, 100,000 nodes", base, ours, theirs, setting)


def _merge(title: str, base: Path, ours: Path, theirs: Path, setting: Setting) -> Goal:
    merged = setting.folder / "merged.onnx"
    return _seconds(title, 3.0, _figures(onnxjson("merge", base, ours, theirs, "-o", merged), setting))


def _edits(setting: Setting) -> Iterator[Goal]:
    say("edits")
    model = setting.model(CASES[0])
    only = [word for line in EDITS for word in ("--only", line)]
    arguments: Command = ["-m", "tests.benchmarks.edits_speed", "--json", "--model", model, *only]
    for found in json.loads(setting.printed(python(*arguments))):
        beside = f"{found['differences']:,} changes"
        yield Goal(f"{found['name']}: s", EDITS[found["name"]], found["plan"], found["processor"], beside)
    selected = float(setting.printed(python("-c", _SELECTING, model)))
    yield Goal("a selector over 100,000 nodes: s", 0.3, None, selected)


def _starts(setting: Setting) -> Iterator[Goal]:
    say("start")
    model = setting.model(next(case for case in CASES if case.name == "small"))
    text = model.with_suffix(".start.onnx.json")
    commands = {
        "onnxjson --help": (0.06, onnxjson("--help")),
        "convert of a small model": (0.12, onnxjson("convert", model, "-o", text)),
        "textconv of a small model": (0.08, python("-I", "-m", "onnxjson.git.textconv", model)),
    }
    for title, (goal, command) in commands.items():
        _figures(command, setting)  # fills the cache
        yield _seconds(title, goal, _figures(command, setting, runs=9))

"""Rows of the table of goals that are not conversions: mistakes in big texts, diffs, edits, merges, start."""

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
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

STEPS: Final = (12_500, 25_000, 50_000, 100_000)
TIMES_A_DOUBLING: Final = 2.1

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
    measured: float
    beside: str = ""
    """What others take, or other figures of the same run."""

    @property
    def cells(self) -> list[str]:
        """The row, for figures that are to be at most what is wanted."""
        reached = "yes" if self.measured <= self.wanted else "no"
        return [self.what, f"at most {self.wanted:g}", f"{self.measured:.3f}", reached, self.beside]


def measured(setting: Setting) -> list[Goal]:
    """Measure all rows."""
    return [*_mistakes(setting), *_diffs(setting), *_edits(setting), *_starts(setting)]


def _figures(command: Command, setting: Setting, codes: Sequence[int] = (0,)) -> Figures:
    figures = Figures()
    for _ in range(setting.repeat):
        run = run_process(command, setting.environment)
        if run.exit_code not in codes:
            raise RuntimeError(f"{' '.join(map(str, command))}: {run.error}")
        figures.runs.append(run)
    return figures


def _cpu(figures: Figures) -> str:
    return f"cpu {figures.cpu_seconds:.3f} s"


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
        yield Goal(f"{title}, check: s", 3.0, figures.seconds, _cpu(figures))
        yield Goal(f"{title}, check: MB", 400.0, figures.peak_bytes / 1e6)
    text.unlink()


def _diffs(setting: Setting) -> Iterator[Goal]:
    module = ("-m", "tests.benchmarks.diff_timing")
    before = 0.0
    for count in STEPS:
        say(f"diff of {count:,} nodes")
        nodes = count // 100 if setting.quick else count
        folder = setting.folder / f"diff-{nodes}"
        folder.mkdir(exist_ok=True)
        setting.printed(python(*module, "make", "transformer", str(nodes), "distinct", "80", folder))
        found = [json.loads(setting.printed(python(*module, "measure", folder))) for _ in range(setting.repeat)]
        seconds, cpu = [statistics.median([each[name] for each in found]) for name in ("diff", "cpu")]
        if before:
            yield Goal(f"diff of {nodes:,} nodes: cpu s, times that of half", TIMES_A_DOUBLING, cpu / before)
        before = cpu
    pairs = f"recall {found[0]['recall']:.4f}"
    yield Goal(f"diff of {nodes:,} nodes, 80 edits, scrambled, loaded: s", 1.0, seconds, f"cpu {cpu:.2f} s; {pairs}")
    base, other = folder / "base.onnx", folder / "metadata.onnx"
    whole = _figures(onnxjson("diff", base, folder / "target.onnx", "--exit-zero"), setting)
    yield Goal(f"diff of {nodes:,} nodes, 80 edits: s, whole process", 1.0, whole.seconds, _cpu(whole))
    setting.printed(onnxjson("rewrite", "set-metadata", base, "key", "value", "-o", other))
    for title, target in (("equal files", base), ("files equal but for metadata", other)):
        figures = _figures(onnxjson("diff", base, target, "--exit-zero"), setting)
        yield Goal(f"diff of {title}, {nodes:,} nodes: s, whole process", 0.5, figures.seconds, _cpu(figures))
    merged = _figures(onnxjson("merge", base, other, base, "-o", folder / "merged.onnx"), setting)
    yield Goal(f"merge of {nodes:,} nodes: s, whole process", 3.0, merged.seconds, _cpu(merged))


def _edits(setting: Setting) -> Iterator[Goal]:
    say("edits")
    nodes = 2_400 if setting.quick else 100_000
    for line, goal in EDITS.items():
        arguments = ("--nodes", str(nodes), "--only", line, "--json")
        (found,) = json.loads(setting.printed(python("-m", "tests.benchmarks.edits_speed", *arguments)))
        yield Goal(f"{line}, {nodes:,} nodes: cpu s", goal, found["processor"], f"{found['differences']:,} changes")
    selected = float(setting.printed(python("-c", _SELECTING, setting.model(CASES[0]))))
    yield Goal(f"a selector over {nodes:,} nodes: cpu s", 0.3, selected)


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
        figures = _figures(command, replace(setting, repeat=setting.repeat * 4))
        yield Goal(f"{title}: s", goal, figures.seconds, _cpu(figures))

"""What is measured: models from file to file, and the figures around them."""

import json
import resource
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.benchmarks.measuring import Figures, run_process
from tests.benchmarks.tools import HERE, OURS, TOOLS, YARDSTICK, Command, Tool, onnxjson, python

OTHERS_SECONDS: Final = 5.0
"""A tool beside onnxjson and json_format that took so long over one way of a case is not started for it again."""


@dataclass(frozen=True)
class Case:
    """One model to convert both ways."""

    name: str
    what: str
    """For the tables; {} stands for the number of nodes."""
    kind: str
    """Of the model, for `graphs.write`."""
    count: int
    quick_count: int
    runs: int = 1
    """How often onnxjson runs in every round, where one run is short beside those of the others."""

    def title(self, *, quick: bool) -> str:
        """What it is, with the number of nodes that it really has."""
        return self.what.format(f"{self.quick_count if quick else self.count:,}")


CASES: Final = (
    Case("nodes-100k", "{} nodes", "layers", 100_000, 400, 3),
    Case("nodes-10k", "{} nodes", "layers", 10_000, 200),
    Case("weights", "weights", "weights", 480, 1, 3),
    Case("small", "a small export", "exported", 1, 1),
    Case("torchscript", "{} nodes of TorchScript", "torchscript", 30_000, 400, 2),
    Case("dynamo", "{} nodes of dynamo", "dynamo", 30_000, 200, 2),
    Case("distinct", "{} nodes, all attributes differ", "distinct", 100_000, 200),
)


@dataclass
class Comparison:
    """A case and what each tool took for it."""

    case: Case
    title: str
    bytes: int
    to_text: dict[str, Figures]
    to_onnx: dict[str, Figures]
    comes_back: dict[str, bool] = field(default_factory=dict)
    """Whether the binary that came back has the bytes of the first one, by tool."""
    text_bytes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """How and where it is measured."""

    folder: Path
    """Where models and what is made of them go; gone after the run."""
    models: Path
    repeat: int
    quick: bool
    every_tool: bool = False
    python313: Path | None = None
    """An interpreter of Python 3.13 that can import what onnxjson requires."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What every process gets beside the variables of this one: backups and settings stay in `folder`.

        Compiled modules are kept, as in an installation; a machine for tests may have turned that off.
        """
        folders = {"XDG_STATE_HOME": str(self.folder / "state"), "XDG_CACHE_HOME": str(self.folder / "cache")}
        return {**folders, "PYTHONDONTWRITEBYTECODE": ""}

    def model(self, case: Case) -> Path:
        """The model of a case, made when it is asked for first.

        Raises:
            RuntimeError: it could not be made.
        """
        path = self.folder / f"{case.name}.onnx"
        if not path.exists():
            count = case.quick_count if self.quick else case.count
            self.printed(python("-m", "tests.benchmarks.graphs", case.kind, path, str(count), self.models.resolve()))
        return path

    def printed(self, command: Command) -> str:
        """What a command prints that must succeed.

        Raises:
            RuntimeError: it failed.
        """
        run = run_process(command, {**self.environment, "PYTHONPATH": str(HERE.parent.parent)})
        if run.exit_code:
            raise RuntimeError(f"{' '.join(map(str, command))}: {run.error}")
        return run.printed


_STARTED: Final = time.perf_counter()


def elapsed() -> tuple[float, float]:
    """Seconds since the start, and those of the processor in all processes that ended."""
    return time.perf_counter() - _STARTED, sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def say(what: str) -> None:
    """Progress, for whoever waits."""
    print(f"{elapsed()[0]:5.0f} s  {what}", file=sys.stderr, flush=True)


def compare(case: Case, setting: Setting) -> Comparison:
    """Convert the model of a case with every tool, one after the other in every round."""
    source = setting.model(case)
    tools = [tool for tool in TOOLS if setting.every_tool or tool in (OURS, YARDSTICK) or _is_needed(tool, case)]
    result = Comparison(
        case,
        case.title(quick=setting.quick),
        source.stat().st_size,
        {tool.name: Figures() for tool in tools},
        {tool.name: Figures() for tool in tools},
    )
    rounds = setting.repeat * 3 if case.name == "small" else setting.repeat
    for turn in range(rounds):
        say(f"{case.name}: round {turn + 1} of {rounds}")
        for tool in tools:
            for _ in range(case.runs if tool is OURS else turn == 0 or not _is_slow(tool, result)):
                _both_ways(tool, source, result, setting)
    for tool in tools:
        for path in _files(tool, source):
            path.unlink(missing_ok=True)
    return result


def _is_needed(tool: Tool, case: Case) -> bool:
    """Whether a goal compares onnxjson with onnx's text format."""
    return case is CASES[0] and tool is TOOLS[-1]


def _files(tool: Tool, source: Path) -> tuple[Path, Path]:
    """The text of a tool, and the binary it makes of it."""
    base = source.with_suffix("")
    return base.with_name(f"{base.name}.text{tool.ending}"), base.with_name(f"{base.name}.back{tool.ending}.onnx")


def _is_slow(tool: Tool, result: Comparison) -> bool:
    spent = max(result.to_text[tool.name].spent, result.to_onnx[tool.name].spent)
    return tool not in (OURS, YARDSTICK) and spent > OTHERS_SECONDS


def _both_ways(tool: Tool, source: Path, result: Comparison, setting: Setting) -> None:
    text, back = _files(tool, source)
    for path in (text, back):
        path.unlink(missing_ok=True)
    to_text, to_onnx = result.to_text[tool.name], result.to_onnx[tool.name]
    if not to_text.add(tool.to_text(source, text), setting.environment):
        to_onnx.skipped = to_onnx.skipped or "it wrote no text"
        return
    result.text_bytes[tool.name] = text.stat().st_size
    if to_onnx.add(tool.to_onnx(text, back), setting.environment) and tool.name not in result.comes_back:
        result.comes_back[tool.name] = same_bytes(source, back)


def same_bytes(one: Path, other: Path) -> bool:
    """Whether two files have the same content, read in pieces."""
    with one.open("rb") as first, other.open("rb") as second:
        while True:
            piece = first.read(1 << 20)
            if piece != second.read(1 << 20):
                return False
            if not piece:
                return True


def compare_313(setting: Setting) -> dict[str, dict[str, Figures]] | str:
    """The first case by onnxjson and json_format under Python 3.13, both ways; a text if there is no such Python."""
    say("python313")
    place = setting.python313
    modules = "onnx, msgspec, orjson, pybase64, click"
    check: Command = [place or "python3.13", "-c", f"import sys, {modules}; assert sys.version_info[:2] == (3, 13)"]
    if (place is None and shutil.which("python3.13") is None) or run_process(check, {}).exit_code:
        return f"skipped: no Python 3.13 that imports {modules}; name one with --python313"
    source = setting.model(CASES[0])
    environment = {**setting.environment, "PYTHONPATH": str(HERE.parent.parent)}
    result: dict[str, dict[str, Figures]] = {}
    commands: tuple[tuple[str, int, Command], ...] = (
        ("ours", CASES[0].runs + 1, ["-c", "from onnxjson.cli import main; main()", "convert"]),
        ("json_format", 1, ["-P", HERE / "others.py", "json_format"]),
    )
    for name, runs, begin in commands:
        text, back = source.with_suffix(f".313{OURS.ending}"), source.with_suffix(".313.onnx")
        for way, one, other in (("to_text", source, text), ("to_onnx", text, back)):
            figures = result.setdefault(way, {})[name] = Figures()
            for turn in range(runs):
                other.unlink(missing_ok=True)
                arguments: Command = [one, "-o", other] if name == "ours" else [way, one, other]
                figures.add([check[0], *begin, *arguments], environment)
                if turn == 0 and runs > 1:
                    figures.runs.clear()  # compiles modules
    return result


def in_one_process(setting: Setting) -> dict[str, list[dict[str, float]]]:
    """Times between ModelProto and text of the first case: a list of `objects.measured` by tool."""
    model, warmup = setting.model(CASES[0]), setting.folder / "warmup.onnx"
    setting.printed(python("-m", "tests.benchmarks.graphs", "layers", warmup, "1000", setting.models))
    result: dict[str, list[dict[str, float]]] = {OURS.name: [], YARDSTICK.name: []}
    for turn in range(setting.repeat):
        say(f"objects: round {turn + 1} of {setting.repeat}")
        for name, found in result.items():
            found.append(json.loads(setting.printed(python("-P", HERE / "objects.py", name, model, warmup))))
    return result


def start_up(setting: Setting) -> dict[str, Figures]:
    """Processes that do nothing but start."""
    commands = {
        "onnxjson --help": onnxjson("--help"),
        "onnxjson --version": onnxjson("--version"),
        'python -c "import onnxjson"': python("-c", "import onnxjson"),
        'python -c "import onnx"': python("-c", "import onnx"),
        "python -c pass": python("-c", "pass"),
    }
    result = {name: Figures() for name in commands}
    for _ in range(1 if setting.quick else setting.repeat * 4):
        for name, command in commands.items():
            result[name].add(command, setting.environment)
    return result


def replacing(setting: Setting) -> dict[str, dict[str, Figures]]:
    """`convert` to a file that is new and over one that exists, both ways, of the first case and of weights."""
    result = {}
    for case in (CASES[0], CASES[2]):
        say(f"replace: {case.name}")
        source = setting.model(case)
        text = source.with_suffix(".replaced.onnx.json")
        back = source.with_suffix(".replaced.onnx")
        name = case.title(quick=setting.quick)
        for title, first, second in ((f"{name} to text", source, text), (f"{name} to .onnx", text, back)):
            ways = {"new": Figures(), "existing": Figures()}
            for _ in range(setting.repeat + 1):
                second.unlink(missing_ok=True)
                for figures in ways.values():
                    figures.add(onnxjson("convert", first, "-o", second), setting.environment)
            result[title] = ways
        text.unlink(missing_ok=True)
        back.unlink(missing_ok=True)
    return result


READING: Final = "read the file"
COPYING: Final = "copy the file, with fsync"
HASHING: Final = "sha256 of the file"

_PLAIN: Final = """
import hashlib, os, sys
digest = hashlib.sha256()
with open(sys.argv[2], "rb", buffering=0) as source:
    copy = open(sys.argv[3], "wb", buffering=0) if sys.argv[1] == "copy" else None
    while block := source.read(1 << 20):
        if sys.argv[1] == "hash":
            digest.update(block)
        elif copy:
            copy.write(block)
    if copy:
        os.fsync(copy.fileno())
"""


def weights_apart(setting: Setting) -> dict[str, Figures]:
    """Weights as digests and as blobs, beside what reading, copying and hashing the file take; and `show`."""
    say("apart")
    source, nodes = setting.model(CASES[2]), setting.model(CASES[0])
    suffixes = (".apart.onnx.json", ".apart.blobs", ".apart.onnx")
    text, blobs, copy = (source.with_suffix(suffix) for suffix in suffixes)
    commands = {
        READING: python("-c", _PLAIN, "read", source, copy),
        HASHING: python("-c", _PLAIN, "hash", source, copy),
        COPYING: python("-c", _PLAIN, "copy", source, copy),
        "to digests": onnxjson("convert", source, "--weights", "digest", "-o", text),
        "to blobs": onnxjson("convert", source, "--weights", "blobs", "-o", text),
        "to blobs that are there": onnxjson("convert", source, "--weights", "blobs", "-o", text),
        "from blobs": onnxjson("convert", text, "-o", copy),
        "show weights": onnxjson("show", source),
        "show 100,000 nodes": onnxjson("show", nodes),
    }
    result = {name: Figures() for name in commands}
    for _ in range(setting.repeat):
        shutil.rmtree(blobs, ignore_errors=True)
        for name, command in commands.items():
            result[name].add(command, setting.environment)
    shutil.rmtree(blobs, ignore_errors=True)
    text.unlink(missing_ok=True)
    copy.unlink(missing_ok=True)
    return result


def text_sizes(setting: Setting) -> dict[str, dict[str, int]]:
    """`text_size.measured` of every exported model and of the second case."""
    say("text-size")
    paths = [*sorted(setting.models.glob("*.onnx")), setting.model(CASES[1])]
    return {path.name: json.loads(setting.printed(python("-P", HERE / "text_size.py", path))) for path in paths}


GOALS: Final = ("nodes-100k", "python313", "replace", "weights", "apart", "torchscript", "dynamo", "distinct", "rows")
"""What has goals, in the order of the table."""

NAMES: Final = (*GOALS, "nodes-10k", "small", "objects", "start", "text-size")

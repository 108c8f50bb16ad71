"""What is measured: models from file to file, and the figures around them."""

import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.benchmarks.measuring import Figures, run_process
from tests.benchmarks.tools import HERE, LIMIT, OURS, TOOLS, YARDSTICK, Command, Tool, onnxjson, python

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
    Case("nodes-1k", "{} nodes", "layers", 1_000, 200, 3),
    Case("weights", "weights", "weights", 304, 1, 3),
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
    repeat: int
    quick: bool
    every_tool: bool = False

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
            self.printed(python("-m", "tests.benchmarks.graphs", case.kind, path, str(count)))
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
    tools = [tool for tool in TOOLS if setting.every_tool or tool in (OURS, YARDSTICK, LIMIT) or _is_needed(tool, case)]
    result = Comparison(
        case,
        case.title(quick=setting.quick),
        source.stat().st_size,
        {tool.name: Figures() for tool in tools},
        {tool.name: Figures() for tool in tools},
    )
    for turn in range(setting.repeat):
        say(f"{case.name}: round {turn + 1} of {setting.repeat}")
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


NAMES: Final = ("nodes-100k", "nodes-1k", "replace", "weights", "rows")
"""What is measured, in the order of the table."""

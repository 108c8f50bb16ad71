"""The programs that are measured, as commands from file to file."""

import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Command = list[str | Path]

HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Tool:
    """One program, both ways."""

    name: str
    ending: str
    """Of the text that it writes and reads."""
    to_text: Callable[[Path, Path], Command]
    to_onnx: Callable[[Path, Path], Command]


def python(*arguments: str | Path) -> Command:
    """The interpreter that runs this, with `arguments`."""
    return [sys.executable, *arguments]


def script(name: str, *arguments: str | Path) -> Command:
    """A command that was installed beside this interpreter."""
    return [Path(sysconfig.get_path("scripts"), name), *arguments]


def onnxjson(*arguments: str | Path) -> Command:
    """The command of this project."""
    return script("onnxjson", *arguments)


def _other(name: str, way: str) -> Callable[[Path, Path], Command]:
    return lambda source, destination: python("-P", HERE / "others.py", name, way, source, destination)


TOOLS: Final = (
    Tool(
        "onnxjson",
        ".onnx.json",
        lambda source, destination: onnxjson("convert", source, "-o", destination),
        lambda source, destination: onnxjson("convert", source, "-o", destination),
    ),
    Tool("json_format", ".json", _other("json_format", "to_text"), _other("json_format", "to_onnx")),
    Tool(
        "onnx2json, json2onnx",
        ".onnx2json",
        lambda source, destination: script("onnx2json", "-if", source, "-oj", destination),
        lambda source, destination: script("json2onnx", "-ij", source, "-of", destination),
    ),
    Tool("copy, fsync (the limit)", ".copied", _other("copy", "to_text"), _other("copy", "to_onnx")),
    Tool("onnx.printer, parser", ".onnxtxt", _other("onnx_text", "to_text"), _other("onnx_text", "to_onnx")),
)
"""onnxjson first, then what it is compared with; json_format is the yardstick."""

OURS, YARDSTICK = TOOLS[:2]
LIMIT: Final = TOOLS[3]

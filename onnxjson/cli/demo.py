"""``onnxjson demo``: a tour on a small model, each step in a separate process."""

import hashlib
import shlex
from pathlib import Path
from typing import Final

import click

from onnxjson.cli import options, output, processes, reports
from onnxjson.cli.paths import FilePath
from onnxjson.diffing import unified
from onnxjson.model.errors import OnnxJsonError, OutputError

OLD_LINE: Final = '"alpha": 0.01'
NEW_LINE: Final = '"alpha": 0.2'


class StepError(OnnxJsonError):
    """A step of the demonstration failed; the exit code is that of its process."""

    def __init__(self, command: str, exit_code: int) -> None:
        super().__init__(f"`{command}` exited with {exit_code}; its output is above")
        self.exit_code = exit_code  # type: ignore[misc]


@options.command("demo")
@click.argument("folder", metavar="[DIR]", default="onnxjson-demo", type=FilePath())
def demo_command(folder: Path) -> None:
    """Run a tour: convert a model to text and back, diff, optimize.

    Writes to DIR (default: onnxjson-demo), which must be new or empty. Every command is printed, then run.

    \b
    onnxjson demo
    """
    _make_folder(folder)
    _title("A small network, made with the onnx package")
    _print(f"$ cd {_word(folder)}", "hunk")
    _run(folder, "python -m onnxjson.example digits.onnx")
    _title("The model as text")
    _run(folder, "onnxjson convert digits.onnx")
    _title("One attribute changed in the text, as in any editor")
    _edit(folder, "digits.onnx.json", "leaky.onnx.json")
    _title("Back to a model that every ONNX program loads")
    _run(folder, "onnxjson convert leaky.onnx.json")
    _run(folder, "onnxjson check --deep leaky.onnx")
    _title("What changed since the export, matched by structure, not by names or order")
    _run(folder, "python -m onnxjson.example --unfused exported.onnx")
    _run(folder, "onnxjson diff --nodes-only --test-rewrites exported.onnx leaky.onnx", expected=1)
    _title("Nothing is lost: the unchanged text converts back to exactly the same file")
    _run(folder, "onnxjson convert digits.onnx.json -o again.onnx")
    _compare(folder, "digits.onnx", "again.onnx")
    _title("An optimizer, and what each part of it changed")
    _run(folder, "onnxjson optimize exported.onnx -p onnxruntime -o fast.onnx --trace steps")
    _run(folder, "onnxjson trace steps")
    _title("Now try your own")
    for text in (
        f"less {_word(folder / 'digits.onnx.json')}", "onnxjson convert YOUR_MODEL.onnx",
        "onnxjson diff ONE.onnx OTHER.onnx -o report.html", "onnxjson --help",
    ):  # fmt: skip
        _print(f"  {text}")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputError(f"{folder} is a file; choose a new folder: onnxjson demo DIR") from error
    if occupied:
        raise OutputError(f"{folder} is not empty; choose a new folder: onnxjson demo DIR")


def _print(text: str, style: str = "plain") -> None:
    """Print a line in a style of `reports.styled`."""
    click.echo(reports.styled((style, output.line(text)), coloured=reports.is_coloured("auto")))


def _title(text: str) -> None:
    _print("")
    _print(text, "title")


def _run(folder: Path, command: str, *, expected: int = 0) -> None:
    _print(f"$ {command}", "hunk")
    words = command.removeprefix("python -m ").split()
    completed = processes.run_module(words[0], words[1:], folder)
    for text in completed.stdout.decode(errors="backslashreplace").splitlines():
        _print(text)
    if completed.returncode != expected:
        raise StepError(command, completed.returncode)


def _edit(folder: Path, source: str, destination: str) -> None:
    before = (folder / source).read_text(encoding="utf-8")
    after = before.replace(OLD_LINE, NEW_LINE)
    (folder / destination).write_text(after, encoding="utf-8", newline="\n")
    for line in unified.diff_texts(before.encode(), after.encode(), source, destination, context=1):
        _print(line.text, line.kind)


def _compare(folder: Path, one: str, other: str) -> None:
    first, second = (hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (one, other))
    if first != second:
        raise StepError(f"comparing {one} and {other}", 1)
    _print(f"{other} is {one}, byte for byte (sha256 {first[:16]}...)", "good")


def _word(path: Path) -> str:
    """A path as one word of a command line, on one line."""
    text = str(path)
    return output.line(shlex.quote(f"./{text}" if text.startswith("-") else text))

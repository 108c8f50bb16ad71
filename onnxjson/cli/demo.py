"""``onnxjson demo``: a tour on a small model, each step in a separate process."""

import hashlib
import shlex
from pathlib import Path
from typing import Final

import click

from onnxjson.cli import options, output, processes
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
    Demonstration(folder).run()


class Demonstration:
    """The steps, one after the other, in one folder."""

    def __init__(self, folder: Path) -> None:
        from rich.console import Console

        self.folder = folder
        self.console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    def run(self) -> None:
        """Run all steps.

        Raises:
            OutputError: the folder is not empty.
            StepError: a command failed.
        """
        self._make_folder()
        self._title("A small network, made with the onnx package")
        self.console.print(f"$ cd {_word(self.folder)}", style="cyan")
        self._python("onnxjson.example", "digits.onnx")
        self._title("The model as text")
        self._onnxjson("convert", "digits.onnx")
        self._title("One attribute changed in the text, as in any editor")
        self._edit("digits.onnx.json", "leaky.onnx.json")
        self._title("Back to a model that every ONNX program loads")
        self._onnxjson("convert", "leaky.onnx.json")
        self._onnxjson("check", "--deep", "leaky.onnx")
        self._title("What changed since the export, matched by structure, not by names or order")
        self._python("onnxjson.example", "--unfused", "exported.onnx")
        self._onnxjson("diff", "--nodes-only", "--test-rewrites", "exported.onnx", "leaky.onnx", expected=1)
        self._title("Nothing is lost: the unchanged text converts back to exactly the same file")
        self._onnxjson("convert", "digits.onnx.json", "-o", "again.onnx")
        self._compare("digits.onnx", "again.onnx")
        self._title("An optimizer, and what each part of it changed")
        self._onnxjson("optimize", "exported.onnx", "-p", "onnxruntime", "-o", "fast.onnx", "--trace", "steps")
        self._onnxjson("trace", "steps")
        self._title("Now try your own")
        self.console.print(
            f"  less {_word(self.folder / 'digits.onnx.json')}\n  onnxjson convert YOUR_MODEL.onnx\n"
            "  onnxjson diff ONE.onnx OTHER.onnx -o report.html\n  onnxjson --help"
        )

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            occupied = any(self.folder.iterdir())
        except (FileExistsError, NotADirectoryError) as error:
            raise OutputError(f"{self.folder} is a file; choose a new folder: onnxjson demo DIR") from error
        if occupied:
            raise OutputError(f"{self.folder} is not empty; choose a new folder: onnxjson demo DIR")

    def _title(self, text: str) -> None:
        self.console.print(f"\n{output.line(text)}" if text else "", style="bold")

    def _python(self, module: str, *arguments: str) -> None:
        self._run(f"python -m {module}", module, *arguments)

    def _onnxjson(self, *arguments: str, expected: int = 0) -> None:
        self._run("onnxjson", "onnxjson", *arguments, expected=expected)

    def _run(self, spelling: str, module: str, *arguments: str, expected: int = 0) -> None:
        shown = f"{spelling} {' '.join(arguments)}"
        self.console.print(f"$ {shown}", style="cyan")
        completed = processes.run_module(module, list(arguments), self.folder)
        for text in completed.output.splitlines():
            self.console.print(output.line(text))
        if completed.exit_code != expected:
            raise StepError(shown, completed.exit_code)

    def _edit(self, source: str, destination: str) -> None:
        before = (self.folder / source).read_text(encoding="utf-8")
        after = before.replace(OLD_LINE, NEW_LINE)
        (self.folder / destination).write_text(after, encoding="utf-8", newline="\n")
        for line in unified.diff_texts(before.encode(), after.encode(), source, destination, context=1):
            style = {"removed": "red", "added": "green", "hunk": "cyan", "file": "bold"}.get(line.kind, "")
            self.console.print(output.line(line.text), style=style)

    def _compare(self, one: str, other: str) -> None:
        first, second = (hashlib.sha256((self.folder / name).read_bytes()).hexdigest() for name in (one, other))
        if first != second:
            raise StepError(f"comparing {one} and {other}", 1)
        self.console.print(f"{other} is {one}, byte for byte (sha256 {first[:16]}...)", style="green")


def _word(path: Path) -> str:
    """A path as one word of a command line, on one line."""
    text = str(path)
    return output.line(shlex.quote(f"./{text}" if text.startswith("-") else text))

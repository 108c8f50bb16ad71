"""The group of all commands: a table, so that no command is imported before it is called."""

import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import click

from onnxjson.cli import failures, output


class Entry(NamedTuple):
    """One command; the module of its name, with ``_`` for ``-``, holds it as ``command``."""

    name: str
    summary: str
    """One line for the list of commands; the first line of the command's own help says the same."""


SECTIONS: Final[dict[str, tuple[Entry, ...]]] = {
    "Start here": (
        Entry("demo", "Make a small model, take it to text and back, and diff it."),
        Entry("new", "Make a model of one operator, or a ready component."),
    ),
    "Models": (
        Entry("show", "Say what a model, a node or a tensor consists of."),
        Entry("convert", "Write a model in another form: .onnx, .onnx.json, proto-JSON."),
        Entry("edit", "Change a model in your editor."),
        Entry("tui", "Browse and edit a model in the terminal."),
        Entry("fmt", "Write texts in their one canonical form."),
        Entry("check", "Say what is wrong with models, and where."),
        Entry("diff", "Say what differs between two models."),
        Entry("run", "Say what a model gives, how long that takes, and where."),
        Entry("verify", "Say whether two models compute the same, and where not."),
        Entry("bench", "Say how variants of models compare: size, difference, time."),
        Entry("rewrite", "Make one edit on one or many models."),
        Entry("apply", "Make a stored change again, on one or many models."),
        Entry("optimize", "Run optimizers on models, and say what each of them changed."),
        Entry("passes", "List the passes, or say what one of them takes."),
        Entry("trace", "Show what passes did to a model, from the folder of a trace."),
        Entry("split", "Take a model apart into pieces that run one after the other."),
        Entry("undo-save", "Give a file back what it held before it was changed in place."),
    ),
    "Git": (Entry("git", "Let git diff and merge models."),),
    "Merging": (
        Entry("merge", "Merge two changes of one model, node by node."),
        Entry("conflicts", "List the conflicts of merges, and what each side has."),
        Entry("resolve", "Settle conflicts of a merge by taking one side."),
        Entry("mergetool", "Settle the conflicts of a merge one by one, on a screen."),
    ),
    "Constants": (Entry("tensor", "Turn constants into base64 and back; get tensors out of a model."),),
    "Tools": (
        Entry("schema", "Print the JSON Schema of a document."),
        Entry("completion", "Print the completion script of a shell."),
    ),
}
"""The commands in the order of the help."""

COMMANDS: Final = tuple(entry.name for entries in SECTIONS.values() for entry in entries)


class LazyGroup(click.Group):
    """A group that imports a command when it is called, and ends every failure in one line and its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"onnxjson.cli.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with; a wrong name is answered with the nearest right one."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command {output.quoted(name)}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, by section and without importing one."""
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(entry.name.ljust(len("completion")), entry.summary) for entry in entries])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; whoever stopped reading standard output ends it without a word."""
        try:
            result: object = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            output.abandon_stdout()
            ctx.exit(failures.PIPE_CLOSED)
        return result

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **extra: Any) -> Any:
        """Run the command line `args` and exit."""
        output.make_robust()
        debugging = os.environ.get("ONNXJSON_DEBUG") == "1"
        try:
            result = super().main(args, prog_name, standalone_mode=False, **extra)
        except Exception as error:  # the one place that turns any failure into a line and a code
            if debugging and failures.is_internal(error):
                raise
            sys.exit(failures.report(error))
        sys.exit(result if isinstance(result, int) else 0)


@click.group(
    "onnxjson",
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="onnxjson COMMAND --help says more. Exit codes: 0 fine, 1 findings or differences, from 2 on failures.",
)
@click.option("--version", is_flag=True, help="Print the version.")
@click.pass_context
def onnxjson(ctx: click.Context, *, version: bool) -> None:
    """ONNX models as text that is pleasant to read, edit and diff, and back without loss."""
    if version:
        from importlib.metadata import version as installed_version

        click.echo(f"onnxjson {installed_version('onnxjson')}")
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())

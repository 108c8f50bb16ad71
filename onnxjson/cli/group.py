"""The program as a command of click; the module of each of its commands is imported when that is called."""

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

from onnxjson.cli import failures, output
from onnxjson.cli.overview import COMMANDS, ENTRIES, SECTIONS, meant_by
from onnxjson.model.display import whole_texts


class LazyGroup(click.Group):
    """A group that imports a command when it is called, and turns every failure into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        attribute = cmd_name.replace("-", "_")
        command: click.Command = getattr(
            importlib.import_module(f"onnxjson.cli.{entry.module or attribute}"), f"{attribute}_command"
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with; the error for an unknown name says what to write."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            hint = meant_by(name, args[1:], lambda command: self._options_of(ctx, command))
            raise click.UsageError(f"there is no command {output.quoted(name)}{f'; {hint}' if hint else ''}", ctx)
        return super().resolve_command(ctx, args)

    def _options_of(self, ctx: click.Context, line: str) -> set[str]:
        """The options of the command that a line begins with."""
        command: click.Command | None = self
        for word in line.split():
            inner = command.get_command(ctx, word) if isinstance(command, click.Group) else None
            command = inner or command
        return {name for each in command.get_params(ctx) for name in each.opts} if command else set()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section, without importing one."""
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{entry.name:<9}", entry.summary) for entry in entries])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a reader that closes standard output early ends it quietly.

        Names are shown in full unless a terminal shows them; there, no two are cut to the same text.
        """
        from onnxjson.rendering.tables import distinct_texts

        try:
            with whole_texts(not output.is_terminal(sys.stdout)), distinct_texts():
                try:
                    result: object = super().invoke(ctx)
                finally:
                    _report_reading(ctx)
            if sys.stdout is not None and not sys.stdout.closed:  # a server closes it at its end
                sys.stdout.flush()
        except BrokenPipeError:
            output.abandon_stdout()
            ctx.exit(failures.PIPE_CLOSED)
        return result

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **extra: Any) -> Any:
        """Run the command line `args` and exit."""
        try:
            output.make_robust()
            output.typed[:] = sys.argv[1:] if args is None else args
            result = super().main(args, prog_name, standalone_mode=False, **extra)
        except Exception as error:  # the one place that turns any failure into a line and a code
            sys.exit(failures.report_failure(error))
        sys.exit(result if isinstance(result, int) else 0)


def _report_reading(ctx: click.Context) -> None:
    """With ``--verbose``: how much was fetched of each URL."""
    remote = sys.modules.get("onnxjson.storage.remote")
    if remote is not None and ctx.meta.get(output.VERBOSE):
        for url, fetched, size in remote.read_so_far():
            output.talk(f"read {fetched:,} of {size:,} bytes of {url}")


@click.group(
    "onnxjson",
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Run onnxjson COMMAND --help for details, onnxjson help more for the other commands. Exit codes: 0 success, "
    "1 findings or differences, else a failure.",
)
@click.option("--version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def onnxjson(ctx: click.Context, *, version: bool) -> None:
    """Read, edit, diff and merge ONNX models as text, without loss."""
    if version:
        from importlib.metadata import version as installed_version

        click.echo(f"onnxjson {installed_version('onnxjson')}")
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())

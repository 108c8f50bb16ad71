"""``onnxjson tui``: the terminal workbench."""

import importlib
import sys

import click

from onnxjson.cli import paging


@click.command("tui")
@click.argument("models", metavar="[MODEL [OTHER]]", nargs=-1)
@click.option("--merge", is_flag=True, help="Settle the conflicts of a merge in MODEL, as `onnxjson mergetool` does.")
@click.option("--readonly", is_flag=True, help="Refuse every change and every save.")
@click.option(
    "--remote",
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
    show_default=True,
    help="Save bytes on a slow line; auto: over SSH.",
)
@click.option("--ascii", "ascii_only", is_flag=True, default=None, help="Draw with ASCII characters only.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
def command(
    models: tuple[str, ...], *, merge: bool, readonly: bool, remote: str, ascii_only: bool | None, no_mouse: bool
) -> None:
    """Browse and edit a model in the terminal.

    With two models: see what differs between them. MODEL is a .onnx or .onnx.json file, REV:PATH of a git
    repository, or the folder of a trace. Without one, recent files are offered.
    """
    if merge and (len(models) != 1 or readonly):
        raise click.UsageError("--merge is for one file, which is written")
    if len(models) > 2:
        raise click.UsageError("name one model, or two to see what differs")
    if not (paging.is_terminal(sys.stdin) and paging.is_terminal(sys.stdout)):
        raise click.UsageError("the workbench needs a terminal; `onnxjson show` and `onnxjson diff` print anywhere")
    # The terminal program stands on top of the command line; it is only imported when it is asked for.
    code: int
    if merge:
        settling = importlib.import_module("onnxjson_tui.settling")
        code = settling.run_on(models[0], remote=remote, ascii_only=ascii_only, mouse=not no_mouse)
    else:
        start = importlib.import_module("onnxjson_tui.start")
        code = start.start(models, readonly=readonly, remote=remote, ascii_only=ascii_only, mouse=not no_mouse)
    if code:
        raise click.exceptions.Exit(code)

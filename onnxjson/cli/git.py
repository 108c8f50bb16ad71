"""``onnxjson git``: models in git, set up, taken out again, looked at; and the checks for its hooks."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from onnxjson.cli import failures, output
from onnxjson.cli.paths import FilePath
from onnxjson.errors import OnnxJsonError

if TYPE_CHECKING:
    from onnxjson.git.installation import Scope

_INLINE_LIMIT: Final = 64 * 1024


@click.group("git")
def command() -> None:
    """Let git diff and merge models.

    `install` teaches git to show and merge .onnx and .onnx.json, `uninstall` takes that out again, `doctor` says what
    is set where and whether it works. The others are for hooks.

    \b
    onnxjson git install
    git log -p model.onnx
    git onnxdiff main -- model.onnx
    """


def _scope(function: Callable[..., None]) -> Callable[..., None]:
    for name, text in (
        ("worktree", "Only this work tree of several."),
        ("global", "All repositories of the user."),
        ("local", "This repository (the default)."),
    ):
        function = click.option(f"--{name}", "scope", flag_value=name, default="local", help=text)(function)
    return function


@command.command("install")
@_scope
def install(scope: "Scope") -> None:
    """Teach git to show and merge models.

    Writes settings of git and a marked block in .gitattributes, after trying them out. Doing it twice changes nothing.
    """
    from onnxjson.git import installation

    place = installation.place_of(scope)
    with output.working("trying the lines out"):
        said = installation.install(place, sys.executable)
    for text in said or ["nothing to do: everything is there"]:
        output.talk(text)


@command.command("uninstall")
@_scope
def uninstall(scope: "Scope") -> None:
    """Take out what install wrote, and nothing else."""
    from onnxjson.git import installation

    for text in installation.uninstall(installation.place_of(scope)) or ["nothing to do: nothing is there"]:
        output.talk(text)


@command.command("doctor")
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Say what is set where, and whether it works; exit 1 if something does not."""
    from onnxjson.git.diagnosis import diagnose

    sick = False
    with output.working("trying the lines out"):
        found = list(diagnose(Path.cwd(), sys.executable))
    for each in found:
        output.data(f"{'ok ' if each.is_well else 'BAD'} {each.text}")
        sick = sick or not each.is_well
    ctx.exit(1 if sick else 0)


@command.command("check-sync")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=FilePath())
@click.pass_context
def check_sync(ctx: click.Context, paths: tuple[Path, ...]) -> None:
    """Say which m.onnx and m.onnx.json, side by side, are not the same model; exit 1 if any.

    Name either of them or both; a file without the other is fine.
    """
    from onnxjson.git import hooks

    pairs = dict.fromkeys(pair for path in paths if (pair := hooks.pair_of(path)) is not None)
    code = 0
    for binary, text in pairs:
        try:
            with output.working(f"comparing {binary} and {text}"):
                agree = hooks.agree(binary, text)
        except OnnxJsonError as error:
            code = failures.report(error)
            continue
        if not agree:
            hint = f"onnxjson diff {binary} {text} says how, onnxjson convert makes one of the other"
            output.data(f"{binary} and {text} differ: {hint}")
            code = code or 1
    ctx.exit(code)


@command.command("check-inline")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=FilePath())
@click.option(
    "--limit",
    metavar="BYTES",
    type=click.IntRange(min=0),
    default=_INLINE_LIMIT,
    show_default=True,
    help="The biggest tensor that may stand in a text.",
)
@click.pass_context
def check_inline(ctx: click.Context, paths: tuple[Path, ...], *, limit: int) -> None:
    """Say which texts have big weights in them, as base64; exit 1 if any."""
    from onnxjson.git import hooks

    code = 0
    for path in paths:
        try:
            with output.working(f"reading {path}"):
                found = hooks.inline_weights(path, limit)
        except OnnxJsonError as error:
            code = failures.report(error)
            continue
        if found:
            what = f"{output.counted(len(found), 'tensor')}, {sum(found):,} bytes"
            hint = "write it anew: onnxjson convert MODEL.onnx --weights blobs"
            output.data(f"{path} has big weights in it ({what}); {hint}")
            code = code or 1
    ctx.exit(code)

"""``onnxjson mergetool``: conflicts of a merge, settled on a screen; what `git mergetool` starts."""

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from onnxjson.cli import conflicts, output
from onnxjson.cli.paths import FilePath
from onnxjson.cli.resolve import say_errors

if TYPE_CHECKING:
    from onnxjson.merging.settling import Settling

# By its name: the screen imports the command line, and not the other way round.
_SCREEN: Final = "onnxjson_tui.settling"


@click.command("mergetool")
@click.argument("paths", metavar="[BASE OURS THEIRS] FILE", nargs=-1, required=True, type=FilePath())
@click.pass_context
def command(ctx: click.Context, paths: tuple[Path, ...]) -> None:
    """Settle the conflicts of a merge one by one, on a screen.

    Git starts it by itself after `onnxjson git install`: git mergetool -t onnxjson. Exits 0 when no conflict is left in
    FILE, else 16; 1 where what was settled has errors. Without a terminal lists the conflicts. Where FILE has none
    recorded, as another driver merged it, the three sides are merged first.

    \b
    git mergetool -t onnxjson m.onnx
    onnxjson mergetool m.onnx
    """
    if len(paths) not in (1, 4):
        raise click.UsageError("name the file with conflicts, or the base, ours, theirs and the file")
    from onnxjson.merging.settling import open_settling

    path = paths[-1]
    with output.working(f"reading {path}"):
        settling = open_settling(path, (paths[0], paths[1], paths[2]) if len(paths) == 4 else None)
    if settling.conflicts and sys.stdin.isatty() and sys.stdout.isatty():
        importlib.import_module(_SCREEN).run(settling)
        if settling.errors:
            say_errors(settling.path, settling.errors, f"settled all conflicts of {settling.path}")
    elif settling.conflicts:
        conflicts.listed(path, settling.left)
        output.talk(f"no terminal to ask on; onnxjson resolve {path} settles them")
    else:
        _finish(settling)
    ctx.exit(settling.exit_code)


def _finish(settling: "Settling") -> None:
    if settling.is_changed:
        settling.save()
        what = f"merged {settling.path} without conflicts"
        if settling.errors:
            say_errors(settling.path, settling.errors, what)
        else:
            output.talk(f"{what} ({output.size(settling.path)})")
    else:
        output.talk(f"{settling.path} has no conflicts")

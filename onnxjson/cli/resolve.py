"""``onnxjson resolve``: conflicts of a merge settled."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxjson.cli import failures, findings, output
from onnxjson.cli.paths import FilePath
from onnxjson.errors import SelectorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnxjson.checking import Finding
    from onnxjson.merging.resolving import Choice


@click.command("resolve")
@click.argument("path", metavar="FILE", type=FilePath())
@click.option("--ours", "choice", flag_value="ours", help="Take what ours has.")
@click.option("--theirs", "choice", flag_value="theirs", help="Take what theirs has.")
@click.option("--base", "choice", flag_value="base", help="Take what both sides began with.")
@click.option("--id", "ids", metavar="ID", multiple=True, help="Only this conflict; may be given several times.")
@click.pass_context
def command(ctx: click.Context, path: Path, *, choice: "Choice | None", ids: tuple[str, ...]) -> None:
    """Settle conflicts of a merge by taking one side.

    Without --id settles all. With the last conflict FILE becomes what its name says, a binary or a text. What was
    there before goes to the user's state folder (`onnxjson undo-save`). In git, add the file afterwards. Exits 1 where
    the model has errors then: choices of several ids may need each other. The file is written nevertheless.

    \b
    onnxjson resolve m.onnx --theirs
    onnxjson resolve m.onnx.json --ours --id 2 --id 3
    """
    if choice is None:
        raise click.UsageError("say which side to take: --ours, --theirs or --base")
    from onnxjson import files
    from onnxjson.merging.resolving import resolve
    from onnxjson.merging.settling import errors_of
    from onnxjson.merging.storing import save

    with output.working(f"reading {path}"):
        loaded = files.load(path, bind=False, conflicted=True)
    if not loaded.conflicts:
        raise SelectorError(f"{path} has no conflicts")
    output.findings(loaded.warnings, limit=failures.SHOWN)
    model, left = resolve(loaded.model, loaded.conflicts, choice, ids or None)
    form = files.format_for(path)
    if form != "json" and not left:
        model = files.bound(model, folder=path.resolve().parent, weights_from=None)
    with findings.of_failed_writing(path, loaded), output.working(f"writing {path}"):
        save(model, left, path, form, expect=loaded.identity, backup=True)
    settled = output.counted(len({each.id for each in loaded.conflicts} - {each.id for each in left}), "conflict")
    if left:
        output.talk(f"settled {settled} of {path}; {len({each.id for each in left}):,} left: onnxjson conflicts {path}")
        return
    errors = findings.located(path, files.load(path, bind=False)._replace(model=model), list(errors_of(model)))
    if errors:
        say_errors(path, errors, f"settled {settled} of {path}")
        ctx.exit(1)
    output.talk(f"settled {settled} of {path}, which is a model again ({output.size(path)})")


def say_errors(path: Path, errors: "Sequence[Finding]", what: str) -> None:
    """Say that a file was written and has errors, which, and how to go back."""
    from onnxjson.merging.settling import way_back

    output.findings(errors, limit=failures.SHOWN)
    output.talk(f"{what}; it is written, and has {output.counted(len(errors), 'error')}: {way_back(path)}")

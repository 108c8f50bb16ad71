"""``onnxjson merge``: two changes of one model -> one model."""

from pathlib import Path

import click

from onnxjson.cli import conflicts, output, sides
from onnxjson.cli.paths import DestinationPath
from onnxjson.errors import ConflictError


@click.command("merge")
@click.argument("base", type=sides.SidePath())
@click.argument("ours", type=sides.SidePath())
@click.argument("theirs", type=sides.SidePath())
@click.option(
    "-o",
    "--output",
    "destination",
    metavar="OUT",
    required=True,
    type=DestinationPath(),
    help="Write to OUT, replacing the file that is there.",
)
@click.pass_context
def command(ctx: click.Context, base: Path, ours: Path, theirs: Path, *, destination: Path) -> None:
    """Merge two changes of one model, node by node.

    BASE is the model that both began with; each of the three is a file or REV:path. Which node is which is found by
    structure, so that one side may have renamed everything. Exits 0 for a merge without conflicts. Where both sides
    changed one thing differently, exits 16, and OUT is a text that holds both sides of every conflict.

    \b
    onnxjson merge base.onnx mine.onnx other.onnx -o merged.onnx
    onnxjson merge main~3:m.onnx main:m.onnx topic:m.onnx -o m.onnx
    """
    from onnxjson import files
    from onnxjson.merging.merge import merge
    from onnxjson.merging.storing import save

    with (
        sides.opened(base, bind=True) as first,
        sides.opened(ours, bind=True) as mine,
        sides.opened(theirs, bind=True) as other,
    ):
        with output.working("merging"):
            merged = merge(first.model, mine.model, other.model)
        with output.working(f"writing {destination}"):
            save(merged.model, merged.conflicts, destination, files.format_for(destination))
    if merged.is_clean:
        output.talk(f"wrote {destination} ({output.size(destination)})")
        return
    conflicts.listed(destination, merged.conflicts)
    ctx.exit(ConflictError.exit_code)

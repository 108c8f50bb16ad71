"""``onnxjson convert``: one model, another form."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from onnxjson.cli import external_data, failures, findings, output
from onnxjson.cli.paths import DestinationPath, FilePath, refuse_sources
from onnxjson.errors import OutputError

if TYPE_CHECKING:
    from onnxjson.canonical.payload_forms import WeightsMode
    from onnxjson.document import Model
    from onnxjson.files import Format, Loaded

_ENDINGS: Final[dict["Format", str]] = {"onnx": ".onnx", "json": ".onnx.json", "protojson": ".onnxjson"}
"""The ending of a file that is named after its source."""

_KNOWN_ENDINGS: Final = (".onnx.json", ".onnxjson", ".onnx", ".json", ".pb")

STDOUT: Final = "-"


@click.command("convert")
@click.argument("source", metavar="SRC", type=FilePath())
@click.option(
    "-o",
    "--output",
    "destination",
    metavar="DST",
    type=DestinationPath(allow_dash=True),
    help="Write to DST, replacing the file that is there; - is standard output.",
)
@click.option(
    "--format",
    "target",
    type=click.Choice(["onnx", "json", "protojson"]),
    help="The form to write; else the ending of DST decides.",
)
@click.option(
    "--weights",
    type=click.Choice(["inline", "blobs", "digest"]),
    default="inline",
    show_default=True,
    help="How tensors of more than 64 elements stand in a text: as base64, each in a file beside it, as sha256 only.",
)
@click.option(
    "--blobs",
    metavar="FOLDER",
    help="The folder of the files of --weights blobs, beside the text; m.blobs for m.onnx.json.",
)
@click.option(
    "--weights-from",
    metavar="MODEL",
    type=FilePath(),
    help="The model that has the bytes of tensors of which SRC has only the sha256.",
)
@external_data.options
@click.option("--lossy", is_flag=True, help="Write proto-JSON even where it cannot hold all of the model.")
@click.option("--drop-orphans", is_flag=True, help="Leave out metadata whose element is not there any more.")
def command(
    source: Path,
    destination: Path | None,
    target: "Format | None",
    *,
    weights: "WeightsMode",
    blobs: str | None,
    weights_from: Path | None,
    lossy: bool,
    drop_orphans: bool,
    **external: Any,
) -> None:
    """Write a model in another form: .onnx, .onnx.json, proto-JSON.

    Without -o the result stands beside SRC under the other ending (m.onnx and m.onnx.json), and a file that is
    already there is left alone. What SRC holds is decided by its content, not by its name.

    \b
    onnxjson convert m.onnx                      writes m.onnx.json
    onnxjson convert m.onnx.json -o new.onnx     writes new.onnx
    onnxjson convert m.onnx -o - | less          shows it
    onnxjson convert m.onnx --weights blobs      keeps the weights in m.blobs/
    onnxjson convert m.onnx.json --weights-from m.onnx -o new.onnx
    """
    from onnxjson import files

    moves = external_data.Moves(**external)
    moves.check()
    with output.working(f"reading {source}"):
        loaded = files.load(source, drop_orphans=drop_orphans, weights_from=weights_from)
    place = _place(source, loaded, destination, target, weights_from)
    form = target or (_other(loaded) if place is None or destination is None else files.format_for(place))
    if form != "json" and (weights != "inline" or blobs is not None):
        raise click.UsageError("--weights and --blobs are for texts; a binary and proto-JSON hold their weights")
    if blobs is not None and weights != "blobs":
        raise click.UsageError("--blobs names the folder of --weights blobs; give both")
    _warn(source, loaded, form, lossy=lossy)
    if place is None:
        with findings.of_failed_writing(source, loaded):
            _to_stdout(external_data.taken_in(loaded.model, source, moves), form, lossy=lossy, weights=weights)
        return
    data_name = _stem(place.name) + ".data"
    moved = external_data.moved(loaded.model, source, place, form, moves, data_name=data_name)
    with findings.of_failed_writing(source, loaded), moved as model:
        with output.working(f"writing {place}"):
            may_replace = place == destination
            files.save(model, place, form, lossy=lossy, weights=weights, blobs=blobs, replace=may_replace)
        output.talk(f"wrote {place} ({output.size(place)})")


def _other(loaded: "Loaded") -> "Format":
    """The form that a person wants of a file who does not say: text of a binary, a binary of any text."""
    return "json" if loaded.format == "onnx" else "onnx"


def _place(
    source: Path, loaded: "Loaded", destination: Path | None, target: "Format | None", weights_from: Path | None
) -> Path | None:
    """The file to write, None for standard output.

    Raises:
        OutputError: it is the source or holds weights of it, or nobody named it and it is there.
        click.UsageError: nothing says which form it is to have.
    """
    if destination is not None and str(destination) == STDOUT:
        return None
    beside = source.with_name(_stem(source.name) + _ENDINGS[target or _other(loaded)])
    if destination is None and beside == source:
        raise OutputError(f"{source} already has that form; name another file with -o DST")
    if destination is None or destination.is_dir():
        # A person who names no file asks for none to be replaced.
        place = beside if destination is None else destination / beside.name
        if os.path.lexists(place):
            raise OutputError(f"{place} is already there; to replace it: -o {place}")
        return place
    if target is None and not destination.name.lower().endswith(_KNOWN_ENDINGS):
        endings = ", ".join(_ENDINGS.values())
        raise click.UsageError(f"{destination} has none of the endings {endings}; say with --format what to write")
    refuse_sources(destination, source, loaded.model, weights_from)
    return destination


def _stem(name: str) -> str:
    """`name` without the ending that says which form it has."""
    for ending in _KNOWN_ENDINGS:
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return name


def _to_stdout(model: "Model", form: "Format", *, lossy: bool, weights: "WeightsMode") -> None:
    from onnxjson import files

    if weights == "blobs":
        raise click.UsageError("blobs stand beside a text; name the text with -o DST")

    if form == "onnx" and sys.stdout.isatty():
        raise click.UsageError("a binary model is not for a terminal; send it on, or write it with -o DST")
    files.write(model, output.Stdout(), form, lossy=lossy, weights=weights)


def _warn(source: Path, loaded: "Loaded", form: "Format", *, lossy: bool) -> None:
    """Say what looks wrong with the model, and what is going to be lost; it is converted all the same."""
    found = [*loaded.warnings, *findings.of_structure(source, loaded)]
    if lossy and form == "protojson":
        from onnxjson import protojson

        found += findings.located(source, loaded, list(protojson.losses(loaded.model)))
    output.findings(found, limit=failures.SHOWN)

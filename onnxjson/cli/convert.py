"""``onnxjson convert`` and ``fmt``: models in another form, their weights in other files or in them; canonical form."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec

from onnxjson.cli import failures, options, output, reports
from onnxjson.cli.paths import ENDINGS, KNOWN_ENDINGS, STDOUT, FilePath, refuse_sources, stem
from onnxjson.codecs.tensor_text import WeightsMode
from onnxjson.codecs.text_file import is_other_json
from onnxjson.codecs.wire_writing import message_size
from onnxjson.model.dataflow import sort_nodes
from onnxjson.model.document import Model
from onnxjson.model.errors import EncodeError, LimitError, OnnxJsonError, OutputError, SelectorError
from onnxjson.model.index import Index, Scope
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import Body, rebuild, tensors_of
from onnxjson.patterns.names import Wildcards
from onnxjson.running import checking
from onnxjson.storage import external_files, files, named_files
from onnxjson.storage.files import Format, Loaded
from onnxjson.storage.identity import open_source

with_external: Final = options.option("--with-external", "Copy external data to the folder of OUT.")


class Moves(NamedTuple):
    """Options for weights in other files."""

    internalize: bool = False
    externalize: bool = False
    threshold: int | None = None
    data_name: str | None = None
    shard_size: int | None = None
    tensors: str | None = None
    with_external: bool = False
    trust_links: bool = False
    allow_sparse: bool = False


def _checked(**values: Any) -> Moves:
    moves = Moves(**values)
    described = (moves.threshold, moves.data_name, moves.shard_size, moves.tensors)
    if not moves.externalize and any([each is not None for each in described]):
        names = "--threshold, --shard-size, --tensors and --data-file"
        raise click.UsageError(f"{names} describe a data file; add --externalize")
    if moves.internalize and moves.with_external:
        raise click.UsageError("--internalize leaves no other files to copy; leave out --with-external")
    if moves.data_name in ("", ".", "..") or (moves.data_name is not None and "/" in moves.data_name):
        raise click.UsageError("--data-file is a name without a folder: data files are next to the model")
    return moves


moves_options: Final = options.gathered(
    options.together(
        options.option("--internalize", "Move external data into the model."),
        options.option("--externalize", "Move large tensors to one new data file next to OUT."),
        options.option(
            "--threshold SIZE",
            "With --externalize: size of the smallest tensor to move, such as 4k; default: 1024 bytes.",
        ),
        options.option(
            "--tensors NAME",
            "With --externalize: move only constants with this name, of any size; wildcards work, such as '*.lora_*'.",
        ),
        options.option(
            "--data-file NAME",
            "With --externalize: name of the data file, which may end in .safetensors; default: m.data for "
            "the OUT m.onnx.",
            "data_name",
        ),
        options.option("--shard-size SIZE", "With --externalize: write data files of at most SIZE, such as 5G."),
        with_external,
        options.trust_links,
        options.option("--allow-sparse", "Read weights even if their file is sparse (mostly holes)."),
    ),
    _checked,
    "moves",
)


@contextmanager
def moved(model: Model, source: Path, place: Path, form: Format, moves: Moves, *, data_name: str) -> Iterator[Model]:
    """Provide the model to save at `place`, after writing the files that it refers to.

    A data file written for it, `data_name` unless the options name one, is removed if the body fails to save the model.
    """
    changed = _internalize(model, source, moves)
    if not moves.with_external:
        advice = "add --with-external to copy that file, or "
        named_files.refuse_left_behind(changed, source, place, advice)
    if not moves.externalize:
        _check_size(changed, place, form, moves)
        _copy(changed, source, place, moves)
        yield changed
    else:
        data_file = place.with_name(moves.data_name or data_name)
        if os.path.realpath(data_file) == os.path.realpath(place):
            raise click.UsageError(f"{data_file} would be both the model and its data; choose another --data-file")
        smallest = external_files.THRESHOLD if moves.tensors is None else 1
        threshold = smallest if moves.threshold is None else moves.threshold
        is_chosen = Wildcards(moves.tensors).matches if moves.tensors is not None else lambda _: True
        with output.working(f"writing {data_file}", writes=lambda: output.weight_bytes(changed)):
            result = external_files.externalize(
                changed, data_file, threshold=threshold, shard_size=moves.shard_size, is_chosen=is_chosen
            )
        if moves.tensors is not None and not result.moved:
            raise SelectorError(f"no constant named {output.quoted(moves.tensors)} can be moved")
        with ExitStack() as stack:
            for written in result.new_files:
                stack.enter_context(external_files.removed_on_failure(written, place))
            if result.moved:
                _check_size(result.model, place, form, moves)
            _copy(changed, source, place, moves)
            yield result.model
        if result.moved:
            for written in result.new_files or [data_file]:
                count = "" if moves.shard_size else f", {output.counted(result.moved, 'tensor')}"
                output.talk(f"wrote {written} ({output.size(written)}{count})")
        else:
            output.talk(f"no raw tensor has {threshold:,} bytes or more, so {data_file} was not written")
        if result.left:
            stay = "tensor stays" if result.left == 1 else "tensors stay"
            output.talk(f"{result.left:,} big {stay} in the model: the data are not raw bytes that fit dtype and shape")
        if outside := sum([is_external(tensor) for tensor in tensors_of(changed)]):
            output.talk(f"{output.counted(outside, 'constant')} already in other files; --internalize moves them too")


def _internalize(model: Model, source: Path, moves: Moves) -> Model:
    if not moves.internalize:
        return model
    return external_files.internalize(
        model, source.parent, model_file=source, trust_links=moves.trust_links, allow_sparse=moves.allow_sparse
    )


def _check_size(model: Model, place: Path, form: Format, moves: Moves) -> None:
    """Raise, before anything is written, unless the model fits into a file of its form."""
    if form != "onnx" or not (moves.internalize or moves.with_external):
        return
    size = message_size(model)
    if size > MESSAGE_BYTES:
        raise LimitError(
            f"{place} would have {size:,} bytes, and protobuf reads at most {MESSAGE_BYTES:,}; "
            "leave the weights in other files (without --internalize, or with --externalize too)"
        )


def _copy(model: Model, source: Path, place: Path, moves: Moves) -> None:
    if not moves.with_external or place.parent.resolve() == source.parent.resolve():
        return
    with output.working(f"copying weights to {place.parent}", writes=lambda: output.weight_bytes(model)):
        copied = external_files.copy_files(
            model,
            source.parent,
            place.parent,
            model_file=source,
            taken=place,
            trust_links=moves.trust_links,
            allow_sparse=moves.allow_sparse,
        )
    for path in copied:
        output.talk(f"copied {path} ({output.size(path)})")


@options.command("convert")
@reports.with_json
@click.argument("source", metavar="MODEL", type=FilePath())
@options.out("Write to OUT, replacing an existing file; - is standard output.")
@options.to()
@options.option(
    "--weights",
    "How a text stores tensors of more than 64 elements: as base64, in one file each, or as sha256 only.",
    type=click.Choice(["inline", "blobs", "digest"]),
    default="inline",
)
@options.option("--blobs NAME", "With --weights blobs: folder of the files, next to OUT; default: m.blobs.")
@options.weights_from
@moves_options
@options.option("--lossy", "Write proto-JSON even if it cannot represent the whole model.")
@options.drop_orphans
def convert_command(
    source: Path,
    destination: Path | None,
    target: Format | None,
    *,
    weights: WeightsMode,
    blobs: str | None,
    weights_from: Path | None,
    lossy: bool,
    drop_orphans: bool,
    moves: Moves,
) -> None:
    """Convert a model between .onnx, .onnx.json and proto-JSON.

    Without -o, writes next to MODEL with the other extension (m.onnx and m.onnx.json), unless that file exists. The
    format of MODEL is detected from its content, not from its name.

    \b
    onnxjson convert m.onnx                      # writes m.onnx.json
    onnxjson convert m.onnx.json -o new.onnx
    onnxjson convert m.onnx -o - | less
    onnxjson convert m.onnx --weights blobs      # keeps the weights in m.blobs/
    onnxjson convert m.onnx.json --weights-from m.onnx -o new.onnx
    """
    with output.reading(source):
        loaded = files.load(source, drop_orphans=drop_orphans, weights_from=weights_from)
    place = _place(source, loaded, destination, target, weights_from)
    form = target or (_other(loaded) if place is None or destination is None else files.format_for(place))
    if form != "json" and (weights != "inline" or blobs is not None):
        raise click.UsageError("--weights and --blobs are for .onnx.json; the other formats contain the weights")
    if blobs is not None and weights != "blobs":
        raise click.UsageError("--blobs names the folder of --weights blobs; use both")
    _warn(source, loaded, form, lossy=lossy)
    if form == "protojson":
        output.tell_memory([loaded.model], "writing proto-JSON", copies=3, inside=True)
    if place is None:
        with checking.of_failed_writing(source, loaded):
            if moves.externalize or moves.with_external:
                raise click.UsageError("standard output has no files next to it; name a file with -o OUT")
            model = _internalize(loaded.model, source, moves)
            if weights == "blobs":
                raise click.UsageError("blobs are files next to a text; name the text with -o OUT")
            write_stdout(model, form, lossy=lossy, weights=weights)
        return
    data_name = f"{stem(place.name)}.data"
    if not (moves.internalize or moves.with_external):
        named_files.refuse_lost(loaded.model, source, place)
    with (
        checking.of_failed_writing(source, loaded),
        moved(loaded.model, source, place, form, moves, data_name=data_name) as model,
    ):
        with output.writing(place, model):
            may_replace = place == destination
            files.save(model, place, form, lossy=lossy, weights=weights, blobs=blobs, replace=may_replace)
        output.wrote(place)


def _other(loaded: Loaded) -> Format:
    """The form to convert to by default: text of a binary, a binary of any text."""
    return "json" if loaded.format == "onnx" else "onnx"


def _place(
    source: Path, loaded: Loaded, destination: Path | None, target: Format | None, weights_from: Path | None
) -> Path | None:
    if destination is not None and str(destination) == STDOUT:
        return None
    adjacent = source.with_name(stem(source.name) + ENDINGS[target or _other(loaded)])
    if destination is None and adjacent == source:
        raise OutputError(f"{source} already has that format; name another file with -o OUT")
    if destination is None or destination.is_dir():
        # Without -o, an existing file is not replaced, since the user did not name it.
        place = adjacent if destination is None else destination / adjacent.name
        if os.path.lexists(place):
            is_other = place.is_file() and is_other_json(open_source(place))
            if is_other:
                raise OutputError(f"{place} is JSON of another program; name another file with -o OUT")
            raise OutputError(f"{place} already exists; to replace it: -o {place}")
        return place
    if target is None and not destination.name.lower().endswith(KNOWN_ENDINGS):
        endings = ", ".join(ENDINGS.values())
        raise click.UsageError(f"{destination} has none of the extensions {endings}; choose the format with --to")
    refuse_sources(destination, source, loaded.model, weights_from)
    return destination


def write_stdout(model: Model, form: Format, *, lossy: bool = False, weights: WeightsMode = "inline") -> None:
    """Write a model to standard output; a binary to a terminal is a click.UsageError."""
    if form == "onnx" and output.is_terminal(sys.stdout):
        raise click.UsageError("a binary model is not for a terminal; pipe it to a program, or write it with -o OUT")
    files.write(model, output.stdout(), form, lossy=lossy, weights=weights)


def _warn(source: Path, loaded: Loaded, form: Format, *, lossy: bool) -> None:
    """Print findings about the model, and what the new form loses; it is converted nevertheless."""
    of_model = checking.of_model(source, loaded, most=output.SHOWN)
    shown = [msgspec.structs.replace(each, severity="warning") for each in of_model[: output.SHOWN]]
    findings = [*loaded.warnings, *shown, *of_model[output.SHOWN :]]
    if lossy and form == "protojson":
        from onnxjson.codecs import protojson

        findings += checking.located(source, loaded, list(protojson.losses(loaded.model)))
    output.findings(findings, limit=output.SHOWN)


@options.command("fmt")
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=FilePath())
@options.option("--check", "Write nothing; list the files that would change and exit 1.", "only_check")
@options.option("--sort", "Put nodes after the producers of their inputs; other nodes keep their order.", "sorts")
@options.option("--prune-blobs", "Delete blobs that no text in the folder refers to.", "prunes")
@options.drop_orphans
@reports.form_options(("text", "json"), "Format of the report on what was changed; default: text.")
@click.pass_context
def fmt_command(
    ctx: click.Context, /, paths: tuple[Path, ...], *, prunes: bool, form: str | None, **given: bool
) -> None:
    """Convert model texts to their canonical form.

    Changes files in place and keeps a backup of each; `onnxjson undo-save` restores it. A canonical file stays
    untouched. The model stays the same, bit for bit, except for the order of nodes with --sort; comments are dropped.

    \b
    onnxjson fmt m.onnx.json
    onnxjson fmt --check models/*.onnx.json
    onnxjson fmt --sort m.onnx.json
    """
    from onnxjson.rendering.values import as_json
    from onnxjson.storage.pruning import prune_blobs

    only_check = given["only_check"]
    if only_check and prunes:
        raise click.UsageError("--check writes nothing, and --prune-blobs deletes files; choose one of them")
    code, outcomes = 0, list[dict[str, object]]()
    for path in output.numbered(paths):
        try:
            is_changed = _format(path, **given)
            outcomes.append({"model": str(path), "changed": is_changed, "written": is_changed and not only_check})
            if is_changed and only_check:
                code = code or 1
                if form != "json":
                    output.data(str(path))
            for blob in prune_blobs(path) if prunes else ():
                output.talk(f"removed {blob}")
        except OnnxJsonError as error:
            code = failures.leave_or_report(path, error) or code
            outcomes.append({"model": str(path), "error": str(error)})
    if form == "json":
        reports.View("json").write([as_json(outcomes) + "\n"])
    ctx.exit(code)


def _format(path: Path, *, only_check: bool, sorts: bool, drop_orphans: bool) -> bool:
    """Format one file, or only check it; return whether it was not canonical."""
    with output.reading(path):
        loaded = files.load(path, drop_orphans=drop_orphans, bind=False)
    if loaded.format != "json":
        kind = "a binary model" if loaded.format == "onnx" else "proto-JSON"
        raise EncodeError(f"{path} is {kind}, and fmt formats .onnx.json; first run: onnxjson convert {path}")
    if sorts:
        loaded = loaded._replace(model=_sorted(loaded.model, path))
    if files.is_canonical(path, loaded):
        return False
    output.findings(loaded.warnings, limit=output.SHOWN)
    if not only_check:
        with output.writing(path, loaded.model):
            files.save(loaded.model, path, "json", weights="keep", expect=loaded.identity, backup=True)
        output.talk(f"formatted {path}; {output.undo(path)}")
    return True


def _sorted(model: Model, path: Path) -> Model:
    """Return a model with the nodes of all graphs and functions in topological order."""

    def change(scope: Scope, graph: Body) -> Body:
        nodes = sort_nodes(graph.node)
        if nodes is None:
            raise EncodeError(f"{path}: the nodes of {scope.address} depend on each other in a cycle; check lists them")
        return graph if nodes is graph.node else msgspec.structs.replace(graph, node=nodes)

    return rebuild(Index(model), change)

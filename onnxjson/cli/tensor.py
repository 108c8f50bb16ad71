"""``onnxjson tensor``: convert constants to and from base64, JSON and numpy files; read tensors of models."""

import itertools
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from onnxjson.cli import options, output, reports
from onnxjson.cli.paths import STDOUT, FilePath, refuse_sources
from onnxjson.model.document import Tensor
from onnxjson.model.errors import EncodeError, OutputError
from onnxjson.model.types import TypeSyntaxError
from onnxjson.storage import constant_reading as reading
from onnxjson.storage import constant_values, files
from onnxjson.storage.external import Resolver
from onnxjson.storage.identity import open_source
from onnxjson.storage.numpy_constants import from_array, read_array, write_npy, write_npz
from onnxjson.storage.saving import Sink, make_folder, save_file

_NUMPY_ENDINGS: Final = (".npy", ".npz")
_NEGATIVE: Final = re.compile(r"-[0-9.]\S*")

_type = options.option("--type TYPE", "Dtype and dims, such as float32[2,3], or dtype only.", "type_")


class _CommandOfNumbers(options.Command):
    """A command whose argument may be a negative number, which would otherwise be read as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        numbers = [word for word in args if _NEGATIVE.fullmatch(word)]
        if numbers and "--" not in args:
            args = [word for word in args if word not in numbers] + ["--", *numbers]
        return super().parse_args(ctx, args)


def _form_options(*forms: str) -> options.Decorator:
    """``--format`` and ``--json``; the form reaches the command as `form`, None for the first."""
    text = f"Format of the result; json is a tensor as in a model text, on one line. Default: {forms[0]}."
    return reports.form_options(forms, text)


@options.group("tensor")
def tensor_command() -> None:
    """Convert constants to and from base64; read tensors of a model.

    \b
    onnxjson tensor encode '[[1, 2], [3, 4]]' --type float32
    onnxjson tensor decode AACAPwAAAEA= --type float32[2]
    onnxjson tensor get m.onnx fc.weight -o weight.npy
    """


@tensor_command.command("encode", cls=_CommandOfNumbers)
@click.argument("values", metavar="[VALUE]", required=False)
@_type
@options.option("--from FILE", "Read the values from FILE.npy, FILE.npz, FILE.npz:NAME, or a file of JSON.", "source")
@_form_options("base64", "json", "protojson")
@options.out("Write to OUT, replacing an existing file.", type=FilePath(allow_dash=True))
@options.option("--name NAME", "Name of the tensor, for json and protojson.")
@options.option("--lossy", "Round values that the dtype cannot represent to the nearest finite one.")
def encode(
    values: str | None,
    type_: str | None,
    source: Path | None,
    destination: Path | None,
    name: str | None,
    *,
    form: str | None,
    lossy: bool,
) -> None:
    """Encode values as the base64 of a constant.

    VALUE is JSON, nested or flat; - reads it from standard input. Without dims, the nesting determines the shape.
    Values that JSON cannot write as numbers are strings: "NaN", "Infinity", "-0.0", "NaN(0x7fc00001)". A value that the
    dtype cannot represent is an error; --lossy rounds it.

    \b
    onnxjson tensor encode '[1, 2, 3]' --type int64
    onnxjson tensor encode '[0.1, "NaN"]' --type float16[2] --json --name w
    onnxjson tensor encode --from weights.npy --type bfloat16
    """
    encoded = _encoded(values, source, _kind(type_), name, lossy=lossy)
    if encoded.changed:
        several = "" if encoded.changed == 1 else ", for example"
        output.warn(f"{output.counted(encoded.changed, 'value')} changed{several}: {encoded.first}")
    write = {"json": constant_values.write_object, "protojson": constant_values.write_proto_json}.get(
        form or "", _write_base64_line
    )
    _deliver(destination, lambda sink: write(encoded.tensor, sink.write))


def _write_base64_line(tensor: Tensor, write: Callable[[bytes], object]) -> None:
    constant_values.write_base64(tensor, write)
    write(b"\n")


def _encoded(
    values: str | None, source: Path | None, kind: reading.Kind | None, name: str | None, *, lossy: bool
) -> reading.Encoded:
    if (values is None) == (source is None):
        raise click.UsageError("give the values as JSON, - to read them from standard input, or --from FILE")
    if source is not None and (source.suffix in _NUMPY_ENDINGS or ".npz:" in source.name):
        with output.reading(source):
            return from_array(read_array(source), kind, name=name, lossy=lossy)
    if kind is None:
        raise click.UsageError("give the dtype of the values, such as --type float32[2,3] or --type int64")
    if source is not None:
        tree = reading.parse_json(_read(source), str(source))
    elif values == STDOUT:
        tree = reading.parse_json(sys.stdin.buffer.read(), "standard input")
    else:
        tree = reading.parse_json(values or "", "VALUE")
    return reading.from_json(tree, kind, name=name, lossy=lossy)


@tensor_command.command("decode")
@click.argument("base64", metavar="[VALUE]", required=False)
@_type
@options.option("--from FILE", "Read the base64 from FILE.", "source")
@_form_options("values", "json")
@options.out("Write to OUT, a .npy, .npz or .json file, replacing an existing one.", type=FilePath(allow_dash=True))
@options.option("--name NAME", "Name of the tensor, for json and a .npz.")
def decode(
    base64: str | None,
    type_: str | None,
    source: Path | None,
    destination: Path | None,
    name: str | None,
    *,
    form: str | None,
) -> None:
    """Decode the base64 of a constant and print its values.

    VALUE is base64 as in the text of a model or in rawData of protobuf's JSON; - reads it from standard input. Without
    dims, the values are one flat list.

    \b
    onnxjson tensor decode AACAPwAAAEA= --type float32[2]
    onnxjson tensor decode - --type bfloat16[1000] -o weights.npy < weights.b64
    """
    if (base64 is None) == (source is None):
        raise click.UsageError("give the base64, - to read it from standard input, or --from FILE")
    kind = _kind(type_)
    if kind is None:
        raise click.UsageError("give the type of the bytes, such as --type float32[2,3]")
    if source is not None:
        content = _read(source)
    else:
        content = sys.stdin.buffer.read() if base64 == STDOUT else (base64 or "").encode("utf-8", "surrogateescape")
    _deliver_tensors([reading.from_base64(content, kind, name=name)], destination, form)


@tensor_command.command("get")
@click.argument("model", metavar="MODEL", type=FilePath())
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@_form_options("values", "json")
@options.out(
    "Write to OUT, a .npy, .npz or .json file, replacing an existing one, or a .npy for each to a new folder.",
    type=FilePath(allow_dash=True),
)
@options.weights_from
def get(
    model: Path, names: Sequence[str], destination: Path | None, weights_from: Path | None, *, form: str | None
) -> None:
    """Print tensors of a model, or write them to a .npy, .npz or .json file.

    NAME is a selector: the name of an initializer in any graph or of the output of a Constant, a pattern for several,
    or @ and an address, such as that of an attribute. Several tensors need --json, a .npz or a folder.

    \b
    onnxjson tensor get m.onnx fc.bias
    onnxjson tensor get m.onnx fc.weight fc.bias -o fc.npz
    onnxjson tensor get m.onnx '*' -o weights/
    onnxjson tensor get m.onnx @/graph/node/0/attribute/pads --json
    """
    with output.reading(model):
        loaded = files.load(model, weights_from=weights_from)
    if destination is not None and str(destination) != STDOUT:
        refuse_sources(destination, model, loaded.model, weights_from)
    resolver = Resolver(model.parent, model_file=model)
    found = [tensor for name in names for tensor in reading.find_tensors(loaded.model, name)]
    tensors = [reading.with_elements(tensor, resolver) for tensor in found]
    if destination is not None and not destination.suffix and str(destination) != STDOUT:
        _write_folder(tensors, destination)
        return
    _deliver_tensors(tensors, destination, form)


def _write_folder(tensors: Sequence[Tensor], folder: Path) -> None:
    """Write each tensor to a .npy file, whose name is that of the tensor without characters that files may not have."""
    if folder.exists():
        raise OutputError(f"{folder} exists; choose a new folder")
    names: dict[str, Tensor] = {}
    for tensor in tensors:
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", tensor.name or "").strip("._") or "constant"
        fresh = (stem if number == 1 else f"{stem}-{number}" for number in itertools.count(1))
        names[next(each for each in fresh if each.lower() not in names)] = tensor
    make_folder(folder)
    for name, tensor in names.items():
        save_file(folder / f"{name}.npy", lambda sink, tensor=tensor: write_npy(tensor, sink))  # type: ignore[misc]
    output.talk(f"wrote {output.counted(len(tensors), 'tensor')} to {folder}")


def _kind(spelled: str | None) -> reading.Kind | None:
    if spelled is None:
        return None
    try:
        return reading.parse_kind(spelled)
    except TypeSyntaxError as error:
        raise click.UsageError(f"{output.quoted(spelled)} is not a type of a constant: {error}") from None
    except EncodeError as error:
        raise click.UsageError(str(error)) from None


def _read(source: Path) -> bytes:
    file = open_source(source)
    return bytes(file.read_at(0, file.size))


def _deliver_tensors(tensors: Sequence[Tensor], destination: Path | None, form: str | None) -> None:
    """Print tensors, or write them in the form for the ending of the file."""

    def write_objects(sink: Sink) -> None:
        for tensor in tensors:
            constant_values.write_object(tensor, sink.write)

    ending = "" if destination is None else destination.suffix
    if form == "json":
        if ending in _NUMPY_ENDINGS:
            raise click.UsageError(f"--json is text, and a {ending} file is not; leave out one of them")
        _deliver(destination, write_objects)
    elif ending == ".npz":
        # An array without a name is named as `numpy.savez` does.
        named = [
            tensor if tensor.name else msgspec.structs.replace(tensor, name=f"arr_{position}")
            for position, tensor in enumerate(tensors)
        ]
        _deliver(destination, lambda sink: write_npz(named, sink))
    elif len(tensors) > 1:
        raise click.UsageError("write several tensors to one .npz (-o FILE.npz), or one on each line with --json")
    elif ending == ".npy":
        _deliver(destination, lambda sink: write_npy(tensors[0], sink))
    elif ending == ".json" or destination is None or str(destination) == STDOUT:
        _deliver(destination, lambda sink: constant_values.write_values(tensors[0], sink.write))
    else:
        raise click.UsageError(f"{output.quoted(destination)} does not end with .npy, .npz or .json")


def _deliver(destination: Path | None, write: Callable[[Sink], Any]) -> None:
    if destination is None or str(destination) == STDOUT:
        write(output.stdout())
        return
    with output.working(f"writing {destination}"):
        save_file(destination, write)
    output.wrote(destination)

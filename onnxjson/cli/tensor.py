"""``onnxjson tensor``: constants to and from base64, JSON and numpy files, and out of models."""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from onnxjson.cli import output
from onnxjson.cli.paths import FilePath, refuse_sources
from onnxjson.errors import EncodeError

if TYPE_CHECKING:
    from onnxjson.constants.values import Encoded, Kind
    from onnxjson.document import Tensor
    from onnxjson.sinks import Sink

_STDIN: Final = "-"
_NUMPY_ENDINGS: Final = (".npy", ".npz")
_NEGATIVE: Final = re.compile(r"-[0-9.]\S*")

_Decorated = TypeVar("_Decorated", bound=Callable[..., object])


class _CommandOfNumbers(click.Command):
    """A command whose argument may be a negative number, which would else be taken for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        numbers = [word for word in args if _NEGATIVE.fullmatch(word)]
        if numbers and "--" not in args:
            args = [word for word in args if word not in numbers] + ["--", *numbers]
        return super().parse_args(ctx, args)


def _kind_options(command: _Decorated) -> _Decorated:
    """The options that say what a constant is."""
    for option in (
        click.option("--shape", metavar="DIMS", help="The dims, such as 2,3; with --dtype in place of --type."),
        click.option("--dtype", metavar="DTYPE", help="The dtype alone, such as bfloat16, in place of --type."),
        click.option("--type", "type_", metavar="TYPE", help="Dtype and dims, such as float32[2,3]."),
    ):
        command = option(command)
    return command


def _output_options(command: _Decorated) -> _Decorated:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="The tensor as a text of a model has it, on one line."),
        click.option(
            "-o",
            "--output",
            "destination",
            metavar="OUT",
            type=FilePath(allow_dash=True),
            help="Write to OUT, replacing what is there.",
        ),
    ):
        command = option(command)
    return command


@click.group("tensor", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Turn constants into base64 and back; get tensors out of a model.

    \b
    onnxjson tensor encode '[[1, 2], [3, 4]]' --type float32
    onnxjson tensor decode AACAPwAAAEA= --type float32[2]
    onnxjson tensor get m.onnx conv.weight -o weight.npy
    """


@command.command("encode", cls=_CommandOfNumbers)
@click.argument("values", metavar="[VALUES]", required=False)
@_kind_options
@click.option(
    "--input",
    "source",
    metavar="FILE",
    type=FilePath(),
    help="Take the values of FILE.npy, FILE.npz, FILE.npz:NAME, or a file of JSON.",
)
@_output_options
@click.option("--proto-json", is_flag=True, help="The tensor as protobuf's JSON has it, on one line.")
@click.option("--name", help="The name of the tensor, for --json and --proto-json.")
@click.option("--lossy", is_flag=True, help="Take the nearest finite value for one that the dtype does not hold.")
def encode(
    values: str | None,
    type_: str | None,
    dtype: str | None,
    shape: str | None,
    source: Path | None,
    destination: Path | None,
    name: str | None,
    *,
    as_json: bool,
    proto_json: bool,
    lossy: bool,
) -> None:
    """Print the base64 of a constant.

    VALUES are JSON, nested or flat; - reads them from standard input. Without dims the nesting is the shape. Texts
    stand for what JSON has no number for: "NaN", "Infinity", "-0.0", "NaN(0x7fc00001)". A value that the dtype does
    not hold is refused; --lossy takes the nearest one.

    \b
    onnxjson tensor encode '[1, 2, 3]' --type int64
    onnxjson tensor encode '[0.1, "NaN"]' --type float16[2] --json --name w
    onnxjson tensor encode --input weights.npy --type bfloat16
    """
    from onnxjson.constants import text

    if as_json and proto_json:
        raise click.UsageError("--json and --proto-json are two forms; take one")
    encoded = _encoded(values, source, _kind(type_, dtype, shape), name, lossy=lossy)
    if encoded.changed:
        several = "" if encoded.changed == 1 else ", for one"
        output.warn(f"{output.counted(encoded.changed, 'value')} changed{several}: {encoded.first}")
    write = text.write_object if as_json else text.write_proto_json if proto_json else _write_base64_line
    _deliver(destination, lambda sink: write(encoded.tensor, sink.write))


def _write_base64_line(tensor: "Tensor", write: Callable[[bytes], object]) -> None:
    from onnxjson.constants.text import write_base64

    write_base64(tensor, write)
    write(b"\n")


def _encoded(
    values: str | None, source: Path | None, kind: "Kind | None", name: str | None, *, lossy: bool
) -> "Encoded":
    """The constant that the arguments say.

    Raises:
        click.UsageError: they say none, or two.
    """
    from onnxjson.constants.values import from_json, parse_json

    if (values is None) == (source is None):
        raise click.UsageError("give the values as JSON, - to read them from standard input, or --input FILE")
    if source is not None and (source.suffix in _NUMPY_ENDINGS or ".npz:" in source.name):
        from onnxjson.constants.arrays import from_array, read_array

        with output.working(f"reading {source}"):
            return from_array(read_array(source), kind, name=name, lossy=lossy)
    if kind is None:
        raise click.UsageError("say which dtype the values have, such as --type float32[2,3] or --type int64")
    if source is not None:
        tree = parse_json(_read(source), str(source))
    elif values == _STDIN:
        tree = parse_json(sys.stdin.buffer.read(), "standard input")
    else:
        tree = parse_json(values or "", "VALUES")
    return from_json(tree, kind, name=name, lossy=lossy)


@command.command("decode")
@click.argument("base64", metavar="[BASE64]", required=False)
@_kind_options
@click.option("--input", "source", metavar="FILE", type=FilePath(), help="Take the base64 in FILE.")
@_output_options
@click.option("--name", help="The name of the tensor, for --json and a .npz.")
def decode(
    base64: str | None,
    type_: str | None,
    dtype: str | None,
    shape: str | None,
    source: Path | None,
    destination: Path | None,
    name: str | None,
    *,
    as_json: bool,
) -> None:
    """Print the values of a constant that base64 holds.

    BASE64 is that of a text of a model, of rawData in protobuf's JSON, or - for standard input. OUT is a .npy, .npz
    or .json file. Without dims the values are one list.

    \b
    onnxjson tensor decode AACAPwAAAEA= --type float32[2]
    onnxjson tensor decode - --type bfloat16[1000] -o weights.npy < weights.b64
    """
    from onnxjson.constants.encoded import from_base64

    if (base64 is None) == (source is None):
        raise click.UsageError("give the base64, - to read it from standard input, or --input FILE")
    kind = _kind(type_, dtype, shape)
    if kind is None:
        raise click.UsageError("say what the bytes are, such as --type float32[2,3]")
    if source is not None:
        content = _read(source)
    else:
        content = sys.stdin.buffer.read() if base64 == _STDIN else (base64 or "").encode("utf-8", "surrogateescape")
    tensor = from_base64(content, kind, name=name)
    _deliver_tensors([tensor], destination, as_json=as_json)


@command.command("get")
@click.argument("model", metavar="MODEL", type=FilePath())
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@_output_options
@click.option(
    "--weights-from",
    metavar="MODEL",
    type=FilePath(),
    help="The model that has the bytes of tensors of which MODEL has only the sha256.",
)
def get(
    model: Path, names: Sequence[str], destination: Path | None, weights_from: Path | None, *, as_json: bool
) -> None:
    """Print tensors of a model, or write them to a .npy, .npz or .json file.

    NAME is an initializer of any graph, a node and its attribute (NODE/ATTRIBUTE), the output of a Constant, or @ and
    an address. Several NAMEs need --json or a .npz.

    \b
    onnxjson tensor get m.onnx fc.bias
    onnxjson tensor get m.onnx fc.weight fc.bias -o fc.npz
    onnxjson tensor get m.onnx /conv/pads --json
    """
    from onnxjson import files
    from onnxjson.constants.stored import find_tensor, with_elements
    from onnxjson.external import Resolver

    with output.working(f"reading {model}"):
        loaded = files.load(model, weights_from=weights_from)
    if destination is not None and str(destination) != _STDIN:
        refuse_sources(destination, model, loaded.model, weights_from)
    resolver = Resolver(model.parent, model_file=model)
    tensors = [with_elements(find_tensor(loaded.model, name), resolver) for name in names]
    _deliver_tensors(tensors, destination, as_json=as_json)


def _kind(type_: str | None, dtype: str | None, shape: str | None) -> "Kind | None":
    """What --type, or --dtype and --shape, say.

    Raises:
        click.UsageError: they contradict each other, or are not in the grammar.
    """
    from onnxjson.constants.values import Kind, parse_kind, parse_shape
    from onnxjson.types import TypeSyntaxError

    if type_ is not None and dtype is not None:
        raise click.UsageError("--type and --dtype say the same; take one")
    spelled = type_ if type_ is not None else dtype
    if spelled is None:
        if shape is not None:
            raise click.UsageError("--shape needs --dtype, such as --dtype float32 --shape 2,3")
        return None
    try:
        kind = parse_kind(spelled)
        if shape is None:
            return kind
        if kind.dims is not None:
            raise click.UsageError("the dims stand in the type already; leave out --shape")
        return Kind(kind.data_type, parse_shape(shape))
    except TypeSyntaxError as error:
        raise click.UsageError(f"{output.quoted(spelled)} is no type of a constant: {error}") from None
    except EncodeError as error:
        raise click.UsageError(str(error)) from None


def _read(source: Path) -> bytes:
    from onnxjson.identity import reading_error

    try:
        return source.read_bytes()
    except OSError as error:
        raise reading_error(source, error) from error


def _deliver_tensors(tensors: "Sequence[Tensor]", destination: Path | None, *, as_json: bool) -> None:
    """Print tensors, or write them in the form that the ending of the file says."""
    from onnxjson.constants import archives, text

    def as_objects(sink: "Sink") -> None:
        for tensor in tensors:
            text.write_object(tensor, sink.write)

    ending = "" if destination is None else destination.suffix
    if as_json:
        if ending in _NUMPY_ENDINGS:
            raise click.UsageError(f"--json is text, and a {ending} file is not; leave out one of them")
        _deliver(destination, as_objects)
    elif ending == ".npz":
        named = [_with_array_name(tensor, position) for position, tensor in enumerate(tensors)]
        _deliver(destination, lambda sink: archives.write_npz(named, sink))
    elif len(tensors) > 1:
        raise click.UsageError("several tensors go into one .npz (-o FILE.npz), or one a line with --json")
    elif ending == ".npy":
        _deliver(destination, lambda sink: archives.write_npy(tensors[0], sink))
    elif ending == ".json" or destination is None or str(destination) == _STDIN:
        _deliver(destination, lambda sink: text.write_values(tensors[0], sink.write))
    else:
        raise click.UsageError(f"{output.quoted(destination)} does not end with .npy, .npz or .json")


def _with_array_name(tensor: "Tensor", position: int) -> "Tensor":
    """Named as `numpy.savez` names an array that has no name."""
    import msgspec

    return tensor if tensor.name else msgspec.structs.replace(tensor, name=f"arr_{position}")


def _deliver(destination: Path | None, write: "Callable[[Sink], Any]") -> None:
    """To standard output, or all or nothing to a file."""
    if destination is None or str(destination) == _STDIN:
        write(output.Stdout())
        return
    from onnxjson.saving import save_file

    with output.working(f"writing {destination}"):
        save_file(destination, write)
    output.talk(f"wrote {destination} ({output.size(destination)})")

"""The functions of `import onnxjson`: models from and to files, text and protobuf."""

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from onnxjson import files, text_file
from onnxjson.canonical.payload_forms import WeightsMode
from onnxjson.document import Model
from onnxjson.errors import MissingInputError, WeightsMissingError
from onnxjson.files import Format
from onnxjson.weights import checked_folder, require_whole, write_blobs

if TYPE_CHECKING:
    import onnx


def load(
    path: str | Path,
    *,
    weights_from: str | Path | Model | None = None,
    folder: str | Path | None = None,
) -> Model:
    """The model in a file: ONNX binary, onnxjson/1 text or proto-JSON, told apart by content.

    Tensors of 4 KiB and more stay in the file until they are asked for; external data is not opened. Blobs are looked
    for below `folder`, beside the text if it is None; the bytes of digests in `weights_from`, a model or the file of
    one. A text with digests loads without it too, but cannot be written whole.

    Raises:
        WeightsMissingError: `weights_from` does not have all the bytes that the text lacks.
        UntrustedError: a blob is no file that a text may name.
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        DecodeError: it holds no model; ``findings`` say why and where.
        LimitError: it is too big or nests too deep.
    """
    if path == "":
        raise MissingInputError("the path is empty, which names no file")
    if folder is None:
        return files.load(path, weights_from=weights_from).model
    return files.bound(files.load(path, bind=False).model, folder=Path(folder), weights_from=weights_from)


def save(
    model: Model,
    path: str | Path,
    format: Format | None = None,  # noqa: A002 - as in onnx.save
    *,
    weights: WeightsMode = "inline",
    blobs: str | Path | None = None,
) -> None:
    """Writes a model to a file, all or nothing, read back before it replaces what was there.

    `format` is "onnx", "json" or "protojson"; without it the ending decides: ``.onnxjson`` is proto-JSON (onnx's own
    meaning), any other ``.json`` the text onnxjson/1, all else the binary.

    `weights` says how tensors of more than 64 elements stand in the text: "inline" as base64, "blobs" each in a file
    of the folder `blobs` (relative to that of `path`; ``model.blobs`` for ``model.onnx.json``), "digest" as their
    sha256 only, "keep" as they were read.

    Raises:
        WeightsMissingError: of some tensors only the sha256 is here.
        OutputError, AccessDeniedError, FileError: the file cannot be written; what was there is untouched.
        ChangedUnderneathError: a file that holds tensors of `model` was changed since it was loaded.
        EncodeError, LimitError: the model has no such form.
        TypeError, ValueError: `model` is no Model; `format` or `weights` is another word.
    """
    _require_model(model)
    _require_word(format, (None, *get_args(Format)), "format")
    _require_word(weights, get_args(WeightsMode), "weights")
    files.save(model, path, format, weights=weights, blobs=None if blobs is None else str(blobs))


def loads(
    text: str | bytes, *, weights_from: str | Path | Model | None = None, folder: str | Path | None = None
) -> Model:
    """The model that a text stands for: onnxjson/1, or proto-JSON.

    Blobs are looked for below `folder` (where the text would stand), the bytes of digests in `weights_from`, a model or
    the file of one.

    Raises:
        WeightsMissingError: `weights_from` does not have all the bytes that the text lacks.
        MissingInputError, UntrustedError: a blob is not there, or is no file that a text may name.
        DecodeError: it is not one; ``findings`` hold every reason with line and column.
        TypeError: `text` is neither str nor bytes.
    """
    if not isinstance(text, str | bytes):
        raise TypeError(f"a text is str or bytes, not {type(text).__name__}")
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    read = text_file.read_bytes(data)
    if not read.has_digests:
        return read.model
    return files.bound(read.model, folder=None if folder is None else Path(folder), weights_from=weights_from)


def dumps(
    model: Model, *, weights: WeightsMode = "inline", blobs: str | Path | None = None, folder: str | Path | None = None
) -> str:
    """The canonical text of a model, onnxjson/1, ending with a line feed.

    `weights` as in `save`. With "blobs" they are written below `folder`, where the text would stand, into `blobs`
    ("model.blobs" if it is None), as `loads` looks for them; without `folder` the text names `blobs`, and nothing is
    written.

    Raises:
        WeightsMissingError: of some tensors only the sha256 is here.
        LimitError: graphs nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: a file that holds tensors of `model` cannot be read any more.
        UntrustedError: `blobs` is no name for a folder of blobs.
        TypeError, ValueError: `model` is no Model; `weights` is another word, or "blobs" without a folder.
    """
    _require_model(model)
    _require_word(weights, get_args(WeightsMode), "weights")
    if weights == "blobs":
        if blobs is None and folder is None:
            raise ValueError('a text with blobs names their folder: give it as blobs="model.blobs", or where it stands')
        blobs = str(blobs or "model.blobs")
        if folder is None:
            checked_folder(Path(), blobs)
        else:
            write_blobs(model, Path(folder), blobs)
    text = bytearray()
    files.write(model, _Growing(text), "json", weights=weights, blobs=None if blobs is None else str(blobs))
    return text.decode("utf-8")


class _Growing:
    """A sink that gathers what is written."""

    def __init__(self, gathered: bytearray) -> None:
        self._gathered = gathered

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """See `onnxjson.sinks.Sink`."""
        self._gathered += data


def from_proto(proto: "onnx.ModelProto") -> Model:
    """The record of a ModelProto; every message has one, nothing is lost.

    Raises:
        LimitError: messages nest deeper than protobuf reads, or the model without its initializers exceeds 2 GiB.
        TypeError: `proto` is another message, or none.
    """
    from onnxjson import serde

    if _proto_name(proto) != "onnx.ModelProto":
        raise TypeError(f"an onnx.ModelProto fits here, not {type(proto).__name__}")
    return serde.from_proto(proto)


def to_proto(model: Model) -> "onnx.ModelProto":
    """The ModelProto of a record, message-identical to the one that the record was made from.

    Raises:
        WeightsMissingError: of some tensors only the sha256 is here.
        LimitError: messages nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: a file that holds tensors of `model` cannot be read any more.
        TypeError: `model` is another record, or none.
    """
    from onnxjson import serde

    _require_model(model)
    try:
        return serde.to_proto(model)
    except WeightsMissingError:
        # The first tensor that was asked for its bytes says so; all of them say more.
        require_whole(model)
        raise


def _require_model(model: object) -> None:
    if not isinstance(model, Model):
        hint = "; from_proto makes one of it" if _proto_name(model) == "onnx.ModelProto" else ""
        raise TypeError(f"an onnxjson.Model fits here, not {type(model).__name__}{hint}")


def _proto_name(message: object) -> str:
    """The full name of the type of a protobuf message; no other object has one."""
    return str(getattr(getattr(message, "DESCRIPTOR", None), "full_name", ""))


def _require_word(word: object, words: tuple[object, ...], what: str) -> None:
    if word not in words:
        raise ValueError(f"{what} is {word!r}; what fits: {', '.join(map(repr, words))}")

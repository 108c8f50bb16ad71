"""Functions of `import onnxjson`: models from and to files, text and protobuf."""

import importlib
import io
import os
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from onnxjson.codecs import text_file
from onnxjson.codecs.tensor_text import WeightsMode
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.errors import MissingFileError, MissingInputError, OutputError, WeightsMissingError
from onnxjson.storage import files
from onnxjson.storage.external import file_of, with_file
from onnxjson.storage.external_files import copy_files
from onnxjson.storage.files import Format
from onnxjson.storage.named_files import left_behind, locations
from onnxjson.storage.remote import path_of
from onnxjson.storage.weights import checked_folder, require_whole, write_blobs

if TYPE_CHECKING:
    import onnx
    import onnx_ir


def load(
    path: str | Path, *, weights_from: str | Path | Model | None = None, folder: str | Path | None = None
) -> Model:
    """Load the model in a file: ONNX binary, onnxjson/1 text or proto-JSON, recognised by content.

    Tensors of 4 KiB and more stay in the file until they are used, and so does external data.

    Args:
        path: the file, or a URL (with the extra ``fleet``), from which only the used parts are fetched.
        weights_from: a model or its file, which has the weights that the text has only as sha256. Without it, the text
            loads, but cannot be saved with its weights.
        folder: the folder that contains the folder of blobs; by default that of the text.

    Raises:
        WeightsMissingError: `weights_from` does not have all the bytes that the text lacks.
        UntrustedError: a blob is not a file that a text may name.
        MissingFileError: the file does not exist; this is also a FileNotFoundError.
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        DecodeError: it is not a model; ``findings`` has all reasons with their positions.
        LimitError: it is too big or nested too deeply.
    """
    if path == "":
        raise MissingInputError("the path is empty, which names no file")
    place = path_of(path)
    if "://" not in str(path) and not os.path.lexists(place):
        raise MissingFileError(f"{visible(str(place), None)} does not exist")
    if folder is None:
        return with_file(files.load(place, weights_from=weights_from).model, place)
    model = files.bind_digests(files.load(place, bind=False).model, folder=Path(folder), weights_from=weights_from)
    return with_file(model, place)


def model_and_file(model: Model | str | Path) -> tuple[Model, Path | None]:
    """Return a model, loaded from its file if that is given, and the file of its external data, if it is known."""
    if isinstance(model, str | os.PathLike):
        return load(model), Path(model)
    _require_model(model)
    return model, file_of(model)


def save(
    model: Model,
    path: str | Path,
    format: Format | None = None,  # noqa: A002 - as in onnx.save
    *,
    weights: WeightsMode = "inline",
    blobs: str | Path | None = None,
) -> None:
    """Save a model to a file, completely or not at all; the new file is read back before it replaces an existing one.

    Args:
        model: the model.
        path: the file.
        format: "onnx", "json" or "protojson"; by default the ending decides: ``.onnxjson`` is proto-JSON (as for onnx),
            any other ``.json`` the text onnxjson/1, ``.onnx`` and ``.pb`` the binary; others need `format`.
        weights: the form of tensors of more than 64 elements in the text: "inline" as base64, "blobs" each in a file
            of the folder `blobs`, "digest" as their sha256 only, "keep" as they were read.
        blobs: the folder of blobs, relative to that of `path`; ``model.blobs`` for ``model.onnx.json`` by default.

    Warns:
        UserWarning: the model has external data next to the file it was loaded from, but `path` is in another folder.

    Raises:
        WeightsMissingError: only the sha256 of some tensors is available.
        OutputError: the ending is unknown, and `format` is not given.
        OutputError, AccessDeniedError, FileError: the file cannot be written; an existing one is unchanged.
        ChangedUnderneathError: a file that contains tensors of `model` was changed since it was loaded.
        EncodeError, LimitError: the form cannot represent the model.
        TypeError, ValueError: `model` is not a Model; `format` or `weights` has an unknown value.
    """
    _require_model(model)
    _save(model, path, format, weights=weights, blobs=blobs)
    source = file_of(model)
    for location in left_behind(model, source, Path(path)) if source else ():
        warnings.warn(
            f"weights of the model remain in {visible(location, None)!r} next to {visible(str(source), None)}; "
            "copy that file too, or use onnxjson.convert, which does",
            stacklevel=2,
        )


def convert(
    source: str | Path,
    destination: str | Path,
    format: Format | None = None,  # noqa: A002 - as in `save`
    *,
    weights: WeightsMode = "inline",
    blobs: str | Path | None = None,
    weights_from: str | Path | Model | None = None,
) -> Path:
    """Convert the file of a model to another format, with copies of its external data; return the new file.

    See `load` and `save` for the arguments and the errors.
    """
    place = Path(destination)
    model = load(source, weights_from=weights_from)
    if locations(model) and not os.path.samefile(Path(source).parent, place.parent):
        copy_files(model, Path(source).parent, place.parent, model_file=Path(source), taken=place)
    _save(model, place, format, weights=weights, blobs=blobs)
    return place


def _save(
    model: Model, path: str | Path, form: Format | None, *, weights: WeightsMode, blobs: str | Path | None
) -> None:
    _require_word(form, (None, *get_args(Format)), "format")
    _require_word(weights, get_args(WeightsMode), "weights")
    if form is None and not str(path).lower().endswith((*files.KNOWN_ENDINGS, ".ort", ".safetensors")):
        endings = ", ".join(files.KNOWN_ENDINGS)
        raise OutputError(f"{visible(str(path), None)} has none of the endings {endings}; add format='onnx' or 'json'")
    files.save(model, path, form, weights=weights, blobs=None if blobs is None else str(blobs))


def loads(
    text: str | bytes, *, weights_from: str | Path | Model | None = None, folder: str | Path | None = None
) -> Model:
    """Load the model in a text: onnxjson/1 or proto-JSON.

    `weights_from` is a model or its file, which has the weights that the text has only as sha256; `folder` contains
    the folder of blobs.

    Raises:
        WeightsMissingError: `weights_from` does not have all the bytes that the text lacks.
        MissingInputError, UntrustedError: a blob is missing, or is not a file that a text may name.
        DecodeError: it is not a model; ``findings`` has every reason with line and column.
        TypeError: `text` is neither str nor bytes.
    """
    if not isinstance(text, str | bytes):
        raise TypeError(f"expected a string, str or bytes, not {type(text).__name__}")
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    read = text_file.read_bytes(data)
    if not read.has_digests:
        return read.model
    return files.bind_digests(read.model, folder=None if folder is None else Path(folder), weights_from=weights_from)


def dumps(
    model: Model, *, weights: WeightsMode = "inline", blobs: str | Path | None = None, folder: str | Path | None = None
) -> str:
    """Return the canonical text of a model, onnxjson/1, ending with a line feed.

    Args:
        model: the model.
        weights: as in `save`. With "blobs", the files are written if `folder` is given; otherwise the text only names
            them.
        blobs: the folder of blobs, relative to `folder`; "model.blobs" if it is None.
        folder: the folder that the text will be in, as in `loads`.

    Raises:
        WeightsMissingError: only the sha256 of some tensors is available.
        LimitError: graphs nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: a file that contains tensors of `model` can no longer be read.
        UntrustedError: `blobs` is not a valid name for a folder of blobs.
        TypeError, ValueError: `model` is not a Model; `weights` has an unknown value, or is "blobs" without a folder.
    """
    _require_model(model)
    _require_word(weights, get_args(WeightsMode), "weights")
    if weights == "blobs":
        if blobs is None and folder is None:
            raise ValueError('a text with blobs names their folder: add blobs="model.blobs", or folder="."')
        blobs = str(blobs or "model.blobs")
        if folder is None:
            checked_folder(Path(), blobs)
        else:
            with ExitStack() as undo:
                write_blobs(model, Path(folder), blobs, undo)
                undo.pop_all()
    text = io.BytesIO()
    files.write(model, text, "json", weights=weights, blobs=None if blobs is None else str(blobs))
    return text.getvalue().decode("utf-8")


def from_proto(proto: "onnx.ModelProto") -> Model:
    """Convert a ModelProto to a record, without loss.

    Raises:
        LimitError: messages nest deeper than protobuf reads, or the model without its initializers exceeds 2 GiB.
        TypeError: `proto` is not a ModelProto.
    """
    from onnxjson.codecs import serde

    if _proto_name(proto) != "onnx.ModelProto":
        raise TypeError(f"expected an onnx.ModelProto, not {type(proto).__name__}")
    return serde.from_proto(proto)


def to_proto(model: Model) -> "onnx.ModelProto":
    """Convert a record to a ModelProto, message-identical to the one that the record was read from.

    Raises:
        WeightsMissingError: only the sha256 of some tensors is available.
        LimitError: messages nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: a file that contains tensors of `model` can no longer be read.
        TypeError: `model` is not a Model.
    """
    from onnxjson.codecs import serde

    _require_model(model)
    try:
        return serde.to_proto(model)
    except WeightsMissingError:
        # The caught error names one tensor; the new one counts all of them.
        require_whole(model)
        raise


def from_ir(model: "onnx_ir.Model") -> Model:
    """Convert a model of onnx-ir to a record.

    Raises:
        ImportError: onnx-ir is not installed; the extra ``ir`` installs it.
        LimitError: see `from_proto`.
    """
    return from_proto(_onnx_ir().to_proto(model))


def to_ir(model: Model) -> "onnx_ir.Model":
    """Convert a record to a model of onnx-ir; see `from_ir` and `to_proto` for the errors."""
    made: onnx_ir.Model = _onnx_ir().from_proto(to_proto(model))
    return made


def _onnx_ir() -> Any:
    try:
        return importlib.import_module("onnx_ir")
    except ImportError as error:
        raise ImportError("onnx-ir is not installed; pip install onnx-ir") from error


def _require_model(model: object) -> None:
    if not isinstance(model, Model):
        hint = "; write its .model" if hasattr(type(model), "model") else ""
        hint = "; write patch.save(path)" if type(model).__name__ == "Patch" else hint
        hint = "; the model comes first: save(model, path)" if isinstance(model, str | Path) else hint
        hint = "; convert it with from_proto" if _proto_name(model) == "onnx.ModelProto" else hint
        raise TypeError(f"expected an onnxjson.Model, not {type(model).__name__}{hint}")


def _proto_name(message: object) -> str:
    return str(getattr(getattr(message, "DESCRIPTOR", None), "full_name", ""))


def _require_word(word: object, words: tuple[object, ...], what: str) -> None:
    if word not in words:
        raise ValueError(f"{what} is {word!r}; expected: {', '.join(map(repr, words))}")

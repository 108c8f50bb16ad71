"""The functions of `import onnxjson`: models from and to files, text and protobuf."""

from pathlib import Path
from typing import TYPE_CHECKING

from onnxjson import files, text_file
from onnxjson.canonical.writer import text_bytes
from onnxjson.document import Model
from onnxjson.files import Format

if TYPE_CHECKING:
    import onnx


def load(path: str | Path) -> Model:
    """The model in a file: ONNX binary, onnxjson/1 text or proto-JSON, told apart by content.

    Tensors of 4 KiB and more stay in the file until they are asked for; external data is not opened.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        DecodeError: it holds no model; ``findings`` say why and where.
        LimitError: it is too big or nests too deep.
    """
    return files.load(path).model


def save(model: Model, path: str | Path, format: Format | None = None) -> None:  # noqa: A002 - as in onnx.save
    """Writes a model to a file, all or nothing, read back before it replaces what was there.

    `format` is "onnx", "json" or "protojson"; without it the ending decides: ``.onnxjson`` is proto-JSON (onnx's own
    meaning), any other ``.json`` the text onnxjson/1, all else the binary.

    Raises:
        OutputError, AccessDeniedError, FileError: the file cannot be written; what was there is untouched.
        ChangedUnderneathError: a file that holds tensors of `model` was changed since it was loaded.
        EncodeError, LimitError: the model has no such form.
    """
    files.save(model, path, format)


def loads(text: str | bytes) -> Model:
    """The model that a text stands for: onnxjson/1, or proto-JSON.

    Raises:
        DecodeError: it is not one; ``findings`` hold every reason with line and column.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return text_file.read_bytes(data).model


def dumps(model: Model) -> str:
    """The canonical text of a model, onnxjson/1, ending with a line feed.

    Raises:
        LimitError: graphs nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: a file that holds tensors of `model` cannot be read any more.
    """
    return text_bytes(model).decode("utf-8")


def from_proto(proto: "onnx.ModelProto") -> Model:
    """The record of a ModelProto; every message has one, nothing is lost.

    Raises:
        LimitError: messages nest deeper than protobuf reads, or the model without its initializers exceeds 2 GiB.
    """
    from onnxjson import serde

    return serde.from_proto(proto)


def to_proto(model: Model) -> "onnx.ModelProto":
    """The ModelProto of a record, message-identical to the one that the record was made from.

    Raises:
        LimitError: messages nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: a file that holds tensors of `model` cannot be read any more.
    """
    from onnxjson import serde

    return serde.to_proto(model)

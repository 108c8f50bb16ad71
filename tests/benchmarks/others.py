"""One conversion by another package, as the least program that does it, with default options.

``python others.py json_format|onnx_text|copy to_text|to_onnx SRC DST``. The garbage collector works as it always does.
"""

import os
import sys


def json_format_to_text(source: str, destination: str) -> None:
    import onnx
    from google.protobuf import json_format

    with open(source, "rb") as file:
        model = onnx.ModelProto.FromString(file.read())
    with open(destination, "w", encoding="utf-8") as file:
        file.write(json_format.MessageToJson(model))


def json_format_to_onnx(source: str, destination: str) -> None:
    import onnx
    from google.protobuf import json_format

    with open(source, encoding="utf-8") as file:
        model = json_format.Parse(file.read(), onnx.ModelProto())
    with open(destination, "wb") as file:
        file.write(model.SerializeToString())


def onnx_text_to_text(source: str, destination: str) -> None:
    import onnx
    import onnx.printer

    with open(source, "rb") as file:
        model = onnx.ModelProto.FromString(file.read())
    with open(destination, "w", encoding="utf-8") as file:
        file.write(onnx.printer.to_text(model))


def onnx_text_to_onnx(source: str, destination: str) -> None:
    import onnx
    import onnx.parser

    with open(source, encoding="utf-8") as file:
        model = onnx.parser.parse_model(file.read())
    with open(destination, "wb") as file:
        file.write(model.SerializeToString())


def copy(source: str, destination: str) -> None:
    """Read and write the same bytes, and wait until the disk has them: no conversion can take less."""
    with open(source, "rb") as file:
        data = file.read()
    with open(destination, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


if __name__ == "__main__":
    {
        ("copy", "to_text"): copy,
        ("copy", "to_onnx"): copy,
        ("json_format", "to_text"): json_format_to_text,
        ("json_format", "to_onnx"): json_format_to_onnx,
        ("onnx_text", "to_text"): onnx_text_to_text,
        ("onnx_text", "to_onnx"): onnx_text_to_onnx,
    }[sys.argv[1], sys.argv[2]](sys.argv[3], sys.argv[4])

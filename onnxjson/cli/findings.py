"""What is wrong with a file, for the commands that say so: findings with their file, line and column."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from onnxjson.checking import Finding
from onnxjson.errors import EncodeError

if TYPE_CHECKING:
    from onnxjson.files import Loaded
    from onnxjson.worker import Worker


def of_structure(path: Path, loaded: "Loaded") -> list[Finding]:
    """What `onnxjson.structure` finds in the model, each with its place in the text where the file is one."""
    from onnxjson.structure import check_structure

    return located(path, loaded, list(check_structure(loaded.model)))


def of_blobs(path: Path, loaded: "Loaded") -> list[Finding]:
    """What is wrong with the blobs that a text names, each with its place; `loaded` has them unbound."""
    from onnxjson.blob_checks import check_blobs

    if loaded.format != "json":
        return []
    return located(path, loaded, list(check_blobs(loaded.model, _folder_of(path))))


def _folder_of(path: Path) -> Path:
    """The folder in which a file really stands; its blobs stand there, too."""
    return Path(os.path.realpath(path)).parent


@contextmanager
def of_failed_writing(path: Path, loaded: "Loaded") -> Iterator[None]:
    """Give what a model has no form for the name of its file, and its place where the file is our text."""
    try:
        yield
    except EncodeError as error:
        unplaced = [finding for finding in error.findings if not finding.file]
        if not unplaced:
            raise
        raise EncodeError(str(error), located(path, loaded, unplaced)) from error


def located(path: Path, loaded: "Loaded", found: list[Finding]) -> list[Finding]:
    """`found` with the file's name, and line and column of each address where the file is our text.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the text cannot be read again.
    """
    places: dict[str, tuple[int, int]] = {}
    addresses = [finding.address for finding in found if finding.address and not finding.line]
    if addresses and loaded.format == "json":
        from onnxjson.reading.location import locate

        places = locate(_without_weights(path), addresses)
    located_findings = []
    for finding in found:
        line, column = places.get(finding.address, (finding.line, finding.column))
        located_findings.append(msgspec.structs.replace(finding, file=str(path), line=line, column=column))
    return located_findings


def _without_weights(path: Path) -> bytes:
    """The text of a file; that of a big one without its long base64 values, which no line and hardly a column needs."""
    from onnxjson.identity import open_source
    from onnxjson.reading.cutting import CUT_FROM, cut_base64

    source = open_source(path)
    return source.read_at(0, source.size) if source.size < CUT_FROM else cut_base64(source)[0]


def of_native_analysis(path: Path, loaded: "Loaded", worker: "Worker") -> list[Finding]:
    """What onnx's checker and shape inference find, each with its place in the text where the file is one.

    Raises:
        WorkerError: the analysis crashed, hung or ran out of memory.
        LimitError: the model is too big for it.
    """
    if loaded.format == "onnx":
        return located(path, loaded, list(worker.check(path, full=True)))
    from onnxjson import files
    from onnxjson.wire.writing import message_bytes

    model = files.bound(loaded.model, folder=_folder_of(path), weights_from=None)
    return located(path, loaded, list(worker.check(message_bytes(model), full=True, folder=path.parent)))

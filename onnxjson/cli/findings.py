"""Findings of a file with their file name, line and column."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from onnxjson.codecs.reading.exact_reader import locate
from onnxjson.codecs.text_file import CUT_FROM, cut_base64
from onnxjson.model.errors import EncodeError, Finding
from onnxjson.model.operator_checks import check_model
from onnxjson.storage import files
from onnxjson.storage.external_files import external_paths
from onnxjson.storage.files import Loaded
from onnxjson.storage.identity import open_source
from onnxjson.storage.weights import check_blobs

if TYPE_CHECKING:
    from onnxjson.running.worker import Worker


def of_model(path: Path, loaded: Loaded) -> list[Finding]:
    """Findings of `check_model`, with their positions if the file is a text."""
    return located(path, loaded, list(check_model(loaded.model)))


def of_blobs(path: Path, loaded: Loaded) -> list[Finding]:
    """Findings about the blobs that a text names, with their positions; `loaded` has them unbound."""
    if loaded.format != "json":
        return []
    return located(path, loaded, list(check_blobs(loaded.model, _folder_of(path))))


def _folder_of(path: Path) -> Path:
    """Return the real folder of a file and its blobs, with links resolved."""
    return Path(os.path.realpath(path)).parent


@contextmanager
def of_failed_writing(path: Path, loaded: Loaded) -> Iterator[None]:
    """Add file and position to the findings of a model that cannot be written in some form."""
    try:
        yield
    except EncodeError as error:
        unplaced = [finding for finding in error.findings if not finding.file]
        if not unplaced:
            raise
        raise EncodeError(str(error), located(path, loaded, unplaced)) from error


def located(path: Path, loaded: Loaded, found: list[Finding]) -> list[Finding]:
    """`found` with the name of the file, and with line and column of each address if the file is a text of onnxjson.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the text cannot be read again.
    """
    places: dict[str, tuple[int, int]] = {}
    addresses = [finding.address for finding in found if finding.address and not finding.line]
    if addresses and loaded.format == "json":
        places = locate(_without_weights(path), addresses)
    located_findings = []
    for finding in found:
        line, column = places.get(finding.address, (finding.line, finding.column))
        located_findings.append(msgspec.structs.replace(finding, file=str(path), line=line, column=column))
    return located_findings


def _without_weights(path: Path) -> bytes:
    """The text of a file; without the long base64 values of a big one, which hardly any position depends on."""
    source = open_source(path)
    return source.read_at(0, source.size) if source.size < CUT_FROM else cut_base64(source)[0]


def with_native_analysis(path: Path, loaded: Loaded, worker: "Worker", others: list[Finding]) -> list[Finding]:
    """Add the findings of onnx's checker and shape inference to `others`; see `onnxjson.running.onnx_findings`.

    Raises:
        WorkerError: the analysis crashed, hung or ran out of memory.
        LimitError: the model is too big for it.
    """
    from onnxjson.running.onnx_findings import onnx_findings

    is_binary = loaded.format == "onnx"
    model = loaded.model
    if not is_binary:
        model = files.bind_digests(model, folder=_folder_of(path), weights_from=None)
    # A link in place of external data is refused anyway, and must not be followed.
    reads = [each for each in external_paths(model, path.parent) if not each.is_symlink()]
    found = onnx_findings(worker, model, others, path=path if is_binary else None, folder=path.parent, reads=reads)
    return located(path, loaded, list(found))

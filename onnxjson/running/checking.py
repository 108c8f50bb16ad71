"""Check models: findings of a model, and of a file with their file name, line and column."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from onnxjson.codecs.reading.exact_reader import COMMENTS_CODE, locate
from onnxjson.codecs.text_file import CUT_FROM, cut_base64
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, EncodeError, Finding, OtherJsonError, WorkerError
from onnxjson.model.methods import Reported
from onnxjson.model.operator_checks import check_model
from onnxjson.storage import files
from onnxjson.storage.external import file_of
from onnxjson.storage.external_files import external_paths
from onnxjson.storage.files import Loaded
from onnxjson.storage.identity import open_source
from onnxjson.storage.weights import check_blobs

if TYPE_CHECKING:
    from onnxjson.running.worker import Worker

UNFINISHED: Final = "check-unfinished"
"""Code of the finding that native analysis did not finish."""


class Findings(Reported, tuple[Finding, ...]):
    """All findings about a model."""

    __slots__ = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Those that are errors."""
        return tuple([each for each in self if each.severity == "error"])


def check(model: Model | str | Path, *, deep: bool = False) -> Findings:
    """Check a model for errors.

    Args:
        model: the model, or its file; findings of a text have line and column.
        deep: whether to run the checker and the shape inference of onnx too, in a guarded process.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        OtherJsonError: the file is JSON of another program.
        WorkerError: native analysis of a model in memory did not finish; for a file, that is a finding.
        LimitError: the model is too big.
    """
    with new_worker() if deep else nullcontext() as worker:
        if not isinstance(model, Model):
            return Findings(of_file(Path(model), worker))
        found = check_model(model)
        if worker is None:
            return Findings(found)
        from onnxjson.running.onnx_findings import onnx_findings

        file = file_of(model)
        folder = None if file is None else file.parent
        return Findings(onnx_findings(worker, model, found, folder=folder, reads=_files_of(model, folder)))


def new_worker() -> "Worker":
    """Return a worker; most checks need none, and importing it takes as long as checking a small model."""
    from onnxjson.running.worker import Worker

    return Worker()


def of_file(path: Path, worker: "Worker | None", *, drop_orphans: bool = False) -> list[Finding]:
    """Findings of the model in a file; with a worker, also those of native analysis.

    Raises:
        OtherJsonError: it is JSON of another program.
    """
    try:
        # A missing blob is a finding; with `bind` the first one would end the check.
        loaded = files.load(path, bind=False, drop_orphans=drop_orphans)
    except OtherJsonError:
        raise
    except DecodeError as error:
        if not error.findings:
            return [Finding(severity="error", code="not-a-model", message=str(error), file=str(path))]
        return [msgspec.structs.replace(finding, file=finding.file or str(path)) for finding in error.findings]
    # Comments are not errors; they matter only to commands that write.
    found = [finding for finding in loaded.warnings if finding.code != COMMENTS_CODE]
    found += of_model(path, loaded)
    of_missing = of_blobs(path, loaded)
    found += of_missing
    if worker is not None and of_missing:
        message = "onnx's checker was not run, since weights are missing"
        found.append(Finding(severity="warning", code=UNFINISHED, message=message, file=str(path)))
    elif worker is not None:
        try:
            found = _with_native_analysis(path, loaded, worker, found)
        except WorkerError as error:
            found.append(Finding(severity="warning", code=UNFINISHED, message=str(error), file=str(path)))
    return sorted(found, key=lambda finding: (finding.line, finding.column))


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
    """`found` with the name of the file, and with line and column of each address if the file is a text of onnxjson."""
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


def _with_native_analysis(path: Path, loaded: Loaded, worker: "Worker", others: list[Finding]) -> list[Finding]:
    """Add the findings of onnx's checker and shape inference to `others`; see `onnxjson.running.onnx_findings`."""
    from onnxjson.running.onnx_findings import onnx_findings

    is_binary = loaded.format == "onnx"
    model = loaded.model
    if not is_binary:
        model = files.bind_digests(model, folder=_folder_of(path), weights_from=None)
    reads = _files_of(model, path.parent)
    found = onnx_findings(worker, model, others, path=path if is_binary else None, folder=path.parent, reads=reads)
    return located(path, loaded, list(found))


def _files_of(model: Model, folder: Path | None) -> list[Path]:
    # A link in place of external data is refused anyway, and must not be followed.
    return [] if folder is None else [each for each in external_paths(model, folder) if not each.is_symlink()]

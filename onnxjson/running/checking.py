"""Check models: findings of a model, and of a file with their file name, line and column.

onnx names nodes by their names, which may be absent or not unique. When its checker or shape inference finds something,
it is asked again about a copy of the model in which each node has a name of its own. What follows from another finding
is only counted there.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from onnxjson.codecs.text_file import read_bytes, skeleton
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.attribute_values import check_perms, stated_ranks
from onnxjson.model.constants import type_of_constant
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Graph, Model, Type
from onnxjson.model.errors import (
    DecodeError,
    EncodeError,
    Finding,
    LimitError,
    OnnxJsonError,
    OtherJsonError,
    Severity,
    WorkerError,
)
from onnxjson.model.index import Index, Scope
from onnxjson.model.methods import Reported
from onnxjson.model.operator_checks import check_model
from onnxjson.model.opset_checks import unknown_domains
from onnxjson.model.types import contradict
from onnxjson.outline.places import lines_of
from onnxjson.running.independent_errors import ONNX_CODES, independent_errors
from onnxjson.storage import files
from onnxjson.storage.external import file_of
from onnxjson.storage.files import Loaded
from onnxjson.storage.identity import open_source
from onnxjson.storage.named_files import external_paths
from onnxjson.storage.weights import check_blobs, missing

if TYPE_CHECKING:
    from onnxjson.running.worker import Worker

LOAD: Final = "check-load"
"""Code of findings about loading a model in onnxruntime."""

UNFINISHED: Final = "check-unfinished"
"""Code of the finding that native analysis did not finish."""

_SHELL: Final = "Inference error(s):"
"""The end of a message about a node whose subgraph has the mistake that the next message is about."""

_OPERATOR: Final = re.compile(r"No Op registered for (\S+) with")
_TENSOR: Final = re.compile(r"tensor name: (.*?)\)")
_QUOTED: Final = re.compile(r"'([^']+)'")


class Findings(Reported, tuple[Finding, ...]):
    """All findings about a model; false if there are none."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Findings: {counted(len(self), 'finding')}, {counted(len(self.errors), 'error')}>"

    def __bool__(self) -> bool:
        return len(self) > 0

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Those that are errors."""
        return tuple([each for each in self if each.severity == "error"])


def check(model: Model | str | Path, *, deep: bool = False) -> Findings:
    """Check a model for errors.

    Args:
        model: the model, or its file; findings of a text have line and column.
        deep: whether to run the checker and the shape inference of onnx too, and to load the model in onnxruntime, in
            a sandboxed process.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        OtherJsonError: the file is JSON of another program.
        WorkerError: native analysis of a model in memory did not finish; for a file, that is a finding.
        LimitError: the model is too big.
    """
    with new_worker() if deep else nullcontext() as worker:
        if not isinstance(model, Model):
            return Findings(read_file(Path(model), worker)[0])
        findings = check_model(model, causes=True)
        if worker is None:
            return Findings(findings)
        file = file_of(model)
        folder = None if file is None else file.parent
        findings = onnx_findings(worker, model, findings, folder=folder, reads=_files_of(model, folder))
        return Findings((*findings, *load_findings(worker, model, findings, folder)))


def new_worker() -> "Worker":
    """Return a worker; most checks need none, and importing it takes as long as checking a small model."""
    from onnxjson.running.worker import Worker

    return Worker()


def read_file(
    path: Path, worker: "Worker | None", *, drop_orphans: bool = False
) -> tuple[list[Finding], Loaded | None]:
    """Findings of the model in a file, with a worker also those of native analysis, and the model if it can be read.

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
            return [Finding(severity="error", code="not-a-model", message=str(error), file=str(path))], None
        findings = [msgspec.structs.replace(finding, file=finding.file or str(path)) for finding in error.findings]
        if not drop_orphans and all([each.code == "unknown-owner" for each in findings]):
            # The model is readable but for lines about elements that are gone; what used those is a mistake as well.
            more, _ = read_file(path, worker, drop_orphans=True)
            findings += [each for each in more if each.severity == "error"]
        return sorted(findings, key=lambda finding: (finding.line, finding.column)), None
    from onnxjson.codecs.reading.exact_reader import COMMENTS_CODE

    # Comments are not errors; they matter only to commands that write.
    findings = [finding for finding in loaded.warnings if finding.code != COMMENTS_CODE]
    of_missing = of_blobs(path, loaded)
    findings += [*of_model(path, loaded), *of_missing]
    if worker is not None and of_missing:
        message = "onnx's checker was not run, since weights are missing"
        findings.append(Finding(severity="warning", code=UNFINISHED, message=message, file=str(path)))
    elif worker is not None:
        try:
            findings = _with_native_analysis(path, loaded, worker, findings)
        except WorkerError as error:
            findings.append(Finding(severity="warning", code=UNFINISHED, message=str(error), file=str(path)))
    return sorted(findings, key=lambda finding: (finding.line, finding.column)), loaded


def read_text(text: bytes, *, drop_orphans: bool = False) -> tuple[Model | None, list[Finding]]:
    """Read a text that may be unfinished -> its model, if it has one, and the findings of reading it.

    JSON of another program has neither.
    """
    from onnxjson.codecs.reading.exact_reader import COMMENTS_CODE

    try:
        if b'"onnxjson/' not in text:
            return None, []
        read = read_bytes(text, conflicted=True, drop_orphans=drop_orphans)
    except OtherJsonError:
        return None, []
    except DecodeError as error:
        findings = list(error.findings)
        if not drop_orphans and all([each.code == "unknown-owner" for each in findings]):
            model, _ = read_text(text, drop_orphans=True)
            findings += [each for each in of_text(text, model, []) if each.severity == "error"]
        return None, findings
    except OnnxJsonError as error:
        return None, [Finding(severity="error", code="not-a-model", message=str(error), line=1, column=1)]
    return read.model, [each for each in read.findings if each.code != COMMENTS_CODE]


def of_text(text: bytes, model: Model | None, of_reading: list[Finding]) -> list[Finding]:
    """Return the findings of reading a text and those of its model, with their positions, in their order."""
    of_its_model = [] if model is None else list(check_model(model, causes=True))
    return sorted([*of_reading, *placed(text, of_its_model)], key=lambda each: (each.line, each.column))


def placed(text: bytes, findings: list[Finding]) -> list[Finding]:
    """The findings with line and column of each address that the text has."""
    addresses = [each.address for each in findings if each.address and not each.line]
    if not addresses:
        return findings
    from onnxjson.codecs.reading.exact_reader import locate

    places = locate(text, addresses)
    return [
        msgspec.structs.replace(each, line=line, column=column)
        for each in findings
        for line, column in [places.get(each.address, (each.line, each.column))]
    ]


def of_model(path: Path, loaded: Loaded, *, most: int | None = None) -> list[Finding]:
    """Findings of `check_model`; if the file is a text, with their positions, of the first `most` if that is given."""
    found = list(check_model(loaded.model, causes=True))
    return [*located(path, loaded, found[:most]), *(() if most is None else found[most:])]


def of_blobs(path: Path, loaded: Loaded) -> list[Finding]:
    """Findings about the blobs that a text names, with their positions; `loaded` has them unbound."""
    if loaded.format != "json" or not missing(loaded.model):
        return []
    return located(path, loaded, list(check_blobs(loaded.model, files.real_folder(path))))


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


def located(path: Path, loaded: Loaded, findings: list[Finding]) -> list[Finding]:
    """Return the findings with the file, and, if that is a text of onnxjson, with line and column of each address."""
    if loaded.format == "json" and any(each.address and not each.line for each in findings):
        findings = placed(skeleton(open_source(path)), findings)  # hardly any position depends on long base64 values
    return [msgspec.structs.replace(each, file=str(path)) for each in findings]


def outlined(model: Model, findings: list[Finding], *, infer: bool) -> list[Finding]:
    """The findings with the line of the outline of each node, unless the model is too large for that.

    With `infer`, types that the model does not state are inferred for it.
    """
    lines = lines_of(model, [each.address for each in findings], infer=infer)
    texts = {address: visible(line.text, None) for address, line in lines.items()}
    return [msgspec.structs.replace(each, outline=texts.get(each.address, "")) for each in findings]


def _with_native_analysis(path: Path, loaded: Loaded, worker: "Worker", others: list[Finding]) -> list[Finding]:
    """Add the findings of onnx's checker and shape inference to `others`; see `onnxjson.running.checking`."""
    is_binary = loaded.format == "onnx"
    model = loaded.model
    if not is_binary:
        model = files.bind_digests(model, folder=files.real_folder(path), weights_from=None)
    reads = _files_of(model, path.parent)
    found = onnx_findings(worker, model, others, path=path if is_binary else None, folder=path.parent, reads=reads)
    return located(path, loaded, [*found, *load_findings(worker, model, found, path.parent)])


def load_findings(
    worker: "Worker", model: Model, others: Sequence[Finding], folder: Path | None
) -> tuple[Finding, ...]:
    """Return the findings of loading a model in onnxruntime and of running it; none if there are errors already."""
    if any(each.severity == "error" for each in others):
        return ()
    from onnxjson.running.loading import has_open_sizes, try_loading

    tried = try_loading(model, folder, worker)
    problems: list[tuple[Severity, str]] = []
    if tried.state in ("not-tried", "too-new"):
        problems.append(("warning", f"it was not loaded in onnxruntime: {tried.reason}"))
    elif tried.state == "fails":
        problems.append(("error" if tried.is_certain else "warning", f"onnxruntime does not load it: {tried.reason}"))
    elif tried.ran == "fails" and has_open_sizes(model):
        why = f"with the sizes chosen for its dynamic dimensions it fails: {tried.run_problem}"
        problems.append(("warning", f"it was not run: {why}"))
    elif tried.ran == "fails":
        problems.append(("warning", f"onnxruntime loads it, but a run on random inputs fails: {tried.run_problem}"))
    elif tried.ran == "not-run":
        problems.append(("warning", f"onnxruntime loads it, but it was not run: {tried.run_problem}"))
    if model.training_info:
        problems.append(("warning", "its training_info was not tried: onnxruntime loads the graph alone"))
    address = tried.address or "/graph"
    return tuple([Finding(severity=how, code=LOAD, message=text, address=address) for how, text in problems])


def _files_of(model: Model, folder: Path | None) -> list[Path]:
    # A link in place of external data is refused anyway, and must not be followed.
    return [] if folder is None else [each for each in external_paths(model, folder) if not each.is_symlink()]


def onnx_findings(
    worker: "Worker",
    model: Model,
    others: Sequence[Finding] = (),
    *,
    path: Path | None = None,
    folder: Path | None = None,
    reads: Sequence[Path] | None = None,
) -> tuple[Finding, ...]:
    """Return other findings and those of onnx; what follows from an error is only counted there."""
    known = {each.address for each in others}
    perms = [each for each in _wrong_perms(worker, model) if each.address not in known]
    others = [*others, *unknown_domains(model), *perms]
    if path is None:
        findings = worker.check(message_bytes(model), full=True, folder=folder, reads=reads)
    else:
        findings = worker.check(path, full=True, reads=reads)
    if not any(each.code in ONNX_CODES for each in findings):
        return (*others, *findings)
    index = Index(model)
    with suppress(WorkerError, LimitError):  # Then the findings remain without nodes.
        findings = _with_nodes(
            model, lambda marked: worker.check(message_bytes(marked), full=True, folder=folder, reads=reads)
        )
    places = _Places(worker, model, index)
    placed = [places.of(each) if each.code in ONNX_CODES else each for each in findings]

    from onnxjson.running.inferred_types import inferred_scopes

    def infer(mended: Model) -> tuple[Mapping[str, Type], tuple[Finding, ...]]:
        scopes: Mapping[str, Scope] = {}

        def ask(marked: Model) -> tuple[Finding, ...]:
            nonlocal scopes
            scopes, answer = inferred_scopes(marked, None, worker)
            return answer

        answer = _with_nodes(mended, ask)
        return scopes["/graph"].types, answer

    return independent_errors(index, [*others, *placed], infer)


def _wrong_perms(worker: "Worker", model: Model) -> list[Finding]:
    """Return the findings about Transpose nodes of the main graph, with the numbers of dimensions that are inferred.

    Shape inference of onnx accepts a permutation of fewer axes than the input has.
    """
    graph = model.graph or Graph()
    inputs = {each.input[0] for each in graph.node if each.op_type == "Transpose" and each.input}
    if stated_ranks(graph).keys() >= inputs:
        return []  # `check_model` reports them.
    from onnxjson.running.inferred_types import inferred_scopes

    try:
        inferred = inferred_scopes(model, None, worker)[0]["/graph"].graph
    except OnnxJsonError:
        return []
    return list(check_perms(graph.node, "/graph", stated_ranks(inferred).get))


def _with_nodes(model: Model, ask: Callable[[Model], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Return the findings of onnx about a model with the addresses of the nodes that they name."""
    from onnxjson.running.loading import MarkedNodes

    marked = MarkedNodes(model)
    findings = []
    for each in ask(marked.model):
        message, address = marked.read(each.message)
        findings.append(msgspec.structs.replace(each, message=message, address=address))
    shells = [each for each in findings if each.message.endswith(_SHELL)]
    return tuple(findings if len(shells) == len(findings) else [each for each in findings if each not in shells])


class _Places:
    """The elements that messages of onnx without a node are about."""

    def __init__(self, worker: "Worker", model: Model, index: Index) -> None:
        self._worker = worker
        self._model = model
        self._index = index

    def of(self, finding: Finding) -> Finding:
        """Return a finding with an address, at worst that of the graph."""
        address = finding.address or self._address(finding.message)
        if not address and finding.code == "check-shapes":
            address = self._wrong_type()
        return msgspec.structs.replace(finding, address=address or "/graph")

    def _address(self, message: str) -> str:
        operator = _OPERATOR.search(message)
        refs = self._index.nodes_with("op_type", operator[1]) if operator else ()
        if refs:
            return refs[0].address
        for name in _TENSOR.findall(message) + _QUOTED.findall(message):
            for scope in self._index.scopes:
                if name in scope.initializers:
                    return f"{scope.address}/initializer/{scope.initializers[name]}"
            # A name that is defined twice is wrong where it is defined again.
            if producers := self._index.nodes_with("output", name) or self._index.nodes_with("name", name):
                return producers[-1].address
        for position, output in enumerate((self._model.graph or Graph()).output):
            if output.name and f"'{output.name}' is not an output" in message:
                return f"/graph/output/{position}"
        return ""

    def _wrong_type(self) -> str:
        """Return the address of the first type that the graph states and onnx infers otherwise."""
        graph = self._model.graph
        if graph is None:
            return ""
        from onnxjson.running.inferred_types import inferred_scopes

        bare = msgspec.structs.replace(self._model, graph=msgspec.structs.replace(graph, value_info=()))
        try:
            types = dict(inferred_scopes(bare, None, self._worker)[0]["/graph"].types)
        except OnnxJsonError:
            return ""
        types.update({each.name or "": type_of_constant(each) for each in graph.initializer})
        for position, each in enumerate(graph.value_info):
            if contradict(each.type, types.get(each.name or "")):
                return f"/graph/value_info/{position}"
        return ""

"""Client of the guarded process: native code runs there, so that no model can crash this process.

The checker and the shape inference of onnx are C++ that crashes, hangs or fills the memory on some unfinished models.
`Worker` starts a small server (`onnxjson.running.worker_server`) on first use. For each job the server forks a
child with limits (2 ms), so that a crash results in an error message.
"""

import atexit
import os
import secrets
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.errors import Finding, LimitError, MissingInputError, WorkerError
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.running.box import warn_once
from onnxjson.running.box_processes import end_marked
from onnxjson.running.environment import SERVER_MARK, server_environment, trusted_environment, user_packages
from onnxjson.running.worker_protocol import Answer, BrokenConversationError, Job, Limits, Request, receive, send
from onnxjson.storage.identity import reading_error

_GRACE_SECONDS: Final = 15.0
"""Additional time for the server: to start, to import onnx and to forward the answer."""

# -I excludes the current folder and PYTHONPATH, so that a json.py next to a model is never imported. The folder of the
# package is passed explicitly, since with -I Python may not find it (for example in a checkout).
_START: Final = """
import importlib.util, sys
folder = sys.argv[1]
spec = importlib.util.spec_from_file_location("onnxjson", f"{folder}/__init__.py", submodule_search_locations=[folder])
sys.modules["onnxjson"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
sys.path += sys.argv[2:]
from onnxjson.running.worker_server import main
main()
"""

_NAMES: Final[dict[Job, str]] = {
    "check": "the checker of onnx",
    "check_shapes": "the shape inference of onnx",
    "infer_shapes": "the shape inference of onnx",
    "infer_types": "the shape inference of onnx",
    "convert_version": "the version converter of onnx",
    "inline_functions": "the inliner of onnx",
    "pass": "the pass",
    "pass_stages": "the pass",
    "run": "the run",
}


class _Server(NamedTuple):
    """Running server."""

    process: "subprocess.Popen[bytes]"
    started_as: tuple[int, list[str], dict[str, str]]
    """Process that started it, its command and its environment."""
    mark: str
    """Value of `SERVER_MARK` in its environment."""

    def end(self) -> None:
        """End it with everything that its jobs started."""
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe:
                    pipe.close()
        # Its input is closed, so it kills its child and ends.
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.returncode != 0:  # It could not end what its jobs started.
            end_marked(f"{SERVER_MARK}={self.mark}".encode())


_idle: Final[list[_Server]] = []
"""The server of the last `Worker` that was closed, for the next one: starting it takes longer than most jobs."""


@atexit.register
def end_idle_server() -> None:
    """End the server that waits for the next worker of this process, if there is one."""
    while _idle:
        server = _idle.pop()
        if server.started_as[0] == os.getpid():
            server.end()


class PassAnswer(NamedTuple):
    """Result of a pass or a task."""

    model: bytes
    """Bytes it returned; not checked yet."""
    problem: str
    """Why it failed, as the end of a sentence that begins with the name of the pass; "" if it did not fail."""
    printed: str
    """Its printed output, cut; made visible."""
    remarks: tuple[str, ...] = ()
    """Its remarks for the user; made visible."""


class Worker:
    """Guarded process, started on first use; use it in a ``with`` statement. Threads wait for each other.

    A closed worker leaves its server to the next one.

    Args:
        limits: limits of one job; its memory limit is at least four times the size of the model.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._server: _Server | None = None
        self._interrupted = False
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop using the process; a later job uses another one."""
        with self._turn:
            server = self._server
            if server is None or self._interrupted or server.process.poll() is not None or _idle:
                self._stop()
            else:
                self._server = None
                _idle.append(server)

    def interrupt(self) -> None:
        """End the running job of another thread; that thread gets a WorkerError."""
        self._interrupted = True
        server = None if self._server is None else self._server.process
        if server is None or server.stdin is None or server.stdin.closed:
            return
        # The server and its child end when the input of the server is closed. The descriptor itself stays open, since
        # the other thread may be about to write to it.
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            os.dup2(nothing, server.stdin.fileno(), inheritable=False)
        finally:
            os.close(nothing)

    def check(
        self,
        model: bytes | Path,
        full: bool = False,
        *,
        folder: Path | None = None,
        reads: Sequence[Path] | None = None,
    ) -> tuple[Finding, ...]:
        """Return the findings of the checker of onnx and, with `full`, those of its strict shape inference.

        A model of more than 2 GB is passed by its path. External data is read from the folder of the model, or from
        `folder`. Printed output becomes findings too (warnings, code ``check-note``). The process can read the model
        and the files `reads`; if that is None, everything in the folder of the external data.

        Raises:
            WorkerError: the analysis crashed, hung or ran out of memory, without any findings before.
            MissingInputError, AccessDeniedError, FileError: the file cannot be read.
            LimitError: the model is larger than protobuf supports.
        """
        findings = self._findings("check", model, folder, reads)
        if not full or any(finding.code == "check-failed" for finding in findings):
            return findings
        try:
            return findings + self._findings("check_shapes", model, folder, reads)
        except WorkerError as error:
            if not findings:
                raise
            # Broken models often crash shape inference; the findings already report why they are broken.
            return (*findings, Finding(severity="warning", code="check-unfinished", message=str(error)))

    def check_shapes(self, model: bytes) -> tuple[Finding, ...]:
        """Return the findings of the strict shape inference of onnx alone.

        Raises:
            WorkerError: the analysis crashed, hung or ran out of memory.
            LimitError: the model is larger than protobuf supports.
        """
        return self._findings("check_shapes", model, None)

    def infer_shapes(self, model: bytes) -> bytes:
        """Return the serialized model with the types and shapes that onnx can infer.

        Raises:
            WorkerError: the analysis crashed, hung, ran out of memory or rejected the model.
            LimitError: the model is larger than protobuf supports.
        """
        return self._changed("infer_shapes", model)

    def infer_types(self, model: bytes) -> tuple[bytes, tuple[Finding, ...]]:
        """Return what `infer_shapes` adds to a model, without the rest, and the findings of `check_shapes`.

        Of the nodes, only those with subgraphs stay.

        Raises:
            WorkerError, LimitError: see `infer_shapes`.
        """
        answer, types = self._request("infer_types", model)
        if answer.outcome == "failed":
            raise WorkerError(f"{_NAMES['infer_types']} rejects this model: {answer.detail}")
        return types, answer.findings

    def inline_functions(self, model: bytes) -> bytes:
        """Return the serialized model with all calls of functions inlined; see `infer_shapes`."""
        return self._changed("inline_functions", model)

    def convert_version(self, model: bytes, version: int) -> bytes:
        """Return the serialized model for another version of the default operator set; see `infer_shapes`."""
        return self._changed("convert_version", model, version)

    def run_pass(
        self,
        module: str,
        declaration: str,
        model: bytes,
        folder: Path,
        limits: Limits,
        *,
        stages: bool = False,
        reads: Sequence[str] = (),
        trusted: bool = False,
    ) -> PassAnswer:
        """Run a pass in a separate process; a failure is part of the answer.

        Args:
            module: name of the module that runs passes, which this package must not import.
            declaration: the pass, as `declared` of that module writes it.
            model: serialized.
            folder: the current folder of the pass, which it may write to.
            limits: limits of the process.
            stages: return the result of each part of the pass instead.
            reads: absolute paths of files and folders that the pass may read.
            trusted: run it without the box (`onnxjson.running.box`), with the user's environment variables.

        Raises:
            WorkerError: the guarded process itself does not answer, or the kernel refuses a protection it offers.
        """
        job: Job = "pass_stages" if stages else "pass"
        encoded = _encoded(reads)
        request = Request(
            job=job, module=module, declaration=declaration, limits=limits, reads=encoded, trusted=trusted
        )
        return self._contained(request, model, folder)

    def run_task(
        self,
        task: bytes,
        folder: Path,
        limits: Limits,
        *,
        reads: Sequence[str] = (),
        devices: bool = False,
        trusted: bool = False,
    ) -> PassAnswer:
        """Execute a task of `onnxjson.running.tasks` in a separate process; see `run_pass`.

        Its reports are in a file in `folder`, even if the process is killed. With `devices` it may use graphics
        processors.

        Raises:
            LimitError: the task is too large to be sent.
            WorkerError: see `run_pass`.
        """
        if len(task) > 2 * MESSAGE_BYTES:
            raise LimitError(f"{len(task):,} bytes of models and values are more than the guarded process accepts")
        request = Request(job="run", limits=limits, reads=_encoded(reads), devices=devices, trusted=trusted)
        return self._contained(request, task, folder)

    def _contained(self, request: Request, blob: bytes, folder: Path) -> PassAnswer:
        environment = trusted_environment() if request.trusted else ()
        request = msgspec.structs.replace(request, folder=os.fsencode(folder.absolute()), environment=environment)
        answer, made = self._exchange(request, blob)
        if answer.outcome == "done":
            return PassAnswer(made, "", answer.output, answer.remarks)
        detail = f": {answer.detail}" if answer.detail else ""
        problem = {
            "memory": f"needs more than {request.limits.memory / 2**30:.1f} GiB of memory",
            "time": f"does not finish{detail}",
            "crashed": f"crashed{detail}",
            "exited": f"ended its process{detail}",
            "failed": f"failed{detail}",
            "unavailable": f"cannot be used{detail}",
        }[answer.outcome]
        return PassAnswer(b"", problem, answer.output)

    def _changed(self, job: Job, model: bytes, version: int | None = None) -> bytes:
        answer, changed = self._request(job, model, version=version)
        if answer.outcome == "failed":
            raise WorkerError(f"{_NAMES[job]} rejects this model: {answer.detail}")
        return changed

    def _findings(
        self, job: Job, model: bytes | Path, folder: Path | None, reads: Sequence[Path] | None = None
    ) -> tuple[Finding, ...]:
        answer, _ = self._request(job, model, folder, reads=reads)
        findings = list(answer.findings)
        if answer.outcome == "failed":
            findings.append(Finding(severity="error", code="check-failed", message=f"{_NAMES[job]}: {answer.detail}"))
        for line in answer.output.splitlines():
            findings.append(Finding(severity="warning", code="check-note", message=line))
        return tuple(findings)

    def _request(
        self,
        job: Job,
        model: bytes | Path,
        folder: Path | None = None,
        version: int | None = None,
        reads: Sequence[Path] | None = None,
    ) -> tuple[Answer, bytes]:
        """Return the answer to a job that ended as "done" or "failed"; raise for all other outcomes."""
        path = None if isinstance(model, bytes) else os.fsencode(model.absolute())
        data_folder = None if folder is None else os.fsencode(folder.absolute())
        blob = model if isinstance(model, bytes) else b""
        size = len(model) if isinstance(model, bytes) else _size(model)
        if len(blob) > MESSAGE_BYTES:
            raise LimitError(
                f"the model has {size:,} bytes, but protobuf reads at most {MESSAGE_BYTES:,}; pass its path instead"
            )
        limits = msgspec.structs.replace(self._limits, memory=max(self._limits.memory, 4 * size))
        if reads is None:
            reads = [] if isinstance(model, bytes) else [model.absolute().parent]
            reads += [] if folder is None else [folder]
        read = [str(each.absolute()) for each in (*([] if isinstance(model, bytes) else [model]), *reads)]
        request = Request(job=job, path=path, folder=data_folder, version=version, limits=limits, reads=_encoded(read))
        answer, result = self._exchange(request, blob)
        if answer.outcome == "unavailable":
            raise WorkerError(f"{_NAMES[job]} cannot be used: {answer.detail}; install onnx for {sys.executable}")
        if answer.outcome not in {"done", "failed"}:
            raise WorkerError(_failure(answer, _NAMES[job], limits))
        return answer, result

    def _exchange(self, request: Request, blob: bytes) -> tuple[Answer, bytes]:
        # About 40 s for a model of 2 GB to pass through both pipes.
        until = time.monotonic() + request.limits.wall_seconds + _GRACE_SECONDS + len(blob) / 50e6
        with self._turn:
            try:
                server = self._start_server().process
                assert server.stdin
                assert server.stdout
                send(server.stdin.fileno(), request, blob, until=until)
                found = receive(server.stdout.fileno(), Answer, until=until, blob_bytes=request.limits.answer_bytes)
            except (BrokenConversationError, EOFError) as error:
                self._stop()
                reason = str(error) or "it has ended"
                raise WorkerError(f"the process for {_NAMES[request.job]} does not answer: {reason}") from error
            except BaseException:
                # Otherwise the next request would get the answer to this one.
                self._stop()
                raise
        if found[0].outcome == "unboxed":
            raise WorkerError(
                f"{_NAMES[request.job]} did not run: the kernel refuses to protect this machine from it "
                f"({found[0].detail}); `onnxjson doctor` tries each protection"
            )
        return found

    def _start_server(self) -> _Server:
        if self._server is not None and self._server.process.poll() is None:
            return self._server
        self._stop()
        warn_once()
        package = str(Path(__file__).resolve().parents[1])
        command = [sys.executable, "-I", "-c", _START, package, *user_packages()]
        started_as = (os.getpid(), command, server_environment())
        with suppress(IndexError):
            self._server = _idle.pop()
            if self._server.started_as == started_as and self._server.process.poll() is None:
                return self._server
            self._stop()
        mark = secrets.token_hex(16)
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env={**server_environment(), SERVER_MARK: mark},
                start_new_session=True,  # Control-C interrupts only the client, which then ends the server.
            )
        except OSError as error:
            raise WorkerError(f"no process can be started with {sys.executable!r}: {error.strerror}") from error
        assert process.stdin
        os.set_blocking(process.stdin.fileno(), False)
        self._server = _Server(process, started_as, mark)
        return self._server

    def _stop(self) -> None:
        server, self._server, self._interrupted = self._server, None, False
        if server is not None:
            server.end()


def _encoded(paths: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(map(os.fsencode, paths))


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except OSError as error:
        raise reading_error(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise MissingInputError(f"{visible(str(path), None)} is not a regular file; a model is read from one")
    return status.st_size


def _failure(answer: Answer, who: str, limits: Limits) -> str:
    detail = f": {answer.detail}" if answer.detail else ""
    texts = {
        "memory": f"{who} needs more than {limits.memory / 2**30:.1f} GiB of memory for this model",
        "time": f"{who} does not finish on this model{detail}",
        "crashed": f"{who} crashed on this model{detail}",
        "exited": f"{who} ended its process on this model{detail}",
    }
    return f"{texts[answer.outcome]}; the model itself is untouched"

"""Client of the sandboxed process: native code runs there, so that no model can crash this process.

The checker and the shape inference of onnx are C++ that crashes, hangs or fills the memory on some unfinished models.
`Worker` uses a small server (`onnxjson.running.worker_server`). For each job the server forks a child with limits
(2 ms), so that a crash results in an error message.
"""

import os
import stat
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.errors import Finding, LimitError, MissingInputError, WorkerError
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.model.system import FORKS
from onnxjson.running import worker_protocol as protocol
from onnxjson.running.server_process import ServerProcess, idle_or_new_server, trusted_environment
from onnxjson.storage.identity import reading_errors
from onnxjson.storage.remote import fetch_for

_GRACE_SECONDS: Final = 15.0
"""Additional time for the server: to start, to import onnx and to forward the answer."""

_INFERENCE: Final = "the shape inference of onnx"
_NAMES: Final[dict[protocol.Job, str]] = {
    "check": "the checker of onnx", "check_shapes": _INFERENCE, "infer_types": _INFERENCE,
    "convert_version": "the version converter of onnx", "inline_functions": "the inliner of onnx",
    "pass": "the pass", "pass_stages": "the pass", "run": "the run", "text": "the check of the text",
}  # fmt: skip


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
    """Sandboxed process, started on first use; use it in a ``with`` statement. Threads wait for each other.

    A closed worker leaves its server to the next one.

    Args:
        limits: limits of one analysis, by default those that the user chose, or those of the program. The memory limit
            is raised to four times the size of the model.
    """

    def __init__(self, limits: protocol.Limits | None = None) -> None:
        self._limits = limits
        self._server: ServerProcess | None = None
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop using the process; a later job uses another one."""
        with self._turn:
            server, self._server = self._server, None
            if server is not None:
                server.leave()

    def start(self) -> None:
        """Start the process, so that it imports onnx while this one prepares the first job."""
        with self._turn:
            self._running()

    def _running(self) -> ServerProcess:
        if self._server is None or not self._server.is_running:
            self._stop()
            self._server = idle_or_new_server()
        return self._server

    def interrupt(self) -> None:
        """End the running job of another thread; that thread gets a WorkerError."""
        server = self._server
        if server is not None:
            server.interrupt()

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

    def check_text(self, text: bytes) -> tuple[bool, tuple[Finding, ...]]:
        """Return whether a text has a model, and the findings of `onnxjson.running.checking.of_text`.

        Raises:
            WorkerError: the check was interrupted, or ran out of time or memory.
        """
        has_model, answer = self._changed("text", text)
        return bool(has_model), answer.findings

    def infer_types(self, model: bytes) -> tuple[bytes, tuple[Finding, ...]]:
        """Return the types and shapes that onnx can infer, and the findings of its strict mode.

        The types are in a serialized model without the rest: only nodes with subgraphs stay, others at their places
        are empty.

        Raises:
            WorkerError: the analysis crashed, hung, ran out of memory or rejected the model.
            LimitError: the model is larger than protobuf supports.
        """
        types, answer = self._changed("infer_types", model)
        return types, answer.findings

    def inline_functions(self, model: bytes) -> bytes:
        """Return the serialized model with all calls of functions inlined; see `infer_types`."""
        return self._changed("inline_functions", model)[0]

    def convert_version(self, model: bytes, version: int) -> bytes:
        """Return the serialized model for another version of the default operator set; see `infer_types`."""
        return self._changed("convert_version", model, version)[0]

    def run_contained(self, request: protocol.Request, blob: bytes, folder: Path) -> PassAnswer:
        """Run a pass on a model, or a task of `onnxjson.running.tasks`, in a process; a failure is part of the answer.

        The folder is its current folder, to which it may write; reports of a task are in a file there, even if the
        process is killed. A trusted request runs without the box, with the user's environment variables.

        Raises:
            WorkerError: the sandboxed process itself does not answer, or the kernel refuses a protection it offers.
        """
        if len(blob) > 2 * MESSAGE_BYTES:
            raise LimitError(f"{len(blob):,} bytes of models and values are more than the sandboxed process accepts")
        environment = trusted_environment() if request.trusted else ()
        request = msgspec.structs.replace(request, folder=os.fsencode(folder.absolute()), environment=environment)
        answer, made = self._exchange(request, blob)
        if answer.outcome == "done":
            return PassAnswer(made, "", answer.output, answer.remarks)
        return PassAnswer(b"", self._problem(answer, request.limits), answer.output)

    def _changed(self, job: protocol.Job, model: bytes, version: int | None = None) -> tuple[bytes, protocol.Answer]:
        answer, changed = self._request(job, model, version=version)
        if answer.outcome == "failed":
            raise WorkerError(f"{_NAMES[job]} rejects this model: {answer.detail}")
        return changed, answer

    def _findings(
        self, job: protocol.Job, model: bytes | Path, folder: Path | None, reads: Sequence[Path] | None
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
        job: protocol.Job,
        model: bytes | Path,
        folder: Path | None = None,
        version: int | None = None,
        reads: Sequence[Path] | None = None,
    ) -> tuple[protocol.Answer, bytes]:
        """Return the answer to a job that ended as "done" or "failed"; raise for all other outcomes."""
        for each in (folder, None if isinstance(model, bytes) else model.parent):
            if each is not None:
                fetch_for(each)
        path = None if isinstance(model, bytes) else os.fsencode(model.absolute())
        data_folder = None if folder is None else os.fsencode(folder.absolute())
        blob = model if isinstance(model, bytes) else b""
        size = len(model) if isinstance(model, bytes) else _size(model)
        if len(blob) > MESSAGE_BYTES:
            raise LimitError(
                f"the model has {size:,} bytes, but protobuf reads at most {MESSAGE_BYTES:,}; pass its path instead"
            )
        limits = self._limits or protocol.allowed_limits()
        limits = msgspec.structs.replace(limits, memory=max(limits.memory, 4 * size))
        if reads is None:
            reads = [] if isinstance(model, bytes) else [model.absolute().parent]
            reads += [] if folder is None else [folder]
        read = [str(each.absolute()) for each in (*([] if isinstance(model, bytes) else [model]), *reads)]
        request = protocol.Request(
            job=job, path=path, folder=data_folder, version=version, limits=limits, reads=protocol.encoded_paths(read)
        )
        answer, result = self._exchange(request, blob)
        if answer.outcome == "unavailable":
            raise WorkerError(f"{_NAMES[job]} cannot be used: {answer.detail}; install onnx for {sys.executable}")
        if answer.outcome not in {"done", "failed"}:
            problem = self._problem(answer, limits, " on this model")
            raise WorkerError(f"{_NAMES[job]} {problem}; the model itself is untouched")
        return answer, result

    def _exchange(self, request: protocol.Request, blob: bytes) -> tuple[protocol.Answer, bytes]:
        # About 40 s for a model of 2 GB to pass through both pipes.
        request = msgspec.structs.replace(request, allowed=protocol.ALLOWED.get())
        until = time.monotonic() + request.limits.wall_seconds + _GRACE_SECONDS + len(blob) / 50e6
        with self._turn:
            try:
                server = self._running()
                if not FORKS:  # pipes cannot be waited for there
                    late = server.killed_after(until - time.monotonic())
                protocol.send(server.requests, request, blob, until=until)
                answer_and_blob = protocol.receive(
                    server.answers, protocol.Answer, until=until, blob_bytes=request.limits.answer_bytes
                )
            except (protocol.BrokenConversationError, EOFError) as error:
                self._stop()
                reason = str(error) or "it has ended"
                raise WorkerError(f"the process for {_NAMES[request.job]} does not answer: {reason}") from error
            except BaseException:
                # Otherwise the next request would get the answer to this one.
                self._stop()
                raise
            if not FORKS:  # the job has changed its server
                late.cancel()
                self._stop()
        if answer_and_blob[0].outcome == "unboxed":
            raise WorkerError(
                f"{_NAMES[request.job]} did not run: the kernel cannot sandbox it "
                f"({answer_and_blob[0].detail}); `onnxjson doctor` tries each protection"
            )
        return answer_and_blob

    def _problem(self, answer: protocol.Answer, limits: protocol.Limits, where: str = "") -> str:
        """Return why a job failed, as the end of a sentence, with the option for a limit that the user can choose."""
        detail = f"{where}: {answer.detail}" if answer.detail else where
        memory, timeout = (" (--memory)", " (--timeout)") if self._limits is None else ("", "")
        return {
            "memory": f"needs more than {(limits.data or limits.memory) / 2**30:.1f} GiB of memory{memory}{where}",
            "time": f"does not finish{detail}{timeout}",
            "crashed": f"crashed{detail}",
            "exited": f"ended its process{detail}",
            "failed": f"failed{detail}",
            "unavailable": f"cannot be used{detail}",
        }[answer.outcome]

    def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.end()


def _size(path: Path) -> int:
    with reading_errors(path):
        status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise MissingInputError(f"{visible(str(path), None)} is not a regular file; a model is read from one")
    return status.st_size

"""Native analysis in a guarded process: whatever the model, this process lives.

The checker and the shape inference of onnx are C++ that crashes, hangs or fills the memory on models that an editor
produces every minute. `Worker` starts a small server (`onnxjson.worker_server`) on first use; that one forks a child
with limits for each job (2 ms), so that a crash costs a message.
"""

import os
import site
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

from onnxjson.checking import Finding
from onnxjson.display import visible
from onnxjson.errors import LimitError, MissingInputError, WorkerError
from onnxjson.identity import reading_error
from onnxjson.wire.varints import LARGEST_MESSAGE
from onnxjson.worker_protocol import Answer, BrokenConversationError, Job, Limits, Request, receive, send
from onnxjson.worker_tasks import Evaluated, Evaluation, packed, unpacked_results

_GRACE_SECONDS: Final = 15.0
"""What the server may need beyond the job: starting, importing onnx, passing on the answer."""

# -I keeps the current folder, PYTHONPATH and the like out, so that a json.py beside a model is never imported. The
# package is given by its own folder, since it may be installed where -I does not look (from a checkout).
_START: Final = """
import sys, types
package = types.ModuleType("onnxjson")
package.__path__ = [sys.argv[1]]
sys.modules["onnxjson"] = package
sys.path += sys.argv[2:]
from onnxjson.worker_server import main
main()
"""

_WHO: Final[dict[Job, str]] = {
    "check": "the checker of onnx",
    "check_shapes": "the shape inference of onnx",
    "infer_shapes": "the shape inference of onnx",
    "convert_version": "the version converter of onnx",
    "inline_functions": "the inliner of onnx",
    "evaluate": "the evaluation",
    "pass": "the pass",
    "pass_stages": "the pass",
    "run": "the run",
}


class PassAnswer(NamedTuple):
    """What came of a pass."""

    model: bytes
    """What it gave; nobody looked at it yet."""
    problem: str
    """Why it gave nothing, as the end of a sentence that begins with its name; "" where it gave something."""
    printed: str
    """What it printed, cut; made visible."""
    remarks: tuple[str, ...] = ()
    """What it has to say of itself; made visible."""


class Worker:
    """A guarded process, started on first use; use it in a ``with`` statement. Threads take turns.

    Args:
        limits: what one job may use; its memory is raised to four times the size of the model.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._server: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the next job would start another one."""
        with self._turn:
            self._stop()

    def interrupt(self) -> None:
        """End the job that another thread waits for, which is told that the process does not answer."""
        server = self._server
        if server is None or server.stdin is None or server.stdin.closed:
            return
        # The server ends, with its child, when its input does. The number stays that of something to write to, since
        # the other thread may be about to.
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            os.dup2(nothing, server.stdin.fileno(), inheritable=False)
        finally:
            os.close(nothing)

    def check(self, model: bytes | Path, full: bool = False, *, folder: Path | None = None) -> tuple[Finding, ...]:
        """What the checker of onnx says of a model and, with `full`, what its strict shape inference says.

        A model of more than 2 GB is given by its path. External data is looked for beside that, or in `folder`.
        What both print are findings too (warnings, code ``check-note``).

        Raises:
            WorkerError: the analysis crashed, hung or ran out of memory and found nothing before.
            MissingInputError, AccessDeniedError, FileError: there is no such file.
            LimitError: more bytes than protobuf reads.
        """
        findings = self._findings("check", model, folder)
        if not full or any(finding.code == "check-failed" for finding in findings):
            return findings
        try:
            return findings + self._findings("check_shapes", model, folder)
        except WorkerError as error:
            if not findings:
                raise
            # Half-edited models crash shape inference most often; why they are broken is known already.
            return (*findings, Finding(severity="warning", code="check-unfinished", message=str(error)))

    def check_shapes(self, model: bytes) -> tuple[Finding, ...]:
        """What the strict shape inference of onnx alone says of a model.

        Raises:
            WorkerError: the analysis crashed, hung or ran out of memory.
            LimitError: more bytes than protobuf reads.
        """
        return self._findings("check_shapes", model, None)

    def infer_shapes(self, model: bytes) -> bytes:
        """The serialised model with the types and shapes that onnx can infer.

        Raises:
            WorkerError: the analysis crashed, hung, ran out of memory or did not take the model.
            LimitError: more bytes than protobuf reads.
        """
        return self._changed("infer_shapes", model)

    def inline_functions(self, model: bytes) -> bytes:
        """The serialised model with the bodies of its functions in place of their calls; see `infer_shapes`."""
        return self._changed("inline_functions", model)

    def convert_version(self, model: bytes, version: int) -> bytes:
        """The serialised model for another version of the default operator set; see `infer_shapes`."""
        return self._changed("convert_version", model, version)

    def run_pass(
        self, declaration: str, model: bytes, folder: Path, limits: Limits, *, stages: bool = False
    ) -> PassAnswer:
        """Runs a pass of `onnxjson.passes` in a process of its own; whatever becomes of that is in the answer.

        Args:
            declaration: which pass, as `onnxjson.passes.executing.declared` writes it.
            model: serialised.
            folder: its current folder, which it may write to.
            limits: what it may use.
            stages: whether what each part of it did is wanted, as `onnxjson.passes.stages.packed` writes it.

        Raises:
            WorkerError: the guarded process itself does not answer.
        """
        job: Job = "pass_stages" if stages else "pass"
        return self._contained(job, declaration, model, folder, limits)

    def run_task(self, task: bytes, folder: Path, limits: Limits) -> PassAnswer:
        """Executes a task of `onnxjson.running` in a process of its own; see `run_pass`.

        What comes of it stands in a file in `folder`, also where the process came to no end.

        Raises:
            LimitError: more bytes than can be sent.
        """
        if len(task) > 2 * LARGEST_MESSAGE:
            raise LimitError(f"{len(task):,} bytes of models and values are more than a guarded process is given")
        return self._contained("run", None, task, folder, limits)

    def _contained(self, job: Job, declaration: str | None, blob: bytes, folder: Path, limits: Limits) -> PassAnswer:
        request = Request(job=job, folder=os.fsencode(folder), declaration=declaration, limits=limits)
        answer, made = self._exchanged(request, blob)
        if answer.outcome == "done":
            return PassAnswer(made, "", answer.output, answer.remarks)
        detail = f": {answer.detail}" if answer.detail else ""
        problem = {
            "memory": f"needs more than {limits.memory / 2**30:.1f} GiB of memory",
            "time": f"does not come to an end{detail}",
            "crashed": f"crashed{detail}",
            "exited": f"ended its process{detail}",
            "failed": f"failed{detail}",
            "unavailable": f"cannot be used{detail}",
        }[answer.outcome]
        return PassAnswer(b"", problem, answer.output)

    def _changed(self, job: Job, model: bytes, version: int | None = None) -> bytes:
        answer, changed = self._asked(job, model, version=version)
        if answer.outcome == "failed":
            raise WorkerError(f"{_WHO[job]} does not take this model: {answer.detail}")
        return changed

    def evaluate(self, evaluations: Sequence[Evaluation]) -> list[Evaluated]:
        """What models give for values of their inputs, by onnxruntime or the reference evaluator of onnx.

        All of them share one process and its limits: where one crashes or hangs, none has a result.

        Raises:
            WorkerError: the evaluation crashed, hung or ran out of memory.
            LimitError: more bytes than can be sent.
        """
        results = self._changed("evaluate", packed(evaluations))
        try:
            return unpacked_results(results)
        except msgspec.MsgspecError as error:
            raise WorkerError(f"{_WHO['evaluate']} gives no result that can be read: {error}") from error

    def _findings(self, job: Job, model: bytes | Path, folder: Path | None) -> tuple[Finding, ...]:
        answer, _ = self._asked(job, model, folder)
        findings = list(answer.findings)
        if answer.outcome == "failed":
            findings.append(Finding(severity="error", code="check-failed", message=f"{_WHO[job]}: {answer.detail}"))
        for line in answer.output.splitlines():
            findings.append(Finding(severity="warning", code="check-note", message=line))
        return tuple(findings)

    def _asked(
        self, job: Job, model: bytes | Path, folder: Path | None = None, version: int | None = None
    ) -> tuple[Answer, bytes]:
        """The answer to a job that came to an end, "done" or "failed"."""
        path = None if isinstance(model, bytes) else os.fsencode(model.absolute())
        beside = None if folder is None else os.fsencode(folder.absolute())
        blob = model if isinstance(model, bytes) else b""
        size = len(model) if isinstance(model, bytes) else _size(model)
        if len(blob) > LARGEST_MESSAGE:
            raise LimitError(f"a model of {size:,} bytes is analysed by its path; protobuf reads {LARGEST_MESSAGE:,}")
        limits = msgspec.structs.replace(self._limits, memory=max(self._limits.memory, 4 * size))
        answer, result = self._exchanged(
            Request(job=job, path=path, folder=beside, version=version, limits=limits), blob
        )
        if answer.outcome == "unavailable":
            raise WorkerError(f"{_WHO[job]} cannot be used: {answer.detail}; install onnx for {sys.executable}")
        if answer.outcome not in {"done", "failed"}:
            raise WorkerError(_became(answer, _WHO[job], limits))
        return answer, result

    def _exchanged(self, request: Request, blob: bytes) -> tuple[Answer, bytes]:
        # Half a minute for a model of 2 GB to go through the pipes, there and back.
        until = time.monotonic() + request.limits.wall_seconds + _GRACE_SECONDS + len(blob) / 50e6
        with self._turn:
            try:
                server = self._started()
                assert server.stdin
                assert server.stdout
                send(server.stdin.fileno(), request, blob, until=until)
                return receive(server.stdout.fileno(), Answer, until=until, blob_bytes=request.limits.answer_bytes)
            except (BrokenConversationError, EOFError) as error:
                self._stop()
                reason = str(error) or "it has ended"
                raise WorkerError(f"the process for {_WHO[request.job]} does not answer: {reason}") from error
            except BaseException:
                # Interrupted between a request and its answer: what comes next would be the wrong answer.
                self._stop()
                raise

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._server is None or self._server.poll() is not None:
            self._stop()
            package = str(Path(__file__).resolve().parent)
            try:
                self._server = subprocess.Popen(
                    [sys.executable, "-I", "-c", _START, package, *_user_packages()],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    cwd="/",
                    env=_environment(),
                    start_new_session=True,  # Control-C is for the client, which then ends the server.
                )
            except OSError as error:
                raise WorkerError(f"no process can be started with {sys.executable!r}: {error.strerror}") from error
            assert self._server.stdin
            os.set_blocking(self._server.stdin.fileno(), False)
        return self._server

    def _stop(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        for pipe in (server.stdin, server.stdout):
            with suppress(OSError):
                if pipe:
                    pipe.close()
        # Its input is closed, so it kills its child and ends.
        try:
            server.wait(2)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except OSError as error:
        raise reading_error(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise MissingInputError(f"{visible(str(path), None)} is not a regular file; a model is read from one")
    return status.st_size


def _became(answer: Answer, who: str, limits: Limits) -> str:
    detail = f": {answer.detail}" if answer.detail else ""
    said = {
        "memory": f"{who} needs more than {limits.memory / 2**30:.1f} GiB of memory for this model",
        "time": f"{who} does not come to an end on this model{detail}",
        "crashed": f"{who} crashed on this model{detail}",
        "exited": f"{who} ended its process on this model{detail}",
    }
    return f"{said[answer.outcome]}; the model itself is untouched"


def _user_packages() -> list[str]:
    """The user's own site-packages, which -I leaves out, where this process uses it."""
    if not site.ENABLE_USER_SITE:
        return []
    folder = site.getusersitepackages()
    return [folder] if folder in sys.path and Path(folder).is_absolute() else []


def _environment() -> dict[str, str]:
    # One thread in the server, and no configuration of onnxruntime from inside a model.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {name: value for name, value in os.environ.items() if name != "ORT_LOAD_CONFIG_FROM_MODEL"} | threads

"""One model of a fleet: a command of the command line, run on it by a worker; ``python -m`` is the process for that."""

import io
import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.cli.paths import stem
from onnxjson.fleet.engine import Limits, Outcome, run_limited
from onnxjson.fleet.listing import Source
from onnxjson.fleet.results import Row
from onnxjson.model.display import unprintable
from onnxjson.running.box_syscalls import die_with
from onnxjson.storage.urls import is_url

FINGERPRINT: Final = "fingerprint"
"""The work of ``fleet duplicates``, for which there is no command for one model."""

_ANSWERS_WITH_ONE: Final = ("find",)
"""Commands whose exit code 1 is an answer, not a finding."""

_LONGEST: Final = 2000

_UNREAD: Final = ("not-a-model", "not-checked")
"""Findings of ``check`` that the model could not be read at all."""


class Job(NamedTuple):
    """What to do with every model of a fleet."""

    command: str
    """The command with its options, for the rows."""
    words: tuple[str, ...]
    """The command line without the model."""
    has_report: bool
    """Whether the command prints JSON."""
    limits: Limits
    values: tuple[str, ...] = ()
    """Words after the model."""
    folder: str | None = None
    """The root of the models that are written; each keeps its relative path."""
    traces: str | None = None
    """The root of the folders of traces."""
    ending: str | None = None
    """The ending of written models; None to keep that of each model."""
    others: dict[str, str] | None = None
    """The second model of a comparison by the name of the first."""
    moved: frozenset[str] = frozenset()
    """The first models of those whose second one has another relative path."""

    def row(self, source: Source) -> Row:
        """Do a model."""
        name, output = source.model, None
        is_revision = not is_url(name) and ":" in name and not os.path.lexists(name)
        words = [name if is_revision else "", *self.words]
        try:
            if self.folder is not None:
                output = self._output(source)
                words += ["-o", output]
            if self.traces is not None:
                folder = os.path.join(self.traces, *_parts(source))
                os.makedirs(os.path.dirname(folder), exist_ok=True)
                words += ["--trace", folder]
        except (OSError, ValueError) as error:
            return self._made(source, status="failed", error=str(error))
        words.append(f"./{name}" if name.startswith("-") else name)
        if self.others is not None:
            words.append(self.others[source.model])
        outcome = run_limited("onnxjson.cli.fleet_job", [*words, *self.values], self.limits)
        return self._judged(source, outcome, output)

    def _output(self, source: Source) -> str:
        """The file to write for a model, in folders that are created."""
        path = self.place(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        return str(path)

    def place(self, source: Source) -> Path:
        """The file to write for a model; ValueError if it would be outside of the folder."""
        path = Path(self.folder or "", *_parts(source))
        if self.ending is not None:
            path = path.with_name(stem(path.name) + self.ending)
        return path

    def _judged(self, source: Source, outcome: Outcome, output: str | None) -> Row:
        code = outcome.code
        facts: dict[str, Any] = {"exit_code": code, "seconds": round(outcome.seconds, 4), "bytes": outcome.bytes}
        if code not in (0, 1):
            return self._made(source, status="failed", error=outcome.problem or _reason(outcome.stderr), **facts)
        report = None
        if self.has_report:
            try:
                report = json.loads(outcome.stdout) if outcome.stdout.strip() else None
            except ValueError:
                report = outcome.stdout[:_LONGEST]
        if isinstance(report, dict) and self.others is not None and source.model in self.moved:
            report["moved_to"] = Source(self.others[source.model], "").shown
        for each in report if isinstance(report, list) and is_url(source.model) else ():
            # The command knows the file in the cache.
            each.update({name: source.shown for name in ("file", "model") if name in each})
        unread = [each["message"] for each in report or () if isinstance(each, dict) and each.get("code") in _UNREAD]
        if unread:
            return self._made(source, status="failed", error=str(unread[0]), report=report, **facts)
        is_finding = code == 1 and self.words[0] not in _ANSWERS_WITH_ONE
        written = output if output is not None and os.path.exists(output) else None
        facts["written_bytes"] = None if written is None else os.path.getsize(written)
        return self._made(source, status="findings" if is_finding else "ok", report=report, output=written, **facts)

    def _made(self, source: Source, **facts: Any) -> Row:
        error = facts.pop("error", None)
        clean = None if error is None else unprintable().sub("?", error)[:_LONGEST]
        if source.size is not None:
            facts["bytes"] = source.size
        return Row(model=source.shown, command=self.command, error=clean, **facts)


def _parts(source: Source) -> tuple[str, ...]:
    parts = Path(source.relative).parts
    if not parts or ".." in parts or parts[0] == "/":
        raise ValueError(f"{source.relative!r} would be outside of the folder for the results")
    return parts


def _reason(stderr: str) -> str:
    """The last error of a failed command without its beginning, ``onnxjson: error[65]:``, or else its last line."""
    lines = stderr.strip().splitlines() or ["it failed without a message"]
    text = ([line for line in lines if line.startswith("onnxjson: error[")] or lines)[-1]
    return text.partition("]: ")[2] if text.startswith("onnxjson: error[") else text


def _run(revision: str, words: Sequence[str]) -> Outcome:
    """Run a command line in this process; the word `revision`, if it is not empty, names a model in git."""
    from onnxjson.cli import failures, paths
    from onnxjson.cli.group import onnxjson
    from onnxjson.git.repository import open_revision
    from onnxjson.storage import remote

    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2))
    code = 0
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(stdout))
        stack.enter_context(redirect_stderr(stderr))
        try:
            if revision:
                paths.OPENED[revision] = stack.enter_context(open_revision(revision)).path
            if words[0] == FINGERPRINT:
                _print_fingerprint(words[-1])
            else:
                onnxjson.main(words)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 0 if error.code is None else 70
        except Exception as error:
            code = failures.report_failure(error)
    size = next((size for _, _, size in remote.read_so_far()), None)
    remote.forget()
    paths.OPENED.clear()
    for stream in (stdout, stderr):
        stream.flush()
    texts = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (stdout, stderr)]
    return Outcome(code=code, stdout=texts[0], stderr=texts[1], bytes=size)


def _print_fingerprint(word: str) -> None:
    from onnxjson.cli.paths import path_of
    from onnxjson.diffing.fingerprints import fingerprint
    from onnxjson.storage import files

    path = path_of(word)
    found = fingerprint(files.load(path).model, path.parent)
    print(json.dumps(found._asdict()))  # noqa: T201 - it is the answer


def serve() -> None:
    """Run the command lines on standard input, each a JSON list on a line; answer each with an `Outcome` on a line.

    The first word is that of the model if it names one in git, else empty.
    """
    parent, memory = map(int, sys.argv[1:])
    die_with(parent)
    if memory:
        import resource  # which Windows lacks

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # native code prints to standard output
    for line in sys.stdin.buffer:
        revision, *words = json.loads(line)
        outcome = _run(revision, words)
        answers.write(msgspec.json.encode(outcome) + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve()

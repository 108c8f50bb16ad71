"""Runs sessions of `output_cases` and keeps what every line of them printed and wrote.

A record is a folder: ``cases`` has a file for each session, with the exit code of every case and the digests of its
outputs, ``texts`` every output that is text, once, under its digest. Digests and texts are those after the rules below.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.benchmarks.output_cases import SPELLINGS
from tests.benchmarks.output_server import CommandServer

LONGEST: Final = 300.0
"""Seconds after which a line is ended; it is recorded with the exit code `TIMED_OUT`."""

TIMED_OUT: Final = -99


class Rule(NamedTuple):
    """Something that differs from run to run, and is taken out of texts."""

    name: str
    pattern: re.Pattern[str]
    replacement: str


RULES: Final = (
    Rule(
        "seconds in JSON", re.compile(r'"((?:\w+_)?seconds|start|offline_start)": ?\d+\.\d+(?:e-?\d+)?'), r'"\1": 0.0'
    ),
    Rule("durations in sentences and tables", re.compile(r" *\b\d[\d,.]*\s(?:ns|us|µs|ms|s|min)\b"), " TIME"),
)
"""Rules for every text but models; the folder of the session and the interpreter are replaced in it as well."""


class Session(NamedTuple):
    """Lines that run one after the other in one folder."""

    name: str
    """What its cases are called by: the model and the session."""
    lines: str
    model: Path | None = None
    other: Path | None = None
    names: Mapping[str, str] = {}


def spelled(line: str, spellings: Mapping[str, str] = SPELLINGS) -> str:
    """A line in new spellings: ``"verify --level"`` is about that option, but only after that command."""
    for old, new in spellings.items():
        command, _, option = old.partition(" ")
        new_command, _, new_option = new.partition(" ")
        pieces = re.split(r"(&&|\|\||;|\|)", line)
        for number, piece in enumerate(pieces):
            if re.search(rf"\bonnxjson {re.escape(command)}(?![\w-])", piece):
                piece = re.sub(rf"\bonnxjson {re.escape(command)}(?![\w-])", f"onnxjson {new_command}", piece)
                if option:
                    piece = re.sub(rf"(?<![\w-]){re.escape(option)}(?![\w-])", new_option, piece)
                pieces[number] = piece
        line = "".join(pieces)
    return line


def cases_of(lines: str) -> Iterator[tuple[str, str]]:
    """The names and the shell lines of a session; an indented line continues the one above."""
    for line in re.sub(r"\n {4}", " ", lines.strip()).splitlines():
        if line.strip():
            name, _, command = line.partition(": ")
            yield name, command


class Recorder:
    """Writes one record into a folder; sessions that the folder has already are left as they are."""

    def __init__(self, folder: Path, *, new_spellings: bool = False) -> None:
        for name in ("cases", "texts"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._spellings = SPELLINGS if new_spellings else {}
        self._server = CommandServer()
        self._programs = self._server.programs

    def run(self, sessions: Sequence[Session], jobs: int) -> int:
        """Run sessions, `jobs` at a time; how many cases they have."""
        try:
            with ThreadPoolExecutor(jobs) as pool:
                return sum(pool.map(self._session, sessions))
        finally:
            self._server.close()

    def _session(self, session: Session) -> int:
        file = self._folder / "cases" / f"{session.name.replace('/', '.')}.json"
        if file.exists():
            return len(json.loads(file.read_text(encoding="utf-8")))
        root = Path(tempfile.mkdtemp(prefix="onnxjson-session-"))
        work = root / _WORK
        work.mkdir(parents=True)
        for name, source in (("m.onnx", session.model), ("o.onnx", session.other)):
            if source is not None:
                shutil.copy(source, work / name)
        environment = self._environment(root, session.names)
        cases: dict[str, Any] = {}
        before = self._files(root, {})
        for name, line in cases_of(session.lines):
            command = spelled(line, self._spellings)
            start = time.monotonic()
            code, output, errors = _run(command, work, environment)
            seconds = round(time.monotonic() - start, 2)
            after = self._files(root, before)
            case: dict[str, Any] = {"line": command, "seconds": seconds, "exit": code}
            for stream, data in (("stdout", output), ("stderr", errors)):
                case[stream] = self._kept(data, root, rules=True)
            changed = [path for path in after if path not in before or before[path][1] != after[path][1]]
            case["files"] = {path: after[path][1] for path in sorted(changed)}
            case["gone"] = sorted(set(before) - set(after))
            cases[f"{session.name}/{name}"] = case
            before = after
        shutil.rmtree(root)
        file.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(session.name, flush=True)
        return len(cases)

    def _environment(self, root: Path, names: Mapping[str, str]) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR") if key in os.environ}
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _WHO.items()}
        return {
            **kept,
            **who,
            **names,
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "HOME": str(root / "home"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "dumb",
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONHASHSEED": "0",
        }

    def _files(self, root: Path, before: Mapping[str, tuple[object, str]]) -> dict[str, tuple[object, str]]:
        """Files of the session's folder: their path, and what tells whether they changed, with their digest."""
        found: dict[str, tuple[object, str]] = {}
        for folder, folders, files in os.walk(root / _WORK):
            folders[:] = sorted(name for name in folders if name not in (".git", "__pycache__"))
            for path in (Path(folder) / name for name in files):
                status = path.stat()
                stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
                name = str(path.relative_to(root / _WORK))
                if name in before and before[name][0] == stamp:
                    found[name] = before[name]
                else:
                    found[name] = (stamp, self._kept(path.read_bytes(), root, rules=not name.endswith(".onnx.json")))
        return found

    def _kept(self, data: bytes, root: Path, *, rules: bool) -> str:
        """Stores data if it is text; its digest and size, by which it is compared."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = "\0"
        is_text = "\0" not in text
        if is_text and rules:
            text = self._ruled(text, root)
            data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        if is_text and not (kept := self._folder / "texts" / digest).exists():
            kept.write_bytes(data)
        return f"{digest} {len(data)}"

    def _ruled(self, text: str, root: Path) -> str:
        for place, word in ((root, "FOLDER"), (self._programs, "PROGRAMS"), (Path(sys.executable), "PYTHON")):
            text = text.replace(str(place), word)
        for rule in RULES:
            text = rule.pattern.sub(rule.replacement, text)
        return text


_WORK: Final = "1/2/3/4/5/6/7/8/work"
"""The folder of a session in the temporary one: so deep that what looks around a model sees no other files."""

_WHO: Final = {"NAME": "Ada", "EMAIL": "ada@example.org", "DATE": "2026-01-02T03:04:05Z"}


def _run(command: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, bytes, bytes]:
    """One line of the shell: its exit code, standard output and standard error."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            code = subprocess.run(
                ["sh", "-c", command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                timeout=LONGEST,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = TIMED_OUT
        output.seek(0)
        errors.seek(0)
        return code, output.read(), errors.read()

"""The workbench with too little memory, in a terminal: while it reads a model, and while an edit is made."""

import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
from msgspec.structs import replace

import onnxjson
from onnxjson.model import tensors
from tests.cli.running import command_line
from tests.hostile.bounds.cases import chain
from tests.hostile.campaign.children import Outcome, workplace
from tests.tui.programs import CTRL_Q, ENTER, Program
from tests.tui.sessions import bytes_of, opened, saved, small

NUMBERS = 1 << 22
"""Elements of the constant: an edit of it needs some multiple of its size."""

SECONDS = 20.0

STEPS, STEP = 60, 2 << 20
"""Number of limits, and bytes between two of them."""

BELOW = 30 << 20
"""Bytes by which the first limit is below what the program needs for a small model."""

NODES = 5_000

ENDED = {0, 71}
"""Exit codes of a program that ends by itself."""


def memory_of_the_workbench(count: int, first: int = 0) -> Iterator[Outcome]:
    """Half of the cases read a model, the others edit it: a message, and edits that were made are recovered."""
    with workplace() as place:
        big = saved(Path("big.onnx").absolute(), _big())
        chain(Path(), NODES)
        many = Path("a.onnx").absolute()
        least = _needed(saved(Path("small.onnx").absolute()))
        for number in range(first, first + count):
            shutil.rmtree(place / "state", ignore_errors=True)
            begin, more = time.monotonic(), number // 2 % STEPS * STEP
            if number % 2:
                name, problem = f"an edit with {more:,} bytes more", _edited(big, more)
            else:
                limit = least - BELOW + more
                name, problem = f"opened with {limit:,} bytes", _read(many, limit)
            yield Outcome(f"workbench: {name}", problem, time.monotonic() - begin)


def _big() -> onnxjson.Model:
    made = small()
    assert made.graph is not None
    constant = tensors.from_numpy(numpy.arange(NUMBERS, dtype="f"), "big")
    return replace(made, graph=replace(made.graph, initializer=(*made.graph.initializer, constant)))


def _addresses(program: Program) -> int:
    pages = int(Path(f"/proc/{program.process.pid}/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _needed(path: Path) -> int:
    """The address space of the program with a small model."""
    with Program(path) as program:
        program.expect(b"Relu")
        return _addresses(program)


def _wrong(program: Program) -> str:
    """What is wrong with a program that has ended, or shows something; "" for nothing."""
    code = program.process.poll()
    if b"OpenBLAS error: Memory allocation" in program.output:
        return ""  # numpy ends the process while it is imported
    if b"Traceback" in program.output or b"internal error" in program.output:
        return f"exit code {code}: {program.output[-1500:]!r}"
    return "" if code is None or code in ENDED else f"exit code {code}: {program.output[-800:]!r}"


def _read(path: Path, limit: int) -> str:
    words = ["sh", "-c", f'ulimit -v {limit >> 10}; exec "$@"', "sh", *command_line("tui", path)]
    with Program(words=words) as program:
        if not _waited(program, b"Relu"):
            return "it neither shows the model nor ends"
        program.type(CTRL_Q)
        return _wrong(program) if _ends(program) else "it does not end"


def _waited(program: Program, pattern: bytes, start: int = 0) -> bool:
    """Wait until something is shown or the program has ended; whether either came."""
    try:
        program.expect(pattern, start, SECONDS)
    except AssertionError:
        return program.process.poll() is not None or not program._reader.is_alive()
    return True


def _ends(program: Program) -> bool:
    try:
        program.end(SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _edited(path: Path, more: int) -> str:
    with Program(path) as program:
        program.expect(b"Relu")
        program.type(b":set-metadata first 1" + ENTER)
        at = program.expect(b"undo 1")
        limit = _addresses(program) + more
        resource.prlimit(program.process.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        program.type(b":cast-tensor big float64" + ENTER)
        if not _waited(program, b"undo 2|not enough memory", at):
            return f"it neither edits nor ends: {program.output[at:][-800:]!r}"
        problem = _wrong(program)
        is_made = b"undo 2" in program.output[at:]
    return problem or _recovered(path, is_made)


def _recovered(path: Path, is_made: bool) -> str:
    """What is wrong with what the next session recovers."""
    with opened(path) as session:
        recoverable = session.recoverable()
        for journal in recoverable:
            session.recover(journal)
        keys = {each.key for each in session.model.metadata_props}
        model = bytes_of(session.model)
        session.discard()
    if "first" not in keys:
        return f"{len(recoverable)} journals without the first edit"
    return "the second edit is lost" if is_made and len(model) < 8 * NUMBERS else ""

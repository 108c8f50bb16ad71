"""Sessions that are killed: ``python -m tests.tui.killed_sessions FILE`` forks one for each line that it reads.

A line is ``SEED ACKNOWLEDGEMENTS``. The child opens FILE, recovers what is there, edits at random, and appends to the
file of acknowledgements, after each change of the model, the time in seconds and the hash of the model as it is then.
Before an undo it appends "undoing". Its process number is printed.
"""

import hashlib
import os
import random
import sys
import time
from pathlib import Path

from onnxjson import edits
from tests.tui.sessions import bytes_of, edit_somehow, opened


def edit_for_ever(path: Path, seed: int, acknowledgements: Path) -> None:
    """Never returns by itself."""
    rng = random.Random(seed)
    session = opened(path)
    for journal in session.recoverable():
        session.recover(journal)
    descriptor = os.open(acknowledgements, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    count = 0
    while True:
        count += 1
        kind = rng.random()
        if kind < 0.2:
            os.write(descriptor, b"undoing\n")
            session.undo()
        elif kind < 0.3:
            session.redo()
        elif kind < 0.33:
            session.save()
        elif kind < 0.6 or not edit_somehow(session, rng):
            session.edit(edits.SetMetadata(key="count", value=f"{seed} {count}"))
        digest = hashlib.sha256(bytes_of(session.model)).hexdigest()
        os.write(descriptor, f"{time.monotonic()} {digest}\n".encode())


def main() -> None:
    """Forks until standard input ends."""
    path = Path(sys.argv[1])
    for line in sys.stdin:
        seed, acknowledgements = line.split()
        child = os.fork()
        if child == 0:
            try:
                edit_for_ever(path, int(seed), Path(acknowledgements))
            finally:
                os._exit(1)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()

"""Journals of the workbench that are cut at any byte, or have a flipped bit: what is recovered is what was done."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from onnxjson import edits
from onnxjson_tui.session.session import Session
from tests.editing.random_models import random_model
from tests.hostile.campaign.children import Outcome, workplace
from tests.tui.sessions import bytes_of, edit_somehow, opened, saved

JOURNALS = 3


def written(path: Path, seed: int) -> tuple[Path, bytes, dict[bytes, int]]:
    """The journal that a killed session leaves, its bytes, and the states of the model with the number of steps."""
    rng = Random(seed)
    session = opened(saved(path, random_model(rng)))
    states = {bytes_of(session.model): 0}
    for number in range(1, 9):
        match number % 4:
            case 1:
                session.edit(edits.SetMetadata(key="k", value=f"{seed} {number}"))
            case 3 if number > 3:
                session.undo()
            case _:
                edit_somehow(session, rng)
        states.setdefault(bytes_of(session.model), number)
    journal = session.journal_path
    assert journal is not None
    session._recorder.close()
    return journal, journal.read_bytes(), states


def recovered(path: Path, states: dict[bytes, int]) -> str:
    """What is wrong with what a session recovers; "" for nothing."""
    with opened(path) as session:
        assert isinstance(session, Session)
        for found in session.recoverable():
            if session.why_not(found):
                found.release()
                continue
            session.recover(found)
            if bytes_of(session.model) not in states:
                return "a model that never was"
        if bytes_of(session.model) not in states:
            return "another model"
        session._recorder.close()
    return ""


def journals(count: int, first: int = 0) -> Iterator[Outcome]:
    """Cuts at every byte of three journals, then flipped bits; fewer if there are to be fewer cases."""
    with workplace():
        for seed in range(JOURNALS):
            path = Path(f"m{seed}.onnx").absolute()
            journal, data, states = written(path, first + seed)
            share = count // JOURNALS
            cuts = range(0, len(data), max(1, len(data) // max(share // 2, 1)))
            flips = (Random(seed).randrange(8 * len(data)) for _ in range(max(0, share - len(cuts))))
            for what, places in (("cut", cuts), ("flipped", flips)):
                for place in places:
                    shutil.rmtree(journal.parent, ignore_errors=True)
                    journal.parent.mkdir(mode=0o700, parents=True)
                    flipped = bytearray(data)
                    flipped[place // 8] ^= 1 << place % 8
                    journal.write_bytes(data[:place] if what == "cut" else bytes(flipped))
                    begin = time.monotonic()
                    try:
                        problem = recovered(path, states)
                    except Exception as error:
                        problem = f"{type(error).__name__}: {error}"
                    yield Outcome(f"journal {seed} {what} at {place}", problem, time.monotonic() - begin)

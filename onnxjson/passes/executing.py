"""Running a pass inside the guarded process: from its declaration as JSON to the bytes that it gives.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.worker_server`.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from onnxjson.passes.catalogue import KINDS
from onnxjson.passes.declaration import Pass, name_of
from onnxjson.passes.stages import packed, taken_remarks


def declared(subject: Pass) -> str:
    """A pass as JSON, for `executed`, which runs elsewhere."""
    return msgspec.json.encode(subject.within(Path.cwd())).decode()


def executed(declaration: str, model: bytes) -> tuple[bytes, tuple[str, ...]]:
    """What a pass makes of a serialised model, and what it has to say. The current folder is its own.

    Raises:
        Exception: whatever the optimizer raises.
        TypeError: it gives something that is no serialised model.
    """
    subject, folder = _prepared(declaration)
    made = subject.run(model, folder)
    if not isinstance(made, bytes):
        raise TypeError(f"the pass gives a {type(made).__name__} and not a model")
    return made, taken_remarks()


def staged(declaration: str, model: bytes) -> bytes:
    """What each part of a pass does to a serialised model, as `onnxjson.passes.stages.packed` writes it.

    Raises:
        Exception: whatever the optimizer raises.
    """
    subject, folder = _prepared(declaration)
    return packed(list(subject.stages(model, folder)))


def _prepared(declaration: str) -> tuple[Pass, Path]:
    """A pass, and its folder."""
    folder = Path.cwd()
    # What optimizers write aside goes with the folder, even if they are killed.
    os.environ["TMPDIR"] = str(folder)
    return subject_of(declaration), folder


def subject_of(declaration: str) -> Pass:
    """What `declared` wrote as JSON."""
    fields: dict[str, Any] = msgspec.json.decode(declaration)
    name = fields.pop("pass")
    return next(kind for kind in KINDS if name_of(kind) == name)(**fields)

"""Running a pass inside the guarded process: from its declaration as JSON to the bytes that it gives.

Runs in a child that may crash, hang or be killed at any moment; see `onnxjson.worker_server`.
"""

import os
from pathlib import Path
from typing import Union

import msgspec

from onnxjson.passes.catalogue import PASSES
from onnxjson.passes.declaration import Pass


def declared(subject: Pass) -> str:
    """A pass as JSON, for `executed`."""
    return msgspec.json.encode(subject).decode()


def executed(declaration: str, model: bytes) -> bytes:
    """What a pass makes of a serialised model. The current folder is its own.

    Raises:
        Exception: whatever the optimizer raises.
        TypeError: it gives something that is no serialised model.
    """
    subject: Pass = msgspec.json.decode(declaration, type=Union[PASSES])  # noqa: UP007
    folder = Path.cwd()
    # What optimizers write aside goes with the folder, even if they are killed.
    os.environ["TMPDIR"] = str(folder)
    made = subject.run(model, folder)
    if not isinstance(made, bytes):
        raise TypeError(f"the pass gives a {type(made).__name__} and not a model")
    return made

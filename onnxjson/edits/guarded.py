"""Native code of onnx, run in the guarded process on a model without its big constants."""

import atexit
from functools import cache
from pathlib import Path

from onnxjson import serde
from onnxjson.checking import Finding
from onnxjson.document import Model
from onnxjson.edits.stand_ins import StandIns, without_big_constants
from onnxjson.errors import EditError
from onnxjson.wire.varints import LARGEST_MESSAGE
from onnxjson.wire.writing import message_bytes, message_size
from onnxjson.worker import Worker


@cache
def worker() -> Worker:
    """The guarded process of this program, started by its first job."""
    found = Worker()
    atexit.register(found.close)
    return found


class Shown:
    """A model as native code is shown it.

    Raises:
        EditError: even without its big constants it has more bytes than native code reads.
        MissingInputError, UntrustedError: see `StandIns`.
    """

    def __init__(self, model: Model, folder: Path | None) -> None:
        self._stand_ins = StandIns(model, folder)
        self.light = self._stand_ins.light
        self.data = _bytes(self.light)

    def read(self, data: bytes) -> Model:
        """What native code made of it, with the constants themselves."""
        return self._stand_ins.restored(serde.parse(data).model)


def check(model: Model) -> tuple[Finding, ...]:
    """What the checker of onnx says of a model; big constants and shapes are not looked at.

    Raises:
        WorkerError: the checker crashed or hung.
        EditError: even without its big constants the model has more bytes than native code reads.
    """
    return worker().check(_bytes(without_big_constants(model)))


def _bytes(light: Model) -> bytes:
    size = message_size(light)
    if size > LARGEST_MESSAGE:
        reason = f"the model has {size:,} bytes without its big constants, more than native code reads"
        raise EditError(f"{reason} ({LARGEST_MESSAGE:,}); extract the part that matters first")
    return message_bytes(light)

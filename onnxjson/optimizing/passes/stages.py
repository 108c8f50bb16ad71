"""Reports of a pass from the guarded process: remarks, and the models after each of its parts."""

from collections.abc import Callable
from typing import Final

import msgspec


class PartStage(msgspec.Struct, frozen=True):
    """A model between two parts of one pass."""

    name: str
    """Part that produced it, such as ``ConvBNFusion``."""
    model: bytes
    """Serialized model."""


READING: Final = "reading and writing"
"""Name of the part in which an optimizer only reads the model and writes it again."""

_REMARKS: Final[list[str]] = []


def remark(text: str) -> None:
    """Add a remark of the running pass, which is reported to the user: a sentence, or part of one."""
    _REMARKS.append(text)


def taken_remarks() -> tuple[str, ...]:
    """Return the remarks since the last call and clear them."""
    found = tuple(_REMARKS)
    _REMARKS.clear()
    return found


_RESTORING: Final[list[Callable[[bytes], bytes]]] = []


def restore_texts_with(function: Callable[[bytes], bytes]) -> None:
    """Set the function that restores the texts of the model in the bytes of one with placeholders."""
    _RESTORING[:] = [function]


def with_texts(model: bytes) -> bytes:
    """Return a serialized model with the texts of the original one, for running it natively."""
    return _RESTORING[0](model) if _RESTORING else model


def packed(stages: list[PartStage]) -> bytes:
    """Encode stages as bytes."""
    return msgspec.msgpack.encode(stages)


def unpacked(data: bytes) -> list[PartStage]:
    """Decode stages from the bytes of `packed`.

    Raises:
        msgspec.MsgspecError: the bytes are not encoded stages.
    """
    return msgspec.msgpack.decode(data, type=list[PartStage])

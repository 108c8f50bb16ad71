"""What a pass tells of itself while it runs in the guarded process: remarks, and what each of its parts did."""

from typing import Final

import msgspec


class PartStage(msgspec.Struct, frozen=True):
    """A model between two parts of one pass."""

    name: str
    """The part that made it, such as ``ConvBNFusion``."""
    model: bytes
    """Serialised."""


READING: Final = "reading and writing"
"""What a part is called that only consists in an optimizer's reading the model and writing it again."""

_REMARKS: Final[list[str]] = []


def remark(text: str) -> None:
    """Say something about the running pass to whoever asked for it: a sentence, or part of one."""
    _REMARKS.append(text)


def taken_remarks() -> tuple[str, ...]:
    """What was said since the last call."""
    found = tuple(_REMARKS)
    _REMARKS.clear()
    return found


def packed(stages: list[PartStage]) -> bytes:
    """Stages as bytes."""
    return msgspec.msgpack.encode(stages)


def unpacked(data: bytes) -> list[PartStage]:
    """What `packed` made of stages.

    Raises:
        msgspec.MsgspecError: these bytes are none.
    """
    return msgspec.msgpack.decode(data, type=list[PartStage])

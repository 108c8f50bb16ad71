"""What the guarded process is asked to evaluate, and what it answers: models, values, and what came of them.

A set of named values is a serialised model that has initializers and nothing else, so values of every dtype pass
exactly. Several evaluations travel together, since a new process costs more than a small graph.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from onnxjson import serde
from onnxjson.document import Graph, Model, Tensor
from onnxjson.errors import WireError
from onnxjson.wire.writing import message_bytes

Engine = Literal["onnxruntime", "reference"]
"""What can evaluate a model: onnxruntime on the processor, or the reference evaluator of onnx."""

ENGINES: tuple[Engine, ...] = ("onnxruntime", "reference")


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """One model, and the values that its inputs get, run for run."""

    model: bytes
    """Serialised; every tensor stands in it."""
    runs: tuple[bytes, ...]
    """The values of the inputs, as `packed_values` writes them."""
    engines: tuple[Engine, ...] = ENGINES
    """The first one that takes the model evaluates it."""
    optimize: bool = False
    """Whether onnxruntime may rewrite the graph first."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run: the values of the outputs as `packed_values` writes them, or why there are none."""

    values: bytes = b""
    problem: str | None = None
    """For a person; made visible."""


class Evaluated(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an evaluation."""

    engine: Engine | None = None
    """None where no engine takes the model."""
    problem: str = ""
    """Why not; made visible."""
    runs: tuple[Run, ...] = ()


def packed_values(values: Mapping[str, Tensor]) -> bytes:
    """Named values as bytes.

    Raises:
        WeightsMissingError, FileError: the bytes of a value cannot be read.
        LimitError: they are more than a message holds.
    """
    named = [msgspec.structs.replace(tensor, name=name) for name, tensor in values.items()]
    return message_bytes(Model(graph=Graph(initializer=tuple(named))))


def unpacked_values(data: bytes) -> dict[str, Tensor]:
    """The inverse of `packed_values`.

    Raises:
        WireError: these bytes are none.
    """
    graph = serde.parse(data).model.graph
    if graph is None:
        raise WireError("these are no values", 0)
    return {tensor.name or "": tensor for tensor in graph.initializer}


def packed(items: Iterable[Evaluation] | Iterable[Evaluated]) -> bytes:
    """Evaluations, or what came of them, as bytes: MessagePack, in which bytes stand as they are."""
    return msgspec.msgpack.encode(list(items))


def unpacked_evaluations(data: bytes) -> list[Evaluation]:
    """What `packed` made of evaluations.

    Raises:
        msgspec.MsgspecError: these bytes are none.
    """
    return msgspec.msgpack.decode(data, type=list[Evaluation])


def unpacked_results(data: bytes) -> list[Evaluated]:
    """What `packed` made of results; see `unpacked_evaluations`."""
    return msgspec.msgpack.decode(data, type=list[Evaluated])

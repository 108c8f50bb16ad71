"""The size of a model whose calls of functions are replaced by their bodies, which native code does without any limit.

A few functions that each call the next one twice can expand to more nodes than fit in memory; such a model is refused.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from onnxjson.model.limits import EXPANDED_NODES
from onnxjson.running.worker_protocol import ALLOWED

if TYPE_CHECKING:
    from onnx import NodeProto

_FUNCTIONS: Final = b"\xca\x01"
"""The tag of the field `functions` of a model."""

_READ_BYTES: Final = 64 << 20
"""Maximum size of a file that is read for this; native analysis of a larger one ends at its limit of time."""

_MAIN: Final = ("", "", "")
"""Represents the main graph among the keys of functions."""

_Key = tuple[str, str, str]


class ExpansionError(Exception):
    """The calls of functions in a model expand to more nodes than the limit."""


class _Body(NamedTuple):
    """What a body contains, with its subgraphs."""

    nodes: int
    calls: Counter[_Key]


def refuse_expansion(model: bytes | str, limit: int = EXPANDED_NODES) -> None:
    """Refuse a model, serialized or in a file, that expands to more nodes than a limit, unless the user chose another.

    Raises:
        ExpansionError: it does; the message is the end of a sentence about the model.
    """
    limit = int(ALLOWED.get().get("--max-nodes", limit))
    if isinstance(model, str):
        model = Path(model).read_bytes() if Path(model).stat().st_size <= _READ_BYTES else b""
    if _FUNCTIONS not in model:
        return
    from onnx import ModelProto

    proto = ModelProto.FromString(model)
    if not proto.functions:
        return
    bodies = {(each.domain, each.name, each.overload): _body(each.node) for each in proto.functions}
    bodies[_MAIN] = _body(proto.graph.node)
    count = _size(_MAIN, bodies)
    if count > limit:
        shown = f"{count:,}" if count < 1 << 64 else f"about 2 to the {count.bit_length() - 1}"
        raise ExpansionError(
            f"its function calls expand to {shown} nodes, more than the limit of {limit:,} (--max-nodes)"
        )


def _body(nodes: "Iterable[NodeProto]") -> _Body:
    calls: Counter[_Key] = Counter()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        calls[node.domain, node.op_type, node.overload] += 1
        for attribute in node.attribute:
            for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                pending += graph.node
    return _Body(calls.total(), calls)


def _size(key: _Key, bodies: dict[_Key, _Body]) -> int:
    """Return the nodes of a body with those of everything it calls; a function that calls itself counts once."""
    sizes: dict[_Key, int] = {}
    opened: set[_Key] = set()
    pending = [key]
    while pending:
        current = pending[-1]
        opened.add(current)
        called = [each for each in bodies[current].calls if each in bodies]
        inner = [each for each in called if each not in opened]
        if inner:
            pending += inner
            continue
        pending.pop()
        more = sum(bodies[current].calls[each] * sizes.get(each, 0) for each in called)
        sizes[current] = bodies[current].nodes + more
    return sizes[key]

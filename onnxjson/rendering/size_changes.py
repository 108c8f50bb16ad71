"""How a model became bigger or smaller, in words: ``67 -> 24 nodes``, ``1.6 MB (-6,462 bytes)``."""

from onnxjson.display import counted
from onnxjson.passes.pipeline import is_grown
from onnxjson.rendering.tables import size


def nodes_change(before: int, after: int) -> str:
    """``67 -> 24 nodes``; ``67 nodes`` where there are as many."""
    nodes = counted(after, "node")
    return nodes if before == after else f"{before:,} -> {nodes}"


def bytes_change(before: int, after: int) -> str:
    """``1.6 MB -> 0.8 MB``; the difference where both read alike, and one size where they are equal."""
    one, other = size(before), size(after)
    if one != other:
        return f"{one} -> {other}"
    return one if before == after else f"{one} ({after - before:+,} bytes)"


def growth(before: int, after: int) -> list[str]:
    """The sentence that marks a pass after which a model has more than a tenth more bytes; else none."""
    return [f"the model grew by {(after - before) * 100 // before} %"] if is_grown(before, after) else []

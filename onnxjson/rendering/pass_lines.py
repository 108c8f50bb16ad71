"""What one pass of a pipeline did, in a few lines for a person."""

from typing import Final

from onnxjson.display import visible
from onnxjson.document import Node
from onnxjson.passes.pipeline import Made
from onnxjson.rendering.tables import size
from onnxjson.walking import walk

_LONGEST: Final = 200


def lines(made: Made) -> list[str]:
    """A line with the numbers, and one for each thing to be known.

    ::

        onnxsim: 44 -> 40 nodes, 112.4 kB -> 40.9 kB, 0.5 s
          44 nodes still there lost their metadata
    """
    name = visible(made.name, _LONGEST)
    if made.failure is not None:
        return [f"left out: {made.failure}"]
    rounds = f", {made.rounds} rounds" if made.rounds > 1 else ""
    numbers = f"{_nodes(made)}, {_sizes(made)}, {made.seconds:.1f} s{rounds}" if made.is_changed else "changed nothing"
    grown = [f"  the model grew by {_growth(made)}"] if made.is_grown else []
    return [f"{name}: {numbers}", *grown, *[f"  {visible(note, _LONGEST)}" for note in made.notes]]


def _nodes(made: Made) -> str:
    before, after = (sum(1 for _ in walk(stage.model, Node)) for stage in (made.before, made.after))
    return f"{before:,} nodes" if before == after else f"{before:,} -> {after:,} nodes"


def _sizes(made: Made) -> str:
    before, after = len(made.before.data), len(made.after.data)
    if size(before) == size(after):
        return f"{size(before)} ({after - before:+,} bytes)" if before != after else size(before)
    return f"{size(before)} -> {size(after)}"


def _growth(made: Made) -> str:
    before, after = len(made.before.data), len(made.after.data)
    return f"{(after - before) * 100 // before} %"

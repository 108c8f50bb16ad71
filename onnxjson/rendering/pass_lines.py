"""What one pass of a pipeline did, in a few lines for a person."""

from typing import Final

from onnxjson.display import visible
from onnxjson.document import Node
from onnxjson.passes.pipeline import Made
from onnxjson.rendering.size_changes import bytes_change, growth, nodes_change
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
    before, after = len(made.before.data), len(made.after.data)
    numbers = f"{_nodes(made)}, {bytes_change(before, after)}, {made.seconds:.1f} s{rounds}"
    notes = [*growth(before, after), *made.notes]
    return [f"{name}: {numbers if made.is_changed else 'changed nothing'}", *[f"  {_cut(note)}" for note in notes]]


def _cut(note: str) -> str:
    return note if len(note) <= _LONGEST else f"{note[: _LONGEST - 1]}…"  # visible already


def _nodes(made: Made) -> str:
    return nodes_change(*[sum(1 for _ in walk(stage.model, Node)) for stage in (made.before, made.after)])

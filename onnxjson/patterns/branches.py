"""Branches of the search of `onnxjson.patterns.matching`: goals that are left, what is bound, and what was missed."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from onnxjson.model.document import Attribute
from onnxjson.model.index import NodeRef
from onnxjson.patterns.expression import ValuePattern
from onnxjson.patterns.nodes import Value

INPUT, NODE, INSIDE, PATH, SLACK, OTHER = range(6)
"""Goals: an input of a node; a node; what is inside a node of any operator; what leads to a node; the slack from here;
another value of the pattern, anywhere."""

Goals = tuple[tuple[int, Any, NodeRef, int], Any] | None
"""The next goal and the others: kind, pattern, node, and the position of an input or output."""


class Missed(NamedTuple):
    """A goal that a place does not meet."""

    text: str
    """In words, made visible."""
    address: str
    """The node where it was missed."""
    other: NodeRef | None = None
    """A node whose operator is not the wanted one."""


class State(NamedTuple):
    """A branch of the search; a match if no goal is left."""

    goals: Goals
    bindings: Mapping[str, Value | Attribute] = {}
    nodes: tuple[NodeRef, ...] = ()
    """The nodes of its calls, in reverse order of the model."""
    slack: int = 0
    """Number of goals that it may still miss."""
    missed: tuple[Missed, ...] = ()


new_state: Final[Callable[[tuple[Any, ...]], State]] = partial(tuple.__new__, State)
"""Creates records twice as fast as their class does."""


def with_goals(state: State, goals: Goals) -> State:
    """Return a branch with other goals."""
    return new_state((goals, *state[1:]))


def with_inputs(state: State, wanted: Sequence[ValuePattern], order: Sequence[int], ref: NodeRef) -> State:
    """Return a branch that also has the inputs of a node as goals, in this order."""
    goals = state.goals
    for place in range(len(wanted) - 1, -1, -1):
        goals = ((INPUT, wanted[place], ref, order[place]), goals)
    return with_goals(state, goals)


def miss(state: State, text: Callable[[], str], ref: NodeRef | None, *, other: NodeRef | None = None) -> State | None:
    """Return a branch that has missed one more goal, or None if it may not miss any more."""
    if not state.slack:
        return None
    missed = Missed(text(), "" if ref is None else ref.address, other)
    return state._replace(slack=state.slack - 1, missed=(*state.missed, missed))

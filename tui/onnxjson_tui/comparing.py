"""Two models and what happened between them, as the screens that show a difference need it."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from onnxjson.diffing.events import Event
from onnxjson.document import Model
from onnxjson.errors import DecodeError
from onnxjson.index import Index
from onnxjson.rendering.diff_report import Count, Report, report
from onnxjson.tracing.records import Size
from onnxjson_tui.opening import Unreadable, open_model

if TYPE_CHECKING:
    from onnxjson.diffing.difference import Diff

FEW: Final = 12
"""Rows of places and details up to which all of them are unfolded."""

MATCHED: Final = 3_000
"""Nodes up to which matching two models anew takes less than a second."""


class Side(NamedTuple):
    """One of two models."""

    name: str
    """What the person calls it; not yet visible."""
    model: Model
    path: Path | None = None
    """Its file, beside which weights are looked for."""
    problems: tuple[str, ...] = ()
    """What stands beside it and could not be had, a sentence each."""


class Compared(NamedTuple):
    """What is shown of a difference."""

    base: Side
    target: Side
    events: tuple[Event, ...]
    nodes: Count
    matched: int | None
    """Nodes that have a counterpart; None where nobody counted."""
    operators: tuple[Count, ...]
    """Those whose number changed first."""
    parameters: Count
    bytes: Count
    indexes: tuple[Index, Index]
    equal: bool
    incomplete: tuple[str, ...] = ()
    """What could not be compared, for a person."""
    notes: tuple[str, ...] = ()
    """What else a person should hear, visible."""
    diff: "Diff | None" = None
    report: Report | None = None
    """For those who write it to a file."""

    @property
    def places(self) -> int:
        """At how many places something happened."""
        return sum([event.count for event in self.events])

    @property
    def is_short(self) -> bool:
        """Whether all of it fits on a screen when it is unfolded."""
        return sum([1 + len(member.details) for event in self.events for member in event.members]) <= FEW


def opened_side(name: str, resources: ExitStack) -> Side:
    """A model by what a person calls it: a file, or ``REV:path``.

    Raises:
        DecodeError: it is no model.
        MissingInputError, AccessDeniedError, FileError: it cannot be read.
    """
    found = open_model(name, resources)
    if isinstance(found, Unreadable):
        raise DecodeError(found.message, found.findings)
    return Side(name, found.model, found.path, found.problems)


def compared(base: Side, target: Side, notes: Sequence[str] = ()) -> Compared:
    """Compares two models; it takes seconds for big ones."""
    from onnxjson.diffing.difference import diff_models

    found = diff_models(base.model, target.model, paths=(base.path, target.path), names=(base.name, target.name))
    return of_diff(found, base, target, notes)


def compared_edits(base: Side, target: Side) -> Compared:
    """The same for a model and what edits made of it; of a big one what stayed the same is not matched anew."""
    from onnxjson.diffing.edited_models import diff_edited

    if base.model.graph is None or len(base.model.graph.node) < MATCHED:
        return compared(base, target)
    return of_diff(diff_edited(base.model, target.model, target.path, (base.name, target.name)), base, target)


def of_diff(found: "Diff", base: Side, target: Side, notes: Sequence[str] = ()) -> Compared:
    """What is shown of a diff."""
    shown = report(found, base.name, target.name)
    problems = (*base.problems, *target.problems, *shown.incomplete)
    shown = shown._replace(incomplete=problems, equal=shown.equal and not problems)
    return Compared(
        base=base,
        target=target,
        events=shown.events,
        nodes=shown.nodes,
        matched=shown.matched,
        operators=shown.operators,
        parameters=shown.parameters,
        bytes=shown.bytes,
        indexes=(shown.alignment.base, shown.alignment.target),
        equal=shown.equal,
        incomplete=problems,
        notes=tuple(notes),
        diff=found,
        report=shown,
    )


def of_sizes(
    base: Side, target: Side, sizes: tuple[Size, Size], events: Sequence[Event], incomplete: Sequence[str] = ()
) -> Compared:
    """What is shown of events that are known already, such as those of a trace."""
    before, after = sizes
    names = sorted(before.operators.keys() | after.operators.keys())
    operators = [Count(name, before.operators.get(name, 0), after.operators.get(name, 0)) for name in names]
    operators.sort(key=lambda each: (-abs(each.change), -each.after, each.what))
    return Compared(
        base=base,
        target=target,
        events=tuple(events),
        nodes=Count("nodes", before.nodes, after.nodes),
        matched=None,
        operators=tuple(operators),
        parameters=Count("parameters", before.parameters, after.parameters),
        bytes=Count("bytes", before.bytes, after.bytes),
        indexes=(Index(base.model), Index(target.model)),
        equal=not events and not incomplete,
        incomplete=tuple(incomplete),
    )

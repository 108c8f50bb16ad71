"""Comparison of two models for the screens."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from onnxjson.diffing.events import Event
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, EditError
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import tensors_of
from onnxjson.optimizing.trace_records import Size
from onnxjson.rendering.diff_report import Count, Report, operator_counts, report
from onnxjson.storage.remote import is_url
from onnxjson_tui.session.opening import Unreadable, open_model
from onnxjson_tui.session.session import Session

if TYPE_CHECKING:
    from onnxjson.diffing.difference import Diff


FEW: Final = 12  # maximum rows of places and details that are all unfolded
MATCHED: Final = 3_000  # number of nodes below which matching two models takes less than a second


class Side(NamedTuple):
    """One of the two compared models."""

    name: str  # name that the user gave; control characters are not escaped
    model: Model
    path: Path | None = None  # its file; weights are searched in the same folder
    problems: tuple[str, ...] = ()  # problems with files that it depends on, a sentence each
    session: Session | None = None  # the session that can change it
    ends: bool = False  # whether the session ends with the comparison


class Compared(NamedTuple):
    """Everything that is shown of a difference."""

    base: Side
    target: Side
    events: tuple[Event, ...]
    nodes: Count
    matched: int | None  # number of nodes with a counterpart; None if not counted
    operators: tuple[Count, ...]  # Operators, those with a changed count first
    parameters: Count
    bytes: Count
    equal: bool
    incomplete: tuple[str, ...] = ()  # what could not be compared, in sentences
    notes: tuple[str, ...] = ()  # other notes for the user, without control characters
    diff: "Diff | None" = None
    report: Report | None = None  # the report, for writing it to a file

    @property
    def places(self) -> int:
        """Number of changed places."""
        return sum([event.count for event in self.events])

    @property
    def is_short(self) -> bool:
        """Whether everything fits on a screen when unfolded."""
        return sum([1 + len(member.details) for event in self.events for member in event.members]) <= FEW


def opened_side(name: str, resources: ExitStack) -> Side:
    """Open a model for a comparison: a file, or ``REV:path``.

    Raises:
        DecodeError: it is not a model.
        MissingInputError, AccessDeniedError, FileError: it cannot be read.
    """
    found = open_model(name, resources)
    if isinstance(found, Unreadable):
        raise DecodeError(found.message, found.findings)
    session = Session(found, readonly=found.path is None or is_url(name))
    return Side(name, found.model, found.path, found.problems, session, ends=True)


def compared(base: Side, target: Side, notes: Sequence[str] = ()) -> Compared:
    """Compare two models; this takes seconds for big ones."""
    from onnxjson.diffing.difference import diff_models

    found = diff_models(base.model, target.model, paths=(base.path, target.path), names=(base.name, target.name))
    return of_diff(found, base, target, notes)


def compared_edits(base: Side, target: Side) -> Compared:
    """Compare a model with its edited version; unchanged nodes of a big model are not matched again."""
    from onnxjson.diffing.difference import diff_models

    if base.model.graph is None or len(base.model.graph.node) < MATCHED:
        return compared(base, target)
    paths, names = (target.path, target.path), (base.name, target.name)
    return of_diff(diff_models(base.model, target.model, paths=paths, names=names, is_edited=True), base, target)


def require_weights(mine: Side, other: Side, model: Model) -> None:
    """Refuse a model with a change of the other one that needs weights in files next to that one.

    Raises:
        EditError: its own folder does not have them.
    """
    folders = [None if each.path is None else each.path.resolve().parent for each in (mine, other)]
    known = {each.external_data for each in tensors_of(mine.model)}
    needed = [each for each in tensors_of(model) if is_external(each) and each.external_data not in known]
    if needed and folders[0] != folders[1]:
        name = visible(needed[0].name or "a constant", 100)
        raise EditError(f"{name} of this change is in an external file of the other model; convert --internalize first")


def of_diff(found: "Diff", base: Side, target: Side, notes: Sequence[str] = ()) -> Compared:
    """Return everything that is shown of a diff."""
    shown = report(found, base.name, target.name)
    problems = (*base.problems, *target.problems, *shown.incomplete)
    shown = shown._replace(incomplete=problems, equal=shown.equal and not problems)
    return Compared(
        base, target, shown.events, shown.nodes, shown.matched, shown.operators, shown.parameters, shown.bytes,
        shown.equal, problems, tuple(notes), found, shown,
    )  # fmt: skip


def of_sizes(
    base: Side, target: Side, sizes: tuple[Size, Size], events: Sequence[Event], incomplete: Sequence[str] = ()
) -> Compared:
    """Return everything that is shown of given events, such as those of a trace."""
    before, after = sizes
    counts = [Count(each, getattr(before, each), getattr(after, each)) for each in ("nodes", "parameters", "bytes")]
    operators = operator_counts(Counter(before.operators), Counter(after.operators))
    is_equal = not events and not incomplete
    return Compared(
        base, target, tuple(events), counts[0], None, operators, counts[1], counts[2], is_equal, tuple(incomplete)
    )

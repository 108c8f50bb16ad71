"""What a session remembers: steps to undo and redo, and the selection and visited places, which follow changes.

Here are also the results of its operations: previews, saves, merges, exports.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from onnxjson.editing.applying import Change, Result
from onnxjson.editing.declaration import Edit
from onnxjson.editing.script import Script
from onnxjson.editing.spelling import spell_line
from onnxjson.model.addresses import parse_address
from onnxjson.model.document import Tensor
from onnxjson.model.errors import AddressError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.patching.patch import Patch
from onnxjson.patterns.selector_terms import spelled
from onnxjson_tui.session.following import place_after
from onnxjson_tui.session.opening import Opened

if TYPE_CHECKING:
    from onnxjson.diffing.difference import Diff
    from onnxjson.model.conflicts import Conflict
    from onnxjson.model.document import Model

_NEIGHBOURS: Final = 1000  # maximum distance to the neighbour that the cursor moves to when its node is removed

MOST_VISITS: Final = 500  # maximum number of places in the jump list


@dataclass(eq=False)
class Step:
    """A change that is undone as a whole."""

    forward: Patch  # patch of the change
    edits: tuple[Edit, ...] = ()  # edits of the change; () for a change from elsewhere, such as a pass
    given_title: str = ""
    notes: tuple[str, ...] = ()  # notes for the user
    files: Mapping[Path, Tensor] = field(default_factory=dict)
    """Tensors that are written to .npy files when the model is saved."""
    before: "tuple[Model, Patch] | None" = None  # the saved model at that time, and the patch to it from the one before
    is_forced: bool = False  # whether nodes could not have their shapes afterwards
    is_merge: bool = False  # whether it merged changes that another program saved to the file

    @cached_property
    def backward(self) -> Patch:
        """Patch that undoes the change."""
        return self.forward.invert()

    @property
    def commands(self) -> tuple[str, ...]:
        """Commands that repeat the change, one line for each edit; () without edits."""
        return tuple([spell_line(edit) for edit in self.edits])

    @property
    def title(self) -> str:
        """Title in the list of steps."""
        if self.given_title:
            return self.given_title
        commands = self.commands
        return commands[0] if len(commands) == 1 else f"{commands[0]} (and {len(commands) - 1:,} more)"


class History:
    """Steps in order; those after `position` are undone and can be redone."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self.position = 0  # number of applied steps
        self.saved: int | None = 0  # number of steps in the saved model; None if undo and redo no longer lead there

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    @property
    def made(self) -> tuple[Step, ...]:
        """The applied steps."""
        return tuple(self._steps[: self.position])

    @property
    def is_changed(self) -> bool:
        """Whether the model differs from the saved one, according to the steps."""
        return self.position != self.saved

    def add(self, step: Step) -> None:
        """Add a step; undone steps are discarded."""
        if self.saved is not None and self.saved > self.position:
            self.saved = None
        del self._steps[self.position :]
        self._steps.append(step)
        self.position += 1

    def to_undo(self) -> Step | None:
        """Return the step that undo would undo."""
        return self._steps[self.position - 1] if self.position else None

    def to_redo(self) -> Step | None:
        """Return the step that redo would apply."""
        return self._steps[self.position] if self.position < len(self._steps) else None


@dataclass(eq=False)
class Preview:
    """Preview of edits. The session does not change until `Session.accept` is called with it."""

    base: "Model"
    result: Result
    changes: tuple[Change, ...]
    revision: int  # revision of the session at the time of the preview
    title: str
    saved: Patch  # from the model before to the saved one
    path: Path | None = None  # the file relative to which both models find their external data
    is_forced: bool = False  # whether it was asked for although it breaks nodes

    @property
    def model(self) -> "Model":
        """The model after the change."""
        return self.result.model

    @cached_property
    def patch(self) -> Patch:
        """The patch from the model before to the model after."""
        return Patch.between(self.base, self.model)

    @cached_property
    def to_saved(self) -> Patch:
        """The patch from the model after to the saved one."""
        return self.patch.invert().then(self.saved)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The previewed edits; () if one of the changes is a patch, since the edits would be incomplete."""
        edits: list[Edit] = []
        for change in self.changes:
            if isinstance(change, Patch):
                return ()
            edits += change.edits if isinstance(change, Script) else [change]
        return tuple(edits)

    @property
    def matches(self) -> int:
        """Number of elements that the edits match."""
        return self.result.matches

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user, such as which nodes could not be changed."""
        return tuple([note for outcome in self.result.outcomes for note in outcome.notes])

    def difference(self) -> "Diff":
        """Return the diff of both models, grouped into events."""
        from onnxjson.diffing.difference import diff_models

        return diff_models(self.base, self.model, paths=(self.path, self.path), names=("before", "after"))


class Changed(NamedTuple):
    """A change of the session's model."""

    kind: Literal["made", "undone", "redone", "recovered"]
    step: Step
    patch: Patch  # from the previous model to the current one
    is_restructured: bool  # whether nodes or graphs were added, removed or moved, so that rows must be rebuilt


class SaveAnswer(NamedTuple):
    """Result of a save. Only "saved" means that the file contains the model."""

    kind: Literal["saved", "changed-on-disk", "reverts-others", "exists", "weights-elsewhere", "unloadable"]
    path: Path
    message: str
    exit_code: int  # exit code of the command line for this result: 0, 65, 73 or 75
    locations: tuple[str, ...] = ()
    """The files with weights, as the model refers to them; only if `kind` is "weights-elsewhere"."""


class MergeAnswer(NamedTuple):
    """Merge of the steps of a session with the file that another program wrote."""

    preview: Preview  # changes of the session's model by the merge; for review, then for `Session.accept_merge`
    conflicts: "tuple[Conflict, ...]"  # slots that both sides changed; the merged model has the session's value
    theirs: Opened  # the current file


# Places


class Places:
    """Addresses in the current model."""

    def __init__(self) -> None:
        self.cursor: str | None = None  # the element under the cursor
        self.selected: dict[str, None] = {}  # the selected nodes, in the order of their selection
        self.jumps = Jumps()
        self.flagged: dict[str, str] = {}  # the severity of the findings at each node, as of the last check
        self.flow: dict[str, tuple[str, bool]] = {}
        """How an edit that is being typed changes the types of nodes, and whether it breaks them."""

    def toggle(self, address: str) -> None:
        """Toggle the selection of a node."""
        if address in self.selected:
            del self.selected[address]
        else:
            self.selected[address] = None

    def select(self, addresses: Iterable[str]) -> None:
        """Select these nodes and no others."""
        self.selected = dict.fromkeys(addresses)

    def follow(self, patch: Patch) -> "Lost":
        """Update every place after a change; return the removed places, so that undo can restore them.

        A cursor or visit whose node was removed moves to its neighbour; a removed node is no longer
        selected.
        """
        lost = Lost(self.cursor, {})
        places = list(self.selected)
        self.selected = {}
        for address in places:
            after = place_after(patch, address)
            if after is None:
                lost.selected[address] = None
            else:
                self.selected[after] = None
        if self.cursor is not None:
            self.cursor = nearest(patch, self.cursor)
        self.jumps.follow(patch)
        return lost

    def restore(self, lost: "Lost") -> None:
        """Restore the places that an undone change had removed."""
        if lost.cursor is not None:
            self.cursor = lost.cursor
        self.selected |= lost.selected


class Lost(NamedTuple):
    """Places whose elements a change removed, as addresses before the change."""

    cursor: str | None
    selected: dict[str, None]


class Jumps:
    """The places that the user left, the newest last."""

    def __init__(self) -> None:
        self._places: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def leave(self, address: str) -> None:
        """Record a jump away from `address`."""
        if self._places[-1:] != [address]:
            self._places.append(address)
        del self._places[:-MOST_VISITS]

    def back(self) -> str | None:
        """Go back; return the last place, or None if there is none."""
        return self._places.pop() if self._places else None

    def follow(self, patch: Patch) -> None:
        """Update every place to its address, or that of its neighbour, after a change."""
        self._places = [nearest(patch, address) for address in self._places]


def nearest(patch: Patch, address: str) -> str:
    """Return the address of an element after a change, or of its neighbour, or of its graph."""
    while address:
        after = place_after(patch, address)
        if after is not None:
            return after
        owner, _, last = address.rpartition("/")
        if owner.endswith("/node") and last.isdigit():
            position = int(last)
            others = [*range(position + 1, position + _NEIGHBOURS), *range(position - 1, position - _NEIGHBOURS, -1)]
            for other in others:
                after = place_after(patch, f"{owner}/{other}") if other >= 0 else None
                if after is not None:
                    return after
        address = owner
    return ""


def selector_of(index: Index, ref: NodeRef) -> str:
    """Return a selector for one node that, if names allow, also finds its counterpart in another model."""
    node = ref.node
    if node.name and list(index.nodes_with("name", node.name)) == [ref]:
        return spelled("name", node.name)
    for output in node.output:
        if output and list(index.nodes_with("output", output)) == [ref]:
            return spelled("output", output)
    return f"@{ref.address}"


def place_of(index: Index, address: str) -> tuple[Scope, int] | None:
    """The graph and position of the node that an address names, or is inside of; the start of a graph for the rest.

    An element that is not a node, such as an initializer or an input, is represented by its first consumer.
    """
    scopes = index.by_address
    try:
        parts = parse_address(address)
    except AddressError:
        return None
    pieces = address.split("/")
    for length in range(len(parts), 0, -1):
        scope = scopes.get("/".join(pieces[: length + 1]))
        if scope is None:
            continue
        if length + 1 < len(parts) and parts[length] == "node" and parts[length + 1].isdigit():
            position = int(parts[length + 1])
            return (scope, position) if position < len(scope.graph.node) else None
        return scope, _first_use(scope, parts[length:])
    return None


def _first_use(scope: Scope, rest: tuple[str, ...]) -> int:
    if len(rest) < 2 or not rest[1].isdigit():
        return 0
    members = getattr(scope.graph, rest[0], ())
    position = int(rest[1])
    if position >= len(members):
        return 0
    member = members[position]
    name = member if isinstance(member, str) else getattr(member, "name", None)
    if not name:
        return 0
    if rest[0] in ("output", "value_info") and name in scope.producers:
        return scope.producers[name][0]
    return next((consumer for consumer, _ in scope.uses(name) if consumer is not None), 0)

"""What is derived from the model of a session: inferred types and lines, in a thread, until they follow an edit."""

from collections.abc import Callable
from typing import NamedTuple

from onnxjson.model.index import Scope
from onnxjson.patching.changes import Members
from onnxjson.patching.listing import change_at
from onnxjson_tui.rows.folding import Fold, folds_of, followed
from onnxjson_tui.session.history import Changed
from onnxjson_tui.session.reading import Reading, read
from onnxjson_tui.session.session import Session


class _Result(NamedTuple):
    revision: int
    reading: Reading | None
    folds: dict[str, tuple[Fold, ...]]  # by address of a graph


class Derived:
    """Types and lines of the model, possibly as they were before the last edits."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.reading: Reading | None = None
        self._revision = -1  # of the reading
        self._folds: dict[str, tuple[Fold, ...]] = {}  # by address of a graph, its lines

    def begin(self) -> None:
        """Derive lines from the types that the model states, if nothing is known yet."""
        if self.reading is None:
            session = self._session
            self.reading, self._revision = read(session.model, session.opened.folder, infers=False), session.revision

    def work(self, address: str, *, infers: bool) -> Callable[[], _Result]:
        """Return the work that derives types, with `infers` all of them, and the lines of one graph."""
        model, folder = self._session.model, self._session.opened.folder
        known, revision = self.reading, self._session.revision

        def work() -> _Result:
            reading = read(model, folder, known, infers=infers)
            typed = None if reading is None else reading.index.scope(address)
            folds = folds_of(reading.outline, typed) if reading is not None and typed is not None else ()
            return _Result(revision, reading, {address: folds})

        return work

    def take(self, result: _Result) -> bool:
        """Use a result, unless the model changed meanwhile; return whether it is used."""
        if result.revision != self._session.revision:
            return False
        self._revision, self.reading, self._folds = result
        return True

    def folds_of(self, scope: Scope) -> tuple[Fold, ...]:
        """Return the lines of a graph; () if they are not known."""
        if self.reading is not None and scope.address not in self._folds and self._revision == self._session.revision:
            typed = self.reading.index.scope(scope.address)
            self._folds[scope.address] = () if typed is None else folds_of(self.reading.outline, typed)
        return self._folds.get(scope.address, ())

    def typed(self, scope: Scope) -> Scope | None:
        """Return a graph with inferred types; None if it is not known."""
        return None if self.reading is None else self.reading.index.scope(scope.address)

    def forget_lines(self) -> None:
        """List nodes until the lines of the model are known."""
        self._folds.clear()

    def follow(self, changed: Changed) -> None:
        """Let the lines follow a change that moved nodes, until those of the new model are known."""
        for address, folds in list(self._folds.items()):
            change = change_at(changed.patch.root, f"{address}/node")
            if isinstance(change, Members) and self._session.index.scope(address) is not None:
                self._folds[address] = folds if change.sequence is None else followed(folds, change)
            elif change is not None:
                del self._folds[address]

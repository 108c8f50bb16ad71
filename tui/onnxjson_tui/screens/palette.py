"""ctrl+p: one field that finds actions, edits, earlier commands, and everything in the model that has a name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxjson_tui.model_names import MOST, Named, Names
from onnxjson_tui.rows.choices import Choice, ChoiceRows
from onnxjson_tui.screens.choosing import PickerScreen
from onnxjson_tui.widgets.lines import LineList

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


class PaletteScreen(PickerScreen):
    """Commands are found at once; names of a big model are read and searched in a thread."""

    def __init__(self, bench: "Workbench", commands: Sequence[Choice]) -> None:
        super().__init__(
            "Find", commands, hint="enter do it, go there   esc cancel   type part of a name", is_wide=True
        )
        self._bench = bench
        self._names: Names | None = None
        self._asked: str | None = None
        """What a thread looks for."""
        self._now = ""

    def on_mount(self) -> None:
        """Read the names meanwhile."""
        super().on_mount()
        bench = self._bench
        if bench.names is not None and bench.names[0] == bench.session.revision:
            self._names = bench.names[1]
        elif bench.is_small:
            self._have(Names(bench.session.index))
        else:
            index = bench.session.index
            bench.jobs.start("names", "reading the names", lambda: Names(index), self._have)

    def _have(self, names: Names) -> None:
        self._names = names
        self._bench.names = (self._bench.session.revision, names)
        if self.is_mounted and self._now.strip():
            self._find(self._now)

    def _find(self, typed: str) -> None:
        super()._find(typed)
        self._now = typed
        names = self._names
        if names is None or not typed.strip() or self._asked is not None:
            return
        if self._bench.is_small:
            self._add(typed, names.find(typed))
            return
        self._asked = typed
        self._bench.jobs.start(
            "palette", "searching", lambda: names.find(typed), lambda found: self._found(typed, found)
        )

    def _found(self, typed: str, found: list[Named]) -> None:
        self._asked = None
        if not self.is_mounted:
            return
        if typed == self._now:
            self._add(typed, found)
        else:
            self._find(self._now)

    def _add(self, typed: str, found: list[Named]) -> None:
        """Lists names after the commands; a name that is just what was typed goes before them."""
        commands = list(self.choices_for(typed))
        names = [Choice(f"go {each.address}", each.label, each.detail) for each in found]
        wanted = typed.strip().lower()
        first = [each for each in names if each.label.lower() == wanted]
        rest = [each for each in names if each.label.lower() != wanted]
        if len(found) >= MOST:
            rest.append(Choice("", f"more than {MOST}", "", "type more of the name"))
        self.query_one(LineList).show(ChoiceRows([*first, *commands, *rest]), 0)

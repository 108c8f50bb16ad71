"""ctrl+p: one field that finds actions, edits, earlier commands, and everything in the model that has a name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxjson.display import visible
from onnxjson.edits.catalogue import NAMES
from onnxjson.edits.spelling import summary
from onnxjson_tui.action import Action, Given
from onnxjson_tui.key_page import all_keys, sentence
from onnxjson_tui.palette import MOST, Named, Names
from onnxjson_tui.rows.choices import Choice, ChoiceRows
from onnxjson_tui.screens.choosing import PickerScreen
from onnxjson_tui.widgets.lines import LineList

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_MOST_RECENT = 20


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


async def open_palette(bench: "Workbench", given: Given) -> None:
    """Asks what to do or where to go, and does it."""
    chosen = await bench.app.push_screen_wait(PaletteScreen(bench, commands(bench)))
    if chosen is not None:
        _do(bench, chosen)


def commands(bench: "Workbench") -> list[Choice]:
    """Actions, edits and earlier commands, as choices."""
    from onnxjson_tui.actions.catalogue import ACTIONS
    from onnxjson_tui.actions.commanding import MARK

    readonly = bench.session.readonly
    refused = "the model is opened to be read only"
    found = [
        Choice(f"action {each.id}", sentence(each.title), all_keys(each), refused if readonly and each.changes else "")
        for each in ACTIONS
        if each.scope in ("everywhere", bench.pane) and each.id != "palette"
    ]
    found += [
        Choice(f"edit {name}", name, visible(summary(edit), 200), refused if readonly else "")
        for name, edit in NAMES.items()
    ]
    recent = bench.prompt.kept(MARK)[::-1][:_MOST_RECENT]
    return [*found, *[Choice(f"line {line}", f":{visible(line, 300)}", "typed before") for line in recent]]


def _do(bench: "Workbench", chosen: str) -> None:
    from onnxjson_tui.actions.commanding import action_of, ask, run_line

    kind, _, what = chosen.partition(" ")
    if kind == "go":
        if bench.go(what):
            bench.focus_pane("nodes")
    elif kind == "line":
        run_line(bench, what)
    elif kind == "edit":
        form = action_of("edit-form")
        if form is None:
            ask(bench, f"{what} ")
        else:
            bench.do(form, Given(text=what))
    else:
        _do_action(bench, what)


def _do_action(bench: "Workbench", name: str) -> None:
    from onnxjson_tui.actions.catalogue import ACTIONS
    from onnxjson_tui.actions.commanding import ask

    action: Action = next(each for each in ACTIONS if each.id == name)
    if action.takes_letter:
        ask(bench, f"{action.id} ")
    else:
        bench.do(action)

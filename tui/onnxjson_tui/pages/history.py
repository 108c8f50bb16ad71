"""The steps of the session, each as the command that would repeat it."""

from onnxjson.display import counted, visible
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, shortened
from onnxjson_tui.history import History, Step
from onnxjson_tui.pages.declaration import Page
from onnxjson_tui.widgets.lines import Rows


class HistoryRows:
    """The newest step first, "as it was opened" last; what is undone is above the mark, and pale."""

    def __init__(self, history: History) -> None:
        self._steps: tuple[Step, ...] = tuple(history)
        self._position = history.position
        self._saved = history.saved

    def __len__(self) -> int:
        return len(self._steps) + 1

    def number(self, row: int) -> int:
        """How many steps are made where the model is as a row says."""
        return len(self._steps) - row

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        made = self.number(number)
        mark = ">" if made == self._position else " "
        saved = "  saved" if made == self._saved else ""
        head = f"{mark}{made:>4} "
        if made == 0:
            text, notes = "as it was opened", ""
        else:
            step = self._steps[made - 1]
            text, notes = visible(step.title, None), f"  {visible('; '.join(step.notes), 200)}" if step.notes else ""
        room = width - cells(head) - cells(saved)
        shown = shortened(text, max(room, 10))
        rest = room - cells(shown)
        remark = shortened(notes, rest) if rest > 8 else ""
        is_here = made <= self._position
        return (
            Span(head, "title" if made == self._position else "quiet"),
            Span(shown, "plain" if is_here and made else "quiet"),
            Span(remark, "quiet"),
            Span(saved, "good"),
        )


class HistoryPage(Page):
    """Enter goes to the model as it was after a step, y copies the commands that repeat it."""

    name = "history"
    title = "History"
    hints = (("enter", "go there"), ("y", "copy the command"), ("u", "undo"))

    @property
    def rows(self) -> Rows:
        """A row a step."""
        return HistoryRows(self.bench.session.history)

    @property
    def note(self) -> str:
        """How many."""
        return str(len(self.bench.session.history) or "")

    def model_changed(self) -> None:
        """There is a step more, or another one is the newest."""
        self.redraw()

    def choose(self, number: int) -> None:
        """Undo or redo until that step is the newest."""
        session = self.bench.session
        wanted = len(session.history) - number
        last = None
        is_restructured = False
        count = abs(session.history.position - wanted)
        while session.history.position != wanted:
            changed = session.undo() if session.history.position > wanted else session.redo()
            if changed is None:
                break
            last, is_restructured = changed, is_restructured or changed.is_restructured
        if last is None:
            self.bench.say("the model is as it was after that step")
            return
        self.bench.changed(last._replace(is_restructured=is_restructured))
        word = "undone" if last.kind == "undone" else "done again"
        self.bench.say(f"{counted(count, 'step')} {word}")

    def copied(self, number: int) -> str:
        """The commands of a step, a line each; its name where it is no edits."""
        steps = tuple(self.bench.session.history)
        made = len(steps) - number
        if made < 1:
            return ""
        return "\n".join(steps[made - 1].commands) or steps[made - 1].title

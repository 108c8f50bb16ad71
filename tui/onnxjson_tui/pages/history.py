"""The page of the steps of the session."""

from onnxjson.model.display import counted, visible
from onnxjson.rendering.tables import Line, Span, cells, shortened
from onnxjson_tui.session.history import History, Step
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.drawer import Page
from onnxjson_tui.widgets.lines import Rows


class HistoryRows:
    """Rows of steps, the newest first, then the opened model; undone steps are dimmed, above the mark."""

    def __init__(self, history: History) -> None:
        self._steps: tuple[Step, ...] = tuple(history)
        self._position = history.position
        self._saved = history.saved

    def __len__(self) -> int:
        return len(self._steps) + 1

    def number(self, row: int) -> int:
        """Return the number of steps that lead to the model of a row."""
        return len(self._steps) - row

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        step_number = self.number(number)
        mark = ">" if step_number == self._position else " "
        saved = "  saved" if step_number == self._saved else ""
        head = f"{mark}{step_number:>4} "
        if step_number == 0:
            text, notes = "as opened", ""
        else:
            step = self._steps[step_number - 1]
            text, notes = visible(step.title, None), f"  {visible('; '.join(step.notes), 200)}" if step.notes else ""
        room = width - cells(head) - cells(saved)
        shown = shortened(text, max(room, 10))
        rest = room - cells(shown)
        remark = shortened(notes, rest) if rest > 8 else ""
        is_here = step_number <= self._position
        return (
            Span(head, "title" if step_number == self._position else "quiet"),
            Span(shown, "plain" if is_here and step_number else "quiet"),
            Span(remark, "quiet"),
            Span(saved, "good"),
        )


class HistoryPage(Page[Workbench]):
    """The steps; enter restores the model after a step, y copies the commands that repeat it."""

    name = "history"
    title = "History"
    hints = (("enter", "go there"), ("y", "copy the command"), ("u", "undo"))

    @property
    def rows(self) -> Rows:
        """The steps."""
        return HistoryRows(self.workbench.session.history)

    @property
    def note(self) -> str:
        """The number of steps."""
        return str(len(self.workbench.session.history) or "")

    def model_changed(self) -> None:
        """Draw the steps again."""
        self.redraw()

    def choose(self, number: int) -> None:
        """Undo or redo until the step of the row is the newest."""
        history = self.workbench.session.history
        last, done = self.workbench.step(len(history) - number - history.position)
        if last is None:
            self.workbench.say("this is the current step")
        else:
            self.workbench.say(f"{counted(done, 'step')} {'undone' if last.kind == 'undone' else 'redone'}")

    def copied(self, number: int) -> str:
        """Return the commands of a step, one per line; its title if it has none."""
        steps = tuple(self.workbench.session.history)
        step_number = len(steps) - number
        if step_number < 1:
            return ""
        return "\n".join(steps[step_number - 1].commands) or steps[step_number - 1].title

"""The steps of the session, each as the command that would repeat it."""

from onnxjson.display import visible
from onnxjson.rendering.spans import Line, Span
from onnxjson_tui.pages.declaration import Page
from onnxjson_tui.widgets.lines import Rows, TextRows


class HistoryPage(Page):
    """The newest step first; enter goes to the model as it was after a step."""

    name = "history"
    title = "History"

    @property
    def rows(self) -> Rows:
        """A row a step."""
        history = self.bench.session.history
        steps = list(history)
        lines: list[Line] = []
        for number in range(len(steps), 0, -1):
            is_made = number <= history.position
            mark = ">" if number == history.position else " "
            saved = "  (saved)" if history.saved == number else ""
            text = f"{mark}{number:>4} {visible(steps[number - 1].title, 500)}"
            lines.append((Span(text, "plain" if is_made else "quiet"), Span(saved, "good")))
        mark = ">" if history.position == 0 else " "
        saved = "  (saved)" if history.saved == 0 else ""
        lines.append((Span(f"{mark}   0 as it was opened", "quiet"), Span(saved, "good")))
        return TextRows(lines)

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
        while session.history.position != wanted:
            changed = session.undo() if session.history.position > wanted else session.redo()
            if changed is None:
                break
            self.bench.changed(changed)

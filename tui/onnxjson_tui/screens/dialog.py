"""What the screens beside the workbench have in common: they give one answer."""

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widget import Widget


class AnsweringScreen(Screen[ScreenResultType]):
    """A screen that gives one answer, and is gone then.

    Keys may come faster than it comes and goes: a second escape must not close what stands behind it, and one that
    comes before the screen is whole waits until it is.
    """

    _is_whole = False
    is_answered = False
    """Whether the answer was given, so that the screen is about to go."""

    def on_mount(self) -> None:
        """All that it consists of is there; those of its subclasses are called before."""
        self._is_whole = True

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Gives the answer, once."""
        if self.is_answered:
            return AwaitComplete()
        if not self._is_whole:
            self.call_later(self._answer, result)
            return AwaitComplete()
        self.is_answered = True
        # A cache of Textual keeps this of its last 1,024 widgets, and with it every line that they have drawn.
        for widget in (self, *self.walk_children(Widget)):
            widget._styles_cache.clear()
        return super().dismiss(result)

    def _answer(self, result: ScreenResultType | None) -> None:
        """`dismiss` for a callback, whose result would be awaited where that must not be."""
        self.dismiss(result)


# ModalScreen comes first, since Textual takes a style sheet from the first of several bases.
class Dialog(ModalScreen[ScreenResultType], AnsweringScreen[ScreenResultType]):
    """One that stands over the screen that asks; the base of all small screens."""

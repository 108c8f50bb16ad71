"""List of any length: only visible lines are built, and a key redraws only the lines that it changes; bars of one line.

Rows come from a provider; the widget stores only the cursor and the scroll position.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Literal, Protocol

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.color import Color
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from onnxjson.model.display import ELLIPSIS
from onnxjson.rendering.tables import Line, Span, cells

_CONTROLS: Final = dict.fromkeys((*range(32), *range(127, 160)), "?")
"""Control characters, which never reach a terminal, even if a provider did not escape them."""


_COLORS: Final = {
    "plain": "foreground", "title": "primary", "quiet": "foreground", "added": "success", "good": "success",
    "removed": "error", "bad": "error", "changed": "warning", "rewritten": "accent", "cursor": "foreground",
    "cell": "foreground", **dict.fromkeys(("compute", "activation", "norm", "shaping", "control"), ""),
}  # fmt: skip
"""Variables of the theme with the colors of styles."""

_QUIET: Final = 0.6  # opacity of quiet text

Tone = Literal["plain", "good", "bad", "changed"]


class StyledWidget(Widget):
    """Widget that draws spans.

    Their styles are not component classes, since Textual would style a node for each of them at every change of focus.
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None, name: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id, classes=classes, name=name)
        self._span_styles: dict[str, RichStyle] = {}

    def notify_style_update(self) -> None:
        """Forget the styles; called after a change of the theme, too."""
        self._span_styles.clear()
        super().notify_style_update()

    def on_unmount(self) -> None:
        """Forget the drawn lines, since Textual keeps the last 1,024 widgets for their styles."""
        self.refresh()

    def span_style(self, name: str) -> RichStyle:
        """Return the style of spans, such as "plain"; "cursor" is that of a line with the cursor."""
        if name not in self._span_styles:
            background = self.background_colors[1]
            color = Color.parse(self.app.theme_variables[_COLORS[name] or name])
            is_dim = name == "quiet" and color.ansi is not None
            shown = background + (color.with_alpha(_QUIET) if name == "quiet" and not is_dim else color)
            self._span_styles[name] = RichStyle(
                color=shown.rich_color,
                bgcolor=background.rich_color,
                bold=name in ("title", "bad") or None,
                dim=is_dim or None,
                reverse=name in ("cursor", "cell") or None,
            )
        return self._span_styles[name]


class Rows(Protocol):
    """Provider of the rows of a list."""

    def __len__(self) -> int: ...

    def line(self, number: int, width: int) -> Line:
        """Return the line of a row in at most `width` columns, without control characters."""
        ...


class TextRows:
    """Rows that are already available as lines."""

    def __init__(self, lines: "Sequence[Line | str]") -> None:
        self._lines: list[Line] = [(Span(each),) if isinstance(each, str) else each for each in lines]

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        return self._lines[number]


class LineList(StyledWidget, ScrollView, can_focus=True):
    """A list of lines with a cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--cursor-blurred"}

    class Moved(Message):
        """The cursor moved to another row."""

        def __init__(self, lines: "LineList", number: int) -> None:
            super().__init__()
            self.lines = lines
            self.number = number

    class Chosen(Moved):
        """A row was double-clicked."""

    def __init__(self, rows: Rows | None = None, *, id: str | None = None, has_cursor: bool = True) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._rows: Rows = rows if rows is not None else TextRows([])
        self._has_cursor = has_cursor
        self.cursor = 0  # number of the row under the cursor
        self.covered = 0  # number of lines at the bottom that another widget covers; the cursor stays above them

    def on_mount(self) -> None:
        """Measure the rows."""
        self._measure()

    @property
    def rows(self) -> Rows:
        """The rows that are shown."""
        return self._rows

    def show(self, rows: Rows, cursor: int | None = None) -> None:
        """Show other rows with the cursor on one of them; None keeps the cursor's row number if it exists."""
        self._rows = rows
        self._measure()
        self.cursor = max(min(self.cursor if cursor is None else cursor, len(rows) - 1), 0)
        self._see_cursor(jump=True)
        self.refresh()

    def move_to(self, number: int) -> None:
        """Move the cursor to a row; numbers out of range mean the first or the last row."""
        number = max(min(number, len(self._rows) - 1), 0)
        if number == self.cursor:
            return
        before, self.cursor = self.cursor, number
        if not self._see_cursor():
            self.refresh_line(before)
            self.refresh_line(number)
        self.post_message(self.Moved(self, number))

    def move_by(self, count: int) -> None:
        """Move the cursor down, or up for a negative count; a list without a cursor scrolls."""
        if self._has_cursor:
            # A few steps down from the lines before values begin at the value that keys mean.
            start = getattr(self._rows, "start", 0) if 0 < count < self.page else 0
            self.move_to(max(self.cursor, start) + count)
        else:
            self.cursor = max(min(self.scroll_offset.y + count, self.virtual_size.height - self.page), 0)
            self.scroll_to(y=self.cursor, animate=False)

    def move_with_key(self, key: str | None, *, is_typing: bool = False) -> bool:
        """Handle a movement key of a dialog, letters only unless the user is typing; return whether the key is one."""
        # When a text is paged, its last line stays visible, so that the eye finds the place.
        page = self.page if self._has_cursor else max(self.page - 1, 1)
        count = len(self._rows)
        steps = {"up": -1, "down": 1, "pageup": -page, "pagedown": page}
        if is_typing:
            steps |= {"ctrl+p": -1, "ctrl+n": 1}
        else:
            steps |= {"k": -1, "j": 1, "b": -page, " ": page, "ctrl+u": -page, "ctrl+d": page}
            steps |= {"g": -count, "home": -count, "G": count, "end": count}
        if key not in steps:
            return False
        self.move_by(steps[key])
        return True

    @property
    def page(self) -> int:
        """Number of rows that are visible at once."""
        return max(self.scrollable_content_region.height, 1)

    def centre(self, where: float = 0.5) -> None:
        """Scroll so that the cursor is in the middle, or at another fraction of the height."""
        self.scroll_to(y=max(self.cursor - int((self.page - 1) * where), 0), animate=False)

    def cover(self, lines: int) -> None:
        """Set how many lines at the bottom another widget covers; the cursor stays visible."""
        self.covered = lines
        if lines:
            self._see_cursor()
        else:
            self._measure()

    def _measure(self, more: int = 0) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._rows) + more)

    def _see_cursor(self, *, jump: bool = False) -> bool:
        """Scroll to the cursor, by half a page, since a page costs as much to draw as a line; return whether it did."""
        if not self.scrollable_content_region.height:
            return False  # before the first layout; `on_resize` comes after it
        top, page = self.scroll_offset.y, max(self.page - self.covered, 1)
        if self.covered and len(self._rows) >= self.page and self.cursor >= len(self._rows) - self.covered:
            self._measure(self.covered)
        if top <= self.cursor < top + page and not (jump and top > max(len(self._rows) - page, 0)):
            return False
        half = page // 2
        is_next = top - 1 <= self.cursor <= top + page
        if is_next and not jump:
            target = self.cursor - half if self.cursor >= top + page else self.cursor - page + half + 1
        else:
            target = self.cursor - half
        target = max(min(target, len(self._rows) - page, self.virtual_size.height - self.page), 0)
        # A list that was short so far has no scrollbar until the next layout, and would not scroll without force.
        # Without immediate, the scroll would wait for the next refresh of any widget, such as the footer.
        self.scroll_to(y=target, animate=False, force=True, immediate=self.is_attached and bool(self.size))
        return True

    def on_resize(self, event: events.Resize) -> None:
        """Adapt the lines to the new width."""
        self._measure()
        self._see_cursor()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row; a double click chooses it."""
        number = event.y + self.scroll_offset.y
        if 0 <= number < len(self._rows) and self._has_cursor:
            self.move_to(number)
            if event.chain >= 2:
                self.post_message(self.Chosen(self, number))

    def render_line(self, y: int) -> Strip:
        """Draw one line of the widget."""
        width = self.scrollable_content_region.width
        number = y + self.scroll_offset.y
        base = self.span_style("plain")
        line = self._rows.line(number, width) if number < len(self._rows) else None
        if line is None:
            return Strip.blank(width, base)
        cursor: RichStyle | None = None
        if self._has_cursor and number == self.cursor and not any(span.style == "cell" for span in line):
            blurred = "lines--cursor-blurred"
            cursor = self.span_style("cursor") if self.has_focus else self.get_component_rich_style(blurred)
        return one_strip(line, width, base, cursor, self.span_style)


def one_strip(
    line: Line, width: int, base: RichStyle, cursor: "RichStyle | None", style_of: "Callable[[str], RichStyle]"
) -> Strip:
    """Return spans as a strip, cut with an ellipsis; adjacent spans of one style are merged to save bytes."""
    segments: list[Segment] = []
    length = 0
    text, style = "", base
    for span in line:
        span_style = cursor if cursor is not None else base if span.style == "plain" else style_of(span.style)
        if span_style != style and text:
            segments.append(Segment(text, style))
            text = ""
        style = span_style
        shown = span.text.translate(_CONTROLS)
        text += shown
        length += cells(shown)
    rest = max(width - length, 0)
    if length > width > 0:
        segments.append(Segment(text, style))
        return Strip([*Strip(segments).crop(0, width - 1), Segment(ELLIPSIS, style)]).adjust_cell_length(width, base)
    if cursor is not None or style == base:
        segments.append(Segment(text + " " * rest, style))
    else:
        segments.append(Segment(text, style))
        segments.append(Segment(" " * rest, base))
    return Strip(segments).adjust_cell_length(width, base)


class Bar(StyledWidget, can_focus=False):
    """One line of text that is never wrapped and never read as markup."""

    class Clicked(Message):
        """A key of the line, or its label, was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id, classes=classes)
        self._left: Line = ()
        self._right: Line = ()
        self._below: Sequence[Line] = ()

    def show(self, left: Line, right: Line | str = "", below: Sequence[Line] = ()) -> None:
        """Show spans on the left, which are shortened if needed, and on the right, and more lines below."""
        if isinstance(right, str):
            right = (Span(right),) if right else ()
        if (left, right, below) != (self._left, self._right, self._below):
            if len(below) != len(self._below):
                self.styles.height = 1 + len(below)
            self._left, self._right, self._below = left, right, below
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Report the key at the left of the click."""
        right = sum([cells(span.text) for span in self._right])
        is_right = event.x >= self.size.width - right
        line, place = (self._right, self.size.width - right) if is_right else (self._left, 0)
        key = ""
        for span in line:
            key = span.text.strip() if span.style == "title" else key
            place += cells(span.text)
            if event.x < place:
                if key:
                    self.post_message(self.Clicked(key))
                return

    @property
    def text(self) -> str:
        """The text of the bar, without styles."""
        first = "".join(span.text for span in self._left)
        if self._right:
            first += "  " + "".join(span.text for span in self._right)
        return "\n".join([first, *["".join(span.text for span in line) for line in self._below]])

    def render_line(self, y: int) -> Strip:
        """Draw one line of the bar."""
        width = self.size.width
        base = self.span_style("plain")
        if y:
            if y > len(self._below):
                return Strip.blank(width, base)
            return one_strip(self._below[y - 1], width, base, None, self.span_style)
        used = min(sum([cells(span.text) for span in self._right]), max(width // 2, 10))
        room = max(width - used - (2 if used else 0), 0)
        left = one_strip(self._left, room, base, None, self.span_style)
        right = one_strip(self._right, used, base, None, self.span_style)
        gap = Segment(" " * max(width - room - used, 0), base)
        return Strip([*left, gap, *right]).adjust_cell_length(width, base)

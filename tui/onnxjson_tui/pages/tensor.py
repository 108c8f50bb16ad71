"""The page of one tensor: its type, place and consumers at once, its values and statistics on demand."""

from typing import Final

from onnxjson.editing.tensor_values import SetTensor
from onnxjson.model.dimensions import SliceError, parse_slice, slice_text
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import STRING
from onnxjson.model.errors import EditError, OnnxJsonError
from onnxjson.model.tensor_statistics import Spread, Statistics, StringStatistics, spread, statistics, string_statistics
from onnxjson.model.types import format_data_type
from onnxjson.patterns.names import TensorRef
from onnxjson.patterns.selectors import select_tensor
from onnxjson.rendering.tables import Line, Span, Style, cells, padded, shortened, wrapped
from onnxjson.rendering.tensor import statistics_rows, string_rows
from onnxjson.storage.constant_reading import Kind
from onnxjson_tui.names.editable_names import model_value_selector
from onnxjson_tui.rows.tensor import (
    BINS,
    SparseGrid,
    ValueGrid,
    begun,
    histogram_lines,
    opened_grid,
    place_lines,
    quantile_lines,
    side_by_side,
    title_line,
)
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.drawer import Page
from onnxjson_tui.widgets.lines import Rows, TextRows

_LONGEST_LABEL: Final = 16  # columns of a slice that is shown above the row labels
_EDITED_IN_PLACE: Final = 64  # maximum number of elements that are edited in the prompt
_WARM: Final = 0.25  # part of the biggest absolute value from which a value stands out
_HOT: Final = 0.75
_COUNTING: Final = "tensor-statistics"  # the group of the job that computes statistics


class _DroppedError(Exception):
    """The statistics were cancelled."""


class TensorPage(Page[Workbench]):
    """Shows one tensor."""

    name = "tensor"
    title = "Tensor"
    hints = (("e", "edit"), ("S", "statistics"), ("s", "slice"), ("h l", "cells"))

    ref: TensorRef | None = None
    _gone = ""
    _grid: ValueGrid | None = None
    _problem = ""
    _statistics: tuple[Statistics | StringStatistics, Spread | None] | None = None
    column = 0  # the first visible column of values
    cell = 0  # the column of the cursor
    cell_row = 0  # the row of values that keys mean while the cursor is on the statistics
    _row: int | None = None  # the row of the cursor before the values are read again
    _slice = ""

    # What is shown

    def show_constant(self, address: str) -> None:
        """Show the tensor at an address."""
        session = self.workbench.session
        self.show_tensor(select_tensor(session.model, session.index, f"@{address}"))

    def show_tensor(self, ref: TensorRef) -> None:
        """Open the page with a tensor, and its first elements as soon as they are read."""
        self.drawer.open(self.name)
        self.ref, self._gone = ref, ""
        self._slice, self.column, self.cell, self.cell_row = "", 0, 0, 0
        self._open()
        self.redraw(0)
        self.workbench.focus_pane("drawer")

    def model_changed(self) -> None:
        """Find the tensor in the new model."""
        ref = self.ref
        if ref is None:
            return
        new_ref = self._found_again(ref)
        if new_ref is None:
            self._gone = f"{visible(ref.name or ref.address, 200)} was removed; t shows another one"
            self.ref, self._grid = None, None
        else:
            self.ref = new_ref
            if new_ref.tensor is not ref.tensor:
                shown, cursor = self.drawer.lines.rows, self.drawer.lines.cursor
                if isinstance(shown, TensorRows) and cursor >= shown.before:
                    self._row = cursor - shown.before
                self._open()
        self.redraw()

    def _found_again(self, ref: TensorRef) -> TensorRef | None:
        session = self.workbench.session
        if ref.scope is not None and ref.name:
            scope = next((each for each in session.index.scopes if each.address == ref.scope.address), None)
            if scope is not None and ref.tensor is not None:
                fields = (("initializer", scope.initializers), ("sparse_initializer", scope.sparse_initializers))
                for field, places in fields:
                    if ref.name in places:
                        address = f"{scope.address}/{field}/{places[ref.name]}"
                        return TensorRef(ref.name, address, scope.initializer(ref.name), scope)
        try:
            new_ref = select_tensor(session.model, session.index, f"@{ref.address}")
        except OnnxJsonError:
            return None
        return new_ref if new_ref.name == ref.name else None

    def _open(self) -> None:
        """Read the elements in a thread, since they may be in a file or packed."""
        self._grid, self._problem, self._statistics = None, "", None
        self.workbench.jobs.drop("tensor")
        self.workbench.jobs.drop(_COUNTING)
        ref = self.ref
        if ref is None or ref.tensor is None:
            return
        tensor, folder, wanted = ref.tensor, self.workbench.session.opened.folder, self._slice
        self.workbench.jobs.start(
            "tensor", "reading the tensor", lambda: opened_grid(tensor, folder, wanted), self._opened, self._failed
        )

    def _opened(self, grid: ValueGrid) -> None:
        self._grid = grid
        self.cell = min(self.cell, max(grid.columns - 1, 0))
        first = len(self.head(self.width))
        row, self._row = self._row, None
        is_at_head = self.drawer.page is self and self.drawer.lines.cursor < first
        self.redraw(first + (row or 0) if grid.rows and (is_at_head or row is not None) else None)

    def redraw(self, cursor: int | None = None) -> None:
        shown, lines = self.drawer.lines.rows, self.drawer.lines
        if cursor is None and isinstance(shown, TensorRows) and self.ref is not None and lines.cursor >= shown.before:
            # The cursor stays on its value if there are more lines before it.
            cursor = lines.cursor + len(self.head(self.width)) - shown.before
        super().redraw(cursor)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, OnnxJsonError | SliceError):
            self._problem = visible(str(error), 1000)
        else:
            self.workbench.failed(error)
        self.redraw()

    @property
    def note(self) -> str:
        """The name, and the visible columns if there are more."""
        if self.ref is None:
            return ""
        name = shortened(visible(self.ref.name or self.ref.address, 300), 24)
        grid = self._grid
        if grid is None or grid.is_list:
            return name
        seen = self._columns(grid, self.width)
        if len(seen) == grid.columns:
            return name
        return f"{name}  columns {grid.column_label(seen[0])} to {grid.column_label(seen[-1])} of {grid.columns:,}"

    @property
    def rows(self) -> Rows:
        """The head, then the values."""
        if self.ref is None:
            text = self._gone or "t shows a tensor of a node; ctrl+p finds constants by name"
            return TextRows([(Span(f" {text}", "quiet"),)])
        return TensorRows(self)

    @property
    def width(self) -> int:
        """Columns of the page."""
        return self.workbench.drawer.lines.scrollable_content_region.width or self.workbench.size.width

    # Requests

    def more(self) -> None:
        """Compute statistics of all elements in a thread."""
        grid = self._grid
        if grid is None or self.workbench.jobs.is_running(_COUNTING):
            return
        tensor = grid.tensor
        if tensor.data_type == STRING:
            self._statistics = (string_statistics(tensor), None)
            self.redraw()
            return

        def look() -> None:
            if not self.workbench.jobs.is_running(_COUNTING):
                raise _DroppedError

        def work() -> tuple[Statistics, Spread]:
            return statistics(tensor, bins=BINS, looked=look), spread(tensor, looked=look)

        job = self.workbench.jobs.start(_COUNTING, "computing statistics", work, self._counted, self._failed)
        job.dropped = self.redraw
        self.redraw()

    def _counted(self, found: tuple[Statistics, Spread]) -> None:
        self.cell_row = max(self.drawer.lines.cursor - len(self.head(self.width)), 0)
        self._statistics = found
        self.redraw(0)  # where they are

    async def ask_slice(self) -> None:
        """Ask for a slice, and show its elements."""
        text = await self.workbench.ask("slice", text=self.slice) if self.slice else ""
        if text is not None:
            self.pick(text)

    def pick(self, text: str) -> None:
        """Show the elements of a slice."""
        grid = self._grid
        if grid is None or isinstance(grid, SparseGrid):
            self.workbench.say("there are no values to slice")
            return
        dims = grid.tensor.dims
        try:
            picks = parse_slice(text, dims)
        except SliceError as error:
            self.workbench.say(str(error), "bad")
            return
        self._slice, self.column, self.cell = slice_text(picks, dims), 0, 0
        wanted = ValueGrid(grid.tensor, picks)
        self.workbench.jobs.start("tensor", "reading the tensor", lambda: begun(wanted), self._opened, self._failed)

    @property
    def slice(self) -> str:
        """The current slice; "" without values."""
        grid = self._grid
        if grid is None or isinstance(grid, SparseGrid):
            return ""
        return slice_text(grid.picks, grid.tensor.dims)

    def sideways(self, step: int) -> None:
        grid = self._grid
        if grid is None:
            return
        self.cell = max(min(self.cell + step, grid.columns - 1), 0)
        head = len(self.head(self.width))
        if self.drawer.lines.cursor < head:
            self.drawer.lines.move_to(head + self.cell_row)
        seen = self._columns(grid, self.width)
        if self.cell not in seen:
            self.column = self.cell if self.cell < self.column else max(self.cell - len(seen) + 1, 0)
        self.redraw()

    def place(self, count: int) -> tuple[SetTensor, str, Kind]:
        """Return the edit of the elements at the cursor, without values, then their values as JSON, and their type.

        They are `count` elements of the row of the cursor, or as many as there are.

        Raises:
            EditError: there are no values that can be edited there.
        """
        ref, grid = self.ref, self._grid
        if ref is None or grid is None or not isinstance(ref.tensor, Tensor):
            raise EditError("there is no constant to edit here; t on a node shows one")
        if not grid.rows:
            raise EditError("the constant has no values")
        row = self.drawer.lines.cursor - len(self.head(self.width))
        row = row if row >= 0 else min(self.cell_row, grid.rows - 1)
        length = min(count, grid.columns - self.cell)
        if length > _EDITED_IN_PLACE:
            raise EditError(f"{length:,} elements are too many to type; :set-tensor --at --file reads an array")
        words = "" if ref.scope is None else model_value_selector(self.workbench.session.index, ref.scope, ref.name)
        values = grid.exact(row, self.cell, length)
        text = values[0] if len(values) == 1 else f"[{', '.join(values)}]"
        at = grid.index(row, self.cell, length if len(values) > 1 else 1) or None
        kind = Kind(grid.tensor.data_type or 0, (length,) if length > 1 else ())
        return SetTensor(tensor=words or f"@{ref.address}", at=at, value=0), text, kind

    # Lines

    def head(self, width: int) -> list[Line]:
        """Return the facts about the tensor that need no reading."""
        ref = self.ref
        assert ref is not None
        lines = [
            title_line(ref, width),
            *[(Span(f" {each}", "quiet"),) for each in place_lines(self.workbench.session.index, ref, width - 2)],
        ]
        lines += [(Span(f" {each}", "bad"),) for each in wrapped(self._problem, width - 2, indent=0) if each]
        lines += self._statistics_lines(width)
        grid = self._grid
        if ref.tensor is None:
            lines.append((Span(" not a constant: gn runs the model and shows its minimum, maximum and mean", "quiet"),))
        elif grid is None and not self._problem:
            lines.append((Span(" reading the values ...", "quiet"),))
        elif grid is not None and (grid.columns > 1 or not grid.length or isinstance(grid, SparseGrid)):
            lines.append(self._heading(grid, width))
        return lines

    def _statistics_lines(self, width: int) -> list[Line]:
        if self._grid is None:
            return []
        if self.workbench.jobs.is_running(_COUNTING):
            return [(Span(" computing statistics ...   esc cancels", "changed"),)]
        if self._statistics is None:
            return [(Span(" e edit   4e edit four   S statistics and histogram   s slice", "quiet"),)]
        statistics, spread = self._statistics
        if isinstance(statistics, StringStatistics):
            return side_by_side(string_rows(statistics), (), width)
        chart = histogram_lines(statistics.histogram) if statistics.histogram is not None else []
        rows = statistics_rows(statistics, format_data_type(self._grid.tensor.data_type or 0))
        if spread is not None and spread.distinct is not None:
            rows.append(("distinct", f"{spread.distinct:,}"))
        lines = side_by_side(rows, chart, width)
        if spread is not None and spread.quantiles:
            lines += [(Span(f" {each}"),) for each in quantile_lines(spread, width - 2)]
        return lines

    def _heading(self, grid: ValueGrid, width: int) -> Line:
        if not grid.length:
            return (Span(" no elements", "quiet"),)
        if isinstance(grid, SparseGrid):
            return (Span(f" the {counted(grid.length, 'element')} that are stored", "title"),)
        label = padded(self.slice if cells(self.slice) <= self._label_width(grid) else "", self._label_width(grid))
        texts = [grid.column_label(column) for column in self._columns(grid, width)]
        return (Span(" " + label + "".join([padded(text, grid.width + 2, right=True) for text in texts]), "title"),)

    def _label_width(self, grid: ValueGrid) -> int:
        """Return the columns of the row labels, and of the slice above them unless it is long."""
        if not grid.rows:
            return 1
        widest = max(cells(grid.row_label(grid.rows - 1)), cells(grid.row_label(0)))
        wanted = cells(self.slice) if grid.columns > 1 else 0
        return max(widest, wanted if wanted <= _LONGEST_LABEL else 0)

    def _columns(self, grid: ValueGrid, width: int) -> range:
        fits = max((width - 1 - self._label_width(grid)) // (grid.width + 2), 1)
        return range(self.column, min(self.column + fits, grid.columns))

    def value_count(self) -> int:
        """Return the number of rows of values."""
        return 0 if self._grid is None else self._grid.rows

    def value_line(self, row: int, width: int) -> Line:
        """Return a row of values."""
        grid = self._grid
        assert grid is not None
        columns, before = self._columns(grid, width), grid.width
        try:
            values = [] if self._problem else grid.texts(row, columns.start, len(columns))
        except OnnxJsonError as error:
            self.workbench.call_after_refresh(self._failed, error)
            values = []
        if grid.width > before:
            self.workbench.call_after_refresh(self.redraw)
        label = Span(" " + padded(grid.row_label(row), self._label_width(grid)) + "  ", "quiet")
        texts = [padded(shortened(text, grid.width), grid.width, right=True) for text in values]
        return (label, *[part for text in texts for part in (Span(text, self._heat(text)), Span("  "))][:-1])

    def _heat(self, text: str) -> Style:
        """Return the style of a value: zeros are quiet, and, with statistics, big values stand out."""
        value = text.strip()
        if value in ("nan", "inf", "-inf"):
            return "bad"
        if value in ("0", "-0", "false"):
            return "quiet"
        statistics = self._statistics[0] if self._statistics is not None else None
        if not isinstance(statistics, Statistics) or statistics.minimum is None or statistics.maximum is None:
            return "plain"
        try:
            share = abs(float(value)) / max(abs(float(statistics.minimum)), abs(float(statistics.maximum)), 1e-300)
        except ValueError:
            return "plain"
        return "bad" if share > _HOT else "control" if share > _WARM else "plain"


class TensorRows:
    """The lines of a page, computed once: the head, then values."""

    def __init__(self, page: TensorPage) -> None:
        self._page = page
        self._heads: dict[int, list[Line]] = {}
        self._lines: dict[tuple[int, int], Line] = {}
        self.before = len(self._head(page.width))  # number of lines before the values
        self._length = self.before + page.value_count()
        self.start = self.before + page.cell_row if page.value_count() else 0  # the row that keys mean above the values

    def __len__(self) -> int:
        return self._length

    def _head(self, width: int) -> list[Line]:
        if width not in self._heads:
            self._heads[width] = self._page.head(width)
        return self._heads[width]

    def line(self, number: int, width: int) -> Line:
        """See `Rows.line`."""
        head = self._head(width)
        if number < len(head):
            return head[number]
        key = (number - len(head), width)
        if key not in self._lines:
            inside = 0 <= key[0] < self._page.value_count()
            self._lines[key] = self._page.value_line(key[0], width) if inside else ()
        line, place = self._lines[key], 1 + 2 * (self._page.cell - self._page.column)
        if number == self._page.drawer.lines.cursor and 0 < place < len(line):
            return (*line[:place], line[place]._replace(style="cell"), *line[place + 1 :])
        return line

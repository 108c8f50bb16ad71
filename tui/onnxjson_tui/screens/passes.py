"""Passes on the model of a session: choose one, set its options, run it, apply its result."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from onnxjson.editing.declaration import Edit
from onnxjson.editing.values import write_value
from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.optimizing.passes import Pipeline, files_written, parse_step
from onnxjson.optimizing.passes.catalogue import Entry, Option, entries
from onnxjson.optimizing.passes.user import EditPass
from onnxjson.rendering.pass_list import lines
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, clipped, padded, shortened, wrapped
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.screens.comparison import ComparisonScreen
from onnxjson_tui.session.comparing import Compared, Side, compared
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.dialogs import Dialog
from onnxjson_tui.widgets.lines import Bar, LineList, TextRows
from onnxjson_tui.widgets.prompt import Field

if TYPE_CHECKING:
    from onnxjson.model.document import Model
    from onnxjson.optimizing.passes import NewFile


def pass_choices() -> list[Choice]:
    """Return all passes except edits, which have forms; those that can run here come first."""
    found = [
        Choice(each.name, visible(each.name, 200), visible(each.summary, 300), _missing(each))
        for each in entries()
        if each.kind != "edit"
    ]
    return sorted(found, key=lambda choice: bool(choice.refused))


def _missing(entry: Entry) -> str:
    return visible(entry.problem, 300) if entry.problem else ""


class OptionRows:
    """Rows of the options of a pass."""

    def __init__(self, options: Sequence[Option]) -> None:
        self.options = options
        self._column = min(max([cells(each.name) for each in options], default=0), 24)

    def __len__(self) -> int:
        return max(len(self.options), 1)

    def line(self, number: int, width: int) -> Line:
        """Return name, default and description."""
        if not self.options:
            return (Span("no options", "quiet"),)
        each = self.options[number]
        name = padded(shortened(visible(each.name), self._column), self._column)
        default = "required" if each.required else visible(write_value(each.default), 40)
        default = padded(clipped(default, 12), 12)
        text = clipped(f"  {visible(each.description or '', 500)}", max(width - self._column - 14, 4))
        return Span(f"{name}  ", "title"), Span(default, "changed" if each.required else "quiet"), Span(text)

    def about(self, number: int, width: int) -> list[Line]:
        """Return the unabridged description of an option, and the values that it accepts."""
        if number >= len(self.options):
            return []
        each = self.options[number]
        fits = ", ".join(map(visible, each.choices)) or each.type
        lines = [(Span(text),) for text in wrapped(each.description or "", width, indent=0)]
        return [*lines, *[(Span(text, "quiet"),) for text in wrapped(f"accepts {fits}", width, indent=0)]]


class SpecScreen(Dialog[str | None]):
    """Asks for the options of a pass in one line, checked while the user types; returns the line, or None."""

    HAS_FIELD = True

    def __init__(self, entry: Entry) -> None:
        super().__init__()
        self._entry = entry
        self._line = f"{entry.name}{{{self._needed()}}}" if self._needed() else entry.name

    def _needed(self) -> str:
        return ",".join([f"{each.name}=" for each in self._entry.options if each.required])

    def compose(self) -> ComposeResult:
        """Summary, line, options, keys or the error in the line."""
        with Vertical(classes="dialog tall wide"):
            yield Bar(id="dialog-title")
            yield Field(self._line, id="dialog-input", select_on_focus=False)
            yield LineList(OptionRows(self._entry.options), id="dialog-rows")
            yield LineList(id="dialog-about", has_cursor=False)
            yield Bar(id="dialog-hint")

    def on_mount(self) -> None:
        """Focus the line."""
        title = f"{self._entry.name}: {self._entry.summary}"
        self.show_title(visible(title, 500))
        for each in self.query(LineList):
            each.can_focus = False
        field = self.query_one(Input)
        field.focus()
        field.cursor_position = len(self._line) - (1 if self._line.endswith("}") else 0)
        self._check(self._line)
        self.call_after_refresh(self._tell, 0)

    @property
    def _options(self) -> LineList:
        return self.query_one("#dialog-rows", LineList)

    def _tell(self, number: int) -> None:
        rows, about = self._options.rows, self.query_one("#dialog-about", LineList)
        if isinstance(rows, OptionRows):
            about.show(TextRows(rows.about(number, max(about.size.width - 1, 20))), 0)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Describe the option under the cursor."""
        if event.lines is self._options:
            self._tell(event.number)

    def _check(self, text: str) -> bool:
        try:
            parse_step(text)
        except OnnxJsonError as error:
            self._hint(str(error), is_bad=True)
            return False
        self._hint("enter run   tab insert the option   * at the end repeats   esc cancel", is_bad=False)
        return True

    def _hint(self, text: str, *, is_bad: bool) -> None:
        self.show_hint(Span(text, "bad" if is_bad else "quiet"))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Check the line."""
        event.stop()
        self._check(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Run the pass."""
        event.stop()
        if self._check(event.value):
            self.dismiss(event.value.strip())

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Insert an option with the mouse."""
        self._put_in()

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """Insert an option, cancel."""
        return {"tab": self._put_in, **dict.fromkeys(("escape", "ctrl+c"), partial(self.dismiss, None))}

    def _put_in(self) -> None:
        """Insert the option under the cursor into the braces."""
        if not self._entry.options:
            return
        field = self.query_one(Input)
        text = with_option(field.value, self._entry.options[self._options.cursor].name)
        field.value = text
        field.cursor_position = len(text) - (2 if text.endswith("}*") else 1)


def with_option(line: str, name: str) -> str:
    """Return a line with an option whose value is still to be typed: ``onnxsim{fold=}``."""
    star = "*" if line.endswith("*") else ""
    head = line.removesuffix("*")
    if not head.endswith("}"):
        return f"{head}{{{name}=}}{star}"
    inside = head[:-1]
    return f"{inside}{'' if inside.endswith('{') else ','}{name}=}}{star}"


class PassRun:
    """One pass on the model of a session, unsaved changes included."""

    def __init__(self, bench: Bench, spec: str) -> None:
        """Prepare the pass.

        Raises:
            ParameterError: `spec` is not a pass.
        """
        self.step = parse_step(spec)
        self.title = f"optimize -p {self.step}"
        session = bench.session
        self._bench = bench
        self._model, self._revision = session.model, session.revision
        self._side = Side(session.opened.name, session.model, session.opened.path)
        self._folder = session.opened.folder
        self._pipeline: Pipeline | None = None
        self._files: tuple[NewFile, ...] = ()

    def work(self) -> Compared:
        """Run the pass and compare the models, in a thread.

        Raises:
            PassError: the pass crashed, hung, is not installed, or returned an invalid model.
            OnnxJsonError: external data is missing.
        """
        from onnxjson.optimizing.passes.pipeline import InternalizedModel

        inside = InternalizedModel(self._model, self._folder or Path())
        with Pipeline() as pipeline:
            self._pipeline = pipeline
            (made,) = pipeline.run(inside.model, [self.step], self._folder)
        after = inside.restored(made.after.model) if made.is_changed else self._model
        self._files = made.files
        written = [f"applying it also writes {visible(str(each.path), None)}" for each in made.files]
        notes = [line.strip() for line in lines(made)]
        return compared(self._side, Side(f"after {self.step}", after, self._side.path), [*notes, *written])

    def stop(self) -> None:
        """Kill the pass."""
        if self._pipeline is not None:
            self._pipeline.interrupt()

    def _edits(self, model: "Model") -> tuple[Edit, ...]:
        """Return the edit of a pass that is an edit, if it has the same result."""
        subject = self.step.subject
        if not isinstance(subject, EditPass) or self.step.repeats or self._files:
            return ()
        edit = subject.edit
        try:
            return (edit,) if self._bench.session.preview(edit).model == model else ()
        except OnnxJsonError:
            return ()

    def accept(self, found: Compared) -> None:
        """Apply the result as one step, named by the command that repeats it."""
        bench, title, model = self._bench, self.title, found.target.model
        if bench.session.revision != self._revision:
            bench.say("the model was changed since the pass ran; run it again", "bad")
            return

        def make() -> Any:
            preview = bench.session.preview_model(model, title, self._edits(model))
            assert preview.patch is not None  # computed here, since it may take a while
            return preview

        def take(preview: Any) -> None:
            try:
                with files_written(self._files):
                    bench.accept(preview)
            except OnnxJsonError as error:
                bench.failed(error)

        bench.preview(make, take)


def run_screen(bench: Bench, spec: str) -> ComparisonScreen:
    """Return the screen that runs a pass and shows the diff.

    Raises:
        ParameterError: `spec` is not a pass.
    """
    run = PassRun(bench, spec)
    accept = None if bench.session.readonly else run.accept
    doing = f"running {visible(str(run.step), 200)}"
    return ComparisonScreen(doing, run.work, bench.terminal, bench=bench, side="base", stop=run.stop, accept=accept)

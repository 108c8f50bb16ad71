"""Passes on the model of a session: choose one, set its options, run it, apply its result."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
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
from onnxjson.rendering.tables import clipped, padded, wrapped
from onnxjson_tui.rows.choices import Choice, ChoiceRows
from onnxjson_tui.screens.comparison import ComparisonScreen
from onnxjson_tui.session.comparing import Compared, Side, compared
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.dialogs import PickerScreen
from onnxjson_tui.widgets.lines import LineList, TextRows

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


def _option_choice(option: Option) -> Choice:
    default = "required" if option.required else visible(write_value(option.default), 40)
    description = visible(option.description or "", 500)
    return Choice(option.name, visible(option.name), f"{padded(clipped(default, 12), 12)}  {description}")


def _option_lines(option: Option, width: int) -> list[Line]:
    """Return the unabridged description of an option, and the values that it accepts."""
    fits = ", ".join(map(visible, option.choices)) or option.type
    lines = [(Span(text),) for text in wrapped(option.description or "", width, indent=0)]
    return [*lines, *[(Span(text, "quiet"),) for text in wrapped(f"accepts {fits}", width, indent=0)]]


class SpecScreen(PickerScreen):
    """Asks for the options of a pass in one line, checked while the user types; returns the line, or None."""

    def __init__(self, entry: Entry) -> None:
        needed = ",".join([f"{each.name}=" for each in entry.options if each.required])
        super().__init__(
            f"{entry.name}: {entry.summary}",
            [_option_choice(each) for each in entry.options],
            typed=f"{entry.name}{{{needed}}}" if needed else entry.name,
            hint="enter run   tab insert the option   * at the end repeats   esc cancel",
            is_wide=True,
        )
        self._entry = entry

    def body(self) -> ComposeResult:
        """Line, options, description of one."""
        yield from super().body()
        yield LineList(id="dialog-about", has_cursor=False)

    def on_mount(self) -> None:
        """List the options; the cursor is where the first required value belongs."""
        about, rows = self.query_one("#dialog-about", LineList), self.query_one(self.LIST, LineList)
        about.can_focus = False
        rows.show(ChoiceRows(self._choices) if self._choices else TextRows([(Span("no options", "quiet"),)]))
        self._put(self._typed)
        self.call_after_refresh(self._describe, 0)

    def _describe(self, number: int) -> None:
        about = self.query_one("#dialog-about", LineList)
        if number < len(self._entry.options):
            about.show(TextRows(_option_lines(self._entry.options[number], max(about.size.width - 1, 20))), 0)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Describe the option under the cursor."""
        if event.lines.id == "dialog-rows":
            self._describe(event.number)

    def _find(self, typed: str) -> None:
        self._is_valid(typed)

    def _is_valid(self, typed: str) -> bool:
        """Check the line, and show its error or the keys."""
        try:
            parse_step(typed)
        except OnnxJsonError as error:
            self.show_hint(Span(str(error), "bad"))
            return False
        self.show_hint(Span(self._hint, "quiet"))
        return True

    def _submit(self, typed: str) -> None:
        if self._is_valid(typed):
            self.dismiss(typed.strip())

    def _choose(self, number: int) -> None:
        self._insert()

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """Insert an option, cancel."""
        return {**super().keys(), "tab": self._insert}

    def _insert(self) -> None:
        """Insert the option under the cursor into the braces."""
        choice = self.choice_at(self.query_one(self.LIST, LineList).cursor)
        if choice is not None:
            self._put(with_option(self.query_one(Input).value, choice.key))

    def _put(self, text: str) -> None:
        field = self.query_one(Input)
        field.value = text
        field.cursor_position = len(text) - (2 if text.endswith("}*") else 1 if text.endswith("}") else 0)


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

"""A pass on the model of a session: chosen, run, shown as a diff and applied."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onnxjson.editing.declaration import Edit
from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.optimizing.passes import Pipeline, files_written, parse_step
from onnxjson.optimizing.passes.catalogue import Entry, entries
from onnxjson.optimizing.passes.user import EditPass
from onnxjson.rendering.pass_list import lines
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.rows.difference import Compared, Side, compared
from onnxjson_tui.screens.comparison import ComparisonScreen
from onnxjson_tui.shell.workbench import Workbench

if TYPE_CHECKING:
    from onnxjson.model.document import Model
    from onnxjson.optimizing.passes import NewFile


MORE: Final = "more"  # key of the choice that lists single rules, too


def pass_choices(*, all_parts: bool = False) -> list[Choice]:
    """Return all passes except edits, which have forms, and single rules of passes only if wanted."""
    choices = [
        Choice(each.name, visible(each.name, 200), visible(each.summary, 300), visible(each.problem or "", 300))
        for each in entries()
        if each.kind == "pass" or (all_parts and each.kind == "part")
    ]
    parts = sum(each.kind == "part" for each in entries())
    choices += [] if all_parts else [Choice(MORE, "more", f"{parts} single rules of these passes")]
    return sorted(choices, key=lambda choice: bool(choice.refused))


def first_spec(entry: Entry) -> str:
    """Return the line that runs a pass, with the options that it requires: ``cast{to=``."""
    needed = ",".join([f"{each.name}=" for each in entry.options if each.required])
    return f"{entry.name}{{{needed}" if needed else entry.name


def spec_offers(entry: Entry, typed: str) -> list[str]:
    """Return a line with each of the options that it lacks, whose value is still to be typed: ``onnxsim{fold=``."""
    head = typed.rstrip("*}")
    between = "{" if "{" not in head else "" if head.endswith("{") else ","
    return [f"{head}{between}{each.name}=" for each in entry.options if f"{each.name}=" not in head]


def spec_hint(entry: Entry, typed: str) -> str:
    """Describe the option that is being typed, or else name all options."""
    name = re.split("[{,]", typed)[-1].partition("=")[0]
    option = next((each for each in entry.options if each.name == name), None)
    if option is None:
        return f"options: {', '.join([each.name for each in entry.options]) or 'none'}; * at the end repeats the pass"
    return f"{name}: {option.description or ''} (accepts {', '.join(option.choices) or option.type})"


def closed_spec(typed: str) -> str:
    """Return a line with the brace that may be missing at its end."""
    return f"{typed.strip()}}}" if typed.count("{") > typed.count("}") else typed.strip()


def spec_mistake(typed: str) -> str:
    """Return the mistake in a line, or ""."""
    try:
        parse_step(closed_spec(typed))
    except OnnxJsonError as error:
        return str(error)
    return ""


class PassRun:
    """One pass on the model of a session, unsaved changes included."""

    def __init__(self, workbench: Workbench, spec: str) -> None:
        """Prepare the pass.

        Raises:
            ParameterError: `spec` is not a pass.
        """
        self.step = parse_step(spec)
        session = workbench.session
        self._workbench = workbench
        self._model, self._revision = session.model, session.revision
        self._side = Side(session.opened.name, session.model, session.opened.path, session=session)
        self._folder = session.opened.folder
        self._pipeline: Pipeline | None = None
        self._files: tuple[NewFile, ...] = ()

    def screen(self) -> ComparisonScreen:
        """Return the screen that runs the pass and shows the diff."""
        workbench, accept = self._workbench, None if self._workbench.session.readonly else self.accept
        doing, stop = f"running {visible(str(self.step), 200)}", self.stop
        return ComparisonScreen(
            doing, self.work, workbench.terminal, workbench=workbench, side="base", stop=stop, accept=accept
        )

    def work(self) -> Compared:
        """Run the pass and compare the models, in a thread.

        Raises:
            PassError: the pass crashed, hung, is not installed, or returned an invalid model.
            OnnxJsonError: external data is missing.
        """
        from onnxjson.optimizing.passes.big_constants import InternalizedModel

        inside = InternalizedModel(self._model, self._folder or Path())
        with Pipeline() as pipeline:
            self._pipeline = pipeline
            (outcome,) = pipeline.run(inside.model, [self.step], self._folder)
        after = inside.restored(outcome.after.model) if outcome.is_changed else self._model
        if self.step.subject.is_sandboxed:  # the others are edits, which correct types themselves
            after = self._workbench.session.with_types(after)
        self._files = outcome.files
        written = [f"applying it also writes {visible(str(each.path), None)}" for each in outcome.files]
        notes = [line.strip() for line in lines(outcome)]
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
            return (edit,) if self._workbench.session.preview(edit).model == model else ()
        except OnnxJsonError:
            return ()

    def accept(self, found: Compared) -> None:
        """Apply the result as one step, named by the command that repeats it."""
        workbench, title, model = self._workbench, f"optimize -p {self.step}", found.target.model
        if workbench.session.revision != self._revision:
            workbench.say("the model was changed since the pass ran; run it again", "bad")
            return

        def make() -> Any:
            preview = workbench.session.preview_model(model, title, self._edits(model))
            assert preview.patch is not None  # computed here, since it may take a while
            return preview

        def take(preview: Any) -> None:
            try:
                with files_written(self._files):
                    workbench.accept(preview)
            except OnnxJsonError as error:
                workbench.failed(error)

        workbench.preview(make, take)

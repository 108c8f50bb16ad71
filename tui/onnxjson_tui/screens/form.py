"""The form of an edit, built from its declaration, checked and previewed while the user types."""

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from onnxjson.editing.parameters import Parameter
from onnxjson.model.errors import BrokenNodesError, OnnxJsonError
from onnxjson.rendering.tables import Line, Span, clipped, shortened, wrapped
from onnxjson_tui.names.editable_names import item_line
from onnxjson_tui.names.form_filling import NEEDED, SLOW, Also, Feedback, Filling, edits_of, feedback
from onnxjson_tui.names.offers import Offers
from onnxjson_tui.rows.choices import Searchable
from onnxjson_tui.session.history import Preview
from onnxjson_tui.shell.dialogs import ConfirmScreen, Dialog, PickerScreen, TextScreen, key_spans
from onnxjson_tui.shell.jobs import error_text
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.fields import LINES, LineControl, LinesControl, OptionControl
from onnxjson_tui.widgets.lines import Bar, LineList, TextRows

_RESTS: Final = 0.2  # seconds without a key after which the form is checked

_LOOK: Final = "form"
_DO: Final = "edit"
_OTHERS: Final = 11  # lines of the form that are not fields
_STATE: Final = 2  # lines for the state of the form; more scroll
_ASKS: Final = 10  # typed characters from which escape asks whether to discard them
_TALL: Final = 30  # lines of a screen from which fields for lists have their full height
_LABEL: Final = 15  # columns of the labels

AnyControl = LineControl | LinesControl | OptionControl


class FormScreen(Dialog[Preview | None]):
    """Asks for the fields of an edit; returns the change, which the user has confirmed if it is at several places."""

    AUTO_FOCUS = None
    HAS_FIELD = True
    LIST = "#form-state"

    def __init__(
        self, workbench: Workbench, filling: Filling, *, focus: str = "", also: Also | None = None, title: str = ""
    ) -> None:
        """Prepare the form; `focus` is the field that gets the focus, `also` makes other edits of the same step."""
        super().__init__()
        self._workbench = workbench
        self._filling = filling
        self._first = focus
        self._also = also
        self._title = title or filling.title
        self._typed: dict[str, str] = {}  # initial contents of the fields
        self._look = Feedback("", "plain", {}, {})
        self._resting: Timer | None = None
        self._is_busy = False
        self._refused: dict[str, str] = {}  # texts that were refused because the edit breaks nodes
        self._offers = Offers(workbench.session, workbench.here)

    # What is on it

    def compose(self) -> ComposeResult:
        """Title, fields with their labels, help, preview, keys."""
        with Vertical(classes="dialog"):
            yield Bar(id="dialog-title")
            with VerticalScroll(id="form-fields", can_focus=False):
                for field in self._filling.fields:
                    with Horizontal(classes="form-row"):
                        yield Bar(classes="form-label", id=f"label-{field.name}")
                        yield self._control(field)
                    yield Bar(classes="form-mistake", id=f"mistake-{field.name}")
            yield LineList(id="form-help", has_cursor=False)
            yield LineList(id="form-state", has_cursor=False)
            yield Bar(id="dialog-hint")

    def _control(self, field: Parameter) -> AnyControl:
        filling = self._filling
        text, default = filling.texts[field.name], filling.default(field)
        options = filling.options(field)
        if options:
            return OptionControl(options, text, default, name=field.name)
        if filling.has_lines(field):
            return LinesControl(text, default, name=field.name)
        return LineControl(text, default, name=field.name)

    def on_mount(self) -> None:
        """Write the labels and focus a field."""
        summary = self._filling.help.partition("\n")[0]
        self.show_title(self._title, Span(f"  {summary}", "quiet"))
        for field in self._filling.fields:
            sign = "* " if field.required else "  "
            self.query_one(f"#label-{field.name}", Bar).show(
                (Span(sign, "changed"), Span(shortened(field.label, 12), "plain"))
            )
        for lines in self.query(LineList):
            lines.can_focus = False
        self._workbench.nodes.centre(0)  # The form covers the rows below.
        self._typed = self._texts()
        missing = [field.name for field in self._filling.missing()]
        wanted = self._first or next(iter([*missing, *[field.name for field in self._filling.fields]]), "")
        self._focus(wanted)
        self._rest()

    @property
    def _controls(self) -> list[AnyControl]:
        return [each for each in self.query(".form-row > *") if isinstance(each, AnyControl)]

    def _texts(self) -> dict[str, str]:
        return {each.name or "": each.field_text for each in self._controls}

    @property
    def _current(self) -> tuple[Parameter, AnyControl] | None:
        control = self.focused
        if not isinstance(control, AnyControl):
            return None
        return next(field for field in self._filling.fields if field.name == control.name), control

    def _focus(self, name: str) -> None:
        for control in self._controls:
            if control.name == name:
                control.focus()

    def on_unmount(self) -> None:
        """Show the types of the model again."""
        if self._workbench.is_attached and self._workbench.query("#nodes"):  # else the program ends
            self._workbench.foresee()

    def on_resize(self, event: events.Resize) -> None:
        """Give the fields the remaining height; they scroll."""
        self.query_one("#form-fields").styles.max_height = max(event.size.height - _OTHERS, 3)
        self._fit()

    def _fit(self) -> None:
        """Give fields for lists the lines that they need."""
        for control in self.query(LinesControl):
            control.fit(LINES if self.app.size.height >= _TALL else LINES - 1)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Show the help of the field."""
        self._write()

    # Checking

    def on_input_changed(self, event: Message) -> None:
        """Check the form when the user pauses."""
        event.stop()
        self._fit()
        self._rest()

    on_text_area_changed = on_option_control_changed = on_input_changed

    def _rest(self) -> None:
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(_RESTS, self._look_now)

    def _look_now(self) -> None:
        if self._is_busy or not self.is_attached:
            return
        filling = Filling(self._filling.edit_type, self._texts())
        if self._look.text.startswith(NEEDED) and not filling.missing():
            self._look = self._look._replace(text="")  # The check may take seconds.
            self._write()
        session, is_trying, also = self._workbench.session, not self._workbench.is_big, self._also
        self._workbench.jobs.start(
            _LOOK,
            "checking the form",
            lambda: feedback(session, filling, is_trying=is_trying, also=also),
            self._looked,
            self._failed,
        )

    def _looked(self, feedback: Feedback) -> None:
        if self.is_attached:
            self._look = feedback
            self._workbench.show_flow(feedback.flow)
            self._write()
            self.refresh()  # The list of nodes is behind the form.

    def _failed(self, error: BaseException) -> None:
        if self.is_attached:
            self._look = self._look._replace(text=error_text(error), tone="bad")
            self._write()

    def _write(self) -> None:
        """Show mistakes, help and preview."""
        width = max(self.query_one("#form-help", LineList).size.width, 40)
        for field in self._filling.fields:
            bar = self.query_one(f"#mistake-{field.name}", Bar)
            mistake = self._look.mistakes.get(field.name, "")
            note = self._look.notes.get(field.name, "")
            bar.display = bool(mistake or note)
            said_here = f"! {mistake}" if mistake else note
            bar.show((Span(clipped(said_here, max(width - _LABEL, 20)), "bad" if mistake else "quiet"),))
        current = self._current
        if current is not None:
            self.query_one("#form-help", LineList).show(TextRows(self._help(current[0], width)), 0)
        lines: list[Line] = [(Span(line, self._look.tone),) for line in wrapped(self._look.text, width, indent=0)]
        places = self._workbench.session.places
        lines += [
            (Span(f"{address.rpartition('/')[2]:>6} {text}", "bad" if is_wrong else "changed"),)
            for address, (text, is_wrong) in places.flow.items()
        ]
        self.query_one("#form-state", LineList).show(TextRows(lines), 0)
        self._hint()

    def _help(self, field: Parameter, width: int) -> list[Line]:
        """Return the help of a field, or its mistake if that needs several lines."""
        mistake = self._look.mistakes.get(field.name, "")
        if mistake and len(mistake) + 20 > width:
            return [(Span(line, "bad"),) for line in wrapped(mistake, width, indent=0)[:3]]
        fits = "" if field.shape.form in ("text", "flag", "choice") else f"  ({field.shape.fits})"
        default = self._filling.default(field)
        more = "" if not default or field.shape.form in ("flag", "choice") else f"  Default: {default}."
        lines = wrapped(f"{field.description}{fits}{more}", width, indent=0)[:2]
        text: list[Line] = [(Span(line),) for line in lines]
        if self._filling.may_be_empty(field):
            text.append((Span('Type "" for an empty text.', "quiet"),))
        return text

    def _hint(self) -> None:
        current = self._current
        keys = [("ctrl+s", "ok")]
        if current is not None and not isinstance(current[1], OptionControl):
            keys.append(("tab", "choose"))
        elif current is not None:
            keys.append(("left right", "choose"))
        keys += [("up down", "fields"), ("f1", "help"), ("esc", "cancel")]
        if len(self.query_one("#form-state", LineList).rows) > _STATE:
            keys.insert(1, ("pgdn", "more"))
        self.show_hint(*key_spans(keys), Span("* required", "changed"))

    # Keys

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """Go from field to field, choose a value, make the edit, show the help, cancel."""
        keys: dict[str, Callable[[], object]] = {
            **dict.fromkeys(("escape", "ctrl+c"), partial(self._work, self._cancel)),
            **dict.fromkeys(("enter", "ctrl+s"), self.submit),
            "shift+tab": partial(self._step, -1),
            "tab": partial(self._work, self._choose),
            "f1": self._show_help,
        }
        control = self.focused
        if not isinstance(control, LinesControl) or control.is_last:
            keys["down"] = partial(self._step, 1)
        if not isinstance(control, LinesControl) or control.is_first:
            keys["up"] = partial(self._step, -1)
        return keys

    def _work(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.run_worker(work(), group="form", exit_on_error=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Make the edit."""
        event.stop()
        self.submit()

    def _step(self, step: int) -> None:
        controls: list[Widget] = [*self._controls]
        if self.focused in controls:
            controls[(controls.index(self.focused) + step) % len(controls)].focus()

    async def _choose(self) -> None:
        """Offer values for the field; without any, go to the next field."""
        current = self._current
        if current is None:
            return
        field, control = current
        typed = control.line if isinstance(control, LinesControl) else control.field_text
        if isinstance(control, OptionControl):
            self._step(1)
            return
        filling = Filling(self._filling.edit_type, self._texts())
        offers = self._offers
        # Keys typed before the list appears must not submit the form.
        self._is_busy = True
        try:
            choices = await self._workbench.jobs.run(
                _LOOK, "looking for values", lambda: Searchable(offers.of(filling, field))
            )
        finally:
            self._is_busy = False
        if not choices:
            self._step(1)
            return
        chosen = choices[0].key if len(choices) == 1 and choices[0].key.startswith(typed) else None
        beginning = [each.key for each in choices if each.key.startswith(typed)] if typed else []
        if len(beginning) == 1 and beginning[0] != typed:
            chosen = beginning[0]
        if chosen is None:
            title = f"{field.label} of {self._filling.name}"
            start = "" if any(each.key == typed for each in choices) else typed
            chosen = await self.app.push_screen_wait(PickerScreen(title, choices, typed=start))
        if chosen is not None:
            self._take(field, control, chosen)
        control.focus()
        if chosen is not None and isinstance(control, LineControl) and field.role != "shape":
            self._step(1)

    def _take(self, field: Parameter, control: AnyControl, chosen: str) -> None:
        if isinstance(control, LinesControl):
            is_whole = field.shape.form == "list" or field.name == "attribute"
            control.put_line(item_line(chosen) if is_whole else f"{chosen}=")
        elif field.role == "shape":
            before = control.field_text.rpartition(",")[0]
            control.put(f"{before},{chosen}" if before else chosen)
        else:
            control.put(chosen)

    def _show_help(self) -> None:
        width = min(self.app.size.width - 8, 100)
        lines: list[str] = []
        for paragraph in self._filling.help.split("\n\n"):
            lines += [*wrapped(paragraph, width, indent=0), ""]
        for field in self._filling.fields:
            lines.append(f"{field.label}{'  *' if field.required else ''}")
            lines += [*wrapped(field.description, width, indent=2), ""]
        lines += ["As steps of a script:", *[f"  {each}" for each in self._filling.edit_type.examples]]
        self.app.push_screen(TextScreen(self._filling.title, lines))

    async def _cancel(self) -> None:
        now = self._texts()
        typed = sum(
            [abs(len(now[name]) - len(text)) or len(text) for name, text in self._typed.items() if now[name] != text]
        )
        if typed >= _ASKS:
            answer = await self.app.push_screen_wait(
                ConfirmScreen("Discard what you typed?", [("k", "keep typing", "keep"), ("d", "discard it", "drop")])
            )
            if answer != "drop":
                return
        self._workbench.jobs.drop(_LOOK)
        self.dismiss(None)

    # Submitting

    def submit(self) -> None:
        """Make the edit, or report the mistakes in the form."""
        if not self._is_busy:
            self._work(self._submit)

    async def _submit(self) -> None:
        filling = Filling(self._filling.edit_type, self._texts())
        if missing := filling.missing():
            self._complain(f"{NEEDED}{', '.join([field.label for field in missing])}", missing[0].name)
            return
        for field in filling.fields:
            if mistake := filling.mistake(field.name):
                self._look = self._look._replace(mistakes={**self._look.mistakes, field.name: mistake})
                self._complain(f"{field.label}: {mistake}", field.name)
                return
        self._is_busy = True
        try:
            preview = await self._preview(filling)
        except BrokenNodesError as error:
            self._refused = filling.texts
            self._complain(f"! {error}; enter makes the change anyway", "")
            return
        except (OnnxJsonError, OSError) as error:
            self._complain(str(error), "")
            return
        finally:
            self._is_busy = False
        is_made = preview.matches <= 1 or not preview.patch
        if not is_made:
            is_made = await self._workbench.agree(preview)
        if is_made:
            self._workbench.jobs.drop(_LOOK)
            self.dismiss(preview)

    async def _preview(self, filling: Filling) -> Preview:
        session, also = self._workbench.session, self._also

        def make() -> Preview:
            return session.preview(*edits_of(session, filling, also), force=filling.texts == self._refused)

        if self._workbench.is_big or filling.name in SLOW:
            self._look = self._look._replace(text="computing the changes ...", tone="changed")
            self._write()
            return await self._workbench.jobs.run(_DO, "computing the changes", make)
        return make()

    def _complain(self, text: str, name: str) -> None:
        self._look = self._look._replace(text=text, tone="bad")
        self._write()
        if name:
            self._focus(name)

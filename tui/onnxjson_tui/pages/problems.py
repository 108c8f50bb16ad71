"""The page of problems: findings of the reader, of the structure check, and of onnx."""

import re
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from onnxjson.codecs.reading.exact_reader import COMMENTS_CODE
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Model
from onnxjson.model.errors import Finding, OnnxJsonError
from onnxjson.model.operator_checks import check_model
from onnxjson.model.walking import stored_tensors
from onnxjson.rendering.tables import Line, Span, Style, cells, padded, shortened, wrapped
from onnxjson.rendering.values import weights
from onnxjson.running.checking import onnx_findings
from onnxjson.running.worker import Worker
from onnxjson_tui.shell.dialogs import TextScreen
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.drawer import Drawer, Page
from onnxjson_tui.widgets.lines import Rows, TextRows, Tone

RESTED: Final = 2.0  # seconds without a change after which onnx checks the model
STRUCTURE_RESTED: Final = 0.3  # seconds without a change after which the structure is checked

SMALL_NODES: Final = 3_000
SMALL_BYTES: Final = 50_000_000  # Nodes, and bytes of weights, up to which onnx checks the model without a request
_CHECK: Final = "check"  # the group of the job that waits for onnx

Origin = Literal["reader", "structure", "onnx"]

_ORIGINS: Final[tuple[Origin, ...]] = ("reader", "structure", "onnx")

_NODE: Final = re.compile(r"/.*/node/[0-9]+")  # the address of the innermost node of an element

_OF_FILE: Final = frozenset({COMMENTS_CODE})
"""Codes of findings about the file, which changes of the model do not affect."""

_STALE: Final = ", found before the last change"


class _Check(NamedTuple):
    """Findings of one origin, and the revision of the model that they describe."""

    findings: tuple[Finding, ...]
    revision: int


class ProblemsPage(Page[Workbench]):
    """Lists errors first; findings of an older revision are marked."""

    name = "problems"
    title = "Problems"
    hints = (("enter", "go there"), ("C", "run onnx"), ("space", "unabridged"))

    def __init__(self, workbench: Workbench, drawer: Drawer) -> None:
        super().__init__(workbench, drawer)
        session = workbench.session
        self._checks: dict[Origin, _Check] = {}
        if session.findings:
            self._checks["reader"] = _Check(session.findings, session.revision)
        self._worker: Worker | None = None
        self._trouble = ""
        self._timers: list[Any] = []
        self._checked_revision = -1  # the revision that onnx checked last
        self._listed: list[tuple[Finding, bool]] = []
        self._list()
        workbench.call_after_refresh(self._look)

    # What is shown

    @property
    def note(self) -> str:
        """The number of errors and warnings, without outdated findings."""
        current = [finding for finding, is_stale in self._everything() if not is_stale or finding.code in _OF_FILE]
        parts = [
            counted(number, severity)
            for severity in ("error", "warning")
            if (number := sum(finding.severity == severity for finding in current))
        ]
        return " ".join(parts)

    @property
    def tone(self) -> Tone:
        return "bad" if "error" in self.note else "changed"

    @property
    def rows(self) -> Rows:
        """The findings, and the state of the checks."""
        return ProblemRows(self._listed, self._state())

    def shown(self) -> None:
        """Check a small model with onnx."""
        self._look()
        if self._is_cheap and self._checked_revision != self.workbench.session.revision and not self._is_checking:
            self._later(RESTED / 4, self._ask_by_itself)

    def model_changed(self) -> None:
        """Mark the findings as old; check the structure after a pause, and with onnx after a longer one."""
        for timer in self._timers:
            timer.stop()
        self._timers.clear()
        self._trouble = ""
        self._list()
        self.redraw()
        self._later(STRUCTURE_RESTED, self._look)
        if "onnx" in self._checks or self.workbench.drawer.page is self:
            self._later(RESTED, self._ask_by_itself)

    def choose(self, number: int) -> None:
        """Go to the element of a finding."""
        if number >= len(self._listed):
            return
        finding, _ = self._listed[number]
        if not finding.address:
            self.workbench.say(finding.message, "changed")
        elif self.workbench.go(finding.address):
            self.workbench.focus_pane("nodes")

    # Requests

    def more(self) -> None:
        """Show the finding under the cursor unabridged."""
        number = self.workbench.drawer.lines.cursor
        if number >= len(self._listed):
            return
        finding, is_stale = self._listed[number]
        width = max(min(self.workbench.size.width - 8, 104), 40)
        lines: list[Line] = [(Span(each),) for each in wrapped(finding.message, width, indent=0)]
        if finding.hint:
            lines += [(), *[(Span(each, "good"),) for each in wrapped(finding.hint, width, indent=0)]]
        lines.append(())
        if finding.line:
            lines.append((Span(f"line {finding.line}, column {finding.column}", "quiet"),))
        if finding.address:
            lines.append((Span(f"at {visible(finding.address, 1000)}", "quiet"),))
        lines.append((Span(f"code {visible(finding.code)}" + (_STALE if is_stale else ""), "quiet"),))
        self.workbench.app.push_screen(TextScreen(finding.severity, lines))

    def run_onnx_checks(self) -> None:
        """Run the checker and the shape inference of onnx in a separate process."""
        session = self.workbench.session
        model, folder, revision = session.model, session.opened.folder, session.revision
        self._checked_revision, worker = revision, Worker()
        job = self.workbench.jobs.start(
            _CHECK,
            "checking with onnx",
            lambda: _onnx_findings(worker, model, folder),
            lambda found: self._take("onnx", found, revision),
            self._failed,
        )
        job.dropped = self._dropped  # An earlier check ends here, not by escape.
        self._worker, self._trouble = worker, ""
        self.redraw()

    @property
    def _is_checking(self) -> bool:
        return self.workbench.jobs.is_running(_CHECK)

    # Checks

    def _later(self, seconds: float, what: Any) -> None:
        self._timers.append(self.workbench.set_timer(seconds, what))

    def _look(self) -> None:
        """Check the structure of the model, in a thread if it is big."""
        session = self.workbench.session
        revision = session.revision
        known = self._checks.get("structure")
        if known is not None and known.revision == revision:
            return
        self.workbench.compute(
            "structure", "checking the structure", session.check, lambda found: self._take("structure", found, revision)
        )

    @property
    def _is_cheap(self) -> bool:
        index = self.workbench.session.index
        if sum(len(scope.graph.node) for scope in index.scopes) > SMALL_NODES:
            return False
        return weights([each.tensor for each in stored_tensors(index)]).bytes <= SMALL_BYTES

    def _ask_by_itself(self) -> None:
        if self._is_cheap and self._checked_revision != self.workbench.session.revision:
            self.run_onnx_checks()

    def _failed(self, error: BaseException) -> None:
        if not isinstance(error, OnnxJsonError):
            self.workbench.failed(error)
        else:
            self._trouble = visible(str(error), 1000)
        self.redraw()

    def _dropped(self) -> None:
        if self._worker is not None:
            self._worker.interrupt()
        self._trouble = "the check with onnx was cancelled; C starts it again"
        self.redraw()

    def _take(self, origin: Origin, found: tuple[Finding, ...], revision: int) -> None:
        self._checks[origin] = _Check(found, revision)
        self._list()
        self.redraw()
        self._flag()
        self.workbench.draw_bars()

    def _flag(self) -> None:
        """Mark the nodes with findings in the list of nodes."""
        flagged: dict[str, str] = {}
        for finding, is_stale in self._everything():
            place = _NODE.match(finding.address or "")
            if place is not None and not is_stale and flagged.get(place[0]) != "error":
                flagged[place[0]] = finding.severity
        if flagged != self.workbench.session.places.flagged:
            self.workbench.session.places.flagged = flagged
            self.workbench.nodes.refresh()

    def _everything(self) -> list[tuple[Finding, bool]]:
        revision = self.workbench.session.revision
        findings = [
            (finding, check.revision != revision)
            for origin in _ORIGINS
            if (check := self._checks.get(origin)) is not None
            for finding in check.findings
        ]
        # Duplicates are merged.
        unique = {
            (finding.code, finding.address, finding.message): (finding, is_stale) for finding, is_stale in findings
        }
        return sorted(unique.values(), key=lambda each: (each[0].severity != "error", each[1]))

    def _list(self) -> None:
        self._listed = self._everything()

    def _state(self) -> list[Line]:
        lines: list[Line] = []
        listed, revision = self._listed, self.workbench.session.revision
        if "structure" not in self._checks:
            lines.append((Span(" checking the structure ...", "quiet"),))
        elif not listed:
            lines.append((Span(" the structure is valid", "good"),))
        checked = self._checks.get("onnx")
        if self._is_checking:
            lines.append((Span(" checking with onnx ...   esc cancels", "changed"),))
        elif self._trouble:
            lines.append((Span(f" {self._trouble}", "bad"),))
        elif checked is None:
            lines.append((Span(" not checked with onnx; C runs its checker and shape inference", "quiet"),))
        elif checked.revision != revision:
            lines.append((Span(" the model changed since the check with onnx; C checks again", "quiet"),))
        elif not checked.findings:
            lines.append((Span(" onnx finds nothing else" if listed else " onnx finds no problems", "good"),))
        return lines


class ProblemRows:
    """Rows of findings, and below them the state of the checks."""

    def __init__(self, findings: list[tuple[Finding, bool]], state: list[Line]) -> None:
        self._findings = findings
        self._state = TextRows(state)

    def __len__(self) -> int:
        return len(self._findings) + len(self._state)

    def line(self, number: int, width: int) -> Line:
        """Return severity, place and message; old findings are marked."""
        if number >= len(self._findings):
            return self._state.line(number - len(self._findings), width)
        finding, is_stale = self._findings[number]
        old = "old " if is_stale else ""
        place = f"{finding.line}:{finding.column}" if finding.line else visible(finding.address, 300)
        room = max(width - 10 - len(old), 10)
        place = shortened(place, max(room // 3, 8)) if place else ""
        text = finding.message + (f"; {finding.hint}" if finding.hint else "")
        text = shortened(visible(text, 2000), max(room - cells(place) - (2 if place else 0), 8))
        tone: Style = "quiet" if is_stale else "bad" if finding.severity == "error" else "changed"
        severity = Span(padded(f" {finding.severity}", 10), tone)
        message = Span(text, "quiet" if is_stale else "plain")
        return (severity, Span(old, "quiet"), Span(f"{place}  " if place else "", "quiet"), message)


def _onnx_findings(worker: Worker, model: Model, folder: Path | None) -> tuple[Finding, ...]:
    """Return the findings of the checker and the shape inference of onnx that do not follow from known errors.

    Raises:
        WorkerError: they crashed, hung, or are not installed.
        LimitError: the model is too big for them.
        WeightsMissingError: weights are missing.
    """
    with worker:
        found = onnx_findings(worker, model, check_model(model), folder=folder)
    return tuple([each for each in found if each.code.startswith("check-")])

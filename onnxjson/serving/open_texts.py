"""The texts that an editor has open: lines and columns as the protocol counts them, and what was read and checked.

A short text is read when something about it is asked. A long one is checked in the sandboxed process, which a keystroke
ends, and then read here in a thread. Meanwhile the version that was read last, and the changes since, answer what is
asked at the cursor; what is asked about the whole text waits. Types are inferred last, in the process of the edits.
"""

import asyncio
import gc
import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlparse

from lsprotocol import types
from pygls.workspace import TextDocument

from onnxjson.codecs.reading.tree import Key
from onnxjson.model.display import visible
from onnxjson.model.errors import Finding, WorkerError
from onnxjson.running.checking import UNFINISHED
from onnxjson.running.worker import Worker
from onnxjson.running.worker_protocol import Limits
from onnxjson.serving.edited_text import LARGEST, EditedText
from onnxjson.serving.offers import Replacement
from onnxjson.serving.text_names import Named, end_of

if TYPE_CHECKING:
    import numpy as np
    from pygls.lsp.server import LanguageServer

_UNITS: Final = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""How the protocol names what columns count; the codec, and its bytes of one."""


_LONG_LINE: Final = 2_000
"""Characters of a line; in longer lines, columns are not counted again each time."""

_DELAY: Final = 0.2
"""Seconds without a keystroke after which a text is checked."""

_LONG: Final = 30_000
"""Characters from which a text is read in the background."""

_LIMITS: Final = Limits(memory=16 << 30, processor_seconds=600, wall_seconds=600.0)

_MOST_FINDINGS: Final = 1_000


class Changed(NamedTuple):
    """What differs between an earlier version of a text and this one."""

    start: int
    """The first offset that may differ."""
    old_end: int
    """The offset in the earlier version from which on both are the same."""
    new_end: int
    """The same offset in this version."""

    def then(self, start: int, end: int, length: int) -> "Changed":
        """Return the difference after the characters from `start` to `end` were replaced by `length` others."""
        last = max(self.new_end, end)
        return Changed(min(self.start, start), self.old_end + last - self.new_end, last + length - (end - start))


class OpenDocument(TextDocument):
    r"""An open text; only \n, \r\n and \r end a line, as the protocol defines. Its offsets are in characters."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._starts = _line_starts(self.source)
        self._extra: np.ndarray[Any, np.dtype[np.int64]] | None = None
        self.changed: Changed | None = None
        """What changed since the version that was read."""

    @property
    def source(self) -> str:
        """The text; of a document that is not open, that of its file, or none if it cannot be read."""
        try:
            return super().source
        except (OSError, ValueError):
            return ""

    def apply_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        """Replace a range, or everything."""
        old, text, self._extra = self.source, change.text, None
        if not isinstance(change, types.TextDocumentContentChangePartial):
            self._source, self._starts = text, _line_starts(text)
            before = len(old) if self.changed is None else self.changed.old_end + len(old) - self.changed.new_end
            self.changed = Changed(0, before, len(text))
            return
        start, end = (self.offset_at_position(each) for each in (change.range.start, change.range.end))
        self._source = "".join((old[:start], text, old[end:]))
        self.changed = (self.changed or Changed(start, end, end)).then(start, end, len(text))
        # The lines of the change are counted again, with those around it, since \r and \n may have met or parted.
        first, after = max(0, self._line(start) - 1), min(self._line(end) + 2, len(self._starts))
        begin, grown = int(self._starts[first]), len(text) - (end - start)
        is_last = after == len(self._starts)
        stop = len(self._source) if is_last else int(self._starts[after]) + grown
        within = _line_starts(self._source[begin:stop]) + begin
        within = within if is_last else within[within < stop]
        self._starts[after:] += grown
        if len(within) == after - first:
            self._starts[first:after] = within
        else:
            import numpy as np

            self._starts = np.concatenate([self._starts[:first], within, self._starts[after:]])

    def offset_at_position(self, client_position: types.Position) -> int:
        """The offset of a position; what is beyond the end of a line or text counts as there."""
        if client_position.line >= len(self._starts):
            return len(self.source)
        start = int(self._starts[client_position.line])
        end = int(self._starts[client_position.line + 1]) if client_position.line + 1 < len(self._starts) else None
        line = self.source[start:end].rstrip("\r\n")
        if not line.isascii():
            codec, width = self._codec()
            line = line.encode(codec, "surrogatepass")[: client_position.character * width].decode(codec, "replace")
            return start + len(line)
        return start + min(client_position.character, len(line))

    def position_at(self, offset: int) -> types.Position:
        """The position of an offset."""
        line = self._line(offset)
        start = int(self._starts[line])
        if self.source.isascii():
            return types.Position(line, offset - start)
        if offset - start > _LONG_LINE:
            first, last = self._wide().searchsorted([start, offset])
            return types.Position(line, offset - start + int(last - first))
        before = self.source[start:offset]
        codec, width = self._codec()
        return types.Position(line, len(before.encode(codec, "surrogatepass")) // width)

    def _wide(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Offsets of characters that are wider than one column unit, repeated for each additional unit."""
        if self._extra is None:
            import numpy as np

            points = np.frombuffer(self.source.encode("utf-32-le", "surrogatepass"), np.uint32)
            above = {"utf-8": (0x7F, 0x7FF, 0xFFFF), "utf-16-le": (0xFFFF,)}.get(self._codec()[0], ())
            found = [np.flatnonzero(points > each) for each in above]
            self._extra = np.sort(np.concatenate([*found, np.zeros(0, np.int64)]))
        return self._extra

    def offset_of(self, line: int, column: int) -> int:
        r"""The offset of a line and column of a finding, from 1; there only \n ends a line. 0 without them."""
        starts = self._starts if "\r" not in self.source else _line_starts(self.source.replace("\r", " "))
        return min(int(starts[min(max(line, 1), len(starts)) - 1]) + max(column - 1, 0), len(self.source))

    def _line(self, offset: int) -> int:
        return int(self._starts.searchsorted(offset, "right")) - 1

    def _codec(self) -> tuple[str, int]:
        return _UNITS[str(getattr(self.position_codec.encoding, "value", self.position_codec.encoding))]


def _line_starts(text: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The offset of each line."""
    import numpy as np

    is_plain = text.isascii()
    data = text.encode() if is_plain else text.encode("utf-32-le", "surrogatepass")
    units = np.frombuffer(data, np.uint8 if is_plain else np.uint32)
    is_end = units == ord("\n")
    is_return = units == ord("\r")
    is_end |= is_return & ~np.append(is_end[1:], False) if is_return.any() else is_return
    return np.concatenate([[0], np.flatnonzero(is_end) + 1])


class TypedText(EditedText):
    """A long text that was edited since it was read; answers at the cursor come from both versions.

    Names before the change keep their offsets; the text from there to the cursor is read again.
    """

    def __init__(self, text: str, read: EditedText, change: Changed) -> None:
        self.text, self.path, self.file, self.model, self.index = text, read.path, read.file, read.model, read.index
        self.is_valid, self.is_other = False, read.is_other
        self._read, self._change = read, change

    @property
    def defined(self) -> dict[tuple[Key, ...], list[Named]]:
        """Those of the version that was read."""
        return self._read.defined

    def alphabet(self, graph: tuple[Key, ...]) -> list[int]:
        """That of the version that was read."""
        return self._read.alphabet(graph)

    def names(self, is_stale: Callable[[], bool] = lambda: False) -> list[Named]:
        """Those of the version that was read; `_before` uses only those before the change."""
        return self._read.names(is_stale)

    def _before(self, offset: int) -> int:
        return bisect_left(self.names(), min(offset + 1, self._change.start), key=lambda each: each.start)

    def at(self, offset: int) -> tuple[int, int, tuple[Key, ...], bool]:
        if offset <= self._change.new_end:
            return super().at(offset)
        moved = self._change.new_end - self._change.old_end
        start, end, path, is_key = self._read.at(offset - moved)
        return start + moved, end + moved, path, is_key

    def same_name(self, named: Named) -> list[Named]:
        """The places outside of the change."""
        change, places = self._change, self._read.same_name(named)
        moved = change.new_end - change.old_end
        before = [each for each in places if each.end <= change.start]
        after = [each for each in places if each.start >= change.old_end]
        return [*before, *[each._replace(start=each.start + moved, end=each.end + moved) for each in after]]


@dataclass
class _Open:
    """What is known about one text."""

    read: EditedText | None = None
    """The version that was read last."""
    version: int | None = None
    task: "asyncio.Task[None] | None" = None
    """Checks and reads the present version."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when that version is no longer the present one."""


class OpenTexts:
    """The open texts, by their URIs."""

    def __init__(self, server: "LanguageServer") -> None:
        self._server = server
        self._open: dict[str, _Open] = {}
        self._inferring: asyncio.Task[list[Finding]] | None = None

    def document(self, uri: str) -> OpenDocument:
        """The document of the editor; one that is not open is read from its file."""
        found = self._server.workspace.get_text_document(uri)
        return found if isinstance(found, OpenDocument) else OpenDocument(uri, found.source)

    def start(self, uri: str, delay: float = _DELAY) -> None:
        """Check a text after a pause in typing; a check of an earlier version ends."""
        known = self.forget(uri)
        self._open[uri] = _Open(known.read, known.version)
        self._open[uri].task = asyncio.create_task(self._follow(uri, self._open[uri], delay))

    def forget(self, uri: str) -> _Open:
        """End the work on a text that was changed or closed; return what was known."""
        known = self._open.pop(uri, None) or _Open()
        known.ended.set()
        if known.task is not None:
            known.task.cancel()
        return known

    async def _follow(self, uri: str, known: _Open, delay: float) -> None:
        await asyncio.sleep(delay)
        document = self.document(uri)
        if not _is_long(document):
            text = await self._read(document, known, is_read=True)
            findings: Sequence[Finding] = await asyncio.to_thread(text.findings)
            self._report(document, findings)
        else:
            first = None if known.read is not None else asyncio.create_task(self._read(document, known, is_read=True))
            has_model, findings = await self._check(document.source)
            self._report(document, findings)
            text = await (first or self._read(document, known, is_read=has_model))
        if all(finding.severity != "error" for finding in findings):
            await self._infer(document, text, findings)

    async def _infer(self, document: OpenDocument, text: EditedText, findings: Sequence[Finding]) -> None:
        """Infer types and shapes in the sandbox, after those of an earlier version; report conflicts."""
        while self._inferring is not None and not self._inferring.done():
            await asyncio.wait([self._inferring])
        self._inferring = asyncio.create_task(asyncio.to_thread(text.infer))
        if wrong := await asyncio.shield(self._inferring):
            self._report(document, sorted([*findings, *wrong], key=lambda each: (each.line, each.column)))
        workspace = self._server.client_capabilities.workspace
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            self._server.workspace_inlay_hint_refresh(None)

    def _report(self, document: OpenDocument, findings: Sequence[Finding]) -> None:
        diagnostics, text = [], document.source
        for finding in findings[:_MOST_FINDINGS]:
            begin = document.offset_of(finding.line, finding.column)
            end = end_of(text, begin) if text[begin : begin + 1] == '"' else min(begin + 1, len(text))
            diagnostics.append(
                types.Diagnostic(
                    types.Range(document.position_at(begin), document.position_at(end)),
                    visible(f"{finding.message}; {finding.hint}" if finding.hint else finding.message, None),
                    severity=types.DiagnosticSeverity[finding.severity.capitalize()],
                    code=finding.code,
                    source="onnxjson",
                )
            )
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(document.uri, diagnostics, document.version)
        )

    async def _check(self, text: str) -> tuple[bool, Sequence[Finding]]:
        """Check a long text in the sandboxed process; cancelling this ends the check there."""
        worker, data = Worker(_LIMITS), text.encode("utf-8", "surrogatepass")

        def check() -> tuple[bool, Sequence[Finding]]:
            with worker:
                return worker.check_text(data)

        try:
            return await asyncio.to_thread(check)
        except WorkerError as error:
            return False, [Finding(severity="warning", code=UNFINISHED, message=str(error), line=1, column=1)]
        except asyncio.CancelledError:
            worker.interrupt()
            raise

    async def _read(self, document: OpenDocument, known: _Open, *, is_read: bool) -> EditedText:
        """Read a text in a thread, with what is asked about it most."""
        source, version = document.source, document.version

        def read() -> EditedText:
            gc.unfreeze()  # earlier versions can be collected
            text = EditedText(source, path_of_uri(document.uri), known.read, is_read=is_read)
            if not known.ended.is_set() and text.names(known.ended.is_set):
                _ = text.places, [text.alphabet(graph) for graph in text.defined]
                if text.index.main is not None:
                    _ = text.index.main.producers, text.index.main.types
            if _is_long(document):
                gc.freeze()  # visiting the names of 40 MB takes more than a second, in which no keystroke is answered
            return text

        text = await asyncio.to_thread(read)
        known.read, known.version, document.changed = text, version, None
        return text

    def at_cursor(self, uri: str) -> EditedText:
        """The present version, for what is asked at one place; a long one as far as it was read."""
        document, known = self.document(uri), self._open.setdefault(uri, _Open())
        if not _is_long(document):
            if known.read is None or known.version != document.version or document.changed is not None:
                known.read = EditedText(document.source, path_of_uri(document.uri), known.read)
                known.version, document.changed = document.version, None
            return known.read
        if known.read is None:
            return EditedText("", path_of_uri(document.uri))
        return known.read if document.changed is None else TypedText(document.source, known.read, document.changed)

    async def whole(self, uri: str) -> EditedText:
        """The present version, read; while a long one is read, this waits, and is cancelled when it changes."""
        known, document = self._open.get(uri), self.document(uri)
        is_stale = known is not None and (known.read is None or document.changed is not None)
        if known is not None and known.task is not None and is_stale and _is_long(document):
            await asyncio.shield(known.task)
        return self.at_cursor(uri)

    def position(self, uri: str, offset: int) -> types.Position:
        """The position of an offset in the present version."""
        return self.document(uri).position_at(offset)

    def offset(self, uri: str, position: types.Position) -> int:
        """The offset of a position in the present version."""
        return self.document(uri).offset_at_position(position)

    def range(self, uri: str, start: int, end: int) -> types.Range:
        """The range between two offsets."""
        return types.Range(self.position(uri, start), self.position(uri, end))


class Answers:
    """The open texts, and their places as the protocol writes them."""

    def __init__(self, server: "LanguageServer") -> None:
        self.server = server
        self.texts = OpenTexts(server)

    def _place(self, uri: str, named: Named) -> Any:
        return types.Location(uri, self.texts.range(uri, named.start + 1, named.end - 1))

    def _edits(self, uri: str, found: Sequence[Replacement]) -> list[Any]:
        return [types.TextEdit(self.texts.range(uri, each.start, each.end), each.text) for each in found]

    def _edit(self, uri: str, found: Sequence[Replacement]) -> Any:
        return types.WorkspaceEdit(changes={uri: self._edits(uri, found)})


def _is_long(document: OpenDocument) -> bool:
    """Whether a text is read in the background; one that is too long is not read at all."""
    return _LONG < len(document.source) <= LARGEST


def path_of_uri(uri: str) -> Path:
    """The path of a file."""
    return Path(unquote(urlparse(uri).path))

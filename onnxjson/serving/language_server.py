"""The language server for model texts in editors, on pygls (extra ``lsp``)."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from onnxjson.model.display import visible
from onnxjson.model.errors import MissingInputError, OnnxJsonError
from onnxjson.model.types import format_type
from onnxjson.serving.edited_text import EditedText, Named, Replacement

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

_DELAY = 0.2
"""Seconds without a keystroke after which a text is checked."""

_MOST_FINDINGS = 1_000
_MOST_OFFERS = 500


def server() -> "LanguageServer":
    """Return the language server.

    Raises:
        MissingInputError: the extra is not installed.
    """
    try:
        from pygls.lsp.server import LanguageServer
    except ImportError as error:
        raise MissingInputError("the package pygls is not installed: pip install 'pygls>=2.1'") from error
    from importlib.metadata import version

    made = LanguageServer("onnxjson", version("onnxjson"))
    _Features(made).register()
    return made


class _Features:
    """What the server answers; the texts that are open, each in its last version."""

    def __init__(self, made: "LanguageServer") -> None:
        from lsprotocol import types

        self.server = made
        self.types = types
        self.texts: dict[str, tuple[int | None, EditedText]] = {}
        self.waiting: dict[str, asyncio.Task[None]] = {}

    def register(self) -> None:
        """Register the functions that answer requests."""
        lsp = self.types
        options = lsp.CompletionOptions(trigger_characters=['"'])
        for method, function, given in (
            (lsp.TEXT_DOCUMENT_DID_OPEN, self.opened, None),
            (lsp.TEXT_DOCUMENT_DID_CHANGE, self.changed, None),
            (lsp.TEXT_DOCUMENT_DID_CLOSE, self.closed, None),
            (lsp.TEXT_DOCUMENT_HOVER, self.hover, None),
            (lsp.TEXT_DOCUMENT_COMPLETION, self.completion, options),
            (lsp.TEXT_DOCUMENT_DEFINITION, self.definition, None),
            (lsp.TEXT_DOCUMENT_REFERENCES, self.references, None),
            (lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, self.highlight, None),
            (lsp.TEXT_DOCUMENT_PREPARE_RENAME, self.prepare_rename, None),
            (lsp.TEXT_DOCUMENT_RENAME, self.rename, lsp.RenameOptions(prepare_provider=True)),
            (lsp.TEXT_DOCUMENT_FORMATTING, self.formatting, None),
            (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, self.symbols, None),
            (lsp.TEXT_DOCUMENT_INLAY_HINT, self.hints, None),
            (lsp.TEXT_DOCUMENT_CODE_ACTION, self.actions, None),
        ):
            self.server.feature(method, given)(_plain(function))

    def _text(self, uri: str) -> EditedText:
        """The present version of a text."""
        document = self.server.workspace.get_text_document(uri)
        known = self.texts.get(uri)
        if known is None or known[0] != document.version or known[1].text != document.source:
            path = Path(unquote(urlparse(uri).path))
            known = document.version, EditedText(document.source, path, None if known is None else known[1])
            self.texts[uri] = known
        return known[1]

    def _offset(self, params: Any) -> int:
        document = self.server.workspace.get_text_document(params.text_document.uri)
        return int(document.offset_at_position(params.position))

    def _position(self, uri: str, offset: int) -> Any:
        document = self.server.workspace.get_text_document(uri)
        line, column = self._text(uri).place(offset)
        start = document.source[offset - column : offset]
        return self.types.Position(line, document.position_codec.client_num_units(start))

    def _range(self, uri: str, start: int, end: int) -> Any:
        return self.types.Range(self._position(uri, start), self._position(uri, end))

    async def opened(self, params: Any) -> None:
        """Check a text that was opened."""
        await self._check(params.text_document.uri)

    async def changed(self, params: Any) -> None:
        """Check a text after a pause in typing; a check that still waits is cancelled."""
        uri = params.text_document.uri
        if (waiting := self.waiting.pop(uri, None)) is not None:
            waiting.cancel()
        self.waiting[uri] = asyncio.create_task(self._check_later(uri))

    async def _check_later(self, uri: str) -> None:
        await asyncio.sleep(_DELAY)
        await self._check(uri)

    async def _check(self, uri: str) -> None:
        document = self.server.workspace.get_text_document(uri)
        version = document.version
        text = self._text(uri)
        found = await asyncio.to_thread(text.findings)
        if document.version != version:
            return
        lsp, diagnostics = self.types, []
        for each in found[:_MOST_FINDINGS]:
            begin = text.offset(each.line, each.column)
            end = text.end_of(begin) if text.text[begin : begin + 1] == '"' else min(begin + 1, len(text.text))
            diagnostics.append(
                lsp.Diagnostic(
                    self._range(uri, begin, end),
                    visible(f"{each.message}; {each.hint}" if each.hint else each.message, None),
                    severity=lsp.DiagnosticSeverity.Error
                    if each.severity == "error"
                    else lsp.DiagnosticSeverity.Warning,
                    code=each.code,
                    source="onnxjson",
                )
            )
        self.server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, version))

    def closed(self, params: Any) -> None:
        """Forget a text."""
        self.texts.pop(params.text_document.uri, None)

    def hover(self, params: Any) -> Any:
        """Describe the element as `onnxjson show` does."""
        lines = self._text(params.text_document.uri).description(self._offset(params))
        if not lines:
            return None
        lsp = self.types
        # Plain text: names in a model are never markup.
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.PlainText, "\n".join(lines)))

    def completion(self, params: Any) -> Any:
        """Operators, attributes, values and types that fit."""
        lsp = self.types
        kinds = {
            "operator": lsp.CompletionItemKind.Function,
            "attribute": lsp.CompletionItemKind.Property,
            "value": lsp.CompletionItemKind.Variable,
            "type": lsp.CompletionItemKind.TypeParameter,
        }
        offers = self._text(params.text_document.uri).offers(self._offset(params))
        items = [lsp.CompletionItem(name, kind=kinds[kind]) for name, kind in offers[:_MOST_OFFERS]]
        return lsp.CompletionList(is_incomplete=len(offers) > _MOST_OFFERS, items=items)

    def _named(self, params: Any) -> tuple[EditedText, Named | None]:
        text = self._text(params.text_document.uri)
        return text, text.name_at(self._offset(params))

    def _place(self, uri: str, text: EditedText, named: Named) -> Any:
        return self.types.Location(uri, self._range(uri, named.start + 1, text.end_of(named.start) - 1))

    def definition(self, params: Any) -> Any:
        """The definition of a value."""
        text, named = self._named(params)
        origin = None if named is None else text.definition(named)
        return None if origin is None else self._place(params.text_document.uri, text, origin)

    def references(self, params: Any) -> Any:
        """All places of a name."""
        text, named = self._named(params)
        uri = params.text_document.uri
        return [] if named is None else [self._place(uri, text, each) for each in text.same_name(named)]

    def highlight(self, params: Any) -> Any:
        """The same, in the open text."""
        return [self.types.DocumentHighlight(each.range) for each in self.references(params)]

    def prepare_rename(self, params: Any) -> Any:
        """The name that would be changed."""
        text, named = self._named(params)
        if named is None or named.kind not in ("value", "node") or not text.is_valid:
            return None
        return self._range(params.text_document.uri, named.start + 1, text.end_of(named.start) - 1)

    def rename(self, params: Any) -> Any:
        """What the edit `rename` changes; what it refuses is an error of the editor."""
        from pygls.exceptions import JsonRpcInvalidParams

        text, named = self._named(params)
        if named is None:
            return None
        try:
            found = text.renamed(named, params.new_name)
        except OnnxJsonError as error:
            raise JsonRpcInvalidParams(str(error)) from error
        return self.types.WorkspaceEdit(
            changes={params.text_document.uri: self._edits(params.text_document.uri, found)}
        )

    def _edits(self, uri: str, found: list[Replacement]) -> list[Any]:
        return [self.types.TextEdit(self._range(uri, each.start, each.end), each.text) for each in found]

    def formatting(self, params: Any) -> Any:
        """The canonical form, as `onnxjson fmt` writes it; a text with errors is not changed."""
        return self._edits(params.text_document.uri, self._text(params.text_document.uri).formatted())

    def symbols(self, params: Any) -> Any:
        """Nodes, inputs, outputs and constants."""
        lsp, uri = self.types, params.text_document.uri
        text = self._text(uri)
        kinds = {"node": lsp.SymbolKind.Function, "value": lsp.SymbolKind.Variable}
        return [
            lsp.SymbolInformation(
                location=self._place(uri, text, each),
                name=visible(each.name, 200) or "(no name)",
                kind=kinds[each.kind],
                container_name="/".join(str(key) for key in each.path[:-2]),
            )
            for each in text.names()
            if each.kind == "node" or (each.kind == "value" and each.path[-1] == "name")
        ]

    def hints(self, params: Any) -> Any:
        """Types of the outputs of nodes, where they are known."""
        lsp, uri = self.types, params.text_document.uri
        text = self._text(uri)
        first, last = params.range.start.line, params.range.end.line
        found = []
        for each in text.names():
            if each.kind != "value" or each.path[-2:-1] != ("output",):
                continue
            ref = text.node_at(each.path)
            kind = None if ref is None else text.index.type_of(ref.scope, each.name)
            place = self._position(uri, text.end_of(each.start))
            if kind is not None and first <= place.line <= last:
                found.append(
                    lsp.InlayHint(place, f" {visible(format_type(kind) or '', 80)}", kind=lsp.InlayHintKind.Type)
                )
        return found

    def actions(self, params: Any) -> Any:
        """Corrections of findings that say what was probably meant."""
        lsp, uri = self.types, params.text_document.uri
        text, found = self._text(uri), []
        document = self.server.workspace.get_text_document(uri)
        for each in params.context.diagnostics:
            start, end = (int(document.offset_at_position(place)) for place in (each.range.start, each.range.end))
            if not text.text[start:end].startswith('"'):
                continue
            for meant in re.findall('"([^"]+)"', each.message.partition("did you mean ")[2]):
                edit = lsp.TextEdit(self._range(uri, start + 1, end - 1), meant)
                change = lsp.WorkspaceEdit(changes={uri: [edit]})
                kind = lsp.CodeActionKind.QuickFix
                found.append(lsp.CodeAction(f"Replace by {meant}", kind=kind, diagnostics=[each], edit=change))
        return found


def _plain(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A method as a function, on which pygls can set attributes."""
    if not asyncio.iscoroutinefunction(method):
        return lambda params: method(params)

    async def call(params: Any) -> None:
        await method(params)

    return call

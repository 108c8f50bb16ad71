"""The language server for model texts in editors, on pygls (extra ``lsp``)."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from onnxjson.editing.round_trip import Editing
from onnxjson.model.display import visible
from onnxjson.model.errors import DecodeError, MissingInputError, OnnxJsonError
from onnxjson.model.index import NodeRef
from onnxjson.model.types import format_type
from onnxjson.serving.edited_text import EditedText, Replacement
from onnxjson.serving.text_names import Named

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

_DELAY = 0.2
"""Seconds without a keystroke after which a text is checked."""

_MOST_FINDINGS = 1_000
_MOST_OFFERS = 500
_MOST_TOKENS = 20_000

_COLOURS = {"value": "variable", "node": "namespace", "operator": "function", "attribute": "property", "type": "type"}
"""The kinds of names, and what editors call them."""


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
        self.texts: dict[str, tuple[int | None, EditedText, str]] = {}
        self.waiting: dict[str, asyncio.Task[None]] = {}
        self.models: dict[str, Editing] = {}

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
            (lsp.TEXT_DOCUMENT_FOLDING_RANGE, self.folds, None),
            (lsp.TEXT_DOCUMENT_CODE_LENS, self.lenses, None),
            (
                lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
                self.tokens,
                lsp.SemanticTokensLegend(list(_COLOURS.values()), []),
            ),
            (lsp.TEXT_DOCUMENT_SIGNATURE_HELP, self.signature, lsp.SignatureHelpOptions(trigger_characters=["[", ","])),
            (lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY, self.node, None),
            (lsp.CALL_HIERARCHY_INCOMING_CALLS, self.producers, None),
            (lsp.CALL_HIERARCHY_OUTGOING_CALLS, self.consumers, None),
        ):
            self.server.feature(method, given)(_plain(function))
        for command, does in (("onnxjson.open", self.open_model), ("onnxjson.save", self.save_model)):
            self.server.command(command)(partial(does))

    def _text(self, uri: str) -> EditedText:
        """The present version of a text."""
        document = self.server.workspace.get_text_document(uri)
        known = self.texts.get(uri)
        if known is None or known[0] != document.version or known[2] != document.source:
            path = Path(unquote(urlparse(uri).path))
            source = document.source
            known = document.version, EditedText(source, path, None if known is None else known[1]), source
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
        text = await asyncio.to_thread(self._text, uri)  # long texts take seconds
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
        text, named = self._named(params)
        if named is None:
            return None
        with _refusals():
            found = text.renamed(named, params.new_name)
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

    def folds(self, params: Any) -> Any:
        """What is between brackets."""
        found = self._text(params.text_document.uri).folds()
        return [self.types.FoldingRange(first, last) for first, last in found]

    def lenses(self, params: Any) -> Any:
        """How many nodes use a value, and the bytes of weights."""
        lsp, uri = self.types, params.text_document.uri
        found = self._text(uri).lenses()[:_MOST_FINDINGS]
        return [lsp.CodeLens(self._range(uri, start, start), lsp.Command(title, "")) for start, title in found]

    def tokens(self, params: Any) -> Any:
        """Operators, attributes, values, names of nodes and types in their colours."""
        uri, data = params.text_document.uri, list[int]()
        text, kinds = self._text(uri), list(_COLOURS)
        before = self.types.Position(0, 0)
        for each in text.names()[:_MOST_TOKENS]:
            begin, end = self._position(uri, each.start), self._position(uri, text.end_of(each.start))
            column = begin.character - (before.character if begin.line == before.line else 0)
            length = max(0, end.character - begin.character)
            data += [begin.line - before.line, column, length, kinds.index(each.kind), 0]
            before = begin
        return self.types.SemanticTokens(data)

    def signature(self, params: Any) -> Any:
        """Inputs and outputs of the operator; the input at the cursor is marked."""
        lsp = self.types
        found = self._text(params.text_document.uri).signature(self._offset(params))
        if found is None:
            return None
        label, inputs, place = found
        parameters = [lsp.ParameterInformation(each) for each in inputs]
        return lsp.SignatureHelp([lsp.SignatureInformation(label, parameters=parameters)], 0, place)

    def node(self, params: Any) -> Any:
        """The node at the cursor, whose producers and consumers can be asked for."""
        uri = params.text_document.uri
        text = self._text(uri)
        ref = text.node_at(text.path_at(self._offset(params))[0]) if text.is_valid else None
        return None if ref is None else [self._item(uri, ref)]

    def _item(self, uri: str, ref: NodeRef) -> Any:
        lsp = self.types
        start = self._text(uri).place_of(ref.address)
        place = self._range(uri, start, start + 1)
        name = visible(f"{ref.node.op_type} {ref.node.name or ''}".rstrip(), 200)
        return lsp.CallHierarchyItem(name, lsp.SymbolKind.Function, uri, place, place, data=ref.address)

    def _neighbours(self, params: Any, *, after: bool) -> list[Any]:
        uri = params.item.uri
        text = self._text(uri)
        ref = next((each for each in text.index.nodes() if each.address == params.item.data), None)
        found = [] if ref is None or not text.is_valid else text.neighbours(ref, after=after)
        return [self._item(uri, each) for each in found[:_MOST_OFFERS]]

    def producers(self, params: Any) -> Any:
        """The nodes whose outputs this one consumes: data flow as calls."""
        found = self._neighbours(params, after=False)
        return [self.types.CallHierarchyIncomingCall(each, [each.range]) for each in found]

    def consumers(self, params: Any) -> Any:
        """The nodes that consume its outputs."""
        found = self._neighbours(params, after=True)
        return [self.types.CallHierarchyOutgoingCall(each, [params.item.range]) for each in found]

    def open_model(self, path: str) -> str:
        """The text of a model file of any form, with sha256 for its weights, to be edited and saved."""
        with _refusals():
            editing = self.models[path] = Editing(Path(path))
            return editing.text.decode()

    def save_model(self, path: str, text: str) -> str:
        """Save an edited text to the model file, as `onnxjson edit` does: checked, in its form, with a backup."""
        with _refusals():
            editing = self.models.get(path) or Editing(Path(path))
            draft = editing.new_draft()
            try:
                draft.restore(text.encode("utf-8", "surrogatepass"))
                proposal = editing.read(draft)
            finally:
                draft.remove()
            if proposal is None:
                return "nothing changed"
            if errors := [each for each in proposal.findings if each.severity == "error"]:
                raise DecodeError(str(errors[0]), errors)
            editing.save(proposal)
            self.models[path] = Editing(Path(path))
            return f"saved {visible(path, None)}"

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


@contextmanager
def _refusals() -> Iterator[None]:
    """Make errors of this package errors that the editor shows."""
    from pygls.exceptions import JsonRpcInvalidParams

    try:
        yield
    except OnnxJsonError as error:
        raise JsonRpcInvalidParams(str(error)) from error


def _plain(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A method as a function, on which pygls can set attributes."""
    if not asyncio.iscoroutinefunction(method):
        return lambda params: method(params)

    async def call(params: Any) -> None:
        await method(params)

    return call

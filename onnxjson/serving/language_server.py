"""The language server for model texts in editors, on pygls (extra ``lsp``), and what it answers at the cursor."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from onnxjson.editing.catalogue import edit_named
from onnxjson.editing.declaration import name_of, non_default_parameters
from onnxjson.editing.round_trip import Editing
from onnxjson.model.display import visible
from onnxjson.model.errors import DecodeError, Finding, OnnxJsonError
from onnxjson.serving.edited_text import EditedText, documentation
from onnxjson.serving.messages import Protocol
from onnxjson.serving.offers import (
    MOST,
    Replacement,
    changed,
    fitting_edits,
    offers,
    renamed,
    replaced,
    with_attribute,
    without_orphans,
)
from onnxjson.serving.open_texts import Answers, OpenDocument
from onnxjson.serving.text_names import Named
from onnxjson.serving.whole_text import COLOURS, OfWholeText, changes_since_head

if TYPE_CHECKING:
    pass

_OFFERED = {
    "operator": lsp.CompletionItemKind.Function,
    "attribute": lsp.CompletionItemKind.Property,
    "value": lsp.CompletionItemKind.Variable,
    "type": lsp.CompletionItemKind.TypeParameter,
    "dimension": lsp.CompletionItemKind.Constant,
    "key": lsp.CompletionItemKind.Keyword,
}


@contextmanager
def refusals() -> Iterator[None]:
    """Make errors of this package errors that the editor shows."""
    from pygls.exceptions import JsonRpcInvalidParams

    try:
        yield
    except OnnxJsonError as error:
        raise JsonRpcInvalidParams(str(error)) from error


class AtCursor(Answers):
    """Answers about the place of the cursor."""

    def _at_cursor(self, params: Any) -> tuple[EditedText, int]:
        uri = params.text_document.uri
        return self.texts.at_cursor(uri), self.texts.offset(uri, params.position)

    def hover(self, params: Any) -> Any:
        """Describe the element as `onnxjson show` does."""
        text, offset = self._at_cursor(params)
        return self._plain_text(text.description(offset), lsp.Hover)

    def _plain_text(self, lines: Sequence[str], wrap: Callable[[Any], Any]) -> Any:
        """Names in a model are never markup."""
        content = lsp.MarkupContent(lsp.MarkupKind.PlainText, "\n".join(lines))
        return wrap(content) if lines else None

    def completion(self, params: Any) -> Any:
        """Operators, attributes, values and types that fit, the best first."""
        text, offset = self._at_cursor(params)
        offered, items = offers(text, offset), []
        if offered:
            start, end, written = replaced(text, offset, offered[0].kind)
            place = self.texts.range(params.text_document.uri, start, end)
        for number, offer in enumerate(offered):
            name = written(offer.name)
            item = lsp.CompletionItem(visible(offer.name, 200), kind=_OFFERED[offer.kind], detail=offer.detail,
                                      filter_text=name, data=offer.operator)  # fmt: skip
            item.sort_text, item.text_edit = f"{number:04}", lsp.TextEdit(place, name)
            items.append(item)
        return lsp.CompletionList(is_incomplete=len(offered) >= MOST, items=items)

    def documented(self, item: Any) -> Any:
        """The documentation of the operator of an offer."""
        if item.data is not None:
            item.documentation = self._plain_text(documentation(*item.data), lambda content: content)
        return item

    def definition(self, params: Any) -> Any:
        """The definition of a value."""
        text, offset = self._at_cursor(params)
        named = text.name_at(offset)
        origin = None if named is None else text.definition(named)
        return None if origin is None else self._place(params.text_document.uri, origin)

    def references(self, params: Any) -> Any:
        """All places of a name."""
        text, offset = self._at_cursor(params)
        named, uri = text.name_at(offset), params.text_document.uri
        places = [] if named is None else text.same_name(named)
        with_origin = getattr(params, "context", None) is None or params.context.include_declaration
        origin = None if with_origin or named is None else text.definition(named)
        return [self._place(uri, each) for each in places if each != origin]

    def highlight(self, params: Any) -> Any:
        """The same, in the open text."""
        return [lsp.DocumentHighlight(each.range) for each in self.references(params)]

    async def _renamed(self, params: Any) -> tuple[EditedText, Named | None]:
        uri = params.text_document.uri
        text = await self.texts.whole(uri)
        named = text.name_at(self.texts.offset(uri, params.position))
        return text, named if named is not None and named.kind in ("value", "node", "dimension") else None

    async def prepare_rename(self, params: Any) -> Any:
        """The name that would be changed."""
        text, named = await self._renamed(params)
        return None if named is None or not text.is_valid else self._place(params.text_document.uri, named).range

    async def rename(self, params: Any) -> Any:
        """What the edit `rename` changes; what it refuses is an error of the editor."""
        text, named = await self._renamed(params)
        if named is None:
            return None
        with refusals():
            found = await asyncio.to_thread(renamed, text, named, params.new_name)
        return self._edit(params.text_document.uri, found)

    def signature(self, params: Any) -> Any:
        """Inputs and outputs of the operator; the input at the cursor is marked."""
        text, offset = self._at_cursor(params)
        signature = text.signature(offset)
        if signature is None:
            return None
        label, inputs, place = signature
        parameters = [lsp.ParameterInformation(each) for each in inputs]
        return lsp.SignatureHelp([lsp.SignatureInformation(label, parameters=parameters)], 0, place)

    async def actions(self, params: Any) -> Any:
        """Corrections of findings that name what was probably meant, and edits of the element at the cursor."""
        uri, actions = params.text_document.uri, list[Any]()
        text = await self.texts.whole(uri)
        for diagnostic in params.context.diagnostics:
            start, end = (self.texts.offset(uri, place) for place in (diagnostic.range.start, diagnostic.range.end))
            fix = partial(lsp.CodeAction, kind=lsp.CodeActionKind.QuickFix, diagnostics=[diagnostic])
            if diagnostic.code == "unknown-owner":
                actions.append(fix("Drop metadata of what does not exist", data={"uri": uri, "edit": None}))
            if diagnostic.code == "missing-attribute" and (
                name := re.search('the attribute "([^"]+)"', diagnostic.message)
            ):
                added = with_attribute(text, start, name[1])
                actions += [fix(f"Add the attribute {name[1]}", edit=self._edit(uri, added))] if added else []
            message, _, meant = diagnostic.message.partition("did you mean ")
            place = _written_wrong(text.text, message, start, end)
            if place is not None:
                for quoted, plain in re.findall(r'"([^"]+)"|\b(?!or\b)(\w+)', meant):
                    edit = self._edit(uri, [Replacement(*place, quoted or plain)])
                    actions.append(fix(f"Replace with {quoted or plain}", edit=edit))
        for title, fitting in fitting_edits(text, self.texts.offset(uri, params.range.start)):
            data = {"uri": uri, "edit": name_of(fitting), "given": non_default_parameters(fitting)}
            actions.append(lsp.CodeAction(title, kind=lsp.CodeActionKind.Refactor, data=data))
        return actions

    async def resolved(self, action: Any) -> Any:
        """The changes of the text by an edit; what it refuses is an error of the editor."""
        uri, name = action.data["uri"], action.data["edit"]
        text = await self.texts.whole(uri)
        with refusals():
            if name is None:
                replacements = without_orphans(text)
            else:
                edit = edit_named(name)(**action.data["given"])
                replacements = await asyncio.to_thread(changed, text, [edit])
        action.edit = self._edit(uri, replacements)
        return action


def _written_wrong(text: str, message: str, start: int, end: int) -> tuple[int, int] | None:
    """Position of the wrong name of a finding: the string at its place, the text it quotes there, or the key before."""
    if text[start:end].startswith('"'):
        return start + 1, end - 1
    for wrong in re.findall('["`]([^"`]+)["`]', message):
        if text.startswith(wrong, start):
            return start, start + len(wrong)
        at = text.rfind(f'"{wrong}"', max(0, start - len(wrong) - 20), start)
        if at >= 0:
            return at + 1, at + 1 + len(wrong)
    return None


def server() -> LanguageServer:
    """Return the language server."""
    made = LanguageServer("onnxjson", version("onnxjson"), protocol_cls=Protocol)
    _Features(made).register()
    return made


class _Features(AtCursor, OfWholeText):
    """What the server answers."""

    def __init__(self, made: LanguageServer) -> None:
        super().__init__(made)
        self.models: dict[str, Editing] = {}

    def register(self) -> None:
        """Register the functions that answer requests."""
        kinds = [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.Refactor]
        options: dict[str, Any] = {
            lsp.TEXT_DOCUMENT_COMPLETION: lsp.CompletionOptions(trigger_characters=['"'], resolve_provider=True),
            lsp.TEXT_DOCUMENT_RENAME: lsp.RenameOptions(prepare_provider=True),
            lsp.TEXT_DOCUMENT_CODE_ACTION: lsp.CodeActionOptions(kinds, resolve_provider=True),
            lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: lsp.SemanticTokensLegend(list(COLOURS.values()), []),
            lsp.TEXT_DOCUMENT_SIGNATURE_HELP: lsp.SignatureHelpOptions(trigger_characters=["[", ","]),
        }
        answers: dict[str, Any] = {
            lsp.INITIALIZE: self.initialize,
            lsp.TEXT_DOCUMENT_DID_OPEN: self.opened,
            lsp.TEXT_DOCUMENT_DID_CHANGE: self.changed,
            lsp.TEXT_DOCUMENT_DID_CLOSE: self.closed,
            lsp.TEXT_DOCUMENT_HOVER: self.hover,
            lsp.TEXT_DOCUMENT_COMPLETION: self.completion,
            lsp.COMPLETION_ITEM_RESOLVE: self.documented,
            lsp.TEXT_DOCUMENT_DEFINITION: self.definition,
            lsp.TEXT_DOCUMENT_REFERENCES: self.references,
            lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: self.highlight,
            lsp.TEXT_DOCUMENT_PREPARE_RENAME: self.prepare_rename,
            lsp.TEXT_DOCUMENT_RENAME: self.rename,
            lsp.TEXT_DOCUMENT_FORMATTING: self.formatting,
            lsp.TEXT_DOCUMENT_RANGE_FORMATTING: self.formatting,
            lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: self.symbols,
            lsp.WORKSPACE_SYMBOL: self.symbols_of_files,
            lsp.TEXT_DOCUMENT_DOCUMENT_LINK: self.links,
            lsp.TEXT_DOCUMENT_INLAY_HINT: self.hints,
            lsp.TEXT_DOCUMENT_CODE_ACTION: self.actions,
            lsp.CODE_ACTION_RESOLVE: self.resolved,
            lsp.TEXT_DOCUMENT_FOLDING_RANGE: self.folds,
            lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: self.tokens,
            lsp.TEXT_DOCUMENT_SIGNATURE_HELP: self.signature,
        }
        for method, function in answers.items():
            self.server.feature(method, options.get(method))(partial(function))
        for command, does in (
            ("onnxjson.open", self.open_model),
            ("onnxjson.save", self.save_model),
            ("onnxjson.changes", self.changes),
        ):
            self.server.command(command)(partial(does))

    def initialize(self, _: Any) -> None:
        """Keep documents as the protocol defines them."""
        workspace = self.server.workspace
        codec = workspace.position_codec
        workspace._create_text_document = partial(OpenDocument, position_codec=codec)  # type: ignore[method-assign]

    def opened(self, params: Any) -> None:
        """Check a text that was opened."""
        self.texts.start(params.text_document.uri, 0)

    def changed(self, params: Any) -> None:
        """Check a text after a pause in typing."""
        self.texts.start(params.text_document.uri)

    def closed(self, params: Any) -> None:
        """Forget a text."""
        self.texts.forget(params.text_document.uri)

    def open_model(self, path: str) -> str:
        """The text of a model file of any form, with sha256 for its weights, to be edited and saved."""
        with refusals():
            editing = self.models[path] = Editing(Path(path))
            return editing.text.decode()

    async def changes(self, uri: str) -> list[dict[str, object]]:
        """Return the differences from the model in HEAD: line, kind, description."""
        text = await self.texts.whole(uri)
        with refusals():
            return await asyncio.to_thread(changes_since_head, text)

    def save_model(self, path: str, text: str) -> str:
        """Save an edited text to the model file, as `onnxjson edit` does: checked, in its form, with a backup."""
        with refusals():
            editing = self.models.get(path) or Editing(Path(path))
            draft = editing.new_draft()
            try:
                draft.restore(text.encode("utf-8", "surrogatepass"))
                proposal = editing.read(draft)
                findings: Sequence[Finding] = () if proposal is None else proposal.findings
            except DecodeError as error:
                if not (findings := error.findings):
                    raise
            finally:
                draft.remove()
            errors = [msgspec.structs.replace(each, file=path) for each in findings if each.severity == "error"]
            if errors:
                raise DecodeError(str(errors[0]), errors)
            if proposal is None:
                return "nothing changed"
            editing.save(proposal)
            self.models[path] = Editing(Path(path))
            return f"saved {visible(path, None)}"

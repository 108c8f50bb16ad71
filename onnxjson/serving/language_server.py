"""The language server for model texts in editors, on pygls (extra ``lsp``)."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from onnxjson.editing.round_trip import Editing
from onnxjson.model.display import visible
from onnxjson.model.errors import DecodeError, Finding
from onnxjson.serving.at_cursor import AtCursor, refusals
from onnxjson.serving.head_changes import changes_since_head
from onnxjson.serving.open_document import OpenDocument
from onnxjson.serving.whole_text import COLOURS, OfWholeText


def server() -> LanguageServer:
    """Return the language server."""
    made = LanguageServer("onnxjson", version("onnxjson"))
    _Features(made).register()
    return made


class _Features(AtCursor, OfWholeText):
    """What the server answers."""

    def __init__(self, made: LanguageServer) -> None:
        super().__init__(made)
        self.models: dict[str, Editing] = {}

    def register(self) -> None:
        """Register the functions that answer requests."""
        for method, function, given in (
            (lsp.INITIALIZE, self.initialize, None),
            (lsp.TEXT_DOCUMENT_DID_OPEN, self.opened, None),
            (lsp.TEXT_DOCUMENT_DID_CHANGE, self.changed, None),
            (lsp.TEXT_DOCUMENT_DID_CLOSE, self.closed, None),
            (lsp.TEXT_DOCUMENT_HOVER, self.hover, None),
            (
                lsp.TEXT_DOCUMENT_COMPLETION,
                self.completion,
                lsp.CompletionOptions(trigger_characters=['"'], resolve_provider=True),
            ),
            (lsp.COMPLETION_ITEM_RESOLVE, self.documented, None),
            (lsp.TEXT_DOCUMENT_DEFINITION, self.definition, None),
            (lsp.TEXT_DOCUMENT_REFERENCES, self.references, None),
            (lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, self.highlight, None),
            (lsp.TEXT_DOCUMENT_PREPARE_RENAME, self.prepare_rename, None),
            (lsp.TEXT_DOCUMENT_RENAME, self.rename, lsp.RenameOptions(prepare_provider=True)),
            (lsp.TEXT_DOCUMENT_FORMATTING, self.formatting, None),
            (lsp.TEXT_DOCUMENT_RANGE_FORMATTING, self.formatting, None),
            (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, self.symbols, None),
            (lsp.WORKSPACE_SYMBOL, self.symbols_of_files, None),
            (lsp.TEXT_DOCUMENT_DOCUMENT_LINK, self.links, None),
            (lsp.TEXT_DOCUMENT_INLAY_HINT, self.hints, None),
            (
                lsp.TEXT_DOCUMENT_CODE_ACTION,
                self.actions,
                lsp.CodeActionOptions(
                    [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.Refactor], resolve_provider=True
                ),
            ),
            (lsp.CODE_ACTION_RESOLVE, self.resolved, None),
            (lsp.TEXT_DOCUMENT_FOLDING_RANGE, self.folds, None),
            (lsp.TEXT_DOCUMENT_CODE_LENS, self.lenses, None),
            (
                lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
                self.tokens,
                lsp.SemanticTokensLegend(list(COLOURS.values()), []),
            ),
            (lsp.TEXT_DOCUMENT_SIGNATURE_HELP, self.signature, lsp.SignatureHelpOptions(trigger_characters=["[", ","])),
            (lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY, self.node, None),
            (lsp.CALL_HIERARCHY_INCOMING_CALLS, self.producers, None),
            (lsp.CALL_HIERARCHY_OUTGOING_CALLS, self.consumers, None),
        ):
            self.server.feature(method, given)(_plain(function))
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
                found: Sequence[Finding] = () if proposal is None else proposal.findings
            except DecodeError as error:
                if not (found := error.findings):
                    raise
            finally:
                draft.remove()
            errors = [msgspec.structs.replace(each, file=path) for each in found if each.severity == "error"]
            if errors:
                raise DecodeError(str(errors[0]), errors)
            if proposal is None:
                return "nothing changed"
            editing.save(proposal)
            self.models[path] = Editing(Path(path))
            return f"saved {visible(path, None)}"


def _plain(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A method as a function, on which pygls can set attributes."""
    if not asyncio.iscoroutinefunction(method):
        return lambda params: method(params)

    async def call(params: Any) -> Any:
        return await method(params)

    return call

"""The language server for model texts in editors, on pygls (extra ``lsp``)."""

import asyncio
from collections.abc import Sequence
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
from onnxjson.serving.open_texts import OpenDocument
from onnxjson.serving.whole_text import COLOURS, OfWholeText, changes_since_head


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
            lsp.TEXT_DOCUMENT_CODE_LENS: self.lenses,
            lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: self.tokens,
            lsp.TEXT_DOCUMENT_SIGNATURE_HELP: self.signature,
            lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY: self.node,
            lsp.CALL_HIERARCHY_INCOMING_CALLS: self.producers,
            lsp.CALL_HIERARCHY_OUTGOING_CALLS: self.consumers,
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

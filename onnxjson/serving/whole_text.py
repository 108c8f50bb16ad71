"""What the language server answers about a whole text: outline, marks, changes since HEAD; and about all texts."""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from lsprotocol import types as lsp

from onnxjson.codecs.reading.tree import Key
from onnxjson.diffing.difference import diff
from onnxjson.diffing.events import Event, Member
from onnxjson.git.repository import open_revision
from onnxjson.model.display import counted, visible
from onnxjson.model.errors import Finding, MissingInputError, OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.model.types import format_type
from onnxjson.outline.lines import Line, outline_of
from onnxjson.outline.places import LARGEST as LARGEST_OUTLINE
from onnxjson.running.checking import placed
from onnxjson.serving.edited_text import LARGEST, EditedText
from onnxjson.serving.offers import changed, formatted_nodes
from onnxjson.serving.open_texts import Answers, OpenDocument, path_of_uri
from onnxjson.serving.text_names import TOKEN, ends_of_nodes, is_definition
from onnxjson.storage import files

_MOST_ENTRIES: Final = 200
"""Nodes of one line that are listed."""

_GRAPH = "/graph"
_MOST = 1_000
_MOST_TOKENS = 20_000
_MOST_FILES = 500

_SYMBOLS = {
    "graph": lsp.SymbolKind.Module,
    "line": lsp.SymbolKind.Namespace,
    "node": lsp.SymbolKind.Function,
    "value": lsp.SymbolKind.Variable,
}

COLOURS = {"value": "variable", "node": "namespace", "operator": "function", "attribute": "property", "type": "type"}
"""The kinds of names, and what editors call them."""


@dataclass
class Entry:
    """One line of the outline, or a node."""

    name: str
    kind: Literal["graph", "line", "node"]
    start: int
    end: int
    detail: str = ""
    children: "list[Entry]" = field(default_factory=list)

    @property
    def label(self) -> str:
        """Its name, or its operator without one."""
        return self.name or self.detail or "(no name)"

    def everything(self) -> "Iterator[Entry]":
        """Itself, and what is in it."""
        yield self
        for each in self.children:
            yield from each.everything()


def outline(text: EditedText) -> list[Entry]:
    """Return the model on one page with the nodes of each line; of a text with mistakes, a list of its nodes."""
    nodes: dict[tuple[Key, ...], Entry] = {}
    for named in text.names():
        for end in ends_of_nodes(named.path):
            node = nodes.setdefault(named.path[:end], Entry("", "node", named.start, named.end))
            node.end = max(node.end, named.end)
        is_direct = ends_of_nodes(named.path)[-1:] == [len(named.path) - 1]
        if is_direct and named.kind == "operator":
            node.detail = named.name
        elif is_direct and named.kind == "node":
            node.name = named.name
    if not text.is_valid or text.model is None or len(nodes) > LARGEST_OUTLINE:
        return _cut(list(nodes.values()))
    by_address = {ref.address: each for path, each in nodes.items() if (ref := text.node_at(path)) is not None}
    try:
        lines = outline_of(text.model, text.index).lines
    except OnnxJsonError:
        return _cut(list(nodes.values()))
    return [_entry(line, by_address, 0) for line in lines]


def _entry(line: Line, nodes: Mapping[str, Entry], start: int) -> Entry:
    """Return a line with those inside it, and the nodes that are in none of those."""
    within = {ref for each in line.lines for ref in each.nodes}
    written = [nodes[ref.address] for ref in line.nodes if ref.address in nodes]
    first = min([each.start for each in written], default=start)
    inner = [_entry(each, nodes, first) for each in line.lines]
    direct = [nodes[ref.address] for ref in line.nodes if ref not in within and ref.address in nodes]
    last = max([each.end for each in (*written, *inner)], default=first)
    detail = counted(len(line.nodes), "node") if line.nodes else ""
    return Entry(line.text, "line", first, last, detail, [*inner, *_cut(direct)])


def _cut(entries: list[Entry]) -> list[Entry]:
    """Keep the first entries of very many."""
    more = len(entries) - _MOST_ENTRIES
    if more <= 1:
        return entries
    first = entries[_MOST_ENTRIES]
    return [*entries[:_MOST_ENTRIES], Entry(f"and {more:,} more", "line", first.start, first.end)]


def of_whole(method: Callable[[Any, EditedText, Any], Any]) -> Callable[[Any, Any], Awaitable[Any]]:
    """A method that gets the whole text too, and runs in a thread, so that keystrokes are answered meanwhile."""

    @wraps(method)
    async def call(self: Answers, params: Any) -> Any:
        text = await self.texts.whole(params.text_document.uri)
        return await asyncio.to_thread(method, self, text, params)

    return call


class OfWholeText(Answers):
    """Answers about a whole text."""

    @of_whole
    def formatting(self, text: EditedText, params: Any) -> Any:
        """The canonical form, as `onnxjson fmt` writes it; in a text with errors, only the valid nodes of a range."""
        uri = params.text_document.uri
        asked = getattr(params, "range", None)
        if asked is None:
            return self._edits(uri, changed(text, []))
        start, end = (self.texts.offset(uri, each) for each in (asked.start, asked.end))
        if text.is_valid:
            replacements = [each for each in changed(text, []) if each.start <= end and each.end >= start]
        else:
            replacements = formatted_nodes(text, start, end)
        return self._edits(uri, replacements)

    @of_whole
    def symbols(self, text: EditedText, params: Any) -> Any:
        """The model on one page with the nodes of each line, as a tree."""
        uri = params.text_document.uri
        entries = outline(text)
        asked = self.server.client_capabilities.text_document
        if asked and asked.document_symbol and asked.document_symbol.hierarchical_document_symbol_support:
            return [self._symbol(uri, entry) for entry in entries]
        return [
            lsp.SymbolInformation(
                lsp.Location(uri, self.texts.range(uri, entry.start, entry.end)),
                visible(entry.label, 200),
                _SYMBOLS[entry.kind],
            )
            for top in entries
            for entry in top.everything()
        ]

    def _symbol(self, uri: str, entry: Entry) -> Any:
        place = self.texts.range(uri, entry.start, entry.end)
        first, inner = lsp.Range(place.start, place.start), [self._symbol(uri, each) for each in entry.children]
        words = visible(entry.label, 200), _SYMBOLS[entry.kind], place, first, visible(entry.detail, 200)
        return lsp.DocumentSymbol(*words, children=inner)

    @of_whole
    def links(self, text: EditedText, params: Any) -> Any:
        """Files with weights."""
        uri = params.text_document.uri
        weight_files = [(each, text.path.parent / each.name) for each in text.names() if each.kind == "file"]
        return [
            lsp.DocumentLink(self._place(uri, each).range, path.as_uri())
            for each, path in weight_files
            if ".." not in path.parts and path.is_relative_to(text.path.parent) and os.path.isfile(path)
        ]

    @of_whole
    def hints(self, text: EditedText, params: Any) -> Any:
        """Types of the outputs of nodes, where they are known."""
        uri = params.text_document.uri
        first, last = (self.texts.offset(uri, each) for each in (params.range.start, params.range.end))
        hints = []
        for named in text.names():
            if named.kind != "value" or named.path[-2:-1] != ("output",) or not first <= named.end <= last:
                continue
            ref = text.node_at(named.path)
            kind = None if ref is None else text.index.type_of(ref.scope, named.name)
            if kind is not None:
                label = f" {visible(format_type(kind) or '', 80)}"
                hints.append(lsp.InlayHint(self.texts.position(uri, named.end), label, kind=lsp.InlayHintKind.Type))
        return hints

    @of_whole
    def folds(self, text: EditedText, params: Any) -> Any:
        """What is between brackets."""
        uri = params.text_document.uri
        folds = list[lsp.FoldingRange]()
        for start, end in islice(brackets(text.text), _MOST_TOKENS):
            first, last = (self.texts.position(uri, each).line for each in (start, end))
            if last > first:  # one line can be very long
                begin_of_line = text.text.rfind("\n", 0, end) + 1
                last -= not text.text[begin_of_line:end].strip(" \t]}")
            if last > first:
                folds.append(lsp.FoldingRange(first, last))
        return folds

    @of_whole
    def tokens(self, text: EditedText, params: Any) -> Any:
        """Operators, attributes, values, names of nodes and types in their colours."""
        uri, data = params.text_document.uri, list[int]()
        kinds = list(COLOURS)
        before = lsp.Position(0, 0)
        for named in islice((named for named in text.names() if named.kind in COLOURS), _MOST_TOKENS):
            begin, end = self.texts.position(uri, named.start), self.texts.position(uri, named.end)
            column = begin.character - (before.character if begin.line == before.line else 0)
            length = max(0, end.character - begin.character)
            data += [begin.line - before.line, column, length, kinds.index(named.kind), 0]
            before = begin
        return lsp.SemanticTokens(data)

    async def symbols_of_files(self, params: Any) -> Any:
        """Names that contain a text, in the models of the folders of the editor."""
        folders = [path_of_uri(each.uri) for each in self.server.workspace.folders.values()]
        return await asyncio.to_thread(lambda: list(islice(_symbols_in(folders, params.query), _MOST)))


def brackets(text: str) -> Iterator[tuple[int, int]]:
    """Iterate over the offsets of matching brackets."""
    opened: list[int] = []
    for token in TOKEN.finditer(text):
        if token[4]:
            opened.append(token.start())
        elif token[5] and opened:
            yield opened.pop(), token.start()


def changes_since_head(text: EditedText) -> list[dict[str, object]]:
    """Return line (from 0), "added", "removed" or "changed", and a description of each change; none without git.

    Raises:
        OnnxJsonError: git or the model in HEAD cannot be read.
    """
    if not text.is_valid or text.model is None:
        return []
    try:
        with open_revision(f"HEAD:./{text.file.name}", text.file.parent) as head:
            events = diff(head.loaded.model, text.model).events
    except MissingInputError:  # no repository, or HEAD does not have the file
        return []
    found = [each for event in events for member in event.members for each in _of_member(text, event, member)]
    places = placed(text.text.encode("utf-8", "surrogatepass"), found[:_MOST])
    return [{"line": max(each.line - 1, 0), "kind": each.code, "text": visible(each.message, 300)} for each in places]


def _of_member(text: EditedText, event: Event, member: Member) -> list[Finding]:
    """Return the changes of one place; a renaming of many values is reported at each name."""
    kind = "changed" if member.base and member.target else "added" if member.target else "removed"
    if event.kind == "renamed" and member.target == (_GRAPH,):
        messages = [(f"was {each.base}", "".join(f"/{part}" for part in places[0].path))
                 for each in member.details if (places := text.places.get(each.target or ""))]  # fmt: skip
    else:
        were = [f"{each.what} was {each.base}" for each in member.details if each.base is not None]
        message = "; ".join(were) or f"{event.kind}: {event.pattern}"
        messages = [(message, each) for each in member.target[:_MOST] or (_GRAPH,)]
    return [Finding(severity="warning", code=kind, message=message, address=address) for message, address in messages]


def _symbols_in(folders: Sequence[Path], part: str) -> Iterator[lsp.SymbolInformation]:
    """Yield names that contain a text, in the models of folders; files that cannot be read are skipped."""
    for path in islice(_models_in(folders), _MOST_FILES):
        with suppress(OSError, OnnxJsonError):
            status = path.stat()
            is_read = stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST
            found = _symbols_of(path, status.st_mtime_ns, status.st_size) if is_read else ()
            for name, kind, place in found:
                if part.lower() in name.lower():
                    where = lsp.Location(path.as_uri(), place)
                    yield lsp.SymbolInformation(where, visible(name, 200), _SYMBOLS[kind])


def _models_in(folders: Sequence[Path]) -> Iterator[Path]:
    for top, inner, names in (each for folder in folders for each in os.walk(folder)):
        inner[:] = [each for each in inner if not each.startswith(".") and each != "node_modules"]
        yield from (Path(top, name) for name in names if name.endswith((".onnx.json", ".onnx")))


@lru_cache(_MOST_FILES)
def _symbols_of(path: Path, _modified: int, _size: int) -> tuple[tuple[str, str, lsp.Range], ...]:
    """Return the names of nodes and values of a model with their kinds; only a text has their places."""
    if path.suffix == ".onnx":
        start = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
        names = islice(_names_of(Index(files.load(path, bind=False).model)), _MOST_TOKENS)
        return tuple([(name, kind, start) for name, kind in names if name])
    text = path.read_text(encoding="utf-8", errors="replace")
    document = OpenDocument(path.as_uri(), text)
    written_names = EditedText(text, path, is_read=False).names() if '"onnxjson/' in text else []
    return tuple([
        (each.name, each.kind, lsp.Range(document.position_at(each.start), document.position_at(each.end)))
        for each in islice(written_names, 4 * _MOST_TOKENS) if each.kind == "node" or is_definition(each)
    ])  # fmt: skip


def _names_of(index: Index) -> Iterator[tuple[str | None, str]]:
    for scope in index.scopes:
        graph = scope.graph
        yield graph.name, "graph"
        yield from ((name, "value") for name in (*scope.inputs, *scope.output_names))
        yield from ((node.name, "node") for node in graph.node)

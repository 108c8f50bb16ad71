"""A text while it is edited: its findings, and the element at a position, even if the text is not valid.

Places are offsets in characters. While a text has mistakes, answers about the model come from the last valid one, and
answers about the text from what can be read of it.
"""

import bisect
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.codecs.reading.exact_reader import locate, path_of
from onnxjson.codecs.reading.scan import scan
from onnxjson.codecs.reading.tree import UNREADABLE, Key, Tree, parse
from onnxjson.codecs.text_file import read_bytes
from onnxjson.diffing.line_changes import changes
from onnxjson.editing.applying import run
from onnxjson.editing.declaration import Edit
from onnxjson.editing.names import NameKind, Rename
from onnxjson.model.document import Graph, Model
from onnxjson.model.dtypes import DTYPES
from onnxjson.model.errors import DecodeError, Finding, OnnxJsonError, OtherJsonError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operator_checks import check_model
from onnxjson.model.operators import known_attributes, known_operators, operator_signature
from onnxjson.patterns.selectors import TensorRef
from onnxjson.rendering.node import documentation_fields, documentation_lines, node_lines, opset_of, view_node
from onnxjson.rendering.tensor import tensor_lines, view_tensor
from onnxjson.storage.api import dumps
from onnxjson.storage.external import Resolver

_WIDTH: Final = 80
_LONG: Final = 1 << 20
_DECLARING: Final = ("input", "output", "initializer", "value_info")


class Replacement(NamedTuple):
    """Characters from `start` to `end` of a text, and what replaces them."""

    start: int
    end: int
    text: str


class Named(NamedTuple):
    """A name in a text."""

    name: str
    kind: str
    """ "value", "node", "operator", "attribute", or "type"."""
    start: int
    """Offset of the opening quote."""
    path: tuple[Key, ...]
    """Where it is in the tree."""


@dataclass
class EditedText:
    """One version of a text."""

    text: str
    path: Path
    previous: "EditedText | None" = None
    """The version before, until this one has found its own model."""
    model: Model | None = None
    """The model; that of the last valid version if this one is not valid."""
    is_valid: bool = False
    _tree: Tree = UNREADABLE
    _names: list[Named] | None = None
    _nodes: dict[tuple[Key, ...], NodeRef] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._data = self.text.encode("utf-8", "surrogatepass")
        self._starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        self._findings: tuple[Finding, ...] = ()
        try:
            if '"onnxjson/' not in self.text:
                raise OtherJsonError("JSON of another program")
            read = read_bytes(self._data, conflicted=True)
        except OtherJsonError:
            self.model = None
        except DecodeError as error:
            self._findings = tuple(error.findings)
            self.model = None if self.previous is None else self.previous.model
        except OnnxJsonError as error:
            self._findings = (Finding(severity="error", code="not-a-model", message=str(error), line=1, column=1),)
        else:
            self.model, self.is_valid, self._findings = read.model, True, read.findings
        self.previous = None
        self.index = Index(self.model if self.model is not None else Model())

    def findings(self) -> list[Finding]:
        """All findings with line and column, in their order."""
        found = list(self._findings)
        if self.is_valid and self.model is not None:
            of_model = list(check_model(self.model))
            places = locate(self._data, [each.address for each in of_model if each.address])
            for each in of_model:
                line, column = places.get(each.address, (1, 1))
                found.append(msgspec.structs.replace(each, line=line, column=column))
        return sorted(found, key=lambda each: (each.line, each.column))

    @property
    def tree(self) -> Tree:
        """The plain values of the text; of a long one with mistakes, which are slow to read around, none."""
        if self._tree is UNREADABLE:
            is_clean, self._tree = parse(self._data)
            if not is_clean:
                self._tree = scan(self._data).tree if len(self._data) < _LONG else None
        return self._tree

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 0; a column counts characters."""
        line = bisect.bisect_right(self._starts, offset) - 1
        return line, offset - self._starts[line]

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column of a finding, both from 1; 0 without them."""
        return min(self._starts[min(max(line, 1), len(self._starts)) - 1] + max(column - 1, 0), len(self.text))

    def path_at(self, offset: int) -> tuple[tuple[Key, ...], bool]:
        """The path of the innermost value around an offset, and whether its key, not the value, is there."""
        names = self.names()
        at = bisect.bisect_right(names, offset, key=lambda each: each.start) - 1
        found, on_key = ((), False) if at < 0 else (names[at].path, False)
        for start, end, path, is_key in _walk(self.text, list(found), 0 if at < 0 else names[at].start):
            if start > offset:
                break
            found, on_key = path, is_key and offset <= end
        return found, on_key

    def names(self) -> list[Named]:
        """All names in the text, in the order of their places."""
        if self._names is None:
            self._names = []
            for start, end, path, is_key in _walk(self.text, [], 0):
                if self.text[start] == '"' and (kind := _kind_of(path, is_key=is_key)):
                    text = self.text[start + 1 : end - 1]
                    name = str(path[-1]) if is_key else unquoted(text) if "\\" in text else text
                    self._names.append(Named(name, kind, start, path))
        return self._names

    def name_at(self, offset: int) -> Named | None:
        """The name whose string is at an offset."""
        names = self.names()
        at = bisect.bisect_right(names, offset, key=lambda each: each.start) - 1
        if at < 0 or offset > self.end_of(names[at].start):
            return None
        return names[at]

    def end_of(self, start: int) -> int:
        """The offset after the string that begins at `start`."""
        position = start + 1
        while position < len(self.text) and self.text[position] not in '"\n':
            position += 2 if self.text[position] == "\\" else 1
        return position + 1

    def same_name(self, named: Named) -> list[Named]:
        """All places of a value or node that has this name, in the graphs in which it is known."""
        own = [each for each in self.names() if each.name == named.name and each.kind == named.kind]
        if named.kind != "value":
            return own
        defined = [each for each in own if _is_definition(each)]
        home = max((_graph_of(each.path) for each in defined if _within(named.path, _graph_of(each.path))), key=len,
                   default=())  # fmt: skip
        hidden = [_graph_of(each.path) for each in defined if len(_graph_of(each.path)) > len(home)]
        return [
            each for each in own if _within(each.path, home) and not any(_within(each.path, graph) for graph in hidden)
        ]

    def definition(self, named: Named) -> Named | None:
        """The definition of a value: the output of a node, an initializer, or an input."""
        places = [each for each in self.same_name(named) if _is_definition(each)]
        return min(places, key=lambda each: "node" not in each.path[-4:], default=None)

    def node_at(self, path: Sequence[Key]) -> NodeRef | None:
        """The node of the model whose text a path is in."""
        if self.model is None:
            return None
        if not self._nodes:
            tree = self.tree
            self._nodes = {path_of(tree, ref.address): ref for ref in self.index.nodes()}
        return next((self._nodes[key] for end in range(len(path), 0, -1) if (key := tuple(path[:end])) in self._nodes),
                    None)  # fmt: skip

    def description(self, offset: int) -> list[str]:
        """What is known about the element at an offset, as `onnxjson show` prints it."""
        if self.model is None:
            return []
        named = self.name_at(offset)
        path, _ = self.path_at(offset)
        if named is not None and named.kind == "value":
            origin = self.definition(named)
            if origin is not None and "initializer" in origin.path[-3:]:
                return self._tensor(named.name)
            path = path if origin is None or "node" not in origin.path else origin.path
        ref = self.node_at(path)
        if ref is None:
            return []
        if named is not None and named.kind in ("operator", "attribute"):
            found = operator_signature(ref.node.domain, ref.node.op_type, opset_of(self.model, ref))
            return [] if found is None else documentation_lines(documentation_fields(found), _WIDTH)
        return node_lines(view_node(self.model, self.index, ref, self.path.name, None), _WIDTH)

    def _tensor(self, name: str) -> list[str]:
        for scope in self.index.scopes:
            if name in scope.initializers and isinstance(scope.graph, Graph):
                position = scope.initializers[name]
                tensor = scope.graph.initializer[position]
                ref = TensorRef(name, f"{scope.address}/initializer/{position}", tensor, scope)
                return tensor_lines(
                    view_tensor(self.index, ref, self.path.name, Resolver(self.path.parent), most=8), _WIDTH
                )
        return []

    def offers(self, offset: int) -> list[tuple[str, str]]:
        """What can be written at an offset, and what kind of name it is."""
        path, on_key = self.path_at(offset)
        kind = _kind_of(path, is_key=on_key)
        node = self._node_of(path)
        domain, op_type = str(node.get("domain") or ""), str(node.get("op_type") or "")
        if kind == "operator":
            return [(each, "operator") for each in sorted(known_operators(domain))]
        if kind == "attribute" or (path[-1:] == ("attribute",) and not on_key):
            opset = max((each.version or 0 for each in self.model.opset_import if (each.domain or "") == domain),
                        default=None) if self.model else None  # fmt: skip
            return [(each, "attribute") for each in sorted(known_attributes(domain, op_type, opset) or ())]
        if kind == "value" or path[-1:] == ("input",):
            home = _graph_of(path)
            found = {each.name for each in self.names() if _is_definition(each) and _within(home, _graph_of(each.path))}
            return [(each, "value") for each in sorted(found)]
        if kind == "type":
            return [(f"{each.name}[]", "type") for each in DTYPES.values()]
        return []

    def _node_of(self, path: Sequence[Key]) -> dict[str, Tree]:
        found: dict[str, Tree] = {}
        tree = self.tree
        for position, key in enumerate(path):
            if isinstance(tree, dict) and isinstance(key, str):
                tree = tree.get(key)
            elif isinstance(tree, list) and isinstance(key, int) and key < len(tree):
                tree = tree[key]
                if path[position - 1] == "node" and isinstance(tree, dict):
                    found = tree
        return found

    def renamed(self, named: Named, name: str) -> list[Replacement]:
        """The replacements by which the edit `rename` changes this text; raises what the edit raises."""
        kind: NameKind = "node" if named.kind == "node" else "tensor"
        return self._changed([Rename(kind=kind, names={named.name: name})])

    def formatted(self) -> list[Replacement]:
        """The replacements that make the text canonical; none while it is not valid."""
        return self._changed([])

    def _changed(self, edits: list[Edit]) -> list[Replacement]:
        if not self.is_valid or self.model is None:
            return []
        model = run(self.model, edits, model_folder=self.path.parent).model if edits else self.model
        old, new = (text.encode("utf-8", "surrogatepass").splitlines(keepends=True)
                    for text in (self.text, dumps(model, weights="keep")))  # fmt: skip
        starts = [0]
        for line in old:
            starts.append(starts[-1] + len(line.decode("utf-8", "surrogatepass")))
        return [
            Replacement(starts[each.old_start], starts[each.old_end],
                        b"".join(new[each.new_start : each.new_end]).decode("utf-8", "surrogatepass"))
            for each in changes(old, new)
        ]  # fmt: skip


_TOKEN: Final = re.compile(r'"((?:[^"\\\n]|\\.)*+)("?)(\s*+:)?|([\[{])|([\]}])|(,)|//[^\n]*')


def _walk(text: str, path: list[Any], start: int) -> Iterator[tuple[int, int, tuple[Key, ...], bool]]:
    """Yield start, end and path of each string and bracket from `start` on, and whether it is a key.

    `path` is that of the place where the walk begins. Any text can be walked, valid or not.
    """
    for token in _TOKEN.finditer(text, start):
        string, closing, colon, opening, closed, comma = token.groups()
        is_key = False
        if string is not None:
            is_key = bool(path) and not isinstance(path[-1], int) and (colon is not None or path[-1] is None)
            if is_key:
                path[-1] = unquoted(string) if "\\" in string else string
        elif opening is not None:
            yield token.start(), token.end(), tuple(path), False
            path.append(None if opening == "{" else 0)
            continue
        elif closed is not None:
            if path:
                path.pop()
        elif comma is not None:
            if path:
                path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
        else:
            continue
        end = token.start() + len(string) + 1 + len(closing) if string is not None else token.end()
        yield token.start(), end, tuple(path[:-1] if path and path[-1] is None else path), is_key


def unquoted(string: str) -> str:
    """The text of a JSON string with escapes; as it is written if they are not valid."""
    try:
        return str(json.loads(f'"{string}"'))
    except ValueError:
        return string


def _kind_of(path: tuple[Key, ...], *, is_key: bool) -> str:
    """The kind of the name at a path of a tree; "" if there is none."""
    words = [key if isinstance(key, str) else "#" for key in path[-4:]]
    match words:
        case [*_, "node", "#", "attribute", _] if is_key:
            return "attribute"
        case _ if is_key:
            return ""
        case [*_, "node", "#", "op_type"]:
            return "operator"
        case [*_, "node", "#", "name"]:
            return "node"
        case [*_, "node", "#", "input" | "output", "#"]:
            return "value"
        case [*_, "input" | "output" | "initializer" | "value_info", "#", "name"]:
            return "value"
        case ["functions", "#", "input" | "output", "#"]:
            return "value"
        case [*_, "input" | "output" | "initializer" | "value_info", "#", "type"]:
            return "type"
    return ""


def _is_definition(named: Named) -> bool:
    words = named.path[-3:]
    if named.kind != "value":
        return False
    if named.path[0] == "functions" and len(named.path) == 4:
        return words[-2] == "input"
    return words[-2] == "output" if named.path[-4:-3] == ("node",) else words[0] in ("input", "initializer")


def _graph_of(path: Sequence[Key]) -> tuple[Key, ...]:
    """The path of the graph or function that a path is in."""
    for position in range(len(path) - 1, 0, -1):
        if path[position] in ("node", *_DECLARING) and isinstance(path[position - 1], str):
            if path[position] in ("input", "output") and path[position - 2 : position - 1] == ("node",):
                continue
            return tuple(path[:position])
        if isinstance(path[position - 1], int) and path[position] in ("node", *_DECLARING):
            if position > 1 and path[position - 2] == "node":
                continue
            return tuple(path[:position])
    return ()


def _within(path: Sequence[Key], graph: Sequence[Key]) -> bool:
    return tuple(path[: len(graph)]) == tuple(graph)

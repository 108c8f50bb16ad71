"""A text while it is edited: its findings, and the element at a position, even if the text is not valid.

Places are offsets in characters. While a text has mistakes, answers about the model come from the last valid one, and
answers about the text from what can be read of it.
"""

import bisect
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from onnxjson.codecs.reading.exact_reader import COMMENTS_CODE, locate, path_of
from onnxjson.codecs.reading.scan import scan
from onnxjson.codecs.reading.tree import UNREADABLE, Key, Tree, parse
from onnxjson.codecs.text_file import read_bytes
from onnxjson.diffing.line_changes import changes
from onnxjson.editing.applying import run
from onnxjson.editing.declaration import Edit
from onnxjson.editing.names import NameKind, Rename
from onnxjson.model.display import counted
from onnxjson.model.document import Graph, Model
from onnxjson.model.dtypes import DTYPES
from onnxjson.model.errors import DecodeError, Finding, OnnxJsonError, OtherJsonError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operator_checks import check_model
from onnxjson.model.operators import known_attributes, known_operators, operator_signature
from onnxjson.model.tensors import needed_bytes
from onnxjson.patterns.selectors import TensorRef
from onnxjson.rendering.node import documentation_fields, documentation_lines, node_lines, opset_of, view_node
from onnxjson.rendering.tables import size
from onnxjson.rendering.tensor import tensor_lines, view_tensor
from onnxjson.serving.text_names import TOKEN, Named, graph_of, is_definition, is_within, kind_of, unquoted, walk
from onnxjson.storage.api import dumps
from onnxjson.storage.external import Resolver

_WIDTH: Final = 80
_LONG: Final = 1 << 20
LARGEST: Final = 64 << 20
"""Characters of a text that is read while it is edited."""


class Replacement(NamedTuple):
    """Characters from `start` to `end` of a text, and what replaces them."""

    start: int
    end: int
    text: str


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
        self._findings: tuple[Finding, ...] = ()
        if len(self.text) > LARGEST:
            message = f"the text has more than {LARGEST >> 20:,} MiB, so the language server does not read it"
            self._findings = (Finding(severity="warning", code="not-a-model", message=message, line=1, column=1),)
            self.text = ""
            self.previous = None
        self._data = self.text.encode("utf-8", "surrogatepass")
        self._starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
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
            self.model, self.is_valid = read.model, True
            self._findings = tuple([each for each in read.findings if each.code != COMMENTS_CODE])  # as `check`
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
        for start, end, path, is_key in walk(self.text, list(found), 0 if at < 0 else names[at].start):
            if start > offset:
                break
            found, on_key = path, is_key and offset <= end
        return found, on_key

    def names(self) -> list[Named]:
        """All names in the text, in the order of their places."""
        if self._names is None:
            self._names = []
            for start, end, path, is_key in walk(self.text, [], 0):
                if self.text[start] == '"' and (kind := kind_of(path, is_key=is_key)):
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
        defined = [each for each in own if is_definition(each)]
        home = max((graph_of(each.path) for each in defined if is_within(named.path, graph_of(each.path))), key=len,
                   default=())  # fmt: skip
        hidden = [graph_of(each.path) for each in defined if len(graph_of(each.path)) > len(home)]
        return [
            each
            for each in own
            if is_within(each.path, home) and not any(is_within(each.path, graph) for graph in hidden)
        ]

    def definition(self, named: Named) -> Named | None:
        """The definition of a value: the output of a node, an initializer, or an input."""
        places = [each for each in self.same_name(named) if is_definition(each)]
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
        kind = kind_of(path, is_key=on_key)
        domain, op_type, opset = self._operator(path)
        if kind == "operator":
            return [(each, "operator") for each in sorted(known_operators(domain))]
        if kind == "attribute" or (path[-1:] == ("attribute",) and not on_key):
            return [(each, "attribute") for each in sorted(known_attributes(domain, op_type, opset) or ())]
        if kind == "value" or path[-1:] == ("input",):
            home = graph_of(path)
            found = {each.name for each in self.names() if is_definition(each) and is_within(home, graph_of(each.path))}
            return [(each, "value") for each in sorted(found)]
        if kind == "type":
            return [(f"{each.name}[]", "type") for each in DTYPES.values()]
        return []

    def _operator(self, path: Sequence[Key]) -> tuple[str, str, int | None]:
        """Domain, operator and imported opset of the node that a path is in."""
        node = self._node_of(path)
        domain = str(node.get("domain") or "")
        versions = [] if self.model is None else self.model.opset_import
        opset = max((each.version or 0 for each in versions if (each.domain or "") == domain), default=None)
        return domain, str(node.get("op_type") or ""), opset

    def signature(self, offset: int) -> tuple[str, list[str], int] | None:
        """The operator of the node at an offset as a function, its inputs, and the position of the one there."""
        path, _ = self.path_at(offset)
        found = operator_signature(*self._operator(path))
        if found is None:
            return None
        inputs, outputs = ([each.name for each in side] for side in (found.inputs, found.outputs))
        place = path[-1] if path[-2:-1] == ("input",) and isinstance(path[-1], int) else 0
        text = f"{found.op_type}({', '.join(inputs)}) -> {', '.join(outputs)}"
        return text, inputs, min(int(place), max(0, len(inputs) - 1))

    def folds(self) -> list[tuple[int, int]]:
        """First and last line of what each pair of brackets has between them, from 0."""
        opened: list[int] = []
        found = []
        for token in TOKEN.finditer(self.text):
            if token[4]:
                opened.append(token.start())
            elif token[5] and opened:
                first, last = self.place(opened.pop())[0], self.place(token.start())[0]
                is_alone = not self.text[self._starts[last] : token.start()].strip(" \t]}")
                if last - is_alone > first:
                    found.append((first, last - is_alone))
        return found

    def lenses(self) -> list[tuple[int, str]]:
        """Offsets of definitions of values, and what to say of each: how many use it, and its bytes."""
        values = [each for each in self.names() if each.kind == "value"]
        uses = Counter(each.name for each in values if each.path[-2:-1] == ("input",) and "node" in each.path)
        scope = self.index.main
        tensors = {} if scope is None or not isinstance(scope.graph, Graph) else scope.graph.initializer
        sizes = {each.name: size(needed_bytes(each) or 0) for each in tensors}
        return [
            (each.start, ", ".join([*([sizes[each.name]] if each.name in sizes else []),
                                    counted(uses[each.name], "consumer")]))
            for each in values if is_definition(each)
        ]  # fmt: skip

    def place_of(self, address: str) -> int:
        """The offset of an element of the model."""
        return self.offset(*locate(self._data, [address]).get(address, (1, 1)))

    def neighbours(self, ref: NodeRef, *, after: bool) -> list[NodeRef]:
        """The nodes that produce what a node consumes, or consume what it produces, each once."""
        if after:
            uses = [use for name in ref.node.output if name for use in self.index.consumers(ref.scope, name)]
            found = [NodeRef(use.scope, use.position) for use in uses if use.position is not None]
        else:
            found = [made for name in ref.node.input if name and (made := self.index.producer(ref.scope, name))]
        return list({each.address: each for each in found}.values())

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

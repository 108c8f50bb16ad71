"""A text while it is edited: its findings, and the element at a position, even if the text is not valid.

Places are offsets in characters. While a text has mistakes, answers about the model come from the last valid one, and
answers about the text from what can be read of it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace as replace_field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from onnxjson.codecs.reading.tree import Key
from onnxjson.editing.partial_inference import Part
from onnxjson.model.addresses import format_address
from onnxjson.model.dimensions import dimension_names
from onnxjson.model.document import Function, Graph, Model, Node, Tensor, Type, ValueInfo
from onnxjson.model.errors import Finding, OnnxJsonError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import operator_signature, plain_domain
from onnxjson.model.walking import Body, rebuild
from onnxjson.patterns.names import value_ref
from onnxjson.rendering.node import documentation_fields, documentation_lines, node_lines, opset_of, view_node
from onnxjson.rendering.tensor import tensor_lines, view_tensor
from onnxjson.running.checking import of_text, placed, read_text
from onnxjson.serving.text_names import (
    Named,
    ends_of_nodes,
    graph_of,
    is_definition,
    is_within,
    kind_of,
    unquoted,
    walk,
)
from onnxjson.storage import files
from onnxjson.storage.external import Resolver

_WIDTH: Final = 80
_MOST_STEPS: Final = 20_000
"""Strings and brackets of a node that are read while it is written."""

_MOST_INFERRED: Final = 20_000
"""Maximum nodes of a graph whose types are inferred during editing."""

Types = dict[str, dict[str, Type]]
"""Types by graph address and value name."""

_TEXT_OF_BINARY: Final = ".text.onnx.json"
"""Ending that the extension for Visual Studio Code adds to the path of a binary model for its text."""

_KEYS: Final = {"GRAPH": "g", "GRAPHS": "graphs"}
"""Keys of attributes in a text -> keys in addresses."""

LARGEST: Final = 64 << 20
"""Characters of a text that is read while it is edited."""


class EditedText:
    """One version of a text.

    Args:
        path: where the text is, or would be.
        previous: the version before, whose model is used while this one has none.
    """

    def __init__(self, text: str, path: Path, previous: "EditedText | None" = None, *, is_read: bool = True) -> None:
        self.path = path
        self.file = Path(str(path).removesuffix(_TEXT_OF_BINARY))
        """The file of the model: the path, or the binary whose text this is."""
        self._found: list[Finding] = []
        if len(text) > LARGEST:
            message = f"the text has more than {LARGEST >> 20:,} MiB, so the language server does not read it"
            self._found = [Finding(severity="warning", code="not-a-model", message=message, line=1, column=1)]
            text, previous = "", None
        self.text = text
        self._data = text.encode("utf-8", "surrogatepass")
        model = None
        if text and is_read:
            model, self._found = read_text(self._data)
        self.is_valid = model is not None
        self.is_other = '"onnxjson/' not in text
        """Whether it is JSON of another program."""
        self.inferred: Types = {} if previous is None else previous.inferred
        """Types that `infer` found, in this version or the one before."""
        if model is None and previous is not None and not self.is_other:
            model = previous.model
        self.model: Model | None = model
        """The model; that of the last valid version if this one is not valid."""
        known = None if previous is None or previous.model is not model else previous.index
        self.index: Index = known or _typed(Index(model or Model()), self.inferred)
        """Index of the model, with the inferred types."""
        self._names: list[Named] | None = None
        self._alphabets: dict[tuple[Key, ...], list[int]] = {}

    def findings(self) -> list[Finding]:
        """All findings with line and column, in their order."""
        return of_text(self._data, self.model if self.is_valid else None, self._found)

    def infer(self) -> list[Finding]:
        """Infer the types of values for later answers; return findings for nodes with conflicting types."""
        main = self.index.main
        if self.model is None or not self.is_valid or main is None or len(main.graph.node) > _MOST_INFERRED:
            return []
        try:
            inference = Part(Index(self.model), range(len(main.graph.node)), {}).infer({}, {}, self.path.parent)
        except OnnxJsonError:  # The inference of onnx fails on some unusual models.
            return []
        self.inferred, self.index = inference.types, _typed(Index(self.model), inference.types)
        wrong = [
            Finding(severity="error", code="check-shapes", message=text, address=address)
            for address, text in inference.complaints.items()
        ]
        return placed(self._data, wrong)

    def names(self, is_stale: Callable[[], bool] = lambda: False) -> list[Named]:
        """All names in the text, in the order of their places; none if it becomes stale meanwhile."""
        if self._names is None:
            names = []
            for start, end, path, is_key in walk(self.text, [], 0):
                if self.text[start] == '"' and (kind := kind_of(path, is_key=is_key)):
                    names.append(self._named(start, end, path, kind, is_key=is_key))
                    if not len(names) % 1024 and is_stale():
                        return []
            self._names = names
        return self._names

    @cached_property
    def places(self) -> dict[str, list[Named]]:
        """The places of each name."""
        places: dict[str, list[Named]] = {}
        for named in self.names():
            places.setdefault(named.name, []).append(named)
        return places

    def _named(self, start: int, end: int, path: tuple[Key, ...], kind: str, *, is_key: bool) -> Named:
        text = self.text[start + 1 : end - 1]
        return Named(str(path[-1]) if is_key else unquoted(text) if "\\" in text else text, kind, start, end, path)

    def _before(self, offset: int) -> int:
        """The number of names that begin before an offset or there."""
        return bisect_right(self.names(), offset, key=lambda each: each.start)

    def _walk_from(self, at: int) -> Iterator[tuple[int, int, tuple[Key, ...], bool]]:
        """Walk through the text from a name on; from the beginning for a negative number."""
        if at < 0:
            return walk(self.text, [], 0)
        first = self.names()[at]
        return walk(self.text, [*first.path[:-1], None if first.kind == "attribute" else first.path[-1]], first.start)

    def at(self, offset: int) -> tuple[int, int, tuple[Key, ...], bool]:
        """The string or bracket around or before an offset: start, end, path, and whether it is a key."""
        nearest: tuple[int, int, tuple[Key, ...], bool] = (0, 0, (), False)
        for token in self._walk_from(self._before(offset) - 1):
            if token[0] + (self.text[token[0]] == ",") > offset:
                break
            nearest = token
        start, _, path, _ = nearest
        commas = self.text.count(",", start + 1, offset) if self.text[start : start + 1] == "," else 0
        between = self.text[start:offset]
        if commas and between.strip(", \n") and "/" not in between:  # A long list is not walked comma by comma.
            start = self.text.rindex(",", start, offset)
            path = (*path[:-1], path[-1] + commas) if path and isinstance(path[-1], int) else path
            return start, start + 1, path, False
        return nearest

    def path_at(self, offset: int) -> tuple[tuple[Key, ...], bool]:
        """The path of the innermost value around an offset, and whether its key, not the value, is there."""
        _, end, path, is_key = self.at(offset)
        return path, is_key and offset <= end

    def name_at(self, offset: int) -> Named | None:
        """The name whose string is at an offset; in a type, the dimension that is there."""
        start, end, path, is_key = self.at(offset)
        kind = kind_of(path, is_key=is_key)
        if not kind or offset > end or self.text[start] != '"':
            return None
        named = self._named(start, end, path, kind, is_key=is_key)
        return next((each for each in self._dimensions(named) if each.start < offset < each.end), named)

    def _dimensions(self, named: Named) -> list[Named]:
        """The dimensions with a name in a type."""
        if named.kind != "type":
            return []
        dimensions = re.finditer(r"(?<=[\[,])([^\W\d]\w*)(?=[\],])", self.text[named.start : named.end])
        return [
            Named(each[1], "dimension", named.start + each.start() - 1, named.start + each.end() + 1, named.path)
            for each in dimensions
        ]

    def same_name(self, named: Named) -> list[Named]:
        """All places of a value, node or dimension with this name, in the graphs in which it is known."""
        names = self.names()
        if named.kind == "dimension":
            types = [each for each in names if each.kind == "type" and named.name in each.name]
            return [each for place in types for each in self._dimensions(place) if each.name == named.name]
        places = [each for each in self.places.get(named.name, ()) if each.kind == named.kind]
        if named.kind != "value":
            return places
        defined = [each for each in places if is_definition(each)]
        home = max((graph_of(each.path) for each in defined if is_within(named.path, graph_of(each.path))), key=len,
                   default=())  # fmt: skip
        hidden = [graph_of(each.path) for each in defined if len(graph_of(each.path)) > len(home)]
        return [
            each
            for each in places
            if is_within(each.path, home) and not any(is_within(each.path, graph) for graph in hidden)
        ]

    def definition(self, named: Named) -> Named | None:
        """The definition of a value: the output of a node, an initializer, or an input."""
        places = [each for each in self.same_name(named) if is_definition(each)]
        return min(places, key=lambda each: "node" not in each.path[-4:], default=None)

    @cached_property
    def defined(self) -> dict[tuple[Key, ...], list[Named]]:
        """The definitions of values in each graph, in their order."""
        definitions: dict[tuple[Key, ...], list[Named]] = {}
        for named in self.names():
            if is_definition(named):
                definitions.setdefault(graph_of(named.path), []).append(named)
        return definitions

    def alphabet(self, graph: tuple[Key, ...]) -> list[int]:
        """The numbers of the definitions in a graph, in the order of their names."""
        if graph not in self._alphabets:
            own = self.defined[graph]
            self._alphabets[graph] = sorted(range(len(own)), key=lambda each: own[each].name)
        return self._alphabets[graph]

    def node_at(self, path: Sequence[Key]) -> NodeRef | None:
        """The node of the model whose text a path is in."""
        for end in reversed(ends_of_nodes(path)):
            scope = self.index.scope(format_address([*_keys_of_address(path[: end - 2])]))
            if scope is not None and int(path[end - 1]) < len(scope.graph.node):
                return NodeRef(scope, int(path[end - 1]))
        return None

    def description(self, offset: int) -> list[str]:
        """What is known about the element at an offset, as `onnxjson show` prints it."""
        if self.model is None:
            return []
        named = self.name_at(offset)
        path, _ = self.path_at(offset)
        if named is not None and named.kind == "value":
            origin = self.definition(named)
            if origin is not None and "node" not in origin.path[-4:-3]:
                return self._tensor(named.name, self.scope_at(path))
            path = path if origin is None else origin.path
        ref = self.node_at(path)
        if ref is None:
            return []
        if named is not None and named.kind in ("operator", "attribute"):
            return documentation(ref.node.domain, ref.node.op_type, opset_of(self.model, ref))
        return node_lines(view_node(self.model, self.index, ref, self.path.name, None), _WIDTH)

    def _tensor(self, name: str, scope: Scope | None) -> list[str]:
        home = None if scope is None else Index.defining_scope(scope, name)
        home = home or next((each for each in self.index.scopes if each.defines(name)), None)
        if home is None:
            return []
        ref = value_ref(home, name)
        if self.file != self.path and isinstance(ref.tensor, Tensor):
            with suppress(OnnxJsonError):  # Then only its sha256 is known.
                alone = Model(graph=Graph(initializer=(ref.tensor,)))
                bound = files.bind_digests(alone, folder=None, weights_from=self.file).graph
                ref = replace_field(ref, tensor=bound.initializer[0] if bound else None)
        view = view_tensor(self.index, ref, self.path.name, Resolver(self.path.parent), most=8)
        return tensor_lines(view, _WIDTH)

    def node_written_at(self, offset: int) -> Node:
        """The node around an offset as far as it is written: operator, domain and inputs."""
        path, _ = self.path_at(offset)
        ends = ends_of_nodes(path)
        if not ends:
            return Node()
        written: dict[Key, str] = {}
        inputs: dict[int, str] = {}
        for start, end, inner_path, is_key in self._block(path[: ends[-1]], offset):
            if self.text[start] == '"' and not is_key:
                text = unquoted(self.text[start + 1 : end - 1])
                match inner_path:
                    case ("op_type" | "domain",):
                        written[inner_path[0]] = text
                    case ("input", int(slot)):
                        inputs[slot] = text
        given = tuple([inputs.get(slot, "") for slot in range(max(inputs, default=-1) + 1)])
        return Node(op_type=written.get("op_type"), domain=written.get("domain"), input=given)

    def keys_beside(self, offset: int) -> set[Key]:
        """The other keys of the block whose key is at an offset."""
        path, on_key = self.path_at(offset)
        block = self._block(path[:-1] if on_key else path, offset)
        return {own[0] for start, end, own, is_key in block if is_key and len(own) == 1 and not start <= offset <= end}

    def _block(self, block: tuple[Key, ...], offset: int) -> Iterator[tuple[int, int, tuple[Key, ...], bool]]:
        """Yield strings and brackets of the block with a path around an offset; paths are relative to the block."""
        for start, end, path, is_key in self.walk_around(block, offset):
            if is_within(path, block):
                yield start, end, path[len(block) :], is_key
            elif start > offset:
                break

    def walk_around(self, block: tuple[Key, ...], offset: int) -> Iterator[tuple[int, int, tuple[Key, ...], bool]]:
        """Walk a limited number of steps from the last name before a block with this path around an offset."""
        at, names = self._before(offset) - 1, self.names()
        while at >= 0 and is_within(names[at].path, block):
            at -= 1
        return islice(self._walk_from(at), _MOST_STEPS)

    def opset(self, domain: str | None) -> int | None:
        """The version of a domain's operators that the model imports."""
        imports = [] if self.model is None else self.model.opset_import
        wanted = plain_domain(domain)
        return max((each.version or 0 for each in imports if plain_domain(each.domain) == wanted), default=None)

    def signature(self, offset: int) -> tuple[str, list[str], int] | None:
        """The operator of the node at an offset as a function, its inputs, and the position of the one there."""
        node, (path, _) = self.node_written_at(offset), self.path_at(offset)
        operator = operator_signature(node.domain, node.op_type, self.opset(node.domain))
        if operator is None:
            return None
        inputs, outputs = ([each.name for each in side] for side in (operator.inputs, operator.outputs))
        place = path[-1] if path[-2:-1] == ("input",) and isinstance(path[-1], int) else 0
        text = f"{operator.op_type}({', '.join(inputs)}) -> {', '.join(outputs)}"
        return text, inputs, min(int(place), max(0, len(inputs) - 1))

    def scope_at(self, path: Sequence[Key]) -> Scope | None:
        """The graph of the model that a path is in."""
        ref = self.node_at(path)
        return self.index.main if ref is None else ref.scope

    def place_of(self, ref: NodeRef) -> Named | None:
        """The first output of a node."""
        found = [each for name in ref.node.output if name for each in self.places.get(name, ()) if is_definition(each)]
        return next((each for each in found if self.node_at(each.path) == ref), None)

    def dimension_names(self) -> list[str]:
        """The names of dimensions in the model."""
        return [] if self.model is None else list(dimension_names(self.model))


def _keys_of_address(path: Sequence[Key]) -> Iterator[Key]:
    """Yield the keys of an address for those of a path in a text, which omits the field of an expected type."""
    for at, key in enumerate(path):
        if key != "AttributeProto":
            yield _KEYS.get(str(key), key)
        is_name = at > 1 and path[at - 1] == "attribute" and isinstance(path[at - 2], int)
        if is_name and next(iter(path[at + 1 :]), "node") == "node":
            yield "g"


def _typed(index: Index, types: Types) -> Index:
    """Return an index of the model with inferred types of values whose type the model does not state."""

    def add(scope: Scope, graph: Body) -> Body:
        known = () if isinstance(graph, Function) else types.get(scope.address, {}).items()
        new = [ValueInfo(name=name, type=kind) for name, kind in known
               if name in scope.producers and name not in scope.types]  # fmt: skip
        return replace(graph, value_info=(*graph.value_info, *new)) if new else graph

    return Index(rebuild(index, add)) if types else index


def documentation(domain: str | None, op_type: str | None, opset: int | None) -> list[str]:
    """The documentation of an operator as `onnxjson show` prints it; nothing for an unknown one."""
    found = operator_signature(domain, op_type, opset)
    return [] if found is None else documentation_lines(documentation_fields(found), _WIDTH)

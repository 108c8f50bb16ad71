"""What an editor offers at a place of a text: names that complete it, edits of what is there; the changes they make."""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from onnxjson.codecs.node_blocks import canonical_node
from onnxjson.codecs.reading import shapes
from onnxjson.codecs.reading.tree import Key
from onnxjson.codecs.text_file import read_bytes
from onnxjson.diffing.line_changes import changes
from onnxjson.editing.applying import run
from onnxjson.editing.attributes import attribute_of
from onnxjson.editing.catalogue import edit_named
from onnxjson.editing.declaration import Edit, summary
from onnxjson.editing.names import NameKind, Rename
from onnxjson.model.display import visible
from onnxjson.model.document import Model, Node, Tensor
from onnxjson.model.dtypes import DTYPES
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES
from onnxjson.model.operator_checks import dtype_mistake, dtype_of_type
from onnxjson.model.operators import known_operators, operator_signature, plain_domain
from onnxjson.model.walking import replace_at
from onnxjson.rendering.node import opset_of
from onnxjson.rendering.values import value_type
from onnxjson.serving.edited_text import EditedText
from onnxjson.serving.text_names import Named, ends_of_nodes, graph_of, is_within, kind_of
from onnxjson.storage.api import dumps

MOST: Final = 200
"""Values that are offered for one place; while there are more, the editor asks again with each character."""

_REST_OF_WORD: Final = re.compile(r"\w*")
_REST: Final = re.compile(r'(?:[^"\\\n]|\\.)*(?="\s*(?:[]},:]|$))', re.MULTILINE)
"""Text after the cursor in a closed string."""

_LAST: Final = "\U0010ffff"
"""The last character there is."""

_BLOCKS: Final = {
    "node": shapes.NodeText, "functions": shapes.FunctionText, "initializer": shapes.TensorText,
    "input": shapes.ValueText, "output": shapes.ValueText, "value_info": shapes.ValueText,
}  # fmt: skip

_KINDS: Final[dict[str, NameKind]] = {"node": "node", "dimension": "dim"}
_FIRST_VALUES: Final = {"INT": 1, "INTS": [1, 1], "FLOAT": 1.0, "FLOATS": [1.0], "STRING": "", "STRINGS": [""]}
"""Initial value of a required attribute, by type."""

_DEEPEST: Final = 200
"""Maximum number of columns before a formatted node, however deep it is."""


class Offer(NamedTuple):
    """A name that can be written at a place."""

    name: str
    kind: str
    """As of `Named`, or "key"."""
    detail: str = ""
    operator: tuple[str, str, int | None] | None = None
    """Domain, operator and opset whose documentation describes it."""


def offers(text: EditedText, offset: int) -> list[Offer]:
    """Return what can be written at an offset, best first."""
    path, on_key = text.path_at(offset)
    kind = kind_of(path, is_key=on_key)
    if on_key and not kind:
        given = text.keys_beside(offset)
        return [Offer(name, "key") for name in _keys(path) if name not in given]
    node = text.node_written_at(offset)
    domain, opset = plain_domain(node.domain), text.opset(node.domain)
    if kind == "operator":
        return [Offer(each, kind, "", (domain, each, opset)) for each in sorted(known_operators(domain))]
    signature = operator_signature(domain, node.op_type, opset)
    if kind == "attribute" or (path[-1:] == ("attribute",) and not on_key):
        operator, given = (domain, node.op_type or "", opset), text.keys_beside(offset)
        return [
            Offer(formal.name, "attribute", f"{ATTRIBUTE_TYPE_NAMES[formal.type]} {detail}".rstrip(), operator)
            for formal in (signature.attributes.values() if signature is not None else ())
            if formal.name not in given
            for detail in ["required" if formal.required else "" if formal.default is None else f"= {formal.default}"]
        ]
    if kind == "value" or path[-1:] == ("input",):
        return list(_values(text, offset, path, node))
    if kind == "type":
        if "[" in text.text[text.at(offset)[0] : offset]:
            return [Offer(each, "dimension") for each in text.dimension_names()]
        return [Offer(f"{each.name}[]", "type") for number, each in DTYPES.items() if number]
    return []


def replaced(text: EditedText, offset: int, kind: str) -> tuple[int, int, Callable[[str], str]]:
    """Return the range around an offset that an offer of a kind replaces, and a function that writes its name there."""
    begin, end = text.at(offset)[:2]
    content = text.text
    is_string = content[begin : begin + 1] == '"' and begin < offset <= end
    if not is_string or (offset == end and end - begin > 1 and content[end - 1] == '"'):
        return _word_start(content, offset, 0), offset, _quoted
    if kind in ("dimension", "type"):
        start, end = _word_start(content, offset, begin + 1), _REST_OF_WORD.match(content, offset).end()  # type: ignore[union-attr]
        unwanted = "[]" if content[end : end + 1] == "[" else ""
        return start, end, lambda name: _quoted(name.removesuffix(unwanted))[1:-1]
    rest = _REST.match(content, offset)
    return begin + 1, offset if rest is None else rest.end(), lambda name: _quoted(name)[1:-1]


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=not name.isprintable())


def _word_start(text: str, offset: int, least: int) -> int:
    """Where the word before an offset begins."""
    while offset > least and (text[offset - 1].isalnum() or text[offset - 1] in "_./"):
        offset -= 1
    return offset


def _keys(path: Sequence[Key]) -> tuple[str, ...]:
    """The keys of the block that a key is in."""
    if len(path) < 2:
        return shapes.ModelText.__struct_fields__
    if path[-2] == "graph":
        return shapes.GraphText.__struct_fields__
    kind = _BLOCKS.get(str(path[-3])) if len(path) > 2 and isinstance(path[-2], int) else None
    return () if kind is None else kind.__struct_fields__


def _values(text: EditedText, offset: int, path: tuple[Key, ...], node: Node) -> Iterator[Offer]:
    """Values of the graph and of those around it: those with a dtype that fits, then others; the latest first."""
    scope, home, begin = text.scope_at(path), graph_of(path), text.at(offset)[0]
    typed = text.text[begin + 1 : offset] if begin < offset else ""
    signature = operator_signature(node.domain, node.op_type, text.opset(node.domain))
    slot = path[-1] if path[-2:-1] == ("input",) and isinstance(path[-1], int) else 0
    given = [*node.input, *[""] * (slot + 1 - len(node.input))]

    def dtype_of(name: str) -> int | None:
        kind = None if scope is None else text.index.type_of(scope, name)
        if kind is not None or scope is None:
            return dtype_of_type(kind)
        defining = text.index.defining_scope(scope, name)
        constant = None if defining is None else defining.initializer(name)
        return constant.data_type if isinstance(constant, Tensor) else None

    def rank(named: Named) -> int:
        name = named.name
        if named.path[:-2] == path[:-2] and path[-2:-1] == ("input",):
            return 3  # produced by this node
        if named.start > offset and "node" in named.path[-4:]:
            return 3  # made later
        if signature is None or dtype_of(name) is None or path[-2:-1] == ("output",):
            return 1
        inputs = (*given[:slot], name, *given[slot + 1 :])
        return 0 if dtype_mistake(msgspec.structs.replace(node, input=inputs), signature, dtype_of) is None else 2

    groups = [_nearest(text, graph, typed, offset) for graph in text.defined if is_within(home, graph)]
    if not text.is_valid and scope is not None:  # Text after an incomplete list has the wrong path.
        groups.append(Named(name, "value", 0, 0, ()) for name in islice(chain(scope.initializers, scope.inputs), MOST))
    for each in sorted({each.name: each for each in chain.from_iterable(groups)}.values(), key=rank)[:MOST]:
        detail = None if scope is None else value_type(scope, each.name)
        yield Offer(each.name, "value", visible(detail or "", 80))


def _nearest(text: EditedText, graph: tuple[Key, ...], typed: str, offset: int) -> Iterator[Named]:
    """Values that a graph defines, the last ones before an offset first; of very many those that begin as typed."""
    known = text.defined[graph]
    at = bisect_left(known, offset, key=lambda each: each.start)
    places: Iterable[int] = chain(range(at - 1, -1, -1), range(at, len(known)))
    if len(known) > MOST and typed:
        order = text.alphabet(graph)
        first, last = (bisect_left(order, end, key=lambda each: known[each].name) for end in (typed, typed + _LAST))
        few = sorted(order[first:last], key=lambda each: abs(each - at)) if last - first <= MOST else None
        places = few if few is not None else (each for each in places if known[each].name.startswith(typed))
    return (known[each] for each in islice(places, MOST))


def fitting_edits(text: EditedText, offset: int) -> list[tuple[str, Edit]]:
    """Return the edits that need nothing but the element at an offset, each with its title."""
    if not text.is_valid:
        return []
    named, ref = text.name_at(offset), text.node_at(text.path_at(offset)[0])
    fitting: list[tuple[str, dict[str, Any]]] = []
    if named is not None and named.kind == "value":
        fitting += [(edit, {"tensor": named.name}) for edit in _edits_of_value(text, named)]
    if ref is not None:
        names = ["delete-node", *(["swap-inputs"] if len(ref.node.input) > 1 else [])]
        names += ["constants-to-initializers"] if ref.node.op_type == "Constant" else []
        fitting += [(edit, {"node": f"@{ref.address}"}) for edit in names]
        fitting += [("name-nodes", {})] if not ref.node.name else []
    fitting += [(edit, {}) for edit in ("infer-shapes", "prune")]
    edits = [(edit_named(name), given) for name, given in fitting]
    return [(summary(edit), edit(**given)) for edit, given in edits]


def _edits_of_value(text: EditedText, named: Named) -> Iterator[str]:
    scope = text.index.main
    if scope is None:
        return
    yield "remove-output" if named.name in scope.output_names else "add-output"
    if named.name in scope.initializers:
        yield from ("initializers-to-inputs", "initializers-to-constants")
    elif named.name in scope.inputs and not text.index.consumers(scope, named.name):
        yield "remove-input"


class Replacement(NamedTuple):
    """Characters from `start` to `end` of a text, and what replaces them."""

    start: int
    end: int
    text: str


def changed(text: EditedText, edits: list[Edit]) -> list[Replacement]:
    """The replacements by which edits change a valid text, in its canonical form; errors are those of the edits."""
    if not text.is_valid or text.model is None:
        return []
    return _turned_into(text, run(text.model, edits, model_folder=text.path.parent).model if edits else text.model)


def renamed(text: EditedText, named: Named, name: str) -> list[Replacement]:
    """The replacements by which the edit `rename` changes a text; errors are those of the edit."""
    return changed(text, [Rename(kind=_KINDS.get(named.kind, "tensor"), names={named.name: name})])


def formatted_nodes(text: EditedText, start: int, end: int) -> list[Replacement]:
    """The replacements that make the outermost valid nodes of a range canonical, in a text with errors."""
    replacements: list[Replacement] = []
    opened: dict[tuple[Key, ...], int] = {}
    place = text.path_at(start)[0]
    for first, last, path, _ in text.walk_around(place[: (*ends_of_nodes(place), len(place))[0]], start):
        if first > end and not opened:
            break
        if path[-2:-1] != ("node",) or not isinstance(path[-1], int):
            continue
        if text.text[first] == "{":
            opened[path] = first
        elif text.text[first] == "}" and (begin := opened.pop(path, end + 1)) <= end and last > start:
            new = canonical_node(text.text[begin:last], _indent(path))
            if new is not None:
                replacements = [each for each in replacements if each.end < begin]  # without nodes of its subgraphs
                replacements += [Replacement(begin, last, new)] if new != text.text[begin:last] else []
    return replacements


def _indent(path: Sequence[Key]) -> int:
    """Columns before a node in the canonical text: two for each level, but one for each block of attributes."""
    shared = sum([each in ("AttributeProto", "attribute_proto") for each in path])
    return min(max(2 * (len(path) - 1 - shared) - 3 * list(path).count("attribute"), 0), _DEEPEST)


def with_attribute(text: EditedText, offset: int, name: str) -> list[Replacement]:
    """The replacements that add an attribute to the node at an offset, with a value of its type."""
    ref = text.node_at(text.path_at(offset)[0])
    if ref is None or text.model is None or not text.is_valid:
        return []
    found = operator_signature(ref.node.domain, ref.node.op_type, opset_of(text.model, ref))
    kind = None if found is None or name not in found.attributes else found.attributes[name].type
    value = _FIRST_VALUES.get(ATTRIBUTE_TYPE_NAMES.get(kind or 0, ""))
    if kind is None or value is None:
        return []
    new = attribute_of(name, value, {name: kind}, ref.node.op_type or "", "set-attribute")
    node = replace(ref.node, attribute=(*ref.node.attribute, new))
    return _turned_into(text, replace_at(text.model, ref.address, node)[""])  # type: ignore[arg-type]


def without_orphans(text: EditedText) -> list[Replacement]:
    """The replacements that drop metadata of elements which no longer exist, as `--drop-orphans` does."""
    data = text.text.encode("utf-8", "surrogatepass")
    return _turned_into(text, read_bytes(data, drop_orphans=True, conflicted=True).model)


def _turned_into(text: EditedText, model: Model) -> list[Replacement]:
    old, new = (each.encode("utf-8", "surrogatepass").splitlines(keepends=True)
                for each in (text.text, dumps(model, weights="keep")))  # fmt: skip
    starts = [0, *accumulate([len(line.decode("utf-8", "surrogatepass")) for line in old])]
    return [
        Replacement(starts[each.old_start], starts[each.old_end],
                    b"".join(new[each.new_start : each.new_end]).decode("utf-8", "surrogatepass"))
        for each in changes(old, new)
    ]  # fmt: skip

"""Terms of selectors (`onnxjson.patterns.selectors`): the grammar, and the properties of nodes that terms compare."""

import re
import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Node, SparseTensorType, TensorType, Type
from onnxjson.model.dtypes import float32_text
from onnxjson.model.errors import SelectorError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.messages import ATTRIBUTE_PAYLOADS, value_of
from onnxjson.model.operators import plain_domain
from onnxjson.model.types import format_data_type, format_type, innermost

OUTLINE_KEYS: Final = ("block", "line", "repeat")
"""The keys of terms that select nodes of lines of the outline."""

_NODE_KEYS: Final = ("op", "attr", "name", "output", "input", "domain", "dtype", "shape", "scope", "match")

KEYS: Final = (*_NODE_KEYS, *OUTLINE_KEYS)
"""The keys of terms, besides ``in``."""

_KEY: Final = re.compile(rf"({'|'.join((*KEYS, 'in'))}):")
_HAS_KEY: Final = re.compile(rf"(?:^|\s)!?{_KEY.pattern}")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(?=[\s=]|$)', re.S)
_IN_SINGLE: Final = re.compile(r"'([^']*)'(?=\s|$)")
_PLAIN: Final = re.compile(r"[^\s\"*?=\\!:@]+")
_TO_SPACE: Final = re.compile(r"\S*")
_TO_EQUALS: Final = re.compile(r"[^\s=]*")
_SPACE: Final = re.compile(r"\s*")
_LIMITED_REGEX: Final = re.compile(r"(!?)in:main\s+re:")


class Value(NamedTuple):
    """A name or value to look for."""

    text: str
    quoted: bool = False
    """Whether it was in quotes, so that ``*`` and ``?`` are literal."""


class Term(NamedTuple):
    """One condition on a node."""

    key: str
    """One of `KEYS`; "" for a name without a key."""
    value: Value
    negated: bool = False
    attribute_value: Value | None = None
    """The VALUE in ``attr:NAME=VALUE``; `value` is the NAME."""

    def __str__(self) -> str:
        tail = "" if self.attribute_value is None else f"={_spelled_value(self.attribute_value)}"
        return ("!" if self.negated else "") + (f"{self.key}:" if self.key else "") + _spelled_value(self.value) + tail


class Selector(NamedTuple):
    """A selector; exactly one of `address`, `regex`, `name` and `terms` is set."""

    text: str
    """The text of the user."""
    address: str | None = None
    regex: str | None = None
    name: Value | None = None
    terms: tuple[Term, ...] | None = None
    in_main: bool | None = None
    """Whether it is limited to the main graph (True) or to all others (False)."""


def spelled(key: str, text: str) -> str:
    """Return the term for exactly this text, in quotes where it needs them."""
    return f"{key}:" + (text if _PLAIN.fullmatch(text) else in_quotes(text))


def has_terms(text: str) -> bool:
    """Return whether a text has terms such as ``op:Conv``; a name may have them too."""
    return _HAS_KEY.search(text) is not None


def parse(text: str) -> Selector:
    """Parse the text of a selector.

    Raises:
        SelectorError: the selector is empty or misspelled.
    """
    if text.startswith("@"):
        return Selector(text, address=text[1:])
    if text.startswith("re:"):
        return Selector(text, regex=text[3:])
    if limited := _LIMITED_REGEX.match(text):
        return Selector(text, regex=text[limited.end() :], in_main=not limited[1])
    if not text.strip():
        raise SelectorError('the selector is empty; name a node or tensor, or write terms such as "op:Conv"')
    if quoted := _QUOTED.fullmatch(text.strip()):
        return Selector(text, name=Value(_unescaped(quoted[1]), quoted=True))
    if not has_terms(text):
        return Selector(text, name=Value(text))
    terms = _Words(text).terms()
    places = [term for term in terms if term.key == "in"]
    if len({term.negated for term in places}) > 1:
        raise SelectorError(f"{_called(text)} asks for nodes both inside and outside the main graph")
    others = tuple([term for term in terms if term.key != "in"])
    in_main = not places[0].negated if places else None
    if len(others) == 1 and not others[0].key and not others[0].negated:
        return Selector(text, name=others[0].value, in_main=in_main)
    return Selector(text, terms=others, in_main=in_main)


def respelled(text: str) -> str:
    """Return how to write what is meant by a text that is no name, or ""."""
    key, _, value = text.replace("=", ":", 1).partition(":")
    if key.lower() in KEYS and value:
        return f"write {visible(spelled(key.lower(), value))}"
    if text in ("and", "&&", "&"):
        return "leave it out: nodes match every term"
    if text in ("or", "||", "|"):
        return "for one of several operators write match:'(Conv|Gemm)'"
    position = text.removeprefix("node:").removeprefix("#")
    return f"a node by its position is @/graph/node/{position}" if position.isdecimal() else ""


class _Words:
    """A scan over the words of a selector that has terms."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def terms(self) -> list[Term]:
        """Return the terms, including ``in:``.

        Raises:
            SelectorError: one is misspelled, or several have no key.
        """
        terms: list[Term] = []
        self._take(_SPACE)
        while self._at < len(self._text):
            terms.append(self._term())
            self._take(_SPACE)
        names = [str(term) for term in terms if not term.key]
        if len(names) > 1:
            joined = visible(" ".join(names))
            raise SelectorError(
                f"{_called(self._text)} has {len(names)} names without a key; put a name with spaces in quotes: "
                f'"{joined}"'
            )
        return terms

    def _term(self) -> Term:
        negated = self._text.startswith("!", self._at)
        self._at += negated
        key = _KEY.match(self._text, self._at)
        if key is None:
            return Term("", self._value(_TO_SPACE), negated)
        self._at = key.end()
        if key[1] == "match" and (single := _IN_SINGLE.match(self._text, self._at)):
            self._at = single.end()
            return Term("match", Value(single[1], quoted=True), negated)
        value = self._value(_TO_EQUALS if key[1] == "attr" else _TO_SPACE)
        if not value.text and not value.quoted:
            raise SelectorError(f'{_called(self._text)}: nothing follows {key[0]} (for an empty text write {key[0]}"")')
        if key[1] == "in" and value.text != "main":
            raise SelectorError(
                f"{_called(self._text)}: the only scope is in:main, the main graph without subgraphs and functions"
            )
        if key[1] == "attr" and self._text.startswith("=", self._at):
            self._at += 1
            return Term("attr", value, negated, self._value(_TO_SPACE))
        return Term(key[1], value, negated)

    def _value(self, plain: re.Pattern[str]) -> Value:
        if not self._text.startswith('"', self._at):
            return Value(self._take(plain))
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is None:
            raise SelectorError(
                f"{_called(self._text)}: the quote at character {self._at} is not closed before a space"
            )
        self._at = quoted.end()
        return Value(_unescaped(quoted[1]), quoted=True)

    def _take(self, pattern: re.Pattern[str]) -> str:
        taken = pattern.match(self._text, self._at)
        assert taken is not None  # each of these patterns also matches the empty text
        self._at = taken.end()
        return taken[0]


def _called(text: str) -> str:
    return f"the selector {visible(text)}"


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.S)


def in_quotes(text: str) -> str:
    """Return the selector of exactly this name."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _spelled_value(value: Value) -> str:
    return in_quotes(value.text) if value.quoted else value.text


_NAMESPACE: Final = "namespace"
"""The key of metadata_props in which PyTorch's exporter keeps ``name: class/name: class/...``."""

_SEPARATORS: Final = re.compile(r"[/.]+")

_LONGEST_SCOPED: Final = 4096
"""Characters of a name up to which all its scopes are listed: their total length grows with the square of it."""


def property_texts(ref: NodeRef, key: str) -> Iterable[str]:
    """Return the texts that a term ``key:VALUE`` is compared with; `onnxjson.patterns.selector_terms` has the keys."""
    node = ref.node
    match key:
        case "op" | "name":
            return ((node.op_type if key == "op" else node.name) or "",)
        case "output" | "input":
            return node.output if key == "output" else node.input
        case "domain":
            return (domain_name(node.domain),)
        case "dtype":
            return [_dtype(Index.type_of(ref.scope, name)) for name in node.output if name]
        case "shape":
            return [_shape(Index.type_of(ref.scope, name)) for name in node.output if name]
        case _:
            return scopes_of(node)


def outline_nodes(index: Index, key: str) -> dict[str, list[NodeRef]]:
    """Return the nodes by the texts that a term of the outline is compared with, in the order of the lines.

    ``block:`` has the blocks that lines show, ``line:`` their numbers in ``show --outline``, from 1, and ``repeat:``
    the names of repeats without ``{i}``, whole and without the scopes around, alone and with a round in brackets,
    from 0.
    """
    by_text: dict[str, list[NodeRef]] = {}
    for number, (_, line) in enumerate(index.model.outline(infer=True).walk(), 1):
        texts: dict[str, Sequence[NodeRef]] = {}
        if key == "block":
            texts = dict.fromkeys(line.blocks, line.nodes)
        elif key == "line":
            texts = {str(number): line.nodes}
        elif line.repeat > 1:
            name = line.name.replace("{i}", "").rstrip("._-")
            for called in dict.fromkeys((name, _SEPARATORS.split(name)[-1])):
                texts[called] = line.nodes
                for place in range(line.repeat):  # that of each round of a repeat around it
                    texts[f"{called}[{place}]"] = [ref for nodes in line.rounds[place :: line.repeat] for ref in nodes]
        for text, refs in texts.items():
            same = [NodeRef(index.by_address[ref.scope.address], ref.position) for ref in refs]
            by_text.setdefault(text, []).extend(same)
    return by_text


def nodes_having(index: Index, key: str, text: str) -> Sequence[NodeRef]:
    """Return the nodes that satisfy a term ``key:TEXT`` without wildcards, in the order of the file."""
    if key in ("op", "name", "output", "input"):
        return index.nodes_with("op_type" if key == "op" else key, text)
    return [ref for ref in index.node_refs if text in property_texts(ref, key)]


def domain_name(domain: str | None) -> str:
    """Return a domain as a selector spells it: ``ai.onnx`` for the default one."""
    return plain_domain(domain) or "ai.onnx"


def plain_scope(text: str) -> str:
    """Return a scope with single slashes between its parts, however it separates them."""
    return "/".join([part for part in _SEPARATORS.split(text) if part])


def scopes_of(node: Node) -> list[str]:
    """Return the scopes of a node, outermost first: ``layer1`` and ``layer1/conv`` for ``/layer1/conv/Conv``.

    The metadata of PyTorch's exporter counts where it is there, else the name, without its last part; of a
    very long name, only the innermost scope.
    """
    stated = next((entry.value for entry in node.metadata_props if entry.key == _NAMESPACE and entry.value), None)
    if stated is None:
        name = node.name or ""
        path = [part for part in _SEPARATORS.split(name) if part][:-1]
        first = 0 if len(name) <= _LONGEST_SCOPED else max(0, len(path) - 1)
        return ["/".join(path[: end + 1]) for end in range(first, len(path))]
    names = [plain_scope(part.partition(":")[0]) for part in stated.split("/")[:-1]]
    return [name for name in names if name]


def _dtype(value_type: Type | None) -> str:
    leaf = _leaf(value_type)
    return "" if leaf is None else format_data_type(leaf.elem_type or 0)


def _shape(value_type: Type | None) -> str:
    """Return the dims of a type: ``1,N,32``, ``?`` for an unknown one, ``[]`` for a scalar; "" without a shape."""
    leaf = _leaf(value_type)
    if leaf is None or leaf.shape is None:
        return ""
    dims = [str(each.dim_value) if each.dim_value is not None else each.dim_param or "?" for each in leaf.shape.dim]
    return ",".join(dims) or "[]"


def has_dims(shape: str, wanted: str) -> bool:
    """Whether a shape has the wanted dims, of which ``*`` is any one dim: ``1,*,32``, also in brackets."""
    dims = [each.strip() for each in wanted.strip("[]").split(",")]
    found = shape.strip("[]").split(",")
    is_like = len(found) == len(dims) and all([one in (other, "*") for one, other in zip(dims, found, strict=True)])
    return is_like and bool(shape) and (shape == "[]") == (dims == [""])


def _leaf(value_type: Type | None) -> TensorType | SparseTensorType | None:
    inner = innermost(value_type)
    while inner is not None and inner.map_type is not None:
        inner = innermost(inner.map_type.value_type)
    return None if inner is None else inner.tensor_type or inner.sparse_tensor_type


def attribute_text(attribute: Attribute) -> str | None:
    """Return the value of an attribute as a selector spells it: ``2``, ``0.1``, ``NOTSET``, ``[1,1]``.

    None for tensors, graphs, lists of those, and for references to attributes of the function around.
    """
    kind = attribute.type or 0
    if attribute.ref_attr_name or kind not in ATTRIBUTE_PAYLOADS:
        return None
    match ATTRIBUTE_PAYLOADS[kind]:
        case "f":
            return None if attribute.f is None else _float_text(attribute.f)
        case "floats":
            data = attribute.floats
            return _listed([_float_text(data[at : at + 4]) for at in range(0, len(data), 4)])
        case "i" | "s":
            value = value_of(attribute)
            return None if value is None else str(value)
        case "ints" | "strings":
            return _listed([str(each) for each in value_of(attribute)])
        case "tp":
            return None if attribute.tp is None else format_type(attribute.tp)
        case _:
            return None


def has_value(attribute: Attribute, wanted: str) -> bool:
    """Whether an attribute has the value that a selector spells; any spelling of floats and any spaces in lists do."""
    text = attribute_text(attribute)
    if text is None:
        return False
    if text == wanted:
        return True
    payload = ATTRIBUTE_PAYLOADS[attribute.type or 0]
    if payload in ("ints", "strings"):
        return text == re.sub(r"\s+", "", wanted)
    if payload in ("f", "floats"):
        numbers = wanted if payload == "f" else wanted.strip().removeprefix("[").removesuffix("]")
        return _packed(numbers.split(",") if numbers.strip() else []) == (attribute.f or attribute.floats)
    return False


def _packed(numbers: list[str]) -> bytes | None:
    try:
        return struct.pack(f"<{len(numbers)}f", *map(float, numbers))
    except (ValueError, OverflowError):
        return None


def _float_text(data: bytes) -> str:
    return float32_text(data).strip('"')


def _listed(texts: list[str]) -> str:
    return f"[{','.join(texts)}]"

"""Selectors: how a user names nodes and tensors of a model.

::

    @/graph/node/3            the element at an address (onnxjson.model.addresses)
    re:/layer[12]/.*          a regular expression for whole names (onnxjson.patterns.names)
    op:Conv attr:group=1      terms, all of which must hold; ! before a term: it must not hold
    /layer1/*                 anything else is a name; * and ? are wildcards only if nothing has exactly that name

Terms are ``op:``, ``attr:NAME`` or ``attr:NAME=VALUE``, ``name:``, ``output:``, ``input:``, ``domain:``, ``dtype:`` and
``shape:`` (of an output, if the model states them; ``shape:1,*,32``), ``scope:`` (what the node belongs to, by its name
or by the exporter's metadata), ``match:'PATTERN'`` (the last node of each match of a pattern, see
`onnxjson.patterns.expression`), and ``in:main`` (no subgraphs, functions, training); one name without a key may be
among them. A value with spaces, or one that must not have wildcards, is in double quotes (``\\"`` and ``\\\\`` within).

``block:Attention``, ``line:7`` and ``repeat:layers[2]`` select the nodes of lines of the outline: of those that show a
block, of the line with this number in ``show --outline``, of a round of a repeat, or of all rounds without brackets.

Names and regular expressions are looked for among node names, then output tensors; if they find different nodes
in the two ways, the user has to choose. Nothing found is always an error that suggests similar names.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from onnxjson.model.addresses import find_element
from onnxjson.model.display import counted, listed, suggest, visible
from onnxjson.model.document import Model, Node
from onnxjson.model.errors import NoMatchError, SelectorError
from onnxjson.model.index import Index, NodeRef
from onnxjson.patterns import selector_terms as terms
from onnxjson.patterns.finding import matches
from onnxjson.patterns.grammar import parse as parse_pattern
from onnxjson.patterns.matching import Matcher
from onnxjson.patterns.mismatches import imported_versions, mistakes
from onnxjson.patterns.names import (
    TensorRef,
    Wildcards,
    has_wildcards,
    kind_of,
    regular_expression,
    tensor_at,
    value_refs,
)
from onnxjson.patterns.nodes import TOLERANCE, Nodes

_SHOWN: Final = 5
_ADDRESS: Final = re.compile(r"/(graph|functions|training_info)/(.*/)?node/[0-9]+")
"""An address of a node as messages and reports write it."""
"""Matches that an error lists."""


def select_nodes(model: Model, index: Index, selector: str, *, one: bool = False) -> tuple[NodeRef, ...]:
    """Return the nodes that a selector finds, in the order of the file, at least one.

    Raises:
        SelectorError: it is misspelled, finds nothing, finds different things by name and by output, or several nodes
            with `one`.
        LimitError: its pattern takes too long.
    """
    parsed = terms.parse(selector)
    if parsed.address is not None:
        element = find_element(model, parsed.address)
        if not isinstance(element.value, Node):
            raise SelectorError(f"{_called(parsed)} is {kind_of(element.value)}; a node is expected")
        return (_node_at(index, element.address),)
    search = _Search(index, parsed)
    refs = search.nodes()
    if not refs and _ADDRESS.fullmatch(selector):
        return select_nodes(model, index, f"@{selector}", one=one)
    if not refs:
        raise search.nothing()
    if one and len(refs) > 1:
        raise _too_many(parsed, "node", [_node_text(ref) for ref in refs])
    return tuple(refs)


def select_tensor(model: Model, index: Index, selector: str) -> TensorRef:
    """Return the one tensor that a selector finds: an initializer, input, output of a node, constant in an attribute.

    For a Constant node, the constant itself is found. Terms other than ``in:main`` are for nodes.
    """
    parsed = terms.parse(selector)
    if parsed.address is not None:
        return tensor_at(model, index, parsed.address)
    if parsed.terms is not None:
        raise SelectorError(f"{_called(parsed)} selects nodes; name a tensor, or give its address with @")
    search = _Search(index, parsed)
    return search.only(search.tensors(of_nodes=True))


def select_tensors(model: Model, index: Index, selector: str) -> list[TensorRef]:
    """Return the tensors that a name with wildcards or a regular expression finds, else the one of `select_tensor`."""
    parsed = terms.parse(selector)
    name = parsed.name
    if parsed.regex is None and (name is None or name.quoted or not has_wildcards(name.text)):
        return [select_tensor(model, index, selector)]
    search = _Search(index, parsed)
    tensors = search.tensors(of_nodes=True)
    if not tensors:
        raise search.nothing()
    return tensors


def select(model: Model, index: Index, selector: str) -> tuple[NodeRef, ...] | TensorRef:
    """Return nodes as `select_nodes` finds them, or the one tensor that no node produces (`select_tensor`)."""
    parsed = terms.parse(selector)
    if parsed.address is not None:
        element = find_element(model, parsed.address)
        is_node = isinstance(element.value, Node)
        return (_node_at(index, element.address),) if is_node else tensor_at(model, index, parsed.address)

    search = _Search(index, parsed)
    nodes = search.nodes()
    tensors = [] if parsed.terms is not None else search.tensors(of_nodes=False)
    if nodes and parsed.name is not None:
        # A pattern that finds nodes means nodes; a name that is also that of a tensor is ambiguous.
        tensors = [ref for ref in tensors if ref.name == parsed.name.text]
        if tensors:
            key = "name" if nodes[0].node.name == parsed.name.text else "output"
            choices = f"{visible(terms.spelled(key, parsed.name.text))} or @{visible(tensors[0].address, 200)}"
            raise SelectorError(f"{_called(parsed)} is {_node_text(nodes[0])} and another tensor; write {choices}")
    if not nodes and not tensors and _ADDRESS.fullmatch(selector):
        return select(model, index, f"@{selector}")
    if not nodes and not tensors:
        raise search.nothing()
    return tuple(nodes) if nodes else search.only(tensors)


class _Search:
    """One selector and the graphs in which it looks."""

    def __init__(self, index: Index, selector: terms.Selector) -> None:
        self._selector = selector
        self._index = index
        wanted = selector.in_main
        self._scopes = [scope for scope in index.scopes if wanted is None or (scope.kind == "main") == wanted]
        self._allowed = None if wanted is None else frozenset(self._scopes)
        self._outlines: dict[str, dict[str, list[NodeRef]]] = {}

    @property
    def _refs(self) -> Sequence[NodeRef]:
        return self._in_scopes(self._index.node_refs)

    def _in_scopes(self, refs: Sequence[NodeRef]) -> Sequence[NodeRef]:
        allowed = self._allowed
        return refs if allowed is None else [ref for ref in refs if ref.scope in allowed]

    def nodes(self) -> list[NodeRef]:
        """Return the selected nodes, perhaps none."""
        selector = self._selector
        if selector.regex is not None:
            way = _Way(None, cache(regular_expression(selector.regex).matches))
            return list(self._nodes_called(way, "name") or self._nodes_called(way, "output"))
        if selector.name is not None:
            return self._named(selector.name)
        terms = selector.terms or ()
        # The first that must hold finds the nodes; the others keep some of them, in their order.
        first = next((term for term in terms if not term.negated), None)
        refs = self._refs if first is None else self._having(first)
        for term in terms:
            if term is not first:
                having = set(self._having(term))
                refs = [ref for ref in refs if (ref in having) != term.negated]
        return list(refs)

    def _nodes_called(self, way: "_Way", key: str) -> Sequence[NodeRef]:
        if way.exact is not None:
            return self._in_scopes(terms.nodes_having(self._index, key, way.exact)) if way.exact else ()
        fits = way.fits
        return [ref for ref in self._refs if any([name and fits(name) for name in terms.property_texts(ref, key)])]

    def _named(self, value: terms.Value) -> list[NodeRef]:
        for way in _ways(value):
            by_name, by_output = self._nodes_called(way, "name"), self._nodes_called(way, "output")
            if by_name and not set(by_output) <= set(by_name):
                other = next(ref for ref in by_output if ref not in set(by_name))
                choices = " or ".join(
                    f"{key}:{visible(value.text)}" if not value.quoted else visible(terms.spelled(key, value.text))
                    for key in ("name", "output")
                )
                raise SelectorError(
                    f"{_called(self._selector)} is the name of {_node_text(by_name[0])} and an output of "
                    f"{_node_text(other)}; write {choices}"
                )
            if by_name or by_output:
                return list(by_name or by_output)
        return []

    def _having(self, term: terms.Term) -> Sequence[NodeRef]:
        """Return the nodes that satisfy a term, ignoring its negation."""
        if not term.key:
            return self._named(term.value)
        if term.key == "attr":
            return self._having_attribute(term)
        value = term.value
        if term.key == "match":
            return self._matching(value.text)
        if term.key in terms.OUTLINE_KEYS:
            return self._in_outline(term)
        if term.key == "domain":
            value = terms.Value(terms.domain_name(value.text), value.quoted)
        elif term.key == "scope":
            value = terms.Value(terms.plain_scope(value.text), value.quoted)
        elif term.key == "shape":
            shapes = [(ref, terms.property_texts(ref, "shape")) for ref in self._refs]
            return [ref for ref, its in shapes if any(terms.has_dims(each, value.text) for each in its)]
        for exact, fits in _ways(value):
            if exact is not None:
                refs = self._in_scopes(terms.nodes_having(self._index, term.key, exact))
            else:
                refs = [ref for ref in self._refs if any(map(fits, terms.property_texts(ref, term.key)))]
            if refs:
                return refs
        return []

    def _in_outline(self, term: terms.Term) -> Sequence[NodeRef]:
        by_text = self._outline_nodes(term.key)
        for way in _ways(term.value):
            refs = {ref for text, nodes in by_text.items() if way.fits(text) for ref in nodes}
            if refs:
                return [ref for ref in self._refs if ref in refs]
        return []

    def _outline_nodes(self, key: str) -> dict[str, list[NodeRef]]:
        if key not in self._outlines:
            self._outlines[key] = terms.outline_nodes(self._index, key)
        return self._outlines[key]

    def _matching(self, pattern: str) -> Sequence[NodeRef]:
        model, index = self._index.model, self._index
        nodes = Nodes(model, index, TOLERANCE)
        variants = [
            Matcher(nodes, variant, lambda text: select_nodes(model, index, text))
            for variant in parse_pattern(pattern).variants
        ]
        return self._in_scopes([match.root for match in matches(variants, overlapping=True)])

    def _having_attribute(self, term: terms.Term) -> list[NodeRef]:
        wanted = term.attribute_value
        for _, fits in _ways(term.value):
            having = [
                (ref, attribute) for ref in self._refs for attribute in ref.node.attribute if fits(attribute.name or "")
            ]
            if not having:
                continue
            if wanted is None:
                return list(dict.fromkeys([ref for ref, _ in having]))
            refs = [ref for ref, attribute in having if terms.has_value(attribute, wanted.text)]
            if not refs and not wanted.quoted and has_wildcards(wanted.text):
                like = cache(Wildcards(wanted.text).matches)
                refs = [ref for ref, attribute in having if like(terms.attribute_text(attribute) or "")]
            return list(dict.fromkeys(refs))
        return []

    def tensors(self, *, of_nodes: bool) -> list[TensorRef]:
        """Return the tensors of the name or regular expression, perhaps none; outputs of nodes only if wanted."""
        selector = self._selector
        if selector.regex is not None:
            ways: Iterable[_Way] = [_Way(None, regular_expression(selector.regex).matches)]
        else:
            ways = _ways(selector.name or terms.Value("", quoted=True))
        for exact, fits in ways:
            tensors: list[TensorRef] = []
            for scope in self._scopes:
                if exact is not None:
                    names = [exact] if scope.defines(exact) else []
                else:
                    names = [name for name in scope.defined_names if fits(name)]
                wanted = names if of_nodes else [name for name in names if scope.producer_position(name) is None]
                tensors += value_refs(scope, wanted)
            if tensors:
                return tensors
        return []

    def only(self, tensors: Sequence[TensorRef]) -> TensorRef:
        """Return the only tensor that was found; raise SelectorError if there is none, or if there are several."""
        if not tensors:
            raise self.nothing(of_tensors=True)
        if len(tensors) > 1:
            raise _too_many(
                self._selector, "tensor", [f'@{visible(ref.address, 200)} ("{visible(ref.name)}")' for ref in tensors]
            )
        return tensors[0]

    def nothing(self, *, of_tensors: bool = False) -> NoMatchError:
        """Return the error for a selector that finds no node, or no tensor, with suggestions."""
        selector = self._selector
        where = {None: "", True: " in the main graph", False: " outside the main graph"}[selector.in_main]
        if selector.regex is not None:
            names = f"whole name of a node or tensor{where}"
            return NoMatchError(f"{_called(selector)} matches no {names}")

        if selector.name is not None:
            called = visible(selector.name.text)
            if selector.in_main is None and (other := self._other_kind(selector.name.text)):
                return NoMatchError(f'"{called}" is {other}')
            near = self._near(selector.name, of_tensors=of_tensors)
            return NoMatchError(f'nothing is called "{called}"{where}; {near}')
        for term in selector.terms or ():
            if not term.negated and not self._having(term):
                return NoMatchError(f"no node{where} has {visible(str(term))}; {self._near_term(term)}")
        counts = ", ".join(f"{visible(str(term))} {len(self._having(term)):,}" for term in selector.terms or ())
        return NoMatchError(f"no node{where} matches all of {_called(selector)}; nodes for each: {counts or 'none'}")

    def _other_kind(self, name: str) -> str:
        """What has a name that was looked for among tensors, or among nodes; "" if nothing has it."""
        for ref in self._index.nodes():
            if ref.node.name == name and (outputs := [f'"{visible(each)}"' for each in ref.node.output if each]):
                return f"a node, not a tensor; its output{'s are' if len(outputs) > 1 else ' is'} {listed(outputs)}"
        is_tensor = any(scope.defines(name) for scope in self._index.scopes)
        return "an input or a constant, not a node" if is_tensor else ""

    def _near(self, value: terms.Value, *, of_tensors: bool = False) -> str:
        names = {name for scope in self._index.scopes for name in scope.defined_names}
        nodes = {ref.node.name for ref in self._index.nodes() if ref.node.name}
        if value.text in names | nodes:
            return "there is one elsewhere"
        if operators := [ref for ref in self._index.nodes() if ref.node.op_type == value.text]:
            return f"`op:{visible(value.text)}` finds the {counted(len(operators), 'node')} of this operator"
        if hint := terms.respelled(value.text):
            return hint
        parts = value.text.split(":")  # other programs write a shape, a dtype or the number of an output after a name
        shorter = [":".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]
        if named := next((name for name in shorter if name in names), ""):
            return f'did you mean "{visible(named)}"?'
        inside = [name for name in nodes if name.startswith(f"{value.text}/")]
        if len(inside) > 1:
            return f"`'{visible(value.text)}/*'` finds what is in it"
        names = names if of_tensors else names | nodes
        longer = sorted([name for name in names if len(value.text) > 3 and value.text in name], key=len)
        containing = "it is a part of " + listed([f'"{visible(name)}"' for name in longer]) if longer else ""
        overview = "`onnxjson show MODEL 'op:*'` lists all nodes and their outputs"
        return suggest(value.text, names) or containing or overview

    def _near_term(self, term: terms.Term) -> str:
        if not term.key:
            return self._near(term.value)
        if term.key == "op" and len(operators := re.split(r"[,|]", term.value.text)) > 1:
            return f"for one of several operators write match:'({'|'.join(map(visible, operators))})'"
        if term.key == "attr":
            attributes = [attribute for ref in self._refs for attribute in ref.node.attribute]
            names = {attribute.name or "" for attribute in attributes}
            if term.attribute_value is None or term.value.text not in names:
                return suggest(term.value.text, names) or _some("attributes", names)
            texts = {terms.attribute_text(each) or "" for each in attributes if each.name == term.value.text}
            return suggest(term.attribute_value.text, texts) or _some("values", texts)
        if term.key == "match":
            mistaken = mistakes(
                parse_pattern(term.value.text),
                self._index.operator_counts(),
                opsets=imported_versions(self._index.model),
            )
            return next(mistaken, "`onnxjson find --why` shows what nearly matches")
        if term.key in terms.OUTLINE_KEYS:
            texts = set(filter(None, self._outline_nodes(term.key)))
            if term.key == "line" and texts:
                return f"the outline has {len(texts)} lines; `onnxjson show MODEL --outline` shows them"
        else:
            texts = {text for ref in self._refs for text in terms.property_texts(ref, term.key) if text}
        if term.key in ("dtype", "shape") and not texts:
            return "the model does not state the types that its nodes produce (value_info)"
        near = suggest(term.value.text, texts)
        return re.sub(r'"(\w[^"]*")', rf'"{term.key}:\1', near) or _some("values", texts)


class _Way(NamedTuple):
    """One way to look for a text."""

    exact: str | None
    """The exact text; None for a pattern."""
    fits: Callable[[str], bool]


def _ways(value: terms.Value) -> Iterator[_Way]:
    """Yield the ways to look for a value: as it is, and if that finds nothing, with wildcards."""
    yield _Way(value.text, value.text.__eq__)
    if not value.quoted and has_wildcards(value.text):
        yield _Way(None, cache(Wildcards(value.text).matches))


def _node_at(index: Index, address: str) -> NodeRef:
    owner, _, position = address.rpartition("/node/")
    return NodeRef(index.by_address[owner], int(position))


def _called(selector: terms.Selector) -> str:
    return visible(selector.text)


def _some(what: str, texts: Collection[str]) -> str:
    quoted = [f'"{visible(text)}"' for text in sorted(texts)]
    return f"{what} are {listed(quoted, _SHOWN)}" if texts else f"there are no {what}"


def _node_text(ref: NodeRef) -> str:
    name = f' "{visible(ref.node.name)}"' if ref.node.name else ""
    return f"@{visible(ref.address, 200)} ({visible(ref.node.op_type or '')}{name})"


def _too_many(selector: terms.Selector, what: str, found: Sequence[str]) -> SelectorError:
    shown = listed(found, _SHOWN)
    return SelectorError(f"{_called(selector)} finds {len(found):,} {what}s where one {what} is expected: {shown}")

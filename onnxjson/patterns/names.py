"""Names in selectors: wildcards, regular expressions that end at a time limit, and tensors by name or address.

A script from elsewhere may have an expression that needs exponential time for some names. Regular expressions
therefore run in the package ``regex``, which can stop, and all names together have `limits.PATTERN_SECONDS`. The syntax
is that of `re`; whole names must match, so ``^`` at the start and ``$`` at the end change nothing.
"""

import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from onnxjson.model import limits
from onnxjson.model.addresses import find_element
from onnxjson.model.constants import constant_output, is_constant_node
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Function, Model, SparseTensor, Tensor, ValueInfo
from onnxjson.model.errors import LimitError, SelectorError
from onnxjson.model.index import Index, Scope

if TYPE_CHECKING:
    import regex


def has_wildcards(text: str) -> bool:
    """Whether a text has ``*`` or ``?``."""
    return "*" in text or "?" in text


class Wildcards:
    """A text in which ``*`` matches any characters, ``?`` one, and everything else itself.

    Raises:
        SelectorError: the text is too long.
    """

    def __init__(self, text: str) -> None:
        _check_length(text)
        first, *others = [
            "".join(["." if each == "?" else re.escape(each) for each in part]) for part in text.split("*")
        ]
        # A part between two stars is right at the first place where it fits, so that no other place is ever tried:
        # without atomic groups, ten stars could take years.
        between = "".join([f"(?>.*?{part})" for part in others[:-1] if part])
        self._fullmatch = re.compile(f"{first}{between}.*{others[-1]}" if others else first, re.DOTALL).fullmatch

    def matches(self, name: str) -> bool:
        """Whether the whole name fits; names of more than `limits.PATTERN_NAME_CHARACTERS` never do."""
        return len(name) <= limits.PATTERN_NAME_CHARACTERS and self._fullmatch(name) is not None


class NamePattern:
    """A regular expression and the time that it has left; `regular_expression` compiles one."""

    def __init__(self, compiled: "regex.Pattern[str]") -> None:
        self._compiled = compiled
        self._seconds_left = limits.PATTERN_SECONDS
        numbers = {str(number): number for number in range(1, compiled.groups + 1)}
        self.groups: Mapping[str, int] = numbers | dict(compiled.groupindex)
        """The numbers of the groups, by number as text and by name."""

    def matches(self, name: str) -> bool:
        """Whether the whole name fits; names of more than `limits.PATTERN_NAME_CHARACTERS` never do.

        Raises:
            LimitError: the expression has used up its time on this name and earlier ones.
        """
        return self._run(name, is_whole=True) is not None

    def find(self, name: str) -> tuple[str, ...] | None:
        """Return the name and the text of each group ("" for a group without one), or None if the name does not fit."""
        found = self._run(name, is_whole=True)
        return None if found is None else (name, *[text or "" for text in found.groups()])

    def is_in(self, text: str) -> bool:
        """Whether a part of the text fits; ``^`` and ``$`` are its start and its end."""
        return self._run(text, is_whole=False) is not None

    def _run(self, name: str, *, is_whole: bool) -> "regex.Match[str] | None":
        if len(name) > limits.PATTERN_NAME_CHARACTERS:
            return None
        match = self._compiled.fullmatch if is_whole else self._compiled.search
        start = time.thread_time()
        try:
            if self._seconds_left <= 0:
                raise TimeoutError
            return match(name, timeout=self._seconds_left)
        except TimeoutError:
            self._seconds_left = 0.0  # a match that was interrupted on a busy machine counts as its whole time
            raise LimitError(
                f"re:{visible(self._compiled.pattern)} takes more than {limits.PATTERN_SECONDS:g} seconds on the names "
                "of this model; write an expression with fewer nested repeats"
            ) from None
        finally:
            self._seconds_left -= time.thread_time() - start


def regular_expression(text: str, *, ignore_case: bool = False) -> NamePattern:
    """Compile a regular expression.

    Raises:
        SelectorError: it is not one, or is too long.
    """
    import regex  # here, since few commands need it

    _check_length(text)
    if _copies(text) > limits.PATTERN_COPIES:
        raise SelectorError(
            f"re:{visible(text)} is too big: each count repeats its part, and at most {limits.PATTERN_COPIES:,} parts "
            "are allowed"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about nested sets, whose meaning is still the old one
            flags = regex.DOTALL | regex.VERSION0 | (regex.IGNORECASE if ignore_case else 0)
            re.compile(text, re.DOTALL)  # `regex` accepts more than the documented syntax
            return NamePattern(regex.compile(text, flags))
    except re.error as error:
        place = "" if error.pos is None else f" (character {error.pos})"
        raise SelectorError(f"re:{visible(text)} is not a regular expression: {error.msg}{place}") from None
    except (regex.error, OverflowError, RecursionError, ValueError) as error:
        raise SelectorError(f"re:{visible(text)} is not a regular expression: {error}") from None


def _check_length(text: str) -> None:
    if len(text) > limits.PATTERN_CHARACTERS:
        raise SelectorError(f"the pattern has {len(text):,} characters; {limits.PATTERN_CHARACTERS} are allowed")


_TOKEN: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<least>[0-9]*)(?:,(?P<most>[0-9]*))?\}|.", re.DOTALL)


def _copies(text: str) -> int:
    """Return roughly the number of parts of an expression with its counts written out, which is what compiling does."""
    sums = [0]
    last = 0
    for token in _TOKEN.finditer(text):
        if token["least"] is not None:
            count = max(int(digits[:9]) for digits in (token["least"], token["most"], "1") if digits)
            sums[-1] += last * (count - 1)
        elif token[0] == "(":
            sums.append(1)
        elif token[0] == ")" and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
        else:
            last = 1
            sums[-1] += 1
    return sum(sums)


@dataclass(frozen=True, slots=True)
class TensorRef:
    """One tensor: a constant, an input, or a value that the model computes."""

    name: str
    address: str
    """The address of the constant if there is one, else of the input or node output."""
    tensor: Tensor | SparseTensor | None
    """The constant; None for other values."""
    scope: Scope | None
    """The graph in which the name is defined; None for a constant inside an attribute."""


def value_refs(scope: Scope, names: Sequence[str]) -> Iterator[TensorRef]:
    """Yield the tensors with names that a graph defines; all of them if several constants have one name by mistake."""
    several = _constants_of_one_name(scope) if names else {}
    for name in names:
        if name not in several:
            yield value_ref(scope, name)
        for address, tensor in several.get(name, ()):
            yield TensorRef(name, address, tensor, scope)


def _constants_of_one_name(scope: Scope) -> dict[str, list[tuple[str, Tensor | SparseTensor]]]:
    """Return the constants of a graph that share a name, dense before sparse, with their addresses."""
    known: dict[str, list[tuple[str, Tensor | SparseTensor]]] = {}
    if isinstance(scope.graph, Function):
        return known
    dense, sparse_ones = scope.initializers, scope.sparse_initializers
    counts = (len(scope.graph.initializer), len(scope.graph.sparse_initializer))
    if counts != (len(dense), len(sparse_ones)) or not dense.keys().isdisjoint(sparse_ones):
        for position, tensor in enumerate(scope.graph.initializer):
            known.setdefault(tensor.name or "", []).append((f"{scope.address}/initializer/{position}", tensor))
        for position, sparse in enumerate(scope.graph.sparse_initializer):
            name = sparse.values.name if sparse.values is not None else None
            known.setdefault(name or "", []).append((f"{scope.address}/sparse_initializer/{position}", sparse))
    return {name: constants for name, constants in known.items() if len(constants) > 1}


def value_ref(scope: Scope, name: str) -> TensorRef:
    """Return the tensor that a graph defines under a name."""
    constant = scope.initializer(name)
    if constant is not None:
        kind, positions = "initializer", scope.initializers
        if name not in positions:
            kind, positions = "sparse_initializer", scope.sparse_initializers
        return TensorRef(name, f"{scope.address}/{kind}/{positions[name]}", constant, scope)
    if name in scope.inputs:
        return TensorRef(name, f"{scope.address}/input/{scope.inputs[name]}", None, scope)
    position, slot = scope.producers[name]
    address = f"{scope.address}/node/{position}"
    node = scope.graph.node[position]
    if is_constant_node(node):
        for attribute in node.attribute:
            if attribute.name in ("value", "sparse_value") and (found := attribute.t or attribute.sparse_tensor):
                field = "t" if attribute.t is not None else "sparse_tensor"
                return TensorRef(name, f"{address}/attribute/{attribute.name}/{field}", found, scope)
    return TensorRef(name, f"{address}/output/{slot}", None, scope)


def tensor_at(model: Model, index: Index, wanted: str) -> TensorRef:
    """Return the tensor at an address: a constant, an input or output of a graph, an output of a node."""
    address, value = find_element(model, wanted)
    if isinstance(value, Attribute) and (value.t or value.sparse_tensor):
        address += "/t" if value.t is not None else "/sparse_tensor"
        value = value.t or value.sparse_tensor
    owner, _, _ = address.rpartition("/")
    parent, _, field = owner.rpartition("/")
    scopes = index.by_address
    if isinstance(value, Tensor | SparseTensor):
        named = value.values if isinstance(value, SparseTensor) else value
        name = (named.name if named is not None else None) or ""
        scope = scopes.get(parent) if field in ("initializer", "sparse_initializer") else None
        if parent.endswith("/attribute"):
            graph, _, position = parent.removesuffix("/attribute").rpartition("/node/")
            scope = scopes.get(graph)
            output = constant_output(scope.graph.node[int(position)]) if scope is not None else None
            name = output or name
        return TensorRef(name, address, value, scope if scope is not None and scope.defines(name) else None)
    scope, name = None, ""
    if isinstance(value, ValueInfo):
        scope, name = scopes.get(parent), value.name or ""
    elif isinstance(value, str) and field in ("input", "output"):
        scope, name = scopes.get(parent) or scopes.get(parent.rpartition("/node/")[0]), value
    defining_scope = Index.defining_scope(scope, name) if scope is not None else None
    if defining_scope is None:
        raise SelectorError(f"@{visible(wanted)} is {kind_of(value)}; the address of a node or tensor is expected")
    return value_ref(defining_scope, name)


def kind_of(value: object) -> str:
    """Return what is at an address: ``a Node``, ``a list of 3``."""
    if isinstance(value, tuple):
        return f"a list of {len(value):,}"
    if isinstance(value, str | bytes | int):
        return "a value"
    name = type(value).__name__
    return ("an " if name[0] in "AIO" else "a ") + name

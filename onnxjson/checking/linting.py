"""Lint rules: their declaration, the parts of a model that they check, and one walk that runs all of them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from onnxjson.model.constants import copied_constant, is_constant
from onnxjson.model.display import visible
from onnxjson.model.document import Model, Node, Tensor, Type, ValueInfo
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.errors import Finding, OnnxJsonError, Severity
from onnxjson.model.index import Index, NodeRef, Scope, index_of
from onnxjson.model.operators import plain_domain
from onnxjson.model.walking import StoredTensor, stored_tensors
from onnxjson.storage.constant_reading import array_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAMILIES: Final = (
    "structure", "types", "opset", "naming", "numerics", "quantization", "portability", "size", "security",
)  # fmt: skip
"""The families of rules; the first digit of a code is the position of its family, from 1."""

KINDS: Final = ("model", "graph", "value", "tensor", "node")
"""Elements that rules check, besides nodes of certain operators."""

Level = Literal["error", "warning", "off"]

_READ: Final = 64 << 20
"""Maximum size of a constant whose elements rules read."""

_KEPT: Final = 1 << 20
"""Maximum size of a constant whose elements are kept for other rules."""


class Rule(NamedTuple):
    """One lint rule."""

    code: str
    level: Level
    """The severity unless a policy sets another one; off: runs only where it is selected."""
    on: str
    """The elements that it checks: model, graph, tensor, value, node, or names of operators."""
    message: str
    """With a place for each detail of the check."""
    check: Callable[[Any], object]
    """Returns whether the rule is broken: a bool, the details of the message, or a list of `Place`."""
    hint: str = ""
    fix: Mapping[str, object] | None = None
    """The edit that corrects it, as in a script."""

    @property
    def family(self) -> str:
        """The family, by the code."""
        return FAMILIES[int(self.code[3]) - 1]


class Place(NamedTuple):
    """An element that breaks a rule, where a rule finds several at once."""

    address: str
    details: tuple[object, ...] = ()


class Subject:
    """A model, as rules see it."""

    def __init__(self, model: Model, folder: Path | None = None) -> None:
        self.model = model
        self.folder = folder
        """The folder of external data; None: constants in files are not read."""
        self.index = index_of(model)
        self._arrays: dict[int, tuple[Tensor, NDArray[Any] | None]] = {}
        self.opsets = {plain_domain(each.domain): each.version or 0 for each in reversed(model.opset_import)}

    @cached_property
    def tensors(self) -> Sequence[StoredTensor]:
        """All stored tensors."""
        return tuple(stored_tensors(self.index))

    @cached_property
    def functions(self) -> frozenset[tuple[str, str]]:
        """Domains and names of the functions of the model."""
        return frozenset([(plain_domain(each.domain), each.name or "") for each in self.model.functions])

    def array(self, tensor: Tensor) -> "NDArray[Any] | None":
        """Return the elements of a constant of numbers, floats as float64; None if they are too big or not readable."""
        kept = self._arrays.get(id(tensor))
        if kept is None:
            kept = (tensor, self._read(tensor))
            if kept[1] is None or kept[1].nbytes <= _KEPT:
                self._arrays[id(tensor)] = kept
        return kept[1]

    def _read(self, tensor: Tensor) -> "NDArray[Any] | None":
        size = byte_length(tensor.data_type or 0, element_count(tensor.dims))
        if size is None or size > _READ:
            return None
        try:
            array = array_of(tensor, self.folder)
        except (OnnxJsonError, ValueError):
            return None
        return array if array.dtype.kind in "biuf" else array.astype("float64") if array.dtype.kind == "V" else None


class TensorSite:
    """A stored tensor, as rules see it."""

    def __init__(self, subject: Subject, stored: StoredTensor) -> None:
        self.subject = subject
        self.address, self.tensor, self.is_weight = stored

    @cached_property
    def array(self) -> "NDArray[Any] | None":
        """The elements; see `Subject.array`."""
        return self.subject.array(self.tensor)

    @cached_property
    def floats(self) -> "NDArray[Any]":
        """The elements of a constant of floats; empty for others."""
        import numpy

        found = self.array
        return found.reshape(-1) if found is not None and found.dtype.kind == "f" else numpy.empty(0)

    @cached_property
    def finite(self) -> "NDArray[Any]":
        """Those of `floats` that are finite."""
        import numpy

        is_finite = numpy.isfinite(self.floats)
        return self.floats if is_finite.all() else numpy.compress(is_finite, self.floats)

    @property
    def bytes(self) -> int:
        """The size of the elements."""
        return byte_length(self.tensor.data_type or 0, element_count(self.tensor.dims)) or 0


class ValueSite(NamedTuple):
    """A stated type: an input, an output, or a line of value_info."""

    subject: Subject
    scope: Scope
    field: str
    value: ValueInfo

    @property
    def is_interface(self) -> bool:
        """Whether it is an input or output of the model; an input with an initializer is not."""
        is_stated = self.scope.kind == "main" and self.field != "value_info"
        return is_stated and self.value.name not in self.scope.initializers

    @property
    def dims(self) -> tuple[int | str | None, ...]:
        """The dimensions; none without a shape."""
        return self.value.shape or ()


class NodeSite:
    """A node, as rules see it."""

    def __init__(self, subject: Subject, ref: NodeRef) -> None:
        self.subject = subject
        self.ref = ref
        self.node: Node = ref.node
        self.scope = ref.scope

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """The values of the attributes."""
        return {each.name or "": each.value for each in self.node.attribute if each.t is None and each.g is None}

    @property
    def opset(self) -> int:
        """The version of the operator set of the node."""
        return self.subject.opsets.get(plain_domain(self.node.domain), 0)

    def name(self, slot: int) -> str:
        """Return the name of an input; "" for an omitted one."""
        return self.node.input[slot] if slot < len(self.node.input) else ""

    def stated(self, slot: int) -> Tensor | Type | None:
        """Return what has dtype and shape of an input: the constant, or its type."""
        return self.tensor(slot) or (Index.type_of(self.scope, self.name(slot)) if self.name(slot) else None)

    def dtype(self, slot: int) -> str | None:
        """Return the dtype of an input, such as "float16"; None if it is not known."""
        found = self.stated(slot)
        return None if found is None else found.dtype

    def shape(self, slot: int) -> tuple[int | str | None, ...] | None:
        """Return the dims of an input; None if they are not known."""
        found = self.stated(slot)
        return None if found is None else found.shape

    def tensor(self, slot: int) -> Tensor | None:
        """Return the constant that an input is, directly or through Identity nodes; None for other values."""
        found = copied_constant(self.scope, self.name(slot)) if self.name(slot) else None
        return None if found is None or found.is_default else found.tensor

    def is_constant(self, slot: int) -> bool:
        """Whether an input is a constant, or computed from constants alone."""
        return bool(self.name(slot)) and is_constant(self.scope, self.name(slot))

    def array(self, slot: int) -> "NDArray[Any] | None":
        """Return the elements of a constant input."""
        tensor = self.tensor(slot)
        return None if tensor is None else self.subject.array(tensor)

    def number(self, slot: int) -> float | None:
        """Return the one element of a constant input."""
        array = self.array(slot)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    def before(self, slot: int, op_type: str) -> "NodeSite | None":
        """Return the producer of an input, if it is a node of this operator."""
        ref = self.subject.index.producer(self.scope, self.name(slot)) if self.name(slot) else None
        if ref is None or ref.node.op_type != op_type or plain_domain(ref.node.domain):
            return None
        return NodeSite(self.subject, ref)


def lint(subject: Subject, rules: Iterable[Rule], *, strict: bool = False) -> Iterator[Finding]:
    """Run rules on a model; findings have the severity of their rules.

    A check that an invalid node breaks finds nothing, since ``check`` reports such nodes; with `strict` it raises.
    """
    by_word: dict[str, list[Rule]] = {}
    for rule in rules:
        for word in rule.on.split():
            by_word.setdefault(word, []).append(rule)
    for its_rules, site, address in _sites(subject, by_word):
        for rule in its_rules:
            try:
                result = rule.check(site)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                if strict:
                    raise
                continue
            if result is not None and result is not False:
                details = () if result is True else result if isinstance(result, tuple) else (result,)
                places = result if isinstance(result, list) else [Place(address, details)]
                yield from [_finding(rule, place) for place in places]


def _sites(subject: Subject, rules: Mapping[str, list[Rule]]) -> Iterator[tuple[list[Rule], object, str]]:
    """Yield everything that rules look at, with these rules and its address."""
    of_models, of_graphs, of_values, of_tensors, of_nodes = [rules.get(kind, []) for kind in KINDS]
    yield of_models, subject, ""
    for scope in subject.index.scopes:
        yield of_graphs, (subject, scope), scope.address
        for field in ("input", "output", "value_info") if of_values else ():
            for place, value in enumerate(getattr(scope.graph, field, ())):
                if isinstance(value, ValueInfo):
                    yield of_values, ValueSite(subject, scope, field, value), f"{scope.address}/{field}/{place}"
    for stored in subject.tensors if of_tensors else ():
        yield of_tensors, TensorSite(subject, stored), stored.address
    for ref in subject.index.nodes():
        domain, op_type = plain_domain(ref.node.domain), ref.node.op_type or ""
        if its_rules := [*of_nodes, *rules.get(f"{domain}::{op_type}" if domain else op_type, ())]:
            yield its_rules, NodeSite(subject, ref), ref.address


def _finding(rule: Rule, place: Place) -> Finding:
    texts = [visible(each) if isinstance(each, str) else f"{each}" for each in place.details]
    severity: Severity = "error" if rule.level == "error" else "warning"
    message = rule.message.format(*texts)
    return Finding(severity=severity, code=rule.code, address=place.address, message=message, hint=rule.hint)


def chosen(rules: Collection[Rule], words: Collection[str]) -> list[Rule]:
    """Return the rules that codes, starts of codes and families name; ``all`` names those that are not off."""
    return [
        rule
        for rule in rules
        if rule.family in words
        or any([rule.code.startswith(word) for word in words if word.startswith("ONJ")])
        or ("all" in words and rule.level != "off")
    ]

"""Check nodes against their operators: existence, number of inputs and outputs, attributes, dtypes.

`node_mistakes` and `dtype_mistake` are the rules; `check_operators` applies them to every node of a model. Operators
of domains that onnx does not know, and functions of the model, are not judged. Neither are operator sets that are
newer than the installed onnx; `onnxjson.model.opset_checks` reports what was therefore not checked.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from onnxjson.model import operators
from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.attribute_values import WINDOWED, check_perms, check_windows, stated_ranks, text_mistakes
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Function, Graph, Model, Node, OperatorSetId, Type
from onnxjson.model.errors import Finding
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES
from onnxjson.model.operators import operator_table
from onnxjson.model.opset_checks import check_opsets
from onnxjson.model.structure import check_dims, check_structure
from onnxjson.model.types import format_data_type

_MOST: Final = 2**31 - 1
"""Value in schemas of onnx for an unlimited number."""

_SHOWN: Final = 5
_MOST_SUGGESTIONS: Final = 50

_EXPERIMENTAL: Final = frozenset(
    {
        *("ATen", "Affine", "ConstantFill", "Crop", "DynamicSlice", "GRUUnit", "GivenTensorFill", "ImageScaler"),
        *("ParametricSoftplus", "Scale", "ScaledTanh"),
    }
)
"""Former operators of the default domain without a version, which onnx's checker still accepts."""

_PART: Final = re.compile(r"/(attribute/[^/]*|(input|output)(/[0-9]+)?|op_type)\Z")
"""The end of the address of a part of a node."""

_WITH_AXES: Final = {"Transpose", *WINDOWED}

_DTYPE_ATTRIBUTES: Final = {"Cast": "to", "Constant": "value", "ConstantOfShape": "value"}

_Values: TypeAlias = ChainMap[str, int | None]
"""The known data types of the values of a graph, before those of the graphs around it."""

_Key: TypeAlias = tuple[object, ...]
"""Identity of the attributes, the operator (3 items), number of outputs, dtypes of inputs, and which have names."""


class Mistake(NamedTuple):
    """One thing that is wrong with a node."""

    code: str
    part: str
    """The address of the wrong part, relative to the node."""
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


def unknown_operator(node: Node, opset: int, *, suggests: bool = True) -> Mistake:
    """Describe a node whose operator is not in an operator set; `suggests` similar names, which needs time."""
    domain, op_type = operators.plain_domain(node.domain), node.op_type or ""
    shown = visible(operators.operator_name(domain, op_type))
    similar = suggest(op_type, operators.known_operators(domain)) if suggests else ""
    hint = similar or "a model's own operators need a separate domain"
    if op_type in operators.known_operators(domain):
        first = min(each[2] for each in operators.all_operators() if each[:2] == (domain, op_type))
        hint = f"it exists from version {first}; the model imports {opset}; convert-opset changes that"
    return Mistake("unknown-operator", "/op_type", f"there is no operator {shown}", hint)


def node_mistakes(node: Node, signature: operators.Signature, opset: int) -> Iterator[Mistake]:
    """Iterate over the mistakes of a node in the use of its operator, except those of dtypes."""
    shown = visible(signature.op_type)
    if signature.deprecated:
        yield Mistake("unknown-operator", "/op_type", f"{shown} was removed before version {opset} of its operators")
        return
    inputs = len(node.input)
    while inputs and not node.input[inputs - 1]:
        inputs -= 1
    for mistake in (
        *count_mistakes(shown, "input", inputs, signature.least_inputs, signature.most_inputs),
        *count_mistakes(shown, "output", len(node.output), signature.least_outputs, signature.most_outputs),
    ):
        later = []
        for row in operator_table().rows(signature.domain, signature.op_type):
            fewest, most, fewest_outputs, most_outputs = row.counts
            if fewest <= inputs <= most and fewest_outputs <= len(node.output) <= most_outputs:
                later.append(row.since_version)
        yield mistake._replace(hint=_since(later, opset))
    for slot, formal in enumerate(signature.inputs[:inputs]):
        if formal.option == "single" and not node.input[slot]:
            yield Mistake("missing-input", f"/input/{slot}", f'{shown} needs its input {slot} ("{formal.name}")')
    yield from _attribute_mistakes(node, signature, shown, opset)


def count_mistakes(operator: str, what: str, count: int, fewest: int, most: int) -> Iterator[Mistake]:
    """Report a number of inputs or outputs that an operator does not have."""
    if fewest <= count <= most:
        return
    fits = f"{fewest}" if fewest == most else f"at least {fewest}" if most >= _MOST else f"{fewest} to {most}"
    plural = "" if fits == "1" else "s"
    message = f"{operator} accepts {fits} {what}{plural}, but the node has {count}"
    code = "input-count" if what == "input" else "output-count"
    yield Mistake(code, f"/{what}/{most}" if count > most else f"/{what}", message)


def _attribute_mistakes(node: Node, signature: operators.Signature, shown: str, opset: int) -> Iterator[Mistake]:
    segments = attribute_segments(node.attribute)
    for segment, attribute in zip(segments, node.attribute, strict=True):
        name, place = attribute.name or "", f"/attribute/{escape(segment)}"
        formal = signature.attributes.get(name)
        if formal is None:
            if not name.startswith("__"):  # Such names are for the use of runtimes.
                hint = _newer_attribute(signature, name, opset) or suggest(name, signature.attributes)
                hint = hint or f"it has {', '.join(signature.attributes) or 'none'}"
                message = f'{shown} has no attribute "{visible(name)}"'
                yield Mistake("unknown-attribute", place, message, hint)
        elif attribute.type and attribute.type != formal.type:
            given, wanted = (ATTRIBUTE_TYPE_NAMES.get(each, f"{each}") for each in (attribute.type, formal.type))
            message = f'the attribute "{visible(name)}" of {shown} must be {wanted}, but it is {given}'
            yield Mistake("attribute-type", place, message)
    names = {each.name or "" for each in node.attribute}
    for name, formal in signature.attributes.items():
        if formal.required and name not in names:
            yield Mistake("missing-attribute", "", f'{shown} needs the attribute "{name}"', "add it")
    if signature.op_type == "Constant" and not signature.domain and len(node.attribute) != 1:
        yield Mistake("missing-attribute", "", f"a Constant needs one of {', '.join(signature.attributes)}")
    for attribute, message, hint in text_mistakes(node, opset):
        segment = segments[[each is attribute for each in node.attribute].index(True)]
        yield Mistake("wrong-attribute-value", f"/attribute/{escape(segment)}", message, hint)


def _newer_attribute(found: operators.Signature, name: str, opset: int) -> str:
    rows = operator_table().rows(found.domain, found.op_type)
    return _since([each.since_version for each in rows if name in each.attributes], opset)


def _since(versions: Sequence[int], opset: int) -> str:
    """The hint for what an operator has in some versions, if one is newer than the imported one; else ""."""
    later = min([each for each in versions if each > opset], default=None)
    if later is None:
        return ""
    return (
        f"that exists since version {later}; the model imports {opset}; `stamp-opset {later}` corrects a wrong import"
    )


def quoted(name: str) -> str:
    """Return what messages call a value."""
    return f'"{visible(name)}"'


def dtype_mistake(
    node: Node,
    signature: operators.Signature,
    dtype_of: Callable[[str], int | None],
    called: Callable[[str], str] = quoted,
) -> Mistake | None:
    """Describe a conflict between the dtypes of a node's inputs, or with its operator; None if none is known.

    `called` returns what the message calls a value.
    """
    operator = visible(node.op_type or "")
    bound: dict[str, tuple[int, str]] = {}
    for slot, name in enumerate(node.input):
        formal = signature.input_at(slot)
        if not name or formal is None:
            continue
        if not formal.is_homogeneous:
            break
        dtype = dtype_of(name)
        if not dtype:
            continue
        allowed = [each for kind in formal.types if (each := dtype_of_type(kind)) is not None]
        if dtype not in allowed:
            wanted = sorted({format_data_type(each) for each in allowed})
            which = listed(wanted, _SHOWN, word="or") or "no tensor"
            message = f"input {slot} of {operator} must be {which}, but {called(name)} is {format_data_type(dtype)}"
            return Mistake("input-dtype", f"/input/{slot}", message)
        if formal.variable.startswith(("tensor(", "seq(", "optional(", "map(")):
            continue
        other = bound.setdefault(formal.variable, (dtype, name))
        if other[0] != dtype:
            message = (
                f"{operator} needs one dtype for {called(other[1])} and {called(name)}, "
                f"but they are {format_data_type(other[0])} and {format_data_type(dtype)}"
            )
            return Mistake("input-dtype", f"/input/{slot}", message)
    return None


def dtype_of_type(kind: Type | None) -> int | None:
    """Return the data type of the elements of a tensor; None for another type."""
    return None if kind is None or kind.tensor_type is None else kind.tensor_type.elem_type


def dtype_attribute(node: Node) -> str | None:
    """Return the attribute that determines the dtype of a node's output."""
    return None if operators.plain_domain(node.domain) else _DTYPE_ATTRIBUTES.get(node.op_type or "")


def produced_dtype(node: Node, signature: operators.Signature | None, slot: int) -> int | str | None:
    """Return the dtype of a node's output, or the name of an input with the same dtype; None if neither is known."""
    attribute = dtype_attribute(node)
    if attribute is not None:
        value = next((each for each in node.attribute if each.name == attribute), None)
        return None if value is None else value.i if value.t is None else value.t.data_type
    if signature is None or not signature.outputs:
        return None
    output = signature.outputs[min(slot, len(signature.outputs) - 1)]
    if len(output.types) == 1:
        return dtype_of_type(output.types[0])
    for place, name in enumerate(node.input):
        formal = signature.input_at(place)  # an invalid node can have inputs that its operator does not have
        if name and formal is not None and formal.is_homogeneous and formal.variable == output.variable:
            return name
    return None


def check_model(model: Model, *, causes: bool = False) -> tuple[Finding, ...]:
    """Return the findings about the structure of a model, its use of operators, and its dimensions.

    With `causes`, without errors that another one explains.
    """
    return (*check_structure(model, causes=causes), *check_operators(model), *check_opsets(model), *check_dims(model))


def check_operators(model: Model, *, is_joined: bool = True) -> tuple[Finding, ...]:
    """Return the mistakes of nodes in the use of their operators, each with the address of its element.

    With `is_joined`, those that one older version in opset_import causes at many nodes are one.
    """
    # onnx is imported only if the table of the package raises a doubt, which onnx may not share.
    if next(_Checker(model, is_quick=True).findings(), None) is None:
        return ()
    findings = [*_Checker(model).findings()]
    return tuple(_grouped(findings) if is_joined else findings)


def _grouped(findings: Sequence[Finding]) -> list[Finding]:
    """Join the findings that one older version in opset_import causes at many nodes."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        key = finding.address if "; the model imports" not in finding.hint else ""
        groups.setdefault((key, finding.message), []).append(finding)
    joined = []
    for (address, message), members in groups.items():
        if address or len(members) == 1:
            joined += members
        else:
            nodes = listed([_PART.sub("", each.address) for each in members])
            joined.append(replace(members[0], message=f"{message}, at {len(members):,} nodes ({nodes})"))
    return joined


class _Valid(NamedTuple):
    """What is the same for all nodes with the same operator, attributes, and dtypes of inputs."""

    dtypes: tuple[int | None, ...]
    """The data types of the outputs."""
    has_graphs: bool


_Judgement: TypeAlias = tuple[Sequence[Mistake], _Valid]


class _Checker:
    """One pass over the nodes of a model."""

    def __init__(self, model: Model, *, is_quick: bool = False) -> None:
        self._model = model
        self._is_quick = is_quick
        """Whether to use the table of the package, and to report every doubt."""
        self._functions: set[operators.OperatorKey] = {operators.function_key(each) for each in model.functions}
        self._opsets: dict[str, int | None] = {}
        self._valid: dict[object, _Valid] = {}
        self._alike: dict[object, _Judgement] = {}
        """Judgements that hold for all nodes with the same operator, dtypes, and names and types of attributes."""
        self._suggestions = _MOST_SUGGESTIONS

    def findings(self) -> Iterator[Finding]:
        for position, function in enumerate(self._model.functions):
            self._import(function.opset_import)
            yield from self._graph(function, f"/functions/{position}", ChainMap())
        self._import(self._model.opset_import)
        main: _Values = ChainMap()
        if self._model.graph is not None:
            yield from self._graph(self._model.graph, "/graph", main)
        for position, step in enumerate(self._model.training_info):
            for name, graph in (("initialization", step.initialization), ("algorithm", step.algorithm)):
                if graph is not None:
                    yield from self._graph(graph, f"/training_info/{position}/{name}", main.new_child())

    def _import(self, imports: Sequence[OperatorSetId]) -> None:
        self._opsets = {operators.plain_domain(each.domain): each.version for each in reversed(imports)}
        self._valid, self._alike = {}, {}

    def _graph(self, graph: Graph | Function, address: str, values: _Values) -> Iterator[Finding]:
        known = values.maps[0]

        @cache
        def stated() -> dict[str | None, int | None]:
            values = (*graph.value_info, *(graph.output if isinstance(graph, Graph) else ()))
            return {each.name: dtype_of_type(each.type) for each in values}

        if isinstance(graph, Graph):
            known.update([(each.name or "", dtype_of_type(each.type)) for each in graph.input])
            known.update([(each.name or "", each.data_type) for each in graph.initializer])
            sparse = [each.values for each in graph.sparse_initializer if each.values is not None]
            known.update([(each.name or "", each.data_type) for each in sparse])
        else:
            known.update([(name, stated().get(name)) for name in graph.input])
        known.pop("", None)
        dtype_of = known.get if len(values.maps) == 1 else values.get
        for position, node in enumerate(graph.node):
            inputs, outputs = node.input, node.output
            count, named = len(outputs), "" in inputs and tuple(map(bool, inputs))
            dtypes = tuple(map(dtype_of, inputs))
            key = id(node.attribute), node.op_type, node.domain, node.overload, count, dtypes, named
            valid = self._valid.get(key)
            if valid is None:
                mistakes, valid = self._judgement(node, key, dtype_of)
                at = f"{address}/node/{position}"
                for code, part, message, hint in mistakes:
                    yield Finding(severity="error", code=code, address=at + part, message=message, hint=hint)
                if not mistakes:
                    self._valid[key] = valid
            produced, has_graphs = valid
            if count == 1 and produced[0] and outputs[0]:
                known[outputs[0]] = produced[0]
            else:
                known.update(
                    [(name, dtype or stated().get(name)) for name, dtype in zip(outputs, produced, strict=True)]
                )
                known.pop("", None)
            if has_graphs:
                yield from self._inner_graphs(node, f"{address}/node/{position}", values)
        if not _WITH_AXES.isdisjoint([node.op_type for node in graph.node]):
            ranks = stated_ranks(graph)
            yield from check_perms(graph.node, address, ranks.get)
            yield from check_windows(graph.node, address, ranks.get)

    def _inner_graphs(self, node: Node, address: str, values: _Values) -> Iterator[Finding]:
        for segment, attribute in zip(attribute_segments(node.attribute), node.attribute, strict=True):
            at = f"{address}/attribute/{escape(segment)}"
            if attribute.g is not None:
                yield from self._graph(attribute.g, f"{at}/g", values.new_child())
            for position, graph in enumerate(attribute.graphs):
                yield from self._graph(graph, f"{at}/graphs/{position}", values.new_child())

    def _judgement(self, node: Node, key: _Key, dtype_of: Callable[[str], int | None]) -> _Judgement:
        if dtype_attribute(node) is not None:
            return self._judge(node, dtype_of)
        attributes = node.attribute
        graphs = [each.g or each.graphs for each in attributes]
        names, types = tuple([each.name for each in attributes]), tuple([each.type for each in attributes])
        texts = tuple([each.s or each.strings for each in attributes])
        alike = names, types, texts, any(graphs), *key[1:]
        judgement = self._alike.get(alike)
        if judgement is None:
            judgement = self._judge(node, dtype_of)
            if not any([each.code == "input-dtype" for each in judgement[0]]):  # whose text has names of values
                self._alike[alike] = judgement
        return judgement

    def _judge(self, node: Node, dtype_of: Callable[[str], int | None]) -> _Judgement:
        domain, op_type = operators.plain_domain(node.domain), node.op_type or ""
        opset = self._opsets.get(domain) or 0
        signature: operators.Signature | None = None
        mistakes: list[Mistake] = []
        if op_type and operators.operator_key(node) not in self._functions and self._is_judged(domain, op_type, opset):
            lookup = operators.table_signature if self._is_quick else operators.operator_signature
            signature = lookup(domain, op_type, opset)
            if signature is None:
                self._suggestions -= 1
                mistakes.append(unknown_operator(node, opset, suggests=self._suggestions >= 0))
            else:
                mistakes += node_mistakes(node, signature, opset)
                wrong_dtype = None if mistakes else dtype_mistake(node, signature, dtype_of)
                mistakes += [] if wrong_dtype is None else [wrong_dtype]
        produced = [None if mistakes else produced_dtype(node, signature, slot) for slot in range(len(node.output))]
        dtypes = tuple([dtype_of(each) if isinstance(each, str) else each for each in produced])
        return mistakes, _Valid(dtypes, any([each.g or each.graphs for each in node.attribute]))

    def _is_judged(self, domain: str, op_type: str, opset: int) -> bool:
        if opset <= 0 or (not domain and op_type in _EXPERIMENTAL):
            return False
        return domain in operator_table().newest if self._is_quick else opset <= (operators.newest_version(domain) or 0)

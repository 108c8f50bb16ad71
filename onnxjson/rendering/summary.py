"""Summary of a model as data: operators, weights, inputs and outputs, functions; elements of weights are not read."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from onnxjson.model.document import Graph, Model, ValueInfo
from onnxjson.model.index import Index, Kind
from onnxjson.model.operators import plain_domain
from onnxjson.model.types import shown_type
from onnxjson.model.walking import stored_tensors
from onnxjson.model.weights import weight_tensors
from onnxjson.rendering import values
from onnxjson.rendering.values import picked
from onnxjson.storage.external import Resolver

_Counts = Counter[tuple[Kind, str, str, str]]  # nodes by kind of graph, domain, operator and overload


class Opset(msgspec.Struct, frozen=True):
    """An operator set that the model imports, or uses without an import (version None)."""

    domain: str
    version: int | None
    nodes: int


class Value(msgspec.Struct, frozen=True):
    """An input or output of the model."""

    name: str
    type: str | None
    """Type in the grammar of docs/format.md, section 5; None if there is none, or it has no text form."""
    has_initializer: bool = False
    """Whether an initializer of the same name is its default (its value in IR versions before 4)."""


class Operator(msgspec.Struct, frozen=True):
    """Number of calls of an operator or function."""

    domain: str
    op_type: str
    nodes: int
    main: int
    subgraphs: int
    functions: int
    training: int
    is_function: bool


class FunctionSummary(msgspec.Struct, frozen=True):
    """One function of the model."""

    domain: str
    name: str
    overload: str
    inputs: int
    outputs: int
    nodes: int
    calls: int


class Graphs(msgspec.Struct, frozen=True):
    """Number of nodes by kind of graph."""

    main: int
    subgraphs: int
    functions: int
    training: int


class Summary(msgspec.Struct, frozen=True):
    """Summary of a model."""

    kind: str
    file: str
    format: str
    file_bytes: int
    ir_version: int | None
    producer_name: str | None
    producer_version: str | None
    domain: str | None
    model_version: int | None
    doc_string: str | None
    graph: str | None
    opsets: tuple[Opset, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: int
    nodes_in: Graphs
    operators: tuple[Operator, ...]
    functions: tuple[FunctionSummary, ...]
    weights: values.Weights
    constants: values.Weights  # all other tensors, such as shapes, indices and masks
    dtypes: tuple[values.Dtype, ...]
    biggest: tuple[values.BigTensor, ...]
    external: tuple[values.ExternalFile, ...]
    metadata: tuple[values.Pair, ...]
    training_steps: int
    devices: tuple[str, ...]


class Place(NamedTuple):
    """File of a model."""

    file: str
    format: str
    file_bytes: int


def summarise(model: Model, index: Index, place: Place, resolver: Resolver | None = None) -> Summary:
    """Summarize a model; a resolver finds external files, of which only names and sizes are read."""
    graph = model.graph if model.graph is not None else Graph()
    stored = list(stored_tensors(index))
    weights = list(weight_tensors(index))
    of_weights = set(map(id, weights))
    counts = _node_counts(index)
    per_kind = Counter[Kind]()
    for (kind, *_), number in counts.items():
        per_kind[kind] += number
    return Summary(
        kind="summary",
        **place._asdict(),
        **picked(model, "ir_version producer_name producer_version domain model_version doc_string"),
        graph=graph.name,
        opsets=_opsets(model, counts),
        inputs=_values(graph.input, index.scopes[0].initializers if model.graph is not None else ()),
        outputs=_values(graph.output, ()),
        nodes=per_kind.total(),
        nodes_in=Graphs(*_of_kinds(per_kind)),
        operators=_operators(model, counts),
        functions=_functions(model, counts),
        weights=values.weights(weights),
        constants=values.weights([each.tensor for each in stored if id(each.tensor) not in of_weights]),
        dtypes=values.dtypes(stored),
        biggest=values.biggest(stored),
        external=values.external_files(stored, resolver),
        metadata=values.pairs(model.metadata_props),
        training_steps=len(model.training_info),
        devices=tuple([each.name or "" for each in model.configuration]),
    )


def _node_counts(index: Index) -> _Counts:
    counts: _Counts = Counter()
    for scope in index.scopes:
        # Subgraphs of functions and of training steps count as such.
        kind = scope.kind if scope.root.kind == "main" else scope.root.kind
        names = Counter([(node.domain, node.op_type, node.overload) for node in scope.graph.node])
        for (domain, op_type, overload), number in names.items():
            counts[kind, domain or "", op_type or "", overload or ""] += number
    return counts


def _of_kinds(counts: Counter[Kind]) -> tuple[int, int, int, int]:
    """Return the counts in the order of the fields of `Graphs` and of `Operator`."""
    return counts["main"], counts["subgraph"], counts["function"], counts["training"]


def _opsets(model: Model, counts: _Counts) -> tuple[Opset, ...]:
    nodes = Counter[str]()
    for (_, domain, _, _), number in counts.items():
        nodes[plain_domain(domain)] += number
    imported = [Opset(each.domain or "", each.version, nodes[plain_domain(each.domain)]) for each in model.opset_import]
    known = {plain_domain(each.domain) for each in imported}
    used = [Opset(domain, None, number) for domain, number in sorted(nodes.items()) if domain not in known]
    return (*imported, *used)


def _values(values: Iterable[ValueInfo], initializers: Iterable[str]) -> tuple[Value, ...]:
    known = frozenset(initializers)
    return tuple([
        Value(value.name or "", None if value.type is None else shown_type(value.type), value.name in known)
        for value in values
    ])  # fmt: skip


def _operators(model: Model, counts: _Counts) -> tuple[Operator, ...]:
    functions = {(plain_domain(each.domain), each.name or "") for each in model.functions}
    kinds: dict[tuple[str, str], Counter[Kind]] = {}
    for (kind, domain, op_type, _), number in counts.items():
        kinds.setdefault((plain_domain(domain), op_type), Counter())[kind] += number
    operators = [
        Operator(*name, by_kind.total(), *_of_kinds(by_kind), name in functions) for name, by_kind in kinds.items()
    ]
    return tuple(sorted(operators, key=lambda each: (-each.nodes, each.domain, each.op_type)))


def _functions(model: Model, counts: _Counts) -> tuple[FunctionSummary, ...]:
    calls = Counter[tuple[str, str, str]]()
    for (_, domain, op_type, overload), number in counts.items():
        calls[plain_domain(domain), op_type, overload] += number
    functions = []
    for function in model.functions:
        names = function.domain or "", function.name or "", function.overload or ""
        called = calls[plain_domain(names[0]), names[1], names[2]]
        functions.append(FunctionSummary(*names, len(function.input), len(function.output), len(function.node), called))
    return tuple(functions)

"""Check whether a model is consistent, without onnx: names, order, scopes, versions, sizes of constants.

`onnxjson.model.operator_checks` checks that operators exist and have valid inputs and attributes.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from msgspec.structs import replace

from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.dataflow import consumed_names, producers_among, topological_order
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, OperatorSetId, SparseTensor, Tensor
from onnxjson.model.errors import Finding, Severity
from onnxjson.model.messages import ATTRIBUTE_PAYLOADS, ATTRIBUTE_TYPE_NAMES, short_payload
from onnxjson.model.operators import plain_domain
from onnxjson.model.tensors import tensor_mistakes

_WARNINGS = ("missing-opset", "duplicate-opset")
"""Codes of findings that are warnings; all others are errors."""

_NO_NAMES = ("None", "null")
_MOST_SUGGESTIONS = 50
_MOST_SHOWN = 8
_NESTED = ("t", "g", "tensors", "graphs", "sparse_tensor", "sparse_tensors")
_PLAIN_TYPES = {kind for kind, name in ATTRIBUTE_PAYLOADS.items() if name not in _NESTED}
"""Types of attributes without graphs and tensors."""

_WITHOUT_TYPES = 1
"""The IR version whose attributes had no type."""


def check_structure(model: Model, *, causes: bool = False) -> tuple[Finding, ...]:
    """Return the errors in the structure of a model, each with the address of its element.

    With `causes`, without errors that another one explains.
    """
    checker = _Checker(model.ir_version)
    checker.model(model)
    return tuple(checker.with_causes() if causes else checker.findings)


def check_dims(model: Model) -> tuple[Finding, ...]:
    """Return warnings about dimensions of the main graph whose name is probably meant as an unknown size."""
    findings = []
    plain: set[int] = set()  # types by identity, which many values share
    graph = model.graph or Graph()
    for kind, values in (("input", graph.input), ("output", graph.output), ("value_info", graph.value_info)):
        for position, value in enumerate(values):
            if id(value.type) in plain:
                continue
            tensor = None if value.type is None else value.type.tensor_type
            for dim in () if tensor is None or tensor.shape is None else tensor.shape.dim:
                if dim.dim_param in _NO_NAMES:
                    message = f"a dimension has the name {dim.dim_param}"
                    hint = "an unknown size is written ?"
                    address = f"/graph/{kind}/{position}/type"
                    findings.append(
                        Finding(severity="warning", code="suspicious-name", address=address, message=message, hint=hint)
                    )
                    break
            else:
                plain.add(id(value.type))
    return tuple(findings)


class _Scope:
    """The names that nodes of one graph or function can use."""

    def __init__(self, outer: "_Scope | None" = None) -> None:
        self.outer = outer
        self.known: dict[str, str | int] = {}
        """Values defined before the current node: name -> its producer, a node by its position."""
        self.nodes: Sequence[Node] = ()
        self.outputs: Collection[str | None] = ()

    @cached_property
    def later(self) -> dict[str, int]:
        """Outputs of nodes: name -> position of the first node with that output; only names that are wrong need it."""
        positions: dict[str, int] = {}
        for position, node in enumerate(self.nodes):
            for name in node.output:
                if name:
                    positions.setdefault(name, position)
        return positions

    def chain(self) -> "Iterator[_Scope]":
        """Iterate over this scope and those around it, innermost first."""
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def names(self) -> set[str]:
        """Return every visible name, defined now or later."""
        return {name for scope in self.chain() for name in (*scope.known, *scope.later)}

    @cached_property
    def unused(self) -> str:
        """The output of a node of this graph that neither a node nor an output of the graph uses; "" unless one."""
        used = {name for node in self.nodes for name in consumed_names(node)} | {*self.outputs}
        unused = [name for name in self.later if name not in used]
        return unused[0] if len(unused) == 1 else ""


class _Checker:
    """One pass over a model that collects findings."""

    def __init__(self, ir_version: int | None) -> None:
        self.findings: list[Finding] = []
        self._ir_version = ir_version
        self._suggestions = _MOST_SUGGESTIONS
        self._clean: set[int] = set()
        """Attributes of nodes, by identity, that have no errors."""
        self._domains: dict[str, str] = {}
        """Domains that nodes use -> address of the first such node."""
        self._nobody_makes: set[str] = set()
        """Names that are used, and that nothing produces."""

    def with_causes(self) -> list[Finding]:
        """Return the findings; an output with another's name explains the one name that nothing produces."""
        twice = [each for each in self.findings if each.code == "duplicate-output"]
        if len(twice) != 1 or len(self._nobody_makes) != 1:
            return self.findings
        hint = f'rename it to "{visible(next(iter(self._nobody_makes)))}", which is used and nothing produces'
        kept = [each for each in self.findings if each.code not in ("undefined-input", "undefined-output")]
        return [replace(each, hint=hint) if each is twice[0] else each for each in kept]

    def model(self, model: Model) -> None:
        if model.ir_version is None:
            self._add("no-ir-version", "", "the model has no ir_version", 'add it, such as "ir_version": 10')
        for position, function in enumerate(model.functions):
            self._function(function, f"/functions/{position}")
        names = [f"{each.domain or ''}:{each.name}:{each.overload or ''}" for each in model.functions]
        self._duplicates(names, "/functions/{}", "the function {}")
        self._domains = {}
        if model.graph is None:
            self._add("no-graph", "", "the model has no graph")
            return
        scope = _Scope()
        self._graph(model.graph, "/graph", scope)
        for position, step in enumerate(model.training_info):
            for name, graph in (("initialization", step.initialization), ("algorithm", step.algorithm)):
                if graph is not None:
                    self._graph(graph, f"/training_info/{position}/{name}", _Scope(scope))
        self._imports(model.opset_import, "", "the model")

    def _function(self, function: Function, address: str) -> None:
        self._domains = {}
        scope = _Scope()
        self._duplicates(function.input, f"{address}/input/{{}}", "the input {}")
        scope.known = {name: "an input" for name in function.input if name}
        for position, default in enumerate(function.attribute_proto):
            self._attribute(default, f"{address}/attribute_proto/{position}", scope)
        scope.outputs = function.output
        self._nodes(function.node, address, scope)
        for position, name in enumerate(function.output):
            self._output(name, f"{address}/output/{position}", "function", scope)
        self._imports(function.opset_import, address, "the function")

    def _graph(self, graph: Graph, address: str, scope: _Scope) -> None:
        self._duplicates([value.name for value in graph.input], f"{address}/input/{{}}", "the input {}")
        self._duplicates([value.name for value in graph.output], f"{address}/output/{{}}", "the output {}")
        self._initializers(graph, address, scope)
        for value in graph.input:
            if value.name:
                scope.known[value.name] = "an input"
        scope.outputs = [value.name for value in graph.output]
        self._nodes(graph.node, address, scope)
        for position, name in enumerate(scope.outputs):
            self._output(name, f"{address}/output/{position}", "graph", scope)

    def _initializers(self, graph: Graph, address: str, scope: _Scope) -> None:
        names = [tensor.name for tensor in graph.initializer]
        self._duplicates(names, f"{address}/initializer/{{}}", "the initializer {}")
        sparse_names = [None if sparse.values is None else sparse.values.name for sparse in graph.sparse_initializer]
        for position, tensor in enumerate(graph.initializer):
            if not tensor.name:
                self._add("missing-name", f"{address}/initializer/{position}", "an initializer has no name")
            self._tensor(tensor, f"{address}/initializer/{position}")
        taken = set(names)
        for position, name in enumerate(sparse_names):
            at = f"{address}/sparse_initializer/{position}"
            if not name:
                self._add("missing-name", at, "a sparse initializer has no name", "its name is that of its values")
            elif name in taken:
                self._add("duplicate-name", at, f'the initializer "{visible(name)}" is already defined')
            taken.add(name)
            self._sparse_tensor(graph.sparse_initializer[position], at)
        scope.known.update((name, "an initializer") for name in [*names, *sparse_names] if name)

    def _nodes(self, nodes: Sequence[Node], address: str, scope: _Scope) -> None:
        scope.nodes = nodes
        scope.__dict__.pop("later", None)
        late: list[tuple[int, int, str]] = []
        known = scope.known
        clean = self._clean
        domain: str | None = ""
        for position, node in enumerate(nodes):
            inputs, node_domain, attributes = node.input, node.domain, node.attribute
            for name in inputs:
                if name not in known and name:
                    late += self._unknown_inputs(inputs, position, address, scope)
                    break
            if not node.op_type:
                self._add("missing-op-type", f"{address}/node/{position}", "a node has no op_type")
            if node_domain != domain or not position:
                domain = node_domain
                self._domains.setdefault(domain or "", f"{address}/node/{position}")
            if attributes and id(attributes) not in clean:
                self._attributes(attributes, f"{address}/node/{position}", scope)
            for slot, name in enumerate(node.output):
                if name in known:
                    self._produced_twice(name, known[name], f"{address}/node/{position}/output/{slot}")
                elif name:
                    known[name] = position
        ring = _ring(nodes) if late else []
        if ring:
            self._cycle(nodes, ring, address)
        for position, slot, name in late:
            if position not in ring or scope.later[name] not in ring:
                self._not_sorted(name, scope.later[name], f"{address}/node/{position}/input/{slot}")

    def _unknown_inputs(
        self, inputs: Sequence[str], position: int, address: str, scope: _Scope
    ) -> Iterator[tuple[int, int, str]]:
        """Yield the inputs of a node that later nodes produce: its position, slot and name; report the others."""
        for slot, name in enumerate(inputs):
            if name and name not in scope.known:
                if name in scope.later:
                    yield position, slot, name
                else:
                    self._outer_name(name, f"{address}/node/{position}/input/{slot}", scope)

    def _produced_twice(self, name: str, producer: str | int, address: str) -> None:
        who = producer if isinstance(producer, str) else f"an output of node {producer}"
        message = f'"{visible(name)}" is defined twice: {who} already has that name'
        self._add("duplicate-output", address, message, "rename one of them")

    def _attributes(self, attributes: Sequence[Attribute], address: str, scope: _Scope) -> None:
        before = len(self.findings)
        names = [attribute.name for attribute in attributes]
        if all(names) and len(set(names)) == len(names) and all([_is_plain(each) for each in attributes]):
            self._clean.add(id(attributes))
            return
        self._duplicates(names, f"{address}/attribute/#{{}}", "the attribute {}", "duplicate-attribute")
        for segment, attribute in zip(attribute_segments(attributes), attributes, strict=True):
            self._attribute(attribute, f"{address}/attribute/{escape(segment)}", scope)
        # Many nodes share their attributes, which need one check unless they refer to names around them.
        if len(self.findings) == before and not any([each.g or each.graphs for each in attributes]):
            self._clean.add(id(attributes))

    def _attribute(self, attribute: Attribute, address: str, scope: _Scope) -> None:
        if not attribute.name:
            self._add("missing-name", address, "an attribute has no name")
        if not attribute.type and self._ir_version != _WITHOUT_TYPES:
            message = f'the attribute "{visible(attribute.name or "")}" has no type'
            self._add("attribute-without-type", address, message, 'add it, such as "type": "INT"')
        elif attribute.type and (fields := _other_fields(attribute)):
            of_type = ATTRIBUTE_TYPE_NAMES.get(attribute.type, str(attribute.type))
            message = f'the attribute "{visible(attribute.name or "")}" has the type {of_type} and a value in {fields}'
            wanted = ATTRIBUTE_PAYLOADS.get(attribute.type)
            hint = f"a value of that type is in {wanted}" if wanted else "there is no such type"
            self._add("wrong-attribute-field", address, message, hint)
        for field, tensors in (("t", (attribute.t,)), ("tensors", attribute.tensors)):
            for position, tensor in enumerate(tensors):
                if tensor is not None:
                    self._tensor(tensor, f"{address}/{field}" + (f"/{position}" if field == "tensors" else ""))
        if attribute.sparse_tensor is not None:
            self._sparse_tensor(attribute.sparse_tensor, f"{address}/sparse_tensor")
        for position, sparse in enumerate(attribute.sparse_tensors):
            self._sparse_tensor(sparse, f"{address}/sparse_tensors/{position}")
        if attribute.g is not None:
            self._graph(attribute.g, f"{address}/g", _Scope(scope))
        for position, graph in enumerate(attribute.graphs):
            self._graph(graph, f"{address}/graphs/{position}", _Scope(scope))

    def _tensor(self, tensor: Tensor, address: str) -> None:
        for code, message, hint in tensor_mistakes(tensor):
            self._add(code, address, message, hint)

    def _sparse_tensor(self, sparse: SparseTensor, address: str) -> None:
        for part, tensor in (("values", sparse.values), ("indices", sparse.indices)):
            if tensor is not None:
                self._tensor(tensor, f"{address}/{part}")

    def _outer_name(self, name: str, address: str, scope: _Scope) -> None:
        """Report a name that is not defined in its own graph, unless a graph around it defines it."""
        for outer in scope.chain():
            if name in outer.known:
                return
            if name in outer.later:
                self._not_sorted(name, outer.later[name], address)
                return
        hint = f'did you mean "{visible(scope.unused)}", which no node uses?' if scope.unused else ""
        message = f'nothing produces the input "{visible(name)}"'
        self._undefined("undefined-input", address, message, name, scope, otherwise=hint)

    def _not_sorted(self, name: str, producer: int, address: str) -> None:
        message = f'"{visible(name)}" is used before node {producer} produces it'
        self._add("not-sorted", address, message, "move that node up, or sort all nodes with fmt --sort")

    def _output(self, name: str | None, address: str, kind: str, scope: _Scope) -> None:
        if not name:
            self._add("missing-name", address, f"an output of the {kind} has no name")
        elif not any(name in each.known for each in scope.chain()):
            message = f'nothing produces the output "{visible(name)}" of the {kind}'
            hint = f'write "{visible(scope.unused)}", which no node uses' if scope.unused else ""
            self._undefined("undefined-output", address, message, name, scope, hint)

    def _undefined(
        self, code: str, address: str, message: str, name: str, scope: _Scope, hint: str = "", otherwise: str = ""
    ) -> None:
        self._suggestions -= 1
        self._nobody_makes.add(name)
        if self._suggestions >= 0:
            hint = hint or suggest(name, scope.names())
        self._add(code, address, message, hint or otherwise)

    def _cycle(self, nodes: Sequence[Node], ring: Sequence[int], address: str) -> None:
        names = [next((name for name in nodes[position].output if name), "") for position in ring]
        shown = listed([f'"{visible(name)}"' for name in names], _MOST_SHOWN)
        if len(ring) == 1:
            message = f"the node that produces {shown} needs its own output"
        else:
            message = f"the nodes that produce {shown} need each other's outputs"
        self._add("node-cycle", f"{address}/node/{ring[0]}", message, "connect one of their inputs to another value")

    def _imports(self, imports: Sequence[OperatorSetId], address: str, owner: str) -> None:
        if not imports:
            if self._domains:
                hint = 'add it, such as "opset_import": {"": 20}'
                self._add("missing-opset", address, f"{owner} has no opset_import", hint)
            return
        known: dict[str, int | None] = {}
        for position, imported in enumerate(imports):
            domain = plain_domain(imported.domain)
            if domain in known:
                message = f'{owner} already has an opset_import for the domain "{visible(domain)}"'
                hint = f'its version there is {known[domain]}; keep one ("" and "ai.onnx" are one domain)'
                self._add("duplicate-opset", f"{address}/opset_import/{position}", message, hint)
            known.setdefault(domain, imported.version)
        for domain, at in self._domains.items():
            if plain_domain(domain) not in known:
                message = f'{owner} has no opset_import for the domain "{visible(domain)}", which this node uses'
                self._add("missing-opset", at, message)

    def _duplicates(self, names: Iterable[str | None], address: str, what: str, code: str = "duplicate-name") -> None:
        first: dict[str, int] = {}
        for position, name in enumerate(names):
            if name and first.setdefault(name, position) != position:
                shown = what.format(f'"{visible(name)}"')
                self._add(code, address.format(position), f"{shown} is already defined, at position {first[name]}")

    def _add(self, code: str, address: str, message: str, hint: str = "") -> None:
        severity: Severity = "warning" if code in _WARNINGS else "error"
        self.findings.append(Finding(severity=severity, code=code, address=address, message=message, hint=hint))


def _is_plain(attribute: Attribute) -> bool:
    """Whether an attribute has a type, its value, and neither graphs nor tensors, so that nothing needs a check."""
    short = short_payload(attribute)
    if short is not None:
        return short[0] in _PLAIN_TYPES
    has_more = any([getattr(attribute, name) for name in _NESTED])
    return bool(attribute.type) and not has_more and not _other_fields(attribute)


def _other_fields(attribute: Attribute) -> str:
    of_type = ATTRIBUTE_PAYLOADS.get(attribute.type or 0)
    empty = Attribute()
    used = [each for each in ATTRIBUTE_PAYLOADS.values() if getattr(attribute, each) != getattr(empty, each)]
    return " and ".join([each for each in used if each != of_type])


def _ring(nodes: Sequence[Node]) -> list[int]:
    needs = producers_among(nodes)
    stuck = set(range(len(nodes))).difference(topological_order(needs))
    if not stuck:
        return []
    position = min(stuck)
    way: dict[int, None] = {}
    while position not in way:
        way[position] = None
        position = min(needs[position] & stuck)
    passed = list(way)
    return sorted(passed[passed.index(position) :])

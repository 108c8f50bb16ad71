"""What nothing uses: nodes, constants, functions, taken away."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.document import Function, Graph, Model, Node
from onnxjson.edits.declaration import Edit
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.rebuilding import Body, rebuilt
from onnxjson.edits.workspace import Workspace
from onnxjson.elements import byte_length, element_count
from onnxjson.index import Index, Scope
from onnxjson.operators import plain_domain
from onnxjson.walking import walk

What = Literal["nodes", "initializers", "functions"]


class Prune(Edit, frozen=True, kw_only=True, eq=False, tag="prune"):
    """Take away nodes whose outputs lead to no output, constants that nothing uses, and what is said of them.

    Inputs and outputs stay. What training uses is used; so are the scales and zero points of annotated tensors.
    """

    examples: ClassVar = ('{"edit": "prune"}', '{"edit": "prune", "what": ["initializers"]}')

    what: Annotated[tuple[What, ...], Meta(min_length=1, description="What is looked for.")] = ("nodes", "initializers")

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        index = workspace.index
        pruner = _Pruner(index, self.what)
        model = rebuilt(index, pruner.pruned)
        notes = []
        for count, one, many in ((pruner.nodes, "node", "nodes"), (pruner.constants, "constant", "constants")):
            if count:
                notes.append(f"{count:,} {one if count == 1 else many} gone")
        if pruner.saved:
            notes[-1] += f", with {pruner.saved:,} bytes"
        total = pruner.nodes + pruner.constants
        if "functions" in self.what:
            functions = _used_functions(model)
            if gone := len(model.functions) - len(functions):
                notes.append(f"{gone:,} function{'s' * (gone != 1)} gone")
                total += gone
                model = replace(model, functions=functions)
        if not total:
            return Outcome(0, ("everything is used",))
        workspace.replace_model(model)
        return Outcome(total, tuple(notes))


class _Pruner:
    """Takes what nothing uses out of one graph after another, the inner before the outer."""

    def __init__(self, index: Index, what: Iterable[What]) -> None:
        self._what = set(what)
        self._free: dict[Scope, set[str]] = {}
        """What a graph, pruned, takes from those around it."""
        self._kept_by_training: set[str] = set()
        for step in index.model.training_info:
            for entry in (*step.initialization_binding, *step.update_binding):
                self._kept_by_training.update([name for name in (entry.key, entry.value) if name])
        self._training = [scope for scope in index.scopes if scope.kind == "training"]
        self.nodes = 0
        self.constants = 0
        self.saved = 0
        """Bytes of the constants that go."""

    def pruned(self, scope: Scope, graph: Body) -> Body:
        """The graph without what nothing uses."""
        used = {name for name in scope.output_names if name}
        if scope.kind == "main":
            used |= self._kept_by_training
            for training in self._training:
                used |= self._free[training]
        elif scope.kind == "training":
            used |= self._kept_by_training
        inner: dict[int | None, set[str]] = {}
        for child in scope.children:
            inner.setdefault(child.owner.position if child.owner is not None else None, set()).update(self._free[child])
        used |= inner.get(None, set())
        if isinstance(graph, Graph):
            used |= _annotation_names(graph)
        live = _live_nodes(scope, used, inner) if "nodes" in self._what else range(len(graph.node))
        for position in live:
            used.update(graph.node[position].input)
            used |= inner.get(position, set())
        self._free[scope] = {name for name in used if name and not scope.defines(name)}
        if len(live) < len(graph.node):
            self.nodes += len(graph.node) - len(live)
            gone = {name for place in set(range(len(graph.node))) - set(live) for name in graph.node[place].output}
            graph = _without_values(replace(graph, node=tuple([graph.node[place] for place in live])), gone)
        return self._without_constants(graph, used, scope) if "initializers" in self._what else graph

    def _without_constants(self, graph: Body, used: set[str], scope: Scope) -> Body:
        if isinstance(graph, Function):
            return graph
        used = used | set(scope.inputs)
        dense = [tensor for tensor in graph.initializer if not tensor.name or tensor.name in used]
        sparse = [
            each
            for each in graph.sparse_initializer
            if each.values is None or not each.values.name or each.values.name in used
        ]
        gone = len(graph.initializer) + len(graph.sparse_initializer) - len(dense) - len(sparse)
        if not gone:
            return graph
        self.constants += gone
        kept = set(map(id, dense))
        for tensor in graph.initializer:
            if id(tensor) not in kept and tensor.data_type is not None:
                self.saved += byte_length(tensor.data_type, element_count(tensor.dims)) or 0
        names = {tensor.name for tensor in graph.initializer} - {tensor.name for tensor in dense}
        names |= {each.values.name for each in graph.sparse_initializer if each.values is not None} - {
            each.values.name for each in sparse if each.values is not None
        }
        graph = replace(graph, initializer=tuple(dense), sparse_initializer=tuple(sparse))
        return _without_values(graph, {name for name in names if name})


def _live_nodes(scope: Scope, used: set[str], inner: dict[int | None, set[str]]) -> list[int]:
    """The positions of the nodes that lead to a name that is used, whatever their order."""
    makers = scope.makers
    nodes = scope.graph.node
    live: set[int] = set()
    pending = [makers[name][0] for name in used if name in makers]
    while pending:
        position = pending.pop()
        if position in live:
            continue
        live.add(position)
        for name in nodes[position].input:
            if name in makers and makers[name][0] not in live:
                pending.append(makers[name][0])
        pending += [makers[name][0] for name in inner.get(position, ()) if name in makers]
    return sorted(live)


def _annotation_names(graph: Graph) -> set[str]:
    """Scales and zero points of annotated tensors."""
    return {
        entry.value
        for annotation in graph.quantization_annotation
        for entry in annotation.quant_parameter_tensor_names
        if entry.value
    }


def _without_values(graph: Body, gone: set[str]) -> Body:
    """The graph without what it says of values that are gone."""
    kept = tuple([value for value in graph.value_info if value.name not in gone])
    if len(kept) < len(graph.value_info):
        graph = replace(graph, value_info=kept)
    if isinstance(graph, Graph) and any([each.tensor_name in gone for each in graph.quantization_annotation]):
        annotations = [each for each in graph.quantization_annotation if each.tensor_name not in gone]
        graph = replace(graph, quantization_annotation=tuple(annotations))
    return graph


def _used_functions(model: Model) -> tuple[Function, ...]:
    """The functions that the graphs call, or that such functions call."""
    keys = {_key(each.domain, each.name, each.overload): each for each in model.functions}
    roots: list[Graph | Function] = [graph for graph in (model.graph,) if graph is not None]
    roots += [graph for step in model.training_info for graph in (step.initialization, step.algorithm) if graph]
    found: set[tuple[str, str, str]] = set()
    for root in roots:  # grows while it is walked
        for node in walk(root, Node):
            key = _key(node.domain, node.op_type, node.overload)
            if key in keys and key not in found:
                found.add(key)
                roots.append(keys[key])
    return tuple([each for each in model.functions if _key(each.domain, each.name, each.overload) in found])


def _key(domain: str | None, name: str | None, overload: str | None) -> tuple[str, str, str]:
    return plain_domain(domain), name or "", overload or ""

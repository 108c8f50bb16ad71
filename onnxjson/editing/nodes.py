"""Edits of nodes and their inputs: add-node, replace-node, rewire and swap-inputs."""

from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from onnxjson.editing.attributes import attribute_of
from onnxjson.editing.declaration import Edit, Outcome, name_of
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.rewiring import (
    Changes,
    Known,
    ResultTypes,
    check_node,
    dtype_conflict,
    dtype_of,
    output_dtype,
    replace_nodes,
    with_inputs,
)
from onnxjson.editing.workspace import NodeChange, Workspace
from onnxjson.model.dataflow import consumed_names, sort_nodes
from onnxjson.model.display import counted, listed, suggest, visible
from onnxjson.model.document import Attribute, Node
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import attribute_types, known_attributes

__all__ = ["AddNode", "ReplaceNode", "Rewire", "SwapInputs"]

_MOST_INPUTS = 1 << 16
"""Maximum number of inputs of a node."""


class AddNode(Edit, frozen=True, kw_only=True, eq=False, tag="add-node"):
    """Add a node, optionally between a value and its consumers.

    The inputs are existing values, or "" to omit one; the outputs are new names. The node is placed after the producers
    of its inputs. With `insert`, all consumers of its first input use its first output instead; if that input is an
    output of the graph, the new node produces it, and the old producer gets the new name.
    """

    group: ClassVar = "nodes"
    reads_shapes = False
    words = ("op_type",)
    examples = (
        '{"edit": "add-node", "op_type": "Relu", "input": ["image"], "output": ["image_relu"], "insert": true}',
        '{"edit": "add-node", "op_type": "Concat", "input": ["a", "b"], "output": ["ab"], "attribute": {"axis": 1}}',
    )

    op_type: Annotated[str, Role("operator"), about("The operator, such as Relu.", min_length=1)]
    input: Annotated[tuple[str, ...], Role("tensors"), about("Its inputs, in order.")] = ()
    output: Annotated[tuple[str, ...], Role("names"), about("New names for its outputs.", min_length=1)]
    attribute: Annotated[dict[str, Any], about("Its attributes, as in a document.")] = {}  # noqa: RUF012
    name: Annotated[str | None, Role("name"), about("The name of the node.")] = None
    domain: Annotated[str | None, Role("domain"), about("The domain of the operator.")] = None
    graph: Annotated[str, Role("graph"), about("The address of the graph or function to change.")] = "/graph"
    insert: Annotated[bool, about("Replace the first input with the first output in all of its consumers.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        scope = workspace.scope(self.graph.removeprefix("@"))
        inputs = tuple([visible_name(workspace, scope, each, name_of(self)) for each in self.input])
        _check_new_names(workspace, self.output, name_of(self))
        if self.name and any(ref.node.name == self.name for ref in workspace.index.node_refs):
            raise EditError(
                f'another node is already called "{visible(self.name)}"; choose another name', place=name_of(self)
            )
        attributes = attributes_of(self.attribute, self.domain, self.op_type, name_of(self))
        node = Node(inputs, self.output, self.name or None, self.op_type, attributes, domain=self.domain or None)
        check_node(workspace, scope, node, name_of(self))
        conflict = dtype_conflict(workspace, scope, node)
        if conflict is not None:
            raise EditError(f"{conflict}; convert one of them with a Cast", place=name_of(self))
        if self.insert:
            return self._inserted(workspace, scope, node)
        position = _after_inputs(scope, node)
        nodes = scope.graph.node
        graph = replace(scope.graph, node=(*nodes[:position], node, *nodes[position:]))
        workspace.replace_graph(scope, graph)
        new = listed([f'"{visible(each)}"' for each in self.output if each])
        return Outcome(1, (f"nothing uses {new} yet; add-output makes a value an output, rewire gives it to nodes",))

    def _inserted(self, workspace: Workspace, scope: Scope, node: Node) -> Outcome:
        if not node.input or not node.input[0]:
            raise EditError("insert needs a first input, which the first output replaces", place=name_of(self))
        taken, given = node.input[0], node.output[0]
        if not scope.defines(taken):
            raise EditError(
                f'"{visible(taken)}" belongs to a graph around {scope.address}; '
                "add the node to that graph, or leave insert out",
                place=name_of(self),
            )
        changes = Changes(workspace)
        places = workspace.index.consumers(scope, taken)
        if not places:
            raise EditError(f'nothing uses "{visible(taken)}"; leave insert out', place=name_of(self))
        position = _after_inputs(scope, node)
        made = output_dtype(workspace, scope, node, 0)
        dtype = dtype_of(workspace, scope, made) if isinstance(made, str) else made
        retyped = ResultTypes(workspace, name_of(self), {}, {(scope, taken): dtype})
        notes: tuple[str, ...] = ()
        if any(use.position is None and use.scope is scope for use in places):
            maker = scope.producers.get(taken)
            if maker is None or workspace.index.producer(scope, taken) is None:
                raise EditError(
                    f'"{visible(taken)}" is an input or constant and an output of the graph; '
                    "no node can be inserted in between",
                    place=name_of(self),
                )
            retyped.put(changes)
            # The output of the graph keeps its name: the new node produces it, and its old producer gets the new name.
            changes.of(scope).outputs[maker[0]] = {maker[1]: given}
            other = (*(given if name == taken else name for name in node.input),)
            node = replace(node, input=other, output=(taken, *node.output[1:]))
            notes = (f'"{visible(taken)}" is an output of the graph: its old producer now has "{visible(given)}"',)
        else:
            retyped.put(changes, without=(scope, taken))
            for use in places:
                changes.take(use, given)
        changes.make()
        nodes = scope.graph.node
        ordered = sort_nodes((*nodes[:position], node, *nodes[position:]))
        if ordered is None:
            raise EditError("the node would depend on its own output, through another input", place=name_of(self))
        workspace.replace_graph(scope, replace(scope.graph, node=ordered))
        return Outcome(len(places), notes)


class ReplaceNode(Edit, frozen=True, kw_only=True, eq=False, tag="replace-node"):
    """Replace the operator of nodes; keep inputs and outputs.

    By default, attributes that the new operator also has are kept; the others are removed and reported.
    """

    group: ClassVar = "nodes"
    reads_shapes = False
    words = ("node", "op_type")
    examples = (
        '{"edit": "replace-node", "node": "op:HardSwish", "op_type": "Relu"}',
        '{"edit": "replace-node", "node": "op:Relu", "op_type": "LeakyRelu", "attribute": {"alpha": 0.1}}',
    )

    node: Annotated[str, Role("nodes"), about("The nodes: a name or a selector.")]
    op_type: Annotated[str, Role("operator"), about("The new operator.", min_length=1)]
    attribute: Annotated[dict[str, Any] | None, about("All attributes of the new node, as in a document.")] = None
    domain: Annotated[str | None, Role("domain"), about("The domain of the new operator.")] = None

    def change(self, workspace: Workspace) -> Outcome:
        changes: dict[Scope, dict[int, NodeChange]] = {}
        dropped: dict[str, int] = {}
        dtypes: Known = {}
        refs = workspace.select(self.node)
        for ref in refs:
            known = known_attributes(self.domain, self.op_type, workspace.opset(ref.scope, self.domain))
            old = ref.node.attribute
            if self.attribute is not None:
                attributes = attributes_of(self.attribute, self.domain, self.op_type, name_of(self))
            else:
                attributes = tuple([each for each in old if known is None or each.name in known])
                for each in old:
                    if known is not None and each.name not in known:
                        dropped[each.name or ""] = dropped.get(each.name or "", 0) + 1
            node = replace(
                ref.node, op_type=self.op_type, domain=self.domain or None, overload=None, attribute=attributes
            )
            check_node(workspace, ref.scope, node, name_of(self), ref.address)
            conflict = dtype_conflict(workspace, ref.scope, node, None, dtypes)
            if conflict is not None and dtype_conflict(workspace, ref.scope, ref.node) is None:
                raise EditError(f"{ref.address}: {conflict}", ref.address, place=name_of(self))
            changes.setdefault(ref.scope, {})[ref.position] = node
        replace_nodes(workspace, changes, name_of(self))
        notes = [
            f'the attribute "{visible(name)}" of {count:,} node{"s" * (count != 1)} is removed'
            for name, count in dropped.items()
        ]
        return Outcome(len(refs), tuple(notes))


class Rewire(Edit, frozen=True, kw_only=True, eq=False, tag="rewire"):
    """Replace an input of nodes with another value.

    To select all consumers of a value, use `input:NAME`. Cycles are refused. Nodes that would come before the producers
    of their inputs are moved.
    """

    group: ClassVar = "nodes"
    reads_shapes = False
    words = ("node", "input", "tensor")
    examples = (
        '{"edit": "rewire", "node": "/layer1/conv/Conv", "input": 0, "tensor": "image_normalised"}',
        '{"edit": "rewire", "node": "input:image !op:Shape", "input": "image", "tensor": "image_normalised"}',
    )

    node: Annotated[str, Role("nodes"), about("The nodes: a name or a selector.")]
    input: Annotated[int | str, Role("input"), about("The input: its position, from 0, or its current value.")]
    tensor: Annotated[str, Role("tensor"), about('The new value; "" omits the input.')]

    def change(self, workspace: Workspace) -> Outcome:
        refs = workspace.select(self.node)
        dtypes: Known = {}
        changes: dict[Scope, dict[int, NodeChange]] = {}
        rewired: list[tuple[NodeRef, str]] = []
        for ref in refs:
            wanted = visible_name(workspace, ref.scope, self.tensor, name_of(self))
            slots = self._slots(ref)
            names = list(ref.node.input) + [""] * (max(slots) + 1 - len(ref.node.input))
            if all(names[slot] == wanted for slot in slots):
                continue
            for slot in slots:
                names[slot] = wanted
            while names and not names[-1]:
                names.pop()
            new = with_inputs(ref.node, tuple(names))
            _check_rewired(workspace, ref, new, name_of(self), dtypes)
            changes.setdefault(ref.scope, {})[ref.position] = new
            rewired.append((ref, wanted))
        _check_cycles(workspace.index, rewired, name_of(self))
        late = [ref.scope for ref, name in rewired if _is_made_later(ref, name)]
        replace_nodes(workspace, changes, name_of(self))
        _put_in_order(workspace, late)
        same = len(refs) - len(rewired)
        return Outcome(len(refs), (f"{same:,} of {counted(len(refs), 'node')} had it already",) if same else ())

    def _slots(self, ref: NodeRef) -> list[int]:
        if isinstance(self.input, str):
            slots = [slot for slot, name in enumerate(ref.node.input) if name == self.input]
            if not slots:
                names = listed([f'"{visible(name)}"' for name in ref.node.input], 8) or "none"
                hint = suggest(self.input, ref.node.input) or f"its inputs are {names}"
                raise EditError(
                    f'{ref.address} has no input "{visible(self.input)}"; {hint}', ref.address, place=name_of(self)
                )
            return slots
        if self.input < 0 or (self.input > len(ref.node.input) and self.input > _MOST_INPUTS):
            raise EditError(f"{ref.address} has no input {self.input}", ref.address, place=name_of(self))
        return [self.input]


class SwapInputs(Edit, frozen=True, kw_only=True, eq=False, tag="swap-inputs"):
    """Exchange two inputs of nodes."""

    group: ClassVar = "nodes"
    reads_shapes = False
    words = ("node", "first", "second")
    examples = ('{"edit": "swap-inputs", "node": "op:Sub"}',)

    node: Annotated[str, Role("nodes"), about("The nodes: a name or a selector.")]
    first: Annotated[int, about("Position of one input, from 0.", ge=0)] = 0
    second: Annotated[int, about("Position of the other.", ge=0)] = 1

    def change(self, workspace: Workspace) -> Outcome:
        if self.first == self.second:
            raise EditError("first and second are the same input", place=name_of(self))
        refs = workspace.select(self.node)
        dtypes: Known = {}
        changes: dict[Scope, dict[int, NodeChange]] = {}
        for ref in refs:
            names = list(ref.node.input)
            last = max(self.first, self.second)
            if last >= len(names):
                there = counted(len(names), "input")
                raise EditError(f"{ref.address} has {there}, none at {last}", ref.address, place=name_of(self))
            names[self.first], names[self.second] = names[self.second], names[self.first]
            new = replace(ref.node, input=tuple(names))
            _check_rewired(workspace, ref, new, name_of(self), dtypes)
            changes.setdefault(ref.scope, {})[ref.position] = new
        workspace.replace_nodes_in(changes)
        return Outcome(len(refs))


def visible_name(workspace: Workspace, scope: Scope, text: str, edit: str) -> str:
    """Return the name of a selected value in a graph where it is used; "" for none.

    Raises:
        SelectorError: there is no such value, or it is not visible in the graph.
    """
    if not text or Index.defining_scope(scope, text) is not None:
        return text
    defining_scope, name = workspace.value(text)
    if Index.defining_scope(scope, name) is defining_scope:
        return name
    raise SelectorError(f'"{visible(name)}" of {defining_scope.address} is not visible in {scope.address}', place=edit)


def attributes_of(values: dict[str, Any], domain: str | None, op_type: str, edit: str) -> tuple[Attribute, ...]:
    """Return the attributes of a node from values as in a document, by name; see `attribute_of`."""
    table = attribute_types(domain, op_type)
    return tuple([attribute_of(name, value, table, op_type, edit, where=name) for name, value in values.items()])


def _check_new_names(workspace: Workspace, names: tuple[str, ...], edit: str) -> None:
    if len(set(names)) != len(names):
        raise EditError("two outputs have the same name", place=edit)
    for name in names:
        for scope in workspace.index.scopes if name else ():
            if scope.defines(name):
                raise EditError(f'"{visible(name)}" already exists in {scope.address}; choose another name', place=edit)


def _after_inputs(scope: Scope, node: Node) -> int:
    """Return the first position after all producers of a node's inputs."""
    return max([scope.producers[name][0] + 1 for name in consumed_names(node) if name in scope.producers], default=0)


def _is_made_later(ref: NodeRef, name: str) -> bool:
    """Whether a value is produced after a node, or after the node around its subgraph."""
    defining_scope = Index.defining_scope(ref.scope, name) if name else None
    if defining_scope is None or name not in defining_scope.producers:
        return False
    position = ref.position
    for scope in ref.scope.chain():
        if scope is defining_scope or scope.owner is None:
            break
        position = scope.owner.position
    return defining_scope.producers[name][0] >= position


def _put_in_order(workspace: Workspace, scopes: list[Scope]) -> None:
    """Move nodes after the producers of their inputs, in graphs and those around them, inner graphs first."""
    addresses = {outer.address for scope in scopes for outer in scope.chain()}
    for address in sorted(addresses, key=lambda each: each.count("/"), reverse=True):
        scope = workspace.scope(address)
        ordered = sort_nodes(scope.graph.node)
        if ordered is not None and ordered is not scope.graph.node:
            workspace.replace_graph(scope, replace(scope.graph, node=ordered))


def _check_rewired(workspace: Workspace, ref: NodeRef, new: Node, edit: str, known: Known) -> None:
    check_node(workspace, ref.scope, new, edit, ref.address)
    conflict = dtype_conflict(workspace, ref.scope, new, None, known)
    if conflict is not None and dtype_conflict(workspace, ref.scope, ref.node) is None:
        raise EditError(f"{ref.address}: {conflict}; add a Cast with add-node", ref.address, place=edit)


def _check_cycles(index: Index, rewired: list[tuple[NodeRef, str]], edit: str) -> None:
    """Raise if a new input of a node depends on the node itself."""
    for ref, name in rewired:
        # The node itself, and the nodes around it.
        forbidden = {ref, *[scope.owner for scope in ref.scope.chain() if scope.owner is not None]}
        if name and _depends(index, ref.scope, name, forbidden):
            raise EditError(
                f'{ref.address} cannot use "{visible(name)}", which depends on it: that would be a cycle',
                ref.address,
                place=edit,
            )


def _depends(index: Index, scope: Scope, name: str, nodes: set[NodeRef]) -> bool:
    """Whether a value depends on one of some nodes; producers before all of them are skipped."""
    first: dict[Scope, int] = {}
    for each in nodes:
        first[each.scope] = min(each.position, first.get(each.scope, each.position))
    pending = [(scope, name)]
    seen: set[NodeRef] = set()
    while pending:
        place, wanted = pending.pop()
        producer = index.producer(place, wanted)
        if producer is None or producer in seen or producer.position < first.get(producer.scope, 0):
            continue
        if producer in nodes:
            return True
        seen.add(producer)
        pending += [(producer.scope, each) for each in consumed_names(producer.node)]
    return False

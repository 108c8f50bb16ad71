"""Edits that add nodes, replace them, and change what they take."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from onnxjson.display import visible
from onnxjson.document import Attribute, Node
from onnxjson.edits.attributes import attribute_of
from onnxjson.edits.declaration import Edit, name_of
from onnxjson.edits.node_order import in_order, needed_names
from onnxjson.edits.operator_checks import Known, check_node, dtype_conflict, dtype_made, dtype_of
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.result_types import ResultTypes, replace_nodes
from onnxjson.edits.rewiring import Changes, taking
from onnxjson.edits.workspace import NodeChange, Workspace
from onnxjson.errors import EditError, SelectorError
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.operators import attribute_types, known_attributes
from onnxjson.suggestions import suggest


class AddNode(Edit, frozen=True, kw_only=True, eq=False, tag="add-node"):
    """Add a node, by itself or between a value and those who take it.

    The inputs are values that are there, "" for one that is left out; the outputs have names that nothing has yet. The
    node comes after whatever makes its inputs. With insert, all that took its first input take its first output
    instead; an output of the graph keeps its name, so that what made it gets the new one.
    """

    words = ("op_type",)
    examples = (
        '{"edit": "add-node", "op_type": "Relu", "input": ["image"], "output": ["image_relu"], "insert": true}',
        '{"edit": "add-node", "op_type": "Concat", "input": ["a", "b"], "output": ["ab"], "attribute": {"axis": 1}}',
    )

    op_type: Annotated[str, Role("operator"), Meta(min_length=1, description="The operator, such as Relu.")]
    input: Annotated[tuple[str, ...], Role("tensors"), Meta(description="The values that it takes, in order.")] = ()
    output: Annotated[
        tuple[str, ...], Role("names"), Meta(min_length=1, description="New names for the values that it makes.")
    ]
    attribute: Annotated[dict[str, Any], Meta(description="Its attributes, as in a document.")] = {}  # noqa: RUF012
    name: Annotated[str | None, Role("name"), Meta(description="The name of the node.")] = None
    domain: Annotated[str | None, Role("domain"), Meta(description="The domain of the operator.")] = None
    graph: Annotated[
        str, Role("graph"), Meta(description="The address of the graph or function that it is added to.")
    ] = "/graph"
    insert: Annotated[bool, Meta(description="Have all that took the first input take the first output instead.")] = (
        False
    )

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        scope = workspace.scope(self.graph.removeprefix("@"))
        inputs = tuple([visible_name(workspace, scope, each, name_of(self)) for each in self.input])
        _check_new_names(workspace, self.output, name_of(self))
        if self.name and any(ref.node.name == self.name for ref in workspace.index.node_refs):
            raise EditError(f'{name_of(self)}: a node is called "{visible(self.name)}" already; choose another name')
        attributes = _attributes(self.attribute, self.domain, self.op_type, name_of(self))
        node = Node(inputs, self.output, self.name or None, self.op_type, attributes, domain=self.domain or None)
        check_node(workspace, scope, node, name_of(self))
        conflict = dtype_conflict(workspace, scope, node)
        if conflict is not None:
            raise EditError(f"{name_of(self)}: {conflict}; a Cast makes one of the other")
        if self.insert:
            return self._inserted(workspace, scope, node)
        position = _after_inputs(scope, node)
        nodes = scope.graph.node
        graph = msgspec.structs.replace(scope.graph, node=(*nodes[:position], node, *nodes[position:]))
        workspace.replace_graph(scope, graph)
        return Outcome(1)

    def _inserted(self, workspace: Workspace, scope: Scope, node: Node) -> Outcome:
        if not node.input or not node.input[0]:
            raise EditError(f"{name_of(self)}: insert needs a first input, whose place the node takes")
        taken, given = node.input[0], node.output[0]
        if not scope.defines(taken):
            raise EditError(
                f'{name_of(self)}: "{visible(taken)}" belongs to a graph around {scope.address}; '
                "add the node to that graph, or leave insert out"
            )
        index = workspace.index
        changes = Changes(workspace)
        places = index.consumers(scope, taken)
        if not places:
            raise EditError(f'{name_of(self)}: nothing takes "{visible(taken)}"; leave insert out')
        position = _after_inputs(scope, node)
        made = dtype_made(workspace, scope, node, 0)
        dtype = dtype_of(workspace, scope, made) if isinstance(made, str) else made
        retyped = ResultTypes(workspace, name_of(self), {}, {(scope, taken): dtype})
        notes: tuple[str, ...] = tuple(retyped.notes)
        if any(use.position is None and use.scope is scope for use in places):
            maker = scope.makers.get(taken)
            if maker is None or index.producer(scope, taken) is None:
                raise EditError(
                    f'{name_of(self)}: "{visible(taken)}" is an input or constant and an output of the graph; '
                    "nothing can stand between"
                )
            retyped.put(changes)
            # The output of the graph keeps its name, so the node makes it, and what made it gets the new name.
            changes.of(scope).outputs[maker[0]] = {maker[1]: given}
            other = (*(given if name == taken else name for name in node.input),)
            node = msgspec.structs.replace(node, input=other, output=(taken, *node.output[1:]))
            said = f'"{visible(taken)}" is an output of the graph: what made it is called "{visible(given)}" now'
            notes = (said, *notes)
        else:
            retyped.put(changes, without=(scope, taken))
            for use in places:
                changes.take(use, given)
        changes.make()
        graph = scope.graph
        nodes = (*graph.node[:position], node, *graph.node[position:])
        ordered = nodes if _is_in_order(nodes) else in_order(nodes)
        if ordered is None:
            raise EditError(f"{name_of(self)}: the node would need its own output, by way of another input")
        workspace.replace_graph(scope, msgspec.structs.replace(graph, node=ordered))
        return Outcome(len(places), notes)


class ReplaceNode(Edit, frozen=True, kw_only=True, eq=False, tag="replace-node"):
    """Put another operator in the place of nodes; what they take and make stays.

    Without attributes given the node keeps those that the new operator has, too; the notes name the others.
    """

    words = ("node", "op_type")
    examples = (
        '{"edit": "replace-node", "node": "op:HardSwish", "op_type": "Relu"}',
        '{"edit": "replace-node", "node": "op:Relu", "op_type": "LeakyRelu", "attribute": {"alpha": 0.1}}',
    )

    node: Annotated[str, Role("nodes"), Meta(description="The nodes: a name or a selector.")]
    op_type: Annotated[str, Role("operator"), Meta(min_length=1, description="The operator that takes their place.")]
    attribute: Annotated[
        dict[str, Any] | None, Meta(description="All attributes of the new node, as in a document.")
    ] = None
    domain: Annotated[str | None, Role("domain"), Meta(description="The domain of the new operator.")] = None

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        changes: dict[Scope, dict[int, NodeChange]] = {}
        dropped: dict[str, int] = {}
        dtypes: Known = {}
        refs = workspace.select(self.node)
        for ref in refs:
            known = known_attributes(self.domain, self.op_type, workspace.opset(ref.scope, self.domain))
            old = ref.node.attribute
            if self.attribute is not None:
                attributes = _attributes(self.attribute, self.domain, self.op_type, name_of(self))
            else:
                attributes = tuple([each for each in old if known is None or each.name in known])
                for each in old:
                    if known is not None and each.name not in known:
                        dropped[each.name or ""] = dropped.get(each.name or "", 0) + 1
            node = msgspec.structs.replace(
                ref.node, op_type=self.op_type, domain=self.domain or None, overload=None, attribute=attributes
            )
            check_node(workspace, ref.scope, node, f"{name_of(self)}: {ref.address}")
            conflict = dtype_conflict(workspace, ref.scope, node, None, dtypes)
            if conflict is not None and dtype_conflict(workspace, ref.scope, ref.node) is None:
                raise EditError(f"{name_of(self)}: {ref.address}: {conflict}", ref.address)
            changes.setdefault(ref.scope, {})[ref.position] = node
        retyped = replace_nodes(workspace, changes, name_of(self))
        notes = [
            f'the attribute "{visible(name)}" of {count:,} node{"s" * (count != 1)} is dropped'
            for name, count in dropped.items()
        ]
        return Outcome(len(refs), (*notes, *retyped))


class Rewire(Edit, frozen=True, kw_only=True, eq=False, tag="rewire"):
    """Have nodes take another value as one of their inputs.

    One node, some or all that take a value: `input:NAME` selects those. A cycle is refused; nodes that would stand
    before what they now need are moved.
    """

    words = ("node", "input", "tensor")
    examples = (
        '{"edit": "rewire", "node": "/layer1/conv/Conv", "input": 0, "tensor": "image_normalised"}',
        '{"edit": "rewire", "node": "input:image !op:Shape", "input": "image", "tensor": "image_normalised"}',
    )

    node: Annotated[str, Role("nodes"), Meta(description="The nodes: a name or a selector.")]
    input: Annotated[
        int | str,
        Role("input"),
        Meta(description="Which input: its position from 0, or the value that it takes now."),
    ]
    tensor: Annotated[str, Role("tensor"), Meta(description='The value to take; "" leaves the input out.')]

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
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
            new = taking(ref.node, tuple(names))
            _check_rewired(workspace, ref, new, name_of(self), dtypes)
            changes.setdefault(ref.scope, {})[ref.position] = new
            rewired.append((ref, wanted))
        _check_cycles(workspace.index, rewired, name_of(self))
        late = [ref.scope for ref, name in rewired if _is_made_later(ref, name)]
        retyped = replace_nodes(workspace, changes, name_of(self))
        _put_in_order(workspace, late)
        same = len(refs) - len(rewired)
        return Outcome(len(refs), (*([f"{same:,} of {len(refs):,} nodes take it already"] if same else ()), *retyped))

    def _slots(self, ref: NodeRef) -> list[int]:
        if isinstance(self.input, str):
            slots = [slot for slot, name in enumerate(ref.node.input) if name == self.input]
            if not slots:
                hint = suggest(self.input, ref.node.input) or f"it takes {_listed(ref.node.input)}"
                raise EditError(
                    f'{name_of(self)}: {ref.address} does not take "{visible(self.input)}"; {hint}', ref.address
                )
            return slots
        if self.input < 0 or (self.input > len(ref.node.input) and self.input > _MOST_INPUTS):
            raise EditError(f"{name_of(self)}: {ref.address} has no input {self.input}", ref.address)
        return [self.input]


class SwapInputs(Edit, frozen=True, kw_only=True, eq=False, tag="swap-inputs"):
    """Exchange two inputs of nodes."""

    words = ("node", "first", "second")
    examples = ('{"edit": "swap-inputs", "node": "op:Sub"}',)

    node: Annotated[str, Role("nodes"), Meta(description="The nodes: a name or a selector.")]
    first: Annotated[int, Meta(ge=0, description="Position of one input, from 0.")] = 0
    second: Annotated[int, Meta(ge=0, description="Position of the other.")] = 1

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        if self.first == self.second:
            raise EditError(f"{name_of(self)}: {self.first} and {self.second} are one input; name two")
        refs = workspace.select(self.node)
        dtypes: Known = {}
        changes: dict[Scope, dict[int, NodeChange]] = {}
        for ref in refs:
            names = list(ref.node.input)
            last = max(self.first, self.second)
            if last >= len(names):
                raise EditError(f"{name_of(self)}: {ref.address} has {len(names)} inputs, none at {last}", ref.address)
            names[self.first], names[self.second] = names[self.second], names[self.first]
            new = msgspec.structs.replace(ref.node, input=tuple(names))
            _check_rewired(workspace, ref, new, name_of(self), dtypes)
            changes.setdefault(ref.scope, {})[ref.position] = new
        workspace.replace_nodes_in(changes)
        return Outcome(len(refs))


_MOST_INPUTS = 1 << 16
"""Inputs that a node may come to have; no operator needs so many."""


def visible_name(workspace: Workspace, scope: Scope, text: str, edit: str) -> str:
    """The name of the value that a person means, as it is seen in a graph; "" for none.

    Raises:
        SelectorError: nothing is called so, or only in a graph that cannot be seen from here.
    """
    if not text or Index.home(scope, text) is not None:
        return text
    home, name = workspace.value(text)
    if Index.home(scope, name) is home:
        return name
    raise SelectorError(f'{edit}: "{visible(name)}" of {home.address} cannot be seen in {scope.address}')


def _attributes(values: dict[str, Any], domain: str | None, op_type: str, edit: str) -> tuple[Attribute, ...]:
    table = attribute_types(domain, op_type)
    return tuple([attribute_of(name, value, table, op_type, edit, where=name) for name, value in values.items()])


def _check_new_names(workspace: Workspace, names: tuple[str, ...], edit: str) -> None:
    if len(set(names)) != len(names):
        raise EditError(f"{edit}: two outputs have one name")
    for name in names:
        for scope in workspace.index.scopes if name else ():
            if scope.defines(name):
                raise EditError(f'{edit}: "{visible(name)}" is made in {scope.address} already; choose another name')


def _after_inputs(scope: Scope, node: Node) -> int:
    """The first position at which everything is there that a node takes."""
    return max([scope.makers[name][0] + 1 for name in needed_names(node) if name in scope.makers], default=0)


def _is_in_order(nodes: tuple[Node, ...]) -> bool:
    later: set[str] = {name for node in nodes for name in node.output if name}
    for node in nodes:
        if not later.isdisjoint(needed_names(node)):
            return False
        later.difference_update(node.output)
    return True


def _is_made_later(ref: NodeRef, name: str) -> bool:
    """Whether a value that a node is to take is made after it, or after the node in whose subgraph it stands."""
    home = Index.home(ref.scope, name) if name else None
    if home is None or name not in home.makers:
        return False
    position = ref.position
    for scope in ref.scope.chain():
        if scope is home or scope.owner is None:
            break
        position = scope.owner.position
    return home.makers[name][0] >= position


def _put_in_order(workspace: Workspace, scopes: list[Scope]) -> None:
    """Moves nodes that stand before what they need, in graphs and those around them, the inner before the outer."""
    addresses = {outer.address for scope in scopes for outer in scope.chain()}
    for address in sorted(addresses, key=lambda each: each.count("/"), reverse=True):
        scope = workspace.scope(address)
        ordered = None if _is_in_order(scope.graph.node) else in_order(scope.graph.node)
        if ordered is not None:
            workspace.replace_graph(scope, msgspec.structs.replace(scope.graph, node=ordered))


def _check_rewired(workspace: Workspace, ref: NodeRef, new: Node, edit: str, known: Known) -> None:
    check_node(workspace, ref.scope, new, f"{edit}: {ref.address}")
    conflict = dtype_conflict(workspace, ref.scope, new, None, known)
    if conflict is not None and dtype_conflict(workspace, ref.scope, ref.node) is None:
        raise EditError(f"{edit}: {ref.address}: {conflict}; add-node puts a Cast between", ref.address)


def _check_cycles(index: Index, rewired: list[tuple[NodeRef, str]], edit: str) -> None:
    """Do nothing if no value that nodes are to take depends on one of them.

    Raises:
        EditError: one does.
    """
    for ref, name in rewired:
        # The node itself, and those whose subgraphs it stands in.
        forbidden = {ref}
        for scope in ref.scope.chain():
            if scope.owner is not None:
                forbidden.add(scope.owner)
        if not name or not _depends(index, ref.scope, name, forbidden):
            continue
        raise EditError(
            f'{edit}: {ref.address} cannot take "{visible(name)}", which needs what it makes: that would be a cycle',
            ref.address,
        )


def _depends(index: Index, scope: Scope, name: str, nodes: set[NodeRef]) -> bool:
    """Whether a value needs one of some nodes; what cannot, since it stands before all of them, is not followed."""
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
        pending += [(producer.scope, each) for each in needed_names(producer.node)]
    return False


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(f'"{visible(name)}"' for name in names[:8]) + (", ..." if len(names) > 8 else "")
    return shown or "nothing"

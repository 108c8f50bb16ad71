"""Constants that another batch needs: changed where they stand, or given to some of their users as copies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from onnxjson.constants.stored import with_elements
from onnxjson.display import visible
from onnxjson.document import Attribute, Function, Node, Tensor
from onnxjson.edits.batch_tracing import Requests
from onnxjson.edits.constant_values import constant_tensor, integer_constant, with_attribute_values, with_values
from onnxjson.edits.rebuilding import Body
from onnxjson.edits.workspace import Workspace
from onnxjson.elements import BITS, element_count
from onnxjson.errors import EditError
from onnxjson.external import Resolver
from onnxjson.index import Scope
from onnxjson.names import ATTRIBUTE_TYPES
from onnxjson.payloads import whole

Place = tuple[Scope, int, int]
"""An input of a node: its graph, its position and its slot."""

_MOST_BYTES: Final = 256 << 20


class ConstantChanges:
    """What becomes of constants, by graph.

    Args:
        workspace: the model.
        requests: what its nodes need; its graphs may be those of another index of the same model.
        batch: the size before, and the one after where that is a number.

    Raises:
        EditError: a constant is to have rows for more samples, and its rows are not alike, or it would be too big.
    """

    def __init__(self, workspace: Workspace, requests: Requests, batch: tuple[int, int | None]) -> None:
        self._workspace = workspace
        self._batch = batch
        self._taken: list[str] = []
        self.changed: list[str] = []
        """What was changed, in words."""
        self._constants: dict[Scope, dict[str, Tensor]] = {}
        self._copies: dict[Scope, list[Tensor]] = {}
        self._inputs: dict[Scope, dict[int, dict[int, str]]] = {}
        wanted: dict[tuple[Scope, str], dict[Place, Tensor]] = {}
        for place, numbers in requests.numbers.items():
            self._want(wanted, place, numbers, None)
        for place, axis in requests.rows.items():
            self._want(wanted, place, {}, axis)
        for place, axis in requests.single.items():
            self._want(wanted, place, {}, axis, is_single=True)
        for scope, position, slot in requests.dropped:
            own = workspace.scope(scope.address)
            self._inputs.setdefault(own, {}).setdefault(position, {})[slot] = ""
            name = own.graph.node[position].input[slot]
            self.changed.append(f'"{visible(name)}", all zeros, which {own.address}/node/{position} does not need')
        for (home, name), uses in wanted.items():
            self._settle(home, name, uses)

    def _want(
        self,
        wanted: dict[tuple[Scope, str], dict[Place, Tensor]],
        place: Place,
        numbers: Mapping[int, int],
        axis: int | None,
        *,
        is_single: bool = False,
    ) -> None:
        scope = self._workspace.scope(place[0].address)
        _, position, slot = place
        name = scope.graph.node[position].input[slot]
        found = constant_tensor(scope, name)
        assert found is not None
        home, tensor = found
        if axis is not None:
            batch = (self._batch[0], 1) if is_single else self._batch
            new = _with_rows(tensor, name, axis, batch, self._workspace.model_folder)
        else:
            count = element_count(tensor.dims)
            new = with_values(tensor, [numbers.get(at, old) for at, old in enumerate(_integers(scope, name, count))])
        if new != tensor:
            wanted.setdefault((home, name), {})[(scope, position, slot)] = new

    def _settle(self, home: Scope, name: str, uses: dict[Place, Tensor]) -> None:
        """Changes a constant where all who take it agree; gives copies to the others."""
        versions: list[tuple[Tensor, list[Place]]] = []
        for place, tensor in uses.items():
            same = next((places for known, places in versions if known == tensor), None)
            if same is None:
                versions.append((tensor, [place]))
            else:
                same.append(place)
        if len(versions) == 1 and len(self._workspace.index.consumers(home, name)) == len(uses):
            self._constants.setdefault(home, {})[name] = versions[0][0]
            self.changed.append(f'"{visible(name)}"')
            return
        for tensor, places in versions:
            copy = self._workspace.fresh_name(name, self._taken)
            self._taken.append(copy)
            self._copies.setdefault(home, []).append(replace(tensor, name=copy))
            self.changed.append(f'"{visible(copy)}", a copy of "{visible(name)}"')
            for scope, position, slot in places:
                self._inputs.setdefault(scope, {}).setdefault(position, {})[slot] = copy

    def change(self, scope: Scope, graph: Body) -> Body:
        """The graph with the constants that it needs."""
        constants, copies, inputs = (
            self._constants.get(scope, {}),
            self._copies.get(scope, []),
            self._inputs.get(scope, {}),
        )
        if not (constants or copies or inputs):
            return graph
        nodes = list(graph.node)
        for position, slots in inputs.items():
            names = [slots.get(slot, name) for slot, name in enumerate(nodes[position].input)]
            while names and not names[-1]:
                names.pop()
            nodes[position] = replace(nodes[position], input=tuple(names))
        updates: dict[str, Any] = {}
        gone = set(constants)
        for name, tensor in constants.items():
            if name in scope.makers:
                nodes[scope.makers[name][0]] = _constant_node(nodes[scope.makers[name][0]], tensor)
        if isinstance(graph, Function):
            nodes[:0] = [_new_node(tensor) for tensor in copies]
        else:
            kept = [
                constants[each.name] if each.name in constants and each.name not in scope.makers else each
                for each in graph.initializer
            ]
            updates["initializer"] = (*kept, *copies)
            # A type that is said of a constant which has another shape now would be wrong.
            updates["value_info"] = tuple([each for each in graph.value_info if each.name not in gone])
        return replace(graph, node=tuple(nodes), **updates)


def _integers(scope: Scope, name: str, count: int) -> tuple[int, ...]:

    constant = integer_constant(scope, name)
    assert constant is not None
    assert len(constant.values) == count
    return constant.values


def _constant_node(node: Node, tensor: Tensor) -> Node:
    """A Constant with another value, said in the way in which it was said."""
    attribute = node.attribute[0]
    if attribute.t is not None:
        return replace(node, attribute=(replace(attribute, t=replace(tensor, name=attribute.t.name)),))
    if attribute.type in (2, 7) and tensor.data_type == 7:
        from onnxjson.tensors import to_numpy

        values = [int(each) for each in to_numpy(tensor).reshape(-1)]
        return replace(node, attribute=(with_attribute_values(attribute, values),))
    return replace(_new_node(replace(tensor, name=node.output[0])), name=node.name)


def _new_node(tensor: Tensor) -> Node:

    value = Attribute(name="value", type=ATTRIBUTE_TYPES["TENSOR"], t=replace(tensor, name=None))
    return Node(op_type="Constant", output=(tensor.name or "",), attribute=(value,))


def _with_rows(tensor: Tensor, name: str, axis: int, batch: tuple[int, int | None], folder: Path | None) -> Tensor:
    """A constant with rows for all samples: those that it has, as often as needed."""
    old, new = batch
    shown = f'the constant "{visible(name)}"'
    if new is None or tensor.data_type not in BITS or BITS[tensor.data_type] % 8:
        raise EditError(f"{shown} cannot have rows for more samples")
    held = with_elements(tensor, Resolver(folder or Path()))
    assert held.raw_data is not None
    data = whole(held.raw_data)
    item = BITS[tensor.data_type] // 8
    inner = item * element_count(tensor.dims[axis + 1 :])
    outer = element_count(tensor.dims[:axis])
    rows = tensor.dims[axis]
    each = rows // old if old else rows
    if len(data) // max(rows, 1) * each * new > _MOST_BYTES:
        raise EditError(f"{shown} would have more than {_MOST_BYTES >> 20} MiB; make it smaller by hand first")
    parts = []
    for place in range(outer):
        block = data[place * rows * inner : (place + 1) * rows * inner]
        sample = block[: each * inner]
        if sample * old != block:
            raise EditError(f"{shown} has another row for each of the {old} samples; nobody knows those of others")
        parts.append(sample * new)
    dims = (*tensor.dims[:axis], each * new, *tensor.dims[axis + 1 :])
    return replace(
        held, dims=dims, raw_data=b"".join(parts), doc_string=tensor.doc_string, metadata_props=tensor.metadata_props
    )

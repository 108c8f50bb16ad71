"""transpose-input, the edit that changes the layout of an input or output: order of axes, order of channels."""

from typing import Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.name_changes import matching
from onnxjson.editing.parameters import Role
from onnxjson.editing.tensor_values import constant_node
from onnxjson.editing.workspace import Workspace
from onnxjson.model import elements
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Node, Tensor, TensorShape, Type, ValueInfo
from onnxjson.model.errors import EditError
from onnxjson.model.messages import ATTRIBUTE_TYPES
from onnxjson.model.renaming import renamed
from onnxjson.model.types import format_type

_INT64 = 7
_MOST_CHANNELS = 4096


class TransposeInput(Edit, frozen=True, kw_only=True, eq=False, tag="transpose-input"):
    """Change the order of the axes of an input or output, reverse its channels (RGB to BGR), or both.

    The input keeps its name and gets the new shape; a Transpose, a Gather, or both convert it for all of its consumers.
    For an output they convert the result of the model.
    """

    words: ClassVar = ("tensor",)
    examples: ClassVar = (
        '{"edit": "transpose-input", "tensor": "image", "perm": [0, 3, 1, 2]}',
        '{"edit": "transpose-input", "tensor": "image", "reverse": 1}',
    )

    tensor: Annotated[str, Role("input"), Meta(min_length=1, description="The name of the input, or of the output.")]
    perm: Annotated[
        tuple[int, ...] | None,
        Meta(
            min_length=1,
            description="The perm of the Transpose: [0, 3, 1, 2] turns an NCHW input to NHWC, [0, 2, 3, 1] an output.",
        ),
    ] = None
    reverse: Annotated[int | None, Meta(description="The axis of the channels to reverse, in the current layout.")] = (
        None
    )

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        if self.perm is None and self.reverse is None:
            raise EditError("transpose-input needs `perm`, `reverse` or both")
        main, graph = workspace.main, workspace.graph
        inputs, outputs = ([each.name or "" for each in values] for values in (graph.input, graph.output))
        name = matching(self.tensor, list(dict.fromkeys([*inputs, *outputs])), "input or output")[0]
        if name in inputs and name in outputs:
            raise EditError(f'"{visible(name)}" is an input and an output, which cannot change separately')
        if main.initializer(name) is not None:
            raise EditError(f'"{visible(name)}" has a default, which would need the new layout as well')
        values = graph.input if name in inputs else graph.output
        value = values[(inputs if name in inputs else outputs).index(name)]
        dims = _dims(value)
        if dims is not None:
            self._check(name, len(dims))
        inner = workspace.fresh_name(f"{name}_in_its_layout")
        made = _LayoutSteps(workspace, name, inner)
        if self.reverse is not None:
            axis = self.reverse + len(dims) if self.reverse < 0 and dims is not None else self.reverse
            made.gather(axis, self._channels(name, value, axis))
        if self.perm is not None:
            made.transpose(self.perm)
        nodes, constants = made.nodes(from_model=name in outputs)
        changed = renamed(workspace.index, {main: {name: inner}}).graph
        assert changed is not None
        new = replace(value, type=_permuted(value.type, self.perm, of_input=name in inputs))
        updates: dict[str, Any]
        if name in inputs:
            updates = {"node": (*nodes, *changed.node), "input": _put(changed.input, inner, new)}
        else:
            updates = {"node": (*changed.node, *nodes), "output": _put(changed.output, inner, new)}
        if constants:
            updates["initializer"] = (*changed.initializer, *constants)
        workspace.replace_model(replace(workspace.model, graph=replace(changed, **updates)))
        shown = format_type(new.type) if new.type is not None else None
        return Outcome(1, (f'"{visible(name)}" is {visible(shown)} now',) if shown else ())

    def _check(self, name: str, rank: int) -> None:
        if self.perm is not None and sorted(self.perm) != list(range(rank)):
            raise EditError(
                f'perm {list(self.perm)} does not fit "{visible(name)}", which has {rank} axes; '
                f"it must contain each of {', '.join(map(str, range(rank)))} once"
            )
        if self.reverse is not None and not -rank <= self.reverse < rank:
            raise EditError(f'"{visible(name)}" has {rank} axes, none at {self.reverse}')

    def _channels(self, name: str, value: ValueInfo, axis: int) -> int:
        dims = _dims(value)
        size = dims[axis] if dims is not None else None
        if not isinstance(size, int):
            raise EditError(
                f'the size of "{visible(name)}" along axis {axis} is not known, so its channels cannot be reversed; '
                "use set-shape first"
            )
        if not 0 < size <= _MOST_CHANNELS:
            raise EditError(f'"{visible(name)}" has {size:,} elements along axis {axis}; which are not channels')
        return size


class _LayoutSteps:
    """Nodes that convert between the new layout and that of the model."""

    def __init__(self, workspace: Workspace, name: str, inner: str) -> None:
        self._workspace = workspace
        self._name = name
        self._inner = inner
        self._taken = [inner]
        self._made: list[Node] = []
        self._constants: list[Tensor] = []
        self._sources: list[Node] = []
        self._node_names = {ref.node.name for ref in workspace.index.nodes()}

    def gather(self, axis: int, size: int) -> None:
        """Add a node that reverses the order of the elements along an axis."""
        indices = self._fresh(f"{self._name}_reversed_order")
        data = elements.pack(_INT64, list(range(size - 1, -1, -1)))
        tensor = Tensor(dims=(size,), data_type=_INT64, name=indices, raw_data=data)
        version = self._workspace.model.ir_version
        if version is None or version >= 4:
            self._constants.append(tensor)
        else:
            self._sources.append(constant_node(indices, tensor, self._node_name("Constant")))
        attribute = Attribute(name="axis", type=ATTRIBUTE_TYPES["INT"], i=axis)
        self._made.append(
            Node(op_type="Gather", input=("", indices), attribute=(attribute,), name=self._node_name("Gather"))
        )

    def transpose(self, perm: tuple[int, ...]) -> None:
        """Add a node that changes the order of the axes."""
        attribute = Attribute(name="perm", type=ATTRIBUTE_TYPES["INTS"], ints=perm)
        name = self._node_name("Transpose")
        self._made.append(Node(op_type="Transpose", input=("",), attribute=(attribute,), name=name))

    def nodes(self, *, from_model: bool) -> tuple[list[Node], list[Tensor]]:
        """Return the connected nodes and their constants; `from_model` for an output."""
        # The axis of the channels refers to the layout of the model, so this step is next to the model.
        steps = self._made if from_model else self._made[::-1]
        names = [self._fresh(f"{self._name}_step") for _ in steps[1:]]
        names = [self._inner, *names, self._name] if from_model else [self._name, *names, self._inner]
        wired = [
            replace(step, input=(source, *step.input[1:]), output=(target,))
            for step, source, target in zip(steps, names, names[1:], strict=False)
        ]
        return [*self._sources, *wired], self._constants

    def _fresh(self, wanted: str) -> str:
        self._taken.append(self._workspace.fresh_name(wanted, self._taken))
        return self._taken[-1]

    def _node_name(self, operator: str) -> str:
        name, number = f"{self._name}_{operator}", 1
        while name in self._node_names:
            name, number = f"{self._name}_{operator}_{number}", number + 1
        self._node_names.add(name)
        return name


def _dims(value: ValueInfo) -> list[int | str | None] | None:
    if value.type is None or value.type.tensor_type is None:
        raise EditError(f'"{visible(value.name or "")}" is not a tensor')
    shape = value.type.tensor_type.shape
    return None if shape is None else [each.dim_param or each.dim_value for each in shape.dim]


def _permuted(value: Type | None, perm: tuple[int, ...] | None, *, of_input: bool) -> Type | None:
    """Return the type for the caller."""
    if value is None or perm is None or value.tensor_type is None or value.tensor_type.shape is None:
        return value
    old = value.tensor_type.shape.dim
    order = [perm.index(axis) for axis in range(len(perm))] if of_input else perm
    shape: TensorShape = replace(value.tensor_type.shape, dim=tuple([old[axis] for axis in order]))
    return replace(value, tensor_type=replace(value.tensor_type, shape=shape))


def _put(values: tuple[ValueInfo, ...], inner: str, new: ValueInfo) -> tuple[ValueInfo, ...]:
    return tuple([new if each.name == inner else each for each in values])


__all__ = ["TransposeInput"]

"""Edits of shapes and layouts: set-shape, set-dim, and transpose-input, which changes the order of axes or channels."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from onnxjson.editing.batch import divisors, inputs_alike, resize
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.inference import LooseInference, replace_dimension
from onnxjson.editing.name_changes import matching
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.reshaped_sizes import follow_sizes
from onnxjson.editing.tensor_values import constant_node
from onnxjson.editing.type_relations import dims_of, tensor_of, with_shape
from onnxjson.editing.workspace import Workspace
from onnxjson.model import elements
from onnxjson.model.dimensions import dimension_names, substitute, with_dimension
from onnxjson.model.display import counted, listed, suggest, visible
from onnxjson.model.document import Attribute, Dimension, Function, Graph, Node, Tensor, TensorShape, Type, ValueInfo
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.index import Scope
from onnxjson.model.limits import LARGEST_DIM
from onnxjson.model.messages import ATTRIBUTE_TYPES
from onnxjson.model.renaming import free_name, renamed
from onnxjson.model.types import format_type
from onnxjson.model.walking import Body, rebuild

__all__ = ["SetDim", "SetShape", "TransposeInput"]

UNKNOWN = "?"
"""Spelling of a dimension without size and name."""

ShapeText = tuple[int | str, ...]

_INT64 = 7
_MOST_CHANNELS = 4096


class SetShape(Edit, frozen=True, kw_only=True, eq=False, tag="set-shape"):
    """Set the shapes of inputs, outputs or values; update the types that depend on them.

    The target shapes of Reshape nodes are updated. If nodes are incompatible with the shape, or with other sizes of a
    name in it, the edit fails and names them. Use `shapes` to set shapes that depend on each other.
    """

    group: ClassVar = "shapes"
    words: ClassVar = ("tensor", "shape")
    examples: ClassVar = (
        '{"edit": "set-shape", "tensor": "image", "shape": ["N", 3, 256, 256]}',
        '{"edit": "set-shape", "shapes": {"left": [1, 3, 64, 64], "right": [1, 3, 64, 64]}}',
    )

    tensor: Annotated[str | None, Role("tensor"), about("The input, output or value.")] = None
    shape: Annotated[
        ShapeText | None, Role("shape"), about('Its dimensions: sizes, names, or "?" for an unknown one.')
    ] = None
    shapes: Annotated[dict[str, ShapeText] | None, about("Instead of tensor and shape: several shapes by name.")] = None
    propagate: Annotated[bool, about("Update dependent types; if false, only the given shapes change.")] = True
    anyway: Annotated[bool, about("Set them anyway, and list the incompatible nodes.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        if (self.shapes is None) == (self.tensor is None) or (self.tensor is None) != (self.shape is None):
            raise EditError("name the tensor and its shape: `set-shape image 1,3,8,8`; or give `shapes`")
        wanted = self.shapes if self.shapes is not None else {self.tensor or "": self.shape or ()}
        values: dict[tuple[Scope, str], tuple[Dimension, ...]] = {}
        for selector, shape in wanted.items():
            place = workspace.value(selector)
            if place in values:
                raise EditError(f'"{visible(place[1])}" gets two shapes')
            values[place] = dimensions_of(shape)
        workspace.is_forced |= self.anyway
        return Outcome(len(values), _set_shapes(workspace, values, propagate=self.propagate))


class SetDim(Edit, frozen=True, kw_only=True, eq=False, tag="set-dim"):
    """Set a dimension, selected by name or by axis, to a size, a name, or unknown.

    A name represents one size, so all its occurrences change, also in expressions such as 2*batch. With `follow`,
    constants that contain the size of an input change too, such as shapes and positions, or are replaced by nodes that
    compute them; so do inputs with the same size on this axis. If the dimension cannot be followed, the edit fails and
    names the nodes.
    """

    group: ClassVar = "shapes"
    words: ClassVar = ("dim", "size")
    examples: ClassVar = (
        '{"edit": "set-dim", "dim": "batch", "size": 4}',
        '{"edit": "set-dim", "tensor": "image", "axis": 0, "size": "batch"}',
        '{"edit": "set-dim", "tensor": "input_ids", "axis": 1, "size": "length", "follow": true}',
    )

    dim: Annotated[str | None, Role("dim"), about("The name of the dimension, or VALUE:AXIS.", min_length=1)] = None
    tensor: Annotated[str | None, Role("tensor"), about("Instead of dim: the value that has the dimension.")] = None
    axis: Annotated[int | None, about("The axis of the tensor; -1 is the last.")] = None
    size: Annotated[int | str, about('The size, another name, or "?" for unknown.', ge=0)]
    follow: Annotated[bool, about("Follow the axis of an input through all nodes and constants.")] = False
    anyway: Annotated[bool, about("Set it anyway, and list the incompatible nodes.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        if (self.dim is None) == (self.tensor is None) or (self.tensor is None) != (self.axis is None):
            dim, _, size = str(self.size).rpartition("=")
            example = f"{visible(dim)} {visible(size)}" if dim else "N 4"
            raise EditError(
                f"name the dimension and its size: `set-dim {example}`; or give `tensor`, `axis` and `size`"
            )
        place = self.tensor or "", self.axis or 0
        if self.dim is not None:
            named = self._place(workspace, self.dim)
            if named is None:
                return self._named(workspace, self.dim)
            place = named
        axis = place[1]
        scope, name = workspace.value(place[0])
        stated = workspace.index.type_of(scope, name)
        shape = stated.tensor_type.shape if stated is not None and stated.tensor_type is not None else None
        if shape is None:
            raise EditError(f'the shape of "{visible(name)}" is not known; set all of it with set-shape')
        if not -len(shape.dim) <= axis < len(shape.dim):
            raise EditError(f'"{visible(name)}" has {counted(len(shape.dim), "dimension")}, none at {axis}')
        axis %= len(shape.dim)
        if self.follow:
            return self._followed(workspace, name, axis)
        new = list(shape.dim)
        new[axis] = with_dimension(new[axis], _size(self.size))
        workspace.is_forced |= self.anyway
        return Outcome(1, _set_shapes(workspace, {(scope, name): tuple(new)}))

    @staticmethod
    def _place(workspace: Workspace, dim: str) -> tuple[str, int] | None:
        """Return the value and the axis that ``VALUE:AXIS`` names; None if it is the name of a dimension."""
        name, _, axis = dim.rpartition(":")
        if not name or not axis.lstrip("-").isdecimal() or dim in dimension_names(workspace.model):
            return None
        return name, int(axis)

    def _followed(self, workspace: Workspace, name: str, axis: int) -> Outcome:
        if name not in workspace.main.inputs or self.size in (0, UNKNOWN):
            raise EditError("`follow` needs the axis of an input, and a size or a name")
        places = inputs_alike(workspace, name, axis)
        old = (dims_of(workspace.main.types[name]) or ())[axis]
        if not isinstance(old, int) or not old:
            raise EditError(f'axis {axis} of "{visible(name)}" has no size that could be followed')
        divided = divisors(workspace, old)
        notes = [*resize(workspace, places, old, self.size, mixes=True), *divided]
        alike = [f'"{visible(each)}" has the same dimension' for each in places if each != name]
        return Outcome(len(places), (*notes, *alike))

    def _named(self, workspace: Workspace, name: str) -> Outcome:
        known = dimension_names(workspace.model)
        size = _size(self.size)
        if size is None:
            raise EditError(
                f'the dimension "{visible(name)}" needs a size or another name; "?" works only with `tensor` and `axis`'
            )
        touched = [text for text in known if substitute(text, {name: size}) != text]
        if not touched and self.size != name:
            some = listed([visible(text) for text in known], 5)
            hint = suggest(name, known) or (f"there are {some}" if known else "there is none")
            raise SelectorError(f'no dimension is called "{visible(name)}"; {hint}')

        workspace.is_forced |= self.anyway
        return Outcome(len(touched), replace_dimension(workspace, name, size))


def dimensions_of(shape: ShapeText) -> tuple[Dimension, ...]:
    """Convert dimensions as written by the user.

    Raises:
        EditError: a size is not valid.
    """
    return tuple([with_dimension(Dimension(), _size(each)) for each in shape])


def _size(size: int | str) -> int | str | None:
    if isinstance(size, str):
        if not size:
            raise EditError('a dimension is a size, a name, or "?", not empty')
        if "=" in size:
            raise EditError(f'"{visible(size)}" is neither a size nor a name; write {visible(size.rpartition("=")[2])}')
        return None if size == UNKNOWN else size
    if not 0 <= size <= LARGEST_DIM:
        raise EditError(f'{size} is not a size; write "?" or a name for an unknown dimension')
    return size


def _set_shapes(
    workspace: Workspace, values: Mapping[tuple[Scope, str], tuple[Dimension, ...]], *, propagate: bool = True
) -> tuple[str, ...]:
    inputs: dict[Scope, dict[str, tuple[Dimension, ...]]] = {}
    others: dict[Scope, dict[str, tuple[Dimension, ...]]] = {}
    for (scope, name), dims in values.items():
        if isinstance(scope.graph, Function) and name in scope.inputs:
            raise EditError(f'"{visible(name)}" is an input of a function, which accepts any shape')
        if scope.initializer(name) is not None and name not in scope.inputs:
            raise EditError(f'"{visible(name)}" is a constant; change its values and shape with set-tensor')
        stated = workspace.index.type_of(scope, name)
        if stated is not None and stated.tensor_type is None and stated.sparse_tensor_type is None:
            raise EditError(f'"{visible(name)}" is not a tensor, so it has no shape')
        is_given = name in scope.inputs and scope.owner is None
        (inputs if is_given else others).setdefault(scope, {})[name] = dims
    notes: tuple[str, ...] = ()
    if inputs:
        before = workspace.model
        examples = _examples(inputs)
        workspace.replace_model(
            rebuild(workspace.index, lambda scope, graph: _with_shapes(graph, inputs.get(scope, {})))
        )
        if propagate:
            workspace.examples.update(examples)
            workspace.is_resized = True
            notes = follow_sizes(workspace, before, examples)
    if others:
        places = {scope.address: shapes for scope, shapes in others.items()}
        if propagate:
            _check_inferred(workspace, places)
        after = rebuild(workspace.index, lambda scope, graph: _with_shapes(graph, places.get(scope.address, {})))
        workspace.replace_model(after)
    if not propagate:
        workspace.keep_types()
    return notes


def _examples(inputs: Mapping[Scope, Mapping[str, tuple[Dimension, ...]]]) -> dict[str, int]:
    """Return sizes for names that replace sizes: what fits the double size probably fits other sizes."""
    sizes: dict[str, int] = {}
    for scope, shapes in inputs.items():
        for name, dims in shapes.items():
            for new, old in zip(dims, dims_of(scope.types.get(name)) or (), strict=False):
                if new.dim_param and isinstance(old, int):
                    sizes.setdefault(new.dim_param, 2 * old)
    return sizes


def _check_inferred(workspace: Workspace, places: Mapping[str, Mapping[str, tuple[Dimension, ...]]]) -> None:
    """Raise if shapes contradict those that onnx infers."""
    inference = LooseInference(workspace.index, workspace.model_folder)
    for scope in workspace.index.scopes:
        for name, dims in places.get(scope.address, {}).items():
            inferred = dims_of(inference.type_of(scope, name))
            if inferred is None:
                continue
            pairs = zip(dims, inferred, strict=False)
            wrong = any([a.dim_value is not None and isinstance(b, int) and a.dim_value != b for a, b in pairs])
            if wrong or len(inferred) != len(dims):
                shown = ",".join(["?" if each is None else str(each) for each in inferred])
                raise EditError(f'"{visible(name)}" has the shape [{visible(shown)}]; change its producers first')


def _with_shapes(graph: Body, shapes: Mapping[str, tuple[Dimension, ...]]) -> Body:
    """Return the graph with other shapes of values, added to value_info if necessary."""
    if not shapes:
        return graph
    stated: set[str | None] = set()

    def given(values: tuple[ValueInfo, ...]) -> tuple[ValueInfo, ...]:
        stated.update([each.name for each in values if each.type is not None])
        return tuple([_with_shape(each, shapes[each.name or ""]) if each.name in shapes else each for each in values])

    updates: dict[str, Any] = {"value_info": given(graph.value_info)}
    if isinstance(graph, Graph):
        updates |= {"input": given(graph.input), "output": given(graph.output)}
    missing = ", ".join([f'"{visible(name)}"' for name in shapes if name not in stated])
    if missing:
        raise EditError(f"the dtype of {missing} is not known; run infer-shapes first")
    return replace(graph, **updates)


def _with_shape(value: ValueInfo, dims: tuple[Dimension, ...]) -> ValueInfo:
    if value.type is None:
        return value
    tensor = tensor_of(value.type)
    if tensor is None:
        return value
    shape = tensor.shape or TensorShape()
    if len(shape.dim) == len(dims):
        # Denotations stay with their axes.
        dims = tuple([with_dimension(a, b.dim_param or b.dim_value) for a, b in zip(shape.dim, dims, strict=True)])
    return replace(value, type=with_shape(value.type, replace(shape, dim=dims)))


class TransposeInput(Edit, frozen=True, kw_only=True, eq=False, tag="transpose-input"):
    """Change the order of the axes of an input or output, reverse its channels (RGB to BGR), or both.

    The input keeps its name and gets the new shape; a Transpose, a Gather, or both convert it for all of its consumers.
    For an output, they convert the result of the model.
    """

    group: ClassVar = "interface"
    words: ClassVar = ("tensor",)
    examples: ClassVar = (
        '{"edit": "transpose-input", "tensor": "image", "perm": [0, 3, 1, 2]}',
        '{"edit": "transpose-input", "tensor": "image", "reverse": 1}',
    )

    tensor: Annotated[str, Role("input"), about("The name of the input, or of the output.", min_length=1)]
    perm: Annotated[
        tuple[int, ...] | None,
        about(
            "The perm of the Transpose: [0, 3, 1, 2] if an NCHW input becomes NHWC, [0, 2, 3, 1] for an output.",
            min_length=1,
        ),
    ] = None
    reverse: Annotated[int | None, about("The axis of the channels to reverse, in the current layout.")] = None

    def change(self, workspace: Workspace) -> Outcome:
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
        nodes, constants = self._steps(workspace, (name, inner), dims, from_model=name in outputs)
        changed = renamed(workspace.index, {main: {name: inner}}).graph
        assert changed is not None
        new = replace(value, type=_permuted(value.type, self.perm, of_input=name in inputs))
        updates: dict[str, Any] = {"initializer": (*changed.initializer, *constants)} if constants else {}
        if name in inputs:
            updates |= {"node": (*nodes, *changed.node), "input": _put(changed.input, inner, new)}
        else:
            updates |= {"node": (*changed.node, *nodes), "output": _put(changed.output, inner, new)}
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

    def _channels(self, name: str, dims: list[int | str | None] | None, axis: int) -> int:
        size = dims[axis] if dims is not None else None
        if not isinstance(size, int):
            raise EditError(
                f'the size of "{visible(name)}" along axis {axis} is not known, so its channels cannot be reversed; '
                "use set-shape first"
            )
        if not 0 < size <= _MOST_CHANNELS:
            raise EditError(f'"{visible(name)}" has {size:,} elements along axis {axis}, too many for channels')
        return size

    def _steps(
        self, workspace: Workspace, ends: tuple[str, str], dims: list[int | str | None] | None, *, from_model: bool
    ) -> tuple[list[Node], list[Tensor]]:
        """Return connected nodes between `ends` (in the new layout, in that of the model), and their constants."""
        name, taken = ends[0], [ends[1]]
        steps: list[Node] = []
        sources: list[Node] = []
        constants: list[Tensor] = []

        def fresh(wanted: str) -> str:
            taken.append(workspace.fresh_name(wanted, taken))
            return taken[-1]

        def node_name(operator: str) -> str:
            return free_name(f"{name}_{operator}", partial(workspace.index.nodes_with, "name"))

        def add(operator: str, attribute: Attribute, *more: str) -> None:
            steps.append(Node(op_type=operator, input=("", *more), attribute=(attribute,), name=node_name(operator)))

        if self.reverse is not None:
            axis = self.reverse + len(dims) if self.reverse < 0 and dims is not None else self.reverse
            order, size = fresh(f"{name}_reversed_order"), self._channels(name, dims, axis)
            data = elements.pack(_INT64, list(range(size - 1, -1, -1)))
            tensor = Tensor(dims=(size,), data_type=_INT64, name=order, raw_data=data)
            version = workspace.model.ir_version
            if version is None or version >= 4:
                constants.append(tensor)
            else:
                sources.append(constant_node(order, tensor, node_name("Constant")))
            add("Gather", Attribute(name="axis", type=ATTRIBUTE_TYPES["INT"], i=axis), order)
        if self.perm is not None:
            add("Transpose", Attribute(name="perm", type=ATTRIBUTE_TYPES["INTS"], ints=self.perm))
        # The axis of the channels refers to the layout of the model, so this step is next to the model.
        names = [ends[1], *[fresh(f"{name}_step") for _ in steps[1:]], name]
        if not from_model:
            steps, names = steps[::-1], names[::-1]
        wired = zip(steps, names, names[1:], strict=False)
        return [
            *sources,
            *[replace(step, input=(source, *step.input[1:]), output=(target,)) for step, source, target in wired],
        ], constants


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
    return with_shape(value, replace(value.tensor_type.shape, dim=tuple([old[axis] for axis in order])))


def _put(values: tuple[ValueInfo, ...], inner: str, new: ValueInfo) -> tuple[ValueInfo, ...]:
    return tuple([new if each.name == inner else each for each in values])

"""Edits of shapes and dimensions: set-shape and set-dim."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.parameters import Role
from onnxjson.editing.propagation import Inference, dims_of, propagate_shapes
from onnxjson.editing.workspace import Workspace
from onnxjson.model.dimensions import dimension_names, substitute, with_dimension, with_dimension_names
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Dimension, Function, Graph, TensorShape, ValueInfo
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.index import Scope
from onnxjson.model.limits import LARGEST_DIM
from onnxjson.model.walking import Body, rebuild

UNKNOWN = "?"
"""Spelling of a dimension without size and name."""

ShapeText = tuple[int | str, ...]


class SetShape(Edit, frozen=True, kw_only=True, eq=False, tag="set-shape"):
    """Set the shapes of inputs, outputs or values; types that follow from inputs are adapted, stale types removed.

    If nodes cannot have the shape, nothing is changed and the nodes are named. Give several shapes that depend on each
    other together, in `shapes`.
    """

    words: ClassVar = ("tensor", "shape")
    examples: ClassVar = (
        '{"edit": "set-shape", "tensor": "image", "shape": ["N", 3, 256, 256]}',
        '{"edit": "set-shape", "shapes": {"left": [1, 3, 64, 64], "right": [1, 3, 64, 64]}}',
    )

    tensor: Annotated[str | None, Role("tensor"), Meta(description="The input, output or value.")] = None
    shape: Annotated[
        ShapeText | None,
        Role("shape"),
        Meta(description='Its dimensions: sizes, names, or "?" for an unknown one.'),
    ] = None
    shapes: Annotated[
        dict[str, ShapeText] | None, Meta(description="Instead of tensor and shape: several shapes by names.")
    ] = None
    propagate: Annotated[bool, Meta(description="Adapt other types; if false, only the given shapes change.")] = True
    force: Annotated[bool, Meta(description="Only report nodes that cannot have the shapes.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        if (self.shapes is None) == (self.tensor is None) or (self.tensor is None) != (self.shape is None):
            raise EditError("set-shape needs either `tensor` and `shape`, or `shapes`")
        wanted = self.shapes if self.shapes is not None else {self.tensor or "": self.shape or ()}
        values: dict[tuple[Scope, str], tuple[Dimension, ...]] = {}
        for selector, shape in wanted.items():
            place = workspace.value(selector)
            if place in values:
                raise EditError(f'"{visible(place[1])}" gets two shapes')
            values[place] = dimensions_of(shape)
        return Outcome(len(values), _set_shapes(workspace, values, propagate=self.propagate, force=self.force))


class SetDim(Edit, frozen=True, kw_only=True, eq=False, tag="set-dim"):
    """Set a dimension, selected by its name or its axis: to a size, a name, or unknown.

    A name represents one size, so all its occurrences change, also in expressions such as 2*batch.
    """

    words: ClassVar = ("dim", "size")
    examples: ClassVar = (
        '{"edit": "set-dim", "dim": "batch", "size": 4}',
        '{"edit": "set-dim", "tensor": "image", "axis": 0, "size": "batch"}',
    )

    dim: Annotated[str | None, Role("dim"), Meta(min_length=1, description="The name of the dimension.")] = None
    tensor: Annotated[str | None, Role("tensor"), Meta(description="Instead of dim: its value.")] = None
    axis: Annotated[int | None, Meta(description="The axis of the tensor; -1 is the last.")] = None
    size: Annotated[int | str, Meta(ge=0, description='The size, another name, or "?" for unknown.')]
    force: Annotated[bool, Meta(description="Only report nodes that cannot have the size.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        if (self.dim is None) == (self.tensor is None) or (self.tensor is None) != (self.axis is None):
            raise EditError("set-dim needs either `dim`, or `tensor` and `axis`")
        if self.dim is not None:
            return self._named(workspace, self.dim)
        assert self.tensor is not None
        assert self.axis is not None
        scope, name = workspace.value(self.tensor)
        stated = workspace.index.type_of(scope, name)
        shape = stated.tensor_type.shape if stated is not None and stated.tensor_type is not None else None
        if shape is None:
            raise EditError(f'the shape of "{visible(name)}" is not known; set all of it with set-shape')
        if not -len(shape.dim) <= self.axis < len(shape.dim):
            raise EditError(f'"{visible(name)}" has {len(shape.dim)} dimensions, none at {self.axis}')
        axis = self.axis % len(shape.dim)
        new = list(shape.dim)
        new[axis] = with_dimension(new[axis], _size(self.size))
        notes = _set_shapes(workspace, {(scope, name): tuple(new)}, propagate=True, force=self.force)
        return Outcome(1, notes)

    def _named(self, workspace: Workspace, name: str) -> Outcome:
        model = workspace.model
        known = dimension_names(model)
        size = _size(self.size)
        if size is None:
            raise EditError(
                f'the dimension "{visible(name)}" needs a size or another name; "?" is only for those of a tensor'
            )
        touched = [text for text in known if substitute(text, {name: size}) != text]
        if not touched and self.size != name:
            hint = suggest(name, known) or (
                "there are " + listed([visible(text) for text in known], 5) if known else "there is none"
            )
            raise SelectorError(f'no dimension is called "{visible(name)}"; {hint}')

        # Functions have their own dimensions: they may be called with other sizes.
        def change(scope: Scope, graph: Body) -> Body:
            return graph if isinstance(graph, Function) or scope.owner else with_dimension_names(graph, {name: size})

        after = rebuild(workspace.index, change)
        result = propagate_shapes(model, after, workspace.model_folder, force=self.force, is_trusted=True)
        workspace.replace_model(result.model)
        return Outcome(len(touched), result.notes)


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
        return None if size == UNKNOWN else size
    if not 0 <= size <= LARGEST_DIM:
        raise EditError(f'{size} is not a size; write "?" or a name for an unknown dimension')
    return size


def _set_shapes(
    workspace: Workspace, values: Mapping[tuple[Scope, str], tuple[Dimension, ...]], *, propagate: bool, force: bool
) -> tuple[str, ...]:
    """Set the shapes of values, and return remarks for the user."""
    model = workspace.model
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
        after = rebuild(workspace.index, lambda scope, graph: _with_shapes(graph, inputs.get(scope, {})))
        if propagate:
            result = propagate_shapes(model, after, workspace.model_folder, force=force)
            after, notes = result.model, result.notes
        workspace.replace_model(after)
    if others:
        places = {scope.address: shapes for scope, shapes in others.items()}
        if propagate:
            _check_inferred(workspace, places)
        after = rebuild(workspace.index, lambda scope, graph: _with_shapes(graph, places.get(scope.address, {})))
        workspace.replace_model(after)
    return notes


def _check_inferred(workspace: Workspace, places: Mapping[str, Mapping[str, tuple[Dimension, ...]]]) -> None:
    """Raise if shapes contradict those that onnx infers.

    Raises:
        EditError: they do.
    """
    inference = Inference(workspace.index, workspace.model_folder)
    for scope in inference.index.scopes:
        for name, dims in places.get(scope.address, {}).items():
            found = dims_of(inference.type_of(scope, name))
            if found is None:
                continue
            pairs = zip(dims, found, strict=False)
            wrong = any([a.dim_value is not None and isinstance(b, int) and a.dim_value != b for a, b in pairs])
            if wrong or len(found) != len(dims):
                shown = ",".join(["?" if each is None else str(each) for each in found])
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
    missing = [name for name in shapes if name not in stated]
    if missing:
        names = ", ".join([f'"{visible(name)}"' for name in missing])
        raise EditError(f"the dtype of {names} is not known; run infer-shapes first")
    return replace(graph, **updates)


def _with_shape(value: ValueInfo, dims: tuple[Dimension, ...]) -> ValueInfo:
    if value.type is None:
        return value
    for field in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(value.type, field)
        if tensor is None:
            continue
        old = tensor.shape.dim if tensor.shape is not None else ()
        if len(old) == len(dims):
            # Denotations stay with their axes.
            dims = tuple([with_dimension(a, b.dim_param or b.dim_value) for a, b in zip(old, dims, strict=True)])
        shape = TensorShape(dim=dims) if tensor.shape is None else replace(tensor.shape, dim=dims)
        return replace(value, type=replace(value.type, **{field: replace(tensor, shape=shape)}))
    return value


__all__ = ["SetDim", "SetShape", "dimensions_of"]

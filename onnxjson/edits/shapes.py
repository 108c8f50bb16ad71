"""Edits of the shapes of inputs, outputs and values, and of dimensions with names."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.display import visible
from onnxjson.document import Dimension, Function, Graph, TensorShape, ValueInfo
from onnxjson.edits.declaration import Edit
from onnxjson.edits.dimensions import dimension_names, substitute, with_dimension, with_dimension_names
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.propagation import Inference, dims_of, propagated
from onnxjson.edits.rebuilding import Body, rebuilt
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError, SelectorError
from onnxjson.index import Scope
from onnxjson.suggestions import suggest
from onnxjson.types import LARGEST_DIM

UNKNOWN = "?"
"""How a dimension without size and name is written."""

ShapeText = tuple[int | str, ...]


class SetShape(Edit, frozen=True, kw_only=True, eq=False, tag="set-shape"):
    """Give inputs, outputs or values other shapes. What follows from those of inputs follows; stale types go.

    Where nodes cannot take the shape, nothing is changed and they are named. Several shapes that only fit together are
    given at once, in `shapes`.
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
        Meta(description='Its dimensions: sizes, names, or "?" for one that is not known.'),
    ] = None
    shapes: Annotated[
        dict[str, ShapeText] | None, Meta(description="In place of tensor and shape: several, by their names.")
    ] = None
    propagate: Annotated[
        bool, Meta(description="Whether other types follow; if not, only the shapes themselves change.")
    ] = True
    force: Annotated[bool, Meta(description="Whether nodes that cannot take the shapes are only named.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        if (self.shapes is None) == (self.tensor is None) or (self.tensor is None) != (self.shape is None):
            raise EditError("set-shape takes `tensor` and `shape`, or `shapes`: one of the two")
        wanted = self.shapes if self.shapes is not None else {self.tensor or "": self.shape or ()}
        values: dict[tuple[Scope, str], tuple[Dimension, ...]] = {}
        for selector, shape in wanted.items():
            place = workspace.value(selector)
            if place in values:
                raise EditError(f'"{visible(place[1])}" gets two shapes')
            values[place] = dimensions_of(shape)
        return Outcome(len(values), _given_shapes(workspace, values, propagate=self.propagate, force=self.force))


class SetDim(Edit, frozen=True, kw_only=True, eq=False, tag="set-dim"):
    """Fix a dimension that has a name, or free one of an input: give it a size, a name, or neither.

    A name stands for one size, so it changes wherever it stands, also within expressions such as 2*batch.
    """

    words: ClassVar = ("dim", "size")
    examples: ClassVar = (
        '{"edit": "set-dim", "dim": "batch", "size": 4}',
        '{"edit": "set-dim", "tensor": "image", "axis": 0, "size": "batch"}',
    )

    dim: Annotated[str | None, Role("dim"), Meta(min_length=1, description="The name of the dimension.")] = None
    tensor: Annotated[str | None, Role("tensor"), Meta(description="In place of dim: whose dimension it is.")] = None
    axis: Annotated[int | None, Meta(description="Of a tensor, which dimension; -1 is the last.")] = None
    size: Annotated[int | str, Meta(ge=0, description='Its size, another name, or "?" for neither.')]
    force: Annotated[bool, Meta(description="Whether nodes that cannot take the size are only named.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        if (self.dim is None) == (self.tensor is None) or (self.tensor is None) != (self.axis is None):
            raise EditError("set-dim takes `dim`, or `tensor` and `axis`: one of the two")
        if self.dim is not None:
            return self._named(workspace, self.dim)
        assert self.tensor is not None
        assert self.axis is not None
        scope, name = workspace.value(self.tensor)
        said = workspace.index.type_of(scope, name)
        shape = said.tensor_type.shape if said is not None and said.tensor_type is not None else None
        if shape is None:
            raise EditError(f'the shape of "{visible(name)}" is not known; set-shape says all of it')
        if not -len(shape.dim) <= self.axis < len(shape.dim):
            raise EditError(f'"{visible(name)}" has {len(shape.dim)} dimensions; there is none at {self.axis}')
        axis = self.axis % len(shape.dim)
        new = list(shape.dim)
        new[axis] = with_dimension(new[axis], _size(self.size))
        notes = _given_shapes(workspace, {(scope, name): tuple(new)}, propagate=True, force=self.force)
        return Outcome(1, notes)

    def _named(self, workspace: Workspace, name: str) -> Outcome:
        model = workspace.model
        known = dimension_names(model)
        size = _size(self.size)
        if size is None:
            raise EditError(
                f'the dimension "{visible(name)}" needs a size or another name; "?" is for those of a tensor'
            )
        touched = [text for text in known if substitute(text, {name: size}) != text]
        if not touched and self.size != name:
            hint = suggest(name, known) or (
                "there are " + ", ".join([visible(text) for text in [*known][:5]]) if known else "there is none"
            )
            raise SelectorError(f'no dimension is called "{visible(name)}"; {hint}')

        # A function's dimensions are its own: it may be called with other sizes.
        def change(scope: Scope, graph: Body) -> Body:
            return graph if isinstance(graph, Function) or scope.owner else with_dimension_names(graph, {name: size})

        after = rebuilt(workspace.index, change)
        result = propagated(model, after, workspace.model_folder, force=self.force, is_trusted=True)
        workspace.replace_model(result.model)
        return Outcome(len(touched), result.notes)


def dimensions_of(shape: ShapeText) -> tuple[Dimension, ...]:
    """The dimensions that a person wrote.

    Raises:
        EditError: a size is none.
    """
    return tuple([with_dimension(Dimension(), _size(each)) for each in shape])


def _size(size: int | str) -> int | str | None:
    if isinstance(size, str):
        if not size:
            raise EditError('a dimension has a size, a name, or "?"; it is empty')
        return None if size == UNKNOWN else size
    if not 0 <= size <= LARGEST_DIM:
        raise EditError(f'{size} is no size; a dimension that is not known is written "?", or has a name')
    return size


def _given_shapes(
    workspace: Workspace, values: Mapping[tuple[Scope, str], tuple[Dimension, ...]], *, propagate: bool, force: bool
) -> tuple[str, ...]:
    """Gives values other shapes; what a person should hear."""
    model = workspace.model
    inputs: dict[Scope, dict[str, tuple[Dimension, ...]]] = {}
    others: dict[Scope, dict[str, tuple[Dimension, ...]]] = {}
    for (scope, name), dims in values.items():
        if isinstance(scope.graph, Function) and name in scope.inputs:
            raise EditError(f'"{visible(name)}" is an input of a function, which takes any shape')
        if scope.initializer(name) is not None and name not in scope.inputs:
            raise EditError(
                f'"{visible(name)}" is a constant, whose shape is that of its values; set-tensor changes both'
            )
        said = workspace.index.type_of(scope, name)
        if said is not None and said.tensor_type is None and said.sparse_tensor_type is None:
            raise EditError(f'"{visible(name)}" is no tensor, so it has no shape')
        is_given = name in scope.inputs and scope.owner is None
        (inputs if is_given else others).setdefault(scope, {})[name] = dims
    notes: tuple[str, ...] = ()
    if inputs:
        after = rebuilt(workspace.index, lambda scope, graph: _with_shapes(graph, inputs.get(scope, {})))
        if propagate:
            result = propagated(model, after, workspace.model_folder, force=force)
            after, notes = result.model, result.notes
        workspace.replace_model(after)
    if others:
        places = {scope.address: shapes for scope, shapes in others.items()}
        if propagate:
            _check_made(workspace, places)
        after = rebuilt(workspace.index, lambda scope, graph: _with_shapes(graph, places.get(scope.address, {})))
        workspace.replace_model(after)
    return notes


def _check_made(workspace: Workspace, places: Mapping[str, Mapping[str, tuple[Dimension, ...]]]) -> None:
    """Do nothing if nodes make what the shapes say.

    Raises:
        EditError: they make something else.
    """
    inference = Inference(workspace.model, workspace.model_folder)
    for scope in inference.index.scopes:
        for name, dims in places.get(scope.address, {}).items():
            found = dims_of(inference.type_of(scope, name))
            if found is None:
                continue
            pairs = zip(dims, found, strict=False)
            wrong = any([a.dim_value is not None and isinstance(b, int) and a.dim_value != b for a, b in pairs])
            if wrong or len(found) != len(dims):
                shown = ",".join(["?" if each is None else str(each) for each in found])
                raise EditError(
                    f'"{visible(name)}" is made with the shape [{visible(shown)}]; its makers must change first'
                )


def _with_shapes(graph: Body, shapes: Mapping[str, tuple[Dimension, ...]]) -> Body:
    """The graph with other shapes for what it says of some values; of the others it says them from now on."""
    if not shapes:
        return graph
    said: set[str | None] = set()

    def given(values: tuple[ValueInfo, ...]) -> tuple[ValueInfo, ...]:
        said.update([each.name for each in values if each.type is not None])
        return tuple([_with_shape(each, shapes[each.name or ""]) if each.name in shapes else each for each in values])

    updates: dict[str, Any] = {"value_info": given(graph.value_info)}
    if isinstance(graph, Graph):
        updates |= {"input": given(graph.input), "output": given(graph.output)}
    missing = [name for name in shapes if name not in said]
    if missing:
        names = ", ".join([f'"{visible(name)}"' for name in missing])
        raise EditError(f"the model does not say the dtype of {names}, which a shape needs; infer-shapes finds it out")
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

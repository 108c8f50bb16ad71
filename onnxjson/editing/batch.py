"""set-batch-size, and following of other dimensions: from constants that count along them, through Reshape nodes.

`batch_tracing` follows the batch through the nodes with the rules of `batch_rules`; `batch_constants` changes the
constants that fix its size. Elements along other dimensions, such as tokens, may be computed from each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from msgspec.structs import replace

from onnxjson.editing.batch_axes import BATCH, Axes, has_batch, resized
from onnxjson.editing.batch_calls import NodeInput
from onnxjson.editing.batch_constants import ComputedSizes, ConstantChanges
from onnxjson.editing.batch_numbers import BatchNumbers
from onnxjson.editing.batch_rules import RULES
from onnxjson.editing.batch_tracing import Tracer
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.inference import LooseInference, propagate_types
from onnxjson.editing.parameters import about
from onnxjson.editing.tensor_values import constant_tensor
from onnxjson.editing.type_relations import dims_of
from onnxjson.editing.workspace import Workspace
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.dimensions import with_dimension, with_dimension_names
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Graph, Model, ValueInfo
from onnxjson.model.dtypes import BITS, DATA_TYPES
from onnxjson.model.elements import element_count
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope
from onnxjson.model.limits import LARGEST_DIM
from onnxjson.model.tensors import raw_bytes, to_numpy
from onnxjson.model.walking import Body, rebuild

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SetBatchSize"]

_SHOWN: Final = 8
_DRAWING: Final = frozenset({"RandomNormal", "RandomUniform"})
"""Operators with random numbers of a fixed shape."""
_STAND_IN: Final = 10007
"""A prime number that no shape contains, in place of a batch that has no size."""

_COUNTING: Final = (DATA_TYPES["int32"], DATA_TYPES["int64"])
_FEWEST: Final = 3
"""Least number of places that are recognized: 0 and 1 have other meanings."""
_MOST: Final = 1 << 24


class SetBatchSize(Edit, frozen=True, kw_only=True, eq=False, tag="set-batch-size"):
    """Set the batch size to a number or a name, in inputs, outputs, and all constants that contain it.

    The edit follows the batch from the inputs through every node. Only the numbers that represent it change: in shapes
    of Reshape, Expand and the like, and rows of constants that are the same for each sample. For a symbolic batch,
    nodes that compute such shapes are added where 0 and -1 cannot express them. If the batch cannot be followed, or
    samples would be mixed, nothing is changed and every such node is named. If the batch already varies, no constant
    contains its size, and the edit only checks that samples are not mixed; a note names the nodes where that is not
    known.
    """

    group: ClassVar = "shapes"
    words: ClassVar = ("size",)
    examples: ClassVar = (
        '{"edit": "set-batch-size", "size": "N"}',
        '{"edit": "set-batch-size", "size": 8, "inputs": {"images": 0, "state": 1}}',
    )

    size: Annotated[int | str, about("The new size, or a name for a size that varies.")]
    inputs: Annotated[
        dict[str, int] | None,
        about(
            "Inputs with a batch axis, and the position of that axis; by default, inputs whose first axis has the "
            "batch size."
        ),
    ] = None
    partial: Annotated[bool, about("Change what can be changed, and name the nodes that cannot be followed.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        size = self.size
        if isinstance(size, int) and not 0 < size <= LARGEST_DIM:
            raise EditError(f"{size} is not a batch size; give a number from 1, or a name such as N")
        if isinstance(size, str) and "=" in size:
            raise EditError(f'"{visible(size)}" is neither a size nor a name; write {visible(size.rpartition("=")[2])}')
        if size == "" or size == "?":
            raise EditError("the batch needs a size or a name, such as N")
        places, old, others = _places(workspace, self.inputs)
        if old == size:
            return Outcome(len(places), (f"the batch size is already {visible(str(size))}",))
        if not isinstance(old, int):
            unsure = [name for name in others if None in (dims_of(workspace.main.types[name]) or ())]
            unsure = [] if self.partial or self.inputs is not None else unsure
            notes = _rename(workspace, places, old, size, unsure, partial=self.partial)
        else:
            notes = resize(workspace, places, old, size, partial=self.partial)
        left = [f'"{visible(name)}" is assumed to have no batch' for name in others]
        return Outcome(len(places), (*notes, *left))


def resize(
    workspace: Workspace,
    places: Mapping[str, int],
    old: int,
    size: int | str,
    *,
    partial: bool = False,
    mixes: bool = False,
) -> list[str]:
    """Change the size of an axis of inputs, and all constants that contain it; return remarks.

    `places` has the axis of each input, `old` its size; `partial` changes what can be changed. With `mixes`, elements
    along the axis may be computed from each other, as those of a sequence.

    Raises:
        EditError: a node cannot be followed; all such nodes are named.
    """
    main, noun = workspace.main, "dimension" if mixes else "batch"
    tracer = _traced(workspace, workspace.index, places, old, size, mixes=mixes)
    problems = _problems(workspace, tracer.problems)
    lost = {} if problems else {
        made.address: f'it is not known whether its output "{visible(name)}" has the {noun}'
        for name in filter(None, main.output_names)
        if tracer.found[main].get(name, ()) is None and (made := main.producer(name)) is not None
    }  # fmt: skip
    problems += _problems(workspace, lost)
    if problems and not partial:
        raise EditError(_refusal(problems, noun, is_foldable=tracer.is_foldable))
    computed = ComputedSizes(workspace, *next(iter(places.items())))
    batch = (old, size if isinstance(size, int) else None)
    changes = ConstantChanges(workspace, tracer.requests, batch, computed, mixes=mixes)

    def change(scope: Scope, graph: Body) -> Body:
        graph, values = changes.change(scope, graph), tracer.found.get(scope)
        return _typed(graph, values, size) if values and isinstance(graph, Graph) else graph

    workspace.replace_model(rebuild(workspace.index, change))
    remarks = propagate_types(workspace)
    wrong = [*workspace.complaints.values()]
    if wrong and not partial:
        raise EditError(_refusal(wrong, noun))
    workspace.is_forced |= partial
    notes = [f"constants that changed: {_listed(changes.changed)}"] if changes.changed else []
    drawing = [] if mixes else [ref for ref in workspace.index.nodes() if ref.node.op_type in _DRAWING]
    notes += [
        f"{ref.address} ({visible(ref.node.op_type or '')}) draws one set of random numbers for all samples"
        for ref in drawing
    ]
    return [*notes, *remarks, *[f"not followed: {text}" for text in (*problems, *wrong)]]


def _traced(
    workspace: Workspace, index: Index, places: Mapping[str, int], old: int, size: int | str, *, mixes: bool = False
) -> Tracer:
    """Follow an axis of inputs through a model, in the way with the fewest problems."""
    inference, opset = LooseInference(index, workspace.model_folder), workspace.opset(None, "") or 1
    assert index.main is not None
    tracers = []
    for joins_later in (False, True):
        follow_number = BatchNumbers().follow
        tracer = Tracer(
            inference, old, size, opset, RULES, follow_number=follow_number, joins_later=joins_later, mixes=mixes
        )
        for name, axis in places.items():
            tracer.start(index.main, name, axis)
        if mixes:
            start_at_places(tracer, index.main)
        tracer.trace(index.main)
        tracers.append(tracer)
        if not tracer.problems:
            break
    return min(tracers, key=lambda each: len(each.problems))


def _problems(workspace: Workspace, reasons: Mapping[str, str]) -> list[str]:
    return [f"{address} ({_operator(workspace, address)}): {text}" for address, text in reasons.items()]


def _rename(
    workspace: Workspace,
    places: Mapping[str, int],
    old: str | None,
    size: int | str,
    unsure: Sequence[str],
    *,
    partial: bool,
) -> list[str]:
    """Set a batch that has a name, or whose size is unknown. No constant contains it, so only types change.

    The batch is followed with a size in its place, which no constant contains either. `unsure` are inputs that may have
    the batch, too, unless it can be followed everywhere.

    Raises:
        EditError: a node mixes samples, or needs the batch in another input; all such nodes are named.
    """

    def sized(new: int | str) -> Model:
        def change(scope: Scope, graph: Body) -> Body:
            if not isinstance(graph, Graph) or scope.owner is not None:
                return graph
            graph = with_dimension_names(graph, {old: new}) if old is not None else graph
            return _typed(graph, starts, new)

        return rebuild(workspace.index, change)

    ranks = {name: len(dims_of(workspace.main.types[name]) or ()) for name in places}
    starts: dict[str, Axes | None] = {
        name: tuple([(BATCH,) if axis == place else (f"\0{name}.{axis}",) for axis in range(ranks[name])])
        for name, place in places.items()
    }
    index = Index(sized(_STAND_IN))
    tracer = _traced(workspace, index, places, _STAND_IN, size)
    wrong = _problems(workspace, tracer.mixed)
    if wrong and not partial:
        raise EditError(f"the batch cannot change: {listed(wrong, _SHOWN, '; ')}; `partial` changes the sizes anyway")
    left = _problems(workspace, {at: text for at, text in tracer.problems.items() if at not in tracer.mixed})
    if left and unsure:
        inputs = _listed([f'"{visible(name)}"' for name in unsure])
        text = f"it is not known whether {inputs} has the batch; name all inputs that have it in `inputs`"
        raise EditError(f"{text}, since the batch cannot be followed through {listed(left, _SHOWN, '; ')}")
    assert index.main is not None
    starts |= {name: axes for name, axes in tracer.found[index.main].items() if axes is not None}
    workspace.replace_model(sized(size))
    remarks = propagate_types(workspace)
    doubts = [f"the batch could not be followed, so samples may be mixed: {listed(left, 1, '; ')}"] if left else []
    return [*remarks, *[f"not followed: {text}" for text in wrong], *doubts]


def _places(
    workspace: Workspace, given: Mapping[str, int] | None
) -> tuple[dict[str, int], int | str | None, list[str]]:
    """Return the inputs with the batch and their axes, its size (None: unknown), and the inputs without it."""
    constants = workspace.main.initializers
    inputs = {
        value.name: dims
        for value in workspace.graph.input
        if value.name and value.name not in constants and (dims := dims_of(value.type))
    }
    if given is not None:
        places = {}
        for name, axis in given.items():
            if name not in inputs:
                workspace.value(name)
                known = listed([f'"{visible(each)}"' for each in inputs], 5)
                raise EditError(f'"{visible(name)}" is not an input with a shape; inputs are {known}')
            if not -len(inputs[name]) <= axis < len(inputs[name]):
                raise EditError(f'"{visible(name)}" has {len(inputs[name])} axes, none at {axis}')
            places[name] = axis % len(inputs[name])
        sizes = {name: inputs[name][axis] for name, axis in places.items()}
        if not sizes:
            raise EditError("`inputs` is empty; it must name the inputs that have the batch")
    else:
        if not inputs:
            raise EditError("the model has no input with a shape, so the batch cannot be located")
        first = next(iter(inputs.values()))[0]
        sizes = {name: dims[0] for name, dims in inputs.items() if dims[0] == first}
        places = dict.fromkeys(sizes, 0)
    if isinstance(shared := next(iter(sizes.values())), str):
        # A name represents one size, so these inputs have the batch, too.
        places = {**{each: dims.index(shared) for each, dims in inputs.items() if shared in dims}, **places}
    different = set(sizes.values())
    old = next(iter(sizes.values()))
    if len(different) > 1:
        texts = [
            f'"{visible(name)}" has {"an unknown one" if each is None else visible(str(each))}'
            for name, each in sizes.items()
        ]
        where = _meeting(workspace, sizes)
        raise EditError(
            f"the batch cannot change: {where}a node combines inputs with different batch sizes: {listed(texts, 5)}; "
            "give them one size with set-dim"
        )
    if old == 0:
        raise EditError("the batch size is 0, so the batch cannot be followed; set it with set-shape")
    return places, old, [name for name in inputs if name not in places]


def _meeting(workspace: Workspace, sizes: Mapping[str, int | str | None]) -> str:
    """Return the first node that depends on inputs with different sizes; "" if there is none."""
    reaching: dict[str, set[int | str | None]] = {name: {size} for name, size in sizes.items()}
    for position, node in enumerate(workspace.graph.node):
        sizes_met = set[int | str | None]().union(*[reaching.get(name, ()) for name in consumed_names(node)])
        if len(sizes_met) > 1:
            address = f"/graph/node/{position}"
            return f"{address} ({_operator(workspace, address)}): "
        reaching.update(dict.fromkeys(node.output, sizes_met))
    return ""


def _typed(graph: Graph, values: Mapping[str, Axes | None], size: int | str) -> Graph:
    """Return the graph with other sizes where the batch is, and without types of values that could not be followed."""

    def typed(value: ValueInfo) -> ValueInfo:
        axes = values.get(value.name or "")
        tensor = value.type.tensor_type if value.type is not None else None
        if value.name not in values or value.type is None or tensor is None or tensor.shape is None:
            return value
        dims = list(tensor.shape.dim)
        if axes is None or len(axes) != len(dims):
            dims = [with_dimension(each, None) if each.dim_value is not None else each for each in dims]
        else:
            dims = [
                with_dimension(each, resized(axis, size)) if has_batch(axis) else each
                for each, axis in zip(dims, axes, strict=True)
            ]
        shape = replace(tensor.shape, dim=tuple(dims))
        return replace(value, type=replace(value.type, tensor_type=replace(tensor, shape=shape)))

    updates: dict[str, Any] = {
        "input": tuple([typed(each) for each in graph.input]),
        "output": tuple([typed(each) for each in graph.output]),
        "value_info": tuple([typed(each) for each in graph.value_info if values.get(each.name or "", ()) is not None]),
    }
    return replace(graph, **updates)


def _operator(workspace: Workspace, address: str) -> str:
    owner, _, position = address.rpartition("/node/")
    node = workspace.scope(owner).graph.node[int(position)]
    return visible(f'{node.op_type} "{node.name}"' if node.name else node.op_type or "")


def _listed(texts: list[str]) -> str:
    return listed(list(dict.fromkeys(texts)), _SHOWN)


def _refusal(problems: list[str], noun: str, *, is_foldable: bool = False) -> str:
    advice = [] if noun == "dimension" else ["`partial` changes the rest"]
    advice += ["where a shape is computed from known sizes, fold constants first (the pass onnxruntime)"] * is_foldable
    return "; ".join([f"the {noun} cannot change: {listed(problems, _SHOWN, '; ')}", *advice])


def start_at_places(tracer: Tracer, scope: Scope) -> None:
    """Start at constants that count places along the dimension, such as the positions of tokens."""
    for name in (*scope.initializers, *scope.producers):
        constant = constant_tensor(scope, name)
        if constant is None or constant[1].data_type not in _COUNTING or element_count(constant[1].dims) > _MOST:
            continue
        if tracer.batch < _FEWEST or tracer.batch not in constant[1].dims or raw_bytes(constant[1]) is None:
            continue
        places = to_numpy(constant[1])
        for axis in [each for each, length in enumerate(places.shape) if length == tracer.batch]:
            if _is_counted(places, axis):
                tracer.start(scope, name, axis)
                for use in _uses(tracer, scope, name):
                    tracer.requests.rows.setdefault(use, {})[axis] = False


def _is_counted(places: "NDArray[Any]", axis: int) -> bool:
    """Whether the elements along an axis are 0, 1, 2 ..., or equal in some of the lines, as for other coordinates."""
    import numpy

    steps, first = numpy.diff(places, axis=axis), places.take([0], axis)
    step = steps.take([0], axis)
    return bool((steps == step).all() and step.any() and ((step == 0) | ((step == 1) & (first == 0))).all())


def _uses(tracer: Tracer, scope: Scope, name: str) -> Iterator[NodeInput]:
    for use in tracer.inference.index.consumers(scope, name):
        if use.position is not None:
            given = use.scope.graph.node[use.position].input
            yield from [(use.scope, use.position, slot) for slot, each in enumerate(given) if each == name]


def inputs_alike(workspace: Workspace, name: str, axis: int) -> dict[str, int]:
    """Return the inputs that have the same size at an axis as one of them, that one first, and the axis."""
    sizes = {each.name or "": dims_of(each.type) or () for each in workspace.graph.input}
    size, constants = sizes[name][axis], workspace.main.initializers
    alike = [each for each, dims in sizes.items() if each not in constants and dims[axis : axis + 1] == (size,)]
    return dict.fromkeys([name, *alike], axis)


def divisors(workspace: Workspace, size: int) -> Iterator[str]:
    """Yield remarks about numbers that may be the old size, such as the divisor of a mean."""
    for ref in workspace.index.nodes():
        for name in ref.node.input if ref.node.op_type in ("Div", "Mul") else ():
            constant = constant_tensor(ref.scope, name)
            if constant is None or element_count(constant[1].dims) != 1 or constant[1].data_type not in BITS:
                continue
            value = float(to_numpy(constant[1]).reshape(-1)[0].real) if raw_bytes(constant[1]) is not None else 0.0
            if value == size or abs(value * size - 1) < 1e-6:
                yield f'"{visible(name)}" in {ref.address} stays {value:g}; is it the old size, {size}?'

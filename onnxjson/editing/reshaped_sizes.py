"""Constant shapes of Reshape nodes, changed as new sizes of inputs require."""

from collections.abc import Mapping, Sequence
from typing import Final

from onnxjson.editing.batch_calls import Requests
from onnxjson.editing.batch_constants import ConstantChanges
from onnxjson.editing.inference import LooseInference
from onnxjson.editing.partial_inference import Sizes
from onnxjson.editing.tensor_values import integer_constant
from onnxjson.editing.type_relations import Dims
from onnxjson.editing.workspace import Workspace
from onnxjson.model.display import listed
from onnxjson.model.document import Model
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operators import plain_domain
from onnxjson.model.walking import rebuild

_SHOWN: Final = 8
_MOST_STEPS: Final = 100


def follow_sizes(workspace: Workspace, before: Model, examples: Mapping[str, int]) -> tuple[str, ...]:
    """Change the constant shapes of Reshape nodes that new sizes of inputs require, and return remarks.

    `before` is the model with the old sizes; `examples` are sizes for new names.

    Raises:
        WorkerError, EditError, MissingInputError, UntrustedError: see `LooseInference`.
    """
    if not any([_shape_of(ref) for ref in workspace.index.nodes()]):
        return ()
    sizes = Sizes(examples)
    old = LooseInference(Index(sizes.put_in(before)), workspace.model_folder)
    changed: dict[str, None] = {}
    for _ in range(_MOST_STEPS):
        index = workspace.index
        after = LooseInference(Index(sizes.put_in(workspace.model)), workspace.model_folder)
        requests = Requests()
        for ref in index.nodes():
            if (constant := _shape_of(ref)) and (numbers := _new_numbers(ref, constant, old, after, bool(examples))):
                requests.numbers[ref.scope, ref.position, 1] = {**numbers}
        if not requests.numbers:
            break
        changes = ConstantChanges(workspace, requests, (1, None))
        changed.update(dict.fromkeys(changes.changed))
        workspace.replace_model(rebuild(index, changes.change))
    return (f"constants that changed: {listed([*changed], _SHOWN)}",) if changed else ()


def _shape_of(ref: NodeRef) -> tuple[int, ...] | None:
    node = ref.node
    is_reshape = node.op_type == "Reshape" and not plain_domain(node.domain) and len(node.input) == 2
    return integer_constant(ref.scope, node.input[1]) if is_reshape else None


def _new_numbers(
    ref: NodeRef, constant: tuple[int, ...], before: LooseInference, after: LooseInference, is_named: bool
) -> dict[int, int]:
    """Return the numbers that change in the constant shape of a Reshape, by position."""
    old, new = (_sizes(each.dims(ref.scope, ref.node.input[0])) for each in (before, after))
    reshaped = _sizes(before.dims(ref.scope, ref.node.output[0]))
    if old is None or new is None or reshaped is None or old == new:
        return {}
    if len(reshaped) != len(constant) or len(old) != len(new):
        return {}
    regrouped_sizes = regrouped(old, reshaped, new)
    if regrouped_sizes is None:
        return {}
    copies = not any([each.name == "allowzero" and each.i for each in ref.node.attribute])
    target = [new[at] if each == 0 and copies and at < len(new) else each for at, each in enumerate(constant)]
    wrong = [at for at, each in enumerate(regrouped_sizes) if target[at] not in (-1, each)]
    if not is_named:
        return {at: regrouped_sizes[at] for at in wrong}
    numbers = {at: 0 for at in wrong if copies and at < len(new) and new[at] == regrouped_sizes[at]}
    rest = [at for at in wrong if at not in numbers]
    if len(rest) > 1:
        return {}
    opened = constant.index(-1) if -1 in constant else None
    if rest and opened is not None:
        if regrouped_sizes[opened] != reshaped[opened]:
            return {}
        numbers[opened] = regrouped_sizes[opened]
    return {**numbers, **dict.fromkeys(rest, -1)}


def _sizes(dims: Dims | None) -> list[int] | None:
    """Return dims that are all known and not 0."""
    found = [each for each in dims or () if isinstance(each, int) and each > 0]
    return found if dims is not None and len(found) == len(dims) else None


def regrouped(old: Sequence[int], reshaped: Sequence[int], new: Sequence[int]) -> list[int] | None:
    """Return the sizes after a Reshape from `old` to `reshaped` if it gets `new`; None if they cannot be determined."""
    if [*old[:1], *reshaped[:1]] == [1, 1] and new[0] != 1:
        rest = regrouped(old[1:], reshaped[1:], new[1:])
        return None if rest is None else [new[0], *rest]
    if any([a == 1 != b for a, b in zip(old, new, strict=True)]):
        return None
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if (a, b) != (1, 1)]
    result: list[int] = []
    for size in reshaped:
        result.append(1)
        if size == 1:
            continue
        # The axes before the Reshape that make this one.
        product, other = 1, 1
        while pairs and product < size:
            before, after = pairs.pop(0)
            product, other = product * before, other * after
        if product == size:
            result[-1] = other
        elif product % size or product != other:
            return None
        else:
            # One axis becomes several: its size must stay.
            result[-1] = size
            pairs.insert(0, (product // size, product // size))
    return None if any([a != b for a, b in pairs]) else result

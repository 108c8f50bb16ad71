"""What a caller of a model notices: changed names, dtypes, ranks and sizes of its inputs and outputs.

A change is compatible if the model accepts all that it accepted and still has what callers read: a size became a name
or open, an optional input or an output is new. Any other change is breaking.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from onnxjson.diffing.comparing import BASE, TARGET
from onnxjson.diffing.matching.alignment import Alignment, GraphPair, counterparts
from onnxjson.model.display import visible
from onnxjson.model.document import Dimension, Function, Type, ValueInfo
from onnxjson.model.types import format_data_type, shown_type

_MOST: Final = 3
"""Maximum number of names in one change."""

_AXIS: Final = {(True, False): "made variable, ", (False, True): "fixed, ", (True, True): "", (False, False): ""}
"""What happened to an axis by whether its size was and is a number."""


class InterfaceChange(NamedTuple):
    """One change of an input or output, in words."""

    is_breaking: bool
    parts: tuple[str, ...]
    """Words and texts of the model in turn, words first; texts of the model are not visible yet."""

    @property
    def word(self) -> str:
        """Whether callers have to change."""
        return "breaking" if self.is_breaking else "compatible"

    @property
    def text(self) -> str:
        """``output "382" renamed to "logits"``, visible."""
        return "".join([f'"{visible(part)}"' if number % 2 else part for number, part in enumerate(self.parts)])


class _Axis(NamedTuple):
    """One difference of two types."""

    is_breaking: bool
    words: tuple[str, str, str]
    """What differs, before and after."""


def interface_changes(alignment: Alignment) -> list[InterfaceChange]:
    """Compare the interfaces of two models: breaking changes first, inputs before outputs.

    What several inputs and outputs share, such as a batch that got a name, is one change.
    """
    pair = next((each for each in alignment.graphs if each.base.kind == "main"), None)
    if pair is None or isinstance(pair.base.graph, Function) or isinstance(pair.target.graph, Function):
        return []
    changes = _joined([*_inputs(pair), *_outputs(pair)])
    return sorted(changes, key=lambda change: not change.is_breaking)


def _inputs(pair: GraphPair) -> Iterator[InterfaceChange]:
    base, target = _values(pair, BASE, "input"), _values(pair, TARGET, "input")
    names = counterparts("input", (pair.base, pair.target), (base, target), lambda: pair)
    yield from _compare("input", pair, base, target, names, _tied(base, target, names))
    before, after = pair.base.defaults, pair.target.defaults
    for name in base:
        if name not in names and name not in after:
            yield InterfaceChange(True, ("input ", name, " removed"))
    for name in target:
        if name not in names.values() and name not in before:
            yield InterfaceChange(True, ("input ", name, " added, without a default"))
    optional, required = after - before, before - after
    for is_breaking, what, names_of_kind, words in (
        (True, "optional input", required - target.keys(), " removed"),
        (True, "input", required & target.keys(), " no longer optional"),
        (False, "input", optional & base.keys(), " now optional"),
        (False, "optional input", optional - base.keys(), " added"),
    ):
        if names_of_kind:
            shown = [*sorted(names_of_kind)[:_MOST], *["..."] * (len(names_of_kind) > _MOST)]
            several = f"{len(names_of_kind):,} {what}s " if len(names_of_kind) > 1 else f"{what} "
            yield InterfaceChange(is_breaking, (several, ", ".join(shown), words))


def _outputs(pair: GraphPair) -> Iterator[InterfaceChange]:
    base, target = _values(pair, BASE, "output"), _values(pair, TARGET, "output")
    names = counterparts("output", (pair.base, pair.target), (base, target), lambda: pair)
    yield from _compare("output", pair, base, target, names, frozenset())
    yield from [InterfaceChange(True, ("output ", name, " removed")) for name in base if name not in names]
    for name in target:
        if name not in names.values():
            yield InterfaceChange(False, ("output ", name, " added"))
    if [*names.values()] != [name for name in target if name in names.values()]:
        yield InterfaceChange(True, ("order of outputs: ", ", ".join(base), " -> ", ", ".join(target)))


def _values(pair: GraphPair, side: int, field: str) -> dict[str, ValueInfo]:
    """The inputs without an initializer, or the outputs, by name."""
    scope = pair.target if side else pair.base
    constants = {*scope.initializers, *scope.sparse_initializers} if field == "input" else ()
    values: Sequence[ValueInfo] = getattr(scope.graph, field)
    return {each.name: each for each in values if each.name and each.name not in constants}


def _compare(
    what: str,
    pair: GraphPair,
    base: Mapping[str, ValueInfo],
    target: Mapping[str, ValueInfo],
    names: Mapping[str, str],
    tied: frozenset[Hashable],
) -> Iterator[InterfaceChange]:
    """Compare the names and types of counterparts."""
    for name, other in names.items():
        if name != other:
            word = " renamed to " if pair.values.get(name) == other else " replaced by "
            yield InterfaceChange(True, (f"{what} ", name, word, other))
        one, new = base[name].type, target[other].type
        differences = list(_types(what, one, new, tied))
        if not differences:
            continue
        is_breaking = any([each.is_breaking for each in differences])
        texts = (shown_type(one) if one else "no type", shown_type(new) if new else "no type")
        label, before, after = differences[0].words if len(differences) == 1 else ("", *texts)
        yield InterfaceChange(is_breaking, (f"{what} ", other, f": {label}", before, " -> ", after))


def _types(what: str, one: Type | None, other: Type | None, tied: frozenset[Hashable]) -> Iterator[_Axis]:
    """Compare two types of a value; a size becomes open, or a name that no other size of other values has."""
    tensors = [None if each is None else each.tensor_type for each in (one, other)]
    if one == other:
        return
    texts = (shown_type(one) if one else "no type", shown_type(other) if other else "no type")
    if tensors[0] is None or tensors[1] is None:
        if texts[0] != texts[1]:
            yield _Axis(one is not None and other is not None, ("", *texts))
        return
    if tensors[0].elem_type != tensors[1].elem_type:
        dtypes = [format_data_type(each.elem_type or 0) for each in tensors if each is not None]
        yield _Axis(True, ("dtype ", dtypes[0], dtypes[1]))
    shapes = [None if each.shape is None else each.shape.dim for each in tensors if each is not None]
    if shapes[0] is None or shapes[1] is None:
        if shapes[0] is not shapes[1]:
            yield _Axis(what == "input" and shapes[0] is None, ("", *texts))
        return
    if len(shapes[0]) != len(shapes[1]):
        yield _Axis(True, ("rank ", *texts))
        return
    for axis, (size, new) in enumerate(zip(shapes[0], shapes[1], strict=True)):
        before, after = _size(size), _size(new)
        if before != after:
            is_breaking = _is_fixed(new) and (_is_fixed(size) or what == "input" or bool(size.dim_param))
            words = (f"axis {axis} {_AXIS[_is_fixed(size), _is_fixed(new)]}", before, after)
            yield _Axis(is_breaking or new.dim_param in tied, words)


def _is_fixed(size: Dimension) -> bool:
    return size.dim_value is not None and size.dim_value >= 0


def _size(size: Dimension) -> str:
    return str(size.dim_value) if _is_fixed(size) else size.dim_param or "?"


def _tied(
    base: Mapping[str, ValueInfo], target: Mapping[str, ValueInfo], names: Mapping[str, str]
) -> frozenset[Hashable]:
    """The names that require sizes of the target to be equal that could differ in the base."""
    before: dict[str, set[Hashable]] = defaultdict(set)
    for name, other in names.items():
        shapes = [None if each.type is None or each.type.tensor_type is None else each.type.tensor_type.shape
                  for each in (base[name], target[other])]  # fmt: skip
        for axis, new in enumerate(shapes[1].dim if shapes[1] is not None else ()):
            old = shapes[0].dim[axis] if shapes[0] is not None and axis < len(shapes[0].dim) else None
            if new.dim_param:
                is_open = old is None or _size(old) == "?"
                before[new.dim_param].add((name, axis) if is_open or old is None else _size(old))
    return frozenset([name for name, sizes in before.items() if len(sizes) > 1])


def _joined(changes: Sequence[InterfaceChange]) -> list[InterfaceChange]:
    alike: dict[tuple[bool, tuple[str, ...]], list[InterfaceChange]] = defaultdict(list)
    for change in changes:
        alike[change.is_breaking, change.parts[2:] if len(change.parts) > 4 else change.parts].append(change)
    joined = []
    for (is_breaking, tail), members in alike.items():
        if len(members) == 1:
            joined.append(members[0])
            continue
        names: list[str] = []
        for number, change in enumerate(members[:_MOST]):
            names += [(", " if number else "") + change.parts[0], change.parts[1]]
        left = f", {len(members) - _MOST:,} more" if len(members) > _MOST else ""
        joined.append(InterfaceChange(is_breaking, (*names, left + tail[0], *tail[1:])))
    return joined

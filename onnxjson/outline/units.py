"""What an outline shows of a node: a block or an operator with its operands and keywords."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple

from onnxjson.model.constants import find_constant
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Node
from onnxjson.model.messages import value_of
from onnxjson.model.operators import attribute_defaults, operator_name, plain_domain
from onnxjson.model.types import format_data_type
from onnxjson.outline.flow import INFIX, LONG, Flow, Kept, depth_first, operator


class GraphKey(NamedTuple):
    """A graph for comparison with others."""

    key: Hashable
    """What it has in common with graphs that are equal but for names, numbers and weights."""
    outer: tuple[str, ...]
    """The values of graphs around it that it shows, in the order of their use."""


class Unit(NamedTuple):
    """One or several nodes that an outline shows as one call."""

    nodes: tuple[int, ...]
    """Their positions; the last one produces the outputs."""
    outputs: tuple[str, ...]
    head: str
    """The name of the block or operator; for `is_infix`, the sign between its operands."""
    operands: tuple[str, ...]
    """The values that it shows; other constants are hidden, such as the weights of a norm."""
    keywords: tuple[tuple[str, str], ...] = ()
    """Names and texts; without a text, a mark such as ``causal``."""
    captured: tuple[str, ...] = ()
    """Further values that the graphs inside it consume."""
    labels: tuple[str, ...] = ()
    """What stands before the last operands, such as ``mask=``."""
    is_infix: bool = False
    block: str = ""
    """The name of the block that it is; "" for an operator as it is."""
    graphs: "tuple[GraphKey, ...]" = ()
    """The graphs inside it."""
    has_options: bool = False
    """Whether the keywords may be others in each round of a repeat, as those of convolutions."""


class Units:
    """The units of one graph, by what they produce and consume."""

    def __init__(self, flow: Flow, units: Sequence[Unit]) -> None:
        self.flow = flow
        self.units = units
        self.changes: dict[int, Unit | None] = {}
        """By their numbers, what comes in place of units; None for nothing."""
        self.producers = {name: number for number, unit in enumerate(units) for name in unit.outputs if name}
        self.uses = Counter([name for unit in units for name in (*unit.operands, *unit.captured, *unit.captured)])
        self.uses.update(list(flow.outputs))
        self.users: dict[str, list[int]] = {}
        for number, unit in enumerate(units):
            for name in dict.fromkeys(unit.operands):
                self.users.setdefault(name, []).append(number)

    def merge(self, numbers: Sequence[int], unit: Unit) -> None:
        """Put a unit with the nodes of those with these numbers in place of the last of them, and leave out the others.

        The units and their numbers stay until `merged` is called; then those whose change is None are left out.
        """
        nodes = tuple([node for number in numbers for node in (self.changes.get(number) or self.units[number]).nodes])
        self.changes.update(dict.fromkeys(numbers))
        self.changes[numbers[-1]] = unit._replace(nodes=nodes)

    def merged(self) -> "Units":
        """Return the units with the changes."""
        if not self.changes:
            return self
        units = [self.changes.get(number, unit) for number, unit in enumerate(self.units)]
        return Units(self.flow, [unit for unit in units if unit is not None])

    def producer(self, name: str) -> int:
        """Return the number of the unit that produces a value; -1 for other values."""
        return self.producers.get(name, -1)

    def only_user(self, name: str) -> int:
        """Return the one unit that consumes a value, in one place; -1 if there are others, or none."""
        return self.users[name][0] if self.uses[name] == 1 and name in self.users else -1

    def ordered(self) -> list[Unit]:
        """Return the units depth first from the outputs, each after those that it consumes from; names do not matter.

        Of the values that a unit consumes, those with most uses come first: what all layers share, such as a mask,
        comes before the first layer. Units that lead to no output follow.
        """
        starts = [*map(self.producer, self.flow.outputs), *range(len(self.units))]
        return [self.units[number] for number in depth_first(starts, self._sources)]

    def _sources(self, number: int) -> list[int]:
        unit = self.units[number]
        names = unit.operands + unit.captured
        if len(names) > 1:
            names = tuple(sorted(names, key=self.uses.__getitem__, reverse=True))
        return [self.producers.get(name, -1) for name in names]


_WINDOWS: Final = ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool")
_OF_WINDOWS: Final = {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}
_NORMS: Final = {
    "LayerNormalization": "LayerNorm", "SimplifiedLayerNormalization": "RMSNorm", "RMSNormalization": "RMSNorm",
    "BatchNormalization": "BatchNorm", "InstanceNormalization": "InstanceNorm", "GroupNormalization": "GroupNorm",
}  # fmt: skip
_OVER_AXIS: Final = ("Hardmax", "LogSoftmax", "Softmax")
_ONE_AXIS: Final = 13
"""The opset from which on these are over one axis, not over all from it on."""

_UNSEEN: Final = ("axis", "momentum", "spatial", "stash_type")
"""Attributes of these and of norms that are shown elsewhere, or do not matter where a model is used."""

_LISTED: Final = 10
"""Elements of a list of numbers that is shown."""

DEFAULT_EPSILON: Final = ("eps", "1e-05")
"""The keyword of norms that is not shown."""

_HIDDEN: Final = {"Shape": (), "Resize": (1, 2, 3), **dict.fromkeys(("LSTM", "GRU", "RNN"), (1, 2, 3, 4, 5, 6))}
"""Inputs that are not shown where they are constants or arithmetic of shapes."""

_NEAREST: Final = (("coordinate_transformation_mode", "asymmetric"), ("nearest_mode", "floor"))
"""Keywords of a Resize that repeats each point, as most networks do."""

_AXES: Final = frozenset(
    {"ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Squeeze", "Unsqueeze"}
)
"""Operators whose axes were an attribute before they were an input; both are shown alike."""


def unit_of(flow: Flow, position: int, versions: Mapping[str, int]) -> Unit:
    """Return what one node shows by itself."""
    node = flow.nodes[position]
    name = operator(node)
    inputs, outputs = node.input, node.output
    captured = flow.consumed[position][len(inputs) :]
    if flow.hidden:
        inputs, captured = [tuple([flow.alias(each) for each in names]) for names in (inputs, captured)]

    def shown_as(head: str, operands: tuple[str, ...], *keywords: tuple[str, str], is_block: bool = True) -> Unit:
        return Unit((position,), outputs, head, operands, keywords, block=head if is_block else "")

    if position in flow.without_effect:  # an output of the graph
        return shown_as("", inputs[:1], is_block=False)
    if name in ("Mul", "Pow") and len(inputs) == 2 and flow.is_square(name, inputs):
        return shown_as("Square", inputs[:1], is_block=False)
    if name in INFIX and len(inputs) == 2:
        block = "Linear" if name == "MatMul" and flow.is_weight(inputs[1]) else ""
        return Unit((position,), outputs, INFIX[name], inputs, is_infix=True, block=block)
    defaults = attribute_defaults(node.domain, node.op_type, versions.get(plain_domain(node.domain)))
    given = {each.name or "": each for each in node.attribute}
    # Weights are not shown, but what stands in their place.
    shown = (*inputs[:1], *[each for each in inputs[1:] if each and not flow.is_weight(each)])
    if name in _NORMS or name in _OVER_AXIS:
        axis = value_of(found) if (found := given.get("axis") or defaults.get("axis")) else -1
        is_last = isinstance(axis, int) and flow.is_last_axis(axis, (*node.input[:1], outputs[0]))
        is_onwards = name == "LayerNormalization" or (name in _OVER_AXIS and versions.get("", 13) < _ONE_AXIS)
        axes = [] if is_last else [("axes", f"{axis}:")] if is_onwards else [("axis", str(axis))]
        others = [each for each in _changed(given, defaults) if each != DEFAULT_EPSILON and each[0] not in _UNSEEN]
        return shown_as(_NORMS.get(name, name), shown, *axes, *others, is_block=name in _NORMS)
    if name in _WINDOWS:
        return shown_as(name, shown, *window(flow, node))._replace(has_options=True)
    if name == "RotaryEmbedding":
        angles = [each for each in inputs[1:] if each and not flow.is_operand(each)]
        return shown_as("rope", (*inputs[:1], *angles), *_changed(given, defaults))
    is_plain = name == "Gemm" and not _changed(given, defaults, ("transA", "alpha", "beta"))
    if is_plain and _is_linear(flow, inputs, given):
        return Unit((position,), outputs, "@", inputs[:2], is_infix=True, block="Linear")
    if name == "Gather" and flow.is_weight(inputs[0]) and flow.is_big(inputs[0]) and not _changed(given, defaults):
        return shown_as("Embedding", inputs[1::-1])
    if name in ("Reshape", "Expand", "Flatten"):
        shape = flow.shape_text(node.output[0], inputs)
        axes = _changed(given, defaults) if name == "Flatten" and shape == "[...]" else []
        return shown_as(name, inputs[:1], ("", shape), *axes, is_block=False)
    if name == "Slice" and (kept := flow.kept(node)):
        texts = [_kept_text(each) for each in sorted(kept) if each[1:] != (0, LONG, 1)]
        return shown_as(name, inputs[:1], ("", ", ".join(texts) or "all"), is_block=False)
    keywords = [("tanh", "") if each == ("approximate", "tanh") else each for each in _changed(given, defaults)]
    listed = _listed(flow, inputs[1]) if name in (*_AXES, "Pad", "Tile") and len(inputs) > 1 else ""
    if listed:
        others = [each for each in keywords if each[0] != "noop_with_empty_axes"]
        keywords = [("axes" if name in _AXES else "", listed), *others]
        inputs = (inputs[0], *inputs[2:])
    elif name == "Resize":
        shape, scales = flow.shape_text(outputs[0], ()), flow.elements(inputs[2]) if len(inputs) > 2 else None
        text = ",".join([f"{each:.6g}" for each in scales or ()])
        others = [each for each in keywords if each not in _NEAREST]
        keywords = (
            [*others, ("", "nearest")] if len(others) + 2 == len(keywords) and "mode" not in dict(others) else keywords
        )
        keywords = [("scales", f"[{text}]") if shape == "[...]" and text else ("", shape), *keywords]
    hidden = _HIDDEN.get(name, ())
    operands: list[str] = []
    for slot, operand in enumerate(inputs):
        if slot in hidden and (not operand or flow.is_operand(operand)):
            continue
        if flow.is_shape_input(position, slot) and flow.is_hidden_shape(operand):
            keywords.insert(0, ("", "[...]"))
        else:
            operands.append(operand)
    while operands and not operands[-1]:
        operands.pop()
    label = operator_name(node.domain, node.op_type)
    return shown_as(visible(label), tuple(operands), *keywords, is_block=False)._replace(captured=captured)


def _listed(flow: Flow, name: str) -> str:
    """The integers of a value as those of an attribute are shown; "" if they are not known, or too many."""
    numbers = flow.elements(name) or ()
    is_known = 0 < len(numbers) <= _LISTED and all([type(each) is int for each in numbers])
    return f"[{','.join(map(str, numbers))}]" if is_known else ""


def _is_linear(flow: Flow, inputs: tuple[str, ...], given: Mapping[str, Attribute]) -> bool:
    """Whether a Gemm multiplies with weights and adds a number to each column, or nothing."""
    if len(inputs) < 2:
        return False
    columns = (flow.dims(inputs[1]) or (None,))[0 if _int(given, "transB", 0) else -1]
    return flow.is_weight(inputs[1]) and (not any(inputs[2:]) or flow.is_row(inputs[2], columns))


def _kept_text(kept: Kept) -> str:
    """What a Slice keeps of one axis, as in Python: ``2 36:-36``; ``...`` where it is computed, "" for all."""
    _, start, end, step = kept
    first = "..." if start is None else start or ""
    last = "..." if end is None else "" if abs(end) >= LONG else end
    return f"axis {kept.axis} {first}:{last}" + (f":{step}" if step != 1 else "")


def _changed(
    given: Mapping[str, Attribute], defaults: Mapping[str, Attribute], names: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """The attributes that differ from their defaults, as keywords."""
    changed = []
    for name in sorted(given) if names is None else names:
        attribute = given.get(name)
        if attribute is None or attribute.g is not None or attribute.graphs or attribute.t is not None:
            continue
        if name in defaults and value_of(defaults[name]) == value_of(attribute):
            continue
        changed.append((visible("eps" if name == "epsilon" else name, 30), attribute_text(attribute)))
    return changed


def attribute_text(attribute: Attribute) -> str:
    """Return the value of an attribute in a few characters."""
    if attribute.ref_attr_name is not None:
        return f"@{visible(attribute.ref_attr_name, 30)}"
    if attribute.name == "to":
        return format_data_type(attribute.i or 0)
    value = value_of(attribute)
    items = value if isinstance(value, tuple) else (value,)
    texts = [
        f"{each:.6g}" if isinstance(each, float) else visible(each.decode("utf-8", "replace"), 30)
        if isinstance(each, bytes) else visible(str(each), 30)
        for each in items[:8]
    ]  # fmt: skip
    text = ",".join([*texts, *["..."] * (len(items) > 8)])
    return f"[{text}]" if isinstance(value, tuple) else text


def window(flow: Flow, node: Node, pads: Sequence[int] = ()) -> list[tuple[str, str]]:
    """The kernel, channels, stride and padding of a convolution or pooling, as far as they are not usual.

    With `pads`, what a Pad before it adds, for all axes.
    """
    given = {each.name or "": each for each in node.attribute}
    ints = {name: each.ints or () for name, each in given.items()}
    weight = find_constant(flow.scope, node.input[1]) if len(node.input) > 1 else None
    dims = () if weight is None or weight.tensor is None else weight.tensor.dims
    kernel = tuple(ints.get("kernel_shape") or dims[2:])
    channels = 0 if not dims else dims[0] if node.op_type != "ConvTranspose" else dims[1] * _int(given, "group", 1)
    keywords = [("", "x".join(map(str, kernel)))] if kernel else []
    if channels:
        keywords.append(("out", str(channels)))
    strides, dilations = ints.get("strides") or (1,), ints.get("dilations") or (1,)
    if set(strides) != {1}:
        keywords.append(("stride", _one_or_all(strides)))
    if set(dilations) != {1}:
        keywords.append(("dilation", _one_or_all(dilations)))
    group = _int(given, "group", 1)
    if group != 1:
        keywords.append(("depthwise", "") if group == channels else ("groups", str(group)))
    auto = given["auto_pad"].s if "auto_pad" in given else None
    if auto is not None and auto.startswith(b"SAME"):
        is_usual = set(strides) == {1} and not pads and auto == b"SAME_UPPER"
        keywords += [("pad", visible(auto.decode("utf-8", "replace").lower()))] * (not is_usual)
    elif padding := _padding(node.op_type or "", kernel, strides, dilations, ints.get("pads") or (), pads):
        keywords.append(("pad", padding))
    names = [each for each in sorted(given.keys() - _OF_WINDOWS) if set(ints[each] or [given[each].i]) != {0}]
    return [*keywords, *_changed(given, {}, names)]


def _padding(
    kind: str, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int],
    more: Sequence[int],
) -> str:  # fmt: skip
    """The padding of a convolution or pooling as text; "" if it is usual.

    That is half the kernel, none for kernels that do not overlap, and for a transposed convolution half of what its
    stride leaves of the kernel.
    """
    rank = len(kernel)
    strides, dilations = [[*each] * (rank if len(each) == 1 else 1) for each in (strides, dilations)]
    spatial = [*more[2 : 2 + rank], *more[4 + rank :]] or [0] * 2 * rank  # `more` has those of batch and channels, too
    sums = [one + other for one, other in zip(pads or [0] * 2 * rank, spatial, strict=False)]
    before, after = sums[:rank], sums[rank:]
    reach = [dilation * (size - 1) for dilation, size in zip(dilations, kernel, strict=False)]
    if kind == "ConvTranspose":
        reach = [each + 1 - stride for each, stride in zip(reach, strides, strict=False)]
    is_apart = all([size <= stride for size, stride in zip(kernel, strides, strict=False)])
    if not rank:
        return f"[{','.join(map(str, pads))}]" if any(pads) else ""
    usual = [0] * 2 * rank if is_apart else [*[each // 2 for each in reach], *[each - each // 2 for each in reach]]
    if not sums or sums == usual:
        return ""
    return _one_or_all(tuple(before)) if before == after else f"[{','.join(map(str, sums))}]"


def called(unit: Unit, head: str = "") -> str:
    """A unit as a keyword: its name and its own keywords."""
    texts = [f"{name}={text}" if name and text else name or text for name, text in unit.keywords]
    return (head or unit.head) + (f"({', '.join(texts)})" if texts else "")


def _int(given: Mapping[str, Attribute], name: str, default: int) -> int:
    attribute = given.get(name)
    return default if attribute is None or attribute.i is None else attribute.i


def _one_or_all(numbers: tuple[int, ...]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 else f"[{','.join(map(str, numbers))}]"

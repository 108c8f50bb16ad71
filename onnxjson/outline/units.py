"""What an outline shows of a node: a block or an operator with its operands and keywords."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Node
from onnxjson.model.messages import value_of
from onnxjson.model.operators import attribute_defaults, operator_name, plain_domain
from onnxjson.model.types import format_data_type
from onnxjson.outline.flow import INFIX, LONG, OFTEN, Flow, Kept, depth_first
from onnxjson.outline.values import operator


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

        Of the values that a unit consumes, those with most uses come first: what all layers share comes before the
        first layer. So do conditions that several units use, as masks are, and the value that most units use, as the
        layers of a decoder use that of the encoder. Units that lead to no output follow.
        """
        starts = [*map(self.producer, self.flow.outputs), *range(len(self.units))]
        order = depth_first(starts, self._sources)
        uses = [max([self.uses[name] for name in unit.outputs], default=0) for unit in self.units]
        light = {-1}  # what depends on no weights
        for at in order:
            is_light = self.units[at].block not in _HEAVY and light.issuperset(self._sources(at))
            light |= {at} if is_light else set()
        most = sorted([at for at in order if at not in light], key=uses.__getitem__)[-2:]
        if most and uses[most[-1]] > max(2, uses[most[0]] * (len(most) > 1)):
            early = {*depth_first(most[-1:], self._sources)}
            order.sort(key=lambda at: at not in early)
        if masks := [at for at in order if at in light and uses[at] > 1 and self.units[at].head in _CONDITIONS]:
            early = {*depth_first(masks, self._sources)}
            first = next((place for place, at in enumerate(order) if uses[at] > 1 and at not in light), -1)
            order[first + 1 :] = sorted(order[first + 1 :], key=lambda at: at not in early)
        return [self.units[at] for at in order]

    def _sources(self, number: int) -> list[int]:
        names = self.units[number].operands + self.units[number].captured
        often = sorted(names, key=lambda name: min(self.uses[name], OFTEN), reverse=True)
        return [self.producer(name) for name in often]


_CONDITIONS: Final = frozenset({"And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or"})
_HEAVY: Final = frozenset((
    "Attention", "BatchNorm", "Conv", "ConvTranspose", "Embedding", "GroupNorm", "InstanceNorm", "LayerNorm", "Linear",
    "RMSNorm",
))  # fmt: skip
_MORE: Final = ("mask=", "past_key=", "past_value=", "lengths=")
"""What the inputs of Attention after queries, keys and values are."""

_WINDOWS: Final = ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool")
_OF_WINDOWS: Final = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_USUAL: Final = (("stride", "1"), ("dilation", "1"), ("groups", "1"))
_CALLED: Final = {
    "LayerNormalization": "LayerNorm", "SimplifiedLayerNormalization": "RMSNorm", "RMSNormalization": "RMSNorm",
    "BatchNormalization": "BatchNorm", "InstanceNormalization": "InstanceNorm", "GroupNormalization": "GroupNorm",
    "RotaryEmbedding": "rope", **{name: name for name in ("LSTM", "GRU", "RNN", *_WINDOWS)},
}  # fmt: skip
"""Operators that are blocks, and their names."""

_OVER_AXIS: Final = ("Hardmax", "LogSoftmax", "Softmax")

_UNSEEN: Final = ("axis", "momentum", "spatial", "stash_type")
"""Attributes of these and of norms that are shown elsewhere, or do not matter where a model is used."""

_LISTED: Final = 10
"""Elements of a list of numbers that is shown."""

DEFAULT_EPSILON: Final = ("eps", "1e-05")
"""The keyword of norms that is not shown."""

_NEAREST: Final = [("coordinate_transformation_mode", "asymmetric"), ("nearest_mode", "floor")]
"""Keywords of a Resize that repeats each point, as most networks do."""

_LISTS: Final = {"Pad": "pads", "Squeeze": "axes", "Tile": "repeats", "Unsqueeze": "axes"}
"""Second inputs that were attributes in older versions, as the axes of all that reduce; both are shown alike."""


def unit_of(flow: Flow, position: int, versions: Mapping[str, int]) -> Unit:
    """Return what one node shows by itself."""
    node = flow.nodes[position]
    name, inputs = operator(node), tuple(map(flow.alias, node.input)) or ("",)
    unit = Unit((position,), node.output, visible(operator_name(node.domain, node.op_type)), inputs)
    if position in flow.without_effect:  # an output of the graph
        return unit._replace(head="", operands=inputs[:1])
    if len(inputs) == 2 and flow.is_square(name, inputs):
        return unit._replace(head="Square", operands=inputs[:1])
    if len(inputs) == 2 and name in INFIX:
        is_linear = name == "MatMul" and flow.is_weight(inputs[1])
        return unit._replace(head=INFIX[name], is_infix=True, block="Linear" if is_linear else "")
    opset = versions.get(plain_domain(node.domain))
    keywords = _changed(node, attribute_defaults(node.domain, node.op_type, opset))
    if name in _CALLED or name in _OVER_AXIS:
        keywords = window(flow, node) if name in _WINDOWS else _over_axes(flow, node, opset, keywords)
        # Weights are not shown, but what stands in their place.
        operands = (*inputs[:1], *[each for each in inputs[1:] if each and not flow.is_operand(each)])
        block, has_options = _CALLED.get(name, ""), name in _WINDOWS
        return Unit(
            (position,), node.output, block or name, operands, tuple(keywords), block=block, has_options=has_options
        )
    if name == "Attention":
        return _attention(flow, node, unit, keywords)
    if name == "Gemm" and _is_linear(flow, inputs, keywords):
        return unit._replace(head="@", operands=inputs[:2], is_infix=True, block="Linear")
    if name == "Gather" and not keywords and flow.is_weight(inputs[0]) and len(flow.sizes(inputs[0])) > 1:
        return unit._replace(head="Embedding", operands=inputs[::-1], block="Embedding")
    if name in ("Reshape", "Expand", "Flatten"):
        shape = flow.shape_text(node.output[0], inputs)
        shape = "[...]" if name == "Expand" and "..." in shape else shape  # of which optimizers lose single sizes
        axes = keywords if name == "Flatten" and shape == "[...]" else []
        return unit._replace(operands=inputs[:1], keywords=(("", shape), *axes))
    if name == "Slice" and (kept := flow.kept(node)):
        return unit._replace(operands=inputs[:1], keywords=(("", _kept_text(kept)),))
    return _operator(flow, node, unit, keywords)


def _attention(flow: Flow, node: Node, unit: Unit, changed: list[tuple[str, str]]) -> Unit:
    """The operator Attention, with its usual scale left out."""
    size = flow.sizes(unit.operands[0]).get(-1) if "q_num_heads" not in [each.name for each in node.attribute] else None
    usual = ("scale", f"{size**-0.5:.6g}") if isinstance(size, int) and size else ()
    keywords = [("causal", "") if each == ("is_causal", "1") else each for each in changed if each != usual]
    rest = [(label, each) for label, each in zip(_MORE, unit.operands[3:], strict=False) if each]
    return unit._replace(
        operands=(*unit.operands[:3], *[each for _, each in rest]), keywords=tuple(keywords), block="Attention",
        labels=tuple([label for label, _ in rest]), has_options=True,
    )  # fmt: skip


def _over_axes(flow: Flow, node: Node, opset: int | None, changed: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The axes of a norm or Softmax, if not the last one alone, and its other keywords."""
    is_old = node.op_type in _OVER_AXIS and opset is not None and opset < 13  # over all axes from one on
    axis = next((attribute_text(each) for each in node.attribute if each.name == "axis"), "1" if is_old else "-1")
    is_last = axis.lstrip("-").isdecimal() and flow.is_last_axis(int(axis), (*node.input[:1], *node.output[:1]))
    is_onwards = is_old or node.op_type not in _OVER_AXIS
    axes = [] if is_last else [("axes", f"{axis}:") if is_onwards else ("axis", axis)]
    return [*axes, *[each for each in changed if each != DEFAULT_EPSILON and each[0] not in _UNSEEN]]


def _operator(flow: Flow, node: Node, unit: Unit, changed: list[tuple[str, str]]) -> Unit:
    """An operator with its operands; sizes, axes and indices that are computed or long are keywords."""
    name, (position,), inputs = operator(node), unit.nodes, unit.operands
    keywords = [("tanh", "") if each == ("approximate", "tanh") else each for each in changed]
    keywords = [("axis", axis_text(flow, inputs[0], text)) if key == "axis" else (key, text) for key, text in keywords]
    if name == "Split" and _is_even(flow, node):
        keywords, inputs = [each for each in keywords if each[0] == "axis"], inputs[:1]
    in_list = "axes" if name.startswith("Reduce") else _LISTS.get(name, "")
    listed = flow.numbers(node, 1, in_list) if in_list else ()
    if name == "Pad" and listed and not any(listed):
        return unit._replace(head="", operands=inputs[:1])
    if listed and len(listed) <= _LISTED:
        others = [each for each in keywords if each[0] not in (in_list, "noop_with_empty_axes")]
        keywords = [(in_list if in_list == "axes" else "", f"[{','.join(map(str, listed))}]"), *others]
        inputs = (*inputs[:1], *inputs[2:])
    elif name == "Resize":
        others = [("", "nearest")] if keywords == _NEAREST else keywords
        keywords = [("", flow.shape_text(node.output[0], ())), *others]
        inputs = (*inputs[:1], *[each for each in inputs[1:] if each and not flow.is_operand(each)])
    operands: list[str] = []
    for slot, operand in enumerate(inputs):
        if flow.is_shape_input(position, slot) and flow.is_hidden_shape(operand):
            keywords.insert(0, ("", "[...]"))
        else:
            operands.append(operand)
    while operands and not operands[-1]:
        operands.pop()
    captured = tuple(map(flow.alias, flow.consumed[position][len(node.input) :]))
    return unit._replace(operands=tuple(operands), keywords=tuple(keywords), captured=captured)


def axis_text(flow: Flow, name: str, text: str) -> str:
    """Return an axis of a value; -1 for the last one, as far as its rank is known."""
    rank = flow.rank(name)
    axis = int(text) if text.lstrip("-").isdecimal() else None
    if rank is None or axis is None or not -rank <= axis < rank:
        return text
    return "-1" if axis % rank == rank - 1 > 0 else str(axis % rank)


def _is_even(flow: Flow, node: Node) -> bool:
    """Whether a Split makes parts of one size, as far as the size of the axis is known."""
    given = {each.name: each.i or 0 for each in node.attribute}
    size, count = flow.size("".join(node.input[:1]), given.get("axis", 0)), len(node.output)
    parts = flow.numbers(node, 1, "split")
    return len({*parts}) == 1 if parts else parts is not None and isinstance(size, int) and not size % count


def _is_linear(flow: Flow, inputs: Sequence[str], changed: list[tuple[str, str]]) -> bool:
    """Whether a Gemm multiplies with weights and adds a number to each column, or nothing."""
    if len(inputs) < 2 or not flow.is_weight(inputs[1]) or [name for name, _ in changed] not in ([], ["transB"]):
        return False
    columns = flow.sizes(inputs[1]).get(-2 if changed else -1)
    return not any(inputs[2:]) or flow.is_each(inputs[2], columns, -1, 2)


def _kept_text(kept: Sequence[Kept]) -> str:
    """What a Slice keeps of each axis, where that is not all: ``axis 2 36:-36``; ``...`` where it is computed."""
    texts = []
    for axis, start, end, step in sorted(kept, key=lambda each: each.axis):
        first = "..." if start is None else start or ""
        last = "..." if end is None else "" if abs(end) >= LONG else end
        if (first, last, step) != ("", "", 1):
            texts.append(f"axis {axis} {first}:{last}" + (f":{step}" if step != 1 else ""))
    return ", ".join(texts) or "all"


def _changed(node: Node, defaults: Mapping[str, Attribute]) -> list[tuple[str, str]]:
    """The attributes that differ from their defaults, as keywords."""
    changed = []
    for attribute in sorted(node.attribute, key=lambda each: each.name or ""):
        name = attribute.name or ""
        is_default = name in defaults and value_of(defaults[name]) == value_of(attribute)
        if not (is_default or attribute.g is not None or attribute.graphs or attribute.t is not None):
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
    texts = [f"{each:.6g}" if isinstance(each, float) else visible(str(each), 30) for each in items[:8]]
    return f"[{','.join(texts)}{',...' * (len(items) > 8)}]" if isinstance(value, tuple) else texts[0]


def window(flow: Flow, node: Node, more: Sequence[int] = ()) -> list[tuple[str, str]]:
    """The kernel, channels, stride and padding of a convolution or pooling, as far as they are not usual.

    With `more`, what a Pad before it adds, for all axes.
    """
    changed, ints = dict(_changed(node, {})), {each.name: each.ints for each in node.attribute}
    group, auto = changed.get("group", "1"), changed.get("auto_pad", "")
    slot = 3 if node.op_type == "QLinearConv" else 1
    weight = "".join(node.input[slot : slot + 1])
    dims = (flow.dims(weight) if flow.is_weight(weight) else None) or ()
    sizes = [size for size in dims if isinstance(size, int)]
    sizes = sizes if len(sizes) == len(dims) else []
    kernel, pads = ints.get("kernel_shape") or sizes[2:], ints.get("pads", ())
    rank = len(kernel) or len(pads) // 2 or 1
    strides, dilations = [ints.get(name) or (1,) * rank for name in ("strides", "dilations")]
    factor = int(group) if group.isdecimal() else 0
    channels = sizes[:1] if node.op_type != "ConvTranspose" else [size * factor for size in sizes[1:2]]
    if auto.startswith("SAME"):
        padding = "" if auto == "SAME_UPPER" and {*strides} == {1} and not more else auto.lower()
    else:
        padding = _padding(kernel, strides, dilations, pads, more)
    keywords = [
        ("", "x".join(map(str, kernel))), ("out", "".join(map(str, channels))), ("stride", _one_or_all(strides)),
        ("dilation", _one_or_all(dilations)), ("groups", group), ("pad", padding),
    ]  # fmt: skip
    keywords += [each for each in changed.items() if each[0] not in _OF_WINDOWS and each[1].strip("[0,]")]
    depthwise = ("groups", keywords[1][1])
    return [("depthwise", "") if each == depthwise else each for each in keywords if each[1] and each not in _USUAL]


def _padding(
    kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int], more: Sequence[int]
) -> str:
    """The padding of a convolution or pooling; "" if it is half the kernel, or none for kernels that do not overlap."""
    rank = len(strides)
    spatial = [*more[2 : 2 + rank], *more[4 + rank :]] or [0] * 2 * rank  # `more` has those of batch and channels, too
    sums = [one + other for one, other in zip(pads or [0] * 2 * rank, spatial, strict=False)]
    before, after = sums[:rank], sums[rank:]
    reach = [dilation * (size - 1) for dilation, size in zip(dilations, kernel, strict=False)]
    is_apart = all([size <= stride for size, stride in zip(kernel, strides, strict=False)])
    usual = [0] * 2 * rank if is_apart else [*[each // 2 for each in reach], *[each - each // 2 for each in reach]]
    return "" if sums == usual else _one_or_all(before) if before == after else f"[{','.join(map(str, sums))}]"


def _one_or_all(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len({*numbers}) == 1 else f"[{','.join(map(str, numbers))}]"


def called(unit: Unit) -> str:
    """A unit as a keyword: its name and its own keywords."""
    texts = [f"{name}={text}" if name and text else name or text for name, text in unit.keywords]
    return unit.head + (f"({', '.join(texts)})" if texts else "")

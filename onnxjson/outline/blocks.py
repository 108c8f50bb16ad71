"""Blocks that patterns describe: norms, activations, products with a bias, rotary embeddings, quantized values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from onnxjson.model.document import Attribute, Model
from onnxjson.model.index import Index
from onnxjson.model.messages import value_of
from onnxjson.model.scopes import Scope
from onnxjson.outline.flow import Flow
from onnxjson.outline.units import Unit
from onnxjson.patterns.finding import Match, matches
from onnxjson.patterns.nodes import TOLERANCE, Nodes, Value
from onnxjson.patterns.searching import matchers

_HEADS: Final = {"Linear": "@"}
"""Blocks that are written with a sign: a product with a weight, whose bias belongs to it."""


class Block(NamedTuple):
    """A block and the structure that proves it."""

    name: str
    """What it is called; "" for one without effect."""
    pattern: str
    operands: tuple[str, ...] = ("x",)
    """The names in the pattern of the values that it shows."""
    keywords: tuple[tuple[str, str], ...] = ()
    """Keywords, and the name in the pattern of their number; without a name, a mark."""


_MEAN_SQUARE: Final = "Sqrt(Add(ReduceMean((Pow($x, 2)|Mul($x, $x)), ...), ?e))"
_RMS: Final = f"(Div($x, {_MEAN_SQUARE})|Mul($x, (Reciprocal({_MEAN_SQUARE})|Div(1, {_MEAN_SQUARE}))))"
_VARIANCE: Final = "Sqrt(Add(ReduceMean((Pow(Sub($x, ReduceMean($x, ...)), 2)|Mul(Sub, Sub)), ...), ?e))"
_GATE: Final = "Add(Erf((Div($x, 1.41421)|Mul($x, 0.707107))), 1)"
_TANH: Final = (
    "Add(Tanh(Mul(Add($x, Mul((Pow($x, 3)|Mul($x, Mul($x, $x))|Mul(Mul($x, $x), $x)), 0.044715)), 0.797885)), 1)"
)
_GROUPS: Final = "Reshape(InstanceNormalization(Reshape($x, ...), ...), ...)"
_CLIPPED: Final = "Clip(Add($x, 3), 0, 6)"

BLOCKS: Final = (
    Block("LayerNorm", f"Add(Mul(Div(Sub($x, ReduceMean($x, ...)), {_VARIANCE}), ?w), ?b)", ("x",), (("eps", "e"),)),
    Block("LayerNorm", f"Mul(Div(Sub($x, ReduceMean($x, ...)), {_VARIANCE}), ?w)", ("x",), (("eps", "e"),)),
    Block("LayerNorm", f"Div(Sub($x, ReduceMean($x, ...)), {_VARIANCE})", ("x",), (("eps", "e"), ("plain", ""))),
    Block("RMSNorm", f"Mul(?w, ({_RMS}|Cast({_RMS})))", ("x",), (("eps", "e"),)),
    Block("Gelu", f"(Mul(Mul($x, {_GATE}), 0.5)|Mul(Mul($x, 0.5), {_GATE})|Mul($x, Mul({_GATE}, 0.5)))"),
    Block(
        "Gelu",
        f"(Mul(Mul($x, 0.5), {_TANH})|Mul(Mul($x, {_TANH}), 0.5)|Mul($x, Mul({_TANH}, 0.5)))",
        ("x",),
        (("tanh", ""),),
    ),
    Block("QuickGelu", "Mul($x, Sigmoid(Mul($x, 1.702)))"),
    Block("SiLU", "Mul($x, (Sigmoid($x)|Sigmoid(Mul($x, 1))))"),
    Block("Mish", "Mul($x, Tanh(Softplus($x)))"),
    Block(
        "HardSwish",
        f"(Mul($x, HardSigmoid<alpha=0.1666667, beta=0.5>($x))|Div(Mul($x, {_CLIPPED}), 6)|Mul($x, Div({_CLIPPED}, 6))"
        f"|Mul(Mul($x, {_CLIPPED}), 0.1666667))",
    ),
    Block("HardSigmoid", f"(Div({_CLIPPED}, 6)|Mul({_CLIPPED}, 0.1666667))"),
    Block("rope", "Add(Mul($x, $cos), Mul(Concat(Neg(Slice($x, ...)), Slice($x, ...)), $sin))"),
    Block("GroupNorm", f"Add(Mul({_GROUPS}, ?w), ?b)"),
    Block("GroupNorm", f"Mul({_GROUPS}, ?w)"),  # optimizers remove a bias of zeros
    Block("q8", "DequantizeLinear(QuantizeLinear($x, ...), ...)"),
    Block("", "Where(IsNaN($x), 0, $x)"),
    Block("Linear", "Add(MatMul($x, ?w), ?b)", ("x", "w")),
    Block("Conv", "Add(Conv($x, ?w), ?b) where rank($b) >= 3", ("x",)),
)  # fmt: skip
"""The blocks, larger ones before those that they contain."""


def block_units(model: Model, index: Index, flows: Mapping[Scope, Flow]) -> Iterator[tuple[Scope, Unit]]:
    """Yield the blocks of all graphs as units; no node is in two, and no inner value is used elsewhere."""
    taken: dict[Scope, set[int]] = {scope: set() for scope in flows}
    nodes = Nodes(model, index, TOLERANCE)
    for block in BLOCKS:
        for match in matches(matchers(model, index, block.pattern, nodes=nodes), overlapping=True):
            scope = match.root.scope
            flow = flows.get(scope)
            unit = None if flow is None else _unit(flow, block, match)
            if unit is not None and taken[scope].isdisjoint(unit.nodes):
                taken[scope].update(unit.nodes)
                yield scope, unit


def _unit(flow: Flow, block: Block, match: Match) -> Unit | None:
    """The unit of a match, or None if a value inside it is used elsewhere."""
    root = match.root.position
    nodes = {ref.position for ref in match.nodes if not flow.is_constant(ref.position)}
    if any([ref.scope is not flow.scope for ref in match.nodes]) or root not in nodes:
        return None
    for position in nodes - {root}:
        for name in flow.nodes[position].output:
            if any([user not in nodes and user not in flow.shape_nodes for user, _ in flow.uses.get(name, ())]):
                return None
    operands = [flow.alias(bound.name) for name in block.operands if isinstance(bound := match.bindings[name], Value)]
    keywords = [(key, _number(flow, match.bindings[name]) if name else "") for key, name in block.keywords]
    ordered = (*sorted(nodes - {root}), root)
    name = _HEADS.get(block.name, block.name)
    return Unit(
        ordered, tuple(flow.nodes[root].output[:1]), name, tuple(operands), tuple(keywords),
        is_infix=name != block.name, block=block.name,
    )  # fmt: skip


def _number(flow: Flow, bound: Value | Attribute) -> str:
    if isinstance(bound, Attribute):
        return str(value_of(bound))
    elements: Sequence[object] | None = flow.elements(bound.name)
    return f"{elements[0]:.6g}" if elements and isinstance(elements[0], float) else "..."

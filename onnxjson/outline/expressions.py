"""Units as expressions: which value is written where it is used, and which gets a line of its own.

The decision depends on the structure alone: names and numbers count with a fixed width.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from onnxjson.model.display import visible
from onnxjson.outline.flow import Flow
from onnxjson.outline.units import Unit, Units
from onnxjson.outline.values import SHOWN

WIDTH: Final = 84
"""Size up to which expressions are written in each other."""

DEPTH: Final = 4
"""Calls that are written in each other."""

_MOST: Final = 16
"""Operands up to which all of them are shown."""

NAME: Final = 6
"""Nominal size of a name or number."""


class Ref(NamedTuple):
    """A computed value, an input or a value of a graph around."""

    name: str
    is_shown: bool = True
    """Whether it is an operand; else a graph inside consumes it."""


class Weight(NamedTuple):
    """A constant that is shown by its name."""

    name: str
    user: int
    """The node that multiplies with it, whose module is named after it; -1 for other uses."""


class Detail(NamedTuple):
    """A number, shape or other text that may differ from round to round of a repeat."""

    text: str


class Options(NamedTuple):
    """Keywords that may differ from round to round, also in which there are."""

    items: tuple[tuple[str, str], ...]


class Inside(NamedTuple):
    """A graph in a node."""

    key: Hashable
    """What it has in common with equal ones."""
    node: int


Piece: TypeAlias = str | Ref | Weight | Detail | Options | Inside


class Expression(NamedTuple):
    """The text of one value, in pieces."""

    pieces: tuple[Piece, ...]
    nodes: tuple[int, ...]
    """The nodes that it shows."""
    blocks: tuple[str, ...]
    """The names of its blocks, the outer before the inner."""
    size: int = NAME
    depth: int = 0
    strength: int = 3
    """How strongly it binds: 1 for sums, 2 for products, 3 for calls and names."""


class Statement(NamedTuple):
    """An expression and the values that it defines; a line before it has a text."""

    outputs: tuple[str, ...]
    expression: Expression


_STRENGTH: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "@": 2}


def statements(graph: Units) -> list[Statement]:
    """Return the lines of a graph, in order; each unit, after those whose values it shows, is in one of them."""
    flow, uses = graph.flow, graph.uses
    pending: dict[str, Expression] = {}
    places: dict[str, int] = {}
    written: dict[int, Statement] = {}
    written_sums: set[str] = set()
    for number, unit in enumerate(graph.ordered()):
        parts: dict[str, Expression] = {}
        inner: list[str] = []
        for name in unit.operands:
            if (part := pending.get(name)) is None:
                parts[name] = _operand(flow, unit, name)
            else:
                parts[name] = part
                inner.append(name)
        expression = _combined(flow, unit, parts)
        if inner and (cut := _cut(unit, expression, parts, inner)):
            for name in cut:
                written[places[name]] = Statement((name,), pending.pop(name))
                parts[name] = _leaf(Ref(name))
            expression = _combined(flow, unit, parts)
        for name in inner:
            pending.pop(name, None)
        shown = tuple([name for name in unit.outputs if uses[name]])
        is_single = len(shown) == 1 and uses[shown[0]] == 1 and shown[0] not in flow.outputs
        if is_single and not (unit.head == "+" and _is_residual(unit, parts, uses, written_sums)):
            pending[shown[0]], places[shown[0]] = expression, number
        else:
            written[number] = Statement(shown or unit.outputs[:1], expression)
            written_sums.update(shown * (unit.head == "+"))
    for name, expression in pending.items():
        written[places[name]] = Statement((name,), expression)
    return [written[number] for number in sorted(written)]


def _cut(unit: Unit, expression: Expression, parts: dict[str, Expression], inner: Sequence[str]) -> list[str]:
    """The `inner` operands that get a line of their own, the widest first, until the expression of a unit fits.

    Chains of convolutions have a line each, so that they can be folded. Takes time linear in the operands, but for
    sorting them: the expression is not combined again for each one.
    """
    if expression.size <= WIDTH and expression.depth <= DEPTH and not unit.has_options:
        return []
    uses = Counter(unit.operands)
    size = expression.size
    outer = expression.depth - max([part.depth for part in parts.values()])
    unfit = {name for name, part in parts.items() if part.depth + outer > DEPTH}
    if unit.has_options:
        unfit |= {name for name in inner if any([isinstance(each, Options) for each in parts[name].pieces])}
    cut: list[str] = []
    for name in sorted(inner, key=lambda name: (parts[name].size, parts[name].depth), reverse=True):
        if size <= WIDTH and not unfit:
            break
        cut.append(name)
        unfit.discard(name)
        size -= uses[name] * (parts[name].size - NAME)
    return cut


def _is_residual(unit: Unit, parts: dict[str, Expression], uses: Counter[str], sums: set[str]) -> bool:
    """Whether a unit adds to a sum, or a value that is used elsewhere, too: a step of a chain, which has a line."""
    inner = [part.pieces[0] for name in unit.operands if len((part := parts[name]).pieces) == 1]
    return any([isinstance(each, Ref) and (uses[each.name] > 1 or each.name in sums) for each in inner])


def _operand(flow: Flow, unit: Unit, name: str) -> Expression:
    """The expression of an operand that is not written where it is used."""
    if not name:
        return _leaf("_")
    if not flow.is_operand(name):
        return _leaf(Ref(name))
    if flow.is_weight(name):
        users = [at for at in unit.nodes if name in flow.nodes[at].input] or [unit.nodes[-1]]
        return _leaf(_constant(flow, name, users[0] if unit.head in ("@", "Embedding") else -1))
    return _leaf(Detail("sizes(...)" if flow.producer(name) not in flow.entering else "[...]"))


def _leaf(piece: Piece) -> Expression:
    return Expression((piece,), (), ())


def _constant(flow: Flow, name: str, user: int) -> Piece:
    elements = flow.elements(name)
    if elements is None or len(elements) > SHOWN:
        return Weight(name, user)
    texts = [f"{each:.6g}" if isinstance(each, float) else visible(str(each), 20) for each in elements]
    return Detail(texts[0] if len(texts) == 1 else f"[{','.join(texts)}]")


def _combined(flow: Flow, unit: Unit, parts: dict[str, Expression]) -> Expression:
    """The expression of a unit, with those of its operands."""
    inner = [parts[name] for name in unit.operands]
    size, depth = sum([part.size for part in inner]), max([part.depth for part in inner], default=0)
    nodes = (*[node for part in inner for node in part.nodes], *unit.nodes)
    blocks = (*[unit.block] * bool(unit.block), *[block for part in inner for block in part.blocks])
    if not unit.head and len(inner) == 1:
        return inner[0]._replace(nodes=nodes)
    pieces: list[Piece] = []
    if unit.is_infix:
        strength = _STRENGTH[unit.head]
        if unit.head in "+*":
            inner.sort(key=_order)
        for place, part in enumerate(inner):
            if place:
                pieces.append(f" {unit.head} ")
            before = f"{unit.keywords[0][0]}(" if unit.keywords and place else "("
            needs = part.strength < strength + (place > 0) or before != "("
            pieces += (before, *part.pieces, ")") if needs else part.pieces
        return Expression(_joined(pieces), nodes, blocks, size + 3, depth, strength)
    pieces.append(f"{unit.head}(")
    first = len(inner) - len(unit.labels)
    most = len(inner) if len(inner) <= _MOST else _MOST // 2
    more = 0
    for place, part in enumerate(inner):
        if place >= most and len(part.pieces) == 1 and isinstance(ref := part.pieces[0], Ref):
            pieces.append(ref._replace(is_shown=False))
            more += 1
            continue
        if place:
            pieces.append(", ")
        if place >= first:
            pieces.append(unit.labels[place - first])
        pieces += part.pieces
    if more:
        pieces.append(f", and {more:,} more")
    if unit.has_options:
        pieces += [", " * bool(unit.keywords), Options(unit.keywords)]
    size += len(unit.head) + 2 + 2 * len(inner)
    for place, (name, text) in enumerate(unit.keywords):
        # Not the scale of an attention, which optimizers fold into weights in some rounds of a repeat, and no padding.
        size += (len(name) + NAME * bool(text)) * (name not in ("scale", "pad"))
        if not unit.has_options:
            pieces.append(", " * bool(place or inner) + name + "=" * bool(name and text))
            pieces += [Detail(text)] * bool(text)
    for key, names in unit.graphs:
        pieces += [
            Inside(key, unit.nodes[-1]),
            *[Ref(name, is_shown=False) for name in names if not flow.is_operand(name)],
        ]
    pieces.append(")")
    return Expression(_joined(pieces), nodes, blocks, size, depth + 1)


def _order(part: Expression) -> int:
    """The place of an operand where the order does not matter: names, expressions, then constants."""
    if len(part.pieces) > 1:
        return 1
    return 0 if isinstance(part.pieces[0], Ref) else 2


def _joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """The pieces with neighbouring texts as one."""
    merged: list[Piece] = []
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
        else:
            if text:
                merged.append(text)
                text = ""
            merged.append(piece)
    return (*merged, text) if text else tuple(merged)

"""The list of the nodes of one graph: position, lanes, operator, name, type of the first output, in aligned columns.

Types are in few columns, operators in the colour of their family.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from onnxjson.model.display import ELLIPSIS, visible
from onnxjson.model.document import Type
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import operator_name
from onnxjson.model.types import shown_type
from onnxjson.rendering.tables import (
    Line,
    Span,
    Style,
    cells,
    clipped,
    cut,
    distinct_texts,
    padded,
    shortened,
    shortened_name,
)
from onnxjson_tui.rows.beside_nodes import COLUMN, HEAVY, MOST_LANES, Lanes, Lit, cell, drawn, hidden, shown
from onnxjson_tui.rows.folding import Fold
from onnxjson_tui.session.following import SavedNodes
from onnxjson_tui.session.session import Session

_LONGEST_NAME: Final = 1000  # maximum characters of a name; more never fit in a row
_LOOKED_AT: Final = 2_000  # number of nodes that determine the first widths of columns and a shared prefix
_MOST_OPERATOR: Final = 20  # columns of the longest operator that is not shortened
_UNTYPED: Final = 30  # maximum columns of a list that has no room for types
_LEAST_OPERATOR: Final = 10  # columns of operators in a narrow list
_LEAST_NAME: Final = 6  # columns of a name beside a type that changes
_LEAST_FILLED: Final = 3  # free columns of a shortened name from which more of it is shown
_BLOCK: Final = 64  # rows whose names are shortened together, so that no two look the same
_MOST_BLOCKS: Final = 8
_SHARED: Final = 0.75  # part of the nodes whose names begin with a prefix that is left out
_TYPED: Final = 0.25  # part of the nodes whose types are known, from which they have a column
_COUNT: Final = 3  # columns of the number of hidden lanes
_NEARLY_ALL: Final = 0.98  # part of the texts that fit in a column if there is room

_SHORT: Final = {"bfloat": "bf", "float": "f", "complex": "c", "uint": "u", "int": "i"}

_DTYPE: Final = re.compile(rf"(?<![\w,\[])({'|'.join(_SHORT)})(?=[0-9])")

_FAMILIES: Final[dict[Style, str]] = {
    "compute":
    "Conv ConvInteger ConvTranspose DeformConv Gemm MatMul MatMulInteger QLinearConv QLinearMatMul Einsum "
    "Attention MultiHeadAttention GroupQueryAttention RotaryEmbedding FusedMatMul FusedConv FusedGemm "
    "MatMulNBits LSTM GRU RNN STFT DFT",
    "activation":
    "Relu LeakyRelu PRelu Elu Selu Celu Gelu FastGelu BiasGelu QuickGelu Sigmoid HardSigmoid HardSwish Swish "
    "Mish Tanh Erf Softplus Softsign ThresholdedRelu Clip Softmax LogSoftmax Hardmax Shrink",
    "norm":
    "BatchNormalization InstanceNormalization LayerNormalization GroupNormalization RMSNormalization "
    "SkipLayerNormalization SimplifiedLayerNormalization SkipSimplifiedLayerNormalization LpNormalization LRN "
    "MeanVarianceNormalization ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 "
    "ReduceLogSum ReduceLogSumExp ReduceSumSquare ArgMax ArgMin TopK CumSum MaxPool AveragePool "
    "GlobalAveragePool GlobalMaxPool LpPool",
    "shaping":
    "Reshape Transpose Squeeze Unsqueeze Flatten Expand Concat Split Slice Gather GatherElements GatherND Pad "
    "Tile Shape Size Resize Scatter ScatterElements ScatterND DepthToSpace SpaceToDepth Upsample "
    "ConcatFromSequence SplitToSequence ReverseSequence NonZero OneHot Range ConstantOfShape Compress Unique",
    "quiet": "Constant Identity Cast CastLike Dropout QuantizeLinear DequantizeLinear DynamicQuantizeLinear",
    "control": "If Loop Scan SequenceMap",
}  # fmt: skip
"""Operators of each style."""

_FAMILY: Final = {name: style for style, names in _FAMILIES.items() for name in names.split()}


class NodeRow(NamedTuple):
    """One row; all texts are without control characters."""

    position: int  # position of the node in its graph
    lanes: str
    hidden: int  # lanes that are not drawn
    operator: str
    name: str  # name of the node, or else of its first output
    output: str  # short type of its first output; "" if it is unknown
    is_inferred: bool = False  # whether the model does not state it


class Columns(NamedTuple):
    """Widths of the columns of a list."""

    digits: int
    lanes: int  # of the drawn lanes: two columns for each
    hidden: int  # of the number of hidden lanes; 0 if there is room for all
    operator: int
    name: int
    output: int  # of the type; 0 if no row has one


class NodeRows:
    """Rows of all nodes of a graph, or of those of a filter, computed on demand."""

    def __init__(
        self,
        scope: Scope,
        positions: Sequence[int] | None = None,
        *,
        is_bare: bool = False,
        typed: Scope | None = None,
    ) -> None:
        """Prepare the rows of some nodes, ascending, or of all; those of a filter have no lanes.

        Bare rows lack what must be computed for all nodes: lanes, and types unless they are known. `typed` is the same
        graph with inferred types.
        """
        self.scope = scope
        self._typed = typed
        self.positions = range(len(scope.graph.node)) if positions is None else positions
        self._is_bare = is_bare
        self._lanes = Lanes(scope) if positions is None and not is_bare else None
        self._lit: tuple[Lit, ...] = ()
        self._widths: tuple[int, int, int] | None = None
        self._names: dict[tuple[int, int], list[str]] = {}
        self.prefix = "" if is_bare else shared_prefix(list(map(self._full_name, self.positions)))
        """The beginning of most names, which rows leave out."""

    def __len__(self) -> int:
        return len(self.positions)

    def changed(self, scope: Scope) -> None:
        """Use changed nodes at the same positions."""
        self.scope = scope
        self._names.clear()
        self._widths = None

    def infer(self, typed: Scope | None) -> None:
        """Use other inferred types."""
        self._typed = typed
        self._widths = None

    def type_of(self, position: int) -> tuple[str, bool]:
        """Return the short type of the first output of a node, "" if it is unknown, and whether it is inferred."""
        if self._is_bare and not self.scope.knows_types:
            return "", False
        first = next((each for each in self.scope.graph.node[position].output if each), None)
        if first is None:
            return "", False
        stated = Index.type_of(self.scope, first)
        found = Index.type_of(self._typed, first) if stated is None and self._typed is not None else stated
        return type_text(found), stated is None

    def row(self, number: int, most: int = MOST_LANES) -> NodeRow:
        """Return a row, numbered from 0, of the current node, with at most some lanes."""
        position = self.positions[number]
        node = self.scope.graph.node[position]
        lanes, beyond = "", 0
        if self._lanes is not None:
            found = self._lanes.row(position)
            heavy = [each.lane for each in self._lit if position in each.rows]
            lanes, beyond = drawn(found, most, heavy=heavy), hidden(found, most)
        operator = visible(operator_name(node.domain, node.op_type))
        name = visible(self._full_name(position), _LONGEST_NAME)
        return NodeRow(position, lanes, beyond, operator, name, *self.type_of(position))

    def _full_name(self, position: int) -> str:
        node = self.scope.graph.node[position]
        return node.name or next((each for each in node.output if each), "")

    def short_name(self, number: int, width: int, spare: int = 0) -> str:
        """Return the name of a row in some columns, without the shared prefix, and unlike those around it.

        A name that fits into the columns and the `spare` ones is not shortened.
        """
        if spare > 0:
            name = visible(self._full_name(self.positions[number]).removeprefix(self.prefix), _LONGEST_NAME)
            if width < cells(name) <= width + spare:
                return name
        block = number // _BLOCK
        if (block, width) not in self._names:
            if len(self._names) >= _MOST_BLOCKS:
                self._names.clear()
            last = min((block + 1) * _BLOCK, len(self))
            places = [self.positions[each] for each in range(block * _BLOCK, last)]
            names = [visible(self._full_name(each).removeprefix(self.prefix), _LONGEST_NAME) for each in places]
            with distinct_texts():
                short = [_filled(shortened_name(each, width), each, width) for each in names]
            self._names[block, width] = [each if cells(each) <= width else cut(each, width) for each in short]
        return self._names[block, width][number - block * _BLOCK]

    def light(self, position: int | None) -> bool:
        """Highlight only the lanes of the outputs of a node; return whether they are others."""
        before = self._lit
        self._lit = () if self._lanes is None or position is None else self._lanes.produced_by(position)
        return before != self._lit

    def number_of(self, position: int) -> int | None:
        """Return the row of a node; None if a filter excludes it."""
        number = bisect_left(self.positions, position)
        return number if number < len(self) and self.positions[number] == position else None

    def restricted(self, positions: Sequence[int]) -> "NodeRows":
        """Return rows of some nodes of the same graph, ascending, with the same column widths."""
        rows = NodeRows(self.scope, positions, typed=self._typed)
        rows._widths = self.widths
        return rows

    @property
    def widths(self) -> tuple[int, int, int]:
        """Columns that operators, names and types need."""
        if self._widths is None:
            nodes = self.scope.graph.node[:_LOOKED_AT] if self._is_bare else self.scope.graph.node
            keys = {(node.domain, node.op_type) for node in nodes}
            operators = max([cells(visible(operator_name(*key), _MOST_OPERATOR + 1)) for key in keys], default=0)
            sample = range(0, len(nodes), max(len(nodes) // _LOOKED_AT, 1))
            names = [cells(visible(self._full_name(each).removeprefix(self.prefix), _LONGEST_NAME)) for each in sample]
            outputs = [self.type_of(each)[0] for each in sample]
            # Types of a few nodes are not worth a column; the inspector shows them.
            is_rare = sum(map(bool, outputs)) < _TYPED * len(outputs)
            types = 0 if is_rare else most_of(list(map(cells, outputs)))
            self._widths = min(operators, _MOST_OPERATOR), most_of(names), types
        return self._widths

    def columns(self, width: int, types: int | None = None) -> Columns:
        """Divide a width: each column gets what it needs, lanes what is left, and in a narrow list all get less.

        `types` are the columns of types, if they are the same for all lists.
        """
        digits = len(str(len(self.scope.graph.node)))
        operator, name, output = self.widths
        if types is None:
            output = min(output, max(width * 2 // 7, width - digits - 3 - operator - name)) if width > _UNTYPED else 0
        else:
            output = types
        operator = min(operator, max(width // 5, _LEAST_OPERATOR))
        used = digits + 1 + operator + 1 + (output + 1 if output else 0)
        lanes = count = 0
        if self._lanes is not None:
            # A node without a lane of its own is to the right of all lanes.
            wanted = min(self._lanes.width + 1, MOST_LANES)
            room = max(width // 8, min(width // 3, width - used - name))
            is_cut = self._lanes.width + 1 > MOST_LANES or 2 * wanted > room
            count = _COUNT + (self._lanes.width >= 10) if is_cut and room >= 3 + _COUNT else 0
            lanes = 2 * min(wanted, max((room - count) // 2, 0))
        return Columns(digits, lanes, count, operator, max(width - used - lanes - count, 0), output)


def _filled(short: str, name: str, width: int) -> str:
    """Return a shortened name with as much of what is left out as fits, after its first part."""
    first, mark, last = short.partition(ELLIPSIS)
    room = width - cells(short)
    if not mark or not first or room <= _LEAST_FILLED or not name.isascii() or not name.startswith(first):
        return short
    return name[: len(first) + room] + mark + last


def most_of(widths: Sequence[int]) -> int:
    """Return the columns that suffice for all but a few texts: one very long text must not cut all others."""
    return sorted(widths)[int(len(widths) * _NEARLY_ALL)] if widths else 0


def shared_prefix(names: Sequence[str]) -> str:
    """Return the beginning of most names, up to a slash or dot; "" if names would look the same without."""
    prefix = ""
    sample = names[:: max(len(names) // _LOOKED_AT, 1)]
    mark = next((mark for mark in "/." if sum(mark in name for name in sample) >= _SHARED * len(sample)), "/")
    while True:
        counts: Counter[str] = Counter()
        for name in sample:
            if name.startswith(prefix):
                counts[name[: name.find(mark, max(len(prefix), 1), -1) + 1]] += 1
        longer, count = counts.most_common(1)[0] if counts else ("", 0)
        if len(longer) <= len(prefix) or count < _SHARED * len(sample) or len(names) < 3:
            break
        prefix = longer
    if not prefix:
        return ""
    rests = {name[len(prefix) :] for name in names if name.startswith(prefix)}
    return "" if any(name in rests for name in names if not name.startswith(prefix)) else visible(prefix, _LONGEST_NAME)


def type_text(found: Type | None) -> str:
    """Return a type in short, without control characters; "" for None."""
    return "" if found is None else short_type(visible(shown_type(found)))


def filtered(refs: Sequence[NodeRef], scope: Scope) -> list[int]:
    """Return the positions of those found nodes that are in one graph, ascending."""
    return sorted([ref.position for ref in refs if ref.scope is scope])


def node_spans(row: NodeRow, name: str, columns: Columns, change: tuple[str, bool] = ("", False)) -> Iterator[Span]:
    """Yield a row after its position: lanes, operator in the colour of its family, name, type or its change."""
    text, is_wrong = change
    # What is longer than its column gets blanks of the next one.
    longer = max(cells(name) - columns.name, 0)
    columns = columns._replace(name=columns.name + longer, output=columns.output - longer)
    longer = cells(row.operator) - columns.operator
    if 0 < longer <= columns.name - cells(name):
        columns = columns._replace(operator=columns.operator + longer, name=columns.name - longer)
    if columns.lanes:
        for is_heavy, part in groupby(padded(row.lanes, columns.lanes), key=HEAVY.__contains__):
            yield Span("".join(part), "title" if is_heavy else "quiet")
    if columns.hidden:
        yield Span(padded(f"+{row.hidden}" if row.hidden else "", columns.hidden)[: columns.hidden], "quiet")
    operator = padded(clipped(row.operator, columns.operator), columns.operator) + " "
    yield Span(operator, "bad" if is_wrong else family(row.operator))
    yield Span(padded(name, columns.name), "bad" if is_wrong else "plain")
    if columns.output:
        if text:
            # If there is no room for both types, the new one is shown.
            shown = shortened(
                text if cells(text) <= columns.output else text[max(text.find("->"), 0) :], columns.output
            )
        else:
            shown = short_type(row.output, columns.output)
        style: Style = "bad" if is_wrong else "changed" if text else "quiet" if row.is_inferred else "plain"
        yield Span(" " + padded(shown, columns.output), style)


class NodeLines:
    """The nodes of one graph, with marks for selected, changed and new ones."""

    def __init__(self, rows: NodeRows | None, session: Session, saved: SavedNodes | None = None) -> None:
        """Use the rows of a graph, if there is one, and its saved nodes; None to mark no node as changed."""
        self.rows = rows
        self._session = session
        self._saved = saved

    def __len__(self) -> int:
        return len(self.rows) if self.rows is not None else 0

    def line(self, number: int, width: int) -> Line:
        """Marks for selection and findings, position, a mark for changed and new nodes, then lanes and names."""
        return self.node_line(number, width)

    def node_line(self, number: int, width: int, indent: str = "", types: int | None = None) -> Line:
        """Return the line of a node, with its columns after an indentation, and with the given columns for types."""
        assert self.rows is not None
        figures = self._session.figures
        titles = shown(figures, width)
        columns = self.rows.columns(max(width - 1 - len(indent) - COLUMN * len(titles), 1), types)
        row = self.rows.row(number, columns.lanes // 2)
        address, places = f"{self.rows.scope.address}/node/{row.position}", self._session.places
        change = places.flow.get(address, ("", False))
        if change[0]:
            # The measured numbers are not valid after the edit, and its types need the space.
            both = columns.name + (columns.output + 1 if columns.output else 0) + COLUMN * len(titles)
            titles = []
            output = max(min(cells(change[0]), both - _LEAST_NAME - 1), columns.output)
            columns = columns._replace(output=output, name=max(both - output - 1, 0))
        is_selected, severity = address in places.selected, places.flagged.get(address)
        mark = "" if self._saved is None else self._saved.mark(row.position)
        # Blanks have the style of their neighbours, so that a row needs fewer bytes.
        style: Style = "added" if mark == "+" else "changed" if mark else "quiet"
        flag: Style = "bad" if severity == "error" else "changed" if is_selected or severity else "quiet"
        spare = 0 if change[0] else columns.output - cells(short_type(row.output, columns.output))
        name = self.rows.short_name(number, columns.name, spare) if columns.name else ""
        return (
            Span("*" if is_selected else "!" if severity else " ", flag),
            Span(f"{row.position:>{columns.digits}}", "changed" if is_selected else "quiet"),
            Span((mark or " ") + indent, style),
            *node_spans(row, name, columns, change),
            *[cell(title, figures[title].get(address)) for title in titles],
        )

    def light(self, position: int | None) -> bool:
        """See `NodeRows.light`."""
        return self.rows is not None and self.rows.light(position)

    def position(self, number: int) -> int | None:
        """Return the position of the node of a row."""
        if self.rows is None or not 0 <= number < len(self.rows):
            return None
        return self.rows.positions[number]

    def number_of(self, position: int) -> int | None:
        """Return the row of a node."""
        return None if self.rows is None else self.rows.number_of(position)

    def number_around(self, position: int) -> int | None:
        """Return the row of a node, or of the line in which it is folded."""
        return self.number_of(position)

    def fold_at(self, number: int) -> Fold | None:
        """Return the line of several nodes in a row; None for a node."""
        return None

    def cut_text(self, number: int, width: int) -> str:
        """Return the text of a line that does not fit in the columns of its row; "" if it does."""
        return ""

    def refresh(self, scope: Scope | None, saved: SavedNodes | None) -> None:
        """Use changed nodes at the same positions, and other saved nodes."""
        if self.rows is not None and scope is not None:
            self.rows.changed(scope)
        self._saved = saved


def short_type(text: str, width: int | None = None) -> str:
    """Return ``float32[1,16,32]`` as ``f32[1,16,32]``; in few columns as ``f32[1,…,32]``, then ``f32 3d``."""
    short = _DTYPE.sub(lambda found: _SHORT[found[1]], text)
    if width is None or cells(short) <= width:
        return short
    dtype, _, dims = short.partition("[")
    if short.endswith("]") and "[" not in dims:
        sizes = dims[:-1].split(",")
        for kept in range(len(sizes) - 2, 0, -1):
            shown = f"{dtype}[{sizes[0]},{ELLIPSIS},{','.join(sizes[-kept:])}]"
            if cells(shown) <= width:
                return shown
        short = f"{dtype} {len(sizes)}d"
    return clipped(short, width)


def type_change(old: str | None, new: str) -> str:
    """Return ``f32[1,16] -> [16,1]`` for two types, the data type once if it is the same."""
    old, new = short_type(old or "?"), short_type(new)
    dtype = old.partition("[")[0]
    return f"{old} -> {new.removeprefix(dtype) if '[' in old and new.startswith(dtype + '[') else new}"


def family(operator: str) -> Style:
    """Return the style of an operator by its family; operators of other domains, such as functions, are "control"."""
    domain, _, name = operator.rpartition("::")
    return _FAMILY.get(name) or (
        "control" if domain and not domain.startswith(("com.microsoft", "ai.onnx")) else "plain"
    )

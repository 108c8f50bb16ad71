"""Inputs and outputs of graphs, and signatures of functions: which there are, of what type, in which order."""

from collections.abc import Sequence

from onnxjson.diffing.bulk import Bulk
from onnxjson.diffing.changes import Change, one_sided, one_sided_detail
from onnxjson.diffing.comparing import BASE, TARGET, Context, GraphComparison, Slot
from onnxjson.diffing.events import Detail
from onnxjson.diffing.fields import field_details, unknown_fields
from onnxjson.diffing.ordering_changes import note, note_order, pair_rest
from onnxjson.diffing.texts import info_text, value_type_text
from onnxjson.document import Function, ValueInfo
from onnxjson.matching.interface import pair_outputs


def compare_outputs(context: Context, graph: GraphComparison) -> dict[int, int]:
    """Pair the outputs of the graphs, and note those that are made elsewhere than before."""
    names = [scope.output_names for scope in graph.scopes]
    pairs = pair_outputs(*graph.scopes)
    for position, there in pairs.items():
        old, new = names[BASE][position] or "", names[TARGET][there] or ""
        if not graph.is_same_name(old, new):
            graph.slots.append(Slot(graph, None, None, position, there, old, new))
    return pairs


def compare_interface(context: Context, graph: GraphComparison, bulk: Bulk, outputs: dict[int, int]) -> None:
    """Compare the inputs and outputs of the graphs: which there are, and their types."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if isinstance(base, Function) or isinstance(target, Function):
        _signature(context, graph)
        return
    places = graph.pair.target.inputs
    inputs = {
        position: places[there]
        for name, position in graph.pair.base.inputs.items()
        if (there := graph.values.get(name)) is not None and there in places
    }
    for field, mine, its, pairs in (
        ("input", base.input, target.input, inputs),
        ("output", base.output, target.output, outputs),
    ):
        _Interface(context, graph, bulk, field, mine, its).run(pairs)


class _Interface:
    """The inputs or the outputs of a pair of graphs."""

    def __init__(
        self,
        context: Context,
        graph: GraphComparison,
        bulk: Bulk,
        field: str,
        base: Sequence[ValueInfo],
        target: Sequence[ValueInfo],
    ) -> None:
        self._context = context
        self._graph = graph
        self._bulk = bulk
        self._field = field
        self._base = base
        self._target = target

    def run(self, pairs: dict[int, int]) -> None:
        translate = self._graph.translate
        names = [translate(value.name or "") or value.name for value in self._base]
        pair_rest(names, [value.name for value in self._target], pairs)
        for position, there in pairs.items():
            one, other = self._base[position], self._target[there]
            if one is not other and one != other:
                self._pair(position, there, one, other)
        its = set(pairs.values())
        for position, value in enumerate(self._base):
            if position not in pairs:
                self._alone(position, value, BASE)
        for position, value in enumerate(self._target):
            if position not in its:
                self._alone(position, value, TARGET)
        address = f"{self._graph.address}/{self._field}"
        self._context.pairs[address] = sorted(pairs.items())
        note_order(self._context, self._graph, self._field, f"{self._field}s", self._context.pairs[address])

    def _pair(self, position: int, there: int, one: ValueInfo, other: ValueInfo) -> None:
        graph = self._graph
        address, its_address = (
            f"{graph.address}/{self._field}/{position}",
            f"{graph.target_address}/{self._field}/{there}",
        )
        if one.type != other.type:
            texts = value_type_text(one.type), value_type_text(other.type)
            if texts[0] == texts[1]:
                details = field_details(one.type, other.type, "type")
            else:
                details = (Detail("type", *texts),)
            change = self._change(f"{self._field} type", (address,), (its_address,), one.name, details, position)
            self._context.ledger.add(change, [f"{address}/type"], [f"{its_address}/type"])
        self._bulk.add_documentation(graph, self._field, f"{self._field}s", one, other)
        if details := unknown_fields(one, other):
            change = self._change(
                f"{self._field}.unknown_fields", (address,), (its_address,), one.name, details, position
            )
            change.kind = "field-changed"
            self._context.ledger.add(change, [f"{address}/unknown_fields"])
        # Outputs that are made elsewhere are told as that, with their names.
        has_slot = self._field == "output" and bool(one.name or other.name)
        if one.name != other.name and not has_slot and (not one.name or graph.translate(one.name) != other.name):
            self._bulk.add(
                graph, "renamed", f"{self._field}s", (self._field, "name"), [Detail("name", one.name, other.name)]
            )

    def _alone(self, position: int, value: ValueInfo, side: int) -> None:
        graph = self._graph
        address = f"{graph.scopes[side].address}/{self._field}/{position}"
        is_weight = self._field == "input" and value.name in graph.scopes[side].initializers
        noun = f"initializers as {self._field}s" if is_weight else self._field
        pattern = f"{noun} {'removed' if side == BASE else 'added'}"
        text = info_text(value)
        detail = one_sided_detail(side, self._field, text)
        addresses = one_sided(side, address)
        change = self._change(pattern, addresses[0], addresses[1], value.name, (detail,), position)
        self._context.ledger.add(change, *addresses)

    def _change(
        self,
        pattern: str,
        base: tuple[str, ...],
        target: tuple[str, ...],
        name: str | None,
        details: tuple[Detail, ...],
        position: int,
    ) -> Change:
        return Change(
            "io-changed", pattern, base, target, name or "", details, order=(self._graph.number, -2, position)
        )


def _signature(context: Context, graph: GraphComparison) -> None:
    """Names of inputs, outputs and attributes of a function are positional: only how many there are is a change."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if not isinstance(base, Function) or not isinstance(target, Function):
        return
    for field in ("input", "output"):
        old, new = getattr(base, field), getattr(target, field)
        mapped = tuple([graph.translate(name) or name for name in old])
        same_names = sorted(mapped) == sorted(new)
        if mapped == new or (field == "output" and len(old) == len(new) and not same_names):
            continue
        address = f"{graph.address}/{field}"
        if context.ledger.claimed(address) is not None:
            continue
        if same_names:
            note(context, address, f"{graph.target_address}/{field}", f"function {field}s", 1, graph.number)
            context.ledger.take(context.ledger.changes[-1], [address])
            continue
        details = field_details(mapped, new, f"function {field}")
        addresses = (address,), (f"{graph.target_address}/{field}",)
        change = Change(
            "field-changed", f"function {field}s", *addresses, base.name or "", details, order=(graph.number, -2)
        )
        context.ledger.add(change, [address])

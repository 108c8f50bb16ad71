"""What graphs say about values: their inputs, outputs, types of the values between, quantization annotations; names."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import ne
from typing import Final

import msgspec

from onnxjson.diffing.bulk import Bulk
from onnxjson.diffing.causes import causes_of
from onnxjson.diffing.changes import EXAMPLES, Change, one_sided
from onnxjson.diffing.comparing import BASE, TARGET, Context, GraphComparison, Slot
from onnxjson.diffing.events import Detail
from onnxjson.diffing.fields import field_details
from onnxjson.diffing.interface import pair_outputs
from onnxjson.diffing.ordering_changes import breaks, note, note_order
from onnxjson.diffing.texts import info_text, value_type_text
from onnxjson.document import Function, Graph, TensorAnnotation, ValueInfo


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
        documentation(self._bulk, graph, self._field, f"{self._field}s", one, other)
        if one.unknown_fields != other.unknown_fields:
            detail = Detail("unknown fields", one.unknown_fields.hex() or None, other.unknown_fields.hex() or None)
            change = self._change(
                f"{self._field}.unknown_fields", (address,), (its_address,), one.name, (detail,), position
            )
            change.kind = "field-changed"
            self._context.ledger.add(change, [f"{address}/unknown_fields"])
        if (not one.name) != (not other.name):
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
        detail = Detail(self._field, *((text, None) if side == BASE else (None, text)))
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


def documentation(
    bulk: Bulk,
    graph: GraphComparison,
    field: str,
    noun: str,
    one: ValueInfo,
    other: ValueInfo,
) -> None:
    """Documentation and metadata of a value."""
    for name in ("doc_string", "metadata_props"):
        old, new = getattr(one, name), getattr(other, name)
        if old != new:
            details = (
                [Detail(one.name or "", old, new)] if name == "doc_string" else field_details(old, new, one.name or "")
            )
            bulk.add(graph, "metadata-changed", f"{name} of {noun}", (field, name), list(details), 1)


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
        if same_names:
            note(context, address, f"{graph.target_address}/{field}", f"function {field}s", 1, graph.number)
            context.ledger.take(context.ledger.changes[-1], [address])
            continue
        details = field_details(mapped, new, f"function {field}")
        change = Change(
            "field-changed", f"function {field}s", (address,), (f"{graph.target_address}/{field}",), base.name or "", details,
            order=(graph.number, -2),
        )  # fmt: skip
        context.ledger.add(change, [address])


def compare_value_infos(
    context: Context, graph: GraphComparison, bulk: Bulk, counterparts: dict[str, tuple[str, Change]]
) -> None:
    """Compare what the graphs say about the values in between.

    Args:
        context: what is shared.
        graph: the graphs.
        bulk: takes the changes.
        counterparts: names of values that rewrites gave away, the names that are taken instead, and the rewrite.
    """
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if base.value_info == target.value_info:
        return
    places: dict[str | None, int] = {}
    for position, value in enumerate(target.value_info):
        places.setdefault(value.name, position)
    get = graph.values.get
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    changed: list[tuple[int, int]] = []
    alone = []
    for position, value in enumerate(base.value_info):
        name = value.name or ""
        paired, rewrite = get(name), None
        if paired is None and name in counterparts:
            paired, rewrite = counterparts[name]
        there = places.get(paired) if paired else None
        if there is None and graph.translate(name) is None and not graph.pair.base.defines(name):
            there = places.get(name)  # about a value that is not there
        if there is None or there in taken:
            alone.append(position)
            continue
        if rewrite is not None and value.name != paired:
            context.ledger.claim(rewrite, [f"{graph.address}/value_info/{position}/name"])
        taken.add(there)
        pairs.append((position, there))
        other = target.value_info[there]
        if value is not other and value.type != other.type:
            changed.append((position, there))
        if value is not other and (
            value.doc_string != other.doc_string or value.metadata_props != other.metadata_props
        ):
            documentation(bulk, graph, "value_info", "value_info", value, other)
        if value.unknown_fields != other.unknown_fields:
            detail = Detail(name, value.unknown_fields.hex() or None, other.unknown_fields.hex() or None)
            bulk.add(graph, "field-changed", "unknown fields of value_info", ("value_info", "unknown_fields"), [detail])
    for position in alone:
        value = base.value_info[position]
        there = places.get(value.name)
        if there is not None and there not in taken:
            # Another value has that name now; what is said of it stays.
            taken.add(there)
            pairs.append((position, there))
            if value.type != target.value_info[there].type:
                changed.append((position, there))
            continue
        _alone(context, graph, bulk, position, base.value_info[position], BASE)
    for position, value in enumerate(target.value_info):
        if position not in taken:
            _alone(context, graph, bulk, position, value, TARGET)
    _types(context, graph, bulk, changed)
    context.pairs[f"{graph.address}/value_info"] = pairs
    note_order(context, graph, "value_info", "value_info", pairs)


def _types(context: Context, graph: GraphComparison, bulk: Bulk, changed: Sequence[tuple[int, int]]) -> None:
    """Types that changed: with the change that they follow from, else on their own."""
    if not changed:
        return
    base, target = graph.pair.base.graph.value_info, graph.pair.target.graph.value_info
    names = {base[position].name or "" for position, _ in changed}
    same = {value.name for value in base if value.name and value.name not in names}
    causes = causes_of(context, graph, [base[position].name or "" for position, _ in changed], same)
    for position, there in changed:
        one, other = base[position], target[there]
        cause = causes.get(one.name or "")
        if cause is not None:
            context.ledger.claim(cause, [f"{graph.address}/value_info/{position}/type"])
            continue
        texts = value_type_text(one.type), value_type_text(other.type)
        detail = Detail(one.name or "", *texts)
        bulk.add(graph, "value-info-changed", "types of values", ("value_info", "type"), [detail])


def _alone(context: Context, graph: GraphComparison, bulk: Bulk, position: int, value: ValueInfo, side: int) -> None:
    """What only one graph says: of a value of a rewrite it belongs to that, else it is a change of its own."""
    found = graph.maker_without_counterpart(side, value.name or "")
    address = f"{graph.scopes[side].address}/value_info/{position}"
    change = None if found is None else context.region_changes.get((found[0], side, found[1]))
    if change is None and value.name:
        constant = graph.constant(side, value.name)
        if constant is not None and not constant.is_paired(side):
            change = (context.ledger.claimed if side == BASE else context.ledger.claimed_in_target)(constant.address)
    if change is not None:
        context.ledger.claim(change, *(([address], []) if side == BASE else ([], [address])))
        return
    text = info_text(value)
    if side == BASE:
        bulk.add(
            graph, "value-info-changed", "value_info removed", ("value_info", "removed"), [Detail("value", text, None)]
        )
    else:
        bulk.add(
            graph, "value-info-changed", "value_info added", ("value_info", "added"), [Detail("value", None, text)]
        )


def compare_annotations(context: Context, graph: GraphComparison) -> None:
    """Compare quantization annotations, by the tensors that they are about."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if (
        isinstance(base, Function)
        or isinstance(target, Function)
        or base.quantization_annotation == target.quantization_annotation
    ):
        return
    places = {each.tensor_name: position for position, each in enumerate(target.quantization_annotation)}
    pairs = []
    taken: set[int] = set()
    address, its_address = f"{graph.address}/quantization_annotation", f"{graph.target_address}/quantization_annotation"

    def add(details: Iterable[Detail], mine: int | None, its: int | None, name: str | None) -> None:
        bases = () if mine is None else (f"{address}/{mine}",)
        targets = () if its is None else (f"{its_address}/{its}",)
        change = Change(
            "field-changed",
            "quantization annotation",
            bases,
            targets,
            name or "",
            tuple(details),
            order=(graph.number, -1),
        )
        context.ledger.add(change, bases, targets)

    for position, one in enumerate(base.quantization_annotation):
        there = places.get(graph.translate(one.tensor_name or "") or one.tensor_name)
        if there is None or there in taken:
            add([Detail("annotation", one.tensor_name, None)], position, None, one.tensor_name)
            continue
        taken.add(there)
        pairs.append((position, there))
        other = target.quantization_annotation[there]
        if _translated(one, graph.translate) != _translated(other, lambda name: name):
            add(field_details(_translated(one, graph.translate), other, "annotation"), position, there, one.tensor_name)
    for position, other in enumerate(target.quantization_annotation):
        if position not in taken:
            add([Detail("annotation", None, other.tensor_name)], None, position, other.tensor_name)
    context.pairs[address] = pairs
    if breaks([there for _, there in pairs]):
        note_order(context, graph, "quantization_annotation", "quantization annotations", pairs)


def _translated(one: TensorAnnotation, translate: Callable[[str], str | None]) -> TensorAnnotation:
    entries = tuple(
        [
            msgspec.structs.replace(entry, value=translate(entry.value or "") or entry.value)
            for entry in one.quant_parameter_tensor_names
        ]
    )
    return msgspec.structs.replace(
        one, tensor_name=translate(one.tensor_name or "") or one.tensor_name, quant_parameter_tensor_names=entries
    )


def graph_fields(context: Context, graph: GraphComparison) -> None:
    """The fields of the graphs themselves: name, documentation, metadata."""
    base, target = graph.pair.base.graph, graph.pair.target.graph
    if isinstance(base, Function) != isinstance(target, Function):
        return
    if isinstance(base, Graph) and base.name != target.name:
        detail = Detail("graph name", base.name, target.name)
        address = f"{graph.address}/name"
        change = Change(
            "info-changed",
            "graph name",
            (address,),
            (f"{graph.target_address}/name",),
            "",
            (detail,),
            order=(graph.number, -3),
        )
        context.ledger.add(change, [address])
    for name in ("doc_string", "metadata_props"):
        old, new = getattr(base, name), getattr(target, name)
        if old != new:
            pairs = [Detail("doc_string", old, new)] if name == "doc_string" else list(field_details(old, new, name))
            change = Change(
                "metadata-changed", f"graph {name}", (f"{graph.address}/{name}",), (f"{graph.target_address}/{name}",), "",
                tuple(pairs), order=(graph.number, -3),
            )  # fmt: skip
            context.ledger.add(change, change.base, change.target)
    if base.unknown_fields != target.unknown_fields:
        detail = Detail("unknown fields", base.unknown_fields.hex() or None, target.unknown_fields.hex() or None)
        address = f"{graph.address}/unknown_fields"
        context.ledger.add(
            Change(
                "field-changed",
                "graph.unknown_fields",
                (address,),
                (f"{graph.target_address}/unknown_fields",),
                "",
                (detail,),
                order=(graph.number, -3),
            ),
            [address],
        )


def note_names(context: Context, graph: GraphComparison, bulk: Bulk) -> None:
    """Names of nodes and values that are other ones; those that follow from rewrites belong to these."""
    nodes, its_nodes, target_of = graph.nodes(BASE), graph.nodes(TARGET), graph.pair.target_of
    replaced = set(graph.replaced)
    named = [position for position in graph.named if position not in replaced] if replaced else graph.named
    if named:
        details = [
            Detail("node", nodes[position].name, its_nodes[target_of[position]].name)
            for position in named[:EXAMPLES]
        ]
        bulk.add(graph, "renamed", "nodes", ("node", "name"), details, len(named))
    values = graph.pair.values
    total = sum(map(ne, values, values.values()))
    if not total:
        return
    explained = _consequences(context, graph).keys() | graph.moved_constants
    total -= sum(values.get(name, name) != name for name in explained)
    base = graph.pair.base
    inputs = {name for name in base.inputs if name not in base.initializers}
    outputs = {name for name in base.output_names if name} - inputs
    for noun, names in (("inputs", inputs), ("outputs", outputs)):
        renamed = [name for name in names if values.get(name, name) != name and name not in explained]
        total -= len(renamed)
        if renamed:
            renamed.sort(key=base.inputs.__getitem__ if noun == "inputs" else list(base.output_names).index)
            _note_values(graph, bulk, noun, renamed, len(renamed))
    if total:
        skipped = explained | inputs | outputs
        rest = (name for name, new in values.items() if name != new and name not in skipped)
        _note_values(graph, bulk, "tensors", list(islice(rest, EXAMPLES)), total)
    for place in _NAMED_PLACES:
        bulk.cover(graph, "renamed", ("tensors", "outputs", "inputs"), place)


_NAMED_PLACES: Final = (
    ("node", "output"), ("node", "input"), ("value_info", "name"), ("initializer", "name"), ("input", "name"),
    ("output", "name"), ("input", ""), ("output", ""), ("quantization_annotation", "*"), ("sparse_initializer", "*"),
    ("node", "device_configurations"),
)  # fmt: skip
"""Where names of values stand."""


def _note_values(graph: GraphComparison, bulk: Bulk, noun: str, names: Sequence[str], count: int) -> None:
    details = [Detail(noun[:-1], name, graph.pair.values[name]) for name in names[:EXAMPLES]]
    own = noun[:-1] if noun != "tensors" else "node"
    bulk.add(graph, "renamed", noun, (own, "name" if noun != "tensors" else "output"), details, count)
    for field in ("name", "") if noun != "tensors" else ():
        bulk.prefer(graph, "renamed", noun, (own, field))


def _consequences(context: Context, graph: GraphComparison) -> dict[str, Change]:
    """Values whose name is another one since a rewrite gave theirs away or took it, with the rewrite."""
    found: dict[str, Change] = {}
    for slot, change in context.rewired_slots:
        # Where an input keeps its name and takes another value, it is the values that changed names.
        if slot.graph is graph and slot.old == slot.new and graph.pair.values.get(slot.old, slot.old) != slot.old:
            found.setdefault(slot.old, change)
    for (home, name), change in context.explained_names.items():
        if home is graph and graph.pair.values.get(name, name) != name:
            found.setdefault(name, change)
    for side in (BASE, TARGET):
        for name, position in graph.made[side].items():
            old = graph.inverse.get(name) if side == BASE else name
            change = context.region_changes.get((graph, side, position))
            if change is None or not old or graph.pair.values.get(old, old) == old:
                continue
            found.setdefault(old, change)
    if found:
        _claim_names(context, graph, found)
    return found


def _claim_names(context: Context, graph: GraphComparison, found: dict[str, Change]) -> None:
    """Wherever these names stand, the rewrite explains that they changed; unless something else did already."""
    base = graph.pair.base
    claim = context.ledger.claim
    for name, change in found.items():
        if name in base.makers:
            claim(change, [f"{graph.node_address(base.makers[name][0])}/output"])
        if name in base.initializers:
            claim(change, [f"{graph.address}/initializer/{base.initializers[name]}/name"])
        if name in base.inputs:
            claim(change, [f"{graph.address}/input/{base.inputs[name]}/name"])
    for each in context.graphs:
        if graph not in each.chain():
            continue
        for position, node in enumerate(each.nodes(BASE)):
            if found.keys().isdisjoint(node.input):
                continue
            name = next(name for name in node.input if name in found)
            claim(found[name], [f"{each.node_address(position)}/input"])
        for position, output in enumerate(each.pair.base.output_names):
            if output in found:
                claim(found[output], [f"{each.address}/output/{position}/name"])
    for position, value in enumerate(graph.pair.base.graph.value_info):
        if value.name in found:
            claim(found[value.name], [f"{graph.address}/value_info/{position}/name"])

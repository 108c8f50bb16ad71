"""Pair the values of two graphs by the pairs of nodes: names of outputs, inputs, constants and aliases."""

import numpy as np

from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.diffing.matching.columns import ALIAS, CONSTANT, MISSING, SHIFT, SLOT, Columns
from onnxjson.diffing.matching.pairing import NodePairing
from onnxjson.model.document import Function


def pair_values(pairing: NodePairing, inputs: dict[int, int]) -> tuple[dict[str, str], list[int], list[int]]:
    """Return the pairs of names, and the pairs of nodes including Constant and Identity nodes."""
    base, target = pairing.base.columns, pairing.target.columns
    target_of = [each if each >= 0 else UNMATCHED for each in pairing.target_of]
    base_of = [each if each >= 0 else UNMATCHED for each in pairing.base_of]
    pairs = _NamePairs()
    mine, its = _input_names(base), _input_names(target)
    for here, there in inputs.items():
        pairs.add(mine[here], its[there])
    _pair_outputs(pairs, base, target, target_of)
    _pair_constants(pairs, base, target, target_of)
    _pair_aliases(pairs, base, target, target_of, base_of, pairing.outputs)
    _pair_unused(pairs, base, target, target_of, base_of)
    _pair_constant_nodes(pairs, base, target, target_of, base_of)
    return pairs.values, target_of, base_of


class _NamePairs:
    """Names of base -> names of target, one to one."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.taken: set[str] = set()

    def add(self, base: str, target: str) -> bool:
        """Pair two names if both are unpaired."""
        if not base or not target or base in self.values or target in self.taken:
            return False
        self.values[base] = target
        self.taken.add(target)
        return True


def _input_names(columns: Columns) -> list[str]:
    graph = columns.scope.graph
    return list(graph.input) if isinstance(graph, Function) else [each.name or "" for each in graph.input]


def _pair_outputs(pairs: _NamePairs, base: Columns, target: Columns, target_of: list[int]) -> None:
    nodes, its_nodes = base.nodes, target.nodes
    both = [(nodes[here].output, its_nodes[there].output) for here, there in enumerate(target_of) if there >= 0]
    values = {mine[0]: its[0] for mine, its in both if len(mine) == 1 == len(its)}
    its_names = set(values.values())
    if len(its_names) == len(values) and not (pairs.values.keys() & values.keys() or pairs.taken & its_names):
        values.pop("", None)
        pairs.values.update(values)
        pairs.taken |= its_names
    for mine, its in both if len(values) < len(both) else ():
        for here, there in zip(mine, its, strict=False):
            pairs.add(here, there)


def _pair_constants(pairs: _NamePairs, base: Columns, target: Columns, target_of: list[int]) -> None:
    """Pair constants that paired nodes consume at the same slot; constants of equal content first."""
    partners = np.array(target_of, np.int64)[base.consumer]
    slots = np.arange(len(base.codes)) - base.starts[base.consumer]
    has_place = base.is_constant_slot & (partners >= 0)
    has_place &= slots < (target.starts[partners + 1] - target.starts[partners])
    places = np.nonzero(has_place)[0]
    there = target.starts[partners[places]] + slots[places]
    is_same = base.codes[places] == target.codes[there]
    mine, its = base.names.__getitem__, target.names.__getitem__
    same = dict.fromkeys(zip(map(mine, places[is_same].tolist()), map(its, there[is_same].tolist()), strict=True))
    own = None if base.scope.outer is None else base.scope.defines
    for name, other in same:
        if own is None or own(name):
            pairs.add(*_same_level(base, target, name, other))
    _pair_other_constants(pairs, base, target, target_of, places[~is_same].tolist())


def _pair_other_constants(
    pairs: _NamePairs, base: Columns, target: Columns, target_of: list[int], places: list[int]
) -> None:
    """Pair constants at different slots of commutative nodes; then constants with different content."""
    late = []
    consumers, constants = base.consumer, target.constant_codes
    own = None if base.scope.outer is None else base.scope.defines
    for place in places:
        consumer = int(consumers[place])
        name, code = base.names[place], int(base.codes[place])
        slot = place - int(base.starts[consumer])
        its_names = target.nodes[target_of[consumer]].input
        if name in pairs.values or slot >= len(its_names) or (own is not None and not own(name)):
            continue
        candidates = its_names if base.commutative[consumer] else its_names[slot : slot + 1]
        for there in candidates:
            if target.sources[there] == code and pairs.add(*_same_level(base, target, name, there)):
                break
        else:
            late += [(name, there) for there in candidates]
    late = [(name, there) for name, there in late if target.sources[there] in constants]
    if not late:
        return
    unused, its_unused = _unused_contents(base), _unused_contents(target)
    for name, there in late:
        # If an equal constant still exists and is unused, then the input consumes another constant.
        if base.sources[name] not in its_unused and target.sources[there] not in unused:
            pairs.add(*_same_level(base, target, name, there))


def _unused_contents(columns: Columns) -> set[int]:
    names = _constant_names(columns)
    taken = {*columns.names, *columns.scope.output_names} if names else ()
    return {columns.sources[name] for name in names if name not in taken}


def _same_level(base: Columns, target: Columns, name: str, there: str) -> tuple[str, str]:
    """Return two names of constants; if only one is an alias, replace it by its source."""
    if (name in base.aliases) == (there in target.aliases):
        return name, there
    while name in base.aliases:
        name = base.aliases[name]
    while there in target.aliases:
        there = target.aliases[there]
    return name, there


def _pair_aliases(
    pairs: _NamePairs,
    base: Columns,
    target: Columns,
    target_of: list[int],
    base_of: list[int],
    outputs: dict[int, int],
) -> None:
    """Pair Identity nodes (and Casts without effect) by their sources; those at paired outputs first."""
    mine = _aliases(base, target_of)
    its = _aliases(target, base_of)
    if not mine or not its:
        return
    by_output = {name: position for position, name in enumerate(target.scope.output_names) if name}
    places = {name: outputs.get(position, -1) for position, name in enumerate(base.scope.output_names) if name}
    for wants_place, is_same_source in ((True, True), (False, True), (True, False)):
        for position in mine:
            if target_of[position] >= 0:
                continue
            node = base.nodes[position]
            place = places.get(node.output[0], -1)
            if wants_place and place < 0:
                continue
            code = base.sources[node.output[0]]
            for there in its:
                other = target.nodes[there]
                if base_of[there] >= 0 or other.op_type != node.op_type:
                    continue
                if wants_place and by_output.get(other.output[0], -2) != place:
                    continue
                names = node.output[0], other.output[0]
                is_pair = pairs.values.get(names[0]) == names[1]
                its_code = target.sources[names[1]]
                if is_same_source:
                    fits = _is_same(code, its_code, target_of)
                else:
                    # At paired outputs they are counterparts even if they consume different outer values.
                    fits = _is_given(code, base) and _is_given(its_code, target)
                if is_pair or (fits and pairs.add(*names)):
                    target_of[position], base_of[there] = there, position
                    break


def _aliases(columns: Columns, partners: list[int]) -> list[int]:
    return [each for each in (columns.kind == ALIAS).nonzero()[0].tolist() if partners[each] < 0]


def _is_given(code: int, columns: Columns) -> bool:
    """Whether a value is an input of the graph or of an outer graph."""
    return code < MISSING and code not in columns.constant_codes


def _is_same(code: int, its_code: int, target_of: list[int]) -> bool:
    if code < 0 or its_code < 0:
        return code == its_code
    return target_of[code >> SHIFT] == its_code >> SHIFT and not (code ^ its_code) & SLOT


def _pair_unused(pairs: _NamePairs, base: Columns, target: Columns, target_of: list[int], base_of: list[int]) -> None:
    """Pair constants that no paired node consumes, first those of unpaired nodes: by content, then by name.

    A constant of an unpaired node and an unused constant are paired by content alone.
    """
    mine, its = _taken_by_open(base, target_of), _taken_by_open(target, base_of)
    for is_taken in (True, False):
        ours = [name for name in _constant_names(base) if name not in pairs.values and (name in mine) == is_taken]
        theirs = [name for name in _constant_names(target) if name not in pairs.taken and (name in its) == is_taken]
        _pair_rest(pairs, base, target, ours, theirs)
    ours = [name for name in _constant_names(base) if name not in pairs.values]
    theirs = [name for name in _constant_names(target) if name not in pairs.taken]
    _pair_by_content(pairs, base, target, ours, theirs)


def _pair_rest(pairs: _NamePairs, base: Columns, target: Columns, mine: list[str], its: list[str]) -> None:
    _pair_by_content(pairs, base, target, mine, its)
    there = set(its)
    for name in mine:
        if name in there:
            pairs.add(name, name)


def _pair_by_content(pairs: _NamePairs, base: Columns, target: Columns, mine: list[str], its: list[str]) -> None:
    there = set(its)
    for name in mine:
        if name in there and base.sources[name] == target.sources[name]:
            pairs.add(name, name)
    by_code: dict[int, list[str]] = {}
    for name in its:
        if name not in pairs.taken:
            by_code.setdefault(target.sources[name], []).append(name)
    for name in mine:
        same = by_code.get(base.sources[name])
        if same and name not in pairs.values:
            pairs.add(name, same.pop(0))


def _taken_by_open(columns: Columns, partners: list[int]) -> set[str]:
    return {name for position, partner in enumerate(partners) if partner < 0 for name in columns.nodes[position].input}


def _constant_names(columns: Columns) -> list[str]:
    graph = columns.scope.graph
    names: list[str] = []
    if not isinstance(graph, Function):
        names += [each.name for each in graph.initializer if each.name]
        names += [each.values.name for each in graph.sparse_initializer if each.values and each.values.name]
    constants = (columns.kind == CONSTANT).nonzero()[0].tolist()
    return names + [columns.nodes[position].output[0] for position in constants]


def _pair_constant_nodes(
    pairs: _NamePairs, base: Columns, target: Columns, target_of: list[int], base_of: list[int]
) -> None:
    producers = {target.nodes[each].output[0]: each for each in (target.kind == CONSTANT).nonzero()[0].tolist()}
    for position in (base.kind == CONSTANT).nonzero()[0].tolist():
        there = producers.get(pairs.values.get(base.nodes[position].output[0], ""))
        if there is not None and base_of[there] < 0:
            target_of[position], base_of[there] = there, position

"""Pair the values of two graphs by the pairs of nodes: names of outputs, inputs, constants and aliases."""

from collections import deque

import numpy as np

from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.diffing.matching.columns import ALIAS, CONSTANT, MISSING, SHIFT, SLOT, Columns
from onnxjson.diffing.matching.pairing import NodePairing
from onnxjson.model.document import Function


def pair_values(pairing: NodePairing, inputs: dict[int, int]) -> tuple[dict[str, str], list[int], list[int]]:
    """Return the pairs of names, and the pairs of nodes including Constant and Identity nodes."""
    pairs = _ValuePairs(pairing)
    names, target_names = _input_names(pairs.base), _input_names(pairs.target)
    for position, place in inputs.items():
        pairs.add(names[position], target_names[place])
    pairs.pair_outputs()
    pairs.pair_constants()
    pairs.pair_aliases(pairing.outputs)
    pairs.pair_unused()
    pairs.pair_constant_nodes()
    return pairs.values, pairs.target_of, pairs.base_of


class _ValuePairs:
    """Names of base -> names of target, one to one."""

    def __init__(self, pairing: NodePairing) -> None:
        self.base, self.target = pairing.base.columns, pairing.target.columns
        self.target_of = [each if each >= 0 else UNMATCHED for each in pairing.target_of]
        self.base_of = [each if each >= 0 else UNMATCHED for each in pairing.base_of]
        self.values: dict[str, str] = {}
        self.taken: set[str] = set()

    def add(self, base: str, target: str) -> bool:
        """Pair two names if both are unpaired."""
        if not base or not target or base in self.values or target in self.taken:
            return False
        self.values[base] = target
        self.taken.add(target)
        return True

    def pair_outputs(self) -> None:
        nodes, target_nodes = self.base.nodes, self.target.nodes
        pairs = enumerate(self.target_of)
        both = [(nodes[position].output, target_nodes[place].output) for position, place in pairs if place >= 0]
        values = {old[0]: new[0] for old, new in both if len(old) == 1 == len(new)}
        target_names = set(values.values())
        if len(target_names) == len(values) and not (self.values.keys() & values.keys() or self.taken & target_names):
            values.pop("", None)
            self.values.update(values)
            self.taken |= target_names
        for old, new in both if len(values) < len(both) else ():
            for name, target_name in zip(old, new, strict=False):
                self.add(name, target_name)

    def pair_constants(self) -> None:
        """Pair constants that paired nodes consume at the same slot; constants of equal content first."""
        base, target = self.base, self.target
        partners = np.array(self.target_of, np.int64)[base.consumer]
        slots = np.arange(len(base.codes)) - base.starts[base.consumer]
        has_place = base.is_constant_slot & (partners >= 0)
        has_place &= slots < (target.starts[partners + 1] - target.starts[partners])
        places = np.nonzero(has_place)[0]
        target_places = target.starts[partners[places]] + slots[places]
        is_same = base.codes[places] == target.codes[target_places]
        names = map(base.names.__getitem__, places[is_same].tolist())
        target_names = map(target.names.__getitem__, target_places[is_same].tolist())
        same = dict.fromkeys(zip(names, target_names, strict=True))
        defines = None if base.scope.outer is None else base.scope.defines
        for name, other in same:
            if defines is None or defines(name):
                self.add(*self._same_level(name, other))
        self._pair_other_constants(places[~is_same].tolist())

    def _pair_other_constants(self, places: list[int]) -> None:
        """Pair constants at different slots of commutative nodes; then constants with different content."""
        base, target = self.base, self.target
        late = []
        defines = None if base.scope.outer is None else base.scope.defines
        for place in places:
            consumer = int(base.consumer[place])
            name, code = base.names[place], int(base.codes[place])
            slot = place - int(base.starts[consumer])
            target_names = target.nodes[self.target_of[consumer]].input
            if name in self.values or slot >= len(target_names) or (defines is not None and not defines(name)):
                continue
            candidates = target_names if base.commutative[consumer] else target_names[slot : slot + 1]
            for other in candidates:
                if target.sources[other] == code and self.add(*self._same_level(name, other)):
                    break
            else:
                late += [(name, other) for other in candidates]
        late = [(name, other) for name, other in late if target.sources[other] in target.constant_codes]
        if late:
            unused, target_unused = _unused_contents(base), _unused_contents(target)
        for name, other in late:
            # If an equal constant still exists and is unused, then the input consumes another constant.
            if base.sources[name] not in target_unused and target.sources[other] not in unused:
                self.add(*self._same_level(name, other))

    def _same_level(self, name: str, target_name: str) -> tuple[str, str]:
        """Return two names of constants; if only one is an alias, replace it by its source."""
        aliases, target_aliases = self.base.aliases, self.target.aliases
        if (name in aliases) == (target_name in target_aliases):
            return name, target_name
        while name in aliases:
            name = aliases[name]
        while target_name in target_aliases:
            target_name = target_aliases[target_name]
        return name, target_name

    def pair_aliases(self, outputs: dict[int, int]) -> None:
        """Pair Identity nodes (and Casts without effect) by their sources; those at paired outputs first."""
        base, target, target_of, base_of = self.base, self.target, self.target_of, self.base_of
        positions, target_positions = _positions(base, ALIAS, target_of), _positions(target, ALIAS, base_of)
        if not positions or not target_positions:
            return
        by_output = {name: position for position, name in enumerate(target.scope.output_names) if name}
        places = {name: outputs.get(position, -1) for position, name in enumerate(base.scope.output_names) if name}
        named = {target.nodes[partner].output[0]: partner for partner in reversed(target_positions)}
        for wants_place, is_same_source in ((True, True), (False, True), (True, False)):
            waiting: dict[tuple[str | None, int | None, int | None], deque[int]] = {}
            for partner in target_positions:
                name = target.nodes[partner].output[0]
                code = target.sources[name]
                target_place = by_output.get(name, -2) if wants_place else None
                if is_same_source or _is_given(code, target):
                    key = target.nodes[partner].op_type, target_place, code if is_same_source else None
                    waiting.setdefault(key, deque()).append(partner)
            for position in positions:
                node = base.nodes[position]
                name = node.output[0]
                code, place = base.sources[name], places.get(name, -1) if wants_place else None
                if target_of[position] >= 0 or place == -1:
                    continue
                if (known := self.values.get(name)) is not None:
                    partner = named.get(known, -1)
                    is_like = partner >= 0 and target.nodes[partner].op_type == node.op_type
                    if is_like and base_of[partner] < 0 and place in (None, by_output.get(known, -2)):
                        target_of[position], base_of[partner] = partner, position
                elif is_same_source or _is_given(code, base):
                    queue = waiting.get((node.op_type, place, self._counterpart(code) if is_same_source else None))
                    while queue and target_of[position] < 0:
                        partner = queue.popleft()
                        # At paired outputs they are counterparts even if they consume different outer values.
                        if base_of[partner] < 0 and self.add(name, target.nodes[partner].output[0]):
                            target_of[position], base_of[partner] = partner, position

    def _counterpart(self, code: int) -> int | None:
        """Return the code of the same value in the target; None if its node has no counterpart."""
        if code < 0:
            return code
        there = self.target_of[code >> SHIFT]
        return there << SHIFT | code & SLOT if there >= 0 else None

    def pair_unused(self) -> None:
        """Pair constants that no paired node consumes, first those of unpaired nodes: by content, then by name.

        A constant of an unpaired node and an unused constant are paired by content alone.
        """
        needed, target_needed = _taken_by_open(self.base, self.target_of), _taken_by_open(self.target, self.base_of)
        names = [name for name in _constant_names(self.base) if name not in self.values]
        target_names = [name for name in _constant_names(self.target) if name not in self.taken]
        for is_taken in (True, False, None):
            left = [name for name in names if name not in self.values and is_taken in (None, name in needed)]
            target_left = [
                name for name in target_names if name not in self.taken and is_taken in (None, name in target_needed)
            ]
            self._pair_by_content(left, target_left)
            left_in_target = set(target_left)
            for name in left if is_taken is not None else ():
                if name in left_in_target:
                    self.add(name, name)

    def _pair_by_content(self, names: list[str], target_names: list[str]) -> None:
        sources, target_sources, in_target = self.base.sources, self.target.sources, set(target_names)
        for name in names:
            if name in in_target and sources[name] == target_sources[name]:
                self.add(name, name)
        by_code: dict[int, list[str]] = {}
        for name in target_names:
            if name not in self.taken:
                by_code.setdefault(target_sources[name], []).append(name)
        for name in names:
            same = by_code.get(sources[name])
            if same and name not in self.values:
                self.add(name, same.pop(0))

    def pair_constant_nodes(self) -> None:
        """Pair the nodes Constant whose outputs are pairs."""
        producers = {self.target.nodes[each].output[0]: each for each in _positions(self.target, CONSTANT)}
        for position in _positions(self.base, CONSTANT):
            there = producers.get(self.values.get(self.base.nodes[position].output[0], ""))
            if there is not None and self.base_of[there] < 0:
                self.target_of[position], self.base_of[there] = there, position


def _input_names(columns: Columns) -> list[str]:
    graph = columns.scope.graph
    return list(graph.input) if isinstance(graph, Function) else [each.name or "" for each in graph.input]


def _unused_contents(columns: Columns) -> set[int]:
    names = set(_constant_names(columns)).difference(columns.names, columns.scope.output_names)
    return {columns.sources[name] for name in names}


def _positions(columns: Columns, kind: int, partners: list[int] | None = None) -> list[int]:
    """Return the nodes of a kind; with `partners`, only the unpaired ones."""
    found: list[int] = (columns.kind == kind).nonzero()[0].tolist()
    return found if partners is None else [each for each in found if partners[each] < 0]


def _is_given(code: int, columns: Columns) -> bool:
    """Whether a value is an input of the graph or of an outer graph."""
    return code < MISSING and code not in columns.constant_codes


def _taken_by_open(columns: Columns, partners: list[int]) -> set[str]:
    return {name for node, partner in zip(columns.nodes, partners, strict=True) if partner < 0 for name in node.input}


def _constant_names(columns: Columns) -> list[str]:
    names = [columns.nodes[position].output[0] for position in _positions(columns, CONSTANT)]
    return [*columns.scope.initializers, *columns.scope.sparse_initializers, *names]

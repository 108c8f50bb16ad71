"""Match the graphs of two models: functions, the main graph, the subgraphs of paired nodes, then training."""

from collections.abc import Callable, Hashable
from itertools import chain

import numpy as np

from onnxjson.diffing.matching.alignment import Alignment, GraphPair, pair_inputs, pair_outputs
from onnxjson.diffing.matching.columns import MISSING, SHIFT, SLOT, Columns, Integers, Interner
from onnxjson.diffing.matching.contents import ContentOf, content, with_defaults
from onnxjson.diffing.matching.cutting import find_cuts
from onnxjson.diffing.matching.labels import number
from onnxjson.diffing.matching.pairing import NodePairing
from onnxjson.diffing.matching.stages import match
from onnxjson.diffing.matching.value_pairs import pair_values
from onnxjson.model.document import Graph, Model, Node
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import OperatorKey, attribute_defaults, function_key, operator_key, plain_domain


def align(
    base: Model,
    target: Model,
    base_content: ContentOf = content,
    target_content: ContentOf = content,
    *,
    names: bool = True,
    progress: list[Integers] | None = None,
) -> Alignment:
    """Pair the graphs, nodes and values of two models by structure.

    Names decide only where structure leaves a choice, and with `names` are evidence for nodes whose neighbors changed;
    the order of nodes in the files does not matter.
    `base_content` and `target_content` return the keys by which constants are compared. The counterparts of the
    nodes of each graph are added to `progress` before they are found.

    Raises:
        ChangedUnderneathError, FileError: weights in a file can no longer be read.
    """
    aligner = _Aligner(_ModelGraphs(base, base_content), _ModelGraphs(target, target_content), names=names)
    aligner.progress = [] if progress is None else progress
    return aligner.align()


class _ModelGraphs:
    def __init__(self, model: Model, content_of: ContentOf) -> None:
        self.model = model
        self.content_of = content_of
        self.index = Index(model)
        self.opsets = {plain_domain(each.domain): each.version for each in model.opset_import}
        self.columns: dict[str, Columns] = {}
        """Columns of the matched graphs, by address."""
        self.graph_keys: dict[str, tuple[Hashable, tuple[str, ...]]] = {}
        """Results of `_Aligner._graph_key`, by address: graphs around a graph need its key again."""
        self.functions: dict[OperatorKey, OperatorKey] = {}
        """Keys of renamed functions -> the common key for both models."""
        self.scopes = self.index.by_address


class _Aligner:
    def __init__(self, base: _ModelGraphs, target: _ModelGraphs, *, names: bool) -> None:
        self.base = base
        self.target = target
        self.names = names
        self.progress: list[Integers] = []
        self.interner = Interner()
        self.pairs: list[GraphPair] = []
        self.degraded: list[str] = []

    def align(self) -> Alignment:
        functions = self._pair_functions()
        for side in (self.base, self.target):
            side.graph_keys.clear()  # calls of renamed functions have other keys now
        for position, place in functions:
            self._match(f"/functions/{position}", f"/functions/{place}")
        self._match("/graph", "/graph")
        ordered = sorted(self.pairs, key=lambda pair: not pair.base.address.startswith("/graph"))
        degraded = None
        if self.degraded:
            graphs = ", ".join(self.degraded[:3])
            degraded = f"not every possible pair was tried in {graphs}: regions there may be larger than the change"
        by_base = {pair.base.address: pair for pair in ordered}
        return Alignment(self.base.index, self.target.index, tuple(ordered), by_base, tuple(functions), degraded)

    def _pair_functions(self) -> list[tuple[int, int]]:
        functions, target_functions = self.base.model.functions, self.target.model.functions
        by_name: dict[OperatorKey, list[int]] = {}
        for place, function in enumerate(target_functions):
            by_name.setdefault(function_key(function), []).append(place)
        pairs = []
        for position, function in enumerate(functions):
            same_name = by_name.get(function_key(function))
            if same_name:
                pairs.append((position, same_name.pop(0)))
        open_there = sorted(chain.from_iterable(by_name.values()))
        taken = {position for position, _ in pairs}
        for position in range(len(functions)):
            if position in taken or not open_there:
                continue
            key = self._body_key(self.base, f"/functions/{position}")
            same = [place for place in open_there if self._body_key(self.target, f"/functions/{place}") == key]
            if same:
                open_there.remove(same[0])
                pairs.append((position, same[0]))
                self.base.functions[function_key(functions[position])] = function_key(target_functions[same[0]])
        return sorted(pairs)

    def _body_key(self, side: _ModelGraphs, address: str) -> Hashable:
        return self._graph_key(side, side.scopes[address])[0]

    def _match(self, base_address: str, target_address: str, parent: GraphPair | None = None) -> None:
        base, target = self.base.scopes.get(base_address), self.target.scopes.get(target_address)
        if base is None or target is None:
            return
        inputs, outputs = pair_inputs(base, target), pair_outputs(base, target)
        base_columns = self._columns(self.base, base, *self._leaves(base, target, inputs, parent, is_base=True), target)
        target_columns = self._columns(
            self.target, target, *self._leaves(base, target, inputs, parent, is_base=False), base
        )
        self.base.columns[base.address], self.target.columns[target.address] = base_columns, target_columns
        self._fill_defaults(base_columns, target_columns)
        pairing = NodePairing(base_columns, target_columns, outputs)
        self.progress.append(pairing.targets)
        match(pairing, names=self.names)
        if pairing.is_exhausted:
            self.degraded.append(base_address)
        values, target_of, base_of = pair_values(pairing, inputs)
        cuts = find_cuts(pairing, names=self.names)
        pair = GraphPair(base, target, target_of, base_of, values, base_columns.aliases, target_columns.aliases, cuts)
        self.pairs.append(pair)
        for scope in base.children:
            if scope.owner is not None and target_of[scope.owner.position] >= 0:
                owner = f"{target.address}/node/{target_of[scope.owner.position]}"
                self._match(scope.address, owner + scope.address[len(scope.owner.address) :], pair)
        if base.kind == "main":  # the graphs of training are in its scope
            for position in range(min(len(self.base.model.training_info), len(self.target.model.training_info))):
                for step in ("initialization", "algorithm"):
                    address = f"/training_info/{position}/{step}"
                    self._match(address, address, pair)

    def _leaves(
        self, base: Scope, target: Scope, inputs: dict[int, int], parent: GraphPair | None, *, is_base: bool
    ) -> tuple[dict[str, int], Callable[[str], int]]:
        """Return for one side the codes of its inputs and a function for codes of values of the outer graph."""
        leaf = self.interner.leaf
        side, scope = (self.base, base) if is_base else (self.target, target)
        partners = {position if is_base else place: position for position, place in inputs.items()}
        leaves = {
            name: leaf(("input", base.address, partners.get(position, ("alone", is_base, position))))
            for name, position in scope.inputs.items()
        }

        def outer(name: str) -> int:
            if parent is None:
                return MISSING
            code = side.columns[(parent.base if is_base else parent.target).address].sources[name]
            if code < 0:
                return code
            partner = code >> SHIFT if is_base else parent.base_of[code >> SHIFT]
            if partner < 0:
                return leaf(("outer", parent.base.address, "alone", code))
            return leaf(("outer", parent.base.address, partner << SHIFT | (code & SLOT)))

        return leaves, outer

    def _columns(
        self,
        side: _ModelGraphs,
        scope: Scope,
        leaves: dict[str, int],
        outer: Callable[[str], int],
        other: Scope | None = None,
    ) -> Columns:
        def subgraphs(node: Node, position: int) -> tuple[Callable[[Graph], Hashable], tuple[str, ...]]:
            captured: dict[str, None] = {}
            keys: dict[int, Hashable] = {}
            for child in scope.bodies[position]:
                keys[id(child.graph)], names = self._graph_key(side, child)
                captured.update(dict.fromkeys(names))
            return (lambda graph: keys[id(graph)]), tuple(captured)

        functions = side.functions

        def called(node: Node) -> OperatorKey:
            key = operator_key(node)
            return functions.get(key, key)

        return Columns(
            scope,
            self.interner,
            side.content_of,
            input_leaves=leaves,
            outer=outer,
            subgraphs=subgraphs,
            operator_key=called,
            other=other,
        )

    def _graph_key(self, side: _ModelGraphs, scope: Scope) -> tuple[Hashable, tuple[str, ...]]:
        """Return a key for the computation of a graph, and the captured names in the order of their use."""
        if scope.address in side.graph_keys:
            return side.graph_keys[scope.address]
        captured: dict[str, int] = {}
        leaf = self.interner.leaf

        def outer(name: str) -> int:
            if scope.outer is None or not name:
                return MISSING
            return leaf(("captured", captured.setdefault(name, len(captured))))

        inputs = {name: leaf(("own input", position)) for name, position in scope.inputs.items()}
        columns = self._columns(side, scope, inputs, outer)
        numbers = number(columns, self.interner.forward)
        codes = columns.output_codes
        outputs = tuple([code if code < 0 else numbers[code >> SHIFT] << SHIFT | (code & SLOT) for code in codes])
        key = ("graph", len(scope.inputs), outputs, tuple(sorted(numbers)))
        side.graph_keys[scope.address] = found = key, tuple(captured)
        return found

    def _fill_defaults(self, base: Columns, target: Columns) -> None:
        """Fill in default attributes for operators whose nodes differ in attributes."""
        base_labels, target_labels = [set(np.unique(each.label[each.label >= 0]).tolist()) for each in (base, target)]
        if base_labels == target_labels:
            return
        labels = self.interner.labels
        keys = list(labels)
        names = list(self.interner.operators)
        differing = {keys[label][0] for label in base_labels ^ target_labels}
        for columns, side, used in ((base, self.base, base_labels), (target, self.target, target_labels)):
            table = np.arange(len(keys), dtype=np.int64)
            for label in used:
                operator, attributes = keys[label]
                if operator in differing:
                    domain, op_type, _ = names[operator]
                    defaults = attribute_defaults(domain, op_type, side.opsets.get(domain))
                    filled = with_defaults(attributes, defaults, side.content_of)
                    table[label] = labels.setdefault((operator, filled), len(labels))
            columns.label = np.where(columns.label >= 0, table[columns.label], columns.label)

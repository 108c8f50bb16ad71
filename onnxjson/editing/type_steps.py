"""Types of one part of a model, node by node: which follow from what an edit changed, and which stay open."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from onnxjson.editing.alike_nodes import Inference
from onnxjson.editing.partial_inference import InferredPart, Sizes, complaint
from onnxjson.editing.type_differences import Difference
from onnxjson.editing.type_relations import (
    dims_of,
    has_sizes,
    is_complete,
    is_same_type,
    may_be_shape,
    refine_type,
    with_shape,
    with_sizes,
)
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import visible
from onnxjson.model.document import Dimension, Node, TensorShape, Type
from onnxjson.model.errors import WorkerError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import OperatorKey, function_key, known_operators, operator_key
from onnxjson.model.types import format_type

_UNUSUAL: Final = 65_537
"""A size that is no limit of a Slice and no factor of a Reshape."""


class Decisions:
    """Decisions about values, by graph."""

    def __init__(self) -> None:
        self.types: defaultdict[Scope, dict[str, Type | None]] = defaultdict(dict)
        """New types; None for unknown ones."""
        self.decided: defaultdict[Scope, set[str]] = defaultdict(set)
        """Values whose types were inferred."""
        self.live: defaultdict[Scope, set[str]] = defaultdict(set)
        """Values whose consumers may have other types."""
        self.conflicts: defaultdict[Scope, dict[str, Type]] = defaultdict(dict)
        """Inferred types that contradict the stated ones."""
        self.causes: dict[tuple[Scope, str], str] = {}
        """The first node after which a type is open, by value."""
        self.calls: set[OperatorKey] = set()
        """Operators that are called with other types."""

    def add(self, others: "Decisions") -> None:
        """Add the decisions about a part."""
        for field in ("types", "decided", "live", "conflicts"):
            for scope, found in getattr(others, field).items():
                getattr(self, field)[scope].update(found)
        self.causes.update(others.causes)
        self.calls |= others.calls


class ModelTypes(Decisions):
    """Decisions about all values of a model so far, and the inference before and after the edit."""

    def __init__(self, difference: Difference, folder: Path | None) -> None:
        super().__init__()
        self.difference = difference
        self.new = difference.new
        self.now = Inference(difference.new, folder)
        self.before = Inference(difference.old, folder)
        self.sizes = Sizes()

    def infer(self, inference: Inference, *arguments: Any) -> InferredPart:
        """Infer types; if the inference of a change crashes, return no types and the crash as a mistake."""
        try:
            return inference.infer(*arguments)
        except WorkerError as error:
            if not self.difference.twins:
                raise
            return InferredPart({}, {"": str(error)})


class Step(Decisions):
    """The nodes of one part, followed in their order."""

    def __init__(
        self,
        model_types: ModelTypes,
        positions: set[int],
        cleared: Mapping[Scope, set[str]],
        opened: Mapping[Scope, Mapping[str, Type]],
    ) -> None:
        super().__init__()
        self._whole = model_types
        self._difference = model_types.difference
        self._positions = sorted(positions)
        self._cleared = cleared
        main = model_types.new.main
        assert main is not None
        self._main = main
        self._names = {scope.address: names for scope, names in cleared.items()}
        types = {scope.address: types for scope, types in opened.items()}
        self._known = (model_types.now, self._positions, model_types.types[main], self._names, types)
        self._found = model_types.infer(*self._known)
        self.opened: defaultdict[Scope, dict[str, Type]] = defaultdict(dict)
        """Inputs of subgraphs whose sizes may be others."""
        self.given: defaultdict[Scope, set[str]] = defaultdict(set)
        """Values whose stated types are right, since nothing else is known."""
        self.is_open = False
        """Whether the inference leaves types open."""
        self._blank: defaultdict[Scope, set[str]] = defaultdict(set)
        self._followed: list[NodeRef] = []
        for position in self._positions:
            self._follow(main, position)

    def _follow(self, scope: Scope, position: int) -> None:
        """Determine the types of the results of a node."""
        node = scope.graph.node[position]
        is_changed = position in self._difference.changed[scope]
        is_live = is_changed or self._is_live(scope, node.input)
        if is_changed and self._consumes_alike(NodeRef(scope, position)):
            is_live = False
        for child in scope.bodies.get(position, ()):
            self._open_inputs(child, scope, node)
            for place in range(len(child.graph.node)):
                self._follow(child, place)
            is_live = is_live or self._is_live(child, child.output_names)
        if not is_live or any([name and scope.producers[name][0] != position for name in node.output]):
            return
        ref = NodeRef(scope, position)
        self._followed.append(ref)
        for name in node.output:
            if name:
                self._decide(ref, name)
        if self._difference.new.model.functions and self._is_live(scope, node.input):
            self.calls.add(operator_key(node))

    def _open_inputs(self, child: Scope, scope: Scope, node: Node) -> None:
        """Open the sizes of inputs of a subgraph that correspond to inputs of its node with other types."""
        for outer, name in zip(node.input, child.inputs, strict=False):
            around, stated = Index.defining_scope(scope, outer), child.types.get(name)
            tensor = stated.tensor_type if stated is not None else None
            twin = self._difference.twins.get(around) if around is not None else None
            if around is None or twin is None or stated is None or tensor is None:
                continue
            known = {**self._whole.types[around], **self.types.get(around, {})}
            before = twin.types.get(self._difference.former_name(around, outer))
            new, dims = known.get(outer, around.types.get(outer)), dims_of(stated)
            if outer not in known and (new is None or before is None or is_same_type(new, before)):
                continue
            ranks = [len(dims_of(each) or ()) for each in (new, before)]
            shape = TensorShape(dim=(Dimension(),) * len(dims)) if dims is not None and ranks[0] == ranks[1] else None
            kind = new.tensor_type.elem_type if new is not None and new.tensor_type is not None else None
            opened = replace(tensor, elem_type=kind or tensor.elem_type, shape=shape)
            self.types[child][name] = self.opened[child][name] = replace(stated, tensor_type=opened)
            self.live[child].add(name)

    def _is_live(self, scope: Scope, names: Iterable[str | None]) -> bool:
        for graph in scope.chain():
            for live in (self.live.get(graph), self._whole.live.get(graph)):
                if live and not live.isdisjoint(names):
                    return True
        return False

    def _decide(self, ref: NodeRef, name: str) -> None:
        scope = ref.scope
        inferred, stated = self._found.types.get(scope.address, {}).get(name), scope.types.get(name)
        self.decided[scope].add(name)
        is_blank = inferred is None or not is_complete(inferred)
        if is_blank:
            self._blank[scope].add(name)
        if stated is not None and inferred is not None and refine_type(stated, inferred) is None:
            self.conflicts[scope][name] = inferred
        if name in self._difference.stated[scope] and stated is not None:
            # The edit states what the inference leaves open, although it knows enough about what the node consumes.
            was = self._was(scope, name) if is_blank and self._is_unknown(ref.node) else None
            if was is not None and format_type(was) == format_type(stated):
                return
            if is_blank and name in self._cleared[scope]:
                is_known = not any([each in self._blank.get(around, ()) for around, each in self._consumed(ref)])
                if is_known:
                    self.given[scope].add(name)
                    self.is_open = True
            inferred = refine_type(stated, inferred) or inferred if inferred is not None else stated
        if stated is not None and self._difference.only_narrows:
            inferred = with_sizes(stated, inferred)
        is_same = self._is_same(scope, name, inferred, stated)
        if not is_same:
            self.types[scope][name] = inferred
            if inferred is None or not is_complete(inferred):
                self.is_open = True
                self.causes[scope, name] = self._cause(ref)
        if not is_same or inferred is None or may_be_shape(inferred) or name in self._difference.stated[scope]:
            self.live[scope].add(name)

    def _is_unknown(self, node: Node) -> bool:
        """Whether onnx infers no types for an operator, whatever it consumes."""
        functions = self._difference.new.model.functions
        return not known_operators(node.domain) and operator_key(node) not in map(function_key, functions)

    def _was(self, scope: Scope, name: str) -> Type | None:
        """Return the type of a value before the edit, stated or inferred."""
        twin = self._difference.twins.get(scope)
        if twin is None:
            return None
        former = self._difference.former_name(scope, name)
        return twin.types.get(former) or self._inferred_before.types.get(twin.address, {}).get(former)

    def _consumes_alike(self, ref: NodeRef) -> bool:
        """Whether a node only consumes other values than before, of the same types, so that its results have theirs."""
        scope, node = ref.scope, ref.node
        twin, twin_scope = self._difference.counterpart(*ref), self._difference.twins.get(scope)
        if twin is None or twin_scope is None or any([each.g is not None or each.graphs for each in node.attribute]):
            return False
        if operator_key(twin.node) != operator_key(node) or twin.node.attribute != node.attribute:
            return False
        if twin.node.output != node.output or len(twin.node.input) != len(node.input) or twin.node.input == node.input:
            return False
        if any([twin_scope.types.get(name) is not scope.types.get(name) for name in node.output]):
            return False
        return all([self._is_alike(scope, *each) for each in zip(twin.node.input, node.input, strict=True)])

    def _is_alike(self, scope: Scope, old: str, new: str) -> bool:
        """Whether a value that a node consumes is the one before, or has its type and decides no shape."""
        around = Index.defining_scope(scope, new)
        twin = self._difference.twins.get(around) if around is not None else None
        if around is None or twin is None or not twin.defines(old):
            return old == new == ""
        if old == new and not self._is_live(around, [new]):
            place = around.producer_position(new)
            if place is not None:
                return place not in self._difference.changed[around]
            return twin.initializer(old) is around.initializer(new) and twin.types.get(old) is around.types.get(new)
        known = {**self._whole.types[around], **self.types.get(around, {})}
        newer = known.get(new, around.types.get(new) or self._found.types.get(around.address, {}).get(new))
        if newer is None or may_be_shape(newer):
            return False
        was = twin.types.get(old) or self._inferred_before.types.get(twin.address, {}).get(old)
        if was is None or not is_same_type(was, newer):
            return False
        model_types = self._whole
        return is_complete(newer) or any([
            _keeps_type(model_types.now, around, old, new, newer),
            _keeps_type(model_types.before, twin, new, old, newer),
        ])  # fmt: skip

    def _consumed(self, ref: NodeRef) -> list[tuple[Scope, str]]:
        found = [(Index.defining_scope(ref.scope, name), name) for name in consumed_names(ref.node)]
        return [(scope, name) for scope, name in found if scope is not None]

    def _cause(self, ref: NodeRef) -> str:
        """Return the first node after which types are open."""
        causes = [self.causes.get(each) or self._whole.causes.get(each) for each in self._consumed(ref)]
        return next(filter(None, causes), f"{visible(ref.node.op_type or '')} @{ref.address}")

    def _is_same(self, scope: Scope, name: str, inferred: Type | None, stated: Type | None) -> bool:
        if stated is not None and inferred is not None:
            if is_complete(inferred) and is_same_type(stated, inferred):
                return True
            if refine_type(stated, inferred) is None:
                return False
        twin = self._difference.twins.get(scope)
        if twin is None:
            return False
        newer = (
            inferred if inferred is not None and has_sizes(inferred) else self._sized.get(scope.address, {}).get(name)
        )
        if newer is None or not is_complete(newer):
            return False
        former = self._sized_before.get(twin.address, {}).get(self._difference.former_name(scope, name))
        return former is not None and is_same_type(former, newer)

    @cached_property
    def _sized(self) -> Mapping[str, Mapping[str, Type]]:
        """Types with sizes instead of names: the inference leaves less of them open."""
        return self._whole.infer(*self._known, self._whole.sizes).types

    @cached_property
    def _before(self) -> tuple[Inference, list[int], dict[str, Type], dict[str, set[str]]]:
        """Inference of the nodes before the edit, and its arguments."""
        difference, there = self._difference, self._difference.twins.get(self._main)
        if there is not None and there.graph.node is self._main.graph.node:
            return self._whole.before, self._positions, {}, self._names
        twins = [difference.counterpart(self._main, each) for each in self._positions]
        positions = [twin.position for twin in twins if twin is not None]
        names = {
            difference.twins[scope].address: {difference.former_name(scope, name) for name in cleared}
            for scope, cleared in self._cleared.items()
            if scope in difference.twins
        }
        return self._whole.before, positions, {}, names

    @cached_property
    def _sized_before(self) -> Mapping[str, Mapping[str, Type]]:
        return self._whole.infer(*self._before, {}, self._whole.sizes).types

    @cached_property
    def _inferred_before(self) -> InferredPart:
        return self._whole.infer(*self._before)

    def changes(self) -> Iterator[tuple[NodeRef, Type | None, Type]]:
        """Yield nodes of the main graph, and the types of their first outputs before and after, where they differ."""
        for ref in self._followed:
            if ref.scope is not self._main or not ref.node.output:
                continue
            name = ref.node.output[0]
            now, was = self.types[self._main].get(name, self._main.types.get(name)), self._was(self._main, name)
            if now is not None and format_type(now) != (was and format_type(was)):
                yield ref, was, now

    def new_complaints(self) -> dict[NodeRef, str]:
        """Return the mistakes at the nodes that were followed, except for those before the edit."""
        alike = self._found.alike
        doubtful = [ref for ref in self._followed if ref.scope is not self._main or ref.position not in alike]
        complaints = {ref: text for ref in doubtful if (text := complaint(self._found, ref)) is not None}
        if (crash := self._found.complaints.get("")) is not None and self._followed:
            complaints[self._followed[0]] = crash
        if not complaints:
            return {}
        before = self._inferred_before
        twins = {ref: self._difference.counterpart(*ref) for ref in complaints}
        return {
            ref: text
            for ref, text in complaints.items()
            if (twin := twins[ref]) is None or (complaint(before, twin) is None and "" not in before.complaints)
        }


def _keeps_type(inference: Inference, scope: Scope, source: str, result: str, known: Type) -> bool:
    """Whether a value of the main graph has the type of another one, from which a node makes it, at any sizes."""
    dims, ref = dims_of(known), scope.producer(result)
    if dims is None or ref is None or source not in ref.node.input or scope is not inference.index.main:
        return False
    shape = TensorShape(dim=tuple([Dimension(dim_value=_UNUSUAL + axis) for axis in range(len(dims))]))
    sized = with_shape(known, shape)
    found = inference.infer([ref.position], {source: sized}, {scope.address: {*ref.node.output}}).types
    inferred = found.get(scope.address, {}).get(result)
    return inferred is not None and is_same_type(sized, inferred)

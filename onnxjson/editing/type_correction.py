"""Correct the stated types that edits make wrong.

Types follow from the changed nodes, constants and inputs: onnx infers the types of the nodes after them, part by part,
as long as types change. A type that is not known to be as before becomes the inferred one; what the inference leaves
open is removed.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from onnxjson.editing.type_differences import Difference, first_followers, results
from onnxjson.editing.type_relations import dims_of, names_of_dims, with_names, with_type
from onnxjson.editing.type_steps import ModelTypes, Step
from onnxjson.model.dataflow import consumes_any
from onnxjson.model.display import visible, whole_texts
from onnxjson.model.document import Dimension, Function, Model, TensorShape, Type, ValueInfo
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import function_key
from onnxjson.model.types import shown_type
from onnxjson.model.walking import Body, rebuild

_SHOWN: Final = 6
_FIRST_PART: Final = 32
_GROWTH: Final = 8
_FORESEEN: Final = 96
"""Nodes after which a type flow ends; more would not be seen."""
_ROUNDS: Final = 4
"""Maximum number of times that a part is inferred."""

TypesByGraph = Mapping[Scope, Mapping[str, Type | None]]


class Corrected(NamedTuple):
    """A model with correct types."""

    model: Model
    notes: tuple[str, ...] = ()
    """Remarks for the user."""
    complaints: Mapping[str, str] = {}
    """New mistakes of types and shapes by address of the node."""


def correct_types(before: Model, index: Index, folder: Path | None) -> Corrected:
    """Return the model of an index, with types corrected where they follow from its difference from `before`.

    Raises:
        EditError, UntrustedError: see `Part.infer`.
    """
    after = index.model
    if after.graph is None or (before.graph is after.graph and before.functions is after.functions):
        return Corrected(after)
    return _Correction(Difference(Index(before), index), folder).correct()


class Flow(NamedTuple):
    """What an edit changes in the nodes after it, by address of the node before the edit."""

    types: Mapping[str, tuple[Type | None, Type]] = {}
    """Types of the first output before and after, where they differ."""
    complaints: Mapping[str, str] = {}
    """New mistakes: nodes that cannot have their inputs."""


def flow_of_types(before: Index, after: Model, folder: Path | None) -> Flow:
    """Return how an edit changes the types of the first nodes of the main graph that it affects.

    Raises:
        EditError, UntrustedError: see `Part.infer`.
    """
    difference = Difference(before, Index(after))
    if difference.new.main not in difference.twins:
        return Flow()
    types: dict[str, tuple[Type | None, Type]] = {}
    complaints: dict[str, str] = {}
    for step in _Correction(difference, folder).follow(_FORESEEN):
        for ref, was, now in step.changes():
            if (twin := difference.counterpart(*ref)) is not None:
                types[twin.address] = was, now
        for ref, text in step.new_complaints().items():
            if (twin := difference.counterpart(*ref)) is not None:
                complaints[twin.address] = text.rpartition("InferenceError] ")[2]
    return Flow(types, complaints)


def _described(ref: NodeRef, text: str) -> str:
    name = f' "{visible(ref.node.name)}"' if ref.node.name else ""
    return f"{visible(ref.node.op_type or '')}{name} ({ref.address}): {text}"


def types_that_follow(index: Index, folder: Path | None) -> tuple[TypesByGraph, Mapping[Scope, Mapping[str, Type]]]:
    """Return the types of values that differ from the stated ones (None: left open), and those that contradict them.

    Raises:
        WorkerError, EditError, UntrustedError: see `Part.infer`.
    """
    correction = _Correction(Difference(Index(Model()), index), folder)
    if index.main is not None:
        correction.settle(index.main, set(range(len(index.main.graph.node))))
    return correction.types, correction.conflicts


class _Correction(ModelTypes):
    """Types of one model that change."""

    def __init__(self, difference: Difference, folder: Path | None) -> None:
        super().__init__(difference, folder)
        self._notes: list[str] = []
        self._dropped = 0

    def follow(self, most: int | None = None) -> Iterator[Step]:
        """Determine the types of the nodes that changed and of those after them; of the first `most`, if that is given.

        Yield each part of them.
        """
        main = self.new.main
        assert main is not None
        around, done = self.difference.around[main], set[int]()
        pending, size = list(around), _FIRST_PART
        while pending and (most is None or len(done) < most):
            positions, pending = first_followers(self.new, pending, size, done)
            yield self.settle(main, positions - done)
            done |= positions
            nodes, live = main.graph.node, self.live[main]
            pending = [
                each for each in pending if each not in done and (each in around or consumes_any(nodes[each], live))
            ]
            size *= _GROWTH

    def correct(self) -> Corrected:
        """Return the model with the types that follow."""
        complaints = {ref: text for step in self.follow() for ref, text in step.new_complaints().items()}
        model = rebuild(self.new, self._restated)
        if self._dropped:
            self._notes.append(f"{self._dropped:,} stale entries of value_info are removed")
        more = len(self._notes) - _SHOWN
        notes = (*self._notes[:_SHOWN], *([f"{more:,} more types changed"] if more > 0 else []))
        return Corrected(model, notes, {ref.address: _described(ref, text) for ref, text in complaints.items()})

    def settle(self, main: Scope, positions: set[int]) -> Step:
        """Determine the types of the values of some nodes of the main graph."""
        cleared = results(self.new, positions)
        opened: Mapping[Scope, Mapping[str, Type]] = {}
        for _ in range(_ROUNDS):
            step = Step(self, positions, cleared, opened)
            evaluated = {scope: (step.decided[scope] & names) - step.given[scope] for scope, names in cleared.items()}
            if (not step.is_open or evaluated == cleared) and step.opened == opened:
                break
            # Types of other values help the inference.
            cleared, opened = evaluated if step.is_open else cleared, step.opened
        self.add(step)
        return step

    def _restated(self, scope: Scope, graph: Body) -> Body:
        root, types = scope.root, self.types[scope]
        if root.kind != "main":
            is_called = isinstance(root.graph, Function) and function_key(root.graph) in self.calls
            is_other = is_called or self.difference.around[root]
            return replace(graph, value_info=()) if is_other and graph.value_info else graph
        if not self.decided[scope] or isinstance(graph, Function):
            return graph

        def better(value: ValueInfo) -> ValueInfo:
            if value.name not in types:
                return value
            found = types[value.name]
            return with_type(value, None if found is None else with_names(value.type, found, self._claimed))

        kept = [each for each in graph.value_info if each.name not in types or types[each.name] is not None]
        infos = [better(each) for each in kept]
        self._dropped += len(graph.value_info) - len(infos)
        outputs = [better(each) for each in graph.output]
        if scope is root:
            outputs = [self._result(scope, stated, each) for stated, each in zip(graph.output, outputs, strict=True)]
            inputs = graph.input
        else:
            inputs = tuple([better(each) for each in graph.input])
        if (inputs, tuple(outputs), tuple(infos)) == (graph.input, graph.output, graph.value_info):
            return graph
        return replace(graph, input=inputs, output=tuple(outputs), value_info=tuple(infos))

    @cached_property
    def _claimed(self) -> set[str]:
        """Names of dimensions of values whose types do not change."""
        claimed: set[str] = set()
        for scope in self.new.scopes:
            for name, stated in scope.types.items():
                if name not in self.types[scope]:
                    claimed |= names_of_dims(stated)
        return claimed

    def _result(self, scope: Scope, stated: ValueInfo, value: ValueInfo) -> ValueInfo:
        """Return an output of the model with a rank if it had one before, and report a change of its type."""
        name, assumed = value.name or "", ""
        tensor = value.type.tensor_type if value.type is not None else None
        dims = dims_of(stated.type)
        if dims is not None and tensor is not None and tensor.shape is None:
            shape = TensorShape(dim=(Dimension(),) * len(dims))
            new = with_names(stated.type, Type(tensor_type=replace(tensor, shape=shape)), self._claimed)
            value = with_type(value, new)
            assumed = "; the rank is assumed to be the same"
        there = self.difference.twins.get(scope)
        old = there.types.get(name) if there is not None and name in there.output_names else stated.type
        if name in self.decided[scope] and old is not None and value.type is not None and old != value.type:
            with whole_texts(False):  # A person reads this, even where a program reads the output.
                now, was = (visible(shown_type(each)) for each in (value.type, old))
            note = f'the output "{visible(name)}" changed from {was} to {now}{assumed}'
            cause = self.causes.get((scope, name))
            self._notes.append(f"{note}; not all of it is known after {cause}" if cause is not None else note)
        return value

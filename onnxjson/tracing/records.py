"""A trace as data: the first model, and for each pass and each of its parts the events and the patch."""

from collections.abc import Iterator

import msgspec

from onnxjson.diffing.events import Event
from onnxjson.document import Model, SparseTensor, Tensor
from onnxjson.elements import element_count
from onnxjson.index import Index
from onnxjson.patching import Patch
from onnxjson.walking import walk


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """A model in numbers."""

    nodes: int
    """In all graphs and functions."""
    parameters: int
    """Elements of initializers."""
    bytes: int
    """Of the serialised model."""
    operators: dict[str, int]
    """Nodes by operator, with its domain where that is not ONNX's; alphabetical."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one part of a pass did, such as one rule; a pass that is not told apart is one part without a name."""

    name: str
    after: Size
    events: tuple[Event, ...]
    incomplete: tuple[str, ...] = ()
    """What could not be compared, for a person."""
    patch: Patch
    """Leads from the model before to the model after."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One pass of a pipeline."""

    name: str
    """As it was spelled."""
    packages: dict[str, str] = {}
    """Versions of the packages that it is made of."""
    seconds: float
    """Of wall time, the start of its process included, what tracing takes not."""
    rounds: int = 1
    """How often it ran; more than once only where it repeats."""
    notes: tuple[str, ...] = ()
    """What it lost or changed besides, and what it had to say; for a person."""
    failure: str | None = None
    """Why it has no result."""
    parts: tuple[Part, ...] = ()
    """In their order; none where not a byte changed."""

    @property
    def is_changed(self) -> bool:
        """Whether a byte changed."""
        return bool(self.parts)


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """What a pipeline did to a model."""

    source: str
    """What the model was called, such as its path."""
    first: Model
    before: Size
    """Of the first model."""
    steps: tuple[Step, ...] = ()
    first_sha256: str
    """Hexadecimal SHA-256 of the first model, as SerializeToString writes it."""
    last_sha256: str
    """The same of the last model."""

    @property
    def after(self) -> Size:
        """Of the last model."""
        return next((part.after for part in reversed(self.parts())), self.before)

    @property
    def last(self) -> Model:
        """The last model: the patches applied to the first one in turn.

        Raises:
            PatchError: they do not fit; the trace was changed.
        """
        model = self.first
        for part in self.parts():
            model = part.patch.apply(model)
        return model

    def parts(self) -> list[Part]:
        """The parts of all passes, in their order."""
        return [part for step in self.steps for part in step.parts]

    def models(self) -> Iterator[Model]:
        """The first model, then the model after each part.

        Raises:
            PatchError: the patches do not fit; the trace was changed.
        """
        model = self.first
        yield model
        for part in self.parts():
            model = part.patch.apply(model)
            yield model


def size_of(model: Model, length: int) -> Size:
    """A model of `length` serialised bytes in numbers."""
    index = Index(model)
    operators = index.operator_counts()
    parameters = 0
    for scope in index.scopes:
        initializers: tuple[Tensor, ...] = getattr(scope.graph, "initializer", ())
        sparse: tuple[SparseTensor, ...] = getattr(scope.graph, "sparse_initializer", ())
        parameters += sum([element_count(tensor.dims) for tensor in initializers])
        parameters += sum([element_count(tensor.dims) for each in sparse for tensor in walk(each, Tensor)])
    return Size(nodes=operators.total(), parameters=parameters, bytes=length, operators=dict(sorted(operators.items())))

"""A trace as data: the first model, then events and a patch for each part of each pass."""

from collections.abc import Iterator

import msgspec

from onnxjson.diffing.events import Event
from onnxjson.model.document import Model, SparseTensor, Tensor
from onnxjson.model.elements import element_count
from onnxjson.model.index import Index
from onnxjson.model.walking import tensors_of
from onnxjson.patching import Patch


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Size of a model in numbers."""

    nodes: int
    """Nodes in all graphs and functions."""
    parameters: int
    """Elements of initializers."""
    bytes: int
    """Size of the serialized model."""
    operators: dict[str, int]
    """Nodes by operator, prefixed by its domain unless that is ai.onnx; alphabetical."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Changes by one part of a pass, such as a rule; a pass without separate parts is one part without a name."""

    name: str
    after: Size
    events: tuple[Event, ...]
    incomplete: tuple[str, ...] = ()
    """What could not be compared, as messages."""
    patch: Patch
    """Patch from the model before to the model after."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One pass of a pipeline."""

    name: str
    """The pass as given on the command line."""
    packages: dict[str, str] = {}
    """Versions of the packages that implement it."""
    seconds: float
    """Wall time, including the start of its process, excluding tracing."""
    rounds: int = 1
    """Number of times it ran; more than 1 only with ``*``."""
    notes: tuple[str, ...] = ()
    """Side effects, such as lost metadata, and messages of the pass."""
    failure: str | None = None
    """Why it failed; None if it did not."""
    parts: tuple[Part, ...] = ()
    """Parts in order; empty if no byte changed."""

    @property
    def is_changed(self) -> bool:
        """Whether a byte changed."""
        return bool(self.parts)


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a pipeline that ran on a model."""

    source: str
    """Name of the model, such as its path."""
    first: Model
    before: Size
    """Size of the first model."""
    steps: tuple[Step, ...] = ()
    first_sha256: str
    """SHA-256 of the first model as SerializeToString writes it, hexadecimal."""
    last_sha256: str
    """The same of the last model."""

    @property
    def after(self) -> Size:
        """Size of the last model."""
        return next((part.after for part in reversed(self.parts())), self.before)

    @property
    def last(self) -> Model:
        """Last model: all patches applied to the first model in order.

        Raises:
            PatchError: they do not fit; the trace was changed.
        """
        model = self.first
        for part in self.parts():
            model = part.patch.apply(model)
        return model

    def parts(self) -> list[Part]:
        """Return the parts of all passes, in order."""
        return [part for step in self.steps for part in step.parts]

    def models(self) -> Iterator[Model]:
        """Yield the first model, then the model after each part.

        Raises:
            PatchError: the patches do not fit; the trace was changed.
        """
        model = self.first
        yield model
        for part in self.parts():
            model = part.patch.apply(model)
            yield model


def size_of(model: Model, length: int) -> Size:
    """Return the size of a model that has `length` serialized bytes."""
    index = Index(model)
    operators = index.operator_counts()
    parameters = 0
    for scope in index.scopes:
        initializers: tuple[Tensor, ...] = getattr(scope.graph, "initializer", ())
        sparse: tuple[SparseTensor, ...] = getattr(scope.graph, "sparse_initializer", ())
        parameters += sum([element_count(tensor.dims) for tensor in initializers])
        parameters += sum([element_count(tensor.dims) for each in sparse for tensor in tensors_of(each)])
    return Size(nodes=operators.total(), parameters=parameters, bytes=length, operators=dict(sorted(operators.items())))

"""The edit set-ir-version, and what of a model needs which version of ONNX's format."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.opsets import domain_text
from onnxjson.editing.workspace import Workspace
from onnxjson.model import document as d
from onnxjson.model.display import listed
from onnxjson.model.dtypes import DTYPES
from onnxjson.model.errors import EditError
from onnxjson.model.operators import ir_version_for, plain_domain
from onnxjson.model.walking import walk

_NEWER_FIELDS: Final[tuple[tuple[int, type[d.Record], str], ...]] = (
    (5, d.Graph, "quantization_annotation"),
    (6, d.Graph, "sparse_initializer"),
    (6, d.Attribute, "sparse_tensor"),
    (6, d.Attribute, "sparse_tensors"),
    (7, d.Model, "training_info"),
    (8, d.Model, "functions"),
    (8, d.Type, "optional_type"),
    (8, d.Type, "sparse_tensor_type"),
    (9, d.Function, "attribute_proto"),
    *((10, record, "metadata_props") for record in (d.Graph, d.Node, d.Function, d.Tensor, d.ValueInfo)),
    *((10, record, "overload") for record in (d.Node, d.Function)),
    (10, d.Function, "value_info"),
    (11, d.Model, "configuration"),
    (11, d.Node, "device_configurations"),
)
"""Fields of records with the version that introduced them (comments of onnx.proto)."""

_APART: Final = 4
"""The version from which an initializer need not be an input."""

_SHOWN: Final = 6


def needs_of(model: d.Model) -> list[tuple[int, str]]:
    """Return what of a model needs which version, the highest first, such as ``(10, "uint4 (2)")``."""
    counts = Counter(_needs(model))
    found = [(version, text if number == 1 else f"{text} ({number:,})") for (version, text), number in counts.items()]
    return sorted(found, key=lambda each: -each[0])


def _needs(model: d.Model) -> Iterator[tuple[int, str]]:
    for each in model.opset_import:
        if each.version is not None and (version := ir_version_for(each.domain or "", each.version)) > 1:
            yield version, f"version {each.version} of {domain_text(plain_domain(each.domain))}"
    for version, kind, field in _NEWER_FIELDS:
        for record in walk(model, kind):
            if getattr(record, field):
                yield version, f"{field} of a {kind.__name__}"
    numbers = [each.data_type for each in walk(model, d.Tensor)]
    numbers += [each.elem_type for each in walk(model, d.TensorType)]
    numbers += [each.elem_type for each in walk(model, d.SparseTensorType)]
    for number in numbers:
        dtype = DTYPES.get(number or 0)
        if dtype is not None and dtype.ir_version > 1:
            yield dtype.ir_version, dtype.name
    for graph in walk(model, d.Graph):
        inputs = {each.name for each in graph.input}
        for tensor in graph.initializer:
            if tensor.name not in inputs:
                yield _APART, "an initializer that is not an input"


class SetIrVersion(Edit, frozen=True, kw_only=True, eq=False, tag="set-ir-version"):
    """Set the version of ONNX's format (ir_version); nothing is converted.

    A version that is too old for something in the model is refused, with a list of what needs a newer one.
    """

    reads_shapes = False
    words: ClassVar = ("version",)
    examples: ClassVar = ('{"edit": "set-ir-version", "version": 10}',)

    version: Annotated[int, Meta(ge=1, description="The new version.")]
    anyway: Annotated[bool, Meta(description="Set a version that is too old, and only report what needs more.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        old = workspace.model.ir_version
        if old == self.version:
            return Outcome(1, (f"ir_version is {old} already",))
        needs = [(version, text) for version, text in needs_of(workspace.model) if version > self.version]
        notes = [f"ir_version: {old or 'nothing'} became {self.version}"]
        if needs and (old is None or self.version < old):
            shown = listed([f"{text} needs {version}" for version, text in needs], _SHOWN)
            problem = f"ir_version {self.version} is too old: {shown}"
            if not self.anyway:
                raise EditError(f"{problem}; the oldest possible is {needs[0][0]}")
            notes.append(problem)
        workspace.replace_model(ir_version=self.version)
        return Outcome(1, tuple(notes))

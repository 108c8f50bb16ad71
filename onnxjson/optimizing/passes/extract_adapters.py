"""extract-adapters: turn the weights of a low-rank adapter into inputs, so that one model serves many adapters.

It does the same as Olive's ExtractAdapters with ``make_inputs`` for weights that are not quantized, without Olive.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.editing.initializers import input_for
from onnxjson.editing.parameters import Role
from onnxjson.model.display import listed, visible
from onnxjson.model.errors import EditError
from onnxjson.optimizing.passes.declaration import Changed, Pass, require_new
from onnxjson.storage.external_files import NewFile

if TYPE_CHECKING:
    from onnxjson.model.document import Graph, Model, Tensor

Kind = Literal["lora", "dora", "loha"]

_PATTERNS: Final[dict[Kind, str]] = {
    "lora": r"(^|[./_])lora_[AB]([./]|$)",
    "dora": r"(^|[./_])(lora_[AB]|lora_magnitude_vector|dora_M)([./]|$)",
    "loha": r"(^|[./_])hada_w[12]_[ab]([./]|$)",
}
"""Names of adapter weights in peft; exporters keep them in the names of initializers or of nodes."""


class ExtractAdapters(Pass, frozen=True, kw_only=True, eq=False, tag="extract-adapters"):
    """Turn the weights of a LoRA, DoRA or LoHa adapter into inputs; their values can be saved.

    Weights of an adapter are found by their name, or by the name of a node that consumes them.
    """

    is_guarded: ClassVar = False

    kind: Annotated[Kind, Meta(description="Kind of adapter.")] = "lora"
    pattern: Annotated[
        str | None,
        Meta(min_length=1, description="Select weights or nodes by this regular expression instead of by kind."),
    ] = None
    keep_defaults: Annotated[bool, Meta(description="Keep the values as defaults of the inputs.")] = False
    save: Annotated[
        str | None, Role("file"), Meta(min_length=1, description="Save the values to this new .npz file.")
    ] = None

    def change(self, model: "Model", model_folder: Path | None) -> Changed:
        graph = model.graph
        found = [] if graph is None else self._weights(graph)
        if graph is None or not found:
            raise EditError(f"no weight belongs to a {self.kind} adapter; select weights with pattern=REGEX")
        saved = () if self.save is None else (_archive(found, Path(self.save), model_folder),)
        names = {tensor.name for tensor in found}
        inputs = {value.name for value in graph.input}
        removed = set() if self.keep_defaults else names
        made = replace(
            graph,
            input=(*graph.input, *[input_for(tensor) for tensor in found if tensor.name not in inputs]),
            initializer=tuple([tensor for tensor in graph.initializer if tensor.name not in removed]),
            value_info=tuple([value for value in graph.value_info if value.name not in names]),
        )
        names_text = listed([visible(tensor.name or "") for tensor in found])
        note = (
            f"{len(found):,} {'weights are now inputs' if len(found) > 1 else 'weight is now an input'}: {names_text}"
        )
        return Changed(replace(model, graph=made), (note,), saved)

    def _weights(self, graph: "Graph") -> "list[Tensor]":
        try:
            pattern = re.compile(_PATTERNS[self.kind] if self.pattern is None else self.pattern)
        except re.error as error:
            raise EditError(f"pattern is not a valid regular expression: {error}") from error
        consumed = {name for node in graph.node if pattern.search(node.name or "") for name in node.input}
        return [
            tensor
            for tensor in graph.initializer
            if tensor.name and (tensor.name in consumed or pattern.search(tensor.name))
        ]


def _archive(tensors: "list[Tensor]", path: Path, folder: Path | None) -> NewFile:
    from onnxjson.storage.constant_reading import with_elements
    from onnxjson.storage.constant_writing import write_npz
    from onnxjson.storage.external import Resolver

    if path.suffix != ".npz":
        raise EditError(f'"{visible(str(path))}" does not end in .npz')
    require_new(path)
    resolver = Resolver(folder or Path())
    whole = [with_elements(tensor, resolver) for tensor in tensors]
    return NewFile(path, lambda sink: write_npz(whole, sink))

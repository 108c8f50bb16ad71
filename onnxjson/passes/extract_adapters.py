"""extract-adapters: the weights of a low-rank adapter as inputs, so that one model serves many adapters.

What Olive's ExtractAdapters does with ``make_inputs``, for weights that were not quantized; it needs nothing of Olive.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Self

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.display import visible
from onnxjson.edits.initializers import input_for
from onnxjson.edits.parameters import Role
from onnxjson.errors import EditError
from onnxjson.passes.declaration import Changed, Pass
from onnxjson.passes.known_names import some
from onnxjson.passes.new_files import NewFile, require_new

if TYPE_CHECKING:
    from onnxjson.document import Graph, Model, Tensor

Kind = Literal["lora", "dora", "loha"]

_PATTERNS: Final[dict[Kind, str]] = {
    "lora": r"(^|[./_])lora_[AB]([./]|$)",
    "dora": r"(^|[./_])(lora_[AB]|lora_magnitude_vector|dora_M)([./]|$)",
    "loha": r"(^|[./_])hada_w[12]_[ab]([./]|$)",
}
"""What peft calls the weights of an adapter; exporters keep that in the names of initializers or of nodes."""


class ExtractAdapters(Pass, frozen=True, kw_only=True, eq=False, tag="extract-adapters"):
    """Make inputs of the weights of a LoRA, DoRA or LoHa adapter; their values can be saved.

    A weight is one of an adapter if its name says so, or the name of a node that takes it.
    """

    is_guarded: ClassVar = False

    kind: Annotated[Kind, Meta(description="The kind of the adapter.")] = "lora"
    pattern: Annotated[
        str | None, Meta(min_length=1, description="The weights or nodes by a regular expression, whatever the kind.")
    ] = None
    keep_defaults: Annotated[
        bool, Meta(description="The values stay as defaults of the inputs, which then need not be given.")
    ] = False
    save: Annotated[
        str | None, Role("file"), Meta(min_length=1, description="The new .npz file that gets the values.")
    ] = None

    def within(self, folder: Path) -> Self:
        """See `Pass.within`."""
        return self if self.save is None else replace(self, save=str(folder / self.save))

    def change(self, model: "Model", model_folder: Path | None) -> Changed:
        """See `Pass.change`.

        Raises:
            EditError: no weight is one of an adapter, or the file for the values exists.
            MissingInputError, UntrustedError, FileError: values of weights cannot be read.
        """
        graph = model.graph
        found = [] if graph is None else self._weights(graph)
        if graph is None or not found:
            raise EditError(f"no weight is one of a {self.kind} adapter; name them with pattern=REGEX")
        saved = () if self.save is None else (_archive(found, Path(self.save), model_folder),)
        names = {tensor.name for tensor in found}
        inputs = {value.name for value in graph.input}
        gone = set() if self.keep_defaults else names
        made = replace(
            graph,
            input=(*graph.input, *[input_for(tensor) for tensor in found if tensor.name not in inputs]),
            initializer=tuple([tensor for tensor in graph.initializer if tensor.name not in gone]),
            value_info=tuple([value for value in graph.value_info if value.name not in names]),
        )
        said = some([visible(tensor.name or "") for tensor in found], 3)
        note = f"{len(found):,} {'weights are inputs' if len(found) > 1 else 'weight is an input'} now: {said}"
        return Changed(replace(model, graph=made), (note,), saved)

    def _weights(self, graph: "Graph") -> "list[Tensor]":
        try:
            pattern = re.compile(_PATTERNS[self.kind] if self.pattern is None else self.pattern)
        except re.error as error:
            raise EditError(f"pattern is no regular expression: {error}") from error
        taken = {name for node in graph.node if pattern.search(node.name or "") for name in node.input}
        return [
            tensor
            for tensor in graph.initializer
            if tensor.name and (tensor.name in taken or pattern.search(tensor.name))
        ]


def _archive(tensors: "list[Tensor]", path: Path, folder: Path | None) -> NewFile:
    from onnxjson.constants.archives import write_npz
    from onnxjson.constants.stored import with_elements
    from onnxjson.external import Resolver

    if path.suffix != ".npz":
        raise EditError(f'"{visible(str(path))}" is no name of a .npz file')
    require_new(path)
    resolver = Resolver(folder or Path())
    whole = [with_elements(tensor, resolver) for tensor in tensors]
    return NewFile(path, lambda sink: write_npz(whole, sink))

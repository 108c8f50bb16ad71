"""fix-dims: onnxruntime's tool that gives dimensions a number, as accelerators for phones want them."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta, field

from onnxjson.edits.values import ValueMistakeError
from onnxjson.passes.declaration import Pass, option_error
from onnxjson.passes.known_names import require

if TYPE_CHECKING:
    from onnx import ModelProto


class FixDims(Pass, frozen=True, kw_only=True, eq=False, tag="fix-dims"):
    """Give dimensions that have a name, or the shapes of inputs, numbers; outputs follow as far as they can.

    The edits set-dim and set-batch-size follow a dimension through the nodes, too.
    """

    packages: ClassVar = ("onnxruntime",)

    dims: Annotated[dict[str, int], Meta(description="Names of dimensions and their numbers: dims={N: 1}.")] = field(
        default_factory=dict
    )
    shapes: Annotated[
        dict[str, tuple[int, ...]], Meta(description="Inputs and their shapes: shapes={image: [1, 3, 224, 224]}.")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.dims and not self.shapes:
            raise option_error(self, "dims", ValueMistakeError("nothing", "a dimension or, in shapes, an input"))
        _check_sizes(self, "dims", self.dims.values())
        _check_sizes(self, "shapes", itertools.chain.from_iterable(self.shapes.values()))

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`.

        Raises:
            ValueError: there is no such dimension or input, or a shape does not fit.
        """
        from onnx import ModelProto
        from onnxruntime.tools import onnx_model_utils

        proto = ModelProto.FromString(model)
        require(self.dims, _dimensions(proto), "dimension")
        require(self.shapes, [value.name for value in proto.graph.input], "input")
        for name, size in self.dims.items():
            onnx_model_utils.make_dim_param_fixed(proto.graph, name, size)
        for name, shape in self.shapes.items():
            onnx_model_utils.make_input_shape_fixed(proto.graph, name, list(shape))
        onnx_model_utils.fix_output_shapes(proto)
        return bytes(proto.SerializeToString())


def _check_sizes(subject: FixDims, option: str, sizes: Iterable[int]) -> None:
    for size in sizes:
        if size < 1:
            raise option_error(subject, option, ValueMistakeError(str(size), "a number from 1"))


def _dimensions(model: "ModelProto") -> list[str]:
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    names = [dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim]
    return list(dict.fromkeys(filter(None, names)))

"""symbolic-shapes, fix-dims and qnn-preprocess: tools of onnxruntime for shapes and for accelerators."""

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import msgspec
from msgspec import Meta, field

from onnxjson.editing.declaration import parameter_error
from onnxjson.editing.values import ValueMistakeError
from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.model_names import require

if TYPE_CHECKING:
    from onnx import ModelProto


class SymbolicShapes(Pass, frozen=True, kw_only=True, eq=False, tag="symbolic-shapes"):
    """Infer shapes as expressions of named dimensions, such as 2*N, also for operators of onnxruntime.

    It requires opset 7 or later, and fails if it cannot infer the shape of every value.
    """

    packages: ClassVar = ("onnxruntime", "sympy")
    extra: ClassVar = "passes"
    texts: ClassVar = "moved"

    auto_merge: Annotated[bool, Meta(description="Merge dimensions that must be equal.")] = False
    guess_output_rank: Annotated[
        bool, Meta(description="Assume that outputs of unknown operators have the shape of the first input.")
    ] = False
    int_max: Annotated[int, Meta(ge=1, description="Value that counts as unbounded, such as the end of a Slice.")] = (
        2**31 - 1
    )

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        from onnx import ModelProto
        from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

        made = SymbolicShapeInference.infer_shapes(
            ModelProto.FromString(model),
            int_max=self.int_max,
            auto_merge=self.auto_merge,
            guess_output_rank=self.guess_output_rank,
        )
        if made is None:
            raise ValueError("it requires opset 7 or later")
        return bytes(made.SerializeToString())


class FixDims(Pass, frozen=True, kw_only=True, eq=False, tag="fix-dims"):
    """Set named dimensions, or shapes of inputs, to numbers; shapes of outputs follow where they can be inferred.

    The edits set-dim and set-batch-size also follow a dimension through the nodes.
    """

    packages: ClassVar = ("onnxruntime",)
    texts: ClassVar = "moved"

    dims: Annotated[dict[str, int], Meta(description="Named dimensions and their sizes: dims={N: 1}.")] = field(
        default_factory=dict
    )
    shapes: Annotated[
        dict[str, tuple[int, ...]], Meta(description="Inputs and their shapes: shapes={image: [1, 3, 224, 224]}.")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.dims and not self.shapes:
            raise parameter_error(self, "dims", ValueMistakeError("nothing", "a dimension or, in shapes, an input"))
        _check_sizes(self, "dims", self.dims.values())
        _check_sizes(self, "shapes", itertools.chain.from_iterable(self.shapes.values()))

    def with_dimensions(self, names: Mapping[str, str]) -> Self:
        """See `Pass.with_dimensions`."""
        return msgspec.structs.replace(self, dims={names.get(name, name): size for name, size in self.dims.items()})

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`.

        Raises:
            ValueError: a dimension or input does not exist, or a shape does not fit.
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
            raise parameter_error(subject, option, ValueMistakeError(str(size), "a number from 1"))


def _dimensions(model: "ModelProto") -> list[str]:
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    names = [dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim]
    return list(dict.fromkeys(filter(None, names)))


class QnnPreprocess(Pass, frozen=True, kw_only=True, eq=False, tag="qnn-preprocess"):
    """Fuse arithmetic into Gelu, LpNormalization and SpaceToDepth, and name all nodes, for quantization with QNN.

    It runs the basic level of onnxruntime first. If nothing applies, the model is not changed.
    """

    packages: ClassVar = ("onnxruntime",)

    fuse_layernorm: Annotated[bool, Meta(description="Also fuse LayerNormalization, from opset 17.")] = False
    inputs_channel_last: Annotated[
        tuple[str, ...], Meta(description="Inputs to convert to channels-last, with a Transpose after each.")
    ] = ()
    outputs_channel_last: Annotated[
        tuple[str, ...], Meta(description="Outputs to convert to channels-last, with a Transpose before each.")
    ] = ()
    exclude_initializers_from_inputs: Annotated[bool, Meta(description="Remove inputs that have an initializer.")] = (
        False
    )
    shapes: Annotated[
        dict[str, tuple[int, ...]], Meta(description="Inputs and shapes: shapes={image: [1, 3, 224, 224]}.")
    ] = field(default_factory=dict)

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        from onnx import ModelProto
        from onnxruntime.quantization.execution_providers.qnn import qnn_preprocess_model

        place = folder / "preprocessed.onnx"
        shapes = [(name, ",".join(map(str, shape))) for name, shape in self.shapes.items()]
        is_changed = qnn_preprocess_model(
            ModelProto.FromString(model),
            place,
            exclude_initializer_from_input=self.exclude_initializers_from_inputs,
            fuse_layernorm=self.fuse_layernorm,
            inputs_to_make_channel_last=list(self.inputs_channel_last) or None,
            outputs_to_make_channel_last=list(self.outputs_channel_last) or None,
            dynamic_input_shapes=shapes or None,
        )
        return place.read_bytes() if is_changed else model

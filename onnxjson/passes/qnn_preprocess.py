"""qnn-preprocess: what onnxruntime does to a model before it is quantized for Qualcomm's accelerators."""

from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta, field

from onnxjson.passes.declaration import Pass


class QnnPreprocess(Pass, frozen=True, kw_only=True, eq=False, tag="qnn-preprocess"):
    """Make Gelu, LpNormalization and SpaceToDepth of their arithmetic, and name all nodes, for quantization with QNN.

    It runs the basic level of onnxruntime first. Where it has nothing to do, the model stays as it is.
    """

    packages: ClassVar = ("onnxruntime",)

    fuse_layernorm: Annotated[bool, Meta(description="Make LayerNormalization, too, from opset 17.")] = False
    inputs_channel_last: Annotated[
        tuple[str, ...], Meta(description="Inputs that get their channels last, with a Transpose after them.")
    ] = ()
    outputs_channel_last: Annotated[
        tuple[str, ...], Meta(description="Outputs that get their channels last, with a Transpose before them.")
    ] = ()
    exclude_initializers_from_inputs: Annotated[
        bool, Meta(description="Inputs that have an initializer are no inputs any more.")
    ] = False
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

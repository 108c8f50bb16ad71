"""onnxscript: its optimizer, and the rules of its rewriter, one by one or as its default set.

https://github.com/microsoft/onnxscript; the names of the rules are those of version 0.7.2 without ``_rule``.
"""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from msgspec import Meta

from onnxjson.passes.declaration import Pass
from onnxjson.passes.onnxscript_parts import watched
from onnxjson.passes.stages import PartStage

if TYPE_CHECKING:
    from onnx import ModelProto

DEFAULT_RULES: Final = "default_rules"
ONNXRUNTIME: Final = "for_onnxruntime"

PARTS: Final[dict[str, str]] = {
    DEFAULT_RULES: "The rules that the rewriter applies by itself.",
    ONNXRUNTIME: "Its optimizer for onnxruntime: attention, normalization and the like become operators of its own.",
    "add_0": "Removes adding 0.",
    "affine_conv_fusion": "Makes Mul and Add before a Conv part of it.",
    "cast_cast": "Makes one Cast of two.",
    "cast_constant_of_shape": "Makes a Cast after ConstantOfShape part of it.",
    "cast_constant_of_shape_without_value": "The same where ConstantOfShape says no value.",
    "collapse_slice": "Removes a Slice of all there is.",
    "collapse_slice2": "Removes a Slice whose result has the shape of its input.",
    "conv_affine_fusion": "Makes Mul and Add after a Conv part of it.",
    "div_by_1": "Removes dividing by 1.",
    "dropout_inference": "Removes Dropout that is not training.",
    "dropout_zero": "Removes Dropout with ratio 0.",
    "expand_before_binary_op": "Removes an Expand that the operator after it makes of itself.",
    "flatten_to_reshape": "Makes Reshape of Flatten.",
    "fuse_batchnorm_into_conv": "Makes a BatchNormalization part of the Conv before it.",
    "fuse_batchnorm_into_conv_transpose": "Makes a BatchNormalization part of the ConvTranspose before it.",
    "fuse_batchnorm_into_gemm": "Makes a BatchNormalization part of the Gemm before it.",
    "fuse_hardswish": "Makes HardSwish and HardSigmoid of their arithmetic.",
    "fuse_pad_into_conv": "Makes a Pad the padding of the Conv after it.",
    "fuse_pad_into_conv_integer": "Makes a Pad the padding of the ConvInteger after it.",
    "gemm_to_matmul_add": "Makes MatMul and Add of Gemm.",
    "gqa": "Makes an Attention with grouped heads of its operators.",
    "layer_normalization": "Makes LayerNormalization of its arithmetic.",
    "matmul_add_to_gemm": "Makes Gemm of MatMul and Add.",
    "materialize_reshape_shape": "Makes a constant of the shape that a Reshape takes.",
    "max_max": "Makes one Max of two.",
    "max_min": "Makes Clip of Max and Min.",
    "min_max": "Makes Clip of Min and Max.",
    "min_min": "Makes one Min of two.",
    "mul_by_1": "Removes multiplying by 1.",
    "no_op_cast": "Removes a Cast to the type that is there.",
    "no_op_dynamic_scatter_nd": "Removes a ScatterND of everything, whose indices are computed.",
    "no_op_expand": "Removes an Expand to the shape that is there.",
    "no_op_static_scatter_nd": "Removes a ScatterND of everything, whose indices are constant.",
    "no_op_transpose": "Removes a Transpose that keeps the order.",
    "normalize_pad_format_conv": "Makes pads of the auto_pad of a Conv.",
    "normalize_pad_format_conv_integer": "Makes pads of the auto_pad of a ConvInteger.",
    "one_reshape_matmul_reshape": "Removes the Reshape around a MatMul that broadcasts anyway.",
    "partial_rotary_embedding": "Makes RotaryEmbedding of a part of each head of its arithmetic.",
    "remove_optional_bias_from_conv": "Removes the bias of a Conv that is zero.",
    "remove_optional_bias_from_conv_transpose": "Removes the bias of a ConvTranspose that is zero.",
    "remove_optional_bias_from_gemm": "Removes the bias of a Gemm that is zero.",
    "remove_optional_bias_from_qlinear_conv": "Removes the bias of a QLinearConv that is zero.",
    "reshape_reshape": "Makes one Reshape of two.",
    "rms_normalization": "Makes RMSNormalization of its arithmetic.",
    "rotary_embedding": "Makes RotaryEmbedding of its arithmetic.",
    "slice_split": "Makes Split of two Slices that halve a value.",
    "squeeze_reshape_1d": "Removes a Squeeze and a Reshape that give back what there was.",
    "sub_0": "Removes subtracting 0.",
    "successive_clip": "Makes one Clip of two.",
    "successive_clip_relu": "Makes Clip of Clip and Relu.",
    "successive_relu": "Makes one Relu of two.",
    "successive_relu_clip": "Makes Clip of Relu and Clip.",
    "transpose_a_matmul_add_to_gemm": "Makes Gemm of MatMul and Add whose first input is transposed.",
    "transpose_ab_matmul_add_to_gemm": "Makes Gemm of MatMul and Add whose inputs are both transposed.",
    "transpose_b_matmul_add_to_gemm": "Makes Gemm of MatMul and Add whose second input is transposed.",
    "transpose_transpose": "Makes one Transpose of two.",
    "two_reshapes_matmul_reshape": "Removes the Reshapes around a MatMul that broadcasts anyway.",
    "unsqueeze_unsqueeze": "Makes one Unsqueeze of two.",
}
"""What its rewriter does, by name."""

_COMMON: Final = "onnxscript.rewriter.rules.common"
_FUSIONS: Final = {
    "gqa": ("_gqa", "gqa_rules"),
    "layer_normalization": ("_layer_norm", "layer_normalization_rules"),
    "partial_rotary_embedding": ("_rotary_embedding", "partial_embedding_rules"),
    "rms_normalization": ("_rms_normalization", "rms_normalization_rules"),
    "rotary_embedding": ("_rotary_embedding", "rotary_embedding_rules"),
}
"""Rules that stand in modules of their own."""


class Onnxscript(Pass, frozen=True, kw_only=True, eq=False, tag="onnxscript"):
    """Run the optimizer of onnxscript, the rules of its rewriter that are listed, or one, as onnxscript:RULE."""

    packages: ClassVar = ("onnxscript",)
    extra: ClassVar = "passes"
    part: ClassVar = "rules"
    parts: ClassVar = PARTS

    rules: Annotated[
        tuple[str, ...], Meta(description="These rules of the rewriter in this order instead of the optimizer.")
    ] = ()
    iterations: Annotated[int, Meta(ge=1, description="How often the optimizer goes over the model at most.")] = 2
    infer_shapes: Annotated[bool, Meta(description="Let the optimizer infer shapes, node by node.")] = True
    inline: Annotated[bool, Meta(description="Let the optimizer put the bodies of functions in place first.")] = True
    input_size_limit: Annotated[
        int, Meta(ge=0, description="Elements of an input from which nothing is computed of it.")
    ] = 8192
    output_size_limit: Annotated[
        int, Meta(ge=0, description="Elements of a result from which it does not become a constant.")
    ] = 262144

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        import onnx

        made = onnx.ModelProto.FromString(model)
        for rule in self.rules:
            made = _rewritten(made, rule)
        if not self.rules:
            from onnxscript import optimizer

            made = optimizer.optimize(
                made,
                num_iterations=self.iterations,
                onnx_shape_inference=self.infer_shapes,
                input_size_limit=self.input_size_limit,
                output_size_limit=self.output_size_limit,
                inline=self.inline,
            )
        return bytes(made.SerializeToString())

    def stages(self, model: bytes, folder: Path) -> Iterable[PartStage]:
        """See `Pass.stages`: each pass of the optimizer, and each rule of the rewriter."""
        found: list[PartStage] = []
        with watched(model, found.append):
            last = self.run(model, folder)
        if not found or found[-1].model != last:
            found.append(PartStage(self.rules[-1] if self.rules else "onnxscript", last))
        return found


def _rewritten(model: "ModelProto", rule: str) -> Any:
    from onnxscript import rewriter

    if rule == DEFAULT_RULES:
        return rewriter.rewrite(model)
    if rule == ONNXRUNTIME:
        import onnx_ir
        from onnxscript.rewriter import ort_fusions

        made, _ = ort_fusions.optimize_for_ort(onnx_ir.serde.deserialize_model(model))
        return onnx_ir.serde.serialize_model(made)
    return rewriter.rewrite(model, pattern_rewrite_rules=list(rules_named(rule)))


def rules_named(name: str) -> Iterable[Any]:
    """The rules of onnxscript that one of the names in `PARTS` stands for; only in the guarded process."""
    if name in _FUSIONS:
        module, attribute = _FUSIONS[name]
        found = getattr(import_module(f"onnxscript.rewriter.rules.fusion.{module}"), attribute)
    else:
        common = import_module(_COMMON)
        found = getattr(common, f"{name}_rule", None) or getattr(common, f"{name}_rules")
    if callable(found) and not hasattr(found, "apply_to_model"):
        found = found()
    if hasattr(found, "try_rewrite"):
        return (found,)
    rules: Iterable[Any] = found.rules if hasattr(found, "rules") else found
    return rules

"""onnxscript: its optimizer, and the rules of its rewriter, one by one or as its default set.

https://github.com/microsoft/onnxscript; the names of the rules are those of version 0.7.2 without ``_rule``.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from msgspec import Meta

from onnxjson.optimizing.passes.declaration import READING, PartStage, Pass, proto_of

if TYPE_CHECKING:
    from onnx import ModelProto


@contextmanager
def watched(model: bytes, seen: Callable[[PartStage], None]) -> Iterator[None]:
    """Call `seen` within the block with the model after each pass and rule that changed it; `model` is the first."""
    import onnx_ir

    watch = _Watch(seen)
    watch.look(READING, onnx_ir.serde.deserialize_model(proto_of(model)), model)
    base: Any = onnx_ir.passes.PassBase
    original = base.__call__
    base.__call__ = watch.wrapped(original)
    try:
        yield
    finally:
        base.__call__ = original


class _Watch:
    def __init__(self, seen: Callable[[PartStage], None]) -> None:
        self._seen = seen
        self._last = b""
        self._is_within = False

    def look(self, name: str, model: Any, before: bytes | None = None) -> None:
        data = _serialised(model)
        if data != (self._last if before is None else before):
            self._seen(PartStage(name, data))
        self._last = data

    def wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``PassBase.__call__`` to observe the result; sequences of passes are observed pass by pass."""
        from onnx_ir.passes import Sequential
        from onnxscript.rewriter import RewritePass

        def watched_call(subject: Any, given: Any, /) -> Any:
            if self._is_within or isinstance(subject, Sequential):
                return call(subject, given)
            self._is_within = True
            try:
                if isinstance(subject, RewritePass):
                    return self._rewritten(call, subject, given)
                result = call(subject, given)
            finally:
                self._is_within = False
            self.look(type(subject).__name__.removesuffix("Pass"), result.model)
            return result

        return watched_call

    def _rewritten(self, call: Callable[..., Any], subject: Any, given: Any) -> Any:
        """Run a pass of rules, then the rules that fired on copies of the model, one more each time."""
        from onnxscript.rewriter import RewritePass

        model = getattr(given, "model", given)
        before = _copied(model)
        with _fired(subject.rules.rules) as fired:
            result = call(subject, given)
        for count in range(1, len(fired)):
            made = _copied(before)
            call(RewritePass(fired[:count]), made)
            self.look(_rule_name(fired[count - 1]), made)
        self.look(_rule_name(fired[-1]) if fired else "Rewrite", result.model)
        return result


@contextmanager
def _fired(rules: Any) -> Iterator[list[Any]]:
    """List the rules that rewrite something within the block, without duplicates."""
    from onnxscript.rewriter import RewriteRule

    fired: list[Any] = []
    kind: Any = RewriteRule
    original = kind.try_rewrite

    def try_rewrite(rule: Any, *arguments: Any, **options: Any) -> Any:
        replacement = original(rule, *arguments, **options)
        if replacement is not None and not any(rule is each for each in fired):
            fired.append(rule)
        return replacement

    kind.try_rewrite = try_rewrite
    try:
        yield fired
    finally:
        kind.try_rewrite = original
        # Rules are tried in this order.
        places = {id(rule): place for place, rule in reversed(list(enumerate(rules)))}
        fired.sort(key=lambda rule: places.get(id(rule), 0))


def _rule_name(rule: Any) -> str:
    return str(rule.name or type(rule).__name__)


def _copied(model: Any) -> Any:
    import onnx_ir

    return onnx_ir.serde.deserialize_model(copy.deepcopy(onnx_ir.serde.serialize_model(model)))


def _serialised(model: Any) -> bytes:
    import onnx_ir

    return bytes(onnx_ir.serde.serialize_model(model).SerializeToString())


DEFAULT_RULES: Final = "default_rules"
ONNXRUNTIME: Final = "for_onnxruntime"

PARTS: Final[dict[str, str]] = {
    DEFAULT_RULES: "The default rules of the rewriter.",
    ONNXRUNTIME: "The optimizer for onnxruntime: fuses attention, normalization and others into its operators.",
    "add_0": "Removes additions of 0.",
    "affine_conv_fusion": "Fuses Mul and Add into the Conv after them.",
    "cast_cast": "Fuses two Cast.",
    "cast_constant_of_shape": "Fuses a Cast into the ConstantOfShape before it.",
    "cast_constant_of_shape_without_value": "Fuses a Cast into a ConstantOfShape without a value.",
    "collapse_slice": "Removes a Slice of the whole value.",
    "collapse_slice2": "Removes a Slice whose result has the shape of its input.",
    "conv_affine_fusion": "Fuses Mul and Add into the Conv before them.",
    "div_by_1": "Removes divisions by 1.",
    "dropout_inference": "Removes Dropout outside training.",
    "dropout_zero": "Removes Dropout with ratio 0.",
    "expand_before_binary_op": "Removes an Expand before an operator that broadcasts anyway.",
    "flatten_to_reshape": "Replaces Flatten with Reshape.",
    "fuse_batchnorm_into_conv": "Fuses a BatchNormalization into the Conv before it.",
    "fuse_batchnorm_into_conv_transpose": "Fuses a BatchNormalization into the ConvTranspose before it.",
    "fuse_batchnorm_into_gemm": "Fuses a BatchNormalization into the Gemm before it.",
    "fuse_hardswish": "Fuses arithmetic into HardSwish and HardSigmoid.",
    "fuse_pad_into_conv": "Fuses a Pad into the Conv after it.",
    "fuse_pad_into_conv_integer": "Fuses a Pad into the ConvInteger after it.",
    "gemm_to_matmul_add": "Splits Gemm into MatMul and Add.",
    "gqa": "Fuses the operators of grouped-query attention into Attention.",
    "layer_normalization": "Fuses arithmetic into LayerNormalization.",
    "matmul_add_to_gemm": "Fuses MatMul and Add into Gemm.",
    "materialize_reshape_shape": "Replaces the shape of a Reshape with a constant.",
    "max_max": "Fuses two Max.",
    "max_min": "Fuses Max and Min into Clip.",
    "min_max": "Fuses Min and Max into Clip.",
    "min_min": "Fuses two Min.",
    "mul_by_1": "Removes multiplications by 1.",
    "no_op_cast": "Removes a Cast to the type of its input.",
    "no_op_dynamic_scatter_nd": "Removes a ScatterND that replaces everything, with computed indices.",
    "no_op_expand": "Removes an Expand to the shape of its input.",
    "no_op_static_scatter_nd": "Removes a ScatterND that replaces everything, with constant indices.",
    "no_op_transpose": "Removes a Transpose that keeps the order.",
    "normalize_pad_format_conv": "Replaces auto_pad of a Conv with pads.",
    "normalize_pad_format_conv_integer": "Replaces auto_pad of a ConvInteger with pads.",
    "one_reshape_matmul_reshape": "Removes the Reshape around a MatMul that broadcasts anyway.",
    "partial_rotary_embedding": "Fuses arithmetic into RotaryEmbedding of a part of each head.",
    "remove_optional_bias_from_conv": "Removes a zero bias from a Conv.",
    "remove_optional_bias_from_conv_transpose": "Removes a zero bias from a ConvTranspose.",
    "remove_optional_bias_from_gemm": "Removes a zero bias from a Gemm.",
    "remove_optional_bias_from_qlinear_conv": "Removes a zero bias from a QLinearConv.",
    "reshape_reshape": "Fuses two Reshape.",
    "rms_normalization": "Fuses arithmetic into RMSNormalization.",
    "rotary_embedding": "Fuses arithmetic into RotaryEmbedding.",
    "slice_split": "Replaces two Slice that halve a value with Split.",
    "squeeze_reshape_1d": "Removes a Squeeze and a Reshape that restores the shape.",
    "sub_0": "Removes subtractions of 0.",
    "successive_clip": "Fuses two Clip.",
    "successive_clip_relu": "Fuses Clip and Relu into Clip.",
    "successive_relu": "Fuses two Relu.",
    "successive_relu_clip": "Fuses Relu and Clip into Clip.",
    "transpose_a_matmul_add_to_gemm": "Fuses MatMul and Add into Gemm with the first input transposed.",
    "transpose_ab_matmul_add_to_gemm": "Fuses MatMul and Add into Gemm with both inputs transposed.",
    "transpose_b_matmul_add_to_gemm": "Fuses MatMul and Add into Gemm with the second input transposed.",
    "transpose_transpose": "Fuses two Transpose.",
    "two_reshapes_matmul_reshape": "Removes the Reshapes around a MatMul that broadcasts anyway.",
    "unsqueeze_unsqueeze": "Fuses two Unsqueeze.",
}

_COMMON: Final = "onnxscript.rewriter.rules.common"
_FUSIONS: Final = {
    "gqa": ("_gqa", "gqa_rules"),
    "layer_normalization": ("_layer_norm", "layer_normalization_rules"),
    "partial_rotary_embedding": ("_rotary_embedding", "partial_embedding_rules"),
    "rms_normalization": ("_rms_normalization", "rms_normalization_rules"),
    "rotary_embedding": ("_rotary_embedding", "rotary_embedding_rules"),
}
"""Rules in separate modules of onnxscript."""


class Onnxscript(Pass, frozen=True, kw_only=True, eq=False, tag="onnxscript"):
    """Run the optimizer of onnxscript, listed rules of its rewriter, or one as onnxscript:RULE."""

    packages: ClassVar = ("onnxscript",)
    extra: ClassVar = "passes"
    part: ClassVar = "rules"
    parts: ClassVar = PARTS

    rules: Annotated[
        tuple[str, ...], Meta(description="Run these rewriter rules in this order instead of the optimizer.")
    ] = ()
    iterations: Annotated[int, Meta(ge=1, description="Maximum number of iterations of the optimizer.")] = 2
    infer_shapes: Annotated[bool, Meta(description="Infer shapes in the optimizer, node by node.")] = True
    inline: Annotated[bool, Meta(description="Inline functions first.")] = True
    input_size_limit: Annotated[
        int, Meta(ge=0, description="Do not fold nodes with inputs of this many elements or more.")
    ] = 8192
    output_size_limit: Annotated[
        int, Meta(ge=0, description="Do not fold nodes with outputs of this many elements or more.")
    ] = 262144

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`."""
        made: Any = proto_of(model)
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
    """Return the rules of onnxscript for a name in `PARTS`; only in the guarded process."""
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

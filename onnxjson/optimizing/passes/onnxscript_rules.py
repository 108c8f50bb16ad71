"""onnxscript: its optimizer and the rules of its rewriter, and the model after each of them.

The names of rules of https://github.com/microsoft/onnxscript are those of 0.7.2 without ``_rule``.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from onnxjson.editing.parameters import about
from onnxjson.optimizing.passes.declaration import DRAWING, READING, PartStage, Pass, parts_of, proto_of

if TYPE_CHECKING:
    from onnx import ModelProto

DEFAULT_RULES: Final = "default_rules"
ONNXRUNTIME: Final = "for_onnxruntime"

_FUSIONS: Final = {
    "gqa": ("_gqa", "gqa_rules"),
    "layer_normalization": ("_layer_norm", "layer_normalization_rules"),
    "partial_rotary_embedding": ("_rotary_embedding", "partial_embedding_rules"),
    "rms_normalization": ("_rms_normalization", "rms_normalization_rules"),
    "rotary_embedding": ("_rotary_embedding", "rotary_embedding_rules"),
}
"""Rules in separate modules of onnxscript."""


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
        import onnx_ir

        data = bytes(onnx_ir.serde.serialize_model(model).SerializeToString())
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


class Onnxscript(Pass, frozen=True, kw_only=True, eq=False, tag="onnxscript"):
    """Run the optimizer of onnxscript, listed rules of its rewriter, or one as onnxscript:RULE."""

    packages: ClassVar = ("onnxscript",)
    constants: ClassVar = "files"
    extra: ClassVar = "passes"
    part: ClassVar = "rules"
    parts: ClassVar = parts_of("onnxscript")

    rules: Annotated[tuple[str, ...], about("Run these rewriter rules in this order instead of the optimizer.")] = ()
    iterations: Annotated[int, about("Maximum number of iterations of the optimizer.", ge=1)] = 2
    infer_shapes: Annotated[bool, about("Infer shapes in the optimizer, node by node.")] = True
    inline: Annotated[bool, about("Inline functions first.")] = True
    input_size_limit: Annotated[int, about("Do not fold nodes with inputs of this many elements or more.", ge=0)] = 8192
    output_size_limit: Annotated[int, about("Do not fold nodes with outputs of this many elements or more.", ge=0)] = (
        262144
    )

    def run(self, model: bytes, folder: Path) -> bytes:
        optimized: Any = proto_of(model)
        _keep_empty_ranges()
        for rule in self.rules:
            optimized = _rewritten(optimized, rule)
        if not self.rules:
            from onnxscript import optimizer

            # It knows fewer of the operators that draw random numbers, and would fold the others.
            folding: Any = import_module("onnxscript.optimizer._constant_folding")
            folding._NON_DETERMINISTIC_OPS = DRAWING
            optimized = optimizer.optimize(
                optimized,
                num_iterations=self.iterations,
                onnx_shape_inference=self.infer_shapes,
                input_size_limit=self.input_size_limit,
                output_size_limit=self.output_size_limit,
                inline=self.inline,
            )
        return bytes(optimized.SerializeToString())

    def stages(self, model: bytes, folder: Path) -> Iterable[PartStage]:
        """See `Pass.stages`: each pass of the optimizer, and each rule of the rewriter."""
        stages: list[PartStage] = []
        with watched(model, stages.append):
            last = self.run(model, folder)
        if not stages or stages[-1].model != last:
            stages.append(PartStage(self.rules[-1] if self.rules else "onnxscript", last))
        return stages


def _keep_empty_ranges() -> None:
    """Let onnxscript join two Clips, or a Clip and a Relu, only if their ranges overlap; else values would change."""
    fusions = import_module("onnxscript.rewriter.rules.common._fuse_relus_clips")
    for rule in (fusions.successive_clip_rule, fusions.successive_relu_clip_rule):
        rule._condition_function = partial(_overlap, rule._condition_function)


def _overlap(original: Any, context: Any, **values: Any) -> Any:
    result = original(context, **values)
    clips = [values[name].producer() if name in values else None for name in ("out_first_clip", "out_second_clip")]
    if result:
        ends = original.__self__.compute_clip_min_max(*clips)
        least, most = [None if end is None else end.numpy() for end in ends]
        if least is not None and most is not None and least > most:
            return result.fail("the ranges do not overlap")
    return result


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
    """Return the rules of onnxscript for a name in `Onnxscript.parts`; only in the sandboxed process."""
    if name in _FUSIONS:
        module, attribute = _FUSIONS[name]
        named = getattr(import_module(f"onnxscript.rewriter.rules.fusion.{module}"), attribute)
    else:
        common = import_module("onnxscript.rewriter.rules.common")
        named = getattr(common, f"{name}_rule", None) or getattr(common, f"{name}_rules")
    if callable(named) and not hasattr(named, "apply_to_model"):
        named = named()
    if hasattr(named, "try_rewrite"):
        return (named,)
    rules: Iterable[Any] = named.rules if hasattr(named, "rules") else named
    return rules

"""onnxsim, onnxslim, onnxoptimizer and onnxscript: constant folding, fusion, elimination, and rules of a rewriter.

https://github.com/onnx/optimizer has the C++ passes of the ONNX project, here with the names of version 0.4.2;
https://github.com/onnxsim/onnxsim, version 0.8.1, has its own onnxoptimizer; https://github.com/inisis/OnnxSlim is
version 0.1.98; the names of rules of https://github.com/microsoft/onnxscript are those of 0.7.2 without ``_rule``.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, partialmethod
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from msgspec import field

from onnxjson.codecs import serde
from onnxjson.editing.parameters import Role, about
from onnxjson.model.constants import RANDOM
from onnxjson.optimizing.passes.declaration import READING, PartStage, Pass, parts_of, proto_of, require
from onnxjson.running.input_files import read_archive
from onnxjson.running.inputs import free_inputs
from onnxjson.running.values import as_array

if TYPE_CHECKING:
    from onnx import ModelProto

_STAMPS: Final = "onnxsim."
"""Prefix of the metadata keys that onnxsim adds about its own run."""

_DRAWING: Final = frozenset({*RANDOM, "Dropout"})

Stage = Literal[
    "constant_folding", "graph_fusion", "dead_node_elimination", "subexpression_elimination", "weight_tying"
]
Pattern = Literal[
    "EliminationConcat", "EliminationReshape", "EliminationReshapeAs", "EliminationSlice", "EliminationTranspose",
    "EliminationTransposeAsReshape", "EliminationTransposeViewTranspose", "EliminationUnsqueeze", "FusionConcatReshape",
    "FusionConvAdd", "FusionConvBN", "FusionConvMul", "FusionConvTransposeAdd", "FusionConvTransposeBN",
    "FusionConvTransposeMul", "FusionGemm", "FusionGemmAdd", "FusionGemmMul", "FusionPadConv", "FusionReduce",
]  # fmt: skip

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


class Onnxsim(Pass, frozen=True, kw_only=True, eq=False, tag="onnxsim"):
    """Simplify with onnxsim: fold constants, infer shapes and optimize until nothing changes."""

    packages: ClassVar = ("onnxsim",)
    constants: ClassVar = "inputs"
    extra: ClassVar = "passes"

    fold: Annotated[bool, about("Fold constants.")] = True
    infer_shapes: Annotated[bool, about("Infer shapes, so that more can be folded.")] = True
    optimize: Annotated[bool, about("Also run its optimizer.")] = True
    skip: Annotated[tuple[str, ...], about("Passes of its optimizer to omit.")] = ()
    more: Annotated[
        tuple[str, ...], about("Additional passes of its optimizer; see onnxsim --list-other-optimizers.")
    ] = ()
    subgraphs: Annotated[bool, about("Also simplify the bodies of If, Loop and Scan.")] = False
    inline_functions: Annotated[bool, about("Inline the functions of the model first.")] = False
    input_shapes: Annotated[dict[str, tuple[int, ...]], about("Fixed shapes of inputs: {image:[1,3,224,224]}.")] = (
        field(default_factory=dict)
    )
    unused_outputs: Annotated[tuple[str, ...], about("Outputs to remove.")] = ()
    large_tensor: Annotated[str, about("Do not fold nodes with larger outputs, such as 10KB.", min_length=1)] = "1.5GB"
    check: Annotated[int, about("Number of random inputs for a check that outputs stay the same.", ge=0)] = 0
    check_rtol: Annotated[float, about("Relative tolerance of check.", ge=0)] = 1e-4
    check_atol: Annotated[float, about("Absolute tolerance of check.", ge=0)] = 1e-5
    check_shapes: Annotated[
        dict[str, tuple[int, ...]], about("Shapes of inputs for check; the model keeps its own.")
    ] = field(default_factory=dict)
    check_data: Annotated[
        str | None, Role("file"), about("A .npz file with inputs for check, by name.", min_length=1)
    ] = None
    constant_weights: Annotated[
        bool, about("Treat initializers as constants; otherwise, nothing is folded into them.")
    ] = True
    weights_are_inputs: Annotated[
        bool, about("Keep initializers that are also inputs as inputs, which callers may replace.")
    ] = False
    opset: Annotated[int | None, about("Convert to this version of the operator set first.", ge=1)] = None
    keep_stamps: Annotated[bool, about("Keep the metadata that onnxsim adds about its own run.")] = False

    def reads(self) -> tuple[str, ...]:
        return () if self.check_data is None else (str(Path(self.check_data).absolute()),)

    def run(self, model: bytes, folder: Path) -> bytes:
        import onnxsim
        from onnxsim import onnxsim_cpp2py_export as native

        require(self.skip, [*native._list_optimizers(), *native._list_other_optimizers()], "pass of its optimizer")
        require(self.more, native._list_other_optimizers(), "other pass of its optimizer")
        before = proto_of(model)
        had = {entry.key for entry in before.metadata_props}
        simplified, is_same = onnxsim.simplify(
            before,
            check_n=self.check,
            perform_optimization=self.optimize,
            skipped_optimizers=list(self.skip) or None,
            extra_optimizers=list(self.more) or None,
            skip_constant_folding=not self.fold,
            skip_shape_inference=not self.infer_shapes,
            include_subgraph=self.subgraphs,
            inline_functions=self.inline_functions,
            overwrite_input_shapes={name: list(shape) for name, shape in self.input_shapes.items()} or None,
            unused_output=list(self.unused_outputs) or None,
            tensor_size_threshold=self.large_tensor,
            check_rtol=self.check_rtol,
            check_atol=self.check_atol,
            test_input_shapes={name: list(shape) for name, shape in self.check_shapes.items()} or None,
            input_data=self._check_inputs(model),
            initializers_as_constants=self.constant_weights,
            mutable_initializer=self.weights_are_inputs,
            target_opset_version=self.opset,
            certify=False,
        )
        if not is_same:
            raise ValueError("its result computes other outputs than the model")
        if other := {each.name for each in simplified.graph.input} - {
            each.name for each in proto_of(model).graph.input
        }:
            raise ValueError(f"its result and the model have different inputs: {', '.join(sorted(other))}")
        for entry in () if self.keep_stamps else list(simplified.metadata_props):
            if entry.key.startswith(_STAMPS) and entry.key not in had:
                simplified.metadata_props.remove(entry)
        return bytes(simplified.SerializeToString())

    def _check_inputs(self, model: bytes) -> dict[str, Any] | None:
        if self.check_data is None:
            return None
        values = read_archive(Path(self.check_data), free_inputs(serde.parse(model).model))
        return {name: as_array(value) for name, value in values.items()}


class Onnxslim(Pass, frozen=True, kw_only=True, eq=False, tag="onnxslim"):
    """Slim with onnxslim: fuse, fold constants, remove duplicate and dead nodes until nothing changes."""

    packages: ClassVar = ("onnxslim",)
    evaluates_texts: ClassVar = True
    constants: ClassVar = "files"
    extra: ClassVar = "passes"

    infer_shapes: Annotated[bool, about("Infer shapes between rounds.")] = True
    skip: Annotated[tuple[Stage, ...], about("Stages to omit.")] = ()
    skip_patterns: Annotated[tuple[Pattern, ...], about("Fusions and eliminations to omit.")] = ()
    size_threshold: Annotated[
        int | None, about("Do not fold nodes with outputs of more bytes; no limit if omitted.", ge=1)
    ] = None
    input_shapes: Annotated[dict[str, tuple[int, ...]], about("Fixed shapes of inputs: {image:[1,3,224,224]}.")] = (
        field(default_factory=dict)
    )

    def run(self, model: bytes, folder: Path) -> bytes:
        import onnxslim
        from onnxslim.third_party.onnx_graphsurgeon import Constant, Graph

        # Otherwise it folds random numbers: it runs all nodes that have no inputs, or only constants.
        folding = partialmethod(Graph.fold_constants, should_exclude_node=lambda node: node.op in _DRAWING)
        Graph.fold_constants = folding
        # Otherwise it marks a constant that it has read as external, but does not write where it is.
        Constant.data_location = property(lambda _: None, lambda *_: None)
        shapes = [f"{name}:{','.join(map(str, shape))}" for name, shape in self.input_shapes.items()]
        read = proto_of(model)
        # Otherwise it removes each Dropout, also of a model that trains.
        trains = any(node.op_type == "Dropout" and len(node.input) > 2 for node in read.graph.node)
        skipped = {*self.skip, *(["dead_node_elimination"] if trains else [])}
        slimmed = onnxslim.slim(
            read,
            input_shapes=shapes or None,
            no_shape_infer=not self.infer_shapes,
            skip_optimizations=sorted(skipped) or None,
            skip_fusion_patterns=list(self.skip_patterns) or None,
            size_threshold=self.size_threshold,
        )
        return bytes(slimmed.SerializeToString())


class Onnxoptimizer(Pass, frozen=True, kw_only=True, eq=False, tag="onnxoptimizer"):
    """Run passes of onnxoptimizer: its default set of 39, a list, or one as onnxoptimizer:PASS."""

    packages: ClassVar = ("onnxoptimizer",)
    constants: ClassVar = "tokens"
    extra: ClassVar = "passes"
    part: ClassVar = "passes"
    parts: ClassVar = parts_of("onnxoptimizer")

    passes: Annotated[tuple[str, ...], about("Run these passes in this order instead of the default set.")] = ()
    fixed_point: Annotated[bool, about("Repeat the set until it changes nothing.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        return _optimized(model, list(self.passes) or None, self.fixed_point)

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: each pass that changed something, in the order in which they run."""
        import onnxoptimizer

        read = _optimized(model, ["nop"])
        if read != model:
            yield PartStage(READING, read)
        model = read
        names = self.passes or onnxoptimizer.get_fuse_and_elimination_passes()
        while True:
            before = model
            for name in names:
                made = _optimized(model, [name])
                if made != model:
                    model = made
                    yield PartStage(name, model)
            if not self.fixed_point or model == before:
                return


def _optimized(model: bytes, passes: list[str] | None, fixed_point: bool = False) -> bytes:
    import onnxoptimizer

    return bytes(onnxoptimizer.optimize(proto_of(model), passes, fixed_point).SerializeToString())


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
            folding._NON_DETERMINISTIC_OPS = _DRAWING
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

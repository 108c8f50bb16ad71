"""Passes for transformers: onnxruntime's optimizer with its fusions, and extract-adapters.

https://onnxruntime.ai/docs/performance/transformers-optimization.html. Its ``optimize_model`` imports torch
only to look for a graphics card before onnxruntime optimizes. Here a session of onnxruntime optimizes, with the same
transformers disabled, and ``optimize_by_fusion``, which does not need torch, does the rest.

extract-adapters turns the weights of low-rank adapters into inputs, so that one model serves many adapters. It does the
same as Olive's ExtractAdapters with ``make_inputs`` for weights that are not quantized, without Olive.
"""

import copy
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from msgspec.structs import replace

from onnxjson.editing.parameters import Role, about
from onnxjson.model.display import listed, visible
from onnxjson.model.errors import EditError
from onnxjson.optimizing.passes.declaration import Changed, PartStage, Pass, proto_of, remark, require_new
from onnxjson.optimizing.passes.onnxruntime import Level, Sessions
from onnxjson.running.light_model import input_for
from onnxjson.storage.external_files import NewFile

if TYPE_CHECKING:
    from onnx import ModelProto

    from onnxjson.model.document import Graph, Model, Tensor

ModelType = Literal[
    "bart", "bert", "bert_tf", "bert_keras", "clip", "conformer", "gpt2", "gpt2_tf", "gpt_neox", "mmdit", "phi",
    "qwen3", "sam2", "swin", "t5", "tnlr", "unet", "vae", "vit",
]  # fmt: skip

Fusion = Literal[
    "attention", "bias_add", "bias_gelu", "bias_skip_layer_norm", "bias_splitgelu", "embed_layer_norm", "gelu",
    "group_norm", "layer_norm", "nhwc_conv", "packed_kv", "packed_qkv", "rotary_embeddings", "shape_inference",
    "skip_group_norm", "skip_layer_norm",
]  # fmt: skip

_LEVELS: Final[dict[int, Level]] = {1: "basic", 2: "extended", 99: "all"}
_ALWAYS_LEFT_OUT: Final = ("ConstantSharing",)
_LEFT_OUT_ABOVE_BASIC: Final = (
    "MatMulScaleFusion", "MatMulAddFusion", "MatmulTransposeFusion", "GemmActivationFusion", "BiasSoftmaxFusion",
)  # fmt: skip
"""Transformers that hide the patterns of its fusions; `optimize_model` disables the same."""

_CLEANING: Final = "cleaning up"

Kind = Literal["lora", "dora", "loha"]

_PATTERNS: Final[dict[Kind, str]] = {
    "lora": r"(^|[./_])lora_[AB]([./]|$)",
    "dora": r"(^|[./_])(lora_[AB]|lora_magnitude_vector|dora_M)([./]|$)",
    "loha": r"(^|[./_])hada_w[12]_[ab]([./]|$)",
}
"""Names of adapter weights in peft; exporters keep them in the names of initializers or of nodes."""


class Transformers(Pass, frozen=True, kw_only=True, eq=False, tag="transformers"):
    """Fuse attention, normalization, Gelu and embeddings of a transformer into operators of onnxruntime.

    A fusion that does not find its pattern does nothing, so the model type matters; the fused operators are reported.
    """

    packages: ClassVar = ("onnxruntime", "sympy")
    evaluates_texts: ClassVar = True
    constants: ClassVar = "files"
    extra: ClassVar = "passes"

    model_type: Annotated[ModelType, about("Type of the model.")] = "bert"
    num_heads: Annotated[int, about("Number of attention heads; 0 to detect it (bert only).", ge=0)] = 0
    hidden_size: Annotated[int, about("Size of the hidden layers; 0 to detect it.", ge=0)] = 0
    level: Annotated[
        Literal["default", "none", "basic", "extended", "all"],
        about("Level of onnxruntime before the fusions; the default depends on the model type."),
    ] = "default"
    disable: Annotated[tuple[Fusion, ...], about("Fusions to disable.")] = ()
    gelu_approximation: Annotated[bool, about("Also replace Gelu by FastGelu, which is not exact.")] = False
    gemm_fast_gelu: Annotated[bool, about("Also fuse MatMul and FastGelu.")] = False
    multi_head_attention: Annotated[bool, about("Use MultiHeadAttention instead of Attention.")] = False
    channels_first: Annotated[bool, about("GroupNorm is channels-first (unet, vae, clip).")] = False
    attention_mask: Annotated[
        Literal["default", "index", "raw", "none"], about("Kind of attention masks: lengths, raw masks, or none.")
    ] = "default"
    input_int32: Annotated[bool, about("Convert int64 inputs to int32.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        fused = self._fused(self._prepared(model, folder))
        counts = {name: count for name, count in fused.get_fused_operator_statistics().items() if count}
        fused_text = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        remark(f"fused operators in the result: {fused_text or 'none'}")
        return bytes(fused.model.SerializeToString())

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: the optimization by onnxruntime, then each fusion."""
        prepared = self._prepared(model, folder)
        if prepared != model:
            yield PartStage("onnxruntime", prepared)
        stages: list[PartStage] = []
        with _watched(prepared, stages.append):
            fused = self._fused(prepared)
        yield from stages
        last = bytes(fused.model.SerializeToString())
        if not stages or stages[-1].model != last:
            yield PartStage(_CLEANING, last)

    def _prepared(self, model: bytes, folder: Path) -> bytes:
        """Optimize with onnxruntime before the fusions."""
        from onnxruntime.transformers.optimizer import MODEL_TYPES

        level = _LEVELS.get(MODEL_TYPES[self.model_type][2]) if self.level == "default" else self.level
        if level is None or level == "none":
            return model
        left_out = _ALWAYS_LEFT_OUT if level == "basic" else (*_ALWAYS_LEFT_OUT, *_LEFT_OUT_ABOVE_BASIC)
        return Sessions(model, folder, level, left_out).optimized()

    def _fused(self, model: bytes) -> Any:
        from onnxruntime.transformers.optimizer import optimize_by_fusion

        proto = proto_of(model)
        fused = optimize_by_fusion(proto, self.model_type, self.num_heads, self.hidden_size, self._fusion_options())
        if self.input_int32:
            fused.change_graph_inputs_to_int32()
        return fused

    def _fusion_options(self) -> Any:
        options = _module("fusion_options").FusionOptions(self.model_type)
        for name in self.disable:
            setattr(options, f"enable_{name}", False)
        options.enable_gelu_approximation = self.gelu_approximation
        options.enable_gemm_fast_gelu = self.gemm_fast_gelu
        options.use_multi_head_attention = self.multi_head_attention
        if self.channels_first:
            options.group_norm_channels_last = False
        if self.attention_mask == "none":
            options.disable_attention_mask()
        elif self.attention_mask != "default":
            options.use_raw_attention_mask(self.attention_mask == "raw")
        return options


def _module(name: str) -> Any:
    """Import a module of the optimizer as its own modules do, after it put its folder on the path."""
    import onnxruntime.transformers.optimizer  # noqa: F401

    return import_module(name)


@contextmanager
def _watched(model: bytes, seen: Callable[[PartStage], None]) -> Iterator[None]:
    """Call `seen` within the block with the model after each fusion that changed it; `model` is the first."""
    last, depth = model, 0

    def look(name: str, after: "ModelProto") -> None:
        nonlocal last
        data = bytes(after.SerializeToString())
        if data != last:
            seen(PartStage(name, _sorted(after)))
        last = data

    def wrapped(apply: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def observed(fusion: Any) -> Any:
            nonlocal depth
            depth += 1
            if depth == 1:  # A call of the base class is part of the same fusion.
                look(_CLEANING, fusion.model.model)
            try:
                return apply(fusion)
            finally:
                depth -= 1
                if depth == 0:
                    look(type(fusion).__name__, fusion.model.model)

        return observed

    originals = [(kind, kind.__dict__["apply"]) for kind in _all_kinds(_module("fusion_base").Fusion)
                 if "apply" in kind.__dict__]  # fmt: skip
    for kind, original in originals:
        kind.apply = wrapped(original)
    try:
        yield
    finally:
        for kind, original in originals:
            kind.apply = original


def _all_kinds(kind: Any) -> Iterable[Any]:
    yield kind
    for below in kind.__subclasses__():
        yield from _all_kinds(below)


def _sorted(model: "ModelProto") -> bytes:
    """Return a model between two fusions with its nodes in topological order."""
    from onnxruntime.transformers.onnx_model import OnnxModel

    made = OnnxModel(copy.deepcopy(model))
    made.topological_sort()
    return bytes(made.model.SerializeToString())


class ExtractAdapters(Pass, frozen=True, kw_only=True, eq=False, tag="extract-adapters"):
    """Turn the weights of a LoRA, DoRA or LoHa adapter into inputs; their values can be saved.

    Weights of an adapter are found by their name, or by the name of a node that consumes them.
    """

    is_sandboxed: ClassVar = False

    kind: Annotated[Kind, about("Kind of adapter.")] = "lora"
    pattern: Annotated[
        str | None, about("Select weights or nodes by this regular expression instead of by kind.", min_length=1)
    ] = None
    keep_defaults: Annotated[bool, about("Keep the values as defaults of the inputs.")] = False
    save: Annotated[str | None, Role("file"), about("Save the values to this new .npz file.", min_length=1)] = None

    def change(self, model: "Model", model_folder: Path | None) -> Changed:
        graph = model.graph
        weights = [] if graph is None else self._weights(graph)
        if graph is None or not weights:
            raise EditError(f"no weight belongs to a {self.kind} adapter; select weights with pattern=REGEX")
        saved = () if self.save is None else (_archive(weights, Path(self.save), model_folder),)
        names = {tensor.name for tensor in weights}
        inputs = {value.name for value in graph.input}
        removed = set() if self.keep_defaults else names
        opened = replace(
            graph,
            input=(*graph.input, *[input_for(tensor) for tensor in weights if tensor.name not in inputs]),
            initializer=tuple([tensor for tensor in graph.initializer if tensor.name not in removed]),
            value_info=tuple([value for value in graph.value_info if value.name not in names]),
        )
        names_text = listed([visible(tensor.name or "") for tensor in weights])
        became = "weights are now inputs" if len(weights) > 1 else "weight is now an input"
        note = f"{len(weights):,} {became}: {names_text}"
        return Changed(replace(model, graph=opened), (note,), saved)

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
    from onnxjson.storage.external import Resolver
    from onnxjson.storage.numpy_constants import write_npz

    if path.suffix != ".npz":
        raise EditError(f'"{visible(str(path))}" does not end in .npz')
    require_new(path)
    resolver = Resolver(folder or Path())
    whole = [with_elements(tensor, resolver) for tensor in tensors]
    return NewFile(path, lambda sink: write_npz(whole, sink))

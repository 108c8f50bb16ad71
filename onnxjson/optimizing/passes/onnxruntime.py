"""onnxruntime: the graph optimizer of its sessions, run offline, and the graph after each of its transformers.

https://onnxruntime.ai/docs/performance/model-optimizations/graph-optimizations.html

Runs in the sandboxed process. onnxruntime has no interface that reports what its optimizer did; its log has: a line for
each graph transformer (https://github.com/microsoft/onnxruntime/pull/17819), on file descriptor 2. Given the names in
the log, sessions with all but the first transformers disabled return the graph between two of them. A transformer made
of rules does not report which of them fired: they are found by leaving out one after the other.
"""

import os
import platform
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import field

from onnxjson.editing.parameters import about
from onnxjson.optimizing.passes.declaration import READING, PartStage, Pass, proto_of, remark, require
from onnxjson.running.engines import session_options
from onnxjson.running.tasks import Settings

Level = Literal["basic", "extended", "layout", "all"]
"""Levels of onnxruntime that change a graph; each includes those before it."""

RULES: Final = (
    "EliminateIdentity", "EliminateSlice", "UnsqueezeElimination", "EliminateDropout", "ExpandElimination",
    "CastElimination", "CastChainElimination", "PreShapeNodeElimination", "NoopElimination", "DivMulFusion",
    "FuseReluClip", "GemmSumFusion", "GemmTransposeFusion", "NotWhereFusion", "ConvAddFusion", "ConvMulFusion",
    "ConvBNFusion", "Pad_Fusion", "MatMul_BatchNormalization_Fusion", "LabelEncoderFusion", "ClipQuantRewrite",
    "ReluQuantRewrite",
)  # fmt: skip
"""Rewrite rules of onnxruntime 1.31, in the order of onnxruntime/core/optimizer/graph_transformer_utils.cc."""

_MODIFIED: Final = re.compile(rb"GraphTransformer (\S+) modified: ([01]) with status: OK")
_RULE_BASED: Final = "_RuleBasedTransformer"

_REORDERING: Final = b"Reorder"

_FEATURES: Final = ("avx512f", "avx2", "avx", "sse4_1", "asimd", "sve")
"""Processor features that determine layouts, as named by Linux."""

_LAYOUT_DOMAIN: Final = "com.microsoft.nchwc"


class Sessions:
    """Sessions for one model with the same settings."""

    def __init__(
        self,
        model: bytes,
        folder: Path,
        level: Level,
        disabled: Iterable[str] = (),
        settings: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._model = model
        self._place = folder / "optimized.onnx"
        self._level = level
        self._disabled = list(disabled)
        self._settings = settings

    def optimized(self, without: Iterable[str] = ()) -> bytes:
        """Return the serialized graph as onnxruntime would run it, `without` some transformers or rules."""
        self._run([*self._disabled, *without], severity=3)
        return _steady(self._place.read_bytes())

    def reported(self) -> tuple[bytes, list[str], list[str]]:
        """Return the graph, the transformers in the order of their first run, and those that changed it."""
        log = self._place.with_suffix(".log")
        with _captured(log):
            self._run(self._disabled, severity=0)
        turns = [(name.decode(), changed == b"1") for name, changed in _MODIFIED.findall(log.read_bytes())]
        transformers = dict.fromkeys(name for name, _ in turns)
        modified = dict.fromkeys(name for name, changed in turns if changed)
        return _steady(self._place.read_bytes()), list(transformers), list(modified)

    def stages(self) -> Iterator[PartStage]:
        """Yield the graph after each transformer that changed it, and after each rule of those made of rules.

        The changes of a part are those it adds to the parts before it. The last stage is the final result.
        """
        result, transformers, modified = self.reported()
        # With every transformer disabled, functions are still inlined, opsets added and metadata lost.
        last = self.optimized(transformers)
        yield PartStage(READING, last)
        for count, name in enumerate(modified, 1):
            later = [each for each in transformers if each not in modified[:count]]
            optimized = self.optimized(later) if count < len(modified) else result
            if name.endswith(_RULE_BASED):
                for stage in self._rules(later, optimized, last):
                    last = stage.model
                    yield stage
            if _differ(optimized, last):
                last = optimized
                yield PartStage(name, optimized)

    def _rules(self, later: list[str], optimized: bytes, before: bytes) -> Iterator[PartStage]:
        """Yield the graph after each rule of the last transformer, on top of the rules before it."""
        candidates = [rule for rule in RULES if rule not in self._disabled]
        fired = self._fired(candidates, later, optimized)
        for count, rule in enumerate(fired, 1):
            idle = [each for each in candidates if each not in fired[:count]]
            partial = self.optimized([*later, *idle])
            if _differ(partial, before):
                before = partial
                yield PartStage(rule, partial)

    def _fired(self, rules: list[str], later: list[str], optimized: bytes) -> list[str]:
        """Return the rules without which the result differs; the search excludes halves at a time."""
        if not rules or not _differ(self.optimized([*later, *rules]), optimized):
            return []
        middle = len(rules) // 2
        if not middle:
            return rules
        return [*self._fired(rules[:middle], later, optimized), *self._fired(rules[middle:], later, optimized)]

    def _run(self, disabled: list[str], severity: int) -> None:
        import onnxruntime

        # Elsewhere if the model refers to external data there.
        here = None if self._place.parent == Path.cwd() else str(Path.cwd())
        options = session_options(Settings(level=self._level), here)
        if here is not None:  # packing would read all weights
            options.add_session_config_entry("session.disable_prepacking", "1")
        options.optimized_model_filepath = str(self._place)
        options.log_severity_level = severity
        options.log_verbosity_level = 1 if severity == 0 else 0
        for key, value in self._settings:
            options.add_session_config_entry(key, value)
        self._place.unlink(missing_ok=True)
        session: Any = onnxruntime.InferenceSession
        session(self._model, options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled or None)


def _steady(model: bytes) -> bytes:
    """Rename the nodes that change layouts, so that their names are the same each time.

    onnxruntime numbers them in the order of memory addresses.
    """
    if _REORDERING not in model:
        return model
    proto = proto_of(model)
    reordering = [node for node in proto.graph.node if node.op_type.encode().startswith(_REORDERING)]
    taken = {node.name for node in proto.graph.node} - {node.name for node in reordering}
    for number, node in enumerate(reordering):
        name = f"{node.op_type}_{number}"
        node.name = name if name not in taken else f"{name}_layout"
    return bytes(proto.SerializeToString())


def _differ(one: bytes, other: bytes) -> bool:
    """Whether two results of onnxruntime differ in more than the order of initializers."""
    return one != other and _without_order(one) != _without_order(other)


def _without_order(model: bytes) -> bytes:
    proto = proto_of(model)
    proto.graph.initializer.sort(key=lambda tensor: tensor.name)
    proto.graph.value_info.sort(key=lambda value: value.name)
    return bytes(proto.SerializeToString(deterministic=True))


@contextmanager
def _captured(place: Path) -> Iterator[None]:
    kept = os.dup(2)
    with place.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


class Onnxruntime(Pass, frozen=True, kw_only=True, eq=False, tag="onnxruntime"):
    """Run the graph optimizations that sessions of onnxruntime apply when they load a model.

    At levels layout and all, the result may suit the processor of this machine only; if so, this is reported.
    """

    packages: ClassVar = ("onnxruntime",)
    constants: ClassVar = "files"

    level: Annotated[
        Level,
        about(
            "basic: valid for every runtime. extended: also operators that only onnxruntime has. "
            "layout: also layouts for this machine's processor. all: everything."
        ),
    ] = "basic"
    disable: Annotated[tuple[str, ...], about("Graph transformers and rules to disable, such as ConvBNFusion.")] = ()
    gelu_approximation: Annotated[bool, about("Also replace Gelu by FastGelu, which is not exact.")] = False
    session: Annotated[
        dict[str, str], about("Entries of the session configuration; onnxruntime ignores unknown keys.")
    ] = field(default_factory=dict)
    until: Annotated[str | None, about("Stop after this transformer or rule, such as ConvBNFusion.", min_length=1)] = (
        None
    )

    def run(self, model: bytes, folder: Path) -> bytes:
        if self.disable:
            _, transformers, _ = self._sessions(model, folder, ()).reported()
            require(self.disable, [*transformers, *RULES], f"graph transformer or rule of level {self.level}")
        if self.until:
            stages = list(self.stages(model, folder))
            require([self.until], [each.name for each in stages], "transformer or rule that changes this model")
            return stages[-1].model
        optimized = self._sessions(model, folder, self.disable).optimized()
        if proto_of(model).functions:
            try:
                Sessions(optimized, folder, "basic").optimized()
            except Exception as error:  # one name twice, where functions call each other in branches (seen in 1.32)
                raise ValueError(f"{error}; onnxruntime rejects its own result: run inline-functions first") from None
        if self.level in ("layout", "all") and any(
            node.domain == _LAYOUT_DOMAIN for node in proto_of(optimized).graph.node
        ):
            remark(f"optimized for this machine ({machine()}); other processors may reject it or run it slowly")
        return optimized

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: each graph transformer that changed something, and each rule within one made of rules."""
        for stage in self._sessions(model, folder, self.disable).stages():
            yield stage
            if stage.name == self.until:
                return

    def _sessions(self, model: bytes, folder: Path, disabled: tuple[str, ...]) -> Sessions:
        settings = [*self.session.items()]
        settings += [("optimization.enable_gelu_approximation", "1")] if self.gelu_approximation else []
        return Sessions(model, folder, self.level, disabled, settings)


def machine() -> str:
    """Return the processor features that layouts depend on: ``x86_64 with avx512f, avx2``."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    flags = next((set(line.split()) for line in lines if line.startswith(("flags", "Features"))), set())
    found = [each for each in _FEATURES if each in flags]
    return platform.machine() + (f" with {', '.join(found)}" if found else "")


class SymbolicShapes(Pass, frozen=True, kw_only=True, eq=False, tag="symbolic-shapes"):
    """Infer shapes as expressions of named dimensions, such as 2*N, also for operators of onnxruntime.

    It requires opset 7 or later, and fails if it cannot infer the shape of every value.
    """

    packages: ClassVar = ("onnxruntime", "sympy")
    evaluates_texts: ClassVar = True
    constants: ClassVar = "files"
    extra: ClassVar = "passes"

    auto_merge: Annotated[bool, about("Merge dimensions that must be equal.")] = False
    guess_output_rank: Annotated[
        bool, about("Assume that outputs of unknown operators have the shape of the first input.")
    ] = False
    int_max: Annotated[int, about("Value that counts as unbounded, such as the end of a Slice.", ge=1)] = 2**31 - 1

    def run(self, model: bytes, folder: Path) -> bytes:
        from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

        options = (self.int_max, self.auto_merge, self.guess_output_rank)
        try:
            inferred = SymbolicShapeInference.infer_shapes(proto_of(model), *options)
        except Exception as error:  # it cannot save its partial result
            if not any([part in str(error) for part in ("Incomplete symbolic", "external data", "shape_infer_temp")]):
                raise
            what = "not every shape can be inferred; auto_merge=true merges dimensions that must be equal"
            raise ValueError(what) from None
        if inferred is None:
            raise ValueError("it requires opset 7 or later")
        return bytes(inferred.SerializeToString())


class QnnPreprocess(Pass, frozen=True, kw_only=True, eq=False, tag="qnn-preprocess"):
    """Fuse arithmetic into Gelu, LpNormalization and SpaceToDepth, and name all nodes, for quantization with QNN.

    It runs the basic level of onnxruntime first. If nothing applies, the model is not changed.
    """

    packages: ClassVar = ("onnxruntime",)
    needs_constants: ClassVar = "it optimizes a copy in another folder"

    fuse_layernorm: Annotated[bool, about("Also fuse LayerNormalization, from opset 17.")] = False
    inputs_channel_last: Annotated[
        tuple[str, ...], about("Inputs to convert to channels-last, with a Transpose after each.")
    ] = ()
    outputs_channel_last: Annotated[
        tuple[str, ...], about("Outputs to convert to channels-last, with a Transpose before each.")
    ] = ()
    exclude_initializers_from_inputs: Annotated[bool, about("Remove inputs that have an initializer.")] = False
    shapes: Annotated[dict[str, tuple[int, ...]], about("Inputs and shapes: shapes={image: [1, 3, 224, 224]}.")] = (
        field(default_factory=dict)
    )

    def run(self, model: bytes, folder: Path) -> bytes:
        from onnxruntime.quantization.execution_providers.qnn import qnn_preprocess_model

        place = folder / "preprocessed.onnx"
        shapes = [(name, ",".join(map(str, shape))) for name, shape in self.shapes.items()]
        is_changed = qnn_preprocess_model(
            proto_of(model),
            place,
            exclude_initializer_from_input=self.exclude_initializers_from_inputs,
            fuse_layernorm=self.fuse_layernorm,
            inputs_to_make_channel_last=list(self.inputs_channel_last) or None,
            outputs_to_make_channel_last=list(self.outputs_channel_last) or None,
            dynamic_input_shapes=shapes or None,
        )
        return place.read_bytes() if is_changed else model

"""Sessions of onnxruntime that write the graph they would run, and the parts of onnxruntime that made it.

Runs in the guarded process. onnxruntime has no interface that says what its optimizer did; its log has: a line for each
graph transformer (https://github.com/microsoft/onnxruntime/pull/17819), on file descriptor 2. With the names from the
log, sessions in which all but the first of them are disabled give the graph between two of them. A transformer made of
rules does not say which of them fired: those are found by leaving out one after the other.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from onnxjson.passes.stages import READING, PartStage

Level = Literal["basic", "extended", "layout", "all"]
"""The levels of onnxruntime that change a graph; each has those before it."""

RULES: Final = (
    "EliminateIdentity",
    "EliminateSlice",
    "UnsqueezeElimination",
    "EliminateDropout",
    "ExpandElimination",
    "CastElimination",
    "CastChainElimination",
    "PreShapeNodeElimination",
    "NoopElimination",
    "DivMulFusion",
    "FuseReluClip",
    "GemmSumFusion",
    "GemmTransposeFusion",
    "NotWhereFusion",
    "ConvAddFusion",
    "ConvMulFusion",
    "ConvBNFusion",
    "Pad_Fusion",
    "MatMul_BatchNormalization_Fusion",
    "LabelEncoderFusion",
    "ClipQuantRewrite",
    "ReluQuantRewrite",
)
"""The rewrite rules of onnxruntime 1.31, in the order of onnxruntime/core/optimizer/graph_transformer_utils.cc."""

_MODIFIED: Final = re.compile(rb"GraphTransformer (\S+) modified: ([01]) with status: OK")
_RULE_BASED: Final = "_RuleBasedTransformer"

_REORDERING: Final = b"Reorder"
"""How the operators begin that change layouts."""


class Report(NamedTuple):
    """A session that wrote its graph."""

    model: bytes
    transformers: tuple[str, ...]
    """All that ran, in the order of their first turn."""
    modified: tuple[str, ...]
    """Those that changed the graph, in that order."""


class Sessions:
    """Sessions for one model with the same settings.

    Args:
        model: serialised.
        folder: where files can be written.
        level: how much is optimised.
        disabled: graph transformers and rules that never run.
        settings: of the session, such as ``optimization.enable_gelu_approximation``.
    """

    def __init__(
        self,
        model: bytes,
        folder: Path,
        level: Level,
        disabled: Iterable[str] = (),
        settings: dict[str, str] | None = None,
    ) -> None:
        self._model = model
        self._place = folder / "optimized.onnx"
        self._level = level
        self._disabled = list(disabled)
        self._settings = settings or {}

    def optimized(self, without: Iterable[str] = ()) -> bytes:
        """The serialised graph as onnxruntime would run it, `without` some transformers or rules."""
        self._run([*self._disabled, *without], severity=3)
        return _steady(self._place.read_bytes())

    def reported(self) -> Report:
        """The graph, and who made it."""
        log = self._place.with_suffix(".log")
        with _captured(log):
            self._run(self._disabled, severity=0)
        turns = [(name.decode(), changed == b"1") for name, changed in _MODIFIED.findall(log.read_bytes())]
        transformers = dict.fromkeys(name for name, _ in turns)
        modified = dict.fromkeys(name for name, changed in turns if changed)
        return Report(_steady(self._place.read_bytes()), tuple(transformers), tuple(modified))

    def names(self) -> list[str]:
        """The graph transformers that run, whether they change anything or not, then all rules."""
        return [*self.reported().transformers, *RULES]

    def stages(self) -> Iterator[PartStage]:
        """The graph after each transformer that changed it, and within those made of rules after each rule.

        What a part is said to have done is what it adds to those before it. The last stage is the whole result.
        """
        report = self.reported()
        # What is left when every transformer is disabled: local functions are inlined, opsets added, metadata lost.
        last = self.optimized(report.transformers)
        yield PartStage(READING, last)
        for count, name in enumerate(report.modified, 1):
            later = [each for each in report.transformers if each not in report.modified[:count]]
            whole = self.optimized(later) if count < len(report.modified) else report.model
            if name.endswith(_RULE_BASED):
                for stage in self._rules(later, whole, last):
                    last = stage.model
                    yield stage
            if _differ(whole, last):
                last = whole
                yield PartStage(name, whole)

    def _rules(self, later: list[str], whole: bytes, before: bytes) -> Iterator[PartStage]:
        """What each rule of the last transformer adds to those before it."""
        candidates = [rule for rule in RULES if rule not in self._disabled]
        fired = self._fired(candidates, later, whole)
        for count, rule in enumerate(fired, 1):
            idle = [each for each in candidates if each not in fired[:count]]
            made = self.optimized([*later, *idle])
            if _differ(made, before):
                before = made
                yield PartStage(rule, made)

    def _fired(self, rules: list[str], later: list[str], whole: bytes) -> list[str]:
        """Those of `rules` without which the result is another one; most are ruled out together."""
        if not rules or not _differ(self.optimized([*later, *rules]), whole):
            return []
        middle = len(rules) // 2
        if not middle:
            return rules
        return [*self._fired(rules[:middle], later, whole), *self._fired(rules[middle:], later, whole)]

    def _run(self, disabled: list[str], severity: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(
            onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{self._level.upper()}"
        )
        options.optimized_model_filepath = str(self._place)
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = severity
        options.log_verbosity_level = 1 if severity == 0 else 0
        for key, value in self._settings.items():
            options.add_session_config_entry(key, value)
        self._place.unlink(missing_ok=True)
        session: Any = onnxruntime.InferenceSession
        session(self._model, options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled or None)


def _steady(model: bytes) -> bytes:
    """The model with names for the nodes that change layouts that are the same each time.

    onnxruntime numbers them in the order of addresses in memory.
    """
    from onnx import ModelProto

    if _REORDERING not in model:
        return model
    proto = ModelProto.FromString(model)
    reordering = [node for node in proto.graph.node if node.op_type.encode().startswith(_REORDERING)]
    taken = {node.name for node in proto.graph.node} - {node.name for node in reordering}
    for number, node in enumerate(reordering):
        name = f"{node.op_type}_{number}"
        node.name = name if name not in taken else f"{name}_layout"
    return bytes(proto.SerializeToString())


def _differ(one: bytes, other: bytes) -> bool:
    """Whether two results of onnxruntime are two graphs; the order of their initializers may be any."""
    return one != other and _without_order(one) != _without_order(other)


def _without_order(model: bytes) -> bytes:
    from onnx import ModelProto

    proto = ModelProto.FromString(model)
    proto.graph.initializer.sort(key=lambda tensor: tensor.name)
    proto.graph.value_info.sort(key=lambda value: value.name)
    return bytes(proto.SerializeToString(deterministic=True))


@contextmanager
def _captured(place: Path) -> Iterator[None]:
    """Within the block, what is written to file descriptor 2 goes to a file; it may be any amount."""
    kept = os.dup(2)
    with place.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)

"""``python -m tests.patterns.counts [--models DIR] [onnxscript]``: matches of the rules of the package.

Prints, for each rule, its matches in the models of ``tests/models`` and of DIR. With the word onnxscript, the matches
of the same fusions are counted beside those of onnxscript's rewriter, in the same models and in the case of each rule;
exits with 1 if a difference has no explanation here.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import onnx
from onnxscript import ir

import onnxjson
from onnxjson.model.document import Model
from onnxjson.patterns.rule_files import SHIPPED, read_rules
from onnxjson.patterns.searching import find
from tests.patterns.laws import MODELS
from tests.patterns.test_rules import CASES, model_of

RULES: Final = {rule.id: rule for rule in read_rules(SHIPPED)}

FUSIONS: Final = {
    "Gelu with erf": ("gelu-erf", "ort_fusions.erfgelu:rules ort_fusions.gelu:_erf_rule"),
    "Gelu with tanh": ("gelu-tanh", "ort_fusions.gelu:_tanh_rule"),
    "LayerNormalization": ("layer-norm-plain", "rules.fusion._layer_norm:_layer_norm_rule"),
    "RMS norm": ("rms-norm", "rules.fusion._rms_normalization:rms_normalization_ruleset"),
    "rotary embedding": ("rotary-embedding", "rules.fusion._rotary_embedding:rotary_embedding_rules"),
    "bias and Gelu": ("bias-gelu", "ort_fusions.bias_gelu:bias_gelu_rules"),
    "attention": ("attention attention-mask", "ort_fusions.sdpa:sdpa_rules"),
    "skip and LayerNormalization": (
        "skip-layer-norm", "ort_fusions.skip_normalization:skip_layer_normalization_ruleset",
    ),
    "Conv and BatchNormalization": ("conv-batch-norm", "rules.common._fuse_batchnorm:fuse_batchnorm_into_conv_rule"),
    "Conv and Mul": ("conv-scale", "rules.common._fuse_conv_affine:conv_affine_fusion_rule"),
    "MatMul and Add": ("matmul-add", "rules.common._matmul_add_to_gemm:matmul_add_to_gemm_rule"),
    "Transpose of Transpose": ("double-transpose", "rules.common._basic_rules:transpose_transpose_rule"),
    "Reshape of Reshape": ("double-reshape", "rules.common._basic_rules:reshape_reshape_rule"),
    "Unsqueeze of Unsqueeze": ("double-unsqueeze", "rules.common._basic_rules:unsqueeze_unsqueeze_rule"),
    "Cast of Cast": ("double-cast", "rules.common._basic_rules:cast_cast_rule"),
    "Cast to the same": ("cast-to-same", "rules.common._basic_rules:no_op_cast_rule"),
    "Relu of Relu": ("double-relu", "rules.common._fuse_relus_clips:successive_relu_rule"),
    "Clip of Relu": ("relu-clip", "rules.common._fuse_relus_clips:successive_clip_relu_rule"),
    "HardSwish": ("hard-swish hard-sigmoid", "rules.common._fuse_hardswish:fuse_hardswish_rules"),
    "Dropout": ("dropout", "rules.common._no_op:rules"),
}  # fmt: skip
"""Fusions that both describe: our rules, and theirs as ``module:name``."""

_ATTENTION: Final = "onnxscript needs shapes of 4 dimensions that fit, which are not known here"
_SKIP: Final = "onnxscript needs equal shapes [B, S, D] of both inputs"

EXPLAINED: Final = {
    ("Gelu with tanh", "case gelu-tanh"): "onnxscript has x * (0.5 * (1 + tanh)) only",
    ("Gelu with tanh", "gpt2_dynamo.onnx"): "onnxscript has x * (0.5 * (1 + tanh)) only, not (0.5 * x) * ...",
    ("LayerNormalization", "case layer-norm-plain"): "onnxscript needs the factor, and keepdims written out",
    ("RMS norm", "case rms-norm"): "onnxscript needs keepdims and noop_with_empty_axes written out",
    ("rotary embedding", "case rotary-embedding"): "onnxscript also needs how cos and sin are computed",
    **{("attention", f"case {each}"): _ATTENTION for each in ("attention", "attention-mask")},
    ("attention", "encoder_ts.onnx"): _ATTENTION,
    ("attention", "bert_ts.onnx"): _ATTENTION,
    ("skip and LayerNormalization", "case skip-layer-norm"): "onnxscript needs 3 dimensions and a bias",
    ("skip and LayerNormalization", "encoder_dynamo.onnx"): _SKIP,
    ("skip and LayerNormalization", "encoder_ts.onnx"): _SKIP,
    ("skip and LayerNormalization", "bert_ts.onnx"): _SKIP,
    ("Conv and Mul", "case conv-scale"): "onnxscript also needs the Add of an offset",
    ("Transpose of Transpose", "case double-transpose"): "onnxscript needs perm written out",
    ("Unsqueeze of Unsqueeze", "case double-unsqueeze"): "onnxscript leaves negative axes",
    ("Cast of Cast", "case double-cast"): "onnxscript lists two safe pairs; ours is only a warning",
    ("Dropout", "case dropout"): "onnxscript needs the attribute of opsets before 12",
}  # fmt: skip
"""Why the counts of a fusion differ in a model, as onnxscript's source says."""


def their_rules(names: str) -> list[Any]:
    """Return rules of onnxscript by name."""
    import importlib

    found: list[Any] = []
    for name in names.split():
        module, _, attribute = name.partition(":")
        made = getattr(importlib.import_module(f"onnxscript.rewriter.{module}"), attribute)
        made = made() if callable(made) else made
        found += made.rules if hasattr(made, "rules") else [made]
    return found


def their_count(model: Model, rules: Sequence[Any]) -> int:
    """Return how often onnxscript's rewriter applies rules to a model."""
    from onnxscript.rewriter import RewriteRuleSet

    try:
        chosen = RewriteRuleSet(list(rules), commute=True)
    except ValueError:  # its copy of a pattern with alternatives fails
        chosen = RewriteRuleSet(list(rules))
    return chosen.apply_to_model(ir.serde.deserialize_model(onnxjson.to_proto(model)))


def sources(folder: Path | None) -> dict[str, Model]:
    """Return the models by name, those of ``tests/models`` first."""
    paths = sorted(MODELS.glob("*.onnx")) + (sorted(folder.rglob("*.onnx")) if folder else [])
    return {path.name: onnxjson.load(path) for path in paths}


def with_types(model: Model) -> Model:
    """Return the model with inferred types, which both sides then know."""
    return onnxjson.from_proto(onnx.shape_inference.infer_shapes(onnxjson.to_proto(model)))


def rule_table(models: dict[str, Model], say: Callable[[str], object]) -> dict[str, int]:
    """Print and return the matches of every rule."""
    totals = {}
    for name, rule in RULES.items():
        counts = {model: len(find(models[model], rule.pattern_text)) for model in models}
        totals[name] = sum(counts.values())
        where = ", ".join([f"{model.removesuffix('.onnx')} {count}" for model, count in counts.items() if count])
        say(f"{name:26}{totals[name]:6,}  {where}")
    return totals


def comparison(models: dict[str, Model], say: Callable[[str], object]) -> list[tuple[str, str]]:
    """Print the matches of both; return the differences without an explanation."""
    open_differences = []
    typed = {name: with_types(model) for name, model in models.items()}
    say(f"{'fusion':30}{'model':26}{'onnxjson':>9}{'onnxscript':>11}")
    for fusion, (ours, names) in FUSIONS.items():
        theirs = their_rules(names)
        cases = {f"case {each}": model_of(CASES[each].found, CASES[each].opset) for each in ours.split()}
        for name, model in (cases | typed).items():
            mine = {match.root for each in ours.split() for match in find(model, RULES[each].pattern_text)}
            other = their_count(model, theirs)
            if len(mine) == other == 0:
                continue
            why = EXPLAINED.get((fusion, name), "" if len(mine) == other else "?")
            say(f"{fusion:30}{name:26}{len(mine):9,}{other:11,}  {why}".rstrip())
            if why == "?":
                open_differences.append((fusion, name))
    return open_differences


def main(arguments: Sequence[str]) -> int:
    """Print the tables; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.patterns.counts")
    parser.add_argument("--models", type=Path, help="also count in the models of a folder")
    parser.add_argument("beside", nargs="?", choices=["onnxscript"], help="compare with onnxscript's rewriter")
    options = parser.parse_args(arguments)
    models = sources(options.models)
    if options.beside:
        return int(bool(comparison(models, print)))
    totals = rule_table(models, print)
    print(f"{len(totals)} rules, {sum(map(bool, totals.values()))} with matches, {sum(totals.values()):,} matches")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

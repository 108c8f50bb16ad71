"""The pass that breaks a model is named, and the rule within it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import onnxjson
from onnxjson import example
from onnxjson.editing.edits import Script
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.optimizing.passes.bisecting import Checks
from onnxjson.running.verification import Plan

WRONG = 13
"""Which of the twenty rules it is."""

EDITS = "".join(
    f'{{"edit": "set-attribute", "node": "/activation", "attribute": "alpha", "value": {value}}},\n'
    for value in [0.01] * (WRONG - 1) + [0.9] * (21 - WRONG)
)

SCRIPT = '{"format": "onnxjson-rewrite/1", "edits": [\n' + EDITS.rstrip(",\n") + "\n]}\n"

RULES = f"""
from onnxscript.rewriter import pattern

OPERATORS = [
    "Abs", "Acos", "Asin", "Atan", "Ceil", "Cos", "Erf", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Softmax",
    "Round", "Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt", "Tan",
]

def rule(name, wrong):
    def target(op, x):
        return getattr(op, name)(x)

    def replacement(op, x):
        return op.Sin(x) if wrong else getattr(op, name)(op.Identity(x))

    return pattern.RewriteRule(target, replacement, name=f"rule of {{name}}")

rules = [rule(name, number == {WRONG}) for number, name in enumerate(OPERATORS, 1)]
"""


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with Pipeline() as started:
        yield started


@pytest.fixture(scope="module")
def digits() -> onnxjson.Model:
    return onnxjson.from_proto(example.make_example())


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [("rules.py", RULES, f"{WRONG}: rule of Softmax"), ("edits.json", SCRIPT, f"{WRONG}: set-attribute")],
)
def test_a_planted_wrong_rule_among_twenty_is_named(
    file: str, text: str, name: str, pipeline: Pipeline, digits: onnxjson.Model, tmp_path: Path
) -> None:
    path = tmp_path / file
    path.write_text(text, encoding="utf-8")
    if path.suffix == ".json":
        assert len(Script.load(path).edits) == 20
    steps = [parse_step("onnxoptimizer"), parse_step(str(path))]
    made = list(pipeline.run(digits, steps))
    with Checks(digits, Plan()) as checks:
        culprit = checks.first_wrong(made)
        assert culprit is not None
        assert culprit.made.name == str(path)
        assert "of 3 runs" in culprit.reason
        found = checks.part(pipeline, culprit.made)
    assert (found.name, found.parts) == (name, 20)
    assert found.evaluations <= 6


def test_passes_that_keep_what_is_computed_are_no_culprits(pipeline: Pipeline, digits: onnxjson.Model) -> None:
    made = list(pipeline.run(digits, [parse_step("onnxoptimizer"), parse_step("onnxruntime")]))
    with Checks(digits, Plan()) as checks:
        assert checks.first_wrong(made) is None
        assert checks.evaluations == 1


def test_a_result_that_does_not_run_any_more_is_a_reason(pipeline: Pipeline, digits: onnxjson.Model) -> None:
    broken = onnxjson.to_proto(digits)
    broken.graph.node[0].op_type = "Frobnicate"
    with Checks(digits, Plan()) as checks:
        assert checks.reason(onnxjson.from_proto(broken)).startswith("no longer runs")


def test_a_pass_without_parts_is_all_that_can_be_named(
    pipeline: Pipeline, digits: onnxjson.Model, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "def optimize(model):\n    model.graph.node[1].attribute[0].f = 0.9\n    return model\n", encoding="utf-8"
    )
    (made,) = pipeline.run(digits, [parse_step(str(path))])
    with Checks(digits, Plan()) as checks:
        culprit = checks.first_wrong([made])
        assert culprit is not None
        assert checks.part(pipeline, culprit.made).name is None

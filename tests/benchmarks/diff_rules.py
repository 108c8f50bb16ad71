"""``python -m tests.benchmarks.diff_rules``: whether a diff agrees with the rules that an optimizer says it used.

An optimizer says by its log which of its rules changed a model. For each rule there is a change that the diff must
report in these models, and in no others: operators before and after, and words of its details.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import onnxjson
from onnxjson.diffing.events import Event
from tests.benchmarks.diff_cases import optimized
from tests.benchmarks.diff_environment import Environment
from tests.benchmarks.report import table
from tests.benchmarks.tools import HERE


class Sign(NamedTuple):
    """What a diff reports where a rule was used."""

    before: str
    """Operators, all in the nodes before."""
    after: str = ""
    """Operators, all in the nodes after."""
    kind: str = ""
    """Kind of the change; any if empty."""
    detail: str = ""
    only: bool = False
    """Whether there are no other operators."""


RULES: Final[dict[str, dict[str, tuple[Sign, ...]]]] = {
    "onnxslim": {
        "FusionGemm": (Sign("MatMul Add", "Gemm"),),
        "FusionGemmMul": (Sign("Mul", "Gemm", detail="Mul folded into weights of Gemm"),),
        "FusionPadConv": (Sign("Pad", kind="eliminated"),),
        "EliminationUnsqueeze": (Sign("Unsqueeze", "Unsqueeze", only=True),),
        "EliminationTransposeAsReshape": (
            Sign("Transpose", "Reshape", only=True),
            Sign("Transpose", kind="eliminated"),
        ),
        "EliminationReshape": (Sign("Reshape", kind="eliminated"), Sign("Reshape", "Reshape")),
        "EliminationTranspose": (Sign("Transpose", "Transpose"),),
    },
    "onnxscript": {
        "RemoveOptionalBiasFromConv": (Sign("Conv", kind="rewired"),),
        "RemoveOptionalBiasFromGemm": (Sign("Gemm", kind="rewired"),),
        "NormalizePadFormatConv": (Sign("Conv.auto_pad", kind="attribute-changed"),),
        "UnsqueezeUnsqueeze": (Sign("Unsqueeze", "Unsqueeze", only=True),),
        "TransposeTranspose": (
            Sign("Transpose", "Transpose", only=True),
            Sign("Transpose", kind="eliminated", only=True),
        ),
        "ReshapeReshape": (Sign("Reshape", kind="eliminated", only=True),),
        "Flatten2Reshape": (Sign("Flatten", "Reshape"),),
    },
    "ort-extended": {
        "GeluFusionL2": (Sign("Erf", "Gelu"),),
        "QuickGeluFusion": (Sign("Sigmoid Mul", "QuickGelu"),),
        "MatMulAddFusion": (Sign("MatMul Add", "Gemm"),),
        "ConvActivationFusion": (Sign("Conv", "FusedConv"),),
        "GemmActivationFusion": (Sign("Gemm", "FusedGemm"),),
        "SkipLayerNormFusion": (Sign("Add LayerNormalization", "SkipLayerNormalization"),),
        "SimplifiedLayerNormFusion": (Sign("ReduceMean", "SimplifiedLayerNormalization"),),
        "MatMulScaleFusion": (Sign("Mul MatMul", "FusedMatMul"), Sign("Div MatMul", "FusedMatMul")),
        "MatmulTransposeFusion": (Sign("Transpose MatMul", "FusedMatMul"),),
        "GatherSliceToSplitFusion": (Sign("Slice", "Split"), Sign("Gather", "Split")),
        "ConstantFolding": (Sign("", kind="folded"),),
    },
}
"""By optimizer, the rules that are compared, with the changes that each one causes."""


def applied(environment: Environment, optimizer: str, model: Path) -> set[str]:
    """Return the rules that an optimizer says it applied to a model."""
    run = environment.run(["-P", HERE / "optimizer_rules.py", optimizer, model.resolve()])
    return set(json.loads(run.strip().splitlines()[-1]))


def shows(event: Event, sign: Sign) -> bool:
    """Whether an event has what a sign describes."""
    before, _, after = event.pattern.partition(" -> ")
    sides = [
        {re.sub(r"^\d+ ", "", part).rpartition("::")[2].split()[0] for part in side.split("+") if part}
        for side in (before, after)
    ]
    wanted = set(sign.before.split()), set(sign.after.split())
    details = [each.what for member in event.members for each in member.details]
    return (
        (not sign.kind or sign.kind == event.kind)
        and all(side == want if sign.only else side >= want for side, want in zip(sides, wanted, strict=True))
        and (not sign.detail or any(each.startswith(sign.detail) for each in details))
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.diff_rules", description=__doc__)
    parser.add_argument("--models", type=Path, default=HERE.parent / "models", help="folder of exported models")
    parser.add_argument("--python", type=Path, help="interpreter of an environment that has the optimizers")
    parser.add_argument("--cache", type=Path, help="folder that keeps what the optimizers wrote")
    options = parser.parse_args(arguments)
    paths = sorted(options.models.glob("*.onnx"))
    rows, refused, unknown = [], list[str](), Counter[str]()
    agreed = compared = 0
    with tempfile.TemporaryDirectory(prefix="onnxjson-rules-") as folder:
        environment = Environment(options.python, options.cache or Path(folder))
        for optimizer, rules in RULES.items():
            said: dict[str, set[str]] = {}
            told: dict[str, tuple[Event, ...]] = {}
            by_name = {path.stem: path for path in paths}
            for case in optimized(optimizer, paths, environment, refused):
                assert case.plain is not None
                said[case.label] = applied(environment, optimizer, by_name[case.label])
                told[case.label] = onnxjson.diff(case.plain.base, case.plain.target).events
                print(".", end="", file=sys.stderr, flush=True)
            for rule, signs in rules.items():
                used = {name for name, found in said.items() if rule in found}
                seen = {name for name, events in told.items() if any(shows(e, s) for e in events for s in signs)}
                agreed += len(used & seen) + len(said.keys() - used - seen)
                compared += len(said)
                rows.append([optimizer, rule, *[str(len(each)) for each in (used & seen, used - seen, seen - used)]])
            unknown.update(f"{optimizer} {rule}" for found in said.values() for rule in found if rule not in rules)
    head = ["optimizer", "rule", "models: both say so", "only its log", "only the diff"]
    print(table("Rules of optimizers and changes of the diff", head, rows))
    print(f"\nthey agree in {agreed} of {compared} models and rules")
    print("".join(f"without a change of its own: {rule}, {count} models\n" for rule, count in unknown.most_common()))
    print("".join(f"refused: {line}\n" for line in refused), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

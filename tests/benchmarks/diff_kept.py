"""``python -m tests.benchmarks.diff_kept``: how many nodes that optimizers kept are paired, and nodes of a rewrite."""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import onnxjson
from tests.benchmarks.diff_cases import Sides, optimized
from tests.benchmarks.diff_environment import Environment
from tests.benchmarks.diff_mistakes import described
from tests.benchmarks.report import table
from tests.benchmarks.tools import HERE
from tests.diffing.judging import Score, pairs_of

OPTIMIZERS: Final = ("onnxslim", "onnxsim", "ort-basic", "ort-extended", "onnxoptimizer")

SCRAMBLED_GOAL: Final = 0.99
PLAIN_GOAL: Final = 0.998

REWRITES: Final = frozenset({"fused", "decomposed", "replaced", "layout-changed", "quantized"})
"""Kinds of events with nodes of both models."""


def measured(sides: Sides) -> tuple[Score, list[int], list[str]]:
    """Score of the pairs, nodes of each rewrite, and the mistakes described."""
    found = onnxjson.diff(sides.base, sides.target)
    pairs = pairs_of(found.alignment)
    members = [member for event in found.events if event.kind in REWRITES for member in event.members]
    sizes = [len(member.base) + len(member.target) for member in members if member.base and member.target]
    return sides.judge.score(pairs), sizes, list(described(sides.base, sides.target, sides.judge, pairs, 12))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.diff_kept", description=__doc__)
    parser.add_argument("--models", type=Path, default=HERE.parent / "models", help="folder of exported models")
    parser.add_argument("--python", type=Path, help="interpreter of an environment that has the optimizers")
    parser.add_argument("--cache", type=Path, help="folder that keeps what the optimizers wrote")
    parser.add_argument("--only", action="append", choices=OPTIMIZERS, help=", ".join(OPTIMIZERS))
    parser.add_argument("--mistakes", type=Path, metavar="FILE", help="write what was wrong, with its surroundings")
    options = parser.parse_args(arguments)
    rows, notes, refused = [], list[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="onnxjson-kept-") as folder:
        environment = Environment(options.python, options.cache or Path(folder))
        for optimizer in options.only or OPTIMIZERS:
            scores, sizes = [Score(), Score()], list[list[int]]([[], []])
            for case in optimized(optimizer, sorted(options.models.glob("*.onnx")), environment, refused):
                assert case.plain is not None
                for place, sides in enumerate((case.hidden, case.plain)):
                    score, found, mistakes = measured(sides)
                    scores[place] = scores[place].plus(score)
                    sizes[place] += found
                    if mistakes:
                        notes += [f"{optimizer}, {case.label}, {('scrambled', 'plain')[place]}: {score}", *mistakes]
                print(".", end="", file=sys.stderr, flush=True)
            rows.append([optimizer, str(scores[0].wanted), *map(_share, scores), *map(_size, sizes)])
    head = ["optimizer", "kept", "scrambled: precision, recall", "names as they are", "rewrites, median, mean", "same"]
    print(table(f"Kept nodes (goals: {SCRAMBLED_GOAL}, {PLAIN_GOAL}) and nodes of a rewrite", head, rows))
    print("".join(f"\nrefused: {line}\n" for line in refused), end="")
    if options.mistakes:
        options.mistakes.write_text("".join(f"{line}\n" for line in notes))
    return 0


def _share(score: Score) -> str:
    return f"{score.precision:.4f}, {score.recall:.4f}"


def _size(sizes: Sequence[int]) -> str:
    return f"{len(sizes)}, {statistics.median(sizes):g}, {statistics.mean(sizes):.2f}" if sizes else "0"


if __name__ == "__main__":
    sys.exit(main())

"""Results of a benchmark: a row for each model, variant and session, with its verdict."""

import math
from typing import Any, Literal

import msgspec

from onnxjson.model.display import visible
from onnxjson.running.model_run import percentile
from onnxjson.running.tasks import Settings
from onnxjson.running.values import badness, error_share
from onnxjson.running.verification import Verification

Verdict = Literal["same", "close", "differs", "fails", ""]
"""Outputs compared with the original: bit-identical, within tolerance, outside it, none; "" if not compared."""


class BenchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of one model, in one session."""

    model: str
    variant: str
    passes: tuple[str, ...] = ()
    is_exact: bool = True
    settings: Settings
    engine: str = ""
    """Name and version: ``onnxruntime 1.31.1``."""
    providers: tuple[str, ...] = ()
    nodes: int | None = None
    """Nodes in all graphs and functions."""
    parameters: int | None = None
    """Elements of initializers."""
    bytes: int | None = None
    """Size of the serialized model with all tensors in it."""
    macs: int | str | None = None
    """Multiply-accumulate operations of a run with the sizes of the benchmark; a formula, or None if not asked for."""
    verdict: Verdict = ""
    largest_difference: float | None = None
    """Largest absolute difference of an output element from the original, over all runs."""
    largest_share: float | None = None
    """The largest difference relative to the largest element of that output."""
    compared: int = 0
    """Number of compared runs, each with its own inputs."""
    scores: dict[str, float] = {}
    """Results of the user's script: "loss", "metric" and others."""
    times: tuple[float, ...] = ()
    starts: tuple[float, ...] = ()
    offline_starts: tuple[float, ...] = ()
    """Seconds to open it with the model optimized offline."""
    problem: str = ""
    """Why a value is missing; visible text."""

    @property
    def median(self) -> float | None:
        """Median of the timed runs, in seconds."""
        return percentile(self.times, 50)

    @property
    def p95(self) -> float | None:
        """95th percentile of the timed runs, in seconds."""
        return percentile(self.times, 95)

    @property
    def start(self) -> float | None:
        """Seconds, the median."""
        return percentile(self.starts, 50)

    @property
    def offline_start(self) -> float | None:
        """Seconds, the median."""
        return percentile(self.offline_starts, 50)

    @property
    def is_fine(self) -> bool:
        """Whether it ran, and computes the same if its passes promise that."""
        return not self.problem and self.verdict != "fails" and (self.verdict != "differs" or not self.is_exact)


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, in the order of the models and of their variants."""

    rows: tuple[BenchRow, ...]
    sizes: dict[str, dict[str, int]]
    rounds: int
    is_tuned: bool = False
    """Whether rows differ in session settings, and the best settings are reported."""
    is_interrupted: bool = False

    @property
    def best(self) -> dict[tuple[str, str], BenchRow]:
        """Fastest row (by median) of each model and variant, among those that are fine."""
        found: dict[tuple[str, str], BenchRow] = {}
        for row in self.rows:
            if row.median is not None and row.is_fine:
                key = row.model, row.variant
                found[key] = min(found.get(key, row), row, key=lambda each: each.median or 0.0)
        return found

    def original(self, row: BenchRow) -> BenchRow | None:
        """Return the row that the others of the model are compared with: its first one without passes."""
        return next((each for each in self.rows if each.model == row.model and not each.passes), None)

    def speedup(self, row: BenchRow) -> float | None:
        """Return the median time of the original divided by that of a row; None if one was not timed."""
        first = self.original(row)
        return first.median / row.median if first is not None and first.median and row.median else None

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of all scores, loss and metric first."""
        names = dict.fromkeys([name for row in self.rows for name in row.scores])
        return tuple(sorted(names, key=lambda name: {"loss": 0, "metric": 1}.get(name, 2)))


def verdict_fields(found: Verification) -> dict[str, Any]:
    """Return fields of a row from the comparison of a variant with its original."""
    verdicts = {run.verdict for run in found.runs}
    verdict: Verdict = "differs"
    problem = ""
    missing = [each.name for each in found.outputs if each.target_name is None]
    if missing:
        verdict, problem = "fails", f'it has no output "{visible(missing[0])}"'
    elif "failed" in verdicts:
        verdict, problem = "fails", next(run.problem for run in found.runs if run.problem)
    elif verdicts == {"equal"}:
        verdict = "same"
    elif "different" not in verdicts:
        verdict = "close"
    compared = [each.worst for each in found.outputs if each.worst is not None]
    worst = max(compared, key=badness, default=None)
    largest = [each.largest_absolute for each in compared if each.largest_absolute is not None]
    shares = [share for share in map(error_share, compared) if math.isfinite(share)]
    if worst is not None and worst.problem is not None and not problem:
        problem = f"an output has {worst.problem}"
    return {
        "verdict": verdict,
        "largest_difference": max(largest, default=None),
        "largest_share": max(shares, default=None),
        "compared": len(found.runs),
        "problem": problem,
    }

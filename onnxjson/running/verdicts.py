"""Results of a verification: what was compared, the verdict on each run, and what is not known."""

from typing import ClassVar, Literal

import msgspec

from onnxjson.model.display import listed, visible
from onnxjson.model.methods import Brief, Reported
from onnxjson.running.tasks import Compared
from onnxjson.running.values import EXACT, Comparison, Tolerance

Verdict = Literal["equal", "within-tolerance", "different", "failed", "not-compared"]
"""Verdict on a run: equal values, values within the tolerance, other values, a failure of one model, or no values: each
output is empty, or NaN or infinite everywhere.
"""


class OutputResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result for one output over all runs."""

    name: str
    """Name in the base."""
    target_name: str | None
    """Name in the target; None if it has no counterpart."""
    dtype: str = ""
    tolerance: Tolerance = EXACT
    compared: int = 0
    """Number of runs with values to compare: not empty, nor NaN or infinite everywhere in both models."""
    failed: int = 0
    """Number of these runs in which it is not close."""
    elements: int = 0
    worst: Comparison | None = None
    """Comparison of the worst run, with the greatest differences of all runs."""
    worst_run: int | None = None


class RunVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Verdict on one run of both models."""

    name: str
    """Source of its values: "seed 0", or the name of a folder."""
    sizes: dict[str, int]
    verdict: Verdict
    problem: str = ""


class Verification(Brief, Reported, msgspec.Struct, frozen=True, kw_only=True):
    """Result of a verification."""

    verdict_name: ClassVar = ".equal"

    runs: tuple[RunVerdict, ...]
    outputs: tuple[OutputResult, ...]
    engines: tuple[str, str]
    notes: tuple[str, ...] = ()
    """Further notes for the user; made visible."""
    is_interrupted: bool = False

    @property
    def failed(self) -> int:
        """Number of runs in which the results differ or a model fails."""
        return sum(run.verdict in ("different", "failed") for run in self.runs)

    @property
    def equal(self) -> bool:
        """Whether all outputs were compared, and are equal within the tolerance in all runs."""
        return bool(self.runs) and not self.failed and not self.uncompared

    @property
    def uncompared(self) -> tuple[str, ...]:
        """Names of outputs that no run compared, though none failed: nothing is known about them."""
        return () if self.failed else tuple([each.name for each in self.outputs if not each.compared])

    @property
    def doubt(self) -> str:
        """That some outputs were not compared, for the user; "" if all were."""
        names = listed([f'"{visible(name)}"' for name in self.uncompared])
        return f"nothing of {names} could be compared" if names else ""


def is_told(report: Compared) -> bool:
    """Whether two values had anything to compare; that both are absent is something."""
    return report.comparison.conclusive or report.dtypes == ("nothing", "nothing")

"""Results of a verification: what was compared, the verdict on each run, and what is not known."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, Literal

import msgspec

from onnxjson.model.brief import Brief
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.methods import Reported
from onnxjson.running.comparisons import EXACT, Comparison, Tolerance, badness, furthest, looser, tolerance_of
from onnxjson.running.coverage import Difference
from onnxjson.running.interfaces import Interface
from onnxjson.running.tasks import Compared

_SHOWN: Final = 5
"""Maximum number of constants that are named one by one."""

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
    def sizes(self) -> dict[str, list[int]]:
        """The sizes that runs had, each once, by the name of the dimension."""
        sizes: dict[str, dict[int, None]] = {}
        for run in self.runs:
            for name, size in run.sizes.items():
                sizes.setdefault(name, {})[size] = None
        return {name: [*of_runs] for name, of_runs in sizes.items()}

    @property
    def equal(self) -> bool:
        """Whether all outputs were compared, and are equal within the tolerance in all runs."""
        return bool(self.runs) and not self.failed and not self.uncompared

    @property
    def uncompared(self) -> tuple[str, ...]:
        """Names of outputs that no run could compare, although no run failed."""
        return () if self.failed else tuple([each.name for each in self.outputs if not each.compared])

    @property
    def doubt(self) -> str:
        """A text for the user that names outputs that were not compared; "" if all were compared."""
        names = listed([f'"{visible(name)}"' for name in self.uncompared])
        return f"nothing of {names} could be compared" if names else ""


def is_told(report: Compared) -> bool:
    """Whether two values had anything to compare; that both are absent is something."""
    return report.comparison.conclusive or report.dtypes == ("nothing", "nothing")


def verdict_on(outputs: Sequence[Compared]) -> Verdict:
    """Return the verdict on a run that has results for all outputs."""
    if not all(each.comparison.close for each in outputs):
        return "different"
    if not any(is_told(each) for each in outputs):
        return "not-compared"
    return "equal" if all(each.comparison.equal for each in outputs) else "within-tolerance"


def output_result(
    names: tuple[str, str], by_run: Mapping[int, Compared], tolerances: Mapping[str, Tolerance], least: Tolerance
) -> OutputResult:
    """Return the result for an output, from its comparisons by run; `least` is the least tolerance of floats."""
    if not by_run:
        return OutputResult(name=names[0], target_name=names[1])
    reports = list(by_run.values())
    worst_run, worst = max(by_run.items(), key=lambda each: badness(each[1].comparison))
    tolerance = tolerance_of(worst.dtypes, tolerances)
    return OutputResult(
        name=names[0],
        target_name=names[1],
        dtype=" / ".join(dict.fromkeys(worst.dtypes)),
        tolerance=tolerance if tolerance == EXACT else looser((tolerance, least)),
        compared=sum(is_told(each) for each in reports),
        failed=sum(not each.comparison.close for each in reports),
        worst=furthest([each.comparison for each in reports]),
        elements=sum(each.comparison.elements for each in reports),
        worst_run=worst_run,
    )


def notes_on(
    result: Verification, interface: Interface, differing: Mapping[str, Difference], amplifying: Iterable[str]
) -> Iterator[str]:
    """Yield notes on what two models do not share, on what was not compared, and on why outputs differ."""
    for one, other in interface.inputs:
        if one is None:
            yield f'only the target has the input "{visible(str(other))}"; it gets random values'
        elif other is None:
            yield f'only the base has the input "{visible(one)}"'
    for name in interface.added:
        yield f'only the target has the output "{visible(name)}"'
    renamed = [f'"{visible(one)}" is "{visible(other)}"' for one, other in interface.outputs if one != other]
    if renamed:
        yield f"outputs by structure: {', '.join(renamed[:5])}"
    for output in result.outputs:
        if output.name in result.uncompared:
            why = "is NaN or infinite everywhere" if output.elements else "has no elements"
            yield f'"{visible(output.name)}" {why} on these values, so nothing was compared; --input gives others'
    for name in amplifying:
        yield (
            f'"{visible(name)}" differs by rounding: the base itself changes as much when its inputs change '
            "in their last bits"
        )
    if not result.failed:
        yield from _hidden_constants(result, differing)
    if result.engines[0] != result.engines[1] and all(result.engines):
        yield f"the base was evaluated by {result.engines[0]}, the target by {result.engines[1]}"


def _hidden_constants(result: Verification, differing: Mapping[str, Difference]) -> Iterator[str]:
    """Yield notes on constants that differ though the outputs agree.

    Where optimizers scale a weight, most of its rows differ, and the outputs by rounding; that is not told.
    """
    is_same = all(each.worst is None or each.worst.equal for each in result.outputs)
    hidden = {name: each for name, each in differing.items() if is_same or 2 * len(each.rows) <= each.total}
    for name, (rows, total) in itertools.islice(hidden.items(), _SHOWN):
        which = "" if len(rows) == total else f": {listed([*map(str, rows)], 6)}"
        number = counted(total, "row") if len(rows) == total else f"{len(rows):,} of {total:,} rows"
        yield f'"{visible(name)}" differs in {number}, but has no effect in these runs{which}'
    if len(hidden) > _SHOWN:
        yield f"{counted(len(hidden) - _SHOWN, 'more constant')} differ, but have no effect in these runs"

"""What a benchmark compares, variants of a model and session settings; and its results, a row for each with a verdict.

::

    both=onnxoptimizer,onnxsim          passes, one after the other
    plain=@off                          the model as it is, in a session without optimization
    offline=onnxruntime{level=all}@off  optimized offline, so not again in the session
"""

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import ParameterError
from onnxjson.optimizing.passes import Step, parse_step
from onnxjson.optimizing.passes.catalogue import split_members
from onnxjson.running.comparisons import badness, error_share
from onnxjson.running.model_run import percentile
from onnxjson.running.tasks import Level, Settings
from onnxjson.running.verdicts import Verification

LEVELS: Final[tuple[Level, ...]] = get_args(Level)
_LEVEL: Final = re.compile(rf"@({'|'.join(LEVELS)})$")
_MODES: Final = ("sequential", "parallel")
_DEFAULT_PARALLEL: Final = 2
"""Default number of operators that run at once in parallel mode."""

PRESETS: Final = msgspec.json.decode(
    Path(__file__).with_name("presets.json").read_bytes(), type=dict[str, tuple[str, ...]]
)
"""Variants as `parse_variant` reads them, by the name of the set."""

_KEYS: Final = ("threads", "mode", "level", "parallel", "binding")
_SWITCH: Final = ("off", "on")

Verdict = Literal["same", "close", "differs", "fails", ""]
"""Outputs compared with the original: bit-identical, within tolerance, outside it, none; "" if not compared."""


class Variant(NamedTuple):
    """One way to optimize and run a model."""

    name: str
    steps: tuple[Step, ...] = ()
    level: Level | None = None
    """Optimization level of its session; None for that of the benchmark."""

    @property
    def is_exact(self) -> bool:
        """Whether it must compute the same as the original."""
        return all(step.subject.is_exact for step in self.steps)


def parse_variant(text: str) -> Variant:
    """Return the variant ``NAME=PASS,PASS...@LEVEL``; all but the name may be missing.

    Raises:
        ParameterError: the text is not a variant.
    """
    name, mark, rest = text.partition("=")
    if not mark or not name.strip() or "{" in name:
        raise ParameterError(
            f"{visible(text)} is not a variant; write NAME=PASS,PASS, such as both=onnxoptimizer,onnxsim"
        )
    level_match = _LEVEL.search(rest)
    passes = rest[: level_match.start()] if level_match else rest
    steps = tuple([parse_step(word) for word in split_members(passes) if word.strip()])
    level = next((each for each in LEVELS if level_match and level_match[1] == each), None)
    return Variant(name.strip(), steps, level)


ORIGINAL: Final = Variant("original")


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """Session settings to try in every combination; None for the settings of the benchmark."""

    threads: tuple[int, ...] | None = None
    modes: tuple[str, ...] | None = None
    levels: tuple[Level, ...] | None = None
    parallel: tuple[int, ...] = (_DEFAULT_PARALLEL,)
    """Numbers of operators that run at once, in parallel mode."""
    binding: tuple[bool, ...] | None = None

    def settings(self, base: Settings) -> list[Settings]:
        """Return all combinations, without duplicates."""
        combinations: dict[Settings, None] = {}
        modes = self.modes or (_MODES[bool(base.parallel)],)
        parallel = self.parallel if self.modes else (base.parallel or _DEFAULT_PARALLEL,)
        for threads, mode, level, binding in itertools.product(
            self.threads or (base.threads,), modes, self.levels or (base.level,), self.binding or (base.binding,)
        ):
            for count in parallel if mode == "parallel" else (0,):
                settings = msgspec.structs.replace(base, threads=threads, parallel=count, level=level, binding=binding)
                combinations[settings] = None
        return list(combinations)


def parse_grid(words: Sequence[str]) -> Grid:
    """Return the grid for words such as ``threads=1,2`` and ``mode=sequential,parallel``.

    Raises:
        ParameterError: a word is not a setting or has no valid value.
    """
    given: dict[str, list[str]] = {}
    for word in [part for each in words for part in each.split()]:
        key, mark, rest = word.partition("=")
        if not mark or key not in _KEYS:
            hint = suggest(key, _KEYS) or f"choose one of {', '.join(_KEYS)}"
            raise ParameterError(f"--tune: {visible(word)} is not NAME=VALUE,...; {hint}")
        values = [value for value in rest.split(",") if value]
        if not values:
            raise ParameterError(f"--tune: {key}= has no value to try")
        given.setdefault(key, []).extend(values)
    for key, choices in (("mode", _MODES), ("level", LEVELS), ("binding", _SWITCH)):
        for value in given.get(key, ()):
            if value not in choices:
                hint = suggest(value, choices) or f"choose one of {', '.join(choices)}"
                raise ParameterError(f"--tune: {visible(value)} is not a {key}; {hint}")
    return Grid(
        threads=_counts(given, "threads"),
        modes=tuple(given["mode"]) if given.get("mode") else _MODES if given.get("parallel") else None,
        levels=tuple([level for level in LEVELS if level in given["level"]]) if given.get("level") else None,
        parallel=_counts(given, "parallel") or (_DEFAULT_PARALLEL,),
        binding=tuple([each == "on" for each in given["binding"]]) if given.get("binding") else None,
    )


def _counts(given: dict[str, list[str]], key: str) -> tuple[int, ...] | None:
    values = given.get(key)
    if not values:
        return None
    for value in values:
        if not value.isdecimal() or int(value) > 1024:
            raise ParameterError(f"--tune: {visible(value)} is not a number of threads; write {key}=1,2,4")
    return tuple(dict.fromkeys(map(int, values)))


def file_names(variants: Sequence[tuple[str, str]]) -> list[str]:
    """Return a distinct file name for each variant: ``m-int8-dynamic.onnx``."""
    names_of_files: dict[str, None] = {}
    for model, variant in variants:
        stem = Path(model).name.removesuffix(".json").removesuffix(".onnx")
        name = f"{stem}-{re.sub(r'[^A-Za-z0-9_.]+', '-', variant).strip('-') or 'variant'}"
        names = (f"{name}{'' if number == 1 else f'-{number}'}.onnx" for number in itertools.count(1))
        names_of_files[next(each for each in names if each not in names_of_files)] = None
    return list(names_of_files)


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
        """Whether it ran and was compared, and computes the same if its passes promise that."""
        fine = ("same", "close") if self.is_exact else ("same", "close", "differs")
        return not self.problem and self.verdict in fine


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
        fastest: dict[tuple[str, str], BenchRow] = {}
        for row in self.rows:
            if row.median is not None and row.is_fine:
                key = row.model, row.variant
                fastest[key] = min(fastest.get(key, row), row, key=lambda each: each.median or 0.0)
        return fastest

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


def verdict_fields(verification: Verification) -> dict[str, Any]:
    """Return fields of a row from the comparison of a variant with its original."""
    verdicts = {run.verdict for run in verification.runs}
    verdict: Verdict = "differs"
    problem = ""
    missing = [each.name for each in verification.outputs if each.target_name is None]
    if missing:
        verdict, problem = "fails", f'it has no output "{visible(missing[0])}"'
    elif "failed" in verdicts:
        verdict, problem = "fails", next(run.problem for run in verification.runs if run.problem)
    elif verification.doubt:
        verdict = ""
    elif verdicts == {"equal"}:
        verdict = "same"
    elif "different" not in verdicts:
        verdict = "close"
    compared = [each.worst for each in verification.outputs if each.worst is not None]
    worst = max(compared, key=badness, default=None)
    largest = [each.largest_absolute for each in compared if each.largest_absolute is not None]
    shares = [share for share in map(error_share, compared) if math.isfinite(share)]
    if worst is not None and worst.problem is not None and not problem:
        problem = f"an output has {worst.problem}"
    return {
        "verdict": verdict,
        "largest_difference": max(largest, default=None),
        "largest_share": max(shares, default=None),
        "compared": len(verification.runs),
        "problem": problem,
    }

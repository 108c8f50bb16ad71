"""What a benchmark found: a row for each model, variant and session."""

from typing import Literal

import msgspec

from onnxjson.running.model_run import percentile
from onnxjson.running.tasks import Settings

Verdict = Literal["same", "close", "differs", "fails", ""]
"""Bit for bit the same values as the original, close to them, not close, no values; "" where nobody looked."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of one model, in one session."""

    model: str
    """What it is called, such as its path."""
    variant: str
    passes: tuple[str, ...] = ()
    is_exact: bool = True
    """Whether its passes are to leave the numbers as they are."""
    settings: Settings
    engine: str = ""
    """With its version: ``onnxruntime 1.31.1``."""
    providers: tuple[str, ...] = ()
    nodes: int | None = None
    """In all graphs and functions."""
    parameters: int | None = None
    """Elements of initializers."""
    bytes: int | None = None
    """Of the saved model, all tensors in it."""
    verdict: Verdict = ""
    largest_difference: float | None = None
    """Of an element of an output to the original, over all runs."""
    largest_share: float | None = None
    """The same as a share of the greatest element of that output."""
    compared: int = 0
    """Runs, on values of their own, that were compared."""
    scores: dict[str, float] = {}
    """What the person's script says: "loss", "metric" ..."""
    times: tuple[float, ...] = ()
    """Seconds of each timed run."""
    starts: tuple[float, ...] = ()
    """Seconds to open the session, its optimisation included."""
    offline_starts: tuple[float, ...] = ()
    """Seconds to open it with the model that was optimised before."""
    problem: str = ""
    """Why something is missing; made visible."""

    @property
    def median(self) -> float | None:
        """Seconds of a run."""
        return percentile(self.times, 50)

    @property
    def p95(self) -> float | None:
        """Seconds that 95 of 100 runs stay below."""
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
        """Whether it ran, and computes the same if it is to."""
        return not self.problem and self.verdict != "fails" and (self.verdict != "differs" or not self.is_exact)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, models in their order and each with its variants in theirs."""

    rows: tuple[Row, ...]
    sizes: dict[str, dict[str, int]]
    """Of open dimensions, by model."""
    rounds: int
    """How often each was to be timed."""
    is_tuned: bool = False
    """Whether rows differ in session settings of which the best are wanted."""
    is_interrupted: bool = False

    @property
    def best(self) -> dict[tuple[str, str], Row]:
        """By model and variant the row of the least median, of those that are fine."""
        found: dict[tuple[str, str], Row] = {}
        for row in self.rows:
            key = row.model, row.variant
            before = found.get(key)
            if row.median is None or not row.is_fine:
                continue
            if before is None or before.median is None or row.median < before.median:
                found[key] = row
        return found

    def original(self, row: Row) -> Row | None:
        """The row that others of the model are held against: its first one without passes."""
        return next((each for each in self.rows if each.model == row.model and not each.passes), None)

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of all scores, loss and metric first."""
        names = dict.fromkeys([name for row in self.rows for name in row.scores])
        return tuple(
            sorted(names, key=lambda name: ("loss", "metric").index(name) if name in ("loss", "metric") else 2)
        )

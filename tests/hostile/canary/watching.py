"""Run commands on planted models, and search everything that they print and write."""

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tests.cli.running import run
from tests.hostile.box_lifted import box_lifted
from tests.hostile.canary.planting import Planter
from tests.hostile.canary.tripwires import Tripwires, acting_markdown, acting_markup, escapes, leaks

_BIGGEST = 1 << 24


@dataclass
class Row:
    """Results of one runner."""

    runner: str
    runs: int = 0
    refused: int = 0
    """Number of commands that ended with an error message, as they should on some models."""
    pairs: set[tuple[str, str]] = field(default_factory=set)
    """Payloads and their positions in the models."""
    errors: list[str] = field(default_factory=list)
    """Internal errors and unknown options: mistakes, but nothing of the model is executed."""
    hits: list[str] = field(default_factory=list)


class Watch:
    """Tripwires, a planter and the folder in which commands run."""

    def __init__(self, wires: Tripwires, top: Path) -> None:
        self.wires = wires
        self.planter = Planter(wires)
        self.folder = top
        self.rows: dict[str, Row] = {}
        self._top = top
        self._planted_before = 0

    def start(self, runner: Callable[["Watch"], None], number: int = 0) -> None:
        """Start a runner in a new folder, with models of a round, and with sandboxed processes outside the box."""
        self.planter.begin(number)
        self._planted_before = len(self.planter.planted)
        with box_lifted(), tempfile.TemporaryDirectory(dir=self._top) as folder, contextlib.chdir(folder):
            self.folder = Path(folder)
            runner(self)

    def row(self, runner: str) -> Row:
        """Return the row of a runner; the first call creates it."""
        return self.rows.setdefault(runner, Row(runner))

    def command(self, runner: str, *words: str | Path, page: str = "") -> None:
        """Run a command in this process; `page` is "html" or "markdown" if it prints a page."""
        result = run(*words)
        outputs = [result.stdout.encode("utf-8", "surrogateescape"), result.stderr.encode("utf-8", "surrogateescape")]
        marks = escapes(outputs)
        if page == "html":
            marks += acting_markup(result.stdout)
        elif page == "markdown":
            marks += acting_markdown(result.stdout)
        # Without this, an option that was renamed would count as refused, and the command would test nothing.
        is_outdated = result.exit_code == 2 and "No such" in result.stderr
        if is_outdated or result.exit_code == 70 or "Traceback" in result.stderr:
            self.row(runner).errors.append(f"{words[0]}: {result.stderr[-300:]}")
        self.look(runner, words[0:1], outputs, marks, refused=result.exit_code not in (0, 1, 16))

    def look(
        self,
        runner: str,
        what: Sequence[str | Path] = (),
        outputs: Iterable[bytes] = (),
        marks: Iterable[str] = (),
        *,
        refused: bool = False,
    ) -> None:
        """Count a run, and check whether it set off a tripwire."""
        row = self.row(runner)
        row.runs += 1
        row.refused += refused
        planted = islice(self.planter.planted.values(), self._planted_before, None)
        row.pairs |= {(each.payload.name, each.position) for each in planted}
        hits = [*self.wires.sprung(), *marks, *leaks([*outputs, *self._written()])]
        where = " ".join(map(str, what))
        row.hits += [f"{where}: {hit}" if where else hit for hit in self.planter.named(hits)]

    @property
    def hits(self) -> list[str]:
        """All hits, each with its runner."""
        return [f"{row.runner}: {hit}" for row in self.rows.values() for hit in row.hits]

    def _written(self) -> Iterable[bytes]:
        for path in self.folder.rglob("*"):
            if path.is_file() and path.stat().st_size < _BIGGEST:
                yield path.read_bytes()

    def __str__(self) -> str:
        names = f"{'payloads':>9} {'positions':>10} {'pairs':>8} {'errors':>7} {'hits':>5}"
        lines = [f"{'runner':<34} {'runs':>6} {'refused':>8} {names}"]
        for row in self.rows.values():
            payloads, positions = len({one for one, _ in row.pairs}), len({one for _, one in row.pairs})
            lines.append(
                f"{row.runner:<34} {row.runs:>6} {row.refused:>8} {payloads:>9} {positions:>10} "
                f"{len(row.pairs):>8} {len(row.errors):>7} {len(row.hits):>5}"
            )
        return "\n".join(lines)

"""``python -m tests.hostile.canary``: plant payloads in models, and run everything on them.

Prints a row for each runner: numbers of runs, of refused commands, of payloads and positions in the models, of pairs of
both, of errors, and of hits. Errors and hits are listed below the table. Exits with 1 if there is a hit. After one
round for each payload, every position has had every payload.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final
from unittest import mock

from tests.hostile.canary.evaluation import FIRED, called, every_call
from tests.hostile.canary.payloads import PAYLOADS
from tests.hostile.canary.positions import PARTS
from tests.hostile.canary.repositories import git_drivers
from tests.hostile.canary.runners import analyses, every_edit_kind, external, judgements, passes, reports, show, traces
from tests.hostile.canary.surroundings import in_a_folder_of_traps
from tests.hostile.canary.tripwires import Tripwires
from tests.hostile.canary.watching import Watch
from tests.hostile.canary.workbench import workbench

RUNNERS: Final[dict[str, Callable[[Watch], None]]] = {
    "show": show, "external": external, "reports": reports, "judgements": judgements, "edits": every_edit_kind,
    "analyses": analyses, "traces": traces, "passes": passes, "git": git_drivers, "workbench": workbench,
    "surroundings": in_a_folder_of_traps,
}  # fmt: skip

_EVALUATING: Final = ("symbolic-shapes", "onnxslim")
"""Passes in which every call is tried; the calls in `FIRED` are tried in all passes."""

_BATCH: Final = 20
"""Number of calls until the time is checked again."""


def _run(watch: Watch, names: Sequence[str], rounds: range, until: float) -> None:
    for number in rounds:
        for name in names:
            if time.monotonic() > until:
                return
            if name == "passes":
                watch.start(partial(passes, parts=(PARTS[number % len(PARTS)],), each_part=number > 0), number)
            elif name != "calls":
                watch.start(RUNNERS[name], number)
            elif number == 0:
                watch.start(partial(called, calls=FIRED))
    calls = islice(every_call(), len(FIRED), None) if len(rounds) > 1 and "calls" in names else iter(())
    while time.monotonic() < until and (batch := tuple(islice(calls, _BATCH))):
        watch.start(partial(called, calls=batch, names=_EVALUATING))


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 1 if there are hits, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.canary", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("runners", nargs="*", help=f"some of {', '.join((*RUNNERS, 'calls'))}; default: all")
    parser.add_argument(
        "--rounds", type=int, default=1, help=f"rounds, each with other payloads; {len(PAYLOADS)} for every pair"
    )
    parser.add_argument(
        "--first", type=int, default=0, help="the first round, to go on with an earlier run (default: 0)"
    )
    parser.add_argument("--minutes", type=float, default=60, help="start no further runs after this time (default: 60)")
    given = parser.parse_args(arguments)
    names = given.runners or [*RUNNERS, "calls"]
    if unknown := set(names) - {*RUNNERS, "calls"}:
        parser.error(f"there is no runner {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="onnxjson-canary-") as folder:
        user = {"XDG_STATE_HOME": f"{folder}/state", "XDG_CACHE_HOME": f"{folder}/cache", "COLUMNS": "80"}
        with mock.patch.dict(os.environ, user), Tripwires(Path(folder) / "wires") as wires:
            (Path(folder) / "work").mkdir()
            watch = Watch(wires, Path(folder) / "work")
            rounds = range(given.first, given.first + given.rounds)
            _run(watch, names, rounds, time.monotonic() + 60 * given.minutes)
            print(watch)
    for row in watch.rows.values():
        for error in dict.fromkeys(row.errors):
            print(f"error: {row.runner}: {error}")
    for hit in watch.hits:
        print(f"HIT {hit}")
    return 1 if watch.hits else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

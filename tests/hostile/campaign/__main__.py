"""``python -m tests.hostile.campaign [PART...]``: hostile models and failing machines; a row for each part."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.hostile.campaign.children import Outcome
from tests.hostile.campaign.commands import commands
from tests.hostile.campaign.crashers import crashers
from tests.hostile.campaign.guided import guided
from tests.hostile.campaign.journals import journals
from tests.hostile.campaign.machines import faults, killed_calls, kills, memory
from tests.hostile.campaign.terminals import terminals


class Part(NamedTuple):
    """A part of the campaign."""

    run: Callable[..., Iterator[Outcome]]
    cases: int
    """Cases of a whole campaign."""


PARTS = {
    "commands": Part(commands, 20_000), "faults": Part(faults, 3_000), "calls": Part(killed_calls, 3_000),
    "kills": Part(kills, 12_000), "memory": Part(memory, 800), "journals": Part(journals, 12_000),
    "crashers": Part(crashers, 5_000), "terminals": Part(terminals, 4_700), "guided": Part(guided, 8_000),
}  # fmt: skip

_SHOWN = 40


def main() -> int:
    """Run parts and print their rows and what was wrong; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.campaign", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--cases", type=int, help="number of cases of each part")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--minutes", type=float, default=1e9, help="time after which each part ends")
    options = parser.parse_args()
    print(f"{'part':12} {'cases':>8} {'passed':>8} {'worst s':>8} {'worst MB':>9}", flush=True)
    found: list[Outcome] = []
    for name in options.parts or PARTS:
        part, until = PARTS[name], time.monotonic() + 60 * options.minutes
        cases = passed = peak = 0
        seconds = 0.0
        for outcome in part.run(options.cases or part.cases, options.first):
            cases += 1
            passed += not outcome.problem
            seconds, peak = max(seconds, outcome.seconds), max(peak, outcome.peak)
            if outcome.problem:
                found.append(outcome)
                if len(found) <= _SHOWN:
                    print(f"  {outcome.name[:200]}\n    {outcome.problem[:600]}", flush=True)
            if time.monotonic() > until:
                break
        print(f"{name:12} {cases:8,} {passed:8,} {seconds:8.1f} {peak:9,}", flush=True)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

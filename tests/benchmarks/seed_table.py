"""The table of `onnxjson bench --preset baseline`, twice: ``python -m tests.benchmarks.seed_table MODEL... [-n RUNS]``.

Prints the first table, and in which columns the second one differs, which may only be those of time. Exits 1 if another
one differs, if a row was not compared with its model, or if one that is to leave the numbers as they are did not.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.rendering.bench_report import TIME_COLUMNS

DEFAULT: Final = [Path(__file__).parent.parent / "models" / f"mobile_{exporter}.onnx" for exporter in ("ts", "dynamo")]


class Table(NamedTuple):
    """What one run of the command gave."""

    text: str
    rows: list[dict[str, str]]
    exit_code: int


def table(models: Sequence[Path], runs: int, folder: Path) -> Table:
    """The table of these models, by one command.

    Raises:
        SystemExit: the command gave no table.
    """
    out = folder / "table.csv"
    command = [sys.executable, "-m", "onnxjson", "bench", *map(str, models), "--preset", "baseline", "-n", str(runs)]
    done = subprocess.run([*command, "-o", str(out)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    with out.open(encoding="utf-8", newline="") as file:
        return Table(done.stdout, list(csv.DictReader(file)), done.returncode)


def differing(one: Sequence[dict[str, str]], other: Sequence[dict[str, str]]) -> dict[str, int]:
    """In which columns two tables of the same rows differ, and in how many rows."""
    found: dict[str, int] = {}
    for first, second in zip(one, other, strict=True):
        for column, text in first.items():
            if second[column] != text:
                found[column] = found.get(column, 0) + 1
    return found


def problems(rows: Sequence[dict[str, str]]) -> list[str]:
    """What is wrong with rows: those that were not compared, or failed."""
    return [
        f"{row['model']}, {row['optimization']}: {row['problem'] or row['verified'] or 'not compared'}"
        for row in rows
        if row["problem"] or row["verified"] not in ("same", "close", "differs")
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it twice; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.seed_table", description=__doc__)
    parser.add_argument("models", metavar="MODEL", nargs="*", type=Path, help="the small ones of the tests if left out")
    parser.add_argument("-n", "--runs", type=int, default=20, help="timed runs of each variant")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="onnxjson-seed-table-") as folder:
        first, second = [table(options.models or DEFAULT, options.runs, Path(folder)) for _ in range(2)]
    print(first.text)
    found = differing(first.rows, second.rows)
    wrong = problems(first.rows)
    for text in wrong:
        print(text)
    print(f"{len(first.rows) - len(wrong)} of {len(first.rows)} rows verified")
    for column, count in found.items():
        what = "time" if column in TIME_COLUMNS else "NOT TIME"
        print(f"a second run differs in {column} ({what}): {count} of {len(first.rows)} rows")
    others = set(found) - set(TIME_COLUMNS)
    print(f"columns that are not time and differ: {', '.join(sorted(others)) or 'none'}")
    return int(bool(others or wrong or first.exit_code or second.exit_code))


if __name__ == "__main__":
    sys.exit(main())

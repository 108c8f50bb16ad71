"""``python -m tests.benchmarks.cut_rows --models DIR``: the share of rows with a cut name or type, by terminal size.

Counted are the rows that the workbench shows first of each model, and all rows of its list of nodes (``Z``).
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Final
from unittest import mock

from onnxjson.model.display import ELLIPSIS
from onnxjson.rendering.tables import plain
from tests.benchmarks.report import table
from tests.tui.benches import Bench, bench

SIZES: Final = ((80, 24), (120, 35), (160, 45))


def _cut(found: Bench) -> tuple[int, int]:
    """The rows with an ellipsis or a type without its sizes, and all rows."""
    rows, width = found.bench.nodes.rows, found.bench.nodes.scrollable_content_region.width
    texts = [plain(rows.line(number, width)) for number in range(len(rows))]
    return sum(ELLIPSIS in text or (text.rstrip().endswith("d") and " " in text[-6:]) for text in texts), len(texts)


async def _count(paths: list[Path], size: tuple[int, int]) -> list[tuple[int, int]]:
    """Cut rows and all rows of the first screens, and of the lists of nodes."""
    sums = [(0, 0), (0, 0)]
    for path in paths:
        async with bench(path, size) as found:
            for way in (0, 1):
                if way and found.bench.is_folded:
                    await found.press("Z")
                cut, count = _cut(found)
                sums[way] = sums[way][0] + cut, sums[way][1] + count
    return sums


def _share(cut: int, count: int) -> str:
    return f"{100 * cut / max(count, 1):.1f} % of {count:,}"


def main(arguments: list[str]) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cut_rows", description=__doc__)
    parser.add_argument("--models", type=Path, required=True, help="folder of ONNX files")
    given = parser.parse_args(arguments)
    paths = sorted(given.models.glob("*.onnx"))
    rows = []
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_STATE_HOME=folder):
        for size in SIZES:
            first, nodes = asyncio.run(_count(paths, size))
            rows.append((f"{size[0]}x{size[1]}", _share(*first), _share(*nodes)))
    print(table("Rows with a cut name or type", ["terminal", "first screen", "list of nodes"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m tests.benchmarks.page_opening [NODES]``: time until Chromium shows the page of a model.

Writes the page of a model of layers (100,000 nodes by default), opens it in a headless Chromium three times, and prints
the milliseconds until the page answers keys. Exits with 1 if the fastest opening takes 3 seconds or more.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.benchmarks.graphs import write
from tests.cli.running import run

_LIMIT: Final = 3000


def opening(page: Path, chromium: str, profile: Path) -> int:
    """Return the milliseconds from navigation until the script of a page is done."""
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom"]
    words += [f"--user-data-dir={profile}", "--virtual-time-budget=60000", page.as_uri()]
    done = subprocess.run([chromium, *words], check=True, timeout=120, capture_output=True, text=True)
    match = re.search(r'data-ready="(\d+)"', done.stdout)
    if match is None:
        raise SystemExit("the script of the page did not end")
    return int(match[1])


def main(arguments: list[str]) -> int:
    """Write the page, open it, print the times."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not installed", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write("layers", folder / "m.onnx", int(arguments[0]) if arguments else 100_000)
        run("show", folder / "m.onnx", "-o", folder / "m.html")
        times = [opening(folder / "m.html", chromium, folder / f"profile{number}") for number in range(3)]
    print(f"ready after {', '.join(map(str, times))} ms; at most {_LIMIT:,} are asked")
    return int(min(times) >= _LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m tests.hostile.campaign.guided [TARGET...] [--minutes M]``: coverage-guided fuzzing, target by target.

It needs atheris (the extra ``fuzz``). Each target runs in a process of its own; a finding, the bytes that break a law,
is kept in the folder of findings.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.hostile.campaign.children import Outcome

NAMES = ("load", "text", "resolver", "patch", "merge", "journal", "display", "pattern")


def guided(count: int, first: int = 0) -> Iterator[Outcome]:
    """The targets, with the same inputs every time: seeds and random changes of them; `count` in all."""
    from tests.hostile.campaign.targets import TARGETS, seeds

    for name in NAMES:
        known, rng = seeds(name), Random(first)
        for number in range(max(1, count // len(NAMES))):
            data = bytearray(rng.choice(known))
            for _ in range(rng.randrange(4) if number else 0):
                at = rng.randrange(len(data) + 1)
                data[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
            begin, problem = time.monotonic(), ""
            try:
                TARGETS[name](bytes(data))
            except Exception as error:
                problem = f"{type(error).__name__}: {error} for {bytes(data)!r}"
            yield Outcome(f"{name} {number}", problem, time.monotonic() - begin)


def fuzz(name: str, seconds: float, findings: Path) -> None:
    """Run one target in this process until the time is over; does not return."""
    import atheris

    with atheris.instrument_imports(include=["onnxjson", "onnxjson_tui"]):
        from tests.hostile.campaign.targets import TARGETS, seeds
    corpus = Path(tempfile.mkdtemp(prefix="onnxjson-corpus-"))
    for number, data in enumerate(seeds(name)):
        (corpus / str(number)).write_bytes(data)
    settings = (
        f"-max_total_time={seconds:.0f}",
        f"-artifact_prefix={findings}/{name}-",
        "-timeout=20",
        "-rss_limit_mb=2048",
    )
    atheris.Setup([sys.argv[0], *settings, "-max_len=8192", "-print_final_stats=1", str(corpus)], TARGETS[name])
    atheris.Fuzz()


def main() -> int:
    """Fuzz the targets, one after the other; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.campaign.guided", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--minutes", type=float, default=10, help="time for each target")
    parser.add_argument("--findings", type=Path, default=Path("findings"), help="folder of what breaks a law")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.findings.mkdir(exist_ok=True)
    if options.here:
        fuzz(options.targets[0], 60 * options.minutes, options.findings)
    print(f"{'target':10} {'runs':>12} {'seconds':>8} {'findings':>9}", flush=True)
    failed = False
    for name in options.targets or NAMES:
        words = ["--here", name, "--minutes", str(options.minutes), "--findings", str(options.findings)]
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "tests.hostile.campaign.guided", *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
        log = done.stdout + done.stderr
        runs = re.findall(r"number_of_executed_units: *(\d+)", log)
        found = len(list(options.findings.glob(f"{name}-*")))
        failed = failed or bool(found) or done.returncode != 0
        print(f"{name:10} {int(runs[-1]) if runs else 0:12,} {time.monotonic() - begin:8.0f} {found:9}", flush=True)
        if done.returncode:
            print(log[-3000:], flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

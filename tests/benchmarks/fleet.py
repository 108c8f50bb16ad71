"""How a fleet scales: overhead for each model, one against two workers, and a million stub models on 200 workers.

``python -m tests.benchmarks.fleet [--models DIR] [--count 2500] [--stubs 1000000] [--workers 200]``
"""

import argparse
import importlib
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from onnxjson.fleet import engine
from onnxjson.fleet.listing import Source
from onnxjson.fleet.results import Results, Row
from tests.fleet.conftest import make_models


def stub(batch: tuple[Source, ...]) -> list[Row]:
    """Do nothing."""
    return [Row(model=each.model, command="stub", status="ok", bytes=each.size) for each in batch]


def simulate(count: int, workers: int) -> None:
    """Print rate and memory of the engine with workers that have nothing to do."""
    distributed: Any = importlib.import_module("distributed")
    sources = [Source(f"s3://hub/{number // 1000}/model{number}.onnx", "m.onnx", 1000) for number in range(count)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with (
        tempfile.TemporaryDirectory() as folder,
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        results = Results(Path(folder, "rows.jsonl"), "stub")
        begin = time.monotonic()
        engine.run(client, sources, stub, results.add, lambda _: None, command="stub", most_failures=None)
        seconds = time.monotonic() - begin
        results.close()
        assert sum(1 for _ in results.rows()) == count
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"{count:,} stub models, {workers} workers in this process: {seconds:.1f} s, {count / seconds:,.0f} a second,"
    )
    print(
        f"{grown:,.0f} MB for scheduler, workers and rows; {len(sources) * 300 / 1e6:,.0f} MB of it the list of models"
    )


def fleet_seconds(folder: Path, jobs: int) -> float:
    """Seconds of the rows and of the whole run."""
    begin = time.monotonic()
    words = ["fleet", "check", str(folder), "--jobs", str(jobs), "--out", str(folder / f"rows{jobs}.jsonl")]
    subprocess.run([sys.executable, "-m", "onnxjson", *words], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, help="folder of models, used many times; default: small generated ones")
    parser.add_argument("--count", type=int, default=2500)
    parser.add_argument("--stubs", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if given.models is None:
            make_models(folder, given.count)
        else:
            found = sorted(given.models.rglob("*.onnx"))
            for number in range(given.count):
                place = folder / f"{number // 100}" / f"{number}.onnx"
                place.parent.mkdir(exist_ok=True)
                shutil.copy(found[number % len(found)], place)
        empty = folder / "none"
        make_models(empty, 1)
        start = fleet_seconds(empty, 1)
        shutil.rmtree(empty)
        times = {jobs: fleet_seconds(folder, jobs) - start for jobs in (1, 2)}
        work = sum(row.seconds for row in Results(folder / "rows1.jsonl", "check").rows())
        print(f"{given.count:,} models, `check`, without the start of {start:.1f} s ({os.cpu_count()} cores)")
        print(f"one worker {times[1]:.1f} s, two workers {times[2]:.1f} s: efficiency {times[1] / times[2] / 2:.0%}")
        print(f"beyond the work: {(times[1] - work) / given.count * 1000:.1f} ms a model")
    simulate(given.stubs, given.workers)


if __name__ == "__main__":
    main()

"""How a fleet scales: overhead for each model, one against two workers, and a million stub models on 200 workers.

``python -m tests.benchmarks.fleet [--models DIR] [--count 2500] [--stubs 1000000] [--workers 200]``
"""

import argparse
import asyncio
import importlib
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from onnxjson.cli.fleet_job import Job
from onnxjson.fleet import engine
from onnxjson.fleet.engine import Limits, end_processes
from onnxjson.fleet.listing import Source, list_models
from onnxjson.fleet.results import Results, Row
from tests.fleet.conftest import make_models


def stub(source: Source) -> Row:
    """Do nothing."""
    return Row(model=source.model, command="stub", status="ok", bytes=source.size)


async def be_workers(address: str, count: int) -> None:
    """Be some workers, until the scheduler ends."""
    dask, distributed = (importlib.import_module(name) for name in ("dask", "distributed"))
    # What 200 machines do beside the work is too much for one.
    quiet = {"worker.profile.enabled": False, "admin.tick.interval": "1h", "admin.system-monitor.interval": "1h"}
    dask.config.set({f"distributed.{name}": value for name, value in quiet.items()})
    found = [await distributed.Worker(address, nthreads=1, memory_limit=0) for _ in range(count)]
    for each in found:
        await each.finished()


def simulate(count: int, workers: int, processes: int = 8) -> None:
    """Print rate and memory of the engine with workers that have nothing to do, some in each of a few processes."""
    distributed: Any = importlib.import_module("distributed")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        quiet = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
        cluster = stack.enter_context(
            distributed.LocalCluster(n_workers=0, processes=False, protocol="tcp://", **quiet)
        )
        words = [sys.executable, "-m", "tests.benchmarks.fleet", "--be-workers", cluster.scheduler_address]
        for place in range(processes):
            number = len(range(place, workers, processes))
            line = [*words, "--workers", str(number)]
            stack.callback(subprocess.Popen(line, stderr=subprocess.DEVNULL).wait)
        client = stack.enter_context(distributed.Client(cluster))
        client.wait_for_workers(workers)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        sources = [Source(f"s3://hub/{number // 1000}/model{number}.onnx", "m.onnx", 1000) for number in range(count)]
        listed = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        results = Results(Path(folder, "rows.jsonl"), "stub")
        begin, cpu = time.monotonic(), time.process_time()
        engine.run(client, sources, stub, results.add, _print_progress, command="stub", most_failures=None)
        seconds, cpu = time.monotonic() - begin, time.process_time() - cpu
        results.close()
        assert len({row.model for row in results.rows()}) == count
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - listed
        client.shutdown()
    print(f"{count:,} stub models, {workers} workers: {seconds:.1f} s, {count / seconds:,.0f} a second")
    print(f"engine and scheduler: {cpu:.1f} s of CPU, {grown / 1024:,.0f} MB; list: {(listed - before) / 1024:,.0f} MB")


def _print_progress(progress: engine.Progress) -> None:
    print(f"\r{progress.done:,} done, {progress.rate:,.0f} a second", end="\n" * (progress.done == progress.total))


def fleet_seconds(sources: Sequence[Source], jobs: int) -> tuple[float, float]:
    """Seconds of a run of `check` once its processes are started, and those of the models one after the other."""
    job = Job("check", ("check", "--json"), has_report=True, limits=Limits())
    rows: list[Row] = []
    with engine.workers(jobs, None) as client:
        for some in (sources[: 4 * jobs], sources):
            rows.clear()
            begin = time.monotonic()
            engine.run(client, some, job.row, rows.extend, lambda _: None, command="check", most_failures=None)
            seconds = time.monotonic() - begin
        client.run(end_processes, all_=True)
    assert len(rows) == len(sources)
    return seconds, sum(row.seconds for row in rows)


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, help="folder of models, used many times; default: small generated ones")
    parser.add_argument("--count", type=int, default=2500)
    parser.add_argument("--stubs", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--be-workers", metavar="ADDRESS", help="used by the simulation itself")
    given = parser.parse_args()
    if given.be_workers:
        asyncio.run(be_workers(given.be_workers, given.workers))
        return
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
        sources = list_models([str(folder)])
        (one, work), (two, _) = (fleet_seconds(sources, jobs) for jobs in (1, 2))
        print(f"{len(sources):,} models, `check`, {os.cpu_count()} cores")
        print(f"one worker {one:.1f} s, two workers {two:.1f} s: efficiency {one / two / 2:.0%}")
        print(f"beyond the work: {(one - work) / len(sources) * 1000:.1f} ms a model")
    if given.stubs:
        simulate(given.stubs, given.workers)


if __name__ == "__main__":
    main()

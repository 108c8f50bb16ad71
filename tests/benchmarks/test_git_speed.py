"""The benchmark of what git waits for works, and measures what it says. No test asserts how fast anything is."""

import json
import subprocess
import sys

from tests.benchmarks.tools import HERE


def test_every_line_works_on_small_models() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.git_speed", "--nodes", "16", "--repeat", "1", "--json"]
    run = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    found = {name: runs for name, runs in json.loads(run.stdout).items() if "nbdime" not in name}
    assert len(found) == 12
    assert all(isinstance(runs, list) and len(runs) == 1 for runs in found.values()), found

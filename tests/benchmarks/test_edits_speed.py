"""The benchmark of edits works, and measures what it says. No test asserts how fast anything is."""

import json
import subprocess
import sys

from tests.benchmarks import edits_speed
from tests.benchmarks.tools import HERE


def test_every_job_is_made_on_a_small_model_and_undone() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.edits_speed", "--nodes", "2400", "--json"]
    run = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    found = {each["name"]: each for each in json.loads(run.stdout)}
    assert set(edits_speed.SINGLE) <= set(found)
    assert found["delete-node op:LeakyRelu"]["differences"] > 500
    assert found["24 attribute edits in one script"]["differences"] == 24
    assert found["deduplicating 480 tensors"]["differences"] >= 240
    refused = [name for name, each in found.items() if each["refused"]]
    assert all(name.startswith(("cast-tensor", "name-nodes")) for name in refused), refused


def test_single_edit_is_chosen_by_its_name() -> None:
    jobs = list(edits_speed.jobs(edits_speed.big(8), 8, ("set-attribute op:",)))
    assert [job().name for job in jobs] == ["set-attribute op:LeakyRelu alpha 0.2"]

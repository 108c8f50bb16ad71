"""The folder of a sandboxed job disappears, whatever the job left in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onnxjson import example
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.running.server_process import scratch_folder
from onnxjson.storage import api

NESTED = """
import os

def optimize(model):
    for _ in range(3000):
        os.mkdir("0")
        os.chdir("0")
    return model
"""


def test_a_pass_that_nests_folders_deeper_than_python_recurses_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nests.py").write_text(NESTED)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with Pipeline() as pipeline:
        assert (
            len(list(pipeline.run(api.from_proto(example.make_example()), [parse_step(str(tmp_path / "nests.py"))])))
            == 1
        )
    assert os.listdir(tmp_path / "temporary") == []


def test_closed_folders_are_removed_and_links_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "x").write_text("x")
    kept.chmod(0o755)
    with scratch_folder("onnxjson-test-") as folder:
        (folder / "0").mkdir()
        (folder / "1").write_text("x")
        for name in ("0", "a", "b"):
            (folder / "0" / name).mkdir()
            (folder / "0" / name / "link").symlink_to(kept)
            (folder / "0" / name).chmod(0)
        (folder / "link").symlink_to(kept)
        (folder / "0").chmod(0)
    assert not folder.exists()
    assert (kept / "x").read_text() == "x"
    assert kept.stat().st_mode & 0o777 == 0o755


HOLDS = """
import time
from onnxjson.running.server_process import scratch_folder
with scratch_folder("onnxjson-test-") as folder:
    (folder / "x").write_text("x")
    print(folder, flush=True)
    time.sleep(60)
"""


def test_folders_that_killed_processes_left_are_removed_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch_folder("onnxjson-test-") as held:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(tmp_path)}
        )
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        other, fresh = tmp_path / "other", tmp_path / "onnxjson-test-fresh"
        other.mkdir()
        fresh.mkdir()
        for each in (held, left, other):
            os.utime(each, (0, 0))
        with scratch_folder("onnxjson-test-"):
            assert left.exists()  # its process lives
        process.kill()
        process.communicate()
        os.utime(left, (0, 0))
        with scratch_folder("onnxjson-test-"):
            assert not left.exists()
            assert held.exists()
            assert other.exists()
            assert fresh.exists()

"""Law: a process that is killed while it saves leaves exactly the old or exactly the new content."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import onnxjson.storage.saving
from onnxjson.storage.backups import backups
from onnxjson.storage.identity import sha256_of
from onnxjson.storage.saving import save_file

KILLS = int(os.environ.get("ONNXJSON_KILLS", "150"))
"""Saves that are killed in the long part of the proof, with a backup and without; more by hand."""

SIZE = 4_000_000

# The saves are forked from one process, so that a kill costs the time of a save and not that of starting Python.
SAVER = """
import os, pathlib, sys
from onnxjson.storage.saving import save_file
from onnxjson.storage.backups import keep_backup
path = pathlib.Path(sys.argv[1])
backup = keep_backup if sys.argv[2:] else None
def write(sink):
    for _ in range(40):
        sink.write(new * (SIZE // 40))
def verify(temporary):
    assert temporary.stat().st_size == SIZE
while line := sys.stdin.buffer.readline():
    new = bytes([int(line)])
    child = os.fork()
    if not child:
        save_file(path, write, verify=verify, backup=backup)
        os._exit(0)
    sys.stdout.write(f"{child}\\n")
    sys.stdout.flush()
    # Waited for only when told: until then its number cannot become that of another process.
    sys.stdin.buffer.readline()
    _, status = os.waitpid(child, 0)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\\n")
    sys.stdout.flush()
""".replace("SIZE", str(SIZE))


@pytest.mark.parametrize("kills", [60, pytest.param(KILLS, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("with_backup", [False, True])
def test_a_killed_save_leaves_the_old_or_the_new_content(
    with_backup: bool, kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "models"
    folder.mkdir()
    path = folder / "model.onnx"
    content = bytes([0]) * SIZE
    path.write_bytes(content)
    dice = random.Random(20)
    killed = kept = left = 0
    package = Path(onnxjson.storage.saving.__file__).parents[2]
    command = [sys.executable, "-c", SAVER, str(path), *(["backup"] if with_backup else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=package) as saver:
        assert saver.stdin
        assert saver.stdout

        def save(letter: int, delay: float | None) -> int:
            """The exit status of a save of that letter, killed after `delay` seconds."""
            assert saver.stdin
            assert saver.stdout
            print(letter, file=saver.stdin, flush=True)
            child = int(saver.stdout.readline())
            if delay is not None:
                time.sleep(delay)
                os.kill(child, signal.SIGKILL)
            print(file=saver.stdin, flush=True)
            return int(saver.stdout.readline())

        durations = []
        for letter in range(1, 6):
            start = time.perf_counter()
            assert save(letter, None) == 0
            durations.append(time.perf_counter() - start)
            content = bytes([letter]) * SIZE
        longest = sorted(durations)[2] * 1.1
        for count in range(kills):
            letter = 1 + (content[0] + 1 + count % 3) % 255
            status = save(letter, dice.uniform(0, longest))
            killed += status == -signal.SIGKILL
            found = path.read_bytes()
            new = bytes([letter]) * SIZE
            assert found in (content, new), f"torn after kill {count}"
            assert status != 0 or found == new
            kept += found == content
            left += len(list(folder.iterdir())) > 1
            content = found
            for backup in backups(path):
                assert sha256_of(backup.file) == backup.sha256
        saver.stdin.close()
    assert bool(backups(path)) == with_backup
    assert killed > kills // 4
    assert kept > kills // 10
    assert left > kills // 20, "no kill struck in the middle of a save"
    save_file(path, lambda sink: sink.write(b"end"))
    assert [entry.name for entry in folder.iterdir()] == ["model.onnx"]

"""The tasks in Python do what they say, and onnxjson needs the fewest lines."""

from pathlib import Path

import pytest

from onnxjson.example import write_example
from tests.benchmarks.python_tasks import LIBRARIES, TASKS, Task, lines, run, table
from tests.docs.sessions import ROOT


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_task_is_done(task: Task, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library)
    write_example(tmp_path / "exported.onnx", unfused=True)
    write_example(tmp_path / "digits.onnx")
    monkeypatch.chdir(tmp_path)
    assert run(task, library, tmp_path)


def test_no_library_needs_fewer_lines_in_most_tasks() -> None:
    counts = [[lines(each) for each in task.spellings] for task in TASKS]
    assert sum(own <= min(others) for own, *others in counts) >= 10


def test_page_has_the_table() -> None:
    assert table() in (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")

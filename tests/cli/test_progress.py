"""What commands show on a terminal while they work."""

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from numpy import zeros

from onnxjson.cli import diff_output, output
from onnxjson.cli.paths import Side
from onnxjson.cli.reports import View
from onnxjson.model.document import Graph, Model, Node, StringStringEntry, Tensor
from onnxjson.model.tensors import from_numpy


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def _wait_for(text: str, screen: _Screen, *, since: int = 0) -> int:
    end = time.monotonic() + 30
    while text not in screen.getvalue()[since:]:
        assert time.monotonic() < end, screen.getvalue()
        time.sleep(0.01)
    return len(screen.getvalue())


def test_one_line_shows_the_innermost_work(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(output, "PATIENCE", 0.01)
    monkeypatch.setattr(output, "_REFRESH", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    with output.working("outer"):
        _wait_for("outer", screen)
        with output.working("inner") as update:
            start = _wait_for("inner", screen)
            update("renamed")
            end = _wait_for("renamed", screen, since=start)
            output.talk("a message")
        _wait_for("outer", screen, since=end)
    shown = screen.getvalue()
    assert "outer" not in shown[start:end]
    assert "\r\x1b[2Ka message\n\r\x1b[2K" in shown  # on a line of its own
    assert shown.endswith("\r\x1b[2K")
    assert output._in_progress == []


def test_a_line_of_progress_says_how_long_and_how_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen()
    counts = iter(range(0, 10**12, 10**9))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(output, "PATIENCE", 0.01)
    monkeypatch.setattr(output, "_REFRESH", 0.01)
    monkeypatch.setattr(output, "_moved_bytes", lambda: (next(counts), 0))
    monkeypatch.setenv("TERM", "xterm")
    with output.working("writing w.data"):
        _wait_for("writing w.data (0 s, 2.0 GB read)", screen)
    with output.working("writing w.data", reads=lambda: 10**11, writes=lambda: 5):
        _wait_for("writing w.data (0 s, 2.0 GB of 100.0 GB read)", screen)
    with output.working("comparing", counted=lambda: ", 3 of 9 nodes matched"):
        _wait_for("comparing (0 s, 3 of 9 nodes matched, 2.0 GB read)", screen)
    monkeypatch.undo()
    assert len(output._moved_bytes()) in (0, 2)  # Linux counts them


def test_diff_counts_the_nodes_that_it_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [Node(op_type=f"Op{n}", input=(f"v{n}",), output=(f"v{n + 1}",)) for n in range(3)]
    sides = [Side("m", Path("m"), Model(graph=Graph(node=tuple(each))), ()) for each in (nodes, nodes[:2])]
    told: list[Callable[[], str]] = []

    @contextmanager
    def working(_: str, reads: object = None, counted: Callable[[], str] = str) -> Iterator[None]:
        assert not counted()
        told.append(counted)
        yield

    monkeypatch.setattr(output, "working", working)
    options = diff_output.Options(View(collected=[]), False, 3, False, False, frozenset(), "exact", False, False)
    assert diff_output.compare(sides[0], sides[1], options)[0]
    assert told[0]() == ", 2 of 3 nodes matched"


def test_what_needs_more_memory_than_there_is_is_said_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = {"location": "w", "offset": "0", "length": str(4 << 50)}
    entries = tuple([StringStringEntry(key=key, value=value) for key, value in pairs.items()])
    tensor = Tensor(name="w", dims=(1 << 50,), data_type=1, data_location=1, external_data=entries)
    output.tell_memory([Model(graph=Graph(initializer=(tensor,)))], "running m.onnx")
    assert "warning: running m.onnx needs at least 4.5 PB of memory" in capsys.readouterr().err
    output.tell_memory([Model(graph=Graph(initializer=(from_numpy(zeros(1 << 20)),)))], "optimizing", copies=1 << 30)
    assert "warning: optimizing needs at least 9.0 PB of memory" in capsys.readouterr().err
    output.tell_memory([Model(graph=Graph())], "running m.onnx")
    assert not capsys.readouterr().err


def test_several_files_and_passes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(output, "PATIENCE", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    for name in output.numbered(["a", "b"]):
        for step in output.numbered(["prune", "onnxsim", "dedup"]):
            with output.working(f"running {step} on {name}"):
                _wait_for(f"running {step} on {name}", screen)
    assert "2 of 2: 3 of 3: running dedup on b" in screen.getvalue()
    for _ in output.numbered(["a"]):
        with output.working("running alone"):
            start = _wait_for("running alone", screen)
    assert "of 1" not in screen.getvalue()[start - 20 :]


def test_a_file_and_weights_are_measured(tmp_path: Path) -> None:
    model = Model(graph=Graph(initializer=(from_numpy(zeros(300, "float32")),)))
    (tmp_path / "m.onnx").write_bytes(b"12345")
    assert output.weight_bytes(model, model) == 2400
    with output.reading(tmp_path / "m.onnx"), output.writing(tmp_path / "m.onnx.json", model) as update:
        update("still writing")

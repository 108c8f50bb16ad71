"""Nothing in a model or next to it is executed: a part of the runs of ``python -m tests.hostile.canary``."""

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from onnxjson.optimizing.passes.catalogue import NAMES
from tests.hostile.canary.evaluation import FIRED, Call, called
from tests.hostile.canary.repositories import git_drivers
from tests.hostile.canary.runners import analyses, every_edit_kind, external, judgements, passes, reports, show, traces
from tests.hostile.canary.surroundings import MODULES, in_a_folder_of_traps, traps
from tests.hostile.canary.tripwires import SECRET, Tripwires, acting_markup, escapes, leaks
from tests.hostile.canary.watching import Watch
from tests.hostile.canary.workbench import workbench
from tests.tui import every_edit

_IN_TRAPS = (("show", "m.onnx"), ("optimize", "m.onnx", "-p", "symbolic-shapes", "--dry-run"))


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    (tmp_path / "work").mkdir()
    with Tripwires(tmp_path / "wires") as wires:
        yield Watch(wires, tmp_path / "work")


@pytest.mark.parametrize(
    "runner",
    [
        show,
        external,
        reports,
        judgements,
        analyses,
        traces,
        partial(git_drivers, quick=True),
        workbench,
        partial(in_a_folder_of_traps, commands=_IN_TRAPS),
    ],
    ids=lambda runner: (runner.func if isinstance(runner, partial) else runner).__name__,
)
def test_nothing_is_executed(runner: Callable[[Watch], None], watch: Watch) -> None:
    watch.start(runner)
    assert watch.hits == []
    for row in watch.rows.values():
        assert row.runs
        assert row.pairs, row.runner
        assert row.errors == []


def test_no_pass_executes_anything_and_most_come_to_an_end(watch: Watch) -> None:
    watch.start(passes)
    assert watch.hits == []
    assert set(watch.rows) == {f"pass {name}" for name in NAMES}
    # Passes that convert refuse models in which there is nothing to convert.
    assert sum(row.refused for row in watch.rows.values()) <= 5


def test_no_edit_executes_anything_and_none_is_refused(watch: Watch) -> None:
    watch.start(every_edit_kind)
    assert watch.hits == []
    kinds = {f"edit {type(edit).__name__}" for edit in every_edit.edits_for(watch.wires.marks.parent)}
    assert {name for name, row in watch.rows.items() if row.runs > row.refused} == kinds | {"edit with payloads"}


@pytest.mark.parametrize(
    ("name", "call"), [*[("symbolic-shapes", call) for call in FIRED], *[("onnxslim", call) for call in FIRED[1:3]]]
)
def test_strings_of_a_call_are_not_evaluated(name: str, call: Call, watch: Watch) -> None:
    watch.start(partial(called, calls=(call,), names=(name,)))
    assert watch.hits == []


def test_a_runner_that_evaluates_is_found_out(watch: Watch) -> None:
    def evaluating(watch: Watch) -> None:
        for position in ("a name", "a doc string"):
            with watch.planter.only(watch.planter.payloads[:3]):  # python, with each effect
                for _ in range(3):
                    eval(watch.planter.text(position))
        watch.look("evaluating", outputs=[SECRET.encode()])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the socket that the payload leaves open
        watch.start(evaluating)
    assert len(watch.hits) == 7
    assert "evaluating: python/plain/port in a doc string" in watch.hits
    assert "evaluating: the secret without a mark" in watch.hits


def test_outputs_are_searched() -> None:
    assert leaks([b"x", f"a{SECRET}canary000001".encode()]) == ["canary000001"]
    assert escapes([b"\x1b]52;c;canary000002\x07"]) == ["canary000002", r"raw b'\x07' without a mark"]
    assert acting_markup("<p title='&lt;canary000003&gt;'>&lt;canary000003&gt; onclick=canary000003()</p>") == []


def test_modules_of_the_current_folder_fire_where_a_python_imports_them(watch: Watch, tmp_path: Path) -> None:
    traps(watch.planter, tmp_path)
    names = ("json", "onnx", "plugin", "msgspec")
    for name in names:
        assert name in MODULES
        subprocess.run([sys.executable, "-S", "-c", f"import {name}"], cwd=tmp_path, check=True, timeout=60)
    fired = watch.planter.named(watch.wires.sprung())
    assert {name.split("/")[1] for name in fired} == set(names)


def test_a_program_next_to_a_model_fires_where_a_shell_starts_it(watch: Watch, tmp_path: Path) -> None:
    traps(watch.planter, tmp_path)
    subprocess.run(["sh", "-c", "./program"], cwd=tmp_path, check=True, stdin=subprocess.DEVNULL, timeout=60)
    assert watch.planter.named(watch.wires.sprung()) == ["program/file in the current folder"]

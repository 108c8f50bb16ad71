"""Keys that come in a burst mean what they would mean one by one."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from textual import events
from textual.keys import _character_to_key

from onnxjson_tui.shell import terminal
from tests.tui.benches import Bench, run
from tests.tui.sessions import saved
from tests.tui.test_form_screen import until


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return saved(tmp_path / "m.onnx")


async def burst(bench: Bench, *keys: str) -> None:
    """All keys at once, as from a slow line; a word of one letter is its character."""
    for key in keys:
        character = key if len(key) == 1 else None
        bench.app.post_message(events.Key(_character_to_key(key) if character else key, character))
    await bench.settle()
    await bench.pilot.pause(0.3)


def test_a_command_typed_in_a_burst_is_the_command(path: Path) -> None:
    async def flow(bench: Bench) -> None:
        for number in range(3):
            await burst(bench, *f":set-metadata key{number} value", "enter")
        entries = bench.session.model.metadata_props
        assert [entry.key for entry in entries] == ["key0", "key1", "key2"]

    run(path, flow)


def test_an_answer_typed_with_the_question_answers_it_and_edits_nothing(path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await burst(bench, *":set-metadata key value", "enter", "q", "s", "j")
        assert len(bench.session.history) == 1
        await until(bench, lambda: bench.app.screen is bench.bench)
        await burst(bench, "q", "D")
        assert bench.app.return_value == 0

    run(path, flow)


def test_what_is_typed_with_a_picker_searches_in_it(path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await burst(bench, "ctrl+p", *"leaky")
        assert "leaky" in bench.text
        await burst(bench, "escape")
        assert bench.app.screen is bench.bench

    run(path, flow)


Slow = Callable[[str, float], None]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """Makes a function take as long as it does on a big model."""

    def make(where: str, seconds: float) -> None:
        module, _, name = where.rpartition(".")
        owner = resolve_name(module)
        found = getattr(owner, name)

        def delayed(*given: Any, **named: Any) -> Any:
            time.sleep(seconds)
            return found(*given, **named)

        monkeypatch.setattr(owner, name, delayed)

    return make


def send_all(bench: Bench, *keys: str) -> None:
    """All keys at once, without waiting for what comes of them."""
    for key in keys:
        character = key if len(key) == 1 else None
        bench.app.post_message(events.Key(_character_to_key(key) if character else key, character))


DIALOGS = [
    ("onnxjson_tui.workbench.editing.value_choices", ("1", "w"), "Input 1 of Add"),
    ("onnxjson_tui.workbench.editing.slot_choices", ("w",), "Which input"),
    ("onnxjson_tui.names.offers.Offers.operators", ("a",), "Insert an operator"),
    ("onnxjson_tui.workbench.inspection.operator_lines", ("g", "D"), "Add"),
]


@pytest.mark.parametrize(("work", "keys", "title"), DIALOGS, ids=[each[0].rpartition(".")[2] for each in DIALOGS])
def test_keys_wait_for_the_dialog_that_a_key_before_them_asked_for(
    path: Path, slow: Slow, work: str, keys: tuple[str, ...], title: str
) -> None:
    slow(work, 0.6)

    async def flow(bench: Bench) -> None:
        await bench.press("j")
        send_all(bench, *keys, "d", "e", "j")
        await until(bench, lambda: re.search(r"looking .* \.\.\.   esc cancels", bench.footer) is not None)
        assert bench.app.screen is bench.bench
        await bench.settle()
        await bench.pilot.pause(0.3)
        assert bench.app.screen is not bench.bench
        assert title in bench.text
        assert bench.bench.pane == "nodes"
        assert bench.bench.here is not None
        assert bench.bench.here.position == 1
        fields = list(bench.app.screen.query("#dialog-input"))
        # A menu that fits the screen filters only after a slash.
        assert [each.value for each in fields] in ([], [""], ["dej"])  # type: ignore[attr-defined]

    run(path, flow)


def test_escape_drops_what_keys_wait_for_and_the_keys(path: Path, slow: Slow) -> None:
    slow("onnxjson_tui.workbench.editing.value_choices", 0.5)

    async def flow(bench: Bench) -> None:
        await bench.press("j")
        send_all(bench, "1", "w", "d", "d", "escape")
        await bench.pilot.pause(0.2)
        assert "cancelled: looking for values" in bench.footer
        await bench.pilot.pause(0.6)
        assert bench.app.screen is bench.bench
        assert not len(bench.session.history)

    run(path, flow)


def test_a_key_after_an_edit_that_takes_long_comes_after_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, slow: Slow
) -> None:
    monkeypatch.setattr("onnxjson_tui.shell.graph_screen.BIG", 1)
    slow("onnxjson_tui.session.session.Session.preview", 0.4)

    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("set-metadata first value")
        send_all(bench, *":set-metadata second value", "enter", "u")
        await bench.settle()
        await bench.pilot.pause(0.5)
        assert [entry.key for entry in bench.session.model.metadata_props] == ["first"]
        assert bench.session.history.position == 1
        assert len(bench.session.history) == 2

    run(path, flow)


def test_keys_that_were_typed_before_the_editor_came_answer_no_question_after_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, slow: Slow
) -> None:
    def edit(app: object, draft: Path, place: object = None) -> None:
        draft.write_text(draft.read_text().replace('"Relu"', '"Sin"'))

    monkeypatch.setattr(terminal, "edit_file", edit)
    slow("onnxjson.editing.round_trip.ModelEditing.new_draft", 0.3)

    async def flow(bench: Bench) -> None:
        send_all(bench, "E", "y", "y")
        await bench.pilot.pause(0.5)
        await bench.settle()
        assert "Make this change?" in bench.text
        assert not len(bench.session.history)

    run(path, flow)


def test_of_several_works_one_after_the_other_it_is_said_as_long_as_the_keys_wait(path: Path, slow: Slow) -> None:
    slow("onnxjson_tui.workbench.editing.slot_choices", 0.5)
    slow("onnxjson_tui.workbench.editing.value_choices", 1.0)

    async def flow(bench: Bench) -> None:
        await bench.press("j")
        send_all(bench, "1", "w")
        await until(bench, lambda: "looking for values ...   esc cancels" in bench.footer)
        job = bench.bench.jobs.running[0]
        assert job.keys_wait_since < job.started

    run(path, flow)

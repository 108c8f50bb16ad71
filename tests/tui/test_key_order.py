"""Keys that come in a burst mean what they would mean one by one."""

from pathlib import Path

import pytest
from textual import events
from textual.keys import _character_to_key

from tests.tui.benches import Bench, run
from tests.tui.sessions import saved


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return saved(tmp_path / "m.onnx")


async def burst(found: Bench, *keys: str) -> None:
    """All keys at once, as from a slow line; a word of one letter is its character."""
    for key in keys:
        character = key if len(key) == 1 else None
        found.app.post_message(events.Key(_character_to_key(key) if character else key, character))
    await found.settle()
    await found.pilot.pause(0.3)


def test_a_command_typed_in_a_burst_is_the_command(path: Path) -> None:
    async def flow(found: Bench) -> None:
        for number in range(3):
            await burst(found, *f":set-metadata key{number} value", "enter")
        entries = found.session.model.metadata_props
        assert [entry.key for entry in entries] == ["key0", "key1", "key2"]

    run(path, flow)


def test_an_answer_typed_with_the_question_answers_it_and_edits_nothing(path: Path) -> None:
    async def flow(found: Bench) -> None:
        await burst(found, *":set-metadata key value", "enter", "q", "s", "j")
        assert len(found.session.history) == 1
        assert found.app.screen is found.bench
        await burst(found, "q", "D")
        assert found.app.return_value == 0

    run(path, flow)


def test_what_is_typed_with_a_picker_searches_in_it(path: Path) -> None:
    async def flow(found: Bench) -> None:
        await burst(found, "ctrl+p", *"leaky")
        assert "leaky" in found.text
        await burst(found, "escape")
        assert found.app.screen is found.bench

    run(path, flow)

"""A person's hour in a minute: the real program in tmux, its screen read as text."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.editing.graphs import model_of
from tests.tui.programs import Tmux, tmux_or_skip
from tests.tui.sessions import opened, saved

MODEL = """g (float[N,4] x) => (float[N,4] y) <float[4] w = {1, 2, 3, 4}> {
    a = Relu(x)
    b = Add(a, w)
    c = LeakyRelu<alpha = 0.25>(b)
    y = Add(a, c)
}"""

EDITOR = """
import pathlib, sys
path = pathlib.Path(sys.argv[-1])
text = path.read_text()
note = pathlib.Path(__file__).with_suffix(".txt")
turn = int(note.read_text()) if note.exists() else 0
note.write_text(str(turn + 1))
path.write_text(text.replace(*%r[turn]))
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmux_or_skip()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return saved(tmp_path / "m.onnx", model_of(MODEL))


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-I", "-m", "onnxjson", "tui", *arguments]


def editor(folder: Path, *turns: tuple[str, str]) -> dict[str, str]:
    """The environment of an editor that replaces one text by another each time it is called."""
    script = folder / "editor.py"
    script.write_text(EDITOR % (turns,))
    return {"EDITOR": shlex.join([sys.executable, "-I", str(script)])}


def test_find_a_node_change_undo_redo_save_and_only_that_changed(model: Path, tmp_path: Path) -> None:
    before = tmp_path / "before.onnx"
    before.write_bytes(model.read_bytes())
    with Tmux(folder=tmp_path) as tmux:
        tmux.run(program("m.onnx"))
        tmux.expect("LeakyRelu")
        tmux.type("/leaky")
        tmux.press("Enter")
        tmux.expect("node 2  LeakyRelu")
        tmux.type(":set-attribute . alpha 0.5")
        tmux.press("Enter")
        tmux.expect("undo 1")
        tmux.type("u")
        tmux.expect("undone")
        tmux.press("C-r")
        tmux.expect("redone")
        tmux.press("C-s")
        tmux.expect("read back and compared")
        tmux.type("q")
        tmux.expect("ready$")
    result = run("diff", before, model)
    assert result.exit_code == 1
    assert "alpha" in result.stdout
    assert "0.25" in result.stdout
    assert "0.5" in result.stdout
    patch = run("diff", "--format", "patch", before, model).stdout
    assert patch.count("alpha") == 1, patch


def test_nodes_in_the_editor_mistakes_open_it_again_and_what_comes_back_is_one_step(
    model: Path, tmp_path: Path
) -> None:
    turns = editor(tmp_path, ('"op_type"', '"op_typ"'), ('"op_typ"', '"op_type"'), ("Relu", "Sigmoid"))
    with Tmux(folder=tmp_path, more=turns) as tmux:
        tmux.run(program("m.onnx"))
        tmux.expect("LeakyRelu")
        tmux.type("E")
        tmux.expect("1 mistake")
        tmux.type("e")
        tmux.expect("nothing changed")
        tmux.type("E")
        tmux.expect("Make this change?")
        tmux.press("Enter")
        tmux.expect("undo 1")
        tmux.expect("Sigmoid")
        tmux.press("C-s")
        tmux.expect("read back and compared")
        tmux.type("q")
        tmux.expect("ready$")
    with opened(model) as session:
        graph = session.model.graph
        assert graph is not None
        assert [node.op_type for node in graph.node] == ["Sigmoid", "Add", "LeakyRelu", "Add"]


def test_ctrl_z_gives_the_shell_back_and_fg_the_program(model: Path, tmp_path: Path) -> None:
    with Tmux(folder=tmp_path) as tmux:
        tmux.type("set -m")
        tmux.press("Enter")
        tmux.run(program("m.onnx"))
        tmux.expect("LeakyRelu")
        tmux.type(":set-metadata a b")
        tmux.press("Enter")
        tmux.expect("undo 1")
        tmux.press("C-z")
        tmux.expect("ready$")
        tmux.type("fg")
        tmux.press("Enter")
        tmux.expect("undo 1")
        tmux.type("u")
        tmux.expect("undone")

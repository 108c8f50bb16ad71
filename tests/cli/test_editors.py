"""``cli.processes``: the user's editor."""

from pathlib import Path

import pytest

from onnxjson.cli.processes import Editor, ProgramError, chosen_editor

FILE = Path("/d/m.onnx.json")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("vim", ["vim", "+normal! 7G3|", "/d/m.onnx.json"]),
        ("/usr/bin/nvim -n", ["/usr/bin/nvim", "-n", "+normal! 7G3|", "/d/m.onnx.json"]),
        ("vi", ["vi", "+7", "/d/m.onnx.json"]),
        ("nano -w", ["nano", "-w", "+7,3", "/d/m.onnx.json"]),
        ("emacsclient -t", ["emacsclient", "-t", "+7:3", "/d/m.onnx.json"]),
        ("code", ["code", "--wait", "--goto", "/d/m.onnx.json:7:3"]),
        ("code -w", ["code", "-w", "--goto", "/d/m.onnx.json:7:3"]),
        ("gvim", ["gvim", "-f", "+normal! 7G3|", "/d/m.onnx.json"]),
        ("subl", ["subl", "--wait", "/d/m.onnx.json:7:3"]),
        ("hx", ["hx", "/d/m.onnx.json:7:3"]),
        ("my-own --editor", ["my-own", "--editor", "/d/m.onnx.json"]),
    ],
)
def test_editor_opens_at_the_line_and_is_waited_for(words: str, command: list[str]) -> None:
    assert Editor(tuple(words.split())).command(FILE, (7, 3)) == command


@pytest.mark.parametrize(("words", "command"), [("vim", ["vim"]), ("code", ["code", "--wait"]), ("nano", ["nano"])])
def test_without_a_place_the_editor_gets_the_file_alone(words: str, command: list[str]) -> None:
    assert Editor((words,)).command(FILE, None) == [*command, "/d/m.onnx.json"]


def test_words_are_split_as_a_shell_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "")
    monkeypatch.setenv("EDITOR", "sh -c 'two words'")
    assert chosen_editor() == Editor(("sh", "-c", "two words"))


def test_no_editor_is_an_error_that_names_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ProgramError, match="set VISUAL or EDITOR"):
        chosen_editor()

"""``onnxjson undo-save``."""

from pathlib import Path

import pytest

from tests.cli.running import run


@pytest.fixture
def versions(binary: Path) -> list[bytes]:
    """The contents of `binary` before and after two edits."""
    found = [binary.read_bytes()]
    for words in (["set-attribute", "op:LeakyRelu", "alpha", "0.2"], ["set-name", "op:Conv", "renamed"]):
        assert run("rewrite", words[0], binary, *words[1:], "-i").exit_code == 0
        found.append(binary.read_bytes())
    return found


def test_undoing_goes_back_and_redoing_forward_and_both_say_what_changed(binary: Path, versions: list[bytes]) -> None:
    first = run("undo-save", binary)
    assert (first.exit_code, first.stdout, binary.read_bytes()) == (0, "", versions[1])
    assert first.stderr.startswith(f"restored {binary} (")
    assert first.stderr.endswith("), version 2 of 3: renamed nodes\n")
    assert run("undo-save", binary).stderr.endswith("version 1 of 3: LeakyRelu.alpha 0.2 -> 0.01 in /activation\n")
    assert binary.read_bytes() == versions[0]
    end = run("undo-save", binary)
    assert (end.exit_code, binary.read_bytes()) == (66, versions[0])
    assert "no older version" in end.stderr
    for content in versions[1:]:
        assert run("undo-save", "--redo", binary).exit_code == 0
        assert binary.read_bytes() == content
    assert "no newer version" in run("undo-save", "--redo", binary).stderr


def test_list_says_what_each_version_changed_and_which_is_present(binary: Path, versions: list[bytes]) -> None:
    lines = run("undo-save", binary, "--list").stdout.splitlines()
    assert [(line[:5], line.split("  ")[-1]) for line in lines[1:]] == [
        ("*  3 ", "renamed nodes"),
        ("   2 ", "LeakyRelu.alpha 0.01 -> 0.2 in /activation"),
        ("   1 ", "oldest"),
    ]
    assert run("undo-save", binary, "--to", "1").exit_code == 0
    assert binary.read_bytes() == versions[0]
    assert [line[0] for line in run("undo-save", binary, "--list").stdout.splitlines()] == [" ", " ", " ", "*"]
    for words, message in ((["--to", "9"], "no version 9"), (["--to", "1", "--redo"], "exclude each other")):
        refused = run("undo-save", binary, *words)
        assert refused.exit_code == 2
        assert message in refused.stderr
    assert "version 1 already" in run("undo-save", binary, "--to", "1").stderr


def test_a_version_that_is_no_model_is_said(text: Path) -> None:
    assert run("rewrite", "set-name", text, "op:Conv", "renamed", "-i").exit_code == 0
    text.write_text("{")
    assert "not readable as a model" in run("undo-save", text, "--list").stdout
    assert run("undo-save", text).exit_code == 0
    assert text.read_text() != "{"


def test_a_file_that_was_never_changed_in_place_is_code_66(text: Path) -> None:
    before = text.read_bytes()
    result = run("undo-save", text)
    assert (result.exit_code, result.stderr.count("\n"), text.read_bytes()) == (66, 1, before)

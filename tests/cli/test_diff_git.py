"""``onnxjson diff`` of revisions, as `git diff` takes them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from onnxjson.git.driver_lines import settings_for
from tests.cli.running import Result, command_line, run
from tests.cli.terminal import Terminal
from tests.git.conftest import Repository
from tests.git.small_models import binary, text
from tests.schemas.reports import diffs_schema

SCHEMA = Draft202012Validator(diffs_schema())


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """main: one, two (alpha 0.2); side, from one: theirs (beta 0.75)."""
    config = tmp_path / "gitconfig"
    config.write_text("[user]\n\tname = T\n\temail = t@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    repository = Repository(tmp_path / "repository")
    monkeypatch.chdir(repository.top)
    repository.commit("one", **{"m.onnx": binary(), "sub/n.onnx.json": text(), "read.me": b"text"})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("theirs", **{"m.onnx": binary(beta=0.75)})
    repository.git("checkout", "-q", "main")
    repository.commit("two", **{"m.onnx": binary(alpha=0.2), "read.me": b"other"})
    return repository


def changes(*words: str) -> list[tuple[str, str | None, str | None]]:
    result = run("diff", "--format", "json", "--git", *words)
    data = json.loads(result.stdout)
    SCHEMA.validate(data)
    assert result.exit_code == (
        1 if any(not each.get("diff", {"equal": False})["equal"] for each in data["files"]) else 0
    )
    return [(each["status"], each["old"], each["new"]) for each in data["files"]]


def test_schema_takes_failures_and_odd_names_and_refuses_what_is_never_printed(history: Any) -> None:
    name = b"\xff.onnx"
    (history.top / os.fsdecode(name)).write_bytes(binary())
    history.commit("odd name and a broken model", **{"m.onnx": b"broken"})
    printed = run("diff", "--format", "json", "HEAD~1", "HEAD").stdout
    data = json.loads(printed)
    SCHEMA.validate(data)
    assert printed.isascii()
    assert r"\udc" not in printed
    assert {each["status"]: "error" in each for each in data["files"]} == {"added": False, "changed": True}
    (changed,) = [each for each in data["files"] if each["status"] == "changed"]
    wrongs: list[dict[str, Any]] = [{"error": None}, {"old": None}, {"status": "moved"}, {"diff": {}}, {"more": 1}]
    for wrong in wrongs:
        with pytest.raises(ValidationError):
            SCHEMA.validate({"format": "onnxjson-diffs/1", "files": [changed | wrong]})


def test_words_mean_what_they_mean_to_git(history: Any) -> None:
    assert changes("HEAD~1", "HEAD") == [("changed", "HEAD~1:m.onnx", "HEAD:m.onnx")]
    assert changes("HEAD~1..") == [("changed", "HEAD~1:m.onnx", "HEAD:m.onnx")]
    assert changes("side..main") == [("changed", "side:m.onnx", "main:m.onnx")]
    base = history.git("merge-base", "main", "side")
    assert changes("main...side") == [("changed", f"{base[:12]}:m.onnx", "side:m.onnx")]
    assert changes() == []
    history.write("m.onnx", binary(alpha=0.3))
    assert changes() == [("changed", ":m.onnx", "m.onnx")]
    assert changes("--staged") == []
    history.git("add", "m.onnx")
    history.write("sub/n.onnx.json", text(alpha=0.3))
    assert changes() == [("changed", ":sub/n.onnx.json", "sub/n.onnx.json")]
    assert changes("--staged") == [("changed", "HEAD:m.onnx", ":m.onnx")]
    assert changes("--cached", "side") == [("changed", "side:m.onnx", ":m.onnx")]
    assert changes("HEAD") == [
        ("changed", "HEAD:m.onnx", "m.onnx"),
        ("changed", "HEAD:sub/n.onnx.json", "sub/n.onnx.json"),
    ]
    assert changes("HEAD", "--", "sub") == [("changed", "HEAD:sub/n.onnx.json", "sub/n.onnx.json")]


def test_without_the_option_a_revision_says_that_git_is_meant(history: Any) -> None:
    for words in (["HEAD~1", "HEAD"], ["HEAD~1..HEAD"], ["HEAD~1"], ["HEAD~1", "--", "m.onnx"], ["HEAD~1", "m.onnx"]):
        result = run("diff", *words)
        assert result.exit_code == 1, words
        assert "/graph" not in result.stdout
        assert "first: attribute alpha: 0.1 -> 0.2" in result.stdout, words


def test_added_removed_and_renamed_models_are_said(history: Any) -> None:
    history.git("mv", "m.onnx", "k.onnx")
    history.commit("three", **{"k.onnx": binary(alpha=0.25), "new.onnx.json": text(beta=3.0)})
    history.git("rm", "-q", "sub/n.onnx.json")
    history.commit("four")
    assert changes("HEAD~2", "HEAD") == [
        ("renamed", "HEAD~2:m.onnx", "HEAD:k.onnx"),
        ("renamed", "HEAD~2:sub/n.onnx.json", "HEAD:new.onnx.json"),
    ]
    assert changes("HEAD~2", "HEAD", "--", "k.onnx") == [("renamed", "HEAD~2:m.onnx", "HEAD:k.onnx")]
    assert changes("HEAD~1", "HEAD") == [("removed", "HEAD~1:sub/n.onnx.json", None)]
    assert run("diff", "HEAD", "HEAD~1").stdout == "sub/n.onnx.json added: 2 nodes\n"
    unified = run("diff", "HEAD", "HEAD~1", "--format", "unified").stdout
    assert unified.startswith("--- /dev/null\n+++ HEAD~1:sub/n.onnx.json\n@@ -0,0 +1,")
    assert run("diff", "HEAD", "HEAD~1", "--format", "markdown").stdout == "### `sub/n.onnx.json` added\n\n2 nodes.\n"


def test_paths_are_those_of_the_folder_one_is_in(history: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    history.write("m.onnx", binary(alpha=0.3))
    history.write("sub/n.onnx.json", text(alpha=0.3))
    monkeypatch.chdir(history.top / "sub")
    assert changes() == [("changed", ":m.onnx", "../m.onnx"), ("changed", ":sub/n.onnx.json", "n.onnx.json")]
    assert changes("--", "n.onnx.json") == changes("--", ".") == [("changed", ":sub/n.onnx.json", "n.onnx.json")]
    assert changes("--", "../m.onnx") == [("changed", ":m.onnx", "../m.onnx")]


def test_all_formats_are_there(history: Any) -> None:
    history.commit("three", **{"sub/n.onnx.json": text(alpha=0.3)})
    assert run("diff", "HEAD~2", "HEAD").stdout.count("attribute-changed  LeakyRelu.alpha") == 2
    assert run("diff", "HEAD~2", "HEAD", "--format", "unified").stdout.count('-       "alpha": 0.1') == 2
    assert run("diff", "HEAD~2", "HEAD", "--format", "markdown").stdout.count("\n| attribute-changed |") == 2
    refused = run("diff", "HEAD~2", "HEAD", "--format", "patch")
    assert refused.exit_code == 2
    assert "2 changed (m.onnx and sub/n.onnx.json); name one after --" in refused.stderr
    result = run("diff", "--format", "patch", "-o", "out.patch", "HEAD~2", "HEAD", "--", "m.onnx")
    assert result.exit_code == 1
    assert (history.top / "out.patch").stat().st_size > 100
    assert run("diff", "HEAD~2", "HEAD", "-o", "out.html").exit_code == 1
    page = (history.top / "out.html").read_text()
    assert page.count("<article") == page.count("</section>") == page.count('<li><a class="kind" href="#m') == 2
    assert run("diff", "HEAD~2", "HEAD", "-o", "out.md").exit_code == 1
    assert (history.top / "out.md").read_text().count("| attribute-changed |") == 2


def test_patch_of_a_revision_is_applied(history: Any) -> None:
    run("diff", "HEAD~1..HEAD", "--format", "patch", "-o", "change.json")
    history.write("old.onnx", binary())
    assert run("apply", "change.json", "old.onnx", "-o", "new.onnx").exit_code == 0
    assert (history.top / "new.onnx").read_bytes() == binary(alpha=0.2)


def test_model_that_cannot_be_read_hides_no_other(history: Any) -> None:
    history.commit("three", **{"a.onnx": binary()[:50], "m.onnx": binary(alpha=0.9)})
    history.commit("four", **{"a.onnx": binary()})
    result = run("diff", "HEAD~2", "HEAD~1")
    assert result.exit_code == 65
    assert "attribute alpha: 0.2 -> 0.9" in result.stdout
    files = json.loads(run("diff", "HEAD~1", "HEAD", "--format", "json").stdout)["files"]
    assert "is not an ONNX model" in files[0]["error"]


def test_what_is_nowhere_is_named(history: Any) -> None:
    for words, told in (
        (["nope..HEAD"], '"nope" is not a revision of this repository'),
        (["--git", "mian", "--"], 'did you mean "main"?'),
        (["HEAD", "--", "nope.onnx"], "nope.onnx is on neither side"),
        (["HEAD", "--", "../outside.onnx"], "../outside.onnx is outside the repository"),
    ):
        result = run("diff", *words)
        assert (result.exit_code, result.stdout) == (66, "")
        assert told in result.stderr
    assert run("diff", "HEAD", "--", "sub").stderr == "no models changed\n"
    for words in (["HEAD", "main", "side", "--"], ["--staged", "HEAD..main"], ["only-one"], []):
        assert run("diff", *words).exit_code in (2, 66), words
    history.git("checkout", "-q", "--orphan", "island")
    history.commit("alone")
    assert "have no common ancestor" in run("diff", "main...island").stderr


def test_model_in_conflict_is_compared_with_ours(history: Any) -> None:
    history.git("checkout", "-q", "side")
    history.commit("theirs", **{"m.onnx": binary(alpha=0.9)})
    history.git("checkout", "-q", "main")
    merged = subprocess.run(["git", "merge", "side"], cwd=history.top, capture_output=True, timeout=60, check=False)
    assert merged.returncode == 1
    assert run("diff", "--git").stderr == ":2:m.onnx and m.onnx are the same: 2 nodes\n"
    history.write("m.onnx", binary(alpha=0.9))
    assert changes() == [("changed", ":2:m.onnx", "m.onnx")]


def test_before_the_first_commit_everything_that_is_staged_is_new(history: Any) -> None:
    history.git("checkout", "-q", "--orphan", "island")
    assert changes("--staged") == [("added", None, ":m.onnx"), ("added", None, ":sub/n.onnx.json")]


def test_files_with_odd_names_stay_files(history: Any) -> None:
    history.write("-a.onnx", binary())
    history.write("HEAD", binary(alpha=0.5))
    assert run("diff", "--", "-a.onnx", "HEAD").exit_code == 1
    assert "-a.onnx -> HEAD" in run("diff", "--", "-a.onnx", "HEAD").stdout
    assert "HEAD -> m.onnx" in run("diff", "HEAD", "m.onnx").stdout


def test_alias_is_the_same_command_wherever_one_is(history: Any, tmp_path: Path) -> None:
    history.git("config", "alias.onnxdiff", settings_for(sys.executable)["alias.onnxdiff"])
    history.write("sub/n.onnx.json", text(alpha=0.3))
    history.git("worktree", "add", "-q", str(tmp_path / "other"), "side")
    (tmp_path / "other" / "sub" / "n.onnx.json").write_bytes(text(alpha=0.4))

    def alias(folder: Path, *words: str) -> Result:
        result = subprocess.run(
            ["git", "onnxdiff", *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
        return Result(result.returncode, result.stdout, result.stderr)

    for folder, value in ((history.top / "sub", 0.3), (tmp_path / "other" / "sub", 0.4)):
        result = alias(folder, "--", "n.onnx.json")
        assert result.exit_code == 1, result.stderr
        assert result.stdout.startswith(":sub/n.onnx.json -> n.onnx.json\n")
        assert f"0.1 -> {value}" in result.stdout
    assert alias(history.top, "HEAD").stdout.count("attribute-changed  ") == 1
    history.git("clone", "-q", "--bare", str(history.top), str(tmp_path / "bare.git"))
    history.git(
        "--git-dir",
        str(tmp_path / "bare.git"),
        "config",
        "alias.onnxdiff",
        settings_for(sys.executable)["alias.onnxdiff"],
    )
    assert "0.1 -> 0.2" in alias(tmp_path / "bare.git", "HEAD~1", "HEAD").stdout


@pytest.mark.parametrize(
    "words", [("HEAD~1:m.onnx", "HEAD:m.onnx"), ("HEAD~1:m.onnx", "m.onnx"), ("m.onnx", ":m.onnx")]
)
def test_two_models_by_their_names_are_compared_with_and_without_the_word_git(
    history: Any, words: tuple[str, str]
) -> None:
    history.write("m.onnx", binary(alpha=0.3))
    plain, with_word = run("diff", *words), run("diff", "--git", *words)
    assert plain.stdout.startswith(" -> ".join(words))
    assert (plain.exit_code, plain) == (1, with_word)


def test_colours_and_pager_are_those_of_git(history: Any, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nexec sed 's/^/PAGED /'\n")
    pager.chmod(0o755)
    history.git("config", "core.pager", f"'{pager}'")
    with Terminal("diff", "HEAD~1", "HEAD") as terminal:
        terminal.expect("PAGED ")
    piped = subprocess.run(command_line("diff", "HEAD~1"), capture_output=True, timeout=60, check=False).stdout
    assert b"\x1b[" not in piped
    history.git("config", "color.diff", "always")
    piped = subprocess.run(command_line("diff", "HEAD~1"), capture_output=True, timeout=60, check=False).stdout
    assert b"\x1b[" in piped


def test_filters_of_the_repository_are_not_run(history: Any, tmp_path: Path) -> None:
    mark = tmp_path / "sprung"
    for key in ("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.evil.command", "core.fsmonitor"):
        history.git("config", key, f"touch '{mark}'; cat")
    history.write(".gitattributes", b"* filter=evil diff=evil\n")
    history.write("m.onnx", binary(alpha=0.3))
    history.write("sub/n.onnx.json", text())  # only its time is another
    assert run("diff", "HEAD", "--").exit_code == 1
    assert run("diff", "--git").exit_code == 1
    assert not mark.exists()

"""A repository full of traps: what `onnxjson git install` set up shows and merges its models, and springs none."""

import shutil
from pathlib import Path

import onnxjson
from tests.cli.running import command_line
from tests.git.small_models import binary, text
from tests.git.traps import ATTRIBUTES, Traps

NAMES = (
    "m.onnx", "m.onnx.json", "-o.onnx", "--git.onnx.json", "-c import os.onnx", "$(touch sprung).onnx",
    "`touch sprung`.onnx.json", "a;touch sprung;.onnx", 'it\'s a "name".onnx', "two\nlines.onnx",
    "%A %O %P %L %%.onnx", "HEAD:m.onnx", "\x1b[31m\u202e\x1b]52;c;AAAA\x07.onnx.json", "folder with $HOME/-m.onnx",
)  # fmt: skip


SHOWING = (("show",), ("log", "-p", "-1"), ("diff", "HEAD~1", "topic"), ("diff", "--word-diff", "HEAD~1"))

GIT = shutil.which("git") or "git"


def set_up(top: Path, names: tuple[str, ...] = ("m.onnx",), rival: tuple[float, float] = (0.1, 0.75)) -> Traps:
    """Installed by the command itself; main changes alpha to 0.2, topic has the values of a rival."""
    repository = Traps(top)
    repository.write(".gitattributes", ATTRIBUTES)
    result = repository.call(*command_line("git", "install"))
    assert result.returncode == 0, result.stderr
    for branch, values in (("", (0.1, 0.5)), ("topic", rival), ("main", (0.2, 0.5))):
        if branch:
            repository.git("checkout", "-q", "-B", branch, "main")
        for name in names:
            repository.write(name, (text if name.endswith("json") else binary)(*values))
        repository.commit(f"{values}")
    return repository


def test_set_up_is_looked_at_and_taken_out_again(tmp_path: Path) -> None:
    repository = Traps(tmp_path / "r")
    repository.write("m.onnx", binary())
    for words in (("install",), ("doctor",), ("check-sync", "m.onnx"), ("check-inline", "m.onnx"), ("uninstall",)):
        result = repository.call(*command_line("git", *words))
        assert result.returncode == 0, (words, result.stdout, result.stderr)


def test_models_are_shown_and_merged_and_nothing_runs(tmp_path: Path) -> None:
    repository = set_up(tmp_path / "r", NAMES)
    for number, words in enumerate(SHOWING):
        some = NAMES[number::4] if number else NAMES  # git starts the same program for each, in the same way
        shown = repository.call(GIT, *words, "--", *some).stdout
        assert shown.count(b'"alpha": ') >= len(some), words
    for name in NAMES[2:6:3]:
        assert b'"alpha": 0.2' in repository.call(GIT, "blame", "--", name).stdout
        assert b'"alpha": 0.2' in repository.call(GIT, "grep", "--textconv", "alpha", "--", name).stdout
        assert repository.call(GIT, "onnxdiff", f"HEAD~1:{name}", f"HEAD:{name}").returncode == 1
    result = repository.call(GIT, "onnxdiff", "HEAD~1", "HEAD")
    assert result.returncode == 1
    assert result.stdout.count(b"attribute alpha: 0.1 -> 0.2") == len(NAMES)
    assert b"\x1b" not in result.stdout
    result = repository.call(GIT, "merge", "-q", "-m", "merged", "topic")
    assert result.returncode == 0, result.stderr
    for name in NAMES:
        assert onnxjson.load(repository.top / name) == onnxjson.loads(text(0.2, 0.75)), name


def test_conflicts_are_listed_and_settled_and_nothing_runs(tmp_path: Path) -> None:
    repository = set_up(tmp_path / "r", NAMES, (0.4, 0.5))
    result = repository.call(GIT, "merge", "topic")
    assert result.returncode == 1, result.stderr
    assert b"\x1b" not in result.stderr
    listed = repository.call(*command_line("conflicts"))
    assert listed.returncode == 16
    assert listed.stdout.count(b"/attribute/alpha") == len(NAMES)
    repository.call(GIT, "mergetool", "-y", "-t", "onnxjson")
    for name in NAMES:
        assert repository.call(*command_line("resolve", "--theirs", "--", name)).returncode == 0
        assert onnxjson.load(repository.top / name) == onnxjson.loads(text(0.4, 0.5)), name


def test_encoding_that_attributes_ask_for_is_no_code(tmp_path: Path) -> None:
    repository = set_up(tmp_path / "r")
    repository.write(
        ".gitattributes",
        b"* working-tree-encoding=evil filter=evil ident\n" + (repository.top / ".gitattributes").read_bytes(),
    )
    repository.write("m.onnx", binary(0.9))
    for words in (("diff",), ("status",), ("onnxdiff",), ("merge", "topic"), ("stash",)):
        repository.call(GIT, *words)

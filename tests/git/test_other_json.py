"""A file of another program named like a text, next to a model: git and every command leave it as it is."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import onnxjson
from onnxjson.git import installation
from onnxjson.git.unmerged_models import unmerged
from onnxjson.model.errors import OtherJsonError
from tests.cli.running import run
from tests.git.conftest import Repository
from tests.git.small_models import binary, text

VOICE = {
    "audio": {"sample_rate": 22050, "quality": "medium"},
    "espeak": {"voice": "en-us"},
    "inference": {"noise_scale": 0.667, "length_scale": 1},
    "phoneme_id_map": {chr(97 + number): [number] for number in range(26)},
    "num_symbols": 256,
}


def voice(**changes: object) -> bytes:
    """Such a file: on one line, longer than the lines that are cut in other broken texts."""
    return json.dumps(VOICE | {"long": "x" * 3000} | changes, indent=2).encode() + b"\n"


@pytest.fixture
def pair(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository with the drivers, a model and the file of the other program; the first is made, others are copies.

    The drivers are installed once, since that takes a second.
    """
    made = tmp_path_factory.getbasetemp() / "pair"
    if made.is_dir():
        shutil.copytree(made, repository.top, dirs_exist_ok=True)
        return repository
    installation.install(installation.target_of("local"))
    repository.commit("base", **{"m.onnx": binary(), "m.onnx.json": voice(), "n.onnx.json": text()})
    shutil.copytree(repository.top, made)
    return repository


def git(*words: str) -> tuple[int, str]:
    """The exit code and all output of a command of git that may fail."""
    result = subprocess.run(["git", *words], capture_output=True, check=False, text=True, timeout=60)
    return result.returncode, result.stdout + result.stderr


def test_git_shows_it_as_without_a_driver(pair: Repository) -> None:
    pair.write("m.onnx.json", voice(num_symbols=300))
    shown = git("diff", "--", "m.onnx.json")[1]
    assert shown == git("diff", "--no-textconv", "--", "m.onnx.json")[1]
    assert '-  "num_symbols": 256' in shown
    assert pair.git("show", "--textconv", "HEAD:m.onnx.json") == voice().decode().strip()


def test_comparison_of_models_leaves_it_out(pair: Repository) -> None:
    pair.write("m.onnx.json", voice(num_symbols=300))
    pair.write("m.onnx", binary(alpha=0.2))
    result = run("diff", "--git")
    assert result.exit_code == 1
    assert "first" in result.stdout
    assert "m.onnx.json" not in result.stdout
    assert "m.onnx.json is JSON of another program, left out" in result.stderr
    pair.write("n.onnx.json", voice())  # a model before: a difference that cannot be shown
    assert run("diff", "--git", "n.onnx.json").exit_code == 65


def branches(pair: Repository, ours: bytes, theirs: bytes) -> None:
    """Commit two versions; ours is the current one."""
    pair.git("checkout", "-q", "-b", "topic")
    pair.commit("theirs", **{"m.onnx.json": theirs, "m.onnx": binary(beta=0.75)})
    pair.git("checkout", "-q", "main")
    pair.commit("ours", **{"m.onnx.json": ours, "m.onnx": binary(alpha=0.2)})


def test_merge_is_that_of_lines(pair: Repository) -> None:
    branches(pair, voice(audio={"sample_rate": 1}), voice(num_symbols=300))
    assert git("merge", "-q", "--no-edit", "topic")[0] == 0
    assert (pair.top / "m.onnx.json").read_bytes() == voice(audio={"sample_rate": 1}, num_symbols=300)
    assert onnxjson.dumps(onnxjson.load("m.onnx")) == text(0.2, 0.75).decode()


@pytest.mark.parametrize("style", ["merge", "diff3"])
def test_conflicts_are_marked_in_it(pair: Repository, style: str) -> None:
    pair.git("config", "merge.conflictStyle", style)
    branches(pair, voice(num_symbols=300), voice(num_symbols=400))
    code, printed = git("merge", "--no-edit", "topic")
    assert code == 1
    assert "m.onnx.json is JSON of another program, merged by lines, and has a conflict" in printed
    content = (pair.top / "m.onnx.json").read_text()
    sides = '<<<<<<< ours\n  "num_symbols": 300,\n', '=======\n  "num_symbols": 400,\n>>>>>>> theirs\n'
    assert all(side in content for side in sides)
    assert ('||||||| base\n  "num_symbols": 256,\n' in content) == (style == "diff3")
    assert unmerged(Path()) == ([], [])
    assert run("check", "m.onnx", "m.onnx.json").exit_code == 0
    shown = git("diff")[1]
    assert '++<<<<<<< ours\n +  "num_symbols": 300,\n' in shown
    assert "shown as it is" not in shown


def test_common_ancestors_with_conflicts_are_merged(pair: Repository) -> None:
    """A criss-cross: git merges the ancestors first, markers included."""
    branches(pair, voice(num_symbols=300), voice(num_symbols=400))
    for branch, other, number in (("main", "topic~0", 500), ("topic", "main~1", 500)):
        pair.git("checkout", "-q", branch)
        git("merge", "--no-edit", other)
        pair.commit("merged", **{"m.onnx.json": voice(num_symbols=number, espeak={"voice": branch[0]})})
    pair.git("checkout", "-q", "main")
    code, _ = git("merge", "--no-edit", "topic")
    assert code == 1
    content = (pair.top / "m.onnx.json").read_text()
    assert '"voice": "m"' in content
    assert '"voice": "t"' in content
    assert '"num_symbols": 500' in content


def test_model_against_another_program_is_refused(pair: Repository) -> None:
    branches(pair, voice(num_symbols=300), text())
    code, printed = git("merge", "--no-edit", "topic")
    assert code != 0
    assert "m.onnx.json is not merged: " in printed
    assert (pair.top / "m.onnx.json").read_bytes() == voice(num_symbols=300)


@pytest.mark.parametrize(
    "words", [("check",), ("check", "--strict"), ("fmt",), ("fmt", "--check"), ("git", "check-inline")]
)
def test_hooks_leave_it_alone(pair: Repository, words: tuple[str, ...]) -> None:
    result = run(*words, "m.onnx.json", "n.onnx.json")
    assert result.exit_code == 0
    assert "m.onnx.json is JSON of another program, not a model; skipped" in result.stderr
    assert (pair.top / "m.onnx.json").read_bytes() == voice()
    # Under a name that no hook finds, it was meant.
    (pair.top / "m.onnx.json").rename("voice.json")
    assert run(*words, "voice.json").exit_code in (1, 65)


def test_pair_is_not_compared_nor_replaced(pair: Repository) -> None:
    for named in (("m.onnx",), ("m.onnx.json",), ("m.onnx", "m.onnx.json")):
        assert run("git", "check-sync", *named).exit_code == 0
    result = run("convert", "m.onnx")
    assert result.exit_code == 73
    assert "m.onnx.json is JSON of another program; name another file with -o OUT" in result.stderr
    assert (pair.top / "m.onnx.json").read_bytes() == voice()


def test_pruning_ignores_it(pair: Repository) -> None:
    onnxjson.save(onnxjson.load("n.onnx.json"), "b.onnx.json", weights="blobs")
    assert run("fmt", "--prune-blobs", "b.onnx.json", "m.onnx.json").exit_code == 0


@pytest.mark.parametrize(
    "broken",
    [
        b"{", b"{}", b"[1]", b'{"graph": 1}', b'{"irVersion": 1, "a": 1}', b'{"opset_import": {}, "a": 1}',
        b'{"format": "onnxjson/2", "a": 1}', b'{"audio": 1,}',
        b'<<<<<<< ours\n{"a": 1,\n=======\n{"ir_version": 1,\n>>>>>>> theirs\n',
    ],
)  # fmt: skip
def test_broken_model_is_an_error_still(broken: bytes, tmp_path: Path) -> None:
    place = tmp_path / "m.onnx.json"
    place.write_bytes(broken)
    assert run("check", place).exit_code == 1
    with pytest.raises(onnxjson.DecodeError) as raised:
        onnxjson.load(place)
    assert not isinstance(raised.value, OtherJsonError)

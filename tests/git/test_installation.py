"""`onnxjson git install`, `uninstall` and `doctor`: what they write, and that it goes away again."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from onnxjson.git import driver_lines, installation
from onnxjson.git.driver_lines import ATTRIBUTES, settings_for
from onnxjson.model.errors import MissingInputError, OutputError
from tests.cli.running import run, run_process
from tests.git.small_models import binary, text


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines are written without being tried out, which takes seconds."""
    monkeypatch.setattr(driver_lines, "problems", lambda settings: [])


def state(top: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (top / ".git" / "config", top / ".gitattributes") if path.exists()}


def test_lines_are_tried_out_written_once_and_taken_out(repository: Any) -> None:
    repository.write("a folder/m.onnx", binary())
    before = state(repository.top)
    result = run_process("git", "install", folder=repository.top / "a folder")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"wrote 16 local settings of git\nwrote {repository.top / '.gitattributes'}\n"
    written = state(repository.top)
    assert run_process("git", "install", folder=repository.top).stderr == "already installed; nothing to do\n"
    assert state(repository.top) == written
    doctor = run_process("git", "doctor", folder=repository.top / "a folder")
    assert doctor.exit_code == 0, doctor.stdout
    assert doctor.stdout.endswith("ok  the settings work: a small model was shown and merged\n")
    assert run_process("git", "uninstall", folder=repository.top).exit_code == 0
    assert state(repository.top) == before
    assert run_process("git", "uninstall", folder=repository.top).stderr == "not installed; nothing to do\n"


@pytest.mark.parametrize("content", [b"", b"*.png binary\n", b"*.png binary", b"\n\n", b"# no end \xff\n*.a -text"])
@pytest.mark.usefixtures("untried")
def test_attributes_are_as_they_were(content: bytes, repository: Any) -> None:
    path = repository.write(".gitattributes", content)
    place = installation.target_of("local")
    installation.install(place)
    lines = path.read_text(errors="replace").splitlines()
    assert lines[-len(ATTRIBUTES) - 1 : -1] == list(ATTRIBUTES)
    assert installation.install(place) == []
    installation.uninstall(place)
    assert path.read_bytes() == content


@pytest.mark.usefixtures("untried")
def test_lines_that_are_overruled_are_found_and_moved_to_the_end(repository: Any) -> None:
    place = installation.target_of("local")
    installation.install(place)
    path = repository.top / ".gitattributes"
    path.write_text(path.read_text() + "*.onnx filter=lfs diff=lfs merge=lfs -text\n")
    doctor = run("git", "doctor")
    assert doctor.exit_code == 1
    assert "BAD *.onnx has diff=lfs, not onnx; onnxjson git install writes its lines at the end" in doctor.stdout
    installation.install(place)
    assert repository.git("check-attr", "diff", "filter", "--", "m.onnx").splitlines() == [
        "m.onnx: diff: onnx",
        "m.onnx: filter: lfs",
    ]
    installation.uninstall(place)
    assert path.read_text() == "*.onnx filter=lfs diff=lfs merge=lfs -text\n"


@pytest.mark.usefixtures("untried")
def test_lines_that_others_write_between_the_marks_are_kept(repository: Any) -> None:
    place = installation.target_of("local")
    installation.install(place)
    path = repository.top / ".gitattributes"
    tracked = "*.onnx filter=lfs diff=lfs merge=lfs -text"  # as git lfs changes a line that is there
    path.write_text(path.read_text().replace(ATTRIBUTES[0], tracked))
    installation.install(place)
    assert path.read_text().startswith(f"{tracked}\n# >>> onnxjson")
    path.write_text(path.read_text().replace(ATTRIBUTES[0], "*.png binary"))
    installation.uninstall(place)
    assert path.read_text() == f"{tracked}\n*.png binary\n"


@pytest.mark.usefixtures("untried")
def test_settings_of_somebody_else_are_refused_and_kept(repository: Any) -> None:
    repository.git("config", "diff.onnx.textconv", "strings")
    before = state(repository.top)
    with pytest.raises(OutputError, match=r"diff\.onnx\.textconv = strings already"):
        installation.install(installation.target_of("local"))
    assert installation.uninstall(installation.target_of("local")) == []
    assert state(repository.top) == before


@pytest.mark.usefixtures("untried")
def test_settings_of_an_older_interpreter_are_replaced(repository: Any) -> None:
    place = installation.target_of("local")
    installation.install(place, "/old/python")
    assert run("git", "doctor").exit_code == 1
    installation.install(place)
    assert installation.installed(place) == settings_for(sys.executable)
    installation.uninstall(place)
    assert installation.installed(place) == {}


@pytest.mark.usefixtures("untried")
def test_ancestors_merged_as_earlier_versions_did_are_named_and_mended(repository: Any) -> None:
    place = installation.target_of("local")
    installation.install(place)
    for section in ("onnx", "onnxjson"):
        assert repository.git("config", f"merge.{section}.recursive") == section
        repository.git("config", f"merge.{section}.recursive", "binary")
    doctor = run("git", "doctor")
    assert doctor.exit_code == 1
    assert "with merge.onnx.recursive = binary, merge.onnxjson.recursive = binary, a criss-cross merge" in doctor.stdout
    assert "can undo a revert; onnxjson git install --local writes them again" in doctor.stdout
    assert installation.install(place) == ["wrote 2 local settings of git"]
    assert installation.installed(place) == settings_for(sys.executable)
    repository.git("config", "merge.onnx.recursive", "binary")
    installation.uninstall(place)
    assert "onnx" not in (repository.top / ".git" / "config").read_text()


def test_interpreter_that_does_not_find_the_package_is_refused_with_the_reason(repository: Any, tmp_path: Path) -> None:
    python = shutil.which("python3", path="/usr/bin:/bin") or "/nothing/python3"
    before = state(repository.top)
    with pytest.raises(
        OutputError, match=r"nothing was written, since the settings do not work: diff\.onnx\.textconv shows"
    ):
        installation.install(installation.target_of("local"), python)
    assert state(repository.top) == before
    with pytest.raises(OutputError, match="full path"):
        installation.install(installation.target_of("local"), "python3")


def test_interpreter_in_a_path_with_spaces_quotes_and_percent_signs_works(repository: Any, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "100%O" $HOME;`x` path'
    folder.mkdir()
    python = folder / "py thon"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    installation.install(installation.target_of("local"), str(python))
    repository.commit("one", **{"m.onnx": binary()})
    assert repository.git("cat-file", "--textconv", "HEAD:m.onnx") == text().decode().strip()


@pytest.mark.usefixtures("untried")
def test_every_scope_writes_its_own_files(repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = Path(os.environ["GIT_CONFIG_GLOBAL"])
    before = config.read_bytes()
    place = installation.target_of("global")
    installation.install(place)
    assert place.attributes == tmp_path / "config" / "git" / "attributes"
    assert repository.git("check-attr", "diff", "m.onnx") == "m.onnx: diff: onnx"
    assert not (repository.top / ".gitattributes").exists()
    installation.uninstall(place)
    assert config.read_bytes() == before
    assert not place.attributes.exists()


@pytest.mark.usefixtures("untried")
def test_work_tree_has_its_own_settings_where_git_allows_it(repository: Any, tmp_path: Path) -> None:
    repository.commit("one")
    repository.git("worktree", "add", "-q", str(tmp_path / "other"))
    with pytest.raises(OutputError, match=r"extensions\.worktreeConfig"):
        installation.target_of("worktree", tmp_path / "other")
    repository.git("config", "extensions.worktreeConfig", "true")
    before = state(repository.top)
    place = installation.target_of("worktree", tmp_path / "other")
    installation.install(place)
    assert place.attributes == tmp_path / "other" / ".gitattributes"
    assert state(repository.top) == before
    assert installation.installed(installation.target_of("local")) == {}
    installation.uninstall(place)
    assert not place.attributes.exists()


@pytest.mark.usefixtures("untried")
def test_linked_work_trees_and_submodules_have_their_own_top(repository: Any, tmp_path: Path) -> None:
    repository.commit("one", **{"m.onnx": binary()})
    repository.git("worktree", "add", "-q", str(tmp_path / "other"))
    assert installation.target_of("local", tmp_path / "other").attributes == tmp_path / "other" / ".gitattributes"
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository.top), "inner")
    place = installation.target_of("local", repository.top / "inner")
    assert place.attributes == repository.top / "inner" / ".gitattributes"
    before = state(repository.top)
    installation.install(place)
    assert state(repository.top) == before
    assert installation.installed(place)


def test_no_work_tree_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingInputError):
        installation.target_of("local")
    assert installation.target_of("global").scope == "global"


@pytest.mark.usefixtures("untried")
def test_link_and_torn_block_are_refused(repository: Any, tmp_path: Path) -> None:
    (repository.top / ".gitattributes").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="is a link"):
        installation.install(installation.target_of("local"))
    (repository.top / ".gitattributes").unlink()
    repository.write(".gitattributes", b"# >>> onnxjson >>>\n*.onnx diff=onnx\n")
    with pytest.raises(OutputError, match="is missing"):
        installation.install(installation.target_of("local"))


@pytest.mark.parametrize("scope", ["local", "global"])
@pytest.mark.usefixtures("untried")
def test_attributes_that_are_a_folder_are_seen_before_anything_is_written(
    scope: Any, repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    place = installation.target_of(scope)
    place.attributes.mkdir(parents=True)
    (place.attributes / "of somebody").write_text("")
    with pytest.raises(OutputError, match="is a folder, and git reads attributes from a file; move it away"):
        installation.install(place)
    assert installation.installed(place) == {}
    place.attributes.rename(tmp_path / "away")
    installation.install(place)
    place.attributes.unlink()
    (tmp_path / "away").rename(place.attributes)
    doctor = run("git", "doctor")
    assert doctor.exit_code == 1
    assert "is a folder, and git reads attributes from a file" in doctor.stdout
    assert run("git", "uninstall", f"--{scope}")[0::2] == (0, f"removed 16 {scope} settings of git\n")
    assert installation.installed(place) == {}
    assert (place.attributes / "of somebody").exists()


@pytest.mark.usefixtures("untried")
def test_file_in_the_way_of_the_folder_of_attributes_is_seen_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config").write_text("")
    place = installation.target_of("global")
    with pytest.raises(OutputError, match="is not a folder, so attributes cannot be in it"):
        installation.install(place)
    assert installation.installed(place) == {}
    assert installation.uninstall(place) == []


@pytest.mark.usefixtures("untried")
def test_settings_go_where_the_attributes_cannot_be_looked_at(repository: Any, tmp_path: Path) -> None:
    place = installation.target_of("local")
    installation.install(place)
    place.attributes.rename(tmp_path / "elsewhere")
    place.attributes.symlink_to(tmp_path / "elsewhere")
    result = run("git", "uninstall")
    assert result.exit_code == OutputError.exit_code
    assert "is a link, which git does not follow here; make it a file; removed 16 local settings" in result.stderr
    assert installation.installed(place) == {}

"""The extension for Visual Studio Code: what it declares is what it and the server have. Building it needs npm."""

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from onnxjson.serving.language_server import server

FOLDER = Path(__file__).parents[2] / "editors/vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text())
SOURCE = (FOLDER / "src/extension.ts").read_text()


def test_its_commands_and_settings_exist() -> None:
    contributes = PACKAGE["contributes"]
    declared = {each["command"] for each in contributes["commands"]}
    assert set(re.findall(r'registerCommand\("([^"]+)"', SOURCE)) == declared
    asked = set(re.findall(r'ask\("([^"]+)"', SOURCE))
    assert asked == set(server().protocol.fm.commands)
    # The client registers the commands of the server under their names.
    assert not asked & declared
    assert set(contributes["configuration"]["properties"]) == {"onnxjson.command", "onnxjson.package"}
    menu = {each["command"] for each in contributes["menus"]["explorer/context"]}
    assert menu == declared - {"onnxjson.environment"}


def test_nothing_is_installed_without_a_yes() -> None:
    install = SOURCE.index('"pip", "install"')
    assert SOURCE.index('showWarningMessage(question, "Create")) !== "Create") return false;') < install
    assert SOURCE.count('"pip"') == 1


def test_its_files_are_there_and_it_has_no_telemetry() -> None:
    contributes = PACKAGE["contributes"]
    named = [PACKAGE["icon"], contributes["languages"][0]["configuration"], contributes["grammars"][0]["path"]]
    assert all((FOLDER / name).is_file() for name in [*named, contributes["snippets"][0]["path"]])
    assert not re.search("telemetry|https?://|fetch\\(", SOURCE)
    assert "dependencies" not in PACKAGE


def test_a_revision_is_no_option_of_git_and_the_workspace_has_no_modules_for_python(tmp_path: Path) -> None:
    words = re.search(r'run\("git", \[(.*?), `\$\{name\}', SOURCE)
    assert words is not None
    shown = json.loads(f"[{words[1]}]")
    assert shown[0] == "show"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    (tmp_path / "out:.").mkdir()
    subprocess.run([*git, *shown, "--output=out:./m.onnx"], check=False, capture_output=True)
    assert not list((tmp_path / "out:.").iterdir())
    starts = re.findall(r'\[("-[^\]]*"-m"|"-m"), "(?:venv|pip)"', SOURCE)
    assert starts == ['"-I", "-m"'] * 2


def test_no_setting_of_a_workspace_that_is_not_trusted_names_a_program() -> None:
    # It starts the program in the environment of the workspace, or that its settings name: so it is off there.
    assert PACKAGE["capabilities"]["untrustedWorkspaces"]["supported"] is False
    assert "onDidGrantWorkspaceTrust" not in SOURCE
    # What pip installs is never a setting of a workspace, trusted or not.
    assert PACKAGE["contributes"]["configuration"]["properties"]["onnxjson.package"]["scope"] == "machine"
    assert re.findall(r'getConfiguration\("(\w+)"\)\.get<string>\("(\w+)"\)', SOURCE) == [
        ("python", "defaultInterpreterPath"), ("onnxjson", "command"), ("onnxjson", "package"), ("onnxjson", "command"),
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.timeout(600)
@pytest.mark.exhaustive
def test_the_package_of_the_extension_is_built(tmp_path: Path) -> None:
    """From the lock file alone, in a copy: what the documentation tells a user to do."""
    folder = tmp_path / "editors/vscode"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "out", "*.vsix"))
    shutil.copy(FOLDER.parents[1] / "LICENSE", tmp_path)
    lock = json.loads((folder / "package-lock.json").read_text())
    assert lock["packages"][""]["devDependencies"] == PACKAGE["devDependencies"]
    assert all(each["integrity"].startswith("sha512-") for name, each in lock["packages"].items() if name)
    if (FOLDER / "node_modules/.package-lock.json").exists():
        (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    else:
        installed = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True)
        if installed.returncode and re.search("ENOTFOUND|ECONN|EAI_AGAIN|ETIMEDOUT|network", installed.stderr):
            pytest.skip("the registry of npm cannot be reached")
        assert installed.returncode == 0, installed.stderr
    built = subprocess.run(["npm", "run", "package"], cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    with zipfile.ZipFile(next(folder.glob("*.vsix"))) as package:
        files = set(package.namelist())
        assert {"extension/package.json", "extension/out/extension.js", "extension/grammar.json"} <= files
        assert not [each for each in files if "node_modules" in each or each.endswith(".ts")]
        assert b"onnxjson.changes" in package.read("extension/out/extension.js")

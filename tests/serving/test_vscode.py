"""The extension for Visual Studio Code: what it declares is what it and the server have. Building it needs npm."""

import json
import re
from pathlib import Path

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

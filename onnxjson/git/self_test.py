"""Git's settings tried out as git uses them: in a repository made for it, with two versions of a small model."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from onnxjson import files
from onnxjson.display import visible
from onnxjson.errors import OnnxJsonError
from onnxjson.git.commands import CommandError, Git
from onnxjson.git.driver_lines import ALIAS, ATTRIBUTES, MERGETOOL

_SECONDS: Final = 60.0

_ALONE: Final[dict[str, str | None]] = {
    **dict.fromkeys(("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_CONFIG_PARAMETERS")),
    "GIT_CONFIG_COUNT": None,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "onnxjson",
    "GIT_AUTHOR_EMAIL": "onnxjson@localhost",
    "GIT_COMMITTER_NAME": "onnxjson",
    "GIT_COMMITTER_EMAIL": "onnxjson@localhost",
}

_MODEL: Final = """{
"format": "onnxjson/1",
"ir_version": 10,
"opset_import": {"": 20},
"graph": {
  "name": "g",
  "input": [
    {"name": "x", "type": "float32[2]"}
  ],
  "output": [
    {"name": "z", "type": "float32[2]"}
  ],
  "node": [
    {"op_type": "LeakyRelu", "output": ["y"],
     "input": ["x"],
     "name": "first",
     "attribute": {
       "alpha": ALPHA
     }},
    {"op_type": "Elu", "output": ["z"],
     "input": ["y"],
     "name": "second",
     "attribute": {
       "alpha": BETA
     }}
  ]
}
}
"""

_FORMATS: Final[dict[str, files.Format]] = {"m.onnx.json": "json", "m.onnx": "onnx"}


def problems(settings: Mapping[str, str]) -> list[str]:
    """What does not work of settings, a sentence each.

    Args:
        settings: by key, as `onnxjson.git.driver_lines.settings_for` makes them; those that are missing are not tried.

    Raises:
        OnnxJsonError: git is not there, or the temporary folder cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="onnxjson-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary, "it's a test")  # paths with spaces and quotes are paths, too
        folder.mkdir()
        try:
            return _tried(_Trial(folder, settings), settings)
        except CommandError as error:
            return [f"git does not do it: {error}"]


class _Trial:
    """A repository with one version of the model in each form."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.git = Git(folder, _ALONE)
        self.run("init", "-q", "--template=", ".")
        (folder / ".git" / "info").mkdir(exist_ok=True)
        (folder / ".git" / "info" / "attributes").write_text("".join(f"{line}\n" for line in ATTRIBUTES))
        for key, value in settings.items():
            self.run("config", "--local", key, value)

    def run(self, *arguments: str) -> str:
        """What git prints."""
        return os.fsdecode(self.git.output(*arguments, seconds=_SECONDS))

    def commit(self, alpha: str, beta: str) -> str:
        """Commit a version of the models; the name of the commit."""
        text = _MODEL.replace("ALPHA", alpha).replace("BETA", beta)
        (self.folder / "m.onnx.json").write_text(text)
        files.save(files.load(self.folder / "m.onnx.json").model, self.folder / "m.onnx")
        self.run("add", ".")
        self.run("commit", "-q", "--no-gpg-sign", "-m", "a version")
        return self.run("rev-parse", "HEAD").strip()


def _tried(trial: _Trial, settings: Mapping[str, str]) -> list[str]:
    found = []
    base = trial.commit("0.1", "0.5")
    for name, section in (("m.onnx", "diff.onnx"), ("m.onnx.json", "diff.onnxjson")):
        if f"{section}.textconv" in settings:
            shown = trial.run("cat-file", "--textconv", f"HEAD:{name}")
            if shown != _MODEL.replace("ALPHA", "0.1").replace("BETA", "0.5"):
                found.append(f"{section}.textconv shows of a small model: {visible(shown.strip(), 200) or 'nothing'}")
    if ALIAS in settings and "onnxjson diff" not in trial.run("onnxdiff", "--help"):
        found.append(f"{ALIAS} does not start onnxjson diff")
    if MERGETOOL in settings:
        found += _settled(trial, settings[MERGETOOL])
    ours = trial.commit("0.2", "0.5")
    trial.run("checkout", "-q", "--detach", base)
    trial.commit("0.1", "0.75")
    if {"merge.onnx.driver", "merge.onnxjson.driver"} <= set(settings):
        found += _merged(trial, ours)
    return found


def _settled(trial: _Trial, command: str) -> list[str]:
    """What is wrong with the command of the merge tool; three sides that are the same leave nothing to choose."""
    files_of_git = " ".join(f"{name}=m.onnx" for name in ("BASE", "LOCAL", "REMOTE", "MERGED"))
    try:
        trial.run("-c", f"alias.settle=!{files_of_git}; {command}", "settle")
    except CommandError as error:
        return [f"{MERGETOOL} does not settle a merge: {error}"]
    return []


def _merged(trial: _Trial, ours: str) -> list[str]:
    try:
        trial.run("merge", "-q", "--no-gpg-sign", "-m", "merged", ours)
    except CommandError as error:
        return [f"a merge of two edits of a small model fails: {error}"]
    wanted = _MODEL.replace("ALPHA", "0.2").replace("BETA", "0.75")
    found = []
    for name, form in _FORMATS.items():
        place = trial.folder / name
        try:
            loaded = files.load(place)
            if form == "onnx":
                place = trial.folder / "read.onnx.json"
                files.save(loaded.model, place)
            if loaded.format != form or place.read_text() != wanted:
                found.append(f"a merge of two edits of {name} loses one of them")
        except OnnxJsonError as error:
            found.append(f"a merge of two edits of {name} is no model: {error}")
    return found

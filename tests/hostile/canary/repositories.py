"""Planted models in a repository full of traps, which the installed git drivers show, compare and merge."""

import os
from pathlib import Path
from unittest import mock

import onnxjson
from onnxjson.codecs import serde
from tests.cli.running import command_line
from tests.git.traps import ATTRIBUTES, Traps
from tests.hostile.canary.positions import complete_model, valid_model
from tests.hostile.canary.runners import with_other_texts
from tests.hostile.canary.tripwires import escapes
from tests.hostile.canary.watching import Watch

_CONFIG = "[user]\n\tname = T\n\temail = t@example.org\n[commit]\n\tgpgsign = false\n"


def git_drivers(watch: Watch, *, quick: bool = False) -> None:
    """Run textconv, the merge driver and ``git onnxdiff``; the environment has traps, too; `quick`: small models."""
    top = watch.folder / "r"
    config = watch.folder / "gitconfig"
    config.write_text(_CONFIG)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {"GIT_CONFIG_GLOBAL": str(config), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(watch.folder)}
    with mock.patch.dict(os.environ, clean | own, clear=True):
        _drive(watch, _installed(watch, top, quick=quick))


def _installed(watch: Watch, top: Path, *, quick: bool) -> Traps:
    """Return a repository whose branches main and topic changed the texts of the same models."""
    repository = Traps(top)
    repository.write(".gitattributes", ATTRIBUTES)
    result = repository.call(*command_line("git", "install"))
    assert result.returncode == 0, result.stderr
    models = {"m.onnx": valid_model(watch.planter)}
    if not quick:
        models["c.onnx"] = complete_model(watch.planter)[0]
    for branch in ("", "topic", "main"):
        if branch:
            repository.git("checkout", "-q", "-B", branch, "main")
        for name, model in models.items():
            changed = with_other_texts(model, watch) if branch else model
            repository.write(name, changed.SerializeToString())
            text = onnxjson.dumps(serde.parse(changed.SerializeToString()).model)
            repository.write(f"{name}.json", text.encode("utf-8", "surrogateescape"))
        repository.commit(f"{branch} changed")
    return repository


def _drive(watch: Watch, repository: Traps) -> None:
    for runner, words in (
        ("git textconv", ("log", "-p", "-1")),
        ("git textconv", ("diff", "HEAD~1", "topic")),
        ("git textconv", ("grep", "--textconv", "canary", "--", "m.onnx")),
        ("git onnxdiff", ("onnxdiff", "HEAD~1", "HEAD")),
        ("git onnxdiff", ("onnxdiff", "HEAD~1:m.onnx", "topic:m.onnx", "--format", "json")),
        ("git merge driver", ("merge", "-m", "merged", "topic")),
        ("git textconv", ("diff",)),
    ):
        result = repository.call("git", *words)
        outputs = [result.stdout, result.stderr]
        watch.look(runner, words[:1], outputs, escapes(outputs), refused=result.returncode not in (0, 1, 16))
    listed = repository.call(*command_line("conflicts"))
    watch.look("git conflicts", (), [listed.stdout, listed.stderr], escapes([listed.stdout, listed.stderr]))

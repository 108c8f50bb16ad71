"""What every test stands on."""

import os
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.load_profile("ci")  # fixed seeds, and no limits of time, which a busy machine would break

INHERITED = re.compile(r"PATH|LD_LIBRARY_PATH|(?:PYTEST|COVERAGE)_\w+")
"""Environment variables that reach the tests; all others are those of whoever runs them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--models``: other exports than those of tests/models for the tests of how good a diff is."""
    parser.addoption("--models", type=Path, default=Path(__file__).parent / "models", help="folder of exported models")


@pytest.fixture(scope="session")
def exports(pytestconfig: pytest.Config) -> list[Path]:
    """The exported models of ``--models``."""
    return sorted((pytestconfig.invocation_params.dir / pytestconfig.getoption("models")).glob("*.onnx"))


@pytest.fixture(scope="session", autouse=True)
def _own_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees or touches what belongs to the user who runs it: folders, settings, language, terminal.

    The folder above those of the tests holds what may stand in anybody's folder of temporary files: JSON that is no
    document, and a document that is cut short.
    """
    user = tmp_path_factory.mktemp("user")
    above = tmp_path_factory.getbasetemp()
    (above / "stray.json").write_text('[{"blob": "of another program"}]\n')
    (above / "broken.onnx.json").write_text('{\n"format": "onnxjson/1",\n"blobs": "m.blobs",\n')
    folders = {name: user / name for name in ("home", "config", "data", "state", "cache", "tmp", "current")}
    for folder in folders.values():
        folder.mkdir()
    surroundings = {
        "HOME": str(folders["home"]),
        **{f"XDG_{name.upper()}_HOME": str(folders[name]) for name in ("config", "data", "state", "cache")},
        "TMPDIR": str(folders["tmp"]),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(above),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "xterm-256color",
        "COLUMNS": "80",
        "LINES": "24",
    }
    umask = os.umask(0o022)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # of a run in the background; programs would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if not INHERITED.fullmatch(name)]:
            patch.delenv(name)
        for name, value in surroundings.items():
            patch.setenv(name, value)
        patch.setattr(tempfile, "tempdir", None)
        patch.chdir(folders["current"])
        yield
    os.umask(umask)

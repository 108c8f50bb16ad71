"""What every test stands on."""

from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--models``: other exports than those of tests/models for the tests of how good a diff is."""
    parser.addoption("--models", type=Path, default=Path(__file__).parent / "models", help="folder of exported models")


@pytest.fixture(scope="session")
def exports(pytestconfig: pytest.Config) -> list[Path]:
    """The exported models of ``--models``."""
    return sorted(Path(pytestconfig.getoption("models")).glob("*.onnx"))


@pytest.fixture(scope="session", autouse=True)
def _own_user_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees or touches the state, the cache and the settings of the person who runs it."""
    user = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(user / "state"))
        patch.setenv("XDG_CACHE_HOME", str(user / "cache"))
        patch.setenv("COLUMNS", "80")
        for name in ("NO_COLOR", "FORCE_COLOR", "ONNXJSON_DEBUG"):
            patch.delenv(name, raising=False)
        yield

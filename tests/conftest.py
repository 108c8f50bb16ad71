"""What every test stands on."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_user_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees or touches the state, the cache and the settings of the person who runs it."""
    user: Path = tmp_path_factory.mktemp("user", numbered=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(user / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(user / "cache"))
    for name in ("NO_COLOR", "FORCE_COLOR", "ONNXJSON_DEBUG"):
        monkeypatch.delenv(name, raising=False)

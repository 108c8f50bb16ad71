"""Real repositories in temporary folders, with nothing of the git of the person who runs the tests."""

import subprocess
from pathlib import Path

import pytest


class Repository:
    """A repository to be filled by tests."""

    def __init__(self, top: Path) -> None:
        self.top = top
        top.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", ".")

    def git(self, *arguments: str | bytes) -> str:
        """Run git at the top; what it prints."""
        result = subprocess.run(["git", *arguments], cwd=self.top, check=True, capture_output=True, timeout=60)
        return result.stdout.decode().strip()

    def commit(self, message: str, **files: bytes) -> str:
        """Commit everything, with `files` written before; the name of the commit."""
        for name, content in files.items():
            self.write(name, content)
        self.git("add", "-A", "-f", ".")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def write(self, name: str, content: bytes) -> Path:
        """Write a file of the work tree."""
        place = self.top / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return place


@pytest.fixture(autouse=True)
def _plain_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "gitconfig"
    config.write_text("[user]\n\tname = T\n\temail = t@example.org\n[commit]\n\tgpgsign = false\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """An empty repository, which is the current folder."""
    made = Repository(tmp_path / "repository")
    monkeypatch.chdir(made.top)
    return made

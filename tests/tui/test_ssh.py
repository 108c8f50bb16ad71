"""One real login over SSH on 127.0.0.1: a server of the test's own, with its own keys, on a port of its own."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.tui.programs import ENTER, PATIENCE, UNDO_2, Program
from tests.tui.sessions import opened, saved
from tests.tui.test_ended_programs import edit, recovered

SERVER = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
AcceptEnv LANG LC_* XDG_STATE_HOME
"""


class Server:
    """A server for one user, who has the key."""

    def __init__(self, folder: Path) -> None:
        for name in ("host", "user"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(words, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        with closing(socket.socket()) as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        (folder / "sshd_config").write_text(CONFIG.format(port=port, folder=folder))
        assert SERVER is not None
        with (folder / "log").open("w") as log:
            words = [SERVER, "-D", "-e", "-f", str(folder / "sshd_config")]
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=log)
        _wait_for(port, self.process, folder / "log")
        self.login = (
            "ssh", "-tt", "-p", str(port), "-i", str(folder / "user"), "-F", "none",
            "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
            "-o", "IdentitiesOnly=yes", "-o", "SendEnv=XDG_STATE_HOME LANG",
            f"{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1",
        )  # fmt: skip


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if process.poll() is not None:
                pytest.fail(f"sshd does not run: {log.read_text()[-300:]}")
            assert time.monotonic() < end
            time.sleep(0.05)
        else:
            return


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    if SERVER is None or shutil.which("ssh") is None:
        pytest.skip("openssh-server is not installed")
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        # Where Debian's server drops its privileges; a service makes it, which is not running here.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    server = Server(folder)
    yield server
    server.process.terminate()
    server.process.wait()


def test_a_line_that_drops_in_the_middle_of_an_edit_loses_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    model = saved(tmp_path / "m.onnx")
    program = [*server.login, f"exec {sys.executable} -I -m onnxjson tui {model}"]
    with Program(words=program) as line:
        line.expect(b"Relu")
        line.type(edit(1))
        line.expect(b"undo 1")
        line.type(edit(2))
        line.expect(UNDO_2)
        line.type(b":set-metadata half")
        line.expect(b"half")
        line.process.kill()
        line.end()
    end = time.monotonic() + PATIENCE
    while not (journals := _ended(model)):
        assert time.monotonic() < end, "the program on the other side never ended"
        time.sleep(0.1)
    assert journals == 1
    assert recovered(model) == {"key1": "value1", "key2": "value2"}
    with Program(words=program) as line:
        line.expect(b"Unsaved edits")
        line.type(ENTER)
        line.expect(b"2 steps recovered")
        line.type(b"qD")
        assert line.end() == 0
    with opened(model) as session:
        assert not session.recoverable()


def _ended(model: Path) -> int:
    """How many journals nobody holds any more."""
    with opened(model) as session:
        recoverable = session.recoverable()
        for journal in recoverable:
            journal.release()
        return len(recoverable)

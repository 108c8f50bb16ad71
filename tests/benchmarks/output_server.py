"""Runs the command line of onnxjson in forks of one process that has imported it: ``python output_server.py SOCKET``.

Most of what a short command takes is imports; a fork has them already. Its standard streams, folder, arguments and
environment are those that the client sends, see `CLIENT`.
"""

import importlib
import json
import os
import pkgutil
import runpy
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Final

CLIENT: Final = """\
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    message = json.dumps([os.getcwd(), sys.argv[2:], dict(os.environ)]).encode()
    socket.send_fds(connection, [len(message).to_bytes(8, "big")], [0, 1, 2])
    connection.sendall(message)
    sys.exit(int(connection.recv(8) or b"139"))
"""
"""The program that stands for ``onnxjson``: 139 is the code of one that crashed."""


SCRIPT: Final = "--script"
"""The first word to the server before the path of a script."""


class CommandServer:
    """A server, and a folder for PATH in which ``onnxjson`` is its client and ``python`` this Python.

    ``python-at-once SCRIPT`` runs a script in a fork that has all packages imported but onnxjson.
    """

    def __init__(self) -> None:
        self.programs = Path(tempfile.mkdtemp(prefix="onnxjson-programs-"))
        client, place = self.programs / "client.py", self.programs / "socket"
        client.write_text(CLIENT, encoding="utf-8")
        ask = f'-I -S "{client}" "{place}" '
        for name, what in (("onnxjson", ask), ("python-at-once", f"{ask}{SCRIPT} "), ("python", "")):
            program = self.programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {what}"$@"\n', encoding="utf-8")
            program.chmod(0o755)
        self._server = subprocess.Popen(
            [sys.executable, "-P", __file__, str(place)], env={**os.environ, "LC_ALL": "C.UTF-8"}
        )
        while not place.exists() and self._server.poll() is None:
            time.sleep(0.05)

    def close(self) -> None:
        """End the server, and remove the folder."""
        self._server.terminate()
        self._server.wait()
        shutil.rmtree(self.programs)


def _import_everything() -> None:
    """Every module of the package but those that are programs; one that cannot be imported is left to the command."""
    import onnxjson

    for found in pkgutil.walk_packages(onnxjson.__path__, "onnxjson.", onerror=lambda _: None):
        if not found.name.endswith("__main__"):
            with suppress(Exception):
                importlib.import_module(found.name)


def _answer(connection: socket.socket) -> None:
    """One command, in a process that ends with it."""
    head, streams, _, _ = socket.recv_fds(connection, 8, 3)
    size, message = int.from_bytes(head, "big"), b""
    while len(message) < size and (more := connection.recv(size - len(message))):
        message += more
    folder, arguments, environment = json.loads(message)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # New ones: those of the server know whether its own can be sought in. They are open to the end.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["onnxjson", *arguments]
    code: object = 0
    try:
        if arguments[:1] == [SCRIPT]:
            _run_script(arguments[1])
        else:
            from onnxjson.cli import main

            main()
    except SystemExit as error:
        code = error.code
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    connection.sendall(str(code if isinstance(code, int) else int(code is not None)).encode())


def _run_script(path: str) -> None:
    """What ``python SCRIPT`` does, with nothing of onnxjson imported before."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnxjson"]:
        del sys.modules[name]
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def main(path: str) -> None:
    """Answer at the socket `path` until the process is ended."""
    _import_everything()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(16)
        while True:
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                try:
                    _answer(connection)
                finally:
                    os._exit(0)
            connection.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


if __name__ == "__main__":
    main(sys.argv[1])

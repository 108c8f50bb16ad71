"""``onnxjson lsp`` and ``onnxjson mcp``: servers for editors and for coding agents."""

import socket
import subprocess
import sys
from pathlib import Path

import click

from onnxjson.cli import options, output
from onnxjson.model.errors import MissingInputError
from onnxjson.storage.saving import system_errors


@options.command("lsp")
@options.option("--tcp N", "Listen on this port of this machine, not on standard input.", type=click.IntRange(1, 65535))
def lsp_command(tcp: int | None) -> None:
    """Serve model texts to editors (Language Server Protocol).

    Offers findings while you type, completion, descriptions, definitions, references, renames, symbols, types of
    outputs and formatting, for .onnx.json. Needs the package pygls: pip install 'pygls>=2.1'.

    \b
    onnxjson lsp
    onnxjson lsp --tcp 2087
    """
    try:
        from onnxjson.serving.language_server import server
    except ImportError as error:
        raise MissingInputError("the package pygls is not installed: pip install 'pygls>=2.1'") from error

    if tcp is None:
        server().start_io()
        return
    with system_errors(f"port {tcp} cannot be used"), socket.create_server(("127.0.0.1", tcp)) as listening:
        while True:
            with listening.accept()[0] as client:  # each client has its own server
                stream = client.fileno()
                subprocess.Popen([sys.executable, "-I", "-m", "onnxjson", "lsp"], stdin=stream, stdout=stream)


@options.command("mcp")
@options.option(
    "--allow-write DIR", "Also offer tools that write, into this folder only.", "writable",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
)  # fmt: skip
def mcp_command(writable: Path | None) -> None:
    """Serve models to coding agents (Model Context Protocol).

    Uses standard input and output. Its tools show, search, check, compare, optimize and verify models, and plan edits.
    Nothing is written unless --allow-write names a folder. Needs the package mcp: pip install 'mcp>=2.3'.

    \b
    onnxjson mcp
    onnxjson mcp --allow-write .
    """
    from onnxjson.serving.tools import server

    made = server(writable)
    output.talk("serving the Model Context Protocol on standard input and output")
    made.run("stdio")

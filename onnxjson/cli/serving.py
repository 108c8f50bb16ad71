"""``onnxjson lsp`` and ``onnxjson mcp``: servers for editors and for coding agents."""

from pathlib import Path

import click

from onnxjson.cli import options, output
from onnxjson.model.errors import MissingInputError


@options.command("lsp")
def lsp_command() -> None:
    """Serve model texts to editors (Language Server Protocol).

    For .onnx.json, offers findings while you type, completion, descriptions, definitions, references, renames,
    symbols, output types and formatting. Uses standard input and output. Needs the package pygls: pip install
    'pygls>=2.1'.

    \b
    onnxjson lsp
    """
    try:
        from onnxjson.serving.language_server import server
        from onnxjson.serving.messages import serve
    except ImportError as error:
        raise MissingInputError("the package pygls is not installed: pip install 'pygls>=2.1'") from error

    serve(server())


@options.command("mcp")
@options.option(
    "--allow-read DIR", "Read only models in this folder; default: the current folder. Can be repeated.", "readable",
    type=click.Path(file_okay=False, exists=True, path_type=Path), multiple=True,
)  # fmt: skip
@options.option(
    "--allow-write DIR", "Also offer tools that write, only to this folder.", "writable",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
)  # fmt: skip
@options.option(
    "--allow-files", "Allow passes and edits to name files: Python files, scripts, plugins, values.", "with_files"
)
def mcp_command(readable: tuple[Path, ...], writable: Path | None, *, with_files: bool) -> None:
    """Serve models to coding agents (Model Context Protocol).

    Uses standard input and output. The tools show, search, check, compare, optimize and verify models, and plan edits.
    Nothing is written unless --allow-write names a folder. Needs the package mcp: pip install 'mcp>=2.3'.

    \b
    onnxjson mcp
    onnxjson mcp --allow-write .
    """
    from onnxjson.serving.permissions import Permissions
    from onnxjson.serving.tools import server

    may = Permissions(readable, writable, files=with_files)
    mcp_server = server(may)
    output.talk("serving the Model Context Protocol on standard input and output")
    with may.confined():
        mcp_server.run("stdio")

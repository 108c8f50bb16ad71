"""``onnxjson mcp``: the tools for coding agents, over standard input and output."""

from pathlib import Path

import click

from onnxjson.cli import options, output


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
    from onnxjson.serving.agents import server

    made = server(writable)
    output.talk("serving the Model Context Protocol on standard input and output")
    made.run("stdio")

"""``onnxjson lsp``: the language server for model texts."""

import click

from onnxjson.cli import options


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
    from onnxjson.serving.language_server import server

    made = server()
    if tcp is None:
        made.start_io()
    else:
        made.start_tcp("127.0.0.1", tcp)

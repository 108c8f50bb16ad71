"""``onnxjson schema``: the JSON Schema of a kind of document."""

import click

from onnxjson.cli import output


@click.command("schema")
@click.argument("kind", type=click.Choice(["document"]), default="document")
def command(kind: str) -> None:
    """Print the JSON Schema of a document.

    Editors use it to complete and check a .onnx.json while it is being typed.

    \b
    onnxjson schema > document-1.schema.json
    """
    from onnxjson import schema

    output.Stdout().write(schema.render(schema.SCHEMAS[kind]()).encode())

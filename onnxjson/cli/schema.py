"""``onnxjson schema``: the JSON Schema of a kind of document."""

import importlib
from collections.abc import Callable
from typing import Any, Final

import click

from onnxjson.cli import output

MODULES: Final = {
    "document": "onnxjson.schema",
    "diff": "onnxjson.rendering.diff_schema",
    "diffs": "onnxjson.rendering.diffs_schema",
    "patch": "onnxjson.patching.schema",
    "recipe": "onnxjson.passes.schema",
    "rewrite": "onnxjson.edits.schema",
    "trace": "onnxjson.rendering.trace_schema",
}
"""The module that builds the schema of each kind of document, as ``KIND_schema``; schemas/ has a file for each."""


def builder(kind: str) -> Callable[[], dict[str, Any]]:
    """What builds the schema of a kind of document."""
    build: Callable[[], dict[str, Any]] = getattr(importlib.import_module(MODULES[kind]), f"{kind}_schema")
    return build


@click.command("schema")
@click.argument("kind", type=click.Choice(list(MODULES)), default="document")
def command(kind: str) -> None:
    """Print the JSON Schema of a document.

    Editors use it to complete and check a .onnx.json while it is being typed, programs to read a diff.

    \b
    onnxjson schema > document-1.schema.json
    onnxjson schema diff
    """
    from onnxjson import schema

    output.Stdout().write(schema.render(builder(kind)()).encode())

"""Milliseconds until the language server answers: ``python -m tests.benchmarks.editing_texts [NODES ...]``.

A client types a character in the middle of a text, then asks. "keystroke" is the time until a completion is there.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from tempfile import TemporaryDirectory

from lsprotocol import types as lsp
from onnx import TensorProto, helper
from pygls.lsp.client import LanguageClient

import onnxjson
from tests.serving.test_language_server import Editor

NODES = (500, 10_000, 100_000, 400_000)

HEADER = ("nodes", "MB", "opened", "hover", "completion", "definition", "keystroke", "worst", "findings", "outline")


def chain(count: int) -> str:
    """The text of a chain of nodes."""
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", [f"v{n}", "x"], [f"v{n + 1}"], name=f"n{n}") for n in range(count)]
    inputs = [value(name, TensorProto.FLOAT, [2]) for name in ("x", "v0")]
    graph = helper.make_graph(nodes, "g", inputs, [value(f"v{count}", TensorProto.FLOAT, [2])])
    return onnxjson.dumps(onnxjson.from_proto(helper.make_model(graph)))


async def milliseconds(waited: Awaitable[object]) -> float:
    """The time until an answer."""
    begin = time.perf_counter()
    await waited
    return 1000 * (time.perf_counter() - begin)


async def row(count: int, folder: Path) -> str:
    """The line of one size."""
    text = chain(count)
    client = LanguageClient("benchmark", "1")
    await client.start_io(sys.executable, "-m", "onnxjson", "lsp")
    editor = Editor(client, (folder / "m.onnx.json").as_uri(), text)
    document = lsp.TextDocumentIdentifier(editor.uri)
    at = text.index(f'"v{count // 2}"', text.index('"node"')) + 2
    cursor = editor.place_at(at)
    begin = time.perf_counter()
    await editor.open()
    await asyncio.wait_for(editor.found.get(), 600)
    await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
    times = [1000 * (time.perf_counter() - begin)]
    times.append(await milliseconds(client.text_document_hover_async(lsp.HoverParams(document, cursor))))
    times.append(await milliseconds(client.text_document_completion_async(lsp.CompletionParams(document, cursor))))
    times.append(await milliseconds(client.text_document_definition_async(lsp.DefinitionParams(document, cursor))))
    typed = []
    for version in range(1, 41):  # for about six seconds: checks begin and are ended
        await asyncio.sleep(0.5 if version % 8 == 0 else 0.1)
        identifier = lsp.VersionedTextDocumentIdentifier(version=version, uri=editor.uri)
        change = lsp.TextDocumentContentChangePartial(lsp.Range(cursor, cursor), "w")
        client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, [change]))
        answer = client.text_document_completion_async(lsp.CompletionParams(document, cursor))
        typed.append(await milliseconds(answer))
    begin = time.perf_counter()
    while (await asyncio.wait_for(editor.found.get(), 600)).version != 40:
        pass
    times += [sorted(typed)[len(typed) // 2], max(typed), 1000 * (time.perf_counter() - begin)]
    symbols = client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
    times.append(await milliseconds(symbols))
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()  # type: ignore[no-untyped-call]
    return f"{count:>9,} {len(text) / 1e6:>6.1f} " + " ".join(f"{each:>10,.0f}" for each in times)


def main() -> None:
    """Print a table."""
    print(f"{HEADER[0]:>9} {HEADER[1]:>6} " + " ".join(f"{each:>10}" for each in HEADER[2:]))
    with TemporaryDirectory() as folder:
        for count in map(int, sys.argv[1:]) if sys.argv[1:] else NODES:
            print(asyncio.run(row(count, Path(folder))), flush=True)


if __name__ == "__main__":
    main()

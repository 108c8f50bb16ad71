"""The language server, spoken to by a client as an editor does."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from lsprotocol import types as lsp
from onnx import TensorProto, helper
from pygls.lsp.client import LanguageClient

import onnxjson
from onnxjson.serving.edited_text import EditedText
from onnxjson.serving.offers import changed, offers
from tests.golden.test_mistakes import BASE, EDITS, edited


def text_of(folder: Path) -> str:
    """The text of three nodes and a weight."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
            helper.make_node("Softmax", ["h"], ["p"], name="second", axis=-1),
            helper.make_node("Relu", ["p"], ["y"], name="third"),
        ],
        "g",
        [value("x", TensorProto.FLOAT, [2, 4])],
        [value("y", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor("w", TensorProto.FLOAT, [4, 3], range(12))],
        value_info=[value("h", TensorProto.FLOAT, [2, 3])],
    )
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return onnxjson.dumps(onnxjson.load(path))


class Editor:
    """A client with one open text."""

    def __init__(self, client: LanguageClient, uri: str, text: str) -> None:
        self.client = client
        self.uri = uri
        self.text = text
        self.version = 0
        self.found: asyncio.Queue[Any] = asyncio.Queue()
        client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.found.put_nowait(params))

    async def open(self) -> None:
        await self.client.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities()))
        self.client.initialized(lsp.InitializedParams())
        document = lsp.TextDocumentItem(self.uri, "json", self.version, self.text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(document))

    def write(self, text: str) -> None:
        self.version += 1
        self.text = text
        document = lsp.VersionedTextDocumentIdentifier(version=self.version, uri=self.uri)
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))

    def type(self, start: int, end: int, text: str) -> None:
        """Replace characters, as a keystroke does."""
        self.version += 1
        places = [self.place_at(each) for each in (start, end)]
        self.text = self.text[:start] + text + self.text[end:]
        document = lsp.VersionedTextDocumentIdentifier(version=self.version, uri=self.uri)
        change = lsp.TextDocumentContentChangePartial(lsp.Range(*places), text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))

    def place_at(self, offset: int) -> lsp.Position:
        """The position of an offset, in UTF-16, as editors count."""
        before = self.text[:offset]
        line = before[before.rfind("\n") + 1 :]
        return lsp.Position(before.count("\n"), len(line.encode("utf-16-le")) // 2)

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        """Those of the present version."""
        while True:
            found = await asyncio.wait_for(self.found.get(), 20)
            if found.version == self.version:
                return list(found.diagnostics)

    def place(self, part: str, after: int = 0) -> dict[str, Any]:
        """The position `after` characters into the first occurrence of `part`."""
        before = self.text[: self.text.index(part) + after]
        line = before.count("\n")
        position = lsp.Position(line, len(before) - before.rfind("\n") - 1)
        return {"text_document": lsp.TextDocumentIdentifier(self.uri), "position": position}

    def applied(self, edits: Any) -> str:
        lines = self.text.splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        text = self.text
        for edit in sorted(edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True):
            start, end = (starts[each.line] + each.character for each in (edit.range.start, edit.range.end))
            text = text[:start] + edit.new_text + text[end:]
        return text


Session = Callable[[Editor], Awaitable[None]]


def edit(tmp_path: Path, session: Session, text: str | None = None) -> None:
    """Start the server as an editor does, and run a session with it."""

    async def run() -> None:
        client = LanguageClient("test", "1")
        await client.start_io(sys.executable, "-m", "onnxjson", "lsp")
        editor = Editor(client, (tmp_path / "m.onnx.json").as_uri(), text_of(tmp_path) if text is None else text)
        try:
            await editor.open()
            await session(editor)
            await client.shutdown_async(None)
            client.exit(None)
        finally:
            process: Any = client._server
            if process.returncode is None and sys.exc_info()[0] is not None:
                process.kill()
            await client.stop()  # type: ignore[no-untyped-call]

    asyncio.run(run())


def test_hover_completion_and_navigation(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        client = editor.client
        hover = await client.text_document_hover_async(lsp.HoverParams(**editor.place('"Softmax"', 2)))
        assert hover is not None
        assert "axis" in hover.contents.value  # type: ignore[union-attr]
        hover = await client.text_document_hover_async(lsp.HoverParams(**editor.place('["x", "w"]', 7)))
        assert hover is not None
        assert "float32[4,3]" in hover.contents.value  # type: ignore[union-attr]
        hover = await client.text_document_hover_async(lsp.HoverParams(**editor.place('"input": ["h"]', 11)))
        assert hover is not None
        assert "first" in hover.contents.value  # type: ignore[union-attr]
        for part, after, wanted, unwanted in (
            ('"Softmax"', 1, "LogSoftmax", "axis"),
            ('"axis"', 1, "axis", "Softmax"),
            ('"input": ["h"]', 11, "x", "Softmax"),
        ):
            params = lsp.CompletionParams(**editor.place(part, after))
            offered = await client.text_document_completion_async(params)
            labels = {each.label for each in offered.items}  # type: ignore[union-attr]
            assert wanted in labels
            assert unwanted not in labels
        place = editor.place('"input": ["h"]', 11)
        origin = await client.text_document_definition_async(lsp.DefinitionParams(**place))
        assert origin.range.start.line == editor.text[: editor.text.index('["h"],')].count("\n")  # type: ignore[union-attr]
        context = lsp.ReferenceContext(include_declaration=True)
        found = await client.text_document_references_async(lsp.ReferenceParams(context=context, **place))
        assert len(found or ()) == 3  # output, input, value_info
        symbols = await client.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(editor.uri))
        )
        assert {"first", "second", "third", "x: float32[2,4]"} <= {each.name for each in symbols or ()}

    edit(tmp_path, session)


def test_rename_is_the_edit_and_format_is_fmt(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        client = editor.client
        place = editor.place('"input": ["h"]', 11)
        found = await client.text_document_rename_async(lsp.RenameParams(new_name="hidden", **place))
        model = onnxjson.loads(editor.text)
        renamed = onnxjson.apply(model, [onnxjson.edits.Rename(kind="tensor", from_="h", to="hidden")])
        assert editor.applied(found.changes[editor.uri]) == onnxjson.dumps(renamed)  # type: ignore[union-attr, index]
        with pytest.raises(Exception, match="would collide"):
            await client.text_document_rename_async(lsp.RenameParams(new_name="x", **place))
        good = editor.text
        editor.write(good.replace("\n  ", "\n       ").replace('"axis": -1', '"axis":-1'))
        params = lsp.DocumentFormattingParams(
            lsp.TextDocumentIdentifier(editor.uri), lsp.FormattingOptions(tab_size=2, insert_spaces=True)
        )
        edits = await client.text_document_formatting_async(params)
        assert editor.applied(edits) == good

    edit(tmp_path, session)


def test_types_as_hints_and_corrections_as_actions(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        client = editor.client
        document = lsp.TextDocumentIdentifier(editor.uri)
        everything = lsp.Range(lsp.Position(0, 0), lsp.Position(999, 0))
        hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(document, everything))
        assert " float32[2,3]" in [each.label for each in hints or ()]
        editor.write(editor.text.replace('"Softmax"', '"SoftMax"'))
        found = [each for each in await editor.diagnostics() if each.code == "unknown-operator"]
        context = lsp.CodeActionContext(found)
        actions = await client.text_document_code_action_async(lsp.CodeActionParams(document, everything, context))
        action = next(each for each in actions or () if each.title == "Replace with Softmax")
        edits = action.edit.changes[editor.uri]  # type: ignore[index, union-attr]
        assert '"Softmax"' in editor.applied(edits)

    edit(tmp_path, session)


def test_half_typed_texts_never_end_the_server(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        good = editor.text
        await editor.diagnostics()
        for position in range(0, len(good), 37):
            editor.write(
                good[:position]
                + "\x00{[\"'é\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                + good[position:]
            )
            params = lsp.HoverParams(lsp.TextDocumentIdentifier(editor.uri), lsp.Position(position % 30, 3))
            await editor.client.text_document_hover_async(params)
        editor.write(good)
        assert await editor.diagnostics() == []

    edit(tmp_path, session)


def test_texts_of_other_programs_are_left_alone(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        assert await editor.diagnostics() == []

    edit(tmp_path, session, '{"voice": "en", "speed": 1.0}\n')


def test_folds_colours_and_signatures(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        client, document = editor.client, lsp.TextDocumentIdentifier(editor.uri)
        lines = editor.text.splitlines()
        folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(document))
        assert all(set(lines[each.start_line]) & set("{[") for each in folds or ())
        assert {lines[each.end_line + 1].strip()[0] in "}]" or lines[each.end_line].rstrip(",")[-1] in "}]"
                for each in folds or ()} == {True}  # fmt: skip
        tokens = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document))
        line = column = 0
        found = []
        for place in range(0, len(tokens.data), 5):  # type: ignore[union-attr]
            down, right, length, kind, _ = tokens.data[place : place + 5]  # type: ignore[union-attr]
            line, column = line + down, right + (0 if down else column)
            found.append((lines[line][column : column + length], kind))
        assert {('"Softmax"', 2), ('"axis"', 3), ('"h"', 0), ('"second"', 1), ('"float32[2,4]"', 4)} <= set(found)
        help_ = await client.text_document_signature_help_async(
            lsp.SignatureHelpParams(**editor.place('["x", "w"]', 7))
        )
        assert help_ is not None
        assert (help_.signatures[0].label, help_.active_parameter) == ("MatMul(A, B) -> Y", 1)

    edit(tmp_path, session)


def test_a_binary_is_edited_as_text(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        async def ask(command: str, *arguments: str) -> str:
            params = lsp.ExecuteCommandParams(command, list(arguments))
            return str(await editor.client.workspace_execute_command_async(params))

        path = tmp_path / "m.onnx"
        before = path.read_bytes()
        text = await ask("onnxjson.open", str(path))
        assert '"Softmax"' in text
        assert await ask("onnxjson.save", str(path), text) == "nothing changed"
        assert path.read_bytes() == before
        with pytest.raises(Exception, match=f"{path}:17.*did you mean"):
            await ask("onnxjson.save", str(path), text.replace('"Softmax"', '"SoftMax"'))
        with pytest.raises(Exception, match=f"{path}:[0-9]+:.*has no value"):
            await ask("onnxjson.save", str(path), text.replace('"axis": -1', '"axis": '))
        assert path.read_bytes() == before
        path.chmod(0o600)  # no change of the model
        assert await ask("onnxjson.save", str(path), text.replace('"axis": -1', '"axis": 1')) == f"saved {path}"
        saved = onnxjson.load(path)
        assert saved.node("op:Softmax").node.attributes["axis"] == 1
        assert saved == onnxjson.loads(onnxjson.dumps(onnxjson.load(path)))
        assert onnxjson.diff(path, onnxjson.from_proto(onnx.load_model_from_string(before))).events[0].count == 1
        text = await ask("onnxjson.open", str(path))
        modified = path.stat().st_mtime_ns
        path.write_bytes(path.read_bytes().replace(b"Softmax", b"Sigmoid"))  # another program, which hides it
        os.utime(path, ns=(modified, modified))
        before = path.read_bytes()
        with pytest.raises(Exception, match="changed"):
            await ask("onnxjson.save", str(path), text.replace('"axis": 1', '"axis": 0'))
        assert path.read_bytes() == before

    edit(tmp_path, session)


def test_mistakes_of_hands_are_found_at_the_same_places(tmp_path: Path) -> None:
    """One in three of the golden mistakes: findings, lines and columns are those of `check`."""
    file = tmp_path / "mistake.onnx.json"

    async def session(editor: Editor) -> None:
        await editor.diagnostics()
        compared = 0
        for mistake in EDITS[::3]:
            try:
                text = edited(mistake).decode()
            except UnicodeDecodeError:
                continue  # an editor sends characters
            if '"onnxjson/' not in text or "\ufeff" in text:
                continue
            editor.write(text)
            found = [(each.code, each.range.start.line, each.range.start.character) for each in
                     await editor.diagnostics()]  # fmt: skip
            expected = []
            file.write_text(text)
            for each in onnxjson.check(file):
                line = text.splitlines(keepends=True)[max(each.line, 1) - 1 : max(each.line, 1)]
                column = min(max(each.column, 1) - 1, len(line[0]) if line else 0)
                expected.append((each.code, max(each.line, 1) - 1, column))
            assert [code for code, *_ in found] == [code for code, *_ in expected], mistake["name"]
            assert found == expected, mistake["name"]
            compared += 1
        assert compared > 30

    edit(tmp_path, session, BASE.decode())


@pytest.mark.parametrize("last", [b"{", b'{"jsonrpc":"2.0","method":"exit"}'])
def test_a_client_that_leaves_or_vanishes_ends_the_server(last: bytes) -> None:
    command = [sys.executable, "-m", "onnxjson", "lsp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        _, error = process.communicate(b"Content-Length: 33\r\n\r\n" + last, 60)
        assert (process.returncode, b"internal error" in error) == (0, False)


def test_a_document_that_is_not_open_and_not_there_is_empty(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        for uri in ((tmp_path / "none.onnx.json").as_uri(), "untitled:Untitled-1", "file:///%00", "file://", ""):
            document = lsp.TextDocumentIdentifier(uri)
            assert await editor.client.text_document_hover_async(lsp.HoverParams(document, lsp.Position(3, 2))) is None
            parameters = lsp.DocumentSymbolParams(document)
            assert await editor.client.text_document_document_symbol_async(parameters) == []

    edit(tmp_path, session)


def test_texts_that_are_too_long_are_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("onnxjson.serving.edited_text.LARGEST", 100)
    text = EditedText(text_of(tmp_path), tmp_path / "m.onnx.json")
    assert ["does not read it" in each.message for each in text.findings()] == [True]
    assert (text.names(), offers(text, 500), text.description(500), changed(text, [])) == ([], [], [], [])


def test_many_findings_are_cut(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        await editor.diagnostics()
        node = '{"op_type": "Nothing", "input": ["x"], "output": ["%d"]}'
        nodes = ",\n".join(node % number for number in range(10_000))
        editor.write(editor.text.replace('"node": [', f'"node": [{nodes},', 1))
        assert len(await editor.diagnostics()) == 1000

    edit(tmp_path, session)


def talk(*sent: bytes, folder: Path | None = None) -> tuple[int, list[dict[str, Any]], str]:
    """Send bytes to the server, then the end; return its exit code, its answers and its standard error."""
    command = [sys.executable, "-m", "onnxjson", "lsp"]
    done = subprocess.run(command, input=b"".join(sent), capture_output=True, timeout=25, cwd=folder, check=False)
    parts = re.split(rb"Content-Length: \d+\r\n(?:[^\r]+\r\n)*\r\n", done.stdout)
    return done.returncode, [json.loads(each) for each in parts if each], done.stderr.decode()


def message(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


INITIALIZE = message(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}')


def save(path: Path, text: str) -> bytes:
    """The command that replaces a model."""
    params = {"command": "onnxjson.save", "arguments": [str(path), text]}
    return json.dumps({"jsonrpc": "2.0", "id": 2, "method": "workspace/executeCommand", "params": params}).encode()


def test_no_port_is_opened_and_a_page_of_the_web_is_no_editor(tmp_path: Path) -> None:
    text = text_of(tmp_path).replace("Softmax", "LogSoftmax")
    path = tmp_path / "m.onnx"
    before, body = path.read_bytes(), save(path, text)
    post = b"POST / HTTP/1.1\r\nHost: 127.0.0.1:2087\r\nOrigin: https://example.org\r\n"
    code, answers, error = talk(post, message(INITIALIZE.partition(b"\r\n\r\n")[2]), message(body))
    assert (code, answers, path.read_bytes()) == (65, [], before)
    assert "does not begin with a header" in error
    command = [sys.executable, "-m", "onnxjson", "lsp", "--tcp", "2087"]
    refused = subprocess.run(command, capture_output=True, check=False)
    assert (refused.returncode, b"No such option" in refused.stderr) == (2, True)


def test_no_command_works_before_initialize(tmp_path: Path) -> None:
    text = text_of(tmp_path).replace("Softmax", "LogSoftmax")
    path = tmp_path / "m.onnx"
    before = path.read_bytes()
    code, answers, _ = talk(message(save(path, text)), message(b'{"jsonrpc":"2.0","id":3,"method":"shutdown"}'))
    assert [each["error"]["code"] for each in answers] == [-32002, -32002]
    assert (code, path.read_bytes()) == (0, before)


BAD = (
    b"Content-Length: 99999999999999\r\n\r\n{}",
    b"Content-Length: 99999999999999999999999999999999\r\n\r\n{}\r\n",
    message(b"[" * 300_000),
    message(b'{"jsonrpc":"2.0","id":9,"method":"a","params":' * 300 + b"1" + b"}" * 300),
    message(b'{"a":' * 300_000),
    message(b"\xff\xfe{"),
    message(b"[1]"),
    message(b"null"),
    message(b'{"id":5}'),
    message(b'{"jsonrpc":"2.0","id":[],"method":[],"params":7}'),
    message(b'{"jsonrpc":"2.0","id":6,"method":"textDocument/hover","params":7}'),
    message(b'{"jsonrpc":"2.0","id":6,"method":"textDocument/hover","params":{"textDocument":{"uri":"\\u001b[2J"}}}'),
    message(b'{"jsonrpc":"2.0","id":6,"method":"workspace/executeCommand","params":{"command":"onnxjson.save"}}'),
    message(b'{"jsonrpc":"2.0","id":6,"method":"workspace/executeCommand","params":{"command":"none"}}'),
    message(b'{"jsonrpc":"2.0","id":6,"method":"textDocument/hover","params":{"item":{}}}'),
    message(b'{"jsonrpc":"1.0","id":6,"method":"initialize"}'),
    message(b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{}}'),
    message(b'{"jsonrpc":"2.0","id":6,"result":{}}'),
)


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_message_is_answered_without_a_traceback_and_the_next_one_works(number: int) -> None:
    code, answers, error = talk(INITIALIZE, BAD[number], message(b'{"jsonrpc":"2.0","id":7,"method":"shutdown"}'))
    last = answers[-1]
    assert (code, last.get("id"), last.get("result", "missing")) == (0, 7, None), answers
    assert "Traceback" not in error + json.dumps(answers)
    assert all(line.isprintable() and len(line) < 400 for line in error.splitlines())


def test_text_that_nests_deep_is_a_finding_at_once(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        assert "nesting-too-deep" in [each.code for each in await editor.diagnostics()]

    edit(tmp_path, session, '{"format": "onnxjson/1", "graph": ' + "[" * 300_000)

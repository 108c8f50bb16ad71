"""Seeded sessions of an editor, with the server in this process: whatever is typed, both have the same text."""

import asyncio
import itertools
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import onnxjson
from onnxjson.serving import open_texts
from onnxjson.serving.language_server import server
from tests.serving.test_language_server import text_of

ENDINGS = re.compile("\r\n|\n|\r")


class Session:
    """An editor that keeps its own text, as the protocol defines lines and columns."""

    def __init__(self, path: Path, text: str) -> None:
        self.uri = path.as_uri()
        self.text = text
        self.version = 0
        self.answers: dict[int, Any] = {}
        self.found: dict[int, Any] = {}
        self.numbers = itertools.count(1)
        self.server = server()
        self.server.protocol.set_writer(self, include_headers=False)

    def write(self, data: bytes) -> None:
        """What the server sends."""
        message = json.loads(data)
        if "id" in message and "method" not in message:
            self.answers[message["id"]] = message
        elif message.get("method") == "textDocument/publishDiagnostics":
            self.found[message["params"]["version"]] = message["params"]["diagnostics"]

    def close(self) -> None:
        pass

    def send(self, method: str, params: Any, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        protocol = self.server.protocol
        protocol.handle_message(protocol.structure_message(message if number is None else message | {"id": number}))

    def ask(self, method: str, params: Any) -> int:
        number = next(self.numbers)
        self.send(method, params, number)
        return number

    async def answer(self, number: int) -> Any:
        while number not in self.answers:
            await asyncio.sleep(0.001)
        return self.answers[number]

    async def diagnostics(self) -> list[Any]:
        while self.version not in self.found:
            await asyncio.sleep(0.001)
        return list(self.found[self.version])

    async def open(self) -> None:
        await self.answer(self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}}))
        document = {"uri": self.uri, "languageId": "json", "version": 0, "text": self.text}
        self.send("textDocument/didOpen", {"textDocument": document})

    def place(self, offset: int) -> dict[str, int]:
        ends = [each.end() for each in ENDINGS.finditer(self.text) if each.end() <= offset]
        start = ends[-1] if ends else 0
        return {"line": len(ends), "character": len(self.text[start:offset].encode("utf-16-le")) // 2}

    def offset(self, place: Any) -> int:
        starts = [0, *(each.end() for each in ENDINGS.finditer(self.text))]
        units = self.text[starts[place["line"]] :].encode("utf-16-le")[: 2 * place["character"]]
        return int(starts[place["line"]] + len(units.decode("utf-16-le")))

    def change(self, *edits: tuple[int, int, str]) -> None:
        """Replace parts, the last one first, as one change."""
        changes = []
        for start, end, text in edits:
            changes.append({"range": {"start": self.place(start), "end": self.place(end)}, "text": text})
            self.text = self.text[:start] + text + self.text[end:]
        self._changed(changes)

    def replace(self, text: str) -> None:
        """Replace everything."""
        self.text = text
        self._changed([{"text": text}])

    def _changed(self, changes: list[Any]) -> None:
        self.version += 1
        document = {"uri": self.uri, "version": self.version}
        self.send("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
        assert self.server.workspace.get_text_document(self.uri).source == self.text

    def at(self, offset: int) -> dict[str, Any]:
        return {"textDocument": {"uri": self.uri}, "position": self.place(offset)}


def play(path: Path, session: Callable[[Session], Awaitable[None]], text: str) -> None:
    async def run() -> None:
        editor = Session(path, text)
        await editor.open()
        await session(editor)

    asyncio.run(run())


PIECES = ('"', "{", "}", ",", "é", "😀", "\n", "\r", "\r\n", "\u2028", "\x0b", "x", "[1, 2]", "", ": ", '"Relu"')

AT_CURSOR = ("hover", "completion", "definition", "references", "documentHighlight", "signatureHelp")

CONTEXT = {"includeDeclaration": True, "triggerKind": 1, "isRetrigger": False}

OF_WHOLE = ("documentSymbol", "foldingRange", "semanticTokens/full", "documentLink")


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("seed", [0, 1, *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(2, 100)]])
def test_texts_of_server_and_editor_never_part(
    tmp_path: Path, seed: int, is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random keystrokes, deletions, renames and undos; at the end, the findings are those of check.

    Once as a short text, and once as one that is checked in another process and read in the background.
    """
    monkeypatch.setattr(open_texts, "_DELAY", 0.01)
    if is_long:
        monkeypatch.setattr(open_texts, "_LONG", 100)
    random = Random(seed)

    async def session(editor: Session) -> None:
        good, undo = editor.text, list[str]()
        for _ in range(30):
            undo.append(editor.text)
            start = random.randrange(len(editor.text) + 1)
            end = min(len(editor.text), start + random.choice((0, 0, 1, 3, 40)))
            # No position of the protocol is between the characters of \r\n.
            start, end = (each - (editor.text[each - 1 : each + 1] == "\r\n") for each in (start, end))
            kind = random.random()
            if kind < 0.6:
                editor.change((start, end, random.choice(PIECES)))
            elif kind < 0.7:
                editor.replace(undo[random.randrange(len(undo))])
            elif kind < 0.8:
                editor.change((0, len(editor.text), undo[random.randrange(len(undo))]))
            elif '["h"]' in editor.text:
                asked = editor.at(editor.text.index('["h"]') + 2) | {"newName": f"n{len(undo)}"}
                answer = await editor.answer(editor.ask("textDocument/rename", asked))
                if result := answer.get("result"):  # refused while the text is not valid
                    edits = [
                        (*(editor.offset(each["range"][side]) for side in ("start", "end")), each["newText"])
                        for each in result["changes"][editor.uri]
                    ]
                    editor.change(*sorted(edits, reverse=True))
            cursor = editor.at(random.choice((start, random.randrange(len(editor.text) + 1))) % (len(editor.text) + 1))
            for method in random.sample(AT_CURSOR, 2):
                answer = await editor.answer(editor.ask(f"textDocument/{method}", cursor | {"context": CONTEXT}))
                assert "error" not in answer, (method, answer)
            if random.random() < 0.2:
                document = {"textDocument": {"uri": editor.uri}}
                number = editor.ask(f"textDocument/{random.choice(OF_WHOLE)}", document)
                if random.random() < 0.5:
                    assert "error" not in await editor.answer(number)
        last = editor.text if random.random() < 0.5 else good
        editor.replace(last)
        found = [(each["code"], editor.offset(each["range"]["start"])) for each in await editor.diagnostics()]
        file = tmp_path / "last.onnx.json"
        file.write_bytes(last.encode())
        if '"onnxjson/' in last:
            try:
                expected = list(onnxjson.check(file))
            except onnxjson.DecodeError as error:
                expected = list(error.findings)
            starts = [0, *(each.end() for each in re.finditer("\n", last))]
            wanted = [(each.code, min(len(last), starts[max(each.line, 1) - 1] + max(each.column - 1, 0)))
                      for each in expected]  # fmt: skip
            assert found == wanted

    play(tmp_path / "m.onnx.json", session, text_of(tmp_path))


def test_answers_at_the_cursor_do_not_wait_for_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed last is known, and what the version before says about the rest."""
    monkeypatch.setattr(open_texts, "_LONG", 100)

    async def session(editor: Session) -> None:
        await editor.answer(editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": editor.uri}}))
        node = ',\n    {"op_type": "Add", "input": ["'
        at = editor.text.index('"name": "third"}') + len('"name": "third"}')
        editor.change((at, at, node))
        number = editor.ask("textDocument/completion", editor.at(at + len(node)))
        assert editor.answers[number]["result"]["items"][0]["label"] == "y"  # at once
        hover = editor.ask("textDocument/hover", editor.at(editor.text.index('"w", "type"') + 1))
        assert "float32[4,3]" in editor.answers[hover]["result"]["contents"]["value"]
        editor.change((at + len(node), at + len(node), 'p", "p"], "out'))
        inside = editor.at(editor.text.index('"out') + 3)
        names = [
            each["label"] for each in editor.answers[editor.ask("textDocument/completion", inside)]["result"]["items"]
        ]
        assert "output" in names

    play(tmp_path / "m.onnx.json", session, text_of(tmp_path))


def test_waiting_requests_are_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the editor, and by a change that makes them stale; the next check is that of the last version."""
    monkeypatch.setattr(open_texts, "_LONG", 100)

    async def session(editor: Session) -> None:
        document = {"textDocument": {"uri": editor.uri}}
        await editor.diagnostics()
        editor.change((0, 0, " "))
        first = editor.ask("textDocument/documentSymbol", document)
        await asyncio.sleep(0)
        editor.send("$/cancelRequest", {"id": first})
        assert (await editor.answer(first))["error"]["code"] == -32800
        second = editor.ask("textDocument/documentSymbol", document)
        await asyncio.sleep(0)
        editor.replace(editor.text.replace('"Softmax"', '"SoftMax"'))
        assert (await editor.answer(second))["error"]["code"] == -32800
        assert [each["code"] for each in await editor.diagnostics()] == ["unknown-operator"]
        assert set(editor.found) == {0, editor.version}

    play(tmp_path / "m.onnx.json", session, text_of(tmp_path))

"""What the language server offers beyond findings and names, asked in this process."""

from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

import onnxjson
from onnxjson.serving.edited_text import EditedText
from onnxjson.serving.outline import outline
from tests.serving.test_editing_sessions import Session, play
from tests.serving.test_language_server import text_of

HIERARCHY = {"textDocument": {"documentSymbol": {"hierarchicalDocumentSymbolSupport": True}}}


def layers(folder: Path) -> str:
    """The text of two equal layers with a name for the batch, and a branch."""
    value = helper.make_tensor_value_info
    nodes, last = [], "x"
    for number in range(2):
        for operator in ("Relu", "Neg"):
            nodes.append(helper.make_node(operator, [last], [f"{operator}{number}"], name=f"/layer{number}/{operator}"))
            last = f"{operator}{number}"
    then = helper.make_graph([helper.make_node("Abs", [last], ["t"], name="inner")], "then", [],
                             [value("t", TensorProto.FLOAT, ["batch", 4])])  # fmt: skip
    other = helper.make_graph([helper.make_node("Exp", [last], ["e"])], "else", [],
                              [value("e", TensorProto.FLOAT, ["batch", 4])])  # fmt: skip
    nodes.append(helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other))
    inputs = [value("x", TensorProto.FLOAT, ["batch", 4]), value("c", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", TensorProto.FLOAT, ["batch", 4])])
    path = folder / "layers.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    text = onnxjson.dumps(onnxjson.load(path))
    (folder / "layers.onnx.json").write_text(text)
    return text


def asked(editor: Session, method: str, part: str | None = None, after: int = 0, **more: Any) -> Any:
    """The parameters of a request."""
    found = {"textDocument": {"uri": editor.uri}, **more}
    return found if part is None else found | {"position": editor.place(editor.text.index(part) + after)}


async def result(editor: Session, method: str, part: str | None = None, after: int = 0, **more: Any) -> Any:
    """The answer of the server to a request about a text."""
    answer = await editor.answer(editor.ask(f"textDocument/{method}", asked(editor, method, part, after, **more)))
    return answer["result"]


def applied(editor: Session, edits: Any) -> str:
    """The text after edits."""
    text = editor.text
    for each in sorted(edits, key=lambda each: editor.offset(each["range"]["start"]), reverse=True):
        start, end = (editor.offset(each["range"][side]) for side in ("start", "end"))
        text = text[:start] + each["newText"] + text[end:]
    return text


def test_symbols_are_a_tree_of_graphs_scopes_and_nodes(tmp_path: Path) -> None:
    def names(found: Any) -> Any:
        return {each["name"]: names(each.get("children") or ()) for each in found}

    async def session(editor: Session) -> None:
        found = await result(editor, "documentSymbol")
        assert "/layer0/Relu" in {each["name"] for each in found}  # flat for other editors
        editor.server.protocol.client_capabilities.text_document = editor.server.protocol._converter.structure(
            HIERARCHY["textDocument"], type_of_capabilities()
        )
        tree = await result(editor, "documentSymbol")
        inside = names(tree)["graph"]
        assert inside["/layer0"] == {"/layer0/Relu": {}, "/layer0/Neg": {}}
        assert [list(each) for each in inside["If"].values()] == [["e", "Exp"], ["t", "inner"]]
        scopes = {each["name"]: each["detail"] for each in tree[0]["children"]}
        assert scopes["/layer1"] == "2 nodes, as /layer0"

    play(tmp_path / "layers.onnx.json", session, layers(tmp_path))


def test_outlines_of_very_many_nodes_are_cut() -> None:
    text = "".join(f'{{"op_type": "Relu", "output": ["{number}"], "name": "/a/{number}"}},' for number in range(6_000))
    names = EditedText(
        f'{{"format": "onnxjson/1", "graph": {{"node": [{text}', Path("m.onnx.json"), is_read=False
    ).names()
    (graph,) = outline(names)
    assert [(each.name, each.detail, len(each.children)) for each in graph.children] == [("/a", "6,000 nodes", 201)]
    assert graph.children[0].children[-1].name == "and 5,800 more"


def type_of_capabilities() -> Any:
    from lsprotocol import types

    return types.TextDocumentClientCapabilities


def test_completion_offers_keys_dimensions_defaults_and_documentation(tmp_path: Path) -> None:
    async def session(editor: Session) -> None:
        async def labels(part: str, after: int) -> dict[str, Any]:
            found = await result(editor, "completion", part, after)
            return {each["label"]: each for each in found["items"]}

        assert "opset_import" in await labels('"ir_version"', 1)
        assert "initializer" in await labels('"output": [', 1)
        assert {"op_type", "overload"} <= set(await labels('"op_type"', 1))
        assert list(await labels("float32[batch", 9)) == ["batch"]
        operators = await labels('"Relu"', 1)
        item = (await editor.answer(editor.ask("completionItem/resolve", operators["LogSoftmax"])))["result"]
        assert "axis" in item["documentation"]["value"]
        # Booleans do not fit; what is made later comes last.
        order = list(await labels('"input": ["Neg0"]', 11))
        assert order.index("x") < order.index("c")
        assert order[-1] == "y"

    play(tmp_path / "layers.onnx.json", session, layers(tmp_path))


def test_attributes_are_offered_with_types_and_defaults(tmp_path: Path) -> None:
    async def session(editor: Session) -> None:
        items = (await result(editor, "completion", '"axis"', 1))["items"]
        assert [(each["label"], each["detail"]) for each in items] == [("axis", "INT = -1")]
        # Also where the text is not valid.
        editor.replace(editor.text.replace('"axis": -1', '"ax'))
        items = (await result(editor, "completion", '"ax', 3))["items"]
        assert [each["label"] for each in items] == ["axis"]

    play(tmp_path / "m.onnx.json", session, text_of(tmp_path))


def test_dimensions_are_renamed_and_ranges_formatted(tmp_path: Path) -> None:
    async def session(editor: Session) -> None:
        found = await result(editor, "rename", "batch", 2, newName="N")
        model = onnxjson.loads(editor.text)
        renamed = onnxjson.apply(model, [onnxjson.edits.Rename(kind="dim", names={"batch": "N"})])
        assert applied(editor, found["changes"][editor.uri]) == onnxjson.dumps(renamed)
        assert len(await result(editor, "references", "batch", 2, context={"includeDeclaration": True})) == 4
        good = editor.text
        editor.replace(good.replace('"Relu"', '"Relu" ').replace('"Abs"', '"Abs" '))
        start, end = (editor.place(editor.text.index('"Abs"') + each) for each in (0, 2))
        options = {"tabSize": 2, "insertSpaces": True}
        edits = await result(editor, "rangeFormatting", range={"start": start, "end": end}, options=options)
        assert applied(editor, edits) == good.replace('"Relu"', '"Relu" ')

    play(tmp_path / "layers.onnx.json", session, layers(tmp_path))


def test_edits_that_fit_are_actions(tmp_path: Path) -> None:
    async def session(editor: Session) -> None:
        place = editor.place(editor.text.index('"input": ["h"]') + 11)
        found = await result(editor, "codeAction", range={"start": place, "end": place}, context={"diagnostics": []})
        actions = {each["data"]["edit"]: each for each in found}
        assert {"add-output", "delete-node", "prune"} <= set(actions)
        model = onnxjson.loads(editor.text)
        for name, edit in (
            ("add-output", onnxjson.edits.AddOutput(tensor="h")),
            ("delete-node", onnxjson.edits.DeleteNode(node="second")),
        ):
            action = (await editor.answer(editor.ask("codeAction/resolve", actions[name])))["result"]
            expected = onnxjson.dumps(onnxjson.apply(model, [edit]))
            assert applied(editor, action["edit"]["changes"][editor.uri]) == expected

    play(tmp_path / "m.onnx.json", session, text_of(tmp_path))


def test_metadata_of_what_does_not_exist_is_dropped_by_an_action(tmp_path: Path) -> None:
    text = text_of(tmp_path)
    lines = '"element_metadata": [\n    ["node", "gone", "key", "value"]\n  ],\n  "node": ['

    async def session(editor: Session) -> None:
        found = await editor.diagnostics()
        assert [each["code"] for each in found] == ["unknown-owner"]
        (action, *_) = await result(editor, "codeAction", range=found[0]["range"], context={"diagnostics": found})
        action = (await editor.answer(editor.ask("codeAction/resolve", action)))["result"]
        assert applied(editor, action["edit"]["changes"][editor.uri]) == text

    play(tmp_path / "m.onnx.json", session, text.replace('"node": [', lines, 1))


def test_files_of_weights_are_links_and_folders_have_symbols(tmp_path: Path) -> None:
    text = layers(tmp_path)
    (tmp_path / "w.bin").write_bytes(bytes(16))
    first, second = (
        f'{{"name": "{name}", "type": "float32[4]", "blob": "{file}"}}'
        for name, file in (("w", "w.bin"), ("v", "../w.bin"))
    )
    text = text.replace('"node": [', f'"initializer": [{first}, {second}],\n"node": [', 1)

    async def session(editor: Session) -> None:
        found = await result(editor, "documentLink")
        assert [each["target"] for each in found] == [(tmp_path / "w.bin").as_uri()]
        folder = {"event": {"added": [{"uri": tmp_path.as_uri(), "name": "f"}], "removed": []}}
        editor.send("workspace/didChangeWorkspaceFolders", folder)
        answer = await editor.answer(editor.ask("workspace/symbol", {"query": "layer1/Re"}))
        assert [each["name"] for each in answer["result"]] == ["/layer1/Relu"]
        assert answer["result"][0]["location"]["uri"] == (tmp_path / "layers.onnx.json").as_uri()

    play(tmp_path / "m.onnx.json", session, text)

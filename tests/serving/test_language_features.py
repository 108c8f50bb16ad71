"""What the language server offers beyond findings and names, asked in this process."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from lsprotocol import types
from onnx import TensorProto, helper
from pygls.workspace import PositionCodec

import onnxjson
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, TrainingInfo
from onnxjson.serving.edited_text import EditedText
from onnxjson.serving.offers import formatted_nodes, replaced
from onnxjson.serving.open_texts import OpenDocument
from onnxjson.serving.text_names import ends_of_nodes, walk
from onnxjson.serving.whole_text import outline
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


def test_symbols_are_the_model_on_one_page_with_its_nodes(tmp_path: Path) -> None:
    def names(found: Any) -> Any:
        return {each["name"]: names(each.get("children") or ()) for each in found}

    async def session(editor: Session) -> None:
        found = await result(editor, "documentSymbol")
        assert "/layer0/Relu" in {each["name"] for each in found}  # flat for other editors
        editor.server.protocol.client_capabilities.text_document = editor.server.protocol._converter.structure(
            HIERARCHY["textDocument"], type_of_capabilities()
        )
        tree = await result(editor, "documentSymbol")
        model = onnxjson.loads(editor.text)
        assert [each["name"] for each in tree] == [line.text for line in model.outline(infer=True).lines]
        inside = names(tree)
        assert "float32[batch,4]" in tree[0]["name"]
        assert {"/layer0/Relu", "/layer1/Neg"} <= {name for line in inside.values() for name in line}
        branches = next(each for each in tree if "If" in each["name"])
        assert {"If", "inner", "Exp"} <= {each["name"] for each in branches["children"]}
        places = [[(at["line"], at["character"]) for at in each["range"].values()] for each in tree]
        assert all(start <= end for start, end in places)
        assert len({tuple(each) for each in places[1:]}) == len(places) - 1
        editor.replace(editor.text.replace('"format"', '"fromat"'))
        broken = await result(editor, "documentSymbol")
        assert "/layer0/Relu" in names(broken)

    play(tmp_path / "layers.onnx.json", session, layers(tmp_path))


def test_outlines_of_very_many_nodes_are_cut() -> None:
    text = "".join(f'{{"op_type": "Relu", "output": ["{number}"], "name": "/a/{number}"}},' for number in range(6_000))
    broken = EditedText(f'{{"format": "onnxjson/1", "graph": {{"node": [{text}', Path("m.onnx.json"), is_read=False)
    entries = outline(broken)
    assert (entries[0].name, entries[0].detail, len(entries)) == ("/a/0", "Relu", 201)
    assert entries[-1].name == "and 5,800 more"


@pytest.mark.parametrize("spaces", ["", " ", "\n  "])
def test_every_place_in_a_list_of_numbers_has_its_index(spaces: str) -> None:
    numbers = ["0", "-1", "2.5e3", "400", "null", "7"]
    listed = f",{spaces}".join(numbers)
    text = f'{{"node": [{{"a": [{listed}], "b": ["x", "y", {listed}, "z"]}}, {{"c": [] // 1, 2, 3\n}}]}}'
    read = EditedText(text, Path("m.onnx.json"), is_read=False)
    for path, start, end in (
        *[(("node", 0, "a", place), *span) for place, span in enumerate(_spans(text, "[", numbers))],
        *[(("node", 0, "b", place + 2), *span) for place, span in enumerate(_spans(text, '"y", ', numbers))],
    ):
        for offset in range(start, end):
            if text[start] != "0":
                assert read.path_at(offset) == (path, False), (path, offset)
                assert text[slice(*read.at(offset)[:2])] == ","
    assert read.path_at(text.index('"z"') + 1)[0] == ("node", 0, "b", 8)
    assert read.path_at(text.index('"c"') + 1)[0] == read.path_at(text.index("1, 2, 3\n"))[0] == ("node", 1, "c")


def _spans(text: str, before: str, numbers: list[str]) -> Iterator[tuple[int, int]]:
    """Start and end of numbers in a text, of which the first follows the last of the places that begin so."""
    position = text.index(before + numbers[0]) + len(before)
    for number in numbers:
        position = text.index(number, position)
        yield position, position + len(number)
        position += len(number)


def type_of_capabilities() -> Any:
    return types.TextDocumentClientCapabilities


def test_completion_offers_keys_dimensions_defaults_and_documentation(tmp_path: Path) -> None:
    async def session(editor: Session) -> None:
        async def labels(part: str, after: int) -> dict[str, Any]:
            found = await result(editor, "completion", part, after)
            return {each["label"]: each for each in found["items"]}

        assert "doc_string" in await labels('"ir_version"', 1)
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


def test_a_name_of_a_dimension_is_written_as_json(tmp_path: Path) -> None:
    text = layers(tmp_path)
    at = text.index("float32[batch") + 9
    assert replaced(EditedText(text, tmp_path / "m.onnx.json"), at, "dimension")[2]('a"\\') == r"a\"\\"


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
        # With a mistake elsewhere, the valid nodes of the range are formatted; with one inside, nothing changes.
        broken = good.replace('"format"', '"fromat"').replace('"Relu"', '"Relu" ').replace('"Abs"', '"Abs" ')
        for text, expected in (
            (broken, broken.replace('"Abs" ', '"Abs"')),
            (broken.replace('"Abs" ', '"Abs" "Abs"'), broken.replace('"Abs" ', '"Abs" "Abs"')),
        ):
            editor.replace(text)
            start, end = (editor.place(editor.text.index('"Abs"') + each) for each in (0, 2))
            edits = await result(editor, "rangeFormatting", range={"start": start, "end": end}, options=options)
            assert applied(editor, edits) == expected

    play(tmp_path / "layers.onnx.json", session, layers(tmp_path))


def test_nodes_of_subgraphs_and_functions_are_formatted_in_a_text_with_errors(tmp_path: Path) -> None:
    def node(*attributes: Attribute) -> Node:
        return Node(op_type="Relu", input=("a",), output=("b",), attribute=attributes)

    inner = Attribute(name="x", type=5, g=Graph(node=(node(),)))
    body = Attribute(name="body", type=5, g=Graph(node=(node(inner), node())))
    bodies = Attribute(name="all", type=10, graphs=(Graph(node=(node(),)), Graph(node=(node(body),))))
    plain = Attribute(name="plain", g=Graph(node=(node(),)))
    model = Model(
        ir_version=8,
        graph=Graph(node=(node(body), node(bodies), node(plain))),
        functions=(Function(name="f", domain="d", node=(node(body), node(bodies)), attribute_proto=(body,)),),
        training_info=(TrainingInfo(initialization=Graph(node=(node(body),))),),
    )
    good = onnxjson.dumps(model).replace('"format"', '"fromat"')

    def formatted(text: str, start: int, end: int) -> str:
        for each in reversed(formatted_nodes(EditedText(text, tmp_path / "m.onnx.json"), start, end)):
            text = text[: each.start] + each.text + text[each.end :]
        return text

    places = {path: start for start, _, path, _ in walk(good, [], 0) if path[-2:-1] == ("node",) and good[start] == "{"}
    assert len(places) == 29
    for path, start in places.items():
        # Alone, and with errors in all nodes around it.
        for around in ((), ends_of_nodes(path)[:-1]):
            text, at = good, start
            for outer in reversed([places[path[:end]] for end in around]):
                text, at = f"{text[: outer + 2]}_{text[outer + 2 :]}", at + 1
            assert formatted(f"{text[: at + 1]} {text[at + 1 :]}", at + 4, at + 5) == text


def test_nodes_of_subgraphs_are_found_in_a_text(tmp_path: Path) -> None:
    def node(name: str, *graphs: Graph) -> Node:
        pairs = zip(("then_branch", "body"), graphs, strict=False)
        attributes = [Attribute(name=key, type=5, g=graph) for key, graph in pairs]
        return Node(op_type="If", name=name, attribute=tuple(attributes))

    deepest = node("c", Graph(node=(node("d"),)), Graph(node=(node("e"),)))
    inner = Graph(node=(node("a"), node("b", Graph(node=(deepest,)))))
    both = Attribute(name="both", type=10, graphs=(inner, inner))
    own = Node(op_type="Own", domain="d", name="f", attribute=(both, Attribute(name="body", type=5, g=inner)))
    function = Function(name="f", domain="d", node=(node("g", inner),))
    model = Model(ir_version=8, graph=Graph(node=(node("h", inner, inner), own)), functions=(function,))
    text = EditedText(onnxjson.dumps(model), tmp_path / "m.onnx.json")
    names = [each for each in text.names() if each.kind == "node" and each.path[-1] == "name"]
    found = [text.node_at(each.path) for each in names]
    assert [ref.node.name if ref else None for ref in found] == [each.name for each in names]
    assert {ref.address for ref in found if ref} == {ref.address for ref in text.index.nodes()}
    assert len(names) == 33


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
    (tmp_path / "sub").mkdir()
    text = text.replace('"node": [', f'"initializer": [{first}, {second}],\n"node": [', 1)

    async def session(editor: Session) -> None:
        found = await result(editor, "documentLink")
        assert [each["target"] for each in found] == [(tmp_path / "w.bin").as_uri()]
        folder = {"event": {"added": [{"uri": tmp_path.as_uri(), "name": "f"}], "removed": []}}
        editor.send("workspace/didChangeWorkspaceFolders", folder)
        answer = await editor.answer(editor.ask("workspace/symbol", {"query": "layer1/Re"}))
        found = sorted((each["location"]["uri"], each["name"]) for each in answer["result"])
        files = [tmp_path / "layers.onnx", tmp_path / "layers.onnx.json"]
        assert found == [(each.as_uri(), "/layer1/Relu") for each in files]
        # What cannot be read does not hide the rest; binaries have names too; the case does not matter.
        (tmp_path / "loop.onnx.json").symlink_to("loop.onnx.json")
        (tmp_path / "broken.onnx").write_bytes(b"\xff" * 9)
        text_of(tmp_path / "sub")
        answer = await editor.answer(editor.ask("workspace/symbol", {"query": "SECOND"}))
        found = [(each["location"]["uri"], each["name"]) for each in answer["result"]]
        assert found == [((tmp_path / "sub/m.onnx").as_uri(), "second")]

    play(tmp_path / "m.onnx.json", session, text)


def untyped(folder: Path) -> str:
    """The text of `text_of` without types between its input and its output."""
    text_of(folder)
    model = onnx.load(folder / "m.onnx")
    del model.graph.value_info[:]
    return onnxjson.dumps(onnxjson.from_proto(model))


async def inferred(editor: Session) -> list[tuple[str, int]]:
    """The findings about types, which come after the others."""
    while not any(each["code"] == "check-shapes" for each in await editor.diagnostics()):
        await asyncio.sleep(0.01)
    return [(each["code"], editor.offset(each["range"]["start"])) for each in await editor.diagnostics()]


def test_types_and_shapes_are_diagnosed_and_known_without_being_stated(tmp_path: Path) -> None:
    async def session(editor: Session) -> None:
        good = editor.text
        assert await editor.diagnostics() == []
        editor.replace(good.replace("float32[2,3]", "int64[2,3]"))
        text = editor.text
        assert await inferred(editor) == [("check-shapes", text.index('{"op_type": "Relu"'))]
        file = tmp_path / "wrong.onnx.json"
        file.write_text(text)
        assert [(each.code, each.line) for each in onnxjson.check(file, deep=True)] == [
            ("check-shapes", text[: text.index('"Relu"')].count("\n") + 1)
        ]
        everything = {"start": editor.place(0), "end": editor.place(len(text))}
        hints = await result(editor, "inlayHint", range=everything)
        assert [each["label"].strip() for each in hints] == ["float32[2,3]", "float32[2,3]", "int64[2,3]"]
        hover = await result(editor, "hover", '"h"', 1)
        assert "h  float32[2,3]" in hover["contents"]["value"]
        # Also while something is typed.
        editor.replace(text.replace('"input": ["h"]', '"input": ["'))
        found = (await result(editor, "completion", '"input": ["', 11))["items"]
        assert {"h": "float32[2,3]", "w": "float32[4,3]"}.items() <= {
            each["label"]: each["detail"] for each in found
        }.items()

    play(tmp_path / "m.onnx.json", session, untyped(tmp_path))


def test_inputs_are_described(tmp_path: Path) -> None:
    async def session(editor: Session) -> None:
        lines = (await result(editor, "hover", '"x"', 1))["contents"]["value"].splitlines()
        assert lines[2:4] == ["type      float32[2,4]", "producer  the caller, as an input"]
        assert "  to input 0 of MatMul first" in lines

    play(tmp_path / "m.onnx.json", session, text_of(tmp_path))


def test_an_offer_replaces_what_is_written(tmp_path: Path) -> None:
    wild = 'a/b.c"\u202e\n'
    model = onnxjson.load(Path(text_of(tmp_path) and tmp_path / "m.onnx"))
    text = onnxjson.dumps(onnxjson.apply(model, [onnxjson.edits.Rename(kind="tensor", names={"h": wild})]))

    async def session(editor: Session) -> None:
        async def chosen(before: str, typed: str, name: str) -> tuple[dict[str, Any], str]:
            editor.replace(text.replace(before, typed.replace("|", ""), 1))
            at = editor.place(editor.text.index(typed.replace("|", "")) + typed.index("|"))
            asked = {"textDocument": {"uri": editor.uri}, "position": at}
            answer = await editor.answer(editor.ask("textDocument/completion", asked))
            item = next(each for each in answer["result"]["items"] if each["label"].startswith(name))
            return item, applied(editor, [item["textEdit"]])

        written = '"input": ["a/b.c\\"\\u202e\\n"]'
        for typed in ('"input": ["a/b.|zz"]', '"input": [a/b.|]'):
            item, after = await chosen(written, typed, "a/b.c")
            assert item["label"] == 'a/b.c"\\u{202e}\\u{a}'
            assert after == text
        assert (await chosen('"op_type": "Softmax",', '"op_type": Soft|,', "Softmax"))[1] == text
        assert (await chosen('"float32[2,4]"', '"fl|[2,4]"', "float32"))[1] == text
        # Keys and attributes that are there already are not offered again.
        for part, offered in (('"op_type": "Softmax", "', ["name", "op_type"]), ('"axis": -1, "', ["axis"])):
            editor.replace(text.replace(part[:-3], part, 1))
            items = (await result(editor, "completion", part, len(part)))["items"]
            assert not {each["label"] for each in items} & set(offered)

    play(tmp_path / "m.onnx.json", session, text)


def test_what_a_finding_suggests_is_a_correction(tmp_path: Path) -> None:
    text = text_of(tmp_path)

    async def session(editor: Session) -> None:
        await editor.diagnostics()
        for wrong, title in (
            (text.replace('"axis": -1', '"axes": -1'), "Replace with axis"),
            (text.replace("float32[2,4]", "float23[2,4]"), "Replace with float32"),
        ):
            editor.replace(wrong)
            found = await editor.diagnostics()
            actions = await result(editor, "codeAction", range=found[0]["range"], context={"diagnostics": found})
            action = next(each for each in actions if each["title"] == title)
            assert applied(editor, action["edit"]["changes"][editor.uri]) == text
        editor.replace(text.replace('"Softmax"', '"Concat"').replace('"axis": -1', ""))
        found = [each for each in await editor.diagnostics() if each["code"] == "missing-attribute"]
        actions = await result(editor, "codeAction", range=found[0]["range"], context={"diagnostics": found})
        action = next(each for each in actions if each["title"] == "Add the attribute axis")
        editor.replace(applied(editor, action["edit"]["changes"][editor.uri]))
        assert await editor.diagnostics() == []
        asked = {"context": {"includeDeclaration": False}}
        assert len(await result(editor, "references", '"h"', 1, **asked)) == 2

    play(tmp_path / "m.onnx.json", session, text)


def test_changes_since_head_are_found_by_structure(tmp_path: Path) -> None:
    text = text_of(tmp_path)
    (tmp_path / "m.onnx.json").write_text(text)

    async def session(editor: Session) -> None:
        async def changes() -> Any:
            asked = {"command": "onnxjson.changes", "arguments": [editor.uri]}
            return (await editor.answer(editor.ask("workspace/executeCommand", asked)))["result"]

        assert await changes() == []  # outside of git
        git = ("git", "-c", "user.name=n", "-c", "user.email=e@e", "-C", str(tmp_path))
        for words in (("init", "-q"), ("add", "m.onnx.json"), ("commit", "-qm", "m")):
            subprocess.run([*git, *words], check=True)
        assert await changes() == []
        changed = text.replace('"axis": -1', '"axis": 1').replace('"first"', '"start"')
        editor.replace(changed.replace('"op_type": "Softmax"', '"op_type":   "Softmax"'))
        lines = editor.text.split("\n")
        found = [(lines[each["line"]].strip()[:20], each["kind"], each["text"]) for each in await changes()]
        assert sorted(found) == [
            ('"name": "start"},', "changed", "was first"),
            ('{"op_type":   "Softm', "changed", "attribute axis was -1"),
        ]

    play(tmp_path / "m.onnx.json", session, text)


def test_weights_of_a_binary_are_described_in_its_text(tmp_path: Path) -> None:
    text_of(tmp_path)
    model = onnx.load(tmp_path / "m.onnx")
    big = onnx.numpy_helper.from_array(np.arange(200, dtype=np.float32), "big")
    model.graph.initializer.append(big)
    onnx.save(model, tmp_path / "m.onnx")
    text = onnxjson.dumps(onnxjson.load(tmp_path / "m.onnx"), weights="digest")

    async def session(editor: Session) -> None:
        lines = (await result(editor, "hover", '"big"', 1))["contents"]["value"].splitlines()
        assert "  maximum  199" in lines

    assert "sha256" in text
    play(tmp_path / "m.onnx.text.onnx.json", session, text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_columns_of_very_long_lines_are_exact(encoding: str) -> None:
    text = "ab\n" + "x\u00e9\u20ac\U0001f600" * 2_000
    codec = PositionCodec(types.PositionEncodingKind(encoding))
    document = OpenDocument("file:///m", text, position_codec=codec)
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    for offset in (2, 3, 7, 4_000, 7_001, len(text)):
        before = text[:offset].rpartition("\n")[2]
        units = len(before.encode("utf-8" if width == 1 else f"{encoding}-le")) // width
        assert document.position_at(offset) == types.Position(text[:offset].count("\n"), units)
    counted = document._wide()
    document.position_at(len(text))
    assert document._wide() is counted  # once for each version, not for each place
    document.apply_change(
        types.TextDocumentContentChangePartial(types.Range(types.Position(1, 0), types.Position(1, 1)), "")
    )
    assert document.position_at(7_000) == OpenDocument("file:///m", document.source, position_codec=codec).position_at(
        7_000
    )

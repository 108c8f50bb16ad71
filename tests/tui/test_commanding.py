"""The command line of the workbench: edits, actions, places, completion."""

from pathlib import Path

import pytest

from onnxjson import edits
from onnxjson_tui.names.completion import command_offers, hint, selector_offers, typed_words
from onnxjson_tui.workbench.app import ACTIONS
from onnxjson_tui.workbench.commands import SHORT_NAMES
from tests.tui.benches import Bench, run_small
from tests.tui.sessions import bytes_of, opened, saved


def test_dot_is_the_node_under_the_cursor_and_percent_the_selection(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("2", "G", ":")
        await bench.type("set-attribute . alpha 0.5")
        made = bench.session.history.made[-1].edits
        assert made == (edits.SetAttribute(node="output:c", attribute="alpha", value=0.5),)
        await bench.press(":")
        await bench.type("add-output . --type float[N,4]")
        assert bench.session.history.made[-1].edits[0] == edits.AddOutput(tensor="c", type="float[N,4]")
        bench.session.places.select(["/graph/node/1", "/graph/node/3"])
        await bench.press(":")
        await bench.type("set-metadata reviewed yes --node %")
        assert "reviewed" in bench.text
        await bench.press("enter")
        assert len(bench.session.history.made[-1].edits) == 2

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_mistakes_ask_again_with_what_was_typed_and_say_what_is_near(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        before = bytes_of(bench.session.model)
        for line, said in (
            ("set-atribute op:Add x 1", 'did you mean "set-attribute"'),
            ("set-attribute op:Ad x 1", 'did you mean "op:Add"'),
            ("set-attribute op:Add", "needs --attribute"),
            ("undo x", "undo has no arguments"),
            ("rewire % 0 x", "no node is selected"),
        ):
            await bench.press(":")
            await bench.type(line)
            assert said in bench.text, line
            assert bench.bench.prompt.is_asking
            assert bench.bench.prompt.input.value == line
            await bench.press("escape")
        assert bytes_of(bench.session.model) == before

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_lines_go_to_places_search_and_leave(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("3")
        assert bench.bench.nodes.cursor == 3
        await bench.press(":")
        await bench.type("9")
        assert "there is no node 9; the last one is 3" in bench.footer
        await bench.press(":")
        await bench.type("/leaky")
        assert bench.bench.nodes.cursor == 2
        await bench.press(":")
        await bench.type("@/graph/node/1")
        assert bench.bench.nodes.cursor == 1
        await bench.press(":")
        await bench.type("filter op:Add")
        assert len(bench.bench.nodes.rows) == 2
        await bench.press(":")
        await bench.type("set-attribute op:LeakyRelu alpha 0.5")
        await bench.press(":")
        await bench.type(f"w {tmp_path}/other.onnx")
        assert (tmp_path / "other.onnx").exists()
        await bench.press(":")
        await bench.type("q")
        assert bench.app.return_code == 0

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_earlier_commands_come_back_with_the_up_key(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("3")
        await bench.press(":", "up")
        assert bench.bench.prompt.input.value == "3"

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_command_says_what_comes_next_and_tab_completes_it(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(":", *"set-at", "tab")
        assert bench.bench.prompt.input.value == "set-attribute "
        assert "--node" in bench.footer
        await bench.press(*"op:Le", "tab", "space", *"al", "tab")
        assert bench.bench.prompt.input.value == "set-attribute op:LeakyRelu alpha"

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_every_short_name_is_that_of_an_action() -> None:
    known = {each.id for each in ACTIONS}
    assert {each.split()[0] for each in SHORT_NAMES.values()} <= known


@pytest.mark.parametrize(
    ("line", "head", "words", "last"),
    [
        ("", "", (), ""),
        ("re", "", (), "re"),
        ("rewire ", "rewire ", ("rewire",), ""),
        ("rewire 'a b", "rewire ", ("rewire",), "a b"),
        ('rewire "a\\"b" x', 'rewire "a\\"b" ', ("rewire", 'a"b'), "x"),
        ("rewire a\\ b", "rewire ", ("rewire",), "a b"),
        ("rewire '' ", "rewire '' ", ("rewire", ""), ""),
    ],
)
def test_words_are_told_apart_as_a_shell_does(line: str, head: str, words: tuple[str, ...], last: str) -> None:
    assert typed_words(line) == (head, words, last)


def offers(path: Path, line: str) -> list[str]:
    with opened(path) as session:
        scope = session.index.scopes[0]
        from onnxjson.model.index import NodeRef

        return command_offers(session, NodeRef(scope, 2), ACTIONS, SHORT_NAMES, line)


@pytest.mark.parametrize(
    ("line", "offer"),
    [
        ("renam", "rename "), ("rename te", "rename tensor"), ("rewire ", "rewire ."),
        ("rewire op:A", "rewire op:Add"), ("rewire op:LeakyRelu 0 ", "rewire op:LeakyRelu 0 a"),
        ("rewire . ", "rewire . 0"), ("set-attribute op:LeakyRelu ", "set-attribute op:LeakyRelu alpha"),
        ("set-tensor ", "set-tensor w"), ("set-tensor --ten", "set-tensor --tensor"),
        ("cast-tensor w float1", "cast-tensor w float16"), ("remove-output ", "remove-output y"),
        ("remove-input ", "remove-input x"), ("add-node LeakyR", "add-node LeakyRelu"), ("set-dim ", "set-dim N"),
        ("filter op:L", "filter op:LeakyRelu"), ("select op:L", "select op:LeakyRelu"),
        ("edit-form set-t", "edit-form set-tensor"), ("run-pass onnxs", "run-pass onnxsim"),
        ("pass onnxs", "pass onnxsim"),
    ],
)  # fmt: skip
def test_tab_offers_what_fits_there(tmp_path: Path, line: str, offer: str) -> None:
    assert offer in offers(saved(tmp_path / "m.onnx"), line)


def test_tab_completes_each_kind_of_term(tmp_path: Path) -> None:
    with opened(saved(tmp_path / "m.onnx")) as session:
        assert selector_offers(session, "o") == ["op:", "output:"]
        assert selector_offers(session, "op:Add !dt") == ["op:Add !dtype:"]
        assert selector_offers(session, "dtype:float16") == ["dtype:float16"]
        assert selector_offers(session, "output:c") == ["output:c"]
        assert selector_offers(session, "in:") == ["in:main"]


def test_hint_says_what_a_parameter_is() -> None:
    assert hint("rewire ").startswith("--node SELECTOR: ")
    assert hint("rewire op:Add 0 ").startswith("--tensor TENSOR: ")
    assert hint("no-such-edit x") == ""

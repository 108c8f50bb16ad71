"""Editing nodes by keys: names, inputs, attributes, deleting, inserting, selecting, repeating, copying."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual import events

from onnxjson.editing.edits import NameNodes, SetDoc, SetName, apply
from onnxjson.editing.script import Script
from onnxjson.editing.spelling import parse_line, spell_line
from onnxjson.model.document import Node
from onnxjson.model.index import Index
from onnxjson.patching.patch import Patch
from onnxjson_tui.rows.choices import ChoiceRows
from onnxjson_tui.rows.inspector import InspectorRows
from onnxjson_tui.screens.form import FormScreen
from onnxjson_tui.session.following import place_after
from onnxjson_tui.shell.dialogs import ConfirmScreen, PickerScreen
from onnxjson_tui.widgets.lines import Bar, LineList
from onnxjson_tui.workbench import moving
from tests.tui.benches import Bench, run
from tests.tui.every_edit import model
from tests.tui.sessions import bytes_of, saved
from tests.tui.test_comparing import finished
from tests.tui.test_form_screen import looked, until

# The nodes of the model: 0 Relu a, 1 Add b (sum), 2 Constant k, 3 LeakyRelu c, 4 Mul d, 5 twice e, 6 Sub y, 7 Add z,
# 8 Neg dead.


def on_model(tmp_path: Path, flow: Callable[[Bench], Awaitable[None]], size: tuple[int, int] = (80, 24)) -> None:
    run(saved(tmp_path / "m.onnx", model()), flow, size)


def nodes(found: Bench) -> list[Node]:
    graph = found.session.model.graph
    assert graph is not None
    return list(graph.node)


def commands(found: Bench) -> tuple[str, ...]:
    return found.session.history.made[-1].commands


async def at(bench: Bench, position: int) -> None:
    """Puts the cursor on a node."""
    bench.bench.nodes.move_to(position)
    bench.bench.show_details()
    await bench.pilot.pause()


async def row(bench: Bench, kind: str) -> None:
    """Goes to the first row of a kind in the inspector."""
    if bench.bench.pane != "inspector":
        await bench.press("e")
    rows = bench.bench.inspector.rows
    assert isinstance(rows, InspectorRows)
    bench.bench.inspector.move_to(next(number for number, each in enumerate(rows.entries) if each.kind == kind))
    await bench.pilot.pause()


async def rub_out(bench: Bench, text: str) -> None:
    """Types a text in the place of what stands in the prompt."""
    bench.bench.prompt.input.value = ""
    await bench.type(text)


def test_a_renamed_node_stays_under_the_cursor(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 1)
        await bench.press("v", "r", "enter")
        await rub_out(bench, "plus")
        assert commands(bench) == ("rename node sum plus",)
        assert bench.bench.here is not None
        assert bench.bench.here.node.name == "plus"
        assert list(bench.session.places.selected) == ["/graph/node/1"]
        await bench.press("r", "down")
        await bench.press("enter")
        await rub_out(bench, "total")
        assert commands(bench) == ("rename tensor b total",)
        assert nodes(bench)[3].input == ("total",)
        await bench.press("r", "enter")
        assert bench.bench.prompt.input.value == "plus"
        await bench.press("escape")

    on_model(tmp_path, flow)


def test_a_name_that_is_taken_is_refused_while_it_is_typed(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 3)
        await bench.press("r", "enter")
        await bench.type("sum")
        assert bench.bench.prompt.is_asking
        assert bench.bench.prompt.input.value == "sum"
        assert "already has this name" in bench.footer
        await bench.press("1", "enter")
        assert nodes(bench)[3].name == "sum1"
        await bench.press("u")
        assert nodes(bench)[3].name is None

    on_model(tmp_path, flow)


def test_a_name_for_a_node_that_has_none_is_a_command_in_the_history_and_the_script(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 3)
        await bench.press("r", "enter")
        await bench.type("leaky")
        assert commands(bench) == ("set-name output:c leaky",)
        assert bench.session.history.made[-1].title == "set-name output:c leaky"
        exported = bench.session.export()
        assert exported == (Script((SetName(node="output:c", name="leaky"),)),)
        assert apply(model(), exported) == bench.session.model

    on_model(tmp_path, flow)


def test_no_name_for_a_node_that_has_none_changes_nothing_and_says_so(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 3)
        await bench.press("r", "enter")
        assert "keeps one" not in bench.footer
        await bench.press("enter")
        assert "nothing changed: it is still empty" in bench.footer
        assert not bench.bench.prompt.is_asking
        assert not len(bench.session.history)
        await at(bench, 1)
        await bench.press("r", "enter")
        await rub_out(bench, "")
        assert "the name of a node cannot be removed" in bench.footer
        await bench.press("escape")

    on_model(tmp_path, flow)


@pytest.mark.parametrize("keys", [("a", "enter", "1")])
def test_operators_that_take_nothing_are_not_offered_between_two_nodes(tmp_path: Path, keys: tuple[str, ...]) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 4)
        await bench.press(*keys)
        assert "Which operator" in bench.text
        screen = bench.app.screen
        assert isinstance(screen, PickerScreen)
        offered = {choice.key for choice in screen._choices}
        assert {"Relu", "Add", "ConstantOfShape"} <= offered
        assert not offered & {"Constant", "RandomNormal", "RandomUniform"}

    on_model(tmp_path, flow)


def test_the_hint_of_a_picker_is_about_what_is_found_now(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 1)
        taken = nodes(bench)[1].input[0]
        await bench.press("0", "w", *taken, "enter")
        hint = bench.app.screen.query_one("#dialog-hint", Bar)
        assert hint.text == "this is the current value"
        await bench.press(*"qqq")
        assert hint.text == "no match   esc cancel"
        await bench.press("backspace", "backspace", "backspace")
        assert hint.text.endswith("type to search")

    on_model(tmp_path, flow)


def test_a_pasted_text_of_several_lines_is_refused_on_the_line(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(":", *"set-")
        assert bench.app.focused is not None
        bench.app.focused.post_message(events.Paste('doc "a\nb"'))
        await bench.settle()
        assert "not pasted: this field takes one line, not 2" in bench.footer
        assert bench.bench.prompt.input.value == "set-"
        bench.app.focused.post_message(events.Paste("doc a\n"))
        await bench.settle()
        assert bench.bench.prompt.input.value == "set-doc a"
        await bench.press("enter")
        assert bench.session.model.doc_string == "a"

    on_model(tmp_path, flow)


def test_a_pass_that_is_an_edit_is_that_edit_in_the_script(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("run-pass name-nodes{prefix=n_}")
        await finished(bench)
        await bench.pilot.press("a")
        await bench.settle()
        assert commands(bench) == ("name-nodes --prefix n_",)
        assert bench.session.history.made[-1].title == "optimize -p name-nodes{prefix=n_}"
        assert bench.session.export() == (Script((NameNodes(prefix="n_"),)),)

    on_model(tmp_path, flow)


def test_comments_of_nodes_are_commands_too(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 1)
        await bench.press(":")
        await bench.type("set-doc 'a sum' --node .")
        assert commands(bench) == ("set-doc 'a sum' --node name:sum",)
        await row(bench, "doc")
        await bench.press("enter")
        assert bench.bench.prompt.input.value == "a sum"
        await rub_out(bench, "of two")
        assert commands(bench) == ("set-doc 'of two' --node name:sum",)
        assert nodes(bench)[1].doc_string == "of two"
        await bench.press("d")
        assert commands(bench) == ("set-doc '' --node name:sum",)
        assert nodes(bench)[1].doc_string is None
        # There is a row also where there is no comment, to give the first one.
        await row(bench, "doc")
        await bench.press("enter")
        await rub_out(bench, "first")
        assert nodes(bench)[1].doc_string == "first"
        assert apply(model(), bench.session.export()) == bench.session.model
        await bench.press("u", "u", "u", "u")
        assert bytes_of(bench.session.model) == bytes_of(model())

    on_model(tmp_path, flow)


def test_a_comment_of_several_lines_is_edited_in_its_form(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        bench.bench.changed(bench.session.edit(SetDoc(text="one\ntwo", node="sum")))
        await at(bench, 1)
        await row(bench, "doc")
        await bench.press("enter")
        screen = bench.app.screen
        assert isinstance(screen, FormScreen)
        assert "one" in bench.text
        assert "two" in bench.text
        await bench.press("!", "ctrl+s")
        await until(bench, lambda: bench.app.screen is bench.bench)
        assert nodes(bench)[1].doc_string == "one\ntwo!"
        assert commands(bench) == ("set-doc 'one\ntwo!' --node name:sum",)

    on_model(tmp_path, flow)


def test_a_comment_of_which_not_all_is_seen_is_edited_as_json(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        bench.bench.changed(bench.session.edit(SetDoc(text="one\n\x1b[31mtwo", node="sum")))
        await at(bench, 1)
        await row(bench, "doc")
        await bench.press("enter")
        assert bench.bench.prompt.input.value == '"one\\n\\u001b[31mtwo"'
        await rub_out(bench, '"one\\ntwo"')
        assert nodes(bench)[1].doc_string == "one\ntwo"

    on_model(tmp_path, flow)


def test_an_attribute_is_typed_by_what_the_operator_expects(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 3)
        await row(bench, "attribute")
        await bench.press("enter")
        assert bench.bench.prompt.input.value == "0.25"
        assert "a number" in bench.footer
        await rub_out(bench, "many")
        assert bench.bench.prompt.is_asking
        await rub_out(bench, "0.5")
        assert commands(bench) == ("set-attribute output:c alpha 0.5",)
        assert bench.bench.pane == "inspector"
        await bench.press("d")
        assert commands(bench) == ("remove-attribute output:c alpha",)
        await row(bench, "add")
        # The operator has no other attribute to choose.
        await bench.press("enter")
        await rub_out(bench, "2")
        assert commands(bench) == ("set-attribute output:c alpha 2",)

    on_model(tmp_path, flow)


def test_rows_of_the_inspector_lead_to_producers_and_consumers(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 3)
        await row(bench, "consumer")
        await bench.press("enter")
        assert bench.bench.here is not None
        assert bench.bench.here.position == 4
        await row(bench, "input")
        await bench.press("enter")
        assert bench.bench.here.position == 3

    on_model(tmp_path, flow)


def test_an_input_takes_another_value(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 1)
        await bench.press("w", "enter")
        assert "that would be a cycle" in bench.text
        assert "this is the current value" in bench.text
        await bench.type("spare")
        assert commands(bench) == ("rewire name:sum 0 spare",)
        await bench.press("1", "w")
        await bench.type("same")
        assert commands(bench) == ("rewire name:sum 1 same",)
        await bench.press("9", "w")
        assert "no input 9" in bench.footer

    on_model(tmp_path, flow, (120, 40))


def test_deleting_asks_what_takes_the_place(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 8)
        await bench.press("d")
        assert commands(bench) == ("delete-node output:dead",)
        await at(bench, 1)
        await bench.press("d")
        assert isinstance(bench.app.screen, PickerScreen)
        assert "3 LeakyRelu input 0" in bench.text
        await bench.press("enter")
        assert commands(bench) == ("delete-node name:sum 0",)
        await bench.press("u")
        await bench.press("D")
        assert commands(bench) == ("delete-node name:sum",)
        await bench.press("u")
        await at(bench, 6)
        await bench.press("D")
        assert isinstance(bench.app.screen, PickerScreen)
        await bench.press("escape")
        assert len(nodes(bench)) == 8

    on_model(tmp_path, flow)


def test_a_node_is_inserted_behind_another_and_before_it(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 3)
        await bench.press("a")
        await bench.type("Relu")
        await until(bench, lambda: isinstance(bench.app.screen, FormScreen))
        screen = bench.app.screen
        assert isinstance(screen, FormScreen)
        await looked(bench, screen)
        assert "would change" in bench.text
        await bench.press("ctrl+s")
        assert commands(bench) == ("add-node Relu --input c --output c_relu --insert",)
        assert nodes(bench)[5].input == ("c_relu", "k")
        await bench.press("u")
        await at(bench, 4)
        await bench.press("a", "enter", "1")
        await bench.type("Neg")
        await bench.press("ctrl+s")
        assert isinstance(bench.app.screen, ConfirmScreen)
        await bench.press("enter")
        assert commands(bench) == ("add-node Neg --input k --output k_neg", "rewire output:d 1 k_neg")
        assert nodes(bench)[5].input == ("c", "k_neg")
        await bench.press("u")
        assert bytes_of(bench.session.model) == bytes_of(model())

    on_model(tmp_path, flow, (120, 40))


def test_the_selection_is_edited_as_one_step_after_a_look(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 3)
        await bench.press("v", "j", "V")
        assert len(bench.session.places.selected) == 2
        await bench.press("d")
        assert isinstance(bench.app.screen, ConfirmScreen)
        assert "2 eliminated" in bench.text or "1 eliminated" in bench.text
        await bench.press("escape")
        assert len(nodes(bench)) == 9
        await bench.press("d", "enter")
        assert len(bench.session.history) == 1
        assert len(commands(bench)) == 2
        assert not bench.session.places.selected
        await bench.press("u")
        assert len(bench.session.places.selected) == 2
        await bench.press(":")
        await bench.type("select op:Add")
        assert list(bench.session.places.selected)[:2] == ["/graph/node/1", "/graph/node/7"]

    on_model(tmp_path, flow)


def test_the_last_edit_is_made_again_elsewhere(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(".")
        assert "no edit to repeat" in bench.footer
        await bench.press(":")
        await bench.type("set-metadata stage one --node output:a")
        await bench.press(":")
        await bench.type("replace-node output:a Abs")
        await at(bench, 8)
        await bench.press(".")
        assert commands(bench) == ("replace-node output:dead Abs",)
        await at(bench, 3)
        await bench.press("v", "j", "v", ".")
        assert isinstance(bench.app.screen, ConfirmScreen) or "accepts 1 input" in bench.footer

    on_model(tmp_path, flow)


def test_a_step_of_several_edits_that_belong_together_is_not_half_repeated(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        bench.session.edit(parse_line("set-metadata a b --node output:a"), parse_line("replace-node output:a Abs"))
        await at(bench, 8)
        await bench.press(".")
        assert "several edits" in bench.footer
        assert len(bench.session.history) == 1

    on_model(tmp_path, flow)


def test_what_is_copied_goes_to_the_clipboard_or_to_a_file(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 1)
        await bench.press("y")
        assert "name:sum" in bench.text
        await bench.press("enter")
        assert bench.app._clipboard == "sum"
        assert "clipboard" in bench.footer
        await bench.press("y", "slash")
        await bench.type("command")
        assert bench.app._clipboard == "add-node Add --input a --input w --output b --name sum"

    on_model(tmp_path, flow)
    assert moving.fits_clipboard(b"x" * 55_000)
    assert not moving.fits_clipboard(b"x" * 56_000)


def test_the_command_that_is_copied_adds_such_a_node() -> None:
    index = Index(model())
    for ref in index.node_refs:
        if ref.scope.kind == "main":
            edit = moving.command_of(ref)
            assert parse_line(spell_line(edit)) == edit


def test_a_required_attribute_must_be_filled_in_and_a_dtype_is_given_by_name(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 8)
        await bench.press("a")
        await bench.type("Cast")
        await bench.press("ctrl+s")
        screen = bench.app.screen
        assert isinstance(screen, FormScreen)
        assert "to has no value" in bench.text
        assert not bench.session.is_changed
        control = next(each for each in screen._controls if each.name == "attribute")
        control.focus()
        await bench.press("tab", *"float16")
        assert "to=float16" in bench.text
        await bench.press("enter", "ctrl+s")
        assert bench.app.screen is bench.bench, bench.text
        assert "to=float16" in commands(bench)[0]
        at_cast = next(node for node in nodes(bench) if node.op_type == "Cast")
        assert at_cast.attribute[0].i == 10

    on_model(tmp_path, flow)


def test_inputs_and_outputs_are_edited_from_their_list(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("i")
        assert "2 inputs, 2 outputs" in bench.text
        assert "not consumed" in bench.text
        await bench.press("enter", "slash", *"rename", "enter")
        await rub_out(bench, "image")
        assert commands(bench) == ("rename tensor x image",)
        assert "2 inputs, 2 outputs" in bench.text
        await bench.press("down", "enter", "slash", *"remove", "enter")
        assert commands(bench) == ("remove-input spare",)
        assert "1 input, 2 outputs" in bench.text
        await bench.press("enter", "slash", *"dim", "enter")
        screen = bench.app.screen
        assert isinstance(screen, FormScreen)
        await bench.press("2", "enter")
        assert commands(bench) == ("set-dim N 2",)
        assert "float32[2,4]" in bench.text
        await bench.press("escape")
        assert bench.app.screen is bench.bench

    on_model(tmp_path, flow)


def test_names_that_are_not_seen_do_not_reach_the_screen_through_fields(tmp_path: Path) -> None:
    odd = "\x1b[31mred\u202e"
    base = model()
    assert base.graph is not None
    first = replace(base.graph.node[1], name=odd)
    broken = replace(base, graph=replace(base.graph, node=(base.graph.node[0], first, *base.graph.node[2:])))

    async def flow(bench: Bench) -> None:
        await at(bench, 1)
        for keys in (("r", "enter"), ("a", "enter"), ("w", "enter"), ("y",), ("o", "enter")):
            await bench.press(*keys)
            assert bench.text.replace("\n", "").isprintable()
            while bench.app.screen is not bench.bench or bench.bench.prompt.is_asking:
                await bench.pilot.press("escape")
        await bench.press("r", "enter")
        assert bench.bench.prompt.input.value.startswith('"\\u001b')
        await bench.press("enter")
        assert not len(bench.session.history)

    run(saved(tmp_path / "m.onnx", broken), flow)


def test_places_follow_nodes_that_get_other_names_and_no_others() -> None:
    base = model()
    graph = base.graph
    assert graph is not None

    def after(*changed: Node) -> list[str | None]:
        patch = Patch.between(base, replace(base, graph=replace(graph, node=changed)))
        return [place_after(patch, f"/graph/node/{position}") for position in range(len(graph.node))]

    here = [f"/graph/node/{position}" for position in range(len(graph.node))]
    assert after(*[replace(node, name=f"n{place}") for place, node in enumerate(graph.node)]) == here
    assert after(*graph.node[:8], replace(graph.node[8], name="last")) == here
    assert after(replace(graph.node[0], name="first"), *graph.node[1:]) == here
    assert after(*graph.node[:3], *graph.node[4:]) == [*here[:3], None, *here[3:-1]]
    other = replace(graph.node[3], op_type="Elu", output=("q",))
    assert after(*graph.node[:3], other, *graph.node[4:]) == [*here[:3], None, *here[4:]]


def test_why_nothing_can_take_the_place_of_a_node_begins_with_what_counts(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 1)
        await bench.press("d")
        rows = bench.app.screen.query_one(LineList).rows
        assert isinstance(rows, ChoiceRows)
        reasons = [each.refused for each in rows.choices if each.refused]
        assert reasons
        assert not any("edit 1 of" in each or each.startswith("/") for each in reasons)

    on_model(tmp_path, flow)


def test_a_dot_in_rename_is_the_node_under_the_cursor_or_what_it_makes(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await at(bench, 1)
        await bench.press(":")
        await bench.type("rename node . total")
        assert nodes(bench)[1].name == "total"
        await bench.press(":")
        await bench.type("rename tensor . t")
        assert nodes(bench)[1].output == ("t",)
        assert commands(bench) == ("rename tensor b t",)
        await at(bench, 2)
        await bench.press(":")
        await bench.type("rename node . x")
        assert "has no name; set-name" in bench.text

    on_model(tmp_path, flow)

"""Save, save as, leave, open, export, history: every question that is asked, and that nothing is lost without one."""

import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson import edits
from onnxjson.editing.applying import run as made
from onnxjson.editing.script import Script
from onnxjson.model.document import Model, Tensor
from onnxjson.model.errors import EditError
from onnxjson.model.tensors import to_numpy
from onnxjson.storage.external_files import externalize, internalize
from onnxjson_tui.pages.history import HistoryRows
from onnxjson_tui.screens.saving import offer_recovery
from onnxjson_tui.shell.dialogs import ConfirmScreen
from onnxjson_tui.shell.workbench import Workbench
from tests.editing.graphs import model_of
from tests.running.test_loading import folded
from tests.tui.benches import Bench, run
from tests.tui.sessions import bytes_of, opened, saved, small

ALPHA = "set-attribute op:LeakyRelu alpha 0.5"

Flow = Callable[[Bench], Awaitable[None]]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return saved(tmp_path / "m.onnx")


def said(found: Bench) -> str:
    """The screen, whatever lines a message takes."""
    return " ".join(found.text.split())


async def changed(bench: Bench, line: str = ALPHA) -> None:
    await bench.press(":")
    await bench.type(line)
    assert bench.session.is_changed


def test_save_says_bytes_and_time_and_the_star_goes(path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await changed(bench)
        await bench.press("ctrl+s")
        assert re.search(rf"saved {path.stat().st_size} bytes in \d", said(bench))
        assert not bench.session.is_changed
        assert path.read_bytes() == bytes_of(bench.session.model)

    run(path, flow)


def test_save_asks_before_it_writes_what_onnxruntime_no_longer_loads(tmp_path: Path) -> None:
    path = tmp_path / "folded.onnx"
    onnxjson.save(folded(), path)
    before = path.read_bytes()

    async def flow(bench: Bench) -> None:
        await changed(bench, "set-shape x 3,5")
        await bench.press("ctrl+s")
        assert "onnxruntime no longer loads it" in said(bench)
        assert "/graph/node/3" in said(bench)
        assert "--unloadable" not in said(bench)
        await bench.press("enter")
        assert path.read_bytes() == before
        await bench.press("ctrl+s")
        await bench.press("O")
        assert path.read_bytes() == bytes_of(bench.session.model) != before

    run(path, flow)


def test_save_as_makes_the_other_form_by_the_ending_and_goes_on_there(path: Path) -> None:
    other = path.with_name("other.onnx.json")

    async def flow(bench: Bench) -> None:
        await changed(bench)
        await bench.press(":")
        await bench.type(f"save-as {other}")
        assert bench.session.opened.path == other
        assert onnxjson.load(other) == bench.session.model
        assert "other.onnx.json" in bench.lines[0]

    before = path.read_bytes()
    run(path, flow)
    assert path.read_bytes() == before


def test_save_as_asks_before_it_replaces_a_file(path: Path) -> None:
    other = path.with_name("other.onnx")
    other.write_bytes(b"mine")

    async def flow(bench: Bench) -> None:
        await changed(bench)
        await bench.press(":")
        await bench.type(f"save-as {other}")
        assert "the file exists" in bench.text
        await bench.press("enter")
        assert other.read_bytes() == b"mine"
        assert "not saved" in said(bench)
        await bench.press(":")
        await bench.type(f"save-as {other}")
        # As for whatever else cannot be taken back by a key: no small letter does it.
        await bench.press("r")
        assert isinstance(bench.app.screen, ConfirmScreen)
        assert other.read_bytes() == b"mine"
        await bench.press("R")
        assert other.read_bytes() == bytes_of(bench.session.model)

    run(path, flow)


@pytest.mark.parametrize(("target", "reason"), [("{folder}", "is a folder"), ("/dev/full", "pipe, socket or device")])
def test_what_can_be_no_file_is_refused_before_anybody_is_asked_to_replace_it(
    path: Path, target: str, reason: str
) -> None:
    async def flow(bench: Bench) -> None:
        await changed(bench)
        for command in ("w", "save-as", "export"):
            await bench.press(":")
            await bench.type(f"{command} {target.format(folder=path.parent)}")
            assert "the file exists" not in bench.text
            assert reason in " ".join(bench.text.split()) or reason in said(bench)
            await bench.press("escape")

    run(path, flow)


def test_a_name_that_says_no_form_is_told_the_form_that_was_written(path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await changed(bench)
        await bench.press(":")
        await bench.type(f"w {path.with_name('x.txt')}")
        assert re.search(r"saved \S+ \S+ as binary ONNX in", said(bench))
        await bench.press(":")
        await bench.type(f"w {path.with_name('x.onnx.json')}")
        assert re.search(r"saved \S+ \S+ in", said(bench))

    run(path, flow)


def test_a_script_replaces_a_file_only_by_a_capital_letter(path: Path) -> None:
    other = path.with_name("edits.json")
    other.write_bytes(b"mine")

    async def flow(bench: Bench) -> None:
        await changed(bench)
        for key in ("enter", "escape", "R"):
            assert other.read_bytes() == b"mine"
            await bench.press(":")
            await bench.type(f"export {other}")
            assert "the file exists" in bench.text
            await bench.press("r", "y")
            assert isinstance(bench.app.screen, ConfirmScreen)
            await bench.press(key)
            assert ("is unchanged" in said(bench)) == (key != "R")
        assert Script.load(other).edits

    run(path, flow)


def theirs(path: Path) -> None:
    """Another program gives the file a doc string."""
    model = onnxjson.load(path)
    onnxjson.save(made(model, edits.SetMetadata(key="theirs", value="1")).model, path)


def test_a_file_that_was_changed_is_not_overwritten_unasked(path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await changed(bench)
        theirs(path)
        content = path.read_bytes()
        await bench.press("ctrl+s")
        assert "the file has changed" in bench.text
        await bench.press("escape")
        assert path.read_bytes() == content
        assert bench.session.is_changed
        await bench.press("ctrl+s")
        await bench.press("O")
        assert path.read_bytes() == bytes_of(bench.session.model)

    run(path, flow)


def test_what_both_changed_is_merged_shown_and_saved(path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await changed(bench)
        theirs(path)
        await bench.press("ctrl+s")
        await bench.press("m")
        assert "No conflicts" in bench.text
        await bench.press("s")
        assert "saved" in said(bench)
        model = onnxjson.load(path)
        assert [entry.key for entry in model.metadata_props] == ["theirs"]
        assert "alpha" in onnxjson.dumps(model)

    run(path, flow)


@pytest.mark.parametrize("is_saved", [True, False])
@pytest.mark.parametrize("is_edited", [True, False])
def test_what_another_program_saved_is_not_taken_back_unasked(path: Path, is_saved: bool, is_edited: bool) -> None:
    async def flow(bench: Bench) -> None:
        await changed(bench)
        theirs(path)
        await bench.press("ctrl+s")
        await bench.press("m", "s" if is_saved else "t")
        await bench.press("u")
        if is_edited:  # which makes history forget the merge
            await changed(bench, "set-metadata mine --value 2")
        content = path.read_bytes()
        for answer in ("enter", "escape"):
            await bench.press("ctrl+s")
            assert "this would revert changes of another program" in said(bench)
            await bench.press(answer)
            assert path.read_bytes() == content
            assert bench.session.is_changed
        # Another program may have saved again meanwhile.
        model = onnxjson.load(path)
        onnxjson.save(made(model, edits.SetMetadata(key="again", value="1")).model, path)
        again = path.read_bytes()
        await bench.press("ctrl+s")
        await bench.press("O")
        assert "the file has changed" in said(bench)
        assert path.read_bytes() == again
        await bench.press("O")
        assert path.read_bytes() == bytes_of(bench.session.model)
        assert "theirs" not in [entry.key for entry in bench.session.model.metadata_props]
        # It was said once, and the file no longer has it.
        await changed(bench, "set-metadata more --value 3")
        await bench.press("ctrl+s")
        assert path.read_bytes() == bytes_of(bench.session.model)

    run(path, flow)


def test_a_merge_that_is_made_again_or_saved_elsewhere_asks_nothing(path: Path) -> None:
    other = path.with_name("other.onnx")

    async def flow(bench: Bench) -> None:
        await changed(bench)
        theirs(path)
        await bench.press("ctrl+s")
        await bench.press("m", "s")
        await bench.press("u", "ctrl+r", "u")
        await bench.press(":")
        await bench.type(f"save-as {other}")
        assert other.read_bytes() == bytes_of(bench.session.model)
        await bench.press("ctrl+r", "ctrl+s")
        assert other.read_bytes() == bytes_of(bench.session.model)
        assert "theirs" in [entry.key for entry in bench.session.model.metadata_props]

    run(path, flow)


def test_a_save_that_fails_says_why_and_can_go_elsewhere(path: Path) -> None:
    if os.geteuid() == 0:
        path.unlink()
        saved(path)
    missing = path.parent / "no" / "folder.onnx"
    other = path.with_name("n.onnx")

    async def flow(bench: Bench) -> None:
        await changed(bench)
        await bench.press(":")
        await bench.type(f"save-as {missing}")
        assert "Not saved" in bench.text
        assert "Nothing is lost" in bench.text
        await bench.press("a")
        assert "save as" in bench.text
        await bench.press("ctrl+u")
        await bench.type(str(other))
        assert "saved" in said(bench)
        assert other.exists()

    run(path, flow)


def test_a_full_disk_is_said_and_nothing_is_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxjson.model.errors import OutputError
    from onnxjson.storage import files

    def full(*_: object, **__: object) -> None:
        raise OutputError("m.onnx cannot be written: no space left on device")

    before = path.read_bytes()

    async def flow(bench: Bench) -> None:
        await changed(bench)
        monkeypatch.setattr(files, "save", full)
        await bench.press("ctrl+s")
        assert "no space left" in bench.text
        await bench.press("escape")
        assert path.read_bytes() == before
        assert bench.session.is_changed
        monkeypatch.undo()
        await bench.press("ctrl+s")
        assert path.read_bytes() == bytes_of(bench.session.model)

    run(path, flow)


def test_leaving_lists_what_is_not_saved_and_can_save(path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await changed(bench)
        await bench.press("q")
        assert "unsaved changes" in bench.text
        assert "set-attribute" in bench.text
        await bench.press("escape")
        assert bench.app.return_code is None
        await bench.press("q", "w")
        assert path.read_bytes() == bytes_of(bench.session.model)

    run(path, flow)


def test_an_edit_while_the_model_is_being_saved_is_refused(path: Path) -> None:
    with opened(path) as session, session._changing:
        assert session.is_saving
        with pytest.raises(EditError, match="being saved"):
            session.edit(edits.SetMetadata(key="a", value="b"))


def test_the_edits_are_exported_as_a_script_and_make_the_same(path: Path) -> None:
    script = path.with_name("e.json")

    async def flow(bench: Bench) -> None:
        await changed(bench)
        await changed(bench, "set-metadata note 'a \"b\" c'")
        await bench.press(":")
        await bench.type(f"export {script}")
        assert "2 edits" in bench.footer
        expected = bench.session.model
        model = onnxjson.load(path)
        for edit in Script.load(script).edits:
            model = made(model, edit).model
        assert model == expected

    run(path, flow)


def test_an_exported_script_edits_the_constant_that_was_meant_in_another_order(tmp_path: Path) -> None:
    text = """g (float[2] x) => (float[2] y) <float[2] v = {1, 1}, float[2] w = {1, 2}> {
        a = Add(x, v)
        y = Add(a, w)
    }"""
    with opened(saved(tmp_path / "m.onnx", model_of(text))) as session:
        session.edit(
            edits.SetTensor(tensor="@/graph/initializer/1", value=[7, 8]), edits.SetDoc(node="@/graph/node/1", text="d")
        )
        script = session.export()
    turned = text.replace("float[2] v = {1, 1}, float[2] w = {1, 2}", "float[2] w = {1, 2}, float[2] v = {1, 1}")
    graph = edits.apply(model_of(turned), script).graph
    assert graph is not None
    assert [(each.name, to_numpy(each).tolist()) for each in graph.initializer] == [("w", [7, 8]), ("v", [1, 1])]
    assert [node.doc_string for node in graph.node] == [None, "d"]


def test_history_says_commands_where_the_model_is_and_what_is_saved(path: Path) -> None:
    with opened(path) as session:
        session.edit(edits.SetMetadata(key="a", value="b"))
        session.save()
        session.edit(edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.5))
        session.undo()
        rows = HistoryRows(session.history)
        lines = ["".join(span.text for span in rows.line(row, 60)).rstrip() for row in range(len(rows))]
        assert lines == [
            "    2 set-attribute op:LeakyRelu alpha 0.5",
            ">   1 set-metadata a b  saved",
            "    0 as opened",
        ]
        session.discard()


def test_enter_in_history_goes_to_the_model_as_it_was(path: Path) -> None:
    async def flow(bench: Bench) -> None:
        for number in range(3):
            await changed(bench, f"set-metadata k{number} v")
        await bench.press("f8")
        bench.bench.focus_pane("drawer")
        await bench.press("G", "enter")
        assert bench.session.history.position == 0
        assert not bench.session.is_changed
        await bench.press("g", "g", "enter")
        assert bench.session.history.position == 3
        assert bench.bench.drawer.page is not None
        assert bench.bench.drawer.page.copied(0) == "set-metadata k2 v"

    run(path, flow)


def killed(path: Path, *lines: str) -> None:
    """A session that leaves its journal."""
    session = opened(path)
    for number, _ in enumerate(lines or ("",)):
        session.edit(edits.SetMetadata(key=f"k{number}", value="v"))
    session.close()


def recovering(path: Path, flow: Flow) -> None:
    async def go(bench: Bench) -> None:
        bench.session.find_abandoned()
        bench.bench.begin(offer_recovery(bench.bench))
        await bench.settle()
        await flow(bench)

    run(path, go)


def test_what_a_killed_session_did_is_shown_recovered_and_undone(path: Path) -> None:
    killed(path)

    async def flow(bench: Bench) -> None:
        assert isinstance(bench.app.screen, ConfirmScreen)
        assert "set-metadata k0 v" in bench.text
        await bench.press("s")
        assert "What recovering would change" in bench.text
        await bench.press("escape", "r")
        assert "1 step recovered" in said(bench)
        assert bench.session.is_changed
        await bench.press("u")
        assert bytes_of(bench.session.model) == bytes_of(small())

    recovering(path, flow)


def test_what_is_kept_for_later_is_offered_again(path: Path) -> None:
    killed(path)

    async def flow(bench: Bench) -> None:
        await bench.press("escape")
        assert not isinstance(bench.app.screen, ConfirmScreen)
        assert not bench.session.is_changed

    recovering(path, flow)
    with opened(path) as session:
        assert len(session.recoverable()) == 1


def test_dropping_asks_once_more(path: Path) -> None:
    killed(path)

    async def flow(bench: Bench) -> None:
        await bench.press("D", "enter")
        assert isinstance(bench.app.screen, ConfirmScreen)
        await bench.press("D", "d")

    recovering(path, flow)
    with opened(path) as session:
        assert not session.recoverable()


def test_a_journal_of_another_file_is_shown_and_exported_but_not_made_again(path: Path, tmp_path: Path) -> None:
    killed(path)
    theirs(path)

    async def flow(bench: Bench) -> None:
        assert "cannot be recovered here" in bench.text
        await bench.press("r")
        assert isinstance(bench.app.screen, ConfirmScreen)
        await bench.press("e")

    recovering(path, flow)
    with opened(path) as session:
        assert len(session.recoverable()) == 1


def test_another_file_takes_the_place_of_the_first(path: Path) -> None:
    other = saved(path.with_name("other.onnx"))

    async def flow(bench: Bench) -> None:
        await changed(bench)
        await bench.press(":")
        await bench.type(f"open {other}")
        assert "unsaved" in bench.text
        await bench.press("enter")
        assert bench.app.screen is bench.bench
        await bench.press(":")
        await bench.type(f"open {other}")
        await bench.press("D")
        await bench.pilot.pause(0.2)
        screen = bench.app.screen
        assert isinstance(screen, Workbench)
        assert screen is not bench.bench
        assert screen.session.opened.path == other

    run(path, flow)


def with_constant(model: Model, constant: Tensor) -> Model:
    assert model.graph is not None
    return replace(model, graph=replace(model.graph, initializer=(constant,)))


@pytest.mark.parametrize("answer", ["c", "w", "s"])
def test_weights_in_other_files_go_along_to_another_folder_if_the_person_says_so(
    path: Path, answer: str, tmp_path: Path
) -> None:
    model = model_of("""g (float[64] x) => (float[64] y) { y = Add(x, w) }""")
    assert model.graph is not None
    model = with_constant(model, Tensor(name="w", data_type=1, dims=(64,), raw_data=bytes(range(256))))
    saved(path, externalize(model, tmp_path / "w.bin", threshold=1).model)
    there = tmp_path / "there" / "m.onnx"
    there.parent.mkdir()

    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type(f"save-as {there}")
        assert "Copy the weights too?" in bench.text
        assert "w.bin" in bench.text
        await bench.press(answer)
        assert there.exists() == (answer != "s")
        assert there.with_name("w.bin").exists() == (answer == "c")
        assert bench.session.opened.path == (path if answer == "s" else there)
        if answer == "c":
            whole = internalize(onnxjson.load(there), there.parent)
            assert whole == model

    run(path, flow)


def test_blobs_of_a_text_go_along_to_another_folder(path: Path, tmp_path: Path) -> None:
    model = model_of("""g (float[N] x) => (float[N] y) { y = Add(x, w) }""")
    assert model.graph is not None
    model = with_constant(model, Tensor(name="w", data_type=1, dims=(80,), raw_data=bytes(320)))
    text = tmp_path / "m.onnx.json"
    onnxjson.save(model, text, weights="blobs")
    there = tmp_path / "there" / "n.onnx.json"
    there.parent.mkdir()
    with opened(text) as session:
        assert session.save(there).kind == "saved"
        session.edit(edits.SetMetadata(key="a", value="b"))
        assert session.save().kind == "saved"
    with opened(there) as session:
        assert not session.opened.problems
        assert session.model.graph == onnxjson.load(text).graph


def test_a_script_never_takes_the_place_of_a_model(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    text = tmp_path / "other.onnx.json"
    onnxjson.save(small(), text)

    async def flow(bench: Bench) -> None:
        await changed(bench)
        for each in (path, text):
            stood = each.read_bytes()
            await bench.press(":")
            await bench.type(f"export {each}")
            assert "is a name for models" in bench.footer
            assert each.read_bytes() == stood

    run(path, flow)
    assert path.read_bytes() == before


def test_steps_that_are_no_edits_are_patches_in_files_of_their_own(path: Path, tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        session = bench.session
        assert session.model.graph is not None
        odd = replace(session.model, graph=replace(session.model.graph, unknown_fields=b"\xfa\x3f\x00"))
        bench.bench.accept(session.preview_model(odd, "made elsewhere"))
        assert session.is_changed
        await bench.press(":")
        await bench.type(f"export {tmp_path / 'p.json'}")
        assert "p.json: a patch; onnxjson apply" in bench.footer
        assert onnxjson.Patch.load(tmp_path / "p.json").apply(onnxjson.load(path)) == session.model
        await changed(bench)
        await bench.press(":")
        await bench.type(f"export {tmp_path / 'e.json'}")
        assert "apply them in this order with onnxjson apply" in said(bench)
        assert not (tmp_path / "e.json").exists()
        exported: list[Any] = [onnxjson.Patch.load(tmp_path / "e-1.json"), Script.load(tmp_path / "e-2.json")]
        assert onnxjson.apply(onnxjson.load(path), exported) == session.model

    run(path, flow)


def test_edits_that_no_journal_keeps_say_so_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no folder").write_text("")

    async def flow(bench: Bench) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "no folder"))
        await changed(bench)
        assert "EDITS ARE NOT KEPT" in bench.lines[0]
        assert "save, or it is lost" in bench.footer
        assert "no journal can be kept" in " ".join(bench.footer.split())

    run(saved(tmp_path / "m.onnx"), flow)

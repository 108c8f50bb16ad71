"""A session: edits, undo, selection, saving, scripts."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson import edits
from onnxjson.model.errors import AccessDeniedError, EditError, ParameterError
from onnxjson.model.index import Index
from onnxjson.model.types import format_type
from onnxjson.patching.patch import Patch
from onnxjson.storage.external_files import externalize
from tests.editing.graphs import model_of
from tests.editing.random_models import random_model
from tests.tui.sessions import bytes_of, edit_somehow, opened, saved, small

ALPHA = edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.5)


def test_no_module_of_sessions_and_rows_imports_textual_or_rich() -> None:
    names = ["session.session", "session.recovery", "rows.nodes", "rows.folding"]
    code = "import sys\n" + "\n".join(f"import onnxjson_tui.{name}" for name in names)
    code += "\nprint({'textual', 'rich', 'onnx', 'numpy', 'click'} & set(sys.modules))"
    paths = os.pathsep.join(str(Path(module.__file__ or "").parent.parent) for module in (onnxjson,))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([paths, str(Path(paths) / "tui")])}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, timeout=60
    )
    assert result.stdout.strip() == "set()"


def test_an_edit_that_changes_nothing_is_no_step(tmp_path: Path) -> None:
    with opened(saved(tmp_path / "m.onnx")) as session:
        session.edit(ALPHA)
        assert session.edit(ALPHA) is None
        assert len(session.history) == 1
        session.discard()


def test_a_preview_changes_nothing_and_shows_the_diff(tmp_path: Path) -> None:
    with opened(saved(tmp_path / "m.onnx")) as session:
        preview = session.preview(ALPHA)
        assert preview.matches == 1
        assert [event.kind for event in preview.difference().events] == ["attribute-changed"]
        assert not session.is_changed
        assert session.journal_path is None
        session.accept(preview)
        with pytest.raises(EditError, match="preview the edit again"):
            session.accept(preview)
        session.discard()


def test_edits_on_a_selection_are_one_step_by_names_that_fit_other_models(tmp_path: Path) -> None:
    model = model_of("g (float[4] x) => (float[4] y) { [one] a = LeakyRelu(x) [two] b = LeakyRelu(a) y = Neg(b) }")
    with opened(saved(tmp_path / "m.onnx", model)) as session:
        session.select("op:LeakyRelu")
        found = session.on_selection(edits.SetAttribute(node="?", attribute="alpha", value=0.5))
        assert [edit.node for edit in found if isinstance(edit, edits.SetAttribute)] == ["name:two", "name:one"]
        session.edit(*found)
        assert len(session.history) == 1
        assert session.history.made[0].commands == (
            "set-attribute name:two alpha 0.5",
            "set-attribute name:one alpha 0.5",
        )
        session.edit(*session.on_selection(edits.DeleteNode(node="?", bypass=0)))
        assert [node.op_type for node in session.model.graph.node] == ["Neg"]  # type: ignore[union-attr]
        assert not session.places.selected
        session.undo()
        assert list(session.places.selected) == ["/graph/node/0", "/graph/node/1"]
        session.discard()


def test_an_edit_that_is_not_of_nodes_is_refused_for_a_selection(tmp_path: Path) -> None:
    with opened(saved(tmp_path / "m.onnx")) as session:
        session.select("op:Add")
        with pytest.raises(ParameterError, match="not for a selection"):
            session.on_selection(edits.Prune())
        session.places.select(())
        with pytest.raises(EditError, match="no node is selected"):
            session.on_selection(ALPHA)


def test_cursor_and_visits_follow_what_they_are_at(tmp_path: Path) -> None:
    with opened(saved(tmp_path / "m.onnx")) as session:
        session.places.cursor = "/graph/node/2"
        session.places.jumps.leave("/graph/node/3")
        session.edit(edits.AddNode(op_type="Neg", input=("x",), output=("n",), insert=True))
        assert session.places.cursor == "/graph/node/3"
        assert list(session.places.jumps) == ["/graph/node/4"]
        session.edit(edits.DeleteNode(node="op:LeakyRelu", bypass=0))
        assert session.places.cursor == "/graph/node/3"  # what stood behind it
        session.undo()
        assert session.places.cursor == "/graph/node/3"
        session.discard()


def test_a_session_that_is_read_only_refuses_every_change_and_keeps_no_journal(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    before = path.read_bytes()
    with opened(path, readonly=True) as session:
        preview = session.preview(ALPHA)
        for change in (
            lambda: session.edit(ALPHA),
            lambda: session.accept(preview),
            session.undo,
            session.redo,
            session.save,
        ):
            with pytest.raises(AccessDeniedError):
                change()
        assert session.journal_path is None
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["m.onnx", "m.onnx.json", "m.onnxjson"])
def test_a_save_keeps_the_form_of_the_file_and_ends_the_journal(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path / name)
    with opened(path) as session:
        session.edit(ALPHA)
        journal = session.journal_path
        assert journal is not None
        assert journal.exists()
        answer = session.save()
        assert (answer.kind, answer.exit_code) == ("saved", 0)
        assert not journal.exists()
        assert not session.is_changed
        assert onnxjson.load(path) == session.model
        session.undo()
        assert session.is_changed
        session.redo()
        assert not session.is_changed
    with opened(path) as again:
        assert again.opened.format == session.opened.format
        assert not again.recoverable()


TRANSPOSED = """g (float[2,3,4] x) => (float y) <float[{shape}] t{more}> {{
    t = Transpose<perm = [{perm}]>(x)
    {node}
    y = Relu(t)
}}"""


def test_types_follow_what_another_program_saved_also_when_the_session_is_killed_and_recovered(tmp_path: Path) -> None:
    """The types that the session added are of a shape that the other program changed; no side states the right ones."""
    plain = {"shape": "4,2,3", "perm": "2, 0, 1", "more": "", "node": ""}
    mine = {**plain, "more": ", float[4,2,3] z", "node": "z = Neg(t)"}
    path = saved(tmp_path / "m.onnx", model_of(TRANSPOSED.format(**plain)))
    with opened(path) as session:
        session.edit(Patch.between(session.model, model_of(TRANSPOSED.format(**mine))))
        onnxjson.save(model_of(TRANSPOSED.format(**{**plain, "shape": "2,3,4", "perm": "0, 1, 2"})), path)
        answer = session.merge_with_disk()
        assert answer.conflicts == ()
        session.accept_merge(answer)
        wanted = session.model
        session._recorder.close()  # as a kill would
    with opened(path) as again:
        (journal,) = again.recoverable()
        shown, trouble = again.preview_recovery(journal)
        again.recover(journal)
        for model in (wanted, shown.model, again.model):
            assert model.graph is not None
            types = {each.name: format_type(each.type) for each in model.graph.value_info if each.type}
            assert types == {"t": "float32[2,3,4]", "z": "float32[2,3,4]"}
        assert not trouble
        again.discard()


def test_a_misused_operator_is_a_problem(tmp_path: Path) -> None:
    model = small()
    assert model.graph is not None
    nodes = (replace(model.graph.node[0], op_type="Nope"), *model.graph.node[1:])
    path = saved(tmp_path / "m.onnx", replace(model, graph=replace(model.graph, node=nodes)))
    with opened(path) as session:
        assert [(each.code, each.address) for each in session.check()] == [
            ("unknown-operator", "/graph/node/0/op_type")
        ]
        session.discard()


def test_a_broken_model_is_shown_edited_and_saved(tmp_path: Path) -> None:
    model = small()
    assert model.graph is not None
    nodes = (replace(model.graph.node[0], input=("nowhere",)), *model.graph.node[1:])
    path = saved(tmp_path / "m.onnx", replace(model, graph=replace(model.graph, node=nodes)))
    with opened(path) as session:
        assert [finding.code for finding in session.check()]
        session.edit(ALPHA)
        assert session.save().kind == "saved"
        session.edit(edits.Rewire(node="op:Relu", input=0, tensor="x"))
        assert not [finding for finding in session.check() if finding.severity == "error"]
        session.discard()


def test_a_revision_is_edited_and_saved_under_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e@e", "commit", "-qm", "m"]):
        subprocess.run(["git", *words], check=True, timeout=30)
    with opened(Path("HEAD:m.onnx")) as session:
        session.edit(ALPHA)
        with pytest.raises(onnxjson.OutputError, match="revision"):
            session.save()
        assert session.save("new.onnx").kind == "saved"
    assert onnxjson.load("new.onnx") == session.model


def test_values_that_edits_put_into_files_are_written_when_the_model_is_saved(tmp_path: Path) -> None:
    with opened(saved(tmp_path / "m.onnx")) as session:
        session.edits_folder = tmp_path
        session.edit(edits.InitializersToInputs(tensor="w", save="w.npy"))
        assert list(session.history.made[0].files)
        assert not list(tmp_path.rglob("*.npy"))
        session.save()
        assert list(tmp_path.rglob("*.npy"))
        session.edit(edits.SetMetadata(key="k", value="v"))
        assert session.save().kind == "saved"


def _names(index: Index) -> object:
    return [
        (
            scope.address,
            scope.inputs,
            scope.initializers,
            scope.producers,
            scope.consumers,
            scope.types,
            [[use.address for use in index.consumers(scope, name)] for name in sorted(scope.producers)],
        )
        for scope in index.scopes
    ]


@pytest.mark.parametrize("seed", range(25))
def test_random_edits_keep_the_index_true_and_undo_restores_every_byte(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = saved(tmp_path / "m.onnx", random_model(rng))
    with opened(path) as session:
        states = [bytes_of(session.model)]
        for _ in range(25):
            assert _names(session.index)  # so that everything is known, and has to follow
            kind = rng.random()
            if kind < 0.65:
                if edit_somehow(session, rng):
                    del states[session.history.position :]
                    states.append(bytes_of(session.model))
            elif kind < 0.85:
                session.undo()
            else:
                session.redo()
            assert bytes_of(session.model) == states[session.history.position]
            assert _names(session.index) == _names(Index(session.model))
        while session.undo():
            assert bytes_of(session.model) == states[session.history.position]
        assert bytes_of(session.model) == path.read_bytes()
        while session.redo():
            assert bytes_of(session.model) == states[session.history.position]
        session.discard()


def test_a_patch_is_a_step_too(tmp_path: Path) -> None:
    with opened(saved(tmp_path / "m.onnx")) as session:
        patch = Patch.between(small(), replace(small(), producer_name="other"))
        session.edit(patch, title="apply change.json")
        assert session.model.producer_name == "other"
        assert session.history.made[0].commands == ()
        assert session.history.made[0].title == "apply change.json"
        session.discard()


def test_a_preview_compares_weights_in_other_files(tmp_path: Path) -> None:
    model = model_of("g (float[64] x) => (float[64] y) <float[64] w = {" + "1, " * 63 + "1}> { y = Add(x, w) }")
    path = saved(tmp_path / "m.onnx", externalize(model, tmp_path / "w.bin", threshold=1).model)
    with opened(path) as session:
        found = session.preview(edits.SetMetadata(key="a", value="b")).difference()
        assert len(found.events) == 1
        assert not found.incomplete

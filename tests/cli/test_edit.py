"""``onnxjson edit``, with scripts for editors."""

import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import psutil
import pytest
from onnx import helper, numpy_helper

from onnxjson.editing import drafts
from onnxjson.storage import api
from onnxjson.storage.store import user_folder
from tests.cli.running import Result, command_line, run, run_process
from tests.cli.terminal import Terminal

Editor = Callable[[str], dict[str, str]]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    """Makes an editor of the body of a Python program: `text` and `path` are what it edits, `turn` counts from 1."""

    def make(body: str) -> dict[str, str]:
        program = tmp_path / "an editor" / "program.py"
        program.parent.mkdir(exist_ok=True)
        lines = [
            "import os, pathlib, sys, time",
            "path = pathlib.Path(sys.argv[-1])",
            "log = pathlib.Path(__file__).with_name('log')",
            "turn = len(log.read_text().splitlines()) + 1 if log.exists() else 1",
            "log.open('a').write(repr(sys.argv[1:]) + chr(10))",
            "text = path.read_text(encoding='utf-8')",
            textwrap.dedent(body),
            "path.write_text(text, encoding='utf-8')",
        ]
        program.write_text("\n".join(lines), encoding="utf-8")
        return {"EDITOR": f"{sys.executable} -I '{program}'"}

    return make


CHANGE = "text = text.replace('\"alpha\": 0.01', '\"alpha\": 0.2')"
BREAK = "text = text.replace('\"alpha\": 0.01', '\"alpha\": zero')"


def alpha_of(path: Path) -> float:
    """What the example's LeakyRelu has; 0.01 before it is edited."""
    proto = api.to_proto(api.load(path))
    return round(next(node for node in proto.graph.node if node.op_type == "LeakyRelu").attribute[0].f, 6)


def kept() -> list[Path]:
    """The drafts in the state folder."""
    return sorted(path for path in user_folder("state").glob("drafts/*/*/*") if path.name != ".origin")


def edit(path: Path, editor: dict[str, str], *arguments: str | Path) -> Result:
    """Edit a file where no terminal is."""
    return run_process("edit", path, *arguments, more=editor)


@pytest.mark.parametrize("form", ["onnx", "json", "protojson"])
def test_valid_change_is_shown_saved_in_the_form_the_file_has_and_can_be_undone(
    binary: Path, editor: Editor, form: str
) -> None:
    path = binary.with_name("m.any")
    assert run("convert", binary, "-o", path, "--to", form).exit_code == 0
    before = path.read_bytes()
    result = edit(path, editor(CHANGE), "--yes")
    assert result.exit_code == 0, result.stderr
    assert '-       "alpha": 0.01\n+       "alpha": 0.2\n' in result.stdout
    assert "saved" in result.stderr
    assert alpha_of(path) == 0.2
    after = path.read_bytes()
    assert after[:1] == before[:1]
    assert kept() == []
    assert run_process("undo-save", path).exit_code == 0
    assert path.read_bytes() == before


def model_with(raw: bytes, count: int) -> onnx.ModelProto:
    """A model with one weight of `count` float32 and a node called old."""
    weight = onnx.TensorProto(name="w", data_type=1, dims=[count], raw_data=raw)
    values = [helper.make_tensor_value_info(name, 1, [count]) for name in ("x", "y")]
    node = helper.make_node("Add", ["x", "w"], ["y"], "old")
    graph = helper.make_graph([node], "g", values[:1], values[1:], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_blobs_stay_blobs_and_need_not_be_there(binary: Path, editor: Editor) -> None:
    path = binary.with_name("apart.onnx.json")
    assert run("convert", binary, "-o", path, "--weights", "blobs").exit_code == 0
    before = path.read_text(encoding="utf-8")
    (blob,) = (binary.parent / "apart.blobs").iterdir()
    content = blob.read_bytes()
    blob.unlink()
    assert edit(path, editor(CHANGE), "--yes").exit_code == 0
    assert path.read_text(encoding="utf-8") == before.replace('"alpha": 0.01', '"alpha": 0.2')
    blob.write_bytes(content)
    assert alpha_of(path) == 0.2


def test_text_of_digests_stays_one(binary: Path, editor: Editor) -> None:
    path = binary.with_name("apart.onnx.json")
    assert run("convert", binary, "-o", path, "--weights", "digest").exit_code == 0
    before = path.read_text(encoding="utf-8")
    assert edit(path, editor(CHANGE), "--yes").exit_code == 0
    assert path.read_text(encoding="utf-8") == before.replace('"alpha": 0.01', '"alpha": 0.2')


def test_unchanged_text_is_no_save(binary: Path, editor: Editor) -> None:
    before = os.stat(binary)
    content = binary.read_bytes()
    for body in ("", "text = text.replace('  ', ' ') + ' '"):
        result = edit(binary, editor(body))
        assert result.exit_code == 0
        assert "nothing changed" in result.stderr
        assert result.stdout == ""
    after = os.stat(binary)
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert binary.read_bytes() == content
    assert kept() == []


@pytest.mark.parametrize("body", ["text = ''", "text = ' \\n'", "path.unlink(); os._exit(0)"])
def test_emptied_text_gives_up(binary: Path, editor: Editor, body: str) -> None:
    before = binary.read_bytes()
    result = edit(binary, editor(body), "--yes")
    assert result.exit_code == 130
    assert ("deleted the text" if "unlink" in body else "is empty") in result.stderr
    assert binary.read_bytes() == before
    assert kept() == []


def test_invalid_text_is_kept_where_nobody_can_be_asked_and_taken_up_again(binary: Path, editor: Editor) -> None:
    before = binary.read_bytes()
    result = edit(binary, editor(BREAK), "--yes")
    assert result.exit_code == 65
    (draft,) = kept()
    assert f"{draft}:26:17: error[bare-word]" in result.stderr
    assert f"onnxjson edit {binary} --draft {draft}" in result.stderr
    assert binary.read_bytes() == before
    assert stat.S_IMODE(draft.stat().st_mode) == 0o600
    assert stat.S_IMODE(draft.parent.stat().st_mode) == 0o700

    result = edit(binary, editor("text = text.replace('zero', '0.2')"), "--yes", "--draft", draft)
    assert result.exit_code == 0, result.stderr
    assert alpha_of(binary) == 0.2
    assert kept() == []


def test_latest_edit_is_continued(binary: Path, editor: Editor) -> None:
    assert edit(binary, editor(BREAK), "--yes").exit_code == 65
    result = edit(binary, editor("text = text.replace('zero', '0.2')"), "--yes", "--continue")
    assert result.exit_code == 0, result.stderr
    assert alpha_of(binary) == 0.2
    result = edit(binary, editor(""), "--continue")
    assert result.exit_code == 2
    assert "leave out --continue to begin a new one" in result.stderr


def test_draft_that_was_kept_is_named_by_the_next_edit(binary: Path, editor: Editor) -> None:
    edit(binary, editor(BREAK))
    (draft,) = kept()
    result = edit(binary, editor(""))
    assert f"onnxjson edit {binary} --draft {draft}" in result.stderr
    assert kept() == [draft]


def test_valid_change_is_kept_where_nobody_can_say_yes(binary: Path, editor: Editor) -> None:
    before = binary.read_bytes()
    result = edit(binary, editor(CHANGE))
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert "--draft" in result.stderr
    assert len(kept()) == 1
    assert binary.read_bytes() == before


def test_file_changed_underneath_is_not_overwritten(binary: Path, editor: Editor) -> None:
    swap = "read_bytes().replace(b'onnxjson.example', b'another_program.')"
    body = f"other = pathlib.Path({str(binary)!r}); other.write_bytes(other.{swap}); {CHANGE}"
    result = edit(binary, editor(body), "--yes")
    assert result.exit_code == 75
    assert b"another_program." in binary.read_bytes()
    (draft,) = kept()
    assert f"--draft {draft}" in result.stderr
    result = edit(binary, editor(""), "--yes", "--draft", draft)
    assert "has changed since the draft was started" in result.stderr


def test_editor_that_fails_or_is_killed_saves_nothing_and_loses_nothing(binary: Path, editor: Editor) -> None:
    before = binary.read_bytes()
    write = "; path.write_text(text, encoding='utf-8'); "
    for end, says in (("os._exit(3)", "exited with 3"), ("os.kill(os.getpid(), 9)", "SIGKILL")):
        result = edit(binary, editor(CHANGE + write + end), "--yes")
        assert result.exit_code == 74
        assert says in result.stderr
        (draft,) = kept()
        assert '"alpha": 0.2' in draft.read_text(encoding="utf-8")
        assert f"--draft {draft}" in result.stderr
        drafts.open_draft(draft).remove()
    assert binary.read_bytes() == before


def test_editor_that_fails_before_anything_was_edited_leaves_no_draft(binary: Path, editor: Editor) -> None:
    result = edit(binary, editor("os._exit(1)"))
    assert result.exit_code == 74
    assert "--draft" not in result.stderr
    assert kept() == []


@pytest.mark.parametrize("command", ["no-such-editor --wait", "'unclosed", "", "  "])
def test_missing_editor_is_said_in_a_line(binary: Path, command: str) -> None:
    result = edit(binary, {"EDITOR": command})
    assert result.exit_code == 74
    assert re.fullmatch(r"onnxjson: error\[74\]: .*(VISUAL|EDITOR).*\n", result.stderr)
    assert kept() == []


def test_visual_comes_before_editor_and_no_shell_is_used(binary: Path, editor: Editor, tmp_path: Path) -> None:
    words = editor(CHANGE)["EDITOR"]
    result = edit(binary, {"VISUAL": f"{words} ; '$(touch {tmp_path}/x)'", "EDITOR": "false"}, "--yes")
    assert result.exit_code == 0
    assert not (tmp_path / "x").exists()
    assert f"';', '$(touch {tmp_path}/x)'" in (tmp_path / "an editor" / "log").read_text()


def test_full_disk_keeps_the_draft_and_the_model(binary: Path, editor: Editor) -> None:
    before = binary.read_bytes()
    assert len(before) > 3072
    words = shlex.join(command_line("edit", binary, "--yes"))
    result = subprocess.run(
        ["bash", "-c", f"ulimit -f 3; exec {words}"],
        env=os.environ | editor(CHANGE),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert result.returncode == 74, result.stderr
    (draft,) = kept()
    assert f"--draft {draft}" in result.stderr
    assert binary.read_bytes() == before


def test_text_of_another_encoding_or_with_other_line_ends_is_understood_or_named(binary: Path, editor: Editor) -> None:
    result = edit(binary, editor("path.write_bytes(text.replace('\\n', '\\r\\n').encode()); os._exit(0)"), "--yes")
    assert "nothing changed" in result.stderr
    result = edit(binary, editor("path.write_bytes(text.encode('utf-16')); os._exit(0)"), "--yes")
    assert result.exit_code == 65
    assert "error[not-utf-8]" in result.stderr


def test_comments_of_a_text_are_said_to_be_lost(text: Path, editor: Editor) -> None:
    text.write_text("// mine\n" + text.read_text(encoding="utf-8"), encoding="utf-8")
    result = edit(text, editor(CHANGE), "--yes")
    assert result.exit_code == 0
    assert f"{text}:1:1: warning[comments-not-kept]" in result.stderr


def test_weight_of_a_selected_node_is_bound_and_a_wrong_one_named(tmp_path: Path, editor: Editor) -> None:
    path = tmp_path / "m.onnx"
    weight = numpy_helper.from_array(np.arange(100, dtype=np.float32), "w")
    node = helper.make_node("Constant", [], ["y"], "old", value=weight)
    output = helper.make_tensor_value_info("y", 1, [100])
    onnx.save(helper.make_model(helper.make_graph([node], "g", [], [output])), path)
    result = edit(path, editor("assert 'sha256' in text; text = text.replace('\"old\"', '\"new\"')"), "--yes", "old")
    assert result.exit_code == 0, result.stderr
    (changed,) = onnx.load(path).graph.node
    assert (changed.name, changed.attribute[0].t) == ("new", weight)
    result = edit(path, editor("text = text.replace('float32[100]', 'float32[101]')"), "--yes", "new")
    assert result.exit_code == 65
    assert re.search(r"nodes\.json:\d+:\d+: error\[unknown-digest\]: the model has no 404 bytes", result.stderr)


def test_state_folder_that_cannot_be_written_is_said_before_the_editor_opens(
    binary: Path, editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = edit(binary, editor(CHANGE) | {"XDG_STATE_HOME": f"{tmp_path}/file"})
    assert result.exit_code == 73
    assert not (tmp_path / "an editor" / "log").exists()


RENAME = 'text = text.replace(\'"output": ["active"]\', \'"output": ["activated"]\')'


def test_new_errors_of_structure_are_not_saved_without_a_question(binary: Path, editor: Editor) -> None:
    before = binary.read_bytes()
    result = edit(binary, editor(RENAME), "--yes")
    assert result.exit_code == 65
    assert 'error[undefined-input]: nothing produces the input "active"' in result.stderr
    assert ":29:" in result.stderr
    assert "the change adds 1 new error, which --yes does not save" in result.stderr
    assert binary.read_bytes() == before
    (draft,) = kept()
    assert f"--draft {draft}" in result.stderr
    with Terminal("edit", binary, "--yes", "--draft", draft, more=editor("") | {"PAGER": "cat"}) as terminal:
        terminal.expect("Save this to")
        terminal.answer("y")
        shown, code = terminal.until_end()
    assert (code, "saved" in shown) == (0, True)
    assert run("check", binary).exit_code == 1


def test_errors_that_the_model_had_before_are_no_reason_not_to_save(binary: Path, editor: Editor) -> None:
    text = binary.with_name("wrong.onnx.json")
    assert run("convert", binary, "-o", text).exit_code == 0
    text.write_text(text.read_text().replace('"output": ["active"]', '"output": ["activated"]'))
    again = edit(text, editor(CHANGE), "--yes")
    assert (again.exit_code, "undefined-input" in again.stderr) == (0, False)


def test_only_the_selected_nodes_are_handed_out_and_put_back(binary: Path, editor: Editor) -> None:
    body = f"assert text.count('op_type') == 2, text; assert 'fc.weight' in text; {CHANGE}"
    result = edit(binary, editor(body), "--yes", "re:/activation|/fc")
    assert result.exit_code == 0, result.stderr
    assert alpha_of(binary) == 0.2
    assert result.stdout.count("\n+") == 2


def test_selected_node_can_be_deleted_and_doubled(binary: Path, editor: Editor) -> None:
    old = onnx.load(binary)
    body = """
    import json
    start = text.index('\\n{')
    tree = json.loads(text[start:])
    block = tree['/graph/node/1']
    tree['/graph/node/1'] = [dict(block, output=['between'], name='one'), dict(block, input=['between'], name='two')]
    text = json.dumps(tree)
    """
    assert edit(binary, editor(body), "--yes", "/activation").exit_code == 0
    new = onnx.load(binary)
    assert [node.name for node in new.graph.node][1:3] == ["one", "two"]
    assert len(new.graph.node) == len(old.graph.node) + 1
    body = """
    import json
    start = text.index('\\n{')
    tree = json.loads(text[start:])
    one, two = tree['/graph/node/1-2']
    tree['/graph/node/1-2'] = [dict(two, input=one['input'])]
    text = json.dumps(tree)
    """
    result = edit(binary, editor(body), "--yes", "re:one|two")
    assert result.exit_code == 0, result.stderr
    assert len(onnx.load(binary).graph.node) == len(old.graph.node)


def test_mistake_in_a_selected_node_has_its_place_and_its_draft_knows_its_nodes(binary: Path, editor: Editor) -> None:
    result = edit(binary, editor(BREAK), "/activation")
    assert result.exit_code == 65
    (draft,) = kept()
    assert draft.name == "digits.nodes.json"
    assert f"{draft}:9:15: error[bare-word]" in result.stderr
    assert edit(binary, editor("text = text.replace('zero', '0.2')"), "--yes", "--draft", draft).exit_code == 0
    assert alpha_of(binary) == 0.2


def test_selector_that_finds_nothing_opens_no_editor(binary: Path, editor: Editor, tmp_path: Path) -> None:
    result = edit(binary, editor(CHANGE), "/activatoin")
    assert result.exit_code == 2
    assert "/activation" in result.stderr
    assert not (tmp_path / "an editor" / "log").exists()


@pytest.fixture
def edited(binary: Path, editor: Editor) -> Iterator[Callable[[str], Terminal]]:
    """Starts to edit the example on a terminal, with such an editor."""
    opened = []

    def start(body: str) -> Terminal:
        opened.append(Terminal("edit", binary, more=editor(body) | {"PAGER": "cat", "NO_COLOR": "1"}))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.__exit__(None, None, None)


def test_invalid_twice_then_valid_is_saved_and_nothing_typed_is_lost(
    edited: Callable[[str], Terminal], binary: Path
) -> None:
    terminal = edited(
        """
        if turn == 1: text = text.replace('"alpha": 0.01', '"alpha": zero')
        if turn == 2: text = text.replace('zero', 'null')
        if turn == 3: text = text.replace('null', '0.2')
        """
    )
    shown = terminal.expect("keep the draft?")
    assert "digits.onnx.json:26:17: error[bare-word]" in shown
    terminal.answer("e")
    assert "digits.onnx.json:26:17: error[wrong-type]" in terminal.expect("keep the draft?")
    terminal.answer("e")
    shown = terminal.expect("[y]es, [e]dit again, [n]o")
    assert '+       "alpha": 0.2' in shown
    assert alpha_of(binary) == 0.01
    terminal.answer("what")
    terminal.expect("please answer")
    terminal.expect("[y]es, [e]dit again, [n]o")
    terminal.answer("y")
    shown, code = terminal.until_end()
    assert code == 0
    assert "saved" in shown
    assert alpha_of(binary) == 0.2
    assert kept() == []


def test_draft_is_kept_when_the_person_quits_or_says_no(edited: Callable[[str], Terminal], binary: Path) -> None:
    for body, question, answer, expected in ((BREAK, "keep the draft?", "q", 65), (CHANGE, "[n]o", "n", 130)):
        terminal = edited(body)
        terminal.expect(question)
        terminal.answer(answer)
        shown, code = terminal.until_end()
        assert code == expected
        (draft,) = kept()
        assert str(draft) in shown.replace("\n", "")
        drafts.open_draft(draft).remove()
    assert alpha_of(binary) == 0.01


def test_ctrl_c_at_a_question_keeps_the_draft(edited: Callable[[str], Terminal]) -> None:
    terminal = edited(CHANGE)
    terminal.expect("[n]o")
    terminal.answer("\x03")
    shown, code = terminal.until_end()
    assert code == 130
    assert str(kept()[0]) in shown.replace("\n", "")


def test_ctrl_c_in_the_editor_is_for_the_editor(edited: Callable[[str], Terminal], binary: Path) -> None:
    terminal = edited(
        f"""
        import signal
        signal.signal(signal.SIGINT, lambda *_: None)
        print("ready", flush=True)
        time.sleep(1)
        {CHANGE}
        """
    )
    terminal.expect("ready")
    terminal.answer("\x03")
    terminal.expect("[y]es")
    terminal.answer("y")
    assert terminal.until_end()[1] == 0
    assert alpha_of(binary) == 0.2


def test_killed_edit_leaves_the_draft(binary: Path, editor: Editor) -> None:
    body = f"{CHANGE}\npath.write_text(text, encoding='utf-8')\nos.kill(os.getppid(), {int(signal.SIGKILL)})"
    assert edit(binary, editor(body), "--yes").exit_code == -signal.SIGKILL
    assert alpha_of(binary) == 0.01
    assert drafts.unsaved_drafts(binary) == kept()
    assert len(kept()) == 1


def test_editing_50_mb_takes_seconds_and_no_memory_for_the_weights(tmp_path: Path, editor: Editor) -> None:
    path = tmp_path / "m.onnx"
    values = np.random.default_rng(4).standard_normal(12_500_000, dtype=np.float32)
    onnx.save(model_with(values.tobytes(), len(values)), path)
    peaks = []
    for small in (True, False):
        target = path
        if small:
            target = tmp_path / "small.onnx"
            onnx.save(model_with(values[:100].tobytes(), 100), target)
        process = psutil.Popen(
            command_line("edit", target, "--yes"),
            env=os.environ | editor("text = text.replace('\"old\"', '\"new\"')"),
            stdout=-3,
            stderr=-3,
        )
        peak = 0
        while process.poll() is None:
            try:
                peak = max(peak, process.memory_info().rss)
            except psutil.Error:
                break
        assert process.wait(60) == 0
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 25_000_000
    assert numpy_helper.to_array(onnx.load(path).graph.initializer[0]).tobytes() == values.tobytes()


def test_a_draft_of_nodes_is_read_by_its_own_places_whatever_a_selector_finds(binary: Path, editor: Editor) -> None:
    result = edit(binary, editor(BREAK), "re:/activation|/fc")
    assert result.exit_code == 65
    (draft,) = kept()
    mended = editor("text = text.replace('zero', '0.2')")
    assert edit(binary, mended, "--yes", "--draft", draft, "/activation").exit_code == 0
    assert alpha_of(binary) == 0.2


def test_metadata_of_a_deleted_node_is_dropped_at_the_prompt(tmp_path: Path, editor: Editor) -> None:
    nodes = [onnx.helper.make_node("Relu", ["x"], [name], name=name) for name in ("a", "b")]
    for node in nodes:
        onnx.helper.set_metadata_props(node, {"namespace": node.name, "fx_node": node.name})
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "b")]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", values[:1], values[1:]))
    onnx.save(model, tmp_path / "m.onnx")
    delete = (
        r"text = re.sub(r'\{\"op_type\": \"Relu\", \"output\": \[\"a\"\].*?\},\s*', '', text, count=1, flags=re.DOTALL)"
    )
    with Terminal("edit", tmp_path / "m.onnx", more=editor("import re; " + delete) | {"PAGER": "cat"}) as terminal:
        shown = terminal.expect("keep the draft?")
        assert '2 lines of metadata belong to the node that produces "a"' in shown
        assert "[d]rop that metadata" in shown
        terminal.answer("d")
        terminal.expect("[y]es, [e]dit again, [n]o")
        terminal.answer("y")
        assert terminal.until_end()[1] == 0
    (left,) = onnx.load(tmp_path / "m.onnx").graph.node
    assert (left.name, len(left.metadata_props)) == ("b", 2)

"""``onnxjson fmt``."""

import json
import os
from pathlib import Path

from msgspec import structs

from onnxjson.model.document import Graph, Model, Node, ValueInfo
from onnxjson.storage import api
from tests.cli.running import run


def test_canonical_text_is_left_as_it_is(text: Path) -> None:
    before = text.stat()
    result = run("fmt", text)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert text.stat().st_mtime_ns == before.st_mtime_ns
    assert text.stat().st_ino == before.st_ino


def test_other_text_becomes_canonical_in_place(text: Path) -> None:
    canonical = text.read_text()
    text.write_text(canonical.replace('"axis": -1', '"axis" :\t-1.0,').replace("  ", " "))
    result = run("fmt", text)
    assert result.exit_code == 0
    assert result.stderr == f"formatted {text}; to undo: onnxjson undo-save {text}\n"
    assert text.read_text() == canonical


def test_what_was_replaced_is_kept_in_the_state_folder(text: Path) -> None:
    text.write_text(text.read_text() + "\n")
    before = text.read_bytes()
    run("fmt", text)
    kept = [path for path in Path(os.environ["XDG_STATE_HOME"]).rglob("*") if path.is_file()]
    assert before in [path.read_bytes() for path in kept]


def test_check_names_what_would_change_and_changes_nothing(text: Path) -> None:
    other = text.with_name("other.onnx.json")
    other.write_text(text.read_text().replace("    ", "   "))
    before = other.read_bytes()
    result = run("fmt", "--check", text, other)
    assert result.exit_code == 1
    assert result.stdout == f"{other}\n"
    assert other.read_bytes() == before
    assert run("fmt", "--check", text).exit_code == 0
    data = json.loads(run("fmt", "--check", text, other, "--json").stdout)
    assert [(each["changed"], each["written"]) for each in data] == [(False, False), (True, False)]
    data = json.loads(run("fmt", other, "--json").stdout)
    assert data == [{"model": str(other), "changed": True, "written": True}]


def test_text_that_goes_on_after_the_canonical_one_would_change(text: Path) -> None:
    text.write_text(text.read_text() + " ")
    assert run("fmt", "--check", text).exit_code == 1


def test_comments_that_go_are_mentioned_before_and_after(text: Path) -> None:
    text.write_text("// mine\n" + text.read_text())
    assert "[comments-not-kept]" in run("fmt", "--check", text).stderr
    assert "[comments-not-kept]" in run("fmt", text).stderr


def test_binary_is_refused_with_what_to_do(binary: Path) -> None:
    result = run("fmt", binary)
    assert result.exit_code == 65
    assert f"onnxjson convert {binary}" in result.stderr


def test_one_bad_file_does_not_stop_the_others(text: Path) -> None:
    bad = text.with_name("bad.onnx.json")
    bad.write_text('{"format": "onnxjson/1", "grahp": {}}')
    canonical = text.read_text()
    text.write_text(canonical + "\n")
    result = run("fmt", bad, text)
    assert result.exit_code == 65
    assert f"{bad}:1:" in result.stderr
    assert text.read_text() == canonical
    assert bad.read_text() == '{"format": "onnxjson/1", "grahp": {}}'


def test_formatting_changes_no_bit_of_the_model(text: Path) -> None:
    before = api.load(text)
    text.write_text(text.read_text().replace("\n", "\n "))
    run("fmt", text)
    assert api.load(text) == before


def test_sort_puts_nodes_after_their_producers(tmp_path: Path) -> None:
    text = tmp_path / "m.onnx.json"
    nodes = [Node(op_type="Abs", input=(one,), output=(other,)) for one, other in ("bc", "ab", "xa", "xd")]
    graph = Graph(name="g", node=tuple(nodes), input=(ValueInfo(name="x"),), output=(ValueInfo(name="c"),))
    api.save(Model(ir_version=8, graph=graph), text)
    assert run("fmt", "--check", text).exit_code == 0
    assert run("fmt", "--check", "--sort", text).exit_code == 1
    assert run("fmt", "--sort", text).exit_code == 0
    sorted_graph = api.load(text).graph
    assert sorted_graph is not None
    assert sorted_graph == structs.replace(graph, node=(nodes[2], nodes[1], nodes[0], nodes[3]))
    assert run("fmt", "--check", "--sort", text).exit_code == 0
    cyclic = structs.replace(graph, node=(nodes[0], Node(op_type="Abs", input=("c",), output=("b",))))
    api.save(Model(ir_version=8, graph=cyclic), text)
    result = run("fmt", "--sort", text)
    assert result.exit_code == 65
    assert "the nodes of /graph depend on each other in a cycle" in result.stderr


def test_errors_of_a_broken_text_are_counted_and_not_all_listed(text: Path) -> None:
    bad = "\n".join(f'{{"name": bad{number}}},' for number in range(1000))
    text.write_text(text.read_text().replace('"node": [', f'"value_info": [{bad}], "node": [', 1))
    result = run("fmt", text)
    assert result.exit_code == 65
    assert len(result.stderr.splitlines()) < 30
    assert "more; `onnxjson check` lists all" in result.stderr

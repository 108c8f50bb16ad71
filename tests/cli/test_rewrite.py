"""``onnxjson rewrite``, and scripts for ``onnxjson apply``."""

import json
import os
from pathlib import Path

import pytest

import onnxjson
from onnxjson import edits
from onnxjson.editing.catalogue import NAMES
from onnxjson.editing.parameters import parameters
from onnxjson.editing.spelling import option_of
from onnxjson.model.index import Index
from tests.cli.running import run, run_process

ALPHA = '{"edit": "set-attribute", "node": "op:LeakyRelu", "attribute": "alpha", "value": 0.25}'
SCRIPT = f'{{"format": "onnxjson-rewrite/1", "edits": [{ALPHA}, {{"edit": "set-metadata", "key": "k", "value": "v"}}]}}'


def alpha(path: Path) -> float:
    """The alpha of the LeakyRelu in a file."""
    import struct

    graph = onnxjson.load(path).graph
    assert graph is not None
    value = graph.node[1].attribute[0].f
    assert value is not None
    found: float = struct.unpack("<f", value)[0]
    return found


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script of two edits."""
    path = tmp_path / "rewrite.json"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_help_has_every_parameter_with_its_default_and_fits_80_columns(name: str) -> None:
    result = run("rewrite", name, "--help")
    assert result.exit_code == 0
    options, _, examples = result.stdout.partition("\nExamples:\n")
    assert examples.count("onnxjson rewrite " + name) == len(NAMES[name].examples)
    joined = " ".join(options.split())
    for parameter in parameters(NAMES[name]):
        assert f" {option_of(parameter)} " in f"{joined} "
        assert " ".join(parameter.description.split()) in joined
    assert [line for line in options.splitlines() if len(line) > 80] == []


def test_list_has_a_line_for_every_edit() -> None:
    lines = run("rewrite", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(NAMES)
    assert run("rewrite").stdout == run("rewrite", "--help").stdout


@pytest.mark.parametrize(
    "words",
    [
        ("op:LeakyRelu", "alpha", "0.25"),
        ("--node", "op:LeakyRelu", "--attribute", "alpha", "--value", "0.25"),
        ("--attribute=alpha", "op:LeakyRelu", "0.25"),
    ],
)
def test_parameters_stand_as_the_last_words_or_as_options(binary: Path, words: tuple[str, ...]) -> None:
    out = binary.with_name("new.onnx")
    result = run("rewrite", "set-attribute", binary, *words, "-o", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(f"wrote {out} (")
    assert alpha(out) == 0.25
    assert alpha(binary) == pytest.approx(0.01)


@pytest.mark.parametrize(
    "words",
    [
        ("op:LeakyRelu", "alpha", "-2"),
        ("op:LeakyRelu", "alpha", "--value", "-2"),
        ("--value=-2", "op:LeakyRelu", "alpha"),
    ],
)
def test_negative_numbers_are_values(binary: Path, words: tuple[str, ...]) -> None:
    out = binary.with_name("new.onnx")
    assert run("rewrite", "set-attribute", binary, *words, "-o", out).exit_code == 0
    assert alpha(out) == -2


def test_several_models_are_changed_in_place_and_can_be_put_back(binary: Path, text: Path) -> None:
    before = [binary.read_bytes(), text.read_bytes()]
    result = run("rewrite", "set-attribute", binary, text, "op:LeakyRelu", "alpha", "0.25", "-i")
    assert result.exit_code == 0
    assert result.stderr.count("to undo: onnxjson undo-save") == 2
    assert (alpha(binary), alpha(text)) == (0.25, 0.25)
    for path in (binary, text):
        run("undo-save", path)
    assert [binary.read_bytes(), text.read_bytes()] == before


def test_errors_of_several_models_say_which_one(binary: Path, text: Path) -> None:
    assert run("rewrite", "delete-node", binary, "op:LeakyRelu", "-i").exit_code == 0
    result = run("rewrite", "delete-node", binary, text, "op:LeakyRelu", "-i")
    assert result.exit_code == 2
    assert f"onnxjson: error[2]: {binary}: no node has op:LeakyRelu" in result.stderr
    assert f"changed {text}" in result.stderr
    result = run("rewrite", "set-attribute", binary, text, "op:Conv", "padz", "1", "-i")
    for path in (binary, text):
        assert f"onnxjson: error[65]: {path}: set-attribute: /graph/node/0: Conv has no attribute" in result.stderr


def test_several_models_go_to_a_folder(binary: Path, text: Path) -> None:
    folder = binary.with_name("folder")
    folder.mkdir()
    assert run("rewrite", "set-attribute", binary, text, "op:LeakyRelu", "alpha", "0.25", "-o", folder).exit_code == 0
    assert (alpha(folder / binary.name), alpha(folder / text.name)) == (0.25, 0.25)


CHANGE = ("rewrite", "set-attribute", "op:LeakyRelu", "alpha", "0.25")


def test_dry_run_shows_the_difference_and_writes_nothing(binary: Path) -> None:
    before = (binary.read_bytes(), binary.stat().st_mtime_ns)
    result = run("rewrite", "set-attribute", binary, "op:LeakyRelu", "alpha", "0.25", "--dry-run")
    assert result.exit_code == 0
    assert "attribute alpha: 0.01 -> 0.25" in result.stdout
    assert "@/graph/node/1" not in result.stdout
    assert "@/graph/node/1" in run(*CHANGE[:2], binary, *CHANGE[2:], "--dry-run", "-v").stdout
    changed = binary.with_name("changed.onnx")
    run(*CHANGE[:2], binary, *CHANGE[2:], "-o", changed)
    assert run("diff", binary, changed).stdout.splitlines()[1:] == result.stdout.splitlines()[1:]
    changed.unlink()
    assert run(*CHANGE[:2], binary, *CHANGE[2:], "--dry-run", "-o", changed).exit_code == 0
    assert not changed.exists()
    assert (binary.read_bytes(), binary.stat().st_mtime_ns) == before
    nothing = run("rewrite", "set-attribute", binary, "op:LeakyRelu", "alpha", "0.01", "--dry-run")
    assert nothing.stdout == ""
    assert "the node has that value of alpha already\n" in nothing.stderr
    assert f"nothing would change in {binary}\n" in nothing.stderr


def test_what_is_there_already_leaves_the_file_alone(binary: Path) -> None:
    before = binary.stat().st_mtime_ns
    result = run("rewrite", "set-attribute", binary, "op:LeakyRelu", "alpha", "0.01", "-i")
    assert result.exit_code == 0
    assert f"nothing changed in {binary}" in result.stderr
    assert binary.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("set-atribute", 2, 'there is no edit "set-atribute"; did you mean "set-attribute"'),
        ("set-attribute M op:LeakyRelo alpha 1 -i", 2, 'no node has op:LeakyRelo; did you mean "op:LeakyRelu"?'),
        ("set-attribute M op:LeakyRelu alhpa 1 -i", 65, 'has no attribute "alhpa"; did you mean "alpha"?'),
        ("set-attribute M op:LeakyRelu alpha 1", 2, "-o OUT for a file, or -i to change MODEL itself"),
        ("set-attribute M op:LeakyRelu alpha 1 -i -o x", 2, "choose one of them"),
        ("set-attribute op:LeakyRelu alpha 1 -i", 2, "no model is named; write onnxjson rewrite"),
        ("set-attribute M --nod x -i", 2, "--nod"),
        ("-i set-attribute M op:LeakyRelu alpha 1", 2, "-i follows the edit: onnxjson rewrite EDIT MODEL... -i"),
        ("set-attribute M op:LeakyRelu alpha 1 -o - --json", 2, "and --json a report; choose one of them"),
        ("set-attribute M op:LeakyRelu alpha 1 --expect 2 -i", 65, "1 match, but 2 expected"),
        ("set-attribute M op:LeakyRelu alpha [1 -i", 2, "begins like JSON but is not"),
        ("set-attribute none.onnx op:LeakyRelu alpha 1 -i", 66, "none.onnx does not exist"),
    ],
)
def test_mistake_is_said_in_one_line_with_its_code(binary: Path, words: str, code: int, says: str) -> None:
    before = binary.read_bytes()
    result = run("rewrite", *[binary if word == "M" else word for word in words.split()])
    assert result.exit_code == code
    assert says in result.stderr
    assert result.stderr.splitlines()[-1].startswith(f"onnxjson: error[{code}]: ")
    assert binary.read_bytes() == before


def test_edit_without_arguments_prints_its_help() -> None:
    result = run("rewrite", "set-attribute")
    assert result.exit_code == 2
    assert result.stdout.startswith("Usage: onnxjson rewrite set-attribute")


def test_option_of_an_edit_goes_before_that_of_the_command(binary: Path) -> None:
    out = binary.with_name("new.onnx")
    line = ("rewrite", "add-node", binary, "Relu", "--input", "image", "--output", "positive", "--insert", "-o", out)
    assert run(*line).exit_code == 0
    graph = onnxjson.load(out).graph
    assert graph is not None
    assert graph.node[0].output == ("positive",)


def test_shell_completes_edits_and_their_options() -> None:
    more = {"_ONNXJSON_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    assert "plain,set-attribute" in run_process(more=more | {"COMP_WORDS": "onnxjson rewrite set-at"}).stdout
    more["COMP_CWORD"] = "3"
    words = "onnxjson rewrite set-attribute --at"
    assert "plain,--attribute" in run_process(more=more | {"COMP_WORDS": words}).stdout


# scripts


def test_script_is_applied_as_a_whole(binary: Path, text: Path, script: Path) -> None:
    result = run("apply", script, binary, text, "-i")
    assert result.exit_code == 0
    for path in (binary, text):
        assert alpha(path) == 0.25
        assert any(entry.key == "k" for entry in onnxjson.load(path).metadata_props)


def test_script_that_does_not_fit_changes_nothing_and_says_which_step(binary: Path, script: Path) -> None:
    script.write_text(
        SCRIPT.replace(
            '"edit": "set-metadata", "key": "k", "value": "v"', '"edit": "delete-node", "node": "op:LeakyRelo"'
        )
    )
    before = binary.read_bytes()
    result = run("apply", script, binary, "-i")
    assert result.exit_code == 2
    assert f"{binary}: edit 2 of 2 (delete-node): no node has op:LeakyRelo; did you mean" in result.stderr
    assert binary.read_bytes() == before


def test_dry_run_of_a_script_shows_all_of_it(binary: Path, script: Path) -> None:
    result = run("apply", script, binary, "--dry-run")
    assert "attribute alpha: 0.01 -> 0.25" in result.stdout
    assert alpha(binary) == pytest.approx(0.01)


def test_reverse_and_same_base_are_for_patches(binary: Path, script: Path) -> None:
    for option in ("--reverse", "--same-base"):
        result = run("apply", script, binary, option, "-i")
        assert result.exit_code == 2
        assert f"{option} is for patches, but {script} is a script" in result.stderr


def test_python_runs_only_where_its_file_is_named(binary: Path, tmp_path: Path) -> None:
    path = tmp_path / "rewrite.py"
    path.write_text(
        "from onnxjson import edits\n\n\ndef rewrite(model):\n"
        "    return edits.SetAttribute(node='op:LeakyRelu', attribute='alpha', value=0.25)\n"
    )
    assert run("apply", path, binary, "-i").exit_code == 0
    assert alpha(binary) == 0.25
    path.write_text("import os\nos.mkdir('made')\n")
    json_name = tmp_path / "rewrite.json"
    os.replace(path, json_name)
    assert run("apply", json_name, binary, "-i").exit_code == 65
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("place", ["", "def rewrite(model):\n    "])
def test_python_that_ends_the_program_is_a_failure(binary: Path, tmp_path: Path, place: str) -> None:
    path, out = tmp_path / "rewrite.py", tmp_path / "out.onnx"
    path.write_text(f"import sys\n\n\n{place}sys.exit(0)\n")
    result = run("apply", path, binary, "-o", out)
    assert result.exit_code == 65
    assert f"{path}:{5 if place else 4}: SystemExit" in result.stderr
    assert not out.exists()


def test_python_may_find_nothing_to_do(binary: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "rewrite.py", tmp_path / "out.onnx"
    path.write_text("def rewrite(model):\n    return []\n")
    assert run("apply", path, binary, "-o", out).exit_code == 0
    assert out.read_bytes() == binary.read_bytes()


def test_saved_values_go_again_where_the_model_cannot_be_written(binary: Path, script: Path, tmp_path: Path) -> None:
    saved = tmp_path / "bias.npy"
    words = ("rewrite", "initializers-to-inputs", binary, "conv.bias", "--save", saved)
    assert run(*words, "-o", tmp_path / "nowhere" / "out.onnx").exit_code == 73
    assert run(*words, "--dry-run").exit_code == 0
    assert not saved.exists()
    step = '{"edit": "initializers-to-inputs", "tensor": "conv.bias", "save": "bias.npy"}'
    script.write_text(f'{{"format": "onnxjson-rewrite/1", "edits": [{step}]}}')
    assert run("apply", script, binary, "-o", tmp_path / "nowhere" / "out.onnx").exit_code == 73
    assert not saved.exists()
    assert run(*words, "-i").exit_code == 0
    assert saved.exists()


@pytest.mark.parametrize(
    "words",
    [
        "infer-shapes",
        "convert-opset 21",
        "set-batch-size 3",
        "extract --outputs probabilities",
        "set-shape image 2,1,8,8",
        "cast-tensor fc.weight float64 --expect 1",
        "initializers-to-inputs fc.weight --save fc.npy",
    ],
)
def test_weights_of_a_text_with_digests_are_there_when_the_edit_is_made(
    binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text, out, direct = tmp_path / "digests.onnx.json", tmp_path / "out.onnx", tmp_path / "direct.onnx"
    onnxjson.save(onnxjson.load(binary), text, weights="digest")
    assert "sha256" in text.read_text()
    name, *rest = words.split()
    expected = run("rewrite", name, binary, *rest, "-o", direct)
    (tmp_path / "fc.npy").unlink(missing_ok=True)
    result = run("rewrite", name, text, *rest, "-o", out, "--weights-from", binary)
    assert (result.exit_code, result.stderr.replace("out.onnx", "direct.onnx")) == (
        expected.exit_code,
        expected.stderr,
    )
    assert out.exists() == direct.exists()
    assert not out.exists() or out.read_bytes() == direct.read_bytes()
    if name in ("infer-shapes", "convert-opset", "set-batch-size", "extract", "set-shape"):
        # Native code needs no big constant, so that a text stays a text without any other file.
        again = tmp_path / "again.onnx.json"
        assert run("rewrite", name, text, *rest, "-o", again).exit_code == 0
        assert "sha256" in again.read_text()


def test_script_reads_no_file_outside_its_folder(binary: Path, script: Path, tmp_path: Path) -> None:
    import numpy as np

    folder = tmp_path / "scripts"
    folder.mkdir()
    np.save(tmp_path / "out.npy", np.zeros(4, np.float32))
    np.save(folder / "in.npy", np.ones(4, np.float32))
    for name, code in (("in.npy", 0), ("../out.npy", 78), (str(tmp_path / "out.npy"), 78)):
        step = f'{{"edit": "set-tensor", "tensor": "conv.bias", "file": "{name}"}}'
        (folder / "r.json").write_text(f'{{"format": "onnxjson-rewrite/1", "edits": [{step}]}}')
        result = run("apply", folder / "r.json", binary, "-o", tmp_path / "new.onnx")
        assert result.exit_code == code, result.stderr
    os.symlink(tmp_path / "out.npy", folder / "link.npy")
    (folder / "r.json").write_text((folder / "r.json").read_text().replace(str(tmp_path / "out.npy"), "link.npy"))
    assert run("apply", folder / "r.json", binary, "-o", tmp_path / "new.onnx").exit_code == 78
    out = tmp_path / "direct.onnx"
    line = ("rewrite", "set-tensor", binary, "conv.bias", "--file", tmp_path / "out.npy", "-o", out)
    assert run(*line).exit_code == 0


def test_saved_script_of_edits_is_one_that_apply_takes(binary: Path, script: Path) -> None:
    edits.Script((edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.25),)).save(script)
    assert run("apply", script, binary, "-i").exit_code == 0
    assert alpha(binary) == 0.25


def test_json_says_what_was_written_and_what_would_change(binary: Path, tmp_path: Path) -> None:
    out, text = tmp_path / "new.onnx", tmp_path / "text.txt"
    text.write_text("no model")
    line = ("rewrite", "set-attribute", binary, "op:LeakyRelu", "alpha", "0.25", "--json")
    nodes = len(Index(onnxjson.load(binary)).node_refs)
    written = {"model": str(binary), "written": str(out), "changed": True, "nodes": [nodes] * 2, "notes": []}
    assert json.loads(run(*line, "-o", out).stdout) == [written]
    (found,) = json.loads(run(*line, "--dry-run").stdout)
    assert (found["written"], found["diff"]["summary"]["events"]) == (None, {"attribute-changed": 1})
    result = run("rewrite", "set-attribute", binary, text, "op:LeakyRelu", "alpha", "0.01", "-i", "--json")
    assert result.exit_code == 65
    first, second = json.loads(result.stdout)
    assert (first["changed"], first["written"], list(second)) == (False, None, ["model", "error"])

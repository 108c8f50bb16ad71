"""``onnxjson optimize`` and ``onnxjson passes``."""

import json
from pathlib import Path

import pytest

import onnxjson
from onnxjson.diffing.difference import diff_models
from onnxjson.editing.declaration import name_of
from onnxjson.optimizing.passes import PASSES, Pipeline
from onnxjson.optimizing.passes.simplifiers import Onnxoptimizer
from onnxjson.storage import files
from tests.cli.running import run, run_process
from tests.optimizing.networks import convolution

RENAME = "def optimize(model, name='renamed'):\n    model.graph.name = name\n    return model\n"
FAIL = "def optimize(model):\n    raise ValueError('no good')\n"


@pytest.fixture
def rename(tmp_path: Path) -> Path:
    path = tmp_path / "rename.py"
    path.write_text(RENAME)
    return path


@pytest.fixture
def fail(tmp_path: Path) -> Path:
    path = tmp_path / "fail.py"
    path.write_text(FAIL)
    return path


def graph_name(path: Path) -> str | None:
    graph = onnxjson.load(path).graph
    assert graph is not None
    return graph.name


def test_the_result_is_written_and_the_model_stays(binary: Path, rename: Path) -> None:
    before = binary.read_bytes()
    out = binary.with_name("new.onnx")
    result = run("optimize", binary, "-p", f"{rename}{{name=new}}", "-p", "prune", "-o", out)
    assert (result.exit_code, result.stdout) == (0, "")
    first, *_, last = result.stderr.splitlines()
    assert first.startswith(f'{rename}{{name="new"}}: 6 nodes, ')
    assert last.startswith(f"wrote {out} (")
    assert graph_name(out) == "new"
    assert binary.read_bytes() == before


def test_json_has_the_numbers_of_each_pass(binary: Path, rename: Path) -> None:
    out = binary.with_name("new.onnx")
    (found,) = json.loads(run("optimize", binary, "-p", rename, "-p", "prune", "-o", out, "--json").stdout)
    assert (found["model"], found["written"], found["changed"]) == (str(binary), str(out), True)
    first, second = found["passes"]
    assert (first["pass"], first["changed"], first["nodes"], first["failure"]) == (str(rename), True, [6, 6], None)
    assert (second["pass"], second["changed"], second["bytes"][0]) == ("prune", False, second["bytes"][1])


def test_passes_that_change_nothing_are_one_line(binary: Path) -> None:
    result = run(
        "optimize", binary, "-p", "onnxoptimizer:nop*", "-p", "onnxoptimizer", "-o", binary.with_name("n.onnx")
    )
    assert result.stderr.splitlines()[-2] == "changed nothing: onnxoptimizer:nop*, onnxoptimizer"


def test_in_place_keeps_a_copy(binary: Path, rename: Path) -> None:
    before = binary.read_bytes()
    assert run("optimize", binary, "-p", rename, "-i").exit_code == 0
    assert graph_name(binary) == "renamed"
    assert run("undo-save", binary).exit_code == 0
    assert binary.read_bytes() == before


def test_a_dry_run_writes_nothing_and_shows_the_diff(binary: Path, rename: Path) -> None:
    before = binary.read_bytes()
    result = run("optimize", binary, "-p", rename, "--dry-run")
    assert result.exit_code == 0
    assert "renamed" in result.stdout
    assert binary.read_bytes() == before


def test_a_comparison_that_fails_never_costs_the_result(
    binary: Path, rename: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr("onnxjson.optimizing.trace_records.diff_models", fails)
    out, steps = binary.with_name("new.onnx"), binary.with_name("steps")
    result = run("optimize", binary, "-p", f"{rename}{{name=new}}", "-p", rename, "-o", out, "--trace", steps)
    assert result.exit_code == 70
    assert result.stderr.count("error[70]: internal error (IndexError: list index out of range)") == 1
    assert "no trace is written; the passes continue" in result.stderr
    assert (graph_name(out), steps.exists()) == ("renamed", False)


def test_a_dry_run_of_several_models_goes_on_after_a_comparison_that_fails(
    binary: Path, rename: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = diff_models

    def fails_once(*models: object, **options: object) -> object:
        monkeypatch.setattr("onnxjson.cli.changing.diff_models", compare)
        raise IndexError

    monkeypatch.setattr("onnxjson.cli.changing.diff_models", fails_once)
    other = binary.with_name("other.onnx")
    other.write_bytes(binary.read_bytes())
    result = run("optimize", binary, other, "-p", rename, "--dry-run")
    assert result.exit_code == 70
    assert result.stdout.startswith(f"{other}")


def test_files_beside_the_model_are_written_with_it_or_not_at_all(binary: Path, fail: Path, tmp_path: Path) -> None:
    out, archive, values = (tmp_path / name for name in ("new.onnx", "adapter.npz", "values.npy"))
    made = "-p", f"extract-adapters{{pattern=fc,save={archive}}}", "-p"
    edit = f"initializers-to-inputs{{tensor=conv.weight,save={values}}}"
    assert run("optimize", binary, *made, edit, "--dry-run").exit_code == 0
    assert not archive.exists()
    assert not values.exists()
    assert run("optimize", binary, *made, edit, "-p", fail, "-o", out).exit_code == 76
    assert not archive.exists()
    assert not values.exists()
    assert run("optimize", binary, *made, edit, "-o", tmp_path / "missing" / "new.onnx").exit_code == 73
    assert not archive.exists()
    assert not values.exists()
    assert run("optimize", binary, *made, edit, "-o", out).exit_code == 0
    assert archive.exists()
    assert values.exists()


def test_a_script_that_cannot_be_read_is_told_before_anything_runs(binary: Path, tmp_path: Path) -> None:
    ran, script = tmp_path / "ran", tmp_path / "script.json"
    first = tmp_path / "first.py"
    first.write_text(f"open({str(ran)!r}, 'w')\ndef optimize(model): return model\n")
    for code in (66, 65):
        result = run("optimize", binary, "-p", first, "-p", script, "-o", tmp_path / "o.onnx")
        assert result.exit_code == code
        script.write_text('{"format": "onnxjson-recipe/1", "passes": []}')
    assert not ran.exists()


def test_a_text_is_optimized_as_a_text(text: Path, rename: Path) -> None:
    assert run("optimize", text, "-p", rename, "-i").exit_code == 0
    assert text.read_text().startswith('{\n"format": "onnxjson/1"')
    assert graph_name(text) == "renamed"


def test_a_failing_pass_ends_it_with_76_and_nothing_written(binary: Path, rename: Path, fail: Path) -> None:
    out = binary.with_name("new.onnx")
    result = run("optimize", binary, "-p", rename, "-p", fail, "-o", out)
    assert result.exit_code == 76
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"onnxjson: error[76]: {fail} failed: ")
    assert "fail.py:2: ValueError: no good" in last
    assert not out.exists()


def test_going_on_leaves_it_out_and_exits_with_1(binary: Path, rename: Path, fail: Path) -> None:
    out = binary.with_name("new.onnx")
    result = run("optimize", binary, "-p", fail, "-p", rename, "--keep-going", "-o", out)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"skipped: {fail} failed: ")
    assert graph_name(out) == "renamed"


def test_a_crash_is_one_line_too(binary: Path) -> None:
    crash = binary.with_name("crash.py")
    crash.write_text("import ctypes\ndef optimize(model): ctypes.string_at(0)\n")
    result = run_process("optimize", binary, "-p", crash, "-o", binary.with_name("new.onnx"))
    assert result.exit_code == 76
    assert result.stderr == (f"onnxjson: error[76]: {crash} crashed: signal SIGSEGV; the model is unchanged\n")


def test_until_and_skip_choose_passes(binary: Path, rename: Path, fail: Path) -> None:
    out = binary.with_name("new.onnx")
    words = ("optimize", binary, "-p", rename, "-p", fail, "-p", "prune", "-o", out)
    assert run(*words, "--until", rename).exit_code == 0
    assert run(*words, "--skip", fail).exit_code == 0
    assert "fail" not in run(*words, "--skip", fail).stderr
    assert run(*words, "--skip", "fail.py", "--until", "rename.py").exit_code == 0  # as a recipe in a folder names it


def test_a_recipe_runs_before_the_passes_named(binary: Path, rename: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    recipe.write_text('{"format": "onnxjson-recipe/1", "passes": [{"edit": "name-nodes", "prefix": "n"}]}')
    out = binary.with_name("new.onnx")
    assert run("optimize", binary, "--recipe", recipe, "-p", rename, "-o", out).exit_code == 0
    assert graph_name(out) == "renamed"


def test_a_broken_recipe_is_told_with_its_place(binary: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    recipe.write_text('{"format": "onnxjson-recipe/1",\n"passes": ["onnxsimm"]}')
    result = run("optimize", binary, "--recipe", recipe, "-i")
    assert result.exit_code == 65
    assert f"{recipe}:2:12: error[wrong-pass]: there is no pass" in result.stderr


def test_of_several_models_the_one_is_named_of_which_a_pass_fails(binary: Path, fail: Path) -> None:
    other = binary.with_name("other.onnx")
    other.write_bytes(binary.read_bytes())
    result = run("optimize", binary, other, "-p", fail, "-i")
    assert result.exit_code == 76
    for line, path in zip(result.stderr.splitlines(), (binary, other), strict=True):
        assert line.startswith(f"onnxjson: error[76]: {path}: {fail} failed: ")


def test_weights_of_which_only_the_sha256_is_here_are_asked_for(binary: Path, rename: Path) -> None:
    text = binary.with_name("text.onnx.json")
    assert run("convert", binary, "--weights", "digest", "-o", text).exit_code == 0
    result = run("optimize", text, "-p", rename, "-o", binary.with_name("o.onnx"))
    assert result.exit_code == 66
    assert "name a model that has the bytes with --weights-from" in result.stderr
    again = run("optimize", text, "-p", rename, "-o", binary.with_name("o.onnx"), "--weights-from", binary)
    assert again.exit_code == 0


def test_several_models_go_on_after_one_that_fails(binary: Path, rename: Path) -> None:
    broken = binary.with_name("broken.onnx")
    broken.write_bytes(b"\xff\xff")
    result = run("optimize", broken, binary, "-p", rename, "-i")
    assert result.exit_code == 65
    assert graph_name(binary) == "renamed"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no pass is named; add -p NAME, such as -p onnxsim"),
        (("-p", "onnxsimm"), 'there is no pass "onnxsimm"; did you mean "onnxsim"'),
        (("-p", "onnxsim{fodl=1}"), 'onnxsim has no option "fodl"; did you mean "fold"?'),
        (("-p", "onnxsim", "a=1"), "quote the braces, so that the shell does not expand them: -p 'NAME{a=1}'"),
        (
            ("-p", "onnxsimfold=true", "onnxsimcheck=1"),
            "quote the braces, so that the shell does not expand them: -p 'onnxsim{",
        ),
        (("-p", "prune", "--skip", "prun"), "--skip: 'prun' is not one of the passes; did you mean \"prune\"?"),
        (("-p", "prune", "--until", "x"), "--until: 'x' is not one of the passes; the passes are prune"),
        (("-p", "prune", "--skip", "prune"), "all passes are skipped; nothing is left to run"),
        (("-p", "prune", "--max-size", "big"), "'big' is not a size; write bytes, or 4k, 1M, 2G"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(binary: Path, words: tuple[str, ...], said: str) -> None:
    result = run("optimize", binary, *words, "-o", binary.with_name("new.onnx"))
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_edit_that_gives_more_than_max_size_is_refused(binary: Path) -> None:
    edit = f"set-metadata{{key=k,value={'x' * 5000}}}"
    result = run("optimize", binary, "-p", edit, "-o", binary.with_name("o.onnx"), "--max-size", "6k")
    assert result.exit_code == 76
    assert "at most 6,144 are allowed" in result.stderr


def test_more_than_max_size_is_refused(binary: Path) -> None:
    result = run("optimize", binary, "-p", "onnxoptimizer:nop", "--max-size", "1k", "-o", binary.with_name("n.onnx"))
    assert result.exit_code == 76
    assert "at most 1,024 are allowed" in result.stderr


def test_passes_lists_every_pass_and_how_to_see_more() -> None:
    result = run("passes")
    assert result.exit_code == 0
    for each in PASSES:
        assert f"  {name_of(each)} " in result.stdout
    assert "`onnxjson passes onnxoptimizer` lists them" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_passes_name_says_what_it_takes() -> None:
    result = run("passes", "onnxoptimizer")
    assert "  fixed_point  Repeat the set until it changes nothing." in result.stdout
    assert all(part in result.stdout for part in Onnxoptimizer.parts)
    assert run("passes", "onnxoptimizer:nop").stdout.startswith("onnxoptimizer:nop\n")
    assert run("passes", "prune").exit_code == 0


def test_passes_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxjson.optimizing.passes import declaration

    monkeypatch.setattr(declaration, "is_installed", lambda package: package != "onnxsim")
    assert "not available: it needs onnxsim, which is not installed" in " ".join(run("passes").stdout.split())
    found = {each["name"]: each for each in json.loads(run("passes", "--json").stdout)}
    assert (found["onnxsim"]["available"], found["onnxsim"]["extra"]) == (False, "passes")
    assert found["onnxoptimizer"]["available"]


def test_passes_as_json_is_a_list_of_what_runs() -> None:
    found = json.loads(run("passes", "--json").stdout)
    assert all(set(each) == {"name", "summary", "options", "available", "extra"} for each in found)
    names = [each["name"] for each in found]
    assert len(names) == len(set(names))
    assert {name_of(each) for each in PASSES} | {f"onnxoptimizer:{part}" for part in Onnxoptimizer.parts} | {
        "prune"
    } <= set(names)
    (only,) = json.loads(run("passes", "onnxsim", "--json").stdout)
    assert [each["name"] for each in only["options"]][:2] == ["fold", "infer_shapes"]


def test_a_pass_that_is_not_there_is_answered_with_what_is_near() -> None:
    result = run("passes", "onnxsimm")
    assert result.exit_code == 2
    assert 'did you mean "onnxsim"' in result.stderr


def test_ort_is_refused_before_any_pass_runs(tmp_path: Path) -> None:
    files.save(convolution(), tmp_path / "m.onnx")
    result = run("optimize", tmp_path / "m.onnx", "-p", "onnxsim", "-o", tmp_path / "m.ort")
    assert result.exit_code == 73
    assert ".ort is onnxruntime's own format, which is not supported; write a .onnx" in result.stderr
    assert "onnxsim" not in result.stderr
    assert not (tmp_path / "m.ort").exists()


def test_a_place_that_cannot_be_written_is_refused_before_a_pass_runs(
    binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a pass ran")

    monkeypatch.setattr(Pipeline, "run", never)
    before = binary.read_bytes()
    for place, words in ((tmp_path / "missing" / "x.onnx", "does not exist"), (binary, "is the input itself")):
        found = run("optimize", binary, "-p", "prune", "-o", place)
        assert found.exit_code == 73
        assert words in found.stderr
    assert binary.read_bytes() == before

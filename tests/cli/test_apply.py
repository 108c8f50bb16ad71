"""``onnxjson apply``."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.model import document as d
from onnxjson.patching.patch import Patch
from tests.cli.running import run, run_process


def renamed(model: onnxjson.Model, name: str) -> onnxjson.Model:
    """`model` with another name of its graph."""
    assert model.graph is not None
    return replace(model, graph=replace(model.graph, name=name))


@pytest.fixture
def change(tmp_path: Path, binary: Path) -> Path:
    """A patch that renames the graph of the example."""
    base = onnxjson.load(binary)
    path = tmp_path / "change.json"
    target = renamed(base, "renamed")
    Patch.between(base, target).with_hashes(base, target).save(path)
    return path


def test_the_result_is_written_and_the_model_stays(binary: Path, change: Path) -> None:
    before = binary.read_bytes()
    out = binary.with_name("new.onnx")
    result = run("apply", change, binary, "-o", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(f"wrote {out} (")
    assert onnxjson.load(out) == renamed(onnxjson.load(binary), "renamed")
    assert binary.read_bytes() == before


def test_reverse_leads_back_byte_for_byte(binary: Path, change: Path) -> None:
    new, back = binary.with_name("new.onnx"), binary.with_name("back.onnx")
    run("apply", change, binary, "-o", new)
    assert run("apply", change, new, "--reverse", "-o", back).exit_code == 0
    assert back.read_bytes() == binary.read_bytes()


def test_the_ending_or_the_option_says_the_form(binary: Path, change: Path) -> None:
    text = binary.with_name("new.onnx.json")
    run("apply", change, binary, "-o", text)
    assert text.read_text().startswith('{\n"format": "onnxjson/1"')
    other = binary.with_name("other")
    run("apply", change, text, "--reverse", "-o", other, "--to", "onnx")
    assert other.read_bytes() == binary.read_bytes()


def test_dash_is_standard_output_in_the_form_of_the_model(binary: Path, text: Path, change: Path) -> None:
    assert '"name": "renamed"' in run("apply", change, text, "-o", "-").stdout
    assert '"name": "renamed"' in run("apply", change, binary, "-o", "-", "--to", "json").stdout


def test_a_folder_gets_a_file_of_the_same_name(binary: Path, change: Path) -> None:
    folder = binary.with_name("folder")
    folder.mkdir()
    assert run("apply", change, binary, "-o", folder).exit_code == 0
    assert (folder / binary.name).exists()


def test_in_place_keeps_a_backup_and_the_form(binary: Path, text: Path, change: Path) -> None:
    before = [binary.read_bytes(), text.read_bytes()]
    result = run("apply", change, binary, text, "-i")
    assert result.exit_code == 0
    assert f"changed {binary} (" in result.stderr
    assert f"to undo: onnxjson undo-save {text}" in result.stderr
    assert '"name": "renamed"' in text.read_text()
    assert onnxjson.load(binary) == onnxjson.load(text)
    for path in (binary, text):
        run("undo-save", path)
    assert [binary.read_bytes(), text.read_bytes()] == before


def test_a_model_that_does_not_fit_is_refused_and_stays_and_the_others_are_changed(
    binary: Path, text: Path, change: Path
) -> None:
    onnxjson.save(renamed(onnxjson.load(binary), "other"), binary)
    before = binary.read_bytes()
    result = run("apply", change, binary, text, "-i")
    assert result.exit_code == 65
    says = f'{binary}: the patch does not fit: /graph/name: expected "digits", found "other"'
    assert f"onnxjson: error[65]: {says}\n" in result.stderr
    assert binary.read_bytes() == before
    assert '"name": "renamed"' in text.read_text()


def test_same_base_wants_the_very_model(binary: Path, change: Path) -> None:
    out = binary.with_name("new.onnx")
    assert run("apply", change, binary, "--same-base", "-o", out).exit_code == 0
    other = replace(onnxjson.load(binary), doc_string="another")
    onnxjson.save(other, binary)
    result = run("apply", change, binary, "--same-base", "-o", out)
    assert result.exit_code == 65
    assert "the patch is for another model" in result.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "-o OUT for a file, or -i to change MODEL itself"),
        (("-i", "-o", "x.onnx"), "-o OUT writes another file, and -i changes MODEL itself; choose one of them"),
        (("-i", "--to", "json"), "-i keeps the format of MODEL"),
    ],
)
def test_usage_names_what_fits(binary: Path, change: Path, options: tuple[str, ...], says: str) -> None:
    result = run("apply", change, binary, *options)
    assert result.exit_code == 2
    assert says in result.stderr


def test_several_models_need_in_place(binary: Path, text: Path, change: Path) -> None:
    result = run("apply", change, binary, text, "-o", "x.onnx")
    assert result.exit_code == 2
    assert "2 models cannot all be written to x.onnx; -i changes each in place" in result.stderr


def test_what_is_no_change_is_refused_by_what_it_is(binary: Path, text: Path, change: Path) -> None:
    result = run("apply", binary, change, "-i")
    assert result.exit_code == 65
    assert "it is not JSON; the order is onnxjson apply CHANGE MODEL" in result.stderr
    assert (
        "its format is onnxjson/1; known formats are onnxjson-patch/1 and onnxjson-rewrite/1"
        in run("apply", text, binary, "-i").stderr
    )
    change.write_text('{"format": "onnxjson-patch/1", "operations": [{"set": "/domian", "new": ""}]}')
    result = run("apply", change, binary, "-i")
    assert result.exit_code == 65
    assert f'{change}:1:55: error[bad-address]: Model has no field "domian"' in result.stderr
    assert run("apply", "missing.json", binary, "-i").exit_code == 66


def test_the_model_itself_is_no_destination(binary: Path, change: Path) -> None:
    before = binary.read_bytes()
    assert run("apply", change, binary, "-o", binary).exit_code == 73
    assert binary.read_bytes() == before


def test_the_change_itself_is_no_destination(tmp_path: Path, binary: Path, change: Path) -> None:
    before = change.read_bytes()
    result = run("apply", change, binary, "-o", change)
    assert (result.exit_code, change.read_bytes()) == (73, before)
    assert f"{change} is the change itself" in result.stderr
    twin = tmp_path / "models" / change.name
    twin.parent.mkdir()
    twin.write_bytes(binary.read_bytes())
    assert run("apply", change, twin, "-o", change.parent).exit_code == 73
    assert change.read_bytes() == before


def test_two_models_do_not_become_one_file(tmp_path: Path, binary: Path, change: Path) -> None:
    other = tmp_path / "more" / binary.name
    folder = tmp_path / "folder"
    for each in (other.parent, folder):
        each.mkdir()
    other.write_bytes(binary.read_bytes())
    result = run("apply", change, binary, other, "-o", folder)
    assert result.exit_code == 2
    assert f"{binary} and {other} cannot both be written to {folder / binary.name}" in result.stderr
    assert not list(folder.iterdir())


def test_an_empty_change_in_place_changes_nothing(binary: Path, change: Path) -> None:
    Patch().save(change)
    before = binary.stat()
    result = run("apply", change, binary, "-i")
    assert (result.exit_code, result.stderr) == (0, f"nothing changed in {binary}\n")
    assert binary.stat().st_mtime_ns == before.st_mtime_ns


def test_weights_that_the_change_has_not_come_from_another_model(tmp_path: Path, binary: Path) -> None:
    """A patch made of texts with digests adds tensors whose bytes only the binary has."""
    model = onnxjson.load(binary)
    assert model.graph is not None
    bare = replace(model, graph=replace(model.graph, initializer=()))
    digests = tmp_path / "digests.onnx.json"
    onnxjson.save(model, digests, weights="digest")
    from onnxjson.storage import files

    change = tmp_path / "change.json"
    Patch.between(bare, files.load(digests).model).save(change)
    source, out = tmp_path / "bare.onnx", tmp_path / "out.onnx"
    onnxjson.save(bare, source)
    result = run("apply", change, source, "-o", out)
    assert result.exit_code == 66
    assert "--weights-from" in result.stderr
    assert run("apply", change, source, "-o", out, "--weights-from", binary).exit_code == 0
    assert out.read_bytes() == binary.read_bytes()


def test_a_text_with_blobs_keeps_them_in_place(tmp_path: Path, binary: Path, change: Path) -> None:
    text = tmp_path / "blobs.onnx.json"
    onnxjson.save(onnxjson.load(binary), text, weights="blobs")
    assert run("apply", change, text, "-i").exit_code == 0
    assert '"blobs": "blobs.blobs"' in text.read_text()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run("apply", change, text, "--reverse", "-o", elsewhere / "m.onnx.json").exit_code == 0
    assert '"blobs"' not in (elsewhere / "m.onnx.json").read_text()


def test_files_that_the_result_needs_are_named(tmp_path: Path, binary: Path) -> None:
    base = onnxjson.load(binary)
    assert base.graph is not None
    entry = d.StringStringEntry(key="location", value="w.data")
    tensor = d.Tensor(dims=(4,), data_type=2, name="w", data_location=1, external_data=(entry,))
    target = replace(base, graph=replace(base.graph, initializer=(*base.graph.initializer, tensor)))
    (tmp_path / "w.data").write_bytes(b"1234")
    change = tmp_path / "change.json"
    Patch.between(base, target).with_external(base, binary, target, binary).save(change)
    out = tmp_path / "new.onnx"
    assert "w.data" not in run("apply", change, binary, "-o", out).stderr
    (tmp_path / "w.data").unlink()
    result = run("apply", change, binary, "-o", out)
    assert result.exit_code == 0
    assert f"{out} needs 'w.data' with the sha256 03ac674216f3e15c" in result.stderr


def test_weights_that_only_the_result_names_are_not_said_to_be_beside_the_model(tmp_path: Path, binary: Path) -> None:
    outside, inside = tmp_path / "outside.onnx", tmp_path / "inside" / "m.onnx"
    inside.parent.mkdir()
    run("convert", binary, "--externalize", "--threshold", "100", "--data-file", "w.data", "-o", outside)
    run("convert", outside, "--internalize", "-o", inside)
    change = tmp_path / "change.json"
    assert run("diff", outside, inside, "--format", "patch", "-o", change).exit_code == 1
    back = tmp_path / "back" / "m.onnx"
    back.parent.mkdir()
    result = run("apply", change, inside, "--reverse", "-o", back)
    assert result.exit_code == 0
    assert f"{back} needs 'w.data' with the sha256" in result.stderr
    assert "stay in" not in result.stderr


def test_it_works_as_a_process_and_changes_through_links(tmp_path: Path, binary: Path, change: Path) -> None:
    link = tmp_path / "link.onnx"
    os.symlink(binary, link)
    assert run_process("apply", change, link, "-i").exit_code == 0
    assert link.is_symlink()
    assert onnxjson.load(binary) == renamed(onnxjson.load(binary), "renamed")

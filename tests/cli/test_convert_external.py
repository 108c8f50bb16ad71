"""``onnxjson convert`` with tensors in files beside the model."""

import os
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import onnxjson
from onnxjson.model.document import Graph, Model, StringStringEntry, Tensor, ValueInfo
from onnxjson.model.errors import OutputError
from onnxjson.model.walking import walk
from onnxjson.storage.external_files import internalize
from onnxjson.storage.named_files import locations
from tests.cli.running import Result, run


@pytest.fixture
def split(binary: Path) -> Path:
    """The example as split.onnx with its weights in w.bin, alone in their folder."""
    folder = binary.with_name("split")
    folder.mkdir()
    path = folder / "split.onnx"
    onnx.save(onnx.load(binary), path, save_as_external_data=True, location="w.bin", size_threshold=100)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def refused(result: Result, code: int) -> str:
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    return result.stderr.splitlines()[-1]


@pytest.mark.parametrize("form", ["onnx", "onnx.json"])
def test_internalize_gives_one_whole_file(split: Path, binary: Path, form: str) -> None:
    whole = split.with_name(f"whole.{form}")
    result = run("convert", split, "--internalize", "-o", whole)
    assert (result.exit_code, result.stderr.count("\n")) == (0, 1)
    assert onnxjson.load(whole) == onnxjson.load(binary)


def test_a_text_is_internalized_from_the_files_beside_it(split: Path, binary: Path) -> None:
    assert run("convert", split).exit_code == 0
    split.unlink()
    assert run("convert", split.with_name("split.onnx.json"), "--internalize").exit_code == 0
    assert split.read_bytes() == binary.read_bytes()


def test_a_whole_model_goes_to_standard_output(split: Path, binary: Path) -> None:
    result = run("convert", split, "--internalize", "-o", "-")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == onnxjson.dumps(onnxjson.load(binary))


def test_without_a_name_the_data_stand_beside_the_text(binary: Path) -> None:
    assert run("convert", binary, "--externalize").exit_code == 0
    assert names(binary.parent) == ["digits.data", "digits.onnx", "digits.onnx.json"]
    assert locations(onnxjson.load(binary.with_name("digits.onnx.json"))) == ("digits.data",)


@pytest.mark.parametrize(
    ("threshold", "moved"),
    [("0", 4), ("1", 4), ("144", 2), ("145", 1), ("2k", 1), ("2560", 1), ("2561", 0), ("3K", 0), ("1M", 0), ("1g", 0)],
)
def test_threshold_takes_sizes(binary: Path, threshold: str, moved: int) -> None:
    result = run("convert", binary, "--externalize", "--threshold", threshold, "-o", binary.with_name("m.onnx"))
    assert result.exit_code == 0
    external = [tensor for tensor in walk(onnxjson.load(binary.with_name("m.onnx")), Tensor) if tensor.external_data]
    assert len(external) == moved
    assert binary.with_name("m.data").exists() == bool(moved)
    assert ("was not written" in result.stderr) == (not moved)


@pytest.mark.parametrize("threshold", ["", "-1", "4kB", "1.5M", "k", "４", "1 M", "9" * 16])
def test_threshold_that_is_no_size_is_refused(binary: Path, threshold: str) -> None:
    error = refused(run("convert", binary, "--externalize", "--threshold", threshold), 2)
    assert "is not a size; write bytes, or 4k, 1M, 2G" in error
    assert names(binary.parent) == ["digits.onnx"]


def test_only_the_chosen_tensors_move_whatever_their_size(binary: Path) -> None:
    out = binary.with_name("m.onnx")
    result = run("convert", binary, "--externalize", "--tensors", "fc.*", "--data-file", "fc.bin", "-o", out)
    assert result.exit_code == 0
    moved = [tensor.name for tensor in walk(onnxjson.load(out), Tensor) if tensor.external_data]
    assert moved == ["fc.weight", "fc.bias"]
    big = run("convert", binary, "--externalize", "--tensors", "fc.*", "--threshold", "1k", "-o", out)
    assert "1 tensor)" in big.stderr
    before = names(binary.parent)
    assert "no constant named 'other.*' can be moved" in refused(
        run("convert", binary, "--externalize", "--tensors", "other.*", "-o", binary.with_name("n.onnx")), 2
    )
    assert names(binary.parent) == before


def test_the_data_file_has_the_name_that_was_asked_for(binary: Path) -> None:
    result = run("convert", binary, "--externalize", "--data-file", "weights.bin", "-o", binary.with_name("m.onnx"))
    assert result.exit_code == 0
    assert names(binary.parent) == ["digits.onnx", "m.onnx", "weights.bin"]


@pytest.mark.parametrize("name", ["", ".", "..", "sub/w", "/w", "../w", "w/"])
def test_a_data_file_stands_beside_the_model(binary: Path, name: str) -> None:
    result = run("convert", binary, "--externalize", "--data-file", name, "-o", binary.with_name("m.onnx"))
    assert "--data-file is a name without a folder" in refused(result, 2)
    assert names(binary.parent) == ["digits.onnx"]


def test_a_data_file_that_is_there_is_left_alone_and_the_option_named(binary: Path) -> None:
    binary.with_name("m.data").write_bytes(b"mine")
    error = refused(run("convert", binary, "--externalize", "-o", binary.with_name("m.onnx")), 73)
    assert "m.data already exists; choose another data file with --data-file" in error
    assert binary.with_name("m.data").read_bytes() == b"mine"
    assert not binary.with_name("m.onnx").exists()


def test_the_data_file_is_not_the_model(binary: Path) -> None:
    error = refused(
        run("convert", binary, "--externalize", "--data-file", "m.onnx", "-o", binary.with_name("m.onnx")), 2
    )
    assert "both the model and its data; choose another --data-file" in error
    binary.with_name("link.onnx").symlink_to("w.data")
    refused(run("convert", binary, "--externalize", "--data-file", "w.data", "-o", binary.with_name("link.onnx")), 2)
    assert names(binary.parent) == ["digits.onnx"]


def test_a_file_that_the_model_names_is_not_copied_where_the_model_goes(split: Path, binary: Path) -> None:
    folder = binary.with_name("elsewhere")
    folder.mkdir()
    assert "both the model" in refused(
        run("convert", split, "--with-external", "--to", "onnx", "-o", folder / "w.bin"), 73
    )
    (folder / "m.onnx").symlink_to("w.bin")
    assert "both the model" in refused(run("convert", split, "--with-external", "-o", folder / "m.onnx"), 73)
    assert names(folder) == []


@pytest.mark.parametrize(
    "arguments",
    [["--threshold", "1k"], ["--data-file", "w"], ["--tensors", "*"], ["--internalize", "--with-external"]],
)
def test_options_that_do_not_fit_each_other_are_refused(binary: Path, arguments: list[str]) -> None:
    refused(run("convert", binary, *arguments), 2)
    assert names(binary.parent) == ["digits.onnx"]


@pytest.mark.parametrize("option", ["--externalize", "--with-external"])
def test_no_file_stands_beside_standard_output(binary: Path, option: str) -> None:
    assert "-o OUT" in refused(run("convert", binary, "-o", "-", option), 2)


def test_both_together_make_one_new_data_file_of_several(split: Path, binary: Path) -> None:
    result = run(
        "convert", split, "--internalize", "--externalize", "--threshold", "1", "-o", split.with_name("m.onnx")
    )
    assert result.exit_code == 0
    packed = onnxjson.load(split.with_name("m.onnx"))
    assert locations(packed) == ("m.data",)
    split.with_name("w.bin").unlink()
    assert internalize(packed, split.parent) == onnxjson.load(binary)


@pytest.mark.parametrize("form", ["onnx", "onnx.json"])
def test_with_external_copies_the_files_that_the_model_names(split: Path, binary: Path, form: str) -> None:
    folder = binary.with_name("elsewhere")
    folder.mkdir()
    result = run("convert", split, "--with-external", "-o", folder / f"m.{form}")
    assert result.exit_code == 0
    assert "warning" not in result.stderr
    assert f"copied {folder}/w.bin (2.7 kB)\n" in result.stderr
    assert names(folder) == [f"m.{form}", "w.bin"]
    assert internalize(onnxjson.load(folder / f"m.{form}"), folder) == onnxjson.load(binary)
    again = run("convert", split, "--with-external", "-o", folder / f"m.{form}")
    assert (again.exit_code, "copied" in again.stderr) == (0, False)


def test_in_the_same_folder_there_is_nothing_to_copy(split: Path) -> None:
    assert run("convert", split, "--with-external").exit_code == 0
    assert names(split.parent) == ["split.onnx", "split.onnx.json", "w.bin"]


def test_the_new_data_file_is_not_said_to_be_missing(binary: Path) -> None:
    folder = binary.with_name("elsewhere")
    folder.mkdir()
    result = run("convert", binary, "--externalize", "-o", folder)
    assert (result.exit_code, "warning" in result.stderr) == (0, False)


@pytest.mark.parametrize("option", ["--internalize", "--with-external"])
def test_a_missing_file_is_named_with_its_tensor(split: Path, binary: Path, option: str) -> None:
    split.with_name("w.bin").unlink()
    folder = binary.with_name("elsewhere")
    folder.mkdir()
    error = refused(run("convert", split, option, "-o", folder / "m.onnx"), 66)
    assert "external data of tensor 'conv.weight' in 'w.bin': the file is missing" in error
    assert names(folder) == []


@pytest.mark.parametrize("option", ["--internalize", "--with-external"])
def test_links_are_followed_if_trusted(split: Path, binary: Path, option: str) -> None:
    split.with_name("w.bin").rename(split.with_name("blob"))
    split.with_name("w.bin").symlink_to("blob")
    folder = binary.with_name("elsewhere")
    folder.mkdir()
    refused(run("convert", split, option, "-o", folder / "m.onnx"), 78)
    assert run("convert", split, option, "--trust-links", "-o", folder / "m.onnx").exit_code == 0
    assert internalize(onnxjson.load(folder / "m.onnx"), folder) == onnxjson.load(binary)


def test_a_binary_of_more_than_2_gib_is_refused_by_name_before_anything_is_written(tmp_path: Path) -> None:
    mebibyte = 1 << 20
    (tmp_path / "w.bin").write_bytes(os.urandom(mebibyte))
    entry = StringStringEntry(key="location", value="w.bin")
    tensors = tuple(
        Tensor(dims=(mebibyte,), data_type=2, name=f"w{index}", external_data=(entry,), data_location=1)
        for index in range(2050)
    )
    onnxjson.save(Model(graph=Graph(initializer=tensors, output=(ValueInfo(name="w0"),))), tmp_path / "m.onnx")
    error = refused(run("convert", tmp_path / "m.onnx", "--internalize", "-o", tmp_path / "big.onnx"), 71)
    assert f"{tmp_path}/big.onnx would have 2,149," in error
    assert names(tmp_path) == ["m.onnx", "w.bin"]


@pytest.mark.parametrize("form", ["onnx", "json"])
@pytest.mark.parametrize("how", ["plain", "through a link", "a hard link", "a folder below", "taken in"])
def test_the_files_that_hold_the_weights_of_the_source_are_not_replaced(split: Path, form: str, how: str) -> None:
    data = split.with_name("w.bin")
    destination, options = data, []
    if how == "through a link":
        destination = split.with_name("link")
        destination.symlink_to("w.bin")
    elif how == "a hard link":
        destination = split.with_name("other.bin")
        destination.hardlink_to(data)
    elif how == "a folder below":
        (split.parent / "below").mkdir()
        destination = data = data.rename(split.parent / "below" / "w.bin")
        model = onnx.load(split, load_external_data=False)
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                entry.value = "below/w.bin" if entry.key == "location" else entry.value
        split.write_bytes(model.SerializeToString())
    elif how == "taken in":
        options = ["--internalize"]
    before = data.read_bytes()
    message = refused(run("convert", split, *options, "--to", form, "-o", destination), 73)
    assert f"{destination} contains weights of {split}; name another file" in message
    assert data.read_bytes() == before


def test_the_model_that_has_the_weights_of_a_text_is_not_replaced(binary: Path) -> None:
    text = binary.with_name("digits.onnx.json")
    assert run("convert", binary, "--weights", "digest").exit_code == 0
    before = binary.read_bytes()
    message = refused(run("convert", text, "--weights-from", binary, "--to", "json", "-o", binary), 73)
    assert f"{binary} is the model that has the weights; name another file" in message
    assert binary.read_bytes() == before


def test_saving_does_not_replace_the_weights_beside_the_model(split: Path) -> None:
    before = split.with_name("w.bin").read_bytes()
    with pytest.raises(OutputError, match=r"w\.bin has tensors of the model"):
        onnxjson.save(onnxjson.load(split), split.with_name("w.bin"), format="onnx")
    assert split.with_name("w.bin").read_bytes() == before


@pytest.mark.parametrize("location", ["", "a\0b", "/", "..", "no file", "x" * 300])
def test_a_location_that_no_file_has_does_not_hinder_saving(binary: Path, location: str) -> None:
    entry = StringStringEntry(key="location", value=location)
    tensor = Tensor(name="w", dims=(1,), data_type=1, data_location=1, external_data=(entry,))
    model = Model(graph=Graph(name="g", initializer=(tensor,)))
    onnxjson.save(model, binary)
    assert onnxjson.load(binary) == model


def test_a_data_file_with_holes_is_read_only_when_that_is_allowed(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2_500_000], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="sparse.data")
    graph = helper.make_graph([], "g", [], [], [tensor])
    (tmp_path / "m.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    with (tmp_path / "sparse.data").open("wb") as file:
        file.truncate(10_000_000)
    refused = run("convert", tmp_path / "m.onnx", "--internalize", "-o", tmp_path / "x.onnx")
    assert refused.exit_code == 78
    assert "--allow-sparse" in refused.stderr
    result = run("convert", tmp_path / "m.onnx", "--internalize", "--allow-sparse", "-o", tmp_path / "x.onnx")
    assert result.exit_code == 0
    assert (tmp_path / "x.onnx").stat().st_size > 10_000_000


@pytest.mark.parametrize("words", [("optimize", "-p", "strip"), ("rewrite", "strip")])
def test_a_result_without_its_weights_is_not_written(split: Path, binary: Path, words: tuple[str, ...]) -> None:
    folder = binary.with_name("elsewhere")
    folder.mkdir()
    line: list[str | Path] = [words[0], *words[1:], split] if words[0] == "rewrite" else [words[0], split, *words[1:]]
    error = refused(run(*line, "-o", folder / "m.onnx"), 73)
    assert "nothing was written: the result needs the weights in 'w.bin' next to" in error
    assert "--with-external" in error
    assert names(folder) == []
    assert run(*line, "--with-external", "-o", folder / "m.onnx").exit_code == 0
    assert names(folder) == ["m.onnx", "w.bin"]
    assert run(*line, "-o", split.with_name("m.onnx")).exit_code == 0

"""``onnxjson convert``."""

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest
from google.protobuf.json_format import MessageToJson

from onnxjson.storage import api, files
from tests.cli.running import Result, run, run_process


def _only_error(result: Result, code: int) -> str:
    """The line of the failure; nothing else was said."""
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith(f"onnxjson: error[{code}]: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_binary_to_text_stands_beside_it(binary: Path) -> None:
    result = run("convert", binary)
    assert result.exit_code == 0
    assert result.stdout == ""
    text = binary.with_name("digits.onnx.json")
    assert text.read_text(encoding="utf-8") == api.dumps(api.load(binary))
    assert result.stderr == f"wrote {text} ({text.stat().st_size / 1000:.1f} kB)\n"


def test_text_to_binary_gives_the_identical_file(binary: Path) -> None:
    before = binary.read_bytes()
    run("convert", binary)
    binary.unlink()
    assert run("convert", binary.with_name("digits.onnx.json")).exit_code == 0
    assert binary.read_bytes() == before


def test_file_that_is_there_is_left_alone_and_named(binary: Path) -> None:
    text = binary.with_name("digits.onnx.json")
    text.write_text("mine")
    error = _only_error(run("convert", binary), 73)
    assert f"-o {text}" in error
    assert text.read_text() == "mine"


def test_dangling_link_in_the_way_is_left_alone(binary: Path) -> None:
    binary.with_name("digits.onnx.json").symlink_to("elsewhere")
    _only_error(run("convert", binary), 73)
    assert not binary.with_name("elsewhere").exists()


def test_output_replaces_as_cp_does(binary: Path) -> None:
    destination = binary.with_name("new.json")
    destination.write_text("old")
    assert run("convert", binary, "-o", destination).exit_code == 0
    assert api.load(destination) == api.load(binary)


def test_output_folder_takes_the_usual_name(binary: Path) -> None:
    folder = binary.with_name("texts")
    folder.mkdir()
    assert run("convert", binary, "-o", folder).exit_code == 0
    assert (folder / "digits.onnx.json").is_file()


@pytest.mark.parametrize("folder", [".", "texts", "texts/"])
def test_output_folder_keeps_what_is_there(binary: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(binary.parent)
    text = Path(folder, "digits.onnx.json")
    text.parent.mkdir(exist_ok=True)
    text.write_text("mine")
    error = _only_error(run("convert", binary, "-o", folder), 73)
    assert f"{text} already exists; to replace it: -o {text}" in error
    assert text.read_text() == "mine"


@pytest.mark.parametrize("arguments", [["", "-o", "x.onnx.json"], ["digits.onnx", "-o", ""]])
def test_empty_name_is_no_folder(binary: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(binary.parent)
    assert "an empty string does not name a file" in _only_error(run("convert", *arguments), 2)
    assert [path.name for path in binary.parent.iterdir()] == ["digits.onnx"]


@pytest.mark.parametrize("name", ["nodir/", "mine.onnx.json/"])
def test_a_name_with_a_slash_at_its_end_is_a_folder_or_refused(binary: Path, name: str) -> None:
    mine = binary.with_name("mine.onnx.json")
    mine.write_text("mine")
    assert f"there is no folder '{binary.parent}/{name}'" in _only_error(
        run("convert", binary, "-o", f"{binary.parent}/{name}"), 73
    )
    assert mine.read_text() == "mine"
    assert not binary.with_name("nodir").exists()


@pytest.mark.parametrize("name", ["m", " ", "m.txt", "m.pbtxt", "m.textproto", "m.onnxtxt", "m.bin"])
def test_an_ending_that_says_nothing_needs_a_format(binary: Path, name: str) -> None:
    destination = binary.with_name(name)
    assert "choose the format with --to" in _only_error(run("convert", binary, "-o", destination), 2)
    assert not destination.exists()
    assert run("convert", binary, "-o", destination, "--to", "onnx").exit_code == 0
    assert destination.read_bytes() == binary.read_bytes()


@pytest.mark.parametrize(("name", "form"), [("m.ONNX", "onnx"), ("m.pb", "onnx"), ("M.Onnx.Json", "json")])
def test_the_ending_says_what_is_written(binary: Path, name: str, form: str) -> None:
    destination = binary.with_name(name)
    assert run("convert", binary, "-o", destination).exit_code == 0
    assert files.load(destination).format == form


@pytest.mark.parametrize("arguments", [[], ["--to", "json"]])
def test_standard_output_is_the_other_form(binary: Path, arguments: list[str]) -> None:
    result = run("convert", binary, "-o", "-", *arguments)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout == api.dumps(api.load(binary))
    assert [path.name for path in binary.parent.iterdir()] == ["digits.onnx"]


def test_process_writes_the_text_to_standard_output(binary: Path) -> None:
    assert run_process("convert", binary, "-o", "-").stdout == api.dumps(api.load(binary))


def test_source_is_never_its_own_destination(binary: Path) -> None:
    before = binary.read_bytes()
    _only_error(run("convert", binary, "-o", binary), 73)
    link = binary.with_name("link.json")
    link.symlink_to(binary)
    _only_error(run("convert", binary, "-o", link), 73)
    assert binary.read_bytes() == before


def test_form_that_the_source_has_already_needs_a_name(text: Path) -> None:
    assert "-o OUT" in _only_error(run("convert", text, "--to", "json"), 73)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("m.onnx", "m.onnx.json"),
        ("m.pb", "m.onnx.json"),
        ("m", "m.onnx.json"),
        ("m.v2", "m.v2.onnx.json"),
        (".onnx", ".onnx.onnx.json"),
    ],
)
def test_name_of_the_text_comes_from_that_of_the_binary(binary: Path, source: str, result: str) -> None:
    path = binary.rename(binary.with_name(source))
    assert run("convert", path).exit_code == 0
    assert binary.with_name(result).is_file()


@pytest.mark.parametrize(
    ("source", "result"), [("m.onnx.json", "m.onnx"), ("m.json", "m.onnx"), ("m.txt", "m.txt.onnx")]
)
def test_name_of_the_binary_comes_from_that_of_the_text(text: Path, source: str, result: str) -> None:
    path = text.rename(text.with_name(source))
    assert run("convert", path).exit_code == 0
    assert text.with_name(result).is_file()


def test_ending_of_the_destination_decides(binary: Path) -> None:
    destination = binary.with_name("m.onnxjson")
    assert run("convert", binary, "-o", destination).exit_code == 0
    assert "ir_version" in json.loads(destination.read_text())


def test_format_goes_before_the_ending(binary: Path) -> None:
    destination = binary.with_name("m.json")
    assert run("convert", binary, "-o", destination, "--to", "onnx").exit_code == 0
    assert destination.read_bytes() == binary.read_bytes()


def test_proto_json_is_read_by_onnx_and_read_back(binary: Path) -> None:
    assert run("convert", binary, "--to", "protojson").exit_code == 0
    proto_json = binary.with_name("digits.onnxjson")
    assert onnx.load(proto_json) == onnx.load(binary)
    assert run("convert", proto_json, "-o", binary.with_name("back.onnx")).exit_code == 0
    assert binary.with_name("back.onnx").read_bytes() == binary.read_bytes()


def test_what_proto_json_cannot_hold_is_refused_and_lossy_writes_it(binary: Path) -> None:
    binary.write_bytes(binary.read_bytes() + b"\xa0\x06\x01")  # field 100 of ModelProto
    destination = binary.with_name("digits.onnxjson")
    result = run("convert", binary, "--to", "protojson")
    assert result.exit_code == 65
    message = "the message has fields that onnx.proto does not define; "
    assert f"{binary}: /: error[unknown-fields]: {message}" in result.stderr
    assert "--lossy" in result.stderr
    assert not destination.exists()
    result = run("convert", binary, "--to", "protojson", "--lossy")
    assert result.exit_code == 0
    assert f"{binary}: /: warning[unknown-fields]: {message}--lossy writes the model without it\n" in result.stderr
    assert destination.exists()


@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize("output", ["m.onnxjson", "-"])
def test_what_proto_json_loses_of_a_text_has_its_line(binary: Path, lossy: bool, output: str) -> None:
    text = binary.with_name("m.onnx.json")
    assert run("convert", binary, "-o", text).exit_code == 0
    lines = text.read_text().split("\n")
    (number,) = [number for number, line in enumerate(lines) if '"alpha": 0.01' in line]
    lines[number] = lines[number].replace("0.01", '"NaN(0x7fc00001)"')
    text.write_text("\n".join(lines))
    destination = "-" if output == "-" else binary.with_name(output)
    result = run("convert", text, "--to", "protojson", "-o", destination, *(["--lossy"] if lossy else []))
    assert result.exit_code == (0 if lossy else 65)
    assert f"{text}:{number + 1}:" in result.stderr
    assert f" {'warning' if lossy else 'error'}[nan-payload]: NaN(0x7fc00001)" in result.stderr


def test_missing_file_is_code_66(tmp_path: Path) -> None:
    assert "m.onnx" in _only_error(run("convert", tmp_path / "m.onnx"), 66)


def test_missing_folder_of_the_destination_is_code_73(binary: Path) -> None:
    _only_error(run("convert", binary, "-o", binary.parent / "no" / "m.json"), 73)


def test_folder_is_no_model(tmp_path: Path) -> None:
    assert "folder" in _only_error(run("convert", tmp_path), 66)


def test_mistakes_are_all_said_with_their_places_and_nothing_is_written(text: Path) -> None:
    content = text.read_text().replace('"alpha": 0.01', '"alpha": "x"').replace('"op_type": "Gemm"', '"op_typ": "Gemm"')
    text.write_text(content)
    result = run("convert", text)
    assert result.exit_code == 65
    *found, last = result.stderr.splitlines()
    assert len(found) == 2
    for mistake, line in zip(('"alpha"', '"op_typ"'), found, strict=True):
        number = 1 + content[: content.index(mistake)].count("\n")
        assert line.startswith(f"{text}:{number}:")
    assert last.startswith("onnxjson: error[65]: ")
    assert [path.name for path in text.parent.iterdir()] == [text.name]


def test_findings_are_warnings_and_the_model_is_converted_all_the_same(text: Path) -> None:
    text.write_text(text.read_text().replace('"output": ["active"]', '"output": ["activated"]'))
    result = run("convert", text)
    assert result.exit_code == 0
    assert f"{text}:" in result.stderr
    assert ": warning[undefined-input]: " in result.stderr
    assert text.with_name("digits.onnx").exists()


def test_comments_that_go_are_mentioned(text: Path) -> None:
    text.write_text(text.read_text().replace('"graph"', '// the network\n"graph"'))
    result = run("convert", text)
    assert result.exit_code == 0
    number = 1 + text.read_text().partition("//")[0].count("\n")
    assert f"{text}:{number}:1: warning[comments-not-kept]: " in result.stderr


def test_slashes_in_names_are_no_comments(text: Path) -> None:
    text.write_text(text.read_text().replace('"/conv"', '"https://conv",').replace(",,", ","))
    assert "comment" not in run("convert", text, "-o", text.with_name("m.onnx")).stderr


@pytest.mark.parametrize("name", ["m.onnx", "m.onnx.json"])
def test_external_data_is_not_left_behind(binary: Path, name: str) -> None:
    model = onnx.load(binary)
    onnx.save(model, binary, save_as_external_data=True, location="w.bin", size_threshold=100)
    (folder := binary.with_name("elsewhere")).mkdir()
    result = run("convert", binary, "-o", folder / name)
    assert result.exit_code == 73
    assert f"the result needs the weights in 'w.bin' next to {binary}" in result.stderr
    assert "add --with-external" in result.stderr
    assert not list(folder.iterdir())
    assert "warning" not in run("convert", binary).stderr
    assert run("convert", binary, "--with-external", "-o", folder / name).exit_code == 0
    assert {each.name for each in folder.iterdir()} == {name, "w.bin"}


def test_a_model_that_lost_its_external_data_is_not_moved_away_from_it(binary: Path) -> None:
    model = onnx.load(binary)
    onnx.save(model, binary, save_as_external_data=True, location="w.bin", size_threshold=100)
    (folder := binary.with_name("elsewhere")).mkdir()
    binary.with_name("w.bin").rename(binary.with_name("kept.bin"))
    result = run("convert", binary, "-o", folder / "m.onnx.json")
    assert result.exit_code == 73
    assert f"the weights in 'w.bin' are not next to {binary}; put that file there or in {folder}/" in result.stderr
    assert not list(folder.iterdir())
    binary.with_name("kept.bin").rename(folder / "w.bin")
    assert run("convert", binary, "-o", folder / "m.onnx.json").exit_code == 0


def test_orphaned_metadata_is_refused_and_dropped_on_request(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx.json"
    path.write_text(
        '{"format": "onnxjson/1", "graph": {"node": [{"op_type": "Relu", "output": ["y"]}],\n'
        '"element_metadata": [["node", "z", "k", "v"]]}}'
    )
    result = run("convert", path)
    assert result.exit_code == 65
    assert f"{path}:2:" in result.stderr
    assert "--drop-orphans" in result.stderr
    assert run("convert", path, "--drop-orphans").exit_code == 0
    (node,) = onnx.load(tmp_path / "m.onnx").graph.node
    assert not node.metadata_props


@pytest.mark.parametrize(
    ("path", "key", "wrong", "code"),
    [
        (("node", 0, "attribute", 0), "type", "INT", "wrong-attribute-field"),
        (("node", 0, "attribute", 0), "s", "constant", "wrong-attribute-field"),
        (("initializer", 0), "rawData", "AAAAAAAA", "wrong-length"),
        (("node", 1), "input", ["nowhere", "w"], "undefined-input"),
    ],
)
def test_mistakes_in_proto_json_are_found_by_check_and_warned_of(
    path: tuple[str | int, ...], key: str, wrong: object, code: str, tmp_path: Path
) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { t = LeakyRelu<alpha=0.5>(x) y = Add(t, w) }"""
    tree = json.loads(MessageToJson(onnx.parser.parse_model(text)))
    tree["graph"]["initializer"][0] = {"name": "w", "dims": ["2"], "dataType": 1, "rawData": "AAAAAAAAAAA="}
    model = tmp_path / "m.json"
    model.write_text(json.dumps(tree))
    assert run("check", model).exit_code == 0
    place = tree["graph"]
    for step in path:
        place = place[step]
    place[key] = wrong
    model.write_text(json.dumps(tree))
    checked = run("check", model)
    assert checked.exit_code == 1
    assert f"error[{code}]" in checked.stdout
    assert f"warning[{code}]" in run("convert", model, "-o", tmp_path / "m.onnx").stderr

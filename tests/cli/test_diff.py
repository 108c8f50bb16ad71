"""``onnxjson diff``: the structural diff; its line diff is in test_diff_unified."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy
import onnx
import pytest
from jsonschema import Draft202012Validator

from onnxjson import example
from onnxjson.storage import api
from tests.cli.running import run, run_process
from tests.cli.terminal import Terminal
from tests.schemas.reports import diff_schema


@pytest.fixture
def leaky(text: Path) -> Path:
    """The text with another alpha."""
    path = text.with_name("leaky.onnx.json")
    path.write_text(text.read_text(encoding="utf-8").replace('"alpha": 0.01', '"alpha": 0.2'), encoding="utf-8")
    return path


@pytest.fixture
def unfused(tmp_path: Path) -> Path:
    """The same network before Gemm was made of MatMul and Add."""
    path = tmp_path / "unfused.onnx"
    example.write_example(path, unfused=True)
    return path


def test_same_model_in_two_forms_prints_nothing_and_exits_0(binary: Path, text: Path) -> None:
    result = run("diff", binary, text)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{binary} and {text} are the same: 6 nodes\n"


def test_text_says_what_happened(binary: Path, leaky: Path) -> None:
    result = run("diff", binary, leaky)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.splitlines() == [
        f"{binary} -> {leaky}",
        "6 nodes before, 6 after, all matched",
        "1 change: 1 attribute-changed",
        "",
        "attribute-changed  LeakyRelu.alpha",
        "                   /activation: attribute alpha: 0.01 -> 0.2",
    ]


def test_fusion_is_found_whatever_the_names_are(unfused: Path, leaky: Path) -> None:
    result = run("diff", unfused, leaky)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert "fused              MatMul+Add -> Gemm" in lines
    assert "attribute-changed  LeakyRelu.alpha" in lines
    assert "  Gemm                     .       1      +1" in lines
    details = run("diff", unfused, leaky, "-v").stdout
    assert "@/graph/node/4 @/graph/node/5 -> @/graph/node/4" in details


def test_both_sides_of_a_rewrite_are_run_when_asked_for(unfused: Path, binary: Path) -> None:
    assert "1 rewrite not verified; --test-rewrites runs both sides of each" in run("diff", unfused, binary).stdout
    proved = run("diff", unfused, binary, "--test-rewrites", "--format", "json")
    assert proved.exit_code == 1
    fused = next(event for event in json.loads(proved.stdout)["events"] if event["kind"] == "fused")
    assert fused["verdict"] in ("equal", "within-tolerance")
    assert fused["evidence"]


def test_exit_codes(binary: Path, leaky: Path, tmp_path: Path) -> None:
    assert run("diff", "--exit-zero", binary, leaky).exit_code == 0
    assert run("diff", "--exit-zero", binary, tmp_path / "none.onnx").exit_code == 66
    broken = tmp_path / "broken.onnx.json"
    broken.write_text("{")
    result = run("diff", binary, broken)
    assert result.exit_code == 65
    assert "broken.onnx.json:1:" in result.stderr


def test_json_fits_its_schema_and_has_pairs_when_asked_for(binary: Path, leaky: Path) -> None:
    result = run("diff", binary, leaky, "--format", "json", "--matches")
    assert result.exit_code == 1
    assert result.stdout.isascii()
    data = json.loads(result.stdout)
    Draft202012Validator(diff_schema()).validate(data)
    assert data["matches"] == [[f"/graph/node/{n}", f"/graph/node/{n}"] for n in range(6)]
    assert data["summary"]["events"] == {"attribute-changed": 1}
    same = json.loads(run("diff", binary, binary, "--format", "json").stdout)
    assert (same["equal"], same["events"]) == (True, [])
    assert "matches" not in same


def test_text_lists_pairs_when_asked_for(binary: Path, leaky: Path) -> None:
    lines = run("diff", binary, leaky, "--matches").stdout.splitlines()
    assert lines[-7:-5] == ["matches 6", "  Conv  /conv  @/graph/node/0"]


@pytest.mark.parametrize(
    ("name", "start"),
    [("r.html", "<!DOCTYPE html>"), ("r.md", "### `"), ("r.json", '{"format": "onnxjson-diff/1"'), ("r.txt", "")],
)
def test_ending_of_the_file_says_what_is_written(
    name: str, start: str, binary: Path, leaky: Path, tmp_path: Path
) -> None:
    result = run("diff", binary, leaky, "-o", tmp_path / name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"wrote {tmp_path / name} (")
    content = (tmp_path / name).read_text(encoding="utf-8")
    assert content.startswith(start or f"{binary} -> {leaky}")
    assert "\x1b" not in content


def test_nothing_is_written_over_what_is_compared(binary: Path, leaky: Path) -> None:
    before = leaky.read_bytes()
    for path in (binary, leaky):
        assert run("diff", binary, leaky, "--format", "text", "-o", path).exit_code == 73
    assert leaky.read_bytes() == before


def test_patch_makes_one_model_of_the_other(binary: Path, leaky: Path, tmp_path: Path) -> None:
    patch, made, wanted = tmp_path / "p.json", tmp_path / "made.onnx", tmp_path / "wanted.onnx"
    assert run("diff", binary, leaky, "--format", "patch", "-o", patch).exit_code == 1
    assert run("apply", patch, binary, "-o", made).exit_code == 0
    assert run("convert", leaky, "-o", wanted).exit_code == 0
    assert made.read_bytes() == wanted.read_bytes()
    printed = run("diff", binary, leaky, "--format", "patch")
    assert json.loads(printed.stdout)["format"] == "onnxjson-patch/1"
    assert run("diff", binary, binary, "--format", "patch").exit_code == 0


@pytest.mark.parametrize("form", ["text", "patch", "unified"])
def test_weights_in_other_files_that_differ_are_a_difference_in_every_format(
    form: str, binary: Path, tmp_path: Path
) -> None:
    old, new = (tmp_path / folder / "m.onnx" for folder in "ab")
    for model in (old, new):
        model.parent.mkdir()
        run("convert", binary, "--externalize", "--threshold", "100", "--data-file", "m.data", "-o", model)
    weights = new.with_name("m.data")
    weights.write_bytes(weights.read_bytes()[::-1])
    assert old.read_bytes() == new.read_bytes()
    assert run("diff", old, new, "--format", form).exit_code == 1
    assert run("diff", old, new, "--format", form, "--exit-zero").exit_code == 0


def test_dash_is_standard_output(binary: Path, leaky: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for form in ("text", "json", "patch"):
        assert run("diff", binary, leaky, "--format", form, "-o", "-") == run("diff", binary, leaky, "--format", form)
    assert not (tmp_path / "-").exists()


def test_what_is_ignored_is_no_difference(unfused: Path, text: Path, leaky: Path) -> None:
    renamed = text.with_name("renamed.onnx.json")
    renamed.write_text(text.read_text(encoding="utf-8").replace('"name": "/conv"', '"name": "other"'), encoding="utf-8")
    assert run("diff", text, renamed).exit_code == 1
    assert run("diff", text, renamed, "--ignore", "docs,names").exit_code == 0
    assert run("diff", text, renamed, "--ignore", "docs", "--ignore", "names").exit_code == 0
    assert run("diff", text, renamed, "--nodes-only").exit_code == 0
    assert run("diff", text, leaky, "--nodes-only").exit_code == 1
    wrong = run("diff", text, renamed, "--ignore", "naems")
    assert wrong.exit_code == 2
    assert "'naems' is not one of metadata, docs, names, order, weights" in wrong.stderr


def test_weights_are_compared_as_asked(binary: Path, tmp_path: Path) -> None:
    near = api.load(binary)
    proto = api.to_proto(near)
    raw = bytearray(proto.graph.initializer[0].raw_data)
    raw[0] ^= 1
    proto.graph.initializer[0].raw_data = bytes(raw)
    other = tmp_path / "near.onnx"
    other.write_bytes(proto.SerializeToString())
    exact = run("diff", binary, other)
    assert exact.exit_code == 1
    assert "weights-changed" in exact.stdout
    assert "max absolute difference" in exact.stdout
    for options in (("--compare-weights", "tolerance"), ("--compare-weights", "skip"), ("--ignore", "weights")):
        assert run("diff", binary, other, *options).exit_code == 0, options


def test_the_rank_of_each_change_is_in_the_text_without_all_details(tmp_path: Path) -> None:
    numbers = numpy.random.default_rng(0)
    for name in ("a", "b"):
        made = [
            onnx.numpy_helper.from_array(
                numbers.standard_normal((20, 1)) @ numbers.standard_normal((1, 30)), f"w{each}"
            )
            for each in range(14)
        ]
        nodes = [onnx.helper.make_node("MatMul", ["x", each.name], [f"y.{each.name}"]) for each in made]
        x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.DOUBLE, ["N", 20])
        graph = onnx.helper.make_graph(nodes, "g", [x], [], made)
        onnx.save(onnx.helper.make_model(graph, ir_version=9), tmp_path / f"{name}.onnx")
    shown = run("diff", tmp_path / "a.onnx", tmp_path / "b.onnx", "--compare-weights", "rank").stdout
    assert shown.count("rank of the change: 2 explains") == 12
    assert "... and 2 more" in shown


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_weights_that_cannot_be_compared_are_said_and_are_no_sameness(form: str, binary: Path, tmp_path: Path) -> None:
    old, new = (tmp_path / folder / "m.onnx" for folder in "ab")
    for model in (old, new):
        model.parent.mkdir()
        run("convert", binary, "--externalize", "--threshold", "100", "--data-file", "m.data", "-o", model)
    assert run("diff", old, new).exit_code == 0
    new.with_name("m.data").unlink()
    for more in ((), ("--exit-zero",)):
        result = run("diff", old, new, "--format", form, *more)
        assert result.exit_code == 66
        assert "warning" in result.stderr
        assert "the file is missing" in result.stderr
        assert "the file is missing" in result.stdout
    if form == "json":
        assert json.loads(result.stdout)["equal"] is False
    assert run("diff", old, new, "--compare-weights", "skip").exit_code == 0


@pytest.mark.parametrize(
    "options",
    [
        ("--format", "unified", "--nodes-only"),
        ("--format", "unified", "--ignore", "names"),
        ("--format", "patch", "--compare-weights", "skip"),
        ("--format", "markdown", "--matches"),
        ("--format", "json", "--verbose"),
    ],
)
def test_options_without_effect_are_refused(options: tuple[str, ...], binary: Path) -> None:
    result = run("diff", binary, binary, *options)
    assert result.exit_code == 2
    assert options[2] in result.stderr


def test_page_is_not_printed_on_a_terminal(binary: Path, leaky: Path) -> None:
    with Terminal("diff", binary, leaky, "--format", "html") as terminal:
        shown, code = terminal.until_end()
    assert code == 2
    assert "-o report.html" in shown


def test_terminal_has_colours_and_a_pager(unfused: Path, leaky: Path, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged\ncat\n")
    pager.chmod(0o755)
    with Terminal("diff", unfused, leaky, more={"PAGER": os.fspath(pager)}) as terminal:
        shown, code = terminal.until_end()
    assert code == 1
    assert "paged" in shown
    assert "\x1b[35mfused" in shown
    assert "\x1b[1mMatMul+Add -> Gemm" in shown
    with Terminal("diff", unfused, leaky, "--no-pager", more={"NO_COLOR": "1"}) as terminal:
        shown, code = terminal.until_end()
    assert re.search(r"\x1b\[[0-9;]*m", shown) is None  # a line of progress may have been erased
    assert "\x1b" not in run_process("diff", unfused, leaky).stdout


@pytest.fixture
def repository(binary: Path, leaky: Path, tmp_path: Path) -> Path:
    """A folder under git: m.onnx as it was committed, and another one in its place."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(binary, folder / "m.onnx")
    name = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
    for words in (["init", "-q"], ["add", "m.onnx"], [*name, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    assert run("convert", leaky, "-o", folder / "m.onnx").exit_code == 0
    return folder


def test_models_of_a_revision_are_compared(repository: Path) -> None:
    result = run_process("diff", "HEAD:m.onnx", "m.onnx", folder=repository)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("HEAD:m.onnx -> m.onnx\n")
    assert "attribute alpha: 0.01 -> 0.2" in result.stdout
    unified = run_process("diff", "HEAD:m.onnx", "m.onnx", "--format", "unified", folder=repository)
    assert unified.stdout.startswith("--- HEAD:m.onnx\n+++ m.onnx\n")
    assert run_process("diff", "HEAD:m.onnx", ":m.onnx", folder=repository).exit_code == 0
    assert run_process("diff", "HEAD:none.onnx", "m.onnx", folder=repository).exit_code == 66


@pytest.mark.parametrize("form", ["text", "unified"])
def test_weights_that_a_revision_lacks_are_said_under_its_name(form: str, repository: Path) -> None:
    convert = ["convert", "m.onnx", "--externalize", "--threshold", "100", "--data-file", "m.data", "-o", "e.onnx"]
    assert run_process(*convert, folder=repository).exit_code == 0
    subprocess.run(["git", "add", "e.onnx"], cwd=repository, check=True, capture_output=True)
    result = run_process("diff", ":e.onnx", "e.onnx", "--format", form, folder=repository)
    assert result.exit_code == 66
    assert "weights not compared: :e.onnx: " in result.stderr
    assert "onnxjson-" not in result.stderr


def test_file_of_that_very_name_goes_before_a_revision(repository: Path) -> None:
    shutil.copy(repository / "m.onnx", repository / "HEAD:m.onnx")
    assert run_process("diff", "HEAD:m.onnx", "m.onnx", folder=repository).exit_code == 0


def test_blobs_are_used_where_they_are_and_not_missed(binary: Path, tmp_path: Path) -> None:
    apart = tmp_path / "blobs" / "m.onnx.json"
    apart.parent.mkdir()
    assert run("convert", binary, "-o", apart, "--weights", "blobs").exit_code == 0
    assert run("diff", binary, apart).exit_code == 0
    for blob in tmp_path.glob("blobs/m.blobs/*"):
        blob.unlink()
    assert run("diff", apart, binary).exit_code == 0


def test_words_of_ignore_are_completed() -> None:
    environment = {
        "_ONNXJSON_COMPLETE": "bash_complete",
        "COMP_CWORD": "3",
        "COMP_WORDS": "onnxjson diff --ignore names,",
    }
    shown = run_process(more=environment).stdout
    assert "plain,names,order" in shown
    assert "names,names" not in shown


def test_several_models_are_compared_with_the_first_in_one_table_or_page(
    binary: Path, leaky: Path, unfused: Path, tmp_path: Path
) -> None:
    found = run("diff", binary, leaky, unfused, binary)
    assert found.exit_code == 1
    head, base, *rows = found.stdout.splitlines()
    assert head.split() == ["model", "nodes", "matched", "parameters", "bytes", "changes"]
    assert base.split()[1:] == ["6", "690", "2.8", "kB"]
    assert [row.split()[1:3] for row in rows] == [["6", "6"], ["7", "5"], ["6", "6"]]
    for change, row in zip(("1 attribute-changed", "1 decomposed", "the same"), rows, strict=True):
        assert change in row
    assert run("diff", binary, leaky, unfused, "-v").stdout.startswith("model")
    page = tmp_path / "all.html"
    assert run("diff", binary, leaky, unfused, "-o", page).exit_code == 1
    assert page.read_text().count("<section ") == 2
    assert len(json.loads(run("diff", binary, leaky, unfused, "--json").stdout)["files"]) == 2


def test_a_model_that_is_missing_leaves_the_others_in_the_table(binary: Path, leaky: Path) -> None:
    found = run("diff", binary, leaky.with_name("missing.onnx"), leaky)
    assert (found.exit_code, len(found.stdout.splitlines())) == (66, 3)


def test_the_report_on_several_models_replaces_none_of_them(binary: Path, leaky: Path, unfused: Path) -> None:
    before = unfused.read_bytes()
    assert run("diff", binary, leaky, unfused, "-o", unfused).exit_code == 73
    assert unfused.read_bytes() == before

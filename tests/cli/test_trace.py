"""``onnxjson optimize --trace`` and ``onnxjson trace``."""

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from onnxjson.model.tensors import to_numpy
from onnxjson.optimizing.trace_records import Size
from onnxjson.rendering.trace_text import Column, table_lines, table_rows
from onnxjson.storage import files
from tests.cli.running import run
from tests.optimizing.networks import convolution
from tests.schemas.reports import trace_schema


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and the trace of two passes."""
    found = tmp_path_factory.mktemp("trace")
    files.save(convolution(), found / "m.onnx")
    (found / "none.py").write_text("def optimize(model):\n    return model\n")
    passes = ("-p", found / "none.py", "-p", "onnxruntime{level=extended}")
    result = run("optimize", found / "m.onnx", *passes, "-o", found / "out.onnx", "--trace", found / "t")
    assert result.exit_code == 0, result.stderr
    assert "onnxjson trace " in result.stderr
    return found


def test_the_text_names_each_rule_and_is_quiet_about_what_changed_nothing(folder: Path) -> None:
    lines = run("trace", folder / "t").stdout.splitlines()
    assert "m.onnx: 2 passes, 1 changed something, 4 -> 2 nodes (-2), 128 -> 112 parameters" in lines[0]
    fused = [line.strip() for line in lines if "NodeFusion" not in line and "fused" in line]
    patterns = ["Conv+BatchNormalization -> Conv", "Conv+Relu -> com.microsoft::FusedConv"]
    assert [line.removeprefix("fused").strip() for line in fused] == patterns
    rules = [line.strip().partition(":")[0] for line in lines if line.startswith("  Conv") and ": " in line]
    assert rules == ["ConvBNFusion", "ConvActivationFusion"]
    assert any(line.startswith("changed nothing: ") and line.endswith("none.py") for line in lines)
    assert [line.split()[0] for line in lines[-3:]] == ["nodes", "parameters", "bytes"]
    assert max(map(len, lines)) <= 200


def test_patch_that_restores_a_payload_needs_weights_from_the_first_model(tmp_path: Path) -> None:
    model = convolution()
    files.save(model, tmp_path / "m.onnx")
    assert model.graph is not None
    kernel = model.graph.initializer[0]
    values = to_numpy(kernel)
    passes = []
    for name, array in (("changed", values + 1), ("restored", values)):
        np.save(tmp_path / f"{name}.npy", array)
        passes += ["-p", f"set-tensor{{tensor={kernel.name},file={tmp_path}/{name}.npy}}"]
    done = run("optimize", tmp_path / "m.onnx", *passes, "-o", tmp_path / "out.onnx", "--trace", tmp_path / "t")
    assert done.exit_code == 0, done.stderr
    assert run("apply", tmp_path / "t/patches/0001.json", tmp_path / "m.onnx", "-o", tmp_path / "1.onnx").exit_code == 0
    last = ("apply", tmp_path / "t/patches/0002.json", tmp_path / "1.onnx", "-o", tmp_path / "2.onnx")
    failed = run(*last)
    assert failed.exit_code == 66
    assert "--weights-from" in failed.stderr
    assert run(*last, "--weights-from", tmp_path / "t/first.onnx").exit_code == 0
    assert (tmp_path / "2.onnx").read_bytes() == (tmp_path / "out.onnx").read_bytes()


def test_a_node_of_the_result_is_told_with_its_origins_and_one_of_the_first_model_with_its_fate(folder: Path) -> None:
    text = run("trace", folder / "t", "--node", "op:FusedConv").stdout
    for name in ("Conv conv", "BatchNormalization bn", "Relu relu"):
        assert f"    {name}  @/graph/node/" in text
    assert "    by onnxruntime{level=extended}, ConvBNFusion" in text
    gone = run("trace", folder / "t", "--node", "bn").stdout
    assert "before all passes" in gone
    assert "is in 1 node of the last model:" in gone
    missing = run("trace", folder / "t", "--node", "nothing")
    assert missing.exit_code == 2
    assert "nothing" in missing.stderr


def test_json_is_what_the_schema_says_and_has_both_ways(folder: Path) -> None:
    data = json.loads(run("trace", folder / "t", "--format", "json").stdout)
    validator = Draft202012Validator(trace_schema())
    assert not list(validator.iter_errors(data))
    assert not list(validator.iter_errors(json.loads((folder / "t" / "trace.json").read_text())))
    assert list(validator.iter_errors(data | {"more": 1}))
    assert set(data["fates"]) == {f"/graph/node/{position}" for position in range(4)}
    assert len(data["origins"]) == 2
    some = json.loads(run("trace", folder / "t", "--format", "json", "--node", "bn").stdout)
    assert (list(some["origins"]), list(some["fates"])) == ([], ["/graph/node/1"])


def test_markdown_has_a_row_for_each_pass_and_each_event(folder: Path) -> None:
    result = run("trace", folder / "t", "-o", folder / "report.md")
    assert result.exit_code == 0
    text = (folder / "report.md").read_text()
    assert "| `onnxruntime{level=extended}` | 4 → 2 |" in text
    assert "| `ConvBNFusion` | fused | `Conv+BatchNormalization -> Conv` |" in text
    assert "| **nodes** | 4 | 2 |" in text
    assert "from " in run("trace", folder / "t", "--format", "markdown", "--node", "op:FusedConv").stdout


def test_the_page_is_whole_and_asks_nothing_of_the_network(folder: Path) -> None:
    assert run("trace", folder / "t", "-o", folder / "report.html").exit_code == 0
    text = (folder / "report.html").read_text()

    class Page(HTMLParser):
        opened: list[str]

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert not [value for name, value in attrs if name in ("src", "href") and not (value or "").startswith("#")]
            if tag not in ("meta", "input", "br"):
                self.opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.opened.pop() == tag

    page = Page()
    page.opened = []
    page.feed(text)
    assert page.opened == []
    assert "ConvActivationFusion" in text
    assert text.count("<svg") >= 2
    assert "default-src 'none'" in text
    assert "figure .scroll { padding: .7rem; text-align: center;" in text  # names of operators are on the left
    assert "-&gt; 1 node" not in text


def test_what_does_not_fit_together_is_a_usage_error(folder: Path) -> None:
    for arguments in (
        ["--format", "json", "--verbose"],
        ["--format", "html", "--node", "bn"],
    ):
        assert run("trace", folder / "t", *arguments).exit_code == 2
    assert run("trace", folder / "none").exit_code == 66
    refused = run("optimize", folder / "m.onnx", "-p", "prune", "-o", folder / "o.onnx", "--trace", folder)
    assert refused.exit_code == 73
    assert "name a new folder" in refused.stderr
    assert not (folder / "o.onnx").exists()
    models = (folder / "m.onnx", folder / "out.onnx")
    assert run("optimize", *models, "-p", "prune", "-i", "--trace", folder / "t2").exit_code == 2


def test_a_pass_that_fails_is_the_last_one_of_the_trace(folder: Path) -> None:
    (folder / "bad.py").write_text("def optimize(model):\n    raise ValueError('no')\n")
    passes = ("-p", "onnxruntime", "-p", folder / "bad.py")
    result = run("optimize", folder / "m.onnx", *passes, "-o", folder / "b.onnx", "--trace", folder / "t3")
    assert result.exit_code == 76
    shown = run("trace", folder / "t3").stdout
    assert "2 passes, 1 changed something" in shown
    assert "bad.py: failed" in shown
    assert "ValueError: no;" in shown.replace("\n  ", " ")


def test_a_pass_after_which_a_model_is_more_than_a_tenth_bigger_is_marked(folder: Path) -> None:
    grow = folder / "grow.py"
    grow.write_text("def optimize(model):\n    model.doc_string = 'x' * 100_000\n    return model\n")
    made = run("optimize", folder / "m.onnx", "-p", grow, "-o", folder / "b.onnx", "--trace", folder / "t4")
    assert made.exit_code == 0
    for form in ("text", "markdown", "html"):
        assert "the model grew by " in run("trace", folder / "t4", "--format", form).stdout


def size(nodes: int, **operators: int) -> Size:
    return Size(nodes=nodes, parameters=nodes * 10, bytes=nodes * 1000, operators=operators)


def test_any_number_of_models_stands_side_by_side() -> None:
    columns = [Column(f"stage {place}", size(place, Conv=place, Relu=1)) for place in range(12)]
    rows = table_rows(columns)
    assert [row.what for row in rows] == ["Conv", "Relu", "nodes", "parameters", "bytes"]
    assert rows[0].numbers == tuple(range(12))
    assert [rows[2].change(place) for place in (0, 1)] == [0, 1]
    lines = ["".join(span.text for span in line) for line in table_lines(columns, 60)]
    assert max(map(len, lines)) <= 60
    text = "\n".join(lines)
    assert all(f"stage {place}" in text for place in range(12))
    assert [row.what for row in table_rows(columns, most=5)][:2] == ["Conv", "1 other as before"]

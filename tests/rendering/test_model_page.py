"""The page of a whole model."""

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import onnxjson
from onnxjson.example import make_example
from tests.cli.running import run
from tests.editing.graphs import model_of

MODELS = Path(__file__).parents[1] / "models"


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id=data>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def page_of(path: Path, *more: str | Path) -> str:
    made = run("show", path, "-o", path.with_suffix(".html"), *more)
    assert made.exit_code == 0, made.stderr
    return path.with_suffix(".html").read_text()


def test_page_has_nodes_values_attributes_statistics_and_costs(tmp_path: Path) -> None:
    onnxjson.save(onnxjson.from_proto(make_example()), tmp_path / "m.onnx")
    page = page_of(tmp_path / "m.onnx", "--dim", "N=3")
    data = data_of(page)
    texts, nodes = data["texts"], data["nodes"]
    assert [texts[node[0]] for node in nodes] == ["Conv", "LeakyRelu", "MaxPool", "Flatten", "Gemm", "Softmax"]
    assert [[texts[each] for each in pair] for pair in nodes[1][4]] == [["alpha", "0.01"]]
    weight = data["values"][nodes[0][2][1]]
    assert texts[weight[0]] == "conv.weight"
    assert re.fullmatch(r"constant float32\[4,1,3,3\] min \S+, mean \S+, max \S+", texts[weight[1]])
    assert data["overlays"]["MACs, N=3"]["0"] == 3 * 4 * 64 * 9
    assert "default-src 'none'" in page
    shapes = "g (float[4] x) => (float[2,2] y) <int64[2] shape = {2, -1}> { y = Reshape(x, shape) }"
    onnxjson.save(model_of(shapes), tmp_path / "m.onnx")
    assert "constant int64[2] min -1, mean 0.5, max 2" in data_of(page_of(tmp_path / "m.onnx"))["texts"]


def test_page_has_inputs_outputs_and_the_lines_of_the_outline(tmp_path: Path) -> None:
    onnxjson.save(onnxjson.from_proto(make_example()), tmp_path / "m.onnx")
    page = page_of(tmp_path / "m.onnx")
    assert "<b>inputs</b> <code>image: float32[N,1,8,8]</code>" in page
    assert "<b>outputs</b> <code>probabilities: float32[N,10]</code>" in page
    outline = run("show", tmp_path / "m.onnx", "--outline").stdout.splitlines()
    data = data_of(page)
    assert [data["texts"][title] for title, *_ in data["lines"]] == outline
    assert html.unescape(page.partition("<noscript><pre>")[2].partition("</pre>")[0]).splitlines() == outline
    ranges = [each for _, nodes, *_ in data["lines"] for each in nodes]
    assert sorted(number for first, last in ranges for number in range(first, last + 1)) == [0, 1, 2, 3, 4, 5]
    named = [[data["texts"][data["values"][each][0]] for each in data[side]] for side in ("inputs", "outputs")]
    assert named == [["image"], ["probabilities"]]
    assert {each.split()[0] for each in data["cost"]} >= {"MACs", "parameters", "weights", "peak"}


def test_a_repeat_has_the_nodes_of_each_round(tmp_path: Path) -> None:
    shutil.copy(MODELS / "encoder_ts.onnx", tmp_path / "m.onnx")
    data = data_of(page_of(tmp_path / "m.onnx"))
    repeats = [(data["texts"][title], rounds) for title, rounds, _, is_repeat in data["lines"] if is_repeat]
    sizes = [[sum(last - first + 1 for first, last in ranges) for ranges in rounds] for _, rounds in repeats]
    assert [text.split("  ")[0] for text, _ in repeats] == [f"repeat {len(each)}" for each in sizes]
    assert all(len(set(each)) == 1 for each in sizes)


def test_no_text_of_a_model_leaves_its_place(tmp_path: Path) -> None:
    model = model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }")
    hostile = "</script><script>alert(1)</script>\x1b[31m"
    model = model.rewrite(onnxjson.edits.SetName(node="op:Relu", name=hostile))
    onnxjson.save(model, tmp_path / "m.onnx")
    page = page_of(tmp_path / "m.onnx")
    assert page.count("<script") == 2
    assert any("alert(1)" in text for text in data_of(page)["texts"])
    assert "\x1b" not in page


def test_reports_are_overlays(tmp_path: Path) -> None:
    onnxjson.save(onnxjson.from_proto(make_example()), tmp_path / "m.onnx")
    new = tmp_path / "new.onnx"
    run("rewrite", "set-attribute", tmp_path / "m.onnx", "op:LeakyRelu", "alpha", "0.3", "-o", new)
    reports = {
        "verify": run("verify", tmp_path / "m.onnx", new, "--locate", "--json").stdout,
        "diff": run("diff", tmp_path / "m.onnx", new, "--json").stdout,
        "run": json.dumps({"format": "onnxjson-run/1", "profile": [{"name": "/conv", "seconds": 0.25}],
            "placement": {"nodes": [{"origins": ["/graph/node/4"], "provider": "CPU\x1b[31m"}]}}),
        "equal": run("verify", new, new, "--locate", "--json").stdout,
        "bad": json.dumps({"format": "onnxjson-run/1"}),
        "strange": json.dumps({"format": "onnxjson-run/1", "profile": [], "placement": {"nodes": [[]]}}),
        "nan": '{"format": "onnxjson-run/1", "profile": [{"name": "/conv", "seconds": Infinity}]}',
    }  # fmt: skip
    for name, text in reports.items():
        (tmp_path / f"{name}.json").write_text(text)
    given = [word for name in ("verify", "diff", "run") for word in ("--overlay", tmp_path / f"{name}.json")]
    data = data_of(page_of(new, *given))
    overlays = data["overlays"]
    assert data["overlay"] == "largest error"  # the first one that was given
    assert overlays["time in ms"] == {"0": 250.0}
    assert overlays["provider"]["4"].startswith("CPU")
    assert "\x1b" not in overlays["provider"]["4"]
    assert overlays["difference"] == {"1": "attribute-changed"}
    assert overlays["largest error"]["1"] > 0.01
    assert data_of(page_of(new, "--overlay", tmp_path / "nan.json"))["overlays"]["time in ms"] == {"0": "inf"}
    assert "largest error" not in data_of(page_of(new, "--overlay", tmp_path / "equal.json"))["overlays"]
    for name in ("bad", "strange"):
        assert run("show", new, "-o", tmp_path / "p.html", "--overlay", tmp_path / f"{name}.json").exit_code == 65


def test_page_is_about_one_whole_model(tmp_path: Path) -> None:
    onnxjson.save(onnxjson.from_proto(make_example()), tmp_path / "m.onnx")
    assert run("show", tmp_path / "m.onnx", "op:Conv", "-o", tmp_path / "p.html").exit_code == 2
    assert run("show", tmp_path / "m.onnx", "--overlay", tmp_path / "m.onnx").exit_code == 2

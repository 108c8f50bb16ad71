"""A share of `tests.laws.real`, on the smallest models and with a few passes."""

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.checking.cost import assumed_dims, cost_of
from tests.cli.running import run
from tests.laws import real, real_figures
from tests.laws.real_diffs import Pair
from tests.laws.real_figures import figures_law

MODELS = [*real.MODELS.glob("*.onnx"), *real.MODELS.glob("decoders/*.onnx")]

PASSES = ("onnxsim", "onnxruntime", "float16")


@pytest.mark.parametrize("name", ["branches_ts", "mobile_ts"])
@pytest.mark.timeout(300)
def test_laws_hold(name: str) -> None:
    row = real.row_of(real.MODELS / f"{name}.onnx", tuple(real.LAWS), PASSES)
    assert row.broken == ()
    assert set(row.cells) == set(real.LAWS)


@pytest.mark.timeout(300)
def test_a_result_that_computes_something_else_or_does_not_load_is_a_broken_law() -> None:
    path = real.MODELS / "mobile_ts.onnx"
    model = onnxjson.load(path)
    other = model.select("op:Clip").delete()
    assert model.graph is not None
    wrong = replace(model, graph=replace(model.graph, node=model.graph.node[:-1]))
    results = real.Results(path, ())
    results._made = [Pair("mobile_ts onnxsim", model, other), Pair("mobile_ts onnxslim", model, wrong)]
    assert [each.partition(":")[0] for each in real.loads(results).broken] == ["mobile_ts onnxslim"]
    assert len(real.verdicts(results).broken) == 2
    assert real.diffs(results).broken == ()


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
@pytest.mark.timeout(300)
def test_all_reports_show_the_weights_and_costs_of_the_model(path: Path, tmp_path: Path) -> None:
    assert figures_law(path).broken == ()
    page = tmp_path / "page.html"
    shown = json.loads(run("show", "--cost", "--json", path).stdout)
    compared = json.loads(run("diff", "--cost", "--json", path, path).stdout)
    assert run("show", path, "-o", page).exit_code == 0
    model = onnxjson.load(path)
    cost = cost_of(model, path.parent)
    for each in (shown["cost"], compared["cost"]["base"], compared["cost"]["target"]):
        assert (each["parameters"], each["weight_bytes"], each["macs"]) == (
            cost.parameters, cost.weight_bytes, cost.macs,
        )  # fmt: skip
    assert sum([each["weight_bytes"] for each in shown["cost"]["operators"]]) == cost.weight_bytes
    data = re.search(r"id=data>(.*?)</script>", page.read_text())
    assert data is not None
    overlays = [each for title, each in json.loads(data[1])["overlays"].items() if title.startswith("MACs")]
    sized = cost_of(model, path.parent, assumed_dims({}, model))
    assert sum([sum(each.values()) for each in overlays]) == sized.macs


@pytest.mark.timeout(300)
def test_figures_that_do_not_add_up_or_do_not_hold_are_broken_laws() -> None:
    path = real.MODELS / "encoder_dynamo.onnx"
    model = onnxjson.load(path)
    cost = cost_of(model, path.parent)
    wrong = replace(cost, weight_bytes=10 * cost.weight_bytes, parameters=1, operators=cost.operators[1:])
    assert len(list(real_figures.totals(path, wrong))) == 2
    assert len(list(real_figures.sums(wrong))) == 3
    assert len(list(real_figures.surfaces(model, path, wrong))) == 4
    _, broken = real_figures.formulas(model, path.parent, replace(cost, macs=f"{cost.macs} + 1"))
    assert [each.partition(" ")[0] for each in broken] == ["macs"]
    assert real_figures.value_of("max(2*(x:0), 3)*N", {"x:0": 4, "N": 2}) == 16

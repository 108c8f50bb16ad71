"""``show --cost`` and ``diff --cost``."""

import json
from pathlib import Path

import jsonschema

import onnxjson
from tests.cli.running import run
from tests.editing.graphs import model_of
from tests.schemas.reports import diff_schema

KEYS = {"macs", "flops", "parameters", "weight_bytes", "activation_bytes", "peak_activation_bytes", "unknown"}


def test_json_of_show_has_the_cost_beside_the_summary(binary: Path) -> None:
    data = json.loads(run("show", binary, "--cost", "--dim", "N=2", "--json").stdout)
    assert data["cost"].keys() > KEYS
    assert (data["kind"], data["cost"]["macs"], data["cost"]["unknown"]) == ("summary", 5888, [])
    assert (data["cost"]["parameters"], data["cost"]["dims"]) == (690, {"N": 2})


def test_formula_is_shown_where_a_dimension_has_no_size(binary: Path) -> None:
    text = run("show", binary, "--cost").stdout
    assert "  MACs         2944*N\n" in text
    assert "by operator" in text


def test_a_long_formula_is_left_out_with_the_options_that_give_numbers(tmp_path: Path) -> None:
    names = [f"a_long_name_of_a_size_{number}" for number in range(6)]
    body = f"g (float[{','.join(names)}] x) => (y) {{ y = Relu(x) }}"
    onnxjson.save(model_of(body), tmp_path / "long.onnx")
    result = run("show", tmp_path / "long.onnx", "--cost")
    assert "  FLOPs        formula\n" in result.stdout
    assert f"--dim {names[0]}=SIZE" in " ".join(result.stdout.split())
    assert "*" not in result.stdout
    sizes = [word for name in names for word in ("--dim", f"{name}=2")]
    assert "  FLOPs        64\n" in run("show", tmp_path / "long.onnx", "--cost", *sizes).stdout


def test_diff_shows_cost_before_and_after_and_the_change(binary: Path) -> None:
    changed, sized = binary.with_name("changed.onnx"), binary.with_name("sized.onnx")
    run("rewrite", "set-dim", binary, "N", "4", "-o", changed)
    run("rewrite", "set-dim", binary, "N", "2", "-o", sized)
    lines = [line.split() for line in run("diff", sized, changed, "--cost").stdout.splitlines()]
    assert ["MACs", "5.888", "k", "11.78", "k", "+100.0%"] in lines
    lines = [line.split() for line in run("diff", binary, changed, "--cost", "--dim", "N=4").stdout.splitlines()]
    assert ["MACs", "11.78", "k", "11.78", "k"] in lines
    assert run("diff", binary, changed, "--cost", "--dim", "M=4").exit_code == 2
    found = json.loads(run("diff", sized, changed, "--cost", "--json").stdout)
    jsonschema.validate(found, diff_schema())
    assert (found["cost"]["base"]["macs"], found["cost"]["target"]["macs"]) == (5888, 11776)


def test_options_that_have_no_effect_are_refused(binary: Path) -> None:
    assert run("show", binary, "--dim", "N=2").exit_code == 2
    assert run("show", binary, "/fc", "--cost").exit_code == 2
    assert run("diff", binary, binary, "--dim", "N=2").exit_code == 2
    assert run("diff", binary, binary, "--cost", "--format", "patch").exit_code == 2
    assert run("show", binary, "--cost", "--dim", "N=two").exit_code == 2


def test_number_in_which_something_is_not_counted_is_a_lower_bound(tmp_path: Path) -> None:
    for name, body in {
        "counted": "a = Relu(x) y = MatMul(a, x)", "partly": "a = local.Strange(x) y = MatMul(x, x)"
    }.items():  # fmt: skip
        onnxjson.save(model_of(f"g (float[4,4] x) => (float[4,4] y) {{ {body} }}"), tmp_path / f"{name}.onnx")
    counted, partly = tmp_path / "counted.onnx", tmp_path / "partly.onnx"
    assert "MACs         at least 64\n" in run("show", partly, "--cost").stdout
    lines = [line.split() for line in run("diff", partly, counted, "--cost").stdout.splitlines()]
    assert ["FLOPs", "at", "least", "128", "144", "not", "known"] in lines
    policy = tmp_path / "policy.toml"
    for limit, base, model, findings in (
        ("<= base", partly, counted, ["warning"]), ("<= base", counted, partly, ["warning"]),
        ("<= 130", partly, counted, ["error"]), ("<= 130", counted, partly, ["warning"]),
        ("<= 100", counted, partly, ["error"]), ("<= base * 2", partly, counted, []),
    ):  # fmt: skip
        policy.write_text(f'format = "onnxjson-policy/1"\n[rules]\nselect = []\n[budgets]\nflops = "{limit}"\n')
        found = json.loads(run("check", model, "--policy", policy, "--base", base, "--json").stdout)
        assert [each["severity"] for each in found if each["code"] == "budget:flops"] == findings, limit

"""Where changes are in the outline, the same in all forms of a report."""

import re
from collections.abc import Mapping

import msgspec
import pytest

import onnxjson
from onnxjson.model.document import Model, Node
from onnxjson.rendering.diff_html import diff_html
from onnxjson.rendering.diff_report import Report, report
from onnxjson.rendering.diff_text import diff_lines
from onnxjson.rendering.markdown_reports import diff_markdown
from onnxjson.rendering.reports import diff_json
from tests.outline.test_attention import JOIN, SPLIT, WEIGHTS
from tests.outline.written import model

_LAYERS = 3
_LAYER = f"n = LayerNormalization<epsilon = 0.001>(x, w8, w8) {SPLIT.replace('(x,', '(n,')} s = MatMul(q, k)"
_WEIGHTS = f"{WEIGHTS}, float[8] w8 = ., float[8,8] up = ., float[8,8] down = ."


def _network(scales: Mapping[int, float], epsilons: Mapping[int, float]) -> Model:
    """Layers of attention; a scale of 0.3 and an epsilon of 0.001, unless another one is given for the layer."""
    text, weights, x = "", _WEIGHTS, "x"
    for layer in range(_LAYERS):
        weights += f", float scale{layer} = {{{scales.get(layer, 0.3)}}}"
        block = f"{_LAYER} t = Mul(s, scale{layer}) p = Softmax(t) {JOIN} y = Add(x, out)"
        block += " h = MatMul(y, up) g = Relu(h) d = MatMul(g, down) z = Add(y, d)"
        block = block.replace("0.001", str(epsilons.get(layer, 0.001)))
        values = "|".join({*re.findall(r"(\w+) = [A-Z]", block)})
        block = re.sub(rf"\b({values})\b", rf"\g<1>_{layer}", block)
        text += re.sub(r"\bx\b", x, block) + "\n"
        x = f"z_{layer}"
    found = model(text, weights, outputs=f"float[2,6,8] {x}")
    assert found.graph is not None
    nodes = [_named(node) for node in found.graph.node]
    return msgspec.structs.replace(found, graph=msgspec.structs.replace(found.graph, node=tuple(nodes)))


def _named(node: Node) -> Node:
    name, _, layer = node.output[0].rpartition("_")
    return msgspec.structs.replace(node, name=f"/layers.{layer}/{name}/{node.op_type}")


def _report(scales: Mapping[int, float], epsilons: Mapping[int, float]) -> Report:
    return report(onnxjson.diff(_network({}, {}), _network(scales, epsilons)), "a", "b")


@pytest.mark.parametrize(
    ("scales", "epsilons", "where"),
    [
        (dict.fromkeys(range(3), 0.25), {}, "in all 3 layers: Attention.scale 0.3 -> 0.25"),
        ({2: 0.25}, {}, "layers 2 only: Attention.scale 0.3 -> 0.25"),
        ({0: 0.25, 2: 0.25}, {}, "layers 0, 2 only: Attention.scale 0.3 -> 0.25"),
        ({}, {1: 0.01}, "layers 1 only: LayerNorm.eps 0.001 -> 0.01"),
        ({}, dict.fromkeys(range(3), 0.01), "in all 3 layers: LayerNorm.eps 0.001 -> 0.01"),
    ],
)
def test_equal_changes_are_grouped_by_the_rounds_of_the_repeat_in_all_forms(
    scales: dict[int, float], epsilons: dict[int, float], where: str
) -> None:
    shown = _report(scales, epsilons)
    (event,) = shown.events
    assert event.where == where
    assert event.count == len(scales) + len(epsilons)
    text = ["".join([span.text for span in line]).strip() for line in diff_lines(shown, 100)]
    assert where in text
    assert f"`{where}`" in diff_markdown(shown)
    assert where.replace(">", "&gt;") in "".join(diff_html(shown))
    (data,) = msgspec.json.decode("".join(diff_json(shown)))["events"]
    assert data["where"] == where


def test_places_of_a_large_model_are_listed_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxjson.rendering.diff_where.LARGEST", 10)
    shown = _report(dict.fromkeys(range(3), 0.25), {})
    assert shown.events[0].where == ""
    text = "\n".join(["".join([span.text for span in line]) for line in diff_lines(shown, 100)])
    assert "scale0, scale1, scale2" in text

"""Where changes are in the outline, the same in all forms of a report."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
import pytest

import onnxjson
from onnxjson.model.document import Model, Node
from onnxjson.rendering.change_words import change_words, text_of
from onnxjson.rendering.diff_html import diff_html, words_html
from onnxjson.rendering.diff_report import Report, report
from onnxjson.rendering.diff_text import diff_lines
from onnxjson.rendering.markdown_reports import diff_markdown, words_markdown
from onnxjson.rendering.reports import diff_json
from tests.editing.graphs import model_of
from tests.outline.test_attention import JOIN, SPLIT, WEIGHTS
from tests.outline.written import model

_LAYERS = 3
_LAYER = f"n = LayerNormalization<epsilon = 0.001>(x, w8, w8) {SPLIT.replace('(x,', '(n,')} s = MatMul(q, k)"
_WEIGHTS = f"{WEIGHTS}, float[8] w8 = ."


def _network(scales: Mapping[int, float], epsilons: Mapping[int, float], layers: int = _LAYERS) -> Model:
    """Layers of attention; a scale of 0.3 and an epsilon of 0.001, unless another one is given for the layer."""
    text, weights, x = "", _WEIGHTS, "x"
    for layer in range(layers):
        weights += f", float scale{layer} = {{{scales.get(layer, 0.3)}}}"
        for number, name in enumerate(("wq", "wk", "wv", "wo", "up", "down")):
            weights += f", float[8,8] {name}{layer} = {{{', '.join([str(layer * 6 + number)] * 64)}}}"
        block = f"{_LAYER} t = Mul(s, scale{layer}) p = Softmax(t) {JOIN} y = Add(x, out)"
        block += " h = MatMul(y, up) g = Relu(h) d = MatMul(g, down) z = Add(y, d)"
        block = re.sub(r"\b(wq|wk|wv|wo|up|down)\b", rf"\g<1>{layer}", block)
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
        ({2: 0.25}, {}, "layer 2 only: Attention.scale 0.3 -> 0.25"),
        ({0: 0.25, 2: 0.25}, {}, "layers 0, 2 only: Attention.scale 0.3 -> 0.25"),
        ({}, {1: 0.01}, "layer 1 only: LayerNorm.eps 0.001 -> 0.01"),
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


def test_equal_changes_outside_the_repeat_are_counted() -> None:
    sides = []
    for epsilon in (0.001, 0.01):
        network = _network({}, dict.fromkeys(range(_LAYERS), epsilon))
        graph = network.graph
        assert graph is not None
        out = graph.output[0].name or ""
        last = msgspec.structs.replace(graph.node[0], input=(out, "w8", "w8"), output=("last",), name="last")
        output = (msgspec.structs.replace(graph.output[0], name="last"),)
        graph = msgspec.structs.replace(graph, node=(*graph.node, last), output=output)
        sides.append(msgspec.structs.replace(network, graph=graph))
    (event,) = report(onnxjson.diff(*sides), "a", "b").events
    change = "LayerNorm.eps 0.001 -> 0.01"
    assert event.where == f"in all 3 layers: {change}; in 1 other place: {change}"


def test_places_of_a_large_model_are_listed_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxjson.rendering.diff_where.LARGEST", 10)
    shown = _report(dict.fromkeys(range(3), 0.25), {})
    assert shown.events[0].where == ""
    text = "\n".join(["".join([span.text for span in line]) for line in diff_lines(shown, 100)])
    assert "scale0, scale1, scale2" in text


def _stack(alphas: Sequence[tuple[float, float]], gain: float = 0, scale: float = 2) -> Model:
    """Layers of two residual lines with a LeakyRelu each; a weight for each layer, and one that all layers share."""
    text, x, weights = "", "x", f"float[8,8] w = ., float shared = {{{scale}}}"
    for layer, (first, second) in enumerate(alphas):
        weights += f", float[8] g{layer} = {{{', '.join([str(gain)] * 8)}}}"
        text += f"n{layer} = LayerNormalization({x}, g{layer}) m{layer} = Mul(n{layer}, shared) "
        text += f"a{layer} = LeakyRelu<alpha = {first}>(m{layer}) b{layer} = MatMul(a{layer}, w) "
        text += f"h{layer} = Add({x}, b{layer}) "
        text += f"c{layer} = MatMul(h{layer}, w) d{layer} = LeakyRelu<alpha = {second}>(c{layer}) "
        text += f"e{layer} = MatMul(d{layer}, w) z{layer} = Add(h{layer}, e{layer}) "
        x = f"z{layer}"
    return model(text, weights, outputs=f"float[2,6,8] {x}")


@pytest.mark.parametrize(
    ("alphas", "where"),
    [
        ([0.2] * 8, "in all 4 rounds: LeakyRelu.alpha 0.1 -> 0.2"),
        ([0.2, 0.2, 0.2, 0.1, 0.2, 0.2, 0.2, 0.2], "in 7 of 8 places: LeakyRelu.alpha 0.1 -> 0.2"),
        ([0.2, 0.1] * 4, "in all 4 rounds: LeakyRelu.alpha 0.1 -> 0.2"),
        (
            [0.2, 0.1, 0.2, 0.1, 0.3, 0.1, 0.2, 0.1],
            "rounds 0, 1, 3 only: LeakyRelu.alpha 0.1 -> 0.2; round 2 only: LeakyRelu.alpha 0.1 -> 0.3",
        ),
        ([0.2, 0.3] * 4, "in all 4 rounds: LeakyRelu.alpha 0.1 -> 0.2, LeakyRelu.alpha 0.1 -> 0.3"),
    ],
)
def test_each_value_has_the_rounds_in_which_all_places_of_the_line_have_it(alphas: list[float], where: str) -> None:
    target = _stack(list(zip(alphas[::2], alphas[1::2], strict=True)))
    (event,) = report(onnxjson.diff(_stack([(0.1, 0.1)] * 4), target), "a", "b").events
    assert event.where == where
    parts = [part.partition(": ") for part in where.split("; ")]
    (words,) = change_words(report(onnxjson.diff(_stack([(0.1, 0.1)] * 4), target), "a", "b"))
    assert text_of(words) == ", ".join([f"{value} {rounds}" for rounds, _, value in parts])
    assert words_markdown(words) == ", ".join([f"`{value}` `{rounds}`" for rounds, _, value in parts])
    html = ", ".join([f"<code>{value}</code> <code>{rounds}</code>" for rounds, _, value in parts])
    assert words_html(words) == html.replace("->", "-&gt;")


def test_a_change_is_not_told_under_another_one_of_the_same_lines() -> None:
    alphas = [(0.1, 0.1), (0.1, 0.1), (0.2, 0.1), (0.1, 0.1)]
    events = report(onnxjson.diff(_stack([(0.1, 0.1)] * 4), _stack(alphas, gain=0.2)), "a", "b").events
    assert {event.pattern: event.where for event in events} == {
        "LeakyRelu.alpha": "round 2 only: LeakyRelu.alpha 0.1 -> 0.2",
        "LayerNormalization input 1": "in all 4 rounds",
    }


def test_a_constant_that_all_rounds_share_is_changed_in_all() -> None:
    base = _stack([(0.1, 0.1)] * 4)
    for scale in (3, 1e-30, 0):  # also numbers without a square or reciprocal
        (event,) = report(onnxjson.diff(base, _stack([(0.1, 0.1)] * 4, scale=scale)), "a", "b").events
        assert event.where == "in all 4 rounds"


def test_an_option_in_one_of_two_equal_calls_of_a_line_is_counted() -> None:
    def twice(alpha: float) -> Model:
        text, x = "", "x"
        for layer in range(3):
            text += f"a{layer} = LeakyRelu<alpha = {alpha}>({x}) b{layer} = LeakyRelu<alpha = 0.1>(a{layer}) "
            text += f"c{layer} = MatMul(b{layer}, w) d{layer} = MatMul({x}, w) z{layer} = Add(c{layer}, d{layer}) "
            x = f"z{layer}"
        return model(text, "float[8,8] w = .", outputs=f"float[2,6,8] {x}")

    (event,) = report(onnxjson.diff(twice(0.1), twice(0.2)), "a", "b").events
    assert event.where == "in 3 of 6 places: LeakyRelu.alpha 0.1 -> 0.2"


def _without(removed: Collection[int], layers: int, *, renumbered: bool = False) -> tuple[Model, Model]:
    """A network of layers with different scales and a head, and the same without some of the layers."""
    base = _network({number: number + 0.5 for number in range(layers)}, {}, layers)
    assert base.graph is not None
    (output,) = base.graph.output
    head = msgspec.structs.replace(
        base.graph.node[0], op_type="Neg", input=(output.name or "",), output=("out",), name="/head/Neg", attribute=()
    )
    outputs = (msgspec.structs.replace(output, name="out"),)
    kept = [number for number in range(layers) if number not in removed]
    sources = {f"z_{number}": f"z_{number - 1}" if number else "x" for number in removed}
    nodes = []
    for node in base.graph.node:
        number = int((node.name or "").split("/")[1].removeprefix("layers."))
        if number in kept:
            name = node.name or ""
            if renumbered:
                name = name.replace(f"layers.{number}", f"layers.{kept.index(number)}")
            inputs = tuple([_source(each, sources) for each in node.input])
            nodes.append(msgspec.structs.replace(node, input=inputs, name=name))
    last = msgspec.structs.replace(head, input=(_source(head.input[0], sources),))
    base, target = [
        msgspec.structs.replace(base, graph=msgspec.structs.replace(base.graph, node=(*before, after), output=outputs))
        for before, after in ((base.graph.node, head), (nodes, last))
    ]
    return base, target


def _source(name: str, outputs: Mapping[str, str]) -> str:
    while name in outputs:
        name = outputs[name]
    return name


@pytest.mark.parametrize("renumbered", [False, True])
@pytest.mark.parametrize(
    ("removed", "where", "text"),
    [
        ([2], ["layer 2 only"], "1 of 6 layers removed (layer 2, counted from 0)"),
        ([1, 4], ["layers 1, 4 only"], "2 of 6 layers removed (layers 1, 4, counted from 0)"),
        ([2, 3], ["layers 2, 3 only"], "2 of 6 layers removed (layers 2, 3, counted from 0)"),
        (
            [0, 2, 3, 4],
            ["layer 0 only", "layers 2 to 4 only"],
            "4 of 6 layers removed (layers 0, 2 to 4, counted from 0)",
        ),
        ([1, 2, 3, 4, 5], ["layers 1 to 5 only"], "5 of 6 layers removed (layers 1 to 5, counted from 0)"),
        ([0, 1, 2, 3, 4, 5], ["in all 6 layers"], "6 of 6 layers removed"),
    ],
)
def test_removed_layers_are_named_in_all_forms(
    removed: list[int], where: list[str], text: str, renumbered: bool
) -> None:
    base, target = _without(removed, 6, renumbered=renumbered)
    shown = report(onnxjson.diff(base, target), "a", "b")
    assert [event.where for event in shown.events if event.kind == "eliminated"] == where
    assert [(layers.text, layers.name) for layers in shown.layers] == [(text, "layers")]
    assert _words(base, target)[0] == f"{text}: layers"
    assert not any(["removed" in words for words in _words(base, target)[1:]])
    assert f"- {text}: `layers`" in diff_markdown(shown)
    assert f"<p>{text}: <code>layers</code></p>" in "".join(diff_html(shown))
    lines = ["".join([span.text for span in line]).strip() for line in diff_lines(shown, 100)]
    assert {f"{text}: layers", *where} <= {*lines}
    data = msgspec.json.decode("".join(diff_json(shown)))["events"]
    assert [each["where"] for each in data if each["kind"] == "eliminated"] == where


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            lambda number: f"layers.{'9' * 5000}{number}",
            "1 of 6 layers removed (layer 3, counted from 0)",
        ),  # no number for a person
        (lambda number: f"layers.{number % 2}", "1 of 6 layers removed (layer 3, counted from 0)"),
        (lambda number: f"layers.{number + 10}", "1 of 6 layers removed (layer 13, counted from 10)"),
        (lambda number: f"class.{number}", "1 of 6 rounds removed (round 3, counted from 0)"),
    ],
)
def test_rounds_that_names_do_not_tell_apart_are_counted(name: Callable[[int], str], text: str) -> None:
    base, target = [_renamed(each, name) for each in _without([3], 6)]
    (layers,) = report(onnxjson.diff(base, target), "a", "b").layers
    assert layers.text == text


def _renamed(model: Model, name: Callable[[int], str]) -> Model:
    assert model.graph is not None
    nodes = [
        msgspec.structs.replace(node, name=re.sub(r"layers\.(\d)", lambda match: name(int(match[1])), node.name or ""))
        for node in model.graph.node
    ]
    return msgspec.structs.replace(model, graph=msgspec.structs.replace(model.graph, node=tuple(nodes)))


def test_layers_of_one_of_several_stages_are_said_to_be_of_it() -> None:
    base, target = [
        msgspec.structs.replace(
            side,
            graph=msgspec.structs.replace(
                side.graph,
                node=tuple(
                    [
                        msgspec.structs.replace(node, name=(node.name or "").replace("/layers.", "/stages.2/layers."))
                        for node in side.graph.node
                    ]
                ),
            ),
        )
        for side in _without([2], 6)
        if side.graph is not None
    ]
    (event,) = report(onnxjson.diff(base, target), "a", "b").events
    assert event.where == "layer 2 of stages.2 only"


def test_added_layers_are_told_as_such_and_other_changes_are_not_hidden() -> None:
    target, base = _without([1, 2], 6)
    assert _words(base, target)[0] == "6 layers instead of 4 (added: layers 1, 2, counted from 0): layers"
    base, target = _without([1, 2], 6)
    assert target.graph is not None
    softmax = next(place for place, node in enumerate(target.graph.node) if node.op_type == "Softmax")
    nodes = [*target.graph.node]
    nodes[softmax] = msgspec.structs.replace(nodes[softmax], op_type="Hardmax")
    changed = msgspec.structs.replace(target, graph=msgspec.structs.replace(target.graph, node=tuple(nodes)))
    words = _words(base, changed)
    assert words[0] == "2 of 6 layers removed (layers 1, 2, counted from 0): layers"
    assert any(["Softmax -> Hardmax" in each for each in words[1:]]), words


def _without_softmax(model: Model) -> Model:
    assert model.graph is not None
    nodes, outputs = [], dict[str, str]()
    for node in model.graph.node:
        if node.op_type == "Softmax":
            outputs[node.output[0]] = node.input[0]
        else:
            nodes.append(msgspec.structs.replace(node, input=tuple([outputs.get(name, name) for name in node.input])))
    return msgspec.structs.replace(model, graph=msgspec.structs.replace(model.graph, node=tuple(nodes)))


def test_layers_with_other_names_are_not_removed() -> None:
    base, target = _without([], 4)
    renamed = _renamed(_without_softmax(target), lambda number: f"layers.{number}" if number != 2 else "middle")
    assert not report(onnxjson.diff(base, renamed), "a", "b").layers


def test_layers_that_lost_a_part_are_not_removed() -> None:
    base, target = _without([], 3)
    shown = report(onnxjson.diff(base, _without_softmax(target)), "a", "b")
    assert shown.layers == ()
    assert [event.where for event in shown.events] == ["in all 3 layers"]
    base, target = _without([1], 4)
    words = _words(base, _without_softmax(target))
    assert words[0] == "3 layers instead of 4: layers"
    assert any([each.startswith("removed") and "Softmax" in each for each in words[1:]]), words


def test_cleanup_is_told_last() -> None:
    text = "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1, 2, 3, 4}> {nodes}"
    nodes = "{ a = Identity(x) b = Identity(a) c = MatMul(b, w) d = Neg(c) y = Relu(d) }"
    base = model_of(text.replace("{nodes}", nodes))
    target = model_of(text.replace("{nodes}", "{ c = MatMul(x, w) y = Relu(c) }"))
    words = [text_of(each) for each in change_words(report(onnxjson.diff(base, target), "a", "b"))]
    assert "Neg" in words[0]
    assert "Identity" in words[1]


def _words(base: Model, target: Model) -> list[str]:
    return [text_of(words) for words in change_words(report(onnxjson.diff(base, target), "a", "b"))]


def test_words_say_how_many_of_how_many() -> None:
    text = "g (float[2,2] x) => (float[2,2] y) { a = Selu<alpha = 0.1>(x) b = Neg(a) y = Selu<alpha = 0.1>(b) }"
    every, first = text.replace("0.1", "0.2"), text.replace("0.1", "0.2", 1)
    assert _words(model_of(text), model_of(every)) == ["all 2 Selu.alpha 0.1 -> 0.2"]
    assert _words(model_of(text), model_of(first)) == ["Selu.alpha 0.1 -> 0.2 in a"]


def test_a_long_chain_is_told_by_its_number_of_nodes() -> None:
    chain = "a = Exp(x) b = Sin(a) c = Cos(b) d = Tanh(c) e = Erf(d) f = Abs(e) h = Sqrt(f) y = Relu(h)"
    base = model_of(f"g (float[2,2] x) => (float[2,2] y) {{ {chain} }}")
    target = model_of("g (float[2,2] x) => (float[2,2] y) { y = Relu(x) }")
    assert any([words.startswith("removed 7 nodes") for words in _words(base, target)]), _words(base, target)


def test_an_operator_named_like_a_huge_number_has_words() -> None:
    text = "g (float[2,2] x) => (float[2,2] y) { a = Neg(x) y = Relu(a) }"
    base = model_of(text)
    assert base.graph is not None
    odd = msgspec.structs.replace(base.graph.node[0], op_type="9" * 5000 + " Conv")
    nodes = (odd, base.graph.node[1])
    target = msgspec.structs.replace(base, graph=msgspec.structs.replace(base.graph, node=nodes))
    assert _words(base, target)


def test_weights_that_were_zero_have_no_share() -> None:
    text = "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1, 0, 1, 1}> { y = MatMul(x, w) }"
    assert "inf" not in _words(model_of(text), model_of(text.replace("1, 0,", "1, 2,")))[0]

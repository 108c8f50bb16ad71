"""Repeats, the names of values, and graphs inside."""

import re
from collections.abc import Sequence

import pytest

from onnxjson.outline import expressions
from onnxjson.outline.expressions import Piece
from onnxjson.outline.lines import Outline
from tests.outline.written import lines, outline

K = "float[8,8] a = ., float[8,8] b = ., float[8,8] c = ., float[8,8] d = ., float[8] s = ."


def layers(count: int, start: str = "x", end: str = "out") -> str:
    """Nodes of layers that add what they compute."""
    text, value = "", start
    for number in range(count):
        result = end if number == count - 1 else f"r{number}"
        at = f"__layers_{number}"
        text += f"[{at}__norm] n{number} = LayerNormalization({value}, s) [{at}__up] u{number} = MatMul(n{number}, a) "
        text += f"[{at}__act] g{number} = Gelu(u{number}) [{at}__down] v{number} = MatMul(g{number}, b) "
        text += f"[{at}__add] {result} = Add({value}, v{number}) "
        value = result
    return text


def test_equal_layers_are_one_repeat_with_the_name_of_the_layers() -> None:
    found = outline(layers(3), K).lines[1:]
    assert [line.text for line in found] == ["repeat 3  layers.{i}  (h = x, out = h)"]
    assert found[0].repeat == 3
    assert [line.text for line in found[0].lines] == ["h = h + Gelu(LayerNorm(h) @ same a) @ same b"]
    assert [sorted(ref.position for ref in nodes) for nodes in found[0].rounds] == [
        [0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14],
    ]  # fmt: skip


def test_a_value_handed_on_keeps_its_name_and_the_rest_follows() -> None:
    found = lines("y = Relu(x) " + layers(4, "y", "z") + " out = Tanh(z)", K)
    assert found == [
        "h = Relu(x)",
        "repeat 4  layers.{i}",
        "  h = h + Gelu(LayerNorm(h) @ same a) @ same b",
        "out = Tanh(h)",
    ]


def test_values_of_single_rounds_that_later_lines_use_have_the_number_of_the_round() -> None:
    found = lines("y = Relu(x) " + layers(3, "y", "z") + " t = Mul(r0, r1) out = Mul(t, z)", K)
    assert found == [
        "h = Relu(x)",
        "repeat 3  layers.{i}",
        "  h = h + Gelu(LayerNorm(h) @ same a) @ same b",
        "out = h * (h[0] * h[1])",
    ]


def test_a_first_value_that_is_used_later_has_its_own_name() -> None:
    found = lines("y = Relu(x) " + layers(3, "y", "z") + " out = Mul(y, z)", K)
    assert found == [
        "h = Relu(x)",
        "repeat 3  layers.{i}  (y = h)",
        "  y = y + Gelu(LayerNorm(y) @ same a) @ same b",
        "out = h * y",
    ]


def test_numbers_that_differ_from_round_to_round_are_listed() -> None:
    text = "".join(
        [
            f"l{at} = LeakyRelu<alpha = {alpha}>({value}) k{at} = MatMul(l{at}, a) m{at} = Add(k{at}, {value}) "
            for at, (value, alpha) in enumerate([("y", 0.1), ("m0", 0.2), ("m1", 0.3)])
        ]
    )
    found = lines(f"y = Softmax(x) {text} out = Relu(m2)", K)
    assert found == [
        "h = Softmax(x)",
        "repeat 3",
        "  h = h + LeakyRelu(h, alpha=(0.1, 0.2, 0.3)) @ same a",
        "out = Relu(h)",
    ]


def test_a_round_that_differs_stays_apart() -> None:
    text = layers(5).replace("g1 = Gelu", "g1 = Relu")
    assert lines(text, K) == [
        "h = x + Gelu(LayerNorm(x) @ a) @ b",
        "h = h + Relu(LayerNorm(h) @ a) @ b",
        "repeat 3  layers.{i}  (out = h)",
        "  h = h + Gelu(LayerNorm(h) @ same a) @ same b",
    ]


def test_branches_of_one_line_are_arguments_and_longer_ones_are_lines() -> None:
    then, other = "t () => (float[2,6,8] p) { p = Relu(x) }", "e () => (float[2,6,8] q) { q = Tanh(x) }"
    short = f"out = If(c) <then_branch = {then}, else_branch = {other}>"
    assert lines(short, inputs="float[2,6,8] x, bool c") == ["out = If(c, then=Relu(x), else=Tanh(x))"]
    deeper = lines(short.replace("out =", "z =") + " out = Neg(z)", inputs="float[2,6,8] x, bool c")
    assert deeper == ["out = Neg(If(c, then=Relu(x), else=Tanh(x)))"]
    longer = short.replace("q = Tanh(x)", "r = Softmax(x) q = Concat<axis = 0>(r, r)")
    assert lines(longer, inputs="float[2,6,8] x, bool c") == [
        "out = If(c)", "  then_branch:", "    p = Relu(x)", "  else_branch:", "    h = Softmax(x)",
        "    q = Concat(h, h, axis=0)",
    ]  # fmt: skip


def test_a_name_never_stands_for_two_values() -> None:
    text = (
        "y = Relu(x) "
        + layers(2, "y", "z")
        + "t = Softmax(z) u = Mul(t, y) v = Add(u, t) w = Mul(v, z) out = Add(w, y)"
    )
    assert read_back(outline(text, K)) == []


def read_back(outline: Outline) -> list[str]:
    """The names that lines use before they are defined."""
    defined, unknown = {"x"}, []
    for _, line in outline.walk():
        target, _, expression = line.text.partition(" = ")
        if line.repeat > 1:
            defined.update(re.findall(r"(\w+) = ", line.text))
            continue
        if line.nodes:
            names = set(re.findall(r"\b[a-z]\d*\b(?!\()", expression)) - {"a", "b", "s", "float32"}
            unknown += [f"{name} in {line.text}" for name in names if name not in defined]
            defined.update(target.split(", "))
    return unknown


CONVOLUTIONS = "float[16,8,1,1] up = ., float[16,1,3,3] deep = ., float[8,16,1,1] down = ., float[8,8,3,3] k = ."


def test_rounds_of_convolutions_of_different_kinds_stay_rounds() -> None:
    block = "a{i} = Conv(x{i}, up) b{i} = Conv<group = 16, pads = [1, 1, 1, 1]>(a{i}, deep) x{j} = Conv(b{i}, down) "
    text = "".join([block.replace("{i}", str(i)).replace("{j}", str(i + 1)) for i in range(3)]).replace("x0", "x")
    found = lines(f"{text} out = Add(x3, x3)", CONVOLUTIONS, "float[1,8,9,9] x", "float[1,8,9,9] out")
    assert found[:2] == [
        "repeat 3  (h = x)",
        "  h = Conv(Conv(Conv(h, 1x1, out=16), 3x3, out=16, depthwise), 1x1, out=8)",
    ]


def test_short_chains_of_convolutions_have_one_line() -> None:
    found = lines("a = Conv(x, k) out = Conv(a, up)", CONVOLUTIONS, "float[1,8,9,9] x", "float[1,16,7,7] out")
    assert found == ["out = Conv(Conv(x, 3x3, out=8, pad=0), 1x1, out=16): float32[1,16,7,7]"]


def test_names_in_a_graph_inside_differ_from_those_around_it() -> None:
    text = """
    a = Relu(x) b = Tanh(x) out = If (c) <
        then_branch = t () => (float[2,6,8] t) { u = Sigmoid(a) v = Add(u, u) w = Mul(v, u) t = Sub(w, b) },
        else_branch = f () => (float[2,6,8] f) { f = Mul(a, b) }>
    """
    found = lines(text, inputs="float[2,6,8] x, bool c")
    names = [line.partition(" = ")[0].strip() for line in found if " = " in line]
    outer = {name for name, line in zip(names, found, strict=False) if "Relu(" in line or "Tanh(" in line}
    assert len(outer) == 2
    assert any(["Sigmoid(" in line for line in found])
    assert not outer & {line.partition(" = ")[0].strip() for line in found if line.startswith("   ")}


def branches(value: str, one: str, other: str) -> str:
    """A node that chooses between two graphs of two lines."""
    graphs = [f"{name} () => (float[2,6,8] {name}) {{ {text} }}" for name, text in (("t", one), ("f", other))]
    return f"{value} = If (c) <then_branch = {graphs[0]}, else_branch = {graphs[1]}>"


def test_graphs_that_are_equal_but_for_numbers_and_weights_are_one() -> None:
    one, other = "u = MatMul(x, a) t = Add(u, u)", "w = MatMul(x, b) f = Add(w, w)"
    found = outline(branches("out", one, other), K, inputs="float[2,6,8] x, bool c")
    assert found.texts()[1:] == [
        "out = If(c): float32[2,6,8]",
        "  then_branch, else_branch:",
        "    h = x @ (a, b)",
        "    t = h + h",
    ]
    graphs = found.lines[1].lines
    assert [len(line.nodes) for line in (found.lines[1], *graphs, *graphs[0].lines)] == [5, 4, 2, 2]


def test_an_equal_graph_of_another_line_leads_to_the_first_one() -> None:
    inner = ["u = MatMul({0}, {1}) v = Softmax(u) w = Sub(u, v) r = Exp(w) s = Mul(r, w) {2} = Mul(s, r)"] * 2
    inner[1] = inner[1].replace("Softmax(u)", "Relu(u)").replace("Sub(u, v)", "Sub(v, u)")
    one = branches("p", *[each.format("y", "a", name) for each, name in zip(inner, "tf", strict=True)])
    two = branches("q", *[each.format("z", "b", name) for each, name in zip(inner, "tf", strict=True)])
    found = outline(
        f"y = Relu(x) {one} z = Tanh(p) {two} k = Mul(p, q) out = Mul(k, q)", K, inputs="float[2,6,8] x, bool c"
    )
    ends = [line.strip() for line in found.texts() if "as in" in line]
    assert ends == ["then_branch as in h = If(...), with y for h", "else_branch as in h = If(...), with y for h"]
    nodes = [ref.address for line in found.lines for ref in line.nodes]
    assert len(nodes) == len({*nodes}) == 30


def test_graphs_that_consume_their_values_in_another_order_are_two() -> None:
    one, other = "u = Relu(x) v = Tanh(u) t = Sub(u, v)", "u = Relu(x) v = Tanh(u) f = Sub(v, u)"
    found = lines(branches("out", one, other), inputs="float[2,6,8] x, bool c")
    assert [line for line in found if line.endswith(":")] == ["  then_branch:", "  else_branch:"]


def test_equal_graphs_list_the_values_around_them() -> None:
    text = "y = Relu(x) z = Tanh(x) " + branches("p", "u = Exp(y) t = Add(u, u)", "w = Exp(z) f = Add(w, w)")
    found = lines(f"{text} q = Add(p, y) out = Add(q, z)", inputs="float[2,6,8] x, bool c")
    assert {"y = Relu(x)", "h = Tanh(x)", "    z = Exp((y, h))"} <= set(found)


def test_rounds_with_other_graphs_are_no_repeat() -> None:
    def rounds(second: str) -> list[str]:
        text = ""
        for number, name in enumerate(("Exp", second, "Exp", second)):
            start, end = f"y{number}" if number else "x", "out" if number == 3 else f"y{number + 1}"
            inner = f"u = {name}({start}) v = Softmax(u)"
            text += branches(f"i{number}", f"{inner} t = Mul(u, v)", f"{inner} f = Sub(u, v)")
            text += f" n{number} = Neg(i{number}) {end} = Softmax(n{number}) "
        return lines(text, inputs="float[2,6,8] x, bool c")

    assert rounds("Exp")[0].startswith("repeat 4")
    assert rounds("Tanh")[0].startswith("repeat 2")
    kinds = [line.partition(" = ")[2].partition("(")[0] for line in rounds("Tanh") if "Exp(" in line or "Tanh(" in line]
    assert kinds == ["Exp", "Exp", "Tanh", "Tanh"]


def test_a_value_that_a_graph_consumes_keeps_its_name_until_there() -> None:
    graph = branches("p", "u = Exp(y) t = Mul(u, u)", "w = Log(y) f = Mul(w, w)")
    text = f"y = Relu(x) a = Exp(y) b = Add(a, a) d = Softmax(b) e = Mul(d, d) {graph} out = Add(p, e)"
    assert read_back(outline(text.replace("(c)", "(x)"), inputs="float[2,6,8] x")) == []


def test_repeats_that_share_a_line_do_not_overlap() -> None:
    calls = ["Max", "Min", "Max", "Min", "Max", "Mean", "Max", "Mean", "Max"]
    values = ["x", *[f"v{number}" for number in range(1, len(calls))], "out"]
    nodes = [f"{values[at + 1]} = {call}({values[at]}, {values[at]})" for at, call in enumerate(calls)]
    found = outline(" ".join(nodes))
    assert [line.repeat for line in found.lines[1:]] == [2, 2, 1]
    assert [len(line.nodes) for line in found.lines[1:]] == [4, 4, 1]


def test_long_lists_of_what_differs_are_shortened() -> None:
    block = "x{j} = Reshape(x{i}, s{i}) y{j} = Relu(x{j}) z{j} = Tanh(y{j}) w{j} = Add(x{j}, z{j}) "
    text = "".join(
        [block.replace("{i}", str(i)).replace("{j}", str(i + 1)).replace(f"x{i},", f"w{i},") for i in range(4)]
    )
    sizes = ", ".join([f"int64[4] s{i} = {{1, 1000, {2**i}, {96000 // (1000 * 2**i) or 1}}}" for i in range(4)])
    found = lines(f"w0 = Relu(x) {text} out = Relu(w4)", sizes, "float[2,6,8] x")
    assert any(["([1,1000,2,48], [1,1000,4,24], ...)" in line for line in found]), found


def test_rounds_of_several_layers_are_not_called_after_one_of_them() -> None:
    text = layers(6)
    for number in (1, 3, 5):
        text = text.replace(f"g{number} = Gelu", f"g{number} = Relu")
    found = outline(text, K).lines[1:]
    assert [(line.repeat, line.name) for line in found] == [(3, "")]


def test_constants_are_called_after_the_weight_that_they_are_computed_from_and_not_after_a_module() -> None:
    weights = "float[4,2,6,8] positions = ., int64 first = {1}, float[8,8] w_1 = ."
    text = "[__model__Gather] p = Gather(positions, first) [__model__Add] a = Add(x, p) "
    text += "[__model__fc__MatMul] out = MatMul(a, w_1)"
    assert lines(text, weights) == ["out = (x + positions) @ fc"]


@pytest.mark.parametrize("branch", ["u{i} = Elu<alpha = {i}.5>(x)", "t{i} = Elu<alpha = {i}.5>(x) u{i} = Exp(t{i})"])
def test_a_node_with_many_inputs_is_put_together_in_time_linear_in_them(
    branch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[int] = []

    def counting(parts: Sequence[Piece]) -> tuple[Piece, ...]:
        pieces.append(len(parts))
        return joined_pieces(parts)

    joined_pieces = expressions._joined
    monkeypatch.setattr("onnxjson.outline.expressions._joined", counting)
    totals: list[int] = []
    for count in (100, 200):
        pieces.clear()
        text = " ".join([branch.replace("{i}", str(number)) for number in range(count)])
        joined_inputs = ", ".join([f"u{number}" for number in range(count)])
        folded = lines(f"{text} out = Sum({joined_inputs})")
        assert len(folded) == 3
        totals.append(sum(pieces))
    assert totals[1] <= 2.1 * totals[0]


def test_sizes_of_weights_that_differ_from_round_to_round_are_listed() -> None:
    text, weights = "", []
    for at, (start, end, size) in enumerate([("x", "a", 4), ("a", "b", 4), ("b", "out", 2)]):
        text += f"m{at} = MatMul({start}, u{at}) r{at} = Relu(m{at}) p{at} = MatMul(r{at}, d{at}) "
        text += f"{end} = Add({start}, p{at}) "
        weights += [f"float[8,{size}] u{at} = .", f"float[{size},8] d{at} = ."]
    found = lines(text, ", ".join(weights))
    assert found[1] == "  h = h + Relu(h @ W([8,4], [8,4], [8,2])) @ W([4,8], [4,8], [2,8])"


def test_values_of_the_rounds_of_a_repeat_in_a_repeat_are_told_apart() -> None:
    text, weights = "", list[str]()
    for at, (start, end) in enumerate([("x", "a"), ("a", "b"), ("b", "out")]):
        text += f"m{at} = MatMul({start}, w{at}) "
        value = f"m{at}"
        for inner in range(3):
            weights.append(f"int64[1] k{at}{inner} = {{{3 * at + inner}}}")
            text += f"v{at}{inner}, i{at}{inner} = TopK(ids, k{at}{inner}) "
            text += f"g{at}{inner} = GatherElements({value}, i{at}{inner}) "
            text += f"r{at}{inner} = GatherElements(g{at}{inner}, i{at}{inner}) "
            value = f"r{at}{inner}"
        text += f"{end} = Add({start}, {value}) "
        weights.append(f"float[8,8] w{at} = .")
    found = lines(text, ", ".join(weights), "float[2,6,8] x, float[2,6,8] ids")
    assert found[1:] == [
        "  repeat 3",
        "    y = TopK(ids, (2, 1, 0, 5, ...))",
        "  z = GatherElements(GatherElements(h @ W[8,8], y), y)",
        "  z = GatherElements(GatherElements(GatherElements(z, y[1]), y[1]), y[0])",
        "  h = h + GatherElements(z, y[0])",
    ]


def test_repeats_in_rounds_begin_with_values_of_their_round() -> None:
    text, value = "", "x"
    for stage in range(2):
        text += f"s{stage} = Softmax({value}) "
        value = f"s{stage}"
        for at in (f"{stage}{number}" for number in range(3)):
            name = f"[__stages_{stage}__layers_{at[1]}__up]"
            text += f"{name} u{at} = MatMul({value}, a) {name} g{at} = Gelu(u{at}) {name} r{at} = Add(g{at}, {value}) "
            value = f"r{at}"
    assert lines(f"{text} out = Tanh({value})", K) == [
        "repeat 2  stages.{i}  (h = x)",
        "  y = Softmax(h)",
        "  repeat 3  layers.{i}  (h = y)",
        "    h = h + Gelu(h @ same a)",
        "out = Tanh(h)",
    ]


def test_a_value_that_all_rounds_consume_keeps_its_name() -> None:
    text = "y = Relu(x) "
    for at in range(3):
        text += f"a{at} = MatMul(y, a) b{at} = Softmax(a{at}) c{at} = Sub(b{at}, y) d{at} = Sub(c{at}, c{at}) "
    found = lines(f"{text} m = Max(d0, d1, d2) n = Min(d0, d1, d2) out = Sub(m, n)", K)
    assert found[:4] == ["h = Relu(x)", "repeat 3", "  y = Softmax(h @ same a) - h", "  y = y - y"]


def test_repeats_that_hand_on_other_numbers_of_values_are_not_alike() -> None:
    text, value = "", "x"
    for stage in range(2):
        text += f"s{stage} = Softmax({value}) "
        value = f"s{stage}"
        for at in (f"{stage}{number}" for number in range(3)):
            text += f"u{at} = MatMul({value}, a) g{at} = Gelu(u{at}) r{at} = Add(g{at}, {value}) "
            value = f"r{at}" if stage == 0 else value
    found = lines(f"{text} m = Max(r10, r11, r12) n = Min(r10, r11, r12) out = Sub(m, n)", K)
    assert [line for line in found if line.startswith("repeat")] == ["repeat 3", "repeat 3"]


def test_a_graph_inside_a_constant_that_all_rounds_use_is_not_shown() -> None:
    choice = "g1 () => (float[8] w1) { w1 = Identity(w) }, else_branch = g2 () => (float[8] w2) { w2 = Neg(w) }"
    rounds = [
        f"m{n} = Mul({one}, i) s{n} = Softmax(m{n}) {other} = Add({one}, s{n})"
        for n, one, other in ((1, "x", "y"), (2, "y", "z"), (3, "z", "out"))
    ]
    found = lines(f"i = If (c) <then_branch = {choice}> {' '.join(rounds)}", "bool c = {1}, float[8] w = .")
    assert found == ["repeat 3  (h = x, out = h)", "  h = h + Softmax(h * same constant)"]


def test_a_condition_that_all_rounds_use_comes_before_them() -> None:
    rounds = [
        f"u{n} = LayerNormalization({one}, w) m{n} = MatMul(u{n}, a) t{n} = Tanh(m{n}) p{n} = Where(no, u{n}, m{n}) "
        f"q{n} = Softmax(p{n}) s{n} = Add(t{n}, q{n}) {other} = Add({one}, s{n})"
        for n, one, other in ((1, "e", "y"), (2, "y", "z"), (3, "z", "out"))
    ]
    text = f"e = LayerNormalization(x, w) no = Not(b) {' '.join(rounds)}"
    found = lines(text, f"{K}, float[8] w = .", "float[2,6,8] x, bool[2,6,8] b")
    assert found[:3] == ["h = LayerNorm(x)", "y = Not(b)", "repeat 3  (out = h)"]


def test_the_value_that_all_rounds_use_comes_before_them() -> None:
    rounds = [
        f"r{n} = LayerNormalization({one}, w) u{n} = Tanh(r{n}) m{n} = Mul(r{n}, e) p{n} = Softmax(m{n}) "
        f"s{n} = Add(u{n}, p{n}) {other} = Add({one}, s{n})"
        for n, one, other in ((1, "begin", "y"), (2, "y", "z"), (3, "z", "out"))
    ]
    text = f"l = MatMul(x, a) e = Relu(l) begin = MatMul(x, b) {' '.join(rounds)}"
    found = lines(text, f"{K}, float[8] w = .")
    assert found == [
        "h = Relu(x @ a)", "y = x @ b", "repeat 3  (out = y)", "  z = LayerNorm(y)",
        "  y = y + (Tanh(z) + Softmax(z * h))",
    ]  # fmt: skip


def test_weights_of_other_names_are_listed() -> None:
    rounds = "m1 = MatMul(x, a) s1 = Softmax(m1) y = Add(x, s1) m2 = MatMul(y, b) s2 = Softmax(m2) z = Add(y, s2) "
    rounds += "m3 = MatMul(z, a) s3 = Softmax(m3) out = Add(z, s3)"
    assert lines(rounds, K) == ["repeat 3  (h = x, out = h)", "  h = h + Softmax(h @ (a, b, a))"]

"""Graphs of many equal rounds: what is outlined from a few of them is what the whole graph says."""

import random
from itertools import pairwise

import pytest

from onnxjson.model.document import Model
from onnxjson.model.index import index_of
from onnxjson.outline import shortening
from onnxjson.outline.lines import Outline, outline_of
from tests.outline.test_repeats import K, layers
from tests.outline.written import model

WEIGHTS = K + ", float[8] z = ., float zero = {0}, float half = {0.5}"
ROUNDS = 24
SEEDS = 40


def shown(outline: Outline) -> list[object]:
    return [
        (level, line.text, line.form, line.name, line.repeat, line.blocks, line.nodes, line.rounds)
        for level, line in outline.walk()
    ]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> "Both":
    return Both(monkeypatch)


class Both:
    """Outlines a model shortened and as it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._set = monkeypatch.setattr

    def __call__(self, written: Model) -> tuple[Outline, bool]:
        """Return the outline, and whether only some rounds were outlined."""
        self._set(shortening, "FROM", 1 << 40)
        whole = outline_of(written)
        self._set(shortening, "FROM", 20)
        short = shortening.shortened(index_of(written))
        outline = outline_of(written)
        nodes = [(line.text, [ref.address for ref in line.nodes]) for _, line in whole.walk()]
        assert [(line.text, [ref.address for ref in line.nodes]) for _, line in outline.walk()] == nodes
        assert [str(each) for each in shown(outline)] == [str(each) for each in shown(whole)]
        return outline, short is not None


def test_layers_are_outlined_from_a_few_of_them(both: Both) -> None:
    text = "y = Relu(x) " + layers(ROUNDS, "y", "e") + " out = Tanh(e)"
    outline, is_shortened = both(model(text, K))
    assert is_shortened
    assert [line.text for line in outline.lines[1:]] == [
        "h = Relu(x)",
        f"repeat {ROUNDS}  layers.{{i}}",
        "out = Tanh(h): float32[2,6,8]",
    ]
    assert len(outline.lines[2].rounds) == ROUNDS


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_rounds_say_the_same_as_the_whole_graph(seed: int, both: Both) -> None:
    both(model(_nodes(random.Random(seed)), WEIGHTS))


def test_most_random_rounds_are_shortened(both: Both) -> None:
    assert sum([both(model(_nodes(random.Random(seed)), WEIGHTS))[1] for seed in range(30)]) > 10


def _rounds(step: str, prefix: str = "h", count: int = ROUNDS) -> str:
    """Rounds that compute {1} from {0}; {n} and {m} stand for their numbers."""
    names = [f"{prefix}{number}" for number in range(count + 1)]
    return " ".join([step.format(*pair, n=pair[0], m=pair[1]) for pair in pairwise(names)]) + " "


def _attention(scores: str) -> str:
    return _rounds(
        f"t{{n}} = Transpose<perm = [0, 2, 1]>({{0}}) q{{n}} = MatMul({{0}}, t{{n}}) {scores} "
        "p{n} = Softmax(s{n}) v{n} = MatMul(p{n}, {0}) {1} = Add({0}, v{n})"
    )  # fmt: skip


def _equal(prefix: str, hidden: int = 0) -> str:
    same = " ".join([f"i{at + 1}{{n}} = Identity(i{at}{{n}})" for at in range(hidden)])
    step = f"i0{{n}} = Tanh({{0}}) {same} g{{n}} = Gelu(i{hidden}{{n}}) {{1}} = Add(i{hidden}{{n}}, g{{n}})"
    return _rounds(step, prefix)


MASKS = [", ".join(["1", *["-10000" if number == 12 else "0.5"] * 35]) for number in range(ROUNDS)]
LAST = f"h{ROUNDS}"
NUMBERS = ", float ch0 = {0.5}, float one = {1}"
TRAPS = {
    "uses in all rounds": (
        "m = Tanh(x) n = Sigmoid(x) h0 = Relu(x) "
        + _rounds("a{n} = Mul({0}, m) b{n} = Relu(a{n}) {1} = Add({0}, b{n})")
        + f"k0 = Relu({LAST}) " + _rounds("{1} = Sub({0}, n)", "k", 10) + "e = Div(n, m) out = Sub(e, k10)",
        "",
    ),
    "ranks that follow from the round before": (
        "h0 = Max(x, x) "
        + _rounds("n{n} = LayerNormalization<axis = 2>({0}, s) m{n} = MatMul(n{n}, a) {1} = Max({0}, m{n})")
        + f"out = Tanh({LAST})",
        "",
    ),
    "numbers of each round from those before": (
        "h0 = Relu(x) " + _attention("c{m} = Mul(c{n}, half) s{n} = Mul(q{n}, c{m})") + f"out = Tanh({LAST})", NUMBERS,
    ),
    "numbers that are known in the first rounds": (
        "h0 = Relu(x) " + _attention("c{m} = Mul(c{n}, one) s{n} = Mul(q{n}, c{m})") + f"out = Tanh({LAST})", NUMBERS,
    ),
    "one mask that hides steps": (
        "h0 = Relu(x) " + _attention("s{n} = Add(q{n}, w{n})") + f"out = Tanh({LAST})",
        "".join([f", float[6,6] wh{number} = {{{mask}}}" for number, mask in enumerate(MASKS)]),
    ),
    "one weight with another name": (
        "h0 = Relu(x) "
        + _rounds("m{n} = MatMul({0}, up_at{n}) r{n} = Relu(m{n}) {1} = Add({0}, r{n})").replace("up_ath12", "down_at")
        + f"out = Tanh({LAST})",
        ", float[8,8] down_at = ." + "".join([f", float[8,8] up_ath{number} = ." for number in range(ROUNDS)]),
    ),
    "as many rounds elsewhere": (
        "h0 = Relu(x) " + _equal("h") + f"k0 = Softmax({LAST}) "
        + _equal("k", hidden=14) + f"l0 = Softmax(k{ROUNDS}) " + _equal("l") + f"out = Softmax(l{ROUNDS})",
        "",
    ),
    "invented sizes of constants": (
        "h0 = Relu(x) "
        + _rounds("c{n} = Transpose(w{n}) m{n} = MatMul({0}, c{n}) r{n} = Relu(m{n}) {1} = Add({0}, r{n})")
        + f"out = Tanh({LAST})",
        "".join([f", float[8,8] wh{number} = ., float[8,unk__{number}] ch{number}" for number in range(ROUNDS)]),
    ),
    "invented sizes that are the same in one round": (
        "h0 = Relu(x) " + _attention("s{n} = Reshape(q{n}, z)") + f"out = Tanh({LAST})",
        ", int64[3] z = {0, -1, 6}" + "".join(
            [f", float[2,unk__{n},6] qh{n}, float[2,unk__{n if n == 12 else n + 100},6] sh{n}" for n in range(ROUNDS)]
        ),
    ),
}  # fmt: skip
"""Nodes and weights of graphs whose rounds are not what they seem, or whose number matters."""


@pytest.mark.parametrize("name", TRAPS)
def test_what_differs_in_some_rounds_is_told(name: str, both: Both) -> None:
    nodes, weights = TRAPS[name]
    both(model(nodes, WEIGHTS + weights))


def _nodes(rng: random.Random) -> str:
    """Rounds of random nodes, in some models with one that differs, or a value that is used far away."""
    size = rng.randint(2, 9)
    steps = [(rng.choice(OPERATORS), rng.random(), rng.random(), rng.random()) for _ in range(size)]
    odd = rng.choice([None, None, (rng.randrange(ROUNDS), rng.randrange(size), rng.choice(OPERATORS))])
    far = rng.choice([None, None, rng.randrange(ROUNDS * size)])
    values = ["x", "o0", "o1"]
    text = "o0 = Relu(x) o1 = Sigmoid(o0) "
    for number in range(ROUNDS):
        for place, (operator, one, two, three) in enumerate(steps):
            if odd is not None and odd[:2] == (number, place):
                operator = odd[2]
            operands = [_value(values, each, place, size) for each in (one, two)]
            weight = "abcdsz"[int(three * 6)] if three < 0.9 else f"{rng.choice('ab')}"
            text += f"[__l_{number}__n{place}] v{len(values)} = {operator.format(*operands, weight)} "
            values.append(f"v{len(values)}")
    end = values[-1] if far is None else f"k out = Add(k, {values[3 + far]})"
    return text + (f"out = Tanh({end})" if far is None else f"k = Tanh({values[-1]}) out = Add(k, {values[3 + far]})")


OPERATORS = [
    "Relu({0})", "Tanh({0})", "Add({0}, {1})", "Mul({0}, {1})", "MatMul({0}, a)", "MatMul({0}, b)", "Add({0}, z)",
    "LayerNormalization({0}, s)", "Mul({0}, half)", "Add({0}, zero)", "Identity({0})", "LeakyRelu<alpha = 0.3>({0})",
    "Sigmoid(o1)", "Softmax({0})",
]  # fmt: skip


def _value(values: list[str], chance: float, place: int, size: int) -> str:
    """A value of this round, of the one before or of two before, or one from before all rounds."""
    if chance < 0.6 or len(values) < 3 + size:
        return values[-1 - int(chance * min(place, 3))]
    if chance < 0.8:
        return values[-size]
    return values[-min(len(values), 2 * size - 1)] if chance < 0.85 else "o1"

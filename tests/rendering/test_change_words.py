"""Changes of one kind in one plain sentence, with what it does not explain beside it."""

import onnxjson
from onnxjson.model.document import Model
from onnxjson.rendering.change_words import change_words, text_of
from onnxjson.rendering.diff_report import report
from tests.editing.graphs import model_of


def _words(base: Model, target: Model) -> list[str]:
    return [text_of(words) for words in change_words(report(onnxjson.diff(base, target), "a", "b"))]


def _weight(name: str, dtype: str, dims: str, count: int, first: float = 1) -> str:
    values = ", ".join([f"{first + number:g}" for number in range(count)])
    return f"{dtype}[{dims}] {name} = {{{values}}}"


def _products(*, first: float = 1, dtype: str = "float", more: str = "", end: str = "y = Relu(c)") -> Model:
    """Three products; the elements of their weights begin with `first`."""
    weights = ", ".join([_weight(f"w{number}", dtype, "4,4", 16, first + 100 * number) for number in range(3)])
    nodes = f"a = MatMul(x, w0) b = MatMul(a, w1) c = MatMul(b, w2) {end}"
    return model_of(f"g ({dtype}[4,4] x) => ({dtype}[4,4] y) <{weights}{more}> {{ {nodes} }}")


def _dynamic(number: int, source: str, result: str) -> str:
    return (
        f"q{number}, s{number}, z{number} = DynamicQuantizeLinear({source}) "
        f"i{number} = MatMulInteger(q{number}, w{number}_q, z{number}, w{number}_z) "
        f"f{number} = Cast<to = 1>(i{number}) m{number} = Mul(s{number}, w{number}_s) "
        f"{result} = Mul(f{number}, m{number}) "
    )


def test_dynamic_quantization_is_one_sentence_with_what_was_quantized() -> None:
    held = [_weight("w2", "float", "4,4", 16, 201)]
    for number in range(2):
        held += [
            _weight(f"w{number}_q", "int8", "4,4", 16),
            f"int8 w{number}_z = {{0}}",
            f"float w{number}_s = {{0.5}}",
        ]
    nodes = _dynamic(0, "x", "a") + _dynamic(1, "a", "b") + "c = MatMul(b, w2)"
    text = f"g (float[4,4] x) => (float[4,4] y) <{', '.join(held)}> {{ {nodes} {{end}} }}"
    sentence = "dynamically quantized to 8 bits: 2 of 3 MatMul, 34 of 52 parameters are now int8"
    words = _words(_products(), model_of(text.replace("{end}", "y = Relu(c)")))
    assert words == [sentence], words
    words = _words(_products(), model_of(text.replace("{end}", "y = Tanh(c)")))
    assert (words[0], len(words)) == (sentence, 2)
    assert "Relu -> Tanh" in words[1]
    words = _words(model_of(text.replace("{end}", "y = Relu(c)")), _products())
    assert not any(["bits" in each for each in words]), words


def test_quantization_to_four_bits_names_no_parameters_that_share_bytes() -> None:
    held = "uint8[4,1,8] p = {" + ", ".join(["7"] * 32) + "}, float[4] s = {1, 1, 1, 1}"
    node = "c = com.microsoft.MatMulNBits<N = 4, K = 4, bits = 4, block_size = 16>(b, p, s)"
    text = ", ".join([_weight(f"w{number}", "float", "4,4", 16, 1 + 100 * number) for number in range(2)])
    nodes = f"a = MatMul(x, w0) b = MatMul(a, w1) {node} y = Relu(c)"
    for end in ("Relu", "com.microsoft.QuickGelu"):  # whose name does not say that scales are fixed
        more = nodes.replace("Relu", end)
        target = model_of(f"g (float[4,4] x) => (float[4,4] y) <{text}, {held}> {{ {more} }}")
        assert _words(_products(), target)[0] == "quantized to 4 bits: 1 of 3 MatMul"


def test_quantization_with_fixed_scales_is_static() -> None:
    held = "float s = {0.5}, int8 z = {0}"
    nodes = "y0 = Relu(c) k = QuantizeLinear(y0, s, z) y = DequantizeLinear(k, s, z)"
    base = _products()
    words = _words(base, _products(more=f", {held}", end=nodes))
    assert words == ["statically quantized to 8 bits: 1 of 50 parameters are now int8"], words


def test_conversion_of_all_weights_or_some_is_one_sentence() -> None:
    words = _words(_products(), _products(dtype="float16"))
    assert words[0].startswith("breaking: ")
    assert "converted to float16: all 3 float32 weights" in words
    assert not any(["retyped" in each for each in words]), words
    weights = [
        _weight("w0", "float16", "4,4", 16),
        *[_weight(f"w{n}", "float", "4,4", 16, 1 + 100 * n) for n in (1, 2)],
    ]
    nodes = "v = Cast<to = 1>(w0) a = MatMul(x, v) b = MatMul(a, w1) c = MatMul(b, w2) y = Relu(c)"
    mixed = model_of(f"g (float[4,4] x) => (float[4,4] y) <{', '.join(weights)}> {{ {nodes} }}")
    words = _words(_products(), mixed)
    assert words[0] == "converted to float16: 1 of 3 float32 weights"
    assert any(["Cast" in each for each in words[1:]]), words


def test_changed_weights_are_named_and_are_all_only_if_nothing_else_changed() -> None:
    base = _products()
    sentence = "weights changed, those of all 3 MatMul: w0, w1 and 1 more; elements changed by up to 100 %"
    assert _words(base, _products(first=2)) == [f"only {sentence}"]
    words = _words(base, _products(first=2, end="y = Tanh(c)"))
    assert sentence in words
    assert len(words) == 2
    quiet = _words(base, _products(first=2, end="u = Identity(c) y = Relu(u)"))
    assert sentence in quiet
    assert not any([each.startswith("only") for each in quiet])


def test_changed_weights_are_told_apart_from_biases_and_from_what_is_not_finite() -> None:
    text = "g (float[4,4] x) => (float[4,4] y) <{}> {{ a = Gemm(x, w0, b0) b = Gemm(a, w1, b1) y = Relu(b) }}"
    held = [_weight(f"w{n}", "float", "4,4", 16) for n in range(2)] + [
        _weight(f"b{n}", "float", "4", 4) for n in range(2)
    ]
    other = [each.replace("b0 = {1", "b0 = {2") for each in held]
    odd = [each.replace("w0 = {1, 2", "w0 = {2, nan").replace("w1 = {1", "w1 = {2") for each in held]
    base, biases, values = [model_of(text.format(", ".join(each))) for each in (held, other, odd)]
    assert _words(base, biases) == [
        "only weights changed, those of 1 of 2 Gemm (input 2): b0; 1 of 4 (25 %) elements changed, by up to 100 %"
    ]
    sentence = "only weights changed, those of all 2 Gemm: w0, w1; elements changed by up to 100 %"
    assert _words(base, values) == [f"{sentence}, some became or were NaN or infinite"]


def test_one_weight_has_the_number_of_elements_that_changed_and_of_zeros() -> None:
    text = "g (int64[2] x) => (float[2,4] y) <float[4,4] w = {%s}> { y = Gather(w, x) }"
    rows = ["1, 2, 3, 4"] * 3
    for row, said in (
        ("1, 2, 3, 84", "1 of 16 (6.25 %) elements changed, by up to 20 times their value"),
        ("0, 0, 3, 4", "2 of 16 (12.5 %) elements changed, by up to 100 %; more zeros: 12.5 %"),
    ):
        base, target = [model_of(text % ", ".join([*rows, last])) for last in (rows[0], row)]
        assert _words(base, target) == [f"only weights changed, those of 1 Gather: w; {said}"]
        assert "more zeros" not in _words(target, base)[0]
    base, target = [model_of(text % ", ".join([*rows, last])) for last in ("0, 2, 3, 4", "1, 2, 3, 4")]
    assert _words(base, target) == ["only weights changed, those of 1 Gather: w; 1 of 16 (6.25 %) elements changed"]


def test_pruned_weights_are_said_to_have_more_zeros() -> None:
    text = "g (float[4,4] x) => (float[4,4] y) <%s> { a = MatMul(x, w0) y = MatMul(a, w1) }"
    base, target = [
        model_of(text % ", ".join([f"float[4,4] w{n} = {{{', '.join(row * 2)}}}" for n in range(2)]))
        for row in (["1", "2", "3", "4", "5", "6", "7", "8"], ["0", "0", "0", "0", "5", "6", "7", "8"])
    ]
    (words,) = _words(base, target)
    assert words.endswith("; elements changed by up to 100 %; all 2 have more zeros, up to 50 %"), words


def test_weights_of_several_operators_are_counted_among_all() -> None:
    text = "g (float[4,4] x) => (float[4,4] y) <{w}> {{ a = MatMul(x, w0) b = Add(a, w1) y = Mul(b, w2) }}"
    base, target = [
        model_of(text.format(w=", ".join([_weight(f"w{n}", "float", "4,4", 16, first) for n in range(3)])))
        for first in (1, 2)
    ]
    assert _words(base, target) == ["only weights changed, all 3: w1, w0 and 1 more; elements changed by up to 100 %"]


def test_constants_that_are_no_weights_are_not_called_weights() -> None:
    text = "g (float[4,4] x) => (float[?] y) <int64[1] s = {{{s}}}> {{ a = Reshape(x, s) y = Relu(a) }}"
    words = _words(model_of(text.format(s=16).replace("?", "n")), model_of(text.format(s=-1).replace("?", "n")))
    assert words == ["Reshape changed at input 1 in s"]


def test_operator_sets_are_raised_lowered_or_added_in_words() -> None:
    graph = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
    old, new, more = [
        model_of(f"<ir_version: 10, opset_import: [{imports}]> {graph}")
        for imports in ('"" : 17, "a" : 1', '"" : 20, "a" : 2', '"" : 20')
    ]
    assert _words(old, new) == ["opset of a raised from 1 to 2", "opset raised from 17 to 20"]
    assert _words(new, old)[1] == "opset lowered from 20 to 17"
    assert _words(more, new) == ["operator set added: a 2"]
    assert _words(new, more) == ["operator set removed: a 2"]

"""Amounts in narrow cells."""

import pytest
from msgspec.structs import replace

from onnxjson.checking.cost import cost_of
from onnxjson.rendering.cost_text import short_text
from tests.editing.graphs import model_of


@pytest.mark.parametrize(
    ("macs", "text", "bytes_text"),
    [
        (1_234_567, "1.235 M", ""),
        ("3655744*N", "3.656 M x N", "3.656 MB x N"),
        ("288*N*S*S + 41472*N*S", ">= 288 x N x S x S", ">= 288 x N x S x S bytes"),
        ("max(49152*N + 13536, 405696*N + 13408)", ">= 405.7 k x N", ">= 405.7 kB x N"),
        ("N", "N", "N bytes"),
        ("12*(a.0)*(b.1)", "12 x (a.0) x (b.1)", "12 x (a.0) x (b.1) bytes"),
    ],
)
def test_a_long_formula_is_shown_by_its_largest_part(macs: int | str, text: str, bytes_text: str) -> None:
    cost = cost_of(model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }"))
    assert short_text(replace(cost, macs=macs), "macs") == text
    if isinstance(macs, str):
        assert short_text(replace(cost, peak_activation_bytes=macs), "peak_activation_bytes") == bytes_text

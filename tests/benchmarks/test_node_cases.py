"""Node cases of onnx come out as they were recorded, wherever onnxruntime loads them."""

from collections import Counter
from collections.abc import Iterator

import pytest

from onnxjson.running.worker import Worker
from tests.benchmarks.node_cases import Verdict, cases, judged, table

KNOWN = (
    "test_attention_4d_diff_heads_mask4d_padded_kv",
    "test_attention_4d_with_past_and_present_qk_matmul_bias",
    "test_convinteger_with_padding",
    "test_dft",
    "test_maxunpool_export_with_output_shape",
    "test_reduce_max_empty_set_bool",
    "test_resize_downsample_scales",
    "test_stft",
    "test_training_dropout",
)
"""What onnxruntime computes differently: random numbers, other rounding, its own mistakes."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


def unexpected(verdicts: list[Verdict]) -> list[Verdict]:
    return [each for each in verdicts if each.outcome == "fail" and not each.name.startswith(KNOWN)]


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_all_cases_that_onnxruntime_loads_come_out_as_recorded(worker: Worker) -> None:
    verdicts = list(judged(cases(), worker))
    counts = Counter(each.outcome for each in verdicts)
    assert unexpected(verdicts) == []
    assert counts["pass"] > 1400
    passing = {dtype for each in verdicts if each.outcome == "pass" for dtype in each.dtypes}
    # onnxruntime has no kernels for the first, and has them for the second from 1.32 on.
    assert {dtype for each in verdicts for dtype in each.dtypes} - passing <= {"float4_e2m1fn", "float8_e8m0fnu"}
    assert next(iter(table(verdicts))).split() == ["dtype", "cases", "pass", "fail", "cannot", "load"]

"""Variants of models side by side: their size, how far they are off, how long they take.

::

    bench = Bench([Subject("m.onnx", model)], SEED, Options())
    with bench:
        print(bench.run().rows)
"""

from onnxjson.benchmarking.bench import Bench, Options, Subject
from onnxjson.benchmarking.rows import Report, Row
from onnxjson.benchmarking.variants import PRESETS, Variant, parse_variant

__all__ = ["PRESETS", "Bench", "Options", "Report", "Row", "Subject", "Variant", "parse_variant"]

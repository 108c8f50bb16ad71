"""``python -m tests.benchmarks.trace_cost``: what tracing a pass takes beyond the pass, on a model of 10,000 nodes.

The process of the passes is started before. "record" is what it takes to find out what a pass did, "store" its share of
writing the trace; both together are held to 0.1 s where not a byte changed, and to 0.6 s otherwise. "parts" is what the
optimizer itself takes to be run again until it is known what each of its parts did; it is not part of that, and "parts
recorded" is what recording takes for all of them.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxjson.codecs import serde
from onnxjson.model.document import Model
from onnxjson.optimizing.passes import PassResult, Pipeline, parse_step
from onnxjson.optimizing.trace_records import Recorder, Trace
from onnxjson.optimizing.trace_storing import write_trace
from tests.benchmarks.graphs import layers
from tests.benchmarks.report import table

NODES: Final = 10_000
EQUAL: Final = 0.1
"""Seconds that tracing a pass may take that changes no byte."""
CHANGED: Final = 0.6
"""Seconds that it may take otherwise."""

FILE: Final = """
def optimize(model):
    for position, node in enumerate(model.graph.node):
        if node.op_type == "LeakyRelu" and position % 100 == 2:
            node.attribute[0].f = 0.2
    return model
"""
"""A pass of a person's own that changes every hundredth node."""

PASSES: Final = ("onnxruntime{level=basic}", "onnxruntime{level=extended}")
"""Optimizers that take less than a minute for 10,000 nodes, their parts too."""


class Measured(NamedTuple):
    """One pass, seconds as medians."""

    name: str
    is_changed: bool
    taken: float
    """By the pass."""
    record: float
    store: float
    parts: float | None
    parts_recorded: float | None

    @property
    def cost(self) -> float:
        """What tracing the pass as a whole takes."""
        return self.record + self.store

    @property
    def limit(self) -> float:
        """What it may take."""
        return CHANGED if self.is_changed else EQUAL


def linear(count: int) -> ModelProto:
    """`count` nodes, MatMul and Add in turn, every pair of which onnxruntime fuses."""
    numbers = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for place in range(count // 2):
        names = f"W{place}", f"B{place}", f"m{place}", f"y{place}"
        weights.append(numpy_helper.from_array(numbers.standard_normal((8, 8), np.float32), names[0]))
        weights.append(numpy_helper.from_array(numbers.standard_normal(8, np.float32), names[1]))
        nodes.append(helper.make_node("MatMul", [last, names[0]], [names[2]], f"matmul{place}"))
        nodes.append(helper.make_node("Add", [names[2], names[1]], [names[3]], f"add{place}"))
        last = names[3]
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 8])] for name in ("x", last))
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def measure(model: Model, spelling: str, pipeline: Pipeline, repeat: int, *, with_parts: bool) -> Measured:
    """Runs a pass on a model and traces it several times."""
    (made,) = pipeline.run(model, [parse_step(spelling)])
    records, stores = [], []
    for _ in range(repeat):
        trace, seconds = _recorded(made, None)
        records.append(seconds)
        stores.append(_stored(trace))
    parts = parts_recorded = None
    if with_parts and made.is_changed:
        started = time.perf_counter()
        pipeline.parts(made)
        parts = time.perf_counter() - started
        _, seconds = _recorded(made, pipeline)
        parts_recorded = max(seconds - parts, 0.0)
    name = Path(spelling).name
    medians = statistics.median(records), statistics.median(stores)
    return Measured(name, made.is_changed, made.seconds, *medians, parts, parts_recorded)


def _recorded(made: PassResult, pipeline: Pipeline | None) -> tuple[Trace, float]:
    recorder = Recorder("model.onnx", made.before, pipeline)
    started = time.perf_counter()
    recorder.add(made)
    seconds = time.perf_counter() - started
    return recorder.trace(), seconds


def _stored(trace: Trace) -> float:
    """What writing a trace takes beyond writing one without passes, which it takes once."""
    with tempfile.TemporaryDirectory() as folder:
        times = []
        for name, each in (("none", _without_steps(trace)), ("all", trace)):
            started = time.perf_counter()
            write_trace(each, Path(folder) / name)
            times.append(time.perf_counter() - started)
    return max(times[1] - times[0], 0.0)


def _without_steps(trace: Trace) -> Trace:
    return Trace(
        source=trace.source,
        first=trace.first,
        before=trace.before,
        first_sha256=trace.first_sha256,
        last_sha256=trace.first_sha256,
    )


def results(nodes: int, repeat: int, *, with_parts: bool) -> list[Measured]:
    """Everything that is measured."""
    model = serde.from_proto(layers(nodes))
    found = []
    with tempfile.TemporaryDirectory() as folder, Pipeline() as pipeline:
        own = Path(folder) / "every_hundredth.py"
        own.write_text(FILE, encoding="utf-8")
        warm = list(pipeline.run(model, [parse_step(str(own))]))
        same = warm[-1].after.model
        for spelling in (str(own), *PASSES):
            found.append(measure(model, spelling, pipeline, repeat, with_parts=with_parts))
        again = measure(same, str(own), pipeline, repeat, with_parts=False)
        found.append(again._replace(name=f"{again.name}, again"))
        fused = measure(serde.from_proto(linear(nodes)), "onnxruntime", pipeline, repeat, with_parts=False)
        found.append(fused._replace(name=f"{fused.name}, every node fused"))
    return found


def main(arguments: Sequence[str]) -> int:
    """Prints a table, or JSON; 1 where tracing takes longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-parts", action="store_true", help="leave out what parts take")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    found = results(given.nodes, given.repeat, with_parts=not given.no_parts)
    if given.json:
        print(json.dumps([each._asdict() | {"cost": each.cost, "limit": each.limit} for each in found], indent=1))
    else:
        print(table(f"Tracing a pass on {given.nodes:,} nodes", _HEAD, [_row(each) for each in found]))
    return int(any(each.cost > each.limit for each in found))


_HEAD: Final = ("pass", "changed", "pass s", "record s", "store s", "limit s", "parts s", "parts recorded s")


def _row(each: Measured) -> list[str]:
    parts = ["" if value is None else f"{value:.2f}" for value in (each.parts, each.parts_recorded)]
    numbers = [f"{value:.3f}" for value in (each.taken, each.record, each.store)]
    return [each.name, "yes" if each.is_changed else "no", *numbers, f"{each.limit:.1f}", *parts]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

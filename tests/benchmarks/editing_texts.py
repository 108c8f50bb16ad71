"""Seconds that the language server needs for a text: ``python -m tests.benchmarks.editing_texts``."""

import time
from collections.abc import Callable
from pathlib import Path

from onnx import TensorProto, helper

import onnxjson
from onnxjson.serving.edited_text import EditedText


def chain(count: int) -> str:
    """The text of a chain of nodes."""
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", [f"v{n}", "x"], [f"v{n + 1}"], name=f"n{n}") for n in range(count)]
    inputs = [value(name, TensorProto.FLOAT, [2]) for name in ("x", "v0")]
    graph = helper.make_graph(nodes, "g", inputs, [value(f"v{count}", TensorProto.FLOAT, [2])])
    return onnxjson.dumps(onnxjson.from_proto(helper.make_model(graph)))


def seconds(function: Callable[[], object]) -> float:
    """The time of one call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def row(count: int) -> str:
    """The line of one size."""
    text = chain(count)
    offset = text.index(f'"v{count // 2}"') + 2
    begin = time.perf_counter()
    edited = EditedText(text, Path("m.onnx.json"))
    times = [time.perf_counter() - begin, seconds(edited.findings)]
    times += [seconds(lambda: edited.description(offset)) for _ in range(2)]
    times.append(seconds(lambda: edited.offers(offset)))
    return f"{count:>8,} {len(text) / 1e6:>6.1f} " + " ".join(f"{each:>8.3f}" for each in times)


def main() -> None:
    """Print a table."""
    print(f"{'nodes':>8} {'MB':>6} {'read':>8} {'check':>8} {'hover':>8} {'again':>8} {'complete':>8}")
    for count in (500, 10_000, 100_000):
        print(row(count))


if __name__ == "__main__":
    main()

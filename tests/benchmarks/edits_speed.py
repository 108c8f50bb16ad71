"""``python -m tests.benchmarks.edits_speed MODEL EDIT``: what an edit of a loaded model takes, as JSON."""

import json
import sys
import time

import onnxjson
from onnxjson import edits
from onnxjson.editing.spelling import parse_line
from tests.benchmarks.graphs import layers


def main(arguments: list[str]) -> None:
    """Print the seconds until the patch is there, by the clock and of the processor, and its number of changes."""
    path, line = arguments
    # What is imported on first use is not what is measured.
    edits.plan(onnxjson.from_proto(layers(400)), parse_line("set-attribute op:LeakyRelu alpha 0.3"))
    model = onnxjson.load(path)
    start, busy = time.perf_counter(), time.process_time()
    patch = edits.plan(model, parse_line(line))
    seconds, processor = time.perf_counter() - start, time.process_time() - busy
    assert patch.invert().apply(patch.apply(model)) == model
    print(json.dumps({"plan": seconds, "processor": processor, "differences": sum(1 for _ in patch.units())}))


if __name__ == "__main__":
    main(sys.argv[1:])

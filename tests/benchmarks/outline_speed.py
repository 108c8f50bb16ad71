"""``python -m tests.benchmarks.outline_speed KIND COUNT``: what the outline of so many nodes takes, as JSON."""

import json
import sys
import time

import onnxjson
from onnxjson.model.index import index_of
from tests.benchmarks.graphs import layers, transformer


def main(arguments: list[str]) -> None:
    """Print the seconds until the outline is there, by the clock and of the processor, and its numbers."""
    kind, count = arguments
    # What is imported on first use is not what is measured.
    transformer(40).outline()
    model = transformer(int(count)) if kind == "transformer" else onnxjson.from_proto(layers(int(count)))
    nodes = len(index_of(model).node_refs)
    start, busy = time.perf_counter(), time.process_time()
    outline = model.outline()
    seconds, processor = time.perf_counter() - start, time.process_time() - busy
    assert sum([len(line.nodes) for line in outline.lines]) == nodes
    print(json.dumps({"outline": seconds, "processor": processor, "nodes": nodes, "lines": len(outline)}))


if __name__ == "__main__":
    main(sys.argv[1:])

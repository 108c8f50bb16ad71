"""One diff in a process of its own: ``python -m tests.benchmarks.diff_timing make NODES EDITS FOLDER``.

That writes a transformer as base.onnx, an edited one as target.onnx, and truth.json. ``measure FOLDER`` reads both
models, compares them, and prints the processor seconds of that and the recall as JSON.
"""

import json
import sys
import time
from pathlib import Path

import onnxjson
from tests.diffing.edits import EDITS, random_edits
from tests.diffing.judging import Judge, pairs_of
from tests.diffing.mutations import GraphTruth, Mutation, mutated
from tests.diffing.stacks import stack


def make(nodes: int, edits: int, folder: Path) -> None:
    """Write two models and the truth about them."""
    mutation = mutated(stack("transformer", nodes, "distinct"), random_edits(edits, 1, tuple(EDITS)), 1)
    onnxjson.save(mutation.base, folder / "base.onnx")
    onnxjson.save(mutation.target, folder / "target.onnx")
    graphs = [
        [each.base, each.target, each.target_of, each.base_of, sorted(each.optional)]
        for each in mutation.graphs.values()
    ]
    (folder / "truth.json").write_text(json.dumps(graphs))


def measure(folder: Path) -> dict[str, float]:
    """Processor seconds of the diff, and how good the pairs are."""
    small = mutated(stack("mixed", 300), ["delete", "insert"])
    _ = onnxjson.diff(small.base, small.target).events  # what is imported on first use is not what is measured
    base, target = onnxjson.load(folder / "base.onnx"), onnxjson.load(folder / "target.onnx")
    started = time.process_time()
    difference = onnxjson.diff(base, target)
    _ = difference.events
    cpu = time.process_time() - started
    graphs = {}
    for before, after, target_of, base_of, optional in json.loads((folder / "truth.json").read_text()):
        pairs = frozenset((one, other) for one, other in optional)
        graphs[before] = GraphTruth(before, after, target_of, base_of, pairs)
    score = Judge.of_mutation(Mutation(base, target, graphs, ())).score(pairs_of(difference.alignment))
    return {"cpu": cpu, "recall": score.recall}


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        print(json.dumps(measure(Path(sys.argv[2]))))

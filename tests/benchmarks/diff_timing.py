"""One diff in a process of its own: ``python -m tests.benchmarks.diff_timing make|measure ...``.

``make KIND COUNT WEIGHTS EDITS FOLDER`` writes base.onnx, target.onnx and truth.json; KIND is a style of
`tests.diffing.stacks` or a name of `tests.diffing.adversarial`. ``measure FOLDER`` reads both models, compares them,
and prints what that took as JSON.
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any, Final

import onnxjson
from onnxjson.model.document import Model
from tests.diffing.adversarial import ADVERSARIAL
from tests.diffing.edits import EDITS, STRUCTURAL, random_edits
from tests.diffing.judging import Judge, pairs_of
from tests.diffing.mutations import GraphTruth, Mutation, mutated
from tests.diffing.stacks import STYLES, WEIGHTS, stack

SAME: Final = -1
"""For EDITS: the target has the bytes of the base; 0 would still rename and reorder."""

_BYTES_PER_UNIT: Final = 1 if sys.platform == "darwin" else 1024


def make(kind: str, count: int, weights: str, edits: int, folder: Path) -> None:
    """Write two models and the truth about them."""
    model = _model(kind, count, weights)
    if edits == SAME:
        mutation = mutated(model, rename=False, shuffle=False)
    else:
        names = STRUCTURAL if kind in ADVERSARIAL or weights == "stripped" else tuple(EDITS)
        mutation = mutated(model, random_edits(edits, 1, names), 1)
    onnxjson.save(mutation.base, folder / "base.onnx")
    onnxjson.save(mutation.target, folder / "target.onnx")
    graphs = [
        [each.base, each.target, each.target_of, each.base_of, sorted(each.optional)]
        for each in mutation.graphs.values()
    ]
    (folder / "truth.json").write_text(json.dumps(graphs))


def _model(kind: str, count: int, weights: str) -> Model:
    if kind in ADVERSARIAL:
        return ADVERSARIAL[kind][0](count)
    (style,) = [each for each in STYLES if each == kind]
    (kept,) = [each for each in WEIGHTS if each == weights]
    return stack(style, count, kept)


def measure(folder: Path) -> dict[str, Any]:
    """Seconds of the diff and of its patch, bytes of memory, and how good the pairs are."""
    small = mutated(stack("mixed", 300), ["delete", "insert"])
    warm = onnxjson.diff(small.base, small.target)
    _ = warm.events, warm.patch
    base, target = onnxjson.load(folder / "base.onnx"), onnxjson.load(folder / "target.onnx")
    loaded = _peak()
    started, worked = time.perf_counter(), time.process_time()
    found = onnxjson.diff(base, target)
    events = sum(len(event.members) for event in found.events)
    diffed, cpu = time.perf_counter(), time.process_time() - worked
    peak = _peak()
    patch = found.patch
    patched = time.perf_counter()
    graphs = {}
    for before, after, target_of, base_of, optional in json.loads((folder / "truth.json").read_text()):
        pairs = frozenset((one, other) for one, other in optional)
        graphs[before] = GraphTruth(before, after, target_of, base_of, pairs)
    score = Judge.of_mutation(Mutation(base, target, graphs, ())).score(pairs_of(found.alignment))
    return {
        "nodes": len(base.graph.node) if base.graph else 0,
        "diff": diffed - started,
        "cpu": cpu,
        "patch": patched - diffed,
        "loaded": loaded,
        "peak": peak,
        "members": events,
        "empty": not patch,
        "precision": score.precision,
        "recall": score.recall,
        "wrong": score.said - score.right,
        "missed": score.wanted - score.found,
        "degraded": found.alignment.degraded or "",
    }


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_PER_UNIT


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), Path(sys.argv[6]))
    else:
        print(json.dumps(measure(Path(sys.argv[2]))))

"""``python -m tests.benchmarks.diff_exporters``: pairs of nodes between both exports of PyTorch of the same network.

Both models run on the same random inputs. A pair whose results are always equal is right. A sample of all pairs is
written with the surroundings of each node, so that a person can judge the others.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import onnxjson
from onnxjson.diffing.details import attribute_value_text
from onnxjson.model.index import Scope
from tests.benchmarks.diff_splits import Values, random_inputs, values_of
from tests.benchmarks.report import table

SAMPLE: Final = 200
GOAL: Final = 0.98


def verdict(values: tuple[Values, Values], names: tuple[str, str]) -> str:
    """Return how the results of two nodes relate on the same inputs."""
    ways = []
    for one, other in zip(values[0].get(names[0], []), values[1].get(names[1], []), strict=True):
        mine, its = np.asarray(one), np.asarray(other)
        if mine.shape == its.shape and _are_close(mine, its):
            ways.append("equal")
        elif mine.size == its.size and _are_close(np.sort(mine, None), np.sort(its, None)):
            ways.append("equal elements")
        else:
            ways.append("other values")
    return max(ways, default="not run", key=["equal", "equal elements", "other values", "not run"].index)


def _are_close(one: Any, other: Any) -> bool:
    finite = np.abs(one[np.isfinite(one)]) if one.dtype.kind == "f" else np.zeros(0)
    return bool(np.allclose(one, other, rtol=1e-3, atol=1e-5 * float(finite.max(initial=0)), equal_nan=True))


def described(scope: Scope, position: int, values: Values) -> str:
    """Return a node with its operator, attributes, shapes and neighbours."""
    node = scope.graph.node[position]
    sources = []
    for name in node.input:
        producer = scope.producers.get(name)
        operator = scope.graph.node[producer[0]].op_type if producer else "input" if name in scope.inputs else "weight"
        sources.append(f"{operator}{_shape(values, name)}")
    consumers = [
        str(scope.graph.node[place].op_type) if place is not None else "output"
        for name in node.output
        for place, _ in scope.consumers.get(name, ())
    ]
    attributes = [f"{each.name}={attribute_value_text(each)}" for each in node.attribute]
    where = node.name or node.output[0]
    return (
        f"{node.op_type}<{', '.join(attributes)}>({', '.join(sources)}) = {_shape(values, node.output[0])}"
        f" -> {', '.join(consumers)}  {where}"
    )


def _shape(values: Values, name: str) -> str:
    found = values.get(name)
    return str(list(np.asarray(found[0]).shape)) if found else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.diff_exporters", description=__doc__)
    parser.add_argument("--models", type=Path, required=True, help="folder with NAME_ts.onnx and NAME_dynamo.onnx")
    parser.add_argument("--sample", type=Path, metavar="FILE", help="write a sample of pairs with their surroundings")
    options = parser.parse_args(arguments)
    rows, pairs = [], list[tuple[str, str]]()
    everything: Counter[str] = Counter()
    for path in sorted(options.models.glob("*_ts.onnx")):
        name = path.stem.removesuffix("_ts")
        paths = path, path.with_name(f"{name}_dynamo.onnx")
        runs = random_inputs(paths[0])
        values = values_of(paths[0], runs), values_of(paths[1], runs)
        graph = onnxjson.diff(*paths).alignment.graphs[0]
        nodes = graph.base.graph.node, graph.target.graph.node
        found: Counter[str] = Counter()
        for here, there in enumerate(graph.target_of):
            if there >= 0 and nodes[0][here].op_type != "Constant":
                said = verdict(values, (nodes[0][here].output[0], nodes[1][there].output[0]))
                found[said] += 1
                text = f"  {described(graph.base, here, values[0])}\n  {described(graph.target, there, values[1])}"
                pairs.append((said, f"{name}: {said}\n{text}"))
        everything += found
        counts = [sum(node.op_type != "Constant" for node in each) for each in nodes]
        rows.append([name, *map(str, (*counts, found.total(), *_counts(found)))])
    rows.append(["all", "", "", str(everything.total()), *map(str, _counts(everything))])
    head = ["network", "nodes", "of dynamo", "pairs", "equal results", "equal elements", "other values", "not run"]
    print(table("Pairs between the exports of TorchScript and dynamo", head, rows))
    chosen = random.Random(1).sample(pairs, min(SAMPLE, len(pairs)))
    print(f"\nof a sample of {len(chosen)} pairs: {dict(Counter(said for said, _ in chosen))} (goal: {GOAL} right)")
    if options.sample:
        options.sample.write_text("".join(f"{text}\n" for _, text in chosen))
    return 0


def _counts(found: Counter[str]) -> list[int]:
    return [found[each] for each in ("equal", "equal elements", "other values", "not run")]


if __name__ == "__main__":
    sys.exit(main())

"""``python -m tests.benchmarks.edits_speed``: what edits of a model of 100,000 nodes take once it is loaded."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

import onnxjson
from onnxjson import edits
from onnxjson.editing.catalogue import NAMES
from onnxjson.editing.declaration import Edit
from onnxjson.editing.script import Script
from onnxjson.editing.spelling import parse_line
from onnxjson.model.document import Model, Node, Tensor
from onnxjson.patching.patch import Patch
from tests.benchmarks.graphs import layers
from tests.benchmarks.report import table

NODES: Final = 100_000

SINGLE: Final = (
    "set-attribute op:LeakyRelu alpha 0.2",
    "set-attribute /layer500/LeakyRelu_2002 alpha 0.2",
    "set-attribute 're:/layer1./Conv.*' pads [1,1,1,1]",
    "remove-attribute op:Conv group",
    "add-node Relu --input /layer100/relu_401_output_0 --output between --insert",
    "add-node Relu --input x --output between --insert",
    "delete-node /layer100/Relu_401",
    "delete-node op:LeakyRelu",
    "replace-node op:LeakyRelu Relu",
    "rewire /layer500/Add_2003 1 x",
    "swap-inputs op:Add",
    f"set-tensor layer7.weight --value {[[[[1]]] * 4] * 4} --type float32[4,4,1,1]".replace("], [", "],["),
    "cast-tensor layer7.weight float16 --lossy",
    "rename tensor /layer100/relu_401_output_0 other",
    "rename tensor 're:/layer(\\d+)/(.*)' 'l\\1_\\2'",
    "rename node 're:/layer(\\d+)/(.*)' 'l\\1_\\2'",
    "name-nodes",
    "prefix model_",
    "add-output /layer100/relu_401_output_0",
    "set-dim N 4",
    "set-batch-size 4",
    "set-shape x 2,4,8,8",
    "prune",
    "strip",
    "deduplicate-initializers",
    "constants-to-initializers",
    "stamp-opset 18",
    "set-metadata key value",
    "extract --inputs x --outputs /layer100/relu_401_output_0",
)
"""One edit each, as it is spelled."""


class Measured(NamedTuple):
    """What one job took."""

    name: str
    plan: float
    """Seconds until the patch is there."""
    processor: float
    """The same, of the processor."""
    apply: float
    """Seconds to make it on the model."""
    differences: int
    refused: str = ""


def big(count: int) -> Model:
    """The model of `count` nodes."""
    return onnxjson.from_proto(layers(count))


def measure(model: Model, name: str, changes: Edit | Script) -> Measured:
    """Plans a change of a model and makes it; the outcome is compared with what the edit itself gives."""
    start, busy = time.perf_counter(), time.process_time()
    try:
        patch = edits.plan(model, changes)
    except onnxjson.OnnxJsonError as error:
        return Measured(name, time.perf_counter() - start, time.process_time() - busy, 0.0, 0, str(error))
    planned, processor = time.perf_counter(), time.process_time() - busy
    after = patch.apply(model)
    done = time.perf_counter()
    assert patch.invert().apply(after) == model
    return Measured(name, planned - start, processor, done - planned, _count(patch))


def _count(patch: Patch) -> int:
    return sum(1 for _ in patch.units())


def many_attributes(model: Model, count: int) -> Script:
    """A script of `count` edits of one node each."""
    assert model.graph is not None
    named = [node for node in model.graph.node if node.op_type == "LeakyRelu"]
    step = max(1, len(named) // count)
    found = [
        edits.SetAttribute(node=node.name or "", attribute="alpha", value=0.25 + position / (4 * count))
        for position, node in enumerate(named[::step][:count])
    ]
    return Script(tuple(found))


def many_structural(model: Model, count: int) -> Script:
    """A script of `count` edits that each rewire one node."""
    assert model.graph is not None
    named = [node for node in model.graph.node if node.op_type == "Add"]
    step = max(1, len(named) // count)
    return Script(tuple([edits.Rewire(node=node.name or "", input=1, tensor="x") for node in named[::step][:count]]))


def with_tensors(count: int) -> Model:
    """A model of `count` constants, every second of which stands twice."""
    numbers = np.random.default_rng(0)
    constants = [
        Tensor((8, 8), 1, raw_data=numbers.standard_normal(64).astype(np.float32).tobytes(), name=f"c{position}")
        for position in range(count // 2)
    ]
    constants += [replace(each, name=f"copy_{each.name}") for each in constants]
    nodes = tuple(
        [Node(("x" if not position else f"v{position - 1}", each.name or ""), (f"v{position}",), None, "Add")
         for position, each in enumerate(constants)]
    )  # fmt: skip
    model = big(4)
    assert model.graph is not None
    output = replace(model.graph.output[0], name=f"v{len(nodes) - 1}", type=None)
    return replace(model, graph=replace(model.graph, node=nodes, initializer=tuple(constants), output=(output,)))


def jobs(model: Model, count: int, only: tuple[str, ...]) -> Iterator[Callable[[], Measured]]:
    """Every job whose name begins with one of `only`."""
    steps, tensors = count // 100, count // 5
    for line in SINGLE:
        if line.startswith(only) and line.split()[0] in NAMES:
            yield lambda line=line: measure(model, line, parse_line(line))  # type: ignore[misc]
    scripts: dict[str, Callable[[], tuple[Model, Edit | Script]]] = {
        f"{steps:,} attribute edits in one script": lambda: (model, many_attributes(model, steps)),
        f"{steps:,} rewired nodes in one script": lambda: (model, many_structural(model, steps)),
        f"deduplicating {tensors:,} tensors": lambda: (with_tensors(tensors), edits.DeduplicateInitializers()),
    }
    for name, made in scripts.items():
        if name.startswith(only):
            base, changes = made()
            yield lambda name=name, base=base, changes=changes: measure(base, name, changes)  # type: ignore[misc]


def main(arguments: list[str]) -> int:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=NODES, help="nodes of the model")
    parser.add_argument("--model", help="file of the model, in place of a new one")
    parser.add_argument("--only", action="append", help="only jobs whose names begin so; repeatable")
    parser.add_argument("--json", action="store_true", help="JSON in place of a table")
    options = parser.parse_args(arguments)
    found = []
    # What is imported on first use is not what is measured.
    measure(big(400), "warm", edits.SetAttribute(node="op:Conv", attribute="group", value=2))
    model = onnxjson.load(options.model) if options.model else big(options.nodes)
    for job in jobs(model, options.nodes, tuple(options.only or ("",))):
        found.append(job())
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if options.json:
        print(json.dumps([each._asdict() for each in found], indent=1))
        return 0
    rows = [
        [
            each.name,
            f"{each.plan:.3f}",
            f"{each.processor:.3f}",
            f"{each.apply:.3f}",
            f"{each.differences:,}",
            each.refused[:60],
        ]
        for each in found
    ]
    head = ["edit", "plan (s)", "processor (s)", "apply (s)", "differences", "refused"]
    print(table(f"Edits of {options.nodes:,} nodes", head, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

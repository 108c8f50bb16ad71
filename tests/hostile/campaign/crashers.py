"""Models that crash native analyses: the worker answers each, and the process that asked goes on."""

import time
from collections.abc import Callable, Iterator
from random import Random

from onnx import ModelProto, TensorProto, defs, helper

from onnxjson.model.errors import OnnxJsonError
from onnxjson.running.worker import Worker
from onnxjson.running.worker_protocol import Limits
from tests.hostile.campaign.children import Outcome

WALL = 5.0

CULPRITS = (
    "LabelEncoder", "DictVectorizer", "EyeLike", "RegexFullMatch", "GatherND", "Split", "TreeEnsemble",
    "LayerNormalization", "ReduceMax", "ReduceL2", "Unsqueeze", "Scan", "DepthToSpace", "OneHot", "Loop", "If",
)  # fmt: skip
"""Operators that were found to crash native code; half of the nodes are these."""

NUMBERS = (0, 1, -1, 2, 3, 7, 100, 2**31, 2**62, -(2**63))


def crasher(seed: int) -> bytes:
    """A model of a few operators with wrong numbers of inputs, unknown values and any attributes."""
    rng = Random(seed)
    schemas = [each for each in defs.get_all_schemas() if rng.random() < 0.5 or each.name in CULPRITS]
    culprits = [each for each in schemas if each.name in CULPRITS]
    nodes, values = [], ["x", "y", "unknown", "", "w"]
    for number in range(rng.choice((1, 1, 2, 4))):
        schema = rng.choice(culprits if rng.random() < 0.5 else schemas)
        inputs = [rng.choice(values) for _ in range(rng.randrange(min(schema.max_input, 4) + 2))]
        outputs = [f"v{number}.{place}" for place in range(rng.randrange(3))]
        node = helper.make_node(schema.name, inputs, outputs)
        node.domain = schema.domain
        for name, attribute in schema.attributes.items():
            if rng.random() < 0.6:
                made = node.attribute.add(name=name, type=int(attribute.type.value))  # type: ignore[attr-defined]
                made.i, made.f = rng.choice(NUMBERS), rng.choice((0.0, -1.0, 1e38))
                made.ints.extend(rng.choice(NUMBERS) for _ in range(rng.randrange(4)))
                made.s = rng.choice((b"", b"\xff", b"a", b"(((((("))
                made.strings.extend([b"a"] * rng.randrange(3))
                if "GRAPH" in str(attribute.type):
                    made.g.name = "g"
                    made.g.output.add(name=rng.choice(values))
        nodes.append(node)
        values += outputs
    shape = rng.choice(([2, 3], [], [0], ["N"], [2**40], [1] * 70, None))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", rng.randrange(1, 24), shape)],
        [helper.make_tensor_value_info(values[-1], TensorProto.FLOAT, None)],
        [TensorProto(name="w", data_type=rng.choice((1, 7, 8)), dims=[rng.choice((0, 1, 3))], raw_data=bytes(8))],
    )
    opsets = [
        helper.make_opsetid("", rng.choice((1, 7, 13, 18, 21, 25))),
        helper.make_opsetid("ai.onnx.ml", rng.choice((1, 3, 5))),
    ]
    made_model: ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return made_model.SerializeToString()


def crashers(count: int, first: int = 0) -> Iterator[Outcome]:
    """Every native analysis of such models: an answer or an error in time, and a good model is analysed afterwards."""
    good = helper.make_model(
        helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], [])
    ).SerializeToString()
    with Worker(Limits(wall_seconds=WALL, processor_seconds=int(WALL))) as worker:
        for seed in range(first, first + count):
            data = crasher(seed)
            analyses: tuple[Callable[[], object], ...] = (
                lambda data=data: worker.check(data, full=True),  # type: ignore[misc]
                lambda data=data: worker.infer_types(data),  # type: ignore[misc]
                lambda data=data: worker.inline_functions(data),  # type: ignore[misc]
                lambda data=data: worker.convert_version(data, 22),  # type: ignore[misc]
            )  # fmt: skip
            begin, notes, problem = time.monotonic(), [], ""
            for analyse in analyses:
                one = time.monotonic()
                try:
                    analyse()
                except OnnxJsonError as error:
                    if "crashed" in str(error):
                        notes.append("crashed")
                except Exception as error:
                    problem = f"{type(error).__name__}: {error}"
                if time.monotonic() - one > WALL + 2:
                    problem = "it takes longer than its limit"
            if not seed % 20:
                worker.infer_types(good)
            yield Outcome(f"model {seed}{', ' * bool(notes)}{len(notes) or ''}", problem, time.monotonic() - begin)

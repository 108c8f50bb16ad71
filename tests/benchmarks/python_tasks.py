"""Twelve tasks in Python, each spelled with onnxjson, onnx-ir and onnx-graphsurgeon: ``python -m
tests.benchmarks.python_tasks`` runs all that are installed, and prints the number of lines of each.

Every spelling starts with the same variables: `base` and `target` are the paths of two models (as
``python -m onnxjson.example --unfused`` and without), and `model` is what the library makes of the base. Imports are
not counted. A check of the result follows each of them, on the model as protobuf.
"""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import numpy
import onnx

from onnxjson.example import write_example

LIBRARIES = ("onnxjson", "onnx_ir", "onnx_graphsurgeon")

IMPORTS = {
    "onnxjson": "import onnxjson\nfrom onnxjson import edits",
    "onnx_ir": "import difflib, numpy, onnxruntime, onnx_ir as ir\nfrom onnxscript.rewriter import pattern",
    "onnx_graphsurgeon": "import difflib, numpy, onnx, onnxruntime, onnx_graphsurgeon as gs",
}
TO_PROTO = {
    "onnxjson": "onnxjson.to_proto(model)",
    "onnx_ir": "ir.to_proto(model)",
    "onnx_graphsurgeon": "gs.export_onnx(model.cleanup().toposort())",
}

_VERIFY = """
    feeds = {"image": numpy.random.rand(1, 1, 8, 8).astype(numpy.float32)}
    results = [onnxruntime.InferenceSession(path).run(None, feeds) for path in (base, target)]
    equal = all(numpy.allclose(one, other, rtol=1e-4) for one, other in zip(*results))
"""


class Task(NamedTuple):
    """One task: its spellings, and what must hold afterwards."""

    name: str
    spellings: tuple[str, str, str]
    """In the order of `LIBRARIES`."""
    holds: Callable[[onnx.ModelProto, dict[str, Any]], bool]


def _operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def _alpha(model: onnx.ModelProto) -> float:
    return next(float(node.attribute[0].f) for node in model.graph.node if node.op_type == "LeakyRelu")


TASKS = (
    Task(
        "load",
        (
            "model = onnxjson.load(base)",
            "model = ir.load(base)",
            "model = gs.import_onnx(onnx.load(base))",
        ),
        lambda proto, _: len(_operators(proto)) == 7,
    ),
    Task(
        "list operators",
        (
            "found = [node.op_type for node in model.graph.node]",
            "found = [node.op_type for node in model.graph]",
            "found = [node.op for node in model.nodes]",
        ),
        lambda proto, names: names["found"] == _operators(proto),
    ),
    Task(
        "read an attribute",
        (
            'alpha = model.node("op:LeakyRelu").node.attributes["alpha"]',
            'alpha = next(node for node in model.graph if node.op_type == "LeakyRelu").attributes["alpha"].value',
            'alpha = next(node for node in model.nodes if node.op == "LeakyRelu").attrs["alpha"]',
        ),
        lambda _, names: abs(names["alpha"] - 0.01) < 1e-6,
    ),
    Task(
        "change it everywhere",
        (
            'model = model.select("op:LeakyRelu").set_attribute("alpha", 0.2)',
            """
            for node in model.graph:
                if node.op_type == "LeakyRelu":
                    node.attributes["alpha"] = ir.AttrFloat32("alpha", 0.2)
            """,
            """
            for node in model.nodes:
                if node.op == "LeakyRelu":
                    node.attrs["alpha"] = 0.2
            """,
        ),
        lambda proto, _: abs(_alpha(proto) - 0.2) < 1e-6,
    ),
    Task(
        "swap a weight",
        (
            'model = model.tensor("fc.bias").set_values(array)',
            'model.graph.initializers["fc.bias"].const_value = ir.tensor(array)',
            'model.tensors()["fc.bias"].values = array',
        ),
        lambda proto, names: any(
            onnx.numpy_helper.to_array(each).tolist() == names["array"].tolist()
            for each in proto.graph.initializer
            if each.name == "fc.bias"
        ),
    ),
    Task(
        "rename an input",
        (
            'model = model.tensor("image").rename("picture")',
            'model.graph.inputs[0].name = "picture"',
            'model.inputs[0].name = "picture"',
        ),
        lambda proto, _: proto.graph.input[0].name == proto.graph.node[0].input[0] == "picture",
    ),
    Task(
        "insert a node",
        (
            'model = model.tensor("features").insert("Relu")',
            """
            conv = next(node for node in model.graph if node.op_type == "Conv")
            relu = ir.node("Relu", inputs=conv.outputs)
            conv.outputs[0].replace_all_uses_with(relu.outputs[0])
            relu.replace_input_with(0, conv.outputs[0])
            model.graph.insert_after(conv, relu)
            """,
            """
            features = model.tensors()["features"]
            relu = gs.Node("Relu", outputs=[gs.Variable("features_relu")])
            for node in list(features.outputs):
                node.inputs[node.inputs.index(features)] = relu.outputs[0]
            relu.inputs = [features]
            model.nodes.append(relu)
            """,
        ),
        lambda proto, _: _operators(proto)[:3] == ["Conv", "Relu", "LeakyRelu"],
    ),
    Task(
        "delete a node",
        (
            'model = model.select("op:LeakyRelu").delete()',
            """
            leaky = next(node for node in model.graph if node.op_type == "LeakyRelu")
            leaky.outputs[0].replace_all_uses_with(leaky.inputs[0])
            model.graph.remove(leaky, safe=True)
            """,
            """
            leaky = next(node for node in model.nodes if node.op == "LeakyRelu")
            for node in list(leaky.outputs[0].outputs):
                node.inputs[node.inputs.index(leaky.outputs[0])] = leaky.inputs[0]
            leaky.outputs.clear()
            """,
        ),
        lambda proto, _: _operators(proto)[:2] == ["Conv", "MaxPool"],
    ),
    Task(
        "fuse a pattern",
        (
            """
            fuse = edits.ReplacePattern(pattern="Add(MatMul($x, $w), $b)", replacement="Gemm($x, $w, $b)")
            model = model.rewrite(fuse)
            """,
            """
            def before(op, x, w, b):
                return op.Add(op.MatMul(x, w), b)
            def after(op, x, w, b):
                return op.Gemm(x, w, b)
            pattern.RewriteRule(before, after).apply_to_model(model)
            """,
            """
            for add in [node for node in model.nodes if node.op == "Add"]:
                matmul = add.i(0)
                if matmul.op == "MatMul":
                    gemm = gs.Node("Gemm", inputs=[*matmul.inputs, add.inputs[1]], outputs=list(add.outputs))
                    add.outputs.clear()
                    model.nodes.append(gemm)
            """,
        ),
        lambda proto, _: sorted(_operators(proto)[4:]) == ["Gemm", "Softmax"],
    ),
    Task(
        "compare two models",
        (
            "differences = onnxjson.diff(base, target).to_markdown()",
            """
            texts = [str(ir.load(path)).splitlines() for path in (base, target)]
            differences = "\\n".join(difflib.unified_diff(*texts))
            """,
            """
            texts = [str(gs.import_onnx(onnx.load(path))).splitlines() for path in (base, target)]
            differences = "\\n".join(difflib.unified_diff(*texts))
            """,
        ),
        lambda _, names: "Gemm" in names["differences"],
    ),
    Task(
        "verify equal outputs",
        ("equal = onnxjson.verify(base, target).equal", _VERIFY, _VERIFY),
        lambda _, names: bool(names["equal"]),
    ),
    Task(
        "save weights apart",
        (
            'onnxjson.save(model, "new.onnx.json", weights="blobs")',
            'ir.save(model, "new.onnx", external_data="new.data", size_threshold_bytes=0)',
            'onnx.save(gs.export_onnx(model), "new.onnx", save_as_external_data=True, size_threshold=0)',
        ),
        lambda *_: len(os.listdir()) == 4,
    ),
)


def lines(spelling: str) -> int:
    """Return the number of lines of a spelling, without empty ones."""
    return len(dedent(spelling).strip().splitlines())


def installed() -> Iterator[str]:
    """Yield the libraries that are installed."""
    yield from [each for each in LIBRARIES if importlib.util.find_spec(each)]


def run(task: Task, library: str, folder: Path) -> bool:
    """Run a task in a folder with the two models; return whether the result is right."""
    names: dict[str, Any] = {
        "base": str(folder / "exported.onnx"),
        "target": str(folder / "digits.onnx"),
        "array": numpy.arange(10, dtype=numpy.float32),
    }
    place = LIBRARIES.index(library)
    for source in (IMPORTS[library], TASKS[0].spellings[place], dedent(task.spellings[place])):
        exec(compile(source, f"{task.name} with {library}", "exec"), names)
    proto = eval(TO_PROTO[library], names)
    return task.holds(proto, names)


def table() -> str:
    """Return the numbers of lines as a table in Markdown."""
    rows = ["| task | " + " | ".join(LIBRARIES) + " |", "|---|" + "--:|" * len(LIBRARIES)]
    rows += [f"| {task.name} | " + " | ".join(str(lines(each)) for each in task.spellings) + " |" for task in TASKS]
    sums = [sum(lines(task.spellings[place]) for task in TASKS) for place in range(len(LIBRARIES))]
    return "\n".join([*rows, "| all | " + " | ".join(map(str, sums)) + " |"])


def main() -> None:
    """Run all tasks and print the table; exits 1 if a result is wrong."""
    wrong = []
    for library in installed():
        for task in TASKS:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                write_example(folder / "exported.onnx", unfused=True)
                write_example(folder / "digits.onnx")
                os.chdir(folder)
                if not run(task, library, folder):
                    wrong.append(f"{task.name} with {library}")
                os.chdir("/")
    print(table())
    print(f"run: {', '.join(installed())}; wrong: {', '.join(wrong) or 'none'}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

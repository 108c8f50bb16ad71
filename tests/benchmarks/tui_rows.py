"""``python -m tests.benchmarks.tui_rows``: what the lists of the terminal workbench take on 100,000 nodes."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final
from unittest import mock

import onnxjson
from onnxjson import edits
from onnxjson.model.document import Graph, Model, Node, OperatorSetId, Tensor, ValueInfo
from onnxjson.model.index import Index
from onnxjson.model.types import parse_type
from onnxjson.outline.lines import outline_of
from onnxjson.patterns.selectors import select_nodes
from onnxjson_tui.rows.folding import folds_of, rows_of
from onnxjson_tui.rows.nodes import NodeRows, filtered, node_spans
from onnxjson_tui.session.session import Session
from tests.benchmarks.report import table

NODES: Final = 100_000
ROUNDS: Final = 5

BLOCK: Final = (
    ("norm/LayerNormalization", ("{last}", "scale"), "norm"),
    ("attn/q/MatMul", ("{b}norm", "w"), "q"),
    ("attn/k/MatMul", ("{b}norm", "w"), "k"),
    ("attn/v/MatMul", ("{b}norm", "w"), "v"),
    ("attn/MatMul", ("{b}q", "{b}k"), "scores"),
    ("attn/Add", ("{b}scores", "mask"), "masked"),
    ("attn/Softmax", ("{b}masked",), "weights"),
    ("attn/MatMul_1", ("{b}weights", "{b}v"), "mixed"),
    ("attn/out/MatMul", ("{b}mixed", "w"), "out"),
    ("Add", ("{last}", "{b}out"), "sum"),
    ("mlp/up/MatMul", ("{b}sum", "w"), "up"),
    ("mlp/act/Relu", ("{b}up",), "act"),
    ("mlp/down/MatMul", ("{b}act", "w"), "down"),
    ("Add_1", ("{b}sum", "{b}down"), "end"),
)
"""The nodes of one layer of a transformer: name, inputs, output."""


def transformer(count: int) -> Model:
    """A model of `count` nodes, in layers, every value with a type."""
    nodes: list[Node] = []
    types: list[ValueInfo] = []
    said = parse_type("float[N,128,512]")
    last = "x"
    for index in range(count):
        layer, part = divmod(index, len(BLOCK))
        name, inputs, output = BLOCK[part]
        block = f"/layers.{layer}/"
        places = tuple([each.format(b=block, last=last) for each in inputs])
        operator = name.rpartition("/")[2].partition("_")[0]
        nodes.append(Node(places, (block + output,), block + name, operator))
        types.append(ValueInfo(block + output, said))
        if part == len(BLOCK) - 1:
            last = block + output
    weights = [Tensor(name=name, data_type=1, dims=(), raw_data=bytes(4)) for name in ("w", "scale", "mask")]
    graph = Graph(
        tuple(nodes),
        "big",
        tuple(weights),
        input=(ValueInfo("x", said),),
        output=(ValueInfo(nodes[-1].output[0], said),),
        value_info=tuple(types[:-1]),
    )
    return Model(ir_version=10, opset_import=(OperatorSetId("", 20),), graph=graph)


def _measured(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median CPU seconds."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return sorted(taken)[rounds // 2]


def rows_of_lists(model: Model) -> list[tuple[str, str]]:
    """What lists take."""
    assert model.graph is not None
    scope = Index(model).scopes[0]
    assert scope.types
    rows = NodeRows(scope)
    columns = rows.columns(120)

    def page(start: int) -> object:
        numbers = range(start, min(start + 45, len(rows)))
        return [[*node_spans(rows.row(each), rows.short_name(each, columns.name), columns)] for each in numbers]

    outline = outline_of(model, Index(model))
    folds = folds_of(outline, outline.lines[-1].nodes[0].scope)
    places = iter(range(0, len(rows), max(len(rows) // 7, 1)))
    index = Index(model)
    select_nodes(model, index, "op:Relu")
    return [
        ("the index of the model", _ms(_measured(lambda: Index(model)))),
        ("types of all values", _ms(_measured(lambda: Index(model).scopes[0].types))),
        ("node list with lanes, prepared", _ms(_measured(lambda: NodeRows(scope)))),
        ("node list, a page of 45 rows elsewhere", _ms(_measured(lambda: page(next(places))))),
        ("node list, filter op:Softmax", _ms(_measured(lambda: _filter(model, index)))),
        ("lines, derived", _ms(_measured(lambda: outline_of(model, Index(model)), 1))),
        ("lines, rows of the page", _ms(_measured(lambda: rows_of(folds, ())))),
    ]


def _filter(model: Model, index: Index) -> NodeRows:
    scope = index.scopes[0]
    return NodeRows(scope, filtered(select_nodes(model, index, "op:Softmax"), scope))


def rows_of_edits(model: Model) -> list[tuple[str, str]]:
    """What one session takes."""
    found: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_STATE_HOME=folder):
        path = Path(folder, "big.onnx")
        onnxjson.save(model, path)
        opened = Session.open(path)
        assert isinstance(opened, Session)
        with opened as session:
            assert session.index.scopes[0].producers
            changes = {
                "one attribute": edits.SetAttribute(node="/layers.9/attn/Softmax", attribute="axis", value=1),
                "one name": edits.Rename(kind="node", from_="/layers.9/mlp/act/Relu", to="other"),
                "one node deleted": edits.DeleteNode(node="/layers.99/mlp/act/Relu", bypass=0),
            }
            for name, edit in changes.items():
                start = time.process_time()
                preview = session.preview(edit)
                middle = time.process_time()
                session.accept(preview)
                found.append((f"{name}: preview", _ms(middle - start)))
                found.append((f"{name}: accept, with the journal", _ms(time.process_time() - middle)))
                found.append((f"{name}: undo", _ms(_timed(session.undo))))
                found.append((f"{name}: redo", _ms(_timed(session.redo))))
                if name == "one node deleted":
                    found.append((f"{name}: new index", _ms(_timed(lambda: session.index))))
            session.discard()
    return found


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


def main(arguments: list[str]) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.tui_rows", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES, help=f"{NODES:,} if left out")
    given = parser.parse_args(arguments)
    model = transformer(given.nodes)
    rows = [*rows_of_lists(model), *rows_of_edits(model)]
    print(table("Lists and steps of the terminal workbench", [f"{given.nodes:,} nodes", "CPU"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

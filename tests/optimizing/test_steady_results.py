"""Passes give the same bytes each time, so that what they give can be compared."""

from pathlib import Path

import onnxjson
from onnxjson.optimizing.passes import Pipeline, parse_step

MODELS = Path(__file__).parent.parent / "models"


def test_layouts_of_onnxruntime_have_the_same_names_each_time() -> None:
    model = onnxjson.load(MODELS / "mobile_dynamo.onnx")
    found = set()
    with Pipeline() as pipeline:
        for _ in range(6):
            (made,) = pipeline.run(model, [parse_step("onnxruntime{level=all}")])
            found.add(made.after.data)
    assert len(found) == 1
    graph = made.after.model.graph
    assert graph is not None
    names = [node.name for node in graph.node]
    assert len(set(names)) == len(names)

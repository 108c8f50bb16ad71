"""Passes keep operators that draw random numbers, whatever the numbers are drawn from."""

import pytest
from onnx.parser import parse_model

from onnxjson.model.constants import RANDOM
from onnxjson.model.document import Node
from onnxjson.model.walking import walk
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.optimizing.passes.declaration import is_installed
from onnxjson.storage import api

DRAWN = {
    "onnxslim": "r = RandomNormal <shape = [4], seed = 1.0> ()",
    "onnxscript": "r = Bernoulli (c)",
    "onnxsim": "r = RandomUniformLike (c)",
    "onnxoptimizer": "r = RandomNormalLike (c)",
}


@pytest.mark.parametrize(("name", "drawn"), DRAWN.items(), ids=DRAWN)
def test_random_numbers_are_no_constants(name: str, drawn: str) -> None:
    if not is_installed(name):
        pytest.skip(f"{name} is not installed")
    text = f"""<ir_version: 10, opset_import: ["" : 21]> g (float[N,4] x) => (float[N,4] y)
               <float[4] c = {{0.5, 0.4, 0.3, 0.2}}> {{ i = Identity (x) {drawn} y = Add (i, r) }}"""
    with Pipeline() as pipeline:
        (made,) = pipeline.run(api.from_proto(parse_model(text)), [parse_step(name)])
    assert [node.op_type for node in walk(made.after.model, Node) if node.op_type in RANDOM]


@pytest.mark.parametrize("name", DRAWN)
def test_a_dropout_that_trains_stays(name: str) -> None:
    if not is_installed(name):
        pytest.skip(f"{name} is not installed")
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[N,4] x) => (float[N,4] y)
              <float r = {0.5}, bool t = {1}> { i = Identity (x) d = Dropout (i, r, t) y = Relu (d) }"""
    with Pipeline() as pipeline:
        (made,) = pipeline.run(api.from_proto(parse_model(text)), [parse_step(name)])
    assert [node.op_type for node in walk(made.after.model, Node)].count("Dropout") == 1

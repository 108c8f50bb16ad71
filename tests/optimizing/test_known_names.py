"""Names that an optimizer would leave out without a word are refused, with what is near."""

import pytest

from onnxjson import example
from onnxjson.model.errors import PassError
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.optimizing.passes.declaration import is_installed
from onnxjson.storage import api

needs_onnxsim = pytest.mark.skipif(not is_installed("onnxsim"), reason="onnxsim is not installed")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            "onnxruntime{disable=[ConstantFoldin]}",
            r'rule of level basic "ConstantFoldin"; did you mean "ConstantFolding"',
        ),
        ("onnxruntime{disable=[ConvBNFusio]}", r'"ConvBNFusio"; did you mean "ConvBNFusion"'),
        ("onnxruntime{disable=[ConvActivationFusion]}", r"level basic .ConvActivationFusion."),
        ("float16{block_nodes=[conv]}", r'there is no node "conv"; did you mean "/conv"'),
        ("float16{keep_io=[imag]}", r'there is no input or output "imag"; did you mean "image"'),
        pytest.param(
            "onnxsim{skip=[eliminate_dead]}",
            r'there is no pass of its optimizer "eliminate_dead"; did you mean "eliminate_deadend"',
            marks=needs_onnxsim,
        ),
        pytest.param("onnxsim{more=[x]}", r'there is no other pass of its optimizer "x"; there', marks=needs_onnxsim),
    ],
)
def test_a_misspelled_name_is_refused(step: str, said: str) -> None:
    model = api.from_proto(example.make_example())
    with Pipeline() as pipeline, pytest.raises(PassError, match=said):
        list(pipeline.run(model, [parse_step(step)]))


@pytest.mark.parametrize(
    "step",
    [
        "onnxruntime{level=extended,disable=[ConvActivationFusion,ConvBNFusion]}",
        "float16{block_nodes=[/conv],keep_io=[image,probabilities]}",
        pytest.param("onnxsim{skip=[eliminate_deadend],more=[adjust_add]}", marks=needs_onnxsim),
    ],
)
def test_names_that_are_there_are_taken(step: str) -> None:
    model = api.from_proto(example.make_example())
    with Pipeline() as pipeline:
        (made,) = pipeline.run(model, [parse_step(step)])
    assert made.failure is None

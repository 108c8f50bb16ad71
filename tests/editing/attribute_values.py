"""Values for every attribute of every operator of the default domain, other than the default and that of the recipe."""

from collections.abc import Iterator
from typing import Any

import onnx

from onnxjson.editing.new_models.operator_model import DEFAULT_OPSET
from onnxjson.editing.new_models.recipes import recipe_for
from onnxjson.editing.spelling import json_or_text
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES
from onnxjson.model.operators import all_operators, operator_signature

_TABLE = """
Bernoulli dtype 11
BlackmanWindow output_datatype 11
Cast to 7
Compress axis 1
Constant value_int 3
Constant value_float 0.5
Constant value_floats [1.5,2.5]
Constant value_ints [3,4]
Constant value_string word
Constant value_strings ["a","b"]
Constant value {"type":"int64[3]","values":[1,2,3]}
ConstantOfShape value {"type":"int64[1]","values":[3]}
DequantizeLinear axis 0
EyeLike dtype 7
HammingWindow output_datatype 11
HannWindow output_datatype 11
MelWeightMatrix output_datatype 11
Multinomial dtype 7
NegativeLogLikelihoodLoss ignore_index 1
QuantizeLinear axis 0
QuantizeLinear output_dtype 3
RandomNormal dtype 11
RandomNormalLike dtype 11
RandomUniform dtype 11
RandomUniformLike dtype 11
SequenceEmpty dtype 7
Shape end 1
SoftmaxCrossEntropyLoss ignore_index 1
AveragePool auto_pad SAME_UPPER
BitShift direction RIGHT
Conv auto_pad SAME_LOWER
ConvInteger auto_pad SAME_UPPER
ConvTranspose auto_pad SAME_UPPER
DepthToSpace mode CRD
Einsum equation bij,bjk->bik
GRU direction bidirectional
Gelu approximate tanh
GridSample mode nearest
GridSample padding_mode border
ImageDecoder pixel_format BGR
LSTM direction bidirectional
LpPool auto_pad SAME_UPPER
MaxPool auto_pad VALID
NegativeLogLikelihoodLoss reduction sum
Pad mode reflect
QLinearConv auto_pad SAME_UPPER
RNN direction reverse
RegexFullMatch pattern a.b
Resize coordinate_transformation_mode asymmetric
Resize keep_aspect_ratio_policy not_larger
Resize mode linear
Resize nearest_mode floor
RoiAlign coordinate_transformation_mode output_half_pixel
RoiAlign mode max
ScatterElements reduction add
ScatterND reduction mul
SoftmaxCrossEntropyLoss reduction none
StringNormalizer case_change_action LOWER
StringNormalizer locale POSIX
StringSplit delimiter a
TfIdfVectorizer mode IDF
CenterCropPad axes [1]
Col2Im dilations [2,2]
Col2Im pads [1,1,1,1]
Col2Im strides [2,2]
MaxRoiPool pooled_shape [3,1]
MeanVarianceNormalization axes [0,2]
RandomNormal shape [4,1,2]
RandomUniform shape [4]
Resize axes [2,3]
Scan scan_input_axes [1]
Scan scan_input_directions [1]
Scan scan_output_axes [1]
Scan scan_output_directions [1]
TfIdfVectorizer ngram_counts [0,0]
TfIdfVectorizer ngram_indexes [2,1,0]
TfIdfVectorizer pool_int64s [7,8,9]
TfIdfVectorizer weights [0.5,1,2]
TfIdfVectorizer pool_strings ["a","b","c"]
TfIdfVectorizer max_gram_length 2
TfIdfVectorizer max_skip_count 1
TfIdfVectorizer min_gram_length 2
Transpose perm [2,0,1]
RNN activations ["Relu"]
GRU activations ["Relu","Tanh"]
LSTM activations ["Sigmoid","Relu","Tanh"]
RNN activation_alpha [0.5]
RNN activation_beta [0.5]
GRU activation_alpha [0.5,0.5]
GRU activation_beta [0.5,0.5]
LSTM activation_alpha [0.5,0.5,0.5]
LSTM activation_beta [0.5,0.5,0.5]
StringNormalizer stopwords ["a"]
Optional type "int64[2]"
MaxUnpool kernel_shape [3,3]
MaxUnpool strides [1,1]
MaxUnpool pads [0,0,0,0]
ConvTranspose output_padding [1,1]
ConvTranspose output_shape [4,4]
LpNormalization p 1
Multinomial sample_size 3
Scan num_scan_inputs 2
"""

_SPATIAL = {"kernel_shape": "[5,2]", "pads": "[1,0,1,0]", "strides": "[2,1]", "dilations": "[2,2]"}
_NUMBERS = {
    "hidden_size": 7, "num_groups": 4, "blocksize": 3, "num_outputs": 3, "group": 2, "offset_group": 2, "size": 5,
}  # fmt: skip
_UNCHANGEABLE = {"GRAPH", "SPARSE_TENSOR"}
"""Subgraphs are given with inputs; a sparse constant has no spelling in one word."""


def changed_attributes() -> Iterator[tuple[str, str, Any]]:
    """Yield operators, attributes and values."""
    listed = {tuple(line.split(" ", 2)[:2]): line.split(" ", 2)[2] for line in _TABLE.strip().splitlines()}
    for name in sorted({name for domain, name, _ in all_operators() if not domain}):
        signature = operator_signature("", name, DEFAULT_OPSET)
        if signature is None or signature.deprecated:
            continue
        schema = onnx.defs.get_schema(name, DEFAULT_OPSET, "")
        pairs = [text.partition("=") for text in recipe_for(name, signature.since_version).attributes]
        recipe = {key: json_or_text(value) for key, _, value in pairs}
        for attribute, formal in signature.attributes.items():
            kind = ATTRIBUTE_TYPE_NAMES[formal.type]
            if kind in _UNCHANGEABLE:
                continue
            if (name, attribute) in listed:
                yield name, attribute, json_or_text(listed[name, attribute])
            elif attribute in _SPATIAL:
                yield name, attribute, json_or_text(_SPATIAL[attribute])
            elif attribute in _NUMBERS:
                yield name, attribute, _NUMBERS[attribute]
            else:
                default = schema.attributes[attribute].default_value
                current = recipe.get(attribute, onnx.helper.get_attribute_value(default) if default.type else 1)
                yield name, attribute, 0.5 if kind == "FLOAT" else 0 if current else 1

"""Example calls of operators for which inputs of two rows and three columns do not work, and subgraphs they need.

A line of the table is an operator with the versions that it applies to, then inputs ``name:[shape]`` or
``name:[shape]=values``, after ``|`` attributes ``name=value``, and after ``>`` the outputs: their number, or their
types in case onnx infers none. A shape has no dtype if the operator leaves a choice; an input with values is a
constant. If several lines apply to a version, the first one is used; with attributes of the user, the one that has most
of them, or the next one with which onnx accepts the model.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from onnxjson.editing.new_models.slot_types import innermost_tensor, static_shape
from onnxjson.editing.spelling import json_or_text
from onnxjson.editing.type_relations import with_shape
from onnxjson.model.document import Attribute, Graph, Node, Tensor, TensorShape, TensorType, Type, ValueInfo
from onnxjson.model.dtypes import BITS, STRING
from onnxjson.model.messages import ATTRIBUTE_TYPES


class Recipe(NamedTuple):
    """One call of an operator."""

    inputs: tuple[str, ...] = ()
    """Specifications of inputs, see `slot_types`; none for the usual inputs."""
    attributes: tuple[str, ...] = ()
    """Attributes as ``name=value``."""
    outputs: tuple[str, ...] = ()
    """Types or shapes of outputs that onnx does not infer; none for the required number of outputs."""

    def values(self) -> dict[str, Any]:
        """Return the attributes as JSON values."""
        pairs = [text.partition("=") for text in self.attributes]
        return {name: json_or_text(value) for name, _, value in pairs}


_HEAD: Final = re.compile(r"(?:(?P<domain>[a-z.]+):)?(?P<name>\w+)(?:@(?P<first>\d+)?-(?P<last>\d+)?)?")
_NEWEST: Final = 1 << 30


@cache
def _recipes() -> dict[str, list[tuple[int, int, Recipe]]]:
    found: dict[str, list[tuple[int, int, Recipe]]] = {}
    for line in filter(None, _TABLE.splitlines()):
        rest, _, outputs = line.partition(" > ")
        calls, _, attributes = rest.partition(" | ")
        head, *inputs = calls.split()
        match = _HEAD.fullmatch(head)
        assert match is not None, head
        first, last = int(match["first"] or 1), int(match["last"] or _NEWEST)
        made = outputs.split()
        if made and made[0].isdigit():
            made = [""] * int(made[0])
        recipe = Recipe(tuple(inputs), tuple(attributes.split()), tuple(made))
        found.setdefault(match["name"], []).append((first, last, recipe))
    return found


def recipe_for(op_type: str, version: int) -> Recipe:
    """Return the call of a version of an operator; an empty one if nothing special is known."""
    return recipes_for(op_type, version, {})[0]


def recipes_for(op_type: str, version: int, attributes: Mapping[str, Any]) -> list[Recipe]:
    """Return the calls of a version of an operator, those first that have most of some attributes."""
    found = [recipe for first, last, recipe in _recipes().get(op_type, ()) if first <= version <= last]

    def alike(recipe: Recipe) -> int:
        return sum([value == attributes[name] for name, value in recipe.values().items() if name in attributes])

    return sorted(found, key=alike, reverse=True) or [Recipe()]


_TABLE: Final = """
AffineGrid theta:[1,2,3] size:[4]=[1,1,4,4]
Attention Q:[1,2,4,8] K:[1,2,4,8] V:[1,2,4,8] > [1,2,4,8]
AveragePool X:[1,2,6,6] | kernel_shape=[2,2] > [1,2,5,5]
BatchNormalization@-5 X:[1,2,3,3] scale:[2] B:[2] mean:[2] var:[2] | is_test=1 consumed_inputs=[0,0,0,1,1] > [1,2,3,3]
BatchNormalization X:[1,2,3,3] scale:[2] B:[2] mean:[2] var:[2] | is_test=1 > [1,2,3,3]
BatchNormalization X:[1,2,3,3] scale:[2] B:[2] mean:[2] var:[2] | training_mode=1 > 3
BitCast input:float32[2,3] | to=6
BitShift | direction=LEFT
BlackmanWindow size:int32[]=8
Cast@-5 | to=FLOAT16 > float16[2,3]
Cast | to=10
Cast | to=17 saturate=0
CastLike input:float32[2,3] target_type:float16[2,3]
CastLike input:float32[2,3] target_type:float8e4m3fn[2,3] | saturate=0
CausalConvWithState input:[1,2,6] weight:[2,1,3] bias:[2]
CenterCropPad input_data:[4,6] shape:[2]=[2,8]
CenterCropPad input_data:[4,6] shape:[1]=[2] | axes=[1]
Col2Im input:[1,4,9] image_shape:[2]=[4,4] block_shape:[2]=[2,2]
Compress input:[3,2] condition:[3]=[true,false,true] | axis=0 > [?,2]
Concat inputs:[2,3] inputs:[2,3] | axis=1 > [2,6]
ConcatFromSequence | axis=0 > [4,3]
Constant | value={"type":"float32[2]","values":[1,2]} > [2]
ConstantOfShape input:[2]=[2,3]
Conv X:[1,2,5,5] W:[3,2,3,3] > [1,3,3,3]
ConvInteger x:[1,2,5,5] w:[3,2,3,3] > [1,3,3,3]
ConvTranspose X:[1,2,3,3] W:[2,3,3,3] > [1,3,5,5]
ConvTranspose X:[1,2,3,3] W:[2,3,3,3] | output_padding=[1,1] strides=[2,2] > 1
CumProd x:[2,3] axis:[]=1
CumSum x:[2,3] axis:[]=1
DFT@-19 input:[1,8,1] | axis=1
DFT input:[1,8,1] dft_length:[]=8 axis:[]=1
DeformConv X:[1,1,3,3] W:[1,1,2,2] offset:[1,8,2,2]
DepthToSpace input:[1,8,2,3] | blocksize=2 > [1,2,4,6]
DequantizeLinear x:[2,3] x_scale:[] x_zero_point:[]
Det X:[2,3,3]
Dropout@-6 data:[2,3] | is_test=1 consumed_inputs=[0] > [2,3]
Dropout data:[2,3]
Einsum Inputs:[2,3] Inputs:[3,4] | equation="ij,jk->ik" > [2,4]
Expand input:[3,1] shape:[3]=[2,3,6]
EyeLike input:[3,3]
Flatten input:[2,3,4] > [2,12]
FlexAttention Q:[1,2,4,8] K:[1,2,4,8] V:[1,2,4,8] > [1,2,4,8]
GRU@-2 X:[3,2,4] W:[1,15,4] R:[1,15,5] | hidden_size=5 output_sequence=1 > [3,1,2,5] [1,2,5]
GRU X:[3,2,4] W:[1,15,4] R:[1,15,5] | hidden_size=5 output_sequence=1 > [3,1,2,5]
Gather data:[3,4] indices:[2]=[0,2] > [2,4]
GatherElements data:[2,3] indices:[2,1]=[[0],[1]]
GatherND data:[2,3] indices:[2,2]=[[0,1],[1,2]]
GatherND data:[2,3] indices:[2,1]=[[0],[1]] | batch_dims=1
Gemm@-6 A:[2,3] B:[3,4] C:[4] | broadcast=1 > [2,4]
Gemm A:[2,3] B:[3,4] C:[4] > [2,4]
GlobalAveragePool X:[1,2,4,4] > [1,2,1,1]
GlobalLpPool X:[1,2,4,4] > [1,2,1,1]
GlobalMaxPool X:[1,2,4,4] > [1,2,1,1]
GridSample X:[1,1,4,4] grid:[1,3,3,2]
GroupNormalization@-20 X:[1,4,3,3] scale:[2] bias:[2] | num_groups=2
GroupNormalization X:[1,4,3,3] scale:[4] bias:[4] | num_groups=2 > [1,4,3,3]
HammingWindow size:int32[]=8
HannWindow size:int32[]=8
If cond:[] > 1
ImageDecoder encoded_stream:[100]
InstanceNormalization input:[1,2,3,3] scale:[2] B:[2] > [1,2,3,3]
LRN X:[1,4,3,3] | size=3 > [1,4,3,3]
LSTM X:[3,2,4] W:[1,20,4] R:[1,20,5] | hidden_size=5 output_sequence=1 > [3,1,2,5]
LayerNormalization X:[2,3] Scale:[3] B:[3]
LinearAttention query:[1,4,16] key:[1,4,16] value:[1,4,16] | q_num_heads=2 kv_num_heads=2 update_rule=linear \
> [1,4,16] [1,2,8,8]
Loop M:[]=3 cond:[]=true v_initial:[2,3] > [2,3] [?,2,3]
LpNormalization input:[2,3]
LpPool X:[1,2,6,6] | kernel_shape=[2,2] > [1,2,5,5]
MatMul A:[2,3] B:[3,4] > [2,4]
MatMulInteger A:[2,3] B:[3,4]
MaxPool X:[1,2,6,6] | kernel_shape=[2,2] > [1,2,5,5]
MaxRoiPool X:[1,2,6,6] rois:[1,5]=[[0,0,0,3,3]] | pooled_shape=[2,2]
MaxUnpool X:[1,1,2,2] I:[1,1,2,2]=[[[[0,1],[2,3]]]] | kernel_shape=[2,2] strides=[2,2]
MeanVarianceNormalization@-12 X:[1,2,3,3] > [1,2,3,3]
MeanVarianceNormalization X:[1,2,3,3] > [1,2,3,3]
MelWeightMatrix num_mel_bins:int32[]=4 dft_length:int32[]=16 sample_rate:int32[]=8000 lower_edge_hertz:float32[]=0 \
upper_edge_hertz:float32[]=4000 > [9,4]
Mod A:[2,3] B:[2,3] | fmod=1
Mod A:int32[2,3] B:int32[2,3] | fmod=0
Multinomial input:[2,3] | sample_size=4
NegativeLogLikelihoodLoss input:[3,4] target:[3]=[0,1,3] > []
NonMaxSuppression boxes:[1,6,4] scores:[1,1,6] max_output_boxes_per_class:[]=3 iou_threshold:[]=0.5 > int64[?,3]
OneHot indices:int64[3]=[0,2,1] depth:int64[]=4 values:[2] > [3,4]
Optional input:[2,3]
OptionalGetElement input:optional(float32[2,3]) > [2,3]
PRelu X:[2,3] slope:[3] > [2,3]
Pad@-1 data:[2,3] | paddings=[0,1,0,1] > [2,5]
Pad@-10 data:[2,3] | pads=[0,1,0,1] > [2,5]
Pad data:[2,3] pads:[4]=[0,1,0,1]
QLinearConv x:[1,1,4,4] x_scale:float32[]=0.5 x_zero_point:[]=0 w:[1,1,2,2] w_scale:float32[]=0.5 w_zero_point:[]=0 \
y_scale:float32[]=0.5 y_zero_point:[]=0
QLinearMatMul@-20 a:[2,3] a_scale:[]=0.5 a_zero_point:[]=0 b:[3,4] b_scale:[]=0.5 b_zero_point:[]=0 y_scale:[]=0.5 \
y_zero_point:[]=0
QLinearMatMul a:[2,3] a_scale:[]=0.5 a_zero_point:[]=0 b:[3,4] b_scale:[]=0.5 b_zero_point:[]=0 y_scale:[]=0.5 \
y_zero_point:[]=0
QuantizeLinear x:[2,3] y_scale:[]=0.5 y_zero_point:[]=0
QuantizeLinear x:[2,3] y_scale:[]=0.5 | output_dtype=3
RMSNormalization X:[2,3] scale:[3]
RNN X:[3,2,4] W:[1,5,4] R:[1,5,5] | hidden_size=5 output_sequence=1 > [3,1,2,5]
RandomNormal | shape=[2,3]
RandomUniform | shape=[2,3]
Range start:[]=0 limit:[]=6 delta:[]=2 > [3]
RegexFullMatch X:[3] | pattern=.*
Reshape@-4 data:[2,3] | shape=[3,2] > [3,2]
Reshape data:[2,3] shape:[2]=[3,2] > [3,2]
Resize@-10 X:[1,1,2,3] scales:[4]=[1,1,2,2] > [1,1,4,6]
Resize@11-12 X:[1,1,2,3] roi:[0]=[] scales:[4]=[1,1,2,2]
Resize X:[1,1,2,3] - scales:[4]=[1,1,2,2]
Resize X:[1,1,2,3] - scales:[2]=[2,2] | axes=[2,3]
Resize X:[1,1,2,3] - scales:[4]=[1,1,2,2] | antialias=1 mode=linear
Resize X:[1,1,2,3] - scales:[4]=[1,1,2,2] | exclude_outside=1 mode=cubic
Resize X:[1,1,2,3] - - sizes:[4]=[1,1,4,6] | keep_aspect_ratio_policy=not_larger
ReverseSequence input:[4,2] sequence_lens:[2]=[3,4] | time_axis=0 batch_axis=1
ReverseSequence input:[2,4] sequence_lens:[2]=[3,4] | time_axis=1 batch_axis=0
RoiAlign X:[1,1,6,6] rois:[1,4]=[[0,0,3,3]] batch_indices:[1]=[0] | output_height=2 output_width=2
RotaryEmbedding X:[1,2,3,8] cos_cache:[1,3,4] sin_cache:[1,3,4]
STFT signal:[1,16,1] frame_step:[]=4 - frame_length:[]=8
Scan@-8 - state:[1,2] scanned:[1,3,2] | num_scan_inputs=1 > [1,2] [1,3,2]
Scan state:[2] scanned:[3,2] | num_scan_inputs=1 > [2] [3,2]
Scan state:[3] scanned:[3,2] | num_scan_inputs=1 scan_input_axes=[1] > 2
Scan scanned:[3,2] scanned:[3,2] | num_scan_inputs=2 > 2
Scatter data:[3,3] indices:[1,2]=[[0,2]] updates:[1,2]
ScatterElements data:[3,3] indices:[1,2]=[[0,2]] updates:[1,2]
ScatterND data:[4,2] indices:[2,1]=[[0],[3]] updates:[2,2]
SequenceAt input_sequence:[2,3] position:[]=0 > [2,3]
SequenceConstruct inputs:[2,3] inputs:[2,3]
Slice@-9 data:[2,4] | axes=[1] starts=[1] ends=[3] > [2,2]
Slice data:[2,4] starts:[1]=[1] ends:[1]=[3] axes:[1]=[1]
SoftmaxCrossEntropyLoss scores:[3,4] labels:[3]=[0,1,3] > []
SpaceToDepth input:[1,2,4,6] | blocksize=2 > [1,8,2,3]
Split@-1 input:[2,4] split:[2]=[2,2] | axis=1 > [2,2] [2,2]
Split@-17 input:[2,4] | axis=1 > [2,2] [2,2]
Split input:[2,4] | axis=1 num_outputs=2 > [2,2] [2,2]
SplitToSequence input:[4,3]
Squeeze@-12 data:[1,3] | axes=[0] > [3]
Squeeze data:[1,3] axes:[1]=[0] > [3]
StringConcat X:[2,3] Y:[2,3]
StringNormalizer X:[3] | case_change_action=UPPER locale=C > [3]
StringSplit X:[3] | delimiter="-"
TensorScatter past_cache:[1,2,4,3] update:[1,2,1,3] write_indices:[1]=[1]
TfIdfVectorizer X:[6] | mode=TF min_gram_length=1 max_gram_length=1 max_skip_count=0 ngram_counts=[0] \
ngram_indexes=[0,1,2] pool_int64s=[2,3,5]
TfIdfVectorizer X:[6] | mode=TF min_gram_length=1 max_gram_length=2 max_skip_count=0 ngram_counts=[0,3] \
ngram_indexes=[0,1,2,3] pool_int64s=[2,3,5,5,4]
TfIdfVectorizer X:[6] | mode=TF min_gram_length=2 max_gram_length=2 max_skip_count=0 ngram_counts=[0,0] \
ngram_indexes=[0,1] pool_int64s=[2,3,5,4]
Tile@-5 input:[2,3] tiles:[]=2 axis:[]=1 > [2,6]
Tile input:[2,3] repeats:[2]=[1,2]
TopK@-9 X:[2,4] | k=2 > [2,2] int64[2,2]
TopK X:[2,4] K:[1]=[2] > 2
Transpose data:[2,3] | perm=[1,0] > [3,2]
Trilu input:[3,3]
Unique X:[6] > [?]
Unsqueeze@-12 data:[2,3] | axes=[0] > [1,2,3]
Unsqueeze data:[2,3] axes:[1]=[0] > [1,2,3]
Upsample@-6 X:[1,1,2,3] | height_scale=2.0 width_scale=2.0 > [1,1,4,6]
Upsample@-8 X:[1,1,2,3] | scales=[1.0,1.0,2.0,2.0] > [1,1,4,6]
Upsample X:[1,1,2,3] scales:[4]=[1,1,2,2] > [1,1,4,6]
Where condition:[2,3] X:[2,3] Y:[2,3]

ArrayFeatureExtractor X:[2,3] Y:[2]=[0,2]
CastMap > [1,3]
CategoryMapper X:string[3] | cats_strings=["a","b"] cats_int64s=[0,1] > int64[3]
DictVectorizer X:map(string,int64) | string_vocabulary=["a","b","c"] > int64[1,3]
FeatureVectorizer X:[2,3] X:[2,2] | inputdimensions=[3,2] > [2,5]
Imputer X:[2,3] | imputed_value_floats=[0.0] replaced_value_float=1.0 > [2,3]
LabelEncoder@-1 X:string[3] | classes_strings=["a","b"] > int64[3]
LabelEncoder X:string[3] | keys_strings=["a","b"] values_int64s=[0,1] > int64[3]
LinearClassifier X:[2,3] | coefficients=[1,0,0,0,1,0] intercepts=[0,0] classlabels_ints=[0,1] multi_class=1 > \
int64[2] float32[2,2]
LinearRegressor X:[2,3] | coefficients=[1,0.5,2] intercepts=[0.5] > [2,1]
Normalizer X:[2,3] | norm=L2 > [2,3]
OneHotEncoder X:int64[3] | cats_int64s=[0,1,2] > [3,3]
SVMClassifier X:[2,2] | classlabels_ints=[0,1] coefficients=[1,-1] kernel_params=[0.5,0,3] kernel_type=RBF rho=[0.1] \
support_vectors=[0,1,1,0] vectors_per_class=[1,1] > int64[2] float32[2,2]
SVMRegressor X:[2,2] | coefficients=[1,-1] kernel_params=[0.5,0,3] kernel_type=RBF n_supports=2 rho=[0.1] \
support_vectors=[0,1,1,0] > [2,1]
Scaler X:[2,3] | offset=[0,0,1] scale=[1,2,1] > [2,3]
TreeEnsemble X:float32[3,1] | n_targets=2 nodes_featureids=[0,0,0] nodes_truenodeids=[1,0,2] nodes_trueleafs=[0,1,1] \
nodes_falsenodeids=[2,1,3] nodes_falseleafs=[0,1,1] nodes_modes={"type":"uint8[3]","values":[0,0,0]} \
nodes_splits={"type":"float32[3]","values":[3.14,1.2,4.2]} tree_roots=[0] leaf_targetids=[0,1,0,1] \
leaf_weights={"type":"float32[4]","values":[5.23,12.12,-12.23,7.21]} aggregate_function=1 post_transform=0
TreeEnsembleClassifier X:[3,1] | class_ids=[0,1] class_nodeids=[1,2] class_treeids=[0,0] class_weights=[1,1] \
classlabels_int64s=[0,1] nodes_falsenodeids=[2,0,0] nodes_featureids=[0,0,0] \
nodes_modes=["BRANCH_LEQ","LEAF","LEAF"] nodes_nodeids=[0,1,2] nodes_treeids=[0,0,0] nodes_truenodeids=[1,0,0] \
nodes_values=[0.5,0,0] > int64[3] float32[3,2]
TreeEnsembleRegressor X:[3,1] | n_targets=1 nodes_falsenodeids=[2,0,0] nodes_featureids=[0,0,0] \
nodes_modes=["BRANCH_LEQ","LEAF","LEAF"] nodes_nodeids=[0,1,2] nodes_treeids=[0,0,0] nodes_truenodeids=[1,0,0] \
nodes_values=[0.5,0,0] target_ids=[0,0] target_nodeids=[1,2] target_treeids=[0,0] target_weights=[1,2] > [3,1]
ZipMap X:[2,3] | classlabels_int64s=[0,1,2] > seq(map(int64,float32[]))

Adagrad R:[] T:[] inputs:[2] inputs:[2] inputs:[2] > [2] [2]
Adam R:[] T:[] inputs:[2] inputs:[2] inputs:[2] inputs:[2] > [2] [2] [2]
Gradient Inputs:[2] | xs=["Inputs"] y=Inputs > [2]
Momentum R:[] T:[] inputs:[2] inputs:[2] inputs:[2] | alpha=0.9 beta=0.1 mode=standard norm_coefficient=0.001 > [2] \
[2]
"""


_INT64, _BOOL = 7, 9


def bodies(op_type: str, given: Sequence[Type], outputs: int, bound: Mapping[str, Type]) -> tuple[Attribute, ...]:
    """Return the subgraphs that an operator needs for inputs of these types; none for other operators."""
    match op_type:
        case "If":
            branch = bound.get("V") or Type(tensor_type=TensorType(elem_type=1))
            return tuple([_attribute(name, _branch(name, branch, outputs)) for name in ("then_branch", "else_branch")])
        case "Loop":
            return (_attribute("body", _loop(given[2:])),)
        case "Scan":
            return (_attribute("body", _scan(given)),)
        case "SequenceMap":
            return (_attribute("body", _mapped(given)),)
    return ()


def _attribute(name: str, graph: Graph) -> Attribute:
    return Attribute(name=name, g=graph, type=ATTRIBUTE_TYPES["GRAPH"])


def zeros(name: str, data_type: int, dims: tuple[int, ...]) -> Tensor:
    """Return a constant of zeros, or of empty strings."""
    count = math.prod(dims)
    if data_type == STRING:
        return Tensor(dims=dims, data_type=data_type, name=name, string_data=(b"",) * count)
    return Tensor(dims=dims, data_type=data_type, name=name, raw_data=bytes((BITS[data_type] * count + 7) // 8))


def _branch(name: str, value: Type, outputs: int) -> Graph:
    """Build a branch whose outputs depend on no input."""
    tensor = innermost_tensor(value)
    data_type = (tensor.elem_type if tensor is not None else None) or 1
    nodes, infos = [], []
    prefix = name.partition("_")[0]
    for number in range(outputs):
        made, given, operator = f"{prefix}_value_{number}", f"{prefix}_constant", "Identity"
        if value.sequence_type is not None:
            operator = "SequenceConstruct"
        elif value.optional_type is not None:
            operator, inside = "Optional", value.optional_type.elem_type
            if inside is not None and inside.sequence_type is not None:
                inner = f"{prefix}_sequence_{number}"
                nodes.append(Node(op_type="SequenceConstruct", input=(given,), output=(inner,)))
                given = inner
        nodes.append(Node(op_type=operator, input=(given,), output=(made,)))
        infos.append(ValueInfo(name=made, type=with_shape(value, static_shape((2, 3)))))
    constant = zeros(f"{prefix}_constant", data_type, (2, 3))
    return Graph(node=tuple(nodes), name=name, initializer=(constant,), output=tuple(infos))


def _loop(carried: Sequence[Type]) -> Graph:
    """Build a body that passes on every carried value, and stacks the first one if it is a tensor."""
    inputs = [ValueInfo("iteration", _scalar(_INT64)), ValueInfo("go_on", _scalar(_BOOL))]
    nodes = [Node(op_type="Identity", input=("go_on",), output=("go_on_out",))]
    outputs = [ValueInfo("go_on_out", _scalar(_BOOL))]
    for number, value in enumerate(carried):
        inputs.append(ValueInfo(f"state_{number}", value))
        nodes.append(Node(op_type="Identity", input=(f"state_{number}",), output=(f"state_{number}_out",)))
        outputs.append(ValueInfo(f"state_{number}_out", value))
    if carried and carried[0].tensor_type is not None:
        nodes.append(Node(op_type="Identity", input=("state_0",), output=("gathered",)))
        outputs.append(ValueInfo("gathered", carried[0]))
    return Graph(node=tuple(nodes), name="body", input=tuple(inputs), output=tuple(outputs))


def _scan(given: Sequence[Type]) -> Graph:
    """Build a body that returns the element before the current one."""
    tensor = given[-2].tensor_type
    # In version 8, the body has no batch.
    shape = TensorShape(dim=tensor.shape.dim[-1:] if tensor is not None and tensor.shape is not None else ())
    state, element = with_shape(given[-2], shape), with_shape(given[-1], shape)
    return Graph(
        node=(
            Node(op_type="Identity", input=("element",), output=("state_out",)),
            Node(op_type="Identity", input=("state",), output=("gathered",)),
        ),
        name="body",
        input=(ValueInfo("state", state), ValueInfo("element", element)),
        output=(ValueInfo("state_out", element), ValueInfo("gathered", state)),
    )


def _mapped(given: Sequence[Type]) -> Graph:
    inputs = [
        value.sequence_type.elem_type if value.sequence_type is not None and value.sequence_type.elem_type else value
        for value in given
    ]
    names = [f"element_{number}" for number in range(len(inputs))]
    return Graph(
        node=(Node(op_type="Identity", input=("element_0",), output=("result",)),),
        name="body",
        input=tuple([ValueInfo(name, value) for name, value in zip(names, inputs, strict=True)]),
        output=(ValueInfo("result", inputs[0]),),
    )


def _scalar(data_type: int) -> Type:
    return Type(tensor_type=TensorType(elem_type=data_type, shape=TensorShape()))

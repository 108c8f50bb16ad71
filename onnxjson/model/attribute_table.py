"""The frozen attribute table of onnxjson/1: domain and op_type -> attribute -> number of AttributeProto.AttributeType.

It has the 555 attributes whose type is the same in every version of the operator up to onnx 1.23 (docs/format.md,
section 12). It belongs to the format and never changes within it.
"""

from typing import Final

from onnxjson.model.messages import ATTRIBUTE_TYPES

_TABLE: Final = """
Abs: INTS consumed_inputs
Add: INT axis broadcast; INTS consumed_inputs
AffineGrid: INT align_corners
And: INT axis broadcast
ArgMax: INT axis keepdims select_last_index
ArgMin: INT axis keepdims select_last_index
Attention: FLOAT scale softcap; INT is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode
    right_window_size softmax_precision
AveragePool: INT ceil_mode count_include_pad; STRING auto_pad; INTS dilations kernel_shape pads strides
BatchNormalization: FLOAT epsilon momentum; INT is_test spatial training_mode; INTS consumed_inputs
Bernoulli: FLOAT seed; INT dtype
BitCast: INT to
BitShift: STRING direction
BlackmanWindow: INT output_datatype periodic
Cast: INT saturate; STRING round_mode
CastLike: INT saturate; STRING round_mode
CausalConvWithState: STRING activation
Ceil: INTS consumed_inputs
Celu: FLOAT alpha
CenterCropPad: INTS axes
Clip: FLOAT max min; INTS consumed_inputs
Col2Im: INTS dilations pads strides
Compress: INT axis
Concat: INT axis
ConcatFromSequence: INT axis new_axis
Constant: FLOAT value_float; INT value_int; STRING value_string; TENSOR value; FLOATS value_floats; INTS value_ints;
    STRINGS value_strings; SPARSE_TENSOR sparse_value
ConstantOfShape: TENSOR value
Conv: INT group; STRING auto_pad; INTS dilations kernel_shape pads strides
ConvInteger: INT group; STRING auto_pad; INTS dilations kernel_shape pads strides
ConvTranspose: INT group; STRING auto_pad; INTS dilations kernel_shape output_padding output_shape pads strides
CumProd: INT exclusive reverse
CumSum: INT exclusive reverse
DFT: INT axis inverse onesided
DeformConv: INT group offset_group; INTS dilations kernel_shape pads strides
DepthToSpace: INT blocksize; STRING mode
DequantizeLinear: INT axis block_size output_dtype
Div: INT axis broadcast; INTS consumed_inputs
Dropout: FLOAT ratio; INT is_test seed; INTS consumed_inputs
Einsum: STRING equation
Elu: FLOAT alpha; INTS consumed_inputs
Equal: INT axis broadcast
Exp: INTS consumed_inputs
EyeLike: INT dtype k
Flatten: INT axis
Floor: INTS consumed_inputs
GRU: FLOAT clip; INT hidden_size layout linear_before_reset output_sequence; STRING direction; FLOATS activation_alpha
    activation_beta; STRINGS activations
Gather: INT axis
GatherElements: INT axis
GatherND: INT batch_dims
Gelu: STRING approximate
Gemm: FLOAT alpha beta; INT broadcast transA transB
Greater: INT axis broadcast
GridSample: INT align_corners; STRING mode padding_mode
GroupNormalization: FLOAT epsilon; INT num_groups stash_type
HammingWindow: INT output_datatype periodic
HannWindow: INT output_datatype periodic
HardSigmoid: FLOAT alpha beta; INTS consumed_inputs
Hardmax: INT axis
If: GRAPH else_branch then_branch
ImageDecoder: STRING pixel_format
InstanceNormalization: FLOAT epsilon; INTS consumed_inputs
IsInf: INT detect_negative detect_positive
LRN: FLOAT alpha beta bias; INT size
LSTM: FLOAT clip; INT hidden_size input_forget layout output_sequence; STRING direction; FLOATS activation_alpha
    activation_beta; STRINGS activations
LayerNormalization: FLOAT epsilon; INT axis stash_type
LeakyRelu: FLOAT alpha; INTS consumed_inputs
Less: INT axis broadcast
LinearAttention: FLOAT scale; INT chunk_size kv_num_heads q_num_heads; STRING update_rule
Log: INTS consumed_inputs
LogSoftmax: INT axis
Loop: GRAPH body
LpNormalization: INT axis p
LpPool: INT ceil_mode; STRING auto_pad; INTS dilations kernel_shape pads strides
Max: INTS consumed_inputs
MaxPool: INT ceil_mode storage_order; STRING auto_pad; INTS dilations kernel_shape pads strides
MaxRoiPool: FLOAT spatial_scale; INTS pooled_shape
MaxUnpool: INTS kernel_shape pads strides
Mean: INTS consumed_inputs
MeanVarianceNormalization: INTS axes
MelWeightMatrix: INT output_datatype
Min: INTS consumed_inputs
Mod: INT fmod
Mul: INT axis broadcast; INTS consumed_inputs
Multinomial: FLOAT seed; INT dtype sample_size
Neg: INTS consumed_inputs
NegativeLogLikelihoodLoss: INT ignore_index; STRING reduction
NonMaxSuppression: INT center_point_box
OneHot: INT axis
Optional: TYPE_PROTO type
Or: INT axis broadcast
PRelu: INTS consumed_inputs
Pad: FLOAT value; STRING mode; INTS paddings pads
Pow: INT axis broadcast
QLinearConv: INT group; STRING auto_pad; INTS dilations kernel_shape pads strides
QuantizeLinear: INT axis block_size output_dtype precision saturate
RMSNormalization: FLOAT epsilon; INT axis stash_type
RNN: FLOAT clip; INT hidden_size layout output_sequence; STRING direction; FLOATS activation_alpha activation_beta;
    STRINGS activations
RandomNormal: FLOAT mean scale seed; INT dtype; INTS shape
RandomNormalLike: FLOAT mean scale seed; INT dtype
RandomUniform: FLOAT high low seed; INT dtype; INTS shape
RandomUniformLike: FLOAT high low seed; INT dtype
Range: INT stash_type
Reciprocal: INTS consumed_inputs
ReduceL1: INT keepdims noop_with_empty_axes; INTS axes
ReduceL2: INT keepdims noop_with_empty_axes; INTS axes
ReduceLogSum: INT keepdims noop_with_empty_axes; INTS axes
ReduceLogSumExp: INT keepdims noop_with_empty_axes; INTS axes
ReduceMax: INT keepdims noop_with_empty_axes; INTS axes
ReduceMean: INT keepdims noop_with_empty_axes; INTS axes
ReduceMin: INT keepdims noop_with_empty_axes; INTS axes
ReduceProd: INT keepdims noop_with_empty_axes; INTS axes
ReduceSum: INT keepdims noop_with_empty_axes; INTS axes
ReduceSumSquare: INT keepdims noop_with_empty_axes; INTS axes
RegexFullMatch: STRING pattern
Relu: INTS consumed_inputs
Reshape: INT allowzero; INTS consumed_inputs shape
Resize: FLOAT cubic_coeff_a extrapolation_value; INT antialias exclude_outside; STRING coordinate_transformation_mode
    keep_aspect_ratio_policy mode nearest_mode; INTS axes
ReverseSequence: INT batch_axis time_axis
RoiAlign: FLOAT spatial_scale; INT output_height output_width sampling_ratio; STRING coordinate_transformation_mode mode
RotaryEmbedding: INT interleaved num_heads rotary_embedding_dim
STFT: INT onesided
Scan: INT num_scan_inputs; GRAPH body; INTS directions scan_input_axes scan_input_directions scan_output_axes
    scan_output_directions
Scatter: INT axis
ScatterElements: INT axis; STRING reduction
ScatterND: STRING reduction
Selu: FLOAT alpha gamma; INTS consumed_inputs
SequenceEmpty: INT dtype
SequenceMap: GRAPH body
Shape: INT end start
Shrink: FLOAT bias lambd
Sigmoid: INTS consumed_inputs
Slice: INTS axes ends starts
Softmax: INT axis
SoftmaxCrossEntropyLoss: INT ignore_index; STRING reduction
SpaceToDepth: INT blocksize; STRING mode
Split: INT axis num_outputs; INTS split
SplitToSequence: INT axis keepdims
Sqrt: INTS consumed_inputs
Squeeze: INTS axes
StringNormalizer: INT is_case_sensitive; STRING case_change_action locale; STRINGS stopwords
StringSplit: INT maxsplit; STRING delimiter
Sub: INT axis broadcast; INTS consumed_inputs
Sum: INTS consumed_inputs
SwiGLU: FLOAT alpha
Swish: FLOAT alpha
Tanh: INTS consumed_inputs
TensorScatter: INT axis; STRING mode
TfIdfVectorizer: INT max_gram_length max_skip_count min_gram_length; STRING mode; FLOATS weights; INTS ngram_counts
    ngram_indexes pool_int64s; STRINGS pool_strings
ThresholdedRelu: FLOAT alpha
TopK: INT axis k largest sorted
Transpose: INTS perm
Trilu: INT upper
Unique: INT axis sorted
Unsqueeze: INTS axes
Upsample: FLOAT height_scale width_scale; STRING mode; FLOATS scales
Xor: INT axis broadcast
[ai.onnx.ml]
Binarizer: FLOAT threshold
CastMap: INT max_map; STRING cast_to map_form
CategoryMapper: INT default_int64; STRING default_string; INTS cats_int64s; STRINGS cats_strings
DictVectorizer: INTS int64_vocabulary; STRINGS string_vocabulary
FeatureVectorizer: INTS inputdimensions
Imputer: FLOAT replaced_value_float; INT replaced_value_int64; FLOATS imputed_value_floats; INTS imputed_value_int64s
LabelEncoder: FLOAT default_float; INT default_int64; STRING default_string; TENSOR default_tensor keys_tensor
    values_tensor; FLOATS keys_floats values_floats; INTS keys_int64s values_int64s; STRINGS classes_strings
    keys_strings values_strings
LinearClassifier: INT multi_class; STRING post_transform; FLOATS coefficients intercepts; INTS classlabels_ints; STRINGS
    classlabels_strings
LinearRegressor: INT targets; STRING post_transform; FLOATS coefficients intercepts
Normalizer: STRING norm
OneHotEncoder: INT zeros; INTS cats_int64s; STRINGS cats_strings
SVMClassifier: STRING kernel_type post_transform; FLOATS coefficients kernel_params prob_a prob_b rho support_vectors;
    INTS classlabels_ints vectors_per_class; STRINGS classlabels_strings
SVMRegressor: INT n_supports one_class; STRING kernel_type post_transform; FLOATS coefficients kernel_params rho
    support_vectors
Scaler: FLOATS offset scale
TreeEnsemble: INT aggregate_function n_targets post_transform; TENSOR leaf_weights membership_values nodes_hitrates
    nodes_modes nodes_splits; INTS leaf_targetids nodes_falseleafs nodes_falsenodeids nodes_featureids
    nodes_missing_value_tracks_true nodes_trueleafs nodes_truenodeids tree_roots
TreeEnsembleClassifier: STRING post_transform; TENSOR base_values_as_tensor class_weights_as_tensor
    nodes_hitrates_as_tensor nodes_values_as_tensor; FLOATS base_values class_weights nodes_hitrates nodes_values; INTS
    class_ids class_nodeids class_treeids classlabels_int64s nodes_falsenodeids nodes_featureids
    nodes_missing_value_tracks_true nodes_nodeids nodes_treeids nodes_truenodeids; STRINGS classlabels_strings
    nodes_modes
TreeEnsembleRegressor: INT n_targets; STRING aggregate_function post_transform; TENSOR base_values_as_tensor
    nodes_hitrates_as_tensor nodes_values_as_tensor target_weights_as_tensor; FLOATS base_values nodes_hitrates
    nodes_values target_weights; INTS nodes_falsenodeids nodes_featureids nodes_missing_value_tracks_true nodes_nodeids
    nodes_treeids nodes_truenodeids target_ids target_nodeids target_treeids; STRINGS nodes_modes
ZipMap: INTS classlabels_int64s; STRINGS classlabels_strings
[ai.onnx.preview]
FlexAttention: FLOAT scale; INT softmax_precision; GRAPH prob_mod score_mod
[ai.onnx.preview.training]
Adagrad: FLOAT decay_factor epsilon norm_coefficient
Adam: FLOAT alpha beta epsilon norm_coefficient norm_coefficient_post
Gradient: STRING y; STRINGS xs zs
Momentum: FLOAT alpha beta norm_coefficient; STRING mode
"""
"""An operator in each line, with its attributes by type; a line in brackets names the domain of those below it."""


def _parse(table: str) -> dict[tuple[str, str], dict[str, int]]:
    found: dict[tuple[str, str], dict[str, int]] = {}
    domain = ""
    for line in table.replace("\n    ", " ").strip().split("\n"):
        if line.startswith("["):
            domain = line[1:-1]
            continue
        op_type, _, groups = line.partition(": ")
        named = [(name, ATTRIBUTE_TYPES[kind]) for kind, *names in map(str.split, groups.split(";")) for name in names]
        found[domain, op_type] = dict(sorted(named))
    return found


ATTRIBUTE_TYPES_BY_OPERATOR: Final = _parse(_TABLE)

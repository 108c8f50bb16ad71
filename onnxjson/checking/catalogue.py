"""All lint rules, one per line, and the families of the findings of ``check``."""

from typing import Final

from onnxjson.checking import element_checks as e
from onnxjson.checking import rule_checks as c
from onnxjson.checking.linting import Rule

_NORMALIZATIONS: Final = (
    "BatchNormalization InstanceNormalization LayerNormalization GroupNormalization RMSNormalization "
    "SimplifiedLayerNormalization com.microsoft::SkipLayerNormalization com.microsoft::LayerNormalization "
    "com.microsoft::SkipSimplifiedLayerNormalization"
)
_QUANTIZED: Final = "QuantizeLinear DequantizeLinear"
_PRUNE: Final = {"edit": "prune"}

ORT_IR: Final = 14
"""The newest IR version that onnxruntime 1.32 reads."""

ORT_OPSET: Final = 28
"""The newest version of ai.onnx that onnxruntime 1.32 implements."""

RULES: Final = (
    # structure
    Rule("ONJ101", "warning", "graph", 'no output depends on the node "{}"', c.unused_nodes, "remove it", _PRUNE),
    Rule("ONJ102", "warning", "graph", 'nothing uses the initializer "{}"', c.unused_initializers, "remove it", _PRUNE),
    Rule("ONJ103", "warning", "model", 'nothing calls the function "{}"', c.unused_functions, "remove it",
         {"edit": "prune", "what": ["functions"]}),
    Rule("ONJ104", "warning", "graph", 'nothing uses the input "{}"', c.unused_inputs, "remove it, or use it"),
    Rule("ONJ105", "warning", "graph", 'the output "{}" is an input or an initializer', c.passed_through),
    Rule("ONJ106", "warning", "node", "Identity has no effect", e.without_effect, "connect its input to its consumers"),
    Rule("ONJ107", "warning", "graph", "{} nodes compute constants", c.constant_computations,
         "a constant-folding pass removes them"),
    Rule("ONJ108", "warning", "Dropout", "Dropout has no effect in inference",
         lambda n: n.opset < 12 or (n.number(2) in (None, 0) and not n.name(2)), "remove it, or export in eval mode"),
    Rule("ONJ109", "warning", "If", "the condition is constant", lambda n: n.is_constant(0), "keep one branch"),
    Rule("ONJ110", "warning", "graph", '{} nodes compute the same as another node, such as "{}" and "{}"', c.twins,
         "keep one of them"),
    Rule("ONJ111", "warning", "graph", "{} initializers are also inputs, so no runtime may fold them", c.overridable,
         "remove these inputs"),
    Rule("ONJ112", "warning", "graph", "the graph has no nodes", lambda s: s[1].kind == "main" and not s[1].graph.node),
    Rule("ONJ114", "warning", "Transpose", "the node undoes the Transpose before it", e.is_inverse, "remove both"),
    Rule("ONJ115", "warning", "Reshape", "the node reshapes the output of a Reshape",
         lambda n: n.before(0, "Reshape") is not None and n.tensor(1) is not None and 0 not in n.array(1),
         "remove the first"),
    Rule("ONJ116", "error", "graph", "the model has no outputs",
         lambda s: s[1].kind == "main" and not s[1].graph.output),
    # types
    Rule("ONJ201", "warning", "value", "an input or output of the model has no type",
         lambda v: v.is_interface and v.value.type is None),
    Rule("ONJ202", "warning", "value", "the number of dimensions is not known", e.unknown_rank,
         "set it with set-shape"),
    Rule("ONJ203", "warning", "graph", "{} values have no type", c.missing_types, "", {"edit": "infer-shapes"}),
    Rule("ONJ204", "warning", "value", 'the dimension "{}" has a generated name', e.invented_name, "rename it"),
    Rule("ONJ205", "warning", "value", "a dimension of an input has neither size nor name", e.unnamed_dimension,
         "name it, to show which dimensions are equal"),
    Rule("ONJ206", "warning", "tensor", "a weight is float64", e.wide_weight,
         "float32 needs half the bytes and runs faster"),
    Rule("ONJ207", "error", "graph", 'the initializer "{}" does not have its declared type {}',
         c.contradicted_initializers),
    Rule("ONJ208", "warning", "Cast", "the Cast has no effect: its input is already {}", e.cast_to_the_same,
         "remove it"),
    Rule("ONJ209", "warning", "graph", 'value_info has a type for "{}", which does not exist', c.stale_types,
         "remove it"),
    Rule("ONJ210", "error", "graph", '"{}" has two declared types', c.repeated_types, "keep one"),
    Rule("ONJ212", "off", "value", "an input or output is {}", e.wide_interface, "some devices have no 64-bit types"),
    # opset
    Rule("ONJ301", "warning", "model", "the operator set has version {}; 13 is the oldest that tools test",
         lambda m: 0 < m.opsets.get("", 0) < 13 and m.opsets[""], "upgrade it with convert-opset"),
    Rule("ONJ302", "warning", "model", 'no node uses the imported domain "{}"', c.unused_imports, "remove the import"),
    Rule("ONJ303", "warning", "node", "the operator is deprecated since version {}", e.deprecated_since, "replace it"),
    Rule("ONJ304", "warning", "model", "the operator sets need IR version {}", c.needs_ir,
         "raise it with set-ir-version"),
    Rule("ONJ306", "warning", "model", 'the domain "{}" is not part of ONNX', c.foreign_domains,
         "runtimes need a custom-operator library for it"),
    Rule("ONJ307", "warning", "node", "the operator is from PyTorch, not from ONNX",
         lambda n: n.node.domain in ("aten", "org.pytorch.aten") or n.node.op_type == "ATen",
         "export it with ONNX operators"),
    # naming
    Rule("ONJ401", "off", "node", "the node has no name", lambda n: not n.node.name, "", {"edit": "name-nodes"}),
    Rule("ONJ402", "warning", "graph", 'two nodes have the name "{}"', c.repeated_names, "rename one"),
    Rule("ONJ403", "off", "value", '"{}" is a number, not a name', e.number_as_name,
         "name inputs and outputs when you export"),
    Rule("ONJ404", "warning", "graph", "the graph has no name", lambda s: s[1].kind == "main" and not s[1].graph.name),
    Rule("ONJ406", "warning", "value", 'the name "{}" has spaces or special characters', e.no_identifier,
         "some runtimes accept only identifiers"),
    Rule("ONJ407", "warning", "node", "the name has {} characters",
         lambda n: len(n.node.name or "") > 256 and len(n.node.name)),
    Rule("ONJ408", "warning", "model", "the model does not name its producer", lambda m: not m.model.producer_name),
    # numerics
    Rule("ONJ501", "error", _NORMALIZATIONS, "epsilon {:s} is zero in float16",
         lambda n: n.dtype(0) == "float16" and 0 < e.epsilon(n) < e.HALF_SMALLEST and f"{e.epsilon(n):.3g}",
         "float16 needs at least 6e-8"),
    Rule("ONJ502", "error", _NORMALIZATIONS, "epsilon is {:s}",
         lambda n: e.epsilon(n) <= 0 and f"{e.epsilon(n):.3g}",
         "use a positive epsilon; with a constant input, the node divides by zero"),
    Rule("ONJ503", "error", "tensor", "{} elements are NaN or infinite", e.count_not_finite),
    Rule("ONJ504", "off", "tensor", "{} elements are beyond 65504, infinite in float16", e.count_beyond_half),
    Rule("ONJ505", "error", "Div", "the divisor contains a zero",
         lambda n: (a := n.array(1)) is not None and not a.all() and a.size > 0),
    Rule("ONJ506", "error", "Clip", "the minimum {} is above the maximum {}", e.clip_limits),
    Rule("ONJ507", "warning", "Softmax LogSoftmax", "the axis has size 1, so the result is constant", e.softmax_of_one),
    Rule("ONJ508", "error", "BatchNormalization", "a variance is negative",
         lambda n: (a := n.array(4)) is not None and bool((a < 0).any())),
    Rule("ONJ509", "error", "node", "the attribute {} contains NaN or infinity", e.not_finite),
    Rule("ONJ511", "warning", "Conv ConvTranspose MatMul Gemm", "all weights are zero",
         lambda n: (a := n.array(1)) is not None and a.size > 1 and not a.any(), "the training may have failed"),
    Rule("ONJ512", "error", "Cast", "the new dtype cannot represent {} elements of the constant", e.lost_by_cast),
    Rule("ONJ514", "warning", "Dropout", "the ratio is {}", e.bad_ratio),
    # quantization
    Rule("ONJ601", "error", f"{_QUANTIZED} QLinearConv QLinearMatMul", 'the scale "{}" has {}', e.bad_scale,
         "scales must be positive"),
    Rule("ONJ603", "error", _QUANTIZED, "the zero point is {}, but the values are {}", e.zero_point_dtype),
    Rule("ONJ604", "error", _QUANTIZED, "the scales are for axis {}, but the input has {} dimensions", e.wrong_axis),
    Rule("ONJ605", "error", _QUANTIZED, "{} scales are given for {} channels", e.wrong_channels),
    Rule("ONJ606", "warning", "QuantizeLinear", "values are quantized again, with another scale or zero point",
         lambda n: e.back_and_forth(n, same=False)),
    Rule("ONJ607", "warning", "QuantizeLinear", "the node undoes the DequantizeLinear before it",
         lambda n: e.back_and_forth(n, same=True), "remove both"),
    Rule("ONJ608", "warning", "QuantizeLinear", "a constant is quantized in every run",
         lambda n: n.is_constant(0), "store it quantized"),
    Rule("ONJ609", "warning", "DequantizeLinear", "weights of int8 have a zero point", e.has_zero_point,
         "TensorRT and others need symmetric weights"),
    Rule("ONJ610", "error", "QLinearConv", "the bias is {}, not int32",
         lambda n: n.dtype(8) not in (None, "int32") and n.dtype(8)),
    Rule("ONJ611", "warning", "Conv MatMul Gemm", "weights are quantized, but the input is not", e.half_quantized,
         "the node computes in float"),
    Rule("ONJ612", "error", "com.microsoft::MatMulNBits", "the block size {} is not a power of 2 from 16",
         e.bad_block_size),
    # portability
    Rule("ONJ701", "warning", "model", f"IR version {{}} is too new: onnxruntime 1.32 reads up to {ORT_IR}",
         lambda m: (m.model.ir_version or 0) > ORT_IR and m.model.ir_version, "lower it with set-ir-version"),
    Rule("ONJ702", "warning", "model", f"version {{}} of ai.onnx is too new: onnxruntime 1.32 has up to {ORT_OPSET}",
         lambda m: m.opsets.get("", 0) > ORT_OPSET and m.opsets[""], "convert it with convert-opset"),
    Rule("ONJ703", "warning", "model", 'only onnxruntime has the operators of "{}"', c.runtime_domains),
    Rule("ONJ704", "warning", "value", "the type is not a tensor; TensorRT, CoreML and QNN support only tensors",
         lambda v: v.is_interface and v.value.type is not None and v.value.type.tensor_type is None),
    Rule("ONJ705", "warning", "value", "only CPUs support strings", e.has_strings),
    Rule("ONJ706", "off", "If Loop Scan", "the node has subgraphs, which QNN and others do not run", lambda _: True),
    Rule("ONJ707", "off", "value", "the size of a dimension is not fixed; NPUs need fixed sizes", e.open_size,
         "fix it with set-dim"),
    Rule("ONJ708", "warning", "value", "the value has {} dimensions; TensorRT supports at most 8",
         lambda v: len(v.dims) > 8 and len(v.dims)),
    Rule("ONJ709", "warning", "Resize", "few runtimes implement the mode {}", e.rare_resize_mode),
    Rule("ONJ710", "warning", "Conv ConvTranspose MaxPool AveragePool", "auto_pad needs known sizes",
         lambda n: str(n.attributes.get("auto_pad", "")).startswith("SAME"), "write the pads"),
    Rule("ONJ711", "error", "BatchNormalization", "the node is in training mode",
         lambda n: n.attributes.get("training_mode") == 1, "export in eval mode"),
    Rule("ONJ712", "warning", "model", "inference runtimes ignore training_info",
         lambda m: m.model.training_info != ()),
    Rule("ONJ713", "warning", "graph", "few runtimes read sparse initializers",
         lambda s: bool(s[1].sparse_initializers)),
    Rule("ONJ714", "warning", "NonMaxSuppression NonZero Unique Compress", "the size of the result depends on the data",
         lambda n: not n.is_constant(0), "TensorRT and NPUs allocate the maximum, or refuse the node"),
    # size
    Rule("ONJ801", "warning", "model", '"{}" has the same bytes as "{}" ({} bytes)', c.copies, "keep one of them",
         {"edit": "deduplicate-initializers"}),
    Rule("ONJ802", "warning", "tensor", "a Constant has {} bytes",
         lambda t: not t.is_weight and t.bytes > 16384 and t.bytes, "make it an initializer",
         {"edit": "constants-to-initializers"}),
    Rule("ONJ803", "error", "model", "{} bytes are in the model file; protobuf reads at most 2 GiB", c.inline_bytes,
         "use external data"),
    Rule("ONJ804", "warning", "model", "doc strings and metadata have {} characters", c.text_bytes,
         "remove them with strip",
         {"edit": "strip", "what": ["doc_strings", "metadata"]}),
    Rule("ONJ805", "warning", "tensor", "all elements are the same", e.is_filled,
         "use ConstantOfShape, which needs no bytes"),
    Rule("ONJ806", "warning", "tensor", "int64 elements fit into int32", e.fits_int32),
    Rule("ONJ807", "warning", "tensor", "float16 represents every element exactly", e.fits_half,
         "convert it with cast-tensor"),
    Rule("ONJ808", "warning", "tensor", "the elements are in a typed field",
         lambda t: t.bytes >= 4096 and len(t.tensor.int32_data) + len(t.tensor.int64_data) > 0,
         "store them in raw_data, which is smaller"),
    Rule("ONJ809", "warning", "tensor", "only {} bytes are in another file", e.small_file,
         "keep small tensors, such as shapes, in the model"),
    # security
    Rule("ONJ901", "error", "model", '"{}" is in {}, outside the folder of the model', c.bad_locations),
    Rule("ONJ902", "error", "model", "the external data file {} is missing or not allowed", c.missing_files),
    Rule("ONJ903", "error", "node", 'the name "{}" has invisible characters',
         lambda n: next((each for each in (n.node.name, *n.node.output) if each and e.is_hidden(each)), None)),
    Rule("ONJ904", "warning", "model", "a text contains the path {} of the exporting machine ({} texts)", c.local_paths,
         "remove it with strip"),
    Rule("ONJ905", "error", "model", "a text looks like a secret: {} ({} texts)",
         c.secrets, "revoke it"),
    Rule("ONJ906", "error", "node", "the operator runs Python code",
         lambda n: n.node.op_type in ("PyOp", "PythonOp", "PyCustomOp")),
    Rule("ONJ907", "error", "model", 'the external bytes of "{}" overlap those of "{}"', c.overlaps),
    Rule("ONJ908", "warning", "ConstantOfShape Expand Tile", "the result has {} elements", e.huge_result,
         "a run needs much more memory than the file"),
    Rule("ONJ909", "warning", "Loop", "the loop runs {} times",
         lambda n: (count := n.number(0)) is not None and 1e6 < count < 2**62 and int(count)),
)  # fmt: skip
"""Every rule, by its code."""

_OF_TEXTS: Final = {
    "types": "undefined-dtype negative-dim several-payloads wrong-storage input-dtype check-shapes suspicious-name "
    "bad-type unknown-dtype wrong-count wrong-length bad-storage attribute-type "
    "wrong-attribute-value wrong-attribute-field",
    "opset": "no-ir-version missing-opset duplicate-opset unknown-opset unknown-domain unknown-operator "
    "unknown-attribute missing-attribute input-count output-count missing-input",
    "naming": "missing-name duplicate-name",
    "security": "missing-location unusable-blob",
    "change": "interface-breaking interface-compatible outputs-differ",
}

_FAMILY: Final = {code: family for family, codes in _OF_TEXTS.items() for code in codes.split()} | {
    rule.code: rule.family for rule in RULES
}


def family_of(code: str) -> str:
    """Return the family of a code; findings of ``check`` that are in no other are about the structure."""
    return _FAMILY.get(code, "structure")

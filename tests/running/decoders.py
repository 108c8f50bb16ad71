"""A decoder in the layout of onnxruntime-genai: attention with a cache, and 4-bit weights."""

from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

_HEADS, _HEAD, _WORDS, _BLOCK = 2, 16, 40, 32
_WIDTH = _HEADS * _HEAD


def genai_decoder(layers: int = 2, *, seed: int = 0, scale: float = 1.0) -> onnx.ModelProto:
    """GroupQueryAttention over the whole cache, MatMulNBits, and the lengths computed from the mask."""
    numbers = np.random.default_rng(seed)
    nodes: list[NodeProto] = []
    constants = {
        "embed": numbers.standard_normal((_WORDS, _WIDTH)).astype(np.float32), "norm": np.ones(_WIDTH, np.float32),
        "axis": np.array([1]), "one": np.array([1]), "at": np.array(1),
        "cos": np.ones((64, _HEAD // 2), np.float32), "sin": np.zeros((64, _HEAD // 2), np.float32),
    }  # fmt: skip

    def node(operator: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any) -> str:
        name = f"/{outputs[0]}/{operator}"
        nodes.append(helper.make_node(operator, inputs, outputs, name, domain=domain, **attributes))
        return outputs[0]

    def linear(name: str, given: str, inner: int, outer: int) -> str:
        blocks = inner // _BLOCK
        constants[f"{name}.qweight"] = numbers.integers(0, 256, (outer, blocks, _BLOCK // 2), np.uint8)
        constants[f"{name}.scales"] = (numbers.uniform(0.01, 0.05, (outer, blocks)) * scale).astype(np.float32)
        inputs = [given, f"{name}.qweight", f"{name}.scales"]
        sizes = {"K": inner, "N": outer, "bits": 4, "block_size": _BLOCK}
        return node("MatMulNBits", inputs, [f"{name}.out"], "com.microsoft", **sizes)

    def cast(given: str, out: str) -> str:
        return node("Cast", [given], [out], to=TensorProto.INT32)

    total = node("ReduceSum", ["attention_mask", "axis"], ["tokens"], keepdims=0)
    lengths = cast(node("Sub", [total, "one"], ["last"]), "seqlens_k")
    whole = cast(node("Gather", [node("Shape", ["attention_mask"], ["mask_shape"]), "at"], ["mask_length"]), "total")
    last = node("Gather", ["embed", "input_ids"], ["hidden"])
    pasts, presents = [], []
    for number in range(layers):
        name = f"model.layers.{number}"
        normed = node("SimplifiedLayerNormalization", [last, "norm"], [f"{name}.normed"], axis=-1, epsilon=1e-5)
        parts = [linear(f"{name}.{part}_proj", normed, _WIDTH, _WIDTH) for part in "qkv"]
        cache = [f"{number}.{kind}" for kind in ("key", "value")]
        pasts += [f"past_key_values.{each}" for each in cache]
        presents += [f"present.{each}" for each in cache]
        mixed = node(
            "GroupQueryAttention", [*parts, *pasts[-2:], lengths, whole, "cos", "sin"],
            [f"{name}.attention", *presents[-2:]], "com.microsoft", num_heads=_HEADS, kv_num_heads=_HEADS, do_rotary=1,
        )  # fmt: skip
        last = node("Add", [last, linear(f"{name}.o_proj", mixed, _WIDTH, _WIDTH)], [f"{name}.hidden"])
    linear("lm_head", last, _WIDTH, _WORDS)
    nodes[-1].output[0] = "logits"
    value, ids = helper.make_tensor_value_info, TensorProto.INT64
    inputs = [value("input_ids", ids, ["batch_size", "sequence_length"])]
    inputs.append(value("attention_mask", ids, ["batch_size", "total_sequence_length"]))
    shape: list[Any] = ["batch_size", _HEADS, "past_sequence_length", _HEAD]
    inputs += [value(each, TensorProto.FLOAT, shape) for each in pasts]
    outputs = [value("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", _WORDS])]
    shape = ["batch_size", _HEADS, "total_sequence_length", _HEAD]
    outputs += [value(each, TensorProto.FLOAT, shape) for each in presents]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "main_graph", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)

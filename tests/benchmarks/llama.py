"""A decoder like LLaMA of any size, with its weights in files next to it.

The graph is that of an exporter: normalization, rotation and attention in their small operators, weights as stored by
PyTorch, transposed where they are used. With `sparse` the data files have holes instead of weights, so that a model
of 140 GB occupies 1 MB of the disk.
"""

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

_BLOCK: Final = 1 << 20
_ALIGNMENT: Final = 4096


class Llama(NamedTuple):
    """The sizes of a model."""

    layers: int = 2
    hidden: int = 32
    inner: int = 48
    vocabulary: int = 100
    heads: int = 4
    dtype: int = TensorProto.FLOAT
    transposed: bool = True
    """Whether linear layers transpose their weights, as exporters that fold no constants write them."""


def graph(sizes: Llama) -> tuple[onnx.ModelProto, dict[str, tuple[int, ...]]]:
    """The model without its weights, and their shapes by name."""
    built = _Builder(sizes)
    return built.model(), built.weights


class _Builder:
    def __init__(self, sizes: Llama) -> None:
        self.sizes = sizes
        self.weights: dict[str, tuple[int, ...]] = {}
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._dtype = helper.tensor_dtype_to_np_dtype(sizes.dtype)

    def model(self) -> onnx.ModelProto:
        sizes = self.sizes
        head = sizes.hidden // sizes.heads
        self._weight("embed.weight", sizes.vocabulary, sizes.hidden)
        for name, value in (
            ("two", 2.0),
            ("eps", 1e-5 if sizes.dtype == TensorProto.FLOAT else 1e-3),
            ("scale", head**-0.5),
        ):
            self._constants.append(numpy_helper.from_array(np.array(value, self._dtype), name))
        for name, ints in (
            ("split", [0, 0, sizes.heads, head]), ("join", [0, 0, sizes.hidden]), ("zero", [0]), ("half", [head // 2]),
            ("end", [head]), ("last", [-1]),
        ):  # fmt: skip
            self._constants.append(numpy_helper.from_array(np.array(ints, np.int64), name))
        angles = np.arange(64)[:, None] / 10000 ** (np.arange(0, head, 2) / head)[None]
        for name, table in (("cos", np.cos), ("sin", np.sin)):
            whole = np.concatenate([table(angles)] * 2, axis=1).astype(self._dtype)
            self._constants.append(numpy_helper.from_array(whole, f"{name}_table"))
        self._node("Gather", ["embed.weight", "input_ids"], "hidden", axis=0)
        for name in ("cos", "sin"):
            self._node("Gather", [f"{name}_table", "position_ids"], name, axis=0)
            self._node("Unsqueeze", [name, self._axis(1)], f"{name}_u")
        last, outputs = "hidden", []
        for number in range(sizes.layers):
            last, present = self._layer(f"layers.{number}", number, last)
            outputs += present
        self._linear("lm_head", self._norm("norm", last), "logits", sizes.hidden, sizes.vocabulary)
        cache = [sizes.heads, None, head]
        value = helper.make_tensor_value_info
        ids = [value(name, TensorProto.INT64, ["batch", "seq"]) for name in ("input_ids", "position_ids")]
        ids.append(value("attention_mask", sizes.dtype, ["batch", 1, "seq", "total"]))
        pasts = [
            value(f"past_key_values.{number}.{kind}", sizes.dtype, ["batch", cache[0], "past", head])
            for number in range(sizes.layers)
            for kind in ("key", "value")
        ]
        made = [value("logits", sizes.dtype, ["batch", "seq", sizes.vocabulary])]
        made += [value(name, sizes.dtype, ["batch", cache[0], "total", head]) for name in outputs]
        body = helper.make_graph(self._nodes, "llama", [*ids, *pasts], made, self._constants)
        return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)

    def _layer(self, name: str, number: int, last: str) -> tuple[str, list[str]]:
        sizes = self.sizes
        normed = self._norm(f"{name}.input_norm", last)
        heads = {}
        for kind in ("q", "k", "v"):
            made = self._linear(f"{name}.{kind}_proj", normed, f"{name}.{kind}", sizes.hidden, sizes.hidden)
            split = self._node("Reshape", [made, "split"], f"{made}.split")
            heads[kind] = self._node("Transpose", [split], f"{made}.heads", perm=[0, 2, 1, 3])
        present = []
        for kind, word in (("k", "key"), ("v", "value")):
            given = self._rotated(heads[kind]) if kind == "k" else heads[kind]
            out = f"present.{number}.{word}"
            present.append(self._node("Concat", [f"past_key_values.{number}.{word}", given], out, axis=2))
        keys = self._node("Transpose", [present[0]], f"{name}.kt", perm=[0, 1, 3, 2])
        scores = self._node("MatMul", [self._rotated(heads["q"]), keys], f"{name}.qk")
        scaled = self._node("Mul", [scores, "scale"], f"{name}.scaled")
        masked = self._node("Add", [scaled, "attention_mask"], f"{name}.masked")
        weights = self._node("Softmax", [masked], f"{name}.softmax", axis=-1)
        mixed = self._node("MatMul", [weights, present[1]], f"{name}.mixed")
        joined = self._node("Transpose", [mixed], f"{name}.joined", perm=[0, 2, 1, 3])
        flat = self._node("Reshape", [joined, "join"], f"{name}.flat")
        out = self._linear(f"{name}.o_proj", flat, f"{name}.o", sizes.hidden, sizes.hidden)
        added = self._node("Add", [last, out], f"{name}.attended")
        normed = self._norm(f"{name}.post_norm", added)
        gate = self._linear(f"{name}.gate_proj", normed, f"{name}.gate", sizes.hidden, sizes.inner)
        up = self._linear(f"{name}.up_proj", normed, f"{name}.up", sizes.hidden, sizes.inner)
        sigmoid = self._node("Sigmoid", [gate], f"{name}.sigmoid")
        product = self._node("Mul", [self._node("Mul", [gate, sigmoid], f"{name}.silu"), up], f"{name}.product")
        down = self._linear(f"{name}.down_proj", product, f"{name}.down", sizes.inner, sizes.hidden)
        return self._node("Add", [added, down], f"{name}.out"), present

    def _rotated(self, heads: str) -> str:
        first = self._node("Slice", [heads, "zero", "half", "last"], f"{heads}.first")
        second = self._node("Slice", [heads, "half", "end", "last"], f"{heads}.second")
        turned = self._node("Concat", [self._node("Neg", [second], f"{second}.neg"), first], f"{heads}.turned", axis=-1)
        one = self._node("Mul", [heads, "cos_u"], f"{heads}.cos")
        other = self._node("Mul", [turned, "sin_u"], f"{heads}.sin")
        return self._node("Add", [one, other], f"{heads}.rotated")

    def _norm(self, name: str, last: str) -> str:
        square = self._node("Pow", [last, "two"], f"{name}.pow")
        mean = self._node("ReduceMean", [square], f"{name}.mean", axes=[-1])
        root = self._node("Sqrt", [self._node("Add", [mean, "eps"], f"{name}.eps")], f"{name}.sqrt")
        self._weight(f"{name}.weight", self.sizes.hidden)
        return self._node("Mul", [f"{name}.weight", self._node("Div", [last, root], f"{name}.div")], f"{name}.out")

    def _linear(self, name: str, last: str, out: str, size: int, made: int) -> str:
        weight = f"{name}.weight"
        if self.sizes.transposed:
            self._weight(weight, made, size)
            weight = self._node("Transpose", [weight], f"{weight}.t", perm=[1, 0])
        else:
            self._weight(weight, size, made)
        return self._node("MatMul", [last, weight], out)

    def _axis(self, axis: int) -> str:
        name = f"axis_{axis}"
        if all(each.name != name for each in self._constants):
            self._constants.append(numpy_helper.from_array(np.array([axis], np.int64), name))
        return name

    def _weight(self, name: str, *dims: int) -> None:
        self.weights[name] = dims

    def _node(self, operator: str, inputs: list[str], out: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [out], f"/{out}/{operator}", **attributes))
        return out


def small(sizes: Llama = Llama(), seed: int = 0) -> onnx.ModelProto:  # noqa: B008 - a constant
    """The model with random weights in it."""
    model, weights = graph(sizes)
    numbers = np.random.default_rng(seed)
    dtype = helper.tensor_dtype_to_np_dtype(sizes.dtype)
    for name, dims in weights.items():
        scale = 1.0 if len(dims) == 1 else 0.2
        array = (numbers.standard_normal(dims) * scale).astype(dtype)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def write(path: Path, sizes: Llama, *, sparse: bool = False, shards: int = 1, seed: int = 0) -> int:
    """Write the model and its data files; return the bytes of its weights."""
    model, weights = graph(sizes)
    width = helper.tensor_dtype_to_np_dtype(sizes.dtype).itemsize
    groups = [list(weights)[number::shards] for number in range(shards)]
    noise = random.Random(seed).randbytes(_BLOCK) if sizes.dtype == TensorProto.INT8 else _noise(sizes.dtype, seed)
    total = 0
    for number, names in enumerate(groups):
        suffix = "" if shards == 1 else f"-{number + 1:05}-of-{shards:05}"
        place = path.with_name(f"{path.stem}{suffix}.data")
        with place.open("wb") as file:
            for name in names:
                start = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
                length = math.prod(weights[name]) * width
                file.seek(start)
                if sparse:
                    file.truncate(start + length)
                    file.seek(start + length)
                else:
                    for piece in _pieces(noise, length, shift=len(name) * 64):
                        file.write(piece)
                total += length
                tensor = model.graph.initializer.add(name=name, data_type=sizes.dtype, dims=weights[name])
                tensor.data_location = TensorProto.EXTERNAL
                for key, value in (("location", place.name), ("offset", start), ("length", length)):
                    tensor.external_data.add(key=key, value=str(value))
    path.write_bytes(model.SerializeToString())
    return total


def _noise(dtype: int, seed: int) -> bytes:
    array = np.random.default_rng(seed).standard_normal(_BLOCK // 4) * 0.05
    return array.astype(helper.tensor_dtype_to_np_dtype(dtype)).tobytes()


def _pieces(noise: bytes, length: int, shift: int) -> Iterator[bytes]:
    noise = noise[shift % len(noise) :] + noise[: shift % len(noise)]
    for start in range(0, length, len(noise)):
        yield noise[: length - start]

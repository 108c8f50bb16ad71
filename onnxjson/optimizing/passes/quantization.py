"""quantize-dynamic, quantize-static and quantize-weights: the quantizers of onnxruntime.

https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
"""

import contextlib
import io
import itertools
import logging
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from msgspec import field

from onnxjson.codecs import serde
from onnxjson.editing.parameters import about
from onnxjson.model.document import Tensor
from onnxjson.model.errors import FeedError
from onnxjson.optimizing.passes.declaration import (
    WRITTEN,
    consumed_names,
    dtypes_and_operators,
    graphs,
    is_installed,
    proto_of,
    refill,
    require,
    require_converted,
    sorted_model,
)
from onnxjson.optimizing.passes.measuring import Feed, MeasuredPass, samples
from onnxjson.optimizing.passes.onnxruntime import Sessions
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.values import as_array

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

Width = Literal["int8", "uint8", "int16", "uint16", "int4", "uint4"]

_BIASED: Final = ("Conv", "ConvTranspose", "Gemm")
_BIAS: Final = 2

_QDQ_SINCE: Final = 21
"""Version of the operator set with int4, and with blocks in DequantizeLinear."""

_METHODS: Final = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}

_STAMPS: Final = ("onnx.infer", "onnx.quant.pre_process")


class _Quantize(MeasuredPass, frozen=True, kw_only=True, eq=False):
    """Options of both quantizers."""

    packages: ClassVar = ("onnxruntime",)
    needs_constants: ClassVar = "it loads a copy of the whole model"

    weight_type: Annotated[Width, about("Type of quantized weights.")] = "int8"
    per_channel: Annotated[bool, about("Use one scale per channel of a weight.")] = False
    reduce_range: Annotated[
        bool, about("Use 7 bits, to avoid overflow on processors with AVX2 and AVX512 but without VNNI.")
    ] = False
    operators: Annotated[tuple[str, ...], about("Operators to quantize; all supported if omitted.")] = ()
    nodes: Annotated[tuple[str, ...], about("Names of nodes to quantize; all if omitted.")] = ()
    skip_nodes: Annotated[tuple[str, ...], about("Names of nodes to exclude.")] = ()
    preprocess: Annotated[
        bool,
        about(
            "Let onnxruntime optimize first, level basic, as it recommends: weights produced by nodes can "
            "then be quantized, and normalizations are fused into Conv."
        ),
    ] = True
    more: Annotated[dict[str, Any], about("Other options of onnxruntime by name: more={WeightSymmetric: false}.")] = (
        field(default_factory=dict)
    )

    def _common(self) -> dict[str, Any]:
        return {
            "per_channel": self.per_channel,
            "reduce_range": self.reduce_range,
            "weight_type": _width(self.weight_type),
            "nodes_to_quantize": list(self.nodes) or None,
            "nodes_to_exclude": list(self.skip_nodes) or None,
        }

    def _prepared(self, model: bytes, folder: Path) -> "ModelProto":
        if self.preprocess:
            model = Sessions(model, folder, "basic").optimized()
        proto = proto_of(model)
        # The quantizer transposes initializers but not their types, and shape inference then rejects the model.
        constants = {tensor.name for tensor in proto.graph.initializer}
        refill(proto.graph.value_info, [value for value in proto.graph.value_info if value.name not in constants])
        known = {node.name for node in proto.graph.node}
        for name in (*self.nodes, *self.skip_nodes):
            if name not in known:
                raise FeedError(f'there is no node "{name}"')
        return proto

    def _finished(self, model: bytes, path: Path, prepared: Counter[str | int]) -> bytes:
        before, after = proto_of(model), proto_of(path.read_bytes())
        require_converted(prepared, after, "operator that it can quantize")
        stamps = {*_STAMPS}.difference([each.key for each in before.metadata_props])
        refill(after.metadata_props, [each for each in after.metadata_props if each.key not in stamps])
        used = {each.domain for each in before.opset_import} | {
            node.domain for graph in graphs(after.graph) for node in graph.node
        }
        refill(after.opset_import, [each for each in after.opset_import if each.domain in used])
        return sorted_model(bytes(after.SerializeToString()))


class QuantizeDynamic(_Quantize, frozen=True, kw_only=True, eq=False, tag="quantize-dynamic"):
    """Quantize weights to integers; activations are quantized while the model runs.

    No input values are needed to quantize; samples are only used to measure the error of each output.
    """

    constants: ClassVar = "files"

    def run(self, model: bytes, folder: Path) -> bytes:
        from onnxruntime.quantization import quantize_dynamic
        from onnxruntime.quantization.registry import IntegerOpsRegistry

        path = folder / WRITTEN.removesuffix(".data")
        operators = list(self.operators) or sorted(IntegerOpsRegistry)
        options = {"MatMulConstBOnly": True, **self.more}
        with _quietly(), _weights_in_files():
            proto = self._prepared(model, folder)
            prepared = dtypes_and_operators(proto)
            is_big = any([each.data_location == each.EXTERNAL for each in proto.graph.initializer])
            quantize_dynamic(
                proto, path, operators, extra_options=options, use_external_data_format=is_big, **self._common()
            )
        return self._finished(model, path, prepared)


class QuantizeStatic(_Quantize, frozen=True, kw_only=True, eq=False, tag="quantize-static"):
    """Quantize weights and activations to integers, in ranges calibrated on samples.

    Random samples give ranges for random values; real samples in `data` give a smaller error.
    """

    needs_constants: ClassVar = "it runs the model on samples"

    format: Annotated[
        Literal["qdq", "qoperator"],
        about("qdq: QuantizeLinear and DequantizeLinear around operators. qoperator: QLinearConv and such."),
    ] = "qdq"
    activation_type: Annotated[Width, about("Type of quantized activations.")] = "uint8"
    method: Annotated[Literal["minmax", "entropy", "percentile"], about("Method to compute ranges from samples.")] = (
        "minmax"
    )

    def run(self, model: bytes, folder: Path) -> bytes:
        from onnxruntime.quantization import CalibrationMethod, QuantFormat, quantize_static
        from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

        path = folder / "quantized.onnx"
        parsed = serde.parse(model).model
        feeds = [feed for feed, _ in samples(self, TwoModels(parsed, parsed), model)[0]]
        operators = list(self.operators) or sorted({*QLinearOpsRegistry, *QDQRegistry})
        with _quietly():
            proto = self._prepared(model, folder)
            prepared = dtypes_and_operators(proto)
            _give_biases_copies(proto.graph)
            quantize_static(
                proto,
                path,
                _reader(feeds),
                quant_format=QuantFormat.QDQ if self.format == "qdq" else QuantFormat.QOperator,
                op_types_to_quantize=operators,
                activation_type=_width(self.activation_type),
                calibrate_method=CalibrationMethod[_METHODS[self.method]],
                extra_options=self.more,
                **self._common(),
            )
        return self._finished(model, path, prepared)


class QuantizeWeights(MeasuredPass, frozen=True, kw_only=True, eq=False, tag="quantize-weights"):
    """Quantize the constant weights of MatMul to 2, 4 or 8 bits, with a scale for each block.

    The result has MatMulNBits, an operator of onnxruntime. No input values are needed, only to measure the error.
    """

    packages: ClassVar = ("onnxruntime",)
    constants: ClassVar = "files"

    method: Annotated[
        Literal["blocks", "rtn", "hqq"],
        about(
            "blocks: by onnxruntime's own kernels. rtn: round to nearest, as Intel Neural Compressor. "
            "hqq: half-quadratic, which needs torch."
        ),
    ] = "blocks"
    bits: Annotated[int, about("Bits of a weight: 2, 4 or 8; 4 for rtn.", ge=2, le=8)] = 4
    block_size: Annotated[int, about("Number of weights with one scale, a power of 2.", ge=16)] = 32
    symmetric: Annotated[bool, about("Omit zero points.")] = True
    accuracy_level: Annotated[
        int, about("Minimum precision of inputs: 1 float32, 2 float16, 3 bfloat16, 4 int8.", ge=0, le=4)
    ] = 0
    format: Annotated[
        Literal["qoperator", "qdq"],
        about("qoperator: MatMulNBits. qdq: DequantizeLinear and MatMul, with blocks, from opset 21."),
    ] = "qoperator"
    operators: Annotated[tuple[Literal["MatMul", "Gather"], ...], about("Operators to quantize.")] = ("MatMul",)
    skip_nodes: Annotated[tuple[str, ...], about("Names of nodes to exclude.")] = ()

    def run(self, model: bytes, folder: Path) -> bytes:
        from onnx import helper

        if self.method == "hqq" and not is_installed("torch"):
            raise ValueError("hqq needs torch; pip install torch")
        with _quietly():
            from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

            proto = proto_of(model)
            opset = next((each.version for each in proto.opset_import if not each.domain), 0)
            if opset < _QDQ_SINCE and (self.format == "qdq" or "Gather" in self.operators):
                # The quantizer would only write another number.
                what = "qdq" if self.format == "qdq" else "Gather"
                raise ValueError(f"{what} needs opset {_QDQ_SINCE}, not {opset}; run convert-opset first")
            require(self.skip_nodes, [node.name for node in proto.graph.node], "node")
            before = dtypes_and_operators(proto)
            quantizer = MatMulNBitsQuantizer(
                proto, self.bits, self.block_size, self.symmetric, None, self.skip_nodes, algo_config=self._method()
            )
            quantizer.process()
        quantized = quantizer.model.model
        require_converted(before, quantized, f"{' or '.join(self.operators)} to quantize that has a constant weight")
        used = {node.domain for graph in graphs(quantized.graph) for node in graph.node}
        missing = used - {each.domain for each in quantized.opset_import} - {""}
        quantized.opset_import.extend([helper.make_opsetid(domain, 1) for domain in missing])
        return bytes(quantized.SerializeToString())

    def _method(self) -> Any:
        from onnxruntime.quantization import QuantFormat
        from onnxruntime.quantization import matmul_nbits_quantizer as methods

        if self.method != "blocks" and (self.format == "qdq" or (self.method == "rtn" and self.bits != 4)):
            raise ValueError(f"{self.method} only makes MatMulNBits{' of 4 bits' if self.method == 'rtn' else ''}")
        if self.method == "rtn":
            return methods.RTNWeightOnlyQuantConfig(op_types_to_quantize=self.operators)
        if self.method == "hqq":
            return methods.HQQWeightOnlyQuantConfig(self.block_size, self.bits, op_types_to_quantize=self.operators)
        form = QuantFormat.QDQ if self.format == "qdq" else QuantFormat.QOperator
        return methods.DefaultWeightOnlyQuantConfig(
            self.block_size, self.symmetric, self.accuracy_level, form, self.operators, bits=self.bits
        )


def _give_biases_copies(graph: "GraphProto") -> None:
    """Give each Conv and Gemm its own copy of a shared bias.

    A bias is quantized to int32 with the scales of its node. The quantizer keeps one result per initializer, so where
    exporters stored equal tensors once, a node would get the bias of another node, with another scale or dtype.
    """
    constants = {tensor.name: tensor for tensor in graph.initializer}
    uses = Counter(consumed_names(graph))
    taken = {*uses, *constants, *(name for node in graph.node for name in node.output)}
    for node in graph.node:
        if node.op_type not in _BIASED or len(node.input) <= _BIAS or uses[node.input[_BIAS]] < 2:
            continue
        name = node.input[_BIAS]
        if name not in constants:
            continue
        fresh = next(each for number in itertools.count(1) if (each := f"{name}_{number}") not in taken)
        taken.add(fresh)
        uses[name] -= 1
        graph.initializer.add().CopyFrom(constants[name])
        graph.initializer[-1].name = fresh
        node.input[_BIAS] = fresh


def _width(name: Width) -> Any:
    from onnxruntime.quantization import QuantType

    return getattr(QuantType, f"QUInt{name[4:]}" if name.startswith("u") else f"QInt{name[3:]}")


def _reader(feeds: Sequence[Feed]) -> Any:
    from onnxruntime.quantization import CalibrationDataReader

    for name, value in [item for feed in feeds for item in feed.items()]:
        if not isinstance(value, Tensor):
            raise FeedError(f'the input "{name}" is not a tensor and cannot be calibrated')
    left = iter([{name: as_array(value) for name, value in feed.items()} for feed in feeds])

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Any] | None:
            return next(left, None)

    return Reader()


@contextlib.contextmanager
def _weights_in_files() -> Iterator[None]:
    """Let the quantizer infer shapes without a copy of the model in files, and so without reading all its weights.

    It then reads each weight that it quantizes from its file; the others stay there.
    """
    from onnx import shape_inference
    from onnxruntime.quantization import onnx_quantizer, quant_utils, quantize_dynamic

    def inferred(model: "ModelProto") -> "ModelProto":
        made = shape_inference.infer_shapes(model)
        quant_utils.add_infer_metadata(made)
        return made

    name = "save_and_reload_model_with_shape_infer"
    modules = onnx_quantizer, sys.modules[quantize_dynamic.__module__]
    originals = [(module, getattr(module, name)) for module in modules]
    try:
        for module in modules:
            setattr(module, name, inferred)
        yield
    finally:
        for module, original in originals:
            setattr(module, name, original)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Suppress the advice that the quantizer prints for every model."""
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)

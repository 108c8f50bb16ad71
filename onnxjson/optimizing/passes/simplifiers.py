"""onnxsim, onnxslim and onnxoptimizer: constant folding, fusion and elimination.

https://github.com/onnx/optimizer has the C++ passes of the ONNX project, here with the names of version 0.4.2;
https://github.com/onnxsim/onnxsim, version 0.8.1, has its own onnxoptimizer; https://github.com/inisis/OnnxSlim is
version 0.1.98.
"""

from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import field

from onnxjson.codecs import serde
from onnxjson.editing.parameters import Role, about
from onnxjson.optimizing.passes.declaration import DRAWING, READING, PartStage, Pass, parts_of, proto_of, require
from onnxjson.running.input_files import read_archive
from onnxjson.running.inputs import free_inputs
from onnxjson.running.values import as_array

_STAMPS: Final = "onnxsim."
"""Prefix of the metadata keys that onnxsim adds about its own run."""


Stage = Literal[
    "constant_folding", "graph_fusion", "dead_node_elimination", "subexpression_elimination", "weight_tying"
]
Pattern = Literal[
    "EliminationConcat", "EliminationReshape", "EliminationReshapeAs", "EliminationSlice", "EliminationTranspose",
    "EliminationTransposeAsReshape", "EliminationTransposeViewTranspose", "EliminationUnsqueeze", "FusionConcatReshape",
    "FusionConvAdd", "FusionConvBN", "FusionConvMul", "FusionConvTransposeAdd", "FusionConvTransposeBN",
    "FusionConvTransposeMul", "FusionGemm", "FusionGemmAdd", "FusionGemmMul", "FusionPadConv", "FusionReduce",
]  # fmt: skip


class Onnxsim(Pass, frozen=True, kw_only=True, eq=False, tag="onnxsim"):
    """Simplify with onnxsim: fold constants, infer shapes and optimize until nothing changes."""

    packages: ClassVar = ("onnxsim",)
    constants: ClassVar = "inputs"
    extra: ClassVar = "passes"

    fold: Annotated[bool, about("Fold constants.")] = True
    infer_shapes: Annotated[bool, about("Infer shapes, so that more can be folded.")] = True
    optimize: Annotated[bool, about("Also run its optimizer.")] = True
    skip: Annotated[tuple[str, ...], about("Passes of its optimizer to omit.")] = ()
    more: Annotated[
        tuple[str, ...], about("Additional passes of its optimizer; see onnxsim --list-other-optimizers.")
    ] = ()
    subgraphs: Annotated[bool, about("Also simplify the bodies of If, Loop and Scan.")] = False
    inline_functions: Annotated[bool, about("Inline the functions of the model first.")] = False
    input_shapes: Annotated[dict[str, tuple[int, ...]], about("Fixed shapes of inputs: {image:[1,3,224,224]}.")] = (
        field(default_factory=dict)
    )
    unused_outputs: Annotated[tuple[str, ...], about("Outputs to remove.")] = ()
    large_tensor: Annotated[str, about("Do not fold nodes with larger outputs, such as 10KB.", min_length=1)] = "1.5GB"
    check: Annotated[int, about("Number of random inputs for a check that outputs stay the same.", ge=0)] = 0
    check_rtol: Annotated[float, about("Relative tolerance of check.", ge=0)] = 1e-4
    check_atol: Annotated[float, about("Absolute tolerance of check.", ge=0)] = 1e-5
    check_shapes: Annotated[
        dict[str, tuple[int, ...]], about("Shapes of inputs for check; the model keeps its own.")
    ] = field(default_factory=dict)
    check_data: Annotated[
        str | None, Role("file"), about("A .npz file with inputs for check, by name.", min_length=1)
    ] = None
    constant_weights: Annotated[
        bool, about("Treat initializers as constants; otherwise, nothing is folded into them.")
    ] = True
    weights_are_inputs: Annotated[
        bool, about("Keep initializers that are also inputs as inputs, which callers may replace.")
    ] = False
    opset: Annotated[int | None, about("Convert to this version of the operator set first.", ge=1)] = None
    keep_stamps: Annotated[bool, about("Keep the metadata that onnxsim adds about its own run.")] = False

    def reads(self) -> tuple[str, ...]:
        return () if self.check_data is None else (str(Path(self.check_data).absolute()),)

    def run(self, model: bytes, folder: Path) -> bytes:
        import onnxsim
        from onnxsim import onnxsim_cpp2py_export as native

        require(self.skip, [*native._list_optimizers(), *native._list_other_optimizers()], "pass of its optimizer")
        require(self.more, native._list_other_optimizers(), "other pass of its optimizer")
        before = proto_of(model)
        had = {entry.key for entry in before.metadata_props}
        simplified, is_same = onnxsim.simplify(
            before,
            check_n=self.check,
            perform_optimization=self.optimize,
            skipped_optimizers=list(self.skip) or None,
            extra_optimizers=list(self.more) or None,
            skip_constant_folding=not self.fold,
            skip_shape_inference=not self.infer_shapes,
            include_subgraph=self.subgraphs,
            inline_functions=self.inline_functions,
            overwrite_input_shapes={name: list(shape) for name, shape in self.input_shapes.items()} or None,
            unused_output=list(self.unused_outputs) or None,
            tensor_size_threshold=self.large_tensor,
            check_rtol=self.check_rtol,
            check_atol=self.check_atol,
            test_input_shapes={name: list(shape) for name, shape in self.check_shapes.items()} or None,
            input_data=self._check_inputs(model),
            initializers_as_constants=self.constant_weights,
            mutable_initializer=self.weights_are_inputs,
            target_opset_version=self.opset,
            certify=False,
        )
        if not is_same:
            raise ValueError("its result computes other outputs than the model")
        if other := {each.name for each in simplified.graph.input} - {
            each.name for each in proto_of(model).graph.input
        }:
            raise ValueError(f"its result and the model have different inputs: {', '.join(sorted(other))}")
        for entry in () if self.keep_stamps else list(simplified.metadata_props):
            if entry.key.startswith(_STAMPS) and entry.key not in had:
                simplified.metadata_props.remove(entry)
        return bytes(simplified.SerializeToString())

    def _check_inputs(self, model: bytes) -> dict[str, Any] | None:
        if self.check_data is None:
            return None
        values = read_archive(Path(self.check_data), free_inputs(serde.parse(model).model))
        return {name: as_array(value) for name, value in values.items()}


class Onnxslim(Pass, frozen=True, kw_only=True, eq=False, tag="onnxslim"):
    """Slim with onnxslim: fuse, fold constants, remove duplicate and dead nodes until nothing changes."""

    packages: ClassVar = ("onnxslim",)
    evaluates_texts: ClassVar = True
    constants: ClassVar = "files"
    extra: ClassVar = "passes"

    infer_shapes: Annotated[bool, about("Infer shapes between rounds.")] = True
    skip: Annotated[tuple[Stage, ...], about("Stages to omit.")] = ()
    skip_patterns: Annotated[tuple[Pattern, ...], about("Fusions and eliminations to omit.")] = ()
    size_threshold: Annotated[
        int | None, about("Do not fold nodes with outputs of more bytes; no limit if omitted.", ge=1)
    ] = None
    input_shapes: Annotated[dict[str, tuple[int, ...]], about("Fixed shapes of inputs: {image:[1,3,224,224]}.")] = (
        field(default_factory=dict)
    )

    def run(self, model: bytes, folder: Path) -> bytes:
        import onnxslim
        from onnxslim.third_party.onnx_graphsurgeon import Constant, Graph

        # Otherwise it folds random numbers: it runs all nodes that have no inputs, or only constants.
        folding = partialmethod(Graph.fold_constants, should_exclude_node=lambda node: node.op in DRAWING)
        Graph.fold_constants = folding
        # Otherwise it marks a constant that it has read as external, but does not write where it is.
        Constant.data_location = property(lambda _: None, lambda *_: None)
        shapes = [f"{name}:{','.join(map(str, shape))}" for name, shape in self.input_shapes.items()]
        read = proto_of(model)
        # Otherwise it removes each Dropout, also of a model that trains.
        trains = any(node.op_type == "Dropout" and len(node.input) > 2 for node in read.graph.node)
        skipped = {*self.skip, *(["dead_node_elimination"] if trains else [])}
        slimmed = onnxslim.slim(
            read,
            input_shapes=shapes or None,
            no_shape_infer=not self.infer_shapes,
            skip_optimizations=sorted(skipped) or None,
            skip_fusion_patterns=list(self.skip_patterns) or None,
            size_threshold=self.size_threshold,
        )
        return bytes(slimmed.SerializeToString())


class Onnxoptimizer(Pass, frozen=True, kw_only=True, eq=False, tag="onnxoptimizer"):
    """Run passes of onnxoptimizer: its default set of 39, a list, or one as onnxoptimizer:PASS."""

    packages: ClassVar = ("onnxoptimizer",)
    constants: ClassVar = "tokens"
    extra: ClassVar = "passes"
    part: ClassVar = "passes"
    parts: ClassVar = parts_of("onnxoptimizer")

    passes: Annotated[tuple[str, ...], about("Run these passes in this order instead of the default set.")] = ()
    fixed_point: Annotated[bool, about("Repeat the set until it changes nothing.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        return _optimized(model, list(self.passes) or None, self.fixed_point)

    def stages(self, model: bytes, folder: Path) -> Iterator[PartStage]:
        """See `Pass.stages`: each pass that changed something, in the order in which they run."""
        import onnxoptimizer

        read = _optimized(model, ["nop"])
        if read != model:
            yield PartStage(READING, read)
        model = read
        names = self.passes or onnxoptimizer.get_fuse_and_elimination_passes()
        while True:
            before = model
            for name in names:
                made = _optimized(model, [name])
                if made != model:
                    model = made
                    yield PartStage(name, model)
            if not self.fixed_point or model == before:
                return


def _optimized(model: bytes, passes: list[str] | None, fixed_point: bool = False) -> bytes:
    import onnxoptimizer

    return bytes(onnxoptimizer.optimize(proto_of(model), passes, fixed_point).SerializeToString())

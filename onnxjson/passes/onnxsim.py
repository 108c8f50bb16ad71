"""onnxsim: constant folding, shape inference and the passes of an onnxoptimizer of its own, until nothing changes.

https://github.com/onnxsim/onnxsim, version 0.8.1.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from msgspec import Meta, field

from onnxjson.passes.declaration import Pass
from onnxjson.passes.known_names import require

if TYPE_CHECKING:
    from onnx import ModelProto

_STAMPS: Final = "onnxsim."
"""How the keys begin of what onnxsim writes into the metadata of a model about its own work."""


class Onnxsim(Pass, frozen=True, kw_only=True, eq=False, tag="onnxsim"):
    """Simplify with onnxsim: fold constants, infer shapes, optimize, until nothing changes."""

    packages: ClassVar = ("onnxsim",)
    extra: ClassVar = "passes"

    fold: Annotated[bool, Meta(description="Compute what is constant.")] = True
    infer_shapes: Annotated[bool, Meta(description="Infer shapes, which lets more be constant.")] = True
    optimize: Annotated[bool, Meta(description="Run its optimizer too.")] = True
    skip: Annotated[tuple[str, ...], Meta(description="Passes of its optimizer that are left out.")] = ()
    more: Annotated[
        tuple[str, ...],
        Meta(description="Passes of its optimizer that it does not run by itself; onnxsim --list-other-optimizers."),
    ] = ()
    subgraphs: Annotated[bool, Meta(description="Simplify the bodies of If, Loop and Scan too.")] = False
    inline_functions: Annotated[bool, Meta(description="Put the bodies of the model's functions in place first.")] = (
        False
    )
    input_shapes: Annotated[
        dict[str, tuple[int, ...]], Meta(description="Fixed shapes of inputs: {image:[1,3,224,224]}.")
    ] = field(default_factory=dict)
    unused_outputs: Annotated[tuple[str, ...], Meta(description="Outputs that are taken away.")] = ()
    large_tensor: Annotated[
        str, Meta(min_length=1, description="Nothing is computed that would be bigger, such as 10KB.")
    ] = "1.5GB"
    check: Annotated[int, Meta(ge=0, description="How often random inputs must give the same results.")] = 0
    keep_stamps: Annotated[bool, Meta(description="Keep what it writes into the metadata about its own work.")] = False

    def run(self, model: bytes, folder: Path) -> bytes:
        """See `Pass.run`.

        Raises:
            ValueError: its optimizer has no such pass, or what it made gives other results.
        """
        import onnx
        import onnxsim
        from onnxsim import onnxsim_cpp2py_export as native

        require(self.skip, [*native._list_optimizers(), *native._list_other_optimizers()], "pass of its optimizer")
        require(self.more, native._list_other_optimizers(), "other pass of its optimizer")
        before = onnx.ModelProto.FromString(model)
        had = {entry.key for entry in before.metadata_props}
        made, is_same = onnxsim.simplify(
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
            certify=False,
        )
        if not is_same:
            raise ValueError("what it made gives other results than the model")
        if not self.keep_stamps:
            _remove_stamps(made, had)
        return bytes(made.SerializeToString())


def _remove_stamps(model: "ModelProto", had: set[str]) -> None:
    for entry in list(model.metadata_props):
        if entry.key.startswith(_STAMPS) and entry.key not in had:
            model.metadata_props.remove(entry)

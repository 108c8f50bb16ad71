"""Tensors that stand in files beside a model: taken in for passes, and back where no pass touched them."""

from pathlib import Path

from onnxjson.document import Model, Tensor
from onnxjson.external_files import internalize
from onnxjson.payloads import whole
from onnxjson.tensor_replacement import replace_tensors
from onnxjson.tensors import is_external
from onnxjson.walking import walk


class TakenIn:
    """A model with all of its tensors in it.

    Args:
        model: stays as it is.
        folder: where it stands, and its external data is looked for.

    Raises:
        MissingInputError, UntrustedError, FileError: external data is not there, or not what a model may name.
    """

    def __init__(self, model: Model, folder: Path) -> None:
        self.model = internalize(model, folder)
        """The model with all of its tensors in it; `model` itself where they were."""
        self._outside: dict[str | None, tuple[Tensor, Tensor]] = {}
        if self.model is not model:
            pairs = zip(walk(model, Tensor), walk(self.model, Tensor), strict=True)
            self._outside = {old.name: (old, new) for old, new in pairs if is_external(old)}

    def restored(self, model: Model) -> Model:
        """`model`, which passes made, with the tensors in their files that have the bytes they had."""
        return replace_tensors(model, self._original) if self._outside else model

    def _original(self, tensor: Tensor) -> Tensor:
        found = self._outside.get(tensor.name)
        if found is None or tensor.raw_data is None or found[1].raw_data is None:
            return tensor
        outside, inside = found
        if (tensor.data_type, tensor.dims) != (inside.data_type, inside.dims):
            return tensor
        assert inside.raw_data is not None
        if len(tensor.raw_data) != len(inside.raw_data) or whole(tensor.raw_data) != whole(inside.raw_data):
            return tensor
        return outside

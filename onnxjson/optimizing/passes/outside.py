"""External tensors: loaded into the model for passes, and external again if no pass changed them."""

from pathlib import Path

from onnxjson.model.document import Model, Tensor
from onnxjson.model.payloads import whole
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import replace_records, tensors_of
from onnxjson.storage.external_files import internalize


class InternalizedModel:
    """A model with its external tensors loaded.

    Args:
        model: the model; it is not changed.
        folder: folder that locations of external data are relative to.

    Raises:
        MissingInputError, UntrustedError, FileError: external data is missing or may not be read.
    """

    def __init__(self, model: Model, folder: Path) -> None:
        self.model = internalize(model, folder)
        """The model with all tensors in it; `model` itself if it has no external data."""
        self._outside: dict[str | None, tuple[Tensor, Tensor]] = {}
        if self.model is not model:
            pairs = zip(tensors_of(model), tensors_of(self.model), strict=True)
            self._outside = {old.name: (old, new) for old, new in pairs if is_external(old)}

    def restored(self, model: Model) -> Model:
        """Return the result of passes with unchanged tensors external again."""
        return replace_records(model, Tensor, self._original) if self._outside else model

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

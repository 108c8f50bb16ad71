"""Methods of records and results that are made of what is built on records: values, arrays, selections, edits, reports.

They find it through the root package, whose names are imported on first use. No other module imports the root
(tests/contracts/test_public_names.py), and a model without calls of these methods loads nothing for them.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


class AttributeMethods:
    """Methods of `onnxjson.Attribute`."""

    __slots__ = ()

    @property
    def value(self) -> Any:
        """The value by its type: a number, str (bytes if it is not UTF-8), a record, or a tuple of these.

        None if there is none, as for an attribute that refers to one of its function.
        """
        import onnxjson

        assert isinstance(self, onnxjson.Attribute)
        value = onnxjson.value_of(self)
        if isinstance(value, tuple):
            return tuple([_text_or_bytes(each) for each in value])
        return _text_or_bytes(value)


def _text_or_bytes(value: Any) -> Any:
    """Return a text with lone surrogates as the bytes that they represent, and anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape")
    return value


class TensorMethods:
    """Methods of `onnxjson.Tensor`."""

    __slots__ = ()

    @property
    def dtype(self) -> str | None:
        """The data type, such as "float32"."""
        import onnxjson

        assert isinstance(self, onnxjson.Tensor)
        return None if self.data_type is None else onnxjson.format_data_type(self.data_type)

    @property
    def shape(self) -> tuple[int, ...]:
        """`dims`."""
        import onnxjson

        assert isinstance(self, onnxjson.Tensor)
        return self.dims

    def numpy(self, folder: str | Path | None = None) -> "NDArray[Any]":
        """Return the elements as an array of shape ``dims``, read-only where no copy is needed.

        Its dtype is numpy's of the same name or ml_dtypes' (bfloat16, float8, 6-, 4- and 2-bit types, one byte an
        element); strings are an object array of ``str``, or of ``bytes`` where these are not UTF-8.

        Args:
            folder: the folder of external data; by default that of the file from which `onnxjson.load` read the model.

        Raises:
            DecodeError: the elements do not fit dtype and dims, or are in another file and no folder is known.
            WeightsMissingError: only the sha256 of the elements is available.
            MissingInputError, UntrustedError, ChangedUnderneathError, FileError: they cannot be read.
        """
        import onnxjson

        assert isinstance(self, onnxjson.Tensor)
        return onnxjson.array_of(self, folder)


class TypeMethods:
    """Methods of `onnxjson.Type`; ``str(type)`` is its text, such as ``float32[N,3]``."""

    __slots__ = ()

    def __str__(self) -> str:
        import onnxjson

        assert isinstance(self, onnxjson.Type)
        return onnxjson.format_type(self) or repr(self)

    @property
    def dtype(self) -> str | None:
        """The data type of a tensor, such as "float32"; None for other types."""
        import onnxjson

        assert isinstance(self, onnxjson.Type)
        tensor = self.tensor_type or self.sparse_tensor_type
        return None if tensor is None or tensor.elem_type is None else onnxjson.format_data_type(tensor.elem_type)

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """The dimensions of a tensor: sizes, names, or None; None if their number is unknown, and for other types."""
        import onnxjson

        assert isinstance(self, onnxjson.Type)
        tensor = self.tensor_type or self.sparse_tensor_type
        if tensor is None or tensor.shape is None:
            return None
        return tuple([dim.dim_value if dim.dim_param is None else dim.dim_param for dim in tensor.shape.dim])

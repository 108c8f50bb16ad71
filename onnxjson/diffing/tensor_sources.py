"""The elements of the constants of two models, wherever they stand: in the record, or in a file beside the model."""

import os
from collections.abc import Hashable
from pathlib import Path

import msgspec

from onnxjson.display import counted, visible
from onnxjson.document import StringStringEntry, Tensor
from onnxjson.errors import OnnxJsonError
from onnxjson.external import ExternalSlice, Resolver
from onnxjson.matching.contents import content
from onnxjson.payloads import Data
from onnxjson.tensors import is_external, location_of, needed_bytes, raw_bytes

_Identity = tuple[str | None, tuple[StringStringEntry, ...]]
"""What a tensor in another file is told apart by: its name and what it says of that file."""


class TensorSource:
    """One model's constants; files are opened when a tensor in one is asked for, and each problem is kept."""

    def __init__(self, path: Path | None, what: str, *, trust_links: bool = False) -> None:
        """The constants of a model.

        Args:
            path: its file, since locations begin in the folder of that; None for a model without one.
            what: what the model is called in what is said of it.
            trust_links: see `onnxjson.external.Resolver`.
        """
        self._path = path
        self._called = visible(what, None)
        self._resolver = None if path is None else Resolver(path.parent, model_file=path, trust_links=trust_links)
        self._refused: dict[str, dict[_Identity, str]] = {}
        """Why tensors cannot be read, by the file that they are in."""

    def data(self, tensor: Tensor) -> Data | None:
        """The elements as ``raw_data`` would hold them; None where there are none, or they cannot be had."""
        location = location_of(tensor)
        if location is None:
            stored = raw_bytes(msgspec.structs.replace(tensor, data_location=None) if tensor.data_location else tensor)
            return None if stored is None else stored[0]
        if self._resolver is None:
            self._refuse(tensor, "it was given without its file, so that nobody knows where its weights are")
            return None
        try:
            return self._resolver.resolve(tensor.external_data, needed_bytes(tensor), tensor=tensor.name or "")
        except OnnxJsonError as error:
            self.fail(tensor, error)
            return None

    def range(self, data: Data | None) -> tuple[str, int, int] | None:
        """Which part of which file that is: real path, offset, bytes; None for bytes that are in no other file."""
        if not isinstance(data, ExternalSlice) or self._path is None:
            return None
        return os.path.realpath(self._path.parent / data.location), data.offset, data.length

    def content(self, tensor: Tensor) -> Hashable:
        """The key of `onnxjson.matching.contents.content`, with the bytes of other files read."""
        if not is_external(tensor):
            return content(tensor)
        data = self.data(tensor)
        if data is None:
            return content(tensor)
        inside = msgspec.structs.replace(tensor, raw_data=data, external_data=(), data_location=None)
        try:
            return content(inside)
        except OnnxJsonError as error:
            self.fail(tensor, error)
            return content(tensor)

    def fail(self, tensor: Tensor, error: OnnxJsonError) -> None:
        """Note that the bytes of a tensor could not be read."""
        self._refuse(tensor, str(error))

    def _refuse(self, tensor: Tensor, reason: str) -> None:
        of_file = self._refused.setdefault(location_of(tensor) or tensor.name or "", {})
        of_file.setdefault((tensor.name, tensor.external_data), reason)

    def problems(self) -> list[str]:
        """For each file whose tensors could not be read, what to say."""
        found = []
        for reasons in self._refused.values():
            others = len(reasons) - 1
            more = f" (nor those of {counted(others, 'more tensor')} of that file)" if others else ""
            found.append(f"weights not compared: {self._called}: {next(iter(reasons.values()))}{more}")
        return found

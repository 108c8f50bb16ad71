"""`Patch`: all operations on a change of a model, and the external files that a patch lists."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Listing
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from onnxjson.model.display import counted
from onnxjson.model.document import Model, StringStringEntry
from onnxjson.model.errors import OnnxJsonError, PatchError, WeightsMissingError
from onnxjson.model.methods import Guessed
from onnxjson.patching.applying import apply_fields, difference, invert_fields
from onnxjson.patching.changes import ExternalFile, Operation, PatchRecord, Unit
from onnxjson.patching.composing import compose
from onnxjson.patching.listing import AddressMap, operations, units


class Patch(Guessed, PatchRecord, frozen=True):
    """An exact, invertible change of a model, which can be stored. Equal patches change a base in the same way."""

    @classmethod
    def between(
        cls, base: Model, target: Model, pairs: Mapping[str, Listing[tuple[int, int]]] | None = None
    ) -> "Patch":
        """Derive the patch that turns one model into another.

        Args:
            base: the model before.
            target: the model after.
            pairs: for lists of the base, by address such as "/graph/node", which positions in base and target are
                counterparts; other lists are aligned by identity, equality and names.

        Raises:
            ValueError: `pairs` has a position twice or out of range.
        """
        return cls(difference(base, target, "", pairs or {}))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The change as a flat list of operations in the order of the base; all of them apply at once."""
        return tuple(operations(self.root))

    def units(self) -> Iterator[Unit]:
        """Yield every difference once, with its addresses in both models."""
        return units(self.root)

    def apply(self, model: Model, *, same_base: bool = False) -> Model:
        """Return the model after the change; `model` is not modified, and both share everything unchanged.

        Args:
            model: any model that has the old value at every place that changes.
            same_base: refuse any model except the one that the patch was made for, by its SHA-256.

        Raises:
            PatchError: a value is not the old value of the patch; the error has address, expected and found.
            WeightsMissingError: `same_base` needs bytes of which only the sha256 is available.
        """
        if same_base:
            sha256 = sha256_of_model(model)
            if self.base is None or sha256 != self.base:
                expected = f"it was made for {self.base}" if self.base else "it does not state for which one"
                raise PatchError(f"the patch is for another model: {expected}, this is {sha256}", "", self.base, sha256)
        return model if self.root is None else apply_fields(model, self.root)

    def invert(self) -> "Patch":
        """Return the patch that undoes this one."""
        sides = {"base": "target", "target": "base"}
        external = tuple([msgspec.structs.replace(file, side=sides[file.side]) for file in self.external])
        root = None if self.root is None else invert_fields(self.root)
        return Patch(root, base=self.target, target=self.base, external=external)

    def then(self, following: "Patch") -> "Patch":
        """Return one patch with the effect of this one and then `following`.

        Raises:
            PatchError: `following` does not fit the result of this one.
        """
        if following == Patch():
            return self
        if self == Patch():
            return following
        # A patch can fit a model that it was not made for; then the hash of the result is unknown.
        target = following.target if self.target is not None and self.target == following.base else None
        root = self.root or following.root
        if self.root is not None and following.root is not None:
            try:
                root = compose(Model, self.root, following.root)
            except PatchError as error:
                error.places = ("the second patch does not follow the first",)
                raise
        external = [file for file in self.external if file.side == "base"]
        external += [file for file in following.external if file.side == "target"]
        return Patch(root, base=self.base, target=target, external=tuple(external))

    def where(self, address: str) -> str | None:
        """Return the new address of the element at an address of the base; None if it is removed.

        Raises:
            AddressError: `address` is not an address, or no model can have an element there.
        """
        return self._address_map.after(address)

    @cached_property
    def _address_map(self) -> AddressMap:
        return AddressMap(self.root)

    def with_hashes(self, base: Model, target: Model | None = None) -> "Patch":
        """Return the same patch with the SHA-256 of both models, which reads all of their bytes.

        A hash stays None where bytes of the model are not available. `target` defaults to the patched `base`.
        """
        hashes: list[str | None] = []
        for model in (base, self.apply(base) if target is None else target):
            try:
                hashes.append(sha256_of_model(model))
            except WeightsMissingError:
                hashes.append(None)
        return msgspec.structs.replace(self, base=hashes[0], target=hashes[1])

    def with_external(self, base: Model, base_path: Path, target: Model, target_path: Path) -> "Patch":
        """Return the same patch with the external files of both models, found next to the models and hashed."""
        ours = external_files(base, base_path, "base")
        is_shared = os.path.realpath(base_path.parent) == os.path.realpath(target_path.parent)
        theirs = external_files(target, target_path, "target", ours if is_shared else ())
        return msgspec.structs.replace(self, external=(*ours, *theirs))

    @classmethod
    def load(cls, path: str | Path) -> "Patch":
        """Load the patch in a file; big payloads stay there until they are needed.

        Raises:
            MissingInputError, AccessDeniedError, FileError: the file cannot be read.
            DecodeError: it is not a patch; `findings` have the reasons and places.
        """
        from onnxjson.patching.patch_text import load_patch

        return load_patch(cls, path)

    @classmethod
    def loads(cls, text: str | bytes) -> "Patch":
        """Parse the patch in a text.

        Raises:
            DecodeError: it is not a patch; `findings` have the reasons and places.
        """
        from onnxjson.patching.patch_text import parse_patch

        return parse_patch(cls, text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)

    def save(self, path: str | Path) -> None:
        """Write the patch to a file, completely or not at all, as ``onnxjson-patch/1``.

        Raises:
            OutputError, AccessDeniedError, FileError: the file cannot be written; an existing file is unchanged.
            LimitError: a record nests deeper than protobuf reads.
            ChangedUnderneathError: a file that contains tensors of the patch was changed.
        """
        from onnxjson.patching.patch_text import write_patch
        from onnxjson.storage.saving import save_file

        save_file(Path(path), lambda sink: write_patch(self, sink.write), verify=Patch.load)

    def dumps(self) -> str:
        """Return the patch as text, ``onnxjson-patch/1``; see `save` for the errors."""
        from onnxjson.patching.patch_text import write_patch

        parts: list[bytes] = []
        write_patch(self, parts.append)
        return b"".join(parts).decode("utf-8")

    def __bool__(self) -> bool:
        return self.root is not None

    def __repr__(self) -> str:
        return f"<Patch: {counted(sum(1 for _ in self.units()), 'difference')}>"


def sha256_of_model(model: Model) -> str:
    """Return the hexadecimal SHA-256 of a model as SerializeToString writes it.

    Raises:
        WeightsMissingError: only the sha256 of some tensors is available.
        LimitError: it nests too deep, or is too big, to be serialised.
        ChangedUnderneathError, FileError: the file of a payload can no longer be read.
    """
    from onnxjson.codecs.wire_writing import write_message

    digest: Any = hashlib.sha256()
    write_message(model, digest.update)
    return str(digest.hexdigest())


def external_files(
    model: Model, path: Path, side: str, known: tuple[ExternalFile, ...] = ()
) -> tuple[ExternalFile, ...]:
    """Return the external files of one side, next to its model, each with its SHA-256; `known` are in that folder."""
    from onnxjson.storage.named_files import locations

    hashes = {each.location: each.sha256 for each in known}
    found = [(each, hashes.get(each) or _sha256_of_file(each, path.parent, path)) for each in locations(model)]
    return tuple([ExternalFile(location, sha256, side) for location, sha256 in found])


def missing_files(files: tuple[ExternalFile, ...], folder: Path) -> list[ExternalFile]:
    """Return the files of the target that are missing in a folder, or whose contents differ there."""
    missing = []
    for file in [each for each in files if each.side == "target"]:
        found = _sha256_of_file(file.location, folder)
        if found is None or file.sha256 not in (None, found):
            missing.append(file)
    return missing


def _sha256_of_file(location: str, folder: Path, model_file: Path | None = None) -> str | None:
    """Return None for a file that is missing or that a model must not refer to: the patch is valid without it."""
    from onnxjson.storage.external import Resolver

    resolver = Resolver(folder, model_file=model_file)
    try:
        return resolver.resolve((StringStringEntry("location", location),), None).sha256
    except OnnxJsonError:
        return None

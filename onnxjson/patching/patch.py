"""`Patch`: everything that can be done with a change of a model."""

import hashlib
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Listing
from pathlib import Path
from typing import Any

import msgspec

from onnxjson.display import counted
from onnxjson.document import Model
from onnxjson.errors import PatchError, WeightsMissingError
from onnxjson.patching.applying import applied
from onnxjson.patching.changes import Fields, Operation, Unit
from onnxjson.patching.composing import composed
from onnxjson.patching.deriving import difference
from onnxjson.patching.inverting import inverse
from onnxjson.patching.listing import operations, units
from onnxjson.patching.places import Places
from onnxjson.patching.refusals import NOT_FITTING


class ExternalFile(msgspec.Struct, frozen=True):
    """A file with weights that a side of a patch needs; a patch says which, and does not carry it."""

    location: str
    """As the tensors name it."""
    sha256: str | None = None
    """Of the whole file; None where nobody could read it."""
    side: str = "target"
    """``base`` or ``target``: which model names it."""


class Patch:
    """A change of a model: exact, invertible, to be stored. Equal patches do the same to the same base."""

    __slots__ = ("_places", "base", "external", "root", "target")

    def __init__(
        self,
        root: Fields | None = None,
        *,
        base: str | None = None,
        target: str | None = None,
        external: tuple[ExternalFile, ...] = (),
    ) -> None:
        self.root = root
        """The tree of changes (`onnxjson.patching.changes`); None where there is none."""
        self.base = base
        """Hexadecimal SHA-256 of the model it was made for, as SerializeToString writes it; None if not computed."""
        self.target = target
        """The same of the model it leads to."""
        self.external = external
        """Files with weights that the two models need."""
        self._places: Places | None = None

    @classmethod
    def between(
        cls, base: Model, target: Model, pairs: Mapping[str, Listing[tuple[int, int]]] | None = None
    ) -> "Patch":
        """The patch that leads from one model to another.

        Args:
            base: the model before.
            target: the model after.
            pairs: for lists of the base, by address such as "/graph/node", which positions in base and target are
                counterparts; lists that are not named are aligned by identity, equality and names.

        Raises:
            ValueError: `pairs` names a position twice, or one that is not there.
        """
        return cls(difference(base, target, "", pairs or {}))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The change as a flat list, in the order of the base; all of them happen at once."""
        return tuple(operations(self.root))

    def units(self) -> Iterator[Unit]:
        """Every difference once, with its address on both sides."""
        return units(self.root)

    def apply(self, model: Model, *, same_base: bool = False) -> Model:
        """The model after the change; `model` stays as it is, and both share what is not touched.

        Args:
            model: any model in which everything that changes is as the patch says.
            same_base: refuse any model but the one that the patch was made for, by its SHA-256.

        Raises:
            PatchError: something is not as the patch says; the error has address, expected and found.
            WeightsMissingError: `same_base` needs bytes of which only the sha256 is here.
        """
        if same_base:
            found = sha256_of_model(model)
            if self.base is None or found != self.base:
                expected = f"it was made for {self.base}" if self.base else "it does not say for which"
                raise PatchError(f"the patch is for another model: {expected}, this is {found}", "", self.base, found)
        return model if self.root is None else applied(model, self.root)

    def invert(self) -> "Patch":
        """The patch that leads back."""
        sides = {"base": "target", "target": "base"}
        external = tuple([msgspec.structs.replace(file, side=sides[file.side]) for file in self.external])
        root = None if self.root is None else inverse(self.root)
        return Patch(root, base=self.target, target=self.base, external=external)

    def then(self, following: "Patch") -> "Patch":
        """One patch that does what this one and then `following` do.

        Raises:
            PatchError: `following` does not find what this one leaves.
        """
        if following == Patch():
            return self
        if self == Patch():
            return following
        # A patch that fits is not one that was made for this very model: then nobody knows the hash of the result.
        target = following.target if self.target is not None and self.target == following.base else None
        if self.root is None or following.root is None:
            root = self.root or following.root
        else:
            root = self._composed(following.root)
        external = [file for file in self.external if file.side == "base"]
        external += [file for file in following.external if file.side == "target"]
        return Patch(root, base=self.base, target=target, external=tuple(external))

    def _composed(self, following: Fields) -> Fields | None:
        assert self.root is not None
        try:
            return composed(Model, self.root, following)
        except PatchError as error:
            message = str(error).replace(NOT_FITTING, "the second patch does not follow the first", 1)
            raise PatchError(message, error.address, error.expected, error.found) from None

    def where(self, address: str) -> str | None:
        """Where the element at an address of the base stands afterwards; None where it is gone.

        Raises:
            AddressError: `address` is none, or no model can have an element there.
        """
        if self._places is None:
            self._places = Places(self.root)
        return self._places.after(address)

    def with_hashes(self, base: Model, target: Model | None = None) -> "Patch":
        """The same patch with the SHA-256 of both models, which reads all of their bytes.

        A hash stays None where bytes of the model are not here. `target` is made from `base` where it is not given.
        """
        target = self.apply(base) if target is None else target
        hashes: list[str | None] = []
        for model in (base, target):
            try:
                hashes.append(sha256_of_model(model))
            except WeightsMissingError:
                hashes.append(None)
        return Patch(self.root, base=hashes[0], target=hashes[1], external=self.external)

    def with_external(self, base: Model, base_path: Path, target: Model, target_path: Path) -> "Patch":
        """The same patch with the files that tensors of both models stand in, found beside the models and hashed."""
        from onnxjson.patching.external_list import external_files

        files = (*external_files(base, base_path, "base"), *external_files(target, target_path, "target"))
        return Patch(self.root, base=self.base, target=self.target, external=files)

    @classmethod
    def load(cls, path: str | Path) -> "Patch":
        """The patch in a file; big payloads stay there until they are asked for.

        Raises:
            MissingInputError, AccessDeniedError, FileError: the file cannot be read.
            DecodeError: it holds no patch; `findings` say why and where.
        """
        from onnxjson.patching.loading import load_patch

        return load_patch(path)

    @classmethod
    def loads(cls, text: str | bytes) -> "Patch":
        """The patch in a text.

        Raises:
            DecodeError: it is none; `findings` say why and where.
        """
        from onnxjson.patching.loading import parse_patch

        return parse_patch(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)

    def save(self, path: str | Path) -> None:
        """Writes the patch to a file, all or nothing, as ``onnxjson-patch/1``.

        Raises:
            OutputError, AccessDeniedError, FileError: the file cannot be written; what was there is untouched.
            LimitError: a record nests deeper than protobuf reads.
            ChangedUnderneathError: a file that holds tensors of the patch was changed.
        """
        from onnxjson.patching.loading import load_patch
        from onnxjson.patching.storing import write_patch
        from onnxjson.saving import save_file

        save_file(Path(path), lambda sink: write_patch(self, sink.write), verify=load_patch)

    def dumps(self) -> str:
        """The patch as text, ``onnxjson-patch/1``; see `save` for the errors."""
        from onnxjson.patching.storing import patch_bytes

        return patch_bytes(self).decode("utf-8")

    def __bool__(self) -> bool:
        return self.root is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Patch):
            return NotImplemented
        mine = (self.base, self.target, self.external)
        return mine == (other.base, other.target, other.external) and self.root == other.root

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Patch: {counted(sum(1 for _ in self.units()), 'difference')}>"


def sha256_of_model(model: Model) -> str:
    """Hexadecimal SHA-256 of a model as SerializeToString writes it.

    Raises:
        WeightsMissingError: of some tensors only the sha256 is here.
        LimitError: it nests too deep, or is too big, to be serialised.
        ChangedUnderneathError, FileError: a payload's file cannot be read any more.
    """
    from onnxjson.wire.writing import write_message

    digest: Any = hashlib.sha256()
    write_message(model, digest.update)
    return str(digest.hexdigest())

"""Models at a revision of a git repository: ``HEAD~1:model.onnx``, ``:model.onnx`` (staged), ``v1:./model.onnx.json``.

Blobs and external data of the model come from the same revision. All of it is written into a private temporary folder,
so that big payloads stay in files and external data is resolved with the same checks as on the disk. Nothing of the
repository is executed or fetched, and no filter is applied.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from onnxjson.git import revisions
from onnxjson.git.commands import POINTER_BYTES, CommandError, Git, lfs_file, lfs_pointer, lfs_storage
from onnxjson.git.revisions import is_revision_spec
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.errors import FileError, MissingInputError, UntrustedError
from onnxjson.model.payloads import Digest
from onnxjson.model.walking import tensors_of
from onnxjson.running.server_process import scratch_folder
from onnxjson.storage import files, weights
from onnxjson.storage.external import location_parts
from onnxjson.storage.identity import called, sha256_of
from onnxjson.storage.named_files import locations

__all__ = ["Checkout", "is_revision_spec", "open_revision"]


class Checkout(NamedTuple):
    """A model at a revision, valid within the context of `open_revision`."""

    name: str
    """Name as the user wrote it, ``HEAD~1:model.onnx``; not yet made visible."""
    path: Path
    """The file in a private folder, next to its blobs and external data."""
    loaded: files.Loaded
    """The model; blobs are bound if all of them are there."""
    problems: tuple[str, ...]
    """A sentence for each file that the model names and that could not be read; made visible."""


@contextmanager
def open_revision(spec: str, folder: Path | None = None) -> Iterator[Checkout]:
    """Open a model at a revision. Its files are removed at the end of the ``with`` statement.

    Args:
        spec: ``REV:path``, ``:path`` or ``:N:path``, paths as git reads them.
        folder: where git runs; by default the working directory.

    Raises:
        MissingInputError: git, the repository, the revision or the path is missing, or Git LFS did not fetch the file.
        UntrustedError: git refuses the repository, or a link leads out of it.
        FileError: an object is damaged, or the temporary folder cannot be written.
        DecodeError, LimitError: the file is not a model; see `onnxjson.storage.files.load`.
    """
    parsed = revisions.parse(spec)
    if parsed is None:
        raise MissingInputError(f"{visible(spec, None)} does not name a file at a revision; write REV:path, or :path")
    with scratch_folder("onnxjson-git-") as temporary:
        private = Path(
            os.path.realpath(temporary), "files"
        )  # `temporary` itself is locked, and a save locks its folder
        private.mkdir(0o700)
        try:
            yield _Revision(parsed, folder or Path.cwd()).check_out(private)
        except CommandError as error:
            raise FileError(f"git cannot read {visible(spec, None)}: {error}") from error


class _Revision:
    def __init__(self, spec: revisions.Spec, folder: Path) -> None:
        self._spec = spec
        self._shown = visible(spec.text, None)
        self._git = Git(folder)
        try:
            self._prefix = self._git.line("rev-parse", "--show-prefix")
        except MissingInputError as error:
            raise MissingInputError(f"{self._shown} does not exist, and {error}") from error
        self._top = self._git.up()
        self._path = self._path_from_top()
        self._contents = self._find_contents()

    def _path_from_top(self) -> bytes:
        path = os.fsencode(self._spec.path)
        if not path.startswith((b"./", b"../")):
            return path
        path = os.path.normpath(os.path.join(self._prefix, path))
        if path.split(b"/")[0] == b"..":
            raise MissingInputError(f"{self._shown} is outside the repository")
        return path

    def _find_contents(self) -> revisions.Contents:
        revision = self._spec.revision
        if revision is None:
            return revisions.IndexContents(self._git, self._spec.stage, self._top)
        tree = self._git.named(revision, "tree")
        if tree is None:
            raise self._unknown(revision)
        return revisions.TreeContents(self._git, tree)

    def _unknown(self, revision: str) -> MissingInputError:
        shown = f'"{visible(revision)}"'
        if ".." in revision:
            return MissingInputError(f"{self._shown}: {shown} is a range of revisions; name one of them")
        if self._git.named("HEAD", "commit") is None and revision.startswith("HEAD"):
            return MissingInputError(f"{self._shown} does not exist: the branch has no commit yet")
        hint = revisions.revisions_like(self._git, revision)
        return MissingInputError(
            f"{self._shown} does not exist, and {shown} is not a revision of this repository with files"
            + (f"; {hint}" if hint else "; git log --oneline lists them")
        )

    def check_out(self, private: Path) -> Checkout:
        """Write the model and the files that it names into a private folder."""
        path, entry = revisions.follow_links(self._contents, self._git, self._path, self._shown)
        if entry is None or (isinstance(self._contents, revisions.IndexContents) and not self._contents.has(path)):
            raise self._missing_path()
        if not entry.is_file:
            raise MissingInputError(f"{self._shown} is {entry.kind}; name a file")
        place = called(private / _file_name(self._spec.path), self._spec.text)
        problem = self._write(entry, place)
        if problem is not None:
            raise MissingInputError(f"{self._shown} {problem}")
        loaded = files.load(place, bind=False)
        problems = self._put_next_to_model(os.path.dirname(path), loaded.model, private)
        return Checkout(self._spec.text, place, _bound(loaded, private), problems)

    def _missing_path(self) -> MissingInputError:
        if isinstance(self._contents, revisions.IndexContents):
            stages = self._contents.stages(self._path)
            if stages:
                spellings = " or ".join(f":{stage}:{self._spec.path}" for stage in stages)
                return MissingInputError(f"{self._shown} does not exist; write {visible(spellings, None)}")
            where = "staged"
        else:
            where = f"in {visible(self._spec.revision or '')}"
        try:
            paths = self._contents.paths()
        except CommandError:
            paths = ()
        hint = revisions.paths_like(self._path, paths, self._prefix)
        if not hint and os.path.lexists(os.path.join(self._git.folder, os.fsdecode(self._top), self._spec.path)):
            hint = "it is on the disk; git add and git commit would add it"
        name = visible(os.fsdecode(self._path), None)
        return MissingInputError(f"{self._shown} does not exist: {name} is not {where}" + (f"; {hint}" if hint else ""))

    def _put_next_to_model(self, folder: bytes, model: Model, private: Path) -> tuple[str, ...]:
        """Write blobs and external data next to the model; return a sentence for each that cannot be read."""
        problems: list[str] = []
        for location in _named(model):
            try:
                parts = location_parts(location, location)
            except UntrustedError:
                continue  # reading the tensor raises this error
            place = private.joinpath(*parts)
            if os.path.lexists(place):
                continue
            entry = self._contents.entry(os.path.join(folder, os.fsencode("/".join(parts))))
            shown = f"{visible(location, None)}, which {self._shown} names,"
            if entry is None or not entry.is_file:
                problems.append(f"{shown} is {'not in that revision' if entry is None else entry.kind}")
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            problem = self._write(entry, place)
            if problem is not None:
                problems.append(f"{shown} {problem}")
        return tuple(problems)

    def _write(self, entry: revisions.Entry, place: Path) -> str | None:
        """Write the file of an object or of its Git LFS pointer; return the problem if there is one."""
        try:
            with place.open("wb") as file:
                self._git.write_object(entry.identity, file)
            if place.stat().st_size >= POINTER_BYTES:
                return None
            wanted = lfs_pointer(place.read_bytes())
            if wanted is None:
                return None
            stored = lfs_file(lfs_storage(self._git), wanted)
            if stored is not None:
                shutil.copyfile(stored, place)
        except OSError as error:
            raise FileError(f"{self._shown} cannot be put into a temporary folder: {error.strerror}") from error
        if stored is None:
            place.unlink()
            return f"is a Git LFS pointer to {wanted.size:,} bytes that are not here: weights not fetched: git lfs pull"
        if sha256_of(place) != wanted.sha256:
            place.unlink()
            return "is a Git LFS pointer to an object that is damaged here: git lfs fsck shows more"
        return None


def _named(model: Model) -> list[str]:
    """Files that a model names: external data and blobs, relative to its folder."""
    blobs = [
        f"{data.folder}/{data.sha256}"
        for tensor in tensors_of(model)
        for data in (tensor.raw_data, tensor.float_data, tensor.double_data)
        if isinstance(data, Digest) and data.folder is not None
    ]
    return [*dict.fromkeys(blobs), *locations(model)]


def _bound(loaded: files.Loaded, private: Path) -> files.Loaded:
    """Bind the bytes of blobs if all of them are there; their SHA-256 is known in any case."""
    try:
        return loaded._replace(model=weights.bind(loaded.model, folder=private))
    except (MissingInputError, UntrustedError):
        return loaded


def _file_name(spec: str) -> str:
    return os.path.basename(spec.rpartition(":")[2]) or "model"

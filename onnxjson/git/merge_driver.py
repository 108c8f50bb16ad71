"""The merge driver of git: ``python -I -m onnxjson.git.merge_driver %O OURS %B %L %P %A``.

The exit code is 0 if the merge is clean and checked, and 16 if both sides of every conflict are recorded; the result is
then in the file %A. Any other exit code must stop git: the line that `onnxjson git install` writes ensures that, and
passes ours as an open file without a name. JSON of other programs is merged by lines, as git does without a driver. The
driver never asks, and writes only %A, except for Git LFS: the file of the pointer in the result is added to the local
store.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from onnxjson.codecs.text_file import is_other_json
from onnxjson.git.commands import POINTER_BYTES, CommandError, Git, lfs_file, lfs_pointer, lfs_storage
from onnxjson.model.conflicts import ConflictError
from onnxjson.model.display import visible
from onnxjson.model.errors import DecodeError, FileError, MissingInputError, OnnxJsonError
from onnxjson.model.payloads import FileSlice, SourceFile
from onnxjson.running.server_process import scratch_folder
from onnxjson.storage.identity import called, open_source, sha256_of

if TYPE_CHECKING:
    from onnxjson.storage import files
    from onnxjson.storage.saving import Sink

T = TypeVar("T")

CLEAN: Final = 0
CONFLICTS: Final = 16
_USAGE: Final = 2
_INTERNAL: Final = 70
_SYSTEM: Final = 74

_VIRTUAL: Final = 9
"""Minimum size of conflict markers (%L) when git merges common ancestors: 7, and 2 more for each level."""

_NAMES: Final = ("the base", "ours", "theirs")


class _Version(NamedTuple):
    name: str
    """Name for messages."""
    file: Path
    """The file that git made."""
    path: Path
    """The file with the content: the same, or that of its pointer."""
    sha256: str
    """SHA-256 of the content."""
    is_pointer: bool
    is_empty: bool


def main(arguments: Sequence[str]) -> int:
    """Merge; return the exit code, and print messages to standard error."""
    if len(arguments) != 6:
        _say("usage: python -I -m onnxjson.git.merge_driver %O OURS %B %L %P %A; onnxjson git install writes the line")
        return _USAGE
    base, ours, theirs, marker_size, name, result = arguments
    try:
        return _merge([Path(base), Path(ours), Path(theirs)], name, Path(result), marker_size)
    except OnnxJsonError as error:
        # A conflict inside a side must not look like one that was recorded here.
        code = DecodeError.exit_code if isinstance(error, ConflictError) else error.exit_code
        _say(f"{visible(name, None)} is not merged: {error}")
        return code
    except Exception as error:
        what, is_ours = visible(str(error), None), not isinstance(error, OSError | MemoryError)
        if is_ours:
            what = f"an error in onnxjson itself ({type(error).__name__}: {what}); please report it"
        _say(f"{visible(name, None)} is not merged: {what}")
        return _INTERNAL if is_ours else _SYSTEM


def _say(text: str) -> None:
    sys.stderr.write(f"onnxjson: {text}\n")


def _merge(paths: list[Path], name: str, target: Path, marker_size: str) -> int:
    is_virtual = marker_size.isdigit() and int(marker_size) >= _VIRTUAL
    sides = [_version(path, what) for path, what in zip(paths, _NAMES, strict=True)]
    as_pointer = bool(_merged_value(*[side.is_pointer for side in sides]))
    # git resolves this itself, but not if the driver is called without it, or a pointer hides that contents are equal.
    sha256 = _merged_value(*[side.sha256 for side in sides])
    with scratch_folder("onnxjson-git-") as scratch:
        folder = scratch / "merge"  # `scratch` itself is locked, and a save locks its folder
        folder.mkdir(0o700)
        conflicts = ""
        if sha256 is None:
            result = folder / "result"
            try:
                conflicts = _merged(sides, result, name, is_virtual=is_virtual)
            except DecodeError:
                if not _are_other_json(sides[1:]):
                    raise
                conflicts = _merged_lines(sides, result, name, marker_size)
            merged = _Version("the result", result, result, "", is_pointer=False, is_empty=False)
        else:
            same = [side for side in sides[1:] if side.sha256 == sha256]
            merged = next((side for side in same if side.is_pointer == as_pointer), same[0])
        content = _in_form(merged, as_pointer, folder)
        if content != target:
            _replace(target, content)
    if not conflicts:
        return CLEAN
    if not is_virtual:  # The user does not resolve conflicts of a common ancestor.
        _say(conflicts)
    return CONFLICTS


def _are_other_json(sides: Sequence[_Version]) -> bool:
    found = [is_other_json(open_source(side.path)) for side in sides if not side.is_empty]
    return bool(found) and all(found)


def _merged_lines(sides: Sequence[_Version], result: Path, name: str, marker_size: str) -> str:
    """Write git's own merge of the lines of three files; describe its conflicts, "" for none."""
    base, other = result.with_name("base"), result.with_name("theirs")
    for copy, side in zip((base, result, other), sides, strict=True):
        copy.touch()
        if not side.is_empty:
            _replace(copy, side.path)
    count = Git(Path.cwd()).merge_file(result, base, other, marker_size=marker_size)
    if not count:
        return ""
    return f"{visible(name, None)} is JSON of another program, merged by lines, and has {_conflicts(count)}"


def _conflicts(count: int) -> str:
    return "a conflict" if count == 1 else f"{count:,} conflicts"


def _in_form(side: _Version, as_pointer: bool, folder: Path) -> Path:
    if side.is_pointer == as_pointer:
        return side.file
    if as_pointer:
        return _put_into_store(side.file, folder / "pointer")
    _require_fetched(side)
    return side.path


def _merged_value(base: T, ours: T, theirs: T) -> T | None:
    """The value that both sides agree on, or that one of them changed; None if they changed it differently."""
    if ours == theirs or theirs == base:
        return ours
    return theirs if ours == base else None


def _require_fetched(side: _Version) -> None:
    if side.is_pointer and not side.path.is_file():
        raise MissingInputError(
            f"the weights of {side.name} are in Git LFS and not fetched; run `git lfs fetch --all`, then merge again"
        )


def _version(path: Path, what: str) -> _Version:
    source = open_source(path)
    wanted = lfs_pointer(source.read_at(0, min(source.size, POINTER_BYTES)))
    if wanted is None:
        return _Version(what, path, path, _content(source).sha256, is_pointer=False, is_empty=not source.size)
    store = _lfs_storage()
    stored = lfs_file(store, wanted)
    if stored is not None and sha256_of(stored) != wanted.sha256:
        raise FileError(f"the file of {what} in the store of Git LFS is damaged; git lfs fsck shows more")
    return _Version(what, path, stored or Path(os.devnull), wanted.sha256, is_pointer=True, is_empty=not wanted.size)


def _content(source: SourceFile) -> FileSlice:
    # By offsets: if /dev/fd leads to the same descriptor, all readers share one position in the file.
    return FileSlice(source, 0, source.size)


def _lfs_storage() -> Path:
    try:
        return lfs_storage(Git(Path.cwd()))
    except CommandError as error:
        raise FileError(f"git cannot find the store of Git LFS: {error}") from error


def _merged(sides: Sequence[_Version], result: Path, name: str, *, is_virtual: bool) -> str:
    """Write the merge of three models; describe its conflicts, "" for none."""
    from onnxjson.codecs.wire_reading import sharing_graphs
    from onnxjson.merging.conflicted_files import save
    from onnxjson.merging.merge import Merged, merge_uncertain

    for side in sides:
        _require_fetched(side)
    # When ancestors are merged, a side may be the result of another merge, with its conflicts; the base always may.
    with sharing_graphs():
        loaded = [_loaded(side, name, conflicted=is_virtual or side is sides[0]) for side in sides]
    base, ours, theirs = [None if each is None else Merged(each.model, each.conflicts) for each in loaded]
    if ours is None or theirs is None:
        raise DecodeError(f"{'ours' if ours is None else 'theirs'} is an empty file, not a model")
    merged = merge_uncertain(base, ours, theirs)
    form = next(each.format for each in loaded[1:] if each is not None and (not each.conflicts or each is loaded[2]))
    save(merged.model, merged.conflicts, result, form)
    if not merged.conflicts:
        return ""
    number, shown = _conflicts(len({conflict.id for conflict in merged.conflicts})), visible(name, None)
    return f"{shown} has {number}; `onnxjson conflicts {shown}` shows and `onnxjson resolve {shown}` resolves them"


def _loaded(side: _Version, name: str, *, conflicted: bool) -> "files.Loaded | None":
    from onnxjson.storage import files

    if side.is_empty:
        return None
    try:
        return files.load(called(side.path, name), bind=False, conflicted=conflicted)
    except OnnxJsonError as error:
        error.add_place(f"{side.name} cannot be merged")
        raise


def _replace(path: Path, content: Path) -> None:
    """Replace the content of the result file of git, and check that it is complete."""
    wanted = _content(open_source(content))
    with path.open("wb") as target:
        target.writelines(wanted.chunks())
        target.flush()
        os.fsync(target.fileno())
    if sha256_of(path) != wanted.sha256:
        raise FileError("the disk returned other bytes than were written; check the disk")


def _put_into_store(content: Path, pointer: Path) -> Path:
    """Add a file to the local store of Git LFS; return the file of its pointer."""
    from onnxjson.storage.saving import make_folder, save_file

    data = _content(open_source(content))
    sha256 = data.sha256
    store = _lfs_storage()
    place = store / "objects" / sha256[:2] / sha256[2:4] / sha256
    if not place.is_file():
        for folder in (store, place.parents[2], place.parents[1], place.parents[0]):
            make_folder(folder)

        def written(sink: "Sink") -> None:
            for piece in data.chunks():
                sink.write(piece)

        save_file(place, written)
    pointer.write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(data)}\n", "ascii", newline="\n"
    )
    return pointer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

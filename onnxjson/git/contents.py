"""What stands at a path: in the tree of a revision, or in the index."""

import os
from collections.abc import Iterable
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from onnxjson.errors import UntrustedError
from onnxjson.git.commands import Git

_LINK: Final = b"120000"
_SUBMODULE: Final = b"160000"
_FOLDER: Final = b"040000"
_MOST_LINKS: Final = 8


class Entry(NamedTuple):
    """What a tree or the index has under a name."""

    mode: bytes
    """As git prints it, six digits."""
    identity: bytes
    """The hexadecimal name of the object."""

    @property
    def is_file(self) -> bool:
        """Whether it is a file with content of its own."""
        return self.mode not in (_LINK, _SUBMODULE, _FOLDER)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link; its content is where it leads."""
        return self.mode == _LINK

    @property
    def kind(self) -> str:
        """For a person."""
        names = {_LINK: "a symbolic link", _SUBMODULE: "a submodule", _FOLDER: "a folder"}
        return names.get(self.mode, "a file")


class Contents(Protocol):
    """Everything that stands at one revision, by path from the top of the repository, as bytes."""

    def entry(self, path: bytes) -> Entry | None:
        """What stands at a path; None where nothing does."""

    def paths(self) -> Iterable[bytes]:
        """The paths of all files."""


class TreeContents:
    """What a commit holds; see `Contents`. Each folder on the way is listed once."""

    def __init__(self, git: Git, tree: bytes) -> None:
        self._git = git
        self._tree = tree
        self._listed: dict[bytes, dict[bytes, Entry]] = {}

    def entry(self, path: bytes) -> Entry | None:
        """See `Contents`."""
        found = Entry(_FOLDER, self._tree)
        for part in path.split(b"/"):
            if found.mode != _FOLDER:
                return None
            inner = self._entries(found.identity).get(part)
            if inner is None:
                return None
            found = inner
        return found

    def _entries(self, tree: bytes) -> dict[bytes, Entry]:
        # Only names of objects are arguments: no path can be taken for an option or a pattern.
        if tree not in self._listed:
            listing = self._git.items("ls-tree", "-z", "--full-tree", tree)
            self._listed[tree] = {
                name: Entry(mode, identity)
                for head, _, name in (item.partition(b"\t") for item in listing)
                for mode, _, identity in [head.split(b" ")]
            }
        return self._listed[tree]

    def paths(self) -> Iterable[bytes]:
        """See `Contents`."""
        return self._git.items("ls-tree", "-r", "-z", "--name-only", "--full-tree", self._tree, seconds=10)


class IndexContents:
    """What is staged; see `Contents`. In an unfinished merge the stages 1 to 3 are base, ours and theirs."""

    def __init__(self, git: Git, stage: int, top: bytes) -> None:
        self._git = git
        self._stage = stage
        self._top = top

    @cached_property
    def _all(self) -> dict[bytes, dict[int, Entry]]:
        found: dict[bytes, dict[int, Entry]] = {}
        for item in self._git.items("ls-files", "-z", "--stage", "--full-name", "--", self._top or b"."):
            head, _, name = item.partition(b"\t")
            mode, identity, stage = head.split(b" ")
            found.setdefault(name, {})[int(stage)] = Entry(mode, identity)
        return found

    def entry(self, path: bytes) -> Entry | None:
        """See `Contents`; beside a file in conflict the others stand in stage 0."""
        stages = self._all.get(path, {})
        return stages.get(self._stage) or stages.get(0)

    def has(self, path: bytes) -> bool:
        """Whether there is something at a path in just this stage."""
        return self._stage in self._all.get(path, {})

    def stages(self, path: bytes) -> list[int]:
        """The stages in which there is something at a path."""
        return sorted(self._all.get(path, {}))

    def paths(self) -> Iterable[bytes]:
        """See `Contents`."""
        return self._all


def followed(contents: Contents, git: Git, path: bytes, shown: str) -> tuple[bytes, Entry | None]:
    """The path and entry that a path leads to through symbolic links within the repository.

    Raises:
        UntrustedError: a link leads out of the repository, or in a circle.
    """
    for _ in range(_MOST_LINKS):
        entry = contents.entry(path)
        if entry is None or not entry.is_link:
            return path, entry
        target = git.output("cat-file", "blob", entry.identity)
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if os.path.isabs(target) or path.split(b"/")[0] == b"..":
            raise UntrustedError(f"{shown} is a link that leads out of the repository; name the file itself")
    raise UntrustedError(f"{shown} is a link that leads to no file")

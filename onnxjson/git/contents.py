"""Contents of a revision or of the index: entries by path, and suggestions for names that are not there."""

import os
from collections.abc import Iterable
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from onnxjson.git.commands import CommandError, Git
from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import OnnxJsonError, UntrustedError

_LINK: Final = b"120000"
_SUBMODULE: Final = b"160000"
_FOLDER: Final = b"040000"
_MAX_LINKS: Final = 8


class Entry(NamedTuple):
    """Entry of a tree or of the index."""

    mode: bytes
    """As git prints it, six digits."""
    identity: bytes
    """Hexadecimal name of the object."""

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.mode not in (_LINK, _SUBMODULE, _FOLDER)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link; its content is the target."""
        return self.mode == _LINK

    @property
    def kind(self) -> str:
        """Kind in words, for messages."""
        names = {_LINK: "a symbolic link", _SUBMODULE: "a submodule", _FOLDER: "a folder"}
        return names.get(self.mode, "a file")


class Contents(Protocol):
    """All entries of one revision, by path from the top of the repository, as bytes."""

    def entry(self, path: bytes) -> Entry | None:
        """Entry at a path; None if there is none."""

    def paths(self) -> Iterable[bytes]:
        """Paths of all files."""


class TreeContents:
    """Contents of a commit; see `Contents`. Each folder on the way is listed once."""

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
        # Only names of objects are arguments: no path can be mistaken for an option or a pattern.
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
    """Contents of the index; see `Contents`. In an unfinished merge the stages 1 to 3 are base, ours and theirs."""

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
        """See `Contents`; files next to a file in conflict are in stage 0."""
        stages = self._all.get(path, {})
        return stages.get(self._stage) or stages.get(0)

    def has(self, path: bytes) -> bool:
        """Whether there is an entry at a path in this very stage."""
        return self._stage in self._all.get(path, {})

    def stages(self, path: bytes) -> list[int]:
        """Stages with an entry at a path."""
        return sorted(self._all.get(path, {}))

    def paths(self) -> Iterable[bytes]:
        """See `Contents`."""
        return self._all


def follow_links(contents: Contents, git: Git, path: bytes, shown: str) -> tuple[bytes, Entry | None]:
    """Follow symbolic links within the repository; return the path and the entry at the end.

    Raises:
        UntrustedError: a link leads out of the repository, or in a circle.
    """
    for _ in range(_MAX_LINKS):
        entry = contents.entry(path)
        if entry is None or not entry.is_link:
            return path, entry
        target = git.output("cat-file", "blob", entry.identity)
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if os.path.isabs(target) or path.split(b"/")[0] == b"..":
            raise UntrustedError(f"{shown} is a link that leads out of the repository; name the file itself")
    raise UntrustedError(f"{shown} is a link that leads to no file")


_SECONDS: Final = 5.0


def revisions_like(git: Git, revision: str) -> str:
    """Suggest branches, remote branches and tags: ``did you mean "main"?``; "" if none is similar."""
    try:
        printed = git.output("for-each-ref", "--count=50000", "--format=%(refname:short)", seconds=_SECONDS)
    except (CommandError, OnnxJsonError):
        return ""
    return suggest(revision, {"HEAD", *os.fsdecode(printed).splitlines()} - {revision})


def paths_like(git: Git, path: bytes, paths: Iterable[bytes], commit: bytes | None, prefix: bytes) -> str:
    """Suggest where a missing file may be instead, in a sentence; "" if nothing is similar.

    Args:
        git: git, started in the repository.
        path: the missing path, from the top of the repository.
        paths: the paths that exist.
        commit: name of the commit; None for the index.
        prefix: folder of the user, from the top, with a slash at the end; b"" at the top.
    """
    known = set(paths)
    if prefix and prefix + path in known:
        return f'paths begin at the top of the repository; write "./{visible(os.fsdecode(path))}"'
    renamed = _renamed(git, path, commit) if commit is not None else None
    if renamed is not None and renamed in known:
        return f'it was renamed; there it is "{visible(os.fsdecode(renamed))}"'
    names = {os.fsdecode(each) for each in known}
    wanted = os.fsdecode(path)
    same_name = sorted(name for name in names if os.path.basename(name) == os.path.basename(wanted))
    if same_name:
        return "did you mean " + " or ".join(f'"{visible(name)}"' for name in same_name[:3]) + "?"
    return suggest(wanted, names)


def _renamed(git: Git, path: bytes, commit: bytes) -> bytes | None:
    """Find the name in `commit` of an unchanged file that is called `path` today, or was before."""
    try:
        head = git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}", seconds=_SECONDS)
        if (old := _renames(git, commit, head).get(path)) is not None:
            return old
        # The last commit that touched the path may have renamed the file.
        top = git.line("rev-parse", "--show-cdup", seconds=_SECONDS)
        last = git.line("rev-list", "-1", commit, "--", top + path, seconds=_SECONDS)
        if not last:
            return None
        renames = _renames(git, last + b"^", last)
        return next((new for new, old in renames.items() if old == path), None)
    except (CommandError, OnnxJsonError):
        return None


def _renames(git: Git, before: bytes, after: bytes) -> dict[bytes, bytes]:
    """New name -> old name of the files that were renamed between two commits without a change."""
    fields = git.items(
        "diff-tree", "-r", "-z", "-M100%", "--diff-filter=R", "--no-ext-diff", "--no-textconv", "--name-status",
        before, after, "--", seconds=_SECONDS,
    )  # fmt: skip
    return {new: old for _, old, new in zip(fields[::3], fields[1::3], fields[2::3], strict=False)}

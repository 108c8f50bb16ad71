"""Files, ranges and pathspecs as users write them for git; contents of a revision or of the index.

A file at a revision is ``<rev>:<path>`` or ``:<n>:<path>`` (gitrevisions), such as ``HEAD~1:model.onnx``, and
``:model.onnx`` for what is staged. A path begins at the top of the repository unless it begins with ``./`` or ``../``.
"""

import os
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.git.commands import CommandError, Git
from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import OnnxJsonError, UntrustedError

_INDEX: Final = re.compile(r":(?:([0-3]):)?(.+)", re.DOTALL)

PARENT: Final = re.compile(r"(.+)\^(?:!|-([1-9][0-9]{0,3})?)", re.DOTALL)
"""``A^!`` and ``A^-N``, see gitrevisions."""

_MAGIC: Final = re.compile(
    r":(?:/+(?::|(?![!^/]))|\((?P<words>(?:top|literal)(?:,(?:top|literal))*)\))(?P<path>.*)", re.DOTALL
)
"""Pathspec magic that still names a single path: ``top`` and ``literal``. All signs before a colon or the path are
magic, so ``:/!tests`` excludes, but ``:/:!tests`` names a file."""

_PATTERN: Final = re.compile(r"[*?\[\\]")

_LINK: Final = b"120000"
_SUBMODULE: Final = b"160000"
_FOLDER: Final = b"040000"
_MAX_LINKS: Final = 8


class Spec(NamedTuple):
    """A file at a revision, as the user wrote it."""

    text: str
    """The whole text."""
    revision: str | None
    """None for the index."""
    stage: int
    """Stage of the index: 0, or 1 to 3 for base, ours and theirs of an unfinished merge."""
    path: str


def parse(text: str) -> Spec | None:
    """Split ``REV:path``; return None if the text is not of this form."""
    if "\0" in text:
        return None
    if (staged := _INDEX.fullmatch(text)) is not None:
        path = staged[2]
        # ":/text" is a search for a commit by its message.
        return None if path.startswith("/") else Spec(text, None, int(staged[1] or 0), path)
    colon = _colon(text)
    revision, path = text[:colon], text[colon + 1 :]
    if colon < 1 or not path or path.startswith("/") or "\n" in revision:
        return None
    return Spec(text, revision, 0, path)


def is_revision_spec(text: str) -> bool:
    """Whether a text names a file in git; a file on the disk with exactly this name takes precedence."""
    return parse(text) is not None and not os.path.lexists(text)


def _colon(text: str) -> int:
    """Position of the first colon outside of braces, as in ``HEAD^{/fix: this}:model.onnx``; -1 if there is none."""
    depth = 0
    for position, character in enumerate(text):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif character == ":" and depth <= 0:
            return position
    return -1


def is_range(text: str) -> bool:
    """Whether a text names two revisions: ``A..B``, ``A...B``, ``A^!`` or ``A^-``; an omitted one is HEAD."""
    if PARENT.fullmatch(text):
        return True
    if ".." not in text or "/.." in text or text.startswith("/"):
        return False
    # ".." and "../m.onnx" are paths, "..topic" is a range.
    return text.lstrip(".")[:1] not in ("", "/") if text.startswith("..") else not text.startswith(".")


def range_ends(text: str) -> tuple[str, str]:
    """Return both revisions of a range; an omitted one is HEAD."""
    old, _, new = text.partition("..." if "..." in text else "..")
    return old or "HEAD", new or "HEAD"


def literal_path(pathspec: str, top: Path) -> str | None:
    """The one path that a pathspec names, seen from the top of the work tree; None for patterns and exclusions."""
    magic = _MAGIC.fullmatch(pathspec)
    if magic is None:
        return None if pathspec.startswith(":") or _PATTERN.search(pathspec) else pathspec
    words = (magic["words"] or "top").split(",")
    if "literal" not in words and _PATTERN.search(magic["path"]):
        return None
    return os.path.join(top, magic["path"]) if "top" in words else magic["path"]


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


class TreeContents:
    """All entries of a commit, by path from the top of the repository, as bytes."""

    def __init__(self, git: Git, tree: bytes) -> None:
        self._git = git
        self._tree = tree

    def entry(self, path: bytes) -> Entry | None:
        """Return the entry at a path; None if there is none."""
        current = _FOLDER, self._tree
        # Only names of objects are arguments: no path can be mistaken for an option or a pattern.
        for part in path.split(b"/"):
            listing = self._git.items("ls-tree", "-z", "--full-tree", current[1]) if current[0] == _FOLDER else ()
            heads = {name: head.split(b" ") for head, _, name in (item.partition(b"\t") for item in listing)}
            if part not in heads:
                return None
            mode, _, identity = heads[part]
            current = mode, identity
        return Entry(*current)

    def paths(self) -> Iterable[bytes]:
        """Return the paths of all files."""
        return self._git.items("ls-tree", "-r", "-z", "--name-only", "--full-tree", self._tree, seconds=10)


class IndexContents:
    """All entries of the index. In an unfinished merge the stages 1 to 3 are base, ours and theirs."""

    def __init__(self, git: Git, stage: int, top: bytes) -> None:
        self._git = git
        self._stage = stage
        self._top = top

    @cached_property
    def _all(self) -> dict[bytes, dict[int, Entry]]:
        entries: dict[bytes, dict[int, Entry]] = {}
        for item in self._git.items("ls-files", "-z", "--stage", "--full-name", "--", self._top or b"."):
            head, _, name = item.partition(b"\t")
            mode, identity, stage = head.split(b" ")
            entries.setdefault(name, {})[int(stage)] = Entry(mode, identity)
        return entries

    def entry(self, path: bytes) -> Entry | None:
        """Return the entry at a path; files next to a file in conflict are in stage 0."""
        stages = self._all.get(path, {})
        return stages.get(self._stage) or stages.get(0)

    def has(self, path: bytes) -> bool:
        """Whether a path has an entry in exactly this stage."""
        return self._stage in self._all.get(path, {})

    def stages(self, path: bytes) -> list[int]:
        """Stages with an entry at a path."""
        return sorted(self._all.get(path, {}))

    def paths(self) -> Iterable[bytes]:
        """Return the paths of all files."""
        return self._all


Contents = TreeContents | IndexContents


def follow_links(contents: Contents, git: Git, path: bytes, shown: str) -> tuple[bytes, Entry | None]:
    """Follow symbolic links within the repository; return the path and the entry at the end.

    Raises:
        UntrustedError: a link leads out of the repository, or links form a loop.
    """
    for _ in range(_MAX_LINKS):
        entry = contents.entry(path)
        if entry is None or not entry.is_link:
            return path, entry
        target = git.output("cat-file", "blob", entry.identity)
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if os.path.isabs(target) or path.split(b"/")[0] == b"..":
            raise UntrustedError(f"{shown} is a link that leads out of the repository; name the file itself")
    raise UntrustedError(f"{shown} is in a loop of symbolic links")


def revisions_like(git: Git, revision: str) -> str:
    """Suggest branches, remote branches and tags: ``did you mean "main"?``; "" if none is similar."""
    try:
        printed = git.output("for-each-ref", "--count=50000", "--format=%(refname:short)", seconds=5)
    except (CommandError, OnnxJsonError):
        return ""
    return suggest(revision, {"HEAD", *os.fsdecode(printed).splitlines()} - {revision})


def paths_like(path: bytes, paths: Iterable[bytes], prefix: bytes) -> str:
    """Suggest where a missing file may be instead, in a sentence; "" if nothing is similar.

    `path` and `paths` are from the top of the repository, `prefix` is the folder of the user, with a slash at the end.
    """
    known = set(paths)
    if prefix and prefix + path in known:
        return f'paths begin at the top of the repository; write "./{visible(os.fsdecode(path))}"'
    names = {os.fsdecode(each) for each in known}
    wanted = os.fsdecode(path)
    same_name = sorted(name for name in names if os.path.basename(name) == os.path.basename(wanted))
    if same_name:
        return "did you mean " + " or ".join(f'"{visible(name)}"' for name in same_name[:3]) + "?"
    return suggest(wanted, names)

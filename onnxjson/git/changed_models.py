"""Which models of a repository differ between two commits, the index and the work tree, as `git diff` takes them.

::

    (nothing)     the index and the work tree       --staged      HEAD and the index
    A             A and the work tree               --staged A    A and the index
    A B, A..B     A and B                           A...B         what B has since it left A
    A^!, A^-N     a parent of A (the first), and A

Which files are meant is for git to say, which knows pathspecs: ``'*.onnx'``, ``:!tests``, ``:(icase)m.onnx``. Only
names, modes and hashes are asked of git, so that no filter and no program of the repository is run.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.display import visible
from onnxjson.errors import FileError, MissingInputError
from onnxjson.git import near_misses
from onnxjson.git.commands import CommandError, Git
from onnxjson.git.pathspecs import literal_path

ENDINGS: Final = (b".onnx", b".onnx.json", b".onnxjson")
"""What models are called; a file of another name is one if it is named itself."""

_PLAIN: Final = re.compile(r"[\w./~^@-]+")
"""Revisions that stand before a colon as they are."""

_SUBMODULE: Final = b"160000"
_MOST_RENAMES: Final = "1000"


class Version(NamedTuple):
    """A model as it stands on one side."""

    name: str
    """For a person: ``HEAD~1:m.onnx``, ``:m.onnx`` for what is staged, a path for a file on the disk."""
    spec: str | None
    """What `onnxjson.git.repository.opened` takes; None for a file on the disk."""
    path: Path
    """The file on the disk; where it would be, if it is not there."""


class Change(NamedTuple):
    """One model that differs."""

    old: Version | None
    """None where it was added."""
    new: Version | None
    """None where it was removed."""


class _Side(NamedTuple):
    """One of the two things that are compared."""

    text: str
    """What stands before the colon of a name."""
    commit: bytes | None
    """None for the index."""


class _Entry(NamedTuple):
    """One line of what git lists; paths from the top."""

    status: bytes
    old: bytes | None
    new: bytes | None


_PARENT: Final = re.compile(r"(.+)\^(?:!|-([1-9][0-9]{0,3})?)", re.DOTALL)
"""``A^!`` and ``A^-N``, see gitrevisions."""


def is_range(text: str) -> bool:
    """Whether a word says two revisions, as ``A..B``, ``A...B``, ``A^!`` and ``A^-`` do; what is left out is HEAD."""
    if _PARENT.fullmatch(text):
        return True
    if ".." not in text or "/.." in text or text.startswith("/"):
        return False
    # ".." and "../m.onnx" are paths, "..topic" is a range.
    return text.lstrip(".")[:1] not in ("", "/") if text.startswith("..") else not text.startswith(".")


def changed(git: Git, revisions: Sequence[str], paths: Sequence[str], *, staged: bool = False) -> list[Change]:
    """The models that differ, in the order of their paths.

    Args:
        git: started in the folder that `paths` are relative to.
        revisions: none, one or two, or one range.
        paths: pathspecs of git, such as files and folders; without any, all of the repository.
        staged: compare the index instead of the work tree.

    Raises:
        MissingInputError: there is no such revision, no such path on either side, or git does not take a pathspec.
        FileError: git cannot list them.
        OnnxJsonError: git is not there, or refuses the repository.
    """
    try:
        return _Comparison(git, revisions, paths, staged=staged).changes()
    except CommandError as error:
        raise FileError(f"git cannot compare: {error}") from error


class _Comparison:
    def __init__(self, git: Git, revisions: Sequence[str], paths: Sequence[str], *, staged: bool) -> None:
        self._git = git
        self._prefix = git.line("rev-parse", "--show-prefix")
        self._top = Path(os.path.normpath(git.folder / os.fsdecode(git.up())))
        self._sides = self._found_sides(revisions, staged=staged)
        self._pathspecs = tuple(paths)
        self._named = {
            self._from_top(literal): path for path in paths if (literal := literal_path(path, self._top)) is not None
        }

    def _found_sides(self, revisions: Sequence[str], *, staged: bool) -> tuple[_Side, _Side | None]:
        """Both sides; the second one is None for the work tree."""
        index = _Side("", None)
        if len(revisions) == 1 and (of_parent := _PARENT.fullmatch(revisions[0])):
            return self._parent(of_parent[1], int(of_parent[2] or 1)), self._commit(of_parent[1])
        if len(revisions) == 1 and is_range(revisions[0]):
            old, new = (self._commit(text) for text in _ends(revisions[0]))
            if "..." in revisions[0]:
                old = self._merge_base(old, new)
            return old, new
        if len(revisions) == 2:
            return self._commit(revisions[0]), self._commit(revisions[1])
        if staged:
            return self._commit(revisions[0]) if revisions else self._head(), index
        return (self._commit(revisions[0]) if revisions else index), None

    def _head(self) -> _Side:
        if self._git.named("HEAD", "commit") is None:  # nothing was committed yet
            return _Side("HEAD", self._empty_tree())
        return self._commit("HEAD")

    def _parent(self, revision: str, number: int) -> _Side:
        self._commit(revision)
        if number == 1 and self._git.named(f"{revision}^1", "commit") is None:  # the first commit there is
            return _Side(f"{revision}^", self._empty_tree())
        return self._commit(f"{revision}^{number}")

    def _empty_tree(self) -> bytes:
        return self._git.line("hash-object", "-t", "tree", "--stdin")

    def _commit(self, revision: str) -> _Side:
        found = self._git.named(revision, "commit") or self._git.named(revision, "tree")
        if found is None:
            hint = near_misses.revisions_like(self._git, revision)
            raise MissingInputError(
                f'"{visible(revision)}" is no revision of this repository; {hint or "git log --oneline lists them"}'
            )
        return _Side(revision, found)

    def _merge_base(self, one: _Side, other: _Side) -> _Side:
        assert one.commit is not None
        assert other.commit is not None
        try:
            found = self._git.line("merge-base", one.commit, other.commit).split(b"\n")[0]
        except CommandError:
            names = f"{visible(one.text)} and {visible(other.text)}"
            raise MissingInputError(f"{names} have no common ancestor here; fetch more of the history") from None
        return _Side(found[:12].decode(), found)

    def _from_top(self, path: str) -> bytes:
        if os.path.isabs(path):
            path = os.path.relpath(os.path.realpath(path), os.path.realpath(self._git.folder))
        found = os.path.normpath(os.path.join(self._prefix, os.fsencode(path)))
        if found.split(b"/")[0] == b"..":
            raise MissingInputError(f"{visible(path, None)} is outside the repository")
        return b"" if found == b"." else found

    def changes(self) -> list[Change]:
        """See `changed`."""
        old, new = self._sides
        if new is not None:
            entries = list(self._between(old, new))
        elif old.commit is None:
            entries = list(self._of_work_tree())
        else:
            entries = _chained(list(self._between(old, _Side("", None))), list(self._of_work_tree()))
        wanted = self._wanted() if self._pathspecs else None
        chosen = [entry for entry in entries if self._is_wanted(entry, wanted)]
        self._check_named(entries)
        return [self._change(entry) for entry in sorted(chosen, key=lambda entry: entry.new or entry.old or b"")]

    def _between(self, old: _Side, new: _Side, *, limited: bool = False) -> Iterator[_Entry]:
        # Limited to some files git would not see that one of them was another file before.
        renames = ("--no-renames",) if limited else ("-M", f"-l{_MOST_RENAMES}")
        options = ("-r", "-z", *renames, "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv")
        assert old.commit is not None
        command = ("diff-index", *options, "--cached", old.commit)
        if new.commit is not None:
            command = ("diff-tree", *options, old.commit, new.commit)
        yield from _entries(self._asked(*command, limited=limited))

    def _of_work_tree(self, *, limited: bool = False) -> Iterator[_Entry]:
        # Without renames, for which git would read files through the filters of the repository.
        options = ("-z", "--no-renames", "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--ours")
        command = (*_without_filters(self._git), "diff-files", *options)
        found = list(_entries(self._asked(*command, limited=limited)))
        # A path in conflict is listed twice: as such, and as what became of ours.
        unmerged = {entry.new for entry in found if entry.status == b"U"}
        yield from (entry for entry in found if entry.status == b"U" or entry.new not in unmerged)

    def _asked(self, *command: str | bytes, limited: bool) -> list[bytes]:
        """What git lists, of all files or of those that the pathspecs are about."""
        if not limited:
            return self._git.items(*command, "--")
        try:
            return self._git.items("--no-literal-pathspecs", *command, "--", *map(os.fsencode, self._pathspecs))
        except CommandError as error:
            # `changes` asks without pathspecs first, so that a broken repository never comes to this.
            raise MissingInputError(
                f"git does not take what is behind --: {error}; see git help gitglossary"
            ) from error

    def _wanted(self) -> set[bytes]:
        """The paths that differ and that the pathspecs are about."""
        old, new = self._sides
        found: list[_Entry] = []
        if new is not None or old.commit is not None:
            found += self._between(old, new or _Side("", None), limited=True)
        if new is None:
            found += self._of_work_tree(limited=True)
        return {path for entry in found for path in (entry.old, entry.new) if path is not None}

    def _is_wanted(self, entry: _Entry, wanted: set[bytes] | None) -> bool:
        paths = [path for path in (entry.old, entry.new) if path is not None]
        if wanted is not None and wanted.isdisjoint(paths):
            return False
        return any(path.endswith(ENDINGS) or path in self._named for path in paths)

    def _check_named(self, entries: Sequence[_Entry]) -> None:
        """Do nothing if every path that was named, and not described, is somewhere."""
        touched = [path for entry in entries for path in (entry.old, entry.new) if path is not None]
        for path, written in self._named.items():
            if any(path == each or _is_within(each, path) for each in touched) or os.path.lexists(
                self._top / os.fsdecode(path)
            ):
                continue
            # What did not change is on both sides or on none.
            commit = self._sides[0].commit
            there = Path(os.path.relpath(self._top / os.fsdecode(path), self._git.folder))
            listing = ("ls-tree", "-z", "--full-tree", commit) if commit else ("ls-files", "-z", "--full-name")
            if not self._git.items(*listing, "--", path if commit else os.fsencode(there)):
                raise MissingInputError(
                    f"{visible(written, None)} is on neither side; git ls-files lists what is there"
                )

    def _change(self, entry: _Entry) -> Change:
        old, new = self._sides
        stage = 2 if entry.status == b"U" else 0
        before = self._version(old, entry.old, stage) if entry.old is not None else None
        after = self._version(new, entry.new, stage) if entry.new is not None else None
        return Change(before, after)

    def _version(self, side: _Side | None, path: bytes, stage: int) -> Version:
        shown = os.fsdecode(path)
        place = self._top / shown
        if side is None:
            return Version(os.path.relpath(place, self._git.folder), None, place)
        if side.commit is None:
            return Version(f":{shown}" if not stage else f":{stage}:{shown}", f":{stage}:{shown}", place)
        revision = side.text if _PLAIN.fullmatch(side.text) else side.commit.decode()
        return Version(f"{side.text}:{shown}", f"{revision}:{shown}", place)


def _without_filters(git: Git) -> list[str]:
    """Options that keep git from filtering files, which it does where only their content tells whether they changed."""
    try:
        names = git.items("config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process|required)$")
    except CommandError:
        return []  # there are none
    keys = (os.fsdecode(name) for name in names)
    return [word for key in keys for word in ("-c", f"{key}=" + ("false" if key.endswith(".required") else ""))]


def _ends(text: str) -> tuple[str, str]:
    """Both revisions of a range; what is left out is HEAD."""
    old, _, new = text.partition("..." if "..." in text else "..")
    return old or "HEAD", new or "HEAD"


def _is_within(path: bytes, folder: bytes) -> bool:
    return not folder or path.startswith(folder + b"/")


def _entries(items: Sequence[bytes]) -> Iterator[_Entry]:
    """What ``--raw -z`` lists, without submodules."""
    fields = iter(items)
    for head in fields:
        modes_and_status = head.removeprefix(b":").split(b" ")
        status = modes_and_status[4][:1]
        first = next(fields)
        second = next(fields) if status in (b"R", b"C") else first
        if _SUBMODULE in modes_and_status[:2]:
            continue
        yield _Entry(status, None if status == b"A" else first, None if status == b"D" else second)


def _chained(staged: Sequence[_Entry], of_work_tree: Sequence[_Entry]) -> list[_Entry]:
    """What differs between a commit and the work tree: what is staged, and what was done since."""
    found = {entry.new or entry.old: entry for entry in staged}
    for entry in of_work_tree:
        path = entry.old or entry.new
        before = found.pop(path, None)
        old = before.old if before is not None else entry.old
        if old is not None or entry.new is not None:
            found[path] = _Entry(b"M", old, entry.new)
    return list(found.values())

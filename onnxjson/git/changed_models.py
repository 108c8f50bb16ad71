"""Models of a repository that differ between commits, the index and the work tree, and those that are not merged.

As `git diff` compares them:

::

    (nothing)     the index and the work tree       --staged      HEAD and the index
    A             A and the work tree               --staged A    A and the index
    A B, A..B     A and B                           A...B         the merge base of both and B
    A^!, A^-N     a parent of A (the first), and A

git itself evaluates pathspecs: ``'*.onnx'``, ``:!tests``, ``:(icase)m.onnx``. It is used only for names, modes and
hashes, so that no filter and no program of the repository runs.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.git.commands import CommandError, Git
from onnxjson.git.revisions import PARENT, is_range, literal_path, range_ends, revisions_like
from onnxjson.model.display import visible
from onnxjson.model.errors import FileError, MissingInputError

ENDINGS: Final = (b".onnx", b".onnx.json", b".onnxjson")
"""Endings of the names of models; files of other names count if they are named explicitly."""

_PLAIN: Final = re.compile(r"[\w./~^@-]+")
"""Revisions that can be written before a colon as they are."""

_SUBMODULE: Final = b"160000"

_GLOB: Final = re.compile(rb"[][*?\\]")

_MOST_FOLDERS: Final = 3000


class Version(NamedTuple):
    """A model on one side of the comparison."""

    name: str
    """Name for messages: ``HEAD~1:m.onnx``, ``:m.onnx`` for a staged file, a path for a file on the disk."""
    spec: str | None
    """Argument for `onnxjson.git.repository.open_revision`; None for a file on the disk."""
    path: Path
    """Path on the disk, whether the file exists or not."""
    file: str
    """Name without the revision: a path from the top of the repository, for a file on the disk from the folder."""


class Change(NamedTuple):
    """One model that differs."""

    old: Version | None
    """None if it was added."""
    new: Version | None
    """None if it was removed."""


class _Revision(NamedTuple):
    """A revision or the index, to compare with another: its text in names, and its commit, None for the index."""

    text: str
    commit: bytes | None


_INDEX: Final = _Revision("", None)


class _Entry(NamedTuple):  # one line of git's listing; paths from the top
    status: bytes
    old: bytes | None
    new: bytes | None

    def paths(self) -> list[bytes]:
        return [path for path in (self.old, self.new) if path is not None]


def changed(git: Git, revisions: Sequence[str], paths: Sequence[str], *, staged: bool = False) -> list[Change]:
    """List the models that differ, in the order of their paths.

    Args:
        git: git, started in the folder that `paths` are relative to.
        revisions: none, one or two, or one range.
        paths: pathspecs of git, such as files and folders; without any, all of the repository.
        staged: compare the index instead of the work tree.

    Raises:
        MissingInputError: a revision does not exist, a path is on neither side, or git rejects a pathspec.
        FileError: git cannot list them.
        OnnxJsonError: git is not installed, or refuses the repository.
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
        self._sides = self._find_sides(revisions, staged=staged)
        self._pathspecs = tuple(paths)
        self._named = {
            self._from_top(literal): path for path in paths if (literal := literal_path(path, self._top)) is not None
        }

    def _find_sides(self, revisions: Sequence[str], *, staged: bool) -> tuple[_Revision, _Revision | None]:
        """Both sides; the second is None for the work tree."""
        if len(revisions) == 1 and (of_parent := PARENT.fullmatch(revisions[0])):
            revision, number = of_parent[1], of_parent[2] or "1"
            if number == "1":
                return self._commit_or_nothing(f"{revision}^1", f"{revision}^"), self._commit(revision)
            return self._commit(f"{revision}^{number}"), self._commit(revision)
        if len(revisions) == 1 and is_range(revisions[0]):
            old, new = (self._commit(text) for text in range_ends(revisions[0]))
            if "..." in revisions[0]:
                old = self._merge_base(old, new)
            return old, new
        if len(revisions) == 2:
            return self._commit(revisions[0]), self._commit(revisions[1])
        if revisions:
            return self._commit(revisions[0]), _INDEX if staged else None
        return (self._commit_or_nothing("HEAD", "HEAD"), _INDEX) if staged else (_INDEX, None)

    def _commit_or_nothing(self, revision: str, shown: str) -> _Revision:
        """A commit, or the empty tree before the first commit."""
        if self._git.named(revision, "commit") is None:
            return _Revision(shown, self._git.line("hash-object", "-t", "tree", "--stdin"))
        return self._commit(revision)

    def _commit(self, revision: str) -> _Revision:
        identity = self._git.named(revision, "commit") or self._git.named(revision, "tree")
        if identity is None:
            hint = revisions_like(self._git, revision)
            raise MissingInputError(
                f'"{visible(revision)}" is not a revision of this repository; {hint or "git log --oneline lists them"}'
            )
        return _Revision(revision, identity)

    def _merge_base(self, one: _Revision, other: _Revision) -> _Revision:
        assert one.commit is not None
        assert other.commit is not None
        try:
            commit = self._git.line("merge-base", one.commit, other.commit).split(b"\n")[0]
        except CommandError:
            names = f"{visible(one.text)} and {visible(other.text)}"
            raise MissingInputError(f"{names} have no common ancestor here; fetch more of the history") from None
        return _Revision(commit[:12].decode(), commit)

    def _from_top(self, path: str) -> bytes:
        if os.path.isabs(path):
            path = os.path.relpath(os.path.realpath(path), os.path.realpath(self._git.folder))
        from_top = os.path.normpath(os.path.join(self._prefix, os.fsencode(path)))
        if from_top.split(b"/")[0] == b"..":
            raise MissingInputError(f"{visible(path, None)} is outside the repository")
        return b"" if from_top == b"." else from_top

    def changes(self) -> list[Change]:
        between, since = self._entries()
        entries = _chained(between, since) if between and since else between + since
        wanted = self._wanted() if self._pathspecs else None
        chosen = [entry for entry in entries if self._is_wanted(entry, wanted)]
        self._check_named(entries)
        chosen += self._with_changed_weights({path for entry in entries for path in entry.paths()})
        return [self._change(entry) for entry in sorted(chosen, key=lambda entry: entry.new or entry.old or b"")]

    def _with_changed_weights(self, touched: set[bytes]) -> list[_Entry]:
        """Return the models that have external data in files which differ, and do not differ themselves."""
        files = [path for path in touched if not path.endswith(ENDINGS)]
        folders = {folder for path in files for folder in _folders(path)}
        if not files:
            return []
        patterns = b"\n".join({_location(os.path.basename(path)) for path in files}) + b"\n"
        commit = self._sides[1].commit if self._sides[1] is not None else None
        tree = [] if self._sides[1] is None else ["--cached"] if commit is None else [commit]
        few = [b":(top,glob)%b*%b" % (_GLOB.sub(rb"\\\g<0>", folder), each) for folder in folders for each in ENDINGS]
        places = self._pathspecs or (few if len(few) <= _MOST_FOLDERS else [":(top)"])
        command = ("--no-literal-pathspecs", "grep", "-zlaE", "--full-name", "--no-recurse-submodules", "-f", "-")
        try:
            listing = self._git.output(*command, *tree, "--", *map(os.fsencode, places), given=patterns)
        except CommandError as error:
            if error.code == 1:
                return []  # nothing has such a location
            raise
        models = {each.removeprefix(b"%b:" % commit if commit else b"") for each in listing.split(b"\0")[:-1]}
        below = {path: path[: path.rfind(b"/") + 1] for path in models - touched if path.endswith(ENDINGS)}
        return [_Entry(b"M", path, path) for path, folder in below.items() if folder in folders]

    def _entries(self, *, limited: bool = False) -> tuple[list[_Entry], list[_Entry]]:
        old, new = self._sides
        between = [] if old.commit is None else list(self._between(old, new or _INDEX, limited=limited))
        return between, ([] if new is not None else list(self._of_work_tree(limited=limited)))

    def _between(self, old: _Revision, new: _Revision, *, limited: bool = False) -> Iterator[_Entry]:
        # Limited to some files, git would not see that one of them was renamed.
        renames = ("--no-renames",) if limited else ("-M", "-l1000")
        options = ("-r", "-z", *renames, "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv")
        assert old.commit is not None
        command = ("diff-index", *options, "--cached", old.commit)
        if new.commit is not None:
            command = ("diff-tree", *options, old.commit, new.commit)
        yield from _entries(self._list(*command, limited=limited))

    def _of_work_tree(self, *, limited: bool = False) -> Iterator[_Entry]:
        # Without renames, for which git would run the filters of the repository on files.
        options = ("-z", "--no-renames", "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--ours")
        command = (*_without_filters(self._git), "diff-files", *options)
        entries = list(_entries(self._list(*command, limited=limited)))
        # A path in conflict is listed twice: as unmerged, and as a change of ours.
        unmerged = {entry.new for entry in entries if entry.status == b"U"}
        yield from (entry for entry in entries if entry.status == b"U" or entry.new not in unmerged)

    def _list(self, *command: str | bytes, limited: bool) -> list[bytes]:
        if not limited:
            return self._git.items(*command, "--")
        try:
            return self._git.items("--no-literal-pathspecs", *command, "--", *map(os.fsencode, self._pathspecs))
        except CommandError as error:
            # `changes` lists without pathspecs first, so that a broken repository fails before this.
            raise MissingInputError(f"git rejects the arguments after --: {error}; see git help gitglossary") from error

    def _wanted(self) -> set[bytes]:
        return {path for entries in self._entries(limited=True) for entry in entries for path in entry.paths()}

    def _is_wanted(self, entry: _Entry, wanted: set[bytes] | None) -> bool:
        if wanted is not None and wanted.isdisjoint(entry.paths()):
            return False
        return any(path.endswith(ENDINGS) or path in self._named for path in entry.paths())

    def _check_named(self, entries: Sequence[_Entry]) -> None:
        """Raise unless every literal path exists on a side."""
        touched = [path for entry in entries for path in entry.paths()]
        for path, written in self._named.items():
            if any(path in (b"", each) or each.startswith(path + b"/") for each in touched) or os.path.lexists(
                self._top / os.fsdecode(path)
            ):
                continue
            # An unchanged file is on both sides or on neither.
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
        return Change(self._version(old, entry.old, stage), self._version(new, entry.new, stage))

    def _version(self, side: _Revision | None, path: bytes | None, stage: int) -> Version | None:
        if path is None:
            return None
        shown = os.fsdecode(path)
        place = self._top / shown
        if side is None:
            name = os.path.relpath(place, self._git.folder)
            return Version(name, None, place, name)
        if side.commit is None:
            return Version(f":{shown}" if not stage else f":{stage}:{shown}", f":{stage}:{shown}", place, shown)
        revision = side.text if _PLAIN.fullmatch(side.text) else side.commit.decode()
        return Version(f"{side.text}:{shown}", f"{revision}:{shown}", place, shown)


def _folders(path: bytes) -> Iterator[bytes]:
    """Yield the folders around a file, from the top of the repository, each with a slash at its end."""
    parts = path.split(b"/")
    return (b"/".join([*parts[:end], b""]) for end in range(len(parts)))


def _location(name: bytes) -> bytes:
    """Return a pattern of git for a location of external data, in protobuf or as text, that ends with a name."""
    left = 9 - len(name)
    # The length of a location of ten bytes is a line feed, so that it begins a line.
    alone = b"|^" if left == -1 else b'|^[^"]{%d}/' % left if left >= 0 else b""
    escaped = re.sub(rb"[][\\.*^$+?{}()|]", rb"\\\g<0>", name)
    return b'(location(\x12..?|"[^"]*")([^"]*/)?%b)%b' % (alone, escaped)


def _without_filters(git: Git) -> list[str]:
    """Options that keep git from running filters to find out whether files changed."""
    try:
        names = git.items("config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process|required)$")
    except CommandError:
        return []  # no such settings
    keys = (os.fsdecode(name) for name in names)
    return [word for key in keys for word in ("-c", f"{key}=" + ("false" if key.endswith(".required") else ""))]


def _entries(items: Sequence[bytes]) -> Iterator[_Entry]:
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
    """Combine staged changes and those since into the changes between a commit and the work tree."""
    combined = {entry.new or entry.old: entry for entry in staged}
    for entry in of_work_tree:
        path = entry.old or entry.new
        before = combined.pop(path, None)
        old = before.old if before is not None else entry.old
        if old is not None or entry.new is not None:
            combined[path] = _Entry(b"M", old, entry.new)
    return list(combined.values())

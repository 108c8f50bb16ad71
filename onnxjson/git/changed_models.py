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
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.codecs.text_file import is_other_json
from onnxjson.git.commands import CommandError, Git
from onnxjson.git.revisions import PARENT, is_range, literal_path, range_ends, revisions_like
from onnxjson.model.display import visible
from onnxjson.model.errors import FileError, MissingInputError, OnnxJsonError
from onnxjson.model.payloads import CHUNK
from onnxjson.storage.identity import open_source

ENDINGS: Final = (b".onnx", b".onnx.json", b".onnxjson")
"""Endings of the names of models; files of other names count if they are named explicitly."""

_PLAIN: Final = re.compile(r"[\w./~^@-]+")
"""Revisions that can be written before a colon as they are."""

_SUBMODULE: Final = b"160000"

_GLOB: Final = re.compile(rb"[][*?\\]")

_MOST_FOLDERS: Final = 3000

_BEGINNING: Final = b'{\n"format": "onnxjson/1",\n"conflicts": ['

_MODEL: Final = re.compile(rb"(?:%b)(?:~[^/]*)?\Z" % b"|".join(map(re.escape, ENDINGS)), re.DOTALL)
"""Ending of the name of a model; git appends the name of a branch if a folder has the name."""

_MARKER: Final = b"<<<<<<<"

_KEEP_OR_REMOVE: Final = "git add -- {name} keeps it, git rm -- {name} removes it"
_CHOOSE: Final = "git checkout --ours -- {name} restores one of them, or --theirs; then git add -- {name}"
_MERGE: Final = "onnxjson merge {sides} -o {name} merges it by structure; if the file is right: git add -- {name}"

_STATES: Final = {
    (1, 2): ("UD", "ours changed it, and theirs removed or renamed it", _KEEP_OR_REMOVE),
    (1, 3): ("DU", "theirs changed it, and ours removed or renamed it", _KEEP_OR_REMOVE),
    (2,): ("AU", "ours has it under this name, and theirs does not", _KEEP_OR_REMOVE),
    (3,): ("UA", "theirs has it under this name, and ours does not", _KEEP_OR_REMOVE),
    (1,): ("DD", "both sides removed it, or renamed it", "git rm -- {name} records the removal"),
    (2, 3): ("AA", "both sides added it", _CHOOSE),
    (1, 2, 3): ("UU", "both sides changed it", _MERGE),
}
"""State, cause and advice by the stages in the index."""


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
            if "git exited with 1" in str(error):
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


class Leftover(NamedTuple):
    """A model that git has not merged, without conflicts written by `onnxjson`."""

    path: Path
    """Path relative to the folder of the call."""
    state: str
    """The two letters of `git status --short`: ``UD`` where theirs removed what ours changed."""
    what: str
    """A description of the cause; made visible."""
    advice: str
    """Commands to use, made visible; paths are quoted for a shell."""


class Unmerged(NamedTuple):
    """Unfinished merges of a repository."""

    models: list[Path]
    """Models with conflicts, relative to the folder of the call: not merged by git, or added with their conflicts."""
    leftovers: list[Leftover]
    """Models that git has not merged, without conflicts to resolve."""


def unmerged(folder: Path) -> Unmerged:
    """List the unfinished merges of the repository around a folder, in the order of the paths.

    Raises:
        MissingInputError, UntrustedError: there is no repository, or git refuses it.
        CommandError: git failed.
    """
    top = folder / os.fsdecode(Git(folder).line("rev-parse", "--show-cdup"))
    git = Git(top)
    stages: dict[bytes, dict[int, bytes]] = {}
    for entry in git.items("ls-files", "-u", "-z"):
        head, _, path = entry.partition(b"\t")
        _, identity, stage = head.split(b" ")
        stages.setdefault(path, {})[int(stage)] = identity
    models, leftovers = [], []
    # Unmerged paths are tracked, under each of their stages.
    for path in sorted({*git.items("ls-files", "-z")}):
        place = top / os.fsdecode(path)
        shown = Path(os.path.relpath(place, folder))
        is_model = _MODEL.search(path) is not None
        # Texts with conflicts are recognized by their content, so they may have any name of a JSON file.
        if (is_model or path.endswith(b".json")) and _begins_with_conflicts(place):
            models.append(shown)
        elif is_model and path in stages and not _is_other_json(place):
            leftovers.append(_leftover(git, os.fsdecode(path), shown, place, stages[path]))
    return Unmerged(sorted(models), leftovers)


def _leftover(git: Git, from_top: str, path: Path, place: Path, sides: dict[int, bytes]) -> Leftover:
    name = visible(shlex.quote(str(path)), None)
    spelled = " ".join([visible(shlex.quote(f":{stage}:{from_top}"), None) for stage in (1, 2, 3)])
    state, what, advice = _STATES[tuple(sorted(sides))]
    if {2, 3} <= sides.keys():
        what = _what(git, place, sides, what)
    return Leftover(path, state, what, advice.format(name=name, sides=spelled))


def _what(git: Git, place: Path, sides: dict[int, bytes], both: str) -> str:
    try:
        if not place.is_file() or place.is_symlink():
            return f"{both}, and there is no file"
        if _has_markers(place):
            return f"{both}, and git merged its lines and left markers in it"
    except OSError:
        return f"{both}, and the file cannot be read"
    # The unfiltered bytes: a filter would be a program of the repository.
    content = git.line("hash-object", "--no-filters", "--", os.fsencode(os.path.abspath(place)))
    for stage, side in ((2, "ours"), (3, "theirs")):
        if content == sides[stage]:
            return f"{both}, and the file is that of {side} alone"
    return f"{both}, and it no longer has conflicts"


def _has_markers(path: Path) -> bool:
    with path.open("rb") as file:
        return any(line.startswith(_MARKER) for line in iter(partial(file.readline, CHUNK), b""))


def _is_other_json(path: Path) -> bool:
    with suppress(OnnxJsonError):
        return is_other_json(open_source(path))
    return False


def _begins_with_conflicts(path: Path) -> bool:
    with suppress(OSError):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                return file.read(len(_BEGINNING)) == _BEGINNING
    return False

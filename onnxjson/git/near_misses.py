"""What somebody may have meant who named a revision or a path that is not there. All of it is best effort."""

import os
from collections.abc import Iterable
from typing import Final

from onnxjson.display import visible
from onnxjson.errors import OnnxJsonError
from onnxjson.git.commands import CommandError, Git
from onnxjson.suggestions import suggest

_SECONDS: Final = 5.0


def revisions_like(git: Git, revision: str) -> str:
    """``did you mean "main"?`` of the branches, remote branches and tags; "" where none is like it."""
    try:
        printed = git.output("for-each-ref", "--count=50000", "--format=%(refname:short)", seconds=_SECONDS)
    except (CommandError, OnnxJsonError):
        return ""
    return suggest(revision, {"HEAD", *os.fsdecode(printed).splitlines()} - {revision})


def paths_like(git: Git, path: bytes, paths: Iterable[bytes], commit: bytes | None, prefix: bytes) -> str:
    """A sentence on where the file may be instead; "" where nothing is like it.

    Args:
        git: started in the repository.
        path: what is not there, from the top of the repository.
        paths: what is.
        commit: the name of the commit; None for the index.
        prefix: the folder that the user is in, from the top, with a slash at the end; b"" at the top.
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
    """What a file is called in `commit` whose name is `path` today, or was before; of unchanged content."""
    try:
        head = git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}", seconds=_SECONDS)
        if (old := _renames(git, commit, head).get(path)) is not None:
            return old
        # The last commit that touched the path may have given the file the name that it has there.
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

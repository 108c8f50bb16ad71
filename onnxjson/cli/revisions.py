"""Which of the words of `onnxjson diff` are files, and which are what git knows: revisions, ranges, paths."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from onnxjson.errors import OnnxJsonError


class Request(NamedTuple):
    """A comparison as git makes it."""

    revisions: tuple[str, ...]
    """None, one or two, or one range."""
    paths: tuple[str, ...]
    staged: bool


def request_of(words: Sequence[Path], behind: list[str] | None, *, in_git: bool, staged: bool) -> Request | None:
    """What to ask git for; None where the words are two files, or ``REV:path``.

    Args:
        words: those before ``--``.
        behind: those behind it; None where there is none.
        in_git: whether ``--git`` was given.
        staged: whether ``--staged`` was given.

    Raises:
        click.UsageError: they are neither.
        OnnxJsonError: git is needed, and cannot be asked.
    """
    texts = [str(word) for word in words]
    if not staged and behind is None and _has_spec(texts):
        return None
    if not in_git and not staged and _are_files(texts, behind):
        if len(texts or behind or []) != 2:
            raise click.UsageError("two models are compared; name A and B, or a revision, or --git")
        return None
    if behind is not None:
        return _request(texts, behind, staged=staged)
    at = next((position for position, text in enumerate(texts) if not _is_revision(text)), len(texts))
    return _request(texts[:at], texts[at:], staged=staged)


def _are_files(texts: Sequence[str], behind: Sequence[str] | None) -> bool:
    if behind is not None:
        # "-- A B" protects the names of files that look like options.
        return not texts
    if len(texts) == 1:
        return False
    return not texts or os.path.lexists(texts[0]) or not _is_revision(texts[0])


def _has_spec(texts: Sequence[str]) -> bool:
    """Whether two words name one model each, and one of them at a revision, which needs no word more."""
    from onnxjson.git.revisions import is_revision_spec

    return len(texts) == 2 and any(map(is_revision_spec, texts)) and not any(map(_is_revision, texts))


def _is_revision(text: str) -> bool:
    """Whether a word is a revision or a range, and no file."""
    from onnxjson.git.changed_models import is_range
    from onnxjson.git.commands import CommandError, Git

    if ":" in text.partition("^{")[0]:
        return False
    try:
        git = Git(Path.cwd())
        if os.path.lexists(text) and git.line("rev-parse", "--is-bare-repository") == b"false":
            return False  # in a bare repository, HEAD is a file, too
        return is_range(text) or git.named(text, "commit") is not None or git.named(text, "tree") is not None
    except (CommandError, OnnxJsonError):
        return is_range(text) and not os.path.lexists(text)


def _request(revisions: Sequence[str], paths: Sequence[str], *, staged: bool) -> Request:
    from onnxjson.git.changed_models import is_range

    if len(revisions) > 2 or (len(revisions) == 2 and any(is_range(text) for text in revisions)):
        raise click.UsageError("two revisions at most are compared: A B, or A..B, or A...B")
    if staged and (len(revisions) == 2 or any(is_range(text) for text in revisions)):
        raise click.UsageError("--staged compares what is staged with one revision")
    return Request(tuple(revisions), tuple(paths), staged)

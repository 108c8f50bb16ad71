"""The models that a command compares: files, or files at a revision of a git repository."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from onnxjson.cli import output
from onnxjson.cli.paths import FilePath

if TYPE_CHECKING:
    from onnxjson.document import Model


class Side(NamedTuple):
    """One of the models."""

    name: str
    """What the person called it."""
    path: Path
    """The file that holds it; of a revision one that is there as long as its context."""
    model: "Model"
    problems: tuple[str, ...]
    """What stands beside it and could not be had, a sentence each."""


class SidePath(FilePath):
    """The path of a model, or ``REV:path``; completed as a path."""

    name = "model"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """See `click.ParamType.shell_complete`."""
        return [CompletionItem(incomplete, type="file")]


class WordList(click.ParamType):  # type: ignore[type-arg]
    """Words of a list, with commas between them."""

    name = "words"

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """See `click.ParamType.convert`."""
        if isinstance(value, tuple):
            return value
        found = tuple(word.strip() for word in value.split(",") if word.strip())
        for word in found:
            if word not in self.words:
                self.fail(f"{output.quoted(word)} is none of {', '.join(self.words)}", param, ctx)
        return found

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """See `click.ParamType.shell_complete`."""
        before, _, last = incomplete.rpartition(",")
        first = f"{before}," if before else ""
        said = set(before.split(","))
        return [CompletionItem(first + word) for word in self.words if word.startswith(last) and word not in said]


@contextmanager
def opened(path: Path, *, bind: bool) -> Iterator[Side]:
    """A model to compare; a file of that very name goes before a revision.

    Args:
        path: the file, or ``REV:path``.
        bind: whether blobs are looked for; where they are not all there, they stay digests.

    Raises:
        OnnxJsonError: it cannot be read; see `onnxjson.files.load` and `onnxjson.git.repository.opened`.
    """
    if ":" in str(path) and not os.path.lexists(path):
        from onnxjson.git import repository

        if repository.is_revision_spec(str(path)):
            with opened_revision(str(path), str(path)) as side:
                yield side
            return
    with output.working(f"reading {path}"):
        model = _loaded(path, bind=bind)
    yield Side(str(path), path, model, ())


@contextmanager
def opened_revision(spec: str, name: str) -> Iterator[Side]:
    """A model at a revision, under the name that a person knows; see `onnxjson.git.repository.opened`."""
    from onnxjson.git import repository

    with ExitStack() as stack:
        with output.working(f"reading {name}"):
            found = stack.enter_context(repository.opened(spec))
        yield Side(name, found.path, found.loaded.model, found.problems)


def _loaded(path: Path, *, bind: bool) -> "Model":
    from onnxjson import files
    from onnxjson.errors import MissingInputError, UntrustedError

    if bind:
        try:
            return files.load(path).model
        except (MissingInputError, UntrustedError):
            if not path.is_file():
                raise
    # The names of blobs that are not there are the sha256 that is compared.
    return files.load(path, bind=False).model

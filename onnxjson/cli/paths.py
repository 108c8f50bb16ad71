"""Words of the command line that name models: files, or files at a revision of a git repository; their completion."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from onnxjson.cli import output
from onnxjson.model.errors import MissingInputError, OnnxJsonError, OutputError, UntrustedError

if TYPE_CHECKING:
    from onnxjson.model.document import Model

STDOUT: Final = "-"
ENDINGS: Final[dict[str, str]] = {"onnx": ".onnx", "json": ".onnx.json", "protojson": ".onnxjson"}
KNOWN_ENDINGS: Final = (".onnx.json", ".onnxjson", ".onnx", ".json", ".pb")

_HARMLESS: Final = re.compile(r"[A-Za-z0-9_./,-]+")
"""Texts that a shell does not interpret; names in a model may be anything."""

_MOST: Final = 200

OPENED: Final[dict[str, Path]] = {}
"""By their words, models at revisions that stay open while several commands run."""


def stem(name: str) -> str:
    """The name of a model file without its ending."""
    return next((name.removesuffix(each) for each in KNOWN_ENDINGS if name.endswith(each) and name != each), name)


def path_of(word: str) -> Path:
    """The path for a word of the command line: a file, the local copy of a URL, or of a model that is open."""
    if "://" not in word:
        return OPENED.get(word) or Path(word)
    from onnxjson.storage import remote

    return remote.path_of(word)


class FilePath(click.Path):
    """A path; the empty string, which pathlib reads as the current folder, is an error."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(path_type=Path, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("an empty string does not name a file", param, ctx)
        if isinstance(value, str) and ("://" in value or value in OPENED):
            return path_of(value)
        return super().convert(value, param, ctx)


class DestinationPath(FilePath):
    """A file to write, or a folder to write it to; with a slash at its end it must be a folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "://" in value:
            from onnxjson.storage.urls import refuse_writing

            refuse_writing(value)
        if isinstance(value, str) and value.endswith("/") and not os.path.isdir(value):
            raise OutputError(
                f"there is no folder {output.quoted(value)}; create it first, or leave out the / at its end"
            )
        return super().convert(value, param, ctx)


class Revision(click.ParamType[str]):
    """A revision of git; an empty one, such as an unset variable of a script, is an error: git reads it as HEAD."""

    name = "revision"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not value.strip():
            self.fail("it is empty; name a revision, such as main or HEAD~1", param, ctx)
        return value


class Words(click.ParamType[str]):
    """Models, then selectors or values: completed as files, terms of a selector with values of the first model."""

    name = "words"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from onnxjson.patterns.selector_terms import KEYS

        words = ctx.params.get(param.name or "") or ()
        before = incomplete[: incomplete.rfind(" ") + 1]
        last = incomplete[len(before) :]
        mark = "!" if last.startswith("!") else ""
        key, colon, value = last.removeprefix("!").partition(":")
        if not colon or key not in KEYS:
            return [CompletionItem(incomplete, type="file")]
        found = [text for text in _texts(words, key) if text.startswith(value) and _HARMLESS.fullmatch(text)]
        return [CompletionItem(f"{before}{mark}{key}:{text}") for text in found[:_MOST]]


def _texts(words: Sequence[str], key: str) -> list[str]:
    """The values that nodes of the first model have, as a term compares them."""
    from onnxjson.model.index import Index
    from onnxjson.patterns.selector_terms import OUTLINE_KEYS, outline_nodes, property_texts
    from onnxjson.storage import files

    model = next((word for word in words if word.lower().endswith(KNOWN_ENDINGS) and Path(word).is_file()), None)
    if model is None:
        return []
    try:
        index = Index(files.load(model, bind=False).model)
    except OnnxJsonError:
        return []
    if key == "attr":
        return sorted({each.name or "" for ref in index.node_refs for each in ref.node.attribute})
    if key in OUTLINE_KEYS:
        return [*outline_nodes(index, key)]
    return sorted({text for ref in index.node_refs for text in property_texts(ref, key)})


def refuse_sources(destination: Path, source: Path, model: "Model", weights_from: Path | None) -> None:
    """Raise OutputError if `destination` is what `model` was read from, or a file with its weights."""
    from onnxjson.storage import named_files, weights

    if not destination.exists():
        return
    if destination.samefile(source):
        raise OutputError(f"{destination} is the input itself; name another file")
    if weights_from is not None and destination.samefile(weights_from):
        raise OutputError(f"{destination} is the model that has the weights; name another file")
    folder = source.parent
    if named_files.is_data_of(destination, model, folder) or weights.is_blob_of(destination, model, folder):
        raise OutputError(f"{destination} contains weights of {source}; name another file")


class Side(NamedTuple):
    """One of the models that are compared or merged."""

    name: str
    path: Path
    """File of the model; for a revision a temporary one that exists only within its context."""
    model: "Model"
    problems: tuple[str, ...]
    """Files of the model that could not be read, one sentence each."""


@contextmanager
def open_side(path: Path, *, bind: bool) -> Iterator[Side]:
    """Read a file, or ``REV:path`` if no file has that name; `bind` reads blobs, unless some are missing."""
    from onnxjson.storage import files

    if ":" in str(path) and not os.path.lexists(path):
        from onnxjson.git import repository

        if repository.is_revision_spec(str(path)):
            with open_revision(str(path), str(path)) as side:
                yield side
            return
    with output.reading(path):
        try:
            model = files.load(path, bind=bind).model
        except (MissingInputError, UntrustedError):
            if not bind or not path.is_file():
                raise
            # The names of missing blobs are the sha256 that is compared.
            model = files.load(path, bind=False).model
    yield Side(str(path), path, model, ())


@contextmanager
def open_revision(spec: str, name: str) -> Iterator[Side]:
    """Read a model at a revision, shown as `name`; see `onnxjson.git.repository.open_revision`."""
    from onnxjson.git import repository

    with ExitStack() as stack:
        with output.working(f"reading {name}"):
            found = stack.enter_context(repository.open_revision(spec))
        yield Side(name, found.path, found.loaded.model, found.problems)

"""The models of a fleet: files, folders, patterns, manifests, trees of git, and objects at URLs."""

import glob
import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.errors import MissingInputError
from onnxjson.storage.remote import failures, file_system
from onnxjson.storage.urls import is_url, shown

ENDINGS: Final = (".onnx", ".onnx.json", ".onnxjson")
"""The endings of models in folders, and in patterns that name no ending."""

_ENDING: Final = re.compile(r"\.onnx(\.?json)?$", re.IGNORECASE)
_MAGIC: Final = re.compile(r"[*?\[]")
_LISTED: Final = re.compile(rb"[0-9]+ blob [0-9a-f]+ +([0-9]+)\t(.*)", re.DOTALL)


class Source(msgspec.Struct, frozen=True):
    """One model of a fleet."""

    model: str
    """Its name in the results: the path, the URL, or ``REV:path``."""
    relative: str
    """Its path below the folder or pattern that named it."""
    size: int | None = None
    """Bytes, with the data files that have its name, if the listing tells them."""

    @property
    def shown(self) -> str:
        """Its name in the results: without secrets of a URL, and in UTF-8."""
        name = shown(self.model) if is_url(self.model) else self.model
        return name.encode("utf-8", "backslashreplace").decode()


def list_models(words: Iterable[str]) -> tuple[Source, ...]:
    """List the models that `words` name, each once, in the order of the words, else by name.

    Args:
        words: files, folders (with all models in them), patterns with ``*`` and ``**``, URLs of all these, ``REV:dir``
            for a tree of git, and manifests: ``.txt`` files with one of these per line.

    Raises:
        MissingInputError: a word names nothing.
        AccessDeniedError, FileError: a listing cannot be read.
    """
    _names.cache_clear()
    sources: dict[str, Source] = {}
    for word in words:
        for source in _named(word):
            sources.setdefault(source.model, source)
    return tuple(sources.values())


def _named(word: str, is_line: bool = False) -> list[Source]:
    sources = list(_named_by(word, is_line))
    if not sources:
        raise MissingInputError(f"{visible(shown(word), None)} names no model; models end with {', '.join(ENDINGS)}")
    return sources


def _named_by(word: str, is_line: bool) -> Iterator[Source]:
    """The models that a word names; `is_line`: a line of a manifest."""
    if is_url(word):
        yield from _objects(word)
    elif word.endswith(".txt") and not is_line:
        yield from _manifest(Path(word))
    elif ":" in word and not os.path.lexists(word):
        yield from _tree(word)
    elif _MAGIC.search(word) and not os.path.lexists(word):
        root = _root(word)
        for path in sorted(glob.iglob(word, recursive=True, include_hidden=True)):
            if os.path.isfile(path) and _fits(path, word):
                yield _file(path, os.path.relpath(path, root or "."))
    elif os.path.isdir(word):
        for folder, names, files in os.walk(word):
            names.sort()
            for name in sorted(files):
                if name.lower().endswith(ENDINGS):
                    path = os.path.join(folder, name)
                    yield _file(path, os.path.relpath(path, word))
    elif os.path.lexists(word):
        yield _file(word, os.path.basename(word))


def _file(path: str, relative: str) -> Source:
    """A file, whose size includes files next to it that have its name and more, such as m.onnx.data and m_data."""
    folder, name = os.path.split(path)
    try:
        size = os.stat(path).st_size
        names, start = _names(folder), _ENDING.sub("", name)
        for other in names[bisect_left(names, start) :]:
            if not other.startswith(start):
                break
            if other[len(start) : len(start) + 1] in (".", "_", "-") and not other.lower().endswith(ENDINGS):
                size += os.stat(os.path.join(folder, other)).st_size
    except OSError:
        return Source(path, relative)
    return Source(path, relative, size)


@lru_cache(maxsize=1)
def _names(folder: str) -> list[str]:
    return sorted(os.listdir(folder or "."))


def _root(pattern: str) -> str:
    """The folder of a pattern: what is before its first component with a special character."""
    before = pattern[: found.start()] if (found := _MAGIC.search(pattern)) else pattern
    return before.rpartition("/")[0]


def _fits(name: str, pattern: str) -> bool:
    """Whether a match of a pattern is a model: by the ending in the pattern, else by that of models."""
    return "." in pattern.rpartition("/")[2] or name.lower().endswith(ENDINGS)


def _manifest(path: Path) -> Iterator[Source]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise MissingInputError(f"the manifest {visible(str(path), None)} cannot be read: {error}") from error
    sources: list[Source] = []
    for line in lines:
        word = line.strip()
        if word and not word.startswith("#"):
            plain = _plain(word)
            sources += [_one(word)] if plain.endswith(ENDINGS) and not _MAGIC.search(plain) else _named(word, True)
    # Relative paths are those below the folder that all models of the manifest have in common.
    models = [each.model for each in sources]
    names = [os.path.normpath(_plain(each)) if is_url(each) else os.path.abspath(each)[1:] for each in models]
    root = os.path.commonpath(map(os.path.dirname, names))
    for source, name in zip(sources, names, strict=True):
        yield msgspec.structs.replace(source, relative=name[len(root) :].lstrip("/"))


def _plain(word: str) -> str:
    """A word without the query of a URL, where ``?`` is not a wildcard."""
    return shown(word) if word.startswith(("http://", "https://")) else word


def _one(word: str) -> Source:
    """A model that a manifest names; whether it exists is found out when it is read."""
    return Source(word, "") if is_url(word) else _file(word, "")


def _objects(url: str) -> Iterator[Source]:
    head, mark, rest = url.partition("::")
    if not _MAGIC.search(_plain(head)) and _plain(head).lower().endswith(ENDINGS):
        yield Source(url, _plain(head).rpartition("/")[2])
        return
    system, name = file_system(url)
    with failures(url):
        infos: dict[str, dict[str, Any]] = (
            system.glob(name, detail=True) if _MAGIC.search(name) else system.find(name, detail=True)
        )
    root = _root(name) if _MAGIC.search(name) else name.rstrip("/")
    for path, info in sorted(infos.items()):
        if info.get("type") != "directory" and _fits(path, head):
            shown = system.unstrip_protocol(path) + mark + rest
            yield Source(shown, path.removeprefix(root).lstrip("/"), info.get("size"))


def _tree(word: str) -> Iterator[Source]:
    from onnxjson.git.commands import CommandError, Git

    revision, _, folder = word.partition(":")
    git = Git(Path.cwd())
    try:
        commit = git.named(revision, "tree")
        if commit is None:
            unknown = f"there is no revision {visible(revision, None)}, and no such file"
            raise MissingInputError(f"{visible(word, None)}: {unknown}")
        items = git.items("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    except CommandError as error:
        raise MissingInputError(f"{visible(word, None)}: git cannot list it: {error}") from error
    below = folder.strip("/") + "/" if folder.strip("/") else ""
    for item in items:
        blob = _LISTED.fullmatch(item)
        path = os.fsdecode(blob[2]) if blob else ""
        if blob and path.startswith(below) and path.lower().endswith(ENDINGS):
            yield Source(f"{revision}:{path}", path.removeprefix(below), int(blob[1]))

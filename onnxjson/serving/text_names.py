"""Names in a text of a model, valid or not, found by walking through its strings and brackets."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from onnxjson.codecs.reading.tree import Key
from onnxjson.model.limits import TEXT_DEPTH

_DECLARING: Final = ("input", "output", "initializer", "value_info")

TOKEN: Final = re.compile(r'"((?:[^"\\\n]|\\.)*+)("?)(\s*+:)?|([\[{])|([\]}])|(,(?:[^][{},"/]*+,)*+)|//[^\n]*')
"""A string with an optional colon, a bracket, one or more commas with only numbers between them, or a comment."""

_OF_NODES: Final = {"op_type": "operator", "name": "node"}
_OF_VALUES: Final = {"name": "value", "type": "type"}


class Named(NamedTuple):
    """A name in a text."""

    name: str
    kind: str
    """ "value", "node", "operator", "attribute", "type", "dimension", or "file"."""
    start: int
    """Offset before its first character, where a string has its opening quote."""
    end: int
    """Offset after the character that follows it, the closing quote."""
    path: tuple[Key, ...]
    """Where it is in the tree."""


def walk(text: str, path: list[Any], start: int) -> Iterator[tuple[int, int, tuple[Key, ...], bool]]:
    """Yield start, end and path of each string and bracket from `start` on, and whether it is a key.

    `path` is that of the place where the walk begins. Any text can be walked, valid or not. Of commas with only numbers
    between them, such as those of a long list, the first and the last are yielded.
    """
    for token in TOKEN.finditer(text, start):
        string, closing, colon, opening, closed, comma = token.groups()
        is_key = False
        if string is not None:
            is_key = bool(path) and not isinstance(path[-1], int) and (colon is not None or path[-1] is None)
            if is_key:
                path[-1] = unquoted(string) if "\\" in string else string
        elif opening is not None:
            yield token.start(), token.end(), tuple(path), False
            if len(path) > TEXT_DEPTH:
                return  # no reader accepts what is deeper
            path.append(None if opening == "{" else 0)
            continue
        elif closed is not None:
            if path:
                path.pop()
        elif comma is not None:
            if path and isinstance(path[-1], int):
                path[-1] += 1
                if (more := comma.count(",") - 1) > 0:
                    yield token.start(), token.start() + 1, tuple(path), False
                    path[-1] += more
            elif path:
                path[-1] = None
            yield token.end() - 1, token.end(), tuple(path[:-1] if path and path[-1] is None else path), False
            continue
        else:
            continue
        end = token.start() + len(string) + 1 + len(closing) if string is not None else token.end()
        yield token.start(), end, tuple(path[:-1] if path and path[-1] is None else path), is_key


def end_of(text: str, start: int) -> int:
    """The offset after the string that begins at `start`."""
    position = start + 1
    while position < len(text) and text[position] not in '"\n':
        position += 2 if text[position] == "\\" else 1
    return position + 1


def unquoted(string: str) -> str:
    """The text of a JSON string with escapes; as it is written if they are not valid."""
    try:
        return str(json.loads(f'"{string}"'))
    except ValueError:
        return string


def kind_of(path: tuple[Key, ...], *, is_key: bool) -> str:
    """The kind of the name at a path of a tree; "" if there is none."""
    length = len(path)
    if is_key:
        is_attribute = length > 3 and path[-2] == "attribute" and path[-4] == "node"
        return "attribute" if is_attribute and isinstance(path[-3], int) else ""
    if length < 3:
        return ""
    last, owner = path[-1], path[-2]
    if isinstance(last, int):
        is_value = length > 3 and owner in ("input", "output") and path[-4] in ("node", "functions")
        return "value" if is_value and isinstance(path[-3], int) else ""
    if last in ("blob", "location"):
        return "file"
    if not isinstance(owner, int):
        return ""
    if path[-3] == "node":
        return _OF_NODES.get(last, "")
    return _OF_VALUES.get(last, "") if path[-3] in _DECLARING else ""


def is_definition(named: Named) -> bool:
    """Whether a value gets its name there: as output of a node, input of a graph, or initializer."""
    words = named.path[-3:]
    if named.kind != "value":
        return False
    if named.path[0] == "functions" and len(named.path) == 4:
        return words[-2] == "input"
    return words[-2] == "output" if named.path[-4:-3] == ("node",) else words[0] in ("input", "initializer")


def graph_of(path: tuple[Key, ...]) -> tuple[Key, ...]:
    """The path of the graph or function that a path is in."""
    for position in range(len(path) - 1, 0, -1):
        if path[position] in ("node", *_DECLARING) and path[position - 2 : position - 1] != ("node",):
            return path[:position]
    return ()


def is_within(path: Sequence[Key], graph: Sequence[Key]) -> bool:
    """Whether a path is in a graph or function."""
    return tuple(path[: len(graph)]) == tuple(graph)


def ends_of_nodes(path: Sequence[Key]) -> list[int]:
    """The lengths of the parts of a path that lead to a node, the outermost first."""
    return [end for end in range(2, len(path) + 1) if path[end - 2] == "node" and isinstance(path[end - 1], int)]

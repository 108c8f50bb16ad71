"""How a name becomes another: one by one, by a regular expression with groups, by a table in a file."""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from onnxjson.display import visible
from onnxjson.errors import EditError, SelectorError
from onnxjson.identity import reading_error
from onnxjson.name_patterns import captures, has_wildcards, regular_expression, wildcards
from onnxjson.suggestions import suggest

_MOST_BYTES: Final = 64 << 20
_KINDS: Final = {"dim": "dimension", "metadata": "key of metadata"}


class Changer:
    """Gives the new name for an old one, or None for one that stays."""

    def __init__(self, names: Mapping[str, str] | None, change: Callable[[str], str | None] | None) -> None:
        self.names = names
        """The names that change, where that is said name by name."""
        self._change = change
        if names is not None:
            others: dict[str, str] = {}
            for old, new in names.items():
                if new in others:
                    pair = f'"{visible(others[new])}" and "{visible(old)}"'
                    raise EditError(f'names would collide: {pair} would both be "{visible(new)}"')
                others[new] = old

    def __call__(self, name: str) -> str | None:
        """The new name of a name; None where it stays."""
        if self.names is not None:
            return self.names.get(name)
        return None if self._change is None else self._change(name)

    def require_all(self, found: Collection[str], known: Iterable[Collection[str]], kind: str) -> None:
        """Do nothing if every name that is to change was found.

        Raises:
            SelectorError: one was not, or the pattern fits none.
        """
        what = _KINDS.get(kind, kind)
        if self.names is None:
            if not found:
                names = [name for each in known for name in each]
                some = ", ".join(f'"{visible(name)}"' for name in names[:5])
                raise SelectorError(f"the pattern fits no {what}; {f'there are {some}' if some else 'there is none'}")
            return
        missing = self.names.keys() - set(found)
        for old in self.names:
            if old in missing:
                names = [name for each in known for name in each]
                hint = suggest(old, names) or (f"there are {len(names):,}" if names else "there is none")
                raise SelectorError(f'no {what} is called "{visible(old)}"; {hint}')


def changer(old: str, new: str) -> Changer:
    """What `from` and `to` of a renaming say.

    Raises:
        SelectorError: a regular expression is none.
        EditError: `new` names a group that it does not have.
    """
    if not old.startswith("re:"):
        return Changer({old: new}, None)
    pattern = captures(old.removeprefix("re:"))
    parts = _template(new, pattern.groups)

    def change(name: str) -> str | None:
        found = pattern.find(name)
        if found is None:
            return None
        return "".join([part if isinstance(part, str) else found[part] for part in parts])

    return Changer(None, change)


def _template(text: str, groups: Mapping[str, int]) -> list[str | int]:
    """A replacement in parts: texts, and the numbers of groups."""
    parts: list[str | int] = []
    at = 0
    while (found := text.find("\\", at)) >= 0:
        parts.append(text[at:found])
        following = text[found + 1 : found + 2]
        at = found + 2
        if following == "\\":
            parts.append("\\")
            continue
        name = following
        if following == "g" and text[at : at + 1] == "<" and ">" in text[at:]:
            name, at = text[at + 1 : text.index(">", at)], text.index(">", at) + 1
        elif following.isdigit() and text[at : at + 1].isdigit():
            name, at = following + text[at], at + 1
        if name == "0":
            parts.append(0)
        elif name in groups:
            parts.append(groups[name])
        else:
            there = ", ".join(groups) or "none"
            raise EditError(
                f'"{visible(text)}" takes up "\\{visible(name)}", which is no group of the pattern (groups: {there}); '
                "a backslash itself is written \\\\"
            )
    parts.append(text[at:])
    return parts


def dictionary_of(file: Path) -> dict[str, str]:
    """The names in a CSV file of two columns, old before new.

    Raises:
        MissingInputError, AccessDeniedError, FileError: it cannot be read.
        EditError: a line has another number of columns, or names an old name again.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise reading_error(file, error) from error
    shown = visible(str(file), None)
    if len(data) > _MOST_BYTES:
        raise EditError(f"{shown} has more than {_MOST_BYTES >> 20} MiB, too many for a table of names")
    names: dict[str, str] = {}
    reader = csv.reader(io.StringIO(data.decode("utf-8-sig", "surrogateescape"), newline=""), strict=True)
    try:
        for row in reader:
            if not row:
                continue
            if len(row) != 2:
                raise EditError(f"{shown}: line {reader.line_num} has {len(row)} columns; two are wanted, old and new")
            if row[0] in names:
                raise EditError(f'{shown}: line {reader.line_num} names "{visible(row[0])}" again')
            names[row[0]] = row[1]
    except csv.Error as error:
        raise EditError(f"{shown}: line {reader.line_num} is no CSV: {error}") from error
    if not names:
        raise EditError(f"{shown} names nothing; each line has an old name, a comma and a new one")
    return names


def matching(text: str, names: Sequence[str], kind: str) -> list[str]:
    """The names that a text means: that very name, else those that fit its wildcards, or its pattern after ``re:``.

    Raises:
        SelectorError: it means none.
    """
    if text.startswith("re:"):
        pattern = regular_expression(text.removeprefix("re:"))
        found = [name for name in names if pattern.matches(name)]
    else:
        found = [name for name in names if name == text]
        if not found and has_wildcards(text):
            like = wildcards(text)
            found = [name for name in names if like.matches(name)]
    if not found:
        some = ", ".join([f'"{visible(name)}"' for name in names[:5]])
        hint = suggest(text, names) or (f"there are {some}" if some else "there is none")
        raise SelectorError(f'no {kind} is called "{visible(text)}"; {hint}')
    return found

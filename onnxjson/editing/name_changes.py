"""Rules for new names: name by name, by a regular expression with groups, or by a table in a file."""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.limits import NAME_TABLE_BYTES
from onnxjson.patterns.names import Wildcards, has_wildcards, regular_expression
from onnxjson.storage.identity import open_source

_KINDS: Final = {"dim": "dimension", "metadata": "key of metadata"}

_REFERENCE: Final = re.compile(r"\\(?:(\\)|g<([^>]*)>|([0-9]{1,2})|(.?))", re.DOTALL)


class NameRule:
    """Returns the new name of an old one, or None for a name that stays."""

    def __init__(self, names: Mapping[str, str] | None, change: Callable[[str], str | None] | None) -> None:
        self.names = names
        """Names that change, if they are given one by one."""
        self._change = change
        if names is not None:
            others: dict[str, str] = {}
            for old, new in names.items():
                if new in others:
                    pair = f'"{visible(others[new])}" and "{visible(old)}"'
                    raise EditError(f'names would collide: {pair} would both be "{visible(new)}"')
                others[new] = old

    def __call__(self, name: str) -> str | None:
        """Return the new name; None if the name stays."""
        if self.names is not None:
            return self.names.get(name)
        return None if self._change is None else self._change(name)

    def new_names(self, names: Iterable[str]) -> dict[str, str]:
        """Return the new names of those that change."""
        return {name: new for name in names if (new := self(name)) is not None}

    def require_all(self, changed: Collection[str], known: Iterable[Collection[str]], kind: str) -> None:
        """Raise unless all names to change were found.

        Raises:
            SelectorError: one was not found, or the pattern matches none.
        """
        what = _KINDS.get(kind, kind)
        if self.names is None:
            if not changed:
                some = listed([f'"{visible(name)}"' for each in known for name in each], 5)
                raise SelectorError(f"the pattern matches no {what}; there {f'are {some}' if some else 'is none'}")
            return
        present = set(changed)
        missing = next((old for old in self.names if old not in present), None)
        if missing is not None:
            names = [name for each in known for name in each]
            hint = suggest(missing, names) or (f"there are {len(names):,}" if names else "there is none")
            raise SelectorError(f'no {what} is called "{visible(missing)}"; {hint}')


def name_rule(old: str, new: str, *, parts: bool = False) -> NameRule:
    """Return the rule of `from` and `to` of a renaming; with `parts`, of every occurrence of `old` in a name.

    Raises:
        SelectorError: a regular expression is not valid.
        EditError: `new` refers to a group that the pattern does not have.
    """
    if parts:
        if not old or old.startswith("re:"):
            raise EditError("`parts` replaces plain text; leave out re:")
        return NameRule(None, lambda name: name.replace(old, new) if old in name else None)
    if not old.startswith("re:"):
        return NameRule({old: new}, None)
    pattern = regular_expression(old.removeprefix("re:"))
    template = _template(new, pattern.groups)

    def change(name: str) -> str | None:
        match = pattern.find(name)
        if match is None:
            return None
        return "".join([part if isinstance(part, str) else match[part] for part in template])

    return NameRule(None, change)


def _template(text: str, groups: Mapping[str, int]) -> list[str | int]:
    """Split a replacement into strings and numbers of groups."""
    parts: list[str | int] = []
    at = 0
    for reference in _REFERENCE.finditer(text):
        parts.append(text[at : reference.start()])
        at = reference.end()
        name = next(each for each in reference.groups() if each is not None)
        if reference[1]:
            parts.append(reference[1])
        elif name == "0" or name in groups:
            parts.append(groups.get(name, 0))
        else:
            there = ", ".join(groups) or "none"
            raise EditError(
                f'"{visible(text)}" refers to "\\{visible(name)}", not a group of the pattern (groups: {there}); '
                "a backslash itself is written \\\\"
            )
    parts.append(text[at:])
    return parts


def read_name_table(file: Path) -> dict[str, str]:
    """Read a table of names from a CSV file with two columns, old and new.

    Raises:
        MissingInputError, AccessDeniedError, FileError: it cannot be read.
        EditError: a line has another number of columns, or repeats an old name.
    """
    source = open_source(file)
    shown = visible(str(file), None)
    if source.size > NAME_TABLE_BYTES:
        raise EditError(f"{shown} has more than {NAME_TABLE_BYTES >> 20} MiB, too much for a table of names")
    data = source.read_at(0, source.size)
    names: dict[str, str] = {}
    reader = csv.reader(io.StringIO(data.decode("utf-8-sig", "surrogateescape"), newline=""), strict=True)
    try:
        for row in reader:
            if not row:
                continue
            if len(row) != 2:
                raise EditError(f"{shown}: line {reader.line_num} has {len(row)} columns, not two: old and new")
            if row[0] in names:
                raise EditError(f'{shown}: line {reader.line_num} repeats "{visible(row[0])}"')
            names[row[0]] = row[1]
    except csv.Error as error:
        raise EditError(f"{shown}: line {reader.line_num} is not CSV: {error}") from error
    if not names:
        raise EditError(f"{shown} has no names; each line has an old name, a comma and a new one")
    return names


def matching(text: str, names: Sequence[str], kind: str) -> list[str]:
    """Return the names that a text selects: that name itself, else those that match its wildcards or ``re:`` pattern.

    Raises:
        SelectorError: it selects none.
    """
    if text.startswith("re:"):
        pattern = regular_expression(text.removeprefix("re:"))
        matches = [name for name in names if pattern.matches(name)]
    else:
        matches = [name for name in names if name == text]
        if not matches and has_wildcards(text):
            like = Wildcards(text)
            matches = [name for name in names if like.matches(name)]
    if not matches:
        some = listed([f'"{visible(name)}"' for name in names], 5)
        hint = suggest(text, names) or (f"there are {some}" if some else "there is none")
        raise SelectorError(f'no {kind} is called "{visible(text)}"; {hint}')
    return matches

"""Answers of tools for agents: a sentence of the program, and data in a fenced block, of bounded length."""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from onnxjson.model.display import counted

MOST_CHARACTERS: Final = 20_000
"""Characters of an answer."""

MOST_TEXT: Final = 300
"""Characters of one text in an answer."""

PAGE: Final = 50
"""Items of a list in an answer."""


def answer(words: str, data: object) -> str:
    """Return a sentence of the server, and data in a fenced block.

    Args:
        words: made by this program; no text of a model.
        data: plain values, records of msgspec, or lists of them.
    """
    plain = msgspec.to_builtins(data, str_keys=True)
    text, most = "", 2 * PAGE
    while not text or (len(text) > MOST_CHARACTERS and most):
        text = json.dumps(_bounded(plain, most), separators=(", ", ": ")).replace("`", "\\u0060")
        most //= 2
    if len(text) > MOST_CHARACTERS:
        text = json.dumps({"cut": text[:MOST_CHARACTERS].replace("\\", "/")})
        words += f" The data was cut to {MOST_CHARACTERS:,} characters; ask for less."
    return f"{words}\n```json\n{text}\n```"


def paged(items: Sequence[Any], noun: str, page: int) -> tuple[str, list[Any]]:
    """Return how many items there are, in words, and those of one page, from 1."""
    pages = max(1, -(-len(items) // PAGE))
    shown = list(items[(page - 1) * PAGE : page * PAGE]) if page > 0 else []
    more = f", page {page:,} of {pages:,}" if pages > 1 or page != 1 else ""
    return f"{counted(len(items), noun)}{more}.", shown


def _bounded(value: Any, most: int) -> Any:
    """The value with at most `most` items in each list, short texts, and no keys without a value."""
    if isinstance(value, str):
        return value if len(value) <= MOST_TEXT else f"{value[:MOST_TEXT]}... ({len(value):,} characters)"
    if isinstance(value, dict):
        return {_bounded(key, most): _bounded(each, most) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        shown = [_bounded(each, most) for each in value[:most]]
        return [*shown, f"and {len(value) - most:,} more"] if len(value) > most else shown
    return value

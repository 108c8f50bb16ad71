"""Completion of the command line: commands, edits, their parameters, names of the model by role, and paths."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from onnxjson.editing.catalogue import NAMES
from onnxjson.editing.declaration import positional, summary
from onnxjson.editing.parameters import Parameter
from onnxjson.editing.spelling import candidates, expected, option_of, scan
from onnxjson.model.display import visible
from onnxjson.model.dtypes import DATA_TYPE_NAMES
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index, NodeRef
from onnxjson.patterns.selector_terms import KEYS, Value, parse, property_texts, spelled
from onnxjson_tui.names.editable_names import is_plain
from onnxjson_tui.names.form_filling import Filling
from onnxjson_tui.names.offers import Offers
from onnxjson_tui.session.opening import complete_path
from onnxjson_tui.session.session import Session
from onnxjson_tui.widgets.actions import Action

MOST: Final = 60  # maximum number of completions; typing more narrows them down

_WORD: Final = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\\?\Z)|\\\Z)+""", re.S)
"""A word with its quotes, which may be open at the end of the line."""

_PIECE: Final = re.compile(r"""'([^']*)'?|"((?:\\.|[^"\\])*\\?)"?|(?:\\(?=.))?([^'"\\]+|.)""", re.S)
"""A part of a word: in single quotes, in double quotes, an escaped character, or plain."""

_NODES_LOOKED_AT: Final = 200_000  # maximum number of nodes that are searched for one completion


class Typed(NamedTuple):
    """A command line up to the cursor."""

    head: str  # everything before the last word, as typed
    words: tuple[str, ...]  # the words of the head, unquoted
    last: str  # the unfinished word, unquoted; "" after a space

    def with_last(self, word: str) -> str:
        """Return the line with another last word."""
        return self.head + shlex.quote(word)


def typed_words(line: str) -> Typed:
    """Split a line into words as a shell does; an open quote belongs to the last word."""
    matches = list(_WORD.finditer(line))
    last = matches.pop() if matches and matches[-1].end() == len(line) else None
    head = line if last is None else line[: last.start()]
    return Typed(head, tuple([_unquoted(each[0]) for each in matches]), _unquoted(last[0]) if last is not None else "")


def _unquoted(word: str) -> str:
    return "".join(
        [single + re.sub(r'\\(["\\])', r"\1", double) + rest for single, double, rest in _PIECE.findall(word)]
    )


def command_offers(
    session: Session, ref: NodeRef | None, actions: Sequence[Action[Any]], names: Mapping[str, str], line: str
) -> list[str]:
    """Return the completions of a command line as whole lines: edits and other actions.

    `ref` is the node under the cursor; `names` are aliases such as ``w``, and the ids of their actions.
    """
    typed = typed_words(line)
    if not typed.words:
        known = [*NAMES, *[each.id for each in actions], *names]
        return [typed.head + word + " " for word in _beginning(sorted(dict.fromkeys(known)), typed.last)]
    if typed.words[0] in NAMES:
        return [typed.with_last(word) for word in islice(_edit_words(session, ref, typed), MOST)]
    name = names.get(typed.words[0], typed.words[0]).partition(" ")[0]
    action = next((each for each in actions if each.id == name), None)
    return [] if action is None else _argument_offers(session, action.argument, typed, line)


def argument_kinds(argument: str) -> list[str]:
    """Return the kinds of argument that `Action.argument` allows."""
    return argument.strip("[]").split("|") if argument else []


def _argument_offers(session: Session, argument: str, typed: Typed, line: str) -> list[str]:
    offers: list[str] = []
    for kind in argument_kinds(argument):
        if kind == "SELECTOR":
            rest = line[len(line.split(" ", 1)[0]) + 1 :]
            offers += [line[: len(line) - len(rest)] + offer for offer in selector_offers(session, rest)]
        elif len(typed.words) == 1:
            offers += [typed.with_last(word) for word in _argument_words(kind, typed.last)]
    return offers


def _argument_words(kind: str, last: str) -> list[str]:
    match kind:
        case "PATH":
            return complete_path(last)[:MOST]
        case "EDIT":
            return _beginning(list(NAMES), last)
        case "PASS":
            from onnxjson.optimizing.passes.catalogue import NAMES as PASSES

            return _beginning(list(PASSES), last)
        case _:
            return _beginning([kind], last) if kind.islower() else []


def selector_offers(session: Session, line: str) -> list[str]:
    """Return the completions of a selector: the selector with its last term completed."""
    head, _, last = line.rpartition(" ")
    start = line[: len(line) - len(last)]
    mark = "!" if last.startswith("!") else ""
    key, colon, value = last.removeprefix("!").partition(":")
    index = session.index
    if not colon:
        keys = [f"{each}:" for each in (*KEYS, "in")]
        names = map(_selector_of_name, _texts_of(index, "name", key)) if key and not head else ()
        found = [*_beginning(keys, key), *names]
        return [start + mark + word for word in found[:MOST]]
    texts = _texts_of(index, key, value)
    return [start + mark + spelled(key, text) for text in texts[:MOST]]


def _texts_of(index: Index, key: str, value: str) -> list[str]:
    nodes = islice(index.node_refs, _NODES_LOOKED_AT)
    match key:
        case "in":
            words = ["main"]
        case "dtype":
            words = [name for number, name in DATA_TYPE_NAMES.items() if number]
        case "attr":
            words = sorted({each.name or "" for ref in nodes for each in ref.node.attribute})
        case "op" | "name" | "output" | "input" | "domain" | "shape" | "scope":
            words = list(dict.fromkeys(text for ref in nodes for text in property_texts(ref, key)))
        case _:
            return []
    return list(filter(is_plain, _beginning(words, value)))


def _edit_words(session: Session, ref: NodeRef | None, typed: Typed) -> Iterator[str]:
    for candidate in candidates(typed.words, typed.last):
        yield candidate.word
    if typed.last.startswith("--"):
        return
    parameter = expected(typed.words, typed.last)
    if parameter is None or parameter.shape.form == "choice":
        return
    if parameter.role in ("node", "nodes") and not typed.last:
        yield "."
    yield from _offered(session, ref, typed, parameter)


def _offered(session: Session, ref: NodeRef | None, typed: Typed, parameter: Parameter) -> Iterator[str]:
    """Yield the choices that the same field of the edit's form has."""
    edit = NAMES[typed.words[0]]
    given, free = _scanned(typed)
    texts = dict(given)
    for place, word in zip([each for each in positional(edit) if each.name not in given], free, strict=False):
        texts[place.name] = [word]
    filling = Filling(edit, {name: "\n".join(words) for name, words in texts.items()})
    if filling.texts.get("node") == "." and ref is not None:
        filling.texts["node"] = session.selector_of(ref)
    filling.texts[parameter.name] = typed.last if parameter.role == "file" else ""
    for choice in Offers(session, ref).of(filling, parameter):
        if not choice.refused and choice.key.lower().startswith(typed.last.lower()):
            yield choice.key


def _scanned(typed: Typed) -> tuple[dict[str, list[str]], list[str]]:
    edit = NAMES[typed.words[0]]
    words = list(typed.words[1:])
    if words and words[-1].startswith("--"):
        words.pop()
    try:
        return scan(edit, words)
    except OnnxJsonError:
        return {}, []


def hint(line: str) -> str:
    """Describe what comes next in the command line of an edit; "" if nothing."""
    typed = typed_words(line)
    if not typed.words:
        return summary(NAMES[typed.last]) if typed.last in NAMES else ""
    edit = NAMES.get(typed.words[0])
    if edit is None:
        return ""
    parameter = expected(typed.words, typed.last)
    if parameter is None:
        options = " ".join([option_of(each) for each in positional(edit)])
        return f"{typed.words[0]} {options}" if not typed.last else ""
    description = parameter.description or parameter.shape.fits
    return f"{option_of(parameter)} {parameter.metavar}: {description}"


def _beginning(words: Sequence[str], start: str) -> list[str]:
    """Return the words with a prefix, ignoring case; if there are none, the words that contain it."""
    wanted = start.lower()
    found = [word for word in words if word.lower().startswith(wanted)]
    return (found or [word for word in words if wanted in word.lower()])[:MOST]


def _selector_of_name(name: str) -> str:
    """Return a name as a selector, which usually is the name itself."""
    return name if not name.startswith(("@", "re:")) and parse(name).name == Value(name) else spelled("name", name)


def offers_text(lines: Sequence[str]) -> str:
    """Return completions for the footer: their last words."""
    return "  ".join([visible(typed_words(line.rstrip()).last or line, 40) for line in lines[:20]])

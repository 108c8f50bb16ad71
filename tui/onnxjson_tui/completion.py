"""What a line that is being typed may become: commands, edits, their parameters, names of the model by their role."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from onnxjson.display import visible
from onnxjson.edits.catalogue import NAMES
from onnxjson.edits.forms import form
from onnxjson.edits.parameters import Parameter
from onnxjson.edits.spelling import candidates, expected, metavar, option_of, positional, scan, summary
from onnxjson.errors import OnnxJsonError
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.names import DATA_TYPE_NAMES
from onnxjson.selector_syntax import KEYS, Value, parse, spelled
from onnxjson_tui.action import Action
from onnxjson_tui.forms.filling import Filling
from onnxjson_tui.forms.offers import Offers
from onnxjson_tui.forms.words import constant_of, is_plain, value_words
from onnxjson_tui.path_completion import complete_path
from onnxjson_tui.session import Session

MOST: Final = 60
"""Offers of one tab; one who wants another one types on."""

_NAMES_LOOKED_AT: Final = 200_000
"""Names of a model that are looked at for one tab."""


class Typed(NamedTuple):
    """A command line up to the cursor."""

    head: str
    """All before the last word, as it was typed."""
    words: tuple[str, ...]
    """The words of it, without their quotes."""
    last: str
    """The word that is being typed, without its quotes; "" after a space."""

    def with_last(self, word: str) -> str:
        """The line with another last word."""
        return self.head + shlex.quote(word)


def typed_words(line: str) -> Typed:
    """Tells the words of a line apart as a shell does; a quote that is open is that of the last word."""
    words: list[str] = []
    word: list[str] = []
    start, quote, is_begun = 0, "", False
    place = 0
    while place < len(line):
        character = line[place]
        if quote:
            if character == quote:
                quote = ""
            elif character == "\\" and quote == '"' and line[place + 1 : place + 2] in ('"', "\\"):
                place += 1
                word.append(line[place])
            else:
                word.append(character)
        elif character in "'\"":
            quote, is_begun = character, True
        elif character == "\\" and place + 1 < len(line):
            place += 1
            word.append(line[place])
        elif character.isspace():
            if word or is_begun:
                words.append("".join(word))
            word, is_begun, start = [], False, place + 1
        else:
            word.append(character)
        place += 1
    return Typed(line[:start], tuple(words), "".join(word))


def command_offers(
    session: Session, here: NodeRef | None, actions: Sequence[Action], names: Mapping[str, str], line: str
) -> list[str]:
    """What a command line may become when tab is pressed: whole lines.

    Args:
        session: has the model.
        here: the node under the cursor.
        actions: what lines begin with beside edits.
        names: other words for some of them, such as ``w``, and their ids.
        line: what was typed.
    """
    typed = typed_words(line)
    if not typed.words:
        known = [*NAMES, *[each.id for each in actions], *names]
        return [typed.head + word + " " for word in _beginning(sorted(dict.fromkeys(known)), typed.last)]
    if typed.words[0] in NAMES:
        return [typed.with_last(word) for word in islice(_edit_words(session, here, typed), MOST)]
    name = names.get(typed.words[0], typed.words[0])
    action = next((each for each in actions if each.id == name), None)
    return [] if action is None else _argument_offers(session, action.argument, typed, line)


def argument_kinds(argument: str) -> list[str]:
    """What may stand after the name of an action, by `Action.argument`."""
    return argument.strip("[]").split("|") if argument else []


def _argument_offers(session: Session, argument: str, typed: Typed, line: str) -> list[str]:
    found: list[str] = []
    for kind in argument_kinds(argument):
        if kind == "SELECTOR":
            rest = line[len(line.split(" ", 1)[0]) + 1 :]
            found += [line[: len(line) - len(rest)] + offer for offer in selector_offers(session, rest)]
        elif len(typed.words) == 1:
            found += [typed.with_last(word) for word in _argument_words(kind, typed.last)]
    return found


def _argument_words(kind: str, last: str) -> list[str]:
    match kind:
        case "PATH":
            return complete_path(last)[:MOST]
        case "DIR":
            return [path for path in complete_path(last) if path.endswith("/")][:MOST]
        case "EDIT":
            return _beginning(list(NAMES), last)
        case "PASS":
            from onnxjson.passes.catalogue import NAMES as PASSES

            return _beginning(list(PASSES), last)
        case _:
            return _beginning([kind], last) if kind.islower() else []


def selector_offers(session: Session, line: str) -> list[str]:
    """What a selector may become when tab is pressed: its last term completed."""
    head, _, last = line.rpartition(" ")
    start = line[: len(line) - len(last)]
    mark = "!" if last.startswith("!") else ""
    key, colon, value = last.removeprefix("!").partition(":")
    index = session.index
    if not colon:
        keys = [f"{each}:" for each in (*KEYS, "in")]
        names = map(_selector_of_name, _node_names(index, key)) if key and not head else ()
        found = [*_beginning(keys, key), *names]
        return [start + mark + word for word in found[:MOST]]
    texts = _texts_of(index, key, value)
    return [start + mark + spelled(key, text) for text in texts[:MOST]]


def _texts_of(index: Index, key: str, value: str) -> list[str]:
    match key:
        case "op":
            return _beginning(sorted({name.rpartition("::")[2] for name in index.operator_counts()}), value)
        case "name":
            return list(islice(_node_names(index, value), MOST))
        case "output" | "input":
            return list(islice(_value_names(index, value, lambda scope, name: True), MOST))
        case "dtype":
            return _beginning([name for number, name in DATA_TYPE_NAMES.items() if number], value)
        case "domain":
            return _beginning([each.domain or "ai.onnx" for each in index.model.opset_import], value)
        case "attr":
            nodes = islice((node for scope in index.scopes for node in scope.graph.node), _NAMES_LOOKED_AT)
            names = {each.name or "" for node in nodes for each in node.attribute}
            return _beginning(sorted(names), value)
        case "in":
            return _beginning(["main"], value)
        case _:
            return []


def _edit_words(session: Session, here: NodeRef | None, typed: Typed) -> Iterator[str]:
    """The words that may come next in an edit."""
    for candidate in candidates(typed.words, typed.last):
        yield candidate.word
    if typed.last.startswith("--"):
        return
    parameter = expected(typed.words, typed.last)
    if parameter is None or parameter.shape.form == "choice":
        return
    index = session.index
    match parameter.role:
        case "node" | "nodes":
            if not typed.last:
                yield from (".", "%") if session.places.selected else (".",)
            if typed.last.startswith("op:"):
                yield from [f"op:{name}" for name in _texts_of(index, "op", typed.last[3:])]
            yield from map(_selector_of_name, _node_names(index, typed.last))
        case "tensor" | "tensors":
            yield from _value_names(index, typed.last, lambda scope, name: True)
        case "constant":
            yield from _value_names(index, typed.last, constant_of)
        case _:
            yield from _offered(session, here, typed, parameter)


def _offered(session: Session, here: NodeRef | None, typed: Typed, parameter: Parameter) -> Iterator[str]:
    """What the field of the form of an edit offers."""
    edit = NAMES[typed.words[0]]
    given, free = _scanned(typed)
    texts = dict(given)
    for place, word in zip([each for each in positional(edit) if each.name not in given], free, strict=False):
        texts[place.name] = [word]
    filling = Filling(edit, {name: "\n".join(words) for name, words in texts.items()})
    if filling.texts.get("node") == "." and here is not None:
        filling.texts["node"] = session.selector_of(here)
    filling.texts[parameter.name] = typed.last if parameter.role == "file" else ""
    field = next(each for each in form(edit).fields if each.name == parameter.name)
    for choice in Offers(session, here).of(filling, field):
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
    """What comes next in a line that spells an edit, in a few words; "" where there is nothing to say."""
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
    said = parameter.description or parameter.shape.fits
    return f"{option_of(parameter)} {metavar(parameter)}: {said}"


def _beginning(words: Sequence[str], start: str) -> list[str]:
    """The words that begin so, whatever the capitals; else those that have it in them."""
    wanted = start.lower()
    found = [word for word in words if word.lower().startswith(wanted)]
    return (found or [word for word in words if wanted in word.lower()])[:MOST]


def _node_names(index: Index, start: str) -> Iterator[str]:
    """Names of nodes that begin so, then those that have it in them."""
    wanted = start.lower()
    later: list[str] = []
    found = 0
    names = (node.name for scope in index.scopes for node in scope.graph.node)
    for name in islice(names, _NAMES_LOOKED_AT):
        if not name or wanted not in (lowered := name.lower()):
            continue
        is_start = lowered.startswith(wanted)
        if not (is_start or len(later) < MOST) or not is_plain(name):
            continue
        if is_start:
            yield name
            found += 1
            if found >= MOST:
                return
        else:
            later.append(name)
    yield from later


def _selector_of_name(name: str) -> str:
    """A name as a selector, which it mostly is as it stands."""
    return name if not name.startswith(("@", "re:")) and parse(name).name == Value(name) else spelled("name", name)


def _value_names(index: Index, start: str, fits: Callable[[Scope, str], bool]) -> Iterator[str]:
    """Values of all graphs whose names begin so, as a person writes them."""
    wanted = start.lower()
    later: list[tuple[Scope, str]] = []
    found = 0
    for scope in index.scopes:
        for name in (*scope.inputs, *scope.initializers, *scope.sparse_initializers, *scope.makers):
            lowered = name.lower()
            if wanted not in lowered:
                continue
            is_start = lowered.startswith(wanted)
            if not (is_start or len(later) < MOST) or not is_plain(name):
                continue
            if not is_start:
                later.append((scope, name))
            elif fits(scope, name):
                yield value_words(scope, name)
                found += 1
                if found >= MOST:
                    return
    yield from [value_words(scope, name) for scope, name in later if fits(scope, name)]


def shown_offers(lines: Sequence[str]) -> str:
    """Offers as they are said at the bottom: their last words."""
    return "  ".join([visible(typed_words(line.rstrip()).last or line, 40) for line in lines[:20]])

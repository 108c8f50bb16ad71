"""Edits written as words of a command line, and read back; built from their declarations.

::

    set-attribute op:Conv pads [0,0,0,0]
    set-attribute --node op:Conv --attribute pads --value [0,0,0,0] --expect 3

Parameters that a declaration lists in ``words`` need no names, in that order. Values are JSON; a value that is not JSON
is a string: ``0.2``, ``[1, 2]``, ``linear``, ``"12"`` for the string 12. The option of a list is repeated for each
item, or has all items as JSON; integers and dimensions may be joined by commas. Members of an object are written
``NAME=VALUE``. The spelling of passes (`onnxjson.optimizing.passes.catalogue`) shares `build` and the values.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnxjson.codecs.reading import tree as json_tree
from onnxjson.codecs.reading.scan import scan as scan_json
from onnxjson.editing.catalogue import NAMES, edit_named
from onnxjson.editing.declaration import (
    AnyDeclared,
    Declared,
    Edit,
    name_of,
    non_default_parameters,
    parameter_error,
    placed,
    positional,
    summary,
)
from onnxjson.editing.parameters import JOINED, Parameter, Shape, parameters
from onnxjson.editing.values import ValueMistakeError, write_value
from onnxjson.model.dimensions import split_dimensions
from onnxjson.model.display import visible
from onnxjson.model.errors import ParameterError

if TYPE_CHECKING:
    import click

_OPENS_JSON: Final = ('"', "[", "{")
_FEW: Final = 4
"""Options up to which the usage of an edit lists all of them."""
_FLAGS: Final = {"": True, "true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

SHIELD: Final = "\0"
"""Prefix of a word that only looks like an option; no argument of a program can contain it."""


def parse_line(line: str) -> Edit:
    """Read the edit on one line, quoted as in a shell.

    Raises:
        ParameterError: it is not an edit, or a quote is not closed.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ParameterError(f"{visible(line)}: {str(error).lower()}") from None
    if not words:
        raise ParameterError(f"an edit begins with its name: {', '.join(NAMES)}")
    return parse_words(edit_named(words[0]), words[1:])


def parse_words(edit: type[Edit], words: Sequence[str]) -> Edit:
    """Read an edit from the words after its name.

    Raises:
        ParameterError: a parameter is unknown, missing or repeated, or a value does not fit.
    """
    return build(edit, *scan(edit, words))


class Scanned(NamedTuple):
    """Words of an edit, separated into options and other words."""

    given: dict[str, list[str]]
    """Values of each ``--name``; none for a flag, "no" for ``--no-name``."""
    free: list[str]
    """Words that do not belong to an option."""


def scan(edit: type[Edit], words: Sequence[str]) -> Scanned:
    """Separate options from other words, as the command of the edit does.

    Raises:
        ParameterError: an option is unknown, or its value is missing.
    """
    import click

    end = words.index("--") if "--" in words else len(words)
    # One dash begins no option of an edit, but a negative number.
    shielded = [SHIELD + word if re.match("-[^-]", word) else word for word in words[:end]]
    command = click.Command(name_of(edit), params=[click_option(each) for each in parameters(edit)])
    try:
        given, free, _ = command.make_parser(click.Context(command)).parse_args([*shielded, *words[end:]])
    except click.UsageError as error:
        raise ParameterError(error.format_message(), place=name_of(edit)) from None
    return Scanned(texts_of(edit, given), [word.removeprefix(SHIELD) for word in free])


def click_option(parameter: Parameter) -> "click.Option":
    """Return the option of a parameter; its value stays a string until all are known."""
    import click

    option = option_of(parameter)
    name = f"parameter_{parameter.field}"
    if parameter.shape.form == "flag":
        return click.Option([f"{option}/--no-{option[2:]}", name], default=None, help=parameter.description)
    kind: click.ParamType[Any] = click.STRING
    if parameter.shape.form == "choice":
        kind = click.Choice(parameter.shape.choices)
    return click.Option([option, name], type=kind, multiple=True, metavar=parameter.metavar, help=parameter.description)


def texts_of(edit: type[Edit], given: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the texts of each parameter that is given, as `Scanned.given` has them, from the values of its option."""
    texts: dict[str, list[str]] = {}
    for parameter in parameters(edit):
        value = given.get(f"parameter_{parameter.field}")
        if parameter.shape.form == "flag":
            if value is not None:
                texts[parameter.name] = [] if value else ["no"]
        elif value:
            texts[parameter.name] = [str(each).removeprefix(SHIELD) for each in value]
    return texts


def build(edit: type[AnyDeclared], given: Mapping[str, Sequence[str]], free: Sequence[str]) -> AnyDeclared:
    """Build an edit (or a pass) from options and words without names; see `Scanned`.

    Raises:
        ParameterError: a parameter is missing or repeated, or a value does not fit.
    """
    texts = dict(given)
    open_places = [each for each in positional(edit) if each.name not in texts]
    if len(free) > len(open_places):
        hint, last = usage(edit), free[len(open_places) - 1 :]
        if open_places and all(_integer(word) is not None for word in last):
            hint = f"a list is one word: '[{','.join(last)}]'"
        raise ParameterError(f"{visible(free[len(open_places)])} is one argument too many; {hint}", place=name_of(edit))
    texts |= {parameter.name: [word] for parameter, word in placed(open_places, free)}
    values: dict[str, Any] = {}
    for parameter in parameters(edit):
        if parameter.name in texts:
            try:
                values[parameter.field] = parse_value(parameter, texts[parameter.name])
            except ValueMistakeError as mistake:
                raise parameter_error(edit, parameter.name, mistake) from None
        elif parameter.required:
            described = f" ({parameter.description.rstrip('.')})" if parameter.description else ""
            raise ParameterError(f"{name_of(edit)} needs {option_of(parameter)}{described}; {usage(edit)}")
    return edit(**values)


def parse_value(parameter: Parameter, texts: Sequence[str]) -> Any:
    """Read the value of a parameter from the words of its option.

    Raises:
        ValueMistakeError: they do not fit.
    """
    shape = parameter.shape
    if shape.form == "flag":
        return shape.read(_FLAGS.get(texts[-1], texts[-1])) if texts else True
    if shape.form in ("list", "mapping"):
        return shape.read(_many(shape, texts))
    if len(texts) > 1:
        raise ValueMistakeError(f"{len(texts)} values", "one value")
    return shape.read(_single(shape, texts[0]))


def _single(shape: Shape, text: str) -> Any:
    match shape.form:
        case "value" | "number":
            return json_or_text(text)
        case "integer" | "size":
            number = _integer(text)
            if number is None and shape.form == "size" and text.startswith('"'):
                return json_or_text(text)
            return text if number is None else number
        case "list" | "mapping":
            return _many(shape, [text])
        case _:
            return text


def _integer(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 19 else None


def json_or_text(text: str) -> Any:
    """Return the JSON value in a text, or the text itself if it is not JSON.

    Raises:
        ValueMistakeError: it begins like JSON and is not.
    """
    data = text.encode("utf-8", "surrogateescape")
    is_clean, tree = json_tree.parse(data)
    if is_clean:
        return tree
    if text.lstrip().startswith(_OPENS_JSON):
        # Valid JSON with escaped surrogates or -0 is only read by the exact reader.
        scanned = scan_json(data)
        if scanned.is_whole and not scanned.mistakes:
            return scanned.tree
        raise ValueMistakeError(f"the text {visible(text, 40)}, which begins like JSON but is not", "JSON")
    return -0.0 if text == "-0" else text


def _many(shape: Shape, texts: Sequence[str]) -> Any:
    item = shape.item or Shape("value")
    if shape.form == "mapping":
        mapping: dict[str, Any] = {}
        for text in texts:
            members = json_or_text(text) if text.startswith("{") else None
            if isinstance(members, dict):
                mapping |= members
                continue
            name, mark, value = text.partition("=")
            if not mark:
                raise ValueMistakeError(f'the text "{visible(text, 40)}"', "NAME=VALUE, or an object as JSON,")
            mapping[name] = _single(item, value)
        return mapping
    items: list[Any] = []
    for text in texts:
        members = _json_list(text, item)
        if members is not None:
            items += members
        elif item.form in JOINED:
            items += [_single(item, part) for part in split_dimensions(text)]
        else:
            items.append(_single(item, text))
    return items


def _json_list(text: str, item: Shape) -> list[Any] | None:
    """Return the list in a JSON text; None for other texts, and for names of dimensions between brackets."""
    if not text.startswith("["):
        return None
    try:
        members = json_or_text(text)
    except ValueMistakeError:
        if item.form in JOINED and '"' not in text and text.endswith("]"):
            return None
        raise
    return members if isinstance(members, list) else None


def spell(edit: Edit) -> list[str]:
    """Return the words of an edit, its name first; `parse_words` of the rest returns the edit."""
    free, options = spell_words(edit)
    return [name_of(edit), *free, *options]


def spell_words(edit: Edit) -> tuple[list[str], list[str]]:
    """Return the words of an edit that need no option, and the words of its options."""
    places = {parameter.name: parameter for parameter in parameters(type(edit))}
    values = non_default_parameters(edit)
    free: list[str] = []
    for parameter in positional(type(edit)):
        if parameter.name not in values:
            break
        texts = spell_value(parameter.shape, values[parameter.name])
        if len(texts) != 1 or texts[0].startswith("-"):
            break
        free += texts
        del values[parameter.name]
    options: list[str] = []
    for name, value in values.items():
        option = option_of(places[name])
        if places[name].shape.form == "flag":
            options.append(option if value else f"--no-{option[2:]}")
            continue
        for text in spell_value(places[name].shape, value):
            options += [option, text]
    return free, options


def spell_line(edit: Edit) -> str:
    """Return the line of an edit, quoted for a shell."""
    return shlex.join(spell(edit))


def spell_value(shape: Shape, value: Any) -> list[str]:
    """Return the words that represent a value, one for each time its option is written."""
    item = shape.item or Shape("value")
    if shape.form == "mapping":
        if value and not any([key.startswith("{") or "=" in key for key in value]):
            return [f"{key}={_text(item, each)}" for key, each in value.items()]
        return [write_value(value)]
    if shape.form == "list":
        texts = [_text(item, each) for each in value]
        if not texts or any([text.startswith("[") for text in texts]) or item.form in ("list", "mapping"):
            return [write_value(value)]
        if item.form in JOINED:
            can = all(
                [_is_spelled(item, each) and _can_be_joined(text) for text, each in zip(texts, value, strict=True)]
            )
            if can and split_dimensions(",".join(texts)) == texts:
                return [",".join(texts)]
            return [write_value(value)]
        return texts
    return [_text(shape, value)]


def _text(shape: Shape, value: Any) -> str:
    if shape.form in ("text", "choice"):
        return str(value)
    if shape.form == "size":
        return str(value) if _is_spelled(shape, value) else write_value(value)
    if isinstance(value, str):
        try:
            if json_or_text(value) == value and type(json_or_text(value)) is str:
                return value
        except ValueMistakeError:
            pass
    return write_value(value)


def _is_spelled(shape: Shape, value: int | str) -> bool:
    """Whether a size is read back from its text without quotes."""
    try:
        return bool(_single(shape, str(value)) == value)
    except ValueMistakeError:
        return False


def _can_be_joined(text: str) -> bool:
    """Whether an item is read back unchanged from between commas."""
    return bool(text) and split_dimensions(f"{text},1") == [text, "1"]


def option_of(parameter: Parameter) -> str:
    """Option of a parameter, such as ``--node``."""
    return "--" + parameter.name.replace("_", "-")


def usage(edit: type[Declared]) -> str:
    """Words of an edit on one line, as a part of a message."""
    places = positional(edit)
    words = [each.name.upper() if each.required else f"[{each.name.upper()}]" for each in places]
    others = [each for each in parameters(edit) if each not in places]
    options = [option_of(each) + (f" {each.metavar}" if each.shape.form != "flag" else "") for each in others]
    named = zip(others, options, strict=True)
    words += [text if each.required else f"[{text}]" for each, text in named if each.required or len(others) <= _FEW]
    return f"it is written {' '.join([name_of(edit), *words])}"


class Candidate(NamedTuple):
    """Completion of a word."""

    word: str
    help: str = ""


def candidates(words: Sequence[str], incomplete: str) -> list[Candidate]:
    """Return the completions of `incomplete` after some words of an edit: names of edits, options, choices.

    A caller that has a model can offer names of nodes and tensors as well; see `expected`.
    """
    if not words:
        return [Candidate(name, summary(edit)) for name, edit in NAMES.items() if name.startswith(incomplete)]
    edit = NAMES.get(words[0])
    if edit is None:
        return []
    parameter = expected(words, incomplete)
    if parameter is not None and parameter.shape.form == "choice":
        return [Candidate(each) for each in parameter.shape.choices if each.startswith(incomplete)]
    if incomplete.startswith("-"):
        options = [Candidate(option_of(each), each.description) for each in parameters(edit)]
        return [each for each in options if each.word.startswith(incomplete)]
    return []


def expected(words: Sequence[str], incomplete: str) -> Parameter | None:
    """Return the parameter whose value comes next; None if an option or nothing comes."""
    edit = NAMES.get(words[0]) if words else None
    if edit is None:
        return None
    known = {option_of(each): each for each in parameters(edit)}
    if len(words) > 1 and words[-1] in known and known[words[-1]].shape.form != "flag":
        return known[words[-1]]
    if incomplete.startswith("--"):
        return None
    try:
        given, free = scan(edit, words[1:])
    except ParameterError:
        return None
    places = [each for each in positional(edit) if each.name not in given]
    return places[len(free)] if len(free) < len(places) else None

"""Passes as words and back: ``NAME``, ``NAME:PART``, ``NAME{option=value,...}``, each with ``*`` to repeat it.

::

    onnxoptimizer:fuse_bn_into_conv
    onnxoptimizer{passes=[eliminate_identity,eliminate_deadend],fixed_point=true}
    onnxsim*

Values are JSON, and what is no JSON is a text. Lists and objects may hold words without quotes, since shells take those
away; an option of a list may also stand once for each item. A flag alone is true.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from onnxjson.display import visible
from onnxjson.edits.parameters import Parameter, Shape
from onnxjson.edits.spelling import value_of_texts
from onnxjson.edits.values import ValueMistakeError, write_value
from onnxjson.errors import ParameterError
from onnxjson.passes.catalogue import pass_named
from onnxjson.passes.declaration import Pass, name_of, option_error, options, said
from onnxjson.suggestions import suggest

REPETITIONS: Final = 10
"""How often a pass that repeats runs at most."""

_WORD: Final = re.compile(r"[A-Za-z0-9_.:/\\-]+")
_PLAIN: Final = re.compile(r"[^\s,{}\[\]\"'=*][^,{}\[\]\"']*")
"""A text that may stand without quotes."""
_CLOSING: Final = {"[": "]", "{": "}"}


class Step(NamedTuple):
    """A pass of a pipeline."""

    subject: Pass
    repeats: bool = False
    """Whether it runs until the bytes stand still, `REPETITIONS` times at most."""

    def __str__(self) -> str:
        """As `parse_step` reads it."""
        return spell(self.subject) + "*" * self.repeats


def parse_step(text: str) -> Step:
    """The pass that a text spells.

    Raises:
        ParameterError: it spells none; the message says what would.
    """
    spelled = text.strip()
    repeats = spelled.endswith("*")
    head, brace, rest = spelled.removesuffix("*").rstrip().partition("{")
    if brace and not rest.endswith("}"):
        raise ParameterError(f"{visible(text)}: the brace is not closed; write 'NAME{{option=value}}' in quotes")
    return Step(_parse(head.strip(), rest[:-1] if brace else ""), repeats)


def _parse(head: str, inside: str) -> Pass:
    if not head:
        raise ParameterError("the name of a pass is missing; `onnxjson passes` shows all")
    name, colon, part = head.partition(":")
    if "=" in head:
        raise ParameterError(
            f"{visible(head)} is no pass but an option of one; quote the braces, so that the shell leaves them: "
            f"-p 'NAME{{{visible(head)}}}'"
        )
    kind = pass_named(name)
    texts = _texts(kind, inside)
    if colon:
        if kind.part is None:
            raise ParameterError(f"{name} has no parts; write {name}, or {name}{{option=value}}")
        if kind.part in texts:
            raise ParameterError(f"{name}:{visible(part)} says {kind.part} already; leave out one of them")
        texts[kind.part] = [part]
    return build(kind, texts)


def build(kind: type[Pass], texts: dict[str, list[str]]) -> Pass:
    """The pass of options given as texts.

    Raises:
        ParameterError: an option is missing, or has a value that does not fit.
    """
    values: dict[str, Any] = {}
    for parameter in options(kind):
        if parameter.name in texts:
            values[parameter.field] = _value(kind, parameter, texts[parameter.name])
        elif parameter.required:
            described = f" ({parameter.description.rstrip('.')})" if parameter.description else ""
            raise ParameterError(
                f"{name_of(kind)} needs {parameter.name}{described}: write {name_of(kind)}{{{parameter.name}=...}}"
            )
    return kind(**values)


def _value(kind: type[Pass], parameter: Parameter, texts: list[str]) -> Any:
    try:
        if parameter.shape.form == "flag":
            return parameter.shape.read(_FLAGS.get(texts[-1], texts[-1]))
        return value_of_texts(parameter, [_with_quotes(parameter.shape, text) for text in texts])
    except ValueMistakeError as mistake:
        raise option_error(kind, parameter.name, mistake) from None


_FLAGS: Final = {"": True, "true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def _with_quotes(shape: Shape, text: str) -> str:
    """A list or an object of words as JSON: ``[a,b]`` stands for ``["a", "b"]``."""
    opening = text[:1]
    if (
        shape.form not in ("list", "mapping", "value")
        or opening not in _CLOSING
        or not text.endswith(_CLOSING[opening])
    ):
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    """JSON of a text in which strings may stand without quotes."""
    opening = text[:1]
    if opening not in _CLOSING or not text.endswith(_CLOSING[opening]) or len(text) < 2:
        return text if _is_json_word(text) else write_value(text)
    members = []
    for member in _split(text[1:-1]):
        if opening == "[":
            members.append(_quoted(member.strip()))
            continue
        key, mark, value = _key_and_value(member)
        if not mark:
            return text
        members.append(f"{key if key.startswith(chr(34)) else write_value(key)}: {_quoted(value)}")
    return opening + ", ".join(members) + _CLOSING[opening]


def _key_and_value(member: str) -> tuple[str, str, str]:
    found = re.match(r'\s*("(?:[^"\\]|\\.)*"|[^:=]*?)\s*([:=])(.*)', member, re.DOTALL)
    return (found[1], found[2], found[3].strip()) if found else (member, "", "")


def _is_json_word(text: str) -> bool:
    return bool(re.fullmatch(r'"(?:[^"\\]|\\.)*"|true|false|null|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?', text))


def _texts(kind: type[Pass], inside: str) -> dict[str, list[str]]:
    """What stands after each option within braces."""
    known = {parameter.name: parameter for parameter in options(kind)}
    texts: dict[str, list[str]] = {}
    for member in _split(inside):
        if not member.strip():
            continue
        name, mark, value = member.partition("=")
        name = name.strip().replace("-", "_")
        if name not in known:
            if not known:
                raise ParameterError(f"{name_of(kind)} has no options, and {visible(name)} is given")
            hint = suggest(name, known) or f"there are {', '.join(known)}"
            raise ParameterError(f'{name_of(kind)} has no option "{visible(name)}"; {hint}')
        shape = known[name].shape
        if not mark and shape.form != "flag":
            raise ParameterError(f"{name_of(kind)}: {name} needs a value, {shape.fits}: {name}=...")
        if name in texts and shape.form not in ("list", "mapping"):
            raise ParameterError(f"{name_of(kind)}: {name} is there twice")
        texts.setdefault(name, []).append(value.strip())
    return texts


def _split(text: str) -> Iterator[str]:
    """The parts between commas that stand in no quotes and brackets.

    Raises:
        ParameterError: a quote or bracket is not closed.
    """
    open_brackets: list[str] = []
    start, position, in_quotes = 0, 0, False
    while position < len(text):
        character = text[position]
        if in_quotes:
            position += character == "\\"
            in_quotes = character != '"'
        elif character == '"':
            in_quotes = True
        elif character in _CLOSING:
            open_brackets.append(_CLOSING[character])
        elif open_brackets and character == open_brackets[-1]:
            open_brackets.pop()
        elif character == "," and not open_brackets:
            yield text[start:position]
            start = position + 1
        position += 1
    if in_quotes or open_brackets:
        missing = '"' if in_quotes else open_brackets[-1]
        raise ParameterError(f"{visible(text)}: {missing} is missing")
    if text[start:].strip() or start:
        yield text[start:]


def spell(subject: Pass) -> str:
    """The text that `parse_step` reads as this pass."""
    values = said(subject)
    name = subject.name
    if subject.part and len(values.get(subject.part, ())) == 1:
        name += f":{values.pop(subject.part)[0]}"
    if not values:
        return name
    shapes = {parameter.name: parameter.shape for parameter in options(type(subject))}
    return name + "{" + ",".join([f"{key}={_spelled(shapes[key], value)}" for key, value in values.items()]) + "}"


def _spelled(shape: Shape, value: Any) -> str:
    if shape.form in ("text", "choice", "size") and isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return write_value(value)

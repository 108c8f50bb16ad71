"""All passes by name; their words ``NAME``, ``NAME:PART``, ``NAME{option=value,...}``, each with ``*`` to repeat it.

::

    onnxoptimizer:fuse_bn_into_conv
    onnxoptimizer{passes=[eliminate_identity,eliminate_deadend],fixed_point=true}
    onnxsim*

Values are JSON; anything else is a text. Words in lists and objects need no quotes, since shells remove them; an option
with a list may also be repeated, once per item. A flag alone is true.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from onnxjson.editing import spelling as edit_spelling
from onnxjson.editing.catalogue import NAMES as EDITS
from onnxjson.editing.catalogue import edit_meant
from onnxjson.editing.declaration import AnyDeclared, Declared, name_of, non_default_parameters, positional, summary
from onnxjson.editing.parameters import COMMON, Parameter, Shape, parameters
from onnxjson.editing.values import ValueMistakeError, plain_value, write_value
from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import ParameterError
from onnxjson.model.foreign_words import meant
from onnxjson.optimizing.passes import user
from onnxjson.optimizing.passes.declaration import Pass, near
from onnxjson.optimizing.passes.float16 import Float16, MixedPrecision
from onnxjson.optimizing.passes.onnxruntime import Onnxruntime, QnnPreprocess, SymbolicShapes
from onnxjson.optimizing.passes.onnxscript_rules import Onnxscript
from onnxjson.optimizing.passes.quantization import QuantizeDynamic, QuantizeStatic, QuantizeWeights
from onnxjson.optimizing.passes.simplifiers import Onnxoptimizer, Onnxsim, Onnxslim
from onnxjson.optimizing.passes.transformers import ExtractAdapters, Transformers
from onnxjson.optimizing.passes.user import EditPass, PluginPass, ScriptPass, UserPass, plugins

PASSES: Final[tuple[type[Pass], ...]] = (
    Onnxoptimizer, Onnxsim, Onnxslim, Onnxscript, Onnxruntime, Transformers, Float16, MixedPrecision, QuantizeDynamic,
    QuantizeStatic, QuantizeWeights, SymbolicShapes, ExtractAdapters, QnnPreprocess,
)  # fmt: skip

KINDS: Final[tuple[type[Pass], ...]] = (*PASSES, EditPass, ScriptPass, UserPass, PluginPass)

NAMES: Final[dict[str, type[Pass]]] = {name_of(each): each for each in PASSES}


Kind = Literal["pass", "part", "edit", "plugin"]

REPETITIONS: Final = 10
"""Maximum number of runs of a pass that repeats."""

_PLAIN: Final = re.compile(r"[^\s,{}\[\]\"'=*][^,{}\[\]\"']*")
"""A text that needs no quotes."""
_JSON_WORD: Final = re.compile(r'"(?:[^"\\]|\\.)*"|true|false|null|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?')
_CLOSING: Final = {"[": "]", "{": "}"}
_TEXTS: Final = ("text", "choice", "size")
"""Forms of parameters that are a text."""


class Option(NamedTuple):
    """One option of a pass."""

    name: str
    type: str
    """Accepted values in words: "true or false", "an integer from 1"."""
    description: str
    required: bool
    default: Any
    """Default value as in JSON; None if there is none."""
    choices: tuple[str, ...]


class Entry(NamedTuple):
    """A pass, a part of one, an edit or a plugin."""

    kind: Kind
    name: str
    summary: str
    options: tuple[Option, ...]
    problem: str | None
    """Why it cannot be used here, and what to do; None if it can."""
    extra: str | None
    """Extra of this package that installs its dependencies; None if it needs none."""
    more: str = ""


def entries() -> list[Entry]:
    """Return all entries in the order of the help; parts follow their pass."""
    listed: list[Entry] = []
    for name, kind in NAMES.items():
        options, problem = _options(kind, kind.part), kind.available()
        more = " ".join((kind.__doc__ or "").strip().partition("\n")[2].split())
        listed.append(Entry("pass", name, summary(kind), options, problem, kind.extra, more))
        rest = tuple([each for each in options if each.name != kind.part])
        for part, description in kind.parts.items():
            listed.append(Entry("part", f"{name}:{part}", description, rest, problem, kind.extra))
    for name, edit in EDITS.items():
        listed.append(Entry("edit", name, summary(edit), _options(edit), None, None))
    for name, entry in plugins().items():
        package = f" {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
        problem = "another pass has this name" if name in NAMES or name in EDITS else None
        listed.append(Entry("plugin", name, f"Run {entry.value} of the package{package}.", (), problem, None))
    return listed


def as_json(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON."""
    return {
        "name": entry.name,
        "summary": entry.summary,
        "options": [each._asdict() for each in entry.options],
        "available": entry.problem is None,
        "extra": entry.extra,
    }


def _options(kind: type[Declared], part: str | None = None) -> tuple[Option, ...]:
    options = []
    for parameter in parameters(kind):
        if parameter.field not in COMMON:
            shape = parameter.shape
            choices = shape.choices or (shape.item.choices if shape.item is not None else ())
            choices = tuple(kind.parts) if issubclass(kind, Pass) and parameter.name == part else choices
            default = None if parameter.required else plain_value(parameter.default)
            texts = parameter.name, shape.fits, parameter.description
            options.append(Option(*texts, parameter.required, default, choices))
    return tuple(options)


class Step(NamedTuple):
    """A pass of a pipeline."""

    subject: Pass
    repeats: bool = False
    """Whether it runs until no byte changes, at most `REPETITIONS` times."""

    def __str__(self) -> str:
        """Return the text that `parse_step` reads."""
        return spell(self.subject) + "*" * self.repeats


def parse_step(text: str) -> Step:
    """Return the pass that a text names.

    Raises:
        ParameterError: it is not a pass; the message suggests a correction.
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
    if name in NAMES:
        return _of_catalogue(NAMES[name], part if colon else None, inside)
    if head in EDITS:
        return user.edit_pass(_build(EDITS[head], _texts(EDITS[head], inside)))
    if name in EDITS and (places := [each for each in positional(EDITS[name]) if not each.shape.choices]):
        spelled = _with_missing(EDITS[name], {places[0].name: [part]} | _texts(EDITS[name], inside))
        raise ParameterError(f"{visible(head)} is not a pass; write {visible(spelled, None)}")
    if head.endswith(".py"):
        return user.user_pass(head, _free_options(head, inside))
    if head.endswith(".json"):
        if inside.strip():
            raise ParameterError(f"{visible(head)} is a rewrite script, which has no options")
        return user.ScriptPass(file=head)
    if head in user.plugins():
        return user.PluginPass(entry=head, options=_free_options(head, inside))
    if "=" in head:
        raise ParameterError(f"{visible(head)} is not a pass; {quote_the_braces(head)}")
    several = [pass_meant(each) or edit_meant(each) for each in head.split(",")]
    if len(several) > 1 and all(several):
        hint = f"write -p {' -p '.join(several)}"
    elif other := pass_meant(head) or edit_meant(head):
        hint = f'did you mean "{other}"?'
    else:
        spellings = (head, head.replace("-", "_"), name)
        hint = next(filter(None, [near(each, all_names()) for each in spellings]), "") or "`onnxjson passes` shows all"
    raise ParameterError(f'there is no pass "{visible(head)}"; {hint}')


def quote_the_braces(word: str) -> str:
    """Return a hint for a word such as ``a=1``, which the shell made from braces."""
    names = [name for name in all_names() if word.startswith(name)]
    name = max(names, key=len, default="")
    option = visible(word[len(name) :])
    return f"quote the braces, so that the shell does not expand them: -p '{name or 'NAME'}{{{option}}}'"


def pass_meant(word: str) -> str:
    """Return the pass other than an edit that a word names, its own name or one of other programs; "" if none."""
    names = [word] if word in NAMES else meant("pass", word)
    return names[0] if names else word if word in all_names() and word not in EDITS else ""


def option_of_pass(spelled: str, name: str, value: str) -> str:
    """Return the text of a pass, such as ``float16``, with one more option, if it has it; else ""."""
    head, _, inside = spelled.removesuffix("}").partition("{")
    kind = NAMES.get(head.partition(":")[0]) or EDITS.get(head)
    name = name.replace("-", "_")
    if kind is None or name not in [each.name for each in parameters(kind)]:
        return ""
    members = ",".join([*[inside] * bool(inside), f"{name}={value or 'true'}"])
    return f"{head}{{{members}}}"


def all_names() -> list[str]:
    """Return all names of passes except files: passes, their parts, edits, entry points of other packages."""
    names = []
    for name, kind in NAMES.items():
        names += [name, *[f"{name}:{part}" for part in kind.parts]]
    return [*names, *EDITS, *user.plugins()]


def _of_catalogue(kind: type[Pass], part: str | None, inside: str) -> Pass:
    name = name_of(kind)
    texts = _texts(kind, inside)
    if part is not None:
        if kind.part is None:
            raise ParameterError(f"{name} has no parts; write {name}, or '{name}{{option=value}}'")
        if kind.part in texts:
            raise ParameterError(f"{name}:{visible(part)} already sets {kind.part}; leave out one of them")
        texts[kind.part] = [part]
    return _build(kind, texts)


def _build(kind: type[AnyDeclared], texts: Mapping[str, list[str]]) -> AnyDeclared:
    missing = [each for each in parameters(kind) if each.required and each.name not in texts]
    if missing:
        needed = ", ".join([f"{each.name} ({each.description.rstrip('.')})" for each in missing])
        raise ParameterError(f"{name_of(kind)} needs {needed}: write {visible(_with_missing(kind, texts), None)}")
    return edit_spelling.build(kind, texts, ())


def _with_missing(kind: type[Declared], texts: Mapping[str, list[str]]) -> str:
    """Return the text of a pass in quotes, with a place for each required parameter that `texts` lacks."""
    members = [f"{name}={','.join(values)}" for name, values in texts.items()]
    members += [f"{each.name}=..." for each in parameters(kind) if each.required and each.name not in texts]
    return f"'{name_of(kind)}{{{','.join(members)}}}'"


def _free_options(head: str, inside: str) -> dict[str, Any]:
    """Return the options of a function, whose names are not known in advance."""
    options: dict[str, Any] = {}
    for member in split_members(inside):
        name, mark, value = member.partition("=")
        name = name.strip()
        if not name.isidentifier():
            raise ParameterError(f"{visible(head)}: {visible(name)} is not the name of an argument; write name=value")
        if name in options:
            raise ParameterError(f"{visible(head)}: {name} is given twice")
        try:
            options[name] = edit_spelling.json_or_text(_with_quotes(Shape("value"), value.strip())) if mark else True
        except ValueMistakeError as mistake:
            raise ParameterError(f"{visible(head)}: {name}: {mistake}") from None
    return options


def _with_quotes(shape: Shape, text: str) -> str:
    """Return a list or an object of words as JSON, such as ``["a", "b"]`` for ``[a,b]``; a text without its quotes."""
    if shape.form in _TEXTS and text.startswith('"'):
        with suppress(msgspec.MsgspecError):
            return str(msgspec.json.decode(text, type=str))
    return _quoted(text) if shape.form in ("list", "mapping", "value") and _is_enclosed(text) else text


def _is_enclosed(text: str) -> bool:
    return len(text) > 1 and text[-1] == _CLOSING.get(text[0])


def _quoted(text: str) -> str:
    """Return the JSON of a text whose strings may lack quotes."""
    opening = text[:1]
    if not _is_enclosed(text):
        return text if _JSON_WORD.fullmatch(text) else write_value(text)
    members = []
    for member in split_members(text[1:-1]):
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


def _texts(kind: type[Declared], inside: str) -> dict[str, list[str]]:
    owner, known = name_of(kind), {each.name: each for each in parameters(kind)}
    texts: dict[str, list[str]] = {}
    for member in split_members(inside):
        if not member.strip():
            continue
        name, mark, value = member.partition("=")
        name = name.strip().replace("-", "_")
        if name not in known:
            if not known:
                raise ParameterError(f"{owner} has no options, but {visible(name)} is set")
            hint = suggest(name, known) or f"there are {', '.join(known)}"
            raise ParameterError(f'{owner} has no option "{visible(name)}"; {hint}')
        shape = known[name].shape
        if not mark and shape.form != "flag":
            raise ParameterError(f"{owner}: {name} needs a value, {shape.fits}: '{owner}{{{name}=...}}'")
        if name in texts and shape.form not in ("list", "mapping"):
            raise ParameterError(f"{owner}: {name} is given twice")
        texts.setdefault(name, []).append(_with_quotes(shape, value.strip()))
    return texts


def split_members(text: str) -> Iterator[str]:
    """Yield the parts between commas that are outside of quotes and brackets."""
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
        raise ParameterError(f"{visible(text)}: a closing {missing} is missing")
    if text[start:].strip() or start:
        yield text[start:]


def spell(subject: Pass) -> str:
    """Return the text that `parse_step` reads as this pass."""
    match subject:
        case user.EditPass():
            edit = subject.edit
            return name_of(edit) + _braces(non_default_parameters(edit), parameters(type(edit)))
        case user.ScriptPass():
            return subject.file
        case user.UserPass() | user.PluginPass():
            return subject.name + _braces(subject.options, ())
    values = non_default_parameters(subject)
    name = subject.name
    if subject.part and len(values.get(subject.part, ())) == 1:
        name += f":{values.pop(subject.part)[0]}"
    return name + _braces(values, parameters(type(subject)))


def is_called(step: Step, word: str) -> bool:
    """Whether a word names a pass of a pipeline: its name, with its part, as it was spelled, or its file's name."""
    spelled = spell(step.subject)
    names = {str(step), spelled, spelled.partition("{")[0], step.subject.name}
    if isinstance(step.subject, user.ScriptPass | user.UserPass):
        names.add(Path(step.subject.file).name)
    return word in names


def _braces(values: Mapping[str, Any], known: Iterable[Parameter]) -> str:
    if not values:
        return ""
    shapes = {parameter.name: parameter.shape for parameter in known}
    return "{" + ",".join([f"{key}={_spelled(shapes.get(key), value)}" for key, value in values.items()]) + "}"


def _spelled(shape: Shape | None, value: Any) -> str:
    if shape is not None and shape.form in _TEXTS and isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return write_value(value)

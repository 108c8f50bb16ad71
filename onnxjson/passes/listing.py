"""Everything that a pipeline can run, with what it does and takes: passes, their parts, edits, what packages offer."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from onnxjson.edits import spelling as edit_spelling
from onnxjson.edits.catalogue import NAMES as EDITS
from onnxjson.edits.parameters import COMMON, Parameter, parameters
from onnxjson.edits.values import plain_value
from onnxjson.passes.catalogue import NAMES
from onnxjson.passes.declaration import Pass, options, summary
from onnxjson.passes.user import plugins

Kind = Literal["pass", "part", "edit", "plugin"]


class Option(NamedTuple):
    """One option of a pass."""

    name: str
    type: str
    """What fits, in words: "true or false", "a whole number from 1"."""
    description: str
    required: bool
    default: Any
    """As JSON has it; None where there is none."""
    choices: tuple[str, ...]


class Entry(NamedTuple):
    """One thing that runs."""

    kind: Kind
    name: str
    summary: str
    options: tuple[Option, ...]
    problem: str | None
    """Why it cannot be used here, and what to do; None where it can."""
    extra: str | None
    """The extra of this package that brings what it needs; None where nothing more is needed."""
    more: str = ""
    """What else its declaration says."""


def entries() -> list[Entry]:
    """All of them, in the order of the help; parts stand after their pass."""
    found: list[Entry] = []
    for name, kind in NAMES.items():
        found += [_entry(name, kind), *_parts(name, kind)]
    for name, edit in EDITS.items():
        found.append(Entry("edit", name, edit_spelling.summary(edit), _options(parameters(edit)), None, None))
    for name, entry in plugins().items():
        package = f" {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
        problem = "another pass has that name" if name in NAMES or name in EDITS else None
        found.append(Entry("plugin", name, f"Run {entry.value} of the package{package}.", (), problem, None))
    return found


def as_json(entry: Entry) -> dict[str, Any]:
    """An entry for programs."""
    return {
        "name": entry.name,
        "summary": entry.summary,
        "options": [
            {
                "name": each.name,
                "type": each.type,
                "description": each.description,
                "required": each.required,
                "default": each.default,
                "choices": list(each.choices),
            }
            for each in entry.options
        ],
        "available": entry.problem is None,
        "extra": entry.extra,
    }


def _entry(name: str, kind: type[Pass]) -> Entry:
    more = " ".join((kind.__doc__ or "").strip().partition("\n")[2].split())
    return Entry("pass", name, summary(kind), _options(options(kind), kind), kind.available(), kind.extra, more)


def _parts(name: str, kind: type[Pass]) -> Iterable[Entry]:
    rest = tuple([each for each in _options(options(kind), kind) if each.name != kind.part])
    problem = kind.available()
    for part, said in kind.parts.items():
        yield Entry("part", f"{name}:{part}", said, rest, problem, kind.extra)


def _options(known: Sequence[Parameter], kind: type[Pass] | None = None) -> tuple[Option, ...]:
    return tuple([_option(each, kind) for each in known if each.field not in COMMON])


def _option(parameter: Parameter, kind: type[Pass] | None) -> Option:
    shape = parameter.shape
    choices = shape.choices or (shape.item.choices if shape.item is not None else ())
    if kind is not None and parameter.name == kind.part:
        choices = tuple(kind.parts)
    default = None if parameter.required else plain_value(parameter.default)
    return Option(parameter.name, shape.fits, parameter.description, parameter.required, default, choices)

"""All passes by name, and lists of everything that a pipeline can run."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from onnxjson.editing.catalogue import NAMES as EDITS
from onnxjson.editing.declaration import name_of, summary
from onnxjson.editing.parameters import COMMON, Parameter, parameters
from onnxjson.editing.values import plain_value
from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.extract_adapters import ExtractAdapters
from onnxjson.optimizing.passes.float16 import Float16, MixedPrecision
from onnxjson.optimizing.passes.onnxruntime import Onnxruntime, QnnPreprocess, SymbolicShapes
from onnxjson.optimizing.passes.onnxscript import Onnxscript
from onnxjson.optimizing.passes.quantization import QuantizeDynamic, QuantizeStatic
from onnxjson.optimizing.passes.simplifiers import Onnxoptimizer, Onnxsim, Onnxslim
from onnxjson.optimizing.passes.transformers import Transformers
from onnxjson.optimizing.passes.user import EditPass, PluginPass, RulesPass, ScriptPass, UserPass, plugins

PASSES: Final[tuple[type[Pass], ...]] = (
    Onnxoptimizer,
    Onnxsim,
    Onnxslim,
    Onnxscript,
    Onnxruntime,
    Transformers,
    Float16,
    MixedPrecision,
    QuantizeDynamic,
    QuantizeStatic,
    SymbolicShapes,
    ExtractAdapters,
    QnnPreprocess,
    RulesPass,
)

KINDS: Final[tuple[type[Pass], ...]] = (*PASSES, EditPass, ScriptPass, UserPass, PluginPass)

NAMES: Final[dict[str, type[Pass]]] = {name_of(each): each for each in PASSES}


Kind = Literal["pass", "part", "edit", "plugin"]


class Option(NamedTuple):
    """One option of a pass."""

    name: str
    type: str
    """Accepted values in words: "true or false", "a whole number from 1"."""
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
    found: list[Entry] = []
    for name, kind in NAMES.items():
        found += [_entry(name, kind), *_parts(name, kind)]
    for name, edit in EDITS.items():
        found.append(Entry("edit", name, summary(edit), _options(parameters(edit)), None, None))
    for name, entry in plugins().items():
        package = f" {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
        problem = "another pass has this name" if name in NAMES or name in EDITS else None
        found.append(Entry("plugin", name, f"Run {entry.value} of the package{package}.", (), problem, None))
    return found


def as_json(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON."""
    return {
        "name": entry.name,
        "summary": entry.summary,
        "options": [each._asdict() for each in entry.options],
        "available": entry.problem is None,
        "extra": entry.extra,
    }


def _entry(name: str, kind: type[Pass]) -> Entry:
    more = " ".join((kind.__doc__ or "").strip().partition("\n")[2].split())
    return Entry("pass", name, summary(kind), _options(parameters(kind), kind), kind.available(), kind.extra, more)


def _parts(name: str, kind: type[Pass]) -> Iterable[Entry]:
    rest = tuple([each for each in _options(parameters(kind), kind) if each.name != kind.part])
    problem = kind.available()
    for part, description in kind.parts.items():
        yield Entry("part", f"{name}:{part}", description, rest, problem, kind.extra)


def _options(known: Sequence[Parameter], kind: type[Pass] | None = None) -> tuple[Option, ...]:
    return tuple([_option(each, kind) for each in known if each.field not in COMMON])


def _option(parameter: Parameter, kind: type[Pass] | None) -> Option:
    shape = parameter.shape
    choices = shape.choices or (shape.item.choices if shape.item is not None else ())
    if kind is not None and parameter.name == kind.part:
        choices = tuple(kind.parts)
    default = None if parameter.required else plain_value(parameter.default)
    return Option(parameter.name, shape.fits, parameter.description, parameter.required, default, choices)

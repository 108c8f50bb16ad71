"""All passes by name, and lists of everything that a pipeline can run."""

from typing import Any, Final, Literal, NamedTuple

from onnxjson.editing.catalogue import NAMES as EDITS
from onnxjson.editing.declaration import Declared, name_of, summary
from onnxjson.editing.parameters import COMMON, parameters
from onnxjson.editing.values import plain_value
from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.extract_adapters import ExtractAdapters
from onnxjson.optimizing.passes.float16 import Float16, MixedPrecision
from onnxjson.optimizing.passes.onnxruntime import Onnxruntime, QnnPreprocess, SymbolicShapes
from onnxjson.optimizing.passes.onnxscript import Onnxscript
from onnxjson.optimizing.passes.quantization import QuantizeDynamic, QuantizeStatic, QuantizeWeights
from onnxjson.optimizing.passes.simplifiers import Onnxoptimizer, Onnxsim, Onnxslim
from onnxjson.optimizing.passes.transformers import Transformers
from onnxjson.optimizing.passes.user import EditPass, PluginPass, RulesPass, ScriptPass, UserPass, plugins

PASSES: Final[tuple[type[Pass], ...]] = (
    Onnxoptimizer, Onnxsim, Onnxslim, Onnxscript, Onnxruntime, Transformers, Float16, MixedPrecision, QuantizeDynamic,
    QuantizeStatic, QuantizeWeights, SymbolicShapes, ExtractAdapters, QnnPreprocess, RulesPass,
)  # fmt: skip

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
        options, problem = _options(kind, kind.part), kind.available()
        more = " ".join((kind.__doc__ or "").strip().partition("\n")[2].split())
        found.append(Entry("pass", name, summary(kind), options, problem, kind.extra, more))
        rest = tuple([each for each in options if each.name != kind.part])
        for part, description in kind.parts.items():
            found.append(Entry("part", f"{name}:{part}", description, rest, problem, kind.extra))
    for name, edit in EDITS.items():
        found.append(Entry("edit", name, summary(edit), _options(edit), None, None))
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


def _options(kind: type[Declared], part: str | None = None) -> tuple[Option, ...]:
    found = []
    for each in parameters(kind):
        if each.field not in COMMON:
            choices = each.shape.choices or (each.shape.item.choices if each.shape.item is not None else ())
            choices = tuple(kind.parts) if issubclass(kind, Pass) and each.name == part else choices
            default = None if each.required else plain_value(each.default)
            found.append(Option(each.name, each.shape.fits, each.description, each.required, default, choices))
    return tuple(found)

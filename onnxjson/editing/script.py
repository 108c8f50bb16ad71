"""Rewrite scripts, ``onnxjson-rewrite/1``: edits as JSON, which can be applied to other models; and their schema.

The files in schemas/ are what ``onnxjson schema`` prints; nothing reads them at run time. `envelope`, `choice_of` and
`declared_schema` serve rewrite scripts here and recipes in `onnxjson.optimizing`.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.codecs.reading.context import ROOT, Context, Place, has_format
from onnxjson.codecs.reading.exact_reader import comment_warnings, read_document
from onnxjson.codecs.reading.strings import read_string
from onnxjson.codecs.reading.tree import Tree
from onnxjson.editing.declaration import AnyDeclared, Declared, Edit, name_of, non_default_parameters, paragraphs
from onnxjson.editing.parameters import Parameter, Shape, parameters
from onnxjson.editing.values import ValueMistakeError, plain_value, write_text, write_value
from onnxjson.model.display import visible
from onnxjson.model.errors import Finding
from onnxjson.storage.identity import open_source


class StepFormat(NamedTuple):
    """A text format that lists steps: rewrite scripts list edits, recipes list passes."""

    format: str
    """Value of the key "format"."""
    noun: str
    """Word for such a text in messages."""
    steps: str
    """Key of the list of steps."""


SCRIPT: Final = StepFormat("onnxjson-rewrite/1", "script", "edits")


class Script(msgspec.Struct, frozen=True):
    """Edits that are applied in order, all or none."""

    edits: tuple[Edit, ...]
    folder: Path | None = None
    """Folder of the script, relative to which its edits name files."""
    warnings: tuple[Finding, ...] = ()
    """Warnings of the reader, such as that comments in the text are lost when the script is written again."""

    @classmethod
    def load(cls, path: str | Path) -> "Script":
        """Read the script in a file.

        Raises:
            MissingInputError, AccessDeniedError, FileError: the file cannot be read.
            DecodeError: it is not a script; `findings` has every reason with line and column.
        """
        source = open_source(Path(path))
        return parse_script(source.read_at(0, source.size), file=str(path), folder=Path(path).parent)

    @classmethod
    def loads(cls, text: str | bytes, folder: str | Path | None = None) -> "Script":
        """Read the script in a text; see `load` for the errors."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return parse_script(data, folder=None if folder is None else Path(folder))

    def dumps(self) -> str:
        """Return the canonical text: one edit per line, without parameters that have their defaults.

        Raises:
            EncodeError: a value cannot be written.
        """
        return write_script(self.edits)

    def save(self, path: str | Path) -> None:
        """Write the canonical text to a file, all or nothing.

        Raises:
            OutputError, AccessDeniedError, FileError: the file cannot be written.
        """
        from onnxjson.storage.saving import save_file

        data = self.dumps().encode()
        save_file(Path(path), lambda sink: sink.write(data), verify=Script.load)


def write_script(edits: Sequence[Edit]) -> str:
    """Return the canonical text of edits."""
    return write_steps(SCRIPT, [write_edit(edit) for edit in edits])


def write_steps(form: StepFormat, steps: Sequence[str]) -> str:
    """Return the canonical text of steps, one per line, each given as JSON on one line."""
    listed = "[\n" + ",\n".join([f"  {step}" for step in steps]) + "\n]" if steps else "[]"
    return f'{{\n"format": "{form.format}",\n"{form.steps}": {listed}\n}}\n'


def write_edit(edit: Edit) -> str:
    """Return an edit as a step of a script, on one line."""
    members = [("edit", name_of(edit)), *non_default_parameters(edit).items()]
    return "{" + ", ".join([f"{write_text(key)}: {write_value(value)}" for key, value in members]) + "}"


def parse_edit(text: str | bytes) -> Edit:
    """Read one step of a script.

    Raises:
        DecodeError: it is not an edit; `findings` has the reasons.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return read_document(data, lambda tree, context: read_edit(tree, ROOT, context), Context())[0]


def parse_script(text: bytes, *, file: str = "", folder: Path | None = None) -> Script:
    """Read the script in a text; `file` is its name in findings, `folder` the place of files that edits name.

    Raises:
        DecodeError: it is not a script; `findings` has all reasons, in the order of the text.
    """
    edits, _ = read_document(text, _read_script, Context(), file=file)
    return Script(edits, folder, comment_warnings(text, file))


def read_envelope(tree: Tree, context: Context, form: StepFormat) -> list[Tree] | None:
    """Return the steps in a script or recipe; None if there is no list. All mistakes are noted in the context."""
    a_text = f"a {form.noun}"
    has_format(tree, form.format, a_text, context)
    if not isinstance(tree, dict):
        return None
    known = ("format", form.steps)
    for key in tree:
        if key not in known:
            context.unknown_key(key, ROOT.at(key), known, a_text)
    if form.steps not in tree:
        context.error(ROOT, "missing-key", f"the {form.noun} has no {form.steps}", f'add "{form.steps}": [...]')
        return None
    items = tree[form.steps]
    if not isinstance(items, list):
        context.wrong_type(items, ROOT.at(form.steps), f"a list of {form.steps}")
        return None
    return items


def read_declared(
    kind: type[AnyDeclared], tree: dict[str, Tree], place: Place, context: Context, others: Collection[str]
) -> AnyDeclared | None:
    """Read an edit or a pass from an object with its parameters and `others` keys; None if there is a mistake."""
    name = name_of(kind)
    known = {parameter.name: parameter for parameter in parameters(kind)}
    for key in tree:
        if key not in others and key not in known:
            context.unknown_key(key, place.at(key), (*known, *others), name)
    given: dict[str, Any] = {}
    before = len(context.remarks)
    for parameter in known.values():
        if parameter.name in tree:
            given[parameter.field] = _read_parameter(parameter, tree[parameter.name], place.at(parameter.name), context)
        elif parameter.required:
            hint = f"give {parameter.shape.fits}" + (f": {parameter.description}" if parameter.description else "")
            context.error(place, "missing-key", f'{name} needs "{parameter.name}"', hint)
    return kind(**given) if len(context.remarks) == before else None


def _read_script(tree: Tree, context: Context) -> tuple[Edit, ...] | None:
    items = read_envelope(tree, context, SCRIPT)
    if items is None:
        return None
    edits = [read_edit(item, ROOT.at(SCRIPT.steps).at(index), context) for index, item in enumerate(items)]
    return None if context.remarks else tuple([edit for edit in edits if edit is not None])


def read_edit(tree: Tree, place: Place, context: Context) -> Edit | None:
    """Read one step of a script; None if there is a mistake, which is noted in the context."""
    from onnxjson.editing.catalogue import NAMES

    if not isinstance(tree, dict):
        context.wrong_type(tree, place, 'an edit, {"edit": "set-attribute", ...}')
        return None
    name = tree.get("edit")
    if "edit" not in tree:
        context.error(
            place, "missing-key", "the step names no edit", 'begin it with "edit": "set-attribute" or the like'
        )
        return None
    if not isinstance(name, str):
        context.wrong_type(name, place.at("edit"), "the name of an edit")
        return None
    if name not in NAMES:
        message = f'there is no edit "{visible(name)}"'
        context.error(place.at("edit"), "unknown-edit", message, context.nearest(name, NAMES))
        return None
    return read_declared(NAMES[name], tree, place, context, ("edit",))


def _read_parameter(parameter: Parameter, tree: Tree, place: Place, context: Context) -> Any:
    if parameter.shape.form == "text" and not isinstance(tree, str):
        # Names that are not UTF-8 are written as in all formats of this package.
        return read_string(tree, place, context)
    if tree is None and not parameter.required:
        context.wrong_type(tree, place, parameter.shape.fits)
        return None
    try:
        return parameter.read(tree)
    except ValueMistakeError as mistake:
        for key in mistake.path:
            place = place.at(key)
        context.error(place, "wrong-type", f"found {mistake.found}, expected {mistake.fits}")
        return None


Schema = dict[str, Any]


def rewrite_schema() -> Schema:
    """Schema of a text ``onnxjson-rewrite/1``, with a definition for each edit."""
    from onnxjson.editing.catalogue import EDITS

    definitions = {
        "edit": choice_of("edit", {name_of(edit): name_of(edit) for edit in EDITS}),
        "text": {
            "description": "Text, or the bytes of what is not UTF-8.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
                    "required": ["base64"],
                    "additionalProperties": False,
                },
            ],
        },
        **{name_of(edit): _edit(edit) for edit in EDITS},
    }
    description = "Edits of an ONNX model, applied in order, all or none."
    return envelope(SCRIPT, description, {"$ref": "#/$defs/edit"}, definitions)


def envelope(form: StepFormat, description: str, step: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Schema of a text with a list of steps."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{form.format.replace('-', ':', 1).replace('/', '-')}",
        "title": form.format,
        "description": description,
        "type": "object",
        "properties": {"format": {"const": form.format}, form.steps: {"type": "array", "items": step}},
        "required": ["format", form.steps],
        "additionalProperties": False,
        "$defs": dict(definitions),
    }


def choice_of(key: str, definitions: Mapping[str, str]) -> Schema:
    """Schema of an object whose `key` names one of several declarations: name -> name of its definition."""
    return {
        "type": "object",
        "properties": {key: {"enum": list(definitions)}},
        "required": [key],
        "allOf": [
            {"if": {"properties": {key: {"const": name}}}, "then": {"$ref": f"#/$defs/{definition}"}}
            for name, definition in definitions.items()
        ],
    }


def declared_schema(key: str, kind: type[Declared], description: str, properties: Mapping[str, Schema]) -> Schema:
    """Schema of one edit or pass as an object with its name at `key`; `properties` are those of all other keys."""
    return {
        "description": description,
        "type": "object",
        "properties": {key: {"const": name_of(kind)}, **properties},
        "required": [key, *[each.name for each in parameters(kind) if each.required]],
        "additionalProperties": False,
    }


def parameter_schema(parameter: Parameter, shape: Schema | None = None) -> Schema:
    """Schema of a parameter, with another schema for its type if `shape` is given."""
    described = {"description": parameter.description} if parameter.description else {}
    default = {} if parameter.required or parameter.default is None else {"default": plain_value(parameter.default)}
    return {**described, **(_shape(parameter.shape) if shape is None else shape), **default}


def _edit(edit: type[Edit]) -> Schema:
    properties = {each.name: parameter_schema(each, _text(each.shape)) for each in parameters(edit)}
    return declared_schema("edit", edit, paragraphs(edit), properties)


def _text(shape: Shape) -> Schema | None:
    return {"$ref": "#/$defs/text"} if shape.form == "text" and not shape.least else None


def _shape(shape: Shape) -> Schema:
    match shape.form:
        case "text":
            return {"type": "string"} | ({"minLength": shape.least} if shape.least else {})
        case "integer":
            return {"type": "integer"} | ({} if shape.least is None else {"minimum": shape.least})
        case "number":
            return {"type": "number"}
        case "flag":
            return {"type": "boolean"}
        case "choice":
            return {"enum": list(shape.choices)}
        case "size":
            return {"type": ["integer", "string"]}
        case "list":
            least = {"minItems": shape.least} if shape.least else {}
            return {"type": "array", "items": _shape(shape.item or Shape("value"))} | least
        case "mapping":
            return {"type": "object", "additionalProperties": _shape(shape.item or Shape("value"))}
        case _:
            return {}

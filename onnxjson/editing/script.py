"""Rewrite scripts, ``onnxjson-rewrite/1``: edits as JSON, which can be applied to other models."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from onnxjson.codecs.reading.context import ROOT, USES, Context, Place, has_format
from onnxjson.codecs.reading.exact_reader import comment_warnings, read_document
from onnxjson.codecs.reading.strings import read_string
from onnxjson.codecs.reading.tree import Tree
from onnxjson.editing.declaration import AnyDeclared, Edit, name_of, non_default_parameters
from onnxjson.editing.parameters import Parameter, parameters
from onnxjson.editing.values import ValueMistakeError, write_text, write_value
from onnxjson.model.display import visible
from onnxjson.model.errors import Finding
from onnxjson.storage.identity import open_source

AnyStep = TypeVar("AnyStep")


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
    read = partial(read_steps, form=SCRIPT, read=read_edit)
    edits, _ = read_document(text, read, Context(), file=file)
    return Script(edits, folder, comment_warnings(text, file))


def read_steps(
    tree: Tree, context: Context, form: StepFormat, read: Callable[[Tree, Place, Context], AnyStep | None]
) -> tuple[AnyStep, ...] | None:
    """Return the steps in a script or recipe, each read by `read`; None if there are mistakes, noted in the context."""
    a_text = f"a {form.noun}"
    if isinstance(tree, list) or (isinstance(tree, dict) and "edit" in tree and form.steps not in tree):
        hint = f'write {{"format": "{form.format}", "{form.steps}": [...]}} around them'
        context.error(ROOT, "wrong-type", f"found {form.steps}, expected {a_text}", hint)
        return None
    has_format(tree, form.format, a_text, context)
    if not isinstance(tree, dict) or (tree.get("format") != form.format and str(tree.get("format")) in USES):
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
    steps = [read(item, ROOT.at(form.steps).at(index), context) for index, item in enumerate(items)]
    return None if context.remarks else tuple([step for step in steps if step is not None])


def read_declared(
    kind: type[AnyDeclared], tree: dict[str, Tree], place: Place, context: Context, others: Collection[str]
) -> AnyDeclared | None:
    """Read an edit or a pass from an object with its parameters and `others` keys; None if there is a mistake."""
    name = name_of(kind)
    known = {parameter.name: parameter for parameter in parameters(kind)}
    before = len(context.remarks)
    missing = {each.name for each in known.values() if each.required and each.name not in tree}
    for key in tree:
        if key not in others and key not in known:
            context.unknown_key(key, place.at(key), (*known, *others), name)
            missing = {each for each in missing if f'did you mean "{each}"' not in context.remarks[-1].hint}
    given: dict[str, Any] = {}
    for parameter in known.values():
        if parameter.name in tree:
            given[parameter.field] = _read_parameter(parameter, tree[parameter.name], place.at(parameter.name), context)
        elif parameter.name in missing:
            hint = f"add it: {parameter.shape.fits}" + (f" ({parameter.description})" if parameter.description else "")
            context.error(place, "missing-key", f'{name} needs "{parameter.name}"', hint)
    return kind(**given) if len(context.remarks) == before else None


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
        if not mistake.path:
            context.wrong_type(tree, place, mistake.fits)
            return None
        for key in mistake.path:
            place = place.at(key)
        context.error(place, "wrong-type", f"found {mistake.found}, expected {mistake.fits}")
        return None

"""Rewrite scripts, ``onnxjson-rewrite/1``: edits as JSON, to be made again on other models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from onnxjson.checking import Finding
from onnxjson.display import visible
from onnxjson.edits.declaration import Edit, name_of, said
from onnxjson.edits.parameters import Parameter, parameters
from onnxjson.edits.values import ValueMistakeError, write_text, write_value
from onnxjson.errors import DecodeError
from onnxjson.identity import open_source
from onnxjson.reading import tree as json_tree
from onnxjson.reading.comments import of_comments
from onnxjson.reading.context import ROOT, Context, Place
from onnxjson.reading.exact_reader import locate, summary
from onnxjson.reading.scan import Scan, scan
from onnxjson.reading.skimming import skim
from onnxjson.reading.strings import read_string
from onnxjson.reading.tree import UNREADABLE, Tree

FORMAT: Final = "onnxjson-rewrite/1"
"""What the key "format" of a script says."""

_KEYS: Final = ("format", "edits")


class Script(msgspec.Struct, frozen=True):
    """Edits that are made in their order, all or nothing."""

    edits: tuple[Edit, ...]
    folder: Path | None = None
    """Where files that they name are looked for: the folder of the script."""
    warnings: tuple[Finding, ...] = ()
    """What the reader had to say, such as that the text has comments, which are not kept when it is written again."""

    @classmethod
    def load(cls, path: str | Path) -> "Script":
        """The script in a file.

        Raises:
            MissingInputError, AccessDeniedError, FileError: the file cannot be read.
            DecodeError: it holds none; `findings` have every reason with line and column.
        """
        source = open_source(Path(path))
        return parse_script(source.read_at(0, source.size), file=str(path), folder=Path(path).parent)

    @classmethod
    def loads(cls, text: str | bytes, folder: str | Path | None = None) -> "Script":
        """The script in a text; see `load` for the errors."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return parse_script(data, folder=None if folder is None else Path(folder))

    def dumps(self) -> str:
        """The canonical text: an edit a line, defaults left out.

        Raises:
            EncodeError: a value cannot be written.
        """
        return write_script(self.edits)

    def save(self, path: str | Path) -> None:
        """Writes the canonical text to a file, all or nothing.

        Raises:
            OutputError, AccessDeniedError, FileError: the file cannot be written.
        """
        from onnxjson.saving import save_file

        data = self.dumps().encode()
        save_file(Path(path), lambda sink: sink.write(data), verify=Script.load)


def write_script(edits: Sequence[Edit]) -> str:
    """The canonical text of edits."""
    if not edits:
        return f'{{\n"format": "{FORMAT}",\n"edits": []\n}}\n'
    lines = ",\n".join([f"  {write_edit(edit)}" for edit in edits])
    return f'{{\n"format": "{FORMAT}",\n"edits": [\n{lines}\n]\n}}\n'


def write_edit(edit: Edit) -> str:
    """One edit as it stands in a script, on one line."""
    members = [("edit", name_of(edit)), *said(edit).items()]
    return "{" + ", ".join([f"{write_text(key)}: {write_value(value)}" for key, value in members]) + "}"


def parse_edit(text: str | bytes) -> Edit:
    """The edit that one step of a script stands for.

    Raises:
        DecodeError: it is none; `findings` say why.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    edit = _parsed(data, "", _read_edit)
    assert isinstance(edit, Edit)
    return edit


def parse_script(text: bytes, *, file: str = "", folder: Path | None = None) -> Script:
    """The script in a text.

    Args:
        text: UTF-8.
        file: the name that findings give the text.
        folder: where files that edits name are looked for.

    Raises:
        DecodeError: it is none; ``findings`` has all reasons, in the order of the text.
    """
    edits = _parsed(text, file, _read_script)
    return Script(edits, folder, of_comments(text, file))


def _parsed(text: bytes, file: str, read: Any) -> Any:
    context = Context()
    is_clean, tree = json_tree.parse(text)
    scanned: Scan | None = None
    if not is_clean:
        scanned = scan(text)
        tree = scanned.tree
    found = None
    if scanned is None or (scanned.is_sound and tree is not UNREADABLE):
        try:
            found = read(tree, ROOT, context)
        except RecursionError:
            message = "objects and lists nest too deep for the calling program's stack"
            context.error(ROOT, "nesting-too-deep", message, "raise sys.setrecursionlimit")
    if found is not None and not context.remarks and (scanned is None or not scanned.mistakes):
        return found
    if scanned is None:
        decoded = text.decode("utf-8")
        scanned = Scan(decoded, root=skim(decoded, [remark.place.path for remark in context.remarks]))
    findings = locate(scanned, context.remarks, file)
    raise DecodeError(summary(findings), findings)


def _read_script(tree: Tree, place: Place, context: Context) -> tuple[Edit, ...] | None:
    if not isinstance(tree, dict):
        context.wrong_type(tree, place, f'a script, {{"format": "{FORMAT}", "edits": [...]}},')
        return None
    found = tree.get("format")
    if "format" not in tree:
        context.error(place, "no-format", "the text does not say its format", f'add the line "format": "{FORMAT}",')
    elif not isinstance(found, str):
        context.wrong_type(found, place.at("format"), f'"{FORMAT}"')
    elif found != FORMAT:
        hint = "a newer onnxjson may read it" if found.startswith("onnxjson-rewrite/") else "a script is wanted here"
        message = f'the format is "{visible(found)}"; this version of onnxjson reads "{FORMAT}"'
        context.error(place.at("format"), "other-format", message, hint)
    for key in tree:
        if key not in _KEYS:
            context.unknown_key(key, place.at(key), _KEYS, "a script")
    if "edits" not in tree:
        context.error(place, "missing-key", "the script has no edits", 'add "edits": [...]')
        return None
    items = tree["edits"]
    if not isinstance(items, list):
        context.wrong_type(items, place.at("edits"), "a list of edits")
        return None
    edits = [_read_edit(item, place.at("edits").at(index), context) for index, item in enumerate(items)]
    return None if context.remarks else tuple([edit for edit in edits if edit is not None])


def _read_edit(tree: Tree, place: Place, context: Context) -> Edit | None:
    from onnxjson.edits.catalogue import NAMES

    if not isinstance(tree, dict):
        context.wrong_type(tree, place, 'an edit, {"edit": "set-attribute", ...},')
        return None
    name = tree.get("edit")
    if "edit" not in tree:
        context.error(place, "missing-key", "this says no edit", 'begin it with "edit": "set-attribute" or the like')
        return None
    if not isinstance(name, str):
        context.wrong_type(name, place.at("edit"), "the name of an edit")
        return None
    if name not in NAMES:
        message = f'there is no edit "{visible(name)}"'
        context.error(place.at("edit"), "unknown-edit", message, context.nearest(name, NAMES))
        return None
    edit = NAMES[name]
    known = {parameter.name: parameter for parameter in parameters(edit)}
    for key in tree:
        if key != "edit" and key not in known:
            context.unknown_key(key, place.at(key), known, name)
    given: dict[str, Any] = {}
    before = len(context.remarks)
    for parameter in known.values():
        if parameter.name in tree:
            given[parameter.field] = _read_parameter(parameter, tree[parameter.name], place.at(parameter.name), context)
        elif parameter.required:
            hint = f"it takes {parameter.shape.fits}" + (f": {parameter.description}" if parameter.description else "")
            context.error(place, "missing-key", f'{name} needs "{parameter.name}"', hint)
    return edit(**given) if len(context.remarks) == before else None


def _read_parameter(parameter: Parameter, tree: Tree, place: Place, context: Context) -> Any:
    if parameter.shape.form == "text" and not isinstance(tree, str):
        # Names that are not UTF-8 stand as everywhere in the formats of this package.
        return read_string(tree, place, context)
    if tree is None and not parameter.required:
        context.wrong_type(tree, place, parameter.shape.fits)
        return None
    try:
        return parameter.read(tree)
    except ValueMistakeError as mistake:
        for key in mistake.path:
            place = place.at(key)
        context.error(place, "wrong-type", f"{mistake.found}, but {mistake.fits} fits here")
        return None


__all__ = ["FORMAT", "Script", "parse_edit", "parse_script", "write_edit", "write_script"]

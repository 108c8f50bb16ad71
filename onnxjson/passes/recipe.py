"""Recipes, ``onnxjson-recipe/1``: the passes of a pipeline as JSON, to be run again on other models.

::

    {
    "format": "onnxjson-recipe/1",
    "passes": [
      "onnxoptimizer:eliminate_identity",
      {"pass": "onnxsim", "fold": false, "repeat": true},
      {"edit": "prune"},
      "rewrite.json"
    ]
    }

A step is a text as after ``-p``, an object with the name of a pass and its options, or an edit as in a rewrite script.
Files stand in the folder of the recipe or below. A recipe runs no Python file: those run only where they are named on
the command line.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from onnxjson.checking import Finding
from onnxjson.display import visible
from onnxjson.edits.catalogue import NAMES as EDITS
from onnxjson.edits.declaration import Edit
from onnxjson.edits.script import parse_edit
from onnxjson.edits.values import ValueMistakeError, write_value
from onnxjson.errors import DecodeError, ParameterError
from onnxjson.identity import open_source
from onnxjson.passes.catalogue import NAMES
from onnxjson.passes.declaration import Pass, near, options, said
from onnxjson.passes.edits import EditPass, edit_pass
from onnxjson.passes.spelling import Step, all_names, parse_step, spell
from onnxjson.passes.user import UserPass
from onnxjson.reading import tree as json_tree
from onnxjson.reading.context import ROOT, Context, Place
from onnxjson.reading.exact_reader import locate, summary
from onnxjson.reading.scan import Scan, scan
from onnxjson.reading.skimming import skim
from onnxjson.reading.tree import UNREADABLE, Tree

FORMAT: Final = "onnxjson-recipe/1"
"""What the key "format" of a recipe says."""

_KEYS: Final = ("format", "passes")
_REPEAT: Final = "repeat"

_FILE: Final = "file"
"""The role of options that name files."""


def load_recipe(path: str | Path) -> tuple[Step, ...]:
    """The passes of the recipe in a file.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        DecodeError: it holds none; `findings` have every reason with line and column.
    """
    source = open_source(Path(path))
    return parse_recipe(source.read_at(0, source.size), file=str(path), folder=Path(path).parent)


def parse_recipe(text: bytes, *, file: str = "", folder: Path | None = None) -> tuple[Step, ...]:
    """The passes of the recipe in a text.

    Args:
        text: UTF-8.
        file: the name that findings give the text.
        folder: where the files that it names stand.

    Raises:
        DecodeError: it holds none; `findings` have all reasons, in the order of the text.
    """
    context = Context()
    is_clean, tree = json_tree.parse(text)
    scanned: Scan | None = None
    if not is_clean:
        scanned = scan(text)
        tree = scanned.tree
    found: tuple[Step, ...] | None = None
    if scanned is None or (scanned.is_sound and tree is not UNREADABLE):
        found = _read_recipe(tree, context, folder)
    if found is not None and not context.remarks and (scanned is None or not scanned.mistakes):
        return found
    if scanned is None:
        decoded = text.decode("utf-8")
        scanned = Scan(decoded, root=skim(decoded, [remark.place.path for remark in context.remarks]))
    findings = locate(scanned, context.remarks, file)
    raise DecodeError(summary(findings), findings)


def write_recipe(steps: Sequence[Step]) -> str:
    """The canonical text of a recipe: a step a line, options with their names.

    Raises:
        ParameterError: a step runs a Python file, which no recipe does.
    """
    lines = ",\n".join([f"  {_step_text(step)}" for step in steps])
    listed = f"[\n{lines}\n]" if steps else "[]"
    return f'{{\n"format": "{FORMAT}",\n"passes": {listed}\n}}\n'


def _step_text(step: Step) -> str:
    subject = step.subject
    if isinstance(subject, UserPass):
        raise ParameterError(f"{visible(subject.file)} is a Python file, which a recipe cannot run")
    if isinstance(subject, EditPass):
        return write_value(subject.step if not step.repeats else subject.step | {_REPEAT: True})
    values = said(subject)
    if subject.name not in NAMES or not values or spell(subject).partition("{")[1] == "":
        return write_value(str(step))
    return write_value({"pass": subject.name, **values, **({_REPEAT: True} if step.repeats else {})})


def _read_recipe(tree: Tree, context: Context, folder: Path | None) -> tuple[Step, ...] | None:
    if not isinstance(tree, dict):
        context.wrong_type(tree, ROOT, f'a recipe, {{"format": "{FORMAT}", "passes": [...]}},')
        return None
    found = tree.get("format")
    if "format" not in tree:
        context.error(ROOT, "no-format", "the text does not say its format", f'add the line "format": "{FORMAT}",')
    elif found != FORMAT:
        hint = (
            "a newer onnxjson may read it" if str(found).startswith("onnxjson-recipe/") else "a recipe is wanted here"
        )
        message = f'the format is {visible(write_value(found))}; this version of onnxjson reads "{FORMAT}"'
        context.error(ROOT.at("format"), "other-format", message, hint)
    for key in tree:
        if key not in _KEYS:
            context.unknown_key(key, ROOT.at(key), _KEYS, "a recipe")
    if "passes" not in tree:
        context.error(ROOT, "missing-key", "the recipe has no passes", 'add "passes": [...]')
        return None
    items = tree["passes"]
    if not isinstance(items, list):
        context.wrong_type(items, ROOT.at("passes"), "a list of passes")
        return None
    steps = [_read_step(item, ROOT.at("passes").at(index), context, folder) for index, item in enumerate(items)]
    return None if context.remarks else tuple([step for step in steps if step is not None])


def _read_step(tree: Tree, place: Place, context: Context, folder: Path | None) -> Step | None:
    try:
        if isinstance(tree, str):
            if tree.partition("{")[0].rstrip("* ").endswith(".py"):
                hint = "name it on the command line, with -p"
                context.error(place, "python-file", f"a recipe does not run {visible(tree)}", hint)
                return None
            step = parse_step(tree)
        elif not isinstance(tree, dict) or ("pass" not in tree and "edit" not in tree):
            context.wrong_type(tree, place, 'a pass, "onnxsim" or {"pass": "onnxsim", ...}, or an edit,')
            return None
        else:
            repeats = tree.get(_REPEAT, False)
            if not isinstance(repeats, bool):
                context.wrong_type(repeats, place.at(_REPEAT), "true or false")
                return None
            rest = {key: value for key, value in tree.items() if key != _REPEAT}
            subject = _edit_of(rest, place, context) if "edit" in tree else _pass_of(rest, place, context)
            if subject is None:
                return None
            step = Step(subject, repeats)
    except ParameterError as error:
        context.error(place, "wrong-pass", str(error))
        return None
    return _within(step, place, context, folder)


def _within(step: Step, place: Place, context: Context, folder: Path | None) -> Step | None:
    """The step with the files that it names looked for in the folder of the recipe; None where one is outside."""
    subject = step.subject
    for name in _files_of(subject):
        if not _is_inside(name, folder):
            hint = "put it there, or run it with -p"
            context.error(place, "outside-folder", f"{visible(name)} is not in the folder of the recipe", hint)
            return None
    return Step(subject if folder is None else subject.within(folder), step.repeats)


def _files_of(subject: Pass) -> Iterator[str]:
    """The files that options of a pass name; an edit knows its folder, and looks at its own."""
    for option in options(type(subject)):
        value = getattr(subject, option.field)
        if option.role == _FILE and value is not None:
            yield from (value,) if isinstance(value, str) else value


def _is_inside(name: str, folder: Path | None) -> bool:
    if ".." in Path(name).parts or Path(name).is_absolute():
        return False
    return folder is None or (folder / name).resolve().is_relative_to(folder.resolve())


def _edit_of(tree: dict[str, Any], place: Place, context: Context) -> Pass | None:
    try:
        edit: Edit = parse_edit(write_value(tree))
    except DecodeError as error:
        for finding in error.findings or (Finding(severity="error", code="wrong-pass", message=str(error)),):
            context.error(place, finding.code, finding.message, finding.hint)
        return None
    return edit_pass(edit)


def _pass_of(tree: dict[str, Any], place: Place, context: Context) -> Pass | None:
    name = tree["pass"]
    if not isinstance(name, str):
        context.wrong_type(name, place.at("pass"), "the name of a pass")
        return None
    if name not in NAMES:
        hint = _in_a_text(name, tree)
        problem = f'an object does not take "{name}"' if hint else f'there is no pass "{visible(name)}"'
        hint = hint or near(name, all_names()) or "`onnxjson passes` shows all"
        context.error(place.at("pass"), "unknown-pass", problem, hint)
        return None
    kind = NAMES[name]
    known = {option.name: option for option in options(kind)}
    values: dict[str, Any] = {}
    before = len(context.remarks)
    for key, value in _without(tree, "pass"):
        if key not in known:
            context.unknown_key(key, place.at(key), (*known, _REPEAT), name)
            continue
        try:
            values[known[key].field] = known[key].read(value)
        except ValueMistakeError as mistake:
            inner = place.at(key)
            for part in mistake.path:
                inner = inner.at(part)
            context.error(inner, "wrong-type", f"{mistake.found}, but {mistake.fits} fits here")
    for option in known.values():
        if option.required and option.name not in tree:
            context.error(place, "missing-key", f'{name} needs "{option.name}"', f"it takes {option.shape.fits}")
    return kind(**values) if len(context.remarks) == before else None


def _in_a_text(name: str, tree: dict[str, Any]) -> str:
    """What to do where an object has a name that only a text may have, such as that of a part; "" where it has none."""
    if name not in all_names():
        return ""
    if name in EDITS:
        return f"an edit is written {write_value({'edit': name})}"
    kind, _, part = name.partition(":")
    if part and len(tree) > 1:
        return f"write {write_value({'pass': kind, str(NAMES[kind].part): [part]})} with its options"
    text = name if len(tree) == 1 else f"{name}{{option=value}}"
    return f"write it as a text, {write_value(text)}"


def _without(tree: dict[str, Any], key: str) -> Iterable[tuple[str, Any]]:
    return [(each, value) for each, value in tree.items() if each != key]


__all__ = ["FORMAT", "load_recipe", "parse_recipe", "write_recipe"]

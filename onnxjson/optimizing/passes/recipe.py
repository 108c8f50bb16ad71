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
Files must be in the folder of the recipe or below. A recipe cannot run Python files: they run only if the command line
names them.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from onnxjson.codecs.reading.context import Context, Place
from onnxjson.codecs.reading.exact_reader import read_document
from onnxjson.codecs.reading.tree import Tree
from onnxjson.editing import script
from onnxjson.editing.catalogue import NAMES as EDITS
from onnxjson.editing.parameters import parameters
from onnxjson.editing.values import write_value
from onnxjson.model.display import visible
from onnxjson.model.errors import ParameterError
from onnxjson.optimizing.passes.catalogue import NAMES, Step, all_names, parse_step
from onnxjson.optimizing.passes.declaration import Pass, near
from onnxjson.optimizing.passes.user import edit_pass
from onnxjson.storage.identity import open_source

RECIPE: Final = script.StepFormat("onnxjson-recipe/1", "recipe", "passes")

_REPEAT: Final = "repeat"

_FILE: Final = "file"


def load_recipe(path: str | Path) -> tuple[Step, ...]:
    """Return the passes of the recipe in a file.

    Raises:
        DecodeError: it is not a recipe; `findings` have every reason with line and column.
    """
    source = open_source(Path(path))
    return parse_recipe(source.read_at(0, source.size), file=str(path), folder=Path(path).parent)


def parse_recipe(text: bytes, *, file: str = "", folder: Path | None = None) -> tuple[Step, ...]:
    """Return the passes of the recipe in a text."""
    read = partial(script.read_steps, form=RECIPE, read=partial(_read_step, folder=folder))
    return read_document(text, read, Context(), file=file)[0]


def _read_step(tree: Tree, place: Place, context: Context, folder: Path | None) -> Step | None:
    try:
        if isinstance(tree, str):
            if tree.partition("{")[0].rstrip("* ").endswith(".py"):
                hint = "name it on the command line, with -p"
                context.error(place, "python-file", f"a recipe does not run {visible(tree)}", hint)
                return None
            step = parse_step(tree)
        elif not isinstance(tree, dict) or ("pass" not in tree and "edit" not in tree):
            context.wrong_type(tree, place, 'a pass, "onnxsim" or {"pass": "onnxsim", ...}, or an edit')
            return None
        else:
            repeats = tree.get(_REPEAT, False)
            if not isinstance(repeats, bool):
                context.wrong_type(repeats, place.at(_REPEAT), "true or false")
                return None
            rest = {key: value for key, value in tree.items() if key != _REPEAT}
            subject: Pass | None
            if "edit" in tree:
                edit = script.read_edit(rest, place, context)
                subject = None if edit is None else edit_pass(edit)
            else:
                subject = _pass_of(rest, place, context)
            if subject is None:
                return None
            step = Step(subject, repeats)
    except ParameterError as error:
        context.error(place, "wrong-pass", str(error))
        return None
    return _within(step, place, context, folder)


def _within(step: Step, place: Place, context: Context, folder: Path | None) -> Step | None:
    """Return the step with its files resolved in the folder of the recipe; None, after a report, if one is outside."""
    subject = step.subject
    for name in _files_of(subject):
        if not _is_inside(name, folder):
            hint = "put it there, or run it with -p"
            context.error(place, "outside-folder", f"{visible(name)} is not in the folder of the recipe", hint)
            return None
    return Step(subject if folder is None else subject.within(folder), step.repeats)


def _files_of(subject: Pass) -> Iterator[str]:
    for option in parameters(type(subject)):
        value = getattr(subject, option.field)
        if option.role == _FILE and value is not None:
            yield from (value,) if isinstance(value, str) else value


def _is_inside(name: str, folder: Path | None) -> bool:
    if ".." in Path(name).parts or Path(name).is_absolute():
        return False
    return folder is None or (folder / name).resolve().is_relative_to(folder.resolve())


def _pass_of(tree: dict[str, Any], place: Place, context: Context) -> Pass | None:
    name = tree["pass"]
    if not isinstance(name, str):
        context.wrong_type(name, place.at("pass"), "the name of a pass")
        return None
    if name not in NAMES:
        hint = _in_a_text(name, tree)
        problem = f'"{name}" is not allowed in an object' if hint else f'there is no pass "{visible(name)}"'
        hint = hint or near(name, all_names()) or "`onnxjson passes` shows all"
        context.error(place.at("pass"), "unknown-pass", problem, hint)
        return None
    return script.read_declared(NAMES[name], tree, place, context, ("pass", _REPEAT))


def _in_a_text(name: str, tree: dict[str, Any]) -> str:
    """Return a hint for an object with a name that only a text may have, such as that of a part; "" for other names."""
    if name not in all_names():
        return ""
    if name in EDITS:
        return f"an edit is written {write_value({'edit': name})}"
    kind, _, part = name.partition(":")
    if part and len(tree) > 1:
        return f"write {write_value({'pass': kind, str(NAMES[kind].part): [part]})} with its options"
    text = name if len(tree) == 1 else f"{name}{{option=value}}"
    return f"write it as a string, {write_value(text)}"

"""All edits, as their classes declare them. A module of a new family of edits is imported here."""
# ruff: noqa: F403 - each of these modules lists its edits in `__all__`

from typing import Final

from onnxjson.editing.annotations import *
from onnxjson.editing.attributes import *
from onnxjson.editing.batch import *
from onnxjson.editing.cleaning import *
from onnxjson.editing.composing import *
from onnxjson.editing.declaration import GROUPS, Edit, name_of
from onnxjson.editing.deduplication import *
from onnxjson.editing.deletion import *
from onnxjson.editing.inference import *
from onnxjson.editing.initializers import *
from onnxjson.editing.inlining import *
from onnxjson.editing.interface import *
from onnxjson.editing.names import *
from onnxjson.editing.nodes import *
from onnxjson.editing.opsets import *
from onnxjson.editing.pattern_replacement import *
from onnxjson.editing.shapes import *
from onnxjson.editing.tensor_values import *
from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import ParameterError
from onnxjson.model.foreign_words import meant

_DECLARED: Final = [edit for edit in Edit.__subclasses__() if edit.__module__.startswith("onnxjson.")]

EDITS: Final[tuple[type[Edit], ...]] = tuple(
    sorted(_DECLARED, key=lambda edit: (GROUPS.index(edit.group), name_of(edit)))
)
"""All edits, by group and name."""

NAMES: Final[dict[str, type[Edit]]] = {name_of(edit): edit for edit in EDITS}
"""All edits by name."""


def edit_meant(word: str) -> str:
    """Return the edit that a word names, its own name or one of other programs; "" if there is none."""
    return word if word in NAMES else "".join(meant("edit", word)[:1])


def edit_named(name: str) -> type[Edit]:
    """Return the edit of a name such as ``set-attribute``.

    Raises:
        ParameterError: there is none; the message suggests similar names.
    """
    edit = NAMES.get(name)
    if edit is None:
        other = edit_meant(name)
        hint = f'did you mean "{other}"?' if other else suggest(name, NAMES) or "`onnxjson rewrite --list` shows all"
        raise ParameterError(f'there is no edit "{visible(name)}"; {hint}')
    return edit

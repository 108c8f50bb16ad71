"""`Edit`: what a person wants changed, declared once for Python, the command line, scripts and forms.

A subclass is the declaration: its docstring says what it does, its fields are the parameters, ``tag`` is its name::

    class RemoveAttribute(Edit, frozen=True, kw_only=True, tag="remove-attribute"):
        \"""Take an attribute away from nodes.\"""

        words = ("node", "attribute")
        examples = ('{"edit": "remove-attribute", "node": "op:Conv", "attribute": "auto_pad"}',)

        node: Annotated[str, Role("nodes"), Meta(description="The nodes.")]
        attribute: Annotated[str, Role("attribute"), Meta(description="The name of the attribute.")]

        def change(self, workspace: Workspace) -> Outcome: ...
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from onnxjson.display import visible
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import parameters
from onnxjson.edits.values import ValueMistakeError, plain_value, same_value
from onnxjson.errors import EditError, ParameterError

if TYPE_CHECKING:
    from pathlib import Path

    from onnxjson.document import Model
    from onnxjson.edits.workspace import Workspace
    from onnxjson.patching import Patch


class Edit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="edit", eq=False):
    """The base of all edits. Parameters are checked when an edit is made; `ParameterError` says what does not fit."""

    words: ClassVar[tuple[str, ...]] = ()
    """Parameters that may stand on a command line without their names, in this order."""
    examples: ClassVar[tuple[str, ...]] = ()
    """Steps of scripts that show how it is used; the help spells them for the command line."""

    expect: Annotated[
        int | None, msgspec.Meta(ge=0, description="How many matches it must have; any other number is refused.")
    ] = None

    def __post_init__(self) -> None:
        for parameter in parameters(type(self)):
            given = getattr(self, parameter.field)
            try:
                value = parameter.read(given)
            except ValueMistakeError as mistake:
                raise parameter_error(self, parameter.name, mistake) from None
            if value is not given:
                msgspec.structs.force_setattr(self, parameter.field, value)

    def change(self, workspace: "Workspace") -> Outcome:
        """Changes the model of the workspace.

        Raises:
            EditError: it cannot be done, or not without damage.
            SelectorError: a selector finds nothing, or more than one thing where one is wanted.
        """
        raise NotImplementedError

    def plan(self, model: "Model", folder: "Path | None" = None) -> "Patch":
        """The patch that makes this edit on a model; `folder` is where files that it names are looked for.

        Raises:
            EditError, SelectorError: it cannot be made; see `change`.
        """
        from onnxjson.edits.applying import plan

        return plan(model, self, folder=folder)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return same_value(_tree(self), _tree(other))

    __hash__ = None  # type: ignore[assignment]


def name_of(edit: Edit | type[Edit]) -> str:
    """The name of an edit, such as ``set-attribute``."""
    return str(edit.__struct_config__.tag)


def said(edit: Edit) -> dict[str, Any]:
    """The parameters of an edit that are not their defaults, by name, in the order of the declaration."""
    found = {}
    for parameter in parameters(type(edit)):
        value = getattr(edit, parameter.field)
        if parameter.required or not same_value(plain_value(value), plain_value(parameter.default)):
            found[parameter.name] = value
    return found


def _tree(edit: Edit) -> Any:
    return plain_value(said(edit))


def parameter_error(edit: Edit | type[Edit], name: str, mistake: ValueMistakeError) -> ParameterError:
    """The error that says what is wrong with the value of a parameter."""
    path = "".join([f"[{part}]" if isinstance(part, int) else f".{visible(part)}" for part in mistake.path])
    return ParameterError(f"{name_of(edit)}: {name}{path}: {mistake}")


def check_expectation(edit: Edit, outcome: Outcome) -> None:
    """Do nothing if an edit had as many matches as it expects.

    Raises:
        EditError: it had more or fewer.
    """
    if edit.expect is not None and edit.expect != outcome.matches:
        matches = f"{outcome.matches:,} match" + ("es" if outcome.matches != 1 else "")
        raise EditError(f"{name_of(edit)}: {matches}, and {edit.expect:,} are expected; nothing is changed")

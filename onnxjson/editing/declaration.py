"""`Declared`, the base of edits and passes, and `Edit`: one change of a model.

A subclass is the declaration. Its docstring is the help text, its fields are the parameters, and ``tag`` is its name in
Python, on the command line, in scripts and in forms::

    class RemoveAttribute(Edit, frozen=True, kw_only=True, tag="remove-attribute"):
        \"""Remove an attribute from nodes.\"""

        group = "attributes"
        words = ("node", "attribute")
        examples = ('{"edit": "remove-attribute", "node": "op:Conv", "attribute": "auto_pad"}',)

        node: Annotated[str, Role("nodes"), about("The nodes.")]
        attribute: Annotated[str, Role("attribute"), about("The name of the attribute.")]

        def change(self, workspace: Workspace) -> Outcome: ...
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, NamedTuple, TypeVar

import msgspec

from onnxjson.editing.parameters import COMMON, Parameter, about, parameters
from onnxjson.editing.values import ValueMistakeError, plain_value, same_value
from onnxjson.model.display import visible
from onnxjson.model.errors import EditError, ParameterError

if TYPE_CHECKING:
    from onnxjson.editing.workspace import Workspace


GROUPS: Final = ("nodes", "attributes", "constants", "interface", "shapes", "names", "model")


class _Positional(msgspec.StructMeta):
    """The type of declarations: their constructors also take parameters without names, in the order of a form."""

    def __call__(cls, *values: Any, **fields: Any) -> Any:  # noqa: N805
        if values:
            kind: Any = cls
            ordered = positional(kind) if len(values) <= len(kind.words) else in_form_order(kind)
            places = [each for each in ordered if each.field not in fields and each.field not in COMMON]
            if len(values) > len(places):
                names = ", ".join([f"{each.field}=..." for each in places])
                raise TypeError(f"{cls.__name__} has {len(values)} values without names; write {cls.__name__}({names})")
            fields |= {parameter.field: value for parameter, value in placed(places, values)}
        return super().__call__(**fields)


class Declared(msgspec.Struct, metaclass=_Positional, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """A step that is declared by its class. The constructor checks and converts its parameters.

    Two steps are equal if they have the same class and the same parameters, compared by their JSON text.

    Raises:
        ParameterError: a value does not fit its parameter.
    """

    words: ClassVar[tuple[str, ...]] = ()
    """Parameters that may be written on a command line without their names, in this order."""

    def __post_init__(self) -> None:
        for parameter in parameters(type(self)):
            given = getattr(self, parameter.field)
            try:
                value = parameter.read(given)
            except ValueMistakeError as mistake:
                raise parameter_error(self, parameter.name, mistake) from None
            if value is not given:
                msgspec.structs.force_setattr(self, parameter.field, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Declared) or type(other) is not type(self):
            return NotImplemented
        return same_value(*[plain_value(non_default_parameters(each)) for each in (self, other)])

    __hash__ = None  # type: ignore[assignment]


AnyDeclared = TypeVar("AnyDeclared", bound=Declared)
Value = TypeVar("Value")


class Outcome(NamedTuple):
    """Result of an edit, beyond the changed model."""

    matches: int
    """Number of elements that the edit selected, whether or not they had to change."""
    notes: tuple[str, ...] = ()
    """Sentences for the user, such as which nodes could not be changed."""


class Edit(Declared, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="edit", eq=False):
    """Base class of all edits."""

    group: ClassVar[str]
    """What it changes, one of `GROUPS`; lists of edits are in their order."""
    reads_shapes: ClassVar[bool] = True
    """Whether it reads stated shapes, which must be correct then."""
    examples: ClassVar[tuple[str, ...]] = ()
    """Steps of scripts as examples; the help shows them as command lines."""

    expect: Annotated[int | None, about("The required number of matches; any other number is an error.", ge=0)] = None
    if_any: Annotated[bool, about("If a selector matches nothing, change nothing instead of failing.")] = False

    def change(self, workspace: "Workspace") -> Outcome:
        """Change the model of the workspace.

        Raises:
            EditError: the edit is not possible, or would damage the model.
            SelectorError: a selector matches nothing, or more than one element where exactly one is needed.
        """
        raise NotImplementedError


def positional(kind: type[Declared]) -> list[Parameter]:
    """Parameters that need no name on a command line, in their order."""
    known = {parameter.name: parameter for parameter in parameters(kind)}
    return [known[name] for name in kind.words]


def in_form_order(kind: type[Declared]) -> list[Parameter]:
    """Parameters in the order of a form: first those that need no name on a command line."""
    first = positional(kind)
    return [*first, *[each for each in parameters(kind) if each not in first]]


def placed(places: Sequence[Parameter], values: Sequence[Value]) -> Iterator[tuple[Parameter, Value]]:
    """Yield the parameter of each value without a name; required parameters get theirs before optional ones."""
    spare, pending = len(values) - sum(each.required for each in places), list(values)
    for parameter in places:
        if not parameter.required:
            choices, left = parameter.shape.choices, len(places) - len(pending)
            if choices and pending and left and (pending[0] not in choices or left == 1):
                continue  # `rename old new` has no kind, even if the old name is that of a kind
            spare -= 1
        if pending and (parameter.required or spare >= 0):
            yield parameter, pending.pop(0)


def name_of(declared: Declared | type[Declared]) -> str:
    """Name of an edit or a pass, such as ``set-attribute``."""
    return str(declared.__struct_config__.tag)


def non_default_parameters(declared: Declared) -> dict[str, Any]:
    """Parameters that differ from their defaults and all required ones, by name, in the order of the declaration."""
    given = {}
    for parameter in parameters(type(declared)):
        value = getattr(declared, parameter.field)
        if parameter.required or not same_value(plain_value(value), plain_value(parameter.default)):
            given[parameter.name] = value
    return given


def parameter_error(declared: Declared | type[Declared], name: str, mistake: ValueMistakeError) -> ParameterError:
    """Error for a value that does not fit its parameter."""
    path = "".join([f"[{part}]" if isinstance(part, int) else f".{visible(part)}" for part in mistake.path])
    return ParameterError(f"{name}{path}: {mistake}", place=name_of(declared))


def check_expectation(edit: Edit, outcome: Outcome) -> None:
    """Raise unless an edit had the number of matches that it expects.

    Raises:
        EditError: it had more or fewer.
    """
    if edit.expect is not None and edit.expect != outcome.matches:
        matches = f"{outcome.matches:,} match" + ("es" if outcome.matches != 1 else "")
        raise EditError(f"{matches}, but {edit.expect:,} expected; nothing is changed", place=name_of(edit))


def summary(kind: type[Declared]) -> str:
    """First line of the help text of an edit or a pass."""
    return (kind.__doc__ or "").strip().partition("\n")[0]


def paragraphs(kind: type[Declared]) -> str:
    """Help text of an edit or a pass: paragraphs of one line each, separated by empty lines."""
    more = (kind.__doc__ or "").strip().partition("\n")[2]
    blocks = [" ".join(block.split()) for block in more.split("\n\n")]
    return "\n\n".join([summary(kind), *[block for block in blocks if block]])

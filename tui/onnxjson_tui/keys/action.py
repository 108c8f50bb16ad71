"""Declaration of an action: an entry of the table behind keys, palette, footer, help and documentation."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, Literal, NamedTuple, TypeVar

Pane = Literal["everywhere", "nodes", "outline", "inspector", "drawer"]
"""The pane that must have the focus for the keys of an action to work."""

Group = Literal["Move", "Panes", "Find", "Graph", "Edit", "See", "Keep", "Help"]


class Given(NamedTuple):
    """What was typed before and after the keys or the name of an action."""

    number: int | None = None
    """The count before the keys, such as 25 in ``25j``."""
    letter: str = ""
    """The letter after the keys, for actions that expect one, such as ``a`` in ``ma``."""
    text: str = ""
    """The argument after the name on the command line, such as a path in ``:open model.onnx``."""


_Bench = TypeVar("_Bench")
"""The screen that an action runs on."""

Run = Callable[[_Bench, Given], Coroutine[Any, Any, None] | None]


class Action(NamedTuple, Generic[_Bench]):
    """One command of the workbench."""

    id: str
    """Name in the palette, after ``:`` and in the key list."""
    title: str
    """Short description, verb first."""
    keys: tuple[str, ...]
    """Key sequences, keys separated by spaces: ``u``, ``g g``, ``ctrl+s``; the first one is shown first."""
    run: Run[_Bench]
    group: Group
    scope: Pane = "everywhere"
    changes: bool = False
    """Whether it changes the model or a file; a read-only session refuses such actions."""
    takes_letter: bool = False
    """Whether a letter follows the keys."""
    footer: str = ""
    """Label in the footer; "" if the footer does not show the action."""
    help: str = ""
    """Details for the key list, after the title."""
    argument: str = ""
    """Kind of `Given.text`; "" for an action without an argument.

    ``PATH``, ``DIR``, ``SELECTOR``, ``EDIT``, ``PASS``, ``TEXT`` or a literal word; alternatives are separated by
    ``|``, and an optional argument is in brackets: ``[PATH]``, ``in|out``. Tab completes it where possible.
    """

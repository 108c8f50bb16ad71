"""What an action is: one entry of the table that makes keys, palette, footer, help and documentation."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

Pane = Literal["everywhere", "nodes", "outline", "inspector", "drawer"]
"""Where the keys of an action mean it: the pane that has the focus."""

Group = Literal["Move", "Panes", "Find", "Graph", "Edit", "See", "Keep", "Help"]


class Given(NamedTuple):
    """What was typed around the keys of an action."""

    number: int | None = None
    """The number before it, such as 25 in ``25j``."""
    letter: str = ""
    """The letter after it, for actions that take one, such as ``a`` in ``ma``."""
    text: str = ""
    """What stands after its name on the command line, such as a path in ``:open model.onnx``."""


Run = Callable[["Workbench", Given], Coroutine[Any, Any, None] | None]


class Action(NamedTuple):
    """One thing a person can ask for."""

    id: str
    """Its name: in the palette, after ``:``, in the key list."""
    title: str
    """What it does, in a few words."""
    keys: tuple[str, ...]
    """Each a key, or several with spaces between them: ``u``, ``g g``, ``ctrl+s``; the first one is shown first."""
    run: Run
    group: Group
    scope: Pane = "everywhere"
    changes: bool = False
    """Whether it changes the model or a file, and is refused in a session that is read-only."""
    takes_letter: bool = False
    """Whether a letter follows its keys."""
    footer: str = ""
    """A word for the bar at the bottom; "" leaves it out there."""
    help: str = ""
    """More than the title says, for the list of keys."""
    argument: str = ""
    """What `Given.text` is; "" for an action after whose name nothing may stand.

    ``PATH``, ``DIR``, ``SELECTOR``, ``EDIT``, ``PASS``, ``TEXT`` or a word that is typed as it is, several of them with
    ``|`` between them, all in brackets where it may be left out: ``[PATH]``, ``in|out``. Tab completes what it can.
    """

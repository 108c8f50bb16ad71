"""Copying to the clipboard of the terminal."""

from typing import TYPE_CHECKING, Final

from onnxjson.display import visible
from onnxjson.rendering.tables import size
from onnxjson_tui.action import Action, Given
from onnxjson_tui.actions.editing import require_here
from onnxjson_tui.copies import copies_of, fits_clipboard, write_file
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.screens.choosing import PickerScreen

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


def copy_text(bench: "Workbench", text: str, what: str) -> None:
    """Sends a text to the clipboard of the terminal, or to a file where it is too big, and says so.

    Args:
        bench: where it is said.
        text: any text; never shown as it is.
        what: what it is, for the message. Visible.
    """
    if fits_clipboard(text):
        # Lone surrogates are bytes that no clipboard takes.
        bench.app.copy_to_clipboard(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        bench.say(f"{what} sent to the terminal's clipboard, which says nothing back", "good")
        return
    path = write_file(text)
    count = size(len(text.encode("utf-8", "surrogateescape")))
    bench.say(f"{what} is too big for a clipboard ({count}); it is in {path}", "changed")


async def copy(bench: "Workbench", given: Given) -> None:
    """Offers what can be copied of the node."""
    ref = require_here(bench)
    found = {each.key: each for each in copies_of(bench.session.index, ref)}
    if given.text in found:
        chosen: str | None = given.text
    else:
        choices = [Choice(each.key, each.label, visible(each.text, 300)) for each in found.values()]
        chosen = await bench.app.push_screen_wait(PickerScreen("Copy", choices, is_wide=True))
    if chosen is not None:
        copy_text(bench, found[chosen].text, found[chosen].label)


ACTIONS: Final = (
    Action(
        "copy", "copy a name, the JSON, the command ...", ("y",), copy, "Edit", footer="copy",
        argument="[name|selector|address|json|command]",
    ),
)  # fmt: skip

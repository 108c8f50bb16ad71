"""``onnxjson passes``: what ``onnxjson optimize`` can run."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from onnxjson.cli import output, paging
from onnxjson.errors import ParameterError

if TYPE_CHECKING:
    from onnxjson.passes.listing import Entry

_WIDEST: Final = 100


class _Name(click.ParamType[str]):
    """The name of a pass."""

    name = "name"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin alike."""
        from onnxjson.passes.spelling import all_names

        return [CompletionItem(name) for name in all_names() if name.startswith(incomplete)]


@click.command("passes")
@click.argument("name", required=False, type=_Name())
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects, parts and edits among them.")
def command(name: str | None, *, as_json: bool) -> None:
    """List the passes, or say what one of them takes.

    \b
    onnxjson passes
    onnxjson passes onnxsim
    onnxjson passes --json
    """
    from onnxjson.passes.listing import as_json as entry_as_json
    from onnxjson.passes.listing import entries
    from onnxjson.rendering.pass_list import details, overview

    known = entries()
    found = known if name is None else [_named(name, known)]
    if as_json:
        output.Stdout().write(f"{json.dumps([entry_as_json(entry) for entry in found], indent=2)}\n".encode())
        return
    width = paging.width(_WIDEST)
    if name is None:
        lines = overview(known, width)
    else:
        parts = [entry for entry in known if entry.kind == "part" and entry.name.startswith(f"{name}:")]
        lines = details(found[0], parts, width)
    for line in lines:
        output.data(line)


def _named(name: str, known: "Sequence[Entry]") -> "Entry":
    from onnxjson.passes.declaration import near

    for entry in known:
        if entry.name == name:
            return entry
    hint = near(name, [entry.name for entry in known]) or "`onnxjson passes` shows all"
    raise ParameterError(f"there is no pass {output.quoted(name)}; {hint}")

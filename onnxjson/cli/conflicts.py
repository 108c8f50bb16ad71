"""``onnxjson conflicts``: what a merge left to decide."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from onnxjson.cli import failures, output
from onnxjson.cli.paths import FilePath
from onnxjson.display import visible
from onnxjson.errors import ConflictError, OnnxJsonError

if TYPE_CHECKING:
    from onnxjson.conflicts import Conflict
    from onnxjson.git.unmerged import Unmerged

_WIDEST: Final = 160
"""Characters of a value that are shown."""


@click.command("conflicts")
@click.argument("paths", metavar="[FILE]...", nargs=-1, type=FilePath())
@click.option("--json", "as_json", is_flag=True, help="Print an array of conflicts, values as text, long ones cut.")
@click.pass_context
def command(ctx: click.Context, paths: tuple[Path, ...], *, as_json: bool) -> None:
    """List the conflicts of merges, and what each side has.

    Without FILE, looks at the models of the git repository around the current folder that git has not merged yet, and
    says of those without conflicts what happened and what to do. Exits 16 while there are any.

    \b
    onnxjson conflicts
    onnxjson conflicts m.onnx
    """
    from onnxjson import files

    code = 0
    found: list[dict[str, Any]] = []
    models, others = (paths, []) if paths else _unmerged()
    for path in models:
        try:
            standing = files.load(path, bind=False, conflicted=True).conflicts
        except OnnxJsonError as error:
            code = failures.report(error)
            continue
        if standing:
            code = code or ConflictError.exit_code
        if as_json:
            found += [{"file": str(path), "id": each.id, "at": each.at, **_texts(each)} for each in standing]
        else:
            listed(path, standing)
    for left in others:
        code = code or ConflictError.exit_code
        if as_json:
            found.append({"file": str(left.path), "state": left.state, "what": left.what, "advice": left.advice})
        else:
            output.data(f"{left.path}: git has not merged it ({left.state}): {left.what}")
            output.data(f"       {left.advice}")
    if as_json:
        output.Stdout().write((json.dumps(found, indent=1) + "\n").encode("ascii"))
    ctx.exit(code)


def _unmerged() -> "Unmerged":
    """The models of the repository with conflicts, and those that git has not merged for another reason."""
    from onnxjson.git.unmerged import unmerged

    return unmerged(Path.cwd())


def listed(path: Path, conflicts: Sequence["Conflict"]) -> None:
    """Print the conflicts of one file."""
    if not conflicts:
        output.data(f"{path}: no conflicts")
        return
    count = len({conflict.id for conflict in conflicts})
    output.data(f"{path}: {output.counted(count, 'conflict')}")
    for conflict in conflicts:
        output.data(f"  {visible(conflict.id)}  {visible(conflict.at, None) or 'the whole model'}")
        for side, text in _texts(conflict).items():
            output.data(f"       {side:6}  {text}")


def _texts(conflict: "Conflict") -> dict[str, str]:
    """What each side has, on one line."""
    from onnxjson.conflicts import SIDES
    from onnxjson.merging.storing import value_text

    texts = {side: value_text(conflict, side) for side in SIDES}
    return {side: "nothing" if text is None else visible(text, _WIDEST) for side, text in texts.items()}

"""``onnxjson merge``, ``conflicts``, ``resolve`` and ``mergetool``: merge two changes of one model."""

import importlib
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click

from onnxjson.cli import failures, options, output, reports
from onnxjson.cli.paths import FilePath, open_side
from onnxjson.codecs.wire_reading import sharing_graphs
from onnxjson.git.unmerged_models import unmerged
from onnxjson.merging.conflict_text import conflict_lines, headline, side_values
from onnxjson.merging.conflicted_files import errors_of, open_session, recovery_hint, save
from onnxjson.merging.merge import merge
from onnxjson.merging.resolving import resolve
from onnxjson.model.addresses import Choice
from onnxjson.model.conflicts import Conflict, ConflictError
from onnxjson.model.document import Model
from onnxjson.model.errors import Finding, OnnxJsonError, SelectorError
from onnxjson.running import checking
from onnxjson.storage import files

_SCREEN: Final = "onnxjson_tui.workbench.start"
"""The screen of ``mergetool``, by its name: the terminal program imports the command line, not the other way round."""


@options.command("merge")
@reports.with_json
@click.argument("base", metavar="BASE", type=FilePath())
@click.argument("ours", metavar="OURS", type=FilePath())
@click.argument("theirs", metavar="THEIRS", type=FilePath())
@options.out("Write the merged model to OUT, replacing an existing file.", required=True)
@click.pass_context
def merge_command(ctx: click.Context, base: Path, ours: Path, theirs: Path, *, destination: Path) -> None:
    """Merge two changed versions of a model, node by node.

    BASE is the common ancestor; each model is a file or REV:path. Nodes are matched by structure, so one side may have
    renamed everything. Exits 0 if there are no conflicts, else 16: OUT is then a text with every conflict and the
    values of all sides.

    \b
    onnxjson merge base.onnx ours.onnx theirs.onnx -o merged.onnx
    onnxjson merge main~3:m.onnx main:m.onnx topic:m.onnx -o m.onnx
    """
    with ExitStack() as stack:
        with sharing_graphs():
            sides = [stack.enter_context(open_side(path, bind=True)).model for path in (base, ours, theirs)]
        with output.working("merging"):
            merged = merge(*sides)
        with output.writing(destination, merged.model):
            save(merged.model, merged.conflicts, destination, files.format_for(destination))
    if merged.is_clean:
        output.wrote(destination)
        return
    reports.show(_lines(destination, merged.model, merged.conflicts), pager=False)
    ctx.exit(ConflictError.exit_code)


@options.command("conflicts")
@click.argument("paths", metavar="[MODEL]...", nargs=-1, type=FilePath())
@reports.view_options("text", "json")
@click.pass_context
def conflicts_command(ctx: click.Context, paths: tuple[Path, ...], *, view: reports.View) -> None:
    """List the conflicts of merges, with the values of each side.

    Without MODEL, lists all unmerged models of the git repository; for a model without recorded conflicts, shows its
    state and what to do. Exits 16 if there are conflicts.

    \b
    onnxjson conflicts
    onnxjson conflicts m.onnx
    """
    code = 0
    objects: list[dict[str, Any]] = []
    lines: list[str] = []
    models, others = (paths, []) if paths else unmerged(Path.cwd())
    for path in models:
        try:
            loaded = files.load(path, bind=False, conflicted=True)
        except OnnxJsonError as error:
            code = failures.report_failure(error)
            continue
        if conflicts := loaded.conflicts:
            code = code or ConflictError.exit_code
        objects += [{"file": str(path), "id": each.id, "at": each.at, **side_values(each)} for each in conflicts]
        lines += _lines(path, loaded.model, conflicts)
    for left in others:
        code = code or ConflictError.exit_code
        objects.append({"file": str(left.path), "state": left.state, "what": left.what, "advice": left.advice})
        lines += [f"{left.path}: not merged by git ({left.state}): {left.what}", f"       {left.advice}"]
    if view.form == "json":
        view.write_objects(objects)
    else:
        view.show(map(output.line, lines))
    ctx.exit(code)


def _lines(path: Path, model: Model, conflicts: Sequence[Conflict]) -> list[str]:
    if not conflicts:
        return [f"{path}: no conflicts"]
    return [f"{path}: {headline(conflicts)}", *conflict_lines(model, conflicts)]


@options.command("resolve")
@reports.with_json
@click.argument("path", metavar="MODEL", type=FilePath())
@options.option("--ours", "Use the values of ours.", "choice", flag_value="ours")
@options.option("--theirs", "Use the values of theirs.", "choice", flag_value="theirs")
@options.option("--base", "Use the values of the common ancestor.", "choice", flag_value="base")
@options.several("--id N", "Resolve only this conflict; can be repeated.", "ids")
@click.pass_context
def resolve_command(ctx: click.Context, path: Path, *, choice: Choice | None, ids: tuple[str, ...]) -> None:
    """Resolve conflicts of a merge by choosing one side.

    Without --id, resolves all. When no conflict is left, writes MODEL as a binary or a text, by its extension; then
    run `git add`. Keeps a backup; `onnxjson undo-save` restores it. Choices can depend on each other: if the resolved
    model has errors, it is still written, and the exit code is 1.

    \b
    onnxjson resolve m.onnx --theirs
    onnxjson resolve m.onnx.json --ours --id 2 --id 3
    """
    if choice is None:
        raise click.UsageError("choose a side: --ours, --theirs or --base")
    with output.reading(path):
        loaded = files.load(path, bind=False, conflicted=True)
    if not loaded.conflicts:
        raise SelectorError(f"{path} has no conflicts")
    output.findings(loaded.warnings, limit=output.SHOWN)
    model, left = resolve(loaded.model, loaded.conflicts, choice, ids or None)
    form = files.format_for(path)
    if form != "json" and not left:
        model = files.bind_digests(model, folder=path.resolve().parent, weights_from=None)
    with checking.of_failed_writing(path, loaded), output.writing(path, model):
        save(model, left, path, form, expect=loaded.identity, backup=True)
    left_ids = {conflict.id for conflict in left}
    resolved = headline([conflict for conflict in loaded.conflicts if conflict.id not in left_ids])
    if left:
        output.talk(
            f"resolved {resolved} of {path}; {len(left_ids):,} left: onnxjson conflicts {path}; {output.undo(path)}"
        )
        return
    errors = checking.located(path, files.load(path, bind=False)._replace(model=model), list(errors_of(model)))
    if errors:
        _report_errors(path, errors, f"resolved {resolved} of {path}")
        ctx.exit(1)
    output.talk(f"resolved {resolved} of {path}, now a valid model ({output.size(path)}); {output.undo(path)}")


@options.command("mergetool")
@click.argument("paths", metavar="[BASE OURS THEIRS] MODEL", nargs=-1, required=True, type=FilePath())
@click.pass_context
def mergetool_command(ctx: click.Context, paths: tuple[Path, ...]) -> None:
    """Resolve the conflicts of a merge one by one, in the terminal.

    After `onnxjson git install`, start it from git: git mergetool -t onnxjson. If MODEL has no recorded conflicts,
    because another driver merged it, the three sides are merged first. Without a terminal, lists the conflicts. Exits
    0 if no conflict is left in MODEL, 16 if some are, and 1 if the resolved model has errors.

    \b
    git mergetool -t onnxjson m.onnx
    onnxjson mergetool m.onnx
    """
    if len(paths) not in (1, 4):
        raise click.UsageError("name the file with conflicts, or base, ours, theirs and the file")
    path = paths[-1]
    with output.reading(path):
        resolution = open_session(path, (paths[0], paths[1], paths[2]) if len(paths) == 4 else None)
    if resolution.conflicts and output.is_terminal(sys.stdin) and output.is_terminal(sys.stdout):
        importlib.import_module(_SCREEN).resolve(resolution)
        if resolution.errors:
            _report_errors(resolution.path, resolution.errors, f"resolved all conflicts of {resolution.path}")
    elif resolution.conflicts:
        reports.show(_lines(path, resolution.model, resolution.left))
        output.talk(f"there is no terminal to ask on; resolve them with: onnxjson resolve {path}")
    elif not resolution.is_changed:
        output.talk(f"{resolution.path} has no conflicts")
    else:
        resolution.save()
        what = f"merged {resolution.path} without conflicts"
        if resolution.errors:
            _report_errors(resolution.path, resolution.errors, what)
        else:
            output.talk(f"{what} ({output.size(resolution.path)})")
    ctx.exit(resolution.exit_code)


def _report_errors(path: Path, errors: Sequence[Finding], what: str) -> None:
    """Report that a file was written and has errors, and how to restore it."""
    output.findings(errors, limit=output.SHOWN)
    output.talk(f"{what}; the file is written, and has {output.counted(len(errors), 'error')}: {recovery_hint(path)}",
                always=True)  # fmt: skip

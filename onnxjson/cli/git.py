"""``onnxjson git``: git set up for models, and checks for its hooks."""

import sys
from pathlib import Path
from typing import Final

import click

from onnxjson.cli import failures, options, output, reports
from onnxjson.cli.paths import FilePath
from onnxjson.codecs.tensor_text import payloads
from onnxjson.diffing.unified import digest_text
from onnxjson.git import installation
from onnxjson.git.installation import SettingsScope
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.payloads import Digest
from onnxjson.storage import files

_INLINE_LIMIT: Final = 64 * 1024

_scope = options.together(*[
    click.option(f"--{name}", "scope", flag_value=name, default="local", help=text)
    for name, text in (
        ("local", "For this repository; the default."),
        ("global", "For all repositories of the user."),
        ("worktree", "For this work tree only."),
    )
])  # fmt: skip


@options.group("git")
def git_command() -> None:
    """Set up git to diff and merge models.

    `install` configures git to show and merge .onnx and .onnx.json, `uninstall` reverts that, `doctor` checks the
    setup. The other commands are for hooks.

    \b
    onnxjson git install
    git log -p model.onnx
    git onnxdiff main -- model.onnx
    """


@git_command.command("install")
@_scope
def install(scope: SettingsScope) -> None:
    """Set up git to show and merge models.

    Writes git settings and a marked block in .gitattributes, after testing them. A second run changes nothing.

    \b
    onnxjson git install
    """
    place = installation.target_of(scope)
    with output.working("testing the setup"):
        messages = installation.install(place, sys.executable)
    for text in messages or ["already installed; nothing to do"]:
        output.talk(text)


@git_command.command("uninstall")
@_scope
def uninstall(scope: SettingsScope) -> None:
    """Remove what `install` wrote, and nothing else.

    \b
    onnxjson git uninstall
    """
    for text in installation.uninstall(installation.target_of(scope)) or ["not installed; nothing to do"]:
        output.talk(text)


@git_command.command("doctor")
@reports.view_options("text", "json")
@click.pass_context
def doctor(ctx: click.Context, *, view: reports.View) -> None:
    """Check the setup of git; exit 1 if something does not work.

    \b
    onnxjson git doctor
    """
    with output.working("testing the setup"):
        diagnoses = list(installation.diagnose(Path.cwd(), sys.executable))
    if view.form == "json":
        view.write_objects([{"ok": each.is_well, "text": each.text} for each in diagnoses])
    else:
        view.show([output.line(f"{'ok ' if each.is_well else 'BAD'} {each.text}") for each in diagnoses])
    ctx.exit(0 if all(each.is_well for each in diagnoses) else 1)


@git_command.command("check-sync")
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=FilePath())
@click.pass_context
def check_sync(ctx: click.Context, paths: tuple[Path, ...]) -> None:
    """Check that m.onnx and m.onnx.json are the same model; exit 1 if not.

    Name either of them or both; a file without its counterpart passes.

    \b
    onnxjson git check-sync m.onnx
    """
    code = 0
    for binary, text in dict.fromkeys(map(_pair_of, paths)):
        try:
            with output.working(f"comparing {binary} and {text}"):
                # Missing weights are compared by their SHA-256.
                if not (binary.is_file() and text.is_file()) or _digests(binary) == _digests(text):
                    continue
        except OnnxJsonError as error:
            code = failures.leave_or_report(text, error) or code
            continue
        hint = f"onnxjson diff {binary} {text} shows how, onnxjson convert writes one from the other"
        output.data(f"{binary} and {text} differ: {hint}")
        code = code or 1
    ctx.exit(code)


@git_command.command("check-inline")
@click.argument("paths", metavar="MODEL...", nargs=-1, required=True, type=FilePath())
@options.option("--limit SIZE", "Size of the largest tensor allowed in a text.", default=_INLINE_LIMIT)
@click.pass_context
def check_inline(ctx: click.Context, paths: tuple[Path, ...], *, limit: int) -> None:
    """Check that texts contain no large weights as base64; exit 1 if some do.

    \b
    onnxjson git check-inline m.onnx.json --limit 1M
    """
    code = 0
    for path in output.numbered(paths):
        try:
            with output.reading(path):
                weight_sizes = _inline_weights(path, limit)
        except OnnxJsonError as error:
            code = failures.leave_or_report(path, error) or code
            continue
        if weight_sizes:
            what = f"{output.counted(len(weight_sizes), 'tensor')}, {sum(weight_sizes):,} bytes"
            hint = "write it again: onnxjson convert MODEL.onnx --weights blobs"
            output.data(f"{path} contains large weights ({what}); {hint}")
            code = code or 1
    ctx.exit(code)


def _pair_of(path: Path) -> tuple[Path, Path]:
    binary = path.with_name(path.name.removesuffix(".json")) if path.name.endswith(".onnx.json") else path
    return binary, binary.with_name(f"{binary.name}.json")


def _digests(path: Path) -> bytes:
    return digest_text(files.load(path, bind=False).model)


def _inline_weights(path: Path, limit: int) -> list[int]:
    """Return the sizes, above `limit`, of the tensors that a text contains as base64, in bytes; none for a binary."""
    loaded = files.load(path, bind=False)
    if loaded.format == "onnx":
        return []
    sizes = (len(data) for data, _ in payloads(loaded.model) if not isinstance(data, Digest))
    return [size for size in sizes if size > limit]

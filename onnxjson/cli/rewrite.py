"""``onnxjson rewrite``: one edit, applied to one or many models; the command of an edit comes from its declaration."""

import os
import re
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from onnxjson.cli import changing, options, output
from onnxjson.cli.overview import written
from onnxjson.cli.paths import KNOWN_ENDINGS, FilePath, Words, path_of
from onnxjson.editing.applying import run
from onnxjson.editing.catalogue import EDITS, NAMES, edit_named
from onnxjson.editing.declaration import Edit, name_of, paragraphs, positional, summary
from onnxjson.editing.parameters import Parameter, parameters
from onnxjson.editing.script import parse_edit
from onnxjson.editing.spelling import SHIELD, build, click_option, option_of, spell_words, texts_of, usage
from onnxjson.editing.values import plain_value, write_value
from onnxjson.model.errors import OnnxJsonError, ParameterError
from onnxjson.optimizing.passes.catalogue import pass_meant
from onnxjson.storage.external_files import files_written
from onnxjson.storage.files import Loaded

_NEGATIVE: Final = re.compile(r"-[0-9.]\S*|-Infinity")

_WIDTH: Final = 22


class _Words(Words):
    """Models, then the values of an edit; values with a fixed set of words are completed."""

    def __init__(self, edit: type[Edit]) -> None:
        self.edit = edit

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        words = ctx.params.get("words") or ()
        values = positional(self.edit)[len(words) - _count_of_models(words, 0) :] if words else []
        choices = values[0].shape.choices if values else ()
        found = [CompletionItem(word) for word in choices if word.startswith(incomplete)]
        return found or super().shell_complete(ctx, param, incomplete)


class EditCommand(options.Command):
    """The command of one edit."""

    def __init__(self, edit: type[Edit]) -> None:
        self.edit = edit
        self.parameters = parameters(edit)
        common = changing.request_options({option_of(each) for each in self.parameters})
        arguments = click.Argument(["words"], nargs=-1, type=_Words(edit), metavar=_arguments(edit))
        params = [arguments, *map(_option, self.parameters), *click.command()(common(lambda: None)).params]
        about = "\n".join([paragraphs(edit), "", "\b", *_examples(edit)])
        super().__init__(name_of(edit), params=params, callback=self._run, help=about, short_help=summary(edit))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`; without any argument prints the help."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(2)
        if {"--output", "-o"} <= {*args} and "--outputs" in map(option_of, self.parameters):
            raise click.UsageError("--output and -o both name the file to write; write --outputs for the values", ctx)
        # A value may be a negative number, which is not an option.
        return super().parse_args(ctx, [SHIELD + each if _NEGATIVE.fullmatch(each) else each for each in args])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the parameters of the edit, then the options of all edits."""
        if self.parameters:
            with formatter.section("Parameters"):
                formatter.write_dl([_described(each) for each in self.parameters])
        own = {f"parameter_{each.field}" for each in self.parameters}
        options.write_options(ctx, formatter, [each for each in self.get_params(ctx) if each.name not in own])

    def _run(self, words: Sequence[str], **given: Any) -> None:
        words = [word.removeprefix(SHIELD) for word in words]
        texts = texts_of(self.edit, given)
        missing = sum(each.required and each.name not in texts for each in positional(self.edit))
        paths = words[: _count_of_models(words, missing)]
        if not paths:
            wanted = f"write onnxjson rewrite {self.name} {_arguments(self.edit)}"
            if words and _looks_like_model(words[0]):
                raise click.UsageError(
                    f"{output.counted(missing, 'parameter')} needed, {len(words) - 1} given; {wanted}"
                )
            raise click.UsageError(f"no model is named; {wanted}")
        if not _looks_like_model(words[0]) and (models := [word for word in words if _looks_like_model(word)]):
            ordered = shlex.join([*models, *[word for word in words if word not in models]])
            raise click.UsageError(f"the model comes first: onnxjson rewrite {self.name} {ordered}")
        try:
            edit = build(self.edit, texts, words[len(paths) :])
        except ParameterError as error:
            if usage(self.edit) in error.sentence:
                error.hint = f"for example: {_examples(self.edit)[-1]}"
            raise
        request = changing.request(tuple(map(path_of, paths)), given)

        def change(path: Path, loaded: Loaded) -> changing.Changed:
            try:
                result = run(loaded.model, edit, folder=Path(), model_folder=path.parent)
            except OnnxJsonError as error:
                error.args = (self._with_options(error.sentence),)
                raise
            notes = tuple([self._with_options(note) for outcome in result.outcomes for note in outcome.notes])
            is_part = self.name == "extract"
            write = partial(files_written, result.new_files())
            return changing.Changed(result.model, notes, write, is_part)

        click.get_current_context().exit(changing.run(request, change))

    def _with_options(self, text: str) -> str:
        """Return a message with the options of the parameters that it names, as in `axis`."""
        named = {f"`{each.name}`": f"`{option_of(each)}`" for each in self.parameters}
        return re.sub(r"`\w+`", lambda found: named.get(found[0], found[0]), text)


class RewriteGroup(options.Group):
    """The edits as commands, built when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all edits."""
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an edit."""
        return EditCommand(NAMES[cmd_name]) if cmd_name in NAMES else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of edits."""
        with formatter.section("Edits"):
            formatter.write_dl([(name, summary(edit)) for name, edit in NAMES.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Group.parse_args`; options of an edit come after its name."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            text = f"{error.option_name} follows the edit: onnxjson rewrite EDIT MODEL... {error.option_name}"
            raise click.UsageError(text, ctx) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The edit that `args` begin with; the error for an unknown name suggests the nearest one."""
        if args[0] not in NAMES and args[0].endswith((".json", ".py")):
            raise click.UsageError(f"`onnxjson apply` applies scripts: onnxjson apply {shlex.join(args)}", ctx)
        if len(args) > 1 and args[1] in NAMES and args[0] not in NAMES:
            ordered = shlex.join([args[1], args[0], *args[2:]])
            raise click.UsageError(f"the edit comes before the model: onnxjson rewrite {ordered}", ctx)
        if args[0] not in NAMES and _looks_like_model(args[0]):
            raise click.UsageError(
                f"the edit comes before the model: onnxjson rewrite EDIT {shlex.join(args[:1])}", ctx
            )
        values = [word for word in args[1:] if word[:1] != "-" and not _looks_like_model(word)]
        words = [args[0], *values[:1]] if len(values) == 1 else [args[0]]  # `cast m.onnx float16` is for all tensors
        passes = [name for word in words if args[0] not in NAMES and (name := pass_meant(word))]
        if passes:
            line = written(f"onnxjson optimize MODEL -p {passes[0]} -o OUT", args[1:])
            raise click.UsageError(f"{args[0]} is not an edit; write `{line}`", ctx)
        if not args[0].startswith("-"):
            edit_named(args[0])
        return super().resolve_command(ctx, args)


@click.command(
    "rewrite",
    cls=RewriteGroup,
    invoke_without_command=True,
    subcommand_metavar="EDIT MODEL... [VALUE]... (-o OUT | -i | --dry-run)",
)
@options.option("--list", "List the edits with their summaries.", "list_")
@click.pass_context
def rewrite_command(ctx: click.Context, *, list_: bool) -> None:
    """Apply one edit to one or many models.

    An edit keeps everything that it does not change, byte for byte; an edit that would make the model invalid is
    refused, with the reason. `onnxjson rewrite EDIT --help` shows the parameters of an edit; `onnxjson apply` runs
    scripts of several edits.

    \b
    onnxjson rewrite set-attribute m.onnx op:Conv pads '[0,0,0,0]' -o new.onnx
    onnxjson rewrite set-attribute m.onnx op:Conv group 1 --dry-run
    onnxjson rewrite remove-attribute models/*.onnx op:Conv auto_pad -i
    """
    if list_:
        for edit in EDITS:
            output.data(f"{name_of(edit):<{_WIDTH}}  {summary(edit)}")
        ctx.exit(0)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _count_of_models(words: Sequence[str], missing: int) -> int:
    """Return the number of words that are models: all leading ones that look like models, unless needed as values."""
    most = max(0, len(words) - missing)
    return next((place or 1 for place, word in enumerate(words[:most]) if not _looks_like_model(word)), most)


def _looks_like_model(word: str) -> bool:
    """Whether a word names a file, or would by its ending."""
    return os.path.lexists(word) or "://" in word or word.lower().endswith(KNOWN_ENDINGS)


def _arguments(edit: type[Edit]) -> str:
    words = [each.name.upper() if each.required else f"[{each.name.upper()}]" for each in positional(edit)]
    return " ".join(["MODEL...", *words])


def _option(parameter: Parameter) -> click.Option:
    """The option of a parameter; shells complete names of files."""
    option = click_option(parameter)
    if parameter.role == "file":
        option.type = FilePath()
    return option


def _described(parameter: Parameter) -> tuple[str, str]:
    option = option_of(parameter)
    if parameter.shape.form == "flag":
        name = f"{option} / --no-{option[2:]}" if parameter.default else option
    else:
        name = f"{option} {parameter.metavar}"
    more = []
    if parameter.required:
        more.append("required")
    elif parameter.default is not None and parameter.default is not False and parameter.default not in ((), {}):
        more.append(f"default: {write_value(plain_value(parameter.default))}")
    if parameter.shape.form in ("list", "mapping") and "," not in parameter.metavar:
        more.append("can be repeated")
    return name, parameter.description + (f"  [{'; '.join(more)}]" if more else "")


def _examples(edit: type[Edit]) -> list[str]:
    lines = []
    for example in edit.examples:
        free, named = spell_words(parse_edit(example))
        words = [name_of(edit), "m.onnx", *free, *named, "-o", "new.onnx"]
        lines.append("onnxjson rewrite " + shlex.join(words))
    return lines

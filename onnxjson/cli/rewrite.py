"""``onnxjson rewrite``: one edit, made on one or many models. Every edit is a command, made from its declaration."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from onnxjson.cli import changing, output
from onnxjson.cli.paths import FilePath

if TYPE_CHECKING:
    from onnxjson.edits.declaration import Edit
    from onnxjson.edits.parameters import Parameter
    from onnxjson.files import Loaded

_ENDINGS: Final = (".onnx", ".json", ".onnxjson")
"""What a word ends with that is a model, whether it is there or not."""

_SHIELD: Final = "\0"
"""Stands before a word that only looks like an option; no argument of a program can have it."""

_NEGATIVE: Final = re.compile(r"-[0-9.]\S*|-Infinity")

_WIDTH: Final = 22
"""Columns of the names in the list of edits."""


class EditCommand(click.Command):
    """The command of one edit."""

    def __init__(self, edit: "type[Edit]", summary: str) -> None:
        from onnxjson.edits.declaration import name_of
        from onnxjson.edits.parameters import parameters
        from onnxjson.edits.spelling import option_of

        self.edit = edit
        self.parameters = parameters(edit)
        taken = {option_of(each) for each in self.parameters}
        self.common = changing.options(dry_run=True, long_output="--output" not in taken)
        arguments = click.Argument(["words"], nargs=-1, type=_Words(), metavar=_arguments(edit))
        own = [_option(each) for each in self.parameters]
        super().__init__(
            name_of(edit),
            params=[arguments, *own, *self.common],
            callback=self._run,
            help=summary,
            short_help=summary,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`; without any argument the help is more use than an error."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(2)
        # A value may be a negative number, which is no option.
        return super().parse_args(ctx, [_SHIELD + each if _NEGATIVE.fullmatch(each) else each for each in args])

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the edit does."""
        from onnxjson.edits.forms import paragraphs

        with formatter.indentation():
            for paragraph in paragraphs(self.edit).split("\n\n"):
                formatter.write_paragraph()
                formatter.write_text(paragraph)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The parameters of the edit, then what all edits take, then examples."""
        with formatter.section("Parameters"):
            formatter.write_dl([_described(each) for each in self.parameters])
        with formatter.section("Options"):
            common = [each for each in self.get_params(ctx) if each in self.common or "--help" in each.opts]
            formatter.write_dl([record for each in common if (record := each.get_help_record(ctx))])
        if self.edit.examples:
            with formatter.section("Examples"):
                for line in _examples(self.edit):
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def _run(self, words: Sequence[str], **given: Any) -> None:
        from onnxjson.edits.applying import files_written, run
        from onnxjson.edits.spelling import build, positional

        words = [word.removeprefix(_SHIELD) for word in words]
        texts = _texts(self.parameters, given)
        missing = sum(each.required and each.name not in texts for each in positional(self.edit))
        paths = words[: _count_of_models(words, missing)]
        if not paths:
            raise click.UsageError(f"no model is named; {self.collect_usage_pieces_text()}")
        edit = build(self.edit, texts, words[len(paths) :])
        request = changing.Request(
            tuple(map(Path, paths)),
            given["destination"],
            given["in_place"],
            given["target"],
            given["weights_from"],
            given["dry_run"],
        )
        request.check()

        def change(path: Path, loaded: "Loaded") -> changing.Changed:
            result = run(loaded.model, edit, folder=Path(), model_folder=path.parent)
            notes = tuple([note for outcome in result.outcomes for note in outcome.notes])
            is_part = self.name == "extract"
            return changing.Changed(result.model, notes, lambda place: files_written(result, place), is_part)

        click.get_current_context().exit(changing.run(request, change))

    def collect_usage_pieces_text(self) -> str:
        """How the command is written."""
        return f"it is written onnxjson rewrite {self.name} {_arguments(self.edit)}"


class _Words(click.ParamType[str]):
    """Paths of models, and values of parameters; completed as paths."""

    name = "words"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """See `click.ParamType.shell_complete`."""
        return [CompletionItem(incomplete, type="file")]


class RewriteGroup(click.Group):
    """The edits as commands, made when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all edits."""
        from onnxjson.edits.catalogue import NAMES

        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an edit."""
        from onnxjson.edits.catalogue import NAMES
        from onnxjson.edits.spelling import summary

        edit = NAMES.get(cmd_name)
        return None if edit is None else EditCommand(edit, summary(edit))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of edits."""
        from onnxjson.edits.catalogue import NAMES
        from onnxjson.edits.spelling import summary

        with formatter.section("Edits"):
            formatter.write_dl([(name, summary(edit)) for name, edit in NAMES.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The edit that `args` begin with; a wrong name is answered with the nearest right one."""
        from onnxjson.edits.catalogue import edit_named

        if not args[0].startswith("-"):
            edit_named(args[0])
        return super().resolve_command(ctx, args)


@click.command(
    "rewrite",
    cls=RewriteGroup,
    invoke_without_command=True,
    subcommand_metavar="EDIT MODEL... [PARAMETERS] (-o OUT | -i | --dry-run)",
)
@click.option("--list", "list_", is_flag=True, help="Print every edit with what it does.")
@click.pass_context
def command(ctx: click.Context, *, list_: bool) -> None:
    """Make one edit on one or many models.

    What is not touched stays as it is, byte for byte; an edit that cannot be made without damage is refused, and says
    why. `onnxjson rewrite EDIT --help` says what an edit takes; several edits stand in a script for `onnxjson apply`.

    \b
    onnxjson rewrite set-attribute m.onnx op:Conv pads '[0,0,0,0]' -o new.onnx
    onnxjson rewrite set-attribute m.onnx op:Conv group 1 --dry-run
    onnxjson rewrite remove-attribute models/*.onnx op:Conv auto_pad -i
    """
    if list_:
        from onnxjson.edits.catalogue import EDITS
        from onnxjson.edits.declaration import name_of
        from onnxjson.edits.spelling import summary

        for edit in EDITS:
            output.data(f"{name_of(edit):<{_WIDTH}}  {summary(edit)}")
        ctx.exit(0)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _count_of_models(words: Sequence[str], missing: int) -> int:
    """How many of the words of a command are models: all that stand first, but for parameters that have to be said."""
    most = max(0, len(words) - missing)
    looks = [os.path.lexists(word) or word.lower().endswith(_ENDINGS) for word in words[:most]]
    return looks.index(False) or 1 if False in looks else most


def _arguments(edit: "type[Edit]") -> str:
    """The words of the usage line."""
    from onnxjson.edits.spelling import positional

    words = [each.name.upper() if each.required else f"[{each.name.upper()}]" for each in positional(edit)]
    return " ".join(["MODEL...", *words])


def _option(parameter: "Parameter") -> click.Option:
    """The option of a parameter; its value stays a text until all are known."""
    from onnxjson.edits.spelling import metavar, option_of

    option = option_of(parameter)
    name = f"parameter_{parameter.field}"
    if parameter.shape.form == "flag":
        return click.Option([f"{option}/--no-{option[2:]}", name], default=None, help=parameter.description)
    kind: click.ParamType[Any] = click.STRING
    if parameter.shape.form == "choice":
        kind = click.Choice(parameter.shape.choices)
    elif parameter.role == "file":
        kind = _File()
    return click.Option(
        [option, name], type=kind, multiple=True, metavar=metavar(parameter), help=parameter.description
    )


class _File(FilePath):
    """A path that stays the text it is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.Path.convert`."""
        return str(super().convert(value, param, ctx))


def _texts(parameters: "Sequence[Parameter]", given: dict[str, Any]) -> dict[str, list[str]]:
    """What stands after each option of a parameter that was given."""
    texts: dict[str, list[str]] = {}
    for parameter in parameters:
        value = given[f"parameter_{parameter.field}"]
        if parameter.shape.form == "flag":
            if value is not None:
                texts[parameter.name] = [] if value else ["no"]
        elif value:
            texts[parameter.name] = [each.removeprefix(_SHIELD) for each in value]
    return texts


def _described(parameter: "Parameter") -> tuple[str, str]:
    """An option, and what it is for, with its default."""
    from onnxjson.edits.spelling import metavar, option_of
    from onnxjson.edits.values import plain_value, write_value

    option = option_of(parameter)
    if parameter.shape.form == "flag":
        name = f"{option} / --no-{option[2:]}" if parameter.default else option
    else:
        name = f"{option} {metavar(parameter)}"
    more = []
    if parameter.required:
        more.append("required")
    elif parameter.default is not None and parameter.default is not False and parameter.default not in ((), {}):
        more.append(f"default: {write_value(plain_value(parameter.default))}")
    if parameter.shape.form in ("list", "mapping") and "," not in metavar(parameter):
        more.append("may stand several times")
    return name, parameter.description + (f"  [{'; '.join(more)}]" if more else "")


def _examples(edit: "type[Edit]") -> list[str]:
    """The examples of an edit as commands of a shell."""
    import shlex

    from onnxjson.edits.declaration import name_of
    from onnxjson.edits.script import parse_edit
    from onnxjson.edits.spelling import spell_words

    lines = []
    for example in edit.examples:
        free, options = spell_words(parse_edit(example))
        words = [name_of(edit), "m.onnx", *free, *options, "-o", "new.onnx"]
        lines.append("onnxjson rewrite " + shlex.join(words))
    return lines

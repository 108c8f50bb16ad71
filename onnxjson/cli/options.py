"""Options that several commands have: each is declared once, so that it means the same everywhere.

Help pages come from here too: options in named groups, then the examples.
"""

import difflib
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from onnxjson.cli import output
from onnxjson.cli.paths import DestinationPath, FilePath, Revision

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
FORMS: Final = ("onnx", "json", "protojson")
_GROUPS: Final[dict[str, str]] = {
    "Inputs of the model": "--input --dim --shape --fill --range --seed --samples",
    "Execution": "--level --provider --threads --parallel --session --engine --timeout --memory --max-nodes",
    "Timing": "--repeat --warm-up --profile --profile-events --placement --seconds --tune",
    "Passes": "--pass --recipe --until --skip --keep-going --max-size --variant --preset --score",
    "Comparison": "--ignore --nodes-only --compare-weights --test-rewrites --matches --tolerance --verify --bisect "
    "--locate",
    "Git": "--git --staged --local --global --worktree",
    "Weights": "--weights --blobs --weights-from --internalize --externalize --threshold --tensors --data-file "
    "--shard-size --with-external --trust-links --allow-sparse",
    "Report": "--format --json --verbose --unified --exit-zero --color --no-pager",
    "Output": "-o --in-place --dry-run --to --lossy --drop-orphans --trace --keep",
    "Other options": "--quiet --help",
}
"""The groups of a help page and their options; any other option is in the first group, "Options"."""

_FEW: Final = 6
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

_EXAMPLES: Final = "\b\n"
"""Separates the text of a help page from its examples."""

_QUIET: Final = click.Option(
    ["-q", "--quiet"],
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _param, value: ctx.meta.update({output.QUIET: True} if value else {}),
    help="Print only results, warnings and errors.",
)

_LONGEST: Final = 1_000_000
"""Maximum seconds of a time limit; the system refuses to wait for more than about twice as many."""


class Command(click.Command):
    """A command whose help page has its options in groups and its examples at the end."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """See `click.Command`, which would keep the names of the first context, even for other purposes."""
        return ["-h", "--help"]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """See `click.Command.get_params`; ``-q`` is an option of every command."""
        *declared, help_option = super().get_params(ctx)
        if isinstance(self, click.Group):
            return [*declared, help_option]
        has_verbose = any("--verbose" in each.opts for each in declared)
        return [*declared, *([] if has_verbose else [_VERBOSE]), _QUIET, help_option]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`; an error of an option without its value knows its command, too."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text without the examples."""
        text = inspect.cleandoc(self.help or "").partition(_EXAMPLES)[0].strip()
        with formatter.indentation():
            for paragraph in text.split("\n\n"):
                formatter.write_paragraph()
                formatter.write_text(paragraph)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups; of a group of commands also the commands."""
        write_options(ctx, formatter, self.get_params(ctx))
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(formatter, examples(self))


class Group(Command, click.Group):
    """A group with the page of a command, whose commands have such pages too."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with; the error for another word, or a model, says what to write."""
        word, known = args[0], list(self.commands) or self.list_commands(ctx)
        if not word.startswith("-") and word not in known:
            near = difflib.get_close_matches(word, known, n=3) or known[:3]
            names = " or ".join([f"`{ctx.command_path} {name}`" for name in near])
            shown = output.quoted(word)
            what = f"before {shown} comes what to do:" if os.path.lexists(word) else f"there is no {shown}; write"
            raise click.UsageError(f"{what} {names}", ctx)
        return super().resolve_command(ctx, args)


def examples(command: click.Command) -> list[str]:
    """Return the examples of a command, each a line for a shell."""
    return [line.strip() for line in (command.help or "").partition(_EXAMPLES)[2].splitlines() if line.strip()]


def write_examples(formatter: click.HelpFormatter, lines: Sequence[str]) -> None:
    """Write examples as they are, since a line that is wrapped cannot be copied."""
    if lines:
        with formatter.section("Examples"):
            for line in lines:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def write_options(ctx: click.Context, formatter: click.HelpFormatter, params: Sequence[click.Parameter]) -> None:
    """Write the options in their groups; a few of them in one."""
    declared = [each for each in params if isinstance(each, click.Option)]
    of_group: dict[str, list[tuple[str, str]]] = {group: [] for group in ("Options", *_GROUPS)}
    for option in declared:
        if (record := option.get_help_record(ctx)) is not None:
            groups = [group for group, names in _GROUPS.items() if not set(option.opts).isdisjoint(names.split())]
            of_group[groups[0] if groups and len(declared) > _FEW else "Options"].append(record)
    for group, lines in of_group.items():
        if lines:
            with formatter.section(group):
                formatter.write_dl(lines)


def be_verbose(ctx: click.Context, _param: click.Parameter, value: bool) -> bool:
    """Note that ``--verbose`` is given, which also means how much was read of each URL."""
    ctx.meta[output.VERBOSE] = value
    return value


_VERBOSE: Final = click.Option(
    ["-v", "--verbose"],
    is_flag=True,
    expose_value=False,
    callback=be_verbose,
    hidden=True,
    help="Also print how much was read of each URL.",
)


def group(name: str, **settings: Any) -> Callable[[Callable[..., object]], Group]:
    """Declare a group of commands; see `click.group`."""
    return click.group(name, cls=Group, **settings)


def command(name: str) -> Callable[[Callable[..., object]], Command]:
    """Declare a command; see `click.command`."""
    return click.command(name, cls=Command)


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def gathered(options: Decorator, gather: Callable[..., Any], parameter: str) -> Decorator:
    """Options whose values, given to `gather` by name, reach a command as one parameter."""
    names = [each.name for each in click.command()(options(lambda: None)).params if each.expose_value]

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def called(*positional: Any, **given: Any) -> object:
            values = {name: given.pop(name) for name in names}
            return function(*positional, **given, **{parameter: gather(**values)})

        return options(called)

    return decorate


class Parsed(click.ParamType[Any]):
    """A value that a function parses; `offers` returns the words to complete."""

    def __init__(
        self, name: str, parse: Callable[[str], Any], offers: Callable[[], Iterable[str]] = lambda: ()
    ) -> None:
        self.name = name
        self._parse = parse
        self._offers = offers

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._parse(value) if isinstance(value, str) else value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in self._offers() if word.startswith(incomplete)]


def _parse_size(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,15})([kmg]?)", text.lower(), re.ASCII)
    if not match:
        raise click.BadParameter(f"{output.quoted(text)} is not a size; write bytes, or 4k, 1M, 2G (units of 1024)")
    return int(match[1]) * _UNITS[match[2]]


def _parse_assignment(text: str) -> tuple[str, str]:
    """The name, "" without one, and the value: a name of the model may contain "=", its value does not."""
    name, _, value = text.rpartition("=")
    return name, value


def _parse_named(text: str) -> tuple[str, str]:
    name, value = _parse_assignment(text)
    if not name:
        name, _, value = text.rpartition(":") if "," in text else ("", "", text)
        if not re.search("[0-9]", value):
            raise click.BadParameter(f"{output.quoted(text)} has no value; write {text}=4, with your value for 4")
        raise click.BadParameter(f"{output.quoted(text)} has no name; write {name or 'NAME'}={value.strip('[]')}")
    return name, value


class WordList(Parsed):
    """Words of a list, with commas between them."""

    def __init__(self, words: tuple[str, ...]) -> None:
        super().__init__("words", self._split, lambda: words)
        self.words = words

    def _split(self, text: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in text.split(",") if word.strip())
        for word in words:
            if word not in self.words:
                raise click.BadParameter(f"{output.quoted(word)} is not one of {', '.join(self.words)}")
        return words

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        found = super().shell_complete(ctx, param, last)
        return [CompletionItem(before + comma + each.value) for each in found if each.value not in before.split(",")]


NAMED: Final = Parsed("assignment", _parse_named)
"""A name and a value."""

_TYPES: Final[dict[str | None, click.ParamType[Any]]] = {
    **dict.fromkeys(("FILE", "MODEL"), FilePath()),
    "DIR": DestinationPath(),
    "REV": Revision(),
    "SIZE": Parsed("size", _parse_size),
    **dict.fromkeys(("NAME=N", "NAME=N,...", "DTYPE=REL[,ABS]"), NAMED),
    **dict.fromkeys(("[NAME=]VALUE", "[NAME=]LOW:HIGH"), Parsed("assignment", _parse_assignment)),
}
"""The type of a value by its placeholder in the help."""


def option(spelling: str, text: str, name: str | None = None, **settings: Any) -> Decorator:
    """Declare an option; see `click.option`.

    Args:
        spelling: its names and the placeholder of its value, as in the help: ``-n, --repeat N``. A flag has no value.
        text: its description.
        name: the parameter that receives the value, if not that of its long name.
        settings: see `click.Option`; a default is shown.
    """
    words = [word.rstrip(",") for word in spelling.split()]
    names = [word for word in words if word.startswith("-")]
    metavar = next(iter(words[len(names) :]), None)
    settings = {"type": _TYPES.get(metavar), **settings}
    if metavar is None and settings["type"] is None and "flag_value" not in settings:
        settings["is_flag"] = True
    settings.setdefault("show_default", "default" in settings and not settings.keys() & {"is_flag", "flag_value"})
    return click.option(*names, *([name] if name else []), metavar=metavar, help=text, **settings)


def several(spelling: str, text: str, name: str, **settings: Any) -> Decorator:
    """Declare an option that can be repeated; see `option`."""
    return option(spelling, text, name, multiple=True, **settings)


def renamed(former: str, name: str) -> Decorator:
    """An option under its former name, which is an error that gives the new one."""

    def refuse(_ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(f"{former} is now {name}")

    help_text = f"Former name of {name}."
    return click.option(former, expose_value=False, hidden=True, callback=refuse, metavar="FILE", help=help_text)


def to(text: str = "Format of the file; default: by the extension of OUT.") -> Decorator:
    """``--to``, the form of a model file, as `target`."""
    return option("--to", text, "target", type=click.Choice(FORMS))


def out(text: str, *, parameter: str = "destination", long: bool = True, **settings: Any) -> Decorator:
    """``-o OUT`` as `parameter`; without ``--output`` unless `long` is true."""
    settings = {"metavar": "OUT", "type": DestinationPath(allow_dash=True), **settings}
    return click.option("-o", *(["--output"] if long else []), parameter, help=text, **settings)


weights_from = option("--weights-from MODEL", "Read weights from this model where the text has only their sha256.")

trust = option(
    "--trust",
    "Run your own Python code outside the sandbox, with access to files, network and programs; where no sandbox is "
    "available, also run passes that evaluate text from models.",
)
trust_links = option("--trust-links", "Follow symbolic links to weights if they stay within the folder of the model.")

drop_orphans = option(
    "--drop-orphans", "Drop metadata of elements that no longer exist, and keep that of renamed elements."
)

tolerance = several(
    "--tolerance DTYPE=REL[,ABS]",
    "Elements are equal if |a - b| <= ABS + REL * |a|; DTYPE `all` means every floating-point type.",
    "tolerances",
)


def refuse_endless(_: click.Context, _param: click.Parameter, seconds: Any) -> Any:
    """Return a time limit; raise click.BadParameter if it is too long or no number."""
    if isinstance(seconds, float) and not seconds <= _LONGEST:
        raise click.BadParameter(f"{seconds:g} is not a time limit of at most {_LONGEST:,} seconds")
    return seconds


def _allow(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Record a limit that the user chose; defaults of options apply only to the runs or passes of their command."""
    refuse_endless(ctx, param, value)
    if value is not None and ctx.get_parameter_source(param.name or "") is not ParameterSource.DEFAULT:
        from onnxjson.running.worker_protocol import ALLOWED

        token = ALLOWED.set({**ALLOWED.get(), param.opts[0]: value})
        ctx.call_on_close(lambda: ALLOWED.reset(token))
    return value


max_nodes = option(
    "--max-nodes N",
    "Maximum nodes after expanding functions; default: 500,000, or 20,000 to run a model.",
    type=click.IntRange(1),
    expose_value=False,
    callback=_allow,
)

timeout = functools.partial(option, "--timeout SECONDS", type=click.FloatRange(min=0.1), callback=_allow)

memory = functools.partial(option, "--memory SIZE", callback=_allow)

limits_of_analysis = together(
    max_nodes,
    timeout("Time limit of each analysis by onnx; default: 30, with at most 20 of CPU time.", expose_value=False),
    memory(
        "Memory limit of each analysis by onnx (address space); raised to four times the size of the model if that is "
        "more. Default: 2G.",
        expose_value=False,
    ),
)
"""For commands without runs and passes; runs and passes have ``--timeout`` and ``--memory`` with their own defaults."""


def _sizes(_: click.Context, _param: click.Parameter, dims: tuple[tuple[str, str], ...]) -> dict[str, int]:
    for name, text in dims:
        if not re.fullmatch("[0-9]{1,18}", text, re.ASCII):
            raise click.UsageError(f"--dim {output.quoted(name)} has the size {output.quoted(text)}; write a number")
    return {name: int(text) for name, text in dims}


dims = several("--dim NAME=N", "Size of a named dimension, to compute the cost.", "dims", callback=_sizes)
"""``--dim``, sizes by name, as `dims`."""

samples = functools.partial(
    option, "--samples N", "Number of random inputs to compare on.", type=click.IntRange(1, 10_000), default=3
)


repeat = functools.partial(option, "-n, --repeat N", "Number of timed runs.", type=click.IntRange(0, 1_000_000))

warm_up = functools.partial(
    option, "--warm-up N", "Number of runs before timing starts.", type=click.IntRange(0, 10_000)
)

"""``onnxjson fleet``: a command over thousands of models, on this machine or on a cluster."""

import importlib
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, Final

import click

from onnxjson.cli import options
from onnxjson.cli.fleet_run import IN_PLACE, FleetRun
from onnxjson.cli.rewrite import rewrite_command

_SUMMARIES: Final = {
    "show": "Show a summary of each model.",
    "cost": "Show the cost of each model.",
    "check": "Check models for errors, and against rules and budgets.",
    "find": "Find what matches a pattern of operators.",
    "convert": "Convert models to another format.",
    "fmt": "Convert model texts to their canonical form.",
    "rewrite": "Apply one edit.",
    "apply": "Apply a patch or a script of edits.",
    "optimize": "Run optimizers; report what each one changed.",
    "run": "Run models.",
    "bench": "Measure models.",
    "verify": "Compare the outputs with those of the models in another folder.",
    "diff": "Show what changed between the models of two folders.",
    "duplicates": "Find equal models, equal structures and equal weights.",
}
"""The commands of a fleet; all but two have the name of the command that they run."""

_EXAMPLES: Final = {
    "show": "models -o rows.jsonl",
    "cost": "'models/**/*.onnx' --dim N=1 -o costs.html",
    "check": "'models/**/*.onnx' --policy policy.toml -j 2",
    "find": "models 'Softmax($x)' -o rows.parquet",
    "convert": "models --to json -o texts",
    "fmt": "'models/**/*.onnx.json' --check",
    "rewrite": "set-batch-size models --size N -o changed",
    "apply": "rewrite.json models -o changed",
    "optimize": "models -p onnxsim -o small -o report.html",
    "run": "models --timeout 60 -o rows.jsonl",
    "bench": "models --preset baseline -o bench.html",
    "verify": "release-1 release-2 -o outputs.jsonl",
    "diff": "release-1 release-2 -o changes.jsonl -o changes.html",
    "duplicates": "models --json",
}

_WORDS: Final = {
    "find": "MODELS... PATTERN",
    "rewrite": "EDIT MODELS...",
    "apply": "CHANGE MODELS...",
    "verify": "OLD NEW",
    "diff": "OLD NEW",
}


_HERE: Final = (
    "-o --output -i --in-place --dry-run --timeout --memory --json --format --trace --quiet --help "
    "--with-external --keep --profile-events --explain"
)
"""Options that the fleet has itself, or that have no meaning for one model of many."""


_TOKENS: Final = "onnxjson.cli.fleet.tokens"
"""Key under which a context keeps the options of the command that is run."""

_own_options: Final = options.together(
    options.several(
        "-o, --output OUT",
        "A .jsonl or .parquet file gets one row for each model, and resumes an interrupted run; a .md, .html, .json "
        "or .txt file gets the summary; a folder gets the models. Can be repeated.",
        "outputs",
        type=click.Path(path_type=Path),
    ),
    options.option("--json", "Print the summary as JSON."),
    options.renamed("--out", "-o"),
    options.renamed("--report", "-o"),
    options.option("-j, --jobs N", "Number of workers; default: one for each core.", type=click.IntRange(1, 512)),
    options.option("--scheduler URL", "Use a Dask cluster, such as tcp://host:8786, instead of this machine."),
    options.timeout("Time limit of one model.", default=600.0, callback=options.refuse_endless),
    options.option(
        "--memory SIZE", "Memory limit of one model (address space); default: its share of this machine, at least 4G."
    ),
    options.option("--failures N", "Stop after more than N models have failed.", type=click.IntRange(0)),
    options.option("--retry-failed", "When resuming, also retry models that failed."),
)


class FleetCommand(options.Command):
    """One command of a fleet: the options of the command that it runs, and those of the fleet."""

    def __init__(self, name: str) -> None:
        words = click.argument("words", metavar=_WORDS.get(name, "MODELS..."), nargs=-1, required=True)
        declared = click.command(name)(_own_options(words(lambda: None)))
        here = options.option("-i, --in-place", "Change the models themselves, and keep a backup of each.")
        traces = options.option("--trace DIR", "Record what each pass changed, in a folder for each model.", "traces")
        more = [here] * (name in IN_PLACE) + [traces] * (name == "optimize")
        extra = click.command()(options.together(*more)(lambda: None)).params if more else []
        about = f"{_SUMMARIES[name]}\n\n\b\nonnxjson fleet {name} {_EXAMPLES[name]}"
        super().__init__(name, params=[*declared.params, *extra], callback=self._run, help=about)

    def _base(self, words: Sequence[str]) -> click.Command | None:
        """The command that is run; the edit for ``rewrite``."""
        if self.name == "rewrite":
            edit = next((word for word in words if not word.startswith("-")), "")
            context = click.Context(rewrite_command)
            return rewrite_command.resolve_command(context, [edit])[1] if edit else None
        if self.name in ("duplicates", None):
            return None
        name = {"cost": "show"}.get(self.name, self.name)
        module = {"fmt": "convert", "verify": "run"}.get(name, name)
        command: click.Command = getattr(importlib.import_module(f"onnxjson.cli.{module}"), f"{name}_command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Sort out which options are those of the command that is run; see `click.Command.parse_args`."""
        base = self._base(args)
        if base is None or {"-h", "--help"} & set(args):
            return super().parse_args(ctx, args)
        here = set(_HERE.split())
        of_fleet = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        of_command = [each for each in base.params if isinstance(each, click.Option) and not here & set(each.opts)]
        for option in of_fleet:
            of_command = [each for each in of_command if set(each.opts).isdisjoint(option.opts)]
        # Two commands can use one name for different options, so the parser gets other names.
        copies = [copy(each) for each in (*of_fleet, *of_command)]
        for position, option in enumerate(copies):
            option.name = str(position)
        both = click.Command(self.name, params=[*copies])
        given, words, order = both.make_parser(ctx).parse_args(list(args))
        tokens: tuple[list[str], list[str], list[str]] = ([], [], [])
        shared = {"--timeout", "--memory"} & {name for each in base.params for name in each.opts}
        for used in dict.fromkeys(order):
            if isinstance(used, click.Option) and used.name is not None:
                spelled = _spelled(used, given[used.name])
                tokens[int(used.name) >= len(of_fleet)].extend(spelled)
                tokens[2].extend(spelled if spelled[0] in shared else [])
        arguments = [each for each in base.params if isinstance(each, click.Argument)]
        base.make_context(self.name, [*tokens[1], "--", *(["m.onnx"] * len(arguments))])  # finds wrong options
        has_report = any("--json" in each.opts for each in base.params)
        ctx.meta[_TOKENS] = (tokens[1], has_report, tokens[2])
        return super().parse_args(ctx, [*tokens[0], "--", *words])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the fleet, and which others there are."""
        super().format_options(ctx, formatter)
        if self.name not in ("duplicates", None):
            name = {"cost": "show", "rewrite": "rewrite EDIT"}.get(self.name, self.name)
            formatter.write_paragraph()
            formatter.write_text(f"The options of `onnxjson {name}` also work.")

    def _run(self, words: tuple[str, ...], **given: Any) -> None:
        assert self.name is not None
        ctx = click.get_current_context()
        tokens, has_report, limits = ctx.meta.get(_TOKENS, ([], True, []))
        ctx.exit(FleetRun(self.name, list(words), tokens, has_report, limits, given).run())


def _spelled(option: click.Option, value: Any) -> list[str]:
    """The words of an option on a command line."""
    if option.is_flag:
        spelling = option.opts[-1] if value is True or not option.secondary_opts else option.secondary_opts[-1]
        return [spelling]
    values = value if option.multiple else [value]
    # An option whose value is left out has an object of click's parser.
    given = [each if isinstance(each, str | tuple | list) else str(option.flag_value) for each in values]
    return [text for each in given for text in (option.opts[-1], *([each] if isinstance(each, str) else each))]


class _FleetGroup(options.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return FleetCommand(cmd_name) if cmd_name in _SUMMARIES else None


@click.group("fleet", cls=_FleetGroup)
def fleet_command() -> None:
    """Run a command over thousands of models.

    Models are files, folders, patterns ('models/**/*.onnx'), URLs and patterns of URLs ('s3://bucket/**/*.onnx'),
    REV:dir of a git repository, or .txt files that list these. Each model has its own process with limits; a model
    that crashes or hangs is one failed row. Exits 1 if any model failed or has findings.

    \b
    onnxjson fleet check 'models/**/*.onnx' --policy policy.toml -j 2
    onnxjson fleet find models 'Softmax($x)' -o rows.parquet
    onnxjson fleet rewrite set-batch-size models --size N -o changed
    onnxjson fleet diff release-1 release-2 -o changes.jsonl -o changes.html
    """

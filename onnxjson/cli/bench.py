"""``onnxjson bench``: variants of models side by side: how large, how far off, how fast."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from click.shell_completion import CompletionItem

from onnxjson.cli import failures, feeding, output, paging
from onnxjson.cli.paths import DestinationPath, FilePath
from onnxjson.errors import MissingInputError, OutputError

if TYPE_CHECKING:
    from onnxjson.benchmarking import Options, Report, Subject, Variant

_WIDEST: Final = 160
_FORMS: Final = ("table", "csv", "json", "markdown", "svg")
_ENDINGS: Final = {".csv": "csv", ".json": "json", ".md": "markdown", ".markdown": "markdown", ".svg": "svg",
                   ".txt": "table"}  # fmt: skip


class _Model(click.ParamType["Path | str"]):
    """The path of a model, or a word such as ``threads=1,2`` of the option --tune, which stands among them."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "Path | str":
        """See `click.ParamType.convert`."""
        from onnxjson.benchmarking.variants import is_grid_word

        if isinstance(value, str) and is_grid_word(value) and not Path(value).exists():
            return value
        path: Path = FilePath().convert(value, param, ctx)
        return path

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Files."""
        return [CompletionItem(incomplete, type="file")]


class _Variant(click.ParamType["Variant"]):
    """A variant."""

    name = "variant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "Variant":
        """See `click.ParamType.convert`."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return] # it is one already
        from onnxjson.benchmarking import parse_variant

        return parse_variant(value)


@click.command("bench")
@click.argument("words", metavar="MODEL...", nargs=-1, required=True, type=_Model())
@click.option(
    "--variant",
    "variants",
    metavar="NAME=PASSES",
    multiple=True,
    type=_Variant(),
    help="A variant: passes as after `optimize -p`, with commas between them; @LEVEL at the end is its session's.",
)
@click.option("--preset", type=click.Choice(["seed", "quantized"]), help="Sets of variants, before those of --variant.")
@click.option(
    "--tune",
    "tune",
    metavar="KEY=VALUES",
    multiple=True,
    help="Try session settings, every combination, and say the best: threads=1,2 mode=sequential,parallel "
    "level=basic,all parallel=2,4. More of these words may follow.",
)
@click.option(
    "-n",
    "--repeat",
    type=click.IntRange(0, 1_000_000),
    default=50,
    show_default=True,
    help="Time so many runs of each.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(0, 10_000),
    default=3,
    show_default=True,
    help="Runs of each before those that are timed.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=60.0,
    show_default=True,
    help="Begin no more runs after so many seconds.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="How many sets of values are made up to verify.",
)
@click.option(
    "--score",
    "script",
    metavar="FILE.py",
    type=FilePath(),
    help="A Python file with evaluate(run), which gives loss and metric; it is run.",
)
@click.option(
    "--format", "form", type=click.Choice(_FORMS), default="table", show_default=True, help="What is printed."
)
@click.option(
    "-o",
    "--output",
    "destinations",
    metavar="OUT",
    multiple=True,
    type=DestinationPath(),
    help="Also write OUT.csv, OUT.json, OUT.md or OUT.svg, a bar chart. May stand several times.",
)
@click.option(
    "--keep", "folder", metavar="DIR", type=DestinationPath(), help="Write the models of all variants to DIR."
)
@feeding.options(level="all", several_sizes=False)
@paging.options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    words: "tuple[Path | str, ...]",
    *,
    variants: "tuple[Variant, ...]",
    preset: str | None,
    tune: tuple[str, ...],
    repeat: int,
    warm_up: int,
    seconds: float,
    seeds: int,
    script: Path | None,
    form: str,
    destinations: tuple[Path, ...],
    folder: Path | None,
    color: paging.Colour,
    no_pager: bool,
    **said: Any,
) -> None:
    """Say how variants of models compare: size, difference, time.

    Each variant is made by its passes, compared with the model as it is, and timed in turn with all others, so that
    what the machine does besides meets all alike. Exits 0 if every variant runs, and computes the same where its passes
    are to leave the numbers as they are; else 1.

    \b
    onnxjson bench m.onnx --preset seed
    onnxjson bench m.onnx --variant both=onnxoptimizer,onnxsim -o report.md
    onnxjson bench m.onnx --preset quantized --score accuracy.py
    onnxjson bench m.onnx --tune threads=1,2 level=basic,all
    """  # fmt: skip
    from onnxjson.benchmarking import Options

    paths = [word for word in words if isinstance(word, Path)]
    if script is not None and not script.is_file():
        raise MissingInputError(f"{output.quoted(str(script))} does not exist, or is no file")
    _check(paths, [word for word in words if isinstance(word, str)], tune, destinations)
    found = feeding.feeding(said)
    wishes = msgspec.structs.replace(found.wishes, dims={name: sizes[0] for name, sizes in found.dims.items()})
    options = Options(
        settings=found.settings,
        grid=_grid(tune, words),
        rounds=repeat,
        warm_up=warm_up,
        seconds=seconds,
        seed=found.seed,
        seeds=seeds,
        wishes=wishes,
        tolerances=found.tolerances,
        script=script,
        data=_calibration(found.inputs),
        timeout=found.timeout,
    )
    subjects = _subjects(paths, found)
    report, models = _measured(subjects, _variants(preset, variants), options, keep=folder is not None)
    _show(report, form, color=color, pager=not no_pager)
    _save(report, destinations)
    if folder is not None:
        _keep(models, folder)
    if report.is_interrupted:
        output.talk("onnxjson: interrupted; above stands what was measured before")
        ctx.exit(failures.INTERRUPTED)
    ctx.exit(0 if all(row.is_fine for row in report.rows) else 1)


def _check(paths: Sequence[Path], words: Sequence[str], tune: Sequence[str], destinations: Sequence[Path]) -> None:
    """Do nothing if the words of the command line fit together.

    Raises:
        click.UsageError: they do not.
        OutputError: there is no folder for what is to be written.
    """
    if words and not tune:
        raise click.UsageError(f"{output.quoted(words[0])} is no file; session settings to try stand after --tune")
    if not paths:
        raise click.UsageError("no model is named")
    for path in paths:
        if paths.count(path) > 1:
            raise click.UsageError(f"{output.quoted(str(path))} is named twice")
    for path in destinations:
        if path.suffix.lower() not in _ENDINGS:
            raise click.UsageError(f"{path}: the ending says the form; there are {', '.join(_ENDINGS)}")
        if not path.parent.is_dir():
            raise OutputError(f"{path} cannot be written: the folder {path.parent} does not exist; make it first")


def _grid(tune: Sequence[str], words: "Sequence[Path | str]") -> Any:
    from onnxjson.benchmarking.variants import parse_grid

    return parse_grid([*tune, *[word for word in words if isinstance(word, str)]]) if tune else None


def _calibration(inputs: Sequence[str]) -> tuple[str, ...]:
    """Those of the values that passes can calibrate with: whole sets of them."""
    return tuple([str(Path(word).absolute()) for word in inputs if word.endswith(".npz") or Path(word).is_dir()])


def _variants(preset: str | None, variants: "Sequence[Variant]") -> "list[Variant]":
    from onnxjson.benchmarking import PRESETS, parse_variant

    found = [*map(parse_variant, PRESETS[preset] if preset else ()), *variants]
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"two variants are called {output.quoted(name)}")
    return found


def _subjects(paths: Sequence[Path], found: feeding.Feeding) -> "list[Subject]":
    from onnxjson import files
    from onnxjson.benchmarking import Subject
    from onnxjson.running.inputs import all_inputs

    several = [name for name, sizes in found.dims.items() if len(sizes) != 1]
    if several:
        raise click.UsageError(f"--dim {several[0]} has several sizes; a benchmark has one")
    models = []
    for path in paths:
        with output.working(f"reading {path}"):
            models.append(files.load(path).model)
    names = [set(all_inputs(model)) for model in models]
    subjects = []
    for path, model, own in zip(paths, models, names, strict=True):
        # A value of an input that only another model has is not for this one.
        others = set().union(*names) - own
        words = [word for word in found.inputs if word.rpartition("=")[0] not in others]
        sets = [each._replace(outputs={}) for each in feeding.given_sets(model, words)]
        subjects.append(Subject(str(path), model, path.parent, sets))
    return subjects


def _measured(
    subjects: "Sequence[Subject]", variants: "Sequence[Variant]", options: "Options", *, keep: bool
) -> "tuple[Report, list[tuple[str, str, bytes]]]":
    from onnxjson.benchmarking import Bench

    with output.working("making variants") as say, Bench(subjects, variants, options, say) as bench:
        report = bench.run()
        return report, bench.models() if keep else []


def _text(report: "Report", form: str) -> str:
    from onnxjson.rendering import bench_chart, bench_report
    from onnxjson.rendering.exact import as_json

    forms: dict[str, Callable[[Report], str]] = {
        "csv": bench_report.report_csv,
        "json": lambda found: as_json(bench_report.report_data(found)) + "\n",
        "markdown": bench_report.report_markdown,
        "svg": bench_chart.report_svg,
        "table": lambda found: "".join(
            [paging.styled(line, coloured=False) + "\n" for line in bench_report.report_lines(found, _WIDEST)]
        ),
    }
    return forms[form](report)


def _show(report: "Report", form: str, *, color: paging.Colour, pager: bool) -> None:
    from onnxjson.rendering.bench_report import report_lines

    if form != "table":
        output.Stdout().write(_text(report, form).encode("utf-8", "backslashreplace"))
        return
    width = paging.width(_WIDEST)
    coloured = paging.is_coloured(color)
    paging.show((paging.styled(line, coloured=coloured) for line in report_lines(report, width)), pager=pager)


def _save(report: "Report", destinations: Sequence[Path]) -> None:
    from onnxjson.saving import save_file

    for path in destinations:
        data = _text(report, _ENDINGS[path.suffix.lower()]).encode("utf-8", "backslashreplace")
        save_file(path, lambda sink, data=data: sink.write(data))  # type: ignore[misc]
        output.talk(f"wrote {path} ({output.size(path)})")


def _keep(models: "Sequence[tuple[str, str, bytes]]", folder: Path) -> None:
    from onnxjson.benchmarking.kept_files import file_names
    from onnxjson.saving import make_folder, save_file

    make_folder(folder)
    for name, (_, _, data) in zip(file_names([each[:2] for each in models]), models, strict=True):
        path = folder / name
        save_file(path, lambda sink, data=data: sink.write(data))  # type: ignore[misc]
    output.talk(f"wrote {output.counted(len(models), 'model')} to {folder}")
